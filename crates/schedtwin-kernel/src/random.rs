// SPDX-License-Identifier: GPL-2.0-or-later
//! The random number generator: the pools of each CPU, which interrupts fill, and the work that makes a new seed.
//!
//! **Idea.** The time of an interrupt is a little random. A CPU collects such times in a pool of its own, and hands it on
//! when it has 1024 of them or the last time was more than a second ago.
//!
//! The timer with which it does so wakes a CPU that would sleep on.
//!
//! **Algorithm.** An interrupt counts. If that is due, it arms a timer of the wheel for the current jiffy, pinned to this CPU. So the
//! timer expires with the next tick, and an idle CPU takes that tick where it would have stopped it. Whatever
//! *deferrable* timers have waited for a tick expire with it (`work/vmstat.rs`).
//!
//! ```text
//!                     1 s or more                 next jiffy
//!  interrupts  |        |            |               |
//!              count    count        arms the timer  mix: the pool is handed on; deferrable timers
//! ```
//!
//! Which interrupts count depends on the release: those of devices, and in 7.3 also those that each CPU has for itself,
//! timer and IPIs, where they are handled by `handle_percpu_devid_irq()`: not on x86, whose local APIC has entries
//! of its own.
//!
//! **Reseeding.** A work, `crng_reseed`, makes a new seed once a minute, and more often in the first two minutes after boot: every
//! second, then after half the uptime. Its timer belongs to no CPU, its queue neither.
//!
//! Kernel: 6.12.95 drivers/char/random.c `add_interrupt_randomness`, `mix_interrupt_randomness`, `crng_reseed`,
//! `crng_reseed_interval`, kernel/irq/handle.c `handle_irq_event_percpu`; 7.3 kernel/irq/chip.c `handle_percpu_devid_irq`.
//! Differences: mixing costs what a timer's expiry costs, a new seed what two system calls cost [E]. The first work is armed at
//! boot. Off unless `interrupt_randomness` says so.

use crate::Kernel;
use crate::config::InterruptRandomness;
use crate::device_tree::Architecture;
use crate::time::timer::wheel::TimerId;
use crate::time::timer::{TimerFlags, TimerFunction};
use crate::work::workqueue::{Queue, WorkStruct};
use schedtwin_types::{CpuId, IrqLine, IrqLines};

/// Interrupts that make a pool due whenever the last time was.
const MOST: u32 = 1024;
/// `CRNG_RESEED_INTERVAL`.
const CRNG_RESEED_INTERVAL_S: u64 = 60;
/// The queue of the work.
pub(crate) const QUEUE: Queue = Queue::Unbound { high: false };
/// Interrupts of devices; the others are a CPU's own.
const DEVICES: [IrqLine; 3] =
    [IrqLine::CpufreqDriver, IrqLine::Peripheral, IrqLine::BroadcastDevice];

/// `struct fast_pool`.
#[derive(Clone, Copy, Debug)]
struct FastPool {
    count: u32,
    /// `MIX_INFLIGHT`: the timer is armed.
    in_flight: bool,
    /// Jiffy of the last mixing; `None`: none yet.
    last: Option<u64>,
    mix: TimerId,
}

/// The random number generator.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    /// `irq_randomness`: the pools of all CPUs.
    pools: Vec<FastPool>,
    /// The timer of `crng_reseed`.
    next_reseed: TimerId,
}

/// `crng_reseed_interval()`, jiffies.
fn crng_reseed_interval(uptime_s: u64, hz: u64) -> u64 {
    match uptime_s < 2 * CRNG_RESEED_INTERVAL_S {
        true => (uptime_s / 2).max(1) * hz,
        false => CRNG_RESEED_INTERVAL_S * hz,
    }
}

impl FastPool {
    /// So many interrupts of one moment: whether the timer has to be armed.
    fn adds(&mut self, interrupts: u32, jiffies: u64, hz: u64) -> bool {
        if self.in_flight {
            return false;
        }
        self.count += interrupts;
        let recent = self.last.is_some_and(|last| jiffies <= last + hz);
        self.in_flight = interrupts > 0 && (self.count >= MOST || !recent);
        self.in_flight
    }
}

impl Kernel {
    /// Makes the pools, and arms the timer of the first seed.
    pub(crate) fn random_init(&mut self) {
        if self.cx.config.interrupt_randomness == InterruptRandomness::Off {
            return;
        }
        self.init_timers();
        let flags = TimerFlags { deferrable: false, pinned: true };
        let mut pool = |c| {
            let function = TimerFunction::MixInterruptRandomness(CpuId(c as u16));
            let mix = self.time.timer_setup(function, flags);
            FastPool { count: 0, in_flight: false, last: None, mix }
        };
        let pools = (0..self.sched.nr_cpus()).map(&mut pool).collect();
        self.workqueue_init(QUEUE, 1);
        let function = TimerFunction::DelayedWork(WorkStruct::CrngReseed);
        let next_reseed = self.time.timer_setup(function, TimerFlags::default());
        self.random = Some(Random { pools, next_reseed });
        self.add_timer_on(next_reseed, crng_reseed_interval(0, self.cx.hz()), CpuId(0));
    }

    /// `add_interrupt_randomness()`, for interrupts that the executing CPU has handled.
    #[inline]
    pub(crate) fn add_interrupt_randomness(&mut self, cpu: CpuId, lines: IrqLines) {
        if self.random.is_some() {
            self.add_to_pool(cpu, lines);
        }
    }

    fn fast_pool(&mut self, cpu: CpuId) -> &mut FastPool {
        &mut self.random.as_mut().expect("its timers are made with it").pools[cpu.index()]
    }

    fn add_to_pool(&mut self, cpu: CpuId, lines: IrqLines) {
        let own_count = self.cx.config.interrupt_randomness == InterruptRandomness::All
            && self.cx.device_tree().topology.architecture != Architecture::X86;
        let counts =
            |line: &&IrqLine| lines.contains(**line) && (own_count || DEVICES.contains(line));
        let interrupts = IrqLine::ALL.iter().filter(counts).count() as u32;
        let (jiffies, hz) = (self.cx.jiffies(), self.cx.hz());
        let pool = self.fast_pool(cpu);
        if pool.adds(interrupts, jiffies, hz) {
            let mix = pool.mix;
            self.add_timer_on(mix, jiffies, cpu);
        }
    }

    /// `mix_interrupt_randomness()`.
    pub(crate) fn mix_interrupt_randomness(&mut self, cpu: CpuId) {
        let jiffies = self.cx.jiffies();
        let pool = self.fast_pool(cpu);
        (pool.count, pool.in_flight, pool.last) = (0, false, Some(jiffies));
    }
}

impl Kernel {
    /// `crng_reseed()`: arms its timer, then makes a new seed.
    pub(crate) fn crng_reseed(&mut self) {
        let timer = self.random.as_ref().expect("its work is made with it").next_reseed;
        let interval = crng_reseed_interval(self.cx.now / 1_000_000_000, self.cx.hz());
        self.mod_timer(timer, self.cx.jiffies() + interval);
        self.charge_work(2 * self.cx.platform.device_tree.path_costs.syscall);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_made_more_often_after_boot() {
        let seconds = |uptime| crng_reseed_interval(uptime, 250) / 250;
        assert_eq!([0, 1, 3, 4, 119, 120, 900].map(seconds), [1, 1, 1, 2, 59, 60, 60]);
    }

    #[test]
    fn a_pool_is_due_after_a_second_or_with_1024_interrupts() {
        let mut pool = FastPool { count: 0, in_flight: false, last: None, mix: TimerId(0) };
        assert!(!pool.adds(0, 5, 250), "no interrupt, no randomness");
        assert!(pool.adds(1, 5, 250), "the first one of all");
        assert!(!pool.adds(1, 900, 250), "its timer is on the way");
        (pool.count, pool.in_flight, pool.last) = (0, false, Some(1000));
        assert!(!pool.adds(1, 1250, 250), "a second and not more");
        assert!(pool.adds(1, 1251, 250));
        (pool.count, pool.in_flight, pool.last) = (0, false, Some(2000));
        assert!(!(0..MOST - 1).any(|_| pool.adds(1, 2001, 250)));
        assert!(pool.adds(1, 2001, 250));
    }
}
