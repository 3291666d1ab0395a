// SPDX-License-Identifier: GPL-2.0-or-later
//! The polling state: a CPU that executes a loop, watches a flag and takes interrupts.
//!
//! ```text
//!  wires: poll until u ── the way there is paid ── spins ──┬── u: time is up
//!                                                          ├── another CPU writes the flag: u is now
//!                                                          └── an interrupt: within the stay, unless it reschedules
//! ```
//!
//! A write to the flag is seen after the state's exit latency.

use super::{Phase, Twin};
use crate::board::{Board, CpuSlot};
use crate::meter::Activity as Silicon;
use crate::twin::Observer;
use schedtwin_kernel::Activity;
use schedtwin_types::{CpuId, NEVER};

impl<B: Board> Twin<B> {
    /// A CPU that owes nothing spins in its polling state.
    pub(super) fn begin_poll(&mut self, cpu: CpuId, observer: &mut impl Observer) {
        self.cpus[cpu].phase = Phase::Poll { spins: true };
        self.silicon(cpu, Silicon::Polling, observer);
        self.poll_goes_on(cpu);
    }

    /// A CPU spins until its time is up or the flag that it watches is set, which it sees after the state's
    /// exit latency.
    pub(super) fn poll_goes_on(&mut self, cpu: CpuId) {
        let Activity::Poll { until } = self.kernel.hardware().wires(cpu).activity else {
            unreachable!("a CPU polls as its wires say")
        };
        let seen = until + self.machine.idle_states(cpu)[0].exit_latency_ns;
        let at = seen.max(self.cpus[cpu].masked_until).max(self.now);
        self.board.set(self.slots.cpu(cpu, CpuSlot::Idle), at);
    }

    /// The loop has ended, unless an interrupt comes first.
    pub(super) fn poll_ends(&mut self, cpu: CpuId, observer: &mut impl Observer) {
        if self.cpus[cpu].pending.is_empty() {
            self.kernel.poll_end(cpu, self.now);
            self.after_entry(Some(cpu), observer);
        } else {
            self.board.set(self.slots.cpu(cpu, CpuSlot::Unmask), NEVER);
            self.deliver(cpu, observer);
        }
    }
}
