// SPDX-License-Identifier: GPL-2.0-or-later
//! Which of the many rows a table shows.
//!
//! A run of an 8-CPU phone measures several hundred numbers; a table that is pasted into a cover letter has a dozen.
//! Each metric's declaration ([`schedtwin_types::metric`]) says which of its stats are headlines and which belong into
//! the longer table, of the whole machine and of its parts. Parts are headlines only where they are few, so that the
//! default table of a machine and a workload always has the same rows, about a dozen. JSON and CSV carry everything.

use std::collections::BTreeMap;

use schedtwin_types::metric::{Kind, Rows, declared};

use crate::measured::Labels;

/// Labels that make a row one of very many; such rows are left to `--all` and `--metric`.
const DETAIL_LABELS: [&str; 6] = ["task", "cpu", "khz", "source", "while", "over"];

/// Parts of a machine (frequency domains, packages) are headlines if they are at most so many.
const FEW_PARTS: usize = 3;

/// The key of a row: name, stat, labels, kind.
pub type Key<'a> = (&'a str, &'a str, &'a Labels, Kind);

/// Whether a row is of the whole machine and workload.
fn is_whole((_, _, labels, kind): Key) -> bool {
    labels.is_empty() && kind == Kind::One
}

/// Whether a row is about one task, CPU, frequency, ... of many.
fn is_detail(labels: &Labels) -> bool {
    labels.iter().any(|(key, _)| DETAIL_LABELS.contains(key))
}

fn lists(rows: Rows, key: Key) -> bool {
    let stats = if is_whole(key) { rows.whole } else { rows.parts };
    stats.contains(&key.1)
}

/// How many rows there are of each name and stat: counted once, then asked of every row.
pub struct Counts<'a>(BTreeMap<(&'a str, &'a str), Count<'a>>);

#[derive(Default)]
struct Count<'a> {
    /// Of the whole machine: without a label.
    wholes: usize,
    /// Of its parts, without those that are details.
    parts: usize,
    /// With one label: which, and how many.
    by_label: Vec<(&'a str, usize)>,
}

impl<'a> Counts<'a> {
    /// Counts rows.
    pub fn of(all: impl Iterator<Item = Key<'a>>) -> Counts<'a> {
        let mut counts: BTreeMap<(&str, &str), Count> = BTreeMap::new();
        // Rows that sum up others are counted with none of them.
        for (name, stat, labels, _) in all.filter(|key| key.3 == Kind::One) {
            let count = counts.entry((name, stat)).or_default();
            count.parts += usize::from(!labels.is_empty() && !is_detail(labels));
            match labels.as_slice() {
                [] => count.wholes += 1,
                [(label, _)] => match count.by_label.iter_mut().find(|(known, _)| known == label) {
                    Some((_, rows)) => *rows += 1,
                    None => count.by_label.push((label, 1)),
                },
                _ => {}
            }
        }
        Counts(counts)
    }
}

/// Whether a row belongs into the default table. `all` counts every row that has a value.
pub fn is_headline(key: Key, all: &Counts) -> bool {
    let (name, stat, labels, kind) = key;
    let Some(metric) = declared(name) else { return false };
    if is_detail(labels) || !lists(metric.headline, key) {
        return false;
    }
    let parts = all.0.get(&(name, stat)).map_or(0, |count| count.parts);
    is_whole(key) || (kind == Kind::One && parts <= FEW_PARTS)
}

/// Whether a row belongs into the longer table.
///
/// ```
/// use schedtwin_lab::select::is_listed;
/// use schedtwin_types::metric::Kind::One;
/// assert!(is_listed(("power", "mean", &vec![("domain", "cpu".into())], One)));
/// assert!(!is_listed(("power", "mean", &vec![("cpu", "3".into())], One)));
/// assert!(!is_listed(("wakeup_latency", "p50", &vec![], One)));
/// ```
pub fn is_listed(key: Key) -> bool {
    let Some(metric) = declared(key.0) else { return false };
    let either = [metric.headline, metric.more].into_iter().any(|rows| lists(rows, key));
    either && !is_detail(key.2)
}

/// Whether a row repeats the row of the whole machine: the only cluster of a machine is the machine.
/// `all` counts every row.
pub fn repeats_the_whole((name, stat, labels, kind): Key, all: &Counts) -> bool {
    let ([(part, _)], Some(count)) = (labels.as_slice(), all.0.get(&(name, stat))) else {
        return false;
    };
    kind == Kind::One && count.wholes == 1 && count.by_label.contains(&(*part, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_types::metric::Parts;

    fn domain(name: &str) -> Labels {
        vec![("domain", name.to_string())]
    }

    #[test]
    fn the_only_part_repeats_the_whole() {
        let (whole, little, big, cpu) =
            (vec![], domain("little"), domain("big"), vec![("cpu", "0".to_string())]);
        let check = |rows: &[&Labels], labels: &Labels| {
            let all = rows.iter().map(|l| ("power", "mean", *l, Kind::One));
            repeats_the_whole(("power", "mean", labels, Kind::One), &Counts::of(all))
        };
        assert!(check(&[&whole, &little, &cpu], &little));
        assert!(check(&[&whole, &little], &little), "alone beside the whole");
        assert!(!check(&[&whole, &little, &cpu], &whole));
        assert!(!check(&[&whole, &little, &big], &little));
        assert!(!check(&[&little], &little), "there is no whole to repeat");
    }

    #[test]
    fn parts_are_headlines_only_where_they_are_few() {
        let (whole, cpu) = (vec![], vec![("cpu", "0".to_string())]);
        let check = |domains: usize, labels: &Labels| {
            let parts: Vec<Labels> = (0..domains).map(|d| domain(&d.to_string())).collect();
            let all = parts.iter().chain([&whole, &cpu]).map(|l| ("power", "mean", l, Kind::One));
            is_headline(("power", "mean", labels, Kind::One), &Counts::of(all))
        };
        assert!(check(3, &domain("0")) && !check(4, &domain("0")));
        assert!(check(4, &whole) && !check(1, &cpu));
        assert!(
            is_listed(("power", "mean", &domain("0"), Kind::One)),
            "in the longer table however many"
        );
        let none = Counts::of(std::iter::empty());
        assert!(!is_headline(("freq_mean", "mean", &domain("0"), Kind::One), &none));
    }

    #[test]
    fn a_row_that_sums_up_parts_is_no_row_of_the_whole() {
        let sum = Kind::Mean(Parts { over: "domain", of: 20 });
        let (none, parts): (Labels, Vec<Labels>) =
            (vec![], (0..20).map(|d| domain(&d.to_string())).collect());
        let ones = parts.iter().map(|labels| ("power", "mean", labels, Kind::One));
        let all = Counts::of(ones.chain([("power", "mean", &none, sum)]));
        assert!(!is_headline(("power", "mean", &none, sum), &all));
        assert!(is_listed(("power", "mean", &none, sum)));
        assert_eq!(all.0[&("power", "mean")].wholes, 0);
    }
}
