// SPDX-License-Identifier: GPL-2.0-or-later
//! Negotiation scenarios on small machines.

use super::*;

#[test]
fn a_cluster_is_off_while_all_of_it_has_asked() {
    let machine = Machine::load("juno-r2").unwrap();
    let mut negotiation = Negotiation::new(&machine);
    assert!(negotiation.negotiates(CpuId(0)) && negotiation.negotiates(CpuId(5)));
    let (wfi, cpu, cluster) = (Some(0), Some(1), Some(2));
    // The states that CPUs 4 and 5 have asked for, and those that they are in.
    for (asked, rest) in [
        ([None, None], [None, None]),
        ([cluster, None], [cpu, None]),
        ([cluster, wfi], [cpu, wfi]),
        ([cluster, cpu], [cpu, cpu]),
        ([cluster, cluster], [cluster, cluster]),
        ([cpu, cpu], [cpu, cpu]),
        ([None, cluster], [None, cpu]),
    ] {
        negotiation.ask(CpuId(4), asked[0]);
        negotiation.ask(CpuId(5), asked[1]);
        let rests = [4, 5].map(|c| negotiation.rests_in(&machine, CpuId(c)));
        assert_eq!(rests, rest, "{asked:?}");
        // The other cluster is none of their business.
        negotiation.ask(CpuId(0), cluster);
        assert_eq!(negotiation.rests_in(&machine, CpuId(0)), cpu);
    }
    assert!(!Negotiation::new(&Machine::load("pixel6").unwrap()).negotiates(CpuId(0)));
}

/// A thread is in an idle state of its own while another one of its core is awake.
#[test]
fn a_core_is_as_shallow_as_its_threads() {
    let machine = Machine::load("i5-10600k").unwrap();
    let mut negotiation = Negotiation::new(&machine);
    let (c1, c2, c3) = (Some(1), Some(2), Some(3));
    // The states that the threads of core 0 have asked for, and those that they are in.
    for (asked, rest) in
        [([c3, None], [c1, None]), ([c3, c1], [c1, c1]), ([c3, c2], [c2, c2]), ([c3, c3], [c3, c3])]
    {
        negotiation.ask(CpuId(0), asked[0]);
        negotiation.ask(CpuId(6), asked[1]);
        assert_eq!([0, 6].map(|c| negotiation.rests_in(&machine, CpuId(c))), rest, "{asked:?}");
    }
    assert_eq!(negotiation.sharers(CpuId(0)), [CpuId(0), CpuId(6)]);
}

/// Juno with a state of the package below those of the clusters.
fn with_package_state() -> Machine {
    let source = schedtwin_machine::builtin_source("juno-r2").expect("it is built in");
    let text = &source.text;
    let deepest = "local_timer_stops = true, cluster = true, deep = true },\n";
    let system = "  { name = \"system\", entry_ns = 400_000, exit_ns = 2_000_000, residency_us = 5_000, \
                  power = \"off\", package = true, deep = true },\n";
    let text = text.replace(deepest, &format!("{deepest}{system}"));
    Machine::from_source(&schedtwin_input::Source::new("system.toml", text), &[]).unwrap()
}

/// The tree: a CPU's own states, those of its cluster, that of the package.
#[test]
fn a_package_is_off_while_all_clusters_have_asked() {
    let machine = with_package_state();
    let mut negotiation = Negotiation::new(&machine);
    let system = Some(3);
    for c in 0..6 {
        negotiation.ask(CpuId(c), system);
        let rests = |c: u16| negotiation.rests_in(&machine, CpuId(c));
        match c {
            // A request for the package is one for the cluster, too.
            0..=2 => assert_eq!(rests(0), Some(1), "cpu{c}: the cluster is not complete"),
            3 => assert_eq!((rests(0), rests(3)), (Some(2), Some(2))),
            4 => assert_eq!((rests(0), rests(4)), (Some(2), Some(1))),
            _ => assert_eq!((rests(0), rests(4), rests(5)), (system, system, system)),
        }
    }
    // One asks for its cluster alone: the package is on, both clusters stay off.
    negotiation.ask(CpuId(5), Some(2));
    let rests = |negotiation: &Negotiation, c: u16| negotiation.rests_in(&machine, CpuId(c));
    assert_eq!([0, 4, 5].map(|c| rests(&negotiation, c)), [Some(2); 3]);
    // One wakes: its cluster is on, the other stays off.
    negotiation.ask(CpuId(5), None);
    assert_eq!([0, 4, 5].map(|c| rests(&negotiation, c)), [Some(2), Some(1), None]);
}

/// Two levels of power domains that firmware turns off by itself.
fn with_power_domains() -> Machine {
    let source = schedtwin_machine::builtin_source("uniform8").expect("it is built in");
    let text = &source.text;
    let tables = "\n[power.half]\ncpus = \"4-7\"\nuw = 5\n\
        states = [{ name = \"off\", cpus_in = \"off\", uw = 1, exit_ns = 100 }]\n\
        [power.all]\ncpus = \"0-7\"\nuw = 50\nstates = [\n\
        { name = \"quiet\", cpus_in = \"WFI\", uw = 40, exit_ns = 10 },\n\
        { name = \"down\", cpus_in = \"off\", uw = 2, exit_ns = 3000, residency_us = 10000 },\n]\n";
    let source = schedtwin_input::Source::new("firmware.toml", format!("{text}{tables}"));
    Machine::from_source(&source, &[]).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Firmware's states: the deepest common idle state, the quiet time, and what the first to
/// leave pays.
#[test]
fn firmware_turns_off_what_all_rest_in() {
    let machine = with_power_domains();
    assert_eq!(machine.power_domains[PowerDomainId(0)].parent, Some(1));
    let mut negotiation = Negotiation::new(&machine);
    let mut states = [None; 2];
    let mut go = |negotiation: &mut Negotiation, cpu: u16, rests, quiet_ns: Ns| {
        let changed = |domain: PowerDomainId, state| states[domain.index()] = state;
        negotiation.rest_changed(&machine, CpuId(cpu), rests, |_| quiet_ns, changed);
        negotiation.verify(&machine);
        states
    };
    let (half, all, long) = (0, 1, 20_000_000);
    let (wfi, off) = (Some(0), Some(2));
    for cpu in 0..7 {
        assert_eq!(go(&mut negotiation, cpu, off, long), [None; 2]);
    }
    assert_eq!(go(&mut negotiation, 7, wfi, long), [None, Some(0)], "one waits in WFI");
    assert_eq!(go(&mut negotiation, 7, off, long), [Some(0), Some(1)]);
    assert_eq!(negotiation.clone().wait_ns(&machine, CpuId(7), 50), 3_100);
    // One of the other half wakes: this half stays off.
    assert_eq!(negotiation.wait_ns(&machine, CpuId(0), 50), 3_000);
    let states = go(&mut negotiation, 0, None, long);
    assert_eq!((states[half], states[all]), (Some(0), None));
    // A CPU that wakes meanwhile waits for the remaining time, and for its own half.
    assert_eq!(negotiation.clone().wait_ns(&machine, CpuId(1), 1_050), 2_000);
    assert_eq!(negotiation.clone().wait_ns(&machine, CpuId(7), 1_050), 2_100);
    assert_eq!(negotiation.clone().wait_ns(&machine, CpuId(7), 3_050), 100);
    // It is back, and a timer is due in 9 ms: too soon for the deepest state.
    assert_eq!(go(&mut negotiation, 0, off, 9_000_000), [Some(0), Some(0)]);
    assert_eq!(negotiation.wait_ns(&machine, CpuId(7), 9_000), 110);
}
