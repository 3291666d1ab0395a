// SPDX-License-Identifier: GPL-2.0-or-later
//! Faults as the package's exceptions (`schedtwin/_errors.py`).

use pyo3::prelude::*;
use schedtwin_input::{Diagnostics, Location};

/// `InputError`: every fault with its file, line, column, message and help, and all of them as text.
pub fn input(py: Python<'_>, faults: &Diagnostics) -> PyErr {
    let of = |fault: &schedtwin_input::Diagnostic| {
        let whole = fault.span == Location::WHOLE;
        let place = (!whole).then(|| fault.source.line_column(fault.span.start));
        let (line, column) = (place.map(|place| place.0), place.map(|place| place.1));
        (fault.source.name.clone(), line, column, fault.message.clone(), fault.help.clone())
    };
    let told: Vec<_> = faults.0.iter().map(of).collect();
    made(py, "InputError", (faults.render(false).trim_end().to_string(), told))
}

/// The exception of a failure of the library.
pub fn of(py: Python<'_>, error: schedtwin::Error) -> PyErr {
    match error {
        schedtwin::Error::Input(faults) => input(py, &faults),
        schedtwin::Error::Io(error) => error.into(),
        other => made(py, "Error", (other.to_string(),)),
    }
}

/// An exception of the package.
pub fn made<'py, A>(py: Python<'py>, class: &str, arguments: A) -> PyErr
where
    A: pyo3::call::PyCallArgs<'py>,
{
    let make = || py.import("schedtwin._errors")?.getattr(class)?.call1(arguments);
    match make() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
