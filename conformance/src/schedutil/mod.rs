// SPDX-License-Identifier: GPL-2.0-or-later
//! schedutil as a [`Subject`]: the world of `shim.c`, executed with our `cpufreq/schedutil`.
//!
//! One frequency domain of one to four CPUs with capacities, a table, a rate limit and a tick of its own;
//! signals of all classes, interrupts, clamps and DEADLINE bandwidth change at random, and the hook is called
//! for any CPU by any CPU, at times that may lie a little in the past. Compared after each operation: what was
//! requested, when and from which raw frequency, whether limits count as changed, the frequency that was set,
//! and of each CPU the demand, its floor, the boost after I/O and the idle calls it has seen.
//!
//! Some domains of one CPU have a driver that is asked for performance; compared is what for. Half of the domains have no fast switch. There interrupts come, the thread works and the driver returns
//! when the sequence says so, with hooks in between; compared are also `work_in_progress`, the CPU whose irq_work is
//! queued, the thread's queue, what the driver is being asked for and what it was asked for last.
//!
//! **Against what.** Not the governor's functions alone: utilisation and its clamps, the headroom and the
//! search in the frequency table are the kernel's too. Ours computes the demand of CPUs whose signals have
//! changed only, so this checks that nothing is forgotten.
//!
//! Three forms: before 6.8 (`schedutil-6.1`), since, and of 7.3, where DEADLINE bandwidth that grows asks for a new frequency by `need_freq_update` in
//! place of `limits_changed`: the same decisions, so there the two are compared as one. Like EEVDF it needs the whole kernel crate.

mod mutations;

use crate::freq_table::{TABLE_FUNCTIONS, TABLE_MACROS};
use crate::frequency::{self, CPU_NAMES, CPUS, Domain};
use crate::l0::extract::{Pieces, Take};
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_7_3, extract, oracle};
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{Config, EffectiveCpuUtil, RunnableBoost, Uclamp};
use schedtwin_kernel::cpufreq::schedutil::conformance::SugovSteps;
use schedtwin_kernel::sched::demand::conformance::DemandSteps;
use schedtwin_kernel::sched::demand::uclamp::max::{Clamps, UclampRq};
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, PolicyId};
use std::path::{Path, PathBuf};

// Operation numbers, as in `shim.c`.
const CONFIG: usize = 0;
const OPP: usize = 1;
const START: usize = 2;
const CAPACITY: usize = 3;
const FAIR: usize = 4;
const OTHERS: usize = 5;
const CLAMPS: usize = 6;
const HOOK: usize = 7;
const LIMITS: usize = 8;
const IRQ_WORK: usize = 9;
const DRIVER_RETURNS: usize = 11;

/// `fast` of a driver that is asked for performance.
const PERFORMANCE: u64 = 2;

/// Before 6.8.
pub const BEFORE_6_8: u8 = 0;
/// 6.8 to 6.12.
pub const SINCE_6_8: u8 = 1;
/// 7.3.
pub const LINUX_7_3: u8 = 2;

/// One frequency domain, of a form.
pub struct Schedutil<const FORM: u8> {
    domain: Domain,
    /// Generator only: habits.
    clamped: bool,
    busy: u64,
    /// The driver is asked for performance.
    perf: bool,
    idle_calls: [u64; CPUS as usize],
}

impl<const FORM: u8> std::ops::Deref for Schedutil<FORM> {
    type Target = Domain;
    fn deref(&self) -> &Domain {
        &self.domain
    }
}

impl<const FORM: u8> std::ops::DerefMut for Schedutil<FORM> {
    fn deref_mut(&mut self) -> &mut Domain {
        &mut self.domain
    }
}

/// A kernel with a domain of `cpus` CPUs and another one.
fn boot(old: bool, cpus: u64, tick_nsec: u64, any_cpu: bool, uclamp: bool, fast: bool) -> Kernel {
    let mut device_tree = frequency::machine(cpus);
    for policy in &mut device_tree.policies {
        policy.transition_latency = 10_000;
        policy.fast_switch = fast;
        policy.dvfs_possible_from_any_cpu = any_cpu;
    }
    let mut config = Config {
        hz: (1_000_000_000 / tick_nsec) as u32,
        fair_server_runtime: 0,
        uclamp: if uclamp { Uclamp::On } else { Uclamp::KeyOff },
        ..Config::linux_6_12()
    };
    if old {
        config.effective_cpu_util = EffectiveCpuUtil::HeadroomLast;
        config.runnable_boost = RunnableBoost::Off;
    }
    Kernel::boot(device_tree, config)
}

impl<const FORM: u8> Schedutil<FORM> {
    const OLD: bool = FORM == BEFORE_6_8;

    fn report(&mut self, out: &mut Out) {
        let policy = &self.kernel.inside().policies[PolicyId(0)];
        let sugov = &policy.sugov;
        let [mut next, mut raw] = [sugov.next_freq, sugov.cached_raw_freq];
        let (changed, mut needed) = (sugov.limits_changed, sugov.need_freq_update);
        if self.perf {
            // Frequencies are the driver's, and nobody reads whether one is needed: up to 6.12 it is never taken back.
            [next, raw] = [0, 0];
            needed &= FORM == LINUX_7_3;
        }
        out.word("policy", "next_freq", next as u64);
        out.word("policy", "cached_raw_freq", raw as u64);
        out.word("policy", "last_freq_update_time", sugov.last_freq_update_time);
        if FORM == LINUX_7_3 {
            out.word("policy", "need_freq_update", (changed || needed) as u64);
        } else {
            out.word("policy", "limits_changed", changed as u64);
            out.word("policy", "need_freq_update", needed as u64);
        }
        let perf = self.perf;
        let cpus = self.cpus;
        if perf {
            let [floor, target] = SugovSteps(&mut self.kernel).performance(CpuId(0));
            out.word("policy", "floor", floor);
            out.word("policy", "target", target);
        } else {
            self.report_path(out);
        }
        let steps = SugovSteps(&mut self.kernel);
        for (cpu, name) in (0..cpus).zip(CPU_NAMES) {
            let sg = steps.sugov_cpu(CpuId(cpu as u16));
            out.word(name, "iowait_boost", sg.iowait_boost as u64);
            out.word(name, "pending", sg.iowait_boost_pending as u64);
            out.word(name, "last_update", sg.last_update);
            out.word(name, "util", sg.util);
            out.word(name, "floor", sg.bw_min);
            out.word(name, "saved_idle_calls", sg.saved_idle_calls);
        }
    }

    /// Plans the beginning of the sequence: the domain, its table, capacities.
    fn plan(&mut self, rng: &mut Rng) {
        self.cpus = 1 + rng.below(4);
        self.tick = rng.pick(&[10_000_000, 4_000_000, 3_333_333, 1_000_000]);
        self.delay_us = rng.pick(&[0, 1, 500, 750, 1_000, 2_000, 10_000]);
        self.clamped = rng.one_in(2);
        self.fast = rng.one_in(2);
        // One of two drivers of a CPU's own clock.
        let perf = self.fast && self.cpus == 1 && rng.one_in(2);
        self.busy = rng.below(4);
        let any_cpu = rng.below(2);
        self.length = 24 + rng.below(120) as usize;
        let (clamped, fast) = (self.clamped as u64, self.fast as u64 + perf as u64);
        let config = [self.cpus, self.delay_us, self.tick, any_cpu, clamped, fast];
        self.planned = vec![Record::new(CONFIG, &config)];
        let points = 1 + rng.below(10);
        let mut khz = 200_000 + rng.below(400_000);
        for point in 1..=points {
            // The highest point always is efficient, or it would not be there.
            let inefficient = point != points && rng.one_in(5);
            self.planned.push(Record::new(OPP, &[khz, inefficient as u64]));
            khz += 1 + rng.below(500_000);
        }
        self.plan_capacities(CAPACITY, rng);
        self.planned.push(Record::new(START, &[]));
        self.planned.reverse();
    }

    /// A utilisation of a CPU: none, some, about its capacity, more.
    fn utilisation(&self, cpu: u64, rng: &mut Rng) -> u64 {
        let capacity = self.kernel.inside().rq[CpuId(cpu as u16)].arch_capacity;
        match rng.below(8) {
            0 => 0,
            1 => (capacity + rng.below(5)).saturating_sub(2),
            2 => rng.below(1_300),
            // About 80 %, where the headroom meets the capacity.
            3 => (capacity * 4 / 5 + rng.below(5)).saturating_sub(2),
            4 => rng.below(16),
            _ => rng.below(capacity + 1) * (1 + self.busy) / 4,
        }
    }
}

impl<const FORM: u8> Subject for Schedutil<FORM> {
    const NAME: &'static str = ["schedutil-6.1", "schedutil", "schedutil-7.3"][FORM as usize];
    const TREE: &'static str = [TREE_6_1, TREE, TREE_7_3][FORM as usize];

    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "config",
            args: &["cpus", "rate_limit_us", "tick", "any_cpu", "uclamp", "fast"],
        },
        OpSpec { name: "opp", args: &["khz", "inefficient"] },
        OpSpec { name: "start", args: &[] },
        OpSpec { name: "capacity", args: &["cpu", "capacity"] },
        OpSpec { name: "fair", args: &["cpu", "util_avg", "runnable_avg", "util_est"] },
        OpSpec { name: "others", args: &["cpu", "rt", "dl", "irq", "rt_nr", "running_bw"] },
        OpSpec { name: "clamps", args: &["cpu", "min", "max"] },
        OpSpec { name: "hook", args: &["cpu", "time", "flags", "idle_calls", "this_cpu"] },
        OpSpec { name: "limits", args: &[] },
        OpSpec { name: "irq_work", args: &["cpu"] },
        OpSpec { name: "work", args: &[] },
        OpSpec { name: "driver_returns", args: &[] },
    ];

    const SOURCES: Sources =
        Sources { modules: &["frequency", "freq_table", "schedutil"], kernel: None };
    const MUTATIONS: &'static [Mutation] =
        if Self::OLD { mutations::BEFORE_6_8 } else { mutations::SINCE_6_8 };

    const GOLDEN_SHOWN: u64 = 5;
    const GOLDEN_CASES: u64 = 4_000;

    fn new() -> Self {
        Schedutil {
            domain: Domain::new(boot(Self::OLD, 1, 4_000_000, true, false, true)),
            clamped: false,
            busy: 0,
            perf: false,
            idle_calls: [0; CPUS as usize],
        }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        let cpu = CpuId(a as u16);
        match record.op {
            CONFIG => {
                let kernel = boot(Self::OLD, a, c, d != 0, e != 0, f != 0);
                self.configure(a, kernel, b);
                self.perf = f == PERFORMANCE;
                if self.perf {
                    SugovSteps(&mut self.kernel).set_adjust_perf();
                }
            }
            OPP => self.add_point(a as u32, b != 0),
            START => self.start(),
            CAPACITY => DemandSteps(&mut self.kernel).set_capacity(cpu, b),
            FAIR => {
                DemandSteps(&mut self.kernel).change_averages(cpu, |averages| {
                    let avg = averages.cfs;
                    (avg.util_avg, avg.runnable_avg, avg.util_est) = (b, c, d as u32);
                });
            }
            OTHERS => {
                let mut steps = DemandSteps(&mut self.kernel);
                steps.change_averages(cpu, |averages| {
                    (averages.rt.util_avg, averages.dl.util_avg) = (b, c);
                    averages.irq.util_avg = d;
                });
                steps.set_rt_runnable(cpu, e != 0);
                steps.set_running_bw(cpu, f);
            }
            CLAMPS => {
                let mut uclamp = UclampRq::default();
                uclamp.inc(Clamps { min: b as u32, max: c as u32 });
                DemandSteps(&mut self.kernel).set_clamps(cpu, uclamp);
            }
            HOOK => {
                self.kernel.inside_mut().cpus[cpu].tick.idle_calls = d;
                SugovSteps(&mut self.kernel).hook(CpuId(e as u16), cpu, b, c as u32);
            }
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
        match rng.below(24) {
            0..=5 => {
                let util = self.utilisation(cpu, rng);
                let runnable = if rng.one_in(3) { rng.below(4_000) } else { util };
                let estimate = self.utilisation(cpu, rng);
                record(FAIR, [cpu, util, runnable, estimate, 0, 0])
            }
            6..=7 => {
                let rare = |rng: &mut Rng, own: &Self| {
                    if rng.one_in(2) { own.utilisation(cpu, rng) / 2 } else { 0 }
                };
                let (rt, dl) = (rare(rng, self), rare(rng, self));
                let irq = if rng.one_in(3) { self.utilisation(cpu, rng) } else { rng.below(40) };
                let bandwidth = rng.pick(&[0, 0, 52_428, 104_857, 1 << 20]);
                let bandwidth = if rng.one_in(8) { rng.below(1 << 20) } else { bandwidth };
                record(OTHERS, [cpu, rt, dl, irq, rng.one_in(4) as u64, bandwidth])
            }
            8 if self.clamped => {
                let value = |rng: &mut Rng| rng.pick(&[0, 1, 128, 300, 512, 1023, 1024]);
                let (min, max) = (value(rng), value(rng));
                let max = if rng.one_in(2) { 1024 } else { max };
                record(CLAMPS, [cpu, min, max, 0, 0, 0])
            }
            9 if rng.one_in(4) => record(LIMITS, [0; 6]),
            _ => {
                let time = self.next_hook_at(rng);
                if rng.one_in(3) {
                    self.idle_calls[cpu as usize] += 1;
                }
                let this_cpu = if rng.one_in(3) { rng.below(CPUS) } else { cpu };
                let flags = rng.one_in(4) as u64;
                let calls = self.idle_calls[cpu as usize];
                record(HOOK, [cpu, time, flags, calls, this_cpu, 0])
            }
        }
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let [governor, sched_h, fair, core, syscalls, hook, hook_h, cpufreq, cpufreq_h] = [
            "kernel/sched/cpufreq_schedutil.c",
            "kernel/sched/sched.h",
            "kernel/sched/fair.c",
            "kernel/sched/core.c",
            "kernel/sched/syscalls.c",
            "kernel/sched/cpufreq.c",
            "include/linux/sched/cpufreq.h",
            "drivers/cpufreq/cpufreq.c",
            "include/linux/cpufreq.h",
        ]
        .map(|name| {
            extract::read(tree, name).or_else(|error| {
                // Split off core.c in 6.12.
                if name.ends_with("syscalls.c") { Ok(String::new()) } else { Err(error) }
            })
        });
        let (governor, sched_h, fair) = (governor?, sched_h?, fair?);
        let old = extract::function(&governor, "sugov_effective_cpu_perf").is_none();
        // DEADLINE bandwidth that grows.
        let late = extract::function(&governor, "ignore_dl_rate_limit")
            .is_some_and(|text| text.contains("need_freq_update"));
        let form = if old { BEFORE_6_8 } else { SINCE_6_8 + late as u8 };
        if form != FORM {
            let other = ["schedutil-6.1", "schedutil", "schedutil-7.3"][form as usize];
            return Err(format!("this tree's governor is of another form: l0 {other}"));
        }
        let utilisation = [core?, syscalls?, fair.clone()].concat();
        let (hook, hook_h, cpufreq, cpufreq_h) = (hook?, hook_h?, cpufreq?, cpufreq_h?);
        let mut pieces = Pieces::default();
        let (function, block) = (extract::function as Take, extract::block as Take);
        let macros = extract::macro_definition as Take;
        pieces.add(macros, &cpufreq_h, TABLE_MACROS)?;
        pieces.add(function, &cpufreq_h, TABLE_FUNCTIONS)?;
        pieces.add(function, &cpufreq_h, &["cpufreq_policy_apply_limits"])?;
        let target = [
            "__resolve_freq",
            "cpufreq_driver_resolve_freq",
            "__target_index",
            "__cpufreq_driver_target",
        ];
        pieces.add(function, &cpufreq, &target)?;
        pieces.add(function, &hook, &["cpufreq_this_cpu_can_update"])?;
        pieces.add(function, &hook_h, &["map_util_freq", "map_util_perf"])?;
        // Which of them a release has, and in which file, differs; the compiler misses what is missing.
        pieces.add(macros, &fair, &["lsub_positive"])?;
        let utilisations =
            ["cpu_bw_dl", "cpu_util_dl", "cpu_util_rt", "cpu_util_irq", "scale_irq_capacity"];
        pieces.add(function, &sched_h, &utilisations)?;
        let clamps = ["uclamp_rq_get", "uclamp_rq_is_idle", "uclamp_is_used"];
        pieces.add(function, &sched_h, &clamps)?;
        if Self::OLD {
            pieces.add(function, &sched_h, &["cpu_util_cfs", "uclamp_rq_util_with"])?;
        } else {
            let of_fair = ["cpu_util", "cpu_util_cfs", "cpu_util_cfs_boost"];
            pieces.add(function, &fair, &of_fair)?;
        }
        pieces.add(function, &sched_h, &["uclamp_rq_is_capped"])?;
        pieces.add(function, &utilisation, &["effective_cpu_util"])?;
        pieces.add(macros, &governor, &["IOWAIT_BOOST_MIN"])?;
        let structures = ["struct sugov_tunables", "struct sugov_policy", "struct sugov_cpu"];
        pieces.add(block, &governor, &structures)?;
        let per_cpu = "static DEFINE_PER_CPU(struct sugov_cpu";
        pieces.add(extract::statement, &governor, &[per_cpu])?;
        if Self::OLD {
            pieces.add(function, &governor, &["sugov_update_rate_limit_us"])?;
        } else {
            let reference = ["get_capacity_ref_freq", "sugov_effective_cpu_perf"];
            pieces.add(function, &governor, &reference)?;
            // Since 6.12.117 the start calls functions.
            let start = ["sugov_update_rate_limit_us", "sugov_update_rate_limit_us_sync"];
            pieces.add_if_there(function, &governor, &start);
        }
        let names = GOVERNOR_FUNCTIONS.iter().map(|name| match *name {
            "sugov_hold_freq" if Self::OLD => "sugov_cpu_is_busy",
            name => name,
        });
        pieces.add(function, &governor, &names.collect::<Vec<_>>())?;
        pieces.write(build_dir, "schedutil_extract.h")?;
        let form: &[&str] = [&["-DFORM_6_1"][..], &[], &["-DFORM_7_3"]][FORM as usize];
        oracle::compile("schedutil/shim.c", &[build_dir], build_dir, &[flags, form].concat())
    }
}

/// The functions that are taken out of `cpufreq_schedutil.c`, in an order in which it compiles.
const GOVERNOR_FUNCTIONS: &[&str] = &[
    "sugov_should_update_freq",
    "sugov_update_next_freq",
    "sugov_deferred_update",
    "get_next_freq",
    "sugov_get_util",
    "sugov_iowait_reset",
    "sugov_iowait_boost",
    "sugov_iowait_apply",
    "sugov_hold_freq",
    "ignore_dl_rate_limit",
    "sugov_update_single_common",
    "sugov_update_single_freq",
    "sugov_update_single_perf",
    "sugov_next_freq_shared",
    "sugov_update_shared",
    "sugov_work",
    "sugov_irq_work",
    "sugov_start",
    "sugov_limits",
];
