// SPDX-License-Identifier: GPL-2.0-or-later
//! The load of the groups of a domain, and the busiest of them.
//!
//! A pass reads every CPU of the domain once. Groups are then classed, in the order in which they are
//! relieved:
//!
//! | type | the group |
//! |---|---|
//! | has_spare | has fewer tasks than CPUs, or capacity left |
//! | fully_busy | has just what it can take |
//! | misfit_task | has a task that is too big for its CPU |
//! | smt_balance | is a core of which several threads have work, and the destination is idle |
//! | asym_packing | has work that the destination, which is idle and preferred to it, should do |
//! | imbalanced | could not be balanced inside, because of affinity |
//! | llc_balance | has tasks that prefer the destination's LLC, which has spare capacity |
//! | overloaded | has more tasks than CPUs, and they want more than there is |
//!
//! "More than there is" is a matter of 17 %: with `imbalance_pct` 117 four CPUs of 1024 are overloaded by
//! five tasks from a utilisation of 3501 (85 %) or a runnable sum of 4793 (117 %).
//!
//! Kernel: 6.12.95, 6.1.192 and 7.3.4 kernel/sched/fair.c `update_sg_lb_stats`, `group_classify`,
//! `update_sd_pick_busiest`, `update_sd_lb_stats`.
//! Differences: none known.

use super::capacity::capacity_greater;
use super::*;
use crate::config::{
    AsymPacking, GroupIsOverloaded, GroupMisfit, PickBusiestBigger, PickBusiestFull,
    PickBusiestMisfit, PreferSibling, SmtBalance,
};
use crate::sched::topology::{
    GroupId, SD_ASYM_PACKING, SD_OVERLAP, SD_PREFER_SIBLING, SD_SHARE_CPUCAPACITY, SchedGroup,
};
use crate::sched::{CfsRqId, SCHED_CAPACITY_SCALE};
use crate::{Context, Scheduler};

/// `enum group_type`, ascending by priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sched::fair) enum GroupType {
    HasSpare,
    FullyBusy,
    MisfitTask,
    SmtBalance,
    AsymPacking,
    Imbalanced,
    LlcBalance,
    Overloaded,
}

/// `struct sg_lb_stats`.
#[derive(Clone, Copy, Debug)]
pub(in crate::sched::fair) struct SgLbStats {
    /// Load per capacity, computed only where it is compared.
    pub avg_load: u64,
    pub group_load: u64,
    pub group_capacity: u64,
    pub group_util: u64,
    pub group_runnable: u64,
    /// Tasks of all classes.
    pub sum_nr_running: u32,
    /// Fair tasks, with or without delayed ones.
    pub sum_h_nr_running: u32,
    pub idle_cpus: u32,
    pub group_weight: u32,
    pub group_type: GroupType,
    pub group_misfit_task_load: u64,
    /// The destination is preferred to the group, and may take its work.
    pub group_asym_packing: bool,
    /// Several threads of one core have work.
    pub group_smt_balance: bool,
    /// Its tasks that prefer the last-level cache of the destination should go there.
    pub group_llc_balance: bool,
    /// Number of tasks that do.
    pub nr_pref_dst_llc: u32,
    /// One of its CPUs is overutilized.
    pub group_overutilized: bool,
}

impl SgLbStats {
    pub(in crate::sched::fair) const ZERO: SgLbStats = SgLbStats {
        avg_load: 0,
        group_load: 0,
        group_capacity: 0,
        group_util: 0,
        group_runnable: 0,
        sum_nr_running: 0,
        sum_h_nr_running: 0,
        idle_cpus: 0,
        group_weight: 0,
        group_type: GroupType::HasSpare,
        group_misfit_task_load: 0,
        group_asym_packing: false,
        group_smt_balance: false,
        group_llc_balance: false,
        nr_pref_dst_llc: 0,
        group_overutilized: false,
    };

    /// `group_has_capacity()`.
    fn has_capacity(&self, imbalance_pct: u64) -> bool {
        if self.sum_nr_running < self.group_weight {
            return true;
        }
        if self.group_capacity * imbalance_pct < self.group_runnable * 100 {
            return false;
        }
        self.group_capacity * 100 > self.group_util * imbalance_pct
    }

    /// `group_is_overloaded()`: not the opposite of [`SgLbStats::has_capacity`]; a group with the right
    /// number of tasks is neither.
    pub(super) fn is_overloaded(&self, imbalance_pct: u64) -> bool {
        if self.sum_nr_running <= self.group_weight {
            return false;
        }
        self.group_capacity * 100 < self.group_util * imbalance_pct
            || self.group_capacity * imbalance_pct < self.group_runnable * 100
    }

    /// `group_classify()`.
    pub(in crate::sched::fair) fn classify(
        &self,
        imbalance_pct: u64,
        imbalance: bool,
        may_be_overloaded: bool,
    ) -> GroupType {
        if may_be_overloaded && self.is_overloaded(imbalance_pct) {
            GroupType::Overloaded
        } else if self.group_llc_balance {
            GroupType::LlcBalance
        } else if imbalance {
            GroupType::Imbalanced
        } else if self.group_asym_packing {
            GroupType::AsymPacking
        } else if self.group_smt_balance {
            GroupType::SmtBalance
        } else if self.group_misfit_task_load != 0 {
            GroupType::MisfitTask
        } else if !self.has_capacity(imbalance_pct) {
            GroupType::FullyBusy
        } else {
            GroupType::HasSpare
        }
    }

    /// `group_load` per `group_capacity`.
    pub(in crate::sched::fair) fn load_per_capacity(&self) -> u64 {
        self.group_load * SCHED_CAPACITY_SCALE / self.group_capacity
    }
}

/// `struct sd_lb_stats`, and what a pass learns on the way.
pub(super) struct SdLbStats {
    pub busiest: Option<GroupId>,
    pub local: GroupId,
    pub total_load: u64,
    pub total_capacity: u64,
    pub prefer_sibling: bool,
    pub busiest_stat: SgLbStats,
    pub local_stat: SgLbStats,
    /// Some CPU has two tasks, or a misfit: newidle CPUs should look.
    pub overloaded: bool,
    /// Some CPU is overutilized.
    pub overutilized: bool,
    pub sum_util: u64,
    /// Number of CPUs that were read.
    pub cpus_read: u64,
}

impl Scheduler {
    /// Statistics of all groups of the domain (`update_sd_lb_stats`), read-only.
    #[inline(never)]
    pub(super) fn read_sd_lb_stats(&self, env: &LbEnv, cx: &Context) -> SdLbStats {
        let domain = &self.topology[env.sd];
        let mut sds = SdLbStats {
            busiest: None,
            local: domain.groups,
            total_load: 0,
            total_capacity: 0,
            prefer_sibling: false,
            // The worst busiest group, so that any other is busier.
            busiest_stat: SgLbStats { idle_cpus: u32::MAX, ..SgLbStats::ZERO },
            local_stat: SgLbStats::ZERO,
            overloaded: false,
            overutilized: false,
            sum_util: 0,
            cpus_read: 0,
        };
        let mut sg = domain.groups;
        loop {
            let group = &self.topology[sg];
            let local = group.span.contains(env.dst_cpu);
            let sgs = self.read_sg_lb_stats(env, group, local, &mut sds, cx);
            if local {
                sds.local = sg;
                sds.local_stat = sgs;
            } else if self.is_busier(env, &sds, sg, &sgs, cx) {
                sds.busiest = Some(sg);
                sds.busiest_stat = sgs;
            }
            sds.overutilized |= sgs.group_overutilized;
            sds.total_load += sgs.group_load;
            sds.total_capacity += sgs.group_capacity;
            sds.sum_util += sgs.group_util;
            sg = group.next;
            if sg == domain.groups {
                break;
            }
        }
        let preferring = match cx.config.prefer_sibling {
            PreferSibling::ChildDomain => domain.child.map(|child| self.topology[child].flags),
            PreferSibling::BusiestGroup => sds.busiest.map(|sg| self.topology[sg].flags),
        };
        sds.prefer_sibling = preferring.is_some_and(|flags| flags & SD_PREFER_SIBLING != 0);
        sds
    }

    /// `update_sg_lb_stats()`.
    fn read_sg_lb_stats(
        &self,
        env: &LbEnv,
        group: &SchedGroup,
        local: bool,
        sds: &mut SdLbStats,
        cx: &Context,
    ) -> SgLbStats {
        let mut sgs = SgLbStats::ZERO;
        if group.group_weight == 1 {
            // The lowest level of most machines: no mask to walk.
            if env.cpus.contains(group.first_cpu) {
                self.add_cpu_to_stats(env, group.first_cpu, local, &mut sgs, sds, cx);
            }
        } else {
            let cpus = group.span.and(&env.cpus).iter();
            cpus.for_each(|cpu| self.add_cpu_to_stats(env, cpu, local, &mut sgs, sds, cx));
        }
        let sgc = &self.topology.capacities[group.sgc];
        let domain = &self.topology[env.sd];
        let imbalance_pct = domain.imbalance_pct as u64;
        sgs.group_capacity = sgc.capacity;
        sgs.group_weight = group.group_weight;
        if (self.has_smt() || domain.flags & SD_ASYM_PACKING != 0)
            && !local
            && env.idle.is_idle()
            && sgs.sum_h_nr_running != 0
        {
            self.read_uneven_cpus(env, sds, group, &mut sgs, cx);
        }
        if cx.config.group_misfit == GroupMisfit::Helped
            && sgs.group_misfit_task_load != 0
            && self.is_asym(env.sd)
            && !capacity_greater(self.capacity_of(env.dst_cpu), sgc.max_capacity)
        {
            sgs.group_misfit_task_load = 0;
        }
        if !local && self.sched_cache_enabled() {
            sgs.nr_pref_dst_llc = self.count_pref_dst_llc(env, group);
            sgs.group_llc_balance = self.llc_balance(env, sds, &sgs, group);
        }
        sgs.group_type =
            sgs.classify(imbalance_pct, sgc.imbalance, self.may_be_overloaded(&sgs, cx));
        if sgs.group_type == GroupType::Overloaded {
            sgs.avg_load = sgs.load_per_capacity();
        }
        sgs
    }

    /// Whether what tasks want is enough to call a group overloaded.
    #[inline]
    pub(in crate::sched::fair) fn may_be_overloaded(&self, sgs: &SgLbStats, cx: &Context) -> bool {
        sgs.group_overutilized
            || !self.is_energy_aware()
            || cx.config.group_is_overloaded == GroupIsOverloaded::ByTasks
    }

    /// Reads the flags of a group that only threads of a core and preferred CPUs set. It is a
    /// function of its own, since few machines have them.
    #[inline(never)]
    fn read_uneven_cpus(
        &self,
        env: &LbEnv,
        sds: &SdLbStats,
        group: &SchedGroup,
        sgs: &mut SgLbStats,
        cx: &Context,
    ) {
        sgs.group_asym_packing = self.sched_group_asym(env, sds, group, sgs, cx);
        sgs.group_smt_balance = self.balances_cores(cx)
            && group.flags & SD_SHARE_CPUCAPACITY != 0
            && sgs.sum_h_nr_running > 1;
    }

    /// Adds the statistics of one CPU to its group and its domain.
    #[inline(always)]
    fn add_cpu_to_stats(
        &self,
        env: &LbEnv,
        cpu: CpuId,
        local: bool,
        sgs: &mut SgLbStats,
        sds: &mut SdLbStats,
        cx: &Context,
    ) {
        let (rq, cfs) = (&self.rq[cpu], &self.cfs[CfsRqId::root(cpu)]);
        let load = cfs.avg.load_avg;
        let util = self.cpu_util_cfs(cpu, cx);
        sgs.group_load += load;
        sgs.group_util += util;
        sgs.group_runnable += cfs.avg.runnable_avg;
        let h_nr_running = cx.balanced_tasks(cfs);
        sgs.sum_h_nr_running += h_nr_running;
        sgs.sum_nr_running += rq.nr_running;
        sds.cpus_read += 1;
        sds.overloaded |= rq.nr_running > 1;
        sgs.group_overutilized |= self.is_energy_aware() && self.util_exceeds(util, cpu, cx);
        if self.idle_cpu(cpu) {
            sgs.idle_cpus += 1;
            return;
        }
        if local {
            return;
        }
        if self.is_asym(env.sd) {
            if sgs.group_misfit_task_load < rq.misfit_task_load {
                sgs.group_misfit_task_load = rq.misfit_task_load;
                sds.overloaded = true;
            }
        } else if env.idle.is_idle()
            && h_nr_running == 1
            && !cx.config.bugs.reduced_capacity_ignored
            && self.check_cpu_capacity(cpu, env.sd)
        {
            sgs.group_misfit_task_load = sgs.group_misfit_task_load.max(load);
        }
    }

    /// `update_sd_pick_busiest()`: is this group busier than the busiest so far?
    fn is_busier(
        &self,
        env: &LbEnv,
        sds: &SdLbStats,
        sg: GroupId,
        sgs: &SgLbStats,
        cx: &Context,
    ) -> bool {
        let busiest = &sds.busiest_stat;
        let sgc = &self.topology.capacities[self.topology[sg].sgc];
        let asym = self.is_asym(env.sd);
        if sgs.sum_h_nr_running == 0 {
            return false;
        }
        // A misfit that would not fit here either, or that would disturb.
        if asym
            && sgs.group_type == GroupType::MisfitTask
            && (!capacity_greater(self.capacity_of(env.dst_cpu), sgc.max_capacity)
                || sds.local_stat.group_type != GroupType::HasSpare
                || self.shares_its_core(env, cx))
        {
            return false;
        }
        // One task a CPU, and each runs faster where it is.
        let bigger = || asym && capacity_greater(sgc.min_capacity, self.capacity_of(env.dst_cpu));
        let spared_always = cx.config.pick_busiest_bigger == PickBusiestBigger::Always;
        if spared_always && sgs.group_type <= GroupType::FullyBusy && bigger() {
            return false;
        }
        if sgs.group_type != busiest.group_type {
            return sgs.group_type > busiest.group_type;
        }
        let group_flags = |sg: GroupId| self.topology[sg].flags & SD_SHARE_CPUCAPACITY;
        let busiest_flags = || sds.busiest.map(group_flags);
        let has_fewer_idle = || {
            sgs.idle_cpus < busiest.idle_cpus
                || sgs.idle_cpus == busiest.idle_cpus && sgs.sum_nr_running > busiest.sum_nr_running
        };
        // By avg_load, which is not computed for this type. Cores with threads need more help than others.
        let last_of_full = || {
            cx.config.pick_busiest_full == PickBusiestFull::Last
                && busiest_flags().is_none_or(|flags| flags == 0)
        };
        let busier = match sgs.group_type {
            GroupType::Overloaded => return sgs.avg_load > busiest.avg_load,
            GroupType::LlcBalance => return sgs.nr_pref_dst_llc > busiest.nr_pref_dst_llc,
            GroupType::Imbalanced => return false,
            GroupType::MisfitTask => {
                let (load, busiest) = (sgs.group_misfit_task_load, busiest.group_misfit_task_load);
                return match cx.config.pick_busiest_misfit {
                    PickBusiestMisfit::Last => load >= busiest,
                    PickBusiestMisfit::First => load > busiest,
                };
            }
            GroupType::AsymPacking => {
                let first = sds.busiest.expect("the start is of type has_spare");
                let (busiest, own) =
                    (self.topology[first].asym_prefer_cpu, self.topology[sg].asym_prefer_cpu);
                return match cx.config.asym_packing {
                    // Of equals the last.
                    AsymPacking::BusyThreads => !self.topology.sched_asym_prefer(own, busiest),
                    AsymPacking::IdleCore => self.topology.sched_asym_prefer(busiest, own),
                };
            }
            GroupType::SmtBalance if sgs.idle_cpus != 0 || busiest.idle_cpus != 0 => {
                has_fewer_idle()
            }
            GroupType::SmtBalance | GroupType::FullyBusy => last_of_full(),
            // A core whose one task has it to itself is left alone; any other group is worth more.
            GroupType::HasSpare
                if self.balances_cores(cx)
                    && busiest_flags().is_some_and(|flags| flags != group_flags(sg)) =>
            {
                return group_flags(sg) == 0 || sgs.sum_h_nr_running > 1;
            }
            GroupType::HasSpare => has_fewer_idle(),
        };
        busier && (sgs.group_type > GroupType::FullyBusy || !bigger())
    }

    /// Whether balancing knows cores with several threads.
    pub(super) fn balances_cores(&self, cx: &Context) -> bool {
        self.has_smt() && cx.config.smt_balance == SmtBalance::Cores
    }

    /// Where several threads of the destination's core work, a misfit would gain nothing there. The rule came late to
    /// stable releases, with that about bigger groups.
    fn shares_its_core(&self, env: &LbEnv, cx: &Context) -> bool {
        cx.config.pick_busiest_bigger == PickBusiestBigger::Always
            && self.has_smt()
            && !self.is_core_idle(env.dst_cpu)
    }

    /// `sched_group_asym()`; up to 6.4 `sched_asym()` with `asym_smt_can_pull_tasks()`: whether the destination, which is
    /// idle, is to take the group's work because it is preferred.
    fn sched_group_asym(
        &self,
        env: &LbEnv,
        sds: &SdLbStats,
        group: &SchedGroup,
        sgs: &SgLbStats,
        cx: &Context,
    ) -> bool {
        if self.topology[env.sd].flags & SD_ASYM_PACKING == 0 {
            return false;
        }
        let smt = group.flags & SD_SHARE_CPUCAPACITY != 0;
        let busy_cpus = sgs.group_weight - sgs.idle_cpus;
        let preferred = || self.topology.sched_asym_prefer(env.dst_cpu, group.asym_prefer_cpu);
        if cx.config.asym_packing == AsymPacking::IdleCore {
            // Priorities mean nothing for cores with several busy threads.
            return !(smt && busy_cpus != 1)
                && self.sched_asym(env.sd, env.dst_cpu, group.asym_prefer_cpu, cx);
        }
        let local = &self.topology[sds.local];
        let local_smt = local.flags & SD_SHARE_CPUCAPACITY != 0;
        match (local_smt, smt) {
            (false, false) => preferred(),
            (false, true) => busy_cpus >= 2 || preferred(),
            // Only to even out the number of busy threads.
            (true, true) => {
                let local_busy = local.group_weight - sds.local_stat.idle_cpus;
                busy_cpus == local_busy + 1 && preferred()
            }
            (true, false) => sds.local_stat.sum_nr_running == 0 && preferred(),
        }
    }

    /// `sched_use_asym_prio()`: between cores, priorities are followed only if the whole core of `cpu` is idle. Up to
    /// 6.4 they always are.
    pub(super) fn sched_use_asym_prio(&self, sd: DomainId, cpu: CpuId, cx: &Context) -> bool {
        let flags = self.topology[sd].flags;
        flags & SD_ASYM_PACKING != 0
            && (!self.has_smt()
                || cx.config.asym_packing == AsymPacking::BusyThreads
                || flags & SD_SHARE_CPUCAPACITY != 0
                || self.is_core_idle(cpu))
    }

    /// `sched_asym()`: whether `dst` may be given work of `src` because it is preferred.
    pub(in crate::sched) fn sched_asym(
        &self,
        sd: DomainId,
        dst: CpuId,
        src: CpuId,
        cx: &Context,
    ) -> bool {
        self.sched_use_asym_prio(sd, dst, cx) && self.topology.sched_asym_prefer(dst, src)
    }

    /// Whether the idle CPU `idle` is a reason to balance because it is preferred to `busy`, which executes this. Where the
    /// numbers of busy threads decide, its core may have one.
    pub(in crate::sched) fn is_preferred_idle(
        &self,
        sd: DomainId,
        idle: CpuId,
        busy: CpuId,
        cx: &Context,
    ) -> bool {
        self.topology.sched_asym_prefer(idle, busy)
            && (cx.config.asym_packing == AsymPacking::BusyThreads
                || self.sched_use_asym_prio(sd, idle, cx))
    }

    /// Takes over what the statistics say about the whole machine and the cache domain.
    pub(super) fn commit_sd_lb_stats(&mut self, env: &LbEnv, sds: &SdLbStats, cx: &mut Context) {
        self.charge(cx.platform.device_tree.path_costs.balance_per_cpu * sds.cpus_read, cx);
        if cx.has_coherence() {
            let read = self.topology[env.sd].span.and(&env.cpus);
            self.fetch(cx, |lines, at| lines.looks_at(&read, at));
        }
        if self.topology[env.sd].parent.is_none() {
            self.rd.overloaded = sds.overloaded;
            self.set_rd_overutilized(sds.overutilized, cx);
        } else if sds.overutilized {
            self.set_rd_overutilized(true, cx);
        }
        if self.records_llc_stats(env) {
            self.record_llc_stats(env, cx);
        }
        self.update_idle_cpu_scan(env, sds.sum_util, cx);
    }

    /// The first part of `update_sd_lb_stats()`: brings the local group's capacity up to date.
    pub(super) fn refresh_local_capacity(&mut self, env: &LbEnv, cx: &Context) {
        let first = self.topology[env.sd].groups;
        let overlap = self.topology[env.sd].flags & SD_OVERLAP != 0;
        let mut sg = first;
        // Where groups overlap, several can contain the destination. Linux asks for each when it comes to it.
        loop {
            let group = &self.topology[sg];
            let next = group.next;
            if group.span.contains(env.dst_cpu) {
                let next_update = self.topology.capacities[group.sgc].next_update;
                if env.idle != CpuIdleType::NewlyIdle || cx.jiffies() >= next_update {
                    self.update_group_capacity(env.sd, env.dst_cpu, cx);
                }
            }
            sg = next;
            if !overlap || sg == first {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(nr: u32, util: u64, runnable: u64) -> SgLbStats {
        SgLbStats {
            group_capacity: 4096,
            group_weight: 4,
            sum_nr_running: nr,
            group_util: util,
            group_runnable: runnable,
            ..SgLbStats::ZERO
        }
    }

    /// Thresholds of behaviour notes 04 §12.
    #[test]
    fn classification() {
        use GroupType::*;
        let table = [
            // tasks, util, runnable, expected
            (3, 4096, 9999, HasSpare),
            (4, 3500, 4096, HasSpare),
            (4, 3501, 4096, FullyBusy),
            (4, 3000, 4793, FullyBusy),
            (5, 3500, 4792, HasSpare),
            (5, 3501, 4792, Overloaded),
            (5, 3500, 4793, Overloaded),
        ];
        for (nr, util, runnable, expected) in table {
            let sgs = group(nr, util, runnable);
            assert_eq!(sgs.classify(117, false, true), expected, "{nr} {util} {runnable}");
        }
        let misfit = SgLbStats { group_misfit_task_load: 1, ..group(1, 300, 300) };
        assert_eq!(misfit.classify(117, false, true), MisfitTask);
        assert_eq!(misfit.classify(117, true, true), Imbalanced);
        assert_eq!(group(5, 4000, 4000).classify(117, true, true), Overloaded);
        assert_eq!(group(5, 4000, 4000).classify(117, false, false), FullyBusy);
    }

    #[test]
    fn load_is_compared_per_capacity() {
        let sgs = SgLbStats { group_load: 3000, group_capacity: 1000, ..SgLbStats::ZERO };
        assert_eq!(sgs.load_per_capacity(), 3072);
    }
}
