// SPDX-License-Identifier: GPL-2.0-or-later
//! Which of the many rows a table shows.
//!
//! A run of an 8-CPU phone measures several hundred numbers; a table that is pasted into a cover letter has a dozen.
//! Each metric's declaration ([`schedtwin_types::metric`]) says which of its stats are headlines and which belong into
//! the longer table, of the whole machine and of its parts. Parts are headlines only where they are few, so that the
//! default table of a machine and a workload always has the same rows, about a dozen. JSON and CSV carry everything.

use schedtwin_types::metric::{Rows, declared};

use crate::measured::Labels;

/// Labels that make a row one of very many; such rows are left to `--all` and `--metric`.
const DETAIL_LABELS: [&str; 6] = ["task", "cpu", "khz", "source", "while", "over"];

/// Parts of a machine (frequency domains, packages) are headlines if they are at most so many.
const FEW_PARTS: usize = 3;

/// What names a row: name, stat, labels.
pub type Key<'a> = (&'a str, &'a str, &'a Labels);

/// Whether a row is about one task, CPU, frequency, ... of many.
fn is_detail(labels: &Labels) -> bool {
    labels.iter().any(|(key, _)| DETAIL_LABELS.contains(key))
}

fn lists(rows: Rows, stat: &str, labels: &Labels) -> bool {
    let stats = if labels.is_empty() { rows.whole } else { rows.parts };
    stats.contains(&stat)
}

/// Whether a row belongs into the default table. `all` has the keys of every row that has a value.
pub fn is_headline<'a>((name, stat, labels): Key, all: impl Iterator<Item = Key<'a>>) -> bool {
    let Some(metric) = declared(name) else { return false };
    if is_detail(labels) || !lists(metric.headline, stat, labels) {
        return false;
    }
    let is_part = |(n, s, l): &Key| *n == name && *s == stat && !l.is_empty() && !is_detail(l);
    labels.is_empty() || all.filter(is_part).count() <= FEW_PARTS
}

/// Whether a row belongs into the longer table.
///
/// ```
/// use schedtwin_lab::select::is_listed;
/// assert!(is_listed(("power", "mean", &vec![("domain", "cpu".into())])));
/// assert!(!is_listed(("power", "mean", &vec![("cpu", "3".into())])));
/// assert!(!is_listed(("wakeup_latency", "p50", &vec![])));
/// ```
pub fn is_listed((name, stat, labels): Key) -> bool {
    let Some(metric) = declared(name) else { return false };
    let either = [metric.headline, metric.more].into_iter().any(|rows| lists(rows, stat, labels));
    either && !is_detail(labels)
}

/// Whether a row repeats the row of the whole machine: the only cluster of a machine is the machine.
/// `all` has the keys of every row.
pub fn repeats_the_whole<'a>(
    (name, stat, labels): Key,
    all: impl Iterator<Item = Key<'a>>,
) -> bool {
    let [(part, _)] = labels.as_slice() else { return false };
    let (mut wholes, mut parts) = (0, 0);
    for (_, _, other) in all.filter(|(n, s, _)| *n == name && *s == stat) {
        match other.as_slice() {
            [] => wholes += 1,
            [(key, _)] if key == part => parts += 1,
            _ => {}
        }
    }
    wholes == 1 && parts == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(name: &str) -> Labels {
        vec![("domain", name.to_string())]
    }

    #[test]
    fn the_only_part_repeats_the_whole() {
        let (whole, little, big, cpu) =
            (vec![], domain("little"), domain("big"), vec![("cpu", "0".to_string())]);
        let check = |rows: &[&Labels], labels: &Labels| {
            let all = rows.iter().map(|l| ("power", "mean", *l));
            repeats_the_whole(("power", "mean", labels), all)
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
            let all = parts.iter().chain([&whole, &cpu]).map(|l| ("power", "mean", l));
            is_headline(("power", "mean", labels), all)
        };
        assert!(check(3, &domain("0")) && !check(4, &domain("0")));
        assert!(check(4, &whole) && !check(1, &cpu));
        assert!(is_listed(("power", "mean", &domain("0"))), "in the longer table however many");
        assert!(!is_headline(("freq_mean", "mean", &domain("0")), std::iter::empty()));
    }
}
