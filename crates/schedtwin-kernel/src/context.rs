// SPDX-License-Identifier: GPL-2.0-or-later
//! All that every subsystem may use during an entry: the time, the executing CPU, the costs of its paths, what was booted,
//! and where facts go.
//!
//! An entry sets it at its start. A function that takes no `&mut Context` charges no time, states no fact and
//! sends no interrupt.

use crate::coherence::Coherence;
use crate::config::Config;
use crate::device_tree::DeviceTree;
use crate::{Activity, BootConfig, Wires};
use schedtwin_types::arena::PerCpu;
use schedtwin_types::{
    CpuId, CpuMask, DecisionRecord, Fact, FutexId, IpiKind, IrqLines, NEVER, Ns,
};

/// The current entry, and what the kernel was booted with.
#[derive(Clone)]
// Fields that each entry touches come first: their addresses are short, and they share few cache lines.
#[repr(C)]
pub struct Context {
    /// Time of the current entry.
    pub(crate) now: Ns,
    /// Kernel time that the current entry has cost so far.
    pub(crate) debt: Ns,
    /// The CPU that executes the current entry (`smp_processor_id()`).
    pub(crate) this_cpu: CpuId,
    /// The executing CPU is in interrupt context: its costs are interrupt time.
    pub(crate) in_irq: bool,
    /// Whether decisions are recorded.
    pub(crate) want_decisions: bool,
    /// Whether `CpuSignals` and `TaskSignals` facts are wanted.
    pub(crate) want_signals: bool,
    /// The hardware under the kernel.
    pub(crate) platform: Platform,
    /// Facts that the twin has not read yet.
    pub(crate) facts: Vec<Fact>,
    /// Time between two ticks (`TICK_NSEC`).
    pub(crate) tick_nsec: Ns,
    /// `jiffies` when the clock begins.
    pub(crate) initial_jiffies: u64,
    /// Interrupt time of this entry that `account_irq_time` has not seen.
    pub(crate) irq_time_unaccounted: Ns,
    /// Decisions that the recorder has not read yet.
    pub(crate) decisions: Vec<DecisionRecord>,
    /// Which CPU has which lines; `None`: lines of other CPUs cost nothing.
    pub(crate) coherence: Option<Box<Coherence>>,
    /// The variation points and tunables, as of boot.
    pub(crate) config: BootConfig,
}

/// The machine as the kernel sees it.
#[derive(Clone)]
#[repr(C)]
pub struct Platform {
    /// The signals between each CPU and the kernel.
    pub(crate) wires: PerCpu<Wires>,
    /// Nanoseconds that a unit of work takes on each CPU at its clock, `<< 10`.
    pub(crate) ns_per_work_shift_10: PerCpu<u64>,
    /// CPUs whose wires may have changed since hardware last looked.
    pub(crate) dirty: CpuMask,
    /// The description of the machine by firmware.
    pub(crate) device_tree: DeviceTree,
    /// Speed of each CPU as a thread of its core, thousandths of what it does alone.
    pub(crate) thread_speed_permille: Vec<u64>,
    /// Futexes that the handlers of the workload's devices wake, in the entry that follows.
    pub(crate) peripheral_wakes: Vec<FutexId>,
}

impl Context {
    /// The variation points and tunables, as of boot.
    pub(crate) fn config(&self) -> &BootConfig {
        &self.config
    }

    /// The machine as firmware describes it.
    pub(crate) fn device_tree(&self) -> &DeviceTree {
        &self.platform.device_tree
    }

    /// The context before the first entry.
    pub(crate) fn new(device_tree: DeviceTree, config: Config) -> Context {
        let nr_cpus = device_tree.cpus.len();
        let wires = || Wires {
            clock_event_at: NEVER,
            ipi_at: [NEVER; IpiKind::COUNT],
            ipi_from: [CpuId(0); IpiKind::COUNT],
            written: IrqLines::default(),
            activity: Activity::IdleLoop,
            debt: 0,
        };
        Context {
            now: 0,
            this_cpu: CpuId(0),
            debt: 0,
            in_irq: false,
            irq_time_unaccounted: 0,
            tick_nsec: config.tick_nsec(),
            initial_jiffies: 0,
            facts: Vec::with_capacity(256),
            want_signals: false,
            decisions: Vec::new(),
            want_decisions: false,
            coherence: device_tree.coherence.as_ref().map(|told| Box::new(Coherence::new(told))),
            config: BootConfig::new(config),
            platform: Platform {
                wires: (0..nr_cpus).map(|_| wires()).collect(),
                dirty: device_tree.all_cpus(),
                ns_per_work_shift_10: vec![1 << 10; nr_cpus].into_iter().collect(),
                thread_speed_permille: vec![1000; nr_cpus],
                peripheral_wakes: Vec::with_capacity(64),
                device_tree,
            },
        }
    }
}

crate::inside::opened!(Context { now: Ns, this_cpu: CpuId });
