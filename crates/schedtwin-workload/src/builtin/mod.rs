// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads that are compiled in: rt-app files, and models of benchmarks with options of their own.
//!
//! A benchmark model is a module here with the benchmark's name, which implements [`Benchmark`].
//! It writes a [`script::Script`]: threads with
//! the class and priority that they have on real devices, what they wait for and whom they wake, how much they
//! compute (measured distributions, [`amount`]), and the devices that interrupt. [`compile`] makes instructions of it.
//!
//! A model takes the options of the program that it models in the same string (`-w 'periodic -f 73 -t 12'`, see
//! [`options`]). Numbers that nobody has measured are marked [E], those that follow from others [D], measured
//! ones [S]. What may be fitted is an option, marked as a free parameter; nothing else is.

mod background;
pub(crate) mod benchmark;
mod browser;
mod compile;
mod cpusets;
mod daytrader;
mod display;
mod fio;
mod geekbench5;
mod jankbench;
mod measured;
mod messaging;
mod netperf;
pub(crate) mod options;
mod pcmark_web;
mod periodic;
mod rate;
mod schbench;
mod sched_pipe;
pub(crate) mod script;
mod shell;
mod speedometer;
mod tbench;
mod uibench;
mod vm_guest_idle;
mod webview;

use crate::program::{amount, frames};
pub(crate) use benchmark::Benchmark;
pub use options::{OptionKind, WorkloadOption};

/// An rt-app file that is compiled in.
pub(crate) struct RtAppFile {
    pub name: &'static str,
    /// One line.
    pub description: &'static str,
    pub text: &'static str,
}

/// `workloads/NAME.json`, and what it is in one line.
macro_rules! rtapp_file {
    ($name:literal, $description:literal) => {
        RtAppFile {
            name: $name,
            description: $description,
            text: include_str!(concat!("../../workloads/", $name, ".json")),
        }
    };
}

const RT_APP_FILES: &[RtAppFile] = &[
    rtapp_file!("w1", "40 threads, each 1.28 ms of work every 16 ms: the speed yardstick (60 s)"),
    rtapp_file!(
        "ui-phone",
        "a phone's user interface at 60 Hz: scrolling with touch, audio and background work (10 s)"
    ),
    rtapp_file!("juno-scenario1", "four busy tasks capped at 110 (Juno r2, uclamp series) (20 s)"),
    rtapp_file!(
        "juno-scenario2",
        "two busy tasks clamped to 383-384 (Juno r2, uclamp series) (20 s)"
    ),
    rtapp_file!(
        "juno-scenario3",
        "a small task joins a capped one on CPU 5 (Juno r2, uclamp series) (20 s)"
    ),
    rtapp_file!(
        "juno-scenario4",
        "eight busy tasks capped at 110, four of them unpinned half way (Juno r2, uclamp series) (20 s)"
    ),
    rtapp_file!("juno-scenario5", "eight busy tasks capped at 110 (Juno r2, uclamp series) (20 s)"),
    rtapp_file!(
        "pixel6-scenario0",
        "four busy tasks capped at 31 (Pixel 6, uclamp series) (200 s)"
    ),
    rtapp_file!(
        "pixel6-scenario1",
        "two busy tasks clamped to 428-429 (Pixel 6, uclamp series) (200 s)"
    ),
    rtapp_file!(
        "pixel6-scenario2",
        "a small task joins a capped one on CPU 7 (Pixel 6, uclamp series) (20 s)"
    ),
    rtapp_file!(
        "boosted-sleeper",
        "a small task with a large uclamp_min that wakes up alone on CPU 4 (10 s)"
    ),
    rtapp_file!(
        "boosted-delayed",
        "the same beside a capped task that never rests on CPU 5 (10 s)"
    ),
    rtapp_file!(
        "remote-wakeup",
        "a busy task comes to a CPU that goes on with another one: remote callbacks (20 s)"
    ),
];

/// An rt-app file of a report, which is named by its path in the repository.
macro_rules! report_file {
    ($path:literal) => {
        RtAppFile {
            name: $path,
            description: "of a report",
            text: include_str!(concat!("../../", $path)),
        }
    };
}

/// The rt-app files that reports name. They are compiled in, so that a report runs anywhere; lists
/// leave them out.
const REPORT_FILES: &[RtAppFile] = &[
    report_file!("workloads/reports/cyclictest-nice-minus-19.json"),
    report_file!("workloads/reports/cyclictest-nice-0.json"),
    report_file!("workloads/reports/cyclictest-nice-19.json"),
    report_file!("workloads/reports/fibtest.json"),
    report_file!("workloads/reports/short-slices.json"),
    report_file!("workloads/reports/six-on-juno.json"),
];

/// Every benchmark, in the order in which lists show them.
const BENCHMARKS: &[&dyn Benchmark] = &[
    &jankbench::Jankbench,
    &uibench::UiBench,
    &geekbench5::Geekbench5,
    &pcmark_web::PcmarkWeb,
    &speedometer::Speedometer,
    &vm_guest_idle::VmGuestIdle,
    &messaging::Messaging,
    &messaging::Hackbench,
    &schbench::Schbench,
    &schbench::SchbenchOld,
    &sched_pipe::SchedPipe,
    &netperf::Netperf,
    &tbench::Tbench,
    &daytrader::Daytrader,
    &fio::Fio,
    &shell::Shell,
    &periodic::Periodic,
    &periodic::Idle,
];

/// A workload that is compiled in.
#[derive(Clone, Copy)]
pub(crate) enum Builtin {
    RtApp(&'static RtAppFile),
    Benchmark(&'static dyn Benchmark),
}

impl Builtin {
    pub fn name(self) -> &'static str {
        match self {
            Builtin::RtApp(file) => file.name,
            Builtin::Benchmark(benchmark) => benchmark.name(),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Builtin::RtApp(file) => file.description,
            Builtin::Benchmark(benchmark) => benchmark.description(),
        }
    }

    pub fn options(self) -> &'static [WorkloadOption] {
        match self {
            Builtin::RtApp(_) => &[],
            Builtin::Benchmark(benchmark) => benchmark.options(),
        }
    }
}

fn builtins() -> impl Iterator<Item = Builtin> {
    let files = RT_APP_FILES.iter().map(Builtin::RtApp);
    files.chain(BENCHMARKS.iter().map(|benchmark| Builtin::Benchmark(*benchmark)))
}

/// The names of the built-in workloads with a line of description each.
pub fn builtin_names() -> Vec<(&'static str, &'static str)> {
    builtins().map(|builtin| (builtin.name(), builtin.description())).collect()
}

/// The options of a built-in workload; `None`: there is no such workload.
pub fn builtin_options(name: &str) -> Option<&'static [WorkloadOption]> {
    builtin(name).map(Builtin::options)
}

/// A built-in by name.
pub(crate) fn builtin(name: &str) -> Option<Builtin> {
    let of_reports = REPORT_FILES.iter().map(Builtin::RtApp);
    builtins().chain(of_reports).find(|builtin| builtin.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_has_a_name_of_its_own_and_texts() {
        let names = builtin_names();
        for (at, (name, description)) in names.iter().enumerate() {
            assert!(!description.is_empty(), "{name}");
            assert!(!names[..at].iter().any(|(other, _)| other == name), "{name} twice");
            let word =
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            assert!(word && !name.is_empty(), "\"{name}\" is one word on a command line");
        }
        for benchmark in BENCHMARKS {
            assert!(benchmark.about().ends_with('\n'), "{}", benchmark.name());
        }
    }

    /// Options in a description are what the benchmark does without options, and are said to be.
    #[test]
    fn descriptions_name_the_defaults() {
        for benchmark in BENCHMARKS {
            let (name, description) = (benchmark.name(), benchmark.description());
            let (before, options) = description.split_once("; by default ").unwrap_or_default();
            let told = if options.is_empty() { description } else { before };
            assert!(!told.contains(" -"), "{name}: whose options are these? {description}");
            let options = options.split(" (").next().unwrap_or_default();
            let values = |text: &str| {
                let source = schedtwin_input::Source::new("description", text);
                options::read(&source, 0, name, benchmark.options()).expect("options of it")
            };
            assert_eq!(values(options), values(""), "{name}: {description}");
        }
    }
}
