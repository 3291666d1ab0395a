// SPDX-License-Identifier: GPL-2.0-or-later
//! A run of any length takes the memory it has after its start: nothing is allocated while simulated
//! time goes by.
//!
//! Allocations of the running thread are counted by the crate `allocation-counter`, which stands in for
//! the global allocator of this test alone.

use schedtwin_engine::Scenario;
use schedtwin_engine::twin::Twin;

const SECOND: u64 = 1_000_000_000;

/// Runs to `begin`, then counts allocations and events until `end`.
fn allocations(machine: &str, kernel: &str, workload: &str, begin: u64, end: u64) -> (u64, u64) {
    let scenario = Scenario::new(machine, kernel, workload, Some(2 * end))
        .unwrap_or_else(|faults| panic!("{machine} {workload}: {faults}"));
    let mut twin: Twin = scenario.twin(1);
    while twin.now() < begin {
        assert!(twin.step(&mut ()), "the run goes on");
    }
    let before = twin.events();
    let counted = allocation_counter::measure(|| {
        while twin.now() < end {
            assert!(twin.step(&mut ()), "the run goes on");
        }
    });
    (counted.count_total, twin.events() - before)
}

/// The yardstick allocates nothing. Elsewhere a queue may still reach its greatest length after the
/// first second and grow once; it can hold no more than all threads.
#[test]
fn nothing_is_allocated_while_time_goes_by() {
    const PLAIN: &str = "linux-6.12";
    for (machine, kernel, workload, most) in [
        ("uniform8", PLAIN, "w1", 0),
        ("pixel6", PLAIN, "w1", 8),
        ("rig8", PLAIN, "w1", 8),
        ("pixel6", PLAIN, "ui-phone", 8),
        ("uniform8", "linux-7.3:scx=simple", "w1", 0),
        ("pixel6", "linux-6.12:scx=simple", "ui-phone", 8),
    ] {
        let (count, events) = allocations(machine, kernel, workload, SECOND, 3 * SECOND);
        assert!(events > 5_000, "{machine} {workload}: {events} events");
        assert!(count <= most, "{machine} {workload}: {count} allocations in {events} events");
    }
}

/// Twenty times as long a run allocates no more.
#[test]
fn memory_does_not_grow_with_simulated_time() {
    for (machine, workload) in [("pixel6", "ui-phone"), ("rig8", "w1")] {
        let (count, _) = allocations(machine, "linux-6.12", workload, SECOND, 41 * SECOND);
        assert!(count <= 8, "{machine} {workload}: {count} allocations");
    }
}

/// The count sees what it is meant to see.
#[test]
fn allocations_are_counted() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1u8; 100])));
    assert_eq!(counted.count_total, 1);
}
