// SPDX-License-Identifier: GPL-2.0-or-later
//! What tasks wait for: futexes, pipes, sockets, time.
//!
//! Wake order, the synchronous-wakeup hint and buffer limits are kernel semantics, and schedulers are
//! sensitive to them.

pub mod futex;
mod inet;
pub(crate) mod lock;
pub mod nanosleep;
pub mod pipe;
mod poll;
pub mod socket;
mod unix;
pub(crate) mod wait;
