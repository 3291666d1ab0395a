// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin compare`: kernels against each other; `schedtwin aa`: a kernel against itself.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use schedtwin_engine::{DecisionKind, KindDifference, Scenario};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_lab::aa::{FalseAlarms, calibrate};
use schedtwin_lab::compare::{Comparison, Plan};
use schedtwin_lab::fail_if::{Condition, Verdict};
use schedtwin_lab::moment::moments;
use schedtwin_lab::report::html::Part;
use schedtwin_lab::report::{self, Format};
use schedtwin_lab::selector::Selector;
use schedtwin_lab::stopping::{Goal, Iterations};
use schedtwin_lab::study::builtin::studies_of_the_difference;
use schedtwin_lab::sweep::choices::choices;
use schedtwin_lab::timeline::timelines;
use schedtwin_lab::twin::{Column, joint_provenance};
use schedtwin_lab::value::{self, Value};
use schedtwin_lab::{Progress, compare as lab, crash, verdict};
use schedtwin_trace::{AtomicFile, Destination};
use schedtwin_types::Duration;
use schedtwin_types::printable;

use crate::arguments::{Aa, Compare, Printing};
use crate::bar::Bar;
use crate::confine::confined;
use crate::failure::{Failure, warn_of};
use crate::percent::Precision;
use crate::run::failed_schedulers;
use crate::run::{one_selector, writable};
use crate::{interrupt, output};

pub fn compare(arguments: Compare) -> Result<(), Failure> {
    let Understood { groups, conditions, selectors, value, iterations } = understand(&arguments)?;
    let columns = groups.iter().flatten();
    warn_of(columns.map(|column| &column.scenario));
    if let Some(option) = arguments.misplaced() {
        return Err(Failure::bad(format!("{option} is for tables of text, not for this --format")));
    }
    if groups.len() > 1 {
        let given = [
            (arguments.first_difference, "--first-difference"),
            (arguments.value.is_some(), "--value"),
        ];
        let mmtests = (arguments.mmtests && !arguments.each, "without --each, --mmtests");
        if let Some((_, option)) = given.into_iter().chain([mmtests]).find(|(given, _)| *given) {
            let message = format!("{option} is for one machine and one workload");
            return Err(Failure::bad(message));
        }
    }
    for path in arguments.html.iter().chain(&arguments.output) {
        writable(path)?;
    }
    confined()?;
    if arguments.first_difference {
        return print_first_differences(&groups[0], arguments.seed, &arguments.printing);
    }
    let most = arguments.most_runs();
    check_seeds(arguments.seed, most)?;
    let plan = Plan { first_seed: arguments.seed, iterations };
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, arguments.printing.quiet);
    let compared = with_threads(arguments.threads, || {
        let compare = |columns: &Vec<Column>| {
            lab::compare(columns, &plan, joint_provenance(columns), &progress)
        };
        groups.iter().map(compare).collect::<Result<Vec<Comparison>, _>>()
    })?;
    drop(bar);
    let mut comparisons =
        compared.map_err(|error| Failure::bad(format!("failed to compare: {error}")))?;
    if let Iterations::Goals { goals, .. } = &plan.iterations {
        let mut faults = Diagnostics::new();
        let check = |of: &Comparison| goals.iter().map(|goal| goal.check(of)).collect::<Vec<_>>();
        for checked in comparisons.iter().flat_map(check) {
            faults.absorb(checked);
        }
        distinct(faults).into_result(())?;
    }
    if let Some(selector) = value {
        no_crashes(&progress)?;
        let known = value::of_comparison(&comparisons[0], &selector)?;
        return output::print(&known.iter().map(Value::line).collect::<String>());
    }
    for (comparison, columns) in comparisons.iter_mut().zip(&groups) {
        notice_differences(comparison, columns);
    }
    let page = match &arguments.html {
        Some(path) => write_page(path, page(&comparisons, &groups, arguments.seed)),
        None => Ok(()),
    };
    // Conditions are judged even if nobody reads the table: the exit code may be all that is wanted.
    let verdicts: Result<Vec<Verdicts>, Diagnostics> =
        comparisons.iter().map(|comparison| verdicts(&conditions, comparison)).collect();
    let text =
        table(&arguments, &selectors, &comparisons, verdicts.as_deref().unwrap_or_default())?;
    let printed = match &arguments.output {
        Some(path) => write_page(path, schedtwin_types::printable::lines(&text).as_bytes()),
        None => output::print(&text),
    };
    let mut findings: Vec<String> =
        comparisons.iter().flat_map(|comparison| crash::lines(&comparison.crashes)).collect();
    findings
        .extend(comparisons.iter().flat_map(|comparison| failed_schedulers(&comparison.notices)));
    for (comparison, verdicts) in comparisons.iter().zip(verdicts?) {
        let from = &comparison.provenance;
        if !conditions.is_empty() {
            // A gate that was asked for does not open for what the baseline would not do.
            let judged = (1..comparison.kernels.len()).flat_map(|kernel| {
                let found = verdict::verdict(comparison, kernel);
                found.failures(&comparison.kernels[kernel])
            });
            findings.extend(judged);
        }
        let place = match groups.len() {
            1 => String::new(),
            _ => printable::line(&format!("{}, {}: ", from.machine, from.workload)).into_owned(),
        };
        let found = verdicts.into_iter().flat_map(|(_, verdict)| verdict.findings);
        findings.extend(found.map(|finding| format!("{place}{finding}")));
    }
    // What was measured has been printed, whatever became of the file.
    page?;
    if findings.is_empty() { printed } else { Err(Failure::Failed(findings)) }
}

/// Adds in what the kernels differ from the first, and what their scenarios tell, to the notices of a comparison.
fn notice_differences(comparison: &mut Comparison, columns: &[Column]) {
    let base = columns[0].scenario.kernel();
    for column in &columns[1..] {
        let kernel = column.scenario.kernel();
        match kernel.differs_from(base) {
            Some(differs) => comparison
                .notices
                .push(format!("{} differs from {} in {differs}", column.kernel, columns[0].kernel)),
            // Code of the user's may differ where no setting does.
            None if kernel.policies.is_empty() && base.policies.is_empty() => {
                comparison.notices.push(format!(
                    "{} has the settings of {} already: nothing can differ",
                    columns[0].kernel, column.kernel
                ));
            }
            None => {}
        }
        let machine = &comparison.provenance.machine;
        let measured = studies_of_the_difference(machine, &columns[0].kernel, &column.kernel);
        comparison.notices.extend(measured);
        if let Some(choices) = kernel.configured_apart_from(base) {
            comparison.notices.push(format!(
                "what a configuration chooses differs, too, and no release decides it: {choices}. Give both kernels the same \
                 to compare their code"
            ));
        }
        if let Some(code) = column.scenario.kernel().same_code_under_another_name(base) {
            comparison.notices.push(format!(
                "{code} is the same C in both trees: what was changed is in a file that {} does not take from its \
                 tree (cpuidle=teo takes teo.c, cpuidle=menu menu.c, cpufreq=schedutil cpufreq_schedutil.c)",
                column.kernel
            ));
        }
    }
    for notice in columns.iter().flat_map(|column| column.scenario.notices()).rev() {
        if !comparison.notices.contains(&notice) {
            comparison.notices.insert(0, notice);
        }
    }
}

/// The page of one comparison or of several.
fn page(comparisons: &[Comparison], groups: &[Vec<Column>], seed: u64) -> String {
    let part = |(comparison, columns): (_, &Vec<Column>)| {
        let moments = moments(columns, seed);
        let domains = columns.iter().map(|column| column.scenario.domains()).collect();
        let runs = timelines(columns, &moments, seed);
        Part { comparison, runs, moments, domains }
    };
    let parts: Vec<Part> = comparisons.iter().zip(groups).map(part).collect();
    match &parts[..] {
        [one] => report::html::comparison(one.comparison, &one.runs, &one.moments, &one.domains),
        several => report::html::comparisons(several),
    }
}

/// Conditions as they were written, and what became of them.
type Verdicts = Vec<(String, Verdict)>;

fn verdicts(conditions: &[Condition], of: &Comparison) -> Result<Verdicts, Diagnostics> {
    let judge = |condition: &Condition| Ok((condition.text().to_string(), condition.judge(of)?));
    conditions.iter().map(judge).collect()
}

/// Returns the text to print: one table, or with `--each` one for each machine and workload.
fn table(
    arguments: &Compare,
    selectors: &[Selector],
    comparisons: &[Comparison],
    verdicts: &[Verdicts],
) -> Result<String, Failure> {
    let mut shown = comparisons.to_vec();
    if !selectors.is_empty() {
        for comparison in &mut shown {
            report::choose_rows(comparison, selectors)?;
        }
    }
    let (printing, layout) = (&arguments.printing, arguments.layout());
    let (format, extent) = (printing.format(), printing.extent());
    if let ([one], Format::Json, [judged]) = (&shown[..], format, verdicts)
        && !judged.is_empty()
    {
        return Ok(report::judged_json(one, judged));
    }
    let single =
        |comparison: &Comparison| report::comparison_in(comparison, format, extent, layout);
    let apart = arguments.each && matches!(format, Format::Text | Format::Markdown);
    Ok(match &shown[..] {
        [one] => single(one),
        several if apart => several.iter().map(single).collect::<Vec<_>>().join("\n"),
        several => report::comparisons(several, format, extent, layout),
    })
}

/// Writes a file piece by piece.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut AtomicFile) -> std::io::Result<()>,
) -> Result<(), Failure> {
    interrupt::guard(path);
    let written = AtomicFile::create(path).and_then(|mut file| {
        write(&mut file)?;
        file.commit()
    });
    written.map_err(|error| Failure::of_file("write", path, &error))
}

pub fn write_page(path: &Path, page: impl AsRef<[u8]>) -> Result<(), Failure> {
    // Names of traces and files stand in pages; what acts on a terminal is shown as in every text.
    let bytes = page.as_ref();
    let is_page = bytes.starts_with(b"<!DOCTYPE html>");
    let shown = std::str::from_utf8(bytes).ok().filter(|_| is_page).map(printable::lines);
    let bytes = shown.as_deref().map_or(bytes, str::as_bytes);
    write_file(path, |file| file.write_all(bytes))
}

/// The request of the arguments, understood.
struct Understood {
    /// The kernels on each machine under each workload.
    groups: Vec<Vec<Column>>,
    conditions: Vec<Condition>,
    selectors: Vec<Selector>,
    /// The metric that is wanted instead of a table.
    value: Option<Selector>,
    iterations: Iterations,
}

/// The arguments checked, or all that is wrong with any of them.
fn understand(arguments: &Compare) -> Result<Understood, Failure> {
    let mut faults = Diagnostics::new();
    let kernels = named_kernels(&arguments.kernels, &mut faults);
    for (at, kernel) in kernels.iter().enumerate() {
        if kernels[..at].contains(kernel) {
            let source = Source::new("<command line>", kernel.clone());
            let help = "schedtwin aa compares a kernel with itself".to_string();
            faults.push(&source, 0..kernel.len(), "this kernel is named twice", Some(help));
        }
    }
    let mut groups: Vec<Vec<Column>> = Vec::new();
    let duration = arguments.duration.map(Duration::ns);
    let bounds = crate::search::bounds(&arguments.bounds)?;
    for machine in each_once(&arguments.machines) {
        for workload in each_once(&arguments.workloads) {
            let mut columns = Vec::new();
            for kernel in each_once(&kernels) {
                let scenario = Scenario::new(machine, kernel, workload, duration);
                let scenario = faults.absorb(scenario).map(|of| of.with_bounds(bounds.clone()));
                columns
                    .extend(scenario.map(|scenario| Column { kernel: kernel.clone(), scenario }));
            }
            groups.push(columns);
        }
    }
    let conditions = conditions(&arguments.fail_if, arguments.most_runs(), &mut faults);
    let selectors = faults.absorb(arguments.printing.selectors()).unwrap_or_default();
    let value = arguments.value.as_deref();
    let value = value.and_then(|text| faults.absorb(one_selector(text)));
    let iterations = iterations(arguments, &conditions, &mut faults);
    distinct(faults).into_result(())?;
    if kernels.len() < 2 {
        return Err(Failure::bad(
            "a comparison has at least two kernels: -k BASE -k OTHER, or -k 'BASE:KEY={VALUE,VALUE}'; for one there is \
             schedtwin run",
        ));
    }
    Ok(Understood { groups, conditions, selectors, value, iterations })
}

/// How many runs: so many, as many as a precision needs, or as many as an answer needs.
fn iterations(
    arguments: &Compare,
    conditions: &[Condition],
    faults: &mut Diagnostics,
) -> Iterations {
    let most = arguments.most_runs() as usize;
    let mut goals = Vec::new();
    for precision in &arguments.precision {
        match precision {
            Precision::OfAll(half_width_pct) => {
                return Iterations::Precision { half_width_pct: *half_width_pct, most };
            }
            Precision::Of { rows, half_width_pct } => {
                let selectors =
                    faults.absorb(Selector::parse_list_of("--precision", rows)).unwrap_or_default();
                let goal = |selector| Goal { selector, half_width_pct: *half_width_pct };
                goals.extend(selectors.into_iter().map(goal));
            }
        }
    }
    if !goals.is_empty() {
        return Iterations::Goals { goals, most };
    }
    if arguments.iterations.is_none() && !conditions.is_empty() {
        return Iterations::Answer { conditions: conditions.to_vec(), most };
    }
    Iterations::Fixed(most)
}

/// The names in their order, each once.
fn each_once(names: &[String]) -> impl Iterator<Item = &String> {
    names.iter().enumerate().filter(|(at, name)| !names[..*at].contains(name)).map(|(_, name)| name)
}

/// The kernels that are named: one with a list of choices, `linux-6.12:hz={250,1000}`, is as many as the list has.
pub fn named_kernels(texts: &[String], faults: &mut Diagnostics) -> Vec<String> {
    let all = texts.iter().filter_map(|text| faults.absorb(choices(text)));
    all.flatten().map(|choice| choice.text).collect()
}

/// Parses the conditions that `--fail-if` asks of a comparison with so many runs of each kernel.
pub fn conditions(texts: &[String], runs: u64, faults: &mut Diagnostics) -> Vec<Condition> {
    let parsed = texts.iter().map(|text| {
        let condition = Condition::parse(text)?;
        condition.check_runs(runs)?;
        Ok(condition)
    });
    parsed.filter_map(|condition| faults.absorb(condition)).collect()
}

/// Returns the objections of the conditions.
pub fn judge(conditions: &[Condition], of: &Comparison) -> Result<Vec<String>, Diagnostics> {
    let judged: Result<Vec<_>, Diagnostics> =
        conditions.iter().map(|condition| condition.judge(of)).collect();
    Ok(judged?.into_iter().flat_map(|verdict| verdict.findings).collect())
}

/// Each fault once: every kernel meets the same faults of machine and workload.
pub fn distinct(faults: Diagnostics) -> Diagnostics {
    let mut distinct = Diagnostics::new();
    for fault in faults.0 {
        let known = |other: &schedtwin_input::Diagnostic| {
            (&other.source, &other.span, &other.message)
                == (&fault.source, &fault.span, &fault.message)
        };
        if !distinct.0.iter().any(known) {
            distinct.0.push(fault);
        }
    }
    distinct
}

/// Runs that panicked make the command fail, after what the others measured has been printed.
pub fn no_crashes(progress: &Progress) -> Result<(), Failure> {
    let lines = crash::lines(&progress.crashes());
    if lines.is_empty() { Ok(()) } else { Err(Failure::Failed(lines)) }
}

pub fn check_seeds(first: u64, runs: u64) -> Result<(), Failure> {
    match first.checked_add(runs) {
        Some(_) => Ok(()),
        None => Err(Failure::bad(format!("--seed {first} leaves no {runs} seeds below 2^64"))),
    }
}

/// Runs `work` on that many threads, or on one per CPU.
pub fn with_threads<T: Send>(
    threads: Option<u64>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0) as usize)
        .build()
        .map_err(|error| Failure::bad(format!("failed to start threads: {error}")))?;
    Ok(pool.install(work))
}

/// `--first-difference`: instead of a table.
pub fn print_first_differences(
    columns: &[Column],
    seed: u64,
    printing: &Printing,
) -> Result<(), Failure> {
    let (text, panics) = first_differences(columns, seed);
    let printed = output::print_within(&text, printing.columns());
    if panics.is_empty() { printed } else { Err(Failure::Failed(panics)) }
}

/// Where each other kernel's execution parts from the baseline's, as text; and runs that panicked on the way there.
fn first_differences(columns: &[Column], seed: u64) -> (String, Vec<String>) {
    let base = &columns[0];
    let (mut text, mut findings) = (String::new(), Vec::new());
    for other in &columns[1..] {
        let [left, right] = [base, other].map(|column| printable::line(&column.kernel));
        text.push_str(&format!("{left} and {right}, seed {seed}:\n"));
        let run = || schedtwin_engine::first_difference(&base.scenario, &other.scenario, seed);
        let found = match crash::caught(run) {
            Ok(found) => found,
            Err(panic) => {
                findings.push(format!("{left} and {right}, seed {seed}: panicked: {panic}"));
                text.push_str("  a run panicked before it was found\n\n");
                continue;
            }
        };
        let Some(difference) = found else {
            text.push_str("  they execute identically\n\n");
            continue;
        };
        text.push_str(&format!("  the first difference is at {}\n", seconds(difference.at)));
        if !difference.context.is_empty() {
            text.push_str("\n  before it\n");
            push_indented(&mut text, &difference.context);
        }
        for (kernel, what, decisions) in [
            (&left, &difference.left, &difference.decisions_left),
            (&right, &difference.right, &difference.decisions_right),
        ] {
            text.push_str(&format!("\n  {kernel}\n"));
            push_indented(&mut text, decisions);
            push_indented(&mut text, std::slice::from_ref(what));
        }
        text.push('\n');
        let run =
            || schedtwin_engine::first_differences_by_kind(&base.scenario, &other.scenario, seed);
        match crash::caught(run) {
            Ok(kinds) => push_kinds(&mut text, &kinds, [&left, &right]),
            Err(panic) => {
                findings.push(format!("{left} and {right}, seed {seed}: panicked: {panic}"));
            }
        }
    }
    (text, findings)
}

/// The first difference of each kind of decision, the earliest first.
fn push_kinds(text: &mut String, found: &[KindDifference], kernels: [&str; 2]) {
    text.push_str(
        "  of each kind of decision the first that comes to something else, and what the other run decides next of that task, CPU \
         or clock (later ones may follow from earlier ones)\n",
    );
    for of in found {
        let KindDifference { kind, left, right } = of;
        let at = of.at();
        text.push_str(&format!("\n  {}, at {}\n", kind.text(), seconds(at)));
        for (kernel, taken) in kernels.into_iter().zip([left, right]) {
            let later = taken.as_ref().map_or(0, |taken| taken.at - at);
            let which = match later {
                0 => String::new(),
                later => format!(", {} later, perhaps at another call", report::time(later)),
            };
            text.push_str(&format!("    {kernel}{which}\n"));
            let decision =
                taken.as_ref().map_or("it takes no such decision", |taken| &taken.text[..]);
            decision.lines().for_each(|line| text.push_str(&format!("      {line}\n")));
        }
    }
    let same =
        DecisionKind::ALL.into_iter().filter(|kind| !found.iter().any(|of| of.kind == *kind));
    let same: Vec<&str> = same.map(DecisionKind::text).collect();
    if !same.is_empty() {
        text.push_str(&format!("\n  no difference in {}\n", same.join(", ")));
    }
    text.push('\n');
}

fn push_indented(text: &mut String, lines: &[String]) {
    for line in lines.iter().flat_map(|entry| entry.lines()) {
        text.push_str(&format!("    {line}\n"));
    }
}

/// `1.250000123 s`.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Percent of comparisons of a kernel with itself that may be called significant. 5 should be; the metrics
/// of a run depend on each other, so that their common share scatters more than that of one metric.
const HONEST: std::ops::RangeInclusive<f64> = 2.0..=8.0;

pub fn aa(arguments: Aa) -> Result<(), Failure> {
    let Aa { subject, kernel, comparisons, check, iterations, seed, threads, quiet } = arguments;
    check_seeds(seed, comparisons.saturating_mul(2 * iterations))?;
    let scenario = Scenario::new(
        &subject.machine,
        &kernel,
        &subject.workload,
        subject.duration.map(Duration::ns),
    )?;
    warn_of(std::iter::once(&scenario));
    confined()?;
    let column = Column { kernel, scenario };
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, quiet);
    let (comparisons, iterations) = (comparisons as usize, iterations as usize);
    let calibrated =
        with_threads(threads, || calibrate(&column, seed, comparisons, iterations, &progress))?;
    drop(bar);
    let calibration =
        calibrated.map_err(|error| Failure::bad(format!("failed to run: {error}")))?;
    let mut text = format!(
        "{comparisons} comparisons of {} with itself, {iterations} seeds a side; 5% should be called significant\n\n\
         comparisons  paired   Welch   looks  metric\n",
        column.kernel
    );
    let mut line = |tally: &FalseAlarms, name: &str| {
        text.push_str(&format!(
            "{:>11}  {:>5.1}%  {:>5.1}%  {:>5.1}%  {name}\n",
            tally.comparisons,
            100.0 * tally.paired_share(),
            100.0 * tally.welch_share(),
            100.0 * tally.looks_share()
        ));
    };
    line(&calibration.overall, "all together");
    for tally in &calibration.metrics {
        line(tally, &tally.metric);
    }
    let printed = output::print(&text);
    no_crashes(&progress)?;
    let share = 100.0 * calibration.overall.paired_share();
    if check && !HONEST.contains(&share) {
        let message = format!("{share:.1}% of the comparisons with itself are called significant");
        return Err(Failure::Failed(vec![message]));
    }
    printed
}
