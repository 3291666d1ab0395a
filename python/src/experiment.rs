// SPDX-License-Identifier: GPL-2.0-or-later
//! Experiments, their tables and their explanations.

use crate::batch::Batch;
use crate::policies::{self, OwnKernel};
use crate::{background, errors, given, sweep};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use schedtwin::{Duration, Extent, Format, Query, What};
use schedtwin_input::Diagnostics;
use schedtwin_lab::selector::Selector;
use schedtwin_lab::value;
use schedtwin_types::CpuId;
use std::path::PathBuf;
use std::sync::Arc;

/// Machines, kernels, workloads, seeds.
#[pyclass(frozen, module = "schedtwin._native")]
pub struct Experiment {
    experiment: schedtwin::Experiment,
    /// What a user's policy written in Python failed with.
    failures: Vec<policies::Failure>,
}

#[pymethods]
impl Experiment {
    #[new]
    fn new(
        machines: Vec<Bound<'_, PyAny>>,
        kernels: Vec<Bound<'_, PyAny>>,
        workloads: Vec<Bound<'_, PyAny>>,
        first_seed: u64,
        seeds: u64,
        duration_ns: Option<u64>,
    ) -> PyResult<Experiment> {
        let last = first_seed.checked_add(seeds).filter(|_| seeds > 0);
        let last = last.ok_or_else(|| PyValueError::new_err("seeds: at least 1, below 2^64"))? - 1;
        let mut experiment = schedtwin::Experiment::new().seeds(first_seed..=last);
        experiment.duration = duration_ns.map(Duration::from_ns);
        for machine in &machines {
            experiment = experiment.machine(given::machine(machine)?);
        }
        let mut failures = Vec::new();
        for kernel in &kernels {
            experiment = experiment.kernel(given::kernel(kernel)?);
            let own = kernel.cast::<OwnKernel>().ok();
            failures.extend(own.map(|own| own.get().failure()));
        }
        for workload in &workloads {
            experiment = experiment.workload(given::workload(workload)?);
        }
        Ok(Experiment { experiment, failures })
    }

    /// Loads and checks everything without running it.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.experiment.check()).map_err(|error| errors::of(py, error))
    }

    /// Runs it.
    #[pyo3(signature = (progress=None))]
    fn run(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Table> {
        let experiment = self.experiment.clone();
        let table =
            self.done(background::run(py, progress, move |told| experiment.run_with(told)))?;
        Ok(Table(Arc::new(table)))
    }

    /// Where the first two kernels part.
    fn first_difference(&self, py: Python<'_>) -> PyResult<Option<Explanation>> {
        let experiment = self.experiment.clone();
        let found = self.done(background::run(py, None, move |_| experiment.first_difference()))?;
        Ok(found.map(Explanation))
    }

    /// What the first kernel did, and why.
    #[pyo3(signature = (at_ns=None, window_ns=500_000, task=None, cpu=None, limit=None, events=Vec::new(), waits=false))]
    fn explain(
        &self,
        py: Python<'_>,
        at_ns: Option<u64>,
        window_ns: u64,
        task: Option<String>,
        cpu: Option<u16>,
        limit: Option<u64>,
        events: Vec<String>,
        waits: bool,
    ) -> PyResult<Explanation> {
        let cpu = cpu.map(CpuId);
        let what = if waits { What::Waits } else { What::Entries };
        let limit = limit.unwrap_or(what.usual_limit());
        let query = Query { at: at_ns, window_ns, task, cpu, events, limit, what, json: false };
        let experiment = self.experiment.clone();
        let explained = background::run(py, None, move |_| experiment.explain(&query));
        self.done(explained).map(Explanation)
    }

    /// All events of a name.
    fn events(&self, py: Python<'_>, event: String) -> PyResult<Batch> {
        let experiment = self.experiment.clone();
        let events = background::run(py, None, move |_| Ok(experiment.events(&event)?.to_arrow()));
        self.done(events).map(Batch)
    }

    /// Writes a trace or a record of the first run.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let experiment = self.experiment.clone();
        self.done(background::run(py, None, move |_| experiment.write(&path)))
    }

    /// A page about the first machine and workload.
    fn page(&self, py: Python<'_>, table: &Table) -> PyResult<String> {
        let (experiment, table) = (self.experiment.clone(), table.0.clone());
        self.done(background::run(py, None, move |_| experiment.page(&table)))
    }

    /// The first run as the command prints it.
    fn run_text(&self, py: Python<'_>) -> PyResult<String> {
        let experiment = self.experiment.clone();
        self.done(background::run(py, None, move |_| experiment.run_text()))
    }

    /// The experiment as a sweep.
    fn sweep(&self, py: Python<'_>) -> PyResult<sweep::Sweep> {
        let made = py.detach(|| self.experiment.sweep());
        made.map(|sweep| sweep::Sweep(Arc::new(sweep))).map_err(|error| errors::of(py, error))
    }
}

impl Experiment {
    /// What came out of runs; what a policy failed with comes first.
    fn done<T>(&self, result: PyResult<T>) -> PyResult<T> {
        policies::raise(&self.failures)?;
        result
    }
}

/// What an experiment measured.
#[pyclass(frozen, module = "schedtwin._native")]
pub struct Table(Arc<schedtwin::Table>);

#[pymethods]
impl Table {
    /// All rows.
    fn batch(&self, py: Python<'_>) -> Batch {
        Batch(py.detach(|| self.0.to_arrow()))
    }

    /// The rows that a selector means.
    fn select(&self, py: Python<'_>, selector: &str) -> PyResult<Batch> {
        let rows = self.0.select_to_arrow(selector);
        rows.map(Batch).map_err(|error| errors::of(py, error))
    }

    /// The value of a metric for each run, in order; the selector means one row of each.
    fn values(&self, py: Python<'_>, selector: &str) -> PyResult<Vec<(String, u64, Option<f64>)>> {
        let rows = self.0.select(selector).map_err(|error| errors::of(py, error))?;
        Ok(rows.map(|row| (row.kernel().to_string(), row.seed(), row.value())).collect())
    }

    /// What the first two kernels and further ones do differently.
    fn comparison(&self, machine: &str, workload: &str) -> Option<Comparison> {
        self.0.comparison(machine, workload).map(Comparison)
    }

    /// Seed, kernel, message and command of each run that panicked.
    fn crashes(&self) -> Vec<(u64, String, String, String)> {
        let told = |crash: &schedtwin::Crash| {
            let schedtwin::Crash { seed, kernel, message, command } = crash.clone();
            (seed, kernel, message, command)
        };
        self.0.crashes().map(told).collect()
    }

    /// What runs had to say.
    fn notices(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for notice in self.0.runs().iter().flat_map(|run| &run.notices) {
            if !all.contains(notice) {
                all.push(notice.clone());
            }
        }
        all
    }

    /// The digest of each run: equal digests are equal executions.
    fn digests(&self) -> Vec<u64> {
        self.0.runs().iter().map(|run| run.digest).collect()
    }
}

/// Kernels against the first of them.
#[pyclass(frozen, module = "schedtwin._native")]
pub struct Comparison(schedtwin::Comparison);

#[pymethods]
impl Comparison {
    /// A row for each metric and kernel.
    fn batch(&self) -> Batch {
        Batch(self.0.to_arrow())
    }

    /// The difference of the second kernel to the first in one metric, as the table has it, and half of its 95 % interval.
    fn value(&self, metric: &str) -> PyResult<(f64, Option<f64>)> {
        let fault = |faults: Diagnostics| PyValueError::new_err(faults.to_string());
        let selectors = Selector::parse_list(metric).map_err(fault)?;
        let [selector] = selectors.as_slice() else {
            return Err(PyValueError::new_err("one metric is meant"));
        };
        let known = value::of_comparison(self.0.as_lab(), selector).map_err(fault)?;
        let first = known.first().ok_or_else(|| PyValueError::new_err("there is one kernel"))?;
        Ok((first.value, first.half_width))
    }

    /// What the command prints.
    #[pyo3(signature = (format="text", extent="headlines"))]
    fn text(&self, format: &str, extent: &str) -> PyResult<String> {
        let format = match format {
            "text" => Format::Text,
            "markdown" => Format::Markdown,
            "json" => Format::Json,
            "csv" => Format::Csv,
            _ => return Err(PyValueError::new_err("format: text, markdown, json or csv")),
        };
        let extent = match extent {
            "headlines" => Extent::Headlines,
            "more" => Extent::More,
            "all" => Extent::All,
            _ => return Err(PyValueError::new_err("extent: headlines, more or all")),
        };
        Ok(self.0.text(format, extent))
    }
}

/// What happened, and why.
#[pyclass(frozen, module = "schedtwin._native")]
pub struct Explanation(schedtwin::Explanation);

#[pymethods]
impl Explanation {
    fn __str__(&self) -> String {
        self.0.to_string()
    }

    /// How many entries matched.
    #[getter]
    fn matched(&self) -> u64 {
        self.0.matched()
    }

    /// When two kernels part, nanoseconds.
    #[getter]
    fn at_ns(&self) -> Option<u64> {
        self.0.difference().map(|difference| difference.at)
    }

    /// All of it as JSON.
    fn json(&self) -> String {
        serde_json::to_string(&self.0).expect("an explanation is JSON")
    }
}
