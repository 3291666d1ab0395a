// SPDX-License-Identifier: GPL-2.0-or-later
//! The clock that PELT runs on: time scaled by what the CPU can do.
//!
//! A CPU at half capacity or half frequency needs twice the time for the same work. So that a task
//! has one utilisation and not one for each operating point, its PELT time passes only half as fast.
//! The CPU then has less idle time than a full-speed one would; it is given back when the CPU next
//! goes idle, by jumping to the unscaled clock:
//!
//! ```text
//!  wall time         |1  2  3  4  5  6  7  8|9 10 11 12|
//!  at full speed      [run 4   ][ idle     ][run...
//!  at half speed      [run 8               ][idle][run...
//!  clock_pelt         .5 1 1.5 2 2.5 3 3.5 4|9 10       the jump from 4 to 8 is the idle time
//!                                                       that the full-speed CPU would have had
//! ```
//!
//! A CPU that was *saturated* would not have been idle at full speed either: then the difference is
//! not given back but kept in `lost_idle_time`, and the PELT clock stays behind for ever.
//!
//! **Kernel:** Linux 6.12, `kernel/sched/pelt.h`: `update_rq_clock_pelt`,
//! `update_idle_rq_clock_pelt`, `rq_clock_pelt`; `scale_irq_capacity` of `kernel/sched/sched.h`.

use super::{LOAD_AVG_MAX, PELT_MIN_DIVIDER, SCHED_CAPACITY_SHIFT};

/// The PELT clock of one runqueue. All ns.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct RqClockPelt {
    /// Scaled time; equal to the task clock while idle.
    pub clock_pelt: u64,
    /// Time by which a saturated CPU's signals stay behind.
    pub lost_idle_time: u64,
    /// The runqueue clock at the last update while idle.
    pub clock_idle: u64,
    /// [`RqClockPelt::rq_clock_pelt`] at the last update while idle.
    pub clock_pelt_idle: u64,
}

impl RqClockPelt {
    /// Now, as the averages see it (`rq_clock_pelt`).
    #[inline(always)]
    pub fn rq_clock_pelt(&self) -> u64 {
        self.clock_pelt.wrapping_sub(self.lost_idle_time)
    }

    /// Follows the runqueue clock (`update_rq_clock_pelt`).
    ///
    /// `delta` ns of task time have passed; `clock_task` and `clock` are the readings *after* them;
    /// the scales are 0..=1024. First CPU, then frequency, truncating each time.
    #[inline]
    pub fn update_rq_clock_pelt(
        &mut self,
        delta: u64,
        clock_task: u64,
        clock: u64,
        cpu_scale: u64,
        freq_scale: u64,
        curr_is_idle: bool,
    ) {
        if curr_is_idle {
            self.sync_idle(clock_task, clock);
            return;
        }
        let delta = delta.wrapping_mul(cpu_scale) >> SCHED_CAPACITY_SHIFT;
        let delta = delta.wrapping_mul(freq_scale) >> SCHED_CAPACITY_SHIFT;
        self.clock_pelt = self.clock_pelt.wrapping_add(delta);
    }

    /// The idle task becomes current (`update_idle_rq_clock_pelt`): gives back the stolen idle
    /// time, or books it as lost if the CPU was saturated. The three sums are those of the root
    /// fair, RT and deadline signals as last updated.
    pub fn update_idle_rq_clock_pelt(
        &mut self,
        clock_task: u64,
        clock: u64,
        cfs_util_sum: u32,
        rt_util_sum: u32,
        dl_util_sum: u32,
    ) {
        // A little below the lowest divider: the position in the segment and rounding do not count.
        const SATURATED: u32 = (PELT_MIN_DIVIDER << SCHED_CAPACITY_SHIFT) - LOAD_AVG_MAX;
        let util_sum = cfs_util_sum.wrapping_add(rt_util_sum).wrapping_add(dl_util_sum);
        if util_sum >= SATURATED {
            let behind = clock_task.wrapping_sub(self.clock_pelt);
            self.lost_idle_time = self.lost_idle_time.wrapping_add(behind);
        }
        self.sync_idle(clock_task, clock);
    }

    #[inline]
    fn sync_idle(&mut self, clock_task: u64, clock: u64) {
        self.clock_pelt = clock_task;
        self.clock_idle = clock;
        self.clock_pelt_idle = self.rq_clock_pelt();
    }
}

/// Utilisation that was measured on the clock without interrupts, on the clock with them
/// (`scale_irq_capacity`). `max` is the CPU's capacity, never 0.
#[inline]
pub fn scale_irq_capacity(util: u64, irq: u64, max: u64) -> u64 {
    util.wrapping_mul(max.wrapping_sub(irq)) / max
}
