// SPDX-License-Identifier: GPL-2.0-or-later
//! Sweeps: their runs here, or as chunks anywhere.

use crate::batch::Batch;
use crate::{background, errors};
use pyo3::exceptions::{PyIOError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use schedtwin::sweep as lab;
use std::path::PathBuf;
use std::sync::Arc;

/// Performs runs `start` to before `stop` of the sweep of these bytes; returns a stream of Arrow IPC. It depends on its
/// arguments alone.
#[pyfunction]
pub fn run_chunk<'py>(
    py: Python<'py>,
    spec: &[u8],
    start: u64,
    stop: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let done = py.detach(|| lab::run_chunk(spec, start..stop));
    Ok(PyBytes::new(py, &done.map_err(|faults| errors::input(py, &faults))?))
}

/// A numbered list of runs.
#[pyclass(frozen, module = "schedtwin._native")]
pub struct Sweep(pub Arc<lab::Sweep>);

#[pymethods]
impl Sweep {
    /// Number of runs.
    #[getter]
    fn runs(&self) -> u64 {
        self.0.runs()
    }

    /// Where its results come from.
    #[getter]
    fn head(&self) -> Vec<String> {
        self.0.head()
    }

    /// Keys that vary.
    #[getter]
    fn varies(&self) -> Vec<String> {
        self.0.varies.clone()
    }

    /// The sweep for `run_chunk`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.0.to_bytes().map_err(|faults| errors::input(py, &faults))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Performs it on all CPUs of this computer.
    #[pyo3(signature = (cache=None, progress=None))]
    fn perform(
        &self,
        py: Python<'_>,
        cache: Option<PathBuf>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Performed> {
        let sweep = self.0.clone();
        let performed = background::run(py, progress, move |told| {
            let cache = cache.map(|folder| lab::Cache::open(&folder)).transpose()?;
            let performed = lab::Performed::here(&sweep, cache.as_ref(), told)?;
            Ok((performed, told.crashes()))
        });
        let (performed, crashes) = performed?;
        let told = |crash: schedtwin::Crash| format!("{}; again: {}", crash.message, crash.command);
        Ok(Performed { performed, crashes: crashes.into_iter().map(told).collect() })
    }

    /// The numbers of the runs that a cache does not have.
    fn missing(&self, py: Python<'_>, cache: PathBuf) -> PyResult<Vec<u64>> {
        let cache = lab::Cache::open(&cache)?;
        let missing = |run: &u64| self.0.cached(*run, Some(&cache)).is_none();
        Ok(py.detach(|| (0..self.0.runs()).filter(missing).collect()))
    }

    /// Puts the runs of a chunk into a cache.
    fn keep(&self, py: Python<'_>, cache: PathBuf, chunk: &[u8]) -> PyResult<()> {
        let cache = lab::Cache::open(&cache)?;
        let chunk = lab::read_chunk(chunk).map_err(|faults| errors::input(py, &faults))?;
        for run in &chunk.runs {
            self.0.keep(run, &cache)?;
        }
        Ok(())
    }

    /// The sweep of chunks in any order, and of what a cache has besides.
    #[pyo3(signature = (chunks, cache=None))]
    fn of_chunks(
        &self,
        py: Python<'_>,
        chunks: Vec<Vec<u8>>,
        cache: Option<PathBuf>,
    ) -> PyResult<Performed> {
        let cache = cache.map(|folder| lab::Cache::open(&folder)).transpose()?;
        let sweep = self.0.clone();
        let collect = move || {
            let (mut runs, mut crashes) = (Vec::new(), Vec::new());
            for chunk in chunks {
                let chunk = lab::read_chunk(&chunk)?;
                runs.extend(chunk.runs);
                crashes.extend(chunk.crashes);
            }
            let mut has = vec![false; sweep.runs() as usize];
            let numbers = runs.iter().map(|run: &lab::SweepRun| run.number);
            for number in numbers.chain(crashes.iter().map(|(number, _)| *number)) {
                if let Some(has) = has.get_mut(number as usize) {
                    *has = true;
                }
            }
            let absent = (0..sweep.runs()).filter(|number| !has[*number as usize]);
            let cached: Vec<_> = absent.map(|n| (n, sweep.cached(n, cache.as_ref()))).collect();
            let lost: Vec<u64> =
                cached.iter().filter(|(_, run)| run.is_none()).map(|(n, _)| *n).collect();
            runs.extend(cached.into_iter().filter_map(|(_, run)| run));
            Ok((lab::Performed::of(&sweep, runs), crashes, lost))
        };
        let collected: Result<_, schedtwin::Diagnostics> = py.detach(collect);
        let (performed, crashes, lost) = collected.map_err(|faults| errors::input(py, &faults))?;
        if !lost.is_empty() {
            let message = format!("{} runs are in no chunk, run {} first", lost.len(), lost[0]);
            return Err(PyValueError::new_err(message));
        }
        let crashes = crashes.into_iter().map(|(number, said)| format!("run {number}: {said}"));
        Ok(Performed { performed, crashes: crashes.collect() })
    }
}

/// The runs of a sweep.
#[pyclass(frozen, module = "schedtwin._native")]
pub struct Performed {
    performed: lab::Performed,
    /// Messages of runs that panicked.
    #[pyo3(get)]
    crashes: Vec<String>,
}

#[pymethods]
impl Performed {
    fn __str__(&self) -> String {
        self.performed.to_string()
    }

    /// A row for each run and metric.
    fn batch(&self, py: Python<'_>) -> Batch {
        Batch(py.detach(|| self.performed.to_arrow()))
    }

    /// Every setting by two metrics.
    fn points(&self, py: Python<'_>, x: &str, y: &str) -> PyResult<Batch> {
        let points = self.performed.points_to_arrow(x, y);
        points.map(Batch).map_err(|error| errors::of(py, error))
    }

    /// A page; with a figure if two metrics are named.
    #[pyo3(signature = (axes=None))]
    fn page(&self, py: Python<'_>, axes: Option<(String, String)>) -> PyResult<String> {
        let axes = axes.as_ref().map(|(x, y)| (x.as_str(), y.as_str()));
        self.performed.page(axes).map_err(|error| errors::of(py, error))
    }

    /// The content of the file that the command writes under this name.
    fn file<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.performed.file(&path));
        Ok(PyBytes::new(py, &bytes.map_err(PyIOError::new_err)?))
    }
}
