// SPDX-License-Identifier: GPL-2.0-or-later
//! Three policies of one's own, each compared with the kernel that it changes.
//!
//! ```sh
//! cp Cargo.lock examples/own-policy/
//! cargo run --manifest-path examples/own-policy/Cargo.toml
//! ```
//!
//! Each policy is a `Clone` type with one or two functions, in a file of its own. Copy this folder to start your own.

mod average_idle;
mod ondemand;
mod packer;

use average_idle::AverageIdle;
use ondemand::Ondemand;
use packer::Packer;
use schedtwin_engine::Scenario;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_lab::Progress;
use schedtwin_lab::compare::{Iterations, Plan, compare};
use schedtwin_lab::report::{self, Extent, Format};
use schedtwin_lab::twin::{Column, joint_provenance};
use std::error::Error;

const MACHINE: &str = "pixel6";
const WORKLOAD: &str = "ui-phone";
const DURATION_NS: u64 = 2_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let base = KernelFile::load("linux-6.12")?;
    let kernels = [
        base.clone(),
        base.clone().with_idle_governor("average-idle", |_| AverageIdle::default()),
        base.clone().with_frequency_governor("ondemand", |_| Ondemand::default())?,
        base.with_placement("packer", || Packer),
    ];
    let mut columns = Vec::new();
    for kernel in kernels {
        let scenario = Scenario::with_kernel(MACHINE, kernel, WORKLOAD, Some(DURATION_NS))?;
        columns.push(Column::new(scenario));
    }
    let plan = Plan { first_seed: 1, iterations: Iterations::Fixed(3) };
    let compared = compare(&columns, plan, joint_provenance(&columns), &Progress::new())?;
    print!("{}", report::comparison(&compared, Format::Text, Extent::Headlines));
    Ok(())
}
