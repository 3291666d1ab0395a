// SPDX-License-Identifier: GPL-2.0-or-later
//! The section `taskgroups`: what is written into the files of cgroups before the threads start.
//!
//! rt-app puts threads into groups (`"taskgroup"`) and leaves it to a script to say what a group may; so its files have no
//! such section, and rt-app itself does not read it.
//!
//! ```json
//! { "taskgroups": { "/background": { "cpu.weight": "20", "cpu.uclamp.max": "20.00" } } }
//! ```
//!
//! | file | value |
//! |---|---|
//! | `cpu.weight` | 1 to 10000; a new group has 100 |
//! | `cpu.weight.nice` | the weight of a nice value, −20 to 19; a new group has 0 |
//! | `cpu.idle` | 1: the group's threads are to others as those of `SCHED_IDLE`; it has no weight of its own |
//! | `cpu.max` | `QUOTA PERIOD` in microseconds, or `QUOTA`, of a period of 100000; `max` is no limit |
//! | `cpu.max.burst` | microseconds that may be saved up, at most the quota |
//! | `cpu.uclamp.min`, `cpu.uclamp.max` | percent with at most two decimals, or `max` |
//!
//! Values are strings, as one writes them there. What the kernel would refuse is a fault.

use super::json::{Kind, Member, Value, shorten};
use super::reader::{Reader, one_of};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_types::{CpuMax, GroupWeight, TaskGroupFiles, TaskGroupId};
use std::ops::Range;
use std::sync::Arc;

const FILES: [&str; 7] = [
    "cpu.weight",
    "cpu.weight.nice",
    "cpu.idle",
    "cpu.max",
    "cpu.max.burst",
    "cpu.uclamp.min",
    "cpu.uclamp.max",
];
/// Microseconds of a period that nobody has written.
const DEFAULT_PERIOD_US: u64 = 100_000;
/// `MAX_BW`: the largest quota, and quota with burst, microseconds.
const QUOTA_US_MAX: u64 = (1 << 44) - 1;
const MAX: &str = "write \"QUOTA PERIOD\" in microseconds, such as \"20000 100000\" (in a job: cpu.max=20000/100000), or \"max\"";
const BURST: &str = "write microseconds";
/// Help for a clamp that is none.
const PERCENT: &str = "write percent with at most two decimals, \"0\" to \"100\", or \"max\"";
const WEIGHT: &str = "write a whole number, \"1\" to \"10000\"; a new group has \"100\"";
const NICE: &str = "write a nice value, \"-20\" to \"19\"";
const IDLE: &str = "write \"0\" or \"1\"";

/// Reads the values that words of a command line write into the files of the cgroup at `path`: the
/// places of file and
/// value. Quota and period of `cpu.max` have a slash between them.
pub(crate) fn read_words(
    source: &Arc<Source>,
    path: Range<usize>,
    words: &[(Range<usize>, Range<usize>)],
) -> Result<Option<TaskGroupFiles>, Diagnostics> {
    let mut reader = Reader::new(source.clone());
    let text = &source.text[path.clone()];
    let mut names = text.split('/');
    let is_path = text.starts_with('/') && names.clone().any(|name| !name.is_empty());
    match !is_path || names.any(|name| matches!(name, "." | "..")) {
        true => {
            let help = "begin with \"/\" and name a cgroup, without \".\" and \"..\"".to_owned();
            reader.fault(path, "not the path of a cgroup", Some(help));
        }
        false => {
            reader.task_group_of_path(text, path);
        }
    }
    let member = |(key, value): &(Range<usize>, Range<usize>)| Member {
        key: source.text[key.clone()].to_owned(),
        key_span: key.clone(),
        value: Value {
            span: value.clone(),
            kind: Kind::Text(source.text[value.clone()].replacen('/', " ", 1)),
        },
    };
    let members: Vec<Member> = words.iter().map(member).collect();
    reader.no_duplicates(&members, |_| true);
    let files = reader.files_of_group(&members);
    reader.faults.into_result((!members.is_empty()).then_some(files))
}

impl Reader {
    pub(super) fn task_group_files(&mut self, groups: &[Member]) {
        self.no_duplicates(groups, |_| true);
        for group in groups {
            let path = group.key.as_str();
            let number = self.task_group_of_path(path, group.key_span.clone());
            let Some(members) = self.object(group) else { continue };
            self.no_duplicates(members, |_| true);
            if path.split('/').all(|name| name.is_empty()) {
                let message = "the root group has no such files".to_owned();
                let help =
                    "the kernel's settings uclamp_util_min and uclamp_util_max limit all tasks";
                self.fault(group.key_span.clone(), message, Some(help.to_owned()));
                continue;
            }
            let files = self.files_of_group(members);
            self.group_files.extend(number.map(|number| (number, files)));
        }
    }

    fn files_of_group(&mut self, members: &[Member]) -> TaskGroupFiles {
        let mut files = TaskGroupFiles::none(TaskGroupId::ROOT);
        let mut written: Option<&Member> = None;
        let mut burst: Option<&Member> = None;
        for member in members {
            match member.key.as_str() {
                "cpu.uclamp.min" => files.uclamp_min = self.value(member, hundredths, PERCENT),
                "cpu.uclamp.max" => files.uclamp_max = self.value(member, hundredths, PERCENT),
                "cpu.max" => files.max = self.cpu_max(member),
                "cpu.max.burst" => {
                    files.burst = self.value(member, |text| text.parse().ok(), BURST);
                    burst = files.burst.map(|_| member);
                }
                "cpu.idle" => files.idle = self.value(member, zero_or_one, IDLE),
                name @ ("cpu.weight" | "cpu.weight.nice") => {
                    files.weight = match name {
                        "cpu.weight" => self.value(member, weight, WEIGHT),
                        _ => self.value(member, nice, NICE),
                    };
                    if let Some(other) = written.replace(member)
                        && other.key != name
                    {
                        let message = format!("\"{name}\" writes over \"{}\"", other.key);
                        let help = "they are two forms of one weight; keep one of them";
                        self.fault(member.key_span.clone(), message, Some(help.to_owned()));
                    }
                }
                name => {
                    let message = format!("unknown file \"{}\" of a task group", shorten(name));
                    let help = match name.starts_with("cpuset.") {
                        true => "CPUs are given to a job, taskset=0-3, or to a thread of a file, \"cpus\"".to_owned(),
                        false => one_of(&FILES),
                    };
                    self.fault(member.key_span.clone(), message, Some(help));
                }
            }
        }
        if let (Some(member), Some(true)) = (written, files.idle) {
            let message = format!("\"{}\" of an idle group", member.key);
            let help = "the kernel gives an idle group a weight of its own and refuses another";
            self.fault(member.key_span.clone(), message, Some(help.to_owned()));
        }
        if let (Some(member), Some(us)) = (burst, files.burst) {
            files.burst = self.burst(member, us, files.max, members);
        }
        files
    }

    /// A burst of `us`, if it fits the quota.
    fn burst(
        &mut self,
        member: &Member,
        us: u64,
        max: Option<CpuMax>,
        members: &[Member],
    ) -> Option<u64> {
        let quota = match max {
            Some(CpuMax { quota: Some(quota), .. }) => quota / 1000,
            // Its own fault has been said.
            None if members.iter().any(|member| member.key == "cpu.max") => return None,
            _ => {
                let message = "\"cpu.max.burst\" without a quota".to_owned();
                let help = "add \"cpu.max\"; a group without a limit saves nothing up";
                self.fault(member.key_span.clone(), message, Some(help.to_owned()));
                return None;
            }
        };
        let most = quota.min(QUOTA_US_MAX - quota);
        if us > most {
            let message = format!("\"cpu.max.burst\" is {us} us, beyond the quota");
            let help = format!("it is at most \"{most}\" here");
            self.fault(member.value.span.clone(), message, Some(help));
            return None;
        }
        Some(us * 1000)
    }

    /// `cpu_max_write()`: what the kernel refuses is a fault.
    fn cpu_max(&mut self, member: &Member) -> Option<CpuMax> {
        let (quota, period) = self.value(member, cpu_max, MAX)?;
        let mut refuse = |message: String, help: &str| {
            self.fault(member.value.span.clone(), message, Some(help.to_owned()));
        };
        if !(1_000..=1_000_000).contains(&period) {
            refuse(
                format!("a period of {period} us"),
                "a period is 1000 to 1000000 us (1 ms to 1 s)",
            );
            return None;
        }
        if let Some(quota) = quota
            && !(1_000..=QUOTA_US_MAX).contains(&quota)
        {
            refuse(
                format!("a quota of {quota} us"),
                "a quota is at least 1000 us (1 ms), and at most 200 days",
            );
            return None;
        }
        Some(CpuMax { quota: quota.map(|us| us * 1000), period: period * 1000 })
    }

    /// A value in a file's own notation.
    fn value<T>(
        &mut self,
        member: &Member,
        read: impl Fn(&str) -> Option<T>,
        help: &str,
    ) -> Option<T> {
        let text = self.text(member)?;
        let value = read(text);
        if value.is_none() {
            let message = format!("\"{}\" cannot be \"{}\"", member.key, shorten(text));
            self.fault(member.value.span.clone(), message, Some(help.to_owned()));
        }
        value
    }
}

fn zero_or_one(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Quota (`None`: `max`) and period in microseconds (`cpu_period_quota_parse`).
fn cpu_max(text: &str) -> Option<(Option<u64>, u64)> {
    let mut words = text.split_ascii_whitespace();
    let quota = match words.next()? {
        "max" => None,
        us => Some(us.parse().ok()?),
    };
    let period = words.next().map_or(Ok(DEFAULT_PERIOD_US), str::parse).ok()?;
    words.next().is_none().then_some((quota, period))
}

fn weight(text: &str) -> Option<GroupWeight> {
    let weight: u16 = text.parse().ok()?;
    (1..=10_000).contains(&weight).then_some(GroupWeight::Weight(weight))
}

fn nice(text: &str) -> Option<GroupWeight> {
    let nice: i8 = text.parse().ok()?;
    (-20..=19).contains(&nice).then_some(GroupWeight::Nice(nice))
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

    #[test]
    fn quotas_and_periods() {
        for (text, expected) in [
            ("max", Some((None, 100_000))),
            ("max 50000", Some((None, 50_000))),
            ("20000", Some((Some(20_000), 100_000))),
            (" 20000  5000\n", Some((Some(20_000), 5_000))),
            ("", None),
            ("-1", None),
            ("20000 max", None),
            ("20000 100000 1", None),
            ("20ms", None),
        ] {
            assert_eq!(cpu_max(text), expected, "{text}");
        }
    }

    #[test]
    fn weights_of_both_forms() {
        for (text, expected) in [
            ("100", Some(100)),
            ("1", Some(1)),
            ("10000", Some(10_000)),
            ("0", None),
            ("10001", None),
            ("-1", None),
            ("1.5", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(weight(text), expected.map(GroupWeight::Weight), "{text}");
        }
        for (text, expected) in [
            ("0", Some(0)),
            ("-20", Some(-20)),
            ("19", Some(19)),
            ("20", None),
            ("-21", None),
            ("300", None),
        ] {
            assert_eq!(nice(text), expected.map(GroupWeight::Nice), "{text}");
        }
    }
}
