// SPDX-License-Identifier: GPL-2.0-or-later
//! menu as of Linux 7.3: as [`v6_12`], with two changes.
//!
//! - **Typical interval.** An outlier may be short as well as long. If the last eight sleeps are not much alike, the shortest are left out if the
//!   shortest one is farther from the mean than the longest one, else the longest are.
//! - **A stopped tick.** A prediction below a tick is replaced by the time to the next timer only if that timer is more than two ticks away. A nearer one
//!   wakes the CPU soon enough.
//!
//! ```text
//!  sleeps, µs     5 1000 1000 1000 1000 1000 1000 1000
//!  6.12           leaves out 1000, then all that is left is 5        ─► 5 µs
//!  7.3            leaves out 5                                       ─► 1000 µs
//! ```
//!
//! **Example.**
//!
//! ```
//! use schedtwin_kernel::cpuidle::menu::{MenuCpu, v7_3};
//!
//! let mut menu = MenuCpu { intervals: [1000; 8], ..MenuCpu::default() };
//! menu.intervals[0] = 5;
//! assert_eq!(v7_3::typical_interval_us(&menu), 1000);
//! ```
//!
//! **Kernel:** Linux 7.3, `drivers/cpuidle/governors/menu.c`. **Differences:** see [`super`]. The idle loop of 7.3 asks no governor where there
//! is one state; a table of one state is answered here as 6.12 does.

use super::{INTERVALS, MenuCpu, Selection, v6_12};
use crate::cpuidle::states::{SAFE_TIMER_RANGE_TICKS, SelectInput, SleepLength};

/// Chooses a state for a CPU that goes idle (`menu_select`). `sleep_length` asks the timers
/// (`tick_nohz_get_sleep_length`), at most once.
pub fn select(
    menu: &mut MenuCpu,
    input: &SelectInput,
    sleep_length: &mut impl FnMut() -> SleepLength,
) -> Selection {
    menu.update(input);
    let selection = decide(menu, input, sleep_length);
    menu.commit(&selection);
    selection
}

/// Chooses, changing nothing.
pub fn decide(
    menu: &MenuCpu,
    input: &SelectInput,
    sleep_length: &mut impl FnMut() -> SleepLength,
) -> Selection {
    let safe_timer_ns = (SAFE_TIMER_RANGE_TICKS * input.tick_nsec) as u64;
    let typical_us = typical_interval_us(menu);
    v6_12::decide_from(menu, input, sleep_length, typical_us, Some(safe_timer_ns))
}

/// The mean of the last intervals if they are much alike (`get_typical_interval`), µs; `u32::MAX` if not. Alike: the variance is at
/// most 400 µs², or, of six or more, less than a 36th of the mean's square. As in C, squares and their sum wrap.
pub fn typical_interval_us(menu: &MenuCpu) -> u32 {
    // Only what lies between these two counts.
    let (mut above, mut below) = (-1i64, i64::from(u32::MAX));
    loop {
        let (mut min, mut max) = (u64::from(u32::MAX), 0);
        let (mut sum, mut squares, mut count) = (0u64, 0u64, 0u64);
        for value in menu.intervals {
            if i64::from(value) <= above || i64::from(value) >= below {
                continue;
            }
            let value = u64::from(value);
            count += 1;
            sum += value;
            squares = squares.wrapping_add(value.wrapping_mul(value));
            max = max.max(value);
            min = min.min(value);
        }
        if max == 0 {
            return u32::MAX;
        }
        let mean = sum / count;
        let mean_squared = mean.wrapping_mul(mean);
        let variance = (squares / count).wrapping_sub(mean_squared);
        let most_left = 4 * count >= 3 * INTERVALS as u64;
        let narrow = variance <= u64::MAX / 36 && mean_squared > variance * 36 && most_left;
        if narrow || variance <= 400 {
            return mean as u32;
        }
        if 4 * count <= 3 * INTERVALS as u64 {
            return u32::MAX;
        }
        if mean - min > max - mean {
            above = min as i64;
        } else {
            below = max as i64;
        }
    }
}
