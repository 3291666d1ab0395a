// SPDX-License-Identifier: GPL-2.0-or-later
//! Mutexes, conditions and semaphores as the twin models those of glibc: `program::memory` of the workloads has the rules.
//!
//! Rust's own spin before they sleep, and have no semaphore; a twin that knows glibc's would be compared with something else.

use rustix::thread::futex;
use std::sync::Mutex as Guarded;
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

/// A word that threads sleep on.
#[derive(Debug, Default)]
struct Word(AtomicU32);

impl Word {
    /// Sleeps while the word is `expected`; it may also return early.
    fn sleep(&self, expected: u32) {
        // Nothing but a changed word or a signal ends it, and both are looked at by the caller.
        let _ = futex::wait(&self.0, futex::Flags::PRIVATE, expected, None);
    }

    fn wake(&self, count: u32) {
        // The kernel takes the count for a signed number.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, count.min(i32::MAX as u32));
    }
}

/// A mutex: free, locked, or locked while somebody may wait.
#[derive(Debug, Default)]
pub struct Mutex(Word);

impl Mutex {
    /// Takes it.
    pub fn lock(&self) {
        let word = &self.0.0;
        if word.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_contended();
        }
    }

    /// Takes it as one that has waited: nobody knows whether others wait.
    pub fn lock_contended(&self) {
        while self.0.0.swap(CONTENDED, Ordering::Acquire) != FREE {
            self.0.sleep(CONTENDED);
        }
    }

    /// Gives it back.
    pub fn unlock(&self) {
        if self.0.0.swap(FREE, Ordering::Release) == CONTENDED {
            self.0.wake(1);
        }
    }
}

/// A condition. A signal wakes one waiter, also one that is still on its way to sleep.
#[derive(Debug, Default)]
pub struct Condition {
    word: Word,
    waiters: Guarded<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    /// They have not been woken.
    waiting: u32,
    /// Wakeups that no waiter has taken yet.
    granted: u32,
}

impl Condition {
    fn waiters(&self) -> std::sync::MutexGuard<'_, Waiters> {
        self.waiters.lock().expect("no thread panics with it")
    }

    /// Gives `mutex` back, waits to be woken, takes it again; does not wait if `over`.
    pub fn wait(&self, mutex: &Mutex, over: impl Fn() -> bool) {
        self.waiters().waiting += 1;
        // Whoever ends the run says so before it wakes all: one that is not woken sees it here.
        if over() {
            let mut waiters = self.waiters();
            match waiters.granted {
                0 => waiters.waiting -= 1,
                _ => waiters.granted -= 1,
            }
            return;
        }
        mutex.unlock();
        loop {
            let seen = {
                let mut waiters = self.waiters();
                if waiters.granted > 0 {
                    waiters.granted -= 1;
                    break;
                }
                self.word.0.load(Ordering::Relaxed)
            };
            self.word.sleep(seen);
        }
        mutex.lock_contended();
    }

    /// Wakes one waiter.
    pub fn signal(&self) {
        self.wake(1);
    }

    /// Wakes all waiters.
    pub fn broadcast(&self) {
        self.wake(u32::MAX);
    }

    fn wake(&self, most: u32) {
        {
            let mut waiters = self.waiters();
            let woken = waiters.waiting.min(most);
            if woken == 0 {
                return;
            }
            waiters.waiting -= woken;
            waiters.granted += woken;
            self.word.0.fetch_add(1, Ordering::Relaxed);
        }
        self.word.wake(most);
    }
}

/// A semaphore.
#[derive(Debug, Default)]
pub struct Semaphore {
    value: Word,
    waiters: AtomicU32,
}

impl Semaphore {
    /// Adds one.
    pub fn post(&self) {
        self.value.0.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.value.wake(1);
        }
    }

    /// Takes one, or sleeps until there is one or `give_up`.
    pub fn wait(&self, give_up: impl Fn() -> bool) {
        let take = |value: u32| value.checked_sub(1);
        let taken = || self.value.0.try_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok();
        if taken() {
            return;
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        while !taken() && !give_up() {
            self.value.sleep(0);
        }
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes all that wait, for the end.
    pub fn wake_all(&self) {
        // A value that is never used up makes those return that are about to sleep.
        self.value.0.fetch_add(1 << 24, Ordering::SeqCst);
        self.value.wake(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    #[test]
    fn a_mutex_keeps_others_out() {
        let (mutex, count) = (Mutex::default(), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        mutex.lock();
                        // Not atomic together: only the mutex keeps it right.
                        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        mutex.unlock();
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 20_000);
    }

    #[test]
    fn each_signal_wakes_one_waiter_and_a_broadcast_all() {
        let (mutex, condition) = (Mutex::default(), Condition::default());
        let woken = AtomicU64::new(0);
        let waiting = || condition.waiters().waiting;
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    mutex.lock();
                    condition.wait(&mutex, || false);
                    woken.fetch_add(1, Ordering::SeqCst);
                    mutex.unlock();
                });
            }
            while waiting() < 4 {
                thread::yield_now();
            }
            condition.signal();
            while woken.load(Ordering::SeqCst) < 1 {
                thread::yield_now();
            }
            assert_eq!((waiting(), woken.load(Ordering::SeqCst)), (3, 1));
            condition.broadcast();
        });
        assert_eq!(woken.into_inner(), 4);
        condition.signal();
        assert_eq!(condition.waiters().granted, 0, "nobody waits: no memory");
    }

    #[test]
    fn a_semaphore_remembers_and_can_be_given_up() {
        let (semaphore, over) = (Semaphore::default(), AtomicU32::new(0));
        semaphore.post();
        semaphore.wait(|| false);
        thread::scope(|scope| {
            scope.spawn(|| semaphore.wait(|| over.load(Ordering::SeqCst) == 1));
            while semaphore.waiters.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            over.store(1, Ordering::SeqCst);
            semaphore.wake_all();
        });
    }
}
