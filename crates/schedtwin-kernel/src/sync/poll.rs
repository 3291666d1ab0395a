// SPDX-License-Identifier: GPL-2.0-or-later
//! `poll()` of one file for `POLLIN`.
//!
//! Pollers wait on the file's own queue and not exclusively: whatever wakes a reader wakes all of them, with the same
//! hint. A pipe that has been polled once wakes its readers at every write, not only at one that finds it empty
//! (`poll_usage`).
//!
//! Kernel: 6.12 fs/select.c `do_poll`, `pollwake`; fs/pipe.c `pipe_poll`; net/core/datagram.c `datagram_poll`.
//! Differences: one file, no timeout. eventfd and epoll are not modelled: no benchmark of the twin uses them.

use super::wait::Blocked;
use crate::Kernel;
use schedtwin_types::{File, Outcome, Syscall, TaskId};

impl Kernel {
    /// `poll()`: 1 once there is something to read.
    pub(crate) fn poll(&mut self, task: TaskId, file: File) {
        self.sched.charge(self.cx.platform.device_tree.path_costs.poll, &mut self.cx);
        let readable = match file {
            File::Pipe(pipe) => self.sync.pipes.poll(pipe),
            File::Socket(socket) => !self.sync.sockets.get(socket).queue.is_empty(),
        };
        if readable {
            self.sched.set_outcome(task, Outcome::Value(1));
            return;
        }
        match file {
            File::Pipe(pipe) => self.sync.pipes.wait_readable(pipe, task),
            File::Socket(socket) => self.sync.sockets.get(socket).wait.add(task),
        }
        self.block(task, Blocked { call: Syscall::Poll { file }, done: 0, waited: true });
    }
}
