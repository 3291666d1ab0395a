// SPDX-License-Identifier: GPL-2.0-or-later
//! `messaging` (`perf bench sched messaging`) and `hackbench` (rt-tests): groups of senders and receivers.
//!
//! A group has as many senders as receivers. Each receiver has a channel of its own; each sender writes, `loops` times,
//! one message to every receiver of its group, and blocks while a channel is full. All begin at once:
//!
//! ```text
//! main       start all ── read a byte of each: ready ── write a byte: go ────────────── wait for each to end: "Time:"
//! receiver   ready ─ poll ................................| read, read, ...  (senders × loops messages)
//! sender     ready ─ poll ................................| write to receiver 1, 2, ...; again
//! ```
//!
//! Nobody reads the byte that says go: every poller stays ready. What is printed as `Time:` goes from go to the end of
//! the last thread; `elapsed` is of the whole program, as `perf stat` measures it.
//!
//! The two programs differ in defaults, names and options: `hackbench -f` sets how many receivers a group has, `-s` how
//! long a message is.
//!
//! **Numbers.** User work is the loop around the system call: 30 ns a message [E]. A process costs 60 us more than a
//! thread where it begins (its pages are copied when it writes to them) and 40 us more where it ends [E].
//!
//! Differences: thread 0 stands for the shell that makes channels and threads; `main` is a thread of its own. Processes
//! are threads with these costs: a switch between them does not change page tables. A thread's end wakes main by
//! a futex also where it is a process, whose parent is woken by a signal.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted};
use super::options::{Values, WorkloadOption};
use super::script::{Channel, End, Flag, Script, Step, nice};
use crate::{Host, MAX_THREADS};
use schedtwin_types::metric::{self, DeclaredMetric, Metric};
use schedtwin_types::{SocketKind, Work};

/// Around a system call, user work. [E]
const USER_WORK: Work = 30;
/// The process that starts the others, or has them as threads.
const MAIN: &str = "main";
/// The extra cost of a process over a thread, at its beginning and its end. [E]
const PROCESS: [Work; 2] = [60_000, 40_000];
/// Receivers, and senders, of a group of `perf bench sched messaging`.
const NUM_FDS: u64 = 20;
/// Bytes of a message there.
const DATASIZE: u32 = 100;

const MESSAGING: &[WorkloadOption] = &[
    WorkloadOption::count(Some('g'), "group", "", 10, (1, 100), "how many groups"),
    WorkloadOption::count(Some('l'), "nr_loops", "", 100, (1, 100_000_000), "how many loops"),
    WorkloadOption::flag(Some('t'), "thread", "threads, not processes"),
    WorkloadOption::flag(Some('p'), "pipe", "pipes, not socket pairs"),
];

const HACKBENCH: &[WorkloadOption] = &[
    WorkloadOption::count(Some('g'), "groups", "", 10, (1, 1000), "how many groups"),
    WorkloadOption::count(Some('l'), "loops", "", 100, (1, 100_000_000), "how many loops"),
    WorkloadOption::count(Some('f'), "fds", "", 20, (1, 1000), "receivers, and senders, a group"),
    WorkloadOption::count(Some('s'), "datasize", "bytes", 100, (1, 1_000_000), "a message"),
    WorkloadOption::flag(Some('T'), "threads", "threads, not processes"),
    WorkloadOption::flag(Some('P'), "process", "processes: so it is without -T, too"),
    WorkloadOption::flag(Some('p'), "pipe", "pipes, not socket pairs"),
];

/// The shape of the script that both programs play.
struct Shape {
    comm: &'static str,
    groups: u64,
    /// Receivers, and senders, of a group.
    fds: u64,
    loops: u64,
    datasize: u32,
    threads: bool,
    pipes: bool,
}

/// `perf bench sched messaging`.
#[derive(Debug)]
pub(super) struct Messaging;

impl Benchmark for Messaging {
    fn name(&self) -> &'static str {
        "messaging"
    }

    fn description(&self) -> &'static str {
        "perf bench sched messaging: 20 senders and 20 receivers a group; by default -g 10 -l 100"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        MESSAGING
    }

    fn about(&self) -> &'static str {
        ABOUT
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        OF_BOTH
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        let shape = Shape {
            comm: "sched-messaging",
            groups: values.whole("group"),
            fds: NUM_FDS,
            loops: values.whole("nr_loops"),
            datasize: DATASIZE,
            threads: values.is_set("thread"),
            pipes: values.is_set("pipe"),
        };
        shape.build(host)
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        time(counted)
    }
}

/// `hackbench`.
#[derive(Debug)]
pub(super) struct Hackbench;

impl Benchmark for Hackbench {
    fn name(&self) -> &'static str {
        "hackbench"
    }

    fn description(&self) -> &'static str {
        "hackbench of rt-tests, the same with options of its own; by default -g 10 -f 20 -l 100"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        HACKBENCH
    }

    fn about(&self) -> &'static str {
        ABOUT
    }

    fn check(&self, values: &Values) -> Option<String> {
        if values.is_set("threads") && values.is_set("process") {
            return Some("\"--threads\" and \"--process\" exclude each other".to_owned());
        }
        let all = values.whole("groups") * values.whole("fds") * 2 + 1;
        (all > MAX_THREADS as u64)
            .then(|| format!("{all} threads; a workload has at most {MAX_THREADS}"))
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        OF_BOTH
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        let shape = Shape {
            comm: "hackbench",
            groups: values.whole("groups"),
            fds: values.whole("fds"),
            loops: values.whole("loops"),
            datasize: values.whole("datasize") as u32,
            threads: values.is_set("threads"),
            pipes: values.is_set("pipe"),
        };
        shape.build(host)
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        time(counted)
    }
}

const ABOUT: &str = "\
main: a byte from each thread, a byte to all: they begin; then it waits for the end of each
sender: LOOPS times, a message to each receiver of its group; receiver: reads them all
";

const OF_BOTH: &[&DeclaredMetric] = &[&metric::TIME];

/// Returns the time that the program prints as `Time:`.
fn time(counted: &Counted) -> Vec<Metric> {
    let seconds = counted.recorded[0].first().map(|ns| *ns as f64 / 1e9);
    vec![metric::TIME.value("sum", vec![], seconds)]
}

impl Shape {
    fn build(&self, host: &Host) -> Script {
        let mut script = Script::new(host.cpu_capacity.len());
        script.recorded = vec!["Time:"];
        let channel =
            if self.pipes { Channel::Pipe } else { Channel::Sockets(SocketKind::UnixStream, 0) };
        let ready = script.channel(channel);
        let wake = script.channel(channel);
        let nr_children = self.groups * self.fds * 2;
        // pthread_join() waits for one after the other, wait() for any child that ends.
        let ended: Vec<Flag> = if self.threads {
            (0..nr_children).map(|_| script.flag(0)).collect()
        } else {
            vec![script.flag(0); nr_children as usize]
        };
        let mut children = ended.iter().copied();
        for _ in 0..self.groups {
            let channels: Vec<[End; 2]> = (0..self.fds).map(|_| script.channel(channel)).collect();
            let reads = channels
                .iter()
                .map(|[end, _]| vec![Step::Read(*end, self.datasize); self.fds as usize]);
            let reads: Vec<Vec<Step>> = reads.collect();
            for read in &reads {
                let ended = children.next().expect("a flag for each");
                self.child(&mut script, "receivers", [ready[1], wake[0]], read, ended);
            }
            let write: Vec<Step> =
                channels.iter().map(|[_, end]| Step::Write(*end, self.datasize)).collect();
            for _ in 0..self.fds {
                let ended = children.next().expect("a flag for each");
                self.child(&mut script, "senders", [ready[1], wake[0]], &write, ended);
            }
        }
        let [counter, start] = std::array::from_fn(|_| script.register(0));
        let mut main = script
            .thread(self.comm, nice(0))
            .group("main")
            .of(MAIN)
            .times(counter, nr_children, |child| child.then(&[Step::Read(ready[0], 1)]))
            .then(&[Step::Clock(start), Step::Write(wake[1], 1)]);
        for flag in ended {
            main = main.then(&[Step::Wait(flag)]);
        }
        main.then(&[Step::Record(0, start), Step::End]).for_ever();
        script
    }

    /// A thread that goes through `round` as often as there are loops.
    fn child(
        &self,
        script: &mut Script,
        group: &str,
        [ready, wake]: [End; 2],
        round: &[Step],
        ended: Flag,
    ) {
        let counter = script.register(0);
        let process = PROCESS
            .map(|work| Step::KernelWork(Amount::Fixed(if self.threads { 0 } else { work })));
        let user = Step::Work(Amount::Fixed(USER_WORK * round.len() as Work));
        let child = script.thread(self.comm, nice(0)).group(group);
        let child = if self.threads { child.of(MAIN) } else { child };
        child
            .then(&[process[0], Step::Write(ready, 1), Step::Poll(wake)])
            .times(counter, self.loops, |steps| steps.then(&[user]).then(round))
            .then(&[process[1], Step::Post(ended), Step::Leave])
            .for_ever();
    }
}

#[cfg(test)]
mod tests {
    use crate::Workload;

    fn check(spec: &str) -> Result<String, String> {
        Workload::from_path_or_name(spec)
            .map(|workload| String::from_utf8(workload.bytes().to_vec()).unwrap())
            .map_err(|faults| faults.to_string())
    }

    #[test]
    fn options_are_those_of_the_programs() {
        for (spec, expected) in [
            ("messaging", "messaging --group 10 --nr_loops 100"),
            ("messaging -t -g 1 -l 2000", "messaging --group 1 --nr_loops 2000 --thread"),
            ("messaging -p -g4", "messaging --group 4 --nr_loops 100 --pipe"),
            (
                "hackbench -g 4 -f 28 -l 10 -T -p -s 100",
                "hackbench --groups 4 --loops 10 --fds 28 --datasize 100 --threads --pipe",
            ),
        ] {
            assert_eq!(check(spec).as_deref(), Ok(expected), "{spec}");
        }
    }

    #[test]
    fn what_options_cannot_be_together_is_told() {
        for (spec, expected) in [
            (
                "hackbench -g 1000 -f 1000",
                "<command line>:1:10: 2000001 threads; a workload has at most 16384",
            ),
            (
                "hackbench -T -P",
                "<command line>:1:10: \"--threads\" and \"--process\" exclude each other",
            ),
            (
                "messaging -t5",
                "<command line>:1:11: \"--thread\" takes no value\n  help: \"--thread\": threads, \
                 not processes",
            ),
            ("messaging -t -t", "<command line>:1:14: \"--thread\" is given twice"),
        ] {
            assert_eq!(check(spec).unwrap_err(), expected, "{spec}");
        }
    }
}
