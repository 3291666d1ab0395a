// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in ondemand and conservative that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const SAMPLING: &str = "cpufreq/dbs/sampling.rs";
const TABLE: &str = "cpufreq/freq_table.rs";

/// Of the form of 6.12.117. That steps begin anew above the limit goes unnoticed: when the limit changes they have begun anew already.
pub const ALL: &[Mutation] = &[
    m(SAMPLING, "DEF_FREQUENCY_STEP: u32 = 5", "DEF_FREQUENCY_STEP: u32 = 6"),
    m(SAMPLING, "as i64 >= self.sample_delay_ns", "as i64 > self.sample_delay_ns"),
    m(SAMPLING, "self.last_sample_time = time;", ""),
    m(SAMPLING, "self.sample_delay_ns = 0;", ""),
    m(SAMPLING, "self.requested_freq = cur;", ""),
    m(
        SAMPLING,
        "self.tuners.sampling_rate.wrapping_mul(self.rate_mult);\n        self",
        "self.tuners.sampling_rate;\n        self",
    ),
    m(
        SAMPLING,
        "self.tuners.sampling_rate.wrapping_mul(self.rate_mult);\n        let",
        "self.tuners.sampling_rate;\n        let",
    ),
    m(SAMPLING, "_ if elapsed > idle", "_ if elapsed >= 2 * idle"),
    m(SAMPLING, "(elapsed - idle) / elapsed", "(elapsed - idle) / (elapsed + 1)"),
    m(SAMPLING, "wrapping_mul(2);\n", "wrapping_mul(3);\n"),
    m(SAMPLING, "slept_long && cpu.prev_load != 0", "slept_long"),
    m(SAMPLING, "std::mem::take(&mut cpu.prev_load)", "cpu.prev_load"),
    m(SAMPLING, "cpu.prev_load = sample_load;", ""),
    m(SAMPLING, "idle_periods.min(idle", "idle_periods.max(idle"),
    m(SAMPLING, "max_load = max_load.max(load)", "max_load = load"),
    m(SAMPLING, "max_sample_load.max(sample_load)", "max_sample_load.max(load)"),
    m(
        SAMPLING,
        "if load > self.tuners.up_threshold {\n            if",
        "if load >= self.tuners.up_threshold {\n            if",
    ),
    m(SAMPLING, "bounds.cur < bounds.max", "bounds.cur <= bounds.max"),
    m(SAMPLING, "(bounds.cur != bounds.max)", "true"),
    m(SAMPLING, "(bounds.max, Relation::High)", "(bounds.max, Relation::Low)"),
    m(SAMPLING, "self.rate_mult = 1;", ""),
    m(SAMPLING, "bounds.highest - bounds.lowest", "bounds.max - bounds.lowest"),
    m(SAMPLING, "load.wrapping_mul(span) / 100", "load.wrapping_mul(span) / 101"),
    m(SAMPLING, "(next, Relation::Closest)", "(next, Relation::Low)"),
    m(SAMPLING, "self.tuners.freq_step == 0", "false"),
    m(
        SAMPLING,
        "self.tuners.freq_step.wrapping_mul(bounds.max)",
        "self.tuners.freq_step.wrapping_mul(bounds.highest)",
    ),
    m(SAMPLING, "from > bounds.min.wrapping_add(by)", "from > by"),
    m(
        SAMPLING,
        "self.max_sample_load < self.tuners.down_threshold",
        "self.max_sample_load <= self.tuners.down_threshold",
    ),
    m(SAMPLING, "self.idle_periods.wrapping_mul(step)", "step"),
    m(
        SAMPLING,
        "if load > self.tuners.up_threshold {\n            self",
        "if load >= self.tuners.up_threshold {\n            self",
    ),
    m(SAMPLING, "wrapping_add(step).min(bounds.max)", "wrapping_add(step)"),
    m(SAMPLING, "Some((requested, Relation::High))", "Some((requested, Relation::Low))"),
    m(SAMPLING, "self.down_skip += 1", "self.down_skip += 2"),
    m(SAMPLING, "self.down_skip < self.tuners.sampling", "self.down_skip <= self.tuners.sampling"),
    m(SAMPLING, "load >= self.tuners.down_threshold", "load > self.tuners.down_threshold"),
    m(SAMPLING, "Some((requested, Relation::Low))", "Some((requested, Relation::High))"),
    m(TABLE, ".filter(|(_, skip)| !**skip)", ".filter(|_| true)"),
    m(TABLE, "(limits.min..=limits.max).contains(khz)", "(limits.min..=Khz::MAX).contains(khz)"),
    m(TABLE, "_ if khz == target => None", "_ if khz < target => None"),
    m(TABLE, "Relation::High => below", "Relation::High => None"),
    m(TABLE, "target - below <= khz - target", "target - below < khz - target"),
];

/// Of the form of 6.1.
pub const DEFERRED_AT_ANY_LOAD: &[Mutation] =
    &[m(SAMPLING, "self.tuners.deferred_at_any_load ||", "")];
