// SPDX-License-Identifier: GPL-2.0-or-later
//! Releases by name that have no file: composed from the histories of the settings.
//!
//! | name | kernel |
//! |---|---|
//! | `linux-6.8` | the last stable release of a series in [`COMPOSED`] |
//! | `linux-6.8.0`, `linux-6.12.40` | one release of a series that has a name here, with or without a file |
//! | `linux-5.10-gki` | the series under the settings of Android's kernels |
//!
//! 1. A setting whose declaration names releases has the form of that release
//!    ([`Setting::form_in`](schedtwin_kernel::config::Setting::form_in)).
//! 2. Every other one has the value of a neighbour that has a file: what the build or the user chooses.
//! 3. Where the declaration does not tell, the nearest series decides, and `show kernel` says that this is assumed.
//!
//! So a new release is a row in [`COMPOSED`], and a wrong history is corrected where the setting is declared. A test compares
//! each kernel that has a file with its composition.

use super::{BUILTIN, KernelFile, write};
use schedtwin_input::Source;
use schedtwin_kernel::config::{Config, Kind, Release, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A series that is composed.
struct Composed {
    /// `6.8`, `5.10-gki`.
    name: &'static str,
    /// The kernel with a file from which it takes what no history decides.
    neighbour: &'static str,
    /// The release in whose scheduler and idle governors forms were looked up; empty: none was at hand.
    seen: &'static str,
    /// The release whose forms it has, if that is not its own.
    forms_of: Option<&'static str>,
}

const fn series(name: &'static str, neighbour: &'static str) -> Composed {
    seen(name, neighbour, "")
}

const fn seen(name: &'static str, neighbour: &'static str, seen: &'static str) -> Composed {
    Composed { name, neighbour, seen, forms_of: None }
}

const COMPOSED: [Composed; 22] = [
    seen("4.19", "linux-5.11", "4.19.0"),
    // Before Android's kernels were generic: its tree had EAS and clamps before mainline, as 5.4 has them.
    Composed { name: "4.19-gki", neighbour: "linux-6.1-gki", seen: "", forms_of: Some("5.4") },
    series("5.4", "linux-5.11"),
    series("5.4-gki", "linux-6.1-gki"),
    series("5.10", "linux-5.11"),
    series("5.10-gki", "linux-6.1-gki"),
    series("5.15", "linux-5.18"),
    series("5.15-gki", "linux-6.1-gki"),
    series("6.7", "linux-6.6"),
    series("6.8", "linux-6.6"),
    series("6.9", "linux-6.6"),
    series("6.10", "linux-6.6"),
    seen("6.11", "linux-6.6", "6.11.11"),
    seen("6.13", "linux-6.12", "6.13.7"),
    seen("6.14", "linux-6.12", "6.14.0"),
    series("6.15", "linux-6.12"),
    series("6.16", "linux-6.12"),
    series("6.17", "linux-6.12"),
    seen("6.19", "linux-6.18", "6.19.9"),
    seen("7.0", "linux-6.18", "7.0.0"),
    seen("7.1", "linux-7.3", "7.1.5"),
    series("7.2", "linux-7.3"),
];

/// Rules that no form here models: the first series among the composed ones that had it, the last one, and the rule.
const MISSING: [(&str, &str, &str); 8] = [
    (
        "4.19",
        "5.4",
        "balancing by average loads, before groups had types (5.5); here it is as in 6.1",
    ),
    (
        "4.19",
        "5.6",
        "PELT's average of runnable load, before runnable_avg (5.7), which is here instead",
    ),
    ("4.19", "5.13", "EAS has the candidates and the margin of 5.14 to 5.19"),
    (
        "6.7",
        "6.11",
        "a group's slice is the shortest of its tasks' here, and the base slice there, as in linux-6.6",
    ),
    ("6.7", "6.11", "menu has twelve buckets and counts I/O waiters; here it is that of 6.12"),
    (
        "6.13",
        "6.16",
        "an entity whose weight changed was placed anew (6d71a9c61604); here its lag keeps its worth",
    ),
    ("6.13", "7.2", "sched_ext: its class had forms that are not modelled"),
    (
        "7.1",
        "7.2",
        "lag was measured as in linux-7.3 (in 7.1.5; 7.2 was not seen); here it is as in 6.18",
    ),
];

/// The kernel of a name, as a file; `None`: no release is called so.
pub(super) fn source(name: &str) -> Option<Arc<Source>> {
    let text = Composition::of(name)?.text();
    Some(Source::new(format!("{PREFIX}{name}"), text))
}

/// Whether a name is that of a composed kernel.
pub(super) fn is_composed(name: &str) -> bool {
    Composition::of(name).is_some()
}

/// The beginning of the name of a built-in source.
pub(super) const PREFIX: &str = "<built in> ";

/// The composed kernels that are listed: each series, and its first release where a later one corrected it.
pub(super) fn names() -> Vec<String> {
    let files = BUILTIN.iter().filter_map(|(name, _)| name.strip_prefix("linux-"));
    let all: Vec<&str> = COMPOSED.iter().map(|row| row.name).chain(files).collect();
    let mut names: Vec<String> = COMPOSED.iter().map(|row| format!("linux-{}", row.name)).collect();
    let corrected = all.iter().filter(|series| is_corrected(series));
    names.extend(corrected.map(|series| format!("linux-{series}.0")));
    names
}

/// Whether the first release of a series has other forms than its last one.
fn is_corrected(series: &str) -> bool {
    let both = [Release::parse(&format!("{series}.0")), Release::parse(series)];
    let [Some(first), Some(last)] = both else { return false };
    let config = |release| Composition::of_release(release, series).map(|of| of.config());
    config(first) != config(last)
}

/// The place of a kernel among all, by its release: series, first releases before last ones, name.
pub(super) fn order(name: &str) -> (u32, Option<Release>, String) {
    let release = release_of(name);
    (release.map_or(u32::MAX, Release::series), release, name.to_string())
}

/// The release in a kernel's name; `None`: it has none.
fn release_of(name: &str) -> Option<Release> {
    Release::parse(name.strip_prefix("linux-")?.split('-').next()?)
}

/// Tells where a composed kernel comes from, which settings are assumed, which rules are missing. `None`: it is none.
pub(super) fn about(name: &str) -> Option<String> {
    let composition = Composition::of(name)?;
    let mut text = format!(
        "Composed: the releases that `schedtwin list points` gives for each setting, the rest from {}.\n",
        composition.neighbour
    );
    if !composition.seen.is_empty() {
        text.push_str(&format!(
            "Its scheduler and idle governors were looked up in {}.\n",
            composition.seen
        ));
    }
    let assumed = composition.assumed(&composition.config());
    if !assumed.is_empty() {
        let count = assumed.len();
        text.push_str(&format!("Assumed ({count}, no source was read): {}.\n", assumed.join(", ")));
    }
    let missing = composition.missing().map(|rule| format!("Not modelled: {rule}.\n"));
    text.extend(missing);
    Some(text)
}

/// A release, and where its settings come from.
struct Composition {
    name: String,
    release: Release,
    neighbour: &'static str,
    seen: &'static str,
}

impl Composition {
    fn of(name: &str) -> Option<Composition> {
        let rest = name.strip_prefix("linux-")?;
        let of = match COMPOSED.iter().find(|row| row.name == rest) {
            Some(row) => {
                let release = row.forms_of.map_or_else(|| release_of(name), Release::parse)?;
                Composition {
                    name: String::new(),
                    release,
                    neighbour: row.neighbour,
                    seen: row.seen,
                }
            }
            None => {
                let release = Release::parse(rest).filter(|release| !release.is_last())?;
                let (series, _) = rest.rsplit_once('.')?;
                Composition::of_release(release, series)?
            }
        };
        Some(Composition { name: name.to_string(), ..of })
    }

    /// A release of a series that has a name; `None`: it has none.
    fn of_release(release: Release, series: &str) -> Option<Composition> {
        let row = COMPOSED.iter().find(|row| row.name == series);
        let file = || {
            let mut files = BUILTIN.iter().map(|(name, _)| *name);
            files.find(|name| name.strip_prefix("linux-") == Some(series))
        };
        let neighbour = row.map(|row| row.neighbour).or_else(file)?;
        let seen = if release.is_last() { row.map_or("", |row| row.seen) } else { "" };
        Some(Composition { name: format!("linux-{series}"), release, neighbour, seen })
    }

    fn config(&self) -> Config {
        let neighbour =
            KernelFile::load(self.neighbour).expect("built-in kernels are read by a test");
        let inherited: BTreeMap<&str, Value> =
            neighbour.config.values().into_iter().map(|(s, value)| (s.path, value)).collect();
        Config::new(|path| self.value(path, inherited.get(path)))
    }

    /// A setting's value: history's, else the neighbour's if the release can have it.
    fn value(&self, path: &str, inherited: Option<&Value>) -> Value {
        let setting = Config::setting(path).expect("declared");
        if let Some(form) = setting.form_in(self.release) {
            return form.value;
        }
        let possible = |value: &&Value| setting.is_possible_in(self.release, value);
        let arms = match &setting.kind {
            Kind::Choice { arms, .. } => arms.iter().map(|arm| Value::from(arm.word)).collect(),
            _ => Vec::new(),
        };
        let candidates = inherited.into_iter().chain(&setting.default_if_absent).chain(&arms);
        let value = candidates.clone().find(possible).or_else(|| candidates.clone().next());
        value.expect("the neighbour has every setting that no history decides").clone()
    }

    /// The paths of the settings of its configuration whose form in this release no declaration tells.
    fn assumed(&self, config: &Config) -> Vec<&'static str> {
        let is_assumed = |path: &str| {
            let setting = Config::setting(path).expect("declared");
            setting.form_in(self.release).is_some_and(|form| form.assumed)
        };
        config.values().into_iter().map(|(s, _)| s.path).filter(|path| is_assumed(path)).collect()
    }

    /// The rules that the release had and no form models.
    fn missing(&self) -> impl Iterator<Item = &'static str> {
        let at = self.release.series();
        let series = |name: &str| Release::parse(name).expect("a series").series();
        let had =
            move |(from, to, _): &&(&str, &str, &str)| (series(from)..=series(to)).contains(&at);
        MISSING.iter().filter(had).map(|(_, _, rule)| *rule)
    }

    fn text(&self) -> String {
        let config = self.config();
        let class = config.fair.word().to_uppercase();
        let energy = if config.energy_aware { ", EAS" } else { "" };
        let [cpufreq, cpuidle] = [config.cpufreq.word(), config.cpuidle.word()];
        let name = self.name.strip_prefix("linux-").unwrap_or(&self.name);
        let last = if self.release.is_last() { ", its last stable release" } else { "" };
        let assumed = match self.assumed(&config).len() {
            0 => String::new(),
            count => format!(", {count} assumed"),
        };
        let android = match name.ends_with("-gki") {
            true => ", clamps in use (20 buckets, RT not boosted), a rate limit of 500 us",
            false => "",
        };
        let description = format!(
            "Linux {name}{last}: {class}{energy}, {cpufreq}, {cpuidle}{android} (composed{assumed})"
        );
        write(&self.name, &description, &config)
    }
}

/// The kernel nearest to a release that has no name, and in which settings its two neighbours differ; `None`: the name is no
/// release's.
pub(super) fn nearest(name: &str) -> Option<String> {
    let rest = name.strip_prefix("linux-")?;
    let wanted = Release::parse(rest).filter(|release| release.is_plausible())?;
    let files = BUILTIN.iter().filter_map(|(name, _)| name.strip_prefix("linux-"));
    let known = files.chain(COMPOSED.iter().map(|row| row.name));
    let known: Vec<(Release, &str)> =
        known.filter_map(|name| Some((Release::parse(name)?, name))).collect();
    let before = known.iter().filter(|(release, _)| *release < wanted).max();
    let after = known.iter().filter(|(release, _)| *release > wanted).min();
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (Some((_, only)), None) => {
            return Some(format!("did you mean `linux-{only}`? it is the newest release here"));
        }
        (None, Some((_, only))) => {
            return Some(format!("did you mean `linux-{only}`? it is the oldest release here"));
        }
        (None, None) => return None,
    };
    // A series counts as nearer if it has the same first number: 6.20 is nearer to 6.19 than to 7.0.
    let major = |name: &str| name.split('.').next().map(str::to_string);
    let distance = |(release, known): &(Release, &str)| {
        let other = if major(known) == major(rest) { 0 } else { 2 };
        release.series().abs_diff(wanted.series()) + other
    };
    let near = if distance(after) < distance(before) { after } else { before };
    let [before, after] = [before, after].map(|(_, name)| format!("linux-{name}"));
    let differ = differing(&before, &after);
    Some(format!("did you mean `linux-{}`? its neighbours {before} and {after} {differ}", near.1))
}

/// In which settings two kernels differ, the first ones with both values.
fn differing(before: &str, after: &str) -> String {
    const NAMED: usize = 4;
    let load = |name| KernelFile::load(name).expect("built-in kernels are read by a test");
    let (old, new) = (load(before), load(after));
    let mixture = super::mixture::Mixture::new(&old, &new);
    let count = mixture.differing.len();
    let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_string());
    let named = mixture.differing.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|setting| {
            format!("{} ({}, then {})", setting.path, word(&setting.good), word(&setting.bad))
        })
        .collect();
    let all = match count > NAMED {
        true => format!(", … (`schedtwin show kernel {before} {after}` shows all)"),
        false => String::new(),
    };
    format!("differ in {count} settings: {}{all}", named.join(", "))
}

#[cfg(test)]
mod tests;
