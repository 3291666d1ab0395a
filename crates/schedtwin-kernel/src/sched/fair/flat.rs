// SPDX-License-Identifier: GPL-2.0-or-later
//! One timeline for all groups of a CPU: how 7.3 walks their hierarchy.
//!
//! **Decides** with which weight a task competes with all other tasks of its CPU.
//!
//! **Idea.** Up to 6.12 each group has a timeline of its own, and a pick goes down level by level. In 7.3 only tasks are picked,
//! in one timeline. Groups keep what shares their weight out: entities with a load, PELT and counts, but no virtual time. A
//! task's weight in the timeline, Linux's `h_load`, is the part of the CPU that its groups leave to it:
//!
//! ```text
//!   root's load 2048                           timeline: a 1024 · 1024/1       = 1024
//!    ├── a (1024)                                        b 1024 · 1024/3072    =  341
//!    └── group (1024), its load 3072                     c 1024 · 2048/3072    =  682
//!         ├── b (1024)
//!         └── c (2048)
//! ```
//!
//! **Algorithm** ([`prop_weight`], from the task upwards). weight = 1024, scaled up. On each level: times the entity's weight,
//! by the weight of all on its queue (on the root: by 1024), at least 2. It is computed when a task is queued, is switched
//! to, and at each tick while it runs; changes in between, and the siblings, wait for their own
//! update. A new weight keeps the worth of a task's lag, of what is left of its slice and of its
//! protection.
//!
//! Only a task can be delayed; a group leaves with its last task.
//!
//! **Where it is.** Linux keeps the timeline in the root's queue, beside the entity that runs on the root's level (`h_curr`).
//! Here it is a queue of its own for each CPU, `rq.timeline`; without groups, or where they nest, that is the root's.
//!
//! Kernel: 7.3.4 kernel/sched/fair.c `enqueue_hierarchy`, `dequeue_hierarchy`, `__dequeue_task`, `set_next_task_fair`,
//! `put_prev_task_fair`, `task_tick_fair`, `reweight_eevdf`, `__calc_prop_weight`.
//! Differences: where a group has a limit (`cpu.max`) and its queue is throttled as a whole (`cfs_throttle`, not 7.3's), the
//! hierarchies of all CPUs nest.

use super::NICE_0_LOAD;
use super::eevdf::sums_full_weights;
use super::group::MIN_SHARES;
use crate::config::GroupTree;
use crate::observe::DecisionObserver;
use crate::sched::core::{
    DEQUEUE_DELAYED, DEQUEUE_SLEEP, DEQUEUE_SPECIAL, DEQUEUE_THROTTLE, ENQUEUE_MIGRATED,
    ENQUEUE_WAKEUP,
};
use crate::sched::fair::load_avg::{DO_ATTACH, DO_DETACH, UPDATE_TG};
use crate::sched::{CfsRq, CfsRqId, EntityId, LoadWeight, OnRq, SchedEntity};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, Policy, TaskId};

/// `__calc_prop_weight()`: `weight` below, as seen from a level further up; `queue_weight`: of all that is on the entity's
/// queue, where that is not the root's.
///
/// ```
/// use schedtwin_kernel::sched::fair::flat::prop_weight;
///
/// // nice 5 and nice 0 in a group that weighs as much as a task of nice 0, alone on its CPU.
/// let (nice_5, nice_0, one) = (335 << 10, 1024 << 10, 1024 << 10);
/// let of = |task| prop_weight(prop_weight(one, task, Some(nice_5 + nice_0)), one, None);
/// assert_eq!((of(nice_5), of(nice_0)), (258_478, 790_097));
/// // The group weighs a quarter of that.
/// let quarter = prop_weight(prop_weight(one, nice_5, Some(nice_5 + nice_0)), 256 << 10, None);
/// assert_eq!(quarter, 64_619);
/// ```
pub fn prop_weight(weight: u64, own: u64, queue_weight: Option<u64>) -> u64 {
    let product = weight.wrapping_mul(own);
    (product / queue_weight.unwrap_or(NICE_0_LOAD)).max(MIN_SHARES as u64)
}

impl SchedEntity {
    /// `rescale_entity()`: the weight in the timeline is now `weight`, was `old`; what is relative keeps its worth.
    /// `protection`: so is the mark up to which its slice is protected.
    pub(super) fn rescale(&mut self, old: u64, weight: u64, protection: bool) {
        let rescaled = |time: i64| time.wrapping_mul(old as i64) / weight as i64;
        self.vlag = rescaled(self.vlag);
        if self.rel_deadline {
            self.deadline = rescaled(self.deadline as i64) as u64;
        }
        if protection {
            self.vprot = rescaled(self.vprot as i64) as u64;
        }
    }
}

impl Context {
    /// Whether each group has a timeline of its own in this release.
    pub(super) fn groups_nest(&self) -> bool {
        self.config.group_tree == GroupTree::Nested
    }
}

impl Scheduler {
    /// A group is made, or gets a limit: from now on the timeline is one, or it nests. Nobody is in a group yet.
    pub(super) fn choose_group_tree(&mut self, cx: &Context) {
        let flat = cx.config.group_tree == GroupTree::Flat
            && sums_full_weights(&cx.config)
            && self.has_groups()
            && (!self.cfs_bandwidth_used() || cx.throttles_tasks());
        if flat == self.flat_groups() {
            return;
        }
        assert!(self.groups_are_empty(), "a group's limit is written before anybody is in a group");
        self.flat_groups = flat;
        for cpu in self.rq.ids() {
            let (root, timeline) = (CfsRqId::root(cpu), self.rq[cpu].timeline);
            let (from, to) = if flat {
                let empty = CfsRq { timeline: Vec::new(), ..self.cfs[root].clone() };
                let capacity = self.cfs[root].timeline.capacity();
                let new = self.cfs.push(CfsRq { timeline: Vec::with_capacity(capacity), ..empty });
                (root, new)
            } else {
                (timeline, root)
            };
            self.rq[cpu].timeline = to;
            let mut moved = std::mem::take(&mut self.cfs[from].timeline);
            self.cfs[to].timeline.append(&mut moved);
            let (sum, load) = (self.cfs[from].avg_vruntime, self.cfs[from].avg_load);
            let zero = self.cfs[from].zero_vruntime;
            let cfs = &mut self.cfs[to];
            (cfs.avg_vruntime, cfs.avg_load, cfs.zero_vruntime) = (sum, load, zero);
            cfs.next = None;
            let cfs = &mut self.cfs[from];
            (cfs.avg_vruntime, cfs.avg_load, cfs.next) = (0, 0, None);
        }
    }

    fn groups_are_empty(&self) -> bool {
        self.groups.ids().skip(1).all(|group| {
            self.groups[group].cfs_rq.iter().all(|cfs_rq| self.cfs[*cfs_rq].h_nr_queued == 0)
        })
    }

    /// The queue in whose timeline an entity competes.
    #[inline(always)]
    pub(crate) fn timeline_of(&self, se: EntityId) -> CfsRqId {
        let cfs_rq = self.se[se].cfs_rq;
        if self.flat_groups() { self.rq[self.cpu_of(cfs_rq)].timeline } else { cfs_rq }
    }

    /// Where a walk through timelines that nest begins; none where one timeline is for all.
    #[inline(always)]
    pub(super) fn nested_levels(&self, task: TaskId) -> Option<EntityId> {
        if self.flat_groups() { None } else { Some(self.tasks[task].se) }
    }

    /// One more level of [`prop_weight`].
    fn calc_prop_weight(&self, se: EntityId, weight: u64) -> u64 {
        let entity = &self.se[se];
        let queue_weight = entity.parent.map(|_| self.cfs[entity.cfs_rq].load_weight);
        prop_weight(weight, entity.load.weight, queue_weight)
    }

    /// `reweight_eevdf()`.
    pub(super) fn reweight_in_timeline(
        &mut self,
        timeline: CfsRqId,
        se: EntityId,
        weight: u64,
        queued: bool,
        cx: &Context,
    ) {
        let old = self.se[se].virtual_load().weight;
        let now = LoadWeight { weight, inv_weight: 0 };
        if old == weight {
            self.se[se].timeline_load = Some(now);
            return;
        }
        if !queued {
            let entity = &mut self.se[se];
            entity.rescale(old, weight, false);
            entity.timeline_load = Some(now);
            return;
        }
        let average = self.avg_vruntime(timeline);
        let lag = self.entity_lag(timeline, average, se, cx);
        let curr = self.cfs[timeline].curr == Some(se);
        let protected = curr && self.protect_slice(se, cx);
        if !curr {
            self.timeline_remove(timeline, se);
        }
        if cx.config.bugs.reweight_keeps_vruntime {
            self.rescale_deadline(se, weight);
            self.se[se].timeline_load = Some(now);
        } else {
            let entity = &mut self.se[se];
            entity.vlag = lag;
            entity.deadline = entity.deadline.wrapping_sub(average);
            entity.rel_deadline = true;
            if protected {
                entity.vprot = entity.vprot.wrapping_sub(average);
            }
            entity.rescale(old, weight, protected);
            entity.timeline_load = Some(now);
            if protected {
                entity.vprot = entity.vprot.wrapping_add(average);
            }
            entity.deadline = entity.deadline.wrapping_add(average);
            entity.rel_deadline = false;
            entity.vruntime = average.wrapping_sub(entity.vlag as u64);
        }
        if !curr {
            self.timeline_insert(timeline, se);
        }
    }

    /// Whether an entity, or one above it, is on this queue.
    fn is_on_the_way_of(&self, cfs_rq: CfsRqId, se: EntityId) -> bool {
        std::iter::successors(Some(se), |se| self.se[*se].parent)
            .any(|se| self.se[se].cfs_rq == cfs_rq)
    }

    // ---- what must hold -------------------------------------------------------------------------

    /// Asserts what the timeline of a CPU has to be: its queued tasks but the running one, and their sums.
    pub(crate) fn verify_flat(&self, cpu: CpuId, cx: &Context) {
        let id = self.rq[cpu].timeline;
        let (cfs, root) = (&self.cfs[id], &self.cfs[CfsRqId::root(cpu)]);
        assert_eq!(cfs.nr_queued, root.h_nr_queued, "{cpu:?}: tasks of the timeline");
        let running = self.curr_on_rq(id).is_some() as usize;
        assert_eq!(cfs.timeline.len() + running, cfs.nr_queued as usize, "{cpu:?}: timeline");
        for node in &cfs.timeline {
            let se = &self.se[node.se];
            assert!(se.my_q.is_none() && se.on_rq, "{cpu:?}: who is in the timeline");
            let times = (se.deadline, se.vruntime);
            assert_eq!((node.deadline, node.vruntime), times, "{cpu:?}: node");
            assert!(cfs.curr != Some(node.se), "{cpu:?}: the running task is queued");
        }
        self.verify_timeline(id, cx);
        for group in self.groups.ids() {
            let cfs = &self.cfs[self.groups[group].cfs_rq[cpu.index()]];
            assert!(cfs.timeline.is_empty(), "{cpu:?}: {group:?} has a timeline");
            let above = self.groups[group].se.get(cpu.index());
            let delayed = above.is_some_and(|se| self.se[*se].sched_delayed);
            assert!(!delayed, "{cpu:?}: {group:?} is delayed");
            let runs = cfs.curr.map(|se| self.se[se].cfs_rq);
            assert!(runs.is_none_or(|queue| queue == self.groups[group].cfs_rq[cpu.index()]));
        }
    }
}

impl Kernel {
    // ---- enqueue, dequeue -----------------------------------------------------------------------

    /// The middle of `enqueue_task_fair()`: the task's place in the hierarchy, and in the timeline.
    #[inline(never)]
    pub(super) fn enqueue_flat(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        let se = self.sched.tasks[task].se;
        let timeline = self.sched.rq[cpu].timeline;
        self.update_curr(timeline);
        // It has blocked, but has not been switched out.
        let curr = self.sched.cfs[timeline].curr == Some(se);
        if curr {
            self.sched.place_entity(timeline, se, flags, &self.cx);
        }
        let weight = self.enqueue_hierarchy(se, flags);
        if !curr {
            // It is on the queues' books already, but not in the timeline.
            self.sched.reweight_in_timeline(timeline, se, weight, false, &self.cx);
            self.sched.place_entity(timeline, se, flags, &self.cx);
            self.sched.timeline_insert(timeline, se);
        }
        self.sched.cfs[timeline].nr_queued += 1;
    }

    /// `enqueue_hierarchy()`; the task's weight in the timeline.
    fn enqueue_hierarchy(&mut self, se: EntityId, mut flags: u32) -> u64 {
        let task = self.sched.se[se].task;
        let still_delayed = flags & ENQUEUE_WAKEUP == 0 && self.sched.se[se].sched_delayed;
        let mut idle = (self.sched.tasks[task].policy == Policy::Idle) as u32;
        let mut weight = NICE_0_LOAD;
        let mut level = Some(se);
        while let Some(id) = level {
            let cfs_rq = self.sched.se[id].cfs_rq;
            self.update_curr(cfs_rq);
            if self.sched.se[id].on_rq {
                self.stays_queued(id, None);
            } else {
                self.enqueue_level(cfs_rq, id, flags);
            }
            idle = self.sched.cfs[cfs_rq].count_in(still_delayed, idle);
            weight = self.sched.calc_prop_weight(id, weight);
            flags = ENQUEUE_WAKEUP;
            level = self.sched.se[id].parent;
        }
        weight
    }

    /// `enqueue_entity()`.
    fn enqueue_level(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32) {
        self.update_load_avg(cfs_rq, se, UPDATE_TG | DO_ATTACH);
        self.sched.se_update_runnable(se);
        self.update_cfs_group(se);
        let (cfs, entity) = (&mut self.sched.cfs[cfs_rq], &mut self.sched.se[se]);
        cfs.load_weight += entity.load.weight;
        cfs.nr_queued += 1;
        if flags & ENQUEUE_MIGRATED != 0 {
            // It counts as not cache hot.
            entity.exec_start = 0;
        }
        entity.on_rq = true;
        if entity.my_q.is_none() {
            let (cpu, task) = (cfs.cpu, entity.task);
            self.sched.task_is_queued(cpu, se, task);
        }
        if self.sched.cfs[cfs_rq].nr_queued == 1 && self.sched.is_of_group(cfs_rq) {
            self.queue_begins(cfs_rq);
        }
    }

    /// `__dequeue_task()`; `false`: the task stays, delayed.
    pub(super) fn dequeue_flat(&mut self, cpu: CpuId, se: EntityId, flags: u32) -> bool {
        let task = self.sched.se[se].task;
        let timeline = self.sched.rq[cpu].timeline;
        let was_sched_idle = self.sched.sched_idle_cpu(cpu);
        let (sleep, finishing) = (flags & DEQUEUE_SLEEP != 0, flags & DEQUEUE_DELAYED != 0);
        self.sched.clear_buddies(timeline, se);
        self.update_curr(timeline);
        self.sched.before_delaying(timeline, se, &self.cx);
        let at_once = DEQUEUE_SPECIAL | DEQUEUE_THROTTLE | DEQUEUE_DELAYED;
        let delay = sleep && flags & at_once == 0;
        if self.cx.config.features.delay_dequeue
            && delay
            && !self.sched.entity_eligible(timeline, se)
        {
            self.update_load_avg(self.sched.se[se].cfs_rq, se, 0);
            self.sched.learns_within_dequeue(se, &self.cx);
            self.sched.set_delayed(se);
            return false;
        }
        self.dequeue_hierarchy(se, flags);
        self.sched.before_leaving(timeline, se, flags, &self.cx);
        if self.sched.cfs[timeline].curr != Some(se) {
            self.sched.timeline_remove(timeline, se);
        }
        self.sched.cfs[timeline].nr_queued -= 1;
        self.sched.sub_nr_running(cpu, 1);
        if self.cx.uclamp_sums() {
            self.sched.util_bias_dequeue(cpu, task, &self.cx);
        }
        if !was_sched_idle && self.sched.sched_idle_cpu(cpu) {
            self.sched.rq[cpu].next_balance = self.cx.jiffies();
        }
        if finishing {
            self.sched.se[se].sched_delayed = false;
            self.sched.for_each_level(se, |cfs| cfs.h_nr_delayed -= 1);
            self.sched.finish_block_task(task);
        }
        true
    }

    /// `dequeue_hierarchy()`. Of a delayed task that leaves, the levels above still count one runnable task too few when they
    /// look: `clear_delayed()` comes after them.
    fn dequeue_hierarchy(&mut self, se: EntityId, mut flags: u32) {
        let finishing = flags & DEQUEUE_DELAYED != 0;
        let throttles = flags & DEQUEUE_THROTTLE != 0;
        let moves_delayed =
            !finishing && flags & DEQUEUE_SLEEP == 0 && self.sched.se[se].sched_delayed;
        let mut idle = (self.sched.tasks[self.sched.se[se].task].policy == Policy::Idle) as u32;
        let mut leaves = true;
        let mut level = Some(se);
        while let Some(id) = level {
            let cfs_rq = self.sched.se[id].cfs_rq;
            self.update_curr(cfs_rq);
            if leaves {
                self.dequeue_level(cfs_rq, id, flags);
                leaves = self.sched.cfs[cfs_rq].load_weight == 0;
            } else {
                self.stays_queued(id, None);
            }
            let cfs = &mut self.sched.cfs[cfs_rq];
            if moves_delayed {
                cfs.h_nr_delayed -= 1;
            } else if !finishing {
                cfs.h_nr_runnable -= 1;
            }
            cfs.h_nr_queued -= 1;
            cfs.h_nr_idle -= idle;
            if cfs.idle {
                idle = 1;
            }
            if throttles {
                self.sched.record_throttle_clock(cfs_rq);
            }
            flags = (flags | DEQUEUE_SLEEP) & !(DEQUEUE_DELAYED | DEQUEUE_SPECIAL);
            level = self.sched.se[id].parent;
        }
    }

    /// `dequeue_entity()`.
    fn dequeue_level(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32) {
        let entity = &self.sched.se[se];
        let is_task = entity.my_q.is_none();
        let migrating = is_task && self.sched.tasks[entity.task].on_rq == OnRq::Migrating;
        self.update_load_avg(cfs_rq, se, UPDATE_TG | if migrating { DO_DETACH } else { 0 });
        if is_task && flags & DEQUEUE_SLEEP != 0 && flags & DEQUEUE_DELAYED == 0 {
            self.sched.learns_within_dequeue(se, &self.cx);
        }
        self.sched.se_update_runnable(se);
        let (cfs, entity) = (&mut self.sched.cfs[cfs_rq], &mut self.sched.se[se]);
        entity.on_rq = false;
        cfs.load_weight -= entity.load.weight;
        cfs.nr_queued -= 1;
        if is_task {
            let (cpu, task) = (cfs.cpu, entity.task);
            self.sched.task_is_dequeued(cpu, se, task);
        }
        let limited = self.sched.cfs_bandwidth_used();
        if limited {
            self.sched.return_cfs_rq_runtime(cfs_rq, &mut self.time, &mut self.cx);
        }
        self.update_cfs_group(se);
        if limited {
            self.queue_may_end(cfs_rq);
        }
    }

    // ---- pick, put, set, tick -------------------------------------------------------------------

    /// `pick_task_fair()`.
    #[inline(never)]
    pub(super) fn pick_flat(
        &mut self,
        cpu: CpuId,
        see: &mut impl DecisionObserver,
    ) -> Option<TaskId> {
        let timeline = self.sched.rq[cpu].timeline;
        loop {
            see.pick_begins();
            if self.sched.cfs[timeline].nr_queued == 0 {
                return None;
            }
            if self.sched.curr_on_rq(timeline).is_some() {
                self.update_curr(timeline);
            }
            let picked = self.sched.pick_next_entity(timeline, true, see, &self.cx);
            let se = picked.expect("a queue that is not empty has a best");
            self.sched.note_pick(see, timeline, se, &self.cx);
            if !self.sched.se[se].sched_delayed {
                return Some(self.sched.se[se].task);
            }
            self.dequeue_flat(cpu, se, DEQUEUE_SLEEP | DEQUEUE_DELAYED);
        }
    }

    /// `put_prev_task_fair()`; `next`: levels that it has in common with the task that comes go on running.
    pub(super) fn put_prev_flat(&mut self, cpu: CpuId, prev: TaskId, next: Option<TaskId>) {
        let next = next.map(|next| self.sched.tasks[next].se);
        let se = self.sched.tasks[prev].se;
        let mut level = Some(se);
        while let Some(id) = level {
            let cfs_rq = self.sched.se[id].cfs_rq;
            self.put_prev_level(cfs_rq, id);
            if next.is_some_and(|next| self.sched.is_on_the_way_of(cfs_rq, next)) {
                break;
            }
            level = self.sched.se[id].parent;
        }
        let timeline = self.sched.rq[cpu].timeline;
        self.sched.cfs[timeline].curr = None;
        if self.sched.se[se].on_rq {
            self.sched.timeline_insert(timeline, se);
        }
    }

    /// `put_prev_entity()`.
    fn put_prev_level(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        if self.sched.se[se].on_rq {
            self.update_curr(cfs_rq);
            self.update_load_avg(cfs_rq, se, 0);
        }
        self.sched.cfs[cfs_rq].curr = None;
    }

    /// `set_next_task_fair()`; `first`: it is being switched to, and levels that run already go on.
    pub(super) fn set_next_flat(&mut self, cpu: CpuId, next: TaskId, first: bool) {
        let timeline = self.sched.rq[cpu].timeline;
        let se = self.sched.tasks[next].se;
        let on_rq = self.sched.se[se].on_rq;
        self.sched.clear_buddies(timeline, se);
        if on_rq {
            self.sched.timeline_remove(timeline, se);
        }
        let mut weight = NICE_0_LOAD;
        let mut level = Some(se);
        while let Some(id) = level {
            let cfs_rq = self.sched.se[id].cfs_rq;
            if !first || self.sched.cfs[cfs_rq].curr.is_none() {
                self.set_next_level(cfs_rq, id);
            }
            if on_rq {
                weight = self.sched.calc_prop_weight(id, weight);
            }
            level = self.sched.se[id].parent;
        }
        if self.sched.cfs_bandwidth_used() {
            self.assign_runtime_to(next);
        }
        self.sched.cfs[timeline].curr = Some(se);
        if on_rq {
            self.sched.reweight_in_timeline(timeline, se, weight, true, &self.cx);
            self.sched.installed(timeline, se, first, &self.cx);
        }
        self.next_task_is_set(cpu, next, first);
    }

    /// `set_next_entity()`.
    fn set_next_level(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        if self.sched.se[se].on_rq {
            self.update_load_avg(cfs_rq, se, UPDATE_TG);
        }
        let clock_task = self.sched.rq[self.sched.cpu_of(cfs_rq)].clock_task;
        let entity = &mut self.sched.se[se];
        entity.exec_start = clock_task;
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
        self.sched.cfs[cfs_rq].curr = Some(se);
    }

    /// The first half of `task_tick_fair()`.
    pub(super) fn tick_flat(&mut self, cpu: CpuId, curr: TaskId) {
        let se = self.sched.tasks[curr].se;
        if !self.sched.se[se].on_rq {
            return;
        }
        let mut weight = NICE_0_LOAD;
        let mut level = Some(se);
        while let Some(id) = level {
            self.entity_tick(id);
            weight = self.sched.calc_prop_weight(id, weight);
            level = self.sched.se[id].parent;
        }
        self.sched.reweight_in_timeline(self.sched.rq[cpu].timeline, se, weight, true, &self.cx);
    }
}
