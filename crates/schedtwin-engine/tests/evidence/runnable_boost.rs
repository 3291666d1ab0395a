// SPDX-License-Identifier: GPL-2.0-or-later
//! Runnable boosting where its author had it: CFS on a Pixel 6, and what it does event by event.
//!
//! **Stated first**, from the base kernel alone: how long CPUs have two or more runnable tasks, and which
//! domain should therefore ask for more. **Then** each event at which the patched kernel requests a
//! frequency is repeated from the same state with the patch off. What differs, differs by the boost only.
//!
//! ```text
//!  patched twin ──► event: policy 0 requests 1098000 kHz, runnable_avg 310 > util_avg 190
//!        └─ clone, boost off ──► the same event: policy 0 requests 738000 kHz
//! ```
//!
//! `cargo test -p schedtwin-engine --test evidence runnable_boost -- --nocapture` prints the table of
//! docs/runnable-boost.md.

use crate::scenarios::{MS, SECOND, metric, published_folder, run, scenario};
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_kernel::config::RunnableBoost;
use schedtwin_kernel::sched::CfsRqId;
use schedtwin_types::{
    Decision, DecisionRecord, Fact, FrequencyInput, Khz, Ns, PowerSource, TaskId,
};

const BASE: &str = "linux-5.18:uclamp=compiled-out";
const PATCHED: &str = "linux-5.18+runnable-boost:uclamp=compiled-out";

/// A published file, the cluster whose CPUs compete most, and in how many percent of their time.
struct Stated {
    file: &'static str,
    /// How much of it.
    duration: Ns,
    /// Index of the frequency domain, and its name.
    policy: u16,
    cluster: &'static str,
    /// At least so much of the time of its CPUs there are two or more runnable tasks, %.
    contention: f64,
}

/// Read off the base kernel before the patched one was looked at.
const STATED: [Stated; 4] = [
    Stated {
        file: "workload-automation/camera-long",
        duration: 600 * MS,
        policy: 0,
        cluster: "little",
        contention: 10.0,
    },
    Stated {
        file: "workload-automation/browser-long",
        duration: 3 * SECOND,
        policy: 2,
        cluster: "big",
        contention: 0.05,
    },
    Stated {
        file: "rt-app/tutorial__example3",
        duration: 500 * MS,
        policy: 2,
        cluster: "big",
        contention: 3.0,
    },
    Stated {
        file: "uclamp-scenarios/juno-scenario4",
        duration: 200 * MS,
        policy: 1,
        cluster: "mid",
        contention: 30.0,
    },
];

/// Tasks meet on little CPUs (in more than 2 % of their time), but need so little, a tenth of such a CPU,
/// that the lowest frequency is enough, mostly also for what the boost asks for.
const SATISFIED: &str = "workload-automation/video-long";
/// Of a little CPU at 300 MHz.
const LOWEST_CAPACITY: u64 = 20;

/// Files in which no two tasks meet on a CPU.
const ALONE: [&str; 2] = ["rt-app/tutorial__example1", "rt-app/cpufreq_governor_efficiency__dvfs"];

/// Keeps the frequency decisions of an event.
#[derive(Default)]
struct Requests(Vec<DecisionRecord>);

impl Observer for Requests {
    const DECISIONS: bool = true;
    fn task(&mut self, _: TaskId, _: &str, _: i32) {}
    fn fact(&mut self, _: &Fact) {}
    fn decision(&mut self, decision: DecisionRecord) {
        if matches!(decision.decision, Decision::Frequency { .. }) {
            self.0.push(decision);
        }
    }
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// A request: policy, inputs, and the frequency asked for. `None`: none was made (rate limit).
fn request(record: &DecisionRecord) -> Option<(u16, &[FrequencyInput], Khz)> {
    match &record.decision {
        Decision::Frequency { policy, inputs, khz, .. } if !inputs.is_empty() => {
            Some((policy.0, inputs, *khz))
        }
        _ => None,
    }
}

/// A request with a boost, and what the same event asks for without the patch.
struct Repeated {
    at: Ns,
    policy: u16,
    runnable_avg: u64,
    util_avg: u64,
    khz: Khz,
    without: Khz,
}

/// The first boosted request of an event, repeated from the state `before` it. `None`: the event has none,
/// or placed a wakee elsewhere before it asked, since EAS looks at contention, too.
fn repeat(before: Twin, seen: &Requests) -> Option<Repeated> {
    let (policy, inputs, khz) = seen.0.iter().find_map(request)?;
    let boosted = inputs.iter().filter(|input| input.boost != 0);
    let input = boosted.max_by_key(|input| input.perf)?;
    assert!(input.runnable_avg > input.util_avg, "a boost is contention: {input:?}");
    let mut twin = before;
    let kernel = twin.kernel().clone();
    *twin.kernel_mut() = kernel.with_config(|config| config.runnable_boost = RunnableBoost::Off);
    let mut plain = Requests::default();
    twin.step(&mut plain);
    let (_, plain_inputs, without) = plain.0.iter().find_map(request)?;
    let signals =
        |i: &FrequencyInput| (i.cpu, i.util_avg, i.runnable_avg, i.util_est, i.rt, i.dl, i.irq);
    if !inputs.iter().map(signals).eq(plain_inputs.iter().map(signals)) {
        return None;
    }
    for (mine, other) in inputs.iter().zip(plain_inputs) {
        assert!(mine.perf >= other.perf && other.boost == 0, "{mine:?} {other:?}");
    }
    assert!(khz >= without, "the boost lowers nothing: {khz} < {without}");
    let FrequencyInput { runnable_avg, util_avg, .. } = *input;
    Some(Repeated { at: seen.0[0].at, policy, runnable_avg, util_avg, khz, without })
}

/// Runs the patched kernel, and repeats each event with a boosted request without the patch.
fn repeated_requests(machine: &str, workload: &str, duration: Ns) -> Vec<Repeated> {
    let mut twin: Twin = scenario(machine, PATCHED, workload, Some(duration)).twin(1);
    twin.record_decisions();
    let mut repeated = Vec::new();
    loop {
        // A copy of everything costs more than an event: only where contention shows already.
        let competes = |cpu| {
            let avg = &twin.kernel().inside().cfs[CfsRqId::root(cpu)].avg;
            avg.runnable_avg > avg.util_avg
        };
        let before = twin.kernel().inside().rq.ids().any(competes).then(|| twin.clone());
        let mut seen = Requests::default();
        let more = twin.step(&mut seen);
        repeated.extend(before.and_then(|before| repeat(before, &seen)));
        if !more {
            return repeated;
        }
    }
}

#[test]
fn where_tasks_compete_the_domain_asks_for_more() {
    let Some(folder) = published_folder() else { return };
    println!("file, cluster, contention %, requests repeated, raised, of these in the cluster");
    for Stated { file, duration, policy, cluster, contention } in STATED {
        let workload = folder.join(format!("{file}.json")).display().to_string();
        let base = run(&scenario("pixel6", BASE, &workload, Some(duration)), 1);
        let found = metric(&base, "contention", "mean", &[("cluster", cluster)]);
        assert!(found >= contention, "{file}: {cluster} has two or more in {found} %");
        let repeated = repeated_requests("pixel6", &workload, duration);
        let raised: Vec<&Repeated> = repeated.iter().filter(|r| r.khz > r.without).collect();
        let there: Vec<&Repeated> = raised.iter().copied().filter(|r| r.policy == policy).collect();
        println!(
            "{file}, {cluster}, {found:.2}, {}, {}, {}",
            repeated.len(),
            raised.len(),
            there.len()
        );
        for Repeated { at, runnable_avg, util_avg, khz, without, .. } in there.iter().take(3) {
            let ms = *at as f64 / 1e6;
            println!(
                "  {ms:9.3} ms: runnable_avg {runnable_avg} > util_avg {util_avg}: \
                 {khz} kHz, {without} without"
            );
        }
        assert!(there.len() >= 3, "{file}: {} requests of {cluster} are raised", there.len());
    }
}

#[test]
fn where_the_lowest_frequency_is_enough_nothing_rises() {
    let Some(folder) = published_folder() else { return };
    // The kernel knows of the little clock what it asked for alone.
    let machine = "pixel6:coupling_by_driver=false";
    let workload = folder.join(format!("{SATISFIED}.json")).display().to_string();
    let base = run(&scenario(machine, BASE, &workload, Some(300 * MS)), 1);
    let contention = metric(&base, "contention", "mean", &[("cluster", "little")]);
    assert!(contention > 2.0, "{contention} %");
    let repeated = repeated_requests(machine, &workload, 300 * MS);
    let (enough, more): (Vec<&Repeated>, Vec<&Repeated>) =
        repeated.iter().partition(|r| r.runnable_avg + r.runnable_avg / 4 <= LOWEST_CAPACITY);
    assert!(enough.len() > 50 && enough.len() > more.len(), "{} {}", enough.len(), more.len());
    assert_eq!(enough.iter().filter(|r| r.khz > r.without).count(), 0, "of {}", enough.len());
}

/// The form of 6.6. As posted, EAS counts a waking task twice, in `runnable_avg` and in its own util_est, and may
/// place it elsewhere though nobody competes: why that part was taken back.
#[test]
fn where_nobody_competes_nothing_changes() {
    let Some(folder) = published_folder() else { return };
    for file in ALONE {
        let workload = folder.join(format!("{file}.json")).display().to_string();
        let result = |kernel| run(&scenario("pixel6", kernel, &workload, Some(2 * SECOND)), 1);
        let (base, merged) =
            (result(BASE), result("linux-5.18:runnable_boost=on,uclamp=compiled-out"));
        assert_eq!(metric(&base, "contention", "mean", &[]), 0.0, "{file}");
        assert_eq!(base.digest, merged.digest, "{file}");
    }
}
