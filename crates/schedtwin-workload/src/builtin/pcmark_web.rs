// SPDX-License-Identifier: GPL-2.0-or-later
//! `pcmark-web`: the web browsing part of PCMark for Android, a page in a web view that is read, searched and changed.
//!
//! Seven things are done and timed [S: UL's description]: R1 render the page, R2 scroll, R3 zoom a picture, R4 load data to search,
//! R5 search with each typed character, R6 select a picture, R7 add a picture and render again.
//!
//! **Score**: 2,500,000 × the geometric mean of 1/R1, 1/R4, 1/R5, 1/R7 in ms.
//!
//! ```text
//! JUnitRunner ── workload ── Chrome_IOThread ── CrRendererMain ── ... (`super::webview`)
//!     R1  pause  R2 scroll 2 s  pause  R3 zoom 1 s  pause  R4  pause  R5 ten characters  pause  R6  pause  R7
//! ```
//!
//! **Numbers.** A score of 6283 on Pixel 6 is a geometric mean of 398 ms a part [D], in which its large cores worked for a sixth of
//! the time [S]. R4 is half of R1, R5 (ten characters, without the pauses of a typist) and R7 as much as R1 [E]. Ten rounds make the
//! 102 s that an iteration took [D]. `part-ms`, the work of R1 at capacity 1024, and `frame-work` are estimates and fitted on
//! base values. The other works are estimates too [E]: they were found together in a search on the 31 base values (some
//! 7,000 runs, 800 of them the last 200 settings with four seeds each), and stay as they are.
//!
//! Differences: 12 per cent of the measured work of the display's compositors, which that search takes, is less than another phone's
//! GPU composer would explain; the large cores hardly rest in WFI (0.9 instead of 11.7 %), because waits of 0.5 to 1.5 ms among
//! frames of 16.7 ms are nothing that the idle governor foresees.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted, geometric_mean, score};
use super::display::{self, Page, Settings};
use super::measured::burst;
use super::options::{Values, WorkloadOption};
use super::script::{Script, Step, nice};
use super::webview::{self, Work};
use super::{background, benchmark, cpusets};
use crate::Host;
use schedtwin_types::Ns;
use schedtwin_types::metric::{DeclaredMetric, Metric};

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_MS: Ns = 1_000_000;
/// Between two parts. [E]
const PAUSE: Amount = Amount::Uniform(600 * NS_PER_MS, 1_000 * NS_PER_MS);
const CHARACTERS: u64 = 10;
/// The score's constant, ms.
const SCALE: f64 = 2.5e6;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(None, "rounds", "", 10, (1, 100), "how often the parts are done"),
    WorkloadOption::count(
        None,
        "part-ms",
        "ms",
        150,
        (20, 400),
        "work of rendering the page at capacity 1024",
    )
    .free(),
    WorkloadOption::count(
        None,
        "pieces",
        "",
        5,
        (2, 500),
        "pieces that the work of rendering is done in",
    )
    .free(),
    WorkloadOption::count(
        None,
        "frame-work",
        "%",
        40,
        (10, 400),
        "work of the app's UI thread a frame, of a list's",
    )
    .free(),
    WorkloadOption::count(
        None,
        "page-work",
        "%",
        220,
        (10, 400),
        "of the page's main thread, of the recorded",
    )
    .free(),
    WorkloadOption::count(
        None,
        "page-compositors",
        "%",
        300,
        (10, 400),
        "of the page's compositors, of the recorded",
    )
    .free(),
    WorkloadOption::count(
        None,
        "raster",
        "%",
        20,
        (0, 200),
        "work of the pool for a piece, of the main thread's",
    )
    .free(),
    WorkloadOption::count(
        None,
        "compositor-work",
        "%",
        12,
        (10, 200),
        "of surfaceflinger and the composer a frame, of the measured",
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
    let page = Page::new(&mut script);
    let settings = Settings {
        frame_work: values.whole("frame-work"),
        compositor_work: values.whole("compositor-work"),
        gpu: NS_PER_MS,
        page: Some(page),
        ..Settings::new("droid.benchmark")
    };
    let display = display::add(&mut script, &settings);
    if values.whole("background") == 1 {
        background::add(&mut script);
    }
    let work = Work {
        frame: values.whole("page-work"),
        compositors: values.whole("page-compositors"),
        raster: values.whole("raster"),
    };
    let page = webview::add(&mut script, &display, page, &work);
    script.recorded = vec!["part"];
    let [order, ordered] = std::array::from_fn(|_| script.flag(0));
    let [since, rounds] = std::array::from_fn(|_| script.register(0));
    // The runner only asks and waits; its thread `workload` does the asking of the page.
    let runner = [Step::Wait(order), Step::Work(burst(100_000)), Step::Post(ordered)];
    script.thread("JUnitRunner", nice(0)).then(&runner).for_ever();
    let part = values.whole("part-ms") * NS_PER_MS;
    let all = values.whole("pieces");
    let piece = part / all;
    let load = |pieces: u64| {
        [
            Step::Set(page.pieces, pieces),
            Step::Set(page.work, piece),
            Step::Post(page.ask),
            Step::Wait(page.done),
        ]
    };
    let begin = [Step::Post(order), Step::Wait(ordered), Step::Clock(since)];
    let end = [Step::Record(0, since), Step::Sleep(PAUSE)];
    let characters = script.register(0);
    let character = load((all / CHARACTERS).max(1));
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
                .then(&load(all))
                .then(&end)
                .then(&frames(2 * NS_PER_S))
                .then(&frames(NS_PER_S))
                .then(&begin)
                .then(&load((all / 2).max(1)))
                .then(&end)
                .then(&begin)
                .repeat(characters, (CHARACTERS, character))
                .then(&end)
                .then(&load((all / 4).max(1)))
                .then(&[Step::Sleep(PAUSE)])
                .then(&begin)
                .then(&load(all))
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
