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

use schedtwin_types::{
    BlockDeviceId, BlockOp, CpuMask, DlReservation, Ns, Policy, SchedAttr, TaskGroupFiles,
    TaskGroupId, Work,
};

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

/// One step of a thread.
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
        target_us: u64,
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
}

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
#[derive(Debug)]
pub struct Code {
    /// The instructions of all phases.
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
    /// Number of semaphores.
    pub semaphores: u32,
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
    /// Every CPU of the machine: the affinity of a thread that nothing restricts.
    pub all_cpus: CpuMask,
}

/// One task.
#[derive(Debug)]
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
}

/// One phase.
#[derive(Debug)]
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
#[derive(Clone, Copy, Debug)]
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
