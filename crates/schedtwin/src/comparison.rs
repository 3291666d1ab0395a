// SPDX-License-Identifier: GPL-2.0-or-later
//! What kernels do differently: paired differences, made from a table.

use crate::Crash;
use crate::table::{Group, Table};
use schedtwin_lab::Measured;
use schedtwin_lab::compare::{self, Span, judge, told_of_spans};
use schedtwin_lab::report::{self, Extent, Format};
use schedtwin_lab::verdict::Troubles;
use std::fmt;

/// The kernels of one machine and workload against the first of them. It prints as `schedtwin compare` does.
///
/// The rows with their intervals are in [`Comparison::rows`], what the runs had in common in [`Comparison::as_lab`].
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison(compare::Comparison);

impl Comparison {
    /// The kernels; the first is the baseline.
    pub fn kernels(&self) -> &[String] {
        &self.0.kernels
    }

    /// Every metric with its mean and 95 % interval by kernel, and the paired differences to the baseline.
    pub fn rows(&self) -> &[compare::ComparedRow] {
        &self.0.rows
    }

    /// The comparison as text, Markdown, JSON or CSV: what `schedtwin compare --format` prints.
    pub fn text(&self, format: Format, extent: Extent) -> String {
        report::comparison(&self.0, format, extent)
    }

    /// The comparison as the reports of [`schedtwin_lab::report`] take it.
    pub fn as_lab(&self) -> &compare::Comparison {
        &self.0
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&report::comparison(&self.0, Format::Text, Extent::Headlines))
    }
}

impl Table {
    /// The kernels against the first, on a machine under a workload, as the experiment named them. `None`: the experiment
    /// has no such machine and workload.
    ///
    /// ```
    /// use schedtwin::{Duration, Experiment};
    /// let table = Experiment::new()
    ///     .machine("uniform8")
    ///     .kernels(["linux-6.12", "linux-6.12:hz=1000"])
    ///     .workload("w1")
    ///     .seeds(1..=3)
    ///     .duration(Duration::from_ms(100))
    ///     .run()?;
    /// let comparison = table.comparison("uniform8", "w1").unwrap();
    /// let ticks = comparison.rows().iter().find(|row| row.row.name == "ticks").unwrap();
    /// assert!(ticks.cells[1].difference.as_ref().unwrap().diff > 0.0);
    /// # Ok::<(), schedtwin::Error>(())
    /// ```
    pub fn comparison(&self, machine: &str, workload: &str) -> Option<Comparison> {
        let is_it = |group: &Group| group.machine == machine && group.workload == workload;
        let number = self.groups.iter().position(is_it)?;
        let group = &self.groups[number];
        let crashed = self.crashes.iter().filter(|(of, _)| *of == number);
        let crashes: Vec<Crash> = crashed.map(|(_, crash)| crash.clone()).collect();
        let of_group = || self.by_run().filter(|(run, _)| run.group == number);
        let mut seeds: Vec<u64> = of_group().map(|(run, _)| run.seed).collect();
        seeds.extend(crashes.iter().map(|crash| crash.seed));
        seeds.sort_unstable();
        seeds.dedup();
        let mut measured = Measured::new(group.kernels.len());
        let mut digests = vec![vec![None; seeds.len()]; group.kernels.len()];
        let mut troubles = vec![Troubles::default(); group.kernels.len()];
        let mut notices: Vec<String> = Vec::new();
        for (run, metrics) in of_group() {
            let seed = seeds.binary_search(&run.seed).expect("it is one of them");
            measured.add(run.column, seed, metrics);
            digests[run.column][seed] = Some(run.digest);
            troubles[run.column].add(run.seed, run.troubles.clone());
            for notice in &run.notices {
                if !notices.contains(notice) {
                    notices.push(notice.clone());
                }
            }
        }
        let identical = |kernel: &Vec<Option<u64>>| {
            kernel.iter().zip(&digests[0]).filter(|(a, b)| a.is_some() && a == b).count()
        };
        let span = match group.provenance.duration_ns {
            Some(_) => Span::Asked,
            None => Span::OfTheWork,
        };
        let rows = measured.rows(seeds.len());
        notices.extend(told_of_spans(&rows, span));
        Some(Comparison(compare::Comparison {
            provenance: group.provenance.clone(),
            kernels: group.kernels.clone(),
            commits: group.commits.clone(),
            rows: judge(rows, span),
            all_rows: None,
            troubles,
            identical_executions: digests.iter().map(identical).collect(),
            throttles_alike: group.throttles_alike.clone(),
            seeds,
            notices,
            crashes,
        }))
    }
}
