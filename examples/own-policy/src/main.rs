// SPDX-License-Identifier: GPL-2.0-or-later
//! Four policies of one's own, each compared with the kernel that it changes.
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
mod turns;

use average_idle::AverageIdle;
use ondemand::Ondemand;
use packer::Packer;
use schedtwin::{Duration, Experiment, KernelFile};
use std::error::Error;
use turns::Turns;

const MACHINE: &str = "pixel6";
const WORKLOAD: &str = "ui-phone";

fn main() -> Result<(), Box<dyn Error>> {
    let base = KernelFile::load("linux-6.12")?;
    let table = Experiment::new()
        .machine(MACHINE)
        .kernels([
            base.clone(),
            base.clone().with_idle_governor("average-idle", |_| AverageIdle::default()),
            base.clone().with_frequency_governor("ondemand", |_| Ondemand::default())?,
            base.clone().with_placement("packer", || Packer),
            base.with_ext_scheduler("turns", || Turns)?,
        ])
        .workload(WORKLOAD)
        .seeds(1..=3)
        .duration(Duration::from_s(2))
        .run()?;
    print!("{}", table.comparison(MACHINE, WORKLOAD).expect("they are the experiment's"));
    Ok(())
}
