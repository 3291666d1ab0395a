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
//! 5.11 scans otherwise (`v5_11.rs`), and patches ask before WA_WEIGHT which cache is idler (`idler_llc.rs`,
//! `idle_core.rs`).
//!
//! **SIS_PROP** bets that a CPU that idles much can afford to search: on eight CPUs, with 100 µs of idle
//! time a wakeup and 10 µs a scan, 8 · 100 / 10 = 80 CPUs may be looked at, that is all; with 2 µs of idle
//! time the least, 4, of which the last ends the search unseen.
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/fair.c; 5.18 is taken to scan as 6.1.192 does with its features.
//! Differences: clamps as of 6.1 in every form; wakers are tasks or interrupts, never per-CPU kthreads.

#[cfg(test)]
mod golden;
mod idle_core;
mod idler_llc;
mod smt;
mod v5_11;

use crate::Kernel;
use crate::config::{RecentUsedCpu, SelectIdleCluster, SelectIdleScan};
use crate::sched::CfsRqId;
use crate::sched::core::{WF_SYNC, WF_TTWU};
use crate::sched::demand::fits::{Fits, TaskDemand};
use crate::sched::topology::{DomainId, IdleCore, SD_CLUSTER, SD_WAKE_AFFINE, SchedDomain};
use crate::see::{Notes, See};
use schedtwin_types::{Candidate, CpuId, CpuMask, Decision, Ns, PlacementRule, TaskId};

use super::energy::Choice;

/// Where a task goes, as decided.
enum Placement {
    /// To this CPU.
    Cpu(Choice),
    /// By the slow path, from this domain down.
    SlowPath(DomainId),
}

/// What deciding has cost and what it leaves behind.
#[derive(Default)]
struct Trail {
    /// CPUs that a scan looked at.
    looked_at: u32,
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
    /// A scan for an idle core has found none: whose `has_idle_cores` it clears.
    no_idle_core: Option<usize>,
    /// A cache's known idle core was taken: it is known no longer.
    idle_core_taken: Option<usize>,
    /// `wake_affine` has found both caches busy: there is nothing to scan for.
    all_busy: bool,
    /// SIS_PROP has limited the scan.
    budget: Option<ScanBudget>,
}

/// What SIS_PROP leaves of the waker's idle time, and whose scan cost it compares that with.
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
        if !self.want_decisions {
            return self.place(task, prev, wake_flags, &mut ()).0;
        }
        let mut notes = Notes::default();
        let (chosen, rule) = self.place(task, prev, wake_flags, &mut notes);
        let candidates = notes.candidates;
        self.record(Decision::Placement { task, prev, chosen, rule, candidates });
        chosen
    }

    fn place(&mut self, task: TaskId, prev: CpuId, wake_flags: u32, see: &mut impl See) -> Choice {
        let mut ask_eas = false;
        if wake_flags & WF_TTWU != 0 {
            self.record_wakee(task);
            ask_eas = !self.is_rd_overutilized();
            if ask_eas {
                self.sync_entity_load_avg(task);
            }
        }
        if self.placement.is_some()
            && let Some(choice) = self.custom_placement(task, prev, wake_flags, ask_eas, see)
        {
            return choice;
        }
        let mut trail = Trail::default();
        let placement = self.decide_placement(task, prev, wake_flags, ask_eas, &mut trail, see);
        self.commit_trail(task, prev, trail);
        match placement {
            Placement::Cpu(choice) => choice,
            Placement::SlowPath(sd) => {
                let cpu = self.this_cpu;
                let dst = self.sched_balance_find_dst_cpu(sd, task, cpu, prev, wake_flags & 0xf);
                (dst, PlacementRule::FindDstCpu)
            }
        }
    }

    /// Charges for what was decided, and remembers it.
    #[inline]
    fn commit_trail(&mut self, task: TaskId, prev: CpuId, trail: Trail) {
        if trail.aged {
            self.sync_entity_load_avg(task);
        }
        if trail.used_recent {
            self.tasks[task].recent_used_cpu = prev;
        }
        if trail.waker_stands_here {
            let current = self.rq[self.this_cpu].curr;
            // Nobody wakes an idle task, so nobody asks where it has been.
            if !current.is_idle() {
                self.tasks[current].recent_used_cpu = self.this_cpu;
            }
        }
        if let Some(shared) = trail.no_idle_core {
            self.topology.shared[shared].has_idle_cores = false;
        }
        if let Some(shared) = trail.idle_core_taken {
            self.topology.shared[shared].idle_core = IdleCore::Unknown;
        }
        let cost = self.device_tree.path_costs.energy_per_domain;
        self.charge(cost * trail.computed as u64);
        if trail.looked_at_threads != 0 {
            let cost = self.device_tree.path_costs.select_per_cpu;
            self.charge(cost * trail.looked_at_threads as u64);
        }
        let before = self.local_clock();
        if trail.looked_at != 0 {
            let cost = self.device_tree.path_costs.select_per_cpu;
            self.charge(cost * trail.looked_at as u64);
        }
        if let Some(budget) = trail.budget {
            self.account_scan(budget, self.local_clock() - before);
        }
    }

    fn decide_placement(
        &self,
        task: TaskId,
        prev: CpuId,
        wake_flags: u32,
        ask_eas: bool,
        trail: &mut Trail,
        see: &mut impl See,
    ) -> Placement {
        if ask_eas {
            let computed = &mut trail.computed;
            if let Some(choice) = self.find_energy_efficient_cpu(task, prev, computed, see) {
                return Placement::Cpu(choice);
            }
        }
        let cpu = self.this_cpu;
        let current = self.rq[cpu].curr;
        let sync = wake_flags & WF_SYNC != 0 && !self.tasks[current].exiting;
        let wakes = wake_flags & WF_TTWU != 0;
        let want_affine =
            wakes && !self.wake_wide(task) && self.tasks[task].cpus_mask.contains(cpu);
        let mut target = prev;
        let mut rule = PlacementRule::Stays;
        let mut slow = None;
        let mut level = self.topology.base[cpu.index()];
        while let Some(id) = level {
            let sd = &self.topology.domains[id.0 as usize];
            if want_affine && sd.flags & SD_WAKE_AFFINE != 0 && sd.span.contains(prev) {
                if cpu != prev {
                    (target, rule) = self.wake_affine(id, task, cpu, prev, sync, trail);
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
            let remembers = self.config.recent_used_cpu == RecentUsedCpu::Waker;
            trail.waker_stands_here = want_affine && remembers;
            let (chosen, sibling_rule) = self.select_idle_sibling(task, prev, target, trail, see);
            let moved = chosen == target && target != prev;
            Placement::Cpu((chosen, if moved { rule } else { sibling_rule }))
        } else {
            Placement::Cpu((target, rule))
        }
    }

    /// `record_wakee()`: how many different tasks the running one wakes.
    fn record_wakee(&mut self, task: TaskId) {
        let jiffies = self.jiffies();
        let hz = self.config.hz as u64;
        let current = self.rq[self.this_cpu].curr;
        let (last_wakee, flips, decay_ts) = if current.is_idle() {
            let idle = &mut self.cpuidle[self.this_cpu].wakees;
            (&mut idle.last_wakee, &mut idle.wakee_flips, &mut idle.wakee_flip_decay_ts)
        } else {
            let waker = &mut self.tasks[current];
            (&mut waker.last_wakee, &mut waker.wakee_flips, &mut waker.wakee_flip_decay_ts)
        };
        if jiffies > *decay_ts + hz {
            *flips >>= 1;
            *decay_ts = jiffies;
        }
        if *last_wakee != task {
            *last_wakee = task;
            *flips += 1;
        }
    }

    /// `wake_wide()`: a master that wakes many is not pulled towards them.
    fn wake_wide(&self, task: TaskId) -> bool {
        let current = self.rq[self.this_cpu].curr;
        let a = if current.is_idle() {
            self.cpuidle[self.this_cpu].wakees.wakee_flips
        } else {
            self.tasks[current].wakee_flips
        };
        let b = self.tasks[task].wakee_flips;
        let factor = self.topology.sd_llc_size[self.this_cpu.index()];
        let (master, slave) = (a.max(b), a.min(b));
        !(slave < factor || (master as u64) < slave as u64 * factor as u64)
    }

    /// `wake_affine()`: this CPU or prev, or a third one that a patch knows to be idle?
    fn wake_affine(
        &self,
        sd: DomainId,
        task: TaskId,
        this: CpuId,
        prev: CpuId,
        sync: bool,
        trail: &mut Trail,
    ) -> Choice {
        let features = &self.config.features;
        let early = if self.keeps_idle_core() {
            self.wake_affine_by_idle_core(task, this, prev, sync, trail)
        } else {
            let idle =
                if features.wa_idle { self.wake_affine_idle(this, prev, sync) } else { None };
            idle.or_else(|| self.prefer_idler_llc(this, prev, sync))
        };
        if let Some(choice) = early {
            return choice;
        }
        if features.wa_weight && self.wake_affine_weight(sd, task, this, prev, sync) {
            return (this, PlacementRule::WaWeight);
        }
        (prev, PlacementRule::WakeAffinePrev)
    }

    /// `wake_affine_idle()`.
    fn wake_affine_idle(&self, this: CpuId, prev: CpuId, sync: bool) -> Option<Choice> {
        if self.idle_cpu(this) && self.topology.cpus_share_cache(this, prev) {
            return Some(if self.idle_cpu(prev) {
                (prev, PlacementRule::WaIdleBothIdle)
            } else {
                (this, PlacementRule::WaIdleWakerIdle)
            });
        }
        if sync && self.nr_running_but_delayed(this) == 1 {
            return Some((this, PlacementRule::WaIdleSync));
        }
        self.idle_cpu(prev).then_some((prev, PlacementRule::WaIdlePrevIdle))
    }

    /// The tasks of a CPU, without those that sleep and wait for their dequeue.
    fn nr_running_but_delayed(&self, cpu: CpuId) -> u32 {
        let cfs = &self.cfs[CfsRqId::root(cpu)];
        self.rq[cpu].nr_running - (cfs.h_nr_queued - cfs.h_nr_runnable)
    }

    /// `wake_affine_weight()`: whether the waker's CPU would be less loaded.
    fn wake_affine_weight(
        &self,
        sd: DomainId,
        task: TaskId,
        this: CpuId,
        prev: CpuId,
        sync: bool,
    ) -> bool {
        let bias = self.config.features.wa_bias;
        // Products and sums wrap as the kernel's do: with shares of nested groups they can exceed 63 bits.
        let mut this_load = self.cpu_load(this) as i64;
        if sync {
            if self.keeps_idle_core() && self.nr_running_but_delayed(this) <= 1 {
                return true;
            }
            let current = self.rq[this].curr;
            let current_load = if current.is_idle() { 0 } else { self.task_h_load(current) as i64 };
            if current_load > this_load {
                return true;
            }
            this_load = this_load.wrapping_sub(current_load);
        }
        let task_load = self.task_h_load(task) as i64;
        this_load = this_load.wrapping_add(task_load);
        let mut prev_load = (self.cpu_load(prev) as i64).wrapping_sub(task_load);
        if bias {
            let pct = self.topology.domains[sd.0 as usize].imbalance_pct as i64;
            this_load = this_load.wrapping_mul(100);
            prev_load = prev_load.wrapping_mul(100 + (pct - 100) / 2);
        }
        this_load = this_load.wrapping_mul(self.capacity_of(prev) as i64);
        prev_load = prev_load.wrapping_mul(self.capacity_of(this) as i64);
        if sync {
            prev_load = prev_load.wrapping_add(1);
        }
        this_load < prev_load
    }

    /// `select_idle_sibling()`.
    fn select_idle_sibling(
        &self,
        task: TaskId,
        prev: CpuId,
        target: CpuId,
        trail: &mut Trail,
        see: &mut impl See,
    ) -> Choice {
        let asym = self.topology.asym_cpucapacity;
        trail.aged |= asym;
        let demand = asym.then(|| self.synced_task_demand(task));
        let fits = |k: &Kernel, cpu: CpuId| {
            demand.is_none_or(|demand| k.fits_cpu(&demand, cpu) == Fits::Yes)
        };
        let idle = |k: &Kernel, cpu: CpuId| k.idle_cpu(cpu) || k.sched_idle_cpu(cpu);
        // 1.
        if idle(self, target) && fits(self, target) {
            return (target, PlacementRule::SisTargetIdle);
        }
        // 2.
        let share_cache = |k: &Kernel, cpu: CpuId| k.topology.cpus_share_cache(cpu, target);
        let same_cluster = |k: &Kernel, cpu: CpuId| {
            !k.wakeups_know_clusters() || k.topology.cpus_share_resources(cpu, target)
        };
        let mut prev_aff = None;
        if prev != target && share_cache(self, prev) && idle(self, prev) && fits(self, prev) {
            if same_cluster(self, prev) {
                return (prev, PlacementRule::SisPrevIdle);
            }
            prev_aff = Some(prev);
        }
        // 4.
        let replaced_only_by_use = self.config.recent_used_cpu == RecentUsedCpu::Waker;
        trail.used_recent = !replaced_only_by_use;
        let recent = self.tasks[task].recent_used_cpu;
        let mut recent_aff = None;
        if recent != prev
            && recent != target
            && share_cache(self, recent)
            && idle(self, recent)
            && self.tasks[task].cpus_mask.contains(recent)
            && fits(self, recent)
        {
            if same_cluster(self, recent) {
                trail.used_recent = true;
                return (recent, PlacementRule::SisRecentIdle);
            }
            recent_aff = Some(recent);
        }
        // 5.
        if let Some(demand) = demand
            && let Some(sd) = self.topology.sd_asym_cpucapacity[target.index()]
        {
            let span = self.topology.domains[sd.0 as usize].span;
            let (choice, looked_at) = self.select_idle_capacity(task, &span, target, &demand, see);
            trail.looked_at = looked_at;
            return match choice {
                Some(cpu) => (cpu, PlacementRule::SelectIdleCapacity),
                None => (target, PlacementRule::SelectIdleCapacityNone),
            };
        }
        if trail.all_busy {
            return (target, PlacementRule::SisAllBusy);
        }
        let Some(sd) = self.topology.sd_llc[target.index()] else {
            return (target, PlacementRule::SisNoSharedCache);
        };
        if self.config.select_idle_scan == SelectIdleScan::SmtLast {
            return self
                .scan_smt_last(task, sd, target, trail, see)
                .unwrap_or((target, PlacementRule::SisNoIdleCpu));
        }
        // 6.
        let idle_core = self.idle_core_of(target, trail);
        if self.topology.smt
            && !idle_core.known
            && share_cache(self, prev)
            && let Some(cpu) = self.select_idle_smt(task, prev, trail, see)
        {
            return (cpu, PlacementRule::SelectIdleSmt);
        }
        // 7.
        if let Some(choice) = self.select_idle_cpu(task, sd, target, idle_core.possible, trail, see)
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
        (target, PlacementRule::SisNoIdleCpu)
    }

    /// Whether a wakeup looks at the target's cluster before the rest of the cache domain.
    fn wakeups_know_clusters(&self) -> bool {
        self.topology.cluster && self.config.select_idle_cluster == SelectIdleCluster::ClusterFirst
    }

    /// SIS_PROP: how many CPUs the executing one may look at, and what that follows from. `None`: there
    /// is no cache domain to scan.
    ///
    /// Its idle time of late, halved for each jiffy that has passed since, over what looking has cost; at
    /// least 4.
    fn scan_budget(&self, span_weight: u32) -> Option<(u32, ScanBudget)> {
        let this_sd = self.topology.sd_llc[self.this_cpu.index()]?;
        let rq = &self.rq[self.this_cpu];
        let (mut avg_idle, mut stamp) = (rq.wake_avg_idle, rq.wake_stamp);
        // At most 64 turns.
        while stamp < self.jiffies() && avg_idle != 0 {
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
    fn account_scan(&mut self, budget: ScanBudget, time: Ns) {
        let rq = &mut self.rq[self.this_cpu];
        (rq.wake_avg_idle, rq.wake_stamp) = (budget.avg_idle, budget.stamp);
        if budget.measured {
            rq.wake_avg_idle = rq.wake_avg_idle.saturating_sub(time);
            // update_avg(): one eighth of the difference.
            let cost = &mut self.topology[budget.this_sd].avg_scan_cost;
            *cost = (*cost as i64 + (time as i64 - *cost as i64) / 8) as u64;
        }
    }

    /// `select_idle_cpu()`: scan of the LLC from target + 1.
    fn select_idle_cpu(
        &self,
        task: TaskId,
        sd: DomainId,
        target: CpuId,
        has_idle_core: bool,
        trail: &mut Trail,
        see: &mut impl See,
    ) -> Option<Choice> {
        let sd = &self.topology.domains[sd.0 as usize];
        let mut cpus = sd.span.and(&self.tasks[task].cpus_mask);
        let mut left = i32::MAX as u32;
        if self.config.features.sis_prop && !has_idle_core {
            let (nr, budget) = self.scan_budget(sd.span_weight)?;
            left = nr;
            trail.budget = Some(budget);
        }
        if self.config.features.sis_util
            && let Some(shared) = self.topology.sd_llc_shared[target.index()]
        {
            left = self.topology.shared[shared].nr_idle_scan + 1;
            if left == 1 {
                return None;
            }
        }
        let start = CpuId(target.0 + 1);
        let near = self.cluster_within(sd, target);
        if has_idle_core && !self.topology.smt {
            // Without threads each CPU is a core, and the search for one knows no limit.
            left = i32::MAX as u32;
        } else if has_idle_core {
            let far = cpus.and_not(&near);
            return self.scan_for_core([cpus.and(&near), far], start, target, trail, see);
        }
        let mut found = None;
        if !near.is_empty() {
            found = self.scan(&cpus.and(&near), start, &mut left, &mut trail.looked_at, see);
            cpus = cpus.and_not(&near);
        }
        if found.is_none() && left != 0 {
            found = self.scan(&cpus, start, &mut left, &mut trail.looked_at, see);
        }
        if let Some(budget) = &mut trail.budget {
            budget.measured = found.is_some() || left != 0;
        }
        found.map(|cpu| (cpu, PlacementRule::SelectIdleCpu))
    }

    /// The CPUs of the target's cluster, if a wakeup looks at them before the rest of its cache domain; else none.
    fn cluster_within(&self, llc: &SchedDomain, target: CpuId) -> CpuMask {
        if !self.wakeups_know_clusters() {
            return CpuMask::EMPTY;
        }
        let group = &self.topology[llc.groups];
        if group.flags & SD_CLUSTER != 0 && group.span.contains(target) {
            return group.span;
        }
        CpuMask::EMPTY
    }

    /// Looks at CPUs wrapping from `start` until one is idle or the allowance is used up (`left` is then
    /// 0). Linux asks one after the other; here masks know who is idle, and what is counted is the way.
    fn scan<S: See>(
        &self,
        cpus: &CpuMask,
        start: CpuId,
        left: &mut u32,
        looked_at: &mut u32,
        see: &mut S,
    ) -> Option<CpuId> {
        let idle = cpus.and(&self.idle_mask.or(&self.sched_idle_mask));
        let found = idle.next_wrapping_from(start);
        let way = found.map_or(cpus.weight(), |cpu| cpus.weight_wrapping(start, cpu) + 1);
        // The allowance ends before the CPU that uses it up.
        let (looked, found) = if way < *left { (way, found) } else { (*left - 1, None) };
        *left = left.saturating_sub(way);
        *looked_at += looked;
        if S::ON {
            for cpu in cpus.iter_wrapping_from(start).take(looked as usize) {
                let role = if found == Some(cpu) { "idle" } else { "busy" };
                see.candidate(|| self.looked_at(cpu, role));
            }
        }
        found
    }

    /// `select_idle_capacity()`: idle CPUs of an asymmetric domain, wrapping from target.
    fn select_idle_capacity(
        &self,
        task: TaskId,
        span: &CpuMask,
        target: CpuId,
        demand: &TaskDemand,
        see: &mut impl See,
    ) -> (Option<CpuId>, u32) {
        let cpus = span.and(&self.tasks[task].cpus_mask);
        let mut best = None;
        let (mut best_fits, mut best_cap) = (Fits::No, 0);
        let mut looked_at = 0;
        for cpu in cpus.iter_wrapping_from(target) {
            looked_at += 1;
            if !self.idle_cpu(cpu) && !self.sched_idle_cpu(cpu) {
                see.candidate(|| self.looked_at(cpu, "busy"));
                continue;
            }
            let fits = self.fits_cpu(demand, cpu);
            if fits == Fits::Yes {
                see.candidate(|| self.looked_at(cpu, "idle, fits"));
                return (Some(cpu), looked_at);
            }
            // One that is only too slow for the minimum is better than one that is too small.
            let (role, cap) = if fits == Fits::TooSlow {
                ("idle, too slow", self.get_actual_cpu_capacity(cpu))
            } else {
                ("idle, too small", self.capacity_of(cpu))
            };
            see.candidate(|| self.looked_at(cpu, role));
            if fits > best_fits || (fits == best_fits && cap > best_cap) {
                (best_fits, best_cap) = (fits, cap);
                best = Some(cpu);
            }
        }
        (best, looked_at)
    }

    pub(crate) fn looked_at(&self, cpu: CpuId, role: &'static str) -> Candidate {
        Candidate {
            cpu,
            role,
            util: self.cpu_util_cfs(cpu),
            capacity: self.capacity_of(cpu),
            energy_delta: None,
            max_util: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::TaskKind;
    use crate::sched::demand::conformance::DemandSteps;
    use crate::sched::root_domain::tests::kernel;

    const OPPS: &[(u32, u64)] = &[(1_000_000, 100_000)];

    /// Equal CPUs, this load 1024, prev's 1024 of which the task is 512: the task stays.
    #[test]
    fn wake_affine_weight_is_biased_towards_prev() {
        let mut kernel = kernel(&[(4, 1024, OPPS)]);
        let task = kernel.new_task(None, TaskKind::User);
        let se = kernel.tasks[task].se;
        kernel.se[se].avg.load_avg = 512;
        let (this, prev) = (CpuId(1), CpuId(0));
        let sd = kernel.topology.base[1].unwrap();
        let mut moves = |this_load: u64, prev_load: u64, sync: bool| {
            kernel.cfs[CfsRqId::root(this)].avg.load_avg = this_load;
            kernel.cfs[CfsRqId::root(prev)].avg.load_avg = prev_load;
            kernel.wake_affine_weight(sd, task, this, prev, sync)
        };
        // (this + 512) * 100 < (prev − 512) * 108.
        assert!(!moves(1024, 1024, false));
        assert!(!moves(0, 986, false));
        assert!(moves(0, 987, false));
        // A tie goes to the waker's CPU only with sync: 1080 * 100 = 1000 * 108.
        assert!(!moves(568, 1512, false));
        assert!(moves(568, 1512, true));
    }

    /// Loads of nested groups can reach any number (`hunt/found/load-of-nested-groups.toml`); then the products are cut to
    /// 64 bits and compared with their sign, as C does.
    #[test]
    fn wake_affine_weight_wraps_as_c_does() {
        let mut kernel = kernel(&[(4, 1024, OPPS)]);
        let task = kernel.new_task(None, TaskKind::User);
        let (this, prev) = (CpuId(1), CpuId(0));
        let sd = kernel.topology.base[1].unwrap();
        let cut = |wide: i128| wide as i64;
        let mut unlike_wide = 0;
        for this_load in [0, 1 << 46, 1 << 47, 1 << 57, u64::MAX] {
            for prev_load in [0, 1 << 46, 1 << 47, 1 << 57, u64::MAX] {
                for own in [0, 1 << 20, u64::MAX] {
                    kernel.cfs[CfsRqId::root(this)].avg.load_avg = this_load;
                    kernel.cfs[CfsRqId::root(prev)].avg.load_avg = prev_load;
                    let se = kernel.tasks[task].se;
                    kernel.se[se].avg.load_avg = own;
                    let signed = |load: u64| i128::from(load as i64);
                    let left = (signed(this_load) + signed(own)) * 100 * 1024;
                    let right = (signed(prev_load) - signed(own)) * 108 * 1024;
                    let moves = kernel.wake_affine_weight(sd, task, this, prev, false);
                    assert_eq!(moves, cut(left) < cut(right), "{this_load} {prev_load} {own}");
                    unlike_wide += u32::from(moves != (left < right));
                }
            }
        }
        assert!(unlike_wide > 10, "only {unlike_wide} of the loads are too large for 63 bits");
    }

    /// Each CPU's idle task remembers its own wakees.
    #[test]
    fn idle_tasks_do_not_share_their_wakees() {
        let mut kernel = kernel(&[(2, 1024, OPPS)]);
        let (a, b) = (kernel.new_task(None, TaskKind::User), kernel.new_task(None, TaskKind::User));
        for _ in 0..8 {
            (kernel.this_cpu, kernel.now) = (CpuId(0), 1);
            kernel.record_wakee(a);
            kernel.this_cpu = CpuId(1);
            kernel.record_wakee(b);
        }
        assert_eq!([0, 1].map(|c| kernel.cpuidle[CpuId(c)].wakees.wakee_flips), [1, 1]);
    }

    /// A master with many wakees is not pulled towards them; factor is the cache's CPUs.
    #[test]
    fn wake_wide() {
        let mut kernel = kernel(&[(4, 1024, OPPS)]);
        let (master, slave) =
            (kernel.new_task(None, TaskKind::User), kernel.new_task(None, TaskKind::User));
        kernel.rq[CpuId(0)].curr = master;
        for (m, s, wide) in
            [(0, 0, false), (100, 3, false), (15, 4, false), (16, 4, true), (4, 16, true)]
        {
            kernel.tasks[master].wakee_flips = m;
            kernel.tasks[slave].wakee_flips = s;
            assert_eq!(kernel.wake_wide(slave), wide, "{m} {s}");
        }
    }

    /// SIS_PROP: what is left of the idle time, over the cost of looking, times eight CPUs.
    #[test]
    fn a_scan_may_cost_a_share_of_the_idle_time() {
        let mut kernel = kernel(&[(8, 1024, OPPS)]);
        kernel.now = 100 * kernel.tick_nsec;
        let sd = kernel.topology.base[0].unwrap();
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
            let rq = &mut kernel.rq[CpuId(0)];
            (rq.wake_avg_idle, rq.wake_stamp) = (avg_idle, 100 - jiffies);
            kernel.topology[sd].avg_scan_cost = cost;
            let (got, budget) = kernel.scan_budget(8).unwrap();
            assert_eq!((got, budget.avg_idle), (nr, left), "{avg_idle} {jiffies} {cost}");
        }
        // Time that has become 0 stays 0, so the stamp stops there.
        assert_eq!(kernel.scan_budget(8).unwrap().1.stamp, 100 - 50 + 20);
    }

    /// A scan that was cut short teaches nothing; one that came to its end costs what it took.
    #[test]
    fn a_whole_scan_is_learnt_from() {
        let mut kernel = kernel(&[(8, 1024, OPPS)]);
        kernel.config.features.sis_util = false;
        kernel.config.features.sis_prop = true;
        kernel.device_tree.path_costs.select_per_cpu = 100;
        kernel.device_tree.path_costs.constant_time = true;
        kernel.refresh_path_speed(CpuId(0));
        let task = kernel.new_task(None, TaskKind::User);
        let sd = kernel.topology.base[0].unwrap();
        for cpu in 0..8 {
            kernel.rq[CpuId(cpu)].curr = task;
            kernel.add_nr_running(CpuId(cpu), 1);
        }
        // 3 of 8 CPUs are looked at, then all 8: 800 ns.
        for (avg_idle, cost, left, learnt) in [(100, 799, 100, 799), (8_000, 0, 7_200, 100)] {
            kernel.rq[CpuId(0)].wake_avg_idle = avg_idle;
            kernel.topology[sd].avg_scan_cost = cost;
            let mut trail = Trail::default();
            let found = kernel.select_idle_cpu(task, sd, CpuId(3), false, &mut trail, &mut ());
            assert_eq!(found, None);
            kernel.commit_trail(task, CpuId(3), trail);
            let rq = &kernel.rq[CpuId(0)];
            assert_eq!((rq.wake_avg_idle, kernel.topology[sd].avg_scan_cost), (left, learnt));
        }
    }

    /// Idle CPUs of an asymmetric machine, wrapping from target: the first that fits, else the largest.
    #[test]
    fn select_idle_capacity_wants_fit_then_size() {
        let mut kernel = kernel(&[(2, 300, OPPS), (1, 600, OPPS), (1, 1024, OPPS)]);
        let task = kernel.new_task(None, TaskKind::User);
        let span = kernel.device_tree.all_cpus();
        let choose = |k: &Kernel, util, target: u16| {
            let asked = TaskDemand::of_clamps(util, 0, 1024);
            k.select_idle_capacity(task, &span, CpuId(target), &asked, &mut ()).0.map(|c| c.0)
        };
        assert_eq!(choose(&kernel, 100, 1), Some(1));
        assert_eq!(choose(&kernel, 400, 0), Some(2));
        assert_eq!(choose(&kernel, 400, 3), Some(3));
        assert_eq!(choose(&kernel, 1000, 0), Some(3));
        kernel.rq[CpuId(3)].nr_running = 1;
        assert_eq!(choose(&kernel, 1000, 0), Some(2));

        // With a minimum that no idle CPU can meet: the fastest of those with room, not the largest of all. A cap
        // makes a large task fit a small CPU.
        DemandSteps(&mut kernel).turn_uclamp_key(true);
        let choose = |util, min, max| {
            let asked = TaskDemand::of_clamps(util, min, max);
            kernel.select_idle_capacity(task, &span, CpuId(0), &asked, &mut ()).0.map(|c| c.0)
        };
        assert_eq!(choose(100, 0, 1024), Some(0));
        assert_eq!(choose(100, 500, 1024), Some(2));
        assert_eq!(choose(100, 700, 1024), Some(2));
        assert_eq!(choose(900, 0, 300), Some(0));
    }
}
