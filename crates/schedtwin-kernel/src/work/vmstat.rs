// SPDX-License-Identifier: GPL-2.0-or-later
//! The works that fold statistics of memory together: the one piece of housekeeping that every busy CPU does.
//!
//! Each CPU has a work, `vmstat_update`, on a *deferrable* timer of the wheel, due once a `stat_interval`. A deferrable timer
//! wakes no CPU: it comes with the first tick at or after its time, so with a tick that the CPU takes for another
//! reason. The work is a few microseconds, but it is a fair task that wakes on a busy CPU: it preempts, it keeps the
//! CPU's fair server active, and it does so at whole seconds on all busy CPUs.
//!
//! ```text
//! tick      |   |   |   |       idle, no tick        |   |   |
//! timer             due                due
//! kworker           ==                               ==
//! ```
//!
//! Another work, the *shepherd*, goes round once an interval on the CPU where it was started, and queues the work of each CPU
//! that has none, idle or not. After boot that is each CPU.
//!
//! Times are rounded to whole seconds, shifted by three jiffies a CPU (`round_jiffies_relative`).
//!
//! Kernel: 6.12.95 mm/vmstat.c `vmstat_shepherd`, `vmstat_update`, `start_shepherd_timer`, kernel/workqueue.c
//! `delayed_work_timer_fn`; the same in 7.3.
//! Differences: a CPU's counters have always changed, so a work is always armed again and the shepherd has nothing to do after its
//! first round; `quiet_vmstat()`, which an idle CPU calls, then has no effect. Each of the two works costs as much as a system call.
//! Off where `stat_interval` is 0.

use super::workqueue::{Queue, WorkStruct};
use crate::Kernel;
use crate::time::timer::wheel::TimerId;
use crate::time::timer::{TimerFlags, TimerFunction};
use schedtwin_types::CpuId;

/// The queue of both works.
pub(super) const QUEUE: Queue = Queue::PerCpu { high: false };

/// Statistics of memory.
#[derive(Clone, Debug)]
pub(crate) struct Vmstat {
    shepherd: TimerId,
    /// The work of each CPU.
    works: Vec<DelayedWork>,
}

/// `struct delayed_work`.
#[derive(Clone, Copy, Debug)]
struct DelayedWork {
    timer: TimerId,
    /// `WORK_STRUCT_PENDING`: its timer runs, or it waits for a worker.
    pending: bool,
}

impl Kernel {
    /// Makes the works and starts the shepherd on CPU 0, if there is an interval (`start_shepherd_timer`).
    pub(crate) fn vmstat_init(&mut self) {
        if self.cx.config.stat_interval == 0 {
            return;
        }
        let nr_cpus = self.sched.nr_cpus();
        self.init_timers();
        self.workqueue_init(QUEUE, 2);
        let mut timer = |work, pinned| {
            let flags = TimerFlags { deferrable: true, pinned };
            self.time.timer_setup(TimerFunction::DelayedWork(work), flags)
        };
        let shepherd = timer(WorkStruct::VmstatShepherd, false);
        let works = (0..nr_cpus)
            .map(|c| WorkStruct::VmstatUpdate(CpuId(c as u16)))
            .map(|work| DelayedWork { timer: timer(work, true), pending: false })
            .collect();
        self.work.vmstat = Some(Vmstat { shepherd, works });
        self.add_timer_on(shepherd, self.vmstat_due(CpuId(0)), CpuId(0));
    }

    fn vmstat(&mut self) -> &mut Vmstat {
        self.work.vmstat.as_mut().expect("its works are made with it")
    }

    /// `round_jiffies_relative()` of the interval: a jiffy.
    fn vmstat_due(&self, cpu: CpuId) -> u64 {
        self.round_jiffies_after(self.cx.config.stat_interval / self.cx.tick_nsec, cpu)
    }

    /// `vmstat_shepherd()` begins.
    pub(crate) fn vmstat_shepherd(&mut self) {
        self.charge_work(self.cx.platform.device_tree.path_costs.syscall);
    }

    /// `vmstat_shepherd()`: queues the work of each CPU that does not wait for it already.
    pub(crate) fn vmstat_shepherd_done(&mut self) {
        for c in 0..self.sched.nr_cpus() {
            let cpu = CpuId(c as u16);
            if !std::mem::replace(&mut self.vmstat().works[c].pending, true) {
                self.queue_work_on(WorkStruct::VmstatUpdate(cpu), QUEUE, cpu);
            }
        }
        let (shepherd, due) = (self.vmstat().shepherd, self.vmstat_due(self.cx.this_cpu));
        self.mod_timer(shepherd, due);
    }

    /// `vmstat_update()` begins.
    pub(crate) fn vmstat_update(&mut self, cpu: CpuId) {
        self.vmstat().works[cpu.index()].pending = false;
        self.charge_work(self.cx.platform.device_tree.path_costs.syscall);
    }

    /// `vmstat_update()` ends: the work is armed again.
    pub(crate) fn vmstat_update_done(&mut self, cpu: CpuId) {
        let due = self.vmstat_due(cpu);
        let work = &mut self.vmstat().works[cpu.index()];
        work.pending = true;
        let timer = work.timer;
        self.add_timer_on(timer, due, cpu);
    }
}
