// SPDX-License-Identifier: GPL-2.0-or-later
//! How long interrupts are under way: by chance, and by where they come from.

use super::Twin;
use crate::board::Board;
use schedtwin_types::draw::{Purpose, draw};
use schedtwin_types::{CpuId, Ns};

impl<B: Board> Twin<B> {
    /// How late the next timer interrupt of a CPU will be.
    pub(super) fn draw_timer_latency(&mut self, cpu: CpuId) {
        let range = &self.machine.interrupts;
        let c = &mut self.cpus[cpu];
        c.timer_ordinal += 1;
        let (min, max) = (range.timer_latency_min_ns, range.timer_latency_max_ns);
        c.timer_latency =
            draw(self.seed, cpu.0 as u64, Purpose::TimerLatency, c.timer_ordinal, min, max);
    }

    /// How long the next interrupt of another CPU will take at least.
    pub(super) fn draw_ipi_latency(&mut self, cpu: CpuId) {
        let range = &self.machine.interrupts;
        let c = &mut self.cpus[cpu];
        c.ipi_ordinal += 1;
        let (min, max) = (range.ipi_latency_min_ns, range.ipi_latency_max_ns);
        c.ipi_latency = draw(self.seed, cpu.0 as u64, Purpose::IpiLatency, c.ipi_ordinal, min, max);
    }

    /// What an interrupt takes longer because its sender is far.
    #[inline]
    pub(super) fn ipi_way(&self, from: CpuId, to: CpuId) -> Ns {
        let distances = self.machine.distances.as_ref();
        distances.map_or(0, |distances| distances.ipi(self.machine.distance(from, to)))
    }
}
