//! The deadline class: of all who are queued on a CPU, the one with the earliest deadline runs.
//!
//! Its tasks here are schedutil's threads ([`crate::cpufreq::sugov_kthread`]), which are *special*
//! (`SCHED_FLAG_SUGOV`): they preempt everything but the stopper, are never throttled, and add nothing to
//! `running_bw`. What they use shows in `dl.util_avg` alone, and through it in the frequency that their own
//! governor asks for next. The other entity of the class is each CPU's fair server.
//!
//! A special task has a runtime, a deadline and a period, but only the deadline does anything: as its runtime
//! is never charged, each wakeup finds that what is left is too much for the time that is left, and moves
//! the deadline to 10 ms from now. A fair server that starves may be due before that; then it goes first.
//!
//! ```text
//!  irq_work            switch                 sleep
//!     │ wakeup ──────────▼ running = 1 ─────────▼      dl.util_avg rises while it runs, decays after
//! ────┴──────┬───────────┬──────────────────────┬────►
//!            └ deadline := now + 10 ms          fair task goes on
//! ```
//!
//! Kernel: 6.12.95 kernel/sched/deadline.c, cpudeadline.c.
//! Differences: tasks that are not special are refused before a run begins. Nobody pushes or pulls: a CPU
//! belongs to one frequency domain, so at most one such thread can be queued on it, and a pull takes only
//! threads that may run on the puller's CPU, of which that CPU's own is the only one.

use crate::Kernel;
use crate::sched::core::{ENQUEUE_WAKEUP, WF_TTWU};
use crate::sched::{Class, Rq, pelt};
use schedtwin_types::{CpuId, CpuMask, Ns, TaskId};

pub use super::fair_server::FairServer;

/// Runtime of a special task per period, `sugov_kthread_create()`; as it says there: fake, unused.
const SUGOV_RUNTIME: Ns = 1_000_000;
/// Its relative deadline, which is its period too.
const SUGOV_DEADLINE: Ns = 10_000_000;
/// Microseconds of the bandwidth comparison (`DL_SCALE`): factors are shifted by this first.
const DL_SCALE: u32 = 10;
/// `prio` of every task of the class.
pub const DL_PRIO: i32 = -1;

/// `struct dl_rq`, without the fair server.
#[derive(Clone, Debug)]
pub struct DlRq {
    /// Queued tasks, the running one among them, the earliest deadline first.
    queue: Vec<TaskId>,
    /// `exec_start` of the running deadline task.
    exec_start: u64,
}

impl Default for DlRq {
    fn default() -> DlRq {
        // One is all that a CPU can have: room for it, so that waking it allocates nothing.
        DlRq { queue: Vec::with_capacity(1), exec_start: 0 }
    }
}

impl DlRq {
    /// Queued tasks, the earliest deadline first.
    pub fn queue(&self) -> &[TaskId] {
        &self.queue
    }
}

impl Rq {
    /// `dl.dl_nr_running`: queued tasks, and the fair server if it is.
    #[inline(always)]
    pub fn dl_nr_running(&self) -> usize {
        self.dl.queue.len() + self.fair_server.is_queued() as usize
    }
}

/// `to_ratio()`.
///
/// ```
/// assert_eq!(schedtwin_kernel::sched::deadline::to_ratio(1_000_000_000, 50_000_000), 52_428);
/// ```
pub fn to_ratio(period: Ns, runtime: Ns) -> u64 {
    (runtime << 20).checked_div(period).unwrap_or(0)
}

/// `dl_time_before()`: deadlines may wrap.
#[inline]
pub(crate) fn dl_time_before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// `dl_entity_overflow()`: would what is left of the runtime exceed its rate until the deadline?
pub(crate) fn dl_entity_overflow(
    dl_deadline: Ns,
    dl_runtime: Ns,
    runtime: i64,
    deadline: u64,
    clock: u64,
) -> bool {
    // Both products are unsigned and may wrap, also where the deadline has passed.
    let left = (dl_deadline >> DL_SCALE).wrapping_mul((runtime >> DL_SCALE) as u64);
    let right = (deadline.wrapping_sub(clock) >> DL_SCALE).wrapping_mul(dl_runtime >> DL_SCALE);
    dl_time_before(right, left)
}

/// `update_dl_entity()` of a special task at its wakeup: its deadline from now on.
fn special_deadline(deadline: u64, clock: u64) -> u64 {
    let all = SUGOV_RUNTIME as i64;
    let renew = dl_time_before(deadline, clock)
        || dl_entity_overflow(SUGOV_DEADLINE, SUGOV_RUNTIME, all, deadline, clock);
    if renew { clock + SUGOV_DEADLINE } else { deadline }
}

impl Kernel {
    /// `inc_dl_tasks()`: one entity more is queued on a CPU, and counted already.
    pub(crate) fn inc_dl_tasks(&mut self, cpu: CpuId) {
        self.add_nr_running(cpu, 1);
        if self.rq[cpu].dl_nr_running() == 1 {
            self.cpupri_deadline_queued(cpu);
        }
    }

    /// `dec_dl_tasks()`: one is gone.
    pub(crate) fn dec_dl_tasks(&mut self, cpu: CpuId) {
        self.sub_nr_running(cpu, 1);
        if self.rq[cpu].dl_nr_running() == 0 {
            self.cpupri_deadline_gone(cpu);
        }
    }

    /// `is_leftmost()` of the fair server: it is queued and nobody's deadline is earlier.
    pub(crate) fn fair_server_is_leftmost(&self, cpu: CpuId) -> bool {
        let rq = &self.rq[cpu];
        let server = &rq.fair_server;
        let earlier = |task: &TaskId| dl_time_before(self.tasks[*task].deadline, server.deadline());
        server.is_queued() && !rq.dl.queue.first().is_some_and(earlier)
    }

    /// `earliest_dl.curr`; `None` without an entity.
    fn earliest_dl(&self, cpu: CpuId) -> Option<u64> {
        let rq = &self.rq[cpu];
        if self.fair_server_is_leftmost(cpu) {
            return Some(rq.fair_server.deadline());
        }
        rq.dl.queue.first().map(|task| self.tasks[*task].deadline)
    }

    pub(crate) fn enqueue_task_dl(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        if flags & ENQUEUE_WAKEUP != 0 {
            let clock = self.rq[cpu].clock;
            self.tasks[task].deadline = special_deadline(self.tasks[task].deadline, clock);
        }
        let deadline = self.tasks[task].deadline;
        let (tasks, queue) = (&self.tasks, &mut self.rq[cpu].dl.queue);
        let at = queue.partition_point(|other| !dl_time_before(deadline, tasks[*other].deadline));
        queue.insert(at, task);
        self.inc_dl_tasks(cpu);
    }

    pub(crate) fn dequeue_task_dl(&mut self, cpu: CpuId, task: TaskId) -> bool {
        self.update_curr_dl(cpu);
        self.rq[cpu].dl.queue.retain(|other| *other != task);
        self.dec_dl_tasks(cpu);
        true
    }

    fn update_curr_dl(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr;
        if self.tasks[curr].class != Class::Deadline {
            return;
        }
        let clock_task = self.rq[cpu].clock_task;
        let delta = clock_task as i64 - self.rq[cpu].dl.exec_start as i64;
        if delta > 0 {
            self.rq[cpu].dl.exec_start = clock_task;
            let se = self.tasks[curr].se;
            self.se[se].sum_exec_runtime += delta as u64;
        }
    }

    /// `update_dl_rq_load_avg()`: `running` is what has been on the CPU up to now.
    fn update_dl_rq_load_avg(&mut self, cpu: CpuId, running: bool) {
        let now = self.rq_clock_pelt(cpu);
        self.rq[cpu].avg_dl.update(cpu, &mut self.stale_demands, |avg| {
            pelt::update_dl_rq_load_avg(now, avg, running)
        });
    }

    /// `pick_next_dl_entity()`, if it is a task.
    #[inline]
    pub(crate) fn pick_task_dl(&self, cpu: CpuId) -> Option<TaskId> {
        let first = self.rq[cpu].dl.queue.first()?;
        (!self.fair_server_is_leftmost(cpu)).then_some(*first)
    }

    pub(crate) fn set_next_task_dl(&mut self, cpu: CpuId, prev: TaskId) {
        let rq = &mut self.rq[cpu];
        rq.dl.exec_start = rq.clock_task;
        if self.tasks[prev].class != Class::Deadline {
            self.update_dl_rq_load_avg(cpu, false);
        }
    }

    pub(crate) fn put_prev_task_dl(&mut self, cpu: CpuId) {
        self.update_curr_dl(cpu);
        self.update_dl_rq_load_avg(cpu, true);
    }

    pub(crate) fn task_tick_dl(&mut self, cpu: CpuId) {
        self.update_curr_dl(cpu);
        self.update_dl_rq_load_avg(cpu, true);
    }

    /// `dl_task_fits_capacity()`.
    fn dl_task_fits_capacity(&self, cpu: CpuId) -> bool {
        self.rq[cpu].arch_capacity >= to_ratio(SUGOV_DEADLINE, SUGOV_RUNTIME) >> 10
    }

    /// Where a task wakes: where it last ran, unless another deadline task has that CPU or it is too small.
    pub(crate) fn select_task_rq_dl(&mut self, task: TaskId, cpu: CpuId, flags: u32) -> CpuId {
        if flags & WF_TTWU == 0 {
            return cpu;
        }
        // A special task preempts whom it finds, so only one that cannot go away counts.
        let curr = &self.tasks[self.rq[cpu].curr];
        let occupied = curr.class == Class::Deadline && curr.nr_cpus_allowed < 2;
        let too_small = self.topology.asym_cpucapacity && !self.dl_task_fits_capacity(cpu);
        if !occupied && !too_small {
            return cpu;
        }
        let deadline = self.tasks[task].deadline;
        match self.find_later_rq(task) {
            Some(target)
                if self.earliest_dl(target).is_none_or(|dl| dl_time_before(deadline, dl)) =>
            {
                target
            }
            _ => cpu,
        }
    }

    /// `cpudl_find()`: the allowed CPUs without a deadline entity that are large enough, or the largest of
    /// those that are not; if there is none, the CPU whose earliest deadline is the latest of all, if that is
    /// later than the task's.
    fn later_mask(&self, task: TaskId) -> CpuMask {
        let t = &self.tasks[task];
        let free: CpuMask =
            t.cpus_mask.iter().filter(|c| self.rq[*c].dl_nr_running() == 0).collect();
        if !free.is_empty() {
            if !self.topology.asym_cpucapacity {
                return free;
            }
            let fits: CpuMask = free.iter().filter(|c| self.dl_task_fits_capacity(*c)).collect();
            if !fits.is_empty() {
                return fits;
            }
            // Of equal ones the first, but its own before others.
            let rank = |c: &CpuId| (self.rq[*c].arch_capacity, *c == t.cpu, u16::MAX - c.0);
            return free.iter().max_by_key(rank).map_or(CpuMask::EMPTY, CpuMask::of);
        }
        let with_dl = self.rq.ids().filter_map(|c| self.earliest_dl(c).map(|dl| (c, dl)));
        let latest = with_dl.reduce(|a, b| if dl_time_before(a.1, b.1) { b } else { a });
        match latest {
            Some((cpu, dl)) if t.cpus_mask.contains(cpu) && dl_time_before(t.deadline, dl) => {
                CpuMask::of(cpu)
            }
            _ => CpuMask::EMPTY,
        }
    }

    fn find_later_rq(&mut self, task: TaskId) -> Option<CpuId> {
        if self.tasks[task].nr_cpus_allowed == 1 {
            return None;
        }
        let mask = self.later_mask(task);
        if mask.is_empty() {
            return None;
        }
        Some(self.nearest_cpu(task, mask))
    }

    /// Asserts what the class keeps of a CPU.
    pub(crate) fn verify_dl(&self, cpu: CpuId) {
        let queue = &self.rq[cpu].dl.queue;
        for task in queue {
            let t = &self.tasks[*task];
            assert_eq!((t.class, t.cpu), (Class::Deadline, cpu), "{cpu:?}: {task:?} in its queue");
        }
        for pair in queue.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|task| self.tasks[task].deadline);
            assert!(!dl_time_before(b, a), "{cpu:?}: order of deadlines");
        }
        let queued = |t: &&crate::sched::Task| {
            t.class == Class::Deadline && t.cpu == cpu && t.on_rq == crate::sched::OnRq::Queued
        };
        let count = self.tasks.iter().filter(queued).count();
        assert_eq!(queue.len(), count, "{cpu:?}: deadline tasks");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::OnRq;
    use crate::sched::TaskKind;
    use crate::sched::root_domain::tests::kernel;

    const OPPS: &[(u32, u64)] = &[(1_000_000, 100_000)];

    fn special(kernel: &mut Kernel, cpu: u16, mask: &[u16]) -> TaskId {
        let task = kernel.new_task(None, TaskKind::User);
        let t = &mut kernel.tasks[task];
        (t.class, t.prio, t.cpu) = (Class::Deadline, DL_PRIO, CpuId(cpu));
        t.cpus_mask = CpuMask::from_cpus(mask.iter().map(|c| CpuId(*c)));
        t.nr_cpus_allowed = mask.len() as u32;
        task
    }

    fn wake(kernel: &mut Kernel, task: TaskId) {
        let cpu = kernel.tasks[task].cpu;
        kernel.enqueue_task_dl(cpu, task, ENQUEUE_WAKEUP);
        kernel.tasks[task].on_rq = OnRq::Queued;
        kernel.verify_dl(cpu);
    }

    /// The rate of what is left is compared in steps of 1024 ns, so two wakeups of one instant share a deadline.
    #[test]
    fn a_wakeup_moves_the_deadline() {
        for (deadline, clock, expected) in [
            (0, 5_000_000, 15_000_000),
            (15_000_000, 5_000_000, 15_000_000),
            (15_000_000, 5_000_512, 15_000_000),
            (15_000_000, 5_002_000, 15_002_000),
            (15_000_000, 15_000_001, 25_000_001),
        ] {
            assert_eq!(special_deadline(deadline, clock), expected, "{deadline} at {clock}");
        }
    }

    #[test]
    fn the_earliest_deadline_runs() {
        let mut kernel = kernel(&[(2, 1024, OPPS)]);
        let cpu = CpuId(0);
        let (late, early) = (special(&mut kernel, 0, &[0, 1]), special(&mut kernel, 0, &[0, 1]));
        kernel.rq[cpu].clock = 2_000_000;
        wake(&mut kernel, late);
        kernel.rq[cpu].clock = 1_000_000;
        wake(&mut kernel, early);
        assert_eq!(kernel.rq[cpu].dl.queue, [early, late]);
        assert_eq!(kernel.pick_task_dl(cpu), Some(early));
        assert_eq!(kernel.rq[cpu].nr_running, 2);
        kernel.dequeue_task_dl(cpu, early);
        assert_eq!(
            (kernel.pick_task_dl(cpu), kernel.earliest_dl(cpu)),
            (Some(late), Some(12_000_000))
        );
    }

    /// It stays where it was, whoever runs there, unless that is a deadline task that cannot go away or the
    /// CPU is too small for 1 ms in 10; then it goes to a CPU without deadline entities.
    #[test]
    fn where_a_special_task_wakes() {
        let mut kernel = kernel(&[(3, 100, OPPS), (2, 1024, OPPS)]);
        let free = special(&mut kernel, 3, &[3, 4]);
        assert_eq!(kernel.select_task_rq_dl(free, CpuId(3), WF_TTWU), CpuId(3));
        let pinned = special(&mut kernel, 3, &[3]);
        wake(&mut kernel, pinned);
        kernel.rq[CpuId(3)].curr = pinned;
        assert_eq!(kernel.select_task_rq_dl(free, CpuId(3), WF_TTWU), CpuId(4));
        assert_eq!(kernel.select_task_rq_dl(free, CpuId(3), 0), CpuId(3), "a fork stays");
        // None of its CPUs is large enough: its own is as good as any, if no other entity has it.
        let small = special(&mut kernel, 1, &[0, 1, 2]);
        assert_eq!(kernel.select_task_rq_dl(small, CpuId(1), WF_TTWU), CpuId(1));
        let other = special(&mut kernel, 1, &[1]);
        wake(&mut kernel, other);
        assert_eq!(kernel.select_task_rq_dl(small, CpuId(1), WF_TTWU), CpuId(0));
    }
}
