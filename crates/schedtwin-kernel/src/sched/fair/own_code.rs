// SPDX-License-Identifier: GPL-2.0-or-later
//! Instructions of the fair class's own code, beyond those of CFS without groups, which the costs of a wakeup and of
//! `__schedule()` hold.
//!
//! Counted in the functions of three kernel trees, x86-64 at -O2, while two tasks wake each other beside none, one and eight that
//! never sleep: `schedtwin-conformance l0 eevdf --instructions`, docs/results/fair-instructions.txt. There PELT is in the functions
//! of CFS alone, 155 in enqueueing and in dequeueing and 107 in setting the next task, which are taken off. A level of groups has
//! it, see [`LEVEL_STAYS`]. Where a form takes fewer instructions than CFS, its row has 0.
//!
//! Not counted: real-time and deadline classes, sched_ext, statistics, tracing.

use super::discipline;
use crate::Kernel;
use crate::sched::Class;
use schedtwin_types::TaskId;

/// Instructions of one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instructions {
    /// `enqueue_task_fair()`.
    enqueue: u64,
    /// Of a task whose dequeue was delayed.
    requeue: u64,
    /// `check_preempt_wakeup_fair()`.
    preempt: u64,
    /// `dequeue_task_fair()`.
    dequeue: u64,
    /// That delays.
    delay: u64,
    /// Picking a task, putting the last one back, setting the next.
    switch: u64,
    /// Enqueueing into a tree, for each doubling of what is queued there.
    tree_enqueue: u64,
    /// Leaving a tree for the CPU, likewise.
    tree_switch: u64,
    /// A level of groups that is enqueued with the task, or dequeued.
    level: u64,
    /// Picking through a level of groups.
    level_pick: u64,
}

/// 6.1.192.
pub(super) const CFS: Instructions = Instructions {
    enqueue: 0,
    requeue: 0,
    preempt: 0,
    dequeue: 0,
    delay: 0,
    switch: 0,
    tree_enqueue: 9,
    tree_switch: 4,
    level: 330,
    level_pick: 56,
};

/// 6.12.95.
pub(super) const V6_12: Instructions = Instructions {
    enqueue: 185,
    requeue: 0,
    preempt: 80,
    dequeue: 64,
    delay: 0,
    switch: 155,
    tree_enqueue: 30,
    tree_switch: 26,
    level: 440,
    level_pick: 100,
};

/// 7.3.4. A level of groups has its averages and shares alone.
pub(super) const V7_3: Instructions = Instructions {
    enqueue: 210,
    requeue: 0,
    preempt: 167,
    dequeue: 70,
    delay: 22,
    switch: 265,
    tree_enqueue: 35,
    tree_switch: 30,
    level: LEVEL_STAYS,
    level_pick: 0,
};

/// `update_load_avg()`, `update_cfs_group()` of a level of groups that stays where it is.
const LEVEL_STAYS: u64 = 179;

impl Kernel {
    /// Whether instructions of the fair class cost time.
    #[inline(always)]
    fn instructions_cost(&self) -> bool {
        self.cx.platform.device_tree.path_costs.kilo_instruction != 0
    }

    fn charge_instructions(&mut self, instructions: u64) {
        let kilo = self.cx.platform.device_tree.path_costs.kilo_instruction;
        self.sched.charge(instructions * kilo / 1000, &mut self.cx);
    }

    /// Charges an enqueue that has been done.
    #[inline(always)]
    pub(crate) fn charge_enqueue_fair(&mut self, task: TaskId, requeued: bool) {
        if self.instructions_cost() {
            self.charge_enqueue(task, requeued);
        }
    }

    #[cold]
    fn charge_enqueue(&mut self, task: TaskId, requeued: bool) {
        let row = discipline::instructions(&self.cx);
        let instructions = match requeued {
            true => row.requeue,
            false => row.enqueue + self.tree(task) * row.tree_enqueue + self.levels(task, 1),
        };
        self.charge_instructions(instructions);
    }

    /// Charges a dequeue that has been done; `delayed`: the task stays.
    #[inline(always)]
    pub(crate) fn charge_dequeue_fair(&mut self, task: TaskId, delayed: bool) {
        if self.instructions_cost() {
            self.charge_dequeue(task, delayed);
        }
    }

    #[cold]
    fn charge_dequeue(&mut self, task: TaskId, delayed: bool) {
        let row = discipline::instructions(&self.cx);
        let instructions = match delayed {
            true => row.delay,
            false => row.dequeue + self.levels(task, 0),
        };
        self.charge_instructions(instructions);
    }

    /// Charges a test for preemption by a task that is woken.
    #[inline(always)]
    pub(crate) fn charge_preempt_fair(&mut self) {
        if self.instructions_cost() {
            self.charge_instructions(discipline::instructions(&self.cx).preempt);
        }
    }

    /// Charges a switch to a task.
    #[inline(always)]
    pub(crate) fn charge_switch_fair(&mut self, next: TaskId) {
        if self.instructions_cost() && self.sched.tasks[next].class == Class::Fair {
            let row = discipline::instructions(&self.cx);
            let levels = u64::from(self.sched.se[self.sched.tasks[next].se].depth);
            let tree = self.tree(next) * row.tree_switch;
            self.charge_instructions(row.switch + tree + levels * row.level_pick);
        }
    }

    /// How often what is queued beside a task doubles from one on.
    fn tree(&self, task: TaskId) -> u64 {
        let timeline = self.sched.timeline_of(self.sched.tasks[task].se);
        self.sched.cfs[timeline].nr_queued.max(1).ilog2().into()
    }

    /// The levels of groups above a task. One stays queued, with all above, if there is more below it than `own`.
    fn levels(&self, task: TaskId, own: u32) -> u64 {
        let full = discipline::instructions(&self.cx).level;
        let (mut instructions, mut stays) = (0, false);
        let mut level = self.sched.se[self.sched.tasks[task].se].parent;
        while let Some(group) = level {
            let below =
                self.sched.se[group].my_q.expect("an entity with others below it is a group's");
            stays |= self.sched.cfs[below].nr_queued > own;
            instructions += if stays { LEVEL_STAYS } else { full };
            level = self.sched.se[group].parent;
        }
        instructions
    }
}
