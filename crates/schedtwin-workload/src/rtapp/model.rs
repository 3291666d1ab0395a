// SPDX-License-Identifier: GPL-2.0-or-later
//! The model of an rt-app file, checked and resolved, but independent of any machine.
//!
//! Names have become indices, times are still in rt-app's microseconds, loops are counts. Nothing
//! here can be wrong any more except against a machine: a CPU number, and what waits for a later
//! version of the twin ([`Model::pending`]).

use schedtwin_input::{Diagnostics, Source};
use schedtwin_types::{BlockOp, CpuMask, DlReservation, TaskGroupFiles};
use std::ops::Range;
use std::sync::Arc;

/// A checked rt-app file.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub source: Arc<Source>,
    /// The text, and the settings that were put over it: what tells it from others.
    pub identity: String,
    pub global: Global,
    pub tasks: Vec<Task>,
    pub mutexes: Vec<String>,
    pub conditions: Vec<String>,
    pub semaphores: Vec<String>,
    /// Timers that all threads share.
    pub timers: Vec<TimerDefinition>,
    pub barriers: Vec<BarrierDefinition>,
    /// Block devices that events name, and where; `None`: the machine's first.
    pub block_devices: Vec<(Option<String>, Range<usize>)>,
    /// Paths of task groups, each beginning with "/".
    pub task_groups: Vec<String>,
    /// Files of groups: the group's number in `task_groups`, and what is written; the group in that says nothing yet.
    pub group_files: Vec<(u32, TaskGroupFiles)>,
    /// Notices that a user should know although the file runs.
    pub notices: Vec<String>,
    /// Requests of the file that are understood but not modelled yet: it cannot run.
    pub pending: Diagnostics,
}

/// The `global` section, as far as it has an effect on the twin.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    /// Seconds; `None`: until all threads have ended.
    pub duration_s: Option<u32>,
    pub calibration: Calibration,
    /// `io_device` takes bytes without a look: /dev/null.
    pub io_to_null: bool,
    /// `system`, which rt-app does not have: beside which system it runs, and where that stands.
    pub system: Option<(String, Range<usize>)>,
    /// `mem_buffer_size`, bytes.
    pub buffer_bytes: u32,
}

impl Global {
    /// A file without the section.
    pub fn left_out() -> Global {
        let calibration = Calibration::Cpu { cpu: 0, span: 0..0 };
        let (io_to_null, buffer_bytes) = (true, 4 << 20);
        Global { duration_s: None, calibration, io_to_null, system: None, buffer_bytes }
    }
}

/// How fast rt-app believes its busy loop to be.
#[derive(Clone, Debug)]
pub(crate) enum Calibration {
    /// Nanoseconds per loop, as given.
    NsPerLoop(u32),
    /// As measured on a CPU at its highest frequency.
    Cpu { cpu: u16, span: Range<usize> },
    /// As measured on the strongest CPU; rt-app itself has no word for it.
    Largest,
}

/// One entry of `tasks`.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub name: String,
    /// Threads at the start; 0: only `fork` creates them.
    pub instances: u32,
    pub delay_us: u32,
    /// How often the phases are gone through.
    pub loops: Loops,
    pub timers: Vec<TimerDefinition>,
    pub cpus: Option<CpuList>,
    /// The number of its task group.
    pub task_group: Option<u32>,
    pub attributes: Attributes,
    /// Where the file asks for SCHED_DEADLINE, if the task or one of its phases does.
    pub deadline_at: Option<Range<usize>>,
    pub phases: Vec<Phase>,
}

/// How often something is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loops {
    Forever,
    Times(u32),
}

/// One phase of a task.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub loops: Loops,
    pub cpus: Option<CpuList>,
    /// The number of its task group.
    pub task_group: Option<u32>,
    /// The changes of the phase; `None` if it names no scheduling parameter.
    pub attributes: Option<Attributes>,
    pub events: Vec<Event>,
}

/// An affinity, with the place of each CPU number.
#[derive(Clone, Debug)]
pub(crate) struct CpuList {
    pub mask: CpuMask,
    pub numbers: Vec<(u16, Range<usize>)>,
}

/// Scheduling policies by rt-app's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyName {
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
    Deadline,
    Ext,
}

/// Scheduling parameters to be set. The policy is resolved: a phase without one goes on with the
/// policy that the phases before it left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    pub policy: PolicyName,
    /// Nice value or real-time priority; `None`: unchanged.
    pub priority: Option<i8>,
    /// Custom slice; 0: the default slice; `None`: unchanged.
    pub slice_us: Option<u32>,
    /// Utilisation clamps, minimum and maximum, 0..=1024; `None`: unchanged.
    pub clamps: [Option<u16>; 2],
    /// The reservation, if the policy is `SCHED_DEADLINE`.
    pub dl: DlReservation,
}

/// A `timer` resource.
#[derive(Clone, Debug)]
pub(crate) struct TimerDefinition {
    /// Any use with `"mode": "absolute"` makes the timer absolute for all its uses, as in rt-app.
    pub absolute: bool,
}

/// A `barrier` resource.
#[derive(Clone, Debug)]
pub(crate) struct BarrierDefinition {
    pub mutex: u32,
    pub condition: u32,
    /// Sum of the instances of the tasks over all uses.
    pub users: u32,
}

/// One event; resources by index, times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Run {
        us: u32,
    },
    Runtime {
        us: u32,
    },
    Sleep {
        us: u32,
    },
    Timer {
        timer: u32,
        own: bool,
        period_us: u32,
    },
    Lock {
        mutex: u32,
    },
    Unlock {
        mutex: u32,
    },
    Wait {
        condition: u32,
        mutex: u32,
    },
    Signal {
        condition: u32,
    },
    Broadcast {
        condition: u32,
    },
    Sync {
        condition: u32,
        mutex: u32,
    },
    Barrier {
        barrier: u32,
    },
    Suspend {
        condition: u32,
        mutex: u32,
    },
    Resume {
        condition: u32,
        mutex: u32,
    },
    SemaphorePost {
        semaphore: u32,
    },
    SemaphoreWait {
        semaphore: u32,
    },
    /// Requests to a block device, one after the other: the number in [`Model::block_devices`].
    Io {
        device: u32,
        op: BlockOp,
        bytes: u32,
        count: u32,
    },
    /// `iorun`: so many bytes to `io_device`.
    IoRun {
        bytes: u32,
    },
    Yield,
    Fork {
        task: u32,
    },
    /// Understood, but waits for a later version; never executed.
    Pending,
}
