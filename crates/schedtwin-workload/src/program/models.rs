// SPDX-License-Identifier: GPL-2.0-or-later
//! The instructions of models of benchmarks: registers and queues, drawn amounts, channels, devices, frames.
//!
//! Draws are keyed by thread, step and the how-manieth time the step is gone through, so the seventh frame is as
//! heavy under every kernel.
//!
//! Differences: the test of a futex word and the call that follows are one instant. A shared
//! number is never contended.

use super::code::{AmountId, Crew, Flag, GridId, Instruction, Queue, Register};
use super::devices::Delivery;
use super::thread::State;
use super::{Interpreter, NO_TIME, wake};
use schedtwin_types::{BlockOp, File, Mark, Mode, Ns, Op, Outcome, Syscall, ThreadId, Work};

/// The most values that are recorded: enough for any published benchmark's parts.
const RECORDS_MAX: usize = 1 << 20;
/// One look at a lock that somebody else has, and the pauses after it, user work. [E]
const SPIN: Op = Op::Compute { work: 20_000, mode: Mode::User };
/// The pieces in which a thread spins until a moment, user work.
const SPIN_MIN: Work = 1_000;
const SPIN_MAX: Work = 1_000_000;

/// Threads that wait to be woken all together.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// Waiting threads: the semaphore of each, and where it wants the moment of its waking.
    waiting: Vec<(Flag, Register)>,
    /// Threads that are being woken: the list as it was, the next one last.
    woken: Vec<(Flag, Register)>,
}

impl Interpreter {
    /// Executes an instruction that no event of an rt-app file becomes: here those of models.
    #[inline(never)]
    pub(super) fn model(&mut self, at: usize, instruction: Instruction, now: Ns) -> Op {
        self.threads[at].pc += 1;
        match instruction {
            Instruction::ComputeAmount(amount, mode) => {
                Op::Compute { work: self.amount(amount), mode }
            }
            Instruction::ComputeShare(register, percent) => {
                let work = self.register(register) * percent / 100;
                Op::Compute { work, mode: Mode::User }
            }
            Instruction::ComputeRest(register) => {
                let work = std::mem::take(&mut self.registers[register.0 as usize]);
                Op::Compute { work, mode: Mode::User }
            }
            Instruction::Spin(since, duration) => self.spin(at, since, duration, now),
            Instruction::SleepAmount(amount) => {
                let duration = self.amount(amount);
                self.threads[at].released = now + duration;
                Op::Call(Syscall::Nanosleep { duration })
            }
            Instruction::SleepUntilNext(grid) => {
                let until = self.next_on(grid, now);
                self.threads[at].released = until;
                Op::Call(Syscall::NanosleepUntil { until })
            }
            Instruction::Send(file, bytes) => Op::Call(match file {
                File::Pipe(pipe) => Syscall::PipeWrite { pipe, bytes },
                File::Socket(socket) => Syscall::Send { socket, bytes },
            }),
            Instruction::Receive(file, bytes) => {
                self.threads[at].reference = Ns::from(bytes);
                self.threads[at].state = State::Reads;
                read(file, bytes)
            }
            Instruction::Poll(file) => Op::Call(Syscall::Poll { file }),
            Instruction::Raise(flag) if !self.semaphores[flag.0 as usize].is_down() => NO_TIME,
            Instruction::Raise(flag) => self.post_flag(flag, now),
            Instruction::PostAll(flag, count) => self.post_all(flag, count, now),
            Instruction::Enlist(crew, flag, moment) => {
                self.crews[crew.0 as usize].waiting.push((flag, moment));
                NO_TIME
            }
            Instruction::RaiseAll(crew) => self.raise_all(at, crew, now),
            Instruction::Relax => Op::Relax,
            Instruction::LockCpu => {
                self.threads[at].state = State::AsksCpu;
                Op::Call(Syscall::Getcpu)
            }
            Instruction::UnlockCpu => self.unlock_cpu(at),
            Instruction::BlockIoAmount(device, bytes, amount, reads) => {
                let is_read = self.amount(amount) < u64::from(reads);
                let op = if is_read { BlockOp::Read } else { BlockOp::Write };
                Op::Call(Syscall::BlockIo { device, op, bytes })
            }
            Instruction::Job(since) => Op::Mark(Mark::JobDone { released: self.register(since) }),
            Instruction::FrameEnd => match self.frames.end(now) {
                Some(released) => Op::Mark(Mark::JobDone { released }),
                None => NO_TIME,
            },
            Instruction::HintTake(session) => {
                let clamp = self.hints[session.0 as usize].clamp(now);
                self.take_clamp(at, clamp)
            }
            Instruction::End => {
                self.over = true;
                self.finished |= self.code.duration.is_none();
                Op::Exit
            }
            other => self.number(at, other, now),
        }
    }

    /// Executes an instruction that takes no time and asks for nothing.
    fn number(&mut self, at: usize, instruction: Instruction, now: Ns) -> Op {
        match instruction {
            Instruction::Clock(register) => self.set(register, now),
            Instruction::Record(what, since) => {
                let duration = now - self.register(since);
                self.record(what, duration);
            }
            Instruction::RecordNumber(what, number) => self.record(what, number),
            Instruction::Set(register, value) => self.set(register, value),
            Instruction::Add(register, value) => self.registers[register.0 as usize] += value,
            Instruction::Copy(to, from) => self.set(to, self.register(from)),
            Instruction::Take(register) => self.registers[register.0 as usize] -= 1,
            Instruction::Released(register) => self.set(register, self.threads[at].released),
            Instruction::SetNext(register, grid) => self.set(register, self.next_on(grid, now)),
            Instruction::SetAmount(register, amount) => {
                let amount = self.amount(amount);
                self.set(register, amount);
            }
            Instruction::SetShare(register, amount, percent) => {
                let amount = self.amount(amount);
                self.set(register, amount * self.register(percent) / 100);
            }
            Instruction::Jump(to) => self.threads[at].pc = to,
            Instruction::JumpIfZero(register, to) => {
                if self.register(register) == 0 {
                    self.threads[at].pc = to;
                }
            }
            Instruction::Put(queue, from) => {
                let number = self.register(from);
                self.queues[queue.0 as usize].push_back(number);
            }
            Instruction::Get(queue, to) => {
                let number = self.queues[queue.0 as usize].pop_front();
                self.set(to, number.expect("a semaphore counts what is in the queue"));
            }
            Instruction::DeviceStart(device, amount, percent, after) => {
                let work = self.amount(amount) * self.register(percent) / 100;
                self.start_device(device, self.register(after).max(now), work);
            }
            Instruction::DeviceStartUntil(device, grid) => {
                self.start_device(device, self.next_on(grid, now), 0);
            }
            Instruction::Deliver(device, amount, flag, queue) => {
                let moment = queue.map(|queue| Queue(queue.get() - 1));
                let due = now + self.amount(amount);
                self.deliver_at(device, due, Delivery { flag, moment });
            }
            Instruction::FrameBegin(register) => self.frames.begin(self.register(register)),
            Instruction::Count(test) => self.frames.count(test),
            Instruction::HintBegin(session) => self.hints[session.0 as usize].begin(now),
            Instruction::HintWaited(session, since) => {
                let waited = now - self.register(since);
                self.hints[session.0 as usize].waited(waited);
            }
            Instruction::HintEnd(session) => self.hints[session.0 as usize].end(now),
            other => {
                self.threads[at].pc -= 1;
                return self.recorded(at, other, now);
            }
        }
        NO_TIME
    }

    /// Some bytes have come.
    pub(super) fn reads(&mut self, at: usize) -> Op {
        let Outcome::Value(got) = self.outcome else { unreachable!("a read returns bytes") };
        let thread = &mut self.threads[at];
        // A datagram's end may be lost.
        let left = if got == 0 { 0 } else { thread.reference.saturating_sub(got) };
        if left == 0 {
            thread.state = State::Execute;
            return NO_TIME;
        }
        thread.reference = left;
        match self.code.instructions[thread.pc as usize - 1] {
            Instruction::Receive(file, _) => read(file, left as u32),
            other => unreachable!("{other:?} reads nothing"),
        }
    }

    /// A thread that runs on the CPU of the outcome takes its lock, or spins for it.
    pub(super) fn lock_cpu(&mut self, at: usize) -> Op {
        let Outcome::Value(cpu) = self.outcome else { unreachable!("every CPU has a number") };
        let lock = &mut self.cpu_locks[cpu as usize];
        let thread = &mut self.threads[at];
        if lock.is_some() {
            thread.state = State::SpinsFor;
            thread.reference = cpu;
            return SPIN;
        }
        *lock = Some(at as u32);
        thread.state = State::Execute;
        NO_TIME
    }

    fn unlock_cpu(&mut self, at: usize) -> Op {
        let mine = self.cpu_locks.iter_mut().find(|lock| **lock == Some(at as u32));
        *mine.expect("it has locked a CPU") = None;
        NO_TIME
    }

    /// Takes over the clamp of a session of hints, if it is another one.
    fn take_clamp(&mut self, at: usize, clamp: u16) -> Op {
        let thread = &mut self.threads[at];
        if thread.attributes.util_min == Some(clamp) {
            return NO_TIME;
        }
        thread.attributes.util_min = Some(clamp);
        Op::Call(Syscall::SchedSetattr(thread.attributes))
    }

    pub(super) fn spins_for(&mut self, at: usize) -> Op {
        if self.cpu_locks[self.threads[at].reference as usize].is_some() {
            return SPIN;
        }
        // It may have been moved meanwhile: the lock has to be that of its CPU.
        self.threads[at].state = State::AsksCpu;
        Op::Call(Syscall::Getcpu)
    }

    fn spin(&mut self, at: usize, since: Register, duration: Ns, now: Ns) -> Op {
        let until = self.register(since) + duration;
        if now >= until {
            return NO_TIME;
        }
        self.threads[at].pc -= 1;
        // Half of what is left: a CPU that is slower, or busy with others, does not go far beyond.
        Op::Compute { work: ((until - now) / 2).clamp(SPIN_MIN, SPIN_MAX), mode: Mode::User }
    }

    fn post_flag(&mut self, flag: Flag, now: Ns) -> Op {
        match self.semaphores[flag.0 as usize].post(now) {
            true => wake(self.semaphore_futex(flag.0), 1),
            false => NO_TIME,
        }
    }

    fn post_all(&mut self, flag: Flag, count: Register, now: Ns) -> Op {
        let count = std::mem::take(&mut self.registers[count.0 as usize]) as u32;
        let semaphore = &mut self.semaphores[flag.0 as usize];
        let posts = (0..count).filter(|_| semaphore.post(now)).count();
        if posts > 0 { wake(self.semaphore_futex(flag.0), count) } else { NO_TIME }
    }

    /// Raises the semaphores of all that are on a crew's list, latest first: an instruction that is executed for each.
    fn raise_all(&mut self, at: usize, crew: Crew, now: Ns) -> Op {
        let list = &mut self.crews[crew.0 as usize];
        if list.woken.is_empty() {
            std::mem::swap(&mut list.waiting, &mut list.woken);
            for (_, moment) in &list.woken {
                self.registers[moment.0 as usize] = now;
            }
        }
        let Some((flag, _)) = list.woken.pop() else { return NO_TIME };
        if !list.woken.is_empty() {
            self.threads[at].pc -= 1;
        }
        if self.semaphores[flag.0 as usize].is_down() { self.post_flag(flag, now) } else { NO_TIME }
    }

    /// Starts a thread, or another one of its task while all are still on their way out.
    pub(super) fn start_another(&mut self, at: usize, thread: ThreadId) -> Op {
        let first = thread.index();
        let task = self.threads[first].task;
        let more = self.code.start.len() + 1;
        let is_free = |index: &usize| {
            let thread = &self.threads[*index];
            thread.task == task && thread.state == State::Absent
        };
        let mut places = std::iter::once(first).chain(more..self.threads.len());
        let index = places.find(is_free).unwrap_or_else(|| self.create(task, false));
        let thread = &mut self.threads[index];
        (thread.pc, thread.released) = (self.code.tasks[task as usize].entry, 0);
        self.start(index, Some(at))
    }

    fn record(&mut self, what: u16, value: u64) {
        let records = &mut self.records[usize::from(what)];
        if records.len() < RECORDS_MAX {
            records.push(value);
        }
    }

    fn register(&self, register: Register) -> u64 {
        self.registers[register.0 as usize]
    }

    fn set(&mut self, register: Register, value: u64) {
        self.registers[register.0 as usize] = value;
    }

    /// An amount, this time.
    pub(super) fn amount(&mut self, amount: AmountId) -> u64 {
        let (of, draws) = &self.code.amounts[amount.0 as usize];
        if !of.is_drawn() {
            return of.of(0);
        }
        let times = &mut self.times[amount.0 as usize];
        *times += 1;
        of.of(draws.nth(*times - 1))
    }

    /// The first moment of a grid after now.
    fn next_on(&self, grid: GridId, now: Ns) -> Ns {
        let grid = self.code.grids[grid.0 as usize];
        let first = self.begin + grid.phase;
        match now.checked_sub(first) {
            None => first,
            Some(past) => first + (past / grid.period + 1) * grid.period,
        }
    }
}

fn read(file: File, bytes: u32) -> Op {
    Op::Call(match file {
        File::Pipe(pipe) => Syscall::PipeRead { pipe, bytes },
        File::Socket(socket) => Syscall::Recv { socket, bytes },
    })
}
