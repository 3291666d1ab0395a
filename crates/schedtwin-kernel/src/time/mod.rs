// SPDX-License-Identifier: GPL-2.0-or-later
//! `kernel/time/`: high-resolution timers, the timer wheel and the tick.

#[cfg(feature = "conformance")]
#[doc(hidden)]
pub mod conformance;
pub mod hrtimer;
pub mod tick_broadcast;
pub mod tick_sched;
pub mod timer;
pub mod timer_migration;

use crate::Context;
use hrtimer::{HrtimerBase, TimerKind};
use schedtwin_types::arena::PerCpu;
use schedtwin_types::{CpuId, CpuMask};

/// Timers of each CPU, its tick, and the device that stands in for timers that stop.
#[derive(Clone)]
pub struct Time {
    /// hrtimer queues and tick state, per CPU.
    timers: PerCpu<hrtimer::HrtimerBase>,
    /// The broadcast device has been armed or disarmed since hardware last looked.
    broadcast_changed: bool,
    /// The device that stands in for timers that stop in idle states, and who relies on it.
    broadcast: Option<tick_broadcast::TickBroadcast>,
    /// CPUs whose own clock event is off although they may have an event.
    local_timers_off: CpuMask,
    /// The timer wheel, if anything uses it.
    wheel: Option<Box<timer::TimerWheel>>,
}

impl Time {
    /// Empty timer queues, with space for so many timers each.
    pub(crate) fn new(nr_cpus: usize, capacity: usize) -> Time {
        Time {
            timers: (0..nr_cpus).map(|_| HrtimerBase::with_capacity(capacity)).collect(),
            broadcast: None,
            broadcast_changed: false,
            local_timers_off: CpuMask::EMPTY,
            wheel: None,
        }
    }

    /// The timers of a CPU (`hrtimer_cpu_base`).
    #[inline(always)]
    pub(crate) fn base(&self, cpu: CpuId) -> &HrtimerBase {
        &self.timers[cpu]
    }

    /// As [`Time::base`], to be changed without programming the clock event.
    #[inline(always)]
    pub(crate) fn base_mut(&mut self, cpu: CpuId) -> &mut HrtimerBase {
        &mut self.timers[cpu]
    }

    /// Cancels the timers of a scheduler of sched_ext, and its watchdog.
    pub(crate) fn cancel_scx_timers(&mut self, cx: &mut Context) {
        for cpu in self.timers.ids() {
            self.timers[cpu]
                .retain(|kind| !matches!(kind, TimerKind::ScxTimer(_) | TimerKind::ScxWatchdog));
            self.program_clock_event(cpu, cx);
        }
    }

    /// Whether the CPU's own clock event is off although it may have an event.
    pub(crate) fn local_timer_is_off(&self, cpu: CpuId) -> bool {
        self.local_timers_off.contains(cpu)
    }
}

crate::inside::opened!(Time { timers: PerCpu<HrtimerBase>, });
