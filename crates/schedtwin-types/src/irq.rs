// SPDX-License-Identifier: GPL-2.0-or-later
//! Interrupt lines: by which of them a CPU is interrupted.

use crate::IpiKind;
use std::fmt;

/// A line that interrupts a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IrqLine {
    /// The CPU's own clock event device.
    ClockEvent = 0,
    /// `IPI_RESCHEDULE`.
    Reschedule = 1,
    /// `IPI_CALL_FUNC`: the wake list (`TTWU_QUEUE`).
    WakeList = 2,
    /// `IPI_CALL_FUNC`: `nohz_csd_func`.
    NohzKick = 3,
    /// `IPI_IRQ_WORK`.
    IrqWork = 4,
    /// A frequency driver's device has done what it was asked for.
    CpufreqDriver = 5,
    /// Devices that the workload uses: display, GPU, storage.
    Peripheral = 6,
    /// `IPI_TIMER`: tick broadcast, from the CPU that took the device's interrupt.
    TimerBroadcast = 7,
    /// The tick broadcast device.
    BroadcastDevice = 8,
}

impl IrqLine {
    /// How many lines there are.
    pub const COUNT: usize = 9;

    /// All lines, by number.
    pub const ALL: [IrqLine; IrqLine::COUNT] = [
        IrqLine::ClockEvent,
        IrqLine::Reschedule,
        IrqLine::WakeList,
        IrqLine::NohzKick,
        IrqLine::IrqWork,
        IrqLine::CpufreqDriver,
        IrqLine::Peripheral,
        IrqLine::TimerBroadcast,
        IrqLine::BroadcastDevice,
    ];

    /// The line of an inter-processor interrupt.
    #[inline]
    pub const fn ipi(kind: IpiKind) -> IrqLine {
        match kind {
            IpiKind::Reschedule => IrqLine::Reschedule,
            IpiKind::WakeList => IrqLine::WakeList,
            IpiKind::NohzKick => IrqLine::NohzKick,
            IpiKind::IrqWork => IrqLine::IrqWork,
            IpiKind::Timer => IrqLine::TimerBroadcast,
        }
    }

    /// Its name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            IrqLine::ClockEvent => "timer",
            IrqLine::Reschedule => "reschedule",
            IrqLine::WakeList => "wake_list",
            IrqLine::NohzKick => "nohz_kick",
            IrqLine::IrqWork => "irq_work",
            IrqLine::CpufreqDriver => "cpufreq",
            IrqLine::Peripheral => "device",
            IrqLine::TimerBroadcast => "timer_broadcast",
            IrqLine::BroadcastDevice => "broadcast_device",
        }
    }
}

/// A set of lines, whose interrupts are delivered together. As a number it has a bit for each line, by the line's number;
/// records and traces hold that.
///
/// ```
/// use schedtwin_types::{IpiKind, IrqLine, IrqLines};
/// let mut lines = IrqLines::of(IrqLine::ClockEvent);
/// lines.insert(IrqLine::ipi(IpiKind::Timer));
/// assert!(lines.contains(IrqLine::TimerBroadcast) && lines.intersects(IrqLines::IPIS));
/// assert_eq!(u16::from(lines), 0b1000_0001);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct IrqLines(u16);

impl IrqLines {
    /// No line.
    pub const NONE: IrqLines = IrqLines(0);

    /// All inter-processor interrupts.
    pub const IPIS: IrqLines = IrqLines(
        IrqLines::of(IrqLine::Reschedule).0
            | IrqLines::of(IrqLine::WakeList).0
            | IrqLines::of(IrqLine::NohzKick).0
            | IrqLines::of(IrqLine::IrqWork).0
            | IrqLines::of(IrqLine::TimerBroadcast).0,
    );

    /// One line.
    #[inline(always)]
    pub const fn of(line: IrqLine) -> IrqLines {
        IrqLines(1 << line as u8)
    }

    /// Adds a line.
    #[inline(always)]
    pub fn insert(&mut self, line: IrqLine) {
        self.0 |= IrqLines::of(line).0;
    }

    /// Whether a line is in the set.
    #[inline(always)]
    pub const fn contains(self, line: IrqLine) -> bool {
        self.intersects(IrqLines::of(line))
    }

    /// Whether the sets have a line in common.
    #[inline(always)]
    pub const fn intersects(self, other: IrqLines) -> bool {
        self.0 & other.0 != 0
    }

    /// The lines that are not in `other`.
    #[inline(always)]
    pub const fn without(self, other: IrqLines) -> IrqLines {
        IrqLines(self.0 & !other.0)
    }

    /// Whether there is no line.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The lines, by number.
    pub fn iter(self) -> impl Iterator<Item = IrqLine> {
        IrqLine::ALL.into_iter().filter(move |line| self.contains(*line))
    }
}

/// The names of the known lines: `timer+reschedule`, `none` without one.
impl fmt::Display for IrqLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for line in self.iter() {
            write!(f, "{between}{}", line.name())?;
            between = "+";
        }
        if between.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

impl From<IrqLine> for IrqLines {
    fn from(line: IrqLine) -> IrqLines {
        IrqLines::of(line)
    }
}

impl From<IrqLines> for u16 {
    #[inline(always)]
    fn from(lines: IrqLines) -> u16 {
        lines.0
    }
}

/// From a record. Bits of lines that only another version knows are kept, and [`IrqLines::iter`] passes over them.
impl From<u16> for IrqLines {
    fn from(bits: u16) -> IrqLines {
        IrqLines(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_as_they_are_listed() {
        for (number, line) in IrqLine::ALL.into_iter().enumerate() {
            assert_eq!(line as usize, number);
            assert_eq!(u16::from(IrqLines::of(line)), 1 << number);
        }
        let ipis = IpiKind::ALL.map(IrqLine::ipi);
        assert!(IrqLines::IPIS.iter().all(|line| ipis.contains(&line)));
        assert_eq!(IrqLines::IPIS.iter().count(), ipis.len());
        assert_eq!(IrqLines::from(0b10_0000_0001).iter().count(), 1, "the other is not known");
    }
}
