// SPDX-License-Identifier: GPL-2.0-or-later
//! The program of a scheduler that decides in user space (`scx_userland`): a task of `SCHED_EXT` that its own scheduler runs.
//!
//! ```text
//!  loop: takes what the scheduler has put into a map ─ puts decisions into another ─ the calls' time passes ─ sched_yield()
//! ```
//!
//! A turn is done at its beginning, and its time passes after it. The program ends with its scheduler.
//!
//! Differences: it is a thread of the kernel to the core, and its maps are read and written at one instant. The thread that prints
//! statistics once a second is absent.

use crate::Kernel;
use crate::sched::{Class, TaskKind};
use crate::system::ThreadClass;
use schedtwin_types::{CpuId, Policy, TaskId, TaskState, WakeSource, Work};

/// A call of `bpf(2)` with its entry and exit, on the fastest CPU: an estimate, no published source has a figure.
const CALL: Work = 300;

impl Kernel {
    /// Makes the program's task, which sleeps until the scheduler is loaded.
    pub(super) fn scx_make_program(&mut self) -> TaskId {
        let task = self.new_task(None, TaskKind::ExtProgram);
        self.sched.tasks[task].policy = Policy::Ext;
        let all = self.cx.platform.device_tree.all_cpus();
        self.kthread_setup(task, ThreadClass::Nice(0), CpuId(0), all);
        let mut scheduler = self.own.take_ext();
        scheduler.policy.program_is(task);
        self.own.put_ext(scheduler);
        task
    }

    /// The scheduler is loaded, and its program goes on.
    pub(super) fn scx_start_program(&mut self) {
        if let Some(task) = self.sched.scx().program {
            self.wake_up_kthread(task, WakeSource::Kernel);
        }
    }

    /// The program runs.
    pub(crate) fn scx_program(&mut self) {
        let cpu = self.cx.this_cpu;
        let task = self.sched.rq[cpu].curr;
        let Some(ext) = self.sched.ext.as_mut().filter(|ext| ext.exit.is_none()) else {
            self.sched.set_task_state(task, TaskState::Interruptible);
            return self.schedule(false);
        };
        if !std::mem::replace(&mut ext.program_worked, true) {
            let calls = self.scx_call(None, |ops, scx| {
                scx.absent();
                ops.program_turn(scx)
            });
            return self.set_kthread_work(CALL * Work::from(calls.max(1)));
        }
        ext.program_worked = false;
        match self.sched.tasks[task].class {
            Class::Ext => self.yield_task_scx(cpu),
            _ => self.yield_task_fair(cpu),
        }
        self.schedule(false);
    }
}
