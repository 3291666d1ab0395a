// SPDX-License-Identifier: GPL-2.0-or-later
//! What a thread did, in a few numbers: its jobs, how much work one is, and what makes the thread begin it.
//!
//! A *job* is what a thread does between two sleeps. Jobs that an interrupt begins at regular times are periodic: of the times
//! from one to the next [`REGULAR_PERCENT`] % are within [`WITHIN_PERCENT`] % of the median.

use super::builder::{Builder, RawStep, SleepEnd};
use schedtwin_types::{Ns, Work};
use std::collections::BTreeMap;

/// Jobs of which a period is told.
const PERIODIC_LEAST: usize = 8;
/// Share of the times between jobs that have to be like the median.
const REGULAR_PERCENT: usize = 80;
/// How like the median they have to be.
const WITHIN_PERCENT: u64 = 10;

/// A thread's period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// From one job to the next, the median, ns.
    pub ns: Ns,
    /// The first job, after the recording's beginning.
    pub first: Ns,
}

/// The jobs of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// How many.
    pub count: u64,
    /// Work of all, ns at capacity 1024.
    pub work: Work,
    /// Work of one, ns at capacity 1024: of every tenth the least, the median, and of every tenth the most.
    pub quantiles: [Work; 3],
    /// Jobs that the thread of that number in [`super::Recorded::threads`] begins by a wakeup: those of the one with the most.
    pub waker: Option<(u32, u64)>,
    /// Jobs that any thread begins.
    pub woken: u64,
    /// Jobs that an interrupt begins.
    pub by_time: u64,
    /// Their period, if they are regular.
    pub period: Option<Period>,
    /// The mean sleep before one, ns.
    pub sleep: Ns,
    /// When a thread that was forked within the recording begins, ns after the recording's beginning.
    pub begins: Option<Ns>,
    /// Whether it exits within the recording.
    pub exits: bool,
}

/// Collects the jobs of one thread.
pub(super) struct Collector {
    work: Work,
    works: Vec<Work>,
    /// When jobs that an interrupt began did so.
    times: Vec<Ns>,
    wakers: BTreeMap<u32, u64>,
    woken: u64,
    slept: (Ns, u64),
    start: Ns,
    begins: Option<Ns>,
    exits: bool,
}

impl Collector {
    /// Of a thread that begins at `start`; `begins`: so long after the recording's beginning, where it was forked.
    pub fn new(start: Ns, begins: Option<Ns>) -> Collector {
        Collector {
            work: 0,
            works: Vec::new(),
            times: Vec::new(),
            wakers: BTreeMap::new(),
            woken: 0,
            slept: (0, 0),
            start,
            begins,
            exits: false,
        }
    }

    /// Takes a step that is so much work.
    pub fn step(&mut self, raw: &RawStep, work: Work, builder: &Builder) {
        self.work += work;
        self.exits |= matches!(raw, RawStep::Exit);
        let RawStep::Sleep(sleep) = *raw else { return };
        self.job_ends();
        let sleep = &builder.sleeps[sleep as usize];
        let ended = match sleep.end {
            SleepEnd::Open => return,
            SleepEnd::Unmatched { at, .. } => {
                self.times.push(at);
                at
            }
            SleepEnd::Wakeup(wakeup) => {
                let wakeup = builder.wakeups[wakeup as usize];
                match wakeup.by {
                    Some(by) => {
                        *self.wakers.entry(by).or_default() += 1;
                        self.woken += 1;
                    }
                    None => self.times.push(wakeup.at),
                }
                wakeup.at
            }
        };
        if let Some(ns) = sleep.began.and_then(|began| ended.checked_sub(began)) {
            self.slept = (self.slept.0 + ns, self.slept.1 + 1);
        }
    }

    fn job_ends(&mut self) {
        let work = std::mem::take(&mut self.work);
        if work > 0 {
            self.works.push(work);
        }
    }

    pub fn finish(mut self) -> Jobs {
        self.job_ends();
        self.works.sort_unstable();
        let works = &self.works;
        let quantile = |percent: usize| match works.len() {
            0 => 0,
            count => works[(count - 1) * percent / 100],
        };
        Jobs {
            count: works.len() as u64,
            work: works.iter().sum(),
            quantiles: [10, 50, 90].map(quantile),
            waker: self
                .wakers
                .iter()
                .map(|(by, count)| (*by, *count))
                .max_by_key(|(_, count)| *count),
            woken: self.woken,
            by_time: self.times.len() as u64,
            period: period(&self.times, self.start),
            sleep: self.slept.0.checked_div(self.slept.1).unwrap_or(0),
            begins: self.begins,
            exits: self.exits,
        }
    }
}

/// The period of moments, if they are regular.
fn period(times: &[Ns], start: Ns) -> Option<Period> {
    if times.len() < PERIODIC_LEAST {
        return None;
    }
    let mut gaps: Vec<Ns> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    gaps.sort_unstable();
    let median = gaps[gaps.len() / 2];
    let alike = gaps.iter().filter(|gap| gap.abs_diff(median) * 100 <= median * WITHIN_PERCENT);
    let regular = alike.count() * 100 >= gaps.len() * REGULAR_PERCENT && median > 0;
    regular.then(|| Period { ns: median, first: times[0].saturating_sub(start) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_moments_have_a_period() {
        let every =
            |ns: Ns, jitter: Ns| (0..20).map(|n| 5 + n * ns + (n % 3) * jitter).collect::<Vec<_>>();
        for (times, expected) in [
            (every(1000, 0), Some(1000)),
            (every(1000, 20), Some(1020)),
            (every(1000, 200), None),
            (every(1000, 0)[..7].to_vec(), None),
            (vec![5; 20], None),
        ] {
            assert_eq!(period(&times, 5).map(|period| period.ns), expected, "{times:?}");
        }
        assert_eq!(period(&every(1000, 0), 2).map(|period| period.first), Some(3));
    }
}
