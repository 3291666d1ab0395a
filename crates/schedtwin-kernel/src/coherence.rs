// SPDX-License-Identifier: GPL-2.0-or-later
//! Cache lines that wander between CPUs with the kernel's own objects, and the turns of its spinlocks.
//!
//! Path costs are those of a CPU that has all it touches in its own cache. Here is what is added: an object (a run
//! queue, a task, a pipe) knows which CPU wrote it last; a path on another CPU waits for as many lines as it touches of it
//! (`LineCounts`), each as long as the distance says, and is the last writer from then on.
//!
//! ```text
//! CPU 0 wakes a task that slept on CPU 9, and queues it there:
//!   CPU 0   task_state 5, run_queue 12 lines from CPU 9; the task's others count as its own then
//!   CPU 9   leaves idle: run_queue 12, task 9 lines from CPU 0
//! ```
//!
//! *Watched* lines are read by many: how busy a run queue is, the load of a group. Who has read them since they were written
//! reads them again for nothing; the next writer waits for the farthest reader. They can be fetched by one CPU at a time,
//! so those that many want are waited for in turn.
//!
//! A **run queue's lock** is held for a part of the path. Who comes meanwhile spins, and gets it in the order of the
//! entries with a hand-over of `handover_lines` (queued spinlocks).
//!
//! Without such a table of the machine ([`DtCoherence`]) all of this costs nothing.
//!
//! Kernel: counted in 6.12 to 6.18 kernel/sched/core.c `try_to_wake_up`, `__schedule`; kernel/sched/fair.c; fs/pipe.c;
//! net/unix/af_unix.c; kernel/locking/qspinlock.c.
//! Differences: objects, not addresses: lines have no sets, no capacity, no false sharing but what the counts contain. A
//! line's home node is not known. A section takes its place when its entry is simulated, which is not always the order in
//! which locks would be asked for; one that fits before the last known section does not wait.

use crate::device_tree::DtCoherence;
use crate::{Context, Scheduler};
use schedtwin_types::arena::PerCpu;
use schedtwin_types::{CpuId, CpuMask, LineCounts, Ns, TaskGroupId, TaskId};

/// The CPU that wrote an object last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastWriter(u16);

impl LastWriter {
    const NOBODY: LastWriter = LastWriter(u16::MAX);
}

impl Default for LastWriter {
    fn default() -> LastWriter {
        LastWriter::NOBODY
    }
}

/// When something that one CPU uses at a time is in use: the last stretch without a gap.
#[derive(Clone, Copy, Debug, Default)]
struct InUse {
    from: Ns,
    until: Ns,
}

impl InUse {
    /// Uses it for `time` from `at` on, or as soon as it is free; how long that is waited for.
    #[inline]
    fn take(&mut self, at: Ns, time: Ns) -> Ns {
        if at >= self.until {
            *self = InUse { from: at, until: at + time };
            0
        } else if at + time <= self.from {
            0
        } else {
            let wait = self.until - at;
            self.until += time;
            wait
        }
    }
}

/// Lines that many read.
#[derive(Clone, Debug)]
struct Watched {
    writer: LastWriter,
    /// CPUs that have read them since.
    readers: CpuMask,
    /// Time of a line between the writer and the farthest of these, `<< 10`.
    farthest: u32,
    fetches: InUse,
}

impl Watched {
    const NEW: Watched = Watched {
        writer: LastWriter::NOBODY,
        readers: CpuMask::EMPTY,
        farthest: 0,
        fetches: InUse { from: 0, until: 0 },
    };
}

/// The lines of a run queue.
#[derive(Clone, Debug)]
struct RqLines {
    look: Watched,
    /// Under the lock.
    body: LastWriter,
    wake_list: LastWriter,
    lock: InUse,
}

/// The lines of a dispatch queue of sched_ext.
#[derive(Clone, Debug)]
struct DsqLines {
    body: LastWriter,
    lock: InUse,
}

impl DsqLines {
    const NEW: DsqLines = DsqLines { body: LastWriter::NOBODY, lock: InUse { from: 0, until: 0 } };
}

/// Lines of a dispatch queue that change with it: its own and that of the task beside the new one.
const DSQ_LINES: u64 = 2;

/// A CPU on its path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnPath {
    cpu: CpuId,
    clock: Ns,
}

impl OnPath {
    /// The path has waited meanwhile.
    pub(crate) fn advance(&mut self, wait: Ns) {
        self.clock += wait;
    }
}

/// The causes of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Lines of a task.
    Task,
    /// Lines of a run queue and of its wake list, or of a dispatch queue of sched_ext.
    RunQueue,
    /// Lines that say how busy a run queue or a cache is.
    Scan,
    /// The lock of a run queue, or of a dispatch queue.
    Lock,
    /// The load of a group.
    Group,
    /// Lines of pipes, sockets and futexes, and of what is sent.
    Message,
}

impl Waited {
    /// Each of them, with its name as a label.
    pub const ALL: [(Waited, &'static str); 6] = [
        (Waited::Task, "task"),
        (Waited::RunQueue, "run_queue"),
        (Waited::Scan, "scan"),
        (Waited::Lock, "lock"),
        (Waited::Group, "group"),
        (Waited::Message, "message"),
    ];
}

/// The costs of lines on this machine.
#[derive(Clone, Debug)]
struct Costs {
    /// Time that a CPU waits for a line of another, `<< 10`: by the one that waits, then by the other.
    line: Vec<u32>,
    nr_cpus: usize,
    counts: LineCounts,
    /// The whole time of a line by what a path waits for it, `<< 10`.
    whole: u64,
    handover_lines: u64,
    copy_permille: u64,
    rq_locks: bool,
}

impl Costs {
    /// Time for a line that `from` wrote, `<< 10`.
    #[inline(always)]
    fn line(&self, cpu: CpuId, from: LastWriter) -> u64 {
        if from.0 == cpu.0 || from == LastWriter::NOBODY {
            return 0;
        }
        u64::from(self.line[cpu.index() * self.nr_cpus + from.0 as usize])
    }

    /// The executing CPU takes an object over; how long it waits for so many lines of it.
    #[inline]
    fn take(&self, cpu: CpuId, object: &mut LastWriter, lines: u64) -> Ns {
        let line = self.line(cpu, *object);
        object.0 = cpu.0;
        (line * lines) >> 10
    }

    /// The time for which a line is under way that a path waits `line` for: nothing else fetches it meanwhile, whatever else
    /// this path does at the same time.
    #[inline]
    fn transfer(&self, line: u64) -> Ns {
        (line * self.whole) >> 20
    }

    /// `cpu` has a lock for `hold` ns from `from` on, or as soon as `before` hands it over; how long it waits.
    fn lock(&self, lock: &mut InUse, before: LastWriter, (cpu, from): (CpuId, Ns), hold: Ns) -> Ns {
        if !self.rq_locks {
            return 0;
        }
        let wait = lock.take(from, hold);
        if wait == 0 {
            return 0;
        }
        let handover = self.transfer(self.line(cpu, before)) * self.handover_lines;
        lock.until += handover;
        wait + handover
    }

    /// Reads watched lines.
    #[inline]
    fn read(&self, watched: &mut Watched, lines: u64, at: OnPath) -> Ns {
        let line = self.line(at.cpu, watched.writer);
        if line == 0 || watched.readers.contains(at.cpu) {
            return 0;
        }
        watched.readers.insert(at.cpu);
        watched.farthest = watched.farthest.max(line as u32);
        watched.fetches.take(at.clock, self.transfer(line)) + ((line * lines) >> 10)
    }

    /// Writes watched lines, so many of which have to be fetched for that if another CPU wrote them.
    #[inline]
    fn write(&self, watched: &mut Watched, lines: u64, at: OnPath) -> Ns {
        let line = self.line(at.cpu, watched.writer);
        let others = std::mem::take(&mut watched.farthest);
        watched.writer.0 = at.cpu.0;
        watched.readers = CpuMask::EMPTY;
        if line > 0 {
            watched.fetches.take(at.clock, self.transfer(line)) + ((line * lines) >> 10)
        } else {
            // Nothing to fetch, but those who have copies are asked to drop them.
            u64::from(others) >> 10
        }
    }

    fn read_or_write(&self, watched: &mut Watched, lines: u64, writes: bool, at: OnPath) -> Ns {
        if writes { self.write(watched, lines, at) } else { self.read(watched, lines, at) }
    }
}

/// The last writer of each object of the scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Coherence {
    costs: Costs,
    rq: PerCpu<RqLines>,
    tasks: Vec<LastWriter>,
    /// By number of the group: its load.
    groups: Vec<Watched>,
    /// As `Topology::shared`.
    shared: Vec<Watched>,
    /// By place of the dispatch queue.
    dsqs: Vec<DsqLines>,
    waited: [Ns; Waited::ALL.len()],
}

/// The item at `index` of a list that grows with those who ask.
fn at_index<T: Clone>(list: &mut Vec<T>, index: usize, new: T) -> &mut T {
    if list.len() <= index {
        list.resize(index + 1, new);
    }
    &mut list[index]
}

/// The paths of the scheduler. Each returns how long the executing CPU waits.
impl Coherence {
    pub(crate) fn new(told: &DtCoherence) -> Coherence {
        let nr_cpus = told.line_ns.len();
        let wait =
            |ns: &Ns| (((ns * told.overlap_permille) << 10) / 1000).min(u32::MAX as u64) as u32;
        let rq = || RqLines {
            look: Watched::NEW,
            body: LastWriter::NOBODY,
            wake_list: LastWriter::NOBODY,
            lock: InUse::default(),
        };
        Coherence {
            costs: Costs {
                line: told.line_ns.iter().flatten().map(wait).collect(),
                nr_cpus,
                counts: told.lines.clone(),
                whole: (1000 << 10) / told.overlap_permille.max(1),
                handover_lines: told.handover_lines,
                copy_permille: told.copy_permille,
                rq_locks: told.rq_locks,
            },
            rq: (0..nr_cpus).map(|_| rq()).collect(),
            tasks: Vec::new(),
            groups: Vec::new(),
            shared: Vec::new(),
            dsqs: Vec::new(),
            waited: [0; Waited::ALL.len()],
        }
    }

    /// The time that CPUs have waited so far, for each of [`Waited::ALL`].
    pub(crate) fn waited(&self) -> [Ns; Waited::ALL.len()] {
        self.waited
    }

    #[inline]
    fn count(&mut self, what: Waited, wait: Ns) -> Ns {
        self.waited[what as usize] += wait;
        wait
    }

    /// `try_to_wake_up()` looks at the task.
    pub(crate) fn task_is_woken(&mut self, task: TaskId, at: OnPath) -> Ns {
        self.take_task(task, self.costs.counts.task_state, at)
    }

    /// The task is queued, or switched to.
    pub(crate) fn task_moves(&mut self, task: TaskId, at: OnPath) -> Ns {
        self.take_task(task, self.costs.counts.task, at)
    }

    fn take_task(&mut self, task: TaskId, lines: u64, at: OnPath) -> Ns {
        let writer = at_index(&mut self.tasks, task.0 as usize, LastWriter::NOBODY);
        let wait = self.costs.take(at.cpu, writer, lines);
        self.count(Waited::Task, wait)
    }

    /// The run queue of `cpu` is locked and changed, with so many `levels` of groups.
    pub(crate) fn rq_changes(&mut self, cpu: CpuId, levels: u32, at: OnPath) -> Ns {
        let (rq, counts) = (&mut self.rq[cpu], &self.costs.counts);
        // The lines that others look at are among those under the lock.
        let lines = counts.run_queue + u64::from(levels) * counts.group_level;
        let wait =
            self.costs.write(&mut rq.look, 0, at) + self.costs.take(at.cpu, &mut rq.body, lines);
        self.count(Waited::RunQueue, wait)
    }

    /// The CPU that has changed the run queue of `cpu` last.
    pub(crate) fn rq_holder(&self, cpu: CpuId) -> LastWriter {
        self.rq[cpu].body
    }

    /// The executing CPU has had the lock of the run queue of `cpu` for the last `hold` ns; `before`: who had it before.
    pub(crate) fn rq_lock(&mut self, cpu: CpuId, before: LastWriter, hold: Ns, at: OnPath) -> Ns {
        let lock = &mut self.rq[cpu].lock;
        let wait = self.costs.lock(lock, before, (at.cpu, at.clock.saturating_sub(hold)), hold);
        self.count(Waited::Lock, wait)
    }

    /// The executing CPU locks a dispatch queue and changes it, which takes `hold` ns beside its lines.
    pub(crate) fn dsq_changes(&mut self, index: usize, hold: Ns, at: OnPath) -> Ns {
        let dsq = at_index(&mut self.dsqs, index, DsqLines::NEW);
        let holder = dsq.body;
        let lines = self.costs.take(at.cpu, &mut dsq.body, DSQ_LINES);
        let from = at.clock.saturating_sub(hold);
        let wait = self.costs.lock(&mut dsq.lock, holder, (at.cpu, from), hold + lines);
        self.count(Waited::RunQueue, lines) + self.count(Waited::Lock, wait)
    }

    /// A wakee is put on the wake list of `cpu`, or taken from one's own.
    pub(crate) fn wake_list_changes(&mut self, cpu: CpuId, at: OnPath) -> Ns {
        let lines = self.costs.counts.wake_list;
        let wait = self.costs.take(at.cpu, &mut self.rq[cpu].wake_list, lines);
        self.count(Waited::RunQueue, wait)
    }

    /// Looks how busy each of these CPUs is, one after the other.
    pub(crate) fn looks_at(&mut self, cpus: &CpuMask, mut at: OnPath) -> Ns {
        let begun = at.clock;
        for cpu in cpus.iter() {
            at.clock += self.costs.read(&mut self.rq[cpu].look, self.costs.counts.look, at);
        }
        self.count(Waited::Scan, at.clock - begun)
    }

    /// Reads or writes what the CPUs of a cache share.
    pub(crate) fn llc_word(&mut self, shared: usize, writes: bool, at: OnPath) -> Ns {
        let word = at_index(&mut self.shared, shared, Watched::NEW);
        let wait = self.costs.read_or_write(word, self.costs.counts.llc, writes, at);
        self.count(Waited::Scan, wait)
    }

    /// Reads the load of a group, or adds to it.
    pub(crate) fn group_load(&mut self, group: TaskGroupId, writes: bool, at: OnPath) -> Ns {
        let load = at_index(&mut self.groups, group.0 as usize, Watched::NEW);
        let wait = self.costs.read_or_write(load, self.costs.counts.load_avg, writes, at);
        self.count(Waited::Group, wait)
    }
}

impl Scheduler {
    /// The executing CPU waits for lines, where that costs something.
    #[inline(always)]
    pub(crate) fn fetch(
        &mut self,
        cx: &mut Context,
        lines: impl FnOnce(&mut Coherence, OnPath) -> Ns,
    ) {
        let at = OnPath { cpu: cx.this_cpu, clock: cx.now + cx.debt };
        if let Some(coherence) = &mut cx.coherence {
            let wait = lines(coherence, at);
            self.owe(wait, cx);
        }
    }
}

impl Context {
    /// Whether lines of other CPUs cost something.
    #[inline(always)]
    pub(crate) fn has_coherence(&self) -> bool {
        self.coherence.is_some()
    }

    /// The executing CPU takes over an object that messages pass through; how long it waits for its lines.
    #[inline(always)]
    pub(crate) fn take_lines(
        &mut self,
        object: &mut LastWriter,
        lines: impl FnOnce(&LineCounts) -> u64,
    ) -> Ns {
        let Some(coherence) = &mut self.coherence else { return 0 };
        let wait = coherence.costs.take(self.this_cpu, object, lines(&coherence.costs.counts));
        coherence.count(Waited::Message, wait)
    }

    /// Time to fetch so many bytes that `writer` has written, beside copying them.
    pub(crate) fn fetch_payload(&mut self, writer: LastWriter, bytes: u32) -> Ns {
        let Some(coherence) = &mut self.coherence else { return 0 };
        let lines = u64::from(bytes.div_ceil(64));
        let costs = &coherence.costs;
        let line = costs.line(self.this_cpu, writer) * costs.copy_permille / 1000;
        coherence.count(Waited::Message, (lines * line) >> 10)
    }

    /// The time in which a lock passes from its last holder to the executing CPU.
    pub(crate) fn handover(&self, holder: LastWriter) -> Ns {
        self.coherence.as_ref().map_or(0, |coherence| {
            let costs = &coherence.costs;
            costs.transfer(costs.line(self.this_cpu, holder)) * costs.handover_lines
        })
    }

    /// The executing CPU as the last writer of something.
    pub(crate) fn as_writer(&self) -> LastWriter {
        LastWriter(self.this_cpu.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two caches of four CPUs: a line takes 20 ns within one and 100 ns between them; a path waits for half of that.
    fn two_caches() -> Coherence {
        let line = |a: usize, b: usize| if a / 4 == b / 4 { 20 } else { 100 };
        Coherence::new(&DtCoherence {
            line_ns: (0..8).map(|to| (0..8).map(|from| line(to, from)).collect()).collect(),
            overlap_permille: 500,
            copy_permille: 100,
            handover_lines: 2,
            rq_locks: true,
            lines: LineCounts::default(),
        })
    }

    fn on(cpu: u16, clock: Ns) -> OnPath {
        OnPath { cpu: CpuId(cpu), clock }
    }

    /// A task that two CPUs wake in turn costs each of them its lines, by distance, and the same CPU nothing.
    #[test]
    fn what_goes_back_and_forth_costs_its_lines_each_time() {
        let task = TaskId(3);
        for (other, line) in [(1, 10), (5, 50)] {
            let mut lines = two_caches();
            assert_eq!(lines.task_moves(task, on(0, 0)), 0, "nobody has had it");
            for turn in 1..10 {
                let cpu = if turn % 2 == 1 { other } else { 0 };
                assert_eq!(lines.task_moves(task, on(cpu, turn)), 9 * line);
                assert_eq!(lines.task_is_woken(task, on(cpu, turn)), 0);
            }
            assert_eq!(lines.waited[Waited::Task as usize], 9 * 9 * line);
        }
    }

    /// One writer, many readers: each reads once, in turn if they come together, and the writer waits for the farthest.
    #[test]
    fn readers_are_served_one_by_one_and_the_writer_waits_for_the_farthest() {
        let mut lines = two_caches();
        let zero = CpuMask::of(CpuId(0));
        assert_eq!(lines.rq_changes(CpuId(0), 0, on(0, 0)), 0);
        // All at the same time: three lines each, and the whole time of a line for each who came before.
        let waits: Vec<Ns> = (1..4).map(|cpu| lines.looks_at(&zero, on(cpu, 1000))).collect();
        assert_eq!(waits, [30, 30 + 20, 30 + 40]);
        assert_eq!(lines.looks_at(&zero, on(1, 1000)), 0, "it has them");
        assert_eq!(lines.rq_changes(CpuId(0), 0, on(0, 2000)), 10);
        assert_eq!(lines.rq_changes(CpuId(0), 0, on(0, 2000)), 0, "nobody has read them since");
        assert_eq!(lines.looks_at(&zero, on(6, 3000)), 3 * 50);
        assert_eq!(lines.rq_changes(CpuId(0), 0, on(0, 4000)), 50);
        // Another CPU takes the run queue over: twelve lines, and nine more for a group.
        assert_eq!(lines.rq_changes(CpuId(0), 1, on(4, 5000)), 21 * 50);
    }

    /// CPUs that come to a lock together have it one after the other, with a hand-over between two.
    #[test]
    fn a_contended_lock_is_passed_on() {
        let mut lines = two_caches();
        let hold = 300;
        let mut before = LastWriter(0);
        for nth in 0..4 {
            let at = on(nth, 1000 + hold);
            let wait = lines.rq_lock(CpuId(0), before, hold, at);
            assert_eq!(wait, u64::from(nth) * (hold + 2 * 20), "CPU {nth}");
            before = LastWriter(nth);
        }
        // Who was done before the others began has not waited; who comes when all are done does not.
        assert_eq!(lines.rq_lock(CpuId(0), before, hold, on(5, 1000)), 0);
        let done = 1000 + 4 * hold + 3 * 40;
        assert_eq!(lines.rq_lock(CpuId(0), before, hold, on(5, done + hold)), 0);
    }
}
