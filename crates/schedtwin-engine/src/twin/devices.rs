// SPDX-License-Identifier: GPL-2.0-or-later
//! Sources of interrupts outside of all CPUs: devices of the workload and of the system beside it, and the timer that stands in
//! for those of sleeping CPUs. Block devices are in `block.rs`.
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
use crate::system_file::Device;
use crate::twin::Observer;
use schedtwin_kernel::hardware::Limits;
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

/// The devices of the system beside the workload.
#[derive(Clone, Debug, Default)]
pub(super) struct SystemDevices {
    pub(super) devices: Vec<Device>,
    /// Of each: how often it has been armed.
    pub(super) ordinals: Vec<u64>,
}

impl SystemDevices {
    pub(super) fn new(devices: Vec<Device>) -> SystemDevices {
        let ordinals = vec![0; devices.len()];
        SystemDevices { devices, ordinals }
    }
}

impl<B: Board> Twin<B> {
    /// The handlers of the devices that wait at a CPU run in the entry that follows.
    #[inline(never)]
    pub(super) fn handle_devices(&mut self, cpu: CpuId) {
        let mut devices = std::mem::take(&mut self.cpus[cpu].pending_devices);
        while devices != 0 {
            let device = devices.trailing_zeros() as usize;
            devices &= devices - 1;
            if let Some(at) = self.block_device(device) {
                let Twin { block, kernel, .. } = self;
                block.interrupt(at, cpu, |request| kernel.block_request_done(request));
                continue;
            }
            if let Some(at) = device.checked_sub(self.programs.nr_devices()) {
                let source = self.system.devices[at].source;
                self.kernel.source_interrupt(source, cpu);
                self.arm_system_device(at);
                continue;
            }
            self.programs.device_interrupt(device, self.now, &mut self.device_wakes);
        }
        for futex in self.device_wakes.drain(..) {
            self.kernel.peripheral(futex);
        }
    }

    /// The number of a device among the machine's block devices, which follow all others.
    fn block_device(&self, device: usize) -> Option<usize> {
        device.checked_sub(self.programs.nr_devices() + self.system.devices.len())
    }

    /// The time of a device has come: it interrupts its CPU.
    pub(super) fn device_fires(
        &mut self,
        device: usize,
        slot: usize,
        observer: &mut impl Observer,
    ) {
        if let Some(at) = self.block_device(device) {
            return self.block_device_fires(device, at, observer);
        }
        let cpu = self.device_cpu(device);
        self.board.set(slot, NEVER);
        self.cpus[cpu].pending_devices |= 1 << device;
        self.interrupt_arrives(cpu, IrqLine::Peripheral, slot, observer);
    }

    /// The CPU that a device interrupts: one of the workload's, then those of the system.
    fn device_cpu(&self, device: usize) -> CpuId {
        match device.checked_sub(self.programs.nr_devices()) {
            Some(at) => self.system.devices[at].cpu,
            None => self.programs.device_cpu(device),
        }
    }

    /// When a device of the system interrupts next.
    pub(super) fn arm_system_device(&mut self, at: usize) {
        let ordinal = &mut self.system.ordinals[at];
        *ordinal += 1;
        let due = self.now.saturating_add(self.system.devices[at].gap(*ordinal));
        self.board.set(self.slots.device(self.programs.nr_devices() + at), due);
    }

    /// Re-arms the slots of the workload's devices, if one has got something to do.
    #[inline(always)]
    pub(super) fn sync_devices(&mut self) {
        let any = self.slots.nr_devices != 0 || self.slots.user_limits;
        if any && self.programs.take_devices_changed() {
            self.look_at_devices();
        }
    }

    fn look_at_devices(&mut self) {
        for device in 0..self.programs.nr_devices() {
            let cpu = self.programs.device_cpu(device);
            if self.cpus[cpu].pending_devices >> device & 1 == 0 {
                let at = self.programs.device_at(device).max(self.now);
                self.board.set(self.slots.device(device), at);
            }
        }
        self.sync_user_limits();
    }

    /// When user space changes limits of clocks next.
    fn sync_user_limits(&mut self) {
        if self.slots.user_limits {
            let at = self.programs.limits_at().max(self.now);
            self.board.set(self.slots.user_limits_slot(), at);
        }
    }

    /// User space writes to `scaling_min_freq` and `scaling_max_freq`, as it was recorded.
    #[inline(never)]
    pub(super) fn user_limits_change(&mut self, observer: &mut impl Observer) {
        while self.programs.limits_at() <= self.now
            && let Some(change) = self.programs.take_limits()
        {
            let Some(cpu) = self.machine.cpus.get(usize::from(change.cpu)) else { continue };
            let highest = self.machine.domains[cpu.domain].max_khz();
            let khz = |khz: u32| match change.of_khz {
                None => khz,
                Some(of) => (u64::from(khz) * u64::from(highest) / u64::from(of.max(1))) as u32,
            };
            let limits = Limits { min: khz(change.min_khz), max: khz(change.max_khz) };
            self.kernel.freq_qos_update_request(cpu.domain.policy(), limits, self.now);
        }
        self.sync_user_limits();
        self.limits_are_seen();
        self.kernel.facts_wait(|cpu| self.cpus[cpu].masked_until);
        self.after_entry(None, observer);
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
