// SPDX-License-Identifier: GPL-2.0-or-later
//! Recorded work: what the threads of a trace did, as a workload that can meet another kernel.
//!
//! # Idea
//!
//! A trace says who ran where and when, and who woke whom. Where and when was the recorded kernel's doing; what
//! is the threads' own is how much they computed between two sleeps and what they waited for. That is
//! kept, the rest is left to the kernel that replays it.
//!
//! # Terms and algorithm
//!
//! 1. *Work* of a run is the sum of time × capacity × frequency / highest frequency, of the CPU it ran on.
//!    Being preempted, waiting for a CPU and migrating are no part of it.
//! 2. *Sleeps* end by a *cause*. A wakeup by a task stays tied to that task: its program posts the
//!    sleeper's ticket at the same point of **its** work, and the sleeper waits for the ticket. So
//!    a waker that is slower under another kernel makes its wakee later, as in reality.
//! 3. A wakeup by an interrupt, by the idle task or by a thread that is left out stays tied to its
//!    recorded time, and so does a sleep whose wakeup is not in the trace (*unmatched*). One that a device made is an
//!    interrupt at that time on the recorded CPU, which posts the sleeper's ticket; all others are timers.
//! 4. Each sleep has a ticket of its own, so that none is lost: a ticket that is posted early lets
//!    the sleeper pass without sleeping. Tickets cannot deadlock: a sleep depends on a
//!    post that was recorded before the sleep ended.
//! 5. An interrupt that ends a sleep of at most [`ANSWER_MOST_NS`] is the *answer* to what the thread has just asked
//!    for: a block read, a bus transfer, a short pause. A thread that goes to sleep later than it did in the recording gets it
//!    as much later; it does not find it there already. Longer sleeps end at their recorded time, and so the thread
//!    catches up.
//! 6. Of two threads that wake each other, one that preempts its waker and sleeps before the waker goes on keeps that order: a
//!    *hand-over*. The waker goes on where it was preempted once the other has come to its sleep. Its wait for that is no
//!    recorded sleep.
//! 7. A thread has the priority that it was recorded with. A change that takes effect with a wakeup
//!    (a binder thread that inherits its caller's) is made before the sleep, so that the wakeup finds it.
//!
//! ```text
//! recorded   a |==== wakes b ===|......            replayed    a |========= post ======|.....
//!            b ........|=====|.......                          b ............|=====|....
//!   irq wakes c at 5 ms  |==|.....                             c  until 5 ms |==|......
//! ```
//!
//! Before the recording begins its threads are started one after the other and sleep ([`WARMUP`]); measuring starts with it.
//! When its last moment has come the run is over, done or not.
//!
//! The twin charges the paths of its own kernel (system calls, wakeups, switches, forks) and the recorded time
//! contains those of the recorded one, so an estimate is taken off: see [`PathCosts`].
//!
//! Differences: a wakeup that is tied to time is a timer of the sleeper, armed where it went to sleep, unless the recording
//! tells that a device made it: idle governors see it coming. Affinities, policies and clamps are those that the recording
//! tells beside its events ([`ThreadFacts`]), as ours does. Most tell none: then only kernel threads that are named after
//! their CPU are pinned, real-time threads are `SCHED_FIFO` and all others `SCHED_OTHER`. Groups are not told, and deadline
//! threads become `SCHED_FIFO` 99. Time in interrupts counts as work of the thread that they interrupted.
//! Utilisation signals start as those of new threads and have decayed when the recording begins.

mod builder;
mod compile;
mod frames;
mod jobs;
mod moments;

pub use builder::{Builder, Frequencies, Full, Seen, ThreadFacts, Waker};
pub use compile::{PathCosts, RecordedCpu, Silicon};
pub use frames::{FRAME_SLICES, Frames, frame_slice};
pub use jobs::{Jobs, Period};
pub use moments::{Moment, Position};

use crate::program::Interpreter;
use crate::program::code::Code;
use crate::thread_settings::unmatched;
use crate::workload::{Changed, Checked};
use crate::{Host, Programs, ThreadChanges, ThreadSetting};
use schedtwin_input::Diagnostics;
use schedtwin_types::{Ns, ThreadId, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// From the start of the threads to the beginning of the recording, ns, and [`WARMUP_PER_THREAD`]
/// for each: PELT halves a signal in 32 ms, so that what starting cost is below 2 % of it.
pub const WARMUP: Ns = 200_000_000;

/// Forking a thread costs some 25 us of work, four times that on a small core at half speed.
pub const WARMUP_PER_THREAD: Ns = 100_000;

/// The longest sleep whose end by an interrupt is taken for an answer: storage and buses answer within it, frames and periods
/// of applications are longer.
pub const ANSWER_MOST_NS: Ns = 2_000_000;

/// The most threads of a recording that are replayed: a phone has some 3000, of which 400 run within seconds.
pub const THREADS_MAX: usize = 16_384;

/// The most steps that are kept, 16 bytes each: an hour of a phone at ten thousand wakeups a second.
pub const STEPS_MAX: usize = 32 << 20;

/// Names of threads whose latencies are kept apart.
pub const LATENCY_NAMES: usize = 5;

/// Latencies that a name must have to be kept apart: a hundredth of them is then one.
pub const LATENCIES_LEAST: usize = 100;

/// Why a thread is not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excluded {
    /// `migration/N`: the twin has stoppers of its own.
    Stopper,
    /// `sugov:N`: the twin's governor changes frequencies itself.
    Governor,
    /// Its class is played otherwise ([`Builder::leave_out`]).
    Asked,
}

impl Excluded {
    /// The reason why a thread of that name is left out.
    pub fn by_name(comm: &str) -> Option<Excluded> {
        if comm.starts_with("migration/") {
            Some(Excluded::Stopper)
        } else if comm.starts_with("sugov:") {
            Some(Excluded::Governor)
        } else {
            None
        }
    }
}

/// A thread of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedThread {
    /// Its last name.
    pub name: Arc<str>,
    /// Its pid.
    pub pid: u32,
    /// Time on a CPU.
    pub cpu_time_ns: Ns,
    /// Set if it is not replayed.
    pub excluded: Option<Excluded>,
    /// Its priority at the start, as the kernel's number.
    pub prio: i32,
    /// Its work in summary; nothing where it is not replayed.
    pub jobs: Jobs,
}

/// The content of a recording, as far as a replay can be compared with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Its length.
    pub span_ns: Ns,
    /// Its threads, those left out too, in the order of their appearance.
    pub threads: Vec<RecordedThread>,
    /// Time that each CPU ran replayed threads.
    pub busy_ns: Vec<Ns>,
    /// Mean frequency of each CPU while it ran replayed threads, kHz; 0 where none is known.
    pub mean_khz: Vec<u32>,
    /// Time of each CPU in its shallowest idle state, and in deeper ones.
    pub idle_ns: Vec<[Ns; 2]>,
    /// Work of the replayed threads, path costs included, ns at capacity 1024.
    pub work: Work,
    /// Time of replayed threads at an assumed frequency, as none was recorded yet.
    pub assumed_frequency_ns: Ns,
    /// `sched_switch`es, of everybody.
    pub switches: u64,
    /// Times a thread ran on another CPU than before.
    pub migrations: u64,
    /// Sleeps tied to the task that ended them.
    pub tied_to_waker: u64,
    /// Sleeps tied to the recorded time of an interrupt.
    pub tied_to_time: u64,
    /// Those of them that a device's interrupt ends on its recorded CPU.
    pub by_device: u64,
    /// Sleeps whose wakeup is not in the trace: tied to the time when the thread ran again.
    pub unmatched: u64,
    /// Sleeps that no wakeup ended before the recording did.
    pub unended: u64,
    /// Threads that were there before the recording, and begin with their first event.
    pub first_seen: u64,
    /// Threads that other replayed threads start.
    pub forked: u64,
    /// Times that a thread executed another program.
    pub executed: u64,
    /// Events that contradict what was known: a lost event between them, or a damaged trace.
    pub contradictions: u64,
    /// Changes of priority.
    pub priority_changes: u64,
    /// Changes of the limits of a clock.
    pub limit_changes: u64,
    /// Threads pinned to the CPU in their name.
    pub pinned: u64,
    /// Threads whose allowed CPUs are told.
    pub affinities: u64,
    /// Those of them that may not use all CPUs of the recording.
    pub bound: u64,
    /// Threads whose policy is told and is another one than their priority suggests.
    pub policies: u64,
    /// Threads whose clamps are told and limit something.
    pub clamped: u64,
    /// `sched_waking` (or `sched_wakeup`, where that is missing) to `sched_switch` of the
    /// replayed threads, ns, ascending.
    pub waking_latency_ns: Vec<u32>,
    /// The same of the names of threads with the most of them, at most [`LATENCY_NAMES`].
    pub latency_by_name: Vec<(Arc<str>, Vec<u32>)>,
    /// Times that a thread preempted its waker and slept before that went on.
    pub handovers: u64,
    /// Frames by slice.
    pub frames: Vec<Frames>,
    /// Path costs that were taken off the recorded work, ns at capacity 1024.
    pub paths_taken_off: Work,
}

/// A recording, ready to be replayed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recording {
    pub(crate) code: Arc<Code>,
    recorded: Arc<Recorded>,
    moments: Arc<[Moment]>,
    /// Digest of all that is replayed.
    fingerprint: String,
}

impl Recording {
    /// Returns the content of the recording.
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// What became of each sleep, by thread and step; nothing unless [`Builder::keep_moments`] asked for it.
    pub fn moments(&self) -> &Arc<[Moment]> {
        &self.moments
    }

    /// Text that is different for different recordings, for provenance.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// From the start of a run to its end.
    pub fn duration(&self) -> Ns {
        self.code.warmup + compile::recording(&self.code).span
    }
}

impl Checked for Recording {
    fn bytes(&self) -> &[u8] {
        self.fingerprint.as_bytes()
    }

    fn with_thread_settings(
        &self,
        settings: &[ThreadSetting],
        pids: Option<&BTreeSet<u32>>,
    ) -> Option<Changed> {
        // Those that are left out have no programs.
        let replayed = self.recorded.threads.iter().filter(|thread| thread.excluded.is_none());
        let is_meant = |pid: u32| pids.is_none_or(|pids| pids.contains(&pid));
        let meant: Vec<bool> = replayed.map(|thread| is_meant(thread.pid)).collect();
        let of_code = self.code.tasks.iter().zip(&meant);
        let names = of_code.filter(|(_, meant)| **meant).map(|(thread, _)| &*thread.name);
        let faults = unmatched(settings, names);
        if !faults.is_empty() {
            return Some(Err(faults));
        }
        let mut code = (*self.code).clone();
        let threads = code.recording.iter_mut().flat_map(|recording| &mut recording.threads);
        for ((thread, task), meant) in threads.zip(&code.tasks).zip(meant) {
            if meant {
                thread.changes = ThreadChanges::of(&task.name, settings);
            }
        }
        let said: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let fingerprint = format!("{} {}", self.fingerprint, said.join("; "));
        let (recorded, moments) = (self.recorded.clone(), self.moments.clone());
        Some(Ok(Arc::new(Recording { code: Arc::new(code), recorded, fingerprint, moments })))
    }

    /// Nothing in a recording is random, and the twin itself ends a run that is to be shorter.
    fn instantiate(
        &self,
        host: &Host,
        _seed: u64,
        _duration: Option<Ns>,
    ) -> Result<Programs, Diagnostics> {
        Ok(Interpreter::new(self.code.clone(), host.cpu_capacity.len()).into())
    }
}

/// The part of a recording that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Work that is done, ns at capacity 1024; of a piece that has begun, what is done of it.
    pub work: u128,
    /// All of it, path costs taken off.
    pub work_recorded: u128,
    /// Recorded sleeps in which the thread slept: it does not if what it waits for is there already.
    pub sleeps: u64,
    /// Those in which it did not, by the name of the thread: the most first.
    pub early: Vec<(Arc<str>, u64)>,
    /// Frames by slice.
    pub frames: Vec<Frames>,
}

impl Done {
    /// The progress of a run; `None`: its threads are not those of a recording. `left` says what a thread has left of the
    /// work that it was given last.
    pub(crate) fn of(interpreter: &Interpreter, left: impl Fn(ThreadId) -> Work) -> Option<Done> {
        let recording = interpreter.code().recording.as_ref()?;
        let mut by_name: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        for (name, early) in interpreter.early().filter(|(_, early)| *early > 0) {
            *by_name.entry(name.clone()).or_default() += u64::from(early);
        }
        let mut early: Vec<_> = by_name.into_iter().collect();
        early.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let records = interpreter.counted().recorded.iter().enumerate();
        let durations =
            records.flat_map(|(slice, all)| all.iter().map(move |ns| (slice as u8, *ns)));
        let frames = Frames::of(durations, &recording.frame_periods);
        let begun = interpreter.begun().map(|(thread, work)| work.saturating_sub(left(thread)));
        let work = interpreter.replayed().work + begun.map(u128::from).sum::<u128>();
        let sleeps = interpreter.replayed().sleeps;
        Some(Done { work, work_recorded: recording.work, sleeps, early, frames })
    }
}
