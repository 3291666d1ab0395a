// SPDX-License-Identifier: GPL-2.0-or-later
//! menu as of Linux 4.20 to 6.5: [`v5_18`], in which the last interval stays as it is where the driver has refused a state.
//!
//! A refused state leaves a residency of 0 behind. The fix notes an interval that never counts for it.
//!
//! ```
//! use schedtwin_kernel::cpuidle::menu::{MenuCpu, v4_20, v5_18};
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, SelectInput, SleepLength};
//!
//! let states = [IdleStateParams::default(); 2];
//! let input = SelectInput {
//!     states: &states,
//!     latency_req_ns: i64::MAX,
//!     tick_stopped: false,
//!     tick_nsec: 4_000_000,
//!     now: 0,
//!     last_residency_ns: 0,
//!     nr_iowaiters: 0,
//!     cpu_util: 0,
//! };
//! let timers = SleepLength { sleep_length_ns: 3_000_000, delta_tick_ns: 3_000_000 };
//! let mut menu = [MenuCpu::default(), MenuCpu::default()];
//! v4_20::select(&mut menu[0], &input, &mut || timers);
//! v5_18::select(&mut menu[1], &input, &mut || timers);
//! assert_eq!(menu.map(|menu| menu.intervals[0]), [0, u32::MAX]);
//! ```
//!
//! **Kernel:** Linux 6.3.8 and 5.19, `drivers/cpuidle/governors/menu.c`, equal in both. **Differences:** see [`super`].

use super::{MenuCpu, Selection, v5_18};
use crate::cpuidle::states::{SelectInput, SleepLength};

/// Chooses a state for a CPU that goes idle (`menu_select`). `sleep_length` asks the timers
/// (`tick_nohz_get_sleep_length`), once.
pub fn select(
    menu: &mut MenuCpu,
    input: &SelectInput,
    sleep_length: &mut impl FnMut() -> SleepLength,
) -> Selection {
    if menu.needs_update {
        menu.update(input);
    }
    let selection = v5_18::decide(menu, input, sleep_length());
    menu.commit(&selection);
    selection
}
