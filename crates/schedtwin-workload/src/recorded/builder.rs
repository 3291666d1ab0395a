// SPDX-License-Identifier: GPL-2.0-or-later
//! From events to steps: follows every thread and CPU through a recording.
//!
//! **States of a thread**, from its first event on:
//!
//! ```text
//!                 switch in                 switch out, wants to go on
//!   Runnable ─────────────────► Running ─────────────────► Runnable
//!      ▲   wakeup                  │ switch out, sleeps
//!      └────────────── Asleep ◄────┘              dead: Dead
//! ```
//!
//! A thread that is first seen leaving a CPU has run there since the beginning, for the CPU has not
//! switched before. One that is first seen coming or being woken has slept till then.
//!
//! **Which wakeup ends a sleep.** `sched_waking` is stamped by the waker, `sched_wakeup` on the wakee's
//! CPU in newer kernels, so the former is the cause where it exists. It may be stamped before the
//! sleeper's last `sched_switch` (it is on its way out on another CPU), so it is kept until the next
//! `sched_wakeup`, or, in traces without those, until the thread runs. A waking of a thread that then does
//! not sleep is forgotten with its `sched_wakeup`.
//!
//! **Hand-over.** A thread that is woken and at once preempts its waker on its CPU runs before the waker does anything more. If it
//! sleeps again before the waker goes on, that order is kept: the waker goes on once the other has got there. Many wakers look
//! then whether the other has answered, as both ends of a pipe do, and find the answer without a sleep that would tell. It
//! counts for pairs only that wake each other, see `compile`: a waker that needs no answer goes on.
//!
//! Work is kept as ns × kHz until the end, when the silicon is known.

use super::moments::Notes;
use super::{Excluded, STEPS_MAX, THREADS_MAX};
use crate::class_of;
use schedtwin_types::fnv::Fnv1a;
use schedtwin_types::{CpuMask, Ns, Policy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Open slices of a thread that are followed.
const SLICES_MAX: usize = 256;

/// From the choice of a CPU in `execve` to `sched_process_exec`, of the caller's own time: 110 us from the call to the event,
/// less 25 us from the call to the stopper where one is moved, medians (Linux 6.18, an EPYC guest).
const EXEC_REST_NS: Ns = 85_000;

/// Different frequencies of a CPU that are kept.
const FREQUENCIES_KEPT: usize = 64;

/// A task, as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    /// Its name.
    pub comm: &'a str,
    /// Its pid, not 0.
    pub pid: u32,
    /// The kernel's priority.
    pub prio: i32,
}

/// The waker of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// The task of that pid, by a call of its own.
    Task(u32),
    /// A timer's interrupt, or one of which nothing is known, a softirq or the idle task.
    Interrupt,
    /// A device's interrupt on that CPU.
    Device {
        /// Which CPU.
        cpu: u16,
    },
}

/// Facts about a thread that no switch tells; each is absent where the recording does not tell it either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Its policy.
    pub policy: Option<Policy>,
    /// The recorded CPUs that it may use.
    pub affinity: Option<CpuMask>,
    /// Its utilisation clamps, lower and upper, of 1024.
    pub clamps: Option<(u16, u16)>,
}

/// The recording is larger than what can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// More than [`THREADS_MAX`] threads.
    Threads,
    /// More than [`STEPS_MAX`] steps.
    Steps,
}

/// The known frequencies of a CPU's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frequencies {
    /// The first different ones and the highest, ascending, kHz.
    pub khz: Vec<u32>,
    /// Times the frequency changed, the first one included.
    changes: u64,
    /// Digests of the sequence of changes: whole, without its last, without its first.
    whole: Fnv1a,
    but_last: Fnv1a,
    but_first: Fnv1a,
}

impl Frequencies {
    fn change(&mut self, khz: u32) {
        self.but_last = self.whole;
        self.whole.extend(khz.to_le_bytes());
        if self.changes > 0 {
            self.but_first.extend(khz.to_le_bytes());
        }
        self.changes += 1;
    }

    /// Whether two CPUs changed through the same frequencies, as those with one clock do; also two of which
    /// nothing is known. A clock's CPUs are told one after the other, so a recording's beginning or end may lie between them:
    /// one may have a change less there, if it has others.
    pub fn same_clock(&self, other: &Frequencies) -> bool {
        let (less, more) =
            if self.changes <= other.changes { (self, other) } else { (other, self) };
        match more.changes - less.changes {
            0 => less.whole == more.whole,
            1 => less.changes > 1 && [more.but_last, more.but_first].contains(&less.whole),
            _ => false,
        }
    }
}

/// One step, before the silicon is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawStep {
    /// Ran on `cpu` for that many ns × kHz.
    Cycles {
        cpu: u16,
        cycles: u64,
    },
    /// Ran on `cpu` that long, at an unknown frequency.
    Time {
        cpu: u16,
        ns: Ns,
    },
    /// The wakeup of that number.
    Wake(u32),
    /// The sleep of that number.
    Sleep(u32),
    Priority(i32),
    /// May use the CPUs of that number among [`Builder::masks`].
    Affinity(u32),
    /// Has these utilisation clamps.
    Clamps(u16, u16),
    /// Starts the thread of that index.
    Clone(u32),
    /// Executes another program.
    Exec,
    /// Goes on once the sleep of that number has begun: see [`Builder`].
    After(u32),
    /// A frame begins or ends: the number of its slice.
    FrameBegin(u8),
    FrameEnd(u8),
    Exit,
}

/// A wakeup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wakeup {
    pub at: Ns,
    /// Index of the thread that made it, if one did.
    pub by: Option<u32>,
    /// The CPU that took the interrupt of a device that made it.
    pub device_cpu: Option<u16>,
}

/// A sleep and how it ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    pub thread: u32,
    /// When it began; `None`: before the recording.
    pub began: Option<Ns>,
    pub end: SleepEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SleepEnd {
    /// Not yet.
    Open,
    /// By that wakeup.
    Wakeup(u32),
    /// By none that is known, before that time. `first`: the thread had not been seen before.
    Unmatched { at: Ns, first: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not seen in any event that tells its state.
    Unknown,
    Running {
        cpu: u16,
        since: Ns,
    },
    /// `woken_at`: of a wakeup that has not led to a switch yet.
    Runnable {
        woken_at: Option<Ns>,
    },
    Asleep {
        sleep: u32,
    },
    Dead,
}

/// A slice of atrace that is a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedFrame {
    pub thread: u32,
    /// Its number in [`super::FRAME_SLICES`].
    pub slice: u8,
    pub began: Ns,
    /// How long it took.
    pub ns: Ns,
}

/// The limits of a CPU's clock from a moment on (`cpu_frequency_limits`).
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitsChange {
    pub at: Ns,
    pub cpu: u16,
    pub min_khz: u32,
    pub max_khz: u32,
}

/// Changes of limits that are kept.
const LIMITS_KEPT: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Thread {
    pub name: Arc<str>,
    pub pid: u32,
    state: State,
    /// Priority now, and at the start.
    prio: i32,
    pub first_prio: i32,
    /// Facts at its start, and its allowed CPUs and clamps as the latest event tells them.
    pub facts: ThreadFacts,
    told: (Option<u32>, Option<(u16, u16)>),
    /// Index of the waker that it preempted, until it sleeps.
    handed_by: Option<u32>,
    /// The thread that preempted this one when it woke it.
    handed_to: Option<u32>,
    /// The sleep that that one has begun since.
    handed_back: Option<u32>,
    /// Its open slices: of frames their number and when they began.
    slices: Vec<Option<(u8, Ns)>>,
    /// Index of the thread that forked it, and when.
    pub forked: Option<(u32, Ns)>,
    pub excluded: Option<Excluded>,
    last_cpu: Option<u16>,
    /// Its latest sleep.
    slept: Option<u32>,
    /// A `sched_waking` whose `sched_wakeup` has not come.
    pending: Option<u32>,
    pub cpu_time_ns: Ns,
    pub steps: Vec<RawStep>,
}

#[derive(Debug, Default)]
struct Cpu {
    /// It has switched since its events are complete.
    seen: bool,
    /// Since when its events are complete; `None`: since the recording's beginning.
    complete_since: Option<Ns>,
    running: Option<u32>,
    /// The thread that the running one has woken last, since it runs.
    woke: Option<u32>,
    /// 0: unknown.
    khz: u32,
    busy_ns: Ns,
    frequencies: Frequencies,
    /// Of what it ran at a known frequency: ns × kHz, and ns.
    clocked: (u128, Ns),
    /// The idle state it is in, and since when.
    idle: Option<(u32, Ns)>,
    /// The limits of its clock, if they have been told.
    limits_khz: Option<(u32, u32)>,
    /// Time in the shallowest idle state, and in deeper ones.
    idle_ns: [Ns; 2],
}

/// Takes a recording's events, in the order of the trace.
#[derive(Debug, Default)]
pub struct Builder {
    pub(super) start: Option<Ns>,
    pub(super) end: Ns,
    pub(super) threads: Vec<Thread>,
    by_pid: BTreeMap<u32, u32>,
    cpus: Vec<Cpu>,
    pub(super) wakeups: Vec<Wakeup>,
    pub(super) sleeps: Vec<Sleep>,
    /// Thread and latency, ns.
    pub(super) latencies: Vec<(u32, u32)>,
    pub(super) switches: u64,
    pub(super) migrations: u64,
    pub(super) contradictions: u64,
    pub(super) priority_changes: u64,
    /// Time that ran at an unknown frequency.
    pub(super) assumed_frequency_ns: Ns,
    pub(super) frames: Vec<RecordedFrame>,
    /// Limits of clocks, in time order.
    pub(super) limits: Vec<LimitsChange>,
    /// Different sets of allowed CPUs that events tell.
    pub(super) masks: Vec<CpuMask>,
    /// What became of each sleep, if that is wanted.
    pub(super) notes: Notes,
    /// Of each pid the facts of its threads, in the order of their lives.
    described: BTreeMap<u32, Vec<ThreadFacts>>,
    /// Classes of threads that are not replayed.
    pub(super) without: Without,
    steps: usize,
    full: Option<Full>,
}

/// Classes of threads that are played otherwise.
#[derive(Debug, Default)]
pub(super) struct Without(BTreeSet<String>);

impl Without {
    /// The reason why a thread of that name is left out.
    pub(super) fn reason(&self, comm: &str) -> Option<Excluded> {
        let asked = || self.0.contains(class_of(comm)).then_some(Excluded::Asked);
        Excluded::by_name(comm).or_else(asked)
    }
}

impl Builder {
    /// Nothing recorded yet.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Keeps what became of each sleep, for [`super::Recording::moments`]. Before the first event.
    pub fn keep_moments(&mut self) {
        self.notes.want();
    }

    /// Whether it does.
    pub fn keeps_moments(&self) -> bool {
        self.notes.wanted()
    }

    /// Leaves out the threads of these classes, by their last names: wakeups by them stay tied to their recorded time. Before the first
    /// event.
    pub fn leave_out(&mut self, classes: BTreeSet<String>) {
        self.without = Without(classes);
    }

    /// Something was recorded at `at`: the recording reaches from the first to the last time given
    /// here. Comes before the event itself, for every line of the trace.
    #[inline]
    pub fn time(&mut self, at: Ns) {
        self.start.get_or_insert(at);
        self.end = self.end.max(at);
    }

    /// Whether the recording is too large: the rest need not be read.
    pub fn full(&self) -> Option<Full> {
        self.full
    }

    /// How long it is.
    pub fn span(&self) -> Ns {
        self.end - self.start.unwrap_or(self.end)
    }

    /// CPUs that events named, from 0.
    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Returns the known frequencies of a CPU's clock.
    pub fn frequencies(&self, cpu: usize) -> &Frequencies {
        &self.cpus[cpu].frequencies
    }

    /// `sched_switch`es so far.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// A CPU is known to exist, whatever it does.
    pub fn cpu_exists(&mut self, cpu: usize) {
        if cpu >= self.cpus.len() {
            self.cpus.resize_with(cpu + 1, Cpu::default);
        }
    }

    /// Events of a CPU were lost before now: what it ran last ended at an unknown time, and what runs now began at one.
    pub fn lost(&mut self, cpu: usize) {
        self.cpu_exists(cpu);
        if let Some(running) = self.cpus[cpu].running.take() {
            self.stop(running);
        }
        self.cpus[cpu].seen = false;
        self.cpus[cpu].idle = None;
        self.cpus[cpu].complete_since = Some(Ns::MAX);
    }

    /// A CPU's events are complete from now on.
    pub fn begins(&mut self, at: Ns, cpu: usize) {
        self.lost(cpu);
        self.cpus[cpu].complete_since = Some(at);
    }

    /// `sched_switch`. `None`: the idle task. `sleeps`, `dead`: how `prev` leaves; neither: it wants to go on.
    pub fn switch(
        &mut self,
        at: Ns,
        cpu: usize,
        prev: Option<Seen<'_>>,
        (sleeps, dead): (bool, bool),
        next: Option<Seen<'_>>,
    ) {
        self.cpu_exists(cpu);
        self.switches += 1;
        let first = !std::mem::replace(&mut self.cpus[cpu].seen, true);
        let was = std::mem::take(&mut self.cpus[cpu].running);
        if let Some(prev) = prev
            && let Some(thread) = self.thread(prev)
        {
            self.switch_out(at, cpu, thread, prev, (sleeps, dead), first);
            if was.is_some_and(|was| was != thread) {
                self.contradictions += 1;
                self.stop(was.expect("somebody ran"));
            }
        } else if let Some(was) = was {
            self.contradictions += 1;
            self.stop(was);
        }
        let woke = self.cpus[cpu].woke.take();
        if let Some(next) = next
            && let Some(thread) = self.thread(next)
        {
            self.switch_in(at, cpu, thread, next);
            if let Some(was) = was
                && woke == Some(thread)
                && self.threads[was as usize].state == (State::Runnable { woken_at: None })
            {
                self.threads[was as usize].handed_to = Some(thread);
                self.threads[thread as usize].handed_by = Some(was);
            }
        }
    }

    /// A thread goes on: behind the sleep of the one that it had handed its CPU to, if that has slept since.
    fn goes_on(&mut self, thread: u32) {
        let t = &mut self.threads[thread as usize];
        let Some(to) = t.handed_to.take() else { return };
        match t.handed_back.take() {
            Some(sleep) => self.push(thread, RawStep::After(sleep)),
            None => self.threads[to as usize].handed_by = None,
        }
    }

    /// A thread that ran was not seen to stop: when it did is lost, and so is the time since.
    fn stop(&mut self, thread: u32) {
        if let State::Running { .. } = self.threads[thread as usize].state {
            self.threads[thread as usize].state = State::Runnable { woken_at: None };
        }
    }

    fn switch_out(
        &mut self,
        at: Ns,
        cpu: usize,
        thread: u32,
        seen: Seen<'_>,
        (sleeps, dead): (bool, bool),
        first_of_cpu: bool,
    ) {
        let here = cpu as u16;
        match self.threads[thread as usize].state {
            State::Running { cpu, .. } if cpu == here => self.account(at, thread),
            state
                if first_of_cpu
                    && (state == State::Unknown || self.cpus[cpu].complete_since.is_some()) =>
            {
                if let State::Asleep { sleep } = state {
                    // Its wakeup was lost.
                    self.sleeps[sleep as usize].end = SleepEnd::Unmatched { at, first: false };
                }
                let start = self.start.unwrap_or(at);
                let since = self.cpus[cpu].complete_since.unwrap_or(start).min(at);
                self.threads[thread as usize].state = State::Running { cpu: here, since };
                self.threads[thread as usize].last_cpu = Some(here);
                self.account(at, thread);
            }
            state => {
                self.contradictions += 1;
                if let State::Asleep { sleep } = state {
                    self.sleeps[sleep as usize].end = SleepEnd::Unmatched { at, first: false };
                }
            }
        }
        self.priority(thread, seen.prio);
        if dead {
            self.push(thread, RawStep::Exit);
            self.threads[thread as usize].state = State::Dead;
        } else if sleeps {
            self.sleep(thread, Some(at));
        } else {
            self.threads[thread as usize].state = State::Runnable { woken_at: None };
            self.notes.preempted(self.threads[thread as usize].slept);
        }
    }

    fn switch_in(&mut self, at: Ns, cpu: usize, thread: u32, seen: Seen<'_>) {
        match self.threads[thread as usize].state {
            State::Asleep { sleep } => match self.threads[thread as usize].pending {
                Some(wakeup) => {
                    let woken_at = self.wake(thread, sleep, wakeup);
                    self.latency(thread, at - woken_at.min(at));
                }
                None => {
                    self.sleeps[sleep as usize].end = SleepEnd::Unmatched { at, first: false };
                }
            },
            State::Unknown => {
                let sleep = self.sleep(thread, None);
                match self.threads[thread as usize].pending {
                    Some(wakeup) => {
                        self.wake(thread, sleep, wakeup);
                    }
                    None => {
                        self.sleeps[sleep as usize].end = SleepEnd::Unmatched { at, first: true };
                    }
                }
            }
            State::Runnable { woken_at } => {
                if let Some(woken_at) = woken_at {
                    self.latency(thread, at - woken_at.min(at));
                }
            }
            State::Running { .. } => self.contradictions += 1,
            State::Dead => unreachable!("its number names another thread now"),
        }
        self.priority(thread, seen.prio);
        self.goes_on(thread);
        self.threads[thread as usize].state = State::Running { cpu: cpu as u16, since: at };
        self.cpus[cpu].running = Some(thread);
        let last_cpu = self.threads[thread as usize].last_cpu.replace(cpu as u16);
        self.notes.runs(self.threads[thread as usize].slept, at, cpu as u16, last_cpu);
        self.migrations += u64::from(last_cpu.is_some_and(|last| usize::from(last) != cpu));
    }

    /// `sched_waking`.
    pub fn waking(&mut self, at: Ns, by: Waker, task: Seen<'_>) {
        if let Some(thread) = self.thread(task) {
            self.threads[thread as usize].pending = self.wakeup_made(at, by);
            self.has_woken(by, thread);
        }
    }

    /// Notes whom the running task of a CPU has woken.
    fn has_woken(&mut self, by: Waker, thread: u32) {
        if let Some(by) = self.running(by)
            && let State::Running { cpu, .. } = self.threads[by as usize].state
        {
            self.cpus[cpu as usize].woke = Some(thread);
        }
    }

    /// `sched_wakeup`; the cause if no `sched_waking` came before.
    pub fn wakeup(&mut self, at: Ns, by: Waker, task: Seen<'_>) {
        let Some(thread) = self.thread(task) else { return };
        let sleep = match self.threads[thread as usize].state {
            State::Asleep { sleep } => sleep,
            State::Unknown => self.sleep(thread, None),
            _ => {
                // It had not slept yet.
                self.threads[thread as usize].pending = None;
                return;
            }
        };
        let pending = self.threads[thread as usize].pending;
        let Some(wakeup) = pending.or_else(|| self.wakeup_made(at, by)) else { return };
        let woken_at = self.wake(thread, sleep, wakeup);
        self.has_woken(by, thread);
        self.priority(thread, task.prio);
        self.threads[thread as usize].state = State::Runnable { woken_at: Some(woken_at) };
    }

    /// `sched_process_fork`.
    pub fn fork(&mut self, at: Ns, parent: u32, child_comm: &str, child: u32) {
        let parent = self.running(Waker::Task(parent));
        // The number may have had another owner, whose end is not in the trace.
        self.by_pid.remove(&child);
        let prio = parent.map_or(120, |parent| self.threads[parent as usize].prio);
        let Some(thread) = self.thread(Seen { comm: child_comm, pid: child, prio }) else { return };
        self.born(at, parent, thread);
    }

    /// `sched_wakeup_new`: a fork, where that event is missing.
    pub fn wakeup_new(&mut self, at: Ns, by: Waker, task: Seen<'_>) {
        let Some(thread) = self.thread(task) else { return };
        if self.threads[thread as usize].state == State::Unknown {
            let parent = self.running(by);
            self.born(at, parent, thread);
        }
        self.priority(thread, task.prio);
    }

    /// `sched_process_exec` of the running thread, which has the number `pid` from now on. It chose its CPU
    /// `EXEC_REST_NS` ago.
    pub fn exec(&mut self, at: Ns, old_pid: u32, pid: u32) {
        let Some(thread) = self.running(Waker::Task(old_pid)) else { return };
        self.account(at, thread);
        self.by_pid.insert(pid, thread);
        let rest = self.take_back(EXEC_REST_NS, thread);
        self.push(thread, RawStep::Exec);
        if let Some(rest) = rest {
            self.push(thread, rest);
        }
    }

    /// Takes so much off the end of what a thread has just run, as far as that is one step.
    fn take_back(&mut self, last_ns: Ns, thread: u32) -> Option<RawStep> {
        match self.threads[thread as usize].steps.last_mut()? {
            RawStep::Cycles { cpu, cycles } => {
                let khz = u64::from(self.cpus[usize::from(*cpu)].khz);
                let last = last_ns.saturating_mul(khz).min(*cycles);
                *cycles -= last;
                Some(RawStep::Cycles { cpu: *cpu, cycles: last })
            }
            RawStep::Time { cpu, ns } => {
                let last = last_ns.min(*ns);
                *ns -= last;
                Some(RawStep::Time { cpu: *cpu, ns: last })
            }
            _ => None,
        }
    }

    fn born(&mut self, at: Ns, parent: Option<u32>, thread: u32) {
        let Some(parent) = parent else { return };
        self.account(at, parent);
        self.push(parent, RawStep::Clone(thread));
        self.threads[thread as usize].forked = Some((parent, at));
        self.threads[thread as usize].state = State::Runnable { woken_at: None };
    }

    /// What the recording says of a thread beside its events; of several with one pid, in the order of their lives.
    pub fn describe(&mut self, pid: u32, facts: ThreadFacts) {
        self.described.entry(pid).or_default().push(facts);
    }

    /// An event tells the CPUs that a thread may use.
    pub fn affinity(&mut self, pid: u32, cpus: CpuMask) {
        let Some(&thread) = self.by_pid.get(&pid) else { return };
        let mask = self.mask(cpus);
        let t = &mut self.threads[thread as usize];
        match t.told.0.replace(mask) {
            None => t.facts.affinity = Some(cpus),
            Some(known) if known == mask => {}
            Some(_) => self.before_its_sleep(thread, RawStep::Affinity(mask)),
        }
    }

    /// An event tells a thread's clamps, one or both.
    pub fn clamps(&mut self, pid: u32, min: Option<u16>, max: Option<u16>) {
        let Some(&thread) = self.by_pid.get(&pid) else { return };
        let t = &mut self.threads[thread as usize];
        let known = t.told.1;
        let (low, high) = known.unwrap_or((0, 1024));
        let now = (min.unwrap_or(low), max.unwrap_or(high));
        t.told.1 = Some(now);
        match known {
            None => t.facts.clamps = Some(now),
            Some(known) if known == now => {}
            Some(_) => self.before_its_sleep(thread, RawStep::Clamps(now.0, now.1)),
        }
    }

    /// The number of a set of CPUs.
    fn mask(&mut self, cpus: CpuMask) -> u32 {
        let known = self.masks.iter().position(|mask| *mask == cpus);
        known.unwrap_or_else(|| {
            self.masks.push(cpus);
            self.masks.len() - 1
        }) as u32
    }

    /// Gives each thread the facts that the recording has beside its events; those that events told count more.
    pub(super) fn join_facts(&mut self) {
        let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
        for thread in &mut self.threads {
            let Some(all) = self.described.get(&thread.pid) else { continue };
            let life = taken.entry(thread.pid).or_default();
            let told = all[(*life).min(all.len() - 1)];
            *life += 1;
            thread.facts = ThreadFacts {
                policy: told.policy,
                affinity: thread.facts.affinity.or(told.affinity),
                clamps: thread.facts.clamps.or(told.clamps),
            };
        }
    }

    /// A slice of the running thread begins; `frame`: its number if it is one of [`super::FRAME_SLICES`].
    pub fn slice_begin(&mut self, at: Ns, pid: u32, frame: Option<u8>) {
        let Some(thread) = self.running(Waker::Task(pid)) else { return };
        if self.threads[thread as usize].slices.len() >= SLICES_MAX {
            return;
        }
        self.threads[thread as usize].slices.push(frame.map(|frame| (frame, at)));
        if let Some(frame) = frame {
            self.account(at, thread);
            self.push(thread, RawStep::FrameBegin(frame));
        }
    }

    /// The innermost slice of the running thread ends.
    pub fn slice_end(&mut self, at: Ns, pid: u32) {
        let Some(thread) = self.running(Waker::Task(pid)) else { return };
        if let Some(Some((frame, began))) = self.threads[thread as usize].slices.pop() {
            self.account(at, thread);
            self.push(thread, RawStep::FrameEnd(frame));
            let ns = at.saturating_sub(began);
            self.frames.push(RecordedFrame { thread, slice: frame, began, ns });
        }
    }

    /// `cpu_frequency`.
    pub fn frequency(&mut self, at: Ns, cpu: usize, khz: u32) {
        self.cpu_exists(cpu);
        if let Some(running) = self.cpus[cpu].running {
            self.account(at, running);
        }
        let clock = &mut self.cpus[cpu];
        if std::mem::replace(&mut clock.khz, khz) == khz {
            return;
        }
        let known = &mut clock.frequencies;
        known.change(khz);
        if let Err(place) = known.khz.binary_search(&khz) {
            if known.khz.len() == FREQUENCIES_KEPT {
                // The highest matters: work is counted against it.
                known.khz[FREQUENCIES_KEPT - 1] = known.khz[FREQUENCIES_KEPT - 1].max(khz);
            } else {
                known.khz.insert(place, khz);
            }
        }
    }

    /// `cpu_frequency_limits`. A clock's CPUs are told one after the other, each with the same limits.
    pub fn frequency_limits(&mut self, at: Ns, cpu: usize, min_khz: u32, max_khz: u32) {
        self.cpu_exists(cpu);
        let now = Some((min_khz, max_khz));
        if std::mem::replace(&mut self.cpus[cpu].limits_khz, now) != now
            && self.limits.len() < LIMITS_KEPT
        {
            self.limits.push(LimitsChange { at, cpu: cpu as u16, min_khz, max_khz });
        }
    }

    /// `cpu_idle`. `None`: woken up.
    pub fn idle(&mut self, at: Ns, cpu: usize, state: Option<u32>) {
        self.cpu_exists(cpu);
        let cpu = &mut self.cpus[cpu];
        if let Some((state, since)) = cpu.idle.take() {
            cpu.idle_ns[usize::from(state > 0)] += at.saturating_sub(since);
        }
        cpu.idle = state.map(|state| (state, at));
    }

    /// Ends the recording: a thread that runs has run to its end.
    pub(super) fn close(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.idle(self.end, cpu, None);
            if let Some(running) = self.cpus[cpu].running.take() {
                self.account(self.end, running);
            }
        }
    }

    pub(super) fn busy_ns(&self) -> impl Iterator<Item = Ns> {
        self.cpus.iter().map(|cpu| cpu.busy_ns)
    }

    /// The mean frequency of each CPU while it ran replayed threads, kHz; 0 where none is known.
    pub(super) fn mean_khz(&self) -> impl Iterator<Item = u32> {
        self.cpus.iter().map(|cpu| {
            let (cycles, ns) = cpu.clocked;
            cycles.checked_div(u128::from(ns)).unwrap_or(0) as u32
        })
    }

    /// Time of each CPU in its shallowest idle state, and in deeper ones.
    pub(super) fn idle_ns(&self) -> impl Iterator<Item = [Ns; 2]> {
        self.cpus.iter().map(|cpu| cpu.idle_ns)
    }

    /// The thread of a pid, made at its first event; `None` if there are too many.
    fn thread(&mut self, seen: Seen<'_>) -> Option<u32> {
        if let Some(known) = self.by_pid.get(&seen.pid)
            // The number of a dead thread belongs to another one when it comes again.
            && self.threads[*known as usize].state != State::Dead
        {
            let thread = &mut self.threads[*known as usize];
            if *thread.name != *seen.comm {
                thread.name = Arc::from(seen.comm);
                thread.excluded = self.without.reason(seen.comm);
            }
            return Some(*known);
        }
        if self.threads.len() >= THREADS_MAX {
            self.full = Some(Full::Threads);
            return None;
        }
        let index = self.threads.len() as u32;
        self.by_pid.insert(seen.pid, index);
        self.threads.push(Thread {
            name: Arc::from(seen.comm),
            pid: seen.pid,
            state: State::Unknown,
            prio: seen.prio,
            first_prio: seen.prio,
            facts: ThreadFacts::default(),
            told: (None, None),
            handed_by: None,
            handed_to: None,
            handed_back: None,
            slices: Vec::new(),
            forked: None,
            excluded: self.without.reason(seen.comm),
            last_cpu: None,
            slept: None,
            pending: None,
            cpu_time_ns: 0,
            steps: Vec::new(),
        });
        Some(index)
    }

    /// The thread that does something, if it is known to run. Only then is its place among its own
    /// steps known, and only so do steps depend on what was recorded earlier alone: no deadlock.
    fn running(&self, who: Waker) -> Option<u32> {
        let Waker::Task(pid) = who else { return None };
        let thread = *self.by_pid.get(&pid)?;
        matches!(self.threads[thread as usize].state, State::Running { .. }).then_some(thread)
    }

    fn push(&mut self, thread: u32, step: RawStep) {
        if self.steps >= STEPS_MAX {
            self.full = Some(Full::Steps);
            return;
        }
        self.steps += 1;
        self.threads[thread as usize].steps.push(step);
    }

    /// Counts what a running thread has run since it was last looked at.
    fn account(&mut self, at: Ns, thread: u32) {
        let State::Running { cpu, since } = self.threads[thread as usize].state else { return };
        let ns = at.saturating_sub(since);
        if ns == 0 {
            return;
        }
        self.threads[thread as usize].cpu_time_ns += ns;
        self.threads[thread as usize].state = State::Running { cpu, since: at };
        if self.threads[thread as usize].excluded.is_some() {
            return;
        }
        self.cpus[cpu as usize].busy_ns += ns;
        let khz = u64::from(self.cpus[cpu as usize].khz);
        if khz > 0 {
            let (cycles, clocked_ns) = &mut self.cpus[cpu as usize].clocked;
            *cycles += u128::from(ns) * u128::from(khz);
            *clocked_ns += ns;
        }
        self.assumed_frequency_ns += if khz == 0 { ns } else { 0 };
        let last = self.threads[thread as usize].steps.last_mut();
        // Runs of one CPU become one step; 2^64 ns × kHz are an hour at 5 GHz.
        match last {
            Some(RawStep::Cycles { cpu: on, cycles }) if *on == cpu && khz > 0 => {
                *cycles = cycles.saturating_add(ns.saturating_mul(khz));
            }
            Some(RawStep::Time { cpu: on, ns: so_far }) if *on == cpu && khz == 0 => *so_far += ns,
            _ if khz > 0 => {
                self.push(thread, RawStep::Cycles { cpu, cycles: ns.saturating_mul(khz) });
            }
            _ => self.push(thread, RawStep::Time { cpu, ns }),
        }
    }

    /// A thread goes to sleep; the number of its sleep.
    fn sleep(&mut self, thread: u32, began: Option<Ns>) -> u32 {
        let sleep = self.sleeps.len() as u32;
        self.sleeps.push(Sleep { thread, began, end: SleepEnd::Open });
        self.push(thread, RawStep::Sleep(sleep));
        self.threads[thread as usize].state = State::Asleep { sleep };
        self.threads[thread as usize].slept = Some(sleep);
        if let Some(by) = self.threads[thread as usize].handed_by.take()
            && self.threads[by as usize].handed_to == Some(thread)
        {
            self.threads[by as usize].handed_back = Some(sleep);
        }
        sleep
    }

    /// Notes a wakeup, at its place in the work of the task that makes it.
    fn wakeup_made(&mut self, at: Ns, by: Waker) -> Option<u32> {
        if self.wakeups.len() >= STEPS_MAX {
            self.full = Some(Full::Steps);
            return None;
        }
        let device_cpu = match by {
            Waker::Device { cpu } => Some(cpu),
            _ => None,
        };
        let by = self.running(by);
        let wakeup = self.wakeups.len() as u32;
        self.wakeups.push(Wakeup { at, by, device_cpu });
        if let Some(by) = by {
            self.account(at, by);
            self.push(by, RawStep::Wake(wakeup));
        }
        Some(wakeup)
    }

    /// A wakeup ends a sleep; when it was made.
    fn wake(&mut self, thread: u32, sleep: u32, wakeup: u32) -> Ns {
        self.sleeps[sleep as usize].end = SleepEnd::Wakeup(wakeup);
        self.threads[thread as usize].pending = None;
        self.wakeups[wakeup as usize].at
    }

    fn latency(&mut self, thread: u32, ns: Ns) {
        self.latencies.push((thread, ns.min(u64::from(u32::MAX)) as u32));
    }

    /// A thread is seen with a priority. One that has just slept took it before that sleep.
    fn priority(&mut self, thread: u32, prio: i32) {
        let t = &mut self.threads[thread as usize];
        if t.prio == prio {
            return;
        }
        t.prio = prio;
        let steps = &mut t.steps;
        let slept = matches!(steps.last(), Some(RawStep::Sleep(_)));
        if steps.len() <= usize::from(slept) {
            // Nothing came before: it had this priority at the start.
            t.first_prio = prio;
            return;
        }
        self.priority_changes += 1;
        self.before_its_sleep(thread, RawStep::Priority(prio));
    }

    /// Adds a step; before the sleep of a thread that has just slept, so that the wakeup finds it done.
    fn before_its_sleep(&mut self, thread: u32, step: RawStep) {
        let before = self.threads[thread as usize].steps.len();
        self.push(thread, step);
        let steps = &mut self.threads[thread as usize].steps;
        if steps.len() > before && before > 0 && matches!(steps[before - 1], RawStep::Sleep(_)) {
            steps.swap(before - 1, before);
        }
    }
}
