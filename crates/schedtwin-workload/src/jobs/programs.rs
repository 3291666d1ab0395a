// SPDX-License-Identifier: GPL-2.0-or-later
//! The running threads of several jobs.
//!
//! Thread 0 is the shell: it starts the first thread of each job and waits. What jobs number is numbered anew, in turn: thread, process, futex,
//! pipe and socket `i` of job `k` of `n` are number `i · n + k` of all, behind the shell's own.
//!
//! ```text
//! thread        0    1      2      3      4      5  ...
//! of two jobs   sh   1.0    2.0    1.1    2.1    1.2          job.thread
//! ```

use crate::Programs;
use schedtwin_types::metric::Metric;
use schedtwin_types::{
    CpuId, File, FutexId, Ns, Op, Outcome, PipeId, ProcessId, SessionId, SocketId, Syscall,
    TaskGroupFiles, TaskGroupId, ThreadId,
};

/// Where the shell waits.
const SHELL_FUTEX: FutexId = FutexId(0);

/// Where a job starts.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// Its own session.
    pub session: Option<SessionId>,
    /// Its cgroup.
    pub cgroup: Option<TaskGroupId>,
    /// Of each group that its workload names, the number among those of all jobs.
    pub groups: Vec<TaskGroupId>,
}

/// The next action of a job's first thread, before its workload begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    Setsid,
    Cgroup,
    Workload,
    Over,
}

#[derive(Clone, Debug)]
struct Job {
    programs: Programs,
    start: Start,
    beginning: Beginning,
}

/// Cgroups of all jobs.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    above: Vec<TaskGroupId>,
    paths: Vec<String>,
    files: Vec<TaskGroupFiles>,
}

impl Groups {
    /// Of each group the one above and its path, and what is written into files.
    pub fn new(folders: Vec<(TaskGroupId, String)>, files: Vec<TaskGroupFiles>) -> Groups {
        let (above, paths) = folders.into_iter().unzip();
        Groups { above, paths, files }
    }
}

/// Jobs that run beside each other. A clone goes on independently.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    jobs: Vec<Job>,
    groups: Groups,
    /// The nice value of each session's autogroup, the shell's first.
    sessions: Vec<i8>,
    /// The job that the shell starts next.
    next: usize,
}

impl Jobs {
    pub(super) fn new(
        programs: Vec<Programs>,
        starts: Vec<Start>,
        groups: Groups,
        sessions: Vec<i8>,
    ) -> Jobs {
        let jobs = programs.into_iter().zip(starts);
        let jobs =
            jobs.map(|(programs, start)| Job { programs, start, beginning: Beginning::Setsid });
        Jobs { jobs: jobs.collect(), groups, sessions, next: 0 }
    }

    /// The job and its own number of what is `number` of all, behind the shell's; `None`: it is the shell's.
    fn owner(&self, number: u32) -> Option<(usize, u32)> {
        let number = number.checked_sub(1)?;
        let n = self.jobs.len() as u32;
        Some(((number % n) as usize, number / n))
    }

    /// The number among all of what is `number` of a job.
    fn of_all(&self, job: usize, number: u32) -> u32 {
        1 + number * self.jobs.len() as u32 + job as u32
    }

    pub fn name(&self, thread: ThreadId) -> &str {
        match self.owner(thread.0) {
            None => "sh",
            Some((job, own)) => self.jobs[job].programs.thread_name(ThreadId(own)),
        }
    }

    /// Jobs count from 1, as in a shell.
    pub fn task_name(&self, thread: ThreadId) -> String {
        match self.owner(thread.0) {
            None => "sh".to_owned(),
            Some((job, own)) => {
                format!("{}:{}", job + 1, self.jobs[job].programs.task_name(ThreadId(own)))
            }
        }
    }

    pub fn work_kind(&self, thread: ThreadId) -> &str {
        match self.owner(thread.0) {
            None => "benchmark",
            Some((job, own)) => self.jobs[job].programs.work_kind(ThreadId(own)),
        }
    }

    pub fn counts_requests(&self) -> bool {
        self.jobs.iter().any(|job| job.programs.counts_requests())
    }

    pub fn nr_threads(&self) -> usize {
        1 + self.jobs.iter().map(|job| job.programs.nr_threads()).sum::<usize>()
    }

    /// The largest number that any job's may be, plus 1.
    fn bound(&self, of: impl Fn(&Programs) -> usize) -> usize {
        self.jobs.iter().map(|job| of(&job.programs)).max().unwrap_or(0) * self.jobs.len() + 1
    }

    pub fn nr_futexes(&self) -> usize {
        self.bound(Programs::nr_futexes)
    }

    pub fn nr_pipes(&self) -> usize {
        self.bound(Programs::nr_pipes)
    }

    pub fn task_groups(&self) -> &[TaskGroupId] {
        &self.groups.above
    }

    pub fn task_group_paths(&self) -> &[String] {
        &self.groups.paths
    }

    pub fn task_group_files(&self) -> &[TaskGroupFiles] {
        &self.groups.files
    }

    pub fn sessions(&self) -> &[i8] {
        &self.sessions
    }

    pub fn shutdown(&mut self) {
        for job in &mut self.jobs {
            job.programs.shutdown();
        }
    }

    pub fn finished(&self) -> bool {
        self.jobs.iter().all(|job| job.beginning == Beginning::Over)
    }

    pub fn limit_reached(&self) -> Option<&'static str> {
        self.jobs.iter().find_map(|job| job.programs.limit_reached())
    }

    pub fn warmup(&self) -> Ns {
        self.jobs.iter().map(|job| job.programs.warmup()).max().unwrap_or(0)
    }

    pub fn results(&self) -> Vec<Metric> {
        self.jobs.iter().flat_map(|job| job.programs.results()).collect()
    }

    pub fn stalls(&self) -> bool {
        self.jobs.iter().any(|job| job.programs.stalls())
    }

    pub fn uses_block_devices(&self) -> bool {
        self.jobs.iter().any(|job| job.programs.uses_block_devices())
    }

    // ---- devices: those of the first job come first -------------------------------------------

    pub fn nr_devices(&self) -> usize {
        self.jobs.iter().map(|job| job.programs.nr_devices()).sum()
    }

    fn device(&self, device: usize) -> (usize, usize) {
        let mut own = device;
        for (at, job) in self.jobs.iter().enumerate() {
            match own.checked_sub(job.programs.nr_devices()) {
                Some(behind) => own = behind,
                None => return (at, own),
            }
        }
        panic!("there is no device {device}");
    }

    pub fn device_cpu(&self, device: usize) -> CpuId {
        let (job, own) = self.device(device);
        self.jobs[job].programs.device_cpu(own)
    }

    pub fn device_at(&self, device: usize) -> Ns {
        let (job, own) = self.device(device);
        self.jobs[job].programs.device_at(own)
    }

    pub fn take_devices_changed(&mut self) -> bool {
        let mut changed = false;
        for job in &mut self.jobs {
            changed |= job.programs.take_devices_changed();
        }
        changed
    }

    pub fn device_interrupt(&mut self, device: usize, now: Ns, wakes: &mut Vec<FutexId>) {
        let (job, own) = self.device(device);
        let first = wakes.len();
        self.jobs[job].programs.device_interrupt(own, now, wakes);
        for futex in &mut wakes[first..] {
            *futex = FutexId(self.of_all(job, futex.0));
        }
    }

    // ---- threads ------------------------------------------------------------------------------

    pub fn next(&mut self, thread: ThreadId, outcome: Outcome, now: Ns) -> Op {
        let Some((at, own)) = self.owner(thread.0) else { return self.next_of_shell() };
        let job = &mut self.jobs[at];
        let mut outcome = outcome;
        loop {
            match job.beginning {
                Beginning::Setsid => {
                    job.beginning = Beginning::Cgroup;
                    if let Some(session) = job.start.session {
                        return Op::Call(Syscall::Setsid { session });
                    }
                }
                Beginning::Cgroup => {
                    job.beginning = Beginning::Workload;
                    if let Some(group) = job.start.cgroup {
                        return Op::Call(Syscall::CgroupAttach { group });
                    }
                    outcome = Outcome::Started;
                }
                Beginning::Workload => break,
                // Its process has gone.
                Beginning::Over => return Op::Exit,
            }
        }
        let op = job.programs.next(ThreadId(own), outcome, now);
        if op == Op::Exit && job.programs.finished() {
            job.beginning = Beginning::Over;
        }
        match op {
            Op::Call(call) => Op::Call(self.call(at, call)),
            Op::Compute { .. } | Op::Stalls(_) | Op::Relax | Op::Mark(_) | Op::Exit => op,
        }
    }

    fn next_of_shell(&mut self) -> Op {
        if self.next == self.jobs.len() {
            return Op::Call(Syscall::FutexWait { futex: SHELL_FUTEX });
        }
        let main = self.jobs[self.next].programs.main();
        let thread = ThreadId(self.of_all(self.next, main.0));
        let process = ProcessId(self.of_all(self.next, 0));
        self.next += 1;
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
                let group = self.jobs[job].start.groups[group.0 as usize - 1];
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
