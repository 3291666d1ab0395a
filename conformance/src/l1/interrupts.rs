// SPDX-License-Identifier: GPL-2.0-or-later
//! When interrupt time was charged: what the lines say, and in between the interrupts' stamps in proportion.
//!
//! **The problem.** `update_rq_clock()` charges a CPU with the interrupt time that has passed since its last update, and the
//! average of interrupts depends on each single charge. The sum (`prev_irq_time`) is printed in `rq` lines, and
//! follows where one update printed both its clock (`sugov`) and its task clock (`run`): their difference. Other
//! updates show their clock, or that there was one, but not the charge.
//!
//! **Idea.** A handler's time is charged when it is over. Between two clocks at which the sum is known, the sum
//! grows at the ends of the handlers in between, by as much as their stamps make likely: proportional to how
//! long each took, stamps being µs and some instructions around the handler counting as well.
//!
//! ```text
//!   known 100 µs       |irq 8 µs|     |softirq 2 µs|         known 112 µs
//!   ───────┼───────────────────┼───────────────────┼───────────────┼────►  rq->clock
//!         100                109.5               112              112
//! ```
//!
//! A recording is read ahead once for this.

use std::io;

use super::machine::Machine;
use crate::ftrace::{Event, Record, Trace};

/// Entry and exit of an interrupt beside its handler, in thousandths of a µs: weight of a handler of no length.
const AROUND_A_HANDLER: u64 = 1_000;
/// How many of a CPU's lines one update may print between its `run` and its `sugov` line.
const LINES_OF_AN_UPDATE: usize = 8;

/// A CPU's interrupt time.
#[derive(Clone, Debug, Default)]
struct Cpu {
    /// Clocks at which the sum is known, ascending: ns each.
    known: Vec<(u64, u64)>,
    /// Handlers: clock at the end (ns), and weight.
    handlers: Vec<(u64, u64)>,
    /// Σ weights up to and including each handler.
    weights: Vec<u64>,
    /// Begun handlers, µs: hard, soft.
    begun: [Option<u64>; 2],
    /// Least of a line's stamp minus the clock it prints, ns: the clocks' distance.
    offset: Option<i64>,
    curr: i32,
}

/// The interrupt time of all CPUs.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    cpus: Vec<Cpu>,
    /// Over all CPUs between known clocks: how much the sums have grown, and the handlers' weights.
    rate: (u64, u64),
}

impl Interrupts {
    /// Reads a recording.
    pub(super) fn read(trace: &mut Trace, machine: &Machine) -> io::Result<Interrupts> {
        let mut interrupts =
            Interrupts { cpus: vec![Cpu::default(); machine.nr_cpus()], rate: (1, 1) };
        while let Some(record) = trace.next_record()? {
            interrupts.record(&record, trace);
        }
        for cpu in &mut interrupts.cpus {
            cpu.finish();
            let (Some(first), Some(last)) = (cpu.known.first(), cpu.known.last()) else { continue };
            interrupts.rate.0 += last.1 - first.1;
            interrupts.rate.1 += cpu.weight_until(last.0) - cpu.weight_until(first.0);
        }
        Ok(interrupts)
    }

    fn record(&mut self, r: &Record, trace: &Trace) {
        match r.event {
            Event::Rq { cpu, clk, irq, .. } | Event::IrqTime { cpu, clk, irq, .. } => {
                self.known(cpu, clk, irq);
            }
            Event::Run { pid, ct, .. } => {
                let Some(cpu) = self.cpus.iter().position(|cpu| cpu.curr == pid) else { return };
                // The same update's call of the governor, if it made one.
                for next in trace.ahead(r.cpu).take(LINES_OF_AN_UPDATE) {
                    match next.event {
                        Event::PeltSe { .. } | Event::PeltCfs { .. } | Event::UeSe { .. } => {}
                        Event::PeltOther { .. } => {}
                        Event::Sugov { cpu: c, time, .. } if c == cpu => {
                            self.known(cpu, time, time.wrapping_sub(ct));
                            break;
                        }
                        _ => break,
                    }
                }
            }
            _ => {}
        }
        let Some(cpu) = self.cpus.get_mut(r.cpu) else { return };
        match r.event {
            Event::SchedSwitch { next_pid, .. } => cpu.curr = next_pid,
            Event::Rq { cpu: c, clk, .. } if c == r.cpu => {
                let offset = (r.time_us.saturating_mul(1000)).wrapping_sub(clk) as i64;
                cpu.offset = Some(cpu.offset.map_or(offset, |known| known.min(offset)));
            }
            Event::IrqEntry => cpu.begun[0] = Some(r.time_us),
            Event::SoftirqEntry { .. } => cpu.begun[1] = Some(r.time_us),
            Event::IrqExit | Event::SoftirqExit { .. } => {
                let soft = matches!(r.event, Event::SoftirqExit { .. }) as usize;
                if let Some(begun) = cpu.begun[soft].take() {
                    let length = r.time_us.saturating_sub(begun).min(1_000_000);
                    cpu.handlers.push((r.time_us * 1000, length * 1000 + AROUND_A_HANDLER));
                }
            }
            _ => {}
        }
    }

    fn known(&mut self, cpu: usize, clock: u64, total: u64) {
        if let Some(cpu) = self.cpus.get_mut(cpu) {
            cpu.known.push((clock, total));
        }
    }

    /// Returns the sum at an update of `cpu` with this clock; `None` if there is no such CPU.
    pub(super) fn total(&self, cpu: usize, clock: u64) -> Option<u64> {
        let cpu = self.cpus.get(cpu)?;
        let known = &cpu.known;
        let weight_until = |clock: u64| cpu.weight_until(clock);
        let after = known.partition_point(|(at, _)| *at < clock);
        let exact = known.get(after).filter(|(at, _)| *at == clock);
        if let Some((_, total)) = exact {
            return Some(*total);
        }
        let (from, before) = known[after.checked_sub(1)?];
        let part = weight_until(clock) - weight_until(from);
        // Where nothing is known afterwards, as much as handlers took elsewhere.
        let (grown, all) = match known.get(after) {
            Some((at, total)) => (total - before, weight_until(*at) - weight_until(from)),
            None => self.rate,
        };
        let share = grown as u128 * part as u128 / all.max(1) as u128;
        Some(before + share as u64)
    }
}

impl Cpu {
    /// Σ weights of the handlers that ended up to `clock`.
    fn weight_until(&self, clock: u64) -> u64 {
        let ended = self.handlers.partition_point(|(end, _)| *end <= clock);
        ended.checked_sub(1).map_or(0, |last| self.weights[last])
    }

    /// Sorts what was read, and drops what goes backwards.
    fn finish(&mut self) {
        self.known.sort_unstable();
        let mut last = (0, 0);
        self.known.retain(|&(clock, total)| {
            let forwards = clock > last.0 && total >= last.1;
            if forwards {
                last = (clock, total);
            }
            forwards
        });
        let offset = self.offset.unwrap_or(0);
        let mut sum = 0;
        for (end, weight) in &mut self.handlers {
            *end = end.wrapping_add_signed(offset.wrapping_neg());
            sum += *weight;
            self.weights.push(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l1::machine::tests::META;
    use std::io::Cursor;

    /// A handler of 8 µs and one of 2 µs between sums of 100 and 112 µs: 9 and 3 parts of 12.
    #[test]
    fn what_is_between_known_sums_is_shared_out() {
        let line = |us: u64, what: String| format!("a-1 [002] d..1. 0.{us:06}: {what}\n");
        let rq = |us: u64, irq: u64| {
            let clk = us * 1000;
            let text = format!(
                "p_switch: rq cpu=2 clk={clk} ct=0 cp=0 lost=0 irq={irq} rbw=0 umin=0 umax=0 nr=0"
            );
            line(us, text)
        };
        let text = [
            rq(1000, 100_000),
            line(1010, "irq_handler_entry: irq=1 name=a".into()),
            line(1018, "irq_handler_exit: irq=1 ret=handled".into()),
            line(1020, "softirq_entry: vec=1".into()),
            line(1022, "softirq_exit: vec=1".into()),
            rq(1030, 112_000),
            line(1040, "irq_handler_entry: irq=1 name=a".into()),
            line(1041, "irq_handler_exit: irq=1 ret=handled".into()),
        ]
        .concat();
        let machine = Machine::parse(META).unwrap();
        let mut trace = Trace::new(Box::new(Cursor::new(text)));
        let interrupts = Interrupts::read(&mut trace, &machine).unwrap();
        assert_eq!(trace.bad_lines().0, []);
        for (us, total) in [
            (999, None),
            (1000, Some(100_000)),
            (1015, Some(100_000)),
            (1019, Some(109_000)),
            (1025, Some(112_000)),
            (1030, Some(112_000)),
            // Nothing is known afterwards: as much as elsewhere, 12 µs for 12 parts.
            (1050, Some(114_000)),
        ] {
            assert_eq!(interrupts.total(2, us * 1000), total, "{us}");
        }
        assert_eq!(interrupts.total(9, 1_000_000), None);
    }
}
