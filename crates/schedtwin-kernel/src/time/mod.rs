// SPDX-License-Identifier: GPL-2.0-or-later
//! `kernel/time/`: high-resolution timers and the tick.

pub mod hrtimer;
pub mod tick_broadcast;
pub mod tick_sched;

use schedtwin_types::CpuMask;
use schedtwin_types::arena::PerCpu;

/// Timers of each CPU, its tick, and the device that stands in for timers that stop.
#[derive(Clone)]
pub struct Time {
    /// hrtimer queues and tick state, per CPU.
    pub(crate) timers: PerCpu<hrtimer::HrtimerBase>,
    /// The broadcast device has been armed or disarmed since hardware last looked.
    pub(crate) broadcast_changed: bool,
    /// The device that stands in for timers that stop in idle states, and who relies on it.
    pub(crate) broadcast: Option<tick_broadcast::TickBroadcast>,
    /// CPUs whose own clock event is off although they may have an event.
    pub(crate) local_timers_off: CpuMask,
}
