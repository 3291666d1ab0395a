// SPDX-License-Identifier: GPL-2.0-or-later
//! A scheduler of sched_ext that does everything that it may, at random: for hunts.
//!
//! Tasks wait in user DSQs of both kinds, in a list of its own, in local DSQs of other CPUs, in the global DSQ; slices are
//! long, short, endless; CPUs are kicked in all ways, and claimed in vain. It breaks no rule, and each task runs in the end:
//! a timer takes those out of its list that nobody asked for, and wakes idle CPUs for what waits.
//!
//! The sequence of numbers is its own and starts anew with each run, so a run repeats.

use super::{
    ExtProperties, ExtScheduler, Kfuncs, SCX_DSQ_GLOBAL, SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_ON,
    SCX_ENQ_HEAD, SCX_ENQ_PREEMPT, SCX_KICK_IDLE, SCX_KICK_PREEMPT, SCX_OPS_ENQ_LAST,
    SCX_SLICE_DFL, SCX_SLICE_INF,
};
use schedtwin_types::{CpuId, TaskId};

/// Two queues, in turn and by virtual time.
const IN_TURN: u64 = 1;
const BY_VTIME: u64 = 2;
/// How often it looks for what waits.
const LOOK_NS: u64 = 3_000_000;
/// The most that one call takes out of its list.
const MOST: usize = 8;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Random {
    state: u64,
    held: Vec<TaskId>,
}

impl Random {
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
        ExtProperties { flags: SCX_OPS_ENQ_LAST, ..ExtProperties::default() }
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
