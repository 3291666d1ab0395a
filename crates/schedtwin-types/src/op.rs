// SPDX-License-Identifier: GPL-2.0-or-later
//! The operations that a thread of a workload asks for, one at a time.

use crate::{
    BlockDeviceId, CpuMask, FutexId, Ns, PipeId, ProcessId, SessionId, SocketId, TaskGroupId,
    ThreadId, Work,
};

/// The next thing that a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Run on the CPU until `work` is done. `work` may be 0.
    Compute {
        /// How much, in nanoseconds at capacity 1024 and the highest frequency.
        work: Work,
        /// User or kernel mode: decides where `preempt=none` and `voluntary` may preempt.
        mode: Mode,
    },
    /// So many thousandths of the time of work from here on, at the highest frequency, are waits for memory, which no clock
    /// shortens. Takes no time, and the thread is asked again at once.
    Stalls(u16),
    /// Let the other CPUs have the turn, where CPUs execute in turns (`cpu_relax()`; on arm64 `yield`). Takes no time, and
    /// the thread is asked again.
    Relax,
    /// Enter the kernel.
    Call(Syscall),
    /// Tell the meter something; takes no time, and the thread is asked again at once.
    Mark(Mark),
    /// The thread ends.
    Exit,
}

/// Processor mode of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// User mode: always preemptible.
    #[default]
    User,
    /// Kernel mode: preemptible only with `preempt=full`.
    Kernel,
}

/// A report of a workload to the meter about its own progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A job (one iteration of a task's loop) that was released at `released` is complete now.
    JobDone {
        /// When it should have started: the timer's expiry, or when it was woken or began.
        released: Ns,
    },
    /// [`Mark::JobDone`] of a thread of [`Policy::Deadline`].
    DeadlineJobDone {
        /// When it should have started.
        released: Ns,
        /// The thread's relative deadline: by when, counted from then, it should have been complete.
        deadline: Ns,
    },
    /// A timer event was reached with this much time left (negative: that late), as rt-app's
    /// `slack` column.
    Slack {
        /// Nanoseconds left until the timer's expiry.
        slack_ns: i64,
    },
    /// A periodic thread woke up this long after its timer's expiry (rt-app's `wu_lat`).
    WakeupLatency {
        /// Nanoseconds after the expiry.
        latency_ns: Ns,
    },
}

/// A system call, with what the simulated kernel needs of its arguments.
///
/// User memory lives in the workload: the test of a futex word and the call that follows it happen
/// at one instant, so `FutexWait` has no expected value and never fails with `EAGAIN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syscall {
    /// `clock_nanosleep(CLOCK_MONOTONIC, 0, duration)`.
    Nanosleep {
        /// How long.
        duration: Ns,
    },
    /// `clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, until)`.
    NanosleepUntil {
        /// Until when.
        until: Ns,
    },
    /// `futex(FUTEX_WAIT)`: block until woken.
    FutexWait {
        /// On which word.
        futex: FutexId,
    },
    /// `futex(FUTEX_WAKE)`: wake up to `count` waiters, RT tasks by priority first, then by arrival.
    FutexWake {
        /// Of which word.
        futex: FutexId,
        /// How many at most.
        count: u32,
    },
    /// `sched_yield()`.
    SchedYield,
    /// `sched_setattr()` on the caller.
    SchedSetattr(SchedAttr),
    /// `sched_setaffinity()` on the caller; the mask is intersected with the machine's CPUs.
    SchedSetaffinity {
        /// The allowed CPUs.
        mask: CpuMask,
    },
    /// `write()` of the caller's number to the `tasks` file of a cgroup: it moves there.
    CgroupAttach {
        /// Where to.
        group: TaskGroupId,
    },
    /// `setsid()`: the caller leads a new session, which with autogroups has a task group of its own.
    Setsid {
        /// The new session, not 0.
        session: SessionId,
    },
    /// `clone()`: starts `thread`, whose program begins with [`Outcome::Started`]. It inherits
    /// policy, nice value, slice, affinity, task group and session.
    Clone {
        /// The workload's number of the new thread.
        thread: ThreadId,
        /// The process that it belongs to: one that has threads (`CLONE_VM | CLONE_THREAD`), or a new one.
        process: ProcessId,
    },
    /// `execve()`, as far as the scheduler is asked (`sched_exec()`): the caller looks for a CPU as a new task does, and goes
    /// on there. Reading and mapping the program is the caller's own work, before the call and after it.
    Execve,
    /// `write()` to a pipe; blocks while it is full.
    PipeWrite {
        /// Which pipe.
        pipe: PipeId,
        /// How many bytes.
        bytes: u32,
    },
    /// `read()` from a pipe; blocks while it is empty, returns what is there up to `bytes`.
    PipeRead {
        /// Which pipe.
        pipe: PipeId,
        /// How many bytes at most.
        bytes: u32,
    },
    /// Two connected sockets: `socketpair()`, and over the loopback device `socket()`, `connect()` and `accept()` in one.
    Socketpair {
        /// One end.
        first: SocketId,
        /// The other end.
        second: SocketId,
        /// The connection between them.
        kind: SocketKind,
        /// `sk_sndbuf` of both, bytes as the kernel counts them; 0: the default of the kind.
        sndbuf: u32,
    },
    /// `write()` or `send()` on a connected socket; blocks while its buffer is full.
    Send {
        /// The caller's end.
        socket: SocketId,
        /// How many bytes.
        bytes: u32,
    },
    /// `read()` or `recv()`; blocks while nothing is there, returns what is there up to `bytes`.
    Recv {
        /// The caller's end.
        socket: SocketId,
        /// How many bytes at most.
        bytes: u32,
    },
    /// `pread()`, `pwrite()` with `O_DIRECT`, or `fsync()`: one request to a block device, which the caller sleeps for
    /// (`io_schedule()`).
    BlockIo {
        /// Which device.
        device: BlockDeviceId,
        /// What is asked for.
        op: BlockOp,
        /// How many bytes.
        bytes: u32,
    },
    /// `write()` that sleeps for nothing: to `/dev/null`, or into the page cache.
    Write {
        /// How many bytes are copied; 0: the device takes them without a look.
        copied: u32,
    },
    /// `getcpu()`: returns the number of the CPU that the caller runs on.
    Getcpu,
    /// `poll()` of one file for `POLLIN`, without a timeout: blocks while nothing can be read.
    Poll {
        /// Which file.
        file: File,
    },
}

/// The kind of connection between two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// `AF_UNIX`, `SOCK_STREAM`.
    UnixStream,
    /// `AF_INET`, `SOCK_STREAM` over the loopback device, established.
    TcpLoopback,
    /// `AF_INET`, `SOCK_DGRAM` over the loopback device, connected.
    UdpLoopback,
}

/// The operation of a request to a block device (`REQ_OP_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockOp {
    /// `REQ_OP_READ`.
    Read = 0,
    /// `REQ_OP_WRITE`.
    Write = 1,
    /// `REQ_OP_FLUSH`.
    Flush = 2,
}

impl BlockOp {
    /// All operations, by number.
    pub const ALL: [BlockOp; 3] = [BlockOp::Read, BlockOp::Write, BlockOp::Flush];

    /// The letters that `block_rq_issue` prints (`rwbs`).
    pub const fn letters(self) -> &'static str {
        match self {
            BlockOp::Read => "R",
            BlockOp::Write => "W",
            BlockOp::Flush => "F",
        }
    }
}

/// An open file that can be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// The reading end of a pipe.
    Pipe(PipeId),
    /// A socket.
    Socket(SocketId),
}

/// Scheduling policy of a task (`SCHED_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// `SCHED_OTHER` (`SCHED_NORMAL`).
    #[default]
    Normal,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    Rr,
    /// `SCHED_DEADLINE`.
    Deadline,
    /// `SCHED_EXT`: as `SCHED_NORMAL`, unless a scheduler of sched_ext is loaded that takes these tasks only.
    Ext,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 7] = [
        Policy::Normal,
        Policy::Fifo,
        Policy::Rr,
        Policy::Batch,
        Policy::Idle,
        Policy::Deadline,
        Policy::Ext,
    ];

    /// `SCHED_*` of include/uapi/linux/sched.h.
    pub const fn number(self) -> u32 {
        match self {
            Policy::Normal => 0,
            Policy::Fifo => 1,
            Policy::Rr => 2,
            Policy::Batch => 3,
            Policy::Idle => 5,
            Policy::Deadline => 6,
            Policy::Ext => 7,
        }
    }

    /// The policy of that number.
    pub fn of_number(number: i64) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| i64::from(policy.number()) == number)
    }
}

/// The reservation of a `SCHED_DEADLINE` task: `runtime` in each `period`, to be had within
/// `deadline` of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DlReservation {
    /// `sched_runtime`, ns on a CPU of capacity 1024 at its highest frequency.
    pub runtime: Ns,
    /// `sched_deadline`, ns.
    pub deadline: Ns,
    /// `sched_period`, ns; 0: as long as the deadline.
    pub period: Ns,
}

impl DlReservation {
    /// The shortest runtime: the kernel compares in steps of 1024 ns (`DL_SCALE`).
    pub const MIN_RUNTIME: Ns = 1 << 10;
    /// `sched_deadline_period_min_us` and `_max_us`, as they are by default.
    pub const PERIODS: std::ops::RangeInclusive<Ns> = 100_000..=(1 << 22) * 1000;

    /// The period that counts.
    pub fn effective_period(&self) -> Ns {
        if self.period == 0 { self.deadline } else { self.period }
    }

    /// `__checkparam_dl()`: whether Linux takes these numbers.
    ///
    /// ```
    /// use schedtwin_types::DlReservation;
    ///
    /// let of = |runtime, deadline, period| DlReservation { runtime, deadline, period }.is_valid();
    /// assert!(of(1_000_000, 4_000_000, 10_000_000));
    /// assert!(of(1_000_000, 4_000_000, 0));
    /// assert!(!of(5_000_000, 4_000_000, 10_000_000), "more runtime than fits before the deadline");
    /// assert!(!of(1_000_000, 40_000_000, 10_000_000), "the deadline is after the period");
    /// assert!(!of(1_023, 4_000_000, 10_000_000), "a runtime that the kernel cannot measure");
    /// ```
    pub fn is_valid(&self) -> bool {
        let period = self.effective_period();
        self.runtime >= DlReservation::MIN_RUNTIME
            && self.runtime <= self.deadline
            && self.deadline <= period
            && DlReservation::PERIODS.contains(&period)
    }

    /// `to_ratio()` of runtime and period: its share of a CPU, 2^20 = all of it.
    pub fn bandwidth(&self) -> u64 {
        (self.runtime << 20).checked_div(self.effective_period()).unwrap_or(0)
    }
}

/// `struct sched_attr`, as far as it is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedAttr {
    /// The policy.
    pub policy: Policy,
    /// Nice value −20..=19, for Normal, Batch (and kept for Idle).
    pub nice: i8,
    /// Real-time priority 1..=99, for Fifo and Rr.
    pub rt_priority: u8,
    /// Custom slice of a fair task (`sched_runtime`), 0 = the default slice.
    pub slice: Ns,
    /// Utilisation clamp: at least this fast, 0..=1024, or [`SchedAttr::UTIL_CLAMP_RESET`]; `None`: as before
    /// (`SCHED_FLAG_UTIL_CLAMP_MIN`).
    pub util_min: Option<u16>,
    /// At most this fast, likewise.
    pub util_max: Option<u16>,
    /// The reservation of a task of [`Policy::Deadline`].
    pub dl: DlReservation,
}

impl SchedAttr {
    /// A clamp of −1: back to the default of the task's class.
    pub const UTIL_CLAMP_RESET: u16 = u16::MAX;
}

impl Default for SchedAttr {
    fn default() -> SchedAttr {
        SchedAttr {
            policy: Policy::Normal,
            nice: 0,
            rt_priority: 0,
            slice: 0,
            util_min: None,
            util_max: None,
            dl: DlReservation::default(),
        }
    }
}

/// The values that a workload writes into the files of a task group before it starts; `None`: not
/// written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskGroupFiles {
    /// The group, not the root.
    pub group: TaskGroupId,
    /// `cpu.weight` or `cpu.weight.nice`.
    pub weight: Option<GroupWeight>,
    /// `cpu.idle`. An idle group's weight cannot be written.
    pub idle: Option<bool>,
    /// `cpu.max`.
    pub max: Option<CpuMax>,
    /// `cpu.max.burst`, ns: at most the quota.
    pub burst: Option<Ns>,
    /// `cpu.uclamp.min`: hundredths of a percent, 0..=10000.
    pub uclamp_min: Option<u32>,
    /// `cpu.uclamp.max`, likewise; 10000 is `max`.
    pub uclamp_max: Option<u32>,
}

/// The file `cpu.max` of a task group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuMax {
    /// CPU time in each period, ns, at least 1 ms; `None`: `max`.
    pub quota: Option<Ns>,
    /// The period, ns: 1 ms to 1 s.
    pub period: Ns,
}

/// How a task group competes with what is beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupWeight {
    /// `cpu.weight`: 1..=10000; a new group has 100.
    Weight(u16),
    /// `cpu.weight.nice`: as a task of this nice value, −20..=19; a new group has 0.
    Nice(i8),
}

impl TaskGroupFiles {
    /// Nothing is written.
    pub fn none(group: TaskGroupId) -> TaskGroupFiles {
        TaskGroupFiles {
            group,
            weight: None,
            idle: None,
            max: None,
            burst: None,
            uclamp_min: None,
            uclamp_max: None,
        }
    }
}

/// How the previous operation of a thread ended; handed to its program with the next question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The thread has just been started.
    Started,
    /// The work is done, the mark is taken, the sleep is over, the futex was woken, ...
    Done,
    /// The call returned this value: bytes read or written, waiters woken.
    Value(u64),
    /// The call did nothing.
    Failed(Errno),
}

/// Why a call did nothing. As wide as a value, so that an [`Outcome`] is two numbers, which are passed in registers: as bytes
/// it went through memory, and each of its readers waited for the writes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Errno {
    /// `EBUSY`: the reservation is more than what is left for `SCHED_DEADLINE`, or the affinity of a task with one would
    /// leave CPUs out.
    Busy,
    /// `EPERM`: a task that may not run everywhere asks for `SCHED_DEADLINE`.
    Perm,
    /// `EINVAL`: a reservation that makes no sense ([`DlReservation::is_valid`]).
    Inval,
    /// `EAGAIN`: a task of `SCHED_DEADLINE` must not fork.
    Again,
}
