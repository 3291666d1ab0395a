// SPDX-License-Identifier: GPL-2.0-or-later
//! EEVDF as a [`Subject`]: the world of `shim.c`, executed with our `sched/fair`.
//!
//! One CPU, up to [`TASKS_MAX`] tasks with weights, slices, lags and policies of all kinds, and what a
//! CPU does with them: wakeups, switches with and without sleep (so delayed dequeues, their
//! completion by a pick, and their cancellation by a wakeup), ticks, yields, migrations that carry
//! lag and relative deadlines, changes of weight and slice while queued or running. Compared after each
//! operation: the sums and counters of the queue, who is eligible, both orders (the tree's and the
//! most-recently-run list's), whether a reschedule is wanted, and every task.
//!
//! **Against what.** The kernel's side runs whole functions from `enqueue_task_fair` down with the real
//! augmented tree, so the sorted array that ours uses instead is under test, and the order of steps too.
//!
//! Unlike the other subjects this one needs the whole kernel crate, not a file or two: mutating it
//! builds a copy of the crate.

mod mutations;
pub(crate) mod taken;
pub mod v6_18;
pub mod v7_3;

use crate::fair::{self, CPU, World, one_cpu};
use crate::l0::instructions::TurnOps;
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{OpSpec, Out, Record, Subject, extract, mix, oracle};
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{
    CalcDelta, Config, EevdfForm, FrequencyGovernor, GroupTree, LagLimit, ReweightEntity,
};
use schedtwin_kernel::sched::TaskKind;
use schedtwin_kernel::sched::core::{
    DEQUEUE_NOCLOCK, DEQUEUE_SAVE, DEQUEUE_SLEEP, DEQUEUE_SPECIAL, ENQUEUE_DELAYED,
    ENQUEUE_INITIAL, ENQUEUE_MIGRATED, ENQUEUE_NOCLOCK, ENQUEUE_RESTORE, ENQUEUE_WAKEUP, WF_FORK,
};
use schedtwin_kernel::sched::fair::weight_of;
use schedtwin_kernel::sched::{CfsRq, CfsRqId, LoadWeight, OnRq, SchedEntity};
use schedtwin_types::rng::Rng;
use schedtwin_types::{Policy, TaskGroupId, TaskId};
use std::path::{Path, PathBuf};
use taken::{FAIR_FUNCTIONS, FAIR_MACROS, SCHED_MACROS};

// Operation numbers, as in `shim.c`.
pub(crate) const CONFIG: usize = 0;
pub(crate) const TASK: usize = 1;
pub(crate) const WAKE: usize = 2;
pub(crate) const SCHEDULE: usize = 3;
pub(crate) const TICK: usize = 4;
pub(crate) const YIELD: usize = 5;
pub(crate) const LEAVE: usize = 6;
pub(crate) const JOIN: usize = 7;
pub(crate) const CHANGE: usize = 8;
pub(crate) const PREEMPT: usize = 9;
pub(crate) const WEIGHT: usize = 10;
pub(crate) const BLOCK: usize = 11;
pub(crate) const REWEIGHT: usize = 12;

/// Most tasks of a sequence; those that carry the bit mask of the eligible.
const TASKS_MAX: u64 = 40;
/// Policies, as in `include/uapi/linux/sched.h`.
const POLICIES: [(u64, Policy); 3] = [(0, Policy::Normal), (3, Policy::Batch), (5, Policy::Idle)];
const ROOT: CfsRqId = CfsRqId(0);

/// One CPU and its tasks.
pub struct Eevdf {
    world: World,
    base_slice: u64,
    form: EevdfForm,
    /// There is a group, so that all compete in one timeline (7.3).
    flat: bool,
}

impl std::ops::Deref for Eevdf {
    type Target = World;
    fn deref(&self) -> &World {
        &self.world
    }
}

impl std::ops::DerefMut for Eevdf {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

/// A kernel without a fair server that does not move frequencies.
fn boot(base_slice: u64, tick_nsec: u64, form: EevdfForm, flat: bool) -> Kernel {
    let mut config = Config::linux_6_12();
    config.eevdf_form = form;
    if form == EevdfForm::V6_18 {
        // The trees at hand are older than 6.18.45.
        config.reweight_entity = ReweightEntity::Placed;
    }
    if form != EevdfForm::V6_12 {
        config.lag_limit = LagLimit::MaxSliceAndTick;
    }
    if form == EevdfForm::V7_3 {
        config.calc_delta = CalcDelta::Division;
    }
    if flat {
        config.group_tree = GroupTree::Flat;
        config.fair_group_sched = true;
    }
    config.cpufreq = FrequencyGovernor::Performance;
    config.fair_server_runtime = 0;
    config.base_slice_unscaled = base_slice;
    config.hz = (1_000_000_000 / tick_nsec) as u32;
    let mut kernel = Kernel::boot(one_cpu(TASKS_MAX as usize), config);
    if flat {
        kernel.new_task_group(TaskGroupId::ROOT, 1024);
    }
    kernel
}

pub(crate) fn policy(number: u64) -> Policy {
    POLICIES.iter().find(|p| p.0 == number).expect("a fair policy").1
}

/// Gives an entity a slice of its own, or with 0 the base one.
fn set_slice(entity: &mut SchedEntity, slice: u64, base_slice: u64) {
    entity.custom_slice = slice != 0;
    entity.slice = if slice != 0 { slice } else { base_slice };
}

impl Eevdf {
    /// An empty world; `flat`: with one timeline for all groups.
    fn of(form: EevdfForm, flat: bool) -> Eevdf {
        let world = World::new(boot(700_000, 4_000_000, form, flat));
        Eevdf { world, base_slice: 700_000, form, flat }
    }

    /// The queue whose timeline is picked from.
    fn timeline(&self) -> &CfsRq {
        &self.kernel.inside().cfs[self.kernel.inside().rq[CPU].timeline]
    }

    /// The weight by which a task's virtual time passes.
    fn virtual_weight(&self, task: TaskId) -> u64 {
        let entity = self.entity(task);
        entity.timeline_load.unwrap_or(entity.load).weight
    }

    /// `zero_vruntime`, `avg_vruntime`, `avg_load`.
    pub(crate) fn sums(&self) -> (u64, i64, u64) {
        let cfs = self.timeline();
        (cfs.zero_vruntime, cfs.avg_vruntime, cfs.avg_load)
    }

    fn wake(&mut self, task: TaskId, flags: u32) {
        if self.kernel.inside().tasks[task].on_rq == OnRq::No {
            self.steps().enqueue(task, flags | ENQUEUE_NOCLOCK);
            self.kernel.inside_mut().tasks[task].on_rq = OnRq::Queued;
        } else {
            self.steps().enqueue(task, ENQUEUE_NOCLOCK | ENQUEUE_DELAYED);
        }
        self.wakeup_preempt(task, if flags & ENQUEUE_INITIAL != 0 { WF_FORK } else { 0 });
    }

    /// The running task goes to sleep; 2: in a special state.
    fn block(&mut self, task: TaskId, sleeps: u64) {
        let special = if sleeps == 2 { DEQUEUE_SPECIAL } else { 0 };
        if self.steps().dequeue(task, DEQUEUE_SLEEP | DEQUEUE_NOCLOCK | special) {
            self.kernel.inside_mut().tasks[task].on_rq = OnRq::No;
        }
    }

    fn schedule(&mut self, sleeps: u64) -> Option<TaskId> {
        if let Some(prev) = self.curr().filter(|_| sleeps != 0) {
            self.block(prev, sleeps);
        }
        self.switch()
    }

    fn change(&mut self, task: TaskId, load: LoadWeight, slice: u64, to: Policy) {
        let base_slice = self.base_slice;
        let flags = (DEQUEUE_SAVE | DEQUEUE_NOCLOCK, ENQUEUE_RESTORE | ENQUEUE_NOCLOCK);
        self.world.change(task, flags, (load, to), |world| {
            set_slice(world.entity_mut(task), slice, base_slice);
        });
    }

    fn report(&mut self, out: &mut Out, result: u64, task: Option<TaskId>) {
        let curr = self.number_of(self.curr());
        let (rq, cfs) = (&self.kernel.inside().rq[CPU], &self.kernel.inside().cfs[ROOT]);
        let timeline = self.timeline();
        out.word("", "result", result);
        out.word("cfs", "avg_vruntime", timeline.avg_vruntime as u64);
        out.word("cfs", "avg_load", timeline.avg_load);
        out.word("cfs", "zero_vruntime", timeline.zero_vruntime);
        out.word("cfs", "load", cfs.load_weight);
        out.word("cfs", "nr_queued", cfs.nr_queued as u64);
        out.word("cfs", "h_nr_queued", cfs.h_nr_queued as u64);
        out.word("cfs", "h_nr_runnable", cfs.h_nr_runnable as u64);
        out.word("cfs", "h_nr_delayed", cfs.h_nr_delayed as u64);
        out.word("cfs", "h_nr_idle", cfs.h_nr_idle as u64);
        out.word("rq", "nr_running", rq.nr_running as u64);
        out.word("rq", "curr", curr);
        out.word(
            "cfs",
            "curr",
            self.number_of(timeline.curr.map(|se| self.kernel.inside().se[se].task)),
        );
        out.word("rq", "need_resched", rq.need_resched as u64);
        let fold = |digest, task| mix(digest, self.number_of(Some(task)));
        let by_deadline =
            timeline.timeline.iter().map(|node| self.kernel.inside().se[node.se].task);
        out.word("cfs", "timeline", by_deadline.fold(0, fold));
        let next = |task: &TaskId| self.kernel.inside().tasks[*task].cfs_tasks_next;
        let by_run = std::iter::successors(rq.cfs_tasks_head, next);
        out.word("rq", "cfs_tasks", by_run.fold(0, fold));
        let mut eligible = 0;
        let mut everything = 0;
        for (number, &task) in self.tasks.clone().iter().enumerate() {
            if self.entity(task).on_rq && self.steps().eligible(task) {
                eligible |= 1 << number;
            }
            let se = self.entity(task);
            for word in [se.vruntime, se.deadline, se.vlag as u64, se.slice, se.sum_exec_runtime] {
                everything = mix(everything, word);
            }
            everything = mix(everything, self.state_bits(task));
        }
        out.word("cfs", "eligible", eligible);
        out.word("cfs", "everything", everything);
        if self.form != EevdfForm::V6_12 {
            let next = self.timeline().next;
            out.word(
                "cfs",
                "next",
                self.number_of(next.map(|se| self.kernel.inside().se[se].task)),
            );
        }
        if let Some(task) = task {
            let se = self.entity(task);
            out.word("se", "vruntime", se.vruntime);
            out.word("se", "deadline", se.deadline);
            out.word("se", "vlag", se.vlag as u64);
            out.word("se", "slice", se.slice);
            out.word("se", "exec_start", se.exec_start);
            out.word("se", "sum_exec_runtime", se.sum_exec_runtime);
            out.word("se", "prev_sum_exec_runtime", se.prev_sum_exec_runtime);
            out.word("se", "weight", se.load.weight);
            out.word("se", "state", self.state_bits(task));
            if self.form == EevdfForm::V7_3 {
                out.word("se", "vprot", self.entity(task).vprot);
            }
            if self.flat {
                out.word("se", "h_load", self.virtual_weight(task));
            }
        }
    }

    /// Whether (v − base) · Σ w comes near the 64 bits that the kernel has for it. Beyond them nobody is
    /// eligible, and the kernel's pick ends in a null pointer (ours in an assertion).
    fn sums_may_overflow(&self) -> bool {
        let cfs = self.timeline();
        let queued = || self.tasks.iter().filter(|task| self.entity(**task).on_rq);
        let load = self.queued_load();
        let key = |se: &SchedEntity| se.vruntime.wrapping_sub(cfs.zero_vruntime) as i64;
        queued().any(|task| key(self.entity(*task)).unsigned_abs() as u128 * load as u128 > FAR)
    }

    /// The lag of a task that joins the queue, so that its place stays within those 64 bits: `place_entity()` multiplies it by
    /// (load + weight) / load.
    fn placeable(&self, task: TaskId, vlag: u64) -> u64 {
        let load = u128::from(self.queued_load());
        let all = load + u128::from(self.scaled_weight(task));
        let most = (FAR * load.max(1) / (all * all).max(1)).min(i64::MAX as u128) as i64;
        (vlag as i64).clamp(-most, most) as u64
    }

    /// Σ w of those that are queued, as the kernel multiplies it.
    fn queued_load(&self) -> u64 {
        let queued = self.tasks.iter().filter(|task| self.entity(**task).on_rq);
        queued.map(|task| self.scaled_weight(*task)).sum()
    }

    /// 7.3 multiplies full weights, each by itself.
    fn scaled_weight(&self, task: TaskId) -> u64 {
        self.virtual_weight(task) >> if self.form == EevdfForm::V7_3 { 0 } else { 10 }
    }

    fn state_bits(&self, task: TaskId) -> u64 {
        let se = self.entity(task);
        (se.on_rq as u64)
            | (se.sched_delayed as u64) << 1
            | (se.rel_deadline as u64) << 2
            | (se.custom_slice as u64) << 3
            | self.on_rq(task) << 4
    }
}

impl Subject for Eevdf {
    const NAME: &'static str = "eevdf";

    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "config",
            args: &["base_slice", "tick_nsec", "features", "zero_vruntime", "clock"],
        },
        OpSpec {
            name: "task",
            args: &["weight", "inv_weight", "slice", "vlag", "policy", "vruntime"],
        },
        OpSpec { name: "wake", args: &["delta", "task", "initial"] },
        OpSpec { name: "schedule", args: &["delta", "sleeps"] },
        OpSpec { name: "tick", args: &["delta"] },
        OpSpec { name: "yield", args: &["delta"] },
        OpSpec { name: "leave", args: &["delta", "task"] },
        OpSpec { name: "join", args: &["delta", "task", "vlag"] },
        OpSpec {
            name: "change",
            args: &["delta", "task", "weight", "inv_weight", "slice", "policy"],
        },
        OpSpec { name: "preempt", args: &["delta", "task"] },
        OpSpec { name: "weight", args: &["delta", "index"] },
        OpSpec { name: "block", args: &["delta"] },
        OpSpec { name: "reweight", args: &["delta", "task", "weight"] },
    ];

    const TURNS: Option<TurnOps> = Some(TurnOps {
        begin: &[Record { op: CONFIG, args: [700_000, 1_000_000, 255, 0, 1, 0] }],
        task: || Record::new(TASK, &[1 << 20, 1 << 22]),
        wake: |delta, task| Record::new(WAKE, &[delta, task]),
        schedule: |delta, sleeps| Record::new(SCHEDULE, &[delta, sleeps.into()]),
        tick: |delta| Record::new(TICK, &[delta]),
    });
    const SOURCES: Sources = fair::SOURCES;
    const MUTATIONS: &'static [Mutation] = mutations::EEVDF;
    const GOLDEN_SHOWN: u64 = 1;
    const GOLDEN_CASES: u64 = 10_000;

    fn new() -> Eevdf {
        Eevdf::of(EevdfForm::V6_12, false)
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        let numbered = |tasks: &Vec<TaskId>| Some(tasks[b as usize]);
        if record.op >= WAKE {
            *self.kernel.inside_mut().now += a;
            self.kernel.update_rq_clock(CPU);
        }
        let mut result = 0;
        let mut subject = None;
        match record.op {
            CONFIG => {
                self.kernel = boot(a, b, self.form, self.flat).with_config(|config| {
                    let bit = |number: u32| c >> number & 1 != 0;
                    let features = &mut config.features;
                    features.place_lag = bit(0);
                    features.place_deadline_initial = bit(1);
                    features.place_rel_deadline = bit(2);
                    features.run_to_parity = bit(3);
                    features.preempt_short = bit(4);
                    features.delay_dequeue = bit(5);
                    features.delay_zero = bit(6);
                    features.wakeup_preemption = bit(7);
                });
                self.base_slice = a;
                let timeline = self.kernel.inside().rq[CPU].timeline;
                self.kernel.inside_mut().cfs[timeline].zero_vruntime = d;
                *self.kernel.inside_mut().now = e;
                self.kernel.update_rq_clock(CPU);
            }
            TASK => {
                let task = self.kernel.new_task(None, TaskKind::User);
                self.tasks.push(task);
                self.kernel.inside_mut().tasks[task].policy = policy(e);
                let base_slice = self.base_slice;
                set_slice(self.entity_mut(task), c, base_slice);
                let entity = self.entity_mut(task);
                entity.load = LoadWeight { weight: a, inv_weight: b as u32 };
                entity.vlag = d as i64;
                entity.vruntime = f;
                subject = Some(task);
            }
            WAKE => {
                subject = numbered(&self.tasks);
                let flags = if c != 0 { ENQUEUE_INITIAL } else { ENQUEUE_WAKEUP };
                self.wake(self.tasks[b as usize], flags);
            }
            SCHEDULE => {
                subject = self.schedule(b);
                result = self.number_of(subject);
            }
            TICK => {
                subject = self.curr();
                self.steps().tick(subject.expect("somebody runs"));
            }
            YIELD => {
                subject = self.curr();
                self.steps().yield_task();
            }
            LEAVE => {
                let task = self.tasks[b as usize];
                self.kernel.inside_mut().tasks[task].on_rq = OnRq::Migrating;
                result = self.steps().dequeue(task, DEQUEUE_NOCLOCK) as u64;
                // set_task_cpu(): its averages are attached anew.
                self.entity_mut(task).avg.last_update_time = 0;
                subject = Some(task);
            }
            JOIN => {
                let task = self.tasks[b as usize];
                self.entity_mut(task).vlag = c as i64;
                self.steps().enqueue(task, ENQUEUE_NOCLOCK | ENQUEUE_MIGRATED);
                self.kernel.inside_mut().tasks[task].on_rq = OnRq::Queued;
                self.wakeup_preempt(task, 0);
                subject = Some(task);
            }
            CHANGE => {
                let load = LoadWeight { weight: c, inv_weight: d as u32 };
                self.change(self.tasks[b as usize], load, e, policy(f));
                subject = numbered(&self.tasks);
            }
            PREEMPT => {
                subject = numbered(&self.tasks);
                let task = self.task(b as usize);
                self.wakeup_preempt(task, 0);
                if self.kernel.inside().cfs[ROOT].nr_queued != 0 {
                    let best = self.steps().pick_eevdf();
                    result = self.number_of(best);
                }
            }
            BLOCK => {
                subject = self.curr();
                self.block(subject.expect("somebody runs"), 1);
            }
            WEIGHT => {
                result = nice_weight(b);
            }
            REWEIGHT => {
                subject = numbered(&self.tasks);
                let task = subject.expect("a task");
                match self.flat {
                    true => self.steps().reweight_in_timeline(task, c),
                    false => self.steps().reweight_entity(task, c),
                }
            }
            _ => panic!("unknown operation {}", record.op),
        }
        self.report(out, result, subject);
        self.kernel.clear_facts();
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        let op = |op, values: &[u64]| {
            let mut args = [0; crate::l0::ARGS];
            args[..values.len()].copy_from_slice(values);
            Some(Record { op, args })
        };
        if step == 0 {
            self.length = 40 + rng.below(200) as usize;
            self.mix = rng.below(4);
            self.planned = match rng.below(8) {
                0 => 1,
                1..=4 => 2 + rng.below(5),
                5..=6 => 2 + rng.below(12),
                _ => 10 + rng.below(TASKS_MAX - 9),
            };
            let base_slice = rng.pick(&[700_000, 750_000, 2_800_000, 3_000_000]);
            // HZ 100, 250, 1000.
            let tick = rng.pick(&[10_000_000, 4_000_000, 1_000_000]);
            let features = if rng.one_in(2) { 255 } else { 255 ^ rng.next() & rng.next() & 255 };
            // Where init_cfs_rq() begins, and the places where numbers wrap.
            let zero = match rng.below(4) {
                0 => rng.next(),
                1 => (1 << 63) - rng.below(4_000_000),
                _ => (-(1i64 << 20)) as u64,
            };
            let clock = rng.magnitude(44);
            return op(CONFIG, &[base_slice, tick, features, zero, clock]);
        }
        if (self.tasks.len() as u64) < self.planned && (step <= 2 || rng.one_in(2)) {
            let load = weight(rng);
            let vruntime = rng.magnitude(40);
            let vlag = if rng.one_in(2) { 0 } else { lag(rng) };
            self.fresh |= 1 << self.tasks.len();
            let slice = slice(rng);
            let args = [load.weight, load.inv_weight as u64, slice, vlag, kind(rng), vruntime];
            return op(TASK, &args);
        }
        if step >= self.length || self.sums_may_overflow() {
            return None;
        }
        let delta = duration(rng);
        let number = rng.below(self.tasks.len() as u64);
        let task = self.tasks[number as usize];
        let curr = self.curr();
        // In one timeline by the groups above; in 6.18 as a group's entity, which alone changes its weight where it is.
        let is_there = self.entity(task).on_rq && !self.entity(task).sched_delayed;
        let one_in = match self.form {
            _ if self.flat => Some(6),
            EevdfForm::V6_18 if is_there => Some(12),
            _ => None,
        };
        if one_in.is_some_and(|n| rng.one_in(n)) {
            // A group that weighs as much as three tasks, or any part of it.
            let weight = self.entity(task).load.weight * (1 + rng.below(3072)) / 1024;
            return op(REWEIGHT, &[delta, number, weight.max(2)]);
        }
        if rng.one_in(50) {
            return op(WEIGHT, &[delta, rng.below(40)]);
        }
        // The running task has blocked, and nobody has been picked yet: it is woken, or the switch ends.
        if let Some(curr) = curr
            && (self.kernel.inside().tasks[curr].on_rq == OnRq::No
                || self.entity(curr).sched_delayed)
        {
            return match rng.below(3) {
                0 => op(WAKE, &[delta, self.number_of(Some(curr)) - 1, 0]),
                _ => op(SCHEDULE, &[delta, 0]),
            };
        }
        if rng.one_in(24) {
            let load = weight(rng);
            let (slice, kind) = (slice(rng), kind(rng));
            // A task in the middle of a migration is nobody's to change.
            if self.away >> number & 1 == 0 {
                let inverse = load.inv_weight as u64;
                return op(CHANGE, &[delta, number, load.weight, inverse, slice, kind]);
            }
        }
        if self.away >> number & 1 != 0 {
            self.away &= !(1 << number);
            let vlag = if rng.one_in(3) { self.entity(task).vlag as u64 } else { lag(rng) };
            return op(JOIN, &[delta, number, self.placeable(task, vlag)]);
        }
        let queued = self.kernel.inside().tasks[task].on_rq == OnRq::Queued;
        let delayed = self.entity(task).sched_delayed;
        // A switch that is wanted comes at once more often than not.
        let running = curr == Some(task);
        let switch = self.kernel.inside().rq[CPU].need_resched && !rng.one_in(4);
        let asleep = !queued || delayed;
        let not_yet = switch && rng.one_in(2);
        if asleep && !running && !not_yet {
            // Its first lag is as random as its weight: a place that the kernel's 64 bits cannot hold ends the sequence.
            let vlag = self.entity(task).vlag as u64;
            if !delayed && self.placeable(task, vlag) != vlag {
                return None;
            }
            let initial = self.fresh >> number & 1;
            self.fresh &= !(1 << number);
            return op(WAKE, &[delta, number, initial]);
        }
        if queued && !running && rng.one_in(12) {
            self.away |= 1 << number;
            return op(LEAVE, &[delta, number]);
        }
        if queued && curr.is_some() && rng.one_in(10) {
            return op(PREEMPT, &[delta, number]);
        }
        if curr.is_some() && !switch {
            // Mostly sleeping, mostly running, mixed.
            let sleepy = [3, 8, 4, 5][self.mix as usize];
            return match rng.below(10) {
                0 => op(YIELD, &[delta]),
                1..=3 => op(TICK, &[delta]),
                4 => op(BLOCK, &[delta]),
                _ if rng.one_in(sleepy) => op(SCHEDULE, &[delta, 0]),
                _ => op(SCHEDULE, &[delta, if rng.one_in(16) { 2 } else { 1 }]),
            };
        }
        op(SCHEDULE, &[delta, 0])
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let text = cut_out(tree, SCHED_MACROS, FAIR_MACROS, FAIR_FUNCTIONS)?;
        oracle::compile_with_rbtree(tree, build_dir, flags, ("eevdf", Self::NAME), &text)
    }
}

fn read(tree: &Path, file: &str) -> Result<String, String> {
    let path = tree.join(file);
    std::fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))
}

/// The text of macros of `sched.h` and `fair.c`.
pub(crate) fn macros(tree: &Path, of_sched: &[&str], of_fair: &[&str]) -> Result<String, String> {
    let fair = read(tree, "kernel/sched/fair.c")?;
    let sched = read(tree, "kernel/sched/sched.h")?;
    let missing = |name: &str| format!("this kernel tree has no {name}");
    let mut text = String::from("#define SCHED_FIXEDPOINT_SHIFT 10\n");
    for name in of_sched {
        text += &extract::macro_definition(&sched, name).ok_or(missing(name))?;
    }
    for name in of_fair {
        text += &extract::macro_definition(&fair, name).ok_or(missing(name))?;
    }
    Ok(text)
}

/// The text of macros of `sched.h` and `fair.c`, of the tables of weights, and of functions of `fair.c`.
pub(crate) fn cut_out(
    tree: &Path,
    sched_macros: &[&str],
    fair_macros: &[&str],
    functions: &[&str],
) -> Result<String, String> {
    let fair = read(tree, "kernel/sched/fair.c")?;
    let core = read(tree, "kernel/sched/core.c")?;
    let mut text = macros(tree, sched_macros, fair_macros)?;
    let missing = |name: &str| format!("this kernel tree has no {name}");
    for head in ["const int sched_prio_to_weight", "const u32 sched_prio_to_wmult"] {
        text += &extract::block(&core, head).ok_or(missing(head))?;
    }
    for name in functions {
        text += &extract::function(&fair, name).ok_or(missing(name))?;
        if *name == "min_vruntime_update" {
            let callbacks = "RB_DECLARE_CALLBACKS(static, min_vruntime_cb";
            let multi = "RB_DECLARE_CALLBACKS_MULTI(static, min_vruntime_cb";
            let found = extract::statement(&fair, callbacks);
            let found = found.or_else(|| extract::statement(&fair, multi));
            text += &found.ok_or(missing(callbacks))?;
        }
    }
    Ok(text)
}

/// Weight and inverse of one of the 40 nice values.
pub(crate) fn nice_weight(index: u64) -> u64 {
    let load = weight_of(Policy::Normal, (index % 40) as i8 - 20);
    load.weight ^ (load.inv_weight as u64) << 32
}

/// Mostly a nice value's weight; sometimes one as groups have them, without an inverse.
pub(crate) fn weight(rng: &mut Rng) -> LoadWeight {
    match rng.below(8) {
        0..=2 => weight_of(Policy::Normal, 0),
        3 => LoadWeight { weight: (2 + rng.magnitude(18)) << 10, inv_weight: 0 },
        4 => weight_of(Policy::Idle, 0),
        _ => weight_of(Policy::Normal, rng.below(40) as i8 - 20),
    }
}

/// 0: the base slice.
fn slice(rng: &mut Rng) -> u64 {
    match rng.below(4) {
        0 => 100_000 + rng.magnitude(26).min(99_900_000),
        1 => rng.pick(&[100_000, 350_000, 3_000_000, 100_000_000]),
        _ => 0,
    }
}

pub(crate) fn kind(rng: &mut Rng) -> u64 {
    if rng.one_in(4) { rng.pick(&[3, 5, 5]) } else { 0 }
}

/// A product of key and load that the kernel's 64 bits can still hold after the next operation.
const FAR: u128 = 1 << 58;

/// A lag in virtual nanoseconds: small, as large as the limits allow, sometimes beyond.
fn lag(rng: &mut Rng) -> u64 {
    let bits = if rng.one_in(8) { 34 } else { 24 };
    let size = rng.magnitude(bits);
    if rng.one_in(2) { size } else { size.wrapping_neg() }
}

/// Nanoseconds between two operations.
fn duration(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => 0,
        1 => rng.below(2),
        2..=4 => rng.below(1_000_000),
        5 => rng.pick(&[100_000, 350_000, 700_000, 1_000_000, 4_000_000]),
        6 => rng.below(10_000_000),
        _ => rng.magnitude(27),
    }
}
