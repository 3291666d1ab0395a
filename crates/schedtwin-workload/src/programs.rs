// SPDX-License-Identifier: GPL-2.0-or-later
//! The running threads of a workload, whichever kind it is.

use crate::builtin::player::Player;
use crate::jobs::Jobs;
use crate::program::{self, LockWait};
use crate::recorded::{Done, Position, Replay};
use schedtwin_types::metric::Metric;
use schedtwin_types::{
    CpuId, FutexId, Mark, NEVER, Ns, Op, Outcome, TaskGroupFiles, TaskGroupId, ThreadId,
};

/// All threads of a workload with their user memory. A clone goes on independently.
#[derive(Clone, Debug)]
pub struct Programs(Kind);

#[derive(Clone, Debug)]
enum Kind {
    RtApp(program::Programs),
    Recorded(Replay),
    Benchmark(Box<Player>),
    Jobs(Box<Jobs>),
}

impl From<program::Programs> for Programs {
    fn from(programs: program::Programs) -> Programs {
        Programs(Kind::RtApp(programs))
    }
}

impl From<Player> for Programs {
    fn from(player: Player) -> Programs {
        Programs(Kind::Benchmark(Box::new(player)))
    }
}

impl From<Replay> for Programs {
    fn from(replay: Replay) -> Programs {
        Programs(Kind::Recorded(replay))
    }
}

impl From<Jobs> for Programs {
    fn from(jobs: Jobs) -> Programs {
        Programs(Kind::Jobs(Box::new(jobs)))
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
            Kind::Benchmark(player) => player.name(thread),
            Kind::Jobs(jobs) => jobs.name(thread),
        }
    }

    /// The name under which measurements of a thread are summed: of its task in an rt-app file, of
    /// itself in a recording; behind the job's number and a colon where there are jobs.
    pub fn task_name(&self, thread: ThreadId) -> String {
        match &self.0 {
            Kind::RtApp(programs) => programs.task_name(thread).to_owned(),
            Kind::Recorded(replay) => replay.name(thread).to_owned(),
            Kind::Benchmark(player) => player.group(thread).to_owned(),
            Kind::Jobs(jobs) => jobs.task_name(thread),
        }
    }

    /// The kind of a thread's work, after which a machine may run it faster or slower.
    pub fn work_kind(&self, thread: ThreadId) -> &str {
        match &self.0 {
            Kind::RtApp(programs) => programs.work_kind(thread),
            Kind::Recorded(_) => "recorded",
            Kind::Benchmark(player) => player.work_kind(),
            Kind::Jobs(jobs) => jobs.work_kind(thread),
        }
    }

    /// Whether its jobs are requests, whose cost is told.
    pub fn counts_requests(&self) -> bool {
        match &self.0 {
            Kind::RtApp(_) | Kind::Recorded(_) => false,
            Kind::Benchmark(player) => player.counts_requests(),
            Kind::Jobs(jobs) => jobs.counts_requests(),
        }
    }

    /// Threads that exist so far or are known to come, thread 0 included.
    pub fn nr_threads(&self) -> usize {
        match &self.0 {
            Kind::RtApp(programs) => programs.nr_threads(),
            Kind::Recorded(replay) => replay.nr_threads(),
            Kind::Benchmark(player) => player.nr_threads(),
            Kind::Jobs(jobs) => jobs.nr_threads(),
        }
    }

    /// Futexes, numbered from 0; never changes.
    pub fn nr_futexes(&self) -> usize {
        match &self.0 {
            Kind::RtApp(programs) => programs.nr_futexes(),
            Kind::Recorded(replay) => replay.nr_futexes(),
            Kind::Benchmark(player) => player.nr_futexes(),
            Kind::Jobs(jobs) => jobs.nr_futexes(),
        }
    }

    /// Pipes, numbered from 0; never changes.
    pub fn nr_pipes(&self) -> usize {
        match &self.0 {
            Kind::RtApp(programs) => programs.nr_pipes(),
            Kind::Recorded(_) => 0,
            Kind::Benchmark(player) => player.nr_pipes(),
            Kind::Jobs(jobs) => jobs.nr_pipes(),
        }
    }

    /// Of each task group but the root, in the order of their numbers, the group above it.
    pub fn task_groups(&self) -> &[TaskGroupId] {
        match &self.0 {
            Kind::RtApp(programs) => programs.task_groups(),
            Kind::Jobs(jobs) => jobs.task_groups(),
            Kind::Recorded(_) | Kind::Benchmark(_) => &[],
        }
    }

    /// Of each task group but the root, its path.
    pub fn task_group_paths(&self) -> &[String] {
        match &self.0 {
            Kind::RtApp(programs) => programs.task_group_paths(),
            Kind::Jobs(jobs) => jobs.task_group_paths(),
            Kind::Recorded(_) | Kind::Benchmark(_) => &[],
        }
    }

    /// Returns the values that are written into the files of task groups before the start.
    pub fn task_group_files(&self) -> &[TaskGroupFiles] {
        match &self.0 {
            Kind::RtApp(programs) => programs.task_group_files(),
            Kind::Jobs(jobs) => jobs.task_group_files(),
            Kind::Recorded(_) | Kind::Benchmark(_) => &[],
        }
    }

    /// The nice value of each session's autogroup; the first is that of the shell that starts thread 0.
    pub fn sessions(&self) -> &[i8] {
        match &self.0 {
            Kind::Jobs(jobs) => jobs.sessions(),
            Kind::RtApp(_) | Kind::Recorded(_) | Kind::Benchmark(_) => &[0],
        }
    }

    /// Ends the workload: of rt-app, threads end when they look the next time; of a recording, thread 0
    /// ends the run with its next step.
    pub fn shutdown(&mut self) {
        match &mut self.0 {
            Kind::RtApp(programs) => programs.shutdown(),
            Kind::Recorded(replay) => replay.shutdown(),
            Kind::Benchmark(player) => player.shutdown(),
            Kind::Jobs(jobs) => jobs.shutdown(),
        }
    }

    /// Whether the workload is over.
    pub fn finished(&self) -> bool {
        match &self.0 {
            Kind::RtApp(programs) => programs.finished(),
            Kind::Recorded(replay) => replay.finished(),
            Kind::Benchmark(player) => player.finished(),
            Kind::Jobs(jobs) => jobs.finished(),
        }
    }

    /// Threads whose job has begun and is not done, with the time of its release; of rt-app files.
    pub fn open_jobs(&self) -> Vec<(ThreadId, Ns)> {
        match &self.0 {
            Kind::RtApp(programs) => programs.open_jobs(),
            Kind::Recorded(_) | Kind::Benchmark(_) | Kind::Jobs(_) => Vec::new(),
        }
    }

    /// Threads that wait for a mutex of user space; of rt-app files.
    pub fn lock_waits(&self) -> Vec<LockWait> {
        match &self.0 {
            Kind::RtApp(programs) => programs.lock_waits(),
            Kind::Recorded(_) | Kind::Benchmark(_) | Kind::Jobs(_) => Vec::new(),
        }
    }

    /// The bound that the workload ran into, if it did; the caller should end the run.
    pub fn limit_reached(&self) -> Option<&'static str> {
        match &self.0 {
            Kind::RtApp(programs) => programs.limit_reached(),
            Kind::Jobs(jobs) => jobs.limit_reached(),
            Kind::Recorded(_) | Kind::Benchmark(_) => None,
        }
    }

    /// How long the workload prepares itself after its start, ns; not to be measured.
    pub fn warmup(&self) -> Ns {
        match &self.0 {
            Kind::RtApp(_) => 0,
            Kind::Recorded(replay) => replay.warmup(),
            Kind::Benchmark(player) => player.warmup(),
            Kind::Jobs(jobs) => jobs.warmup(),
        }
    }

    /// How much of a recording is done; `None` for other workloads.
    pub fn replayed(&self) -> Option<Done> {
        match &self.0 {
            Kind::RtApp(_) | Kind::Benchmark(_) | Kind::Jobs(_) => None,
            Kind::Recorded(replay) => Some(replay.done()),
        }
    }

    /// Where a thread of a recording is; `None` for thread 0 and other workloads.
    pub fn position(&self, thread: ThreadId) -> Option<Position> {
        match &self.0 {
            Kind::RtApp(_) | Kind::Benchmark(_) | Kind::Jobs(_) => None,
            Kind::Recorded(replay) => replay.position(thread),
        }
    }

    /// When a recording begins, behind the start of its threads; 0 for other workloads.
    pub fn recording_begins(&self) -> Ns {
        match &self.0 {
            Kind::RtApp(_) | Kind::Benchmark(_) | Kind::Jobs(_) => 0,
            Kind::Recorded(replay) => replay.begin(),
        }
    }

    /// Returns the benchmark's own results as metrics; none of other workloads.
    pub fn results(&self) -> Vec<Metric> {
        match &self.0 {
            Kind::Benchmark(player) => player.results(),
            Kind::Jobs(jobs) => jobs.results(),
            Kind::RtApp(_) | Kind::Recorded(_) => Vec::new(),
        }
    }

    /// Whether a thread makes requests to block devices.
    pub fn uses_block_devices(&self) -> bool {
        match &self.0 {
            Kind::RtApp(programs) => programs.uses_block_devices(),
            Kind::Benchmark(player) => player.uses_block_devices(),
            Kind::Jobs(jobs) => jobs.uses_block_devices(),
            Kind::Recorded(_) => false,
        }
    }

    /// Whether some of its work waits for memory.
    pub fn stalls(&self) -> bool {
        match &self.0 {
            Kind::RtApp(programs) => programs.stalls(),
            Kind::Jobs(jobs) => jobs.stalls(),
            Kind::Benchmark(_) | Kind::Recorded(_) => false,
        }
    }

    /// Devices that interrupt, numbered from 0; never changes.
    pub fn nr_devices(&self) -> usize {
        match &self.0 {
            Kind::Benchmark(player) => player.nr_devices(),
            Kind::Jobs(jobs) => jobs.nr_devices(),
            Kind::RtApp(_) => 0,
            Kind::Recorded(replay) => replay.nr_devices(),
        }
    }

    /// The CPU that a device's interrupt goes to.
    pub fn device_cpu(&self, device: usize) -> CpuId {
        match &self.0 {
            Kind::Benchmark(player) => player.device_cpu(device),
            Kind::Jobs(jobs) => jobs.device_cpu(device),
            Kind::RtApp(_) => CpuId(0),
            Kind::Recorded(replay) => replay.device_cpu(device),
        }
    }

    /// When a device interrupts next ([`NEVER`]: it is quiet).
    pub fn device_at(&self, device: usize) -> Ns {
        match &self.0 {
            Kind::Benchmark(player) => player.device_at(device),
            Kind::Jobs(jobs) => jobs.device_at(device),
            Kind::RtApp(_) => NEVER,
            Kind::Recorded(replay) => replay.device_at(device),
        }
    }

    /// Whether some device's next interrupt has changed since the last call.
    #[inline]
    pub fn take_devices_changed(&mut self) -> bool {
        match &mut self.0 {
            Kind::Benchmark(player) => player.take_devices_changed(),
            Kind::Jobs(jobs) => jobs.take_devices_changed(),
            Kind::RtApp(_) => false,
            Kind::Recorded(replay) => replay.take_devices_changed(),
        }
    }

    /// A CPU handles a device's interrupt: pushes the futexes of which its handler wakes one waiter each.
    pub fn device_interrupt(&mut self, device: usize, now: Ns, wakes: &mut Vec<FutexId>) {
        match &mut self.0 {
            Kind::Benchmark(player) => player.device_interrupt(device, now, wakes),
            Kind::Jobs(jobs) => jobs.device_interrupt(device, now, wakes),
            Kind::RtApp(_) => {}
            Kind::Recorded(replay) => replay.device_interrupt(device, now, wakes),
        }
    }

    /// Returns the next operation of `thread`, now that its last operation is over.
    ///
    /// The first call for a thread comes with [`Outcome::Started`]. A [`Op::Mark`] takes no time:
    /// the thread is asked again at once.
    #[inline]
    pub fn next(&mut self, thread: ThreadId, outcome: Outcome, now: Ns) -> Op {
        match &mut self.0 {
            Kind::RtApp(programs) => programs.next(thread, outcome, now),
            Kind::Recorded(replay) => replay.next(thread, outcome, now),
            Kind::Benchmark(player) => player.next(thread, outcome, now),
            Kind::Jobs(jobs) => jobs.next(thread, outcome, now),
        }
    }

    /// As [`Programs::next`], but marks go to `mark`: what is returned takes time, or ends the thread, or is work of 0.
    #[inline]
    pub fn next_in_time(
        &mut self,
        thread: ThreadId,
        outcome: Outcome,
        now: Ns,
        mut mark: impl FnMut(Mark),
    ) -> Op {
        if let Kind::RtApp(programs) = &mut self.0 {
            return programs.next_in_time(thread, now, mark);
        }
        for _ in 0..program::STEPS_AT_ONCE {
            match self.next(thread, outcome, now) {
                Op::Mark(said) => mark(said),
                op => return op,
            }
        }
        program::NO_TIME
    }
}
