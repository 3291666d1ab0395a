// SPDX-License-Identifier: GPL-2.0-or-later
//! What the core asks of the class: enqueue, dequeue, pick, switches, idle CPUs, kicks.

use super::{DISPATCH_MAX, ExtClass, From, Insertion, Place, local};
use schedtwin_engine::policy::steps::{Op, Step, Verdict};
use schedtwin_engine::policy::{
    SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_ON, SCX_ENQ_HEAD, SCX_ENQ_LAST, SCX_ENQ_MIGRATING,
    SCX_KICK_PREEMPT, SCX_SLICE_DFL,
};
use schedtwin_types::{CpuId, CpuMask, TaskId};

impl ExtClass {
    /// Callbacks of a task's and the scheduler's life come when the core says.
    pub(super) fn life(&mut self, op: Op, step: Step) {
        match op {
            Op::Enable { task } => {
                // Tasks that come while the scheduler is loaded begin with a slice.
                let (bypass, slice) = (self.bypass, self.default_slice());
                let task = self.task(task);
                assert!(!task.queued && !task.running, "ext class: enabled while it is queued");
                task.enabled = true;
                if bypass {
                    task.slice = slice;
                }
            }
            Op::Disable { task } | Op::ExitTask { task } => {
                let task = self.task(task);
                assert!(!task.running, "ext class: disabled while it runs");
                task.enabled = false;
            }
            Op::InitTask { .. } | Op::Changed { .. } | Op::Timer { .. } | Op::Init => {}
            Op::Exit => self.ended = true,
            Op::CpuRelease { cpu, .. } => {
                let was = std::mem::replace(&mut self.cpus[cpu.index()].released, true);
                assert!(!was, "ext class: cpu{} is released twice", cpu.0);
            }
            _ => self.part("no callback by itself", &step),
        }
        self.calls(From::Other, step);
        if let Op::Disable { task } = op {
            let t = self.task(task);
            (t.slice, t.vtime) = (0, 0);
            // A task that changes its class while it runs goes on there.
            for cpu in &mut self.cpus {
                cpu.curr = cpu.curr.filter(|curr| *curr != task);
            }
        }
    }

    pub(super) fn select(
        &mut self,
        this: CpuId,
        task: TaskId,
        prev: CpuId,
        wake_flags: u64,
        cpus: CpuMask,
    ) {
        self.task(task).cpus = cpus;
        if self.bypass {
            return self.select_in_bypass(this, task, prev);
        }
        let cpu = self.op(Op::SelectCpu { task, prev, wake_flags }, From::Enqueue(task));
        let known = u16::try_from(cpu).ok().map(CpuId).filter(|cpu| self.shape.all.contains(*cpu));
        match known {
            Some(cpu) => self.expect(Step::Selected { task, cpu }),
            None => self.fails(),
        }
    }

    pub(super) fn enqueue(&mut self, cpu: CpuId, task: TaskId, enq_flags: u64, runs: bool) {
        if enq_flags & SCX_ENQ_MIGRATING == 0 {
            self.op(Op::Runnable { task, enq_flags }, From::Other);
        }
        if runs {
            // It stays where it is, and is taken out again as it goes on.
            self.insert(task, cpu, local(cpu), None, None, enq_flags);
        } else {
            self.hand_over(task, enq_flags);
        }
    }

    /// A runnable task goes into a queue, directly or by the scheduler.
    pub(super) fn hand_over(&mut self, task: TaskId, enq_flags: u64) {
        if self.bypass {
            return self.enqueue_in_bypass(task, enq_flags);
        }
        if self.task(task).direct.is_none() {
            let t = self.task(task);
            if t.exiting && !self.enq_exiting {
                let cpu = self.task(task).cpu;
                return self.insert(task, cpu, local(cpu), Some(SCX_SLICE_DFL), None, enq_flags);
            }
            let t = self.task(task);
            t.handed_over += 1;
            let nth = t.handed_over;
            self.op(Op::Enqueue { task, enq_flags }, From::Enqueue(task));
            if self.ended {
                return;
            }
            if self.task(task).direct.is_none() {
                let t = self.task(task);
                t.place = Place::Scheduler(nth);
                t.custody = true;
                return;
            }
        }
        let asked = self.task(task).direct.take().expect("one of the two");
        let cpu = self.task(task).cpu;
        let flags = asked.flags | enq_flags;
        let elsewhere =
            asked.dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON && asked.dsq_id != local(cpu);
        if elsewhere {
            self.task(task).place = Place::Deferred;
            self.cpus[cpu.index()].deferred.push((task, Insertion { flags, ..asked }));
            return;
        }
        let dsq_id = if asked.dsq_id == SCX_DSQ_LOCAL { local(cpu) } else { asked.dsq_id };
        self.insert(task, cpu, dsq_id, Some(asked.slice), asked.vtime, flags);
    }

    pub(super) fn dequeue(&mut self, cpu: CpuId, task: TaskId, deq_flags: u64, migrating: bool) {
        let old = self.old;
        let t = self.task(task);
        if !t.queued {
            return;
        }
        let held = if old { matches!(t.place, Place::Scheduler(_)) } else { t.custody };
        t.custody = false;
        let place = t.place;
        if held {
            self.op(Op::Dequeue { task, deq_flags }, From::Other);
        }
        match place {
            Place::Queue(dsq_id) => self.unlink(task, dsq_id),
            Place::Deferred => {
                for cpu in &mut self.cpus {
                    cpu.deferred.retain(|(deferred, _)| *deferred != task);
                }
            }
            _ => {}
        }
        self.task(task).place = Place::Nowhere;
        self.charged();
        if self.cpus[cpu.index()].curr == Some(task) && self.task(task).running {
            self.task(task).running = false;
            self.op(Op::Stopping { task, runnable: false }, From::Other);
        }
        if !migrating {
            self.op(Op::Quiescent { task, deq_flags }, From::Other);
        }
        let t = self.task(task);
        (t.queued, t.direct) = (false, None);
    }

    pub(super) fn pick(&mut self, cpu: CpuId, prev: TaskId, prev_is_ext: bool) {
        self.charged();
        self.cpus[cpu.index()].in_dispatch = true;
        let verdict = self.find(cpu, prev_is_ext.then_some(prev));
        self.cpus[cpu.index()].in_dispatch = false;
        self.expect(Step::Picked { cpu, verdict });
        let next = match verdict {
            _ if self.ended => return,
            Verdict::Prev => prev,
            Verdict::Local => self.queues[&local(cpu)].tasks[0],
            Verdict::None => return,
        };
        // 6.12 picks later.
        if !self.old && self.task(next).slice == 0 {
            self.expect(Step::Refilled { task: next });
            self.refill(next);
        }
    }

    pub(super) fn refill(&mut self, task: TaskId) {
        let default = self.default_slice();
        let slice = &mut self.task(task).slice;
        if *slice == 0 {
            *slice = default;
        }
    }

    pub(super) fn find(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Verdict {
        if std::mem::take(&mut self.cpus[cpu.index()].released) {
            self.op(Op::CpuAcquire { cpu }, From::Other);
            self.charged();
        }
        if !self.bypass && self.goes_on(prev) {
            return Verdict::Prev;
        }
        if !self.queues[&local(cpu)].tasks.is_empty() {
            return Verdict::Local;
        }
        if self.consume(cpu, self.global(cpu), 0) {
            return Verdict::Local;
        }
        if self.bypass {
            return self.find_in_bypass(cpu, prev);
        }
        for _ in 0..DISPATCH_MAX {
            self.moved = 0;
            self.op(Op::Dispatch { cpu, prev }, From::Dispatch(cpu));
            self.flush(cpu);
            if self.ended {
                return Verdict::None;
            }
            self.charged();
            if self.goes_on(prev) {
                return Verdict::Prev;
            }
            if !self.queues[&local(cpu)].tasks.is_empty() || self.consume(cpu, self.global(cpu), 0)
            {
                return Verdict::Local;
            }
            if self.moved == 0 {
                break;
            }
        }
        if self.moved != 0 {
            self.cpus[cpu.index()].kicks.entry(cpu.0.into()).or_default();
        }
        match prev {
            Some(prev) if self.task(prev).queued && !self.enq_last => Verdict::Prev,
            _ => Verdict::None,
        }
    }

    pub(super) fn goes_on(&mut self, prev: Option<TaskId>) -> bool {
        prev.is_some_and(|prev| {
            let prev = self.task(prev);
            prev.queued && prev.slice > 0
        })
    }

    pub(super) fn put_prev(&mut self, cpu: CpuId, task: TaskId, next_is_idle: bool, goes_on: bool) {
        self.charged();
        if self.task(task).queued {
            self.op(Op::Stopping { task, runnable: true }, From::Other);
        }
        self.task(task).running = false;
        if self.task(task).queued {
            self.put_runnable(cpu, task, next_is_idle);
        }
        if !goes_on {
            self.cpus[cpu.index()].curr = None;
        }
    }

    pub(super) fn put_runnable(&mut self, cpu: CpuId, task: TaskId, next_is_idle: bool) {
        self.waits(task);
        if self.task(task).slice > 0 && !self.bypass {
            self.insert(task, cpu, local(cpu), None, None, SCX_ENQ_HEAD);
        } else {
            self.hand_over(task, if next_is_idle { SCX_ENQ_LAST } else { 0 });
        }
    }

    pub(super) fn set_next(&mut self, cpu: CpuId, task: TaskId) {
        let place = self.task(task).place;
        match place {
            Place::Queue(dsq_id) => {
                assert_eq!(dsq_id, local(cpu), "ext class: {task:?} runs out of another queue");
                self.unlink(task, dsq_id);
            }
            Place::Nowhere => {}
            _ => panic!("ext class: {task:?} runs while it is {place:?}"),
        }
        let t = self.task(task);
        assert!(
            t.displaced || t.cpus.contains(cpu),
            "ext class: {task:?} runs on cpu{} that it may not use",
            cpu.0
        );
        (t.place, t.cpu, t.running) = (Place::Nowhere, cpu, true);
        let queued = t.queued;
        self.cpus[cpu.index()].curr = Some(task);
        if queued {
            self.op(Op::Running { task }, From::Other);
        }
    }

    pub(super) fn update_idle(&mut self, cpu: CpuId, idle: bool, notify: bool) {
        let owed = &mut self.cpus[cpu.index()].owes_idle;
        let due = notify || idle && *owed;
        *owed &= !due;
        let notify = due && !self.bypass;
        if self.old && notify {
            self.op(Op::UpdateIdle { cpu, idle }, From::Other);
        }
        self.idle.set_idle(&self.shape, cpu, idle);
        if !self.old && notify {
            self.op(Op::UpdateIdle { cpu, idle }, From::Other);
        }
    }

    pub(super) fn deferred(&mut self, cpu: CpuId) {
        let all = std::mem::take(&mut self.cpus[cpu.index()].deferred);
        for (task, asked) in all {
            self.goes_to_local_on(task, asked);
        }
    }

    /// Into the local queue of a CPU that is named, with the task's move to it.
    pub(super) fn goes_to_local_on(&mut self, task: TaskId, asked: Insertion) {
        let to = CpuId((asked.dsq_id & 0xffff) as u16);
        let t = self.task(task);
        if !t.cpus.contains(to) {
            self.fails();
            return;
        }
        if t.cpu != to {
            t.cpu = to;
            self.waits(task);
            self.expect(Step::Moved { task, to });
        }
        self.insert(task, to, local(to), Some(asked.slice), None, asked.flags);
    }

    pub(super) fn kicks(&mut self, cpu: CpuId) {
        for (target, flags) in std::mem::take(&mut self.cpus[cpu.index()].kicks) {
            let curr = self.cpus[target as usize].curr;
            if flags & SCX_KICK_PREEMPT != 0
                && let Some(curr) = curr
            {
                self.task(curr).slice = 0;
            }
        }
    }
}
