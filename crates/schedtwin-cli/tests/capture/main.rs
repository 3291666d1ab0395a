// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin capture`: the script runs on made-up devices, in every shell that is here, and what it writes is
//! what they said.

mod device;
mod kernel;

use std::fs;
use std::path::Path;
use std::process::Command;

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_machine::{Architecture, Machine};
use schedtwin_types::ClockDomainId;

use device::{Device, script, shells};

/// A device that says everything that `machine` does, as a kernel of this release shows it.
fn phone(machine: &Machine, release: &str) -> Device {
    let device = Device::new();
    device.says("proc/sys/kernel/osrelease", release);
    device.says("sys/firmware/devicetree/base/model", "Raven \"MP1.0\" $(reboot)");
    device.says("proc/2/comm", "kthreadd");
    for (number, cpu) in machine.cpus.iter().enumerate() {
        device.cpu(number, "cpu_capacity", cpu.capacity);
        device.cpu(number, "topology/physical_package_id", cpu.package);
        device.cpu(number, "topology/cluster_id", cpu.cluster.map_or(-1, i32::from));
        device.cpu(number, "topology/thread_siblings_list", number);
        for (level, list) in [(1, number.to_string()), (3, format!("0-{}", machine.nr_cpus() - 1))]
        {
            device.cpu(number, &format!("cache/index{level}/level"), level);
            device.cpu(number, &format!("cache/index{level}/shared_cpu_list"), list);
        }
        device.cpu(number, "cache/index0/level", 1);
        device.cpu(number, "cache/index2/level", 2);
        let states = &machine.core_types[cpu.core_type].idle_states;
        for (index, state) in states.iter().enumerate() {
            let state_says = |key: &str, text: String| {
                device.cpu(number, &format!("cpuidle/state{index}/{key}"), text);
            };
            state_says("name", state.name.clone());
            state_says("latency", (state.kernel_exit_latency_ns / 1000).to_string());
            state_says("residency", (state.target_residency_ns / 1000).to_string());
            state_says("disable", "0".into());
        }
    }
    for domain in &machine.domains {
        let first = domain.cpus[0];
        let policy = format!("sys/devices/system/cpu/cpufreq/policy{first}");
        let words = |words: Vec<String>| words.join(" ");
        let cpus = words(domain.cpus.iter().map(|c| c.to_string()).collect());
        device.says(&format!("{policy}/related_cpus"), cpus);
        let khz = words(domain.opps.iter().map(|o| o.khz.to_string()).collect());
        device.says(&format!("{policy}/scaling_available_frequencies"), khz + " ");
        device.says(
            &format!("{policy}/cpuinfo_transition_latency"),
            domain.kernel_transition_latency_ns,
        );
        device.says(&format!("{policy}/scaling_governor"), "schedutil");
        device.says(&format!("{policy}/scaling_driver"), "exynos-acme");
        device.says(&format!("{policy}/schedutil/rate_limit_us"), 500);
        if !domain.fast_switch {
            device.says(&format!("proc/{}/comm", 70 + first.0), format!("sugov:{first}"));
        }
        for opp in &domain.opps {
            let debug = "sys/kernel/debug";
            let state = format!("{debug}/energy_model/cpu{first}/ps:{}", opp.khz);
            device.says(&format!("{state}/power"), opp.em_power_uw);
            let supply = format!("{debug}/opp/cpu{first}/opp:{}000/supply-0", opp.khz);
            device.says(&format!("{supply}/u_volt_target"), opp.microvolt.unwrap());
        }
        device.says(&format!("sys/kernel/debug/energy_model/cpu{first}/flags"), "0x1");
    }
    device
}

#[test]
fn a_phone_that_says_everything_is_captured_as_it_is() {
    for (spec, switch) in [
        ("pixel6", "fast_switch = false # a thread sugov:4 is there"),
        (
            "pixel6:switch=fast,capacities=late",
            "fast_switch = true # schedutil runs and has no thread",
        ),
    ] {
        let truth = Machine::load(spec).unwrap();
        let device = phone(&truth, "6.12.95-android16-5-gabc");
        let features = "PLACE_LAG NO_RUN_TO_PARITY WA_IDLE NO_NEXT_BUDDY UTIL_EST TTWU_QUEUE";
        device.says("sys/kernel/debug/sched/features", features);
        device.says("sys/kernel/debug/sched/tunable_scaling", 1);
        device.says("sys/kernel/debug/sched/base_slice_ns", 3_000_000);
        device.says("sys/kernel/debug/sched/preempt", "none (voluntary) full");
        device.says("proc/sys/kernel/sched_util_clamp_min_rt_default", 0);
        device.says("proc/sys/kernel/sched_rt_runtime_us", -1);
        device.says("sys/devices/system/cpu/cpuidle/current_governor", "menu");
        let config =
            "CONFIG_SMP=y\nCONFIG_HZ=300\n# CONFIG_UCLAMP_TASK is not set\nCONFIG_SCHED_CLUSTER=y";
        device.says("boot/config-6.12.95-android16-5-gabc", config);
        let (machine, kernel, machine_text, kernel_text) = device.check();

        assert_eq!(machine.nr_cpus(), 8);
        for (captured, true_cpu) in machine.cpus.iter().zip(&truth.cpus) {
            let place = |cpu: &schedtwin_machine::Cpu| {
                (cpu.capacity, cpu.domain, cpu.package, cpu.llc, cpu.cluster, cpu.node)
            };
            assert_eq!(place(captured), place(true_cpu), "{spec}");
        }
        for (captured, domain) in machine.domains.iter().zip(&truth.domains) {
            assert_eq!(captured.cpus, domain.cpus);
            assert_eq!(captured.kernel_transition_latency_ns, domain.kernel_transition_latency_ns);
            assert_eq!(captured.fast_switch, domain.fast_switch);
            let table = |d: &schedtwin_machine::FrequencyDomain| -> Vec<_> {
                d.opps.iter().map(|o| (o.khz, o.microvolt, o.em_power_uw)).collect()
            };
            assert_eq!(table(captured), table(domain), "{spec}");
        }
        for cpu in [0, 4, 6].map(schedtwin_types::CpuId) {
            let told = |machine: &Machine| -> Vec<_> {
                let states = machine.idle_states(cpu).iter();
                states
                    .map(|s| (s.name.clone(), s.kernel_exit_latency_ns, s.target_residency_ns))
                    .collect()
            };
            assert_eq!(told(&machine), told(&truth));
        }
        // Estimated is what no device says, and nothing else in these places.
        for (line, estimated) in [
            ("capacity = ", false),
            ("package = ", false),
            ("llc = ", false),
            ("cluster = ", false),
            ("settle_us = ", true),
            ("tick_ns = ", true),
            ("  { khz = ", true),
        ] {
            let lines: Vec<&str> = machine_text.lines().filter(|l| l.starts_with(line)).collect();
            assert!(!lines.is_empty(), "{line}");
            assert!(lines.iter().all(|l| l.contains("estimated") == estimated), "{lines:?}");
        }
        assert!(!machine_text.contains("em_uw,"), "the energy model was read");
        assert!(machine_text.contains(switch), "{machine_text}");
        assert!(!machine_text.contains("$("), "the model's name is a name");

        let six = KernelFile::load("linux-6.12").unwrap().config;
        let config = kernel.config;
        assert_eq!((config.hz, config.schedutil.rate_limit_us), (300, Some(500)));
        assert_eq!(config.base_slice_unscaled, 750_000);
        assert_eq!((config.rt_runtime, config.uclamp_min_rt_default), (None, 0));
        assert!(config.sched_cluster && !config.irq_time_accounting && !config.fair_group_sched);
        assert_eq!((config.fair, config.balance_fair), (six.fair, six.balance_fair));
        let features = config.features;
        assert!(features.place_lag && features.wa_idle && features.util_est && features.ttwu_queue);
        assert!(!features.run_to_parity && !features.delay_dequeue && !features.wa_bias);
        for line in [
            "hz = 300",
            "preempt = \"voluntary\"",
            "cpuidle = \"menu\"",
            "uclamp = \"compiled-out\"",
        ] {
            assert!(kernel_text.lines().any(|l| l == line), "{line} in\n{kernel_text}");
        }
        assert!(
            kernel_text.contains("fair = \"eevdf\" # estimated: as linux-6.12"),
            "{kernel_text}"
        );
        assert!(kernel_text.contains("nr_migrate = 32 # estimated"), "{kernel_text}");
    }
}

/// Up to 5.19 packages are clusters, and energies are milliwatts.
#[test]
fn an_old_phone_is_understood_as_its_kernel_speaks() {
    let truth = Machine::load("pixel6:topology=phantom").unwrap();
    let device = phone(&truth, "5.18.0-rc4");
    for domain in &truth.domains {
        for opp in &domain.opps {
            let first = domain.cpus[0];
            let state = format!("sys/kernel/debug/energy_model/cpu{first}/ps:{}", opp.khz);
            device.says(&format!("{state}/power"), opp.em_power_uw / 1000);
        }
    }
    let (machine, kernel, text, kernel_text) = device.check();
    let place = |cpu: usize| (machine.cpus[cpu].package, machine.cpus[cpu].cluster);
    assert_eq!([0, 3, 4, 7].map(place), [(0, Some(0)), (0, Some(0)), (0, Some(1)), (0, Some(2))]);
    assert!(text.contains("this kernel calls clusters packages"), "{text}");
    assert_eq!(machine.domains[ClockDomainId(2)].opps[16].em_power_uw, 2_158_000);
    assert_eq!(kernel.config.fair, KernelFile::load("linux-5.18").unwrap().config.fair);
    assert!(kernel_text.contains("# estimated: as linux-5.18"));
    // 6.2 is nearer to 6.3, but what is newer than it is not its own.
    for (release, nearest) in [
        ("4.9.0", "5.11"),
        ("5.17.1", "5.11"),
        ("6.2.1", "6.1"),
        ("6.5.1", "6.3"),
        ("6.6.1", "6.6"),
        ("6.13.0", "6.12"),
        ("6.17.13", "6.12"),
        ("6.18.44", "6.18"),
        ("7.0.1", "6.18"),
        ("7.2.9", "6.18"),
        ("7.3.4", "7.3"),
        ("7.4.0", "7.3"),
        ("?", "5.11"),
    ] {
        device.says("proc/sys/kernel/osrelease", release);
        let shell = shells()[0];
        let out = device.captured(shell, &script());
        let text = fs::read_to_string(out.join("kernel.toml")).unwrap();
        assert!(text.contains(&format!("estimated: as linux-{nearest}\n")), "{release}");
    }
}

#[test]
fn a_pc_without_energy_model_or_capacities_is_estimated() {
    let device = Device::new();
    device.says("proc/sys/kernel/osrelease", "6.3.0-1-amd64");
    device.says("sys/class/dmi/id/product_name", "Z490M");
    device.says("proc/sys/kernel/arch", "x86_64");
    device.says("sys/devices/system/cpu/cpuidle/current_governor", "quiet");
    for cpu in 0..12 {
        device.cpu(cpu, "topology/physical_package_id", 0);
        device.cpu(cpu, "topology/thread_siblings_list", format!("{},{}", cpu % 6, cpu % 6 + 6));
        device.cpu(cpu, "topology/cluster_id", cpu % 6);
        device.cpu(cpu, "cache/index3/level", 3);
        for index in 0..4 {
            device.cpu(cpu, &format!("cache/index{index}/level"), [1, 1, 2, 3][index]);
            let list = if index == 3 {
                "0-11".to_string()
            } else {
                format!("{},{}", cpu % 6, cpu % 6 + 6)
            };
            device.cpu(cpu, &format!("cache/index{index}/shared_cpu_list"), list);
        }
        for (index, (name, latency, residency, disable)) in [
            ("POLL", 0, 0, 0),
            ("C1_ACPI", 2, 2, 0),
            ("C2_ACPI", 120, 360, 1),
            ("C3_ACPI", 1034, 3102, 0),
        ]
        .into_iter()
        .enumerate()
        {
            let state = format!("cpuidle/state{index}");
            device.cpu(cpu, &format!("{state}/name"), name);
            device.cpu(cpu, &format!("{state}/latency"), latency);
            device.cpu(cpu, &format!("{state}/residency"), residency);
            device.cpu(cpu, &format!("{state}/disable"), disable);
        }
        let policy = format!("sys/devices/system/cpu/cpufreq/policy{cpu}");
        device.says(&format!("{policy}/related_cpus"), cpu);
        device.says(&format!("{policy}/scaling_driver"), "acpi-cpufreq");
        device.says(&format!("{policy}/scaling_governor"), "performance");
        device.says(&format!("{policy}/cpuinfo_transition_latency"), 4_294_967_295u64);
        // Falling, as this driver lists them, and once without a list.
        if cpu > 0 {
            device
                .says(&format!("{policy}/scaling_available_frequencies"), "4100000 2000000 800000");
            device.says(&format!("{policy}/scaling_boost_frequencies"), "4801000");
        } else {
            device.says(&format!("{policy}/cpuinfo_max_freq"), 4_801_000);
            device.says(&format!("{policy}/cpuinfo_min_freq"), 800_000);
        }
    }
    let (machine, kernel, text, kernel_text) = device.check();
    assert_eq!((machine.nr_cpus(), machine.domains.len()), (12, 12));
    assert!(machine.cpus.iter().all(|cpu| (cpu.capacity, cpu.llc, cpu.cluster) == (1024, 0, None)));
    let khz = |domain: u16| {
        machine.domains[ClockDomainId(domain)].opps.iter().map(|o| o.khz).collect::<Vec<_>>()
    };
    assert_eq!(khz(1), [800_000, 2_000_000, 4_100_000, 4_801_000]);
    assert_eq!((khz(0)[0], *khz(0).last().unwrap()), (800_000, 4_801_000));
    let states = machine.idle_states(schedtwin_types::CpuId(3));
    let told =
        states.iter().map(|s| (s.name.as_str(), s.kernel_exit_latency_ns, s.target_residency_ns));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [("POLL", 0, 0), ("C1_ACPI", 2_000, 2_000), ("C3_ACPI", 1_034_000, 3_102_000)]
    );
    assert!(states[0].polling && !states[1].polling);
    let told = &machine.kernel_topology;
    assert_eq!((told.architecture, told.smt), (Architecture::X86, true));
    assert_eq!([0, 5, 6, 11].map(|c: usize| machine.cpus[c].core), [0, 5, 0, 5]);
    assert!(machine.smt.is_some() && machine.broadcast.is_none());
    // The powers rise, and the strongest gets two watts.
    let powers: Vec<u64> =
        machine.domains[ClockDomainId(1)].opps.iter().map(|o| o.em_power_uw).collect();
    assert!(
        powers.is_sorted() && powers[0] > 0 && *powers.last().unwrap() == 2_048_000,
        "{powers:?}"
    );
    for said in [
        "capacity = 1024 # estimated: the device does not say",
        "core = [\"0,6\", \"1,7\", \"2,8\", \"3,9\", \"4,10\", \"5,11\"]",
        "speed_permille = [1000, 650] # estimated",
        "fast_switch = true # estimated: driver acpi-cpufreq usually can",
        "transition_latency_us = 1_000 # estimated",
        "# estimated: em_uw, active_uw, wfi_uw",
        "opp = [ # estimated: the device names only its limits",
        "# C2_ACPI is left out: it is switched off",
        "description = \"Z490M, captured\"",
    ] {
        assert!(text.contains(said), "{said} in\n{text}");
    }
    assert!(kernel_text.contains("\ncpufreq = \"performance\"\n"));
    let note = "# estimated: as linux-6.3; the device says quiet, which is not modelled\n";
    assert!(kernel_text.contains(&format!("cpuidle = \"menu\" {note}")), "{kernel_text}");
    assert_eq!(kernel.config.features, KernelFile::load("linux-6.3").unwrap().config.features);
    // It runs, too, as the script's last line says, and its results say what they rest on.
    schedtwin_engine::check_file(Path::new(&machine.source.name)).unwrap();
    let kernel = machine.source.name.replace("machine.toml", "kernel.toml");
    let scenario = schedtwin_engine::Scenario::new(
        &machine.source.name,
        &kernel,
        "ui-phone",
        Some(20_000_000),
    );
    let trust = scenario.unwrap_or_else(|faults| panic!("{faults}")).provenance().trust;
    let told = format!("machine: {} lines of its file estimated", machine.estimated);
    assert!(trust.contains(&told), "{trust}");
}

/// Threads, shared L2 caches, nodes with their distances. Node 1 has memory only, and node 2 has the first CPUs.
#[test]
fn a_server_is_captured_with_its_threads_caches_and_nodes() {
    let server = |arch: &str| {
        let device = Device::new();
        device.says("proc/sys/kernel/osrelease", "6.12.1");
        device.says("proc/sys/kernel/arch", arch);
        device.says("sys/devices/system/node/online", "0-2");
        for (node, row) in [(0, "10 17 32"), (1, "17 10 28"), (2, "31 28 10")] {
            device.says(&format!("sys/devices/system/node/node{node}/distance"), row);
        }
        // Two threads a core, two cores an L2, two L2 caches a node and socket.
        for cpu in 0..16 {
            let (core, l2, node) = (cpu / 2, cpu / 4, cpu / 8);
            let list = |index: usize, of: usize| format!("{}-{}", index * of, index * of + of - 1);
            device.cpu(cpu, "topology/physical_package_id", node);
            device.cpu(cpu, "topology/cluster_id", l2);
            device.cpu(cpu, "topology/thread_siblings_list", list(core, 2));
            device.cpu(cpu, &format!("node{}/cpumap", 2 - 2 * node), "x");
            for (index, (level, list)) in
                [(1, list(core, 2)), (2, list(l2, 4)), (3, list(node, 8))].into_iter().enumerate()
            {
                device.cpu(cpu, &format!("cache/index{index}/level"), level);
                device.cpu(cpu, &format!("cache/index{index}/shared_cpu_list"), list);
            }
        }
        device
    };
    for (arch, architecture, l2, cluster) in [
        ("x86_64", Architecture::X86, Some(2), None),
        ("ppc64le", Architecture::Powerpc, Some(2), None),
        ("aarch64", Architecture::Arm64, None, Some(2)),
    ] {
        let device = server(arch);
        let (machine, _, text, _) = device.check();
        let cpu = &machine.cpus[11];
        let place = (cpu.core, cpu.l2, cpu.cluster, cpu.llc, cpu.package, cpu.node);
        assert_eq!(place, (10, l2, cluster, 1, 1, 1), "{arch}: {text}");
        let told = &machine.kernel_topology;
        // In the order of lowest CPUs: the device's node 2, then 0.
        assert_eq!(told.distances, [[10, 31], [32, 10]], "{text}");
        assert_eq!((told.architecture, told.smt), (architecture, true));
        for line in
            ["second_permille = 150 # estimated", "speed_permille = [1000, 650] # estimated"]
        {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
        schedtwin_engine::check_file(Path::new(&machine.source.name)).unwrap();
    }
    // What Linux would refuse is not taken.
    for (file, said) in
        [("node0/distance", "10 17"), ("node2/distance", "9 28 10"), ("online", "x")]
    {
        let device = server("x86_64");
        device.says(&format!("sys/devices/system/node/{file}"), said);
        let (machine, _, text, _) = device.check();
        assert!(machine.kernel_topology.distances.is_empty(), "{file}: {text}");
        assert!(text.contains("# estimated: how far they are from each other"), "{file}: {text}");
    }
}

/// The device that stands in for timers that stop, and the states in which they do.
#[test]
fn timers_that_stop_are_captured() {
    let current = "sys/devices/system/clockevents/broadcast/current_device";
    let state = "sys/firmware/devicetree/base/cpus/idle-states";
    for (name, hrtimer) in [("arch_mem_timer", false), ("bc_hrtimer", true)] {
        let device = phone(&Machine::load("juno-r2").unwrap(), "6.12.1");
        device.says(current, name);
        device.says(&format!("{state}/cluster-sleep-0/local-timer-stop"), "");
        let (machine, _, text, _) = device.check();
        let timer = machine.broadcast.as_ref().unwrap();
        assert_eq!((timer.hrtimer, timer.moves), (hrtimer, !hrtimer), "{text}");
        assert_eq!(timer.device, if hrtimer { "hrtimer" } else { name });
        let stops: Vec<bool> = machine
            .idle_states(schedtwin_types::CpuId(0))
            .iter()
            .map(|s| s.local_timer_stops)
            .collect();
        assert_eq!(stops, [false, false, true], "{text}");
    }
}

#[test]
fn a_device_that_says_nothing_or_nonsense_still_gives_files_that_load() {
    let (machine, _, text, _) = Device::new().check();
    assert_eq!((machine.nr_cpus(), machine.domains[ClockDomainId(0)].opps.len()), (1, 1));
    assert!(text.contains("estimated: the device shows no CPUs"));

    let device = Device::new();
    let junk = [
        "",
        "-1",
        "0",
        "99999999999999999999",
        "08",
        "a\"b\\",
        "0-",
        "-",
        "3-1",
        "0-9999999",
        "\u{1F980}",
        "1 2 3 x",
        "';'",
    ];
    device.says("proc/sys/kernel/osrelease", "rolling.$(x)");
    let policy =
        |cpu: usize, key: &str| format!("sys/devices/system/cpu/cpufreq/policy{cpu}/{key}");
    for (cpu, word) in junk.into_iter().enumerate() {
        for key in [
            "cpu_capacity",
            "topology/physical_package_id",
            "topology/cluster_id",
            "topology/thread_siblings_list",
            "cache/index0/level",
            "cache/index0/shared_cpu_list",
            "cpuidle/state0/name",
            "cpuidle/state0/latency",
            "cpuidle/state0/residency",
            "cpuidle/state1/name",
            "cpuidle/state1/latency",
            "cpuidle/state1/residency",
            "cpuidle/state1/disable",
            "cache/index1/level",
            "cache/index1/shared_cpu_list",
            "node0/distance",
        ] {
            device.cpu(cpu, key, word);
        }
        for key in [
            "related_cpus",
            "scaling_available_frequencies",
            "cpuinfo_max_freq",
            "cpuinfo_min_freq",
            "cpuinfo_transition_latency",
            "scaling_governor",
            "scaling_driver",
            "schedutil/rate_limit_us",
        ] {
            device.says(&policy(cpu, key), word);
        }
        device.says(&format!("sys/kernel/debug/energy_model/cpu{cpu}/ps:1000000/power"), word);
        device.says(&format!("sys/kernel/debug/energy_model/cpu{cpu}/flags"), word);
    }
    for file in [
        "sched/features",
        "sched/base_slice_ns",
        "sched/tunable_scaling",
        "sched/nr_migrate",
        "sched/preempt",
    ] {
        device.says(&format!("sys/kernel/debug/{file}"), junk[3]);
    }
    device.says("proc/sys/kernel/sched_rt_runtime_us", "x");
    device.says("proc/sys/kernel/sched_rt_period_us", "5");
    device.says("proc/sys/kernel/arch", junk[5]);
    device.says("sys/devices/system/node/online", junk[9]);
    device.says("sys/devices/system/node/node0/distance", junk[11]);
    device.says("sys/devices/system/clockevents/broadcast/current_device", junk[5]);
    let (machine, _, text, _) = device.check();
    assert_eq!(machine.nr_cpus(), junk.len(), "{text}");
}

/// A disk that is full, or a directory that nobody may write to, leaves what was there.
#[test]
fn nothing_half_written_is_left() {
    let device = phone(&Machine::load("pixel6").unwrap(), "6.12.1");
    let script = script();
    for shell in shells() {
        let out = device.captured(shell, &script);
        let before = fs::read_to_string(out.join("machine.toml")).unwrap();
        // A limit on the size of files, in blocks of 512 or 1024 bytes: less than the machine has.
        let limited = format!("ulimit -f 2\ntrap '' XFSZ\n{script}");
        let output = Command::new(shell[0])
            .args(&shell[1..])
            .arg("-c")
            .arg(&limited)
            .arg("capture")
            .arg(&out)
            .env("SCHEDTWIN_ROOT", device.root.path())
            .output()
            .unwrap();
        assert!(!output.status.success(), "{shell:?}");
        assert_eq!(fs::read_to_string(out.join("machine.toml")).unwrap(), before, "{shell:?}");
        let left = fs::read_dir(&out).unwrap().count();
        assert_eq!(left, 2, "{shell:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn shellcheck_finds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.sh");
    fs::write(&path, script()).unwrap();
    for shell in shells() {
        let checked =
            Command::new(shell[0]).args(&shell[1..]).arg("-n").arg(&path).status().unwrap();
        assert!(checked.success(), "{shell:?} -n");
    }
    match Command::new("shellcheck").args(["-s", "sh", "-S", "style"]).arg(&path).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout))
        }
        Err(_) => eprintln!("skipped: there is no shellcheck here"),
    }
}

/// Without cpufreq, CPUs of equal capacity share a clock; capacities are scaled to 1024, and cluster 65535 is none.
#[test]
fn a_device_without_cpufreq_has_clocks_by_capacity() {
    let device = Device::new();
    device.says("proc/sys/kernel/osrelease", "6.0.1");
    for (khz, uw) in [(500_000, 1_000), (1_000_000, 4_000)] {
        device.says(&format!("sys/kernel/debug/energy_model/cpu0/ps:{khz}/power"), uw);
    }
    for (cpu, capacity) in [512, 512, 2048, 2048, 0].into_iter().enumerate() {
        device.cpu(cpu, "cpu_capacity", capacity);
        device.cpu(cpu, "topology/cluster_id", 65535);
    }
    let (machine, _, text, _) = device.check();
    let clocks: Vec<Vec<u16>> =
        machine.domains.iter().map(|d| d.cpus.iter().map(|cpu| cpu.0).collect()).collect();
    assert_eq!(clocks, [vec![0, 1], vec![2, 3], vec![4]]);
    // Its frequencies are those of the energy model, which is in microwatts from 6.0 on.
    let opps = machine.domains[ClockDomainId(0)].opps.iter();
    let told: Vec<_> = opps.map(|opp| (opp.khz, opp.em_power_uw)).collect();
    assert_eq!(told, [(500_000, 1_000), (1_000_000, 4_000)]);
    let told: Vec<_> = machine.cpus.iter().map(|cpu| (cpu.capacity, cpu.cluster)).collect();
    // A device that says 0 has said nothing.
    assert_eq!(told, [256, 256, 1024, 1024, 1024].map(|capacity| (capacity, None)));
    for said in [
        "cpus = \"0,1\" # estimated: no cpufreq; CPUs of equal capacity share a clock",
        "capacity = 256 # estimated: scaled, the largest said was 2048",
    ] {
        assert!(text.contains(said), "{said} in\n{text}");
    }
}

/// Ten idle states, as many as the kernel has; a residency that is missing is guessed, and equal limits are no fault.
#[test]
fn idle_states_are_taken_as_far_as_the_kernel_has_them() {
    let device = Device::new();
    device.says("proc/sys/kernel/osrelease", "6.12.1");
    for index in 0..12 {
        let (latency, residency) = match index {
            0 => (3, None),
            1 => (100, None),
            2 => (100, Some(200)),
            _ => (100 + index, Some(300 + index)),
        };
        let state = format!("cpuidle/state{index}");
        device.cpu(0, &format!("{state}/name"), format!("S{index}"));
        device.cpu(0, &format!("{state}/latency"), latency);
        if let Some(residency) = residency {
            device.cpu(0, &format!("{state}/residency"), residency);
        }
    }
    let (machine, _, text, _) = device.check();
    assert_eq!(machine.idle_states(schedtwin_types::CpuId(0)).len(), 10);
    let deep = "power = \"off\", deep = true }, # estimated: entry, power, deep";
    for line in [
        "  { name = \"S0\", entry_ns = 1000, exit_ns = 2000, residency_us = 1, power = \"wfi\" }, \
         # estimated: entry, power residency residency-said-6"
            .to_string(),
        format!(
            "  {{ name = \"S1\", entry_ns = 33000, exit_ns = 67000, residency_us = 200, {deep} residency"
        ),
        format!(
            "  {{ name = \"S2\", entry_ns = 33000, exit_ns = 67000, residency_us = 200, {deep}"
        ),
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
}

/// Frequencies up to 10 GHz, at most 256; where only the limits are said, seven equal steps between them.
#[test]
fn frequencies_are_taken_within_their_limits() {
    let khz = |files: &[(&str, &str)]| -> Vec<u32> {
        let device = Device::new();
        device.says("proc/sys/kernel/osrelease", "6.12.1");
        device.cpu(0, "cpu_capacity", 1024);
        for (file, said) in files {
            device.cpu(0, &format!("cpufreq/{file}"), said);
        }
        let out = device.captured(shells()[0], &script()).join("machine.toml");
        let machine = Machine::load(out.to_str().unwrap()).unwrap_or_else(|e| panic!("{e}"));
        machine.domains[ClockDomainId(0)].opps.iter().map(|opp| opp.khz).collect()
    };
    let list = "scaling_available_frequencies";
    assert_eq!(khz(&[(list, "10000001 10000000 0 x 500")]), [500, 10_000_000]);
    let many: Vec<u32> = (1000..1257).collect();
    let said = many.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(khz(&[(list, &said)]), many[..256]);
    let (most, least) = ("cpuinfo_max_freq", "cpuinfo_min_freq");
    let steps: Vec<u32> = (0..8).map(|n| 2_999_999 + n * 1_000_000).chain([10_000_000]).collect();
    assert_eq!(khz(&[(most, "10000000"), (least, "2999999")]), steps);
    assert_eq!(khz(&[(most, "10000001"), (least, "2999999")]), [1_000_000]);
    assert_eq!(khz(&[(most, "0")]), [1_000_000]);
}

/// Schedutil has no thread for a clock that it switches itself, if threads can be seen at all.
#[test]
fn fast_switching_is_told_by_threads_or_guessed_by_the_driver() {
    let long = "d".repeat(41);
    let cut = format!("fast_switch = false # estimated: driver {}", "d".repeat(40));
    for (governor, driver, threads, line) in [
        (
            "schedutil",
            "exynos",
            &["kthreadd"][..],
            "fast_switch = true # schedutil runs and has no thread",
        ),
        (
            "schedutil",
            "exynos",
            &["kthreadd", "sugov:0"],
            "fast_switch = false # a thread sugov:0 is there",
        ),
        ("schedutil", "exynos", &["init"], "fast_switch = false # estimated: driver exynos"),
        ("performance", "exynos", &["kthreadd"], "fast_switch = false # estimated: driver exynos"),
        (
            "performance",
            "scmi",
            &["kthreadd"],
            "fast_switch = true # estimated: driver scmi usually can",
        ),
        ("performance", &long, &[], &cut),
    ] {
        let device = Device::new();
        device.says("proc/sys/kernel/osrelease", "6.12.1");
        device.cpu(0, "cpufreq/scaling_governor", governor);
        device.cpu(0, "cpufreq/scaling_driver", driver);
        for (number, name) in threads.iter().enumerate() {
            device.says(&format!("proc/{}/comm", number + 2), name);
        }
        let out = device.captured(shells()[0], &script());
        let text = fs::read_to_string(out.join("machine.toml")).unwrap();
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
}

/// 2 W for a CPU of capacity 1024 at its highest frequency, with the square of the frequency; a twentieth in WFI. A power
/// or a voltage of 0 is none.
#[test]
fn powers_that_a_device_does_not_say_are_estimated() {
    let device = Device::new();
    device.says("proc/sys/kernel/osrelease", "6.12.1");
    device.cpu(0, "cpu_capacity", 1024);
    device.cpu(0, "cpufreq/scaling_available_frequencies", "1000 1000000 1500000 2000000");
    let debug = "sys/kernel/debug";
    device.says(&format!("{debug}/energy_model/cpu0/ps:1000000/power"), 0);
    device.says(&format!("{debug}/energy_model/cpu0/ps:1500000/power"), 700_000);
    device.says(&format!("{debug}/opp/cpu0/opp:1000000000/supply-0/u_volt_target"), 0);
    device.says(&format!("{debug}/opp/cpu0/opp:1500000000/supply-0/u_volt_target"), 800_000);
    let (_, _, text, _) = device.check();
    for line in [
        "  { khz = 1000, em_uw = 1, active_uw = 1, wfi_uw = 0 }, # estimated: em_uw, active_uw, wfi_uw",
        "  { khz = 1000000, em_uw = 512000, active_uw = 512000, wfi_uw = 25600 }, # estimated: em_uw, active_uw, wfi_uw",
        "  { khz = 1500000, uv = 800000, em_uw = 700000, active_uw = 700000, wfi_uw = 35000 }, # estimated: active_uw, wfi_uw",
        "  { khz = 2000000, em_uw = 2048000, active_uw = 2048000, wfi_uw = 102400 }, # estimated: em_uw, active_uw, wfi_uw",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
}
