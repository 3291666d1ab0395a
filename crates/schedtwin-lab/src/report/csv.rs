// SPDX-License-Identifier: GPL-2.0-or-later
//! Everything as lines for spreadsheets and data frames: tidy, one line per metric and kernel (and
//! seed for a run), each with its origin; the hashes of all inputs stand in the first line. Undefined values are empty fields.
//!
//! A spreadsheet computes what begins like a formula, also in a file that somebody sent. A name that begins so has an
//! apostrophe before it, which spreadsheets take for "this is text" and do not show.

use std::fmt::Display;

use super::RunReport;
use crate::Provenance;
use crate::compare::Comparison;
use crate::measured::Labels;
use crate::replay::Fidelity;
use schedtwin_types::metric::Kind;
use schedtwin_types::printable;

pub fn comparison(comparison: &Comparison) -> String {
    comparison_lines(comparison).finish()
}

/// A comparison, and the recording's own measurements as those of a kernel called `recorded`.
pub fn replay(comparison: &Comparison, fidelity: &Fidelity) -> String {
    let mut lines = comparison_lines(comparison);
    for pair in &fidelity.pairs {
        let mut line = origin(&comparison.provenance, "recorded");
        line.extend(metric(pair.name, pair.stat, &pair.labels, pair.unit, None));
        line.extend(["1".to_owned(), text(pair.recorded)]);
        line.extend(std::iter::repeat_n(String::new(), 9));
        line.extend(kind(Kind::One));
        line.push(String::new());
        lines.push(line);
    }
    lines.finish()
}

fn comparison_lines(comparison: &Comparison) -> Lines {
    let mut lines = Lines::new(&[
        "version",
        "model_version",
        "machine",
        "workload",
        "kernel",
        "metric",
        "stat",
        "labels",
        "unit",
        "better",
        "n",
        "mean",
        "ci95_low",
        "ci95_high",
        "diff",
        "diff_pct",
        "diff_ci95_low",
        "diff_ci95_high",
        "p",
        "significant",
        "hashes",
        "kind",
        "of",
        "over",
        "for_equal_lengths",
    ]);
    for row in &comparison.rows {
        for (kernel, (name, cell)) in comparison.kernels.iter().zip(&row.cells).enumerate() {
            let (estimate, difference) = (cell.estimate.as_ref(), row.told(kernel));
            let ci95 = estimate.and_then(|e| e.ci95);
            let diff_ci95 = difference.and_then(|d| d.ci95);
            let mut line = origin(&comparison.provenance, name);
            line.extend(metric(
                row.row.name,
                row.row.stat,
                &row.row.labels,
                row.row.unit,
                row.row.better.word(),
            ));
            line.extend([
                text(estimate.map(|e| e.n)),
                text(estimate.map(|e| e.mean)),
                text(ci95.map(|ci| ci[0])),
                text(ci95.map(|ci| ci[1])),
                text(difference.map(|d| d.diff)),
                text(difference.and_then(|d| d.diff_pct)),
                text(diff_ci95.map(|ci| ci[0])),
                text(diff_ci95.map(|ci| ci[1])),
                text(difference.and_then(|d| d.p)),
                text(difference.map(|d| d.significant)),
                lines.once(&comparison.provenance),
            ]);
            line.extend(kind(row.row.kind));
            line.push(text(difference.map(|d| d.for_equal_lengths)));
            lines.push(line);
        }
    }
    lines
}

pub fn run(report: &RunReport) -> String {
    let mut lines = Lines::new(&[
        "version",
        "model_version",
        "machine",
        "workload",
        "kernel",
        "metric",
        "stat",
        "labels",
        "unit",
        "better",
        "seed",
        "value",
        "hashes",
        "kind",
        "of",
        "over",
    ]);
    for m in &report.result.metrics {
        let mut line = origin(report.provenance, report.kernel);
        line.extend(metric(m.name, m.stat, &m.labels, m.unit, m.better.word()));
        line.extend([
            report.seed.to_string(),
            text(m.value.filter(|v| v.is_finite())),
            lines.once(report.provenance),
        ]);
        line.extend(kind(m.kind));
        lines.push(line);
    }
    lines.finish()
}

struct Lines {
    writer: csv::Writer<Vec<u8>>,
    /// Whether no line has been made yet.
    first: bool,
}

/// Writing into memory has no reason to fail.
const IN_MEMORY: &str = "a vector takes every write";

impl Lines {
    fn new(header: &[&str]) -> Lines {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(header).expect(IN_MEMORY);
        Lines { writer, first: true }
    }

    /// The hashes of all inputs, in the first line; the same in each of a thousand would be most of the file.
    fn once(&mut self, provenance: &Provenance) -> String {
        if std::mem::take(&mut self.first) { hashes(provenance) } else { String::new() }
    }

    fn push(&mut self, line: Vec<String>) {
        self.writer.write_record(line).expect(IN_MEMORY);
    }

    fn finish(self) -> String {
        String::from_utf8(self.writer.into_inner().expect(IN_MEMORY))
            .expect("only strings were written")
    }
}

fn origin(provenance: &Provenance, kernel: &str) -> Vec<String> {
    let Provenance { version, model_version, machine, workload, .. } = provenance;
    let parts: [&str; 5] = [version, model_version, machine, workload, kernel];
    parts.map(name).into()
}

fn metric(
    name: &str,
    stat: &str,
    labels: &Labels,
    unit: &str,
    better: Option<&str>,
) -> Vec<String> {
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let labels = self::name(labels.join(";"));
    vec![name.into(), stat.into(), labels, unit.into(), better.unwrap_or("").into()]
}

/// `one`, or what a row is of many parts: how many, and which label they differ in.
fn kind(kind: Kind) -> [String; 3] {
    let parts = kind.parts();
    [kind.word().into(), text(parts.map(|parts| parts.of)), text(parts.map(|parts| parts.over))]
}

/// A text that is not ours.
fn name(text: impl AsRef<str>) -> String {
    let text = printable::lines(text.as_ref());
    let computes = text.starts_with(['=', '+', '-', '@', '\t', '\n']);
    format!("{}{text}", if computes { "'" } else { "" })
}

fn hashes(provenance: &Provenance) -> String {
    provenance
        .hashes
        .iter()
        .map(|(name, hash)| format!("{name}={hash}"))
        .collect::<Vec<_>>()
        .join(";")
}

fn text(value: Option<impl Display>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}
