// SPDX-License-Identifier: GPL-2.0-or-later
//! What most tools are asked about: machines, kernels, a workload, seeds, a duration.

use schedtwin::{Duration, Experiment, Given, GivenKernel, GivenMachine, GivenWorkload};

use crate::arguments::{Arguments, Field, Form, Input, optional, required};

/// Runs of each kernel where nothing is said.
pub const SEEDS: u64 = 5;
/// Runs of each kernel at most: a call shall end.
pub const MOST_SEEDS: u64 = 100;

pub const MACHINE: Field =
    required("machine", Form::Given, "a name (list machines), NAME:KEY=VALUE,... or a path");
pub const WORKLOAD: Field =
    required("workload", Form::Given, "a name with options (list workloads), or an rt-app file");
pub const KERNEL: Field =
    required("kernel", Form::Given, "a release, RELEASE+PATCH:KEY=VALUE,... or a path");
pub const KERNELS: Field = required(
    "kernels",
    Form::GivenList,
    "releases or paths; the first is the baseline; with settings: linux-7.3:hz=1000",
);
pub const DURATION: Field = optional(
    "duration",
    Form::Text,
    "simulated time of a run: 2s, 500ms; without it the workload's own",
);
pub const SEED: Field =
    optional("seed", Form::Whole(0, u64::MAX / 2), "the first seed; 1 without it");
pub const RUNS: Field =
    optional("seeds", Form::Whole(1, MOST_SEEDS), "runs of each kernel; 5 without it");
pub const METRICS: Field = optional(
    "metrics",
    Form::Texts,
    "rows to show: NAME[.STAT][,LABEL=VALUE], * for any letters (list metrics); the headlines without it",
);
pub const OFFSET: Field = optional(
    "offset",
    Form::Whole(0, 1 << 40),
    "characters of the result to skip: where the last page ended",
);

/// An input as the library takes it.
pub fn given<T: schedtwin_lab::given::Input>(input: Input) -> Given<T> {
    match input {
        Input::Named(name) => Given::Named(name),
        Input::Text(name, text) => Given::text(name, text),
    }
}

/// A duration, if there is one.
pub fn duration(arguments: &Arguments) -> Result<Option<Duration>, String> {
    let parse = |text: &str| {
        text.parse::<Duration>()
            .map_err(|why| format!("`duration`: {why}; for example 500ms or 2s"))
    };
    arguments.text("duration").map(parse).transpose()
}

/// The first seed.
pub fn seed(arguments: &Arguments) -> u64 {
    arguments.whole("seed").unwrap_or(1)
}

/// The kernels, of `kernels` or `kernel`.
pub fn kernels(arguments: &Arguments) -> Vec<GivenKernel> {
    let one = arguments.input("kernel").into_iter();
    arguments.inputs("kernels").into_iter().chain(one).map(given).collect()
}

/// The experiment of a call, with so many seeds where none are named.
pub fn experiment(arguments: &Arguments, seeds: u64) -> Result<Experiment, String> {
    let machine: GivenMachine = given(arguments.input("machine").expect("it is required"));
    let workload: GivenWorkload = given(arguments.input("workload").expect("it is required"));
    let (first, count) = (seed(arguments), arguments.whole("seeds").unwrap_or(seeds));
    let experiment = Experiment::new()
        .machine(machine)
        .kernels(kernels(arguments))
        .workload(workload)
        .seeds(first..=first + (count - 1));
    Ok(match duration(arguments)? {
        Some(duration) => experiment.duration(duration),
        None => experiment,
    })
}

/// Machine and workload of a call, by the names that a table gives them.
pub fn place(arguments: &Arguments) -> (String, String) {
    let name = |key| match arguments.input(key) {
        Some(Input::Named(name) | Input::Text(name, _)) => name,
        None => String::new(),
    };
    (name("machine"), name("workload"))
}
