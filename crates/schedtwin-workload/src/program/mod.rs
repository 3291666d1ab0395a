// SPDX-License-Identifier: GPL-2.0-or-later
//! Executes a workload's threads, one operation at a time.
//!
//! # Idea
//!
//! [`Programs`] holds the program counter of every thread and the user memory they share. The twin
//! asks a thread for its next operation whenever the last one is over, at the current time; the
//! thread changes user memory as it goes and answers with what takes time: work, a system call, or
//! the end. Nothing is random, nothing is allocated between forks.
//!
//! # A thread's life, as in rt-app
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

pub mod code;
mod main_thread;
pub(crate) mod memory;
mod thread;

use crate::MAX_THREADS;
use code::{AttributeCode, Code, FORKS_MAX, Instruction};
use main_thread::Main;
use memory::{Condition, Mutex, Semaphore, Timer};
use schedtwin_types::{
    FutexId, Mark, Mode, Ns, Op, Outcome, ProcessId, SchedAttr, Syscall, TaskGroupFiles,
    TaskGroupId, ThreadId,
};
use std::sync::Arc;
use thread::{State, Thread};

/// rt-app is one process, and all that it starts are its threads.
const PROCESS: ProcessId = ProcessId(0);

/// The start barrier's futex; main's waiting for an exit; then mutexes, conditions, semaphores.
const START_FUTEX: FutexId = FutexId(0);
const JOIN_FUTEX: FutexId = FutexId(1);
const FIRST_FUTEX: u32 = 2;
/// Steps of a thread in one call of [`Programs::next_in_time`]: who calls counts the calls, so that a loop without end is
/// noticed. An iteration has a handful.
pub(crate) const STEPS_AT_ONCE: u32 = 1000;
/// All of rt-app's work is its loop, see [`Programs::work_kind`].
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
pub struct Programs {
    code: Arc<Code>,
    /// rt-app's threads, from thread 1.
    threads: Vec<Thread>,
    names: Vec<Arc<str>>,
    main: Main,
    /// rt-app's `continue_running`.
    running: bool,
    /// Threads at the start barrier.
    arrived: u32,
    t_zero: Ns,
    exited: u32,
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
}

impl Programs {
    pub(crate) fn new(code: Arc<Code>) -> Programs {
        let count = code.start.len() as u32;
        let mut programs = Programs {
            threads: Vec::with_capacity(count as usize),
            names: vec![Arc::from("rt-app")],
            main: Main::Clone { next: 0 },
            running: true,
            arrived: 0,
            t_zero: 0,
            exited: 0,
            mutexes: vec![Mutex::default(); code.mutexes as usize],
            conditions: vec![Condition::default(); code.conditions as usize],
            semaphores: vec![Semaphore::default(); code.semaphores as usize],
            timers: code
                .timers
                .iter()
                .map(|absolute| Timer { next: None, absolute: *absolute })
                .collect(),
            own_timers: Vec::new(),
            barriers: code.barriers.iter().map(|(_, users)| i64::from(*users) - 1).collect(),
            forks: vec![0; code.tasks.len()],
            limit_reached: None,
            code: code.clone(),
        };
        for task in &code.start {
            programs.create(*task, None);
        }
        programs
    }

    /// Thread 0: rt-app's own. It starts all others.
    pub fn main(&self) -> ThreadId {
        ThreadId(0)
    }

    /// The name of a thread as `comm` shows it: `<task>-<index>`, for a forked thread
    /// `<task>-<index>-<fork>`, at most 15 bytes.
    ///
    /// Cut, where the real rt-app keeps the name `rt-app` if the kernel finds a name too long:
    /// names of threads are for people.
    pub fn thread_name(&self, thread: ThreadId) -> &str {
        &self.names[thread.index()]
    }

    /// The task of a thread, as it is called in the file; `rt-app` for thread 0.
    pub fn task_name(&self, thread: ThreadId) -> &str {
        match thread.index().checked_sub(1) {
            Some(at) => &self.code.tasks[self.threads[at].task as usize].name,
            None => &self.names[0],
        }
    }

    /// Returns the kind of work that a thread does, by the name that machines know it by.
    pub fn work_kind(&self, _thread: ThreadId) -> &str {
        WORK_KIND
    }

    /// Threads that exist so far, thread 0 included. Forks add some, up to [`MAX_THREADS`] + 1.
    pub fn nr_threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Futexes, numbered from 0; never changes.
    pub fn nr_futexes(&self) -> usize {
        (FIRST_FUTEX + self.code.mutexes + self.code.conditions + self.code.semaphores) as usize
    }

    /// Pipes, numbered from 0; never changes.
    pub fn nr_pipes(&self) -> usize {
        0
    }

    /// Whether a thread makes requests to block devices.
    pub fn uses_block_devices(&self) -> bool {
        let mut all = self.code.instructions.iter();
        all.any(|instruction| matches!(instruction, Instruction::BlockIo { .. }))
    }

    /// Whether some of its work waits for memory.
    pub fn stalls(&self) -> bool {
        let mut all = self.code.instructions.iter();
        all.any(|instruction| matches!(instruction, Instruction::Stalls { .. }))
    }

    /// Of each task group but the root, the group above it.
    pub fn task_groups(&self) -> &[TaskGroupId] {
        &self.code.task_groups
    }

    /// Of each task group but the root, its path.
    pub fn task_group_paths(&self) -> &[String] {
        &self.code.task_group_paths
    }

    /// Returns the values that are written into the files of task groups before the start.
    pub fn task_group_files(&self) -> &[TaskGroupFiles] {
        &self.code.group_files
    }

    /// Sets rt-app's `continue_running` to 0: threads end when they look the next time. Who sleeps
    /// is woken only by thread 0, when its own sleep of `duration` is over.
    pub fn shutdown(&mut self) {
        self.running = false;
    }

    /// Threads whose job has begun and is not done, with the time of its release.
    pub fn open_jobs(&self) -> Vec<(ThreadId, Ns)> {
        let threads = self.threads.iter().enumerate();
        let open = threads.filter(|(_, thread)| thread.working && thread.state != State::Dead);
        open.map(|(at, thread)| (ThreadId(at as u32 + 1), thread.released)).collect()
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
                waiter: ThreadId(at as u32 + 1),
                holder: ThreadId(holder as u32 + 1),
                holder_ended: self.threads[holder].state == State::Dead,
                since,
            })
        });
        waits.collect()
    }

    /// Whether every thread has exited.
    pub fn finished(&self) -> bool {
        self.main == Main::Done
    }

    /// The bound that the workload ran into, if it did: no more threads, though it asked for one.
    /// rt-app exits at once in that case; the caller should end the run.
    pub fn limit_reached(&self) -> Option<&'static str> {
        self.limit_reached
    }

    /// Returns the next operation of `thread`, now that its last operation is over.
    ///
    /// The first call for a thread comes with [`Outcome::Started`]. A [`Op::Mark`] takes no time:
    /// the thread is asked again at once.
    pub fn next(&mut self, thread: ThreadId, _outcome: Outcome, now: Ns) -> Op {
        match thread.index().checked_sub(1) {
            None => self.next_of_main(),
            Some(at) => loop {
                let op = self.step(at, now);
                if !matches!(op, Op::Compute { work: 0, .. }) {
                    return op;
                }
            },
        }
    }

    /// As [`Programs::next`], but hands marks over on the way, without being asked again.
    #[inline]
    pub fn next_in_time(&mut self, thread: ThreadId, now: Ns, mut mark: impl FnMut(Mark)) -> Op {
        let Some(at) = thread.index().checked_sub(1) else { return self.next_of_main() };
        for _ in 0..STEPS_AT_ONCE {
            match self.step(at, now) {
                Op::Compute { work: 0, .. } => {}
                Op::Mark(said) => mark(said),
                op => return op,
            }
        }
        NO_TIME
    }

    /// Adds a thread of `task`, created by `parent` (or by thread 0).
    fn create(&mut self, task: u32, parent: Option<usize>) {
        let index = self.threads.len();
        let code = self.code.clone();
        let definition = &code.tasks[task as usize];
        let (attributes, cpus, group) = match parent.map(|at| &self.threads[at]) {
            Some(parent) => (parent.attributes, parent.cpus, parent.group),
            None => (SchedAttr::default(), code.all_cpus, TaskGroupId::ROOT),
        };
        let fork = parent.map(|_| self.forks[task as usize]);
        self.names.push(Arc::from(code::thread_name(&definition.name, index, fork)));
        self.threads.push(Thread {
            state: State::Born,
            quiet: false,
            working: false,
            forked: parent.is_some(),
            pc: 0,
            task,
            phase: definition.first_phase,
            phase_loop: 0,
            task_loop: 0,
            locks: 0,
            first_own_timer: self.own_timers.len() as u32,
            released: 0,
            reference: 0,
            t_first: 0,
            attributes,
            group,
            cpus,
            default_cpus: cpus,
        });
        self.own_timers.extend(
            definition.timers.iter().map(|absolute| Timer { next: None, absolute: *absolute }),
        );
    }

    fn mutex_futex(&self, mutex: u32) -> FutexId {
        FutexId(FIRST_FUTEX + mutex)
    }

    fn condition_futex(&self, condition: u32) -> FutexId {
        FutexId(FIRST_FUTEX + self.code.mutexes + condition)
    }

    fn semaphore_futex(&self, semaphore: u32) -> FutexId {
        FutexId(FIRST_FUTEX + self.code.mutexes + self.code.conditions + semaphore)
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
            State::Iteration => self.iteration(at),
            State::IterationAttributes => {
                let phase = &self.code.phases[self.threads[at].phase as usize];
                let attributes = phase.attributes;
                self.threads[at].state = State::IterationGroup;
                match attributes {
                    Some(change) => self.set_attributes(at, &change),
                    None => NO_TIME,
                }
            }
            State::IterationGroup => {
                let thread = &mut self.threads[at];
                let phase = &self.code.phases[thread.phase as usize];
                thread.pc = phase.first_instruction;
                thread.state = State::Execute;
                match phase.group {
                    Some(group) if group != thread.group => {
                        thread.group = group;
                        Op::Call(Syscall::CgroupAttach { group })
                    }
                    _ => NO_TIME,
                }
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
                let Instruction::SemaphoreWait { semaphore } = self.instruction(at) else {
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
            State::Born => self.born(at, now),
            State::Started => {
                let delay = self.code.tasks[self.threads[at].task as usize].delay;
                let t_first = self.t_zero + delay;
                let thread = &mut self.threads[at];
                thread.t_first = t_first;
                thread.released = now.max(t_first);
                thread.state = State::Delayed;
                if delay == 0 {
                    return NO_TIME;
                }
                Op::Call(Syscall::NanosleepUntil { until: t_first })
            }
            State::Delayed => {
                let attributes = self.code.tasks[self.threads[at].task as usize].attributes;
                self.threads[at].state = State::Iteration;
                self.set_attributes(at, &attributes)
            }
            State::Ending => {
                let thread = &mut self.threads[at];
                thread.state = State::LastWake;
                let plain =
                    SchedAttr { policy: Default::default(), rt_priority: 0, ..thread.attributes };
                if thread.attributes == plain {
                    return NO_TIME;
                }
                thread.attributes = plain;
                Op::Call(Syscall::SchedSetattr(plain))
            }
            State::LastWake => {
                self.threads[at].state = State::Dead;
                self.exited += 1;
                if self.main == (Main::Join { thread: at as u32, sleeping: true }) {
                    // The kernel does this when it clears the thread's id; main wakes up no earlier.
                    self.main = Main::Join { thread: at as u32, sleeping: false };
                    return wake(JOIN_FUTEX, 1);
                }
                NO_TIME
            }
            State::Dead => Op::Exit,
        }
    }

    fn born(&mut self, at: usize, now: Ns) -> Op {
        self.threads[at].state = State::Started;
        if at == 0 {
            self.t_zero = now;
        }
        if self.threads[at].forked {
            return NO_TIME;
        }
        self.arrived += 1;
        match (self.arrived, self.code.start.len() as u32) {
            (1, 1) => NO_TIME,
            (arrived, all) if arrived == all => wake(START_FUTEX, u32::MAX),
            _ => wait(START_FUTEX),
        }
    }

    fn iteration(&mut self, at: usize) -> Op {
        let thread = &self.threads[at];
        let task = &self.code.tasks[thread.task as usize];
        if !self.running || Some(thread.task_loop) == task.loops {
            self.threads[at].state = State::Ending;
            return NO_TIME;
        }
        let cpus = self.code.phases[thread.phase as usize].cpus.unwrap_or(thread.default_cpus);
        let thread = &mut self.threads[at];
        thread.state = State::IterationAttributes;
        if thread.cpus == cpus {
            return NO_TIME;
        }
        thread.cpus = cpus;
        Op::Call(Syscall::SchedSetaffinity { mask: cpus })
    }

    fn set_attributes(&mut self, at: usize, change: &AttributeCode) -> Op {
        let thread = &mut self.threads[at];
        let new = change.applied_to(thread.attributes);
        if new == thread.attributes {
            return NO_TIME;
        }
        thread.attributes = new;
        thread.quiet = false;
        Op::Call(Syscall::SchedSetattr(new))
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
            Instruction::SemaphoreWait { semaphore } => {
                if !self.running || self.semaphores[semaphore as usize].wait() {
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
        }
    }

    fn phase_end(&mut self, at: usize) {
        let code = &self.code;
        let thread = &mut self.threads[at];
        let task = &code.tasks[thread.task as usize];
        let ended = thread.phase;
        // Counts that nobody compares (of a loop for ever) may wrap.
        thread.phase_loop = thread.phase_loop.wrapping_add(1);
        if Some(thread.phase_loop) == code.phases[ended as usize].loops {
            thread.phase_loop = 0;
            thread.phase += 1;
            if thread.phase == task.end_phase {
                thread.phase = task.first_phase;
                thread.task_loop = thread.task_loop.wrapping_add(1);
            }
        }
        if thread.phase == ended && self.running && Some(thread.task_loop) != task.loops {
            // The same phase again: its affinity and parameters are in force already.
            thread.pc = code.phases[ended as usize].first_instruction;
            thread.state = State::Execute;
        } else {
            thread.state = State::Iteration;
        }
    }

    fn chunk(&mut self, at: usize, now: Ns) -> Op {
        let Instruction::ComputeUntil { chunk, target_us } = self.instruction(at) else {
            unreachable!("computes until no time")
        };
        if (now - self.threads[at].reference) / 1000 < target_us {
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

    fn fork(&mut self, at: usize, task: u32) -> Op {
        self.advance(at);
        if self.forks[task as usize] >= FORKS_MAX || self.threads.len() >= MAX_THREADS {
            self.limit_reached = Some(if self.threads.len() >= MAX_THREADS {
                "\"fork\" would make more threads than the workload may have"
            } else {
                "\"fork\" would make more than 1024 threads of one task, rt-app's limit"
            });
            self.running = false;
            return NO_TIME;
        }
        self.create(task, Some(at));
        self.forks[task as usize] += 1;
        self.threads[at].quiet = false;
        let thread = ThreadId(self.threads.len() as u32);
        Op::Call(Syscall::Clone { thread, process: PROCESS })
    }
}

fn wait(futex: FutexId) -> Op {
    Op::Call(Syscall::FutexWait { futex })
}

fn wake(futex: FutexId, count: u32) -> Op {
    Op::Call(Syscall::FutexWake { futex, count })
}
