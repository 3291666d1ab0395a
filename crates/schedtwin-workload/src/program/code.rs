// SPDX-License-Identifier: GPL-2.0-or-later
//! The instructions that threads execute: a workload compiled for one machine.
//!
//! rt-app's events are lowered to few primitives over user memory, so that composite events need
//! no states of their own:
//!
//! ```text
//! suspend "x"   Event; Lock m; ConditionWait c m; Unlock m         m, c: mutex and condition "x"
//! resume  "x"   Event; Lock m; Broadcast c; Unlock m
//! sync          Event; Signal c; ConditionWait c m                 the thread holds m
//! barrier       Event; Lock m; BarrierArrive; ConditionWait c m; BarrierLeave; Unlock m
//! ```
//!
//! `Event` opens each event of the file. It is where rt-app looks whether to go on, where a job may
//! end, and where the work of an event that did nothing else is charged.
//!
//! The life of a thread is code as well: it begins at its task's `entry`, and thread 0 has code of its own, which starts the
//! others and waits for the end.

use super::amount::Amount;
use super::devices::{Delivery, DeviceCode};
use super::frames::Rule;
use super::recording::RecordingCode;
use crate::builtin::Benchmark;
use schedtwin_types::draw::Draws;
use schedtwin_types::{
    BlockDeviceId, BlockOp, CpuMask, DlReservation, File, Mode, Ns, Policy, SchedAttr, SocketKind,
    TaskGroupFiles, TaskGroupId, ThreadId, Work,
};
use std::sync::Arc;

/// rt-app's bound on the forks of one task (`FORKS_LIMIT`).
pub const FORKS_MAX: u32 = 1024;
/// The longest thread name: `TASK_COMM_LEN` without the terminator.
const NAME_BYTES_MAX: usize = 15;

/// The name of a thread as `comm` shows it: of thread number `index` (from 0), and of a forked one the count of forks of its
/// task before it; at most 15 bytes.
///
/// ```
/// use schedtwin_workload::code::thread_name;
/// assert_eq!(thread_name("ui", 3, None), "ui-3");
/// assert_eq!(thread_name("a-long-name", 3, Some(1)), "a-long-name-3-0");
/// ```
pub fn thread_name(task: &str, index: usize, fork: Option<u32>) -> String {
    let mut name = match fork {
        Some(fork) => format!("{task}-{index}-{fork:04}"),
        None => format!("{task}-{index}"),
    };
    let end = (0..=NAME_BYTES_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or(0));
    name
}

/// A number that all threads share: a wish, a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub u32);

/// A semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag(pub u32);

/// A device that interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device(pub u16);

/// A list of threads that wait to be woken all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew(pub u32);

/// Numbers that are taken out in the order in which they were put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue(pub u32);

/// A session of performance hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session(pub u32);

/// An amount, most often a drawn one: its number among [`Code`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmountId(pub u32);

/// A grid's number among [`Code`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridId(pub u32);

/// A grid of moments: `phase`, `phase + period`, ... after the workload's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// From one moment to the next.
    pub period: Ns,
    /// The first moment.
    pub phase: Ns,
}

/// Two connected sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Their kind.
    pub kind: SocketKind,
    /// The bytes of a send buffer; 0: the kernel's default.
    pub sndbuf: u32,
}

/// One step of a thread; 16 bytes, as a recording of an hour has millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Begins an event.
    Event {
        /// The index of the next event, or of the phase's end.
        next: u32,
        /// Its effect.
        kind: EventKind,
        /// Whether a job that has begun its work ends here.
        ends_job: bool,
    },
    /// A fixed amount of work.
    Compute {
        /// How much.
        work: Work,
    },
    /// Pieces of work until `target_us` have passed by the clock.
    ComputeUntil {
        /// The work of a piece.
        chunk: Work,
        /// Microseconds from its beginning.
        target_us: u32,
    },
    /// Relative sleep.
    Sleep {
        /// How long.
        duration: Ns,
    },
    /// A periodic timer; `own`: of the thread, else shared by name.
    Timer {
        /// Its number, among its thread's own or the shared ones.
        timer: u32,
        /// Whether it is of the thread.
        own: bool,
        /// From one expiry to the next.
        period: Ns,
    },
    /// Takes a mutex.
    Lock {
        /// Its number.
        mutex: u32,
    },
    /// Gives it back.
    Unlock {
        /// Its number.
        mutex: u32,
    },
    /// Gives the mutex back, waits on the condition, takes the mutex again.
    ConditionWait {
        /// The condition's number.
        condition: u32,
        /// The mutex's number.
        mutex: u32,
    },
    /// Wakes one waiter.
    Signal {
        /// The condition's number.
        condition: u32,
    },
    /// Wakes all waiters.
    Broadcast {
        /// The condition's number.
        condition: u32,
    },
    /// Counts the thread; the last one wakes all and goes to the `Unlock` behind.
    BarrierArrive {
        /// Its number.
        barrier: u32,
    },
    /// Counts the thread out.
    BarrierLeave {
        /// Its number.
        barrier: u32,
    },
    /// Adds one, and wakes a waiter.
    SemaphorePost {
        /// Its number.
        semaphore: u32,
    },
    /// Takes one, or waits for it.
    SemaphoreWait {
        /// Its number.
        semaphore: u32,
        /// Whether a job that need not wait is released now, too.
        releases: bool,
    },
    /// From here on so many thousandths of the time of work wait for memory.
    Stalls {
        /// 0..=1000.
        permille: u16,
    },
    /// A request to a block device, which the thread sleeps for.
    BlockIo {
        /// The device.
        device: BlockDeviceId,
        /// What is asked for.
        op: BlockOp,
        /// How many bytes.
        bytes: u32,
    },
    /// Calls of `write()` that sleep for nothing.
    Write {
        /// How many bytes in all.
        bytes: u32,
        /// How many in a call.
        chunk: u32,
        /// Whether they are copied.
        copies: bool,
    },
    /// `sched_yield()`.
    Yield,
    /// Starts a thread of a task.
    Fork {
        /// The task's number.
        task: u32,
    },
    /// The end of one iteration of a phase.
    PhaseEnd,

    // ---- The life of a thread of an rt-app file: see [`LIFE`].
    /// Waits for all threads of the start.
    Arrive,
    /// Sleeps for the task's delay.
    Delay,
    /// Takes the task's scheduling parameters.
    TaskAttributes,
    /// Begins a phase, or ends the task: takes the phase's affinity.
    PhaseCpus,
    /// Takes the phase's scheduling parameters.
    PhaseAttributes,
    /// Moves to the phase's task group, and goes on with the phase's events.
    PhaseGroup,
    /// Takes the default policy again.
    Restore,
    /// Ends the thread, and wakes thread 0 if that waits for it.
    EndJoined,

    // ---- Thread 0.
    /// Begins the workload so long after now: devices start, and moments count from then.
    Begin(Ns),
    /// Connects a pair of sockets, by its number.
    Connect(u32),
    /// Starts all threads that no other thread starts.
    StartThreads,
    /// Sleeps until so long after the workload's beginning, unless the workload is over.
    SleepUntil(Ns),
    /// Sleeps until the workload is over.
    AwaitEnd,
    /// rt-app's `continue_running` becomes 0.
    Stop,
    /// Wakes all who wait for a condition.
    WakeConditions,
    /// Wakes all who wait for a semaphore.
    WakeSemaphores,
    /// Waits until each thread has ended.
    Join,
    /// Ends the workload.
    Finish,

    // ---- Threads that come and go.
    /// Takes the task's affinity.
    TaskCpus,
    /// Starts a thread that is made later: another one of its task, if it has not ended yet.
    Clone(ThreadId),
    /// Executes another program.
    Exec,
    /// Ends the thread.
    Exit,

    // ---- Recorded threads.
    /// Uses the CPUs that the thread was bound to at its start.
    Bind,
    /// Takes the parameters that the thread had at its start.
    Assume,
    /// Computes as a part of a job; what is done is counted.
    Work(Work),
    /// Posts the ticket of a sleep.
    Post {
        /// The ticket's number.
        ticket: u32,
    },
    /// Sleeps until the ticket is posted.
    Wait {
        /// The ticket's number.
        ticket: u32,
    },
    /// Sleeps until a time after the beginning, and for at least that long: see
    /// [`crate::recorded::ANSWER_MOST_NS`].
    Until {
        /// Until when, after the beginning.
        at: Ns,
        /// The shortest sleep, ns.
        least: u32,
    },
    /// Takes the kernel's priority.
    Priority(i32),
    /// Uses these CPUs only: a number among the recording's masks.
    Affinity(u32),
    /// Takes these utilisation clamps, minimum and maximum.
    Clamps(u16, u16),
    /// Goes on once another thread has come to a sleep: a number among the recording's hand-overs.
    After(u32),
    /// Sleeps for ever: the recording has no more of the thread.
    Over,

    // ---- Numbers and the clock.
    /// Sets a register to the present moment.
    Clock(Register),
    /// A thing measured took from the moment in a register until now.
    Record(u16, Register),
    /// A number for the results.
    RecordNumber(u16, u64),
    /// Sets a register.
    Set(Register, u64),
    /// Adds to a register.
    Add(Register, u64),
    /// Sets a register to what is in another.
    Copy(Register, Register),
    /// Takes one from a register, which is not 0.
    Take(Register),
    /// Sets a register to the moment at which the thread's job was released: that which it last slept until.
    Released(Register),
    /// Sets a register to the next moment of a grid.
    SetNext(Register, GridId),
    /// Sets a register to an amount.
    SetAmount(Register, AmountId),
    /// Sets the first register to an amount times the per cent in the second.
    SetShare(Register, AmountId, Register),
    /// Goes on elsewhere.
    Jump(u32),
    /// Goes on elsewhere if a register is 0.
    JumpIfZero(Register, u32),
    /// Puts a register's number into a queue.
    Put(Queue, Register),
    /// Takes the next number of a queue, which has one, into a register.
    Get(Queue, Register),

    // ---- Work and sleeps of models.
    /// Computes an amount.
    ComputeAmount(AmountId, Mode),
    /// Computes so many per cent of an amount in a register.
    ComputeShare(Register, u64),
    /// Computes what is in a register, and sets it to 0.
    ComputeRest(Register),
    /// Spins until so long after the moment in a register, ns.
    Spin(Register, Ns),
    /// Sleeps for an amount of time.
    SleepAmount(AmountId),
    /// Sleeps until the next moment of a grid.
    SleepUntilNext(GridId),
    /// Lets the other CPUs have the turn, where CPUs execute in turns.
    Relax,
    /// Takes the lock of the CPU that it runs on; spins until it has it.
    LockCpu,
    /// Gives it back.
    UnlockCpu,

    // ---- Other threads, files and devices.
    /// Adds one to a semaphore that is 0, and wakes a waiter.
    Raise(Flag),
    /// Posts a semaphore as often as a register says, with one call, and sets that to 0.
    PostAll(Flag, Register),
    /// Puts the thread on a crew's list: its semaphore, and where the moment of its waking goes.
    Enlist(Crew, Flag, Register),
    /// Raises the semaphores of all on a crew's list, latest first, and empties it.
    RaiseAll(Crew),
    /// Writes so many bytes.
    Send(File, u32),
    /// Reads until it has so many bytes.
    Receive(File, u32),
    /// Sleeps until something can be read.
    Poll(File),
    /// A request to a block device, a read if the amount is less than the number: the device, the bytes, the number.
    BlockIoAmount(BlockDeviceId, u32, AmountId, u8),
    /// Gives a device something to do, for an amount times the per cent in a register; it begins when it is
    /// through with what it has, and not before the moment in the second register.
    DeviceStart(Device, AmountId, Register, Register),
    /// A device is to interrupt at the next moment of a grid.
    DeviceStartUntil(Device, GridId),
    /// A device interrupts after so long and delivers, whatever else it has to do: an answer of somebody far away.
    /// The semaphore that it posts, and the queue that gets the moment.
    Deliver(Device, AmountId, Flag, Option<std::num::NonZeroU32>),

    // ---- Frames and jobs.
    /// A job is done that should have begun at the moment in a register.
    Job(Register),
    /// A frame begins, intended for the moment in a register.
    FrameBegin(Register),
    /// The oldest frame under way is on its way to the display.
    FrameEnd,
    /// Frames that begin from now on count for a test, or for none.
    Count(Option<u16>),
    /// A frame of a session of hints begins.
    HintBegin(Session),
    /// Its oldest frame has waited since the moment in a register.
    HintWaited(Session, Register),
    /// Its oldest frame is done.
    HintEnd(Session),
    /// Takes over the session's clamp, where the thread has another one.
    HintTake(Session),
    /// The workload is over, and so is the thread.
    End,
}

const _: () = assert!(size_of::<Instruction>() == 16);

/// The life of a thread of an rt-app file, the first instructions of its code; its phases are between [`PHASE`] and [`ENDING`].
pub(crate) const LIFE: [Instruction; 8] = [
    Instruction::Arrive,
    Instruction::Delay,
    Instruction::TaskAttributes,
    Instruction::PhaseCpus,
    Instruction::PhaseAttributes,
    Instruction::PhaseGroup,
    Instruction::Restore,
    Instruction::EndJoined,
];
/// Where a phase begins in [`LIFE`].
pub(crate) const PHASE: u32 = 3;
/// Where the end of a thread begins in [`LIFE`].
pub(crate) const ENDING: u32 = 6;

/// The effect of an event on the end of the run and on jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Is skipped when the run is over.
    Plain,
    /// As `Plain`, and it is work of a job (`run`, `runtime`).
    Work,
    /// `lock`: executed even when the run is over, while the thread holds a mutex.
    Lock,
    /// `unlock`: likewise.
    Unlock,
}

/// All tasks of a workload, and what their threads share.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The instructions of all threads.
    pub instructions: Vec<Instruction>,
    /// The phases of all tasks.
    pub phases: Vec<PhaseCode>,
    /// The tasks, in the order of the file.
    pub tasks: Vec<TaskCode>,
    /// Threads at the start: the task of each, in the order of creation.
    pub start: Vec<u32>,
    /// How long the run is; `None`: until all threads have ended.
    pub duration: Option<Ns>,
    /// Number of mutexes.
    pub mutexes: u32,
    /// Number of conditions.
    pub conditions: u32,
    /// The value of each semaphore at the beginning.
    pub semaphores: Vec<u32>,
    /// Of each shared timer, whether it is absolute.
    pub timers: Vec<bool>,
    /// Of each barrier: its condition, and how many threads meet there (rt-app's count).
    pub barriers: Vec<(u32, u32)>,
    /// Of each task group but the root: the group above. The first is number 1.
    pub task_groups: Vec<TaskGroupId>,
    /// Their paths.
    pub task_group_paths: Vec<String>,
    /// The values that are written into the groups' files before the start.
    pub group_files: Vec<TaskGroupFiles>,
    /// Every CPU of the machine: the affinity of a thread that nothing restricts. A recording does not know its machine.
    pub all_cpus: CpuMask,
    /// The name of thread 0.
    pub main_name: Arc<str>,
    /// The first instruction of thread 0.
    pub main: u32,
    /// The kind of all work, by the name that machines know it by.
    pub work_kind: &'static str,
    /// The number of the first mutex's futex.
    pub first_futex: u32,
    /// The time that the workload prepares itself after its start; not to be measured.
    pub warmup: Ns,
    /// The value of each register at the beginning.
    pub registers: Vec<u64>,
    /// The count of values that are recorded under each number; 0 if it is not known.
    pub records: Vec<usize>,
    /// Number of processes that several threads share, thread 0's not counted: those of one thread are numbered behind them.
    pub processes: u32,
    /// Number of pipes.
    pub pipes: u32,
    /// Connected sockets: pair n has the ends 2n and 2n + 1.
    pub pairs: Vec<Pair>,
    /// Number of queues.
    pub queues: u32,
    /// Number of crews.
    pub crews: u32,
    /// Grids of moments.
    pub grids: Vec<Grid>,
    /// Amounts, and the draws of each.
    pub(crate) amounts: Vec<(Amount, Draws)>,
    /// Devices that interrupt.
    pub(crate) devices: Vec<DeviceCode>,
    /// Deliveries that devices make by themselves, so long after the workload's beginning.
    pub(crate) arrivals: Vec<(Device, Ns, Delivery)>,
    /// The target of each session of hints.
    pub(crate) sessions: Vec<Ns>,
    /// Names of the tests whose frames are counted, and the display's period.
    pub(crate) tests: Vec<&'static str>,
    pub(crate) refresh: Ns,
    /// The rule for jank.
    pub(crate) jank: Rule,
    /// The benchmark that makes results of what is counted.
    pub(crate) benchmark: Option<&'static dyn Benchmark>,
    /// A recording's facts.
    pub(crate) recording: Option<RecordingCode>,
}

impl Code {
    /// Whether a thread makes requests to block devices.
    pub fn uses_block_devices(&self) -> bool {
        let is_io = |of: &Instruction| {
            matches!(of, Instruction::BlockIo { .. } | Instruction::BlockIoAmount(..))
        };
        self.instructions.iter().any(is_io)
    }

    /// Whether some of its work waits for memory.
    pub fn stalls(&self) -> bool {
        self.instructions.iter().any(|of| matches!(of, Instruction::Stalls { .. }))
    }
}

/// One task.
#[derive(Clone, Debug, Default)]
pub struct TaskCode {
    /// As the file calls it.
    pub name: String,
    /// From the start of the first thread to its own.
    pub delay: Ns,
    /// `None`: for ever.
    pub loops: Option<u32>,
    /// The first of its phases.
    pub first_phase: u32,
    /// Behind the last phase.
    pub end_phase: u32,
    /// Its parameters at the start.
    pub attributes: AttributeCode,
    /// Of each of the task's own timers, whether it is absolute.
    pub timers: Vec<bool>,
    /// The first instruction of its threads.
    pub entry: u32,
    /// The name that `comm` shows of its threads; `None`: the task's with a number.
    pub comm: Option<Arc<str>>,
    /// The affinity that its threads take by [`Instruction::TaskCpus`].
    pub cpus: CpuMask,
    /// Whether another thread starts it, not thread 0.
    pub later: bool,
    /// The process that its threads share; `None`: each is a process of its own.
    pub process: Option<u32>,
}

/// One phase.
#[derive(Clone, Debug)]
pub struct PhaseCode {
    /// Where its instructions begin.
    pub first_instruction: u32,
    /// `None`: for ever.
    pub loops: Option<u32>,
    /// The parameters that an iteration sets.
    pub attributes: Option<AttributeCode>,
    /// The phase's affinity, or else the task's.
    pub cpus: Option<CpuMask>,
    /// The phase's task group, or else the task's; `None`: stays where it is.
    pub group: Option<TaskGroupId>,
}

/// A change of scheduling parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttributeCode {
    /// The policy.
    pub policy: Policy,
    /// Nice value or real-time priority; `None`: as it is.
    pub priority: Option<i8>,
    /// `None`: as it is.
    pub slice: Option<Ns>,
    /// Utilisation clamps, minimum and maximum; `None`: as it is.
    pub clamps: [Option<u16>; 2],
    /// The reservation, if the policy is `SCHED_DEADLINE`.
    pub dl: DlReservation,
}

impl AttributeCode {
    /// The change of new parameters into these.
    pub(crate) fn of(attributes: SchedAttr) -> AttributeCode {
        let SchedAttr { policy, nice, rt_priority, slice, util_min, util_max, dl, .. } = attributes;
        let is_rt = matches!(policy, Policy::Fifo | Policy::Rr);
        let priority = Some(if is_rt { rt_priority as i8 } else { nice });
        AttributeCode { policy, priority, slice: Some(slice), clamps: [util_min, util_max], dl }
    }

    /// Returns the parameters that a thread with `current` parameters has after the change.
    ///
    /// SCHED_IDLE keeps the nice value: rt-app calls setpriority() only for the other fair policies.
    pub fn applied_to(&self, current: SchedAttr) -> SchedAttr {
        let mut new = SchedAttr { policy: self.policy, rt_priority: 0, ..current };
        match self.policy {
            Policy::Normal | Policy::Batch | Policy::Ext => {
                new.nice = self.priority.unwrap_or(current.nice);
            }
            Policy::Fifo | Policy::Rr => {
                new.rt_priority =
                    self.priority.map_or(current.rt_priority, |priority| priority.max(1) as u8);
            }
            Policy::Deadline => new.dl = self.dl,
            Policy::Idle => {}
        }
        if matches!(self.policy, Policy::Normal | Policy::Batch) {
            new.slice = self.slice.unwrap_or(current.slice);
        }
        let [min, max] = self.clamps;
        new.util_min = min.or(current.util_min);
        new.util_max = max.or(current.util_max);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_change_only_what_their_policy_has() {
        let current = SchedAttr { nice: 5, slice: 7, ..SchedAttr::default() };
        let clamps = [None, Some(300)];
        let current = SchedAttr { util_min: Some(100), ..current };
        let change = |policy, priority, slice| {
            let clamps = [None, None];
            AttributeCode { policy, priority, slice, clamps, dl: DlReservation::default() }
                .applied_to(current)
        };
        let clamped = AttributeCode {
            policy: Policy::Normal,
            priority: None,
            slice: None,
            clamps,
            dl: DlReservation::default(),
        };
        assert_eq!(clamped.applied_to(current), SchedAttr { util_max: Some(300), ..current });
        assert_eq!(
            change(Policy::Normal, Some(-3), Some(0)),
            SchedAttr { nice: -3, slice: 0, ..current }
        );
        assert_eq!(change(Policy::Normal, None, None), current);
        assert_eq!(
            change(Policy::Fifo, Some(10), Some(0)),
            SchedAttr { policy: Policy::Fifo, rt_priority: 10, ..current }
        );
        assert_eq!(
            change(Policy::Idle, Some(0), Some(0)),
            SchedAttr { policy: Policy::Idle, ..current }
        );
    }
}
