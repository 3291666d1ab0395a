// SPDX-License-Identifier: GPL-2.0-or-later
//! A sweep that gives its runs to settings that may still be on the front.
//!
//! 1. every setting runs [`FIRST_ROUND`] seeds
//! 2. a setting is out if some rival (of the same machine and workload) is better in both metrics of the front for certain: the 99.9 %
//!    interval of each paired difference leaves zero out
//! 3. the others run half as many seeds again, up to the sweep's; go to 2
//!
//! A setting that is on the front is better than each rival in one metric, so that both intervals have to be wrong in the same direction for
//! it to be thrown out: less than once in 2,000 looks at a rival.

use std::collections::BTreeSet;
use std::io;

use schedtwin_input::Diagnostics;
use schedtwin_types::metric::Better;

use super::Sweep;
use super::cache::Cache;
use super::journal::Journal;
use super::run::Run;
use crate::Progress;
use crate::report::axes;
use crate::selector::Selector;
use crate::stopping::certain_difference;

/// Seeds of every setting before the first is thrown out.
pub const FIRST_ROUND: u64 = 4;

impl Sweep {
    /// Runs of the first round of a race.
    pub fn first_round(&self) -> u64 {
        FIRST_ROUND.min(self.seeds) * self.settings.len() as u64
    }

    /// Races the settings for the front of two metrics; returns every run that was performed, in order. The caller has announced
    /// [`Sweep::first_round`].
    pub fn race(
        &self,
        front: &[Selector],
        cache: Option<&Cache>,
        progress: &Progress,
    ) -> io::Result<Result<Vec<Run>, Diagnostics>> {
        let mut journal = Journal::in_memory();
        let mut racing: BTreeSet<usize> = (0..self.settings.len()).collect();
        let (mut done, mut goal) = (0, FIRST_ROUND.min(self.seeds));
        loop {
            let numbers = racing.iter().flat_map(|setting| {
                let first = *setting as u64 * self.seeds;
                first + done..first + goal
            });
            journal = self.perform_these(numbers.collect(), journal, cache, progress)?;
            if goal == self.seeds || !progress.crashes().is_empty() {
                return Ok(Ok(journal.into_runs()));
            }
            let out = match self.surely_beaten(journal.runs(), front, &racing) {
                Ok(out) => out,
                Err(faults) => return Ok(Err(faults)),
            };
            racing.retain(|setting| !out.contains(setting));
            let next = (goal + goal.div_ceil(2)).min(self.seeds);
            progress.expect_runs((next - goal) * racing.len() as u64);
            (done, goal) = (goal, next);
        }
    }

    /// Those of some settings that one of them beats for certain in both metrics of the front.
    pub fn surely_beaten<'r>(
        &self,
        runs: impl Iterator<Item = &'r Run> + Clone,
        front: &[Selector],
        among: &BTreeSet<usize>,
    ) -> Result<BTreeSet<usize>, Diagnostics> {
        let rivals = self.rivals();
        let columns = axes(runs.clone(), front)?
            .map(|(title, better)| self.costs(runs.clone(), &title, better));
        let beaten = |setting: &usize| {
            let of = |rival: &usize| rival != setting && rivals[*rival] == rivals[*setting];
            let better =
                |rival: &usize| columns.iter().all(|c| surely_less(&c[*rival], &c[*setting]));
            among.iter().filter(|rival| of(rival)).any(better)
        };
        Ok(among.iter().copied().filter(beaten).collect())
    }

    /// By setting, the samples of a metric, turned so that less is better.
    fn costs<'r>(
        &self,
        runs: impl Iterator<Item = &'r Run>,
        title: &str,
        better: Better,
    ) -> Vec<Vec<Option<f64>>> {
        let mut costs: Vec<Vec<Option<f64>>> = vec![Vec::new(); self.settings.len()];
        let sign = if better == Better::Higher { -1.0 } else { 1.0 };
        for run in runs {
            costs[(run.number / self.seeds) as usize].push(run.value(title).map(|x| sign * x));
        }
        costs
    }
}

/// Whether the one is less than the other, by the 99.9 % interval of their paired difference.
fn surely_less(one: &[Option<f64>], other: &[Option<f64>]) -> bool {
    certain_difference(other, one).is_some_and(|[_, high]| high < 0.0)
}
