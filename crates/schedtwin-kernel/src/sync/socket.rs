// SPDX-License-Identifier: GPL-2.0-or-later
//! Sockets: two ends, a queue of messages to each, and who sleeps on them.
//!
//! An end owns its receive queue, the memory that its own messages take as long as nobody has read
//! them, and
//! one wait queue for readers, writers and pollers alike.
//!
//! | | AF_UNIX (`unix.rs`) | TCP (`inet.rs`) | UDP (`inet.rs`) |
//! |---|---|---|---|
//! | reader woken by | each message, sync | each segment, sync | each datagram, sync |
//! | readers wait | all are woken | all are woken | one is woken |
//! | writer woken | sync, when a quarter of the buffer is used | not sync, when two thirds are | never |
//! | the receiver's half runs | in the sender's call | in softirq on the sender's CPU | in softirq on the sender's CPU |
//!
//! Kernel: 6.12 net/core/sock.c, net/core/stream.c, net/core/skbuff.c.
//! Differences: those of locks (`lock.rs`); the lock of TCP and UDP sockets is never contended, since two ends talk. Both ends stay open. Memory is counted as
//! kernels from 6.3 on do, which round small messages up to 704 bytes; earlier ones counted 768 for 100 bytes instead
//! of 960, so that more of them fitted. Limits of all sockets together (`tcp_mem`) are not modelled.

use super::lock::{Mutex, MutexId, SpinLock};
use super::wait::{Blocked, WaitQueue};
use crate::coherence::LastWriter;
use crate::{Context, Kernel, Scheduler, SyncObjects};
use schedtwin_types::{LineCounts, Ns, Outcome, SocketId, SocketKind, Syscall, TaskId};
use std::collections::VecDeque;

/// `sysctl_wmem_default` and `sysctl_rmem_default`: `SKB_TRUESIZE(256) * 256`.
pub(super) const SK_MEM_DEFAULT: u32 = 212_992;
/// `SOCK_MIN_SNDBUF`: `2 * (2048 + SKB_DATA_ALIGN(sizeof(struct sk_buff)))`.
const SOCK_MIN_SNDBUF: u32 = 4_608;
/// `sizeof(struct skb_shared_info)`, aligned to cache lines.
pub(super) const SHARED_INFO: u32 = 320;
/// `sizeof(struct sk_buff)`, aligned to cache lines.
const SK_BUFF: u32 = 256;
/// `SKB_SMALL_HEAD_CACHE_SIZE` with a distribution's `MAX_HEADER`.
const SMALL_HEAD: u32 = 704;
/// A cache line.
const CACHE_LINE: u32 = 64;

/// A message on a receive queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skb {
    /// Bytes that nobody has read.
    pub len: u32,
    /// The memory that it takes.
    pub truesize: u32,
    /// Its writer.
    pub from: LastWriter,
}

/// `skb->truesize` of a message whose linear part has `linear` bytes and whose pages have `paged`.
pub(super) fn truesize(linear: u32, paged: u32) -> u32 {
    let head = linear.next_multiple_of(CACHE_LINE) + SHARED_INFO;
    let head = if head <= SMALL_HEAD { SMALL_HEAD } else { head.next_power_of_two() };
    head + SK_BUFF + paged
}

/// Lines of an end's queue, or of its half of a connection.
fn queue_lines(kind: SocketKind, counts: &LineCounts) -> u64 {
    match kind {
        SocketKind::UnixStream => counts.socket_queue,
        SocketKind::TcpLoopback => counts.tcp,
        SocketKind::UdpLoopback => counts.udp,
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    pub kind: SocketKind,
    pub peer: SocketId,
    /// `sk_sndbuf`.
    pub sndbuf: u32,
    /// `sk_wmem_alloc` less the 1 that it begins with, or `sk_wmem_queued`: memory of what it has sent.
    pub wmem: u32,
    /// `sk_rmem_alloc`: memory of what it has received. UDP's.
    pub rmem: u32,
    /// `sk_receive_queue`.
    pub queue: VecDeque<Skb>,
    /// `sk_receive_queue.lock`, and the end's `unix_state_lock()` around it.
    pub queue_lock: SpinLock,
    /// `u->iolock`: one reader at a time.
    pub iolock: Mutex,
    /// The last writer of the lines of its queue, or of its connection.
    pub lines: LastWriter,
    /// The CPU that has last counted the memory of its messages.
    pub wmem_line: LastWriter,
    /// The CPU that has freed the last message that it received.
    pub freed: LastWriter,
    /// Bytes on the queue.
    pub queued: u32,
    /// Bytes of TCP that the peer's window has had no space for.
    pub unsent: u32,
    /// `SOCK_NOSPACE`: a writer has found no space.
    pub nospace: bool,
    /// `sk_wq`.
    pub wait: WaitQueue,
    /// Bytes that the caller has sent, received by the peer or on their way.
    pub sent: u64,
    /// Bytes that it has read.
    pub read: u64,
    /// Bytes of datagrams that found no space.
    pub dropped: u64,
}

/// All sockets.
#[derive(Clone, Debug, Default)]
pub struct Sockets {
    sockets: Vec<Option<Socket>>,
}

impl Sockets {
    /// A socket.
    ///
    /// # Panics
    /// If the workload uses one that it has not made.
    pub(super) fn get(&mut self, id: SocketId) -> &mut Socket {
        let socket = self.sockets.get_mut(id.0 as usize).and_then(Option::as_mut);
        socket.unwrap_or_else(|| panic!("no socket {}", id.0))
    }

    /// `sk_wmem_alloc` of an end, as far as messages are on their way.
    pub fn memory(&self, id: SocketId) -> u32 {
        self.sockets[id.0 as usize].as_ref().map_or(0, |socket| socket.wmem)
    }

    /// Everybody who waits, for verification.
    pub fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.sockets
            .iter()
            .flatten()
            .flat_map(|socket| socket.wait.waiting().chain(socket.iolock.waiting()))
    }

    /// Asserts that no byte is lost or doubled: what one end has sent the other has read, or it is on its way.
    pub(crate) fn verify(&self) {
        for (id, socket) in self.sockets.iter().enumerate() {
            let Some(socket) = socket else { continue };
            let Some(peer) = &self.sockets[socket.peer.0 as usize] else { continue };
            let queued: u32 = peer.queue.iter().map(|skb| skb.len).sum();
            assert_eq!(queued, peer.queued, "bytes on the queue of socket {}", socket.peer.0);
            let under_way = u64::from(queued) + u64::from(socket.unsent) + socket.dropped;
            assert_eq!(socket.sent, peer.read + under_way, "bytes sent by socket {id}");
            if socket.kind == SocketKind::UnixStream {
                let memory: u32 = peer.queue.iter().map(|skb| skb.truesize).sum();
                assert_eq!(memory, socket.wmem, "memory of socket {id}");
            }
        }
    }

    /// Asserts that a call that sleeps has reason to.
    pub(crate) fn verify_sleeper(&self, call: Syscall) {
        let (Syscall::Send { socket: id, .. } | Syscall::Recv { socket: id, .. }) = call else {
            return;
        };
        let socket = self.sockets[id.0 as usize].as_ref().expect("a socket that exists");
        match (call, socket.kind) {
            (Syscall::Recv { .. }, SocketKind::UnixStream | SocketKind::TcpLoopback) => {
                assert!(socket.queue.is_empty(), "nobody has woken the reader of socket {}", id.0);
            }
            (Syscall::Send { .. }, SocketKind::UnixStream) => {
                let full = u64::from(socket.wmem + 2) * 4 > u64::from(socket.sndbuf);
                assert!(full, "nobody has woken the writer of socket {}", id.0);
            }
            _ => {}
        }
    }

    fn put(&mut self, id: SocketId, socket: Socket) {
        let index = id.0 as usize;
        if self.sockets.len() <= index {
            self.sockets.resize(index + 1, None);
        }
        self.sockets[index] = Some(socket);
    }
}

impl SyncObjects {
    /// `socketpair()`.
    #[inline(never)]
    pub(crate) fn socketpair(
        &mut self,
        first: SocketId,
        second: SocketId,
        kind: SocketKind,
        sndbuf: u32,
    ) {
        let default = match kind {
            SocketKind::TcpLoopback => super::inet::TCP_SNDBUF,
            SocketKind::UnixStream | SocketKind::UdpLoopback => SK_MEM_DEFAULT,
        };
        let sndbuf = if sndbuf == 0 { default } else { sndbuf.max(SOCK_MIN_SNDBUF) };
        for (id, peer) in [(first, second), (second, first)] {
            let socket = Socket {
                kind,
                peer,
                sndbuf,
                wmem: 0,
                rmem: 0,
                queue: VecDeque::new(),
                queue_lock: SpinLock::default(),
                iolock: Mutex::default(),
                lines: LastWriter::default(),
                wmem_line: LastWriter::default(),
                freed: LastWriter::default(),
                queued: 0,
                unsent: 0,
                nospace: false,
                wait: WaitQueue::default(),
                sent: 0,
                read: 0,
                dropped: 0,
            };
            self.sockets.put(id, socket);
        }
    }
}

impl Kernel {
    /// `send()`; `done`: how much of it an earlier attempt has sent.
    pub(crate) fn send(&mut self, task: TaskId, id: SocketId, bytes: u32, done: u32) {
        let blocked = Blocked { call: Syscall::Send { socket: id, bytes }, done, waited: false };
        match self.sync.sockets.get(id).kind {
            SocketKind::UnixStream => self.unix_stream_sendmsg(task, id, bytes, blocked),
            SocketKind::TcpLoopback => self.tcp_sendmsg(task, id, bytes, blocked),
            SocketKind::UdpLoopback => self.udp_sendmsg(task, id, bytes),
        }
    }

    /// `recv()`. `waited`: it has slept on the wait queue.
    pub(crate) fn recv(&mut self, task: TaskId, id: SocketId, bytes: u32, waited: bool) {
        let kind = self.sync.sockets.get(id).kind;
        if bytes == 0 && kind != SocketKind::UdpLoopback {
            self.sched.set_outcome(task, Outcome::Value(0));
            return;
        }
        let blocked = Blocked { call: Syscall::Recv { socket: id, bytes }, done: 0, waited };
        if kind == SocketKind::UnixStream && !self.mutex_lock(task, MutexId::Socket(id), blocked) {
            return;
        }
        let taken = match kind {
            SocketKind::UnixStream => self.unix_stream_read(id, bytes),
            SocketKind::TcpLoopback => self.tcp_recvmsg(id, bytes),
            SocketKind::UdpLoopback => self.udp_recvmsg(id, bytes),
        };
        match taken {
            Some(taken) => self.sched.set_outcome(task, Outcome::Value(u64::from(taken))),
            None => {
                let wait = &mut self.sync.sockets.get(id).wait;
                match kind {
                    SocketKind::UdpLoopback => wait.add_exclusive(task),
                    SocketKind::UnixStream | SocketKind::TcpLoopback => wait.add(task),
                }
                self.block(task, blocked);
            }
        }
    }

    /// The caller waits for the lines that sending a message from `id` needs, those under the lock of the receiver's
    /// queue first; how long for these.
    pub(super) fn lines_of_send(&mut self, id: SocketId) -> Ns {
        if !self.cx.has_coherence() {
            return 0;
        }
        let kind = self.sync.sockets.get(id).kind;
        let peer = self.sync.sockets.get(id).peer;
        let wmem_line = &mut self.sync.sockets.get(id).wmem_line;
        let mut wait = self.cx.take_lines(wmem_line, |count| count.wmem);
        let receiver = self.sync.sockets.get(peer);
        // The memory of a message comes from where others were freed.
        let mut freed = receiver.freed;
        wait += self.cx.take_lines(&mut freed, |count| count.skb);
        let queue = self.cx.take_lines(&mut receiver.lines, |count| queue_lines(kind, count));
        self.sched.owe(wait + queue, &mut self.cx);
        queue
    }

    /// The same for receiving `bytes` of a message that `from` has written, and for giving its memory back.
    pub(super) fn lines_of_recv(&mut self, id: SocketId, mut from: LastWriter, bytes: u32) -> Ns {
        if !self.cx.has_coherence() {
            return 0;
        }
        let mut wait = self.cx.fetch_payload(from, bytes);
        wait += self.cx.take_lines(&mut from, |count| count.skb);
        let socket = self.sync.sockets.get(id);
        let (kind, peer) = (socket.kind, socket.peer);
        socket.freed = self.cx.as_writer();
        let queue = self.cx.take_lines(&mut socket.lines, |count| queue_lines(kind, count));
        let wmem_line = &mut self.sync.sockets.get(peer).wmem_line;
        wait += self.cx.take_lines(wmem_line, |count| count.wmem);
        self.sched.owe(wait + queue, &mut self.cx);
        queue
    }

    /// `sock_def_readable()`.
    pub(super) fn sock_def_readable(&mut self, id: SocketId) {
        self.wake_up(move |kernel| &mut kernel.sync.sockets.get(id).wait, super::wait::Hint::Sync);
    }
}

impl Scheduler {
    /// The caller pays for copying so many bytes from or to user memory.
    pub(super) fn charge_copy(&mut self, bytes: u32, cx: &mut Context) {
        self.charge(cx.copy_cost(bytes), cx);
    }
}

impl Context {
    /// The parts of what sending costs that come before the reader is woken, and after.
    pub(super) fn around_wakeup(&self, cost: u64) -> (u64, u64) {
        let after = cost * self.platform.device_tree.path_costs.after_wakeup_permille / 1000;
        (cost - after, after)
    }

    /// The work of copying so many bytes.
    pub(super) fn copy_cost(&self, bytes: u32) -> u64 {
        self.platform.device_tree.path_costs.copy_per_kib * u64::from(bytes) / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_message_takes_as_much_memory_as_in_the_kernel() {
        assert_eq!(truesize(1, 0), 960);
        assert_eq!(truesize(384, 0), 960);
        // kmalloc-1k, -2k and -4k.
        assert_eq!(truesize(385, 0), 1024 + 256);
        assert_eq!(truesize(1_000, 0), 2048 + 256);
        assert_eq!(truesize(3_776, 8_192), 4096 + 256 + 8_192);
    }
}
