// SPDX-License-Identifier: GPL-2.0-or-later
//! A scheduler of sched_ext that does everything that it may, at random: for hunts.
//!
//! Tasks wait in user DSQs of both kinds, in a list of its own, in local DSQs of other CPUs, in the global DSQ; slices are
//! long, short, endless; CPUs are kicked in all ways, and claimed in vain. It breaks no rule, and each task runs in the end:
//! a timer takes those out of its list that nobody asked for, and wakes idle CPUs for what waits.
//!
//! With a [`Fault`] it makes one mistake after a while, again and again, so that hunts see how the class ends it.
//!
//! The sequence of numbers is its own and starts anew with each run, so a run repeats.

use super::{
    ExtProperties, ExtScheduler, Kfuncs, SCX_DSQ_GLOBAL, SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_ON,
    SCX_ENQ_HEAD, SCX_ENQ_PREEMPT, SCX_KICK_IDLE, SCX_KICK_PREEMPT, SCX_OPS_ENQ_LAST,
    SCX_OPS_SWITCH_PARTIAL, SCX_SLICE_DFL, SCX_SLICE_INF,
};
use schedtwin_types::{CpuId, TaskId};

/// Two queues, in turn and by virtual time.
const IN_TURN: u64 = 1;
const BY_VTIME: u64 = 2;
/// How often it looks for what waits.
const LOOK_NS: u64 = 3_000_000;
/// The most that one call takes out of its list.
const MOST: usize = 8;

/// After so many calls of `enqueue` a fault shows.
const FAULT_AFTER: u32 = 24;
/// The watchdog's time of those that do not run a task.
const STALL_MS: u32 = 60;

/// A mistake of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A task that it holds is forgotten.
    LosesTask,
    /// Nothing that it holds is dispatched any more.
    NeverDispatches,
    /// An insertion into a DSQ that nobody made.
    NoSuchDsq,
    /// An insertion into the local DSQ of a CPU that the machine has not.
    NoSuchCpu,
    /// An insertion by virtual time into a DSQ of the kernel's own.
    VtimeOfBuiltIn,
    /// Two insertions of one task.
    InsertsTwice,
}

impl Fault {
    /// All, with their names and the words by which the class ends a scheduler that makes it.
    pub const ALL: [(&str, Fault, &str); 6] = [
        ("random-loses-task", Fault::LosesTask, "failed to run for"),
        ("random-never-dispatches", Fault::NeverDispatches, "failed to run for"),
        ("random-no-such-dsq", Fault::NoSuchDsq, "non-existent DSQ"),
        ("random-no-such-cpu", Fault::NoSuchCpu, "invalid CPU"),
        ("random-vtime-of-built-in", Fault::VtimeOfBuiltIn, "cannot use vtime ordering"),
        ("random-inserts-twice", Fault::InsertsTwice, "already direct-dispatched"),
    ];

    /// Whether a task does not run because of it: the watchdog ends the scheduler.
    fn stalls(self) -> bool {
        matches!(self, Fault::LosesTask | Fault::NeverDispatches)
    }
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Random {
    state: u64,
    held: Vec<TaskId>,
    fault: Option<Fault>,
    partial: bool,
    enqueued: u32,
}

impl Random {
    /// One that makes a mistake.
    pub fn with_fault(fault: Fault) -> Random {
        Random { fault: Some(fault), ..Random::default() }
    }

    /// One that takes `SCHED_EXT` tasks only.
    pub fn partial() -> Random {
        Random { partial: true, ..Random::default() }
    }

    /// The mistake, if it is time for it.
    fn fault(&self) -> Option<Fault> {
        self.fault.filter(|_| self.enqueued >= FAULT_AFTER)
    }

    /// Enqueues a task with the mistake; `false`: the mistake is another call's.
    fn enqueue_wrongly(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) -> bool {
        match self.fault() {
            Some(Fault::LosesTask) => {}
            Some(Fault::NeverDispatches) => self.held.push(task),
            Some(Fault::NoSuchDsq) => drop(scx.dsq_insert(task, 77, 0, enq_flags)),
            Some(Fault::NoSuchCpu) => {
                let nowhere = SCX_DSQ_LOCAL_ON | scx.nr_cpu_ids() as u64;
                scx.dsq_insert(task, nowhere, 0, enq_flags);
            }
            Some(Fault::VtimeOfBuiltIn) => {
                scx.dsq_insert_vtime(task, SCX_DSQ_GLOBAL, 0, 0, enq_flags);
            }
            Some(Fault::InsertsTwice) => {
                scx.dsq_insert(task, IN_TURN, 0, enq_flags);
                scx.dsq_insert(task, IN_TURN, 0, enq_flags);
            }
            None => return false,
        }
        true
    }

    /// splitmix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % bound
    }

    fn slice(&mut self) -> u64 {
        match self.below(4) {
            0 => SCX_SLICE_DFL,
            1 => 0,
            2 => 1 + self.below(3_000_000),
            _ => 100_000,
        }
    }

    /// The ID of the local DSQ of a CPU that the task may run on.
    fn some_local(&mut self, scx: &Kfuncs, task: TaskId) -> u64 {
        let cpus = scx.task(task).cpus.and(&scx.possible_cpus());
        let nth = self.below(cpus.weight().into()) as usize;
        let cpu = cpus.iter().nth(nth).expect("a task is allowed somewhere");
        SCX_DSQ_LOCAL_ON | u64::from(cpu.0)
    }

    fn kick(&mut self, scx: &mut Kfuncs) {
        let cpu = self.below(scx.nr_cpu_ids() as u64) as i32;
        let flags = [0, SCX_KICK_IDLE, SCX_KICK_PREEMPT][self.below(3) as usize];
        scx.kick_cpu(cpu, flags);
    }
}

impl ExtScheduler for Random {
    fn properties(&self) -> ExtProperties {
        let stalls = self.fault.is_some_and(Fault::stalls);
        let timeout_ms = if stalls { STALL_MS } else { 0 };
        let partial = if self.partial { SCX_OPS_SWITCH_PARTIAL } else { 0 };
        ExtProperties { flags: SCX_OPS_ENQ_LAST | partial, timeout_ms, ..ExtProperties::default() }
    }

    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        let timer = scx.timer_init();
        scx.timer_start(timer, LOOK_NS, false, false);
        scx.create_dsq(IN_TURN) | scx.create_dsq(BY_VTIME)
    }

    fn select_cpu(&mut self, scx: &mut Kfuncs, task: TaskId, prev: CpuId, wake_flags: u64) -> i32 {
        let (cpu, is_idle) = match self.below(3) {
            0 => (CpuId(self.below(scx.nr_cpu_ids() as u64) as u16), false),
            1 => {
                let within = scx.task(task).cpus;
                let found = scx.select_cpu_and(task, prev, wake_flags, &within, self.below(2));
                found.map_or((prev, false), |cpu| (cpu, true))
            }
            _ => scx.select_cpu_dfl(task, prev, wake_flags),
        };
        if is_idle && self.below(4) != 0 {
            let slice = self.slice();
            scx.dsq_insert(task, SCX_DSQ_LOCAL, slice, 0);
        }
        cpu.0.into()
    }

    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        self.enqueued = self.enqueued.saturating_add(1);
        if self.enqueue_wrongly(scx, task, enq_flags) {
            return;
        }
        let slice = self.slice();
        match self.below(7) {
            0 => drop(scx.dsq_insert(task, SCX_DSQ_LOCAL, slice, enq_flags | SCX_ENQ_PREEMPT)),
            1 => drop(scx.dsq_insert(task, SCX_DSQ_GLOBAL, slice, enq_flags)),
            2 => drop(scx.dsq_insert(task, IN_TURN, slice, enq_flags | SCX_ENQ_HEAD)),
            3 => {
                let vtime = self.below(1000);
                scx.dsq_insert_vtime(task, BY_VTIME, slice, vtime, enq_flags);
            }
            4 => {
                let local = self.some_local(scx, task);
                scx.dsq_insert(task, local, slice, enq_flags);
            }
            5 => drop(scx.dsq_insert(task, IN_TURN, SCX_SLICE_INF, enq_flags)),
            _ => self.held.push(task),
        }
        self.kick(scx);
    }

    fn dequeue(&mut self, _: &mut Kfuncs, task: TaskId, _: u64) {
        self.held.retain(|held| *held != task);
    }

    fn dispatch(&mut self, scx: &mut Kfuncs, _: CpuId, prev: Option<TaskId>) {
        if self.fault() == Some(Fault::NeverDispatches) {
            return;
        }
        for _ in 0..MOST.min(self.held.len()) {
            let at = self.below(self.held.len() as u64) as usize;
            let task = self.held.swap_remove(at);
            let (slice, local) = (self.slice(), self.some_local(scx, task));
            scx.dsq_insert(task, if slice == 0 { IN_TURN } else { local }, slice, 0);
        }
        if let Some(prev) = prev
            && self.below(8) == 0
        {
            scx.task_set_slice(prev, 1_000_000);
        }
        let first = if self.below(2) == 0 { IN_TURN } else { BY_VTIME };
        if !scx.dsq_move_to_local(first, 0) {
            scx.dsq_move_to_local(IN_TURN + BY_VTIME - first, 0);
        }
        if let Some(mut iter) = scx.dsq_iter(IN_TURN, self.below(2) == 0)
            && let Some(task) = scx.dsq_iter_next(&mut iter)
            && self.below(4) == 0
        {
            let local = self.some_local(scx, task);
            scx.dsq_move(&iter, task, local, (Some(2_000_000), None), 0, false);
        }
    }

    fn tick(&mut self, scx: &mut Kfuncs, task: TaskId) {
        // An endless slice ends here.
        if scx.task(task).slice == SCX_SLICE_INF && self.below(3) == 0 {
            scx.task_set_slice(task, 0);
        }
        let cpu = scx.this_cpu();
        let perf = self.below(1025) as u32;
        scx.cpuperf_set(cpu.0.into(), perf);
    }

    fn exit_task(&mut self, _: &mut Kfuncs, task: TaskId) {
        self.held.retain(|held| *held != task);
    }

    fn timer(&mut self, scx: &mut Kfuncs, timer: u32) {
        for cpu in 0..scx.nr_cpu_ids() {
            scx.kick_cpu(cpu as i32, SCX_KICK_IDLE);
        }
        self.kick(scx);
        scx.timer_start(timer, LOOK_NS, false, false);
    }
}
