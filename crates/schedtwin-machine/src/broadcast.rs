// SPDX-License-Identifier: GPL-2.0-or-later
//! `[broadcast]`: the timer that stands in for those of CPUs whose own timers stop in deep idle states.
//!
//! States with `local_timer_stops` (see `core_type`) leave a CPU without a timer. Its next event is then armed in one clock
//! event device for all.
//!
//! ```toml
//! [broadcast]
//! device = "arch_mem_timer" # its name; "hrtimer": there is none, a CPU that stays awake serves as one
//! moves = true              # its interrupt goes to the CPU with the earliest event (CLOCK_EVT_FEAT_DYNIRQ)
//! cpu = 0                   # else to this one (0)
//! program_ns = 300          # what arming it costs, as in [path_costs] (0)
//! ```
//!
//! Without the table such CPUs are woken by their own timers all the same: who measures wakeups out of such a state, or
//! counts interrupts, should know the device.

use schedtwin_input::{Diagnostics, Located, TableReader};
use schedtwin_types::{CpuId, Work};

use crate::keys::{keys, upto};

/// The largest cost, ns.
const MAX_PROGRAM_NS: u64 = 10_000_000;

/// The name that means: no device.
const HRTIMER: &str = "hrtimer";

/// The broadcast timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// Its name.
    pub device: String,
    /// There is none: an hrtimer of a CPU that stays out of such states serves as one.
    pub hrtimer: bool,
    /// The CPU that it interrupts, if that does not move.
    pub cpu: CpuId,
    /// Whether its interrupt goes to the CPU with the earliest event.
    pub moves: bool,
    /// The cost of arming it, in the unit of the path costs.
    pub program_ns: Work,
}

keys! {
    /// the timer for CPUs whose own timers stop
    struct BroadcastKeys in "broadcast" {
        /// name of the device; `hrtimer`: a CPU that does not enter such states
        device: Located<String> = Always, Text;
        /// the CPU that it interrupts; 0
        cpu: Located<u64> = May, Whole(0, 65_535);
        /// it interrupts the CPU with the earliest event; false
        moves: Located<bool> = May, Switch;
        /// cost of arming it; 0
        program_ns: Located<u64> = May, upto(MAX_PROGRAM_NS);
    }
}

/// Reads the table.
pub(crate) fn read(
    mut table: TableReader<'_>,
    nr_cpus: usize,
    faults: &mut Diagnostics,
) -> Option<Broadcast> {
    let BroadcastKeys { device, cpu, moves, program_ns: program } =
        BroadcastKeys::read(&mut table, faults);
    table.finish(faults);
    let hrtimer = device.as_ref().is_some_and(|device| device.value == HRTIMER);
    let places = cpu.as_ref().map(|cpu| &cpu.at).into_iter();
    let places = places.chain(moves.as_ref().filter(|moves| moves.value).map(|moves| &moves.at));
    for at in places.filter(|_| hrtimer) {
        faults.push_at(at, "an hrtimer is where the earliest event was handed over", None);
    }
    if let Some(cpu) = cpu.as_ref().filter(|cpu| nr_cpus > 0 && cpu.value >= nr_cpus as u64) {
        faults.push_at(&cpu.at, format!("there is no CPU {}", cpu.value), None);
    }
    if let Some(cost) = program.as_ref().filter(|cost| cost.value > MAX_PROGRAM_NS) {
        let help = Some("costs are in nanoseconds".to_string());
        faults.push_at(&cost.at, "`program_ns` is more than 10 ms", help);
    }
    Some(Broadcast {
        device: device?.value,
        hrtimer,
        cpu: CpuId(cpu.map_or(0, |cpu| cpu.value as u16)),
        moves: moves.is_some_and(|moves| moves.value),
        program_ns: program.map_or(0, |cost| cost.value),
    })
}

#[cfg(test)]
mod tests {
    use crate::Machine;
    use schedtwin_input::Source;

    fn read(table: &str) -> Result<Machine, String> {
        let text = include_str!("../machines/uniform8.toml");
        let source = Source::new("timer.toml", format!("{text}\n[broadcast]\n{table}"));
        Machine::from_source(&source, &[]).map_err(|faults| faults.to_string())
    }

    #[test]
    fn what_a_device_says_of_itself() {
        for (table, expected) in [
            ("device = \"t\"", (false, 0, false, 0)),
            ("device = \"t\"\ncpu = 3\nprogram_ns = 7", (false, 3, false, 7)),
            ("device = \"t\"\nmoves = true", (false, 0, true, 0)),
            ("device = \"hrtimer\"", (true, 0, false, 0)),
        ] {
            let device = read(table).unwrap().broadcast.unwrap();
            let found = (device.hrtimer, device.cpu.0, device.moves, device.program_ns);
            assert_eq!(found, expected, "{table}");
        }
        for (table, complaint) in [
            ("cpu = 0", "device"),
            ("device = \"t\"\ncpu = 8", "there is no CPU 8"),
            ("device = \"t\"\nprogram_ns = 10000001", "more than 10 ms"),
            ("device = \"hrtimer\"\ncpu = 1", "an hrtimer is where"),
            ("device = \"hrtimer\"\nmoves = true", "an hrtimer is where"),
        ] {
            let faults = read(table).unwrap_err();
            assert!(faults.contains(complaint), "{table}: {faults}");
        }
    }
}
