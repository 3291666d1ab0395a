// SPDX-License-Identifier: GPL-2.0-or-later
//! When a balancer updated a queue: the time that no line tells, found from the sums that the next line prints.
//!
//! **The problem.** A balancer updates the average of queues ([`Cause::BalanceSoftirq`]), and within a PELT period it
//! prints nothing. Time passes in whole units either way, so such an update changes nothing but the rounding at the
//! period's end: what it added is decayed as a part of the sum, to 1/1024 of a unit, what is added at the period's end in
//! whole units. And a sleeper that left the queue before it is taken off at another place of the period.
//!
//! **Idea.** Only the last stretch before the period's end counts. So the queue's state before that stretch is kept, and
//! where a step is not met, each of the at most 1023 times at which an update can have been is tried: that one is
//! taken with which all three sums are the printed ones, to the last bit. The free run then gets the same *update*, never
//! the sums.
//!
//! ```text
//!  known update          hidden one                        period's end, a line
//!  ──────┼───────────────────┼─────────────────┼────────────────┼───────────►  PELT clock
//!        │◄── added, then decayed with the sum ─►│◄── added whole ──►│
//! ```
//!
//! [`Cause::BalanceSoftirq`]: super::tally::Cause

use schedtwin_kernel::sched::pelt::{Removed, SchedAvg, fold_removed, update_load_avg_cfs_rq};

use super::state::{RUNS, STEP};
use crate::ftrace::Averages;

/// PELT's unit, ns.
const UNIT: u64 = 1024;

/// The last stretch of a queue: what it was before, and what it was updated with.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) avg: [SchedAvg; RUNS],
    pub(super) removed: [Removed; RUNS],
    pub(super) weight: u64,
    pub(super) runnable: u64,
    pub(super) running: bool,
    pub(super) now: u64,
}

/// An update that no line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    time: u64,
    /// It already met who had left.
    folds: bool,
}

impl Stretch {
    /// The queue at the end of the stretch, with a hidden update in it.
    pub(super) fn with(&self, run: usize, hidden: Hidden) -> SchedAvg {
        let (mut avg, mut removed) = (self.avg[run], self.removed[run]);
        if hidden.folds {
            fold_removed(&mut avg, &mut removed);
        }
        let (weight, runnable, running) = (self.weight, self.runnable, self.running);
        update_load_avg_cfs_rq(hidden.time, &mut avg, weight, runnable, running);
        fold_removed(&mut avg, &mut removed);
        update_load_avg_cfs_rq(self.now, &mut avg, weight, runnable, running);
        avg
    }

    /// The hidden update with which the step ends as recorded, if there is one.
    pub(super) fn find(&self, recorded: &Averages) -> Option<Hidden> {
        let before = &self.avg[STEP];
        let in_period = UNIT - 1 - u64::from(before.period_contrib.min(1023));
        let times = (1..=in_period).map(|units| before.last_update_time + units * UNIT);
        let times = times.take_while(|time| *time < self.now);
        let tries = times.flat_map(|time| [true, false].map(|folds| Hidden { time, folds }));
        tries.into_iter().find(|hidden| {
            let avg = self.with(STEP, *hidden);
            let sums = (avg.load_sum, avg.runnable_sum, avg.util_sum, avg.period_contrib);
            sums == (recorded.ls, recorded.rs, recorded.us, recorded.pc)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(avg: &SchedAvg) -> Averages {
        Averages {
            lut: avg.last_update_time,
            pc: avg.period_contrib,
            ls: avg.load_sum,
            rs: avg.runnable_sum,
            us: avg.util_sum,
            l: avg.load_avg,
            r: avg.runnable_avg,
            u: avg.util_avg,
            ue: 0,
        }
    }

    /// A hidden update 300 units into a stretch of 900 that ends 5 periods on changes the rounding only, and
    /// is found; of sums that no update explains nothing is.
    #[test]
    fn a_hidden_update_is_found() {
        let avg = SchedAvg {
            last_update_time: 7 * UNIT,
            period_contrib: 123,
            load_sum: 20_000_000,
            runnable_sum: 20_000_000,
            util_sum: 15_000_000,
            ..SchedAvg::default()
        };
        let stretch = Stretch {
            avg: [avg; RUNS],
            removed: Default::default(),
            weight: 1024,
            runnable: 1,
            running: true,
            now: (7 + 900 + 5 * 1024) * UNIT,
        };
        let told = {
            let mut avg = avg;
            update_load_avg_cfs_rq(stretch.now, &mut avg, 1024, 1, true);
            avg
        };
        let truth = stretch.with(STEP, Hidden { time: (7 + 300) * UNIT, folds: true });
        assert_ne!(told.util_sum, truth.util_sum);
        assert!(told.util_sum.abs_diff(truth.util_sum) <= 1024);
        let found = stretch.find(&recorded(&truth)).expect("one that explains it");
        assert_eq!(recorded(&stretch.with(STEP, found)), recorded(&truth));
        let never = Averages { us: truth.util_sum + 2048, ..recorded(&truth) };
        assert_eq!(stretch.find(&never), None);
    }
}
