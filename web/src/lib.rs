// SPDX-License-Identifier: GPL-2.0-or-later
//! The twin in a browser: a worker of the page calls these functions, in texts and out texts.
//!
//! Experiments, results and errors are those of the crate `schedtwin`, and the page of a result is the file that `schedtwin compare --html`
//! writes. Here stand only the form in which a page asks, and the bounds of a tab's time and memory.
//!
//! | module | contents |
//! |---|---|
//! | `request.rs` | an experiment as the page and its links hold it |
//! | `playground.rs` | an experiment, run: verdict, page, decisions |
//! | `replay.rs` | a recorded trace, replayed |
//! | `catalogue.rs` | what there is to choose |
//! | `form.rs` | what of a machine and of a workload can be changed |
//! | `lesson.rs` | lessons: their files, what they claim, their numbers |
//!
//! A browser has one thread for this and no files. What needs either is refused by the crates below.

mod catalogue;
mod form;
pub mod lesson;
mod playground;
mod replay;
mod request;

pub use playground::Playground;
pub use request::Request;

use wasm_bindgen::prelude::wasm_bindgen;

/// Returns machines, kernels, patches, workloads, systems and settings, as JSON.
#[wasm_bindgen]
pub fn catalogue() -> String {
    catalogue::catalogue().to_string()
}

/// Returns the settings of a machine, as JSON.
///
/// # Errors
/// What is wrong with the machine.
#[wasm_bindgen]
pub fn settings(machine: &str) -> Result<String, String> {
    form::settings(machine).map(|settings| settings.to_string())
}

/// Returns the fields of a workload, which is given as JSON, as JSON.
///
/// # Errors
/// What is wrong with the workload.
#[wasm_bindgen]
pub fn fields(workload: &str) -> Result<String, String> {
    form::Form::of(workload).map(|form| form.fields().to_string())
}

/// Returns the workload with another value of the field with this number, both as JSON.
///
/// # Errors
/// If the workload cannot have the value.
#[wasm_bindgen]
pub fn with_field(workload: &str, field: usize, value: &str) -> Result<String, String> {
    let changed = form::Form::of(workload)?.with(field, value)?;
    serde_json::to_string(&changed).map_err(|error| error.to_string())
}

/// Runs one scenario and returns the digest of its decisions, in hexadecimal: the same as everywhere.
///
/// # Errors
/// What is wrong with the names, in words.
#[wasm_bindgen]
pub fn digest(
    machine: &str,
    kernel: &str,
    workload: &str,
    milliseconds: u32,
    seed: u32,
) -> Result<String, String> {
    let duration = Some(u64::from(milliseconds) * 1_000_000);
    let scenario = schedtwin_engine::Scenario::new(machine, kernel, workload, duration)
        .map_err(|faults| faults.to_string())?;
    let run = scenario.run(u64::from(seed), schedtwin_engine::RunOptions::default());
    run.map(|result| format!("{:016x}", result.digest)).map_err(|error| error.to_string())
}

/// The functions of the page that are called from here.
#[cfg(target_family = "wasm")]
mod page {
    use super::wasm_bindgen;

    #[wasm_bindgen]
    extern "C" {
        /// Tells how many runs are complete, and of how many.
        pub fn progressed(done: f64, expected: f64);
        /// Tells why everything ends.
        pub fn panicked(message: &str);
    }
}

/// Elsewhere nobody looks.
#[cfg(not(target_family = "wasm"))]
mod page {
    pub fn progressed(_: f64, _: f64) {}
}

/// Sends the message of a panic to the page, where code cannot unwind.
#[cfg(target_family = "wasm")]
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| page::panicked(&panic.to_string())));
}
