// SPDX-License-Identifier: GPL-2.0-or-later
//! Wait queues: who sleeps on something, and who of them is woken.
//!
//! A waiter is *exclusive* or not. Exclusive ones stand at the end, in the order in which they came; the others
//! stand before them, latest first. A wakeup wakes all that are not exclusive and one that is.
//!
//! ```text
//! arrive:      a exclusive, b, c exclusive, d
//! one wakeup:  d, b, a           the next: c
//! ```
//!
//! Kernel: 6.12 kernel/sched/wait.c `__wake_up_common`, `prepare_to_wait`, `prepare_to_wait_exclusive`.
//! Differences: a woken waiter leaves the queue at once, also where Linux leaves that to the waiter (`poll`, TCP):
//! nobody can tell, because a waiter that is awake cannot be woken again. A wakeup's key (POLLIN, POLLOUT) is not
//! compared: a waiter that can do nothing yet sleeps again, as on Linux's queues without a key of their own.

use super::lock::{MutexId, SpinLock};
use crate::Kernel;
use crate::sched::core::WF_SYNC;
use schedtwin_types::{Syscall, TaskId, TaskState, WakeSource};
use std::collections::VecDeque;

/// A task on a wait queue.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: TaskId,
    exclusive: bool,
}

/// `struct wait_queue_head`.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitQueue {
    waiters: VecDeque<Waiter>,
    /// Held while waiters are woken.
    lock: SpinLock,
}

impl WaitQueue {
    /// `prepare_to_wait()`.
    pub fn add(&mut self, task: TaskId) {
        self.waiters.push_front(Waiter { task, exclusive: false });
    }

    /// `prepare_to_wait_exclusive()`.
    pub fn add_exclusive(&mut self, task: TaskId) {
        self.waiters.push_back(Waiter { task, exclusive: true });
    }

    /// Everybody who waits, for verification.
    pub fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.waiters.iter().map(|waiter| waiter.task)
    }
}

/// A system call that sleeps, and goes on when its task runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    /// The call.
    pub call: Syscall,
    /// Bytes that it has moved so far.
    pub done: u32,
    /// Whether it has slept on a wait queue, and not only on a lock.
    pub waited: bool,
}

/// The first action of a task when it runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// It goes on with a call.
    Call(Blocked),
    /// It was preempted under a mutex.
    Unlock(MutexId),
}

/// How a wakeup is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// `wake_up_interruptible_sync_poll()`: the waker is about to sleep.
    Sync,
    /// `wake_up_interruptible_poll()`.
    Plain,
}

impl Kernel {
    /// `__wake_up_common()` with one exclusive waiter.
    pub(super) fn wake_up(&mut self, queue: impl Fn(&mut Self) -> &mut WaitQueue, hint: Hint) {
        let flags = match hint {
            Hint::Sync => WF_SYNC,
            Hint::Plain => 0,
        };
        // Who wakes holds the queue's lock until the last waiter is on its way.
        let WaitQueue { waiters, lock } = queue(self);
        let (nobody, lock) = (waiters.is_empty(), *lock);
        self.sched.spin_for(lock, 0, &mut self.cx);
        if nobody {
            return;
        }
        while let Some(waiter) = queue(self).waiters.pop_front() {
            self.try_to_wake_up(waiter.task, flags, WakeSource::Task);
            if waiter.exclusive {
                break;
            }
        }
        queue(self).lock = self.cx.holds_spinlock();
    }

    /// The caller, which stands on a wait queue, sleeps. Woken, it goes on with its call.
    pub(super) fn block(&mut self, task: TaskId, blocked: Blocked) {
        self.sched.set_resume(task, Some(Resume::Call(Blocked { waited: true, ..blocked })));
        self.sched.set_task_state(task, TaskState::Interruptible);
        self.schedule(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusive_waiters_stand_behind_the_others() {
        let mut queue = WaitQueue::default();
        queue.add_exclusive(TaskId(1));
        queue.add(TaskId(2));
        queue.add_exclusive(TaskId(3));
        queue.add(TaskId(4));
        let order: Vec<u32> = queue.waiting().map(|task| task.0).collect();
        assert_eq!(order, [4, 2, 1, 3]);
    }
}
