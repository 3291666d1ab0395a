// SPDX-License-Identifier: GPL-2.0-or-later
//! The timer wheel, as far as it keeps a tick: when the next wheel timer of a CPU is due.
//!
//! **Idea.** The governor may permit the tick to stop, and the kernel keeps it all the same if a wheel timer is due by the
//! next jiffy: stopping would save nothing. Wheel timers are rounded up to their level's granularity; `timer_start`
//! prints the outcome (`bucket_expiry`, in jiffies) and the CPU. Deferrable timers wait for somebody else's
//! wakeup. The CPU that stops the last tick also looks after the timers of all idle CPUs, but for
//! pinned ones.
//!
//! ```text
//!   timer_start … bucket_expiry=4294892808 cpu=7 …      jiffies 4294892807: CPU 7 keeps its tick
//!                                                       jiffies 4294892806: it may stop
//! ```
//!
//! Jiffies follow from `timer_expire_entry`, which prints them: ticks lie on multiples of their length. They lag until the
//! CPU whose duty it is takes its tick, or one whose tick is stopped an interrupt. The duty is dropped by
//! a CPU that stops its tick, and taken by the next tick.
//!
//! A timer that fires and was never started in view was pending from the beginning: the recording is read ahead
//! for these. The firing prints the jiffy of its bucket (`baseclk`); what is known to be deferrable later
//! was so before.
//!
//! **Kernel:** Linux 6.12.95, `kernel/time/timer.c`: `calc_index`, `__get_next_timer_interrupt`;
//! `kernel/time/tick-sched.c`: `tick_nohz_next_event`, `tick_sched_do_timer`.
//!
//! **Differences:** a timer from before the recording that is cancelled is not known.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::ftrace::{Event, Record, Trace};

/// A pending wheel timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timer {
    cpu: usize,
    /// When it fires, jiffies.
    bucket_expiry: u64,
    pinned: bool,
}

/// All pending wheel timers of the recording, and jiffies.
#[derive(Clone, Debug, Default)]
pub(super) struct Wheel {
    timers: BTreeMap<u64, Timer>,
    /// Jiffies at time 0 of the trace.
    epoch: Option<u64>,
    /// The CPU whose duty it is to advance jiffies (`tick_do_timer_cpu`).
    do_timer: Option<usize>,
    /// When they were advanced last, ns.
    advanced: u64,
    /// CPUs with a stopped tick.
    stopped: BTreeSet<usize>,
}

impl Wheel {
    /// Reads a recording ahead: the timers that were pending at its beginning.
    pub(super) fn read(trace: &mut Trace) -> io::Result<Wheel> {
        let mut wheel = Wheel::default();
        let mut seen = BTreeSet::new();
        while let Some(r) = trace.next_record()? {
            match r.event {
                Event::TimerStart { timer, deferrable, .. } => {
                    seen.insert(timer);
                    if deferrable {
                        wheel.timers.remove(&timer);
                    }
                }
                Event::TimerExpire { timer, base, .. } if seen.insert(timer) => {
                    // Whether pinned is not known; who fires it is its CPU most of the time.
                    let timer_of = Timer { cpu: r.cpu, bucket_expiry: base, pinned: true };
                    wheel.timers.insert(timer, timer_of);
                }
                _ => {}
            }
        }
        Ok(wheel)
    }

    /// A line of the recording.
    pub(super) fn record(&mut self, r: &Record, tick_nsec: u64) {
        let now = r.time_us.saturating_mul(1000);
        match r.event {
            Event::TimerStart { timer, bucket_expiry, cpu, deferrable, pinned } => {
                if deferrable {
                    self.timers.remove(&timer);
                } else {
                    self.timers.insert(timer, Timer { cpu, bucket_expiry, pinned });
                }
            }
            Event::TimerCancel { timer } => drop(self.timers.remove(&timer)),
            Event::TimerExpire { timer, now: jiffies, .. } => {
                self.timers.remove(&timer);
                // A tick that comes late makes jiffies lag, never lead.
                let epoch = jiffies.saturating_sub(now / tick_nsec);
                self.epoch = Some(self.epoch.map_or(epoch, |known| known.max(epoch)));
            }
            Event::HrtimerExpire { tick: true, .. } => {
                let duty = *self.do_timer.get_or_insert(r.cpu);
                self.advanced = if duty == r.cpu { now } else { self.advanced };
            }
            Event::IrqEntry if self.stopped.contains(&r.cpu) => self.advanced = now,
            Event::TickStop { success: true } => {
                self.stopped.insert(r.cpu);
                self.do_timer = self.do_timer.filter(|cpu| *cpu != r.cpu);
            }
            Event::SchedSwitch { prev_pid: 0, .. } => drop(self.stopped.remove(&r.cpu)),
            _ => {}
        }
    }

    /// Whether a timer keeps the tick of `cpu`; `last`: no other CPU has its tick.
    pub(super) fn keeps_tick(&self, cpu: usize, last: bool, tick_nsec: u64) -> bool {
        let Some(epoch) = self.epoch else { return false };
        let jiffies = epoch.saturating_add(self.advanced / tick_nsec);
        let mut mine = self.timers.values().filter(|t| t.cpu == cpu || (last && !t.pinned));
        mine.any(|timer| timer.bucket_expiry <= jiffies.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_within_a_jiffy_keeps_the_tick() {
        const TICK_US: u64 = 4_000;
        let mut wheel = Wheel::default();
        let line = |wheel: &mut Wheel, cpu, tick: u64, event| {
            let time_us = tick * TICK_US + 7;
            let r = Record {
                cpu,
                pid: 0,
                hardirq: false,
                softirq: false,
                need_resched: false,
                time_us,
                event,
            };
            wheel.record(&r, TICK_US * 1000);
        };
        line(&mut wheel, 0, 5, Event::TimerExpire { timer: 1, now: 1000, base: 1000 });
        let start = |timer, bucket_expiry, deferrable, pinned| Event::TimerStart {
            timer,
            bucket_expiry,
            cpu: 3,
            deferrable,
            pinned,
        };
        line(&mut wheel, 3, 5, start(2, 1010, false, false));
        line(&mut wheel, 3, 5, start(3, 1002, true, false));
        let tick = Event::HrtimerExpire { inactive: false, tick: true, now: 0 };
        let keeps = |wheel: &Wheel, cpu, last| wheel.keeps_tick(cpu, last, TICK_US * 1000);
        line(&mut wheel, 0, 13, tick);
        assert!(!keeps(&wheel, 3, false));
        // Another CPU has the duty.
        line(&mut wheel, 1, 14, tick);
        assert!(!keeps(&wheel, 3, false));
        line(&mut wheel, 0, 14, Event::TickStop { success: true });
        line(&mut wheel, 1, 14, tick);
        assert!(keeps(&wheel, 3, false));
        // Another CPU's business, unless nobody else is there.
        assert!(!keeps(&wheel, 4, false));
        assert!(keeps(&wheel, 4, true));
        line(&mut wheel, 3, 14, start(2, 1010, false, true));
        assert!(!keeps(&wheel, 4, true));
        line(&mut wheel, 3, 14, Event::TimerCancel { timer: 2 });
        assert!(!keeps(&wheel, 3, false));
    }
}
