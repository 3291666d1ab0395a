// SPDX-License-Identifier: GPL-2.0-or-later
//! Contention: how long a CPU has two or more runnable tasks.
//!
//! It is what runnable boosting reacts to (`runnable_avg` above `util_avg`): while one task runs another
//! one waits on the same CPU. A task counts on the CPU on which it is queued, running or not, from its
//! `sched_wakeup` to the switch in which it goes to sleep. The kernel's own threads do not count.
//!
//! ```text
//!  runnable   1        2           1     2    1     0
//!         ────┼────────┼───────────┼─────┼────┼─────┼──►
//!                      |contended  |     |    |
//! ```

use super::Meter;
use schedtwin_types::{CpuId, Ns, TaskId};

/// Runnable tasks of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct CpuContention {
    runnable: u32,
    /// Since when there are two or more.
    since: Ns,
    /// How long there were, in the window.
    contended_ns: Ns,
}

/// Runnable tasks of all CPUs.
#[derive(Clone, Debug)]
pub(super) struct Contention {
    cpus: Vec<CpuContention>,
    window_start: Ns,
}

impl Contention {
    pub(super) fn new(cpus: usize, window_start: Ns) -> Contention {
        Contention { cpus: vec![CpuContention::default(); cpus], window_start }
    }

    /// A task is queued on `cpu`.
    #[inline]
    pub(super) fn arrive(&mut self, at: Ns, cpu: CpuId) {
        let meter = &mut self.cpus[cpu.index()];
        meter.runnable += 1;
        if meter.runnable == 2 {
            meter.since = at;
        }
    }

    /// A task that was queued on `cpu` is not any more.
    #[inline]
    pub(super) fn leave(&mut self, at: Ns, cpu: CpuId) {
        let meter = &mut self.cpus[cpu.index()];
        meter.runnable -= 1;
        if meter.runnable == 1 {
            self.close(at, cpu);
        }
    }

    fn close(&mut self, at: Ns, cpu: CpuId) {
        let meter = &mut self.cpus[cpu.index()];
        // Two CPUs may stamp coming and going out of order by the kernel time that one owes.
        let since = meter.since.max(self.window_start);
        meter.contended_ns += at.max(self.window_start).saturating_sub(since);
        meter.since = at;
    }

    /// The run ends.
    pub(super) fn finish(&mut self, end: Ns) {
        for index in 0..self.cpus.len() {
            if self.cpus[index].runnable >= 2 {
                self.close(end, CpuId(index as u16));
            }
        }
    }

    /// How long `cpu` had two or more runnable tasks, in the window.
    pub(super) fn contended_ns(&self, cpu: usize) -> Ns {
        self.cpus[cpu].contended_ns
    }

    /// How many tasks are runnable on `cpu` now.
    pub(super) fn runnable(&self, cpu: usize) -> u32 {
        self.cpus[cpu].runnable
    }
}

impl Meter {
    /// `task` is queued on `cpu` from now on, or nowhere.
    #[inline(always)]
    pub(super) fn queued(&mut self, at: Ns, task: TaskId, cpu: Option<CpuId>) {
        let meter = &mut self.tasks[task.index()];
        let before = std::mem::replace(&mut meter.queued_on, cpu);
        if before != cpu && !meter.kernel {
            let at = at.min(self.end);
            if let Some(before) = before {
                self.contention.leave(at, before);
            }
            if let Some(cpu) = cpu {
                self.contention.arrive(at, cpu);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_with_two_or_more_counts_once_and_only_in_the_window() {
        let mut contention = Contention::new(2, 100);
        let cpu = CpuId(1);
        for (at, arrives) in [(10, true), (20, true), (60, false), (70, true), (120, true)] {
            if arrives { contention.arrive(at, cpu) } else { contention.leave(at, cpu) }
        }
        // Two from 70 on, three from 120 on, two again from 150 on, one from 170 on.
        contention.leave(150, cpu);
        assert_eq!(contention.contended_ns(1), 0, "not over yet");
        contention.leave(170, cpu);
        assert_eq!((contention.contended_ns(1), contention.runnable(1)), (70, 1));
        contention.arrive(200, cpu);
        contention.finish(230);
        assert_eq!((contention.contended_ns(1), contention.contended_ns(0)), (100, 0));
    }
}
