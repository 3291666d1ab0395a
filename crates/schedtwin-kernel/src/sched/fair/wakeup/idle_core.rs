// SPDX-License-Identifier: GPL-2.0-or-later
//! "wake_affine improvements", the series that followed the patch of `idler_llc.rs`: a cache remembers which of its
//! cores is idle as a whole, and a wakeup goes there.
//!
//! **Decides** between the caches of the waker and of prev, where those differ. A synchronous wakeup asks the waker's
//! cache first, any other wakeup prev's.
//!
//! 1. The first one's CPU is idle (or has SCHED_IDLE tasks only): that CPU.
//! 2. The first one's cache knows an idle core that the task may use: its first thread. It is known no longer.
//! 3. The same two questions to the second.
//! 4. All CPUs of both caches are counted as busy: no preference, and nobody scans for an idle CPU.
//! 5. The cache of which a smaller share is busy. A tie: no preference.
//!
//! In one cache the order is prev idle, waker idle, no preference. That a waker is about to sleep counts only where none
//! of this has an answer.
//!
//! **What a cache knows** ([`IdleCore`]). A CPU that goes idle fills in its own core, or, if another thread of that is
//! busy and nothing is known, the next idle core; if there is none, the cache knows that. A CPU that leaves its idle task
//! while its core is the known one makes it unknown. As long as it is not known that there is none, wakeups scan for
//! idle cores.
//!
//! ```text
//! cores A, B of one cache, threads 0 and 1; A 0 runs, the others idle:
//!   B 1 goes idle                   known: B
//!   a task wakes up elsewhere       goes to B 0; unknown
//!   A 0 goes idle                   known: A
//! ```
//!
//! **Busy CPUs** are counted at each switch to and from the idle task, not with the tick. As posted
//! the count starts with all CPUs busy although the idle task runs on all but the booting one, so
//! each of those is one too many for ever: a cache of 4 CPUs has 4 to 8 busy ones, that of the
//! booting CPU 3 to 7. So step 4 hardly comes true, and `nohz_balancer_kick` takes every cache to
//! have two busy CPUs. This is kept.
//!
//! Kernel: the eight patches of 13 May 2021 (v3), on what became 5.14; no release has them.
//! Differences: `known` and `possible` are taken over to 5.11's scan, for which nothing was posted. An idle task that
//! is picked again after itself changes nothing here; as posted it looks for an idle core anew.
//! References: the mails; 2/8 and 6/8 were read as their reviews quote them.

use super::PlacementEffects;
use crate::sched::fair::energy::Choice;
use crate::sched::topology::IdleCore;
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, PlacementRule, TaskId};

/// The answers of a cache about idle cores, for a wakeup.
#[derive(Clone, Copy)]
pub(super) struct KnownIdleCore {
    /// One is known: nobody looks for an idle thread beside prev.
    pub known: bool,
    /// There may be one: the scan looks for cores.
    pub possible: bool,
}

impl Scheduler {
    /// `wake_affine_idle()` and `wake_affine_idler_llc()` of the series.
    pub(super) fn wake_affine_by_idle_core(
        &self,
        task: TaskId,
        this: CpuId,
        prev: CpuId,
        sync: bool,
        effects: &mut PlacementEffects,
        cx: &Context,
    ) -> Option<Choice> {
        let idle = |cpu: CpuId| self.available_idle_cpu(cpu) || self.sched_idle_cpu(cpu);
        if self.topology.cpus_share_cache(this, prev) {
            return match (cx.config.features.wa_idle, idle(prev), idle(this)) {
                (true, true, _) => Some((prev, PlacementRule::WaIdlePrevIdle)),
                (true, false, true) => Some((this, PlacementRule::WaIdleWakerIdle)),
                _ => None,
            };
        }
        let (first, second) = if sync { (this, prev) } else { (prev, this) };
        let (first_busy, first_size) = self.busy_of_llc(first)?;
        let (second_busy, second_size) = self.busy_of_llc(second)?;
        for cpu in [first, second] {
            if idle(cpu) {
                return Some((cpu, PlacementRule::WaIdlerLlcIdle));
            }
            let shared = self.topology.sd_llc_shared[cpu.index()]?;
            if let IdleCore::Core(core) = self.topology.shared[shared].idle_core
                && self.has_smt()
                && self.tasks[task].cpus_mask.contains(core)
            {
                effects.idle_core_taken = Some(shared);
                return Some((core, PlacementRule::WaIdlerLlcCore));
            }
        }
        if first_busy == first_size && second_busy == second_size {
            effects.all_busy = true;
            return None;
        }
        let idler = match (second_busy * first_size).cmp(&(first_busy * second_size)) {
            std::cmp::Ordering::Greater => first,
            std::cmp::Ordering::Less => second,
            std::cmp::Ordering::Equal => return None,
        };
        let rule = match idler == this {
            true => PlacementRule::WaIdlerLlcWaker,
            false => PlacementRule::WaIdlerLlcPrev,
        };
        Some((idler, rule))
    }

    /// Returns what the cache of `cpu` knows, without a core that this wakeup has taken.
    pub(super) fn idle_core_of(
        &self,
        cpu: CpuId,
        effects: &PlacementEffects,
        cx: &Context,
    ) -> KnownIdleCore {
        if !cx.keeps_idle_core() {
            let shared = self.topology.sd_balance_shared[cpu.index()];
            let known = self.has_smt()
                && shared.is_some_and(|shared| self.topology.shared[shared].has_idle_cores);
            return KnownIdleCore { known, possible: known };
        }
        let shared = self.topology.sd_llc_shared[cpu.index()];
        let hint = match shared {
            Some(shared) if self.has_smt() && effects.idle_core_taken != Some(shared) => {
                self.topology.shared[shared].idle_core
            }
            _ => IdleCore::Unknown,
        };
        KnownIdleCore { known: matches!(hint, IdleCore::Core(_)), possible: hint != IdleCore::None }
    }

    /// A scan has found `core` idle: if it is the known one, it is known no longer.
    pub(super) fn take_idle_core(&self, core: CpuId, effects: &mut PlacementEffects, cx: &Context) {
        if cx.keeps_idle_core()
            && let Some(shared) = self.topology.sd_llc_shared[core.index()]
            && self.topology.shared[shared].idle_core == self.core_of(core)
        {
            effects.idle_core_taken = Some(shared);
        }
    }

    /// The core of a CPU, by its first thread (`smt_id`).
    fn core_of(&self, cpu: CpuId) -> IdleCore {
        self.topology.smt_mask[cpu.index()].lowest().map_or(IdleCore::Unknown, IdleCore::Core)
    }

    /// `__update_idle_core()`, `set_next_idle_core()`: `cpu` goes idle.
    #[inline(never)]
    pub(crate) fn find_idle_core(&mut self, cpu: CpuId) {
        let Some(shared) = self.topology.sd_llc_shared[cpu.index()] else { return };
        let before = self.topology.shared[shared].idle_core;
        let found = match before {
            IdleCore::Core(_) => return,
            _ if self.is_core_idle(cpu) => self.core_of(cpu),
            IdleCore::None => return,
            IdleCore::Unknown => self.next_idle_core(cpu),
        };
        self.topology.shared[shared].idle_core = found;
    }

    /// The first core behind that of `cpu` in its cache that is idle as a whole.
    fn next_idle_core(&self, cpu: CpuId) -> IdleCore {
        let Some(sd) = self.topology.sd_llc[cpu.index()] else { return IdleCore::Unknown };
        let others = self.topology[sd].span.and_not(&self.topology.smt_mask[cpu.index()]);
        // All threads of a core are in its cache, so that each core is met by its first thread from `cpu` on.
        let mut found = others
            .iter_wrapping_from(cpu)
            .filter(|other| self.topology.smt_mask[other.index()].is_subset(&self.idle_mask));
        found.next().map_or(IdleCore::None, |other| self.core_of(other))
    }

    /// `pick_next_task_idle()`: one busy CPU less.
    pub(crate) fn count_idle(&mut self, cpu: CpuId) {
        if let Some(shared) = self.topology.sd_llc_shared[cpu.index()] {
            let busy = &mut self.topology.shared[shared].nr_busy_cpus;
            *busy = busy.saturating_sub(1);
            self.rq[cpu].is_idle = true;
        }
    }

    /// `put_prev_task_idle()`: one more, and its core is not idle.
    pub(crate) fn count_busy(&mut self, cpu: CpuId) {
        let Some(shared) = self.topology.sd_llc_shared[cpu.index()] else { return };
        let core = self.core_of(cpu);
        let known = &mut self.topology.shared[shared];
        if known.idle_core == core {
            known.idle_core = IdleCore::Unknown;
        }
        if self.rq[cpu].is_idle {
            known.nr_busy_cpus += 1;
            self.rq[cpu].is_idle = false;
        }
    }

    /// `set_cpu_sd_state_busy()`: a tick finds `cpu` busy which has not left its idle task yet.
    pub(crate) fn count_at_tick(&mut self, cpu: CpuId, idle: bool) {
        let Some(shared) = self.topology.sd_llc_shared[cpu.index()] else { return };
        if idle || !self.rq[cpu].is_idle {
            return;
        }
        self.rq[cpu].is_idle = false;
        let busy = &mut self.topology.shared[shared].nr_busy_cpus;
        if *busy != self.topology.sd_llc_size[cpu.index()] {
            *busy += 1;
        }
    }
}

#[cfg(test)]
mod tests;
