// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin-hunt`: random scenarios against the twin.

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::time::{ClockId, clock_gettime};
use schedtwin_hunt::built_in::BuiltIn;
use schedtwin_hunt::check::{Outcome, check};
use schedtwin_hunt::cover::Cover;
use schedtwin_hunt::rules::Ruled;
use schedtwin_hunt::scenario::Texts;
use schedtwin_hunt::shrink::smaller;
use schedtwin_hunt::tape::Tape;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Tapes that are tried to make a finding smaller.
const SHRINK_ATTEMPTS: usize = 2_000;

/// No finding is worth more time.
const SHRINK_TIME: Duration = Duration::from_secs(60);

/// A scenario of so much CPU time hangs: the longest take seconds. Time of the wall would count what other programs take.
const HANGS_AFTER: Duration = Duration::from_secs(300);

/// Every so manieth seed also gives a scenario that is simple enough for rules of fairness.
const RULES_EVERY: u64 = 5;

/// How often the watchdog looks.
const LOOKS_EVERY: Duration = Duration::from_secs(10);

/// Random scenarios against the twin: none may panic, hang, or depend on how it is run.
#[derive(Parser)]
struct Arguments {
    /// The first seed; each scenario is a function of its seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many scenarios; 1 if nothing is said of a time
    #[arg(long)]
    count: Option<u64>,
    /// How long to hunt: 100s, 8h
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Scenarios at the same time
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Fail if an arm of a variation point, or a kind of scenario, was not reached
    #[arg(long)]
    complete: bool,
    /// Instead: every built-in machine, kernel and workload for 1 s, then with each patch, then again with other seeds; the seed
    /// is where to go on, and without a count or time it is one pass
    #[arg(long)]
    built_in: bool,
    /// Print the scenario instead of running it
    #[arg(long)]
    show: bool,
    /// Write findings, made smaller, into this folder
    #[arg(long, value_name = "FOLDER", default_value = "hunt/found")]
    keep: PathBuf,
    /// Run scenarios that were written down
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The findings of all threads.
#[derive(Default)]
struct Hunt {
    cover: Cover,
    ran: u64,
    events: u64,
    cut: u64,
    /// Scenarios that are simple enough for rules, and ran under them.
    ruled: u64,
    refused: BTreeMap<String, u64>,
    /// Number of the seeds that showed it, by finding.
    findings: BTreeMap<String, u64>,
}

fn main() -> ExitCode {
    let rusts_own = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !schedtwin_lab::crash::heard(panic) {
            rusts_own(panic);
        }
    }));
    let arguments = Arguments::parse();
    if !arguments.files.is_empty() {
        return again(&arguments.files);
    }
    if arguments.show {
        let texts = Texts::generate(&mut Tape::of_seed(arguments.seed));
        println!("{}\n{}\n{}", texts.kernel, texts.machine, texts.workload);
        return ExitCode::SUCCESS;
    }
    let built_in = arguments.built_in.then(BuiltIn::list);
    let whole = built_in.as_ref().map_or(1, BuiltIn::pass);
    let count = arguments.count.unwrap_or(if arguments.time.is_some() { u64::MAX } else { whole });
    let began = Instant::now();
    let hunt = Mutex::new(Hunt::default());
    let bar = bar((count < u64::MAX).then_some(count));
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| {
                loop {
                    // Whoever takes a number runs it, so none is left out when the time is over.
                    if arguments.time.is_some_and(|time| began.elapsed() >= time) {
                        break;
                    }
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let seed = arguments.seed.wrapping_add(number);
                    match &built_in {
                        Some(built_in) => one_built_in(built_in, seed, &arguments, &hunt),
                        None => one(seed, &arguments, &hunt),
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let hunt = hunt.into_inner().expect("nobody panics while adding");
    let tried = next.into_inner().min(count);
    report(&hunt, tried, &arguments, began.elapsed())
}

/// Runs scenarios that were written down.
fn again(files: &[PathBuf]) -> ExitCode {
    let mut good = true;
    for file in files {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let outcome = match Texts::read(file) {
            Ok(texts) => format!("{:?}", check(&texts, folder.path())),
            Err(error) => error,
        };
        good &= outcome.starts_with("Ran");
        let short: String = outcome.chars().take(300).collect();
        println!("{}: {short}", file.display());
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A bar on a terminal; nothing elsewhere. Without a length it counts.
fn bar(scenarios: Option<u64>) -> ProgressBar {
    let style = match scenarios {
        Some(_) => "{wide_bar} {pos} of {len} scenarios, {eta} left",
        None => "{pos} scenarios, {elapsed}",
    };
    let style = ProgressStyle::with_template(style).expect("the template is ours");
    let bar = scenarios.map_or_else(ProgressBar::no_length, ProgressBar::new);
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(2));
    bar.with_style(style)
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs one scenario under the eyes of a watchdog; `again` is the command that repeats it.
fn watched(again: &str, threads: usize, check: impl FnOnce() -> Outcome) -> Outcome {
    let (done, waits) = std::sync::mpsc::channel::<()>();
    // All threads share this clock.
    let over = cpu_time() + HANGS_AFTER * threads as u32;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while waits.recv_timeout(LOOKS_EVERY) == Err(RecvTimeoutError::Timeout) {
                if cpu_time() > over {
                    eprintln!("a scenario hangs; again: {again}");
                    std::process::exit(1);
                }
            }
        });
        let outcome = check();
        drop(done);
        outcome
    })
}

fn one(seed: u64, arguments: &Arguments, hunt: &Mutex<Hunt>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut tape = Tape::of_seed(seed);
    let texts = Texts::generate(&mut tape);
    let command = format!("cargo run -p schedtwin-hunt -- --seed {seed}");
    let outcome = watched(&command, arguments.threads, || check(&texts, folder.path()));
    let adding = || hunt.lock().expect("nobody panics while adding");
    if seed.is_multiple_of(RULES_EVERY) {
        let broken = Ruled::broken_by(seed, folder.path());
        adding().ruled += 1;
        if let Some(finding) = broken {
            adding().found(seed, &finding, &command);
        }
    }
    let finding = adding().add(seed, &outcome, tape.marks(), &command);
    if let Some((kind, finding)) = finding {
        let what = format!("{finding}\nFound by: {command}");
        write_down(&tape, &kind, &what, &arguments.keep, folder.path());
    }
}

fn one_built_in(built_in: &BuiltIn, seed: u64, arguments: &Arguments, hunt: &Mutex<Hunt>) {
    let adding = || hunt.lock().expect("nobody panics while adding");
    let Some(run) = built_in.run(seed.saturating_sub(1)) else {
        *adding().refused.entry("the kernel does not take the patch".to_string()).or_default() += 1;
        return;
    };
    let watch = format!("cargo run -p schedtwin-hunt -- --built-in --seed {seed} --count 1");
    let command = format!("{}; watched: {watch}", run.command());
    let outcome = watched(&command, arguments.threads, || run.check());
    adding().add(seed, &outcome, &[], &command);
}

impl Hunt {
    /// Adds how a scenario went. Returns the kind and the text of a finding that is the first of its kind.
    fn add(
        &mut self,
        seed: u64,
        outcome: &Outcome,
        marks: &[&'static str],
        again: &str,
    ) -> Option<(String, String)> {
        match outcome {
            Outcome::Ran(settings, events) => {
                self.ran += 1;
                self.events += events;
                self.cover.add(settings, marks);
            }
            Outcome::Cut => self.cut += 1,
            Outcome::Refused(why) => *self.refused.entry(why.clone()).or_default() += 1,
            Outcome::Finding(finding) => {
                let (kind, count) = self.found(seed, finding, again);
                return (count == 1).then(|| (kind, finding.clone()));
            }
        }
        None
    }

    /// Tells and counts a finding. Returns its kind, and how many of this kind there are.
    fn found(&mut self, seed: u64, finding: &str, again: &str) -> (String, u64) {
        println!("seed {seed}: {finding}\n  again: {again}");
        let kind = kind_of(finding);
        let count = self.findings.entry(kind.clone()).or_default();
        *count += 1;
        (kind, *count)
    }
}

/// The same bug says the same, but for its numbers.
fn kind_of(finding: &str) -> String {
    let mut kind = String::new();
    // What is compared differs from scenario to scenario: the place does not.
    let place = finding.rsplit_once(" (").map_or("", |(_, place)| place);
    let words: Vec<&str> = finding.lines().next().unwrap_or("").split_whitespace().collect();
    for word in words.iter().take(8).filter(|word| !word.contains(|c: char| c.is_ascii_digit())) {
        kind.push_str(word);
        kind.push(' ');
    }
    format!("{}({place}", kind.trim_end())
}

fn write_down(tape: &Tape, kind: &str, what: &str, keep: &Path, folder: &Path) {
    let began = Instant::now();
    let shows = |tape: &mut Tape| {
        if began.elapsed() > SHRINK_TIME {
            return false;
        }
        let texts = Texts::generate(tape);
        matches!(check(&texts, folder), Outcome::Finding(other) if kind_of(&other) == kind)
    };
    let small = smaller(tape.made().to_vec(), SHRINK_ATTEMPTS, shows);
    let texts = Texts::generate(&mut Tape::given(small));
    let name: String = kind
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let name: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = name.join("-").chars().take(80).collect();
    let path = keep.join(format!("{name}.toml"));
    match texts.write(&path, what) {
        Ok(()) => println!("  made smaller: {}", path.display()),
        Err(error) => eprintln!("failed to write {}: {error}", path.display()),
    }
}

fn report(hunt: &Hunt, tried: u64, arguments: &Arguments, took: Duration) -> ExitCode {
    let refused: u64 = hunt.refused.values().sum();
    if !arguments.built_in {
        println!("what scenarios that ran have:\n{}", hunt.cover.text());
    }
    let mut commonest: Vec<(&String, &u64)> = hunt.refused.iter().collect();
    commonest.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (why, count) in commonest.into_iter().take(12) {
        println!("  refused {count} times: {why}");
    }
    println!(
        "seeds {} to {}: {} scenarios ran {} ({} events each), {refused} were refused, {} were cut; {} more ran under rules; {} kinds of findings; {:.0} s",
        arguments.seed,
        arguments.seed.wrapping_add(tried).wrapping_sub(1),
        hunt.ran,
        if arguments.built_in { "watched" } else { "in every way" },
        hunt.events,
        hunt.cut,
        hunt.ruled,
        hunt.findings.len(),
        took.as_secs_f64()
    );
    for (kind, count) in &hunt.findings {
        println!("  {count} times: {kind}");
    }
    let missing = hunt.cover.missing();
    if arguments.complete {
        for what in &missing {
            println!("not reached: {what}");
        }
    }
    match hunt.findings.is_empty() && (!arguments.complete || missing.is_empty()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
