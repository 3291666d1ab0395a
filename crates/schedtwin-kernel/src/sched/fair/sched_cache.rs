// SPDX-License-Identifier: GPL-2.0-or-later
//! Cache-aware scheduling: in which last-level cache (LLC) the threads of a process are to be gathered.
//!
//! **Decides** the preferred LLC of each process. Balancing acts on it (`balance/llc.rs`); wakeups do not ask.
//!
//! **Idea.** Threads of a process share data. On a machine of several LLCs they had better share
//! one of them, as long as it has spare capacity. The LLC where the process has run most of late
//! costs the fewest moves.
//!
//! **Terms.** *Epoch*: a hundredth of a second (`epoch_period`). *Occupancy* of a process on a CPU: which part of the CPU's running
//! time of late was its own, 2^20 = all. *Scan*: the work of one thread, once an epoch, that finds the LLC with the most occupancy.
//!
//! **Algorithm.** 1. Running time of fair user threads is summed per CPU, and per CPU and process; each epoch that has passed
//! halves both. 2. The first tick on a thread after a new epoch queues the scan, which that thread does when it returns to user
//! mode. 3. The scan sums occupancy per LLC. If the best has more than twice the occupancy of the preferred one, the busiest CPU of the
//! best stands for it from now on. It also counts on how many CPUs the process is running, and averages that.
//! 4. A process has no preferred LLC while it has one thread, runs on too many CPUs for an LLC, or nobody has scanned for it for
//! `epoch_affinity_timeout` epochs. 5. Each thread takes over the preference of its process when its running time is accounted. Run
//! queues count their tasks by preference.
//!
//! ```text
//! epoch        0         1         2         3
//! CPU 0 (LLC 0)  A A A A   A A . .                    runtime of A: 1/8 + 1/4 · 4 + ... halved each epoch
//! CPU 4 (LLC 1)  A . . .   A A A A   A A A A          scan in epoch 2: 1.5 > 2 · 1? no. In epoch 3: 1.75 > 2 · 0.5: LLC 1
//! ```
//!
//! ```
//! use schedtwin_kernel::sched::fair::sched_cache::nr_running_fits;
//!
//! // An LLC of 8 CPUs takes processes that run on up to 6 of them; one of 16 hardware threads of 8 cores likewise.
//! assert!(nr_running_fits(6, 1, 8, 1) && !nr_running_fits(7, 1, 8, 1));
//! assert!(nr_running_fits(6, 2, 16, 1) && !nr_running_fits(7, 2, 16, 1));
//! ```
//!
//! Kernel: 7.3.4 kernel/sched/fair.c `account_mm_sched`, `task_tick_cache`, `task_cache_work`, `account_llc_enqueue`,
//! kernel/sched/topology.c `sd_in_multi_llcs`.
//! Differences:
//! - There is no NUMA balancing, so no footprint of a process is known and none exceeds its LLC; scans look at all CPUs.
//! - A process that becomes one of threads keeps its numbers; `exec` is not modelled. The first thread of a process that exits before
//!   the others no longer counts as one of them.
//! - A scan costs what balancing pays for reading its CPUs (`path_costs.balance_per_cpu`).
//! - A thread that goes on with work of kernel mode after a system call scans before that work, not after it.

mod occupancy;

pub use occupancy::*;

use crate::config::{Config, SchedCache};
use crate::sched::topology::{DomainId, Topology};
use crate::sched::{Class, EntityId, OnRq, TaskKind};
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, CpuMask, Mode, ProcessId, TaskId};

impl CacheAffinity {
    /// At boot; `None` without the feature, or where there is one LLC, or none that CPUs share.
    pub(crate) fn new(config: &Config, topology: &Topology) -> Option<CacheAffinity> {
        let wider = |sd: DomainId| {
            let mut above = std::iter::successors(topology[sd].parent, |sd| topology[*sd].parent);
            above.any(|above| topology[above].span_weight > topology[sd].span_weight)
        };
        // sd_in_multi_llcs()
        let present = topology.sd_llc.iter().flatten().any(|sd| wider(*sd));
        if config.sched_cache == SchedCache::Absent || !present {
            return None;
        }
        let limits = config.llc_balancing;
        let period = limits.epoch_period.unwrap_or(config.hz / 100).max(1) as u64;
        let smt_threads = topology.smt_mask.iter().map(CpuMask::weight).max().unwrap_or(1);
        Some(CacheAffinity::of(cpus(topology), limits, period, smt_threads))
    }
}

fn cpus(topology: &Topology) -> Vec<CacheCpu> {
    let mut firsts = Vec::new();
    for first in &topology.sd_llc_id {
        if !firsts.contains(first) {
            firsts.push(*first);
        }
    }
    let cpus = topology.sd_llc_id.iter().enumerate().map(|(cpu, first)| {
        let llc = firsts.iter().position(|known| known == first).expect("it was put there");
        let span = topology.sd_llc[cpu].map_or(CpuMask::EMPTY, |sd| topology[sd].span);
        CacheCpu::new(LlcId(llc as u16), topology.sd_llc_size[cpu], span, firsts.len())
    });
    cpus.collect()
}

impl Scheduler {
    /// A new task's process: that which its caller names, and none for kernel threads.
    #[inline(always)]
    pub(crate) fn sched_cache_fork(&mut self, kind: TaskKind, process: ProcessId, cx: &Context) {
        let jiffies = cx.jiffies();
        if let Some(cache) = &mut self.sched_cache {
            cache.fork((kind == TaskKind::User).then_some(process), jiffies);
        }
    }

    #[inline(always)]
    pub(crate) fn sched_cache_exit(&mut self, task: TaskId) {
        if let Some(cache) = &mut self.sched_cache {
            cache.exit(task);
        }
    }

    /// `account_mm_sched()`: `se` has run for `delta` ns on `cpu`. Apart, as few machines need it.
    #[inline(never)]
    pub(super) fn account_mm_sched(&mut self, cpu: CpuId, se: EntityId, delta: u64, cx: &Context) {
        let jiffies = cx.jiffies();
        let (task, delayed) = (self.se[se].task, self.se[se].sched_delayed);
        let t = &self.tasks[task];
        // task_running_on_cpu()
        let queued =
            t.cpu == cpu && t.on_rq == OnRq::Queued && self.se[se].avg.last_update_time != 0;
        let Some(cache) = &mut self.sched_cache else { return };
        let Some(process) = cache.process_of(task).filter(|_| t.class == Class::Fair) else {
            return;
        };
        let preferred = cache.account_mm_sched(cpu, process, delta, jiffies);
        if queued {
            cache.prefer(cpu, task, preferred, delayed);
        }
    }

    #[inline(never)]
    pub(super) fn account_llc(&mut self, cpu: CpuId, se: EntityId, enqueue: bool) {
        let (task, delayed) = (self.se[se].task, self.se[se].sched_delayed);
        let Some(cache) = &mut self.sched_cache else { return };
        match enqueue {
            true => cache.account_llc_enqueue(cpu, task, delayed),
            false => cache.account_llc_dequeue(cpu, task, delayed),
        }
    }

    /// A task begins to be delayed, or goes on.
    #[inline(never)]
    pub(super) fn account_llc_delayed(&mut self, se: EntityId, delayed: bool) {
        let entity = &self.se[se];
        let (cpu, task) = (self.cfs[entity.cfs_rq].cpu, entity.task);
        if let Some(cache) = &mut self.sched_cache {
            cache.delayed(cpu, task, delayed);
        }
    }

    /// Whether the task scans before it goes on in user mode.
    #[inline(always)]
    pub(crate) fn has_cache_work(&self, task: TaskId) -> bool {
        self.sched_cache.as_ref().is_some_and(|cache| cache.scan_of(task) != Scan::None)
    }

    /// An interrupt of user mode preempts `task`.
    #[inline(always)]
    pub(crate) fn cache_work_is_preempted(&mut self, task: TaskId, mode: Mode) {
        if mode == Mode::User
            && let Some(cache) = &mut self.sched_cache
            && cache.scan_of(task) == Scan::Queued
        {
            cache.set_scan(task, Scan::AtSwitch);
        }
    }

    /// After a switch: the new task scans if it was preempted before it could.
    #[inline(always)]
    pub(crate) fn cache_work_after_switch(&mut self, cpu: CpuId, cx: &mut Context) {
        let task = self.rq[cpu].curr;
        if let Some(cache) = &self.sched_cache
            && cache.scan_of(task) == Scan::AtSwitch
        {
            self.task_cache_work(cpu, task, cx);
        }
    }

    /// `task_cache_work()` of the running task.
    #[inline(never)]
    pub(crate) fn task_cache_work(&mut self, cpu: CpuId, task: TaskId, cx: &mut Context) {
        let jiffies = cx.jiffies();
        let rq = &self.rq;
        let Some(cache) = &mut self.sched_cache else { return };
        cache.set_scan(task, Scan::None);
        let Some(process) = cache.process_of(task) else { return };
        let runs_on = |cache: &CacheAffinity, cpu| cache.process_of(rq[cpu].curr) == Some(process);
        let cpus_read = cache.task_cache_work(cpu, process, jiffies, runs_on);
        self.charge(cx.platform.device_tree.path_costs.balance_per_cpu * cpus_read, cx);
    }

    /// Recomputes what is counted by preference.
    pub(crate) fn verify_sched_cache(&self) {
        let Some(cache) = &self.sched_cache else { return };
        for cpu in self.rq.ids() {
            let own = &cache.cpus[cpu.index()];
            let (mut counts, mut running) = (vec![0; own.llc_counts.len()], 0);
            for task in self.tasks.ids().skip(1) {
                let se = &self.se[self.tasks[task].se];
                let Some(preferred) = cache.preferred_llc(task).filter(|_| se.on_rq) else {
                    continue;
                };
                if self.cfs[se.cfs_rq].cpu == cpu {
                    counts[preferred.0 as usize] += 1;
                    running += (preferred == own.llc && !se.sched_delayed) as u32;
                }
            }
            assert_eq!(own.llc_counts, counts, "{cpu}: queued tasks by preferred LLC");
            assert_eq!(own.nr_pref_llc_running, running, "{cpu}: runnable where they prefer");
        }
    }
}

#[cfg(test)]
mod tests;
