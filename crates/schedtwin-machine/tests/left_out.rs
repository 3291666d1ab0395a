// SPDX-License-Identifier: GPL-2.0-or-later
//! A file of a dozen lines: what the classes of its cores stand for, and what they do not.

use schedtwin_input::{Source, Spec};
use schedtwin_machine::{Architecture, CostScale, IdlePower, Machine};
use schedtwin_types::ClockDomainId;

const SMALL: &str = r#"
name = "small"
description = "two kinds of cores"
[core.a55]
class = "little"
[core.x1]
class = "big"
idle = [
  { name = "WFI", exit_ns = 1_000, residency_us = 1, power = "wfi" },
  { name = "off", kernel_exit_ns = 300_000, residency_us = 2_000, power = "off", deep = true },
]
[cpu.little]
cpus = "0-1"
core = "a55"
capacity = 300
[cpu.big]
cpus = "2-3"
core = "x1"
capacity = 1024
[domain.little]
cpus = "0-1"
opp = [{ khz = 1_000_000, em_uw = 50_000 }]
[domain.big]
cpus = "2-3"
opp = [{ khz = 700_000, em_uw = 90_000 }, { khz = 1_400_000, em_uw = 400_000, active_uw = 500_000 }]
"#;

fn machine(text: &str, settings: &str) -> Machine {
    let spec = Spec::parse_machine(&format!("x:{settings}"));
    let settings = spec.map_or(Vec::new(), |spec| spec.settings);
    Machine::from_source(&Source::new("x.toml", text), &settings).unwrap_or_else(|f| panic!("{f}"))
}

#[test]
fn classes_stand_for_what_is_left_out() {
    let small = machine(SMALL, "");
    assert!(small.warnings.is_empty(), "{}", small.warnings);
    assert_eq!(
        small.left_out,
        [
            "core.a55.idle",
            "core.x1.idle[0].entry_ns",
            "core.x1.idle[1].entry_ns",
            "core.x1.idle[1].exit_ns",
            "domain.big.opp.active_uw",
            "domain.big.opp.wfi_uw",
            "domain.little.opp.active_uw",
            "domain.little.opp.wfi_uw",
            "ns_per_loop",
            "transition_latency_us",
            "settle_us",
            "fast_switch",
            "dvfs_possible_from_any_cpu",
            "interrupts",
            "path_costs",
            "topologies.flat",
        ]
    );
    assert!(small.estimates.is_empty());
    let told = small.describe();
    let told = told.split("\nleft out: estimates by the class of the cores").nth(1).unwrap();
    assert!(told.contains("  path_costs") && told.contains("domain.little.opp.wfi_uw"), "{told}");
    // pixel6's costs at half its clock; 59 clocks of 1.4 GHz.
    assert_eq!((small.path_costs.schedule_ns, small.path_costs.scale), (900, CostScale::Work));
    assert_eq!((small.path_costs.pipe_ns, small.ns_per_loop), (500, 42));
    assert_eq!(small.interrupts, Machine::load("pixel6").unwrap().interrupts);
    let [little, big] = [0, 1].map(|clock| &small.domains[ClockDomainId(clock)]);
    let powers =
        |opp: &schedtwin_machine::OperatingPoint| (opp.em_power_uw, opp.active_uw, opp.idle_wfi_uw);
    assert_eq!(little.opps.iter().map(powers).collect::<Vec<_>>(), [(50_000, 50_000, 1_000)]);
    assert_eq!(
        big.opps.iter().map(powers).collect::<Vec<_>>(),
        [(90_000, 90_000, 6_300), (400_000, 500_000, 35_000)]
    );
    let off = &small.core_types[1].idle_states[1];
    let latencies = (off.entry_latency_ns, off.exit_latency_ns, off.kernel_exit_latency_ns);
    assert_eq!(latencies, (0, 300_000, 300_000));
    assert_eq!(small.core_types[0].idle_states.len(), 1);
    assert!(small.cpus.iter().all(|cpu| (cpu.package, cpu.llc, cpu.cluster) == (0, 0, None)));
}

#[test]
fn what_a_file_or_a_setting_says_wins() {
    let text = format!("ns_per_loop = 7\n{SMALL}[path_costs]\ntick_ns = 3\n");
    let small =
        machine(&text, "path_costs.percent=200,settle_us=1,domain.big.opp[1].khz=2_800_000");
    let costs = &small.path_costs;
    assert_eq!((small.ns_per_loop, costs.tick_ns, costs.schedule_ns), (7, 6, 900));
    assert_eq!(small.domains[ClockDomainId(0)].switching.settle_ns, 1_000);
    for (path, left_out) in [
        ("ns_per_loop", false),
        ("settle_us", false),
        ("path_costs", false),
        ("path_costs.tick_ns", false),
        ("path_costs.percent", false),
        ("path_costs.schedule_ns", true),
        ("interrupts", true),
    ] {
        assert_eq!(small.left_out.iter().any(|p| p == path), left_out, "{path}");
    }
    // Another class by a setting: its clock does 250 of 1024.
    let slow = machine(SMALL, "core.x1.class=little");
    assert_eq!(slow.path_costs.schedule_ns, 450 * 2 * 1024 / 250);
    assert_eq!(slow.domains[ClockDomainId(1)].opps[1].idle_wfi_uw, 10_000);
}

#[test]
fn x86_has_its_own_states_and_topology() {
    let text = "name = \"box\"\ndescription = \"\"\n[core.c]\nclass = \"desktop\"\n[cpu.all]\ncpus = \"0-3\"\ncore = \"c\"\n\
                [domain.all]\nper_cpu = true\ncpus = \"0-3\"\nopp = [{ khz = 4_100_000, em_uw = 9_000_000 }]\n";
    assert!(text.lines().count() <= 12);
    let machine = machine(text, "");
    assert_eq!(machine.kernel_topology.architecture, Architecture::X86);
    let states: Vec<_> =
        machine.core_types[0].idle_states.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(states, ["POLL", "C1"]);
    assert_eq!(machine.core_types[0].idle_states[0].power, IdlePower::ActivePermille(500));
    assert_eq!(machine.cpus[0].capacity, 1024);
    assert!(machine.left_out.iter().any(|path| path == "cpu.all.capacity"));
    // The measured round trip: 4 system calls, 2 wakeups, 2 schedule() with a switch.
    let costs = &machine.path_costs;
    let trip =
        4 * costs.syscall_ns + 2 * (costs.wakeup_ns + costs.schedule_ns + costs.context_switch_ns);
    assert!((2_700..2_900).contains(&trip), "{trip}");
}

#[test]
fn without_a_class_all_must_be_said() {
    let faults = |text: &str| {
        Machine::from_source(&Source::new("x.toml", text), &[]).unwrap_err().to_string()
    };
    let told = faults(&SMALL.replace("class = \"big\"\n", ""));
    for key in ["interrupts", "path_costs", "ns_per_loop", "settle_us", "topology"] {
        assert!(told.contains(&format!("`{key}` is missing\n")), "{key}: {told}");
    }
    let help = "is missing\n  help: or give the strongest cores a `class`";
    assert_eq!(told.matches(help).count(), 1, "{told}");
    assert!(told.contains("`exit_ns` is missing in `core.x1.idle[1]`"), "{told}");
    assert!(told.contains("`wfi_uw` is missing in `domain.big.opp[0]`"), "{told}");
    assert!(!told.contains("domain.little"), "{told}");
    let told = faults(&SMALL.replace("\"big\"\nidle", "\"bog\"\nidle"));
    assert!(
        told.contains("there is no class of cores `bog`\n  help: did you mean `big`?"),
        "{told}"
    );
}

#[test]
fn one_wrong_name_is_told_and_not_what_follows_from_it() {
    let faults = |text: String| {
        let told = Machine::from_source(&Source::new("x.toml", text), &[]).unwrap_err();
        (told.0.len(), told.to_string())
    };
    for (text, expected) in [
        (SMALL.replace("\"big\"\nidle", "\"bog\"\nidle"), "there is no class of cores `bog`"),
        (SMALL.replace("core = \"x1\"", "core = \"x2\""), "x2"),
        (SMALL.replace("[domain.big]\ncpus = \"2-3\"", "[domain.big]\ncpus = \"2\""), "CPU 3"),
        (SMALL[..SMALL.find("[domain.big]").unwrap()].to_string(), "CPU"),
    ] {
        assert_ne!(text, SMALL);
        let (count, told) = faults(text);
        assert!(count <= 2 && told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn a_key_that_a_file_leaves_out_can_be_set_in_place() {
    let cost = |spec: &str| Machine::load(spec).unwrap_or_else(|faults| panic!("{faults}"));
    let tcp_ns = |spec: &str| cost(spec).path_costs.tcp_ns;
    assert_ne!(tcp_ns("pixel6"), 777);
    assert_eq!(tcp_ns("pixel6:path_costs.tcp_ns=777"), 777);
    // A key of the top, one of a named table, one of a list's tables, one of a table that is not there.
    for setting in [
        "estimated=true",
        "core.cortex-a55.class=little",
        "core.cortex-a55.idle[1].exit_nj=5",
        "broadcast.device=x",
    ] {
        if let Err(faults) = Machine::load(&format!("pixel6:{setting}")) {
            assert!(!faults.to_string().contains("there is no setting"), "{faults}");
        }
    }
    for (setting, told) in [
        ("path_costs.tcp_ms=7", "there is no setting `tcp_ms` in `path_costs`"),
        ("core.cortex-a5.class=little", "there is no setting `cortex-a5` in `core`"),
        ("path_costs.tcp_ns=fast", "must be a whole number"),
    ] {
        let faults = Machine::load(&format!("pixel6:{setting}")).unwrap_err().to_string();
        assert!(faults.contains(told), "{setting}: {faults}");
    }
}
