// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of rows as users write them: `wakeup_latency.p99,task=ui`, for `--metric` and `--fail-if`.
//!
//! ```text
//! list     = selector { "," selector }
//! selector = name [ "." stat ] { "," key "=" value }
//! ```
//!
//! The titles of tables mean the same: `wakeup_latency p99 task=ui`, `power domain=big`.
//!
//! Of machines with many parts, rows that sum them up ([`crate::many_parts`]) are meant by `row`: `power,row=highest` is the power
//! of the domain that has most, `row=mean` and `row=lowest` likewise. Without it a selector means rows of one thing.
//!
//! `*` stands for any letters, in names, stats and values: `idle_too_*`, `power,domain=*`. Labels may also stand in braces,
//! as `--fail-if` has them: `power{domain=big}`.
//!
//! A selector means the rows that have its labels and the fewest others: `power` is the power of all, `freq_mean` that of
//! each frequency domain (there is none of all), but not that while executing, which has a label more. Without a stat it
//! means every stat.
//!
//! Names, stats and keys are checked against the declarations before anything runs; whether a run measured the row,
//! and which tasks and clusters there are, is known after it.

use std::ops::Range;
use std::sync::Arc;

use schedtwin_input::{Diagnostics, Source, did_you_mean};
use schedtwin_types::metric::{DeclaredMetric, Kind, METRICS};
use schedtwin_types::wildcard::{Wildcards, matches};

use crate::many_parts::MANY;
use crate::select::Key;

/// The name that stands among the labels of a selector and asks for a kind of rows.
const ROW: &str = "row";

/// More choices than this are not listed in a message.
const LISTED: usize = 40;

/// Names rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector {
    source: Arc<Source>,
    /// Where it stands in the source.
    span: Range<usize>,
    name: String,
    stat: Option<String>,
    labels: Vec<(String, String)>,
}

/// Whether `text` is what `pattern` says; `*` is any letters.
fn fits(pattern: &str, text: &str) -> bool {
    matches(pattern, text, Wildcards::Star)
}

/// Each item once, in order.
fn distinct(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// `did you mean x?`, or the choices after `lead`.
fn help(word: &str, choices: &[String], lead: &str) -> String {
    if let Some(near) = did_you_mean(word, choices.iter().map(String::as_str)) {
        return format!("did you mean {near}?");
    }
    let mut list = choices.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if choices.len() > LISTED {
        list.push_str(", ...");
    }
    format!("{lead} {list}")
}

impl Selector {
    /// Reads what stands behind one `--metric`; all faults at once.
    pub fn parse_list(text: &str) -> Result<Vec<Selector>, Diagnostics> {
        Selector::parse_list_of("--metric", text)
    }

    /// The same behind another option.
    pub fn parse_list_of(option: &str, text: &str) -> Result<Vec<Selector>, Diagnostics> {
        let source = Source::new(option, text);
        let mut faults = Diagnostics::new();
        let mut selectors: Vec<Selector> = Vec::new();
        let mut at = 0;
        for piece in text.split([',', '{', ' ']) {
            let span = at..at + piece.len();
            let behind_space = at > 0 && text.as_bytes()[at - 1] == b' ';
            at = span.end + 1;
            // A space beside another sign separates nothing.
            let beside_sign = behind_space || text.as_bytes().get(span.end) == Some(&b' ');
            if piece.is_empty() && beside_sign {
                continue;
            }
            let piece = piece.trim_end_matches('}');
            // As tables have it: `wakeup_latency p99 task=ui`.
            if behind_space
                && let Some(selector) = selectors.last_mut()
                && selector.stat.is_none()
                && METRICS.iter().any(|metric| {
                    fits(&selector.name, metric.name) && metric.stats.contains(&piece)
                })
            {
                selector.stat = Some(piece.to_string());
                selector.span.end = span.end;
                continue;
            }
            match (piece.split_once('='), selectors.last_mut()) {
                (Some((key, value)), Some(selector)) => {
                    selector.labels.push((key.trim().to_string(), value.trim().to_string()));
                    selector.span.end = span.end;
                }
                (None, _) if !piece.is_empty() => {
                    let (name, stat) = match piece.split_once('.') {
                        Some((name, stat)) => (name, Some(stat.trim().to_string())),
                        None => (piece, None),
                    };
                    let name = name.trim().to_string();
                    selectors.push(Selector {
                        source: source.clone(),
                        span,
                        name,
                        stat,
                        labels: vec![],
                    });
                }
                _ => {
                    let help = "for example power or wakeup_latency.p99,task=ui".to_string();
                    faults.push(&source, span, "the name of a metric is missing", Some(help));
                }
            }
        }
        for selector in &selectors {
            faults.absorb(selector.check());
        }
        faults.into_result(selectors)
    }

    /// A part of a condition, checked.
    pub fn new(
        source: &Arc<Source>,
        span: Range<usize>,
        name: String,
        stat: Option<String>,
        labels: Vec<(String, String)>,
    ) -> Result<Selector, Diagnostics> {
        let selector = Selector { source: source.clone(), span, name, stat, labels };
        selector.check()?;
        Ok(selector)
    }

    /// As written.
    pub fn text(&self) -> &str {
        self.source.text[self.span.clone()].trim()
    }

    /// The units of the metrics that fit the name, each once.
    pub fn units(&self) -> Vec<&'static str> {
        let named = METRICS.iter().filter(|metric| fits(&self.name, metric.name));
        let mut units: Vec<&'static str> = named.map(|metric| metric.unit).collect();
        units.sort_unstable();
        units.dedup();
        units
    }

    /// The stat, if one is named.
    pub fn stat(&self) -> Option<&str> {
        self.stat.as_deref()
    }

    pub(crate) fn fault(&self, message: String, help: String) -> Diagnostics {
        let mut faults = Diagnostics::new();
        faults.push(&self.source, self.span.clone(), message, Some(help));
        faults
    }

    /// Whether anything of this kind is declared.
    fn check(&self) -> Result<(), Diagnostics> {
        let named: Vec<&DeclaredMetric> =
            METRICS.iter().copied().filter(|metric| fits(&self.name, metric.name)).collect();
        if named.is_empty() {
            let names: Vec<String> = METRICS.iter().map(|metric| metric.name.into()).collect();
            let message = format!("no metric is named {:?}", self.name);
            return Err(self.fault(message, help(&self.name, &names, "there are")));
        }
        let stats = distinct(named.iter().flat_map(|metric| metric.stats).map(ToString::to_string));
        if let Some(stat) = &self.stat
            && !stats.iter().any(|known| fits(stat, known))
        {
            let message = format!("{} has no {stat}", self.name);
            return Err(self.fault(message, format!("it has {}", stats.join(", "))));
        }
        let keys = distinct(
            named.iter().flat_map(|metric| metric.labels.concat()).map(ToString::to_string),
        );
        for (key, value) in &self.labels {
            if key == ROW {
                if !Kind::WORDS.iter().any(|word| fits(value, word)) {
                    let message = format!("there are no rows of kind {value:?}");
                    return Err(
                        self.fault(message, format!("there are {}", Kind::WORDS.join(", ")))
                    );
                }
            } else if !keys.contains(key) {
                let message = format!("{} has no label {key:?}", self.name);
                let help = match keys.as_slice() {
                    [] => "it has no labels".to_string(),
                    keys => format!("its labels are {}", keys.join(", ")),
                };
                return Err(self.fault(message, help));
            }
        }
        Ok(())
    }

    /// Which of `keys` are meant, in their order; none of them is an error.
    pub fn pick(&self, keys: &[Key]) -> Result<Vec<usize>, Diagnostics> {
        let named: Vec<usize> =
            (0..keys.len()).filter(|at| fits(&self.name, keys[*at].0)).collect();
        if named.is_empty() {
            let only = METRICS.iter().filter(|metric| fits(&self.name, metric.name));
            let only: Vec<String> = distinct(only.filter_map(|m| m.only).map(str::to_string));
            let message = format!("{} was not measured", self.name);
            let measured = distinct(keys.iter().map(|key| key.0.to_string()));
            let help = match only.as_slice() {
                [] => help(&self.name, &measured, "measured were"),
                only => format!("it is measured by {}", only.join(", ")),
            };
            return Err(self.fault(message, help));
        }
        let has = |at: usize, (key, value): &(String, String)| {
            key == ROW || keys[at].2.iter().any(|(k, v)| k == key && fits(value, v))
        };
        let row = self.labels.iter().find(|(key, _)| key == ROW);
        let is_meant =
            |at: &usize| fits(row.map_or("one", |(_, word)| word.as_str()), keys[*at].3.word());
        let has_stat = |at: usize| self.stat.as_ref().is_none_or(|stat| fits(stat, keys[at].1));
        let mut found: Vec<usize> = named.iter().copied().filter(|at| has_stat(*at)).collect();
        if found.is_empty() {
            let stats = distinct(named.iter().map(|at| keys[*at].1.to_string()));
            let message = format!("no {} was measured", self.text());
            return Err(self.fault(message, format!("it has {}", stats.join(", "))));
        }
        let of_stat = found.clone();
        found.retain(is_meant);
        if found.is_empty() {
            let message = format!("no {} sums up many parts here", self.name);
            let help = format!("parts are summed up where there are more than {MANY}");
            return Err(self.fault(message, help));
        }
        found.retain(|at| self.labels.iter().all(|label| has(*at, label)));
        if found.is_empty() {
            let titles = distinct(of_stat.iter().map(|at| {
                let pair = |(key, value): &(&str, String)| format!("{key}={value}");
                keys[*at].2.iter().map(pair).collect::<Vec<_>>().join(",")
            }));
            let titles: Vec<String> = titles.into_iter().filter(|t| !t.is_empty()).collect();
            let message = format!("no {} has these labels", self.name);
            let word = self.labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>();
            return Err(self.fault(message, help(&word.join(","), &titles, "it has")));
        }
        let fewest = |name: &str| {
            found.iter().filter(|at| keys[**at].0 == name).map(|at| keys[*at].2.len()).min()
        };
        let stands = |at: &usize| Some(keys[*at].2.len()) == fewest(keys[*at].0);
        Ok(found.iter().copied().filter(stands).collect())
    }
}

impl Selector {
    /// As [`Selector::pick`], but where no stat is named only the total (`mean`, `sum` or `gmean`), or the only stat that there is.
    pub fn pick_totals(&self, keys: &[Key]) -> Result<Vec<usize>, Diagnostics> {
        let mut picked = self.pick(keys)?;
        if self.stat.is_some() {
            return Ok(picked);
        }
        let mut stats: Vec<&str> = Vec::new();
        for at in &picked {
            if !stats.contains(&keys[*at].1) {
                stats.push(keys[*at].1);
            }
        }
        let total = match stats.as_slice() {
            [only] => Some(*only),
            _ => ["mean", "sum", "gmean"].into_iter().find(|total| stats.contains(total)),
        };
        let Some(total) = total else {
            let message =
                format!("{} has several stats, and none of them is its total", self.text());
            return Err(self.fault(message, format!("it has {}", stats.join(", "))));
        };
        picked.retain(|at| keys[*at].1 == total);
        Ok(picked)
    }
}

/// Keeps the rows that any of the selectors means, in their order. One that means no row is a fault.
pub fn choose<T>(
    selectors: &[Selector],
    items: &mut Vec<T>,
    key_of: fn(&T) -> Key<'_>,
) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::new();
    let keys: Vec<Key> = items.iter().map(key_of).collect();
    let mut chosen = vec![false; items.len()];
    for selector in selectors {
        for at in faults.absorb(selector.pick(&keys)).unwrap_or_default() {
            chosen[at] = true;
        }
    }
    faults.into_result(())?;
    let mut chosen = chosen.into_iter();
    items.retain(|_| chosen.next().expect("one for each"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Labels, title};
    use schedtwin_types::metric::Parts;

    /// Name, stat and labels as `key=value`.
    const ROWS: [(&str, &str, &[&str]); 10] = [
        ("power", "mean", &[]),
        ("power", "mean", &["domain=little"]),
        ("power", "mean", &["domain=big"]),
        ("wakeup_latency", "mean", &[]),
        ("wakeup_latency", "p99", &[]),
        ("wakeup_latency", "p99", &["task=ui"]),
        ("freq_mean", "mean", &["domain=big"]),
        ("freq_mean", "mean", &["domain=big", "while=active"]),
        ("temperature", "max", &[]),
        ("temperature", "mean", &["node=soc"]),
    ];

    fn labels(pairs: &[&'static str]) -> Labels {
        let pair = |pair: &&'static str| {
            let (key, value) = pair.split_once('=').unwrap();
            (key, value.to_string())
        };
        pairs.iter().map(pair).collect()
    }

    fn choose_of(text: &str) -> Result<String, String> {
        let selectors = Selector::parse_list(text).map_err(|faults| faults.to_string())?;
        let mut rows: Vec<(&str, &str, Labels)> =
            ROWS.iter().map(|(name, stat, pairs)| (*name, *stat, labels(pairs))).collect();
        let lowest = Kind::Lowest(Parts { over: "domain", of: 20 });
        let mut rows: Vec<_> = rows.drain(..).map(|(n, s, l)| (n, s, l, Kind::One)).collect();
        rows.push(("power", "mean", Vec::new(), lowest));
        choose(&selectors, &mut rows, |(name, stat, labels, kind)| (name, stat, labels, *kind))
            .map_err(|faults| faults.to_string())?;
        let titles: Vec<String> = rows.iter().map(|(n, s, l, k)| title((n, s, l, *k))).collect();
        Ok(titles.join("; "))
    }

    #[test]
    fn selectors_mean_rows() {
        for (text, expected) in [
            ("power", "power mean"),
            ("power,domain=big", "power mean domain=big"),
            ("power{domain=big}", "power mean domain=big"),
            ("power domain=big", "power mean domain=big"),
            ("wakeup_latency p99 task=ui", "wakeup_latency p99 task=ui"),
            ("power, wakeup_latency.p99", "power mean; wakeup_latency p99"),
            ("power,domain=*", "power mean domain=little; power mean domain=big"),
            ("wakeup_latency", "wakeup_latency mean; wakeup_latency p99"),
            ("wakeup_latency.p99", "wakeup_latency p99"),
            ("wakeup_latency.*,task=u*", "wakeup_latency p99 task=ui"),
            ("temperature.mean , power", "power mean; temperature mean node=soc"),
            ("freq_mean", "freq_mean mean domain=big"),
            ("freq_mean,while=active", "freq_mean mean domain=big while=active"),
            ("*.max", "temperature max"),
            ("power,row=lowest", "power mean (lowest of 20 domains)"),
            ("power,row=one", "power mean"),
        ] {
            assert_eq!(choose_of(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_declared_is_refused_before_anything_runs() {
        for (text, message, help) in [
            ("powre", "no metric is named \"powre\"", "did you mean power?"),
            ("zzz", "no metric is named \"zzz\"", "there are elapsed, warmup"),
            ("power,energi", "no metric is named \"energi\"", "did you mean energy?"),
            ("power.p99", "power has no p99", "it has mean"),
            ("power,row=least", "there are no rows of kind", "one, mean, lowest, highest"),
            ("power,task=ui", "power has no label \"task\"", "its labels are domain, cluster"),
            ("ticks,cpu=1", "ticks has no label \"cpu\"", "it has no labels"),
            ("", "the name of a metric is missing", "for example power"),
            ("task=ui", "the name of a metric is missing", "for example power"),
            ("power,,energy", "the name of a metric is missing", "for example power"),
        ] {
            let faults = Selector::parse_list(text).unwrap_err().to_string();
            assert!(faults.contains(message) && faults.contains(help), "{text}: {faults}");
        }
        assert_eq!(Selector::parse_list("powre,energi").unwrap_err().0.len(), 2, "all at once");
    }

    #[test]
    fn what_was_not_measured_is_told_after_the_run() {
        for (text, message, help) in [
            ("jank", "jank was not measured", "by benchmarks of frames"),
            ("ticks", "ticks was not measured", "measured were power, wakeup_latency"),
            ("power,row=mean", "no power sums up many parts here", "more than 16"),
            ("power,domain=bgi", "no power has these labels", "did you mean domain=big?"),
            ("wakeup_latency.p50", "no wakeup_latency.p50 was measured", "it has mean, p99"),
        ] {
            let faults = choose_of(text).unwrap_err();
            assert!(faults.contains(message) && faults.contains(help), "{text}: {faults}");
        }
    }

    /// Only where not all are listed does the list end in dots.
    #[test]
    fn long_lists_are_cut() {
        let listed = |many: usize| {
            let choices: Vec<String> = (0..many).map(|n| format!("m{n}")).collect();
            help("?", &choices, "there are")
        };
        assert_eq!(listed(2), "there are m0, m1");
        assert!(listed(LISTED).ends_with(", m38, m39"), "{}", listed(LISTED));
        assert!(listed(LISTED + 1).ends_with(", m38, m39, ..."), "{}", listed(LISTED + 1));
    }
}
