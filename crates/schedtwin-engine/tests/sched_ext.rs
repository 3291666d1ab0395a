// SPDX-License-Identifier: GPL-2.0-or-later
//! Schedulers of sched_ext: in the place of the fair class, in Rust and in C, verified after each event.
//!
//! Tests with C are skipped by name where there is no compiler, those with the kernel's schedulers where
//! `SCHEDTWIN_KERNEL_TREE_7_3` names no tree that has `tools/sched_ext`.

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::policy::*;
use schedtwin_engine::result::{RunResult, SCX_ENDED};
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_types::{CpuId, DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const MS: Ns = 1_000_000;
const SECOND: Ns = 1000 * MS;

fn load(spec: &str) -> KernelFile {
    KernelFile::load(spec).unwrap_or_else(|faults| panic!("{spec}: {faults}"))
}

fn scenario(machine: &str, workload: &str, kernel: KernelFile) -> Scenario {
    Scenario::with_kernel(machine, kernel, workload, Some(SECOND)).unwrap()
}

/// Runs with every sum verified after every event.
fn verified(machine: &str, workload: &str, kernel: KernelFile) -> RunResult {
    let options = RunOptions { verify: true, ..RunOptions::default() };
    scenario(machine, workload, kernel).run(3, options).unwrap()
}

fn run(machine: &str, workload: &str, kernel: &str) -> RunResult {
    scenario(machine, workload, load(kernel)).run(3, RunOptions::default()).unwrap()
}

fn metric(result: &RunResult, name: &str, label: &str) -> f64 {
    let found = result.metrics.iter().find(|m| {
        m.name == name && (label.is_empty() || m.labels.iter().any(|(_, value)| value == label))
    });
    found.and_then(|m| m.value).unwrap_or_else(|| panic!("no {name} {label}"))
}

/// An rt-app file of the test of that name.
fn workload(name: &str, tasks: &str) -> String {
    let text = format!(
        r#"{{ "global": {{ "duration": 1, "calibration": "largest" }}, "tasks": {{ {tasks} }} }}"#
    );
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

// ---- built-in schedulers -----------------------------------------------------------------------------------------

/// Loading a scheduler asks for the highest clock, and nobody asks again but one that calls `scx_bpf_cpuperf_set()`. Where the
/// machine was idle before, a clock that began low would stay there.
#[test]
fn clocks_under_schedutil_are_as_loading_leaves_them() {
    let clocks = |kernel: &str| -> Vec<f64> {
        let metrics = run("icelake-2s", "shell -j 6 -l 5000", kernel).metrics;
        metrics.iter().filter(|m| m.name == "freq_mean").filter_map(|m| m.value).collect()
    };
    // Of CPUs that ran.
    let highest = clocks("linux-7.3:cpufreq=performance")[0];
    for kernel in ["linux-7.3:scx=simple", "linux-6.12:scx=fifo"] {
        let found = clocks(kernel);
        let low: Vec<&f64> = found.iter().filter(|mhz| **mhz < 0.99 * highest).collect();
        assert!(!found.is_empty() && low.is_empty(), "{kernel}: {low:?} of {highest}");
    }
}

#[test]
fn built_in_schedulers_run_on_all_kinds_of_machines() {
    for kernel in ["linux-7.3", "linux-6.12"] {
        for scheduler in ["simple", "fifo", "random"] {
            for (machine, workload) in [
                ("pixel6", "ui-phone"),
                ("uniform8", "periodic"),
                ("i5-10600k", "ui-phone"),
                ("juno-r2", "ui-phone"),
            ] {
                let spec = format!("{kernel}:scx={scheduler}");
                let result = verified(machine, workload, load(&spec));
                assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{spec}: {:?}", result.notices);
                assert!(metric(&result, "scx_ops", "") > 50.0, "{spec} {machine}");
            }
        }
    }
}

/// What a clone in the middle of a run does is what the run does.
fn continues_as_a_clone(spec: &str) {
    let scenario = scenario("pixel6", "ui-phone", load(spec));
    let mut twin: Twin = scenario.twin(5);
    let mut clone = None;
    while twin.step(&mut ()) {
        if twin.events() == 4000 {
            clone = Some(twin.clone());
        }
    }
    let mut clone = clone.expect("there are more events");
    while clone.step(&mut ()) {}
    assert_eq!(clone.digest(), twin.digest(), "{spec}");
}

#[test]
fn a_clone_continues_like_the_original() {
    for scheduler in ["simple", "random"] {
        continues_as_a_clone(&format!("linux-7.3:scx={scheduler}"));
    }
}

// ---- what happens when -------------------------------------------------------------------------------------------

/// Notes the switches of CPU 0.
#[derive(Default)]
struct Switches(Vec<(Ns, TaskId)>);

impl Observer for Switches {
    const DECISIONS: bool = false;
    fn task(&mut self, _: TaskId, _: &str, _: i32) {}
    fn fact(&mut self, fact: &Fact) {
        if let FactKind::Switch { next, .. } = fact.kind
            && fact.cpu == CpuId(0)
        {
            self.0.push((fact.at, next));
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// Tasks that always run, on one CPU, with these nice values.
fn hogs(name: &str, nice: &[i32]) -> String {
    let hog = |(at, nice): (usize, &i32)| {
        format!(
            r#""hog{at}": {{ "cpus": [0], "priority": {nice}, "loop": -1, "phases": {{ "all": {{ "run": 1000 }} }} }}"#
        )
    };
    let all: Vec<String> = nice.iter().enumerate().map(hog).collect();
    workload(name, &all.join(", "))
}

#[test]
fn slices_end_with_the_first_tick_after_20_ms() {
    for kernel in ["linux-6.12", "linux-7.3"] {
        let scenario =
            scenario("uniform8", &hogs("slices", &[0, 0]), load(&format!("{kernel}:scx=simple")));
        let mut twin: Twin = scenario.twin(1);
        let mut seen = Switches::default();
        while twin.step(&mut seen) {}
        // From when both run: HZ is 250, so pieces are five or six ticks.
        let pieces: Vec<Ns> =
            seen.0.windows(2).map(|pair| pair[1].0 - pair[0].0).skip(12).collect();
        let long = pieces.iter().filter(|piece| **piece > 19 * MS).count();
        assert!(long >= 30, "{kernel}: {pieces:?}");
        // The run's end cuts the last one.
        let whole = &pieces[..pieces.len() - 3];
        for piece in whole.iter().filter(|piece| **piece > 5 * MS) {
            assert!((23 * MS..=25 * MS).contains(piece), "{kernel}: {piece} of {pieces:?}");
        }
    }
}

#[test]
fn virtual_time_divides_by_weight() {
    // While one runs the other two wait, and the queue has something to choose from: of two tasks the one that waits is
    // always next.
    let result = run("uniform8", &hogs("weights", &[0, 0, 5]), "linux-7.3:scx=simple");
    let time = |name: &str| {
        let task = result.tasks.iter().find(|task| task.name.starts_with(name));
        task.expect("it ran").cpu_time_ns as f64
    };
    // nice 5 has weight 335, which is 33 of 100.
    let ratio = time("hog0") / time("hog2");
    assert!((2.5..3.6).contains(&ratio), "{ratio}");
}

#[test]
fn real_time_tasks_leave_the_class_a_twentieth_in_7_3() {
    let rt = r#""rt": { "policy": "SCHED_FIFO", "priority": 50, "cpus": [0], "loop": -1, "phases": { "all": { "run": 1000 } } }"#;
    let normal = r#""normal": { "cpus": [0], "loop": -1, "phases": { "all": { "run": 1000 } } }"#;
    let both = workload("starve", &format!("{rt}, {normal}"));
    let share = |kernel: &str| {
        let scenario =
            Scenario::with_kernel("uniform8", load(kernel), &both, Some(5 * SECOND)).unwrap();
        let result = scenario.run(1, RunOptions::default()).unwrap();
        let task = result.tasks.iter().find(|task| task.name.starts_with("normal"));
        task.map_or(0.0, |task| task.cpu_time_ns as f64 / result.simulated_ns as f64)
    };
    let newer = share("linux-7.3:scx=simple");
    assert!((0.03..0.07).contains(&newer), "{newer}");
    // The watchdog of a short run would end the scheduler.
    let older = "linux-6.12:scx=simple,scx.timeout_ms=30000,rt_runtime_us=-1";
    assert!(share(older) < 0.01, "6.12 has no server for it");
    assert!(share("linux-6.12:scx=simple,rt_runtime_us=-1") > 0.01, "the fair class has one");
}

/// Writes down its callbacks.
#[derive(Clone)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, scx: &Kfuncs, task: TaskId, what: &str) {
        if scx.task(task).nr_cpus_allowed == 2 {
            self.0.lock().unwrap().push(what.to_string());
        }
    }
}

impl ExtScheduler for Log {
    fn select_cpu(&mut self, scx: &mut Kfuncs, task: TaskId, prev: CpuId, _: u64) -> i32 {
        self.add(scx, task, "select_cpu");
        prev.0.into()
    }
    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        self.add(scx, task, &format!("enqueue {enq_flags:#x}"));
        scx.dsq_insert(task, 9, 1_000_000, enq_flags);
    }
    fn dequeue(&mut self, scx: &mut Kfuncs, task: TaskId, deq_flags: u64) {
        self.add(scx, task, &format!("dequeue {deq_flags:#x}"));
    }
    fn dispatch(&mut self, scx: &mut Kfuncs, _: CpuId, prev: Option<TaskId>) {
        if let Some(prev) = prev {
            let queued = if scx.task(prev).queued { "queued" } else { "gone" };
            self.add(scx, prev, &format!("dispatch, prev {queued}"));
        }
        scx.dsq_move_to_local(9, 0);
    }
    fn runnable(&mut self, scx: &mut Kfuncs, task: TaskId, _: u64) {
        self.add(scx, task, "runnable");
    }
    fn running(&mut self, scx: &mut Kfuncs, task: TaskId) {
        self.add(scx, task, "running");
    }
    fn stopping(&mut self, scx: &mut Kfuncs, task: TaskId, runnable: bool) {
        self.add(scx, task, &format!("stopping {runnable}"));
    }
    fn quiescent(&mut self, scx: &mut Kfuncs, task: TaskId, deq_flags: u64) {
        self.add(scx, task, &format!("quiescent {deq_flags:#x}"));
    }
    fn init_task(&mut self, _: &mut Kfuncs, _: TaskId, fork: bool) -> i32 {
        self.0.lock().unwrap().push(format!("init_task {fork}"));
        0
    }
    fn enable(&mut self, _: &mut Kfuncs, _: TaskId) {
        self.0.lock().unwrap().push("enable".to_string());
    }
    fn disable(&mut self, _: &mut Kfuncs, _: TaskId) {
        self.0.lock().unwrap().push("disable".to_string());
    }
    fn exit_task(&mut self, _: &mut Kfuncs, _: TaskId) {
        self.0.lock().unwrap().push("exit_task".to_string());
    }
    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        self.0.lock().unwrap().push("init".to_string());
        scx.create_dsq(9)
    }
    fn exit(&mut self, _: &mut Kfuncs) {
        self.0.lock().unwrap().push("exit".to_string());
    }
}

#[test]
fn callbacks_come_in_the_kernel_s_order() {
    let sleeper = workload(
        "order",
        r#""sleeper": { "cpus": [0, 1], "loop": 3, "phases": { "all": { "run": 500, "sleep": 3000 } } }"#,
    );
    for (kernel, dequeue) in [("linux-7.3", &["dequeue 0x0"][..]), ("linux-6.12", &[])] {
        let log = Arc::new(Mutex::new(Vec::new()));
        let of_run = Log(log.clone());
        let kernel = load(kernel).with_ext_scheduler("log", move || of_run.clone()).unwrap();
        verified("uniform8", &sleeper, kernel);
        let log = log.lock().unwrap();
        let from = log.iter().rposition(|what| what == "select_cpu").expect("it woke up");
        let mut expected = vec!["select_cpu", "runnable", "enqueue 0x100001"];
        expected.extend(dequeue);
        expected.extend(["running", "stopping false", "quiescent 0x1", "dispatch, prev gone"]);
        let wakeup: Vec<&str> = log[from..].iter().map(String::as_str).collect();
        assert_eq!(wakeup[..expected.len()], expected, "{log:?}");
        assert!(log.iter().any(|what| what == "init_task true"), "forks: {log:?}");
    }
}

/// Two tasks on one CPU, and a scheduler that comes and goes meanwhile.
#[test]
fn a_scheduler_comes_while_tasks_run_and_goes() {
    for release in ["linux-7.3", "linux-6.12"] {
        let log = Arc::new(Mutex::new(Vec::new()));
        let of_run = Log(log.clone());
        let kernel = load(release).with_ext_scheduler("log", move || of_run.clone()).unwrap();
        let loading = ExtLoading { at: 300 * MS, until: Some(600 * MS), watchdog_most: None };
        let hogs = hogs("comes", &[0, 0]);
        let result = verified("uniform8", &hogs, kernel.with_ext_loading(loading));
        assert_eq!(metric(&result, "scx_errors", ""), 0.0);
        let notice = "sched_ext: a scheduler was stopped: log, at 600ms";
        assert!(result.notices.iter().any(|line| line.starts_with(notice)), "{:?}", result.notices);
        let log = log.lock().unwrap();
        let first = |what: &str| log.iter().position(|line| line == what).expect(what);
        let last = |what: &str| log.iter().rposition(|line| line == what).expect(what);
        assert_eq!((first("init"), last("exit")), (0, log.len() - 1), "{log:?}");
        assert!(first("init_task false") < first("enable"), "{log:?}");
        assert!(last("disable") < last("exit_task"), "{log:?}");
    }
}

/// Each tick ends a turn in bypass, which lasts from the wish to unload until all others are done with cgroups and forks: two
/// grace periods of two ticks.
#[test]
fn in_bypass_tasks_run_in_turn() {
    for release in ["linux-7.3", "linux-6.12"] {
        let kernel = load(&format!("{release}:scx=simple,scx.load_ms=300,scx.unload_ms=600"));
        let mut twin: Twin = scenario("uniform8", &hogs("turns", &[0, 0]), kernel).twin(1);
        let mut seen = Switches::default();
        while twin.step(&mut seen) {}
        let turns = |from: Ns, to: Ns| -> Vec<Ns> {
            let within = seen.0.windows(2).filter(|pair| from <= pair[0].0 && pair[1].0 <= to);
            within.map(|pair| pair[1].0 - pair[0].0).filter(|turn| *turn > MS / 10).collect()
        };
        let before = turns(400 * MS, 600 * MS);
        assert!(before.iter().all(|turn| *turn > 19 * MS), "{release}: {before:?}");
        let bypass = turns(600 * MS, 616 * MS);
        assert!(bypass.len() >= 2 && bypass.iter().all(|turn| *turn < 5 * MS), "{bypass:?}");
    }
}

/// Inserts into the local queue of CPU 0 only, and no task may wait there. What comes back waits in a queue, or, if it is
/// stubborn, is inserted again.
#[derive(Clone)]
struct AtOnce(Arc<Mutex<Vec<ReenqReason>>>, bool);

impl ExtScheduler for AtOnce {
    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        scx.create_dsq(9)
    }
    fn select_cpu(&mut self, _: &mut Kfuncs, _: TaskId, prev: CpuId, _: u64) -> i32 {
        prev.0.into()
    }
    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        let view = scx.task(task);
        if enq_flags & SCX_ENQ_REENQ != 0 {
            self.0.lock().unwrap().push(view.reenq_reason);
        }
        let waits = enq_flags & SCX_ENQ_REENQ != 0 && !self.1;
        if waits || view.nr_cpus_allowed != 1 {
            scx.dsq_insert(task, 9, SCX_SLICE_DFL, enq_flags);
        } else {
            scx.dsq_insert(task, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags | SCX_ENQ_IMMED);
        }
    }
    fn dispatch(&mut self, scx: &mut Kfuncs, _: CpuId, _: Option<TaskId>) {
        scx.dsq_move_to_local(9, 0);
    }
}

#[test]
fn a_task_that_may_not_wait_comes_back() {
    let sleepers = r#""sleeper": { "instance": 2, "cpus": [0], "loop": -1, "phases": { "all": { "run": 500, "sleep": 2000 } } }"#;
    let rt = r#""rt": { "policy": "SCHED_FIFO", "priority": 50, "cpus": [0], "loop": -1, "phases": { "all": { "run": 300, "sleep": 1700 } } }"#;
    let both = workload("immed", &format!("{sleepers}, {rt}"));
    let came_back = |release: &str, stubborn: bool| {
        let reasons = Arc::new(Mutex::new(Vec::new()));
        let of_run = AtOnce(reasons.clone(), stubborn);
        let kernel = load(release).with_ext_scheduler("at once", move || of_run.clone()).unwrap();
        let result = verified("uniform8", &both, kernel);
        let reasons = std::mem::take(&mut *reasons.lock().unwrap());
        (result, reasons)
    };
    let (result, reasons) = came_back("linux-7.3", false);
    assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{:?}", result.notices);
    for reason in [ReenqReason::Immed, ReenqReason::Preempted] {
        let count = reasons.iter().filter(|other| **other == reason).count();
        assert!(count > 10, "{reason:?}: {count} of {}", reasons.len());
    }
    let (_, reasons) = came_back("linux-6.12", false);
    assert!(reasons.is_empty(), "6.12 has no such flag");
    let (result, _) = came_back("linux-7.3", true);
    let words = "reenqueued 257 times without running";
    assert!(result.notices.iter().any(|line| line.contains(words)), "{:?}", result.notices);
}

/// Reads the clock so many times at each dispatch from the one queue that has all tasks.
#[derive(Clone)]
struct Reads(u32);

impl ExtScheduler for Reads {
    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        scx.create_dsq(9)
    }
    fn select_cpu(&mut self, _: &mut Kfuncs, _: TaskId, prev: CpuId, _: u64) -> i32 {
        prev.0.into()
    }
    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        scx.dsq_insert(task, 9, SCX_SLICE_DFL, enq_flags);
    }
    fn dispatch(&mut self, scx: &mut Kfuncs, _: CpuId, _: Option<TaskId>) {
        (0..self.0).for_each(|_| {
            scx.ktime_get_ns();
        });
        scx.dsq_move_to_local(9, 0);
    }
}

/// A scheduler pays for what it calls: 22 ns for each look at the clock, on a path that every waking task waits for.
#[test]
fn what_a_scheduler_calls_costs_time() {
    let latency = |reads: u32| {
        let kernel = load("linux-7.3:cpufreq=performance");
        let kernel = kernel.with_ext_scheduler("reads", move || Reads(reads)).unwrap();
        let result =
            scenario("uniform8", "periodic", kernel).run(3, RunOptions::default()).unwrap();
        metric(&result, "wakeup_latency", "")
    };
    let [none, many] = [latency(0), latency(1000)];
    assert!((20.0..30.0).contains(&(many - none)), "{none} and {many} us");
}

/// Asks for a performance, and nothing else.
#[derive(Clone)]
struct Perf(u32);

impl ExtScheduler for Perf {
    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        for cpu in 0..scx.nr_cpu_ids() {
            scx.cpuperf_set(cpu as i32, self.0);
        }
        0
    }
}

#[test]
fn schedutil_asks_for_the_scheduler_s_target() {
    let power = |perf: u32| {
        let kernel = load("linux-7.3").with_ext_scheduler("perf", move || Perf(perf)).unwrap();
        metric(&verified("uniform8", "periodic", kernel), "power", "")
    };
    let (low, high) = (power(0), power(1024));
    assert!(low < 0.9 * high, "{low} {high}");
}

// ---- schedulers that fail ----------------------------------------------------------------------------------------

/// Forgets each task after so many.
#[derive(Clone)]
struct Forgetful(u32);

impl ExtScheduler for Forgetful {
    fn properties(&self) -> ExtProperties {
        ExtProperties { timeout_ms: 200, ..ExtProperties::default() }
    }
    fn select_cpu(&mut self, _: &mut Kfuncs, _: TaskId, prev: CpuId, _: u64) -> i32 {
        prev.0.into()
    }
    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        self.0 = self.0.saturating_sub(1);
        if self.0 > 0 {
            scx.dsq_insert(task, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
        }
    }
}

#[test]
fn a_lost_task_ends_the_scheduler_by_the_watchdog() {
    for kernel in ["linux-7.3", "linux-6.12"] {
        let kernel = load(kernel).with_ext_scheduler("forgetful", || Forgetful(40)).unwrap();
        let result = verified("pixel6", "ui-phone", kernel);
        assert_eq!(metric(&result, "scx_errors", ""), 1.0);
        let notice = result.notices.iter().find(|notice| notice.starts_with(SCX_ENDED));
        let notice = notice.unwrap_or_else(|| panic!("{:?}", result.notices));
        for word in ["forgetful", "runnable task stall", "failed to run for 0.", "(task "] {
            assert!(notice.contains(word), "{word}: {notice}");
        }
        // The fair class went on.
        assert!(result.simulated_ns >= SECOND);
    }
}

/// Breaks a rule.
#[derive(Clone)]
struct Wrong(u32);

impl ExtScheduler for Wrong {
    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        match self.0 {
            0 => drop(scx.dsq_insert(task, 77, 0, enq_flags)),
            1 => drop(scx.dsq_insert_vtime(task, SCX_DSQ_LOCAL, 0, 0, enq_flags)),
            2 => {
                scx.dsq_insert(task, SCX_DSQ_LOCAL, 0, enq_flags);
                scx.dsq_insert(task, SCX_DSQ_LOCAL, 0, enq_flags);
            }
            3 => drop(scx.dsq_insert(task, SCX_DSQ_LOCAL_ON | 4000, 0, enq_flags)),
            4 => scx.error("own words"),
            _ => scx.kick_cpu(-1, 0),
        }
    }
    fn select_cpu(&mut self, scx: &mut Kfuncs, _: TaskId, prev: CpuId, _: u64) -> i32 {
        if self.0 == 6 { scx.nr_cpu_ids() as i32 } else { prev.0.into() }
    }
    fn init(&mut self, _: &mut Kfuncs) -> i32 {
        if self.0 == 7 { -12 } else { 0 }
    }
}

#[test]
fn a_broken_rule_ends_the_scheduler_with_its_reason() {
    for (which, reason) in [
        "non-existent DSQ 0x4d",
        "cannot use vtime ordering for built-in DSQs",
        "already direct-dispatched",
        "invalid CPU 4000",
        "scx_bpf_error: own words",
        "invalid CPU -1",
        "from ops.select_cpu()",
        "ops.init() failed (-12)",
    ]
    .into_iter()
    .enumerate()
    {
        let kernel = load("linux-7.3").with_ext_scheduler("wrong", move || Wrong(which as u32));
        let result = verified("pixel6", "ui-phone", kernel.unwrap());
        let notice = result.notices.iter().find(|notice| notice.starts_with(SCX_ENDED));
        assert!(
            notice.is_some_and(|notice| notice.contains(reason)),
            "{reason}: {:?}",
            result.notices
        );
    }
}

/// Takes SCHED_EXT tasks only, in turn, and counts what it is told of tasks.
#[derive(Clone)]
struct Partial(Arc<Mutex<Vec<String>>>);

impl ExtScheduler for Partial {
    fn properties(&self) -> ExtProperties {
        ExtProperties { flags: SCX_OPS_SWITCH_PARTIAL, ..ExtProperties::default() }
    }
    fn enable(&mut self, _: &mut Kfuncs, task: TaskId) {
        self.0.lock().unwrap().push(format!("enable {}", task.0));
    }
    fn disable(&mut self, _: &mut Kfuncs, task: TaskId) {
        self.0.lock().unwrap().push(format!("disable {}", task.0));
    }
}

#[test]
fn fair_tasks_run_before_those_of_sched_ext_if_it_is_partial() {
    let hog = |name: &str, policy: &str| {
        format!(
            r#""{name}": {{ "policy": "{policy}", "cpus": [0], "loop": -1, "phases": {{ "all": {{ "run": 1000 }} }} }}"#
        )
    };
    // Fair tasks sleep half of the time; the other half is for those of the class.
    let half = r#""half": { "cpus": [0], "loop": -1, "phases": { "all": { "run": 5000, "timer": { "ref": "t", "period": 10000 } } } }"#;
    let file = workload(
        "partial",
        &format!("{half}, {}, {}", hog("one", "SCHED_EXT"), hog("two", "SCHED_EXT")),
    );
    for release in ["linux-7.3", "linux-6.12"] {
        let log = Arc::new(Mutex::new(Vec::new()));
        let of_run = Partial(log.clone());
        let kernel = load(release).with_ext_scheduler("partial", move || of_run.clone()).unwrap();
        let result = verified("uniform8", &file, kernel);
        let share = |name: &str| {
            let task = result.tasks.iter().find(|task| task.name.starts_with(name)).unwrap();
            task.cpu_time_ns as f64 / result.simulated_ns as f64
        };
        let shares = [share("half"), share("one"), share("two")];
        assert!(shares[0] > 0.45, "{release}: {shares:?}");
        assert!(shares[1] > 0.15 && shares[2] > 0.15, "{release}: {shares:?}");
        assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{release}: {:?}", result.notices);
        // Only the two, each once, when it changes its policy.
        let enabled = log.lock().unwrap().iter().filter(|what| what.starts_with("enable")).count();
        assert_eq!(enabled, 2, "{release}: {:?}", log.lock().unwrap());
    }
}

#[test]
fn a_task_comes_to_the_class_and_leaves_it_by_its_policy() {
    let changing = workload(
        "changing",
        r#""changing": { "cpus": [0], "loop": 3, "phases": {
            "fair": { "policy": "SCHED_OTHER", "run": 3000 },
            "ext": { "policy": "SCHED_EXT", "run": 3000, "sleep": 1000 },
            "rt": { "policy": "SCHED_FIFO", "run": 3000 },
            "again": { "policy": "SCHED_EXT", "run": 3000 } } }"#,
    );
    for release in ["linux-7.3", "linux-6.12"] {
        let log = Arc::new(Mutex::new(Vec::new()));
        let of_run = Partial(log.clone());
        let kernel = load(release).with_ext_scheduler("partial", move || of_run.clone()).unwrap();
        verified("uniform8", &changing, kernel);
        let log = log.lock().unwrap();
        let kinds: Vec<&str> = log.iter().map(|what| what.split(' ').next().unwrap()).collect();
        assert_eq!(kinds, ["enable", "disable"].repeat(6), "{release}");
    }
    // Without a scheduler, or with one for all, SCHED_EXT is as SCHED_OTHER.
    for kernel in ["linux-7.3", "linux-7.3:scx=simple"] {
        verified("uniform8", &changing, load(kernel));
    }
}

#[test]
fn each_mistake_of_the_random_scheduler_ends_it_with_its_reason() {
    for release in ["linux-7.3", "linux-6.12"] {
        for (name, _, words) in Fault::ALL {
            let spec = format!("{release}:scx={name}");
            let result = verified("pixel6", "ui-phone", load(&spec));
            let notice = result.notices.iter().find(|notice| notice.starts_with(SCX_ENDED));
            let notice = notice.unwrap_or_else(|| panic!("{spec}: {:?}", result.notices));
            assert!(notice.contains(words), "{spec}: {words}: {notice}");
            assert_eq!(metric(&result, "scx_errors", ""), 1.0, "{spec}");
            assert!(result.simulated_ns >= SECOND, "{spec}: the fair class goes on");
        }
    }
}

/// The same on other threads, beside other runs. Dev and release builds are compared by the example `digests`.
#[test]
fn digests_are_the_same_on_all_threads() {
    let schedulers =
        ["linux-7.3:scx=simple", "linux-7.3:scx=random", "linux-6.12:scx=random-loses-task"];
    for spec in schedulers {
        let scenario = scenario("pixel6", "ui-phone", load(spec));
        let run = |seed| scenario.run(seed, RunOptions::default()).unwrap();
        let alone: Vec<RunResult> = (1..=4).map(run).collect();
        let together: Vec<RunResult> = std::thread::scope(|scope| {
            let runs: Vec<_> = (1..=4).map(|seed| scope.spawn(move || run(seed))).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert!(alone == together, "{spec}");
        assert_ne!(alone[0].digest, alone[1].digest, "{spec}: a seed changes the run");
    }
}

#[test]
fn what_is_asked_wrongly_is_told() {
    for (spec, words) in [
        ("linux-6.6:scx=simple", &["no sched_ext is modelled", "linux-7.3"][..]),
        ("linux-7.3:scx=simpel", &["no scheduler `simpel`", "`simple`"]),
        ("linux-7.3:scx.slice_us=5", &["which scheduler is not said"]),
        ("linux-7.3:scx=simple,scx.slice_ms=5", &["`scx.slice_ms`", "scx.load_ms"]),
        (
            "linux-7.3:scx=simple,scx.load_ms=9,scx.unload_ms=9",
            &["unloaded at 9 ms", "loaded at 9 ms"],
        ),
        ("linux-7.3:scx=simple,scx.rodata.x=5", &["`simple` has no settings"]),
        ("linux-7.3:scx=none/such.bpf.c", &["no such folder"]),
    ] {
        let text = KernelFile::load(spec).unwrap_err().to_string();
        for word in words {
            assert!(text.contains(word), "{spec}: {text}");
        }
    }
}

/// The longest time that a thread of the workload waited while some CPU had nothing to do.
#[derive(Default)]
struct Conservation {
    /// Threads of the workload by their numbers.
    known: Vec<bool>,
    waits: Vec<bool>,
    running: Vec<TaskId>,
    since: Option<Ns>,
    longest: Ns,
}

impl Conservation {
    fn of(workload: &str, kernel: KernelFile) -> Ns {
        let scenario = scenario("uniform8", workload, kernel);
        let mut twin: Twin = scenario.twin(1);
        // The machine has eight CPUs, which all idle at first.
        let mut seen = Conservation { running: vec![TaskId::IDLE; 8], ..Default::default() };
        twin.introduce(&mut seen);
        while twin.step(&mut seen) {}
        assert_eq!(seen.known.iter().filter(|known| **known).count(), 12, "threads are met");
        seen.longest
    }

    /// Idle tasks have no names.
    fn seen(&mut self, task: TaskId, waits: bool) {
        if let Some(of) = self.waits.get_mut(task.index()) {
            *of = waits;
        }
    }

    fn look(&mut self, now: Ns) {
        let waits = self.known.iter().zip(&self.waits).any(|(known, waits)| *known && *waits);
        let idles = self.running.iter().any(|task| task.is_idle());
        if let Some(since) = self.since {
            self.longest = self.longest.max(now.saturating_sub(since));
        }
        self.since = (waits && idles).then(|| self.since.unwrap_or(now));
    }
}

impl Observer for Conservation {
    const DECISIONS: bool = false;
    fn task(&mut self, task: TaskId, name: &str, _: i32) {
        let at = task.index();
        self.known.resize(self.known.len().max(at + 1), false);
        self.waits.resize(self.known.len(), false);
        self.known[at] = name.starts_with("w-");
    }
    fn fact(&mut self, fact: &Fact) {
        match fact.kind {
            FactKind::Wakeup { task, .. } => self.seen(task, true),
            FactKind::Switch { prev, next, prev_state } => {
                self.running[fact.cpu.index()] = next;
                use schedtwin_types::TaskState::{Preempted, Running};
                self.seen(prev, matches!(prev_state, Running | Preempted));
                self.seen(next, false);
            }
            _ => return,
        }
        self.look(fact.at);
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// Where a scheduler promises to conserve work, a CPU that has nothing to do takes a thread that waits as soon as it can
/// leave its idle state; a scheduler for one CPU lets the others idle.
#[test]
fn idle_cpus_take_what_waits() {
    let tasks = r#""w": { "instance": 12, "loop": -1, "run": 3000, "sleep": 2500 }"#;
    let work = workload("conservation", tasks);
    let longest = |kernel: &str| Conservation::of(&work, load(kernel));
    for scheduler in ["simple", "fifo"] {
        for kernel in ["linux-7.3", "linux-6.12"] {
            let waited = longest(&format!("{kernel}:scx={scheduler}"));
            assert!(waited < 2 * MS, "{kernel} {scheduler}: {waited} ns");
        }
    }
    const TREE: &str = "SCHEDTWIN_KERNEL_TREE_7_3";
    let folder = std::env::var_os(TREE).map(|tree| PathBuf::from(tree).join("tools/sched_ext"));
    let Some(folder) = folder.filter(|_| compiles("idle_cpus_take_what_waits")) else {
        eprintln!(
            "idle_cpus_take_what_waits: those of a tree are skipped, set {TREE} to one of 7.3"
        );
        return;
    };
    let of = |name: &str| {
        longest(&format!("linux-7.3:scx={}", folder.join(format!("scx_{name}.bpf.c")).display()))
    };
    for (name, promise) in
        [("simple", MS), ("sdt", MS), ("flatcg", MS), ("qmap", MS), ("central", 2 * MS)]
    {
        let waited = of(name);
        assert!(waited < promise, "{name}: {waited} ns");
    }
    assert!(of("cpu0") > 100 * MS, "it runs all on one CPU");
}

// ---- in C --------------------------------------------------------------------------------------------------------

/// Whether C can be compiled here; says what is skipped.
fn compiles(test: &str) -> bool {
    let cc = std::env::var("CC").unwrap_or("cc".to_string());
    let found = std::process::Command::new(cc).arg("--version").output().is_ok();
    if !found {
        eprintln!("{test}: skipped, there is no C compiler");
    }
    found
}

fn ours(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schedulers").join(name)
}

#[test]
fn c_decides_as_rust_does() {
    if !compiles("c_decides_as_rust_does") {
        return;
    }
    let shared = ours("shared.bpf.c");
    for kernel in ["linux-7.3", "linux-6.12"] {
        for (rust, setting) in [("simple", ""), ("fifo", ",scx.rodata.in_turn=true")] {
            for (machine, workload) in [("pixel6", "ui-phone"), ("uniform8", "periodic")] {
                let c =
                    run(machine, workload, &format!("{kernel}:scx={}{setting}", shared.display()));
                let rust = run(machine, workload, &format!("{kernel}:scx={rust}"));
                assert_eq!(c.digest, rust.digest, "{kernel}{setting} {machine}");
            }
        }
    }
}

#[test]
fn a_scheduler_with_maps_timers_and_storage_runs() {
    if !compiles("a_scheduler_with_maps_timers_and_storage_runs") {
        return;
    }
    let lanes = ours("lanes.bpf.c").display().to_string();
    for kernel in ["linux-7.3", "linux-6.12"] {
        let spec = format!("{kernel}:scx={lanes},scx.slice_us=3000");
        let result = verified("pixel6", "ui-phone", load(&spec));
        assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{:?}", result.notices);
        assert!(metric(&result, "scx_dispatches", "move") > 10.0);
        continues_as_a_clone(&spec);
    }
    let lost = format!("linux-7.3:scx={lanes},scx.mistake=1,scx.timeout_ms=200");
    let result = verified("pixel6", "ui-phone", load(&lost));
    assert!(result.notices.iter().any(|notice| notice.contains("failed to run for")));
    let wrong = format!("linux-7.3:scx={lanes},scx.rodata.misbehave=2");
    let result = verified("pixel6", "ui-phone", load(&wrong));
    assert!(result.notices.iter().any(|notice| notice.contains("invalid CPU 4000")));
    let text = KernelFile::load(&format!("linux-7.3:scx={lanes},scx.rodata.misbehav=1"));
    assert!(text.unwrap_err().to_string().contains("did you mean `misbehave`?"));
}

/// A loader tells the other thread of a core, once for each CPU; an error of such a program ends the scheduler.
#[test]
fn a_loader_tells_the_other_thread_of_each_core() {
    if !compiles("a_loader_tells_the_other_thread_of_each_core") {
        return;
    }
    let threads = ours("threads.bpf.c").display().to_string();
    for machine in ["i5-10600k", "uniform8"] {
        let more = if machine == "uniform8" { ",scx.rodata.nr_cpu_ids=0" } else { "" };
        let result = verified(machine, "ui-phone", load(&format!("linux-7.3:scx={threads}{more}")));
        assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{machine}: {:?}", result.notices);
    }
    let told = |path: &str, more: &str, expected: &str| {
        let result =
            verified("i5-10600k", "ui-phone", load(&format!("linux-7.3:scx={path}{more}")));
        let told = result.notices.iter().any(|notice| notice.contains(expected));
        assert!(told, "{expected}: {:?}", result.notices);
    };
    let refused = "its program `enable_sibling_cpu` returned -2 (-ENOENT) for CPU 3";
    told(&threads, ",scx.rodata.refused_cpu=3", refused);
    // What the twin does not know is not guessed.
    let text = std::fs::read_to_string(ours("threads.bpf.c")).unwrap();
    let other = Path::new(env!("CARGO_TARGET_TMPDIR")).join("more_threads.bpf.c");
    std::fs::write(&other, text.replace("#ifdef SCHEDTWIN_TEST_MORE", "#if 1")).unwrap();
    told(&other.display().to_string(), "", "also takes `other`, which the twin does not know");
}

/// A division by zero, and other things that C means in BPF alone: the scheduler itself compares them.
#[test]
fn c_means_what_it_means_in_bpf() {
    if !compiles("c_means_what_it_means_in_bpf") {
        return;
    }
    let spec = format!("linux-7.3:scx={}", ours("meaning.bpf.c").display());
    for machine in ["pixel6", "i5-10600k"] {
        let result = verified(machine, "ui-phone", load(&spec));
        assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{machine}: {:?}", result.notices);
        assert!(metric(&result, "scx_dispatches", "enqueue") > 10.0);
    }
    // What the compiler has for a constant cannot be set.
    let fault = KernelFile::load(&format!("{spec},scx.rodata.fixed=8")).unwrap_err().to_string();
    assert!(fault.contains("`fixed` of meaning.bpf.c"), "{fault}");
    assert!(fault.contains("is constant: it keeps its value"), "{fault}");
}

/// A scheduler's view of the machine is what the file beside it says; mistakes in that file are told.
#[test]
fn a_loader_s_tables_and_programs_come_from_a_file() {
    if !compiles("a_loader_s_tables_and_programs_come_from_a_file") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machine");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(ours("machine.bpf.c"), folder.join("machine.bpf.c")).unwrap();
    let path = folder.join("machine.bpf.c").display().to_string();
    let text = std::fs::read_to_string(ours("machine.options.json")).unwrap();
    let load = |text: &str| {
        std::fs::write(folder.join("machine.options.json"), text).unwrap();
        KernelFile::load(&format!("linux-7.3:scx={path}"))
    };
    for machine in ["pixel6", "i5-10600k", "ryzen-5950x"] {
        let result = verified(machine, "ui-phone", load(&text).unwrap());
        assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{machine}: {:?}", result.notices);
    }
    // What happens when the machine is met.
    for (before, after, expected) in [
        ("\"level\": 3", "\"level\": 2", "`enable_cpu` returned -22 (-EINVAL) for CPU 0"),
        ("\"cpu\": \"cpu\"", "\"cpu\": \"cpu - 1\"", "returned -2 (-ENOENT) for CPU 0"),
        (", \"level\": 3", "", "`enable_cpu` also takes `level`, which the twin does not know"),
        (", \"on\": \"slowest_cpu\"", "", "`start` returned -22 (-EINVAL)"),
        (", \"after_init\": true", "", "`start` returned -22 (-EINVAL)"),
        (
            "\"run\": \"look\"",
            "\"if\": \"cpus > 3\", \"refuse\": \"few CPUs\"",
            "few CPUs: the machine has",
        ),
    ] {
        let kernel = load(&text.replace(before, after)).unwrap();
        let result = verified("i5-10600k", "ui-phone", kernel);
        let told = result.notices.iter().any(|notice| notice.contains(expected));
        assert!(told, "{expected}: {:?}", result.notices);
    }
    // What is told before.
    for (before, after, expected) in [
        ("order[rank]", "ordre[rank]", "machine.options.json:4:"),
        ("order[rank]", "ordre[rank]", "did you mean `order`?"),
        ("\"look\"", "\"loook\"", "has no program `loook`"),
        ("\"fastest\"", "\"fast\"", "there is no `fast` here"),
        ("\"for\": \"llc\"", "\"for\": \"lcl\"", "a machine has no `lcl`"),
        ("mask(big)", "mask(big", "`mask(big` is not `mask(...)`"),
        ("\"own_cpus > 1\"", "\"own_cpus >\"", "it ends too early"),
        ("\"run\": \"look\"", "\"on\": 3", "a step with one of `set`, `run` and `refuse`"),
    ] {
        let fault = load(&text.replace(before, after)).expect_err(expected).to_string();
        assert!(fault.contains(expected), "{expected}: {fault}");
    }
}

/// What its program would let its user choose, as the file beside it says.
#[test]
fn a_scheduler_has_the_options_of_the_file_beside_it() {
    if !compiles("a_scheduler_has_the_options_of_the_file_beside_it") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("options");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(ours("lanes.bpf.c"), folder.join("lanes.bpf.c")).unwrap();
    let path = folder.join("lanes.bpf.c").display().to_string();
    let (beside, text) = (folder.join("lanes.options.json"), ours("lanes.options.json"));
    let text = std::fs::read_to_string(text).unwrap();
    let load = |text: &str, more: &str| {
        std::fs::write(&beside, text).unwrap();
        KernelFile::load(&format!("linux-7.3:scx={path}{more}"))
    };
    // The longest time that a task of two on one CPU runs, ticks of 4 ms.
    let longest = |kernel: KernelFile| {
        let mut twin: Twin = scenario("uniform8", &hogs("options", &[0, 0]), kernel).twin(1);
        let mut seen = Switches::default();
        while twin.step(&mut seen) {}
        let turns = seen.0[8..].windows(2).map(|pair| (pair[1].0 - pair[0].0) / MS);
        turns.max().unwrap()
    };
    let plain = load(&text, "").unwrap();
    let described = plain.describe();
    assert!(described.contains("scx.slice_ms=5 ms: slice of each task"), "{described}");
    assert!(described.contains("scx.last=false: "), "{described}");
    let other = load(&text.replace("\"default\": 5", "\"default\": 30"), "").unwrap();
    assert_ne!(plain.code, other.code, "the hash covers the file");
    assert!(longest(plain) <= 9 && (31..=37).contains(&longest(other)));
    assert!(longest(load(&text, ",scx.slice_ms=50,scx.last=true").unwrap()) > 47);
    for (text, more, word) in [
        (text.clone(), ",scx.slice_ms=0", "`scx.slice_ms` is 0\n  help: it is between 1 and 100"),
        (
            text.clone(),
            ",scx.slic_ms=1",
            "no setting `scx.slic_ms`\n  help: did you mean `scx.slice_ms`?",
        ),
        (text.clone(), ",scx.last=7", "it is true or false"),
        (text.replace("misbehave", "misbehav"), "", "lanes.options.json:4:"),
        (text.replace("misbehave", "misbehav"), "", "did you mean `misbehave`?"),
        (text.replace("\"max\"", "\"most\""), "", "there is no key `most`"),
    ] {
        let fault = load(&text, more).expect_err(word).to_string();
        assert!(fault.contains(word), "{word}: {fault}");
    }
}

/// Cgroups are made and written, tasks move between them; a node of a tree, a list and a map of maps are kept, and the
/// scheduler itself finds that all of it adds up.
#[test]
fn a_scheduler_of_cgroups_runs() {
    if !compiles("a_scheduler_of_cgroups_runs") {
        return;
    }
    let spec = format!("linux-7.3:scx={}", ours("groups.bpf.c").display());
    let jobs =
        "cgroup=/web cpu.weight=300 messaging -g 1 & cgroup=/web/slow cpu.weight=20 periodic -t 9";
    for machine in ["pixel6", "i5-10600k"] {
        for workload in ["ui-phone", jobs] {
            for kernel in [spec.clone(), spec.replace("7.3", "6.12")] {
                let result = verified(machine, workload, load(&kernel));
                assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{:?}", result.notices);
                assert!(metric(&result, "scx_dispatches", "move") > 10.0, "{machine} {workload}");
            }
        }
    }
    continues_as_a_clone(&spec);
}

#[test]
fn a_scheduler_by_topological_numbers_runs() {
    if !compiles("a_scheduler_by_topological_numbers_runs") {
        return;
    }
    let spec = format!("linux-7.3:scx={}", ours("cids.bpf.c").display());
    for machine in ["pixel6", "i5-10600k", "ryzen-5950x"] {
        let result = verified(machine, "ui-phone", load(&spec));
        assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{machine}: {:?}", result.notices);
        assert!(metric(&result, "scx_dispatches", "select_cpu") > 10.0, "{machine}");
    }
    continues_as_a_clone(&spec);
}

#[test]
fn programs_and_maps_that_are_not_there_are_named_at_once() {
    if !compiles("programs_and_maps_that_are_not_there_are_named_at_once") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused");
    std::fs::create_dir_all(&folder).unwrap();
    let text = std::fs::read_to_string(ours("shared.bpf.c")).unwrap();
    let more = "struct { __uint(type, 5); __uint(max_entries, 1); __type(key, u32); __type(value, u32); } odd \
                SEC(\".maps\");\nSEC(\"fentry/do_exit\")\nint BPF_PROG(on_exit, long code)\n{\n\treturn 0;\n}\n";
    std::fs::write(folder.join("odd.bpf.c"), format!("{text}\n{more}")).unwrap();
    let spec = format!("linux-7.3:scx={}", folder.join("odd.bpf.c").display());
    let said = KernelFile::load(&spec).unwrap_err().to_string();
    for word in ["the map `odd` is of type 5", "`on_exit` of fentry/do_exit", "docs/sched-ext.md"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn schedulers_of_the_kernel_s_tree_run() {
    const TREE: &str = "SCHEDTWIN_KERNEL_TREE_7_3";
    let folder = std::env::var_os(TREE).map(|tree| PathBuf::from(tree).join("tools/sched_ext"));
    let Some(folder) = folder.filter(|folder| folder.join("scx_simple.bpf.c").is_file()) else {
        eprintln!("schedulers_of_the_kernel_s_tree_run: skipped, set {TREE} to a tree of 7.3");
        return;
    };
    if !compiles("schedulers_of_the_kernel_s_tree_run") {
        return;
    }
    let spec = |name: &str| format!("linux-7.3:scx={}", folder.join(name).display());
    for (name, options) in [
        ("simple", ""),
        ("simple", ",scx.fifo=true"),
        ("cpu0", ""),
        ("central", ""),
        ("sdt", ""),
        ("flatcg", ""),
        ("pair", ""),
        ("qmap", ""),
        ("qmap", ",scx.immed=true"),
        ("qmap", ",scx.immed_stress_nth=3"),
        ("userland", ""),
    ] {
        let name = &format!("scx_{name}.bpf.c{options}");
        for (machine, workload) in [("pixel6", "ui-phone"), ("i5-10600k", "periodic")] {
            let result = verified(machine, workload, load(&spec(name)));
            assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{name}: {:?}", result.notices);
        }
    }
    // Shorter than docs/results/scx-matrix.txt, which is the whole of it.
    for name in ["simple", "central", "flatcg", "pair", "qmap", "sdt", "userland"] {
        let kernel = load(&spec(&format!("scx_{name}.bpf.c")));
        for (workload, _) in schedtwin_engine::list_workloads() {
            // It puts a task that is bound to a CPU into the global queue and wakes nobody, so such a task may wait for the watchdog.
            if name == "pair" && workload == "remote-wakeup" {
                continue;
            }
            let short = Scenario::with_kernel("pixel6", kernel.clone(), &workload, Some(100 * MS));
            let result = short.unwrap().run(1, RunOptions::default()).unwrap();
            let errors = metric(&result, "scx_errors", "");
            assert_eq!(errors, 0.0, "{name} {workload}: {:?}", result.notices);
        }
    }
    // Its program is a task that decides for all others.
    let userland = run("i5-10600k", "messaging -g 1 -l 1000", &spec("scx_userland.bpf.c"));
    let program = userland.tasks.iter().find(|task| task.name == "scx_userland");
    assert!(program.expect("it is a task").cpu_time_ns > MS, "{program:?}");
    assert!(metric(&userland, "scx_dispatches", "global") > 1000.0);
    let c = run("pixel6", "ui-phone", &spec("scx_simple.bpf.c"));
    assert_eq!(c.digest, run("pixel6", "ui-phone", "linux-7.3:scx=simple").digest);
}

#[test]
fn schedulers_of_the_older_tree_run() {
    const TREE: &str = "SCHEDTWIN_KERNEL_TREE";
    let folder = std::env::var_os(TREE).map(|tree| PathBuf::from(tree).join("tools/sched_ext"));
    let Some(folder) = folder.filter(|folder| folder.join("scx_simple.bpf.c").is_file()) else {
        eprintln!("schedulers_of_the_older_tree_run: skipped, set {TREE} to a tree of 6.12");
        return;
    };
    if !compiles("schedulers_of_the_older_tree_run") {
        return;
    }
    for name in ["simple", "central", "flatcg", "qmap"] {
        let spec = format!("linux-6.12:scx={}", folder.join(format!("scx_{name}.bpf.c")).display());
        for (machine, workload) in [("pixel6", "ui-phone"), ("epyc-milan-2x64", "periodic")] {
            let result = verified(machine, workload, load(&spec));
            assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{name}: {:?}", result.notices);
        }
    }
}

#[test]
fn schedulers_of_the_scx_repository_run() {
    const FOLDER: &str = "SCHEDTWIN_SCX";
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let Some(folder) = folder.filter(|_| compiles("schedulers_of_the_scx_repository_run")) else {
        eprintln!("schedulers_of_the_scx_repository_run: skipped, set {FOLDER} to its scheds/rust");
        return;
    };
    let files = [
        "scx_beerland/src/bpf/main.bpf.c",
        "scx_bpfland/src/bpf/main.bpf.c",
        "scx_cake/src/bpf/cake.bpf.c",
        "scx_chaos/src/bpf/main.bpf.c",
        "scx_cosmos/src/bpf/main.bpf.c",
        "scx_flash/src/bpf/main.bpf.c",
        "scx_forge/src/bpf/main.bpf.c",
        "scx_lavd/src/bpf/main.bpf.c",
        "scx_p2dq/src/bpf/main.bpf.c",
        "scx_pandemonium/src/bpf/main.bpf.c",
        "scx_rusty/src/bpf/main.bpf.c",
        "scx_tickless/src/bpf/main.bpf.c",
    ];
    let flow = folder.parent().map(|above| above.join("experimental/scx_flow/src/bpf/main.bpf.c"));
    for file in files.iter().map(|name| folder.join(name)).chain(flow) {
        let name = file.display().to_string();
        // Threads share cores on one of them, and there are little and big CPUs on the other.
        for machine in ["pixel6", "i5-10600k"] {
            let spec = format!("linux-7.3:scx={}", file.display());
            let result = verified(machine, "ui-phone", load(&spec));
            assert_eq!(metric(&result, "scx_errors", ""), 0.0, "{name}: {:?}", result.notices);
            assert!(metric(&result, "scx_ops", "") > 1000.0, "{name} {machine}");
        }
    }
}
