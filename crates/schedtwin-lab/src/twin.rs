// SPDX-License-Identifier: GPL-2.0-or-later
//! The twin as a subject of the laboratory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use schedtwin_engine::result::RunResult;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_types::Ns;

use crate::Provenance;
use crate::balancing::WidestLevel;
use crate::compare::Subject;

/// One column of a comparison: a scenario under the name of its kernel.
#[derive(Clone)]
pub struct Column {
    /// The kernel as the user spelled it.
    pub kernel: String,
    /// The scenario that runs.
    pub scenario: Scenario,
}

impl Column {
    /// A column under the kernel's full name.
    pub fn new(scenario: Scenario) -> Column {
        Column { kernel: scenario.kernel().identity.clone(), scenario }
    }
}

impl Subject for Column {
    fn name(&self) -> &str {
        &self.kernel
    }

    fn commits(&self) -> Vec<String> {
        self.scenario.kernel().commits().into_iter().map(String::from).collect()
    }

    fn changed_and_not_taken(&self, base: &Column) -> Vec<String> {
        self.scenario.kernel().changed_and_not_taken(base.scenario.kernel())
    }

    fn duration(&self) -> Option<Ns> {
        self.scenario.duration()
    }

    fn command(&self, seed: u64) -> String {
        self.scenario.command(seed)
    }

    fn widest_level(&self) -> Option<WidestLevel> {
        WidestLevel::of(&self.scenario.domains(), self.scenario.kernel().config.start.is_settled())
    }

    fn unscanned_at_first(&self) -> Option<u32> {
        self.scenario.unscanned_at_first()
    }

    fn sleeps_without_power(&self) -> bool {
        self.scenario.machine().sleeping_uw() == 0
    }

    fn leaves_clocks_to_schedutil(&self) -> bool {
        self.scenario.leaves_clocks_to_schedutil()
    }

    fn throttles_like(&self, base: &Column) -> bool {
        let form = |column: &Column| column.scenario.kernel().config.cfs_throttle;
        form(self) == form(base)
    }

    fn is_alone(&self) -> bool {
        self.scenario.is_alone()
    }

    fn run(&self, seed: u64, simulated: Arc<AtomicU64>) -> io::Result<RunResult> {
        self.scenario.run(seed, RunOptions { progress: Some(simulated), ..RunOptions::default() })
    }
}

/// Where results of a scenario come from.
pub fn provenance(scenario: &Scenario) -> Provenance {
    let from = scenario.provenance();
    Provenance {
        version: from.version,
        model_version: from.model_version,
        machine: from.machine,
        workload: from.workload,
        hashes: from.hashes,
        duration_ns: scenario.duration(),
        trust: from.trust,
    }
}

/// Where results of a comparison come from.
pub fn joint_provenance(columns: &[Column]) -> Provenance {
    let of: Vec<(String, Provenance)> = columns
        .iter()
        .map(|column| (column.kernel.clone(), provenance(&column.scenario)))
        .collect();
    Provenance::join(&of)
}
