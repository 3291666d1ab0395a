// SPDX-License-Identifier: GPL-2.0-or-later
//! The metrics of many runs as one table: a row per metric, a column per kernel, a sample per seed.
//!
//! Kernels need not measure the same things (a patch may keep a task away from a cluster, so that
//! its latency there has no row). A row exists as soon as one run had it; where a run lacks it the
//! sample is undefined. Rows keep the order in which the runs list them, and rows of the same metric
//! name stay together.

use std::collections::BTreeMap;

use crate::select::Key;

pub use schedtwin_types::metric::Labels;
use schedtwin_types::metric::{Better, Kind, Metric};

/// One metric over all kernels and seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The metric's name, e.g. `wakeup_latency`.
    pub name: &'static str,
    /// `mean`, `p99`, `sum`, ...
    pub stat: &'static str,
    /// The unit of the samples.
    pub unit: &'static str,
    /// The labels that the metric is restricted to.
    pub labels: Labels,
    /// Whether it is of one thing, or sums up many.
    pub kind: Kind,
    /// Which direction is better.
    pub better: Better,
    /// By kernel, then by seed.
    pub samples: Vec<Vec<Option<f64>>>,
}

impl Row {
    /// The row of a metric, without samples.
    #[cfg(test)]
    pub(crate) fn of(metric: &Metric) -> Row {
        let Metric { name, unit, stat, better, kind, .. } = *metric;
        Row { name, stat, unit, labels: metric.labels.clone(), kind, better, samples: Vec::new() }
    }

    /// Returns the key that names the row.
    pub fn key(&self) -> Key<'_> {
        (self.name, self.stat, &self.labels, self.kind)
    }

    /// Whether it is of the whole machine and workload.
    pub fn is_whole(&self) -> bool {
        self.labels.is_empty() && self.kind == Kind::One
    }

    /// Whether no kernel has a defined sample.
    pub fn is_undefined(&self) -> bool {
        self.samples.iter().flatten().all(Option::is_none)
    }

    /// Whether every defined sample is zero.
    pub fn is_zero(&self) -> bool {
        self.samples.iter().flatten().all(|x| x.is_none_or(|x| x == 0.0))
    }

    /// `name stat key=value ...`, as reports print it.
    pub fn title(&self) -> String {
        title(self.key())
    }
}

/// `name stat key=value ...`, of a row that sums up parts with `(mean of 160 domains)` at the end.
pub fn title((name, stat, labels, kind): Key) -> String {
    let mut title = format!("{name} {stat}");
    for (key, value) in labels {
        title.push_str(&format!(" {key}={value}"));
    }
    if kind != Kind::One {
        title.push_str(&format!(" ({kind})"));
    }
    title
}

/// A table that grows run by run.
#[derive(Clone, Debug)]
pub struct Measured {
    kernels: usize,
    rows: Vec<Row>,
    by_key: BTreeMap<(&'static str, &'static str, Labels, Kind), usize>,
}

impl Measured {
    /// An empty table for that many kernels.
    pub fn new(kernels: usize) -> Measured {
        Measured { kernels, rows: Vec::new(), by_key: BTreeMap::new() }
    }

    /// Adds what `kernel` measured with seed number `at` (from 0). A metric that occurs twice in one
    /// run is a bug of the meter.
    pub fn add(&mut self, kernel: usize, at: usize, metrics: Vec<Metric>) {
        for metric in metrics {
            let Metric { name, unit, stat, labels, kind, value, better, .. } = metric;
            let key = (name, stat, labels, kind);
            let index = match self.by_key.get(&key) {
                Some(index) => *index,
                None => {
                    let labels = key.2.clone();
                    let samples = vec![Vec::new(); self.kernels];
                    self.rows.push(Row { name, stat, unit, labels, kind, better, samples });
                    self.by_key.insert(key, self.rows.len() - 1);
                    self.rows.len() - 1
                }
            };
            let samples = &mut self.rows[index].samples[kernel];
            assert!(samples.len() <= at, "{name} {stat} occurs twice in one run");
            samples.resize(at, None);
            samples.push(value.filter(|v| v.is_finite()));
        }
    }

    /// The table so far, with `seeds` samples in every cell.
    pub fn rows(&self, seeds: usize) -> Vec<Row> {
        let mut first_of_name = BTreeMap::new();
        for (index, row) in self.rows.iter().enumerate() {
            first_of_name.entry(row.name).or_insert(index);
        }
        let mut rows = self.rows.clone();
        for row in &mut rows {
            for samples in &mut row.samples {
                samples.resize(seeds, None);
            }
        }
        rows.sort_by_key(|row| first_of_name[row.name]);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, task: &str, value: Option<f64>) -> Metric {
        let labels = if task.is_empty() { vec![] } else { vec![("task", task.to_string())] };
        schedtwin_types::metric::declared(name).unwrap().value("mean", labels, value)
    }

    #[test]
    fn rows_of_a_name_stay_together_and_gaps_are_undefined() {
        let mut measured = Measured::new(2);
        measured.add(
            0,
            0,
            vec![metric("slack", "ui", Some(1.0)), metric("power", "", Some(f64::NAN))],
        );
        measured.add(1, 0, vec![metric("slack", "ui", Some(2.0)), metric("power", "", Some(3.0))]);
        measured.add(0, 1, vec![metric("power", "", Some(4.0))]);
        measured.add(1, 1, vec![metric("slack", "bg", Some(5.0)), metric("power", "", Some(6.0))]);
        let seen: Vec<String> = measured
            .rows(2)
            .iter()
            .map(|row| format!("{}: {:?}", row.title(), row.samples))
            .collect();
        assert_eq!(
            seen,
            [
                "slack mean task=ui: [[Some(1.0), None], [Some(2.0), None]]",
                "slack mean task=bg: [[None, None], [None, Some(5.0)]]",
                "power mean: [[None, Some(4.0)], [Some(3.0), Some(6.0)]]",
            ]
        );
    }

    #[test]
    #[should_panic(expected = "occurs twice")]
    fn a_metric_twice_in_one_run_is_a_bug() {
        Measured::new(1).add(0, 0, vec![metric("power", "", None), metric("power", "", None)]);
    }
}
