// SPDX-License-Identifier: GPL-2.0-or-later
//! Sum aggregation as a [`Subject`]: the world of `sum.c`, executed with our `sched/demand/uclamp/sum.rs`.
//!
//! The oracle is a tree with the posted series, version 2 of March 2025 (`SCHEDTWIN_KERNEL_TREE_UCLAMP_SUM`): of its
//! fourth patch, which no archive that we know has, version 1 serves. The functions do not depend on the release below;
//! ours were compared with 6.12 patched.
//!
//! Three CPUs, six fair tasks, four task groups one of which is in another, each with entities and queues. At random
//! tasks are queued, sleep, have their dequeue delayed and ended, move, change clamps and weight, fork and move between groups;
//! groups' files are written; time passes for tasks, running or waiting, so that the whole `pelt.c` refreshes averages and
//! with them biases; signals jump. Compared after each operation: of every CPU utilisation, bias, both estimates, the
//! highest factor and whose it is; of every task utilisation, bias, both estimates and effective clamps; the groups'
//! utilisations on the CPU concerned, out of which a negative bias is taken; whether an enqueue told the governor.
//!
//! In between it is asked what follows: `task_fits_cpu`, `util_fits_cpu`, `cpu_overutilized`, `task_util_est_uclamp`,
//! `cpu_util_uclamp` with and without the task and boosting, and `eenv_pd_max_util`.
//!
//! **Not here:** the loop of `find_energy_efficient_cpu`; a class that changes without clamps and real-time tasks, where
//! ours differs (see `sum.rs` there); the parts of the series switched off one by one; `sched_reset_on_fork`.

use super::mutations;
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{OpSpec, Out, Record, Subject, extract, oracle};
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{
    Config, MaxUclampFactor, NegativeBias, Uclamp, UclampAggregation, UtilBiasHook, UtilEstUclamp,
};
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_kernel::sched::demand::conformance::DemandSteps;
use schedtwin_kernel::sched::demand::uclamp::conformance::{Leaves, SumSteps};
use schedtwin_kernel::sched::pelt::SchedAvg;
use schedtwin_kernel::sched::{CfsRqId, TaskKind};
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, PolicyId, SchedAttr, TaskGroupId, TaskId};
use std::path::{Path, PathBuf};

// Operation numbers, as in `sum.c`.
const BOOT: usize = 0;
const ENQUEUE: usize = 1;
const DEQUEUE: usize = 2;
const ATTRIBUTES: usize = 3;
const MOVE: usize = 4;
const WRITE: usize = 5;
const FORK: usize = 6;
const AGE: usize = 7;
const SYNC: usize = 8;
const TASK: usize = 9;
const QUEUE: usize = 10;
const CPU: usize = 11;
const ASK: usize = 12;

/// Why a task leaves, as `sum.c` numbers it.
const WHY: [Leaves; 5] =
    [Leaves::Moves, Leaves::Sleeps, Leaves::Delays, Leaves::Ends, Leaves::Changes];

/// Three CPUs that add up what their tasks' clamps leave.
pub struct Sum {
    kernel: Kernel,
    tasks: [TaskId; super::TASKS],
    /// Generator only: operations to come.
    length: usize,
}

/// The time at which all signals begin, ns.
const BEGIN: u64 = 1 << 20;

fn boot(args: &[u64; crate::l0::ARGS]) -> (Kernel, [TaskId; super::TASKS]) {
    let [key, util_min, util_max, ..] = *args;
    let opps = &[(1_000_000, 1000)];
    let mut device_tree = DeviceTree::of_domains(&[(super::CPUS as u16, 1024, opps)]);
    device_tree.policies[0].fast_switch = true;
    let config = Config {
        fair_server_runtime: 0,
        fair_group_sched: true,
        uclamp: if key != 0 { Uclamp::On } else { Uclamp::KeyOff },
        uclamp_util_min: util_min as u32,
        uclamp_util_max: util_max as u32,
        uclamp_aggregation: UclampAggregation::Sum,
        util_est_uclamp: UtilEstUclamp::Tracked,
        negative_bias: NegativeBias::Propagated,
        max_uclamp_factor: MaxUclampFactor::Tracked,
        enqueue_hook: UtilBiasHook::Boosted,
        ..Config::linux_6_12()
    };
    let mut kernel = Kernel::boot(device_tree, config);
    for parent in [0, 1, 0] {
        kernel.new_task_group(TaskGroupId(parent), 1024);
    }
    let tasks = std::array::from_fn(|_| kernel.new_task(None, TaskKind::User));
    // The caller that tells the governor may set a frequency at once.
    kernel.inside_mut().policies[PolicyId(0)].sugov.freq_update_delay_ns = 0;
    SumSteps(&mut kernel).begin(BEGIN);
    (kernel, tasks)
}

impl Sum {
    fn report(&mut self, result: u64, cpu: CpuId, out: &mut Out) {
        let out_util = |out: &mut Out, name: &str, avg: &SchedAvg| {
            out.word(name, "util_avg", avg.util_avg);
            out.word(name, "util_sum", avg.util_sum as u64);
        };
        out.word("", "result", result);
        for (number, name) in super::CPU_NAMES.iter().enumerate() {
            let cpu = CpuId(number as u16);
            let avg = *self.kernel.inside().cfs[CfsRqId::root(cpu)].avg;
            let (bias, util_est_uclamp, factor, owner) = SumSteps(&mut self.kernel).sums(cpu);
            let owner = owner.and_then(|owner| self.tasks.iter().position(|&task| task == owner));
            out_util(out, name, &avg);
            out.word(name, "bias", bias as u64);
            out.word(name, "util_est", avg.util_est as u64);
            out.word(name, "util_est_uclamp", util_est_uclamp as u64);
            out.word(name, "factor", factor);
            out.word(name, "owner", owner.map_or(-1, |owner| owner as i64) as u64);
        }
        for (name, &task) in super::TASK_NAMES.iter().zip(&self.tasks) {
            let inside = self.kernel.inside();
            let avg = inside.se[inside.tasks[task].se].avg;
            let (sums, clamps) = SumSteps(&mut self.kernel).task(task);
            out_util(out, name, &avg);
            out.word(name, "bias", sums.bias as u64);
            out.word(name, "util_est", avg.util_est as u64);
            out.word(name, "util_est_uclamp", sums.util_est as u64);
            out.word(name, "min", clamps.min as u64);
            out.word(name, "max", clamps.max as u64);
        }
        const NAMES: [[&str; 2]; 3] =
            [["group1", "queue1"], ["group2", "queue2"], ["group3", "queue3"]];
        for (number, [entity, queue]) in NAMES.iter().enumerate() {
            let inside = self.kernel.inside();
            let group = &inside.groups[TaskGroupId(1 + number as u32)];
            out_util(out, entity, &inside.se[group.se[cpu.index()]].avg);
            out_util(out, queue, &inside.cfs[group.cfs_rq[cpu.index()]].avg);
        }
    }
}

impl Subject for Sum {
    const NAME: &'static str = "uclamp-sum";
    const TREE: &'static str = "SCHEDTWIN_KERNEL_TREE_UCLAMP_SUM";

    const OPS: &'static [OpSpec] = &[
        OpSpec { name: "boot", args: &["key", "util_min", "util_max"] },
        OpSpec { name: "enqueue", args: &["task", "cpu", "wakes"] },
        OpSpec { name: "dequeue", args: &["task", "why"] },
        OpSpec { name: "attributes", args: &["task", "flags", "min", "max", "nice"] },
        OpSpec { name: "move", args: &["task", "group"] },
        OpSpec { name: "write", args: &["group", "clamp", "percent"] },
        OpSpec { name: "fork", args: &["parent", "child"] },
        OpSpec { name: "age", args: &["task", "delta", "runs"] },
        OpSpec { name: "sync", args: &["task"] },
        OpSpec { name: "task", args: &["task", "util", "runnable", "est"] },
        OpSpec { name: "queue", args: &["cpu", "group", "util", "runnable"] },
        OpSpec { name: "cpu", args: &["cpu", "capacity", "left", "rt_nr", "bw", "irq"] },
        OpSpec { name: "ask", args: &["task", "cpu"] },
    ];

    const SOURCES: Sources = Sources { modules: &["uclamp"], kernel: None };
    const MUTATIONS: &'static [Mutation] = mutations::SUM;

    const GOLDEN_SHOWN: u64 = 3;
    const GOLDEN_CASES: u64 = 3_000;

    fn new() -> Self {
        let (kernel, tasks) = boot(&[0, 1024, 1024, 0, 0, 0]);
        Sum { kernel, tasks, length: 0 }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        let task = self.tasks[a as usize % super::TASKS];
        let mut cpu = self.kernel.inside().tasks[task].cpu;
        let mut steps = SumSteps(&mut self.kernel);
        let mut result = 0;
        match record.op {
            BOOT => {
                (self.kernel, self.tasks) = boot(&record.args);
                cpu = CpuId(0);
            }
            ENQUEUE => {
                cpu = CpuId(b as u16);
                if c == 0 {
                    steps.place(task, cpu);
                }
                result = steps.enqueue(task, c != 0) as u64;
            }
            DEQUEUE => steps.dequeue(task, WHY[b as usize]),
            ATTRIBUTES => {
                let clamp = |flag: u64, value: u64| (b & flag != 0).then_some(value as u16);
                let attr = SchedAttr {
                    nice: e as i64 as i8,
                    util_min: clamp(super::FLAGS[0], c),
                    util_max: clamp(super::FLAGS[1], d),
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
                (result, cpu) = (b, CpuId(0));
            }
            AGE => steps.age(task, b, c != 0),
            SYNC => steps.sync(task),
            TASK => steps.set_task(task, b, c, d as u32),
            QUEUE => {
                cpu = CpuId(a as u16);
                steps.set_queue(cpu, TaskGroupId(b as u32), c, d);
            }
            CPU => {
                cpu = CpuId(a as u16);
                let mut steps = DemandSteps(&mut self.kernel);
                steps.set_capacity(cpu, b);
                steps.set_rt_runnable(cpu, d != 0);
                steps.set_running_bw(cpu, e);
                steps.change_averages(cpu, |averages| averages.irq.util_avg = f);
                self.kernel.inside_mut().rq[cpu].cpu_capacity = c;
            }
            ASK => {
                let answers = steps.ask(task, CpuId(b as u16));
                out.word("", "task_fits", answers.task_fits as u64);
                out.word("", "fits", answers.fits as u64);
                out.word("", "overutilized", answers.overutilized as u64);
                out.word("", "task_util", answers.task_util);
                const NAMES: [&str; 6] =
                    ["plain", "boosted", "with", "with_boosted", "without", "without_boosted"];
                for (name, util) in NAMES.iter().zip(answers.cpu_util) {
                    out.word("cpu_util", name, util);
                }
                out.word("", "fits_beside", answers.fits_beside as u64);
                out.word("", "demand_with", answers.demand_with);
                out.word("", "demand_without", answers.demand_without);
                return;
            }
            _ => panic!("unknown operation {}", record.op),
        }
        self.report(result, cpu, out);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        let record = |op, args| Some(Record { op, args });
        let clamp = |rng: &mut Rng| match rng.below(6) {
            0 => 1024,
            1 => rng.pick(&[0, 1, 110, 1023]),
            _ => rng.below(1025),
        };
        if step == 0 {
            self.length = 24 + rng.below(100) as usize;
            let (a, b) = (clamp(rng), clamp(rng));
            let (min, max) = if rng.one_in(4) { (a.min(b), a.max(b)) } else { (1024, 1024) };
            return record(BOOT, [!rng.one_in(4) as u64, min, max, 0, 0, 0]);
        }
        if step >= self.length {
            return None;
        }
        let task = rng.below(super::TASKS as u64);
        let cpu = rng.below(super::CPUS as u64);
        let (queued, delayed) = SumSteps(&mut self.kernel).is_queued(self.tasks[task as usize]);
        let home = self.kernel.inside().tasks[self.tasks[task as usize]].cpu.0 as u64;
        let some_util = |rng: &mut Rng| rng.pick(&[0, 1, 110, 300, 512, 1024]).max(rng.below(500));
        match rng.below(20) {
            0..=4 if !queued => record(ENQUEUE, [task, cpu, 0, 0, 0, 0]),
            0..=1 if delayed => record(ENQUEUE, [task, home, 1, 0, 0, 0]),
            2..=4 if delayed => record(DEQUEUE, [task, 3, 0, 0, 0, 0]),
            0..=4 => record(DEQUEUE, [task, rng.below(3), 0, 0, 0, 0]),
            5..=6 if !delayed => {
                let given = 1 + rng.below(3);
                let flags = (given & 1) * super::FLAGS[0] + (given >> 1) * super::FLAGS[1];
                let (a, b) = (clamp(rng), clamp(rng));
                let (min, max) = if a > b && b % 4 != 0 { (b, a) } else { (a, b) };
                let reset = |rng: &mut Rng, value| {
                    if rng.one_in(8) { u64::from(u32::MAX) } else { value }
                };
                let (min, max) = (reset(rng, min), reset(rng, max));
                let nice = rng.below(40) as i64 - 20;
                record(ATTRIBUTES, [task, flags, min, max, nice as u64, 0])
            }
            7 if !delayed => record(MOVE, [task, rng.below(super::GROUPS), 0, 0, 0, 0]),
            8 => {
                let percent = rng.pick(&[0, 2_000, 5_000, 10_000]);
                let percent = if rng.one_in(2) { percent } else { rng.below(10_001) };
                record(WRITE, [1 + rng.below(super::GROUPS - 1), rng.below(2), percent, 0, 0, 0])
            }
            9 if !queued => {
                let parent = (task + 1 + rng.below(super::TASKS as u64 - 1)) % super::TASKS as u64;
                record(FORK, [parent, task, 0, 0, 0, 0])
            }
            10 if !queued => record(SYNC, [task, 0, 0, 0, 0, 0]),
            10..=14 => {
                let delta = if rng.one_in(4) { rng.magnitude(30) } else { rng.below(8_000_000) };
                record(AGE, [task, delta, (queued && !delayed && rng.one_in(2)) as u64, 0, 0, 0])
            }
            15 => {
                let est = rng.below(1025) | if rng.one_in(2) { 1 << 31 } else { 0 };
                let util = some_util(rng);
                record(TASK, [task, util, util + rng.below(400), est, 0, 0])
            }
            16 => {
                let group = rng.below(super::GROUPS);
                let util = if rng.one_in(3) { some_util(rng) } else { rng.below(2_500) };
                record(QUEUE, [cpu, group, util, rng.below(4_000), 0, 0])
            }
            17 => {
                let capacity = if rng.one_in(3) { 1024 } else { 1 + rng.below(1024) };
                let left = capacity - rng.below(capacity / 4 + 1);
                let bandwidth = rng.pick(&[0, 0, 52_428, 1 << 19]);
                let irq = if rng.one_in(3) { rng.below(300) } else { 0 };
                record(CPU, [cpu, capacity, left, rng.one_in(3) as u64, bandwidth, irq])
            }
            _ => record(ASK, [task, cpu, 0, 0, 0, 0]),
        }
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let files = super::Files::read(tree)?;
        let mut structs = super::Cut::default();
        structs.add(extract::block(&files.task_h, "struct uclamp_se"), "struct uclamp_se")?;
        structs.write(build_dir, "uclamp_structs.h")?;

        // pelt.c asks for a task's clamps.
        let mut before = super::Cut::default();
        before.macros(&files.sched_h, &["for_each_clamp_id"])?;
        before.functions(
            &files.sched_h,
            &["uclamp_is_used", "uclamp_none", "uclamp_eff_value", "uclamp_se_set"],
        )?;
        for head in ["const int sched_prio_to_weight[40]", "const u32 sched_prio_to_wmult[40]"] {
            before.add(extract::block(&files.core, head), head)?;
        }
        before.write(build_dir, "uclamp_before_pelt.h")?;

        let mut text = super::Cut::default();
        text.macros(&files.fair, &["sub_positive", "lsub_positive", "UTIL_EST_MARGIN"])?;
        text.functions(&files.sched_h, &["util_bias_enqueue", "util_bias_dequeue"])?;
        text.functions(
            &files.sched_h,
            &["cpu_bw_dl", "cpu_util_dl", "cpu_util_rt", "cpu_util_irq", "scale_irq_capacity"],
        )?;
        text.variables(&files.core, super::SYSCTLS)?;
        text.functions(
            &files.core,
            &[
                "uclamp_tg_restrict",
                "uclamp_eff_get",
                "uclamp_update_active_nolock",
                "uclamp_update_active",
                "uclamp_update_active_tasks",
                "uclamp_fork",
                "init_uclamp",
            ],
        )?;
        super::groups(&mut text, &files.core)?;
        text.functions(&files.attributes, super::ATTRIBUTES)?;
        text.macros(&files.fair, &["fits_capacity"])?;
        text.functions(&files.fair, UTILISATION)?;
        text.functions(&files.hook_h, &["map_util_perf"])?;
        text.functions(&files.governor, &["sugov_effective_cpu_perf"])?;
        text.functions(&files.utilisation, &["effective_cpu_util"])?;
        text.functions(&files.fair, &["eenv_pd_max_util"])?;
        let enqueue = extract::function(&files.fair, "enqueue_task_fair").unwrap_or_default();
        text.add(
            within(&enqueue, "bias_joins", "util_bias_enqueue(rq, p);", "cpufreq_update_util(rq"),
            "util_bias_enqueue() in enqueue_task_fair()",
        )?;
        let dequeue = extract::function(&files.fair, "dequeue_entities").unwrap_or_default();
        text.add(
            within(&dequeue, "bias_leaves", "util_bias_dequeue(rq, p);", "\t}"),
            "util_bias_dequeue() in dequeue_entities()",
        )?;
        text.write(build_dir, "uclamp_extract.h")?;
        let scheduler = tree.join("kernel/sched");
        oracle::compile("uclamp/sum.c", &[build_dir, scheduler.as_path()], build_dir, flags)
    }
}

/// The lines of a function from the one with `from` to the one that begins with `to`, as a function of their own. The
/// closing bracket of a block closes this.
fn within(function: &str, name: &str, from: &str, to: &str) -> Option<String> {
    let lines: Vec<&str> = function.lines().collect();
    let begin = lines.iter().position(|line| line.contains(from))?;
    let is_end = |line: &&str| line.starts_with(to) || line.trim_start().starts_with(to);
    let end = begin + lines[begin..].iter().position(is_end)?;
    let body = match lines[end] {
        "\t}" => lines[begin..end].join("\n"),
        _ => lines[begin..=end].join("\n"),
    };
    Some(format!("static void {name}(struct rq *rq, struct task_struct *p)\n{{\n{body}\n}}\n"))
}

/// The functions that are taken out of `fair.c`, in an order in which it compiles.
const UTILISATION: &[&str] = &[
    "task_util",
    "task_runnable",
    "_task_util_est",
    "task_util_est",
    "task_util_bias",
    "task_util_uclamp",
    "_task_util_est_uclamp",
    "task_util_est_uclamp",
    "root_cfs_util_uclamp",
    "propagate_negative_bias",
    "util_est_enqueue",
    "util_est_dequeue",
    "util_est_update",
    "cpu_util",
    "cpu_util_cfs",
    "cpu_util_uclamp",
    "cpu_util_cfs_uclamp",
    "util_fits_cpu",
    "task_fits_cpu",
    "cpu_overutilized",
];
