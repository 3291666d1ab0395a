//! Futexes: wait queues of user memory.
//!
//! Kernel: 6.12.95 kernel/futex/waitwake.c.
//! Differences: waiters are woken in order of arrival, as with equal priorities; the kernel orders
//! waiters of RT tasks by priority (`plist`). The comparison of the futex word happens in the workload, at
//! the instant of the call.

use crate::Kernel;
use schedtwin_types::{FutexId, Outcome, TaskId, TaskState, WakeSource};

/// All wait queues: heads by futex, links by task.
#[derive(Clone, Debug, Default)]
pub struct Futexes {
    /// Per futex: first and last waiter.
    queues: Vec<Option<(TaskId, TaskId)>>,
    /// Per task: the waiter behind it.
    next: Vec<Option<TaskId>>,
}

impl Futexes {
    /// Room for `count` tasks.
    pub(crate) fn make_room(&mut self, count: usize) {
        if self.next.len() < count {
            self.next.resize(count, None);
        }
    }

    /// Queues a waiter, last.
    fn wait(&mut self, futex: FutexId, task: TaskId) {
        let index = futex.0 as usize;
        if self.queues.len() <= index {
            self.queues.resize(index + 1, None);
        }
        self.next[task.index()] = None;
        match &mut self.queues[index] {
            Some((_, last)) => {
                self.next[last.index()] = Some(task);
                *last = task;
            }
            empty => *empty = Some((task, task)),
        }
    }

    /// Takes the first waiter.
    fn take(&mut self, futex: FutexId) -> Option<TaskId> {
        let queue = self.queues.get_mut(futex.0 as usize)?;
        let (first, last) = (*queue)?;
        *queue = if first == last {
            None
        } else {
            Some((self.next[first.index()].expect("a linked waiter"), last))
        };
        Some(first)
    }
}

impl Kernel {
    /// `futex(FUTEX_WAIT)`: the caller sleeps.
    pub(crate) fn futex_wait(&mut self, task: TaskId, futex: FutexId) {
        self.futexes.wait(futex, task);
        self.tasks[task].state = TaskState::Interruptible;
        self.tasks[task].outcome = Outcome::Done;
        self.schedule(false);
    }

    /// `futex(FUTEX_WAKE)`; how many were woken.
    pub(crate) fn futex_wake(&mut self, futex: FutexId, count: u32) -> u32 {
        let mut woken = 0;
        while woken < count {
            let Some(task) = self.futexes.take(futex) else { break };
            self.try_to_wake_up(task, 0, WakeSource::Task);
            woken += 1;
        }
        woken
    }
}
