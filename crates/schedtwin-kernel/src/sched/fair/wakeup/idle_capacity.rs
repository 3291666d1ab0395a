// SPDX-License-Identifier: GPL-2.0-or-later
//! An idle CPU where capacities differ (`select_idle_capacity`).
//!
//! **Decides** among the idle CPUs of the lowest domain that has every capacity, from the target on: the first that fits the
//! task, else the one that comes nearest. Reached when EAS does not decide.
//!
//! **Up to 6.12** the whole domain is looked at. One that is only too slow for the task's minimum is better than one that is
//! too small, and of equals the larger one is taken.
//!
//! **Since 7.3** SIS_UTIL limits the way, as in a cache (`balance/idle_scan.rs`): each CPU on it counts, idle or not. Where
//! cores have hardware threads and one is known to be idle as a whole, the limit does not hold and idle cores come first:
//!
//! | rank | the core is idle, or nobody knows an idle one | another thread is busy |
//! |---|---|---|
//! | fits | taken at once | -2 |
//! | too slow for the minimum only | -4 | -1 |
//! | too small | -3 | 0, and only with more capacity than the best so far |
//!
//! A search for an idle core that ends on another rank records that there is none. The CPUs that
//! are asked before the search (target, prev, recent) must be on an idle core, too.
//!
//! ```text
//! nr_idle_scan 2, target 3 of 0-7, task fits 4-7 only:   3 idle, too small   4 busy   5 not looked at   ⇒ 3
//! ```
//!
//! Kernel: 6.12.95 and 7.3.4 kernel/sched/fair.c `select_idle_capacity`, `asym_fits_cpu`.

use super::PlacementEffects;
use crate::config::SelectIdleCapacity;
use crate::observe::DecisionObserver;
use crate::sched::demand::fits::{Fits, TaskDemand};
use crate::sched::topology::DomainId;
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, TaskId};

/// `ASYM_IDLE_*`: the best rank is the smallest.
mod rank {
    /// An idle core whose capacity does not fit: the last of those on idle cores.
    pub const COMPLETE_MISFIT: i32 = -3;
    /// It fits, but another thread of the core is busy.
    pub const THREAD_FITS: i32 = -2;
    /// So does it but for the minimum.
    pub const THREAD_TOO_SLOW: i32 = -1;
    /// It does not fit, and another thread is busy.
    pub const THREAD_MISFIT: i32 = 0;
    /// The bonus of an idle core.
    pub const CORE_BIAS: i32 = -3;
}

impl Scheduler {
    /// `asym_fits_cpu()`, where capacities differ.
    pub(super) fn asym_fits_cpu(&self, demand: &TaskDemand, cpu: CpuId, cx: &Context) -> bool {
        let core = match cx.config.select_idle_capacity {
            SelectIdleCapacity::WholeDomain => true,
            SelectIdleCapacity::SisUtil => !self.has_smt() || self.is_core_idle(cpu),
        };
        core && self.fits_cpu(demand, cpu) == Fits::Yes
    }

    /// `select_idle_capacity()`: idle CPUs of an asymmetric domain, wrapping from target.
    pub(super) fn select_idle_capacity(
        &self,
        task: TaskId,
        sd: DomainId,
        target: CpuId,
        demand: &TaskDemand,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<CpuId> {
        match cx.config.select_idle_capacity {
            SelectIdleCapacity::WholeDomain => {
                self.idle_capacity_in_domain(task, sd, target, demand, effects, see, cx)
            }
            SelectIdleCapacity::SisUtil => {
                self.idle_capacity_by_rank(task, sd, target, demand, effects, see, cx)
            }
        }
    }

    fn idle_capacity_in_domain(
        &self,
        task: TaskId,
        sd: DomainId,
        target: CpuId,
        demand: &TaskDemand,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<CpuId> {
        let cpus = self.topology[sd].span.and(&self.tasks[task].cpus_mask);
        let mut best = None;
        let (mut best_fits, mut best_cap) = (Fits::No, 0);
        for cpu in cpus.iter_wrapping_from(target) {
            effects.looked_at.at(cpu);
            if !self.choose_idle_cpu(cpu, task, cx) {
                see.candidate(|| self.looked_at(cpu, "busy", cx));
                continue;
            }
            let fits = self.fits_cpu(demand, cpu);
            if fits == Fits::Yes {
                see.candidate(|| self.looked_at(cpu, "idle, fits", cx));
                return Some(cpu);
            }
            let (role, cap) = self.short_of(fits, cpu);
            see.candidate(|| self.looked_at(cpu, role, cx));
            if fits > best_fits || (fits == best_fits && cap > best_cap) {
                (best_fits, best_cap) = (fits, cap);
                best = Some(cpu);
            }
        }
        best
    }

    /// Returns the role of an idle CPU that does not fit, and the capacity by which it is compared
    /// with the others of that role.
    fn short_of(&self, fits: Fits, cpu: CpuId) -> (&'static str, u64) {
        match fits {
            Fits::TooSlow => ("idle, too slow", self.averaged_cpu_capacity(cpu)),
            _ => ("idle, too small", self.capacity_of(cpu)),
        }
    }

    fn idle_capacity_by_rank(
        &self,
        task: TaskId,
        sd: DomainId,
        target: CpuId,
        demand: &TaskDemand,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<CpuId> {
        let shared = |index: Option<usize>| index.map(|index| &self.topology.shared[index]);
        let balance_shared = self.topology.sd_balance_shared[target.index()];
        let has_idle_core =
            self.has_smt() && shared(balance_shared).is_some_and(|known| known.has_idle_cores);
        let mut left = i32::MAX as u32;
        if cx.config.features.sis_util
            && let Some(known) = shared(self.topology[sd].shared)
        {
            left = known.nr_idle_scan + 1;
            if left == 1 {
                return None;
            }
        }
        let cpus = self.topology[sd].span.and(&self.tasks[task].cpus_mask);
        let mut best = None;
        let (mut best_rank, mut best_cap) = (rank::THREAD_MISFIT, 0);
        for cpu in cpus.iter_wrapping_from(target) {
            if !has_idle_core {
                left -= 1;
                if left == 0 {
                    return best;
                }
            }
            effects.looked_at.at(cpu);
            if !self.choose_idle_cpu(cpu, task, cx) {
                see.candidate(|| self.looked_at(cpu, "busy", cx));
                continue;
            }
            let preferred_core = !has_idle_core || self.is_core_idle(cpu);
            let fits = self.fits_cpu(demand, cpu);
            if fits == Fits::Yes && preferred_core {
                see.candidate(|| self.looked_at(cpu, "idle, fits", cx));
                return Some(cpu);
            }
            let (mut rank, role, cap) = match fits {
                Fits::Yes => (rank::THREAD_FITS, "idle thread, fits", self.capacity_of(cpu)),
                Fits::TooSlow => {
                    let (role, cap) = self.short_of(fits, cpu);
                    (rank::THREAD_TOO_SLOW, role, cap)
                }
                Fits::No => {
                    let (role, cap) = self.short_of(fits, cpu);
                    (rank::THREAD_MISFIT, role, cap)
                }
            };
            if preferred_core {
                rank += rank::CORE_BIAS;
            }
            see.candidate(|| self.looked_at(cpu, role, cx));
            if rank < best_rank || (rank == best_rank && cap > best_cap) {
                (best_rank, best_cap) = (rank, cap);
                best = Some(cpu);
            }
        }
        if has_idle_core && best_rank > rank::COMPLETE_MISFIT {
            effects.no_idle_core = balance_shared;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;
    use crate::sched::TaskKind;
    use crate::sched::demand::conformance::DemandSteps;
    use crate::sched::root_domain::tests::kernel;

    const OPPS: &[(u32, u64)] = &[(1_000_000, 100_000)];

    /// Idle CPUs of an asymmetric machine, wrapping from target: the first that fits, else the largest.
    #[test]
    fn select_idle_capacity_wants_fit_then_size() {
        for form in [SelectIdleCapacity::WholeDomain, SelectIdleCapacity::SisUtil] {
            let mut kernel = kernel(&[(2, 300, OPPS), (1, 600, OPPS), (1, 1024, OPPS)]);
            kernel.cx.config.select_idle_capacity = form;
            kernel.cx.config.features.sis_util = false;
            let task = kernel.new_task(None, TaskKind::User);
            let choose = |k: &Kernel, asked: TaskDemand, target: u16| {
                let sd = k.sched.topology.sd_asym_cpucapacity[usize::from(target)].unwrap();
                let effects = &mut PlacementEffects::default();
                k.sched
                    .select_idle_capacity(task, sd, CpuId(target), &asked, effects, &mut (), &k.cx)
                    .map(|c| c.0)
            };
            let of_util = |util| TaskDemand::of_clamps(util, 0, 1024);
            assert_eq!(choose(&kernel, of_util(100), 1), Some(1));
            assert_eq!(choose(&kernel, of_util(400), 0), Some(2));
            assert_eq!(choose(&kernel, of_util(400), 3), Some(3));
            assert_eq!(choose(&kernel, of_util(1000), 0), Some(3));
            kernel.sched.rq[CpuId(3)].nr_running = 1;
            kernel.sched.refresh_idle(CpuId(3));
            assert_eq!(choose(&kernel, of_util(1000), 0), Some(2));

            // With a minimum that no idle CPU can meet: the fastest of those that fit the
            // utilisation, not the largest of all. A cap makes a large task fit a small CPU.
            DemandSteps(&mut kernel).turn_uclamp_key(true);
            let clamped =
                |util, min, max| choose(&kernel, TaskDemand::of_clamps(util, min, max), 0);
            assert_eq!(clamped(100, 0, 1024), Some(0));
            assert_eq!(clamped(100, 500, 1024), Some(2));
            assert_eq!(clamped(100, 700, 1024), Some(2));
            assert_eq!(clamped(900, 0, 300), Some(0));
        }
    }

    /// SIS_UTIL: each CPU on the way counts, and with 0 not even the target is looked at.
    #[test]
    fn the_way_is_limited_since_7_3() {
        let mut kernel = kernel(&[(4, 300, OPPS), (4, 1024, OPPS)]);
        let task = kernel.new_task(None, TaskKind::User);
        let sd = kernel.sched.topology.sd_asym_cpucapacity[0].unwrap();
        let shared = kernel.sched.topology[sd].shared.expect("one cache");
        kernel.sched.rq[CpuId(3)].nr_running = 1;
        let asked = TaskDemand::of_clamps(400, 0, 1024);
        let whole = [(Some(4), 3); 4];
        let limited = [(None, 0), (Some(2), 1), (Some(2), 2), (Some(4), 3)];
        for (form, expected) in
            [(SelectIdleCapacity::WholeDomain, whole), (SelectIdleCapacity::SisUtil, limited)]
        {
            kernel.cx.config.select_idle_capacity = form;
            let got = [0, 1, 2, 3].map(|nr| {
                kernel.sched.topology.shared[shared].nr_idle_scan = nr;
                let mut effects = PlacementEffects::default();
                let found = kernel.sched.select_idle_capacity(
                    task,
                    sd,
                    CpuId(2),
                    &asked,
                    &mut effects,
                    &mut (),
                    &kernel.cx,
                );
                (found.map(|cpu| cpu.0), effects.looked_at.count)
            });
            assert_eq!(got, expected, "{form:?}");
        }
    }

    /// Threads 0 and 1, 2 and 3 of small cores, 4 and 5 of a large one; 1 and 5 are busy: where an idle core is known it is
    /// taken though it is too small, else the thread that fits; and nobody is asked for an idle core that is not there.
    #[test]
    fn an_idle_core_comes_before_a_thread_that_fits() {
        let mut machine =
            crate::device_tree::DeviceTree::of_domains(&[(4, 300, OPPS), (2, 1024, OPPS)]);
        for (number, cpu) in machine.cpus.iter_mut().enumerate() {
            cpu.core = Some(number as u16 / 2);
        }
        let config = crate::config::Config {
            select_idle_capacity: SelectIdleCapacity::SisUtil,
            ..crate::config::Config::linux_6_12()
        };
        let mut kernel = Kernel::boot(machine, config);
        kernel.cx.config.features.sis_util = false;
        let task = kernel.new_task(None, TaskKind::User);
        let sd = kernel.sched.topology.sd_asym_cpucapacity[0].unwrap();
        let shared = kernel.sched.topology.sd_balance_shared[0].unwrap();
        let asked = TaskDemand::of_clamps(400, 0, 1024);
        let busy = |kernel: &mut Kernel, cpus: &[u16]| {
            for cpu in kernel.cx.platform.device_tree.all_cpus().iter() {
                kernel.sched.rq[cpu].nr_running = u32::from(cpus.contains(&cpu.0));
                kernel.sched.refresh_idle(cpu);
            }
        };
        let choose = |kernel: &Kernel| {
            let mut effects = PlacementEffects::default();
            let found = kernel.sched.select_idle_capacity(
                task,
                sd,
                CpuId(0),
                &asked,
                &mut effects,
                &mut (),
                &kernel.cx,
            );
            (found.map(|cpu| cpu.0), effects.no_idle_core.is_some())
        };
        busy(&mut kernel, &[1, 5]);
        kernel.sched.topology.shared[shared].has_idle_cores = true;
        assert_eq!(choose(&kernel), (Some(2), false));
        assert!(!kernel.sched.asym_fits_cpu(&asked, CpuId(4), &kernel.cx), "5 is busy");
        busy(&mut kernel, &[1, 3, 5]);
        assert_eq!(choose(&kernel), (Some(4), true));
        kernel.sched.topology.shared[shared].has_idle_cores = false;
        assert_eq!(choose(&kernel), (Some(4), false));
        busy(&mut kernel, &[1, 3]);
        assert!(kernel.sched.asym_fits_cpu(&asked, CpuId(4), &kernel.cx));
    }
}
