// SPDX-License-Identifier: GPL-2.0-or-later
//! Scripts of these tests are their own.

use super::*;
use crate::builtin::benchmark::Counted;
use crate::builtin::options::{Values, WorkloadOption};
use crate::builtin::script::Flag;
use crate::program::Interpreter;
use crate::{Host, Programs};
use schedtwin_types::metric::{self, DeclaredMetric, Metric};
use schedtwin_types::{CpuId, FutexId, NEVER, Op, Outcome, ProcessId, Syscall};
use std::sync::Arc;

/// Where thread 0 waits for the end.
const MAIN_FUTEX: FutexId = FutexId(0);

fn futex_of(flag: Flag) -> FutexId {
    FutexId(flag.0 + 1)
}

/// A script's threads before their start.
fn interpreter(script: Script, seed: u64, warmup: Ns) -> Interpreter {
    let nr_cpus = script.nr_cpus;
    Interpreter::new(Arc::new(compile(&Test, script, seed, warmup, None)), nr_cpus)
}

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
        let recorded = counted.recorded.iter().map(|_| metric::SCORE.value("gmean", vec![], None));
        let janks = counted.tests.iter().map(|_| metric::JANK.value("mean", vec![], None));
        janks.chain(recorded).collect()
    }
}

/// A script whose threads have been started; each is a process of its own.
fn player(script: Script) -> Interpreter {
    let mut player = interpreter(script, 1, 0);
    for thread in 1..player.nr_threads() as u32 {
        let op = player.next(ThreadId(0), Outcome::Started, 0);
        assert_eq!(op, clone(thread));
    }
    let wait = Op::Call(Syscall::FutexWait { futex: MAIN_FUTEX });
    assert_eq!(player.next(ThreadId(0), Outcome::Done, 0), wait);
    player
}

fn clone(thread: u32) -> Op {
    Op::Call(Syscall::Clone { thread: ThreadId(thread), process: ProcessId(thread) })
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
        let mut player = interpreter(script, seed, 0);
        for _ in 0..=others {
            player.next(ThreadId(0), Outcome::Done, 0);
        }
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
    let player = interpreter(script, 1, 7);
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
    let _ = interpreter(script, 1, 0).results();
}

/// A thread that is made later is left out at the beginning, and its maker may make it again: the same if it has ended, else
/// another.
#[test]
fn a_thread_makes_another_as_often_as_it_likes() {
    let mut script = Script::new(2);
    let child = script.thread("child", SchedAttr::default()).later();
    let number = child.number();
    child.then(&[Step::Exec, Step::Work(Amount::Fixed(5)), Step::Leave]).for_ever();
    let steps = [Step::Clone(number), Step::Work(Amount::Fixed(9))];
    script.thread("parent", SchedAttr::default()).then(&steps).for_ever();
    let mut player = interpreter(script, 1, 0);
    assert_eq!(player.next(ThreadId(0), Outcome::Started, 0), clone(2));
    let wait = Op::Call(Syscall::FutexWait { futex: MAIN_FUTEX });
    assert_eq!(player.next(ThreadId(0), Outcome::Done, 0), wait);
    for life in [Outcome::Started, Outcome::Done] {
        assert_eq!(player.next(SECOND, life, 0), clone(1));
        assert_eq!(player.next(FIRST, Outcome::Started, 0), Op::Call(Syscall::Execve));
        assert_eq!(player.next(FIRST, Outcome::Done, 0), work(5));
        assert_eq!(player.next(FIRST, Outcome::Done, 0), Op::Exit);
        assert_eq!(player.next(SECOND, Outcome::Done, 0), work(9));
    }
    let third = ThreadId(3);
    for thread in [FIRST, third] {
        assert!(
            matches!(player.next(SECOND, Outcome::Done, 0), Op::Call(Syscall::Clone { thread: made, .. }) if made == thread)
        );
        assert_eq!(player.next(SECOND, Outcome::Done, 0), work(9));
    }
    assert_eq!((player.thread_name(third), player.nr_threads()), ("child", 4));
    assert_eq!(player.next(third, Outcome::Started, 0), Op::Call(Syscall::Execve));
}
