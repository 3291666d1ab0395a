// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin sweep`: many settings, a line a run; `schedtwin merge`: shards of one as a whole.

use std::path::Path;
use std::sync::Arc;

use schedtwin_input::Diagnostics;
use schedtwin_lab::given::Given;
use schedtwin_lab::selector::Selector;
use schedtwin_lab::sweep::cache::Cache;
use schedtwin_lab::sweep::journal::{self, Journal};
use schedtwin_lab::sweep::part::{self, Form, Format, Part};
use schedtwin_lab::sweep::run::{KnownColumns, Run};
use schedtwin_lab::sweep::{self as lab, Shard, SweepSpec};
use schedtwin_lab::{Progress, report};
use schedtwin_types::Duration;
use schedtwin_types::printable;

use crate::arguments::{Merge, Sweep};
use crate::bar::Bar;
use crate::bounded;
use crate::compare::{check_seeds, distinct, no_crashes, with_threads, write_file, write_page};
use crate::confine::{appends, confined};
use crate::failure::{Failure, warn_of};
use crate::interrupt;
use crate::output;
use crate::run::writable;

/// The largest part that is read: a million runs with hundreds of metrics each.
const MOST_BYTES: u64 = 4 << 30;

pub fn sweep(arguments: Sweep) -> Result<(), Failure> {
    check_seeds(arguments.seed, arguments.iterations)?;
    let mut faults = Diagnostics::new();
    let shown: Vec<Vec<Selector>> = arguments
        .metrics
        .iter()
        .filter_map(|text| faults.absorb(Selector::parse_list(text)))
        .collect();
    let front = arguments.front.as_ref().map(|text| Selector::parse_list(text));
    let front = front.and_then(|list| faults.absorb(list)).unwrap_or_default();
    let spec = SweepSpec::new(
        &given(&arguments.machines),
        &given(&arguments.kernels),
        &given(&arguments.workloads),
        arguments.duration.map(Duration::ns),
        (arguments.seed, arguments.iterations),
    );
    let swept = faults.absorb(spec.and_then(|spec| lab::Sweep::of(&spec)));
    distinct(faults).into_result(())?;
    let swept = swept.expect("without a fault there is one");
    warn_of(swept.scenarios());
    if arguments.front.is_some() && front.len() != 2 {
        return Err(Failure::bad(format!(
            "--front takes two metrics and was given {}: as power,wakeup_latency.p99",
            front.len()
        )));
    }
    if arguments.html.is_some() && arguments.html == arguments.output {
        return Err(Failure::bad("--html names the same file as --output"));
    }
    if let Some(path) = &arguments.html {
        writable(path)?;
        interrupt::guard(path);
    }
    if arguments.cache.is_some() && swept.has_foreign_code() && !arguments.quiet {
        output::tell("a sweep with the C of a tree keeps no runs: --cache is not used");
    }
    let cache = arguments.cache.as_deref().filter(|_| !swept.has_foreign_code());
    let cache = cache.map(|folder| {
        Cache::open(folder).map_err(|error| Failure::of_file("keep runs in", folder, &error))
    });
    let cache = cache.transpose()?;
    let shard = arguments.shard.unwrap_or(Shard::WHOLE);
    let written = match &arguments.output {
        Some(path) => {
            writable(path)?;
            Some((path, format(path)?))
        }
        None => None,
    };
    let known = arguments.from.as_deref().map(|path| runs_in(path, &swept)).transpose()?;
    let journal = match written {
        Some((path, _)) if !arguments.race => {
            appends(&journal::journal_of(path));
            open_journal(path, &swept, shard)?
        }
        _ => Journal::of(known.unwrap_or_default()),
    };
    confined()?;
    if arguments.race {
        return race(&arguments, &swept, &shown.concat(), &front, cache.as_ref());
    }
    let (all, done) = (swept.runs_of(shard), journal.len());
    if done > 0 && !arguments.quiet {
        output::tell(&format!("{done} of {all} runs are done already"));
    }
    let progress = Arc::new(Progress::new());
    progress.expect_runs(all - done);
    let bar = Bar::watch(&progress, arguments.quiet);
    let performed = with_threads(arguments.threads, || {
        swept.perform(shard, journal, cache.as_ref(), &progress)
    })?;
    drop(bar);
    let runs = performed.map_err(|error| Failure::bad(format!("failed to sweep: {error}")))?;
    // A run that panicked is not kept: the output waits for it.
    no_crashes(&progress)?;
    let shown: Vec<Selector> = shown.concat();
    let text = match arguments.shard {
        Some(_) => Ok(format!("{all} of {} runs\n", swept.runs())),
        None => report::sweep(&swept, &runs, &shown, &front).map_err(Failure::from),
    };
    let page = match &arguments.html {
        Some(path) => report::html::sweep(&swept, &runs, &shown, &front)
            .map_err(Failure::from)
            .and_then(|page| write_page(path, &page)),
        None => Ok(()),
    };
    if let Some((path, format)) = written {
        let mut runs = runs;
        if !shown.is_empty() {
            let columns = report::sweep_columns(&runs, &shown)?;
            let mut known = KnownColumns::default();
            for run in &mut runs {
                run.keep(&columns);
                known.share(run);
            }
        }
        let form = if arguments.wide { Form::Wide } else { Form::Long };
        write_file(path, |file| part::write(&swept, shard, runs, (form, format), file))?;
        Journal::remove(path);
    }
    output::print(&text?)?;
    page
}

/// `--race`: the same table of fewer runs.
fn race(
    arguments: &Sweep,
    swept: &lab::Sweep,
    shown: &[Selector],
    front: &[Selector],
    cache: Option<&Cache>,
) -> Result<(), Failure> {
    let progress = Arc::new(Progress::new());
    progress.expect_runs(swept.first_round());
    let bar = Bar::watch(&progress, arguments.quiet);
    let raced = with_threads(arguments.threads, || swept.race(front, cache, &progress))?;
    drop(bar);
    let raced = raced.map_err(|error| Failure::bad(format!("failed to sweep: {error}")))?;
    no_crashes(&progress)?;
    let runs = raced?;
    if let Some(path) = &arguments.html {
        write_page(path, report::html::sweep(swept, &runs, shown, front)?)?;
    }
    output::print(&report::sweep(swept, &runs, shown, front)?)
}

fn given<T>(names: &[String]) -> Vec<Given<T>> {
    names.iter().cloned().map(Given::Named).collect()
}

fn open_journal(path: &Path, swept: &lab::Sweep, shard: Shard) -> Result<Journal, Failure> {
    let head = format!("{} {shard:?}", printable::line(&swept.head().join(" ")));
    Journal::open(path, &head).map_err(|error| Failure::of_file("keep runs beside", path, &error))
}

/// The format that the name of a file asks for.
fn format(path: &Path) -> Result<Format, Failure> {
    Format::of(path).map_err(|message| Failure::bad(format!("{}: {message}", output::shown(path))))
}

/// A file that a sweep or merge has written.
fn read(path: &Path) -> Result<Part, Failure> {
    let failed = |error| Failure::of_file("read", path, &error);
    let name = output::shown(path);
    let part = Part::read(bounded::read(path, MOST_BYTES).map_err(failed)?, format(path)?);
    part.map_err(|message| Failure::bad(format!("{name}: {message}")))
}

/// `--from`: the runs of a file of this sweep.
fn runs_in(path: &Path, swept: &lab::Sweep) -> Result<Vec<Run>, Failure> {
    let runs = read(path)?.runs_of(swept);
    runs.map_err(|message| Failure::bad(format!("{}: {message}", output::shown(path))))
}

pub fn merge(arguments: &Merge) -> Result<(), Failure> {
    let whole_format = format(&arguments.output)?;
    writable(&arguments.output)?;
    let mut parts = Vec::new();
    for path in &arguments.parts {
        parts.push((output::shown(path), read(path)?));
    }
    let whole = part::merge(parts).map_err(Failure::bad)?;
    write_file(&arguments.output, |file| whole.write(None, whole_format, file))
}
