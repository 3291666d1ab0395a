// SPDX-License-Identifier: GPL-2.0-or-later
//! Verdicts on real kernels: what is broken is said first, and bisected to its setting.

use schedtwin_engine::Scenario;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::kernel_file::mixture::Mixture;
use schedtwin_engine::result::{Bounds, Property};
use schedtwin_lab::Progress;
use schedtwin_lab::compare::{Comparison, Plan, compare};
use schedtwin_lab::report::{self, Extent, Format};
use schedtwin_lab::search::by_metric::{self, NoPair};
use schedtwin_lab::search::{Answer, Case, MachineGiven, Question, WorkloadGiven, bisect};
use schedtwin_lab::selector::Selector;
use schedtwin_lab::stopping::Iterations;
use schedtwin_lab::twin::{Column, joint_provenance};
use schedtwin_lab::verdict::{Word, verdict};

const STARVATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/starvation.json");
const LOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lock.json");
const BEFORE: &str = "linux-6.18:reweight_entity=placed";

fn compared(workload: &str, kernels: [&str; 2]) -> Comparison {
    let columns = kernels.map(|kernel| Column {
        kernel: kernel.to_string(),
        scenario: Scenario::new("uniform8", kernel, workload, None).unwrap(),
    });
    let plan = Plan { first_seed: 1, iterations: Iterations::Fixed(2) };
    compare(&columns, &plan, joint_provenance(&columns), &Progress::new()).unwrap()
}

/// 6.18.44: four tasks of the root starve, and every total improves.
#[test]
fn a_kernel_that_starves_is_not_better() {
    let found = compared(STARVATION, ["linux-6.18", BEFORE]);
    let judged = verdict(&found, 1);
    assert_eq!(judged.word(), Word::Broken);
    let (breach, runs) = (&judged.broken[0].worst, judged.broken[0].runs);
    assert_eq!(judged.broken[0].first_seed, 1);
    assert_eq!((breach.property, runs, breach.group.as_str()), (Property::Starvation, 2, "free"));
    assert!(judged.failures(BEFORE)[0].contains("breaks starvation (2 runs, first with seed 1"));
    let text = report::comparison(&found, Format::Text, Extent::Headlines);
    let (lead, table) = text.split_at(text.find("throughput           ").unwrap());
    assert!(
        lead.contains("B breaks starvation, which A keeps, in all 2 runs (first with seed 1"),
        "{lead}"
    );
    assert!(!lead.contains("better"), "{lead}");
    assert!(table.contains("frame_duration"), "the totals are told all the same: {table}");
    // The other way round nothing is broken, and the baseline's fault is told.
    let back = compared(STARVATION, [BEFORE, "linux-6.18"]);
    assert_ne!(verdict(&back, 1).word(), Word::Broken);
    let text = report::comparison(&back, Format::Text, Extent::Headlines);
    assert!(
        text.contains("The baseline A itself breaks starvation in 2 of 2 runs (first with seed 1"),
        "{text}"
    );
}

#[test]
fn the_starvation_is_bisected_to_its_setting() {
    let mut bounds = Bounds::default();
    bounds.set("starvation=500ms").unwrap();
    let question = Question { property: Some(Property::Starvation), bounds };
    let case = Case {
        machine: MachineGiven::Named("uniform8".into()),
        workload: WorkloadGiven::Named(STARVATION.into()),
        seed: 1,
        duration: Some(2_000_000_000),
    };
    let [good, bad] = ["linux-6.12", BEFORE].map(|kernel| KernelFile::load(kernel).unwrap());
    assert!(question.parts(&case, &good, &bad).is_some());
    let mixture = Mixture::new(&good, &bad);
    let broken = |kernel: &KernelFile| matches!(question.ask(&case, kernel), Answer::Broken(_));
    let found = bisect::find(&mixture, broken);
    let mut cause: Vec<&str> = found.cause.iter().map(|at| found.differing[*at].path).collect();
    cause.sort_unstable();
    assert_eq!(cause, ["eevdf_form", "reweight_entity"]);
    assert_eq!(found.heals.len(), 2, "each alone heals it");
}

/// A thread ends with a lock that another one waits for: the run goes on, and both are told.
#[test]
fn a_lock_that_nobody_gives_back_is_told() {
    let scenario = Scenario::new("uniform8", "linux-6.12", LOCK, None).unwrap();
    let result = scenario.run(1, schedtwin_engine::RunOptions::default()).unwrap();
    let breach = &result.broken[0];
    assert_eq!((breach.property, breach.open), (Property::LockHeld, true));
    assert!(breach.who.starts_with("b-") && breach.how.contains("which has ended"), "{breach:?}");
    assert!(result.ended[0].contains("were simulated for a duration of 3s"), "{:?}", result.ended);
}

/// Nice 19 beside nice -20 has 15 of 88,776 parts: it waits for seconds, and nobody starves it.
#[test]
fn what_weights_explain_is_no_starvation() {
    let task = |name: &str, nice: i32| {
        format!(r#""{name}": {{ "priority": {nice}, "cpus": [0], "loop": -1, "run": 5000 }}"#)
    };
    let text = |light: i32| {
        format!(r#"{{ "tasks": {{ {}, {} }} }}"#, task("heavy", -20), task("light", light))
    };
    let broken = |text: &str| {
        let case = Case {
            machine: MachineGiven::Named("uniform8".into()),
            workload: WorkloadGiven::rt_app(text).unwrap(),
            seed: 1,
            duration: Some(3_000_000_000),
        };
        let scenario = case.scenario(&KernelFile::load("linux-7.3").unwrap()).unwrap();
        let result = scenario.run(1, schedtwin_engine::RunOptions::default()).unwrap();
        let waits = result.metrics.iter().find(|m| (m.name, m.stat) == ("run_delay", "max"));
        (result.broken, waits.and_then(|metric| metric.value).unwrap())
    };
    let (found, longest_ms) = broken(&text(19));
    assert!(longest_ms > 1_000.0, "{longest_ms}");
    assert_eq!(found, []);
    assert!(broken(&text(-20)).1 < 100.0, "equal weights take turns");
}

/// A difference within chance has no cause, and of one beyond it the better end is said.
#[test]
fn a_metric_is_bisected_where_its_ends_differ() {
    let found = |machine: &str, workload: &str, kernels: [&str; 2], metric: &str| {
        let case = Case {
            machine: MachineGiven::Named(machine.into()),
            workload: WorkloadGiven::Named(workload.into()),
            seed: 1,
            duration: Some(300_000_000),
        };
        let [good, bad] = kernels.map(|name| KernelFile::load(name).unwrap());
        let selector = Selector::parse_list(metric).unwrap().remove(0);
        by_metric::find(&case, &Mixture::new(&good, &bad), [&good, &bad], &selector, 3)
    };
    let kernels = ["linux-6.12", "linux-6.12:schedutil.rate_limit_us=1500"];
    let noise = found("uniform8", "w1", kernels, "wakeup_latency.max");
    let Err(NoPair::Chance { ci95: [low, high], .. }) = noise else { panic!("{noise:?}") };
    assert!(low < 0.0 && 0.0 < high, "{low} to {high}");
    let fast = "linux-6.12:cpufreq=performance";
    let by = found("pixel6", "ui-phone", ["linux-6.12", fast], "power.mean").unwrap();
    assert_eq!(by.bad_is_better(), Some(false), "{by:?}");
    let back = found("pixel6", "ui-phone", [fast, "linux-6.12"], "power.mean").unwrap();
    assert_eq!(back.bad_is_better(), Some(true), "{back:?}");
    assert_eq!(back.difference.diff, -by.difference.diff);
}
