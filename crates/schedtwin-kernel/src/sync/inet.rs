// SPDX-License-Identifier: GPL-2.0-or-later
//! TCP and UDP over the loopback device.
//!
//! Data that is sent goes down to the loopback device, whose packets the *sending* CPU receives
//! itself in softirq, at the end
//! of the system call's network path: no other CPU has a part in it, unless Receive Packet Steering were on. So
//! the wakeup of the reader is the sender's, with the synchronous hint.
//!
//! ```text
//! sender's CPU   send() ─ tcp, ip ─ loopback ─ softirq: ip, tcp ─ reader woken (sync) ─ back to user space
//! reader         sleeps .......................................... recv()
//! ```
//!
//! **TCP.** Data goes out as far as the receiver's window has space; the rest waits in the send
//! buffer, and a writer
//! blocks while that is full. Reading opens the window: the acknowledgement comes back in softirq on the *reader's*
//! CPU, takes more data with it, and wakes the writer, without the hint, once a third of the buffer is free.
//!
//! **UDP.** A datagram that finds no space is dropped. Readers wait exclusively.
//!
//! Kernel: 6.12 net/ipv4/tcp.c `tcp_sendmsg_locked`, `tcp_recvmsg_locked`; tcp_input.c `tcp_data_queue`; udp.c
//! `udp_sendmsg`, `__udp_enqueue_schedule_skb`; net/core/dev.c `netif_rx`, `process_backlog`; net/core/stream.c
//! `sk_stream_wait_memory`, `sk_stream_write_space`; net/core/datagram.c `__skb_wait_for_more_packets`.
//! Differences: a connection is established and in ping-pong mode: acknowledgements ride on
//! answers, or come when the received data is read; timers (delayed acknowledgements,
//! retransmission) are not set. The window is that of the
//! default `tcp_rmem` and does not grow; the send buffer is what a loopback connection gets with its first window
//! (`tcp_sndbuf_expand`). Nagle's algorithm is off, as the benchmarks set TCP_NODELAY or wait for each answer.

use super::socket::{SK_MEM_DEFAULT, Skb, truesize};
use super::wait::{Blocked, Hint};
use crate::coherence::LastWriter;
use crate::{Kernel, SyncObjects};
use schedtwin_types::{Outcome, SocketId, TaskId};

/// Twice ten segments of 64 KiB as the kernel counts them.
pub(super) const TCP_SNDBUF: u32 = 2_626_560;
/// Half of the default `tcp_rmem`.
const TCP_WINDOW: u32 = 65_536;
/// The largest segment of the loopback device with offloading.
const SEGMENT: u32 = 65_483;

impl Kernel {
    /// `tcp_sendmsg()`.
    pub(super) fn tcp_sendmsg(
        &mut self,
        task: TaskId,
        id: SocketId,
        bytes: u32,
        mut blocked: Blocked,
    ) {
        while blocked.done < bytes {
            let socket = self.sync.sockets.get(id);
            if socket.wmem >= socket.sndbuf {
                socket.nospace = true;
                socket.wait.add(task);
                self.block(task, blocked);
                return;
            }
            let size = (bytes - blocked.done).min(SEGMENT);
            socket.unsent += size;
            socket.wmem += size;
            socket.sent += u64::from(size);
            blocked.done += size;
            self.sched.charge_copy(size, &mut self.cx);
            self.tcp_push(id);
        }
        self.sched.set_outcome(task, Outcome::Value(u64::from(bytes)));
    }

    /// `tcp_write_xmit()` and the receiver's softirq: sends as much as the window has space for.
    fn tcp_push(&mut self, id: SocketId) -> bool {
        let Some((peer, size)) = self.sync.tcp_sendable(id) else { return false };
        let (before, after) = self.cx.around_wakeup(self.cx.platform.device_tree.path_costs.tcp);
        self.sched.charge(before, &mut self.cx);
        let from = self.cx.as_writer();
        let socket = self.sync.sockets.get(id);
        socket.unsent -= size;
        let other = self.sync.sockets.get(peer);
        other.queue.push_back(Skb { len: size, truesize: size, from });
        other.queued += size;
        self.in_softirq(|kernel| {
            kernel.sched.charge(before, &mut kernel.cx);
            kernel.lines_of_send(id);
            kernel.sock_def_readable(peer);
            kernel.sched.charge(after, &mut kernel.cx);
        });
        self.sched.charge(after, &mut self.cx);
        true
    }

    /// `tcp_recvmsg()`: bytes read; `None`: there is nothing.
    pub(super) fn tcp_recvmsg(&mut self, id: SocketId, bytes: u32) -> Option<u32> {
        let socket = self.sync.sockets.get(id);
        let (mut copied, mut from) = (0, LastWriter::default());
        while copied < bytes
            && let Some(first) = socket.queue.front_mut()
        {
            from = first.from;
            let chunk = first.len.min(bytes - copied);
            first.len -= chunk;
            copied += chunk;
            if first.len == 0 {
                socket.queue.pop_front();
            }
        }
        if copied == 0 {
            return None;
        }
        socket.queued -= copied;
        socket.read += u64::from(copied);
        let peer = socket.peer;
        self.sched.charge(self.cx.platform.device_tree.path_costs.tcp, &mut self.cx);
        self.sched.charge_copy(copied, &mut self.cx);
        self.lines_of_recv(id, from, copied);
        let sender = self.sync.sockets.get(peer);
        sender.wmem -= copied;
        if sender.unsent > 0 || sender.nospace {
            self.in_softirq(|kernel| kernel.tcp_window_opens(peer));
        }
        Some(copied)
    }

    /// The acknowledgement is back at the sender's end, on the reader's CPU.
    fn tcp_window_opens(&mut self, id: SocketId) {
        self.sched.charge(self.cx.platform.device_tree.path_costs.tcp, &mut self.cx);
        while self.tcp_push(id) {}
        // sk_stream_is_writeable()
        let socket = self.sync.sockets.get(id);
        let free = socket.sndbuf.saturating_sub(socket.wmem);
        if socket.nospace && free >= socket.wmem / 2 {
            socket.nospace = false;
            self.wake_up(move |kernel| &mut kernel.sync.sockets.get(id).wait, Hint::Plain);
        }
    }

    /// `udp_sendmsg()`.
    pub(super) fn udp_sendmsg(&mut self, task: TaskId, id: SocketId, bytes: u32) {
        let (before, after) = self.cx.around_wakeup(self.cx.platform.device_tree.path_costs.udp);
        self.sched.charge(before, &mut self.cx);
        self.sched.charge_copy(bytes, &mut self.cx);
        self.sched.set_outcome(task, Outcome::Value(u64::from(bytes)));
        let truesize = truesize(bytes.min(3_776), bytes.saturating_sub(3_776));
        let socket = self.sync.sockets.get(id);
        socket.sent += u64::from(bytes);
        let peer = socket.peer;
        self.in_softirq(|kernel| {
            kernel.sched.charge(before, &mut kernel.cx);
            kernel.lines_of_send(id);
            let from = kernel.cx.as_writer();
            let other = kernel.sync.sockets.get(peer);
            if other.rmem > SK_MEM_DEFAULT {
                kernel.sync.sockets.get(id).dropped += u64::from(bytes);
                return;
            }
            other.rmem += truesize;
            other.queue.push_back(Skb { len: bytes, truesize, from });
            other.queued += bytes;
            kernel.sock_def_readable(peer);
            kernel.sched.charge(after, &mut kernel.cx);
        });
        self.sched.charge(after, &mut self.cx);
    }

    /// `udp_recvmsg()`: one datagram, whose end is lost if it is longer; `None`: there is none.
    pub(super) fn udp_recvmsg(&mut self, id: SocketId, bytes: u32) -> Option<u32> {
        let socket = self.sync.sockets.get(id);
        let Skb { len, truesize, from } = socket.queue.pop_front()?;
        socket.rmem -= truesize;
        socket.queued -= len;
        socket.read += u64::from(len);
        let copied = len.min(bytes);
        self.sched.charge(self.cx.platform.device_tree.path_costs.udp, &mut self.cx);
        self.sched.charge_copy(copied, &mut self.cx);
        self.lines_of_recv(id, from, copied);
        Some(copied)
    }

    /// `do_softirq()` at the end of a network path: what it costs is interrupt time of this CPU.
    fn in_softirq(&mut self, work: impl FnOnce(&mut Self)) {
        let nested = std::mem::replace(&mut self.cx.in_irq, true);
        work(self);
        if !nested {
            self.sched.account_irq_time(&mut self.cx);
        }
        self.cx.in_irq = nested;
    }
}

impl SyncObjects {
    fn tcp_sendable(&mut self, id: SocketId) -> Option<(SocketId, u32)> {
        let sockets = &mut self.sockets;
        let (peer, unsent) = (sockets.get(id).peer, sockets.get(id).unsent);
        let size = unsent.min(TCP_WINDOW.saturating_sub(sockets.get(peer).queued));
        (size > 0).then_some((peer, size))
    }
}
