// SPDX-License-Identifier: GPL-2.0-or-later
//! A thread: the place in its program, and what it does by itself.

use super::NO_TIME;
use super::code::{ENDING, EventKind};
use crate::EVENT_WORK;
use schedtwin_types::{CpuMask, Mark, Mode, Ns, Op, Policy, SchedAttr, TaskGroupId};

/// The state of a thread between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not there: not born yet, or it has ended.
    Absent,
    /// At the instruction `pc`.
    Execute,
    /// Woken from a mutex.
    LockRetry,
    /// The mutex of a condition wait is unlocked.
    Unlocked,
    /// The condition wait is over, the mutex is to be taken back.
    Relock,
    /// A piece of `runtime` is done.
    Chunk,
    Slept,
    /// A timer's slack is told.
    TimerSleep,
    TimerWoken,
    SemaphoreWoken,
    /// A call of `iorun` is over.
    Write,
    /// Thread 0 waits for the end of the thread `reference`.
    Joins,
    /// Recorded work is done.
    Worked,
    /// Sleeps until the time of its instruction.
    Timed,
    /// Sleeps for the ticket of its instruction.
    Waits,
    /// Sleeps until another thread has come to a sleep.
    HandsOver,
    /// Has no more of its recording.
    Over,
    /// Has read, and lacks `reference` bytes less what it got.
    Reads,
    /// Has asked which CPU it runs on, to lock that.
    AsksCpu,
    /// Spins for the lock of the CPU `reference`.
    SpinsFor,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) state: State,
    /// The last event neither worked nor called the kernel.
    pub(super) quiet: bool,
    /// The current job has begun its work.
    pub(super) working: bool,
    pub(super) forked: bool,
    pub(super) pc: u32,
    pub(super) task: u32,
    pub(super) phase: u32,
    pub(super) phase_loop: u32,
    pub(super) task_loop: u32,
    /// Explicit `lock`s minus `unlock`s.
    pub(super) locks: i32,
    pub(super) first_own_timer: u32,
    pub(super) released: Ns,
    /// An expiry, the beginning of a `runtime`, what an `iorun` has written, a count, bytes or a CPU.
    pub(super) reference: Ns,
    pub(super) t_first: Ns,
    pub(super) attributes: SchedAttr,
    pub(super) cpus: CpuMask,
    /// The affinity it was created with.
    pub(super) default_cpus: CpuMask,
    pub(super) group: TaskGroupId,
}

impl Thread {
    /// A thread at its first instruction that is not there yet.
    pub(super) fn new(task: u32, pc: u32, all_cpus: CpuMask) -> Thread {
        Thread {
            state: State::Absent,
            quiet: false,
            working: false,
            forked: false,
            pc,
            task,
            phase: 0,
            phase_loop: 0,
            task_loop: 0,
            locks: 0,
            first_own_timer: 0,
            released: 0,
            reference: 0,
            t_first: 0,
            attributes: SchedAttr::default(),
            cpus: all_cpus,
            default_cpus: all_cpus,
            group: TaskGroupId::ROOT,
        }
    }

    /// Gives it what a new thread has of the one that starts it.
    pub(super) fn inherit(&mut self, parent: &Thread) {
        (self.attributes, self.group) = (parent.attributes, parent.group);
        (self.cpus, self.default_cpus) = (parent.cpus, parent.cpus);
    }

    /// Goes on elsewhere.
    pub(super) fn goto(&mut self, pc: u32) {
        self.pc = pc;
        self.state = State::Execute;
    }

    /// To the next instruction.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.pc += 1;
        self.state = State::Execute;
    }

    /// The next job, if it has not begun, should begin at `when`.
    #[inline]
    pub(super) fn release(&mut self, when: Ns) {
        if !self.working {
            self.released = when;
        }
    }

    /// A system call or work follows.
    #[inline]
    pub(super) fn busy(&mut self, state: State) {
        self.quiet = false;
        self.state = state;
    }

    /// The job is done; the next one is released now, unless it waits.
    pub(super) fn job_done(&mut self, now: Ns) -> Op {
        self.working = false;
        let released = std::mem::replace(&mut self.released, now);
        if self.attributes.policy == Policy::Deadline {
            let deadline = self.attributes.dl.deadline;
            return Op::Mark(Mark::DeadlineJobDone { released, deadline });
        }
        Op::Mark(Mark::JobDone { released })
    }

    /// An event begins, or the work goes on that it is preceded by.
    pub(super) fn event(
        &mut self,
        running: bool,
        now: Ns,
        next: u32,
        kind: EventKind,
        ends_job: bool,
    ) -> Op {
        if !running {
            if self.locks <= 0 {
                self.pc = ENDING;
                return NO_TIME;
            }
            if !matches!(kind, EventKind::Lock | EventKind::Unlock) {
                self.pc = next;
                return NO_TIME;
            }
        }
        if self.quiet {
            self.quiet = false;
            return Op::Compute { work: EVENT_WORK, mode: Mode::User };
        }
        if ends_job && self.working {
            return self.job_done(now);
        }
        self.quiet = true;
        match kind {
            EventKind::Work => self.working = true,
            EventKind::Lock => self.locks += 1,
            EventKind::Unlock => self.locks -= 1,
            EventKind::Plain => {}
        }
        self.pc += 1;
        NO_TIME
    }
}
