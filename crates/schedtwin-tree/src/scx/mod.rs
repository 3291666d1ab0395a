// SPDX-License-Identifier: GPL-2.0-or-later
//! Schedulers of sched_ext in C, behind the policy interface.
//!
//! A `.bpf.c` file is compiled as native C against `c/include/schedtwin/scx.h` and called where the kernel calls its
//! programs.
//!
//! | file | what |
//! |---|---|
//! | `code.rs` | the compiled scheduler and its settings |
//! | `loader.rs` | what its own program does before it loads it |
//! | `layout.rs` | structures that the C and the twin share |
//! | `mirror.rs` | tasks and cgroups as the C sees them |
//! | `maps.rs`, `programs.rs` | the maps and the programs that it declares |
//! | `names.rs` | what our header leaves out, as it defines that itself |
//! | `units.rs` | the files that it consists of |
//! | `meaning.rs` | BPF's meaning of C where native C has another |
//! | `topology.rs` | the machine as loaders see it |
//! | `setup.rs`, `lavd.rs` | programs that loaders run; the tables of scx_lavd |
//! | `mod.rs` | its callbacks |
//! | `ask.rs` | the kernel's functions that it calls |

mod ask;
mod code;
mod lavd;
mod layout;
mod loader;
mod maps;
mod meaning;
mod mirror;
mod names;
mod programs;
mod setup;
mod topology;
mod units;
mod userland;

pub use code::ExtCode;

use crate::memory::Image;
use crate::watch::{Question, Watched};
use ask::QUESTIONS;
use layout::{
    CgroupInitArgs, Cmask, Entries, ExitInfo, InitTaskArgs, Mask, Ops, ReleaseArgs, TaskStruct,
};
use mirror::{Call, Slot};
use schedtwin_kernel::policy::{
    CgroupChange, CpuPreemptReason, ExtProperties, ExtScheduler, Kfuncs, SCX_SLICE_DFL, TaskChange,
};
use schedtwin_types::{CpuId, CpuMask, TaskGroupId, TaskId};
use std::ffi::{c_int, c_void};
use topology::{Machine, Topology};
use userland::Userland;

/// A scheduler at work.
#[derive(Clone)]
struct TreeExt {
    entries: Entries,
    image: Image,
    watched: Watched,
    ops: Ops,
    code: ExtCode,
    /// The structure of each task in the object's memory, by number; 0: none yet. An image returns to the arena that it was
    /// made in, so addresses stay right.
    tasks: Vec<Slot>,
    /// Tasks that the call under way has seen, with the slice and the virtual time that they had.
    touched: Vec<(TaskId, u64, u64)>,
    /// The structure of each cgroup, by number; 0: none yet.
    cgroups: Vec<usize>,
    /// The topological number of each CPU, if the scheduler goes by those.
    cids: Option<Cids>,
    /// The program of a scheduler that decides in user space, and the number of its task.
    program: Userland,
    program_pid: u32,
}

/// CPUs numbered by topology: node by node, cache by cache, core by core (`scx_cid_init()`).
#[derive(Clone)]
struct Cids {
    of_cpu: Vec<u16>,
    to_cpu: Vec<u16>,
}

impl Cids {
    fn of(scx: &Kfuncs) -> Cids {
        let mut to_cpu: Vec<u16> = (0..scx.nr_cpu_ids() as u16).collect();
        let first = |cpus: &CpuMask| cpus.lowest().map_or(0, |cpu| cpu.0);
        // Each unit comes where its first CPU would.
        to_cpu.sort_by_key(|cpu| {
            let cpu = CpuId(*cpu);
            let node = scx.cpu_node(cpu);
            (first(&scx.node_cpus(node)), scx.llc_id(cpu), first(&scx.smt_mask(cpu)), cpu)
        });
        let mut of_cpu = vec![0; to_cpu.len()];
        for (cid, cpu) in to_cpu.iter().enumerate() {
            of_cpu[usize::from(*cpu)] = cid as u16;
        }
        Cids { of_cpu, to_cpu }
    }

    fn cpu(&self, cid: i32) -> i32 {
        let cpu = usize::try_from(cid).ok().and_then(|cid| self.to_cpu.get(cid));
        cpu.map_or(cid, |cpu| i32::from(*cpu))
    }

    fn mask(&self, cpus: &CpuMask) -> Cmask {
        Cmask::of(cpus.iter().map(|cpu| self.of_cpu[cpu.index()]), self.of_cpu.len())
    }
}

impl TreeExt {
    /// `SCX_OPS_*`: the user's, else its program's, else its own.
    fn flags(&self) -> u64 {
        let code = &self.code;
        code.flags.or(code.options.flags).unwrap_or(self.ops.flags) | code.more_flags
    }

    /// Runs the programs that its loader runs when it is attached.
    fn attached(&mut self, scx: &mut Kfuncs) {
        let machine = Machine::of(Topology::of(scx));
        if let Err(what) = self.run_steps(scx, &machine, true) {
            scx.error(what);
        }
    }

    /// A CPU as the scheduler numbers it.
    fn number_of(&self, cpu: CpuId) -> i32 {
        self.cids.as_ref().map_or(cpu.0, |cids| cids.of_cpu[cpu.index()]).into()
    }

    /// Calls the C, with `tasks` up to date. `None`: the scheduler has no such callback.
    fn call<R>(
        &mut self,
        scx: &mut Kfuncs,
        question: Question,
        call: impl FnOnce(&mut Call) -> R,
    ) -> R {
        let cpu = scx.this_cpu();
        let watched = Watched { question, cpu: cpu.0, ..self.watched };
        let TreeExt { entries, image, ops, tasks, touched, cgroups, .. } = self;
        touched.clear();
        image.ask(watched, || {
            let mut of = Call { scx, tasks, touched, cgroups, entries: *entries, ops: *ops };
            let at: *mut Call = &mut of;
            // SAFETY: the image is resident; the call lives until the C has returned.
            unsafe { (entries.enter)(at.cast(), &QUESTIONS, cpu.0.into()) };
            // SAFETY: the C hands this pointer back to the functions below only, while no other reference is in use.
            let result = call(unsafe { &mut *at });
            // SAFETY: as above.
            unsafe { (*at).store() };
            // SAFETY: the image is resident.
            let spent = unsafe { (entries.spent)() };
            // SAFETY: as above.
            unsafe { (*at).scx.owe(spent.into()) };
            result
        })
    }
}

/// Calls a callback that gets a task, if the scheduler has it.
macro_rules! task_call {
    ($self:ident, $scx:ident, $op:ident, $question:ident, $task:expr $(, $argument:expr)*) => {{
        let Some(callback) = $self.ops.$op else { return $scx.absent() };
        $self.call($scx, Question::$question, |call| {
            let structure = call.task($task);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { callback(structure $(, $argument)*) }
        })
    }};
}

impl ExtScheduler for TreeExt {
    fn properties(&self) -> ExtProperties {
        ExtProperties {
            flags: self.flags(),
            timeout_ms: self.code.timeout_ms.unwrap_or(self.ops.timeout_ms),
            timeout_is_the_users: self.code.timeout_ms.is_some(),
            dispatch_max_batch: self.ops.dispatch_max_batch,
            tracks_idle: self.ops.update_idle.is_some(),
            traces_switches: self.code.on_switch.is_some(),
            op_cost_ns: self.code.op_cost_ns,
            has_program: self.code.has_program,
        }
    }

    fn properties_on(&self, nr_nodes: usize) -> ExtProperties {
        let properties = self.properties();
        let more = match (nr_nodes, self.code.flags) {
            (2.., None) => self.code.options.flags_on_nodes,
            _ => 0,
        };
        ExtProperties { flags: properties.flags | more, ..properties }
    }

    fn select_cpu(&mut self, scx: &mut Kfuncs, task: TaskId, prev: CpuId, wake_flags: u64) -> i32 {
        let Some(select_cpu) = self.ops.select_cpu else {
            scx.absent();
            return scx.select_cpu_default(task, prev, wake_flags);
        };
        let prev = self.number_of(prev);
        let chosen = self.call(scx, Question::SelectCpu, |call| {
            let structure = call.task(task);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { select_cpu(structure, prev, wake_flags) }
        });
        self.cids.as_ref().map_or(chosen, |cids| cids.cpu(chosen))
    }

    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        if self.ops.enqueue.is_none() {
            scx.dsq_insert(
                task,
                schedtwin_kernel::policy::SCX_DSQ_GLOBAL,
                SCX_SLICE_DFL,
                enq_flags,
            );
        }
        task_call!(self, scx, enqueue, Enqueue, task, enq_flags)
    }

    fn dequeue(&mut self, scx: &mut Kfuncs, task: TaskId, deq_flags: u64) {
        task_call!(self, scx, dequeue, Dequeue, task, deq_flags)
    }

    fn dispatch(&mut self, scx: &mut Kfuncs, cpu: CpuId, prev: Option<TaskId>) {
        let Some(dispatch) = self.ops.dispatch else { return scx.absent() };
        let cpu = self.number_of(cpu);
        self.call(scx, Question::Dispatch, |call| {
            let prev = prev.map_or(std::ptr::null_mut(), |prev| call.task(prev));
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { dispatch(cpu, prev) }
        })
    }

    fn tick(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, tick, Tick, task)
    }

    fn runnable(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        task_call!(self, scx, runnable, Runnable, task, enq_flags)
    }

    fn running(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, running, Running, task)
    }

    fn stopping(&mut self, scx: &mut Kfuncs, task: TaskId, runnable: bool) {
        task_call!(self, scx, stopping, Stopping, task, runnable)
    }

    fn quiescent(&mut self, scx: &mut Kfuncs, task: TaskId, deq_flags: u64) {
        task_call!(self, scx, quiescent, Quiescent, task, deq_flags)
    }

    fn yield_task(&mut self, scx: &mut Kfuncs, from: TaskId) {
        if self.ops.yield_task.is_none() {
            scx.task_set_slice(from, 0);
        }
        let Some(yield_task) = self.ops.yield_task else { return scx.absent() };
        self.call(scx, Question::Yield, |call| {
            let structure = call.task(from);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { yield_task(structure, std::ptr::null_mut()) };
        })
    }

    fn changed(&mut self, scx: &mut Kfuncs, task: TaskId, change: TaskChange) {
        match change {
            TaskChange::Weight(weight) => {
                task_call!(self, scx, set_weight, Change, task, weight)
            }
            TaskChange::Cpus(cpus) => {
                let mask = Mask::of(&cpus);
                let cmask = self.cids.as_ref().map(|cids| cids.mask(&cpus));
                let mask = cmask.as_ref().map_or(std::ptr::from_ref(&mask).cast(), |mask| {
                    std::ptr::from_ref(mask).cast::<c_void>()
                });
                task_call!(self, scx, set_cpumask, Change, task, mask)
            }
        }
    }

    fn update_idle(&mut self, scx: &mut Kfuncs, cpu: CpuId, idle: bool) {
        let Some(update_idle) = self.ops.update_idle else { return scx.absent() };
        let cpu = self.number_of(cpu);
        // SAFETY: the image is resident.
        self.call(scx, Question::UpdateIdle, |_| unsafe { update_idle(cpu, idle) })
    }

    fn cpu_acquire(&mut self, scx: &mut Kfuncs, cpu: CpuId) {
        let Some(cpu_acquire) = self.ops.cpu_acquire else { return scx.absent() };
        let nothing = std::ptr::null();
        // SAFETY: the image is resident.
        self.call(scx, Question::Change, |_| unsafe { cpu_acquire(cpu.0.into(), nothing) })
    }

    fn cpu_release(
        &mut self,
        scx: &mut Kfuncs,
        cpu: CpuId,
        reason: CpuPreemptReason,
        next: TaskId,
    ) {
        let Some(cpu_release) = self.ops.cpu_release else { return scx.absent() };
        self.call(scx, Question::Change, |call| {
            let args = ReleaseArgs { reason: reason as u32, task: call.task(next) };
            // SAFETY: the image is resident, and the arguments live until the function returns.
            unsafe { cpu_release(cpu.0.into(), &args) }
        })
    }

    fn init_task(&mut self, scx: &mut Kfuncs, task: TaskId, fork: bool) -> i32 {
        let Some(init_task) = self.ops.init_task else {
            scx.absent();
            return 0;
        };
        self.call(scx, Question::InitTask, |call| {
            // Threads of the kernel that are there from the start come from the first idle task.
            let parent = if fork { call.scx.current() } else { TaskId::IDLE };
            let parent = call.task(parent);
            let structure = call.task(task);
            // SAFETY: both structures are in the heap of the resident image, and only this thread uses them.
            unsafe { (*structure).real_parent = parent.cast() };
            let group = call.scx.task_cgroup(task);
            let args = InitTaskArgs { fork, cgroup: call.cgroup(group) };
            // SAFETY: the image is resident; structure and arguments live until the function returns.
            unsafe { init_task(structure, &args) }
        })
    }

    fn exit_task(&mut self, scx: &mut Kfuncs, task: TaskId) {
        let cancelled = false;
        if self.ops.exit_task.is_some() {
            task_call!(self, scx, exit_task, ExitTask, task, &cancelled);
        } else {
            scx.absent();
        }
        // Storages of the task go with it.
        let (forget, base) = (self.entries.forget, self.entries.base);
        self.image.ask(self.watched, || {
            for map in self.code.maps.iter().filter(|map| map.is_task_storage()) {
                // SAFETY: the image is resident, and the map's object is the object's own.
                unsafe { forget(base().wrapping_add(map.object() as usize).cast(), task.0) };
            }
        });
    }

    fn cgroup_init(&mut self, scx: &mut Kfuncs, cgroup: TaskGroupId) -> i32 {
        let Some(init) = self.ops.cgroup_init else {
            scx.absent();
            return 0;
        };
        let files = scx.cgroup(cgroup).map(|view| view.files).unwrap_or_default();
        let (bw_period_us, bw_quota_us, bw_burst_us) = files.bandwidth_us;
        let args = CgroupInitArgs {
            weight: files.weight,
            bw_period_us,
            bw_quota_us,
            bw_burst_us,
            sched_idle: files.idle,
        };
        self.call(scx, Question::Cgroup, |call| {
            let structure = call.cgroup(cgroup);
            // SAFETY: the image is resident; structure and arguments live until the function returns.
            unsafe { init(structure, &args) }
        })
    }

    fn cgroup_exit(&mut self, scx: &mut Kfuncs, cgroup: TaskGroupId) {
        let Some(exit) = self.ops.cgroup_exit else { return scx.absent() };
        self.call(scx, Question::Cgroup, |call| {
            let structure = call.cgroup(cgroup);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { exit(structure) }
        })
    }

    fn cgroup_prep_move(
        &mut self,
        scx: &mut Kfuncs,
        task: TaskId,
        from: TaskGroupId,
        to: TaskGroupId,
    ) -> i32 {
        let Some(prep_move) = self.ops.cgroup_prep_move else {
            scx.absent();
            return 0;
        };
        self.call(scx, Question::Cgroup, |call| {
            let (task, from, to) = (call.task(task), call.cgroup(from), call.cgroup(to));
            // SAFETY: the image is resident, and the structures live in it.
            unsafe { prep_move(task, from, to) }
        })
    }

    fn cgroup_move(&mut self, scx: &mut Kfuncs, task: TaskId, from: TaskGroupId, to: TaskGroupId) {
        let Some(moves) = self.ops.cgroup_move else { return scx.absent() };
        self.call(scx, Question::Cgroup, |call| {
            let (task, from, to) = (call.task(task), call.cgroup(from), call.cgroup(to));
            // SAFETY: the image is resident, and the structures live in it.
            unsafe { moves(task, from, to) }
        })
    }

    fn cgroup_changed(&mut self, scx: &mut Kfuncs, cgroup: TaskGroupId, change: CgroupChange) {
        macro_rules! told {
            ($op:ident $(, $argument:expr)*) => {{
                let Some(callback) = self.ops.$op else { return scx.absent() };
                self.call(scx, Question::Cgroup, |call| {
                    let structure = call.cgroup(cgroup);
                    // SAFETY: the image is resident, and the structure lives in it.
                    unsafe { callback(structure $(, $argument)*) }
                })
            }};
        }
        match change {
            CgroupChange::Weight(weight) => told!(cgroup_set_weight, weight),
            CgroupChange::Bandwidth { period_us, quota_us, burst_us } => {
                told!(cgroup_set_bandwidth, period_us, quota_us, burst_us)
            }
            CgroupChange::Idle(idle) => told!(cgroup_set_idle, idle),
        }
    }

    fn sched_switch(
        &mut self,
        scx: &mut Kfuncs,
        preempt: bool,
        prev: TaskId,
        next: TaskId,
        prev_state: u32,
    ) {
        type OnSwitch = unsafe extern "C" fn(bool, *mut TaskStruct, *mut TaskStruct, u32) -> c_int;
        let Some(offset) = self.code.on_switch else { return scx.absent() };
        let base = self.entries.base;
        self.call(scx, Question::Switch, |call| {
            let (prev, next) = (call.task(prev), call.task(next));
            // SAFETY: the image is resident; the function is the object's, and takes what the tracepoint gives.
            unsafe {
                let function: OnSwitch = std::mem::transmute(base().add(offset as usize));
                function(preempt, prev, next, prev_state);
            }
        })
    }

    fn enable(&mut self, scx: &mut Kfuncs, task: TaskId) {
        // The form that goes by topological numbers hears of its CPUs here, also at a fork.
        if self.cids.is_some() {
            self.changed(scx, task, TaskChange::Cpus(scx.task(task).cpus));
        }
        task_call!(self, scx, enable, Enable, task)
    }

    fn disable(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, disable, Disable, task)
    }

    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        self.load(scx);
        // What its loader does not load hears of nothing until it is unloaded.
        if scx.exit_info().is_some() {
            self.ops = self.ops.without_callbacks();
            self.code.on_switch = None;
            return 0;
        }
        if let (Some(init_cids), true) = (self.ops.init_cids, self.cids.is_some()) {
            // SAFETY: the image is resident.
            let result = self.call(scx, Question::Init, |_| unsafe { init_cids() });
            if result != 0 {
                return result;
            }
        }
        let Some(init) = self.ops.init else {
            scx.absent();
            self.attached(scx);
            return 0;
        };
        // SAFETY: the image is resident.
        let result = self.call(scx, Question::Init, |_| unsafe { init() });
        if result == 0 {
            self.attached(scx);
        }
        result
    }

    fn exit(&mut self, scx: &mut Kfuncs) {
        let Some(exit) = self.ops.exit else { return scx.absent() };
        let (kind, exit_code) =
            scx.exit_info().map_or((64, 0), |info| (info.kind.number(), info.code));
        let (reason, msg) = (c"".as_ptr(), c"".as_ptr());
        let info = ExitInfo { kind, exit_code, flags: 0, reason, msg };
        // SAFETY: the image is resident, and the structure lives until the function returns.
        self.call(scx, Question::Exit, |_| unsafe { exit(&info) })
    }

    fn program_is(&mut self, task: TaskId) {
        self.program_pid = task.0;
    }

    fn program_turn(&mut self, _: &mut Kfuncs) -> u32 {
        self.turn()
    }

    fn timer(&mut self, scx: &mut Kfuncs, timer: u32) {
        let run = self.entries.timer;
        // SAFETY: the image is resident, and the C has started this timer.
        self.call(scx, Question::Timer, |_| unsafe { run(timer) })
    }
}
