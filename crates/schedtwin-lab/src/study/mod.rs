// SPDX-License-Identifier: GPL-2.0-or-later
//! Published experiments beside what the twin says of them.
//!
//! A **study** is a file (`studies/*.toml`, or one of the user's own): a machine, a workload, kernels as
//! columns and metrics as rows, with the number that was published in each cell. A cell of role `base` may
//! be calibrated on. A cell of role `patched` is what the twin has to predict; nothing that fits can reach
//! it (`crate::calibrate`).
//!
//! | module | purpose |
//! |---|---|
//! | here | [`Study`] and its parts |
//! | `read` | a study from its file, all faults at once |
//! | [`builtin`] | the studies that are compiled in |
//! | [`spec`] | `machine.KEY=VALUE`: settings put into the names of machines, kernels and workloads |
//! | [`prepare`] | the scenarios of a study, or what it waits for |
//! | [`run`] | runs them, and sets the published and the twin's numbers side by side |
//! | [`verdict`] | agree, direction, disagree, inconclusive: the rule |
//! | [`reports`] | small studies of published changes, with first and present results |
//! | [`execution`] | recordings of what a board did beside what the twin does |
//! | [`stability`] | would another set of seeds give the same verdicts? |

pub mod builtin;
pub mod execution;
pub mod power;
pub mod prepare;
pub(crate) mod read;
pub mod reports;
pub mod run;
pub mod spec;
pub mod stability;
#[cfg(test)]
mod tests;
pub mod verdict;

pub(crate) use read::base_cells;
pub use read::{load, read};
#[cfg(test)]
pub(crate) use tests::demo_text;

use std::sync::Arc;

use schedtwin_input::{Located, Source};

use crate::study::execution::judge::Executed;
use crate::study::spec::Assignment;

/// A published experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its file.
    pub source: Arc<Source>,
    /// Its name, e.g. `jankbench-pixel6`.
    pub name: String,
    /// The description of the study, in one line.
    pub description: String,
    /// Where and when it was published.
    pub published: String,
    /// The set-up in words, and what is doubtful in the published numbers.
    pub about: String,
    /// The machine, as on the command line.
    pub machine: String,
    /// The workload, as on the command line.
    pub workload: String,
    /// How long a run simulates; `None` where the workload decides.
    pub duration_ns: Option<u64>,
    /// The changes of the set-up to machine, kernels and workload, in every column.
    pub settings: Vec<Explained>,
    /// The kernels.
    pub columns: Vec<Column>,
    /// The metrics.
    pub rows: Vec<Row>,
    /// Recordings beside which the twin is set.
    pub executions: Vec<Executed>,
    /// The parameters that may be calibrated.
    pub fits: Vec<Fit>,
    /// Variants of the set-up, on which the signs shall not depend.
    pub variants: Vec<Variant>,
    /// The head of a report; other studies have none.
    pub report: Option<reports::Head>,
}

/// A setting with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The setting.
    pub set: Assignment,
    /// Why.
    pub why: String,
}

/// A kernel of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// As the publication has it, in our spelling; the column's identity.
    pub kernel: String,
    /// As the twin runs it, where that is spelled otherwise.
    pub run_as: Option<String>,
    /// The column that it is compared with; `None`: the first base column that the row has.
    pub against: Option<String>,
}

/// A metric of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where it stands in the publication, e.g. `S1.2`.
    pub id: String,
    /// The metric, in the names of the measurements.
    pub metric: String,
    /// The stat; `diff_pct` where only a difference in percent was published.
    pub stat: String,
    /// The labels that the metric is restricted to.
    pub labels: Vec<(String, String)>,
    /// The unit of the published values.
    pub unit: String,
    /// `higher`, `lower` or `none`.
    pub better: Direction,
    /// Which of several measurements of the same it is: a pass, a condition.
    pub occasion: Option<String>,
    /// Machine of this row, where it is another.
    pub machine: Option<String>,
    /// Workload of this row, where it is another.
    pub workload: Option<String>,
    /// Settings of this row alone.
    pub settings: Vec<Assignment>,
    /// The twin's metric, where it has another name: `power.mean`, `latency.p50{task=ui}`.
    pub twin: Option<Selector>,
    /// How the values of several runs become one.
    pub over_runs: OverRuns,
    /// Noise of the row in its unit, for cells without one of their own.
    pub noise: Option<Noise>,
    /// The input of ours that uses the base values, where that is not a calibration: then they are
    /// no checks.
    pub used_by: Option<String>,
    /// The doubtful points of the row.
    pub note: Option<String>,
    /// The published cells.
    pub cells: Vec<Cell>,
}

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It describes.
    None,
}

/// How a publication made one number of many runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverRuns {
    /// The arithmetic mean.
    Mean,
    /// The geometric mean.
    Gmean,
}

/// How well a published number is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// Half-width, in the unit of the row.
    pub half_width: f64,
    /// Why it is assumed; `None` where it was published.
    pub assumed: Option<String>,
}

/// A published number.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Of which column, by number.
    pub column: usize,
    /// May it be calibrated on?
    pub role: Role,
    /// The published content.
    pub published: Published,
    /// Its own half-width where published: in the unit of the row, of a `diff_pct` in points.
    pub noise: Option<f64>,
    /// Where it stands in the file.
    pub at: schedtwin_input::Location,
}

/// Whether a number may be calibrated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A measurement of a base kernel.
    Base,
    /// A result that the twin has to predict.
    Patched,
}

/// The content of a published cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// A number.
    Value(f64),
    /// Only the difference to the base, in percent.
    DiffPct(f64),
    /// Words.
    Text(String),
}

/// `NAME[.STAT][{LABEL=VALUE,...}]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The metric.
    pub name: String,
    /// The stat, where it is given.
    pub stat: Option<String>,
    /// The labels: all of them.
    pub labels: Vec<(String, String)>,
}

/// A parameter that may be fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// `machine.KEY`, `kernel.KEY` or `workload.KEY`.
    pub parameter: Located<String>,
    /// The least and the greatest value that physics allows; of choices the numbers of the first and the last.
    pub bounds: [f64; 2],
    /// What it may be, if it is no number: the search then sees numbers of choices.
    pub choices: Vec<String>,
    /// Where the search begins.
    pub start: f64,
    /// Whether it takes whole numbers only.
    pub whole: bool,
    /// The base cells that it is fitted on: ids of rows, `ID` or `ID KERNEL`.
    pub fitted_on: Vec<Located<String>>,
    /// Why it may be fitted, and where the bounds come from.
    pub why: String,
}

/// A point that was unknown when the study was set up: another plausible set-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The settings that make it.
    pub settings: Vec<Assignment>,
    /// Why this is plausible, or asked.
    pub why: String,
    /// Which base value says that it was not so: then it is shown, and no sign has to hold in it.
    pub ruled_out: Option<String>,
}

impl Study {
    /// Returns what was published of base kernels: nothing that is to be predicted, and no words on it.
    pub fn base_only(&self) -> Study {
        let is_base = |row: usize, cell: usize| {
            let cell = &self.rows[row].cells[cell];
            cell.role == Role::Base && matches!(cell.published, Published::Value(_))
        };
        Study {
            about: String::new(),
            executions: Vec::new(),
            variants: Vec::new(),
            ..self.with_cells(is_base)
        }
    }

    /// Returns the study with some of its cells, by row and number, and with the rows and columns that have one.
    pub(crate) fn with_cells(&self, keep: impl Fn(usize, usize) -> bool) -> Study {
        let mut columns: Vec<Column> = Vec::new();
        let mut rows = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut cells = Vec::new();
            for (_, cell) in row.cells.iter().enumerate().filter(|(at, _)| keep(number, *at)) {
                let of = &self.columns[cell.column];
                let known = columns.iter().position(|column| column.kernel == of.kernel);
                let column = known.unwrap_or_else(|| {
                    columns.push(of.clone());
                    columns.len() - 1
                });
                cells.push(Cell { column, ..cell.clone() });
            }
            if !cells.is_empty() {
                rows.push(Row { cells, ..row.clone() });
            }
        }
        Study { columns, rows, ..self.clone() }
    }
}

impl Row {
    /// The machine of this row.
    pub fn machine<'a>(&'a self, study: &'a Study) -> &'a str {
        self.machine.as_deref().unwrap_or(&study.machine)
    }

    /// The workload of this row.
    pub fn workload<'a>(&'a self, study: &'a Study) -> &'a str {
        self.workload.as_deref().unwrap_or(&study.workload)
    }

    /// The cell that `cell` is compared with; `None` for a base cell, and where none was published.
    pub fn base_of<'a>(&'a self, study: &Study, cell: &Cell) -> Option<&'a Cell> {
        if cell.role == Role::Base {
            return None;
        }
        let against = study.columns[cell.column].against.as_deref();
        self.cells.iter().find(|base| {
            base.role == Role::Base
                && against.is_none_or(|against| study.columns[base.column].kernel == against)
        })
    }

    /// The half-width of a cell: its own, else that of the row.
    pub fn noise_of(&self, cell: &Cell) -> Option<Noise> {
        let own = cell.noise.map(|half_width| Noise { half_width, assumed: None });
        own.or_else(|| self.noise.clone())
    }

    /// `metric stat key=value`, and which occasion.
    pub fn title(&self) -> String {
        let mut title = format!("{} {}", self.metric, self.stat);
        for (key, value) in &self.labels {
            title.push_str(&format!(" {key}={value}"));
        }
        if let Some(occasion) = &self.occasion {
            title.push_str(&format!(" ({occasion})"));
        }
        title
    }
}

impl Role {
    /// As files spell it.
    pub fn word(self) -> &'static str {
        match self {
            Role::Base => "base",
            Role::Patched => "patched",
        }
    }
}
