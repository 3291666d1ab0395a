// SPDX-License-Identifier: GPL-2.0-or-later
//! `geekbench5`: Geekbench 5, 21 workloads on one thread, then the same on a thread for each CPU.
//!
//! ```text
//! UI thread     '       '       '        '         progress: a frame when a workload begins and when it ends
//! AsyncTask #1  |= aes =|..gap..|= text =|..gap..  ...
//! workers                           rounds of       |= a piece =|= a piece =| ...      multi-core section
//! ```
//!
//! The workloads [S: table of contents of the description of its workloads] are one of cryptography, nine on integers and eleven on
//! floating-point numbers and machine learning. A thread of the app (`AsyncTask #1`) runs the single-core section itself; in the
//! multi-core section threads that it has made, and that have its name, take pieces of each workload until none is left.
//! The app's main thread (`geekbench5`) shows the progress.
//!
//! **Score.** Each workload's is what a machine of score 1 would take over what it took; a section's is their geometric
//! mean. `score section=single` and `multi`; the one without a section is the multi-core score, as the published tables have it.
//! The scale is set by `reference`: the single-core score of a CPU of capacity 1024 that does nothing else.
//!
//! **Numbers** follow from what was published of the base kernel on Pixel 6, a run of 179 s [S]. The big cluster rested in c2 for
//! 46.5 s and in WFI for 2.3: 42 gaps of 1.15 s [D]. It worked for 130.5 s, and the middle one, which does hardly anything in the
//! single-core section, for 79.3: about 73 s are the multi-core section and 57 s the single-core one, 2.7 s a workload, and the work
//! of the former is four times that of the latter [D: the twin's eight CPUs are as fast as 3.1 of the largest]. In the other 106 s all four little CPUs
//! rested in c2 at once for 78.5: nothing is animated at 60 Hz [D].
//!
//! **Latencies.** A thread named `AsyncTask #1` waits 75 us for a CPU in the mean [S]. Threads that are woken for each workload, eight at once, would
//! wait 500 to 800 us: now and then two land on one CPU. So they are made anew each time [D], and a new thread has no wakeup
//! latency. Here they are woken, and summed under a name of their own; `AsyncTask` is the first one.
//!
//! **Rounds.** Middle and big cores rest in c2 too shortly for 2.4 and 1.4 % of all wakeups [S], which threads that compute
//! until their workload is done never do; and the multi-core score is 2.7 times the single-core one [S], where eight such threads
//! make 3.3. So a workload has rounds: the threads take pieces, wait until all are done, and one does for a moment what cannot be
//! shared. How many rounds, and how much that is, are parameters that base values tell [E].
//!
//! Pieces of 10 ms are an estimate [E], and so is that all workloads scale with capacity alone, where real ones wait for
//! memory, and share it: the multi-core score is too high.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted, geometric_mean, score};
use super::display::{self, Settings};
use super::options::{Values, WorkloadOption};
use super::script::{Flag, Register, Script, Step, nice};
use super::{background, benchmark, cpusets};
use crate::Host;
use schedtwin_types::Ns;
use schedtwin_types::metric::{DeclaredMetric, Metric};

const NS_PER_MS: Ns = 1_000_000;
/// Work that differs from workload to workload, tenths of the mean. [E]
const WORKLOADS: [u64; 21] =
    [8, 10, 10, 8, 12, 12, 10, 10, 12, 8, 8, 10, 10, 10, 8, 12, 10, 12, 12, 10, 8];
/// Of the multi-core section, per cent of a workload of the single-core one. [D]
const MULTI: u64 = 400;

/// The work that a worker takes at once. [E]
const PIECE: Ns = 10 * NS_PER_MS;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::words("sections", &["single", "multi"], "which sections"),
    WorkloadOption::count(
        None,
        "work-ms",
        "ms",
        2_650,
        (10, 20_000),
        "a workload at capacity 1024, in the mean",
    ),
    WorkloadOption::count(None, "gap-ms", "ms", 1_150, (0, 20_000), "between two workloads"),
    WorkloadOption::count(
        None,
        "reference",
        "",
        1_050,
        (100, 5_000),
        "score of one CPU of capacity 1024",
    )
    .free(),
    WorkloadOption::count(
        None,
        "rounds",
        "",
        11,
        (1, 1_000),
        "multi-core: how often the threads wait for each other",
    )
    .free(),
    WorkloadOption::count(
        None,
        "serial",
        "/10000",
        50,
        (0, 2_000),
        "multi-core: the work that one thread does while the others wait",
    )
    .free(),
    WorkloadOption::count(
        None,
        "frame-work",
        "%",
        100,
        (0, 300),
        "work of the progress display's frames, of a list's",
    ),
    background::OPTION,
    cpusets::OPTION,
];

/// Geekbench 5.
#[derive(Debug)]
pub(super) struct Geekbench5;

impl Benchmark for Geekbench5 {
    fn name(&self) -> &'static str {
        "geekbench5"
    }

    fn description(&self) -> &'static str {
        "Geekbench 5: 21 workloads on one thread, then on a thread a CPU (180 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
single: AsyncTask #1 does 21 workloads with gaps; multi: as many threads of its name as CPUs take pieces of each, in
rounds: when all are done, one does what cannot be shared, and the next round begins
geekbench5 (the UI thread) shows the progress: a frame when a workload begins and ends
"
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        benchmark::OF_SCORES
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        build(values, host)
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        scores(counted.recorded)
    }
}

fn build(values: &Values, host: &Host) -> Script {
    let mut script = Script::new(host.cpu_capacity.len());
    let display = display::add(
        &mut script,
        &Settings { frame_work: values.whole("frame-work"), ..Settings::new("geekbench5") },
    );
    if values.whole("background") == 1 {
        background::add(&mut script);
    }
    script.recorded = vec!["single", "multi", "reference"];
    let workers = Workers {
        begin: script.flag(0),
        done: script.flag(0),
        pieces: script.register(0),
        count: host.cpu_capacity.len() as u64,
    };
    workers.add(&mut script);
    let [since, counter, rounds_left] = std::array::from_fn(|_| script.register(0));
    let gap = Step::Sleep(Amount::Fixed(values.whole("gap-ms") * NS_PER_MS));
    let sections = values.words("sections");
    // The reference is told with the results: work of a workload × its score.
    let reference = values.whole("reference") * values.whole("work-ms") * NS_PER_MS;
    let mut steps = script
        .thread("AsyncTask #1", nice(0))
        .group("AsyncTask")
        .of("app")
        .then(&[Step::RecordAmount(2, reference)])
        .then(&[gap]);
    for section in sections {
        for workload in WORKLOADS {
            let work = values.whole("work-ms") * NS_PER_MS * workload / 10;
            steps = steps.then(&display.ask()).then(&[Step::Clock(since)]);
            steps = if section == 0 {
                steps.then(&[Step::Work(Amount::Fixed(work)), Step::Record(0, since)])
            } else {
                let rounds = values.whole("rounds");
                let all = work * MULTI / 100;
                let serial = all * values.whole("serial") / 10_000;
                let pieces = ((all - serial) / rounds).div_ceil(PIECE);
                let serial = Step::Work(Amount::Fixed(serial / rounds));
                let count = workers.count;
                let begin = [Step::Post(workers.begin)];
                let end = [Step::Wait(workers.done)];
                steps
                    .times(rounds_left, rounds, |round| {
                        round
                            .then(&[serial, Step::Set(workers.pieces, pieces)])
                            .times(counter, count, |worker| worker.then(&begin))
                            .times(counter, count, |worker| worker.then(&end))
                    })
                    .then(&[Step::Record(1, since)])
            };
            steps = steps.then(&display.ask()).then(&[gap]);
        }
    }
    steps.then(&[Step::End]).for_ever();
    cpusets::confine(&mut script, values, host);
    script
}

/// The threads of the multi-core section, and what they share.
struct Workers {
    begin: Flag,
    done: Flag,
    pieces: Register,
    count: u64,
}

impl Workers {
    fn add(&self, script: &mut Script) {
        let take = [Step::Take(self.pieces), Step::Work(Amount::Fixed(PIECE))];
        for _ in 0..self.count {
            let steps = script.thread("AsyncTask #1", nice(0)).group("AsyncTask workers").of("app");
            steps
                .then(&[Step::Wait(self.begin)])
                .while_set(self.pieces, |piece| piece.then(&take))
                .then(&[Step::Post(self.done)])
                .for_ever();
        }
    }
}

fn scores(recorded: &[Vec<Ns>]) -> Vec<Metric> {
    let reference = recorded[2].first().copied().unwrap_or(0) as f64;
    let section = |times: &[Ns], percent: u64| {
        let scores = times.iter().zip(WORKLOADS).map(|(time, workload)| {
            reference * workload as f64 / 10.0 * percent as f64 / 100.0 / (*time).max(1) as f64
        });
        geometric_mean(&scores.collect::<Vec<_>>())
    };
    let (single, multi) = (section(&recorded[0], 100), section(&recorded[1], MULTI));
    vec![score(None, multi), score(Some("single"), single), score(Some("multi"), multi)]
}
