// SPDX-License-Identifier: GPL-2.0-or-later
//! Which PELT update happens when, and the load of a CPU.
//!
//! The arithmetic is in [`crate::sched::pelt`]; here is the glue of `fair.c`: ageing an entity and its
//! queue together, attaching and detaching, migration of a sleeper, and the load of a CPU with or
//! without a task. What utilisation says about a CPU is in [`crate::sched::demand`].
//!
//! schedutil is called from here only when something may have changed for it: an attach or detach, a
//! crossed segment of the root queue, or tasks that left.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `update_load_avg`, `migrate_task_rq_fair`,
//! `sched_balance_update_blocked_averages`.
//! Differences: none known. What groups add is in [`super::group`].

use super::scale_load_down;
use crate::config::{AttachFloor, InitUtilWeight, MigrateSePeltLag};
use crate::sched::{CfsRqId, Class, EntityId, OnRq, pelt};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, TaskId};

/// `UPDATE_TG`.
pub const UPDATE_TG: u32 = 1;
/// `DO_ATTACH`.
pub const DO_ATTACH: u32 = 4;
/// `DO_DETACH`.
pub const DO_DETACH: u32 = 8;

impl Kernel {
    /// `update_load_avg()`.
    #[inline]
    pub(crate) fn update_load_avg(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32) {
        let now = self.sched.cfs_rq_clock_pelt(cfs_rq);
        let (cfs, entity) = (&self.sched.cfs[cfs_rq], &mut self.sched.se[se]);
        let known = entity.avg.last_update_time != 0;
        let my_q = entity.my_q;
        let queue_is_aged = cfs.removed.nr == 0 && pelt::is_up_to_date(now, &cfs.avg);
        // A task that is switched to was often queued in the same entry: then nothing is to be aged.
        if known && !pelt::is_up_to_date(now, &entity.avg) {
            let (runnable, running) = (Self::se_runnable(entity), cfs.curr == Some(se));
            let weight = scale_load_down(entity.load.weight);
            let (avg, on_rq) = (&mut entity.avg, entity.on_rq);
            let refreshed = pelt::update_load_avg_se(now, avg, on_rq, runnable, running, weight);
            if refreshed {
                self.sched.load_avg_refreshed(se, &self.cx);
            }
        }
        let mut decayed = !queue_is_aged && self.sched.age_cfs_rq(now, cfs_rq);
        if let Some(my_q) = my_q {
            decayed |= self.sched.propagate_entity_load_avg(se, my_q, &self.cx);
        }
        if !known && flags & DO_ATTACH != 0 {
            self.attach_entity_load_avg(cfs_rq, se);
            self.sched.update_tg_load_avg(cfs_rq, &mut self.cx);
        } else if flags & DO_DETACH != 0 {
            self.detach_entity_load_avg(cfs_rq, se);
            self.sched.update_tg_load_avg(cfs_rq, &mut self.cx);
        } else if decayed {
            self.cfs_rq_util_change(cfs_rq);
            if flags & UPDATE_TG != 0 {
                self.sched.update_tg_load_avg(cfs_rq, &mut self.cx);
            }
        }
    }

    /// `cfs_rq_util_change()`: schedutil looks at the root's queue alone.
    #[inline(always)]
    fn cfs_rq_util_change(&mut self, cfs_rq: CfsRqId) {
        if !self.sched.is_of_group(cfs_rq) {
            self.cpufreq_update_util(self.sched.cpu_of(cfs_rq), 0);
        }
    }

    pub(super) fn attach_entity_load_avg(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        let weight = scale_load_down(self.sched.se[se].load.weight);
        let floor = self.cx.attach_floor();
        let (cfs, entity) = (&mut self.sched.cfs[cfs_rq], &mut self.sched.se[se]);
        let joined = cfs.avg.change(cfs.cpu, &mut self.sched.stale_demands, |avg| {
            pelt::attach_entity(avg, &mut entity.avg, weight, floor)
        });
        self.sched.add_tg_cfs_propagate(cfs_rq, joined);
        self.cfs_rq_util_change(cfs_rq);
    }

    pub(super) fn detach_entity_load_avg(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        let weight = scale_load_down(self.sched.se[se].load.weight);
        let (cfs, entity) = (&mut self.sched.cfs[cfs_rq], &self.sched.se[se]);
        let left = cfs.avg.change(cfs.cpu, &mut self.sched.stale_demands, |avg| {
            pelt::detach_entity(avg, &entity.avg, weight)
        });
        self.sched.add_tg_cfs_propagate(cfs_rq, left);
        self.cfs_rq_util_change(cfs_rq);
    }

    /// `switched_from_fair()`: the task's load leaves its queue.
    pub(crate) fn switched_from_fair(&mut self, task: TaskId) {
        self.detach_entity_cfs_rq(self.sched.tasks[task].se);
    }

    /// `switched_to_fair()`: and comes back.
    pub(crate) fn switched_to_fair(&mut self, task: TaskId) {
        self.attach_entity_cfs_rq(self.sched.tasks[task].se);
    }

    /// `sched_balance_update_blocked_averages()`.
    pub fn update_blocked_averages(&mut self, cpu: CpuId) {
        let jiffies = self.cx.jiffies();
        self.sched.update_rq_clock(cpu, &self.cx);
        self.sched.rq[cpu].last_blocked_load_update_tick = jiffies;
        let mut decayed = self.sched.update_other_load_avgs(cpu, &self.cx);
        let now = self.sched.rq_clock_pelt(cpu);
        let root = CfsRqId::root(cpu);
        let below = self.update_blocked_groups(cpu);
        decayed |= self.sched.update_cfs_rq_load_avg(now, root);
        let avg = &self.sched.cfs[root].avg;
        let rq = &mut self.sched.rq[cpu];
        let blocked = below
            || avg.load_avg != 0
            || avg.util_avg != 0
            || rq.avg_rt.util_avg != 0
            || rq.avg_dl.util_avg != 0
            || rq.avg_hw.load_avg != 0
            || rq.avg_irq.util_avg != 0;
        if !blocked {
            rq.has_blocked_load = false;
        }
        if decayed {
            self.cpufreq_update_util(cpu, 0);
        }
    }
}

impl Scheduler {
    /// An entity's averages have been refreshed, and with them what its clamps change.
    #[inline(always)]
    fn load_avg_refreshed(&mut self, se: EntityId, cx: &Context) {
        if cx.uclamp_sums() && self.se[se].my_q.is_none() {
            self.util_bias_update(self.se[se].task, cx);
        }
    }

    /// `update_cfs_rq_load_avg()`; whether the averages were refreshed.
    #[inline(always)]
    pub(super) fn update_cfs_rq_load_avg(&mut self, now: u64, cfs_rq: CfsRqId) -> bool {
        let cfs = &self.cfs[cfs_rq];
        let nothing_to_do = cfs.removed.nr == 0 && pelt::is_up_to_date(now, &cfs.avg);
        !nothing_to_do && self.age_cfs_rq(now, cfs_rq)
    }

    #[inline(never)]
    fn age_cfs_rq(&mut self, now: u64, cfs_rq: CfsRqId) -> bool {
        let cfs = &mut self.cfs[cfs_rq];
        let runnable = (cfs.h_nr_queued - cfs.h_nr_delayed) as u64;
        let weight = scale_load_down(cfs.load_weight);
        let running = cfs.curr.is_some();
        let mut left = None;
        let refreshed = cfs.avg.update(cfs.cpu, &mut self.stale_demands, |avg| {
            left = pelt::fold_removed(avg, &mut cfs.removed);
            pelt::update_load_avg_cfs_rq(now, avg, weight, runnable, running) | left.is_some()
        });
        if let Some(left) = left {
            self.add_tg_cfs_propagate(cfs_rq, left);
        }
        refreshed
    }

    /// `sync_entity_load_avg()`: ages a sleeping task to its queue's last update.
    pub(crate) fn sync_entity_load_avg(&mut self, task: TaskId, cx: &Context) {
        let se = self.tasks[task].se;
        let (avg, refreshed) = self.synced_load_avg(task);
        self.se[se].avg = avg;
        if refreshed {
            self.load_avg_refreshed(se, cx);
        }
    }

    /// Returns the task's signals as [`Kernel::sync_entity_load_avg`] would age them, and whether
    /// that refreshes the averages.
    #[inline]
    pub(crate) fn synced_load_avg(&self, task: TaskId) -> (pelt::SchedAvg, bool) {
        let entity = &self.se[self.tasks[task].se];
        let last_update_time = self.cfs[entity.cfs_rq].avg.last_update_time;
        let mut avg = entity.avg;
        let weight = scale_load_down(entity.load.weight);
        let refreshed = pelt::update_load_avg_blocked_se(last_update_time, &mut avg, weight);
        (avg, refreshed)
    }

    /// `remove_entity_load_avg()`: a sleeping (or dead) task's averages are to leave its queue with the
    /// queue's next update.
    pub(crate) fn remove_entity_load_avg(&mut self, task: TaskId, cx: &Context) {
        let se = self.tasks[task].se;
        let entity = &mut self.se[se];
        let weight = scale_load_down(entity.load.weight);
        let cfs = &mut self.cfs[entity.cfs_rq];
        let last_update_time = cfs.avg.last_update_time;
        let refreshed =
            pelt::remove_entity(&mut cfs.removed, &mut entity.avg, weight, last_update_time);
        if refreshed {
            self.load_avg_refreshed(se, cx);
        }
    }

    /// `migrate_task_rq_fair()`: a task is about to change its CPU.
    pub(crate) fn migrate_task_rq_fair(&mut self, task: TaskId, cx: &Context) {
        let se = self.tasks[task].se;
        if self.tasks[task].on_rq != OnRq::Migrating {
            self.remove_entity_load_avg(task, cx);
            let cfs_rq = self.se[se].cfs_rq;
            let cpu = self.cpu_of(cfs_rq);
            let last_update_time = self.cfs[cfs_rq].avg.last_update_time;
            let throttled = self.cfs[cfs_rq].bandwidth.throttled_pelt_idle;
            let entity = &mut self.se[se];
            let weight = scale_load_down(entity.load.weight);
            let decays = cx.config.migrate_se_pelt_lag == MigrateSePeltLag::Decayed;
            if decays && self.rq[cpu].curr.is_idle() {
                let clock = &self.rq[cpu].clock_pelt;
                let refreshed = pelt::migrate_se_pelt_lag(
                    &mut entity.avg,
                    weight,
                    clock.clock_pelt_idle,
                    clock.clock_idle,
                    (throttled != u64::MAX).then_some(throttled),
                    last_update_time,
                    cx.now,
                );
                if refreshed {
                    self.load_avg_refreshed(se, cx);
                }
            }
        }
        // It attaches on the new CPU.
        self.se[se].avg.last_update_time = 0;
    }

    /// `set_task_rq_fair()`: a task of another class changes its CPU.
    pub(crate) fn set_task_rq_fair(&mut self, task: TaskId, new_cpu: CpuId, cx: &Context) {
        let se = self.tasks[task].se;
        let prev = self.cfs[self.se[se].cfs_rq].avg.last_update_time;
        let next = self.cfs[self.task_cfs_rq_on(task, new_cpu)].avg.last_update_time;
        let entity = &mut self.se[se];
        let weight = scale_load_down(entity.load.weight);
        if pelt::set_task_rq(&mut entity.avg, weight, prev, next) {
            self.load_avg_refreshed(se, cx);
        }
    }

    /// `post_init_entity_util_avg()`: the first utilisation of a new task.
    pub(crate) fn post_init_entity_util_avg(&mut self, task: TaskId, cx: &Context) {
        let se = self.tasks[task].se;
        let cfs_rq = self.se[se].cfs_rq;
        let cpu = self.cpu_of(cfs_rq);
        if self.tasks[task].class != Class::Fair {
            // Such a task is not attached; its time is stamped so that a later change of class finds it.
            self.se[se].avg.last_update_time = self.cfs_rq_clock_pelt(cfs_rq);
            return;
        }
        let avg = self.cfs[cfs_rq].avg;
        let capacity = self.arch_scale_cpu_capacity(cpu);
        let entity = &mut self.se[se];
        let weight = match cx.config.init_util_weight {
            InitUtilWeight::ScaledUp => entity.load.weight,
            InitUtilWeight::ScaledDown => scale_load_down(entity.load.weight),
        };
        pelt::post_init_entity_util_avg(
            &mut entity.avg,
            avg.util_avg,
            avg.load_avg,
            weight,
            capacity,
        );
    }

    /// A task that was made on an idle `cpu` and has slept since then for long: of the utilisation that it began with
    /// ([`pelt::post_init_entity_util_avg`]) the estimate is left.
    pub(crate) fn slept_since_birth(&mut self, task: TaskId, cpu: CpuId) {
        let born_with = self.arch_scale_cpu_capacity(cpu) / 2;
        self.se[self.tasks[task].se].avg.util_est = born_with as u32 | pelt::UTIL_AVG_UNCHANGED;
    }

    /// `util_est_update()` of a task that goes to sleep.
    #[inline(always)]
    pub(crate) fn util_est_update(&mut self, cpu: CpuId, se: EntityId, cx: &Context) {
        let (form, fastup) = (cx.config.util_est, cx.config.features.util_est_fastup);
        let capacity = self.arch_scale_cpu_capacity(cpu);
        let capacity = pelt::util_est_limit(cx.config.util_est_update, capacity);
        let avg = &mut self.se[se].avg;
        let learned_before = avg.util_est & pelt::UTIL_AVG_UNCHANGED != 0;
        pelt::util_est_update_form(form, fastup, avg, capacity);
        let stored = !learned_before && avg.util_est & pelt::UTIL_AVG_UNCHANGED != 0;
        if stored && cx.uclamp_sums() {
            self.util_est_uclamp_update(self.se[se].task, cx);
        }
    }

    /// `update_other_load_avgs()`: RT, DEADLINE, hardware pressure and interrupt signals; whether one was refreshed. The pass over
    /// blocked averages is its one caller without sched_ext, and has it inline.
    #[inline(always)]
    pub(crate) fn update_other_load_avgs(&mut self, cpu: CpuId, cx: &Context) -> bool {
        let now = self.rq_clock_pelt(cpu);
        let curr_class = self.tasks[self.rq[cpu].curr].class;
        let rq = &mut self.rq[cpu];
        let capacity = rq.arch_capacity;
        let stale = &mut self.stale_demands;
        let rt = rq.avg_rt.update(cpu, stale, |avg| {
            pelt::update_rt_rq_load_avg(now, avg, curr_class == Class::Rt)
        });
        let dl = rq.avg_dl.update(cpu, stale, |avg| {
            pelt::update_dl_rq_load_avg(now, avg, curr_class == Class::Deadline)
        });
        let irq = cx.config.irq_time_accounting
            && rq.avg_irq.update(cpu, stale, |avg| {
                pelt::update_irq_load_avg(avg, rq.clock, 0, rq.freq_scale, capacity)
            });
        rt | dl | irq | self.update_hw_load_avg(cpu)
    }

    // ---- what the sums say --------------------------------------------------------------------

    /// `cpu_load()`.
    #[inline(always)]
    pub(crate) fn cpu_load(&self, cpu: CpuId) -> u64 {
        self.cfs[CfsRqId::root(cpu)].avg.load_avg
    }

    /// `cpu_runnable()`.
    #[inline(always)]
    pub(crate) fn cpu_runnable(&self, cpu: CpuId) -> u64 {
        self.cfs[CfsRqId::root(cpu)].avg.runnable_avg
    }

    /// Whether a task's signals are not part of `cpu`'s (it is elsewhere, or attached nowhere yet).
    pub(crate) fn not_counted_on(&self, cpu: CpuId, task: TaskId) -> bool {
        self.tasks[task].cpu != cpu || self.se[self.tasks[task].se].avg.last_update_time == 0
    }

    /// `cpu_load_without()`.
    pub(crate) fn cpu_load_without(&self, cpu: CpuId, task: TaskId, cx: &Context) -> u64 {
        let load = self.cpu_load(cpu);
        if self.not_counted_on(cpu, task) {
            return load;
        }
        load.saturating_sub(self.task_h_load(task, cx))
    }

    /// `cpu_runnable_without()`.
    pub(crate) fn cpu_runnable_without(&self, cpu: CpuId, task: TaskId) -> u64 {
        let runnable = self.cpu_runnable(cpu);
        if self.not_counted_on(cpu, task) {
            return runnable;
        }
        runnable.saturating_sub(self.se[self.tasks[task].se].avg.runnable_avg)
    }

    /// `task_h_load()`: what of a task's load counts at the root. With group scheduling compiled in, the formula
    /// rounds down a little also for a task of the root.
    pub(crate) fn task_h_load(&self, task: TaskId, cx: &Context) -> u64 {
        let entity = &self.se[self.tasks[task].se];
        let load = entity.avg.load_avg;
        if !cx.config.fair_group_sched {
            return load;
        }
        load.wrapping_mul(self.h_load(entity.cfs_rq)) / (self.cfs[entity.cfs_rq].avg.load_avg + 1)
    }
}

impl Context {
    /// Whether a queue's sum is raised when load joins it.
    #[inline(always)]
    pub(super) fn attach_floor(&self) -> AttachFloor {
        self.config.attach_floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::sched::TaskKind;
    use crate::sched::root_domain::tests::little_and_big;

    /// A task that has slept for 32 periods on a CPU that idled meanwhile has halved, or not.
    #[test]
    fn a_sleeper_leaves_an_idle_cpu() {
        let (forgotten, decayed) = (MigrateSePeltLag::Forgotten, MigrateSePeltLag::Decayed);
        for (form, expected) in [(forgotten, 400), (decayed, 200)] {
            let mut kernel =
                little_and_big(Config { migrate_se_pelt_lag: form, ..Config::linux_6_12() });
            let (cpu, then) = (CpuId(1), 1 << 30);
            let p = kernel.new_task(None, TaskKind::User);
            let se = kernel.sched.tasks[p].se;
            kernel.sched.tasks[p].cpu = cpu;
            kernel.sched.se[se].cfs_rq = CfsRqId::root(cpu);
            let avg = &mut kernel.sched.se[se].avg;
            (avg.util_avg, avg.util_sum, avg.last_update_time) = (400, 400 * 47_742, then);
            avg.period_contrib = 1024;
            kernel.sched.cfs[CfsRqId::root(cpu)].avg.last_update_time = then;
            let clock = &mut kernel.sched.rq[cpu].clock_pelt;
            (clock.clock_pelt_idle, clock.clock_idle) = (then, then);
            kernel.cx.now = then + (32 << 20);
            kernel.sched.migrate_task_rq_fair(p, &kernel.cx);
            let util_avg = kernel.sched.se[se].avg.util_avg;
            assert!(util_avg.abs_diff(expected) <= 1, "{form:?}: {util_avg}");
        }
    }
}
