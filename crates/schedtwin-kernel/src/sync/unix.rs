// SPDX-License-Identifier: GPL-2.0-or-later
//! `AF_UNIX` stream sockets.
//!
//! A write becomes one message, or several if it is large: at most half of the send buffer, so that two are under way.
//! It blocks while the memory of its end's unread messages has reached the send buffer. A task that
//! reads a message to
//! its end gives the memory back; as soon as no more than a quarter of the buffer is used, all writers that sleep on
//! that end are woken.
//!
//! ```text
//! sndbuf 212992, messages of 100 bytes (960 as the kernel counts):
//! writer  |222 messages| sleeps .................. all writers awake
//! reader                 reads 167 of them --------^
//! ```
//!
//! Both wakeups are synchronous (`WF_SYNC`). Readers and writers do not wait exclusively, so all of an end's are woken.
//!
//! Kernel: 6.12 net/unix/af_unix.c `unix_stream_sendmsg`, `unix_stream_read_generic`, `unix_write_space`; net/core/sock.c
//! `sock_alloc_send_pskb`, `sock_wfree`.

use super::lock::MutexId;
use super::socket::{SHARED_INFO, Skb, truesize};
use super::wait::{Blocked, Hint};
use crate::Kernel;
use schedtwin_types::{Ns, Outcome, SocketId, TaskId};

/// `SKB_MAX_HEAD(0)`: what fits into the page of a message's linear part.
const MAX_HEAD: u32 = PAGE - SHARED_INFO;
/// `UNIX_SKB_FRAGS_SZ`.
const FRAGS: u32 = 32 * 1024;
/// `PAGE_SIZE`.
const PAGE: u32 = 4096;

impl Kernel {
    /// `unix_stream_sendmsg()`.
    pub(super) fn unix_stream_sendmsg(
        &mut self,
        task: TaskId,
        id: SocketId,
        bytes: u32,
        mut blocked: Blocked,
    ) {
        while blocked.done < bytes {
            let socket = self.sync.sockets.get(id);
            if socket.wmem >= socket.sndbuf {
                socket.wait.add(task);
                self.block(task, blocked);
                return;
            }
            let size = (bytes - blocked.done).min(socket.sndbuf / 2 - 64).min(MAX_HEAD + FRAGS);
            let paged = size.saturating_sub(MAX_HEAD).next_multiple_of(PAGE).min(size);
            let truesize = truesize(size - paged, paged.next_multiple_of(PAGE));
            socket.wmem += truesize;
            socket.sent += u64::from(size);
            let peer = socket.peer;
            let other = self.sync.sockets.get(peer);
            other.queue.push_back(Skb { len: size, truesize, from: self.cx.as_writer() });
            other.queued += size;
            blocked.done += size;
            let cost = self.cx.platform.device_tree.path_costs.unix_socket;
            let (before, after) = self.cx.around_wakeup(cost);
            self.sched.charge(before, &mut self.cx);
            self.sched.charge_copy(size, &mut self.cx);
            let fetched = self.lines_of_send(id);
            self.unix_queue_lock(peer, fetched);
            self.sock_def_readable(peer);
            self.sched.charge(after, &mut self.cx);
        }
        self.sched.set_outcome(task, Outcome::Value(u64::from(bytes)));
    }

    /// `unix_stream_read_generic()`: bytes read; `None`: there is nothing.
    pub(super) fn unix_stream_read(&mut self, id: SocketId, bytes: u32) -> Option<u32> {
        let mut copied = 0;
        let begun = self.cx.debt;
        while copied < bytes {
            let socket = self.sync.sockets.get(id);
            let peer = socket.peer;
            let Some(first) = socket.queue.front_mut() else { break };
            let chunk = first.len.min(bytes - copied);
            first.len -= chunk;
            copied += chunk;
            let Skb { len, truesize, from } = *first;
            socket.queued -= chunk;
            socket.read += u64::from(chunk);
            self.sched.charge(self.cx.platform.device_tree.path_costs.unix_socket, &mut self.cx);
            let fetched = self.lines_of_recv(id, from, chunk);
            self.unix_queue_lock(id, fetched);
            if len == 0 {
                self.sync.sockets.get(id).queue.pop_front();
                self.unix_write_space(peer, truesize);
            }
        }
        self.sched.charge_copy(copied, &mut self.cx);
        // Writers are woken under it, too.
        self.mutex_unlock(MutexId::Socket(id), self.cx.debt - begun);
        (copied > 0).then_some(copied)
    }

    /// `unix_state_lock()` of a receiver and the lock of its queue, which senders and the receiver take for each message;
    /// `fetched`: how long its lines took.
    fn unix_queue_lock(&mut self, id: SocketId, fetched: Ns) {
        let costs = &self.cx.platform.device_tree.path_costs;
        let hold = self.cx.time_of(costs.unix_lock.min(costs.unix_socket)) + fetched;
        self.spin_locked(move |kernel| &mut kernel.sync.sockets.get(id).queue_lock, hold);
    }

    /// `sock_wfree()` and `unix_write_space()`: an end has its memory back.
    fn unix_write_space(&mut self, id: SocketId, truesize: u32) {
        let socket = self.sync.sockets.get(id);
        socket.wmem -= truesize;
        // Linux holds two references meanwhile: the socket's own and one of the message.
        if u64::from(socket.wmem + 2) * 4 <= u64::from(socket.sndbuf) {
            self.wake_up(move |kernel| &mut kernel.sync.sockets.get(id).wait, Hint::Sync);
        }
    }
}
