// SPDX-License-Identifier: GPL-2.0-or-later
//! The haltpoll governor of KVM guests: poll for a while, then halt.
//!
//! **The idea.** To a guest halting is expensive, since the hypervisor runs and has to be left again. What
//! comes soon is better waited for by polling; the window adapts to when wakeups come.
//!
//! **Algorithm** ([`HaltpollCpu::select`], [`HaltpollCpu::reflect`]); state 0 polls, state 1 halts:
//! 1. No window: halt, and the tick may stop. After a halt, or a poll that something has ended: poll. After a
//!    poll in vain: halt.
//! 2. A halt that lasted longer than the window, but no longer than `guest_halt_poll_ns`, could have been
//!    polled away: the window grows. One that lasted longer could not: it shrinks.
//!
//! ```text
//!  halts, µs       30    60   120           190          900 900 900
//!  window, µs   0    50   100     200 (max)     200          100  50   0
//! ```
//!
//! **Example.**
//!
//! ```
//! use schedtwin_kernel::cpuidle::haltpoll::HaltpollCpu;
//!
//! let mut haltpoll = HaltpollCpu::new(true);
//! let windows = [30, 60, 120, 190, 900, 900, 900].map(|us| {
//!     haltpoll.reflect(1, us * 1000, false);
//!     haltpoll.poll_limit_ns / 1000
//! });
//! assert_eq!(windows, [50, 100, 200, 200, 100, 50, 0]);
//! ```
//!
//! **Kernel:** Linux 6.1 and 6.12, `drivers/cpuidle/governors/haltpoll.c`, checked bit for bit against that C
//! (`conformance/src/haltpoll`). 6.12 closes a window that has shrunk below its first size, 6.1 only halves it.
//! **Differences:** the module's parameters but `guest_halt_poll_ns` have their defaults. It may run on any machine, not only in a
//! guest; where state 0 does not poll, it sleeps there as long as nothing comes.

use super::states::SelectInput;
use crate::config::{Config, HaltpollShrink};

/// The largest window by default (`guest_halt_poll_ns`).
const GUEST_HALT_POLL_NS: u64 = 200_000;
/// How much it grows and shrinks (`guest_halt_poll_grow`, `guest_halt_poll_shrink`).
const GROW: u64 = 2;
/// Its first size (`guest_halt_poll_grow_start`).
const GROW_START: u64 = 50_000;

/// haltpoll's memory of one CPU, all of it in the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaltpollCpu {
    /// The window (`dev->poll_limit_ns`). A CPU that polls without one computes its own and leaves it here.
    pub poll_limit_ns: u64,
    /// The last stay was in the polling state (`dev->last_state_idx`), and nothing ended it.
    pub last_state_idx: usize,
    /// The last poll was in vain (`dev->poll_time_limit`).
    pub poll_time_limit: bool,
    /// A window that shrinks below its first size is closed.
    closes: bool,
    /// The largest window.
    guest_halt_poll_ns: u64,
}

impl HaltpollCpu {
    /// As after `haltpoll_enable_device`. `closes`: a window that shrinks below its first size is closed.
    pub fn new(closes: bool) -> HaltpollCpu {
        let guest_halt_poll_ns = GUEST_HALT_POLL_NS;
        let (poll_limit_ns, last_state_idx, poll_time_limit) = (0, 0, false);
        HaltpollCpu { poll_limit_ns, last_state_idx, poll_time_limit, closes, guest_halt_poll_ns }
    }

    /// In the form that `config` names.
    pub(super) fn of(config: &Config) -> HaltpollCpu {
        let closes = match config.haltpoll_shrink {
            HaltpollShrink::Halved => false,
            HaltpollShrink::Closed => true,
        };
        let guest_halt_poll_ns = config.guest_halt_poll_ns;
        HaltpollCpu { guest_halt_poll_ns, ..HaltpollCpu::new(closes) }
    }

    /// Chooses a state, and whether the tick may stop (`haltpoll_select`).
    pub fn select(&self, input: &SelectInput) -> (usize, bool) {
        if input.latency_req_ns == 0 {
            return (0, false);
        }
        let in_vain = self.last_state_idx == 0 && self.poll_time_limit;
        let halt = self.poll_limit_ns == 0 || in_vain;
        (usize::from(halt), halt)
    }

    /// Notes the end of an idle period (`haltpoll_reflect`); not to be called when the entry was refused.
    pub fn reflect(&mut self, state: usize, last_residency_ns: u64, poll_time_limit: bool) {
        self.last_state_idx = state;
        self.poll_time_limit = poll_time_limit;
        if state == 0 {
            return;
        }
        if last_residency_ns > self.guest_halt_poll_ns {
            self.poll_limit_ns /= GROW;
            if self.closes && self.poll_limit_ns < GROW_START {
                self.poll_limit_ns = 0;
            }
        } else if last_residency_ns > self.poll_limit_ns {
            let grown = self.poll_limit_ns * GROW;
            self.poll_limit_ns = grown.max(GROW_START).min(self.guest_halt_poll_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_until_it_is_in_vain() {
        let states = [Default::default(); 2];
        let input = SelectInput {
            states: &states,
            latency_req_ns: 1000,
            tick_stopped: false,
            tick_nsec: 4_000_000,
            now: 0,
            last_residency_ns: 0,
            nr_iowaiters: 0,
            cpu_util: 0,
        };
        let mut haltpoll = HaltpollCpu::new(true);
        assert_eq!(haltpoll.select(&input), (1, true), "no window yet");
        haltpoll.reflect(1, 100_000, false);
        assert_eq!(haltpoll.select(&input), (0, false), "after a halt");
        haltpoll.reflect(0, 20_000, false);
        assert_eq!(haltpoll.select(&input), (0, false), "something came");
        haltpoll.reflect(0, 50_000, true);
        assert_eq!(haltpoll.select(&input), (1, true), "in vain");
        let strict = SelectInput { latency_req_ns: 0, ..input };
        assert_eq!(haltpoll.select(&strict), (0, false));
    }

    /// As on guests whose administrator leaves the polling to the hypervisor.
    #[test]
    fn without_a_largest_window_it_halts() {
        let mut haltpoll = HaltpollCpu { guest_halt_poll_ns: 0, ..HaltpollCpu::new(true) };
        for residency in [0, 1, 30_000, 900_000] {
            haltpoll.reflect(1, residency, false);
            assert_eq!(haltpoll.poll_limit_ns, 0);
        }
        // A largest window below the first size bounds that, too.
        let mut haltpoll = HaltpollCpu { guest_halt_poll_ns: 40_000, ..HaltpollCpu::new(true) };
        haltpoll.reflect(1, 30_000, false);
        assert_eq!(haltpoll.poll_limit_ns, 40_000);
    }

    #[test]
    fn before_6_12_a_window_never_closes_at_once() {
        let mut haltpoll = HaltpollCpu::new(false);
        haltpoll.reflect(1, 100_000, false);
        haltpoll.reflect(1, 900_000, false);
        assert_eq!(haltpoll.poll_limit_ns, 25_000);
    }
}
