// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes a case smaller while its question keeps its answer.
//!
//! In the order that pays:
//!
//! 1. the machine: one of few CPUs in its place;
//! 2. the duration: half, while that does;
//! 3. members of the rt-app file, from whole tasks down to single events and attributes, in blocks (`ddmin`);
//! 4. instances of several tasks at once: what wakes each other comes in equal numbers;
//! 5. one instance less, for an affinity or a longer run of one task: fewer threads are smaller, whatever else is said;
//! 6. numbers: instances down to 1, others to one digit, then halved.
//!
//! Rounds go on until one changes nothing, or the attempts are used up. What cannot be read or run is no smaller case.

use serde_json::{Map, Number, Value};

use super::{Case, MachineGiven, WorkloadGiven, minimal};

/// Cases that are tried.
const ATTEMPTS: u64 = 1_500;

/// The machines that are tried in the place of the case's own, the smallest first: equal CPUs in one cache and one clock.
pub const SMALL_CPUS: [u32; 3] = [1, 2, 4];

/// A machine file of a few equal CPUs in one cache with one clock: it fits into a mail. Every number is an estimate.
pub fn small_machine(cpus: u32) -> String {
    let all = if cpus == 1 { "0".to_string() } else { format!("0-{}", cpus - 1) };
    let builtin = schedtwin_engine::builtin_machine("uniform8").expect("it is built in");
    builtin
        .text
        .replace("uniform8", &format!("small{cpus}"))
        .replace("\"0-7\"", &format!("\"{all}\""))
}

/// A shrunk case, and how many were tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrunk {
    /// The case.
    pub case: Case,
    /// Cases that were tried.
    pub tried: u64,
}

struct Shrinker<F> {
    best: Case,
    shows: F,
    left: u64,
}

/// Makes `case` smaller while `shows` says that its question has the same answer.
pub fn shrink(case: Case, shows: impl FnMut(&Case) -> bool) -> Shrunk {
    let mut shrinker = Shrinker { best: case, shows, left: ATTEMPTS };
    loop {
        let before = shrinker.best.clone();
        shrinker.machine();
        shrinker.duration();
        shrinker.members();
        shrinker.instances();
        shrinker.trades();
        shrinker.numbers();
        if shrinker.best == before || shrinker.left == 0 {
            return Shrunk { case: shrinker.best, tried: ATTEMPTS - shrinker.left };
        }
    }
}

impl<F: FnMut(&Case) -> bool> Shrinker<F> {
    /// Takes the candidate if it shows the same.
    fn try_it(&mut self, candidate: Case) -> bool {
        if self.left == 0 || candidate == self.best {
            return false;
        }
        self.left -= 1;
        let shows = (self.shows)(&candidate);
        if shows {
            self.best = candidate;
        }
        shows
    }

    fn with_workload(&self, workload: Value) -> Case {
        Case { workload: WorkloadGiven::RtApp(workload), ..self.best.clone() }
    }

    fn machine(&mut self) {
        for cpus in SMALL_CPUS {
            let machine = MachineGiven::Text(small_machine(cpus));
            if machine == self.best.machine {
                return;
            }
            if self.try_it(Case { machine, ..self.best.clone() }) {
                return;
            }
        }
    }

    fn duration(&mut self) {
        while let Some(duration) = self.best.duration {
            // Whole hundreds of ms are rounder.
            let half = (duration / 2).div_ceil(100_000_000) * 100_000_000;
            if half >= duration || !self.try_it(Case { duration: Some(half), ..self.best.clone() })
            {
                return;
            }
        }
    }

    /// Leaves out members of objects and arrays, the outer ones first.
    fn members(&mut self) {
        let mut paths = vec![Vec::new()];
        let mut at = 0;
        while at < paths.len() {
            let path: Vec<String> = paths[at].clone();
            at += 1;
            let WorkloadGiven::RtApp(root) = &self.best.workload else { return };
            let Some(object) = at_path(root, &path).and_then(Value::as_object) else { continue };
            let names: Vec<String> = object.keys().cloned().collect();
            if !path.is_empty() && names.len() > 1 {
                let whole = root.clone();
                let kept = minimal(names.len(), |set| {
                    let mut candidate = whole.clone();
                    let object = at_path_mut(&mut candidate, &path).and_then(Value::as_object_mut);
                    let object = object.expect("it is there");
                    *object = set
                        .iter()
                        .map(|at| (names[*at].clone(), object[&names[*at]].clone()))
                        .collect::<Map<String, Value>>();
                    let case = self.with_workload(candidate);
                    self.try_it(case)
                });
                let _ = kept;
            }
            let WorkloadGiven::RtApp(root) = &self.best.workload else { return };
            let Some(object) = at_path(root, &path).and_then(Value::as_object) else { continue };
            for (name, value) in object {
                if value.is_object() {
                    paths.push(path.iter().chain([name]).cloned().collect());
                }
            }
        }
    }

    /// Lowers the instances of all tasks together, then of each two of them: to 1, and by 1.
    fn instances(&mut self) {
        let WorkloadGiven::RtApp(root) = &self.best.workload else { return };
        let counts = instances_of(root);
        let pairs = (0..counts.len()).flat_map(|a| (a + 1..counts.len()).map(move |b| vec![a, b]));
        let sets: Vec<Vec<usize>> =
            [(0..counts.len()).collect()].into_iter().chain(pairs).collect();
        for set in sets.iter().filter(|set| set.len() > 1) {
            for by in [i64::MAX, 1] {
                let WorkloadGiven::RtApp(root) = &self.best.workload else { return };
                let mut candidate = root.clone();
                for (path, _) in set.iter().map(|at| &counts[*at]) {
                    let Some(place) = at_path_mut(&mut candidate, path) else { continue };
                    let fewer = place.as_i64().map_or(1, |number| number.saturating_sub(by).max(1));
                    *place = Value::Number(Number::from(fewer));
                }
                let case = self.with_workload(candidate);
                self.try_it(case);
            }
        }
    }

    /// One instance less of a task, where another task that is pinned, or runs longer at a time, keeps what was shown.
    fn trades(&mut self) {
        let mut at = 0;
        loop {
            let WorkloadGiven::RtApp(root) = &self.best.workload else { return };
            let Some((path, number)) = instances_of(root).get(at).cloned() else { return };
            let names: Vec<String> = match root.get("tasks").and_then(Value::as_object) {
                Some(tasks) => tasks.keys().cloned().collect(),
                None => return,
            };
            let mut candidates = Vec::new();
            for name in &names {
                let mut fewer = root.clone();
                if let Some(place) = at_path_mut(&mut fewer, &path) {
                    *place = Value::from(number - 1);
                }
                let mut pinned = fewer.clone();
                let tasks = |of: &mut Value| of["tasks"][name].as_object_mut().map(std::mem::take);
                if let Some(mut task) = tasks(&mut pinned).filter(|task| !task.contains_key("cpus"))
                {
                    task.insert("cpus".into(), Value::from(vec![0]));
                    pinned["tasks"][name] = Value::Object(task);
                    candidates.push(pinned);
                }
                if let Some(run) = fewer["tasks"][name].get_mut("run")
                    && let Some(us) = run.as_i64().filter(|us| *us < 10)
                {
                    *run = Value::from(us * 20);
                    candidates.push(fewer);
                }
            }
            let taken = candidates.into_iter().any(|candidate| {
                let case = self.with_workload(candidate);
                self.try_it(case)
            });
            at += usize::from(!taken);
        }
    }

    /// Rounds and lowers numbers.
    fn numbers(&mut self) {
        let mut seen = 0;
        loop {
            let WorkloadGiven::RtApp(root) = &self.best.workload else { return };
            let mut all = Vec::new();
            numbers_of(root, &mut Vec::new(), &mut all);
            let Some((path, number)) = all.get(seen).cloned() else { return };
            seen += 1;
            let name = path.last().map(String::as_str).unwrap_or_default();
            let mut tries: Vec<i64> = match name {
                "instance" => vec![1, 2, number / 2, number - 1],
                "duration" | "loop" => Vec::new(),
                _ => vec![one_digit(number), number / 2],
            };
            tries.retain(|value| *value != number && *value >= 1 && number > 1);
            for value in tries {
                let WorkloadGiven::RtApp(root) = &self.best.workload else { return };
                let mut candidate = root.clone();
                if let Some(place) = at_path_mut(&mut candidate, &path) {
                    *place = Value::Number(Number::from(value));
                }
                let case = self.with_workload(candidate);
                if self.try_it(case) {
                    break;
                }
            }
        }
    }
}

/// A number with one digit other than zero: 4,723 becomes 5,000.
fn one_digit(number: i64) -> i64 {
    let mut unit = 1;
    while number / unit >= 10 {
        unit *= 10;
    }
    (number + unit / 2) / unit * unit
}

fn at_path<'a>(root: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(root, |value, name| value.get(name))
}

fn at_path_mut<'a>(root: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(root, |value, name| value.get_mut(name))
}

/// The counts of instances beyond one.
fn instances_of(root: &Value) -> Vec<(Vec<String>, i64)> {
    let mut counts = Vec::new();
    numbers_of(root, &mut Vec::new(), &mut counts);
    counts.retain(|(path, number)| path.ends_with(&["instance".to_string()]) && *number > 1);
    counts
}

fn numbers_of(value: &Value, path: &mut Vec<String>, all: &mut Vec<(Vec<String>, i64)>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                path.push(name.clone());
                numbers_of(value, path, all);
                path.pop();
            }
        }
        Value::Number(number) => all.extend(number.as_i64().map(|number| (path.clone(), number))),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_matter_goes() {
        let task = |run: i64| json!({"instance": 7, "loop": -1, "run": run, "sleep": 4723});
        let case = Case {
            machine: MachineGiven::Named("pixel6".into()),
            workload: WorkloadGiven::RtApp(json!({
                "global": {"default_policy": "SCHED_OTHER"},
                "tasks": {"a": task(100), "b": task(4_000), "c": task(300)},
            })),
            seed: 1,
            duration: Some(5_000_000_000),
        };
        let shown = |case: &Case| {
            let WorkloadGiven::RtApp(root) = &case.workload else { return false };
            let run = root.pointer("/tasks/b/run").and_then(Value::as_i64);
            let two = case.machine != MachineGiven::Text(small_machine(1));
            run.is_some_and(|run| run >= 1_000) && two && case.duration >= Some(1_000_000_000)
        };
        let Shrunk { case, tried } = shrink(case, shown);
        assert_eq!(case.machine, MachineGiven::Text(small_machine(2)));
        let WorkloadGiven::RtApp(root) = &case.workload else { panic!() };
        assert_eq!(root["tasks"], json!({"b": {"run": 1000}}));
        assert!(tried < 100, "{tried}");
        assert!(case.duration < Some(2_000_000_000));
    }

    #[test]
    fn those_that_wake_each_other_become_fewer_together() {
        let task = |instance: i64| json!({"instance": instance, "loop": -1, "run": 10});
        let case = Case {
            machine: MachineGiven::Text(small_machine(1)),
            workload: WorkloadGiven::RtApp(
                json!({"tasks": {"a": task(3), "b": task(3), "c": task(4)}}),
            ),
            seed: 1,
            duration: Some(100_000_000),
        };
        let count = |root: &Value, name: &str| {
            let task = &root["tasks"][name];
            task.get("instance").map_or(i64::from(task.is_object()), |n| n.as_i64().unwrap())
        };
        let shown = |case: &Case| {
            let WorkloadGiven::RtApp(root) = &case.workload else { return false };
            count(root, "a") == count(root, "b") && count(root, "a") > 0 && count(root, "c") > 0
        };
        let Shrunk { case, .. } = shrink(case, shown);
        let WorkloadGiven::RtApp(root) = &case.workload else { panic!() };
        assert_eq!(["a", "b", "c"].map(|name| count(root, name)), [1, 1, 1]);
    }

    #[test]
    fn numbers_get_one_digit() {
        let rounded: Vec<i64> = [1, 9, 47, 4723, 95_000].map(one_digit).to_vec();
        assert_eq!(rounded, [1, 9, 50, 5000, 100_000]);
    }
}
