// SPDX-License-Identifier: GPL-2.0-or-later
//! The timer bases of a CPU, and what they tell the tick.
//!
//! | base | timers | wakes an idle CPU |
//! |---|---|---|
//! | local | pinned ones; up to 6.8 (`BASE_STD`) all but deferrable ones | always |
//! | global | the others, since 6.9 | only while no CPU of the machine is awake |
//! | deferrable | those that may wait for a tick that comes for another reason | never |
//!
//! **A timer changes its base** when it is armed again, and keeps its place if it stays in its bucket.
//!
//! **The next event** is asked for twice: for the sleep length that the idle governor reads, and when the tick is stopped.
//! Up to 6.8 both are the same, and both mark the base idle. Since 6.9 only the second does, and it puts the first global timer
//! into the hierarchy of [`super::super::timer_migration`], which answers when this CPU has to wake up for the sake of all.
//!
//! Kernel: 6.12.95 kernel/time/timer.c `__mod_timer`, `fetch_next_timer_interrupt`, `timer_use_tmigr`,
//! `__get_next_timer_interrupt`, `run_local_timers`; 6.1.192 `get_next_timer_interrupt`.
//! Differences: times are jiffies, since in the model all of them are on the grid of the tick.

use super::wheel::{TimerBase, TimerId, Timers};

/// No event: [`schedtwin_types::NEVER`].
pub const NEVER: u64 = u64::MAX;

/// `BASE_LOCAL`, `BASE_STD`.
pub const LOCAL: usize = 0;
/// `BASE_GLOBAL`.
pub const GLOBAL: usize = 1;
/// `BASE_DEF`.
pub const DEF: usize = 2;
/// `NR_BASES`.
pub const NR_BASES: usize = 3;

/// The timer bases of a CPU (`timer_bases`).
#[derive(Clone, Debug)]
pub struct CpuBases {
    /// The bases, by their numbers.
    pub bases: [TimerBase; NR_BASES],
    /// Whether there is a global base.
    has_global: bool,
}

/// `struct timer_events`: the first timers that this CPU has to expire itself and that another one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerEvents {
    /// Jiffy of the first local event.
    pub local: u64,
    /// Jiffy of the first global event, if that is before all local ones.
    pub global: u64,
}

/// The question that the hierarchy of all CPUs is asked about this CPU's first global timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TmigrCall {
    /// `tmigr_cpu_new_timer()`: the CPU is idle already.
    NewTimer,
    /// `tmigr_cpu_deactivate()`: it is about to stop its tick.
    Deactivate,
    /// `tmigr_quick_check()`: it may do so.
    QuickCheck,
}

/// The answer of [`CpuBases::next_migrating`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextTimer {
    /// Jiffy of the CPU's next event; [`NEVER`]: none.
    pub expires: u64,
    /// The CPU left the hierarchy and has to join it again, since its tick goes on.
    pub reactivate: bool,
}

/// The effect of arming a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// It is in the base that was asked for, unless it was in its place already.
    pub moved: bool,
    /// It is the first timer there.
    pub first: bool,
}

/// Arms a timer that is in base `from`, or was, in base `to`; a base by its CPU and number (`__mod_timer`).
pub fn mod_timer(
    cpus: &mut [CpuBases],
    (from, to): ((usize, usize), (usize, usize)),
    (timer, expires): (TimerId, u64),
    jiffies: u64,
    timers: &mut Timers,
) -> Armed {
    let in_place = Armed { moved: false, first: false };
    let old = &mut cpus[from.0].bases[from.1];
    if timers.is_pending(timer) {
        if timers.expires(timer) == expires {
            return in_place;
        }
        old.forward(jiffies);
        if old.modify_in_place(timer, expires, timers) {
            return in_place;
        }
        old.detach(timer, timers);
    } else {
        old.forward(jiffies);
    }
    let new = &mut cpus[to.0].bases[to.1];
    if from != to {
        new.forward(jiffies);
    }
    Armed { moved: true, first: new.enqueue(timer, expires, timers) }
}

impl CpuBases {
    /// Empty bases of `depth` levels; since 6.9 a global one is among them.
    pub fn new(depth: usize, jiffies: u64, has_global: bool) -> CpuBases {
        let bases = std::array::from_fn(|_| TimerBase::new(depth, jiffies));
        CpuBases { bases, has_global }
    }

    /// Whether there is a global base.
    #[inline]
    pub fn has_global(&self) -> bool {
        self.has_global
    }

    /// Whether a tick at `jiffies` has to raise the softirq for a base of this CPU (`run_local_timers`).
    #[inline]
    pub fn is_due(&self, jiffies: u64) -> bool {
        let [local, global, deferrable] = &self.bases;
        local.is_due(jiffies)
            || (self.has_global && global.is_due(jiffies))
            || deferrable.is_due(jiffies)
    }

    /// Whether the bases are marked idle.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.bases[LOCAL].is_idle
    }

    /// `timer_clear_idle()`, but for the hierarchy.
    #[inline]
    pub fn clear_idle(&mut self) {
        self.bases[LOCAL].is_idle = false;
    }

    /// `get_next_timer_interrupt()` up to 6.8: the jiffy of the CPU's next event.
    pub fn next_standard(&mut self, basej: u64) -> u64 {
        let base = &mut self.bases[LOCAL];
        let next = base.next_timer_interrupt(basej, false);
        base.forward(basej);
        if next.wrapping_sub(basej) as i64 <= 0 {
            base.is_idle = false;
            return basej;
        }
        let expires = if base.timers_pending { next } else { NEVER };
        if expires == NEVER || expires - basej > 1 {
            base.is_idle = true;
        }
        expires
    }

    /// `fetch_next_timer_interrupt()`: the first event of all, and those to be expired by whom.
    pub fn fetch_next_timer_interrupt(&mut self, basej: u64) -> (u64, TimerEvents) {
        let local = self.bases[LOCAL].next_timer_interrupt(basej, true);
        let global = self.bases[GLOBAL].next_timer_interrupt(basej, true);
        let local_first = local.wrapping_sub(global) as i64 <= 0;
        let first = if local_first { local } else { global };
        let mut events = TimerEvents { local: NEVER, global: NEVER };
        let ahead = first.wrapping_sub(basej) as i64;
        if ahead <= 1 {
            // Within a tick the CPU does it itself.
            events.local = if ahead < 0 { basej } else { first };
            if !local_first {
                events.global = events.local;
            }
            return (events.local, events);
        }
        if !local_first && self.bases[GLOBAL].timers_pending {
            events.global = global;
        }
        if self.bases[LOCAL].timers_pending {
            events.local = local;
        }
        (first, events)
    }

    /// `__get_next_timer_interrupt()`, since 6.9. `stops`: the tick is about to be stopped, and the bases are marked idle if it
    /// can be. `tmigr` asks the hierarchy about the first global timer.
    pub fn next_migrating(
        &mut self,
        basej: u64,
        stops: bool,
        tmigr: impl FnOnce(TmigrCall, u64) -> u64,
    ) -> NextTimer {
        let (mut next, mut events) = self.fetch_next_timer_interrupt(basej);
        let idle_is_possible = next.wrapping_sub(basej) as i64 > 1;
        if idle_is_possible {
            let call = match (self.is_idle(), stops) {
                (true, _) => TmigrCall::NewTimer,
                (false, true) => TmigrCall::Deactivate,
                (false, false) => TmigrCall::QuickCheck,
            };
            let of_all = tmigr(call, events.global);
            if of_all < events.local {
                events.local = of_all.max(basej);
                next = events.local;
            }
        }
        self.bases[LOCAL].forward(basej);
        self.bases[GLOBAL].forward(basej);
        let mut reactivate = false;
        if stops {
            self.bases[LOCAL].is_idle |= next.wrapping_sub(basej) as i64 > 1;
            reactivate = !self.is_idle() && idle_is_possible;
        }
        NextTimer { expires: events.local, reactivate }
    }
}
