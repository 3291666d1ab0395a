// SPDX-License-Identifier: GPL-2.0-or-later
//! Cache-aware scheduling of 7.3: which last-level cache a process prefers, and who may cross between caches.
//!
//! Eight CPUs in caches of several layouts, up to eight threads of three processes. A sequence starts threads, lets them run, tick,
//! scan, queue, delay and exit while jiffies pass. In between, pairs of caches with any utilisation are asked about.
//!
//! **Not compared here:** when scans run (at return to user mode), NUMA balancing (absent); what balancing makes of it is part of
//! `balance-7.3`.

mod mutations;

use crate::l0::mutate::{KernelFiles, Mutation, Sources};
use crate::l0::{ARGS, OpSpec, Out, Record, Subject, TREE_7_3, extract, oracle};
use schedtwin_kernel::config::LlcBalancing;
use schedtwin_kernel::sched::fair::balance::llc::limits::{
    LlcMigration, LlcStats, can_migrate_llc,
};
use schedtwin_kernel::sched::fair::sched_cache::{CacheAffinity, CacheCpu, LlcId, Scan};
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, CpuMask, ProcessId, TaskId};
use std::path::{Path, PathBuf};

// Operation numbers, as in `shim.c`.
const MACHINE: usize = 0;
const LIMITS: usize = 1;
const FORK: usize = 2;
const EXIT: usize = 3;
const ACCOUNT: usize = 4;
const TICK: usize = 5;
const WORK: usize = 6;
const ENQUEUE: usize = 7;
const DEQUEUE: usize = 8;
const DELAY: usize = 9;
const CROSS: usize = 10;

/// Operations of a sequence.
const STEPS: usize = 96;
const CPUS: u64 = 8;
const TASKS: usize = 8;
/// The caches of each layout, by their numbers of CPUs.
const LAYOUTS: [&[u16]; 4] = [&[4, 4], &[2, 2, 2, 2], &[1, 2, 5], &[6, 2]];

/// The functions that are cut out of `fair.c`, in an order in which it compiles.
const FUNCTIONS: &[&str] = &[
    "llc_id",
    "get_sched_cache_scale",
    "exceed_llc_capacity",
    "invalid_llc_nr",
    "task_pref_llc_runnable",
    "pref_llc_running_inc",
    "pref_llc_running_dec",
    "account_llc_enqueue",
    "account_llc_dequeue",
    "mm_init_sched",
    "__shr_u64",
    "__update_mm_sched",
    "fraction_mm_sched",
    "get_pref_llc",
    "account_mm_sched",
    "task_tick_cache",
    "get_scan_cpumasks",
    "update_avg_scale",
    "task_cache_work",
    "fits_llc_capacity",
    "get_llc_stats",
];

/// The modules of the kernel crate that the subject needs.
const FILES: KernelFiles = KernelFiles {
    library: "pub mod config; pub mod sched { pub mod fair {
              pub const NICE_0_LOAD: u64 = 1024 << 10;
              pub mod sched_cache { pub mod occupancy; pub use occupancy::*; }
              pub mod balance { pub mod llc { pub mod limits; } } } }",
    files: &["config/", "sched/fair/sched_cache/occupancy.rs", "sched/fair/balance/llc/limits.rs"],
};

/// A task of the generator's world.
#[derive(Clone, Copy, Default)]
struct Task {
    process: u32,
    queued_on: Option<u16>,
    delayed: bool,
    exited: bool,
}

/// The world.
pub struct SchedCaches {
    cache: CacheAffinity,
    limits: LlcBalancing,
    tasks: Vec<Task>,
    /// Generator only.
    jiffies: u64,
    period: u64,
}

fn limits() -> LlcBalancing {
    LlcBalancing {
        aggr_tolerance: 1,
        epoch_period: None,
        epoch_affinity_timeout: 5,
        overaggr_pct: 50,
        imb_pct: 20,
    }
}

fn caches(layout: usize, limits: LlcBalancing, period: u64, smt_threads: u32) -> CacheAffinity {
    let sizes = LAYOUTS[layout];
    let mut cpus = Vec::new();
    for (llc, size) in sizes.iter().enumerate() {
        let first = cpus.len() as u16;
        let span: CpuMask = (first..first + size).map(CpuId).collect();
        let span = if *size == 1 { CpuMask::EMPTY } else { span };
        for _ in 0..*size {
            cpus.push(CacheCpu::new(LlcId(llc as u16), *size as u32, span, sizes.len()));
        }
    }
    CacheAffinity::of(cpus, limits, period.max(1), smt_threads)
}

impl SchedCaches {
    fn task(&self, number: u64) -> (TaskId, Task) {
        (TaskId(number as u32), self.tasks[number as usize])
    }

    fn report(&self, cpu: u64, task: u64, out: &mut Out) {
        let own = &self.cache.cpus[cpu as usize];
        out.word("cpu", "runtime", own.time.runtime);
        out.word("cpu", "epoch", own.time.epoch);
        out.word("cpu", "epoch_next", own.epoch_next);
        out.word("cpu", "nr_pref_llc_running", own.nr_pref_llc_running as u64);
        let counts = own.llc_counts.iter().enumerate();
        out.word("cpu", "llc_counts", counts.map(|(at, n)| (*n as u64) << (8 * at)).sum());
        let (id, t) = self.task(task);
        let group = self.cache.group(ProcessId(t.process));
        out.word("group", "runtime", group.times[cpu as usize].runtime);
        out.word("group", "runtime_epoch", group.times[cpu as usize].epoch);
        out.word("group", "epoch", group.epoch);
        out.word("group", "next_scan", group.next_scan);
        out.word("group", "nr_running_avg", group.nr_running_avg);
        out.word("group", "cpu", group.cpu.map_or(u64::MAX, |cpu| cpu.0 as u64));
        let preferred = self.cache.preferred_llc(id);
        out.word("task", "preferred_llc", preferred.map_or(u64::MAX, |llc| llc.0 as u64));
        out.word("task", "scan", (self.cache.scan_of(id) == Scan::Queued) as u64);
    }
}

impl Subject for SchedCaches {
    const NAME: &'static str = "sched-cache";
    const TREE: &'static str = TREE_7_3;
    const OPS: &'static [OpSpec] = &[
        OpSpec { name: "machine", args: &["layout", "smt", "tolerance", "period", "timeout"] },
        OpSpec { name: "limits", args: &["overaggr_pct", "imb_pct"] },
        OpSpec { name: "fork", args: &["process", "jiffies"] },
        OpSpec { name: "exit", args: &["task"] },
        OpSpec { name: "account", args: &["cpu", "task", "delta", "jiffies"] },
        OpSpec { name: "tick", args: &["cpu", "task"] },
        OpSpec { name: "work", args: &["cpu", "task", "jiffies", "running"] },
        OpSpec { name: "enqueue", args: &["cpu", "task"] },
        OpSpec { name: "dequeue", args: &["cpu", "task"] },
        OpSpec { name: "delay", args: &["task", "delayed"] },
        OpSpec {
            name: "cross",
            args: &["src_util", "src_capacity", "dst_util", "dst_capacity", "util", "to_preferred"],
        },
    ];
    const SOURCES: Sources = Sources { modules: &["sched_cache"], kernel: Some(&FILES) };
    const MUTATIONS: &'static [Mutation] = mutations::SCHED_CACHE;
    const GOLDEN_SHOWN: u64 = 3;

    fn new() -> Self {
        let cache = caches(0, limits(), 1, 1);
        SchedCaches { cache, limits: limits(), tasks: Vec::new(), jiffies: 0, period: 1 }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let arg = record.args;
        match record.op {
            MACHINE => {
                self.limits = LlcBalancing {
                    aggr_tolerance: arg[2] as u32,
                    epoch_affinity_timeout: arg[4] as u32,
                    ..limits()
                };
                self.period = arg[3].max(1);
                self.cache = caches(arg[0] as usize, self.limits, self.period, arg[1] as u32);
            }
            LIMITS => {
                self.limits.overaggr_pct = arg[0] as u32;
                self.limits.imb_pct = arg[1] as u32;
            }
            FORK => {
                self.jiffies = arg[1];
                self.cache.fork(Some(ProcessId(arg[0] as u32)), arg[1]);
                self.tasks.push(Task { process: arg[0] as u32, ..Task::default() });
            }
            EXIT => {
                self.cache.exit(TaskId(arg[0] as u32));
                self.tasks[arg[0] as usize].exited = true;
            }
            ACCOUNT => {
                self.jiffies = arg[3];
                let (id, task) = self.task(arg[1]);
                let cpu = CpuId(arg[0] as u16);
                if let Some(process) = self.cache.process_of(id) {
                    let preferred = self.cache.account_mm_sched(cpu, process, arg[2], arg[3]);
                    if task.queued_on == Some(cpu.0) {
                        self.cache.prefer(cpu, id, preferred, task.delayed);
                    }
                }
                self.report(arg[0], arg[1], out);
            }
            TICK => {
                self.cache.task_tick_cache(CpuId(arg[0] as u16), TaskId(arg[1] as u32));
                self.report(arg[0], arg[1], out);
            }
            WORK => {
                self.jiffies = arg[2];
                let id = TaskId(arg[1] as u32);
                self.cache.set_scan(id, Scan::None);
                if let Some(process) = self.cache.process_of(id) {
                    let runs_on = |_: &CacheAffinity, cpu: CpuId| arg[3] >> cpu.0 & 1 != 0;
                    self.cache.task_cache_work(CpuId(arg[0] as u16), process, arg[2], runs_on);
                }
                self.report(arg[0], arg[1], out);
            }
            ENQUEUE => {
                let (id, task) = self.task(arg[1]);
                self.cache.account_llc_enqueue(CpuId(arg[0] as u16), id, task.delayed);
                self.tasks[id.index()].queued_on = Some(arg[0] as u16);
                self.report(arg[0], arg[1], out);
            }
            DEQUEUE => {
                let (id, task) = self.task(arg[1]);
                self.cache.account_llc_dequeue(CpuId(arg[0] as u16), id, task.delayed);
                self.tasks[id.index()].queued_on = None;
                self.report(arg[0], arg[1], out);
            }
            DELAY => {
                let (id, task) = self.task(arg[0]);
                let cpu = CpuId(task.queued_on.expect("a queued task"));
                self.cache.delayed(cpu, id, arg[1] != 0);
                self.tasks[id.index()].delayed = arg[1] != 0;
                self.report(cpu.0 as u64, arg[0], out);
            }
            CROSS => {
                let src = LlcStats { util: arg[0], capacity: arg[1] };
                let dst = LlcStats { util: arg[2], capacity: arg[3] };
                let smt = self.cache.smt_threads();
                let answer = can_migrate_llc((src, dst), arg[4], arg[5] != 0, &self.limits, smt);
                out.word(
                    "",
                    "result",
                    match answer {
                        LlcMigration::Forbidden => 0,
                        LlcMigration::Gathers => 1,
                        LlcMigration::Unrestricted => 2,
                    },
                );
            }
            _ => unreachable!("an operation of the list"),
        }
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        if step == STEPS {
            return None;
        }
        let mut args = [0; ARGS];
        let jiffies = self.jiffies
            + match rng.below(8) {
                0 => rng.below(2 * self.period + 2),
                1 => 1,
                2 if rng.one_in(4) => rng.below(80 * self.period),
                _ => 0,
            };
        let drawn = match rng.below(24) {
            _ if step == 0 => MACHINE,
            _ if step == 1 => LIMITS,
            _ if step < 4 => FORK,
            0..=7 => ACCOUNT,
            8 | 9 => TICK,
            10..=13 => WORK,
            14 | 15 => ENQUEUE,
            16 => DEQUEUE,
            17 => DELAY,
            18 if self.tasks.len() < TASKS => FORK,
            19 if rng.one_in(4) => EXIT,
            20 | 21 => LIMITS,
            _ => CROSS,
        };
        let number = rng.below(self.tasks.len().max(1) as u64);
        let task = self.tasks.get(number as usize).copied().unwrap_or_default();
        let cpu = task.queued_on.map_or_else(|| rng.below(CPUS), u64::from);
        // What a task's state does not allow becomes the opposite.
        let op = match (drawn, task.queued_on) {
            (ENQUEUE, Some(_)) => DEQUEUE,
            (DEQUEUE | DELAY, None) => ENQUEUE,
            (EXIT, _) if task.exited => TICK,
            (op, _) => op,
        };
        match op {
            MACHINE => {
                args[0] = rng.below(4);
                args[1] = rng.pick(&[1, 1, 2, 4]);
                args[2] = rng.pick(&[1, 1, 1, 2, 0, 99, 100, 101]);
                args[3] = rng.pick(&[0, 1, 2, 10, 10]);
                args[4] = rng.pick(&[5, 5, 0, 50]);
            }
            LIMITS => {
                args[0] = rng.pick(&[50, 50, 1, 100, 0]);
                args[1] = rng.pick(&[20, 20, 0, 100]);
            }
            FORK => args[..2].copy_from_slice(&[rng.below(3), jiffies]),
            EXIT => args[0] = number,
            ACCOUNT => {
                let delta = rng.magnitude(24);
                args[..4].copy_from_slice(&[cpu, number, delta, jiffies]);
            }
            TICK | ENQUEUE | DEQUEUE => args[..2].copy_from_slice(&[cpu, number]),
            WORK => {
                let running = rng.below(256) | 1 << cpu;
                args[..4].copy_from_slice(&[cpu, number, jiffies, running]);
            }
            DELAY => args[..2].copy_from_slice(&[number, !task.delayed as u64]),
            _ => {
                let (src, dst) = (1 + rng.magnitude(13), 1 + rng.magnitude(13));
                // Around the limit and around each other.
                let limit = |capacity: u64, rng: &mut Rng| {
                    let percent = self.limits.overaggr_pct as u64;
                    (capacity * percent / 100 + rng.below(3)).saturating_sub(1)
                };
                let src_util = if rng.one_in(2) { limit(src, rng) } else { rng.below(src + 1) };
                let dst_util = match rng.below(3) {
                    0 => limit(dst, rng),
                    1 => src_util * (100 + self.limits.imb_pct as u64) / 100 + rng.below(3),
                    _ => rng.below(dst + 1),
                };
                let util = if rng.one_in(2) { 0 } else { rng.magnitude(10) };
                args = [src_util, src, dst_util, dst, util, rng.below(2)];
            }
        }
        Some(Record { op, args })
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let path = tree.join("kernel/sched/fair.c");
        let fair = std::fs::read_to_string(&path)
            .map_err(|error| format!("read {}: {error}", path.display()))?;
        let missing = |name: &str| format!("{}: no {name} in fair.c", tree.display());
        let mut text = String::new();
        for name in FUNCTIONS {
            text += &extract::function(&fair, name).ok_or_else(|| missing(name))?;
        }
        text += &extract::macro_definition(&fair, "util_greater")
            .ok_or_else(|| missing("util_greater"))?;
        text += &extract::block(&fair, "enum llc_mig").ok_or_else(|| missing("enum llc_mig"))?;
        text += &extract::function(&fair, "can_migrate_llc")
            .ok_or_else(|| missing("can_migrate_llc"))?;
        let file = build_dir.join("sched_cache_extract.h");
        std::fs::write(&file, text)
            .map_err(|error| format!("write {}: {error}", file.display()))?;
        oracle::compile("sched_cache/shim.c", &[build_dir], build_dir, flags)
    }
}
