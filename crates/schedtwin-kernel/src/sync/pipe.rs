// SPDX-License-Identifier: GPL-2.0-or-later
//! Pipes: a ring of pages between writers and readers.
//!
//! A pipe has 16 buffers of a page. A write fills new pages; only what is left over after whole pages goes
//! into the last page, if it fits there. So a pipe may be *full* with little in it, and a write of many pages
//! blocks half-way, having filled what there was.
//!
//! **Who is woken.** A write to an empty pipe wakes a reader, a read from a full one wakes a writer, both with the
//! synchronous hint (`WF_SYNC`). Sleepers wait exclusively, so one is woken, first come first served; one
//! that has slept and leaves something behind (data, or space) wakes the next of its kind. Once
//! somebody has polled
//! a pipe, every write wakes those who wait to read (`poll_usage`). From 6.18 on a read wakes a writer only if it frees a page; in 7.3 only polls with
//! EPOLLET, which nobody here asks for, make every write wake.
//!
//! Kernel: 6.12.95 fs/pipe.c `pipe_read`, `pipe_write`; 6.18.44 and 7.3.4 `anon_pipe_read`, `anon_pipe_write`.
//! Differences: those of locks (`lock.rs`). Both ends stay open, pages are 4 KiB. Releases from 5.11 to 6.12 are the
//! same in this.

use super::lock::{Mutex, MutexId};
use super::wait::{Blocked, Hint, WaitQueue};
use crate::Kernel;
use crate::coherence::LastWriter;
use crate::config::PipeWakes;
use schedtwin_types::{Ns, Outcome, PipeId, Syscall, TaskId};
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

/// A pipe.
#[derive(Clone, Debug, Default)]
struct Pipe {
    buffers: VecDeque<Buffer>,
    mutex: Mutex,
    /// `rd_wait`.
    readers: WaitQueue,
    /// `wr_wait`.
    writers: WaitQueue,
    /// The last writer of its lines.
    lines: LastWriter,
    /// The writer of its last data.
    data: LastWriter,
    /// Somebody has polled it.
    poll_usage: bool,
    /// Bytes written, and read.
    written: u64,
    read: u64,
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

    /// Takes up to `bytes` out; how many, and whether a page of a full pipe was freed.
    fn take(&mut self, bytes: u32) -> (u32, bool) {
        let mut left = bytes;
        let was_full = self.is_full();
        let mut freed = false;
        while left > 0
            && let Some(first) = self.buffers.front_mut()
        {
            let chars = first.len.min(left);
            first.len -= chars;
            left -= chars;
            if first.len == 0 {
                self.buffers.pop_front();
                freed = true;
            }
        }
        (bytes - left, was_full && freed)
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
        self.pipes
            .iter()
            .flat_map(|p| p.readers.waiting().chain(p.writers.waiting()).chain(p.mutex.waiting()))
    }

    pub(super) fn mutex(&mut self, id: PipeId) -> &mut Mutex {
        &mut self.get(id).mutex
    }

    /// `pipe_poll()`: whether there is something to read.
    pub(super) fn poll(&mut self, id: PipeId) -> bool {
        let pipe = self.get(id);
        pipe.poll_usage = true;
        !pipe.buffers.is_empty()
    }

    /// A poller waits.
    pub(super) fn wait_readable(&mut self, id: PipeId, task: TaskId) {
        self.get(id).readers.add(task);
    }

    /// Asserts that no byte is lost or doubled.
    pub(crate) fn verify(&self) {
        for (id, pipe) in self.pipes.iter().enumerate() {
            let held: u64 = pipe.buffers.iter().map(|buffer| u64::from(buffer.len)).sum();
            assert_eq!(pipe.written, pipe.read + held, "bytes of pipe {id}");
        }
    }
}

impl Kernel {
    /// `read()`: what is there, or sleep and look again. `resumed`: the call has slept.
    pub(crate) fn pipe_read(&mut self, task: TaskId, id: PipeId, bytes: u32, resumed: bool) {
        self.sched.set_outcome(task, Outcome::Value(0));
        if bytes == 0 {
            return;
        }
        let call = Syscall::PipeRead { pipe: id, bytes };
        let blocked = Blocked { call, done: 0, waited: resumed };
        if !self.mutex_lock(task, MutexId::Pipe(id), blocked) {
            return;
        }
        let mut fetched = self.pipe_lines(id);
        let pipe = self.sync.pipes.get(id);
        let was_full = pipe.is_full();
        let (taken, freed) = pipe.take(bytes);
        if taken == 0 {
            pipe.readers.add_exclusive(task);
            self.mutex_unlock(MutexId::Pipe(id), 0);
            self.block(task, blocked);
            return;
        }
        pipe.read += u64::from(taken);
        let more = resumed && !pipe.buffers.is_empty();
        let payload = self.cx.fetch_payload(pipe.data, taken);
        self.sched.owe(payload, &mut self.cx);
        fetched += payload;
        self.sched.charge(self.cx.platform.device_tree.path_costs.pipe, &mut self.cx);
        self.sched.charge_copy(taken, &mut self.cx);
        self.pipe_unlock(id, taken, fetched);
        self.sched.set_outcome(task, Outcome::Value(u64::from(taken)));
        let wake_writer = match self.cx.config.pipe_wakes {
            PipeWakes::WasFull => was_full,
            PipeWakes::PageFreed | PipeWakes::PageFreedOrPolled => freed,
        };
        if wake_writer {
            self.wake_writer(id);
        }
        if more {
            self.wake_reader(id);
        }
    }

    /// `write()`: all of it, sleeping whenever the pipe is full. `resumed`: what a call that has slept has written.
    pub(crate) fn pipe_write(
        &mut self,
        task: TaskId,
        id: PipeId,
        bytes: u32,
        resumed: Option<u32>,
    ) {
        self.sched.set_outcome(task, Outcome::Value(0));
        if bytes == 0 {
            return;
        }
        let mut done = resumed.unwrap_or(0);
        let call = Syscall::PipeWrite { pipe: id, bytes };
        let blocked = Blocked { call, done, waited: resumed.is_some() };
        if !self.mutex_lock(task, MutexId::Pipe(id), blocked) {
            return;
        }
        let fetched = self.pipe_lines(id);
        let (before, after) = self.cx.around_wakeup(self.cx.platform.device_tree.path_costs.pipe);
        self.sched.charge(before, &mut self.cx);
        let pipe = self.sync.pipes.get(id);
        pipe.data = self.cx.as_writer();
        let was_empty = pipe.buffers.is_empty();
        let put = pipe.put(bytes - done, resumed.is_none());
        pipe.written += u64::from(put);
        done += put;
        let poll_usage = pipe.poll_usage && self.cx.config.pipe_wakes != PipeWakes::PageFreed;
        self.sched.charge_copy(put, &mut self.cx);
        self.pipe_unlock(id, put, fetched);
        if done < bytes {
            if was_empty {
                self.wake_reader(id);
            }
            self.sched.charge(after, &mut self.cx);
            self.sync.pipes.get(id).writers.add_exclusive(task);
            self.block(task, Blocked { done, ..blocked });
            return;
        }
        let room = resumed.is_some() && !self.sync.pipes.get(id).is_full();
        self.sched.set_outcome(task, Outcome::Value(u64::from(done)));
        if was_empty || poll_usage {
            self.wake_reader(id);
        }
        if room {
            self.wake_writer(id);
        }
        self.sched.charge(after, &mut self.cx);
    }

    /// The caller waits for the pipe's lines; how long.
    fn pipe_lines(&mut self, id: PipeId) -> Ns {
        let lines = &mut self.sync.pipes.get(id).lines;
        let wait = self.cx.take_lines(lines, |count| count.pipe);
        self.sched.owe(wait, &mut self.cx);
        wait
    }

    /// Reading or writing so many bytes was under the mutex, and what it has `fetched` took so long.
    fn pipe_unlock(&mut self, id: PipeId, bytes: u32, fetched: Ns) {
        let costs = &self.cx.platform.device_tree.path_costs;
        let hold = self.cx.time_of(costs.pipe_lock.min(costs.pipe));
        let copy = if hold > 0 { self.cx.time_of(self.cx.copy_cost(bytes)) } else { 0 };
        self.mutex_unlock(MutexId::Pipe(id), hold + copy + fetched);
    }

    fn wake_reader(&mut self, id: PipeId) {
        self.wake_up(move |kernel| &mut kernel.sync.pipes.get(id).readers, Hint::Sync);
    }

    fn wake_writer(&mut self, id: PipeId) {
        self.wake_up(move |kernel| &mut kernel.sync.pipes.get(id).writers, Hint::Sync);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes in turn, bytes taken by each read, and how many pages are in use afterwards.
    fn check(writes: &[u32], read: u32, put: &[u32], taken: u32, pages: usize) {
        let mut pipe = Pipe::default();
        let found: Vec<u32> = writes.iter().map(|&w| pipe.put(w, true)).collect();
        assert_eq!((found.as_slice(), pipe.take(read).0, pipe.buffers.len()), (put, taken, pages));
    }

    #[test]
    fn small_writes_share_a_page_and_large_ones_do_not() {
        check(&[100, 100, 100], 0, &[100, 100, 100], 0, 1);
        // 3000 do not fit behind 2000, so they open a page; 1000 fit behind them.
        check(&[2000, 3000, 1000], 0, &[2000, 3000, 1000], 0, 2);
        // Of 4196 bytes 100 join the last page and 4096 make one.
        check(&[100, 4196], 0, &[100, 4196], 0, 2);
        // Data that was read from a page's front leaves no space at its end.
        check(&[4000], 3999, &[4000], 3999, 1);
    }

    #[test]
    fn a_page_is_freed_when_its_last_byte_is_read() {
        let mut pipe = Pipe::default();
        pipe.put(65_536, true);
        assert_eq!(pipe.take(4095), (4095, false));
        assert_eq!(pipe.take(1), (1, true));
        // Full no more.
        assert_eq!(pipe.take(4096), (4096, false));
    }

    #[test]
    fn a_pipe_is_full_by_pages() {
        check(&[100_000], 0, &[65_536], 0, 16);
        check(&[60_000, 4096, 4096], 1, &[60_000, 4096, 0], 1, 16);
        check(&[65_536], 4096, &[65_536], 4096, 15);
    }
}
