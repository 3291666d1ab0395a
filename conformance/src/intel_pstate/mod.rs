// SPDX-License-Identifier: GPL-2.0-or-later
//! intel_pstate's algorithm without HWP as a [`Subject`]: the world of `shim.c`, executed with our `cpufreq/intel_pstate`.
//!
//! One CPU with P-states, a tick and percentages of its own. The hook is called for it by itself or by another one, with and
//! without a wakeup from I/O, at times about the sampling interval and the tick; the registers grow as of a CPU that is more
//! or less busy, at more or less of its base frequency. In between, hints are given (`adjust_perf`). Compared after each operation: limits, what is asked for and
//! what was written, the boost, the times, the sample and what was made of it.

mod mutations;

use crate::l0::extract::Pieces;
use crate::l0::mutate::{KernelFiles, Mutation, Sources};
use crate::l0::{OpSpec, Out, Record, Subject, extract, oracle};
use schedtwin_kernel::cpufreq::counts::Counts;
use schedtwin_kernel::cpufreq::intel_pstate::cpu::{PstateCpu, Pstates};
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};

const CONFIG: usize = 0;
const LIMITS: usize = 1;
const HOOK: usize = 2;
const ADJUST: usize = 3;

/// kHz of a P-state.
const SCALING: u64 = 100_000;

/// The modules of the kernel crate that hold the algorithm, without the kernel around it.
const FILES: KernelFiles = KernelFiles {
    library: "pub mod cpufreq { pub mod counts; pub mod intel_pstate { pub mod cpu; } }",
    files: &["cpufreq/counts.rs", "cpufreq/intel_pstate/cpu.rs"],
};

/// One CPU. `OLD`: against 6.1.
pub struct IntelPstate<const OLD: bool> {
    cpu: PstateCpu,
    tick: u64,
    /// The content of `PERF_CTL`, and of `HWP_REQUEST`.
    perf_ctl: u64,
    hwp_request: u64,
    /// Generator only.
    length: usize,
    now: u64,
    counts: Counts,
    busy: u64,
}

impl<const OLD: bool> IntelPstate<OLD> {
    fn report(&self, out: &mut Out) {
        let cpu = &self.cpu;
        out.word("cpu", "min_perf_ratio", cpu.min_perf_ratio as u64);
        out.word("cpu", "max_perf_ratio", cpu.max_perf_ratio as u64);
        out.word("cpu", "current_pstate", cpu.current as u64);
        out.word("", "PERF_CTL", self.perf_ctl);
        out.word("", "HWP_REQUEST", self.hwp_request);
        out.word("cpu", "iowait_boost", cpu.iowait_boost.into());
        out.word("cpu", "last_update", cpu.last_update);
        out.word("cpu", "last_sample_time", cpu.last_sample_time);
        out.word("sample", "time", cpu.sample_time);
        out.word("sample", "aperf", cpu.sample.aperf);
        out.word("sample", "mperf", cpu.sample.mperf);
        out.word("sample", "tsc", cpu.sample.tsc);
        out.word("cpu", "prev_aperf", cpu.prev.aperf);
        out.word("cpu", "prev_mperf", cpu.prev.mperf);
        out.word("cpu", "prev_tsc", cpu.prev.tsc);
        out.word("sample", "core_avg_perf", cpu.core_avg_perf as u64);
        out.word("sample", "busy_scaled", cpu.busy_scaled as u64);
    }

    fn hook(&mut self, rng: &mut Rng) -> Record {
        let step = match rng.below(10) {
            0 => 0,
            1 => self.tick + rng.below(3) - 1,
            2 => 10_000_000,
            3 => 9_999_999,
            4 => rng.magnitude(36),
            5 | 6 => rng.below(2 * self.tick),
            _ => rng.below(12_000_000),
        };
        self.now += step;
        let base = self.cpu.pstates.max_physical as u64 * SCALING;
        let tsc = (u128::from(step) * u128::from(base) / 1_000_000) as u64;
        let busy = match rng.below(6) {
            0 => 0,
            1 => 1024,
            // Registers are not read at the same instant.
            2 => 1020 + rng.below(10),
            _ => rng.below(1 + 256 * (1 + self.busy)),
        };
        let mperf = (u128::from(tsc) * u128::from(busy) / 1024) as u64;
        let turbo = self.cpu.pstates.turbo as u128;
        let ran_at = u128::from(rng.below(1025)) * turbo / self.cpu.pstates.max_physical as u128;
        let aperf = (u128::from(mperf) * ran_at / 1024) as u64;
        if !rng.one_in(40) {
            self.counts.tsc += tsc;
            self.counts.mperf += mperf;
            self.counts.aperf += aperf;
        }
        let Counts { aperf, mperf, tsc } = self.counts;
        let flags = u64::from(rng.one_in(3)) | u64::from(rng.one_in(12)) << 1;
        Record { op: HOOK, args: [self.now, flags, aperf, mperf, tsc, 0] }
    }
}

impl<const OLD: bool> Subject for IntelPstate<OLD> {
    const NAME: &'static str = if OLD { "intel_pstate-6.1" } else { "intel_pstate" };
    const TREE: &'static str = if OLD { crate::l0::TREE_6_1 } else { crate::l0::TREE };

    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "config",
            args: &["min", "max_physical", "turbo", "tick", "max_perf_pct", "min_perf_pct"],
        },
        OpSpec { name: "limits", args: &["min", "max"] },
        OpSpec { name: "hook", args: &["time", "flags", "aperf", "mperf", "tsc"] },
        OpSpec { name: "adjust_perf", args: &["min", "target", "capacity"] },
    ];

    const SOURCES: Sources = Sources { modules: &["intel_pstate"], kernel: Some(&FILES) };
    const MUTATIONS: &'static [Mutation] = mutations::ALL;
    const GOLDEN_SHOWN: u64 = 2;

    fn new() -> Self {
        let pstates = Pstates { min: 8, max_physical: 41, turbo: 48 };
        IntelPstate {
            cpu: PstateCpu::new(pstates, 100, 0),
            tick: 4_000_000,
            perf_ctl: 0,
            hwp_request: 0,
            length: 0,
            now: 0,
            counts: Counts::default(),
            busy: 0,
        }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        match record.op {
            CONFIG => {
                let pstates = Pstates { min: a as i32, max_physical: b as i32, turbo: c as i32 };
                self.cpu = PstateCpu::new(pstates, e as u32, f as u32);
                self.tick = d;
                self.perf_ctl = a;
            }
            LIMITS => self.cpu.update_perf_limits(a as u32, b as u32),
            HOOK => {
                let counts = Counts { aperf: c, mperf: d, tsc: e };
                let local = b >> 1 == 0;
                if local
                    && self.cpu.update_util(a, b & 1 != 0, self.tick)
                    && self.cpu.take_sample(a, counts)
                {
                    let target = self.cpu.target_pstate();
                    let target = self.cpu.prepare_request(target);
                    // Written only if it is another than what the driver remembers.
                    if target != self.cpu.current {
                        self.perf_ctl = target as u64;
                    }
                    self.cpu.current = target;
                }
            }
            ADJUST => {
                let (min, max, desired) = self.cpu.adjust_perf(a, b, c);
                self.cpu.current = desired;
                self.hwp_request = (min | max << 8 | desired << 16) as u64;
            }
            _ => panic!("unknown operation {}", record.op),
        }
        self.report(out);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        if step == 0 {
            self.length = 20 + rng.below(150) as usize;
            self.busy = rng.below(4);
            self.now = rng.pick(&[0, 1, 1_000_000_000]);
            let tick = rng.pick(&[10_000_000, 4_000_000, 3_333_333, 1_000_000]);
            let min = 1 + rng.below(20);
            let base = min + rng.below(40);
            let turbo = base + if rng.one_in(3) { 0 } else { rng.below(20) };
            let max_pct = if rng.one_in(2) { 100 } else { 1 + rng.below(100) };
            let min_pct = if rng.one_in(2) { 0 } else { rng.below(101) };
            return Some(Record { op: CONFIG, args: [min, base, turbo, tick, max_pct, min_pct] });
        }
        if step >= self.length {
            return None;
        }
        if rng.one_in(12) {
            let turbo = self.cpu.pstates.turbo as u64 * SCALING;
            let max = if rng.one_in(3) { turbo } else { rng.below(turbo + 1) };
            let min = if rng.one_in(4) { max } else { rng.below(turbo + 1) };
            return Some(Record { op: LIMITS, args: [min, max, 0, 0, 0, 0] });
        }
        if rng.one_in(10) {
            let capacity = if rng.one_in(2) { 1024 } else { 1 + rng.below(1024) };
            let mut perf = || match rng.below(4) {
                0 => 0,
                1 => (capacity + rng.below(3)).saturating_sub(1),
                _ => rng.below(capacity + 200),
            };
            return Some(Record { op: ADJUST, args: [perf(), perf(), capacity, 0, 0, 0] });
        }
        Some(self.hook(rng))
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let text = extract::read(tree, "drivers/cpufreq/intel_pstate.c")?;
        let mut pieces = Pieces::default();
        pieces.add(extract::macro_definition, &text, MACROS)?;
        pieces.add(extract::function, &text, EARLY)?;
        pieces.add(extract::block, &text, BLOCKS)?;
        pieces.write(build_dir, "intel_pstate_extract.h")?;
        for (file, names) in [("functions", FUNCTIONS), ("hints", HINTS)] {
            let mut pieces = Pieces::default();
            pieces.add(extract::function, &text, names)?;
            pieces.write(build_dir, &format!("intel_pstate_{file}.h"))?;
        }
        oracle::compile("intel_pstate/shim.c", &[build_dir], build_dir, flags)
    }
}

/// The macros that are taken out of `intel_pstate.c`, in an order in which it compiles.
const MACROS: &[&str] = &[
    "INTEL_PSTATE_SAMPLING_INTERVAL",
    "FRAC_BITS",
    "int_tofp",
    "fp_toint",
    "ONE_EIGHTH_FP",
    "EXT_BITS",
    "EXT_FRAC_BITS",
];
const EARLY: &[&str] = &["mul_fp", "div_fp", "mul_ext_fp", "div_ext_fp"];
const BLOCKS: &[&str] = &[
    "struct sample",
    "struct pstate_data",
    "struct vid_data",
    "struct global_params",
    "struct cpudata",
];
const HINTS: &[&str] = &["intel_cpufreq_hwp_update", "intel_cpufreq_adjust_perf"];
const FUNCTIONS: &[&str] = &[
    "intel_pstate_update_perf_limits",
    "intel_pstate_calc_avg_perf",
    "intel_pstate_sample",
    "get_avg_frequency",
    "get_avg_pstate",
    "get_target_pstate",
    "intel_pstate_prepare_request",
    "intel_pstate_update_pstate",
    "intel_pstate_adjust_pstate",
    "intel_pstate_update_util",
];
