// SPDX-License-Identifier: GPL-2.0-or-later
//! Reports: small studies of what published changes did, scored in public.
//!
//! A **report** is a study whose file has a `[report]` table ([`Head`]): the kind of change, the
//! year, public addresses, and whether the twin can express it. Its file is committed before its
//! first run, nothing is fitted on it, and its first result stays for ever (docs/reports.md).
//!
//! | module | purpose |
//! |---|---|
//! | here | [`Head`]: the table `[report]`, and its reader |
//! | [`score`] | a published difference beside the twin's: sign, size, level |
//! | [`ledger`] | the first and the present results, as files |
//!
//! ```toml
//! [report]
//! kind = "preemption"
//! year = 2023
//! sources = ["https://git.kernel.org/torvalds/c/63304558ba5d"]
//! status = "runs"
//! unknown = ["the governor", "HZ"]
//! assumed = ["the performance governor"]
//! ```

pub mod ledger;
pub mod score;
#[cfg(test)]
mod tests;

use schedtwin_input::{Diagnostics, Located, TableReader, did_you_mean};

/// Seeds of a report whose file names no number.
pub const DEFAULT_SEEDS: u64 = 5;

/// The table `[report]` of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The kind of change.
    pub kind: Kind,
    /// The year of the publication.
    pub year: u64,
    /// Public addresses of what was published.
    pub sources: Vec<String>,
    /// Whether it can run.
    pub status: Status,
    /// Facts of the experiment that were not published.
    pub unknown: Vec<String>,
    /// The choices that were made in place of these, before any run.
    pub assumed: Vec<String>,
    /// Whether it was found and put aside unseen, to be run later.
    pub kept_aside: bool,
    /// Seeds of each kernel.
    pub seeds: u64,
}

/// Whether a report can run on the twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs, as it is or with a stated nearest machine or kernel.
    Runs,
    /// A rule, machine or workload is missing: which one.
    CannotBeExpressed(String),
    /// The twin does not model what changed, and must not answer: why.
    Refused(String),
}

/// The kind of change that a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Preemption and slices.
    Preemption,
    /// The CPU that a wakeup chooses.
    Placement,
    /// Load balancing.
    Balancing,
    /// Task groups and their limits.
    Groups,
    /// Caches and clusters.
    Caches,
    /// Energy-aware placement.
    Energy,
    /// Frequencies.
    Frequency,
    /// PELT and util_est.
    Signals,
    /// Idle states.
    Idle,
    /// Preemption of the kernel itself.
    PreemptionModel,
    /// Real-time and deadline tasks.
    RealTime,
    /// The tick.
    Tick,
    /// Schedulers of sched_ext, and core scheduling.
    SchedExt,
}

impl Kind {
    /// All of them, in the order of tables.
    pub const ALL: [Kind; 13] = [
        Kind::Preemption,
        Kind::Placement,
        Kind::Balancing,
        Kind::Groups,
        Kind::Caches,
        Kind::Energy,
        Kind::Frequency,
        Kind::Signals,
        Kind::Idle,
        Kind::PreemptionModel,
        Kind::RealTime,
        Kind::Tick,
        Kind::SchedExt,
    ];

    /// The word of files and of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Preemption => "preemption",
            Kind::Placement => "placement",
            Kind::Balancing => "balancing",
            Kind::Groups => "groups",
            Kind::Caches => "caches",
            Kind::Energy => "energy",
            Kind::Frequency => "frequency",
            Kind::Signals => "signals",
            Kind::Idle => "idle",
            Kind::PreemptionModel => "preemption-model",
            Kind::RealTime => "rt",
            Kind::Tick => "tick",
            Kind::SchedExt => "sched-ext",
        }
    }

    /// Finds the kind of a word; else says which there are.
    ///
    /// ```
    /// use schedtwin_lab::study::reports::Kind;
    /// assert_eq!(Kind::parse("rt"), Ok(Kind::RealTime));
    /// assert!(Kind::parse("idel").unwrap_err().contains("did you mean `idle`?"));
    /// ```
    pub fn parse(word: &str) -> Result<Kind, String> {
        let words = Kind::ALL.map(Kind::word);
        let found = Kind::ALL.into_iter().find(|kind| kind.word() == word);
        found.ok_or_else(|| match did_you_mean(word, words) {
            Some(near) => format!("there is no kind `{word}`: did you mean `{near}`?"),
            None => format!("there is no kind `{word}`: write one of {}", words.join(", ")),
        })
    }
}

impl Status {
    /// The word of files and tables.
    pub fn word(&self) -> &'static str {
        match self {
            Status::Runs => "runs",
            Status::CannotBeExpressed(_) => "cannot be expressed",
            Status::Refused(_) => "refused",
        }
    }

    /// The reason why it does not run.
    pub fn why(&self) -> Option<&str> {
        match self {
            Status::Runs => None,
            Status::CannotBeExpressed(why) | Status::Refused(why) => Some(why),
        }
    }
}

/// Reads the table `[report]`.
pub(super) fn head(mut table: TableReader, f: &mut Diagnostics) -> Option<Head> {
    let kind = table.required::<Located<String>>("kind", f).and_then(|word| {
        let kind = Kind::parse(&word.value);
        kind.map_err(|message| f.push_at(&word.at, message, None)).ok()
    });
    let year = table.required("year", f);
    let sources: Option<Vec<String>> = table.required("sources", f);
    let at = table.location_of("sources");
    if sources.as_ref().is_some_and(|all| !all.iter().any(|one| one.starts_with("https://"))) {
        f.push_at(&at, "a report names a public address: sources = [\"https://...\"]", None);
    }
    let status = status(&mut table, f);
    let unknown = table.optional("unknown", f).unwrap_or_default();
    let assumed = table.optional("assumed", f).unwrap_or_default();
    let kept_aside = table.optional("kept_aside", f).unwrap_or(false);
    let seeds: Option<Located<u64>> = table.optional("seeds", f);
    if let Some(seeds) = seeds.as_ref().filter(|seeds| !(2..=1000).contains(&seeds.value)) {
        f.push_at(&seeds.at, "`seeds` is 2 to 1000: an interval needs two runs", None);
    }
    table.finish(f);
    Some(Head {
        kind: kind?,
        year: year?,
        sources: sources?,
        status: status?,
        unknown,
        assumed,
        kept_aside,
        seeds: seeds.map_or(DEFAULT_SEEDS, |seeds| seeds.value),
    })
}

fn status(table: &mut TableReader, f: &mut Diagnostics) -> Option<Status> {
    let word: Located<String> = table.required("status", f)?;
    let why: Option<Located<String>> = table.optional("why", f);
    let make = match word.value.as_str() {
        "runs" => {
            if let Some(why) = why {
                f.push_at(&why.at, "`why` says why a report does not run: this one runs", None);
            }
            return Some(Status::Runs);
        }
        "cannot be expressed" => Status::CannotBeExpressed,
        "refused" => Status::Refused,
        _ => {
            let message = "a status is `runs`, `cannot be expressed` or `refused`";
            f.push_at(&word.at, message, None);
            return None;
        }
    };
    if why.is_none() {
        let message = format!("a report that is `{}` says `why`", word.value);
        f.push_at(&word.at, message, None);
    }
    Some(make(why?.value))
}
