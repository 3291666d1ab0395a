// SPDX-License-Identifier: GPL-2.0-or-later
//! The beginning and the end of threads: what thread 0 does, and what rt-app's threads do before and behind their phases.
//!
//! ```text
//! rt-app     clone clone ... | sleep(duration) | continue_running = 0, wake all waiters | join, join, ... | exit
//! recording  begin | clone clone ... | sleep until the last moment | exit, which ends the run
//! model      begin | socketpair ... | clone clone ... | sleep until the end or until a thread ends it | exit
//! ```
//!
//! Without a duration rt-app joins at once. A join waits on one futex, which the thread that is waited
//! for wakes before it exits; the kernel does that when it clears the thread's id.

use super::code::{AttributeCode, ENDING, FORKS_MAX, Instruction, PHASE, Pair};
use super::thread::{State, Thread};
use super::{END_FUTEX, Interpreter, JOIN_FUTEX, NO_TIME, START_FUTEX, wait, wake};
use crate::MAX_THREADS;
use schedtwin_types::{Ns, Op, ProcessId, SchedAttr, SocketId, Syscall, ThreadId};
use std::sync::Arc;

impl Interpreter {
    /// Executes an instruction of a thread's life, or of thread 0.
    #[inline(never)]
    pub(super) fn live(&mut self, at: usize, instruction: Instruction, now: Ns) -> Op {
        match instruction {
            Instruction::Arrive => return self.arrive(at, now),
            Instruction::Delay => return self.delay(at, now),
            Instruction::TaskAttributes => {
                self.advance(at);
                let attributes = self.code.tasks[self.threads[at].task as usize].attributes;
                return self.set_attributes(at, &attributes);
            }
            Instruction::Restore => return self.restore(at),
            Instruction::EndJoined => return self.end_joined(at),
            Instruction::Begin(after) => {
                self.begin = now + after;
                self.start_devices(now);
            }
            Instruction::Connect(pair) => return self.connect(at, pair),
            Instruction::StartThreads => return self.start_next(at),
            Instruction::SleepUntil(_) | Instruction::AwaitEnd if self.over => {}
            Instruction::AwaitEnd => {
                self.advance(at);
                return wait(END_FUTEX);
            }
            Instruction::SleepUntil(after) => {
                self.advance(at);
                let until = self.begin + after;
                return Op::Call(Syscall::NanosleepUntil { until });
            }
            Instruction::Stop => {
                self.running = false;
                self.threads[at].reference = 0;
            }
            Instruction::WakeConditions => return self.wake_next_condition(at),
            Instruction::WakeSemaphores => return self.wake_next_semaphore(at),
            Instruction::Join => return self.join(at),
            Instruction::Finish => {
                self.finished = true;
                return Op::Exit;
            }
            Instruction::Clone(thread) => {
                self.advance(at);
                return match self.code.recording {
                    Some(_) => self.start(thread.index(), Some(at)),
                    None => self.start_another(at, thread),
                };
            }
            Instruction::Exec => {
                self.advance(at);
                return Op::Call(Syscall::Execve);
            }
            Instruction::Exit => {
                self.advance(at);
                self.threads[at].state = State::Absent;
                return Op::Exit;
            }
            Instruction::TaskCpus => {
                self.advance(at);
                let mask = self.code.tasks[self.threads[at].task as usize].cpus;
                return Op::Call(Syscall::SchedSetaffinity { mask });
            }
            other => unreachable!("{other:?} is executed before"),
        }
        self.advance(at);
        NO_TIME
    }

    /// Makes a thread of a task, which is not there yet: `forked` ones are numbered among those of their task.
    pub(super) fn create(&mut self, task: u32, forked: bool) -> usize {
        let index = self.threads.len();
        let definition = &self.code.tasks[task as usize];
        let name = definition.comm.clone().unwrap_or_else(|| {
            let fork = forked.then(|| self.forks[task as usize]);
            Arc::from(super::code::thread_name(&definition.name, index - 1, fork))
        });
        self.names.push(name);
        let mut thread = Thread::new(task, definition.entry, self.all_cpus);
        (thread.phase, thread.forked) = (definition.first_phase, forked);
        thread.first_own_timer = self.own_timers.len() as u32;
        let timers = definition.timers.iter();
        self.own_timers
            .extend(timers.map(|absolute| super::Timer { next: None, absolute: *absolute }));
        self.threads.push(thread);
        index
    }

    /// Starts a thread that is not there. A damaged recording may start one twice: it goes on where it is.
    pub(super) fn start(&mut self, index: usize, parent: Option<usize>) -> Op {
        if let Some(parent) = parent {
            let parent = self.threads[parent].clone();
            self.threads[index].inherit(&parent);
        }
        let thread = &mut self.threads[index];
        if thread.state == State::Absent {
            thread.state = State::Execute;
        }
        let own = self.code.processes + index as u32;
        let process = self.code.tasks[thread.task as usize].process.unwrap_or(own);
        let (thread, process) = (ThreadId(index as u32), ProcessId(process));
        Op::Call(Syscall::Clone { thread, process })
    }

    /// `fork` of a task, unless there are too many threads.
    pub(super) fn fork(&mut self, at: usize, task: u32) -> Op {
        self.advance(at);
        let threads = self.threads.len() - 1;
        if self.forks[task as usize] >= FORKS_MAX || threads >= MAX_THREADS {
            self.limit_reached = Some(if threads >= MAX_THREADS {
                "\"fork\" would make more threads than the workload may have"
            } else {
                "\"fork\" would make more than 1024 threads of one task, rt-app's limit"
            });
            self.running = false;
            return NO_TIME;
        }
        let child = self.create(task, true);
        self.forks[task as usize] += 1;
        self.threads[at].quiet = false;
        self.start(child, Some(at))
    }

    // ---- thread 0 -----------------------------------------------------------------------------

    /// The next of the threads of the start; its count is the number of the last.
    fn start_next(&mut self, at: usize) -> Op {
        loop {
            let next = self.threads[at].reference as usize;
            let Some(task) = self.code.start.get(next) else {
                self.threads[at].reference = 0;
                self.advance(at);
                return NO_TIME;
            };
            self.threads[at].reference += 1;
            if !self.code.tasks[*task as usize].later {
                return self.start(next + 1, None);
            }
        }
    }

    fn connect(&mut self, at: usize, pair: u32) -> Op {
        self.advance(at);
        let Pair { kind, sndbuf } = self.code.pairs[pair as usize];
        let [first, second] = [SocketId(2 * pair), SocketId(2 * pair + 1)];
        Op::Call(Syscall::Socketpair { first, second, kind, sndbuf })
    }

    fn wake_next_condition(&mut self, at: usize) -> Op {
        let next = self.threads[at].reference as u32;
        if next == self.code.conditions {
            self.threads[at].reference = 0;
            self.advance(at);
            return NO_TIME;
        }
        self.threads[at].reference += 1;
        // The time of this wakeup releases no job: the run is over.
        let woken_at = self.conditions[next as usize].woken_at;
        if self.conditions[next as usize].broadcast(woken_at) {
            return wake(self.condition_futex(next), u32::MAX);
        }
        NO_TIME
    }

    fn wake_next_semaphore(&mut self, at: usize) -> Op {
        let next = self.threads[at].reference as usize;
        if next == self.semaphores.len() {
            self.threads[at].reference = 0;
            self.advance(at);
            return NO_TIME;
        }
        self.threads[at].reference += 1;
        if self.semaphores[next].has_waiters() {
            return wake(self.semaphore_futex(next as u32), u32::MAX);
        }
        NO_TIME
    }

    pub(super) fn join(&mut self, at: usize) -> Op {
        let joined = self.threads[at].reference as usize + 1;
        match self.threads.get(joined).map(|thread| thread.state) {
            None => self.advance(at),
            Some(State::Absent) => {
                self.threads[at].reference += 1;
                self.threads[at].state = State::Execute;
            }
            Some(_) => {
                self.threads[at].state = State::Joins;
                return wait(JOIN_FUTEX);
            }
        }
        NO_TIME
    }

    // ---- threads of rt-app --------------------------------------------------------------------

    fn arrive(&mut self, at: usize, now: Ns) -> Op {
        self.advance(at);
        if at == 1 {
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

    fn delay(&mut self, at: usize, now: Ns) -> Op {
        let delay = self.code.tasks[self.threads[at].task as usize].delay;
        let t_first = self.t_zero + delay;
        let thread = &mut self.threads[at];
        thread.t_first = t_first;
        thread.released = now.max(t_first);
        thread.advance();
        if delay == 0 {
            return NO_TIME;
        }
        Op::Call(Syscall::NanosleepUntil { until: t_first })
    }

    pub(super) fn phase_cpus(&mut self, at: usize) -> Op {
        let thread = &self.threads[at];
        let task = &self.code.tasks[thread.task as usize];
        if !self.running || Some(thread.task_loop) == task.loops {
            self.threads[at].goto(ENDING);
            return NO_TIME;
        }
        let cpus = self.code.phases[thread.phase as usize].cpus.unwrap_or(thread.default_cpus);
        let thread = &mut self.threads[at];
        thread.advance();
        if thread.cpus == cpus {
            return self.phase_attributes(at);
        }
        thread.cpus = cpus;
        Op::Call(Syscall::SchedSetaffinity { mask: cpus })
    }

    pub(super) fn phase_attributes(&mut self, at: usize) -> Op {
        self.advance(at);
        match self.code.phases[self.threads[at].phase as usize].attributes {
            Some(change) => self.set_attributes(at, &change),
            None => self.phase_group(at),
        }
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

    pub(super) fn phase_group(&mut self, at: usize) -> Op {
        let thread = &mut self.threads[at];
        let phase = &self.code.phases[thread.phase as usize];
        thread.goto(phase.first_instruction);
        match phase.group {
            Some(group) if group != thread.group => {
                thread.group = group;
                Op::Call(Syscall::CgroupAttach { group })
            }
            _ => NO_TIME,
        }
    }

    /// The end of an iteration: the same phase again, the next one, or the first of the task's next round.
    #[inline]
    pub(super) fn phase_end(&mut self, at: usize) {
        let thread = &mut self.threads[at];
        let phase = &self.code.phases[thread.phase as usize];
        // Counts that nobody compares (of a loop for ever) may wrap.
        thread.phase_loop = thread.phase_loop.wrapping_add(1);
        let mut again = true;
        if Some(thread.phase_loop) == phase.loops {
            let task = &self.code.tasks[thread.task as usize];
            let ended = thread.phase;
            thread.phase_loop = 0;
            thread.phase += 1;
            if thread.phase == task.end_phase {
                thread.phase = task.first_phase;
                thread.task_loop = thread.task_loop.wrapping_add(1);
            }
            again = thread.phase == ended && Some(thread.task_loop) != task.loops;
        }
        // The same phase again: its affinity and parameters are in force already.
        thread.pc = if again && self.running { phase.first_instruction } else { PHASE };
    }

    fn restore(&mut self, at: usize) -> Op {
        let thread = &mut self.threads[at];
        thread.advance();
        let plain = SchedAttr { policy: Default::default(), rt_priority: 0, ..thread.attributes };
        if thread.attributes == plain {
            return NO_TIME;
        }
        thread.attributes = plain;
        Op::Call(Syscall::SchedSetattr(plain))
    }

    fn end_joined(&mut self, at: usize) -> Op {
        self.threads[at].state = State::Absent;
        let main = &mut self.threads[0];
        if main.state == State::Joins && main.reference as usize + 1 == at {
            // The kernel does this when it clears the thread's id; thread 0 wakes up no earlier.
            main.state = State::Execute;
            return wake(JOIN_FUTEX, 1);
        }
        NO_TIME
    }
}
