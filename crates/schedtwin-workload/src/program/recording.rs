// SPDX-License-Identifier: GPL-2.0-or-later
//! Recorded threads: tickets, hand-overs, and the interrupts of recorded devices.
//!
//! **A job** is what a thread does between two sleeps. It is released by what ended the sleep: the recorded time of the
//! interrupt, or the post of the waker; it is done when the thread is about to sleep again.
//!
//! **Timer slack.** A fair task's sleep ends up to [`TIMER_SLACK`] late unless an interrupt comes anyway.
//! The recorded wakeup already happened at its time, slack included, so the sleep asks for that much
//! less: it ends at its recorded time, or up to 50 us early where another timer expires on that CPU.

use super::code::Instruction;
use super::thread::State;
use super::{END_FUTEX, Interpreter, NO_TIME, wait, wake};
use crate::ThreadChanges;
use crate::recorded::{FRAME_SLICES, Position};
use schedtwin_types::{
    CpuId, CpuMask, FutexId, Mark, Mode, NEVER, Ns, Op, Policy, SchedAttr, Syscall, ThreadId, Work,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Linux's default `timer_slack_ns` (init/init_task.c).
const TIMER_SLACK: Ns = 50_000;
/// Highest priority number of a real-time task plus one (`MAX_RT_PRIO`).
const MAX_RT_PRIO: i32 = 100;
/// Nice 0 (`DEFAULT_PRIO`).
const DEFAULT_PRIO: i32 = 120;
/// Interrupt lines of a run: each recorded CPU has one, or shares it with others beyond that number.
const LINES_MAX: usize = 32;

/// The facts of a recording that its threads share.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordingCode {
    /// By the numbers of threads less 1.
    pub threads: Vec<RecordedThreadCode>,
    /// By their numbers.
    pub tickets: Vec<Ticket>,
    /// Sets of CPUs that threads are bound to.
    pub masks: Vec<CpuMask>,
    /// Thread, of those behind thread 0, and instruction that a hand-over waits for.
    pub handovers: Vec<(u32, u32)>,
    /// The recorded period of the frames of each slice.
    pub frame_periods: [Ns; FRAME_SLICES.len()],
    /// Interrupts of devices, in the order of their times.
    pub interrupts: Vec<DeviceInterrupt>,
    /// Limits of clocks that user space sets, in the order of their times.
    pub limits: Vec<FrequencyLimits>,
    /// From the recording's beginning to its end.
    pub span: Ns,
    /// Work of all threads.
    pub work: u128,
}

/// Limits of a clock that user space sets (`scaling_min_freq`, `scaling_max_freq`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyLimits {
    /// After the recording's beginning.
    pub at: Ns,
    /// A CPU of the clock.
    pub cpu: u16,
    /// The lower one, kHz.
    pub min_khz: u32,
    /// The upper one, kHz.
    pub max_khz: u32,
    /// The highest frequency of that clock, where the machine was another one, kHz: limits are shares of it.
    pub of_khz: Option<u32>,
}

/// A ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Index of the thread whose sleep it is for, of those behind thread 0.
    pub sleeper: u32,
    /// A device posts it as an answer, on that CPU and so long after it was asked.
    pub answer: Option<(u16, u32)>,
}

/// An interrupt of a device that wakes a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeviceInterrupt {
    /// After the recording's beginning.
    pub at: Ns,
    pub cpu: u16,
    /// The ticket that it posts.
    pub ticket: u32,
}

/// A recorded thread.
#[derive(Clone, Debug)]
pub(crate) struct RecordedThreadCode {
    /// At its start.
    pub prio: i32,
    /// The CPUs that it may use, a number among [`RecordingCode::masks`]; `None`: all.
    pub affinity: Option<u32>,
    /// Its policy, where it is told; else the one that its priority suggests.
    pub policy: Option<Policy>,
    /// Its clamps, where they are told.
    pub clamps: Option<(u16, u16)>,
    /// Settings that were put over the recorded ones.
    pub changes: ThreadChanges,
}

/// An interrupt line: its interrupts, as numbers among those of the recording, and which is next.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    interrupts: Arc<[u32]>,
    next: usize,
    /// Answers that were asked for late: when they come, on which CPU, and their tickets.
    late: BinaryHeap<Reverse<(Ns, u16, u32)>>,
}

impl Line {
    /// The lines of a recording's interrupts. CPUs with one line follow each other on it.
    pub(super) fn all(code: &RecordingCode) -> Vec<Line> {
        let mut by_line: Vec<Vec<u32>> = Vec::new();
        for (index, interrupt) in code.interrupts.iter().enumerate() {
            let line = usize::from(interrupt.cpu) % LINES_MAX;
            if line >= by_line.len() {
                by_line.resize_with(line + 1, Vec::new);
            }
            by_line[line].push(index as u32);
        }
        let line = |interrupts: Vec<u32>| Line { interrupts: interrupts.into(), ..Line::default() };
        by_line.into_iter().map(line).collect()
    }
}

/// A recorded thread in a run.
#[derive(Clone, Debug, Default)]
struct RecordedThread {
    /// It has come to the sleep that it is at.
    arrived: bool,
    /// Sleeps that it passed over.
    early: u32,
    prio: i32,
    clamps: Option<(u16, u16)>,
}

/// A recording's progress in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replayed {
    /// By the numbers of threads less 1.
    threads: Vec<RecordedThread>,
    /// Tickets that have been posted.
    pub(super) posted: Vec<bool>,
    /// Threads that wait for a hand-over: its number, and theirs.
    pub(super) handing: Vec<(u32, u32)>,
    /// Interrupts of devices by line.
    pub(super) lines: Vec<Line>,
    /// Changes of limits that have been made.
    next_limits: usize,
    /// Work that is done.
    pub work: u128,
    /// Sleeps that were begun.
    pub sleeps: u64,
}

impl Replayed {
    pub(super) fn new(code: &RecordingCode) -> Replayed {
        Replayed {
            threads: vec![RecordedThread::default(); code.threads.len()],
            posted: vec![false; code.tickets.len()],
            // A thread waits for one at a time.
            handing: Vec::with_capacity(code.threads.len()),
            lines: Line::all(code),
            next_limits: 0,
            work: 0,
            sleeps: 0,
        }
    }
}

impl Interpreter {
    fn recording(&self) -> &RecordingCode {
        self.code.recording.as_ref().expect("recorded instructions are those of a recording")
    }

    /// The position of a thread of a recording, of those behind thread 0.
    pub(crate) fn position(&self, thread: ThreadId) -> Option<Position> {
        self.code.recording.as_ref()?;
        let thread = self.threads[1..].get(thread.index().checked_sub(1)?)?;
        let sleeps = matches!(thread.state, State::Timed | State::Waits | State::Over);
        Some(Position { step: thread.pc, sleeps })
    }

    /// Threads that are at a piece of recorded work, and the whole of it, ns at capacity 1024.
    pub(crate) fn begun(&self) -> impl Iterator<Item = (ThreadId, Work)> {
        self.threads.iter().enumerate().skip(1).filter_map(|(at, thread)| {
            if thread.state != State::Worked {
                return None;
            }
            match self.code.instructions[thread.pc as usize - 1] {
                Instruction::Work(work) => Some((ThreadId(at as u32), work)),
                _ => None,
            }
        })
    }

    /// Recorded sleeps that threads passed over, by thread.
    pub(crate) fn early(&self) -> impl Iterator<Item = (&Arc<str>, u32)> {
        let threads = self.names.iter().skip(1).zip(&self.replayed.threads);
        threads.map(|(name, thread)| (name, thread.early))
    }

    // ---- interrupts ---------------------------------------------------------------------------

    /// The interrupt that is next on a line, and whether it is one that was asked for late.
    fn due(&self, line: usize) -> Option<(DeviceInterrupt, bool)> {
        let Line { interrupts, next, late } = &self.replayed.lines[line];
        let all = &self.recording().interrupts;
        let recorded = interrupts.get(*next).map(|index| all[*index as usize]);
        match late.peek() {
            Some(&Reverse((at, cpu, ticket))) if recorded.is_none_or(|due| at < due.at) => {
                Some((DeviceInterrupt { at, cpu, ticket }, true))
            }
            _ => recorded.map(|due| (due, false)),
        }
    }

    pub(super) fn line_cpu(&self, line: usize) -> CpuId {
        let cpu = CpuId(self.due(line).map_or(0, |(due, _)| due.cpu));
        if self.all_cpus.contains(cpu) { cpu } else { CpuId(0) }
    }

    pub(super) fn line_at(&self, line: usize) -> Ns {
        match self.due(line) {
            Some((due, _)) if self.begin > 0 => self.begin + due.at,
            _ => NEVER,
        }
    }

    /// Posts what an interrupt brings.
    pub(super) fn line_interrupt(&mut self, line: usize, now: Ns, wakes: &mut Vec<FutexId>) {
        while let Some((due, late)) = self.due(line)
            && self.begin + due.at <= now
        {
            let of_line = &mut self.replayed.lines[line];
            match late {
                true => drop(of_line.late.pop()),
                false => of_line.next += 1,
            }
            wakes.extend(self.post(due.ticket, now));
        }
        self.devices_changed = true;
    }

    // ---- limits of clocks ---------------------------------------------------------------------

    /// When limits change next; `NEVER`: not again, or the recording has not begun.
    pub(crate) fn limits_at(&self) -> Ns {
        let recording = self.code.recording.as_ref().filter(|_| self.begin > 0);
        let next = recording.and_then(|of| of.limits.get(self.replayed.next_limits));
        next.map_or(NEVER, |next| self.begin + next.at)
    }

    /// The limits that change next.
    pub(crate) fn take_limits(&mut self) -> Option<FrequencyLimits> {
        let next = self.code.recording.as_ref()?.limits.get(self.replayed.next_limits)?;
        self.replayed.next_limits += 1;
        Some(*next)
    }

    // ---- threads ------------------------------------------------------------------------------

    /// Executes an instruction of a recorded thread.
    pub(super) fn recorded(&mut self, at: usize, instruction: Instruction, now: Ns) -> Op {
        let call = match instruction {
            Instruction::Until { at: after, least } => return self.until(at, after, least, now),
            Instruction::Wait { ticket } => return self.wait_for(at, ticket, now),
            Instruction::After(handover) => return self.after(at, handover),
            Instruction::Over => return self.over(at),
            Instruction::Work(work) => {
                self.threads[at].working = true;
                self.advance(at);
                self.threads[at].state = State::Worked;
                return Op::Compute { work, mode: Mode::User };
            }
            Instruction::Post { ticket } => {
                let futex = self.post(ticket, now);
                futex.map(|futex| Syscall::FutexWake { futex, count: 1 })
            }
            Instruction::Bind => self.bind(at, self.recording().threads[at - 1].affinity),
            Instruction::Assume => {
                let RecordedThreadCode { prio, clamps, .. } = self.recording().threads[at - 1];
                let recorded = &mut self.replayed.threads[at - 1];
                (recorded.prio, recorded.clamps) = (prio, clamps);
                self.threads[at].released = now;
                self.set_recorded(at)
            }
            Instruction::Priority(prio) => {
                self.replayed.threads[at - 1].prio = prio;
                self.set_recorded(at)
            }
            Instruction::Clamps(min, max) => {
                self.replayed.threads[at - 1].clamps = Some((min, max));
                self.set_recorded(at)
            }
            Instruction::Affinity(mask) => self.bind(at, Some(mask)),
            other => return self.live(at, other, now),
        };
        self.advance(at);
        call.map_or(NO_TIME, Op::Call)
    }

    /// A recorded piece of work is done.
    pub(super) fn worked(&mut self, at: usize) -> Op {
        let done = self.code.instructions[self.threads[at].pc as usize - 1];
        if let Instruction::Work(work) = done {
            self.replayed.work += u128::from(work);
        }
        self.threads[at].state = State::Execute;
        NO_TIME
    }

    /// Goes on behind a recorded sleep.
    fn passes(&mut self, at: usize) -> Op {
        self.replayed.threads[at - 1].arrived = false;
        self.advance(at);
        NO_TIME
    }

    fn until(&mut self, at: usize, after: Ns, least: u32, now: Ns) -> Op {
        if let Some(op) = self.comes_to_sleep(at) {
            return op;
        }
        let slept = self.threads[at].state == State::Timed;
        let answered = if least > 0 { now + Ns::from(least) } else { 0 };
        let until = (self.begin + after).max(answered);
        let thread = &mut self.threads[at];
        if !slept && until > now {
            thread.state = State::Timed;
            // Nothing was recorded of the wait for the beginning.
            self.replayed.sleeps += u64::from(after > 0);
            thread.released = until;
            let slack =
                if self.replayed.threads[at - 1].prio >= MAX_RT_PRIO { TIMER_SLACK } else { 0 };
            let until = until.saturating_sub(slack).max(now + 1);
            return Op::Call(Syscall::NanosleepUntil { until });
        }
        if !slept {
            self.replayed.threads[at - 1].early += u32::from(after > 0);
            thread.released = until;
        }
        self.passes(at)
    }

    fn wait_for(&mut self, at: usize, ticket: u32, now: Ns) -> Op {
        if let Some(op) = self.comes_to_sleep(at) {
            return op;
        }
        let waited = self.threads[at].state == State::Waits;
        if !waited && self.replayed.posted[ticket as usize] {
            self.ask_late(ticket, now);
        }
        if !self.replayed.posted[ticket as usize] {
            self.threads[at].state = State::Waits;
            self.replayed.sleeps += u64::from(!waited);
            return wait(self.thread_futex(at));
        }
        if !waited {
            self.replayed.threads[at - 1].early += 1;
            self.threads[at].released = now;
        }
        self.passes(at)
    }

    fn after(&mut self, at: usize, handover: u32) -> Op {
        if self.has_arrived(handover) {
            return self.passes(at);
        }
        if self.threads[at].state != State::HandsOver {
            self.threads[at].state = State::HandsOver;
            self.replayed.handing.push((handover, at as u32));
        }
        wait(self.thread_futex(at))
    }

    fn over(&mut self, at: usize) -> Op {
        if let Some(call) = self.arrives(at) {
            return call;
        }
        self.threads[at].state = State::Over;
        self.recorded_job(at).unwrap_or(wait(END_FUTEX))
    }

    /// Ends a job before a sleep, and lets wakers go on that wait for the sleep.
    fn comes_to_sleep(&mut self, at: usize) -> Option<Op> {
        self.recorded_job(at).or_else(|| self.arrives(at))
    }

    /// The job of a thread that is about to sleep, if it has worked.
    fn recorded_job(&mut self, at: usize) -> Option<Op> {
        let thread = &mut self.threads[at];
        let released = thread.released;
        std::mem::take(&mut thread.working).then_some(Op::Mark(Mark::JobDone { released }))
    }

    /// Whether the thread that a hand-over waits for has come to its sleep.
    fn has_arrived(&self, handover: u32) -> bool {
        let (thread, step) = self.recording().handovers[handover as usize];
        let pc = self.threads[thread as usize + 1].pc;
        pc > step || (pc == step && self.replayed.threads[thread as usize].arrived)
    }

    /// A thread has come to a sleep: the call that lets a waker go on, if one has waited for that.
    fn arrives(&mut self, at: usize) -> Option<Op> {
        self.replayed.threads[at - 1].arrived = true;
        if self.replayed.handing.is_empty() {
            return None;
        }
        let is_it = |(handover, _): &(u32, u32)| {
            self.recording().handovers[*handover as usize].0 as usize + 1 == at
                && self.has_arrived(*handover)
        };
        let found = self.replayed.handing.iter().position(is_it)?;
        let (_, waker) = self.replayed.handing.swap_remove(found);
        Some(wake(self.thread_futex(waker as usize), 1))
    }

    /// A thread waits for something that was there before it asked. An answer comes after it was asked for.
    fn ask_late(&mut self, ticket: u32, now: Ns) {
        if let Some((cpu, ns)) = self.recording().tickets[ticket as usize].answer {
            self.replayed.posted[ticket as usize] = false;
            let at = now + Ns::from(ns) - self.begin;
            let line = usize::from(cpu) % LINES_MAX;
            self.replayed.lines[line].late.push(Reverse((at, cpu, ticket)));
            self.devices_changed = true;
        }
    }

    /// Posts a ticket; the futex of the sleeper, if it sleeps for just that.
    fn post(&mut self, ticket: u32, now: Ns) -> Option<FutexId> {
        self.replayed.posted[ticket as usize] = true;
        let at = self.recording().tickets[ticket as usize].sleeper as usize + 1;
        let sleeper = &mut self.threads[at];
        let at_its_sleep =
            self.code.instructions[sleeper.pc as usize] == (Instruction::Wait { ticket });
        if sleeper.state != State::Waits || !at_its_sleep {
            return None;
        }
        sleeper.released = now;
        Some(self.thread_futex(at))
    }

    /// The call that binds a thread to the CPUs of that mask that the machine has; to all, if it has none of them.
    fn bind(&mut self, at: usize, mask: Option<u32>) -> Option<Syscall> {
        let code = self.recording();
        let present = |cpus: CpuMask| {
            let present = self.all_cpus.and(&cpus);
            (!present.is_empty()).then_some(present)
        };
        let overlaid = code.threads[at - 1].changes.cpus.and_then(present);
        let recorded = mask.and_then(|mask| present(code.masks[mask as usize]));
        let wanted = overlaid.or(recorded).unwrap_or(self.all_cpus);
        let had = std::mem::replace(&mut self.threads[at].cpus, wanted);
        (had != wanted).then_some(Syscall::SchedSetaffinity { mask: wanted })
    }

    /// The call that gives a thread its priority, policy and clamps, if the kernel knows others.
    fn set_recorded(&mut self, at: usize) -> Option<Syscall> {
        let code = &self.recording().threads[at - 1];
        let RecordedThread { prio, clamps, .. } = self.replayed.threads[at - 1];
        let mut wanted = attributes(prio, code.policy);
        // Nobody need say the default, unless a parent's clamps were inherited.
        let said = |clamps: &(u16, u16)| {
            *clamps != clamps_of(prio) || self.threads[at].attributes.util_min.is_some()
        };
        if let Some((min, max)) = clamps.filter(said) {
            (wanted.util_min, wanted.util_max) = (Some(min), Some(max));
        }
        let wanted = code.changes.applied_to(wanted);
        let had = std::mem::replace(&mut self.threads[at].attributes, wanted);
        (had != wanted).then_some(Syscall::SchedSetattr(wanted))
    }
}

/// The scheduling parameters that show as a kernel priority: see the differences in the module above. `told`: the policy
/// that the recording names; it does not count while priority inheritance lends another class.
pub(crate) fn attributes(prio: i32, told: Option<Policy>) -> SchedAttr {
    if prio >= MAX_RT_PRIO {
        let nice = (prio - DEFAULT_PRIO).clamp(-20, 19) as i8;
        let policy = told.filter(|told| matches!(told, Policy::Batch | Policy::Idle | Policy::Ext));
        return SchedAttr { policy: policy.unwrap_or_default(), nice, ..SchedAttr::default() };
    }
    // A damaged trace may name any priority.
    let rt_priority = (MAX_RT_PRIO - 1).saturating_sub(prio).clamp(1, 99) as u8;
    let policy = if told == Some(Policy::Rr) { Policy::Rr } else { Policy::Fifo };
    SchedAttr { policy, rt_priority, ..SchedAttr::default() }
}

/// The clamps of a thread that nobody clamped: real-time threads ask for the highest speed
/// (`sysctl_sched_uclamp_util_min_rt_default`).
pub(crate) fn clamps_of(prio: i32) -> (u16, u16) {
    if prio >= MAX_RT_PRIO { (0, 1024) } else { (1024, 1024) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_become_parameters() {
        let fifo =
            |rt_priority| SchedAttr { policy: Policy::Fifo, rt_priority, ..Default::default() };
        let nice = |nice| SchedAttr { nice, ..Default::default() };
        for (prio, expected) in [
            (120, nice(0)),
            (100, nice(-20)),
            (139, nice(19)),
            (140, nice(19)),
            (i32::MAX, nice(19)),
            (i32::MIN, fifo(99)),
            (98, fifo(1)),
            (89, fifo(10)),
            (0, fifo(99)),
            (-1, fifo(99)),
        ] {
            assert_eq!(attributes(prio, None), expected, "{prio}");
        }
    }

    /// A policy that is told counts within its own class only.
    #[test]
    fn policies_are_those_that_the_recording_tells() {
        use Policy::{Batch, Fifo, Idle, Normal, Rr};
        for (prio, told, expected) in [
            (120, Some(Batch), Batch),
            (139, Some(Idle), Idle),
            (120, Some(Rr), Normal),
            (89, Some(Rr), Rr),
            (89, Some(Idle), Fifo),
            (89, Some(Policy::Deadline), Fifo),
        ] {
            assert_eq!(attributes(prio, told).policy, expected, "{prio} {told:?}");
        }
    }
}
