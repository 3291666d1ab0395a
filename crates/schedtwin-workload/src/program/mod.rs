// SPDX-License-Identifier: GPL-2.0-or-later
//! Executes a workload's threads, one operation at a time.
//!
//! # Idea
//!
//! Every workload is compiled into the instructions of [`code`]: rt-app files, models of benchmarks, recordings.
//! [`Interpreter`] holds the program counter of every thread and the user memory they share. The twin
//! asks a thread for its next operation whenever the last one is over, at the current time; the
//! thread changes user memory as it goes and answers with what takes time: work, a system call, or
//! the end. Nothing is random but the keyed draws of models, nothing is allocated between forks.
//!
//! # The life of a thread of an rt-app file
//!
//! 1. Thread 0 (`rt-app`) clones all threads, sleeps for `duration` if there is one, then sets
//!    `continue_running` to 0 and wakes everybody who waits; then it joins all threads.
//! 2. A thread waits on a barrier for all others (`t_zero` is when its first thread arrives), then
//!    for its `delay`, then takes its scheduling parameters. Forked threads skip the barrier.
//! 3. Each iteration of a phase sets affinity, then scheduling parameters, only if they differ from
//!    the current ones; then the events follow.
//! 4. When the run is over, a thread goes on only while it holds a mutex, and then only with
//!    `lock` and `unlock`; then it returns to SCHED_OTHER and exits.
//!
//! # Jobs
//!
//! A *job* is the work of one iteration of a phase that has `run` or `runtime` events, the unit in
//! which rt-app writes its log. It is *released* by the last timer expiry, end of sleep or wakeup
//! before its first work (or when the previous job ended, if nothing comes between), and it is
//! *done* when the thread reaches the first event after its last work that can wait (sleep, timer,
//! suspend, wait, sync, barrier, sem_wait), else at the end of the iteration.
//!
//! ```text
//! "run": 1280, "timer": 16000          "suspend": ..., "run": 300
//!
//! timer     timer     timer            resume      resume
//! |=====|   |  ====|  |                |   ===|    |===|
//! ^released ^         ^                ^ released  ^
//!       ^ done     ^ done                     ^ done   ^ done
//! ```
//!
//! Differences: a thread that reaches a wait after the end of the run does not sleep (rt-app can
//! hang there); an event that neither works nor calls the kernel costs [`crate::EVENT_WORK`] when the next
//! one begins; rt-app's log, memory locking and trace markers take no time.

pub(crate) mod amount;
pub mod code;
pub(crate) mod devices;
pub(crate) mod frames;
pub(crate) mod hints;
mod life;
mod memory;
mod models;
pub(crate) mod recording;
mod thread;

use crate::builtin::benchmark::Counted;
use code::{Code, Instruction};
use devices::DeviceState;
use frames::Frames;
use hints::Hints;
use memory::{Condition, Mutex, Semaphore, Timer};
use models::Waiting;
use recording::Replayed;
use schedtwin_types::metric::Metric;
use schedtwin_types::{CpuId, CpuMask, FutexId, Mark, Mode, Ns, Op, Outcome, Syscall, ThreadId};
use std::collections::VecDeque;
use std::sync::Arc;
use thread::{State, Thread};

/// The start barrier's futex; main's waiting for an exit; then mutexes, conditions, semaphores.
const START_FUTEX: FutexId = FutexId(0);
const JOIN_FUTEX: FutexId = FutexId(1);
/// Where threads wait for the end of a workload that is no rt-app file.
const END_FUTEX: FutexId = FutexId(0);
pub(crate) const FIRST_FUTEX: u32 = 2;
/// Steps of a thread in one call of [`Interpreter::next_in_time`]: who calls counts the calls, so that a loop without end is
/// noticed. An iteration has a handful.
pub(crate) const STEPS_AT_ONCE: u32 = 1000;
/// All of rt-app's work is its loop, see [`crate::Programs::work_kind`].
pub const WORK_KIND: &str = "rt-app";
/// A step that takes no time and asks for nothing: no program means work of 0. A value of its own kind
/// rather than an `Option`, so that an operation is written where its reader finds it.
pub(crate) const NO_TIME: Op = Op::Compute { work: 0, mode: Mode::User };

/// A thread that waits for a mutex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// Which.
    pub waiter: ThreadId,
    /// The thread that has the mutex.
    pub holder: ThreadId,
    /// That thread has ended without giving it back.
    pub holder_ended: bool,
    /// Since when others may wait for that thread.
    pub since: Ns,
}

/// All threads of a workload with their user memory. A clone goes on independently.
#[derive(Clone, Debug)]
pub(crate) struct Interpreter {
    code: Arc<Code>,
    /// Thread 0 first.
    threads: Vec<Thread>,
    names: Vec<Arc<str>>,
    all_cpus: CpuMask,
    /// When the workload begins.
    begin: Ns,
    /// rt-app's `continue_running`.
    running: bool,
    /// A thread of a model has said that the workload is over.
    over: bool,
    finished: bool,
    /// Threads at the start barrier.
    arrived: u32,
    t_zero: Ns,
    mutexes: Vec<Mutex>,
    conditions: Vec<Condition>,
    semaphores: Vec<Semaphore>,
    timers: Vec<Timer>,
    /// The `unique` timers of all threads; a thread knows where its own begin.
    own_timers: Vec<Timer>,
    /// rt-app's count of those who must still come before the last.
    barriers: Vec<i64>,
    /// How often each task was forked.
    forks: Vec<u32>,
    limit_reached: Option<&'static str>,
    /// The outcome of the present thread's last operation.
    outcome: Outcome,
    registers: Vec<u64>,
    /// Recorded durations, by their numbers.
    records: Vec<Vec<Ns>>,
    replayed: Replayed,
    queues: Vec<VecDeque<u64>>,
    crews: Vec<Waiting>,
    /// Locks of CPUs: the thread that has each.
    cpu_locks: Vec<Option<u32>>,
    /// Times that each amount was drawn.
    times: Vec<u64>,
    frames: Frames,
    hints: Vec<Hints>,
    devices: Vec<DeviceState>,
    /// Whether a device's next interrupt has changed.
    devices_changed: bool,
}

impl Interpreter {
    /// The threads of a workload on a machine with so many CPUs, before their start.
    pub fn new(code: Arc<Code>, nr_cpus: usize) -> Interpreter {
        let all_cpus = CpuMask::first(nr_cpus);
        let timer = |absolute: &bool| Timer { next: None, absolute: *absolute };
        let count = code.start.len();
        let mut main = Thread::new(0, code.main, all_cpus);
        main.state = State::Execute;
        let mut interpreter = Interpreter {
            threads: Vec::with_capacity(count + 1),
            names: vec![code.main_name.clone()],
            all_cpus,
            begin: 0,
            running: true,
            over: false,
            finished: false,
            arrived: 0,
            t_zero: 0,
            mutexes: vec![Mutex::default(); code.mutexes as usize],
            conditions: vec![Condition::default(); code.conditions as usize],
            semaphores: code.semaphores.iter().map(|value| Semaphore::of(*value)).collect(),
            timers: code.timers.iter().map(timer).collect(),
            own_timers: Vec::new(),
            barriers: code.barriers.iter().map(|(_, users)| i64::from(*users) - 1).collect(),
            forks: vec![0; code.tasks.len()],
            limit_reached: None,
            outcome: Outcome::Started,
            registers: code.registers.clone(),
            records: code.records.iter().map(|count| Vec::with_capacity(*count)).collect(),
            replayed: code.recording.as_ref().map(Replayed::new).unwrap_or_default(),
            queues: vec![VecDeque::new(); code.queues as usize],
            crews: vec![Waiting::default(); code.crews as usize],
            cpu_locks: vec![None; nr_cpus],
            times: vec![0; code.amounts.len()],
            frames: Frames::new(code.tests.len(), code.refresh, code.jank),
            hints: code.sessions.iter().map(|target| Hints::new(*target)).collect(),
            devices: code.devices.iter().map(|_| DeviceState::new()).collect(),
            devices_changed: false,
            code: code.clone(),
        };
        interpreter.threads.push(main);
        for task in &code.start {
            interpreter.create(*task, false);
        }
        interpreter
    }

    /// The code that the threads execute.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The name of a thread as `comm` shows it: `<task>-<index>` of an rt-app file, for a forked thread
    /// `<task>-<index>-<fork>`, at most 15 bytes.
    ///
    /// Cut, where the real rt-app keeps the name `rt-app` if the kernel finds a name too long:
    /// names of threads are for people.
    pub fn thread_name(&self, thread: ThreadId) -> &str {
        &self.names[thread.index()]
    }

    /// The name under which measurements of a thread are summed.
    pub fn task_name(&self, thread: ThreadId) -> &str {
        match thread.index() {
            0 => &self.names[0],
            at => &self.code.tasks[self.threads[at].task as usize].name,
        }
    }

    /// Threads that exist so far or are known to come, thread 0 included.
    pub fn nr_threads(&self) -> usize {
        self.threads.len()
    }

    /// Futexes, numbered from 0; never changes.
    pub fn nr_futexes(&self) -> usize {
        let own = self.code.recording.as_ref().map_or(0, |recording| recording.threads.len());
        self.thread_futex(1).0 as usize + own
    }

    /// Ends the workload: threads of an rt-app file end when they look the next time, and who sleeps
    /// is woken only by thread 0, when its own sleep of `duration` is over; of other workloads, thread 0 ends the run with
    /// its next step.
    pub fn shutdown(&mut self) {
        if !self.code.phases.is_empty() {
            self.running = false;
            return;
        }
        self.over = true;
        self.threads[0].goto(self.code.instructions.len() as u32 - 1);
    }

    /// Threads whose job has begun and is not done, with the time of its release; none of a recording.
    pub fn open_jobs(&self) -> Vec<(ThreadId, Ns)> {
        if self.code.recording.is_some() {
            return Vec::new();
        }
        let threads = self.threads.iter().enumerate();
        let open = threads.filter(|(_, thread)| thread.working && thread.state != State::Absent);
        open.map(|(at, thread)| (ThreadId(at as u32), thread.released)).collect()
    }

    /// Threads that wait for a mutex.
    pub fn lock_waits(&self) -> Vec<LockWait> {
        let waits = self.threads.iter().enumerate().filter_map(|(at, thread)| {
            let Instruction::Lock { mutex } = self.code.instructions.get(thread.pc as usize)?
            else {
                return None;
            };
            let (holder, since) = self.mutexes[*mutex as usize].held()?;
            (thread.state == State::LockRetry).then(|| LockWait {
                waiter: ThreadId(at as u32),
                holder: ThreadId(holder as u32),
                holder_ended: self.threads[holder].state == State::Absent,
                since,
            })
        });
        waits.collect()
    }

    /// Whether thread 0 has ended the workload.
    pub fn finished(&self) -> bool {
        self.finished
    }

    /// The bound that the workload ran into, if it did: no more threads, though it asked for one.
    /// rt-app exits at once in that case; the caller should end the run.
    pub fn limit_reached(&self) -> Option<&'static str> {
        self.limit_reached
    }

    /// When the workload begins; 0 before the run has.
    pub fn begin(&self) -> Ns {
        self.begin
    }

    /// The counts and records of the run.
    pub fn counted(&self) -> Counted<'_> {
        let (tests, frames) = (&self.code.tests[..], &self.frames.tests[..]);
        Counted { tests, frames, recorded: &self.records, registers: &self.registers }
    }

    /// Returns the benchmark's own results at the end.
    ///
    /// # Panics
    /// If it gives a metric that it has not told to bring.
    pub fn results(&self) -> Vec<Metric> {
        let Some(benchmark) = self.code.benchmark else { return Vec::new() };
        let metrics = benchmark.results(&self.counted());
        for Metric { name, .. } in &metrics {
            let brings = benchmark.metrics().iter().any(|metric| metric.name == *name);
            assert!(brings, "{} does not bring {name}", benchmark.name());
        }
        metrics
    }

    /// The progress of a recording.
    pub fn replayed(&self) -> &Replayed {
        &self.replayed
    }

    // ---- devices ------------------------------------------------------------------------------

    pub fn nr_devices(&self) -> usize {
        self.devices.len() + self.replayed.lines.len()
    }

    pub fn device_cpu(&self, device: usize) -> CpuId {
        self.code.devices.get(device).map_or_else(|| self.line_cpu(device), |device| device.cpu)
    }

    /// When a device interrupts next.
    pub fn device_at(&self, device: usize) -> Ns {
        self.devices.get(device).map_or_else(|| self.line_at(device), DeviceState::at)
    }

    /// Whether some device's next interrupt has changed since the last call.
    #[inline]
    pub fn take_devices_changed(&mut self) -> bool {
        std::mem::take(&mut self.devices_changed)
    }

    /// A device's interrupt is handled: pushes the futexes that its handler wakes one waiter of.
    pub fn device_interrupt(&mut self, device: usize, now: Ns, wakes: &mut Vec<FutexId>) {
        if device < self.devices.len() {
            self.model_interrupt(device, now, wakes);
        } else {
            self.line_interrupt(device, now, wakes);
        }
    }

    // ---- threads ------------------------------------------------------------------------------

    /// Returns the next operation of `thread`, now that its last operation is over.
    ///
    /// The first call for a thread comes with [`Outcome::Started`]. A [`Op::Mark`] takes no time:
    /// the thread is asked again at once.
    pub fn next(&mut self, thread: ThreadId, outcome: Outcome, now: Ns) -> Op {
        self.outcome = outcome;
        for _ in 0..STEPS_AT_ONCE {
            let op = self.step(thread.index(), now);
            if !matches!(op, Op::Compute { work: 0, .. }) {
                return op;
            }
        }
        NO_TIME
    }

    /// As [`Interpreter::next`], but hands marks over on the way, without being asked again.
    #[inline]
    pub fn next_in_time(
        &mut self,
        thread: ThreadId,
        outcome: Outcome,
        now: Ns,
        mut mark: impl FnMut(Mark),
    ) -> Op {
        self.outcome = outcome;
        for _ in 0..STEPS_AT_ONCE {
            match self.step(thread.index(), now) {
                Op::Compute { work: 0, .. } => {}
                Op::Mark(said) => mark(said),
                op => return op,
            }
        }
        NO_TIME
    }

    fn mutex_futex(&self, mutex: u32) -> FutexId {
        FutexId(self.code.first_futex + mutex)
    }

    fn condition_futex(&self, condition: u32) -> FutexId {
        FutexId(self.code.first_futex + self.code.mutexes + condition)
    }

    fn semaphore_futex(&self, semaphore: u32) -> FutexId {
        self.condition_futex(self.code.conditions + semaphore)
    }

    /// The futex of a thread's own.
    fn thread_futex(&self, at: usize) -> FutexId {
        self.semaphore_futex(self.code.semaphores.len() as u32 + at as u32 - 1)
    }

    /// One step of a thread: an operation, or [`NO_TIME`].
    #[inline(always)]
    fn step(&mut self, at: usize, now: Ns) -> Op {
        match self.threads[at].state {
            State::Execute => self.execute(at, now),
            State::TimerSleep => self.timer_sleep(at, now),
            State::TimerWoken => {
                let thread = &mut self.threads[at];
                let expiry = thread.reference;
                thread.release(expiry);
                thread.advance();
                Op::Mark(Mark::WakeupLatency { latency_ns: now.saturating_sub(expiry) })
            }
            State::LockRetry => {
                let Instruction::Lock { mutex } = self.instruction(at) else {
                    unreachable!("waits for no mutex")
                };
                if self.mutexes[mutex as usize].lock_contended(at, now) {
                    self.advance(at);
                    return NO_TIME;
                }
                wait(self.mutex_futex(mutex))
            }
            State::Unlocked => {
                let condition = self.condition_of(at);
                self.threads[at].state = State::Relock;
                if !self.conditions[condition as usize].sleep() {
                    return NO_TIME;
                }
                wait(self.condition_futex(condition))
            }
            State::Relock => self.relock(at, now),
            State::Chunk => self.chunk(at, now),
            State::Slept => {
                let end = self.threads[at].reference;
                self.release(at, end);
                self.advance(at);
                NO_TIME
            }
            State::SemaphoreWoken => {
                let Instruction::SemaphoreWait { semaphore, .. } = self.instruction(at) else {
                    unreachable!("waits for no semaphore")
                };
                if self.semaphores[semaphore as usize].wait_again(!self.running) {
                    let woken_at = self.semaphores[semaphore as usize].woken_at;
                    self.release(at, woken_at);
                    self.advance(at);
                    return NO_TIME;
                }
                wait(self.semaphore_futex(semaphore))
            }
            State::Write => self.write(at),
            // All are named, so that no range is checked on the way.
            State::Joins
            | State::Absent
            | State::Worked
            | State::Timed
            | State::Waits
            | State::HandsOver
            | State::Over
            | State::Reads
            | State::AsksCpu
            | State::SpinsFor => self.resume(at, now),
        }
    }

    #[inline]
    fn instruction(&self, at: usize) -> Instruction {
        self.code.instructions[self.threads[at].pc as usize]
    }

    #[inline]
    fn advance(&mut self, at: usize) {
        self.threads[at].advance();
    }

    #[inline]
    fn release(&mut self, at: usize, when: Ns) {
        self.threads[at].release(when);
    }

    #[inline]
    fn busy(&mut self, at: usize, state: State) {
        self.threads[at].busy(state);
    }

    #[inline(always)]
    fn execute(&mut self, at: usize, now: Ns) -> Op {
        let thread = &mut self.threads[at];
        match self.code.instructions[thread.pc as usize] {
            Instruction::Event { next, kind, ends_job } => {
                thread.event(self.running, now, next, kind, ends_job)
            }
            Instruction::Compute { work } => {
                thread.advance();
                if work == 0 {
                    return NO_TIME;
                }
                thread.quiet = false;
                Op::Compute { work, mode: Mode::User }
            }
            Instruction::ComputeUntil { chunk, .. } => {
                self.busy(at, State::Chunk);
                self.threads[at].reference = now;
                Op::Compute { work: chunk, mode: Mode::User }
            }
            Instruction::Sleep { duration } => {
                self.busy(at, State::Slept);
                self.threads[at].reference = now + duration;
                Op::Call(Syscall::Nanosleep { duration })
            }
            Instruction::Timer { timer, own, period } => {
                let timer = match own {
                    true => &mut self.own_timers[(thread.first_own_timer + timer) as usize],
                    false => &mut self.timers[timer as usize],
                };
                let expiry = timer.advance(thread.t_first, period);
                thread.reference = expiry;
                thread.state = State::TimerSleep;
                let slack_ns = (i128::from(expiry) - i128::from(now)) as i64;
                Op::Mark(Mark::Slack { slack_ns })
            }
            Instruction::Lock { mutex } => {
                if self.mutexes[mutex as usize].lock(at, now) {
                    self.advance(at);
                    return NO_TIME;
                }
                self.busy(at, State::LockRetry);
                wait(self.mutex_futex(mutex))
            }
            Instruction::Unlock { mutex } => {
                self.advance(at);
                if !self.mutexes[mutex as usize].unlock() {
                    return NO_TIME;
                }
                self.threads[at].quiet = false;
                wake(self.mutex_futex(mutex), 1)
            }
            Instruction::ConditionWait { condition, mutex } => {
                if !self.running {
                    self.advance(at);
                    return NO_TIME;
                }
                self.conditions[condition as usize].enter();
                self.busy(at, State::Unlocked);
                if !self.mutexes[mutex as usize].unlock() {
                    return NO_TIME;
                }
                wake(self.mutex_futex(mutex), 1)
            }
            Instruction::Signal { condition } => {
                self.advance(at);
                if !self.conditions[condition as usize].signal(now) {
                    return NO_TIME;
                }
                self.threads[at].quiet = false;
                wake(self.condition_futex(condition), 1)
            }
            Instruction::Broadcast { condition } => {
                self.advance(at);
                self.broadcast(at, condition, now)
            }
            Instruction::BarrierArrive { barrier } => {
                if self.barriers[barrier as usize] != 0 {
                    self.barriers[barrier as usize] -= 1;
                    self.advance(at);
                    return NO_TIME;
                }
                // The last one: over ConditionWait and BarrierLeave, to Unlock.
                let (condition, _) = self.code.barriers[barrier as usize];
                self.threads[at].pc += 3;
                self.broadcast(at, condition, now)
            }
            Instruction::BarrierLeave { barrier } => {
                self.barriers[barrier as usize] += 1;
                self.advance(at);
                NO_TIME
            }
            Instruction::SemaphorePost { semaphore } => {
                self.advance(at);
                if !self.semaphores[semaphore as usize].post(now) {
                    return NO_TIME;
                }
                self.threads[at].quiet = false;
                wake(self.semaphore_futex(semaphore), 1)
            }
            Instruction::SemaphoreWait { semaphore, releases } => {
                if !self.running || self.semaphores[semaphore as usize].wait() {
                    if releases {
                        self.release(at, now);
                    }
                    self.advance(at);
                    return NO_TIME;
                }
                self.busy(at, State::SemaphoreWoken);
                wait(self.semaphore_futex(semaphore))
            }
            Instruction::Stalls { permille } => {
                self.advance(at);
                Op::Stalls(permille)
            }
            Instruction::BlockIo { device, op, bytes } => {
                self.advance(at);
                self.threads[at].quiet = false;
                Op::Call(Syscall::BlockIo { device, op, bytes })
            }
            Instruction::Write { .. } => {
                thread.reference = 0;
                self.write(at)
            }
            Instruction::Yield => {
                self.advance(at);
                self.threads[at].quiet = false;
                Op::Call(Syscall::SchedYield)
            }
            Instruction::Fork { task } => self.fork(at, task),
            Instruction::PhaseEnd => {
                if thread.working && self.running {
                    return thread.job_done(now);
                }
                self.phase_end(at);
                NO_TIME
            }
            Instruction::PhaseCpus => self.phase_cpus(at),
            Instruction::PhaseAttributes => self.phase_attributes(at),
            Instruction::PhaseGroup => self.phase_group(at),
            other => self.model(at, other, now),
        }
    }

    /// Goes on in a state that no thread of an rt-app file has between its events.
    #[inline(never)]
    fn resume(&mut self, at: usize, now: Ns) -> Op {
        match self.threads[at].state {
            State::Joins => self.join(at),
            State::Absent => Op::Exit,
            State::Worked => self.worked(at),
            State::Over => wait(END_FUTEX),
            State::Reads => self.reads(at),
            State::AsksCpu => self.lock_cpu(at),
            State::SpinsFor => self.spins_for(at),
            _ => self.recorded(at, self.instruction(at), now),
        }
    }

    fn chunk(&mut self, at: usize, now: Ns) -> Op {
        let Instruction::ComputeUntil { chunk, target_us } = self.instruction(at) else {
            unreachable!("computes until no time")
        };
        if (now - self.threads[at].reference) / 1000 < u64::from(target_us) {
            return Op::Compute { work: chunk, mode: Mode::User };
        }
        self.advance(at);
        NO_TIME
    }

    /// The next call of `iorun`, until all bytes are written.
    fn write(&mut self, at: usize) -> Op {
        let Instruction::Write { bytes, chunk, copies } = self.instruction(at) else {
            unreachable!("writes nothing")
        };
        let thread = &mut self.threads[at];
        let left = u64::from(bytes) - thread.reference;
        if left == 0 {
            self.advance(at);
            return NO_TIME;
        }
        let now = left.min(u64::from(chunk));
        thread.reference += now;
        thread.busy(State::Write);
        Op::Call(Syscall::Write { copied: if copies { now as u32 } else { 0 } })
    }

    fn timer(&mut self, at: usize, timer: u32, own: bool) -> &mut Timer {
        if own {
            &mut self.own_timers[(self.threads[at].first_own_timer + timer) as usize]
        } else {
            &mut self.timers[timer as usize]
        }
    }

    fn timer_sleep(&mut self, at: usize, now: Ns) -> Op {
        let thread = &mut self.threads[at];
        let expiry = thread.reference;
        if now < expiry {
            thread.busy(State::TimerWoken);
            return Op::Call(Syscall::NanosleepUntil { until: expiry });
        }
        let Instruction::Timer { timer, own, .. } = self.instruction(at) else {
            unreachable!("sleeps on no timer")
        };
        let reference = self.timer(at, timer, own).missed(expiry, now);
        self.release(at, reference);
        self.advance(at);
        NO_TIME
    }

    fn condition_of(&self, at: usize) -> u32 {
        match self.instruction(at) {
            Instruction::ConditionWait { condition, .. } => condition,
            other => unreachable!("{other:?} waits for no condition"),
        }
    }

    fn relock(&mut self, at: usize, now: Ns) -> Op {
        let Instruction::ConditionWait { condition, mutex } = self.instruction(at) else {
            unreachable!("waits for no condition")
        };
        if !self.mutexes[mutex as usize].lock_contended(at, now) {
            return wait(self.mutex_futex(mutex));
        }
        let woken_at = self.conditions[condition as usize].woken_at;
        self.release(at, woken_at);
        self.advance(at);
        NO_TIME
    }

    /// Wakes all waiters; the thread is at the next instruction already.
    fn broadcast(&mut self, at: usize, condition: u32, now: Ns) -> Op {
        if !self.conditions[condition as usize].broadcast(now) {
            return NO_TIME;
        }
        self.threads[at].quiet = false;
        wake(self.condition_futex(condition), u32::MAX)
    }
}

fn wait(futex: FutexId) -> Op {
    Op::Call(Syscall::FutexWait { futex })
}

fn wake(futex: FutexId, count: u32) -> Op {
    Op::Call(Syscall::FutexWake { futex, count })
}
