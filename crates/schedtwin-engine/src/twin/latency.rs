// SPDX-License-Identifier: GPL-2.0-or-later
//! How long interrupts are under way, by chance and by where they come from, and when those of other CPUs arrive.

use super::Twin;
use crate::board::{Board, CpuSlot};
use schedtwin_types::draw::{Purpose, draw};
use schedtwin_types::{CpuId, IpiKind, IrqLine, NEVER, Ns};

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

    /// Re-arms a CPU's slots of IPIs.
    pub(super) fn sync_ipis(&mut self, cpu: CpuId) {
        let armed_before = std::mem::take(&mut self.cpus[cpu].ipis_armed);
        for kind in IpiKind::ALL {
            let wires = self.kernel.hardware().wires(cpu);
            let (c, bit) = (&mut self.cpus[cpu], 1 << kind as u8);
            let sent = wires.ipi_at[kind as usize];
            if sent != NEVER {
                c.ipis_armed |= bit;
            } else if armed_before & bit == 0 && !self.eager {
                continue;
            }
            if !c.pending.contains(IrqLine::ipi(kind)) {
                let written = wires.written.contains(IrqLine::ipi(kind));
                let latency = if written { 0 } else { c.ipi_latency };
                let at = match sent {
                    NEVER => NEVER,
                    sent => {
                        let way = self.ipi_way(wires.ipi_from[kind as usize], cpu);
                        (sent + latency + way).max(self.now)
                    }
                };
                self.board.set(self.slots.cpu(cpu, CpuSlot::Ipi(kind)), at);
            }
        }
    }

    /// Returns how much longer an interrupt takes because its sender is far.
    #[inline]
    fn ipi_way(&self, from: CpuId, to: CpuId) -> Ns {
        let distances = self.machine.distances.as_ref();
        distances.map_or(0, |distances| distances.ipi(self.machine.distance(from, to)))
    }
}
