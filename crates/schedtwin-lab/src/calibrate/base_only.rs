// SPDX-License-Identifier: GPL-2.0-or-later
//! A study without what is to be predicted, and how well each of its base values is known.
//!
//! Cells that measure the same under the same kernel on several occasions (another day) are one **target**: they
//! are one thing measured repeatedly, not several that agree. What they say together:
//!
//! - its *centre*: the mean of the days
//! - its *half-width*: the greatest of the range of the days, the noise that the study file has for the row (by the files'
//!   convention the range of the days, too), and a cell's own. Of two days the expected range is 1.13 standard deviations of a day (the
//!   d2 of control charts), so a half-width is about one standard deviation. Where nothing of these is known it is
//!   [`UNKNOWN_NOISE_PCT`] of the centre.

use schedtwin_input::{Diagnostics, Location, Source};
use schedtwin_types::fnv::Fnv1a;

use crate::study::spec::{Assignment, parse_parameter};
use crate::study::{Fit, Published, Role, Study, base_cells};

/// Half-width of a base value of which no noise is known, in percent: what phones' power and frame times differ by from
/// day to day where a study knows it (12 and 20 %; jank by more).
pub const UNKNOWN_NOISE_PCT: f64 = 10.0;

/// No base value counts as known better than this, in percent: repetitions within a session say little of the next
/// one; two passes of one kernel on an idle server differ by 1.2 % (server-neutral-spr).
pub const LEAST_NOISE_PCT: f64 = 1.0;

/// The base values that parameters may be fitted on, and the parameters. It holds no patched cell, no patched
/// column, no text of the study, and no place in its file.
#[derive(Clone, Debug)]
pub struct BaseOnly {
    /// A study of base cells, each named by a parameter.
    study: Study,
    targets: Vec<Target>,
}

/// Something measured that the twin shall meet: one base cell, or those of several occasions.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its cells in [`BaseOnly::study`]: row and cell by number. The twin's value is the same in all of them.
    pub cells: Vec<(usize, usize)>,
    /// The cells, each as `ID KERNEL`.
    pub names: Vec<String>,
    /// The mean of the occasions, in the unit of the row.
    pub centre: f64,
    /// How well it is known, in the unit of the row; about one standard deviation.
    pub half_width: f64,
}

impl Target {
    /// All its cells.
    pub fn name(&self) -> String {
        self.names.join(", ")
    }
}

impl BaseOnly {
    /// Takes out of a study what a fitter may see. An error if it says nothing of fitting, or wants to fit
    /// more than half as many parameters as there are base values.
    pub fn of(study: &Study) -> Result<BaseOnly, Diagnostics> {
        let mut faults = Diagnostics::new();
        if study.fits.is_empty() {
            let help = "a study says so with [[fit]]".to_string();
            let message = format!("nothing of {} may be fitted", study.name);
            faults.push_whole(&study.source, message, Some(help));
            return Err(faults);
        }
        let mut wanted: Vec<(usize, usize)> = study
            .fits
            .iter()
            .flat_map(|fit| &fit.fitted_on)
            .flat_map(|on| base_cells(&on.value, &study.columns, &study.rows))
            .collect();
        wanted.sort();
        wanted.dedup();
        for (at, fit) in study.fits.iter().enumerate() {
            if study.fits[..at].iter().any(|other| other.parameter.value == fit.parameter.value) {
                let message = format!("`{}` is fitted twice", fit.parameter.value);
                faults.push_at(&fit.parameter.at, message, None);
            }
        }
        let groups = occasions(study, &wanted);
        if study.fits.len() * 2 > groups.len() {
            let last = &study.fits[study.fits.len() - 1].parameter.at;
            let message = format!(
                "{} parameters on {} base values: at most half as many parameters as values",
                study.fits.len(),
                groups.len()
            );
            let help = "several occasions of one measurement are one value".to_string();
            faults.push_at(last, message, (groups.len() < wanted.len()).then_some(help));
        }
        let mut weighed = Vec::new();
        for group in &groups {
            let known = weigh(study, group);
            if known.1 <= 0.0 {
                let (row, cell) = group[0];
                let message = "a base value of 0 has no noise in percent: how well is it known?";
                let help =
                    "write `noise = { value = ..., assumed = \"why\" }` in its row".to_string();
                faults.push_at(&study.rows[row].cells[cell].at, message, Some(help));
            }
            weighed.push(known);
        }
        faults.into_result(())?;
        Ok(BaseOnly::cut(study, &wanted, &groups, &weighed))
    }

    fn cut(
        study: &Study,
        wanted: &[(usize, usize)],
        groups: &[Vec<(usize, usize)>],
        weighed: &[(f64, f64)],
    ) -> BaseOnly {
        let nowhere = Location::new(&Source::new(study.name.clone(), ""), Location::WHOLE);
        let mut bare = study.with_cells(|row, cell| wanted.contains(&(row, cell)));
        for cell in bare.rows.iter().flat_map(|row| &row.cells) {
            assert_eq!(cell.role, Role::Base, "only base cells are named by a parameter");
        }
        let mut targets: Vec<Target> = weighed
            .iter()
            .map(|(centre, half_width)| Target {
                cells: Vec::new(),
                names: Vec::new(),
                centre: *centre,
                half_width: *half_width,
            })
            .collect();
        let places = (bare.rows.iter().enumerate())
            .flat_map(|(row, of)| (0..of.cells.len()).map(move |cell| (row, cell)));
        for (place, at) in places.zip(wanted) {
            let group = groups.iter().position(|group| group.contains(at));
            let target = &mut targets[group.expect("every wanted cell is in a group")];
            let row = &bare.rows[place.0];
            let kernel = &bare.columns[row.cells[place.1].column].kernel;
            target.cells.push(place);
            target.names.push(format!("{} {kernel}", row.id));
        }
        for row in &mut bare.rows {
            (row.note, row.noise) = (None, None);
            for cell in &mut row.cells {
                (cell.noise, cell.at) = (None, nowhere.clone());
            }
        }
        bare.columns.iter_mut().for_each(|column| column.against = None);
        for fit in &mut bare.fits {
            fit.parameter.at = nowhere.clone();
            fit.fitted_on.clear();
            fit.why.clear();
        }
        let study = Study {
            source: nowhere.source.clone(),
            description: String::new(),
            published: String::new(),
            about: String::new(),
            executions: Vec::new(),
            variants: Vec::new(),
            ..bare
        };
        BaseOnly { study, targets }
    }

    /// The study of base cells.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Returns the targets that are to be met.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The base cells that are fitted on, as `ID KERNEL`.
    pub fn cells(&self) -> Vec<String> {
        self.targets.iter().flat_map(|target| target.names.clone()).collect()
    }

    /// The parameters as settings: `at` from 0 (least) to 1 (greatest). Whole numbers where the bounds are whole, else
    /// four significant digits; printing and reading are exact, so the twin gets the same text everywhere.
    pub fn settings(&self, at: &[f64]) -> Vec<Assignment> {
        let one = |(fit, at): (&Fit, &f64)| {
            let [low, high] = fit.bounds;
            let value = (low + at.clamp(0.0, 1.0) * (high - low)).clamp(low, high);
            let value = match fit.whole {
                true if !fit.choices.is_empty() => fit.choices[value.round() as usize].clone(),
                true => format!("{}", value.round()),
                false => {
                    let rounded: f64 = format!("{value:.3e}").parse().expect("a printed number");
                    format!("{}", rounded.clamp(low, high))
                }
            };
            let (part, key) =
                parse_parameter(&fit.parameter.value).expect("checked when it was read");
            Assignment { part, key, value }
        };
        self.study.fits.iter().zip(at).map(one).collect()
    }

    /// Where settings of the parameters lie, each from 0 (least) to 1 (greatest).
    pub fn place(&self, settings: &[Assignment]) -> Vec<f64> {
        let one = |(fit, set): (&Fit, &Assignment)| {
            let value = match fit.choices.iter().position(|choice| *choice == set.value) {
                Some(number) => number as f64,
                None => set.value.parse().expect("a printed number"),
            };
            (value - fit.bounds[0]) / (fit.bounds[1] - fit.bounds[0])
        };
        self.study.fits.iter().zip(settings).map(one).collect()
    }

    /// Where the study begins, between 0 and 1.
    pub fn start(&self) -> Vec<f64> {
        let of = |fit: &Fit| (fit.start - fit.bounds[0]) / (fit.bounds[1] - fit.bounds[0]);
        self.study.fits.iter().map(of).collect()
    }

    /// Names what is fitted and on what: a calibration of other numbers is none of this study.
    pub fn fingerprint(&self) -> String {
        let mut text = format!(
            "{} {} {:?}\n",
            self.study.machine, self.study.workload, self.study.duration_ns
        );
        for setting in &self.study.settings {
            text.push_str(&format!("{}\n", setting.set.text()));
        }
        for target in &self.targets {
            text.push_str(&format!(
                "{} = {} +-{}\n",
                target.name(),
                target.centre,
                target.half_width
            ));
        }
        for fit in &self.study.fits {
            let [low, high] = fit.bounds;
            text.push_str(&format!("{} {low} {high} {}\n", fit.parameter.value, fit.whole));
            fit.choices.iter().for_each(|choice| text.push_str(&format!("{choice}\n")));
        }
        format!("{:016x}", Fnv1a::of(text.bytes()))
    }
}

/// The wanted cells, those together that measure the same on several occasions; in the order of the study.
fn occasions(study: &Study, wanted: &[(usize, usize)]) -> Vec<Vec<(usize, usize)>> {
    let same = |(a, in_a): (usize, usize), (b, in_b): (usize, usize)| {
        let (a, b) = (&study.rows[a], &study.rows[b]);
        (&a.metric, &a.stat, &a.labels, &a.unit, a.over_runs, &a.twin, &a.settings)
            == (&b.metric, &b.stat, &b.labels, &b.unit, b.over_runs, &b.twin, &b.settings)
            && (a.machine(study), a.workload(study)) == (b.machine(study), b.workload(study))
            && a.cells[in_a].column == b.cells[in_b].column
    };
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    for at in wanted {
        match groups.iter_mut().find(|group| same(group[0], *at)) {
            Some(group) => group.push(*at),
            None => groups.push(vec![*at]),
        }
    }
    groups
}

/// Centre and half-width of a target (see the head of this file).
fn weigh(study: &Study, group: &[(usize, usize)]) -> (f64, f64) {
    let value = |(row, cell): &(usize, usize)| match study.rows[*row].cells[*cell].published {
        Published::Value(value) => value,
        _ => unreachable!("a parameter is fitted on numbers"),
    };
    let noise = |(row, cell): &(usize, usize)| {
        let row = &study.rows[*row];
        let of_days = row.noise.as_ref().map(|noise| noise.half_width);
        of_days.into_iter().chain(row.cells[*cell].noise).reduce(f64::max)
    };
    let values: Vec<f64> = group.iter().map(value).collect();
    let centre = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = (values.len() > 1).then_some(greatest - least);
    let known = group.iter().filter_map(noise).chain(range).reduce(f64::max);
    let percent = |percent: f64| centre.abs() * percent / 100.0;
    let half_width = match known {
        Some(known) => known.max(percent(LEAST_NOISE_PCT)),
        None => percent(UNKNOWN_NOISE_PCT),
    };
    (centre, half_width)
}
