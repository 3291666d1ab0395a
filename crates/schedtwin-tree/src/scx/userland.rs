// SPDX-License-Identifier: GPL-2.0-or-later
//! The program of scx_userland: the tasks that its BPF side has queued, in the order of virtual time, a batch at a time.
//!
//! 1. All that is in the map `enqueued` goes into a list. A task's virtual time grows by what it has run since, times 100 over its
//!    weight, and is at least that of the task dispatched last. It stands before others of the same.
//! 2. Up to eight tasks from the front of the list go into the map `dispatched`.
//! 3. `nr_queued` is 0, `nr_scheduled` the length of the list; then it yields.
//!
//! The real one is C around BPF's library (tools/sched_ext/scx_userland.c of 7.3.4), with a list of the same rules.

use super::TreeExt;
use crate::symbols::Symbol;
use std::ffi::c_void;

/// `ops.name` of the scheduler.
pub(super) const NAME: &str = "userland";
/// What its BPF side must have: the task's number, both maps, both counts.
pub(super) const PID: &str = "usersched_pid";
const ENQUEUED: &str = "enqueued";
const DISPATCHED: &str = "dispatched";
const NR_QUEUED: &str = "nr_queued";
const NR_SCHEDULED: &str = "nr_scheduled";
pub(super) const PARTS: [&str; 5] = [PID, ENQUEUED, DISPATCHED, NR_QUEUED, NR_SCHEDULED];

/// `batch_size`.
const BATCH: usize = 8;

/// `struct scx_userland_enqueued_task`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct EnqueuedTask {
    pid: i32,
    sum_exec_runtime: u64,
    weight: u64,
}

/// A task as the program remembers it.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    sum_exec_runtime: u64,
    vruntime: f64,
}

/// The program.
#[derive(Clone, Debug, Default)]
pub(super) struct Userland {
    /// By the number of the task.
    known: Vec<Known>,
    /// Those that wait, the lowest virtual time first.
    list: Vec<usize>,
    min_vruntime: f64,
}

impl Userland {
    /// A task of the map.
    fn enqueue(&mut self, pid: usize, sum_exec_runtime: u64, weight: u64) {
        if self.known.len() <= pid {
            self.known.resize(pid + 1, Known::default());
        }
        let known = &mut self.known[pid];
        let delta = sum_exec_runtime.wrapping_sub(known.sum_exec_runtime);
        known.vruntime += delta as f64 / (weight as f64 / 100.0);
        if self.min_vruntime > known.vruntime {
            known.vruntime = self.min_vruntime;
        }
        known.sum_exec_runtime = sum_exec_runtime;
        let own = known.vruntime;
        let before = self.list.iter().position(|other| own <= self.known[*other].vruntime);
        self.list.insert(before.unwrap_or(self.list.len()), pid);
    }

    /// Hands tasks over until a batch is full, or `push` has no space. Returns the number of attempts.
    fn dispatch(&mut self, mut push: impl FnMut(usize) -> bool) -> usize {
        for done in 0..BATCH {
            let Some(&pid) = self.list.first() else { return done };
            self.min_vruntime = self.known[pid].vruntime;
            if !push(pid) {
                return done + 1;
            }
            self.list.remove(0);
        }
        BATCH
    }
}

impl TreeExt {
    /// What the program does between two yields; the number of its calls of the kernel.
    pub(super) fn turn(&mut self) -> u32 {
        let of = |name: &str| self.code.symbols.get(name).map(Symbol::offset);
        let [enqueued, dispatched, queued, scheduled] =
            [ENQUEUED, DISPATCHED, NR_QUEUED, NR_SCHEDULED].map(of);
        let parts = enqueued.zip(dispatched).zip(queued.zip(scheduled));
        let ((enqueued, dispatched), (queued, scheduled)) = parts.expect("it was looked at before");
        let (entries, program) = (self.entries, &mut self.program);
        self.image.ask(self.watched, || {
            let mut calls = 1;
            // SAFETY: the image is resident; the maps and both counts of 64 bits are the object's, of the types in
            // scx_userland's C, and nobody else uses them meanwhile.
            unsafe {
                let base = (entries.base)();
                let map = |offset: u64| base.add(offset as usize).cast::<c_void>();
                let count = |offset: u64| base.add(offset as usize).cast::<u64>();
                let mut task = EnqueuedTask::default();
                while (entries.pop)(map(enqueued), (&raw mut task).cast(), true) == 0 {
                    program.enqueue(task.pid as usize, task.sum_exec_runtime, task.weight);
                    calls += 1;
                }
                count(queued).write_unaligned(0);
                calls += program.dispatch(|pid| {
                    let pid = pid as i32;
                    (entries.push)(map(dispatched), (&raw const pid).cast(), 0) == 0
                });
                count(scheduled).write_unaligned(program.list.len() as u64);
            }
            calls as u32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_come_in_the_order_of_virtual_time() {
        let mut program = Userland::default();
        // Twice the weight, half the time.
        program.enqueue(3, 4_000, 100);
        program.enqueue(5, 6_000, 200);
        program.enqueue(7, 3_000, 100);
        program.enqueue(9, 9_000, 100);
        assert_eq!(program.list, [7, 5, 3, 9], "of two with 3000 the later one is first");
        let mut taken = Vec::new();
        assert_eq!(
            program.dispatch(|pid| taken.len() < 2 && {
                taken.push(pid);
                true
            }),
            3
        );
        assert_eq!((taken, &program.list[..]), (vec![7, 5], &[3, 9][..]), "no space for a third");
        // It has slept: it begins where the last one was.
        program.enqueue(11, 10, 100);
        assert_eq!(program.list, [11, 3, 9]);
        assert_eq!(program.known[11].vruntime, 4_000.0);
        assert_eq!(program.dispatch(|_| true), 3);
        assert!(program.list.is_empty());
        for pid in 20..40 {
            program.enqueue(pid, 0, 100);
        }
        assert_eq!((program.dispatch(|_| true), program.list.len()), (BATCH, 12));
    }
}
