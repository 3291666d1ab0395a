// SPDX-License-Identifier: GPL-2.0-or-later
//! rt-app's own thread: starts the others, ends the run, waits for everybody.
//!
//! ```text
//! clone clone ... | sleep(duration) | continue_running = 0, wake all waiters | join, join, ... | exit
//! ```
//!
//! Without a duration it joins at once. A join waits on one futex, which the thread that is waited
//! for wakes before it exits; the kernel does that when it clears the thread's id.

use super::{JOIN_FUTEX, PROCESS, Programs, State, wake};
use schedtwin_types::{Op, Syscall, ThreadId};

/// The next action of thread 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Main {
    Clone { next: u32 },
    Sleep,
    Stop,
    WakeCondition { next: u32 },
    WakeSemaphore { next: u32 },
    Join { thread: u32, sleeping: bool },
    Done,
}

impl Programs {
    /// Returns the next operation of thread 0.
    pub(super) fn next_of_main(&mut self) -> Op {
        loop {
            match self.main {
                Main::Clone { next } => {
                    if next as usize == self.code.start.len() {
                        self.main = Main::Sleep;
                        continue;
                    }
                    self.main = Main::Clone { next: next + 1 };
                    return Op::Call(Syscall::Clone {
                        thread: ThreadId(next + 1),
                        process: PROCESS,
                    });
                }
                Main::Sleep => match self.code.duration {
                    Some(duration) => {
                        self.main = Main::Stop;
                        return Op::Call(Syscall::Nanosleep { duration });
                    }
                    None => self.main = Main::Join { thread: 0, sleeping: false },
                },
                Main::Stop => {
                    self.running = false;
                    self.main = Main::WakeCondition { next: 0 };
                }
                Main::WakeCondition { next } => {
                    if next == self.code.conditions {
                        self.main = Main::WakeSemaphore { next: 0 };
                        continue;
                    }
                    self.main = Main::WakeCondition { next: next + 1 };
                    // The time of this wakeup releases no job: the run is over.
                    let woken_at = self.conditions[next as usize].woken_at;
                    if self.conditions[next as usize].broadcast(woken_at) {
                        return wake(self.condition_futex(next), u32::MAX);
                    }
                }
                Main::WakeSemaphore { next } => {
                    if next == self.code.semaphores {
                        self.main = Main::Join { thread: 0, sleeping: false };
                        continue;
                    }
                    self.main = Main::WakeSemaphore { next: next + 1 };
                    if self.semaphores[next as usize].has_waiters() {
                        return wake(self.semaphore_futex(next), u32::MAX);
                    }
                }
                Main::Join { thread, .. } => match self.threads.get(thread as usize) {
                    None => self.main = Main::Done,
                    Some(joined) if joined.state == State::Dead => {
                        self.main = Main::Join { thread: thread + 1, sleeping: false };
                    }
                    Some(_) => {
                        self.main = Main::Join { thread, sleeping: true };
                        return Op::Call(Syscall::FutexWait { futex: JOIN_FUTEX });
                    }
                },
                Main::Done => return Op::Exit,
            }
        }
    }
}
