// SPDX-License-Identifier: GPL-2.0-or-later
//! `amd-pstate.c`, passive mode: from the performance that schedutil asks for, or from a frequency, to levels of the processor.
//!
//! **Idea.** The processor knows levels of performance, 255 the highest, and takes three of them: the lowest that it may choose, the desired
//! one, and the highest. Performance that is asked for is a share of a capacity, and rounded up; a frequency is rounded to the nearest level.
//!
//! **What differs by release.** Up to 6.7 the limits of the policy count for nobody. Since 6.8 requests are kept within them. At first a floor of the
//! whole capacity is the highest level; after a fix, and up to 6.14, it counts as none: the lowest level stands in for it. Since 6.15 it is
//! the highest again, and levels follow from the nominal frequency, not from the highest one.
//!
//! Kernel: 6.1.192, 6.3.8, 6.12.117, 7.3.4 drivers/cpufreq/amd-pstate.c `amd_pstate_adjust_perf`, `amd_pstate_update_freq`, `amd_pstate_update`,
//! `amd_pstate_update_min_max_limit`, `freq_to_perf`, `perf_to_freq`. Which release first had a form, between these: their commits.
//! Differences: active and guided modes are no part of this; boost is never switched off.

use schedtwin_types::Khz;

/// A form of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 5.17 to 6.7 as they were released.
    FloorIsHighest,
    /// The same with the fix of stable releases.
    Unlimited,
    /// 6.8 to 6.14.
    Limited,
    /// 6.15 and later.
    ByNominal,
}

/// What firmware says of a CPU: levels, and frequencies of the highest and the nominal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// `highest_perf`: at most 255.
    pub highest: u64,
    /// `nominal_perf`.
    pub nominal: u64,
    /// `lowest_nonlinear_perf`.
    pub lowest_nonlinear: u64,
    /// `lowest_perf`.
    pub lowest: u64,
    /// `max_freq`.
    pub max_khz: Khz,
    /// `nominal_freq`.
    pub nominal_khz: Khz,
    /// `boost_supported`: it goes beyond the nominal level.
    pub boost: bool,
}

/// What the processor is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The lowest level that it may choose.
    pub min: u64,
    /// The one that is desired.
    pub desired: u64,
    /// The highest.
    pub max: u64,
    /// `policy->cur`: what the driver believes to get.
    pub khz: Khz,
}

/// The driver's state of a CPU.
#[derive(Clone, Debug)]
pub struct AmdPstate {
    form: Form,
    levels: Levels,
    /// The policy's limits as levels, and the higher one in kHz.
    min_limit: u64,
    max_limit: u64,
    max_limit_khz: Khz,
}

impl AmdPstate {
    /// The driver as it starts, within the limits of all levels.
    pub fn new(form: Form, levels: Levels) -> AmdPstate {
        AmdPstate {
            form,
            levels,
            min_limit: levels.lowest,
            max_limit: levels.highest,
            max_limit_khz: levels.max_khz,
        }
    }

    /// `amd_pstate_update_min_max_limit()`: the policy's limits have changed.
    pub fn update_limits(&mut self, min_khz: Khz, max_khz: Khz) {
        (self.min_limit, self.max_limit) = match self.form {
            Form::FloorIsHighest | Form::Unlimited => return,
            Form::Limited => {
                let of = |khz: Khz| {
                    u64::from(khz) * self.levels.highest / u64::from(self.levels.max_khz)
                };
                let min = of(min_khz).max(self.levels.lowest);
                (min, of(max_khz).max(min))
            }
            Form::ByNominal => (self.level_of(min_khz), self.level_of(max_khz)),
        };
        self.max_limit_khz = max_khz;
    }

    /// `amd_pstate_adjust_perf()`: what a floor and a target, shares of `capacity`, ask for.
    pub fn adjust_perf(&self, floor: u64, target: u64, capacity: u64) -> Request {
        let highest = self.levels.highest;
        let of = |perf: u64| (perf < capacity).then(|| (highest * perf).div_ceil(capacity));
        let desired = of(target).unwrap_or(highest);
        let (min, max) = match self.form {
            Form::ByNominal => (of(floor).unwrap_or(highest).max(self.min_limit), self.max_limit),
            _ => {
                let at_first = self.form == Form::FloorIsHighest;
                let without = if at_first { highest } else { self.levels.lowest };
                let min = of(floor).unwrap_or(without);
                (min.max(self.levels.lowest_nonlinear), highest)
            }
        };
        self.update(min, desired, max.max(min))
    }

    /// `amd_pstate_update_freq()`: what a frequency asks for.
    pub fn update_freq(&self, khz: Khz) -> Request {
        let Levels { highest, lowest, max_khz, .. } = self.levels;
        match self.form {
            Form::ByNominal => self.update(self.min_limit, self.level_of(khz), self.max_limit),
            _ => {
                let max_khz = u64::from(max_khz);
                self.update(lowest, (u64::from(khz) * highest + max_khz / 2) / max_khz, highest)
            }
        }
    }

    /// `amd_pstate_update()`.
    fn update(&self, min: u64, desired: u64, max: u64) -> Request {
        let nominal = if self.levels.boost { u64::MAX } else { self.levels.nominal };
        match self.form {
            Form::FloorIsHighest | Form::Unlimited => {
                let desired = within(desired, min, max);
                let khz = (desired * u64::from(self.levels.max_khz) / max) as Khz;
                Request { min, desired, max, khz }
            }
            Form::Limited => {
                let min = within(min, self.min_limit, self.max_limit);
                let max = within(max, self.min_limit, self.max_limit);
                let desired = within(desired, min, max);
                let khz = (desired * u64::from(self.max_limit_khz) / max) as Khz;
                Request { min, desired, max: max.min(nominal), khz }
            }
            Form::ByNominal => {
                let max = max.min(nominal);
                let desired = within(desired, min, max);
                let of_nominal = u64::from(self.levels.nominal_khz) * desired;
                let khz = of_nominal.div_ceil(self.levels.nominal) as Khz;
                Request { min, desired, max, khz }
            }
        }
    }

    /// `freq_to_perf()`.
    fn level_of(&self, khz: Khz) -> u64 {
        let Levels { highest, nominal, lowest, nominal_khz, .. } = self.levels;
        (u64::from(khz) * nominal).div_ceil(u64::from(nominal_khz)).clamp(lowest, highest)
    }

    /// The frequency at which the processor runs at a level: levels are proportional to frequencies.
    pub fn khz_of(&self, level: u64) -> Khz {
        (level * u64::from(self.levels.max_khz) / self.levels.highest) as Khz
    }
}

/// `clamp_t()`, also where the bounds cross: the upper one is looked at first.
fn within(value: u64, low: u64, high: u64) -> u64 {
    match value {
        _ if value >= high => high,
        _ if value <= low => low,
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(form: Form) -> AmdPstate {
        let levels = Levels {
            highest: 255,
            nominal: 255,
            lowest_nonlinear: 26,
            lowest: 26,
            max_khz: 5_100_000,
            nominal_khz: 5_100_000,
            boost: true,
        };
        let mut driver = AmdPstate::new(form, levels);
        driver.update_limits(520_000, 2_550_000);
        driver
    }

    #[test]
    fn limits_count_since_6_8() {
        let desired = |form: Form, target| driver(form).adjust_perf(0, target, 1024).desired;
        assert_eq!([128, 900].map(|target| desired(Form::Unlimited, target)), [32, 225]);
        assert_eq!([128, 900].map(|target| desired(Form::Limited, target)), [32, 127]);
        assert_eq!([128, 900].map(|target| desired(Form::ByNominal, target)), [32, 128]);
    }

    #[test]
    fn a_floor_of_all_is_none_up_to_6_14() {
        let of = |form: Form| driver(form).adjust_perf(1024, 0, 1024);
        assert_eq!((of(Form::Unlimited).min, of(Form::Unlimited).desired), (26, 26));
        assert_eq!((of(Form::Limited).min, of(Form::Limited).desired), (26, 26));
        // The floor lifts the upper limit.
        assert_eq!((of(Form::ByNominal).min, of(Form::ByNominal).max), (255, 255));
    }

    #[test]
    fn a_frequency_is_the_nearest_level() {
        let of = |form: Form, khz| driver(form).update_freq(khz).desired;
        assert_eq!(of(Form::Unlimited, 1_010_000), 51);
        assert_eq!(of(Form::Limited, 5_000_000), 127);
        assert_eq!(of(Form::ByNominal, 1_010_000), 51);
        assert_eq!(driver(Form::Limited).khz_of(51), 1_020_000);
    }
}
