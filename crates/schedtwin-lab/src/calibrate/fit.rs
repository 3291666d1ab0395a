// SPDX-License-Identifier: GPL-2.0-or-later
//! The search, over parameters between 0 (least) and 1 (greatest).
//!
//! 1. **grid**: the study's start and the middles of [`levels`] parts of every range, with [`COARSE_SEEDS`] seeds
//! 2. **valleys**: Nelder and Mead's simplex from the best [`STARTS`] of these that are no neighbours, with as few seeds. Costs have several
//!    valleys (less work of a frame and more of the GPU, say), and a single search ends in the one that it began in
//! 3. **simplex**: with all seeds from the best of their ends
//! 4. **sides**: a tenth of the range to both sides of the best along every axis. Where one is better the simplex has
//!    stuck: it starts again from there, at most [`RESTARTS`] times (Kelley 1999: a fresh simplex is the remedy)
//!
//! The cost of the last look at the sides is kept: it tells how well each parameter is determined.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use argmin::core::{CostFunction, Executor, State};
use argmin::solver::neldermead::NelderMead;

use crate::Progress;
use crate::calibrate::{BaseOnly, Calibration, Parameter, Residual};
use crate::compare::Plan;
use crate::stopping::Iterations;
use crate::study::Fit;
use crate::study::prepare::Registry;
use crate::study::run::{Calibrated, Ready};
use crate::study::spec::Assignment;

/// How long to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Seeds of a measurement, from 1; the grid has fewer.
    pub seeds: usize,
    /// Steps of a simplex for each parameter.
    pub steps_per_parameter: u64,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { seeds: 10, steps_per_parameter: 10 }
    }
}

/// Seeds of the grid: it only says where to begin.
pub const COARSE_SEEDS: usize = 2;

/// Points of the grid at most: it shall cost less than the simplex, whose measurements have more seeds.
const GRID: u64 = 27;

/// Searches with few seeds, each from another place.
const STARTS: usize = 3;

/// Simplexes with all seeds after the first.
const RESTARTS: usize = 2;

/// How far the sides lie, as a share of the range.
const SIDE: f64 = 0.1;

/// How close to a bound counts as at it, as a share of the range.
const AT_BOUND: f64 = 0.01;

/// Parts of every range in the grid: as many as [`GRID`] allows, at most five.
fn levels(parameters: usize) -> u64 {
    let fits = |levels: &u64| levels.checked_pow(parameters as u32).is_some_and(|all| all <= GRID);
    (1..=5).rev().find(fits).expect("one part makes one point")
}

impl Effort {
    fn coarse(self) -> usize {
        self.seeds.min(COARSE_SEEDS)
    }

    /// Settings at most: with few seeds, and with all. Proposals that round to known ones are not measured again.
    pub fn settings(self, parameters: usize) -> [u64; 2] {
        let p = parameters as u64;
        let simplex = p + 1 + 2 * self.steps_per_parameter * p;
        let grid = 1 + levels(parameters).pow(p as u32);
        let fine = STARTS as u64 + (1 + RESTARTS as u64) * (simplex + 2 * p);
        [grid + STARTS as u64 * simplex, fine]
    }

    /// Settings as a rule: a step of a simplex measures one, and the first simplex does.
    fn usual_settings(self, parameters: usize) -> [u64; 2] {
        let p = parameters as u64;
        let simplex = p + self.steps_per_parameter * p;
        let grid = 1 + levels(parameters).pow(p as u32);
        [grid + STARTS as u64 * simplex, STARTS as u64 + simplex + 2 * p]
    }
}

/// The result of a measurement: the cost and its parts.
type Found = (f64, Vec<Residual>);

struct Problem<'a> {
    base: &'a BaseOnly,
    registry: Registry,
    progress: &'a Progress,
    /// By number of seeds and settings as text: what was measured.
    known: Mutex<BTreeMap<(usize, Vec<String>), Found>>,
}

/// The problem at a number of seeds.
struct Seeded<'a> {
    problem: &'a Problem<'a>,
    seeds: usize,
}

impl CostFunction for Seeded<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, at: &Vec<f64>) -> Result<f64, argmin::core::Error> {
        Ok(self.problem.cost(self.problem.base.settings(at), self.seeds)?)
    }
}

impl Problem<'_> {
    fn cost(&self, settings: Vec<Assignment>, seeds: usize) -> io::Result<f64> {
        let key = (seeds, settings.iter().map(Assignment::text).collect());
        if let Some((cost, _)) = self.known.lock().expect("no measurement panics").get(&key) {
            return Ok(*cost);
        }
        let found = self.measure(settings, seeds)?;
        let cost = found.0;
        self.known.lock().expect("no measurement panics").insert(key, found);
        Ok(cost)
    }

    fn measure(&self, settings: Vec<Assignment>, seeds: usize) -> io::Result<Found> {
        let ready = Ready::new(
            self.base.study().clone(),
            settings.into_iter().map(Calibrated::plain).collect(),
            false,
            &self.registry,
        );
        let waits = ready.waits_for();
        if !waits.is_empty() {
            return Err(io::Error::other(format!("it waits for: {}", waits.join(", "))));
        }
        let plan = Plan { first_seed: 1, iterations: Iterations::Fixed(seeds) };
        let ran = ready.run(&plan, self.progress)?;
        let mut residuals = Vec::new();
        let mut cost = 0.0;
        for target in self.base.targets() {
            let found = ran.cells.iter().find(|found| (found.row, found.cell) == target.cells[0]);
            let found = found.expect("every cell is set beside the twin");
            let Some(twin) = found.twin else {
                let why = found.why_not.clone().unwrap_or("it has no value".to_string());
                return Err(io::Error::other(format!("{}: {why}", target.name())));
            };
            let residual = Residual::new(target, twin.mean);
            cost += residual.in_half_widths * residual.in_half_widths;
            residuals.push(residual);
        }
        Ok((cost, residuals))
    }

    /// The best of what was measured with that many seeds. Of equal ones the first by its text: an order that no
    /// history changes.
    fn best(&self, seeds: usize) -> (Vec<Assignment>, Found) {
        let known = self.known.lock().expect("no measurement panics");
        let (key, found) = known
            .iter()
            .filter(|((of, _), _)| *of == seeds)
            .min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))
            .expect("something was measured");
        let settings = key.1.iter().map(|text| Assignment::parse(text).expect("a printed setting"));
        (settings.collect(), found.clone())
    }

    fn grid(&self, seeds: usize) -> io::Result<()> {
        let start = self.base.start();
        let levels = levels(start.len());
        self.cost(self.base.settings(&start), seeds)?;
        for point in 0..levels.pow(start.len() as u32) {
            // The digits of the point's number to the base of the levels.
            let digit = |parameter: u32| point / levels.pow(parameter) % levels;
            let at: Vec<f64> = (0..start.len() as u32)
                .map(|parameter| (digit(parameter) as f64 + 0.5) / levels as f64)
                .collect();
            self.cost(self.base.settings(&at), seeds)?;
        }
        Ok(())
    }

    /// The best points so far of which no two are closer than `apart` along every axis.
    fn starts(&self, seeds: usize, apart: f64) -> Vec<Vec<f64>> {
        let known = self.known.lock().expect("no measurement panics");
        let mut points: Vec<(f64, Vec<f64>)> = known
            .iter()
            .filter(|((of, _), _)| *of == seeds)
            .map(|((_, texts), (cost, _))| {
                let settings = texts.iter().map(|text| Assignment::parse(text));
                let settings: Result<Vec<_>, _> = settings.collect();
                (*cost, self.base.place(&settings.expect("printed settings")))
            })
            .collect();
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut starts: Vec<Vec<f64>> = Vec::new();
        for (_, at) in points {
            let far = |from: &Vec<f64>| from.iter().zip(&at).any(|(a, b)| (a - b).abs() >= apart);
            if starts.len() < STARTS && starts.iter().all(far) {
                starts.push(at);
            }
        }
        starts
    }

    /// Where a simplex from there ends.
    fn simplex(&self, from: &[f64], reach: f64, steps: u64, seeds: usize) -> io::Result<Vec<f64>> {
        let mut corners = vec![from.to_vec()];
        for parameter in 0..from.len() {
            let mut corner = from.to_vec();
            corner[parameter] += if corner[parameter] + reach <= 1.0 { reach } else { -reach };
            corners.push(corner);
        }
        let failed = |error: argmin::core::Error| io::Error::other(error.to_string());
        // argmin's own end criterion takes powers by `powi`, which is not exact everywhere: it is never met.
        let solver = NelderMead::new(corners).with_sd_tolerance(0.0).map_err(failed)?;
        let end = Executor::new(Seeded { problem: self, seeds }, solver)
            .configure(|state| state.max_iters(steps))
            .timer(false)
            .run()
            .map_err(failed)?;
        Ok(end.state.get_best_param().expect("a simplex has a best corner").clone())
    }

    /// By parameter: what the cost rises by a tenth of its range below and above; `None` beyond a bound.
    fn sides(&self, best: &[Assignment], seeds: usize) -> io::Result<Vec<[Option<f64>; 2]>> {
        let cost = self.cost(best.to_vec(), seeds)?;
        let at = self.base.place(best);
        let mut sides = Vec::new();
        for (parameter, fit) in self.base.study().fits.iter().enumerate() {
            // A whole number moves by one at least.
            let step =
                if fit.whole { SIDE.max(1.0 / (fit.bounds[1] - fit.bounds[0])) } else { SIDE };
            let mut rises = [None; 2];
            for (rise, step) in rises.iter_mut().zip([-step, step]) {
                let mut moved = at.clone();
                moved[parameter] += step;
                if !(0.0..=1.0).contains(&moved[parameter]) {
                    continue;
                }
                *rise = Some(self.cost(self.base.settings(&moved), seeds)? - cost);
            }
            sides.push(rises);
        }
        Ok(sides)
    }
}

/// The bound at which a parameter ended, if it did; a choice has none.
fn bound_of(fit: &Fit, value: &str) -> Option<f64> {
    if !fit.choices.is_empty() {
        return None;
    }
    let value: f64 = value.parse().expect("a printed number");
    let near = AT_BOUND * (fit.bounds[1] - fit.bounds[0]);
    fit.bounds.into_iter().find(|bound| (value - bound).abs() <= near)
}

/// Fits. Announces its runs to `progress` itself, as an estimate.
pub fn fit(base: &BaseOnly, effort: Effort, progress: &Progress) -> io::Result<Calibration> {
    let parameters = base.start().len();
    let registry = Registry::built_in();
    let first = Ready::new(base.study().clone(), Vec::new(), false, &registry);
    let runs =
        |seeds| first.first_runs(&Plan { first_seed: 1, iterations: Iterations::Fixed(seeds) });
    let [coarse, fine] = effort.usual_settings(parameters);
    progress.expect_runs(coarse * runs(effort.coarse()) + fine * runs(effort.seeds));
    let problem = Problem { base, registry, progress, known: Mutex::new(BTreeMap::new()) };
    problem.grid(effort.coarse())?;
    let steps = effort.steps_per_parameter * parameters as u64;
    let part = 1.0 / levels(parameters) as f64;
    for start in problem.starts(effort.coarse(), 1.5 * part) {
        let end = problem.simplex(&start, part / 2.0, steps, effort.coarse())?;
        problem.cost(base.settings(&end), effort.seeds)?;
    }
    let mut from = base.place(&problem.best(effort.seeds).0);
    let mut reach = SIDE;
    for _ in 0..=RESTARTS {
        problem.simplex(&from, reach, steps, effort.seeds)?;
        let (best, (cost, _)) = problem.best(effort.seeds);
        problem.sides(&best, effort.seeds)?;
        let (better, (least, _)) = problem.best(effort.seeds);
        if least >= cost {
            break;
        }
        from = base.place(&better);
        reach = SIDE / 2.0;
    }
    // After the last restart a side may still be better: then what it would cost to go there is below zero, and is told.
    let (best, (cost, residuals)) = problem.best(effort.seeds);
    let sides = problem.sides(&best, effort.seeds)?;
    let parameters =
        best.into_iter().zip(&base.study().fits).zip(sides).map(|((set, fit), sides)| Parameter {
            at_bound: bound_of(fit, &set.value),
            rise_below: sides[0],
            rise_above: sides[1],
            set,
        });
    let known = problem.known.lock().expect("no measurement panics");
    Ok(Calibration::new(
        base,
        parameters.collect(),
        (cost, residuals),
        known.len(),
        effort.seeds,
        &first,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_as_fine_as_it_may_be() {
        assert_eq!((1..=6).map(levels).collect::<Vec<_>>(), [5, 5, 3, 2, 1, 1]);
        assert_eq!(levels(100), 1);
        let effort = Effort { seeds: 10, steps_per_parameter: 10 };
        assert_eq!(effort.settings(2), [26 + 3 * 43, 3 + 3 * (43 + 4)]);
    }
}
