// SPDX-License-Identifier: GPL-2.0-or-later
//! The deadline class: of all entities queued on a CPU, the one with the earliest deadline runs.
//!
//! **Idea.** A task reserves a runtime in each period, and is told at once if the machine has no
//! bandwidth left for that (`deadline/bandwidth.rs`). Earliest deadline first meets all deadlines
//! of one CPU up to its full capacity, and a server for each task (`deadline/entity.rs`) makes sure
//! that no task runs more than was reserved: a task that has used its runtime up is *throttled*,
//! which is off the queue though runnable, until a timer replenishes it. Tasks move between CPUs so
//! that the earliest deadlines of the machine run (`deadline/migrate.rs`).
//!
//! ```text
//! A: 2 ms each 4 ms    |-AA------AA------AA-|    deadlines 4, 8, 12
//! B: 3 ms each 8 ms    |---BB------B--------|    B waits at 4: A's deadline is 8 like its own, and B runs on
//! ```
//!
//! Besides tasks of `SCHED_DEADLINE` there are two kinds of entities. schedutil's threads
//! ([`crate::cpufreq::sugov_kthread`]) are *special* (`SCHED_FLAG_SUGOV`): they preempt everything but the stopper, are
//! never throttled, and add nothing to `running_bw`. Of their 1 ms in 10 only the deadline does anything: as the runtime is
//! never charged, each wakeup finds that what is left is too much for the time that is left, and moves the
//! deadline to 10 ms from now. The third is each CPU's fair server, which shares the queue.
//!
//! `dl.util_avg` shows the use of all of them. The bandwidth that tasks and servers have reserved
//! is a minimum of the frequency.
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/deadline.c, cpudeadline.c.
//! Differences: no priority inheritance, no GRUB (`SCHED_FLAG_RECLAIM`) and no signals about overruns. Without
//! HRTICK_DL ([`crate::sched::hrtick`]) a task overruns its runtime by up to a tick and pays later.
//!
//! **A trap.** A task that leaves the class with its runtime used up is throttled and runs on as a fair task. Its timer finds it
//! in the other class and does nothing. If it comes back then, before its zero-lag time, it is still throttled, and no timer is
//! left that could end that: it runs until the CPU next looks for a task, and never again. So it is in all releases.
//!
//! ```text
//! deadline ──run──▌overrun▌── fair ──▌timer: not its class▌── deadline again ──▌schedule▌ never picked
//!                                    deadline                                  zero lag
//! ```

pub(crate) mod bandwidth;
#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod conformance;
mod cpudl;
pub(crate) mod dl_bw;
mod entity;
mod migrate;
#[cfg(test)]
mod tests;

pub use super::fair_server::FairServer;
pub use cpudl::Cpudl;
pub use dl_bw::DlBw;
pub use entity::{DlEntity, Update, dl_entity_overflow, dl_time_before, to_ratio};

use crate::sched::core::{
    DEQUEUE_MOVE, DEQUEUE_SAVE, DEQUEUE_SLEEP, ENQUEUE_REPLENISH, ENQUEUE_RESTORE, ENQUEUE_WAKEUP,
};
use crate::sched::demand::signal::Signal;
use crate::sched::{Class, OnRq, pelt};
use crate::time::hrtimer::TimerKind;
use crate::{Context, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, DlReservation, FactKind, TaskId};

/// The reservation that `sugov_kthread_create()` asks for; as it says there: fake, unused.
const SUGOV: DlReservation =
    DlReservation { runtime: 1_000_000, deadline: 10_000_000, period: 10_000_000 };
/// `prio` of every task of the class.
pub const DL_PRIO: i32 = -1;

/// An entity in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DlNode {
    /// A task.
    Task(TaskId),
    /// The CPU's fair server.
    FairServer,
}

/// `struct dl_rq`.
#[derive(Clone, Debug)]
pub struct DlRq {
    /// Queued entities, the running one among them, the earliest deadline first, equal ones in order of insertion.
    queue: Vec<DlNode>,
    /// Queued tasks that do not run and may run elsewhere, likewise.
    pushable: Vec<TaskId>,
    /// `exec_start` of the running deadline task.
    exec_start: u64,
    /// `running_bw`: reserved by active entities, 2^20 = a whole CPU.
    running_bw: Signal<u64>,
    /// `this_bw`: reserved by all whose CPU this is.
    this_bw: u64,
}

impl DlRq {
    /// Nobody is queued. `server_bw`: what the CPU's fair server has reserved.
    pub fn new(server_bw: u64) -> DlRq {
        // schedutil's thread and the server are all that a CPU can have without tasks of `SCHED_DEADLINE`.
        DlRq {
            queue: Vec::with_capacity(2),
            pushable: Vec::with_capacity(1),
            exec_start: 0,
            running_bw: Signal::default(),
            this_bw: server_bw,
        }
    }

    /// Queued entities, the earliest deadline first.
    pub fn queue(&self) -> &[DlNode] {
        &self.queue
    }

    /// `exec_start` of the running deadline task.
    pub(crate) fn exec_start_mut(&mut self) -> &mut u64 {
        &mut self.exec_start
    }

    /// `running_bw`.
    pub fn running_bw(&self) -> u64 {
        *self.running_bw
    }

    /// `cpu_bw_dl()`: the active bandwidth as a capacity.
    #[inline(always)]
    pub fn cpu_bw_dl(&self) -> u64 {
        (*self.running_bw * 1024) >> 20
    }

    /// For comparisons of the governor: that much is active.
    #[cfg(any(test, feature = "conformance"))]
    pub(crate) fn set_running_bw(
        &mut self,
        cpu: CpuId,
        stale: &mut crate::sched::demand::signal::StaleDemands,
        bw: u64,
    ) {
        self.running_bw.change(cpu, stale, |running_bw| *running_bw = bw);
    }

    /// Reserves memory for that many tasks.
    fn reserve(&mut self, tasks: usize) {
        self.queue.reserve((tasks + 2).saturating_sub(self.queue.len()));
        self.pushable.reserve((tasks + 1).saturating_sub(self.pushable.len()));
    }
}

#[cfg(test)]
impl DlRq {
    /// Lets 50 ms in a second count.
    pub(crate) fn count_for_test(&mut self) {
        *self.running_bw = to_ratio(1_000_000_000, 50_000_000);
    }
}

impl crate::sched::Rq {
    /// `dl.dl_nr_running`: queued entities.
    #[inline(always)]
    pub fn dl_nr_running(&self) -> usize {
        self.dl.queue.len()
    }
}

impl Context {
    /// The flag of an enqueue that lets a deadline which has passed begin anew: any change, or since 7.3 one of class or
    /// reservation.
    fn begins_new_instance(&self) -> u32 {
        if self.class_changes_preempt() { DEQUEUE_MOVE } else { ENQUEUE_RESTORE }
    }
}

impl Scheduler {
    /// `dl_scaled_delta_exec()`: what `delta` of running costs at a CPU's clock and capacity.
    #[inline(always)]
    pub(super) fn scaled_charge(&self, cpu: CpuId, delta: i64) -> i64 {
        let rq = &self.rq[cpu];
        DlEntity::scaled_delta_exec(delta, rq.freq_scale, rq.arch_capacity)
    }

    /// Makes a task of schedutil one of the class (`sugov_kthread_create`). It sleeps.
    pub(crate) fn make_special_dl(&mut self, task: TaskId) {
        let t = &mut self.tasks[task];
        (t.class, t.prio) = (Class::Deadline, DL_PRIO);
        t.dl.special = true;
        t.dl.set_reservation(&SUGOV);
        t.dl.runtime = SUGOV.runtime as i64;
    }

    #[inline]
    fn deadline_of(&self, cpu: CpuId, node: DlNode) -> u64 {
        match node {
            DlNode::Task(task) => self.tasks[task].dl.deadline,
            DlNode::FairServer => self.rq[cpu].fair_server.deadline(),
        }
    }

    /// `__enqueue_dl_entity()`, `inc_dl_tasks()`.
    pub(crate) fn insert_dl_entity(&mut self, cpu: CpuId, node: DlNode, cx: &Context) {
        let deadline = self.deadline_of(cpu, node);
        let queue = &self.rq[cpu].dl.queue;
        let later = |other: &DlNode| dl_time_before(deadline, self.deadline_of(cpu, *other));
        let at = queue.partition_point(|other| !later(other));
        self.rq[cpu].dl.queue.insert(at, node);
        if node != DlNode::FairServer || cx.fair_server_is_counted() {
            self.add_nr_running(cpu, 1);
        }
        if at == 0 {
            // inc_dl_deadline()
            if self.rq[cpu].dl.queue.len() == 1 {
                self.cpupri_deadline_queued(cpu);
            }
            self.rd.cpudl.set(cpu, deadline);
        }
        self.update_dl_migration(cpu, cx);
    }

    /// `__dequeue_dl_entity()`, `dec_dl_tasks()`.
    pub(crate) fn remove_dl_entity(&mut self, cpu: CpuId, node: DlNode, cx: &Context) {
        self.rq[cpu].dl.queue.retain(|other| *other != node);
        if node != DlNode::FairServer || cx.fair_server_is_counted() {
            self.sub_nr_running(cpu, 1);
        }
        // dec_dl_deadline()
        match self.rq[cpu].dl.queue.first() {
            Some(&first) => {
                let deadline = self.deadline_of(cpu, first);
                self.rd.cpudl.set(cpu, deadline);
            }
            None => {
                self.rd.cpudl.clear(cpu);
                self.cpupri_deadline_gone(cpu);
            }
        }
        self.update_dl_migration(cpu, cx);
    }

    /// `is_leftmost()`.
    pub(crate) fn is_leftmost_dl(&self, cpu: CpuId, node: DlNode) -> bool {
        self.rq[cpu].dl.queue.first() == Some(&node)
    }

    fn remove_dl_task(&mut self, cpu: CpuId, task: TaskId, cx: &Context) {
        if std::mem::take(&mut self.tasks[task].dl.queued) {
            self.remove_dl_entity(cpu, DlNode::Task(task), cx);
        }
    }

    /// `update_dl_rq_load_avg()`: `running` is what has been on the CPU up to now.
    fn update_dl_rq_load_avg(&mut self, cpu: CpuId, running: bool) {
        let now = self.rq_clock_pelt(cpu);
        self.rq[cpu].avg_dl.update(cpu, &mut self.stale_demands, |avg| {
            pelt::update_dl_rq_load_avg(now, avg, running)
        });
    }

    /// `pick_next_dl_entity()`.
    #[inline]
    pub(crate) fn pick_next_dl_entity(&self, cpu: CpuId) -> Option<DlNode> {
        self.rq[cpu].dl.queue.first().copied()
    }

    /// Asserts what the class keeps of a CPU; `here` are the CPU's tasks.
    pub(crate) fn verify_dl(&self, cpu: CpuId, here: &[TaskId], time: &Time) {
        let queue = &self.rq[cpu].dl.queue;
        for node in queue {
            let DlNode::Task(task) = *node else { continue };
            let t = &self.tasks[task];
            assert_eq!((t.class, t.cpu), (Class::Deadline, cpu), "{cpu:?}: {task:?} in its queue");
            assert!(t.dl.queued && !t.dl.throttled, "{cpu:?}: {task:?} is queued");
        }
        for pair in queue.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|node| self.deadline_of(cpu, node));
            assert!(!dl_time_before(b, a), "{cpu:?}: order of deadlines");
        }
        let of_class =
            here.iter().copied().filter(|task| self.tasks[*task].class == Class::Deadline);
        let of_class: Vec<TaskId> = of_class.collect();
        let tasks = of_class.iter().map(|task| &self.tasks[*task]);
        let tasks = tasks.filter(|t| t.on_rq == OnRq::Queued && !t.dl.throttled).count();
        let server = self.rq[cpu].fair_server.is_queued() as usize;
        assert_eq!(queue.len(), tasks + server, "{cpu:?}: deadline entities");
        let first = queue.first().map(|node| self.deadline_of(cpu, *node));
        assert_eq!(self.rd.cpudl.deadline_of(cpu), first, "{cpu:?}: earliest deadline");
        for &task in &of_class {
            let t = &self.tasks[task];
            if t.dl.throttled {
                let timer = TimerKind::DlTask(task);
                let waits = time.base(t.dl.dl_timer_on).is_queued(timer);
                assert!(waits || t.dl.stranded, "{task:?} is throttled for ever");
            }
        }
        self.verify_dl_pushable(cpu);
        self.verify_dl_bandwidth(cpu, &of_class);
        if cpu == CpuId(0) {
            self.rd.cpudl.verify();
        }
    }
}

impl Kernel {
    /// `start_dl_timer()`: the replenishment. `false`: its time has passed.
    fn start_dl_timer(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let (clock, now) = (self.sched.rq[cpu].clock, self.cx.local_clock());
        let next_period = self.sched.tasks[task].dl.next_period();
        // The deadline is a time of the run queue's clock, which may be behind the timers'.
        let at = next_period.wrapping_add(now.wrapping_sub(clock));
        // ktime_us_delta() < 0: a microsecond's fraction is cut.
        if at + 1000 <= now {
            return false;
        }
        let kind = TimerKind::DlTask(task);
        if !self.time.base(self.sched.tasks[task].dl.dl_timer_on).is_queued(kind) {
            let on = self.hrtimer_target(kind, at, self.sched.tasks[task].dl.dl_timer_on);
            self.sched.tasks[task].dl.dl_timer_on = on;
            self.time.hrtimer_start(on, at, at, kind, &mut self.cx);
        }
        true
    }

    /// `enqueue_task_dl()`.
    #[inline(never)]
    pub(crate) fn enqueue_task_dl(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        self.enqueue_dl_entity(cpu, task, flags);
        let t = &self.sched.tasks[task];
        if self.sched.rq[cpu].curr != task && t.dl.queued && t.nr_cpus_allowed > 1 {
            self.sched.enqueue_pushable_dl_task(cpu, task, &self.cx);
        }
    }

    /// `enqueue_dl_entity()`.
    fn enqueue_dl_entity(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        let clock = self.sched.rq[cpu].clock;
        let dl = &self.sched.tasks[task].dl;
        debug_assert!(!dl.queued);
        // dl_check_constrained_dl()
        if !dl.throttled
            && !dl.is_implicit()
            && dl.is_between_periods(clock)
            && self.start_dl_timer(cpu, task)
        {
            let dl = &mut self.sched.tasks[task].dl;
            dl.throttled = true;
            dl.runtime = dl.runtime.min(0);
            self.cx.fact(FactKind::DlThrottled { task });
        }
        if flags & ENQUEUE_RESTORE != 0 || self.sched.tasks[task].on_rq == OnRq::Migrating {
            self.sched.add_rq_bw(cpu, task);
            self.add_running_bw(cpu, task);
        }
        // Active, though it waits for its timer.
        if self.sched.tasks[task].dl.throttled && flags & ENQUEUE_REPLENISH == 0 {
            if flags & ENQUEUE_WAKEUP != 0 {
                self.task_contending(cpu, task, flags);
            }
            return;
        }
        if flags & ENQUEUE_WAKEUP != 0 {
            self.task_contending(cpu, task, flags);
            self.sched.tasks[task].dl.update(clock);
        } else if flags & ENQUEUE_REPLENISH != 0 {
            self.sched.tasks[task].dl.replenish(clock);
        } else if flags & self.cx.begins_new_instance() != 0
            && dl_time_before(self.sched.tasks[task].dl.deadline, clock)
        {
            self.sched.tasks[task].dl.setup_new(clock);
        }
        self.sched.tasks[task].dl.queued = true;
        self.sched.insert_dl_entity(cpu, DlNode::Task(task), &self.cx);
    }

    /// `dequeue_task_dl()`, `dequeue_dl_entity()`.
    #[inline(never)]
    pub(crate) fn dequeue_task_dl(&mut self, cpu: CpuId, task: TaskId, flags: u32) -> bool {
        self.update_curr_dl(cpu);
        self.sched.remove_dl_task(cpu, task, &self.cx);
        if flags & DEQUEUE_SAVE != 0 || self.sched.tasks[task].on_rq == OnRq::Migrating {
            self.sub_running_bw(cpu, task);
            self.sched.sub_rq_bw(cpu, task);
        }
        if flags & DEQUEUE_SLEEP != 0 {
            self.task_non_contending(cpu, task);
        }
        self.sched.dequeue_pushable_dl_task(cpu, task, &self.cx);
        true
    }

    pub(crate) fn update_curr_dl(&mut self, cpu: CpuId) {
        let curr = self.sched.rq[cpu].curr;
        let t = &self.sched.tasks[curr];
        if t.class != Class::Deadline || !t.dl.queued {
            return;
        }
        let clock_task = self.sched.rq[cpu].clock_task;
        let delta = clock_task as i64 - self.sched.rq[cpu].dl.exec_start as i64;
        if delta > 0 {
            self.cpufreq_trigger_update(cpu);
            self.sched.rq[cpu].dl.exec_start = clock_task;
            let se = self.sched.tasks[curr].se;
            self.sched.se[se].sum_exec_runtime += delta as u64;
        }
        self.update_curr_dl_se(cpu, curr, delta);
    }

    /// `update_curr_dl_se()` of the running task.
    fn update_curr_dl_se(&mut self, cpu: CpuId, curr: TaskId, delta: i64) {
        let charge = self.sched.scaled_charge(cpu, delta);
        let dl = &mut self.sched.tasks[curr].dl;
        if delta > 0 {
            if dl.special {
                return;
            }
            dl.runtime -= charge;
        } else if !dl.yielded {
            return;
        }
        if dl.runtime <= 0 || dl.yielded {
            dl.throttled = true;
            self.cx.fact(FactKind::DlThrottled { task: curr });
            self.sched.remove_dl_task(cpu, curr, &self.cx);
            self.sched.dequeue_pushable_dl_task(cpu, curr, &self.cx);
            if !self.start_dl_timer(cpu, curr) {
                self.enqueue_task_dl(cpu, curr, ENQUEUE_REPLENISH);
            }
            if !self.sched.is_leftmost_dl(cpu, DlNode::Task(curr)) {
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
        }
        if delta > 0 {
            self.sched.account_dl_in_rt_time(cpu, delta as u64, &self.cx);
        }
    }

    /// `dl_task_timer()`: the replenishment is due.
    #[inline(never)]
    pub(crate) fn dl_task_timer(&mut self, task: TaskId) {
        let t = &self.sched.tasks[task];
        let (cpu, queued) = (t.cpu, t.on_rq == OnRq::Queued);
        if t.class != Class::Deadline {
            // Nothing else ends the throttling: see the head of this file.
            let dl = &mut self.sched.tasks[task].dl;
            dl.stranded = dl.throttled;
            return;
        }
        if !t.dl.throttled {
            return;
        }
        self.sched.update_rq_clock(cpu, &self.cx);
        if !queued {
            // It sleeps; its wakeup does the rest.
            let clock = self.sched.rq[cpu].clock;
            self.sched.tasks[task].dl.replenish(clock);
            return;
        }
        self.enqueue_task_dl(cpu, task, ENQUEUE_REPLENISH);
        if self.sched.tasks[self.sched.rq[cpu].curr].class == Class::Deadline {
            self.sched.wakeup_preempt_dl(cpu, task, &mut self.cpuidle, &mut self.cx);
        } else {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        }
        self.push_dl_task(cpu);
    }

    /// `yield_task_dl()`: off the CPU until the next period.
    pub(crate) fn yield_task_dl(&mut self, cpu: CpuId) {
        let curr = self.sched.rq[cpu].curr;
        self.sched.tasks[curr].dl.yielded = true;
        self.sched.update_rq_clock(cpu, &self.cx);
        self.update_curr_dl(cpu);
        self.sched.rq[cpu].skip_clock_update = true;
    }

    /// `set_next_task_dl()`. `first`: it has been picked; else a running task is put back after a change of its attributes.
    pub(crate) fn set_next_task_dl(&mut self, cpu: CpuId, prev: TaskId, next: TaskId, first: bool) {
        let rq = &mut self.sched.rq[cpu];
        rq.dl.exec_start = rq.clock_task;
        self.sched.dequeue_pushable_dl_task(cpu, next, &self.cx);
        if !first {
            return;
        }
        if self.sched.tasks[prev].class != Class::Deadline {
            self.sched.update_dl_rq_load_avg(cpu, false);
        }
        let rq = &mut self.sched.rq[cpu];
        rq.push_pending |= !rq.dl.pushable.is_empty();
        self.hrtick_start_dl(cpu, next);
    }

    /// `put_prev_task_dl()`.
    pub(crate) fn put_prev_task_dl(&mut self, cpu: CpuId, prev: TaskId) {
        self.update_curr_dl(cpu);
        self.sched.update_dl_rq_load_avg(cpu, true);
        let t = &self.sched.tasks[prev];
        if t.dl.queued && t.nr_cpus_allowed > 1 {
            self.sched.enqueue_pushable_dl_task(cpu, prev, &self.cx);
        }
    }

    pub(crate) fn task_tick_dl(&mut self, cpu: CpuId) {
        self.update_curr_dl(cpu);
        self.sched.update_dl_rq_load_avg(cpu, true);
    }
}
