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
    CpuMask, DlReservation, Ns, Policy, SchedAttr, TaskGroupFiles, TaskGroupId, Work,
};

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// Begins an event; `next` is the next event's (or the phase end's) index.
    Event {
        next: u32,
        kind: EventKind,
        ends_job: bool,
    },
    /// A fixed amount of work.
    Compute {
        work: Work,
    },
    /// Pieces of work until `target_us` have passed by the clock.
    ComputeUntil {
        chunk: Work,
        target_us: u64,
    },
    /// Relative sleep.
    Sleep {
        duration: Ns,
    },
    /// A periodic timer; `own`: of the thread, else shared by name.
    Timer {
        timer: u32,
        own: bool,
        period: Ns,
    },
    Lock {
        mutex: u32,
    },
    Unlock {
        mutex: u32,
    },
    ConditionWait {
        condition: u32,
        mutex: u32,
    },
    Signal {
        condition: u32,
    },
    Broadcast {
        condition: u32,
    },
    BarrierArrive {
        barrier: u32,
    },
    BarrierLeave {
        barrier: u32,
    },
    SemaphorePost {
        semaphore: u32,
    },
    SemaphoreWait {
        semaphore: u32,
    },
    Yield,
    Fork {
        task: u32,
    },
    /// The end of one iteration of a phase.
    PhaseEnd,
}

/// The effect of an event on the end of the run and on jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
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
pub(crate) struct Code {
    pub instructions: Vec<Instruction>,
    pub phases: Vec<PhaseCode>,
    pub tasks: Vec<TaskCode>,
    /// Threads at the start: the task of each, in the order of creation.
    pub start: Vec<u32>,
    pub duration: Option<Ns>,
    pub mutexes: u32,
    pub conditions: u32,
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
pub(crate) struct TaskCode {
    pub name: String,
    pub delay: Ns,
    /// `None`: for ever.
    pub loops: Option<u32>,
    pub first_phase: u32,
    /// Behind the last phase.
    pub end_phase: u32,
    pub attributes: AttributeCode,
    /// Of each of the task's own timers, whether it is absolute.
    pub timers: Vec<bool>,
}

/// One phase.
#[derive(Debug)]
pub(crate) struct PhaseCode {
    pub first_instruction: u32,
    /// `None`: for ever.
    pub loops: Option<u32>,
    pub attributes: Option<AttributeCode>,
    /// The phase's affinity, or else the task's.
    pub cpus: Option<CpuMask>,
    /// The phase's task group, or else the task's; `None`: stays where it is.
    pub group: Option<TaskGroupId>,
}

/// A change of scheduling parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeCode {
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
            Policy::Normal | Policy::Batch => new.nice = self.priority.unwrap_or(current.nice),
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
