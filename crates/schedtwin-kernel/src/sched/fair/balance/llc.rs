// SPDX-License-Identifier: GPL-2.0-or-later
//! Balancing towards the last-level caches (LLCs) that tasks prefer.
//!
//! **Decides** whether a task, or a group's tasks, may cross between LLCs: to the preferred one as
//! long as it has spare capacity, away from it only if it is full and busier than the other.
//!
//! [`crate::sched::fair::sched_cache`] has the preferences. The utilisation of LLCs is that of the
//! last pass that was not newly idle and compared LLCs: sums of utilisation and capacity, 0 before
//! the first one.
//!
//! ```text
//! to the preferred LLC (dst)             away from it (src)               Y  moves
//!  src \ dst   30 %  45 %  52 %  70 %     src \ dst   30 %  45 %  52 %  70 %    N  does not
//!  30 %         Y     Y     N     N       30 %         N     N     N     N      –  as other balancing has it
//!  45 %         Y     Y     Y     N       45 %         N     N     N     N
//!  52 %         Y     Y     –     –       52 %         Y     N     –     –
//!  70 %         Y     Y     –     –       70 %         Y     Y     –     –
//! ```
//!
//! With one hardware thread a core the limit is 75 %, not 50 (`overaggr_pct`); "busier" is by 20 % (`imb_pct`). A group with tasks
//! that prefer the destination's LLC is pulled from before any but an overloaded one, one such task at a time. After more failures than
//! `cache_nice_tries` nothing of this holds. Nor does it for tasks that would become misfits, and where priorities of CPUs say
//! otherwise.
//!
//! Kernel: 7.3.4 kernel/sched/fair.c `can_migrate_llc`, `can_migrate_llc_task`, `migrate_degrades_llc`, `alb_break_llc`,
//! `llc_balance`, `record_sg_llc_stats`. Differences: none known.

pub mod limits;

use super::stats::{SdLbStats, SgLbStats};
use super::*;
use crate::sched::topology::{SD_ASYM_CPUCAPACITY, SD_SHARE_LLC, SchedGroup};
use crate::sched::{CfsRqId, Class};
use crate::{Context, Scheduler};
use limits::{LlcMigration, LlcStats, can_migrate_llc};

impl Scheduler {
    /// `sched_cache_enabled()`.
    #[inline(always)]
    pub(super) fn sched_cache_enabled(&self) -> bool {
        self.sched_cache.is_some()
    }

    /// `get_llc_stats()` of a CPU's LLC.
    fn llc_stats(&self, cpu: CpuId) -> Option<LlcStats> {
        let shared = &self.topology.shared[self.topology.sd_llc_shared[cpu.index()]?];
        Some(LlcStats { util: shared.util_avg, capacity: shared.capacity })
    }

    fn can_migrate_between(
        &self,
        src: Option<LlcStats>,
        dst: Option<LlcStats>,
        util: u64,
        to_preferred: bool,
    ) -> LlcMigration {
        let (Some(cache), Some(src), Some(dst)) = (&self.sched_cache, src, dst) else {
            return LlcMigration::Unrestricted;
        };
        can_migrate_llc((src, dst), util, to_preferred, &cache.limits, cache.smt_threads())
    }

    // ---- statistics ---------------------------------------------------------------------------

    /// Returns the number of tasks of `cpu` that prefer the LLC of `dst`, another one.
    #[inline]
    pub(super) fn nr_pref_dst_llc(&self, cpu: CpuId, dst: CpuId) -> u32 {
        let Some(cache) = &self.sched_cache else { return 0 };
        let (own, llc) = (&cache.cpus[cpu.index()], cache.cpus[dst.index()].llc);
        if own.llc == llc { 0 } else { own.llc_counts[llc.0 as usize] }
    }

    /// The same of a group's CPUs.
    #[inline(never)]
    pub(super) fn count_pref_dst_llc(&self, env: &LbEnv, group: &SchedGroup) -> u32 {
        let cpus = group.span.and(&env.cpus).iter();
        cpus.map(|cpu| self.nr_pref_dst_llc(cpu, env.dst_cpu)).sum()
    }

    /// Whether a pass tells how busy its groups are, which are LLCs (`record_sg_llc_stats()`, its conditions).
    pub(super) fn records_llc_stats(&self, env: &LbEnv) -> bool {
        self.sched_cache_enabled()
            && env.idle != CpuIdleType::NewlyIdle
            && self.topology[env.sd].child == self.topology.sd_llc[env.dst_cpu.index()]
    }

    /// `llc_balance()` of a group that is not the destination's: whether its tasks are to be moved to their LLC. The
    /// destination's own statistics are those of this pass, if it tells them.
    #[inline(never)]
    pub(super) fn llc_balance(
        &self,
        env: &LbEnv,
        sds: &SdLbStats,
        sgs: &SgLbStats,
        group: &SchedGroup,
    ) -> bool {
        let sd = &self.topology[env.sd];
        let misfit = sd.flags & SD_ASYM_CPUCAPACITY != 0 && sgs.group_misfit_task_load != 0;
        if sd.flags & SD_SHARE_LLC != 0
            || misfit
            || sgs.group_asym_packing
            || sd.nr_balance_failed > sd.cache_nice_tries
            || sgs.nr_pref_dst_llc == 0
        {
            return false;
        }
        let first_of = |group: &SchedGroup| self.topology.sd_llc_shared[group.first_cpu.index()];
        let mut dst = self.llc_stats(env.dst_cpu);
        let local = &self.topology[sds.local];
        if self.records_llc_stats(env)
            && first_of(local).is_some()
            && first_of(local) == self.topology.sd_llc_shared[env.dst_cpu.index()]
        {
            let local = &sds.local_stat;
            dst = Some(LlcStats { util: local.group_util, capacity: local.group_capacity });
        }
        let src = self.llc_stats(group.first_cpu);
        self.can_migrate_between(src, dst, 0, true) == LlcMigration::Gathers
    }

    /// `record_sg_llc_stats()` of all groups.
    #[inline(never)]
    pub(super) fn record_llc_stats(&mut self, env: &LbEnv, cx: &Context) {
        let first = self.topology[env.sd].groups;
        let mut sg = first;
        loop {
            let group = &self.topology[sg];
            let (next, sgc) = (group.next, group.sgc);
            if let Some(shared) = self.topology.sd_llc_shared[group.first_cpu.index()] {
                let cpus = group.span.and(&env.cpus).iter();
                let util = cpus.map(|cpu| self.cpu_util_cfs(cpu, cx)).sum();
                let capacity = self.topology.capacities[sgc].capacity;
                let shared = &mut self.topology.shared[shared];
                (shared.util_avg, shared.capacity) = (util, capacity);
            }
            sg = next;
            if sg == first {
                break;
            }
        }
    }

    /// `migrate_llc_task_wrong_dst()`: the pass moves tasks to the LLC that they prefer, and this is not the task's.
    pub(super) fn migrate_llc_task_wrong_dst(&self, env: &LbEnv, task: TaskId) -> bool {
        let Some(cache) = &self.sched_cache else { return false };
        (env.migration_type == MigrationType::LlcTask || env.active_lb_llc)
            && cache.preferred_llc(task) != Some(cache.cpus[env.dst_cpu.index()].llc)
    }
}

impl Kernel {
    // ---- single tasks -------------------------------------------------------------------------

    /// `task_misfits_asym_cpu()`: the move would make a misfit of it.
    fn task_misfits_asym_cpu(&self, env: &LbEnv, task: TaskId) -> bool {
        self.sched.topology[env.sd].flags & SD_ASYM_CPUCAPACITY != 0
            && !task.is_idle()
            && !self.task_fits_cpu(task, env.dst_cpu)
            && self.task_fits_cpu(task, env.src_cpu)
    }

    /// `can_migrate_llc_task()`. A process that has become too large for the destination's LLC prefers none any more.
    fn can_migrate_llc_task(&mut self, env: &LbEnv, task: TaskId) -> LlcMigration {
        if self.task_misfits_asym_cpu(env, task) {
            return LlcMigration::Forbidden;
        }
        let (src, dst) = (env.src_cpu, env.dst_cpu);
        let packs = env.idle.is_idle() && self.sched.sched_asym(env.sd, dst, src, &self.cx);
        let Some(cache) = &mut self.sched.sched_cache else { return LlcMigration::Unrestricted };
        let Some(process) = cache.process_of(task) else { return LlcMigration::Unrestricted };
        let Some(preferred) = cache.group(process).cpu else { return LlcMigration::Unrestricted };
        let share = |a, b| self.sched.topology.cpus_share_cache(a, b);
        if share(src, dst) || packs {
            return LlcMigration::Unrestricted;
        }
        if cache.invalid_llc_nr(process, dst) {
            cache.group_mut(process).cpu = None;
            return LlcMigration::Unrestricted;
        }
        let to_preferred = share(dst, preferred);
        if !to_preferred && !share(src, preferred) {
            return LlcMigration::Unrestricted;
        }
        let util = self.sched.se[self.sched.tasks[task].se].avg.util_avg;
        self.sched.can_migrate_between(
            self.sched.llc_stats(src),
            self.sched.llc_stats(dst),
            util,
            to_preferred,
        )
    }

    /// `migrate_degrades_llc()`.
    #[inline]
    pub(super) fn migrate_degrades_llc(&mut self, env: &LbEnv, task: TaskId) -> bool {
        let sd = &self.sched.topology[env.sd];
        self.sched.sched_cache_enabled()
            && sd.nr_balance_failed <= sd.cache_nice_tries
            && (self.sched.migrate_llc_task_wrong_dst(env, task)
                || self.can_migrate_llc_task(env, task) == LlcMigration::Forbidden)
    }

    /// `alb_break_llc()`: pushing the running task away would take it out of its LLC for too little.
    pub(super) fn alb_break_llc(&self, env: &LbEnv) -> bool {
        let Some(cache) = &self.sched.sched_cache else { return false };
        let nr = cache.cpus[env.src_cpu.index()].nr_pref_llc_running;
        let (rq, cfs) = (&self.sched.rq[env.src_cpu], &self.sched.cfs[CfsRqId::root(env.src_cpu)]);
        if self.sched.topology.cpus_share_cache(env.src_cpu, env.dst_cpu)
            || nr == 0
            || nr != cfs.h_nr_runnable
            || env.migration_type == MigrationType::Misfit
        {
            return false;
        }
        if rq.nr_running <= 1 {
            return true;
        }
        let t = &self.sched.tasks[rq.curr];
        let util = if t.class == Class::Fair { self.sched.se[t.se].avg.util_avg } else { 0 };
        let (src, dst) = (self.sched.llc_stats(env.src_cpu), self.sched.llc_stats(env.dst_cpu));
        self.task_misfits_asym_cpu(env, rq.curr)
            || self.sched.can_migrate_between(src, dst, util, false) == LlcMigration::Forbidden
    }
}
