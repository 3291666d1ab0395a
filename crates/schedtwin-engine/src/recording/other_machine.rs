// SPDX-License-Identifier: GPL-2.0-or-later
//! Signs that a recording is of another machine than the one that it would calibrate.
//!
//! Costs that are measured on one machine and written into the file of another one look measured and are wrong. A
//! recording seldom names its machine, but it has its CPUs, its idle states and its clocks:
//!
//! - another number of CPUs: told by the file, or a CPU that the machine has not,
//! - an idle state deeper than any of that CPU's,
//! - frequencies of which most are no operating point of the CPU's domain. The same chip with other numbers of CPUs is
//!   no other machine (`device` tells those by their tables), nor is a clock that was hardly seen.

use super::device::{self, cpus_text};
use schedtwin_machine::Machine;
use schedtwin_types::CpuId;
use schedtwin_workload::recorded::Builder;

/// The signs that a recording has of its machine.
#[derive(Default)]
pub(super) struct Seen {
    /// CPUs that the file tells of.
    pub nr_cpus: Option<usize>,
    /// The deepest idle state of each CPU.
    pub deepest: Vec<Option<u32>>,
}

impl Seen {
    /// Notes an idle state that a CPU entered.
    pub fn idle(&mut self, cpu: CpuId, state: u32) {
        if cpu.index() >= self.deepest.len() {
            self.deepest.resize(cpu.index() + 1, None);
        }
        let deepest = &mut self.deepest[cpu.index()];
        *deepest = (*deepest).max(Some(state));
    }
}

/// The signs, a clause each; none: it may be the machine.
pub(super) fn signs(builder: &Builder, seen: &Seen, machine: &Machine) -> Vec<String> {
    let (id, has) = (&machine.identity, machine.nr_cpus());
    let recorded = builder.nr_cpus().max(seen.deepest.len());
    let mut signs = Vec::new();
    match seen.nr_cpus {
        Some(told) if told != has && recorded <= told => {
            signs.push(format!("its machine has {told} CPUs, and {id} has {has}"));
        }
        _ if recorded > has => {
            signs.push(format!("it has a CPU {}, and {id} has {has} CPUs", recorded - 1));
        }
        _ => {}
    }
    let states = |cpu: usize| machine.core_types[machine.cpus[cpu].core_type].idle_states.len();
    let deeper = |(cpu, state): (usize, &Option<u32>)| {
        let state = (*state)?;
        (cpu < has && state as usize >= states(cpu)).then_some((cpu as u16, state))
    };
    let deeper: Vec<(u16, u32)> = seen.deepest.iter().enumerate().filter_map(deeper).collect();
    if let Some((cpu, state)) = deeper.first() {
        let cpus: Vec<u16> = deeper.iter().map(|(cpu, _)| *cpu).collect();
        signs.push(format!(
            "{} entered idle state {state}, and the last of {id} there is {}",
            cpus_text(&cpus),
            states(usize::from(*cpu)).saturating_sub(1)
        ));
    }
    if device::has_other_frequencies(builder, machine) {
        signs.push(format!("most of its frequencies are no operating points of {id}"));
    }
    signs
}
