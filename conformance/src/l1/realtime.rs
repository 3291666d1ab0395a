// SPDX-License-Identifier: GPL-2.0-or-later
//! Where real-time tasks wake: `select_task_rq_rt` and `find_lowest_rq`, by the product's own code.
//!
//! **Idea.** Who is queued where follows from wakeups, sleeps and migrations; with what priority, from their lines. At each
//! waking of a real-time task that may choose, these tasks are enqueued in a fresh kernel, the
//! running task is made current, and the function is asked. The recording's answer is
//! `sched_wakeup`, the trivial one the previous CPU.
//!
//! **Known from the workload:** affinities, as it gives them at the start; other threads (prio 49 and the like of the kernel's
//! own) are taken as bound to their CPU, as they are on the board.
//!
//! **Unknown:** the cursor that spreads tasks over several CPUs of the same level, none of them the previous or the
//! executing one; no recording so far has such a choice.

use std::collections::BTreeMap;

use schedtwin_kernel::sched::Class as Sched;
use schedtwin_kernel::sched::TaskKind;
use schedtwin_kernel::sched::core::{ENQUEUE_WAKEUP, WF_TTWU};
use schedtwin_types::{CpuId, CpuMask, TaskId};

use super::board::Board;
use super::state::{Class, class_of};
use crate::ftrace::Event;

/// The priority of stop tasks; no task of a workload has it.
const STOP_PRIO: i32 = 0;

/// A queued real-time task, the running ones included.
#[derive(Clone, Copy, Debug)]
struct Queued {
    cpu: usize,
    prio: i32,
}

/// A waking, and what the CPUs do at it.
pub(super) struct Waking<'a> {
    pub(super) pid: i32,
    pub(super) prio: i32,
    pub(super) prev: usize,
    /// The executing CPU.
    pub(super) this: usize,
    /// Per CPU: who runs, and of which class.
    pub(super) currs: &'a [(i32, Class)],
}

/// The queued tasks, and the wakings under way.
pub(super) struct RealTime {
    board: Board,
    queued: BTreeMap<i32, Queued>,
    /// By task: the CPU of ours, and the previous one.
    pub(super) open: BTreeMap<i32, (usize, usize)>,
}

impl RealTime {
    pub(super) fn new(board: Board) -> RealTime {
        RealTime { board, queued: BTreeMap::new(), open: BTreeMap::new() }
    }

    /// Keeps who is queued where.
    pub(super) fn record(&mut self, event: &Event) {
        match *event {
            Event::SchedWakeup { pid, prio, target_cpu, .. }
                if class_of(pid, prio, false) == Class::Rt && prio != STOP_PRIO =>
            {
                self.queued.insert(pid, Queued { cpu: target_cpu, prio });
            }
            Event::SchedSwitch { prev_pid, prev_state, .. } if prev_state != b'R' => {
                self.queued.remove(&prev_pid);
            }
            Event::SchedMigrateTask { pid, dest_cpu, .. } => {
                if let Some(queued) = self.queued.get_mut(&pid) {
                    queued.cpu = dest_cpu;
                }
            }
            _ => {}
        }
    }

    /// Where ours would wake the task; `allowed`: the affinity of the workload's tasks, as a mask.
    pub(super) fn ask(&self, waking: &Waking, allowed: impl Fn(i32) -> Option<u64>) -> usize {
        let mut kernel = self.board.kernel.clone();
        let all = kernel.inside().device_tree.all_cpus();
        let task = |kernel: &mut schedtwin_kernel::Kernel, pid, prio, cpu: usize| -> TaskId {
            let mask = allowed(pid).unwrap_or(1 << cpu);
            let mask = CpuMask::from_cpus(all.iter().filter(|c| mask >> c.index() & 1 != 0));
            let id = kernel.new_task(None, TaskKind::User);
            let t = &mut kernel.inside_mut().tasks[id];
            (t.class, t.prio, t.cpu) = (Sched::Rt, prio, CpuId(cpu as u16));
            (t.cpus_mask, t.nr_cpus_allowed) = (mask, mask.weight());
            id
        };
        for (pid, queued) in self.queued.iter().filter(|(pid, _)| **pid != waking.pid) {
            let id = task(&mut kernel, *pid, queued.prio, queued.cpu);
            let cpu = CpuId(queued.cpu as u16);
            *kernel.inside_mut().this_cpu = cpu;
            kernel.activate_task(cpu, id, ENQUEUE_WAKEUP);
            if waking.currs[queued.cpu].0 == *pid {
                kernel.inside_mut().rq[cpu].curr = id;
            }
        }
        for (cpu, (pid, _)) in
            waking.currs.iter().enumerate().filter(|(_, curr)| curr.1 == Class::Stop)
        {
            let id = task(&mut kernel, *pid, STOP_PRIO, cpu);
            kernel.inside_mut().tasks[id].class = Sched::Stop;
            kernel.inside_mut().rq[CpuId(cpu as u16)].curr = id;
        }
        let woken = task(&mut kernel, waking.pid, waking.prio, waking.prev);
        *kernel.inside_mut().this_cpu = CpuId(waking.this as u16);
        let cpu = kernel.select_task_rq_rt(woken, CpuId(waking.prev as u16), WF_TTWU);
        cpu.index()
    }
}
