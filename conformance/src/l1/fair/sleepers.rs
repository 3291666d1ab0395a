// SPDX-License-Identifier: GPL-2.0-or-later
//! A task that goes to sleep stays queued or leaves: what a recording tells of it, and when.
//!
//! A sleep that prints no dequeue is a delayed one. One that prints a dequeue is not, unless others are delayed: then the
//! dequeue may be that of one of them, finished by the pick that follows, and the sleeper still be there. Recordings that
//! print queues say when that pick begins. Of others we wait for what is known of the sleeper next:
//!
//! | next | it stayed |
//! |---|---|
//! | it is woken without an enqueue | yes |
//! | it is enqueued, and by our answer nothing has ended its delay | no |
//! | a line shows it queued, asleep | yes |
//! | a line shows its lag | if there is none: a delayed one leaves when it is owed time, and is not paid; who leaves at once keeps what he has |
//! | it has run again before any line, placed by that lag | if v is then where our answer has it: ours; else the other |
//! | nothing of these | not judged |

use super::super::mechanism::Difference;
use super::super::redrive::Redrive;
use super::judge::{DELAY, Fair};
use super::twin::NR_CPUS;
use crate::ftrace::{Event, Record, Trace};

/// A sleeper of which it is not told yet whether it stayed queued.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Untold {
    /// Our answer: it stayed.
    pub(super) ours: bool,
    /// By our answer it has left by now.
    pub(super) left: bool,
    /// It has been enqueued again.
    woken: bool,
    /// Where it was placed then depends on the lag that it left with.
    placed_by_lag: bool,
    /// It has run since, which overwrote the lag.
    installed: bool,
}

impl Fair {
    /// Whether the present `__schedule` has begun to pick, if the recording says.
    fn pick_begun(&self, cpu: usize) -> Option<bool> {
        self.lists_queues.then_some(self.picking[cpu])
    }

    /// A sleeper is about to be placed again.
    pub(super) fn sleeper_placed(&mut self, cpu: usize, pid: i32) {
        if let Some(untold) = self.untold.get_mut(&pid) {
            let lag = self.twin.times(pid).map_or(0, |times| times.vlag);
            untold.placed_by_lag = self.twin.nr_queued(cpu) > 0 && (untold.ours || lag != 0);
        }
    }

    /// It runs again, which overwrites its lag.
    pub(super) fn sleeper_installed(&mut self, pid: i32) {
        if let Some(untold) = self.untold.get_mut(&pid) {
            untold.installed = true;
            if !untold.placed_by_lag {
                self.untold.remove(&pid);
                self.row(DELAY).skip();
            }
        }
    }
}

impl Redrive {
    /// Whether a sleeper stays queued although a dequeue is printed, which then is another's.
    pub(in crate::l1) fn fair_stays(&mut self, r: &Record, cpu: usize, pid: i32) -> bool {
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return false;
        }
        let others = self.fair.twin.delayed_ones(cpu).next().is_some();
        others && self.fair.pick_begun(r.cpu).unwrap_or_else(|| self.fair.twin.delays(cpu, pid))
    }

    /// The running task goes to sleep, and stays queued if `delayed`.
    pub(in crate::l1) fn fair_sleep(
        &mut self,
        r: &Record,
        trace: &Trace,
        cpu: usize,
        pid: i32,
        delayed: bool,
    ) {
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return;
        }
        if self.fair.untold.remove(&pid).is_some() {
            // Nothing told of its last sleep.
            self.fair.row(DELAY).skip();
        }
        let state = match r.event {
            Event::SchedSwitch { prev_state, .. } => Some(prev_state),
            _ => trace.ahead(r.cpu).find_map(|next| match next.event {
                Event::SchedSwitch { prev_state, .. } => Some(prev_state),
                _ => None,
            }),
        };
        let twin = &mut self.fair.twin;
        let sleeps = state.is_some_and(|state| matches!(state, b'S' | b'D' | b'I'));
        if sleeps && twin.nr_queued(cpu) >= 2 && self.driving {
            let ours = twin.delays(cpu, pid);
            // A printed dequeue may also have been that of somebody delayed; what the sleeper does next tells.
            let nr_printed = !matches!(r.event, Event::SchedSwitch { .. });
            let others = twin.delayed_ones(cpu).next().is_some();
            if !twin.sure(cpu) {
                self.fair.row(DELAY).skip();
            } else if nr_printed && others && self.fair.pick_begun(cpu).is_none() {
                self.fair.untold.insert(pid, Untold { ours, left: !ours, ..Untold::default() });
            } else {
                self.judge_sleep(r, cpu, pid, ours, delayed);
            }
        }
        if delayed {
            self.fair.twin.delay(cpu, pid);
        }
    }

    fn judge_sleep(&mut self, r: &Record, cpu: usize, pid: i32, ours: bool, delayed: bool) {
        if ours != delayed {
            let queue = self.fair.twin.text(cpu);
            self.miss(r, || format!("fair: {DELAY} {pid} on {cpu}: {ours} for {delayed}{queue}"));
        }
        self.fair.row(DELAY).count(ours == delayed, !delayed, || Difference::ModelWrong);
    }

    /// A line of a sleeper may show whether it stayed queued. One that has left since shows it by its lag: a
    /// delayed one leaves without any, when it is owed time, and one that leaves at once has what it had. Once it
    /// has run again, what is left of its lag is where it was placed; `met`: there, by our answer.
    pub(super) fn sleeper_seen(
        &mut self,
        r: &Record,
        (cpu, pid): (usize, i32),
        on: bool,
        vlag: i64,
        met: bool,
    ) {
        let Some(untold) = self.fair.untold.remove(&pid) else { return };
        let lag = self.fair.twin.times(pid).map_or(0, |times| times.vlag);
        let Untold { ours, left, woken, installed, .. } = untold;
        let delayed = match (ours, left) {
            _ if installed => ours == met,
            (true, false) => on,
            (true, true) => vlag == 0,
            (false, _) => on && !woken || vlag == 0 && lag != 0,
        };
        self.judge_sleep(r, cpu, pid, ours, delayed);
    }

    /// How a sleeper of which nothing was told wakes up.
    pub(super) fn sleeper_wakes(&mut self, r: &Record, cpu: usize, pid: i32, delayed: bool) {
        let Some(untold) = self.fair.untold.get_mut(&pid) else { return };
        if delayed || !untold.left {
            let ours = untold.ours;
            self.fair.untold.remove(&pid);
            self.judge_sleep(r, cpu, pid, ours, delayed);
        } else {
            untold.woken = true;
        }
    }
}
