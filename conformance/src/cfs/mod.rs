// SPDX-License-Identifier: GPL-2.0-or-later
//! CFS as a [`Subject`]: the world of `shim.c`, executed with our `sched/fair`.
//!
//! One CPU, up to [`TASKS_MAX`] tasks with weights and policies of all kinds, and what a CPU does with them:
//! wakeups here and from other queues, forks, switches with and without sleep, ticks, yields, migrations,
//! changes of weight and policy while queued or running, sleeps of months. Compared after each operation:
//! `min_vruntime` and the counters, the three buddies, whom a pick would choose, both orders (the tree's and
//! the most-recently-run list's), whether a reschedule is wanted, every task, and the averages of the queue and of
//! the task that the operation was about.
//!
//! **Against what.** A tree before 6.6; whole functions from `enqueue_task_fair` down with the real tree.
//! `pick_next_task_fair()` itself is the shim's: the pick, and the switch if it is another task.

mod mutations;
pub(crate) mod taken;

use crate::l0::instructions::TurnOps;
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{ARGS, OpSpec, Out, Record, Subject, TREE_6_1, mix, oracle};
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{
    CfsTunables, Config, FairClass, Features, FrequencyGovernor, UtilEstForm, UtilEstUpdate,
};
use schedtwin_kernel::sched::TaskKind;
use schedtwin_kernel::sched::core::{
    DEQUEUE_MOVE, DEQUEUE_NOCLOCK, DEQUEUE_SAVE, DEQUEUE_SLEEP, ENQUEUE_MIGRATED, ENQUEUE_NOCLOCK,
    ENQUEUE_RESTORE, ENQUEUE_WAKEUP, WF_FORK,
};
use schedtwin_kernel::sched::pelt::SchedAvg;
use schedtwin_kernel::sched::{CfsRq, CfsRqId, EntityId, LoadWeight, OnRq};
use schedtwin_types::TaskId;
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};

use crate::eevdf::{kind, policy, weight};
use crate::fair::{self, CPU, World, one_cpu};

// Operation numbers, as in `shim.c`.
pub(crate) const CONFIG: usize = 0;
pub(crate) const START: usize = 1;
pub(crate) const TASK: usize = 2;
pub(crate) const WAKE: usize = 3;
pub(crate) const FORK: usize = 4;
pub(crate) const SCHEDULE: usize = 5;
pub(crate) const TICK: usize = 6;
pub(crate) const YIELD: usize = 7;
pub(crate) const LEAVE: usize = 8;
pub(crate) const JOIN: usize = 9;
pub(crate) const CHANGE: usize = 10;
pub(crate) const PREEMPT: usize = 11;
pub(crate) const WEIGHT: usize = 12;
pub(crate) const BLOCK: usize = 13;
pub(crate) const SLICE: usize = 14;

/// Most tasks of a sequence.
const TASKS_MAX: u64 = 40;
const ROOT: CfsRqId = CfsRqId(0);
/// After that a sleeper's virtual runtime is forgotten: 2⁶³ / 1024.
const LONG_SLEEP: u64 = 1 << 53;
/// How far from `min_vruntime` a task may start.
const FAR: u64 = 1 << 40;

/// One CPU and its tasks.
pub struct Cfs {
    world: World,
}

impl std::ops::Deref for Cfs {
    type Target = World;
    fn deref(&self) -> &World {
        &self.world
    }
}

impl std::ops::DerefMut for Cfs {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

fn boot(tunables: CfsTunables, features: Features) -> Kernel {
    let mut config = Config::linux_6_12();
    config.cpufreq = FrequencyGovernor::Performance;
    config.fair_server_runtime = 0;
    config.base_slice_unscaled = 0;
    config.fair = FairClass::Cfs;
    config.cfs = tunables;
    config.features = features;
    config.util_est = UtilEstForm::EnqueuedAndEwma;
    config.util_est_update = UtilEstUpdate::AfterDequeue;
    // One CPU: the factor of the tunables is 1.
    Kernel::boot(one_cpu(TASKS_MAX as usize), config)
}

/// The bits of `CONFIG`.
pub(crate) fn features(bits: u64) -> Features {
    let bit = |number: u32| bits >> number & 1 != 0;
    Features {
        gentle_fair_sleepers: bit(0),
        start_debit: bit(1),
        next_buddy: bit(2),
        last_buddy: bit(3),
        alt_period: bit(4),
        base_slice: bit(5),
        wakeup_preemption: bit(6),
        cache_hot_buddy: true,
        util_est_fastup: bit(7),
        util_est: true,
        nontask_capacity: true,
        ..Features::default()
    }
}

impl Cfs {
    pub(crate) fn number_of_entity(&self, se: Option<EntityId>) -> u64 {
        self.number_of(se.map(|se| self.kernel.inside().se[se].task))
    }

    pub(crate) fn cfs_rq(&self) -> &CfsRq {
        &self.kernel.inside().cfs[ROOT]
    }

    fn come(&mut self, task: TaskId, flags: u32, wake_flags: u32) {
        self.steps().enqueue(task, flags | ENQUEUE_NOCLOCK);
        self.kernel.inside_mut().tasks[task].on_rq = OnRq::Queued;
        self.wakeup_preempt(task, wake_flags);
    }

    fn block(&mut self, task: TaskId) {
        self.kernel.inside_mut().tasks[task].on_rq = OnRq::No;
        assert!(self.steps().dequeue(task, DEQUEUE_SLEEP | DEQUEUE_NOCLOCK), "CFS delays nobody");
    }

    fn schedule(&mut self, sleeps: bool) -> Option<TaskId> {
        if let Some(prev) = self.curr().filter(|_| sleeps) {
            self.block(prev);
        }
        self.switch()
    }

    fn change(&mut self, task: TaskId, load: LoadWeight, to: u64, moves: bool) {
        // ENQUEUE_MOVE means nothing to this class.
        let moves = if moves { DEQUEUE_MOVE } else { 0 };
        let leaves = DEQUEUE_SAVE | moves | DEQUEUE_NOCLOCK;
        let returns = ENQUEUE_RESTORE | ENQUEUE_NOCLOCK;
        self.world.change(task, (leaves, returns), (load, policy(to)), |_| ());
    }

    fn state_bits(&self, task: TaskId) -> u64 {
        self.entity(task).on_rq as u64 | self.on_rq(task) << 1
    }

    fn report(&mut self, out: &mut Out, result: u64, task: Option<TaskId>) {
        let curr = self.number_of(self.curr());
        let (rq, cfs) = (&self.kernel.inside().rq[CPU], &self.kernel.inside().cfs[ROOT]);
        out.word("", "result", result);
        out.word("cfs", "min_vruntime", cfs.min_vruntime);
        out.word("cfs", "load", cfs.load_weight);
        out.word("cfs", "nr_queued", cfs.nr_queued as u64);
        out.word("cfs", "h_nr_queued", cfs.h_nr_queued as u64);
        out.word("cfs", "h_nr_idle", cfs.h_nr_idle as u64);
        out.word("rq", "nr_running", rq.nr_running as u64);
        out.word("rq", "curr", curr);
        out.word("cfs", "curr", self.number_of_entity(cfs.curr));
        out.word("cfs", "next", self.number_of_entity(cfs.next));
        out.word("cfs", "last", self.number_of_entity(cfs.last));
        out.word("cfs", "skip", self.number_of_entity(cfs.skip));
        out.word("rq", "need_resched", rq.need_resched as u64);
        let picked = if cfs.nr_queued != 0 { self.steps().pick_next_entity() } else { None };
        out.word("cfs", "pick", self.number_of(picked));
        let (rq, cfs) = (&self.kernel.inside().rq[CPU], &self.kernel.inside().cfs[ROOT]);
        let fold = |digest, task| mix(digest, self.number_of(Some(task)));
        let by_vruntime = cfs.timeline.iter().map(|node| self.kernel.inside().se[node.se].task);
        out.word("cfs", "timeline", by_vruntime.fold(0, fold));
        let next = |task: &TaskId| self.kernel.inside().tasks[*task].cfs_tasks_next;
        let by_run = std::iter::successors(rq.cfs_tasks_head, next);
        out.word("rq", "cfs_tasks", by_run.fold(0, fold));
        let everything = self.tasks.iter().fold(0, |digest, &task| {
            let se = self.entity(task);
            let words = [se.vruntime, se.sum_exec_runtime, self.state_bits(task)];
            words.into_iter().fold(digest, mix)
        });
        out.word("cfs", "everything", everything);
        out_avg(out, "cfs.avg", &self.kernel.inside().cfs[ROOT].avg);
        if let Some(task) = task {
            let se = self.entity(task);
            out.word("se", "vruntime", se.vruntime);
            out.word("se", "exec_start", se.exec_start);
            out.word("se", "sum_exec_runtime", se.sum_exec_runtime);
            out.word("se", "prev_sum_exec_runtime", se.prev_sum_exec_runtime);
            out.word("se", "weight", se.load.weight);
            out.word("se", "state", self.state_bits(task));
            out_avg(out, "se.avg", &self.entity(task).avg);
        }
    }
}

fn out_avg(out: &mut Out, owner: &str, sa: &SchedAvg) {
    out.word(owner, "last_update_time", sa.last_update_time);
    out.word(owner, "load_sum", sa.load_sum);
    out.word(owner, "runnable_sum", sa.runnable_sum);
    out.word(owner, "util_sum", sa.util_sum as u64);
    out.word(owner, "period_contrib", sa.period_contrib as u64);
    out.word(owner, "load_avg", sa.load_avg);
    out.word(owner, "runnable_avg", sa.runnable_avg);
    out.word(owner, "util_avg", sa.util_avg);
    out.word(owner, "util_est", sa.util_est as u64);
    out.word(owner, "util_est_ewma", sa.util_est_ewma as u64);
}

impl Subject for Cfs {
    const NAME: &'static str = "cfs";
    const TREE: &'static str = TREE_6_1;

    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "config",
            args: &["latency", "min_gran", "wakeup_gran", "idle_min_gran", "features", "clock"],
        },
        OpSpec { name: "start", args: &["min_vruntime"] },
        OpSpec {
            name: "task",
            args: &["weight", "inv_weight", "policy", "vruntime", "exec_start"],
        },
        OpSpec { name: "wake", args: &["delta", "task", "migrated", "vruntime"] },
        OpSpec { name: "fork", args: &["delta", "task"] },
        OpSpec { name: "schedule", args: &["delta", "sleeps"] },
        OpSpec { name: "tick", args: &["delta"] },
        OpSpec { name: "yield", args: &["delta"] },
        OpSpec { name: "leave", args: &["delta", "task"] },
        OpSpec { name: "join", args: &["delta", "task", "vruntime", "forked"] },
        OpSpec {
            name: "change",
            args: &["delta", "task", "weight", "inv_weight", "policy", "moves"],
        },
        OpSpec { name: "preempt", args: &["delta", "task"] },
        OpSpec { name: "weight", args: &["delta", "index"] },
        OpSpec { name: "block", args: &["delta"] },
        OpSpec { name: "slice", args: &["delta", "task", "other"] },
    ];

    const TURNS: Option<TurnOps> = Some(TurnOps {
        begin: &[
            Record { op: CONFIG, args: [6_000_000, 750_000, 1_000_000, 750_000, 0b1_1111_1011, 1] },
            Record { op: START, args: [0; ARGS] },
        ],
        task: || Record::new(TASK, &[1 << 20, 1 << 22]),
        wake: |delta, task| Record::new(WAKE, &[delta, task]),
        schedule: |delta, sleeps| Record::new(SCHEDULE, &[delta, sleeps.into()]),
        tick: |delta| Record::new(TICK, &[delta]),
    });
    const SOURCES: Sources = fair::SOURCES;
    const MUTATIONS: &'static [Mutation] = mutations::CFS;
    const GOLDEN_SHOWN: u64 = 1;
    const GOLDEN_CASES: u64 = 10_000;

    fn new() -> Cfs {
        let tunables = CfsTunables {
            latency: 6_000_000,
            min_granularity: 750_000,
            wakeup_granularity: 1_000_000,
            idle_min_granularity: 750_000,
        };
        Cfs { world: World::new(boot(tunables, features(0))) }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        if record.op >= WAKE {
            *self.kernel.inside_mut().now += a;
            self.kernel.update_rq_clock(CPU);
        }
        let numbered = |tasks: &Vec<TaskId>| Some(tasks[b as usize]);
        let mut result = 0;
        let mut subject = None;
        match record.op {
            CONFIG => {
                let tunables = CfsTunables {
                    latency: a,
                    min_granularity: b,
                    wakeup_granularity: c,
                    idle_min_granularity: d,
                };
                self.kernel = boot(tunables, features(e));
                *self.kernel.inside_mut().now = f;
                self.kernel.update_rq_clock(CPU);
            }
            START => self.kernel.inside_mut().cfs[ROOT].min_vruntime = a,
            TASK => {
                let task = self.kernel.new_task(None, TaskKind::User);
                self.tasks.push(task);
                self.kernel.inside_mut().tasks[task].policy = policy(c);
                let entity = self.entity_mut(task);
                entity.load = LoadWeight { weight: a, inv_weight: b as u32 };
                (entity.vruntime, entity.exec_start) = (d, e);
                entity.avg = SchedAvg::default();
                subject = Some(task);
            }
            WAKE => {
                let task = self.tasks[b as usize];
                match c {
                    0 => {}
                    1 => self.steps().migrate_sleeper(task),
                    _ => self.entity_mut(task).vruntime = d,
                }
                if c != 0 {
                    // set_task_cpu(): its averages are attached anew.
                    self.entity_mut(task).avg.last_update_time = 0;
                }
                let migrated = if c != 0 { ENQUEUE_MIGRATED } else { 0 };
                self.come(task, ENQUEUE_WAKEUP | migrated, 0);
                subject = Some(task);
            }
            FORK => {
                let task = self.tasks[b as usize];
                self.steps().fork(task);
                self.come(task, 0, WF_FORK);
                subject = Some(task);
            }
            SCHEDULE => {
                subject = self.schedule(b != 0);
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
                self.steps().dequeue(task, DEQUEUE_NOCLOCK);
                // set_task_cpu(): its averages are attached anew.
                self.entity_mut(task).avg.last_update_time = 0;
                subject = Some(task);
            }
            JOIN => {
                let task = self.tasks[b as usize];
                self.entity_mut(task).vruntime = c;
                let migrates = self.kernel.inside().tasks[task].on_rq == OnRq::Migrating;
                let flags = if migrates { ENQUEUE_MIGRATED } else { 0 };
                self.come(task, flags, if d != 0 { WF_FORK } else { 0 });
                subject = Some(task);
            }
            CHANGE => {
                let load = LoadWeight { weight: c, inv_weight: d as u32 };
                self.change(self.tasks[b as usize], load, e, f != 0);
                subject = numbered(&self.tasks);
            }
            PREEMPT => {
                subject = numbered(&self.tasks);
                let task = self.task(b as usize);
                self.wakeup_preempt(task, 0);
            }
            WEIGHT => result = crate::eevdf::nice_weight(b),
            BLOCK => {
                subject = self.curr();
                self.block(subject.expect("somebody runs"));
            }
            SLICE => {
                let (task, other) = (self.tasks[b as usize], self.tasks[c as usize]);
                let preempts = self.steps().wakeup_preempt_entity(other, task);
                result = self.steps().sched_slice(task) ^ ((preempts + 1) as u64) << 60;
                subject = Some(task);
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
            // 1, 2, 4 and 8 CPUs.
            let factor = 1 + rng.below(4);
            let odd = |value: u64, rng: &mut Rng| {
                if rng.one_in(8) { 1 + rng.magnitude(26) } else { value }
            };
            let latency = odd(6_000_000 * factor, rng);
            let min = odd(750_000 * factor, rng);
            let wakeup = odd(1_000_000 * factor, rng);
            // The last one is UTIL_EST, always on.
            let bits = if rng.one_in(2) { 0b1111_1011 } else { rng.next() & 255 } | 1 << 8;
            let idle = odd(750_000, rng);
            return op(CONFIG, &[latency, min, wakeup, idle, bits, 1 + rng.magnitude(44)]);
        }
        if step == 1 {
            // Where init_cfs_rq() begins, and the places where numbers wrap.
            let start = match rng.below(4) {
                0 => rng.next(),
                1 => (1 << 63) - rng.below(4_000_000),
                _ => (-(1i64 << 20)) as u64,
            };
            return op(START, &[start]);
        }
        let min_vruntime = self.cfs_rq().min_vruntime;
        if (self.tasks.len() as u64) < self.planned && (step <= 3 || rng.one_in(2)) {
            let load = weight(rng);
            let vruntime = min_vruntime.wrapping_add(near(rng));
            let exec_start =
                if rng.one_in(2) { 0 } else { 1 + rng.below(*self.kernel.inside().now) };
            self.fresh |= 1 << self.tasks.len();
            let args = [load.weight, load.inv_weight as u64, kind(rng), vruntime, exec_start];
            return op(TASK, &args);
        }
        // Two sleeps of months are enough for any virtual time.
        if step >= self.length || *self.kernel.inside().now > 2 * LONG_SLEEP {
            return None;
        }
        let delta = duration(rng);
        let number = rng.below(self.tasks.len() as u64);
        let task = self.tasks[number as usize];
        let curr = self.curr();
        if rng.one_in(50) {
            return op(WEIGHT, &[delta, rng.below(40)]);
        }
        if rng.one_in(20) {
            return op(SLICE, &[delta, number, rng.below(self.tasks.len() as u64)]);
        }
        let blocked = curr.is_some_and(|curr| !self.is_queued(curr));
        // The running task has blocked: its switch ends, unless something else comes in between.
        if blocked && !rng.one_in(3) {
            return op(SCHEDULE, &[delta, 0]);
        }
        let (away, fresh) = (self.away >> number & 1 != 0, self.fresh >> number & 1 != 0);
        let running = curr == Some(task);
        if rng.one_in(24) && !away && !(running && blocked) {
            let load = weight(rng);
            let args =
                [delta, number, load.weight, load.inv_weight as u64, kind(rng), rng.below(2)];
            return op(CHANGE, &args);
        }
        if away || (fresh && rng.one_in(3)) {
            self.away &= !(1 << number);
            self.fresh &= !(1 << number);
            return op(JOIN, &[delta, number, near(rng), (!away) as u64]);
        }
        let switch = self.kernel.inside().rq[CPU].need_resched && !rng.one_in(4);
        let not_yet = self.is_queued(task) || (switch && rng.one_in(2));
        if !not_yet {
            self.fresh &= !(1 << number);
            if fresh && curr.is_some() && !blocked && rng.one_in(2) {
                return op(FORK, &[delta, number]);
            }
            let nobody = curr.is_none();
            let delta =
                if nobody && rng.one_in(100) { LONG_SLEEP - 2 + rng.below(1 << 30) } else { delta };
            return match rng.below(4) {
                0 if !(running && blocked) => op(WAKE, &[delta, number, 1]),
                1 if !(running && blocked) => op(WAKE, &[delta, number, 2, near(rng)]),
                _ => op(WAKE, &[delta, number, 0]),
            };
        }
        if self.is_queued(task) && !running && rng.one_in(12) {
            self.away |= 1 << number;
            return op(LEAVE, &[delta, number]);
        }
        if self.is_queued(task) && curr.is_some() && rng.one_in(10) {
            return op(PREEMPT, &[delta, number]);
        }
        if curr.is_some() && !blocked && !switch {
            // Mostly sleeping, mostly running, mixed.
            let sleepy = [3, 8, 4, 5][self.mix as usize];
            return match rng.below(10) {
                0 => op(YIELD, &[delta]),
                1..=4 => op(TICK, &[delta]),
                5 => op(BLOCK, &[delta]),
                _ if rng.one_in(sleepy) => op(SCHEDULE, &[delta, 0]),
                _ => op(SCHEDULE, &[delta, 1]),
            };
        }
        op(SCHEDULE, &[delta, 0])
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        // pelt.c needs the macros, and the functions need pelt.c.
        let macros = crate::eevdf::macros(tree, taken::SCHED_MACROS, taken::FAIR_MACROS)?;
        let file = build_dir.join("cfs_macros.h");
        std::fs::write(&file, macros)
            .map_err(|error| format!("write {}: {error}", file.display()))?;
        let functions =
            [taken::PELT_FUNCTIONS, taken::FAIR_FUNCTIONS, taken::MORE_FUNCTIONS].concat();
        let text = crate::eevdf::cut_out(tree, &[], &[], &functions)?;
        oracle::compile_with_rbtree(tree, build_dir, flags, ("cfs", "cfs"), &text)
    }
}

/// A distance in virtual time: small, a few periods, sometimes far.
fn near(rng: &mut Rng) -> u64 {
    let size = match rng.below(8) {
        0 => rng.below(FAR),
        1 => rng.below(3),
        _ => rng.magnitude(26),
    };
    if rng.one_in(2) { size } else { size.wrapping_neg() }
}

/// Nanoseconds between two operations.
fn duration(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => 0,
        1 => rng.below(2),
        2..=4 => rng.below(1_000_000),
        5 => rng.pick(&[750_000, 1_000_000, 3_000_000, 4_000_000, 6_000_000]),
        6 => rng.below(10_000_000),
        _ => rng.magnitude(27),
    }
}
