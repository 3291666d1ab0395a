// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups: how CPU time is shared between cgroups, and their tasks compete within them.
//!
//! **Decides** the weight with which a group's entity competes on each CPU.
//!
//! **Idea.** A group has a run queue and an entity on every CPU. Its tasks compete on its run queue; its
//! entity competes on the run queue above, on behalf of all of them. The group's `shares` are one number for the
//! whole machine, so each CPU gets the part of them that its load is of the group's load:
//!
//! ```text
//!   root cfs_rq of CPU 0          root cfs_rq of CPU 1        shares 1024, load 3 : 1
//!    ├── task                      └── entity (weight 256)
//!    └── entity (weight 768)            └── group's cfs_rq ── task
//!         └── group's cfs_rq ── task, task, task
//! ```
//!
//! The load of the others is not looked up but kept in the group's `load_avg`, to which each CPU
//! contributes what it had last, when that has moved by more than 1/64 (and not within a millisecond).
//!
//! Signals climb: what is attached to a group's run queue or leaves it changes the entity above
//! (`propagate_entity_load_avg`), and so the root's utilisation is that of all tasks below.
//!
//! **Algorithm of `update_cfs_group`.** 1. load = the larger of the queued weight and `load_avg`. 2. total =
//! the group's `load_avg`, with this CPU's contribution replaced by load. 3. weight = shares · load / total, at least
//! 2, at most shares. 7.3 takes n times the shares, where n is the group's runnable tasks, or CPUs if those are fewer
//! (`group_shares`): n tasks weigh n groups. 4. The entity is reweighted where it stands: its lag and what is left of its
//! slice keep their worth in real time. A group that has become empty keeps its weight, as its entity may still
//! wait to be dequeued.
//!
//! **Idle groups** (`cpu.idle`) stand to their neighbours as `SCHED_IDLE` tasks do: shares of 3,
//! preempted by all that are not idle, less credit after a sleep. All tasks below one count as idle
//! in the queues above it, whatever their policy, so a CPU that runs nothing else is as good as an
//! idle one for a wakee (`sched_idle_cpu`).
//!
//! Kernel: 6.12.95 and 7.3.4 kernel/sched/fair.c `calc_group_shares`, `update_cfs_group`, `reweight_entity`,
//! `update_tg_load_avg`, `propagate_entity_load_avg`, `task_change_group_fair`, kernel/sched/core.c
//! `sched_move_task`, `sched_group_set_shares`, `sched_group_set_idle`; before 6.6 as in 6.1.192.
//! Differences: groups are made before the run and stay, and have all CPUs (no cpusets); the list of a CPU's
//! leaf queues is children first, in other respects not in Linux's order, which nothing depends on but roundings
//! of simultaneous changes; `task_h_load` is not cached per jiffy.

use super::{NICE_0_LOAD, scale_load_down, weight_of};
use crate::sched::CfsRq;
use crate::{Context, Scheduler};
mod shares;

pub use shares::{GroupLoad, MIN_SHARES, calc_group_shares, contribution_delta};
use shares::{contributes_by_rq_clock, contributes_once_per_ms};

use crate::Kernel;
use crate::arena::Id;
use crate::cpufreq::hook::FrequencyHook;
use crate::policy::CgroupChange;
use crate::sched::core::{
    DEQUEUE_MOVE, DEQUEUE_NOCLOCK, DEQUEUE_SAVE, ENQUEUE_NOCLOCK, ENQUEUE_RESTORE,
};
use crate::sched::demand::uclamp::group::GroupClamps;
use crate::sched::ext::weight_to_cgroup;
use crate::sched::fair::bandwidth::CfsBandwidth;
use crate::sched::fair::eevdf::Reweighted;
use crate::sched::fair::load_avg::UPDATE_TG;
use crate::sched::{CfsRqId, Class, EntityId, LoadWeight, SchedEntity, pelt};
use schedtwin_types::{
    CpuId, CpuMax, FactKind, GroupWeight, Policy, TaskGroupFiles, TaskGroupId, TaskId,
};

/// `MAX_SHARES`.
const MAX_SHARES: u64 = 1 << 18;
/// `WEIGHT_IDLEPRIO`: the shares of an idle group.
const IDLE_SHARES: u64 = 3;
/// The shortest time between two changes of a CPU's contribution to a group's `load_avg`, where
/// that is limited.
const TG_LOAD_AVG_NS: u64 = 1_000_000;

/// `sched_weight_from_cgroup()`: `cpu.weight` (1..=10000) as shares: 100 is 1024, to the nearest.
///
/// ```
/// use schedtwin_kernel::sched::fair::group::sched_weight_from_cgroup;
/// assert_eq!(sched_weight_from_cgroup(100), 1024);
/// assert_eq!(sched_weight_from_cgroup(3), 31); // 30.72
/// assert_eq!(sched_weight_from_cgroup(10_000), 102_400);
/// ```
pub fn sched_weight_from_cgroup(weight: u16) -> u64 {
    (u64::from(weight) * 1024 + 50) / 100
}

/// `struct task_group`.
#[derive(Clone, Debug)]
pub struct TaskGroup {
    /// The group above; `None` for the root.
    pub parent: Option<TaskGroupId>,
    /// The newest group below it.
    pub first_child: Option<TaskGroupId>,
    /// The next older group below the same one.
    pub next_sibling: Option<TaskGroupId>,
    /// `cpu.shares` (1024 by default), `<< 10`.
    pub shares: u64,
    /// The sum of the CPUs' contributions.
    pub load_avg: i64,
    /// The sum of their contributions of their queues' `runnable_avg` (7.3).
    pub runnable_avg: i64,
    /// `cpu.idle`.
    pub idle: bool,
    /// Its run queue of each CPU.
    pub cfs_rq: Vec<CfsRqId>,
    /// Its entity on each CPU; none for the root.
    pub se: Vec<EntityId>,
    /// Its utilisation clamps.
    pub uclamp: GroupClamps,
    /// `cpu.max`.
    pub bandwidth: CfsBandwidth,
}

impl TaskGroup {
    /// The root of a machine with `nr_cpus` CPUs.
    pub(crate) fn root(nr_cpus: usize, uclamp: GroupClamps) -> TaskGroup {
        let cfs_rq = (0..nr_cpus).map(|cpu| CfsRqId::root(CpuId(cpu as u16))).collect();
        TaskGroup {
            parent: None,
            first_child: None,
            next_sibling: None,
            shares: NICE_0_LOAD,
            load_avg: 0,
            runnable_avg: 0,
            idle: false,
            cfs_rq,
            se: Vec::new(),
            uclamp,
            bandwidth: CfsBandwidth::default(),
        }
    }
}

impl Scheduler {
    /// `sched_create_group()`: a group below `parent` with `shares` (`cpu.shares`, 2..=2^18, 1024 by default).
    pub(crate) fn new_task_group(
        &mut self,
        parent: TaskGroupId,
        shares: u64,
        cx: &Context,
    ) -> TaskGroupId {
        let built = cx.config.fair_group_sched;
        assert!(built, "groups need CONFIG_FAIR_GROUP_SCHED");
        let id = TaskGroupId::from_index(self.groups.len());
        let above = &self.groups[parent];
        let (above_se, above_cfs_rq) = (above.se.clone(), above.cfs_rq.clone());
        let (mut entities, mut queues) = (Vec::new(), Vec::new());
        for (c, &cfs_rq) in above_cfs_rq.iter().enumerate() {
            let hint = cx.platform.device_tree.nr_threads_hint;
            let queue = CfsRq::new(CpuId(c as u16), hint, &cx.config);
            let my_q = self.cfs.push(crate::sched::CfsRq { group: id, ..queue });
            let parent = above_se.get(c).copied();
            entities.push(self.se.push(SchedEntity {
                avg: pelt::init_entity(None),
                vruntime: 0,
                deadline: 0,
                vlag: 0,
                vprot: 0,
                slice: self.base_slice,
                exec_start: 0,
                sum_exec_runtime: 0,
                prev_sum_exec_runtime: 0,
                load: LoadWeight { weight: NICE_0_LOAD, inv_weight: 0 },
                timeline_load: None,
                on_rq: false,
                sched_delayed: false,
                custom_slice: false,
                rel_deadline: false,
                parent,
                depth: parent.map_or(0, |p| self.se[p].depth + 1),
                cfs_rq,
                my_q: Some(my_q),
                runnable_weight: 0,
                task: TaskId::IDLE,
            }));
            queues.push(my_q);
        }
        let shares = shares.clamp(MIN_SHARES as u64, MAX_SHARES) << 10;
        let group = TaskGroup {
            parent: Some(parent),
            first_child: None,
            next_sibling: self.groups[parent].first_child,
            shares,
            load_avg: 0,
            runnable_avg: 0,
            idle: false,
            cfs_rq: queues.clone(),
            se: entities.clone(),
            uclamp: GroupClamps::new(self.groups[parent].uclamp),
            bandwidth: CfsBandwidth::default(),
        };
        let pushed = self.groups.push(group);
        debug_assert_eq!(pushed, id);
        self.groups[parent].first_child = Some(id);
        self.sync_throttle(id);
        self.choose_group_tree(cx);
        // online_fair_sched_group(): attached from the start; before time begins there is nothing to age.
        let floor = cx.attach_floor();
        for se in entities {
            let entity = &mut self.se[se];
            let (cfs_rq, weight) = (entity.cfs_rq, scale_load_down(entity.load.weight));
            let cfs = &mut self.cfs[cfs_rq];
            let joined = cfs.avg.change(cfs.cpu, &mut self.stale_demands, |avg| {
                pelt::attach_entity(avg, &mut entity.avg, weight, floor)
            });
            self.add_tg_cfs_propagate(cfs_rq, joined);
            self.list_add_leaf_cfs_rq(cfs_rq);
        }
        id
    }

    /// Whether a run queue is not a CPU's own, told by its number alone: those come first.
    #[inline(always)]
    pub(super) fn is_of_group(&self, cfs_rq: CfsRqId) -> bool {
        cfs_rq.0 as usize >= self.rq.len()
    }

    /// `set_task_rq()`: the run queue and the entity above, by group and CPU.
    #[inline(always)]
    pub(crate) fn set_task_rq(&mut self, task: TaskId, cpu: CpuId) {
        let t = &self.tasks[task];
        let entity = &mut self.se[t.se];
        if t.group == TaskGroupId::ROOT {
            entity.cfs_rq = CfsRqId::root(cpu);
            (entity.parent, entity.depth) = (None, 0);
        } else {
            let group = &self.groups[t.group];
            let parent = group.se[cpu.index()];
            entity.cfs_rq = group.cfs_rq[cpu.index()];
            entity.parent = Some(parent);
            let depth = self.se[parent].depth + 1;
            self.se[t.se].depth = depth;
        }
    }

    /// A task's run queue if it were on `cpu`.
    pub(crate) fn task_cfs_rq_on(&self, task: TaskId, cpu: CpuId) -> CfsRqId {
        self.groups[self.tasks[task].group].cfs_rq[cpu.index()]
    }

    /// `propagate_entity_load_avg()` of a group's entity: what has changed on its run queue is carried
    /// into the entity and the run queue above; whether there was anything.
    #[inline(never)]
    pub(super) fn propagate_entity_load_avg(
        &mut self,
        se: EntityId,
        my_q: CfsRqId,
        cx: &Context,
    ) -> bool {
        if !std::mem::take(&mut self.cfs[my_q].propagate) {
            return false;
        }
        let pending = std::mem::take(&mut self.cfs[my_q].prop_runnable_sum);
        let cfs_rq = self.se[se].cfs_rq;
        self.add_tg_cfs_propagate(cfs_rq, pending);
        let (below, weight_below) = (*self.cfs[my_q].avg, self.cfs[my_q].load_weight);
        let runnable_sum = cx.config.tg_runnable_sum;
        let entity = &mut self.se[se];
        let weight = scale_load_down(entity.load.weight);
        let weight_below = scale_load_down(weight_below);
        let cfs = &mut self.cfs[cfs_rq];
        cfs.avg.change(cfs.cpu, &mut self.stale_demands, |above| {
            pelt::propagate_util(above, &mut entity.avg, &below);
            pelt::propagate_runnable(above, &mut entity.avg, &below, runnable_sum);
            pelt::propagate_load(above, &mut entity.avg, &below, pending, weight_below, weight);
        });
        true
    }

    /// `add_tg_cfs_propagate()`; of no consequence for a root's queue, which has nothing above.
    #[inline(always)]
    pub(super) fn add_tg_cfs_propagate(&mut self, cfs_rq: CfsRqId, runnable_sum: i64) {
        if self.is_of_group(cfs_rq) {
            let cfs = &mut self.cfs[cfs_rq];
            cfs.propagate = true;
            cfs.prop_runnable_sum = cfs.prop_runnable_sum.wrapping_add(runnable_sum);
        }
    }

    // ---- weights --------------------------------------------------------------------------------

    /// `update_tg_load_avg()`: this CPU's contribution to the group's load.
    #[inline(always)]
    pub(super) fn update_tg_load_avg(&mut self, cfs_rq: CfsRqId, cx: &mut Context) {
        if self.is_of_group(cfs_rq) {
            self.contribute_to_group(cfs_rq, cx);
        }
    }

    fn contribute_to_group(&mut self, cfs_rq: CfsRqId, cx: &mut Context) {
        let form = cx.config.tg_load_avg;
        let now = match contributes_by_rq_clock(form) {
            true => self.rq[self.cpu_of(cfs_rq)].clock,
            false => cx.local_clock(),
        };
        let cfs = &mut self.cfs[cfs_rq];
        let since = now.wrapping_sub(cfs.last_update_tg_load_avg);
        if contributes_once_per_ms(form) && since < TG_LOAD_AVG_NS {
            return;
        }
        let load = (cfs.avg.load_avg, cfs.tg_load_avg_contrib);
        let runnable = (cfs.avg.runnable_avg, cfs.tg_runnable_avg_contrib);
        if let Some((load_delta, runnable_delta)) = contribution_delta(form, load, runnable) {
            let group = &mut self.groups[cfs.group];
            group.load_avg += load_delta;
            group.runnable_avg += runnable_delta;
            cfs.tg_load_avg_contrib = load.0;
            cfs.tg_runnable_avg_contrib = runnable.1.wrapping_add_signed(runnable_delta);
            cfs.last_update_tg_load_avg = now;
            let group = cfs.group;
            self.fetch(cx, |lines, at| lines.group_load(group, true, at));
        }
    }

    /// `calc_group_shares()`: the part of a group's shares that its queue on one CPU is worth. Read-only:
    /// the decision alone.
    fn calc_group_shares(&self, cfs_rq: CfsRqId, cx: &Context) -> u64 {
        let cfs = &self.cfs[cfs_rq];
        let group = &self.groups[cfs.group];
        let mut load = scale_load_down(cfs.load_weight).max(cfs.avg.load_avg);
        if cx.config.bugs.group_load_zero && cfs.load_weight >> 10 == 0 {
            load = 0;
        }
        let whole = GroupLoad {
            shares: group.shares,
            load_avg: group.load_avg,
            runnable_avg: group.runnable_avg,
            cpus: self.rq.len() as u32,
        };
        calc_group_shares(cx.config.group_shares, &whole, cfs.tg_load_avg_contrib, load)
    }

    // ---- walks ----------------------------------------------------------------------------------

    /// `se_update_runnable()`: how many tasks a group's entity stands for.
    #[inline(always)]
    pub(super) fn se_update_runnable(&mut self, se: EntityId) {
        if let Some(my_q) = self.se[se].my_q {
            let below = &self.cfs[my_q];
            self.se[se].runnable_weight = below.h_nr_queued.wrapping_sub(below.h_nr_delayed);
        }
    }

    /// `find_matching_se()`: the ancestors of two tasks of one CPU that compete with each other.
    #[inline(always)]
    pub(super) fn find_matching_se(
        &self,
        mut se: EntityId,
        mut pse: EntityId,
    ) -> (EntityId, EntityId) {
        let above =
            |se: EntityId| self.se[se].parent.expect("two tasks of a CPU have a common root");
        while self.se[se].cfs_rq != self.se[pse].cfs_rq {
            let (depth, pdepth) = (self.se[se].depth, self.se[pse].depth);
            if depth >= pdepth {
                se = above(se);
            }
            if pdepth >= depth {
                pse = above(pse);
            }
        }
        (se, pse)
    }

    // ---- leaf queues ----------------------------------------------------------------------------

    /// `list_add_leaf_cfs_rq()`: a group's queue takes part in the decay of its CPU's averages.
    #[inline(always)]
    pub(super) fn list_add_leaf_cfs_rq(&mut self, cfs_rq: CfsRqId) {
        if self.is_of_group(cfs_rq) && !self.cfs[cfs_rq].on_list {
            self.add_leaf(cfs_rq);
        }
    }

    fn list_add_leaf_unless_throttled(&mut self, cfs_rq: CfsRqId) {
        if !self.cfs[cfs_rq].bandwidth.pelt_clock_throttled {
            self.list_add_leaf_cfs_rq(cfs_rq);
        }
    }

    /// `list_del_leaf_cfs_rq()`.
    pub(super) fn list_del_leaf_cfs_rq(&mut self, cfs_rq: CfsRqId) {
        let cfs = &mut self.cfs[cfs_rq];
        if std::mem::take(&mut cfs.on_list) {
            self.rq[cfs.cpu].leaf_cfs_rqs.retain(|id| *id != cfs_rq);
        }
    }

    fn add_leaf(&mut self, cfs_rq: CfsRqId) {
        self.cfs[cfs_rq].on_list = true;
        let (cpu, group) = (self.cpu_of(cfs_rq), self.cfs[cfs_rq].group);
        let is_above = |other: TaskGroupId| {
            std::iter::successors(self.groups[group].parent, |g| self.groups[*g].parent)
                .any(|above| above == other)
        };
        let leaves = &self.rq[cpu].leaf_cfs_rqs;
        let at = leaves.iter().position(|id| is_above(self.cfs[*id].group)).unwrap_or(leaves.len());
        self.rq[cpu].leaf_cfs_rqs.insert(at, cfs_rq);
    }

    /// `cfs_rq_is_decayed()` of the queue at `at` of its CPU's list, or behind it.
    pub(super) fn cfs_rq_is_decayed(&self, cfs_rq: CfsRqId, at: usize) -> bool {
        let cfs = &self.cfs[cfs_rq];
        let has_child = || {
            let before = &self.rq[cfs.cpu].leaf_cfs_rqs[..at];
            before.iter().any(|id| self.groups[self.cfs[*id].group].parent == Some(cfs.group))
        };
        cfs.load_weight == 0
            && pelt::load_avg_is_decayed(&cfs.avg)
            && cfs.tg_load_avg_contrib == 0
            && !has_child()
    }

    /// Returns the load of `cfs_rq` that counts at the root (`task_h_load`,
    /// `update_cfs_rq_h_load`).
    pub(super) fn h_load(&self, cfs_rq: CfsRqId) -> u64 {
        let cfs = &self.cfs[cfs_rq];
        match self.groups[cfs.group].se.get(cfs.cpu.index()) {
            None => cfs.avg.load_avg,
            Some(&se) => {
                let above = self.se[se].cfs_rq;
                let product = self.h_load(above).wrapping_mul(self.se[se].avg.load_avg);
                product / (self.cfs[above].avg.load_avg + 1)
            }
        }
    }
}

impl Kernel {
    /// `cpu_cgroup_attach()` of the running task by itself: it writes its number into a cgroup's file.
    pub(crate) fn cpu_cgroup_attach(&mut self, task: TaskId, cgroup: TaskGroupId) {
        if self.sched.tasks[task].cgroup == cgroup || !self.scx_cgroup_can_attach(task, cgroup) {
            return;
        }
        self.sched.tasks[task].cgroup = cgroup;
        self.cx.fact(FactKind::CgroupAttach { task, group: cgroup });
        self.sched_move_task(task);
    }

    /// `sched_move_task()` of the running task: its cgroup or its session is another one.
    pub(crate) fn sched_move_task(&mut self, task: TaskId) {
        let group = self.sched.autogroup_task_group(task);
        let cpu = self.sched.tasks[task].cpu;
        self.sched.update_rq_clock(cpu, &self.cx);
        self.dequeue_task(cpu, task, DEQUEUE_SAVE | DEQUEUE_MOVE | DEQUEUE_NOCLOCK);
        self.put_running(cpu, task);
        let fair = self.sched.tasks[task].class == Class::Fair;
        let se = self.sched.tasks[task].se;
        if fair {
            self.detach_entity_cfs_rq(se);
            self.sched.se[se].avg.last_update_time = 0;
        }
        let from = self.sched.scx_cgroup_of(task);
        self.sched.tasks[task].group = group;
        self.scx_cgroup_move_task(task, from);
        if !fair {
            self.sched.set_task_rq_fair(task, cpu, &self.cx);
        }
        self.sched.set_task_rq(task, cpu);
        if fair {
            self.attach_entity_cfs_rq(se);
        }
        self.enqueue_task(cpu, task, ENQUEUE_RESTORE | DEQUEUE_MOVE | ENQUEUE_NOCLOCK);
        self.set_running(cpu, task);
        self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
    }

    /// Writes files of groups before time begins. The writers have exited, so the changes ask for
    /// no frequency yet.
    pub fn boot_task_groups(&mut self, files: &[TaskGroupFiles]) {
        let hook = self.cpufreq.replace_hook(FrequencyHook::None);
        for files in files {
            self.write_task_group(files);
        }
        self.cpufreq.replace_hook(hook);
    }

    /// Writes files of a group. The caller has checked what the kernel would refuse.
    pub fn write_task_group(&mut self, files: &TaskGroupFiles) {
        match files.weight {
            Some(GroupWeight::Weight(weight)) => {
                self.sched_group_set_shares(files.group, sched_weight_from_cgroup(weight));
                self.scx_group_set(files.group, CgroupChange::Weight(weight.into()));
            }
            Some(GroupWeight::Nice(nice)) => {
                let shares = scale_load_down(weight_of(Policy::Normal, nice).weight);
                self.sched_group_set_shares(files.group, shares);
                let weight = weight_to_cgroup(shares);
                self.scx_group_set(files.group, CgroupChange::Weight(weight));
            }
            None => {}
        }
        if let Some(idle) = files.idle {
            self.sched_group_set_idle(files.group, idle);
            self.scx_group_set(files.group, CgroupChange::Idle(idle));
        }
        let burst = files.burst.unwrap_or(0);
        if let Some(CpuMax { quota, period }) = files.max {
            self.tg_set_cfs_bandwidth(files.group, period, quota, 0);
            if burst != 0 {
                self.tg_set_cfs_bandwidth(files.group, period, quota, burst);
            }
            let (period_us, burst_us) = (period / 1000, burst / 1000);
            let quota_us = quota.map_or(u64::MAX, |quota| quota / 1000);
            let change = CgroupChange::Bandwidth { period_us, quota_us, burst_us };
            self.scx_group_set(files.group, change);
        }
        self.sched.cpu_uclamp_write(files.group, files.uclamp_min, files.uclamp_max, &self.cx);
    }

    /// `sched_group_set_shares()`: `cpu.shares`, 2..=2^18, of a group that is not idle.
    pub fn sched_group_set_shares(&mut self, group: TaskGroupId, shares: u64) {
        assert!(group != TaskGroupId::ROOT, "the root has no weight");
        assert!(!self.sched.groups[group].idle, "an idle group keeps its weight");
        self.set_shares(group, shares);
    }

    fn set_shares(&mut self, group: TaskGroupId, shares: u64) {
        let shares = shares.clamp(MIN_SHARES as u64, MAX_SHARES) << 10;
        if std::mem::replace(&mut self.sched.groups[group].shares, shares) == shares {
            return;
        }
        for cpu in self.sched.rq.ids() {
            self.sched.update_rq_clock(cpu, &self.cx);
            let mut level = Some(self.sched.groups[group].se[cpu.index()]);
            while let Some(se) = level {
                self.update_load_avg(self.sched.se[se].cfs_rq, se, UPDATE_TG);
                self.update_cfs_group(se);
                level = self.sched.se[se].parent;
            }
        }
    }

    /// `sched_group_set_idle()`: `cpu.idle`. A group that is no longer idle gets the shares of a new one.
    pub fn sched_group_set_idle(&mut self, group: TaskGroupId, idle: bool) {
        assert!(group != TaskGroupId::ROOT, "the root cannot be idle");
        if std::mem::replace(&mut self.sched.groups[group].idle, idle) == idle {
            return;
        }
        for cpu in self.sched.rq.ids() {
            let my_q = self.sched.groups[group].cfs_rq[cpu.index()];
            let cfs = &mut self.sched.cfs[my_q];
            cfs.idle = idle;
            // A task that has counted as busy above counts as idle, or the other way round.
            let changed = cfs.h_nr_queued - cfs.h_nr_idle;
            let mut level = Some(self.sched.groups[group].se[cpu.index()]);
            while let Some(se) = level
                && self.sched.se[se].on_rq
            {
                let above = &mut self.sched.cfs[self.sched.se[se].cfs_rq];
                match idle {
                    true => above.h_nr_idle += changed,
                    false => above.h_nr_idle -= changed,
                }
                if above.idle {
                    break;
                }
                level = self.sched.se[se].parent;
            }
            self.sched.refresh_sched_idle(cpu);
        }
        self.set_shares(group, if idle { IDLE_SHARES } else { NICE_0_LOAD >> 10 });
    }

    // ---- attach and detach ----------------------------------------------------------------------

    /// `attach_entity_cfs_rq()`.
    pub(crate) fn attach_entity_cfs_rq(&mut self, se: EntityId) {
        let cfs_rq = self.sched.se[se].cfs_rq;
        self.update_load_avg(cfs_rq, se, 0);
        self.attach_entity_load_avg(cfs_rq, se);
        self.sched.update_tg_load_avg(cfs_rq, &mut self.cx);
        self.propagate_entity_cfs_rq(se);
    }

    /// `detach_entity_cfs_rq()`.
    pub(crate) fn detach_entity_cfs_rq(&mut self, se: EntityId) {
        if self.sched.se[se].avg.last_update_time == 0 {
            return;
        }
        let cfs_rq = self.sched.se[se].cfs_rq;
        self.update_load_avg(cfs_rq, se, 0);
        self.detach_entity_load_avg(cfs_rq, se);
        self.sched.update_tg_load_avg(cfs_rq, &mut self.cx);
        self.propagate_entity_cfs_rq(se);
    }

    /// `propagate_entity_cfs_rq()`: all levels above learn at once.
    fn propagate_entity_cfs_rq(&mut self, se: EntityId) {
        let own = self.sched.se[se].cfs_rq;
        if self.sched.cfs[own].bandwidth.dequeued {
            return;
        }
        self.sched.list_add_leaf_unless_throttled(own);
        let mut level = self.sched.se[se].parent;
        while let Some(se) = level {
            let cfs_rq = self.sched.se[se].cfs_rq;
            self.update_load_avg(cfs_rq, se, UPDATE_TG);
            if self.sched.cfs[cfs_rq].bandwidth.dequeued {
                return;
            }
            self.sched.list_add_leaf_unless_throttled(cfs_rq);
            level = self.sched.se[se].parent;
        }
    }

    /// `update_cfs_group()`: the weight of a group's entity follows the group's load; nothing for a task.
    #[inline(always)]
    pub(super) fn update_cfs_group(&mut self, se: EntityId) {
        if let Some(my_q) = self.sched.se[se].my_q {
            self.follow_group_load(se, my_q);
        }
    }

    #[inline(never)]
    fn follow_group_load(&mut self, se: EntityId, my_q: CfsRqId) {
        let cfs = &self.sched.cfs[my_q];
        let counts = cfs.load_weight != 0 || self.cx.config.bugs.delayed_group_weight;
        if counts && !cfs.bandwidth.pelt_clock_throttled {
            let group = cfs.group;
            self.sched.fetch(&mut self.cx, |lines, at| lines.group_load(group, false, at));
            let shares = self.sched.calc_group_shares(my_q, &self.cx);
            if self.sched.se[se].load.weight != shares {
                self.reweight_entity(se, shares);
            }
        }
    }

    /// `reweight_entity()` where it stands, queued or not.
    pub(super) fn reweight_entity(&mut self, se: EntityId, weight: u64) {
        let cfs_rq = self.sched.se[se].cfs_rq;
        let curr = self.sched.cfs[cfs_rq].curr == Some(se);
        let on_rq = self.sched.se[se].on_rq;
        // With one timeline for all a group has no place in one.
        let nested = !self.sched.flat_groups();
        let mut average = None;
        let mut how = Reweighted::InPlace;
        if on_rq {
            if nested {
                average = self.before_reweight(cfs_rq, se, curr);
            }
            self.sched.cfs[cfs_rq].load_weight -= self.sched.se[se].load.weight;
        }
        let entity = &mut self.sched.se[se];
        let old = entity.load.weight;
        let old_down = scale_load_down(old);
        self.sched.cfs[cfs_rq]
            .avg
            .change_load(|avg| pelt::dequeue_load_avg(avg, &entity.avg, old_down));
        if on_rq {
            if let Some(average) = average {
                how = self.sched.reweight_eevdf(se, average, weight, &self.cx);
            }
        } else if nested {
            self.sched.reweighted_off_queue(se, weight, &self.cx);
        }
        let floor = self.cx.attach_floor();
        let entity = &mut self.sched.se[se];
        entity.load = LoadWeight { weight, inv_weight: 0 };
        let down = scale_load_down(weight);
        pelt::reweight_load_avg(&mut entity.avg, down);
        let avg = &mut self.sched.cfs[cfs_rq].avg;
        avg.change_load(|avg| pelt::enqueue_load_avg(avg, &entity.avg, down, floor));
        if on_rq {
            self.sched.cfs[cfs_rq].load_weight += weight;
            if nested {
                self.sched.reweighted(cfs_rq, se, how, &self.cx);
                self.sched.after_reweight(cfs_rq, se, curr, &self.cx);
            }
        }
    }

    /// `se_runnable()`.
    #[inline(always)]
    pub(super) fn se_runnable(entity: &SchedEntity) -> u64 {
        match entity.my_q {
            _ if entity.sched_delayed => 0,
            None => entity.on_rq as u64,
            Some(_) => entity.runnable_weight as u64,
        }
    }

    /// `pick_next_task_fair()`, from one fair task to another: only the levels that differ are put and set.
    #[inline(never)]
    pub(super) fn put_prev_set_next_task_fair(&mut self, cpu: CpuId, prev: TaskId, next: TaskId) {
        if self.sched.flat_groups() {
            self.put_prev_flat(cpu, prev, Some(next));
            self.set_next_flat(cpu, next, true);
            return;
        }
        let (mut pse, mut se) = (self.sched.tasks[prev].se, self.sched.tasks[next].se);
        let above = |k: &Self, se: EntityId| k.sched.se[se].parent.expect("the root is common");
        while self.sched.se[se].cfs_rq != self.sched.se[pse].cfs_rq {
            let (depth, pdepth) = (self.sched.se[se].depth, self.sched.se[pse].depth);
            if depth <= pdepth {
                self.put_prev_entity(pse);
                pse = above(self, pse);
            }
            if depth >= pdepth {
                self.set_next_entity(se, true);
                se = above(self, se);
            }
        }
        self.put_prev_entity(pse);
        self.set_next_entity(se, true);
        self.assign_runtime_at_switch(next);
        self.next_task_is_set(cpu, next, true);
    }

    /// `__update_blocked_fair()`, the groups' part: bottom up; whether something is left to decay.
    #[inline(never)]
    pub(super) fn update_blocked_groups(&mut self, cpu: CpuId) -> bool {
        let mut blocked = false;
        let mut at = 0;
        while at < self.sched.rq[cpu].leaf_cfs_rqs.len() {
            let cfs_rq = self.sched.rq[cpu].leaf_cfs_rqs[at];
            let now = self.sched.cfs_rq_clock_pelt(cfs_rq);
            if self.sched.update_cfs_rq_load_avg(now, cfs_rq) {
                self.sched.update_tg_load_avg(cfs_rq, &mut self.cx);
            }
            let se = self.sched.groups[self.sched.cfs[cfs_rq].group].se[cpu.index()];
            let avg = &self.sched.se[se].avg;
            if avg.load_avg != 0 || avg.util_avg != 0 || self.sched.cfs[cfs_rq].propagate {
                self.update_load_avg(self.sched.se[se].cfs_rq, se, UPDATE_TG);
            }
            let cfs = &self.sched.cfs[cfs_rq];
            blocked |= cfs.avg.load_avg != 0 || cfs.avg.util_avg != 0;
            if self.sched.cfs_rq_is_decayed(cfs_rq, at) {
                self.sched.rq[cpu].leaf_cfs_rqs.remove(at);
                self.sched.cfs[cfs_rq].on_list = false;
            } else {
                at += 1;
            }
        }
        blocked
    }
}
