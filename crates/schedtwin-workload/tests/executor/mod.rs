// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel for tests of workloads: as many CPUs as threads, futex queues in order of arrival,
//! every system call takes a nanosecond, a woken thread runs after a delay that a seed chooses.

#![allow(dead_code, reason = "each test file uses a part of it")]

use schedtwin_types::{Mark, Ns, Op, Outcome, Syscall, ThreadId};
use schedtwin_workload::{Host, Programs, Workload};
use std::collections::{BTreeMap, VecDeque};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All threads exited.
    Finished,
    /// Nothing is left that could happen, yet threads sleep.
    Stuck,
    /// The time is over.
    Time,
    /// The steps are over.
    Steps,
}

pub struct Executor {
    pub programs: Programs,
    pub now: Ns,
    pub ops: u64,
    events: BTreeMap<(Ns, u64), (ThreadId, Outcome)>,
    order: u64,
    queues: Vec<VecDeque<ThreadId>>,
    pub exited: Vec<ThreadId>,
    random: u64,
    wake_delay_max: Ns,
}

pub fn host(cpus: usize) -> Host {
    Host {
        cpu_capacity: vec![1024; cpus],
        ns_per_loop: 1000,
        dl_bandwidth: Some(950_000 * cpus as u64),
        copy_per_kib: 60,
        block_devices: vec!["sda".to_string(), "sdb".to_string()],
    }
}

pub fn workload(text: &str) -> Workload {
    Workload::parse_rtapp(schedtwin_input::Source::new("test.json", text))
        .unwrap_or_else(|e| panic!("{e}"))
}

impl Executor {
    /// Woken threads run at once.
    pub fn new(workload: &Workload, host: &Host) -> Executor {
        Executor::with_delays(workload, host, 1, 0)
    }

    /// Woken threads run after up to `wake_delay_max`.
    pub fn with_delays(
        workload: &Workload,
        host: &Host,
        seed: u64,
        wake_delay_max: Ns,
    ) -> Executor {
        let programs = workload.instantiate(host, seed).unwrap_or_else(|e| panic!("{e}"));
        let queues = vec![VecDeque::new(); programs.nr_futexes()];
        let mut executor = Executor {
            programs,
            now: 0,
            ops: 0,
            events: BTreeMap::new(),
            order: 0,
            queues,
            exited: Vec::new(),
            random: seed,
            wake_delay_max,
        };
        executor.at(0, executor.programs.main(), Outcome::Started);
        executor
    }

    fn at(&mut self, time: Ns, thread: ThreadId, outcome: Outcome) {
        self.order += 1;
        self.events.insert((time, self.order), (thread, outcome));
    }

    fn delay(&mut self) -> Ns {
        self.random =
            self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if self.wake_delay_max == 0 { 0 } else { (self.random >> 33) % self.wake_delay_max }
    }

    /// Runs to `end`; `see` is told every operation.
    pub fn run(
        &mut self,
        end: Ns,
        steps: u64,
        mut see: impl FnMut(Ns, ThreadId, Op, &Programs),
    ) -> End {
        let last = self.ops + steps;
        loop {
            let Some((&(time, order), _)) = self.events.first_key_value() else {
                return if self.programs.finished() { End::Finished } else { End::Stuck };
            };
            if time > end {
                return End::Time;
            }
            if self.ops >= last {
                return End::Steps;
            }
            self.now = time;
            let (thread, outcome) = self.events.remove(&(time, order)).unwrap();
            self.ops += 1;
            let op = self.programs.next(thread, outcome, time);
            see(time, thread, op, &self.programs);
            match op {
                Op::Mark(_) | Op::Stalls(_) | Op::Relax => {
                    // Asked again at once, before anything else.
                    self.events.insert((time, order), (thread, Outcome::Done));
                }
                Op::Compute { work, .. } => self.at(time + work, thread, Outcome::Done),
                Op::Exit => self.exited.push(thread),
                Op::Call(call) => self.call(time, thread, call),
            }
        }
    }

    fn call(&mut self, time: Ns, thread: ThreadId, call: Syscall) {
        match call {
            Syscall::Nanosleep { duration } => {
                let delay = self.delay();
                self.at(time + duration + 1 + delay, thread, Outcome::Done);
            }
            Syscall::NanosleepUntil { until } => {
                let delay = self.delay();
                self.at(until.max(time + 1) + delay, thread, Outcome::Done);
            }
            Syscall::BlockIo { bytes, .. } => {
                let delay = self.delay();
                self.at(time + 100_000 + delay, thread, Outcome::Value(u64::from(bytes)));
            }
            Syscall::FutexWait { futex } => self.queues[futex.0 as usize].push_back(thread),
            Syscall::FutexWake { futex, count } => {
                let mut woken = 0;
                while woken < u64::from(count) {
                    let Some(sleeper) = self.queues[futex.0 as usize].pop_front() else {
                        break;
                    };
                    let delay = self.delay();
                    self.at(time + 1 + delay, sleeper, Outcome::Done);
                    woken += 1;
                }
                self.at(time + 1, thread, Outcome::Value(woken));
            }
            Syscall::Clone { thread: child, .. } => {
                let delay = self.delay();
                self.at(time + 1 + delay, child, Outcome::Started);
                self.at(time + 1, thread, Outcome::Done);
            }
            Syscall::SchedYield
            | Syscall::SchedSetattr(_)
            | Syscall::SchedSetaffinity { .. }
            | Syscall::CgroupAttach { .. }
            | Syscall::Execve
            | Syscall::Write { .. } => {
                self.at(time + 1, thread, Outcome::Done);
            }
            Syscall::PipeWrite { .. }
            | Syscall::PipeRead { .. }
            | Syscall::Socketpair { .. }
            | Syscall::Send { .. }
            | Syscall::Recv { .. }
            | Syscall::Poll { .. }
            | Syscall::Setsid { .. }
            | Syscall::Getcpu => panic!("rt-app uses no {call:?}"),
        }
    }
}

/// `5.000 ms worker-0 run 10`: what a thread does, for comparison with a story; marks, waits on
/// mutexes and so on only where they take part in the story.
pub fn story(text: &str, end: Ns) -> Vec<String> {
    let workload = workload(text);
    let mut executor = Executor::new(&workload, &host(8));
    let mut lines = Vec::new();
    executor.run(end, 100_000, |now, thread, op, programs| {
        if thread.0 == 0 {
            return;
        }
        let what = match op {
            Op::Compute { work, .. } if work >= 1000 => format!("run {}", work / 1000),
            Op::Call(Syscall::Nanosleep { duration }) => format!("sleep {}", duration / 1000),
            Op::Call(Syscall::NanosleepUntil { until }) => format!("until {}", until / 1000),
            Op::Mark(Mark::DeadlineJobDone { released, .. })
            | Op::Mark(Mark::JobDone { released }) => format!("done, released {}", released / 1000),
            Op::Exit => "exit".to_owned(),
            _ => return,
        };
        lines.push(format!("{:>6} {} {what}", now / 1000, programs.thread_name(thread)));
    });
    lines
}
