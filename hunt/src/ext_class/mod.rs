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

pub mod idle;
#[cfg(test)]
mod tests;

use idle::{IdleCpus, Question, Shape};
use schedtwin_engine::Scenario;
use schedtwin_engine::policy::steps::{Beginning, Call, Op, Step, Verdict};
use schedtwin_engine::policy::{
    SCX_DSQ_GLOBAL, SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_ON, SCX_ENQ_HEAD, SCX_ENQ_LAST, SCX_ENQ_MIGRATING,
    SCX_ENQ_PREEMPT, SCX_KICK_PREEMPT, SCX_OPS_ENQ_EXITING, SCX_OPS_ENQ_LAST, SCX_SLICE_DFL,
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
            ended: false,
            script: VecDeque::new(),
            done: 0,
            last: VecDeque::new(),
        };
        for cpu in 0..nr_cpus {
            class.queues.insert(local(CpuId(cpu as u16)), Queue::default());
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
        while !self.script.is_empty() && !self.ended {
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
            displaced: false,
        })
    }

    fn global(&self, cpu: CpuId) -> u64 {
        // By node: each has one of its own. The first CPU of a node stands for it.
        let node = self.shape.nodes[cpu.index()].lowest().map_or(0, |cpu| u64::from(cpu.0));
        SCX_DSQ_GLOBAL | node << 8
    }

    // ---- what the core asks --------------------------------------------------------------------------------------

    fn begin(&mut self, step: Step) {
        match step {
            Step::Select { task, prev, wake_flags, cpus } => {
                self.select(task, prev, wake_flags, cpus);
            }
            Step::Enqueue { cpu, task, enq_flags, cpus, runs, exiting } => {
                let t = self.task(task);
                assert!(!t.queued, "ext class: {task:?} is enqueued twice");
                (t.cpu, t.cpus, t.queued, t.exiting) = (cpu, cpus, true, exiting);
                t.displaced = runs && !cpus.contains(cpu);
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
                self.op(Op::Tick { task }, From::Other);
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
            }
            Step::Refilled { task } if self.old => self.refill(task),
            Step::Failed => {}
            other => self.part("something that the core asks", &other),
        }
    }

    /// Callbacks of a task's and the scheduler's life come when the core says.
    fn life(&mut self, op: Op, step: Step) {
        match op {
            Op::Enable { task } => {
                let task = self.task(task);
                assert!(!task.queued && !task.running, "ext class: enabled while it is queued");
                task.enabled = true;
            }
            Op::Disable { task } | Op::ExitTask { task } => {
                let task = self.task(task);
                assert!(!task.running, "ext class: disabled while it runs");
                task.enabled = false;
            }
            Op::InitTask { .. } | Op::Changed { .. } | Op::Timer { .. } | Op::Init => {}
            Op::Exit => self.ended = true,
            Op::CpuRelease { cpu, .. } => {
                let was = std::mem::replace(&mut self.cpus[cpu.index()].released, true);
                assert!(!was, "ext class: cpu{} is released twice", cpu.0);
            }
            _ => self.part("no callback by itself", &step),
        }
        self.calls(From::Other, step);
        if let Op::Disable { task } = op {
            let t = self.task(task);
            (t.slice, t.vtime) = (0, 0);
            // A task that changes its class while it runs goes on there.
            for cpu in &mut self.cpus {
                cpu.curr = cpu.curr.filter(|curr| *curr != task);
            }
        }
    }

    fn select(&mut self, task: TaskId, prev: CpuId, wake_flags: u64, cpus: CpuMask) {
        self.task(task).cpus = cpus;
        let cpu = self.op(Op::SelectCpu { task, prev, wake_flags }, From::Enqueue(task));
        let known = u16::try_from(cpu).ok().map(CpuId).filter(|cpu| self.shape.all.contains(*cpu));
        match known {
            Some(cpu) => self.expect(Step::Selected { task, cpu }),
            None => self.fails(),
        }
    }

    fn enqueue(&mut self, cpu: CpuId, task: TaskId, enq_flags: u64, runs: bool) {
        if enq_flags & SCX_ENQ_MIGRATING == 0 {
            self.op(Op::Runnable { task, enq_flags }, From::Other);
        }
        if runs {
            // It stays where it is, and is taken out again as it goes on.
            self.insert(task, cpu, local(cpu), None, None, enq_flags);
        } else {
            self.hand_over(task, enq_flags);
        }
    }

    /// A runnable task goes into a queue, directly or by the scheduler.
    fn hand_over(&mut self, task: TaskId, enq_flags: u64) {
        if self.task(task).direct.is_none() {
            let t = self.task(task);
            if t.exiting && !self.enq_exiting {
                let cpu = self.task(task).cpu;
                return self.insert(task, cpu, local(cpu), Some(SCX_SLICE_DFL), None, enq_flags);
            }
            let t = self.task(task);
            t.handed_over += 1;
            let nth = t.handed_over;
            self.op(Op::Enqueue { task, enq_flags }, From::Enqueue(task));
            if self.ended {
                return;
            }
            if self.task(task).direct.is_none() {
                let t = self.task(task);
                t.place = Place::Scheduler(nth);
                t.custody = true;
                return;
            }
        }
        let asked = self.task(task).direct.take().expect("one of the two");
        let cpu = self.task(task).cpu;
        let flags = asked.flags | enq_flags;
        let elsewhere =
            asked.dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON && asked.dsq_id != local(cpu);
        if elsewhere {
            self.task(task).place = Place::Deferred;
            self.cpus[cpu.index()].deferred.push((task, Insertion { flags, ..asked }));
            return;
        }
        let dsq_id = if asked.dsq_id == SCX_DSQ_LOCAL { local(cpu) } else { asked.dsq_id };
        self.insert(task, cpu, dsq_id, Some(asked.slice), asked.vtime, flags);
    }

    fn dequeue(&mut self, cpu: CpuId, task: TaskId, deq_flags: u64, migrating: bool) {
        let old = self.old;
        let t = self.task(task);
        if !t.queued {
            return;
        }
        let held = if old { matches!(t.place, Place::Scheduler(_)) } else { t.custody };
        t.custody = false;
        let place = t.place;
        if held {
            self.op(Op::Dequeue { task, deq_flags }, From::Other);
        }
        match place {
            Place::Queue(dsq_id) => self.unlink(task, dsq_id),
            Place::Deferred => {
                for cpu in &mut self.cpus {
                    cpu.deferred.retain(|(deferred, _)| *deferred != task);
                }
            }
            _ => {}
        }
        self.task(task).place = Place::Nowhere;
        self.charged();
        if self.cpus[cpu.index()].curr == Some(task) && self.task(task).running {
            self.task(task).running = false;
            self.op(Op::Stopping { task, runnable: false }, From::Other);
        }
        if !migrating {
            self.op(Op::Quiescent { task, deq_flags }, From::Other);
        }
        let t = self.task(task);
        (t.queued, t.direct) = (false, None);
    }

    fn pick(&mut self, cpu: CpuId, prev: TaskId, prev_is_ext: bool) {
        self.charged();
        self.cpus[cpu.index()].in_dispatch = true;
        let verdict = self.find(cpu, prev_is_ext.then_some(prev));
        self.cpus[cpu.index()].in_dispatch = false;
        self.expect(Step::Picked { cpu, verdict });
        let next = match verdict {
            _ if self.ended => return,
            Verdict::Prev => prev,
            Verdict::Local => self.queues[&local(cpu)].tasks[0],
            Verdict::None => return,
        };
        // 6.12 picks later.
        if !self.old && self.task(next).slice == 0 {
            self.expect(Step::Refilled { task: next });
            self.refill(next);
        }
    }

    fn refill(&mut self, task: TaskId) {
        let slice = &mut self.task(task).slice;
        if *slice == 0 {
            *slice = SCX_SLICE_DFL;
        }
    }

    fn find(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Verdict {
        if std::mem::take(&mut self.cpus[cpu.index()].released) {
            self.op(Op::CpuAcquire { cpu }, From::Other);
            self.charged();
        }
        if self.goes_on(prev) {
            return Verdict::Prev;
        }
        if !self.queues[&local(cpu)].tasks.is_empty() {
            return Verdict::Local;
        }
        if self.consume(cpu, self.global(cpu), 0) {
            return Verdict::Local;
        }
        for _ in 0..DISPATCH_MAX {
            self.moved = 0;
            self.op(Op::Dispatch { cpu, prev }, From::Dispatch(cpu));
            self.flush(cpu);
            if self.ended {
                return Verdict::None;
            }
            self.charged();
            if self.goes_on(prev) {
                return Verdict::Prev;
            }
            if !self.queues[&local(cpu)].tasks.is_empty() || self.consume(cpu, self.global(cpu), 0)
            {
                return Verdict::Local;
            }
            if self.moved == 0 {
                break;
            }
        }
        if self.moved != 0 {
            self.cpus[cpu.index()].kicks.entry(cpu.0.into()).or_default();
        }
        match prev {
            Some(prev) if self.task(prev).queued && !self.enq_last => Verdict::Prev,
            _ => Verdict::None,
        }
    }

    fn goes_on(&mut self, prev: Option<TaskId>) -> bool {
        prev.is_some_and(|prev| {
            let prev = self.task(prev);
            prev.queued && prev.slice > 0
        })
    }

    fn put_prev(&mut self, cpu: CpuId, task: TaskId, next_is_idle: bool, goes_on: bool) {
        self.charged();
        if self.task(task).queued {
            self.op(Op::Stopping { task, runnable: true }, From::Other);
        }
        self.task(task).running = false;
        if self.task(task).queued {
            self.put_runnable(cpu, task, next_is_idle);
        }
        if !goes_on {
            self.cpus[cpu.index()].curr = None;
        }
    }

    fn put_runnable(&mut self, cpu: CpuId, task: TaskId, next_is_idle: bool) {
        if self.task(task).slice > 0 {
            self.insert(task, cpu, local(cpu), None, None, SCX_ENQ_HEAD);
        } else {
            self.hand_over(task, if next_is_idle { SCX_ENQ_LAST } else { 0 });
        }
    }

    fn set_next(&mut self, cpu: CpuId, task: TaskId) {
        let place = self.task(task).place;
        match place {
            Place::Queue(dsq_id) => {
                assert_eq!(dsq_id, local(cpu), "ext class: {task:?} runs out of another queue");
                self.unlink(task, dsq_id);
            }
            Place::Nowhere => {}
            _ => panic!("ext class: {task:?} runs while it is {place:?}"),
        }
        let t = self.task(task);
        assert!(
            t.displaced || t.cpus.contains(cpu),
            "ext class: {task:?} runs on cpu{} that it may not use",
            cpu.0
        );
        (t.place, t.cpu, t.running) = (Place::Nowhere, cpu, true);
        let queued = t.queued;
        self.cpus[cpu.index()].curr = Some(task);
        if queued {
            self.op(Op::Running { task }, From::Other);
        }
    }

    fn update_idle(&mut self, cpu: CpuId, idle: bool, notify: bool) {
        if self.old && notify {
            self.op(Op::UpdateIdle { cpu, idle }, From::Other);
        }
        self.idle.set_idle(&self.shape, cpu, idle);
        if !self.old && notify {
            self.op(Op::UpdateIdle { cpu, idle }, From::Other);
        }
    }

    fn deferred(&mut self, cpu: CpuId) {
        let all = std::mem::take(&mut self.cpus[cpu.index()].deferred);
        for (task, asked) in all {
            self.goes_to_local_on(task, asked);
        }
    }

    /// Into the local queue of a CPU that is named, with the task's move to it.
    fn goes_to_local_on(&mut self, task: TaskId, asked: Insertion) {
        let to = CpuId((asked.dsq_id & 0xffff) as u16);
        let t = self.task(task);
        if !t.cpus.contains(to) {
            self.fails();
            return;
        }
        if t.cpu != to {
            t.cpu = to;
            self.expect(Step::Moved { task, to });
        }
        self.insert(task, to, local(to), Some(asked.slice), None, asked.flags);
    }

    fn kicks(&mut self, cpu: CpuId) {
        for (target, flags) in std::mem::take(&mut self.cpus[cpu.index()].kicks) {
            let curr = self.cpus[target as usize].curr;
            if flags & SCX_KICK_PREEMPT != 0
                && let Some(curr) = curr
            {
                self.task(curr).slice = 0;
            }
        }
    }

    // ---- queues --------------------------------------------------------------------------------------------------

    fn unlink(&mut self, task: TaskId, dsq_id: u64) {
        let queue = self.queues.get_mut(&dsq_id).expect("it waits there");
        let before = queue.tasks.len();
        queue.tasks.retain(|queued| *queued != task);
        assert_eq!(queue.tasks.len() + 1, before, "ext class: {task:?} is not in {dsq_id:#x}");
    }

    /// `slice`: one that comes with the insertion; 0: the task keeps what it has, one nanosecond at least.
    fn insert(
        &mut self,
        task: TaskId,
        cpu: CpuId,
        dsq_id: u64,
        slice: Option<u64>,
        vtime: Option<u64>,
        flags: u64,
    ) {
        let dsq_id = if dsq_id == SCX_DSQ_GLOBAL { self.global(cpu) } else { dsq_id };
        let built_in = dsq_id & BUILT_IN != 0;
        if !self.queues.contains_key(&dsq_id) || built_in && vtime.is_some() {
            self.fails();
            return;
        }
        let old = self.old;
        let t = self.task(task);
        // 6.12 sets both at the call.
        if let Some(slice) = slice.filter(|_| !old) {
            t.slice = if slice == 0 { t.slice.max(1) } else { slice };
        }
        if let Some(vtime) = vtime.filter(|_| !old) {
            t.vtime = vtime;
        }
        let was_held = t.custody;
        (t.place, t.custody) = (Place::Queue(dsq_id), !built_in);
        let slice = t.slice;
        let at_head = flags & (SCX_ENQ_HEAD | SCX_ENQ_PREEMPT) != 0 && vtime.is_none();
        let queue = &self.queues[&dsq_id];
        if !queue.tasks.is_empty() && queue.by_vtime != vtime.is_some() {
            self.fails();
            return;
        }
        let at = match vtime {
            Some(vtime) => {
                let later =
                    |other: &TaskId| (self.tasks[other].vtime.wrapping_sub(vtime) as i64) > 0;
                queue.tasks.iter().position(later).unwrap_or(queue.tasks.len())
            }
            None if at_head => 0,
            None => queue.tasks.len(),
        };
        let queue = self.queues.get_mut(&dsq_id).expect("seen above");
        queue.by_vtime = vtime.is_some();
        queue.tasks.insert(at, task);
        let named = if built_in && dsq_id & SCX_DSQ_LOCAL_ON != SCX_DSQ_LOCAL_ON {
            SCX_DSQ_GLOBAL
        } else {
            dsq_id
        };
        self.expect(Step::Inserted { task, dsq_id: named, slice, at_head });
        let in_dispatch = self.cpus[cpu.index()].in_dispatch && !self.old;
        if dsq_id == local(cpu) && flags & SCX_ENQ_PREEMPT != 0 && !in_dispatch {
            let curr = self.cpus[cpu.index()].curr;
            if let Some(curr) = curr.filter(|curr| *curr != task) {
                self.task(curr).slice = 0;
            }
        }
        if was_held && built_in && !self.old {
            self.owe(Op::Dequeue { task, deq_flags: 0 });
        }
    }

    fn consume(&mut self, cpu: CpuId, dsq_id: u64, flags: u64) -> bool {
        let may = |task: &&TaskId| {
            let task = &self.tasks[task];
            task.cpu == cpu || task.cpus.contains(cpu)
        };
        let Some(task) = self.queues[&dsq_id].tasks.iter().find(may).copied() else { return false };
        self.unlink(task, dsq_id);
        if self.task(task).cpu != cpu {
            self.task(task).cpu = cpu;
            self.expect(Step::Moved { task, to: cpu });
        }
        self.insert(task, cpu, local(cpu), None, None, flags);
        true
    }

    /// What `dispatch` has asked for so far is done.
    fn flush(&mut self, cpu: CpuId) {
        for (task, nth, asked) in std::mem::take(&mut self.buffer) {
            self.moved += 1;
            if self.task(task).place != Place::Scheduler(nth) || self.ended {
                continue;
            }
            if asked.dsq_id == SCX_DSQ_LOCAL {
                self.goes_to_local_on(task, Insertion { dsq_id: local(cpu), ..asked });
            } else if asked.dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON {
                self.goes_to_local_on(task, asked);
            } else {
                let at = self.task(task).cpu;
                self.insert(task, at, asked.dsq_id, Some(asked.slice), asked.vtime, asked.flags);
            }
        }
    }

    // ---- the scheduler -------------------------------------------------------------------------------------------

    /// A callback that is due, at once or after the one that runs: a scheduler is not called within its own call.
    fn owe(&mut self, op: Op) {
        if self.depth > 0 {
            self.owed.push(op);
        } else {
            self.op(op, From::Other);
        }
    }

    fn op(&mut self, op: Op, from: From) -> i32 {
        if self.ended {
            return 0;
        }
        let got = self.next();
        match got {
            Step::Op { op: called, .. } if called == op => self.calls(from, got),
            _ if self.ended => 0,
            _ => self.part(&format!("{op:?}"), &got),
        }
    }

    /// The functions that a callback calls, until it ends.
    fn calls(&mut self, from: From, begun: Step) -> i32 {
        let Step::Op { this, .. } = begun else { unreachable!("a callback") };
        self.depth += 1;
        let returned = loop {
            match self.next() {
                Step::OpEnds { returned } => break returned,
                Step::Call(call) => {
                    let returned = self.call(call, this, from);
                    if self.ended {
                        break 0;
                    }
                    match returned {
                        Some(returned) => self.expect(Step::CallEnds { returned }),
                        None => match self.next() {
                            Step::CallEnds { .. } => {}
                            other => self.part("the end of a function", &other),
                        },
                    }
                }
                _ if self.ended => break 0,
                other => self.part("a function or the callback's end", &other),
            }
        };
        self.depth -= 1;
        if self.depth == 0 {
            for op in std::mem::take(&mut self.owed) {
                self.op(op, From::Other);
            }
        }
        returned
    }

    /// One function: what it returns; `None`: that is not followed.
    fn call(&mut self, call: Call, this: CpuId, from: From) -> Option<i64> {
        let returned = match call {
            Call::CreateDsq { dsq_id } => {
                let known = self.queues.contains_key(&dsq_id);
                self.queues.entry(dsq_id).or_default();
                if known { -17 } else { 0 }
            }
            Call::Insert { task, dsq_id, slice, vtime, enq_flags } => {
                let asked = Insertion { dsq_id, slice, vtime, flags: enq_flags };
                self.ask(task, asked, from).into()
            }
            Call::MoveToLocal { dsq_id, enq_flags } => {
                let From::Dispatch(cpu) = from else { return None };
                self.flush(cpu);
                if !self.queues.contains_key(&dsq_id) {
                    self.fails();
                    return None;
                }
                let found = self.consume(cpu, dsq_id, enq_flags);
                self.moved += u32::from(found);
                found.into()
            }
            Call::Move { task, from: of, dsq_id, slice, vtime, priq, enq_flags } => {
                if self.task(task).place == Place::Queue(of) {
                    let t = self.task(task);
                    (t.slice, t.vtime) = (slice.unwrap_or(t.slice), vtime.unwrap_or(t.vtime));
                    let vtime = priq.then_some(t.vtime);
                    self.move_out(task, of, dsq_id, vtime, enq_flags);
                    1
                } else {
                    0
                }
            }
            Call::IterFirst { dsq_id, rev } => {
                let tasks = &self.queues.get(&dsq_id)?.tasks;
                let end = if rev { tasks.last() } else { tasks.first() };
                end.map_or(-1, |task| i64::from(task.0))
            }
            Call::SelectDfl { task, prev, wake_flags, cursor } => {
                let cpus = self.task(task).cpus;
                self.idle.cursors[this.index()] = cursor.index();
                let found = self.ask_idle(this, prev, wake_flags, &cpus, 0);
                i64::from(found.unwrap_or(prev).0) | i64::from(found.is_some()) << 32
            }
            Call::SelectAnd { task, prev, wake_flags, mask, flags, cursor } => {
                self.idle.cursors[this.index()] = cursor.index();
                let cpus = self.task(task).cpus.and(&mask);
                let found = self.ask_idle(this, prev, wake_flags, &cpus, flags);
                found.map_or(-1, |cpu| cpu.0.into())
            }
            Call::Kick { cpu, flags } => {
                if !u16::try_from(cpu).is_ok_and(|cpu| self.shape.all.contains(CpuId(cpu))) {
                    self.fails();
                    return None;
                }
                *self.cpus[this.index()].kicks.entry(cpu).or_default() |= flags;
                0
            }
            Call::SetSlice { task, slice } => {
                self.task(task).slice = slice;
                1
            }
            Call::SetVtime { task, vtime } => {
                self.task(task).vtime = vtime;
                1
            }
            Call::Other => return None,
        };
        Some(returned)
    }

    fn ask_idle(
        &mut self,
        this: CpuId,
        prev: CpuId,
        wake_flags: u64,
        allowed: &CpuMask,
        flags: u64,
    ) -> Option<CpuId> {
        let local_is_empty = self.queues[&local(this)].tasks.is_empty();
        let q = Question {
            this,
            prev,
            wake_flags,
            allowed,
            flags,
            local_is_empty,
            waker_exits: false,
            old: self.old,
        };
        self.idle.select(&self.shape, &q)
    }

    /// `scx_bpf_dsq_insert()`.
    fn ask(&mut self, task: TaskId, asked: Insertion, from: From) -> bool {
        if self.old {
            let t = self.task(task);
            t.slice = if asked.slice == 0 { t.slice.max(1) } else { asked.slice };
            t.vtime = asked.vtime.unwrap_or(t.vtime);
        }
        match from {
            From::Enqueue(own) => {
                if task != own || self.task(task).direct.is_some() {
                    self.fails();
                    return false;
                }
                self.task(task).direct = Some(asked);
            }
            From::Dispatch(_) => {
                if self.buffer.len() >= self.batch {
                    self.fails();
                    return false;
                }
                let nth = self.task(task).handed_over;
                self.buffer.push((task, nth, asked));
            }
            From::Other => {
                self.fails();
                return false;
            }
        }
        true
    }

    /// `scx_bpf_dsq_move()` of a task that waits in `of`.
    fn move_out(&mut self, task: TaskId, of: u64, dsq_id: u64, vtime: Option<u64>, flags: u64) {
        self.unlink(task, of);
        let mut cpu = self.task(task).cpu;
        if dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON {
            let to = CpuId((dsq_id & 0xffff) as u16);
            if !self.task(task).cpus.contains(to) {
                return self.fails();
            }
            if cpu != to {
                self.task(task).cpu = to;
                self.expect(Step::Moved { task, to });
            }
            cpu = to;
        }
        self.insert(task, cpu, dsq_id, None, vtime, flags);
    }

    // ---- invariants ----------------------------------------------------------------------------------------------

    /// What always holds between two steps.
    fn verify(&self) {
        if self.ended {
            return;
        }
        for (dsq_id, queue) in &self.queues {
            for task in &queue.tasks {
                let t = &self.tasks[task];
                assert_eq!(t.place, Place::Queue(*dsq_id), "ext class: {task:?} is in two places");
                let cpu = CpuId((dsq_id & 0xffff) as u16);
                let local = dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON;
                assert!(
                    !local || t.cpu == cpu && (t.displaced || t.cpus.contains(cpu)),
                    "ext class: {task:?} waits on cpu{}",
                    cpu.0
                );
            }
            let vtime = |task: &TaskId| self.tasks[task].vtime;
            let sorted = queue
                .tasks
                .windows(2)
                .all(|two| (vtime(&two[1]).wrapping_sub(vtime(&two[0])) as i64) >= 0);
            assert!(!queue.by_vtime || sorted, "ext class: {dsq_id:#x} is not in order");
        }
        for (id, t) in &self.tasks {
            if let Place::Queue(dsq_id) = t.place {
                assert!(
                    self.queues[&dsq_id].tasks.contains(id),
                    "ext class: {id:?} is lost out of {dsq_id:#x}"
                );
                assert_eq!(t.custody, dsq_id & BUILT_IN == 0, "ext class: custody of {id:?}");
            }
            assert!(
                !t.running || t.place == Place::Nowhere || t.queued,
                "ext class: {id:?} runs and waits"
            );
            assert!(
                t.queued || matches!(t.place, Place::Nowhere),
                "ext class: {id:?} waits and sleeps"
            );
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
