// SPDX-License-Identifier: GPL-2.0-or-later
//! CPU selection at wakeup: `select_task_rq_fair`, `wake_affine`, `select_idle_sibling`.
//!
//! **Decides** where a waking task runs when EAS does not: first between the waker's CPU and the task's
//! previous one (`wake_affine`), then for an idle CPU near the winner (`select_idle_sibling`).
//!
//! **Algorithm of `select_idle_sibling`** (numbers in the code). 1. target idle. 2. prev idle, same cache. 3. the
//! waker is a per-CPU kthread (not modelled). 4. recently used CPU. 5. asymmetric machines: the first idle CPU
//! that fits, or the largest idle one. 6. with hardware threads, and no core known to be idle as a whole: an idle
//! thread of prev's core. 7. scan of the LLC, for an idle core if there is one, else for an idle CPU; the latter is
//! limited by how busy the LLC is (`SIS_UTIL`), or before 6.0 by the waker's own idle time (`SIS_PROP`). 8., 9. prev and
//! recent from another cluster. 10. target.
//!
//! 5.11 scans otherwise (`v5_11.rs`). Modules beside this one: `affine.rs` (the waker's CPU or
//! prev), `idle_cpu.rs` and `smt.rs` (7.), `idle_capacity.rs` (5.).
//!
//! Kernel: 6.12.95, 6.1.192 and 7.3.4 kernel/sched/fair.c.
//! Differences: clamps as of 6.1 in every form; wakers are tasks or interrupts, never per-CPU kthreads.

mod affine;
mod idle_capacity;
mod idle_core;
mod idle_cpu;
mod idler_llc;
mod smt;
#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod states;
mod v5_11;

use crate::config::{RecentUsedCpu, SelectIdleScan};
use crate::observe::{DecisionLog, DecisionObserver};
use crate::sched::core::{WF_SYNC, WF_TTWU};
use crate::sched::topology::{DomainId, IdleCore, SD_WAKE_AFFINE};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{Candidate, CpuId, CpuMask, Decision, PlacementRule, TaskId};

use super::energy::Choice;

/// Where a task goes, as decided.
enum Placement {
    /// To this CPU.
    Cpu(Choice),
    /// By the slow path, from this domain down.
    SlowPath(DomainId),
}

/// The cost of a decision, and the state that it changes.
#[derive(Default)]
struct PlacementEffects {
    /// CPUs that a scan looked at.
    looked_at: Looked,
    /// Threads of prev's core that were looked at before it.
    looked_at_threads: u32,
    /// Domains whose energy EAS has computed.
    computed: u32,
    /// `select_idle_sibling()` has aged the task (`sync_entity_load_avg`).
    aged: bool,
    /// It has looked at the recently used CPU and put prev in its place.
    used_recent: bool,
    /// The waker remembers where it is (up to 5.11).
    waker_stands_here: bool,
    /// A scan for an idle core has found none: the cache whose `has_idle_cores` it clears.
    no_idle_core: Option<usize>,
    /// A cache's known idle core was taken: it is known no longer.
    idle_core_taken: Option<usize>,
    /// `wake_affine` has found both caches busy: there is nothing to scan for.
    all_busy: bool,
    /// SIS_PROP has limited the scan.
    budget: Option<ScanBudget>,
}

/// CPUs that were looked at: how many times one was, and which. Where lines of other CPUs cost nothing, nobody asks for the
/// latter, and a scan leaves it out.
#[derive(Clone, Copy, Default)]
struct Looked {
    count: u32,
    cpus: CpuMask,
}

impl Looked {
    #[inline(always)]
    fn at(&mut self, cpu: CpuId) {
        self.count += 1;
        self.cpus.insert(cpu);
    }
}

/// The waker's idle time that SIS_PROP leaves, and the domain whose scan cost it compares that
/// with.
struct ScanBudget {
    /// `wake_avg_idle` and `wake_stamp`, aged.
    avg_idle: u64,
    stamp: u64,
    /// The cache domain of the executing CPU.
    this_sd: DomainId,
    /// The scan was not cut short: its time counts.
    measured: bool,
}

impl Kernel {
    /// `select_task_rq_fair()`: prepare, decide (read-only), commit. The executing CPU's running task wakes
    /// `task`, which last ran on `prev`; `wake_flags` are those of [`crate::sched::core`].
    pub fn select_task_rq_fair(&mut self, task: TaskId, prev: CpuId, wake_flags: u32) -> CpuId {
        if !self.cx.wants_decisions() {
            return self.place(task, prev, wake_flags, &mut ()).0;
        }
        let mut notes = DecisionLog::default();
        let (chosen, rule) = self.place(task, prev, wake_flags, &mut notes);
        let candidates = notes.candidates;
        self.cx.record(Decision::Placement { task, prev, chosen, rule, candidates });
        chosen
    }

    fn place(
        &mut self,
        task: TaskId,
        prev: CpuId,
        wake_flags: u32,
        see: &mut impl DecisionObserver,
    ) -> Choice {
        let mut ask_eas = false;
        if wake_flags & WF_TTWU != 0 {
            self.sched.record_wakee(task, &mut self.cpuidle, &self.cx);
            ask_eas = !self.sched.is_rd_overutilized();
            if ask_eas {
                self.sched.sync_entity_load_avg(task, &self.cx);
            }
        }
        if self.own.has_placement()
            && let Some(choice) = self.custom_placement(task, prev, wake_flags, ask_eas, see)
        {
            return choice;
        }
        let mut effects = PlacementEffects::default();
        let placement = self.decide_placement(task, prev, wake_flags, ask_eas, &mut effects, see);
        self.sched.commit_placement_effects(task, prev, effects, &mut self.cx);
        match placement {
            Placement::Cpu(choice) => choice,
            Placement::SlowPath(sd) => {
                let cpu = self.cx.this_cpu;
                let dst = self.sched_balance_find_dst_cpu(sd, task, cpu, prev, wake_flags & 0xf);
                (dst, PlacementRule::FindDstCpu)
            }
        }
    }

    #[inline(always)]
    fn decide_placement(
        &self,
        task: TaskId,
        prev: CpuId,
        wake_flags: u32,
        ask_eas: bool,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
    ) -> Placement {
        if ask_eas {
            let computed = &mut effects.computed;
            if let Some(choice) = self.find_energy_efficient_cpu(task, prev, computed, see) {
                return Placement::Cpu(choice);
            }
        }
        let cpu = self.cx.this_cpu;
        let current = self.sched.rq[cpu].curr;
        let sync = wake_flags & WF_SYNC != 0 && !self.sched.tasks[current].exiting;
        let wakes = wake_flags & WF_TTWU != 0;
        let want_affine = wakes
            && !self.sched.wake_wide(task, &self.cpuidle, &self.cx)
            && self.sched.tasks[task].cpus_mask.contains(cpu);
        let mut target = prev;
        let mut rule = PlacementRule::Stays;
        let mut slow = None;
        let mut level = self.sched.topology.base[cpu.index()];
        while let Some(id) = level {
            let sd = &self.sched.topology.domains[id.0 as usize];
            if want_affine && sd.flags & SD_WAKE_AFFINE != 0 && sd.span.contains(prev) {
                if cpu != prev {
                    (target, rule) =
                        self.sched.wake_affine(id, task, cpu, prev, sync, effects, &self.cx);
                }
                slow = None;
                break;
            }
            if sd.flags & wake_flags & 0xf != 0 {
                slow = Some(id);
            } else if !want_affine {
                break;
            }
            level = sd.parent;
        }
        if let Some(sd) = slow {
            Placement::SlowPath(sd)
        } else if wakes {
            let remembers = self.cx.config.recent_used_cpu == RecentUsedCpu::Waker;
            effects.waker_stands_here = want_affine && remembers;
            let (chosen, sibling_rule) = self.select_idle_sibling(task, prev, target, effects, see);
            let moved = chosen == target && target != prev;
            Placement::Cpu((chosen, if moved { rule } else { sibling_rule }))
        } else {
            Placement::Cpu((target, rule))
        }
    }

    /// `select_idle_sibling()`.
    #[inline(always)]
    fn select_idle_sibling(
        &self,
        task: TaskId,
        prev: CpuId,
        target: CpuId,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
    ) -> Choice {
        let asym = self.sched.has_asym_cpucapacity();
        effects.aged |= asym;
        let demand = asym.then(|| self.synced_task_demand(task));
        let fits = |k: &Self, cpu: CpuId| {
            demand.is_none_or(|demand| k.sched.asym_fits_cpu(&demand, cpu, &k.cx))
        };
        let idle = |k: &Self, cpu: CpuId| k.sched.choose_idle_cpu(cpu, task, &k.cx);
        // 1.
        if idle(self, target) && fits(self, target) {
            return (target, PlacementRule::SisTargetIdle);
        }
        // 2.
        let share_cache = |k: &Self, cpu: CpuId| k.sched.topology.cpus_share_cache(cpu, target);
        let same_cluster = |k: &Self, cpu: CpuId| {
            !k.sched.wakeups_know_clusters(&k.cx)
                || k.sched.topology.cpus_share_resources(cpu, target)
        };
        let mut prev_aff = None;
        if prev != target && share_cache(self, prev) && idle(self, prev) && fits(self, prev) {
            if same_cluster(self, prev) {
                return (prev, PlacementRule::SisPrevIdle);
            }
            prev_aff = Some(prev);
        }
        // 4.
        let replaced_only_by_use = self.cx.config.recent_used_cpu == RecentUsedCpu::Waker;
        effects.used_recent = !replaced_only_by_use;
        let recent = self.sched.tasks[task].recent_used_cpu;
        let mut recent_aff = None;
        if recent != prev
            && recent != target
            && share_cache(self, recent)
            && idle(self, recent)
            && self.sched.tasks[task].cpus_mask.contains(recent)
            && fits(self, recent)
        {
            if same_cluster(self, recent) {
                effects.used_recent = true;
                return (recent, PlacementRule::SisRecentIdle);
            }
            recent_aff = Some(recent);
        }
        // 5.
        if let Some(demand) = demand
            && let Some(sd) = self.sched.sd_asym_cpucapacity(target)
        {
            return match self
                .sched
                .select_idle_capacity(task, sd, target, &demand, effects, see, &self.cx)
            {
                Some(cpu) => (cpu, PlacementRule::SelectIdleCapacity),
                None => (target, PlacementRule::SelectIdleCapacityNone),
            };
        }
        if effects.all_busy {
            return (target, PlacementRule::SisAllBusy);
        }
        let Some(sd) = self.sched.topology.sd_llc[target.index()] else {
            return (target, PlacementRule::SisNoSharedCache);
        };
        if self.cx.config.select_idle_scan == SelectIdleScan::SmtLast {
            return self
                .sched
                .scan_smt_last(task, sd, target, effects, see, &self.cx)
                .unwrap_or((target, PlacementRule::SisNoIdleCpu));
        }
        // 6.
        let idle_core = self.sched.idle_core_of(target, effects, &self.cx);
        if self.sched.has_smt()
            && !idle_core.known
            && share_cache(self, prev)
            && let Some(cpu) = self.sched.select_idle_smt(task, prev, effects, see, &self.cx)
        {
            return (cpu, PlacementRule::SelectIdleSmt);
        }
        // 7.
        let looked_at = effects.looked_at.count;
        if let Some(choice) =
            self.sched.select_idle_cpu(task, sd, target, idle_core.possible, effects, see, &self.cx)
        {
            return choice;
        }
        // 8., 9., 10.
        if let Some(cpu) = prev_aff {
            return (cpu, PlacementRule::SisPrevIdleOtherCluster);
        }
        if let Some(cpu) = recent_aff {
            return (cpu, PlacementRule::SisRecentIdleOtherCluster);
        }
        let searched = effects.looked_at.count != looked_at;
        let rule =
            if searched { PlacementRule::SisNoIdleCpu } else { PlacementRule::SisNotSearched };
        (target, rule)
    }
}

impl Scheduler {
    /// Charges for what was decided, and remembers it.
    #[inline(always)]
    fn commit_placement_effects(
        &mut self,
        task: TaskId,
        prev: CpuId,
        effects: PlacementEffects,
        cx: &mut Context,
    ) {
        if effects.aged {
            self.sync_entity_load_avg(task, cx);
        }
        if effects.used_recent {
            self.tasks[task].recent_used_cpu = prev;
        }
        if effects.waker_stands_here {
            let current = self.rq[cx.this_cpu].curr;
            // Nobody wakes an idle task, so nobody asks where it has been.
            if !current.is_idle() {
                self.tasks[current].recent_used_cpu = cx.this_cpu;
            }
        }
        if let Some(shared) = effects.no_idle_core {
            self.topology.shared[shared].has_idle_cores = false;
        }
        if let Some(shared) = effects.idle_core_taken {
            self.topology.shared[shared].idle_core = IdleCore::Unknown;
        }
        let cost = cx.platform.device_tree.path_costs.energy_per_domain;
        self.charge(cost * effects.computed as u64, cx);
        if effects.looked_at_threads != 0 {
            let cost = cx.platform.device_tree.path_costs.select_per_cpu;
            self.charge(cost * effects.looked_at_threads as u64, cx);
        }
        let before = cx.local_clock();
        if effects.looked_at.count != 0 {
            let cost = cx.platform.device_tree.path_costs.select_per_cpu;
            self.charge(cost * effects.looked_at.count as u64, cx);
        }
        if cx.has_coherence() {
            self.fetch_what_was_looked_at(task, prev, &effects, cx);
        }
        if let Some(budget) = effects.budget {
            self.account_scan(budget, cx.local_clock() - before, cx);
        }
    }

    /// The lines of other CPUs that the decision has read.
    #[inline(never)]
    fn fetch_what_was_looked_at(
        &mut self,
        task: TaskId,
        prev: CpuId,
        effects: &PlacementEffects,
        cx: &mut Context,
    ) {
        let mut cpus = effects.looked_at.cpus;
        cpus.insert(prev);
        if effects.used_recent {
            cpus.insert(self.tasks[task].recent_used_cpu);
        }
        let shared = self.topology.sd_balance_shared[prev.index()].filter(|_| self.has_smt());
        self.fetch(cx, |lines, mut at| {
            let mut wait = lines.looks_at(&cpus, at);
            if let Some(shared) = shared {
                at.advance(wait);
                wait += lines.llc_word(shared, effects.no_idle_core.is_some(), at);
            }
            wait
        });
    }

    pub(crate) fn looked_at(&self, cpu: CpuId, role: &'static str, cx: &Context) -> Candidate {
        Candidate {
            cpu,
            role,
            util: self.cpu_util_cfs(cpu, cx),
            capacity: self.capacity_of(cpu),
            energy_delta: None,
            max_util: None,
        }
    }
}
