// SPDX-License-Identifier: GPL-2.0-or-later
//! PELT as a [`Subject`]: the world of `shim.c`, executed with our `sched/pelt`.
//!
//! Four subjects, whose `pelt.c` is the same but for names:
//!
//! | subject | tree | what `fair.c` has of its own |
//! |---|---|---|
//! | [`Pelt61`] | 6.1.192 | util_est keeps two numbers; a new task's share is taken by its weight as it is (so that it always gets the cap, until 6.10 mended it) |
//! | [`Pelt612_95`] | 6.12 up to 6.12.107 | a group's runnable sum is propagated in 32 bits |
//! | [`Pelt`] | 6.12.117 | |
//! | [`Pelt73`] | 7.3 | the floor of an attached load; util_est learns from any utilisation |
//!
//! Differences: 7.3 takes what is added and taken away as signed numbers. Its sequences stay where that is the same.

mod mutations;
mod sequences;

use crate::l0::mutate::{KernelFiles, Mutation, Sources};
use crate::l0::{
    ARGS, OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_6_18, TREE_7_3, extract, oracle,
};
use mutations::{PELT, PELT_6_1, PELT_6_12_95, PELT_6_18, PELT_7_3};
use schedtwin_kernel::config::{AttachFloor, TgRunnableSum, UtilEstForm, UtilEstUpdate};
use schedtwin_kernel::sched::pelt::{self, Removed, RqClockPelt, SchedAvg};
use schedtwin_types::rng::Rng;
use sequences::op;
use std::path::{Path, PathBuf};

// Operation numbers, as in `shim.c`.
const SET_AVG: usize = 0;
const SET_SUM: usize = 1;
const BLOCKED_SE: usize = 2;
const UPDATE_SE: usize = 3;
const UPDATE_CFS_RQ: usize = 4;
const RT: usize = 5;
const DL: usize = 6;
const HW: usize = 7;
const IRQ: usize = 8;
const RQ_CLOCK: usize = 9;
const IDLE_CLOCK: usize = 10;
const OTHER: usize = 11;
const ATTACH: usize = 12;
const DETACH: usize = 13;
const REMOVE: usize = 14;
const CFS_LOAD_AVG: usize = 15;
const MIGRATE_LAG: usize = 16;
const PROPAGATE: usize = 17;
const INIT: usize = 18;
const POST_INIT: usize = 19;
const UTIL_EST_UPDATE: usize = 20;
const UTIL_EST_ENQUEUE: usize = 21;
const UTIL_EST_DEQUEUE: usize = 22;
const DECAY_LOAD: usize = 23;
const SCALE_IRQ: usize = 24;
const REWEIGHT: usize = 25;
const SET_TASK_RQ: usize = 26;
const TABLE: usize = 27;

/// Signals, in the order of the shim's `avg_by_number`.
const SE: usize = 0;
const CFS: usize = 1;
const RT_AVG: usize = 2;
const DL_AVG: usize = 3;
const HW_AVG: usize = 4;
const IRQ_AVG: usize = 5;
const GCFS: usize = 6;
const AVG_NAMES: [&str; 7] = ["se", "cfs", "rt", "dl", "hw", "irq", "gcfs"];

/// One CPU: an entity, its runqueue, a child group's runqueue, and the CPU's other signals.
pub type Pelt = PeltOf<LINUX_6_12>;
/// The same before 6.8.
pub type Pelt61 = PeltOf<LINUX_6_1>;
/// The same of the older 6.12.
pub type Pelt612_95 = PeltOf<LINUX_6_12_95>;
/// The same of 7.3.
pub type Pelt73 = PeltOf<LINUX_7_3>;
/// The same of 6.18.
pub type Pelt618 = PeltOf<LINUX_6_18>;

/// A form.
pub const LINUX_6_1: u8 = 0;
/// A form.
pub const LINUX_6_12_95: u8 = 1;
/// A form.
pub const LINUX_6_12: u8 = 2;
/// A form.
pub const LINUX_7_3: u8 = 3;
/// A form.
pub const LINUX_6_18: u8 = 4;

/// Names of the subjects by form.
const NAMES: [&str; 5] = ["pelt-6.1", "pelt-6.12.95", "pelt", "pelt-7.3", "pelt-6.18"];

/// The modules of the kernel crate that averages need.
const PELT_FILES: KernelFiles = KernelFiles {
    library: "pub mod config; pub mod sched { pub mod pelt; }",
    files: &[
        "config/",
        "sched/pelt.rs",
        "sched/pelt/attach.rs",
        "sched/pelt/clock.rs",
        "sched/pelt/util_est.rs",
    ],
};

/// The world of both.
pub struct PeltOf<const FORM: u8> {
    avgs: [SchedAvg; 7],
    clock: RqClockPelt,
    rq_clock: u64,
    clock_task: u64,
    cpu_scale: u64,
    freq_scale: u64,
    curr_idle: bool,
    removed: Removed,
    prop_runnable_sum: i64,
    gcfs_prop_runnable_sum: i64,
    /// The kind of the sequence (generator only).
    kind: u64,
    length: usize,
}

/// Two different signals at once.
fn pair(avgs: &mut [SchedAvg; 7], a: usize, b: usize) -> (&mut SchedAvg, &mut SchedAvg) {
    let [a, b] = avgs.get_disjoint_mut([a, b]).expect("two different signals");
    (a, b)
}

impl<const FORM: u8> PeltOf<FORM> {
    /// util_est is of two numbers.
    const OLD: bool = FORM == LINUX_6_1;
    const FLOOR: AttachFloor =
        if FORM == LINUX_7_3 { AttachFloor::Raised } else { AttachFloor::Absent };
    const RUNNABLE_SUM: TgRunnableSum = match FORM {
        LINUX_6_12_95 | LINUX_6_18 => TgRunnableSum::Bits32,
        _ => TgRunnableSum::Bits64,
    };

    fn out_avg(&self, out: &mut Out, which: usize) {
        let (name, sa) = (AVG_NAMES[which], &self.avgs[which]);
        out.word(name, "last_update_time", sa.last_update_time);
        out.word(name, "load_sum", sa.load_sum);
        out.word(name, "runnable_sum", sa.runnable_sum);
        out.word(name, "util_sum", sa.util_sum as u64);
        out.word(name, "period_contrib", sa.period_contrib as u64);
        out.word(name, "load_avg", sa.load_avg);
        out.word(name, "runnable_avg", sa.runnable_avg);
        out.word(name, "util_avg", sa.util_avg);
        out.word(name, "util_est", sa.util_est as u64);
        if Self::OLD {
            out.word(name, "util_est_ewma", sa.util_est_ewma as u64);
        }
    }

    fn out_clock(&self, out: &mut Out) {
        out.word("rq", "clock_pelt", self.clock.clock_pelt);
        out.word("rq", "lost_idle_time", self.clock.lost_idle_time);
        out.word("rq", "clock_idle", self.clock.clock_idle);
        out.word("rq", "clock_pelt_idle", self.clock.clock_pelt_idle);
    }

    fn out_removed(&self, out: &mut Out) {
        out.word("removed", "nr", self.removed.nr as u64);
        out.word("removed", "load_avg", self.removed.load_avg);
        out.word("removed", "util_avg", self.removed.util_avg);
        out.word("removed", "runnable_avg", self.removed.runnable_avg);
    }

    fn out_propagation(&self, out: &mut Out) {
        out.word("cfs", "prop_runnable_sum", self.prop_runnable_sum as u64);
        out.word("gcfs", "prop_runnable_sum", self.gcfs_prop_runnable_sum as u64);
    }

    fn propagate(&mut self, change: i64) {
        self.prop_runnable_sum = self.prop_runnable_sum.wrapping_add(change);
    }
}

impl<const FORM: u8> Subject for PeltOf<FORM> {
    const NAME: &'static str = NAMES[FORM as usize];
    const TREE: &'static str = [TREE_6_1, TREE, TREE, TREE_7_3, TREE_6_18][FORM as usize];

    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "set_avg",
            args: if Self::OLD {
                &["which", "load_avg", "runnable_avg", "util_avg", "util_est", "ewma"]
            } else {
                &["which", "load_avg", "runnable_avg", "util_avg", "util_est"]
            },
        },
        OpSpec {
            name: "set_sum",
            args: &["which", "time", "load_sum", "runnable_sum", "util_sum", "period_contrib"],
        },
        OpSpec { name: "blocked_se", args: &["now", "weight"] },
        OpSpec { name: "update_se", args: &["now", "on_rq", "runnable", "running", "weight"] },
        OpSpec { name: "update_cfs_rq", args: &["now", "weight", "runnable", "running"] },
        OpSpec { name: "rt", args: &["now", "running"] },
        OpSpec { name: "dl", args: &["now", "running"] },
        OpSpec { name: "hw", args: &["now", "capacity"] },
        OpSpec { name: "irq", args: &["clock", "running_ns", "freq_scale", "cpu_scale"] },
        OpSpec {
            name: "rq_clock",
            args: &["delta", "clock_task", "clock", "cpu_scale", "freq_scale", "idle"],
        },
        OpSpec { name: "idle_clock", args: &["clock_task", "clock"] },
        OpSpec { name: "other", args: &["clock_task", "clock", "class", "hw_pressure"] },
        OpSpec { name: "attach", args: &["weight"] },
        OpSpec { name: "detach", args: &["weight"] },
        OpSpec { name: "remove", args: &["weight"] },
        OpSpec { name: "cfs_load_avg", args: &["now", "weight", "runnable", "running"] },
        OpSpec { name: "migrate_lag", args: &["weight", "sched_clock", "throttled", "idle"] },
        OpSpec { name: "propagate", args: &["pending", "gcfs_weight", "weight"] },
        OpSpec { name: "init", args: &["is_task", "weight"] },
        OpSpec { name: "post_init", args: &["weight", "capacity"] },
        OpSpec {
            name: "util_est_update",
            args: if Self::OLD { &["capacity", "fastup"] } else { &["capacity"] },
        },
        OpSpec { name: "util_est_enqueue", args: &[] },
        OpSpec { name: "util_est_dequeue", args: &[] },
        OpSpec { name: "decay_load", args: &["value", "n"] },
        OpSpec { name: "scale_irq", args: &["util", "irq", "max"] },
        OpSpec { name: "reweight", args: &["old", "new"] },
        OpSpec { name: "set_task_rq", args: &["weight"] },
        OpSpec { name: "table", args: &["n"] },
    ];

    const SOURCES: Sources = Sources { modules: &["pelt"], kernel: Some(&PELT_FILES) };
    const MUTATIONS: &'static [Mutation] =
        [PELT_6_1, PELT_6_12_95, PELT, PELT_7_3, PELT_6_18][FORM as usize];

    const GOLDEN_SHOWN: u64 = if FORM == LINUX_6_12 { 16 } else { 4 };

    fn new() -> Self {
        PeltOf {
            avgs: [SchedAvg::default(); 7],
            clock: RqClockPelt::default(),
            rq_clock: 0,
            clock_task: 0,
            cpu_scale: 1024,
            freq_scale: 1024,
            curr_idle: false,
            removed: Removed::default(),
            prop_runnable_sum: 0,
            gcfs_prop_runnable_sum: 0,
            kind: 0,
            length: 0,
        }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        let avgs = &mut self.avgs;
        let mut touched: &[usize] = &[];
        let (mut clock, mut removed, mut propagation) = (false, false, false);
        let result = match record.op {
            SET_AVG => {
                let sa = &mut avgs[a as usize];
                (sa.load_avg, sa.runnable_avg, sa.util_avg, sa.util_est) = (b, c, d, e as u32);
                sa.util_est_ewma = f as u32;
                touched = &[SE, CFS, RT_AVG, DL_AVG, HW_AVG, IRQ_AVG, GCFS][a as usize..][..1];
                0
            }
            SET_SUM => {
                let sa = &mut avgs[a as usize];
                (sa.last_update_time, sa.load_sum, sa.runnable_sum) = (b, c, d);
                (sa.util_sum, sa.period_contrib) = (e as u32, f as u32);
                touched = &[SE, CFS, RT_AVG, DL_AVG, HW_AVG, IRQ_AVG, GCFS][a as usize..][..1];
                0
            }
            BLOCKED_SE => {
                touched = &[SE];
                pelt::update_load_avg_blocked_se(a, &mut avgs[SE], b) as u64
            }
            UPDATE_SE => {
                touched = &[SE];
                pelt::update_load_avg_se(a, &mut avgs[SE], b != 0, c, d != 0, e) as u64
            }
            UPDATE_CFS_RQ => {
                touched = &[CFS];
                pelt::update_load_avg_cfs_rq(a, &mut avgs[CFS], b, c, d != 0) as u64
            }
            RT => {
                touched = &[RT_AVG];
                pelt::update_rt_rq_load_avg(a, &mut avgs[RT_AVG], b != 0) as u64
            }
            DL => {
                touched = &[DL_AVG];
                pelt::update_dl_rq_load_avg(a, &mut avgs[DL_AVG], b != 0) as u64
            }
            HW => {
                touched = &[HW_AVG];
                pelt::update_hw_load_avg(a, &mut avgs[HW_AVG], b) as u64
            }
            IRQ => {
                (self.rq_clock, self.freq_scale, self.cpu_scale) = (a, c, d);
                touched = &[IRQ_AVG];
                pelt::update_irq_load_avg(&mut avgs[IRQ_AVG], a, b, c, d) as u64
            }
            RQ_CLOCK => {
                (self.clock_task, self.rq_clock) = (b, c);
                (self.cpu_scale, self.freq_scale, self.curr_idle) = (d, e, f != 0);
                self.clock.update_rq_clock_pelt(a, b, c, d, e, f != 0);
                clock = true;
                self.clock.rq_clock_pelt()
            }
            IDLE_CLOCK => {
                (self.clock_task, self.rq_clock) = (a, b);
                let [cfs, rt, dl] = [CFS, RT_AVG, DL_AVG].map(|which| avgs[which].util_sum);
                self.clock.update_idle_rq_clock_pelt(a, b, cfs, rt, dl);
                clock = true;
                self.clock.rq_clock_pelt()
            }
            OTHER => {
                (self.clock_task, self.rq_clock) = (a, b);
                let now = self.clock.rq_clock_pelt();
                let rt = pelt::update_rt_rq_load_avg(now, &mut avgs[RT_AVG], c == 1);
                let dl = pelt::update_dl_rq_load_avg(now, &mut avgs[DL_AVG], c == 2);
                let hw = pelt::update_hw_load_avg(a, &mut avgs[HW_AVG], d);
                let (freq, cpu) = (self.freq_scale, self.cpu_scale);
                let irq = pelt::update_irq_load_avg(&mut avgs[IRQ_AVG], b, 0, freq, cpu);
                touched = &[RT_AVG, DL_AVG, HW_AVG, IRQ_AVG];
                (rt | dl | hw | irq) as u64
            }
            ATTACH => {
                let (cfs, se) = pair(avgs, CFS, SE);
                let change = pelt::attach_entity(cfs, se, a, Self::FLOOR);
                self.propagate(change);
                (touched, propagation) = (&[SE, CFS], true);
                0
            }
            DETACH => {
                let (cfs, se) = pair(avgs, CFS, SE);
                let change = pelt::detach_entity(cfs, se, a);
                self.propagate(change);
                (touched, propagation) = (&[SE, CFS], true);
                0
            }
            REMOVE => {
                let time = avgs[CFS].last_update_time;
                pelt::remove_entity(&mut self.removed, &mut avgs[SE], a, time);
                (touched, removed) = (&[SE], true);
                0
            }
            CFS_LOAD_AVG => {
                let change = pelt::fold_removed(&mut avgs[CFS], &mut self.removed);
                let crossed = pelt::update_load_avg_cfs_rq(a, &mut avgs[CFS], b, c, d != 0);
                self.propagate(change.unwrap_or(0));
                (touched, removed, propagation) = (&[CFS], true, true);
                (change.is_some() | crossed) as u64
            }
            MIGRATE_LAG => {
                self.curr_idle = d != 0;
                if self.curr_idle {
                    let throttled = (c != u64::MAX).then_some(c);
                    let time = avgs[CFS].last_update_time;
                    let (pelt_idle, clock_idle) =
                        (self.clock.clock_pelt_idle, self.clock.clock_idle);
                    pelt::migrate_se_pelt_lag(
                        &mut avgs[SE],
                        a,
                        pelt_idle,
                        clock_idle,
                        throttled,
                        time,
                        b,
                    );
                }
                touched = &[SE];
                pelt::load_avg_is_decayed(&avgs[SE]) as u64
            }
            PROPAGATE => {
                let gcfs = avgs[GCFS];
                let (cfs, se) = pair(avgs, CFS, SE);
                pelt::propagate_util(cfs, se, &gcfs);
                pelt::propagate_runnable(cfs, se, &gcfs, Self::RUNNABLE_SUM);
                pelt::propagate_load(cfs, se, &gcfs, a as i64, b, c);
                self.gcfs_prop_runnable_sum = 0;
                self.propagate(a as i64);
                (touched, propagation) = (&[SE, CFS], true);
                1
            }
            INIT => {
                avgs[SE] = pelt::init_entity((a != 0).then_some(b));
                touched = &[SE];
                0
            }
            POST_INIT => {
                self.cpu_scale = b;
                let (util, load) = (avgs[CFS].util_avg, avgs[CFS].load_avg);
                let weight = if Self::OLD { a << 10 } else { a };
                pelt::post_init_entity_util_avg(&mut avgs[SE], util, load, weight, b);
                touched = &[SE];
                0
            }
            UTIL_EST_UPDATE => {
                self.cpu_scale = a;
                let form =
                    if Self::OLD { UtilEstForm::EnqueuedAndEwma } else { UtilEstForm::Single };
                let when = match FORM {
                    LINUX_7_3 => UtilEstUpdate::InDequeue,
                    LINUX_6_18 => UtilEstUpdate::BeforeDequeueUnlimited,
                    _ => UtilEstUpdate::BeforeDequeue,
                };
                let limit = pelt::util_est_limit(when, a);
                pelt::util_est_update_form(form, b != 0, &mut avgs[SE], limit);
                touched = &[SE];
                pelt::task_util_est(&avgs[SE])
            }
            UTIL_EST_ENQUEUE => {
                let (cfs, se) = pair(avgs, CFS, SE);
                pelt::util_est_enqueue(cfs, se);
                touched = &[CFS];
                pelt::_task_util_est(se)
            }
            UTIL_EST_DEQUEUE => {
                let (cfs, se) = pair(avgs, CFS, SE);
                pelt::util_est_dequeue(cfs, se);
                touched = &[CFS];
                0
            }
            DECAY_LOAD => pelt::decay_load(a, b),
            SCALE_IRQ => pelt::scale_irq_capacity(a, b, c),
            REWEIGHT => {
                let (cfs, se) = pair(avgs, CFS, SE);
                pelt::dequeue_load_avg(cfs, se, a);
                pelt::reweight_load_avg(se, b);
                pelt::enqueue_load_avg(cfs, se, b, Self::FLOOR);
                touched = &[SE, CFS];
                0
            }
            SET_TASK_RQ => {
                let (prev, next) = (avgs[CFS].last_update_time, avgs[GCFS].last_update_time);
                pelt::set_task_rq(&mut avgs[SE], a, prev, next);
                touched = &[SE];
                0
            }
            TABLE => {
                touched = &[SE, CFS, RT_AVG, DL_AVG, HW_AVG, IRQ_AVG];
                (clock, removed, propagation) = (true, true, true);
                pelt::RUNNABLE_AVG_YN_INV[(a % 32) as usize] as u64
            }
            _ => panic!("unknown operation {}", record.op),
        };

        out.word("", "result", result);
        // The child's runqueue comes last, after what is not a signal.
        for &which in touched.iter().filter(|&&which| which != GCFS) {
            self.out_avg(out, which);
        }
        if clock {
            self.out_clock(out);
        }
        if removed {
            self.out_removed(out);
        }
        if propagation {
            self.out_propagation(out);
        }
        if touched.contains(&GCFS) || record.op == TABLE {
            self.out_avg(out, GCFS);
        }
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        if step == 0 {
            self.kind = rng.below(5);
            self.length = 8 + rng.below(24) as usize;
        }
        if step == self.length {
            return None;
        }
        // The last operation reports everything.
        if step + 1 == self.length {
            return Some(op(TABLE, &[rng.below(32)]));
        }
        let any: &[usize] = &[
            SET_AVG,
            SET_SUM,
            BLOCKED_SE,
            UPDATE_SE,
            UPDATE_CFS_RQ,
            RT,
            DL,
            HW,
            IRQ,
            RQ_CLOCK,
            IDLE_CLOCK,
            OTHER,
            ATTACH,
            DETACH,
            REMOVE,
            CFS_LOAD_AVG,
            MIGRATE_LAG,
            PROPAGATE,
            INIT,
            POST_INIT,
            UTIL_EST_UPDATE,
            UTIL_EST_ENQUEUE,
            UTIL_EST_DEQUEUE,
            DECAY_LOAD,
            SCALE_IRQ,
            REWEIGHT,
            SET_TASK_RQ,
        ];
        let ops: &[usize] = match self.kind {
            // The life of a task; of a runqueue; of the CPU's other signals; groups.
            0 => &[
                UPDATE_SE,
                UPDATE_SE,
                UPDATE_SE,
                BLOCKED_SE,
                UTIL_EST_UPDATE,
                UTIL_EST_ENQUEUE,
                UTIL_EST_DEQUEUE,
                SET_AVG,
                DECAY_LOAD,
            ],
            1 => &[
                UPDATE_CFS_RQ,
                CFS_LOAD_AVG,
                CFS_LOAD_AVG,
                ATTACH,
                DETACH,
                REMOVE,
                UPDATE_SE,
                POST_INIT,
                INIT,
                SET_AVG,
                REWEIGHT,
            ],
            2 => {
                &[RT, DL, HW, IRQ, RQ_CLOCK, RQ_CLOCK, IDLE_CLOCK, OTHER, OTHER, SCALE_IRQ, SET_SUM]
            }
            3 => &[PROPAGATE, PROPAGATE, UPDATE_SE, CFS_LOAD_AVG, SET_AVG, SET_SUM, ATTACH],
            _ => any,
        };
        let which = ops[rng.below(ops.len() as u64) as usize];
        Some(self.random_operation(which, rng))
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let scheduler = tree.join("kernel/sched");
        let read = |name: &str| {
            let path = scheduler.join(name);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("read {}: {error}", path.display()))
        };
        let (fair, sched) = (read("fair.c")?, read("sched.h")?);
        let form = form_of(tree, &fair)?;
        if form != FORM {
            return Err(format!("this tree has another form: l0 {}", NAMES[form as usize]));
        }
        let subtract = if FORM == LINUX_7_3 { "__update_sa" } else { "sub_positive" };
        let mut text = String::new();
        for name in ["add_positive", subtract, "UTIL_EST_MARGIN"] {
            text += &extract::macro_definition(&fair, name).ok_or(format!("fair.c: no {name}"))?;
        }
        let functions = &[
            "enqueue_load_avg",
            "dequeue_load_avg",
            "load_avg_is_decayed",
            "cfs_rq_last_update_time",
            "add_tg_cfs_propagate",
            "update_tg_cfs_util",
            "update_tg_cfs_runnable",
            "update_tg_cfs_load",
            "propagate_entity_load_avg",
            "set_task_rq_fair",
            "update_cfs_rq_load_avg",
            "attach_entity_load_avg",
            "detach_entity_load_avg",
            "sync_entity_load_avg",
            "remove_entity_load_avg",
            "migrate_se_pelt_lag",
            "init_entity_runnable_average",
            "post_init_entity_util_avg",
            "task_util",
            "_task_util_est",
            "task_util_est",
            "util_est_enqueue",
            "util_est_dequeue",
            "util_est_update",
        ];
        // Whether the source has the configuration for which this text is meant: no-hz and groups.
        text += "#define CONFIG_NO_HZ_COMMON 1\n";
        // Not every form has these.
        let own: &[&str] = match FORM {
            LINUX_6_1 => &["within_margin"],
            LINUX_7_3 => &[],
            _ => &["task_runnable"],
        };
        for name in own.iter().chain(functions) {
            text += &extract::function(&fair, name).ok_or(format!("fair.c: no {name}()"))?;
        }
        if Self::OLD {
            for name in ["others_have_blocked", "__update_blocked_others"] {
                text += &extract::function(&fair, name).ok_or(format!("fair.c: no {name}()"))?;
            }
        }
        text += &extract::function(&sched, "scale_irq_capacity")
            .ok_or("sched.h: no scale_irq_capacity()")?;
        let file = build_dir.join("fair_extract.h");
        std::fs::write(&file, text)
            .map_err(|error| format!("write {}: {error}", file.display()))?;
        let form: &[&str] = match FORM {
            LINUX_6_1 => &["-DFORM_6_1"],
            LINUX_7_3 => &["-DFORM_7_3"],
            LINUX_6_18 => &["-DFORM_6_18"],
            _ => &[],
        };
        let flags = [flags, form].concat();
        oracle::compile("pelt/shim.c", &[&scheduler, build_dir], build_dir, &flags)
    }
}

/// Which form a tree has.
fn form_of(tree: &Path, fair: &str) -> Result<u8, String> {
    if sched_h_has_pair(tree)? {
        return Ok(LINUX_6_1);
    }
    if extract::macro_definition(fair, "__update_sa").is_some() {
        return Ok(LINUX_7_3);
    }
    let update = extract::function(fair, "util_est_update").unwrap_or_default();
    if !update.contains("arch_scale_cpu_capacity") {
        return Ok(LINUX_6_18);
    }
    let runnable = extract::function(fair, "update_tg_cfs_runnable").unwrap_or_default();
    Ok(if runnable.contains("u64 new_sum") { LINUX_6_12 } else { LINUX_6_12_95 })
}

/// Whether this subject is the one for a tree.
pub fn tree_has_form<const FORM: u8>(tree: &Path) -> Result<(), String> {
    let path = tree.join("kernel/sched/fair.c");
    let fair = std::fs::read_to_string(&path)
        .map_err(|error| format!("read {}: {error}", path.display()))?;
    let form = form_of(tree, &fair)?;
    if form == FORM { Ok(()) } else { Err(format!("this tree is for l0 {}", NAMES[form as usize])) }
}

/// Whether a tree's util_est is a structure of two numbers.
fn sched_h_has_pair(tree: &Path) -> Result<bool, String> {
    let path = tree.join("include/linux/sched.h");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("read {}: {error}", path.display()))?;
    Ok(extract::block(&text, "struct util_est").is_some())
}
