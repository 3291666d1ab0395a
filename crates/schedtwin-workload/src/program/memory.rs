// SPDX-License-Identifier: GPL-2.0-or-later
//! User memory that threads share, and what glibc does with it.
//!
//! # Idea
//!
//! A mutex, condition or semaphore is a word of user memory plus a futex, a kernel queue that is
//! entered only when there is something to wait for. An uncontended lock or unlock, a signal that
//! nobody waits for, a post that nobody waits for make no system call, as in glibc.
//!
//! # Terms and algorithm
//!
//! 1. *Mutex*: 0 free, 1 locked, 2 locked and somebody may wait. `lock` sets 1 if it was 0; else it
//!    sets 2 and waits until it finds 0. `unlock` sets 0 and wakes one if it was 2. A mutex that a
//!    condition wait takes back is set to 2 at once (glibc does not know whether others were moved
//!    to it), so the unlock after a wait always makes a system call.
//! 2. *Condition*: a waiter is *entering* until it sleeps: unlocking the mutex may take a system
//!    call, in which a signal can arrive. Such a signal is *granted* to an entering thread, which
//!    then does not sleep: that is the role of glibc's sequence number. A signal prefers sleepers.
//! 3. *Semaphore*: a value and a count of waiters; a waiter that wakes up and finds 0 (another
//!    thread was faster) sleeps again.
//!
//! ```text
//! waiter   lock m | unlock m (2 -> 0: FUTEX_WAKE ....) | granted? no sleep : FUTEX_WAIT | lock m
//! signaller                              ^ signal: entering, so granted
//! ```
//!
//! Because a thread is asked for its next operation at one instant, the test of a word and the
//! futex call that follows cannot be separated; no wakeup is lost between them.
//!
//! Differences: glibc's two groups of waiters are one queue here; glibc spins before it sleeps only
//! on adaptive mutexes, which rt-app does not use; the order of waking is the kernel's futex queue.

use schedtwin_types::Ns;

/// A mutex word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mutex {
    state: u8,
    /// The thread that took it last, and since when others may wait for it.
    holder: u32,
    contended_since: Ns,
}

const FREE: u8 = 0;
const LOCKED: u8 = 1;
const CONTENDED: u8 = 2;

impl Mutex {
    /// The first attempt of thread `by`; whether it now has it. If not it must wait.
    pub fn lock(&mut self, by: usize, now: Ns) -> bool {
        if self.state == FREE {
            (self.state, self.holder) = (LOCKED, by as u32);
            return true;
        }
        if self.state == LOCKED {
            self.contended_since = now;
        }
        self.state = CONTENDED;
        false
    }

    /// An attempt of a thread that has waited, or comes from a condition.
    pub fn lock_contended(&mut self, by: usize, now: Ns) -> bool {
        let taken = std::mem::replace(&mut self.state, CONTENDED) == FREE;
        if taken {
            (self.holder, self.contended_since) = (by as u32, now);
        }
        taken
    }

    /// The thread that has it, and since when others may wait for it; `None`: nobody has it.
    pub fn held(&self) -> Option<(usize, Ns)> {
        (self.state != FREE).then_some((self.holder as usize, self.contended_since))
    }

    /// Whether a waiter must be woken.
    pub fn unlock(&mut self) -> bool {
        std::mem::replace(&mut self.state, FREE) == CONTENDED
    }

    #[cfg(test)]
    pub fn is_free(&self) -> bool {
        self.state == FREE
    }
}

/// A condition variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    sleeping: u32,
    entering: u32,
    granted: u32,
    /// When a waiter was last woken: the release of its next job.
    pub woken_at: Ns,
}

impl Condition {
    /// A thread begins to wait, and unlocks the mutex next.
    pub fn enter(&mut self) {
        self.entering += 1;
    }

    /// The mutex is unlocked: whether the thread must sleep.
    pub fn sleep(&mut self) -> bool {
        assert!(self.entering > 0, "a thread sleeps on a condition that it did not enter");
        self.entering -= 1;
        if self.granted > 0 {
            self.granted -= 1;
            return false;
        }
        self.sleeping += 1;
        true
    }

    /// Whether there is somebody to wake: a system call is due.
    pub fn signal(&mut self, now: Ns) -> bool {
        if self.sleeping > 0 {
            self.sleeping -= 1;
        } else if self.entering > self.granted {
            self.granted += 1;
        } else {
            return false;
        }
        self.woken_at = now;
        true
    }

    /// As [`Condition::signal`], for all of them.
    pub fn broadcast(&mut self, now: Ns) -> bool {
        if self.sleeping == 0 && self.entering == self.granted {
            return false;
        }
        self.sleeping = 0;
        self.granted = self.entering;
        self.woken_at = now;
        true
    }
}

/// A counting semaphore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Semaphore {
    value: u32,
    waiters: u32,
    /// When it was last posted while somebody waited.
    pub woken_at: Ns,
}

impl Semaphore {
    /// With a value to begin with.
    pub fn of(value: u32) -> Semaphore {
        Semaphore { value, ..Semaphore::default() }
    }

    /// Whether there is nothing to take.
    pub fn is_down(&self) -> bool {
        self.value == 0
    }

    /// Whether a waiter must be woken.
    pub fn post(&mut self, now: Ns) -> bool {
        self.value = self.value.saturating_add(1);
        if self.waiters > 0 {
            self.woken_at = now;
        }
        self.waiters > 0
    }

    /// Takes one, or registers as a waiter that must sleep.
    pub fn wait(&mut self) -> bool {
        if self.value > 0 {
            self.value -= 1;
            return true;
        }
        self.waiters += 1;
        false
    }

    /// A waiter woke up: whether it got one; `give_up`: it goes on without.
    pub fn wait_again(&mut self, give_up: bool) -> bool {
        if self.value == 0 && !give_up {
            return false;
        }
        self.value = self.value.saturating_sub(1);
        self.waiters -= 1;
        true
    }

    /// Whether somebody waits.
    pub fn has_waiters(&self) -> bool {
        self.waiters > 0
    }
}

/// A periodic timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timer {
    /// The last expiry that was set; `None` before the first use.
    pub next: Option<Ns>,
    pub absolute: bool,
}

impl Timer {
    /// Sets the next expiry: a period after the last one, or after `first` at the first use.
    pub fn advance(&mut self, first: Ns, period: Ns) -> Ns {
        let next = self.next.unwrap_or(first).saturating_add(period);
        self.next = Some(next);
        next
    }

    /// The expiry has passed already. A relative timer forgets the lost time, an absolute one
    /// catches up. Returns the expiry from which the next period counts.
    pub fn missed(&mut self, expiry: Ns, now: Ns) -> Ns {
        let next = if self.absolute { expiry } else { now };
        self.next = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uncontended_mutex_makes_no_call_and_a_contended_one_wakes() {
        let mut mutex = Mutex::default();
        assert!(mutex.lock(0, 5));
        assert!(!mutex.unlock());
        assert!(mutex.lock(0, 5));
        assert!(!mutex.lock(0, 5), "held by another");
        assert!(mutex.unlock(), "a waiter must be woken");
        assert!(mutex.lock_contended(1, 9));
        assert!(mutex.unlock(), "after waiting nobody knows whether others wait");
        assert!(mutex.is_free());
    }

    #[test]
    fn a_signal_between_unlock_and_sleep_is_not_lost() {
        let mut condition = Condition::default();
        assert!(!condition.signal(1), "nobody waits: no memory");
        condition.enter();
        assert!(condition.signal(2));
        assert!(!condition.signal(3), "one waiter takes one signal");
        assert!(!condition.sleep(), "granted");
        condition.enter();
        assert!(condition.sleep());
        assert!(condition.signal(4));
        assert!(!condition.signal(5));
    }

    #[test]
    fn a_semaphore_remembers_and_a_slow_waiter_sleeps_again() {
        let mut semaphore = Semaphore::default();
        assert!(!semaphore.post(0));
        assert!(semaphore.wait());
        assert!(!semaphore.wait(), "sleeps");
        assert!(semaphore.post(1), "wakes it");
        assert!(semaphore.wait(), "another thread is faster");
        assert!(!semaphore.wait_again(false));
        assert!(semaphore.post(2));
        assert!(semaphore.wait_again(false));
        assert!(!semaphore.has_waiters());
    }

    #[test]
    fn a_missed_relative_timer_restarts_and_an_absolute_one_catches_up() {
        for (absolute, expected) in [(false, 75), (true, 60)] {
            let mut timer = Timer { next: None, absolute };
            assert_eq!(timer.advance(0, 20), 20);
            assert_eq!(timer.advance(0, 20), 40);
            timer.missed(40, 55);
            assert_eq!(timer.advance(0, 20), expected);
        }
    }
}
