//! Scenarios that made the twin panic. Each was found by random scenarios, and runs here under verification.

use crate::determinism::assert_reference;
use crate::scenarios::{KERNEL, MS, scenario};
use schedtwin::RunOptions;

/// An interrupt that comes at the very instant of a CPU's arrival in a state that it shares with others.
#[test]
fn an_interrupt_at_the_instant_of_an_arrival() {
    for seed in [6, 123, 294] {
        let juno = scenario("juno-r2", KERNEL, "ui-phone", None);
        juno.run(seed, RunOptions::default()).expect("nothing is written");
    }
    let at_once = "juno-r2:interrupts.ipi_latency_min_ns=0,interrupts.ipi_latency_max_ns=0";
    let juno = scenario(at_once, KERNEL, "ui-phone", Some(500 * MS));
    assert_reference("juno-r2 whose IPIs take no time", &juno, 5);
}
