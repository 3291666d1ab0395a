// SPDX-License-Identifier: GPL-2.0-or-later
//! The Rust side of the Python package `schedtwin`: the crate `schedtwin` and the command as a module `_native`.
//!
//! The package around it (`schedtwin/*.py`) has the names, defaults and documents that users see. This side converts
//! arguments, frees the interpreter's lock while runs run, and hands tables out as Arrow streams.

mod background;
mod batch;
mod errors;
mod experiment;
mod given;
mod policies;
mod sweep;

use pyo3::prelude::*;

/// Runs the command with these arguments; returns its exit code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| schedtwin_cli::run_command(arguments))
}

/// Names and descriptions of what is built in.
#[pyfunction]
fn built_in(what: &str) -> Vec<(String, String)> {
    match what {
        "machines" => schedtwin_engine::list_machines(),
        "kernels" => schedtwin_engine::list_releases(),
        "patches" => schedtwin_engine::list_patches(),
        "workloads" => schedtwin_engine::list_workloads(),
        _ => Vec::new(),
    }
}

/// All that a name with lists of choices stands for.
#[pyfunction]
fn choices(py: Python<'_>, name: &str) -> PyResult<Vec<String>> {
    let all = schedtwin_lab::sweep::choices::choices(name);
    let all = all.map_err(|faults| errors::input(py, &faults))?;
    Ok(all.into_iter().map(|choice| choice.text).collect())
}

/// A number and half the width of its 95 % interval.
type Known = Option<(f64, Option<f64>)>;

fn known(middle: f64, ci95: Option<[f64; 2]>) -> (f64, Option<f64>) {
    (middle, ci95.map(|[low, high]| (high - low) / 2.0))
}

/// The mean of samples.
#[pyfunction]
fn estimate(samples: Vec<Option<f64>>) -> Known {
    let estimate = schedtwin_lab::stats::estimate(&samples)?;
    Some(known(estimate.mean, estimate.ci95))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let rusts_own = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // A run among many that panics is told with the others' results.
        if !schedtwin_lab::crash::heard(panic) {
            rusts_own(panic);
        }
    }));
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("MODEL_VERSION", schedtwin_engine::MODEL_VERSION.to_string())?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(built_in, module)?)?;
    module.add_function(wrap_pyfunction!(choices, module)?)?;
    module.add_function(wrap_pyfunction!(estimate, module)?)?;
    module.add_function(wrap_pyfunction!(given::toml_text, module)?)?;
    module.add_function(wrap_pyfunction!(given::duration_ns, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::run_chunk, module)?)?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<experiment::Experiment>()?;
    module.add_class::<experiment::Table>()?;
    module.add_class::<experiment::Comparison>()?;
    module.add_class::<experiment::Explanation>()?;
    module.add_class::<given::Recording>()?;
    module.add_class::<policies::OwnKernel>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<sweep::Performed>()?;
    Ok(())
}
