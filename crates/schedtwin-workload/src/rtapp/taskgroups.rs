//! The section `taskgroups`: what is written into the files of cgroups before the threads start.
//!
//! rt-app puts threads into groups (`"taskgroup"`) and leaves it to a script to say what a group may; so its files have no
//! such section, and rt-app itself does not read it.
//!
//! ```json
//! { "taskgroups": { "/background": { "cpu.uclamp.min": "0", "cpu.uclamp.max": "20.00" } } }
//! ```
//!
//! The values are those that one writes there: percent with at most two decimals, or `max`.

use super::json::{Member, shorten};
use super::reader::{Reader, one_of};

const FILES: [&str; 2] = ["cpu.uclamp.min", "cpu.uclamp.max"];
/// Help for a value that is none.
const WANTED: &str = "write percent with at most two decimals, \"0\" to \"100\", or \"max\"";

impl Reader {
    pub(super) fn group_clamps(&mut self, groups: &[Member]) {
        self.no_duplicates(groups, |_| true);
        for group in groups {
            let path = group.key.as_str();
            let number = self.task_group_of_path(path, group.key_span.clone());
            let Some(files) = self.object(group) else { continue };
            self.no_duplicates(files, |_| true);
            if path.split('/').all(|name| name.is_empty()) {
                let message = "the root group has no files of clamps".to_owned();
                let help =
                    "the kernel's settings uclamp_util_min and uclamp_util_max limit all tasks";
                self.fault(group.key_span.clone(), message, Some(help.to_owned()));
                continue;
            }
            let mut clamps = [None; 2];
            for file in files {
                match FILES.iter().position(|name| *name == file.key) {
                    Some(at) => clamps[at] = self.percent(file),
                    None => {
                        let message =
                            format!("unknown file \"{}\" of a task group", shorten(&file.key));
                        self.fault(file.key_span.clone(), message, Some(one_of(&FILES)));
                    }
                }
            }
            self.group_clamps.extend(number.map(|number| (number, clamps)));
        }
    }

    /// Hundredths of a percent.
    fn percent(&mut self, member: &Member) -> Option<u32> {
        let text = self.text(member)?;
        let percent = hundredths(text);
        if percent.is_none() {
            let message = format!("\"{}\" cannot be \"{}\"", member.key, shorten(text));
            self.fault(member.value.span.clone(), message, Some(WANTED.to_owned()));
        }
        percent
    }
}

/// Percent with at most two decimals as hundredths of a percent (`capacity_from_percent`, `cgroup_parse_float`).
fn hundredths(text: &str) -> Option<u32> {
    if text == "max" {
        return Some(10_000);
    }
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || whole.len() > 3
        || decimals.len() > 2
        || !digits(whole)
        || !digits(decimals)
    {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let decimals: u32 = format!("{decimals:0<2}").parse().ok()?;
    Some(whole * 100 + decimals).filter(|percent| *percent <= 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_with_two_decimals() {
        for (text, expected) in [
            ("0", Some(0)),
            ("20", Some(2_000)),
            ("20.5", Some(2_050)),
            ("20.05", Some(2_005)),
            ("100.00", Some(10_000)),
            ("max", Some(10_000)),
            ("100.01", None),
            ("20.005", None),
            ("-1", None),
            ("", None),
            (".5", None),
            ("1e1", None),
            ("99999999999", None),
        ] {
            assert_eq!(hundredths(text), expected, "{text}");
        }
    }
}
