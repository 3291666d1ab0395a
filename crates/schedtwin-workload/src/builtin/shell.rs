// SPDX-License-Identifier: GPL-2.0-or-later
//! `shell`: a shell that runs one pipeline after another, `cat | grep | sort | uniq | wc`.
//!
//! Work of this kind (builds, init scripts) has no threads that live long: the kernel places each process twice before it has
//! any history, at `fork` and at `execve`.
//!
//! ```text
//! shell      fork, fork, fork ─ wait ................... wait ......... wait ─ fork, ...
//! command 1       |─ execve, start ─ work, write ─ exit
//! command 2             |─ execve, start ─ read ... work, write ─ exit
//! command 3                   |─ execve, start ─ read ............ work ─ exit
//! ```
//!
//! The shell starts the commands from left to right and then waits for any of them until all have ended. A command runs the
//! shell's code up to `execve`, then loads and links its program, which is most of its work, and last reads what the command
//! before it has written.
//!
//! **Numbers** [M]: CPU times of three recordings of 200 such pipelines with dash, medians, on a guest of 2 CPUs (Linux 6.18, an
//! EPYC's): 82 us of the shell a fork, 207 us of a child up to `sched_process_exec`, 85 of them after the choice of a CPU; 750 to
//! 860 us a program; 96 us its end. What path costs hold of these on most machines is left out.
//!
//! Differences: a program's page faults and reads of files are work without sleeps. What goes through a pipe is one write
//! of 4096 bytes, and the reader knows its length. A command's end wakes the shell by a futex instead of a signal.

use super::amount::Amount;
use super::benchmark::Benchmark;
use super::options::{Values, WorkloadOption};
use super::script::{Channel, End, Flag, Script, Step, Thread, nice};
use crate::{Host, MAX_THREADS};
use schedtwin_types::Work;

const NS_PER_US: Work = 1_000;
/// A fork, beside the path's cost: the tables of pages.
const FORK: Work = 55 * NS_PER_US;
/// From a child's birth to the choice of a CPU in `execve`, and from there to the program's first instruction.
const BEFORE_EXEC: Work = 120 * NS_PER_US;
const AFTER_EXEC: Work = 85 * NS_PER_US;
/// A process's end, beside the path's cost.
const EXIT: Work = 80 * NS_PER_US;
/// Of a program's work, that before its first read.
const START_PERCENT: Work = 75;
/// What a command passes on.
const BYTES: u32 = 4096;
/// The commands of the recorded pipeline; more go round.
const COMMANDS: [&str; 5] = ["cat", "grep", "sort", "uniq", "wc"];

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(Some('l'), "loops", "", 200, (1, 5000), "pipelines, one after another"),
    WorkloadOption::count(Some('c'), "commands", "", 5, (1, 50), "of a pipeline"),
    WorkloadOption::count(Some('j'), "shells", "", 1, (1, 256), "at the same time"),
    WorkloadOption::count(None, "work-us", "us", 780, (1, 1_000_000), "of a command, mean"),
];

/// A shell that runs pipelines.
#[derive(Debug)]
pub(super) struct Shell;

impl Benchmark for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn description(&self) -> &'static str {
        "a shell that runs pipelines, a new process a command; by default -l 200 -c 5 -j 1"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
shell: forks the commands of a pipeline, waits until all have ended; LOOPS times
command: execve; starts; reads what the one before has written; works; writes; exits
job_duration: a pipeline, from its first fork to its last command's end
"
    }

    fn check(&self, values: &Values) -> Option<String> {
        let all = values.whole("shells") * (values.whole("commands") + 1);
        (all > MAX_THREADS as u64)
            .then(|| format!("{all} processes; a workload has at most {MAX_THREADS}"))
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        let mut script = Script::new(host.cpu_capacity.len());
        let work = values.whole("work-us") * NS_PER_US;
        let running = script.register(values.whole("shells"));
        for _ in 0..values.whole("shells") {
            let ended = script.flag(0);
            let mut input = None;
            let mut commands = Vec::new();
            for index in 0..values.whole("commands") {
                let last = index + 1 == values.whole("commands");
                let output = (!last).then(|| script.channel(Channel::Pipe)[1]);
                let name = COMMANDS[index as usize % COMMANDS.len()];
                commands.push(command(&mut script, name, work, [input, output], ended));
                input = output;
            }
            let [counter, begin] = std::array::from_fn(|_| script.register(0));
            let forks = commands
                .iter()
                .flat_map(|command| [Step::KernelWork(Amount::Fixed(FORK)), Step::Clone(*command)]);
            let forks: Vec<Step> = forks.collect();
            let waits = vec![Step::Wait(ended); commands.len()];
            script
                .thread("shell", nice(0))
                .times(counter, values.whole("loops"), |pipeline| {
                    pipeline
                        .then(&[Step::Clock(begin)])
                        .then(&forks)
                        .then(&waits)
                        .then(&[Step::Job(begin)])
                })
                .then(&[Step::Take(running)])
                .unless_set(running, |last| last.then(&[Step::End]))
                .then(&[Step::Leave])
                .for_ever();
        }
        script
    }
}

/// A command with its input and its output.
fn command(
    script: &mut Script,
    name: &str,
    work: Work,
    [input, output]: [Option<End>; 2],
    ended: Flag,
) -> Thread {
    let [start, rest] = [START_PERCENT, 100 - START_PERCENT]
        .map(|percent| Step::Work(Amount::Uniform(work * percent / 125, work * percent / 83)));
    let kernel = |work| Step::KernelWork(Amount::Fixed(work));
    let command = script.thread(name, nice(0)).group("commands").later();
    let number = command.number();
    command
        .then(&[kernel(BEFORE_EXEC), Step::Exec, kernel(AFTER_EXEC), start])
        .when(input, |command, end| command.then(&[Step::Read(end, BYTES)]))
        .then(&[rest])
        .when(output, |command, end| command.then(&[Step::Write(end, BYTES)]))
        .then(&[kernel(EXIT), Step::Post(ended), Step::Leave])
        .for_ever();
    number
}
