//! Workloads that are compiled in: rt-app files, and models of benchmarks with options of their own.
//!
//! A benchmark model is a room here with the benchmark's name. It writes a [`script::Script`]: threads with
//! the class and priority that they have on real devices, what they wait for and whom they wake, how much they
//! compute (measured distributions, [`amount`]), and the devices that interrupt. [`player`] plays it.
//!
//! A model takes the options of the program that it models in the same string (`-w 'periodic -f 73 -t 12'`, see
//! [`options`]). Numbers that nobody has measured are marked [E], those that follow from others [D], measured
//! ones [S]. What may be fitted is an option, marked as a free parameter; nothing else is.

pub(crate) mod amount;
mod background;
mod browser;
mod cpusets;
mod display;
pub(crate) mod frames;
mod geekbench5;
mod jankbench;
mod measured;
pub(crate) mod options;
mod pcmark_web;
mod periodic;
pub(crate) mod player;
pub(crate) mod script;
mod speedometer;
mod uibench;
mod vm_guest_idle;

use crate::Host;
pub use frames::FrameCount;
use options::Values;
pub use options::{OptionKind, WorkloadOption};
use schedtwin_types::Ns;
use script::Script;

/// A workload that is compiled in.
pub(crate) struct Builtin {
    pub name: &'static str,
    /// One line.
    pub description: &'static str,
    pub what: What,
}

/// What a built-in workload is.
pub(crate) enum What {
    /// An rt-app file's text.
    RtApp(&'static str),
    /// A model.
    Model(&'static Model),
}

/// A model of a benchmark.
#[derive(Debug)]
pub(crate) struct Model {
    pub options: &'static [WorkloadOption],
    /// How it is built, for `show workload`.
    pub about: &'static str,
    /// How long it runs; `None`: until it says that it is over.
    pub duration: fn(&Values) -> Option<Ns>,
    pub build: fn(&Values, &Host) -> Script,
    pub score: Score,
}

/// Turns what was counted and recorded into the benchmark's own results.
pub(crate) type Score = fn(&Script, &[FrameCount], &[Vec<Ns>]) -> BenchmarkResult;

/// What a benchmark says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchmarkResult {
    /// Frames by test, if it counts frames.
    pub frames: Vec<(&'static str, FrameCount)>,
    /// Scores by section; the one without a name is the whole benchmark's.
    pub scores: Vec<(Option<&'static str>, Option<f64>)>,
}

/// The geometric mean of positive numbers; none of none.
///
/// By bisection with nothing but products, whose bits are the same on every computer; a logarithm's are not.
fn geometric_mean(values: &[f64]) -> Option<f64> {
    let most = values.iter().copied().reduce(f64::max)?;
    let (mut low, mut high) = (0.0, most);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        let product: f64 = values.iter().map(|value| value / middle).product();
        if product > 1.0 { low = middle } else { high = middle }
    }
    Some(high)
}

/// A benchmark without results of its own.
fn no_score(_: &Script, _: &[FrameCount], _: &[Vec<Ns>]) -> BenchmarkResult {
    BenchmarkResult::default()
}

const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "w1",
        description: "40 threads, each 1.28 ms of work every 16 ms: the speed yardstick (60 s)",
        what: What::RtApp(include_str!("../../../../workloads/w1.json")),
    },
    Builtin {
        name: "ui-phone",
        description: "a phone's user interface at 60 Hz: scrolling with touch, audio and background work (10 s)",
        what: What::RtApp(include_str!("../../../../workloads/ui-phone.json")),
    },
    Builtin {
        name: "jankbench",
        description: "Jankbench: eight tests of lists, text, input and animations, frame by frame (218 s)",
        what: What::Model(&jankbench::MODEL),
    },
    Builtin {
        name: "uibench",
        description: "UiBench: twelve activities that scroll or animate, late frames by gfxinfo's rule (169 s)",
        what: What::Model(&uibench::MODEL),
    },
    Builtin {
        name: "geekbench5",
        description: "Geekbench 5: 21 workloads on one thread, then on a thread a CPU (180 s)",
        what: What::Model(&geekbench5::MODEL),
    },
    Builtin {
        name: "pcmark-web",
        description: "PCMark's web browsing: a page that is rendered, scrolled, searched and changed (102 s)",
        what: What::Model(&pcmark_web::MODEL),
    },
    Builtin {
        name: "speedometer",
        description: "Speedometer 2.1: to-do lists in sixteen frameworks (52 s)",
        what: What::Model(&speedometer::MODEL),
    },
    Builtin {
        name: "vm-guest-idle",
        description: "a virtual machine whose desktop does nothing much (10 s)",
        what: What::Model(&vm_guest_idle::MODEL),
    },
    Builtin {
        name: "periodic",
        description: "threads that work and sleep so many times a second: -f 73 -t 12 (10 s)",
        what: What::Model(&periodic::MODEL),
    },
    Builtin {
        name: "idle",
        description: "nothing but the kernel (10 s)",
        what: What::Model(&periodic::IDLE),
    },
];

/// The names of the built-in workloads with a line of description each.
pub fn builtin_names() -> Vec<(&'static str, &'static str)> {
    BUILTINS.iter().map(|builtin| (builtin.name, builtin.description)).collect()
}

/// The options of a built-in workload; `None`: there is no such workload.
pub fn builtin_options(name: &str) -> Option<&'static [WorkloadOption]> {
    builtin(name).map(|builtin| match &builtin.what {
        What::RtApp(_) => &[][..],
        What::Model(model) => model.options,
    })
}

/// A built-in by name.
pub(crate) fn builtin(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}
