//! A run of any length takes the memory it has after its start: nothing is allocated while simulated
//! time goes by.
//!
//! Allocations of the running thread are counted by the crate `allocation-counter`, which stands in for
//! the global allocator of this test alone.

use schedtwin::Scenario;
use schedtwin::twin::Twin;

const SECOND: u64 = 1_000_000_000;

/// Runs to `begin`, then counts allocations until `end`.
fn allocations(machine: &str, kernel: &str, workload: &str, begin: u64, end: u64) -> (u64, i64, u64) {
    let scenario = Scenario::new(machine, kernel, workload, Some(2 * end))
        .unwrap_or_else(|faults| panic!("{machine} {kernel} {workload}: {faults}"));
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
    (counted.count_total, counted.bytes_current, twin.events() - before)
}

#[test]
fn nothing_is_allocated_while_time_goes_by() {
    for (machine, workload) in [("uniform8", "w1"), ("pixel6", "w1"), ("rig8", "w1"), ("pixel6", "ui-phone")] {
        let (count, kept, events) = allocations(machine, "linux-6.12", workload, SECOND, 3 * SECOND);
        assert!(events > 5_000, "{machine} {workload}: {events} events");
        assert_eq!((count, kept), (0, 0), "{machine} {workload}: allocations, bytes kept, in {events} events");
    }
}

/// The count sees what it is meant to see.
#[test]
fn allocations_are_counted() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1u8; 100])));
    assert_eq!(counted.count_total, 1);
}
