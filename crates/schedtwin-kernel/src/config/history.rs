// SPDX-License-Identifier: GPL-2.0-or-later
//! The releases that have a form, as its declaration says: from the text to spans of releases.
//!
//! A declaration says `"up to 6.11, 6.16 and later"`. The same text is shown to users and decides the form of a
//! release that has no file of its own, so a wrong history is one mistake in one place.
//!
//! | item | releases |
//! |---|---|
//! | `any`, `none` | all; not one |
//! | `up to 6.11`, `6.6 to 6.10`, `6.11 and 6.12`, `6.16 and later` | whole series |
//! | `6.12`, `6.12.y` | one series |
//! | `6.18.y from .17 on`, `6.18.y up to .16`, `6.18.y from .24 to .43` | part of a series |
//! | `6.5.0` | one release |
//!
//! 1. Items stand between commas or semicolons; a note in brackets is for readers. The word `assumed` in it says that no
//!    source was read for the item.
//! 2. The narrowest item that contains a release decides: part of a series before a series, that before a range.
//! 3. A release that no item contains has the form of the nearest series, the older of two, and that is assumed.
//! 4. A point with an arm that `any` release has is a choice of the build or of the user: history decides nothing.
//! 5. A wrong rule (`bugs.rs`) is on where an item of `true` decides and off elsewhere. A range of series is that of the
//!    mainline: it is certain in first releases (6.17.0), and assumed in later ones, which can have got the correction.
//!
//! ```
//! use schedtwin_kernel::config::{Config, Release, Value};
//!
//! let order = Config::setting("uclamp_order").unwrap();
//! let at = |name: &str| order.form_in(Release::parse(name).unwrap()).unwrap().value;
//! assert_eq!(at("6.8"), Value::from("before-enqueue"));
//! assert_eq!(at("6.13"), Value::from("after-enqueue"));
//! assert_eq!(at("7.1"), Value::from("before-enqueue"));
//! ```

use super::Config;
use super::declare::{Kind, Setting, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A release of Linux: 6.12.95, or the last stable one of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u16,
    minor: u16,
    /// [`Release::LAST`]: the last stable one.
    stable: u16,
}

/// The form of a setting in a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// As kernel files have it.
    pub value: Value,
    /// Whether the declaration does not tell, or says itself that it assumes.
    pub assumed: bool,
}

impl Release {
    /// The number that stands for the last stable release of a series.
    const LAST: u16 = u16::MAX;
    const FIRST: Release = Release { major: 0, minor: 0, stable: 0 };
    const NEWEST: Release = Release { major: u16::MAX, minor: u16::MAX, stable: Release::LAST };

    /// Reads `6.12` (its last stable release) or `6.12.95`; `None`: it is neither.
    ///
    /// ```
    /// use schedtwin_kernel::config::Release;
    /// assert!(Release::parse("6.12.0") < Release::parse("6.12"));
    /// assert!(Release::parse("6.12") < Release::parse("7.0.0"));
    /// assert_eq!(Release::parse("6.12-rc1"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Release> {
        let mut parts = text.split('.').map(|part| part.parse::<u16>().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        let stable = match parts.next() {
            Some(stable) => stable?,
            None => Release::LAST,
        };
        parts.next().is_none().then_some(Release { major, minor, stable })
    }

    /// Whether it stands for the last stable release of its series.
    pub fn is_last(self) -> bool {
        self.stable == Release::LAST
    }

    /// Whether Linux numbers series so: none had a minor number above 20.
    pub fn is_plausible(self) -> bool {
        self.minor <= 20
    }

    /// The position of its series among all: the last of 4 was 4.20, and from 5 on a major number has twenty.
    pub fn series(self) -> u32 {
        let major = u32::from(self.major);
        let before = match major {
            0..5 => 20 * major,
            _ => 101 + 20 * (major - 5),
        };
        before + u32::from(self.minor)
    }
}

/// Releases in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: Release,
    to: Release,
    width: Width,
    assumed: bool,
}

/// The width of a span, the narrowest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Series,
    OneSeries,
    PartOfSeries,
}

impl Span {
    fn contains(&self, release: Release) -> bool {
        (self.from..=self.to).contains(&release)
    }

    /// The number of series between the span and a release.
    fn distance(&self, release: Release) -> u32 {
        let below = self.from.series().saturating_sub(release.series());
        below.max(release.series().saturating_sub(self.to.series()))
    }
}

/// Reads the releases that a declaration names; the error is the item that is not of the grammar.
fn parse(text: &str) -> Result<Vec<Span>, String> {
    let mut spans = Vec::new();
    let mut depth = 0;
    let ends = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && (c == ',' || c == ';')
    };
    for item in text.split(ends) {
        spans.extend(parse_item(item.trim()).ok_or_else(|| item.trim().to_string())?);
    }
    Ok(spans)
}

/// Reads one item; inner `None`: it names no release.
fn parse_item(item: &str) -> Option<Option<Span>> {
    let (words, note) = item.split_once('(').unwrap_or((item, ""));
    let words: Vec<&str> = words.split_whitespace().collect();
    let first = |text: &str| Some(Release { stable: 0, ..whole_series(text)? });
    let part = |text: &str| text.strip_prefix('.')?.parse::<u16>().ok();
    let within = |series: &str, from: u16, to: u16| {
        let all = whole_series(series.strip_suffix(".y")?)?;
        let at = |stable| Release { stable, ..all };
        Some((at(from), at(to), Width::PartOfSeries))
    };
    let (from, to, width) = match words[..] {
        ["none"] => return Some(None),
        ["any"] => (Release::FIRST, Release::NEWEST, Width::Series),
        ["up", "to", to] => (Release::FIRST, whole_series(to)?, Width::Series),
        [from, "and", "later"] => (first(from)?, Release::NEWEST, Width::Series),
        [from, "to" | "and", to] => (first(from)?, whole_series(to)?, Width::Series),
        [series, "from", from, "on"] => within(series, part(from)?, Release::LAST)?,
        [series, "up", "to", to] => within(series, 0, part(to)?)?,
        [series, "from", from, "to", to] => within(series, part(from)?, part(to)?)?,
        [one] => match Release::parse(one) {
            Some(release) if !release.is_last() => (release, release, Width::PartOfSeries),
            _ => {
                let series = one.strip_suffix(".y").unwrap_or(one);
                (first(series)?, whole_series(series)?, Width::OneSeries)
            }
        },
        _ => return None,
    };
    let assumed = note.contains("assumed");
    Some(Some(Span { from, to, width, assumed }))
}

/// A series by its name, as its last stable release.
fn whole_series(text: &str) -> Option<Release> {
    Release::parse(text).filter(|release| release.is_last())
}

impl Setting {
    /// The values whose releases the declaration names, each with that text: a point's arms, the numbers and switches that
    /// releases changed.
    pub fn history(&self) -> Vec<(Value, &'static str)> {
        match &self.kind {
            Kind::Choice { arms, .. } => {
                arms.iter().map(|arm| (arm.word.into(), arm.releases)).collect()
            }
            _ => self.releases.clone(),
        }
    }

    /// Whether the build or the user chooses the value, in any release.
    fn is_chosen(&self) -> bool {
        let history = self.history();
        let any = |(_, text): &(Value, &str)| text.starts_with("any");
        history.is_empty() || history.iter().any(any)
    }

    /// The form that a release has; `None`: history does not decide it.
    pub fn form_in(&self, release: Release) -> Option<Form> {
        if self.is_chosen() {
            return None;
        }
        if self.is_bug() {
            return Some(self.wrong_rule_in(release));
        }
        let rank = |span: &Span| {
            let told = span.contains(release);
            let narrow = if told { span.width as i32 } else { -(span.width as i32) };
            (told, std::cmp::Reverse(span.distance(release)), narrow, span.from <= release)
        };
        let (value, span) = self.spans().iter().rev().max_by_key(|(_, span)| rank(span))?;
        let assumed = span.assumed || !span.contains(release);
        Some(Form { value: value.clone(), assumed })
    }

    /// Whether a release has this wrong rule: the narrowest item that contains it decides.
    fn wrong_rule_in(&self, release: Release) -> Form {
        let here = self.spans().iter().filter(|(_, span)| span.contains(release));
        match here.max_by_key(|(_, span)| span.width) {
            None => Form { value: false.into(), assumed: false },
            Some((value, span)) => {
                let can_be_corrected = span.width == Width::Series && release.stable != 0;
                Form { value: value.clone(), assumed: span.assumed || can_be_corrected }
            }
        }
    }

    /// Whether a release can have a value: the declaration does not say otherwise.
    pub fn is_possible_in(&self, release: Release, value: &Value) -> bool {
        let mut of_value = self.spans().iter().filter(|(word, _)| word == value).peekable();
        of_value.peek().is_none() || of_value.any(|(_, span)| span.contains(release))
    }

    /// Each value with the releases that its declaration names.
    fn spans(&self) -> &'static [(Value, Span)] {
        static ALL: LazyLock<BTreeMap<&str, Vec<(Value, Span)>>> = LazyLock::new(|| {
            Config::settings().iter().map(|setting| (setting.path, setting.read_spans())).collect()
        });
        &ALL[self.path]
    }

    fn read_spans(&self) -> Vec<(Value, Span)> {
        let read = |(value, text): (Value, &str)| {
            let spans = parse(text)
                .unwrap_or_else(|item| panic!("`{}`: `{item}` names no releases", self.path));
            spans.into_iter().map(move |span| (value.clone(), span))
        };
        self.history().into_iter().flat_map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Release {
        Release::parse(text).unwrap()
    }

    #[test]
    fn every_declaration_names_releases() {
        let mut wrong = Vec::new();
        for setting in Config::settings() {
            for (value, text) in setting.history() {
                if let Err(item) = parse(text) {
                    wrong.push(format!("{} {value}: `{item}` of `{text}`", setting.path));
                }
            }
        }
        assert!(wrong.is_empty(), "no item of history.rs's grammar:\n{}", wrong.join("\n"));
    }

    #[test]
    fn no_release_has_two_forms() {
        let mut wrong = Vec::new();
        for setting in Config::settings().iter().filter(|setting| !setting.is_chosen()) {
            let spans = setting.spans();
            let edges = spans.iter().flat_map(|(_, span)| [span.from, span.to]);
            for at in edges {
                let here = spans.iter().filter(|(_, span)| span.contains(at));
                let narrowest = here.clone().map(|(_, span)| span.width).max();
                let decide = here.filter(|(_, span)| Some(span.width) == narrowest);
                let mut values: Vec<String> = decide.map(|(value, _)| value.to_string()).collect();
                values.dedup();
                if values.len() > 1 {
                    wrong.push(format!("{} at {at:?}: {}", setting.path, values.join(", ")));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn items_contain_their_releases() {
        for (item, has, has_not) in [
            ("up to 6.11", "6.11", "6.12.0"),
            ("6.6 to 6.10", "6.6.0", "6.11.0"),
            ("4.20 to 5.1", "5.0", "4.19"),
            ("6.16 and later", "7.0", "6.15"),
            ("6.18.y from .17 on", "6.18", "6.18.16"),
            ("6.18.y up to .16", "6.18.0", "6.18.17"),
            ("6.18.y from .24 to .43", "6.18.43", "6.18.44"),
            ("6.5.0 (and as posted)", "6.5.0", "6.5"),
            ("any", "7.3", ""),
        ] {
            let spans = parse(item).unwrap();
            assert!(spans[0].contains(release(has)), "{item} has {has}");
            let other = Release::parse(has_not);
            assert!(other.is_none_or(|other| !spans[0].contains(other)), "{item}, not {has_not}");
        }
        assert_eq!(parse("none (a patch, as posted)"), Ok(vec![]));
        assert_eq!(parse("6.6 to 6.10, sometimes"), Err("sometimes".to_string()));
    }

    #[test]
    fn a_gap_is_filled_from_the_nearest_series_and_says_so() {
        let form = |path: &str, at: &str| {
            let form = Config::setting(path).unwrap().form_in(release(at)).unwrap();
            (form.value.to_string(), form.assumed)
        };
        assert_eq!(form("group_tree", "7.1"), ("nested".to_string(), false));
        assert_eq!(form("group_tree", "7.2"), ("nested".to_string(), true), "the older of two");
        assert_eq!(form("group_tree", "7.3"), ("flat".to_string(), false));
        assert_eq!(form("uclamp_order", "6.12.3"), ("after-enqueue".to_string(), false));
    }

    #[test]
    fn a_wrong_rule_is_on_in_its_releases_and_assumed_where_it_can_have_been_corrected() {
        let form = |path: &str, at: &str| {
            let form = Config::setting(path).unwrap().form_in(release(at)).unwrap();
            (form.value == true.into(), form.assumed)
        };
        for (path, at, expected) in [
            ("bugs.newidle_cost_raised_by_failure", "6.16", (false, false)),
            ("bugs.newidle_cost_raised_by_failure", "6.17", (true, false)),
            ("bugs.newidle_cost_raised_by_failure", "6.18.2", (true, false)),
            ("bugs.newidle_cost_raised_by_failure", "6.18.3", (false, false)),
            ("bugs.protected_idle_task", "6.14.0", (true, false)),
            ("bugs.protected_idle_task", "6.14", (false, false)),
            ("bugs.protected_idle_task", "6.8", (true, true)),
            ("bugs.hold_above_cap", "5.10", (true, false)),
            ("bugs.fair_server_stuck", "6.17.0", (false, false)),
        ] {
            assert_eq!(form(path, at), expected, "{path} in {at}");
        }
    }

    #[test]
    fn every_wrong_rule_names_its_releases() {
        for bug in Config::settings().iter().filter(|setting| setting.is_bug()) {
            let history = bug.history();
            assert!(history.iter().any(|(value, _)| *value == true.into()), "{}", bug.path);
        }
    }

    #[test]
    fn series_follow_each_other_across_major_numbers() {
        for (before, after) in [("4.20", "5.0"), ("5.19", "6.0"), ("6.19", "7.0"), ("3.19", "4.0")]
        {
            let [before, after] = [before, after].map(|name| release(name).series());
            assert!(after > before, "{before} {after}");
        }
    }
}
