// SPDX-License-Identifier: GPL-2.0-or-later
//! The tick of the kernel that recorded, from the times of its timer's interrupts.
//!
//! A busy CPU is interrupted every 1/`CONFIG_HZ` seconds. The tick is its timer's handler where hrtimer events tell; else
//! the timer's interrupt, which other timers share. A rate counts if enough intervals have its length ([`LEAST`]) and these are
//! most of all intervals up to the longest tick: an idle CPU has longer ones, and other timers come in between.

use schedtwin_trace::event::{NameId, Names, TraceEvent, TraceEventKind};
use schedtwin_types::Ns;

/// Rates of `kernel/Kconfig.hz`.
const RATES: [u64; 4] = [100, 250, 300, 1000];

/// How far an interval may be off: interrupts are taken late.
const OFF_PERMILLE: u64 = 30;

/// Intervals of a rate that have to be there.
const LEAST: u64 = 30;

/// What interrupts a CPU regularly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The tick's own handler.
    Tick,
    /// The interrupt of a CPU's timer.
    Timer,
}

/// Counts of one source.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// When it interrupted each CPU last.
    last: Vec<Option<Ns>>,
    /// Intervals of each rate, and all up to the longest tick.
    by_rate: [u64; RATES.len()],
    all: u64,
}

impl Counts {
    fn see(&mut self, cpu: usize, at: Ns) {
        if cpu >= self.last.len() {
            self.last.resize(cpu + 1, None);
        }
        let Some(before) = self.last[cpu].replace(at) else { return };
        let ns = at.saturating_sub(before);
        let within = |rate: u64| {
            let period = 1_000_000_000 / rate;
            ns.abs_diff(period) <= period * OFF_PERMILLE / 1000
        };
        if ns > 1_000_000_000 / RATES[0] * (1000 + OFF_PERMILLE) / 1000 {
            return;
        }
        self.all += 1;
        if let Some(rate) = RATES.iter().position(|rate| within(*rate)) {
            self.by_rate[rate] += 1;
        }
    }

    fn hz(&self) -> Option<u64> {
        let rate = (0..RATES.len()).max_by_key(|rate| self.by_rate[*rate])?;
        let count = self.by_rate[rate];
        (count >= LEAST && 2 * count > self.all).then(|| RATES[rate])
    }
}

/// Watches timers.
#[derive(Clone, Debug, Default)]
pub struct Ticks {
    ticks: Counts,
    timers: Counts,
    /// By the number of a handler's or an interrupt's name.
    sources: Vec<Option<Option<Source>>>,
}

impl Ticks {
    /// Takes an event.
    pub fn event(&mut self, event: &TraceEvent, names: &Names) {
        use TraceEventKind as Kind;
        let name = match event.kind {
            Kind::HrtimerExpire { function, .. } => function,
            Kind::VectorEntry { name } => name,
            Kind::IrqEntry { handler, .. } => handler,
            _ => return,
        };
        let counts = match self.source(name, names) {
            Some(Source::Tick) => &mut self.ticks,
            Some(Source::Timer) => &mut self.timers,
            None => return,
        };
        counts.see(event.cpu.index(), event.at);
    }

    fn source(&mut self, name: NameId, names: &Names) -> Option<Source> {
        if name.index() >= self.sources.len() {
            self.sources.resize(name.index() + 1, None);
        }
        *self.sources[name.index()].get_or_insert_with(|| match names.text(name) {
            "tick_sched_timer" | "tick_nohz_handler" | "tick_nohz_highres_handler" => {
                Some(Source::Tick)
            }
            "local_timer" | "arch_timer" => Some(Source::Timer),
            _ => None,
        })
    }

    /// Ticks per second; `None`: the events do not tell.
    pub fn hz(&self) -> Option<u64> {
        self.ticks.hz().or_else(|| self.timers.hz())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals on two CPUs, one after the other, ns.
    fn hz(intervals: &[(u64, usize)]) -> Option<u64> {
        let mut counts = Counts::default();
        for cpu in 0..2 {
            let mut at = 5_000_000_000;
            counts.see(cpu, at);
            for &(ns, count) in intervals {
                for nr in 0..count as u64 {
                    // Up to 20 us late.
                    at += ns;
                    counts.see(cpu, at + nr * 7_919 % 20_000);
                }
            }
        }
        counts.hz()
    }

    #[test]
    fn the_rate_is_that_of_most_intervals() {
        for (intervals, expected) in [
            (&[(4_000_000, 40)][..], Some(250)),
            (&[(1_000_000, 20), (20_000_000, 50)], Some(1000)),
            (&[(3_333_333, 100)], Some(300)),
            (&[(10_000_000, 100)], Some(100)),
            // A CPU that is idle for every other tick does not make another rate of it.
            (&[(1_000_000, 100), (4_000_000, 40)], Some(1000)),
            // Too few, nothing regular, or two rates that are as frequent.
            (&[(4_000_000, 10)], None),
            (&[(700_000, 100), (4_000_000, 40)], None),
            (&[(20_000_000, 100)], None),
            (&[(4_000_000, 40), (1_000_000, 40)], None),
            (&[], None),
        ] {
            assert_eq!(hz(intervals), expected, "{intervals:?}");
        }
    }
}
