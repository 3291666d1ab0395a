// SPDX-License-Identifier: GPL-2.0-or-later
//! Bandwidths: which tasks are admitted, and how much of each CPU deadline tasks have reserved.
//!
//! Three sums, all in 2^-20 of a CPU:
//!
//! - `dl_bw.total_bw` of the root domain: every admitted reservation and the fair servers. A call that would bring it
//!   above `sched_rt_runtime_us / sched_rt_period_us` of the machine's capacity fails with EBUSY.
//! - `this_bw` of a CPU: the tasks that were there last, asleep or not.
//! - `running_bw` of a CPU: those of them that are *active*. It is a minimum for the CPU's
//!   frequency, so each change asks the governor.
//!
//! A task that falls asleep stays active until its *zero-lag time*: what it has run faster than its rate must have
//! passed first. A timer (`inactive_timer`) ends that.
//!
//! ```text
//!                 wakeup ┌──────────────────┐ sleep, zero-lag time is over
//!  ┌──────────┐ ────────►│ active contending│────────────────┐
//!  │ inactive │          └─────┬──────▲─────┘                │
//!  └──▲────▲──┘          sleep │      │ wakeup               │
//!     │    └──────┐      ┌─────▼──────┴─────────┐            │
//!     │     timer └──────│ active non-contending│            │
//!     └──────────────────┴──────────────────────┴────────────┘
//! ```
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/deadline.c `sched_dl_overflow`, `task_non_contending`, `task_contending`,
//! `inactive_task_timer`, `migrate_task_rq_dl`.
//! Differences: one root domain, no cpusets. The fair servers are admitted at boot.

use super::dl_bw::dl_bw_capacity;
use super::{DlBw, DlEntity, to_ratio};
use crate::config::Config;
use crate::cpufreq::hook::CLASS_QUEUE;
use crate::sched::Class;
use crate::sched::core::ENQUEUE_MIGRATED;
use crate::time::hrtimer::TimerKind;
use crate::{Context, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, CpuMask, DlReservation, Errno, Policy, SchedAttr, TaskId, TaskState};

impl Config {
    /// `init_dl_bw()`: the limit, and the fair servers of that many CPUs.
    pub(crate) fn dl_bw(&self, nr_cpus: usize) -> DlBw {
        DlBw {
            bw: self.rt_runtime.map(|runtime| to_ratio(self.rt_period, runtime)),
            total_bw: nr_cpus as u64 * to_ratio(self.fair_server_period, self.fair_server_runtime),
        }
    }

    /// Returns the bandwidth that deadline tasks may reserve together on a machine with these
    /// capacities, 2^20 = a CPU of capacity 1024; `None`: there is no limit.
    ///
    /// ```
    /// use schedtwin_kernel::config::Config;
    ///
    /// // 95 % of four CPUs, less 5 % of each for its fair server.
    /// let left = Config::linux_6_12().dl_bandwidth_left(&[1024; 4]);
    /// assert_eq!(left, Some(((996_147 * 4096) >> 10) - 4 * 52_428));
    /// ```
    pub fn dl_bandwidth_left(&self, capacities: &[u64]) -> Option<u64> {
        let dl_bw = self.dl_bw(capacities.len());
        let limit = (dl_bw.bw? * dl_bw_capacity(capacities)) >> 10;
        Some(limit.saturating_sub(dl_bw.total_bw))
    }
}

impl Kernel {
    /// `__add_running_bw()`.
    pub(crate) fn __add_running_bw(&mut self, cpu: CpuId, bw: u64) {
        let running_bw = &mut self.sched.rq[cpu].dl.running_bw;
        running_bw.change(cpu, &mut self.sched.stale_demands, |running_bw| *running_bw += bw);
        self.cpufreq_update_util(cpu, CLASS_QUEUE);
    }

    /// `__sub_running_bw()`.
    pub(crate) fn __sub_running_bw(&mut self, cpu: CpuId, bw: u64) {
        let running_bw = &mut self.sched.rq[cpu].dl.running_bw;
        assert!(**running_bw >= bw, "{cpu:?}: running_bw falls below 0");
        running_bw.change(cpu, &mut self.sched.stale_demands, |running_bw| *running_bw -= bw);
        self.cpufreq_update_util(cpu, CLASS_QUEUE);
    }

    pub(super) fn add_running_bw(&mut self, cpu: CpuId, task: TaskId) {
        let dl = &self.sched.tasks[task].dl;
        if !dl.special {
            let bw = dl.dl_bw;
            self.__add_running_bw(cpu, bw);
        }
    }

    pub(super) fn sub_running_bw(&mut self, cpu: CpuId, task: TaskId) {
        let dl = &self.sched.tasks[task].dl;
        if !dl.special {
            let bw = dl.dl_bw;
            self.__sub_running_bw(cpu, bw);
        }
    }

    /// `task_contending()`: it wakes.
    pub(super) fn task_contending(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        if self.sched.tasks[task].dl.dl_runtime == 0 {
            return;
        }
        if flags & ENQUEUE_MIGRATED != 0 {
            self.sched.add_rq_bw(cpu, task);
        }
        if self.sched.tasks[task].dl.non_contending {
            self.sched.tasks[task].dl.non_contending = false;
            self.sched.cancel_inactive_timer(task, &mut self.time, &mut self.cx);
        } else {
            self.add_running_bw(cpu, task);
        }
    }

    /// `task_non_contending()`: it sleeps, ends, or leaves the class.
    pub(super) fn task_non_contending(&mut self, cpu: CpuId, task: TaskId) {
        let t = &self.sched.tasks[task];
        if t.dl.dl_runtime == 0 || t.dl.special {
            return;
        }
        debug_assert!(!t.dl.non_contending);
        let (in_class, dead) = (t.class == Class::Deadline, t.state == TaskState::Dead);
        let zero_lag_in = t.dl.zero_lag_in(self.sched.rq[cpu].clock);
        if zero_lag_in < 0 || self.sched.inactive_timer_queued(task, &self.time) {
            if in_class {
                self.sub_running_bw(cpu, task);
            }
            if !in_class || dead {
                if dead {
                    self.sched.sub_rq_bw(cpu, task);
                }
                self.sched.free_reservation(task);
            }
            return;
        }
        let at = self.cx.local_clock() + zero_lag_in as u64;
        let kind = TimerKind::DlInactive(task);
        let on = self.hrtimer_target(kind, at, self.sched.tasks[task].dl.inactive_timer_on);
        let dl = &mut self.sched.tasks[task].dl;
        dl.non_contending = true;
        dl.inactive_timer_on = on;
        self.time.hrtimer_start(on, at, at, kind, &mut self.cx);
    }

    /// `inactive_task_timer()`.
    #[inline(never)]
    pub(crate) fn inactive_task_timer(&mut self, task: TaskId) {
        let t = &self.sched.tasks[task];
        let (cpu, non_contending) = (t.cpu, t.dl.non_contending);
        let (in_class, dead) = (t.class == Class::Deadline, t.state == TaskState::Dead);
        self.sched.update_rq_clock(cpu, &self.cx);
        if !in_class || dead {
            if dead && non_contending {
                self.sub_running_bw(cpu, task);
                self.sched.sub_rq_bw(cpu, task);
            }
            self.sched.free_reservation(task);
        } else if non_contending {
            self.sub_running_bw(cpu, task);
            self.sched.tasks[task].dl.non_contending = false;
        }
    }

    /// `migrate_task_rq_dl()`: it wakes on another CPU.
    #[inline(never)]
    pub(crate) fn migrate_task_rq_dl(&mut self, task: TaskId) {
        let cpu = self.sched.tasks[task].cpu;
        if self.sched.tasks[task].dl.non_contending {
            self.sched.update_rq_clock(cpu, &self.cx);
            self.sub_running_bw(cpu, task);
            self.sched.tasks[task].dl.non_contending = false;
            self.sched.cancel_inactive_timer(task, &mut self.time, &mut self.cx);
        }
        self.sched.sub_rq_bw(cpu, task);
    }

    /// `switched_from_dl()`: the running task has left the class.
    pub(crate) fn switched_from_dl(&mut self, cpu: CpuId, task: TaskId) {
        if self.sched.tasks[task].dl.dl_runtime != 0 {
            self.task_non_contending(cpu, task);
        }
        // The timer only gives the reservation back: running_bw does not have it any more.
        self.sched.tasks[task].dl.non_contending = false;
        if self.sched.rq[cpu].dl_nr_running() == 0 {
            self.pull_dl_task(cpu);
        }
    }
}

/// The share of a CPU that an entity has reserved; schedutil's own threads have none.
fn bandwidth_of(dl: &DlEntity) -> u64 {
    if dl.special { 0 } else { dl.dl_bw }
}

impl Scheduler {
    pub(super) fn add_rq_bw(&mut self, cpu: CpuId, task: TaskId) {
        let dl = &self.tasks[task].dl;
        if !dl.special {
            self.rq[cpu].dl.this_bw += dl.dl_bw;
        }
    }

    pub(super) fn sub_rq_bw(&mut self, cpu: CpuId, task: TaskId) {
        let dl = &self.tasks[task].dl;
        if !dl.special {
            self.rq[cpu].dl.this_bw -= dl.dl_bw;
        }
    }

    fn inactive_timer_queued(&self, task: TaskId, time: &Time) -> bool {
        let on = self.tasks[task].dl.inactive_timer_on;
        time.base(on).is_queued(TimerKind::DlInactive(task))
    }

    fn cancel_inactive_timer(&self, task: TaskId, time: &mut Time, cx: &mut Context) {
        let on = self.tasks[task].dl.inactive_timer_on;
        time.hrtimer_cancel(on, TimerKind::DlInactive(task), cx);
    }

    /// `__dl_sub()` and `__dl_clear_params()`: its reservation is free again.
    fn free_reservation(&mut self, task: TaskId) {
        let dl = &mut self.tasks[task].dl;
        self.rd.dl_bw.total_bw -= dl.dl_bw;
        dl.clear_params();
    }

    /// The tests of `__sched_setscheduler()`, and `sched_dl_overflow()`, which books the bandwidth. The task is queued.
    pub(crate) fn sched_dl_admit(
        &mut self,
        task: TaskId,
        attr: &SchedAttr,
        time: &Time,
        cx: &Context,
    ) -> Result<(), Errno> {
        if attr.policy != Policy::Deadline {
            // switched_from_dl() gives it back at the right time.
            return Ok(());
        }
        if !self.dl_may_run_on(&self.tasks[task].cpus_mask) {
            return Err(Errno::Perm);
        }
        let t = &self.tasks[task];
        let new_bw = attr.dl.bandwidth();
        let old = (t.class == Class::Deadline).then_some(t.dl.dl_bw);
        if old == Some(new_bw) {
            return Ok(());
        }
        let capacities: Vec<u64> =
            cx.platform.device_tree.cpus.iter().map(|cpu| cpu.capacity as u64).collect();
        let capacity = dl_bw_capacity(&capacities);
        if self.rd.dl_bw.overflows(capacity, old.unwrap_or(0), new_bw) {
            return Err(Errno::Busy);
        }
        let carried = match old {
            Some(old_bw) => old_bw,
            // It was in the class a moment ago, and has not been let go yet.
            None if self.inactive_timer_queued(task, time) => t.dl.dl_bw,
            None => 0,
        };
        let total_bw = &mut self.rd.dl_bw.total_bw;
        *total_bw = *total_bw - carried + new_bw;
        Ok(())
    }

    /// Whether a deadline task may have that affinity: all CPUs, or any where nothing limits the class.
    pub(crate) fn dl_may_run_on(&self, mask: &CpuMask) -> bool {
        self.rd.dl_bw.bw.is_none() || self.rd.span.is_subset(mask)
    }

    /// `__setparam_dl()`. Reserves memory for the task in the queues of all CPUs: nothing is
    /// allocated later.
    pub(crate) fn setparam_dl(&mut self, task: TaskId, reserved: &DlReservation, time: &mut Time) {
        self.tasks[task].dl.set_reservation(reserved);
        let count = self.tasks.iter().filter(|t| t.dl.dl_runtime != 0).count();
        for cpu in self.rd.span.iter() {
            self.rq[cpu].dl.reserve(count);
            time.base_mut(cpu).reserve(2 * count);
        }
    }

    /// `switched_to_dl()` of the running task.
    pub(crate) fn switched_to_dl(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        time: &mut Time,
        cx: &mut Context,
    ) {
        self.cancel_inactive_timer(task, time, cx);
        self.update_dl_rq_load_avg(cpu, false);
    }

    /// Asserts that the sums are those of the tasks.
    pub(super) fn verify_dl_bandwidth(&self, cpu: CpuId, here: &[TaskId]) {
        let dl = &self.rq[cpu].dl;
        // A task on its way here after a migration is not counted yet.
        let woken_here = self.rq[cpu].wake_list.iter().map(|w| w.task);
        let coming: u64 = woken_here
            .filter(|task| self.tasks[*task].class == Class::Deadline)
            .filter(|task| self.tasks[*task].sched_remote_wakeup)
            .map(|task| bandwidth_of(&self.tasks[task].dl))
            .sum();
        let all: u64 = here.iter().map(|task| bandwidth_of(&self.tasks[*task].dl)).sum();
        let server = self.rq[cpu].fair_server.bandwidth();
        assert_eq!(dl.this_bw, all - coming + server, "{cpu:?}: this_bw");
        assert!(*dl.running_bw <= dl.this_bw, "{cpu:?}: running_bw above this_bw");
    }
}
