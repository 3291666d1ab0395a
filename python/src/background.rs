// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs in a thread of their own, while the interpreter goes on: its lock is free, Ctrl-C ends, and progress is told.

use crate::errors;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use schedtwin::Progress;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often signals are looked at and progress is told.
const PERIOD: Duration = Duration::from_millis(100);

/// Does the work. `told`, if there is one, is called with runs done, runs expected and the fraction: now and then, and at the end.
///
/// After Ctrl-C no further run begins; those under way end unseen.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    told: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Progress) -> Result<T, schedtwin::Error> + Send + 'static,
) -> PyResult<T> {
    let progress = Arc::new(Progress::new());
    let (done, result) = mpsc::channel();
    let shared = progress.clone();
    // If nobody waits any more, the result is dropped.
    std::thread::spawn(move || drop(done.send(work(&shared))));
    let result = Mutex::new(result);
    let wait = || result.lock().expect("one thread waits").recv_timeout(PERIOD);
    let tell = || {
        let call = |told: &Bound<'_, PyAny>| {
            let (runs, expected) = (progress.done_runs(), progress.expected_runs());
            told.call1((runs, expected, progress.fraction())).map(drop)
        };
        told.map_or(Ok(()), call)
    };
    loop {
        match py.detach(wait) {
            Ok(result) => {
                let value = result.map_err(|error| errors::of(py, error))?;
                return tell().map(|()| value);
            }
            Err(RecvTimeoutError::Disconnected) => {
                let message = "a run panicked: this is a bug, please report it";
                return Err(PyRuntimeError::new_err(message));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals().and_then(|()| tell()) {
                    progress.cancel();
                    return Err(error);
                }
            }
        }
    }
}
