// SPDX-License-Identifier: GPL-2.0-or-later
//! Objects that tasks wait for: futexes, pipes, sockets, time.
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
use schedtwin_types::{Syscall, TaskId};

/// Futexes, pipes, sockets and locks.
#[derive(Clone)]
pub struct SyncObjects {
    /// Futex wait queues.
    futexes: futex::Futexes,
    /// Pipes.
    pipes: pipe::Pipes,
    /// Sockets.
    sockets: socket::Sockets,
    /// The last section under a mutex, per CPU.
    sections: Arena<CpuId, Option<lock::Section>>,
}

impl SyncObjects {
    /// No objects yet.
    pub(crate) fn new(nr_cpus: usize) -> SyncObjects {
        SyncObjects {
            futexes: Default::default(),
            pipes: Default::default(),
            sockets: Default::default(),
            sections: (0..nr_cpus).map(|_| None).collect(),
        }
    }

    /// All sockets.
    pub(crate) fn sockets(&self) -> &socket::Sockets {
        &self.sockets
    }

    /// Makes space for the waits of so many tasks.
    pub(crate) fn reserve(&mut self, tasks: usize) {
        self.futexes.reserve(tasks);
    }

    /// All tasks that wait for one of these objects.
    pub(crate) fn waiting(&self) -> Vec<TaskId> {
        let mut waiting = self.futexes.waiting();
        waiting.extend(self.pipes.waiting());
        waiting.extend(self.sockets.waiting());
        waiting
    }

    /// Asserts that sums and queues agree.
    pub(crate) fn verify(&self) {
        self.pipes.verify();
        self.sockets.verify();
    }

    /// Asserts that a sleeper has something to wait for.
    pub(crate) fn verify_sleeper(&self, call: Syscall) {
        self.sockets.verify_sleeper(call);
    }
}
