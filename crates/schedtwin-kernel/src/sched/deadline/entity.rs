// SPDX-License-Identifier: GPL-2.0-or-later
//! The constant bandwidth server: what a deadline task may still run, and until when.
//!
//! **Idea.** A task reserves `dl_runtime` in every `dl_period`. Its server keeps what is left of that (`runtime`) and an
//! absolute `deadline`. A task that runs more than was reserved gets a later deadline, so that it
//! does not disturb the others. There are two rules:
//!
//! 1. *Replenishment*, when the runtime is used up and the period is over: deadline += period, runtime += dl_runtime,
//!    until there is runtime again. What was run too much stays a debt.
//! 2. *Wakeup*: the old deadline and what is left are used on, unless that would be a higher rate than the
//!    reserved one until the deadline: `runtime / (deadline − now) > dl_runtime / dl_deadline`. Then a task whose
//!    deadline is its period starts a new period now. A task with a shorter deadline could reach more than
//!    its share that way; so it keeps its deadline, and its runtime is cut to what its density
//!    (`dl_runtime / dl_deadline`) allows until then (the *revised wakeup rule*).
//!
//! ```text
//! runtime 4 ms each 10 ms         0        4         10       14        20
//! hog                             |--run---|throttled|--run---|throttled|   deadlines 10, 20, 30
//! ```
//!
//! Worked example: 2 ms of runtime are left, 10 ms before the deadline. A wakeup keeps both, since 2/10 is below the
//! reserved rate of 4/10. Only 4 ms before the deadline the same 2 ms are too much, and a new
//! period starts.
//!
//! ```
//! use schedtwin_kernel::sched::deadline::{DlEntity, Update};
//! use schedtwin_types::DlReservation;
//!
//! let reserved = DlReservation { runtime: 4_000_000, deadline: 10_000_000, period: 10_000_000 };
//! let mut dl = DlEntity { runtime: 2_000_000, deadline: 20_000_000, ..DlEntity::default() };
//! dl.set_reservation(&reserved);
//! assert_eq!(dl.update(10_000_000), Update::Kept);
//! assert_eq!(dl.update(16_000_000), Update::NewPeriod);
//! assert_eq!((dl.runtime, dl.deadline), (4_000_000, 26_000_000));
//! ```
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/deadline.c `replenish_dl_entity`, `update_dl_entity`,
//! `dl_entity_overflow`, `update_dl_revised_wakeup`, `dl_check_constrained_dl`; for tasks the two do not differ.
//! Differences: no priority inheritance, so a task has its own parameters only. `SCHED_FLAG_RECLAIM` (GRUB) and
//! `SCHED_FLAG_DL_OVERRUN` cannot be asked for.

use schedtwin_types::{CpuId, DlReservation, Ns};

/// Microseconds of the bandwidth comparison (`DL_SCALE`): factors are shifted by this first.
const DL_SCALE: u32 = 10;

/// `to_ratio()`.
///
/// ```
/// assert_eq!(schedtwin_kernel::sched::deadline::to_ratio(1_000_000_000, 50_000_000), 52_428);
/// ```
pub fn to_ratio(period: Ns, runtime: Ns) -> u64 {
    (runtime << 20).checked_div(period).unwrap_or(0)
}

/// `dl_time_before()`: deadlines may wrap.
#[inline]
pub fn dl_time_before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// `dl_entity_overflow()`: would what is left of the runtime exceed its rate until the deadline?
pub fn dl_entity_overflow(
    dl_deadline: Ns,
    dl_runtime: Ns,
    runtime: i64,
    deadline: u64,
    clock: u64,
) -> bool {
    // Both products are unsigned and may wrap, also where the deadline has passed.
    let left = (dl_deadline >> DL_SCALE).wrapping_mul((runtime >> DL_SCALE) as u64);
    let right = (deadline.wrapping_sub(clock) >> DL_SCALE).wrapping_mul(dl_runtime >> DL_SCALE);
    dl_time_before(right, left)
}

/// The result of [`DlEntity::update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The deadline and what is left stay.
    Kept,
    /// The runtime that is left was cut to the density.
    Revised,
    /// A new period begins.
    NewPeriod,
}

/// `struct sched_dl_entity` of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlEntity {
    /// Reserved runtime per period, ns; 0: the task has no reservation.
    pub dl_runtime: Ns,
    /// Relative deadline, ns.
    pub dl_deadline: Ns,
    /// Period, ns.
    pub dl_period: Ns,
    /// `dl_runtime / dl_period`, 2^20 = a whole CPU.
    pub dl_bw: u64,
    /// `dl_runtime / dl_deadline`, likewise.
    pub dl_density: u64,
    /// The runtime that is left, ns.
    pub runtime: i64,
    /// Absolute deadline, on `rq.clock`.
    pub deadline: u64,
    /// `SCHED_FLAG_SUGOV`: it is a thread of schedutil.
    pub special: bool,
    /// `dl_throttled`: it waits for its replenishment.
    pub throttled: bool,
    /// Its timer has found it throttled and in another class: nothing ends its throttling but its zero-lag time there.
    pub stranded: bool,
    /// `dl_yielded`: it has given away the runtime that was left.
    pub yielded: bool,
    /// `dl_non_contending`: it sleeps, and its bandwidth counts until its zero-lag time.
    pub non_contending: bool,
    /// `on_dl_rq()`.
    pub queued: bool,
    /// The CPU on which `dl_timer` is (or was last) queued.
    pub dl_timer_on: CpuId,
    /// The CPU on which `inactive_timer` is (or was last) queued.
    pub inactive_timer_on: CpuId,
}

impl DlEntity {
    /// It has used its runtime up, and a timer will give it the next period's.
    pub fn waits_for_period(&self) -> bool {
        self.throttled && !self.stranded
    }

    /// `__setparam_dl()`. Deadline and runtime of the current period stay.
    pub fn set_reservation(&mut self, reserved: &DlReservation) {
        self.dl_runtime = reserved.runtime;
        self.dl_deadline = reserved.deadline;
        self.dl_period = reserved.effective_period();
        self.dl_bw = to_ratio(self.dl_period, self.dl_runtime);
        self.dl_density = to_ratio(self.dl_deadline, self.dl_runtime);
    }

    /// `dl_param_changed()`: whether a call asks for something else than what it has.
    pub fn differs(&self, asked: &DlReservation) -> bool {
        self.dl_runtime != asked.runtime
            || self.dl_deadline != asked.deadline
            || self.dl_period != asked.effective_period()
    }

    /// `__dl_clear_params()`.
    pub fn clear_params(&mut self) {
        self.dl_runtime = 0;
        self.dl_deadline = 0;
        self.dl_period = 0;
        self.dl_bw = 0;
        self.dl_density = 0;
        self.special = false;
        self.throttled = false;
        self.stranded = false;
        self.yielded = false;
        self.non_contending = false;
    }

    /// `dl_entity_preempt()`: whether it runs before `other`.
    #[inline]
    pub fn preempts(&self, other: &DlEntity) -> bool {
        self.special || dl_time_before(self.deadline, other.deadline)
    }

    /// `dl_is_implicit()`.
    pub fn is_implicit(&self) -> bool {
        self.dl_deadline == self.dl_period
    }

    /// `dl_next_period()`: when the next period begins.
    pub fn next_period(&self) -> u64 {
        self.deadline.wrapping_sub(self.dl_deadline).wrapping_add(self.dl_period)
    }

    fn overflows(&self, clock: u64) -> bool {
        dl_entity_overflow(self.dl_deadline, self.dl_runtime, self.runtime, self.deadline, clock)
    }

    /// `replenish_dl_new_period()`.
    pub fn new_period(&mut self, clock: u64) {
        self.deadline = clock.wrapping_add(self.dl_deadline);
        self.runtime = self.dl_runtime as i64;
    }

    /// `setup_new_dl_entity()`: it begins now, unless it waits for its replenishment.
    pub fn setup_new(&mut self, clock: u64) {
        if !self.throttled {
            self.new_period(clock);
        }
    }

    /// `replenish_dl_entity()`.
    pub fn replenish(&mut self, clock: u64) {
        if self.yielded && self.runtime > 0 {
            self.runtime = 0;
        }
        // Ends, as each turn adds runtime. What a tick can overrun is a few periods at most.
        while self.runtime <= 0 {
            self.deadline = self.deadline.wrapping_add(self.dl_period);
            self.runtime += self.dl_runtime as i64;
        }
        // "DL replenish lagged too much"
        if dl_time_before(self.deadline, clock) {
            self.new_period(clock);
        }
        self.yielded = false;
        self.throttled = false;
    }

    /// `update_dl_entity()`: at a wakeup.
    pub fn update(&mut self, clock: u64) -> Update {
        let passed = dl_time_before(self.deadline, clock);
        if !passed && !self.overflows(clock) {
            return Update::Kept;
        }
        if !passed && !self.is_implicit() {
            // update_dl_revised_wakeup()
            let laxity = self.deadline.wrapping_sub(clock);
            self.runtime = (self.dl_density.wrapping_mul(laxity) >> 20) as i64;
            return Update::Revised;
        }
        self.new_period(clock);
        Update::NewPeriod
    }

    /// The condition of `dl_check_constrained_dl()`: it wakes after its deadline, and its next period has not begun.
    pub fn is_between_periods(&self, clock: u64) -> bool {
        dl_time_before(self.deadline, clock) && dl_time_before(clock, self.next_period())
    }

    /// The zero-lag time less `clock`, `task_non_contending()`: at that time what is left of the runtime is what
    /// the reserved rate gives until the deadline.
    pub fn zero_lag_in(&self, clock: u64) -> i64 {
        // The product wraps as C's does.
        let product = self.runtime.wrapping_mul(self.dl_period as i64);
        let consumed = product.wrapping_div(self.dl_runtime as i64);
        (self.deadline as i64).wrapping_sub(consumed).wrapping_sub(clock as i64)
    }

    /// `dl_scaled_delta_exec()`: what `delta` of running is charged with, on a CPU of that frequency and capacity.
    pub fn scaled_delta_exec(delta: i64, scale_freq: u64, scale_cpu: u64) -> i64 {
        let scaled = ((delta as u64).wrapping_mul(scale_freq) >> 10).wrapping_mul(scale_cpu) >> 10;
        scaled as i64
    }
}
