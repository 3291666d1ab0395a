// SPDX-License-Identifier: GPL-2.0-or-later
//! The built-in machines load, say what their sources say, and describe themselves.

use schedtwin_machine::{CostScale, DriverWait, Machine, Shared, builtin_names};
use schedtwin_types::{ClockDomainId, CpuId};

/// A file of the reference material, or `None` (with a line that says so) where it is absent.
fn reference(path: &str) -> Option<String> {
    let full = format!("{}/../../../shared/{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(full).ok();
    if text.is_none() {
        eprintln!("skipped: the reference material has no {path} here");
    }
    text
}

#[test]
fn every_built_in_machine_loads_and_describes_itself() {
    let names = builtin_names();
    assert_eq!(
        names.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        [
            "altra-2p160",
            "epyc-milan-2x64",
            "i5-10600k",
            "i7-10700",
            "i7-3630qm",
            "i7-4790",
            "icelake-2s",
            "juno-r2",
            "kunpeng-920",
            "laptop-8c16t",
            "pixel6",
            "pixel9",
            "power10-8core",
            "rig8",
            "rk3399",
            "rpi4",
            "ryzen-5950x",
            "sm8150",
            "sm8250",
            "spr-2s224",
            "uniform8",
            "x86-2cpu-hz100",
            "xeon-8260-2s"
        ]
    );
    for (name, description) in names {
        let machine =
            Machine::load(name).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        assert_eq!(machine.name, name);
        assert!(machine.warnings.is_empty(), "{}", machine.warnings);
        assert!(description.len() <= 100, "{description}");
        let text = machine.describe();
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }
}

/// Each CPU's place beside its number, in the topologies that tell the kernel of threads, nodes and distances.
#[test]
fn servers_and_laptops_have_the_published_topologies() {
    // Machine, then the number of cores, caches, packages and nodes.
    for (spec, counts) in [
        ("altra-2p160", [160, 80, 2, 2]),
        ("epyc-milan-2x64", [128, 16, 2, 2]),
        ("epyc-milan-2x64:topology=nps2", [128, 16, 2, 4]),
        ("epyc-milan-2x64:topology=nps4", [128, 16, 2, 8]),
        ("i5-10600k", [6, 1, 1, 1]),
        ("i7-10700", [8, 1, 1, 1]),
        ("i7-3630qm", [4, 1, 1, 1]),
        ("i7-4790", [4, 1, 1, 1]),
        ("icelake-2s", [64, 2, 2, 2]),
        ("kunpeng-920", [128, 4, 2, 4]),
        ("kunpeng-920:part=node", [32, 1, 1, 1]),
        ("kunpeng-920:part=node24", [24, 1, 1, 1]),
        ("laptop-8c16t", [8, 1, 1, 1]),
        ("power10-8core", [16, 16, 1, 1]),
        ("power10-8core:topology=hemispheres", [16, 16, 1, 1]),
        ("ryzen-5950x", [16, 2, 1, 1]),
        ("spr-2s224", [112, 2, 2, 2]),
        ("x86-2cpu-hz100", [2, 1, 1, 1]),
        ("xeon-8260-2s", [48, 4, 2, 4]),
        ("xeon-8260-2s:topology=snc-off", [48, 2, 2, 2]),
    ] {
        let machine = Machine::load(spec).unwrap();
        let parts = |of: fn(&schedtwin_machine::Cpu) -> u16| {
            machine.cpus.iter().map(of).collect::<std::collections::BTreeSet<_>>().len()
        };
        let found = [parts(|c| c.core), parts(|c| c.llc), parts(|c| c.package), parts(|c| c.node)];
        assert_eq!(found, counts, "{spec}");
        let threads = machine.smt.is_some();
        assert_eq!(machine.kernel_topology.smt, threads, "{spec}");
        // Every core has as many threads as any other.
        let first = machine.threads_of(CpuId(0)).count();
        assert!(
            (0..machine.nr_cpus()).all(|c| machine.threads_of(CpuId(c as u16)).count() == first)
        );
    }
    let epyc = Machine::load("epyc-milan-2x64:topology=nps4").unwrap();
    let (node, socket) = (|cpu: usize| epyc.cpus[cpu].node, |cpu: usize| epyc.cpus[cpu].package);
    // Socket 0 is 0-63 and 128-191, as published.
    let (near, far) = ([0, 63, 128, 191].map(socket), [64, 127, 192, 255].map(socket));
    assert_eq!((near, far), ([0; 4], [1; 4]));
    assert_eq!([0, 15, 16, 143, 144, 112, 240].map(node), [0, 0, 1, 0, 1, 7, 7]);
    let distances = &epyc.kernel_topology.distances;
    for (from, row) in distances.iter().enumerate() {
        for (to, distance) in row.iter().enumerate() {
            let expected = match (from == to, from / 4 == to / 4) {
                (true, _) => 10,
                (_, true) => 12,
                _ => 32,
            };
            assert_eq!(*distance, expected, "{from} {to}");
        }
    }
    for estimated in ["smt", "interrupts", "path_costs", "topologies.nps4.distances"] {
        assert!(epyc.estimates.iter().any(|path| path == estimated), "{estimated}");
        assert!(epyc.describe().split("\nestimates").nth(1).unwrap().contains(estimated));
    }
    let power10 = Machine::load("power10-8core:topology=hemispheres").unwrap();
    assert_eq!([0, 31, 32, 63].map(|c: usize| power10.cpus[c].hemisphere.unwrap()), [0, 0, 1, 1]);
}

#[test]
fn pixel6_says_what_its_sources_say() {
    let Some(csv) = reference("hardware/pixel6_opp.csv") else {
        return;
    };
    let machine = Machine::load("pixel6").unwrap();
    let rig = Machine::load("rig8").unwrap();
    let mut seen = 0;
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let micro = |field: usize| (fields[field].parse::<f64>().unwrap() * 1000.0).round() as u64;
        let domain = machine.domains.find(|d| d.name == fields[0]).unwrap();
        assert_eq!(machine.domains[domain].cpus[0].to_string(), fields[1]);
        let opp = machine.domains[domain].opp_of(fields[2].parse().unwrap()).unwrap();
        let rig_opp = rig.domains[domain].opps[opp];
        let opp = machine.domains[domain].opps[opp];
        assert_eq!(opp.microvolt, Some(fields[3].parse().unwrap()));
        assert_eq!(
            (opp.em_power_uw, opp.active_uw, opp.idle_wfi_uw, opp.static_uw),
            (micro(4), micro(7), micro(8), micro(9)),
            "{line}"
        );
        assert_eq!((rig_opp.khz, rig_opp.em_power_uw), (opp.khz, opp.em_power_uw));
        seen += 1;
    }
    assert_eq!(seen, machine.domains.iter().map(|d| d.opps.len()).sum::<usize>());
}

#[test]
fn pixel6_reads_wattsons_curves() {
    let machine = Machine::load("pixel6").unwrap();
    let micro = |text: &str| (text.parse::<f64>().unwrap() * 1000.0).round() as u64;
    // Middle and big cores: the curve by frequency alone.
    if let Some(csv) = reference("hardware/wattson/Tensor__cpu_1d.csv") {
        for line in csv.lines().skip(1) {
            let f: Vec<&str> = line.split(',').collect();
            let domain = &machine.domains[machine.cpus[f[1].parse::<usize>().unwrap()].domain];
            let opp = domain.opps[domain.opp_of(f[2].parse().unwrap()).unwrap()];
            assert_eq!(
                (opp.static_uw, opp.active_uw, opp.idle_wfi_uw),
                (micro(f[3]), micro(f[4]), micro(f[5]))
            );
            assert_eq!(micro(f[6]), 0, "c2 draws nothing");
        }
    }
    // Little cores: by their own frequency and that of the others, every value and no other.
    if let Some(csv) = reference("hardware/wattson/Tensor__cpu_2d.csv") {
        let little = &machine.power_dependences[0];
        assert_eq!((machine.power_dependences.len(), little.domain), (1, ClockDomainId(0)));
        let mut lengths = [[0; 11]; 2];
        let mut seen = 0;
        for line in csv.lines().skip(1) {
            let f: Vec<&str> = line.split(',').collect();
            let table = little
                .tables
                .iter()
                .position(|t| machine.domains[t.on].cpus[0].to_string() == f[3]);
            let table = table.unwrap();
            let row = machine.domains[ClockDomainId(0)].opp_of(f[2].parse().unwrap()).unwrap();
            let on = &machine.domains[little.tables[table].on];
            let column = on.opp_of(f[4].parse().unwrap()).unwrap();
            let power = little.tables[table].rows[row][column];
            assert_eq!(
                (power.static_uw, power.active_uw, power.wfi_uw),
                (micro(f[5]), micro(f[6]), micro(f[7])),
                "{line}"
            );
            lengths[table][row] += 1;
            seen += 1;
            if f[3] == "6" && f[4] == "500000" {
                let opp = machine.domains[ClockDomainId(0)].opps[row];
                let plain = (opp.static_uw, opp.active_uw, opp.idle_wfi_uw);
                assert_eq!(plain, (power.static_uw, power.active_uw, power.wfi_uw));
            }
        }
        assert_eq!(seen, 250);
        for (table, lengths) in little.tables.iter().zip(lengths) {
            for (row, length) in table.rows.iter().zip(lengths) {
                // What was not measured is the last that was.
                assert!(row[length..].iter().all(|power| *power == row[length - 1]));
            }
        }
    }
}

#[test]
fn juno_r2_says_what_its_sources_say() {
    let Some(csv) = reference("hardware/juno_r2_opp.csv") else {
        return;
    };
    let machine = Machine::load("juno-r2").unwrap();
    let mut seen = 0;
    for line in csv.lines().skip(1) {
        let f: Vec<&str> = line.split(',').collect();
        let cpu = CpuId(f[1].parse().unwrap());
        let domain = machine.domain_of(cpu);
        assert_eq!((domain.name.as_str(), domain.cpus[0]), (f[0], cpu));
        let index = domain.opp_of(f[2].parse().unwrap()).unwrap();
        let opp = domain.opps[index];
        let number = |field: usize| f[field].parse::<f64>().unwrap();
        assert_eq!(f64::from(opp.microvolt.unwrap()) / 1e6, number(4));
        // The table is rounded to a tenth of a milliwatt; so is the capacity, to which Linux does not round.
        assert!((opp.em_power_uw as f64 / 1000.0 - number(5)).abs() <= 0.05, "{line}");
        let capacity = machine.energy_model(domain)[index].performance as f64;
        assert!(number(3) - capacity < 1.5 && number(3) >= capacity, "{line}");
        let milliwatts = (opp.active_uw / 1000, opp.static_uw / 1000);
        assert_eq!(
            (milliwatts.0.to_string().as_str(), milliwatts.1.to_string().as_str()),
            (f[6], f[7])
        );
        seen += 1;
    }
    assert_eq!(seen, 6);
    assert_eq!((machine.cpus[0].capacity, machine.cpus[4].capacity), (383, 1024));
    for cpu in [0, 5] {
        let states = machine.idle_states(CpuId(cpu));
        let told = states.iter().map(|s| {
            (s.name.as_str(), s.kernel_exit_latency_ns / 1000, s.target_residency_ns / 1000)
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [("WFI", 1, 1), ("cpu-sleep-0", 1500, 2000), ("cluster-sleep-0", 1600, 2500)]
        );
        let shared = [Shared::Own, Shared::Own, Shared::Cluster];
        assert_eq!(states.iter().map(|s| s.shared).collect::<Vec<_>>(), shared);
    }
}

/// Loops of rt-app on each kind of core, where the file says that they do not follow the capacities.
#[test]
fn kinds_of_work_meet_the_calibrations() {
    for (spec, cpu, ns_per_loop) in [
        ("juno-r2", 0, 186),
        ("juno-r2", 4, 66),
        ("juno-r2:kinds=false", 0, 176),
        ("pixel6:kinds=true", 0, 116),
        ("pixel6:kinds=true", 7, 21),
        ("pixel6", 0, 173),
    ] {
        let machine = Machine::load(spec).unwrap();
        let cpu = CpuId(cpu);
        let rate = machine.rate_of(cpu, machine.domain_of(cpu).max_khz(), machine.kind("rt-app"));
        // Rounded to the nearest: the file's factors have three digits.
        let ns = schedtwin_machine::time_for(1000 * machine.ns_per_loop, rate);
        assert_eq!((ns + 500) / 1000, ns_per_loop, "{spec}");
    }
    let stalls = Machine::load("juno-r2:work.rt-app.stall_permille=500").unwrap();
    let (half, full) = (stalls.rate_of(CpuId(4), 600_000, Some(0)), schedtwin_machine::RATE_FULL);
    assert_eq!(half, full * 2 / 3);
}

#[test]
fn a_choice_changes_what_belongs_together() {
    let capacities = |spec: &str| {
        let machine = Machine::load(spec).unwrap();
        [0, 4, 6].map(|cpu| machine.cpus[cpu].capacity)
    };
    assert_eq!(capacities("pixel6:capacities=early"), [124, 427, 1024]);
    assert_eq!(capacities("pixel6:capacities=late"), [160, 498, 1024]);
    // What is named itself wins, in whichever order.
    assert_eq!(capacities("pixel6:capacities=late,cpu.mid.capacity=500"), [160, 500, 1024]);
    assert_eq!(capacities("pixel6:cpu.mid.capacity=500,capacities=late"), [160, 500, 1024]);
    // The energy model follows the capacities.
    let late = Machine::load("pixel6:capacities=late").unwrap();
    assert_eq!(late.energy_model(&late.domains[ClockDomainId(0)])[0].performance, 26);

    let stock = Machine::load("pixel6").unwrap();
    assert!(
        stock.domains.iter().all(|d| !d.fast_switch && d.kernel_transition_latency_ns == 5_000_000)
    );
    let quick = Machine::load("pixel6:transition_latency_us=1000").unwrap();
    assert!(
        quick.domains.iter().all(|d| !d.fast_switch && d.kernel_transition_latency_ns == 1_000_000)
    );
    let fast = Machine::load("pixel6:switch=fast").unwrap();
    assert!(
        fast.domains.iter().all(|d| d.fast_switch && d.kernel_transition_latency_ns == 500_000)
    );
}

#[test]
fn rig8_is_the_board_that_was_recorded() {
    let Some(meta) = reference("rig/recordings/ui-pair.meta.txt") else {
        return;
    };
    let machine = Machine::load("rig8").unwrap();
    let value = |path: &str| {
        let line = meta.lines().find(|l| l.starts_with(&format!("{path} = ")));
        line.map(|l| l.split(" = ").nth(1).unwrap_or("").trim().to_string())
    };
    for domain in &machine.domains {
        let lowest = domain.cpus[0];
        let policy = format!("/sys/devices/system/cpu/cpufreq/policy{lowest}");
        let cpus: Vec<String> = domain.cpus.iter().map(|c| c.to_string()).collect();
        assert_eq!(value(&format!("{policy}/related_cpus")).unwrap(), cpus.join(" "));
        let khz: Vec<String> = domain.opps.iter().map(|o| o.khz.to_string()).collect();
        assert_eq!(
            value(&format!("{policy}/scaling_available_frequencies")).unwrap(),
            khz.join(" ")
        );
        let latency = domain.kernel_transition_latency_ns.to_string();
        assert_eq!(value(&format!("{policy}/cpuinfo_transition_latency")).unwrap(), latency);

        for (opp, em) in domain.opps.iter().zip(machine.energy_model(domain)) {
            let ps = format!("/sys/kernel/debug/energy_model/cpu{lowest}/ps:{}", opp.khz);
            let printed = |what: &str| value(&format!("{ps}/{what}")).unwrap();
            assert_eq!(printed("power"), opp.em_power_uw.to_string());
            assert_eq!(printed("performance"), em.performance.to_string());
            assert_eq!(printed("cost"), em.cost.unwrap().to_string());
            assert_eq!(printed("inefficient"), u8::from(em.inefficient).to_string());
        }
        for (index, state) in machine.idle_states(lowest).iter().enumerate() {
            let path = format!("/sys/devices/system/cpu/cpu{lowest}/cpuidle/state{index}");
            assert_eq!(value(&format!("{path}/name")).unwrap(), state.name);
            assert_eq!(
                value(&format!("{path}/latency")).unwrap(),
                (state.kernel_exit_latency_ns / 1000).to_string()
            );
            assert_eq!(
                value(&format!("{path}/residency")).unwrap(),
                (state.target_residency_ns / 1000).to_string()
            );
            if index == 1 {
                // The driver carries the true exit latency in the field for power.
                assert_eq!(
                    value(&format!("{path}/power")).unwrap(),
                    (state.exit_latency_ns / 1000).to_string()
                );
            }
        }
    }
}

#[test]
fn path_costs_meet_their_anchors() {
    // Round trip of a pipe on one core: 2 writes, 2 reads, 2 wakeups, 2 switches; 2.80 us at 4.1 GHz.
    let costs = Machine::load("pixel6").unwrap().path_costs;
    assert_eq!(costs.scale, CostScale::Work);
    let pipe =
        4 * costs.syscall_ns + 2 * (costs.wakeup_ns + costs.schedule_ns + costs.context_switch_ns);
    assert_eq!(pipe, 2_800 * 41 / 28);
    // sched_waking to sched_switch on an idle CPU of the board, through EAS: 10 us.
    let costs = Machine::load("rig8").unwrap().path_costs;
    assert_eq!(costs.scale, CostScale::Time);
    let search = costs.wakeup_ns + 3 * costs.energy_per_domain_ns;
    let switch = costs.idle_exit_ns + costs.schedule_ns + costs.context_switch_ns;
    assert_eq!((search, switch), (6_760, 3_300));
}

#[test]
fn settings_make_variants() {
    let stock = Machine::load("pixel6:fast_switch=false,transition_latency_us=5000,coupling=false")
        .unwrap();
    assert_eq!(
        stock.identity,
        "pixel6:fast_switch=false,transition_latency_us=5000,coupling=false"
    );
    assert!(
        stock.domains.iter().all(|d| !d.fast_switch && d.kernel_transition_latency_ns == 5_000_000)
    );
    assert!(stock.couplings.is_empty());
    let driver = |spec: &str| {
        let domain = &Machine::load(spec).unwrap().domains[ClockDomainId(0)];
        (domain.driver, domain.driver_latency_ns)
    };
    assert_eq!(driver("rig8"), (DriverWait::Spins, 0));
    assert_eq!(driver("rig8:driver=sleeps,driver_latency_us=7"), (DriverWait::Sleeps, 7_000));
    assert_ne!(stock.fingerprint_text(), Machine::load("pixel6").unwrap().fingerprint_text());

    // The order of the settings makes no other machine, and neither does the place of the file.
    let other = Machine::load("pixel6:coupling=false,transition_latency_us=5000,fast_switch=false")
        .unwrap();
    assert_eq!(stock.fingerprint_text(), other.fingerprint_text());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/pixel6.toml");
    let file = Machine::load(path).unwrap();
    assert_eq!(file.fingerprint_text(), Machine::load("pixel6").unwrap().fingerprint_text());
    assert_eq!(file.rate(CpuId(6), 2_802_000), schedtwin_machine::RATE_FULL);

    let parts = |spec: &str| {
        let machine = Machine::load(spec).unwrap();
        let cpu = machine.cpus[5].clone();
        (cpu.package, cpu.llc, cpu.cluster)
    };
    assert_eq!(parts("pixel6"), (0, 0, Some(1)));
    assert_eq!(parts("pixel6:topology=flat"), (0, 0, None));
    assert_eq!(parts("pixel6:topology=phantom"), (1, 1, None));
    assert_eq!(parts("rig8:topology=clustered"), (0, 0, Some(1)));

    let slow =
        Machine::load("uniform8:path_costs.percent=200,domain.all.opp[0].khz=600_000").unwrap();
    assert_eq!(slow.path_costs.syscall_ns, 500);
    assert_eq!(slow.domain_of(CpuId(3)).min_khz(), 600_000);
    assert_eq!(Machine::load("uniform8:path_costs.percent=0").unwrap().path_costs.syscall_ns, 1);
}

#[test]
fn settings_that_make_no_machine_point_at_the_command_line() {
    for (spec, expected) in [
        (
            "pixel7",
            "<command line>:1:1: there is no machine `pixel7`\n  help: did you mean `pixel6`?",
        ),
        (
            "pixel6+runnable-boost",
            "<command line>:1:1: there is no machine `pixel6+runnable-boost`\n  \
             help: a machine takes settings (`NAME:KEY=VALUE`); patches belong to kernels",
        ),
        (
            "toaster",
            "<command line>:1:1: there is no machine `toaster`\n  \
             help: built in: `altra-2p160`, `epyc-milan-2x64`, `i5-10600k`, `i7-10700`, `i7-3630qm`, `i7-4790`, \
             `icelake-2s`, `juno-r2`, `kunpeng-920`, `laptop-8c16t`, `pixel6`, `pixel9`, `power10-8core`, `rig8`, `rk3399`, \
             `rpi4`, `ryzen-5950x`, `sm8150`, `sm8250`, `spr-2s224`, `uniform8`, `x86-2cpu-hz100`, `xeon-8260-2s`; a path ends in .toml or contains `/`",
        ),
        ("no/such.toml", "no/such.toml: there is no such file"),
        (
            "pixel6:couplin=false",
            "<command line>:1:8: there is no setting `couplin`\n  help: did you mean `coupling`?",
        ),
        (
            "pixel6:coupling=no",
            "<command line>:1:17: `coupling` must be `true` or `false`, not `no`",
        ),
        (
            "pixel6:topology=phantm",
            "<command line>:1:17: there is no topology `phantm`\n  help: did you mean `phantom`?",
        ),
        (
            "pixel6:topology=mc",
            "<command line>:1:17: there is no topology `mc`\n  help: it is called `flat` now",
        ),
        (
            "pixel6:capacities=lat,switch=slow",
            "<command line>:1:19: `capacities` cannot be `lat`\n  help: did you mean `late`?\n\
             <command line>:1:30: `switch` cannot be `slow`\n  help: known: `fast`, `stock`",
        ),
        (
            "pixel6:cpu.big.capacity=2000",
            "<command line>:1:25: capacity 2000 is not within 1 to 1024",
        ),
        (
            "pixel6:cpu.big.capacity=1000",
            "<command line>:1:25: the strongest CPUs have capacity 1024, these are the strongest and have 1000",
        ),
        (
            "pixel6:driver=waits,driver_latency_us=2_000_000",
            "<command line>:1:15: there is no driver that `waits`\n  help: known: `sleeps`, `spins`\n\
             <command line>:1:39: a frequency switch takes more than a second",
        ),
        ("pixel6:domain.mid.opp[1].khz=400000", "<command line>:1:30: 400000 kHz is listed twice"),
        ("pixel6:transition_latency_us=-1", "<command line>:1:30: `-1` must not be negative"),
        (
            "pixel6:ns_per_loop=0,path_costs.tick_ns=99_000_000",
            "<command line>:1:20: `ns_per_loop` is not within 1 to 1000000\n\
             <command line>:1:41: `tick_ns` is more than 10 ms\n  help: costs are in nanoseconds",
        ),
    ] {
        let faults = Machine::load(spec).unwrap_err();
        assert_eq!(faults.to_string(), expected, "{spec}");
        assert!(faults.render(false).contains("error"));
    }
}
