//! Would another set of seeds give the same verdicts?
//!
//! A study is run again and again, each time with fresh seeds. A row whose verdict depends on which seeds
//! were drawn is not worth much; the share of the reruns that have the commonest verdict says how much.

use std::io;

use crate::Progress;
use crate::compare::{Iterations, Plan};
use crate::study::Role;
use crate::study::run::Ready;
use crate::study::verdict::Verdict;

/// A predicted cell over all reruns.
#[derive(Clone, Debug, PartialEq)]
pub struct Stability {
    /// The study's row and its cell, by number.
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

/// Runs the study `reruns` times with `n` fresh seeds each. Announces its runs itself.
pub fn stability(
    ready: &Ready,
    reruns: usize,
    n: usize,
    first_seed: u64,
    progress: &Progress,
) -> io::Result<Vec<Stability>> {
    let plan = |rerun: usize| Plan {
        first_seed: first_seed + (rerun * n) as u64,
        iterations: Iterations::Fixed(n),
    };
    progress.expect_runs(reruns as u64 * ready.first_runs(plan(0)));
    let mut all: Vec<Stability> = Vec::new();
    for rerun in 0..reruns {
        let ran = ready.run(plan(rerun), progress)?;
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
