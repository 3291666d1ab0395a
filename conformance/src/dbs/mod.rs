// SPDX-License-Identifier: GPL-2.0-or-later
//! ondemand and conservative as a [`Subject`]: the world of `shim.c`, executed with our `cpufreq/dbs`.
//!
//! One frequency domain of one to four CPUs, with a table that may have inefficient entries, and tunables of its own. Hooks come at
//! times about the sampling delay, the kworker whenever the sequence says so, after CPUs have idled for none, some or most of the
//! time or for many periods; the upper limit changes. Compared after each operation: what the driver was asked for, when the next
//! sample is due, the idle periods, conservative's steps, and of each CPU what it remembers.

mod mutations;

use crate::freq_table::{TABLE_FUNCTIONS, TABLE_MACROS};
use crate::l0::extract::{Pieces, Take};
use crate::l0::mutate::{KernelFiles, Mutation, Sources};
use crate::l0::{OpSpec, Out, Record, Subject, extract, oracle};
use schedtwin_kernel::cpufreq::dbs::sampling::{Bounds, PolicyDbs, Tuners};
use schedtwin_kernel::cpufreq::freq_table::{self, Relation};
use schedtwin_types::CpuId;
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};

const CONFIG: usize = 0;
const OPP: usize = 1;
const START: usize = 2;
const IDLE: usize = 3;
const HOOK: usize = 4;
const WORK: usize = 5;
const LIMIT: usize = 6;

const CPUS_MAX: usize = 4;

/// The modules of the kernel crate that decide, without the kernel around them.
const FILES: KernelFiles = KernelFiles {
    library: "pub mod cpufreq { pub mod freq_table; pub mod dbs { pub mod sampling; } }",
    files: &["cpufreq/freq_table.rs", "cpufreq/dbs/sampling.rs"],
};

/// One domain. `OLD`: of 6.1.
pub struct Dbs<const OLD: bool> {
    tuners: Tuners,
    cpus: u16,
    table: Vec<u32>,
    inefficient: Vec<bool>,
    max: u32,
    cur: u32,
    asked: u32,
    dbs: Option<PolicyDbs>,
    raised: bool,
    idle_us: [u64; CPUS_MAX],
    /// Generator only.
    length: usize,
    planned: Vec<Record>,
    now: u64,
    worked_at: u64,
}

impl<const OLD: bool> Dbs<OLD> {
    /// `__cpufreq_driver_target()`.
    fn target(&mut self, khz: u32, relation: Relation) {
        let limits = freq_table::Limits { min: self.table[0], max: self.max };
        let found = freq_table::target(&self.table, &self.inefficient, limits, khz, relation);
        if found != self.cur {
            (self.cur, self.asked) = (found, found);
        }
    }

    /// `cpufreq_dbs_governor_limits()`.
    fn limits(&mut self) {
        if self.max < self.cur {
            self.target(self.max, Relation::High);
        }
        let cur = self.cur;
        if let Some(dbs) = &mut self.dbs {
            dbs.limits(cur);
        }
    }

    fn work(&mut self, now_us: u64) {
        if !std::mem::take(&mut self.raised) {
            return;
        }
        let bounds = Bounds {
            min: self.table[0],
            max: self.max,
            lowest: self.table[0],
            highest: *self.table.last().expect("the sequence begins with a table"),
            cur: self.cur,
        };
        let idle = self.idle_us;
        let dbs = self.dbs.as_mut().expect("the governor has started");
        if let Some((khz, relation)) = dbs.sample(now_us, |cpu| idle[cpu.index()], bounds) {
            self.target(khz, relation);
        }
    }

    fn report(&self, out: &mut Out) {
        out.word("policy", "cur", self.cur.into());
        out.word("policy", "asked", self.asked.into());
        let Some(dbs) = &self.dbs else {
            // Before the start, and after the tunables are known.
            if self.cpus != 0 {
                for word in ["last_sample_time", "sample_delay_ns", "rate_mult", "idle_periods"] {
                    out.word("dbs", word, 0);
                }
                for word in ["work_in_progress", "requested_freq", "down_skip"] {
                    out.word("dbs", word, 0);
                }
                for _ in 0..3 * self.cpus {
                    out.word("cpu", "", 0);
                }
            }
            return;
        };
        out.word("dbs", "last_sample_time", dbs.last_sample_time);
        out.word("dbs", "sample_delay_ns", dbs.sample_delay_ns);
        out.word("dbs", "rate_mult", dbs.rate_mult.into());
        out.word("dbs", "idle_periods", dbs.idle_periods.into());
        out.word("dbs", "work_in_progress", self.raised.into());
        let steps = self.tuners.steps;
        out.word("dbs", "requested_freq", if steps { dbs.requested_freq.into() } else { 0 });
        out.word("dbs", "down_skip", if steps { dbs.down_skip.into() } else { 0 });
        const NAMES: [&str; CPUS_MAX] = ["cpu0", "cpu1", "cpu2", "cpu3"];
        for (name, cpu) in NAMES.iter().zip(&dbs.cpus) {
            out.word(name, "prev_cpu_idle", cpu.prev_cpu_idle);
            out.word(name, "prev_update_time", cpu.prev_update_time);
            out.word(name, "prev_load", cpu.prev_load.into());
        }
    }

    /// Plans the beginning of the sequence: the tunables and the table.
    fn plan(&mut self, rng: &mut Rng) {
        self.length = 24 + rng.below(200) as usize;
        let cpus = 1 + rng.below(CPUS_MAX as u64);
        let rate = rng.pick(&[2_000, 8_000, 10_000, 20_000, 100_000]);
        let any = 1 + rng.below(100);
        let up = rng.pick(&[95, 80, 63, any]);
        let factor = rng.pick(&[1, 1, 2, 3, 10]);
        let down = 1 + if rng.one_in(2) { 19 } else { rng.below(up) };
        let step = if rng.one_in(12) { 0 } else { rng.pick(&[5, 5, 20, 100]) };
        let config = [cpus, rng.below(2), rate, up, factor, down | step << 8];
        self.planned = vec![Record::new(CONFIG, &config)];
        let points = 1 + rng.below(10);
        // Once in a while a clock in kHz, whose steps would be none.
        let unit = if rng.one_in(20) { 1 } else { 5_000 };
        let mut khz = unit * (1 + rng.below(80));
        for point in 1..=points {
            let inefficient = point != points && rng.one_in(4);
            self.planned.push(Record::new(OPP, &[khz, inefficient.into()]));
            khz += unit * (1 + rng.below(100));
        }
        self.planned.push(Record::new(START, &[]));
        self.planned.reverse();
    }

    /// CPUs have idled since the last sample, and the kworker comes.
    fn sample(&mut self, rng: &mut Rng) -> Record {
        // Not together with the hook: a kworker waits, and rarely no time has passed at all.
        let late = if rng.one_in(8) { 0 } else { rng.below(3_000_000) };
        self.now += late;
        let now_us = self.now / 1000;
        let elapsed = now_us.saturating_sub(self.worked_at);
        self.worked_at = now_us;
        for cpu in 0..self.cpus {
            let idle = match rng.below(6) {
                0 => 0,
                1 => elapsed,
                // Jiffies and microseconds do not agree.
                2 => elapsed + rng.below(3),
                3 => elapsed * rng.below(8) / 100,
                _ => rng.below(elapsed + 1),
            };
            let idle = self.idle_us[usize::from(cpu)] + idle;
            self.planned.push(Record::new(IDLE, &[cpu.into(), idle]));
        }
        self.planned.insert(0, Record::new(WORK, &[now_us]));
        self.planned.pop().expect("a domain has CPUs")
    }
}

impl<const OLD: bool> Subject for Dbs<OLD> {
    const NAME: &'static str = if OLD { "dbs-6.1" } else { "dbs" };
    const TREE: &'static str = if OLD { crate::l0::TREE_6_1 } else { crate::l0::TREE };

    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "config",
            args: &["cpus", "conservative", "rate", "up", "factor", "down_and_step"],
        },
        OpSpec { name: "opp", args: &["khz", "inefficient"] },
        OpSpec { name: "start", args: &[] },
        OpSpec { name: "idle", args: &["cpu", "us"] },
        OpSpec { name: "hook", args: &["cpu", "time"] },
        OpSpec { name: "work", args: &["us"] },
        OpSpec { name: "limit", args: &["max"] },
    ];

    const SOURCES: Sources = Sources { modules: &["freq_table", "dbs"], kernel: Some(&FILES) };
    const MUTATIONS: &'static [Mutation] =
        if OLD { mutations::DEFERRED_AT_ANY_LOAD } else { mutations::ALL };
    const GOLDEN_SHOWN: u64 = 2;

    fn new() -> Self {
        Dbs {
            tuners: Tuners {
                steps: false,
                sampling_rate: 0,
                up_threshold: 0,
                down_threshold: 0,
                freq_step: 0,
                sampling_down_factor: 1,
                deferred_at_any_load: OLD,
            },
            cpus: 0,
            table: Vec::new(),
            inefficient: Vec::new(),
            max: 0,
            cur: 0,
            asked: 0,
            dbs: None,
            raised: false,
            idle_us: [0; CPUS_MAX],
            length: 0,
            planned: Vec::new(),
            now: 0,
            worked_at: 0,
        }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        match record.op {
            CONFIG => {
                self.cpus = a as u16;
                self.tuners = Tuners {
                    steps: b != 0,
                    sampling_rate: c as u32,
                    up_threshold: d as u32,
                    sampling_down_factor: e as u32,
                    down_threshold: f as u32 & 0xff,
                    freq_step: (f >> 8) as u32,
                    ..self.tuners
                };
            }
            OPP => {
                self.table.push(a as u32);
                self.inefficient.push(b != 0);
                (self.max, self.cur, self.asked) = (a as u32, a as u32, a as u32);
            }
            START => {
                let cpus = (0..self.cpus).map(CpuId);
                self.dbs = Some(PolicyDbs::new(self.tuners, self.cur, cpus));
            }
            IDLE => self.idle_us[a as usize] = b,
            HOOK => {
                let dbs = self.dbs.as_mut().expect("the governor has started");
                self.raised = self.raised || dbs.is_due(b);
            }
            WORK => self.work(a),
            LIMIT => {
                self.max = a as u32;
                self.limits();
            }
            _ => panic!("unknown operation {}", record.op),
        }
        self.report(out);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        if step == 0 {
            self.plan(rng);
        }
        if let Some(record) = self.planned.pop() {
            return Some(record);
        }
        if step >= self.length {
            return None;
        }
        if rng.one_in(16) {
            // The core looks limits up in the table.
            let max = self.table[rng.below(self.table.len() as u64) as usize];
            return Some(Record::new(LIMIT, &[max.into()]));
        }
        if self.raised && !rng.one_in(6) {
            return Some(self.sample(rng));
        }
        let delay = u64::from(self.tuners.sampling_rate) * 1000;
        self.now += match rng.below(8) {
            0 => 0,
            1 => delay,
            2 => delay - 1,
            3 => delay * (2 + rng.below(8)),
            4 => rng.magnitude(32),
            _ => rng.below(delay * 2),
        };
        // Run queues' clocks are not in step.
        let late = if rng.one_in(6) { rng.below(self.now.min(20_000) + 1) } else { 0 };
        Some(Record::new(HOOK, &[rng.below(self.cpus.into()), self.now - late]))
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let read = |name: &str| extract::read(tree, name);
        let header = read("drivers/cpufreq/cpufreq_governor.h")?;
        let governor = read("drivers/cpufreq/cpufreq_governor.c")?;
        let cpufreq = read("drivers/cpufreq/cpufreq.c")?;
        let cpufreq_h = read("include/linux/cpufreq.h")?;
        let od_header = read("drivers/cpufreq/cpufreq_ondemand.h")?;
        let ondemand = read("drivers/cpufreq/cpufreq_ondemand.c")?;
        let conservative = read("drivers/cpufreq/cpufreq_conservative.c")?;
        if header.contains("max_sample_load") == OLD {
            let other = if OLD { "dbs" } else { "dbs-6.1" };
            return Err(format!("this tree's conservative is of the other form: l0 {other}"));
        }
        let put = |name: &str, parts: &[(Take, &str, &[&str])]| -> Result<(), String> {
            let mut pieces = Pieces::default();
            parts.iter().try_for_each(|(take, text, names)| pieces.add(*take, text, names))?;
            pieces.write(build_dir, name)
        };
        put(
            "dbs_extract.h",
            &[
                (extract::macro_definition, &cpufreq_h, TABLE_MACROS),
                (extract::function, &cpufreq_h, TABLE_FUNCTIONS),
                (extract::function, &cpufreq, &["__resolve_freq", "__cpufreq_driver_target"]),
                (extract::function, &cpufreq_h, &["cpufreq_policy_apply_limits"]),
                (extract::block, &header, &["struct dbs_data", "struct policy_dbs_info"]),
                (extract::function, &header, &["gov_update_sample_delay"]),
                (extract::block, &header, &["struct cpu_dbs_info", "struct dbs_governor"]),
                (extract::function, &header, &["dbs_governor_of"]),
                (extract::block, &header, &["struct od_ops"]),
                (extract::statement, &governor, &PER_CPU),
                (extract::function, &governor, GOVERNOR_FUNCTIONS),
            ],
        )?;
        put(
            "dbs_ondemand.h",
            &[
                (extract::block, &od_header, &["struct od_policy_dbs_info"]),
                (extract::function, &od_header, &["to_dbs_info"]),
                (extract::block, &od_header, &["struct od_dbs_tuners"]),
                (extract::statement, &ondemand, &["static struct od_ops od_ops;"]),
                (extract::statement, &header, &["enum {OD_NORMAL_SAMPLE"]),
                (extract::function, &ondemand, ONDEMAND_FUNCTIONS),
            ],
        )?;
        put(
            "dbs_conservative.h",
            &[
                (extract::block, &conservative, &["struct cs_policy_dbs_info"]),
                (extract::function, &conservative, &["to_dbs_info"]),
                (extract::block, &conservative, &["struct cs_dbs_tuners"]),
                (extract::macro_definition, &conservative, &["DEF_FREQUENCY_STEP"]),
                (extract::function, &conservative, CONSERVATIVE_FUNCTIONS),
            ],
        )?;
        oracle::compile("dbs/shim.c", &[build_dir], build_dir, flags)
    }
}

/// What is taken out of `cpufreq_governor.c`, …
const PER_CPU: [&str; 1] = ["static DEFINE_PER_CPU(struct cpu_dbs_info"];
const GOVERNOR_FUNCTIONS: &[&str] = &[
    "dbs_update",
    "dbs_work_handler",
    "dbs_update_util_handler",
    "gov_set_update_util",
    "cpufreq_dbs_governor_start",
    "cpufreq_dbs_governor_limits",
];
/// … and of the governors, in an order in which it compiles.
const ONDEMAND_FUNCTIONS: &[&str] = &[
    "ondemand_powersave_bias_init",
    "dbs_freq_increase",
    "od_update",
    "od_dbs_update",
    "od_start",
];
const CONSERVATIVE_FUNCTIONS: &[&str] =
    &["get_freq_step", "cs_dbs_update", "cs_start", "cs_limits"];
