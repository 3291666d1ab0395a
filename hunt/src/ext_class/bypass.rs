// SPDX-License-Identifier: GPL-2.0-or-later
//! Bypass: while the scheduler comes and goes, tasks run in turn without it.
//!
//! At its beginning and at its end each CPU's waiting tasks are dequeued and enqueued again, the one that has waited for the
//! shortest time first. Between the two a runnable task goes into the bypass queue of its CPU (6.12: the global queue).

use super::{ExtClass, local};
use schedtwin_engine::policy::steps::{Call, Step, Verdict};
use schedtwin_engine::policy::{SCX_DSQ_BYPASS, SCX_SLICE_DFL};
use schedtwin_types::{CpuId, TaskId};

/// What a task gets in 7.3's bypass.
const SHORT_SLICE: u64 = 5_000_000;

/// The ID of a CPU's bypass queue.
pub(super) fn bypass(cpu: CpuId) -> u64 {
    SCX_DSQ_BYPASS | u64::from(cpu.0) << 8
}

/// Whether it is one of them.
pub(super) fn is_bypass(dsq_id: u64) -> bool {
    dsq_id >> 62 == 2 && dsq_id & 0xff == SCX_DSQ_BYPASS & 0xff
}

impl ExtClass {
    /// It begins or ends.
    pub(super) fn set_bypass(&mut self, on: bool) {
        self.bypass = on;
        for cpu in 0..self.cpus.len() {
            let cpu = CpuId(cpu as u16);
            self.cpus[cpu.index()].owes_idle |= !on && !self.old;
            let of_cpu = |task: &TaskId| {
                let task = &self.tasks[task];
                task.cpu == cpu && task.queued && !task.running
            };
            let mut waiting: Vec<TaskId> = self.tasks.keys().copied().filter(of_cpu).collect();
            waiting.sort_by_key(|task| self.tasks[task].waits_since);
            for task in waiting.into_iter().rev() {
                let out = self.next();
                match out {
                    _ if self.ended => return,
                    Step::Dequeue { cpu: of, task: got, .. } if (of, got) == (cpu, task) => {}
                    other => self.part(&format!("{task:?} of {cpu:?} taken out"), &other),
                }
                self.begin(out);
                let back = self.next();
                match back {
                    _ if self.ended => return,
                    Step::Enqueue { cpu: of, task: got, .. } if (of, got) == (cpu, task) => {}
                    other => self.part(&format!("{task:?} of {cpu:?} put back"), &other),
                }
                self.begin(back);
            }
        }
    }

    /// The slice of a task that gets none from the scheduler.
    pub(super) fn default_slice(&self) -> u64 {
        if self.bypass && !self.old { SHORT_SLICE } else { SCX_SLICE_DFL }
    }

    /// A task becomes runnable in it.
    pub(super) fn enqueue_in_bypass(&mut self, task: TaskId, enq_flags: u64) {
        let slice = self.default_slice();
        let t = self.task(task);
        (t.slice, t.direct) = (slice, None);
        let cpu = t.cpu;
        let dsq_id = if self.old { self.global(cpu) } else { bypass(cpu) };
        self.insert(task, cpu, dsq_id, None, None, enq_flags);
    }

    /// The CPU of a wakeup in it.
    pub(super) fn select_in_bypass(&mut self, this: CpuId, task: TaskId, prev: CpuId) {
        let mut cpu = prev;
        if self.old {
            let asked = self.next();
            let Step::Call(call @ Call::SelectDfl { .. }) = asked else {
                self.part("the default selection", &asked);
            };
            let returned = self.call(call, this, super::From::Other).expect("it is followed");
            self.expect(Step::CallEnds { returned });
            cpu = CpuId((returned & 0xffff) as u16);
        }
        self.expect(Step::Selected { task, cpu });
    }

    /// Looks for a task in it.
    pub(super) fn find_in_bypass(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Verdict {
        if !self.old && self.consume(cpu, bypass(cpu), 0) {
            debug_assert!(!self.queues[&local(cpu)].tasks.is_empty());
            return Verdict::Local;
        }
        match prev {
            Some(prev) if self.task(prev).queued => Verdict::Prev,
            _ => Verdict::None,
        }
    }
}
