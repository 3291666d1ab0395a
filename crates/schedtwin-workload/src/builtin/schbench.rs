// SPDX-License-Identifier: GPL-2.0-or-later
//! `schbench`: how long workers wait for a CPU once their message thread has woken them. In its present form, and as
//! `schbench-old` in that of 2016 to 2022.
//!
//! A worker puts itself on its message thread's list, wakes that thread, and sleeps. The message thread wakes all that
//! are on the list, and stamps them with the moment at which it *began* to: a worker that waits because the message
//! thread is still waking others waits for the scheduler.
//!
//! ```text
//! worker    enlist ─ wake ─ sleep ........|lat|─ sleep 100 us ─ lock of the CPU ─ matrices ─ unlock ─ enlist ─
//! message   ........ wake all on the list ─ sleep ........
//! ```
//!
//! | | `schbench` | `schbench-old` |
//! |---|---|---|
//! | a worker's request | sleeps `-s` us, multiplies matrices `-n` times | spins for `-c` us of time, not of work |
//! | message thread | answers at once | sleeps `-s` us and up to a quarter more, drawn anew each time |
//! | `-R` | a thread gives out so many requests at the beginning of each second | |
//!
//! **The lock of the CPU.** Work is done under a lock of the CPU on which it begins. A worker that is put on the CPU
//! of a preempted one spins until that one is through: what the scheduler should avoid. `-L` leaves the locks out.
//!
//! **Numbers.** Matrices of n × n numbers with 3 n² × 8 bytes = `-F` KiB: n = 104 for 256. Five products are 17 to 20 ms
//! on a server core [S: its README], so 3.3 ns for each of n³ steps at capacity 1024 [D]; a footprint that does not fit
//! its cache costs no more [E]. The list costs 200 ns of user work [E].
//!
//! Differences: `-i`, `-w`, `-z`, pinning, pipe mode and `-A` are left out: percentiles are of the whole run. Percentiles
//! are exact, its own are those of a histogram with buckets of 0.4 %. A message thread or worker that is awake
//! is not posted to by a system call (there, a thread that has not reset its word is). With `-R` a
//! worker's
//! queue has no bound of 128.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted};
use super::options::{Values, WorkloadOption};
use super::rate::Rate;
use super::script::{Grid, Register, Script, Step, nice};
use crate::{Host, MAX_THREADS};
use schedtwin_types::metric::{self, DeclaredMetric, Metric};
use schedtwin_types::{Ns, Work};

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_US: Ns = 1_000;
/// A step of a product of matrices, hundredths of ns of work. [D]
const STEP_WORK: u64 = 330;
/// Enlisting, or going through the list, user work. [E]
const LIST_WORK: Work = 200;
/// The numbers of the recorded values.
const WAKEUP: u16 = 0;
const REQUEST: u16 = 1;

const MESSAGE_THREADS: WorkloadOption =
    WorkloadOption::count(Some('m'), "message-threads", "", 1, (1, 1000), "message threads");
const RUNTIME: WorkloadOption =
    WorkloadOption::count(Some('r'), "runtime", "s", 30, (1, 3600), "how long");

const OPTIONS: &[WorkloadOption] = &[
    MESSAGE_THREADS,
    WorkloadOption::count(
        Some('t'),
        "threads",
        "",
        0,
        (0, 4000),
        "workers of each message thread; 0: all CPUs' share",
    ),
    RUNTIME,
    WorkloadOption::count(Some('F'), "cache_footprint", "KiB", 256, (1, 4096), "of the matrices"),
    WorkloadOption::count(Some('n'), "operations", "", 5, (1, 1000), "products a request"),
    WorkloadOption::count(
        Some('s'),
        "sleep_usec",
        "us",
        100,
        (0, 1_000_000),
        "sleep before a request's work",
    ),
    WorkloadOption::count(
        Some('R'),
        "rps",
        "1/s",
        0,
        (0, 20_000),
        "requests of each message thread; 0: as fast as they go",
    ),
    WorkloadOption::flag(Some('L'), "no-locking", "no lock of the CPU around the work"),
];

const OLD_OPTIONS: &[WorkloadOption] = &[
    MESSAGE_THREADS,
    WorkloadOption::count(
        Some('t'),
        "threads",
        "",
        16,
        (1, 4000),
        "workers of each message thread",
    ),
    RUNTIME,
    WorkloadOption::count(
        Some('s'),
        "sleeptime",
        "us",
        30_000,
        (0, 1_000_000),
        "the message thread's sleep before it answers",
    ),
    WorkloadOption::count(
        Some('c'),
        "cputime",
        "us",
        30_000,
        (0, 1_000_000),
        "how long a worker spins",
    ),
];

const METRICS: &[&DeclaredMetric] = &[&metric::SCHBENCH, &metric::AVERAGE_RPS];

fn too_many(message_threads: u64, workers: u64) -> Option<String> {
    let all = message_threads * (workers + 1);
    (all > MAX_THREADS as u64)
        .then(|| format!("{all} threads; a workload has at most {MAX_THREADS}"))
}

/// `schbench`.
#[derive(Debug)]
pub(super) struct Schbench;

impl Benchmark for Schbench {
    fn name(&self) -> &'static str {
        "schbench"
    }

    fn description(&self) -> &'static str {
        "schbench: workers woken by message threads, matrices under a lock a CPU; by default -m 1 (30 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
message thread: wake all on its list, sleep; worker: enlist, wake the message thread, sleep; then a request:
sleep, take the lock of the CPU, multiply matrices
"
    }

    fn check(&self, values: &Values) -> Option<String> {
        too_many(values.whole("message-threads"), values.whole("threads"))
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        METRICS
    }

    fn duration(&self, values: &Values) -> Option<Ns> {
        Some(values.whole("runtime") * NS_PER_S)
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        let mut script = Script::new(host.cpu_capacity.len());
        let rate = Rate::new(&mut script);
        script.recorded = vec!["wakeup", "request"];
        let message_threads = values.whole("message-threads");
        let workers = match values.whole("threads") {
            0 => (host.cpu_capacity.len() as u64).div_ceil(message_threads).max(1),
            workers => workers,
        };
        let side = (values.whole("cache_footprint") * 1024 / 3 / 8).isqrt();
        let product = side * side * side * STEP_WORK / 100;
        let work = Step::Work(Amount::Fixed(product * values.whole("operations")));
        let sleep = Step::Sleep(Amount::Fixed(values.whole("sleep_usec") * NS_PER_US));
        let request: Vec<Step> = if values.is_set("no-locking") {
            vec![sleep, work]
        } else {
            vec![sleep, Step::LockCpu, work, Step::UnlockCpu]
        };
        for _ in 0..message_threads {
            if values.whole("rps") > 0 {
                on_request(&mut script, workers, values.whole("rps"), &request, &rate);
            } else {
                crew(&mut script, workers, &[], |begin| {
                    [vec![Step::Clock(begin)], request.clone(), ends(begin, &rate)].concat()
                });
            }
        }
        script
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        let mut metrics = percentiles(counted, WAKEUP, &["50.0th", "90.0th", "99.0th", "99.9th"]);
        metrics.extend(percentiles(counted, REQUEST, &["50.0th", "90.0th", "99.0th", "99.9th"]));
        metrics.push(metric::AVERAGE_RPS.value("mean", vec![], Rate::of(counted)));
        metrics
    }
}

/// `schbench` as it was from 2016 to 2022.
#[derive(Debug)]
pub(super) struct SchbenchOld;

impl Benchmark for SchbenchOld {
    fn name(&self) -> &'static str {
        "schbench-old"
    }

    fn description(&self) -> &'static str {
        "schbench of 2016 to 2022: workers that spin, a message thread that sleeps; by default -m 1 -t 16 (30 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OLD_OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
message thread: wake all on its list, sleep until a worker wakes it, sleep once more by the clock
worker: spin, enlist, wake the message thread, sleep
"
    }

    fn check(&self, values: &Values) -> Option<String> {
        too_many(values.whole("message-threads"), values.whole("threads"))
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        METRICS
    }

    fn duration(&self, values: &Values) -> Option<Ns> {
        Some(values.whole("runtime") * NS_PER_S)
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        let mut script = Script::new(host.cpu_capacity.len());
        script.recorded = vec!["wakeup"];
        let sleep = values.whole("sleeptime") * NS_PER_US;
        let spin = values.whole("cputime") * NS_PER_US;
        let answer = Step::Sleep(Amount::Uniform(sleep, sleep + sleep / 4));
        let pause: &[Step] = if sleep > 0 { &[answer] } else { &[] };
        for _ in 0..values.whole("message-threads") {
            crew(&mut script, values.whole("threads"), pause, |begin| {
                vec![Step::Clock(begin), Step::Spin(begin, spin), Step::Job(begin)]
            });
        }
        script
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        const NTH: [&str; 7] =
            ["50.0th", "75.0th", "90.0th", "95.0th", "99.0th", "99.5th", "99.9th"];
        percentiles(counted, WAKEUP, &NTH)
    }
}

/// A message thread with its workers. `pause`: before it answers; `request`: what a worker does in between, with a
/// register of its own.
fn crew(
    script: &mut Script,
    workers: u64,
    pause: &[Step],
    request: impl Fn(Register) -> Vec<Step>,
) {
    let list = script.crew();
    let posted = script.flag(0);
    let user = Step::Work(Amount::Fixed(LIST_WORK));
    script
        .thread("schbench", nice(0))
        .group("message threads")
        .of("schbench")
        // The message thread of the emulated board passes the turn before it looks for the next.
        .then(&[user, Step::RaiseAll(list), Step::Relax, Step::Wait(posted)])
        .then(pause)
        .for_ever();
    for _ in 0..workers {
        let woken = script.flag(0);
        let [moment, begin] = std::array::from_fn(|_| script.register(0));
        script
            .thread("schbench-worker", nice(0))
            .group("workers")
            .of("schbench")
            .then(&[user, Step::Enlist(list, woken, moment), Step::Raise(posted)])
            .then(&[Step::Wait(woken), Step::Record(WAKEUP, moment)])
            .then(&request(begin))
            .for_ever();
    }
}

/// A thread that gives out requests to its workers in turn, all of a second's at once.
fn on_request(script: &mut Script, workers: u64, rps: u64, request: &[Step], rate: &Rate) {
    let user = Step::Work(Amount::Fixed(LIST_WORK));
    let mut given = Vec::new();
    for _ in 0..workers {
        let woken = script.flag(0);
        let [requests, waits, moment, begin] = std::array::from_fn(|_| script.register(0));
        given.push((requests, waits, moment, woken));
        let end = ends(begin, rate);
        script
            .thread("schbench-worker", nice(0))
            .group("workers")
            .of("schbench")
            .then(&[user])
            .unless_set(requests, |idle| {
                idle.then(&[Step::Set(waits, 1), Step::Wait(woken), Step::Record(WAKEUP, moment)])
            })
            .while_set(requests, |one| {
                one.then(&[Step::Take(requests), Step::Clock(begin)]).then(request).then(&end)
            })
            .for_ever();
    }
    let mut steps = script.thread("schbench", nice(0)).group("message threads").of("schbench");
    for at in 0..rps {
        let (requests, waits, moment, woken) = given[(at % workers) as usize];
        steps = steps
            .then(&[user, Step::Clock(moment), Step::Add(requests, 1)])
            // Who is at work already finds the request without being woken.
            .if_set(waits, |one| one.then(&[Step::Take(waits), Step::Raise(woken)]));
    }
    steps.then(&[Step::Until(Grid { period: NS_PER_S, phase: 0 })]).for_ever();
}

/// A request that began at the moment in a register is done.
fn ends(begin: Register, rate: &Rate) -> Vec<Step> {
    [&[Step::Record(REQUEST, begin), Step::Job(begin)][..], &rate.counts(1)].concat()
}

/// The nth values of what was recorded, us.
fn percentiles(counted: &Counted, what: u16, nth: &[&'static str]) -> Vec<Metric> {
    let mut values = counted.recorded[usize::from(what)].clone();
    values.sort_unstable();
    let of = if what == WAKEUP { "wakeup" } else { "request" };
    let one = |nth: &&'static str| {
        let percent: f64 = nth.trim_end_matches("th").parse().expect("a percentile");
        let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
        let value = values.get(rank.max(1) - 1).map(|ns| *ns as f64 / NS_PER_US as f64);
        let labels = vec![("of", of.to_owned()), ("nth", (*nth).to_owned())];
        metric::SCHBENCH.value("percentile", labels, value)
    };
    nth.iter().map(one).collect()
}
