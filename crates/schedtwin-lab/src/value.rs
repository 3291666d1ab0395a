// SPDX-License-Identifier: GPL-2.0-or-later
//! One number and its error, for optimisers: what a kernel has of a metric, or how another one differs.

use std::io;
use std::ops::RangeInclusive;

use schedtwin_input::Diagnostics;
use schedtwin_types::metric::Kind;

use crate::Progress;
use crate::compare::{ComparedRow, Comparison, Subject, attempt_all};
use crate::report;
use crate::select::Key;
use crate::selector::Selector;
use crate::stats::{self, Estimate};

/// A number and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The number, in the metric's unit.
    pub value: f64,
    /// Half the width of its 95 % interval; `None` from one run.
    pub half_width: Option<f64>,
}

impl Value {
    pub(crate) fn new(value: f64, ci95: Option<[f64; 2]>) -> Value {
        Value { value, half_width: ci95.map(|[low, high]| (high - low) / 2.0) }
    }

    /// The line that `--value` prints: the number, then the half width if it is known.
    pub fn line(&self) -> String {
        match self.half_width {
            Some(half_width) => format!("{} {half_width}\n", self.value),
            None => format!("{}\n", self.value),
        }
    }
}

/// The mean of a metric over runs with these seeds. A run that panicked is with the progress, and counts in nothing.
pub fn of_runs<S: Subject>(
    subject: &S,
    seeds: RangeInclusive<u64>,
    selector: &Selector,
    progress: &Progress,
) -> io::Result<Result<Value, Diagnostics>> {
    let samples = samples_of_runs(subject, seeds, selector, progress)?;
    Ok(samples.and_then(|samples| {
        let estimate: Option<Estimate> = stats::estimate(&samples);
        let known = estimate.map(|estimate| Value::new(estimate.mean, estimate.ci95));
        known.ok_or_else(|| undefined(selector))
    }))
}

/// A metric of runs with these seeds, a value a run. Of a run that panicked there is none.
pub(crate) fn samples_of_runs<S: Subject>(
    subject: &S,
    seeds: RangeInclusive<u64>,
    selector: &Selector,
    progress: &Progress,
) -> io::Result<Result<Vec<Option<f64>>, Diagnostics>> {
    let measured = attempt_all(std::slice::from_ref(subject), seeds, progress, |run| run.metrics)?;
    let samples: Result<Vec<Option<f64>>, Diagnostics> = measured
        .into_iter()
        .flatten()
        .map(|metrics| {
            let keys: Vec<Key> =
                metrics.iter().map(|m| (m.name, m.stat, &m.labels, m.kind)).collect();
            Ok(metrics[only(&keys, selector)?].value)
        })
        .collect();
    Ok(samples)
}

/// The one row of a comparison that is meant.
pub fn row<'c>(of: &'c Comparison, selector: &Selector) -> Result<&'c ComparedRow, Diagnostics> {
    let keys: Vec<Key> =
        of.rows.iter().map(|r| (r.row.name, r.row.stat, &r.row.labels, r.row.kind)).collect();
    Ok(&of.rows[only(&keys, selector)?])
}

/// The mean of a kernel as a sentence has it: a number and its unit.
pub fn mean_words(row: &ComparedRow, kernel: usize) -> Option<String> {
    let text = report::value(Some(row.cells.get(kernel)?.estimate?.mean), row.row.unit);
    Some(match row.row.unit {
        "count" | "" => text,
        "%" => format!("{text} %"),
        unit => format!("{text} {unit}"),
    })
}

/// The change of a kernel against the baseline as a sentence has it: in percent of it.
pub fn change_words(row: &ComparedRow, kernel: usize) -> Option<String> {
    let percent = row.cells.get(kernel)?.difference?.diff_pct?;
    Some(format!("{} %", report::signed(percent)))
}

/// The paired difference of each other kernel to the first.
pub fn of_comparison(of: &Comparison, selector: &Selector) -> Result<Vec<Value>, Diagnostics> {
    let cells = &row(of, selector)?.cells;
    let difference = |cell: &crate::compare::Cell| {
        let difference = cell.difference.as_ref().ok_or_else(|| undefined(selector))?;
        Ok(Value::new(difference.diff, difference.ci95))
    };
    cells[1..].iter().map(difference).collect()
}

/// The one row that is meant.
pub(crate) fn only(keys: &[Key], selector: &Selector) -> Result<usize, Diagnostics> {
    let picked = selector.pick_totals(keys)?;
    match picked.as_slice() {
        [one] => Ok(*one),
        several => {
            let names: Vec<String> = several
                .iter()
                .take(4)
                .map(|at| {
                    let (name, stat, labels, kind) = keys[*at];
                    let labels: String =
                        labels.iter().map(|(key, value)| format!(",{key}={value}")).collect();
                    let kind = if kind == Kind::One { String::new() } else { format!(" [{kind}]") };
                    format!("{name}.{stat}{labels}{kind}")
                })
                .collect();
            let message = format!("these are {} numbers, not one", several.len());
            Err(selector.fault(message, format!("name one of them: {}", names.join(", "))))
        }
    }
}

fn undefined(selector: &Selector) -> Diagnostics {
    let help = "take another metric, or a longer run";
    selector.fault("it has no value in these runs".into(), help.into())
}
