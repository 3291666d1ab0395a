// SPDX-License-Identifier: GPL-2.0-or-later
//! `kernel/time/`: high-resolution timers and the tick.

pub mod hrtimer;
pub mod tick_broadcast;
pub mod tick_sched;
