// SPDX-License-Identifier: GPL-2.0-or-later
//! A run of a sweep as it is kept: what it was, and its metrics as numbers beside columns that runs share.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use schedtwin_types::metric::{Kind, Labels, Metric, declared};

use super::part;

/// Lists of columns that are looked through for one that is known; runs of a setting nearly always have the last one's.
const LOOKED_THROUGH: usize = 64;

/// Columns of metrics, in the order of their names: `power.mean{domain=big}`.
pub(super) type Columns = Arc<Vec<String>>;

/// A run as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its number in the sweep.
    pub number: u64,
    /// Machine, kernel, workload, keys that vary, seed and digest.
    own: Vec<(String, String)>,
    columns: Columns,
    /// One for each column.
    values: Vec<f64>,
}

impl Run {
    /// A run with what stands in its columns, in any order. A metric without a number has no column.
    pub fn new(number: u64, fields: impl IntoIterator<Item = (String, String)>) -> Run {
        let (mut own, mut measured) = (Vec::new(), Vec::new());
        for (column, text) in fields {
            match is_metric(&column) {
                true => measured.extend(text.parse::<f64>().ok().map(|value| (column, value))),
                false => own.push((column, text)),
            }
        }
        Run::measured(number, own, measured)
    }

    /// A run that was `own` and measured so much.
    pub(super) fn measured(
        number: u64,
        own: Vec<(String, String)>,
        mut measured: Vec<(String, f64)>,
    ) -> Run {
        measured.sort_by(|(one, _), (other, _)| one.cmp(other));
        let (columns, values) = measured.into_iter().unzip();
        Run { number, own, columns: Arc::new(columns), values }
    }

    /// A run that was `own` and measured so much.
    pub(super) fn of_metrics(
        number: u64,
        own: Vec<(String, String)>,
        metrics: &[Metric],
        known: &Mutex<KnownTitles>,
    ) -> Run {
        let finite = |metric: &Metric| metric.value.filter(|value| value.is_finite());
        let measured: Vec<&Metric> =
            metrics.iter().filter(|metric| finite(metric).is_some()).collect();
        let titles = known.lock().expect("nobody panics while it is held").of(&measured);
        let value = |at: &usize| finite(measured[*at]).expect("it was filtered");
        let values = titles.order.iter().map(value).collect();
        Run { number, own, columns: titles.columns.clone(), values }
    }

    /// Each column with its content: what the run was, then its metrics in the order of their names.
    pub fn fields(&self) -> impl Iterator<Item = (&str, String)> {
        let own = self.own.iter().map(|(column, text)| (column.as_str(), text.clone()));
        own.chain(self.metrics().map(|(column, value)| (column, value.to_string())))
    }

    /// Its metrics in the order of their names.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, f64)> {
        self.columns.iter().map(String::as_str).zip(self.values.iter().copied())
    }

    /// The columns of its metrics, in order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Content of a column that is no metric's; empty: nothing is known.
    pub fn was(&self, column: &str) -> &str {
        self.own.iter().find(|(own, _)| own == column).map_or("", |(_, text)| text)
    }

    /// The number in a metric's column; `None`: the run has none there.
    pub fn value(&self, title: &str) -> Option<f64> {
        let at = self.columns.binary_search_by(|column| column.as_str().cmp(title)).ok()?;
        Some(self.values[at])
    }

    /// Keeps the metrics of these columns, and what the run was.
    pub fn keep(&mut self, columns: &BTreeSet<String>) {
        let kept = self.metrics().filter(|(column, _)| columns.contains(*column));
        let (names, values) = kept.map(|(column, value)| (column.to_string(), value)).unzip();
        (self.columns, self.values) = (Arc::new(names), values);
    }
}

/// Whether a column is a metric's: those of runs have names of machines' and kernels' keys.
fn is_metric(column: &str) -> bool {
    column.split_once('.').is_some_and(|(name, _)| declared(name).is_some())
}

/// The metrics of a run as columns.
#[derive(Debug)]
struct Titles {
    /// The metrics, in the order of results.
    keys: Vec<(&'static str, &'static str, Labels, Kind)>,
    columns: Columns,
    /// Which metric is in each column.
    order: Vec<usize>,
}

/// Columns of results: the runs of a setting have the same metrics nearly always, and writing their names costs more than a short
/// run.
#[derive(Debug, Default)]
pub(super) struct KnownTitles(Vec<Arc<Titles>>);

impl KnownTitles {
    fn of(&mut self, metrics: &[&Metric]) -> Arc<Titles> {
        let same = |titles: &&Arc<Titles>| {
            let key = |metric: &&Metric| (metric.name, metric.stat, metric.kind);
            titles.keys.len() == metrics.len()
                && titles.keys.iter().zip(metrics).all(|((name, stat, labels, kind), metric)| {
                    (*name, *stat, *kind) == key(metric) && *labels == metric.labels
                })
        };
        if let Some(known) = self.0.iter().rev().take(LOOKED_THROUGH).find(same) {
            return known.clone();
        }
        let key = |metric: &&Metric| (metric.name, metric.stat, metric.labels.clone(), metric.kind);
        let title =
            |metric: &&Metric| part::title((metric.name, metric.stat, &metric.labels, metric.kind));
        let mut order: Vec<(String, usize)> = metrics.iter().map(title).zip(0..).collect();
        order.sort();
        let (columns, order) = order.into_iter().unzip();
        let keys = metrics.iter().map(key).collect();
        let titles = Arc::new(Titles { keys, columns: Arc::new(columns), order });
        self.0.push(titles.clone());
        titles
    }
}

/// Columns that runs have: equal ones are there once.
#[derive(Debug, Default)]
pub struct KnownColumns(Vec<Columns>);

impl KnownColumns {
    /// Has a run share its columns with those before it.
    pub fn share(&mut self, run: &mut Run) {
        let known = self.0.iter().rev().take(LOOKED_THROUGH).find(|known| **known == run.columns);
        match known {
            Some(known) => run.columns = known.clone(),
            None => self.0.push(run.columns.clone()),
        }
    }
}

/// Puts runs together of the lines of a long file, those of a run behind each other.
#[derive(Debug, Default)]
pub(super) struct LongRuns {
    runs: Vec<Run>,
    columns: KnownColumns,
    open: Option<OpenRun>,
}

/// The run of the lines so far.
#[derive(Debug)]
struct OpenRun {
    number: u64,
    own: Vec<(String, String)>,
    measured: Vec<(String, f64)>,
}

impl LongRuns {
    /// A line: a metric of a run. `own`: what the run was, asked for at its first line.
    pub(super) fn line<E>(
        &mut self,
        number: u64,
        own: impl FnOnce() -> Result<Vec<(String, String)>, E>,
        title: String,
        value: f64,
    ) -> Result<(), E> {
        if self.open.as_ref().is_none_or(|open| open.number != number) {
            self.close();
            self.open = Some(OpenRun { number, own: own()?, measured: Vec::new() });
        }
        self.open.as_mut().expect("it was put there").measured.push((title, value));
        Ok(())
    }

    fn close(&mut self) {
        if let Some(OpenRun { number, own, measured }) = self.open.take() {
            let mut run = Run::measured(number, own, measured);
            self.columns.share(&mut run);
            self.runs.push(run);
        }
    }

    /// All runs.
    pub(super) fn finish(mut self) -> Vec<Run> {
        self.close();
        self.runs
    }
}

/// The lists of columns that runs have, each once, if runs share them.
pub(crate) fn distinct_columns<'r>(runs: impl Iterator<Item = &'r Run>) -> Vec<&'r [String]> {
    let mut lists: Vec<&Columns> = Vec::new();
    for run in runs {
        let known = lists.iter().rev().take(LOOKED_THROUGH);
        if !known.into_iter().any(|known| Arc::ptr_eq(known, &run.columns)) {
            lists.push(&run.columns);
        }
    }
    lists.into_iter().map(|columns| columns.as_slice()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_beside_columns_that_are_shared() {
        let fields = |value: &str| {
            [
                ("kernel.hz", "100"),
                ("power.mean{domain=b}", value),
                ("seed", "7"),
                ("energy.sum", "3"),
            ]
            .map(|(column, text)| (column.to_string(), text.to_string()))
        };
        let (mut one, mut two) = (Run::new(0, fields("2.5")), Run::new(1, fields("0.1")));
        let told: Vec<_> = one.fields().collect();
        let expected = [
            ("kernel.hz", "100"),
            ("seed", "7"),
            ("energy.sum", "3"),
            ("power.mean{domain=b}", "2.5"),
        ];
        assert_eq!(told, expected.map(|(column, text)| (column, text.to_string())));
        let mut known = KnownColumns::default();
        known.share(&mut one);
        known.share(&mut two);
        assert!(Arc::ptr_eq(&one.columns, &two.columns));
        assert_eq!(distinct_columns([&one, &two].into_iter()).len(), 1);
        assert_eq!((two.value("power.mean{domain=b}"), two.value("power.mean")), (Some(0.1), None));
        assert_eq!((two.was("kernel.hz"), two.was("energy.sum")), ("100", ""));
        two.keep(&BTreeSet::from(["energy.sum".to_string()]));
        assert_eq!((two.columns(), two.was("seed")), (&["energy.sum".to_string()][..], "7"));
    }
}
