// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios that made the twin panic. Each was found by random scenarios, and runs here under verification.

use crate::determinism::assert_reference;
use crate::scenarios::{KERNEL, MS, scenario};
use schedtwin_engine::{RunOptions, Scenario};

/// What a report tells a user to type names everything that the run was made of.
#[test]
fn a_run_is_repeated_by_its_command() {
    let kernel = "linux-6.12:hz=1000";
    let spelled = scenario("juno-r2", kernel, "periodic -f 73 -t 2", Some(500 * MS));
    assert_eq!(
        spelled.command(6),
        "schedtwin run -m juno-r2 -k linux-6.12:hz=1000 -w 'periodic -f 73 -t 2' --duration 500ms --seed 6"
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

/// A fair server of 4 s in 4 s: the product of remaining runtime and period has more than 63 bits, and wraps as in
/// Linux. The shortest period that Linux takes is as good, and what it refuses is refused.
#[test]
fn fair_servers_up_to_the_kernels_limits() {
    let kernel = |period: u64, runtime: u64| {
        format!("linux-6.12:fair_server.period_us={period},fair_server.runtime_us={runtime}")
    };
    for (period, runtime) in [(4_000_000, 4_000_000), (4_194_304, 4_194_304), (100, 100), (100, 1)]
    {
        let endless = format!("{},rt_runtime_us=-1", kernel(period, runtime));
        for machine in ["uniform8", "juno-r2"] {
            let scenario = Scenario::new(machine, &endless, "ui-phone", Some(300 * MS)).unwrap();
            scenario.run(1, RunOptions::default()).expect("nothing is written");
        }
    }
    let refused = |machine: &str, kernel: &str| {
        let faults = Scenario::new(machine, kernel, "ui-phone", Some(MS)).err().unwrap();
        assert!(faults.to_string().contains("which Linux refuses"), "{faults}");
    };
    refused("uniform8", &kernel(4_000_000, 4_000_000));
    refused("pixel6", &kernel(1_000_000, 600_000));
    assert!(Scenario::new("uniform8", &kernel(1_000_000, 600_000), "ui-phone", Some(MS)).is_ok());
}
