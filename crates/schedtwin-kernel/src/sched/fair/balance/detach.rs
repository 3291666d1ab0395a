// SPDX-License-Identifier: GPL-2.0-or-later
//! Which tasks a pass moves, and moving them.
//!
//! Candidates are taken from the end of the source's list, those that ran least recently, and the
//! unsuitable go to the front. A task is left if it may not run on the destination, runs, or ran within
//! the last half millisecond (its cache is hot), unless passes have failed too often; since 6.18 also if it would have
//! to wait where it is, as long as the destination is busy and no pass has failed, since 7.3 if it should stay in its
//! last-level cache (`llc.rs`). Each task moved
//! lessens the imbalance by its load, its utilisation or 1; the one that crosses 0 still moves.
//!
//! Kernel: 6.12.95, 6.18.35 and 7.3.4 kernel/sched/fair.c `can_migrate_task`, `task_hot`, `detach_tasks`, `attach_tasks`.
//! Differences: no core cookies, no NUMA locality. `CONFIG_PREEMPTION` is taken
//! to be `preempt=full`; a kernel with `PREEMPT_DYNAMIC` has it in all modes, and then newidle passes
//! move one task at most also with `preempt=none`.

use super::*;
use crate::config::{BalanceDelayed, DetachUtil, MigrateIneligible};
use crate::sched::core::{DEQUEUE_NOCLOCK, ENQUEUE_NOCLOCK};
use crate::sched::topology::SD_SHARE_CPUCAPACITY;
use crate::sched::{CfsRq, CfsRqId, Class};
use crate::{Context, Scheduler};
use schedtwin_types::Policy;

/// `shr_bound()`.
fn shr_bound(value: u64, shift: u32) -> u64 {
    value >> shift.min(63)
}

impl Scheduler {
    /// `task_hot()`: has the task run on the source so recently that moving it costs more?
    fn task_hot(&self, task: TaskId, env: &LbEnv, cx: &Context) -> bool {
        let t = &self.tasks[task];
        if t.class != Class::Fair || t.policy == Policy::Idle {
            return false;
        }
        if self.topology[env.sd].flags & SD_SHARE_CPUCAPACITY != 0 {
            return false;
        }
        let se = &self.se[t.se];
        if self.rq[env.dst_cpu].nr_running != 0 && self.cache_hot_buddy(t.se, cx) {
            return true;
        }
        match cx.config.migration_cost as i64 {
            -1 => true,
            0 => false,
            cost => (self.rq[env.src_cpu].clock_task.wrapping_sub(se.exec_start) as i64) < cost,
        }
    }

    /// `task_is_ineligible_on_dst_cpu()`: the destination has fair tasks, and this one would run before its time there.
    fn is_ineligible_for(&self, task: TaskId, dst: CpuId, cx: &Context) -> bool {
        let se = self.tasks[task].se;
        // Up to 6.18 the queue of the task's group on the other CPU is asked, in 7.3 that CPU.
        let queued = match cx.groups_nest() {
            true => self.cfs[self.groups[self.tasks[task].group].cfs_rq[dst.index()]].nr_queued,
            false => self.cfs[CfsRqId::root(dst)].h_nr_queued,
        };
        cx.config.features.place_lag
            && queued != 0
            && !self.entity_eligible(self.timeline_of(se), se)
    }

    /// Returns the load of a task that balancing moves or helps: not 0 even if the load is.
    pub(super) fn balanced_h_load(&self, task: TaskId, cx: &Context) -> u64 {
        self.task_h_load(task, cx).max(u64::from(!cx.config.bugs.h_load_zero))
    }

    /// Returns the number of fair tasks that a CPU has for balancing.
    #[inline(always)]
    pub(crate) fn h_nr_running(&self, cpu: CpuId, cx: &Context) -> u32 {
        cx.balanced_tasks(&self.cfs[CfsRqId::root(cpu)])
    }
}

impl Kernel {
    /// `can_migrate_task()`.
    fn can_migrate_task(&mut self, task: TaskId, env: &mut LbEnv) -> bool {
        let t = &self.sched.tasks[task];
        let sd = &self.sched.topology[env.sd];
        if self.sched.se[t.se].sched_delayed
            && env.migration_type != MigrationType::Load
            && self.cx.config.balance_delayed == BalanceDelayed::LoadOnly
        {
            return false;
        }
        if self.sched.throttled_lb(task, [env.src_cpu, env.dst_cpu], &self.cx) {
            return false;
        }
        if sd.nr_balance_failed == 0
            && self.cx.config.migrate_ineligible == MigrateIneligible::AfterFailure
            && self.sched.is_ineligible_for(task, env.dst_cpu, &self.cx)
        {
            return false;
        }
        // kthread_is_per_cpu()
        if t.kind.is_per_cpu_kthread() {
            return false;
        }
        if !t.cpus_mask.contains(env.dst_cpu) {
            env.some_pinned = true;
            if env.idle == CpuIdleType::NewlyIdle || env.dst_pinned || env.active_lb {
                return false;
            }
            // Might it go to another CPU of the group?
            if let Some(cpu) = env.dst_grpmask.and(&env.cpus).and(&t.cpus_mask).lowest() {
                env.dst_pinned = true;
                env.new_dst_cpu = cpu;
            }
            return false;
        }
        env.all_pinned = false;
        if self.sched.rq[env.src_cpu].curr == task {
            return false;
        }
        if env.active_lb {
            return !self.sched.migrate_llc_task_wrong_dst(env, task);
        }
        if self.migrate_degrades_llc(env, task) {
            env.llc_pinned |= env.migration_type != MigrationType::LlcTask;
            return false;
        }
        let sd = &self.sched.topology[env.sd];
        !self.sched.task_hot(task, env, &self.cx) || sd.nr_balance_failed > sd.cache_nice_tries
    }

    /// `detach_task()`.
    fn detach_task(&mut self, task: TaskId, env: &LbEnv) {
        self.sched.charge(self.cx.platform.device_tree.path_costs.migrate_task, &mut self.cx);
        self.sched.fetch(&mut self.cx, |lines, at| lines.task_moves(task, at));
        self.deactivate_task(env.src_cpu, task, DEQUEUE_NOCLOCK);
        self.set_task_cpu(task, env.dst_cpu);
    }

    /// `detach_one_task()`.
    pub(super) fn detach_one_task(&mut self, env: &mut LbEnv) -> Option<TaskId> {
        let mut at = self.sched.rq[env.src_cpu].cfs_tasks_tail;
        while let Some(task) = at {
            if self.can_migrate_task(task, env) {
                self.detach_task(task, env);
                return Some(task);
            }
            at = self.sched.tasks[task].cfs_tasks_prev;
        }
        None
    }

    /// `detach_tasks()`: takes tasks off the source until the imbalance is used up. Returns how many.
    pub(super) fn detach_tasks(&mut self, env: &mut LbEnv) -> u32 {
        let src = env.src_cpu;
        if self.sched.rq[src].nr_running <= 1 {
            env.all_pinned = false;
            return 0;
        }
        if env.imbalance <= 0 {
            return 0;
        }
        let section = self.sched.lock_rq(src, 0, &mut self.cx);
        let failed = self.sched.topology[env.sd].nr_balance_failed;
        let mut detached = 0;
        while let Some(task) = self.sched.rq[src].cfs_tasks_tail {
            // Do not steal all, or be treated likewise.
            if env.idle.is_idle() && self.sched.rq[src].nr_running <= 1 {
                break;
            }
            env.loops += 1;
            if env.loops > env.loop_max {
                break;
            }
            if env.loops > env.loop_break {
                env.loop_break += SCHED_NR_MIGRATE_BREAK;
                env.need_break = true;
                break;
            }
            let share = self.can_migrate_task(task, env).then(|| match env.migration_type {
                MigrationType::Load => {
                    let load = self.sched.balanced_h_load(task, &self.cx);
                    (shr_bound(load, failed) <= env.imbalance as u64).then_some(load as i64)
                }
                MigrationType::Util => {
                    let util = self.sched.task_util_est(task);
                    let counts = match self.cx.config.detach_util {
                        DetachUtil::Whole => util,
                        DetachUtil::ByFailures => shr_bound(util, failed),
                    };
                    (counts <= env.imbalance as u64).then_some(util as i64)
                }
                MigrationType::Task | MigrationType::LlcTask => Some(1),
                MigrationType::Misfit => (!self.task_fits_cpu(task, src)).then_some(env.imbalance),
            });
            let Some(share) = share.flatten() else {
                self.sched.cfs_tasks_move_to_head(src, task);
                continue;
            };
            env.imbalance -= share;
            self.detach_task(task, env);
            self.sched.tasks[task].cfs_tasks_next = env.tasks;
            env.tasks = Some(task);
            if self.cx.wants_decisions() {
                env.moved.push(task);
            }
            detached += 1;
            // Newidle passes delay every task that is woken meanwhile.
            if env.idle == CpuIdleType::NewlyIdle && self.cx.config.preempt.preempts_kernel_mode() {
                break;
            }
            if env.imbalance <= 0 {
                break;
            }
        }
        self.sched.unlock_rq(src, section, 0, &mut self.cx);
        detached
    }

    /// `attach_task()`: the run queue's clock is up to date.
    pub(super) fn attach_task(&mut self, cpu: CpuId, task: TaskId) {
        self.activate_task(cpu, task, ENQUEUE_NOCLOCK);
        self.wakeup_preempt(cpu, task, 0);
    }

    /// `attach_tasks()`: queues the detached tasks on the destination, the last one first.
    pub(super) fn attach_tasks(&mut self, env: &mut LbEnv) {
        self.sched.update_rq_clock(env.dst_cpu, &self.cx);
        while let Some(task) = env.tasks {
            env.tasks = self.sched.tasks[task].cfs_tasks_next.take();
            self.attach_task(env.dst_cpu, task);
        }
    }
}

impl Context {
    /// The same of its queue: with delayed ones, or `h_nr_runnable`.
    #[inline(always)]
    pub(super) fn balanced_tasks(&self, cfs: &CfsRq) -> u32 {
        match self.config.balance_delayed {
            BalanceDelayed::LikeOthers => cfs.h_nr_queued,
            BalanceDelayed::LoadOnly => cfs.h_nr_runnable,
        }
    }
}
