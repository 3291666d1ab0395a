// SPDX-License-Identifier: GPL-2.0-or-later
//! Kinds of events: everything that a replay or a judgement of it uses. The rest is [`TraceEventKind::Other`].

use super::NameId;
use schedtwin_types::{CpuId, Ns};

/// A task, as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTask {
    /// Its name.
    pub comm: NameId,
    /// Its pid; 0 is idle.
    pub pid: u32,
    /// The kernel's priority: 120 is nice 0, below 100 real time (99 − `sched_priority`), −1 deadline.
    pub prio: i32,
}

/// How a task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It wants to go on: preempted, or it yielded.
    Runnable,
    /// It sleeps, and a signal may end that: `S`, also stopped and traced tasks and idle kernel threads.
    Asleep,
    /// It sleeps uninterruptibly: `D`, e.g. for a disk.
    Blocked,
    /// It has exited.
    Dead,
}

impl Left {
    /// How a task leaves, from the number in `prev_state`.
    ///
    /// Bits below 256 say what the task waits for; the marks that say "preempted" (`R+`) have moved between
    /// releases and lie above, so a number is runnable where the low bits are 0.
    pub fn of_bits(bits: u64) -> Left {
        /// The bits of the state that the task waits for, without the preemption marks above.
        const WAITS_FOR: u64 = 0xff;
        /// `EXIT_DEAD`, `EXIT_ZOMBIE` and the `TASK_DEAD` of older releases.
        const DEAD: u64 = 0x10 | 0x20 | 0x40;
        /// `TASK_UNINTERRUPTIBLE`.
        const BLOCKED: u64 = 2;
        /// `TASK_NOLOAD`: an idle kernel thread, which is no task that waits for a disk.
        const NO_LOAD: u64 = 0x80;
        match bits & WAITS_FOR {
            0 => Left::Runnable,
            bits if bits & DEAD != 0 => Left::Dead,
            bits if bits & (BLOCKED | NO_LOAD) == BLOCKED => Left::Blocked,
            _ => Left::Asleep,
        }
    }

    /// How a task leaves, from the letters in `prev_state`; `None` if they are none.
    pub fn of_letters(letters: &str) -> Option<Left> {
        Some(match *letters.as_bytes().first()? {
            b'R' => Left::Runnable,
            b'X' | b'x' | b'Z' => Left::Dead,
            b'D' => Left::Blocked,
            letter if letter.is_ascii_alphabetic() => Left::Asleep,
            _ => return None,
        })
    }

    /// The number in `prev_state`, as Linux has it since 4.14.
    pub fn bits(self) -> u64 {
        match self {
            Left::Runnable => 0,
            Left::Asleep => 1,
            Left::Blocked => 2,
            Left::Dead => 0x10,
        }
    }

    /// The letter in `prev_state`.
    pub fn letter(self) -> &'static str {
        match self {
            Left::Runnable => "R",
            Left::Asleep => "S",
            Left::Blocked => "D",
            Left::Dead => "X",
        }
    }

    /// It sleeps, in whatever way.
    pub fn sleeps(self) -> bool {
        matches!(self, Left::Asleep | Left::Blocked)
    }
}

/// Which span of a frame timeline begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSpan {
    /// When the compositor was expected to compose: its end is the deadline.
    ExpectedDisplay,
    /// When the compositor composed.
    ActualDisplay,
    /// When an application was expected to draw.
    ExpectedSurface,
    /// When an application drew.
    ActualSurface,
}

/// The kind of an event. Each variant names its tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEventKind {
    /// The recorder lost events of this CPU before this moment; `None`: it does not say how many. No tracepoint and not counted:
    /// [`super::SourceReport::lose`] is told as well.
    Lost {
        /// How many.
        events: Option<u64>,
    },
    /// `suspend_resume` of `machine_suspend`: from its beginning to its end the machine sleeps, and with it all tasks.
    Suspend {
        /// It begins; else it ends.
        begins: bool,
    },
    /// `sched_switch`.
    Switch {
        /// The task that ran; `None` where the file does not tell it, as at the first compact switch of a CPU in Perfetto.
        prev: Option<EventTask>,
        /// How it leaves.
        left: Left,
        /// The task that runs from now on.
        next: EventTask,
    },
    /// `sched_waking`, stamped in the waker's context.
    Waking {
        /// The task that is woken.
        task: EventTask,
        /// The CPU on which it last ran.
        target: Option<CpuId>,
    },
    /// `sched_wakeup`: the task is runnable; stamped on its own CPU by newer kernels.
    Wakeup {
        /// The task that is woken.
        task: EventTask,
        /// The CPU that was chosen for it.
        target: Option<CpuId>,
    },
    /// `sched_wakeup_new`: runnable for the first time.
    WakeupNew {
        /// The new task.
        task: EventTask,
        /// The CPU that was chosen for it.
        target: Option<CpuId>,
    },
    /// `sched_migrate_task`: by placement at a wakeup as well as by balancing.
    Migrate {
        /// The task.
        task: EventTask,
        /// The CPU that it leaves.
        from: CpuId,
        /// The CPU that it gets.
        to: CpuId,
    },
    /// `sched_process_fork`.
    Fork {
        /// Pid of the parent.
        parent: u32,
        /// Name of the child.
        child_comm: NameId,
        /// Pid of the child.
        child: u32,
    },
    /// `sched_process_exit`.
    Exit {
        /// The thread that ends.
        pid: u32,
    },
    /// `sched_process_free`: the number may be used again.
    Free {
        /// The thread that has ended.
        pid: u32,
    },
    /// `sched_process_exec`.
    Exec {
        /// The thread's pid from now on.
        pid: u32,
        /// Its pid before: another one if a thread that is not the leader executes.
        old_pid: u32,
    },
    /// `task_newtask`.
    NewTask {
        /// The new thread.
        pid: u32,
        /// Its name.
        comm: NameId,
        /// `CLONE_*`; 0x10000 is a thread of the caller's process.
        clone_flags: u64,
    },
    /// `task_rename`.
    Rename {
        /// The thread.
        pid: u32,
        /// Its name from now on.
        comm: NameId,
    },
    /// `sched_pi_setprio`: priority inheritance changes a priority.
    PiPriority {
        /// The thread.
        pid: u32,
        /// Its priority before.
        from: i32,
        /// Its priority from now on.
        to: i32,
    },
    /// A thread's allowed CPUs are told: `sched_wakeup_task_attr`, `set_cpus_allowed_by_task` and the like.
    Affinity {
        /// The thread.
        pid: u32,
        /// CPUs 0 to 63 as bits; no such event knows more.
        cpus: u64,
    },
    /// A thread's utilisation clamps are told, of 1024: LISA's `uclamp_util_se`, vendors' events.
    Clamp {
        /// The thread.
        pid: u32,
        /// The lower clamp.
        min: Option<u16>,
        /// The upper clamp.
        max: Option<u16>,
    },
    /// `cpu_frequency`, or a mark of it.
    Frequency {
        /// Which CPU.
        cpu: CpuId,
        /// To what, kHz.
        khz: u32,
    },
    /// `cpu_frequency_limits`.
    FrequencyLimits {
        /// Which CPU.
        cpu: CpuId,
        /// The lowest that is allowed, kHz.
        min_khz: u32,
        /// The highest that is allowed, kHz.
        max_khz: u32,
    },
    /// `cpu_idle`; `None`: woken up.
    Idle {
        /// Which CPU.
        cpu: CpuId,
        /// Which state.
        state: Option<u32>,
    },
    /// `cpu_idle_miss`: another state would have been right.
    IdleMiss {
        /// Which CPU.
        cpu: CpuId,
        /// The state chosen.
        state: u32,
        /// A shallower one would have been right.
        below: bool,
    },
    /// `irq_handler_entry`.
    IrqEntry {
        /// The interrupt's number.
        irq: u32,
        /// The handler's name.
        handler: NameId,
    },
    /// `irq_handler_exit`.
    IrqExit {
        /// The interrupt's number.
        irq: u32,
    },
    /// `softirq_raise`.
    SoftirqRaise {
        /// Which one: 0 `HI`, 1 `TIMER`, … 9 `RCU`.
        vector: u8,
    },
    /// `softirq_entry`.
    SoftirqEntry {
        /// Which one.
        vector: u8,
    },
    /// `softirq_exit`.
    SoftirqExit {
        /// Which one.
        vector: u8,
    },
    /// `ipi_raise`, `ipi_send_cpu`.
    IpiSend {
        /// The CPU that is interrupted, where it is one and is told.
        to: Option<CpuId>,
        /// Why, where it is told.
        reason: NameId,
    },
    /// `ipi_entry`, and the interrupt vectors of x86 (`local_timer_entry`, `reschedule_entry`, …).
    VectorEntry {
        /// The reason of an IPI, or the vector's name without its ending: `local_timer`.
        name: NameId,
    },
    /// `ipi_exit`, and the vectors' ends.
    VectorExit {
        /// As of the entry.
        name: NameId,
    },
    /// `hrtimer_start`.
    HrtimerStart {
        /// Its address, which names it.
        timer: u64,
        /// Its handler's name or address.
        function: NameId,
        /// When it is due, ns of the kernel's clock.
        expires: Ns,
    },
    /// `hrtimer_cancel`.
    HrtimerCancel {
        /// Its address.
        timer: u64,
    },
    /// `hrtimer_expire_entry`.
    HrtimerExpire {
        /// Its address.
        timer: u64,
        /// Its handler's name or address.
        function: NameId,
    },
    /// `hrtimer_expire_exit`.
    HrtimerDone {
        /// Its address.
        timer: u64,
    },
    /// `timer_start`: a timer of the wheel.
    TimerStart {
        /// Its address.
        timer: u64,
        /// Its handler's name or address.
        function: NameId,
        /// When it is due, jiffies.
        expires: u64,
        /// Ticks from now.
        ticks: i64,
    },
    /// `timer_cancel`.
    TimerCancel {
        /// Its address.
        timer: u64,
    },
    /// `timer_expire_entry`.
    TimerExpire {
        /// Its address.
        timer: u64,
        /// Its handler's name or address.
        function: NameId,
    },
    /// `timer_expire_exit`.
    TimerDone {
        /// Its address.
        timer: u64,
    },
    /// `workqueue_queue_work`.
    WorkQueue {
        /// Its address.
        work: u64,
        /// Its function's name or address.
        function: NameId,
        /// The CPU asked for; `None`: any.
        cpu: Option<CpuId>,
    },
    /// `workqueue_execute_start`.
    WorkStart {
        /// Its address.
        work: u64,
        /// Its function's name or address.
        function: NameId,
    },
    /// `workqueue_execute_end`.
    WorkEnd {
        /// Its address.
        work: u64,
    },
    /// `sched_blocked_reason` of Android.
    BlockedReason {
        /// The thread that slept.
        pid: u32,
        /// It waited for a disk.
        io_wait: bool,
    },
    /// A slice of the running thread begins: atrace's `B|`, or a track event.
    SliceBegin {
        /// The process; 0 where it is not told.
        tgid: u32,
        /// Its name.
        name: NameId,
    },
    /// The thread's innermost slice ends: `E|`.
    SliceEnd {
        /// The process; 0 where it is not told.
        tgid: u32,
    },
    /// A slice of no thread begins: `S|`.
    AsyncBegin {
        /// The process.
        tgid: u32,
        /// Its name.
        name: NameId,
        /// Tells it from others of that name.
        cookie: i64,
    },
    /// It ends: `F|`.
    AsyncEnd {
        /// The process.
        tgid: u32,
        /// Its name.
        name: NameId,
        /// As at its beginning.
        cookie: i64,
    },
    /// A counter changes: `C|`.
    Counter {
        /// The process.
        tgid: u32,
        /// Its name.
        name: NameId,
        /// Its value from now on.
        value: i64,
    },
    /// A moment is marked: `I|`.
    Instant {
        /// The process; 0 where it is not told.
        tgid: u32,
        /// Its name.
        name: NameId,
    },
    /// A span of the frame timeline begins.
    FrameBegin {
        /// Joins it with its end.
        cookie: i64,
        /// The frame: joins what was expected with what was done.
        token: i64,
        /// The process.
        pid: u32,
        /// Which span.
        span: FrameSpan,
        /// `JankType` bits, 0 where unknown; 1 is none.
        jank: u32,
    },
    /// A span of the frame timeline ends.
    FrameEnd {
        /// As at its beginning.
        cookie: i64,
    },
    /// The recorder has all events of this CPU from this moment on, and may lack some before: a buffer that was overwritten
    /// begins here. Like [`TraceEventKind::Lost`] it is no tracepoint and not counted.
    Begins,
    /// Any other event: counted by its name in [`super::SourceReport::counts`].
    Other,
}
