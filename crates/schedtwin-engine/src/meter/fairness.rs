// SPDX-License-Identifier: GPL-2.0-or-later
//! Fairness: what tasks that are queued beside each other get of their CPU, and what their weights give them.
//!
//! # Algorithm
//!
//! 1. A tick of a CPU with two or more tasks looks each [`PERIOD`]. *Beside each other* are fair tasks of one queue (a cgroup's
//!    on a CPU) that were queued there at the last look, too, and ever since: none has slept or migrated, or has another weight.
//! 2. What these have run since the last look is theirs together. By weight, each should have had its part of that; the
//!    difference is added to what the task is owed. The sum over all tasks does not change.
//! 3. What is owed is bounded under EEVDF by the longest slice, under CFS by the latency; a task that is owed more than the
//!    bound of [`Property::Fairness`] breaks the property. When it sleeps, migrates or is throttled, what it was owed is forgotten.
//!
//! A queue of one task owes nothing, and tasks of different cgroups are not compared: the weight of a group on a CPU is the
//! kernel's own sum.
//!
//! References: I. Stoica, H. Abdel-Wahab: Earliest Eligible Virtual Deadline First (1996), lag and its bounds; 6.12
//! kernel/sched/fair.c `entity_lag`, `update_entity_lag`.

use super::Meter;
use super::waits::Breaches;
use schedtwin_kernel::hardware::TaskShare;
use schedtwin_types::property::Property;
use schedtwin_types::{CpuId, NEVER, Ns, TaskId};

/// Time between two looks at a CPU.
const PERIOD: Ns = 25_000_000;

/// The share of a task at a look.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// When; with that of its CPU it tells whether this is the last look.
    at: Ns,
    share: Option<TaskShare>,
    /// CPU time that it was owed then, ns.
    owed: i64,
    /// Since when it is compared.
    since: Ns,
    /// It is beyond the bound already.
    told: bool,
}

/// Looks at CPUs.
#[derive(Clone, Debug)]
pub(super) struct Fairness {
    /// The last look at each CPU.
    looked: Vec<Ns>,
    /// Tasks that were there at the last look; kept for its memory.
    beside: Vec<(TaskId, TaskShare, u64)>,
    pub(super) owed: Breaches,
}

impl Fairness {
    pub(super) fn new(cpus: usize) -> Fairness {
        Fairness { looked: vec![NEVER; cpus], beside: Vec::new(), owed: Breaches::default() }
    }

    /// There are so many tasks: a look allocates nothing.
    pub(super) fn make_room(&mut self, tasks: usize) {
        self.beside.reserve(tasks.saturating_sub(self.beside.len()));
    }

    /// Whether it is time for a look at `cpu`.
    #[inline(always)]
    pub(super) fn is_due(&self, at: Ns, cpu: CpuId) -> bool {
        let looked = self.looked[cpu.index()];
        looked == NEVER || at >= looked + PERIOD
    }
}

impl Meter {
    /// A look at the tasks that are queued on `cpu`.
    pub(super) fn look_at_shares(
        &mut self,
        at: Ns,
        cpu: CpuId,
        share_of: impl Fn(TaskId) -> Option<TaskShare>,
    ) {
        let bound = self.setup.bounds.of(Property::Fairness);
        let last = std::mem::replace(&mut self.fairness.looked[cpu.index()], at);
        self.fairness.beside.clear();
        for (index, task) in self.tasks.iter_mut().enumerate() {
            if task.queued_on != Some(cpu) || !task.counts() {
                continue;
            }
            let Some(now) = share_of(TaskId(index as u32)) else { continue };
            let seen = std::mem::replace(
                &mut task.seen,
                Seen { at, share: Some(now), since: at, ..Seen::default() },
            );
            let Some(before) = seen.share else { continue };
            let same = (before.queue, before.weight) == (now.queue, now.weight);
            if seen.at == last && task.queued_at <= last && same {
                task.seen = Seen { at, share: Some(now), ..seen };
                let ran = now.ran.saturating_sub(before.ran);
                self.fairness.beside.push((TaskId(index as u32), now, ran));
            }
        }
        self.fairness.beside.sort_unstable_by_key(|(task, share, _)| (share.queue, *task));
        for queue in self.fairness.beside.chunk_by(|(_, a, _), (_, b, _)| a.queue == b.queue) {
            let weights: u128 = queue.iter().map(|(_, share, _)| u128::from(share.weight)).sum();
            let all: u128 = queue.iter().map(|(_, _, ran)| u128::from(*ran)).sum();
            for (task, share, ran) in queue {
                let seen = &mut self.tasks[task.index()].seen;
                let part = all * u128::from(share.weight) / weights.max(1);
                seen.owed += part as i64 - *ran as i64;
                if seen.since < self.window_start || seen.owed <= 0 || seen.owed as u64 <= bound {
                    continue;
                }
                let owed = seen.owed as u64;
                let new = !std::mem::replace(&mut seen.told, true);
                if self.fairness.owed.amounts_to(owed, seen.since, new) {
                    (self.fairness.owed.task, self.fairness.owed.cpu) = (Some(*task), cpu);
                }
            }
        }
    }
}
