// SPDX-License-Identifier: GPL-2.0-or-later
//! What weights give a fair task of its CPU, whatever the queues make of them: for judging ([`Kernel::share_of`],
//! [`Kernel::turn_of`]), never for deciding.

use super::weight_of;
use crate::Kernel;
use crate::sched::ext::SCX_SLICE_DFL;
use crate::sched::{Class, EntityId, Task};
use schedtwin_types::{Ns, TaskId, TaskState};

/// What a fair task has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskShare {
    /// The queue in which it competes: its group's on its CPU.
    pub queue: u32,
    /// Its weight by policy and nice.
    pub weight: u64,
    /// `sum_exec_runtime`, ns.
    pub ran: Ns,
}

impl Kernel {
    /// What a task has had, and what divides it: none if it is no fair task, or a `cpu.max` keeps it from running.
    pub fn share_of(&self, task: TaskId) -> Option<TaskShare> {
        let t = self.sched.task(task);
        let held = t.throttled || self.sched.throttled_task(task);
        let entity = &self.sched.se[t.se];
        (t.class == Class::Fair && !held).then(|| TaskShare {
            queue: entity.cfs_rq.0,
            weight: static_weight(t),
            ran: entity.sum_exec_runtime,
        })
    }

    /// The time in which everybody in `competing`, the tasks of the CPU of `task`, has had a turn by weights alone from `since` on: the longest
    /// slice, divided by the part that `task` has. `None` if it is no task that weights divide CPUs among: fair, or sched_ext's.
    ///
    /// The part is the product over the levels of its cgroups: its own weight, or its group's `cpu.weight` divided by the CPUs
    /// on which the group has tasks, of the sum with the full weights of those beside it.
    pub fn turn_of(&self, task: TaskId, competing: &[TaskId], since: Ns) -> Option<Ns> {
        let has_weight = |class| matches!(class, Class::Fair | Class::Ext);
        if !has_weight(self.sched.task(task).class) {
            return None;
        }
        let is_fair = |other: &&TaskId| {
            let other = self.sched.task(**other);
            // Who has ended competed as long as it ran.
            let there =
                other.state != TaskState::Dead || self.sched.se[other.se].exec_start > since;
            has_weight(other.class) && there
        };
        let fair: Vec<TaskId> = competing.iter().filter(is_fair).copied().collect();
        let cfs = 4 * self.cx.config.cfs.latency;
        let slices = fair.iter().map(|task| self.sched.se[self.sched.task(*task).se].slice);
        let ext = fair.iter().any(|task| self.sched.task(*task).class == Class::Ext);
        let ext = if ext { SCX_SLICE_DFL } else { 0 };
        let slice = slices.max().unwrap_or(0).max(cfs).max(ext).max(self.cx.tick_nsec);
        let mut turn = u128::from(slice);
        let mut own = self.sched.task(task).se;
        loop {
            let queue = self.sched.se[own].cfs_rq;
            let mut beside: Vec<EntityId> = Vec::new();
            for other in &fair {
                let mut at = Some(self.sched.task(*other).se);
                while let Some(entity) = at.filter(|at| self.sched.se[*at].cfs_rq != queue) {
                    at = self.sched.se[entity].parent;
                }
                beside.extend(at.filter(|at| *at != own && !beside.contains(at)));
            }
            let mine = u128::from(self.entity_weight(own, true)).max(1);
            let others = beside.iter().map(|at| u128::from(self.entity_weight(*at, false)));
            turn = turn.saturating_mul(mine + others.sum::<u128>()) / mine;
            match self.sched.se[own].parent {
                Some(parent) => own = parent,
                None => return Some(turn.min(u128::from(Ns::MAX)) as Ns),
            }
        }
    }

    /// The weight of a task, or the shares of a group: divided by the CPUs on which it has tasks, if `divided`.
    fn entity_weight(&self, at: EntityId, divided: bool) -> u64 {
        let entity = &self.sched.se[at];
        let Some(own) = entity.my_q else { return static_weight(self.sched.task(entity.task)) };
        let group = self.sched.group(self.sched.cfs[own].group);
        if !divided {
            return group.shares.max(entity.load.weight);
        }
        let busy = group.cfs_rq.iter().filter(|queue| self.sched.cfs[**queue].nr_queued > 0);
        group.shares / (busy.count() as u64).max(1)
    }
}

/// `set_load_weight()`: by policy and nice.
fn static_weight(task: &Task) -> u64 {
    weight_of(task.policy, task.nice).weight
}
