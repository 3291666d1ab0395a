//! A sweep to look at: a row for each setting, a column for each metric, and who is on the front.

use schedtwin_input::Diagnostics;
use schedtwin_types::metric::{Better, Labels, declared};

use super::cells::{number, plain_table};
use crate::select::Key;
use crate::selector::Selector;
use crate::stats::{self, Estimate};
use crate::sweep::part::Run;
use crate::sweep::{Setting, Sweep};

/// A metric's column with the seeds' mean of each setting.
pub(super) struct Measured {
    pub title: String,
    pub better: Better,
    pub means: Vec<Option<Estimate>>,
}

impl Measured {
    /// A setting's mean, turned so that less is better. Of a metric without a better direction less is better.
    pub fn cost(&self, at: usize) -> Option<f64> {
        let mean = self.means[at].as_ref()?.mean;
        Some(if self.better == Better::Higher { -mean } else { mean })
    }
}

/// What the table and the page of a sweep show.
pub(super) struct Shown {
    /// What names each setting, the names of the columns first.
    pub names: Vec<Vec<String>>,
    /// A column a metric.
    pub measured: Vec<Measured>,
    /// The two metrics of the front.
    pub axes: Option<[Measured; 2]>,
    /// Whether a setting is on the front; empty without one.
    pub on_front: Vec<bool>,
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
        let columns = titles(runs);
        let keys: Vec<Key> =
            columns.iter().map(|(_, name, stat, labels)| (*name, *stat, labels)).collect();
        let mut picked: Vec<usize> = Vec::new();
        for selector in shown {
            picked.extend(selector.pick_totals(&keys)?);
        }
        let mut on_front = Vec::new();
        for selector in front {
            on_front.extend(selector.pick_totals(&keys)?.first().copied());
        }
        if picked.is_empty() {
            let usual = |(name, stat, labels): &Key| {
                let primary = declared(name).is_some_and(|metric| metric.primary);
                let total = matches!(*stat, "mean" | "sum" | "gmean");
                labels.is_empty()
                    && (primary && total || (*name, *stat) == ("wakeup_latency", "p99"))
            };
            picked.extend(on_front.iter().copied());
            picked.extend((0..keys.len()).filter(|at| usual(&keys[*at])));
        }
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
        Ok(Shown {
            names: names(swept),
            measured: picked.into_iter().map(of).collect(),
            on_front: axes.as_ref().map_or(Vec::new(), pareto),
            axes,
        })
    }
}

/// How many settings with how many seeds.
pub(super) fn size(swept: &Sweep) -> String {
    let seeds = if swept.seeds == 1 { "1 seed".into() } else { format!("{} seeds", swept.seeds) };
    format!("{} settings, {seeds} each", swept.settings.len())
}

/// The table. `shown`: its metrics, or without any power, energy and what the workload is judged by. `front`: whether settings that no other beats
/// in both of the first two metrics have a mark.
pub fn sweep(
    swept: &Sweep,
    runs: &[Run],
    shown: &[Selector],
    front: &[Selector],
) -> Result<String, Diagnostics> {
    let Shown { names, measured, on_front, .. } = Shown::new(swept, runs, shown, front)?;
    let left = names[0].len();
    let mut rows = names;
    rows[0].extend(measured.iter().map(|metric| metric.title.clone()));
    for (at, row) in rows[1..].iter_mut().enumerate() {
        let mean = |metric: &Measured| metric.means[at].as_ref().map(|estimate| estimate.mean);
        row.extend(measured.iter().map(|metric| mean(metric).map_or("-".into(), number)));
    }
    if !on_front.is_empty() {
        rows[0].push("front".into());
        for (row, best) in rows[1..].iter_mut().zip(&on_front) {
            row.push(if *best { "*".into() } else { String::new() });
        }
    }
    let mut text = format!("{}: means\n\n", size(swept));
    text.push_str(&plain_table(rows, left, &[]));
    if !on_front.is_empty() {
        text.push_str(&format!("\n*: {FRONT}\n"));
    }
    Ok(text)
}

/// What it means to be on the front.
pub(super) const FRONT: &str =
    "no other setting is better in one of the two metrics and at least as good in the other";

/// What names each setting, the names of the columns first: keys that vary, and whole names where they do not tell settings apart.
fn names(sweep: &Sweep) -> Vec<Vec<String>> {
    type Part = (&'static str, fn(&Setting) -> &str);
    let parts: [Part; 3] = [
        ("machine", |setting| &setting.machine),
        ("kernel", |setting| &setting.kernel),
        ("workload", |setting| &setting.workload),
    ];
    let first = &sweep.settings[0];
    let told = |part: &str| sweep.varies.iter().any(|key| key.starts_with(&format!("{part}.")));
    let varies = |(part, of): &&Part| {
        !told(part) && sweep.settings.iter().any(|setting| of(setting) != of(first))
    };
    let parts: Vec<&Part> = parts.iter().filter(varies).collect();
    let head = parts.iter().map(|(part, _)| part.to_string()).chain(sweep.varies.iter().cloned());
    let row = |setting: &Setting| {
        let own = parts.iter().map(|(_, of)| of(setting).to_string());
        own.chain(setting.values.iter().cloned()).collect()
    };
    std::iter::once(head.collect()).chain(sweep.settings.iter().map(row)).collect()
}

/// Every metric that a run has: its column, name, stat and labels.
fn titles(runs: &[Run]) -> Vec<(String, &'static str, &'static str, Labels)> {
    let mut all: Vec<&str> = Vec::new();
    for (column, _) in runs.iter().flat_map(|run| &run.fields) {
        if let Err(at) = all.binary_search(&column.as_str()) {
            all.insert(at, column);
        }
    }
    all.into_iter().filter_map(parse).collect()
}

/// A column's metric: the converse of [`part::title`].
fn parse(title: &str) -> Option<(String, &'static str, &'static str, Labels)> {
    let (name, rest) = title.split_once('.')?;
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
    Some((title.to_string(), metric.name, stat, told))
}

fn column(sweep: &Sweep, runs: &[Run], title: &str) -> Measured {
    let mut samples: Vec<Vec<Option<f64>>> = vec![Vec::new(); sweep.settings.len()];
    for run in runs {
        let field = run.fields.iter().find(|(column, _)| column == title);
        let value = field.and_then(|(_, text)| text.parse().ok());
        samples[(run.number / sweep.seeds) as usize].push(value);
    }
    let name = title.split('.').next().unwrap_or_default();
    let metric = declared(name);
    let unit = metric.map_or("", |metric| metric.unit);
    Measured {
        title: format!("{title} [{unit}]"),
        better: metric.map_or(Better::Neutral, |metric| metric.better),
        means: samples.iter().map(|samples| stats::estimate(samples)).collect(),
    }
}

/// Which settings no other beats: at least as good in both, better in one.
fn pareto([x, y]: &[Measured; 2]) -> Vec<bool> {
    let point = |at: usize| Some((x.cost(at)?, y.cost(at)?));
    let points: Vec<Option<(f64, f64)>> = (0..x.means.len()).map(point).collect();
    let beats = |a: &(f64, f64), b: &(f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
    let on_front = |point: &Option<(f64, f64)>| {
        point.is_some_and(|one| !points.iter().flatten().any(|other| beats(other, &one)))
    };
    points.iter().map(on_front).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::part;

    #[test]
    fn a_column_is_its_metric_again() {
        for (labels, title) in [
            (vec![], "power.mean"),
            (vec![("domain", "big".to_string())], "power.mean{domain=big}"),
        ] {
            assert_eq!(part::title(("power", "mean", &labels)), title);
            assert_eq!(parse(title), Some((title.to_string(), "power", "mean", labels)));
        }
        let odd = "wu_lat.p99{task=a,b}";
        assert_eq!(parse(odd).unwrap().3, [("task", "a,b".to_string())]);
        assert!(
            ["digest", "kernel.hz", "power.p00", "power.mean{x}"]
                .map(parse)
                .iter()
                .all(Option::is_none)
        );
    }

    #[test]
    fn the_front() {
        let measured = |better, values: &[Option<f64>]| Measured {
            title: String::new(),
            better,
            means: values.iter().map(|value| stats::estimate(&[*value])).collect(),
        };
        let power = [Some(1.0), Some(2.0), Some(3.0), Some(3.0), None];
        let score = [Some(10.0), Some(9.0), Some(12.0), Some(12.0), Some(99.0)];
        let front = pareto(&[measured(Better::Lower, &power), measured(Better::Higher, &score)]);
        assert_eq!(front, [true, false, true, true, false]);
    }
}
