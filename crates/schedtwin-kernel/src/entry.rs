// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's entries: boot, interrupts, system calls, idle.
//!
//! Each begins with the time and the CPU, and ends with that CPU's wires saying what it does next.

use crate::hardware::{NewTask, SyscallEffect, UserReturn};
use crate::sched::{Class, TaskKind};
use crate::sync::wait::{Blocked, Resume};
use crate::{Context, Kernel};
use schedtwin_types::{
    CpuId, CpuMask, DecisionRecord, Errno, Fact, FactKind, FutexId, IpiKind, IrqLine, IrqLines,
    Mode, NEVER, Ns, Outcome, PolicyMask, Syscall, TaskId, WakeSource,
};

impl Kernel {
    /// Interrupts arrive at a CPU that runs a task or the idle loop. `mode`: of the work they interrupt.
    pub fn interrupt(&mut self, cpu: CpuId, now: Ns, lines: IrqLines, mode: Mode) {
        self.cx.begin(cpu, now, true);
        self.handle_interrupts(lines, mode);
        self.cx.end();
    }

    /// Interrupts, or a write to the flag that it watches, have woken a CPU from its idle state.
    pub fn idle_exit(&mut self, cpu: CpuId, now: Ns, lines: IrqLines) {
        self.idle_ends(cpu, now, lines, Kernel::cpuidle_exit);
    }

    /// Silicon or firmware has refused the idle state that a CPU asked for: it never slept, and takes the
    /// interrupts that wait.
    pub fn idle_refused(&mut self, cpu: CpuId, now: Ns, lines: IrqLines) {
        self.idle_ends(cpu, now, lines, Kernel::cpuidle_refused);
    }

    /// A CPU is no longer in the idle state that it asked for, which `tell` notes.
    #[inline(always)]
    fn idle_ends(&mut self, cpu: CpuId, now: Ns, lines: IrqLines, tell: impl FnOnce(&mut Kernel)) {
        let interrupts = self.cpuidle.take_writes(cpu, lines, &mut self.cx);
        self.cx.begin(cpu, now, !interrupts.is_empty());
        tell(self);
        if interrupts.is_empty() {
            self.idle_after_write();
        } else {
            self.handle_interrupts(interrupts, Mode::Kernel);
        }
        self.cx.end();
    }

    /// The polling state's loop has ended: due at the time of [`Activity::Poll`](crate::Activity::Poll).
    pub fn poll_end(&mut self, cpu: CpuId, now: Ns) {
        self.cx.begin(cpu, now, false);
        self.idle_after_poll();
        self.cx.end();
    }

    fn handle_interrupts(&mut self, lines: IrqLines, mode: Mode) {
        let cpu = self.cx.this_cpu;
        self.account_iowait(cpu);
        self.cx.fact(FactKind::IrqEntry { lines });
        let cost = self.cx.platform.device_tree.path_costs.interrupt;
        self.sched.charge(cost, &mut self.cx);
        self.rcu.interrupted(mode);
        let arrived = self.sync.arrived_in_section(cpu, lines, &self.cx);
        let clock_event = IrqLines::of(IrqLine::ClockEvent);
        if lines != clock_event {
            let ipi_at = &mut self.cx.platform.wires[cpu].ipi_at;
            for kind in IpiKind::ALL {
                if lines.contains(IrqLine::ipi(kind)) {
                    ipi_at[kind as usize] = NEVER;
                }
            }
        }
        self.handle_clock_events(lines);
        if lines != clock_event {
            self.handle_ipis(cpu, lines);
        }
        self.add_interrupt_randomness(cpu, lines);
        if self.softirqs.is_pending(cpu) {
            self.do_softirq(cpu);
        } else if self.sched.take_sched_softirq(cpu) {
            self.sched_balance_softirq(cpu);
        }
        let spent_ns = self.cx.debt.min(u32::MAX as u64) as u32;
        self.cx.fact(FactKind::IrqExit { spent_ns });
        self.sched.account_irq_time(&mut self.cx);
        self.cx.in_irq = false;
        if self.sched.rq(cpu).curr.is_idle() {
            self.idle_after_interrupt();
        } else if self.sched.rq(cpu).need_resched && self.cx.preemptible(mode) {
            if let Some(arrived) = arrived
                && self.cx.config.preempt.preempts_kernel_mode()
            {
                self.sync.mutex_preempt(cpu, arrived, &mut self.sched);
            }
            self.sched.cache_work_is_preempted(self.sched.rq(cpu).curr, mode);
            self.sched.preempted_in(self.sched.rq(cpu).curr, mode);
            self.schedule(true);
        } else if mode == Mode::User && self.sched.rq(cpu).need_resched_lazy {
            self.sched.cache_work_is_preempted(self.sched.rq(cpu).curr, mode);
            self.sched.preempted_in(self.sched.rq(cpu).curr, mode);
            self.schedule(true);
        } else if mode == Mode::User {
            self.do_task_work(cpu);
        }
        if self.cx.config.features.hrtick {
            self.time.hrtimer_rearm_deferred(cpu, &mut self.cx);
        }
    }

    /// `task_work_run()` of a task that an interrupt has met in user space.
    #[inline(always)]
    fn do_task_work(&mut self, cpu: CpuId) {
        let curr = self.sched.rq(cpu).curr;
        if self.sched.has_cache_work(curr) {
            self.sched.task_cache_work(cpu, curr, &mut self.cx);
        }
        if self.sched.has_throttle_work(curr) {
            self.do_throttle_work(cpu, true);
        }
    }

    /// The idle task runs its loop: due when `Activity::IdleLoop` has paid its debt.
    pub fn idle_enter(&mut self, cpu: CpuId, now: Ns) {
        self.cx.begin(cpu, now, false);
        self.do_idle();
        self.cx.end();
    }

    /// A reschedule has been left over: the running task gives way.
    fn preempt_point(&mut self, cpu: CpuId, now: Ns) {
        self.cx.begin(cpu, now, false);
        if self.sched.must_give_way_to_user(cpu) {
            self.schedule(true);
        }
        self.cx.end();
    }

    /// A kernel thread runs. Returns until when it spins, waiting for hardware, before the entry is due again; 0: it does
    /// not.
    pub fn kthread(&mut self, cpu: CpuId, now: Ns) -> Ns {
        self.cx.begin(cpu, now, false);
        let busy_until = self.run_kthread(cpu);
        self.cx.end();
        busy_until
    }

    /// The running task has paid what its CPU owed, and is about to go on with its program: gives way if it must, and
    /// looks again at a call that blocked.
    #[inline(always)]
    pub fn return_to_user(&mut self, cpu: CpuId, now: Ns) -> UserReturn {
        let task = self.sched.rq(cpu).curr;
        if self.sched.rq(cpu).need_resched {
            self.preempt_point(cpu, now);
        } else if let Some(resume) = self.sched.take_resume(task) {
            self.resume(cpu, now, task, resume);
        } else if self.sched.rq(cpu).need_resched_lazy {
            // Not before: a call that goes on is kernel mode.
            self.preempt_point(cpu, now);
        } else if self.sched.has_cache_work(task) || self.sched.has_throttle_work(task) {
            self.cx.begin(cpu, now, false);
            if self.sched.has_cache_work(task) {
                self.sched.task_cache_work(cpu, task, &mut self.cx);
            }
            self.do_throttle_work(cpu, false);
            self.cx.end();
            if self.cx.debt == 0 && self.sched.rq(cpu).curr == task {
                return UserReturn::ToUser(self.sched.task(task).outcome);
            }
        } else {
            return UserReturn::ToUser(self.sched.task(task).outcome);
        }
        UserReturn::InKernel
    }

    /// A call that slept goes on, or ends after a preemption. Its entry has been paid for.
    fn resume(&mut self, cpu: CpuId, now: Ns, task: TaskId, resume: Resume) {
        self.cx.begin(cpu, now, false);
        self.cx.debt = 1;
        match resume {
            Resume::Call(blocked) => self.resume_call(task, blocked),
            Resume::Unlock(lock) => self.mutex_unlock_late(lock),
        }
        self.end_call(cpu, task);
    }

    fn resume_call(&mut self, task: TaskId, blocked: Blocked) {
        let Blocked { call, done, waited } = blocked;
        match call {
            Syscall::PipeWrite { pipe, bytes } => {
                self.pipe_write(task, pipe, bytes, waited.then_some(done));
            }
            Syscall::PipeRead { pipe, bytes } => self.pipe_read(task, pipe, bytes, waited),
            Syscall::Send { socket, bytes } => self.send(task, socket, bytes, done),
            Syscall::Recv { socket, bytes } => self.recv(task, socket, bytes, waited),
            Syscall::Poll { file } => self.poll(task, file),
            Syscall::BlockIo { .. } => self.block_io_resumes(task, blocked),
            call => unreachable!("{call:?} does not go on after a sleep"),
        }
    }

    /// The running task enters the kernel. How the call ended [`Kernel::return_to_user`] tells once the task runs again.
    pub fn syscall(&mut self, cpu: CpuId, now: Ns, call: Syscall) -> SyscallEffect {
        self.cx.begin(cpu, now, false);
        let task = self.sched.rq(cpu).curr;
        // A call takes time whatever the machine says.
        let cost = self.cx.platform.device_tree.path_costs.syscall;
        self.sched.charge(cost, &mut self.cx);
        self.cx.debt = self.cx.debt.max(1);
        self.sched.set_outcome(task, Outcome::Done);
        let mut effect = SyscallEffect::default();
        match call {
            Syscall::Nanosleep { duration } => {
                let until = self.cx.local_clock().saturating_add(duration);
                self.nanosleep_until(task, until);
            }
            Syscall::NanosleepUntil { until } => self.nanosleep_until(task, until),
            Syscall::FutexWait { futex } => self.futex_wait(task, futex),
            Syscall::FutexWake { futex, count } => {
                let woken = self.futex_wake(futex, count, WakeSource::Task);
                self.sched.set_outcome(task, Outcome::Value(woken as u64));
            }
            Syscall::SchedYield => {
                match self.sched.task(task).class {
                    Class::Fair => self.yield_task_fair(cpu),
                    Class::Rt => self.sched.yield_task_rt(cpu),
                    Class::Deadline => self.yield_task_dl(cpu),
                    Class::Ext => self.yield_task_scx(cpu),
                    _ => {}
                }
                self.schedule(false);
            }
            Syscall::SchedSetattr(attr) => {
                let before = self.sched.task(task).prio;
                if let Err(errno) = self.sched_setattr(task, attr) {
                    self.sched.set_outcome(task, Outcome::Failed(errno));
                }
                effect.new_prio = Some(self.sched.task(task).prio).filter(|prio| *prio != before);
            }
            Syscall::SchedSetaffinity { mask } => {
                if let Err(errno) = self.sched_setaffinity(task, mask) {
                    self.sched.set_outcome(task, Outcome::Failed(errno));
                }
            }
            Syscall::CgroupAttach { group } => self.cpu_cgroup_attach(task, group),
            Syscall::Setsid { session } => self.sched_autogroup_create_attach(task, session),
            // sched_fork()
            Syscall::Clone { .. } if self.sched.task(task).class == Class::Deadline => {
                self.sched.set_outcome(task, Outcome::Failed(Errno::Again));
            }
            Syscall::Clone { thread, process } => {
                let cost = self.cx.platform.device_tree.path_costs.fork;
                self.sched.charge(cost, &mut self.cx);
                let new = self.new_task_of(Some(task), TaskKind::User, process);
                self.wake_up_new_task(new);
                self.sched.set_outcome(task, Outcome::Value(new.0 as u64));
                let prio = self.sched.task(new).prio;
                effect.child = Some(NewTask { task: new, thread, prio });
            }
            Syscall::Execve => self.sched_exec(task),
            Syscall::PipeWrite { pipe, bytes } => self.pipe_write(task, pipe, bytes, None),
            Syscall::PipeRead { pipe, bytes } => self.pipe_read(task, pipe, bytes, false),
            Syscall::Socketpair { first, second, kind, sndbuf } => {
                self.sync.socketpair(first, second, kind, sndbuf);
            }
            Syscall::Send { socket, bytes } => self.send(task, socket, bytes, 0),
            Syscall::Recv { socket, bytes } => self.recv(task, socket, bytes, false),
            Syscall::Poll { file } => self.poll(task, file),
            Syscall::BlockIo { device, op, bytes } => self.block_io(task, device, op, bytes),
            Syscall::Write { copied } => self.write_cached(task, copied),
            Syscall::Getcpu => self.sched.set_outcome(task, Outcome::Value(u64::from(cpu.0))),
        }
        self.end_call(cpu, task);
        effect
    }

    #[inline(always)]
    fn end_call(&mut self, cpu: CpuId, task: TaskId) {
        if self.sched.must_give_way_to_user(cpu) && self.sched.rq(cpu).curr == task {
            self.schedule(true);
        }
        self.cx.end();
    }

    /// The running task ends.
    pub fn exit(&mut self, cpu: CpuId, now: Ns) {
        self.cx.begin(cpu, now, false);
        let cost = self.cx.platform.device_tree.path_costs.exit;
        self.sched.charge(cost, &mut self.cx);
        let task = self.sched.rq(cpu).curr;
        self.rcu_exit();
        self.do_exit(task);
        self.cx.end();
    }

    // ---- what the twin reads ------------------------------------------------------------------

    /// CPUs whose wires may have changed since the last call.
    #[inline]
    pub fn take_dirty(&mut self) -> CpuMask {
        std::mem::replace(&mut self.cx.platform.dirty, CpuMask::EMPTY)
    }

    /// Whether [`Kernel::take_dirty_policies`] or [`Kernel::take_wishing_policies`] have something to tell: mostly they
    /// have not.
    #[inline]
    pub fn has_dirty_policies(&self) -> bool {
        self.cpufreq.is_dirty()
    }

    /// Policies whose governor has decided for a frequency since the last call, and has yet to ask the driver.
    #[inline]
    pub fn take_wishing_policies(&mut self) -> PolicyMask {
        self.cpufreq.take_wishing()
    }

    /// Policies whose frequency was set since the last call.
    #[inline]
    pub fn take_dirty_policies(&mut self) -> PolicyMask {
        self.cpufreq.take_dirty()
    }

    /// The facts since they were cleared.
    #[inline]
    pub fn facts(&self) -> &[Fact] {
        &self.cx.facts
    }

    /// The entry was executed by no CPU of its own: each of its facts waits until the path that its CPU
    /// is in is over.
    pub fn facts_wait(&mut self, path_over: impl Fn(CpuId) -> Ns) {
        for fact in &mut self.cx.facts {
            fact.at = fact.at.max(path_over(fact.cpu));
        }
    }

    /// Clears the facts.
    #[inline]
    pub fn clear_facts(&mut self) {
        self.cx.facts.clear();
    }

    /// The decisions since the last call.
    pub fn take_decisions(&mut self) -> Vec<DecisionRecord> {
        std::mem::take(&mut self.cx.decisions)
    }

    /// As [`Kernel::take_decisions`], one by one; the list keeps its capacity.
    pub fn drain_decisions(&mut self) -> impl Iterator<Item = DecisionRecord> + '_ {
        self.cx.decisions.drain(..)
    }
}

impl Context {
    #[inline]
    fn begin(&mut self, cpu: CpuId, now: Ns, in_irq: bool) {
        self.begin_on_no_cpu(now);
        self.this_cpu = cpu;
        self.in_irq = in_irq;
        self.platform.dirty.insert(cpu);
    }

    /// An entry that no CPU executes (see [`Kernel::facts_wait`]): nobody pays for it.
    #[inline]
    pub(crate) fn begin_on_no_cpu(&mut self, now: Ns) {
        debug_assert!(now >= self.now, "time goes forward");
        self.now = now;
        self.in_irq = false;
        self.debt = 0;
    }

    /// The entry ends: what it has cost is to be paid.
    #[inline]
    fn end(&mut self) {
        self.platform.wires[self.this_cpu].debt = self.debt;
    }

    /// The handler of a device will wake a waiter of `futex` in the next entry that has
    /// [`IrqLine::Peripheral`] among its lines.
    pub(crate) fn peripheral(&mut self, futex: FutexId) {
        self.platform.peripheral_wakes.push(futex);
    }

    /// Whether an interrupt's exit may preempt work of this mode.
    fn preemptible(&self, mode: Mode) -> bool {
        mode == Mode::User || self.config.preempt.preempts_kernel_mode()
    }
}
