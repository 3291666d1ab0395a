// SPDX-License-Identifier: GPL-2.0-or-later
//! Users' policies: asked where the built-in ones are, cloned with the twin, named wherever a result comes from.

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::policy::*;
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Twin;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_kernel::cpuidle::governor::Governor;
use schedtwin_types::{CpuId, Decision, FactKind, Khz, Ns, PlacementRule, PolicyId, PowerSource};
use std::sync::{Arc, Mutex};

const KERNEL: &str = "linux-6.12";
const SECOND: Ns = 1_000_000_000;

fn base() -> KernelFile {
    KernelFile::load(KERNEL).unwrap()
}

fn scenario(machine: &str, kernel: KernelFile) -> Scenario {
    Scenario::with_kernel(machine, kernel, "ui-phone", Some(SECOND)).unwrap()
}

/// Runs with every sum verified after every event.
fn run(machine: &str, kernel: KernelFile) -> RunResult {
    scenario(machine, kernel).run(3, RunOptions { verify: true, ..RunOptions::default() }).unwrap()
}

/// Runs with decisions on, and hands out what was decided.
fn decisions(kernel: KernelFile) -> Vec<Decision> {
    let mut twin: Twin = scenario("pixel6", kernel).twin(3);
    twin.record_decisions();
    let mut seen = Seen::default();
    while twin.step(&mut seen) {}
    seen.0
}

#[derive(Default)]
struct Seen(Vec<Decision>);

impl schedtwin_engine::twin::Observer for Seen {
    const DECISIONS: bool = true;
    fn task(&mut self, _: schedtwin_types::TaskId, _: &str, _: i32) {}
    fn fact(&mut self, _: &schedtwin_types::Fact) {}
    fn decision(&mut self, decision: schedtwin_types::DecisionRecord) {
        self.0.push(decision.decision);
    }
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// The kernel's own governor, as a policy of a user.
#[derive(Clone)]
struct BuiltIn(Governor);

impl IdleGovernor for BuiltIn {
    fn select(
        &mut self,
        input: &SelectInput,
        mut sleep_length: &mut dyn FnMut() -> SleepLength,
    ) -> IdleDecision {
        let choice = self.0.select(input, &mut sleep_length);
        let (state, stop_tick) = (choice.state.into(), choice.stop_tick);
        IdleDecision { state, stop_tick, rule: "as built in" }
    }
    fn reflect(&mut self, stay: &Reflection) {
        self.0.reflect(stay);
    }
    fn reads_util(&self) -> bool {
        self.0.reads_util()
    }
}

/// Answers what it is told to.
#[derive(Clone)]
struct Always<T>(T);

impl IdleGovernor for Always<usize> {
    fn select(&mut self, _: &SelectInput, _: &mut dyn FnMut() -> SleepLength) -> IdleDecision {
        IdleDecision { state: self.0, stop_tick: false, rule: "always" }
    }
}

impl FrequencyGovernor for Always<Option<Khz>> {
    fn update_util(&mut self, _: &PolicyView) -> Option<FrequencyDecision> {
        self.0.map(|khz| FrequencyDecision { khz, rule: "always" })
    }
}

impl Placement for Always<Option<CpuId>> {
    fn select_task_rq(&mut self, _: &WakeupView) -> Option<PlacementDecision> {
        self.0.map(|cpu| PlacementDecision { cpu, rule: "always" })
    }
}

/// Learns: each wakeup goes to the next CPU that is allowed.
#[derive(Clone)]
struct RoundRobin(u16);

impl Placement for RoundRobin {
    fn select_task_rq(&mut self, view: &WakeupView) -> Option<PlacementDecision> {
        let cpu = view.task.allowed.next_wrapping_from(CpuId(self.0))?;
        self.0 = cpu.0 + 1;
        Some(PlacementDecision { cpu, rule: "next in turn" })
    }
}

/// The interface itself costs nothing: a policy that decides as the kernel does leaves the same execution.
#[test]
fn the_same_decisions_are_the_same_execution() {
    for spec in ["linux-6.12", "linux-6.12:cpuidle=menu", "linux-6.3"] {
        let kernel = KernelFile::load(spec).unwrap();
        let plain = run("pixel6", kernel.clone());
        let config = kernel.config.clone();
        let own = kernel
            .clone()
            .with_idle_governor("twin", move |cpu| {
                BuiltIn(Governor::new(&config, cpu.capacity, &cpu.states))
            })
            .with_placement("nobody", || Always(None::<CpuId>));
        assert_eq!(run("pixel6", own).digest, plain.digest, "{spec}");
        let other = kernel.with_idle_governor("zero", |_| Always(0));
        assert_ne!(run("pixel6", other).digest, plain.digest, "{spec}: the digest would tell");
    }
}

/// A clone has learnt what the original had.
#[test]
fn a_snapshot_remembers() {
    let kernel = base()
        .with_placement("turns", || RoundRobin(0))
        .with_frequency_governor("lowest", |_| Always(Some(0)))
        .unwrap();
    let scenario = scenario("pixel6", kernel);
    let expected = scenario.run(5, RunOptions::default()).unwrap();
    let mut twin: Twin = scenario.twin(5);
    while twin.events() < expected.events / 2 && twin.step(&mut ()) {}
    let mut clone = twin.clone();
    while clone.step(&mut ()) {}
    while twin.step(&mut ()) {}
    assert_eq!(clone.finish().digest, expected.digest);
    assert_eq!(twin.finish().digest, expected.digest);
}

/// Every decision has the policy's words, and is carried out.
#[test]
fn decisions_are_carried_out_in_the_policys_words() {
    let decided = decisions(base().with_idle_governor("one", |_| Always(1)));
    let mut idle = decided.iter().filter_map(|decision| match decision {
        Decision::Idle { state, rule, .. } => Some((*state, rule.text())),
        _ => None,
    });
    assert!(idle.all(|choice| choice == (1, "always")));

    let decided = decisions(base().with_placement("turns", || RoundRobin(0)));
    // schedutil's threads are of the deadline class, which no policy places.
    let of_deadline = [
        PlacementRule::DlStays,
        PlacementRule::DlFreeCpu,
        PlacementRule::DlLatestDeadline,
        PlacementRule::DlNoLaterRq,
    ];
    let placed: Vec<_> = decided
        .iter()
        .filter_map(|decision| match decision {
            Decision::Placement { chosen, rule, .. } if !of_deadline.contains(rule) => {
                Some((*chosen, rule.text()))
            }
            _ => None,
        })
        .collect();
    assert!(placed.len() > 100 && placed.iter().all(|(_, rule)| *rule == "next in turn"));
    for cpu in 0..8 {
        assert!(placed.iter().any(|(chosen, _)| chosen.0 == cpu), "CPU {cpu} has its turn");
    }
}

/// A target becomes a frequency of the table, on domains of both kinds of drivers, and stays within limits.
#[test]
fn a_target_becomes_a_frequency_of_the_table() {
    for machine in ["pixel6:coupling=false", "juno-r2"] {
        let governor = |_: &FrequencyDomain| Always(Some(1));
        // A machine that has idled for long is there already.
        let kernel = KernelFile::load(&format!("{KERNEL}:start=booted")).unwrap();
        let kernel = kernel.with_frequency_governor("slow", governor).unwrap();
        let scenario = scenario(machine, kernel);
        let mut twin: Twin = scenario.twin(3);
        let mut facts = Frequencies::default();
        while twin.step(&mut facts) {}
        for (policy, domain) in scenario.machine().domains.iter().enumerate() {
            let of_domain = facts.0.iter().filter(|fact| fact.0.index() == policy);
            let asked: Vec<Khz> = of_domain.map(|fact| fact.1).collect();
            // The lowest that is worth its power: of some domains that is the second.
            let [khz] = asked[..] else { panic!("{machine}: {asked:?}") };
            assert!(domain.opps[..2].iter().any(|opp| opp.khz == khz), "{machine}: {khz}");
        }
    }
}

#[derive(Default)]
struct Frequencies(Vec<(PolicyId, Khz)>);

impl schedtwin_engine::twin::Observer for Frequencies {
    const DECISIONS: bool = false;
    fn decision(&mut self, _: schedtwin_types::DecisionRecord) {}
    fn task(&mut self, _: schedtwin_types::TaskId, _: &str, _: i32) {}
    fn fact(&mut self, fact: &schedtwin_types::Fact) {
        if let FactKind::Frequency { policy, khz, .. } = fact.kind {
            self.0.push((policy, khz));
        }
    }
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// What a sampling governor reads: idle time only grows, and by no more than time passes.
#[test]
fn idle_time_is_a_share_of_the_time() {
    #[derive(Clone)]
    struct Checks {
        last: Vec<(Ns, Ns)>,
        seen: Arc<Mutex<(Ns, Ns)>>,
    }
    impl FrequencyGovernor for Checks {
        fn update_util(&mut self, view: &PolicyView) -> Option<FrequencyDecision> {
            self.last.resize(view.cpus.len(), (0, 0));
            for (cpu, last) in view.cpus.iter().zip(&mut self.last) {
                assert!(cpu.idle_ns >= last.1, "{cpu:?} {last:?}");
                assert!(cpu.idle_ns - last.1 <= view.now - last.0, "{cpu:?} {last:?}");
                *last = (view.now, cpu.idle_ns);
            }
            *self.seen.lock().unwrap() = (view.now, view.cpus[0].idle_ns);
            None
        }
    }
    let seen = Arc::new(Mutex::new((0, 0)));
    let of_all = seen.clone();
    let kernel = base()
        .with_frequency_governor("checks", move |_| Checks {
            last: Vec::new(),
            seen: of_all.clone(),
        })
        .unwrap();
    run("uniform8", kernel);
    let (now, idle) = *seen.lock().unwrap();
    assert!(now > SECOND / 2 && idle > now / 10 && idle < now, "{idle} of {now}");
}

/// Name, hash and line on trust tell such a kernel from the one it was made of, and from each other.
#[test]
fn provenance_names_the_users_code() {
    let plain = scenario("pixel6", base()).provenance();
    let named = |name: &str| {
        let kernel = base().with_idle_governor(name, |_| Always(0));
        scenario("pixel6", kernel.with_placement("p", || Always(None::<CpuId>))).provenance()
    };
    let (a, b) = (named("a"), named("b"));
    assert_eq!(a.kernel, "linux-6.12 with a and p");
    assert!(a.trust.contains("own code, which no hash covers: idle governor `a`, placement `p`"));
    let hash = |from: &schedtwin_engine::Provenance| {
        from.hashes.iter().find(|hash| hash.0 == "kernel").unwrap().1.clone()
    };
    assert!(hash(&plain) != hash(&a) && hash(&a) != hash(&b));
    assert!(!plain.trust.contains("own code"));
}

#[test]
fn a_governor_that_nobody_would_ask_is_refused() {
    let kernel = KernelFile::load("linux-6.12:cpufreq=performance").unwrap();
    let faults = kernel.with_frequency_governor("mine", |_| Always(None::<Khz>)).unwrap_err();
    let text = faults.to_string();
    assert!(text.contains("frequency governor `mine` takes schedutil's place"), "{text}");
    assert!(text.contains("cpufreq=schedutil"), "{text}");
}

#[test]
#[should_panic(expected = "idle governor `wild` chose state 9, the CPU has")]
fn a_state_that_there_is_not_is_a_bug() {
    run("pixel6", base().with_idle_governor("wild", |_| Always(9)));
}

#[test]
#[should_panic(expected = "placement `wild` chose")]
fn a_cpu_that_there_is_not_is_a_bug() {
    run("pixel6", base().with_placement("wild", || Always(Some(CpuId(77)))));
}
