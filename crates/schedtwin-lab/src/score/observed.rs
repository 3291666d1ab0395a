// SPDX-License-Identifier: GPL-2.0-or-later
//! The part of a run that a score needs, and its form among kept results.

use schedtwin_engine::result::{Property, RunResult};
use schedtwin_input::Diagnostics;
use schedtwin_types::metric::{CPU_TIME, ELAPSED, THROUGHPUT};

use super::suite::{Job, Suite};
use crate::many_parts;
use crate::select::Key;
use crate::value;
use crate::verdict::words;

/// The work of a task group in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// Its name.
    pub task: String,
    /// Jobs that ended, in a second.
    pub jobs: f64,
    /// Its CPU time, seconds in a second.
    pub cpu: f64,
}

/// A property that was broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// Which.
    pub property: Property,
    /// The number of intervals beyond the bound.
    pub count: u64,
    /// The longest of them, ns.
    pub longest: u64,
    /// The breach in words.
    pub words: String,
}

/// The part of a run that counts.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Observed {
    /// By measure of the job; `None`: it was not measured.
    pub values: Vec<Option<f64>>,
    /// The tasks.
    pub tasks: Vec<Done>,
    /// Properties of the suite that were broken.
    pub broken: Vec<Broken>,
    /// What ended the run, or kept it from ending.
    pub ended: Vec<String>,
}

impl Observed {
    /// Takes it from a result; the faults of measures that the run does not have are `missing`.
    pub fn of(
        mut result: RunResult,
        suite: &Suite,
        job: &Job,
        missing: &mut Diagnostics,
    ) -> Observed {
        many_parts::summarise(&mut result.metrics);
        let metrics = &result.metrics;
        let keys: Vec<Key> = metrics.iter().map(|m| (m.name, m.stat, &m.labels, m.kind)).collect();
        let value = |selector| {
            let at = missing.absorb(value::only(&keys, selector))?;
            metrics[at].value.filter(|value| value.is_finite())
        };
        let values: Vec<Option<f64>> =
            job.measures.iter().map(|measure| &measure.selector).map(value).collect();
        let whole = |name| metrics.iter().find(|m| m.name == name && m.is_whole());
        let seconds = whole(ELAPSED.name).and_then(|m| m.value).filter(|s| *s > 0.0);
        let mut tasks: Vec<Done> = Vec::new();
        for metric in metrics.iter() {
            let [("task", task)] = metric.labels.as_slice() else { continue };
            let Some(value) = metric.value else { continue };
            let at = tasks.iter().position(|done| done.task == *task).unwrap_or_else(|| {
                tasks.push(Done { task: task.clone(), jobs: 0.0, cpu: 0.0 });
                tasks.len() - 1
            });
            if metric.name == THROUGHPUT.name {
                tasks[at].jobs = value;
            } else if metric.name == CPU_TIME.name {
                tasks[at].cpu = value / seconds.unwrap_or(1.0);
            }
        }
        let broken = result.broken.iter().filter(|b| suite.properties.contains(&b.property));
        let broken = broken.map(|breach| Broken {
            property: breach.property,
            count: breach.count,
            longest: breach.longest,
            words: words(breach),
        });
        Observed { values, tasks, broken: broken.collect(), ended: result.ended }
    }

    /// As kept results have it: names and texts.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let value = |v: &Option<f64>| ("value", v.map_or(String::new(), |v| v.to_string()));
        let task = |t: &Done| ("task", format!("{} {} {}", t.jobs, t.cpu, t.task));
        let broken = |b: &Broken| {
            let Broken { property, count, longest, words } = b;
            ("broken", format!("{property} {count} {longest} {words}"))
        };
        let ended = self.ended.iter().map(|text| ("ended", text.clone()));
        (self.values.iter().map(value))
            .chain(self.tasks.iter().map(task))
            .chain(self.broken.iter().map(broken))
            .chain(ended)
            .collect()
    }

    /// The converse; `None`: it is something else.
    pub fn read(texts: Vec<(String, String)>) -> Option<Observed> {
        let mut observed = Observed::default();
        for (name, text) in texts {
            match name.as_str() {
                "value" if text.is_empty() => observed.values.push(None),
                "value" => observed.values.push(Some(text.parse().ok()?)),
                "task" => {
                    let mut words = text.splitn(3, ' ');
                    let jobs = words.next()?.parse().ok()?;
                    let cpu = words.next()?.parse().ok()?;
                    observed.tasks.push(Done { task: words.next()?.to_string(), jobs, cpu });
                }
                "broken" => {
                    let mut parts = text.splitn(4, ' ');
                    observed.broken.push(Broken {
                        property: Property::named(parts.next()?)?,
                        count: parts.next()?.parse().ok()?,
                        longest: parts.next()?.parse().ok()?,
                        words: parts.next()?.to_string(),
                    });
                }
                "ended" => observed.ended.push(text),
                _ => return None,
            }
        }
        Some(observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_reads_back_as_it_was() {
        let observed = Observed {
            values: vec![Some(0.1 + 0.2), None],
            tasks: vec![Done { task: "android.ui 2".into(), jobs: 58.61, cpu: 1e-9 }],
            broken: vec![Broken {
                property: Property::Starvation,
                count: 2,
                longest: 5_000_000_000,
                words: "ui waited 5.00 s".into(),
            }],
            ended: vec!["it ended, at 4 s".into()],
        };
        let texts = observed.texts().into_iter().map(|(name, text)| (name.to_string(), text));
        assert_eq!(Observed::read(texts.collect()), Some(observed));
        assert_eq!(Observed::read(vec![("power.mean".into(), "2".into())]), None);
    }
}
