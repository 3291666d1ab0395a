// SPDX-License-Identifier: GPL-2.0-or-later
//! A scheduler's life: load, the states of tasks, errors, the watchdog, unload.
//!
//! ```text
//! load     init ─ bypass ─ init_task of every task ─ enable, set_weight, set_cpumask of those that change class ─ bypass ends
//! task     NONE ─ init_task ─ READY ─ enable ─ ENABLED ─ disable ─ READY ─ exit_task ─ NONE
//! unload   bypass ─ cgroup_exit ─ each task back to its class: disable, exit_task ─ exit
//! ```
//!
//! **Time.** A scheduler is there before time begins, or it is loaded at a time of its own (`scx.load_ms`), and it may be unloaded
//! by its user (`scx.unload_ms`). Each `─` that waits for all others (locks against forks and changes of cgroups,
//! `synchronize_rcu()`) takes a grace period; meanwhile tasks go on in bypass (`bypass.rs`).
//!
//! **Errors.** A scheduler that asks for what cannot be is unloaded, and so is one that does not run a task for longer than
//! its `timeout_ms`: the watchdog looks twice in that time. The first cause counts. From when the tasks are back, the fair
//! class has them, and the run goes on.
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c `scx_root_enable_workfn`, `__scx_init_task`, `scx_enable_task`, `scx_root_disable`,
//! `scx_watchdog_workfn`, `check_rq_for_timeouts`.
//! Differences: timers on CPU 0 do what in Linux a thread of SCHED_FIFO does (load, unload) and a kworker (the watchdog):
//! interrupts, with the cost of the scheduler's calls and without the switches to the thread. A grace period is its usual length. Patching of
//! static keys takes no time.

use super::dsq::Dsqs;
use super::form::Form;
use super::idle::{IdleCpus, IdleMasks};
use super::steps::{Op, Step};
use super::{
    DirectDispatch, Events, Ext, ExtEntity, SCX_CPUPERF_ONE, SCX_OPS_BUILTIN_IDLE_PER_NODE,
    SCX_OPS_KEEP_BUILTIN_IDLE, SCX_OPS_SWITCH_PARTIAL, SCX_SLICE_DFL, TaskState,
};
use crate::Kernel;
use crate::policy::{ExtLoading, ExtProperties, TaskChange};
use crate::sched::core::{
    DEQUEUE_DELAYED, DEQUEUE_MOVE, DEQUEUE_SAVE, DEQUEUE_SLEEP, ENQUEUE_NOCLOCK, ENQUEUE_RESTORE,
};
use crate::sched::fair::scale_load_down;
use crate::sched::{Class, OnRq};
use crate::time::hrtimer::TimerKind;
use schedtwin_types::{CpuId, Ns, Policy, TaskGroupId, TaskId, TaskState as RunState};

/// `SCX_WATCHDOG_MAX_TIMEOUT`: 30 s.
const WATCHDOG_MAX_MS: u32 = 30_000;
/// `SCX_DSP_DFL_MAX_BATCH`.
const DSP_DFL_MAX_BATCH: u32 = 32;

/// How far loading or unloading is. Each value names what has been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing: its time has not come.
    Waits,
    /// `ops.init()`, and bypass.
    Initialised,
    /// All tasks are known to it; its program is about to run.
    Starts,
    /// All tasks are known to it.
    Loaded,
    /// It is to go, and is bypassed.
    Bypassed,
    /// It has no cgroups any more.
    WithoutCgroups,
}

/// `enum scx_exit_kind`, as far as a run has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// Its user has stopped it.
    Unreg,
    /// `scx_bpf_exit()`.
    UnregBpf,
    /// The class found a fault.
    Error,
    /// `scx_bpf_error()`.
    ErrorBpf,
    /// The watchdog: a task was runnable for too long.
    ErrorStall,
    /// A task came back to `enqueue` again and again.
    ErrorReenq,
}

impl ExitKind {
    /// `scx_exit_reason()`.
    pub fn reason(self) -> &'static str {
        match self {
            ExitKind::Unreg => "unregistered from user space",
            ExitKind::UnregBpf => "unregistered from BPF",
            ExitKind::Error => "runtime error",
            ExitKind::ErrorBpf => "scx_bpf_error",
            ExitKind::ErrorStall => "runnable task stall",
            ExitKind::ErrorReenq => "task reenqueue limit",
        }
    }

    /// `enum scx_exit_kind`'s number.
    pub fn number(self) -> u32 {
        match self {
            ExitKind::Unreg => 64,
            ExitKind::UnregBpf => 65,
            ExitKind::Error => 1024,
            ExitKind::ErrorBpf => 1025,
            ExitKind::ErrorStall => 1026,
            ExitKind::ErrorReenq => 1027,
        }
    }

    /// Whether it is an error, not a wish.
    pub fn is_error(self) -> bool {
        !matches!(self, ExitKind::Unreg | ExitKind::UnregBpf)
    }
}

/// `struct scx_exit_info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Why.
    pub kind: ExitKind,
    /// The scheduler's own number.
    pub code: i64,
    /// In words.
    pub message: String,
    /// The task that did not run, of a stall.
    pub task: Option<TaskId>,
    /// When.
    pub at: Ns,
}

/// `sched_weight_to_cgroup()`: a weight as 1 to 10000, 100 for nice 0.
///
/// ```
/// use schedtwin_kernel::sched::ext::weight_to_cgroup;
///
/// assert_eq!([88761, 1024, 335, 15, 3].map(weight_to_cgroup), [8668, 100, 33, 1, 1]);
/// ```
pub fn weight_to_cgroup(weight: u64) -> u32 {
    ((weight * 100 + 512) / 1024).clamp(1, 10_000) as u32
}

impl Kernel {
    /// `task_should_scx()`: the class of a policy below RT.
    pub(crate) fn scx_class_of(&self, policy: Policy) -> Class {
        match &self.sched.ext {
            Some(ext)
                if ext.enabled
                    && ext.exit.is_none()
                    && (ext.switching_all || policy == Policy::Ext) =>
            {
                Class::Ext
            }
            _ => Class::Fair,
        }
    }

    // ---- load ---------------------------------------------------------------------------------

    /// The user's scheduler, if there is one: loaded before time begins, or at its time.
    pub(crate) fn scx_load(&mut self) {
        let nodes = self.cx.platform.device_tree.cpus.iter().map(|cpu| usize::from(cpu.node));
        let nr_nodes = nodes.max().map_or(1, |last| last + 1);
        let Some(properties) = self.own.ext_properties(nr_nodes) else { return };
        let loading = self.own.ext_loading();
        let program = properties.has_program.then(|| self.scx_make_program());
        self.scx_alloc(&properties, loading);
        self.sched.scx_mut().program = program;
        match loading.at {
            0 => {
                self.scx_load_init();
                self.scx_load_tasks();
                for c in 0..self.sched.nr_cpus() {
                    let tells = self.sched.scx().form.renotifies_idle;
                    self.scx_update_idle(CpuId(c as u16), true, tells);
                }
            }
            at => self.scx_life_at(at),
        }
    }

    /// `scx_alloc_and_add_sched()`.
    fn scx_alloc(&mut self, properties: &ExtProperties, loading: ExtLoading) {
        let form = Form::of(self.cx.config.sched_ext);
        let form = form.expect("a scheduler is given to kernels with the class only");
        let now = self.cx.now;
        let nr_cpus = self.sched.nr_cpus();
        let dt = &self.cx.platform.device_tree;
        let node_of: Vec<u16> = dt.cpus.iter().map(|cpu| cpu.node).collect();
        let nr_nodes = node_of.iter().max().map_or(1, |last| usize::from(*last) + 1);
        let flags = properties.flags;
        let per_node = flags & SCX_OPS_BUILTIN_IDLE_PER_NODE != 0;
        let (llc, numa) = self.scx_selcpu_topology(form.near_first, flags);
        let timeout_ms = match properties.timeout_ms {
            0 => WATCHDOG_MAX_MS,
            asked => asked,
        };
        let timeout = Ns::from(timeout_ms) * 1_000_000;
        let timeout = match loading.watchdog_most {
            Some(most) if !properties.timeout_is_the_users => timeout.min(most),
            _ => timeout,
        };
        let mut ext = Box::new(Ext {
            form,
            flags,
            enabled: false,
            stage: Stage::Waits,
            program: None,
            program_worked: false,
            unload_at: loading.until,
            bypass: false,
            slice_dfl: SCX_SLICE_DFL,
            switching_all: flags & SCX_OPS_SWITCH_PARTIAL == 0,
            dispatch_max_batch: match properties.dispatch_max_batch {
                0 => DSP_DFL_MAX_BATCH as usize,
                asked => asked as usize,
            },
            op_cost: properties.op_cost_ns,
            timeout: timeout.div_ceil(self.cx.tick_nsec),
            dsqs: Dsqs::new(nr_cpus, nr_nodes, now),
            tasks: Vec::new(),
            rqs: (0..nr_cpus)
                .map(|_| super::ExtRq { cpuperf_target: SCX_CPUPERF_ONE, ..Default::default() })
                .collect(),
            node_of,
            idle: IdleMasks {
                enabled: !properties.tracks_idle || flags & SCX_OPS_KEEP_BUILTIN_IDLE != 0,
                masks: vec![IdleCpus::default(); if per_node { nr_nodes } else { 1 }],
                llc,
                numa,
            },
            cgroups: Default::default(),
            traces_switches: properties.traces_switches,
            ddsp: DirectDispatch::No,
            buf: Vec::new(),
            nr_tasks: 0,
            reenqs: Vec::new(),
            uses_immed: false,
            dispatch_cpu: None,
            locked_rq: None,
            in_select_cpu: false,
            absent: false,
            notices: Vec::new(),
            timers: Vec::new(),
            runnable_seq: 0,
            exit: None,
            exit_pending: false,
            steps: Default::default(),
            events: Events::default(),
        });
        ext.buf.reserve(ext.dispatch_max_batch);
        self.sched.ext = Some(ext);
        self.scx_tg_online(TaskGroupId::ROOT);
        if timeout_ms > WATCHDOG_MAX_MS {
            self.scx_error(format!("timeout_ms {timeout_ms} is above {WATCHDOG_MAX_MS}"));
        }
    }

    /// `scx_root_enable_workfn()` up to where it waits until nobody forks: the scheduler begins.
    fn scx_load_init(&mut self) {
        let ext = self.sched.scx_mut();
        ext.stage = Stage::Initialised;
        ext.dsqs.begin(self.cx.now);
        let count = self.sched.tasks.len();
        self.sched.scx_mut().reserve(count);
        let result = self.scx_op(None, Op::Init);
        if result != 0 {
            self.scx_error(format!("ops.init() failed ({result})"));
        }
        self.scx_arm_watchdog(self.cx.now);
    }

    /// `scx_root_enable_workfn()` from there on: every task becomes known, and those that change their class do so.
    fn scx_load_tasks(&mut self) {
        self.scx_cgroups_init();
        let count = self.sched.tasks.len();
        let ext = self.sched.scx_mut();
        ext.stage = Stage::Loaded;
        ext.reserve(count);
        let alive = |task: &TaskId| self.sched.tasks[*task].state != RunState::Dead;
        let tasks: Vec<TaskId> = self.sched.tasks.ids().skip(1).filter(alive).collect();
        for task in &tasks {
            self.scx_init_task(*task, false);
        }
        self.sched.scx_mut().enabled = true;
        for task in tasks {
            let t = &self.sched.tasks[task];
            if t.class == Class::Fair && self.scx_class_of(t.policy) == Class::Ext {
                self.scx_switch_in(task);
            }
        }
        self.scx_mark_demands();
        self.scx_loaded();
    }

    fn scx_mark_demands(&mut self) {
        for c in 0..self.sched.nr_cpus() {
            self.sched.stale_demands.mark(CpuId(c as u16));
        }
    }

    /// All is done, but that a program in user space goes on from where it loaded the scheduler.
    fn scx_loaded(&mut self) {
        let (now, ext) = (self.cx.now, self.sched.scx_mut());
        if ext.program.is_some() {
            ext.stage = Stage::Starts;
            self.scx_life_at(now + 1);
        } else if let Some(at) = ext.unload_at {
            self.scx_life_at(at);
        }
    }

    /// A task changes to the class, wherever it is.
    fn scx_switch_in(&mut self, task: TaskId) {
        let cpu = self.sched.tasks[task].cpu;
        self.sched.update_rq_clock(cpu, &self.cx);
        if self.sched.se[self.sched.tasks[task].se].sched_delayed {
            self.dequeue_task(cpu, task, DEQUEUE_SLEEP | DEQUEUE_DELAYED);
        }
        self.scx_change_class(task, |kernel| {
            kernel.switched_from_fair(task);
            kernel.sched.tasks[task].class = Class::Ext;
            let ext = kernel.sched.scx_mut();
            ext.tasks[task.index()].slice = ext.slice_dfl;
            kernel.scx_enable_task(task, true);
        });
    }

    /// `sched_change`: a task is taken out of its queue meanwhile, if it is in one.
    fn scx_change_class(&mut self, task: TaskId, change: impl FnOnce(&mut Kernel)) {
        let cpu = self.sched.tasks[task].cpu;
        let queued = self.sched.tasks[task].on_rq == OnRq::Queued;
        let running = self.sched.rq[cpu].curr == task;
        if queued {
            self.dequeue_task(cpu, task, DEQUEUE_SAVE | DEQUEUE_MOVE);
        }
        if running {
            self.put_running(cpu, task);
        }
        change(self);
        if queued {
            self.enqueue_task(cpu, task, ENQUEUE_RESTORE | DEQUEUE_MOVE | ENQUEUE_NOCLOCK);
        }
        if running {
            self.set_running(cpu, task);
        }
    }

    // ---- one step after the other -------------------------------------------------------------

    /// The next step of loading or unloading comes at this time.
    fn scx_life_at(&mut self, at: Ns) {
        self.time.hrtimer_cancel(CpuId(0), TimerKind::ScxLife, &mut self.cx);
        self.time.hrtimer_start(CpuId(0), at, at, TimerKind::ScxLife, &mut self.cx);
    }

    /// How long `synchronize_rcu()` and what waits likewise take: a jiffy until the grace period begins, and the time of
    /// the first look at the CPUs.
    fn scx_wait_grace_periods(&mut self, count: u64) {
        let jiffies = 1 + crate::rcu::jiffies_till_first_fqs(&self.cx);
        self.scx_life_at(self.cx.now + count * jiffies * self.cx.tick_nsec);
    }

    /// The work that loads or unloads goes on.
    pub(crate) fn scx_life(&mut self) {
        let Some(ext) = &mut self.sched.ext else { return self.scx_exited() };
        match ext.stage {
            Stage::Waits => {
                self.scx_load_init();
                self.sched.scx_mut().dsqs.make_bypass(self.cx.now);
                self.scx_bypass(true);
                // The writers' sides of two locks: cgroups and forks.
                self.scx_wait_grace_periods(2);
            }
            Stage::Initialised => {
                self.scx_load_tasks();
                self.scx_bypass(false);
            }
            Stage::Starts => {
                self.sched.scx_mut().stage = Stage::Loaded;
                self.scx_start_program();
                if let Some(at) = self.sched.scx().unload_at {
                    self.scx_life_at(at);
                }
            }
            Stage::Loaded => self.scx_exit(ExitKind::Unreg, 0, String::new(), None),
            Stage::Bypassed => {
                self.scx_cgroup_exit();
                self.sched.scx_mut().stage = Stage::WithoutCgroups;
                self.scx_wait_grace_periods(1);
            }
            Stage::WithoutCgroups => self.scx_unload_tasks(),
        }
        self.scx_disable_if_pending();
    }

    // ---- tasks --------------------------------------------------------------------------------

    /// `scx_fork()`, `scx_post_fork()`: a task has been made.
    #[inline(never)]
    pub(crate) fn scx_fork(&mut self, task: TaskId) {
        self.sched.scx_mut().reserve(task.index() + 1);
        self.scx_init_task(task, true);
        if self.sched.tasks[task].class == Class::Ext {
            self.scx_enable_task(task, false);
        }
    }

    /// `__scx_init_task()`.
    fn scx_init_task(&mut self, task: TaskId, fork: bool) {
        let result = self.scx_op(None, Op::InitTask { task, fork });
        if result != 0 {
            self.scx_error(format!("ops.init_task() failed ({result}) for task {}", task.0));
        }
        self.sched.scx_task_mut(task).state = TaskState::Ready;
    }

    /// `scx_enable_task()`. `switches`: it comes from another class, so its CPUs are told, too.
    pub(crate) fn scx_enable_task(&mut self, task: TaskId, switches: bool) {
        let cpu = self.sched.tasks[task].cpu;
        let weight = self.scx_weight(task);
        if self.sched.rq[cpu].curr == task {
            // RT and DEADLINE have charged it by clocks of their own.
            let (se, now) = (self.sched.tasks[task].se, self.sched.rq[cpu].clock_task);
            self.sched.se[se].exec_start = now;
        }
        let entity = self.sched.scx_task_mut(task);
        entity.weight = weight;
        entity.state = TaskState::Enabled;
        self.scx_op(Some(cpu), Op::Enable { task });
        self.scx_op(Some(cpu), Op::Changed { task, change: TaskChange::Weight(weight) });
        if switches {
            self.scx_set_cpumask(task);
        }
    }

    fn scx_weight(&self, task: TaskId) -> u32 {
        weight_to_cgroup(scale_load_down(self.sched.se[self.sched.tasks[task].se].load.weight))
    }

    /// `set_cpus_allowed_scx()`.
    pub(crate) fn scx_set_cpumask(&mut self, task: TaskId) {
        let (cpu, mask) = (self.sched.tasks[task].cpu, self.sched.tasks[task].cpus_mask);
        self.scx_op(Some(cpu), Op::Changed { task, change: TaskChange::Cpus(mask) });
    }

    /// `reweight_task_scx()`.
    pub(crate) fn scx_reweight_task(&mut self, task: TaskId) {
        let (cpu, weight) = (self.sched.tasks[task].cpu, self.scx_weight(task));
        self.sched.scx_task_mut(task).weight = weight;
        self.scx_op(Some(cpu), Op::Changed { task, change: TaskChange::Weight(weight) });
    }

    /// `scx_disable_task()`: it leaves the class.
    pub(crate) fn scx_disable_task(&mut self, task: TaskId) {
        let cpu = self.sched.tasks[task].cpu;
        self.sched.scx_task_mut(task).clear_direct_dispatch();
        self.scx_op(Some(cpu), Op::Disable { task });
        let entity = self.sched.scx_task_mut(task);
        (entity.state, entity.dsq_vtime, entity.slice) = (TaskState::Ready, 0, 0);
        (entity.slice_oob, entity.reset_runnable_at) = (None, true);
        (entity.immed, entity.reenq_cnt) = (false, 0);
    }

    /// `sched_ext_dead()`: a task has been switched from for the last time.
    #[inline(never)]
    pub(crate) fn scx_task_dead(&mut self, task: TaskId) {
        if self.sched.scx_task(task).state == TaskState::Enabled {
            self.scx_disable_task(task);
        }
        self.scx_exit_task(task);
    }

    fn scx_exit_task(&mut self, task: TaskId) {
        if std::mem::take(&mut self.sched.scx_task_mut(task).state) != TaskState::None {
            self.scx_op(None, Op::ExitTask { task });
        }
    }

    // ---- the end ------------------------------------------------------------------------------

    /// `scx_error()`.
    pub(super) fn scx_error(&mut self, message: String) {
        self.scx_exit(ExitKind::Error, 0, message, None);
    }

    /// `scx_exit()`: the first cause counts.
    pub(super) fn scx_exit(
        &mut self,
        kind: ExitKind,
        code: i64,
        message: String,
        task: Option<TaskId>,
    ) {
        let (at, this) = (self.cx.local_clock(), self.cx.this_cpu);
        let ext = self.sched.scx_mut();
        if ext.exit.is_none() {
            ext.note(if kind.is_error() { Step::Failed } else { Step::Leaves });
            ext.exit = Some(Exit { kind, code, message, task, at });
            ext.exit_pending = true;
            // From here on the fair class counts again (`__scx_switched_all`).
            self.scx_mark_demands();
            self.scx_raise_irq_work(this);
        }
    }

    /// `scx_disable_workfn()`, if an exit waits for it: from now on the scheduler is bypassed.
    pub(super) fn scx_disable_if_pending(&mut self) {
        let Some(ext) = &mut self.sched.ext else { return };
        if !std::mem::take(&mut ext.exit_pending) {
            return;
        }
        ext.stage = Stage::Bypassed;
        ext.dsqs.make_bypass(self.cx.now);
        self.scx_bypass(true);
        self.scx_wait_grace_periods(1);
    }

    /// `scx_root_disable()`: all tasks go back to the fair class.
    fn scx_unload_tasks(&mut self) {
        let tasks: Vec<TaskId> = self.sched.tasks.ids().skip(1).collect();
        let count = self.sched.tasks.len();
        self.sched.scx_mut().reserve(count);
        for task in tasks {
            if self.sched.scx_task(task).state == TaskState::Enabled {
                self.scx_switch_out(task);
            }
            self.scx_exit_task(task);
        }
        self.time.cancel_scx_timers(&mut self.cx);
        let mut ext = self.sched.ext.take().expect("it was loaded");
        (ext.enabled, ext.bypass) = (false, false);
        ext.account(self.cx.now);
        self.sched.ext_unloaded = Some(ext);
        self.scx_mark_demands();
        for c in 0..self.sched.nr_cpus() {
            let cpu = CpuId(c as u16);
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        }
        self.scx_wait_grace_periods(1);
    }

    /// `ops.exit()`, which nobody can be calling the scheduler beside any more.
    fn scx_exited(&mut self) {
        self.sched.ext = self.sched.ext_unloaded.take();
        self.scx_op(None, Op::Exit);
        self.sched.ext_unloaded = self.sched.ext.take();
    }

    /// A task changes to the fair class, wherever it is.
    fn scx_switch_out(&mut self, task: TaskId) {
        let cpu = self.sched.tasks[task].cpu;
        self.sched.update_rq_clock(cpu, &self.cx);
        self.scx_change_class(task, |kernel| kernel.sched.tasks[task].class = Class::Fair);
        self.scx_disable_task(task);
        self.switched_to_fair(task);
    }

    // ---- watchdog -----------------------------------------------------------------------------

    fn scx_arm_watchdog(&mut self, from: Ns) {
        let ext = self.sched.scx();
        let half = (ext.timeout / 2).max(1) * self.cx.tick_nsec;
        let at = from + half;
        self.time.hrtimer_start(CpuId(0), at, at, TimerKind::ScxWatchdog, &mut self.cx);
    }

    /// `scx_watchdog_workfn()`.
    pub(crate) fn scx_watchdog(&mut self, expires: Ns) {
        let Some(ext) = &self.sched.ext else { return };
        let jiffies = self.cx.jiffies();
        let waits = |task: &TaskId| {
            let entity = &ext.tasks[task.index()];
            entity.runnable_seq > 0 && jiffies > entity.runnable_at + ext.timeout
        };
        let order =
            |task: &TaskId| (self.sched.tasks[*task].cpu, ext.tasks[task.index()].runnable_seq);
        let stalled = self.sched.tasks.ids().filter(waits).min_by_key(order);
        if let Some(task) = stalled {
            let ticks = jiffies - ext.tasks[task.index()].runnable_at;
            let ms = ticks * self.cx.tick_nsec / 1_000_000;
            let message =
                format!("task {} failed to run for {}.{:03}s", task.0, ms / 1000, ms % 1000);
            self.scx_exit(ExitKind::ErrorStall, 0, message, Some(task));
        }
        self.scx_arm_watchdog(expires);
    }
}

impl Ext {
    /// There are so many tasks.
    fn reserve(&mut self, count: usize) {
        self.tasks.resize_with(count, ExtEntity::default);
        for cpu in self.rqs.ids() {
            let list = &mut self.rqs[cpu].deferred_locals;
            list.reserve(count.saturating_sub(list.len()));
        }
        self.notices.reserve(count);
        self.reenqs.reserve(count);
    }
}
