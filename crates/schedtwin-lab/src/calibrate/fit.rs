//! The search: Nelder and Mead's simplex over parameters between 0 (least) and 1 (greatest).

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use argmin::core::{CostFunction, Executor};
use argmin::solver::neldermead::NelderMead;

use crate::Progress;
use crate::calibrate::{BaseOnly, Calibration, Residual};
use crate::compare::{Iterations, Plan};
use crate::study::prepare::Registry;
use crate::study::run::{Calibrated, Ready};
use crate::study::spec::Assignment;

/// How long to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Seeds of a measurement, from 1.
    pub seeds: usize,
    /// Steps of the simplex for each parameter.
    pub steps_per_parameter: u64,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { seeds: 10, steps_per_parameter: 15 }
    }
}

/// How far the first simplex reaches from its start, as a share of the bounds.
const REACH: f64 = 0.25;

impl Effort {
    fn plan(self) -> Plan {
        Plan { first_seed: 1, iterations: Iterations::Fixed(self.seeds) }
    }

    /// About how many measurements a search of `parameters` takes: the simplex, and two a step. Proposals
    /// that round to known ones are not measured again.
    pub fn measurements(self, parameters: usize) -> u64 {
        let parameters = parameters as u64;
        parameters + 1 + 2 * self.steps_per_parameter * parameters
    }
}

/// What a measurement found: the deviation and its parts.
type Found = (f64, Vec<Residual>);

struct Problem<'a> {
    base: &'a BaseOnly,
    registry: Registry,
    effort: Effort,
    progress: &'a Progress,
    /// By settings as text: what was measured.
    known: Mutex<BTreeMap<Vec<String>, Found>>,
}

impl CostFunction for &Problem<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, at: &Vec<f64>) -> Result<f64, argmin::core::Error> {
        let settings = self.base.settings(at);
        let key: Vec<String> = settings.iter().map(Assignment::text).collect();
        if let Some((cost, _)) = self.known.lock().expect("no measurement panics").get(&key) {
            return Ok(*cost);
        }
        let found = self.measure(settings)?;
        let cost = found.0;
        self.known.lock().expect("no measurement panics").insert(key, found);
        Ok(cost)
    }
}

impl Problem<'_> {
    fn measure(&self, settings: Vec<Assignment>) -> io::Result<Found> {
        let calibrated =
            settings.into_iter().map(|set| Calibrated { set, fitted_on: Vec::new() }).collect();
        let ready = Ready::new(self.base.study().clone(), calibrated, false, &self.registry);
        let waits = ready.waits_for();
        if !waits.is_empty() {
            return Err(io::Error::other(format!("it waits for: {}", waits.join(", "))));
        }
        let ran = ready.run(self.effort.plan(), self.progress)?;
        let mut residuals = Vec::new();
        let mut cost = 0.0;
        for target in self.base.targets() {
            let (row, cell, name) = target;
            let found = ran.cells.iter().find(|found| (found.row, found.cell) == (*row, *cell));
            let found = found.expect("every cell is set beside the twin");
            let Some(twin) = found.twin else {
                let why = found.why_not.clone().unwrap_or("it has no value".to_string());
                return Err(io::Error::other(format!("{name}: {why}")));
            };
            let published = self.base.published(target);
            // Of a published zero the deviation is taken as it is.
            let of = if published == 0.0 { 1.0 } else { published.abs() };
            let deviation = (twin.mean - published) / of;
            cost += deviation * deviation;
            let deviation_pct = 100.0 * deviation;
            residuals.push(Residual {
                on: name.clone(),
                published,
                twin: twin.mean,
                deviation_pct,
            });
        }
        Ok((cost, residuals))
    }
}

/// Fits. Announces its runs to `progress` itself, as a bound.
pub fn fit(base: &BaseOnly, effort: Effort, progress: &Progress) -> io::Result<Calibration> {
    let start = base.start();
    let registry = Registry::built_in();
    let first = Ready::new(base.study().clone(), Vec::new(), false, &registry);
    let of_one = first.first_runs(effort.plan());
    progress.expect_runs(effort.measurements(start.len()) * of_one);
    let problem = Problem { base, registry, effort, progress, known: Mutex::new(BTreeMap::new()) };
    let mut simplex = vec![start.clone()];
    for parameter in 0..start.len() {
        let mut corner = start.clone();
        corner[parameter] += if corner[parameter] + REACH <= 1.0 { REACH } else { -REACH };
        simplex.push(corner);
    }
    let failed = |error: argmin::core::Error| io::Error::other(error.to_string());
    let solver = NelderMead::new(simplex).with_sd_tolerance(0.0).map_err(failed)?;
    let steps = effort.steps_per_parameter * start.len() as u64;
    Executor::new(&problem, solver)
        .configure(|state| state.max_iters(steps))
        .timer(false)
        .run()
        .map_err(failed)?;
    let known = problem.known.into_inner().expect("no measurement panics");
    let evaluations = known.len();
    // Of equal deviations the first by its text: an order that no history changes.
    let (best, (_, residuals)) = known
        .into_iter()
        .min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))
        .expect("the simplex was measured");
    let settings = best.iter().map(|text| Assignment::parse(text).expect("a printed setting"));
    Ok(Calibration::new(base, settings.collect(), residuals, evaluations, effort.seeds, &first))
}
