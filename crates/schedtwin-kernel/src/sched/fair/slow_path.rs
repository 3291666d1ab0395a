// SPDX-License-Identifier: GPL-2.0-or-later
//! CPU selection for a task that is new to its CPU: after `fork` and `exec`.
//!
//! There is no cache to stay near to, so the whole machine is looked at, from the largest domain down:
//! in each, the group that is least busy; in that, its idlest CPU; then the domains below that CPU.
//! A group other than the local one must be better by some margin.
//!
//! The idlest CPU of a group: an idle one, of them the one in the idle state that is left fastest, of
//! those the one that went idle last (its cache is warm); else the one with the least load.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `sched_balance_find_dst_cpu`, `sched_balance_find_dst_group`,
//! `update_sg_wakeup_stats`, `sched_balance_find_dst_group_cpu`.
//! Differences: no core cookies, no NUMA balancing.

use super::balance::src_group::adjust_numa_imbalance;
use super::balance::stats::{GroupType, SgLbStats};
use crate::config::DstGroupStats;
use crate::sched::OnRq;
use crate::sched::topology::{DomainId, GroupId, SD_ASYM_CPUCAPACITY, SD_BALANCE_FORK, SD_NUMA};
use crate::{Activity, Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, TaskId};

#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod states;

impl Kernel {
    /// `sched_balance_find_dst_cpu()`: from domain `sd` of `cpu` downwards. `sd_flag` is
    /// `SD_BALANCE_FORK` or `SD_BALANCE_EXEC`.
    pub fn sched_balance_find_dst_cpu(
        &mut self,
        sd: DomainId,
        task: TaskId,
        cpu: CpuId,
        prev_cpu: CpuId,
        sd_flag: u32,
    ) -> CpuId {
        if !self.sched.topology[sd].span.intersects(&self.sched.tasks[task].cpus_mask) {
            return prev_cpu;
        }
        if sd_flag & SD_BALANCE_FORK == 0 {
            self.sched.sync_entity_load_avg(task, &self.cx);
        }
        let (chosen, cpus_read) = self.find_dst_cpu(sd, task, cpu, sd_flag);
        self.sched.charge(
            self.cx.platform.device_tree.path_costs.select_per_cpu * cpus_read,
            &mut self.cx,
        );
        if self.cx.has_coherence() {
            let read = self.sched.topology[sd].span;
            self.sched.fetch(&mut self.cx, |lines, at| lines.looks_at(&read, at));
        }
        chosen
    }

    /// The descent, read-only. Also returns how many CPUs were read.
    fn find_dst_cpu(&self, sd: DomainId, task: TaskId, cpu: CpuId, sd_flag: u32) -> (CpuId, u64) {
        let mut cpu = cpu;
        let mut cpus_read = 0;
        let mut at = Some(sd);
        while let Some(sd) = at {
            let domain = &self.sched.topology[sd];
            at = domain.child;
            if domain.flags & sd_flag == 0 {
                continue;
            }
            cpus_read += domain.span_weight as u64;
            let Some(group) = self.find_dst_group(sd, task, cpu) else { continue };
            cpus_read += self.sched.topology[group].group_weight as u64;
            let new_cpu = self.sched.find_dst_group_cpu(group, task, cpu, &self.cx);
            if new_cpu == cpu {
                continue;
            }
            // On with the domains of the new CPU that are smaller.
            cpu = new_cpu;
            let smaller = |d: &DomainId| self.sched.topology[*d].span_weight < domain.span_weight;
            at = self
                .sched
                .topology
                .domains_of(cpu)
                .take_while(smaller)
                .filter(|d| self.sched.topology[*d].flags & sd_flag != 0)
                .last();
        }
        (cpu, cpus_read)
    }

    /// `sched_balance_find_dst_group()`; `None`: stay in the local group.
    pub(super) fn find_dst_group(
        &self,
        sd: DomainId,
        task: TaskId,
        this_cpu: CpuId,
    ) -> Option<GroupId> {
        let domain = &self.sched.topology[sd];
        let allowed = &self.sched.tasks[task].cpus_mask;
        let mut local: Option<(GroupId, SgLbStats)> = None;
        let mut idlest: Option<GroupId> = None;
        let mut idlest_sgs = SgLbStats {
            avg_load: u32::MAX as u64,
            group_type: GroupType::Overloaded,
            ..SgLbStats::ZERO
        };
        for sg in self.sched.topology.groups_of(sd) {
            let group = &self.sched.topology[sg];
            if !group.span.intersects(allowed) {
                continue;
            }
            let sgs = self.read_sg_wakeup_stats(sd, sg, task);
            if group.span.contains(this_cpu) {
                local = Some((sg, sgs));
            } else if self.sched.is_idler(idlest, &idlest_sgs, sg, &sgs) {
                idlest = Some(sg);
                idlest_sgs = sgs;
            }
        }
        let idlest = idlest?;
        // The local group may have been skipped because of affinity.
        let Some((local, local_sgs)) = local else { return Some(idlest) };
        if local_sgs.group_type != idlest_sgs.group_type {
            return (local_sgs.group_type > idlest_sgs.group_type).then_some(idlest);
        }
        let numa = domain.flags & SD_NUMA != 0;
        let stay = match local_sgs.group_type {
            GroupType::Overloaded | GroupType::FullyBusy => {
                let pct = domain.imbalance_pct as u64;
                // Of the load of a nice-0 task.
                let margin = 1024 * (pct - 100) / 100;
                numa && idlest_sgs.avg_load + margin >= local_sgs.avg_load
                    || idlest_sgs.avg_load >= local_sgs.avg_load + margin
                    || 100 * local_sgs.avg_load <= pct * idlest_sgs.avg_load
            }
            GroupType::LlcBalance
            | GroupType::Imbalanced
            | GroupType::SmtBalance
            | GroupType::AsymPacking => true,
            GroupType::MisfitTask => {
                self.sched.max_capacity(local) >= self.sched.max_capacity(idlest)
            }
            GroupType::HasSpare => {
                // How many tasks a node may have more than another, fewer if the task may use only a
                // part of it.
                let usable = self.sched.topology[local].span.and(allowed).weight();
                let difference = local_sgs.idle_cpus.abs_diff(idlest_sgs.idle_cpus) as i32;
                let running = local_sgs.sum_nr_running + 1;
                let tolerated = || {
                    adjust_numa_imbalance(difference, running, domain.imb_numa_nr.min(usable)) == 0
                };
                numa && tolerated() || local_sgs.idle_cpus >= idlest_sgs.idle_cpus
            }
        };
        (!stay).then_some(idlest)
    }

    /// `update_sg_wakeup_stats()`: without the task itself.
    fn read_sg_wakeup_stats(&self, sd: DomainId, sg: GroupId, task: TaskId) -> SgLbStats {
        let domain = &self.sched.topology[sd];
        let group = &self.sched.topology[sg];
        let asym = domain.flags & SD_ASYM_CPUCAPACITY != 0;
        let mut sgs = SgLbStats { group_misfit_task_load: asym as u64, ..SgLbStats::ZERO };
        let counted = match self.cx.config.dst_group_stats {
            DstGroupStats::AllCpus => group.span,
            DstGroupStats::AllowedCpus => group.span.and(&self.sched.tasks[task].cpus_mask),
        };
        for cpu in counted.iter() {
            sgs.group_load += self.sched.cpu_load_without(cpu, task, &self.cx);
            sgs.group_util += self.sched.cpu_util_without(cpu, task, &self.cx);
            sgs.group_runnable += self.sched.cpu_runnable_without(cpu, task);
            let own = self.sched.task_running_on_cpu(cpu, task) as u32;
            sgs.sum_h_nr_running += self.sched.h_nr_running(cpu, &self.cx) - own;
            let nr_running = self.sched.rq[cpu].nr_running - own;
            sgs.sum_nr_running += nr_running;
            if nr_running == 0 && self.sched.idle_cpu_without(cpu, task) {
                sgs.idle_cpus += 1;
            }
            if sgs.group_misfit_task_load != 0 && self.task_fits_cpu(task, cpu) {
                sgs.group_misfit_task_load = 0;
            }
        }
        let sgc = &self.sched.topology.capacities[group.sgc];
        sgs.group_capacity = sgc.capacity;
        sgs.group_weight = group.group_weight;
        // Overutilization is not looked at here, so in 7.3 with EAS no group is overloaded.
        sgs.group_type = sgs.classify(
            domain.imbalance_pct as u64,
            sgc.imbalance,
            self.sched.may_be_overloaded(&sgs, &self.cx),
        );
        if matches!(sgs.group_type, GroupType::FullyBusy | GroupType::Overloaded) {
            sgs.avg_load = sgs.load_per_capacity();
        }
        sgs
    }
}

impl Scheduler {
    /// `update_pick_idlest()`.
    fn is_idler(
        &self,
        idlest: Option<GroupId>,
        idlest_sgs: &SgLbStats,
        group: GroupId,
        sgs: &SgLbStats,
    ) -> bool {
        if sgs.group_type != idlest_sgs.group_type {
            return sgs.group_type < idlest_sgs.group_type;
        }
        match sgs.group_type {
            GroupType::Overloaded | GroupType::FullyBusy => sgs.avg_load < idlest_sgs.avg_load,
            GroupType::LlcBalance
            | GroupType::Imbalanced
            | GroupType::SmtBalance
            | GroupType::AsymPacking => false,
            GroupType::MisfitTask => {
                let idlest = idlest.expect("the start is of type overloaded");
                self.max_capacity(group) > self.max_capacity(idlest)
            }
            GroupType::HasSpare => {
                sgs.idle_cpus > idlest_sgs.idle_cpus
                    || sgs.idle_cpus == idlest_sgs.idle_cpus
                        && sgs.group_util < idlest_sgs.group_util
            }
        }
    }

    fn max_capacity(&self, group: GroupId) -> u64 {
        self.topology.capacities[self.topology[group].sgc].max_capacity
    }

    /// `task_running_on_cpu()`: is it counted there?
    fn task_running_on_cpu(&self, cpu: CpuId, task: TaskId) -> bool {
        let t = &self.tasks[task];
        t.cpu == cpu && self.se[t.se].avg.last_update_time != 0 && t.on_rq == OnRq::Queued
    }

    /// `idle_cpu_without()`.
    fn idle_cpu_without(&self, cpu: CpuId, task: TaskId) -> bool {
        let rq = &self.rq[cpu];
        (rq.curr.is_idle() || rq.curr == task) && !rq.ttwu_pending
    }

    /// `sched_balance_find_dst_group_cpu()`.
    pub(super) fn find_dst_group_cpu(
        &self,
        group: GroupId,
        task: TaskId,
        this_cpu: CpuId,
        cx: &Context,
    ) -> CpuId {
        let group = &self.topology[group];
        if group.group_weight == 1 {
            return group.first_cpu;
        }
        let mut min_load = u64::MAX;
        let mut least_loaded_cpu = this_cpu;
        let mut min_exit_latency = u32::MAX as u64;
        let mut latest_idle_timestamp = 0;
        let mut shallowest_idle_cpu = None;
        for cpu in group.span.and(&self.tasks[task].cpus_mask).iter() {
            if self.sched_idle_cpu(cpu) && self.displaces_idle_tasks(task, cx) {
                return cpu;
            }
            if self.idle_cpu(cpu) {
                let idle_stamp = self.rq[cpu].idle_stamp;
                let exit_latency = cx.idle_exit_latency_us(cpu);
                let shallower = exit_latency.is_some_and(|l| l < min_exit_latency);
                let as_shallow = exit_latency.is_none_or(|l| l == min_exit_latency);
                if shallower || as_shallow && idle_stamp > latest_idle_timestamp {
                    if shallower {
                        min_exit_latency = exit_latency.expect("it was compared");
                    }
                    latest_idle_timestamp = idle_stamp;
                    shallowest_idle_cpu = Some(cpu);
                }
            } else if shallowest_idle_cpu.is_none() {
                let load = self.cpu_load(cpu);
                if load < min_load {
                    min_load = load;
                    least_loaded_cpu = cpu;
                }
            }
        }
        shallowest_idle_cpu.unwrap_or(least_loaded_cpu)
    }
}

impl Context {
    /// Exit latency of the idle state a CPU is in (`idle_get_state`), µs as cpuidle counts it.
    fn idle_exit_latency_us(&self, cpu: CpuId) -> Option<u64> {
        match self.platform.wires[cpu].activity {
            Activity::Idle { state } => {
                Some(self.platform.device_tree.idle_states(cpu)[state as usize].exit_latency / 1000)
            }
            Activity::Poll { .. } => Some(0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::TaskKind;
    use crate::sched::topology::parts::{self, Part};
    use schedtwin_types::CpuMask;

    /// Two caches of two CPUs. A child may use CPU 0, which is busy, and CPU 2. Counting CPU 1, which it may not use, its
    /// own cache is as idle as the other one; without it, the other cache is idler.
    #[test]
    fn whose_cpus_count() {
        let llc = |llc| Part::of(2, 1024).llc(llc);
        for (form, chosen) in [(DstGroupStats::AllCpus, 0), (DstGroupStats::AllowedCpus, 2)] {
            let mut kernel = parts::boot(&[llc(0), llc(1)], false);
            kernel.cx.config.dst_group_stats = form;
            let (child, other) =
                (kernel.new_task(None, TaskKind::User), kernel.new_task(None, TaskKind::User));
            kernel.sched.tasks[child].cpus_mask = CpuMask::from_cpus([CpuId(0), CpuId(2)]);
            for busy in [0, 3] {
                let cpu = CpuId(busy);
                kernel.sched.rq[cpu].curr = other;
                kernel.sched.rq[cpu].nr_running = 1;
                kernel.sched.refresh_idle(cpu);
            }
            // An idle CPU that has never been busy is not taken.
            kernel.sched.rq[CpuId(2)].idle_stamp = 1;
            let cpu = CpuId(0);
            let sd = kernel.sched.topology.domains_of(cpu).last().unwrap();
            let found = kernel.sched_balance_find_dst_cpu(sd, child, cpu, cpu, SD_BALANCE_FORK);
            assert_eq!(found, CpuId(chosen), "{form:?}");
        }
    }
}
