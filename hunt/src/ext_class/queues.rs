// SPDX-License-Identifier: GPL-2.0-or-later
//! Dispatch queues: into them, out of them, and what `dispatch` has buffered.

use super::bypass::is_bypass;
use super::{BUILT_IN, ExtClass, Insertion, Place, local};
use schedtwin_engine::policy::steps::{Op, Step};
use schedtwin_engine::policy::{
    SCX_DSQ_GLOBAL, SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_ON, SCX_ENQ_HEAD, SCX_ENQ_PREEMPT,
};
use schedtwin_types::{CpuId, TaskId};

impl ExtClass {
    pub(super) fn unlink(&mut self, task: TaskId, dsq_id: u64) {
        let queue = self.queues.get_mut(&dsq_id).expect("it waits there");
        let before = queue.tasks.len();
        queue.tasks.retain(|queued| *queued != task);
        assert_eq!(queue.tasks.len() + 1, before, "ext class: {task:?} is not in {dsq_id:#x}");
    }

    /// `slice`: one that comes with the insertion; 0: the task keeps what it has, one nanosecond at least.
    pub(super) fn insert(
        &mut self,
        task: TaskId,
        cpu: CpuId,
        dsq_id: u64,
        slice: Option<u64>,
        vtime: Option<u64>,
        flags: u64,
    ) {
        let dsq_id = if dsq_id == SCX_DSQ_GLOBAL { self.global(cpu) } else { dsq_id };
        let built_in = dsq_id & BUILT_IN != 0;
        if !self.queues.contains_key(&dsq_id) || built_in && vtime.is_some() {
            self.fails();
            return;
        }
        let old = self.old;
        let t = self.task(task);
        // 6.12 sets both at the call.
        if let Some(slice) = slice.filter(|_| !old) {
            t.slice = if slice == 0 { t.slice.max(1) } else { slice };
        }
        if let Some(vtime) = vtime.filter(|_| !old) {
            t.vtime = vtime;
        }
        let was_held = t.custody;
        (t.place, t.custody) = (Place::Queue(dsq_id), !built_in);
        let slice = t.slice;
        let at_head = flags & (SCX_ENQ_HEAD | SCX_ENQ_PREEMPT) != 0 && vtime.is_none();
        let queue = &self.queues[&dsq_id];
        if !queue.tasks.is_empty() && queue.by_vtime != vtime.is_some() {
            self.fails();
            return;
        }
        let at = match vtime {
            Some(vtime) => {
                let later =
                    |other: &TaskId| (self.tasks[other].vtime.wrapping_sub(vtime) as i64) > 0;
                queue.tasks.iter().position(later).unwrap_or(queue.tasks.len())
            }
            None if at_head => 0,
            None => queue.tasks.len(),
        };
        let queue = self.queues.get_mut(&dsq_id).expect("seen above");
        queue.by_vtime = vtime.is_some();
        queue.tasks.insert(at, task);
        let is_global =
            built_in && dsq_id & SCX_DSQ_LOCAL_ON != SCX_DSQ_LOCAL_ON && !is_bypass(dsq_id);
        let named = if is_global { SCX_DSQ_GLOBAL } else { dsq_id };
        self.expect(Step::Inserted { task, dsq_id: named, slice, at_head });
        let in_dispatch = self.cpus[cpu.index()].in_dispatch && !self.old;
        if dsq_id == local(cpu) && flags & SCX_ENQ_PREEMPT != 0 && !in_dispatch {
            let curr = self.cpus[cpu.index()].curr;
            if let Some(curr) = curr.filter(|curr| *curr != task) {
                self.task(curr).slice = 0;
            }
        }
        if was_held && built_in && !self.old {
            self.owe(Op::Dequeue { task, deq_flags: 0 });
        }
    }

    pub(super) fn consume(&mut self, cpu: CpuId, dsq_id: u64, flags: u64) -> bool {
        if self.leaves && !self.old && !is_bypass(dsq_id) {
            return false;
        }
        let may = |task: &&TaskId| {
            let task = &self.tasks[task];
            task.cpu == cpu || task.cpus.contains(cpu)
        };
        let Some(task) = self.queues[&dsq_id].tasks.iter().find(may).copied() else { return false };
        self.unlink(task, dsq_id);
        if self.task(task).cpu != cpu {
            self.task(task).cpu = cpu;
            self.waits(task);
            self.expect(Step::Moved { task, to: cpu });
        }
        self.insert(task, cpu, local(cpu), None, None, flags);
        true
    }

    /// What `dispatch` has asked for so far is done.
    pub(super) fn flush(&mut self, cpu: CpuId) {
        for (task, nth, asked) in std::mem::take(&mut self.buffer) {
            self.moved += 1;
            if self.task(task).place != Place::Scheduler(nth) || self.ended {
                continue;
            }
            if asked.dsq_id == SCX_DSQ_LOCAL {
                self.goes_to_local_on(task, Insertion { dsq_id: local(cpu), ..asked });
            } else if asked.dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON {
                self.goes_to_local_on(task, asked);
            } else {
                let at = self.task(task).cpu;
                self.insert(task, at, asked.dsq_id, Some(asked.slice), asked.vtime, asked.flags);
            }
        }
    }
}
