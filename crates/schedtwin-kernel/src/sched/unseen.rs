// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs that go idle, or busy, while another CPU looks for an idle one.
//!
//! An entry of the kernel is simulated as a whole at the time of its beginning, and its effects are there from then on. A CPU
//! whose own path is not that far yet must not see them:
//!
//! ```text
//! CPU 0  begins ─ wakes A ─ looks ─────── queues A on CPU 2 ─ ends
//! CPU 1     begins ─ wakes B ─ looks: CPU 2 is idle still ─ queues B there, too
//! CPU 3       begins ─ its task sleeps ─────────── switches to idle: nobody takes it for idle before
//! ```
//!
//! Wakers of one moment choose the same idle CPU by this, as in Linux. Who has no change ahead of its clock, which is nearly
//! everybody, pays a comparison.
//!
//! A task that sleeps is `on_cpu` until its CPU has switched it out: who wakes it before leaves it to that CPU, or waits. A task
//! that is woken runs once its waker's path has come to the end of the wakeup: a CPU that finds it before waits.
//!
//! Kernel: the reads without a lock in kernel/sched/syscalls.c `idle_cpu()`; kernel/sched/core.c `try_to_wake_up()`.
//! Differences: wakeups of the fair class alone look with their own clock, at the beginning of their path; balance passes, forks
//! and sched_ext see each change at once. A CPU that finds work by itself (newidle balancing) or gets a new task is busy at
//! once.

use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, Ns, TaskId};

/// So many changes are kept before those that all have seen are looked for.
const FEW: usize = 16;

/// Changes of `idle_mask`, by the clock of the CPU that made them.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleChanges {
    latest: Ns,
    list: Vec<(Ns, CpuId)>,
    /// As many changes make it look for those that all have seen.
    many: usize,
}

impl IdleChanges {
    /// `cpu` has gone idle or busy at `at`; no clock is before `now`.
    fn add(&mut self, cpu: CpuId, at: Ns, now: Ns) {
        if self.latest <= now {
            self.list.clear();
        } else if self.list.len() >= self.many {
            self.list.retain(|(at, _)| *at > now);
            self.many = FEW.max(2 * self.list.len());
        }
        self.latest = self.latest.max(at);
        self.list.push((at, cpu));
    }

    /// CPUs that change after `clock`, once for each time.
    fn after(&self, clock: Ns) -> impl Iterator<Item = CpuId> {
        self.list.iter().filter(move |(at, _)| *at > clock).map(|(_, cpu)| *cpu)
    }
}

impl Scheduler {
    /// `cpu` went idle or busy at this point of the executing CPU's path.
    #[inline]
    pub(super) fn idle_changes(&mut self, cpu: CpuId, cx: &Context) {
        if !cx.platform.device_tree.path_costs.one_at_a_time {
            self.idle_changes.add(cpu, cx.local_clock(), cx.now);
        }
    }

    /// The executing CPU's path has woken a task, or has switched it out to sleep, at this point.
    #[inline]
    pub(super) fn under_way(&mut self, task: TaskId, cx: &Context) {
        if !cx.platform.device_tree.path_costs.one_at_a_time {
            self.tasks[task].under_way_until = cx.local_clock();
        }
    }

    /// Whether another CPU is still waking it, or switching it out.
    #[inline(always)]
    pub(super) fn is_under_way(&self, task: TaskId, cx: &Context) -> bool {
        self.tasks[task].under_way_until > cx.local_clock()
    }

    /// The executing CPU spins until that is over: on `p->on_cpu`, or on the run queue's lock, which the waker has.
    #[inline(never)]
    pub(super) fn wait_for_other_cpu(&mut self, task: TaskId, cx: &mut Context) {
        let left = self.tasks[task].under_way_until.saturating_sub(cx.local_clock());
        self.owe(left, cx);
    }

    /// Whether `idle_mask` has what a CPU at `clock` cannot see.
    #[inline(always)]
    pub(super) fn has_unseen(&self, clock: Ns) -> bool {
        self.idle_changes.latest > clock
    }

    /// Takes what a CPU at `clock` cannot see out of `idle_mask`; the second time, puts it back.
    #[inline(never)]
    pub(super) fn toggle_unseen(&mut self, clock: Ns) {
        for cpu in self.idle_changes.after(clock) {
            let was = self.idle_mask.contains(cpu);
            self.idle_mask.set(cpu, !was);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Ns = 1000;

    fn after(changes: &IdleChanges, clock: Ns) -> Vec<u16> {
        changes.after(clock).map(|cpu| cpu.0).collect()
    }

    /// A clock that has passed a change sees it, and one that has not does not.
    #[test]
    fn a_change_is_seen_from_its_time_on() {
        let mut changes = IdleChanges::default();
        changes.add(CpuId(2), NOW + 300, NOW);
        changes.add(CpuId(3), NOW + 100, NOW);
        assert_eq!(after(&changes, NOW + 99), [2, 3]);
        assert_eq!(after(&changes, NOW + 100), [2]);
        assert_eq!(after(&changes, NOW + 300), []);
        assert_eq!(changes.latest, NOW + 300);
    }

    /// However long changes overlap, those that everybody has seen do not pile up.
    #[test]
    fn old_changes_go() {
        let mut changes = IdleChanges::default();
        for step in 0..10_000 {
            changes.add(CpuId(step as u16 % 200), NOW + step * 10 + 1000, NOW + step * 10);
            assert!(changes.list.len() <= 202, "{step}: {}", changes.list.len());
        }
        changes.add(CpuId(1), 2 * NOW + 1_000_000, NOW + 1_000_000);
        assert_eq!(changes.list.len(), 1, "all others are over");
    }
}
