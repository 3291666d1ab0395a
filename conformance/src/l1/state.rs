// SPDX-License-Identifier: GPL-2.0-or-later
//! Our side of a recording: entities, run queues, and what is known of them.
//!
//! Everything that PELT averages exists twice, once per run ([`RUNS`]); everything else (who is queued,
//! who runs, which clock) is the recording's and exists once.

use schedtwin_kernel::sched::pelt::{
    Removed, SchedAvg, UTIL_AVG_UNCHANGED, fold_removed, update_load_avg_blocked_se,
    update_load_avg_cfs_rq, update_load_avg_se,
};

use super::operation::Found;
use super::tally::{Cause, Causes};
use super::unprinted::Stretch;
use crate::ftrace::Averages;

/// The free run and the step run, both driven by the same inputs.
pub(super) const RUNS: usize = 2;
/// Its averages are never taken from a line again once they have been.
pub(super) const FREE: usize = 0;
/// Its sums are those of the last line.
pub(super) const STEP: usize = 1;

/// The weight of SCHED_IDLE (`WEIGHT_IDLEPRIO`).
pub(super) const WEIGHT_IDLE_PRIO: u64 = 3;
/// Weights by nice −20..=19 (`sched_prio_to_weight`), scaled down.
pub(super) const PRIO_TO_WEIGHT: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Idle,
    Fair,
    Rt,
    Dl,
    Stop,
}

pub(super) fn class_of(pid: i32, prio: i32, stop: bool) -> Class {
    if pid == 0 {
        Class::Idle
    } else if stop {
        Class::Stop
    } else if prio < 0 {
        Class::Dl
    } else if prio < 100 {
        Class::Rt
    } else {
        Class::Fair
    }
}

/// A task's entity.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) avg: [SchedAvg; RUNS],
    /// Its state has been taken from a record (or from its fork).
    pub(super) known: bool,
    /// … from one since the kernel's own events are recorded.
    pub(super) started: bool,
    pub(super) weight: u64,
    pub(super) cpu: usize,
    pub(super) on_rq: bool,
    pub(super) delayed: bool,
    /// `last_update_time == 0`: the next enqueue attaches it.
    pub(super) detached: bool,
    /// Set where causes arise: per run, since the last record that agreed.
    pub(super) causes: [Causes; RUNS],
}

impl Task {
    pub(super) fn new(cpu: usize) -> Task {
        Task {
            avg: Default::default(),
            known: false,
            started: false,
            weight: 1024,
            cpu,
            on_rq: false,
            delayed: false,
            detached: false,
            causes: Default::default(),
        }
    }

    pub(super) fn update(&mut self, now: u64, running: bool) {
        let (on_rq, runnable, weight) = (self.on_rq, !self.delayed as u64, self.weight);
        for avg in &mut self.avg {
            update_load_avg_se(now, avg, on_rq, runnable * on_rq as u64, running, weight);
        }
    }

    pub(super) fn update_blocked(&mut self, now: u64) {
        for avg in &mut self.avg {
            update_load_avg_blocked_se(now, avg, self.weight);
        }
    }
}

/// One of a CPU's small signals.
#[derive(Clone, Debug, Default)]
pub(super) struct Small {
    pub(super) avg: [SchedAvg; RUNS],
    pub(super) started: bool,
    /// The average as last printed; an update in which nothing accumulates to print may have aged it since.
    pub(super) printed: SchedAvg,
    pub(super) causes: [Causes; RUNS],
}

/// A CPU and its fair run queue.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    /// It has been seen empty: from then on we know who is queued.
    pub(super) tracked: bool,
    pub(super) cfs: [SchedAvg; RUNS],
    pub(super) cfs_started: bool,
    pub(super) removed: [Removed; RUNS],
    /// Its last update in which time passed, as long as nothing else has changed the averages since.
    pub(super) stretch: Option<Stretch>,
    /// The task that has exited here and not been taken off yet.
    pub(super) dead: Option<i32>,
    pub(super) causes: [Causes; RUNS],
    /// Σ weights of the queued, delayed ones too.
    pub(super) weight: u64,
    pub(super) h_nr_queued: u32,
    pub(super) h_nr_delayed: u32,
    /// Queued entities of other classes, the fair server among them.
    pub(super) others: u32,
    /// Between the lines of RT's dequeue of all and its enqueue of the rest: how many more there will be.
    pub(super) restacked: Option<i32>,
    /// `cfs_rq->curr`.
    pub(super) cfs_curr: Option<i32>,
    pub(super) curr: i32,
    pub(super) curr_class: Class,
    /// A current task of another class has printed the `nr` line of its dequeue.
    pub(super) curr_dequeued: bool,
    pub(super) rt: Small,
    pub(super) dl: Small,
    pub(super) irq: Small,
    /// `clock_task` and `clock_pelt` of the last line that had both, while a task runs.
    pub(super) clock: Option<(u64, u64)>,
    /// Interrupt time that `irq` has been given, ns since boot.
    pub(super) interrupt_total: Option<u64>,
    /// The recording prints every charge.
    pub(super) irq_told: bool,
    /// `rq->clock` of the last update that is known.
    pub(super) irq_clock: u64,
    pub(super) lost: u64,
    /// The PELT clock (`rq_clock_pelt`) at the last line that told it, but not a switch's.
    pub(super) now: u64,
    /// `clock_task` at the last `run` line, or at the switch after it.
    pub(super) run_clock_task: u64,
    /// The clocks before the switch that comes next.
    pub(super) switch_now: u64,
    pub(super) switch_clock_task: u64,
    /// `arch_scale_freq_capacity`, once a change of frequency has told it.
    pub(super) freq_scale: Option<u64>,
    /// Lines printed *by* this CPU: its tick has fired and `run` not yet been printed.
    pub(super) tick: bool,
    /// Printed *by* this CPU: its last line was the `nr` line of this queue.
    pub(super) counted: Option<usize>,
    /// Lines printed *by* this CPU: the operation under way.
    pub(super) active: Option<Active>,
    /// Printed *by* this CPU: queued tasks on their way, and to where.
    pub(super) moving: Vec<(i32, usize)>,
    /// A task of this CPU that was dequeued to be changed.
    pub(super) saved: Option<i32>,
}

/// An enqueue or dequeue under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) cpu: usize,
    pub(super) found: Found,
    /// The work of the operation has been done.
    pub(super) done: bool,
    /// An attach or detach has moved the averages.
    pub(super) moved: bool,
    /// A sleeper's estimate is still to be made.
    pub(super) learns: bool,
}

impl Cpu {
    pub(super) fn new() -> Cpu {
        Cpu {
            tracked: false,
            cfs: Default::default(),
            cfs_started: false,
            removed: Default::default(),
            stretch: None,
            dead: None,
            causes: Default::default(),
            weight: 0,
            h_nr_queued: 0,
            h_nr_delayed: 0,
            others: 0,
            restacked: None,
            cfs_curr: None,
            curr: 0,
            curr_class: Class::Idle,
            curr_dequeued: false,
            rt: Small::default(),
            dl: Small::default(),
            irq: Small::default(),
            interrupt_total: None,
            irq_told: false,
            irq_clock: 0,
            clock: None,
            lost: 0,
            now: 0,
            run_clock_task: 0,
            switch_now: 0,
            switch_clock_task: 0,
            freq_scale: None,
            tick: false,
            counted: None,
            active: None,
            moving: Vec::new(),
            saved: None,
        }
    }

    /// `update_cfs_rq_load_avg`.
    pub(super) fn update_cfs(&mut self, now: u64) {
        let runnable = self.h_nr_queued.saturating_sub(self.h_nr_delayed) as u64;
        let running = self.cfs_curr.is_some();
        if now.saturating_sub(self.cfs[STEP].last_update_time) >> 10 != 0 {
            self.stretch = Some(Stretch {
                avg: self.cfs,
                removed: self.removed,
                weight: self.weight,
                runnable,
                running,
                now,
            });
        }
        for (avg, removed) in self.cfs.iter_mut().zip(&mut self.removed) {
            fold_removed(avg, removed);
            update_load_avg_cfs_rq(now, avg, self.weight, runnable, running);
        }
    }

    pub(super) fn fold(&mut self) {
        for (avg, removed) in self.cfs.iter_mut().zip(&mut self.removed) {
            fold_removed(avg, removed);
        }
    }

    pub(super) fn cause(&mut self, cause: Cause) {
        for causes in &mut self.causes {
            causes.add(cause);
        }
    }
}

/// More than any weight (nice −20 is 88761, a group's shares at most 2^18): what is larger is not the
/// kernel's, and must not overflow our sums.
const WEIGHT_MAX: u64 = 1 << 20;

/// `scale_load_down` on a 64-bit machine.
pub(super) fn scale_load_down(weight: u64) -> u64 {
    if weight == 0 { 0 } else { (weight >> 10).clamp(2, WEIGHT_MAX) }
}

/// A recorded state as ours.
pub(super) fn taken_over(avg: &Averages, unchanged: bool) -> SchedAvg {
    SchedAvg {
        last_update_time: avg.lut,
        load_sum: avg.ls,
        runnable_sum: avg.rs,
        util_sum: avg.us,
        period_contrib: avg.pc,
        load_avg: avg.l,
        runnable_avg: avg.r,
        util_avg: avg.u,
        util_est: avg.ue | if unchanged { UTIL_AVG_UNCHANGED } else { 0 },
        // The recordings are of the single form.
        util_est_ewma: 0,
    }
}
