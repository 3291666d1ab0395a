// SPDX-License-Identifier: GPL-2.0-or-later
//! Max aggregation as a [`Subject`]: the world of `max.c`, executed with our `sched/demand/uclamp`.
//!
//! Three CPUs, six tasks, four task groups one of which is in another. At random tasks are queued, leave, have
//! their dequeue delayed, move as delayed sleepers, change class and clamps (−1 among them), fork and move between groups,
//! and groups' files are written; 5 to 20 buckets, system-wide limits, the key on from the start or turned on by the
//! first user. Compared after each operation: of every queue both values and the flag of an idle one; of every task
//! what it asks for, whether it did so itself, whether it is counted, and what it gets; the buckets of the CPU
//! concerned; what a governor sees that is told in the middle of an enqueue.
//!
//! In between it is asked what follows: `util_fits_cpu` with the task's and with the queue's clamps, `task_fits_cpu`,
//! `cpu_overutilized`, `uclamp_rq_is_capped`, `rt_task_fits_capacity`, what EAS takes for the demand of the CPU with the
//! task and without it (`eenv_pd_max_util`), and before 6.8 `uclamp_rq_util_with`.
//!
//! **Not here:** the loop of `find_energy_efficient_cpu` ([`crate::feec`]); writing sysctls later than at
//! boot and `sched_reset_on_fork`, which ours has not; where in `enqueue_task_fair` a governor is told (the classes are empty here:
//! a unit test holds the order within our `enqueue_task`).

use super::{CPU_NAMES, CPUS, FLAGS, GROUPS, TASK_NAMES, TASKS, mutations};
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{
    OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_6_18, TREE_7_3, extract, oracle,
};
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{Config, EffectiveCpuUtil, RunnableBoost, Uclamp, UclampOrder};
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_kernel::sched::TaskKind;
use schedtwin_kernel::sched::demand::conformance::DemandSteps;
use schedtwin_kernel::sched::demand::uclamp::conformance::ClampSteps;
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, Policy, SchedAttr, TaskGroupId, TaskId};
use std::path::{Path, PathBuf};

// Operation numbers, as in `max.c`.
const BOOT: usize = 0;
const ENQUEUE: usize = 1;
const DEQUEUE: usize = 2;
const ATTRIBUTES: usize = 3;
const MOVE: usize = 4;
const WRITE: usize = 5;
const FORK: usize = 6;
const SIGNALS: usize = 7;
const CPU: usize = 8;
const TASK: usize = 9;
const ASK: usize = 10;

/// A form of [`Max`].
pub const LINUX_6_1: u8 = 0;
/// A form of [`Max`].
pub const LINUX_6_12: u8 = 1;
/// A form of [`Max`]: since 6.16 a task is counted before its class hears of it.
pub const LINUX_6_18: u8 = 2;
/// A form of [`Max`]: like 6.18's.
pub const LINUX_7_3: u8 = 3;

/// Three CPUs whose tasks have clamps.
pub struct Max<const FORM: u8> {
    kernel: Kernel,
    tasks: [TaskId; TASKS],
    buckets: usize,
    /// Generator only: operations to come.
    length: usize,
}

/// A kernel, its tasks queued nowhere.
fn boot(form: u8, args: &[u64; crate::l0::ARGS]) -> (Kernel, [TaskId; TASKS]) {
    let [buckets, key, rt_default, util_min, util_max, _] = *args;
    let opps = &[(1_000_000, 1000)];
    let device_tree = DeviceTree::of_domains(&[(CPUS as u16, 1024, opps)]);
    let mut config = Config {
        fair_server_runtime: 0,
        fair_group_sched: true,
        uclamp: if key != 0 { Uclamp::On } else { Uclamp::KeyOff },
        uclamp_buckets: buckets as u32,
        uclamp_min_rt_default: rt_default as u32,
        uclamp_util_min: util_min as u32,
        uclamp_util_max: util_max as u32,
        uclamp_order: if form == LINUX_6_12 {
            UclampOrder::AfterEnqueue
        } else {
            UclampOrder::BeforeEnqueue
        },
        ..Config::linux_6_12()
    };
    if form == LINUX_6_1 {
        config.effective_cpu_util = EffectiveCpuUtil::HeadroomLast;
        config.runnable_boost = RunnableBoost::Off;
    }
    let mut kernel = Kernel::boot(device_tree, config);
    // Another default of RT tasks turns the key on; here the sequence says whether it is, as in `max.c`.
    let limited = (util_min, util_max) != (1024, 1024);
    DemandSteps(&mut kernel).turn_uclamp_key(key != 0 || limited);
    for parent in [0, 1, 0] {
        kernel.new_task_group(TaskGroupId(parent), 1024);
    }
    let tasks = std::array::from_fn(|_| kernel.new_task(None, TaskKind::User));
    // A task of a test has used nothing so far.
    for &task in &tasks {
        let inside = kernel.inside_mut();
        inside.se[inside.tasks[task].se].avg = Default::default();
    }
    (kernel, tasks)
}

const BOOT_DEFAULT: [u64; crate::l0::ARGS] = [5, 0, 1024, 1024, 1024, 0];

impl<const FORM: u8> Max<FORM> {
    const OLD: bool = FORM == LINUX_6_1;

    fn report(&mut self, result: u64, cpu: CpuId, out: &mut Out) {
        let steps = ClampSteps(&mut self.kernel);
        out.word("", "result", result);
        out.word("", "key", steps.key() as u64);
        for (number, name) in CPU_NAMES.iter().enumerate() {
            let rq = steps.queue(CpuId(number as u16));
            out.word(name, "min", rq.clamps().min as u64);
            out.word(name, "max", rq.clamps().max as u64);
            out.word(name, "idle", rq.is_idle() as u64);
        }
        for (name, &task) in TASK_NAMES.iter().zip(&self.tasks) {
            let view = steps.task(task);
            out.word(name, "asked.min", view.asked.min as u64);
            out.word(name, "own.min", view.request.min.is_some() as u64);
            out.word(name, "active.min", view.active as u64);
            out.word(name, "min", view.effective.min as u64);
            out.word(name, "asked.max", view.asked.max as u64);
            out.word(name, "own.max", view.request.max.is_some() as u64);
            out.word(name, "active.max", view.active as u64);
            out.word(name, "max", view.effective.max as u64);
        }
        for (number, name) in BUCKETS.iter().enumerate().take(self.buckets) {
            let packed = |(value, tasks): (u32, u32)| u64::from(value << 8 | tasks);
            let [min, max] = steps.queue(cpu).bucket(number).map(packed);
            out.word(name, "min", min);
            out.word(name, "max", max);
        }
    }

    /// A clamp that somebody asks for: an edge of a bucket, what others ask for, anything.
    fn clamp(&self, rng: &mut Rng) -> u64 {
        let delta = (1024 + self.buckets as u64 / 2) / self.buckets as u64;
        match rng.below(8) {
            0 => 1024,
            1 => 0,
            2..=3 => (delta * rng.below(self.buckets as u64 + 1) + rng.below(3)).clamp(1, 1025) - 1,
            4 => rng.pick(&[1, 383, 512, 1023]),
            _ => rng.below(1025),
        }
    }

    fn attributes(&self, task: u64, rng: &mut Rng) -> [u64; crate::l0::ARGS] {
        let given = rng.below(4);
        let flags = (given & 1) * FLAGS[0] + (given >> 1) * FLAGS[1];
        let mut clamp = || if rng.one_in(6) { u64::from(u32::MAX) } else { self.clamp(rng) };
        let (a, b) = (clamp(), clamp());
        // Mostly a pair that is accepted.
        let (min, max) = if a > b && b % 4 != 0 { (b, a) } else { (a, b) };
        [task, rng.one_in(4) as u64, flags, min, max, 0]
    }
}

const BUCKETS: [&str; 20] = [
    "bucket0", "bucket1", "bucket2", "bucket3", "bucket4", "bucket5", "bucket6", "bucket7",
    "bucket8", "bucket9", "bucket10", "bucket11", "bucket12", "bucket13", "bucket14", "bucket15",
    "bucket16", "bucket17", "bucket18", "bucket19",
];

impl<const FORM: u8> Subject for Max<FORM> {
    const NAME: &'static str = ["uclamp-6.1", "uclamp", "uclamp-6.18", "uclamp-7.3"][FORM as usize];
    const TREE: &'static str = [TREE_6_1, TREE, TREE_6_18, TREE_7_3][FORM as usize];

    const OPS: &'static [OpSpec] = &[
        OpSpec { name: "boot", args: &["buckets", "key", "rt_default", "util_min", "util_max"] },
        OpSpec { name: "enqueue", args: &["task", "cpu", "wakes"] },
        OpSpec { name: "dequeue", args: &["task", "delays"] },
        OpSpec { name: "attributes", args: &["task", "rt", "flags", "min", "max"] },
        OpSpec { name: "move", args: &["task", "group"] },
        OpSpec { name: "write", args: &["group", "clamp", "percent"] },
        OpSpec { name: "fork", args: &["parent", "child"] },
        OpSpec { name: "signals", args: &["cpu", "util", "est", "rt", "dl", "irq"] },
        OpSpec { name: "cpu", args: &["cpu", "capacity", "left", "pressure", "rt_nr", "bw"] },
        OpSpec { name: "task", args: &["task", "util", "est"] },
        OpSpec { name: "ask", args: &["task", "cpu", "util"] },
    ];

    const SOURCES: Sources = Sources { modules: &["uclamp"], kernel: None };
    const MUTATIONS: &'static [Mutation] = match FORM {
        LINUX_6_1 => mutations::MAX_BEFORE_6_8,
        LINUX_6_12 => mutations::MAX_SINCE_6_8,
        _ => mutations::MAX_SINCE_6_16,
    };

    const GOLDEN_SHOWN: u64 = 3;
    const GOLDEN_CASES: u64 = 3_000;

    fn new() -> Self {
        let (kernel, tasks) = boot(FORM, &BOOT_DEFAULT);
        Max { kernel, tasks, buckets: 5, length: 0 }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        let task = self.tasks[a as usize % TASKS];
        let mut cpu = self.kernel.inside().tasks[task].cpu;
        let mut steps = ClampSteps(&mut self.kernel);
        let mut result = 0;
        match record.op {
            BOOT => {
                (self.kernel, self.tasks) = boot(FORM, &record.args);
                (self.buckets, cpu) = (a as usize, CpuId(0));
            }
            ENQUEUE => {
                cpu = CpuId(b as u16);
                let seen = steps.enqueue(cpu, task, c != 0);
                result = u64::from(seen.min << 16 | seen.max);
            }
            DEQUEUE => steps.dequeue(task, b != 0),
            ATTRIBUTES => {
                let clamp = |flag: u64, value: u64| (c & flag != 0).then_some(value as u16);
                let attr = SchedAttr {
                    policy: if b != 0 { Policy::Fifo } else { Policy::Normal },
                    rt_priority: if b != 0 { 50 } else { 0 },
                    util_min: clamp(FLAGS[0], d),
                    util_max: clamp(FLAGS[1], e),
                    ..SchedAttr::default()
                };
                result = steps.set_attributes(task, &attr) as u64;
            }
            MOVE => {
                result = steps.is_queued(task).0 as u64;
                steps.move_to(task, TaskGroupId(b as u32));
            }
            WRITE => {
                let percent = Some(c as u32);
                let (min, max) = if b == 0 { (percent, None) } else { (None, percent) };
                self.kernel.cpu_uclamp_write(TaskGroupId(a as u32), min, max);
                cpu = CpuId(0);
            }
            FORK => {
                steps.fork(task, self.tasks[b as usize]);
                cpu = CpuId(0);
            }
            SIGNALS => {
                cpu = CpuId(a as u16);
                DemandSteps(&mut self.kernel).change_averages(cpu, |averages| {
                    (averages.cfs.util_avg, averages.cfs.util_est) = (b, c as u32);
                    (averages.rt.util_avg, averages.dl.util_avg) = (d, e);
                    averages.irq.util_avg = f;
                });
            }
            CPU => {
                cpu = CpuId(a as u16);
                let mut steps = DemandSteps(&mut self.kernel);
                steps.set_capacity(cpu, b);
                steps.set_rt_runnable(cpu, e != 0);
                steps.set_running_bw(cpu, f);
                let rq = &mut self.kernel.inside_mut().rq[cpu];
                (rq.cpu_capacity, rq.cpufreq_pressure) = (c, d);
            }
            TASK => {
                let inside = self.kernel.inside_mut();
                let avg = &mut inside.se[inside.tasks[task].se].avg;
                (avg.util_avg, avg.util_est) = (b, c as u32);
                cpu = CpuId(0);
            }
            ASK => {
                let answers = steps.ask(task, CpuId(b as u16), c);
                out.word("", "fits_task", answers.fits_task as u64);
                out.word("", "fits_queue", answers.fits_queue as u64);
                out.word("", "task_fits", answers.task_fits as u64);
                out.word("", "overutilized", answers.overutilized as u64);
                out.word("", "capped", answers.capped as u64);
                out.word("", "rt_fits", answers.rt_fits as u64);
                out.word("", "demand_with", answers.demand_with);
                out.word("", "demand_without", answers.demand_without);
                if Self::OLD {
                    out.word("", "util_of_queue", answers.util_of_queue);
                    out.word("", "util_with_task", answers.util_with_task);
                }
                return;
            }
            _ => panic!("unknown operation {}", record.op),
        }
        self.report(result, cpu, out);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        let record = |op, args| Some(Record { op, args });
        if step == 0 {
            self.length = 24 + rng.below(100) as usize;
            let buckets = if rng.one_in(2) { 5 } else { 5 + rng.below(16) };
            let (a, b) = (self.clamp(rng), self.clamp(rng));
            let (min, max) = if rng.one_in(3) { (a.min(b), a.max(b)) } else { (1024, 1024) };
            let rt_default = if rng.one_in(2) { 1024 } else { self.clamp(rng) };
            return record(BOOT, [buckets, rng.one_in(2) as u64, rt_default, min, max, 0]);
        }
        if step >= self.length {
            return None;
        }
        let task = rng.below(TASKS as u64);
        let cpu = rng.below(CPUS as u64);
        let (queued, delayed) = ClampSteps(&mut self.kernel).is_queued(self.tasks[task as usize]);
        match rng.below(16) {
            0..=5 if !queued => {
                // A delayed sleeper that moves goes on sleeping.
                record(ENQUEUE, [task, cpu, 0, 0, 0, 0])
            }
            0..=2 if delayed => {
                let home = self.kernel.inside().tasks[self.tasks[task as usize]].cpu;
                record(ENQUEUE, [task, home.0 as u64, 1, 0, 0, 0])
            }
            0..=5 => {
                let delays = !Self::OLD && !delayed && rng.one_in(3);
                record(DEQUEUE, [task, delays as u64, 0, 0, 0, 0])
            }
            6..=7 => record(ATTRIBUTES, self.attributes(task, rng)),
            8 => record(MOVE, [task, rng.below(GROUPS), 0, 0, 0, 0]),
            9 => {
                let percent = rng.pick(&[0, 2_000, 5_000, 9_999, 10_000]);
                let percent = if rng.one_in(2) { percent } else { rng.below(10_001) };
                record(WRITE, [1 + rng.below(GROUPS - 1), rng.below(2), percent, 0, 0, 0])
            }
            10 if !queued && !delayed => {
                let parent = (task + 1 + rng.below(TASKS as u64 - 1)) % TASKS as u64;
                record(FORK, [parent, task, 0, 0, 0, 0])
            }
            11 => {
                let mut rare = || if rng.one_in(3) { rng.below(600) } else { 0 };
                let (rt, dl, irq) = (rare(), rare(), rare());
                record(SIGNALS, [cpu, rng.below(1100), rng.below(1100), rt, dl, irq])
            }
            12 => {
                let capacity = if rng.one_in(3) { 1024 } else { 1 + rng.below(1024) };
                let left = capacity - rng.below(capacity / 4 + 1);
                let pressure = if rng.one_in(3) { rng.below(capacity) } else { 0 };
                let bandwidth = rng.pick(&[0, 0, 52_428, 1 << 19]);
                record(CPU, [cpu, capacity, left, pressure, rng.one_in(3) as u64, bandwidth])
            }
            13 => record(TASK, [task, rng.below(1100), rng.below(1100), 0, 0, 0]),
            _ => {
                let capacity = self.kernel.inside().rq[CpuId(cpu as u16)].cpu_capacity;
                let edge = (capacity * 4 / 5 + rng.below(4)).saturating_sub(2);
                let util = if rng.one_in(3) { edge } else { rng.below(1100) };
                record(ASK, [task, cpu, util, 0, 0, 0])
            }
        }
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let files = super::Files::read(tree)?;
        let old = extract::function(&files.governor, "sugov_effective_cpu_perf").is_none();
        if old != Self::OLD {
            let other = if Self::OLD { "uclamp" } else { "uclamp-6.1" };
            return Err(format!("this tree is of the other form: l0 {other}"));
        }
        let mut structs = super::Cut::default();
        structs
            .add(extract::block(&files.sched_h, "struct uclamp_bucket"), "struct uclamp_bucket")?;
        structs.add(extract::block(&files.sched_h, "struct uclamp_rq"), "struct uclamp_rq")?;
        structs.add(extract::block(&files.task_h, "struct uclamp_se"), "struct uclamp_se")?;
        structs.write(build_dir, "uclamp_structs.h")?;

        let mut text = super::Cut::default();
        // In the header or, in older releases, in `core.c`.
        let small = [files.sched_h.as_str(), &files.core].concat();
        text.macros(&small, &["for_each_clamp_id", "UCLAMP_BUCKET_DELTA"])?;
        text.functions(
            &files.sched_h,
            &["uclamp_rq_get", "uclamp_rq_set", "uclamp_rq_is_idle", "uclamp_is_used"],
        )?;
        if matches!(FORM, LINUX_6_18 | LINUX_7_3) {
            text.functions(&files.sched_h, &["sched_uclamp_enable"])?;
        }
        text.functions(&small, &["uclamp_none", "uclamp_bucket_id", "uclamp_se_set"])?;
        text.functions(
            &files.sched_h,
            &["cpu_bw_dl", "cpu_util_dl", "cpu_util_rt", "cpu_util_irq", "scale_irq_capacity"],
        )?;
        text.variables(&files.core, super::SYSCTLS)?;
        text.functions(&files.core, QUEUES)?;
        super::groups(&mut text, &files.core)?;
        text.functions(&files.attributes, super::ATTRIBUTES)?;
        text.macros(&files.fair, &["lsub_positive", "fits_capacity"])?;
        text.functions(&files.fair, &["task_util", "_task_util_est", "task_util_est"])?;
        if Self::OLD {
            text.functions(&files.sched_h, &["cpu_util_cfs"])?;
            text.functions(&files.fair, &["cpu_util_next"])?;
            text.functions(&files.sched_h, &["uclamp_rq_util_with"])?;
        } else {
            text.functions(&files.fair, &["cpu_util", "cpu_util_cfs", "get_actual_cpu_capacity"])?;
        }
        text.functions(&files.sched_h, &["uclamp_rq_is_capped"])?;
        text.functions(&files.hook_h, &["map_util_perf"])?;
        if !Self::OLD {
            text.functions(&files.governor, &["sugov_effective_cpu_perf"])?;
        }
        text.functions(&files.fair, &["util_fits_cpu", "task_fits_cpu", "cpu_overutilized"])?;
        text.functions(&files.utilisation, &["effective_cpu_util"])?;
        text.functions(&files.fair, &["eenv_pd_max_util"])?;
        text.functions(&files.rt, &["rt_task_fits_capacity"])?;
        text.write(build_dir, "uclamp_extract.h")?;
        let form: &[&str] = if Self::OLD { &["-DFORM_6_1"] } else { &[] };
        oracle::compile("uclamp/max.c", &[build_dir], build_dir, &[flags, form].concat())
    }
}

/// The functions that are taken out of `core.c` for queues, in an order in which it compiles.
const QUEUES: &[&str] = &[
    "uclamp_idle_value",
    "uclamp_idle_reset",
    "uclamp_rq_max_value",
    "__uclamp_update_util_min_rt_default",
    "uclamp_update_util_min_rt_default",
    "uclamp_tg_restrict",
    "uclamp_eff_get",
    "uclamp_eff_value",
    "uclamp_rq_inc_id",
    "uclamp_rq_dec_id",
    "uclamp_rq_inc",
    "uclamp_rq_dec",
    "uclamp_rq_reinc_id",
    "uclamp_update_active",
    "uclamp_update_active_tasks",
    "enqueue_task",
    "dequeue_task",
    "uclamp_fork",
    "uclamp_post_fork",
    "init_uclamp_rq",
    "init_uclamp",
];
