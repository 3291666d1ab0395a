// SPDX-License-Identifier: GPL-2.0-or-later
//! The tools: a row each, with the function of the library that does it.

use std::sync::Arc;

use schedtwin::{Extent, Format, Progress, Query, ScoreOptions, Table, What};
use schedtwin_engine::kernel_file::{KernelFile, settings};
use schedtwin_engine::{Machine, Workload};
use schedtwin_lab::report;
use schedtwin_lab::score::{Prepared, Suite};
use schedtwin_lab::selector::Selector;
use schedtwin_lab::verdict::words;
use schedtwin_trace::explain::parse_time;
use schedtwin_types::CpuId;
use schedtwin_types::metric::METRICS;
use schedtwin_types::property::Property;

use crate::arguments::{Arguments, Field, Form, Input, optional, required};
use crate::asked::{
    self, DURATION, KERNEL, KERNELS, MACHINE, METRICS as ROWS, OFFSET, RUNS, SEED, WORKLOAD,
    experiment, given, place,
};
use crate::causes;

/// A tool.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it is for, for the model.
    pub about: &'static str,
    /// Its arguments, besides `offset`.
    pub fields: &'static [Field],
    /// Does it.
    pub act: fn(&Arguments, &Progress) -> Result<String, String>,
}

const KINDS: &[&str] = &[
    "machines",
    "kernels",
    "patches",
    "workloads",
    "systems",
    "properties",
    "metrics",
    "studies",
    "suites",
    "settings",
];
const SHOWN: &[&str] = &["machine", "kernel", "workload", "patch", "system", "suite"];
const CHECKED: &[&str] = &["machine", "kernel", "workload", "suite"];

const GOOD: Field = required("good", Form::Given, "the kernel that keeps the property");
const BAD: Field = required("bad", Form::Given, "the kernel that breaks it");
const PROPERTY: Field =
    optional("property", Form::Text, "the property (list properties); without it the gravest");
const BOUNDS: Field = optional(
    "bounds",
    Form::Texts,
    "from which length on an interval breaks a property: starvation=300ms",
);

/// All tools.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "list",
        about: "Names to choose from, with a line each: machines, kernels, workloads, metrics and so on.",
        fields: &[
            required("kind", Form::OneOf(KINDS), "what is listed"),
            optional("filter", Form::Text, "only lines that have this text"),
        ],
        act: list,
    },
    Tool {
        name: "show",
        about: "All values of a machine, kernel, workload, patch, system or suite.",
        fields: &[
            required("kind", Form::OneOf(SHOWN), "what it is"),
            required("name", Form::Given, "its name or path"),
            optional("filter", Form::Text, "only lines that have this text"),
        ],
        act: show,
    },
    Tool {
        name: "check",
        about: "Whether a machine, kernel, workload or suite is right, without running it: every fault with line and help.",
        fields: &[
            required("kind", Form::OneOf(CHECKED), "what it is"),
            required("input", Form::Given, "its spelling, or the content of a file under a name"),
        ],
        act: check,
    },
    Tool {
        name: "run",
        about: "One run of a workload under a kernel on a machine: what was measured. Deterministic: the same seed gives the same result.",
        fields: &[MACHINE, KERNEL, WORKLOAD, DURATION, SEED, ROWS],
        act: run,
    },
    Tool {
        name: "compare",
        about: "Kernels with the same seeds: means, paired differences with 95% intervals, and a verdict (broken properties and hurt tasks first).",
        fields: &[MACHINE, KERNELS, WORKLOAD, DURATION, SEED, RUNS, ROWS],
        act: compare,
    },
    Tool {
        name: "explain",
        about: "What happened in one run around a time, to a task or on a CPU, with the reason for each decision.",
        fields: &[
            MACHINE,
            KERNEL,
            WORKLOAD,
            DURATION,
            SEED,
            optional("at", Form::Text, "around this time: 1.5s"),
            optional("window", Form::Text, "how far around it, to each side; 500us without it"),
            optional("task", Form::Text, "only of this task; * for any letters"),
            optional("cpu", Form::Whole(0, 1023), "only of this CPU"),
            optional(
                "events",
                Form::Texts,
                "only of these names: sched_switch, pick, placement, frequency, idle, balance",
            ),
            optional(
                "list",
                Form::OneOf(&["entries", "waits", "chains"]),
                "waits: the longest waits for a CPU, why and what ran meanwhile; chains: from each need for a clock to that clock",
            ),
            optional("limit", Form::Whole(1, 1000), "entries at most; 40 without it"),
        ],
        act: explain,
    },
    Tool {
        name: "first_difference",
        about: "The first decision in which the second kernel parts from the first, with both reasons.",
        fields: &[MACHINE, KERNELS, WORKLOAD, DURATION, SEED],
        act: first_difference,
    },
    Tool {
        name: "properties",
        about: "Which properties each kernel breaks (starvation, fairness, work conservation, ...): the worst breach of each, when and who.",
        fields: &[MACHINE, KERNELS, WORKLOAD, DURATION, SEED, RUNS],
        act: properties,
    },
    Tool {
        name: "bisect",
        about: "Which of the settings that differ between two kernels makes the bad one break a property.",
        fields: &[MACHINE, GOOD, BAD, WORKLOAD, DURATION, SEED, PROPERTY, BOUNDS],
        act: causes::bisect,
    },
    Tool {
        name: "shrink",
        about: "A smaller workload under which the bad kernel still breaks a property that the good one keeps: the text of an rt-app file.",
        fields: &[MACHINE, GOOD, BAD, WORKLOAD, DURATION, SEED, PROPERTY, BOUNDS],
        act: causes::shrink,
    },
    Tool {
        name: "score",
        about: "One number for each kernel in a suite of machines and workloads: 100 is the baseline, more is better, 0 breaks a limit. For searches.",
        fields: &[
            required(
                "suite",
                Form::Given,
                "default, laptop, phone (list suites), a path, or the content of a file under a name",
            ),
            required(
                "kernels",
                Form::GivenList,
                "the candidates; baseline:KEY=VALUE is the suite's baseline",
            ),
            optional(
                "seed",
                Form::Whole(0, u64::MAX / 2),
                "of the first run; without it the suite's",
            ),
            optional("beat", Form::Number, "a candidate that cannot reach this score ends early"),
        ],
        act: score,
    },
];

/// The tool of that name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// Its arguments, all of them.
    pub fn all_fields(&self) -> Vec<Field> {
        self.fields.iter().copied().chain([OFFSET]).collect()
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The lines that have the text of `filter`, in any case of letters.
fn filtered(text: String, arguments: &Arguments) -> String {
    let Some(filter) = arguments.text("filter").map(str::to_lowercase) else { return text };
    let has = |line: &&str| line.to_lowercase().contains(&filter);
    let lines: Vec<&str> = text.lines().filter(has).collect();
    match lines.is_empty() {
        true => format!(
            "nothing has {filter:?}; without `filter` there are {} lines",
            text.lines().count()
        ),
        false => lines.join("\n") + "\n",
    }
}

fn list(arguments: &Arguments, _: &Progress) -> Result<String, String> {
    let names = |all: Vec<(String, String)>| -> String {
        all.into_iter().map(|(name, about)| format!("{name}: {about}\n")).collect()
    };
    let text = match arguments.text("kind").unwrap_or_default() {
        "machines" => names(schedtwin_engine::list_machines()),
        "kernels" => names(schedtwin_engine::list_releases()),
        "patches" => names(schedtwin_engine::list_patches()),
        "workloads" => names(schedtwin_engine::list_workloads()),
        "systems" => names(schedtwin_engine::list_systems()),
        "suites" => names(schedtwin_lab::score::list()),
        "studies" => {
            schedtwin_lab::study::builtin::names().map(|name| format!("{name}\n")).collect()
        }
        "properties" => Property::ALL
            .iter()
            .map(|of| {
                let bound = schedtwin::Duration::from_ns(of.default_bound());
                format!("{of}: longer than {bound}: {}\n", of.means())
            })
            .collect(),
        "metrics" => METRICS
            .iter()
            .map(|of| format!("{} [{}] {}: {}\n", of.name, of.unit, of.stats.join(" "), of.means))
            .collect(),
        _ => settings().iter().map(|of| format!("{}: {}\n", of.path, of.help)).collect(),
    };
    Ok(filtered(text, arguments))
}

fn show(arguments: &Arguments, _: &Progress) -> Result<String, String> {
    let input = arguments.input("name").expect("it is required");
    let shown = match (arguments.text("kind").unwrap_or_default(), input) {
        ("machine", input) => given::<Machine>(input).load().map(|of| of.describe()),
        ("kernel", input) => given::<KernelFile>(input).load().map(|of| of.describe()),
        ("workload", Input::Named(name)) => schedtwin_engine::describe_workload(&name),
        ("workload", input) => given::<Workload>(input).load().map(|of| of.describe()),
        ("patch", Input::Named(name)) => schedtwin_engine::kernel_file::describe_patch(&name),
        ("system", Input::Named(name)) => schedtwin_engine::describe_system(&name),
        ("suite", Input::Named(name)) => {
            schedtwin_lab::score::load(&name).map(|suite| suite.source.text.clone())
        }
        (kind, _) => return Err(format!("a {kind} is shown by its name or path")),
    };
    Ok(filtered(shown.map_err(told)?, arguments))
}

fn check(arguments: &Arguments, _: &Progress) -> Result<String, String> {
    let input = arguments.input("input").expect("it is required");
    match arguments.text("kind").unwrap_or_default() {
        "machine" => given::<Machine>(input).load().map(drop),
        "kernel" => given::<KernelFile>(input).load().map(drop),
        "suite" => given::<Suite>(input).load().and_then(Prepared::of).map(drop),
        _ => given::<Workload>(input).load().map(drop),
    }
    .map_err(told)?;
    Ok("fine".to_string())
}

/// The rows that a call asks for.
fn selectors(arguments: &Arguments) -> Result<Vec<Selector>, String> {
    let mut all = Vec::new();
    for text in arguments.texts("metrics") {
        all.extend(Selector::parse_list_of("metrics", &text).map_err(told)?);
    }
    Ok(all)
}

fn run(arguments: &Arguments, progress: &Progress) -> Result<String, String> {
    let experiment = experiment(arguments, 1)?;
    let rows = arguments.texts("metrics");
    selectors(arguments)?;
    if rows.is_empty() {
        progress.expect_runs(1);
        return experiment.run_text().map_err(told);
    }
    let table: Table = experiment.run_with(progress).map_err(told)?;
    let mut text = String::new();
    for selector in &rows {
        for row in table.select(selector).map_err(told)? {
            let labels: String = row.labels().iter().map(|(k, v)| format!(" {k}={v}")).collect();
            let value = row.value().map_or("undefined".to_string(), report::number);
            text.push_str(&format!(
                "{} {}{labels}: {value} {}\n",
                row.metric(),
                row.stat(),
                row.unit()
            ));
        }
    }
    Ok(text)
}

/// The comparison of a call's kernels.
fn compared(
    arguments: &Arguments,
    progress: &Progress,
) -> Result<schedtwin_lab::compare::Comparison, String> {
    let experiment = experiment(arguments, asked::SEEDS)?;
    let table = experiment.run_with(progress).map_err(told)?;
    let (machine, workload) = place(arguments);
    let comparison = table.comparison(&machine, &workload);
    Ok(comparison.ok_or("the table has no such comparison")?.as_lab().clone())
}

fn compare(arguments: &Arguments, progress: &Progress) -> Result<String, String> {
    if arguments.inputs("kernels").len() < 2 {
        return Err("`kernels` has the baseline and at least one other: two or more".to_string());
    }
    let selectors = selectors(arguments)?;
    let mut comparison = compared(arguments, progress)?;
    let mut extent = Extent::Headlines;
    if !selectors.is_empty() {
        report::choose_rows(&mut comparison, &selectors).map_err(told)?;
        extent = Extent::Chosen;
    }
    Ok(report::comparison(&comparison, Format::Text, extent))
}

fn properties(arguments: &Arguments, progress: &Progress) -> Result<String, String> {
    let comparison = compared(arguments, progress)?;
    let mut text = String::new();
    for (kernel, troubles) in comparison.kernels.iter().zip(&comparison.troubles) {
        text.push_str(&format!("{kernel}, {} runs:\n", troubles.runs));
        for (ended, runs) in &troubles.ended {
            text.push_str(&format!("  ended in {runs} runs: {ended}\n"));
        }
        for broken in &troubles.broken {
            let (property, runs) = (broken.worst.property, broken.runs);
            let (seeds, what) = (broken.seeds(), words(&broken.worst));
            text.push_str(&format!("  breaks {property} in {runs} runs ({seeds}): {what}\n"));
        }
        if troubles.ended.is_empty() && troubles.broken.is_empty() {
            text.push_str("  keeps all properties\n");
        }
    }
    Ok(text)
}

fn explain(arguments: &Arguments, _: &Progress) -> Result<String, String> {
    let time = |name: &str| {
        let parse = |text: &str| parse_time(text).map_err(|why| format!("`{name}`: {why}"));
        arguments.text(name).map(parse).transpose()
    };
    let defaults = Query::default();
    let query = Query {
        at: time("at")?,
        window_ns: time("window")?.unwrap_or(defaults.window_ns),
        task: arguments.text("task").map(String::from),
        cpu: arguments.whole("cpu").map(|cpu| CpuId(cpu as u16)),
        events: arguments.texts("events"),
        what: match arguments.text("list") {
            Some("waits") => What::Waits,
            Some("chains") => What::Chains,
            _ => What::Entries,
        },
        limit: arguments.whole("limit").unwrap_or(40),
        json: defaults.json,
    };
    let told_of = experiment(arguments, 1)?.explain(&query).map_err(told)?;
    let (listed, matched) = (told_of.matched().min(query.limit), told_of.matched());
    let more = match matched > listed {
        true => format!(
            "({listed} of {matched} entries; a larger `limit` or a later `at` has the rest)\n"
        ),
        false => String::new(),
    };
    Ok(format!("{told_of}{more}"))
}

fn first_difference(arguments: &Arguments, _: &Progress) -> Result<String, String> {
    if arguments.inputs("kernels").len() != 2 {
        return Err("`kernels` are two: a difference is between them".to_string());
    }
    let found = experiment(arguments, 1)?.first_difference().map_err(told)?;
    Ok(found.map_or("they execute identically".to_string(), |found| found.to_string()))
}

fn score(arguments: &Arguments, progress: &Progress) -> Result<String, String> {
    let suite = given::<Suite>(arguments.input("suite").expect("it is required"));
    let options = ScoreOptions {
        beat: arguments.number("beat"),
        first_seed: arguments.whole("seed"),
        ..ScoreOptions::default()
    };
    let kernels = asked::kernels(arguments);
    let scores = schedtwin::score(suite, &kernels, &options, progress).map_err(told)?;
    let mut text = String::new();
    for (kernel, of) in kernels.iter().zip(&scores) {
        let candidate = &of.document["candidates"][0];
        let known = |key: &str| candidate[key].as_f64().map_or("-".to_string(), |x| x.to_string());
        text.push_str(&format!(
            "{}: {} (+- {}; held out {})\n",
            kernel.name(),
            of.score,
            known("half_width"),
            known("held_out")
        ));
        text.extend(of.reason.iter().map(|reason| format!("  ended: {reason}\n")));
        for job in candidate["jobs"].as_array().into_iter().flatten() {
            let measures = job["measures"].as_array().into_iter().flatten();
            let measures = measures.filter_map(|m| {
                Some(format!("{} {}", m["metric"].as_str()?, m["score"].as_f64()?))
            });
            let measures = measures.collect::<Vec<_>>().join(", ");
            text.push_str(&format!(
                "  {} {}: {measures}\n",
                job["name"].as_str().unwrap_or_default(),
                job["score"].as_f64().unwrap_or_default()
            ));
        }
    }
    Ok(text)
}

/// A call that is under way.
pub fn perform(
    tool: &Tool,
    arguments: &Arguments,
    progress: &Arc<Progress>,
) -> Result<String, String> {
    let done = schedtwin_lab::crash::caught(|| (tool.act)(arguments, progress));
    done.unwrap_or_else(|panic| Err(format!("this is a bug of schedtwin: {panic}")))
}
