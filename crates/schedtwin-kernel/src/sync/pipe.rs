//! Pipes: a bounded buffer between readers and writers.
//!
//! Kernel: 6.12.95 fs/pipe.c: 16 buffers of a page, 65536 bytes. A writer wakes a reader only if the pipe was
//! empty, a reader wakes a writer only if it was full; both with the synchronous hint (`WF_SYNC`).
//! Differences: bytes are counted, not pages: small writes share a page here as they do there, but a write
//! that does not fit a page's rest does not open a new one.

use crate::sched::core::WF_SYNC;
use crate::Kernel;
use schedtwin_types::{Outcome, PipeId, Syscall, TaskId, TaskState, WakeSource};
use std::collections::VecDeque;

/// Capacity of a pipe.
const PIPE_BYTES: u32 = 65_536;

/// A pipe.
#[derive(Clone, Debug, Default)]
struct Pipe {
    bytes: u32,
    readers: VecDeque<TaskId>,
    writers: VecDeque<TaskId>,
}

/// All pipes.
#[derive(Clone, Debug, Default)]
pub struct Pipes {
    pipes: Vec<Pipe>,
}

impl Pipes {
    fn get(&mut self, id: PipeId) -> &mut Pipe {
        let index = id.0 as usize;
        if self.pipes.len() <= index {
            self.pipes.resize(index + 1, Pipe::default());
        }
        &mut self.pipes[index]
    }
}

impl Kernel {
    /// `read()`: what is there, or sleep and look again.
    pub(crate) fn pipe_read(&mut self, task: TaskId, id: PipeId, bytes: u32) {
        let pipe = self.pipes.get(id);
        if pipe.bytes == 0 {
            pipe.readers.push_back(task);
            self.wait_for_pipe(task, Syscall::PipeRead { pipe: id, bytes });
            return;
        }
        let was_full = pipe.bytes == PIPE_BYTES;
        let taken = pipe.bytes.min(bytes);
        pipe.bytes -= taken;
        let writer = if was_full { pipe.writers.pop_front() } else { None };
        self.tasks[task].outcome = Outcome::Value(taken as u64);
        if let Some(writer) = writer {
            self.try_to_wake_up(writer, WF_SYNC, WakeSource::Task);
        }
    }

    /// `write()`: all of it (at most a pipe full at once), or sleep and look again.
    pub(crate) fn pipe_write(&mut self, task: TaskId, id: PipeId, bytes: u32) {
        let bytes = bytes.min(PIPE_BYTES);
        let pipe = self.pipes.get(id);
        if PIPE_BYTES - pipe.bytes < bytes {
            pipe.writers.push_back(task);
            self.wait_for_pipe(task, Syscall::PipeWrite { pipe: id, bytes });
            return;
        }
        let was_empty = pipe.bytes == 0;
        pipe.bytes += bytes;
        let reader = if was_empty { pipe.readers.pop_front() } else { None };
        self.tasks[task].outcome = Outcome::Value(bytes as u64);
        if let Some(reader) = reader {
            self.try_to_wake_up(reader, WF_SYNC, WakeSource::Task);
        }
    }

    fn wait_for_pipe(&mut self, task: TaskId, again: Syscall) {
        self.tasks[task].resume = Some(again);
        self.tasks[task].state = TaskState::Interruptible;
        self.schedule(false);
    }
}
