// SPDX-License-Identifier: GPL-2.0-or-later
//! The state that intel_pstate keeps of a CPU, and how it decides: `struct cpudata` and its
//! arithmetic.
//!
//! Kernel: 6.1.192 and 6.12.117 drivers/cpufreq/intel_pstate.c, see [`super`].

use crate::cpufreq::counts::Counts;
use schedtwin_types::{Khz, Ns};

/// `INTEL_PSTATE_SAMPLING_INTERVAL`.
const SAMPLING_INTERVAL: i64 = 10_000_000;
/// `core_get_scaling()`: kHz of a P-state.
pub const SCALING: u32 = 100_000;
/// Bits of a fraction, and of an exact one.
pub(super) const FRAC_BITS: u32 = 8;
const EXT_FRAC_BITS: u32 = FRAC_BITS + 6;
/// An eighth (`ONE_EIGHTH_FP`), and one.
const ONE_EIGHTH: u32 = 1 << (FRAC_BITS - 3);
const ONE: u32 = 1 << FRAC_BITS;

/// Which P-states a CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pstates {
    /// The lowest.
    pub min: i32,
    /// At which APERF and MPERF count alike (`max_pstate_physical`).
    pub max_physical: i32,
    /// The highest.
    pub turbo: i32,
}

/// `struct cpudata` of a CPU, with its `struct sample`.
#[derive(Clone, Debug)]
pub struct PstateCpu {
    /// The P-states that there are.
    pub pstates: Pstates,
    /// `global.max_perf_pct`: at most this part of the highest.
    max_perf_pct: u32,
    /// `global.min_perf_pct`: at least this part of it.
    min_perf_pct: u32,
    /// The lowest P-state that may be asked for (`min_perf_ratio`).
    pub min_perf_ratio: i32,
    /// And at most (`max_perf_ratio`).
    pub max_perf_ratio: i32,
    /// The P-state that is asked for.
    pub current: i32,
    /// 0..=256, of 256.
    pub iowait_boost: u32,
    /// Time of the last call of the hook.
    pub last_update: Ns,
    /// Time of the sample before the last.
    pub last_sample_time: Ns,
    /// Time of the last sample.
    pub sample_time: Ns,
    /// The registers at the last sample.
    pub prev: Counts,
    /// The counts from the sample before to the last one.
    pub sample: Counts,
    /// APERF / MPERF of the last sample, of 16384 (`core_avg_perf`).
    pub core_avg_perf: i32,
    /// Percent that the CPU was busy, of 256 (`busy_scaled`).
    pub busy_scaled: i32,
}

impl PstateCpu {
    /// As the driver starts: the lowest P-state, and no limits.
    pub fn new(pstates: Pstates, max_perf_pct: u32, min_perf_pct: u32) -> PstateCpu {
        PstateCpu {
            pstates,
            max_perf_pct,
            min_perf_pct,
            min_perf_ratio: 0,
            max_perf_ratio: pstates.turbo,
            current: pstates.min,
            iowait_boost: 0,
            last_update: 0,
            last_sample_time: 0,
            sample_time: 0,
            prev: Counts::default(),
            sample: Counts::default(),
            core_avg_perf: 0,
            busy_scaled: 0,
        }
    }

    /// `intel_pstate_update_perf_limits()`: the policy's limits in kHz, and those in percent.
    pub fn update_perf_limits(&mut self, policy_min: Khz, policy_max: Khz) {
        let max = (policy_max / SCALING) as i32;
        let min = if policy_max == policy_min {
            max
        } else {
            ((policy_min / SCALING) as i32).clamp(0, max)
        };
        let of_turbo = |percent: u32| (self.pstates.turbo * percent as i32 + 99) / 100;
        let global_max = of_turbo(self.max_perf_pct);
        let global_min = of_turbo(self.min_perf_pct).clamp(0, global_max);
        self.max_perf_ratio = max.min(global_max).max(min);
        self.min_perf_ratio = min.max(global_min).min(max).min(self.max_perf_ratio);
    }

    /// `intel_pstate_update_util()` up to the sample: whether one is due.
    pub fn update_util(&mut self, time: Ns, iowait: bool, tick_nsec: Ns) -> bool {
        let may_have_idled = time.wrapping_sub(self.last_update) > tick_nsec;
        if iowait {
            self.iowait_boost = if may_have_idled || self.iowait_boost < ONE_EIGHTH {
                ONE_EIGHTH
            } else {
                (self.iowait_boost << 1).min(ONE)
            };
        } else if self.iowait_boost != 0 {
            self.iowait_boost = if may_have_idled { 0 } else { self.iowait_boost >> 1 };
        }
        self.last_update = time;
        time.wrapping_sub(self.sample_time) as i64 >= SAMPLING_INTERVAL
    }

    /// `intel_pstate_sample()`: takes the registers; whether there is a sample to decide by.
    pub fn take_sample(&mut self, time: Ns, counts: Counts) -> bool {
        if self.prev.mperf == counts.mperf || self.prev.tsc == counts.tsc {
            return false;
        }
        self.last_sample_time = self.sample_time;
        self.sample_time = time;
        self.sample = counts.since(self.prev);
        self.prev = counts;
        // Of the first one it is not known since when its counters have counted.
        if self.last_sample_time == 0 {
            return false;
        }
        self.core_avg_perf = ((self.sample.aperf << EXT_FRAC_BITS) / self.sample.mperf) as i32;
        true
    }

    /// `get_target_pstate()`, of the last sample.
    pub fn target_pstate(&mut self) -> i32 {
        let busy = ((self.sample.mperf as i64) << FRAC_BITS) / self.sample.tsc as i64;
        let busy = (busy as u32).max(self.iowait_boost) as i32;
        self.busy_scaled = busy.wrapping_mul(100);
        let highest = self.pstates.turbo;
        let target = (i64::from(highest + (highest >> 2)) * i64::from(busy)) >> FRAC_BITS;
        let target = (target as i32).max(self.pstates.min);
        let average = (self.pstates.max_physical as u64).wrapping_mul(self.core_avg_perf as u64);
        let average = (average >> EXT_FRAC_BITS) as i32;
        if average > target { target + ((average - target) >> 1) } else { target }
    }

    /// `intel_pstate_freq_to_hwp()`: the P-state that is not below a frequency.
    pub fn of_khz(&self, khz: Khz) -> i32 {
        khz.div_ceil(SCALING) as i32
    }

    /// `intel_cpufreq_adjust_perf()`: the lowest, the highest and the desired P-state for a floor and a target, shares of
    /// `capacity`.
    pub fn adjust_perf(&self, min_perf: u64, target_perf: u64, capacity: u64) -> (i32, i32, i32) {
        let highest = self.pstates.turbo;
        let of = |perf: u64| match perf < capacity {
            true => (highest as u64 * perf).div_ceil(capacity) as i32,
            false => highest,
        };
        let (target, min) = (of(target_perf), of(min_perf));
        let min = min.max(self.pstates.min).max(self.min_perf_ratio).min(self.max_perf_ratio);
        let max = highest.min(self.max_perf_ratio).max(min);
        (min, max, target.clamp(min, max))
    }

    /// `intel_pstate_prepare_request()`.
    pub fn prepare_request(&self, pstate: i32) -> i32 {
        let min = self.pstates.min.max(self.min_perf_ratio);
        pstate.clamp(min, self.max_perf_ratio.max(min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PSTATES: Pstates = Pstates { min: 8, max_physical: 48, turbo: 48 };

    fn cpu() -> PstateCpu {
        let mut cpu = PstateCpu::new(PSTATES, 100, 16);
        cpu.update_perf_limits(800_000, 4_800_000);
        cpu
    }

    /// A sample of 10 ms: percent busy, and the P-state that it ran at.
    fn sample(cpu: &mut PstateCpu, busy: u64, ran_at: u64) -> i32 {
        let time = cpu.sample_time + 10_000_000;
        assert!(cpu.update_util(time, false, 4_000_000));
        let tsc = 48 * 1_000_000;
        let mperf = tsc * busy / 100;
        let prev = cpu.prev;
        let next = Counts {
            aperf: prev.aperf + mperf * ran_at / 48,
            mperf: prev.mperf + mperf,
            tsc: prev.tsc + tsc,
        };
        if !cpu.take_sample(time, next) {
            return 0;
        }
        cpu.current = cpu.target_pstate();
        cpu.current = cpu.prepare_request(cpu.current);
        cpu.current
    }

    /// The timeline above.
    #[test]
    fn it_comes_down_by_halves() {
        let mut cpu = cpu();
        assert_eq!(sample(&mut cpu, 100, 48), 0, "the first sample only begins");
        assert_eq!(sample(&mut cpu, 100, 48), 48);
        assert_eq!(sample(&mut cpu, 40, 48), 35);
        assert_eq!(sample(&mut cpu, 40, 35), 28);
        assert_eq!(sample(&mut cpu, 40, 23), 23);
        assert_eq!(sample(&mut cpu, 80, 8), 47, "and up at once");
        assert_eq!(sample(&mut cpu, 1, 8), 8);
    }

    #[test]
    fn waiting_for_io_boosts() {
        let mut cpu = cpu();
        let mut boost = |step: Ns, io| {
            let time = cpu.last_update + step;
            cpu.update_util(time, io, 4_000_000);
            cpu.iowait_boost
        };
        assert_eq!([1, 1, 1, 1, 1].map(|_| boost(1_000_000, true)), [32, 64, 128, 256, 256]);
        assert_eq!([1, 1, 1, 1].map(|_| boost(1_000_000, false)), [128, 64, 32, 16]);
        assert_eq!(boost(1_000_000, true), 32, "less than an eighth starts over");
        assert_eq!(boost(4_000_001, false), 0, "silence ends it");
    }

    #[test]
    fn performance_becomes_pstates() {
        let mut cpu = cpu();
        assert_eq!(cpu.adjust_perf(0, 512, 1024), (8, 48, 24));
        assert_eq!(cpu.adjust_perf(51, 513, 1024), (8, 48, 25), "rounded up");
        assert_eq!(cpu.adjust_perf(512, 100, 1024), (24, 48, 24), "the floor");
        assert_eq!(cpu.adjust_perf(0, 2000, 1024), (8, 48, 48));
        cpu.update_perf_limits(800_000, 3_000_000);
        assert_eq!(cpu.adjust_perf(1024, 1024, 1024), (30, 30, 30));
        assert_eq!([2_300_001, 2_300_000].map(|khz| cpu.of_khz(khz)), [24, 23]);
    }

    #[test]
    fn limits() {
        let mut cpu = PstateCpu::new(PSTATES, 75, 20);
        cpu.update_perf_limits(800_000, 4_800_000);
        assert_eq!((cpu.min_perf_ratio, cpu.max_perf_ratio), (10, 36));
        cpu.update_perf_limits(4_000_000, 4_000_000);
        assert_eq!((cpu.min_perf_ratio, cpu.max_perf_ratio), (40, 40), "the policy goes first");
        cpu.update_perf_limits(800_000, 900_000);
        assert_eq!((cpu.min_perf_ratio, cpu.max_perf_ratio), (9, 9));
        assert_eq!([1, 100].map(|pstate| cpu.prepare_request(pstate)), [9, 9]);
    }
}
