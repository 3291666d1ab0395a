// SPDX-License-Identifier: GPL-2.0-or-later
//! `common_flags`: the state of the CPU that recorded an event, as records and Perfetto's columns have it.
//!
//! Kernel: include/linux/trace_events.h, `enum trace_flag_type`.

use crate::event::{EventContext, Interrupt};

/// Interrupts were disabled.
pub const IRQS_OFF: u8 = 0x01;
/// The running task was to be switched away from.
pub const NEED_RESCHED: u8 = 0x04;
/// A hardware interrupt was being handled.
pub const HARDIRQ: u8 = 0x08;
/// A softirq was being handled.
pub const SOFTIRQ: u8 = 0x10;
/// An NMI was being handled.
pub const NMI: u8 = 0x40;

/// Returns the context that flags tell, the rest of it unknown.
pub fn context(flags: Option<u8>) -> EventContext {
    EventContext {
        interrupt: match flags {
            None => Interrupt::Unknown,
            Some(flags) if flags & (HARDIRQ | NMI) != 0 => Interrupt::Hardirq,
            Some(flags) if flags & SOFTIRQ != 0 => Interrupt::Softirq,
            Some(_) => Interrupt::Task,
        },
        need_resched: flags.is_some_and(|flags| flags & NEED_RESCHED != 0),
        irqs_off: flags.map(|flags| flags & IRQS_OFF != 0),
        ..EventContext::default()
    }
}

/// Returns the flags of a context.
pub fn of(context: &EventContext) -> u8 {
    let level = match context.interrupt {
        Interrupt::Task | Interrupt::Unknown => 0,
        Interrupt::Softirq => SOFTIRQ,
        Interrupt::Hardirq => HARDIRQ,
    };
    let irqs = if context.irqs_off == Some(true) { IRQS_OFF } else { 0 };
    level | irqs | if context.need_resched { NEED_RESCHED } else { 0 }
}
