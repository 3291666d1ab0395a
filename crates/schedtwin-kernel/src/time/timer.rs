// SPDX-License-Identifier: GPL-2.0-or-later
//! Timers of the wheel.

pub mod bases;
pub mod wheel;
