// SPDX-License-Identifier: GPL-2.0-or-later
//! A suite from its file: all faults at once, each with its place.
//!
//! ```toml
//! name = "mine"
//! description = "what it is for, in one line"
//! baseline = "linux-7.3"
//! properties = ["starvation", "latency-bound=500ms"]
//!
//! [[job]]
//! name = "scrolling"
//! machines = ["pixel6"]
//! workloads = ["ui-phone"]
//! duration = "2s"
//! measure = [{ metric = "power.mean" }, { metric = "wakeup_latency.p99", weight = 2, least = 10 }]
//! ```
//!
//! `seeds` is 4, `first_seed` 1, `cap` 4, `vary_percent` 25, `least_work` 0.5 and a `weight` 1 unless they are said.

use std::sync::Arc;

use schedtwin_engine::result::{Better, Bounds, Property};
use schedtwin_input::{
    Diagnostics, Located, Source, TableReader, TomlDocument, did_you_mean, read_source,
};
use schedtwin_types::metric::METRICS;

use super::suite::{Job, Measure, Suite, names, source};
use crate::selector::Selector;
use crate::study::read::{Number, located, parse_duration};

/// Runs of a job beyond this are a typing error.
const MOST_SEEDS: u64 = 1000;
/// The largest variation: runs of twice the duration.
const MOST_VARY_PERCENT: u64 = 100;

/// The suite of that name, or of that file.
pub fn load(name: &str) -> Result<Suite, Diagnostics> {
    if is_path(name) {
        return read(&read_source(name)?);
    }
    if let Some(source) = source(name) {
        return read(&source);
    }
    let help = match did_you_mean(name, names()) {
        Some(near) => format!("did you mean `{near}`? (`schedtwin list suites` lists all)"),
        None => "`schedtwin list suites` lists them; a path ends in .toml".to_string(),
    };
    let mut faults = Diagnostics::new();
    let source = Source::new("<command line>", name);
    faults.push(&source, 0..name.len(), format!("there is no suite `{name}`"), Some(help));
    Err(faults)
}

/// Whether it names a file.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// Reads the text of a suite.
pub fn read(source: &Arc<Source>) -> Result<Suite, Diagnostics> {
    let document = TomlDocument::parse(source)?;
    let mut faults = Diagnostics::new();
    let f = &mut faults;
    let mut file = document.reader();
    let name = file.required("name", f);
    let description = file.required("description", f);
    let baseline = file.required("baseline", f);
    let seeds = whole(&mut file, "seeds", 4, 1..=MOST_SEEDS, f);
    let first_seed = whole(&mut file, "first_seed", 1, 0..=u64::MAX - MOST_SEEDS, f);
    let vary_percent = whole(&mut file, "vary_percent", 25, 0..=MOST_VARY_PERCENT, f);
    let cap = number(&mut file, "cap", 4.0, |x| x > 1.0, f);
    let least_work = number(&mut file, "least_work", 0.5, |x| (0.0..=1.0).contains(&x), f);
    let (properties, bounds) = properties(&mut file, f);
    let jobs: Vec<Job> = file.tables("job", f).into_iter().filter_map(|t| job(t, f)).collect();
    for (at, one) in jobs.iter().enumerate() {
        if jobs[..at].iter().any(|other| other.name == one.name) {
            f.push_whole(source, format!("there are two jobs named `{}`", one.name), None);
        }
    }
    if f.is_empty() && !jobs.iter().any(|job| job.weight > 0.0) {
        f.push_whole(source, "a suite has jobs with a weight above 0: [[job]]", None);
    }
    file.finish(f);
    faults.sort();
    let (Some(name), Some(description), Some(baseline), true) =
        (name, description, baseline, faults.is_empty())
    else {
        return Err(faults);
    };
    Ok(Suite {
        source: source.clone(),
        name,
        description,
        baseline,
        seeds,
        first_seed,
        cap,
        vary_percent,
        least_work,
        properties,
        bounds,
        jobs,
    })
}

fn properties(file: &mut TableReader, f: &mut Diagnostics) -> (Vec<Property>, Bounds) {
    let texts: Vec<Located<String>> = file.optional("properties", f).unwrap_or_default();
    let (mut properties, mut bounds) = (Vec::new(), Bounds::default());
    for text in &texts {
        let name = text.value.split('=').next().unwrap_or_default().trim();
        let known = Property::named(name)
            .ok_or_else(|| format!("{name:?} is no property; there are {}", Property::names()));
        let Some(property) = located(text, known, f) else { continue };
        if text.value.contains('=') {
            located(text, bounds.set(&text.value), f);
        }
        if properties.contains(&property) {
            f.push_at(&text.at, format!("{name} is named twice"), None);
        }
        properties.push(property);
    }
    (properties, bounds)
}

fn job(mut reader: TableReader, f: &mut Diagnostics) -> Option<Job> {
    let name = reader.required("name", f);
    let machines = several(&mut reader, "machines", f);
    let workloads = several(&mut reader, "workloads", f);
    let duration = reader
        .required::<Located<String>>("duration", f)
        .and_then(|text| located(&text, parse_duration(&text.value), f));
    let weight = number(&mut reader, "weight", 1.0, |x| x >= 0.0, f);
    let held_out = reader.optional("held_out", f).unwrap_or(false);
    let at = reader.location_of("measure");
    let had = f.0.len();
    let measures: Vec<Measure> =
        reader.tables("measure", f).into_iter().filter_map(|t| measure(t, f)).collect();
    if f.0.len() == had && !measures.iter().any(|measure| measure.weight > 0.0) {
        let help = "measure = [{ metric = \"power.mean\" }]".to_string();
        f.push_at(&at, "a job measures something with a weight above 0", Some(help));
    }
    reader.finish(f);
    Some(Job {
        name: name?,
        machines: machines?,
        workloads: workloads?,
        duration: duration?,
        weight,
        held_out,
        measures,
    })
}

/// A list with at least one text.
fn several(reader: &mut TableReader, key: &str, f: &mut Diagnostics) -> Option<Vec<String>> {
    let list: Located<Vec<String>> = reader.required(key, f)?;
    if list.value.is_empty() {
        f.push_at(&list.at, format!("`{key}` has at least one"), None);
        return None;
    }
    Some(list.value)
}

fn measure(mut reader: TableReader, f: &mut Diagnostics) -> Option<Measure> {
    let metric: Option<Located<String>> = reader.required("metric", f);
    let better: Option<Located<String>> = reader.optional("better", f);
    let weight = number(&mut reader, "weight", 1.0, |x| x >= 0.0, f);
    let least = number(&mut reader, "least", 0.0, |x| x >= 0.0, f);
    let at = reader.location().clone();
    reader.finish(f);
    let metric = metric?;
    let selector = match Selector::parse_list_of("metric", &metric.value).as_deref() {
        Ok([one]) => one.clone(),
        Ok(_) => {
            f.push_at(&metric.at, "a measure is one metric", None);
            return None;
        }
        Err(faults) => {
            for fault in &faults.0 {
                f.push_at(&metric.at, fault.message.clone(), fault.help.clone());
            }
            return None;
        }
    };
    let name = metric.value.split(['.', ',', '{', ' ']).next().unwrap_or_default();
    let declared = METRICS.iter().find(|metric| metric.name == name).map(|metric| metric.better);
    let better = match better.as_ref().map(|word| word.value.as_str()) {
        Some("higher") => Better::Higher,
        Some("lower") => Better::Lower,
        Some(_) => {
            let at = better.map_or(at, |word| word.at);
            f.push_at(&at, "`higher` or `lower` is better", None);
            return None;
        }
        None => declared.unwrap_or(Better::Neutral),
    };
    if better == Better::Neutral {
        let help = Some("add better = \"lower\" or \"higher\"".to_string());
        f.push_at(&metric.at, format!("more or less of {name} is neither better nor worse"), help);
        return None;
    }
    Some(Measure { selector, better, weight, least })
}

/// A whole number in a range, or what is meant where it is left out.
fn whole(
    reader: &mut TableReader,
    key: &str,
    absent: u64,
    range: std::ops::RangeInclusive<u64>,
    f: &mut Diagnostics,
) -> u64 {
    let Some(found) = reader.optional::<Located<u64>>(key, f) else { return absent };
    if !range.contains(&found.value) {
        let message = format!("`{key}` is from {} to {}", range.start(), range.end());
        f.push_at(&found.at, message, None);
    }
    found.value
}

/// A number that fits, or what is meant where it is left out.
fn number(
    reader: &mut TableReader,
    key: &str,
    absent: f64,
    fits: impl Fn(f64) -> bool,
    f: &mut Diagnostics,
) -> f64 {
    let Some(found) = reader.optional::<Located<Number>>(key, f) else { return absent };
    if !fits(found.value.value) {
        let range = match key {
            "cap" => "above 1",
            "least_work" => "from 0 to 1",
            _ => "0 or above",
        };
        f.push_at(&found.at, format!("`{key}` is {range}"), None);
    }
    found.value.value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_of_a_suite_come_at_once_with_their_places() {
        let text = r#"
name = "bad"
baseline = "linux-7.3"
cap = 0.5
seeds = 0
properties = ["hunger", "starvation=never"]
[[job]]
name = "a"
machines = []
workloads = ["w1"]
duration = "soon"
measure = [{ metric = "powre" }, { metric = "migrations" }, { metric = "power", better = "more" }]
weigth = 2
"#;
        let faults = read(&Source::new("bad.toml", text)).unwrap_err().to_string();
        for part in [
            "bad.toml:4:7: `cap` is above 1",
            "`seeds` is from 1 to 1000",
            "\"hunger\" is no property",
            "\"never\" is no time",
            "`machines` has at least one",
            "no metric is named \"powre\"",
            "more or less of migrations is neither better nor worse",
            "`higher` or `lower` is better",
            "weigth",
            "description",
            "bad.toml:11:12",
        ] {
            assert!(faults.contains(part), "{part}: {faults}");
        }
        let faults = load("defualt").unwrap_err().to_string();
        assert!(faults.contains("did you mean `default`?"), "{faults}");
    }
}
