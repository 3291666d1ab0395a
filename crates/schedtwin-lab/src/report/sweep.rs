// SPDX-License-Identifier: GPL-2.0-or-later
//! A sweep to look at: a row for each setting, a column for each metric, and who is on the front.

use std::collections::{BTreeMap, BTreeSet};

use schedtwin_input::Diagnostics;
use schedtwin_types::metric::{Better, Kind, Labels, declared};
use schedtwin_types::property::Property;

use super::cells::{number, plain_table, wrap};
use crate::select::Key;
use crate::selector::Selector;
use crate::stats::{self, Estimate};
use crate::sweep::run::{Run, distinct_columns};
use crate::sweep::{Setting, Sweep};

/// A metric's column with the seeds' mean of each setting.
pub(super) struct Measured {
    pub name: String,
    pub unit: &'static str,
    pub better: Better,
    pub means: Vec<Option<Estimate>>,
}

impl Measured {
    /// `power.mean [mW]`.
    pub fn title(&self) -> String {
        if self.unit.is_empty() {
            self.name.clone()
        } else {
            format!("{} [{}]", self.name, self.unit)
        }
    }

    /// A setting's mean, turned so that less is better. Of a metric without a better direction less is better.
    pub fn cost(&self, at: usize) -> Option<f64> {
        let mean = self.means[at].as_ref()?.mean;
        Some(if self.better == Better::Higher { -mean } else { mean })
    }
}

/// The content of the table and the page of a sweep.
pub(super) struct Shown {
    /// The names of each setting, the names of the columns first.
    pub names: Vec<Vec<String>>,
    /// A column a metric.
    pub measured: Vec<Measured>,
    /// The two metrics of the front.
    pub axes: Option<[Measured; 2]>,
    /// Whether a setting is on the front; empty without one.
    pub on_front: Vec<bool>,
    /// Whether a setting that is not on the front may be: no rival is better in both for certain. Empty without a front.
    pub perhaps: Vec<bool>,
    /// Settings that are kept off the front, in order.
    pub kept_off: Vec<KeptOff>,
    /// How many runs each setting has; fewer than others where a race left it behind.
    pub seeds: Vec<u64>,
    /// Settings of equal numbers are held against each other: those of one machine (whatever is changed of it) under one workload.
    pub rivals: Vec<usize>,
}

impl Shown {
    /// `shown`: the metrics, or without any power, energy and what the workload is judged by. `front`: the two metrics of the front, or
    /// none.
    pub fn new(
        swept: &Sweep,
        runs: &[Run],
        shown: &[Selector],
        front: &[Selector],
    ) -> Result<Shown, Diagnostics> {
        let columns = titles(runs.iter());
        let keys = keys(&columns);
        let mut picked: Vec<usize> = Vec::new();
        for selector in shown {
            picked.extend(selector.pick_totals(&keys)?);
        }
        let mut on_front = Vec::new();
        for selector in front {
            on_front.extend(selector.pick_totals(&keys)?.first().copied());
        }
        if picked.is_empty() {
            let usual = |(name, stat, labels, kind): &Key| {
                let primary = declared(name).is_some_and(|metric| metric.primary);
                let total = matches!(*stat, "mean" | "sum" | "gmean");
                labels.is_empty()
                    && *kind == Kind::One
                    && (primary && total || (*name, *stat) == ("wakeup_latency", "p99"))
            };
            picked.extend((0..keys.len()).filter(|at| usual(&keys[*at])));
        }
        picked.splice(0..0, on_front.iter().copied());
        let mut seen = Vec::new();
        picked.retain(|at| {
            !seen.contains(at) && {
                seen.push(*at);
                true
            }
        });
        let of = |at: usize| column(swept, runs, &columns[at].0);
        let axes = match on_front.as_slice() {
            [x, y, ..] => Some([of(*x), of(*y)]),
            _ => None,
        };
        let rivals = swept.rivals();
        let seeds = seeds(swept, runs);
        let kept_off = match axes {
            Some(_) => breakers(swept, runs, &keys, &columns, &rivals),
            None => Vec::new(),
        };
        let mut broken = vec![false; swept.settings.len()];
        kept_off.iter().for_each(|of| broken[of.setting] = true);
        let on_front =
            axes.as_ref().map_or(Vec::new(), |axes| pareto(axes, &rivals, &seeds, &broken));
        let perhaps = match axes {
            None => Vec::new(),
            Some(_) => {
                // A setting without a run is no rival.
                let kept = (0..swept.settings.len()).filter(|at| seeds[*at] > 0 && !broken[*at]);
                let kept: BTreeSet<usize> = kept.collect();
                let beaten = swept.surely_beaten(runs.iter(), front, &kept)?;
                let may = |at: usize| kept.contains(&at) && !beaten.contains(&at);
                (0..swept.settings.len()).map(|at| !on_front[at] && may(at)).collect()
            }
        };
        Ok(Shown {
            names: names(swept),
            measured: picked.into_iter().map(of).collect(),
            on_front,
            perhaps,
            kept_off,
            seeds,
            axes,
            rivals,
        })
    }
}

/// The columns of the metrics that the selectors mean, of a sweep's runs.
pub fn columns(runs: &[Run], selectors: &[Selector]) -> Result<BTreeSet<String>, Diagnostics> {
    let titles = titles(runs.iter());
    let keys = keys(&titles);
    let mut faults = Diagnostics::new();
    let picked: Vec<usize> =
        selectors.iter().filter_map(|s| faults.absorb(s.pick(&keys))).flatten().collect();
    faults.into_result(picked.into_iter().map(|at| titles[at].0.clone()).collect())
}

/// The settings of a sweep by two metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// The two metrics as columns: `power.mean`.
    pub titles: [String; 2],
    /// Their units.
    pub units: [&'static str; 2],
    /// Every setting that has both, in order.
    pub points: Vec<Point>,
}

/// A setting by two metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The number of the setting.
    pub setting: usize,
    /// The seeds' means with their intervals.
    pub estimates: [Estimate; 2],
    /// No other setting of the same machine and workload is better in one and at least as good in the other.
    pub on_front: bool,
    /// Properties for which it is kept off the front: it breaks them, and another setting of the same machine and workload
    /// keeps them.
    pub breaks: Vec<Property>,
}

/// Every setting by the two metrics of `front`.
pub fn points(swept: &Sweep, runs: &[Run], front: &[Selector; 2]) -> Result<Points, Diagnostics> {
    let Shown { axes, on_front, kept_off, .. } = Shown::new(swept, runs, &[], front)?;
    let [x, y] = axes.expect("two metrics were asked for");
    let point = |setting: usize| {
        let estimates = [x.means[setting]?, y.means[setting]?];
        let own = kept_off.iter().filter(|of| of.setting == setting);
        let breaks = own.map(|of| of.property).collect();
        Some(Point { setting, estimates, on_front: on_front[setting], breaks })
    };
    let points = (0..swept.settings.len()).filter_map(point).collect();
    Ok(Points { titles: [x.name.clone(), y.name.clone()], units: [x.unit, y.unit], points })
}

/// How many settings with how many seeds.
pub(super) fn size(seeds: &[u64]) -> String {
    let least = seeds.iter().min().copied().unwrap_or_default();
    let most = seeds.iter().max().copied().unwrap_or_default();
    let each = match (least, most) {
        (1, 1) => "1 seed each".to_string(),
        _ if least == most => format!("{most} seeds each"),
        _ => format!("{least} to {most} seeds each, {} runs", seeds.iter().sum::<u64>()),
    };
    format!("{} settings, {each}", seeds.len())
}

/// How many runs each setting has.
fn seeds(swept: &Sweep, runs: &[Run]) -> Vec<u64> {
    let mut seeds = vec![0; swept.settings.len()];
    runs.iter().for_each(|run| seeds[(run.number / swept.seeds) as usize] += 1);
    seeds
}

/// The columns of the two metrics of a front, and which direction of each is better.
pub fn axes<'r>(
    runs: impl Iterator<Item = &'r Run>,
    front: &[Selector],
) -> Result<[(String, Better); 2], Diagnostics> {
    let titles = titles(runs);
    let keys = keys(&titles);
    let mut faults = Diagnostics::new();
    let picked = front.iter().filter_map(|selector| faults.absorb(selector.pick_totals(&keys)));
    let firsts: Vec<usize> = picked.filter_map(|rows| rows.first().copied()).collect();
    let axis = |at: usize| {
        let (title, name, ..) = &titles[at];
        (title.clone(), declared(name).map_or(Better::Neutral, |metric| metric.better))
    };
    let both = firsts[..].try_into().ok().map(|both: [usize; 2]| both.map(axis));
    faults.into_result(both).map(|both| both.expect("a front has two metrics, each with a row"))
}

/// The table. `shown`: its metrics, or without any power, energy and what the workload is judged by. `front`: whether settings that no other beats
/// in both of the first two metrics have a mark.
pub fn sweep(
    swept: &Sweep,
    runs: &[Run],
    shown: &[Selector],
    front: &[Selector],
) -> Result<String, Diagnostics> {
    let Shown { mut names, measured, on_front, perhaps, kept_off, seeds, .. } =
        Shown::new(swept, runs, shown, front)?;
    let kept_off_text = kept_off_lines(&kept_off, &names);
    let marks = marks(&on_front, &perhaps, &kept_off);
    let raced = seeds.iter().any(|count| *count != seeds[0]);
    if raced {
        let counts = seeds.iter().map(u64::to_string);
        let column = std::iter::once("seeds".to_string()).chain(counts);
        names.iter_mut().zip(column).for_each(|(row, count)| row.push(count));
    }
    let with_intervals = if on_front.is_empty() { 0 } else { 2 };
    let of = |(at, metric): (usize, &Measured)| cells(metric, at < with_intervals);
    let cells: Vec<Vec<String>> = measured.iter().enumerate().map(of).collect();
    let mut text = format!("{}: means\n", size(&seeds));
    // As many metrics beside each other as fit, the settings again beside the next.
    let mut at = 0;
    while at < cells.len() || at == 0 {
        let mut count = cells.len() - at;
        // Who is on the front stands beside its metrics, which come first.
        let front: &[&str] = if at == 0 { &marks } else { &[] };
        let mut block = table(&names, &cells[at..], front);
        while count > 1 && block.lines().any(|line| line.chars().count() > WIDTH) {
            count -= 1;
            block = table(&names, &cells[at..at + count], front);
        }
        text.push_str(&format!("\n{block}"));
        at += count.max(1);
    }
    if !on_front.is_empty() {
        text.push('\n');
        let behind = if raced { BEHIND } else { "" };
        text.push_str(&wrap(&format!("*: {FRONT}{behind}"), WIDTH, "  "));
        if perhaps.contains(&true) {
            text.push_str(&wrap(&format!("?: {PERHAPS}"), WIDTH, "  "));
        }
        if seeds.iter().any(|count| *count > 1) {
            text.push_str("+-: half the width of the mean's 95% interval over the seeds\n");
        }
    }
    if let Some((all, each)) = kept_off_text.split_first() {
        text.push_str(&wrap(all, WIDTH, "  "));
        each.iter().for_each(|line| text.push_str(&wrap(line, WIDTH, "  ")));
    }
    Ok(text)
}

/// The cell of each setting in the column of the front; empty without a front.
fn marks(on_front: &[bool], perhaps: &[bool], kept_off: &[KeptOff]) -> Vec<&'static str> {
    let mark = |(on, perhaps): (&bool, &bool)| match (on, perhaps) {
        (true, _) => "*",
        (false, true) => "?",
        (false, false) => "",
    };
    let mut marks: Vec<&str> = on_front.iter().zip(perhaps).map(mark).collect();
    kept_off.iter().for_each(|of| marks[of.setting] = "broken");
    marks
}

/// The number of settings that are kept off the front, and why each of them is; nothing where none is. `names` has the names of the
/// columns first.
pub(super) fn kept_off_lines(kept_off: &[KeptOff], names: &[Vec<String>]) -> Vec<String> {
    let settings: Vec<&[KeptOff]> = kept_off.chunk_by(|a, b| a.setting == b.setting).collect();
    if settings.is_empty() {
        return Vec::new();
    }
    let (count, all) = (settings.len(), names.len() - 1);
    let mut lines = vec![format!(
        "broken: {count} of {all} settings broke a property that another one of the same machine and workload kept"
    )];
    lines.extend(settings.iter().map(|broken| {
        let why: Vec<String> = broken.iter().map(KeptOff::text).collect();
        format!("{}: {}", names[broken[0].setting + 1].join(", "), why.join("; "))
    }));
    lines
}

/// The widest that a table is, unless one metric alone is wider.
const WIDTH: usize = 80;

/// A metric's column: its name, its unit, the settings' means, with half the width of their intervals if asked for.
fn cells(metric: &Measured, with_interval: bool) -> Vec<String> {
    let mean = |mean: &Option<Estimate>| {
        let Some(estimate) = mean else { return "-".to_string() };
        match estimate.ci95.filter(|_| with_interval) {
            Some([low, high]) => {
                format!("{} +-{}", number(estimate.mean), two_digits((high - low) / 2.0))
            }
            None => number(estimate.mean),
        }
    };
    let head = [metric.name.clone(), metric.unit.to_string()].into_iter();
    head.chain(metric.means.iter().map(mean)).collect()
}

/// A width, which nobody reads to more than two digits: `160`, `0.13`.
fn two_digits(width: f64) -> String {
    let digits_before = if width > 0.0 { width.log10().floor() } else { 0.0 };
    let step = 10_f64.powf(digits_before - 1.0);
    let decimals = (1.0 - digits_before).max(0.0) as usize;
    format!("{:.decimals$}", (width / step).round() * step)
}

/// The settings with some of the metrics.
fn table(names: &[Vec<String>], metrics: &[Vec<String>], marks: &[&str]) -> String {
    let left = names[0].len();
    let mut rows = names.to_vec();
    rows.insert(1, vec![String::new(); left]);
    for (at, row) in rows.iter_mut().enumerate() {
        row.extend(metrics.iter().map(|cells| cells[at].clone()));
        match at.checked_sub(2).and_then(|setting| marks.get(setting)) {
            Some(mark) => row.push(mark.to_string()),
            None if at == 0 && !marks.is_empty() => row.push("front".into()),
            None => {}
        }
    }
    plain_table(rows, left, &[])
}

/// The rule by which a setting is on the front.
pub(super) const FRONT: &str = "no other setting of the same machine and workload is better in one of the two metrics and at least as \
     good in the other; a setting that breaks a property which another keeps is never on it";

/// The legend of settings that are not on the front, and may be.
pub(super) const PERHAPS: &str =
    "may be on it: by these seeds no rival is for certain (99.9 %) better in both; take more (-n)";

/// What is said of a race beside it.
pub(super) const BEHIND: &str = "; a setting with fewer seeds than others is for certain worse than a rival in both, and was left behind";

/// Returns the names of each setting, the names of the columns first: whole names where the keys
/// that vary do not tell settings apart, and these keys.
fn names(sweep: &Sweep) -> Vec<Vec<String>> {
    type Part = (&'static str, fn(&Setting) -> &str);
    let parts: [Part; 3] = [
        ("machine", |setting| &setting.machine),
        ("kernel", |setting| &setting.kernel),
        ("workload", |setting| &setting.workload),
    ];
    // The values of a part's keys, where they tell its choices apart, say all that its whole name says.
    let values_of = |setting: &Setting, part: &str| -> Vec<String> {
        let keys = sweep.varies.iter().zip(&setting.values);
        let own = keys.filter(|(key, _)| key.starts_with(&format!("{part}.")));
        own.map(|(_, value)| value.clone()).collect()
    };
    let varies = |(part, of): &&Part| {
        let mut named: BTreeMap<Vec<String>, &str> = BTreeMap::new();
        sweep.settings.iter().any(|setting| {
            let name = of(setting);
            *named.entry(values_of(setting, part)).or_insert(name) != name
        })
    };
    let parts: Vec<&Part> = parts.iter().filter(varies).collect();
    let head = parts.iter().map(|(part, _)| part.to_string()).chain(sweep.varies.iter().cloned());
    let row = |setting: &Setting| {
        let own = parts.iter().map(|(_, of)| of(setting).to_string());
        own.chain(setting.values.iter().cloned()).collect()
    };
    std::iter::once(head.collect()).chain(sweep.settings.iter().map(row)).collect()
}

/// A metric of a run: its column, name, stat, labels and kind.
type Title = (String, &'static str, &'static str, Labels, Kind);

/// Every metric that a run has.
fn titles<'r>(runs: impl Iterator<Item = &'r Run>) -> Vec<Title> {
    let mut all: Vec<&str> = Vec::new();
    for column in distinct_columns(runs).into_iter().flatten() {
        if let Err(at) = all.binary_search(&column.as_str()) {
            all.insert(at, column);
        }
    }
    all.into_iter().filter_map(parse).collect()
}

/// What selectors look at.
fn keys(titles: &[Title]) -> Vec<Key<'_>> {
    titles.iter().map(|(_, name, stat, labels, kind)| (*name, *stat, labels, *kind)).collect()
}

/// A column's metric: the converse of [`part::title`].
fn parse(title: &str) -> Option<Title> {
    let (named, kind) = match title.strip_suffix(']').and_then(|title| title.rsplit_once('[')) {
        Some((named, kind)) => (named, Kind::parse(kind)?),
        None => (title, Kind::One),
    };
    let (name, rest) = named.split_once('.')?;
    let metric = declared(name)?;
    let (stat, labels) =
        rest.split_once('{').map_or((rest, ""), |(s, l)| (s, l.trim_end_matches('}')));
    let stat = metric.stats.iter().find(|known| **known == stat)?;
    let keys = metric.labels.iter().copied().flatten();
    let mut told: Labels = Vec::new();
    for piece in labels.split(',').filter(|piece| !piece.is_empty()) {
        let pair = piece.split_once('=');
        let known =
            pair.and_then(|(key, value)| Some((*keys.clone().find(|k| **k == key)?, value)));
        match (known, told.last_mut()) {
            (Some((key, value)), _) => told.push((key, value.to_string())),
            // A name with a comma.
            (None, Some((_, value))) => value.push_str(&format!(",{piece}")),
            (None, None) => return None,
        }
    }
    Some((title.to_string(), metric.name, stat, told, kind))
}

fn column(sweep: &Sweep, runs: &[Run], title: &str) -> Measured {
    let mut samples: Vec<Vec<Option<f64>>> = vec![Vec::new(); sweep.settings.len()];
    for run in runs {
        samples[(run.number / sweep.seeds) as usize].push(run.value(title));
    }
    let name = title.split('.').next().unwrap_or_default();
    let metric = declared(name);
    let unit = metric.map_or("", |metric| metric.unit);
    Measured {
        name: title.to_string(),
        unit,
        better: metric.map_or(Better::Neutral, |metric| metric.better),
        means: samples.iter().map(|samples| stats::estimate(samples)).collect(),
    }
}

/// A setting that is kept off the front: it breaks a property that a rival keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KeptOff {
    /// The number of the setting.
    pub setting: usize,
    /// The property.
    pub property: Property,
    /// Number of its runs in which the property is broken.
    pub broken: usize,
    /// Number of its runs.
    pub runs: usize,
    /// The least seed with which it is broken.
    pub first_seed: u64,
}

impl KeptOff {
    /// `starvation in 3 of 4 runs, first with seed 2`.
    fn text(&self) -> String {
        let KeptOff { property, broken, runs, first_seed, .. } = self;
        format!("{property} in {broken} of {runs} runs, first with seed {first_seed}")
    }
}

/// The settings that break a property which a rival keeps, in order: no trade-off makes up for that.
fn breakers(
    swept: &Sweep,
    runs: &[Run],
    keys: &[Key],
    columns: &[Title],
    rivals: &[usize],
) -> Vec<KeptOff> {
    let mut kept_off = Vec::new();
    for &property in Property::ALL {
        let whole = |(name, _, labels, kind): &Key| {
            *name == property.metric().name && labels.is_empty() && *kind == Kind::One
        };
        let Some(at) = keys.iter().position(whole) else { continue };
        let mut counted: Vec<Option<KeptOff>> = vec![None; rivals.len()];
        for run in runs {
            let Some(breaches) = run.value(&columns[at].0) else { continue };
            let setting = (run.number / swept.seeds) as usize;
            let none = KeptOff { setting, property, broken: 0, runs: 0, first_seed: u64::MAX };
            let of = counted[setting].get_or_insert(none);
            of.runs += 1;
            if breaches > 0.0 {
                of.broken += 1;
                of.first_seed = of.first_seed.min(swept.seed(run.number));
            }
        }
        let counted: Vec<KeptOff> = counted.into_iter().flatten().collect();
        let keeps = |of: &KeptOff| of.broken == 0;
        let has_better = |of: &&KeptOff| {
            !keeps(of)
                && counted.iter().any(|o| keeps(o) && rivals[o.setting] == rivals[of.setting])
        };
        kept_off.extend(counted.iter().filter(has_better).copied());
    }
    kept_off.sort_by_key(|of| of.setting);
    kept_off
}

/// Which settings no rival beats: at least as good in both, better in one. Those that a race left behind are none of them.
fn pareto([x, y]: &[Measured; 2], rivals: &[usize], seeds: &[u64], broken: &[bool]) -> Vec<bool> {
    let most = seeds.iter().max().copied().unwrap_or_default();
    let counts = |at: usize| seeds[at] == most && !broken[at];
    let point = |at: usize| Some((x.cost(at)?, y.cost(at)?)).filter(|_| counts(at));
    let points: Vec<Option<(f64, f64)>> = (0..x.means.len()).map(point).collect();
    let beats = |a: &(f64, f64), b: &(f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
    let on_front = |at: usize| {
        let others = points.iter().zip(rivals).filter(|(_, rival)| **rival == rivals[at]);
        let mut others = others.filter_map(|(point, _)| point.as_ref());
        points[at].is_some_and(|one| !others.any(|other| beats(other, &one)))
    };
    (0..points.len()).map(on_front).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::part;
    use schedtwin_types::metric::Parts;

    #[test]
    fn a_width_has_two_digits() {
        let told = [156.6, 78.93, 5425.0, 0.1304, 9.97, 0.0].map(two_digits);
        assert_eq!(told, ["160", "79", "5400", "0.13", "10.0", "0.0"]);
    }

    #[test]
    fn a_column_is_its_metric_again() {
        let lowest = Kind::Lowest(Parts { over: "domain", of: 20 });
        let big = || vec![("domain", "big".to_string())];
        for (labels, kind, title) in [
            (vec![], Kind::One, "power.mean"),
            (big(), Kind::One, "power.mean{domain=big}"),
            (vec![], lowest, "power.mean[lowest of 20 domains]"),
            (big(), lowest, "power.mean{domain=big}[lowest of 20 domains]"),
        ] {
            assert_eq!(part::title(("power", "mean", &labels, kind)), title);
            assert_eq!(parse(title), Some((title.to_string(), "power", "mean", labels, kind)));
        }
        let odd = "wu_lat.p99{task=a[1]}";
        assert_eq!(parse(odd).unwrap().3, [("task", "a[1]".to_string())]);
        let odd = "wu_lat.p99{task=a,b}";
        assert_eq!(parse(odd).unwrap().3, [("task", "a,b".to_string())]);
        assert!(
            ["digest", "kernel.hz", "power.p00", "power.mean{x}", "power.mean[x]"]
                .map(parse)
                .iter()
                .all(Option::is_none)
        );
    }

    #[test]
    fn what_is_kept_off_the_front_is_told() {
        let of = |setting, property, broken| KeptOff {
            setting,
            property,
            broken,
            runs: 4,
            first_seed: 7,
        };
        let names = [["kernel", "hz"], ["a", "100"], ["b", "250"], ["b", "1000"]];
        let names: Vec<Vec<String>> = names.map(|row| row.map(String::from).to_vec()).to_vec();
        let kept_off = [
            of(1, Property::Starvation, 3),
            of(1, Property::WorkConservation, 4),
            of(2, Property::Starvation, 1),
        ];
        assert_eq!(
            kept_off_lines(&kept_off, &names),
            [
                "broken: 2 of 3 settings broke a property that another one of the same machine and workload kept",
                "b, 250: starvation in 3 of 4 runs, first with seed 7; work-conservation in 4 of 4 runs, first with seed 7",
                "b, 1000: starvation in 1 of 4 runs, first with seed 7",
            ]
        );
        assert_eq!(
            marks(&[true, false, false], &[false, true, false], &kept_off),
            ["*", "broken", "broken"]
        );
        assert!(kept_off_lines(&[], &names).is_empty() && marks(&[], &[], &[]).is_empty());
    }

    #[test]
    fn the_front() {
        let measured = |better, values: &[Option<f64>]| Measured {
            name: String::new(),
            unit: "",
            better,
            means: values.iter().map(|value| stats::estimate(&[*value])).collect(),
        };
        let power = [Some(1.0), Some(2.0), Some(3.0), Some(3.0), None];
        let score = [Some(10.0), Some(9.0), Some(12.0), Some(12.0), Some(99.0)];
        let axes = [measured(Better::Lower, &power), measured(Better::Higher, &score)];
        let kept = [false; 5];
        assert_eq!(pareto(&axes, &[0; 5], &[3; 5], &kept), [true, false, true, true, false]);
        assert_eq!(
            pareto(&axes, &[0; 5], &[3, 3, 2, 3, 3], &kept),
            [true, false, false, true, false]
        );
        // Who has no rival is not beaten.
        let broken = [true, false, false, false, false];
        assert!(!pareto(&axes, &[0; 5], &[3; 5], &broken)[0], "it breaks a property");
        assert_eq!(
            pareto(&axes, &[0, 1, 0, 0, 1], &[3; 5], &kept),
            [true, true, true, true, false]
        );
    }
}
