// SPDX-License-Identifier: GPL-2.0-or-later
//! Results as people and programs want them: text and markdown for mails, JSON and CSV for tools.
//!
//! Every form is a pure function of the result, and carries its provenance.

mod cells;
mod change;
mod compare_text;
mod csv;
#[cfg(test)]
pub(crate) mod example;
mod execution;
pub mod html;
mod json;
mod many;
mod markdown;
mod mmtests;
mod replay;
mod run_text;
mod score;
mod scoreboard;
mod sensitivity;
mod stability;
mod study;
mod study_json;
mod summary;
mod sweep;
#[cfg(test)]
mod tests;
mod tune;

pub use cells::{WIDTH, choose_metrics, choose_rows, number, signed, time, wrap};
pub(crate) use cells::{totals_of, value};
use schedtwin_engine::result::RunResult;
pub use score::{joined_scores, scores};
pub use sweep::{Point, Points, axes, columns as sweep_columns, points as sweep_points, sweep};
pub use tune::tuned;

use crate::Provenance;
use crate::compare::Comparison;
use crate::fail_if::Verdict;
use crate::replay::Replayed;
use crate::stopping::Iterations;
use crate::study::Study;
use crate::study::prepare::Setup;
use crate::study::reports::ledger::Ledger;
use crate::study::run::{Ran, Ready};
use crate::study::stability::Stability;

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A table of at most 100 columns in ASCII.
    Text,
    /// A table for web pages and READMEs.
    Markdown,
    /// Everything, for programs; see the schemas.
    Json,
    /// Everything, a line per metric and kernel.
    Csv,
}

/// How much a text or markdown table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The rows that a reader of a cover letter needs, about a dozen, see [`crate::select`].
    Headlines,
    /// The longer table: parts of the machine, and what explains the headlines.
    More,
    /// The longer table, with each of many parts where [`Extent::More`] sums them up.
    PerCpu,
    /// Every row that has a value.
    All,
    /// Every row that the result has: somebody named them, see [`crate::selector`].
    Chosen,
}

/// How a comparison's text table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The columns that it may take; one kernel beside the baseline may take more.
    pub width: usize,
    /// Each mean with the standard deviation over the seeds, instead of the interval of the difference.
    pub stddev: bool,
    /// As mmtests prints comparisons: a column a kernel under its name, values with their change in brackets.
    pub mmtests: bool,
}

impl Default for Layout {
    fn default() -> Layout {
        // Mails are read in terminals; wider lines get broken by quoting.
        Layout { width: cells::WIDTH, stddev: false, mmtests: false }
    }
}

/// What the report of a comparison says before its table: a text for each kernel but the first, the
/// gravest first. Kernels are called A, B, and so on.
pub fn conclusions(comparison: &Comparison) -> Vec<String> {
    summary::sentences(comparison, Extent::Headlines, cells::letter)
}

/// The report of a comparison.
pub fn comparison(comparison: &Comparison, format: Format, extent: Extent) -> String {
    comparison_in(comparison, format, extent, Layout::default())
}

/// The same, its text in a layout of the user's choice.
pub fn comparison_in(
    comparison: &Comparison,
    format: Format,
    extent: Extent,
    layout: Layout,
) -> String {
    match format {
        Format::Text if layout.mmtests => mmtests::render(comparison, extent, layout),
        Format::Text => compare_text::render(comparison, extent, layout),
        Format::Markdown => markdown::comparison(comparison, extent),
        Format::Json => json::comparison(comparison),
        Format::Csv => csv::comparison(comparison),
    }
}

/// The report of comparisons of the same kernels on several machines or under several workloads: one table of text or
/// Markdown. As JSON it is a list of the comparisons, as CSV the lines of all.
pub fn comparisons(all: &[Comparison], format: Format, extent: Extent, layout: Layout) -> String {
    match format {
        Format::Text => many::text(all, extent, layout),
        Format::Markdown => many::markdown(all, extent),
        Format::Json => {
            let each: Vec<String> = all.iter().map(json::comparison).collect();
            format!("[\n{}]\n", each.join(",\n"))
        }
        Format::Csv => {
            let mut text = String::new();
            for one in all.iter().map(csv::comparison) {
                let head =
                    if text.is_empty() { 0 } else { one.find('\n').map_or(0, |end| end + 1) };
                text.push_str(&one[head..]);
            }
            text
        }
    }
}

/// A comparison as JSON, with what became of the conditions that were asked of it.
pub fn judged_json(comparison: &Comparison, verdicts: &[(String, Verdict)]) -> String {
    json::judged(comparison, verdicts)
}

/// The report of a replay: of its comparison, with a section on fidelity.
pub fn replay(replayed: &Replayed, format: Format, extent: Extent) -> String {
    replay_in(replayed, format, extent, Layout::default())
}

/// The same, its text in a layout of the user's choice.
pub fn replay_in(replayed: &Replayed, format: Format, extent: Extent, layout: Layout) -> String {
    let simulated = |comparison: &Comparison| cells::duration_text(&comparison.provenance);
    let Replayed { comparison, fidelity } = replayed;
    match format {
        Format::Text => {
            let length = replay::length(fidelity, simulated(comparison));
            let section = replay::text(fidelity, extent, layout.width);
            let lead = fidelity.trust.lead();
            compare_text::render_with(comparison, extent, layout, Some(length), (&lead, &section))
        }
        Format::Markdown => {
            let length = replay::length(fidelity, simulated(comparison));
            let section = replay::markdown(fidelity, extent, markdown::escape);
            markdown::comparison_with(comparison, extent, Some(length), &section)
        }
        Format::Json => json::replay(comparison, replay::json(fidelity), &fidelity.trust),
        Format::Csv => csv::replay(comparison, fidelity),
    }
}

/// One run with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport<'a> {
    /// Where it comes from.
    pub provenance: &'a Provenance,
    /// The kernel as the user spelled it.
    pub kernel: &'a str,
    /// The seed.
    pub seed: u64,
    /// The measurements.
    pub result: &'a RunResult,
}

/// The report of a single run.
pub fn run(report: &RunReport, format: Format, extent: Extent) -> String {
    run_in(report, format, extent, cells::WIDTH)
}

/// The same, its text as wide as the user wants it.
pub fn run_in(report: &RunReport, format: Format, extent: Extent, width: usize) -> String {
    match format {
        Format::Text => run_text::render(report, extent, width),
        Format::Markdown => markdown::run(report, extent),
        Format::Json => json::run(report),
        Format::Csv => csv::run(report),
    }
}

/// Studies that ran, and those that cannot run yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Studies {
    /// Those that ran.
    pub ran: Vec<Ran>,
    /// Name of the others, and what each waits for.
    pub waiting: Vec<(String, Vec<String>)>,
}

/// The report of studies. They have no CSV: `json` has everything.
pub fn studies(studies: &Studies, format: Format) -> String {
    studies_in(studies, format, cells::WIDTH)
}

/// The same, its text as wide as the user wants it.
pub fn studies_in(studies: &Studies, format: Format, width: usize) -> String {
    match format {
        Format::Text => study::text(studies, width),
        Format::Markdown => study::markdown(studies),
        Format::Json | Format::Csv => study_json::studies(studies),
    }
}

/// Reports with their results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scoreboard {
    /// The reports.
    pub studies: Vec<Study>,
    /// The first results.
    pub first: Ledger,
    /// The present results.
    pub present: Ledger,
    /// Name of the reports that should run and cannot, and what each waits for.
    pub waiting: Vec<(String, Vec<String>)>,
}

/// The scoreboard of reports. As text it has the present results, else the first ones, too.
pub fn scoreboard(board: &Scoreboard, format: Format, width: usize) -> String {
    scoreboard::render(board, format, width)
}

/// On what the signs of studies depend: a table for each kernel that something is predicted of. JSON and CSV as
/// [`studies()`] have it.
pub fn sensitivity(studies: &Studies, format: Format, width: usize) -> String {
    match format {
        Format::Text => sensitivity::text(studies, width),
        Format::Markdown => sensitivity::markdown(studies),
        Format::Json | Format::Csv => study_json::studies(studies),
    }
}

/// A study that ran again and again.
pub struct Rerun<'a> {
    /// The study as it ran.
    pub ready: &'a Ready,
    /// How often.
    pub reruns: usize,
    /// Seeds of each rerun.
    pub iterations: Iterations,
    /// The first seed of the first one.
    pub first_seed: u64,
    /// The results.
    pub found: &'a [Stability],
}

/// How often verdicts come out the same. There is no Markdown and no CSV of it.
pub fn stability(rerun: &Rerun, format: Format) -> String {
    match format {
        Format::Text | Format::Markdown => stability::text(rerun),
        Format::Json | Format::Csv => stability::json(rerun),
    }
}

/// One of its rows.
pub fn stability_line(rerun: &Rerun, row: &Stability) -> String {
    stability::line(rerun, row)
}

/// A study as it stands in its file: what was published, and what would run.
pub fn study(study: &Study, setups: &[Setup], width: usize) -> String {
    study::show(study, setups, width)
}
