// SPDX-License-Identifier: GPL-2.0-or-later
//! Values of a machine file's `[distance]` from what was measured.
//!
//! 1. `line_ns` of a class is the median over the repetitions of all of its pairs. Machine files want times that do not fall
//!    with the distance: a class that is nearer and slower (a cluster of small cores beside a ring of large ones) raises
//!    those behind it.
//! 2. `overlap_permille`, `copy_permille` and `handover_lines` are one number for a machine: the median over all pairs but
//!    threads of one core, which share their caches, unless there are no others.

use super::{Quantity, Row, Sample, key};
use schedtwin_machine::Distance;

/// The largest `overlap_permille` and `copy_permille`: a path waits for a line at most as long as it takes.
const PERMILLE: u64 = 1000;

/// The most lines of a hand-over, and the longest line, ns, that a machine file takes.
const MOST_LINES: u64 = 100;
const MOST_NS: u64 = 100_000;

/// A value and what it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The whole number that a machine file gets.
    pub written: u64,
    /// Repetitions of all pairs.
    pub sample: Sample,
    /// Whether each of the measurements was steady.
    pub is_steady: bool,
}

/// Time of a line by distance.
#[derive(Clone, Debug, PartialEq)]
pub struct LineValue {
    /// The distance.
    pub distance: Distance,
    /// Time by store and load, which is written.
    pub value: Value,
    /// The nearer distance whose longer time is written instead.
    pub raised_to: Option<Distance>,
    /// Time by compare-and-swap, to be shown.
    pub compare_and_swap: Option<Sample>,
}

/// Values of `[distance]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// `line_ns` of the classes that were measured, from near to far.
    pub line_ns: Vec<LineValue>,
    /// `overlap_permille`.
    pub overlap_permille: Option<Value>,
    /// `copy_permille`.
    pub copy_permille: Option<Value>,
    /// `handover_lines`.
    pub handover_lines: Option<Value>,
}

/// Makes the values of what was measured.
pub fn values(rows: &[Row]) -> Values {
    let mut line_ns: Vec<LineValue> = Vec::new();
    let mut distances: Vec<Distance> = rows.iter().filter_map(|row| row.distance).collect();
    distances.sort();
    distances.dedup();
    for &distance in &distances {
        let of_class = |row: &Row| row.distance == Some(distance);
        let Some(mut value) = pooled(rows, Quantity::Line, of_class, 1..=MOST_NS) else { continue };
        let mut raised_to = None;
        if let Some(nearer) = line_ns.last().filter(|nearer| nearer.value.written > value.written) {
            value.written = nearer.value.written;
            raised_to = Some(nearer.raised_to.unwrap_or(nearer.distance));
        }
        let compare_and_swap = pooled(rows, Quantity::CompareAndSwap, of_class, 0..=u64::MAX);
        let compare_and_swap = compare_and_swap.map(|value| value.sample);
        line_ns.push(LineValue { distance, value, raised_to, compare_and_swap });
    }
    let has_others = distances.iter().any(|distance| *distance != Distance::Core);
    let counts = |row: &Row| row.distance != Some(Distance::Core) || !has_others;
    Values {
        line_ns,
        overlap_permille: pooled(rows, Quantity::Overlap, counts, 1..=PERMILLE),
        copy_permille: pooled(rows, Quantity::CopyShare, counts, 0..=PERMILLE),
        handover_lines: pooled(rows, Quantity::HandoverLines, counts, 0..=MOST_LINES),
    }
}

impl Values {
    /// Whether nothing was measured that a file could get.
    pub fn is_empty(&self) -> bool {
        self.line_ns.is_empty()
    }
}

impl LineValue {
    /// Name of the distance in the file.
    pub fn key(&self) -> &'static str {
        key(self.distance)
    }
}

fn pooled(
    rows: &[Row],
    quantity: Quantity,
    counts: impl Fn(&Row) -> bool,
    range: std::ops::RangeInclusive<u64>,
) -> Option<Value> {
    let chosen: Vec<&Row> =
        rows.iter().filter(|row| row.quantity == quantity && counts(row)).collect();
    let sample = Sample::pool(chosen.iter().map(|row| &row.sample))?;
    let written = (sample.median().round() as u64).clamp(*range.start(), *range.end());
    Some(Value { written, sample, is_steady: chosen.iter().all(|row| row.is_steady) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(distance: Distance, quantity: Quantity, values: &[f64]) -> Row {
        let sample = Sample::of(values.to_vec());
        Row { distance: Some(distance), cpus: [0, 1], quantity, sample, is_steady: true }
    }

    fn written(values: &Values) -> Vec<(&'static str, u64)> {
        values.line_ns.iter().map(|line| (line.key(), line.value.written)).collect()
    }

    #[test]
    fn classes_have_the_median_of_all_pairs_and_never_fall() {
        let rows = [
            row(Distance::Cache, Quantity::Line, &[14.0, 15.0]),
            row(Distance::Cache, Quantity::Line, &[15.4, 90.0, 15.6]),
            row(Distance::Cache, Quantity::CompareAndSwap, &[21.0]),
            row(Distance::Cluster, Quantity::Line, &[50.2]),
            row(Distance::Node, Quantity::Line, &[0.2]),
            row(Distance::Machine, Quantity::Line, &[200.0]),
        ];
        let values = values(&rows);
        assert_eq!(
            written(&values),
            [("cluster", 50), ("llc", 50), ("node", 50), ("machine", 200)]
        );
        let raised: Vec<_> = values.line_ns.iter().map(|line| line.raised_to).collect();
        assert_eq!(raised, [None, Some(Distance::Cluster), Some(Distance::Cluster), None]);
        let llc = &values.line_ns[1];
        assert_eq!((llc.value.sample.median(), llc.value.sample.len()), (15.4, 5));
        assert_eq!(llc.compare_and_swap.as_ref().map(Sample::median), Some(21.0));
        assert_eq!(values.overlap_permille, None);
    }

    #[test]
    fn threads_of_a_core_count_only_where_there_are_no_others() {
        let threads = [
            row(Distance::Core, Quantity::Line, &[5.0]),
            row(Distance::Core, Quantity::Overlap, &[0.2]),
            row(Distance::Core, Quantity::HandoverLines, &[400.0]),
        ];
        let alone = values(&threads);
        assert_eq!(alone.overlap_permille.unwrap().written, 1);
        assert_eq!(alone.handover_lines.unwrap().written, 100);
        let mut others = row(Distance::Machine, Quantity::Overlap, &[1400.0]);
        others.is_steady = false;
        let copy = row(Distance::Machine, Quantity::CopyShare, &[-3.0]);
        let lines = row(Distance::Machine, Quantity::HandoverLines, &[2.4]);
        let both = values(&[&threads[..], &[others, copy, lines]].concat());
        let overlap = both.overlap_permille.unwrap();
        assert_eq!((overlap.written, overlap.is_steady), (1000, false));
        assert_eq!(both.copy_permille.unwrap().written, 0);
        assert_eq!(both.handover_lines.unwrap().written, 2);
        assert!(values(&[]).is_empty());
    }
}
