// SPDX-License-Identifier: GPL-2.0-or-later
//! Plays a [`Script`]: threads, their shared memory and the devices of one run.
//!
//! Thread 0 starts all others but those that another thread starts, and then sleeps for the run's duration, or until a
//! thread says that the workload is over. Every other thread takes its place (affinity, class, priority) and goes through
//! its steps. What takes no time (raising a flag that nobody waits for, setting a register) is done at
//! once; what takes time is answered to the twin.
//!
//! Draws are keyed by thread, step and the how-manieth time the step is gone through, so the seventh frame is as
//! heavy under every kernel.
//!
//! Differences: as in `program`: the test of a futex word and the call that follows are one instant. A shared
//! number is never contended. A device does one thing after the other, and takes as many as it is given.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted};
use super::deliveries::Deliveries;
use super::frames::Frames;
use super::hints::Hints;
use super::script::{
    self, Crew, Delivery, Device, End, Flag, Grid, Pair, Queue, Register, Script, Step,
};
use crate::program::memory::Semaphore;
use schedtwin_types::draw::Draws;
use schedtwin_types::metric::Metric;
use schedtwin_types::{
    BlockOp, CpuId, File, FutexId, Mark, Mode, NEVER, Ns, Op, Outcome, ProcessId, SchedAttr,
    SocketId, Syscall, ThreadId, Work,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Steps without time that a thread may take at one instant: a script that takes more is wrong.
const FREE_STEPS_MAX: u32 = 10_000;
/// Things that a device can have to do.
const DEVICE_QUEUE_MAX: usize = 64;
/// The most values that are recorded: enough for any published benchmark's parts.
const RECORDED_MAX: usize = 1 << 20;
/// One look at a lock that somebody else has, and the pauses after it, user work. [E]
const SPIN: Op = Op::Compute { work: 20_000, mode: Mode::User };
/// The pieces in which a thread spins until a moment, user work.
const SPIN_MIN: Work = 1_000;
const SPIN_MAX: Work = 1_000_000;
/// Where thread 0 waits for the end.
const MAIN_FUTEX: FutexId = FutexId(0);

/// How a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not there: not born yet, or it has ended.
    Absent,
    Born,
    Placed,
    Going,
    /// Slept for the flag of its step, and is awake again.
    Waits,
    /// Has read, and lacks so many bytes less what it got.
    Reads {
        left: u32,
    },
    /// Has asked which CPU it runs on, to lock that.
    AsksCpu,
    /// Spins for a CPU's lock.
    SpinsFor(CpuId),
}

#[derive(Clone, Debug)]
struct Thread {
    /// Its script.
    script: u32,
    state: State,
    step: u32,
    /// The moment that it last slept until.
    moment: Ns,
    /// The clamp that it has from a session of hints.
    util_min: Option<u16>,
}

impl Thread {
    fn absent(script: u32) -> Thread {
        Thread { script, state: State::Absent, step: 0, moment: 0, util_min: None }
    }
}

/// The next action of thread 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Main {
    Born,
    Connect { next: u32 },
    Clone { next: u32 },
    Wait,
    Leave,
    Done,
}

/// Threads that wait to be woken all together.
#[derive(Clone, Debug, Default)]
struct Waiting {
    /// Waiting threads: the flag of each, and where it wants the moment of its waking.
    waiting: Vec<(Flag, Register)>,
    /// Threads that are being woken: the list as it was, the next one last.
    woken: Vec<(Flag, Register)>,
}

#[derive(Clone, Debug)]
struct DeviceState {
    /// When it will be through with each thing.
    due: VecDeque<Ns>,
    deliveries: Deliveries,
    draws: Draws,
    times: u64,
}

/// A script being played. A clone goes on independently.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    script: Arc<Script>,
    benchmark: &'static dyn Benchmark,
    main: Main,
    threads: Vec<Thread>,
    flags: Vec<Semaphore>,
    registers: Vec<u64>,
    queues: Vec<VecDeque<u64>>,
    devices: Vec<DeviceState>,
    devices_changed: bool,
    /// Per step: what it draws, and how often it was gone through.
    draws: Vec<Draws>,
    times: Vec<u64>,
    frames: Frames,
    hints: Vec<Hints>,
    crews: Vec<Waiting>,
    /// Locks of CPUs: who has each.
    cpu_locks: Vec<Option<u32>>,
    recorded: Vec<Vec<Ns>>,
    begin: Ns,
    warmup: Ns,
    duration: Option<Ns>,
    over: bool,
}

impl Player {
    pub fn new(
        benchmark: &'static dyn Benchmark,
        script: Arc<Script>,
        seed: u64,
        warmup: Ns,
        duration: Option<Ns>,
    ) -> Player {
        let mut draws = Vec::with_capacity(script.steps.len());
        for (index, thread) in script.threads.iter().enumerate() {
            let next = script.threads.get(index + 1);
            let end = next.map_or(script.steps.len(), |next| next.first_step as usize);
            // Threads of one name are told apart by their place among them.
            let earlier = &script.threads[..index];
            let alike = earlier.iter().filter(|other| other.name == thread.name).count();
            // Steps of hints are not counted: with them and without, the work is the same.
            let mut ordinal = 0;
            for step in &script.steps[thread.first_step as usize..end] {
                draws.push(Draws::new(seed, &thread.name, &format!("{alike}.{ordinal}")));
                ordinal += usize::from(!step.is_hint());
            }
        }
        let device = |device: &super::script::DeviceScript| DeviceState {
            due: VecDeque::with_capacity(DEVICE_QUEUE_MAX),
            deliveries: Deliveries::default(),
            draws: Draws::new(seed, &device.name, "again"),
            times: 0,
        };
        Player {
            benchmark,
            main: Main::Born,
            threads: (0..script.threads.len() as u32).map(Thread::absent).collect(),
            flags: script.flags.iter().map(|value| Semaphore::of(*value)).collect(),
            registers: script.registers.clone(),
            queues: vec![VecDeque::new(); script.nr_queues as usize],
            devices: script.devices.iter().map(device).collect(),
            devices_changed: false,
            times: vec![0; script.steps.len()],
            draws,
            frames: Frames::new(script.tests.len(), script.refresh, script.jank),
            hints: script.sessions.iter().map(|target| Hints::new(*target)).collect(),
            crews: vec![Waiting::default(); script.nr_crews as usize],
            cpu_locks: vec![None; script.nr_cpus],
            recorded: vec![Vec::new(); script.recorded.len()],
            begin: 0,
            warmup,
            duration,
            over: false,
            script,
        }
    }

    pub fn name(&self, thread: ThreadId) -> &str {
        match thread.index().checked_sub(1) {
            None => self.benchmark.name(),
            Some(at) => &self.script_of(at).name,
        }
    }

    pub fn group(&self, thread: ThreadId) -> &str {
        match thread.index().checked_sub(1) {
            None => self.benchmark.name(),
            Some(at) => &self.script_of(at).group,
        }
    }

    /// Returns the kind of work.
    pub fn work_kind(&self) -> &'static str {
        if self.script.kind.is_empty() { "benchmark" } else { self.script.kind }
    }

    pub fn counts_requests(&self) -> bool {
        self.benchmark.counts_requests()
    }

    pub fn warmup(&self) -> Ns {
        self.warmup
    }

    pub fn nr_threads(&self) -> usize {
        self.threads.len() + 1
    }

    pub fn nr_pipes(&self) -> usize {
        self.script.nr_pipes as usize
    }

    pub fn nr_futexes(&self) -> usize {
        self.flags.len() + 1
    }

    pub fn finished(&self) -> bool {
        self.main == Main::Done
    }

    /// Thread 0 leaves with its next step.
    pub fn shutdown(&mut self) {
        self.over = true;
        self.main = Main::Leave;
    }

    // ---- devices ------------------------------------------------------------------------------

    pub fn uses_block_devices(&self) -> bool {
        let is_io = |step: &Step| matches!(step, Step::BlockIo(..) | Step::Flush(_));
        self.script.steps.iter().any(is_io)
    }

    pub fn nr_devices(&self) -> usize {
        self.devices.len()
    }

    pub fn device_cpu(&self, device: usize) -> CpuId {
        self.script.devices[device].cpu
    }

    /// When a device interrupts next.
    pub fn device_at(&self, device: usize) -> Ns {
        let device = &self.devices[device];
        device.due.front().copied().unwrap_or(NEVER).min(device.deliveries.next_at())
    }

    /// Whether devices have got something to do since the last call.
    #[inline]
    pub fn take_devices_changed(&mut self) -> bool {
        std::mem::take(&mut self.devices_changed)
    }

    /// A device's interrupt is handled: pushes the futexes that its handler wakes one waiter of.
    pub fn device_interrupt(&mut self, device: usize, now: Ns, wakes: &mut Vec<FutexId>) {
        let state = &mut self.devices[device];
        let is_through = state.due.front().is_some_and(|due| *due <= now);
        self.deliver(device, now, wakes);
        self.devices_changed = true;
        if !is_through {
            return;
        }
        let state = &mut self.devices[device];
        state.due.pop_front();
        if let Some(again) = self.script.devices[device].again {
            let gap = again.of(state.draws.nth(state.times)).max(1);
            state.times += 1;
            state.due.push_back(now + gap);
        }
        let script = self.script.clone();
        for flag in &script.devices[device].posts {
            if self.flags[flag.0 as usize].post(now) {
                wakes.push(futex_of(*flag));
            }
        }
    }

    /// Hands over what has come.
    fn deliver(&mut self, device: usize, now: Ns, wakes: &mut Vec<FutexId>) {
        while let Some(Delivery { flag, moment }) = self.devices[device].deliveries.pop(now) {
            if let Some(Queue(queue)) = moment {
                self.queues[queue as usize].push_back(now);
            }
            if self.flags[flag.0 as usize].post(now) {
                wakes.push(futex_of(flag));
            }
        }
    }

    fn start(&mut self, device: Device, begin: Ns, work: Ns) {
        let due = &mut self.devices[device.0 as usize].due;
        assert!(due.len() < DEVICE_QUEUE_MAX, "a device has more to do than it can remember");
        let free = due.back().copied().unwrap_or(0).max(begin);
        due.push_back(free + work);
        self.devices_changed = true;
    }

    // ---- threads ------------------------------------------------------------------------------

    pub fn next(&mut self, thread: ThreadId, outcome: Outcome, now: Ns) -> Op {
        match thread.index().checked_sub(1) {
            None => self.next_of_main(now),
            Some(at) => self.next_of(at, outcome, now),
        }
    }

    fn next_of_main(&mut self, now: Ns) -> Op {
        if self.main == Main::Born {
            self.begin = now;
            self.main = Main::Connect { next: 0 };
            self.start_sources(now);
        }
        if let Main::Connect { next } = self.main {
            if let Some(Pair { kind, sndbuf }) = self.script.pairs.get(next as usize).copied() {
                self.main = Main::Connect { next: next + 1 };
                let [first, second] = [SocketId(2 * next), SocketId(2 * next + 1)];
                return Op::Call(Syscall::Socketpair { first, second, kind, sndbuf });
            }
            self.main = Main::Clone { next: 0 };
        }
        if let Main::Clone { next } = self.main {
            let mut rest = (next..).zip(&self.script.threads[next as usize..]);
            if let Some((thread, _)) = rest.find(|(_, thread)| !thread.later) {
                self.main = Main::Clone { next: thread + 1 };
                return self.clone_thread(thread);
            }
            self.main = Main::Wait;
        }
        if self.main == Main::Wait && !self.over {
            self.main = Main::Leave;
            return Op::Call(match self.duration {
                Some(duration) => Syscall::NanosleepUntil { until: self.begin + duration },
                None => Syscall::FutexWait { futex: MAIN_FUTEX },
            });
        }
        self.main = Main::Done;
        Op::Exit
    }

    fn script_of(&self, at: usize) -> &script::ThreadScript {
        &self.script.threads[self.threads[at].script as usize]
    }

    /// Starts a thread of that script: one that is absent, or another one while all are still on their way out.
    fn clone_thread(&mut self, script: u32) -> Op {
        let is_free = |thread: &Thread| thread.script == script && thread.state == State::Absent;
        let more = self.script.threads.len();
        let at = match is_free(&self.threads[script as usize]) {
            true => script as usize,
            false => {
                let free = self.threads[more..].iter().position(is_free);
                free.map_or(self.threads.len(), |free| more + free)
            }
        };
        if at == self.threads.len() {
            self.threads.push(Thread::absent(script));
        }
        let step = self.script.threads[script as usize].first_step;
        self.threads[at] = Thread { state: State::Born, step, ..Thread::absent(script) };
        let thread = ThreadId(at as u32 + 1);
        Op::Call(Syscall::Clone { thread, process: self.process_of(at as u32) })
    }

    /// Thread 0 is a process of its own; then come those of several threads, then those of one.
    fn process_of(&self, at: u32) -> ProcessId {
        let shared = self.script.processes.len() as u32;
        ProcessId(1 + self.script_of(at as usize).process.unwrap_or(shared + at))
    }

    /// Devices that come by themselves come for the first time after a part of their gap.
    fn start_sources(&mut self, now: Ns) {
        for (device, after, delivery) in &self.script.arrivals {
            self.devices[device.0 as usize].deliveries.push(now + after, *delivery);
        }
        for device in 0..self.devices.len() {
            if let Some(again) = self.script.devices[device].again {
                let state = &mut self.devices[device];
                let gap = again.of(state.draws.nth(state.times)).max(1);
                state.times += 1;
                state.due.push_back(now + gap);
            }
        }
        self.devices_changed = true;
    }

    fn next_of(&mut self, at: usize, outcome: Outcome, now: Ns) -> Op {
        match self.threads[at].state {
            State::Absent => unreachable!("a thread that is not there does nothing"),
            State::Born => {
                self.threads[at].state = State::Placed;
                if let Some(mask) = self.script_of(at).cpus {
                    return Op::Call(Syscall::SchedSetaffinity { mask });
                }
                return self.next_of(at, outcome, now);
            }
            State::Placed => {
                self.threads[at].state = State::Going;
                let attributes = self.script_of(at).attributes;
                if attributes != SchedAttr::default() {
                    return Op::Call(Syscall::SchedSetattr(attributes));
                }
            }
            State::Waits => {
                let flag = self.waits_for(at);
                if !self.flags[flag.0 as usize].wait_again(false) {
                    return Op::Call(Syscall::FutexWait { futex: futex_of(flag) });
                }
                self.threads[at].moment = self.flags[flag.0 as usize].woken_at;
                self.threads[at].state = State::Going;
                self.threads[at].step += 1;
            }
            State::Reads { left } => {
                let Outcome::Value(got) = outcome else { unreachable!("a read returns bytes") };
                // A datagram's end may be lost.
                let left = if got == 0 { 0 } else { left.saturating_sub(got as u32) };
                let thread = &mut self.threads[at];
                if left > 0 {
                    thread.state = State::Reads { left };
                    let Step::Read(end, _) = self.script.steps[thread.step as usize] else {
                        unreachable!("reads nothing")
                    };
                    return read(end, left);
                }
                (thread.state, thread.step) = (State::Going, thread.step + 1);
            }
            State::AsksCpu => {
                let Outcome::Value(cpu) = outcome else { unreachable!("every CPU has a number") };
                if let Some(spin) = self.lock_cpu(at, CpuId(cpu as u16)) {
                    return spin;
                }
            }
            State::SpinsFor(cpu) => {
                if self.cpu_locks[cpu.index()].is_some() {
                    return SPIN;
                }
                // It may have been moved meanwhile: the lock has to be that of its CPU.
                self.threads[at].state = State::AsksCpu;
                return Op::Call(Syscall::Getcpu);
            }
            State::Going => {}
        }
        for _ in 0..FREE_STEPS_MAX {
            if let Some(op) = self.step(at, now) {
                return op;
            }
        }
        panic!("thread {} does not let time pass", self.script_of(at).name);
    }

    fn waits_for(&self, at: usize) -> Flag {
        match self.script.steps[self.threads[at].step as usize] {
            Step::Wait(flag) => flag,
            other => unreachable!("{other:?} waits for no flag"),
        }
    }

    /// The amount of a step, this time.
    fn amount(&mut self, step: usize, amount: Amount) -> u64 {
        if !amount.is_drawn() {
            return amount.of(0);
        }
        let word = self.draws[step].nth(self.times[step]);
        self.times[step] += 1;
        amount.of(word)
    }

    /// One step; what it takes time for, if it does.
    fn step(&mut self, at: usize, now: Ns) -> Option<Op> {
        let index = self.threads[at].step as usize;
        self.threads[at].step += 1;
        match self.script.steps[index] {
            Step::Work(amount) => {
                let work = self.amount(index, amount);
                return (work > 0).then_some(Op::Compute { work, mode: Mode::User });
            }
            Step::Draw(register, amount, percent) => {
                let amount = self.amount(index, amount);
                *self.register(register) = amount * *self.register(percent) / 100;
            }
            Step::WorkShare(register, percent) => {
                let work = *self.register(register) * percent / 100;
                return (work > 0).then_some(Op::Compute { work, mode: Mode::User });
            }
            Step::WorkRest(register) => {
                let work = std::mem::take(self.register(register));
                return (work > 0).then_some(Op::Compute { work, mode: Mode::User });
            }
            Step::Sleep(amount) => {
                let duration = self.amount(index, amount);
                self.threads[at].moment = now + duration;
                return Some(Op::Call(Syscall::Nanosleep { duration }));
            }
            Step::Until(grid) => {
                let until = self.next_on(grid, now);
                self.threads[at].moment = until;
                return Some(Op::Call(Syscall::NanosleepUntil { until }));
            }
            Step::Wait(flag) => {
                if !self.flags[flag.0 as usize].wait() {
                    let thread = &mut self.threads[at];
                    (thread.state, thread.step) = (State::Waits, index as u32);
                    return Some(Op::Call(Syscall::FutexWait { futex: futex_of(flag) }));
                }
                self.threads[at].moment = now;
            }
            Step::Post(flag) => return self.post(flag, now),
            Step::Raise(flag) => {
                if self.flags[flag.0 as usize].is_down() {
                    return self.post(flag, now);
                }
            }
            Step::Start(device, amount, percent, after) => {
                let work = self.amount(index, amount) * *self.register(percent) / 100;
                let begin = (*self.register(after)).max(now);
                self.start(device, begin, work);
            }
            Step::StartUntil(device, grid) => {
                let until = self.next_on(grid, now);
                self.start(device, until, 0);
            }
            Step::Set(register, value) => *self.register(register) = value,
            Step::Add(register, value) => *self.register(register) += value,
            Step::SetDrawn(register, amount) => {
                let drawn = self.amount(index, amount);
                *self.register(register) = drawn;
            }
            Step::SetNext(register, grid) => {
                let next = self.next_on(grid, now);
                *self.register(register) = next;
            }
            Step::Copy(to, from) => {
                let value = *self.register(from);
                *self.register(to) = value;
            }
            Step::Take(register) => *self.register(register) -= 1,
            Step::Now(register) => {
                let moment = self.threads[at].moment;
                *self.register(register) = moment;
            }
            Step::Jump(label) => self.threads[at].step = label.index(),
            Step::JumpIfZero(register, label) => {
                if *self.register(register) == 0 {
                    self.threads[at].step = label.index();
                }
            }
            Step::FrameBegin(register) => {
                let intended = *self.register(register);
                self.frames.begin(intended);
            }
            Step::FrameEnd => {
                if let Some(released) = self.frames.end(now) {
                    return Some(Op::Mark(Mark::JobDone { released }));
                }
            }
            Step::Count(test) => self.frames.count(test),
            Step::Clock(register) | Step::HintClock(register) => *self.register(register) = now,
            Step::Record(what, since) => {
                let since = *self.register(since);
                self.record(what, now - since);
            }
            Step::RecordAmount(what, amount) => self.record(what, amount),
            Step::HintBegin(session) => self.hints[session.0 as usize].begin(now),
            Step::HintWaited(session, since) => {
                let since = *self.register(since);
                self.hints[session.0 as usize].waited(now - since);
            }
            Step::HintEnd(session) => self.hints[session.0 as usize].end(now),
            Step::HintTake(session) => {
                let clamp = Some(self.hints[session.0 as usize].clamp(now));
                if self.threads[at].util_min != clamp {
                    self.threads[at].util_min = clamp;
                    let attributes = self.script_of(at).attributes;
                    let clamped = SchedAttr { util_min: clamp, ..attributes };
                    return Some(Op::Call(Syscall::SchedSetattr(clamped)));
                }
            }
            Step::Later(device, amount, delivery) => {
                let at = now + self.amount(index, amount);
                self.devices[device.0 as usize].deliveries.push(at, delivery);
                self.devices_changed = true;
            }
            Step::Put(queue, from) => {
                let number = *self.register(from);
                self.queues[queue.0 as usize].push_back(number);
            }
            Step::Get(queue, to) => {
                let number = self.queues[queue.0 as usize].pop_front();
                *self.register(to) = number.expect("a flag counts what is in the queue");
            }
            Step::PostAll(flag, count) => {
                let count = std::mem::take(self.register(count)) as u32;
                let posts = (0..count).filter(|_| self.flags[flag.0 as usize].post(now)).count();
                let wake = Syscall::FutexWake { futex: futex_of(flag), count };
                return (posts > 0).then_some(Op::Call(wake));
            }
            Step::KernelWork(amount) => {
                let work = self.amount(index, amount);
                return (work > 0).then_some(Op::Compute { work, mode: Mode::Kernel });
            }
            Step::Write(end, bytes) => {
                return Some(Op::Call(match end {
                    End::Pipe(pipe) => Syscall::PipeWrite { pipe, bytes },
                    End::Socket(socket) => Syscall::Send { socket, bytes },
                }));
            }
            Step::Read(end, bytes) => {
                let thread = &mut self.threads[at];
                (thread.state, thread.step) = (State::Reads { left: bytes }, index as u32);
                return Some(read(end, bytes));
            }
            Step::Poll(end) => {
                let file = match end {
                    End::Pipe(pipe) => File::Pipe(pipe),
                    End::Socket(socket) => File::Socket(socket),
                };
                return Some(Op::Call(Syscall::Poll { file }));
            }
            Step::Spin(since, duration) => {
                let until = *self.register(since) + duration;
                if now < until {
                    self.threads[at].step = index as u32;
                    // Half of what is left: a CPU that is slower, or busy with others, does not go far beyond.
                    let work = ((until - now) / 2).clamp(SPIN_MIN, SPIN_MAX);
                    return Some(Op::Compute { work, mode: Mode::User });
                }
            }
            Step::Enlist(crew, flag, moment) => {
                self.crews[crew.0 as usize].waiting.push((flag, moment));
            }
            Step::RaiseAll(crew) => return self.raise_all(at, index, crew, now),
            Step::Relax => return Some(Op::Relax),
            Step::LockCpu => {
                self.threads[at].state = State::AsksCpu;
                return Some(Op::Call(Syscall::Getcpu));
            }
            Step::UnlockCpu => {
                let mine = self.cpu_locks.iter_mut().find(|lock| **lock == Some(at as u32));
                *mine.expect("it has locked a CPU") = None;
            }
            Step::Job(since) => {
                let released = *self.register(since);
                return Some(Op::Mark(Mark::JobDone { released }));
            }
            Step::BlockIo(device, bytes, reads) => {
                let is_read = match reads {
                    0 | 100 => reads == 100,
                    reads => self.amount(index, Amount::Uniform(0, 99)) < reads,
                };
                let op = if is_read { BlockOp::Read } else { BlockOp::Write };
                return Some(Op::Call(Syscall::BlockIo { device, op, bytes }));
            }
            Step::Flush(device) => {
                let (op, bytes) = (BlockOp::Flush, 0);
                return Some(Op::Call(Syscall::BlockIo { device, op, bytes }));
            }
            Step::Clone(script::Thread(child)) => return Some(self.clone_thread(child)),
            Step::Exec => return Some(Op::Call(Syscall::Execve)),
            Step::Leave => {
                self.threads[at].state = State::Absent;
                return Some(Op::Exit);
            }
            Step::End => return Some(self.end()),
        }
        None
    }

    /// A thread that runs on a CPU takes its lock, or spins for it.
    fn lock_cpu(&mut self, at: usize, cpu: CpuId) -> Option<Op> {
        let lock = &mut self.cpu_locks[cpu.index()];
        if lock.is_some() {
            self.threads[at].state = State::SpinsFor(cpu);
            return Some(SPIN);
        }
        *lock = Some(at as u32);
        self.threads[at].state = State::Going;
        None
    }

    /// Raises the flags of all that are on a crew's list, latest first: a step that is gone through for each.
    fn raise_all(&mut self, at: usize, index: usize, crew: Crew, now: Ns) -> Option<Op> {
        let list = &mut self.crews[crew.0 as usize];
        if list.woken.is_empty() {
            std::mem::swap(&mut list.waiting, &mut list.woken);
            for (_, moment) in &list.woken {
                self.registers[moment.0 as usize] = now;
            }
        }
        let (flag, _) = list.woken.pop()?;
        if !list.woken.is_empty() {
            self.threads[at].step = index as u32;
        }
        if self.flags[flag.0 as usize].is_down() { self.post(flag, now) } else { None }
    }

    fn record(&mut self, what: u16, value: u64) {
        let recorded = &mut self.recorded[usize::from(what)];
        if recorded.len() < RECORDED_MAX {
            recorded.push(value);
        }
    }

    /// The workload is over: the run ends here, unless it was given a duration.
    fn end(&mut self) -> Op {
        self.over = true;
        if self.duration.is_none() {
            self.main = Main::Done;
        }
        Op::Exit
    }

    fn register(&mut self, register: Register) -> &mut u64 {
        &mut self.registers[register.0 as usize]
    }

    fn post(&mut self, flag: Flag, now: Ns) -> Option<Op> {
        let wakes = self.flags[flag.0 as usize].post(now);
        wakes.then_some(Op::Call(Syscall::FutexWake { futex: futex_of(flag), count: 1 }))
    }

    /// The first moment of a grid after now.
    fn next_on(&self, grid: Grid, now: Ns) -> Ns {
        let first = self.begin + grid.phase;
        match now.checked_sub(first) {
            None => first,
            Some(past) => first + (past / grid.period + 1) * grid.period,
        }
    }

    /// Returns the benchmark's own results at the end.
    ///
    /// # Panics
    /// If it gives a metric that it has not told to bring.
    pub fn results(&self) -> Vec<Metric> {
        let (tests, frames) = (&self.script.tests[..], &self.frames.tests[..]);
        let (recorded, registers) = (&self.recorded[..], &self.registers[..]);
        let metrics = self.benchmark.results(&Counted { tests, frames, recorded, registers });
        for Metric { name, .. } in &metrics {
            let brings = self.benchmark.metrics().iter().any(|metric| metric.name == *name);
            assert!(brings, "{} does not bring {name}", self.benchmark.name());
        }
        metrics
    }
}

fn read(end: End, bytes: u32) -> Op {
    Op::Call(match end {
        End::Pipe(pipe) => Syscall::PipeRead { pipe, bytes },
        End::Socket(socket) => Syscall::Recv { socket, bytes },
    })
}

fn futex_of(flag: Flag) -> FutexId {
    FutexId(flag.0 + 1)
}

#[cfg(test)]
mod tests;
