// SPDX-License-Identifier: GPL-2.0-or-later
//! The core of the scheduler: waking, switching, starting and ending tasks.
//!
//! ```text
//! try_to_wake_up ─ select_task_rq ─ ttwu_queue ─┬─ wake list + IPI ─ sched_ttwu_pending ─┐
//!                                               └────────────── ttwu_do_activate ◄───────┘
//! schedule ─ block_task ─ pick_next_task ─ context_switch
//! ```
//!
//! Kernel: 6.12.95 kernel/sched/core.c `try_to_wake_up`, `ttwu_queue`, `__schedule`,
//! `wake_up_new_task`, `resched_curr`.
//! `syscalls.rs` has the changes that a task makes to itself.
//! Differences: entries are atomic, so a task that blocks has left its CPU before anybody can wake it,
//! and the early queueing of a task that is still `on_cpu` never happens. A running task that wakes
//! several others is preempted after the last of them, not between them (within one system call).

use crate::config::{BalanceFair, PutPrev, TtwuQueueCond};
use crate::sched::deadline::DlNode;
use crate::sched::stop::StopWork;
use crate::sched::{CfsRqId, Class, EntityId, OnRq, SchedEntity, Task, TaskKind, WakeListEntry};
use crate::{Activity, Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{
    CpuId, CpuMask, FactKind, IpiKind, NEVER, Ns, Outcome, PickRule, Policy, ProcessId,
    TaskGroupId, TaskId, TaskState, WakeSource,
};

/// `ENQUEUE_WAKEUP`.
pub const ENQUEUE_WAKEUP: u32 = 0x01;
/// `ENQUEUE_RESTORE`.
pub const ENQUEUE_RESTORE: u32 = 0x02;
/// `ENQUEUE_NOCLOCK`.
pub const ENQUEUE_NOCLOCK: u32 = 0x08;
/// `ENQUEUE_HEAD`.
pub const ENQUEUE_HEAD: u32 = 0x10;
/// `ENQUEUE_REPLENISH`.
pub const ENQUEUE_REPLENISH: u32 = 0x20;
/// `ENQUEUE_MIGRATED`.
pub const ENQUEUE_MIGRATED: u32 = 0x40;
/// `ENQUEUE_INITIAL`.
pub const ENQUEUE_INITIAL: u32 = 0x80;
/// `ENQUEUE_DELAYED`.
pub const ENQUEUE_DELAYED: u32 = 0x200;
/// `DEQUEUE_SLEEP`.
pub const DEQUEUE_SLEEP: u32 = 0x01;
/// `DEQUEUE_SAVE`.
pub const DEQUEUE_SAVE: u32 = 0x02;
/// `DEQUEUE_NOCLOCK`.
pub const DEQUEUE_NOCLOCK: u32 = 0x08;
/// `DEQUEUE_MOVE`, `ENQUEUE_MOVE`: the place in a queue of equals may change.
pub const DEQUEUE_MOVE: u32 = 0x04;
/// `DEQUEUE_SPECIAL`.
pub const DEQUEUE_SPECIAL: u32 = 0x10;
/// `DEQUEUE_DELAYED`.
pub const DEQUEUE_DELAYED: u32 = 0x200;
/// `DEQUEUE_THROTTLE`.
pub const DEQUEUE_THROTTLE: u32 = 0x800;

/// `WF_EXEC`.
pub const WF_EXEC: u32 = 0x02;
/// `WF_FORK`.
pub const WF_FORK: u32 = 0x04;
/// `WF_TTWU`.
pub const WF_TTWU: u32 = 0x08;
/// `WF_SYNC`.
pub const WF_SYNC: u32 = 0x10;
/// `WF_MIGRATED`.
pub const WF_MIGRATED: u32 = 0x20;

impl Scheduler {
    /// `idle_cpu()`.
    #[inline(always)]
    pub(crate) fn idle_cpu(&self, cpu: CpuId) -> bool {
        let rq = &self.rq[cpu];
        rq.curr.is_idle() && rq.nr_running == 0 && !rq.ttwu_pending
    }

    /// `available_idle_cpu()`: as far as a wakeup on the executing CPU sees.
    #[inline(always)]
    pub(crate) fn available_idle_cpu(&self, cpu: CpuId) -> bool {
        self.idle_mask.contains(cpu)
    }

    /// `is_core_idle()`: whether the other hardware threads of the CPU's core are idle.
    #[inline]
    pub(crate) fn is_core_idle(&self, cpu: CpuId) -> bool {
        let mut siblings = self.topology.smt_mask[cpu.index()];
        siblings.remove(cpu);
        siblings.is_subset(&self.idle_mask)
    }

    /// `sched_idle_cpu()`: only `SCHED_IDLE` tasks are queued.
    #[inline]
    pub(crate) fn sched_idle_cpu(&self, cpu: CpuId) -> bool {
        let nr = self.rq[cpu].nr_running;
        nr != 0 && nr == self.cfs[CfsRqId::root(cpu)].h_nr_idle
    }

    /// Keeps `idle_mask` in step after a change of what `idle_cpu()` reads.
    #[inline(always)]
    pub(crate) fn refresh_idle(&mut self, cpu: CpuId) {
        self.idle_mask.set(cpu, self.idle_cpu(cpu));
    }

    /// Keeps `sched_idle_mask` in step after a change of the number of tasks.
    #[inline(always)]
    pub(crate) fn refresh_sched_idle(&mut self, cpu: CpuId) {
        self.sched_idle_mask.set(cpu, self.sched_idle_cpu(cpu));
    }

    /// `add_nr_running()`.
    #[inline(always)]
    pub(crate) fn add_nr_running(&mut self, cpu: CpuId, count: u32) {
        let before = self.rq[cpu].nr_running;
        self.rq[cpu].nr_running = before + count;
        self.refresh_idle(cpu);
        self.refresh_sched_idle(cpu);
        if before < 2 && before + count >= 2 {
            self.rd.overloaded = true;
        }
    }

    /// `sub_nr_running()`.
    #[inline(always)]
    pub(crate) fn sub_nr_running(&mut self, cpu: CpuId, count: u32) {
        self.rq[cpu].nr_running -= count;
        self.refresh_idle(cpu);
        self.refresh_sched_idle(cpu);
    }

    /// `resched_curr()`: the running task of `cpu` has to give way at the next opportunity.
    #[inline(always)]
    pub(crate) fn resched_curr(&mut self, cpu: CpuId, cpuidle: &mut Cpuidle, cx: &mut Context) {
        if self.rq[cpu].need_resched {
            return;
        }
        self.rq[cpu].need_resched = true;
        if cpu != cx.this_cpu && !cx.polls(cpu) {
            self.send_ipi(cpu, IpiKind::Reschedule, cpuidle, cx);
        }
    }

    /// Sends an inter-processor interrupt; at most one of a kind is in flight.
    pub(crate) fn send_ipi(
        &mut self,
        target: CpuId,
        kind: IpiKind,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        if cx.platform.wires[target].ipi_at[kind as usize] != NEVER {
            return;
        }
        if target != cx.this_cpu && cpuidle.call_without_ipi(target, kind, self, cx) {
            return;
        }
        self.send_ipi_to_awake(target, kind, cx);
    }

    /// Sends one whether the CPU polls or not: it does nothing for the flag that a polling CPU watches.
    pub(crate) fn send_ipi_to_awake(&mut self, target: CpuId, kind: IpiKind, cx: &mut Context) {
        if cx.platform.wires[target].ipi_at[kind as usize] != NEVER {
            return;
        }
        let cost = cx.platform.device_tree.path_costs.ipi_send;
        self.charge(cost, cx);
        let at = cx.local_clock();
        let wires = &mut cx.platform.wires[target];
        (wires.ipi_at[kind as usize], wires.ipi_from[kind as usize]) = (at, cx.this_cpu);
        cx.platform.dirty.insert(target);
        cx.fact(FactKind::Ipi { target, kind });
    }

    /// `__block_task()`: the task is off the queue for good.
    pub(crate) fn finish_block_task(&mut self, task: TaskId) {
        let t = &mut self.tasks[task];
        t.on_rq = OnRq::No;
        if t.in_iowait {
            self.rq[t.cpu].nr_iowait += 1;
        }
    }

    #[inline(always)]
    fn ttwu_do_wakeup(&mut self, task: TaskId, cx: &mut Context) {
        self.tasks[task].state = TaskState::Running;
        self.under_way(task, cx);
        let target = self.tasks[task].cpu;
        cx.fact(FactKind::Wakeup { task, target, new: false });
    }

    /// `ttwu_queue_cond()`: whether the target activates the task itself; `on_cpu`: it is just switching it out.
    fn ttwu_queue_wakelist(&self, task: TaskId, cpu: CpuId, on_cpu: bool, cx: &Context) -> bool {
        if !cx.config.features.ttwu_queue {
            return false;
        }
        match self.tasks[task].class {
            Class::Stop => return false,
            Class::Ext if !self.scx_allow_ttwu_queue() => return false,
            _ => {}
        }
        if !self.topology.cpus_share_cache(cx.this_cpu, cpu) {
            return true;
        }
        match cx.config.ttwu_queue_cond {
            TtwuQueueCond::NoSharedCache => false,
            TtwuQueueCond::NoSharedCacheOrOnCpu => {
                on_cpu && cpu != cx.this_cpu && self.rq[cpu].nr_running <= 1
            }
            TtwuQueueCond::NoSharedCacheOrIdle => {
                cpu != cx.this_cpu && self.rq[cpu].nr_running == 0
            }
        }
    }

    /// Onto the wake list, in the order in which the wakers' clocks get there.
    #[inline(never)]
    fn push_wake_list(&mut self, cpu: CpuId, task: TaskId, cx: &Context) {
        let at = cx.local_clock();
        let rq = &mut self.rq[cpu];
        let behind = rq.wake_list.partition_point(|waiting| waiting.at <= at);
        rq.wake_list.insert(behind, WakeListEntry { task, at });
        rq.ttwu_pending = true;
        self.refresh_idle(cpu);
    }

    /// `balance_fair()`: whether it looks for fair tasks elsewhere before anything is picked.
    pub(crate) fn balance_fair_looks(&self, cpu: CpuId, cx: &Context) -> bool {
        match cx.config.balance_fair {
            BalanceFair::NoFairTask => self.cfs[CfsRqId::root(cpu)].nr_queued == 0,
            BalanceFair::NoTask => self.rq[cpu].nr_running == 0,
            BalanceFair::InPick => false,
        }
    }

    /// Adds the signals of a CPU to the facts.
    #[inline(never)]
    pub(crate) fn cpu_signals_fact(&self, cpu: CpuId, cx: &mut Context) {
        let avg = &self.cfs[CfsRqId::root(cpu)].avg;
        cx.fact(FactKind::CpuSignals {
            util_avg: avg.util_avg as u32,
            runnable_avg: avg.runnable_avg as u32,
            util_est: avg.util_est,
        });
    }

    /// Adds the signals of a fair task to the facts.
    #[inline(never)]
    pub(crate) fn task_signals_fact(&self, task: TaskId, cx: &mut Context) {
        if !task.is_idle() && self.tasks[task].class == Class::Fair {
            let avg = &self.se[self.tasks[task].se].avg;
            cx.fact(FactKind::TaskSignals {
                task,
                util_avg: avg.util_avg.min(u16::MAX as u64) as u16,
                util_est: crate::sched::pelt::_task_util_est(avg).min(0xffff) as u16,
                runnable_avg: avg.runnable_avg as u32,
            });
        }
    }

    /// The entity of a task.
    #[inline(always)]
    pub(crate) fn se_of(&self, task: TaskId) -> EntityId {
        self.tasks[task].se
    }
}

impl Context {
    /// Whether the task that ran is put back before the next one is picked.
    #[inline(always)]
    pub(crate) fn puts_back_before_pick(&self) -> bool {
        self.config.put_prev == PutPrev::BeforePick
    }
}

impl Kernel {
    // ---- queueing -----------------------------------------------------------------------------

    /// `enqueue_task()`.
    pub(crate) fn enqueue_task(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        if flags & ENQUEUE_NOCLOCK == 0 {
            self.sched.update_rq_clock(cpu, &self.cx);
        }
        self.sched.uclamp_rq_inc_before(cpu, task, flags, &self.cx);
        match self.sched.tasks[task].class {
            Class::Fair => {
                self.enqueue_task_fair(cpu, task, flags);
                self.charge_enqueue_fair(task, flags & ENQUEUE_DELAYED != 0);
            }
            Class::Rt => self.enqueue_task_rt(cpu, task, flags),
            Class::Stop => self.sched.enqueue_task_stop(cpu),
            Class::Ext => self.enqueue_task_scx(cpu, task, flags),
            Class::Deadline => self.enqueue_task_dl(cpu, task, flags),
            Class::Idle => unreachable!("the idle task is not queued"),
        }
        self.sched.uclamp_rq_inc_after(cpu, task, flags, &self.cx);
    }

    /// `dequeue_task()`; `false`: the task is still queued, its dequeue is delayed.
    pub(crate) fn dequeue_task(&mut self, cpu: CpuId, task: TaskId, flags: u32) -> bool {
        if flags & DEQUEUE_NOCLOCK == 0 {
            self.sched.update_rq_clock(cpu, &self.cx);
        }
        self.sched.uclamp_rq_dec(cpu, task, &self.cx);
        match self.sched.tasks[task].class {
            Class::Fair => {
                let dequeued = self.dequeue_task_fair(cpu, task, flags);
                self.charge_dequeue_fair(task, !dequeued);
                dequeued
            }
            Class::Rt => self.dequeue_task_rt(cpu, task, flags),
            Class::Stop => self.sched.dequeue_task_stop(cpu),
            Class::Ext => self.dequeue_task_scx(cpu, task, flags),
            Class::Deadline => self.dequeue_task_dl(cpu, task, flags),
            Class::Idle => unreachable!("the idle task is not queued"),
        }
    }

    /// `activate_task()`.
    pub fn activate_task(&mut self, cpu: CpuId, task: TaskId, mut flags: u32) {
        if self.sched.tasks[task].on_rq == OnRq::Migrating {
            flags |= ENQUEUE_MIGRATED;
        }
        self.enqueue_task(cpu, task, flags);
        self.sched.tasks[task].on_rq = OnRq::Queued;
    }

    /// `deactivate_task()`: off the queue in order to move.
    pub fn deactivate_task(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        debug_assert!(flags & DEQUEUE_SLEEP == 0);
        self.sched.tasks[task].on_rq = OnRq::Migrating;
        self.dequeue_task(cpu, task, flags);
    }

    /// `block_task()`.
    #[inline(always)]
    fn block_task(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        if self.dequeue_task(cpu, task, DEQUEUE_SLEEP | flags) {
            self.sched.finish_block_task(task);
        }
    }

    /// `set_task_cpu()`.
    pub fn set_task_cpu(&mut self, task: TaskId, new_cpu: CpuId) {
        let from = self.sched.tasks[task].cpu;
        if from == new_cpu {
            return;
        }
        self.cx.fact(FactKind::Migrate { task, from, to: new_cpu });
        match self.sched.tasks[task].class {
            Class::Fair => {
                if self.sched.tasks[task].on_rq == OnRq::No {
                    // TASK_WAKING: nobody else moves a task that is not queued.
                    self.sched.sleeper_migrates(self.sched.tasks[task].se, &self.cx);
                }
                self.sched.migrate_task_rq_fair(task, &self.cx);
            }
            Class::Deadline if self.sched.tasks[task].on_rq == OnRq::No => {
                self.migrate_task_rq_dl(task);
                self.sched.set_task_rq_fair(task, new_cpu, &self.cx);
            }
            _ => self.sched.set_task_rq_fair(task, new_cpu, &self.cx),
        }
        self.sched.set_task_rq(task, new_cpu);
        self.sched.tasks[task].cpu = new_cpu;
    }

    // ---- waking -------------------------------------------------------------------------------

    /// `try_to_wake_up()`; whether the task was asleep.
    pub(crate) fn try_to_wake_up(
        &mut self,
        task: TaskId,
        wake_flags: u32,
        source: WakeSource,
    ) -> bool {
        let t = &self.sched.tasks[task];
        if matches!(t.state, TaskState::Running | TaskState::Dead) {
            return false;
        }
        let (prev_cpu, queued) = (t.cpu, t.on_rq == OnRq::Queued);
        let on_cpu = self.sched.is_under_way(task, &self.cx);
        self.cx.fact(FactKind::Waking { task, source, prev_cpu });
        self.sched.fetch(&mut self.cx, |lines, at| lines.task_is_woken(task, at));
        // It looks for a CPU first; most of the path's time is the activation's.
        let mut looks_at = self.cx.local_clock();
        let cost = self.cx.platform.device_tree.path_costs.wakeup;
        self.sched.charge(cost, &mut self.cx);
        if queued {
            self.ttwu_runnable(task, wake_flags);
            return true;
        }
        if on_cpu {
            if self.sched.ttwu_queue_wakelist(task, prev_cpu, true, &self.cx) {
                self.ttwu_queue(task, prev_cpu, false);
                return true;
            }
            self.sched.wait_for_other_cpu(task, &mut self.cx);
            looks_at = self.cx.local_clock();
        }
        let mut flags = wake_flags | WF_TTWU;
        let unseen = self.sched.has_unseen(looks_at);
        if unseen {
            self.sched.toggle_unseen(looks_at);
        }
        let cpu = self.select_task_rq(task, prev_cpu, flags);
        if unseen {
            self.sched.toggle_unseen(looks_at);
        }
        if cpu != prev_cpu {
            flags |= WF_MIGRATED;
            if self.sched.tasks[task].in_iowait {
                self.sched.rq[prev_cpu].nr_iowait -= 1;
            }
            self.set_task_cpu(task, cpu);
        }
        if self.sched.ttwu_queue_wakelist(task, cpu, false, &self.cx) {
            self.ttwu_queue(task, cpu, flags & WF_MIGRATED != 0);
        } else {
            let was_idle = self.sched.available_idle_cpu(cpu);
            let section = self.sched.lock_rq_for(cpu, task, &mut self.cx);
            self.sched.update_rq_clock(cpu, &self.cx);
            self.ttwu_do_activate(cpu, task, flags);
            if was_idle {
                self.sched.idle_changes(cpu, &self.cx);
            }
            self.sched.unlock_rq_after_wakeup(cpu, section, &mut self.cx);
        }
        true
    }

    /// `__ttwu_queue_wakelist()`.
    fn ttwu_queue(&mut self, task: TaskId, cpu: CpuId, migrated: bool) {
        self.sched.tasks[task].sched_remote_wakeup = migrated;
        self.sched.fetch(&mut self.cx, |lines, at| lines.wake_list_changes(cpu, at));
        if self.sched.available_idle_cpu(cpu) {
            self.sched.idle_changes(cpu, &self.cx);
        }
        self.sched.push_wake_list(cpu, task, &self.cx);
        self.sched.send_ipi(cpu, IpiKind::WakeList, &mut self.cpuidle, &mut self.cx);
    }

    /// `ttwu_runnable()`: the task never left its queue.
    fn ttwu_runnable(&mut self, task: TaskId, wake_flags: u32) {
        let cpu = self.sched.tasks[task].cpu;
        let se = self.sched.tasks[task].se;
        let running = self.sched.rq[cpu].curr == task;
        let section = self.sched.lock_rq_for(cpu, task, &mut self.cx);
        self.sched.update_rq_clock(cpu, &self.cx);
        if self.sched.se[se].sched_delayed {
            self.enqueue_task(cpu, task, ENQUEUE_NOCLOCK | ENQUEUE_DELAYED);
        }
        if !running {
            self.wakeup_preempt(cpu, task, wake_flags);
        }
        self.sched.ttwu_do_wakeup(task, &mut self.cx);
        self.sched.unlock_rq_after_wakeup(cpu, section, &mut self.cx);
    }

    /// `select_task_rq()`.
    #[inline(always)]
    fn select_task_rq(&mut self, task: TaskId, prev_cpu: CpuId, wake_flags: u32) -> CpuId {
        let t = &self.sched.tasks[task];
        let cpu = if t.nr_cpus_allowed > 1 {
            match t.class {
                Class::Fair => self.select_task_rq_fair(task, prev_cpu, wake_flags),
                Class::Rt => self.sched.select_task_rq_rt(task, prev_cpu, wake_flags, &self.cx),
                Class::Ext => self.select_task_rq_scx(task, prev_cpu, wake_flags),
                Class::Deadline => {
                    self.sched.select_task_rq_dl(task, prev_cpu, wake_flags, &mut self.cx)
                }
                _ => prev_cpu,
            }
        } else {
            t.cpus_mask.lowest().expect("a task is allowed somewhere")
        };
        let allowed = &self.sched.tasks[task].cpus_mask;
        if allowed.contains(cpu) {
            cpu
        } else {
            allowed.lowest().expect("a task is allowed somewhere")
        }
    }

    /// `sched_ttwu_pending()`: the wake list's interrupt has arrived.
    ///
    /// A waker's path may not have got to its later wakeups yet when the interrupt of its first one
    /// arrives: those stay on the list, and have an interrupt of their own.
    pub(crate) fn sched_ttwu_pending(&mut self, cpu: CpuId) {
        let now = self.cx.now;
        let arrived = self.sched.rq[cpu].wake_list.partition_point(|waiting| waiting.at <= now);
        if arrived > 0 {
            self.sched.fetch(&mut self.cx, |lines, at| lines.wake_list_changes(cpu, at));
            self.sched.update_rq_clock(cpu, &self.cx);
        }
        for index in 0..arrived {
            let task = self.sched.rq[cpu].wake_list[index].task;
            let section = self.sched.lock_rq_for(cpu, task, &mut self.cx);
            let flags = if self.sched.tasks[task].sched_remote_wakeup { WF_MIGRATED } else { 0 };
            self.ttwu_do_activate(cpu, task, flags);
            self.sched.unlock_rq_after_wakeup(cpu, section, &mut self.cx);
        }
        let rq = &mut self.sched.rq[cpu];
        rq.wake_list.drain(..arrived);
        rq.ttwu_pending = !rq.wake_list.is_empty();
        if let Some(at) = rq.wake_list.first().map(|next| next.at) {
            self.cx.wake_list_again(cpu, at);
        }
        self.sched.refresh_idle(cpu);
    }

    /// `ttwu_do_activate()`; the clock is up to date.
    fn ttwu_do_activate(&mut self, cpu: CpuId, task: TaskId, wake_flags: u32) {
        let mut en_flags = ENQUEUE_WAKEUP | ENQUEUE_NOCLOCK;
        if wake_flags & WF_MIGRATED != 0 {
            en_flags |= ENQUEUE_MIGRATED;
        } else if self.sched.tasks[task].in_iowait {
            self.sched.rq[cpu].nr_iowait -= 1;
        }
        self.activate_task(cpu, task, en_flags);
        self.wakeup_preempt(cpu, task, wake_flags);
        self.sched.ttwu_do_wakeup(task, &mut self.cx);
        self.task_woken(cpu, task);
        self.sched.idle_ends_by_wakeup(cpu, &self.cx);
    }

    /// `task_woken` of its class.
    #[inline(always)]
    fn task_woken(&mut self, cpu: CpuId, task: TaskId) {
        match self.sched.tasks[task].class {
            Class::Rt => self.task_woken_rt(cpu, task),
            Class::Deadline => self.task_woken_dl(cpu, task),
            Class::Ext => self.task_woken_scx(cpu),
            _ => {}
        }
    }

    // ---- switching ----------------------------------------------------------------------------

    /// `schedule()` on the executing CPU. `preempt`: the running task stays runnable whatever its state
    /// says. After a switch, `need_resched` is tested again: a push or pull of tasks may have set
    /// it. Each round leaves less to push, so the loop ends.
    pub(crate) fn schedule(&mut self, preempt: bool) {
        let cpu = self.cx.this_cpu;
        self.schedule_once(preempt);
        loop {
            while self.sched.rq[cpu].need_resched && !self.sched.rq[cpu].curr.is_idle() {
                self.schedule_once(true);
            }
            self.sched.cache_work_after_switch(cpu, &mut self.cx);
            if !self.throttle_work_after_switch(cpu) {
                break;
            }
        }
    }

    /// `__schedule()`.
    fn schedule_once(&mut self, preempt: bool) {
        let cpu = self.cx.this_cpu;
        self.rcu.note_context_switch(cpu);
        let prev = self.sched.rq[cpu].curr;
        let cost = self.cx.platform.device_tree.path_costs.schedule;
        self.sched.charge(cost, &mut self.cx);
        let section = self.sched.lock_rq(cpu, 0, &mut self.cx);
        if self.cx.config.features.hrtick {
            self.sched.hrtick_schedule_enter(cpu);
        }
        if self.sched.rq[cpu].skip_clock_update {
            self.sched.rq[cpu].skip_clock_update = false;
        } else {
            self.sched.update_rq_clock(cpu, &self.cx);
        }
        let prev_state = self.sched.tasks[prev].state;
        let blocks = !preempt && prev_state != TaskState::Running && !prev.is_idle();
        if blocks {
            let special = if prev_state == TaskState::Dead { DEQUEUE_SPECIAL } else { 0 };
            self.block_task(cpu, prev, DEQUEUE_NOCLOCK | special);
        }
        // schedule_idle(): the idle task that is left for nobody goes on, and balances nothing.
        let idle_for_nobody = prev.is_idle() && self.sched.rq[cpu].nr_running == 0;
        let next = if idle_for_nobody && !self.sched.scx_enabled() {
            prev
        } else {
            self.pick_next_task(cpu, prev)
        };
        (self.sched.rq[cpu].need_resched, self.sched.rq[cpu].need_resched_lazy) = (false, false);
        self.sched.rq[cpu].next_class = self.sched.tasks[next].class;
        self.cx.platform.dirty.insert(cpu);
        if next == prev {
            self.sched.unlock_rq_after_switch(cpu, section, None, &mut self.cx);
            self.switch_ends(cpu);
            return;
        }
        if self.sched.is_under_way(next, &self.cx) {
            self.sched.wait_for_other_cpu(next, &mut self.cx);
        }
        self.sched.rq[cpu].curr = next;
        self.sched.refresh_idle(cpu);
        let state = match (blocks, preempt && prev_state == TaskState::Running) {
            (true, _) => prev_state,
            (false, true) if !prev.is_idle() => TaskState::Preempted,
            _ => TaskState::Running,
        };
        if state == TaskState::Preempted {
            self.cx.fact(FactKind::Preempted { task: prev });
        }
        if self.sched.scx_enabled() {
            self.scx_trace_switch(preempt, prev, next, state);
        }
        let cost = self.cx.platform.device_tree.path_costs.context_switch;
        self.sched.charge(cost, &mut self.cx);
        self.charge_switch_fair(next);
        self.sched.unlock_rq_after_switch(cpu, section, Some(next), &mut self.cx);
        if blocks {
            self.sched.under_way(prev, &self.cx);
        }
        if next.is_idle() && self.sched.available_idle_cpu(cpu) {
            self.sched.idle_changes(cpu, &self.cx);
        }
        self.cx.fact(FactKind::Switch { prev, next, prev_state: state });
        if self.cx.want_signals {
            self.sched.cpu_signals_fact(cpu, &mut self.cx);
            self.sched.task_signals_fact(prev, &mut self.cx);
            self.sched.task_signals_fact(next, &mut self.cx);
        }
        self.cx.platform.wires[cpu].activity = match next.is_idle() {
            true => {
                if self.sched.scx_enabled() {
                    self.sched.scx_resched_idle(cpu);
                }
                Activity::IdleLoop
            }
            false => Activity::Task(next),
        };
        self.switch_ends(cpu);
        if blocks && prev_state == TaskState::Dead {
            // finish_task_switch()
            if self.sched.tasks[prev].class == Class::Fair {
                self.sched.task_dead_fair(prev, &self.cx);
            }
            if self.sched.scx_enabled() {
                self.scx_task_dead(prev);
            }
        }
    }

    /// `finish_lock_switch()`, also where there was nothing to switch.
    #[inline(always)]
    fn switch_ends(&mut self, cpu: CpuId) {
        self.balance_callbacks(cpu);
        if self.cx.config.features.hrtick {
            self.sched.hrtick_schedule_exit(cpu, &mut self.time, &mut self.cx);
        }
    }

    /// `balance_callbacks()`: what a switch to a task left over for afterwards.
    #[inline]
    pub(crate) fn balance_callbacks(&mut self, cpu: CpuId) {
        if std::mem::take(&mut self.sched.rq[cpu].push_pending) {
            if self.sched.scx_enabled() {
                self.scx_run_deferred(cpu);
            }
            // Only the class of the new task has asked for it.
            if self.sched.tasks[self.sched.rq[cpu].curr].class == Class::Deadline {
                self.push_dl_tasks(cpu);
            } else {
                self.push_rt_tasks(cpu);
            }
        }
    }

    /// `__pick_next_task()`, with `put_prev_set_next_task()`.
    fn pick_next_task(&mut self, cpu: CpuId, prev: TaskId) -> TaskId {
        let fair_only = self.sched.tasks[prev].class <= Class::Fair
            && self.sched.rq[cpu].nr_running == self.sched.cfs[CfsRqId::root(cpu)].h_nr_queued
            && !self.sched.scx_enabled();
        if fair_only {
            match self.pick_next_task_fair(cpu, prev) {
                fair::Pick::Task(next) => return next,
                fair::Pick::Nothing => {
                    self.sched.record_pick(cpu, TaskId::IDLE, PickRule::Idle, &mut self.cx);
                    self.put_prev_set_next_task(cpu, prev, TaskId::IDLE);
                    return TaskId::IDLE;
                }
                fair::Pick::Retry => {}
            }
        }
        self.prev_balance(cpu, prev);
        self.charge_before_pick(cpu, prev);
        // The balance pass may have brought or taken tasks, so ask again from the top.
        loop {
            if self.sched.rq[cpu].stop_queued {
                let stopper = self.sched.rq[cpu].stopper;
                self.sched.record_pick(cpu, stopper, PickRule::Stop, &mut self.cx);
                self.put_prev_set_next_task(cpu, prev, stopper);
                return stopper;
            }
            match self.sched.pick_next_dl_entity(cpu) {
                Some(DlNode::Task(next)) => {
                    self.sched.record_pick(cpu, next, PickRule::Deadline, &mut self.cx);
                    self.put_prev_set_next_task(cpu, prev, next);
                    return next;
                }
                Some(DlNode::FairServer) => match self.pick_task_of_server(cpu) {
                    Some(next) => {
                        self.put_prev_set_next_task(cpu, prev, next);
                        return next;
                    }
                    None => {
                        self.fair_server_stop(cpu);
                        continue;
                    }
                },
                None => {}
            }
            if let Some(next) = self.sched.pick_task_rt(cpu) {
                self.sched.record_pick(cpu, next, PickRule::Rt, &mut self.cx);
                self.put_prev_set_next_task(cpu, prev, next);
                return next;
            }
            let mut next = None;
            if !self.sched.scx_switched_all() {
                next = self.pick_task_fair(cpu);
                if next.is_none() && self.cx.config.balance_fair == BalanceFair::InPick {
                    self.sched_balance_newidle(cpu);
                    if self.sched.cfs[CfsRqId::root(cpu)].h_nr_queued != 0 {
                        continue;
                    }
                }
            }
            if next.is_none() && self.sched.scx_enabled() {
                next = self.pick_task_scx(cpu);
            }
            let next = next.unwrap_or_else(|| {
                self.sched.record_pick(cpu, TaskId::IDLE, PickRule::Idle, &mut self.cx);
                self.pick_task_idle(cpu);
                TaskId::IDLE
            });
            self.put_prev_set_next_task(cpu, prev, next);
            return next;
        }
    }

    /// `prev_balance()`: from prev's class down, until one says that something is runnable.
    fn prev_balance(&mut self, cpu: CpuId, prev: TaskId) {
        let prev_class = self.sched.tasks[prev].class;
        if self.sched.scx_enabled() {
            self.sched.scx_balance_begins(cpu);
        }
        if prev_class == Class::Stop && self.sched.rq[cpu].stop_queued {
            return;
        }
        if prev_class >= Class::Deadline && self.balance_dl(cpu, prev) {
            return;
        }
        if prev_class >= Class::Rt && self.balance_rt(cpu, prev) {
            return;
        }
        let fair = prev_class >= Class::Fair && !self.sched.scx_switched_all();
        if fair && self.sched.balance_fair_looks(cpu, &self.cx) {
            self.sched_balance_newidle(cpu);
        }
        if self.sched.scx_enabled() {
            let found = fair && self.sched.cfs[CfsRqId::root(cpu)].h_nr_queued != 0;
            self.balance_scx(cpu, prev, found);
        }
    }

    /// `server_pick_task` of the DEADLINE server.
    fn pick_task_of_server(&mut self, cpu: CpuId) -> Option<TaskId> {
        if self.sched.scx_has_server() { self.pick_task_scx(cpu) } else { self.pick_task_fair(cpu) }
    }

    /// `pick_task_idle()`.
    fn pick_task_idle(&mut self, cpu: CpuId) {
        if self.sched.scx_enabled() && self.sched.rq[cpu].curr.is_idle() {
            self.scx_update_idle(cpu, true, false);
        }
    }

    /// `put_prev_set_next_task()`.
    pub(crate) fn put_prev_set_next_task(&mut self, cpu: CpuId, prev: TaskId, next: TaskId) {
        if prev == next && !self.put_back_before_pick(cpu, prev) {
            return;
        }
        match self.sched.tasks[prev].class {
            Class::Fair => self.put_prev_task_fair(cpu, prev),
            Class::Rt => self.put_prev_task_rt(cpu, prev, next),
            Class::Stop => {}
            Class::Idle => self.put_prev_task_idle(cpu),
            Class::Ext => self.put_prev_task_scx(cpu, prev, Some(next)),
            Class::Deadline => self.put_prev_task_dl(cpu, prev),
        }
        match self.sched.tasks[next].class {
            Class::Fair => self.set_next_task_fair(cpu, next, true),
            Class::Rt => self.sched.set_next_task_rt(cpu, prev, next, true, &self.cx),
            Class::Stop => {}
            Class::Idle => self.set_next_task_idle(cpu),
            Class::Ext => self.set_next_task_scx(cpu, next),
            Class::Deadline => self.set_next_task_dl(cpu, prev, next, true),
        }
    }

    /// What putting back the task that ran does to the pick, where that comes first: it may be throttled.
    pub(crate) fn charge_before_pick(&mut self, cpu: CpuId, prev: TaskId) {
        if self.cx.puts_back_before_pick() {
            match self.sched.tasks[prev].class {
                Class::Rt => self.update_curr_rt(cpu),
                Class::Deadline => self.update_curr_dl(cpu),
                _ => {}
            }
        }
    }

    /// Whether a task that is picked again was put back for that, so that it looks again who else could be pushed. With a fair
    /// task this changes nothing, unless the pick has throttled its group.
    fn put_back_before_pick(&self, cpu: CpuId, prev: TaskId) -> bool {
        self.cx.puts_back_before_pick()
            && match self.sched.tasks[prev].class {
                Class::Rt | Class::Deadline => true,
                Class::Fair => self.was_put_back_by_pick(cpu, prev),
                Class::Stop | Class::Idle | Class::Ext => false,
            }
    }

    /// `task_tick` of the running task's class.
    pub(crate) fn task_tick(&mut self, cpu: CpuId, curr: TaskId) {
        match self.sched.tasks[curr].class {
            Class::Fair => self.task_tick_fair(cpu, curr),
            Class::Rt => self.task_tick_rt(cpu, curr),
            Class::Deadline => self.task_tick_dl(cpu),
            Class::Idle => self.task_tick_idle(cpu),
            Class::Ext => self.task_tick_scx(cpu, curr),
            Class::Stop => {}
        }
    }

    // ---- tasks --------------------------------------------------------------------------------

    /// `sched_fork()`: makes a task that has never run. `parent`'s policy, nice value, weight, slice,
    /// affinity and wakeup habits are inherited; without a parent the defaults.
    pub fn new_task(&mut self, parent: Option<TaskId>, kind: TaskKind) -> TaskId {
        self.new_task_of(parent, kind, ProcessId::default())
    }

    /// The same, as a thread of a process; a kernel thread has none.
    pub(crate) fn new_task_of(
        &mut self,
        parent: Option<TaskId>,
        kind: TaskKind,
        process: ProcessId,
    ) -> TaskId {
        self.sched.sched_cache_fork(kind, process, &self.cx);
        let id = TaskId(self.sched.tasks.len() as u32);
        let (policy, nice, prio, class, cpus_mask, cpu, slice, custom_slice) = match parent {
            Some(p) => {
                let t = &self.sched.tasks[p];
                let se = &self.sched.se[t.se];
                (t.policy, t.nice, t.prio, t.class, t.cpus_mask, t.cpu, se.slice, se.custom_slice)
            }
            None => {
                let all = self.cx.platform.device_tree.all_cpus();
                let class = self.scx_class_of(Policy::Normal);
                (Policy::Normal, 0, 120, class, all, CpuId(0), self.sched.base_slice, false)
            }
        };
        // A copy of the parent's also where its policy has another weight now (RT).
        let load = parent
            .map_or(fair::weight_of(policy, nice), |p| self.sched.se[self.sched.se_of(p)].load);
        let (last_wakee, wakee_flips, wakee_flip_decay_ts) =
            parent.map_or((TaskId::IDLE, 0, 0), |p| {
                let t = &self.sched.tasks[p];
                (t.last_wakee, t.wakee_flips, t.wakee_flip_decay_ts)
            });
        let se = self.sched.se.push(SchedEntity {
            avg: crate::sched::pelt::init_entity(Some(fair::scale_load_down(load.weight))),
            vruntime: 0,
            deadline: 0,
            vlag: 0,
            vprot: 0,
            slice,
            exec_start: 0,
            sum_exec_runtime: 0,
            prev_sum_exec_runtime: 0,
            load,
            timeline_load: None,
            on_rq: false,
            sched_delayed: false,
            custom_slice,
            rel_deadline: false,
            parent: None,
            depth: 0,
            cfs_rq: CfsRqId::root(cpu),
            my_q: None,
            runnable_weight: 0,
            task: id,
        });
        let max_allowed_capacity = self.cx.max_allowed_capacity(&cpus_mask);
        let [group, cgroup, autogroup] = self.sched.groups_of_child(parent);
        self.sched.tasks.push(Task {
            se,
            group,
            cgroup,
            autogroup,
            class,
            policy,
            nice,
            prio,
            cpu,
            recent_used_cpu: cpu,
            under_way_until: 0,
            nr_cpus_allowed: cpus_mask.weight(),
            cpus_mask,
            max_allowed_capacity,
            state: TaskState::Running,
            on_rq: OnRq::No,
            in_iowait: false,
            uclamp_req: parent.map_or_else(Default::default, |p| self.sched.tasks[p].uclamp_req),
            uclamp: parent.map_or_else(Default::default, |p| self.sched.uclamp_of_child(p)),
            last_wakee,
            wakee_flips,
            wakee_flip_decay_ts,
            sched_remote_wakeup: false,
            cfs_tasks_prev: None,
            cfs_tasks_next: None,
            rr_time_slice: self.cx.rr_time_slice(),
            dl: Default::default(),
            resume: None,
            outcome: Outcome::Started,
            futex: None,
            sleep_timer_on: None,
            kind,
            exiting: false,
            throttled: false,
            throttle_work: false,
            preempted_in_user: false,
        });
        self.sched.set_task_rq(id, cpu);
        self.sync.reserve(self.sched.tasks.len());
        if parent.is_some() && class == Class::Fair {
            self.forked(se);
        }
        if self.sched.scx_enabled() {
            self.scx_fork(id);
        }
        id
    }

    /// `wake_up_new_task()`: a forked task starts, by the executing CPU.
    #[inline(never)]
    pub(crate) fn wake_up_new_task(&mut self, task: TaskId) {
        let prev = self.sched.tasks[task].cpu;
        self.sched.tasks[task].recent_used_cpu = prev;
        let cpu = self.select_task_rq(task, prev, WF_FORK);
        // __set_task_cpu(): no migration of anything, the task has never been anywhere.
        self.sched.tasks[task].cpu = cpu;
        self.sched.set_task_rq(task, cpu);
        let section = self.sched.lock_rq_for(cpu, task, &mut self.cx);
        self.sched.update_rq_clock(cpu, &self.cx);
        self.sched.post_init_entity_util_avg(task, &self.cx);
        self.activate_task(cpu, task, ENQUEUE_NOCLOCK | ENQUEUE_INITIAL);
        self.sched.under_way(task, &self.cx);
        let group = self.sched.tasks[task].cgroup;
        if group != TaskGroupId::default() {
            self.cx.fact(FactKind::CgroupAttach { task, group });
        }
        self.cx.fact(FactKind::Wakeup { task, target: cpu, new: true });
        self.wakeup_preempt(cpu, task, WF_FORK);
        self.task_woken(cpu, task);
        self.sched.unlock_rq_after_wakeup(cpu, section, &mut self.cx);
    }

    /// `sched_exec()` of the running task: it goes on where a new task would begin.
    pub(crate) fn sched_exec(&mut self, task: TaskId) {
        let cpu = self.sched.tasks[task].cpu;
        let dest_cpu = match self.sched.tasks[task].class {
            Class::Fair => self.select_task_rq_fair(task, cpu, WF_EXEC),
            _ => cpu,
        };
        if dest_cpu != cpu {
            self.stop_one_cpu_nowait(cpu, StopWork::Migrate { task, dest_cpu, pending: false });
        }
    }

    /// `do_exit()` of the running task.
    pub(crate) fn do_exit(&mut self, task: TaskId) {
        self.sched.tasks[task].exiting = true;
        self.sched.sched_cache_exit(task);
        self.sched_autogroup_exit_task(task);
        self.sched.tasks[task].state = TaskState::Dead;
        self.cx.fact(FactKind::Exit { task });
        self.schedule(false);
    }
}

impl Context {
    /// Keeps the interrupt of `cpu`'s wake list pending, for a wakeup sent at `at`, later than this
    /// entry.
    pub(crate) fn wake_list_again(&mut self, cpu: CpuId, at: Ns) {
        let ipi_at = &mut self.platform.wires[cpu].ipi_at[IpiKind::WakeList as usize];
        *ipi_at = at.min(*ipi_at);
    }

    pub(crate) fn max_allowed_capacity(&self, mask: &CpuMask) -> u64 {
        mask.iter()
            .map(|c| self.platform.device_tree.cpus[c.index()].capacity as u64)
            .max()
            .unwrap_or(1024)
    }
}

use crate::sched::fair;
