//! Pipes: a ring of pages between writers and readers.
//!
//! A pipe has 16 buffers of a page. A write fills new pages; only what is left over after whole pages goes
//! into the last page, if it fits there. So a pipe may be *full* with little in it, and a write of many pages
//! blocks half-way, having filled what there was.
//!
//! **Who is woken.** A write to an empty pipe wakes a reader, a read from a full one wakes a writer, both with the
//! synchronous hint (`WF_SYNC`). Sleepers wait exclusively, so one is woken, first come first served; one
//! that has slept and leaves something behind (data, or room) wakes the next of its kind.
//!
//! Kernel: 6.12.95 fs/pipe.c `pipe_read`, `pipe_write`.
//! Differences: the mutex is never contended, since a call is atomic. A woken caller pays another
//! system call's entry when it goes on. Nobody polls, both ends stay open, pages are 4 KiB.

use crate::Kernel;
use crate::sched::core::WF_SYNC;
use schedtwin_types::{Outcome, PipeId, Syscall, TaskId, TaskState, WakeSource};
use std::collections::VecDeque;

/// `PIPE_DEF_BUFFERS`.
const PIPE_BUFFERS: usize = 16;
/// `PAGE_SIZE`.
const PAGE: u32 = 4096;

/// A page of a pipe.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// Bytes that are there.
    len: u32,
    /// Where they end in the page (`offset + len`).
    end: u32,
}

/// A caller that sleeps, or has slept and not gone on yet.
#[derive(Clone, Copy, Debug)]
struct Sleeper {
    task: TaskId,
    /// What it has written so far.
    done: u32,
}

/// A pipe.
#[derive(Clone, Debug, Default)]
struct Pipe {
    buffers: VecDeque<Buffer>,
    readers: VecDeque<Sleeper>,
    writers: VecDeque<Sleeper>,
    /// Woken, but not on again.
    woken: Vec<Sleeper>,
}

/// All pipes.
#[derive(Clone, Debug, Default)]
pub struct Pipes {
    pipes: Vec<Pipe>,
}

impl Pipe {
    fn is_full(&self) -> bool {
        self.buffers.len() >= PIPE_BUFFERS
    }

    /// A caller that goes on after a sleep.
    fn resumed(&mut self, task: TaskId) -> Option<Sleeper> {
        let at = self.woken.iter().position(|s| s.task == task)?;
        Some(self.woken.swap_remove(at))
    }

    /// Takes up to `bytes` out; how many.
    fn take(&mut self, bytes: u32) -> u32 {
        let mut left = bytes;
        while left > 0
            && let Some(first) = self.buffers.front_mut()
        {
            let chars = first.len.min(left);
            first.len -= chars;
            left -= chars;
            if first.len == 0 {
                self.buffers.pop_front();
            }
        }
        bytes - left
    }

    /// Puts what fits of `bytes` in; how many. `merge`: what is over after whole pages may join the last
    /// page, as at the beginning of a write.
    fn put(&mut self, bytes: u32, merge: bool) -> u32 {
        let mut left = bytes;
        let chars = bytes % PAGE;
        if merge
            && chars > 0
            && let Some(last) = self.buffers.back_mut()
            && last.end + chars <= PAGE
        {
            last.len += chars;
            last.end += chars;
            left -= chars;
        }
        while left > 0 && !self.is_full() {
            let copied = left.min(PAGE);
            self.buffers.push_back(Buffer { len: copied, end: copied });
            left -= copied;
        }
        bytes - left
    }
}

impl Pipes {
    fn get(&mut self, id: PipeId) -> &mut Pipe {
        let index = id.0 as usize;
        if self.pipes.len() <= index {
            self.pipes.resize(index + 1, Pipe::default());
        }
        &mut self.pipes[index]
    }

    /// Everybody who waits, for verification.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.pipes.iter().flat_map(|p| p.readers.iter().chain(&p.writers)).map(|s| s.task)
    }
}

impl Kernel {
    /// `read()`: what is there, or sleep and look again.
    pub(crate) fn pipe_read(&mut self, task: TaskId, id: PipeId, bytes: u32) {
        self.tasks[task].outcome = Outcome::Value(0);
        if bytes == 0 {
            return;
        }
        let pipe = self.pipes.get(id);
        let has_slept = pipe.resumed(task).is_some();
        let was_full = pipe.is_full();
        let taken = pipe.take(bytes);
        if taken == 0 {
            pipe.readers.push_back(Sleeper { task, done: 0 });
            self.wait_for_pipe(task, Syscall::PipeRead { pipe: id, bytes });
            return;
        }
        let more = has_slept && !pipe.buffers.is_empty();
        self.tasks[task].outcome = Outcome::Value(taken as u64);
        if was_full {
            self.wake_writer(id);
        }
        if more {
            self.wake_reader(id);
        }
    }

    /// `write()`: all of it, sleeping whenever the pipe is full.
    pub(crate) fn pipe_write(&mut self, task: TaskId, id: PipeId, bytes: u32) {
        self.tasks[task].outcome = Outcome::Value(0);
        if bytes == 0 {
            return;
        }
        let pipe = self.pipes.get(id);
        let resumed = pipe.resumed(task);
        let mut done = resumed.map_or(0, |s| s.done);
        let was_empty = pipe.buffers.is_empty();
        done += pipe.put(bytes - done, resumed.is_none());
        if done < bytes {
            if was_empty {
                self.wake_reader(id);
            }
            self.pipes.get(id).writers.push_back(Sleeper { task, done });
            self.wait_for_pipe(task, Syscall::PipeWrite { pipe: id, bytes });
            return;
        }
        let room = resumed.is_some() && !pipe.is_full();
        self.tasks[task].outcome = Outcome::Value(done as u64);
        if was_empty {
            self.wake_reader(id);
        }
        if room {
            self.wake_writer(id);
        }
    }

    fn wake_reader(&mut self, id: PipeId) {
        let pipe = self.pipes.get(id);
        if let Some(sleeper) = pipe.readers.pop_front() {
            pipe.woken.push(sleeper);
            self.try_to_wake_up(sleeper.task, WF_SYNC, WakeSource::Task);
        }
    }

    fn wake_writer(&mut self, id: PipeId) {
        let pipe = self.pipes.get(id);
        if let Some(sleeper) = pipe.writers.pop_front() {
            pipe.woken.push(sleeper);
            self.try_to_wake_up(sleeper.task, WF_SYNC, WakeSource::Task);
        }
    }

    fn wait_for_pipe(&mut self, task: TaskId, again: Syscall) {
        self.tasks[task].resume = Some(again);
        self.tasks[task].state = TaskState::Interruptible;
        self.schedule(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes in turn, bytes taken by each read, and how many pages are in use afterwards.
    fn check(writes: &[u32], read: u32, put: &[u32], taken: u32, pages: usize) {
        let mut pipe = Pipe::default();
        let found: Vec<u32> = writes.iter().map(|&w| pipe.put(w, true)).collect();
        assert_eq!((found.as_slice(), pipe.take(read), pipe.buffers.len()), (put, taken, pages));
    }

    #[test]
    fn small_writes_share_a_page_and_large_ones_do_not() {
        check(&[100, 100, 100], 0, &[100, 100, 100], 0, 1);
        // 3000 do not fit behind 2000, so they open a page; 1000 fit behind them.
        check(&[2000, 3000, 1000], 0, &[2000, 3000, 1000], 0, 2);
        // Of 4196 bytes 100 join the last page and 4096 make one.
        check(&[100, 4196], 0, &[100, 4196], 0, 2);
        // What was read from a page's front leaves no room at its end.
        check(&[4000], 3999, &[4000], 3999, 1);
    }

    #[test]
    fn a_pipe_is_full_by_pages() {
        check(&[100_000], 0, &[65_536], 0, 16);
        check(&[60_000, 4096, 4096], 1, &[60_000, 4096, 0], 1, 16);
        check(&[65_536], 4096, &[65_536], 4096, 15);
    }
}
