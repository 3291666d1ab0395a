// SPDX-License-Identifier: GPL-2.0-or-later
//! The rows of the budget, and which code belongs to which.

use crate::callgrind::{Place, Profile};
use std::collections::BTreeMap;

/// A row of the budget: its name and what it may cost, ns a W1 job.
pub const ROWS: [(&str, u64); 11] = [
    ("board", 30),
    ("PELT", 100),
    ("fair queue", 60),
    ("placement", 35),
    ("governor hook", 30),
    ("ticks", 50),
    ("idle", 30),
    ("balance", 30),
    ("execution and energy", 60),
    ("facts and meter", 35),
    ("rest", 0),
];

/// The row of everything that no other row claims.
pub const REST: usize = ROWS.len() - 1;

/// Files, the most special first: a part of the path, a part of the function's name, the row. Code of the
/// core that several rows share is divided by function.
const OWNERS: &[(&str, &str, usize)] = &[
    ("schedtwin-engine/src/board", "", 0),
    ("sched/pelt", "", 1),
    ("sched/fair/load_avg", "", 1),
    ("sched/rq_clock", "", 1),
    ("sched/fair/balance", "", 7),
    ("sched/fair/wakeup", "", 3),
    ("sched/fair/energy", "", 3),
    ("sched/fair/slow_path", "", 3),
    ("sched/fair/", "", 2),
    ("sched/nohz", "", 7),
    ("sched/topology", "", 7),
    ("sched/root_domain", "", 7),
    ("sched/idle", "", 6),
    ("sched/core", "try_to_wake", 3),
    ("sched/core", "ttwu", 3),
    ("sched/core", "select_task_rq", 3),
    ("sched/core", "tick", 5),
    ("schedtwin-kernel/src/sched", "", 2),
    ("schedtwin-kernel/src/cpufreq", "", 4),
    ("schedtwin-kernel/src/cpuidle", "", 6),
    ("schedtwin-kernel/src/time", "", 5),
    ("schedtwin-kernel/src/sync", "", 8),
    ("schedtwin-kernel/src/entry", "syscall", 8),
    ("schedtwin-kernel/src/entry", "idle", 6),
    // Interrupts are timers' but for a few.
    ("schedtwin-kernel/src/entry", "", 5),
    ("schedtwin-kernel/src/work", "", 5),
    ("schedtwin-kernel/src/dispatch", "", 5),
    ("schedtwin-kernel/src/context", "", 9),
    ("schedtwin-kernel/src/observe", "", 9),
    ("schedtwin-workload/", "", 8),
    ("schedtwin-machine/", "", 8),
    ("schedtwin-engine/src/meter/truth", "", 8),
    ("schedtwin-engine/src/meter", "", 9),
    ("schedtwin-engine/src/output", "", 9),
    ("schedtwin-engine/src/", "", 8),
    ("hdrhistogram", "", 9),
];

fn owner(file: &str, function: &str) -> Option<usize> {
    let owner =
        OWNERS.iter().find(|(path, name, _)| file.contains(path) && function.contains(name));
    owner.map(|(_, _, row)| *row)
}

/// The row that code at a place belongs to: that of its file, or, for what all share (the standard library,
/// masks, arenas), that of the function it was inlined into.
fn row_of(place: &Place) -> Option<usize> {
    owner(&place.file, &place.function).or_else(|| owner(&place.function_file, &place.function))
}

/// Instructions by row. A function that no row claims (`memmove`, an allocation) counts for those that call
/// it, in proportion to what its calls cost.
pub fn by_row(profile: &Profile) -> [f64; ROWS.len()] {
    let mut shares = BTreeMap::new();
    let mut sums = [0.0; ROWS.len()];
    for (place, cost) in &profile.own {
        match row_of(place) {
            Some(row) => sums[row] += *cost as f64,
            None => {
                let share = callers(profile, &place.function, &mut shares);
                for (sum, share) in sums.iter_mut().zip(share) {
                    *sum += share * *cost as f64;
                }
            }
        }
    }
    sums
}

/// The shares that the rows have in a function's calls.
fn callers(
    profile: &Profile,
    function: &str,
    known: &mut BTreeMap<String, [f64; ROWS.len()]>,
) -> [f64; ROWS.len()] {
    let mut rest = [0.0; ROWS.len()];
    rest[REST] = 1.0;
    if let Some(share) = known.get(function) {
        return *share;
    }
    // A function that calls itself, over whatever way, counts for the rest while it is looked at.
    known.insert(function.to_string(), rest);
    let Some(calls) = profile.calls.get(function) else { return rest };
    let all: u64 = calls.values().sum();
    if all == 0 {
        return rest;
    }
    let mut share = [0.0; ROWS.len()];
    for (place, cost) in calls {
        let part = *cost as f64 / all as f64;
        match row_of(place) {
            Some(row) => share[row] += part,
            None => {
                let above = callers(profile, &place.function, known);
                for (share, above) in share.iter_mut().zip(above) {
                    *share += part * above;
                }
            }
        }
    }
    known.insert(function.to_string(), share);
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_code_counts_for_its_users() {
        let text = "events: Ir\n\
            fl=(1) crates/schedtwin-kernel/src/sched/pelt.rs\nfn=(1) update\n1 10\n\
            fi=(2) library/core/src/cmp.rs\n1 5\n\
            cfn=(2) memmove\ncalls=1 1\n1 30\n\n\
            fl=(3) crates/schedtwin-engine/src/board.rs\nfn=(3) set\n1 7\n\
            cfn=(2)\ncalls=1 1\n1 10\n\n\
            fl=(4) libc.c\nfn=(2)\n1 40\n";
        let rows = by_row(&Profile::parse(text));
        assert_eq!((rows[0], rows[1], rows[REST]), (17.0, 45.0, 0.0));
    }

    #[test]
    fn every_row_has_code() {
        for (row, (name, _)) in ROWS.iter().enumerate() {
            assert!(row == REST || OWNERS.iter().any(|(_, _, owner)| *owner == row), "{name}");
        }
    }
}
