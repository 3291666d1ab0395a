// SPDX-License-Identifier: GPL-2.0-or-later
//! Utilisation: how much of its time a CPU is used, now or with a task on it.
//!
//! **Terms.** *util_avg*: the average of what ran. *util_est*: what the queued tasks needed when they last slept,
//! so that a CPU whose tasks have just woken does not look unused. *Runnable boosting*: where tasks
//! had to wait, `util_avg` is too small, and the average of what was runnable counts.
//!
//! **Algorithm.** `Scheduler::cpu_util`: util_avg, boosted if that is asked for, with or without a task; or the
//! estimate, if that is higher; at most the CPU's capacity.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `cpu_util`, `cpu_util_without`; kernel/sched/sched.h `cpu_util_cfs`.

use super::uclamp::RqClamps;
use crate::config::RunnableBoost;
use crate::sched::{CfsRqId, OnRq, pelt};
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, TaskId};

impl Scheduler {
    /// `task_util()`.
    #[inline(always)]
    pub(crate) fn task_util(&self, task: TaskId) -> u64 {
        self.se[self.tasks[task].se].avg.util_avg
    }

    /// `task_util_est()`.
    #[inline(always)]
    pub(crate) fn task_util_est(&self, task: TaskId) -> u64 {
        pelt::task_util_est(&self.se[self.tasks[task].se].avg)
    }

    /// `cpu_util()`: utilisation of `cpu` if `task` ran on `dst`. `boost`: runnable boosting, where the
    /// release has it; schedutil, EAS's highest utilisation and the busiest queue of `migrate_util`
    /// ask for it.
    pub(crate) fn cpu_util(
        &self,
        cpu: CpuId,
        task: Option<TaskId>,
        dst: Option<CpuId>,
        boost: bool,
        cx: &Context,
    ) -> u64 {
        let avg = &self.cfs[CfsRqId::root(cpu)].avg;
        let (mut util, mut estimate) = (avg.util_avg, avg.util_est as u64);
        let mut runnable = avg.runnable_avg;
        if boost {
            // Contention: somebody waited, so running alone says too little.
            match cx.config.runnable_boost {
                RunnableBoost::Off | RunnableBoost::WithTask => {}
                RunnableBoost::WithUtilEst => {
                    util = util.max(avg.runnable_avg);
                    estimate = estimate.max(avg.runnable_avg);
                }
                RunnableBoost::On => util = util.max(avg.runnable_avg),
            }
        }
        if let Some(p) = task {
            let on_cpu = self.tasks[p].cpu == cpu;
            let own = self.se[self.tasks[p].se].avg.runnable_avg;
            if on_cpu && dst != Some(cpu) {
                util -= util.min(self.task_util(p));
                runnable -= runnable.min(own);
            } else if !on_cpu && dst == Some(cpu) {
                util += self.task_util(p);
                runnable += own;
            }
        }
        if boost && cx.config.runnable_boost == RunnableBoost::WithTask {
            util = util.max(runnable);
        }
        if cx.config.features.util_est {
            if let Some(p) = task {
                let own = pelt::_task_util_est(&self.se[self.tasks[p].se].avg);
                estimate = self.estimate_with(estimate, p, own, dst == Some(cpu), cx);
            }
            util = util.max(estimate);
        }
        util.min(self.arch_scale_cpu_capacity(cpu))
    }

    /// A CPU's estimate, if `task`, whose own is `own`, ran there or nowhere.
    #[inline(always)]
    pub(super) fn estimate_with(
        &self,
        estimate: u64,
        task: TaskId,
        own: u64,
        there: bool,
        cx: &Context,
    ) -> u64 {
        if there {
            estimate + own
        } else if self.is_queued_or_current(task, cx) {
            estimate - estimate.min(own)
        } else {
            estimate
        }
    }

    /// Whether a task's estimate is part of its CPU's: it is queued, or it is the one that asks.
    #[inline(always)]
    fn is_queued_or_current(&self, task: TaskId, cx: &Context) -> bool {
        self.tasks[task].on_rq == OnRq::Queued || self.rq[cx.this_cpu].curr == task
    }

    /// The fair utilisation of `cpu` that a demand follows from, if `task` ran on `dst`: with runnable boosting, and within
    /// the tasks' clamps where each task's utilisation is clamped by itself.
    #[inline(always)]
    pub(crate) fn demanded_cpu_util(
        &self,
        cpu: CpuId,
        task: Option<TaskId>,
        dst: Option<CpuId>,
        cx: &Context,
    ) -> u64 {
        match &*self.rq[cpu].uclamp {
            RqClamps::Max(_) => self.cpu_util(cpu, task, dst, true, cx),
            RqClamps::Sum(sums) => self.cpu_util_uclamp(cpu, sums, task, dst, true, cx),
        }
    }

    /// The utilisation by fair tasks that `sugov_get_util()` starts from. A scheduler of sched_ext adds its target, and
    /// where it has all tasks there are no others.
    #[inline(always)]
    pub(crate) fn sugov_util(&self, cpu: CpuId, cx: &Context) -> u64 {
        if self.scx_enabled() {
            return self.scx_sugov_util(cpu, cx);
        }
        self.demanded_cpu_util(cpu, None, None, cx)
    }

    #[cold]
    fn scx_sugov_util(&self, cpu: CpuId, cx: &Context) -> u64 {
        let target = self.scx_cpuperf_target(cpu);
        if self.scx_switched_all() {
            return target;
        }
        target + self.demanded_cpu_util(cpu, None, None, cx)
    }

    /// Returns the fair utilisation of `cpu` that counts where each task's is clamped by itself;
    /// `None`: under max aggregation.
    pub(crate) fn summed_cpu_util(&self, cpu: CpuId, cx: &Context) -> Option<u64> {
        match &*self.rq[cpu].uclamp {
            RqClamps::Max(_) => None,
            RqClamps::Sum(sums) => Some(self.cpu_util_uclamp(cpu, sums, None, None, true, cx)),
        }
    }

    /// `cpu_util_cfs()`.
    #[inline]
    pub(crate) fn cpu_util_cfs(&self, cpu: CpuId, cx: &Context) -> u64 {
        self.cpu_util(cpu, None, None, false, cx)
    }

    /// `cpu_util_cfs_boost()`.
    #[inline]
    pub(crate) fn cpu_util_cfs_boost(&self, cpu: CpuId, cx: &Context) -> u64 {
        self.cpu_util(cpu, None, None, true, cx)
    }

    /// `cpu_util_without()`.
    pub(crate) fn cpu_util_without(&self, cpu: CpuId, task: TaskId, cx: &Context) -> u64 {
        let task = if self.not_counted_on(cpu, task) { None } else { Some(task) };
        self.cpu_util(cpu, task, None, false, cx)
    }
}

impl Context {
    /// Whether the release has runnable boosting, in whatever form.
    #[inline(always)]
    pub(super) fn has_runnable_boost(&self) -> bool {
        self.config.runnable_boost != RunnableBoost::Off
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::sched::TaskKind;
    use crate::sched::root_domain::tests::little_and_big;

    /// util 50, runnable 70, util_est 60; a waking task of util 5, runnable 9 and estimate 10 that comes from
    /// elsewhere. As posted its share counts twice: in runnable_avg, and with its estimate on top.
    #[test]
    fn runnable_boosting() {
        let util = |form, boost, task: bool| {
            let mut kernel =
                little_and_big(Config { runnable_boost: form, ..Config::linux_6_12() });
            let (cpu, root) = (CpuId(1), CfsRqId::root(CpuId(1)));
            let avg = &mut kernel.sched.cfs[root].avg;
            (avg.util_avg, avg.runnable_avg, avg.util_est) = (50, 70, 60);
            let p = kernel.new_task(None, TaskKind::User);
            let se = kernel.sched.tasks[p].se;
            let avg = &mut kernel.sched.se[se].avg;
            (avg.util_avg, avg.runnable_avg, avg.util_est) = (5, 9, 10);
            if task {
                kernel.sched.cpu_util(cpu, Some(p), Some(cpu), boost, &kernel.cx)
            } else {
                kernel.sched.cpu_util(cpu, None, None, boost, &kernel.cx)
            }
        };
        for (form, with_task, without_task) in [
            (RunnableBoost::Off, 70, 60),
            (RunnableBoost::WithUtilEst, 80, 70),
            (RunnableBoost::On, 75, 70),
            (RunnableBoost::WithTask, 79, 70),
        ] {
            assert_eq!(util(form, true, true), with_task, "{form:?}");
            assert_eq!(util(form, true, false), without_task, "{form:?}");
            // A caller that does not ask for the boost sees none: placement, and how busy a domain
            // is.
            assert_eq!(util(form, false, true), 70, "{form:?}");
            assert_eq!(util(form, false, false), 60, "{form:?}");
        }
    }
}
