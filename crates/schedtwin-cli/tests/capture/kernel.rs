// SPDX-License-Identifier: GPL-2.0-or-later
//! What the script writes of the kernel.

use super::device::{Device, script, shells};

/// What a kernel multiplies for its CPUs is divided again, and what is out of bounds or means something else is not taken.
#[test]
fn what_a_kernel_says_is_taken_as_it_means_it() {
    let device = Device::new();
    for cpu in 0..12 {
        device.cpu(cpu, "cpu_capacity", 1024);
    }
    device.cpu(0, "cpufreq/scaling_governor", "performance");
    device.cpu(0, "cpufreq/scaling_driver", "intel_pstate");
    for (file, said) in [
        ("proc/sys/kernel/osrelease", "6.12.1"),
        ("boot/config-6.12.1", "CONFIG_SMP=y\nCONFIG_HZ=9\nCONFIG_PREEMPT_VOLUNTARY=y"),
        ("sys/kernel/debug/sched/tunable_scaling", "2"),
        ("sys/kernel/debug/sched/base_slice_ns", "6000000"),
        ("proc/sys/kernel/sched_energy_aware", "0"),
        ("proc/sys/kernel/sched_rt_runtime_us", "940000"),
        ("proc/self/timerslack_ns", "123456789"),
    ] {
        device.says(file, said);
    }
    let (_, _, _, text) = device.check();
    for line in [
        "hz = 250 # estimated: as linux-6.12",
        "preempt = \"voluntary\"",
        "cpufreq = \"schedutil\" # estimated: as linux-6.12",
        "energy_aware = false",
        "rt_runtime_us = 940000",
        "timer_slack_ns = 123456789",
        "base_slice_unscaled_ns = 750000",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
}

/// What the kernel file says of `key`: its value, if the device said it.
fn told(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    let value = lines.next().unwrap_or_else(|| panic!("no {key} in\n{text}"));
    assert_eq!(lines.next(), None, "{key} is there twice");
    (!value.contains(" # estimated")).then(|| value.to_string())
}

/// A device of `cpus` CPUs with a release and what `files` say.
fn device(release: &str, cpus: usize, files: &[(&str, &str)]) -> Device {
    let device = Device::new();
    device.says("proc/sys/kernel/osrelease", release);
    (0..cpus).for_each(|cpu| device.cpu(cpu, "cpu_capacity", 1024));
    for (file, said) in files {
        device.says(file, said);
    }
    device
}

/// The kernel file that one shell writes. That all shells agree is asked elsewhere.
fn kernel_text(release: &str, cpus: usize, files: &[(&str, &str)]) -> String {
    let device = device(release, cpus, files);
    let out = device.captured(shells()[0], &script());
    std::fs::read_to_string(out.join("kernel.toml")).unwrap()
}

const SETTINGS: &str = "proc/sys/kernel";
const DEBUG: &str = "sys/kernel/debug/sched";

/// Each number is taken from its smallest to its largest value, and neither below nor above.
#[test]
fn numbers_of_the_kernel_are_taken_within_their_limits() {
    let scaling = (format!("{DEBUG}/tunable_scaling"), "0");
    for (release, limits) in [
        (
            "6.12.1",
            [
                (format!("{DEBUG}/migration_cost_ns"), "migration_cost_ns", 0, 999_999_999),
                (format!("{DEBUG}/nr_migrate"), "nr_migrate", 1, 1024),
                (format!("{SETTINGS}/sched_rt_period_us"), "rt_period_us", 1000, 4_000_000),
                (format!("{SETTINGS}/sched_rt_runtime_us"), "rt_runtime_us", 1, 4_000_000),
                (
                    format!("{SETTINGS}/sched_util_clamp_min_rt_default"),
                    "uclamp_min_rt_default",
                    0,
                    1024,
                ),
                (format!("{DEBUG}/base_slice_ns"), "base_slice_unscaled_ns", 80_000, 999_999_999),
                ("proc/self/timerslack_ns".into(), "timer_slack_ns", 0, 999_999_999),
            ],
        ),
        (
            "6.1.1",
            [
                (
                    format!("{SETTINGS}/sched_migration_cost_ns"),
                    "migration_cost_ns",
                    0,
                    999_999_999,
                ),
                (format!("{SETTINGS}/sched_nr_migrate"), "nr_migrate", 1, 1024),
                (
                    format!("{DEBUG}/idle_min_granularity_ns"),
                    "idle_min_granularity_ns",
                    10_000,
                    999_999_999,
                ),
                (format!("{DEBUG}/latency_ns"), "latency_ns", 80_000, 999_999_999),
                (format!("{SETTINGS}/sched_rt_period_us"), "rt_period_us", 1000, 4_000_000),
                (format!("{DEBUG}/min_granularity_ns"), "min_granularity_ns", 80_000, 999_999_999),
                (
                    format!("{DEBUG}/wakeup_granularity_ns"),
                    "wakeup_granularity_ns",
                    80_000,
                    999_999_999,
                ),
            ],
        ),
    ] {
        type Pick = fn(i64, i64) -> i64;
        let picks: [(Pick, bool); 4] = [
            (|lowest, _| lowest, true),
            (|_, highest| highest, true),
            (|lowest, _| lowest - 1, false),
            (|_, highest| highest + 1, false),
        ];
        for (pick, is_taken) in picks {
            let said: Vec<(&str, String)> = limits
                .iter()
                .map(|(file, _, lowest, highest)| {
                    (file.as_str(), pick(*lowest, *highest).to_string())
                })
                .collect();
            let mut files: Vec<(&str, &str)> =
                said.iter().map(|(file, said)| (*file, said.as_str())).collect();
            files.push((&scaling.0, scaling.1));
            let text = kernel_text(release, 8, &files);
            for ((_, key, ..), (file, said)) in limits.iter().zip(&said) {
                assert_eq!(
                    told(&text, key).as_ref() == Some(said),
                    is_taken,
                    "{file}: {said}\n{text}"
                );
            }
        }
    }
}

/// The same for numbers that have a place or a form of their own.
#[test]
fn the_tick_and_the_rate_limit_are_taken_within_their_limits() {
    let rate = "sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us";
    for (hz, rate_us, is_taken) in [
        ("24", "0", true),
        ("10000", "10000000", true),
        ("23", "10000001", false),
        ("10001", "x", false),
    ] {
        let config = format!("CONFIG_HZ_PERIODIC=y\nCONFIG_HZ={hz}\nCONFIG_NO_HZ=y");
        let text = kernel_text("6.12.1", 1, &[("boot/config-6.12.1", &config), (rate, rate_us)]);
        assert_eq!(told(&text, "hz"), is_taken.then(|| hz.to_string()), "{text}");
        let quoted = format!("\"{rate_us}\"");
        assert_eq!(told(&text, "rate_limit_us"), is_taken.then_some(quoted), "{text}");
    }
}

/// The kernel multiplies by 1 + log2 of its CPUs, or by their number, of which it counts at most 8; or not at all.
#[test]
fn what_was_multiplied_for_the_cpus_is_divided() {
    let factors = [
        ("0", 4, 1),
        ("1", 1, 1),
        ("1", 2, 2),
        ("1", 3, 2),
        ("1", 4, 3),
        ("1", 7, 3),
        ("1", 8, 4),
        ("1", 9, 4),
        ("2", 1, 1),
        ("2", 3, 3),
        ("2", 8, 8),
        ("2", 9, 8),
    ];
    let (scaling, slice) = (format!("{DEBUG}/tunable_scaling"), format!("{DEBUG}/base_slice_ns"));
    for (kind, cpus, factor) in factors {
        let text = kernel_text("6.12.1", cpus, &[(&scaling, kind), (&slice, "2520000")]);
        let expected = (2_520_000 / factor).to_string();
        assert_eq!(told(&text, "base_slice_unscaled_ns"), Some(expected), "{kind}, {cpus} CPUs");
    }
    let text = kernel_text("6.12.1", 4, &[(&slice, "2520000")]);
    assert_eq!(told(&text, "base_slice_unscaled_ns"), None, "by an unknown factor");
}

/// What files say, a key, and its value if it is taken.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, Option<&'a str>);

/// Words of several files, of which one may be missing, and words that mean something else.
#[test]
fn words_of_the_kernel_are_taken_as_it_means_them() {
    let preempt = &*format!("{DEBUG}/preempt");
    let energy = &*format!("{SETTINGS}/sched_energy_aware");
    let policy = "sys/devices/system/cpu/cpufreq/policy0";
    let governor = &*format!("{policy}/scaling_governor");
    let driver = &*format!("{policy}/scaling_driver");
    let rate = &*format!("{policy}/schedutil/rate_limit_us");
    let idle = "sys/devices/system/cpu/cpuidle";
    let (now, read_only) =
        (&*format!("{idle}/current_governor"), &*format!("{idle}/current_governor_ro"));
    let config = "boot/config-6.12.1";
    let cases: [Case<'_>; 29] = [
        (&[(preempt, "(none) voluntary full")], "preempt", Some("\"none\"")),
        (&[(preempt, "none voluntary (full)")], "preempt", Some("\"full\"")),
        (&[(preempt, "none voluntary full (lazy)")], "preempt", Some("\"lazy\"")),
        (&[(preempt, "(none)"), (config, "CONFIG_PREEMPT=y")], "preempt", Some("\"none\"")),
        (&[(config, "CONFIG_PREEMPT=y")], "preempt", Some("\"full\"")),
        (&[(config, "CONFIG_PREEMPT_NONE=y")], "preempt", Some("\"none\"")),
        (&[(config, "CONFIG_PREEMPT_RT=y")], "preempt", None),
        (&[(config, "CONFIG_SMP=y")], "fair_group_sched", Some("false")),
        (&[(config, "CONFIG_SMP=y\nCONFIG_FAIR_GROUP_SCHED=y")], "fair_group_sched", Some("true")),
        (&[(config, "CONFIG_FAIR_GROUP_SCHED=y")], "fair_group_sched", None),
        (
            &[(config, "CONFIG_IRQ_TIME_ACCOUNTING=y\nCONFIG_SMP=y")],
            "irq_time_accounting",
            Some("true"),
        ),
        (&[(config, "CONFIG_SMP=y")], "irq_time_accounting", Some("false")),
        (&[(config, "CONFIG_SMP=y\nCONFIG_SCHED_CLUSTER=y")], "sched_cluster", Some("true")),
        (&[(config, "CONFIG_SMP=y\nCONFIG_UCLAMP_TASK=y")], "uclamp", None),
        (&[(config, "CONFIG_SMP=y")], "uclamp", Some("\"compiled-out\"")),
        (&[(config, "CONFIG_NO_HZ=y")], "hz", None),
        (&[(energy, "1")], "energy_aware", Some("true")),
        (&[], "energy_aware", None),
        (&[(governor, "powersave")], "cpufreq", Some("\"powersave\"")),
        (&[(governor, "powersave"), (driver, "acpi-cpufreq")], "cpufreq", Some("\"powersave\"")),
        (&[(governor, "powersave"), (driver, "intel_pstate")], "cpufreq", None),
        (&[(governor, "schedutil"), (driver, "intel_pstate")], "cpufreq", Some("\"schedutil\"")),
        (&[(governor, "ondemand")], "cpufreq", None),
        (&[(rate, "7")], "rate_limit_us", Some("\"7\"")),
        (&[(now, "ladder"), (read_only, "menu")], "cpuidle", Some("\"ladder\"")),
        (&[(read_only, "haltpoll")], "cpuidle", Some("\"haltpoll\"")),
        (&[(read_only, "teo")], "cpuidle", Some("\"teo\"")),
        (&[(now, "quiet")], "cpuidle", None),
        (&[], "cpuidle", None),
    ];
    for (files, key, expected) in cases {
        let text = kernel_text("6.12.1", 1, files);
        assert_eq!(told(&text, key).as_deref(), expected, "{key} of {files:?}");
    }
    // Features have had two places, and a name is not taken for a longer one's part.
    for place in [format!("{DEBUG}/features"), "sys/kernel/debug/sched_features".to_string()] {
        let text = kernel_text("6.12.1", 1, &[(&place, "TTWU_QUEUE_NOT NO_WA_BIAS WA_IDLE")]);
        let features =
            ["ttwu_queue", "wa_bias", "wa_idle"].map(|name| told(&text, name).expect("said"));
        assert_eq!(features, ["false", "false", "true"], "{place}");
    }
    assert_eq!(told(&kernel_text("6.12.1", 1, &[]), "wa_idle"), None);
}
