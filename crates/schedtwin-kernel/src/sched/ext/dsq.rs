// SPDX-License-Identifier: GPL-2.0-or-later
//! Dispatch queues: where tasks wait between the scheduler's decision and a CPU.
//!
//! **Terms.** *Local* DSQ: one for each CPU, the only one that a CPU runs tasks from. *Global* DSQ: one for each NUMA
//! node, served by its CPUs before they ask the scheduler. *User* DSQ: made by the scheduler, served when it says so.
//! A user DSQ is FIFO or ordered by virtual time (PRIQ), never both while it has tasks.
//!
//! | ID | queue |
//! |---|---|
//! | `SCX_DSQ_LOCAL` | the local one of the task's CPU, or of the CPU in whose `dispatch` it is used |
//! | `SCX_DSQ_LOCAL_ON \| cpu` | the local one of `cpu` |
//! | `SCX_DSQ_GLOBAL` | the global one of the task's node |
//! | below 2^63 | a user's |
//!
//! A task is in one DSQ at most, so each queue is a list through the tasks' entities. `seq` counts insertions: who walks
//! a queue sees the tasks only that were there when the walk began.
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c `scx_dispatch_enqueue`, `scx_dsq_priq_less`, `dsq_insert_head`,
//! `find_dsq_for_dispatch`.

use super::ExtEntity;
use schedtwin_types::{CpuId, Ns, TaskId};

/// `SCX_DSQ_FLAG_BUILTIN`.
pub const SCX_DSQ_FLAG_BUILTIN: u64 = 1 << 63;
/// `SCX_DSQ_INVALID`: no queue.
pub const SCX_DSQ_INVALID: u64 = SCX_DSQ_FLAG_BUILTIN;
/// `SCX_DSQ_GLOBAL`.
pub const SCX_DSQ_GLOBAL: u64 = SCX_DSQ_FLAG_BUILTIN | 1;
/// `SCX_DSQ_LOCAL`.
pub const SCX_DSQ_LOCAL: u64 = SCX_DSQ_FLAG_BUILTIN | 2;
/// `SCX_DSQ_BYPASS`: one for each CPU, while the scheduler is bypassed.
pub const SCX_DSQ_BYPASS: u64 = SCX_DSQ_FLAG_BUILTIN | 3;
/// `SCX_DSQ_LOCAL_ON`: with the CPU in the low 32 bits.
pub const SCX_DSQ_LOCAL_ON: u64 = 3 << 62;
/// `SCX_DSQ_LOCAL_CPU_MASK`.
pub const SCX_DSQ_LOCAL_CPU_MASK: u64 = 0xffff_ffff;

/// The place of a queue in [`Dsqs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DsqIndex(u32);

impl DsqIndex {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// `struct scx_dispatch_q`, with what it has seen.
#[derive(Clone, Debug)]
pub struct Dsq {
    /// The ID: `SCX_DSQ_LOCAL` of each local one.
    pub id: u64,
    /// Number of tasks.
    pub nr: u32,
    /// Its tasks are ordered by virtual time.
    pub priq: bool,
    /// Insertions so far.
    pub seq: u32,
    head: Option<TaskId>,
    tail: Option<TaskId>,
    /// The CPU, of a local one.
    pub cpu: Option<CpuId>,
    /// The most tasks that it has had at once.
    pub nr_max: u32,
    /// Tasks that have left it.
    pub left: u64,
    /// The time that these were in it, together.
    pub waited: Ns,
    /// The longest.
    pub waited_max: Ns,
    /// Up to when `nr_time` is summed up.
    since: Ns,
    /// Number of tasks times time, from load on.
    pub nr_time: u128,
}

impl Dsq {
    fn new(id: u64, cpu: Option<CpuId>, now: Ns) -> Dsq {
        Dsq {
            id,
            nr: 0,
            priq: false,
            seq: 0,
            head: None,
            tail: None,
            cpu,
            nr_max: 0,
            left: 0,
            waited: 0,
            waited_max: 0,
            since: now,
            nr_time: 0,
        }
    }

    /// The first task.
    pub fn head(&self) -> Option<TaskId> {
        self.head
    }

    /// The last task.
    pub fn tail(&self) -> Option<TaskId> {
        self.tail
    }

    /// Sums up the time with the present number of tasks.
    pub(super) fn account(&mut self, now: Ns) {
        self.nr_time += u128::from(self.nr) * u128::from(now.saturating_sub(self.since));
        self.since = now;
    }
}

/// All dispatch queues: the local ones by CPU, the global ones by node, the users'.
#[derive(Clone, Debug)]
pub struct Dsqs {
    queues: Vec<Dsq>,
    nr_cpus: u32,
    nr_nodes: u32,
    /// The place of the first CPU's bypass queue, once these are made.
    bypass: Option<u32>,
    /// IDs of the users' queues, ascending.
    users: Vec<(u64, DsqIndex)>,
    /// Destroyed ones, whose counts are kept.
    destroyed: Vec<DsqIndex>,
}

/// What keeps a user DSQ from being made or destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DsqError {
    /// `-EINVAL`: the ID is of the built-in ones.
    BuiltIn,
    /// `-EEXIST`.
    Exists,
    /// There is none.
    Absent,
    /// It has tasks.
    NotEmpty,
}

impl Dsqs {
    /// The local and the global ones.
    pub(super) fn new(nr_cpus: usize, nr_nodes: usize, now: Ns) -> Dsqs {
        let cpus = (0..nr_cpus).map(|cpu| Dsq::new(SCX_DSQ_LOCAL, Some(CpuId(cpu as u16)), now));
        let nodes = (0..nr_nodes).map(|_| Dsq::new(SCX_DSQ_GLOBAL, None, now));
        Dsqs {
            queues: cpus.chain(nodes).collect(),
            nr_cpus: nr_cpus as u32,
            nr_nodes: nr_nodes as u32,
            bypass: None,
            users: Vec::new(),
            destroyed: Vec::new(),
        }
    }

    /// The local one of a CPU.
    #[inline]
    pub fn local(&self, cpu: CpuId) -> DsqIndex {
        DsqIndex(u32::from(cpu.0))
    }

    /// The global one of a node.
    #[inline]
    pub fn global(&self, node: u16) -> DsqIndex {
        DsqIndex(self.nr_cpus + u32::from(node))
    }

    /// Makes the bypass queues, one for each CPU.
    pub(super) fn make_bypass(&mut self, now: Ns) {
        if self.bypass.is_none() {
            self.bypass = Some(self.queues.len() as u32);
            self.queues.extend((0..self.nr_cpus).map(|_| Dsq::new(SCX_DSQ_BYPASS, None, now)));
        }
    }

    /// The bypass queue of a CPU.
    pub fn bypass(&self, cpu: CpuId) -> DsqIndex {
        DsqIndex(self.bypass.expect("they are made first") + u32::from(cpu.0))
    }

    /// The CPU whose bypass queue it is.
    pub fn bypass_cpu(&self, index: DsqIndex) -> Option<CpuId> {
        let at = index.0.checked_sub(self.bypass?).filter(|at| *at < self.nr_cpus)?;
        Some(CpuId(at as u16))
    }

    /// A user's.
    pub fn user(&self, id: u64) -> Option<DsqIndex> {
        let at = self.users.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.users[at].1)
    }

    /// `scx_bpf_create_dsq()`.
    pub(super) fn create(&mut self, id: u64, now: Ns) -> Result<(), DsqError> {
        if id & SCX_DSQ_FLAG_BUILTIN != 0 {
            return Err(DsqError::BuiltIn);
        }
        match self.users.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(_) => Err(DsqError::Exists),
            Err(at) => {
                let index = DsqIndex(self.queues.len() as u32);
                self.queues.push(Dsq::new(id, None, now));
                self.users.insert(at, (id, index));
                Ok(())
            }
        }
    }

    /// `scx_bpf_destroy_dsq()`.
    pub(super) fn destroy(&mut self, id: u64) -> Result<(), DsqError> {
        let found = self.users.binary_search_by_key(&id, |(id, _)| *id);
        let at = found.map_err(|_| DsqError::Absent)?;
        let index = self.users[at].1;
        if self[index].nr > 0 {
            return Err(DsqError::NotEmpty);
        }
        self.users.remove(at);
        self.destroyed.push(index);
        Ok(())
    }

    /// All queues, with their places, those destroyed included.
    pub fn iter(&self) -> impl Iterator<Item = (DsqIndex, &Dsq)> {
        self.queues.iter().enumerate().map(|(at, dsq)| (DsqIndex(at as u32), dsq))
    }

    /// Whether it is a CPU's.
    #[inline]
    pub fn is_local(&self, index: DsqIndex) -> bool {
        index.0 < self.nr_cpus
    }

    /// Whether it is a node's.
    #[inline]
    pub fn is_global(&self, index: DsqIndex) -> bool {
        (self.nr_cpus..self.nr_cpus + self.nr_nodes).contains(&index.0)
    }

    /// Counts from `now` on.
    pub(super) fn begin(&mut self, now: Ns) {
        self.queues.iter_mut().for_each(|dsq| dsq.since = now);
    }

    /// Sums up all times.
    pub(super) fn account(&mut self, now: Ns) {
        self.queues.iter_mut().for_each(|dsq| dsq.account(now));
    }

    /// Links a task in. `vtime`: by its virtual time, behind equal ones; else in front of all or behind all.
    /// `now`: when, for the counts.
    pub(super) fn link(
        &mut self,
        index: DsqIndex,
        task: TaskId,
        place: Place,
        tasks: &mut [ExtEntity],
        now: Ns,
    ) {
        let dsq = &mut self.queues[index.0 as usize];
        dsq.account(now);
        let behind = match place {
            Place::Head => None,
            Place::Tail => dsq.tail,
            Place::ByVtime => {
                let vtime = tasks[task.index()].dsq_vtime;
                let mut at = dsq.tail;
                // From the end: most tasks come with the highest virtual time.
                while let Some(other) = at
                    && time_before64(vtime, tasks[other.index()].dsq_vtime)
                {
                    at = tasks[other.index()].prev;
                }
                at
            }
        };
        if dsq.nr == 0 {
            dsq.priq = place == Place::ByVtime;
        }
        let next = match behind {
            None => dsq.head.replace(task),
            Some(other) => tasks[other.index()].next.replace(task),
        };
        match next {
            None => dsq.tail = Some(task),
            Some(next) => tasks[next.index()].prev = Some(task),
        }
        dsq.seq = dsq.seq.wrapping_add(1);
        dsq.nr += 1;
        dsq.nr_max = dsq.nr_max.max(dsq.nr);
        let entity = &mut tasks[task.index()];
        (entity.prev, entity.next) = (behind, next);
        (entity.dsq, entity.dsq_seq, entity.on_priq) =
            (Some(index), dsq.seq, place == Place::ByVtime);
        entity.queued_at = now;
    }

    /// Takes a task out of its queue.
    pub(super) fn unlink(&mut self, task: TaskId, tasks: &mut [ExtEntity], now: Ns) {
        let entity = &mut tasks[task.index()];
        let index = entity.dsq.take().expect("a task that is unlinked is in a queue");
        let (prev, next) = (entity.prev.take(), entity.next.take());
        entity.on_priq = false;
        let waited = now.saturating_sub(entity.queued_at);
        let dsq = &mut self.queues[index.0 as usize];
        dsq.account(now);
        match prev {
            None => dsq.head = next,
            Some(prev) => tasks[prev.index()].next = next,
        }
        match next {
            None => dsq.tail = prev,
            Some(next) => tasks[next.index()].prev = prev,
        }
        dsq.nr -= 1;
        dsq.left += 1;
        dsq.waited += waited;
        dsq.waited_max = dsq.waited_max.max(waited);
    }
}

/// Where in its queue a task goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Head,
    Tail,
    ByVtime,
}

/// `time_before64()`: the order of virtual times, which may wrap.
#[inline]
pub fn time_before64(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

impl std::ops::Index<DsqIndex> for Dsqs {
    type Output = Dsq;
    #[inline]
    fn index(&self, index: DsqIndex) -> &Dsq {
        &self.queues[index.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(dsqs: &Dsqs, index: DsqIndex, tasks: &[ExtEntity]) -> Vec<u32> {
        let next = |task: &TaskId| tasks[task.index()].next;
        std::iter::successors(dsqs[index].head(), next).map(|task| task.0).collect()
    }

    #[test]
    fn equal_virtual_times_keep_their_order_and_wrap() {
        let mut dsqs = Dsqs::new(1, 1, 0);
        dsqs.create(7, 0).unwrap();
        assert_eq!(dsqs.create(7, 0), Err(DsqError::Exists));
        assert_eq!(dsqs.create(SCX_DSQ_GLOBAL, 0), Err(DsqError::BuiltIn));
        let index = dsqs.user(7).unwrap();
        let mut tasks = vec![ExtEntity::default(); 6];
        for (task, vtime) in [(1, 30), (2, 10), (3, 30), (4, 20), (5, u64::MAX - 5)] {
            tasks[task].dsq_vtime = vtime;
            dsqs.link(index, TaskId(task as u32), Place::ByVtime, &mut tasks, 100);
        }
        assert_eq!(order(&dsqs, index, &tasks), [5, 2, 4, 1, 3]);
        assert_eq!(dsqs.destroy(7), Err(DsqError::NotEmpty));
        for task in [4, 5, 3] {
            dsqs.unlink(TaskId(task), &mut tasks, 150);
        }
        assert_eq!(order(&dsqs, index, &tasks), [2, 1]);
        assert_eq!(dsqs[index].tail(), Some(TaskId(1)));
        let dsq = &dsqs[index];
        assert_eq!((dsq.nr, dsq.nr_max, dsq.left, dsq.waited), (2, 5, 3, 150));
        assert_eq!(dsq.nr_time, 5 * 50);
    }

    /// Random insertions and removals in two queues, beside plain lists that are searched from the front.
    #[test]
    fn queues_are_what_plain_lists_are() {
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        let mut dsqs = Dsqs::new(1, 1, 0);
        dsqs.create(5, 0).unwrap();
        let (fifo, priq) = (dsqs.global(0), dsqs.user(5).unwrap());
        let mut tasks = vec![ExtEntity::default(); 24];
        let mut plain: [Vec<(u64, u32)>; 2] = Default::default();
        for now in 0..20_000 {
            let task = TaskId(1 + below(23) as u32);
            if tasks[task.index()].dsq.is_some() {
                dsqs.unlink(task, &mut tasks, now);
                plain.iter_mut().for_each(|list| list.retain(|(_, other)| *other != task.0));
            } else if below(2) == 0 {
                let head = below(3) == 0;
                let place = if head { Place::Head } else { Place::Tail };
                dsqs.link(fifo, task, place, &mut tasks, now);
                let at = if head { 0 } else { plain[0].len() };
                plain[0].insert(at, (0, task.0));
            } else {
                let vtime = below(6);
                tasks[task.index()].dsq_vtime = vtime;
                dsqs.link(priq, task, Place::ByVtime, &mut tasks, now);
                let at = plain[1].iter().position(|(other, _)| *other > vtime);
                let at = at.unwrap_or(plain[1].len());
                plain[1].insert(at, (vtime, task.0));
            }
            for (list, index) in plain.iter().zip([fifo, priq]) {
                let expected: Vec<u32> = list.iter().map(|(_, task)| *task).collect();
                assert_eq!(order(&dsqs, index, &tasks), expected, "{now}");
                assert_eq!(dsqs[index].nr as usize, expected.len());
            }
        }
    }

    #[test]
    fn a_fifo_has_a_head_and_a_tail() {
        let mut dsqs = Dsqs::new(2, 1, 0);
        let mut tasks = vec![ExtEntity::default(); 4];
        let index = dsqs.local(CpuId(1));
        dsqs.link(index, TaskId(1), Place::Tail, &mut tasks, 0);
        dsqs.link(index, TaskId(2), Place::Head, &mut tasks, 0);
        dsqs.link(index, TaskId(3), Place::Tail, &mut tasks, 0);
        assert_eq!(order(&dsqs, index, &tasks), [2, 1, 3]);
        assert!(dsqs.is_local(index) && !dsqs.is_global(index));
        assert!(dsqs.is_global(dsqs.global(0)));
    }
}
