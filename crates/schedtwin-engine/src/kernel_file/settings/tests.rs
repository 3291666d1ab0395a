// SPDX-License-Identifier: GPL-2.0-or-later
//! That every file means what it should: written ones, older ones, wrong ones.

use super::*;
use crate::kernel_file::{KernelFile, write};
use proptest::prelude::*;
use schedtwin_input::Source;
use schedtwin_kernel::config::{
    AmdPstateForm, AsymPacking, BlkComplete, CapacityPressure, CfsPeriodTimer, CfsThrottledTime,
    CfsUnthrottle, DetachUtil, DstGroupStats, HaltpollShrink, InitUtilWeight, MenuForm,
    MigrateSePeltLag, PackageDomain, PushOverload, PutPrev, RtTask, RtoNextCpu, SmtBalance,
    TgLoadAvg, TimerTarget,
};

/// A kernel file of the first day, before eleven of today's settings existed and `balance` was cut.
const FIRST: &str = include_str!("first-linux-5.18.toml");

fn parse(text: &str) -> Result<Config, Diagnostics> {
    let mut faults = Diagnostics::new();
    let source = Source::new("kernel.toml", text);
    let resolved = extends::resolve(&source, &mut faults);
    let Some(extends::Resolved { document, files }) = resolved else { return Err(faults) };
    let read = read(&document, &files, &mut faults);
    faults.into_result(())?;
    Ok(read.expect("no faults").1)
}

/// A built-in kernel as one whole file: its own one if it extends no other.
fn text_of(kernel: &str) -> String {
    let kernel = KernelFile::load(kernel).expect("built in");
    match kernel.source.text.contains("extends = ") {
        true => kernel.to_file(),
        false => kernel.source.text.clone(),
    }
}

/// Some value that a setting can have in the kernel of which `given` tells the values.
fn sample(setting: &Setting, seed: u64, given: &dyn Fn(&str) -> Value) -> Value {
    match &setting.kind {
        Kind::Switch => seed.is_multiple_of(2).into(),
        Kind::Names => ["none", "C3", "2/C6"][seed as usize % 3].into(),
        Kind::Choice { arms, .. } => {
            let goes = |arm: &&Arm| match &arm.only {
                Some(only) => only.allows(&given(only.path)),
                None => true,
            };
            let arms: Vec<&Arm> = arms.iter().filter(goes).collect();
            arms[seed as usize % arms.len()].word.into()
        }
        Kind::Integer { none: Some((none, _)), .. } if seed.is_multiple_of(5) => none.clone(),
        Kind::Integer { min, max, none, .. } => {
            let most =
                setting.at_most.and_then(|bound| Config::setting(bound)?.number(&given(bound)));
            let max = most.unwrap_or(*max).min(*max).max(*min);
            let number = min + (seed % (max - min + 1) as u64) as i64;
            match none {
                Some((Value::Text(_), _)) => Value::Text(number.to_string()),
                _ => Value::Integer(number),
            }
        }
    }
}

fn random(seeds: &[u64]) -> Config {
    let seed = |path: &str| {
        let at = Config::settings().iter().position(|setting| setting.path == path);
        seeds[at.expect("a setting")]
    };
    let nothing = |_: &str| panic!("only one step");
    let one = |path: &str| sample(Config::setting(path).expect("a setting"), seed(path), &nothing);
    Config::new(|path| sample(Config::setting(path).expect("a setting"), seed(path), &one))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back(
        seeds in proptest::collection::vec(any::<u64>(), Config::settings().len()),
        name in "\\PC*",
    ) {
        let config = random(&seeds);
        let text = write(&name, "tab\t, \"quotes\", \\ and \u{7f}", &config);
        prop_assert_eq!(parse(&text).map_err(|faults| TestCaseError::fail(faults.to_string()))?, config);
        prop_assert!(text.lines().count() > 60);
    }
}

#[test]
fn built_in_kernels_and_their_text_are_the_same_kernel() {
    for (name, _) in crate::kernel_file::builtin_texts() {
        let kernel = KernelFile::load(name).unwrap();
        assert_eq!(parse(&kernel.to_file()).unwrap(), kernel.config, "{name}");
    }
}

/// Asserts the settings that the twin computed with before it knew the newer ones, and the meaning
/// of `balance = "6.1"`.
#[test]
fn a_file_of_the_first_day_means_what_it_meant() {
    let today = KernelFile::load("linux-5.18").unwrap().config;
    let expected = Config {
        haltpoll_shrink: HaltpollShrink::Closed,
        amd_pstate: AmdPstateForm::Limited,
        menu: MenuForm::V5_18,
        rto_next_cpu: RtoNextCpu::Others,
        init_util_weight: InitUtilWeight::ScaledDown,
        tg_load_avg: TgLoadAvg::OncePerMs,
        migrate_se_pelt_lag: MigrateSePeltLag::Decayed,
        rt_task: RtTask::RtOnly,
        push_overload: PushOverload::Pushable,
        put_prev: PutPrev::WithNext,
        fair_group_sched: false,
        smt_balance: SmtBalance::Cores,
        asym_packing: AsymPacking::IdleCore,
        cfs_unthrottle: CfsUnthrottle::OwnCpu,
        cfs_period_timer: CfsPeriodTimer::Random,
        cfs_throttled_time: CfsThrottledTime::WithTasks,
        package_domain: PackageDomain::Pkg,
        timer_migration: TimerTarget::Hierarchy,
        blk_complete: BlkComplete::SharesCacheAndCapacity,
        dst_group_stats: DstGroupStats::AllowedCpus,
        detach_util: DetachUtil::ByFailures,
        capacity_pressure: CapacityPressure::HwAndCpufreq,
        ..today
    };
    let first = parse(FIRST).unwrap();
    for (a, b) in first.values().into_iter().zip(expected.values()) {
        assert_eq!(a, b);
    }
    assert_eq!(first, expected);
    for kernel in ["linux-6.3", "linux-6.12"] {
        let word = kernel.strip_prefix("linux-").unwrap().replace("6.3", "6.1");
        let points: Vec<&str> = retired()[0].words[0].1.iter().map(|(path, _)| *path).collect();
        let mut text = String::new();
        for line in text_of(kernel).lines() {
            if line.starts_with("misfit_status") {
                text.push_str(&format!("balance = \"{word}\"\n"));
            }
            if !points.iter().any(|point| line.starts_with(&format!("{point} ="))) {
                text.push_str(&format!("{line}\n"));
            }
        }
        assert_eq!(parse(&text).unwrap(), KernelFile::load(kernel).unwrap().config, "{kernel}");
    }
}

#[test]
fn declarations_are_sound() {
    let all = Config::settings();
    for (index, setting) in all.iter().enumerate() {
        let path = setting.path;
        assert!(all[..index].iter().all(|other| other.path != path), "{path} is declared twice");
        assert!(setting.help.ends_with('.') && !setting.known_by.is_empty(), "{path}");
        assert_eq!(setting.only.is_some(), setting.otherwise.is_some(), "{path}");
        let point = |with: &With| {
            let point = Config::setting(with.path).expect("a point");
            let above =
                point.only.as_ref().map(|with| Config::setting(with.path).expect("a point"));
            assert!(above.is_none_or(|above| above.only.is_none()), "{path}: a chain of points");
            assert!(point.table_and_key().0.is_empty(), "{path}");
            let words: Vec<&str> = arms(point).iter().map(|arm| arm.word).collect();
            assert!(with.words.iter().all(|word| words.contains(word)), "{path}");
        };
        setting.only.iter().for_each(point);
        arms(setting).iter().filter_map(|arm| arm.only.as_ref()).for_each(point);
        for (at, arm) in arms(setting).iter().enumerate() {
            assert!(arms(setting)[..at].iter().all(|other| other.word != arm.word), "{path}");
            assert!(arm.means.ends_with('.') && !arm.releases.is_empty(), "{path}: {}", arm.word);
        }
        if let Some(default_if_absent) = &setting.default_if_absent {
            let at = Location::new(&Source::new("", ""), 0..0);
            let node = Node { at, value: toml(default_if_absent) };
            let mut faults = Diagnostics::new();
            assert!(check(setting, &node, &mut faults).is_some(), "{path}: {faults}");
        }
        let bound = setting.at_most.map(|bound| &Config::setting(bound).expect("a setting").kind);
        assert!(bound.is_none_or(|kind| matches!(kind, Kind::Integer { .. })), "{path}");
    }
    for old in retired() {
        assert!(Config::setting(old.path).is_none(), "{} is no longer a setting", old.path);
    }
}

/// Each change of a built-in kernel's text, and the faults that follow.
#[test]
fn faults_of_kernel_files() {
    let cases: &[(&str, &str, &str, &[&str])] = &[
        ("linux-6.12", "hz = 250", "", &["kernel.toml:1:1: `hz` is missing"]),
        ("linux-6.12", "hz = 250", "hz = 7", &["`hz` is 7, outside 24..=10000"]),
        ("linux-6.12", "hz = 250", "hz = \"250\"", &["a whole number expected"]),
        (
            "linux-6.12",
            "energy_aware = true",
            "energy_awar = true",
            &["did you mean `energy_aware`"],
        ),
        (
            "linux-6.12",
            "menu = \"6.12\"",
            "menu = \"6.13\"",
            &["`menu` cannot be `6.13`", "`6.12`"],
        ),
        (
            "linux-6.12",
            "[eevdf]\n",
            "[cfs]\nlatency_ns = 6_000_000\n[eevdf]\n",
            &["`[cfs]` is not for this kernel: `fair` is `eevdf`", "it is for cfs"],
        ),
        (
            "linux-6.12",
            "[features]\n",
            "[features]\nstart_debit = true\n",
            &["`features.start_debit` is not for this kernel: `fair` is `eevdf`"],
        ),
        (
            "linux-6.12",
            "rt_bandwidth = \"fair-server\"",
            "rt_bandwidth = \"throttling\"",
            &["`[fair_server]` is not for this kernel: `rt_bandwidth` is `throttling`"],
        ),
        (
            "linux-6.3",
            "rt_bandwidth = \"throttling\"",
            "rt_bandwidth = \"fair-server\"",
            &["`fair_server` is missing"],
        ),
        (
            "linux-6.12",
            "teo_util = \"off\"",
            "teo_util = \"v3\"",
            &["`teo_util` cannot be `v3` where `teo` is `6.12`", "`6.12` takes off, gradual"],
        ),
        (
            "linux-6.12",
            "rt_runtime_us = 950_000",
            "rt_runtime_us = 1_000_001",
            &["`rt_runtime_us` is 1000001, more than `rt_period_us`, 1000000"],
        ),
        ("linux-6.12", "rt_runtime_us = 950_000", "rt_runtime_us = -2", &["or `-1`: no limit"]),
        (
            "linux-6.12",
            "runtime_us = 50_000\nperiod_us = 1_000_000",
            "runtime_us = 60_000\nperiod_us = 50_000",
            &["`fair_server.runtime_us` is 60000, more than `fair_server.period_us`, 50000"],
        ),
        (
            "linux-6.12",
            "period_us = 1_000_000\n\n[ee",
            "period_us = 4_194_305\n\n[ee",
            &["`fair_server.period_us` is 4194305, outside 100..=4194304"],
        ),
        (
            "linux-6.12",
            "cpuidle_disable = \"none\"",
            "cpuidle_disable = \"C1//C2\"",
            &["`cpuidle_disable` cannot be `C1//C2`"],
        ),
        ("linux-6.12", "hz = 250", "hz = 250\nbalance = \"6.13\"", &["it was 6.1 or 6.12"]),
    ];
    for (kernel, from, to, parts) in cases {
        let old = text_of(kernel);
        assert!(old.contains(from), "{kernel} has {from}");
        let faults = parse(&old.replacen(from, to, 1)).unwrap_err();
        assert_eq!(faults.0.len(), 1, "{from}: {faults}");
        let text = faults.to_string();
        for part in *parts {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
    // -1 is no limit, whatever the period.
    let endless = text_of("linux-6.12").replace("rt_runtime_us = 950_000", "rt_runtime_us = -1");
    assert_eq!(parse(&endless).unwrap().rt_runtime, None);
}

/// An arm that is chosen in place leaves the settings of the old one behind.
#[test]
fn in_place_an_arm_takes_its_settings_along() {
    let config = KernelFile::load("linux-6.12:rt_bandwidth=throttling").unwrap().config;
    assert_eq!(config.fair_server_runtime, 0);
    let both = "linux-6.12:rt_bandwidth=throttling,fair_server.runtime_us=1";
    let text = KernelFile::load(both).unwrap_err().to_string();
    assert!(text.contains("is not for this kernel"), "{text}");
    let config = KernelFile::load("linux-6.3:rt_bandwidth=fair-server").unwrap().config;
    assert_eq!(config.fair_server_runtime, 50_000_000, "as in the first kernel that has a server");
    let text = KernelFile::load("linux-6.3:balance=6.12").unwrap_err().to_string();
    assert!(text.contains("it was cut into select_idle_cluster, balance_fair"), "{text}");
}
