// SPDX-License-Identifier: GPL-2.0-or-later
//! The event board: when does what happen next?
//!
//! Each source of events (a CPU's timer, an interrupt of a kind, the end of its work, ...) has a slot with at
//! most one pending event, so moving or cancelling an event is writing a number. The order is (time, slot),
//! never the history of insertion; slots are numbered so that simultaneous events have a documented order:
//! frequency domains first, then the interrupts of their drivers, then those of the workload's devices, then CPU by
//! CPU in the order of [`CpuSlot`], then the broadcast timer, then heat, then the limits of power, then processors that choose their frequency, then the end of a turn.
//!
//! [`FlatBoard`] is a min-tree over keys `time << SLOT_BITS | slot`. Four keys that lie together are a group, whose smallest is
//! one of the four keys of the group above, so the next event is the smallest of the topmost group, and a change walks up
//! until nothing changes.
//!
//! ```
//! use schedtwin_engine::board::{Board, FlatBoard};
//! let mut board = FlatBoard::new(3);
//! board.set(2, 500);
//! board.set(0, 700);
//! assert_eq!(board.next(), Some((500, 2)));
//! board.set(2, schedtwin_types::NEVER);
//! assert_eq!(board.next(), Some((700, 0)));
//! ```

use schedtwin_types::{ClockDomainId, CpuId, IpiKind, MAX_CPUS, NEVER, Ns};
use std::collections::{BTreeMap, BTreeSet};

/// Bits of a key that hold the slot: `MAX_CPUS` CPUs of 9 slots, and as many domains with two. The others are left for the time: 52 bits, 52 days,
/// where there are 256 CPUs.
const SLOT_BITS: u32 = (11 * MAX_CPUS).next_power_of_two().ilog2();

/// The latest time that the board can hold: a run ends before it.
pub const LATEST: Ns = (1 << (64 - SLOT_BITS)) - 2;

/// A CPU's slots, in the order in which simultaneous events happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSlot {
    /// The clock event.
    ClockEvent,
    /// The IPI of a kind, by the kind's number.
    Ipi(IpiKind),
    /// Interrupts are enabled again while some are pending.
    Unmask,
    /// The running task's work is done.
    Work,
    /// The idle task's next step: asking the governor, arriving in a state, or being out of it.
    Idle,
}

impl CpuSlot {
    /// Slots of a CPU.
    pub const COUNT: usize = 4 + IpiKind::COUNT;

    /// All, in order.
    const ALL: [CpuSlot; CpuSlot::COUNT] = [
        CpuSlot::ClockEvent,
        CpuSlot::Ipi(IpiKind::Reschedule),
        CpuSlot::Ipi(IpiKind::WakeList),
        CpuSlot::Ipi(IpiKind::NohzKick),
        CpuSlot::Ipi(IpiKind::IrqWork),
        CpuSlot::Ipi(IpiKind::Timer),
        CpuSlot::Unmask,
        CpuSlot::Work,
        CpuSlot::Idle,
    ];

    /// Its place among the slots of a CPU.
    #[inline(always)]
    const fn place(self) -> usize {
        match self {
            CpuSlot::ClockEvent => 0,
            CpuSlot::Ipi(kind) => 1 + kind as usize,
            CpuSlot::Unmask => 1 + IpiKind::COUNT,
            CpuSlot::Work => 2 + IpiKind::COUNT,
            CpuSlot::Idle => 3 + IpiKind::COUNT,
        }
    }
}

/// Numbers the slots of a machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slots {
    /// Frequency domains come first.
    pub nr_domains: usize,
    /// Then the drivers that interrupt when they are done: one for each domain, or none at all.
    pub nr_drivers: usize,
    /// Then the devices of the workload.
    pub nr_devices: usize,
    /// Then CPUs.
    pub nr_cpus: usize,
    /// Then the timer that stands in for those of sleeping CPUs, on machines that have one.
    pub broadcast: bool,
    /// Then the grid on which heat flows, on machines that have it.
    pub heat: bool,
    /// Then the grid on which firmware looks at what is drawn, on machines with limits of power.
    pub power_limit: bool,
    /// Then the grid on which processors choose their frequency, where they do.
    pub hwp: bool,
    /// Then the end of a CPU's turn, on machines whose CPUs take turns.
    pub turns: bool,
    /// Then changes of limits by user space, where a workload has them.
    pub user_limits: bool,
    /// The first slot of a CPU.
    first_cpu: usize,
}

impl Slots {
    /// Slots of a machine that has none behind those of its CPUs.
    pub fn new(nr_domains: usize, nr_drivers: usize, nr_devices: usize, nr_cpus: usize) -> Slots {
        let first_cpu = nr_domains + nr_drivers + nr_devices;
        Slots { nr_domains, nr_drivers, nr_devices, nr_cpus, first_cpu, ..Slots::default() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.user_limits_slot() + usize::from(self.user_limits)
    }

    /// The slot of the broadcast timer.
    pub fn broadcast_slot(&self) -> usize {
        self.first_cpu + self.nr_cpus * CpuSlot::COUNT
    }

    /// The slot of heat.
    pub fn heat_slot(&self) -> usize {
        self.broadcast_slot() + usize::from(self.broadcast)
    }

    /// The slot of the limits of power.
    pub fn power_limit_slot(&self) -> usize {
        self.heat_slot() + usize::from(self.heat)
    }

    /// The slot of processors that choose.
    pub fn hwp_slot(&self) -> usize {
        self.power_limit_slot() + usize::from(self.power_limit)
    }

    /// The slot of the end of a turn.
    pub fn turn_slot(&self) -> usize {
        self.hwp_slot() + usize::from(self.hwp)
    }

    /// The slot of limits that user space changes.
    pub fn user_limits_slot(&self) -> usize {
        self.turn_slot() + usize::from(self.turns)
    }

    /// A CPU's slot.
    #[inline(always)]
    pub fn cpu(&self, cpu: CpuId, slot: CpuSlot) -> usize {
        self.first_cpu + cpu.index() * CpuSlot::COUNT + slot.place()
    }

    /// The slot of a domain that settles.
    #[inline(always)]
    pub fn domain(&self, domain: ClockDomainId) -> usize {
        domain.index()
    }

    /// The slot of a domain's driver.
    #[inline(always)]
    pub fn driver(&self, domain: ClockDomainId) -> usize {
        self.nr_domains + domain.index()
    }

    /// The slot of a device of the workload.
    #[inline(always)]
    pub fn device(&self, device: usize) -> usize {
        self.nr_domains + self.nr_drivers + device
    }

    /// Returns the event that a slot number stands for.
    #[inline(always)]
    pub fn name(&self, slot: usize) -> Slot {
        match slot.checked_sub(self.first_cpu) {
            None if slot < self.nr_domains => Slot::Domain(ClockDomainId(slot as u16)),
            None if slot < self.nr_domains + self.nr_drivers => Slot::Driver,
            None => Slot::Device(slot - self.nr_domains - self.nr_drivers),
            Some(at) if at < self.nr_cpus * CpuSlot::COUNT => {
                let cpu = CpuId((at / CpuSlot::COUNT) as u16);
                Slot::Cpu(cpu, CpuSlot::ALL[at % CpuSlot::COUNT])
            }
            Some(_) if self.user_limits && slot == self.user_limits_slot() => Slot::UserLimits,
            Some(_) if self.turns && slot == self.turn_slot() => Slot::TurnEnd,
            Some(_) if self.hwp && slot == self.hwp_slot() => Slot::Hwp,
            Some(_) if self.power_limit && slot == self.power_limit_slot() => Slot::PowerLimit,
            Some(_) if self.heat && slot == self.heat_slot() => Slot::Heat,
            Some(_) => Slot::Broadcast,
        }
    }
}

/// The event that a slot stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A frequency domain settles.
    Domain(ClockDomainId),
    /// A frequency driver interrupts.
    Driver,
    /// A device of the workload interrupts.
    Device(usize),
    /// A CPU's event.
    Cpu(CpuId, CpuSlot),
    /// The broadcast timer interrupts.
    Broadcast,
    /// Heat has flowed for a step.
    Heat,
    /// Firmware looks at what is drawn.
    PowerLimit,
    /// Processors choose their frequency.
    Hwp,
    /// A CPU's turn is over.
    TurnEnd,
    /// User space changes limits of clocks.
    UserLimits,
}

/// A board: implemented fast, and plainly for the reference twin.
pub trait Board: Clone {
    /// A board with `count` empty slots.
    fn new(count: usize) -> Self;
    /// Sets the time of a slot's event; [`NEVER`]: none.
    fn set(&mut self, slot: usize, at: Ns);
    /// The next event; it stays pending until its slot is set again.
    fn next(&self) -> Option<(Ns, usize)>;
}

/// The fast board.
#[derive(Clone)]
pub struct FlatBoard {
    /// The topmost group is the first; below group `g` are `4 g + 1` to `4 g + 4`. Slots are in the last layer.
    groups: Vec<[u64; 4]>,
    first_leaf: usize,
    /// The smallest key.
    next: u64,
}

impl Board for FlatBoard {
    fn new(count: usize) -> FlatBoard {
        assert!(count <= 1 << SLOT_BITS, "more slots than a key can number");
        let (mut first_leaf, mut leaves) = (0, 1);
        while 4 * leaves < count {
            (first_leaf, leaves) = (first_leaf + leaves, 4 * leaves);
        }
        // Of the last layer only what holds slots.
        let groups = vec![[u64::MAX; 4]; first_leaf + count.div_ceil(4).max(1)];
        FlatBoard { groups, first_leaf, next: u64::MAX }
    }

    #[inline]
    fn set(&mut self, slot: usize, at: Ns) {
        let mut key = if at > LATEST { u64::MAX } else { at << SLOT_BITS | slot as u64 };
        let (mut at, mut place) = (self.first_leaf + slot / 4, slot % 4);
        loop {
            let group = &mut self.groups[at];
            if group[place] == key {
                return;
            }
            group[place] = key;
            key = group[0].min(group[1]).min(group[2].min(group[3]));
            if at == 0 {
                self.next = key;
                return;
            }
            (at, place) = ((at - 1) / 4, (at - 1) % 4);
        }
    }

    #[inline]
    fn next(&self) -> Option<(Ns, usize)> {
        let key = self.next;
        (key != u64::MAX).then_some((key >> SLOT_BITS, (key & ((1 << SLOT_BITS) - 1)) as usize))
    }
}

/// The reference twin's board: ordered collections, no tricks.
#[derive(Clone, Default)]
pub struct MapBoard {
    at: BTreeMap<usize, Ns>,
    order: BTreeSet<(Ns, usize)>,
}

impl Board for MapBoard {
    fn new(_count: usize) -> MapBoard {
        MapBoard::default()
    }

    fn set(&mut self, slot: usize, at: Ns) {
        if let Some(old) = self.at.remove(&slot) {
            self.order.remove(&(old, slot));
        }
        if at <= LATEST && at != NEVER {
            self.at.insert(slot, at);
            self.order.insert((at, slot));
        }
    }

    fn next(&self) -> Option<(Ns, usize)> {
        self.order.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_where_its_name_says() {
        let slots = Slots::new(3, 3, 0, 2);
        for (place, slot) in CpuSlot::ALL.into_iter().enumerate() {
            assert_eq!(slot.place(), place);
            let number = slots.cpu(CpuId(1), slot);
            assert_eq!(slots.name(number), Slot::Cpu(CpuId(1), slot));
        }
    }

    #[test]
    fn both_boards_agree() {
        for count in [1, 4, 5, 16, 17, 37, 64, 65, 73, 300] {
            let (mut flat, mut map) = (FlatBoard::new(count), MapBoard::new(count));
            let mut state = 1u64;
            for _ in 0..5_000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let slot = (state >> 33) as usize % count;
                let at = if state >> 60 == 0 { NEVER } else { (state >> 40) & 0xff };
                flat.set(slot, at);
                map.set(slot, at);
                assert_eq!(flat.next(), map.next());
            }
        }
    }
}
