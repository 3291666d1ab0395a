// SPDX-License-Identifier: GPL-2.0-or-later
//! Which interrupt a CPU handles: tells wakeups that a device makes from those of timers.
//!
//! A timer expires at a time that its CPU knows beforehand, and an idle governor counts on it; a device's interrupt comes
//! unforeseen. The handler's entry and exit say which it is: `irq_handler_*` with the handler's name, the vectors of x86
//! and the softirqs. Where none of these is recorded, nothing is known, and a wakeup counts as a timer's.
//!
//! ```text
//!   irq_handler_entry: name=ufshcd │ sched_waking: ...   by a device
//!   local_timer_entry              │ sched_waking: ...   by a timer
//!   softirq_entry: vec=3 NET_RX    │ sched_waking: ...   by a device, which raised it
//! ```

use schedtwin_trace::event::{NameId, Names, TraceEvent, TraceEventKind};
use schedtwin_workload::recorded::Waker;

/// Softirqs in which timers expire: `TIMER` and `HRTIMER` (include/linux/interrupt.h).
const TIMER_SOFTIRQS: [u8; 2] = [1, 8];

/// The kind of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Timer,
    Device,
}

/// What a CPU is in.
#[derive(Clone, Copy, Debug, Default)]
struct CpuNow {
    irq: Option<Source>,
    vector: Option<Source>,
    softirq: Option<Source>,
}

/// The interrupts that all CPUs handle.
#[derive(Debug, Default)]
pub(super) struct Handlers {
    cpus: Vec<CpuNow>,
    /// By the number of a handler's name.
    sources: Vec<Option<Source>>,
}

impl Handlers {
    /// Follows the entry or exit of a handler.
    pub fn event(&mut self, event: &TraceEvent, names: &Names) {
        use TraceEventKind as Kind;
        let cpu = event.cpu.index();
        let now = match event.kind {
            Kind::IrqEntry { handler, .. } => Some(self.source(handler, names)),
            Kind::VectorEntry { name } => Some(self.source(name, names)),
            Kind::SoftirqEntry { vector } if TIMER_SOFTIRQS.contains(&vector) => {
                Some(Source::Timer)
            }
            Kind::SoftirqEntry { .. } => Some(Source::Device),
            Kind::IrqExit { .. } | Kind::VectorExit { .. } | Kind::SoftirqExit { .. } => None,
            Kind::Lost { .. } | Kind::Begins => {
                *self.cpu(cpu) = CpuNow::default();
                return;
            }
            _ => return,
        };
        let of_cpu = self.cpu(cpu);
        match event.kind {
            Kind::IrqEntry { .. } | Kind::IrqExit { .. } => of_cpu.irq = now,
            Kind::VectorEntry { .. } | Kind::VectorExit { .. } => of_cpu.vector = now,
            _ => of_cpu.softirq = now,
        }
    }

    fn cpu(&mut self, cpu: usize) -> &mut CpuNow {
        if cpu >= self.cpus.len() {
            self.cpus.resize(cpu + 1, CpuNow::default());
        }
        &mut self.cpus[cpu]
    }

    fn source(&mut self, name: NameId, names: &Names) -> Source {
        if name.index() >= self.sources.len() {
            self.sources.resize(name.index() + 1, None);
        }
        *self.sources[name.index()].get_or_insert_with(|| match names.text(name) {
            // local_timer of x86, arch_timer and arch_mem_timer of Arm, hrtimers of the broadcast device.
            text if text.contains("timer") => Source::Timer,
            _ => Source::Device,
        })
    }

    /// The waker behind a wakeup in an interrupt on that CPU.
    pub fn waker(&self, cpu: usize) -> Waker {
        let now = self.cpus.get(cpu).copied().unwrap_or_default();
        match now.irq.or(now.vector).or(now.softirq) {
            Some(Source::Device) => Waker::Device { cpu: cpu as u16 },
            Some(Source::Timer) | None => Waker::Interrupt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_trace::sources;

    #[test]
    fn devices_are_told_from_timers() {
        let mut text = String::new();
        for (us, event) in [
            "irq_handler_entry: irq=5 name=ufshcd",
            "softirq_entry: vec=1 [action=TIMER]",
            "irq_handler_exit: irq=5 ret=handled",
            "softirq_exit: vec=1 [action=TIMER]",
            "irq_handler_entry: irq=3 name=arch_timer",
            "irq_handler_exit: irq=3 ret=handled",
            "local_timer_entry: vector=236",
            "local_timer_exit: vector=236",
            "softirq_entry: vec=3 [action=NET_RX]",
            "softirq_exit: vec=3 [action=NET_RX]",
        ]
        .into_iter()
        .enumerate()
        {
            text.push_str(&format!("x-1 [001] d.h1 5.{us:06}: {event}\n"));
        }
        let mut source = sources::read(text.as_bytes()).unwrap();
        let mut handlers = Handlers::default();
        let mut devices = String::new();
        while let Some(event) = source.next_event().unwrap() {
            handlers.event(&event, source.names());
            let by_device = handlers.waker(1) == Waker::Device { cpu: 1 };
            devices.push(if by_device { 'd' } else { '-' });
        }
        assert_eq!(devices, "dd------d-");
        assert_eq!(handlers.waker(7), Waker::Interrupt);
    }
}
