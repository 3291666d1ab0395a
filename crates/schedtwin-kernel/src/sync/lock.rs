// SPDX-License-Identifier: GPL-2.0-or-later
//! Locks of pipes and sockets: who waits for whom, and whether it spins or sleeps.
//!
//! A **spinlock** costs a caller that finds it taken the time until it is free. Spinners take it in
//! the order in which they came
//! (queued spinlocks).
//!
//! A **mutex** is tried first. A caller that finds it taken looks at the owner:
//!
//! 1. The owner is on a CPU: the caller spins. Spinners stand in a queue of their own (OSQ) and get the mutex in the
//!    order in which they came.
//! 2. The owner was preempted: the caller sleeps uninterruptibly, behind those who sleep already.
//! 3. Who unlocks wakes the first sleeper, without the synchronous hint. That one has to try again; meanwhile others may
//!    take the mutex.
//! 4. A sleeper that was woken and finds it taken again asks for a handoff: the next to unlock makes it the owner, and
//!    until it runs nobody else gets in.
//!
//! ```text
//! CPU 0   a  [lock ....... unlock]
//! CPU 1   b       spins ..........[lock ....... unlock]
//! CPU 2   c            spins ...................[lock ....... unlock]
//!
//! CPU 0   a  [lock ... tick, preempted ........................ unlock, wakes b]
//! CPU 1   b                    sleeps (D) ..................................... [lock ...
//! ```
//!
//! **How a call that happens at one instant holds a lock.** What a call costs is the CPU's debt. The section under the lock
//! is the last part of the debt so far; a call that would begin its section before the lock is free first waits
//! as long as that takes. So locks change hands in the order of the entries.
//!
//! **A preempted owner.** Interrupts that arrive within a call are delivered at its end. If one of them arrived
//! within the section, and the kernel may be preempted there, the task that it preempts is still the owner, and
//! unlocks when it runs again.
//!
//! Kernel: 6.12 kernel/locking/mutex.c `__mutex_lock_common`, `mutex_optimistic_spin`, `__mutex_unlock_slowpath`;
//! kernel/locking/osq_lock.c; kernel/locking/qspinlock.c.
//! Differences: what a call does under the lock is seen by others from the call's beginning on. Who spins goes on
//! spinning to the end also if its CPU is to reschedule, or the owner is preempted meanwhile. Memory that moves between
//! caches with a lock is part of the section's cost, and counted where the machine says what a line costs (`coherence.rs`).

use super::wait::{Blocked, Resume};
use crate::coherence::LastWriter;
use crate::{Context, Kernel, Scheduler, SyncObjects};
use schedtwin_types::{
    CpuId, IpiKind, IrqLine, IrqLines, Ns, PipeId, SocketId, TaskId, TaskState, WakeSource,
};
use std::collections::VecDeque;

/// A spinlock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpinLock {
    /// When the last of those who have it or spin for it lets go.
    pub free_at: Ns,
    /// The CPU that does.
    pub holder: LastWriter,
}

/// A mutex.
#[derive(Clone, Debug, Default)]
pub(super) struct Mutex {
    /// Those who have it or spin for it.
    spinning: SpinLock,
    /// The task that holds it without being on a CPU.
    owner: Option<TaskId>,
    /// `wait_list`: who sleeps, first come first served.
    waiters: VecDeque<TaskId>,
    /// The first of them has been woken, and has not tried since.
    woken: bool,
    /// `MUTEX_FLAG_HANDOFF`.
    handoff: bool,
}

/// Which mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MutexId {
    /// `pipe->mutex`.
    Pipe(PipeId),
    /// `u->iolock` of a socket's end.
    Socket(SocketId),
}

/// The last section of a CPU under a mutex.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    task: TaskId,
    lock: MutexId,
    from: Ns,
    until: Ns,
}

impl Mutex {
    /// Everybody who sleeps on it, for verification.
    pub fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.waiters.iter().skip(usize::from(self.woken)).copied()
    }
}

impl Kernel {
    /// The last `hold` ns of the path were under `lock`, which may have to be waited for first.
    pub(super) fn spin_locked(&mut self, lock: impl Fn(&mut Self) -> &mut SpinLock, hold: Ns) {
        if hold > 0 {
            let taken = *lock(self);
            self.sched.spin_for(taken, hold, &mut self.cx);
            *lock(self) = self.cx.holds_spinlock();
        }
    }

    /// `mutex_lock()` as far as it may sleep; whether the caller has the mutex, or is on the way to it. If not, it sleeps
    /// and goes on with `blocked`.
    pub(super) fn mutex_lock(&mut self, task: TaskId, id: MutexId, blocked: Blocked) -> bool {
        let mutex = self.sync.mutex(id);
        if mutex.owner.is_none_or(|owner| owner == task) {
            if mutex.waiters.front() == Some(&task) {
                mutex.waiters.pop_front();
                (mutex.woken, mutex.handoff) = (false, false);
            }
            mutex.owner = None;
            return true;
        }
        if mutex.waiters.front() == Some(&task) {
            (mutex.woken, mutex.handoff) = (false, true);
        } else {
            mutex.waiters.push_back(task);
        }
        self.sched.set_resume(task, Some(Resume::Call(blocked)));
        self.sched.set_task_state(task, TaskState::Uninterruptible);
        self.schedule(false);
        false
    }

    /// `mutex_unlock()`: the last `hold` ns of the path were under the mutex, which may have to be waited for first.
    pub(super) fn mutex_unlock(&mut self, id: MutexId, hold: Ns) {
        if hold > 0 && !self.cx.platform.device_tree.path_costs.one_at_a_time {
            let taken = self.sync.mutex(id).spinning;
            self.sched.spin_for(taken, hold, &mut self.cx);
            let until = self.cx.local_clock();
            let task = self.sched.rq(self.cx.this_cpu).curr;
            self.sync.sections[self.cx.this_cpu] =
                Some(Section { task, lock: id, from: until - hold, until });
            self.sync.mutex(id).spinning = self.cx.holds_spinlock();
        }
        self.mutex_wake(id);
    }

    /// `__mutex_unlock_slowpath()`.
    fn mutex_wake(&mut self, id: MutexId) {
        let mutex = self.sync.mutex(id);
        let Some(&first) = mutex.waiters.front() else { return };
        if std::mem::take(&mut mutex.handoff) {
            mutex.owner = Some(first);
        }
        if !std::mem::replace(&mut mutex.woken, true) {
            self.try_to_wake_up(first, 0, WakeSource::Task);
        }
    }

    /// A task that was preempted under a mutex runs on, and unlocks.
    pub(crate) fn mutex_unlock_late(&mut self, id: MutexId) {
        let at = self.cx.local_clock();
        let mutex = self.sync.mutex(id);
        mutex.owner = None;
        mutex.spinning.free_at = mutex.spinning.free_at.max(at);
        self.mutex_wake(id);
    }
}

impl Scheduler {
    /// Spins until `lock` is free, if the last `hold` ns of the path lie before that.
    pub(super) fn spin_for(&mut self, lock: SpinLock, hold: Ns, cx: &mut Context) {
        if !cx.platform.device_tree.path_costs.one_at_a_time {
            let wait = lock.free_at.saturating_sub(cx.local_clock() - hold.min(cx.debt));
            if wait > 0 {
                self.owe(wait + cx.handover(lock.holder), cx);
            }
        }
    }
}

impl Context {
    /// A spinlock that the executing CPU has had until now.
    pub(super) fn holds_spinlock(&self) -> SpinLock {
        SpinLock { free_at: self.local_clock(), holder: self.as_writer() }
    }
}

impl SyncObjects {
    /// An interrupt is going to preempt the running task: `arrived` is when it did. Within a section under a mutex
    /// the task takes the mutex along.
    #[inline(never)]
    pub(crate) fn mutex_preempt(&mut self, cpu: CpuId, arrived: Ns, sched: &mut Scheduler) {
        let Some(Section { task, lock, from, until }) = self.sections[cpu] else { return };
        // After the section the call may have slept, and somebody else been switched to.
        let same = sched.rq(cpu).curr == task && sched.task(task).resume.is_none();
        if !same || !(from..until).contains(&arrived) {
            return;
        }
        let mutex = self.mutex(lock);
        if mutex.owner.is_none() {
            mutex.owner = Some(task);
            sched.set_resume(task, Some(Resume::Unlock(lock)));
        }
    }

    /// When the earliest of these interrupts arrived, if the CPU has been in a section under a mutex; else never.
    #[inline]
    pub(crate) fn arrived_in_section(
        &self,
        cpu: CpuId,
        lines: IrqLines,
        cx: &Context,
    ) -> Option<Ns> {
        self.sections[cpu].as_ref()?;
        let wires = &cx.platform.wires[cpu];
        let ipis = IpiKind::ALL
            .into_iter()
            .filter(|kind| lines.contains(IrqLine::ipi(*kind)))
            .map(|kind| wires.ipi_at[kind as usize]);
        let timer = lines.contains(IrqLine::ClockEvent).then_some(wires.clock_event_at);
        ipis.chain(timer).min()
    }

    fn mutex(&mut self, id: MutexId) -> &mut Mutex {
        match id {
            MutexId::Pipe(pipe) => self.pipes.mutex(pipe),
            MutexId::Socket(socket) => &mut self.sockets.get(socket).iolock,
        }
    }
}
