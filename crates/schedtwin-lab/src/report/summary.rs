// SPDX-License-Identifier: GPL-2.0-or-later
//! The changes in two or three sentences: what got better, what got worse, by how much, and what
//! did not change.
//!
//! The sentences speak of the headlines alone, or of the rows that were asked for, with the marks of the table: better and worse are what its stars say,
//! from a hundredth of the baseline on, and only of changes that are clear among so many headlines (Holm). Of many changes the clearest are named (those with the smallest p), in the order of the table.

use std::borrow::Cow;

use schedtwin_engine::result::Better;
use schedtwin_types::metric::{self, declared};

use super::Extent;
use super::cells::shown_rows;
use super::change::Change;
use super::signed;
use crate::compare::{ComparedRow, Comparison};
use crate::{stats, verdict};

/// Changes that a sentence names, beside one other kernel; of several kernels there is space for
/// fewer of each.
pub(super) const NAMED: usize = 4;
const NAMED_OF_SEVERAL: usize = 2;

/// With fewer runs most changes of some percent have no interval that says anything.
const FEW_RUNS: usize = 5;
/// The number of runs that `compare` makes where none is asked for.
const ENOUGH_RUNS: usize = 10;

/// More kernels than this are left to the table.
const MOST_KERNELS: usize = 8;

/// A sentence or a few for each kernel but the first; none where nothing can be said: one seed has no interval. `name`:
/// what the table calls a kernel.
pub fn sentences(
    comparison: &Comparison,
    extent: Extent,
    name: impl Fn(usize) -> String,
) -> Vec<String> {
    let others = comparison.kernels.len().saturating_sub(1);
    let base_alone = of_the_baseline(comparison, &name);
    if comparison.seeds.len() < 2 || others == 0 || others > MOST_KERNELS {
        // One seed has no interval, and many kernels no space; what is broken is told all the same.
        let grave_of =
            |kernel: usize| grave(&verdict::verdict(comparison, kernel), &name(kernel), &name(0));
        return (1..=others).flat_map(grave_of).chain(base_alone).collect();
    }
    // Of rows that were asked for by name there are no headlines.
    let (extent, what) = match extent {
        Extent::Chosen => (Extent::Chosen, "row"),
        _ => (Extent::Headlines, "headline"),
    };
    let shown = shown_rows(comparison, extent);
    let named = if others > 1 { NAMED_OF_SEVERAL } else { NAMED };
    let said = (1..=others).map(|kernel| of(comparison, (&shown.rows, what), kernel, &name, named));
    said.chain(base_alone).collect()
}

/// A row as a sentence tells it.
#[derive(Clone)]
pub(super) struct Told<'a> {
    pub title: Cow<'a, str>,
    pub change: String,
    pub p: f64,
    /// Of the change, percent; a row that was zero has no percent.
    pub size: f64,
}

fn of(
    comparison: &Comparison,
    (rows, what): (&[(String, &ComparedRow)], &str),
    kernel: usize,
    name: impl Fn(usize) -> String,
    named: usize,
) -> String {
    let (base, name) = (name(0), name(kernel));
    if comparison.identical_executions[kernel] == comparison.seeds.len() {
        return format!("{name} executed exactly as {base}: nothing changed.");
    }
    let (mut better, mut worse, mut other, mut unchanged) = (vec![], vec![], vec![], vec![]);
    let (mut doubtful, mut unknown, mut small, mut by_chance) = (vec![], vec![], vec![], vec![]);
    let (mut perhaps_worse, mut moved) = (vec![], vec![]);
    let looked_at: Vec<f64> = rows.iter().filter_map(|(_, row)| p_of(row, kernel)).collect();
    let sure = stats::holm(&looked_at);
    // Of what matters most, the rows of which nothing can be said.
    let mut undecided = vec![];
    for (title, row) in rows {
        let Some(difference) = row.told(kernel) else { continue };
        let change = Change::of(&difference, row.row.unit);
        let p = difference.p.unwrap_or(1.0);
        let size = difference.diff_pct.map_or(f64::INFINITY, f64::abs);
        let told = Told { title: title.into(), change: change.whole(), p, size };
        undecided.extend(undecided_text(title, row, &change).map(|text| (title, text)));
        match (change.verdict(row.row.better), row.row.better) {
            _ if row.not_judged => unknown.push(told),
            _ if row.doubtful => doubtful.push(told),
            ("", _) => unchanged.push(told),
            ("* worse", _) if told.p > sure => perhaps_worse.push(told),
            _ if told.p > sure => by_chance.push(told),
            _ if change.is_small() => small.push(told),
            (_, Better::Neutral) => other.push(told),
            ("* better", _) if let Some(delay) = moved_wait(comparison, row, kernel) => {
                moved.push((told, delay));
            }
            ("* better", _) => better.push(told),
            _ => worse.push(told),
        }
    }
    let found = verdict::verdict(comparison, kernel);
    let mut sentences = grave(&found, &name, &base);
    let only_better = !better.is_empty() && worse.is_empty();
    // Nobody calls a kernel better that breaks something or hurts somebody, or whose headlines have a mark for worse.
    let is_unsure = only_better && !perhaps_worse.is_empty();
    let calls_better = found.word() == verdict::Word::Headlines && !is_unsure;
    let [good, bad] = if calls_better { ["better", "worse"] } else { ["improved", "worsened"] };
    // The larger change says what the kernel is.
    let largest = |all: &[Told]| all.iter().map(|told| told.size).fold(-1.0, f64::max);
    let mut changed: Vec<(f64, String)> = Vec::new();
    for (word, all) in [(good, better), (bad, worse)] {
        if !all.is_empty() {
            changed.push((largest(&all), format!("{word}: {}", list(all, named, of_change))));
        }
    }
    changed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let verb = if changed.len() > 1 { "is a trade-off, " } else { "is " };
    let mut changed: Vec<String> = changed.into_iter().map(|(_, text)| text).collect();
    if !other.is_empty() {
        changed.push(format!("different: {}", list(other, named, of_change)));
    }
    if let Some((_, delay)) = moved.first().cloned() {
        let all = list(moved.into_iter().map(|(told, _)| told).collect(), named, of_change);
        changed.push(format!(
            "not said to be better: {all}; with cpu.max such a wait may end at a first pick, and run_delay, which counts what \
             comes after it, too, is {delay}"
        ));
    }
    let is_marked = !perhaps_worse.is_empty() || !by_chance.is_empty();
    if is_unsure {
        let texts = list(perhaps_worse, named, of_change);
        changed.push(format!("perhaps worsened, marked in the table: {texts}"));
        undecided.clear();
    } else {
        by_chance.extend(perhaps_worse);
    }
    if only_better && !undecided.is_empty() {
        // They are told once.
        unchanged.retain(|told| undecided.iter().all(|(title, _)| **title != told.title));
        let texts = undecided.into_iter().map(|(_, text)| text).collect();
        changed.push(format!("not decided: {}", joined(texts)));
    }
    sentences.push(match changed.is_empty() {
        true => {
            let how = if small.is_empty() { "beyond chance" } else { "by 1 %, 1 K or 1 pt or more" };
            // Rows that a replay cannot judge have not stayed as they were.
            match (doubtful.len() + unknown.len(), calls_better) {
                (0, true) => format!("{name} against {base}: no {what} changed {how}."),
                (0, false) => format!("Of the {what}s, none changed {how}."),
                (others, _) => format!(
                    "{name} against {base}: {} of {} {what}s can be judged, and none of these changed {how}.",
                    rows.len() - others,
                    rows.len()
                ),
            }
        }
        false if calls_better => format!("{name} against {base} {verb}{}.", changed.join("; ")),
        false => format!("Of the {what}s, {}.", changed.join("; ")),
    });
    sentences.extend(small_and_by_chance(small, by_chance, looked_at.len(), what, named));
    let runs = comparison.seeds.len();
    if is_marked && runs < FEW_RUNS {
        sentences.push(format!("{runs} runs decide little; -n {ENOUGH_RUNS} decides more."));
    }
    if changed.is_empty() {
        // That is said already.
        unchanged.clear();
    }
    for (words, rows) in [
        ("Not changed beyond chance", unchanged),
        ("Doubtful, so no verdict", doubtful),
        ("Not judged, as the recording does not tell", unknown),
    ] {
        if !rows.is_empty() {
            let names = list(rows, named, |told| told.title.to_string());
            sentences.push(format!("{words}: {names}."));
        }
    }
    sentences.join(" ")
}

fn of_change(told: &Told) -> String {
    format!("{} {}", told.title, told.change)
}

/// Of rows that have a mark in the table: those that changed little, and those that may have changed by chance.
pub(super) fn small_and_by_chance(
    small: Vec<Told>,
    by_chance: Vec<Told>,
    looked_at: usize,
    what: &str,
    named: usize,
) -> Option<String> {
    let mut sentences = Vec::new();
    if !small.is_empty() {
        let names = list(small, named, of_change);
        sentences.push(format!("Beyond chance, but less than 1 %, 1 K or 1 pt: {names}."));
    }
    if !by_chance.is_empty() {
        let names = list(by_chance, named, of_change);
        sentences.push(format!(
            "Marked in the table, but of {looked_at} {what}s some are by chance: {names}."
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// The p of the change of a row, if it is judged.
pub(super) fn p_of(row: &ComparedRow, kernel: usize) -> Option<f64> {
    row.told(kernel)?.p.filter(|_| !row.doubtful && !row.not_judged)
}

/// Where `cpu.max` throttles, a shorter wakeup latency that may be a wait moved behind the first pick: by how much `run_delay`
/// of the same tasks changed. `None`: it fell by a hundredth or more, too, or the row is another one.
fn moved_wait(comparison: &Comparison, row: &ComparedRow, kernel: usize) -> Option<String> {
    let rows = comparison.read_rows();
    let throttles = |row: &&ComparedRow| {
        let throttled = |periods: &Option<f64>| periods.is_some_and(|periods| periods > 0.0);
        row.row.name == metric::NR_THROTTLED.name && row.row.samples.iter().flatten().any(throttled)
    };
    if row.row.name != metric::WAKEUP_LATENCY.name || !rows.iter().any(|row| throttles(&row)) {
        return None;
    }
    let same_tasks = |of: &&ComparedRow| {
        of.row.name == metric::RUN_DELAY.name
            && of.row.stat == "sum"
            && of.row.labels == row.row.labels
    };
    let delay = rows.iter().find(same_tasks)?;
    let difference = delay.told(kernel)?;
    let fell = difference.significant
        && difference.diff_pct.is_some_and(|percent| percent <= -verdict::LEAST_HARM_PCT);
    (!fell).then(|| Change::of(&difference, delay.row.unit).whole())
}

/// What the baseline alone breaks: a kernel that is no better than it may be good.
fn of_the_baseline(comparison: &Comparison, name: impl Fn(usize) -> String) -> Option<String> {
    let base = verdict::verdict(comparison, 0);
    let alone = |property| {
        let others = comparison.troubles.iter().skip(1);
        others.clone().all(|of| of.runs_with(property) == 0)
    };
    let broken: Vec<_> = base.broken.iter().filter(|of| alone(of.worst.property)).collect();
    let first = broken.first()?;
    Some(format!(
        "The baseline {} itself breaks {} in {} of {} runs ({}), the others never: {}.",
        name(0),
        first.worst.property,
        first.runs,
        base.runs,
        first.seeds(),
        verdict::words(&first.worst)
    ))
}

/// What comes before the headlines: ends of runs, broken properties, who is hurt most.
pub(super) fn grave(found: &verdict::Verdict<'_>, name: &str, base: &str) -> Vec<String> {
    let in_runs = |runs: usize| match found.runs {
        1 if runs == 1 => "in its one run".to_string(),
        all if all == runs => format!("in all {all} runs"),
        all => format!("in {runs} of {all} runs"),
    };
    let mut sentences = Vec::new();
    for (what, runs) in &found.ended {
        sentences.push(format!("{name} did not run as asked, {}: {what}.", in_runs(*runs)));
    }
    for broken in &found.broken {
        let perhaps = match stats::none_of_as_many(broken.runs, found.runs) {
            p if p < 0.05 => String::new(),
            _ => format!("; by so few runs {base} may break it as often"),
        };
        sentences.push(format!(
            "{name} breaks {}, which {base} keeps, {} ({}{perhaps}): {}.",
            broken.worst.property,
            in_runs(broken.runs),
            broken.seeds(),
            verdict::words(&broken.worst)
        ));
    }
    if let Some(hurt) = &found.hurt {
        let change = Change::of(&hurt.difference, hurt.row.row.unit);
        let ends = change.whole_ends();
        let ends = ends.map_or_else(String::new, |[low, high]| format!(" (95% {low} to {high})"));
        let size = match change.has_a_scale() {
            true => format!(", {} {}", signed(hurt.difference.diff), hurt.row.row.unit),
            false => String::new(),
        };
        let others = match hurt.others {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        sentences.push(format!(
            "{name} hurts {} most: {} {}{ends}{size}{others}; {} rows of threads and cgroups were looked at.",
            class(hurt.row),
            format_args!("{} {}", hurt.row.row.name, hurt.row.row.stat),
            change.whole(),
            hurt.of
        ));
    }
    if !found.shared.is_empty() {
        let names = found.shared.iter().zip(&found.of_baseline).map(|(here, there)| {
            let (here, there) = (&here.worst, &there.worst);
            let property = here.property;
            match here.count == there.count {
                true => property.to_string(),
                false => format!(
                    "{property} (at worst {} and {} times in a run)",
                    here.count, there.count
                ),
            }
        });
        let names: Vec<String> = names.collect();
        sentences.push(format!("{name} and {base} both break {}.", names.join(", ")));
    }
    sentences
}

/// `task worker`, `cgroup /a/b`, `class rt`.
fn class(row: &ComparedRow) -> String {
    let labels = row.row.labels.iter();
    let words = labels.map(|(label, value)| {
        let label = if *label == "group" { "cgroup" } else { label };
        format!("{label} {value}")
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The clearest few, in their order, and how many more there are.
fn list(mut all: Vec<Told>, named: usize, text: impl Fn(&Told) -> String) -> String {
    let count = all.len();
    let mut by_p: Vec<usize> = (0..count).collect();
    by_p.sort_by(|a, b| all[*a].p.total_cmp(&all[*b].p));
    by_p.truncate(named);
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        by_p.contains(&(at - 1))
    });
    let mut texts: Vec<String> = all.iter().map(text).collect();
    match count - all.len() {
        0 => {}
        more => texts.push(format!("{more} more")),
    }
    joined(texts)
}

/// `a, b and c` of at least one text.
fn joined(mut texts: Vec<String>) -> String {
    let last = texts.pop().expect("callers have one");
    if texts.is_empty() { last } else { format!("{} and {last}", texts.join(", ")) }
}

/// An undecided row of the whole that matters most ([`DeclaredMetric::primary`]): it is doubtful or not judged, or its
/// interval reaches from one direction to a harm that counts. `None`: it is decided, or of another kind.
///
/// [`DeclaredMetric::primary`]: schedtwin_types::metric::DeclaredMetric::primary
fn undecided_text(title: &str, row: &ComparedRow, change: &Change) -> Option<String> {
    let primary = declared(row.row.name).is_some_and(|metric| metric.primary);
    if !primary || !row.row.is_whole() || row.row.better == Better::Neutral {
        return None;
    }
    if row.not_judged {
        return Some(format!("{title} (the recording does not tell)"));
    }
    if row.doubtful {
        return Some(format!("{title} (doubtful)"));
    }
    let [low, high] = change.ends.filter(|_| change.verdict(row.row.better).is_empty())?;
    let harm = if row.row.better == Better::Higher { -low } else { high };
    if !change.has_a_scale() || harm < verdict::LEAST_HARM_PCT {
        return None;
    }
    let [low, high] = change.whole_ends()?;
    Some(format!("{title} ({low} to {high})"))
}
