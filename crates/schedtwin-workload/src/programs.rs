// SPDX-License-Identifier: GPL-2.0-or-later
//! The running threads of a workload, or of several beside each other as jobs of a shell.
//!
//! A workload alone keeps its numbers. With jobs, thread 0 is the shell: it starts the first thread of each job and waits.
//! Their numbers are then given anew, in turn: thread, process, futex,
//! pipe and socket `i` of job `k` of `n` are number `i · n + k` of all, behind the shell's own.
//!
//! ```text
//! thread        0    1      2      3      4      5  ...
//! of two jobs   sh   1.0    2.0    1.1    2.1    1.2          job.thread
//! ```

use crate::program::code::Code;
use crate::program::recording::FrequencyLimits;
use crate::program::{Interpreter, LockWait, NO_TIME, STEPS_AT_ONCE};
use crate::recorded::{Done, Position};
use schedtwin_types::metric::Metric;
use schedtwin_types::{
    CpuId, CpuMask, File, FutexId, Mark, Ns, Op, Outcome, PipeId, ProcessId, SessionId, SocketId,
    Syscall, TaskGroupFiles, TaskGroupId, ThreadId, Work,
};

/// Where the shell waits.
const SHELL_FUTEX: FutexId = FutexId(0);

/// Where a job starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start {
    /// Its own session.
    pub session: Option<SessionId>,
    /// Its cgroup.
    pub cgroup: Option<TaskGroupId>,
    /// The CPUs that it is bound to.
    pub cpus: Option<CpuMask>,
    /// Of each group that its workload names, the number among those of all jobs.
    pub groups: Vec<TaskGroupId>,
}

/// The next action of a job's first thread, before its workload begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    Setsid,
    Cgroup,
    Taskset,
    Workload,
}

#[derive(Clone, Debug)]
struct Job {
    interpreter: Interpreter,
    start: Start,
    beginning: Beginning,
}

/// The things that jobs have in common.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    /// Of each cgroup the one above.
    pub above: Vec<TaskGroupId>,
    /// Paths of cgroups.
    pub paths: Vec<String>,
    /// The values that are written into files of cgroups.
    pub files: Vec<TaskGroupFiles>,
    /// The nice value of each session's autogroup, the shell's first.
    pub sessions: Vec<i8>,
    /// The job that the shell starts next.
    pub next: usize,
}

/// All threads of a workload with their user memory. A clone goes on independently.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The first job; in place, so that the threads of a workload alone are found without a detour.
    first: Job,
    /// The other ones, if there is a shell.
    others: Vec<Job>,
    shell: Option<Box<Shell>>,
}

impl From<Interpreter> for Programs {
    fn from(interpreter: Interpreter) -> Programs {
        let (start, beginning) = (Start::default(), Beginning::Workload);
        Programs { first: Job { interpreter, start, beginning }, others: Vec::new(), shell: None }
    }
}

impl Programs {
    /// A first job and others that run beside it, each in its place.
    pub(crate) fn beside(
        first: (Programs, Start),
        others: impl Iterator<Item = (Programs, Start)>,
        shell: Shell,
    ) -> Programs {
        let job = |(programs, start): (Programs, Start)| {
            let interpreter = programs.first.interpreter;
            Job { interpreter, start, beginning: Beginning::Setsid }
        };
        let (first, others) = (job(first), others.map(job).collect());
        Programs { first, others, shell: Some(Box::new(shell)) }
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn job(&self, job: usize) -> &Job {
        job.checked_sub(1).map_or(&self.first, |other| &self.others[other])
    }

    fn job_mut(&mut self, job: usize) -> &mut Job {
        match job.checked_sub(1) {
            None => &mut self.first,
            Some(other) => &mut self.others[other],
        }
    }

    fn nr_jobs(&self) -> usize {
        1 + self.others.len()
    }

    /// The interpreter of a workload that runs alone.
    fn alone(&self) -> Option<&Interpreter> {
        self.shell.is_none().then_some(&self.first.interpreter)
    }

    /// The code of each job.
    fn codes(&self) -> impl Iterator<Item = &Code> {
        self.jobs().map(|job| job.interpreter.code())
    }

    /// The job and its own number of what is `number` of all, behind the shell's; `None`: it is the shell's.
    fn owner(&self, number: u32) -> Option<(usize, u32)> {
        if self.shell.is_none() {
            return Some((0, number));
        }
        let number = number.checked_sub(1)?;
        let n = self.nr_jobs() as u32;
        Some(((number % n) as usize, number / n))
    }

    /// The number among all of what is `number` of a job.
    fn of_all(&self, job: usize, number: u32) -> u32 {
        match self.shell {
            Some(_) => 1 + number * self.nr_jobs() as u32 + job as u32,
            None => number,
        }
    }

    /// The largest number that any job's may be, plus 1.
    fn bound(&self, of: impl Fn(&Interpreter) -> usize) -> usize {
        let most = self.jobs().map(|job| of(&job.interpreter)).max().unwrap_or(0);
        most * self.nr_jobs() + usize::from(self.shell.is_some())
    }

    /// Thread 0, which starts all others.
    pub fn main(&self) -> ThreadId {
        ThreadId(0)
    }

    /// The name of a thread as `comm` shows it.
    pub fn thread_name(&self, thread: ThreadId) -> &str {
        match self.owner(thread.0) {
            None => "sh",
            Some((job, own)) => self.job(job).interpreter.thread_name(ThreadId(own)),
        }
    }

    /// The name under which measurements of a thread are summed: of its task in an rt-app file, of
    /// itself in a recording; behind the job's number and a colon where there are jobs.
    pub fn task_name(&self, thread: ThreadId) -> String {
        let Some((job, own)) = self.owner(thread.0) else { return "sh".to_owned() };
        let name = self.job(job).interpreter.task_name(ThreadId(own));
        // Jobs count from 1, as in a shell.
        if self.shell.is_some() { format!("{}:{name}", job + 1) } else { name.to_owned() }
    }

    /// The kind of a thread's work, after which a machine may run it faster or slower.
    pub fn work_kind(&self, thread: ThreadId) -> &str {
        self.owner(thread.0)
            .map_or("benchmark", |(job, _)| self.job(job).interpreter.code().work_kind)
    }

    /// Whether its jobs are requests, whose cost is told.
    pub fn counts_requests(&self) -> bool {
        self.codes().filter_map(|code| code.benchmark).any(|benchmark| benchmark.counts_requests())
    }

    /// Threads that exist so far or are known to come, thread 0 included.
    pub fn nr_threads(&self) -> usize {
        let of_jobs: usize = self.jobs().map(|job| job.interpreter.nr_threads()).sum();
        of_jobs + usize::from(self.shell.is_some())
    }

    /// Futexes, numbered from 0; never changes.
    pub fn nr_futexes(&self) -> usize {
        self.bound(Interpreter::nr_futexes)
    }

    /// Pipes, numbered from 0; never changes.
    pub fn nr_pipes(&self) -> usize {
        self.bound(|interpreter| interpreter.code().pipes as usize)
    }

    /// Of each task group but the root, in the order of their numbers, the group above it.
    pub fn task_groups(&self) -> &[TaskGroupId] {
        let alone = || self.alone().map_or(&[][..], |alone| &alone.code().task_groups);
        self.shell.as_ref().map_or_else(alone, |shell| &shell.above)
    }

    /// Of each task group but the root, its path.
    pub fn task_group_paths(&self) -> &[String] {
        let alone = || self.alone().map_or(&[][..], |alone| &alone.code().task_group_paths);
        self.shell.as_ref().map_or_else(alone, |shell| &shell.paths)
    }

    /// Returns the values that are written into the files of task groups before the start.
    pub fn task_group_files(&self) -> &[TaskGroupFiles] {
        let alone = || self.alone().map_or(&[][..], |alone| &alone.code().group_files);
        self.shell.as_ref().map_or_else(alone, |shell| &shell.files)
    }

    /// The nice value of each session's autogroup; the first is that of the shell that starts thread 0.
    pub fn sessions(&self) -> &[i8] {
        self.shell.as_ref().map_or(&[0], |shell| &shell.sessions)
    }

    /// Ends the workload: of rt-app, threads end when they look the next time; of a recording, thread 0
    /// ends the run with its next step.
    pub fn shutdown(&mut self) {
        self.first.interpreter.shutdown();
        self.others.iter_mut().for_each(|job| job.interpreter.shutdown());
    }

    /// Whether the workload is over.
    pub fn finished(&self) -> bool {
        self.jobs().all(|job| job.interpreter.finished())
    }

    /// Threads whose job has begun and is not done, with the time of its release; of rt-app files.
    pub fn open_jobs(&self) -> Vec<(ThreadId, Ns)> {
        self.alone().map_or_else(Vec::new, Interpreter::open_jobs)
    }

    /// Threads that wait for a mutex of user space; of rt-app files.
    pub fn lock_waits(&self) -> Vec<LockWait> {
        self.alone().map_or_else(Vec::new, Interpreter::lock_waits)
    }

    /// The bound that the workload ran into, if it did; the caller should end the run.
    pub fn limit_reached(&self) -> Option<&'static str> {
        self.jobs().find_map(|job| job.interpreter.limit_reached())
    }

    /// How long the workload prepares itself after its start, ns; not to be measured.
    pub fn warmup(&self) -> Ns {
        self.codes().map(|code| code.warmup).max().unwrap_or(0)
    }

    /// How much of a recording is done; `None` for other workloads. `left` says what a thread has left of the work that it was
    /// given last, ns at capacity 1024.
    pub fn replayed(&self, left: impl Fn(ThreadId) -> Work) -> Option<Done> {
        Done::of(self.alone()?, left)
    }

    /// Where a thread of a recording is; `None` for thread 0 and other workloads.
    pub fn position(&self, thread: ThreadId) -> Option<Position> {
        self.alone()?.position(thread)
    }

    /// Whether limits of clocks change during the run, as they were recorded.
    pub fn changes_limits(&self) -> bool {
        let recording = self.alone().and_then(|alone| alone.code().recording.as_ref());
        recording.is_some_and(|recording| !recording.limits.is_empty())
    }

    /// When limits of a clock change next; [`schedtwin_types::NEVER`]: not again, or not yet.
    pub fn limits_at(&self) -> Ns {
        self.alone().map_or(schedtwin_types::NEVER, Interpreter::limits_at)
    }

    /// The limits that change next.
    pub fn take_limits(&mut self) -> Option<FrequencyLimits> {
        self.first.interpreter.take_limits()
    }

    /// When a recording begins, behind the start of its threads; 0 for other workloads.
    pub fn recording_begins(&self) -> Ns {
        let recording = self.alone().filter(|alone| alone.code().recording.is_some());
        recording.map_or(0, Interpreter::begin)
    }

    /// Returns the benchmark's own results as metrics; none of other workloads.
    pub fn results(&self) -> Vec<Metric> {
        self.jobs().flat_map(|job| job.interpreter.results()).collect()
    }

    /// Whether a thread makes requests to block devices.
    pub fn uses_block_devices(&self) -> bool {
        self.codes().any(Code::uses_block_devices)
    }

    /// Whether some of its work waits for memory.
    pub fn stalls(&self) -> bool {
        self.codes().any(Code::stalls)
    }

    // ---- devices: those of the first job come first -------------------------------------------

    /// Devices that interrupt, numbered from 0; never changes.
    pub fn nr_devices(&self) -> usize {
        self.jobs().map(|job| job.interpreter.nr_devices()).sum()
    }

    /// The job of a device, and its number there.
    fn device(&self, device: usize) -> (usize, usize) {
        let mut own = device;
        for (at, job) in self.jobs().enumerate() {
            match own.checked_sub(job.interpreter.nr_devices()) {
                Some(behind) => own = behind,
                None => return (at, own),
            }
        }
        panic!("there is no device {device}");
    }

    /// The CPU that a device's interrupt goes to.
    pub fn device_cpu(&self, device: usize) -> CpuId {
        let (job, own) = self.device(device);
        self.job(job).interpreter.device_cpu(own)
    }

    /// When a device interrupts next ([`schedtwin_types::NEVER`]: it is quiet).
    pub fn device_at(&self, device: usize) -> Ns {
        let (job, own) = self.device(device);
        self.job(job).interpreter.device_at(own)
    }

    /// Whether some device's next interrupt has changed since the last call.
    #[inline]
    pub fn take_devices_changed(&mut self) -> bool {
        let mut changed = self.first.interpreter.take_devices_changed();
        for job in &mut self.others {
            changed |= job.interpreter.take_devices_changed();
        }
        changed
    }

    /// A CPU handles a device's interrupt: pushes the futexes of which its handler wakes one waiter each.
    pub fn device_interrupt(&mut self, device: usize, now: Ns, wakes: &mut Vec<FutexId>) {
        let (job, own) = self.device(device);
        let first = wakes.len();
        self.job_mut(job).interpreter.device_interrupt(own, now, wakes);
        for futex in &mut wakes[first..] {
            *futex = FutexId(self.of_all(job, futex.0));
        }
    }

    // ---- threads ------------------------------------------------------------------------------

    /// Returns the next operation of `thread`, now that its last operation is over.
    ///
    /// The first call for a thread comes with [`Outcome::Started`]. A [`Op::Mark`] takes no time:
    /// the thread is asked again at once.
    pub fn next(&mut self, thread: ThreadId, outcome: Outcome, now: Ns) -> Op {
        if self.shell.is_none() {
            return self.first.interpreter.next(thread, outcome, now);
        }
        let Some((at, own)) = self.owner(thread.0) else { return self.next_of_shell() };
        let job = self.job_mut(at);
        // Its process has gone.
        if job.interpreter.finished() {
            return Op::Exit;
        }
        let mut outcome = outcome;
        if job.beginning == Beginning::Setsid {
            job.beginning = Beginning::Cgroup;
            if let Some(session) = job.start.session {
                return Op::Call(Syscall::Setsid { session });
            }
        }
        if job.beginning == Beginning::Cgroup {
            job.beginning = Beginning::Taskset;
            if let Some(group) = job.start.cgroup {
                return Op::Call(Syscall::CgroupAttach { group });
            }
        }
        if job.beginning == Beginning::Taskset {
            job.beginning = Beginning::Workload;
            if let Some(mask) = job.start.cpus {
                return Op::Call(Syscall::SchedSetaffinity { mask });
            }
            outcome = Outcome::Started;
        }
        match job.interpreter.next(ThreadId(own), outcome, now) {
            Op::Call(call) => Op::Call(self.call(at, call)),
            op => op,
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
        if self.shell.is_none() {
            return self.first.interpreter.next_in_time(thread, outcome, now, mark);
        }
        for _ in 0..STEPS_AT_ONCE {
            match self.next(thread, outcome, now) {
                Op::Mark(said) => mark(said),
                op => return op,
            }
        }
        NO_TIME
    }

    fn next_of_shell(&mut self) -> Op {
        let next = self.shell.as_ref().map_or(0, |shell| shell.next);
        if next == self.nr_jobs() {
            return Op::Call(Syscall::FutexWait { futex: SHELL_FUTEX });
        }
        if let Some(shell) = &mut self.shell {
            shell.next += 1;
        }
        let (thread, process) = (ThreadId(self.of_all(next, 0)), ProcessId(self.of_all(next, 0)));
        Op::Call(Syscall::Clone { thread, process })
    }

    /// A job's call, with the numbers of all jobs.
    fn call(&self, job: usize, call: Syscall) -> Syscall {
        let futex = |own: FutexId| FutexId(self.of_all(job, own.0));
        let pipe = |own: PipeId| PipeId(self.of_all(job, own.0));
        let socket = |own: SocketId| SocketId(self.of_all(job, own.0));
        match call {
            Syscall::FutexWait { futex: own } => Syscall::FutexWait { futex: futex(own) },
            Syscall::FutexWake { futex: own, count } => {
                Syscall::FutexWake { futex: futex(own), count }
            }
            Syscall::CgroupAttach { group: TaskGroupId::ROOT } => call,
            Syscall::CgroupAttach { group } => {
                let group = self.job(job).start.groups[group.0 as usize - 1];
                Syscall::CgroupAttach { group }
            }
            Syscall::Clone { thread, process } => Syscall::Clone {
                thread: ThreadId(self.of_all(job, thread.0)),
                process: ProcessId(self.of_all(job, process.0)),
            },
            Syscall::PipeWrite { pipe: own, bytes } => {
                Syscall::PipeWrite { pipe: pipe(own), bytes }
            }
            Syscall::PipeRead { pipe: own, bytes } => Syscall::PipeRead { pipe: pipe(own), bytes },
            Syscall::Socketpair { first, second, kind, sndbuf } => {
                let (first, second) = (socket(first), socket(second));
                Syscall::Socketpair { first, second, kind, sndbuf }
            }
            Syscall::Send { socket: own, bytes } => Syscall::Send { socket: socket(own), bytes },
            Syscall::Recv { socket: own, bytes } => Syscall::Recv { socket: socket(own), bytes },
            Syscall::Poll { file } => Syscall::Poll {
                file: match file {
                    File::Pipe(own) => File::Pipe(pipe(own)),
                    File::Socket(own) => File::Socket(socket(own)),
                },
            },
            Syscall::Nanosleep { .. }
            | Syscall::NanosleepUntil { .. }
            | Syscall::SchedYield
            | Syscall::SchedSetattr(_)
            | Syscall::SchedSetaffinity { .. }
            | Syscall::Setsid { .. }
            | Syscall::Execve
            | Syscall::BlockIo { .. }
            | Syscall::Write { .. }
            | Syscall::Getcpu => call,
        }
    }
}
