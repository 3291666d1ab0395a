// SPDX-License-Identifier: GPL-2.0-or-later
//! The deadline class's arithmetic: the constant bandwidth server, admission, and the heap of CPUs by deadline.
//!
//! One entity, whose reservation and state are set to any values that a call can bring about, and the clock that each
//! operation names; a limit of bandwidth; a heap of 16 CPUs. Clocks are drawn around the places where decisions
//! change: the deadline, the next period, the time at which what is left is just the reserved rate.
//!
//! **Not compared here:** whose bandwidth is active on which CPU, timers, the queue, pushes and pulls. Scenarios
//! hold these.

mod mutations;

use crate::l0::mutate::{KernelFiles, Mutation, Sources};
use crate::l0::{ARGS, OpSpec, Out, Record, Subject, extract, oracle};
use schedtwin_kernel::sched::deadline::{Cpudl, DlBw, DlEntity};
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, CpuMask, DlReservation};
use std::path::{Path, PathBuf};

// Operation numbers, as in `shim.c`.
const RESERVE: usize = 0;
const STATE: usize = 1;
const UPDATE: usize = 2;
const REPLENISH: usize = 3;
const SETUP: usize = 4;
const CONSTRAINED: usize = 5;
const SLEEP: usize = 6;
const CHARGE: usize = 7;
const PREEMPT: usize = 8;
const ADMIT: usize = 9;
const QUEUE: usize = 10;
const CLEAR: usize = 11;

/// CPUs of the heap.
const CPUS: usize = 16;
const CPU_NAMES: [&str; CPUS] = [
    "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13", "c14",
    "c15",
];
/// Operations of a sequence.
const STEPS: usize = 48;

/// The functions that are cut out of `sched.h`, `cpudeadline.h` and their C files, in an order in
/// which it compiles.
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("include/linux/sched/deadline.h", &["dl_time_before"]),
    ("kernel/sched/sched.h", &["dl_entity_is_special", "dl_entity_preempt"]),
    ("kernel/sched/core.c", &["to_ratio"]),
    (
        "kernel/sched/deadline.c",
        &[
            "__setparam_dl",
            "__dl_overflow",
            "replenish_dl_new_period",
            "setup_new_dl_entity",
            "dl_entity_overflow",
            "replenish_dl_entity",
            "update_dl_revised_wakeup",
            "dl_is_implicit",
            "update_dl_entity",
            "dl_next_period",
            "dl_check_constrained_dl",
            "dl_scaled_delta_exec",
            "task_non_contending",
        ],
    ),
    (
        "kernel/sched/cpudeadline.c",
        &[
            "parent",
            "left_child",
            "right_child",
            "cpudl_heapify_down",
            "cpudl_heapify_up",
            "cpudl_heapify",
            "cpudl_clear",
            "cpudl_set",
        ],
    ),
];

/// The modules of the kernel crate that the subject needs.
const FILES: KernelFiles = KernelFiles {
    library: "pub mod sched { pub mod deadline {
              pub mod cpudl; pub mod dl_bw; pub mod entity;
              pub use cpudl::Cpudl; pub use dl_bw::DlBw; pub use entity::{DlEntity, dl_time_before}; } }",
    files: &[
        "sched/deadline/cpudl.rs",
        "sched/deadline/dl_bw.rs",
        "sched/deadline/entity.rs",
    ],
};

/// An entity and a heap.
pub struct Deadline {
    dl: DlEntity,
    heap: Cpudl,
}

impl Deadline {
    fn report_entity(&self, out: &mut Out) {
        out.word("dl", "runtime", self.dl.runtime as u64);
        out.word("dl", "deadline", self.dl.deadline);
        out.word("dl", "throttled", self.dl.throttled as u64);
        out.word("dl", "yielded", self.dl.yielded as u64);
    }

    fn report_heap(&self, out: &mut Out) {
        let (deadline, cpu) = match self.heap.maximum() {
            Some((deadline, cpu)) => (deadline, cpu.index() as i64),
            None => (0, -1),
        };
        out.word("heap", "maximum", cpu as u64);
        out.word("heap", "deadline", deadline);
        let free = self.heap.free_cpus().iter().fold(0, |mask, cpu| mask | 1 << cpu.index());
        out.word("heap", "free", free);
        for (cpu, name) in CPU_NAMES.iter().enumerate() {
            out.word(name, "dl", self.heap.deadline_of(CpuId(cpu as u16)).unwrap_or(0));
        }
    }

    /// A clock around one of the places where something changes.
    fn clock(&self, rng: &mut Rng) -> u64 {
        let dl = &self.dl;
        let around = match rng.below(4) {
            0 => dl.deadline,
            1 => dl.next_period(),
            // What is left is the reserved rate until the deadline.
            2 => {
                let left = dl.runtime.max(0) as u128 * dl.dl_deadline as u128;
                dl.deadline.wrapping_sub((left / dl.dl_runtime.max(1) as u128) as u64)
            }
            _ => {
                let consumed = dl.runtime as i128 * dl.dl_period as i128;
                dl.deadline.wrapping_sub((consumed / dl.dl_runtime.max(1) as i128) as u64)
            }
        };
        let bits = if rng.one_in(3) { 34 } else { 12 };
        let off = rng.magnitude(bits);
        if rng.one_in(2) { around.wrapping_add(off) } else { around.wrapping_sub(off) }
    }
}

impl Subject for Deadline {
    const NAME: &'static str = "deadline";
    const OPS: &'static [OpSpec] = &[
        OpSpec { name: "reserve", args: &["runtime", "deadline", "period"] },
        OpSpec { name: "state", args: &["runtime", "deadline", "throttled", "yielded"] },
        OpSpec { name: "update", args: &["clock"] },
        OpSpec { name: "replenish", args: &["clock"] },
        OpSpec { name: "setup", args: &["clock"] },
        OpSpec { name: "constrained", args: &["clock"] },
        OpSpec { name: "sleep", args: &["clock"] },
        OpSpec { name: "charge", args: &["delta", "freq", "capacity"] },
        OpSpec { name: "preempt", args: &["deadline", "special"] },
        OpSpec { name: "admit", args: &["bw", "total", "capacity", "old", "new"] },
        OpSpec { name: "queue", args: &["cpu", "deadline"] },
        OpSpec { name: "clear", args: &["cpu"] },
    ];
    const SOURCES: Sources = Sources { modules: &["deadline"], kernel: Some(&FILES) };
    const MUTATIONS: &'static [Mutation] = mutations::DEADLINE;
    const GOLDEN_SHOWN: u64 = 3;

    fn new() -> Deadline {
        Deadline { dl: DlEntity::default(), heap: Cpudl::new(CpuMask::first(CPUS)) }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let arg = record.args;
        let dl = &mut self.dl;
        match record.op {
            RESERVE => {
                let [runtime, deadline, period, ..] = arg;
                dl.set_reservation(&DlReservation { runtime, deadline, period });
                out.word("dl", "dl_runtime", dl.dl_runtime);
                out.word("dl", "dl_deadline", dl.dl_deadline);
                out.word("dl", "dl_period", dl.dl_period);
                out.word("dl", "dl_bw", dl.dl_bw);
                out.word("dl", "dl_density", dl.dl_density);
            }
            STATE => {
                (dl.runtime, dl.deadline) = (arg[0] as i64, arg[1]);
                (dl.throttled, dl.yielded) = (arg[2] != 0, arg[3] != 0);
            }
            UPDATE => {
                dl.update(arg[0]);
                self.report_entity(out);
            }
            REPLENISH => {
                dl.replenish(arg[0]);
                self.report_entity(out);
            }
            SETUP => {
                dl.setup_new(arg[0]);
                self.report_entity(out);
            }
            CONSTRAINED => {
                out.word("dl", "asked", dl.is_between_periods(arg[0]) as u64);
                out.word("dl", "next_period", dl.next_period());
            }
            SLEEP => {
                let zero_lag_in = dl.zero_lag_in(arg[0]);
                out.word("dl", "given_up", (zero_lag_in < 0) as u64);
                out.word("dl", "timer", zero_lag_in.max(0) as u64);
            }
            CHARGE => {
                let charged = DlEntity::scaled_delta_exec(arg[0] as i64, arg[1], arg[2]);
                out.word("", "result", charged as u64);
            }
            PREEMPT => {
                let other = DlEntity { deadline: arg[0], ..*dl };
                let special = DlEntity { special: arg[1] != 0, ..*dl };
                out.word("", "result", special.preempts(&other) as u64);
            }
            ADMIT => {
                let limit = (arg[0] != u64::MAX).then_some(arg[0]);
                let bw = DlBw { bw: limit, total_bw: arg[1] };
                out.word("", "result", bw.overflows(arg[2], arg[3], arg[4]) as u64);
            }
            QUEUE => {
                self.heap.set(CpuId(arg[0] as u16), arg[1]);
                self.report_heap(out);
            }
            CLEAR => {
                self.heap.clear(CpuId(arg[0] as u16));
                self.report_heap(out);
            }
            _ => unreachable!("an operation of the list"),
        }
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        if step == STEPS {
            return None;
        }
        let mut args = [0; ARGS];
        // Half of the operations are the heap's.
        let op = match step {
            0 => RESERVE,
            1 => STATE,
            _ if rng.one_in(2) => QUEUE + rng.one_in(3) as usize,
            _ => rng.below(QUEUE as u64) as usize,
        };
        match op {
            RESERVE => {
                // What the call's checks let through: at least 1024 ns, runtime <= deadline <= period.
                let runtime = 1024 + rng.magnitude(38);
                let deadline = runtime + if rng.one_in(4) { 0 } else { rng.magnitude(39) };
                let period = deadline + if rng.one_in(2) { 0 } else { rng.magnitude(39) };
                args[..3].copy_from_slice(&[
                    runtime,
                    deadline,
                    if rng.one_in(4) { 0 } else { period },
                ]);
            }
            STATE => {
                // A tick overruns a few periods at most.
                let reserved = self.dl.dl_runtime;
                let left = match rng.below(4) {
                    0 => -((reserved as u128 * rng.below(5) as u128 / 2) as i64),
                    1 => rng.below(2 * reserved) as i64,
                    2 => reserved as i64 + rng.below(3) as i64 - 1,
                    _ => rng.below(5) as i64 - 2,
                };
                let deadline = if rng.one_in(8) { rng.next() } else { rng.magnitude(50) };
                args[..4].copy_from_slice(&[left as u64, deadline, rng.below(2), rng.below(2)]);
            }
            // Before the deadline the kernel would warn.
            SETUP => args[0] = self.dl.deadline.wrapping_add(rng.magnitude(40)),
            UPDATE | REPLENISH | CONSTRAINED | SLEEP => args[0] = self.clock(rng),
            CHARGE => {
                args[..3].copy_from_slice(&[
                    1 + rng.magnitude(40),
                    rng.below(1025),
                    rng.below(1025),
                ]);
            }
            PREEMPT => {
                let off = rng.below(5).wrapping_sub(2);
                args[..2]
                    .copy_from_slice(&[self.dl.deadline.wrapping_add(off), rng.one_in(3) as u64]);
            }
            ADMIT => {
                let bw = if rng.one_in(8) { u64::MAX } else { rng.magnitude(20) };
                let capacity = rng.magnitude(17);
                let (old, limit) = (rng.magnitude(20), (bw.min(1 << 20) * capacity) >> 10);
                let total = old + if rng.one_in(2) { rng.magnitude(24) } else { limit };
                let bits = if rng.one_in(2) { 2 } else { 20 };
                let new = rng.magnitude(bits);
                args[..5].copy_from_slice(&[bw, total, capacity, old, new]);
            }
            QUEUE => {
                // Equal deadlines are common, and times wrap.
                let base = if rng.one_in(16) { u64::MAX } else { 1 << 40 };
                args[..2]
                    .copy_from_slice(&[rng.below(CPUS as u64), base.wrapping_add(rng.below(12))]);
            }
            _ => args[0] = rng.below(CPUS as u64),
        }
        Some(Record { op, args })
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let read = |file: &str| {
            let path = tree.join(file);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("read {}: {error}", path.display()))
        };
        let missing = |name: &str| format!("{}: no {name}", tree.display());
        let (sched, header) = (read("kernel/sched/sched.h")?, read("kernel/sched/cpudeadline.h")?);
        let mut text = String::new();
        for (source, name) in [(&sched, "cap_scale"), (&header, "IDX_INVALID")] {
            text += &extract::macro_definition(source, name).ok_or(missing(name))?;
        }
        let deadline = read("kernel/sched/deadline.c")?;
        let scale = extract::macro_definition(&sched, "DL_SCALE");
        text += &scale
            .or_else(|| extract::macro_definition(&deadline, "DL_SCALE"))
            .ok_or(missing("DL_SCALE"))?;
        for name in ["struct cpudl_item", "struct cpudl"] {
            text += &extract::block(&header, name).ok_or(missing(name))?;
        }
        text += "#define CONFIG_CPU_FREQ_GOV_SCHEDUTIL 1\n";
        for (file, names) in FUNCTIONS {
            let source = read(file)?;
            for name in *names {
                text += &extract::function(&source, name).ok_or(missing(name))?;
            }
        }
        let file = build_dir.join("deadline_extract.h");
        std::fs::write(&file, text)
            .map_err(|error| format!("write {}: {error}", file.display()))?;
        oracle::compile("deadline/shim.c", &[build_dir], build_dir, flags)
    }
}
