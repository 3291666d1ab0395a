// SPDX-License-Identifier: GPL-2.0-or-later
//! schedutil's first form, of 4.7, as a [`Subject`]: the world of `shim.c`, executed with our
//! `cpufreq/schedutil/v4_7`.
//!
//! One frequency domain of one to four CPUs with capacities, a table, a rate limit and a tick of its own, with utilisation that
//! scales with the clock or does not. CPUs say what fair tasks use, or that RT and DEADLINE tasks run; half of the domains have
//! no fast switch. Compared after each operation: what was requested and when, the clock that is believed in, how far the
//! slow path is, and what each CPU of a shared domain has said.
//!
//! The tree is any folder with `kernel/sched/cpufreq_schedutil.c` of 4.7 and a `Makefile` that says which release it is.

use crate::frequency::{self, CPU_NAMES, Domain};
use crate::l0::extract::Pieces;
use crate::l0::mutate::{Mutation, Sources, m};
use crate::l0::{OpSpec, Out, Record, Subject, extract, oracle};
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{
    Config, CpufreqRemote, EffectiveCpuUtil, FreqInvariance, SugovMapping, SugovRateLimit,
    SugovSlowPath, SugovWork,
};
use schedtwin_kernel::cpufreq::schedutil::conformance::SugovSteps;
use schedtwin_kernel::sched::demand::conformance::DemandSteps;
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, PolicyId};
use std::path::{Path, PathBuf};

/// Names a folder with 4.7's file.
pub const TREE_4_7: &str = "SCHEDTWIN_KERNEL_TREE_4_7";

// Operation numbers, as in `shim.c`.
const CONFIG: usize = 0;
const OPP: usize = 1;
const START: usize = 2;
const CAPACITY: usize = 3;
const FAIR: usize = 4;
const HOOK: usize = 5;
const TRIGGER: usize = 6;
const LIMITS: usize = 7;
const IRQ_WORK: usize = 8;
const DRIVER_RETURNS: usize = 10;

const GOVERNOR: &str = "cpufreq/schedutil/v4_7.rs";
const THREAD: &str = "cpufreq/sugov_kthread.rs";

/// One frequency domain.
pub struct Schedutil47 {
    domain: Domain,
}

impl std::ops::Deref for Schedutil47 {
    type Target = Domain;
    fn deref(&self) -> &Domain {
        &self.domain
    }
}

impl std::ops::DerefMut for Schedutil47 {
    fn deref_mut(&mut self) -> &mut Domain {
        &mut self.domain
    }
}

fn boot(cpus: u64, tick_nsec: u64, invariant: bool, fast: bool) -> Kernel {
    let mut device_tree = frequency::machine(cpus);
    for policy in &mut device_tree.policies {
        policy.fast_switch = fast;
        policy.dvfs_possible_from_any_cpu = false;
    }
    let config = Config {
        hz: (1_000_000_000 / tick_nsec) as u32,
        fair_server_runtime: 0,
        effective_cpu_util: EffectiveCpuUtil::Passed,
        cpufreq_remote: CpufreqRemote::LocalOnly,
        sugov_mapping: SugovMapping::Raw,
        sugov_rate_limit: SugovRateLimit::Requests,
        sugov_work: SugovWork::Drop,
        sugov_slow_path: SugovSlowPath::Kworker,
        freq_invariance: if invariant { FreqInvariance::All } else { FreqInvariance::None },
        ..Config::linux_6_12()
    };
    Kernel::boot(device_tree, config)
}

impl Schedutil47 {
    fn report(&mut self, out: &mut Out) {
        let policy = &self.kernel.inside().policies[PolicyId(0)];
        let (sugov, shared) = (&policy.sugov, !policy.is_single);
        out.word("policy", "next_freq", sugov.next_freq as u64);
        out.word("policy", "last_freq_update_time", sugov.last_freq_update_time);
        out.word("policy", "need_freq_update", sugov.limits_changed as u64);
        self.report_path(out);
        let cpus = self.cpus;
        let steps = SugovSteps(&mut self.kernel);
        for (cpu, name) in (0..cpus).zip(CPU_NAMES).filter(|_| shared) {
            let passed = steps.sugov_cpu(CpuId(cpu as u16)).passed;
            out.word(name, "util", passed.util);
            out.word(name, "max", if passed.util == u64::MAX { 0 } else { passed.max });
            out.word(name, "last_update", passed.last_update);
        }
    }

    /// Plans the beginning of the sequence: the domain, its table, capacities.
    fn plan(&mut self, rng: &mut Rng) {
        self.cpus = 1 + rng.below(4);
        self.tick = rng.pick(&[10_000_000, 4_000_000, 3_333_333, 1_000_000]);
        self.delay_us = rng.pick(&[0, 1, 500, 1_000, 10_000]);
        self.fast = rng.one_in(2);
        self.length = 24 + rng.below(120) as usize;
        let config = [self.cpus, self.delay_us, self.tick, rng.below(2), u64::from(self.fast)];
        self.planned = vec![Record::new(CONFIG, &config)];
        let mut khz = 200_000 + rng.below(400_000);
        for _ in 0..1 + rng.below(10) {
            self.planned.push(Record::new(OPP, &[khz]));
            khz += 1 + rng.below(500_000);
        }
        self.plan_capacities(CAPACITY, rng);
        self.planned.push(Record::new(START, &[]));
        self.planned.reverse();
    }
}

impl Subject for Schedutil47 {
    const NAME: &'static str = "schedutil-4.7";
    const TREE: &'static str = TREE_4_7;

    const OPS: &'static [OpSpec] = &[
        OpSpec { name: "config", args: &["cpus", "rate_limit_us", "tick", "invariant", "fast"] },
        OpSpec { name: "opp", args: &["khz"] },
        OpSpec { name: "start", args: &[] },
        OpSpec { name: "capacity", args: &["cpu", "capacity"] },
        OpSpec { name: "fair", args: &["cpu", "util_avg"] },
        OpSpec { name: "hook", args: &["cpu", "time"] },
        OpSpec { name: "trigger", args: &["cpu", "time"] },
        OpSpec { name: "limits", args: &[] },
        OpSpec { name: "irq_work", args: &["cpu"] },
        OpSpec { name: "work", args: &[] },
        OpSpec { name: "driver_returns", args: &[] },
    ];

    const SOURCES: Sources = Sources { modules: &["frequency", "schedutil_4_7"], kernel: None };
    const MUTATIONS: &'static [Mutation] = &[
        m(GOVERNOR, "(reference >> 2)", "(reference >> 3)"),
        m(GOVERNOR, "if forms.invariant { policy.max() } else { policy.cur }", "policy.max()"),
        m(GOVERNOR, "changes || forms.requests_restart", "changes"),
        m(GOVERNOR, "drops && sugov.work_in_progress", "false"),
        m(GOVERNOR, "sugov.next_freq = Khz::MAX;", ""),
        m(GOVERNOR, "delta < sugov.freq_update_delay_ns", "delta <= sugov.freq_update_delay_ns"),
        m(GOVERNOR, "age > cx.tick_nsec as i64", "age >= cx.tick_nsec as i64"),
        m(GOVERNOR, "other.util * max > other.max * util", "other.util * max < other.max * util"),
        m(GOVERNOR, "policy.sugov.last_freq_update_time as i64 -", "cx.now as i64 -"),
        m(THREAD, "self.cpufreq.sugov_work_ends(index);\n        true", "true"),
    ];

    const GOLDEN_SHOWN: u64 = 4;
    const GOLDEN_CASES: u64 = 4_000;

    fn new() -> Self {
        Schedutil47 { domain: Domain::new(boot(1, 4_000_000, true, true)) }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, _] = record.args;
        let cpu = CpuId(a as u16);
        match record.op {
            CONFIG => self.configure(a, boot(a, c, d != 0, e != 0), b),
            OPP => self.add_point(a as u32, false),
            START => self.start(),
            CAPACITY => DemandSteps(&mut self.kernel).set_capacity(cpu, b),
            FAIR => {
                let mut steps = DemandSteps(&mut self.kernel);
                steps.change_averages(cpu, |averages| averages.cfs.util_avg = b);
            }
            HOOK => SugovSteps(&mut self.kernel).hook(cpu, cpu, b, 0),
            TRIGGER => SugovSteps(&mut self.kernel).trigger(cpu, b),
            LIMITS => self.limits(),
            IRQ_WORK..=DRIVER_RETURNS => self.slow_step(record.op - IRQ_WORK, cpu),
            _ => panic!("unknown operation {}", record.op),
        }
        self.report(out);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        if step == 0 {
            self.plan(rng);
        }
        if let Some(record) = self.planned.pop() {
            return Some(record);
        }
        if step >= self.length {
            return None;
        }
        let cpu = rng.below(self.cpus);
        let record = |op, args| Some(Record { op, args });
        if !self.fast && rng.one_in(3) {
            return Some(self.next_slow_step(IRQ_WORK, rng));
        }
        match rng.below(16) {
            0..=5 => {
                let capacity = self.kernel.inside().rq[CpuId(cpu as u16)].arch_capacity;
                let util = match rng.below(5) {
                    0 => 0,
                    1 => (capacity + rng.below(5)).saturating_sub(2),
                    2 => rng.below(1_300),
                    _ => rng.below(capacity + 1),
                };
                record(FAIR, [cpu, util, 0, 0, 0, 0])
            }
            6 if rng.one_in(4) => record(LIMITS, [0; 6]),
            _ => {
                let time = self.next_hook_at(rng);
                let op = if rng.one_in(8) { TRIGGER } else { HOOK };
                record(op, [cpu, time, 0, 0, 0, 0])
            }
        }
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let governor = extract::read(tree, "kernel/sched/cpufreq_schedutil.c")?;
        let mut pieces = Pieces::default();
        let structures = ["struct sugov_tunables", "struct sugov_policy", "struct sugov_cpu"];
        pieces.add(extract::block, &governor, &structures)?;
        let per_cpu = "static DEFINE_PER_CPU(struct sugov_cpu";
        pieces.add(extract::statement, &governor, &[per_cpu])?;
        pieces.add(
            extract::function,
            &governor,
            &[
                "sugov_should_update_freq",
                "sugov_update_commit",
                "get_next_freq",
                "sugov_update_single",
                "sugov_next_freq_shared",
                "sugov_update_shared",
                "sugov_work",
                "sugov_irq_work",
                "sugov_start",
                "sugov_limits",
            ],
        )?;
        pieces.write(build_dir, "schedutil_extract.h")?;
        oracle::compile("schedutil_4_7/shim.c", &[build_dir], build_dir, flags)
    }
}
