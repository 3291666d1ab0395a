// SPDX-License-Identifier: GPL-2.0-or-later
//! The scan of a cache for an idle CPU, and how far it goes.
//!
//! From the target on, the target's cluster first where wakeups know clusters. The way is limited by how busy the cache is
//! (`SIS_UTIL`, see `balance/idle_scan.rs`), or before 6.0 by the waker's own idle time (`SIS_PROP`). Where a core is idle as
//! a whole it is looked for instead (`smt.rs`).
//!
//! **SIS_PROP** bets that a CPU that idles much can afford to search: on eight CPUs, with 100 µs of idle
//! time a wakeup and 10 µs a scan, 8 · 100 / 10 = 80 CPUs may be looked at, that is all; with 2 µs of idle
//! time the least, 4, of which the last ends the search unseen.
//!
//! **Idle CPUs** (`choose_idle_cpu`): a CPU without tasks, and one that has tasks of policy
//! `SCHED_IDLE` only; since 7.3 the latter not for a wakee of that policy, which would wait there.
//!
//! Kernel: 6.12.95, 6.1.192 and 7.3.4 kernel/sched/fair.c `select_idle_cpu`; 5.18 is taken to scan as 6.1.192 does with its
//! features.

use super::{Looked, PlacementEffects, ScanBudget};
use crate::config::{IdleCoreUnseen, SchedIdleCpus, SelectIdleCluster};
use crate::observe::DecisionObserver;
use crate::sched::fair::energy::Choice;
use crate::sched::topology::{DomainId, SD_CLUSTER, SchedDomain};
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, CpuMask, Ns, PlacementRule, Policy, TaskId};

impl Scheduler {
    /// `choose_sched_idle_rq()` without the CPU: whether one with `SCHED_IDLE` tasks only is as good as an idle one.
    #[inline]
    pub(crate) fn displaces_idle_tasks(&self, task: TaskId, cx: &Context) -> bool {
        match cx.config.sched_idle_cpus {
            SchedIdleCpus::ForAll => true,
            SchedIdleCpus::ForOthers => self.tasks[task].policy != Policy::Idle,
        }
    }

    /// `choose_idle_cpu()`.
    #[inline]
    pub(crate) fn choose_idle_cpu(&self, cpu: CpuId, task: TaskId, cx: &Context) -> bool {
        self.available_idle_cpu(cpu)
            || self.sched_idle_cpu(cpu) && self.displaces_idle_tasks(task, cx)
    }

    /// Whether a wakeup looks at the target's cluster before the rest of the cache domain.
    pub(super) fn wakeups_know_clusters(&self, cx: &Context) -> bool {
        self.has_clusters() && cx.config.select_idle_cluster == SelectIdleCluster::ClusterFirst
    }

    /// SIS_PROP: how many CPUs the executing one may look at, and what that follows from. `None`: there
    /// is no cache domain to scan.
    ///
    /// Its idle time of late, halved for each jiffy that has passed since, over what looking has cost; at
    /// least 4.
    fn scan_budget(&self, span_weight: u32, cx: &Context) -> Option<(u32, ScanBudget)> {
        let this_sd = self.topology.sd_llc[cx.this_cpu.index()]?;
        let rq = &self.rq[cx.this_cpu];
        let (mut avg_idle, mut stamp) = (rq.wake_avg_idle, rq.wake_stamp);
        // At most 64 turns.
        while stamp < cx.jiffies() && avg_idle != 0 {
            stamp += 1;
            avg_idle >>= 1;
        }
        let avg_cost = self.topology[this_sd].avg_scan_cost + 1;
        let span_avg = span_weight as u64 * avg_idle;
        let nr = if span_avg > 4 * avg_cost { span_avg / avg_cost } else { 4 };
        let nr = nr.min(i32::MAX as u64) as u32;
        Some((nr, ScanBudget { avg_idle, stamp, this_sd, measured: false }))
    }

    /// SIS_PROP: a scan has taken `time`.
    pub(super) fn account_scan(&mut self, budget: ScanBudget, time: Ns, cx: &Context) {
        let rq = &mut self.rq[cx.this_cpu];
        (rq.wake_avg_idle, rq.wake_stamp) = (budget.avg_idle, budget.stamp);
        if budget.measured {
            rq.wake_avg_idle = rq.wake_avg_idle.saturating_sub(time);
            // update_avg(): one eighth of the difference.
            let cost = &mut self.topology[budget.this_sd].avg_scan_cost;
            *cost = (*cost as i64 + (time as i64 - *cost as i64) / 8) as u64;
        }
    }

    /// `select_idle_cpu()`: scan of the LLC from target + 1.
    pub(super) fn select_idle_cpu(
        &self,
        task: TaskId,
        sd: DomainId,
        target: CpuId,
        has_idle_core: bool,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<Choice> {
        let sd = &self.topology.domains[sd.0 as usize];
        let mut cpus = sd.span.and(&self.tasks[task].cpus_mask);
        let mut left = i32::MAX as u32;
        if cx.config.features.sis_prop && !has_idle_core {
            let (nr, budget) = self.scan_budget(sd.span_weight, cx)?;
            left = nr;
            effects.budget = Some(budget);
        }
        if cx.config.features.sis_util
            && let Some(shared) = self.topology.sd_llc_shared[target.index()]
        {
            left = self.topology.shared[shared].nr_idle_scan + 1;
            if left == 1 {
                return None;
            }
        }
        if cpus.is_empty() && cx.config.idle_core_unseen == IdleCoreUnseen::Kept {
            return None;
        }
        let start = CpuId(target.0 + 1);
        let near = self.cluster_within(sd, target, cx);
        if has_idle_core && !self.has_smt() {
            // Without threads each CPU is a core, and the search for one knows no limit.
            left = i32::MAX as u32;
        } else if has_idle_core {
            let far = cpus.and_not(&near);
            return self.scan_for_core(
                task,
                [cpus.and(&near), far],
                start,
                target,
                effects,
                see,
                cx,
            );
        }
        let mut found = None;
        if !near.is_empty() {
            found = self.scan(
                &cpus.and(&near),
                start,
                task,
                &mut left,
                &mut effects.looked_at,
                see,
                cx,
            );
            cpus = cpus.and_not(&near);
        }
        if found.is_none() && left != 0 {
            found = self.scan(&cpus, start, task, &mut left, &mut effects.looked_at, see, cx);
        }
        if let Some(budget) = &mut effects.budget {
            budget.measured = found.is_some() || left != 0;
        }
        found.map(|cpu| (cpu, PlacementRule::SelectIdleCpu))
    }

    /// The CPUs of the target's cluster, if a wakeup looks at them before the rest of its cache domain; else none.
    fn cluster_within(&self, llc: &SchedDomain, target: CpuId, cx: &Context) -> CpuMask {
        if !self.wakeups_know_clusters(cx) {
            return CpuMask::EMPTY;
        }
        let group = &self.topology[llc.groups];
        if group.flags & SD_CLUSTER != 0 && group.span.contains(target) {
            return group.span;
        }
        CpuMask::EMPTY
    }

    /// Looks at CPUs wrapping from `start` until one is idle or the allowance is used up (`left` is then
    /// 0). Linux asks one after the other; here masks know which CPUs are idle, and the length of
    /// the way is counted.
    pub(super) fn scan<S: DecisionObserver>(
        &self,
        cpus: &CpuMask,
        start: CpuId,
        task: TaskId,
        left: &mut u32,
        looked_at: &mut Looked,
        see: &mut S,
        cx: &Context,
    ) -> Option<CpuId> {
        let mut idle = self.idle_mask;
        if self.displaces_idle_tasks(task, cx) {
            idle = idle.or(&self.sched_idle_mask);
        }
        let idle = cpus.and(&idle);
        let found = idle.next_wrapping_from(start);
        let way = found.map_or(cpus.weight(), |cpu| cpus.weight_wrapping(start, cpu) + 1);
        // The allowance ends before the CPU that uses it up.
        let (looked, found) = if way < *left { (way, found) } else { (*left - 1, None) };
        *left = left.saturating_sub(way);
        looked_at.count += looked;
        if cx.has_coherence() {
            for cpu in cpus.iter_wrapping_from(start).take(looked as usize) {
                looked_at.cpus.insert(cpu);
            }
        }
        if S::ON {
            for cpu in cpus.iter_wrapping_from(start).take(looked as usize) {
                let role = if found == Some(cpu) { "idle" } else { "busy" };
                see.candidate(|| self.looked_at(cpu, role, cx));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::TaskKind;
    use crate::sched::root_domain::tests::kernel;

    const OPPS: &[(u32, u64)] = &[(1_000_000, 100_000)];

    /// SIS_PROP: what is left of the idle time, over the cost of looking, times eight CPUs.
    #[test]
    fn a_scan_may_cost_a_share_of_the_idle_time() {
        let mut kernel = kernel(&[(8, 1024, OPPS)]);
        kernel.cx.now = 100 * kernel.cx.tick_nsec;
        let sd = kernel.sched.topology.base[0].unwrap();
        // Idle time and how many jiffies ago, cost; how many CPUs, and what is left of the idle time.
        let table = [
            (100_000, 0, 9_999, 80, 100_000),
            (100_000, 3, 9_999, 10, 12_500),
            (100_000, 4, 9_999, 5, 6_250),
            (100_000, 5, 9_999, 4, 3_125),
            (0, 5, 0, 4, 0),
            (1_000_000, 50, 0, 4, 0),
        ];
        for (avg_idle, jiffies, cost, nr, left) in table {
            let rq = &mut kernel.sched.rq[CpuId(0)];
            (rq.wake_avg_idle, rq.wake_stamp) = (avg_idle, 100 - jiffies);
            kernel.sched.topology[sd].avg_scan_cost = cost;
            let (got, budget) = kernel.sched.scan_budget(8, &kernel.cx).unwrap();
            assert_eq!((got, budget.avg_idle), (nr, left), "{avg_idle} {jiffies} {cost}");
        }
        // Time that has become 0 stays 0, so the stamp stops there.
        assert_eq!(kernel.sched.scan_budget(8, &kernel.cx).unwrap().1.stamp, 100 - 50 + 20);
    }

    /// A scan that was cut short teaches nothing; one that came to its end costs what it took.
    #[test]
    fn a_whole_scan_is_learnt_from() {
        let mut kernel = kernel(&[(8, 1024, OPPS)]);
        kernel.cx.config.features.sis_util = false;
        kernel.cx.config.features.sis_prop = true;
        kernel.cx.platform.device_tree.path_costs.select_per_cpu = 100;
        kernel.cx.platform.device_tree.path_costs.constant_time = true;
        kernel.sched.refresh_path_speed(CpuId(0), &kernel.cpufreq, &mut kernel.cx);
        let task = kernel.new_task(None, TaskKind::User);
        let sd = kernel.sched.topology.base[0].unwrap();
        for cpu in 0..8 {
            kernel.sched.rq[CpuId(cpu)].curr = task;
            kernel.sched.add_nr_running(CpuId(cpu), 1);
        }
        // 3 of 8 CPUs are looked at, then all 8: 800 ns.
        for (avg_idle, cost, left, learnt) in [(100, 799, 100, 799), (8_000, 0, 7_200, 100)] {
            kernel.sched.rq[CpuId(0)].wake_avg_idle = avg_idle;
            kernel.sched.topology[sd].avg_scan_cost = cost;
            let mut effects = PlacementEffects::default();
            let found = kernel.sched.select_idle_cpu(
                task,
                sd,
                CpuId(3),
                false,
                &mut effects,
                &mut (),
                &kernel.cx,
            );
            assert_eq!(found, None);
            kernel.sched.commit_placement_effects(task, CpuId(3), effects, &mut kernel.cx);
            let rq = &kernel.sched.rq[CpuId(0)];
            assert_eq!((rq.wake_avg_idle, kernel.sched.topology[sd].avg_scan_cost), (left, learnt));
        }
    }
}
