// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle states under every governor: what was entered is left, what is too deep or too shallow is what the
//! state table says, and the time adds up. Which governor errs more is a study's question, not one of these.

use crate::invariants::check;
use crate::scenarios::{KERNEL, Log, MS, logged, metric, scenario};
use schedtwin_engine::Scenario;
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Twin;
use schedtwin_machine::Machine;
use schedtwin_types::{CpuId, FactKind, IpiKind, Ns};

/// Every governor, in every form.
const KERNELS: [&str; 17] = [
    "linux-5.18:cpuidle=teo",
    "linux-5.18",
    "linux-5.18:cpuidle=ladder",
    "linux-5.18:cpuidle=haltpoll",
    "linux-5.18:cpuidle=shallow",
    "linux-5.18+teo-util",
    "linux-5.18+teo-util:teo_util_threshold_shift=3",
    "linux-5.18+teo-util-step",
    "linux-5.18+teo-util-step:teo_util=v2",
    "linux-5.18+teo-util-step:teo_util=v3",
    "linux-5.18+teo-util-step:teo_util=v4",
    "linux-5.18+teo-util-gradual",
    "linux-6.12",
    "linux-6.12:cpuidle=menu",
    "linux-6.12+teo-util-gradual",
    "linux-6.12:teo=6.6",
    "linux-6.12:teo=6.6,teo_util=6.3",
];

/// The machine uniform8 with other idle states: some text of its file replaced.
fn uniform8_with(changes: &[(&str, &str)], kernel: &str, workload: &str, duration: Ns) -> Scenario {
    let mut text = Machine::load("uniform8").unwrap().source.text.to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "the machine has changed: {from}");
        text = text.replace(from, to);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    std::fs::write(&path, text).unwrap();
    scenario(&path.to_string_lossy(), kernel, workload, Some(duration))
}

/// A machine whose state 0 polls, as on x86.
fn polling(kernel: &str, workload: &str, duration: Ns) -> Scenario {
    let first =
        r#"  { name = "WFI", entry_ns = 0, exit_ns = 1_000, residency_us = 1, power = "wfi" },"#;
    let poll = r#"  { name = "POLL", entry_ns = 0, exit_ns = 100, residency_us = 0, power = "active", polling = true },
  { name = "WFI", entry_ns = 0, exit_ns = 1_000, residency_us = 2, power = "wfi" },"#;
    uniform8_with(&[(first, poll)], kernel, workload, duration)
}

/// A stay in an idle state.
struct Stay {
    cpu: CpuId,
    state: u8,
    length: Ns,
    missed: Option<bool>,
}

/// All stays that ended, and those that were refused; checks that each was entered first.
fn stays(log: &Log, nr_cpus: usize) -> Vec<Stay> {
    let mut entered = vec![None; nr_cpus];
    let mut stays: Vec<Stay> = Vec::new();
    for fact in &log.facts {
        match fact.kind {
            FactKind::IdleEnter { state, .. } => {
                assert_eq!(entered[fact.cpu.index()].replace(state), None);
            }
            FactKind::IdleExit { state, residency_ns } => {
                assert_eq!(entered[fact.cpu.index()].take(), Some(state));
                stays.push(Stay { cpu: fact.cpu, state, length: residency_ns, missed: None });
            }
            FactKind::IdleMiss { state, below } => {
                let stay = stays.last_mut().expect("a miss follows an exit");
                assert_eq!((stay.cpu, stay.state), (fact.cpu, state), "that of its own CPU");
                assert_eq!(stay.missed.replace(below), None, "at most one a stay");
            }
            _ => {}
        }
    }
    stays
}

/// What a stay should be called, by the table of states and nothing else.
fn judged(machine: &Machine, stay: &Stay) -> Option<bool> {
    let states = machine.idle_states(stay.cpu);
    let state = &states[stay.state as usize];
    if stay.length < state.target_residency_ns {
        return (stay.state > 0).then_some(false);
    }
    let deeper = states.get(stay.state as usize + 1)?;
    let rest = stay.length.checked_sub(state.kernel_exit_latency_ns).filter(|ns| *ns > 0)?;
    (rest >= deeper.target_residency_ns).then_some(true)
}

/// Counts and lengths of one run.
fn adds_up(name: &str, scenario: &Scenario, log: &Log, result: &RunResult) {
    let machine = scenario.machine();
    let stays = stays(log, machine.nr_cpus());
    let count = |what: Option<bool>| stays.iter().filter(|stay| stay.missed == what).count();
    let (deep, shallow, well) = (count(Some(false)), count(Some(true)), count(None));
    assert!(stays.len() > 100, "{name}: {} stays", stays.len());
    let judged = |what| stays.iter().filter(|stay| judged(machine, stay) == what).count();
    let expected = (judged(Some(false)), judged(Some(true)), judged(None));
    assert_eq!((deep, shallow, well), expected, "{name}: too deep, too shallow, neither");
    for (metric_name, missed) in [("idle_too_deep", deep), ("idle_too_shallow", shallow)] {
        let percent = metric(result, metric_name, "mean", &[]);
        let share = missed as f64 * 100.0 / stays.len() as f64;
        assert!((percent - share).abs() < 1e-9, "{name}: {metric_name} {percent}, not {share}");
    }

    // To the nanosecond, where the kernel's stay is the silicon's: where it does not poll. A stay that the end
    // of the run cuts is in the result alone.
    for cpu in &result.cpus {
        let of_cpu = |stay: &&Stay| stay.cpu.0 == cpu.cpu;
        let mut open = 0;
        for (state, ns) in cpu.idle_ns.iter().enumerate() {
            let ended: Vec<&Stay> =
                stays.iter().filter(of_cpu).filter(|stay| stay.state as usize == state).collect();
            let sum: Ns = ended.iter().map(|stay| stay.length).sum();
            if !machine.idle_states(CpuId(cpu.cpu))[state].polling {
                assert!(*ns >= sum, "{name}: cpu{} in {state}: {ns} of {sum}", cpu.cpu);
                open += u32::from(*ns > sum);
            }
        }
        assert!(open <= 1, "{name}: cpu{} sleeps in one state at the end", cpu.cpu);
    }
}

#[test]
fn stays_add_up_under_every_governor() {
    for kernel in KERNELS {
        let scenario = scenario("pixel6", kernel, "ui-phone", Some(500 * MS));
        check(kernel, &scenario, 1);
        let (log, result) = logged(&scenario, 1);
        adds_up(kernel, &scenario, &log, &result);
    }
}

#[test]
fn stays_add_up_where_a_state_polls() {
    for kernel in KERNELS {
        let name = format!("polling, {kernel}");
        let scenario = polling(kernel, "w1", 300 * MS);
        check(&name, &scenario, 1);
        let (log, result) = logged(&scenario, 1);
        adds_up(&name, &scenario, &log, &result);
        let mut eager: Twin = scenario.twin(1).eager();
        while eager.step(&mut ()) {}
        assert_eq!(eager.finish().digest, result.digest, "{name}: the reference twin agrees");
    }
}

/// Nobody sends an interrupt to a CPU that polls; some polls are ended by a write, some are in vain.
#[test]
fn a_polling_cpu_is_woken_without_an_interrupt() {
    for kernel in
        ["linux-6.12:cpuidle=haltpoll", "linux-6.12:cpuidle=shallow", "linux-5.18+teo-util"]
    {
        let scenario = polling(kernel, "w1", 300 * MS);
        let (log, _) = logged(&scenario, 1);
        let nr_cpus = scenario.machine().nr_cpus();
        // Since when each polls, whether an interrupt came, and whether a poll has just ended without one.
        let mut polls: Vec<Option<(Ns, bool)>> = vec![None; nr_cpus];
        let mut ended: Vec<Option<bool>> = vec![None; nr_cpus];
        let mut asleep = vec![false; nr_cpus];
        let (mut sent, mut written, mut in_vain) = (0, 0, 0);
        for fact in &log.facts {
            let cpu = fact.cpu.index();
            match fact.kind {
                FactKind::IdleEnter { state, .. } => {
                    in_vain += u32::from(ended[cpu].take().is_some());
                    polls[cpu] = (state == 0).then_some((fact.at, false));
                    asleep[cpu] = state != 0;
                }
                FactKind::IrqEntry { .. } => {
                    polls[cpu] = polls[cpu].map(|(since, _)| (since, true))
                }
                FactKind::IdleExit { state: 0, .. } => {
                    let (since, interrupted) = polls[cpu].take().expect("it was entered");
                    // A tick of 4 ms / 16, and interrupts.
                    assert!(
                        fact.at - since < 450_000,
                        "{kernel}: polled for {} ns",
                        fact.at - since
                    );
                    ended[cpu] = Some(!interrupted);
                }
                FactKind::IdleExit { .. } => asleep[cpu] = false,
                FactKind::Switch { .. } => written += u32::from(ended[cpu].take() == Some(true)),
                FactKind::Ipi { target, kind } => {
                    assert!(polls[target.index()].is_none(), "{kernel}: {kind:?} to {target:?}");
                    // A CPU that is just switching a task out gets its wakeup by an interrupt, too.
                    sent += u32::from(kind != IpiKind::IrqWork && asleep[target.index()]);
                }
                _ => {}
            }
        }
        // haltpoll polls after short halts only, of which this workload has few.
        let few = kernel.contains("haltpoll");
        assert!(few || written > 20, "{kernel}: {written} polls ended by a write");
        assert!(in_vain > 0, "{kernel}: {in_vain} in vain");
        let always_polls = kernel.contains("shallow");
        assert_eq!(sent < 2, always_polls, "{kernel}: {sent} interrupts");
    }
}

/// Firmware that refuses a state while an interrupt is pending: a stay of no length, neither too deep nor
/// told to the governor.
#[test]
fn refused_entries_are_stays_of_no_length() {
    let refuses = [
        (r#"name = "sleep""#, r#"refuses_pending = true, name = "sleep""#),
        (r#"name = "off""#, r#"refuses_pending = true, name = "off""#),
    ];
    for kernel in ["linux-6.12", "linux-6.12:cpuidle=menu", "linux-6.12:cpuidle=ladder"] {
        let scenario = uniform8_with(&refuses, kernel, "ui-phone", 500 * MS);
        check(kernel, &scenario, 1);
        let (log, result) = logged(&scenario, 1);
        let refused = stays(&log, 8).iter().filter(|stay| stay.length == 0).count() as u64;
        assert!(refused > 5, "{kernel}: {refused}");
        let mut twin: Twin = scenario.twin(1).eager();
        while twin.step(&mut ()) {}
        let cpus = (0..8).map(CpuId);
        let counted: u64 = cpus.map(|cpu| twin.kernel().inside().cpus[cpu].rejected).sum();
        assert_eq!(counted, refused, "{kernel}");
        assert_eq!(twin.finish().digest, result.digest, "{kernel}");
    }
}

#[test]
fn limits_and_switched_off_states() {
    let entries = |kernel: &str| -> [u64; 2] {
        let scenario = scenario("pixel6", kernel, "ui-phone", Some(500 * MS));
        let (_, result) = logged(&scenario, 1);
        [0, 1].map(|state| result.cpus.iter().map(|cpu| cpu.idle_entries[state]).sum())
    };
    assert!(entries(KERNEL)[1] > 100);
    for governor in ["teo", "menu", "ladder", "shallow"] {
        // c2 takes at least 230 us to leave, as the kernel is told.
        for setting in
            ["pm_qos.cpu_latency_us=229", "pm_qos.resume_latency_us=229", "cpuidle_disable=c2"]
        {
            let [shallow, deep] = entries(&format!("{KERNEL}:cpuidle={governor},{setting}"));
            assert!(shallow > 100 && deep == 0, "{governor} {setting}: {shallow} and {deep}");
        }
    }
    let by_number = entries(&format!("{KERNEL}:cpuidle_disable=1"));
    assert_eq!(by_number, entries(&format!("{KERNEL}:cpuidle_disable=c2")));
    let deep_only = entries(&format!("{KERNEL}:cpuidle_disable=WFI"));
    assert!(deep_only[0] == 0 && deep_only[1] > 100, "{deep_only:?}");
    // The little cores' c2 alone.
    assert!(entries(&format!("{KERNEL}:pm_qos.cpu_latency_us=230"))[1] > 0);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for (kernel, message) in [
        ("linux-6.12:cpuidle_disable=C9", "has no idle state `C9`"),
        (
            "linux-6.12:scaling_max_freq=1500",
            "`scaling_max_freq`: 1500 kHz is far below the lowest",
        ),
        (
            "linux-6.12:scaling_min_freq=1500",
            "`scaling_min_freq`: 1500 kHz is far below the lowest",
        ),
        ("linux-6.12:cpuidle_disable=c2//", "`cpuidle_disable` cannot be `c2//`"),
        ("linux-6.12:pm_qos.cpu_latency_us=fast", "`pm_qos.cpu_latency_us` cannot be `fast`"),
        ("linux-6.12:teo_util=posted", "`teo_util` cannot be `posted` where `teo` is `6.12`"),
        ("linux-6.12:teo=6.6,teo_util=v4", "`teo_util` cannot be `v4` where `teo` is `6.6`"),
        ("linux-6.12+teo-util", "`teo` is 6.12, and the patch is for 5.14"),
        ("linux-6.3+teo-util-step", "`teo_util` is 6.3, and the patch is for off"),
        ("linux-5.18+teo-util+teo-util-step", "both set `teo_util`: they exclude each other"),
        ("linux-5.18:teo_util_threshold_shift=11", "outside 0..=10"),
    ] {
        let faults = Scenario::new("pixel6", kernel, "w1", None).err().expect(kernel).to_string();
        assert!(faults.contains(message), "{kernel}: {faults}");
    }
}
