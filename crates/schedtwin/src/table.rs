// SPDX-License-Identifier: GPL-2.0-or-later
//! What runs measured, as a table: one row for each run, metric, label set and kind.
//!
//! Three columns have an entry for each row: the number of its run, the number of what was measured, and the value. Runs
//! and what was measured stand once each, so that a row is read by reference and takes 24 bytes.

use crate::{Better, Crash, Error, Kind, Labels, Provenance};
use schedtwin_engine::Scenario;
use schedtwin_engine::result::Metric;
use schedtwin_lab::compare::Subject;
use schedtwin_lab::select::Key;
use schedtwin_lab::selector::Selector;
use schedtwin_lab::twin::Column;
use schedtwin_lab::verdict::RunTroubles;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;

use crate::isolated::Measured;

/// A run of an experiment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Run {
    /// The machine as it was named.
    pub machine: String,
    /// The kernel as it was named.
    pub kernel: String,
    /// The workload as it was named.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// Digest over everything that happened: equal digests are equal executions.
    pub digest: u64,
    /// Simulated nanoseconds.
    pub simulated_ns: u64,
    /// What the run had to say: what was ignored, which limit ended it.
    pub notices: Vec<String>,
    /// What ended it, and which properties it broke.
    pub(crate) troubles: RunTroubles,
    /// The number of its machine and workload among the experiment's.
    pub(crate) group: usize,
    /// The number of its kernel.
    pub(crate) column: usize,
}

/// A machine and a workload with all kernels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub machine: String,
    pub workload: String,
    pub kernels: Vec<String>,
    pub commits: Vec<Vec<String>>,
    pub throttles_alike: Vec<bool>,
    pub provenance: Provenance,
}

/// What an experiment measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(crate) groups: Vec<Group>,
    runs: Vec<Run>,
    /// What is measured, each once, without a value.
    pub(crate) measured: Vec<Metric>,
    /// By row: the number of its run.
    pub(crate) run: Vec<u32>,
    /// By row: the number of what it measures.
    pub(crate) what: Vec<u32>,
    /// By row.
    pub(crate) value: Vec<Option<f64>>,
    /// With the number of the group.
    pub(crate) crashes: Vec<(usize, Crash)>,
}

/// A row of a table, by reference.
#[derive(Clone, Copy, Debug)]
pub struct Row<'t> {
    run: &'t Run,
    measured: &'t Metric,
    value: Option<f64>,
}

impl<'t> Row<'t> {
    /// The run that measured it.
    pub fn run(self) -> &'t Run {
        self.run
    }

    /// The machine as it was named.
    pub fn machine(self) -> &'t str {
        &self.run.machine
    }

    /// The kernel as it was named.
    pub fn kernel(self) -> &'t str {
        &self.run.kernel
    }

    /// The workload as it was named.
    pub fn workload(self) -> &'t str {
        &self.run.workload
    }

    /// The seed.
    pub fn seed(self) -> u64 {
        self.run.seed
    }

    /// The metric: `power`, `wakeup_latency`.
    pub fn metric(self) -> &'static str {
        self.measured.name
    }

    /// `mean`, `sum`, `p99`, ...
    pub fn stat(self) -> &'static str {
        self.measured.stat
    }

    /// The unit of the value.
    pub fn unit(self) -> &'static str {
        self.measured.unit
    }

    /// What the value is restricted to; none: the whole machine and workload.
    pub fn labels(self) -> &'t Labels {
        &self.measured.labels
    }

    /// The value of a label.
    pub fn label(self, key: &str) -> Option<&'t str> {
        self.measured
            .labels
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the value is that of one thing, or sums up many parts.
    pub fn kind(self) -> Kind {
        self.measured.kind
    }

    /// Which direction is better.
    pub fn better(self) -> Better {
        self.measured.better
    }

    /// The value; `None` where it is undefined.
    pub fn value(self) -> Option<f64> {
        self.value
    }
}

impl Table {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.run.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    /// The rows: those of a run stand together, in the order of the runs.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.len()).map(|at| self.row(at))
    }

    pub(crate) fn row(&self, at: usize) -> Row<'_> {
        Row {
            run: &self.runs[self.run[at] as usize],
            measured: &self.measured[self.what[at] as usize],
            value: self.value[at],
        }
    }

    /// What each run measured.
    pub(crate) fn by_run(&self) -> impl Iterator<Item = (&Run, Vec<Metric>)> {
        let mut at = 0;
        self.run.chunk_by(|a, b| a == b).map(move |rows| {
            let of_run = at..at + rows.len();
            at = of_run.end;
            let metric = |at: usize| {
                let mut metric = self.measured[self.what[at] as usize].clone();
                metric.value = self.value[at];
                metric
            };
            (&self.runs[rows[0] as usize], of_run.map(metric).collect())
        })
    }

    /// The runs, in the order of machines, workloads, seeds and kernels.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Runs that panicked: they have no rows.
    pub fn crashes(&self) -> impl ExactSizeIterator<Item = &Crash> {
        self.crashes.iter().map(|(_, crash)| crash)
    }

    /// The rows that `selector` means, spelled as `--metric` of the command line: `power`, `wakeup_latency.p99,task=ui`,
    /// `power,domain=*`. A name that is none, or was not measured, is a fault.
    ///
    /// ```
    /// use schedtwin::{Duration, Experiment};
    /// let table = Experiment::new()
    ///     .machine("pixel6")
    ///     .kernel("linux-7.3")
    ///     .workload("ui-phone")
    ///     .seeds(1..=1)
    ///     .duration(Duration::from_ms(50))
    ///     .run()?;
    /// let domains: Vec<_> = table.select("power,domain=*")?.filter_map(|row| row.label("domain")).collect();
    /// assert_eq!(domains, ["little", "mid", "big"]);
    /// assert!(table.select("powre").err().unwrap().to_string().contains("did you mean power?"));
    /// # Ok::<(), schedtwin::Error>(())
    /// ```
    pub fn select(&self, selector: &str) -> Result<impl Iterator<Item = Row<'_>>, Error> {
        Ok(self.selected(selector)?.into_iter().map(|at| self.row(at)))
    }

    /// The numbers of the rows that a selector means.
    pub(crate) fn selected(&self, selector: &str) -> Result<Vec<usize>, Error> {
        let keys: Vec<Key> =
            self.measured.iter().map(|m| (m.name, m.stat, &m.labels, m.kind)).collect();
        let mut wanted = vec![false; keys.len()];
        for selector in Selector::parse_list(selector)? {
            selector.pick(&keys)?.into_iter().for_each(|at| wanted[at] = true);
        }
        Ok((0..self.len()).filter(|at| wanted[self.what[*at] as usize]).collect())
    }
}

/// A map of columns, each a sequence with an entry for each row: what data frames are made from.
///
/// The columns: `machine`, `kernel`, `workload`, `seed`, `metric`, `stat`, `unit`, `labels` (a map each), `kind`, `of`,
/// `over`, `better`, `value`. What is undefined is null.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(13))?;
        map.serialize_entry("machine", &Cells(self, |row| row.machine()))?;
        map.serialize_entry("kernel", &Cells(self, |row| row.kernel()))?;
        map.serialize_entry("workload", &Cells(self, |row| row.workload()))?;
        map.serialize_entry("seed", &Cells(self, |row| row.seed()))?;
        map.serialize_entry("metric", &Cells(self, |row| row.metric()))?;
        map.serialize_entry("stat", &Cells(self, |row| row.stat()))?;
        map.serialize_entry("unit", &Cells(self, |row| row.unit()))?;
        map.serialize_entry("labels", &Cells(self, |row| Pairs(row.labels())))?;
        map.serialize_entry("kind", &Cells(self, |row| row.kind().word()))?;
        map.serialize_entry("of", &Cells(self, |row| row.kind().parts().map(|parts| parts.of)))?;
        map.serialize_entry(
            "over",
            &Cells(self, |row| row.kind().parts().map(|parts| parts.over)),
        )?;
        map.serialize_entry("better", &Cells(self, |row| row.better().word()))?;
        map.serialize_entry("value", &Cells(self, |row| row.value()))?;
        map.end()
    }
}

/// A column of a table.
struct Cells<'t, T>(&'t Table, fn(Row<'t>) -> T);

impl<T: Serialize> Serialize for Cells<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.rows().map(self.1))
    }
}

/// Labels as a map.
struct Pairs<'t>(&'t Labels);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// A table that grows run by run.
#[derive(Default)]
pub(crate) struct Builder {
    groups: Vec<Group>,
    runs: Vec<Run>,
    measured: Vec<Metric>,
    by_key: BTreeMap<(&'static str, &'static str, Labels, Kind), u32>,
    run: Vec<u32>,
    what: Vec<u32>,
    value: Vec<Option<f64>>,
    crashes: Vec<(usize, Crash)>,
}

impl Builder {
    /// Adds a machine and a workload; returns their number.
    pub fn group(&mut self, scenario: &Scenario, from: Provenance, columns: &[Column]) -> usize {
        self.groups.push(Group {
            machine: scenario.machine_name().to_string(),
            workload: scenario.workload_name().to_string(),
            kernels: columns.iter().map(|column| column.kernel.clone()).collect(),
            commits: columns.iter().map(Subject::commits).collect(),
            throttles_alike: columns.iter().map(|of| of.throttles_like(&columns[0])).collect(),
            provenance: from,
        });
        self.groups.len() - 1
    }

    /// Adds what a run of a group measured.
    pub fn run(&mut self, group: usize, column: usize, seed: u64, result: Measured) {
        let number = u32::try_from(self.runs.len()).expect("fewer than 2^32 runs");
        let Group { machine, workload, kernels, .. } = &self.groups[group];
        self.runs.push(Run {
            machine: machine.clone(),
            kernel: kernels[column].clone(),
            workload: workload.clone(),
            seed,
            digest: result.digest,
            simulated_ns: result.simulated_ns,
            troubles: result.troubles,
            notices: result.notices,
            group,
            column,
        });
        for mut metric in result.metrics {
            let value = metric.value.take().filter(|value| value.is_finite());
            let key = (metric.name, metric.stat, metric.labels.clone(), metric.kind);
            let what = *self.by_key.entry(key).or_insert_with(|| {
                self.measured.push(metric);
                u32::try_from(self.measured.len() - 1).expect("fewer than 2^32 metrics")
            });
            self.run.push(number);
            self.what.push(what);
            self.value.push(value);
        }
    }

    /// Adds a run of a group that panicked.
    pub fn crash(&mut self, group: usize, crash: Crash) {
        self.crashes.push((group, crash));
    }

    pub fn finish(self) -> Table {
        let Builder { groups, runs, measured, run, what, value, crashes, .. } = self;
        Table { groups, runs, measured, run, what, value, crashes }
    }
}
