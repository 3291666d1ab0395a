// SPDX-License-Identifier: GPL-2.0-or-later
//! Random machines and workloads, until one kernel breaks a property that another one keeps.
//!
//! A case is a function of its seed. It is small, as what is found has to be: 1 to 4 equal CPUs, 2 to 5 tasks. Each case has
//! a random subset of features (swarm testing: a feature that is always there hides what needs its absence), of which these
//! have been behind known bugs of Linux:
//!
//! | feature | what it makes |
//! |---|---|
//! | chains | tasks that wake each other, thousands of times a second |
//! | groups | nested cgroups, of which a parent has tasks itself |
//! | weights | `cpu.weight` and `cpu.idle` of groups, nice |
//! | limits | `cpu.max` |
//! | policies | FIFO and RR beside fair tasks, `SCHED_IDLE`, `SCHED_BATCH`, `SCHED_DEADLINE` |
//! | slices | custom slices |
//! | pinned | affinity |
//! | clamps | `util_min`, `util_max` |
//! | hogs | tasks that never sleep |
//! | forks | tasks that come and go |
//!
//! References: Groce et al., Swarm Testing (2012); kSTEP's reproducers use 2 to 6 tasks on 4 CPUs.

use rayon::prelude::*;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::result::Breach;
use schedtwin_types::rng::Rng;
use schedtwin_types::{NEVER, Ns};
use serde_json::{Map, Value, json};

use super::shrink::small_machine;
use super::{Case, MachineGiven, Question, WorkloadGiven};

/// Simulated time of a case: twice what the longest bound of a hunt needs.
pub const DURATION: Ns = 2_500_000_000;

/// A case that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The seed that gives the case.
    pub seed: u64,
    /// The case, as it was drawn.
    pub case: Case,
    /// How the kernel breaks the property.
    pub breach: Breach,
}

/// Runs the cases of `seeds` seeds from `first` on, and returns the first that parts the kernels. The number of threads
/// changes nothing.
pub fn batch(
    first: u64,
    seeds: u64,
    question: &Question,
    good: &KernelFile,
    bad: &KernelFile,
) -> Option<Found> {
    let seeds: Vec<u64> = (first..first.saturating_add(seeds)).collect();
    seeds.into_par_iter().with_max_len(1).find_map_first(|seed| {
        let case = case_of(seed, question);
        let breach = question.parts(&case, good, bad)?;
        Some(Found { seed, case, breach })
    })
}

/// The case of a seed. It lasts as long as the bounds that are asked for need.
pub fn case_of(seed: u64, question: &Question) -> Case {
    let mut rng = Rng::new(seed, 0);
    let cpus = rng.pick(&[1, 2, 2, 4]);
    let bound = question.property.map_or(0, |property| question.bounds.of(property));
    let duration = if bound == NEVER { DURATION } else { DURATION.max(bound.saturating_mul(2)) };
    Case {
        machine: MachineGiven::Text(small_machine(cpus)),
        workload: WorkloadGiven::RtApp(workload(&mut rng, u64::from(cpus))),
        seed: 1,
        duration: Some(duration),
    }
}

/// The features of a case.
struct Features {
    chains: bool,
    groups: bool,
    weights: bool,
    limits: bool,
    policies: bool,
    slices: bool,
    pinned: bool,
    clamps: bool,
    hogs: bool,
    forks: bool,
}

const GROUPS: [&str; 5] = ["/a", "/a/b", "/a/b/c", "/d", "/"];

fn workload(rng: &mut Rng, cpus: u64) -> Value {
    let mut on = || rng.one_in(2);
    let features = Features {
        chains: on(),
        groups: on(),
        weights: on(),
        limits: on() && on(),
        policies: on() && on(),
        slices: on() && on(),
        pinned: on() && on(),
        clamps: on() && on(),
        hogs: on(),
        forks: on() && on() && on(),
    };
    let mut tasks = Map::new();
    for at in 0..2 + rng.below(3) {
        tasks.insert(format!("t{at}"), task(rng, cpus, &features));
    }
    if features.chains {
        let instances = rng.pick(&[1, 2, 2, 3]);
        let works = [run_us(rng, 40), run_us(rng, 40)];
        for (at, (post, wait)) in [("x", "y"), ("y", "x")].into_iter().enumerate() {
            let mut task = attributes(rng, cpus, &features);
            task.insert("instance".into(), json!(instances));
            task.insert("loop".into(), json!(-1));
            // Who posts first starts the chain.
            if at == 0 {
                task.insert("run".into(), json!(works[at]));
                task.insert("sem_post".into(), json!(post));
                task.insert("sem_wait".into(), json!(wait));
            } else {
                task.insert("sem_wait".into(), json!(wait));
                task.insert("run".into(), json!(works[at]));
                task.insert("sem_post".into(), json!(post));
            }
            tasks.insert(format!("c{at}"), Value::Object(task));
        }
    }
    if features.forks {
        let mut child = attributes(rng, cpus, &features);
        child.insert("instance".into(), json!(0));
        child.insert("loop".into(), json!(1 + rng.below(5)));
        child.insert("run".into(), json!(run_us(rng, 3_000)));
        tasks.insert("child".into(), Value::Object(child));
        tasks.insert(
            "parent".into(),
            json!({"loop": -1, "run": 200, "fork": "child", "sleep": 20_000 + rng.below(100_000)}),
        );
    }
    let mut root = Map::new();
    root.insert("global".into(), json!({"default_policy": "SCHED_OTHER"}));
    root.insert("tasks".into(), Value::Object(tasks));
    let files = files(rng, &features);
    if !files.is_empty() {
        root.insert("taskgroups".into(), Value::Object(files));
    }
    Value::Object(root)
}

/// A time of any magnitude up to `most` us.
fn run_us(rng: &mut Rng, most: u64) -> u64 {
    let bits = u64::from(64 - most.leading_zeros());
    (1 + rng.magnitude(bits)).min(most)
}

fn task(rng: &mut Rng, cpus: u64, features: &Features) -> Value {
    let mut task = attributes(rng, cpus, features);
    if task.get("policy").and_then(Value::as_str) == Some("SCHED_DEADLINE") {
        return Value::Object(task);
    }
    task.insert("instance".into(), json!(rng.pick(&[1, 1, 2, 4])));
    task.insert("loop".into(), json!(-1));
    let real_time = task.contains_key("policy");
    if features.hogs && !real_time && rng.one_in(3) {
        task.insert("run".into(), json!(run_us(rng, 100_000)));
        return Value::Object(task);
    }
    let period = 1_000 + run_us(rng, 60_000);
    let share = 1 + rng.below(if real_time { 60 } else { 80 });
    task.insert("run".into(), json!((period * share / 100).max(1)));
    match rng.below(3) {
        0 => task.insert("sleep".into(), json!(period)),
        _ => task.insert("timer".into(), json!({"ref": "unique", "period": period})),
    };
    Value::Object(task)
}

/// Policy, nice, slice, affinity, clamps and cgroup.
fn attributes(rng: &mut Rng, cpus: u64, features: &Features) -> Map<String, Value> {
    let mut task = Map::new();
    let mut fair = true;
    if features.policies && rng.one_in(2) {
        match rng.below(5) {
            0 | 1 => {
                fair = false;
                let policy = rng.pick(&["SCHED_FIFO", "SCHED_RR"]);
                task.insert("policy".into(), json!(policy));
                task.insert("priority".into(), json!(1 + rng.below(90)));
            }
            2 => drop(task.insert("policy".into(), json!("SCHED_IDLE"))),
            3 => drop(task.insert("policy".into(), json!("SCHED_BATCH"))),
            _ => {
                let runtime = 1_000 + run_us(rng, 20_000);
                let period = runtime * (2 + rng.below(8));
                return json!({
                    "policy": "SCHED_DEADLINE", "dl-runtime": runtime, "dl-period": period,
                    "dl-deadline": period, "loop": -1, "run": runtime * (1 + rng.below(12)) / 10,
                    "timer": {"ref": "unique", "period": period},
                })
                .as_object()
                .cloned()
                .unwrap_or_default();
            }
        }
    }
    if fair && features.weights && rng.one_in(2) && !task.contains_key("policy") {
        task.insert("priority".into(), json!(rng.pick(&[0i64, -20, -10, 5, 19])));
    }
    if fair && features.slices && rng.one_in(2) {
        task.insert("dl-runtime".into(), json!(100 + run_us(rng, 100_000)));
    }
    if features.pinned && rng.one_in(2) {
        task.insert("cpus".into(), json!([rng.below(cpus)]));
    }
    if features.clamps && rng.one_in(2) {
        let min = rng.below(1025);
        task.insert("util_min".into(), json!(min));
        task.insert("util_max".into(), json!(min + rng.below(1025 - min)));
    }
    if fair && features.groups && rng.one_in(2) {
        task.insert("taskgroup".into(), json!(rng.pick(&GROUPS)));
    }
    task
}

/// The files of cgroups.
fn files(rng: &mut Rng, features: &Features) -> Map<String, Value> {
    let mut all = Map::new();
    if !features.groups {
        return all;
    }
    for group in &GROUPS[..4] {
        let mut files = Map::new();
        if features.weights && rng.one_in(2) {
            let weight = rng.pick(&["1", "20", "100", "400", "10000"]);
            files.insert("cpu.weight".into(), json!(weight));
        }
        if features.limits && rng.one_in(2) {
            let period = rng.pick(&[10_000u64, 50_000, 100_000]);
            let quota = (period * (5 + rng.below(200)) / 100).max(1_000);
            files.insert("cpu.max".into(), json!(format!("{quota} {period}")));
        }
        if !files.is_empty() {
            all.insert((*group).to_string(), Value::Object(files));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Answer;
    use schedtwin_engine::result::{Bounds, Property};

    /// A case follows from its seed, and nearly all of them can be read.
    #[test]
    fn cases_are_of_their_seed_and_run() {
        let mut bounds = Bounds::default();
        bounds.set("starvation=100ms").unwrap();
        let question = Question { property: Some(Property::Starvation), bounds };
        let kernel = KernelFile::load("linux-6.12").unwrap();
        let mut unread = 0;
        for seed in 0..200 {
            let case = case_of(seed, &question);
            assert_eq!(case, case_of(seed, &question));
            unread += u32::from(case.scenario(&kernel).is_err());
        }
        assert!(unread < 20, "{unread} of 200 are refused");
    }

    /// A kernel against itself keeps what it keeps.
    #[test]
    fn a_kernel_parts_from_itself_never() {
        let question = Question { property: None, bounds: Bounds::default() };
        let kernel = KernelFile::load("linux-6.12").unwrap();
        for seed in 0..6 {
            let mut case = case_of(seed, &question);
            case.duration = Some(200_000_000);
            assert!(
                !matches!(question.ask(&case, &kernel), Answer::Unknown(why) if why.contains("panic"))
            );
            assert_eq!(question.parts(&case, &kernel, &kernel), None);
        }
    }
}
