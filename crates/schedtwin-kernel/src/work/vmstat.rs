// SPDX-License-Identifier: GPL-2.0-or-later
//! The kworkers that fold a CPU's statistics together: the one piece of housekeeping that every busy CPU does.
//!
//! Each CPU has a work on a *deferrable* timer of the timer wheel, due once a `stat_interval`. A deferrable timer wakes no CPU: it
//! comes with the first tick at or after its time, so with a tick that the CPU takes for another reason. The work is a
//! few microseconds, but it is a fair task that wakes on a busy CPU: it preempts, it keeps the CPU's fair server
//! active, and it does so at whole seconds on all busy CPUs.
//!
//! ```text
//! tick      |   |   |   |       idle, no tick        |   |   |
//! timer             due                due
//! kworker           ==                               ==
//! ```
//!
//! At first the shepherd sends all of them, also on idle CPUs.
//!
//! The time is rounded to whole seconds, shifted by three jiffies a CPU (`round_jiffies_relative`), and up to the
//! wheel's grain, 8 jiffies at such distances.
//!
//! Kernel: 6.12.95 mm/vmstat.c `vmstat_update`, kernel/time/timer.c `round_jiffies_common`, `calc_index`, kernel/workqueue.c.
//! Differences: no wheel, no work queue: this one timer. The work is armed again always, in Linux only where a
//! counter has changed; the shepherd goes round once, everywhere at the same time, and later has nothing to do. The work costs as much as a system call.
//! Off where `stat_interval` is 0.

use crate::sched::TaskKind;
use crate::time::hrtimer::TimerKind;
use crate::{Context, Kernel};
use schedtwin_types::{CpuId, CpuMask, Ns, TaskId, TaskState, WakeSource};

/// Jiffies between the CPUs' rounded times.
const ROUND_SKEW: u64 = 3;
/// When the shepherd first goes round, ns after boot: 1.02 s in all recordings.
const SHEPHERD_FIRST: Ns = 1_020_000_000;
/// Grain of the wheel's second level, jiffies; its timers are 63 to 511 jiffies away.
const WHEEL_GRAIN: u64 = 8;

/// A CPU's work.
#[derive(Clone, Copy, Debug)]
pub struct StatWork {
    /// The kworker that does it.
    pub(crate) kworker: TaskId,
    /// When its timer is due, jiffies.
    due: u64,
}

impl Kernel {
    /// Makes the kworkers, one a CPU, if there is an interval.
    pub(crate) fn vmstat_init(&mut self) {
        if self.cx.config.stat_interval == 0 {
            return;
        }
        for c in 0..self.sched.nr_cpus() {
            let cpu = CpuId(c as u16);
            let kworker = self.new_task(None, TaskKind::StatKworker { cpu });
            self.sched.kthread_bind_mask(kworker, cpu, CpuMask::of(cpu));
            self.work.stat_works.push(StatWork { kworker, due: u64::MAX });
            let first = SHEPHERD_FIRST;
            self.time.hrtimer_start(cpu, first, first, TimerKind::StatShepherd, &mut self.cx);
        }
    }

    /// `vmstat_shepherd()`'s first round: the executing CPU's kworker is sent, idle or not.
    pub(crate) fn vmstat_shepherd(&mut self) {
        let kworker = self.work.stat_works[self.cx.this_cpu.index()].kworker;
        self.try_to_wake_up(kworker, 0, WakeSource::Kernel);
    }

    /// A tick of `cpu` looks for its timers.
    #[inline]
    pub(crate) fn vmstat_tick(&mut self, cpu: CpuId) {
        let jiffies = self.cx.jiffies();
        let Some(work) = self.work.stat_works.get_mut(cpu.index()) else { return };
        if work.due > jiffies {
            return;
        }
        let kworker = work.kworker;
        // The work arms it again; it is not queued twice.
        work.due = u64::MAX;
        self.try_to_wake_up(kworker, 0, WakeSource::Kernel);
    }

    /// `quiet_vmstat()`: a CPU that stops its tick folds its statistics itself.
    pub(crate) fn quiet_vmstat(&mut self, _cpu: CpuId) {}

    /// `vmstat_update()`, on the running kworker.
    pub(crate) fn vmstat_update(&mut self) {
        let cpu = self.cx.this_cpu;
        let cost = self.cx.platform.device_tree.path_costs.syscall;
        self.sched.charge(cost, &mut self.cx);
        self.work.stat_works[cpu.index()].due = self.cx.stat_due(cpu);
        let kworker = self.sched.rq(cpu).curr;
        self.sched.set_task_state(kworker, TaskState::Interruptible);
        self.schedule(false);
    }
}

impl Context {
    /// `round_jiffies_relative()` of the interval, and the wheel's bucket.
    fn stat_due(&self, cpu: CpuId) -> u64 {
        let hz = 1_000_000_000 / self.tick_nsec;
        let skew = cpu.index() as u64 * ROUND_SKEW;
        let at = self.jiffies() + self.config.stat_interval / self.tick_nsec + skew;
        let rest = at % hz;
        let whole = at - rest + if rest < hz / 4 { 0 } else { hz };
        (whole - skew + WHEEL_GRAIN) / WHEEL_GRAIN * WHEEL_GRAIN
    }
}
