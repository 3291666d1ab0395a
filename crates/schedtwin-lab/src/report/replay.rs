// SPDX-License-Identifier: GPL-2.0-or-later
//! The report of a replay: the comparison's, and a section on its fidelity.

use serde_json::{Map, Value, json};

use super::Extent;
use super::cells::{letter, number, plain_table, printable, time, wrap};
use crate::measured::title;
use crate::replay::trust::{Standing, Trust};
use crate::replay::{Fidelity, Pair};
use schedtwin_engine::recording::{RecordedCluster, cpu_list, cpus_text};
use schedtwin_types::metric::Kind;

/// Kernels beside each other in the table; more continue below.
const KERNELS_BESIDE: usize = 3;

/// Names of threads left out that a sentence lists.
const NAMES_SHOWN: usize = 8;

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `12.3`, with a digit after the point: shares need no more.
fn share(pct: f64) -> String {
    format!("{pct:.1}%")
}

/// Returns the facts that were used, left out and assumed, a sentence each.
pub fn sentences(fidelity: &Fidelity) -> Vec<String> {
    let f = fidelity;
    let mut read =
        format!("read: {}, {} of them not used", count(f.events, "event"), f.events_unused);
    if !f.unused_named.is_empty() {
        let named: Vec<String> =
            f.unused_named.iter().map(|(n, count)| format!("{} {count}", printable(n))).collect();
        let told: u64 = f.unused_named.iter().map(|(_, count)| count).sum();
        let more = if told < f.events_unused { ", ..." } else { "" };
        read.push_str(&format!(" ({}{more})", named.join(", ")));
    }
    for (n, what) in [
        (f.lines_cut, "last line cut short and left out"),
        (f.lines_foreign, "lines that are no events"),
        (f.events_lost, "events lost by the recorder"),
        (f.losses_uncounted, "losses of unknown size"),
        (f.contradictions, "events that contradict those before"),
    ] {
        if n > 0 {
            read.push_str(&format!("; {what}: {n}"));
        }
    }
    let mut sentences = vec![read];
    sentences.extend(f.origin.iter().map(|sentence| printable(sentence)));
    sentences.push(format!(
        "replayed: {} ({} forked within), {} of the recorded CPU time",
        count(f.threads, "thread"),
        f.threads_forked,
        share(f.cpu_time_covered_pct)
    ));
    for left_out in &f.left_out {
        let mut names = left_out.names.clone();
        let more = names.len().saturating_sub(NAMES_SHOWN);
        names.truncate(NAMES_SHOWN);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        sentences.push(format!(
            "left out: {} ({} of the CPU time): {}",
            names.join(", "),
            share(left_out.cpu_time_pct),
            left_out.reason
        ));
    }
    let mut wakes = format!(
        "sleeps end: {} by their recorded waker, {} at the recorded time of an interrupt, \
         {} at the time of the next run (no wakeup recorded)",
        f.wakes_by_waker, f.wakes_by_time, f.wakes_unmatched
    );
    if f.wakes_by_device > 0 {
        wakes.push_str(&format!(
            "; {} of the interrupts are of devices and come on their recorded CPUs",
            f.wakes_by_device
        ));
    }
    if f.wakes_of_unknown_context > 0 {
        wakes.push_str(&format!(
            "; wakeups that do not say whether an interrupt made them, taken as the task's: {}",
            f.wakes_of_unknown_context
        ));
    }
    sentences.push(wakes);
    let (early, by_name) = &f.early_wakeups;
    if *early >= 0.5 {
        let names: Vec<String> = by_name
            .iter()
            .take(NAMES_SHOWN)
            .map(|(name, count)| format!("{name} {count:.0}"))
            .collect();
        sentences.push(format!(
            "wakeups that came while their thread still worked, so that it did not sleep: {early:.0} ({})",
            names.join(", ")
        ));
    }
    sentences.push(format!(
        "priorities: {}; {}",
        count(f.priority_changes, "change"),
        affinities(f)
    ));
    if f.limit_changes > 0 {
        sentences.push(format!(
            "limits of clocks: {} of scaling_min_freq and scaling_max_freq, made at their recorded times",
            count(f.limit_changes, "change")
        ));
    }
    sentences.push(format!(
        "work: {} of the CPU time ran before the first cpu_frequency and is taken at the highest frequency; \
         {} is taken off for kernel paths, which the twin charges itself",
        share(f.assumed_frequency_pct),
        share(f.paths_taken_off_pct)
    ));
    sentences.push(format!("recorded clusters: {}", clusters(&f.clusters).join("; ")));
    sentences.extend(f.assumptions.iter().map(|assumption| format!("assumed: {assumption}")));
    if f.without_waking {
        let text = match f.wakes_by_waker + f.wakes_by_time {
            0 => "no wakeup is recorded: latencies are not known",
            _ => "no sched_waking is recorded: latencies begin with sched_wakeup",
        };
        sentences.push(text.to_owned());
    }
    sentences
}

/// Which threads are bound, and where that is known from.
fn affinities(f: &Fidelity) -> String {
    let by_name = format!("{} pinned by name", count(f.threads_pinned, "kernel thread"));
    if f.affinities_told == 0 {
        return format!("affinities are not recorded, {by_name}");
    }
    format!(
        "affinities recorded of {}, {} bound; {by_name}; policies of {} and clamps of {} that priorities do not tell",
        count(f.affinities_told, "thread"),
        f.threads_bound,
        f.policies_told,
        f.threads_clamped
    )
}

/// `cpu_time cpu=3`: the stat says something only of a distribution.
fn pair_title(pair: &Pair) -> String {
    let full = title((pair.name, pair.stat, &pair.labels, Kind::One));
    match pair.stat {
        "sum" => full.replacen(" sum", "", 1),
        _ => full,
    }
}

/// Clusters that a sentence lists one by one.
const CLUSTERS_LISTED: usize = 8;

/// The clusters in words; many are summed up by capacity and full speed.
fn clusters(all: &[RecordedCluster]) -> Vec<String> {
    if all.len() <= CLUSTERS_LISTED {
        return all.iter().map(cluster).collect();
    }
    let mut kinds: Vec<(u32, u32, Vec<&RecordedCluster>)> = Vec::new();
    for one in all {
        let key = (one.capacity, one.full_speed_khz);
        match kinds.iter_mut().find(|(capacity, khz, _)| (*capacity, *khz) == key) {
            Some((.., of)) => of.push(one),
            None => kinds.push((key.0, key.1, vec![one])),
        }
    }
    let kind = |(capacity, full_speed_khz, of): (u32, u32, Vec<&RecordedCluster>)| {
        let mut cpus: Vec<u16> = of.iter().flat_map(|one| one.cpus.iter().copied()).collect();
        cpus.sort_unstable();
        let mhz = of.iter().filter_map(|one| one.highest_khz).map(|khz| khz / 1000);
        let highest = match (mhz.clone().min(), mhz.max()) {
            (Some(least), Some(most)) => format!("at most {least} to {most} MHz recorded"),
            _ => "no frequency recorded".to_owned(),
        };
        let (clocks, speed) = (count(of.len() as u64, "clock"), full_speed_khz / 1000);
        let cpus = cpus_text(&cpus);
        format!("{cpus} ({clocks}) as capacity {capacity}, {highest}, full speed {speed} MHz")
    };
    kinds.into_iter().map(kind).collect()
}

/// `CPUs 0-3 as capacity 383, at most 850 MHz recorded (3 different)`.
fn cluster(cluster: &RecordedCluster) -> String {
    let RecordedCluster { cpus, capacity, highest_khz, frequencies, full_speed_khz } = cluster;
    let mut text = format!("{} as capacity {capacity}, ", cpus_text(cpus));
    match highest_khz {
        Some(khz) => {
            text.push_str(&format!(
                "at most {} MHz recorded ({frequencies} different)",
                khz / 1000
            ));
        }
        None => text.push_str("no frequency recorded"),
    }
    if *highest_khz != Some(*full_speed_khz) {
        text.push_str(&format!(", full speed {} MHz", full_speed_khz / 1000));
    }
    text
}

/// Title, unit, recorded, and for each of the kernels its number and ratio.
fn cells(pair: &Pair, kernels: &[usize]) -> Vec<String> {
    let show = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let mut cells = vec![pair_title(pair), pair.unit.to_owned(), show(pair.recorded)];
    for kernel in kernels {
        let ratio = match (pair.recorded, pair.replayed[*kernel]) {
            (Some(recorded), Some(replayed)) if recorded > 0.0 => {
                format!("{:.2}", replayed / recorded)
            }
            _ => "-".to_owned(),
        };
        cells.extend([show(pair.replayed[*kernel]), ratio]);
    }
    cells
}

/// How far each kernel did as recorded.
pub fn verdicts(fidelity: &Fidelity) -> impl Iterator<Item = String> {
    let of = |(at, verdict): (usize, &crate::replay::Verdict)| {
        format!("verdict {} ({}): {}", letter(at), printable(&verdict.kernel), verdict.text)
    };
    fidelity.trust.sentences().into_iter().chain(fidelity.verdicts.iter().enumerate().map(of))
}

/// Title, unit, recorded, and of each kernel its number and ratio: a line a measurement.
pub fn pairs(fidelity: &Fidelity) -> Vec<Vec<String>> {
    let kernels: Vec<usize> = (0..fidelity.kernels.len()).collect();
    fidelity.pairs.iter().map(|pair| cells(pair, &kernels)).collect()
}

/// CPUs that the table lists one by one.
const CPUS_LISTED: usize = 16;

/// The pairs of a table: CPUs one by one where there are few, else their sum alone, and how many are left out.
fn listed(fidelity: &Fidelity, extent: Extent) -> (Vec<&Pair>, usize) {
    let of_cpu = |pair: &&Pair| pair.labels.iter().any(|(label, _)| *label == "cpu");
    let cpus = fidelity.pairs.iter().filter(of_cpu).count();
    let all = cpus <= CPUS_LISTED || matches!(extent, Extent::All | Extent::PerCpu);
    let pairs = fidelity.pairs.iter().filter(|pair| all || !of_cpu(pair));
    (pairs.collect(), if all { 0 } else { cpus })
}

/// The section of a text report.
pub fn text(fidelity: &Fidelity, extent: Extent, width: usize) -> String {
    let kernels: Vec<usize> = (0..fidelity.kernels.len()).collect();
    let (listed, left_out) = listed(fidelity, extent);
    let others: String = kernels[1..].iter().map(|k| format!(", {}", letter(*k))).collect();
    let mut text = wrap(
        &format!(
            "Fidelity: the recording against its replay on A ({}){others}",
            printable(&fidelity.kernels[0])
        ),
        width,
        "  ",
    );
    let table = |block: &[usize]| {
        let mut heads = ["", "", "recorded"].map(str::to_owned).to_vec();
        heads.extend(block.iter().flat_map(|k| [letter(*k), format!("{}/rec", letter(*k))]));
        let mut rows = vec![heads];
        rows.extend(listed.iter().map(|pair| cells(pair, block)));
        plain_table(rows, 2, &[])
    };
    let fits = |beside: &usize| {
        let lines = |text: String| text.lines().all(|line| line.chars().count() <= width);
        kernels.chunks(*beside).all(|block| lines(table(block)))
    };
    let beside = (1..=KERNELS_BESIDE).rev().find(fits).unwrap_or(1);
    for block in kernels.chunks(beside) {
        text.push('\n');
        text.push_str(&table(block));
    }
    if left_out > 0 {
        text.push_str(&format!("... cpu_time of {left_out} CPUs: --per-cpu\n"));
    }
    text.push('\n');
    for sentence in verdicts(fidelity).chain(sentences(fidelity)) {
        text.push_str(&wrap(&sentence, width, "  "));
    }
    text
}

/// The section of a markdown report. `escape`: of text that could be taken for markup.
pub fn markdown(fidelity: &Fidelity, extent: Extent, escape: fn(&str) -> String) -> String {
    let kernels: Vec<usize> = (0..fidelity.kernels.len()).collect();
    let mut text =
        "\n**Fidelity**: the recording against its replays\n\n| metric | unit | recorded |"
            .to_owned();
    for kernel in &fidelity.kernels {
        text.push_str(&format!(" {} | ratio |", escape(kernel)));
    }
    text.push_str(&format!("\n|---|---|---:|{}\n", "---:|---:|".repeat(kernels.len())));
    for pair in listed(fidelity, extent).0 {
        let cells: Vec<String> = cells(pair, &kernels).iter().map(|cell| escape(cell)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push('\n');
    for sentence in verdicts(fidelity).chain(sentences(fidelity)) {
        text.push_str(&format!("- {}\n", escape(&sentence)));
    }
    text
}

/// `3.015 s recorded, ...`: what the head of a report says of the length.
pub fn length(fidelity: &Fidelity, simulated: Option<String>) -> String {
    let recorded = format!("{} recorded", time(fidelity.span_ns));
    match simulated {
        Some(simulated) => format!("{recorded}, {simulated} simulated"),
        None => recorded,
    }
}

/// The object of a JSON report.
pub fn json(fidelity: &Fidelity) -> Value {
    let f = fidelity;
    let left_out: Vec<Value> = f
        .left_out
        .iter()
        .map(|l| json!({"reason": l.reason, "names": l.names, "cpu_time_pct": l.cpu_time_pct}))
        .collect();
    let pairs: Vec<Value> = f
        .pairs
        .iter()
        .map(|p| {
            let labels: Map<String, Value> =
                p.labels.iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
            json!({
                "name": p.name, "stat": p.stat, "unit": p.unit, "labels": labels,
                "recorded": p.recorded, "replayed": p.replayed[0], "replayed_by_kernel": p.replayed,
            })
        })
        .collect();
    let clusters: Vec<Value> = f
        .clusters
        .iter()
        .map(|c| {
            json!({
                "cpus": cpu_list(&c.cpus), "capacity": c.capacity, "highest_khz": c.highest_khz,
                "frequencies": c.frequencies, "full_speed_khz": c.full_speed_khz,
            })
        })
        .collect();
    let verdicts: Vec<Value> = f
        .verdicts
        .iter()
        .map(|v| {
            json!({
                "kernel": v.kernel, "moved_pct": v.moved_pct, "work_pct": v.work_pct, "text": v.text,
            })
        })
        .collect();
    let unused: Vec<Value> = f
        .unused_named
        .iter()
        .map(|(event, count)| json!({"event": event, "count": count}))
        .collect();
    json!({
        "kernel": f.kernels[0], "span_s": f.span_ns as f64 / 1e9,
        "events": f.events, "events_unused": f.events_unused, "unused_named": unused,
        "lines_foreign": f.lines_foreign, "lines_cut": f.lines_cut,
        "events_lost": f.events_lost, "losses_uncounted": f.losses_uncounted,
        "contradictions": f.contradictions,
        "threads": f.threads, "threads_forked": f.threads_forked, "threads_pinned": f.threads_pinned,
        "affinities_told": f.affinities_told, "threads_bound": f.threads_bound,
        "policies_told": f.policies_told, "threads_clamped": f.threads_clamped,
        "cpu_time_covered_pct": f.cpu_time_covered_pct, "left_out": left_out,
        "wakes_by_waker": f.wakes_by_waker, "wakes_by_time": f.wakes_by_time,
        "wakes_by_device": f.wakes_by_device,
        "wakes_unmatched": f.wakes_unmatched,
        "wakes_of_unknown_context": f.wakes_of_unknown_context,
        "priority_changes": f.priority_changes, "limit_changes": f.limit_changes, "without_waking": f.without_waking,
        "assumed_frequency_pct": f.assumed_frequency_pct,
        "paths_taken_off_pct": f.paths_taken_off_pct,
        "origin": f.origin, "assumptions": f.assumptions, "clusters": clusters, "verdicts": verdicts, "pairs": pairs,
        "trust": trust(&f.trust),
    })
}

/// The figures that the rows' trust comes from.
fn trust(trust: &Trust) -> Value {
    let figures: Vec<Value> = trust
        .figures
        .iter()
        .map(|f| {
            json!({
                "aspect": f.aspect.word(), "name": f.name, "unit": f.unit, "recorded": f.recorded,
                "replayed": f.replayed, "ratio": f.ratio(), "limit": f.limit.text(),
                "within": f.within(), "samples": f.samples,
            })
        })
        .collect();
    let gaps: Vec<&str> = trust.gaps.iter().map(|gap| gap.text.as_str()).collect();
    json!({
        "sentence": trust.sentence(), "limits": Trust::limits(), "figures": figures,
        "bounds": trust.bounds, "not_judged": gaps,
    })
}

/// Returns the values that a row of the comparison inherits: how far it may be compared, `doubts` with the figures that are off,
/// and why it is not judged.
pub fn row_trust(trust: &Trust, metric: &str) -> [(&'static str, Value); 4] {
    let doubts: Vec<String> = trust.doubts(metric).iter().map(|figure| figure.text()).collect();
    let standing = trust.standing(metric);
    // Older readers know the first word as `trusted`.
    let word = match standing {
        Standing::Compare => "trusted",
        other => other.word(),
    };
    [
        ("trust", json!(word)),
        ("standing", json!(standing.word())),
        ("doubts", json!(doubts)),
        ("not_judged", json!(trust.unjudged(metric))),
    ]
}
