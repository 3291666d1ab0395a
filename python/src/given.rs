// SPDX-License-Identifier: GPL-2.0-or-later
//! Inputs as Python gives them: a name, a name with a text, or an object of this module.

use crate::errors;
use crate::policies::OwnKernel;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use schedtwin::{Given, GivenKernel, GivenMachine, GivenWorkload};
use schedtwin_engine::recording::{Device, read_trace};
use schedtwin_engine::{Machine, Workload};
use schedtwin_types::Duration;
use std::path::PathBuf;

/// The work of a trace.
#[pyclass(frozen, module = "schedtwin._native")]
pub struct Recording {
    workload: Workload,
    #[pyo3(get)]
    name: String,
    /// Sentences about what was read and assumed.
    #[pyo3(get)]
    notes: Vec<String>,
}

#[pymethods]
impl Recording {
    #[new]
    #[pyo3(signature = (path, machine, recorded_on=None, duration_ns=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        machine: &Bound<'_, PyAny>,
        recorded_on: Option<&Bound<'_, PyAny>>,
        duration_ns: Option<u64>,
    ) -> PyResult<Recording> {
        let load = |given: &Bound<'_, PyAny>| -> PyResult<Machine> {
            self::machine(given)?.load().map_err(|faults| errors::input(py, &faults))
        };
        let machine = load(machine)?;
        let recorded_on = recorded_on.map(load).transpose()?.unwrap_or_else(|| machine.clone());
        let read = py.detach(|| {
            let device = Device { machine: &recorded_on, capacities: None };
            read_trace(&path, device, &machine, duration_ns)
        });
        let read = read.map_err(|faults| errors::input(py, &faults))?;
        let name = path.display().to_string();
        Ok(Recording { workload: read.workload, name, notes: read.assumptions })
    }
}

pub fn machine(given: &Bound<'_, PyAny>) -> PyResult<GivenMachine> {
    named(given)
}

pub fn kernel(given: &Bound<'_, PyAny>) -> PyResult<GivenKernel> {
    match given.cast::<OwnKernel>() {
        Ok(own) => Ok(own.get().kernel()),
        Err(_) => named(given),
    }
}

pub fn workload(given: &Bound<'_, PyAny>) -> PyResult<GivenWorkload> {
    match given.cast::<Recording>() {
        Ok(recording) => {
            let recording = recording.get();
            let value = Box::new(recording.workload.clone());
            Ok(Given::Ready { name: recording.name.clone(), value })
        }
        Err(_) => named(given),
    }
}

fn named<T>(given: &Bound<'_, PyAny>) -> PyResult<Given<T>> {
    if let Ok(name) = given.extract::<String>() {
        return Ok(Given::Named(name));
    }
    match given.extract::<(String, String)>() {
        Ok((name, text)) => Ok(Given::Text { name, text }),
        Err(_) => Err(PyTypeError::new_err("an input is a name, or a name with a text")),
    }
}

/// A machine or kernel file with the content of some JSON.
#[pyfunction]
pub fn toml_text(json: &str) -> PyResult<String> {
    let wrong =
        |error: String| PyValueError::new_err(format!("this is no content of a file: {error}"));
    let value: toml::Value =
        serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
    toml::to_string(&value).map_err(|error| wrong(error.to_string()))
}

/// Nanoseconds of a text such as `10s`.
#[pyfunction]
pub fn duration_ns(text: &str) -> PyResult<u64> {
    let duration: Result<Duration, _> = text.parse();
    duration.map(Duration::ns).map_err(|error| PyValueError::new_err(error.to_string()))
}
