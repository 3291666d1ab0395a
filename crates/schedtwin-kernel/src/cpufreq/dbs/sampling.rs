// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions of ondemand and conservative, and what they remember of a domain.
//!
//! Kernel: 6.1.192 and 6.12.117 drivers/cpufreq/cpufreq_governor.c, cpufreq_ondemand.c, cpufreq_conservative.c, see [`super`].

use crate::cpufreq::freq_table::Relation;
use schedtwin_types::{CpuId, Khz, Ns};

/// ondemand's threshold where idle time is known in microseconds (`MICRO_FREQUENCY_UP_THRESHOLD`).
const ONDEMAND_UP_THRESHOLD: u32 = 95;
/// conservative's (`DEF_FREQUENCY_UP_THRESHOLD`).
const CONSERVATIVE_UP_THRESHOLD: u32 = 80;
/// `DEF_FREQUENCY_STEP`, also the step in kHz of a domain whose highest frequency is less than 100 kHz.
const DEF_FREQUENCY_STEP: u32 = 5;
pub(super) const NSEC_PER_USEC: u64 = 1000;

/// The user's settings: `struct dbs_data`, `struct cs_dbs_tuners`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuners {
    /// conservative rather than ondemand.
    pub steps: bool,
    /// Microseconds.
    pub sampling_rate: u32,
    /// Percent; 0: the governor's own.
    pub up_threshold: u32,
    /// Percent.
    pub down_threshold: u32,
    /// Percent.
    pub freq_step: u32,
    /// Samples.
    pub sampling_down_factor: u32,
    /// conservative makes up for the periods that were slept through at any load.
    pub deferred_at_any_load: bool,
}

/// `struct policy_dbs_info`, with the parts that ondemand and conservative add.
#[derive(Clone, Debug)]
pub struct PolicyDbs {
    tuners: Tuners,
    /// When the last sample was asked for.
    pub last_sample_time: Ns,
    /// So long after it the next one is due.
    pub sample_delay_ns: u64,
    /// How many sampling rates that is.
    pub rate_mult: u32,
    /// Periods that the CPU slept through which idled least; `u32::MAX`: none.
    pub idle_periods: u32,
    /// Percent of the last sample alone.
    pub max_sample_load: u32,
    /// conservative: where its steps have led.
    pub requested_freq: Khz,
    /// conservative: samples that might have led down.
    pub down_skip: u32,
    /// The CPUs.
    pub cpus: Vec<CpuDbs>,
}

/// `struct cpu_dbs_info`; microseconds.
#[derive(Clone, Copy, Debug)]
pub struct CpuDbs {
    cpu: CpuId,
    /// Idle time at the last sample.
    pub prev_cpu_idle: u64,
    /// Time of the last sample.
    pub prev_update_time: u64,
    /// Percent; 0 also if it has stood for a long sleep already.
    pub prev_load: u32,
}

impl PolicyDbs {
    /// As the governor starts on CPUs that have not idled, at frequency `cur`. The core asks it for its limits at once, which
    /// makes the first sample due.
    pub fn new(tuners: Tuners, cur: Khz, cpus: impl Iterator<Item = CpuId>) -> PolicyDbs {
        let own = if tuners.steps { CONSERVATIVE_UP_THRESHOLD } else { ONDEMAND_UP_THRESHOLD };
        let up_threshold = if tuners.up_threshold == 0 { own } else { tuners.up_threshold };
        let cpu = |cpu| CpuDbs { cpu, prev_cpu_idle: 0, prev_update_time: 0, prev_load: 0 };
        PolicyDbs {
            tuners: Tuners { up_threshold, ..tuners },
            last_sample_time: 0,
            sample_delay_ns: 0,
            rate_mult: 1,
            idle_periods: u32::MAX,
            max_sample_load: 0,
            requested_freq: cur,
            down_skip: 0,
            cpus: cpus.map(cpu).collect(),
        }
    }

    /// `dbs_update_util_handler()`, without work in progress: whether a sample is due.
    pub fn is_due(&mut self, time: Ns) -> bool {
        let due = time.wrapping_sub(self.last_sample_time) as i64 >= self.sample_delay_ns as i64;
        if due {
            self.last_sample_time = time;
        }
        due
    }

    /// `cpufreq_dbs_governor_limits()`: the next call samples; conservative goes on from `cur`.
    pub fn limits(&mut self, cur: Khz) {
        self.sample_delay_ns = 0;
        if self.tuners.steps {
            self.requested_freq = cur;
        }
    }

    /// `od_dbs_update()`, `cs_dbs_update()`: takes a sample and decides; `None`: the driver is not asked. `idle_us` tells how long
    /// a CPU has idled since boot.
    pub fn sample(
        &mut self,
        now_us: u64,
        idle_us: impl Fn(CpuId) -> u64,
        bounds: Bounds,
    ) -> Option<(Khz, Relation)> {
        let load = self.load(now_us, idle_us);
        let wanted = match self.tuners.steps {
            true => self.conservative(load, bounds),
            false => self.ondemand(load, bounds),
        };
        let delay_us = self.tuners.sampling_rate.wrapping_mul(self.rate_mult);
        self.sample_delay_ns = u64::from(delay_us) * NSEC_PER_USEC;
        wanted
    }

    /// `dbs_update()`: the load of the busiest CPU. `idle_us` tells how long a CPU has idled since boot.
    fn load(&mut self, now_us: u64, idle_us: impl Fn(CpuId) -> u64) -> u32 {
        let sampling_rate = self.tuners.sampling_rate.wrapping_mul(self.rate_mult);
        let (mut max_load, mut max_sample_load, mut idle_periods) = (0, 0, u32::MAX);
        for cpu in &mut self.cpus {
            let idle_now = idle_us(cpu.cpu);
            let elapsed = now_us.saturating_sub(cpu.prev_update_time) as u32;
            let idle = idle_now.saturating_sub(cpu.prev_cpu_idle) as u32;
            (cpu.prev_update_time, cpu.prev_cpu_idle) = (now_us, idle_now);
            let sample_load = match elapsed {
                0 => cpu.prev_load,
                _ if elapsed > idle => 100u32.wrapping_mul(elapsed - idle) / elapsed,
                _ => 0,
            };
            let slept_long = idle > sampling_rate.wrapping_mul(2);
            let load = if elapsed == 0 {
                cpu.prev_load
            } else if slept_long && cpu.prev_load != 0 {
                std::mem::take(&mut cpu.prev_load)
            } else {
                cpu.prev_load = sample_load;
                sample_load
            };
            if slept_long {
                idle_periods = idle_periods.min(idle / sampling_rate.max(1));
            }
            max_load = max_load.max(load);
            max_sample_load = max_sample_load.max(sample_load);
        }
        (self.idle_periods, self.max_sample_load) = (idle_periods, max_sample_load);
        max_load
    }

    /// `od_update()`: what it wants, and which frequency of the table that stands for.
    fn ondemand(&mut self, load: u32, bounds: Bounds) -> Option<(Khz, Relation)> {
        if load > self.tuners.up_threshold {
            if bounds.cur < bounds.max {
                self.rate_mult = self.tuners.sampling_down_factor;
            }
            return (bounds.cur != bounds.max).then_some((bounds.max, Relation::High));
        }
        self.rate_mult = 1;
        let span = bounds.highest - bounds.lowest;
        let next = bounds.lowest + load.wrapping_mul(span) / 100;
        Some((next, Relation::Closest))
    }

    /// `cs_dbs_update()`.
    fn conservative(&mut self, load: u32, bounds: Bounds) -> Option<(Khz, Relation)> {
        if self.tuners.freq_step == 0 {
            return None;
        }
        if self.requested_freq > bounds.max || self.requested_freq < bounds.min {
            self.requested_freq = bounds.cur;
        }
        let mut requested = self.requested_freq;
        let step = match self.tuners.freq_step.wrapping_mul(bounds.max) / 100 {
            0 => DEF_FREQUENCY_STEP,
            step => step,
        };
        let down = |from: Khz, by: Khz| {
            if from > bounds.min.wrapping_add(by) { from - by } else { bounds.min }
        };
        let defers =
            self.tuners.deferred_at_any_load || self.max_sample_load < self.tuners.down_threshold;
        if defers && self.idle_periods < u32::MAX {
            requested = down(requested, self.idle_periods.wrapping_mul(step));
            self.idle_periods = u32::MAX;
        }
        if load > self.tuners.up_threshold {
            self.down_skip = 0;
            requested = requested.wrapping_add(step).min(bounds.max);
            self.requested_freq = requested;
            return Some((requested, Relation::High));
        }
        self.down_skip += 1;
        if self.down_skip < self.tuners.sampling_down_factor {
            return None;
        }
        self.down_skip = 0;
        if load >= self.tuners.down_threshold {
            return None;
        }
        requested = down(requested, step);
        self.requested_freq = requested;
        Some((requested, Relation::Low))
    }
}

/// The bounds that a policy allows.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// At least this one may be asked for.
    pub min: Khz,
    /// At most this one may be asked for.
    pub max: Khz,
    /// The lowest of the table.
    pub lowest: Khz,
    /// The highest of the table.
    pub highest: Khz,
    /// The frequency that the kernel believes in.
    pub cur: Khz,
}

#[cfg(test)]
mod tests {
    use super::*;
    const BOUNDS: Bounds = Bounds {
        min: 1_000_000,
        max: 2_000_000,
        lowest: 1_000_000,
        highest: 2_000_000,
        cur: 1_000_000,
    };

    fn dbs(steps: bool) -> PolicyDbs {
        let tuners = Tuners {
            steps,
            sampling_rate: 8_000,
            up_threshold: 0,
            down_threshold: 20,
            freq_step: 5,
            sampling_down_factor: 1,
            deferred_at_any_load: false,
        };
        PolicyDbs::new(tuners, 1_000_000, std::iter::once(CpuId(0)))
    }

    /// The load of a period; a long sleep counts once as what was before, and then as itself.
    #[test]
    fn load_of_a_period() {
        let mut dbs = dbs(false);
        let rate = 8_000;
        assert_eq!(dbs.load(rate, |_| rate / 4), 75);
        assert_eq!(dbs.load(5 * rate, |_| 4 * rate), 75, "as it was left");
        assert_eq!(dbs.idle_periods, 3);
        assert_eq!(dbs.load(9 * rate, |_| 8 * rate), 0);
        assert_eq!(dbs.load(9 * rate, |_| 8 * rate), 0, "no time has passed");
    }

    #[test]
    fn ondemand_jumps_up_and_comes_down_in_proportion() {
        let mut dbs = dbs(false);
        assert_eq!(dbs.ondemand(96, BOUNDS), Some((2_000_000, Relation::High)));
        assert_eq!(dbs.ondemand(95, BOUNDS), Some((1_950_000, Relation::Closest)));
        assert_eq!(dbs.ondemand(0, BOUNDS), Some((1_000_000, Relation::Closest)));
        assert_eq!(dbs.ondemand(99, Bounds { cur: 2_000_000, ..BOUNDS }), None);
    }

    #[test]
    fn conservative_goes_by_steps() {
        let mut dbs = dbs(true);
        dbs.requested_freq = 1_000_000;
        assert_eq!(dbs.conservative(81, BOUNDS), Some((1_100_000, Relation::High)));
        assert_eq!(dbs.conservative(81, BOUNDS), Some((1_200_000, Relation::High)));
        assert_eq!(dbs.conservative(50, BOUNDS), None);
        assert_eq!(dbs.conservative(19, BOUNDS), Some((1_100_000, Relation::Low)));
        (dbs.idle_periods, dbs.requested_freq) = (3, 2_000_000);
        assert_eq!(dbs.conservative(0, BOUNDS), Some((1_600_000, Relation::Low)), "three more");
    }
}
