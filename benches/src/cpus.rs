// SPDX-License-Identifier: GPL-2.0-or-later
//! The cost of an event by the number of CPUs: the same load per CPU on ever larger machines.
//!
//! Four threads a CPU, each with 10 % of a CPU's work 62 times a second (`periodic`), so that 40 % of each machine is busy, as
//! in W1. An event is a look at what happens next: a timer, an interrupt, the end of some work. Scans for idle CPUs,
//! balancing passes and the governors of all domains are in it. Valgrind counts a long and a short run; their
//! difference holds neither boot nor end. Memory is the peak of a process that runs the long one.

use crate::budget::callgrind;
use crate::measure::child;
use crate::w1::{Files, KERNEL, run, table};
use schedtwin_engine::Scenario;
use std::io;

/// Machines and their numbers of CPUs, ascending.
pub const MACHINES: &[(&str, u64)] = &[
    ("uniform8", 8),
    ("i7-3630qm", 8),
    ("laptop-8c16t", 16),
    ("altra-2p160", 160),
    ("spr-2s224", 224),
    ("epyc-milan-2x64", 256),
];

/// Simulated milliseconds of the two runs.
const SHORT_MS: u64 = 100;
const LONG_MS: u64 = 300;

fn scenario(machine: &str, cpus: u64, milliseconds: u64) -> Scenario {
    let load = format!("periodic -f 62 -d 10 -t {}", 4 * cpus);
    Scenario::new(machine, KERNEL, &load, Some(milliseconds * 1_000_000))
        .unwrap_or_else(|faults| panic!("built-ins: {faults}"))
}

/// One run; how many events it had.
pub fn case(machine: &str, cpus: u64, milliseconds: u64) -> u64 {
    run(&scenario(machine, cpus, milliseconds), 1, Files::None).events
}

fn words(machine: &str, cpus: u64, milliseconds: u64) -> [String; 4] {
    ["cpus-case".into(), machine.into(), cpus.to_string(), milliseconds.to_string()]
}

/// Instructions an event, events a simulated second.
fn count(machine: &str, cpus: u64) -> io::Result<(f64, f64)> {
    let total = |milliseconds| {
        let words = words(machine, cpus, milliseconds);
        callgrind(&words.each_ref().map(String::as_str)).map(|profile| profile.total)
    };
    let events = case(machine, cpus, LONG_MS) - case(machine, cpus, SHORT_MS);
    let instructions = total(LONG_MS)? - total(SHORT_MS)?;
    let seconds = (LONG_MS - SHORT_MS) as f64 / 1e3;
    Ok((instructions as f64 / events as f64, events as f64 / seconds))
}

/// Peak memory of a process, KiB.
fn memory(machine: &str, cpus: u64) -> io::Result<u64> {
    let words = words(machine, cpus, LONG_MS);
    let output = child(&[], &words.each_ref().map(String::as_str))?;
    String::from_utf8_lossy(&output.stdout).trim().parse().map_err(io::Error::other)
}

/// Measures and prints.
pub fn report() -> io::Result<()> {
    let mut table = table([
        "machine",
        "CPUs",
        "tasks",
        "events a second",
        "instructions an event",
        "of the first",
        "peak, MiB",
    ]);
    let mut first = None;
    for (machine, cpus) in MACHINES {
        let (instructions, events) = count(machine, *cpus)?;
        let first = *first.get_or_insert(instructions);
        table.add_row([
            machine.to_string(),
            cpus.to_string(),
            (4 * cpus).to_string(),
            format!("{events:.0}"),
            format!("{instructions:.0}"),
            format!("{:.2}", instructions / first),
            format!("{:.1}", memory(machine, *cpus)? as f64 / 1024.0),
        ]);
    }
    println!("{table}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table's numbers of CPUs are those of the machines.
    #[test]
    fn machines_have_as_many_cpus() {
        for (name, cpus) in MACHINES {
            let scenario = scenario(name, *cpus, 1);
            assert_eq!(scenario.machine().cpus.len() as u64, *cpus, "{name}");
        }
    }
}
