// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in amd-pstate's arithmetic that the sequences notice, by form.

use crate::l0::mutate::{Mutation, m};

const FILE: &str = "cpufreq/amd_pstate.rs";

const UNLIMITED: &[Mutation] = &[
    m(FILE, "(perf < capacity)", "(perf <= capacity + 1)"),
    m(FILE, "(highest * perf).div_ceil(capacity)", "(highest * perf / capacity)"),
    m(FILE, "of(target).unwrap_or(highest)", "of(target).unwrap_or(self.levels.nominal)"),
    m(FILE, "of(floor).unwrap_or(without)", "of(floor).unwrap_or(highest)"),
    m(FILE, "(min.max(self.levels.lowest_nonlinear), highest)", "(min, highest)"),
    m(FILE, "* highest + max_khz / 2) / max_khz", "* highest) / max_khz"),
    m(FILE, "self.update(lowest,", "self.update(highest,"),
    m(
        FILE,
        "let desired = within(desired, min, max);\n                let khz = (desired * u64::from(self.levels.max_khz)",
        "let khz = (desired * u64::from(self.levels.max_khz)",
    ),
    m(
        FILE,
        "(desired * u64::from(self.levels.max_khz) / max)",
        "(desired * u64::from(self.levels.nominal_khz) / max)",
    ),
];

const LIMITED: &[Mutation] = &[
    m(FILE, "u64::from(khz) * self.levels.highest /", "u64::from(khz) * self.levels.nominal /"),
    m(FILE, "of(min_khz).max(self.levels.lowest)", "of(min_khz)"),
    m(FILE, "(min, of(max_khz).max(min))", "(min, of(max_khz))"),
    m(FILE, "self.max_limit_khz = max_khz;", ""),
    m(FILE, "of(floor).unwrap_or(without)", "of(floor).unwrap_or(highest)"),
    m(FILE, "(min.max(self.levels.lowest_nonlinear), highest)", "(min, highest)"),
    m(FILE, "let min = within(min, self.min_limit, self.max_limit);", ""),
    m(FILE, "let max = within(max, self.min_limit, self.max_limit);", ""),
    m(
        FILE,
        "(desired * u64::from(self.max_limit_khz) / max)",
        "(desired * u64::from(self.levels.max_khz) / max)",
    ),
    m(FILE, "max: max.min(nominal), khz }", "max, khz }"),
];

const BY_NOMINAL: &[Mutation] = &[
    m(
        FILE,
        "(self.level_of(min_khz), self.level_of(max_khz))",
        "(self.levels.lowest, self.level_of(max_khz))",
    ),
    m(FILE, "of(floor).unwrap_or(highest).max(self.min_limit)", "of(floor).unwrap_or(highest)"),
    m(FILE, "of(floor).unwrap_or(highest)", "of(floor).unwrap_or(self.levels.lowest)"),
    m(FILE, "desired, max.max(min))", "desired, max)"),
    m(FILE, "self.level_of(khz), self.max_limit)", "self.level_of(khz), highest)"),
    m(FILE, "let max = max.min(nominal);", ""),
    m(FILE, "u64::MAX } else { self.levels.nominal }", "self.levels.nominal } else { u64::MAX }"),
    m(FILE, "_ if value >= high => high,", "_ if value >= high.max(low) => high.max(low),"),
    m(FILE, "of_nominal.div_ceil(self.levels.nominal)", "(of_nominal / self.levels.nominal)"),
    m(FILE, "* nominal).div_ceil(u64::from(nominal_khz))", "* nominal / u64::from(nominal_khz))"),
    m(FILE, ".clamp(lowest, highest)", ".min(highest)"),
];

/// By form.
const FLOOR_IS_HIGHEST: &[Mutation] = &[
    m(FILE, "if at_first { highest }", "if !at_first { highest }"),
    m(FILE, "(perf < capacity)", "(perf <= capacity + 1)"),
];

/// By form, in the order of the subject's.
pub const OF_FORM: [&[Mutation]; 4] = [UNLIMITED, LIMITED, BY_NOMINAL, FLOOR_IS_HIGHEST];
