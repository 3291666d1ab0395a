// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin score`: one number a candidate, and the rest as JSON.
//!
//! A candidate with C runs in a confined worker. The baseline is measured before that, in a process that never loads the C, so that a
//! candidate cannot change what it is compared with.

use std::sync::Arc;

use schedtwin_input::Diagnostics;
use schedtwin_lab::score::{self as lab, Baseline, Candidate, Conditions, Prepared, Scored, Suite};
use schedtwin_lab::sweep::cache::Cache;
use schedtwin_lab::{Progress, report};
use schedtwin_types::printable;

use crate::arguments::Score;
use crate::bar::Bar;
use crate::compare::{check_seeds, distinct, named_kernels, no_crashes, with_threads, write_page};
use crate::confine::confined;
use crate::failure::Failure;
use crate::list::names;
use crate::output;
use crate::run::writable;

pub fn score(arguments: &Score) -> Result<(), Failure> {
    if arguments.list {
        return output::print(&names(&lab::list(), ""));
    }
    let mut faults = Diagnostics::new();
    let suite = arguments.suite.as_deref().unwrap_or_default();
    let loaded = faults.absorb(lab::load(suite));
    if let (Some(seed), Some(loaded)) = (arguments.seed, &loaded) {
        check_seeds(seed, loaded.seeds)?;
    }
    let prepared = loaded.and_then(|loaded| {
        let first_seed = arguments.seed.unwrap_or(loaded.first_seed);
        faults.absorb(Prepared::of(Suite { first_seed, ..loaded }))
    });
    let kernels = named_kernels(&arguments.kernels, &mut faults);
    distinct(faults).into_result(())?;
    let prepared = prepared.expect("without a fault there is one");
    if let Some(path) = &arguments.json {
        writable(path)?;
    }
    let cache = arguments.cache.as_deref().map(|folder| {
        Cache::open(folder).map_err(|error| Failure::of_file("keep runs in", folder, &error))
    });
    let cache = cache.transpose()?;
    let candidates: Vec<Candidate> = kernels.iter().map(|name| Candidate::named(name)).collect();
    let has_c = candidates.iter().any(|of| of.kernel.as_ref().is_ok_and(|k| !k.code.is_empty()));
    if has_c && candidates.len() > 1 {
        return Err(Failure::bad(
            "a candidate with C has a process of its own, so that it cannot change what another one gets: give one at a \
             time; with --cache the baseline is run once",
        ));
    }
    let baseline = if has_c { Some(measured(&prepared, cache.as_ref())?) } else { None };
    match confined() {
        // Its C has ended the worker, or did not let it go on: the supervisor has said how.
        Err(Failure::Ended(code)) if code == BROKEN_OFF => {
            return broken_off(&prepared, &candidates, arguments);
        }
        outcome => outcome?,
    }
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, arguments.quiet);
    let conditions = Conditions {
        beat: arguments.beat,
        race: arguments.race,
        cache: cache.as_ref().filter(|_| !has_c),
        baseline: baseline.as_ref(),
    };
    let scored = with_threads(arguments.threads, || {
        lab::score(&prepared, &candidates, &conditions, &progress)
    })?;
    drop(bar);
    let scored = scored.map_err(|error| Failure::bad(format!("failed to score: {error}")))??;
    let page = match &arguments.json {
        Some(path) => write_page(path, report::scores(&prepared, &scored)),
        None => Ok(()),
    };
    if !arguments.quiet {
        scored.iter().for_each(|of| output::tell(&with_interval(of, &prepared)));
        scored.iter().filter_map(reason).for_each(|line| output::tell(&line));
    }
    output::print(&numbers(&scored))?;
    page?;
    no_crashes(&progress)
}

/// The exit code of a worker that did not come to its end, but for signals.
const BROKEN_OFF: u8 = 2;

/// Prints the worst score for candidates whose worker did not come to its end.
fn broken_off(
    prepared: &Prepared,
    candidates: &[Candidate],
    arguments: &Score,
) -> Result<(), Failure> {
    let why = "its C did not let a run come to its end";
    let ended = |of: &Candidate| Scored::ended(&of.name, prepared, why);
    let scored: Vec<Scored> = candidates.iter().map(ended).collect();
    if let Some(path) = &arguments.json {
        write_page(path, report::scores(prepared, &scored))?;
    }
    output::print(&numbers(&scored))
}

/// `linux-6.12: 100.6 +-5.6`: what a score is good for.
fn with_interval(of: &Scored, prepared: &Prepared) -> String {
    match of.half_width(prepared) {
        Some(half) => format!("{}: {:.1} +-{half:.1} (95 %)", of.kernel, of.score),
        None => format!("{}: {}", of.kernel, of.score),
    }
}

/// A line for each candidate.
fn numbers(scored: &[Scored]) -> String {
    scored.iter().map(|of| format!("{}\n", of.score)).collect()
}

/// The baseline's runs, without a thread of their own: the process has not been divided yet.
fn measured(prepared: &Prepared, cache: Option<&Cache>) -> Result<Baseline, Failure> {
    let runs = prepared.baseline_here(cache, &Progress::new());
    Ok(runs.map_err(|error| Failure::bad(format!("failed to score: {error}")))??)
}

/// Why a candidate ended early.
fn reason(of: &Scored) -> Option<String> {
    let told = report::score_told(of)?;
    Some(format!("{}: {told}", printable::line(&of.kernel)))
}
