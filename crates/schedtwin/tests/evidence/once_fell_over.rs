//! Scenarios that made the twin panic. Each was found by random scenarios, and runs here under verification.

use crate::determinism::assert_reference;
use crate::scenarios::{KERNEL, MS, scenario};
use schedtwin::RunOptions;

/// What a report tells a user to type names everything that the run was made of.
#[test]
fn a_run_is_repeated_by_its_command() {
    let kernel = "linux-6.12:hz=1000";
    let spelled = scenario("juno-r2", kernel, "periodic -f 73 -t 2", Some(500 * MS));
    assert_eq!(
        spelled.command(6),
        "schedtwin run -m juno-r2 -k linux-6.12:hz=1000 -w 'periodic -f 73 -t 2' --duration 500000000ns --seed 6"
    );
    let plain = scenario("juno-r2", KERNEL, "ui-phone", None);
    assert_eq!(plain.command(1), "schedtwin run -m juno-r2 -k linux-6.12 -w ui-phone --seed 1");
}

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
