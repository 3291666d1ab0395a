// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin bisect`, `shrink` and `hunt`: what breaks a property, by which settings, and the smallest case of it.

use std::fs;
use std::path::Path;
use std::time::{Duration as WallTime, Instant};

use schedtwin_engine::Scenario;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::kernel_file::mixture::Mixture;
use schedtwin_engine::result::{Bounds, Breach, Property};
use schedtwin_engine::worker;
use schedtwin_input::Diagnostics;
use schedtwin_lab::report::{number, signed};
use schedtwin_lab::search::bisect::{self, Bisected};
use schedtwin_lab::search::by_metric::{self, NoPair};
use schedtwin_lab::search::hunt::{self, Found};
use schedtwin_lab::search::shrink::{self, Shrunk};
use schedtwin_lab::search::{Answer, Case, MachineGiven, Question, WorkloadGiven, rt_app_text};
use schedtwin_lab::selector::Selector;
use schedtwin_lab::value::Value;
use schedtwin_lab::verdict;
use schedtwin_types::{Duration, printable};

use crate::arguments::{Bisect, BoundArguments, Hunt, Searched, Shrink};
use crate::commits::{self, Commits};
use crate::compare::{seconds, with_threads, write_page};
use crate::confine::{confined, may_write};
use crate::failure::Failure;
use crate::output;
use crate::run::one_selector;

/// The files of a finding.
const MACHINE_FILE: &str = "machine.toml";
const WORKLOAD_FILE: &str = "workload.json";

/// Seeds that are run between two looks at the clock, for each thread.
const BATCH: u64 = 8;

/// The bounds of the command line.
pub fn bounds(arguments: &BoundArguments) -> Result<Bounds, Failure> {
    let mut bounds = Bounds::default();
    for text in &arguments.bounds {
        bounds.set(text).map_err(|why| Failure::bad(format!("--bound {text}: {why}")))?;
    }
    Ok(bounds)
}

fn question(searched: &Searched) -> Result<Question, Failure> {
    let property = searched.property.as_deref().map(|name| {
        Property::named(name).ok_or_else(|| {
            Failure::bad(format!("{name:?} is no property; there are {}", Property::names()))
        })
    });
    Ok(Question { property: property.transpose()?, bounds: bounds(&searched.bounds)? })
}

/// The good and the bad kernel.
fn pair(kernels: &[String]) -> Result<[KernelFile; 2], Failure> {
    let [good, bad] = kernels else {
        return Err(Failure::bad("two kernels are needed: -k GOOD -k BAD"));
    };
    if good == bad {
        return Err(Failure::bad(format!("the good and the bad kernel are the same, {good}")));
    }
    let mut faults = Diagnostics::new();
    let (good, bad) = (KernelFile::load(good), KernelFile::load(bad));
    let both = (faults.absorb(good), faults.absorb(bad));
    faults.into_result(())?;
    let (Some(good), Some(bad)) = both else { return Err(Failure::bad("a kernel is missing")) };
    Ok([good, bad])
}

pub fn bisect(arguments: &Bisect) -> Result<(), Failure> {
    let Bisect { subject, kernels, metric, iterations, searched, seed } = arguments;
    if let Some(commits) = Commits::of(kernels) {
        return commits::bisect(arguments, &commits);
    }
    let [good, bad] = pair(kernels)?;
    let case = Case {
        machine: MachineGiven::Named(subject.machine.clone()),
        workload: WorkloadGiven::Named(subject.workload.clone()),
        seed: *seed,
        duration: subject.duration.map(Duration::ns),
    };
    case.scenario(&good)?;
    case.scenario(&bad)?;
    confined()?;
    let mixture = Mixture::new(&good, &bad);
    if mixture.differing.is_empty() {
        let [a, b] = [&good, &bad].map(|kernel| &kernel.identity);
        let why = match a == b {
            true => "the kernels are the same".to_string(),
            false => format!(
                "the kernels have the same settings, and differ in their code alone ({a}, {b})"
            ),
        };
        return Err(Failure::bad(format!("{why}: there is nothing to bisect")));
    }
    let (text, found) = match metric {
        Some(metric) => {
            let selector = one_selector(metric)?;
            metric_text(&case, &mixture, [&good, &bad], &selector, *iterations)?
        }
        None => {
            let question = question(searched)?;
            let breach = parted(&case, &question, &good, &bad)?;
            let same = Question { property: Some(breach.property), ..question };
            let mut steps = Steps::of("bisecting", searched.quiet);
            let found = bisect::find(&mixture, |kernel| {
                steps.one_more();
                matches!(same.ask(&case, kernel), Answer::Broken(_))
            });
            (broken_text(&breach, &good, &bad), found)
        }
    };
    let text = text + &cause_text(&found) + &difference_text(&case, &mixture, &found, &good);
    output::print_fit(&text)
}

/// The breach that parts the kernels, or why there is none.
fn parted(
    case: &Case,
    question: &Question,
    good: &KernelFile,
    bad: &KernelFile,
) -> Result<Breach, Failure> {
    let names = [good, bad].map(|kernel| printable::line(&kernel.identity).into_owned());
    let [good_name, bad_name] = &names;
    let asked = question.property.map_or("every property".to_string(), |of| of.to_string());
    let breach = match question.ask(case, bad) {
        Answer::Broken(breach) => breach,
        Answer::Kept => {
            return Err(Failure::Failed(vec![format!(
                "{bad_name} keeps {asked} with seed {} (bounds: --bound)",
                case.seed
            )]));
        }
        Answer::Unknown(why) => {
            return Err(Failure::Failed(vec![format!("nothing is known of {bad_name}: {why}")]));
        }
    };
    let same = Question { property: Some(breach.property), ..question.clone() };
    match same.ask(case, good) {
        Answer::Kept => Ok(breach),
        Answer::Broken(_) => {
            Err(Failure::Failed(vec![format!("both break {}: {good_name}, too", breach.property)]))
        }
        Answer::Unknown(why) => {
            Err(Failure::Failed(vec![format!("nothing is known of {good_name}: {why}")]))
        }
    }
}

/// The means of a metric under both kernels as text, and the settings that part them.
fn metric_text(
    case: &Case,
    mixture: &Mixture<'_>,
    [good, bad]: [&KernelFile; 2],
    selector: &Selector,
    iterations: u64,
) -> Result<(String, Bisected), Failure> {
    let unit = match selector.units()[..] {
        [unit] if unit != "count" => format!(" {unit}"),
        _ => String::new(),
    };
    let of = |mean: Value| match mean.half_width {
        Some(half) => format!("{}{unit} (95% +-{})", number(mean.value), number(half)),
        None => format!("{}{unit}", number(mean.value)),
    };
    let [good_name, bad_name] = [good, bad].map(|kernel| printable::line(&kernel.identity));
    let metric = selector.text();
    let by = by_metric::find(case, mixture, [good, bad], selector, iterations);
    let by = by.map_err(|why| match why {
        NoPair::Unmeasured => Failure::bad("the metric is not measured under both kernels"),
        NoPair::Equal(mean) => {
            Failure::Failed(vec![format!("{metric} is {}{unit} under both kernels", number(mean))])
        }
        NoPair::Chance { good, bad, ci95 } => Failure::Failed(vec![format!(
            "{metric} is {} under {good_name}, and {} under {bad_name}: the difference{} may be chance, so there is \
             nothing to explain; ask for more runs (-n)",
            of(good),
            of(bad),
            interval(Some(ci95))
        )]),
    })?;
    let mut text = format!(
        "{metric} is {} under {good_name}, and {} under {bad_name}: ",
        of(by.good),
        of(by.bad)
    );
    let by_how_much =
        format!("by {}{unit}{}", signed(by.difference.diff), interval(by.difference.ci95));
    text.push_str(&match by.bad_is_better() {
        Some(false) => format!("{good_name} is better, {by_how_much}.\n"),
        Some(true) => format!(
            "{bad_name}, given as the bad one, is better, {by_how_much}. What follows causes an improvement.\n"
        ),
        None => format!("they differ {by_how_much}; neither more nor less of it is better.\n"),
    });
    if by.difference.p.is_none() {
        text.push_str("One run of each has no interval: chance may have made the difference, so ask for more runs (-n).\n");
    }
    let found = by.found;
    Ok((text, found))
}

/// ` (95% 1.2 to 3.4)` of a difference, in the metric's unit; nothing of one pair.
fn interval(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or_else(String::new, |[low, high]| {
        format!(" (95% {} to {})", signed(low), signed(high))
    })
}

fn broken_text(breach: &Breach, good: &KernelFile, bad: &KernelFile) -> String {
    let [good, bad] = [good, bad].map(|kernel| printable::line(&kernel.identity));
    let words = verdict::words(breach);
    format!("{bad} breaks {}, which {good} keeps: {words}.\n", breach.property)
}

fn cause_text(found: &Bisected) -> String {
    let Bisected { differing, cause, also_alone, heals, asked } = found;
    let list = |set: &[usize]| {
        let lines = set.iter().map(|at| format!("  {}\n", differing[*at].text()));
        lines.collect::<String>()
    };
    let mut text = format!(
        "\nCause, of {} settings that differ ({asked} kernels were asked):\n{}",
        differing.len(),
        list(cause)
    );
    if !also_alone.is_empty() {
        text.push_str(&format!("Each of these suffices alone, too:\n{}", list(also_alone)));
    }
    text.push_str(match (heals.len(), cause.len()) {
        (healing, of) if healing == of && of == 1 => "Set back alone, it heals the bad kernel.\n",
        (healing, of) if healing == of => "Each of them, set back alone, heals the bad kernel.\n",
        (0, _) => {
            "Set back alone, none heals the bad kernel: others of its settings suffice, too.\n"
        }
        _ => "Not each of them heals the bad kernel when it alone is set back.\n",
    });
    text
}

/// The first decision that differs with the cause alone.
fn difference_text(
    case: &Case,
    mixture: &Mixture<'_>,
    found: &Bisected,
    good: &KernelFile,
) -> String {
    let scenarios =
        [good.clone(), mixture.mixed(&found.cause)].map(|kernel| case.scenario(&kernel));
    let [Ok(left), Ok(right)] = scenarios else { return String::new() };
    let first = |a: &Scenario, b: &Scenario| schedtwin_engine::first_difference(a, b, case.seed);
    let Some(difference) = first(&left, &right) else { return String::new() };
    let mut text = format!("\nThe first decision that differs is at {}:\n", seconds(difference.at));
    for (name, decisions, what) in [
        ("good", &difference.decisions_left, &difference.left),
        ("with the cause", &difference.decisions_right, &difference.right),
    ] {
        text.push_str(&format!("  {name}\n"));
        for line in decisions.iter().chain([what]).flat_map(|entry| entry.lines()) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

pub fn shrink(arguments: &Shrink) -> Result<(), Failure> {
    let Shrink { subject, kernels, searched, time, seed, output } = arguments;
    let [good, bad] = pair(kernels)?;
    let question = question(searched)?;
    let text = fs::read_to_string(&subject.workload)
        .map_err(|error| Failure::of_file("read", Path::new(&subject.workload), &error))?;
    let workload = WorkloadGiven::rt_app(&text).map_err(|error| {
        let what = "shrink takes an rt-app file that is plain JSON, without comments";
        Failure::bad(format!("{}: {error}; {what}", subject.workload))
    })?;
    let case = Case {
        machine: MachineGiven::Named(subject.machine.clone()),
        workload,
        seed: *seed,
        duration: subject.duration.map(Duration::ns),
    };
    case.scenario(&good)?;
    case.scenario(&bad)?;
    folder(output)?;
    confined()?;
    let breach = parted(&case, &question, &good, &bad)?;
    let limit = time.map(|time| WallTime::from_nanos(time.ns()));
    let how = (limit, searched.quiet);
    let (text, _) = shrunk_and_written(case, &question, &breach, [&good, &bad], output, how)?;
    output::print_fit(&text)
}

/// Shrinks a case that parts the kernels, writes its files, and tells of it.
fn shrunk_and_written(
    case: Case,
    question: &Question,
    breach: &Breach,
    [good, bad]: [&KernelFile; 2],
    folder: &Path,
    (limit, quiet): (Option<WallTime>, bool),
) -> Result<(String, Case), Failure> {
    let same = Question { property: Some(breach.property), ..question.clone() };
    // What shows with several seeds keeps showing with them: a case of one seed is often luck. It stays the same breach only if
    // it is of the same task.
    let shows = |case: &Case, seed: u64| {
        let found = same.parts(&Case { seed, ..case.clone() }, good, bad);
        found.is_some_and(|found| found.group == breach.group)
    };
    let first = case.seed;
    let seeds: Vec<u64> = (first..first.saturating_add(3)).filter(|s| shows(&case, *s)).collect();
    // The case may be left unshrunk: a run that is stopped leaves it.
    write_case(&case, folder)?;
    let mut steps = Steps::of("shrinking", quiet);
    let (begin, mut over) = (Instant::now(), false);
    let Shrunk { case, .. } = shrink::shrink(case, |case| {
        // Nothing shows any more, so the search comes to its end with the smallest case so far.
        over |= limit.is_some_and(|limit| begin.elapsed() >= limit);
        if over {
            return false;
        }
        steps.one_more();
        seeds.iter().all(|seed| shows(case, *seed))
    });
    let breach = same.parts(&case, good, bad).unwrap_or_else(|| breach.clone());
    let robust = (1..=20).filter(|seed| shows(&case, *seed)).count();
    let (machine, text) = write_case(&case, folder)?;
    let path = folder.join(WORKLOAD_FILE);
    let duration = case.duration.map(|ns| format!(" --duration {}", Duration::from_ns(ns).word()));
    let mut told = broken_text(&breach, good, bad);
    told.push_str(&format!(
        "\n{text}\nShrunk in {} steps{}; it shows with {robust} of the seeds 1 to 20.\n\n  schedtwin compare -m {machine} -w {} -k '{}' -k '{}'{} -n 2\n",
        steps.tried,
        if over { ", until the time was over" } else { "" },
        output::shown(&path),
        good.identity,
        bad.identity,
        duration.unwrap_or_default(),
    ));
    Ok((told, case))
}

/// Writes the files of a case; how its machine is named, and the text of its workload.
fn write_case(case: &Case, folder: &Path) -> Result<(String, String), Failure> {
    let machine = match &case.machine {
        MachineGiven::Named(name) => name.clone(),
        MachineGiven::Text(text) => {
            let path = folder.join(MACHINE_FILE);
            write_page(&path, text)?;
            output::shown(&path).to_string()
        }
    };
    let WorkloadGiven::RtApp(root) = &case.workload else {
        return Err(Failure::bad("shrink takes rt-app files"));
    };
    let text = rt_app_text(root);
    write_page(&folder.join(WORKLOAD_FILE), &text)?;
    Ok((machine, text))
}

/// Tells now and then how many cases were tried.
struct Steps {
    what: &'static str,
    quiet: bool,
    tried: u64,
    told: Instant,
}

impl Steps {
    /// The time between two lines.
    const PERIOD: WallTime = WallTime::from_secs(10);

    fn of(what: &'static str, quiet: bool) -> Steps {
        Steps { what, quiet, tried: 0, told: Instant::now() }
    }

    fn one_more(&mut self) {
        self.tried += 1;
        if !self.quiet && self.told.elapsed() >= Steps::PERIOD {
            self.told = Instant::now();
            output::tell(&format!("{}: {} cases tried", self.what, self.tried));
        }
    }
}

/// Makes the folder for findings.
fn folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| Failure::of_file("make the folder", path, &error))?;
    [MACHINE_FILE, WORKLOAD_FILE].iter().for_each(|name| may_write(&path.join(name)));
    Ok(())
}

pub fn hunt(arguments: &Hunt) -> Result<(), Failure> {
    let Hunt { kernel, against, searched, time, seed, count, threads, output } = arguments;
    let quiet = searched.quiet;
    let [good, bad] = pair(&[against.clone(), kernel.clone()])?;
    let question = question(searched)?;
    folder(output)?;
    confined()?;
    let (begin, limit) = (Instant::now(), WallTime::from_nanos(time.ns()));
    let found = with_threads(*threads, || {
        let batch = BATCH * rayon_threads();
        let mut tried = 0;
        loop {
            let left = count.map_or(batch, |count| batch.min(count - tried));
            if left == 0 || begin.elapsed() >= limit {
                return (None, tried);
            }
            let found = hunt::batch(seed.saturating_add(tried), left, &question, &good, &bad);
            tried += left;
            if !quiet && !worker::is_worker() {
                eprint!("\r{tried} cases, {} s ", begin.elapsed().as_secs());
            }
            if found.is_some() {
                return (found, tried);
            }
        }
    })?;
    if !quiet && !worker::is_worker() {
        eprintln!();
    }
    let (Some(Found { seed, case, breach }), tried) = found else {
        let (tried, names) = (found.1, [&good, &bad].map(|k| printable::line(&k.identity)));
        let [good, bad] = names;
        return output::print(&format!(
            "In {tried} cases from seed {seed} on {bad} broke nothing that {good} keeps.\n"
        ));
    };
    if !quiet {
        output::tell(&format!(
            "case {seed}: {} breaks {}; its files are in {}, now it is made small",
            printable::line(&bad.identity),
            breach.property,
            output::shown(output)
        ));
    }
    let (mut text, case) =
        shrunk_and_written(case, &question, &breach, [&good, &bad], output, (Some(limit), quiet))?;
    let mixture = Mixture::new(&good, &bad);
    let same = Question { property: Some(breach.property), ..question };
    if !mixture.differing.is_empty() {
        let is_bad = |kernel: &KernelFile| matches!(same.ask(&case, kernel), Answer::Broken(_));
        let found = bisect::find(&mixture, is_bad);
        text.push_str(&cause_text(&found));
        text.push_str(&difference_text(&case, &mixture, &found, &good));
    }
    text.push_str(&format!("\nFound by case {seed} after {tried} cases.\n"));
    output::print_fit(&text)?;
    let bad = printable::line(&bad.identity).into_owned();
    Err(Failure::Failed(vec![format!("{bad} breaks {}", breach.property)]))
}

fn rayon_threads() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}
