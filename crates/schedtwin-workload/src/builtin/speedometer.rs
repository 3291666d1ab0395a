// SPDX-License-Identifier: GPL-2.0-or-later
//! `speedometer`: Speedometer 2.1, the same to-do list in sixteen frameworks, ten times.
//!
//! Each of 16 suites loads its page and goes through three steps (adding a hundred items, completing and deleting them); each step
//! is [S: the benchmark's source]:
//!
//! ```text
//! setTimeout(0) ── events, synchronously ── setTimeout(0) ── forced layout ── requestAnimationFrame ── next
//! ```
//!
//! **Score** of an iteration: 60000 / geometric mean of the suites' times in ms / 3, the mean over the iterations.
//! Measured is what lies between the first timer and the end of the layout; the wait for the frame is not.
//!
//! **Numbers.** A score of 79.3 on Pixel 6 means 252 ms a suite [D]; were it all work at full speed of the largest core, the
//! suite would be 200 ms at capacity 1024 and the rest waiting and slower clocks [E]: the free parameter. Suites differ by a
//! factor of six around that [E]. The page's load is as much work as a step, and is not measured. Timers of a page that nest
//! wait at least 4 ms from the fifth on; these do not nest so deeply.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted, geometric_mean, score};
use super::browser;
use super::display::{self, Settings};
use super::measured::burst;
use super::options::{Values, WorkloadOption};
use super::script::{Grid, Script, Step, nice};
use super::{background, benchmark, cpusets};
use crate::Host;
use schedtwin_types::Ns;
use schedtwin_types::metric::{DeclaredMetric, Metric};

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_MS: Ns = 1_000_000;
const SUITES: usize = 16;
/// Work of the suites, per cent of the mean. [E]
const SUITE_PERCENT: [u64; SUITES] =
    [40, 50, 50, 60, 60, 70, 80, 80, 90, 100, 110, 120, 140, 160, 180, 210];
/// Work of the three steps, per cent of a suite. [E]
const STEP_PERCENT: [u64; 3] = [45, 30, 25];
/// Of a step's work, what its events take; the rest is layout. [E]
const SYNC_PERCENT: u64 = 65;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(Some('i'), "iterations", "", 10, (1, 100), "how often all suites run"),
    WorkloadOption::count(
        None,
        "suite-ms",
        "ms",
        200,
        (20, 1_000),
        "work of a suite's steps at capacity 1024, in the mean",
    )
    .free(),
    WorkloadOption::count(None, "hz", "Hz", 60, (30, 240), "the display's refresh rate"),
    background::OPTION,
    cpusets::OPTION,
    display::HINTS,
];

/// Speedometer 2.1.
#[derive(Debug)]
pub(super) struct Speedometer;

impl Benchmark for Speedometer {
    fn name(&self) -> &'static str {
        "speedometer"
    }

    fn description(&self) -> &'static str {
        "Speedometer 2.1: to-do lists in sixteen frameworks (52 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
10 iterations of 16 suites of 3 steps: timer, events, timer, layout, next frame; all of it on CrRendererMain, painted by
Compositor, ThreadPoolForeg, VizCompositorTh and CrGpuMain, and shown by the display's threads
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
    let refresh = NS_PER_S / values.whole("hz");
    let hints = values.whole("hints") == 1;
    let settings = Settings { refresh, frame_work: 40, hints, ..Settings::new("droid.chrome") };
    let display = display::add(&mut script, &settings);
    if values.whole("background") == 1 {
        background::add(&mut script);
    }
    let browser = browser::add(&mut script, hints.then_some(refresh));
    script.recorded = vec!["step"];
    let since = script.register(0);
    let mut steps = script
        .thread("JUnitRunner", nice(0))
        .then(&[Step::Set(display.animating, 1)])
        .then(&display.ask())
        .then(&[Step::Sleep(Amount::Fixed(NS_PER_S))]);
    let part = |work: Ns| {
        [
            Step::Work(burst(5_000)),
            Step::Set(browser.work, work),
            Step::Post(browser.ask),
            Step::Wait(browser.done),
        ]
    };
    for _ in 0..values.whole("iterations") {
        for percent in SUITE_PERCENT {
            let suite = values.whole("suite-ms") * NS_PER_MS * percent / 100;
            steps = steps.then(&part(suite / 3));
            for share in STEP_PERCENT {
                let work = suite * share / 100;
                steps = steps
                    .then(&[Step::Clock(since)])
                    .then(&part(work * SYNC_PERCENT / 100))
                    .then(&part(work * (100 - SYNC_PERCENT) / 100))
                    .then(&[Step::Record(0, since)])
                    .then(&[Step::Until(Grid { period: refresh, phase: 0 })]);
            }
        }
    }
    steps.then(&[Step::End]).for_ever();
    cpusets::confine(&mut script, values, host);
    script
}

fn scores(recorded: &[Vec<Ns>]) -> Vec<Metric> {
    let suites: Vec<f64> = recorded[0]
        .chunks_exact(STEP_PERCENT.len())
        .map(|steps| steps.iter().sum::<Ns>() as f64 / NS_PER_MS as f64)
        .collect();
    let iterations: Vec<f64> = suites
        .chunks_exact(SUITES)
        .filter_map(geometric_mean)
        .map(|suite_ms| 60_000.0 / suite_ms / 3.0)
        .collect();
    let mean =
        (!iterations.is_empty()).then(|| iterations.iter().sum::<f64>() / iterations.len() as f64);
    vec![score(None, mean)]
}
