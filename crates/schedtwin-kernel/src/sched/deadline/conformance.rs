// SPDX-License-Identifier: GPL-2.0-or-later
//! Single steps of the deadline class on a whole machine, for the differential test against the kernel's own C (`conformance/`,
//! L0 `deadline-queues`).
//!
//! Each step passes on to the functions that it names, in the order in which the core calls them. Fair tasks only run and end:
//! their class does nothing here. Nothing else uses this, and it decides nothing.

use super::{DL_PRIO, DlNode};
use crate::Kernel;
use crate::config::FairServerForm;
use crate::sched::core::{
    DEQUEUE_MOVE, DEQUEUE_NOCLOCK, DEQUEUE_SAVE, DEQUEUE_SLEEP, ENQUEUE_MIGRATED, ENQUEUE_NOCLOCK,
    ENQUEUE_RESTORE, ENQUEUE_WAKEUP, WF_TTWU,
};
pub use crate::sched::fair_server::conformance::ServerState;
use crate::sched::{Class, OnRq, TaskKind};
use crate::time::hrtimer::TimerKind;
use schedtwin_types::{CpuId, CpuMask, DlReservation, Ns, Policy, SchedAttr, TaskId};

/// The deadline class of a machine. The caller's CPU and the time are those of the last [`DlSteps::enter`].
pub struct DlSteps<'a>(pub &'a mut Kernel);

/// A CPU's part of the class.
pub struct DlState {
    /// Queued tasks, the earliest deadline first; `None`: the fair server.
    pub queue: Vec<Option<TaskId>>,
    /// Pushable ones, likewise.
    pub pushable: Vec<TaskId>,
    /// Its earliest deadline in `cpudl`.
    pub earliest: Option<u64>,
    /// `this_bw`.
    pub this_bw: u64,
    /// `running_bw`.
    pub running_bw: u64,
}

impl DlSteps<'_> {
    /// Enters the kernel on `cpu` at `now`.
    pub fn enter(&mut self, now: Ns, cpu: CpuId) {
        (self.0.cx.now, self.0.cx.this_cpu, self.0.cx.debt) = (now, cpu, 0);
    }

    fn cpu(&self) -> CpuId {
        self.0.cx.this_cpu
    }

    fn curr(&self) -> TaskId {
        self.0.sched.rq[self.cpu()].curr
    }

    fn update_clock(&mut self) {
        self.0.sched.update_rq_clock(self.cpu(), &self.0.cx);
    }

    /// Makes a task that sleeps; one without a reservation is fair.
    pub fn new_task(
        &mut self,
        cpu: CpuId,
        mask: CpuMask,
        reserved: Option<&DlReservation>,
    ) -> TaskId {
        let k = &mut *self.0;
        let task = k.new_task(None, TaskKind::User);
        let t = &mut k.sched.tasks[task];
        (t.cpu, t.cpus_mask, t.nr_cpus_allowed) = (cpu, mask, mask.weight());
        if let Some(reserved) = reserved {
            (t.class, t.prio, t.policy) = (Class::Deadline, DL_PRIO, Policy::Deadline);
            k.sched.setparam_dl(task, reserved, &mut k.time);
            k.sched.rd.dl_bw.total_bw += k.sched.tasks[task].dl.dl_bw;
            k.sched.add_rq_bw(cpu, task);
        }
        task
    }

    /// `try_to_wake_up()`.
    pub fn wake(&mut self, task: TaskId) {
        let k = &mut *self.0;
        let (prev, allowed) = (k.sched.tasks[task].cpu, k.sched.tasks[task].nr_cpus_allowed);
        let mut cpu = prev;
        if allowed > 1 {
            cpu = k.sched.select_task_rq_dl(task, prev, WF_TTWU, &mut k.cx);
        }
        let migrated = if cpu != prev { ENQUEUE_MIGRATED } else { 0 };
        k.set_task_cpu(task, cpu);
        k.sched.update_rq_clock(cpu, &k.cx);
        k.activate_task(cpu, task, ENQUEUE_WAKEUP | ENQUEUE_NOCLOCK | migrated);
        k.wakeup_preempt(cpu, task, WF_TTWU);
        k.task_woken_dl(cpu, task);
    }

    /// `schedule()`; the running task `sleeps`. `lower` runs if the class has no task.
    pub fn schedule(&mut self, sleeps: bool, lower: TaskId) {
        let (cpu, prev) = (self.cpu(), self.curr());
        self.update_clock();
        let k = &mut *self.0;
        let prev_class = k.sched.tasks[prev].class;
        if sleeps && prev_class == Class::Deadline {
            k.dequeue_task(cpu, prev, DEQUEUE_SLEEP | DEQUEUE_NOCLOCK);
            k.sched.tasks[prev].on_rq = OnRq::No;
        }
        if prev_class == Class::Deadline {
            k.balance_dl(cpu, prev);
        }
        k.charge_before_pick(cpu, prev);
        let next = loop {
            match k.sched.pick_next_dl_entity(cpu) {
                Some(DlNode::Task(next)) => break next,
                Some(DlNode::FairServer) if lower.is_idle() => k.fair_server_stop(cpu),
                _ => break lower,
            }
        };
        let class = k.sched.tasks[next].class;
        if next != prev {
            if prev_class == Class::Deadline {
                k.put_prev_task_dl(cpu, prev);
            }
            if prev.is_idle() {
                k.fair_server_idle_ends(cpu);
            }
            if class == Class::Deadline {
                k.set_next_task_dl(cpu, prev, next, true);
            } else if next.is_idle() {
                k.sched.rq[cpu].idle_exec_start = k.sched.rq[cpu].clock_task;
            }
        } else if prev_class == Class::Deadline {
            k.put_prev_set_next_task(cpu, prev, next);
        }
        let rq = &mut k.sched.rq[cpu];
        (rq.need_resched, rq.next_class, rq.curr) = (false, class, next);
        k.balance_callbacks(cpu);
    }

    /// `task_tick_dl()`.
    pub fn tick(&mut self) {
        self.update_clock();
        self.0.task_tick_dl(self.cpu());
    }

    /// `yield_task_dl()`.
    pub fn yield_task(&mut self) {
        self.update_clock();
        self.0.yield_task_dl(self.cpu());
    }

    /// Takes the running task off, changes it, and puts it back, as `sched_setaffinity()` and
    /// `__sched_setscheduler()` do.
    fn change(&mut self, moves: u32, change: impl FnOnce(&mut Kernel, TaskId)) {
        let (cpu, task) = (self.cpu(), self.curr());
        let k = &mut *self.0;
        if k.sched.tasks[task].class == Class::Deadline {
            k.dequeue_task(cpu, task, DEQUEUE_SAVE | moves | DEQUEUE_NOCLOCK);
            k.put_running(cpu, task);
        }
        change(k, task);
        if k.sched.tasks[task].class == Class::Deadline {
            k.enqueue_task(cpu, task, ENQUEUE_RESTORE | moves | ENQUEUE_NOCLOCK);
            k.set_running(cpu, task);
        }
    }

    /// `sched_setaffinity()` of the running task, whose CPU stays among its own.
    pub fn set_affinity(&mut self, mask: CpuMask) {
        self.update_clock();
        self.change(0, |k, task| {
            let t = &mut k.sched.tasks[task];
            (t.cpus_mask, t.nr_cpus_allowed) = (mask, mask.weight());
        });
        self.0.balance_callbacks(self.cpu());
    }

    /// `sched_setscheduler()` of the running task to the class; it may have left that before.
    pub fn reserve(&mut self, attr: &SchedAttr) {
        let (cpu, task) = (self.cpu(), self.curr());
        self.update_clock();
        let (class, prio) = (self.0.sched.tasks[task].class, self.0.sched.tasks[task].prio);
        let k = &mut *self.0;
        k.sched.sched_dl_admit(task, attr, &k.time, &k.cx).expect("nothing limits the class");
        let moves = k.moves_of(Class::Deadline, prio != DL_PRIO);
        let old_deadline = k.get_prio_dl(cpu, task, Class::Deadline);
        self.change(moves, |k, task| {
            k.sched.setparam_dl(task, &attr.dl, &mut k.time);
            let t = &mut k.sched.tasks[task];
            (t.class, t.prio, t.policy) = (Class::Deadline, DL_PRIO, Policy::Deadline);
        });
        self.0.check_class_changed(cpu, task, (class, prio), old_deadline);
        self.0.balance_callbacks(cpu);
    }

    /// `sched_setscheduler()` of the running task to the fair class.
    pub fn leave(&mut self) {
        let (cpu, task) = (self.cpu(), self.curr());
        self.update_clock();
        self.change(DEQUEUE_MOVE, |k, task| {
            let t = &mut k.sched.tasks[task];
            (t.class, t.prio, t.policy) = (Class::Fair, 120, Policy::Normal);
        });
        self.0.check_class_changed(cpu, task, (Class::Deadline, DL_PRIO), 0);
        self.0.balance_callbacks(cpu);
    }

    /// When the replenishment and the zero-lag time of a task are due.
    pub fn timers(&self, task: TaskId) -> [Option<Ns>; 2] {
        let (dl, time) = (&self.0.sched.tasks[task].dl, &self.0.time);
        [
            time.base(dl.dl_timer_on).expires(TimerKind::DlTask(task)),
            time.base(dl.inactive_timer_on).expires(TimerKind::DlInactive(task)),
        ]
    }

    fn cancel(&mut self, kind: TimerKind) {
        for cpu in self.0.sched.rd.span.iter() {
            self.0.time.hrtimer_cancel(cpu, kind, &mut self.0.cx);
        }
    }

    /// `dl_task_timer()`.
    pub fn replenish(&mut self, task: TaskId) {
        self.cancel(TimerKind::DlTask(task));
        self.0.dl_task_timer(task);
    }

    /// `inactive_task_timer()`.
    pub fn zero_lag(&mut self, task: TaskId) {
        self.cancel(TimerKind::DlInactive(task));
        self.0.inactive_task_timer(task);
    }

    /// The first fair task of the CPU is queued, or the last one leaves.
    pub fn fair(&mut self, comes: bool) {
        self.update_clock();
        let cpu = self.cpu();
        let k = &mut *self.0;
        if comes {
            if k.sched.rq[cpu].nr_running == 0 {
                k.sched.fair_server_before_start(cpu, &k.cx);
            }
            k.fair_server_start(cpu);
            k.sched.add_nr_running(cpu, 1);
        } else {
            k.sched.sub_nr_running(cpu, 1);
        }
    }

    /// `dl_server_update()`: fair tasks have run for `delta`.
    pub fn fair_ran(&mut self, delta: i64) {
        self.update_clock();
        let cpu = self.cpu();
        if self.0.sched.rq[cpu].fair_server.is_active() {
            self.0.fair_server_update(cpu, delta);
        }
    }

    /// `task_tick_idle()`.
    pub fn idle_tick(&mut self) {
        self.update_clock();
        self.0.task_tick_idle(self.cpu());
    }

    /// `dl_server_timer()`, or where there is one timer for both `inactive_task_timer()`.
    pub fn server_timer(&mut self) {
        let cpu = self.cpu();
        let expires = self.server(cpu).timers.into_iter().flatten().min();
        self.cancel(TimerKind::FairServer(cpu));
        self.0.fair_server_timer(cpu, expires.expect("the timer runs"));
    }

    /// `inactive_task_timer()` of the server.
    pub fn server_zero_lag(&mut self) {
        let cpu = self.cpu();
        if self.0.cx.config.fair_server_form == FairServerForm::V7_3 {
            self.cancel(TimerKind::FairServerInactive(cpu));
            self.0.fair_server_inactive_timer(cpu);
        } else {
            self.server_timer();
        }
    }

    /// Returns the fair server of a CPU.
    pub fn server(&self, cpu: CpuId) -> ServerState {
        self.0.sched.fair_server_state(cpu, &self.0.time)
    }

    /// `find_later_rq()`.
    pub fn find_later_rq(&mut self, task: TaskId) -> Option<CpuId> {
        self.0.sched.find_later_rq(task, &self.0.cx).map(|found| found.0)
    }

    /// Returns what the class keeps of a CPU.
    pub fn state(&self, cpu: CpuId) -> DlState {
        let dl = &self.0.sched.rq[cpu].dl;
        let task_of = |node: &DlNode| match node {
            DlNode::Task(task) => Some(*task),
            DlNode::FairServer => None,
        };
        DlState {
            queue: dl.queue.iter().map(task_of).collect(),
            pushable: dl.pushable.clone(),
            earliest: self.0.sched.rd.cpudl.deadline_of(cpu),
            this_bw: dl.this_bw,
            running_bw: *dl.running_bw,
        }
    }
}
