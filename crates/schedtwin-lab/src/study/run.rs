// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs a study: the published and the twin's numbers side by side.
//!
//! 1. rows that share machine, workload and settings are one setup; all its kernels run all seeds, paired
//! 2. a cell's value is the mean (or the geometric mean, where the publication has it) over the seeds; its
//!    difference is paired with the column that it is compared with
//! 3. every variant of the study does the same with at most [`VARIANT_SEEDS`] seeds. A sign counts where the 95 % interval
//!    leaves out zero. A difference is **robust** if its own sign counts, and the mean has it in every variant; it is not if a
//!    variant has the other one and that counts; else, and if a variant cannot run, nobody knows
//! 4. [`crate::study::verdict`] judges
//!
//! A base value that no parameter was fitted on is a **check**: nothing made it agree.

use std::io;

use schedtwin_engine::MODEL_VERSION;
use schedtwin_types::metric::Kind;

use crate::compare::{Cell as Judged, ComparedRow, Plan, sample};
use crate::crash::Crash;
use crate::measured;
use crate::stats::{self, Difference, Estimate};
use crate::stopping::{Iterations, Look, worst, worst_primary};
use crate::study::execution::judge::{self, Subject};
use crate::study::prepare::{Registry, Setup, setups};
use crate::study::reports::Status;
use crate::study::reports::score::{Claim, claims_of};
use crate::study::spec::Assignment;
use crate::study::verdict::{self, TwinDiff, Verdict};
use crate::study::{Cell, Noise, OverRuns, Published, Role, Row, Selector, Study, base_cells};
use crate::twin;
use crate::{Progress, Provenance};

/// Seeds of a variant: its signs are wanted, not its widths.
pub const VARIANT_SEEDS: usize = 10;

/// A parameter that was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// The setting.
    pub set: Assignment,
    /// The base cells that it was fitted on, as `ID KERNEL`.
    pub fitted_on: Vec<String>,
    /// The doubtful points of its value.
    pub warnings: Vec<String>,
    /// The values that the twin had when the parameter was fitted.
    pub then: Then,
}

/// The values of a fit: what the same twin has again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Then {
    /// Seeds of each value, from 1.
    pub seeds: usize,
    /// By base cell, as `ID KERNEL`: the twin's mean, in the unit of the row.
    pub values: Vec<(String, f64)>,
}

impl Calibrated {
    /// A setting, nothing said of where it comes from.
    pub fn plain(set: Assignment) -> Calibrated {
        Calibrated { set, fitted_on: Vec::new(), warnings: Vec::new(), then: Then::default() }
    }
}

/// A cell of a study beside the twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// The study's row, by number.
    pub row: usize,
    /// The row's cell, by number.
    pub cell: usize,
    /// Whether it is a base cell that a parameter was fitted on, or that the machine rests on: no check.
    pub fitted: bool,
    /// Words were published, and no number: it counts nowhere.
    pub words: bool,
    /// The published value, where it is a number: in the unit of the row.
    pub published: Option<f64>,
    /// The published difference to the base, in percent.
    pub published_diff_pct: Option<f64>,
    /// The noise of that difference, in percent of the base.
    pub noise_pct: Option<f64>,
    /// The noise of the cell, in the unit of the row.
    pub noise: Option<Noise>,
    /// The twin's value, in the unit of the row.
    pub twin: Option<Estimate>,
    /// The twin's difference to the base.
    pub difference: Option<Difference>,
    /// Whether all variants have the sign of the difference; `None` where it cannot be told.
    pub robust: Option<bool>,
    /// The difference in each variant.
    pub in_variants: Vec<Option<Difference>>,
    /// In how many variants that count the difference has the same sign, known beyond its interval.
    pub known_in_variants: usize,
    /// How many variants count: all that ran and are not ruled out.
    pub counting_variants: usize,
    /// The verdict of the cell on the twin.
    pub verdict: Verdict,
    /// Why the twin has no value.
    pub why_not: Option<String>,
}

/// A study that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The study.
    pub study: Study,
    /// The calibrations that were fitted before.
    pub calibrated: Vec<Calibrated>,
    /// Every cell.
    pub cells: Vec<Beside>,
    /// Every execution, by kernel.
    pub executions: Vec<judge::Judged>,
    /// The seeds of every kernel.
    pub seeds: Vec<u64>,
    /// The inputs that rows of the study wait for.
    pub waits_for: Vec<String>,
    /// Things worth knowing.
    pub notices: Vec<String>,
    /// Runs that panicked, of the study and of its variants: they count in no number.
    pub crashes: Vec<Crash>,
    /// Where it comes from.
    pub provenance: Provenance,
    /// Everything that its setups measured, for figures.
    pub measured: Vec<MeasuredSetup>,
}

/// All that a setup measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredSetup {
    /// Machine and workload.
    pub setup: String,
    /// Its kernels, as the publication names them.
    pub kernels: Vec<String>,
    /// The metrics with their samples, by kernel and seed.
    pub rows: Vec<measured::Row>,
}

/// A study with its scenarios, ready to run.
pub struct Ready {
    study: Study,
    calibrated: Vec<Calibrated>,
    setups: Vec<Setup>,
    /// By variant: the setups, in the order of `setups`.
    variants: Vec<Vec<Setup>>,
    executions: Vec<Subject>,
}

impl Ready {
    /// Makes the scenarios. `with_variants`: also those that show whether signs are robust.
    pub fn new(
        study: Study,
        calibrated: Vec<Calibrated>,
        with_variants: bool,
        registry: &Registry,
    ) -> Ready {
        let settings: Vec<Assignment> = (study.settings.iter().map(|setting| &setting.set))
            .chain(calibrated.iter().map(|one| &one.set))
            .cloned()
            .collect();
        // A report that is known not to run has names of kernels that nobody has to have.
        let runs = study.report.as_ref().is_none_or(|head| head.status == Status::Runs);
        let main = match runs {
            true => setups(&study, &settings, &[], registry),
            false => Vec::new(),
        };
        let variants: Vec<Vec<Setup>> = study
            .variants
            .iter()
            .filter(|_| with_variants)
            .map(|variant| {
                let mut setups = setups(&study, &settings, &variant.settings, registry);
                setups.iter_mut().for_each(|setup| setup.keep_what_differs(&study));
                setups
            })
            .collect();
        let executions = judge::subjects(&study, &settings, registry);
        Ready { study, calibrated, setups: main, variants, executions }
    }

    /// The study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// The setups.
    pub fn setups(&self) -> &[Setup] {
        &self.setups
    }

    /// All that it waits for.
    pub fn waits_for(&self) -> Vec<String> {
        let mut all = crate::study::prepare::waits_for(&self.setups);
        all.extend(self.executions.iter().flat_map(Subject::waits_for).cloned());
        let status = self.study.report.as_ref().map(|head| &head.status);
        let why = status.and_then(|status| Some(format!("{}: {}", status.word(), status.why()?)));
        all.extend(why);
        all.sort();
        all.dedup();
        all
    }

    /// Whether some of it can run.
    pub fn can_run(&self) -> bool {
        self.setups.iter().any(|setup| setup.waits_for.is_empty())
            || self.executions.iter().any(|subject| subject.waits_for().is_empty())
    }

    /// The runs that [`Ready::run`] makes with this plan, before a precision is looked at.
    pub fn first_runs(&self, plan: &Plan) -> u64 {
        let of = |setups: &[Setup], plan: &Plan| -> u64 {
            setups.iter().map(|setup| plan.first_runs(setup.scenarios.len())).sum()
        };
        let variants = self.variants.iter().map(|setups| of(setups, &variant_plan(plan)));
        let seeds = judge::seeds(plan.first_runs(1));
        let executions = self.executions.iter().map(|subject| subject.runs(seeds));
        of(&self.setups, plan) + variants.sum::<u64>() + executions.sum::<u64>()
    }

    /// Runs it. The caller has announced [`Ready::first_runs`].
    pub fn run(&self, plan: &Plan, progress: &Progress) -> io::Result<Ran> {
        let study = &self.study;
        let mut ran = Ran {
            study: study.clone(),
            calibrated: self.calibrated.clone(),
            cells: Vec::new(),
            executions: Vec::new(),
            seeds: Vec::new(),
            waits_for: self.waits_for(),
            notices: Vec::new(),
            crashes: Vec::new(),
            provenance: self.provenance(),
            measured: Vec::new(),
        };
        for (number, setup) in self.setups.iter().enumerate() {
            let measured = self.measure(setup, plan, progress)?;
            let mut variants = Vec::new();
            for setups in &self.variants {
                // A variant may split a setup only if it sets what a row sets: the order is the same.
                let variant = setups.get(number).filter(|other| other.rows == setup.rows);
                variants.push(match variant {
                    Some(variant) => self
                        .measure(variant, &variant_plan(plan), progress)?
                        .map(|measured| (variant, measured)),
                    None => None,
                });
            }
            let all = measured.iter().chain(variants.iter().flatten().map(|(_, variant)| variant));
            ran.crashes.extend(all.flat_map(|measured| measured.crashes.iter().cloned()));
            for row in &setup.rows {
                for cell in 0..study.rows[*row].cells.len() {
                    ran.cells.push(self.beside((*row, cell), setup, measured.as_ref(), &variants));
                }
            }
            let Some(measured) = measured else { continue };
            for notice in measured.notices {
                if !ran.notices.contains(&notice) {
                    ran.notices.push(notice);
                }
            }
            if measured.seeds.len() > ran.seeds.len() {
                ran.seeds = measured.seeds;
            }
            let name = |column: &usize| study.columns[*column].kernel.clone();
            ran.measured.push(MeasuredSetup {
                setup: format!("{}, {}", setup.machine, setup.workload),
                kernels: setup.columns.iter().map(name).collect(),
                rows: measured.rows,
            });
        }
        for (variant, setups) in study.variants.iter().zip(&self.variants) {
            for waits in crate::study::prepare::waits_for(setups) {
                if !ran.waits_for.contains(&waits) {
                    ran.notices.push(format!("variant `{}` waits for: {waits}", variant.name));
                }
            }
        }
        ran.cells.sort_by_key(|cell| (cell.row, cell.cell));
        let seeds = judge::seeds(plan.first_runs(1));
        let judged = |subject: &Subject| subject.judge(study, plan.first_seed, seeds, progress);
        ran.executions = self.executions.iter().map(judged).collect();
        ran.notices.extend(self.stale(&ran));
        Ok(ran)
    }

    /// Says that the twin has other values than when the parameters were fitted, where the seeds are the same.
    fn stale<'s>(&'s self, ran: &Ran) -> Option<String> {
        let then = &self.calibrated.first()?.then;
        if !ran.seeds.iter().copied().eq(1..=then.seeds as u64) {
            return None;
        }
        let now = |name: &str, nth: usize| {
            let at = base_cells(name, &self.study.columns, &self.study.rows);
            let found = ran.cells.iter().find(|one| at.get(nth) == Some(&(one.row, one.cell)))?;
            Some(found.twin.as_ref()?.mean)
        };
        // Occasions of one value are named together, and have one value in the twin.
        let first = |name: &'s str| name.split(", ").next().unwrap_or(name);
        let with_now = then.values.iter().enumerate().filter_map(|(at, (name, value))| {
            let name = first(name);
            // Several rows of a table may have one name: they were fitted in their order.
            let nth = then.values[..at].iter().filter(|(other, _)| first(other) == name).count();
            Some((name, *value, now(name, nth)?))
        });
        let moved: Vec<(&str, f64, f64)> =
            with_now.filter(|(_, then, now)| (now - then).abs() > 1e-9 * then.abs()).collect();
        let by = |(_, then, now): &(&str, f64, f64)| 100.0 * (now - then) / then.abs();
        let most = moved.iter().max_by(|a, b| by(a).abs().total_cmp(&by(b).abs()))?;
        Some(format!(
            "stale calibration: {} of the {} values that it was fitted on have moved since, {} by {:+.1} %; \
             `schedtwin calibrate {}` fits again",
            moved.len(),
            then.values.len(),
            most.0,
            by(most),
            self.study.name,
        ))
    }

    fn measure(
        &self,
        setup: &Setup,
        plan: &Plan,
        progress: &Progress,
    ) -> io::Result<Option<crate::compare::Sampled>> {
        if setup.scenarios.is_empty() {
            return Ok(None);
        }
        let look = |rows: &[measured::Row]| match plan.iterations {
            Iterations::Precision { half_width_pct, .. } => {
                worst_primary(self.compared(setup, rows).iter(), half_width_pct)
            }
            Iterations::Published { part_pct, .. } => self.look_at_claims(setup, rows, part_pct),
            _ => Look::Enough,
        };
        sample(&setup.scenarios, plan, progress, look).map(Some)
    }

    /// Whether the differences of a setup that the publication is sure of are known to that part of their published size.
    fn look_at_claims(&self, setup: &Setup, rows: &[measured::Row], part_pct: f64) -> Look {
        let of_setup = setup.rows.iter().map(|number| &self.study.rows[*number]);
        let claims = of_setup.flat_map(|row| claims_of(&self.study, row));
        let looks = claims.filter(Claim::is_sure).filter_map(|claim| {
            let cell = std::slice::from_ref(claim.cell);
            let compared = self.compared_row(setup, rows, claim.row, cell)?;
            let wanted = claim.published_pct.abs() * part_pct / 100.0;
            Some(worst(std::iter::once(&compared), wanted))
        });
        looks.reduce(Look::worse).unwrap_or(Look::Enough)
    }

    /// The differences that stand in published rows.
    fn compared(&self, setup: &Setup, rows: &[measured::Row]) -> Vec<ComparedRow> {
        let of_setup = setup.rows.iter().map(|number| &self.study.rows[*number]);
        of_setup.filter_map(|row| self.compared_row(setup, rows, row, &row.cells)).collect()
    }

    /// The differences of some cells of a published row; `None`: nothing of it was measured.
    fn compared_row(
        &self,
        setup: &Setup,
        rows: &[measured::Row],
        row: &Row,
        cells: &[Cell],
    ) -> Option<ComparedRow> {
        let found = find(rows, row).ok()?;
        let differences = cells.iter().filter_map(|cell| {
            let base = row.base_of(&self.study, cell)?;
            Some(difference(row, found, setup.place(base), setup.place(cell)))
        });
        let cells = differences.map(|difference| Judged { estimate: None, difference }).collect();
        Some(ComparedRow { row: found.clone(), cells, doubtful: false, not_judged: false })
    }

    fn beside(
        &self,
        (row_number, cell_number): (usize, usize),
        setup: &Setup,
        measured: Option<&crate::compare::Sampled>,
        variants: &[Option<(&Setup, crate::compare::Sampled)>],
    ) -> Beside {
        let study = &self.study;
        let row = &study.rows[row_number];
        let cell = &row.cells[cell_number];
        let base = row.base_of(study, cell);
        let (published_diff_pct, noise_pct) = published_difference(row, base, cell);
        let mut beside = Beside {
            row: row_number,
            cell: cell_number,
            fitted: cell.role == Role::Base
                && (row.used_by.is_some() || self.is_fitted(row_number, cell_number)),
            words: matches!(cell.published, Published::Text(_)),
            published: value(cell),
            published_diff_pct,
            noise_pct,
            noise: row.noise_of(cell),
            twin: None,
            difference: None,
            robust: None,
            in_variants: Vec::new(),
            known_in_variants: 0,
            counting_variants: 0,
            verdict: Verdict::Inconclusive,
            why_not: None,
        };
        let found = match measured {
            None => Err(format!("waits for: {}", setup.waits_for.join(", "))),
            Some(measured) => find(&measured.rows, row),
        };
        match found {
            Err(why_not) => beside.why_not = Some(why_not),
            Ok(found) => {
                beside.twin = estimate(row, found, setup.place(cell));
                beside.difference = base
                    .and_then(|base| difference(row, found, setup.place(base), setup.place(cell)));
                beside.in_variants = variants
                    .iter()
                    .filter(|_| base.is_some())
                    .map(|variant| {
                        let ((setup, variant), base) = (variant.as_ref()?, base?);
                        let found = find(&variant.rows, row).ok()?;
                        difference(row, found, setup.place(base), setup.place(cell))
                    })
                    .collect();
                let all = study.variants.iter().zip(&beside.in_variants);
                let counting: Vec<_> = all
                    .filter(|(variant, _)| variant.ruled_out.is_none())
                    .map(|(_, found)| *found)
                    .collect();
                beside.robust = robust(beside.difference.as_ref(), &counting);
                beside.counting_variants = counting.len();
                beside.known_in_variants = known(beside.difference.as_ref(), &counting);
            }
        }
        beside.verdict = match cell.role {
            Role::Base => Verdict::Base,
            Role::Patched => {
                let twin = beside
                    .difference
                    .as_ref()
                    .and_then(|d| Some(TwinDiff { percent: d.diff_pct?, ci95: d.ci95_pct }));
                verdict::judge(published_diff_pct, noise_pct, twin)
            }
        };
        beside
    }

    fn is_fitted(&self, row: usize, cell: usize) -> bool {
        let on = self.calibrated.iter().flat_map(|one| &one.fitted_on);
        let mut cells = on.flat_map(|on| base_cells(on, &self.study.columns, &self.study.rows));
        cells.any(|at| at == (row, cell))
    }

    /// Where its results come from.
    pub fn provenance(&self) -> Provenance {
        let of: Vec<(String, Provenance)> = self
            .setups
            .iter()
            .flat_map(|setup| &setup.scenarios)
            .map(|column| (column.kernel.clone(), twin::provenance(&column.scenario)))
            .collect();
        let mut joined = Provenance {
            version: env!("CARGO_PKG_VERSION").to_string(),
            model_version: MODEL_VERSION.to_string(),
            ..Provenance::default()
        };
        for (kernel, one) in of {
            for (what, hash) in one.hashes {
                let name = match what.as_str() {
                    "machine" => one.machine.clone(),
                    "workload" => one.workload.clone(),
                    _ => kernel.clone(),
                };
                let named = (format!("{what} {name}"), hash);
                if !joined.hashes.contains(&named) {
                    joined.hashes.push(named);
                }
            }
            if joined.trust.is_empty() {
                joined.trust = one.trust;
            }
        }
        if !self.calibrated.is_empty() {
            let fitted = "parameters are fitted on base values, see the studies";
            joined.trust = match joined.trust.strip_prefix("nothing is fitted") {
                Some(rest) => format!("{fitted}{rest}"),
                None => format!("{fitted}; {}", joined.trust),
            };
        }
        joined.machine = self.study.machine.clone();
        joined.workload = self.study.workload.clone();
        joined
    }
}

impl Setup {
    /// The place of a cell's kernel among the scenarios.
    fn place(&self, cell: &Cell) -> usize {
        let place = self.columns.iter().position(|column| *column == cell.column);
        place.expect("a setup has the columns of its rows")
    }

    /// Leaves out the kernels that no difference is taken of: of a variant nothing else is wanted.
    fn keep_what_differs(&mut self, study: &Study) {
        let mut wanted = Vec::new();
        for row in self.rows.iter().map(|row| &study.rows[*row]) {
            for cell in &row.cells {
                let base = row.base_of(study, cell);
                wanted.extend(base.into_iter().flat_map(|base| [base.column, cell.column]));
            }
        }
        let mut at = 0;
        self.scenarios.retain(|_| {
            at += 1;
            wanted.contains(&self.columns[at - 1])
        });
        self.columns.retain(|column| wanted.contains(column));
    }
}

fn variant_plan(plan: &Plan) -> Plan {
    let seeds = plan.iterations.most().min(VARIANT_SEEDS);
    Plan { iterations: Iterations::Fixed(seeds), first_seed: plan.first_seed }
}

fn sign(difference: &Difference) -> i8 {
    (difference.diff > 0.0) as i8 - (difference.diff < 0.0) as i8
}

/// Whether every variant has the sign of the difference (rule 3 above).
fn robust(difference: Option<&Difference>, in_variants: &[Option<Difference>]) -> Option<bool> {
    let main = difference.filter(|difference| difference.significant).map(sign)?;
    let contradicts = |variant: &Difference| variant.significant && sign(variant) != main;
    if in_variants.iter().flatten().any(contradicts) {
        return Some(false);
    }
    let has_it =
        |variant: &Option<Difference>| variant.is_some_and(|variant| sign(&variant) == main);
    (!in_variants.is_empty() && in_variants.iter().all(has_it)).then_some(true)
}

/// In how many of these the difference has the same sign, known beyond its interval.
fn known(difference: Option<&Difference>, in_variants: &[Option<Difference>]) -> usize {
    let Some(main) = difference.map(sign) else { return 0 };
    let knows = |variant: &&Difference| variant.significant && sign(variant) == main;
    in_variants.iter().flatten().filter(knows).count()
}

fn value(cell: &Cell) -> Option<f64> {
    match cell.published {
        Published::Value(value) => Some(value),
        Published::DiffPct(_) | Published::Text(_) => None,
    }
}

/// The published difference and its noise, both in percent of the base.
///
/// The noise of two cells with half-widths of their own is their sum in quadrature. One that is assumed for
/// the row is the spread of the same measurement on other days, and taken as it is. Of two the larger counts. A
/// published difference has its own half-width, in points.
pub(super) fn published_difference(
    row: &Row,
    base: Option<&Cell>,
    cell: &Cell,
) -> (Option<f64>, Option<f64>) {
    if let Published::DiffPct(percent) = cell.published {
        return (Some(percent), cell.noise);
    }
    let pair = base.and_then(|base| Some((base, value(base)?, value(cell)?)));
    let Some((base, from, to)) = pair.filter(|(_, from, _)| *from != 0.0) else {
        return (None, None);
    };
    let own = base.noise.zip(cell.noise).map(|(a, b)| (a * a + b * b).sqrt());
    let assumed = row.noise.as_ref().map(|noise| noise.half_width);
    let half_width = own.into_iter().chain(assumed).reduce(f64::max);
    let percent = |x: f64| 100.0 * x / from.abs();
    (Some(percent(to - from)), half_width.map(percent))
}

/// The twin's row of a published one, or why there is none.
fn find<'a>(rows: &'a [measured::Row], row: &Row) -> Result<&'a measured::Row, String> {
    let own = || Selector {
        name: row.metric.clone(),
        stat: Some(row.stat.clone()),
        labels: row.labels.clone(),
    };
    let wanted = row.twin.clone().unwrap_or_else(own);
    let has_labels = |found: &measured::Row| {
        found.labels.len() == wanted.labels.len()
            && found
                .labels
                .iter()
                .all(|(key, value)| wanted.labels.iter().any(|(k, v)| k == key && v == value))
    };
    let named: Vec<&measured::Row> = rows
        .iter()
        .filter(|found| found.name == wanted.name && found.kind == Kind::One)
        .filter(|found| has_labels(found))
        .collect();
    let stats = match &wanted.stat {
        Some(stat) => vec![stat.as_str()],
        None => vec!["mean", "sum", "gmean", "share"],
    };
    let found = stats.iter().find_map(|stat| named.iter().find(|found| found.stat == *stat));
    match found {
        Some(found) if factor(found.unit, &row.unit).is_some() => Ok(found),
        // Only the difference was published: the twin's has the unit of the metric.
        Some(found) if row.stat == "diff_pct" => Ok(found),
        Some(found) => Err(format!("measured in {}, published in {}", found.unit, row.unit)),
        None => Err(format!("the twin does not measure {}", row.title())),
    }
}

/// From one unit to another; `None` where they are not of one kind.
fn factor(from: &str, to: &str) -> Option<f64> {
    const UNITS: [(&str, &str, f64); 10] = [
        ("W", "power", 1e3),
        ("mW", "power", 1.0),
        ("s", "time", 1e6),
        ("ms", "time", 1e3),
        ("us", "time", 1.0),
        ("J", "energy", 1e3),
        ("mJ", "energy", 1.0),
        ("1/s", "rate", 60.0),
        ("1/min", "rate", 1.0),
        // Speedometer's points are runs a minute.
        ("pts", "rate", 1.0),
    ];
    let find = |name: &str| UNITS.iter().find(|(unit, ..)| *unit == name);
    if from == to || to == "%" && from.is_empty() {
        return Some(1.0);
    }
    let ((_, kind, from), (_, other, to)) = (find(from)?, find(to)?);
    (kind == other).then_some(from / to)
}

/// Returns the samples of a column, in the unit of the publication. Only a difference in percent
/// was published:
/// then the unit is the twin's own.
fn samples(row: &Row, found: &measured::Row, place: usize) -> Vec<Option<f64>> {
    let factor = factor(found.unit, &row.unit).unwrap_or(1.0);
    found.samples[place].iter().map(|x| x.map(|x| x * factor)).collect()
}

/// A mean over the runs. A geometric mean of values of which one is zero says nothing: it is arithmetic then.
fn estimate(row: &Row, found: &measured::Row, place: usize) -> Option<Estimate> {
    let samples = samples(row, found, place);
    let arithmetic = || stats::estimate(&samples);
    match row.over_runs {
        OverRuns::Mean => arithmetic(),
        OverRuns::Gmean => stats::gmean(&samples).or_else(arithmetic),
    }
}

fn difference(row: &Row, found: &measured::Row, base: usize, other: usize) -> Option<Difference> {
    let (base, other) = (samples(row, found, base), samples(row, found, other));
    let arithmetic = || stats::paired(&base, &other);
    match row.over_runs {
        OverRuns::Mean => arithmetic(),
        OverRuns::Gmean => stats::paired_gmean(&base, &other).or_else(arithmetic),
    }
}

/// How many cells have each verdict; those of words only are none.
pub fn summary<'a>(cells: impl Iterator<Item = &'a Beside> + Clone) -> Vec<(Verdict, usize)> {
    let counts = |cell: &&Beside, verdict| cell.verdict == verdict && !cell.words;
    let count = |verdict| cells.clone().filter(|cell| counts(cell, verdict)).count();
    Verdict::ALL.iter().map(|verdict| (*verdict, count(*verdict))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_sign_counts_for_or_against() {
        let of = |diff: f64, half: f64| Difference {
            n: 10,
            diff,
            diff_pct: Some(diff),
            ci95: Some([diff - half, diff + half]),
            ci95_pct: Some([diff - half, diff + half]),
            p: None,
            significant: diff.abs() > half,
            for_equal_lengths: false,
        };
        let known = of(-5.0, 1.0);
        for (main, variants, expected) in [
            (Some(known), vec![], None),
            (Some(known), vec![Some(known), Some(known)], Some(true)),
            // The sign of the mean is the same, though it is not known there.
            (Some(known), vec![Some(known), Some(of(-1.0, 2.0))], Some(true)),
            (Some(known), vec![Some(known), Some(of(1.0, 2.0))], None),
            (Some(known), vec![Some(known), Some(of(0.0, 0.0))], None),
            (Some(known), vec![Some(known), Some(of(3.0, 2.0))], Some(false)),
            (Some(known), vec![Some(known), None], None),
            (Some(known), vec![None, Some(of(3.0, 2.0))], Some(false)),
            (Some(of(-1.0, 2.0)), vec![Some(known)], None),
            (None, vec![Some(known)], None),
        ] {
            assert_eq!(robust(main.as_ref(), &variants), expected, "{main:?} {variants:?}");
        }
    }
}
