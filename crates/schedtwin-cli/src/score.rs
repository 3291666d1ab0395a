// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin score`: one number a candidate, and the rest as JSON.
//!
//! Each candidate with C runs in a confined process of its own, whose text goes nowhere: what is printed is this process's. The
//! baseline is measured here, where no C is loaded, so that a candidate cannot change what it is compared with.

use std::sync::Arc;

use schedtwin::{Error, Score as Scored, ScoreOptions};
use schedtwin_engine::confine;
use schedtwin_input::Diagnostics;
use schedtwin_lab::Progress;
use schedtwin_lab::score as lab;
use schedtwin_lab::sweep::cache::Cache;
use schedtwin_types::printable;

use crate::arguments::Score;
use crate::bar::Bar;
use crate::compare::{check_seeds, distinct, named_kernels, no_crashes, with_threads, write_page};
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
    let spelled = |kernel: &String| loaded.as_ref().map_or(kernel.clone(), |of| of.spelled(kernel));
    let spelled: Vec<String> = arguments.kernels.iter().map(spelled).collect();
    let kernels = named_kernels(&spelled, &mut faults);
    if let Some(loaded) = loaded.as_ref().filter(|_| !faults.is_empty()) {
        // Everything that is wrong is told at once.
        faults.absorb(lab::Prepared::of(loaded.clone()));
    }
    distinct(faults).into_result(())?;
    let loaded = loaded.expect("a suite that is none is a fault");
    if let Some(path) = &arguments.json {
        writable(path)?;
    }
    if let Some(folder) = &arguments.cache {
        Cache::open(folder).map_err(|error| Failure::of_file("keep runs in", folder, &error))?;
    }
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, arguments.quiet);
    let options = ScoreOptions {
        cache: arguments.cache.as_deref(),
        beat: arguments.beat,
        race: arguments.race,
        first_seed: arguments.seed,
        limit: arguments.limit.map(|limit| std::time::Duration::from_nanos(limit.ns())),
    };
    let given: Vec<_> = kernels.iter().map(|name| name.as_str().into()).collect();
    let scored =
        with_threads(arguments.threads, || schedtwin::score(loaded, &given, &options, &progress))?;
    drop(bar);
    let scored = scored.map_err(|error| match error {
        Error::Input(faults) => Failure::from(faults),
        error => Failure::bad(format!("failed to score: {error}")),
    })?;
    if let Some(lacks) = confine::lacks() {
        output::tell(&format!("warning: {lacks}"));
    }
    let page = match &arguments.json {
        Some(path) => write_page(path, schedtwin::score_document(&scored)),
        None => Ok(()),
    };
    if !arguments.quiet {
        let named = || kernels.iter().zip(&scored);
        named().for_each(|(name, of)| output::tell(&with_interval(name, of)));
        named().filter_map(|(name, of)| reason(name, of)).for_each(|line| output::tell(&line));
    }
    let numbers = scored.iter().map(|of| format!("{}\n", of.score)).collect::<String>();
    output::print(&numbers)?;
    page?;
    no_crashes(&progress)
}

/// `linux-6.12: 100.6 +-5.6`: what a score is good for.
fn with_interval(name: &str, of: &Scored) -> String {
    let name = printable::line(name);
    match of.half_width {
        Some(half) => format!("{name}: {:.1} +-{half:.1} (95 %)", of.score),
        None => format!("{name}: {}", of.score),
    }
}

/// Why a candidate ended early.
fn reason(name: &str, of: &Scored) -> Option<String> {
    let told = of.reason.as_ref()?;
    Some(format!("{}: {}", printable::line(name), printable::lines(told)))
}
