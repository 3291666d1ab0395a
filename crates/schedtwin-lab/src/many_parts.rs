// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines with a clock or an idle state for each of many CPUs: what their parts did, in three rows in the place of hundreds.
//!
//! Where a metric has values of more than [`MANY`] parts (frequency domains, clusters, packages) that differ in the part
//! alone, the mean of the parts, the lowest and the highest become rows of their own, with `mean-of-160`, `lowest-of-160`
//! and `highest-of-160` as the part. The longer table shows these; the parts themselves stay in what carries everything,
//! and in tables that ask for them.

use std::collections::BTreeMap;

use schedtwin_types::metric::Metric;

use crate::select::Key;

/// Up to so many parts have rows of their own in the longer table.
pub const MANY: usize = 16;

/// Labels whose values are parts of a machine.
const PARTS: [&str; 3] = ["domain", "cluster", "package"];

/// What a row is of, but for the part: name, stat, labels without the part, and what kind of part it is.
type Group<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, &'a str);

fn group_of<'a>((name, stat, labels): Key<'a>) -> Option<Group<'a>> {
    let part = labels.iter().map(|(key, _)| *key).find(|key| PARTS.contains(key))?;
    let others = labels.iter().filter(|(key, _)| *key != part);
    Some((name, stat, others.map(|(key, value)| (*key, value.as_str())).collect(), part))
}

/// Adds the rows of metrics with many parts, behind the parts' own.
pub fn summarise(metrics: &mut Vec<Metric>) {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (at, metric) in metrics.iter().enumerate() {
        if let Some(group) = group_of((metric.name, metric.stat, &metric.labels)) {
            groups.entry(group).or_default().push(at);
        }
    }
    let mut added: Vec<(usize, Metric)> = Vec::new();
    for ((_, _, _, part), members) in groups.iter().filter(|(_, members)| members.len() > MANY) {
        let last = *members.last().expect("more than none");
        let values: Vec<f64> = members.iter().filter_map(|at| metrics[*at].value).collect();
        let some = !values.is_empty();
        let count = members.len();
        for (word, value) in [
            ("mean", values.iter().sum::<f64>() / values.len() as f64),
            ("lowest", values.iter().copied().fold(f64::INFINITY, f64::min)),
            ("highest", values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        ] {
            let mut metric = metrics[last].clone();
            metric.value = some.then_some(value);
            let label = metric.labels.iter_mut().find(|(key, _)| key == part);
            label.expect("of this group").1 = format!("{word}-of-{count}");
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
        let is_sum = key.2.iter().any(|(_, value)| value.contains("-of-"));
        let many = |group: Group<'_>| groups.get(&group).is_some_and(|count| *count > MANY);
        !is_sum && group_of(key).is_some_and(many)
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
        let shown = |metric: &Metric| (metric.labels[0].1.clone(), metric.value.unwrap());
        let added: Vec<_> = many[21..24].iter().map(shown).collect();
        let expected = [("mean-of-21", 10.0), ("lowest-of-21", 0.0), ("highest-of-21", 20.0)];
        assert_eq!(added, expected.map(|(part, value)| (part.to_string(), value)));
        assert_eq!(many[24].name, "freq_mean");

        let hidden = one_of_many(many.iter().map(|m| (m.name, m.stat, &m.labels)));
        let hidden: Vec<bool> = many.iter().map(|m| hidden((m.name, m.stat, &m.labels))).collect();
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
