// SPDX-License-Identifier: GPL-2.0-or-later
//! Models of benchmarks are built like the real thing: who wakes whom, how often, in which class; and what devices
//! do, no timer shows.
//!
//! The measured side is a trace of a list that scrolls on a real phone (its summary is no part of this repository: where it
//! is absent the comparison is skipped by name). Rates are per frame, for the app of the trace drew 55 a second. Compared on a base
//! kernel, so no patch can have shaped the model.

use crate::determinism::assert_reference;
use crate::scenarios::{SECOND, metric, published_folder, run, scenario};
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_types::draw::{Draws, in_range};
use schedtwin_types::{
    CpuId, DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId, TaskState, WakeSource,
};
use std::collections::{BTreeMap, BTreeSet};

/// A kernel as phones set it up: real-time tasks do not ask for the highest frequency.
const BASE: &str = "linux-5.18:uclamp=on,uclamp_min_rt_default=0";

/// The trace that the model's structure is from.
const TRACE: &str = "trace_input_blog_list_jank";

/// Who wakes whom, between two moments.
#[derive(Default)]
struct WakeGraph {
    names: BTreeMap<TaskId, String>,
    prios: BTreeMap<String, i32>,
    running: BTreeMap<CpuId, TaskId>,
    from: Ns,
    to: Ns,
    /// By waker (`irq` or `timer` in interrupts) and wakee.
    wakes: BTreeMap<(String, String), u64>,
}

impl Observer for WakeGraph {
    const DECISIONS: bool = false;
    fn task(&mut self, id: TaskId, name: &str, prio: i32) {
        self.names.insert(id, name.to_string());
        self.prios.insert(name.to_string(), prio);
    }
    fn task_prio(&mut self, _: Ns, id: TaskId, prio: i32) {
        self.prios.insert(self.names[&id].clone(), prio);
    }
    fn fact(&mut self, fact: &Fact) {
        match fact.kind {
            FactKind::Switch { next, .. } => {
                self.running.insert(fact.cpu, next);
            }
            FactKind::Waking { task, source, .. } if (self.from..self.to).contains(&fact.at) => {
                let waker = match source {
                    WakeSource::Task => self.names[&self.running[&fact.cpu]].clone(),
                    WakeSource::Timer => "timer".to_string(),
                    WakeSource::Kernel => "irq".to_string(),
                };
                *self.wakes.entry((waker, self.names[&task].clone())).or_default() += 1;
            }
            _ => {}
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// A fling's second and a half.
fn scrolling() -> WakeGraph {
    let scenario = scenario("pixel6", BASE, "jankbench --tests list_view --flings 1", None);
    let mut twin: Twin = scenario.twin(1);
    let mut graph =
        WakeGraph { from: 2 * SECOND, to: 3 * SECOND + SECOND / 2, ..WakeGraph::default() };
    twin.introduce(&mut graph);
    while twin.now() < graph.to && twin.step(&mut graph) {}
    graph
}

impl WakeGraph {
    fn count(&self, waker: &str, wakee: &str) -> u64 {
        self.wakes.get(&(waker.to_string(), wakee.to_string())).copied().unwrap_or(0)
    }

    /// Wakeups of a thread, a second.
    fn rate(&self, wakee: &str) -> f64 {
        let count: u64 = self.wakes.iter().filter(|((_, to), _)| to == wakee).map(|(_, n)| n).sum();
        count as f64 / ((self.to - self.from) as f64 / SECOND as f64)
    }
}

/// Kernel priorities as `sched_switch` showed them on the phones of the traces.
#[test]
fn classes_and_priorities_are_those_of_real_phones() {
    let graph = scrolling();
    for (thread, prio) in [
        ("TimerDispatch", 97),
        ("app", 97),
        ("sf", 97),
        ("surfaceflinger", 98),
        ("HwBinder:compos", 98),
        ("crtc_commit", 83),
        ("crtc_event", 83),
        ("kgsl_worker", 97),
        ("irq/32-bwmon", 49),
        ("SensorService", 89),
        ("droid.benchmark", 110),
        ("RenderThread", 110),
        ("GPU completion", 110),
        ("InputDispatcher", 112),
        ("android.ui", 118),
        ("kworker/u16:12", 120),
        ("AutomatorThread", 120),
    ] {
        assert_eq!(graph.prios.get(thread), Some(&prio), "{thread}");
    }
}

/// Of the way of a frame: wakeups a frame of the model and of the trace differ by at most a factor of two. (In the trace
/// some frames draw nothing, and some waits are over before they begin.)
#[test]
fn frames_wake_threads_as_in_the_trace() {
    let graph = scrolling();
    let ours = |pairs: &[(&str, &str)]| -> f64 {
        let count: u64 = pairs.iter().map(|(waker, wakee)| graph.count(waker, wakee)).sum();
        count as f64 / graph.count("droid.benchmark", "RenderThread") as f64
    };
    let Some(measured) = measured_wakes() else { return };
    let theirs = |pairs: &[(&str, &str)]| -> f64 {
        let sum: f64 = pairs.iter().filter_map(|(a, b)| measured.get(&(*a, *b))).sum();
        sum / measured[&(".tencent.matrix", "RenderThread")]
    };
    type Pairs = &'static [(&'static str, &'static str)];
    let table: [(Pairs, Pairs); 9] = [
        (&[("TimerDispatch", "app")], &[("DispSync", "appEventThread")]),
        (&[("app", "droid.benchmark")], &[("appEventThread", ".tencent.matrix")]),
        (&[("RenderThread", "droid.benchmark")], &[("RenderThread", ".tencent.matrix")]),
        (
            &[("RenderThread", "Binder:sf_2")],
            &[("RenderThread", "Binder:25421_4"), ("RenderThread", "Binder:25421_1")],
        ),
        (
            &[("Binder:sf_1", "app")],
            &[("Binder:25421_4", "appEventThread"), ("Binder:25421_1", "appEventThread")],
        ),
        (&[("TimerDispatch", "sf")], &[("DispSync", "sfEventThread")]),
        (&[("sf", "surfaceflinger")], &[("sfEventThread", "surfaceflinger")]),
        (&[("surfaceflinger", "HwBinder:compos")], &[("surfaceflinger", "HwBinder:702_3")]),
        (&[("irq", "crtc_event")], &[("irq", "crtc_event:127")]),
    ];
    for (of_ours, of_theirs) in table {
        let (ours, theirs) = (ours(of_ours), theirs(of_theirs));
        assert!(theirs > 0.3, "{of_theirs:?} is in the trace: {theirs}");
        let ratio = ours / theirs;
        assert!(
            (0.5..=2.0).contains(&ratio),
            "{of_ours:?}: {ours:.2} a frame, measured {theirs:.2}"
        );
    }
}

/// The system's threads wake up as often as measured, within a fifth or three standard deviations of the count; those
/// that the power controller's answers wake in the trace as well less often, since a Pixel 6 polls for answers.
#[test]
fn the_rest_of_the_system_wakes_up_as_often_as_measured() {
    let graph = scrolling();
    let Some(measured) = measured_wakes() else { return };
    for (ours, waker, theirs, answers) in [
        ("kworker/u16:12", "irq", "kworker/u16:12", true),
        ("kworker/u16:10", "irq", "kworker/u16:10", true),
        ("kworker/u16:3", "irq", "kworker/u16:3", true),
        ("irq/32-bwmon", "irq", "irq/32-90b6400.", true),
        ("irq/33-llccbw", "irq", "irq/33-90cd000.", true),
        ("ksoftirqd/2", "irq", "ksoftirqd/2", false),
        ("rcu_preempt", "irq", "rcu_preempt", false),
        ("rcuop/0", "rcu_preempt", "rcuop/0", false),
        ("qrtr_rx", "irq", "qrtr_rx", false),
    ] {
        let (rate, expected) = (graph.rate(ours), measured[&(waker, theirs)]);
        let window = (graph.to - graph.from) as f64 / SECOND as f64;
        let allowed = (expected / 5.0).max(3.0 * (expected / window).sqrt());
        let least = if answers { expected / 4.0 } else { expected - allowed };
        assert!(
            (least..=expected + allowed).contains(&rate),
            "{ours}: {rate:.1}/s, measured {expected:.1}/s"
        );
    }
}

/// Per second, from waker to wakee.
fn measured_wakes() -> Option<BTreeMap<(&'static str, &'static str), f64>> {
    let path = published_folder()?.join("../android/wakeup_graph.csv");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: there is no {} here", path.display());
        return None;
    };
    let text: &'static str = Box::leak(text.into_boxed_str());
    let rows = text.lines().filter_map(|line| line.strip_prefix(TRACE)?.strip_prefix(','));
    let mut wakes = BTreeMap::new();
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        let [waker, wakee, _, per_second] = fields[..] else { panic!("four fields: {row}") };
        wakes.insert((waker, wakee), per_second.parse().expect("a number"));
    }
    Some(wakes)
}

/// A GPU's interrupt wakes its worker, and no timer of the kernel was there to announce it.
#[test]
fn devices_interrupt_without_a_timer() {
    let graph = scrolling();
    assert!(graph.count("irq", "kgsl_worker") > 80, "{}", graph.count("irq", "kgsl_worker"));
    assert_eq!(graph.count("timer", "kgsl_worker"), 0);
    // The display's clock is a prediction, hence a timer.
    assert!(graph.count("timer", "TimerDispatch") > 80);
}

/// The frames of a fling: 22 of its events and 2.57 s at 60 Hz, less what the first, heavy one takes.
#[test]
fn a_test_counts_its_frames() {
    let scenario =
        scenario("pixel6", BASE, "jankbench --tests list_view,overdraw --flings 2", None);
    let result = run(&scenario, 1);
    let by_test = |name: &str, test: &str| {
        let labels = vec![("test", test.to_string())];
        let found = result.metrics.iter().find(|m| m.name == name && m.labels == labels);
        found.and_then(|m| m.value).unwrap_or_else(|| panic!("{name} {test} has a value"))
    };
    let frames =
        metric(&result, "throughput", "mean", &[]) * metric(&result, "elapsed", "sum", &[]);
    let expected = 2.0 * (22.0 + 2.567 * 60.0) + 22.0 + 30.3 * 60.0;
    assert!((frames - expected).abs() < 0.03 * expected, "{frames} frames, {expected} expected");
    for name in ["jank", "frames_over_period"] {
        let all = metric(&result, name, "mean", &[]);
        let parts = [by_test(name, "list_view"), by_test(name, "overdraw")];
        assert!(parts[0].min(parts[1]) <= all && all <= parts[0].max(parts[1]), "{name}");
        assert!((0.0..=100.0).contains(&all), "{name} {all}");
    }
    assert!(
        metric(&result, "jank", "mean", &[]) <= metric(&result, "frames_over_period", "mean", &[])
    );
}

/// With the frames' way at work, which begins after a second.
#[test]
fn the_reference_twin_agrees_on_frames() {
    let duration = Some(SECOND + 400_000_000);
    for kernel in [BASE, "linux-6.12"] {
        assert_reference(kernel, &scenario("pixel6", kernel, "jankbench", duration), 1);
    }
}

/// Each model ends by itself and says what it is for.
#[test]
fn benchmarks_end_and_have_their_results() {
    for (workload, result_of) in [
        ("uibench --tests trivial_list_view --flings 1", "jank"),
        ("geekbench5 --work-ms 20 --gap-ms 10", "score"),
        ("pcmark-web --rounds 1", "score"),
        ("speedometer --iterations 1 --suite-ms 20", "score"),
    ] {
        let result = run(&scenario("pixel6", BASE, workload, None), 1);
        let value = result.metrics.iter().find(|m| m.name == result_of).and_then(|m| m.value);
        let value = value.unwrap_or_else(|| panic!("{workload}: no {result_of}"));
        assert!(value.is_finite() && value >= 0.0, "{workload}: {value}");
        assert!(result.simulated_ns < 30 * SECOND, "{workload}: {}", result.simulated_ns);
    }
}

/// Threads that talk come to an end, however long their messages are, and give their own figures.
#[test]
fn whoever_talks_comes_to_an_end() {
    let draws = Draws::new(1, "hackbench", "options");
    for seed in 0..24 {
        let within = |nth: u64, low, high| in_range(draws.nth(seed * 8 + nth), low, high);
        let size = [1, 100, 4_097, 70_000][within(0, 0, 3) as usize];
        let over = ["", " -p", " -T", " -T -p"][within(1, 0, 3) as usize];
        let [groups, fds, loops] = [within(2, 1, 3), within(3, 1, 12), within(4, 1, 20)];
        let machine = ["uniform8", "pixel6", "x86-2cpu-hz100"][within(5, 0, 2) as usize];
        let workload = format!("hackbench -g {groups} -f {fds} -l {loops} -s {size}{over}");
        let result = run(&scenario(machine, "linux-6.12", &workload, None), seed);
        assert!(metric(&result, "time", "sum", &[]) > 0.0, "{machine} {workload}");
    }
    for (workload, result_of, stat) in [
        ("messaging -g 1 -l 2", "time", "sum"),
        ("netperf -l 1", "trans_rate", "mean"),
        ("sched-pipe -l 1000", "trans_rate", "mean"),
        ("sched-pipe -l 1000 -T", "trans_rate", "mean"),
        ("netperf -l 1 -t UDP_RR", "trans_rate", "mean"),
        ("tbench -t 1", "tbench_throughput", "mean"),
        ("schbench -r 1 -n 1", "average_rps", "mean"),
        ("schbench -r 1 -n 1 -R 50", "average_rps", "mean"),
    ] {
        let result = run(&scenario("uniform8", "linux-6.12", workload, None), 1);
        assert!(metric(&result, result_of, stat, &[]) > 0.0, "{workload}");
    }
}

/// Threads of hackbench, and how often they slept uninterruptibly.
#[derive(Default)]
struct Sleepers(BTreeSet<TaskId>, u64);

impl Observer for Sleepers {
    const DECISIONS: bool = false;
    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        if name.starts_with("hackbench") {
            self.0.insert(id);
        }
    }
    fn fact(&mut self, fact: &Fact) {
        if let FactKind::Switch { prev, prev_state: TaskState::Uninterruptible, .. } = fact.kind {
            self.1 += u64::from(self.0.contains(&prev));
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// Whoever is preempted under a pipe's mutex keeps it, so that others sleep uninterruptibly; a kernel that is not preempted there
/// knows no such sleep.
#[test]
fn a_preempted_owner_of_a_mutex_lets_others_sleep() {
    for (preempt, sleeps) in [("full", true), ("none", false)] {
        let kernel = format!("linux-6.12:preempt={preempt}");
        let scenario = scenario("pixel6", &kernel, "hackbench -T -p -g 1 -l 200", None);
        let (mut twin, mut sleepers): (Twin, _) = (scenario.twin(1), Sleepers::default());
        while twin.step(&mut sleepers) {}
        assert_eq!(sleepers.1 > 0, sleeps, "{preempt}: {} sleeps", sleepers.1);
    }
}

/// After every event of them the reference twin finds that no byte is lost or doubled, and that who sleeps has reason to.
#[test]
fn the_reference_twin_agrees_on_messages() {
    for workload in
        ["hackbench -g 1 -f 4 -l 4 -s 30000", "hackbench -g 1 -f 4 -l 4 -s 30000 -p", "tbench"]
    {
        let duration = Some(SECOND / 50);
        assert_reference(workload, &scenario("uniform8", "linux-6.12", workload, duration), 1);
    }
}

/// Hints make frames shorter where clamps count, for hardly any power (0.7 % in the mean of six seeds), and change no work: where they do not
/// count, all frames are the same.
#[test]
fn hints_make_frames_shorter_where_clamps_count() {
    let measured = |kernel: &str, hints: u32| {
        let workload = format!("uibench --tests trivial_list_view --flings 2 --hints {hints}");
        let scenario = scenario("pixel9", kernel, &workload, None);
        let mut means = [0.0; 2];
        for seed in 1..=6 {
            let result = run(&scenario, seed);
            for (mean, name) in means.iter_mut().zip(["frame_duration", "power"]) {
                *mean += metric(&result, name, "mean", &[]) / 6.0;
            }
        }
        means
    };
    let [plain, hinted] = [0, 1].map(|hints| measured("linux-6.1-gki", hints));
    assert!(hinted[0] < 0.97 * plain[0], "frames, ms: {plain:?} {hinted:?}");
    assert!((hinted[1] / plain[1] - 1.0).abs() < 0.05, "power, mW: {plain:?} {hinted:?}");
    let [plain, hinted] = [0, 1].map(|hints| measured("linux-6.1:uclamp=compiled-out", hints));
    let share = (hinted[0] - plain[0]).abs() / plain[0];
    assert!(share < 0.02, "nothing but the calls: {plain:?} {hinted:?}");
}

/// A boosted task's clock rises when it is enqueued, and not later, whether it slept off its run queue or stayed on it.
#[test]
fn clamps_that_count_before_the_enqueue_raise_the_clock_sooner() {
    for (workload, task) in [("boosted-sleeper", "sleeper"), ("boosted-delayed", "delayed")] {
        let took = |kernel: &str| {
            let result = run(&scenario("juno-r2", kernel, workload, Some(5 * SECOND)), 1);
            metric(&result, "frame_duration", "mean", &[("task", task)])
        };
        let [late, early] = ["linux-6.12", "linux-6.12+uclamp-enqueue-order"].map(took);
        assert!(early < 0.92 * late, "{task}: {late} ms, then {early} ms");
        // Before 6.12 the order was that of the patch; the default rate limit was another.
        let before = took("linux-6.6:schedutil.rate_limit_us=1500");
        assert!(before < 0.92 * late, "{task}: {late} ms, {before} ms under 6.6");
    }
}
