// SPDX-License-Identifier: GPL-2.0-or-later
//! What a system does beside its workload: timers of the wheel, works, RCU, and what they do to idle CPUs.

use schedtwin_engine::Scenario;
use schedtwin_engine::board::FlatBoard;
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_types::{CpuId, DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId};
use std::io::Write;

const MS: Ns = 1_000_000;
/// The length of a tick at 250 Hz.
const TICK: Ns = 4 * MS;

/// The ends of stays in idle states, switches to named tasks, and ticks.
#[derive(Default)]
struct Seen {
    names: Vec<String>,
    /// CPU and time of each end of a stay.
    exits: Vec<(CpuId, Ns)>,
    /// Name, CPU and time of each switch to a task.
    runs: Vec<(String, CpuId, Ns)>,
    ticks: Vec<(CpuId, Ns)>,
    /// Name, CPU and time of each wakeup.
    wakings: Vec<(String, CpuId, Ns)>,
}

impl Observer for Seen {
    const DECISIONS: bool = false;
    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        self.names.resize(self.names.len().max(id.index() + 1), String::new());
        self.names[id.index()] = name.to_string();
    }
    fn fact(&mut self, fact: &Fact) {
        match fact.kind {
            FactKind::IdleExit { .. } => self.exits.push((fact.cpu, fact.at)),
            FactKind::Switch { next, .. } if next != TaskId::IDLE => {
                let name = self.names[next.index()].clone();
                self.runs.push((name, fact.cpu, fact.at));
            }
            FactKind::Waking { task, prev_cpu, .. } => {
                self.wakings.push((self.names[task.index()].clone(), prev_cpu, fact.at));
            }
            FactKind::Tick => self.ticks.push((fact.cpu, fact.at)),
            _ => {}
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

impl Seen {
    /// When a task was switched to, after the first second.
    fn runs_of(&self, name: &str) -> Vec<Ns> {
        let of = self.runs.iter().filter(|(n, _, at)| n == name && *at > 1000 * MS);
        of.map(|(.., at)| *at).collect()
    }

    /// How many stays in idle states ended after the first second.
    fn nr_exits(&self) -> usize {
        self.exits.iter().filter(|(_, at)| *at > 1000 * MS).count()
    }
}

/// Runs a workload beside a system of these sources, every sum verified at every event.
fn seen(machine: &str, kernel: &str, workload: &str, sources: &str) -> Seen {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    write!(file, "name = \"test\"\ndescription = \"a test\"\n{sources}").unwrap();
    let workload = format!("{workload} --system {}", file.path().display());
    let scenario = Scenario::new(machine, kernel, &workload, Some(4000 * MS)).unwrap();
    let mut twin: Twin<FlatBoard> = scenario.twin::<FlatBoard>(1).eager();
    let mut seen = Seen::default();
    twin.introduce(&mut seen);
    while twin.step(&mut seen) {}
    seen
}

fn source(name: &str, rest: &str) -> String {
    format!("[[source]]\nname = \"{name}\"\norigin = \"a test\"\n{rest}\n")
}

fn gaps(times: &[Ns]) -> Vec<Ns> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// `schedule_timeout(1)` in a loop: the timer is armed in a jiffy and expires at the second tick from then.
#[test]
fn a_loop_of_timeouts_of_a_jiffy_takes_two_ticks() {
    let thread = source("loop", "timer = { every_ms = 4 }\nrun = \"thread\"\nrun_us = [10]");
    let seen = seen("uniform8", "linux-6.12", "idle", &thread);
    let gaps = gaps(&seen.runs_of("loop"));
    assert!(gaps.len() > 300, "{} runs", gaps.len());
    let about = |gap: &&Ns| gap.abs_diff(2 * TICK) < 200_000;
    assert_eq!(gaps.iter().filter(about).count(), gaps.len(), "{gaps:?}");
}

/// kcompactd: 125 jiffies in the second level of the wheel; armed right after an expiry it takes 128.
#[test]
fn half_a_second_takes_512_ms() {
    let thread =
        source("kcompactd0", "timer = { every_ms = 500 }\nrun = \"thread\"\nrun_us = [10]");
    let seen = seen("uniform8", "linux-6.12", "idle", &thread);
    let gaps = gaps(&seen.runs_of("kcompactd0"));
    assert!(gaps.len() >= 4 && gaps.iter().all(|gap| gap.abs_diff(512 * MS) < MS), "{gaps:?}");
}

/// Since 6.9 the last CPU to go idle wakes up for the timers of all, and no other does.
#[test]
fn a_global_timer_wakes_one_idle_cpu() {
    let timer = source("poll", "timer = { every_ms = 100 }\nrun_us = [1]");
    let idle = seen("uniform8", "linux-6.12", "idle", &timer);
    // 25 jiffies in level 0: every 104 ms.
    let exits = idle.nr_exits();
    assert!((28..=40).contains(&exits), "{exits} wakeups in 3 s");
    let nothing = source("nothing", "");
    let without = seen("uniform8", "linux-6.12", "idle", &nothing);
    assert!(without.nr_exits() <= 2, "{} wakeups without a timer", without.nr_exits());
}

/// Up to 6.8 the CPU that armed a timer wakes for it.
#[test]
fn before_the_hierarchy_each_cpu_wakes_for_its_own_timers() {
    let timer = source("poll", "timer = { every_ms = 100 }\ncpus = \"each\"\nrun_us = [1]");
    let own = seen("uniform8", "linux-6.1", "idle", &timer);
    let by_cpu = |seen: &Seen, cpu: u16| {
        seen.exits.iter().filter(|(c, at)| *c == CpuId(cpu) && *at > 1000 * MS).count()
    };
    for cpu in 0..8 {
        let exits = by_cpu(&own, cpu);
        assert!((25..=70).contains(&exits), "cpu{cpu} woke {exits} times in 3 s");
    }
}

/// Deferrable timers wait for a tick that comes anyhow: they add no interruption.
#[test]
fn deferrable_timers_wake_nobody() {
    let base = source("kcompactd0", "timer = { every_ms = 500 }\nrun = \"thread\"\nrun_us = [10]");
    let deferrable =
        source("orphan", "timer = { every_ms = 20, deferrable = true }\ncpus = \"each\"");
    for kernel in ["linux-6.1", "linux-6.12", "linux-7.3"] {
        let without = seen("uniform8", kernel, "idle", &base);
        let with = seen("uniform8", kernel, "idle", &format!("{base}{deferrable}"));
        let stays = |seen: &Seen| seen.exits.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>();
        assert_eq!(stays(&without), stays(&with), "{kernel}");
    }
}

/// A bound pool wakes one worker for all works that come while it works; an unbound one wakes a worker for each.
#[test]
fn a_bound_pool_has_one_running_worker() {
    let works = |run: &str| {
        let mut text = source(
            "start",
            "hrtimer = { every_ms = 100 }\nthen = [\"first\", \"second\", \"third\"]",
        );
        for name in ["first", "second", "third"] {
            text += &source(name, &format!("run = \"{run}\"\nrun_us = [2000]"));
        }
        text
    };
    let workers = |seen: &Seen| {
        let mut names: Vec<String> = seen
            .runs
            .iter()
            .filter(|(name, _, at)| name.starts_with("kworker") && *at > 1000 * MS)
            .map(|(name, ..)| name.clone())
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let bound = workers(&seen("uniform8", "linux-6.12", "idle", &works("work")));
    assert_eq!(bound.len(), 1, "{bound:?}");
    assert!(bound[0].ends_with(":1"), "the worker that went idle last: {bound:?}");
    let unbound = workers(&seen("uniform8", "linux-6.12", "idle", &works("unbound-work")));
    assert!(unbound.len() >= 3, "{unbound:?}");
    assert!(unbound.iter().all(|name| name.starts_with("kworker/u16:")), "{unbound:?}");
}

const RCU: &str =
    "[rcu]\norigin = \"a test\"\nsoftirq_us = [5]\nthread_us = [9]\ncallback_ns = 300\n";

/// A CPU with callbacks keeps its tick until they have run, three to six ticks; an offloaded one does not.
#[test]
fn callbacks_keep_the_tick() {
    let call = source("call", "hrtimer = { every_ms = 500 }\nrcu_callbacks = 1");
    let softirq = seen("uniform8", "linux-6.12", "idle", &format!("{RCU}{call}"));
    let offloaded =
        seen("uniform8", "linux-6.12", "idle", &format!("{RCU}offloaded = true\n{call}"));
    let ticks = |seen: &Seen| seen.ticks.iter().filter(|(_, at)| *at > 1000 * MS).count();
    let calls = 6;
    let kept = ticks(&softirq);
    assert!((3 * calls..=8 * calls).contains(&kept), "{kept} ticks for {calls} callbacks");
    let grace_periods = softirq.runs_of("rcu_preempt").len();
    assert!((2 * calls..=4 * calls).contains(&grace_periods), "{grace_periods} wakeups");
    for thread in ["rcuog/0", "rcuop/0"] {
        let of = |name: &str| offloaded.runs.iter().filter(|(n, ..)| n.starts_with(name)).count();
        let kind = thread.split('/').next().unwrap();
        assert!(of(kind) >= calls, "{kind}: {}", of(kind));
    }
}

/// Lazy callbacks wait ten seconds: in four seconds there is no grace period.
#[test]
fn lazy_callbacks_wait() {
    let call = source("call", "hrtimer = { every_ms = 500 }\nrcu_callbacks = 1");
    let lazy = format!("{RCU}offloaded = true\nlazy = true\n{call}");
    let seen = seen("uniform8", "linux-6.12", "idle", &lazy);
    assert_eq!(seen.runs_of("rcu_preempt"), Vec::<Ns>::new());
}

/// A wakeup in a softirq leaves what is raised after it to `ksoftirqd`.
#[test]
fn what_a_wakeup_leaves_is_done_by_ksoftirqd() {
    let sources = source("start", "hrtimer = { every_ms = 100 }\nthen = [\"first\"]")
        + &source(
            "first",
            "run = \"block-softirq\"\nrun_us = [10]\nthen = [\"second\", \"woken\"]",
        )
        + &source("second", "run = \"softirq\"\nrun_us = [10]")
        + &source("woken", "run = \"bound-thread\"\nrun_us = [10]\ncpus = \"each\"");
    let seen = seen("uniform8", "linux-6.12", "idle", &sources);
    let runs = seen.runs.iter().filter(|(name, ..)| name.starts_with("ksoftirqd/")).count();
    assert!(runs >= 25, "{runs} runs of ksoftirqd");
}

/// The same seed gives the same run, another one other phases.
#[test]
fn a_system_is_drawn_by_its_seed() {
    let digest = |seed| {
        let spec = "periodic -f 60 --system phone-android";
        let scenario = Scenario::new("pixel6", "linux-6.12-gki", spec, Some(500 * MS)).unwrap();
        scenario.run(seed, Default::default()).unwrap().digest
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

/// The board's statistics worker comes at the same jiffies, whether it is a setting of the kernel or a source of a profile.
#[test]
fn the_board_s_profile_is_the_setting_of_its_kernel() {
    // Busy CPUs, so that each jiffy has a tick.
    let mut hogs = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    write!(
        hogs,
        "{{ \"tasks\": {{ \"hog\": {{ \"instance\": 16, \"loop\": -1, \"run\": 9000 }} }} }}"
    )
    .unwrap();
    let hogs = hogs.path().display().to_string();
    let jiffies = |kernel: &str, workload: &str| {
        let scenario = Scenario::new("rig8", kernel, workload, Some(4000 * MS)).unwrap();
        let mut twin: Twin<FlatBoard> = scenario.twin(1);
        let mut seen = Seen::default();
        twin.introduce(&mut seen);
        while twin.step(&mut seen) {}
        let kworker = |(name, cpu, at): &(String, CpuId, Ns)| {
            let counts = name.starts_with("kworker/") && (1500 * MS..3900 * MS).contains(at);
            counts.then_some((at / TICK, *cpu))
        };
        let mut all: Vec<_> = seen.wakings.iter().filter_map(kworker).collect();
        all.sort();
        all
    };
    let of_setting = jiffies("linux-6.12:stat_interval_ms=1000", &hogs);
    let of_profile = jiffies("linux-6.12", &format!("{hogs} --system board"));
    assert!(of_setting.len() >= 16, "{of_setting:?}");
    assert_eq!(of_setting, of_profile);
}

#[test]
fn an_unknown_system_is_refused_with_its_place() {
    let fault = Scenario::new("uniform8", "linux-6.12", "idle --system sever-linux", None);
    let text = fault.err().unwrap().to_string();
    assert!(text.contains("there is no system `sever-linux`"), "{text}");
    assert!(text.contains("did you mean `server-linux`?"), "{text}");
    assert!(text.contains("<command line>:1:15"), "{text}");
}
