// SPDX-License-Identifier: GPL-2.0-or-later
//! The score of reports: of the differences that a publication is sure of, how many the twin gets.
//!
//! The rule, as docs/reports.md states it and as it was committed before the first run:
//!
//! 1. A published difference is *sure* if it exceeds its noise; where no noise is known, if it is at
//!    least [`SURE_WITHOUT_NOISE_PCT`] percent. Others are *open*, and count apart.
//! 2. *Sign right*: the interval of the twin's difference leaves out zero and has the published sign.
//!    *Within ×2*: besides, it is 0.5 to 2 times the published one. *Wrong*: the other sign, or no effect
//!    although half of the published one would have been seen. These are [`verdict::judge`]'s `agree`,
//!    `direction` and `disagree`; no second rule decides.
//! 3. An open difference is *met* if the twin has nothing beyond the noise, either (`agree`).
//! 4. *Level*: a base value of the twin within [`LEVEL_PCT`] percent of the published one.
//!
//! [`verdict::judge`]: crate::study::verdict::judge

use schedtwin_engine::MODEL_VERSION;

use super::ledger::{Entry, Ledger};
use super::{Kind, Status};
use crate::study::run::{Beside, Ran, published_difference};
use crate::study::verdict::Verdict;
use crate::study::{Cell, Published, Role, Row, Study};

/// A difference without a known noise is sure from this size on, %.
pub const SURE_WITHOUT_NOISE_PCT: f64 = 5.0;

/// A base value is at the published level if it is not further off than this, %.
pub const LEVEL_PCT: f64 = 25.0;

/// A published difference of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim<'a> {
    /// The report.
    pub study: &'a Study,
    /// Its row.
    pub row: &'a Row,
    /// The cell of the changed kernel.
    pub cell: &'a Cell,
    /// The published difference, in percent of the base.
    pub published_pct: f64,
    /// Its noise.
    pub noise_pct: Option<f64>,
}

impl Claim<'_> {
    /// Whether the publication itself is sure of the difference.
    pub fn is_sure(&self) -> bool {
        match self.noise_pct {
            Some(noise) => self.published_pct.abs() > noise,
            None => self.published_pct.abs() >= SURE_WITHOUT_NOISE_PCT,
        }
    }

    /// The kernel of the cell.
    pub fn kernel(&self) -> &str {
        &self.study.columns[self.cell.column].kernel
    }

    /// The kernel that it is compared with.
    pub fn base(&self) -> Option<&str> {
        let base = self.row.base_of(self.study, self.cell)?;
        Some(&self.study.columns[base.column].kernel)
    }

    /// The twin's result.
    pub fn result<'l>(&self, ledger: &'l Ledger) -> Option<&'l Entry> {
        ledger.find(&self.study.name, &self.row.id, self.kernel())
    }

    /// The twin's base value divided by the published one, if it is of the same day as the result.
    pub fn level(&self, ledger: &Ledger) -> Option<f64> {
        let day = &self.result(ledger)?.date;
        let base = ledger.find(&self.study.name, &self.row.id, self.base()?)?;
        base.level.filter(|_| base.date == *day)
    }

    /// The words of a verdict on it.
    pub fn outcome(&self, verdict: Verdict) -> &'static str {
        match (self.is_sure(), verdict) {
            (_, Verdict::Base) => "base",
            (_, Verdict::Inconclusive) => "inconclusive",
            (true, Verdict::Agree) => "within x2",
            (true, Verdict::Direction) => "sign right",
            (true, Verdict::Disagree) => "wrong",
            (false, Verdict::Agree) => "open, met",
            (false, Verdict::Direction | Verdict::Disagree) => "open, not met",
        }
    }
}

/// The published differences of a report: cells of words are none.
pub fn claims(study: &Study) -> Vec<Claim<'_>> {
    study.rows.iter().flat_map(|row| claims_of(study, row)).collect()
}

/// Those of one of its rows.
pub fn claims_of<'a>(study: &'a Study, row: &'a Row) -> impl Iterator<Item = Claim<'a>> {
    let changed = row.cells.iter().filter(|cell| cell.role == Role::Patched);
    changed.filter_map(move |cell| {
        let (published_pct, noise_pct) = published_difference(row, row.base_of(study, cell), cell);
        Some(Claim { study, row, cell, published_pct: published_pct?, noise_pct })
    })
}

/// The results of a report that ran, a line for each cell that has one.
pub fn entries(ran: &Ran, date: &str) -> Vec<Entry> {
    ran.cells.iter().filter_map(|beside| entry(ran, beside, date)).collect()
}

fn entry(ran: &Ran, beside: &Beside, date: &str) -> Option<Entry> {
    let row = &ran.study.rows[beside.row];
    let cell = &row.cells[beside.cell];
    let level = || match cell.published {
        Published::Value(value) if value != 0.0 => Some(beside.twin?.mean / value),
        _ => None,
    };
    let difference = beside.difference.as_ref();
    let (diff_pct, half_pct, level) = match cell.role {
        Role::Base => (None, None, Some(level()?)),
        Role::Patched => {
            let half = |[low, high]: [f64; 2]| (high - low) / 2.0;
            (Some(difference?.diff_pct?), difference?.ci95_pct.map(half), None)
        }
    };
    Some(Entry {
        report: ran.study.name.clone(),
        row: row.id.clone(),
        kernel: ran.study.columns[cell.column].kernel.clone(),
        date: date.to_string(),
        model: MODEL_VERSION.to_string(),
        seeds: ran.seeds.len(),
        diff_pct,
        half_pct,
        level,
        verdict: beside.verdict,
        note: String::new(),
    })
}

/// How many differences of reports there are, and how many of them the twin gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Reports.
    pub reports: usize,
    /// Those that run.
    pub runnable: usize,
    /// Those that are refused with a reason.
    pub refused: usize,
    /// Sure differences of reports that have results.
    pub sure: usize,
    /// Of these: the sign is right.
    pub sign: usize,
    /// Of these: within a factor of two as well.
    pub size: usize,
    /// Of the sure ones: another sign, or no effect.
    pub wrong: usize,
    /// Of the sure ones: it cannot be told.
    pub inconclusive: usize,
    /// Open differences that have results.
    pub open: usize,
    /// Of these: the twin has nothing beyond the noise, either.
    pub open_met: usize,
    /// Base values that have results.
    pub levels: usize,
    /// Of these: at the published level.
    pub levels_met: usize,
}

impl Tally {
    /// Counts reports with their results.
    pub fn of<'a>(studies: impl IntoIterator<Item = &'a Study>, ledger: &Ledger) -> Tally {
        let mut tally = Tally::default();
        for study in studies {
            let status = study.report.as_ref().map(|head| &head.status);
            tally.reports += 1;
            tally.runnable += (status == Some(&Status::Runs)) as usize;
            tally.refused += matches!(status, Some(Status::Refused(_))) as usize;
            for claim in claims(study) {
                if let Some(entry) = claim.result(ledger) {
                    tally.add(claim.is_sure(), entry.verdict);
                }
            }
            let of_study = ledger.entries.iter().filter(|entry| entry.report == study.name);
            let levels: Vec<f64> = of_study.filter_map(|entry| entry.level).collect();
            tally.levels += levels.len();
            tally.levels_met += levels.iter().filter(|level| is_level(**level)).count();
        }
        tally
    }

    fn add(&mut self, sure: bool, verdict: Verdict) {
        if !sure {
            self.open += 1;
            self.open_met += (verdict == Verdict::Agree) as usize;
            return;
        }
        self.sure += 1;
        self.sign += matches!(verdict, Verdict::Agree | Verdict::Direction) as usize;
        self.size += (verdict == Verdict::Agree) as usize;
        self.wrong += (verdict == Verdict::Disagree) as usize;
        self.inconclusive += (verdict == Verdict::Inconclusive) as usize;
    }
}

/// Whether a ratio to a published value is within [`LEVEL_PCT`].
pub fn is_level(ratio: f64) -> bool {
    100.0 * (ratio - 1.0).abs() <= LEVEL_PCT
}

/// The reports by kind, in the order of [`Kind::ALL`]; kinds without reports are left out.
pub fn by_kind<'a>(studies: &[&'a Study]) -> Vec<(String, Vec<&'a Study>)> {
    let of = |kind: Kind| {
        let is = |study: &&&'a Study| study.report.as_ref().is_some_and(|head| head.kind == kind);
        (kind.word().to_string(), studies.iter().filter(is).copied().collect::<Vec<_>>())
    };
    Kind::ALL.into_iter().map(of).filter(|(_, of)| !of.is_empty()).collect()
}

/// The reports by year, the oldest first.
pub fn by_year<'a>(studies: &[&'a Study]) -> Vec<(String, Vec<&'a Study>)> {
    let year = |study: &Study| study.report.as_ref().map_or(0, |head| head.year);
    let mut years: Vec<u64> = studies.iter().map(|study| year(study)).collect();
    years.sort();
    years.dedup();
    let of = |wanted: u64| {
        let of_year = studies.iter().filter(|study| year(study) == wanted);
        (wanted.to_string(), of_year.copied().collect())
    };
    years.into_iter().map(of).collect()
}
