// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in intel_pstate's algorithm that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const CPU: &str = "cpufreq/intel_pstate/cpu.rs";
const COUNTS: &str = "cpufreq/counts.rs";

/// All of them.
pub const ALL: &[Mutation] = &[
    m(CPU, "INTERVAL: i64 = 10_000_000", "INTERVAL: i64 = 10_000_001"),
    m(CPU, "SCALING: u32 = 100_000", "SCALING: u32 = 99_999"),
    m(CPU, "FRAC_BITS + 6", "FRAC_BITS + 5"),
    m(CPU, "1 << (FRAC_BITS - 3)", "1 << (FRAC_BITS - 2)"),
    m(CPU, ".clamp(0, max)", ".clamp(0, i32::MAX)"),
    m(CPU, "percent as i32 + 99) / 100", "percent as i32) / 100"),
    m(CPU, "max.min(global_max).max(min)", "max.min(global_max)"),
    m(CPU, "(self.last_update) > tick_nsec", "(self.last_update) >= tick_nsec"),
    m(CPU, "self.iowait_boost < ONE_EIGHTH", "self.iowait_boost <= ONE_EIGHTH"),
    m(CPU, "(self.iowait_boost << 1).min(ONE)", "self.iowait_boost << 1"),
    m(CPU, "{ 0 } else { self.iowait_boost >> 1 }", "{ 0 } else { self.iowait_boost }"),
    m(CPU, "self.last_update = time;", ""),
    m(CPU, "as i64 >= SAMPLING_INTERVAL", "as i64 > SAMPLING_INTERVAL"),
    m(CPU, "self.prev.mperf == counts.mperf ||", ""),
    m(CPU, "|| self.prev.tsc == counts.tsc", "|| self.prev.aperf == counts.aperf"),
    m(CPU, "self.last_sample_time = self.sample_time;", "self.last_sample_time = time;"),
    m(CPU, "self.last_sample_time == 0", "self.sample_time == 0"),
    m(CPU, "/ self.sample.mperf)", "/ self.sample.tsc)"),
    m(CPU, "/ self.sample.tsc as i64", "/ self.sample.aperf.max(1) as i64"),
    m(CPU, "(busy as u32).max(self.iowait_boost)", "(busy as u32)"),
    m(CPU, "wrapping_mul(100)", "wrapping_mul(101)"),
    m(CPU, "highest + (highest >> 2)", "highest + (highest >> 3)"),
    m(
        CPU,
        "let highest = self.pstates.turbo;\n        let target",
        "let highest = self.pstates.max_physical;\n        let target",
    ),
    m(
        CPU,
        "let highest = self.pstates.turbo;\n        let of",
        "let highest = self.pstates.max_physical;\n        let of",
    ),
    m(CPU, "match perf < capacity", "match perf > capacity"),
    m(CPU, "(highest as u64 * perf).div_ceil(capacity)", "(highest as u64 * perf / capacity)"),
    m(CPU, "min.max(self.pstates.min).max(self.min_perf_ratio)", "min.max(self.min_perf_ratio)"),
    m(CPU, ".max(self.min_perf_ratio).min(self.max_perf_ratio)", ".min(self.max_perf_ratio)"),
    m(CPU, "highest.min(self.max_perf_ratio).max(min)", "highest.max(min)"),
    m(CPU, "target.clamp(min, max)", "target.min(max)"),
    m(CPU, "(target as i32).max(self.pstates.min)", "(target as i32)"),
    m(CPU, "(self.pstates.max_physical as u64)", "(self.pstates.turbo as u64)"),
    m(CPU, "((average - target) >> 1)", "((average - target) >> 2)"),
    m(CPU, "self.pstates.min.max(self.min_perf_ratio)", "self.min_perf_ratio"),
    m(CPU, "self.max_perf_ratio.max(min)", "self.max_perf_ratio.max(pstate)"),
    m(COUNTS, "self.mperf.wrapping_sub(earlier.mperf)", "self.mperf"),
];
