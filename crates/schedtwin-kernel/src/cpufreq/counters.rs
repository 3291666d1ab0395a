// SPDX-License-Identifier: GPL-2.0-or-later
//! The counters of an x86 processor: APERF, MPERF and the time stamp counter.
//!
//! **Idea.** MPERF counts at a fixed frequency while the CPU does not sleep, APERF at the frequency at which it really runs, and the
//! time stamp counter at the fixed frequency always. So MPERF / TSC is how busy the CPU was, and APERF / MPERF how fast it ran
//! meanwhile, no matter who chose that frequency. Drivers read them, and the tick, which tells
//! utilisation how fast the clock was.
//!
//! ```text
//!            works      sleeps     works
//!  TSC       ││││││││││││││││││││││││││││    base frequency
//!  MPERF     ││││││││││          ││││││││    base frequency
//!  APERF     ││││                ││││││││    what it ran at: here first less than half of the base
//! ```
//!
//! **Example.** Half of 10 ms at work, at 3 GHz where 4 GHz is the base: TSC 40 000 000, MPERF 20 000 000, APERF 15 000 000.
//!
//! Kernel: 6.12.117 arch/x86/kernel/cpu/aperfmperf.c `arch_scale_freq_tick`, `scale_freq_tick`.
//! Differences: a CPU sleeps from its entry into an idle state until it is out of it again, ways included; a polling state is work.
//! The base frequency is the highest of the table.

use crate::cpufreq::counts::Counts;
use crate::{Context, Cpufreq, Scheduler};
use schedtwin_types::{CpuId, Khz, Ns, PolicyId};

/// Cycles of a kHz in a nanosecond, of this: what is summed is kHz times nanoseconds.
const PER_CYCLE: u128 = 1_000_000;

/// The counters of a CPU.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    base: Khz,
    /// The frequency at which it runs while it works.
    khz: Khz,
    works: bool,
    since: Ns,
    /// In kHz times nanoseconds.
    aperf: u128,
    mperf: u128,
    /// At the last tick.
    at_tick: Counts,
}

impl Counters {
    /// Those of a CPU that works at `khz` when time begins.
    pub(crate) fn new(base: Khz, khz: Khz) -> Counters {
        let at_tick = Counts::default();
        Counters { base, khz, works: true, since: 0, aperf: 0, mperf: 0, at_tick }
    }

    fn advance(&mut self, now: Ns) {
        let delta = u128::from(now.saturating_sub(self.since));
        self.since = self.since.max(now);
        if self.works {
            self.aperf += delta * u128::from(self.khz);
            self.mperf += delta * u128::from(self.base);
        }
    }

    /// From `now` on it works, or sleeps.
    pub(crate) fn works(&mut self, now: Ns, works: bool) {
        self.advance(now);
        self.works = works;
    }

    /// From `now` on it runs at `khz`.
    fn runs_at(&mut self, now: Ns, khz: Khz) {
        self.advance(now);
        self.khz = khz;
    }

    /// The registers.
    pub(crate) fn read(&mut self, now: Ns) -> Counts {
        self.advance(now);
        let tsc = u128::from(self.since) * u128::from(self.base);
        let cycles = |sum: u128| (sum / PER_CYCLE) as u64;
        Counts { aperf: cycles(self.aperf), mperf: cycles(self.mperf), tsc: cycles(tsc) }
    }

    /// `scale_freq_tick()`: of 1024, how fast it ran since the last tick. `None`: it did not.
    fn freq_scale(&mut self, now: Ns, max: Khz) -> Option<u64> {
        let counts = self.read(now);
        let delta = counts.since(self.at_tick);
        self.at_tick = counts;
        let max_freq_ratio = (u64::from(max) << 10) / u64::from(self.base);
        let acnt = delta.aperf.checked_mul(1 << 20)?;
        let scale = acnt.checked_div(delta.mperf.checked_mul(max_freq_ratio)?)?;
        (scale != 0).then_some(scale.min(1024))
    }
}

impl Cpufreq {
    /// Whether the machine's counters are read by anybody.
    #[inline(always)]
    pub(crate) fn reads_counters(&self) -> bool {
        !self.counters.is_empty()
    }

    /// The registers of the executing CPU.
    pub(crate) fn read_counters(&mut self, cx: &Context) -> Counts {
        let now = cx.local_clock();
        self.counters[cx.this_cpu.index()].read(now)
    }

    /// The clock of a policy has settled at `khz`, by anyone's choice: counters go on at that
    /// frequency.
    #[inline]
    pub(crate) fn clock_settled(&mut self, policy: PolicyId, khz: Khz, now: Ns) {
        if self.reads_counters() {
            for cpu in self.policies[policy].cpus.iter() {
                self.counters[cpu.index()].runs_at(now, khz);
            }
        }
    }

    /// `arch_scale_freq_tick()`.
    #[inline(never)]
    pub(crate) fn arch_scale_freq_tick(&mut self, cpu: CpuId, sched: &mut Scheduler, cx: &Context) {
        let now = cx.local_clock();
        let max = self.policies[cx.policy_of(cpu)].max();
        let scale = self.counters[cpu.index()].freq_scale(now, max);
        if let Some(scale) = scale.filter(|_| self.sugov_forms.invariant) {
            sched.set_freq_scale(cpu, scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_sleep() {
        let mut counters = Counters::new(4_000_000, 3_000_000);
        counters.works(5_000_000, false);
        let counts = counters.read(10_000_000);
        let wanted = Counts { aperf: 15_000_000, mperf: 20_000_000, tsc: 40_000_000 };
        assert_eq!(counts, wanted, "the example above");
        counters.works(10_000_000, true);
        counters.runs_at(12_000_000, 4_000_000);
        assert_eq!(counters.read(13_000_000).since(counts).aperf, 10_000_000);
        assert_eq!(counters.read(12_500_000).since(counts).aperf, 10_000_000, "never back");
    }

    #[test]
    fn the_tick_tells_how_fast_the_clock_was() {
        let mut counters = Counters::new(2_000_000, 1_000_000);
        assert_eq!(counters.freq_scale(4_000_000, 4_000_000), Some(256));
        counters.works(4_000_000, false);
        assert_eq!(counters.freq_scale(8_000_000, 4_000_000), None, "it slept");
        counters.works(8_000_000, true);
        counters.runs_at(8_000_000, 5_000_000);
        assert_eq!(counters.freq_scale(12_000_000, 4_000_000), Some(1024));
    }
}
