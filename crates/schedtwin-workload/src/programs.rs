//! The running threads of a workload, whichever kind it is.

use crate::program;
use crate::recorded::{Done, Replay};
use schedtwin_types::{Ns, Op, Outcome, ThreadId};

/// All threads of a workload with their user memory. A clone goes on independently.
#[derive(Clone, Debug)]
pub struct Programs(Kind);

#[derive(Clone, Debug)]
enum Kind {
    RtApp(program::Programs),
    Recorded(Replay),
}

impl From<program::Programs> for Programs {
    fn from(programs: program::Programs) -> Programs {
        Programs(Kind::RtApp(programs))
    }
}

impl From<Replay> for Programs {
    fn from(replay: Replay) -> Programs {
        Programs(Kind::Recorded(replay))
    }
}

impl Programs {
    /// Thread 0, which starts all others.
    pub fn main(&self) -> ThreadId {
        ThreadId(0)
    }

    /// The name of a thread as `comm` shows it.
    pub fn thread_name(&self, thread: ThreadId) -> &str {
        match &self.0 {
            Kind::RtApp(programs) => programs.thread_name(thread),
            Kind::Recorded(replay) => replay.name(thread),
        }
    }

    /// The name under which measurements of a thread are summed: of its task in an rt-app file, of
    /// itself in a recording.
    pub fn task_name(&self, thread: ThreadId) -> &str {
        match &self.0 {
            Kind::RtApp(programs) => programs.task_name(thread),
            Kind::Recorded(replay) => replay.name(thread),
        }
    }

    /// The kind of a thread's work, after which a machine may run it faster or slower.
    pub fn work_kind(&self, thread: ThreadId) -> &str {
        match &self.0 {
            Kind::RtApp(programs) => programs.work_kind(thread),
            Kind::Recorded(_) => "recorded",
        }
    }

    /// Threads that exist so far or are known to come, thread 0 included.
    pub fn nr_threads(&self) -> usize {
        match &self.0 {
            Kind::RtApp(programs) => programs.nr_threads(),
            Kind::Recorded(replay) => replay.nr_threads(),
        }
    }

    /// Futexes, numbered from 0; never changes.
    pub fn nr_futexes(&self) -> usize {
        match &self.0 {
            Kind::RtApp(programs) => programs.nr_futexes(),
            Kind::Recorded(replay) => replay.nr_futexes(),
        }
    }

    /// Pipes, numbered from 0; never changes.
    pub fn nr_pipes(&self) -> usize {
        match &self.0 {
            Kind::RtApp(programs) => programs.nr_pipes(),
            Kind::Recorded(_) => 0,
        }
    }

    /// Ends the workload: of rt-app, threads end when they look the next time; of a recording, thread 0
    /// ends the run with its next step.
    pub fn shutdown(&mut self) {
        match &mut self.0 {
            Kind::RtApp(programs) => programs.shutdown(),
            Kind::Recorded(replay) => replay.shutdown(),
        }
    }

    /// Whether the workload is over.
    pub fn finished(&self) -> bool {
        match &self.0 {
            Kind::RtApp(programs) => programs.finished(),
            Kind::Recorded(replay) => replay.finished(),
        }
    }

    /// The bound that the workload ran into, if it did; the caller should end the run.
    pub fn limit_reached(&self) -> Option<&'static str> {
        match &self.0 {
            Kind::RtApp(programs) => programs.limit_reached(),
            Kind::Recorded(_) => None,
        }
    }

    /// How long the workload prepares itself after its start, ns; not to be measured.
    pub fn warmup(&self) -> Ns {
        match &self.0 {
            Kind::RtApp(_) => 0,
            Kind::Recorded(replay) => replay.warmup(),
        }
    }

    /// How much of a recording is done; `None` for other workloads.
    pub fn replayed(&self) -> Option<Done> {
        match &self.0 {
            Kind::RtApp(_) => None,
            Kind::Recorded(replay) => Some(replay.done()),
        }
    }

    /// What `thread` does next, now that its last operation is over.
    ///
    /// The first call for a thread comes with [`Outcome::Started`]. A [`Op::Mark`] takes no time:
    /// the thread is asked again at once.
    #[inline]
    pub fn next(&mut self, thread: ThreadId, outcome: Outcome, now: Ns) -> Op {
        match &mut self.0 {
            Kind::RtApp(programs) => programs.next(thread, outcome, now),
            Kind::Recorded(replay) => replay.next(thread, outcome, now),
        }
    }
}
