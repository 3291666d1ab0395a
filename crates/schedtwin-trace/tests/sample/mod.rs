// SPDX-License-Identifier: GPL-2.0-or-later
//! Facts for the tests: one of each kind, and long consistent streams.

#![allow(dead_code, reason = "each test uses a part")]

use schedtwin_trace::{Meta, Sink, TaskInfo};
use schedtwin_types::{
    BalanceRule, Candidate, CpuId, CpuMask, Decision, DecisionRecord, Fact, FactKind,
    FrequencyInput, FrequencyRule, IdleInput, IdleRule, IpiKind, PickCandidate, PickRule,
    PlacementRule, PolicyId, PreemptionRule, TaskGroupId, TaskId, TaskState, TeoRule, TickRule,
    WakeSource,
};

pub const UI: TaskId = TaskId(12);
pub const RT: TaskId = TaskId(3);

pub fn meta() -> Meta {
    Meta {
        title: "sample \"run\"".into(),
        nr_cpus: 40,
        domain_names: vec!["cpu-little".into(), "cpu-big".into()],
        policy_cpus: vec![CpuMask::first(4), CpuMask::from_cpus((4..40).map(CpuId))],
        cgroups: vec!["/background".into()],
        provenance: vec![
            ("version".into(), "0.1.0".into()),
            ("kernel".into(), "linux-5.18+runnable-boost".into()),
        ],
    }
}

pub fn tasks() -> Vec<TaskInfo> {
    vec![
        TaskInfo { id: UI, name: "ui".into(), prio: 120 },
        TaskInfo { id: RT, name: "sugov:0".into(), prio: 98 },
        TaskInfo { id: TaskId(70_000), name: "a name of more than 15".into(), prio: -1 },
    ]
}

/// One of each kind, in time order.
pub fn facts() -> Vec<Fact> {
    let far = TaskId(70_000);
    let kinds = [
        (1, FactKind::IrqEntry { lines: 0b011.into() }),
        (1, FactKind::Tick),
        (1, FactKind::Waking { task: UI, source: WakeSource::Timer, prev_cpu: CpuId(2) }),
        (1, FactKind::Migrate { task: UI, from: CpuId(2), to: CpuId(1) }),
        (1, FactKind::Wakeup { task: UI, target: CpuId(1), new: false }),
        (1, FactKind::IrqExit { spent_ns: 1_500 }),
        (1, FactKind::IdleExit { state: 2, residency_ns: 3_999_000 }),
        (1, FactKind::IdleMiss { state: 2, below: false }),
        (1, FactKind::Switch { prev: TaskId::IDLE, next: UI, prev_state: TaskState::Running }),
        (1, FactKind::CpuSignals { util_avg: 100, runnable_avg: 110, util_est: 0 }),
        (1, FactKind::TaskSignals { task: UI, util_avg: 90, util_est: 80, runnable_avg: 95 }),
        (1, FactKind::Frequency { policy: PolicyId(0), khz: 1_803_000, requested_at: 10 }),
        (1, FactKind::Waking { task: RT, source: WakeSource::Task, prev_cpu: CpuId(39) }),
        (1, FactKind::Waking { task: far, source: WakeSource::Kernel, prev_cpu: CpuId(0) }),
        (1, FactKind::Ipi { target: CpuId(39), kind: IpiKind::Reschedule }),
        (1, FactKind::Ipi { target: CpuId(31), kind: IpiKind::WakeList }),
        (39, FactKind::Wakeup { task: far, target: CpuId(39), new: true }),
        (39, FactKind::Switch { prev: TaskId::IDLE, next: far, prev_state: TaskState::Running }),
        (39, FactKind::Preempted { task: far }),
        (39, FactKind::Switch { prev: far, next: RT, prev_state: TaskState::Preempted }),
        (39, FactKind::Switch { prev: RT, next: far, prev_state: TaskState::Uninterruptible }),
        (39, FactKind::Exit { task: far }),
        (39, FactKind::Switch { prev: far, next: TaskId::IDLE, prev_state: TaskState::Dead }),
        (39, FactKind::Balance { level: 1, idle: 2, moved: 3 }),
        (39, FactKind::Balance { level: 0, idle: 1, moved: 0 }),
        (39, FactKind::IdleEnter { state: 0, tick_stopped: false }),
        (1, FactKind::Overutilized { on: true }),
        (
            1,
            FactKind::Switch { prev: UI, next: TaskId::IDLE, prev_state: TaskState::Interruptible },
        ),
        (1, FactKind::CpuSignals { util_avg: 100, runnable_avg: 90, util_est: 80 }),
        (1, FactKind::CpuSignals { util_avg: 100, runnable_avg: 90, util_est: 80 }),
        (1, FactKind::IdleEnter { state: 2, tick_stopped: true }),
        (39, FactKind::DlThrottled { task: far }),
        (1, FactKind::CgroupAttach { task: UI, group: TaskGroupId(3) }),
        (1, FactKind::CfsThrottled { group: TaskGroupId(3), on: CpuId(39), throttled: true }),
    ];
    let start = 1_999_999_998_400;
    let fact = |(index, (cpu, kind)): (usize, (u16, FactKind))| Fact {
        at: start + 100 * index as u64,
        cpu: CpuId(cpu),
        kind,
    };
    kinds.into_iter().enumerate().map(fact).collect()
}

/// One decision of each kind.
pub fn decisions() -> Vec<DecisionRecord> {
    let candidate = |cpu, role, util, capacity, energy_delta, max_util| Candidate {
        cpu: CpuId(cpu),
        role,
        util,
        capacity,
        energy_delta,
        max_util,
    };
    let input = |cpu, util_avg, runnable_avg, perf| FrequencyInput {
        cpu: CpuId(cpu),
        util_avg,
        runnable_avg,
        util_est: 0,
        util_uclamp: (cpu == 1).then_some(40),
        boost: runnable_avg.saturating_sub(util_avg),
        rt: 7,
        dl: 0,
        irq: 3,
        min: 54,
        max: (cpu == 1).then_some(512),
        perf,
    };
    let pick = |task, curr, lag, deadline, eligible| PickCandidate {
        depth: 0,
        task,
        group: TaskGroupId(if task.is_some() { 0 } else { 2 }),
        picked: task == Some(RT),
        curr,
        lag,
        deadline: Some(deadline),
        eligible,
    };
    let decisions = [
        Decision::Placement {
            task: UI,
            prev: CpuId(2),
            chosen: CpuId(6),
            rule: PlacementRule::FeecLeastEnergy,
            candidates: vec![
                candidate(2, "prev", 120, 124, Some(123_456), Some(400)),
                candidate(6, "max_spare", 40, 1024, Some(99_999), Some(300)),
                candidate(7, "idle scan", 0, 0, None, None),
            ],
        },
        Decision::Frequency {
            policy: PolicyId(0),
            inputs: vec![input(0, 100, 250, 317), input(1, 5, 5, 62)],
            util: Some(396),
            raw_khz: 1_650_123,
            khz: 1_803_000,
            previous_khz: 1_197_000,
            rule: FrequencyRule::Changed,
            limited_until: None,
        },
        Decision::Idle {
            state: 2,
            stop_tick: true,
            sleep_length_ns: Some(3_999_000),
            rule: IdleRule::Teo(TeoRule::Deepest),
            tick_rule: Some(TickRule::LongSleep),
            input: IdleInput {
                bins: vec![[8, 900], [7, 20], [0, 0]],
                total: Some(935),
                util: Some([37, 16]),
                ..IdleInput::default()
            },
        },
        Decision::Balance {
            dst: CpuId(1),
            src: Some(CpuId(2)),
            level: 1,
            idle: "newidle",
            migration: "migrate_task",
            imbalance: 1,
            moved: vec![UI],
            rule: BalanceRule::Overloaded,
        },
        Decision::Balance {
            dst: CpuId(1),
            src: None,
            level: 0,
            idle: "idle",
            migration: "migrate_load",
            imbalance: 0,
            moved: vec![],
            rule: BalanceRule::NobodyToPull,
        },
        Decision::Preemption {
            task: RT,
            curr: UI,
            preempt: true,
            rule: PreemptionRule::PreemptShort,
        },
        Decision::Pick {
            prev: UI,
            next: RT,
            rule: PickRule::EarliestDeadline,
            candidates: vec![
                pick(Some(UI), true, -1_500, 700_000, false),
                pick(Some(RT), false, 250, 3_000_000, true),
                pick(None, false, 1_250, 4_000_000, true),
            ],
        },
    ];
    let record = |(index, decision)| DecisionRecord {
        at: 1_999_999_999_999 + index as u64,
        cpu: CpuId(1),
        decision,
    };
    decisions.into_iter().enumerate().map(record).collect()
}

/// Feeds a sink with all of the above.
pub fn feed(sink: &mut dyn Sink) {
    for task in tasks() {
        sink.task(&task);
    }
    for fact in facts() {
        sink.fact(&fact);
    }
    for decision in decisions() {
        sink.decision(&decision);
    }
    sink.power_uw(2_000_000_000_100, 1, 412);
    sink.power_uw(2_000_000_000_200, 1, 412);
    sink.power_uw(2_000_000_000_200, 0, 7);
    sink.task_prio(UI, 110);
}

/// A stream of `count` facts that fit together: switches, wakeups, idle and frequency changes.
pub fn stream(count: usize, nr_cpus: u16, nr_tasks: u32, mut each: impl FnMut(Fact)) {
    let mut seed = 1u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut current = vec![TaskId::IDLE; usize::from(nr_cpus)];
    let mut at = 0;
    for _ in 0..count {
        at += random(20_000);
        let cpu = CpuId(random(u64::from(nr_cpus)) as u16);
        let task = TaskId(1 + random(u64::from(nr_tasks)) as u32);
        let other = CpuId(random(u64::from(nr_cpus)) as u16);
        let kind = match random(10) {
            0..4 => {
                let prev = current[cpu.index()];
                let next = if prev.is_idle() { task } else { TaskId::IDLE };
                current[cpu.index()] = next;
                let prev_state =
                    if prev.is_idle() { TaskState::Running } else { TaskState::Interruptible };
                FactKind::Switch { prev, next, prev_state }
            }
            4 | 5 => FactKind::Waking { task, source: WakeSource::Task, prev_cpu: other },
            6 => FactKind::Wakeup { task, target: cpu, new: false },
            7 => FactKind::IdleEnter { state: random(3) as u8, tick_stopped: false },
            8 => FactKind::Ipi {
                target: other,
                kind: IpiKind::ALL[random(IpiKind::COUNT as u64) as usize],
            },
            _ => FactKind::Tick,
        };
        each(Fact { at, cpu, kind });
    }
}
