// SPDX-License-Identifier: GPL-2.0-or-later
//! Facts: what a run leaves behind for the meter and the traces.
//!
//! A fact says what happened, never why (reasons are decision records and cost nothing when off).
//! Facts are always on, so they are small and `Copy`.

use crate::{CpuId, IrqLines, Khz, Ns, PolicyId, TaskId};

/// Something that happened at `at` on `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// When.
    pub at: Ns,
    /// On which CPU: the one that executed the code.
    pub cpu: CpuId,
    /// The event.
    pub kind: FactKind,
}

/// The kind of event. Names are those of the kernel's trace events where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// `sched_switch`. The idle task is [`TaskId::IDLE`].
    Switch {
        /// The task that leaves the CPU.
        prev: TaskId,
        /// The task that gets the CPU.
        next: TaskId,
        /// In which state `prev` leaves.
        prev_state: TaskState,
    },
    /// `sched_waking`: somebody begins to wake `task`; stamped on the waker's CPU.
    Waking {
        /// The task that is woken.
        task: TaskId,
        /// By what.
        source: WakeSource,
        /// The CPU it last ran on.
        prev_cpu: CpuId,
    },
    /// `sched_wakeup` (`new`: `sched_wakeup_new`): `task` is runnable on `target`; stamped on the
    /// CPU that activated it.
    Wakeup {
        /// The task.
        task: TaskId,
        /// Where it is queued.
        target: CpuId,
        /// Whether it has just been created.
        new: bool,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// The task.
        task: TaskId,
        /// From where.
        from: CpuId,
        /// Where to.
        to: CpuId,
    },
    /// `sched_process_exit`.
    Exit {
        /// The task.
        task: TaskId,
    },
    /// `cpu_idle`: the CPU asks for idle state `state`.
    IdleEnter {
        /// Index of the state.
        state: u8,
        /// Whether the tick is stopped.
        tick_stopped: bool,
    },
    /// `cpu_idle` with `PWR_EVENT_EXIT`: the CPU is back from `state`.
    IdleExit {
        /// Index of the state.
        state: u8,
        /// `last_residency_ns`, entry and exit latency included.
        residency_ns: Ns,
    },
    /// `cpu_idle_miss`.
    IdleMiss {
        /// The state that was entered.
        state: u8,
        /// `true`: a deeper state would have been right (too shallow); `false`: too deep.
        below: bool,
    },
    /// `cpu_frequency`: the driver has taken the governor's choice; with fast switch at once, else when its
    /// call has returned.
    Frequency {
        /// The cpufreq policy.
        policy: PolicyId,
        /// The new frequency.
        khz: Khz,
        /// Since when the governor has wanted it: the time of the utilisation update.
        requested_at: Ns,
    },
    /// The scheduler tick (`sched_tick`).
    Tick,
    /// An inter-processor interrupt was sent to `target`.
    Ipi {
        /// To whom.
        target: CpuId,
        /// The purpose of the interrupt.
        kind: IpiKind,
    },
    /// `irq_handler_entry` of the interrupts delivered together.
    IrqEntry {
        /// The pending lines.
        lines: IrqLines,
    },
    /// `irq_handler_exit`.
    IrqExit {
        /// Time spent in hard and soft interrupts.
        spent_ns: u32,
    },
    /// A load-balance pass over one domain (`sched_balance_rq`).
    Balance {
        /// Domain level, 0 = lowest.
        level: u8,
        /// `enum cpu_idle_type`: 0 busy, 1 idle, 2 newly idle.
        idle: u8,
        /// Tasks moved.
        moved: u16,
    },
    /// The running task was preempted (it stays runnable): emitted with the switch.
    Preempted {
        /// The task.
        task: TaskId,
    },
    /// A deadline task has used up its runtime, or given the rest away: it waits for its next period.
    DlThrottled {
        /// The task.
        task: TaskId,
    },
    /// The root domain became (or is no longer) overutilized.
    Overutilized {
        /// The new state.
        on: bool,
    },
    /// Signals of a CPU's fair run queue; only while a trace asks for them, at switch and tick.
    CpuSignals {
        /// `cfs_rq->avg.util_avg`.
        util_avg: u32,
        /// `cfs_rq->avg.runnable_avg`.
        runnable_avg: u32,
        /// `cfs_rq->avg.util_est`.
        util_est: u32,
    },
    /// Signals of a task; only while a trace asks for them, at switch and tick.
    TaskSignals {
        /// The task.
        task: TaskId,
        /// `se.avg.util_avg`.
        util_avg: u16,
        /// `se.avg.util_est`, without its flag.
        util_est: u16,
        /// `se.avg.runnable_avg`.
        runnable_avg: u32,
    },
}

/// State in which a task leaves its CPU, as `sched_switch` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TaskState {
    /// `R`: yielded or finished its slice, still runnable.
    #[default]
    Running,
    /// `R+`: preempted.
    Preempted,
    /// `S`: interruptible sleep.
    Interruptible,
    /// `D`: uninterruptible sleep.
    Uninterruptible,
    /// `X`: exited.
    Dead,
}

/// Inter-processor interrupts. At most one of a kind is in flight per CPU, as in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IpiKind {
    /// `smp_send_reschedule`.
    Reschedule = 0,
    /// `call_function_single`: the wake list (`TTWU_QUEUE`), and queues of groups that are no longer throttled.
    WakeList = 1,
    /// `call_function_single`: an idle CPU is asked to balance (`nohz_csd_func`).
    NohzKick = 2,
    /// `irq_work`: schedutil's slow path, and pushing of RT tasks.
    IrqWork = 3,
    /// Tick broadcast: the receiver's timer has expired while it could not see that itself.
    Timer = 4,
}

impl IpiKind {
    /// How many kinds there are.
    pub const COUNT: usize = 5;
    /// All kinds, by number.
    pub const ALL: [IpiKind; IpiKind::COUNT] = [
        IpiKind::Reschedule,
        IpiKind::WakeList,
        IpiKind::NohzKick,
        IpiKind::IrqWork,
        IpiKind::Timer,
    ];
}

/// The source of a wakeup: splits the latency metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum WakeSource {
    /// Another task, in a system call.
    Task = 0,
    /// A timer's interrupt.
    Timer = 1,
    /// The kernel itself or a device.
    Kernel = 2,
}

const _: () = assert!(size_of::<Fact>() <= 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_small() {
        assert!(size_of::<Fact>() <= 32, "{}", size_of::<Fact>());
    }
}
