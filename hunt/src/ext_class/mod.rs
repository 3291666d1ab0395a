// SPDX-License-Identifier: GPL-2.0-or-later
//! A second sched_ext class, plain: maps, lists, and no speed. It follows a run step by step.
//!
//! **Idea.** The twin's class notes its steps ([`Step`]). What the core asks and what the scheduler calls are inputs, and the rest is what
//! this class says comes next: which callback with which arguments, what a function returns, into which queue and where in it a task
//! goes, which CPU is chosen, what a pick finds, how much of a slice is left. The first step that differs is a finding.
//!
//! Written from the description of 7.3.4 and 6.12.95 that the twin's class was written from, and from excerpts of the kernel's C, without
//! the twin's class at hand.
//!
//! | state | as |
//! |---|---|
//! | tasks, dispatch queues | ordered maps; a queue is a list in dispatch order |
//! | where a task waits | [`Place`], one at a time |
//! | idle CPUs | [`idle`] |
//!
//! After each step the invariants of the class hold ([`ExtClass::verify`]).

mod bypass;
mod core;
pub mod idle;
mod queues;
mod scheduler;
#[cfg(test)]
mod tests;
mod verify;

use idle::{IdleCpus, Shape};
use schedtwin_engine::Scenario;
use schedtwin_engine::policy::steps::{Beginning, Op, Step};
use schedtwin_engine::policy::{
    SCX_DSQ_GLOBAL, SCX_DSQ_LOCAL_ON, SCX_OPS_ENQ_EXITING, SCX_OPS_ENQ_LAST, SCX_SLICE_DFL,
    SCX_SLICE_INF,
};
use schedtwin_engine::twin::Twin;
use schedtwin_types::{CpuId, CpuMask, TaskId};
use std::collections::{BTreeMap, VecDeque};

/// How often one pick calls `dispatch`.
const DISPATCH_MAX: u32 = 32;
const BUILT_IN: u64 = 1 << 63;

/// Where a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// In a queue; local ones by their CPU.
    Queue(u64),
    /// With the scheduler, handed over for the n-th time.
    Scheduler(u32),
    /// On its way to the local queue of another CPU.
    Deferred,
}

/// What an insertion asks for.
#[derive(Clone, Copy, Debug)]
struct Insertion {
    dsq_id: u64,
    slice: u64,
    vtime: Option<u64>,
    flags: u64,
}

#[derive(Clone, Debug)]
struct Task {
    cpus: CpuMask,
    cpu: CpuId,
    slice: u64,
    vtime: u64,
    queued: bool,
    running: bool,
    place: Place,
    custody: bool,
    handed_over: u32,
    /// Asked for in `select_cpu` or `enqueue`, not done yet.
    direct: Option<Insertion>,
    enabled: bool,
    exiting: bool,
    /// When it began to wait: a number that grows.
    waits_since: u64,
    /// It may not use the CPU on which it runs any more: the stopper is about to take it away.
    displaced: bool,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    tasks: Vec<TaskId>,
    by_vtime: bool,
}

#[derive(Clone, Debug)]
struct Cpu {
    curr: Option<TaskId>,
    deferred: Vec<(TaskId, Insertion)>,
    kicks: BTreeMap<i32, u64>,
    in_dispatch: bool,
    /// A class above has it.
    released: bool,
    /// The scheduler is to hear that it idles, at the next look.
    owes_idle: bool,
}

/// Who calls the kernel's functions.
#[derive(Clone, Copy, Debug)]
enum From {
    /// `select_cpu` or `enqueue` of a task.
    Enqueue(TaskId),
    Dispatch(CpuId),
    Other,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct ExtClass {
    shape: Shape,
    idle: IdleCpus,
    /// As 6.12 has it.
    old: bool,
    enq_last: bool,
    enq_exiting: bool,
    batch: usize,
    tasks: BTreeMap<TaskId, Task>,
    queues: BTreeMap<u64, Queue>,
    cpus: Vec<Cpu>,
    /// Of the running `dispatch`.
    buffer: Vec<(TaskId, u32, Insertion)>,
    moved: u32,
    /// Callbacks that are due as soon as the present one is over.
    owed: Vec<Op>,
    depth: u32,
    /// The scheduler is not asked.
    bypass: bool,
    /// It is to go.
    leaves: bool,
    waits: u64,
    /// The scheduler has made a mistake; from here on it is unloaded.
    ended: bool,
    script: VecDeque<Step>,
    done: u64,
    last: VecDeque<Step>,
}

impl ExtClass {
    /// As the twin's class is where it begins to be followed.
    pub fn new(shape: Shape, at: &Beginning) -> ExtClass {
        let (old, flags, batch) = (at.balances, at.flags, at.dispatch_max_batch);
        let nr_cpus = shape.all.weight() as usize;
        let idle = IdleCpus { cpu: at.idle[0], smt: at.idle[1], cursors: vec![0; nr_cpus] };
        let cpu = Cpu {
            curr: None,
            deferred: Vec::new(),
            kicks: BTreeMap::new(),
            in_dispatch: false,
            released: false,
            owes_idle: false,
        };
        let mut class = ExtClass {
            shape,
            idle,
            old,
            enq_last: flags & SCX_OPS_ENQ_LAST != 0,
            enq_exiting: flags & SCX_OPS_ENQ_EXITING != 0,
            batch,
            tasks: BTreeMap::new(),
            queues: BTreeMap::new(),
            cpus: vec![cpu; nr_cpus],
            buffer: Vec::new(),
            moved: 0,
            owed: Vec::new(),
            depth: 0,
            bypass: false,
            leaves: false,
            waits: 0,
            ended: false,
            script: VecDeque::new(),
            done: 0,
            last: VecDeque::new(),
        };
        for cpu in 0..nr_cpus {
            class.queues.insert(local(CpuId(cpu as u16)), Queue::default());
            class.queues.insert(bypass::bypass(CpuId(cpu as u16)), Queue::default());
            let node = class.global(CpuId(cpu as u16));
            class.queues.entry(node).or_default();
        }
        class.queues.extend(at.dsqs.iter().map(|dsq_id| (*dsq_id, Queue::default())));
        class
    }

    /// How many steps agreed.
    pub fn steps(&self) -> u64 {
        self.done
    }

    /// Whether the scheduler has been unloaded for a mistake.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Follows these steps. Panics at the first that differs.
    pub fn follow(&mut self, steps: Vec<Step>) {
        self.script.extend(steps);
        while !self.ended {
            // A server's timer charges the running task, and that may be all.
            self.charged();
            if self.script.is_empty() {
                break;
            }
            let step = self.next();
            self.begin(step);
            self.verify();
        }
        self.script.clear();
    }

    // ---- the script ----------------------------------------------------------------------------------------------

    fn part(&self, expected: &str, got: &Step) -> ! {
        let before: Vec<String> = self.last.iter().map(|step| format!("  {step:?}")).collect();
        panic!(
            "ext class: step {}: expected {expected}, the twin has {got:?}; before that\n{}",
            self.done,
            before.join("\n")
        );
    }

    fn next(&mut self) -> Step {
        loop {
            let Some(step) = self.script.pop_front() else {
                panic!("ext class: the steps end within one, after {:?}", self.last.back());
            };
            self.done += 1;
            self.last.push_back(step);
            if self.last.len() > 12 {
                self.last.pop_front();
            }
            match step {
                Step::Charge { task, ns } => self.charge(task, ns),
                Step::Leaves => self.leaves = true,
                Step::Failed => {
                    self.ended = true;
                    return step;
                }
                _ => return step,
            }
        }
    }

    fn expect(&mut self, expected: Step) {
        if self.ended {
            return;
        }
        let got = self.next();
        if got != expected && !self.ended {
            self.part(&format!("{expected:?}"), &got);
        }
    }

    /// A mistake: the class says so within this step, and the scheduler's time is over.
    fn fails(&mut self) {
        // The task may be in the queue before the word is said.
        while !self.ended {
            match self.next() {
                Step::Inserted { .. } | Step::Failed => {}
                other => self.part("the end of a scheduler that has made a mistake", &other),
            }
        }
    }

    /// Takes the charges that come next, so that slices are as they are now.
    fn charged(&mut self) {
        while let Some(Step::Charge { task, ns }) = self.script.front().copied() {
            self.script.pop_front();
            self.done += 1;
            self.charge(task, ns);
        }
    }

    fn charge(&mut self, task: TaskId, ns: u64) {
        let slice = &mut self.task(task).slice;
        if *slice != SCX_SLICE_INF {
            *slice = slice.saturating_sub(ns);
        }
    }

    fn task(&mut self, task: TaskId) -> &mut Task {
        let all = self.shape.all;
        self.tasks.entry(task).or_insert_with(|| Task {
            cpus: all,
            cpu: CpuId(0),
            slice: SCX_SLICE_DFL,
            vtime: 0,
            queued: false,
            running: false,
            place: Place::Nowhere,
            custody: false,
            handed_over: 0,
            direct: None,
            enabled: true,
            exiting: false,
            waits_since: 0,
            displaced: false,
        })
    }

    /// A task begins to wait: it is the last of its CPU's.
    fn waits(&mut self, task: TaskId) {
        self.waits += 1;
        let since = self.waits;
        self.task(task).waits_since = since;
    }

    fn global(&self, cpu: CpuId) -> u64 {
        // By node: each has one of its own. The first CPU of a node stands for it.
        let node = self.shape.nodes[cpu.index()].lowest().map_or(0, |cpu| u64::from(cpu.0));
        SCX_DSQ_GLOBAL | node << 8
    }

    // ---- what the core asks --------------------------------------------------------------------------------------

    fn begin(&mut self, step: Step) {
        match step {
            Step::Select { this, task, prev, wake_flags, cpus } => {
                self.select(this, task, prev, wake_flags, cpus);
            }
            Step::Enqueue { cpu, task, enq_flags, cpus, runs, exiting } => {
                let t = self.task(task);
                assert!(!t.queued, "ext class: {task:?} is enqueued twice");
                (t.cpu, t.cpus, t.queued, t.exiting) = (cpu, cpus, true, exiting);
                t.displaced = runs && !cpus.contains(cpu);
                self.waits(task);
                self.enqueue(cpu, task, enq_flags, runs);
            }
            Step::Dequeue { cpu, task, deq_flags, migrating } => {
                self.dequeue(cpu, task, deq_flags, migrating);
            }
            Step::Pick { cpu, prev, prev_is_ext } => self.pick(cpu, prev, prev_is_ext),
            Step::PutPrev { cpu, task, next_is_idle, goes_on, exiting } => {
                self.task(task).exiting = exiting;
                self.put_prev(cpu, task, next_is_idle, goes_on);
            }
            Step::SetNext { cpu, task } => self.set_next(cpu, task),
            Step::Tick { task, .. } => {
                self.charged();
                if self.bypass {
                    self.task(task).slice = 0;
                } else {
                    self.op(Op::Tick { task }, From::Other);
                }
            }
            Step::Yield { task, .. } => {
                self.op(Op::Yield { from: task }, From::Other);
            }
            Step::Idle { cpu, idle, notify } => self.update_idle(cpu, idle, notify),
            Step::Deferred { cpu } => self.deferred(cpu),
            Step::Kicks { cpu } => self.kicks(cpu),
            Step::Op { op, .. } => self.life(op, step),
            Step::Moved { task, to } => {
                // A task that waits follows its affinity, or balancing of what is not ours.
                self.task(task).cpu = to;
                self.waits(task);
            }
            Step::Bypass { on } => self.set_bypass(on),
            Step::Refilled { task } if self.old => self.refill(task),
            Step::Failed => {}
            other => self.part("something that the core asks", &other),
        }
    }
}

/// Runs a scenario and follows its class; returns the number of steps. `None`: no scheduler is loaded, or there are more events.
/// Panics at the first step that differs.
pub fn follow(scenario: &Scenario, seed: u64, events_max: u64) -> Option<u64> {
    follow_from(scenario, seed, events_max, |_| {})
}

/// The same by a class that begins otherwise.
fn follow_from(
    scenario: &Scenario,
    seed: u64,
    events_max: u64,
    change: impl FnOnce(&mut Beginning),
) -> Option<u64> {
    let mut twin: Twin = scenario.twin(seed);
    let nr_cpus = scenario.machine().nr_cpus();
    let shape = Shape::new(twin.kernel().inside().topology, nr_cpus);
    let mut at = twin.kernel_mut().scx_follow()?;
    change(&mut at);
    let mut class = ExtClass::new(shape, &at);
    while twin.events() < events_max && !class.ended {
        let more = twin.step(&mut ());
        class.follow(twin.kernel_mut().scx_take_steps());
        if !more {
            break;
        }
    }
    Some(class.done)
}

/// The ID of a CPU's local queue.
fn local(cpu: CpuId) -> u64 {
    SCX_DSQ_LOCAL_ON | u64::from(cpu.0)
}
