//! A study without what is to be predicted.

use schedtwin_input::{Diagnostics, Located, Location, Source};

use crate::study::spec::{Assignment, parse_parameter};
use crate::study::{Fit, Published, Role, Study, base_cells};

/// The base values that parameters may be fitted on, and the parameters. It holds no patched cell, no patched
/// column, no text of the study, and no place in its file.
#[derive(Clone, Debug)]
pub struct BaseOnly {
    /// A study of base cells, each named by a parameter.
    study: Study,
    /// The cells: row and cell by number, and `ID KERNEL`.
    targets: Vec<(usize, usize, String)>,
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
        if study.fits.len() * 2 > wanted.len() {
            let last = &study.fits[study.fits.len() - 1].parameter.at;
            let message = format!(
                "{} parameters on {} base values: at most half as many parameters as values",
                study.fits.len(),
                wanted.len()
            );
            faults.push_at(last, message, None);
        }
        faults.into_result(())?;
        Ok(BaseOnly::cut(study, &wanted))
    }

    fn cut(study: &Study, wanted: &[(usize, usize)]) -> BaseOnly {
        let nowhere = Location::new(&Source::new(study.name.clone(), ""), Location::WHOLE);
        let mut columns = Vec::new();
        let mut rows: Vec<crate::study::Row> = Vec::new();
        let mut targets = Vec::new();
        let mut last = None;
        for (row_number, cell_number) in wanted {
            let row = &study.rows[*row_number];
            if last != Some(*row_number) {
                rows.push(crate::study::Row {
                    cells: Vec::new(),
                    note: None,
                    noise: None,
                    ..row.clone()
                });
                last = Some(*row_number);
            }
            let mut cell = row.cells[*cell_number].clone();
            assert_eq!(cell.role, Role::Base, "only base cells are named by a parameter");
            let column = &study.columns[cell.column];
            let place = columns
                .iter()
                .position(|known: &crate::study::Column| known.kernel == column.kernel);
            cell.column = place.unwrap_or_else(|| {
                columns.push(crate::study::Column { against: None, ..column.clone() });
                columns.len() - 1
            });
            cell.at = nowhere.clone();
            let cells = &mut rows.last_mut().expect("the row of the cell").cells;
            cells.push(cell);
            let in_row = cells.len() - 1;
            targets.push((rows.len() - 1, in_row, format!("{} {}", row.id, column.kernel)));
        }
        let fits = study.fits.iter().map(|fit| Fit {
            parameter: Located { value: fit.parameter.value.clone(), at: nowhere.clone() },
            fitted_on: Vec::new(),
            why: String::new(),
            ..fit.clone()
        });
        let study = Study {
            source: nowhere.source.clone(),
            name: study.name.clone(),
            description: String::new(),
            published: String::new(),
            about: String::new(),
            machine: study.machine.clone(),
            workload: study.workload.clone(),
            duration_ns: study.duration_ns,
            settings: study.settings.clone(),
            columns,
            rows,
            fits: fits.collect(),
            variants: Vec::new(),
        };
        BaseOnly { study, targets }
    }

    /// The study of base cells.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// The base values: row and cell by number, and `ID KERNEL`.
    pub fn targets(&self) -> &[(usize, usize, String)] {
        &self.targets
    }

    /// The published value of a target.
    pub fn published(&self, (row, cell, _): &(usize, usize, String)) -> f64 {
        match self.study.rows[*row].cells[*cell].published {
            Published::Value(value) => value,
            _ => unreachable!("a parameter is fitted on numbers"),
        }
    }

    /// The parameters as settings: `at` from 0 (least) to 1 (greatest). Whole numbers where the bounds are whole, else
    /// four significant digits; printing and reading are exact, so the twin gets the same text everywhere.
    pub fn settings(&self, at: &[f64]) -> Vec<Assignment> {
        let one = |(fit, at): (&Fit, &f64)| {
            let [low, high] = fit.bounds;
            let value = (low + at.clamp(0.0, 1.0) * (high - low)).clamp(low, high);
            let value = match fit.whole {
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

    /// Where the search begins, between 0 and 1.
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
            text.push_str(&format!("{} = {}\n", target.2, self.published(target)));
        }
        for fit in &self.study.fits {
            let [low, high] = fit.bounds;
            text.push_str(&format!("{} {low} {high} {}\n", fit.parameter.value, fit.whole));
        }
        // FNV-1a, 64 bits, as inputs are named elsewhere.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}
