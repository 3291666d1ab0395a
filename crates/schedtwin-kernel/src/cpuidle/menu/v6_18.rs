// SPDX-License-Identifier: GPL-2.0-or-later
//! menu as of Linux 6.18: the typical interval of [`v7_3`], in which an outlier may be short as well as long, and the rest of
//! [`v6_12`].
//!
//! With a stopped tick a prediction below a tick is replaced by the time to the next timer, however near that is; 7.3 believes it
//! if a timer comes within two ticks.
//!
//! **Example.** A CPU without a tick has slept 1 ms seven times and 5 µs once; its timer is 6 ms away, a tick is 4 ms:
//!
//! ```
//! use schedtwin_kernel::cpuidle::menu::{MenuCpu, SelectRule, v6_18, v7_3};
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, SelectInput, SleepLength};
//!
//! let state = |exit_us: u64, residency_us: u64| IdleStateParams {
//!     exit_latency_ns: exit_us * 1000,
//!     target_residency_ns: residency_us * 1000,
//!     ..Default::default()
//! };
//! let states = [state(1, 1), state(230, 5000)];
//! let input = SelectInput {
//!     states: &states,
//!     latency_req_ns: i64::MAX,
//!     tick_stopped: true,
//!     tick_nsec: 4_000_000,
//!     now: 0,
//!     last_residency_ns: 1_000_000,
//!     nr_iowaiters: 0,
//!     cpu_util: 0,
//! };
//! let timers = SleepLength { sleep_length_ns: 6_000_000, delta_tick_ns: 6_000_000 };
//! let mut menu = MenuCpu { intervals: [1000; 8], ..MenuCpu::default() };
//! menu.intervals[0] = 5;
//! let chosen = v6_18::decide(&menu, &input, &mut || timers);
//! assert_eq!((chosen.idx, chosen.rule), (1, SelectRule::TickStopped));
//! assert_eq!(v7_3::decide(&menu, &input, &mut || timers).idx, 0);
//! ```
//!
//! **Kernel:** Linux 6.18.44, `drivers/cpuidle/governors/menu.c`. **Differences:** see [`super`]. Up to 6.18.13 the timers were not
//! asked for a short typical interval even if the tick was stopped, and up to 6.18.2 any state could take the place of polling.

use super::{MenuCpu, Selection, v6_12, v7_3};
use crate::cpuidle::states::{SelectInput, SleepLength};

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
    v6_12::decide_from(menu, input, sleep_length, v7_3::typical_interval_us(menu), None)
}
