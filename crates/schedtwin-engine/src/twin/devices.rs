// SPDX-License-Identifier: GPL-2.0-or-later
//! Sources of interrupts outside of all CPUs: devices of the workload, and the timer that stands in
//! for those of
//! sleeping CPUs.
//!
//! ```text
//!  program: a frame is due at t ── slot ── interrupt at the device's CPU ── handlers ── futexes that the kernel wakes
//!  kernel: broadcast armed for t ── slot ── latency of a timer ── interrupt at the CPU it goes to ── kernel
//! ```
//!
//! The broadcast device is armed again by the handler of its interrupt, or by a CPU that hands over an earlier event; while
//! its interrupt waits at a CPU, it does not fire again.
//!
//! Differences: its interrupt is as late as any timer's; that comes from a range of its own draws.

use super::Twin;
use crate::board::Board;
use crate::twin::Observer;
use schedtwin_types::draw::{Purpose, draw};
use schedtwin_types::{CpuId, IrqLine, NEVER, Ns};

/// The broadcast device, as hardware sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct BroadcastTimer {
    /// Its interrupt waits at a CPU.
    pub(super) pending: bool,
    /// How late its next interrupt will be, and its ordinal.
    latency: Ns,
    ordinal: u64,
}

impl<B: Board> Twin<B> {
    /// The handlers of the devices that wait at a CPU run in the entry that follows.
    #[inline(never)]
    pub(super) fn handle_devices(&mut self, cpu: CpuId) {
        let mut devices = std::mem::take(&mut self.cpus[cpu].pending_devices);
        while devices != 0 {
            let device = devices.trailing_zeros() as usize;
            devices &= devices - 1;
            self.programs.device_interrupt(device, self.now, &mut self.device_wakes);
        }
        for futex in self.device_wakes.drain(..) {
            self.kernel.peripheral(futex);
        }
    }

    /// Re-arms the slots of the workload's devices, if one has got something to do.
    #[inline(always)]
    pub(super) fn sync_devices(&mut self) {
        if self.slots.nr_devices != 0 && self.programs.take_devices_changed() {
            self.look_at_devices();
        }
    }

    fn look_at_devices(&mut self) {
        for device in 0..self.slots.nr_devices {
            let cpu = self.programs.device_cpu(device);
            if self.cpus[cpu].pending_devices >> device & 1 == 0 {
                let at = self.programs.device_at(device);
                let at = if at == NEVER { NEVER } else { at.max(self.now) };
                self.board.set(self.slots.device(device), at);
            }
        }
    }

    /// The broadcast device has been armed or disarmed.
    pub(super) fn sync_broadcast(&mut self) {
        let (at, _) = self.kernel.take_broadcast();
        if !self.broadcast.pending {
            let due = at.saturating_add(self.broadcast.latency).max(self.now);
            self.board.set(self.slots.broadcast_slot(), if at == NEVER { NEVER } else { due });
        }
    }

    /// Its time has come: it interrupts the CPU that its interrupt goes to.
    pub(super) fn broadcast_fires(&mut self, slot: usize, observer: &mut impl Observer) {
        self.board.set(slot, NEVER);
        self.broadcast.pending = true;
        let (_, cpu) = self.kernel.take_broadcast();
        self.interrupt_arrives(cpu, IrqLine::BroadcastDevice, slot, observer);
    }

    /// How late its next interrupt will be.
    pub(super) fn draw_broadcast_latency(&mut self) {
        let range = &self.machine.interrupts;
        let device = &mut self.broadcast;
        device.ordinal += 1;
        let (min, max) = (range.timer_latency_min_ns, range.timer_latency_max_ns);
        // Numbered after the CPUs, whose timers draw for the same purpose.
        let who = self.cpus.len() as u64;
        device.latency = draw(self.seed, who, Purpose::TimerLatency, device.ordinal, min, max);
    }
}
