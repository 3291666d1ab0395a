// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines with a clock or an idle state for each of many CPUs: what their parts did, in three rows in the place of hundreds.
//!
//! Where a metric has values of more than [`MANY`] parts (frequency domains, clusters, packages) that differ in the part
//! alone, the mean of the parts, the lowest and the highest become rows of their own, which have no such label but a
//! [`Kind`]: who adds up the rows of kind `one` counts each part once. The longer table shows these; the parts themselves stay in what carries everything,
//! and in tables that ask for them.

use std::collections::BTreeMap;

use schedtwin_types::metric::{Kind, Metric, Parts};

use crate::select::Key;

/// Up to so many parts have rows of their own in the longer table.
pub const MANY: usize = 16;

/// The description of a row without its part: name, stat, labels without the part, and the kind of
/// the part.
type Group<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, &'static str);

/// The group of a row of one part; `None`: it is of no part, or sums up a group.
fn group_of<'a>((name, stat, labels, kind): Key<'a>) -> Option<Group<'a>> {
    let part = labels.iter().map(|(key, _)| *key).find(|key| Parts::LABELS.contains(key))?;
    if kind != Kind::One {
        return None;
    }
    let others = labels.iter().filter(|(key, _)| *key != part);
    Some((name, stat, others.map(|(key, value)| (*key, value.as_str())).collect(), part))
}

/// Adds the rows of metrics with many parts, behind the parts' own.
pub fn summarise(metrics: &mut Vec<Metric>) {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (at, metric) in metrics.iter().enumerate() {
        if let Some(group) = group_of((metric.name, metric.stat, &metric.labels, metric.kind)) {
            groups.entry(group).or_default().push(at);
        }
    }
    let mut added: Vec<(usize, Metric)> = Vec::new();
    for ((_, _, _, part), members) in groups.iter().filter(|(_, members)| members.len() > MANY) {
        let last = *members.last().expect("more than none");
        let values: Vec<f64> = members.iter().filter_map(|at| metrics[*at].value).collect();
        let some = !values.is_empty();
        let parts = Parts { over: part, of: members.len() as u32 };
        for (kind, value) in [
            (Kind::Mean(parts), values.iter().sum::<f64>() / values.len() as f64),
            (Kind::Lowest(parts), values.iter().copied().fold(f64::INFINITY, f64::min)),
            (Kind::Highest(parts), values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        ] {
            let mut metric = metrics[last].clone();
            metric.value = some.then_some(value);
            metric.labels.retain(|(key, _)| key != part);
            metric.kind = kind;
            added.push((last, metric));
        }
    }
    if added.is_empty() {
        return;
    }
    added.sort_by_key(|(behind, _)| *behind);
    let mut added = added.into_iter().peekable();
    let parts = std::mem::take(metrics);
    metrics.reserve(parts.len() + added.len());
    for (at, metric) in parts.into_iter().enumerate() {
        metrics.push(metric);
        while let Some((_, sum)) = added.next_if(|(behind, _)| *behind == at) {
            metrics.push(sum);
        }
    }
}

/// Whether a row is one of many parts, which other rows sum up.
///
/// `all` has the keys of every row.
pub fn one_of_many<'a>(all: impl Iterator<Item = Key<'a>>) -> impl Fn(Key<'_>) -> bool {
    let mut groups: BTreeMap<Group<'a>, usize> = BTreeMap::new();
    for group in all.filter_map(group_of) {
        *groups.entry(group).or_default() += 1;
    }
    move |key| {
        let many = |group: Group<'_>| groups.get(&group).is_some_and(|count| *count > MANY);
        group_of(key).is_some_and(many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_types::metric::{FREQ_MEAN, POWER};

    fn of_domains(count: usize) -> Vec<Metric> {
        let power =
            |d: usize| POWER.value("mean", vec![("domain", format!("cpu{d}"))], Some(d as f64));
        let mut metrics: Vec<Metric> = (0..count).map(power).collect();
        metrics.push(FREQ_MEAN.value("mean", vec![("domain", "cpu0".into())], Some(7.0)));
        metrics
    }

    #[test]
    fn many_parts_get_three_rows_and_few_none() {
        let mut few = of_domains(MANY);
        summarise(&mut few);
        assert_eq!(few, of_domains(MANY));

        let mut many = of_domains(21);
        summarise(&mut many);
        let shown = |metric: &Metric| {
            assert!(metric.labels.is_empty() && !metric.is_whole(), "{metric:?}");
            (metric.kind.to_string(), metric.value.unwrap())
        };
        let added: Vec<_> = many[21..24].iter().map(shown).collect();
        let expected = [("mean", 10.0), ("lowest", 0.0), ("highest", 20.0)];
        assert_eq!(added, expected.map(|(word, value)| (format!("{word} of 21 domains"), value)));
        assert_eq!((many[24].name, many[24].kind), ("freq_mean", Kind::One));
        let ones = many.iter().filter(|m| m.name == "power" && m.kind == Kind::One);
        assert_eq!(ones.map(|m| m.value.unwrap()).sum::<f64>(), 210.0, "each part once");

        let key = |m: &'static Metric| (m.name, m.stat, &m.labels, m.kind);
        let many: &'static [Metric] = Vec::leak(many);
        let hidden = one_of_many(many.iter().map(key));
        let hidden: Vec<bool> = many.iter().map(|m| hidden(key(m))).collect();
        assert_eq!(hidden, [vec![true; 21], vec![false; 4]].concat());
    }

    #[test]
    fn parts_without_values_have_a_sum_without() {
        let mut metrics = of_domains(20);
        metrics.iter_mut().for_each(|metric| metric.value = None);
        summarise(&mut metrics);
        assert_eq!(metrics[20].value, None);
    }
}
