// SPDX-License-Identifier: GPL-2.0-or-later
//! amd-pstate in passive mode as a [`Subject`]: the world of `shim.c`, executed with our `cpufreq/amd_pstate.rs`.
//!
//! One CPU whose firmware names any levels and frequencies. Limits change, with and without boost; performance is asked for by floors and targets
//! below, at and above the capacity, and frequencies within the limits and beyond. Compared are the three levels that the processor is asked for, and the
//! frequency that the driver believes to get from a question for performance.

mod mutations;

use crate::l0::extract::Pieces;
use crate::l0::mutate::{KernelFiles, Mutation, Sources};
use crate::l0::{
    OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_6_3, TREE_7_3, extract, oracle,
};
use schedtwin_kernel::cpufreq::amd_pstate::{AmdPstate, Form, Levels, Request};
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};

const CONFIG: usize = 0;
const LIMITS: usize = 1;
const ADJUST: usize = 2;
const SWITCH: usize = 3;

/// The module of the kernel crate that holds the arithmetic, without the kernel around it.
const FILES: KernelFiles = KernelFiles {
    library: "pub mod cpufreq { pub mod amd_pstate; }",
    files: &["cpufreq/amd_pstate.rs"],
};

const FORMS: [Form; 4] = [Form::Unlimited, Form::Limited, Form::ByNominal, Form::FloorIsHighest];
const NAMES: [&str; 4] = ["amd_pstate-6.1", "amd_pstate", "amd_pstate-7.3", "amd_pstate-6.3"];

/// One CPU; `FORM`: 0 against 6.1, 1 against 6.12, 2 against 7.3, 3 against 6.3.
pub struct AmdPstateCpu<const FORM: usize> {
    cpu: AmdPstate,
    levels: Levels,
    limits: [u64; 2],
    request: Request,
    /// Generator only.
    length: usize,
}

const NONE: Request = Request { min: 0, desired: 0, max: 0, khz: 0 };
const NO_LEVELS: Levels = Levels {
    highest: 1,
    nominal: 1,
    lowest_nonlinear: 1,
    lowest: 1,
    max_khz: 1,
    nominal_khz: 1,
    boost: false,
};

impl<const FORM: usize> AmdPstateCpu<FORM> {
    fn renew(&mut self) {
        self.cpu = AmdPstate::new(FORMS[FORM], self.levels);
        let [min, max] = self.limits;
        self.cpu.update_limits(min as u32, max as u32);
    }
}

impl<const FORM: usize> Subject for AmdPstateCpu<FORM> {
    const NAME: &'static str = NAMES[FORM];
    const TREE: &'static str = [TREE_6_1, TREE, TREE_7_3, TREE_6_3][FORM];

    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "config",
            args: &["highest", "nominal", "lowest_nonlinear", "lowest", "max_freq", "nominal_freq"],
        },
        OpSpec { name: "limits", args: &["min", "max", "boost"] },
        OpSpec { name: "adjust_perf", args: &["min", "target", "capacity"] },
        OpSpec { name: "fast_switch", args: &["khz"] },
    ];

    const SOURCES: Sources = Sources { modules: &["amd_pstate"], kernel: Some(&FILES) };
    const MUTATIONS: &'static [Mutation] = mutations::OF_FORM[FORM];
    const GOLDEN_SHOWN: u64 = 5;

    fn new() -> Self {
        AmdPstateCpu {
            cpu: AmdPstate::new(FORMS[FORM], NO_LEVELS),
            levels: NO_LEVELS,
            limits: [1, 1],
            request: NONE,
            length: 0,
        }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        let mut khz = 0;
        match record.op {
            CONFIG => {
                (self.levels, self.request) = (
                    Levels {
                        highest: a,
                        nominal: b,
                        lowest_nonlinear: c,
                        lowest: d,
                        max_khz: e as u32,
                        nominal_khz: f as u32,
                        boost: false,
                    },
                    NONE,
                );
                self.limits = [1, e];
                self.renew();
            }
            LIMITS => {
                (self.limits, self.levels.boost) = ([a, b], c != 0);
                self.renew();
            }
            ADJUST => {
                self.request = self.cpu.adjust_perf(a, b, c);
                khz = self.request.khz;
            }
            SWITCH => self.request = self.cpu.update_freq(a as u32),
            _ => panic!("unknown operation {}", record.op),
        }
        out.word("cpu", "min_perf", self.request.min);
        out.word("cpu", "des_perf", self.request.desired);
        out.word("cpu", "max_perf", self.request.max);
        out.word("policy", "cur", khz.into());
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        let record = |op, args| Some(Record { op, args });
        if step == 0 {
            self.length = 10 + rng.below(60) as usize;
            let highest = if rng.one_in(2) { 255 } else { 2 + rng.below(254) };
            let nominal = 1 + rng.below(highest);
            let lowest = 1 + rng.below(nominal);
            let lowest_nonlinear = lowest + rng.below(highest - lowest + 1);
            let max_khz = 400_000 + rng.below(6_000_000);
            // Frequencies in proportion to the levels, or as firmware says otherwise.
            let proportional = (max_khz * nominal / highest).max(1);
            let nominal_khz = if rng.one_in(3) { 1 + rng.below(max_khz) } else { proportional };
            return record(
                CONFIG,
                [highest, nominal, lowest_nonlinear, lowest, max_khz, nominal_khz],
            );
        }
        if step >= self.length {
            return None;
        }
        let most = u64::from(self.levels.max_khz);
        if step == 1 || rng.one_in(8) {
            let max = if rng.one_in(3) { most } else { 1 + rng.below(most) };
            let min = if rng.one_in(4) { max } else { 1 + rng.below(max) };
            return record(LIMITS, [min, max, rng.below(2), 0, 0, 0]);
        }
        if rng.one_in(3) {
            let khz = if rng.one_in(4) {
                1 + rng.below(most)
            } else {
                let [min, max] = self.limits;
                min + rng.below(max - min + 1)
            };
            return record(SWITCH, [khz, 0, 0, 0, 0, 0]);
        }
        let capacity = if rng.one_in(2) { 1024 } else { 1 + rng.below(1024) };
        let mut perf = || match rng.below(4) {
            0 => 0,
            1 => (capacity + rng.below(3)).saturating_sub(1),
            _ => rng.below(capacity + 200),
        };
        record(ADJUST, [perf(), perf(), capacity, 0, 0, 0])
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let text = extract::read(tree, "drivers/cpufreq/amd-pstate.c")?;
        let of = |name: &str| extract::function(&text, name).unwrap_or_default();
        let form = match (of("freq_to_perf").is_empty(), of("amd_pstate_update_min_max_limit")) {
            (false, _) => 2,
            (true, limits) if !limits.is_empty() => 1,
            _ if of("amd_pstate_adjust_perf").contains("min_perf = READ_ONCE(cpudata->highest") => {
                3
            }
            _ => 0,
        };
        if form != FORM {
            let other = NAMES[form];
            return Err(format!("this tree's driver is of another form: l0 {other}"));
        }
        let mut pieces = Pieces::default();
        pieces.add_if_there(extract::function, &text, EARLY);
        pieces.add(extract::function, &text, FUNCTIONS)?;
        pieces.write(build_dir, "amd_pstate_extract.h")?;
        let mut defined = Vec::new();
        if FORM == 2 {
            defined.push("-DBY_NOMINAL");
            if of("amd_pstate_adjust_perf").contains("_max_perf") {
                defined.push("-DOF_POLICY");
            }
        }
        oracle::compile("amd_pstate/shim.c", &[build_dir], build_dir, &[flags, &defined].concat())
    }
}

/// What only some releases have, and what all have, in an order in which it compiles.
const EARLY: &[&str] = &["freq_to_perf", "perf_to_freq", "amd_pstate_update_min_max_limit"];
const FUNCTIONS: &[&str] = &[
    "amd_pstate_update",
    "amd_pstate_update_freq",
    "amd_pstate_fast_switch",
    "amd_pstate_adjust_perf",
];
