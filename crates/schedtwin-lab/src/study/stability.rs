// SPDX-License-Identifier: GPL-2.0-or-later
//! Would another set of seeds give the same verdicts?
//!
//! A study is run again and again, each time with fresh seeds. A row whose verdict depends on which seeds
//! were drawn is not worth much; the share of the reruns that have the commonest verdict says how much.
//!
//! Only what verdicts need runs: rows with a prediction that can be judged, of them the predicted cells and their bases
//! ([`predictions`]); no variants. The reruns share no seed: each has as many of its own as it may take at most.

use std::io;

use schedtwin_input::{Diagnostics, did_you_mean};

use crate::Progress;
use crate::compare::Plan;
use crate::stopping::Iterations;
use crate::study::run::{Ready, published_difference};
use crate::study::verdict::Verdict;
use crate::study::{Role, Row, Study};

/// A predicted cell over all reruns.
#[derive(Clone, Debug, PartialEq)]
pub struct Stability {
    /// The study's row and its cell, by number: of the study that ran.
    pub cell: (usize, usize),
    /// How often each verdict was given, in the order of [`Verdict::ALL`].
    pub counts: [usize; Verdict::ALL.len()],
}

impl Stability {
    /// The commonest verdict, and its share of the reruns in percent.
    pub fn commonest(&self) -> (Verdict, f64) {
        let total: usize = self.counts.iter().sum();
        let mut best = 0;
        for (at, count) in self.counts.iter().enumerate() {
            if *count > self.counts[best] {
                best = at;
            }
        }
        (Verdict::ALL[best], 100.0 * self.counts[best] as f64 / total.max(1) as f64)
    }
}

/// The study with nothing but what its verdicts need; of the rows `ids` only, if there are any. An error if one does not
/// exist or is no prediction.
pub fn predictions(study: &Study, ids: &[String]) -> Result<Study, Diagnostics> {
    let judged = |row: &Row| -> Vec<usize> {
        let mut cells = Vec::new();
        for (at, cell) in row.cells.iter().enumerate() {
            let base = row.base_of(study, cell);
            if cell.role == Role::Patched && published_difference(row, base, cell).0.is_some() {
                cells.push(at);
                cells.extend(row.cells.iter().position(|other| Some(other) == base));
            }
        }
        cells
    };
    let mut faults = Diagnostics::new();
    let known: Vec<&str> = study
        .rows
        .iter()
        .filter(|row| !judged(row).is_empty())
        .map(|row| row.id.as_str())
        .collect();
    for id in ids.iter().filter(|id| !known.contains(&id.as_str())) {
        let near = did_you_mean(id, known.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known.join(", ")),
        };
        let message = format!("`{id}` is no row of {} with a prediction to judge", study.name);
        faults.push_whole(&study.source, message, Some(help));
    }
    faults.into_result(())?;
    let mut cut = study.clone();
    // Executions have no verdict that seeds could change.
    cut.executions.clear();
    cut.rows = study
        .rows
        .iter()
        .filter(|row| ids.is_empty() || ids.contains(&row.id))
        .filter_map(|row| {
            let wanted = judged(row);
            let cells = row.cells.iter().enumerate().filter(|(at, _)| wanted.contains(at));
            let cells: Vec<_> = cells.map(|(_, cell)| cell.clone()).collect();
            (!cells.is_empty()).then(|| Row { cells, ..row.clone() })
        })
        .collect();
    Ok(cut)
}

/// Runs the study `reruns` times with fresh seeds each, the first of all being `first_seed`. Announces its runs itself.
pub fn stability(
    ready: &Ready,
    reruns: usize,
    iterations: &Iterations,
    first_seed: u64,
    progress: &Progress,
) -> io::Result<Vec<Stability>> {
    let plan = |rerun: usize| Plan {
        first_seed: first_seed + (rerun * iterations.most()) as u64,
        iterations: iterations.clone(),
    };
    progress.expect_runs(reruns as u64 * ready.first_runs(&plan(0)));
    let mut all: Vec<Stability> = Vec::new();
    for rerun in 0..reruns {
        let ran = ready.run(&plan(rerun), progress)?;
        let predicted = ran
            .cells
            .iter()
            .filter(|cell| ran.study.rows[cell.row].cells[cell.cell].role == Role::Patched);
        for (at, found) in predicted.enumerate() {
            if rerun == 0 {
                let cell = (found.row, found.cell);
                all.push(Stability { cell, counts: [0; Verdict::ALL.len()] });
            }
            let verdict = Verdict::ALL.iter().position(|verdict| *verdict == found.verdict);
            all[at].counts[verdict.expect("all are listed")] += 1;
        }
    }
    Ok(all)
}
