// SPDX-License-Identifier: GPL-2.0-or-later
//! `pcmark-web`: the web browsing part of PCMark for Android, a page in a web view that is read, searched and changed.
//!
//! Seven things are done and timed [S: UL's description]: R1 render the page, R2 scroll, R3 zoom a picture, R4 load data to search,
//! R5 search with each typed character, R6 select a picture, R7 add a picture and render again.
//!
//! **Score**: 2,500,000 × the geometric mean of 1/R1, 1/R4, 1/R5, 1/R7 in ms.
//!
//! ```text
//! JUnitRunner ── workload ── app's UI thread ...   Chrome_IOThread ── CrRendererMain ── ...
//!     R1  pause  R2 scroll 2 s  pause  R3 zoom 1 s  pause  R4  pause  R5 ten characters  pause  R6  pause  R7
//! ```
//!
//! **Numbers.** A score of 6283 on Pixel 6 is a geometric mean of 398 ms a part [D], in which its large cores worked for a sixth of
//! the time [S]: a part is no single stretch of work but many short ones, between which the renderer waits for data and other
//! processes. The large cores rested in WFI for 11.9 s and worked for 15.9 [S]: the waits are mostly shorter than the 2.5 or 3.5 ms that
//! c2 has to last [D]. Here they are 1 to 3 ms, before each of 24 stretches [E]; `part-ms`, their work at
//! capacity 1024, is an estimate and a free parameter [E]. R4 is half, R5 (ten characters, without the pauses of a typist) and R7
//! as much as R1 [E]. Ten rounds make the 102 s that an iteration took [D].

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted, geometric_mean, score};
use super::browser;
use super::display::{self, Settings};
use super::measured::burst;
use super::options::{Values, WorkloadOption};
use super::script::{Script, Step, nice};
use super::{background, benchmark, cpusets};
use crate::Host;
use schedtwin_types::Ns;
use schedtwin_types::metric::{DeclaredMetric, Metric};

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_MS: Ns = 1_000_000;
/// Between two parts. [E]
const PAUSE: Amount = Amount::Uniform(600 * NS_PER_MS, 1_000 * NS_PER_MS);
const CHARACTERS: u64 = 10;
/// Stretches of work of a part. [E]
const PIECES: u64 = 24;
/// The wait before each. [D]
const DATA: Amount = Amount::Uniform(NS_PER_MS, 3 * NS_PER_MS);
/// The score's constant, ms.
const SCALE: f64 = 2.5e6;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(None, "rounds", "", 10, (1, 100), "how often the parts are done"),
    WorkloadOption::count(
        None,
        "part-ms",
        "ms",
        100,
        (20, 400),
        "work of rendering the page at capacity 1024",
    )
    .free(),
    WorkloadOption::count(
        None,
        "frame-work",
        "%",
        80,
        (30, 300),
        "work of a frame while scrolling, of a list's",
    )
    .free(),
    background::OPTION,
    cpusets::OPTION,
];

/// PCMark's web browsing.
#[derive(Debug)]
pub(super) struct PcmarkWeb;

impl Benchmark for PcmarkWeb {
    fn name(&self) -> &'static str {
        "pcmark-web"
    }

    fn description(&self) -> &'static str {
        "PCMark's web browsing: a page that is rendered, scrolled, searched and changed (102 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
a round: render, scroll 2 s, zoom 1 s, load, ten characters, select, add and render again, with pauses
score: 2,500,000 / geometric mean of the times of rendering, loading, searching and rendering again, ms
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
    let settings = Settings {
        ui_name: "droid.benchmark",
        refresh: NS_PER_S / 60,
        frame_work: values.whole("frame-work"),
        gpu: 2 * NS_PER_MS,
        hints: false,
    };
    let display = display::add(&mut script, &settings);
    if values.whole("background") == 1 {
        background::add(&mut script);
    }
    let browser = browser::add(&mut script, None);
    script.recorded = vec!["part"];
    let [order, ordered] = std::array::from_fn(|_| script.flag(0));
    let [since, rounds] = std::array::from_fn(|_| script.register(0));
    // The runner only asks and waits; its thread `workload` does the asking of the page.
    let runner = [Step::Wait(order), Step::Work(burst(100_000)), Step::Post(ordered)];
    script.thread("JUnitRunner", nice(0)).then(&runner).for_ever();
    let part = values.whole("part-ms") * NS_PER_MS;
    let pieces = script.register(0);
    // A page's data come piece by piece.
    let page = |work: Ns, count: u64| {
        let piece = [
            Step::Sleep(DATA),
            Step::Set(browser.work, work / count),
            Step::Post(browser.ask),
            Step::Wait(browser.done),
        ];
        (count, piece)
    };
    let begin = [Step::Post(order), Step::Wait(ordered), Step::Clock(since)];
    let end = [Step::Record(0, since), Step::Sleep(PAUSE)];
    let frames = |length: Ns| {
        let [want, ask] = display.ask();
        [
            Step::Set(display.animating, 1),
            want,
            ask,
            Step::Sleep(Amount::Fixed(length)),
            Step::Set(display.animating, 0),
            Step::Sleep(PAUSE),
        ]
    };
    script
        .thread("workload", nice(0))
        .then(&[Step::Set(display.launch, 30 * NS_PER_MS), Step::Post(display.ui_event)])
        .then(&[Step::Wait(display.launched), Step::Sleep(PAUSE)])
        .times(rounds, values.whole("rounds"), |round| {
            round
                .then(&begin)
                .repeat(pieces, page(part, PIECES))
                .then(&end)
                .then(&frames(2 * NS_PER_S))
                .then(&frames(NS_PER_S))
                .then(&begin)
                .repeat(pieces, page(part / 2, PIECES / 2))
                .then(&end)
                .then(&begin)
                .repeat(pieces, page(part, CHARACTERS))
                .then(&end)
                .repeat(pieces, page(part / 4, PIECES / 4))
                .then(&[Step::Sleep(PAUSE)])
                .then(&begin)
                .repeat(pieces, page(part, PIECES))
                .then(&end)
        })
        .then(&[Step::End])
        .for_ever();
    cpusets::confine(&mut script, values, host);
    script
}

fn scores(recorded: &[Vec<Ns>]) -> Vec<Metric> {
    let parts: Vec<f64> = recorded[0].iter().map(|ns| *ns as f64 / NS_PER_MS as f64).collect();
    vec![score(None, geometric_mean(&parts).map(|part_ms| SCALE / part_ms))]
}
