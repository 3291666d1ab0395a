// SPDX-License-Identifier: GPL-2.0-or-later
//! Running times, occupancy, scans and counts by preference. The module above decides how to use
//! them.

use crate::config::LlcBalancing;
use crate::sched::fair::NICE_0_LOAD;
use schedtwin_types::{CpuId, CpuMask, ProcessId, TaskId};

/// A last-level cache, numbered densely (`sd_llc_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlcId(pub u16);

/// Running time of late and the epoch up to which it has been halved (`struct sched_cache_time`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTime {
    /// Nanoseconds.
    pub runtime: u64,
    /// Epochs since boot.
    pub epoch: u64,
}

/// The state of a process (`struct sched_cache_group`).
#[derive(Clone, Debug)]
pub struct CacheGroup {
    /// Its running time on each CPU.
    pub times: Vec<CacheTime>,
    /// The epoch of the last scan that was queued.
    pub epoch: u64,
    /// The jiffy from which one may scan again.
    pub next_scan: u64,
    /// On how many CPUs it runs at once, averaged.
    pub nr_running_avg: u64,
    /// The CPU that stands for the preferred LLC.
    pub cpu: Option<CpuId>,
    /// Its threads (`signal->nr_threads`).
    pub nr_threads: u32,
}

/// The state of a CPU.
#[derive(Clone, Debug)]
pub struct CacheCpu {
    /// Its LLC.
    pub llc: LlcId,
    /// Number of its CPUs (`sd_llc_size`).
    pub llc_size: u32,
    /// The CPUs of the LLC; none where it has one CPU and so no domain.
    pub llc_span: CpuMask,
    /// Running time of all processes, and the epoch up to which it has been halved (`cpu_runtime`, `cpu_epoch`).
    pub time: CacheTime,
    /// The jiffy when the next epoch begins.
    pub epoch_next: u64,
    /// Runnable tasks that prefer this CPU's LLC.
    pub nr_pref_llc_running: u32,
    /// Queued tasks by the LLC that they prefer (`sd->llc_counts`).
    pub llc_counts: Vec<u32>,
}

impl CacheCpu {
    /// A CPU of an LLC, one of `nr_llcs`; the span is empty where it is the only CPU.
    pub fn new(llc: LlcId, llc_size: u32, llc_span: CpuMask, nr_llcs: usize) -> CacheCpu {
        CacheCpu {
            llc,
            llc_size,
            llc_span,
            time: CacheTime::default(),
            epoch_next: 0,
            nr_pref_llc_running: 0,
            llc_counts: vec![0; nr_llcs],
        }
    }
}

/// Where a scan of a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// None is queued.
    None,
    /// It is done when the task returns to user mode.
    Queued,
    /// The task was about to, and is preempted: it scans as soon as it runs again.
    AtSwitch,
}

/// The state of a task.
#[derive(Clone, Copy, Debug)]
struct CacheTask {
    /// Its process; `None`: it is a kernel thread, or exits.
    process: Option<ProcessId>,
    preferred_llc: Option<LlcId>,
    /// It is queued where it prefers to be.
    pref_llc_queued: bool,
    scan: Scan,
}

/// The state of all CPUs, processes and tasks.
#[derive(Clone, Debug)]
pub struct CacheAffinity {
    /// The tunables.
    pub limits: LlcBalancing,
    /// `epoch_period` in jiffies.
    period: u64,
    /// `cpu_smt_num_threads`.
    smt_threads: u32,
    /// By CPU.
    pub cpus: Vec<CacheCpu>,
    /// By process.
    groups: Vec<Option<CacheGroup>>,
    /// By task.
    tasks: Vec<CacheTask>,
}

/// `__shr_u64()`.
fn shr(value: u64, n: u64) -> u64 {
    if n >= 64 { 0 } else { value >> n }
}

/// `fits_capacity()`.
fn fits_capacity(value: u64, max: u64) -> bool {
    value.wrapping_mul(1280) < max.wrapping_mul(1024)
}

/// Whether a process that runs on so many CPUs at once is small enough for an LLC of `llc_size` CPUs, of which `smt_threads` are
/// a core (the second part of `invalid_llc_nr()`, the other way round).
pub fn nr_running_fits(nr_running: u64, smt_threads: u32, llc_size: u32, tolerance: u32) -> bool {
    let scale = match tolerance {
        0 => 0,
        100.. => return true,
        _ => tolerance,
    };
    fits_capacity(nr_running.wrapping_mul(smt_threads as u64), (scale * llc_size) as u64)
}

/// `update_avg_scale()`: small LLCs follow changes sooner.
pub fn update_avg_scale(avg: &mut u64, sample: u64, llc_size: u32) {
    let diff = sample.wrapping_sub(*avg) as i64;
    let divisor = (llc_size >> 2).clamp(2, 8) as i64;
    *avg = avg.wrapping_add((diff / divisor) as u64);
}

impl CacheAffinity {
    /// CPUs, and no process yet. `period`: an epoch in jiffies; `smt_threads`: `cpu_smt_num_threads`.
    pub fn of(
        cpus: Vec<CacheCpu>,
        limits: LlcBalancing,
        period: u64,
        smt_threads: u32,
    ) -> CacheAffinity {
        CacheAffinity { limits, period, smt_threads, cpus, groups: Vec::new(), tasks: Vec::new() }
    }

    /// `fork()` or `clone()` of a task: the next number. A process that is new gets its numbers (`mm_init_sched()`).
    pub fn fork(&mut self, process: Option<ProcessId>, jiffies: u64) {
        self.tasks.push(CacheTask {
            process,
            preferred_llc: None,
            pref_llc_queued: false,
            scan: Scan::None,
        });
        let Some(process) = process else { return };
        let at = process.0 as usize;
        if self.groups.len() <= at {
            self.groups.resize(at + 1, None);
        }
        let cpus = &self.cpus;
        let group = self.groups[at].get_or_insert_with(|| CacheGroup {
            times: cpus.iter().map(|cpu| CacheTime { runtime: 0, ..cpu.time }).collect(),
            epoch: cpus.last().expect("there is a CPU").time.epoch,
            next_scan: jiffies,
            nr_running_avg: 0,
            cpu: None,
            nr_threads: 0,
        });
        group.nr_threads += 1;
    }

    /// `exit()` of a task (`sched_cache_exit_mm()`, `__exit_signal()`).
    pub fn exit(&mut self, task: TaskId) {
        if let Some(process) = self.tasks[task.index()].process.take() {
            self.group_mut(process).nr_threads -= 1;
        }
    }

    /// Returns the state of a process.
    pub fn group(&self, process: ProcessId) -> &CacheGroup {
        self.groups[process.0 as usize].as_ref().expect("a process that has a thread")
    }

    /// The same, to be changed.
    pub fn group_mut(&mut self, process: ProcessId) -> &mut CacheGroup {
        self.groups[process.0 as usize].as_mut().expect("a process that has a thread")
    }

    /// The LLC that a task prefers.
    pub fn preferred_llc(&self, task: TaskId) -> Option<LlcId> {
        self.tasks[task.index()].preferred_llc
    }

    /// The process of a task.
    pub fn process_of(&self, task: TaskId) -> Option<ProcessId> {
        self.tasks[task.index()].process
    }

    /// `cpu_smt_num_threads`.
    pub fn smt_threads(&self) -> u32 {
        self.smt_threads
    }

    /// An epoch in jiffies.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Where the scan of a task is.
    pub fn scan_of(&self, task: TaskId) -> Scan {
        self.tasks[task.index()].scan
    }

    /// It goes on.
    pub fn set_scan(&mut self, task: TaskId, scan: Scan) {
        self.tasks[task.index()].scan = scan;
    }

    /// `invalid_llc_nr()`: whether a process is too small or too large to be gathered in the LLC of `cpu`.
    pub fn invalid_llc_nr(&self, process: ProcessId, cpu: CpuId) -> bool {
        let (group, size) = (self.group(process), self.cpus[cpu.index()].llc_size);
        let (nr_running, tolerance) = (group.nr_running_avg, self.limits.aggr_tolerance);
        group.nr_threads <= 1 || !nr_running_fits(nr_running, self.smt_threads, size, tolerance)
    }

    /// `__update_mm_sched()`: halves running times by the epochs that have passed.
    fn update_mm_sched(&mut self, cpu: CpuId, process: ProcessId, jiffies: u64) {
        let period = self.period;
        let own = &mut self.cpus[cpu.index()];
        let late = jiffies.wrapping_sub(own.epoch_next) as i64;
        if late > 0 {
            let epochs = (late as u64).div_ceil(period);
            own.time.epoch += epochs;
            own.epoch_next += epochs * period;
            own.time.runtime = shr(own.time.runtime, epochs);
        }
        let epoch = own.time.epoch;
        let time = &mut self.group_mut(process).times[cpu.index()];
        let epochs = epoch - time.epoch;
        time.epoch = epoch;
        time.runtime = shr(time.runtime, epochs);
    }

    /// `fraction_mm_sched()`: the occupancy of a process on a CPU.
    pub fn fraction_mm_sched(&mut self, cpu: CpuId, process: ProcessId, jiffies: u64) -> u64 {
        self.update_mm_sched(cpu, process, jiffies);
        let own = self.group(process).times[cpu.index()].runtime;
        let all = self.cpus[cpu.index()].time.runtime;
        NICE_0_LOAD.wrapping_mul(own) / (all + 1)
    }

    /// `account_mm_sched()` of a thread of the process, without its last part: the LLC that the thread is to prefer.
    pub fn account_mm_sched(
        &mut self,
        cpu: CpuId,
        process: ProcessId,
        delta: u64,
        jiffies: u64,
    ) -> Option<LlcId> {
        self.update_mm_sched(cpu, process, jiffies);
        let own = &mut self.cpus[cpu.index()].time;
        own.runtime = own.runtime.wrapping_add(delta);
        let epoch = own.epoch;
        let time = &mut self.group_mut(process).times[cpu.index()];
        time.runtime = time.runtime.wrapping_add(delta);
        let silent = epoch.wrapping_sub(self.group(process).epoch) as i64;
        if silent > self.limits.epoch_affinity_timeout as i64 || self.invalid_llc_nr(process, cpu) {
            self.group_mut(process).cpu = None;
        }
        self.group(process).cpu.map(|cpu| self.cpus[cpu.index()].llc)
    }

    /// `task_tick_cache()`.
    pub fn task_tick_cache(&mut self, cpu: CpuId, task: TaskId) {
        let Some(process) = self.process_of(task) else { return };
        let epoch = self.cpus[cpu.index()].time.epoch;
        if self.group(process).epoch >= epoch {
            return;
        }
        let scan = &mut self.tasks[task.index()].scan;
        if *scan == Scan::None {
            *scan = Scan::Queued;
            self.group_mut(process).epoch = epoch;
        }
    }

    /// `task_cache_work()` on `cpu`; `runs_on`: whether the process is running on a CPU. Returns how many CPUs were read.
    pub fn task_cache_work(
        &mut self,
        cpu: CpuId,
        process: ProcessId,
        jiffies: u64,
        runs_on: impl Fn(&CacheAffinity, CpuId) -> bool,
    ) -> u64 {
        if jiffies < self.group(process).next_scan {
            return 0;
        }
        self.group_mut(process).next_scan = jiffies + self.period;
        if self.invalid_llc_nr(process, cpu) {
            self.group_mut(process).cpu = None;
            return 0;
        }
        let preferred = self.group(process).cpu.map(|cpu| self.cpus[cpu.index()].llc);
        let mut left = CpuMask::first(self.cpus.len());
        let (mut best, mut best_cpu, mut preferred_has) = (0, None, 0);
        let (mut nr_running, mut cpus_read) = (0, 0);
        for first in left.iter() {
            let CacheCpu { llc, llc_span, .. } = self.cpus[first.index()];
            if !left.contains(first) || llc_span.is_empty() {
                continue;
            }
            let (mut sum, mut most, mut busiest) = (0u64, 0, None);
            for cpu in llc_span.iter() {
                let occupancy = self.fraction_mm_sched(cpu, process, jiffies);
                sum = sum.wrapping_add(occupancy);
                if occupancy > most {
                    (most, busiest) = (occupancy, Some(cpu));
                }
                nr_running += runs_on(self, cpu) as u64;
                cpus_read += 1;
            }
            if sum > best {
                (best, best_cpu) = (sum, busiest);
            }
            if Some(llc) == preferred {
                preferred_has = sum;
            }
            left = left.and_not(&llc_span);
        }
        let size = self.cpus[cpu.index()].llc_size;
        let group = self.group_mut(process);
        if best > preferred_has.wrapping_mul(2) {
            group.cpu = best_cpu;
        }
        update_avg_scale(&mut group.nr_running_avg, nr_running, size);
        cpus_read
    }

    /// `account_llc_enqueue()`; `delayed`: its dequeue is.
    pub fn account_llc_enqueue(&mut self, cpu: CpuId, task: TaskId, delayed: bool) {
        let (task, own) = (&mut self.tasks[task.index()], &mut self.cpus[cpu.index()]);
        let Some(preferred) = task.preferred_llc else { return };
        task.pref_llc_queued = preferred == own.llc;
        own.nr_pref_llc_running += (task.pref_llc_queued && !delayed) as u32;
        own.llc_counts[preferred.0 as usize] += 1;
    }

    /// `account_llc_dequeue()`.
    pub fn account_llc_dequeue(&mut self, cpu: CpuId, task: TaskId, delayed: bool) {
        let (task, own) = (&mut self.tasks[task.index()], &mut self.cpus[cpu.index()]);
        let Some(preferred) = task.preferred_llc else { return };
        own.nr_pref_llc_running -= (task.pref_llc_queued && !delayed) as u32;
        task.pref_llc_queued = false;
        own.llc_counts[preferred.0 as usize] -= 1;
    }

    /// `pref_llc_running_dec()` of a task whose dequeue is now delayed, `pref_llc_running_inc()` of one that goes on.
    pub fn delayed(&mut self, cpu: CpuId, task: TaskId, delayed: bool) {
        if self.tasks[task.index()].pref_llc_queued {
            let count = &mut self.cpus[cpu.index()].nr_pref_llc_running;
            *count = if delayed { *count - 1 } else { *count + 1 };
        }
    }

    /// The last part of `account_mm_sched()`: a queued task takes over another preference.
    pub fn prefer(&mut self, cpu: CpuId, task: TaskId, preferred: Option<LlcId>, delayed: bool) {
        if self.preferred_llc(task) != preferred {
            self.account_llc_dequeue(cpu, task, delayed);
            self.tasks[task.index()].preferred_llc = preferred;
            self.account_llc_enqueue(cpu, task, delayed);
        }
    }
}
