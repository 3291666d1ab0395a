// SPDX-License-Identifier: GPL-2.0-or-later
//! Executes a recording's threads, one operation at a time.
//!
//! **Thread 0** (`replay`) starts the threads that were there at the beginning, sleeps until the recording's
//! end and exits, which ends the run.
//!
//! **A job** is what a thread does between two sleeps. It is released by what ended the sleep: the recorded time of the
//! interrupt, or the post of the waker; it is done when the thread is about to sleep again.
//!
//! **Timer slack.** A fair task's sleep ends up to [`TIMER_SLACK`] late unless an interrupt comes anyway.
//! The recorded wakeup already happened at its time, slack included, so the sleep asks for that much
//! less: it ends at its recorded time, or up to 50 us early where another timer expires on that CPU.

use super::{Code, DeviceInterrupt, FRAME_SLICES, Frames, Position, Step};
use schedtwin_types::{
    CpuId, CpuMask, FutexId, Mark, Mode, NEVER, Ns, Op, Outcome, Policy, ProcessId, SchedAttr,
    Syscall, ThreadId,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Linux's default `timer_slack_ns` (init/init_task.c).
const TIMER_SLACK: Ns = 50_000;

/// Highest priority number of a real-time task plus one (`MAX_RT_PRIO`).
const MAX_RT_PRIO: i32 = 100;
/// Nice 0 (`DEFAULT_PRIO`).
const DEFAULT_PRIO: i32 = 120;

/// The futex on which threads sleep whose recorded work is over.
const END_FUTEX: FutexId = FutexId(0);

/// How much of a recording is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Work that is done, ns at capacity 1024.
    pub work: u128,
    /// All of it, path costs taken off.
    pub work_recorded: u128,
    /// Recorded sleeps in which the thread slept: it does not if what it waits for is there already.
    pub sleeps: u64,
    /// Those in which it did not, by the name of the thread: the most first.
    pub early: Vec<(Arc<str>, u64)>,
    /// Frames by slice.
    pub frames: Vec<Frames>,
}

/// Interrupt lines of a run: each recorded CPU has one, or shares it with others beyond that number.
const LINES_MAX: usize = 32;

/// An interrupt line: its interrupts, as numbers among those of the recording, and which is next.
#[derive(Clone, Debug, Default)]
struct Line {
    interrupts: Arc<[u32]>,
    next: usize,
    /// Answers that were asked for late: when they come, on which CPU, and their tickets.
    late: BinaryHeap<Reverse<(Ns, u16, u32)>>,
}

/// All threads of a recording in a run.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    code: Arc<Code>,
    threads: Vec<Thread>,
    /// Tickets that have been posted.
    posted: Vec<bool>,
    main: Main,
    /// When the recording begins.
    begin: Ns,
    nr_cpus: usize,
    /// Interrupts of devices by line, and whether that of the next one has changed.
    lines: Vec<Line>,
    devices_changed: bool,
    /// Threads that wait for a hand-over: its number, and theirs.
    handing: Vec<(u32, u32)>,
    /// Slice and duration of each frame that has ended.
    frames: Vec<(u8, Ns)>,
    /// Work that is done, and sleeps that were begun.
    work: u128,
    sleeps: u64,
    name: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Main {
    Born,
    Clone { next: u32 },
    Sleep,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Born,
    Pinned,
    Going,
    /// Sleeps until the time of its step.
    Timed,
    /// Sleeps for the ticket of its step.
    Waits,
    /// Sleeps until another thread has come to a sleep.
    HandsOver,
    Over,
}

#[derive(Clone, Debug)]
struct Thread {
    state: State,
    /// Works since it was released.
    working: bool,
    at: u32,
    /// It has come to the step `at`, which is a sleep.
    arrived: bool,
    /// When its open frame of each slice began.
    frame_began: [Ns; FRAME_SLICES.len()],
    released: Ns,
    /// Sleeps that it passed over.
    early: u32,
    /// Parameters that the kernel knows: priority, policy and clamps, and the CPUs that it may use.
    known: SchedAttr,
    affinity: Option<u32>,
    /// The CPUs that a setting binds it to.
    bound: Option<CpuMask>,
    /// Those of its step.
    prio: i32,
    clamps: Option<(u16, u16)>,
    /// Work that is under way.
    computes: u64,
}

impl Replay {
    pub fn new(code: Arc<Code>, nr_cpus: usize) -> Replay {
        let thread = |thread: &super::ThreadCode| Thread {
            state: State::Born,
            working: false,
            at: thread.first,
            arrived: false,
            frame_began: [0; FRAME_SLICES.len()],
            released: 0,
            early: 0,
            known: SchedAttr::default(),
            affinity: None,
            bound: None,
            prio: DEFAULT_PRIO,
            clamps: None,
            computes: 0,
        };
        Replay {
            threads: code.threads.iter().map(thread).collect(),
            posted: vec![false; code.tickets.len()],
            main: Main::Born,
            begin: 0,
            nr_cpus,
            lines: lines(&code),
            devices_changed: false,
            // A thread waits for one at a time.
            handing: Vec::with_capacity(code.threads.len()),
            frames: Vec::with_capacity(code.nr_frames),
            work: 0,
            sleeps: 0,
            name: Arc::from("replay"),
            code,
        }
    }

    pub fn name(&self, thread: ThreadId) -> &str {
        match thread.index().checked_sub(1) {
            None => &self.name,
            Some(at) => &self.code.threads[at].name,
        }
    }

    pub fn nr_threads(&self) -> usize {
        self.threads.len() + 1
    }

    pub fn nr_futexes(&self) -> usize {
        self.threads.len() + 1
    }

    pub fn finished(&self) -> bool {
        self.main == Main::Done
    }

    /// The next thing that thread 0 does is to end the run.
    pub fn shutdown(&mut self) {
        self.main = Main::Sleep;
    }

    pub fn warmup(&self) -> Ns {
        self.code.warmup
    }

    pub fn done(&self) -> Done {
        let mut by_name: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        for (thread, code) in self.threads.iter().zip(&self.code.threads) {
            if thread.early > 0 {
                *by_name.entry(code.name.clone()).or_default() += u64::from(thread.early);
            }
        }
        let frames = Frames::of(self.frames.iter().copied(), &self.code.frame_periods);
        let mut early: Vec<_> = by_name.into_iter().collect();
        early.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Done { work: self.work, work_recorded: self.code.work, sleeps: self.sleeps, early, frames }
    }

    /// Where a thread is, of those behind thread 0.
    pub fn position(&self, thread: ThreadId) -> Option<Position> {
        let thread = &self.threads[thread.index().checked_sub(1)?];
        let sleeps = matches!(thread.state, State::Timed | State::Waits | State::Over);
        Some(Position { step: thread.at, sleeps })
    }

    /// When the recording begins; 0 before the run has.
    pub fn begin(&self) -> Ns {
        self.begin
    }

    pub fn nr_devices(&self) -> usize {
        self.lines.len()
    }

    /// The interrupt that is next on a line, and whether it is one that was asked for late.
    fn due(&self, line: usize) -> Option<(DeviceInterrupt, bool)> {
        let Line { interrupts, next, late } = &self.lines[line];
        let recorded = interrupts.get(*next).map(|index| self.code.interrupts[*index as usize]);
        match late.peek() {
            Some(&Reverse((at, cpu, ticket))) if recorded.is_none_or(|due| at < due.at) => {
                Some((DeviceInterrupt { at, cpu, ticket }, true))
            }
            _ => recorded.map(|due| (due, false)),
        }
    }

    pub fn device_cpu(&self, line: usize) -> CpuId {
        let cpu = self.due(line).map_or(0, |(due, _)| due.cpu);
        CpuId(if usize::from(cpu) < self.nr_cpus { cpu } else { 0 })
    }

    pub fn device_at(&self, line: usize) -> Ns {
        match self.due(line) {
            Some((due, _)) if self.main != Main::Born => self.begin + due.at,
            _ => NEVER,
        }
    }

    pub fn take_devices_changed(&mut self) -> bool {
        std::mem::take(&mut self.devices_changed)
    }

    /// Posts what an interrupt brings.
    pub fn device_interrupt(&mut self, line: usize, now: Ns, wakes: &mut Vec<FutexId>) {
        while let Some((due, late)) = self.due(line)
            && self.begin + due.at <= now
        {
            match late {
                true => drop(self.lines[line].late.pop()),
                false => self.lines[line].next += 1,
            }
            wakes.extend(self.post(due.ticket, now));
        }
        self.devices_changed = true;
    }

    pub fn next(&mut self, thread: ThreadId, _outcome: Outcome, now: Ns) -> Op {
        match thread.index().checked_sub(1) {
            None => self.next_of_main(now),
            Some(index) => self.next_of(index, now),
        }
    }

    fn next_of_main(&mut self, now: Ns) -> Op {
        if self.main == Main::Born {
            self.begin = now + self.code.warmup;
            self.devices_changed = true;
            self.main = Main::Clone { next: 0 };
        }
        if let Main::Clone { next } = self.main {
            let rest = self.code.threads.iter().enumerate().skip(next as usize);
            if let Some((index, _)) = rest.into_iter().find(|(_, thread)| !thread.forked) {
                self.main = Main::Clone { next: index as u32 + 1 };
                return Op::Call(clone(ThreadId(index as u32 + 1)));
            }
            self.main = Main::Sleep;
            return Op::Call(Syscall::NanosleepUntil { until: self.begin + self.code.span });
        }
        self.main = Main::Done;
        Op::Exit
    }

    fn next_of(&mut self, index: usize, now: Ns) -> Op {
        let work = std::mem::take(&mut self.threads[index].computes);
        self.work += u128::from(work);
        match self.threads[index].state {
            State::Born => {
                self.threads[index].state = State::Pinned;
                if let Some(call) = self.bind(index, self.code.threads[index].affinity) {
                    return Op::Call(call);
                }
                return self.next_of(index, now);
            }
            State::Pinned => {
                let code = &self.code.threads[index];
                let thread = &mut self.threads[index];
                (thread.state, thread.released) = (State::Going, now);
                (thread.prio, thread.clamps) = (code.prio, code.clamps);
                if let Some(call) = self.set_attributes(index) {
                    return Op::Call(call);
                }
            }
            State::Over => return Op::Call(Syscall::FutexWait { futex: END_FUTEX }),
            State::Going | State::Timed | State::Waits | State::HandsOver => {}
        }
        loop {
            let at = self.threads[index].at;
            if at == self.code.threads[index].end {
                if let Some(call) = self.arrives(index) {
                    return Op::Call(call);
                }
                self.threads[index].state = State::Over;
                return self
                    .job_done(index)
                    .unwrap_or(Op::Call(Syscall::FutexWait { futex: END_FUTEX }));
            }
            let step = self.code.steps[at as usize];
            match step {
                Step::Until { at: after, least } => {
                    if let Some(mark) = self.job_done(index) {
                        return mark;
                    }
                    if let Some(call) = self.arrives(index) {
                        return Op::Call(call);
                    }
                    let slept = self.threads[index].state == State::Timed;
                    let answered = if least > 0 { now + Ns::from(least) } else { 0 };
                    let until = (self.begin + after).max(answered);
                    if !slept && until > now {
                        self.threads[index].state = State::Timed;
                        // Nothing was recorded of the wait for the beginning.
                        self.sleeps += u64::from(after > 0);
                        self.threads[index].released = until;
                        let fair = self.threads[index].prio >= MAX_RT_PRIO;
                        let slack = if fair { TIMER_SLACK } else { 0 };
                        let until = until.saturating_sub(slack).max(now + 1);
                        return Op::Call(Syscall::NanosleepUntil { until });
                    }
                    if !slept {
                        self.threads[index].early += u32::from(after > 0);
                        self.threads[index].released = until;
                    }
                }
                Step::Wait { ticket } => {
                    if let Some(mark) = self.job_done(index) {
                        return mark;
                    }
                    if let Some(call) = self.arrives(index) {
                        return Op::Call(call);
                    }
                    let waited = self.threads[index].state == State::Waits;
                    if !waited && self.posted[ticket as usize] {
                        self.ask_late(ticket, now);
                    }
                    if !self.posted[ticket as usize] {
                        self.threads[index].state = State::Waits;
                        self.sleeps += u64::from(!waited);
                        return Op::Call(Syscall::FutexWait { futex: futex_of(index) });
                    }
                    if !waited {
                        self.threads[index].early += 1;
                        self.threads[index].released = now;
                    }
                }
                Step::After(handover) if !self.has_arrived(handover) => {
                    if self.threads[index].state != State::HandsOver {
                        self.threads[index].state = State::HandsOver;
                        self.handing.push((handover, index as u32));
                    }
                    return Op::Call(Syscall::FutexWait { futex: futex_of(index) });
                }
                _ => {}
            }
            let thread = &mut self.threads[index];
            thread.state = State::Going;
            thread.at += 1;
            thread.arrived = false;
            match step {
                Step::Until { .. } | Step::Wait { .. } | Step::After(_) => {}
                Step::FrameBegin(slice) => thread.frame_began[usize::from(slice)] = now,
                Step::FrameEnd(slice) => {
                    let began = thread.frame_began[usize::from(slice)];
                    self.frames.push((slice, now - began));
                }
                Step::Work(work) => {
                    thread.working = true;
                    thread.computes = work;
                    return Op::Compute { work, mode: Mode::User };
                }
                Step::Post { ticket } => {
                    if let Some(futex) = self.post(ticket, now) {
                        return Op::Call(Syscall::FutexWake { futex, count: 1 });
                    }
                }
                Step::Priority(prio) => {
                    thread.prio = prio;
                    if let Some(call) = self.set_attributes(index) {
                        return Op::Call(call);
                    }
                }
                Step::Clamps(min, max) => {
                    thread.clamps = Some((min, max));
                    if let Some(call) = self.set_attributes(index) {
                        return Op::Call(call);
                    }
                }
                Step::Affinity(mask) => {
                    if let Some(call) = self.bind(index, Some(mask)) {
                        return Op::Call(call);
                    }
                }
                Step::Clone(child) => {
                    // It inherits; see State::Born.
                    let (known, affinity, bound) = (thread.known, thread.affinity, thread.bound);
                    let child_thread = &mut self.threads[child.index() - 1];
                    (child_thread.known, child_thread.affinity) = (known, affinity);
                    child_thread.bound = bound;
                    return Op::Call(clone(child));
                }
                Step::Exec => return Op::Call(Syscall::Execve),
                Step::Exit => return Op::Exit,
            }
        }
    }

    /// The job of a thread that is about to sleep, if it has worked.
    fn job_done(&mut self, index: usize) -> Option<Op> {
        let thread = &mut self.threads[index];
        let released = thread.released;
        std::mem::take(&mut thread.working).then_some(Op::Mark(Mark::JobDone { released }))
    }

    /// Whether the thread that a hand-over waits for has come to its sleep.
    fn has_arrived(&self, handover: u32) -> bool {
        let (thread, step) = self.code.handovers[handover as usize];
        let thread = &self.threads[thread as usize];
        thread.at > step || (thread.at == step && thread.arrived)
    }

    /// A thread has come to a sleep: the call that lets a waker go on, if one has waited for that.
    fn arrives(&mut self, index: usize) -> Option<Syscall> {
        self.threads[index].arrived = true;
        let is_it = |(handover, _): &(u32, u32)| {
            self.code.handovers[*handover as usize].0 as usize == index
                && self.has_arrived(*handover)
        };
        let (_, waker) = self.handing.swap_remove(self.handing.iter().position(is_it)?);
        Some(Syscall::FutexWake { futex: futex_of(waker as usize), count: 1 })
    }

    /// A thread waits for something that was there before it asked. An answer comes after it was asked for.
    fn ask_late(&mut self, ticket: u32, now: Ns) {
        if let Some((cpu, ns)) = self.code.tickets[ticket as usize].answer {
            self.posted[ticket as usize] = false;
            let at = now + Ns::from(ns) - self.begin;
            let line = usize::from(cpu) % LINES_MAX;
            self.lines[line].late.push(Reverse((at, cpu, ticket)));
            self.devices_changed = true;
        }
    }

    /// Posts a ticket; the futex of the sleeper, if it sleeps for just that.
    fn post(&mut self, ticket: u32, now: Ns) -> Option<FutexId> {
        self.posted[ticket as usize] = true;
        let index = self.code.tickets[ticket as usize].sleeper as usize;
        let sleeper = &mut self.threads[index];
        let sleeps_for_it = sleeper.state == State::Waits
            && self.code.steps[sleeper.at as usize] == (Step::Wait { ticket });
        sleeps_for_it.then(|| {
            sleeper.released = now;
            futex_of(index)
        })
    }

    /// The call that binds a thread to the CPUs of that mask that the machine has; to all, if it has none of them.
    fn bind(&mut self, index: usize, mask: Option<u32>) -> Option<Syscall> {
        let all = CpuMask::first(self.nr_cpus);
        let cpus = |mask: Option<u32>| {
            let wanted = mask.map_or(all, |mask| all.and(&self.code.masks[mask as usize]));
            if wanted.is_empty() { all } else { wanted }
        };
        let overlaid = self.code.threads[index].changes.cpus;
        let overlaid = overlaid.map(|cpus| all.and(&cpus)).filter(|cpus| !cpus.is_empty());
        // What the thread has: of its own, or inherited.
        let had = self.threads[index].bound.unwrap_or(cpus(self.threads[index].affinity));
        let wanted = overlaid.unwrap_or(cpus(mask));
        (self.threads[index].affinity, self.threads[index].bound) = (mask, overlaid);
        (had != wanted).then_some(Syscall::SchedSetaffinity { mask: wanted })
    }

    /// The call that gives a thread its priority, policy and clamps, if the kernel knows others.
    fn set_attributes(&mut self, index: usize) -> Option<Syscall> {
        let thread = &mut self.threads[index];
        let mut wanted = attributes(thread.prio, self.code.threads[index].policy);
        // Nobody need say the default, unless a parent's clamps were inherited.
        let said = |clamps: &(u16, u16)| {
            *clamps != clamps_of(thread.prio) || thread.known.util_min.is_some()
        };
        if let Some((min, max)) = thread.clamps.filter(said) {
            (wanted.util_min, wanted.util_max) = (Some(min), Some(max));
        }
        let wanted = self.code.threads[index].changes.applied_to(wanted);
        let had = std::mem::replace(&mut thread.known, wanted);
        (had != wanted).then_some(Syscall::SchedSetattr(wanted))
    }
}

/// The lines of a recording's interrupts. CPUs with one line follow each other on it.
fn lines(code: &Code) -> Vec<Line> {
    let mut by_line: Vec<Vec<u32>> = Vec::new();
    for (index, interrupt) in code.interrupts.iter().enumerate() {
        let line = usize::from(interrupt.cpu) % LINES_MAX;
        if line >= by_line.len() {
            by_line.resize_with(line + 1, Vec::new);
        }
        by_line[line].push(index as u32);
    }
    by_line
        .into_iter()
        .map(|interrupts| Line { interrupts: interrupts.into(), ..Line::default() })
        .collect()
}

/// The futex of a thread's own.
fn futex_of(index: usize) -> FutexId {
    FutexId(index as u32 + 1)
}

/// The scheduling parameters that show as a kernel priority: see the differences in the module above. `told`: the policy
/// that the recording names; it does not count while priority inheritance lends another class.
pub(super) fn attributes(prio: i32, told: Option<Policy>) -> SchedAttr {
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
pub(super) fn clamps_of(prio: i32) -> (u16, u16) {
    if prio >= MAX_RT_PRIO { (0, 1024) } else { (1024, 1024) }
}

/// Recordings do not say which threads are of one process, so each is one of its own.
fn clone(thread: ThreadId) -> Syscall {
    Syscall::Clone { thread, process: ProcessId(thread.0) }
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
