// SPDX-License-Identifier: GPL-2.0-or-later
//! Futexes: wait queues of user memory.
//!
//! Waiters of real-time tasks come first, by priority; all others behind them. Within one priority, and
//! among those others, who came first is woken first.
//!
//! ```text
//! arrive:  a nice 0, b fifo 5, c nice −5, d fifo 50, e fifo 5
//! woken:   d, b, e, a, c
//! ```
//!
//! Kernel: 6.12.95 kernel/futex/core.c `__futex_queue`, waitwake.c `futex_wake`.
//! Differences: a queue per futex, not per hash bucket. The comparison of the futex word happens in the
//! workload, at the instant of the call. A waiter's priority is that at its call, as there.

use crate::Kernel;
use crate::coherence::LastWriter;
use schedtwin_types::{FutexId, Outcome, TaskId, TaskState, WakeSource};

/// `MAX_RT_PRIO`: the priority of everybody who is not a real-time task.
const MAX_RT_PRIO: i32 = 100;

/// All wait queues: ends by futex, links by task.
#[derive(Clone, Debug, Default)]
pub struct Futexes {
    /// Per futex: first and last waiter.
    queues: Vec<Option<(TaskId, TaskId)>>,
    /// Per futex: the last writer of its lines.
    lines: Vec<LastWriter>,
    /// Per task: the waiter behind it, and its own priority.
    waiters: Vec<(Option<TaskId>, i32)>,
}

impl Futexes {
    /// Makes space for `count` tasks.
    pub(crate) fn reserve(&mut self, count: usize) {
        if self.waiters.len() < count {
            self.waiters.resize(count, (None, MAX_RT_PRIO));
        }
    }

    /// Queues a waiter behind all whose priority is as good (`plist_add`).
    fn wait(&mut self, futex: FutexId, task: TaskId, prio: i32) {
        let index = futex.0 as usize;
        if self.queues.len() <= index {
            self.queues.resize(index + 1, None);
        }
        self.waiters[task.index()] = (None, prio);
        let Some((first, last)) = self.queues[index] else {
            self.queues[index] = Some((task, task));
            return;
        };
        if self.waiters[last.index()].1 <= prio {
            self.waiters[last.index()].0 = Some(task);
            self.queues[index] = Some((first, task));
            return;
        }
        // Somebody worse waits: the last one at least.
        let mut behind = None;
        let mut at = first;
        while self.waiters[at.index()].1 <= prio {
            behind = Some(at);
            at = self.waiters[at.index()].0.expect("the last waiter is worse");
        }
        self.waiters[task.index()].0 = Some(at);
        match behind {
            Some(before) => self.waiters[before.index()].0 = Some(task),
            None => self.queues[index] = Some((task, last)),
        }
    }

    /// Takes the first waiter.
    fn take(&mut self, futex: FutexId) -> Option<TaskId> {
        let queue = self.queues.get_mut(futex.0 as usize)?;
        let (first, last) = (*queue)?;
        *queue = if first == last {
            None
        } else {
            Some((self.waiters[first.index()].0.expect("a linked waiter"), last))
        };
        Some(first)
    }

    /// Everybody who waits, for verification.
    pub(crate) fn waiting(&self) -> Vec<TaskId> {
        let mut all = Vec::new();
        for &(first, last) in self.queues.iter().flatten() {
            let mut at = first;
            all.push(at);
            while at != last {
                at = self.waiters[at.index()].0.expect("a linked waiter");
                all.push(at);
            }
        }
        all
    }
}

impl Kernel {
    /// `futex(FUTEX_WAIT)`: the caller sleeps.
    #[inline(never)]
    pub(crate) fn futex_wait(&mut self, task: TaskId, futex: FutexId) {
        let prio = self.sched.task(task).prio.min(MAX_RT_PRIO);
        self.futex_lines(futex);
        self.sync.futexes.wait(futex, task, prio);
        self.sched.set_task_state(task, TaskState::Interruptible);
        self.sched.set_outcome(task, Outcome::Done);
        self.schedule(false);
    }

    /// The caller waits for the futex's lines.
    #[inline(always)]
    fn futex_lines(&mut self, futex: FutexId) {
        if self.cx.has_coherence() {
            let lines = &mut self.sync.futexes.lines;
            if lines.len() <= futex.0 as usize {
                lines.resize(futex.0 as usize + 1, LastWriter::default());
            }
            let wait = self.cx.take_lines(&mut lines[futex.0 as usize], |count| count.futex);
            self.sched.owe(wait, &mut self.cx);
        }
    }

    /// `futex(FUTEX_WAKE)`; how many were woken. A device's handler wakes by `source` Kernel, through a wait queue
    /// of its own in Linux.
    #[inline(never)]
    pub(crate) fn futex_wake(&mut self, futex: FutexId, count: u32, source: WakeSource) -> u32 {
        let mut woken = 0;
        self.futex_lines(futex);
        while woken < count {
            let Some(task) = self.sync.futexes.take(futex) else { break };
            self.try_to_wake_up(task, 0, source);
            woken += 1;
        }
        woken
    }
}
