//! Plays a [`Script`]: threads, their shared memory and the devices of one run.
//!
//! Thread 0 starts all others and then sleeps for the run's duration, or until a thread says that the
//! workload is over. Every other thread takes its place (affinity, class, priority) and goes through
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
use super::frames::Frames;
use super::hints::Hints;
use super::script::{Device, Flag, Grid, Register, Script, Step};
use crate::program::memory::Semaphore;
use schedtwin_types::draw::Draws;
use schedtwin_types::metric::Metric;
use schedtwin_types::{
    CpuId, FutexId, Mark, Mode, NEVER, Ns, Op, Outcome, SchedAttr, Syscall, ThreadId,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Steps without time that a thread may take at one instant: a script that takes more is wrong.
const FREE_STEPS_MAX: u32 = 10_000;
/// Things that a device can have to do.
const DEVICE_QUEUE_MAX: usize = 64;
/// What is recorded: enough for any published benchmark's parts.
const RECORDED_MAX: usize = 1 << 20;
/// Where thread 0 waits for the end.
const MAIN_FUTEX: FutexId = FutexId(0);

/// How a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Born,
    Placed,
    Going,
    /// Slept for the flag of its step, and is awake again.
    Waits,
}

#[derive(Clone, Debug)]
struct Thread {
    state: State,
    step: u32,
    /// The moment that it last slept until.
    moment: Ns,
    /// The clamp that it has from a session of hints.
    util_min: Option<u16>,
}

/// What thread 0 does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Main {
    Born,
    Clone { next: u32 },
    Wait,
    Leave,
    Done,
}

#[derive(Clone, Debug)]
struct DeviceState {
    /// When it will be through with each thing.
    due: VecDeque<Ns>,
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
    devices: Vec<DeviceState>,
    devices_changed: bool,
    /// Per step: what it draws, and how often it was gone through.
    draws: Vec<Draws>,
    times: Vec<u64>,
    frames: Frames,
    hints: Vec<Hints>,
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
            draws: Draws::new(seed, &device.name, "again"),
            times: 0,
        };
        let thread = |thread: &super::script::ThreadScript| Thread {
            state: State::Born,
            step: thread.first_step,
            moment: 0,
            util_min: None,
        };
        Player {
            benchmark,
            main: Main::Born,
            threads: script.threads.iter().map(thread).collect(),
            flags: script.flags.iter().map(|value| Semaphore::of(*value)).collect(),
            registers: script.registers.clone(),
            devices: script.devices.iter().map(device).collect(),
            devices_changed: false,
            times: vec![0; script.steps.len()],
            draws,
            frames: Frames::new(script.tests.len(), script.refresh, script.jank),
            hints: script.sessions.iter().map(|target| Hints::new(*target)).collect(),
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
            Some(at) => &self.script.threads[at].name,
        }
    }

    pub fn group(&self, thread: ThreadId) -> &str {
        match thread.index().checked_sub(1) {
            None => self.benchmark.name(),
            Some(at) => &self.script.threads[at].group,
        }
    }

    /// What kind of work it is.
    pub fn work_kind(&self) -> &'static str {
        if self.script.kind.is_empty() { "benchmark" } else { self.script.kind }
    }

    pub fn warmup(&self) -> Ns {
        self.warmup
    }

    pub fn nr_threads(&self) -> usize {
        self.threads.len() + 1
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

    pub fn nr_devices(&self) -> usize {
        self.devices.len()
    }

    pub fn device_cpu(&self, device: usize) -> CpuId {
        self.script.devices[device].cpu
    }

    /// When a device interrupts next.
    pub fn device_at(&self, device: usize) -> Ns {
        self.devices[device].due.front().copied().unwrap_or(NEVER)
    }

    /// Whether devices have got something to do since the last call.
    #[inline]
    pub fn take_devices_changed(&mut self) -> bool {
        std::mem::take(&mut self.devices_changed)
    }

    /// A device's interrupt is handled: pushes the futexes that its handler wakes one waiter of.
    pub fn device_interrupt(&mut self, device: usize, now: Ns, wakes: &mut Vec<FutexId>) {
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
        self.devices_changed = true;
    }

    fn start(&mut self, device: Device, begin: Ns, work: Ns) {
        let due = &mut self.devices[device.0 as usize].due;
        assert!(due.len() < DEVICE_QUEUE_MAX, "a device has more to do than it can remember");
        let free = due.back().copied().unwrap_or(0).max(begin);
        due.push_back(free + work);
        self.devices_changed = true;
    }

    // ---- threads ------------------------------------------------------------------------------

    pub fn next(&mut self, thread: ThreadId, _outcome: Outcome, now: Ns) -> Op {
        match thread.index().checked_sub(1) {
            None => self.next_of_main(now),
            Some(at) => self.next_of(at, now),
        }
    }

    fn next_of_main(&mut self, now: Ns) -> Op {
        if self.main == Main::Born {
            self.begin = now;
            self.main = Main::Clone { next: 0 };
            self.start_sources(now);
        }
        if let Main::Clone { next } = self.main {
            if (next as usize) < self.threads.len() {
                self.main = Main::Clone { next: next + 1 };
                return Op::Call(Syscall::Clone { thread: ThreadId(next + 1) });
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

    /// Devices that come by themselves come for the first time after a part of their gap.
    fn start_sources(&mut self, now: Ns) {
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

    fn next_of(&mut self, at: usize, now: Ns) -> Op {
        match self.threads[at].state {
            State::Born => {
                self.threads[at].state = State::Placed;
                if let Some(mask) = self.script.threads[at].cpus {
                    return Op::Call(Syscall::SchedSetaffinity { mask });
                }
                return self.next_of(at, now);
            }
            State::Placed => {
                self.threads[at].state = State::Going;
                let attributes = self.script.threads[at].attributes;
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
            State::Going => {}
        }
        for _ in 0..FREE_STEPS_MAX {
            if let Some(op) = self.step(at, now) {
                return op;
            }
        }
        panic!("thread {} does not let time pass", self.script.threads[at].name);
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
                    let attributes = self.script.threads[at].attributes;
                    let clamped = SchedAttr { util_min: clamp, ..attributes };
                    return Some(Op::Call(Syscall::SchedSetattr(clamped)));
                }
            }
            Step::End => return Some(self.end()),
        }
        None
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

    /// What the benchmark itself says in the end.
    ///
    /// # Panics
    /// If it gives a metric that it has not told to bring.
    pub fn results(&self) -> Vec<Metric> {
        let (tests, frames) = (&self.script.tests[..], &self.frames.tests[..]);
        let metrics = self.benchmark.results(&Counted { tests, frames, recorded: &self.recorded });
        for Metric { name, .. } in &metrics {
            let brings = self.benchmark.metrics().iter().any(|metric| metric.name == *name);
            assert!(brings, "{} does not bring {name}", self.benchmark.name());
        }
        metrics
    }
}

fn futex_of(flag: Flag) -> FutexId {
    FutexId(flag.0 + 1)
}

#[cfg(test)]
mod tests {
    use super::super::options::{Values, WorkloadOption};
    use super::*;
    use crate::{Host, Programs};
    use schedtwin_types::metric::{self, DeclaredMetric};

    /// Scripts of these tests are their own; it brings jank alone, and counts the tests.
    #[derive(Debug)]
    struct Test;

    impl Benchmark for Test {
        fn name(&self) -> &'static str {
            "test"
        }

        fn description(&self) -> &'static str {
            "a test"
        }

        fn options(&self) -> &'static [WorkloadOption] {
            &[]
        }

        fn about(&self) -> &'static str {
            "nothing\n"
        }

        fn metrics(&self) -> &'static [&'static DeclaredMetric] {
            const JANK: &[&DeclaredMetric] = &[&metric::JANK];
            JANK
        }

        fn build(&self, _: &Values, host: &Host) -> Script {
            Script::new(host.cpu_capacity.len())
        }

        fn results(&self, counted: &Counted) -> Vec<Metric> {
            let recorded =
                counted.recorded.iter().map(|_| metric::SCORE.value("gmean", vec![], None));
            let janks = counted.tests.iter().map(|_| metric::JANK.value("mean", vec![], None));
            janks.chain(recorded).collect()
        }
    }

    fn player(script: Script) -> Player {
        let mut player = Player::new(&Test, Arc::new(script), 1, 0, None);
        for thread in 0..player.threads.len() {
            let op = player.next(ThreadId(0), Outcome::Started, 0);
            let thread = ThreadId(thread as u32 + 1);
            assert_eq!(op, Op::Call(Syscall::Clone { thread }));
        }
        let wait = Op::Call(Syscall::FutexWait { futex: MAIN_FUTEX });
        assert_eq!(player.next(ThreadId(0), Outcome::Done, 0), wait);
        player
    }

    const FIRST: ThreadId = ThreadId(1);
    const SECOND: ThreadId = ThreadId(2);

    fn work(work: u64) -> Op {
        Op::Compute { work, mode: Mode::User }
    }

    #[test]
    fn a_device_does_one_thing_after_the_other_and_its_handler_wakes() {
        let mut script = Script::new(4);
        let done = script.flag(0);
        let (half, at_once) = (script.register(50), script.register(0));
        let gpu = script.device("gpu", 7, &[done]);
        let start = Step::Start(gpu, Amount::Fixed(1_000), half, at_once);
        let steps = [start, start, Step::Work(Amount::Fixed(9)), Step::Wait(done)];
        script.thread("asks", SchedAttr::default()).then(&steps).for_ever();
        let mut player = player(script);
        assert_eq!(player.device_cpu(0), CpuId(0), "there is no CPU 7");
        assert_eq!(player.device_at(0), NEVER);
        assert_eq!(player.next(FIRST, Outcome::Started, 100), work(9));
        assert!(player.take_devices_changed() && !player.take_devices_changed());
        assert_eq!(player.device_at(0), 600);
        let mut wakes = Vec::new();
        player.device_interrupt(0, 600, &mut wakes);
        assert!(wakes.is_empty(), "nobody waits yet");
        assert_eq!(player.device_at(0), 1_100, "the second begins when the first is over");
        // It is through with the first, which was posted, gives two more, and waits for the second.
        assert_eq!(player.next(FIRST, Outcome::Done, 700), work(9));
        let wait = Op::Call(Syscall::FutexWait { futex: futex_of(done) });
        player.device_interrupt(0, 1_100, &mut wakes);
        assert_eq!(player.next(FIRST, Outcome::Done, 1_200), work(9));
        assert_eq!(player.next(FIRST, Outcome::Done, 1_300), wait);
        player.device_interrupt(0, 1_600, &mut wakes);
        assert_eq!(wakes, [futex_of(done)]);
        assert_eq!(player.next(FIRST, Outcome::Done, 1_700), work(9));
    }

    #[test]
    fn a_raised_flag_is_one_event_and_posts_are_counted() {
        for (step, works) in [(Step::Raise as fn(Flag) -> Step, 1), (Step::Post, 3)] {
            let mut script = Script::new(1);
            let flag = script.flag(0);
            let fixed = |amount| Step::Work(Amount::Fixed(amount));
            let steps = [step(flag), step(flag), step(flag), fixed(5)];
            script.thread("gives", SchedAttr::default()).then(&steps).for_ever();
            let steps = [Step::Wait(flag), fixed(7)];
            script.thread("takes", SchedAttr::default()).then(&steps).for_ever();
            let mut player = player(script);
            assert_eq!(player.next(FIRST, Outcome::Started, 0), work(5));
            for _ in 0..works {
                assert_eq!(player.next(SECOND, Outcome::Started, 0), work(7));
            }
            let wait = Op::Call(Syscall::FutexWait { futex: futex_of(flag) });
            assert_eq!(player.next(SECOND, Outcome::Done, 0), wait, "{works}");
        }
    }

    #[test]
    fn branches_and_loops_go_where_they_should() {
        let mut script = Script::new(1);
        let (counter, odd) = (script.register(0), script.register(0));
        let fixed = |amount| Step::Work(Amount::Fixed(amount));
        script
            .thread("loops", SchedAttr::default())
            .times(counter, 4, |round| {
                round.either(
                    odd,
                    |odd_one| odd_one.then(&[Step::Take(odd), fixed(1)]),
                    |even| even.then(&[Step::Add(odd, 1), fixed(2)]),
                )
            })
            .unless_set(odd, |none| none.then(&[fixed(3)]))
            .then(&[Step::End])
            .for_ever();
        let mut player = player(script);
        let mut next = || player.next(FIRST, Outcome::Done, 0);
        let seen: Vec<Op> = (0..6).map(|_| next()).collect();
        assert_eq!(seen, [work(2), work(1), work(2), work(1), work(3), Op::Exit]);
        assert!(player.finished());
    }

    #[test]
    fn draws_depend_on_seed_thread_and_ordinal_alone() {
        let works = |seed: u64, others: usize| {
            let mut script = Script::new(1);
            let amount = Amount::Uniform(1, 1_000_000);
            for name in ["a", "b"].iter().take(others) {
                let steps = [Step::Work(amount), Step::Work(amount)];
                script.thread(name, SchedAttr::default()).then(&steps).for_ever();
            }
            script.thread("c", SchedAttr::default()).then(&[Step::Work(amount)]).for_ever();
            let mut player = Player::new(&Test, Arc::new(script), seed, 0, None);
            let thread = ThreadId(others as u32 + 1);
            (0..8).map(|_| player.next(thread, Outcome::Done, 0)).collect::<Vec<_>>()
        };
        assert_eq!(works(1, 0), works(1, 2), "other threads shift nothing");
        assert_ne!(works(1, 0), works(2, 0));
    }
    #[test]
    fn results_and_warmup_are_the_benchmarks() {
        let mut script = Script::new(1);
        script.tests = vec!["one", "two"];
        let player = Player::new(&Test, Arc::new(script), 1, 7, None);
        let programs = Programs::from(player);
        assert_eq!(programs.warmup(), 7);
        let names: Vec<_> = programs.results().iter().map(|metric| metric.name).collect();
        assert_eq!(names, ["jank", "jank"]);
    }

    #[test]
    #[should_panic(expected = "test does not bring score")]
    fn a_result_that_a_benchmark_does_not_bring_is_a_bug() {
        let mut script = Script::new(1);
        script.recorded = vec!["part"];
        let _ = Player::new(&Test, Arc::new(script), 1, 0, None).results();
    }
}
