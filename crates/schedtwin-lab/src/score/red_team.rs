// SPDX-License-Identifier: GPL-2.0-or-later
//! Twelve cheats: candidates that raise a number without being better. Each is shown twice: without the guard it wins over an honest
//! candidate, with it it does not. A guard whose cheat would lose anyway guards nothing.
//!
//! | cheat | guard |
//! |---|---|
//! | starves tasks of low weight | properties |
//! | rations them, within the bounds | `least_work` |
//! | sleeps through a window, over and over | energy is that of the work that was done |
//! | stops before the end of the run | the same, the length varies, and the run goes on until what was begun is done |
//! | keeps the lowest clock | `least_work` |
//! | packs everything on one CPU | properties: work-conservation |
//! | knows the machine by its CPUs | machines vary |
//! | knows a task by its number | jobs that are held out |
//! | hides harm above the percentile | `least_work` is asked of each task |
//! | buys everything with one measure | `cap` |
//! | unloads itself, and the baseline runs instead | a run that ended before its time |
//! | never finishes the benchmark | a missing value is the worst |

use std::path::Path;
use std::sync::OnceLock;

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::policy::{
    CpuId, ExtProperties, ExtScheduler, FrequencyDecision, FrequencyGovernor, Kfuncs, PolicyView,
    SCX_DSQ_LOCAL, SCX_SLICE_DFL, TaskId,
};
use schedtwin_input::Source;

use super::judge::judge;
use super::observed::Observed;
use super::prepare::{Performed, Prepared};
use super::race::{Candidate, Conditions, Outcome, Scored, score};
use super::{read, suite::Suite};
use crate::Progress;

const MS: u64 = 1_000_000;

// ---- schedulers --------------------------------------------------------------------------------------------------

/// What a scheduler does beside its duty.
#[derive(Clone, Copy, PartialEq)]
enum Trick {
    /// Nothing: one queue for all CPUs, in turn.
    None,
    /// Tasks with a nice value above 0 run in the first so many ms of each so many.
    Rations(u64, u64),
    /// No task runs from this time on, ms.
    StopsAll(u64),
    /// Tasks with a nice value above 0 do not run between these times, ms.
    Stops(u64, u64),
    /// Everything runs on one CPU.
    Packs,
    /// It gives up after so many ms.
    Unloads(u64),
    /// It runs tasks whose numbers are not these first.
    Knows(u32, u32),
}

#[derive(Clone)]
struct Scheduler {
    trick: Trick,
    timer: u32,
}

const SHARED: u64 = 0;
const HELD: u64 = 1;

impl Scheduler {
    /// Whether a task goes to the queue of those that wait.
    fn holds(&self, scx: &Kfuncs, task: TaskId) -> bool {
        match self.trick {
            Trick::Rations(..) | Trick::Stops(..) => scx.task(task).nice > 0,
            Trick::Knows(from, to) => !(from..to).contains(&task.0),
            Trick::StopsAll(_) => true,
            Trick::None | Trick::Packs | Trick::Unloads(_) => false,
        }
    }

    /// Whether these run now.
    fn lets_go(&self, now: u64) -> bool {
        let ms = now / MS;
        match self.trick {
            Trick::Rations(open, of) => ms % of < open,
            Trick::Stops(from, until) => !(from..until).contains(&ms),
            Trick::StopsAll(from) => ms < from,
            _ => true,
        }
    }
}

impl ExtScheduler for Scheduler {
    /// The watchdog would end most of these: it is a guard of its own, which is switched off here.
    fn properties(&self) -> ExtProperties {
        ExtProperties { timeout_ms: 30_000, timeout_is_the_users: true, ..ExtProperties::default() }
    }

    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        self.timer = scx.timer_init();
        scx.timer_start(self.timer, MS, false, false);
        scx.create_dsq(SHARED) + scx.create_dsq(HELD)
    }

    fn select_cpu(&mut self, scx: &mut Kfuncs, task: TaskId, prev: CpuId, flags: u64) -> i32 {
        if self.trick == Trick::Packs {
            return 0;
        }
        let (cpu, is_idle) = scx.select_cpu_dfl(task, prev, flags);
        if is_idle && (!self.holds(scx, task) || self.lets_go(scx.now())) {
            scx.dsq_insert(task, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
        }
        cpu.0.into()
    }

    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, flags: u64) {
        let queue = if self.holds(scx, task) { HELD } else { SHARED };
        // Kernel threads and tasks that are bound to a CPU are no part of the game.
        let queue = if scx.task(task).nr_cpus_allowed == 1 { SCX_DSQ_LOCAL } else { queue };
        scx.dsq_insert(task, queue, SCX_SLICE_DFL / 10, flags);
    }

    fn dispatch(&mut self, scx: &mut Kfuncs, cpu: CpuId, _: Option<TaskId>) {
        if self.trick == Trick::Packs && cpu != CpuId(0) {
            return;
        }
        if !scx.dsq_move_to_local(SHARED, 0) && self.lets_go(scx.now()) {
            scx.dsq_move_to_local(HELD, 0);
        }
    }

    fn timer(&mut self, scx: &mut Kfuncs, timer: u32) {
        if matches!(self.trick, Trick::Unloads(end) if scx.now() / MS >= end) {
            return scx.error("it gives up");
        }
        let waiting = scx.dsq_nr_queued(HELD);
        if self.lets_go(scx.now()) && waiting > 0 {
            let idle = scx.idle_cpumask();
            idle.iter().take(waiting as usize).for_each(|cpu| scx.kick_cpu(cpu.0.into(), 1));
        }
        scx.timer_start(timer, MS, false, false);
    }
}

fn scheduler(trick: Trick) -> Candidate {
    let kernel = KernelFile::load("linux-7.3").unwrap();
    let make = move || Scheduler { trick, timer: 0 };
    let kernel = kernel.with_ext_scheduler("a scheduler", make).unwrap();
    Candidate { name: "a scheduler".into(), kernel: Ok(kernel) }
}

/// Keeps one operating point; on machines with another table than the one that it knows a bad one.
#[derive(Clone)]
struct Clock {
    /// Which part of the highest frequency, percent.
    percent: u64,
    /// How many CPUs share a clock on the machine that it knows.
    knows: Option<usize>,
}

impl FrequencyGovernor for Clock {
    fn update_util(&mut self, view: &PolicyView) -> Option<FrequencyDecision> {
        let stranger = self.knows.is_some_and(|known| known != view.cpus.len());
        let percent = if stranger { 1 } else { self.percent };
        let khz = (u64::from(view.max_khz) * percent / 100) as u32;
        Some(FrequencyDecision { khz, rule: "a constant" })
    }
}

fn clock(percent: u64, knows: Option<usize>) -> Candidate {
    let kernel = KernelFile::load("linux-7.3").unwrap();
    let kernel =
        kernel.with_frequency_governor("a clock", move |_| Clock { percent, knows }).unwrap();
    Candidate { name: "a clock".into(), kernel: Ok(kernel) }
}

// ---- suites ------------------------------------------------------------------------------------------------------

/// The path of a workload with these tasks.
fn workload(name: &str, tasks: &str) -> String {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    let path = folder.path().join(format!("{name}.json"));
    let text = format!(
        r#"{{ "global": {{ "duration": 2, "calibration": "largest" }}, "tasks": {{ {tasks} }} }}"#
    );
    if !Path::new(&path).exists() {
        std::fs::write(&path, text).unwrap();
    }
    path.to_str().unwrap().to_string()
}

/// A user interface beside work of low weight on all CPUs.
const DESKTOP: &str = r#"
"ui": { "instance": 4, "loop": -1, "run": 3000, "timer": { "ref": "unique", "period": 16000 } },
"batch": { "instance": 8, "priority": 10, "loop": -1, "run": 5000, "sleep": 3000 }"#;

/// A suite of one job, with lines of its own.
fn one_job(lines: &str, workload: &str, measure: &str) -> Suite {
    let text = format!(
        r#"
name = "red"
description = "of the red team"
baseline = "linux-7.3"
seeds = 2
properties = ["starvation", "latency-bound", "work-conservation"]
{lines}
[[job]]
name = "job"
machines = ["uniform8"]
workloads = ["{workload}"]
duration = "1200ms"
measure = [{measure}]
"#
    );
    read::read(&Source::new("red.toml", text)).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The same without what guards it.
fn unguarded(suite: &Suite) -> Suite {
    Suite { properties: Vec::new(), least_work: 0.0, vary_percent: 0, ..suite.clone() }
}

fn scored(suite: &Suite, candidate: &Candidate) -> Scored {
    let prepared = Prepared::of(suite.clone()).unwrap_or_else(|faults| panic!("{faults}"));
    let candidates = std::slice::from_ref(candidate);
    let scores = score(&prepared, candidates, &Conditions::default(), &Progress::new());
    scores.unwrap().unwrap_or_else(|faults| panic!("{faults}")).remove(0)
}

/// The score of a candidate that is judged after `change` of the baseline's and its own runs: a world without that guard.
fn scored_without(
    suite: &Suite,
    candidate: &Candidate,
    change: impl Fn(&mut Observed, &mut Observed),
) -> f64 {
    let prepared = Prepared::of(suite.clone()).unwrap();
    let progress = Progress::new();
    let baseline = prepared.baseline(None, &progress).unwrap().unwrap();
    let kernel = candidate.kernel.as_ref().unwrap();
    let job = &suite.jobs[0];
    let gain = |run: u64| {
        let performed = prepared.perform((0, run), kernel, None, &progress).unwrap();
        let Performed::Observed(mut run_of, _) = performed else { panic!("it runs") };
        let mut base = baseline.0[0][run as usize].clone();
        change(&mut base, &mut run_of);
        let judged = judge(suite, job, &base, &run_of);
        assert_eq!(judged.fault, None);
        judged.gain(job)
    };
    super::of_gain((0..suite.seeds).map(gain).sum::<f64>() / suite.seeds as f64)
}

/// As [`scored_without`], of how the run ended.
fn scored_without_end(suite: &Suite, candidate: &Candidate) -> f64 {
    scored_without(suite, candidate, |_, run| run.ended.clear())
}

/// The kind of the fault that ended a candidate.
fn fault(of: &Scored) -> &'static str {
    match &of.outcome {
        Outcome::Fault { fault, .. } => fault.kind(),
        other => panic!("{other:?} with {}", of.score),
    }
}

/// Without its guards the suite prefers the cheat to the honest candidate; with them the cheat is over, for this reason, and the
/// honest one is not.
fn is_ended(suite: &Suite, cheat: &Candidate, honest: &Candidate, kind: &str) {
    let [won, lost] = [cheat, honest].map(|of| scored_without_end(&unguarded(suite), of));
    assert!(won > lost + 1.0, "without a guard the cheat has {won}, the honest one {lost}");
    let caught = scored(suite, cheat);
    assert_eq!((caught.score, fault(&caught)), (0.0, kind));
    assert!(scored(suite, honest).score > 0.0, "{:?}", scored(suite, honest).outcome);
}

const FRAMES: &str = r#"{ metric = "frame_duration.p99,task=ui" }"#;
const POWER: &str = r#"{ metric = "power.mean" }"#;

// ---- cheats ------------------------------------------------------------------------------------------------------

#[test]
fn who_starves_tasks_of_low_weight_breaks_a_property() {
    let tasks = DESKTOP.replace("\"instance\": 4", "\"instance\": 3");
    let tasks =
        tasks.replace("\"instance\": 8, \"priority\": 10", "\"instance\": 2, \"priority\": 1");
    let mut suite = one_job("least_work = 0", &workload("two", &tasks), FRAMES);
    (suite.jobs[0].duration, suite.jobs[0].machines) = (3000 * MS, vec!["x86-2cpu-hz100".into()]);
    is_ended(&suite, &scheduler(Trick::Rations(5, 2900)), &scheduler(Trick::None), "property");
}

#[test]
fn who_rations_them_within_the_bounds_leaves_work_undone() {
    let tasks = DESKTOP.replace("\"instance\": 8", "\"instance\": 24");
    let mut suite = one_job("", &workload("crowd", &tasks), FRAMES);
    // Work conservation would end it, too; here the work has to.
    suite.properties.pop();
    let rations = scheduler(Trick::Rations(20, 200));
    is_ended(&suite, &rations, &scheduler(Trick::None), "work");
}

/// A nap of 100 ms breaks no bound here and saves energy: the jobs that it costs are charged.
#[test]
fn who_sleeps_through_windows_saves_nothing() {
    saves_nothing("", Trick::Rations(100, 200));
}

#[test]
fn who_stops_before_the_end_saves_nothing() {
    saves_nothing("vary_percent = 0", Trick::Stops(1000, 1300));
}

fn saves_nothing(lines: &str, trick: Trick) {
    // All of it can be held: only the thread that ends the run has nice 0.
    let nice = DESKTOP.replace("\"instance\": 4", "\"instance\": 4, \"priority\": 1");
    let measures = format!(r#"{FRAMES}, {{ metric = "power.mean", weight = 6 }}"#);
    let mut suite = one_job(lines, &workload("nice", &nice), &measures);
    (suite.properties, suite.least_work) = (Vec::new(), 0.0);
    let uncharged = |trick| {
        scored_without(&suite, &scheduler(trick), |base, run| {
            base.tasks.clear();
            run.tasks.clear();
        })
    };
    let [won, lost] = [trick, Trick::None].map(uncharged);
    assert!(won > lost + 5.0, "uncharged the cheat has {won}, the honest one {lost}");
    let [caught, honest] = [trick, Trick::None].map(|of| scored(&suite, &scheduler(of)).score);
    assert!(caught <= honest + 1.0, "charged the cheat has {caught}, the honest one {honest}");
}

/// Who stops 50 ms before the shortest end gains by it in a fixed length only: the others go on for longer.
#[test]
fn who_knows_the_end_does_not_know_it_if_it_varies() {
    let length = |vary| {
        let suite =
            one_job(&format!("vary_percent = {vary}"), &workload("desktop", DESKTOP), POWER);
        let job = &suite.jobs[0];
        (0..20).map(|run| suite.draw(job, run).duration / MS).collect::<Vec<u64>>()
    };
    assert!(length(0).iter().all(|ms| *ms == 1200));
    let varied = length(25);
    let guessed = varied.iter().filter(|ms| ms.abs_diff(1200) < 50).count();
    assert!(guessed <= 6, "a fifth of them at most: {varied:?}");
}

#[test]
fn who_keeps_the_lowest_clock_leaves_work_undone() {
    let busy = DESKTOP.replace("\"run\": 5000", "\"run\": 12000");
    let suite = one_job("", &workload("busy", &busy), POWER);
    let mut suite = Suite { least_work: 0.8, ..suite };
    suite.properties.clear();
    let uncharged = scored_without(
        &Suite { least_work: 0.0, ..suite.clone() },
        &clock(1, None),
        |base, run| {
            base.tasks.clear();
            run.tasks.clear();
        },
    );
    assert!(uncharged > 101.0, "without the work the lowest clock has {uncharged}");
    assert_eq!(fault(&scored(&suite, &clock(1, None))), "work");
}

#[test]
fn who_packs_everything_on_one_cpu_leaves_cpus_idle() {
    let tasks = r#"
"ui": { "instance": 4, "loop": -1, "run": 200, "timer": { "ref": "unique", "period": 16000 } },
"long": { "instance": 2, "loop": -1, "run": 190000, "timer": { "ref": "unique", "period": 600000 } }"#;
    let mut suite = one_job("", &workload("packed", tasks), POWER);
    suite.least_work = 0.0;
    is_ended(&suite, &scheduler(Trick::Packs), &scheduler(Trick::None), "property");
}

/// It keeps the best clock on the machine that it knows, and the lowest one elsewhere.
#[test]
fn who_knows_the_machine_does_not_know_all() {
    let both = format!(r#"{POWER}, {{ metric = "wakeup_latency.mean", least = 5 }}"#);
    let light = DESKTOP.replace("\"run\": 5000", "\"run\": 1000");
    let known = one_job("", &workload("light", &light), &both);
    let (cheat, honest) = (clock(60, Some(8)), clock(100, None));
    let [won, lost] = [&cheat, &honest].map(|of| scored(&known, of).score);
    eprintln!("{:?}", [&cheat, &honest].map(|of| scored(&known, of).judged));
    assert!(won > lost, "on the machine that it knows the cheat has {won}, the honest one {lost}");
    let mut varied = known.clone();
    varied.jobs[0].machines.push("laptop-8c16t".into());
    let [caught, honest] = [&cheat, &honest].map(|of| scored(&varied, of).score);
    assert!(caught < honest, "elsewhere the cheat has {caught}, the honest one {honest}");
}

#[test]
fn who_knows_a_task_gains_nothing_where_it_is_held_out() {
    let crowd = DESKTOP.replace("\"instance\": 8", "\"instance\": 24");
    // The same tasks in another order: numbers that were the user interface's are the batch's.
    let (ui, batch) = crowd.split_once("\"batch\"").unwrap();
    let turned = format!("\"batch\"{batch}, {}", ui.trim().trim_end_matches(','));
    let mut suite = one_job("", &workload("crowd", &crowd), FRAMES);
    (suite.properties, suite.least_work) = (Vec::new(), 0.0);
    let first = first_of("ui", &suite);
    let (cheat, honest) = (scheduler(Trick::Knows(first, first + 4)), scheduler(Trick::None));
    let [won, lost] = [&cheat, &honest].map(|of| scored(&suite, of).score);
    assert!(
        won > lost + 1.0,
        "in the job that it knows the cheat has {won}, the honest one {lost}"
    );
    let mut held_out = suite.jobs[0].clone();
    held_out.name = "held".into();
    held_out.held_out = true;
    held_out.workloads = vec![workload("turned", &turned)];
    let own = Suite { jobs: vec![held_out], ..suite };
    let [caught, honest] = [&cheat, &honest].map(|of| scored(&own, of).score);
    assert!(caught <= honest, "held out the cheat has {caught}, the honest one {honest}");
}

/// The number of the first thread of a task.
fn first_of(task: &str, suite: &Suite) -> u32 {
    let job = &suite.jobs[0];
    let spelled = (&job.machines[0], &job.workloads[0]);
    let scenario =
        schedtwin_engine::Scenario::new(spelled.0, "linux-7.3", spelled.1, Some(50 * MS)).unwrap();
    let result = scenario.run(1, schedtwin_engine::RunOptions::default()).unwrap();
    let of = |name: &str| name == task || name.starts_with(&format!("{task}-"));
    result
        .tasks
        .iter()
        .filter(|found| of(&found.name))
        .map(|found| found.id)
        .min()
        .expect("it runs")
}

/// Its victim is one task in a hundred wakeups, above the percentile that is measured.
#[test]
fn who_hides_harm_above_the_percentile_leaves_a_task_behind() {
    let tasks = r#"
"ui": { "instance": 12, "loop": -1, "run": 5500, "timer": { "ref": "unique", "period": 8000 } },
"rare": { "priority": 10, "loop": -1, "run": 9000, "timer": { "ref": "unique", "period": 100000 } }"#;
    let mut suite = one_job("", &workload("rare", tasks), r#"{ metric = "wakeup_latency.p99" }"#);
    suite.properties.clear();
    let cheat = scheduler(Trick::Rations(1, 400));
    is_ended(&suite, &cheat, &scheduler(Trick::None), "work");
}

/// The highest clock everywhere: latency pays for any power, as long as it may.
#[test]
fn who_buys_everything_with_one_measure_is_capped() {
    let both = r#"{ metric = "power.mean" }, { metric = "wakeup_latency.mean" }"#;
    let light = r#"
"ui": { "instance": 10, "loop": -1, "run": 2000, "timer": { "ref": "unique", "period": 16000 } }"#;
    let mut suite = one_job("cap = 1.1", &workload("light", light), both);
    suite.jobs[0].machines = vec!["pixel6".into()];
    (suite.properties, suite.least_work) = (Vec::new(), 0.0);
    let [cheat, honest] = ["linux-7.3:cpufreq=performance", "linux-7.3"].map(Candidate::named);
    let [won, lost] =
        [&cheat, &honest].map(|of| scored(&Suite { cap: 1e6, ..suite.clone() }, of).score);
    assert!(won > lost + 1.0, "without a cap the cheat has {won}, the honest one {lost}");
    let [caught, honest] = [&cheat, &honest].map(|of| scored(&suite, of).score);
    assert!(caught <= honest, "capped the cheat has {caught}, the honest one {honest}");
}

#[test]
fn who_unloads_itself_has_not_scheduled() {
    let mut suite = one_job("", &workload("desktop", DESKTOP), POWER);
    (suite.properties, suite.least_work) = (Vec::new(), 0.0);
    let (cheat, honest) = (scheduler(Trick::Unloads(5)), scheduler(Trick::None));
    let won = scored_without(&suite, &cheat, |_, run| run.ended.clear());
    let lost = scored(&suite, &honest).score;
    assert!(won > lost, "the baseline in its place has {won}, the honest one {lost}");
    assert_eq!(fault(&scored(&suite, &cheat)), "ended");
}

#[test]
fn who_never_finishes_the_benchmark_has_the_worst_value() {
    let measure = r#"{ metric = "time" }, { metric = "context_switches.sum", better = "lower" }"#;
    let mut suite = one_job("cap = 10", "hackbench -g 1 -l 40", measure);
    (suite.properties, suite.least_work) = (Vec::new(), 0.0);
    let cheat = scheduler(Trick::StopsAll(6));
    let won = scored_without(&suite, &cheat, |base, run| {
        base.values[0] = None;
        run.ended.clear();
    });
    let caught = scored_without_end(&suite, &cheat);
    let honest = scored(&suite, &scheduler(Trick::None)).score;
    assert!(won > honest, "left out the cheat has {won}, the honest one {honest}");
    assert!(caught < honest, "counted the cheat has {caught}, the honest one {honest}");
}
