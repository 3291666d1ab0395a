// SPDX-License-Identifier: GPL-2.0-or-later
//! Time, CPU time and switches of a message that a sleeping thread gets.
//!
//! Two threads send a message to and fro; each sleeps until the other's comes. On one CPU a message is a system call at
//! both ends and a switch. Between two CPUs it is that, an interrupt, the end of an idle state, and the lines that both
//! touch: more the farther they are. Several distances tell lines of a message: the slope of its time over `line_ns`.
//!
//! | primitive | send | receive |
//! |---|---|---|
//! | pipe | `write()` of 8 bytes | `read()` |
//! | socket | the same, AF_UNIX stream | the same |
//! | futex | store, `FUTEX_WAKE` of one | `FUTEX_WAIT` while it is not there |
//! | eventfd | `write()` | `read()`, without epoll |
//!
//! CPU time is the process's, as `getrusage()` has it; switches are those of both threads, voluntary or not.

use super::pinned::{Line, on_two};
use super::{Effort, Quantity, Samples};
use crate::runner::clock::{CLOCK, now};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::{futex, gettid};
use rustix::time::ClockId;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// A way in which threads send each other messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// Two pipes.
    Pipe,
    /// A pair of AF_UNIX stream sockets.
    Socket,
    /// A word that threads sleep on.
    Futex,
    /// Two counters that threads read.
    Eventfd,
}

impl Primitive {
    /// All of them.
    pub const ALL: [Primitive; 4] =
        [Primitive::Pipe, Primitive::Socket, Primitive::Futex, Primitive::Eventfd];
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Primitive::Pipe => "pipe",
            Primitive::Socket => "socket",
            Primitive::Futex => "futex",
            Primitive::Eventfd => "eventfd",
        })
    }
}

/// A message, of the size that an eventfd wants.
const MESSAGE: [u8; 8] = 1_u64.to_ne_bytes();

/// The files of one side.
#[derive(Debug)]
struct Files {
    from: OwnedFd,
    to: OwnedFd,
}

/// State that both sides share.
#[derive(Debug)]
enum Medium {
    Files { leader: Files, follower: Files },
    Word(Box<Line<AtomicU32>>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Leader,
    Follower,
}

impl Medium {
    fn open(primitive: Primitive) -> io::Result<Medium> {
        let ((leader_from, follower_to), (follower_from, leader_to)) = match primitive {
            Primitive::Futex => return Ok(Medium::Word(Box::default())),
            Primitive::Pipe => (pipe_with(PipeFlags::CLOEXEC)?, pipe_with(PipeFlags::CLOEXEC)?),
            Primitive::Socket => {
                let (leader, follower) = socketpair(
                    AddressFamily::UNIX,
                    SocketType::STREAM,
                    SocketFlags::CLOEXEC,
                    None,
                )?;
                let same = (leader.try_clone()?, follower.try_clone()?);
                ((leader, follower), (same.1, same.0))
            }
            Primitive::Eventfd => {
                let there = eventfd(0, EventfdFlags::CLOEXEC)?;
                let back = eventfd(0, EventfdFlags::CLOEXEC)?;
                ((back.try_clone()?, back), (there.try_clone()?, there))
            }
        };
        Ok(Medium::Files {
            leader: Files { from: leader_from, to: leader_to },
            follower: Files { from: follower_from, to: follower_to },
        })
    }

    fn send(&self, side: Side, turn: u32) {
        match self {
            Medium::Files { leader, follower } => {
                let files = if side == Side::Leader { leader } else { follower };
                let sent = retry_on_intr(|| rustix::io::write(&files.to, &MESSAGE));
                assert_eq!(sent, Ok(MESSAGE.len()), "the other side holds its end open");
            }
            Medium::Word(word) => {
                word.store(turn, Ordering::Release);
                let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
            }
        }
    }

    fn receive(&self, side: Side, turn: u32) {
        match self {
            Medium::Files { leader, follower } => {
                let files = if side == Side::Leader { leader } else { follower };
                let mut message = [0; MESSAGE.len()];
                let got = retry_on_intr(|| rustix::io::read(&files.from, &mut message));
                assert_eq!(got, Ok(MESSAGE.len()), "the other side holds its end open");
            }
            Medium::Word(word) => loop {
                let seen = word.load(Ordering::Acquire);
                if seen == turn {
                    return;
                }
                // A changed word or a signal ends it, and the loop looks again.
                let _ = futex::wait(word, futex::Flags::PRIVATE, seen, None);
            },
        }
    }
}

#[derive(Debug)]
struct Shared {
    medium: Medium,
    follower: AtomicI32,
}

pub(super) fn measure(
    primitive: Primitive,
    cpus: [usize; 2],
    effort: &Effort,
) -> io::Result<Samples> {
    let trips = effort.share(20);
    let trips_in_all = effort.batches_in_all() * (trips + 1);
    let make = || Ok(Shared { medium: Medium::open(primitive)?, follower: AtomicI32::new(0) });
    let follow = |shared: &Shared| {
        shared.follower.store(gettid().as_raw_nonzero().get(), Ordering::Release);
        for trip in 0..trips_in_all {
            shared.medium.receive(Side::Follower, 2 * trip + 1);
            shared.medium.send(Side::Follower, 2 * trip + 2);
        }
    };
    let lead = |shared: &Shared| {
        let mut trip = 0;
        let mut next = || {
            shared.medium.send(Side::Leader, 2 * trip + 1);
            shared.medium.receive(Side::Leader, 2 * trip + 2);
            trip += 1;
        };
        let of_each = |amount: u64| amount as f64 / f64::from(2 * trips);
        effort.repeat(|| {
            // It wakes the follower, and its number is known from here on.
            next();
            let threads =
                [gettid().as_raw_nonzero().get(), shared.follower.load(Ordering::Acquire)];
            let (switches, cpu, began) =
                (switches_of(threads), now(ClockId::ProcessCPUTime), now(CLOCK));
            for _ in 0..trips {
                next();
            }
            let (elapsed, cpu) = (now(CLOCK) - began, now(ClockId::ProcessCPUTime) - cpu);
            [of_each(elapsed), of_each(cpu), of_each(switches_of(threads).saturating_sub(switches))]
        })
    };
    let [time, cpu, switches] = on_two(cpus, make, lead, follow)?;
    Ok(vec![
        (Quantity::Message(primitive), time),
        (Quantity::MessageCpu(primitive), cpu),
        (Quantity::MessageSwitches(primitive), switches),
    ])
}

/// Switches of these threads of this process since they started; 0 where procfs does not say.
fn switches_of(threads: [i32; 2]) -> u64 {
    let of_thread = |tid: i32| {
        let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status"));
        switches_in(&status.unwrap_or_default())
    };
    threads.into_iter().map(of_thread).sum()
}

/// Switches in a thread's `status`, voluntary or not.
fn switches_in(status: &str) -> u64 {
    let fields = status.lines().filter_map(|line| line.split_once(':'));
    let counts = fields.filter(|(name, _)| name.ends_with("voluntary_ctxt_switches"));
    counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(switches_in(status), 43);
        assert_eq!(switches_in("Name:\tx\n"), 0);
    }
}
