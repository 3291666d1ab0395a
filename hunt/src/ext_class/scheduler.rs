// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler: its callbacks, and the functions that they call.

use super::idle::Question;
use super::{ExtClass, From, Insertion, Place, local};
use schedtwin_engine::policy::SCX_DSQ_LOCAL_ON;
use schedtwin_engine::policy::steps::{Call, Op, Step};
use schedtwin_types::{CpuId, CpuMask, TaskId};

impl ExtClass {
    /// A callback that is due, at once or after the one that runs: a scheduler is not called within its own call.
    pub(super) fn owe(&mut self, op: Op) {
        if self.depth > 0 {
            self.owed.push(op);
        } else {
            self.op(op, From::Other);
        }
    }

    pub(super) fn op(&mut self, op: Op, from: From) -> i32 {
        if self.ended {
            return 0;
        }
        let got = self.next();
        match got {
            Step::Op { op: called, .. } if called == op => self.calls(from, got),
            _ if self.ended => 0,
            _ => self.part(&format!("{op:?}"), &got),
        }
    }

    /// The functions that a callback calls, until it ends.
    pub(super) fn calls(&mut self, from: From, begun: Step) -> i32 {
        let Step::Op { this, .. } = begun else { unreachable!("a callback") };
        self.depth += 1;
        let returned = loop {
            match self.next() {
                Step::OpEnds { returned } => break returned,
                Step::Call(call) => {
                    let returned = self.call(call, this, from);
                    if self.ended {
                        break 0;
                    }
                    match returned {
                        Some(returned) => self.expect(Step::CallEnds { returned }),
                        None => match self.next() {
                            Step::CallEnds { .. } => {}
                            other => self.part("the end of a function", &other),
                        },
                    }
                }
                _ if self.ended => break 0,
                other => self.part("a function or the callback's end", &other),
            }
        };
        self.depth -= 1;
        if self.depth == 0 {
            for op in std::mem::take(&mut self.owed) {
                self.op(op, From::Other);
            }
        }
        returned
    }

    /// One function: what it returns; `None`: that is not followed.
    pub(super) fn call(&mut self, call: Call, this: CpuId, from: From) -> Option<i64> {
        let returned = match call {
            Call::CreateDsq { dsq_id } => {
                let known = self.queues.contains_key(&dsq_id);
                self.queues.entry(dsq_id).or_default();
                if known { -17 } else { 0 }
            }
            Call::Insert { task, dsq_id, slice, vtime, enq_flags } => {
                let asked = Insertion { dsq_id, slice, vtime, flags: enq_flags };
                self.ask(task, asked, from).into()
            }
            Call::MoveToLocal { dsq_id, enq_flags } => {
                let From::Dispatch(cpu) = from else { return None };
                self.flush(cpu);
                if !self.queues.contains_key(&dsq_id) {
                    self.fails();
                    return None;
                }
                let found = self.consume(cpu, dsq_id, enq_flags);
                self.moved += u32::from(found);
                found.into()
            }
            Call::Move { task, from: of, dsq_id, slice, vtime, priq, enq_flags } => {
                if self.task(task).place == Place::Queue(of) && !self.leaves {
                    let t = self.task(task);
                    (t.slice, t.vtime) = (slice.unwrap_or(t.slice), vtime.unwrap_or(t.vtime));
                    let vtime = priq.then_some(t.vtime);
                    self.move_out(task, of, dsq_id, vtime, enq_flags);
                    1
                } else {
                    0
                }
            }
            Call::IterFirst { dsq_id, rev } => {
                let tasks = &self.queues.get(&dsq_id)?.tasks;
                let end = if rev { tasks.last() } else { tasks.first() };
                end.map_or(-1, |task| i64::from(task.0))
            }
            Call::SelectDfl { task, prev, wake_flags, cursor } => {
                let cpus = self.task(task).cpus;
                self.idle.cursors[this.index()] = cursor.index();
                let found = self.ask_idle(this, prev, wake_flags, &cpus, 0);
                i64::from(found.unwrap_or(prev).0) | i64::from(found.is_some()) << 32
            }
            Call::SelectAnd { task, prev, wake_flags, mask, flags, cursor } => {
                self.idle.cursors[this.index()] = cursor.index();
                let cpus = self.task(task).cpus.and(&mask);
                let found = self.ask_idle(this, prev, wake_flags, &cpus, flags);
                found.map_or(-1, |cpu| cpu.0.into())
            }
            Call::Kick { cpu, flags } => {
                if !u16::try_from(cpu).is_ok_and(|cpu| self.shape.all.contains(CpuId(cpu))) {
                    self.fails();
                    return None;
                }
                if !self.bypass {
                    *self.cpus[this.index()].kicks.entry(cpu).or_default() |= flags;
                }
                0
            }
            Call::SetSlice { task, slice } => {
                self.task(task).slice = slice;
                1
            }
            Call::SetVtime { task, vtime } => {
                self.task(task).vtime = vtime;
                1
            }
            Call::Other => return None,
        };
        Some(returned)
    }

    pub(super) fn ask_idle(
        &mut self,
        this: CpuId,
        prev: CpuId,
        wake_flags: u64,
        allowed: &CpuMask,
        flags: u64,
    ) -> Option<CpuId> {
        let local_is_empty = self.queues[&local(this)].tasks.is_empty();
        let q = Question {
            this,
            prev,
            wake_flags,
            allowed,
            flags,
            local_is_empty,
            waker_exits: false,
            old: self.old,
        };
        self.idle.select(&self.shape, &q)
    }

    /// `scx_bpf_dsq_insert()`.
    pub(super) fn ask(&mut self, task: TaskId, asked: Insertion, from: From) -> bool {
        if self.old {
            let t = self.task(task);
            t.slice = if asked.slice == 0 { t.slice.max(1) } else { asked.slice };
            t.vtime = asked.vtime.unwrap_or(t.vtime);
        }
        match from {
            From::Enqueue(own) => {
                if task != own || self.task(task).direct.is_some() {
                    self.fails();
                    return false;
                }
                self.task(task).direct = Some(asked);
            }
            From::Dispatch(_) => {
                if self.buffer.len() >= self.batch {
                    self.fails();
                    return false;
                }
                let nth = self.task(task).handed_over;
                self.buffer.push((task, nth, asked));
            }
            From::Other => {
                self.fails();
                return false;
            }
        }
        true
    }

    /// `scx_bpf_dsq_move()` of a task that waits in `of`.
    pub(super) fn move_out(
        &mut self,
        task: TaskId,
        of: u64,
        dsq_id: u64,
        vtime: Option<u64>,
        flags: u64,
    ) {
        self.unlink(task, of);
        let mut cpu = self.task(task).cpu;
        if dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON {
            let to = CpuId((dsq_id & 0xffff) as u16);
            if !self.task(task).cpus.contains(to) {
                return self.fails();
            }
            if cpu != to {
                self.task(task).cpu = to;
                self.waits(task);
                self.expect(Step::Moved { task, to });
            }
            cpu = to;
        }
        self.insert(task, cpu, dsq_id, None, vtime, flags);
    }
}
