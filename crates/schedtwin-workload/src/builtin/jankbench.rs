// SPDX-License-Identifier: GPL-2.0-or-later
//! `jankbench`: Android's Jankbench, eight tests of an app's frames.
//!
//! # What the app does (JankBenchX's source) [S]
//!
//! A second after the last test an activity is started, and with its first layout a thread of the app begins to
//! inject input events, each only when the one before has been handled:
//!
//! | test | interactions |
//! |---|---|
//! | list_view, image_list_view, shadow_grid, low_ and high_hitrate_text | 8 flings |
//! | edit_text | a tap, 5 times the alphabet with a blank |
//! | overdraw, bitmap_upload | a tap, which starts animations of 30.3 s |
//!
//! A fling or tap is 22 motion events. Motion is handled with the next frame, a key at once. A fling of 500
//! pixels in 20 ms is as fast as a 420 dpi screen lets it be (8000 dp/s) and scrolls for 2.57 s [D: OverScroller]. An
//! interaction is over when at one of the app's looks, every 320 ms, none of its frames was seen for 320 ms: 320 to 640 ms
//! in which nothing happens. The frames that follow such a pause find low frequencies, decayed signals and deep idle states.
//!
//! ```text
//! |= launch =|'''''''~~~~~~~~~~~~~~~~~~~~~~~........'''''''~~~~~~~~~~~~~~~~~~........        x 8
//!             22 events    2.57 s of frames   pause
//! ```
//!
//! # What it measures
//!
//! `frame_duration`: FrameMetrics.TOTAL_DURATION, from the intended vsync until the GPU is through. `jank`: per cent of frames by
//! the app's rule ([`super::frames`]), `frames_over_period` beside it, both also by test. Counted are frames that begin from the first
//! injected event of a test until its last interaction is over.
//!
//! # What is in a frame
//!
//! bitmap_upload fills its bitmap and uploads it with each frame. Its view takes every motion event of the tap, and each starts another
//! animation of the colour: 22 run at once, and a frame fills the bitmap 22 times [S: BitmapUploadActivity, Interaction]. That is
//! the heaviest frame of all: 2.6 ms of the largest core, more than a small one can do in a period.
//!
//! [`super::display`] with the distributions of [`super::measured`], times per cent by test [E] (lists with images and
//! shadows draw more, text lays out more, animations of one view hardly lay out). The first counted frame of a test works another
//! 10 to 34 ms: with every CPU at full speed the real app still has a frame of 40.9 ms, and one in a thousand is jank,
//! about one a test [D, from the base kernel with the performance governor]. The GPU takes 2 ms in the mean: what is left of
//! that kernel's mean frame of 4.4 ms when the threads have done their 1.0 ms of work and woken each other [D].
//!
//! Free parameters are the options marked so, within bounds that devices of that class keep: the scale of the work of
//! frames, and the GPU's time.
//!
//! Differences: no page cache; the runtime compiles and collects at constant rates; the GPU's clock is constant; a launch is
//! work of the UI thread and ActivityManager alone, without a window's animation [E]; filling a bitmap takes longer on a small
//! core in proportion to its capacity, though memory bounds it. Notes on the study say that an iteration of all tests took 25.4 s; by the app's constants that is one
//! test of eight flings, and all eight take 218 s. `--flings 1 --animation-s 2.6` makes about 40 s of it.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted};
use super::display::{self, Display, Settings};
use super::measured::burst;
use super::options::{Values, WorkloadOption};
use super::script::{Flag, Register, Script, Step, ThreadSteps, nice};
use super::{background, benchmark, cpusets};
use crate::Host;
use schedtwin_types::Ns;
use schedtwin_types::metric::{DeclaredMetric, Metric};

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_MS: Ns = 1_000_000;
const NS_PER_US: Ns = 1_000;

/// Down, 20 moves, up.
const MOTION_EVENTS: u64 = 22;
/// 26 letters and the blank, each down and up.
const KEY_EVENTS: u64 = 54;
const ALPHABETS: u64 = 5;
/// How long a fling scrolls.
const FLING: Ns = 2_567 * NS_PER_MS;
/// Between a test's end and the next one's launch.
const BETWEEN_TESTS: Ns = NS_PER_S;
/// Nothing is seen for 320 ms, at one of the looks every 320 ms.
const PAUSE: Amount = Amount::Uniform(320 * NS_PER_MS, 640 * NS_PER_MS);
/// Work of the UI thread to start an activity, and of its first counted frame beyond the usual.
const LAUNCH: Amount = Amount::Uniform(20 * NS_PER_MS, 40 * NS_PER_MS);
const FIRST_FRAME: Amount = Amount::Uniform(10 * NS_PER_MS, 34 * NS_PER_MS);
/// A bitmap of 720 x 720 pixels, 2.1 MB, is filled at 17 GB/s and copied for the GPU at 8 GB/s by the largest core [E].
const FILL: Ns = 120 * NS_PER_US;
const UPLOAD: Ns = 250 * NS_PER_US;
/// The compiler, as in the trace of the list app [S]: 64 bursts in 4.26 s of 246 us in the mean.
const JIT_PER_S: u64 = 15;
const JIT: Amount = burst(246_000);
/// A collection: of the launcher's and another app's process 11.9 and 7.7 ms, one each in 3 s, without a pause [S]; its rate in
/// this app [E].
const COLLECTION: Amount = Amount::Uniform(7_700 * NS_PER_US, 11_900 * NS_PER_US);
const BETWEEN_COLLECTIONS: Amount = Amount::Uniform(2 * NS_PER_S, 4 * NS_PER_S);
/// Images of image_list_view, each decoded once.
const IMAGES: u64 = 16;

/// The action of a test's user.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Flings,
    Keys,
    Animation,
}

/// A test: its input, and the work of UI thread, RenderThread and GPU in per cent. [E]
pub(super) struct Activity {
    name: &'static str,
    input: Input,
    ui: u64,
    render: u64,
    gpu: u64,
    /// How often a frame fills its bitmap.
    fills: u64,
}

pub(super) const fn activity(
    name: &'static str,
    input: Input,
    ui: u64,
    render: u64,
    gpu: u64,
) -> Activity {
    Activity { name, input, ui, render, gpu, fills: 0 }
}

impl Activity {
    /// A frame fills a bitmap so often, and uploads it.
    pub const fn fills(mut self, count: u64) -> Activity {
        self.fills = count;
        self
    }
}

const TESTS: [Activity; 8] = [
    activity("list_view", Input::Flings, 100, 90, 80),
    activity("image_list_view", Input::Flings, 110, 110, 100),
    activity("shadow_grid", Input::Flings, 110, 140, 130),
    activity("low_hitrate_text", Input::Flings, 130, 110, 80),
    activity("high_hitrate_text", Input::Flings, 110, 100, 80),
    activity("edit_text", Input::Keys, 80, 80, 60),
    activity("overdraw", Input::Animation, 60, 60, 200),
    activity("bitmap_upload", Input::Animation, 60, 60, 150).fills(MOTION_EVENTS),
];

const NAMES: [&str; TESTS.len()] = names(&TESTS);

/// The names of tests.
pub(super) const fn names<const N: usize>(tests: &[Activity; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = tests[at].name;
        at += 1;
    }
    names
}

// What every benchmark of this display pipeline can be told.
pub(super) const ITERATIONS: WorkloadOption =
    WorkloadOption::count(Some('i'), "iterations", "", 1, (1, 100), "how often each test is run");
pub(super) const HZ: WorkloadOption =
    WorkloadOption::count(None, "hz", "Hz", 60, (30, 240), "the display's refresh rate");
pub(super) const FRAME_WORK: WorkloadOption = WorkloadOption::count(
    None,
    "frame-work",
    "%",
    100,
    (30, 300),
    "work of UI thread and RenderThread a frame, of the measured",
)
.free();
pub(super) const GPU_US: WorkloadOption =
    WorkloadOption::count(None, "gpu-us", "us", 2_000, (200, 8_000), "the GPU's mean time a frame")
        .free();

const OPTIONS: &[WorkloadOption] = &[
    ITERATIONS,
    WorkloadOption::words("tests", &NAMES, "which tests"),
    WorkloadOption::count(None, "flings", "", 8, (1, 8), "flings of a test that scrolls"),
    WorkloadOption::decimal(
        None,
        "animation-s",
        "s",
        30_300,
        (100, 30_300),
        "how long overdraw and bitmap_upload animate",
    ),
    HZ,
    FRAME_WORK,
    GPU_US,
    background::OPTION,
    cpusets::OPTION,
];

/// Jankbench.
#[derive(Debug)]
pub(super) struct Jankbench;

impl Benchmark for Jankbench {
    fn name(&self) -> &'static str {
        "jankbench"
    }

    fn description(&self) -> &'static str {
        "Jankbench: eight tests of lists, text, input and animations, frame by frame (218 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
per test: a second; launch of an activity; 8 flings (22 motion events, 2.57 s of frames, a pause of 320 to 640 ms),
  or a tap and 5 alphabets, or a tap and 30.3 s of animation
per frame: TimerDispatch - app - UI thread - RenderThread - GPU - kgsl_worker (done) - crtc_commit,
  sf - surfaceflinger - composer
jank: the app's rule: longer than one period (16 ms at 60 Hz), after which only longer than two counts, once
"
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        benchmark::OF_FRAMES
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        build(values, host)
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        benchmark::frames_by_test(counted)
    }
}

fn build(values: &Values, host: &Host) -> Script {
    build_activities(values, host, "droid.benchmark", &TESTS, MOTION_EVENTS, false)
}

/// An app that goes through `tests`, and the display, the threads and the system around it. `motion_events`: of a
/// fling or tap; `hints`: whether its threads have a session of hints.
pub(super) fn build_activities(
    values: &Values,
    host: &Host,
    ui_name: &'static str,
    tests: &[Activity],
    motion_events: u64,
    hints: bool,
) -> Script {
    let mut script = Script::new(host.cpu_capacity.len());
    let display = display::add(
        &mut script,
        &Settings {
            refresh: NS_PER_S / values.whole("hz"),
            frame_work: values.whole("frame-work"),
            gpu: values.whole("gpu-us") * NS_PER_US,
            hints,
            ..Settings::new(ui_name)
        },
    );
    if values.whole("background") == 1 {
        background::add(&mut script);
    }
    let app = App {
        counter: script.register(0),
        started: script.flag(0),
        image: script.flag(0),
        display,
        flings: values.whole("flings"),
        animation: values.thousandths("animation-s") * NS_PER_MS,
        motion_events,
    };
    let steps = [Step::Wait(app.display.drawn), Step::Work(burst(20_000))];
    script.thread("FrameStatsCollectorThread", nice(0)).of("app").then(&steps).for_ever();
    let steps = [Step::Wait(app.started), Step::Work(burst(3_000_000))];
    script.thread("ActivityManager", nice(-2)).then(&steps).for_ever();
    let steps = [Step::Wait(app.image), Step::Work(burst(4_000_000))];
    script.thread("AsyncTask #1", nice(10)).of("app").then(&steps).for_ever();

    runtime(&mut script);

    let chosen = values.words("tests");
    script.tests = chosen.iter().map(|test| tests[*test].name).collect();
    let mut steps = script.thread("AutomatorThread", nice(0)).of("app");
    for (number, test) in chosen.iter().enumerate() {
        for _ in 0..values.whole("iterations") {
            steps = app.test(steps, number as u16, &tests[*test]);
        }
    }
    steps.then(&[Step::End]).for_ever();
    script.kind = "android";
    cpusets::confine(&mut script, values, host);
    script
}

/// Android's runtime in the app: the compiler's thread and the collector of garbage.
fn runtime(script: &mut Script) {
    let sleep = Step::Sleep(Amount::Exponential(NS_PER_S / JIT_PER_S));
    script.thread("Jit thread pool", nice(9)).of("app").then(&[sleep, Step::Work(JIT)]).for_ever();
    let sleep = Step::Sleep(BETWEEN_COLLECTIONS);
    script
        .thread("HeapTaskDaemon", nice(4))
        .of("app")
        .then(&[sleep, Step::Work(COLLECTION)])
        .for_ever();
}

/// The state that the app shares with the display.
struct App {
    display: Display,
    counter: Register,
    /// An activity is started; an image is to be decoded.
    started: Flag,
    image: Flag,
    flings: u64,
    animation: Ns,
    motion_events: u64,
}

impl App {
    /// One run of a test.
    fn test<'s>(&self, steps: ThreadSteps<'s>, number: u16, test: &Activity) -> ThreadSteps<'s> {
        let d = &self.display;
        let steps = steps.then(&[
            Step::Sleep(Amount::Fixed(BETWEEN_TESTS)),
            Step::Set(d.ui_percent, test.ui),
            Step::Set(d.render_percent, test.render),
            Step::Set(d.gpu_percent, test.gpu),
            Step::Set(d.ui_own, 0),
            Step::Set(d.render_own, 0),
            Step::SetDrawn(d.launch, LAUNCH),
            Step::Post(self.started),
            Step::Post(d.ui_event),
            Step::Wait(d.launched),
            Step::Count(Some(number)),
            Step::SetDrawn(d.ui_extra, FIRST_FRAME),
        ]);
        let steps = if test.name == "image_list_view" {
            steps.times(self.counter, IMAGES, |image| image.then(&[Step::Post(self.image)]))
        } else {
            steps
        };
        let fling = Amount::Fixed(FLING);
        let steps = match test.input {
            Input::Flings => (0..self.flings).fold(steps, |steps, _| self.motion(steps, fling)),
            Input::Animation => {
                let upload = if test.fills > 0 { UPLOAD } else { 0 };
                let own = [Step::Set(d.ui_own, test.fills * FILL), Step::Set(d.render_own, upload)];
                self.motion(steps.then(&own), Amount::Fixed(self.animation))
            }
            Input::Keys => {
                let steps = self.motion(steps, Amount::Fixed(0));
                (0..ALPHABETS).fold(steps, |steps, _| self.keys(steps))
            }
        };
        steps.then(&[Step::Count(None)])
    }

    /// Motion events, then frames for a while, then a pause.
    fn motion<'s>(&self, steps: ThreadSteps<'s>, frames_for: Amount) -> ThreadSteps<'s> {
        let d = &self.display;
        let steps = steps.then(&[Step::Set(d.batched, 1)]);
        let steps = self.inject(steps, self.motion_events - 1);
        let animates = frames_for != Amount::Fixed(0);
        let steps = steps.then(&[Step::Set(d.animating, u64::from(animates))]);
        let steps = self.inject(steps, 1);
        steps.then(&[Step::Sleep(frames_for), Step::Set(d.animating, 0), Step::Sleep(PAUSE)])
    }

    /// Key events, as fast as they are handled, then a pause.
    fn keys<'s>(&self, steps: ThreadSteps<'s>) -> ThreadSteps<'s> {
        let steps = steps.then(&[Step::Set(self.display.batched, 0)]);
        self.inject(steps, KEY_EVENTS).then(&[Step::Sleep(PAUSE)])
    }

    /// Events, one after the other.
    fn inject<'s>(&self, steps: ThreadSteps<'s>, count: u64) -> ThreadSteps<'s> {
        steps.times(self.counter, count, |event| {
            event.then(&[
                Step::Work(burst(30_000)),
                Step::Post(self.display.inject),
                Step::Wait(self.display.injected),
            ])
        })
    }
}
