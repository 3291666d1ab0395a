//! The built-in machines load, say what their sources say, and describe themselves.

use schedtwin_machine::{CostScale, DriverWait, Machine, builtin_names};
use schedtwin_types::CpuId;

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
        ["pixel6", "rig8", "uniform8"]
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
        let domain = machine.domains.iter().position(|d| d.name == fields[0]).unwrap();
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
    // Little cores: the curve while the big ones vote for their lowest frequency.
    if let Some(csv) = reference("hardware/wattson/Tensor__cpu_2d.csv") {
        let lowest = csv
            .lines()
            .skip(1)
            .map(|l| l.split(',').collect::<Vec<_>>())
            .filter(|f| f[3] == "6" && f[4] == "500000");
        let mut seen = 0;
        for f in lowest {
            let opp =
                machine.domains[0].opps[machine.domains[0].opp_of(f[2].parse().unwrap()).unwrap()];
            assert_eq!(
                (opp.static_uw, opp.active_uw, opp.idle_wfi_uw),
                (micro(f[5]), micro(f[6]), micro(f[7]))
            );
            seen += 1;
        }
        assert_eq!(seen, 11);
    }
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
    // Waking to switch on an idle CPU of the board: 11 us; with printing, as the settings in its
    // file say, 34 + 9 and the end of the interrupt.
    let wake = |spec: &str| {
        let costs = Machine::load(spec).unwrap().path_costs;
        assert_eq!(costs.scale, CostScale::Time);
        costs.wakeup_ns
            + 3 * costs.energy_per_domain_ns
            + costs.interrupt_ns / 2
            + costs.idle_exit_ns
            + costs.schedule_ns
            + costs.context_switch_ns
    };
    assert_eq!(wake("rig8"), 11_000);
    let file = schedtwin_machine::builtin_source("rig8").unwrap();
    let printing = file
        .text
        .lines()
        .find_map(|l| l.strip_prefix("# ").filter(|l| l.contains("wakeup_ns=19_000")));
    assert_eq!(wake(printing.unwrap()), 44_000);
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
        let domain = &Machine::load(spec).unwrap().domains[0];
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
    assert_eq!(parts("pixel6"), (0, 0, None));
    assert_eq!(parts("pixel6:topology=clustered"), (0, 0, Some(1)));
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
             help: built in: `pixel6`, `rig8`, `uniform8`; a path ends in .toml or contains `/`",
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
            "pixel6:topology=clusterd",
            "<command line>:1:17: there is no topology `clusterd`\n  help: did you mean `clustered`?",
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
