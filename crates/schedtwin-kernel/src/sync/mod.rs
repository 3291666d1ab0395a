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

use schedtwin_types::CpuId;
use schedtwin_types::arena::Arena;

/// Futexes, pipes, sockets and locks.
#[derive(Clone)]
pub struct SyncObjects {
    /// Futex wait queues.
    pub(crate) futexes: futex::Futexes,
    /// Pipes.
    pub(crate) pipes: pipe::Pipes,
    /// Sockets.
    pub(crate) sockets: socket::Sockets,
    /// The last section under a mutex, per CPU.
    pub(crate) sections: Arena<CpuId, Option<lock::Section>>,
}
