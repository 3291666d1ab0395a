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
/// A kernel is not called better while a main metric may have lost so much, %.
const MAY_LOSE_PCT: f64 = 5.0;
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
    let extent = if extent == Extent::Chosen { extent } else { Extent::Headlines };
    let shown = shown_rows(comparison, extent);
    let named = if others > 1 { NAMED_OF_SEVERAL } else { NAMED };
    let said =
        (1..=others).map(|kernel| of(comparison, (&shown.rows, extent), kernel, &name, named));
    said.chain(base_alone).collect()
}

/// A row as a sentence tells it.
#[derive(Clone)]
pub(super) struct Told<'a> {
    pub title: Cow<'a, str>,
    pub change: String,
    pub p: f64,
    /// Of the change, as it is shown; a row that was zero has no scale.
    pub size: f64,
    /// It is of the whole, and matters most ([`DeclaredMetric::primary`]).
    ///
    /// [`DeclaredMetric::primary`]: schedtwin_types::metric::DeclaredMetric::primary
    pub main: bool,
}

impl<'a> Told<'a> {
    /// The change of a row with that title.
    pub(super) fn of(
        title: impl Into<Cow<'a, str>>,
        row: &ComparedRow,
        change: &Change,
        p: f64,
    ) -> Told<'a> {
        let size = if change.has_a_scale() { change.value.abs() } else { f64::INFINITY };
        Told { title: title.into(), change: change.whole(), p, size, main: is_main(row) }
    }
}

/// The headlines of a kernel, or the rows that were asked for, by what is said of them.
struct Headlines<'a> {
    better: Vec<Told<'a>>,
    worse: Vec<Told<'a>>,
    /// Changed, and decide nothing: neither direction is better, or they tell why (a side metric) or where (a part beside its
    /// whole).
    other: Vec<Told<'a>>,
    unchanged: Vec<Told<'a>>,
    /// Nothing is known: the change may be a quarter of the baseline either way.
    scattered: Vec<Told<'a>>,
    doubtful: Vec<Told<'a>>,
    unknown: Vec<Told<'a>>,
    small: Vec<Told<'a>>,
    /// Marked in the table, and not clear among all of them: those for worse apart.
    by_chance: Vec<Told<'a>>,
    perhaps_worse: Vec<Told<'a>>,
    /// Shorter wakeups that may be waits moved behind the first pick, with the change of `run_delay`.
    moved: Vec<(Told<'a>, String)>,
    /// Main metrics of which nothing is known, with the largest harm that is possible, %.
    undecided: Vec<(&'a str, Undecided)>,
    /// The number of rows looked at together.
    looked_at: usize,
}

/// A conclusion in one word, for programs. In the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conclusion {
    Broken,
    Hurts,
    Identical,
    Unchanged,
    /// Rows changed that decide nothing.
    Different,
    Better,
    Worse,
    TradeOff,
    /// Some rows improved, and it is not called better.
    Improved,
    /// Some rows worsened, and it is not called worse.
    Worsened,
    /// Both, or some that improved and others that perhaps worsened, and neither is said.
    Mixed,
}

impl Conclusion {
    pub(super) fn text(self) -> &'static str {
        match self {
            Conclusion::Broken => "broken",
            Conclusion::Hurts => "hurts",
            Conclusion::Identical => "identical",
            Conclusion::Unchanged => "unchanged",
            Conclusion::Different => "different",
            Conclusion::Better => "better",
            Conclusion::Worse => "worse",
            Conclusion::TradeOff => "trade-off",
            Conclusion::Improved => "improved",
            Conclusion::Worsened => "worsened",
            Conclusion::Mixed => "mixed",
        }
    }
}

impl<'a> Headlines<'a> {
    fn of(
        comparison: &Comparison,
        (rows, extent): (&'a [(String, &'a ComparedRow)], Extent),
        kernel: usize,
    ) -> Headlines<'a> {
        let looked_at: Vec<f64> = rows.iter().filter_map(|(_, row)| p_of(row, kernel)).collect();
        let sure = stats::holm(&looked_at);
        let whole_of =
            |name| rows.iter().any(|(_, row)| row.row.name == name && row.row.is_whole());
        // Of rows that were asked for, each decides.
        let decides = |row: &ComparedRow| {
            let is_whole = || row.row.is_whole() || !whole_of(row.row.name);
            extent == Extent::Chosen || !is_side(row) && is_whole()
        };
        let mut all = Headlines {
            better: vec![],
            worse: vec![],
            other: vec![],
            unchanged: vec![],
            scattered: vec![],
            doubtful: vec![],
            unknown: vec![],
            small: vec![],
            by_chance: vec![],
            perhaps_worse: vec![],
            moved: vec![],
            undecided: vec![],
            looked_at: looked_at.len(),
        };
        for (title, row) in rows {
            let Some(difference) = row.told(kernel) else { continue };
            let change = Change::of(&difference, row.row.unit);
            let p = difference.p.unwrap_or(1.0);
            let told = Told::of(title.as_str(), row, &change, p);
            all.undecided.extend(undecided(title, row, &change).map(|of| (title.as_str(), of)));
            match (change.verdict(row.row.better), row.row.better) {
                _ if row.not_judged => all.unknown.push(told),
                _ if row.doubtful => all.doubtful.push(told),
                ("", _) if change.may_be_a_quarter() => all.scattered.push(told),
                ("", _) => all.unchanged.push(told),
                ("* worse", _) if told.p > sure && decides(row) => {
                    all.perhaps_worse.push(told);
                }
                _ if told.p > sure => all.by_chance.push(told),
                _ if change.is_small() => all.small.push(told),
                (_, Better::Neutral) => all.other.push(told),
                _ if !decides(row) => all.other.push(told),
                ("* better", _) if let Some(delay) = moved_wait(comparison, row, kernel) => {
                    all.moved.push((told, delay));
                }
                ("* better", _) => all.better.push(told),
                _ => all.worse.push(told),
            }
        }
        all
    }

    fn only_worse(&self) -> bool {
        self.better.is_empty() && !self.worse.is_empty()
    }

    fn only_better(&self) -> bool {
        !self.better.is_empty() && self.worse.is_empty()
    }

    /// Takes the main metrics that a kernel which is only better, or only worse, leaves undecided, from the other lists, too, since
    /// they are told once.
    fn take_undecided(&mut self) -> Vec<String> {
        let only_worse = self.only_worse();
        if !only_worse && !self.only_better() {
            return Vec::new();
        }
        let mut undecided = std::mem::take(&mut self.undecided);
        // Of a kernel that is worse the others may have become worse, too.
        undecided.retain(|(_, of)| !only_worse || of.harm.is_none());
        let Headlines { unchanged, scattered, doubtful, unknown, .. } = self;
        for elsewhere in [unchanged, scattered, doubtful, unknown] {
            elsewhere.retain(|told| undecided.iter().all(|(title, _)| *title != told.title));
        }
        undecided.into_iter().map(|(_, of)| of.text).collect()
    }

    /// Whether better and worse may be said of the kernel: nothing grave was found, there are runs enough, beside what is
    /// better no headline has a mark for worse and no main metric may have lost as much as counts, and beside what is worse all
    /// main metrics are judged.
    fn can_be_called(&self, found: &verdict::Verdict<'_>, runs: usize) -> bool {
        let loses = |(_, of): &(&str, Undecided)| of.harm.is_some_and(|harm| harm >= MAY_LOSE_PCT);
        let unsure = !self.perhaps_worse.is_empty() || self.undecided.iter().any(loses);
        let unjudged = |(_, of): &(&str, Undecided)| of.harm.is_none();
        found.word() == verdict::Word::Headlines
            && runs >= FEW_RUNS
            && !(self.only_better() && unsure)
            && !(self.only_worse() && self.undecided.iter().any(unjudged))
    }

    fn conclusion(&self, found: &verdict::Verdict<'_>, runs: usize) -> Conclusion {
        match found.word() {
            verdict::Word::Broken => return Conclusion::Broken,
            verdict::Word::Hurts => return Conclusion::Hurts,
            verdict::Word::Headlines => {}
        }
        let called = self.can_be_called(found, runs);
        match (self.better.is_empty(), self.worse.is_empty()) {
            (true, true) if self.other.is_empty() => Conclusion::Unchanged,
            (true, true) => Conclusion::Different,
            (false, true) if called => Conclusion::Better,
            (true, false) if called => Conclusion::Worse,
            (false, false) if called => Conclusion::TradeOff,
            (false, true) if self.perhaps_worse.is_empty() => Conclusion::Improved,
            (false, true) => Conclusion::Mixed,
            (true, false) => Conclusion::Worsened,
            (false, false) => Conclusion::Mixed,
        }
    }
}

/// Concludes of a kernel by its headlines, or by the rows that were asked for.
pub(super) fn conclusion(comparison: &Comparison, extent: Extent, kernel: usize) -> Conclusion {
    if comparison.identical_executions[kernel] == comparison.seeds.len() {
        return Conclusion::Identical;
    }
    let shown = shown_rows(comparison, extent);
    let found = verdict::verdict(comparison, kernel);
    Headlines::of(comparison, (&shown.rows, extent), kernel)
        .conclusion(&found, comparison.seeds.len())
}

fn of(
    comparison: &Comparison,
    (rows, extent): (&[(String, &ComparedRow)], Extent),
    kernel: usize,
    name: impl Fn(usize) -> String,
    named: usize,
) -> String {
    let (base, name) = (name(0), name(kernel));
    let runs = comparison.seeds.len();
    if comparison.identical_executions[kernel] == runs {
        return format!("{name} executed exactly as {base}: nothing changed.");
    }
    let found = verdict::verdict(comparison, kernel);
    let mut headlines = Headlines::of(comparison, (rows, extent), kernel);
    let what = if extent == Extent::Chosen { "row" } else { "headline" };
    let called = headlines.can_be_called(&found, runs);
    let perhaps = headlines.only_better() && !headlines.perhaps_worse.is_empty();
    let undecided = if perhaps { Vec::new() } else { headlines.take_undecided() };
    let Headlines {
        better,
        worse,
        other,
        mut unchanged,
        scattered,
        doubtful,
        unknown,
        small,
        mut by_chance,
        perhaps_worse,
        moved,
        looked_at,
        ..
    } = headlines;
    let mut sentences = grave(&found, &name, &base);
    let [good, bad] = if called { ["better", "worse"] } else { ["improved", "worsened"] };
    // The larger change says what the kernel is.
    let largest = |all: &[Told]| all.iter().map(|told| told.size).fold(-1.0, f64::max);
    let mut changed: Vec<(f64, String)> = Vec::new();
    for (word, all) in [(good, better), (bad, worse)] {
        if !all.is_empty() {
            changed.push((largest(&all), format!("{word}: {}", list(all, named, of_change))));
        }
    }
    changed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let verb = match changed.len() {
        _ if !called => ": ",
        0 | 1 => " is ",
        _ => " is a trade-off, ",
    };
    let mut changed: Vec<String> = changed.into_iter().map(|(_, text)| text).collect();
    if !other.is_empty() {
        changed.push(format!("different: {}", list(other, named, of_change)));
    }
    if let Some((_, delay)) = moved.first().cloned() {
        let all = list(moved.into_iter().map(|(told, _)| told).collect(), named, of_change);
        changed.push(format!(
            "not said to be better: {all}, since only one of the two switches a throttled task in before it waits: run_delay, \
             which counts that wait, too, changed by {delay}"
        ));
    }
    let is_marked = !perhaps_worse.is_empty() || !by_chance.is_empty();
    if perhaps {
        let texts = list(perhaps_worse, named, of_change);
        changed.push(format!("perhaps worsened, marked in the table: {texts}"));
    } else {
        by_chance.extend(perhaps_worse);
    }
    if !undecided.is_empty() {
        changed.push(format!("not decided: {}", joined(undecided)));
    }
    let against = format!("{name} against {base}");
    let is_alone = found.word() == verdict::Word::Headlines;
    sentences.push(match changed.is_empty() {
        true => {
            let how =
                if small.is_empty() { "beyond chance" } else { "by 1 %, 1 K or 1 pt or more" };
            // Rows that a replay cannot judge have not stayed as they were.
            match (doubtful.len() + unknown.len(), is_alone) {
                (0, true) => format!("{against}: no {what} changed {how}."),
                (0, false) => format!("Of the {what}s, none changed {how}."),
                (others, _) => format!(
                    "{against}: {} of {} {what}s can be judged, and none of these changed {how}.",
                    rows.len() - others,
                    rows.len()
                ),
            }
        }
        false if is_alone => format!("{against}{verb}{}.", changed.join("; ")),
        false => format!("Of the {what}s, {}.", changed.join("; ")),
    });
    let has_changed = !changed.is_empty();
    sentences.extend(small_and_by_chance(small, by_chance, looked_at, what, named));
    if (is_marked || has_changed) && runs < FEW_RUNS {
        sentences.push(format!("{runs} runs decide little; -n {ENOUGH_RUNS} decides more."));
    }
    if !has_changed {
        // That is said already.
        unchanged.clear();
    }
    for (words, rows) in [
        ("Not changed beyond chance", unchanged),
        ("Too scattered to tell, as a quarter more or less is possible", scattered),
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
            "Marked in the table, but not clear among {looked_at} {what}s, so perhaps by chance: {names}."
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// The p of the change of a row, if it is judged.
pub(super) fn p_of(row: &ComparedRow, kernel: usize) -> Option<f64> {
    // A row that no run changes, or that another kernel brings in, takes nothing from the others.
    let difference = row.told(kernel).filter(|difference| !difference.is_none())?;
    difference.p.filter(|_| !row.doubtful && !row.not_judged)
}

/// Where `cpu.max` throttles, and kernels do it differently, a shorter wakeup latency that may be a wait moved behind the first pick: by how much `run_delay`
/// of the same tasks changed. `None`: it fell by a hundredth or more, too, or the row is another one.
fn moved_wait(comparison: &Comparison, row: &ComparedRow, kernel: usize) -> Option<String> {
    let rows = comparison.read_rows();
    let throttles = |row: &&ComparedRow| {
        let throttled = |periods: &Option<f64>| periods.is_some_and(|periods| periods > 0.0);
        row.row.name == metric::NR_THROTTLED.name && row.row.samples.iter().flatten().any(throttled)
    };
    let alike = comparison.throttles_alike.get(kernel).copied().unwrap_or(true);
    let is_wakeup = row.row.name == metric::WAKEUP_LATENCY.name;
    if alike || !is_wakeup || !rows.iter().any(|row| throttles(&row)) {
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
pub(super) fn of_the_baseline(
    comparison: &Comparison,
    name: impl Fn(usize) -> String,
) -> Option<String> {
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

/// Main ones and then the clearest, a few, in their order, and how many more there are.
fn list(mut all: Vec<Told>, named: usize, text: impl Fn(&Told) -> String) -> String {
    let count = all.len();
    let mut by_p: Vec<usize> = (0..count).collect();
    by_p.sort_by(|a, b| all[*b].main.cmp(&all[*a].main).then(all[*a].p.total_cmp(&all[*b].p)));
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

/// Whether a row tells why, and not how well: no headline of this kind decides ([`DeclaredMetric::side`]).
///
/// [`DeclaredMetric::side`]: schedtwin_types::metric::DeclaredMetric::side
pub(super) fn is_side(row: &ComparedRow) -> bool {
    declared(row.row.name).is_some_and(|metric| metric.side)
}

/// Whether a row is of the whole, has a direction, and matters most.
pub(in crate::report) fn is_main(row: &ComparedRow) -> bool {
    let primary = declared(row.row.name).is_some_and(|metric| metric.primary);
    primary && row.row.is_whole() && row.row.better != Better::Neutral
}

/// A main metric of which nothing is decided.
struct Undecided {
    text: String,
    /// The most by which it may be worse, %; `None`: nobody knows.
    harm: Option<f64>,
}

/// An undecided row of the whole that matters most ([`DeclaredMetric::primary`]): it is doubtful or not judged, or its
/// interval reaches from one direction to a harm that counts. `None`: it is decided, or of another kind.
///
/// [`DeclaredMetric::primary`]: schedtwin_types::metric::DeclaredMetric::primary
fn undecided(title: &str, row: &ComparedRow, change: &Change) -> Option<Undecided> {
    if !is_main(row) {
        return None;
    }
    if row.not_judged {
        let text = format!("{title} (the recording does not tell)");
        return Some(Undecided { text, harm: None });
    }
    if row.doubtful {
        return Some(Undecided { text: format!("{title} (doubtful)"), harm: None });
    }
    let [low, high] = change.ends.filter(|_| change.verdict(row.row.better).is_empty())?;
    let harm = if row.row.better == Better::Higher { -low } else { high };
    if !change.has_a_scale() || harm < verdict::LEAST_HARM_PCT {
        return None;
    }
    let [low, high] = change.whole_ends()?;
    Some(Undecided { text: format!("{title} ({low} to {high})"), harm: Some(harm) })
}
