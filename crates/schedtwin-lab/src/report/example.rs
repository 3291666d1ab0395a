// SPDX-License-Identifier: GPL-2.0-or-later
//! A made-up comparison and run with every kind of row, for the tests of reports and conditions.

use schedtwin_engine::result::RunResult;
use schedtwin_types::metric::declared;

use crate::compare::{Comparison, Span, Subject, judge};
use crate::measured::{Labels, Row};
use crate::replay::trust::{Aspect, Figure, Limit, Trust};
use crate::replay::{Fidelity, LeftOut, Pair, Replayed, Verdict};
use crate::synthetic::Synthetic;
use crate::{Progress, Provenance};
use schedtwin_engine::recording::RecordedCluster;

/// Noise in percent of the value, mean zero, one a seed.
const NOISE: [[f64; 5]; 2] = [[-1.0, 0.5, 1.0, 0.0, -0.5], [0.5, -1.0, 0.5, -0.5, 0.5]];

fn row(
    (name, stat): (&str, &'static str),
    labels: &[(&'static str, &str)],
    noise: f64,
    values: &[Option<f64>],
) -> Row {
    let labels: Labels = labels.iter().map(|(key, value)| (*key, value.to_string())).collect();
    let metric = declared(name).expect("a declared metric").value(stat, labels, None);
    let samples = values.iter().enumerate().map(|(kernel, value)| {
        NOISE[kernel % 2]
            .iter()
            .map(|percent| value.map(|v| v * (1.0 + noise * percent / 100.0)))
            .collect()
    });
    Row { samples: samples.collect(), ..Row::of(&metric) }
}

pub fn provenance() -> Provenance {
    Provenance {
        version: "0.1.0".into(),
        model_version: "1".into(),
        machine: "pixel6".into(),
        workload: "jankbench".into(),
        hashes: vec![("machine".into(), "f00d".into()), ("workload".into(), "beef".into())],
        duration_ns: Some(10_500_000_000),
        trust: "not fitted; MODEL.md rows: none".into(),
    }
}

/// Two kernels, five seeds.
pub fn comparison() -> Comparison {
    of_kernels(&["linux-5.18", "linux-5.18+runnable-boost"])
}

/// The same with further copies of the second kernel.
pub fn of_kernels(kernels: &[&str]) -> Comparison {
    let of = |base: Option<f64>, other: Option<f64>| {
        let others = kernels.iter().skip(1).map(|_| other);
        [base].into_iter().chain(others).collect::<Vec<Option<f64>>>()
    };
    let two = |base: f64, other: f64| of(Some(base), Some(other));
    let rows = vec![
        row(("elapsed", "sum"), &[], 0.0, &two(10.5, 10.5)),
        row(("frame_duration", "mean"), &[], 1.0, &two(18.0, 12.7)),
        row(("frame_duration", "max"), &[], 4.0, &two(163.06, 161.99)),
        row(("jank", "mean"), &[], 4.0, &two(3.6, 1.0)),
        row(("power", "mean"), &[("domain", "cpu")], 1.0, &two(129.5, 134.3)),
        row(("power", "mean"), &[("cpu", "3")], 1.0, &two(20.0, 20.5)),
        row(("wakeup_latency", "p50"), &[("task", "ui|main")], 1.0, &two(40.0, 41.0)),
        row(("wakeup_latency", "p99"), &[("task", "ui")], 1.0, &two(140.0, 141.0)),
        row(("wakeup_latency", "p99"), &[("task", "bg")], 1.0, &two(400.0, 441.0)),
        row(
            ("idle_residency", "mean"),
            &[("cluster", "little"), ("state", "cpu-sleep")],
            1.0,
            &two(66.0, 60.0),
        ),
        row(("freq_transitions", "sum"), &[], 0.0, &two(0.0, 12.0)),
        row(("throttled", "mean"), &[("domain", "cpu")], 0.0, &two(0.0, 0.0)),
        row(("score", "gmean"), &[], 1.0, &of(Some(3.25), None)),
        row(("temperature", "max"), &[], 1.0, &of(None, None)),
    ];
    Comparison {
        provenance: provenance(),
        kernels: kernels.iter().map(|k| k.to_string()).collect(),
        commits: Vec::new(),
        seeds: (1..=5).collect(),
        rows: judge(rows, Span::Asked),
        all_rows: None,
        troubles: Vec::new(),
        identical_executions: kernels
            .iter()
            .enumerate()
            .map(|(k, _)| if k == 0 { 5 } else { 0 })
            .collect(),
        throttles_alike: vec![true; kernels.len()],
        notices: vec!["the event \"mem\" was ignored".into()],
        crashes: vec![],
    }
}

/// A run of the synthetic subject.
pub fn run() -> RunResult {
    let subject = Synthetic::new("linux-6.12", 10.0, 0.0);
    let progress = Progress::new();
    let mut result = progress
        .one_run(subject.duration(), |simulated| subject.run(7, simulated))
        .expect("the synthetic subject does not fail");
    result.notices.push("the event \"mem\" was ignored".into());
    result
}

/// The comparison as one of recorded work.
pub fn replayed() -> Replayed {
    let pair = |name, stat, labels, unit, recorded, replayed| Pair {
        name,
        stat,
        labels,
        unit,
        recorded,
        replayed,
    };
    let fidelity = Fidelity {
        span_ns: 3_015_000_000,
        events: 225_940,
        events_unused: 93_819,
        unused_named: vec![("irq_handler_entry".into(), 50_000), ("print|x".into(), 3)],
        lines_foreign: 1,
        lines_cut: 1,
        events_lost: 12,
        losses_uncounted: 0,
        contradictions: 2,
        threads: 343,
        threads_forked: 1,
        threads_pinned: 23,
        affinities_told: 0,
        threads_bound: 0,
        policies_told: 0,
        threads_clamped: 0,
        cpu_time_covered_pct: 98.25,
        left_out: vec![LeftOut {
            reason: "the twin's governor changes frequencies itself",
            names: (0..10).map(|n| format!("sugov:{n}")).collect(),
            cpu_time_pct: 1.75,
        }],
        wakes_by_waker: 26_729,
        wakes_by_time: 7168,
        wakes_by_device: 0,
        early_wakeups: (0.0, Vec::new()),
        wakes_unmatched: 19,
        wakes_of_unknown_context: 1,
        priority_changes: 2784,
        limit_changes: 118,
        without_waking: true,
        assumed_frequency_pct: 0.25,
        paths_taken_off_pct: 6.5,
        origin: vec!["recorded under WALT (Qualcomm), as its thread core_ctl/4 tells".into()],
        assumptions: vec!["capacities are a_guess | no more".into()],
        clusters: vec![
            RecordedCluster {
                cpus: vec![0, 3, 4, 5],
                capacity: 383,
                highest_khz: Some(850_000),
                frequencies: 3,
                full_speed_khz: 850_000,
            },
            RecordedCluster {
                cpus: vec![1, 2],
                capacity: 1024,
                highest_khz: None,
                frequencies: 0,
                full_speed_khz: 1_100_000,
            },
        ],
        kernels: comparison().kernels,
        verdicts: [Some(3.25), None]
            .into_iter()
            .zip(comparison().kernels)
            .map(|(moved_pct, kernel)| Verdict {
                kernel,
                moved_pct,
                work_pct: moved_pct.map(|_| 100.0),
                text: "placement is a_verdict".into(),
            })
            .collect(),
        pairs: vec![
            pair("cpu_time", "sum", vec![], "s", Some(5.449), vec![Some(3.824), Some(5.5)]),
            pair(
                "cpu_time",
                "sum",
                vec![("cpu", "0".into())],
                "s",
                Some(0.0),
                vec![Some(0.5), None],
            ),
            pair("waking_latency", "p90", vec![], "us", None, vec![Some(51.97), Some(50.0)]),
        ],
        trust: Trust {
            gaps: vec![],
            bounds: vec!["3 events were lost by the recorder".into()],
            figures: vec![
                Figure {
                    aspect: Aspect::Latency,
                    name: "waking_latency p90".into(),
                    unit: "us",
                    recorded: Some(19.5),
                    replayed: Some(51.97),
                    limit: Limit::Factor,
                    samples: None,
                },
                Figure {
                    aspect: Aspect::Migrations,
                    name: "migrations".into(),
                    unit: "count",
                    recorded: Some(100.0),
                    replayed: Some(110.0),
                    limit: Limit::Count,
                    samples: None,
                },
                Figure {
                    aspect: Aspect::Idle,
                    name: "share of the idle time below the shallowest state".into(),
                    unit: "%",
                    recorded: None,
                    replayed: Some(50.0),
                    limit: Limit::Share,
                    samples: None,
                },
            ],
        },
    };
    Replayed::new(comparison(), fidelity)
}
