// SPDX-License-Identifier: GPL-2.0-or-later
//! The coverage of scenarios: arms of variation points, and kinds of machines and workloads.

use schedtwin_engine::kernel_file::settings;
use schedtwin_kernel::config::Kind;
use std::collections::BTreeMap;

/// The marks that generators can set, so that a kind of scenario that never comes up is noticed.
const MARKS: [&str; 64] = [
    "machine: built in",
    "machine: 1 CPU",
    "machine: up to 16 CPUs",
    "machine: up to 256 CPUs",
    "machine: capacities differ",
    "machine: fast switch",
    "machine: slow switch",
    "machine: several packages",
    "machine: several caches",
    "machine: clusters",
    "machine: threads of a core",
    "machine: pollers slow threads",
    "machine: distances",
    "machine: preferred CPUs",
    "machine: 8 idle states",
    "machine: polling state",
    "machine: timers stop",
    "machine: broadcast timer",
    "machine: shared idle states",
    "machine: aborted entries",
    "machine: refused entries",
    "machine: a clock for each CPU",
    "machine: coupled clocks",
    "machine: power domains",
    "machine: kinds of work",
    "machine: clocks that stall",
    "machine: late requests",
    "machine: limits of power",
    "machine: heat",
    "machine: step_wise",
    "machine: power_allocator",
    "kernel: patches",
    "kernel: settings",
    "kernel: a scheduler of sched_ext",
    "kernel: a scheduler of sched_ext with a mistake",
    "kernel: a scheduler of sched_ext that is loaded late",
    "kernel: a scheduler of sched_ext that is stopped",
    "workload: model",
    "workload: jobs",
    "workload: rt-app",
    "workload: real time",
    "workload: batch and idle",
    "workload: nice",
    "workload: custom slices",
    "workload: deadlines",
    "workload: affinity",
    "workload: clamps",
    "workload: groups",
    "workload: weights of groups",
    "workload: idle groups",
    "workload: limits of groups",
    "workload: phases",
    "workload: forks",
    "workload: locks",
    "workload: conditions",
    "workload: signals",
    "workload: barriers",
    "workload: semaphores",
    "workload: suspend and resume",
    "workload: yields",
    "workload: system",
    "machine: block device",
    "workload: requests",
    "workload: fio",
];

/// Counts of scenarios that ran, by what they had.
#[derive(Clone, Debug, Default)]
pub struct Cover {
    arms: BTreeMap<(String, String), u64>,
    marks: BTreeMap<&'static str, u64>,
}

impl Cover {
    /// A scenario ran: the settings of its kernel, and the marks of its generators.
    pub fn add(&mut self, settings: &[(String, String)], marks: &[&'static str]) {
        for setting in settings {
            *self.arms.entry(setting.clone()).or_default() += 1;
        }
        for mark in marks {
            *self.marks.entry(mark).or_default() += 1;
        }
    }

    /// A line for each variation point and each mark, with counts.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (point, arms) in points() {
            let counted = |arm: &&str| {
                let key = (point.to_string(), arm.to_string());
                format!("{arm} {}", self.arms.get(&key).copied().unwrap_or(0))
            };
            let arms: Vec<String> = arms.iter().map(counted).collect();
            text.push_str(&format!("  {point}: {}\n", arms.join(", ")));
        }
        for mark in MARKS {
            text.push_str(&format!("  {mark}: {}\n", self.marks.get(mark).copied().unwrap_or(0)));
        }
        text
    }

    /// Returns the points that no scenario reached.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (point, arms) in points() {
            for arm in arms {
                if !self.arms.contains_key(&(point.to_string(), arm.to_string())) {
                    missing.push(format!("{point}={arm}"));
                }
            }
        }
        let unmarked = MARKS.iter().filter(|mark| !self.marks.contains_key(*mark));
        missing.extend(unmarked.map(|mark| mark.to_string()));
        missing
    }
}

/// The variation points with the words of their arms.
fn points() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    settings().iter().filter(|setting| !setting.is_bug()).filter_map(|setting| {
        match &setting.kind {
            Kind::Choice { arms, .. } => {
                Some((setting.path, arms.iter().map(|arm| arm.word).collect()))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Texts;
    use crate::tape::Tape;

    /// Every mark is one that the generators make, and they make no other.
    #[test]
    fn marks_are_those_of_the_generators() {
        let mut seen: Vec<&str> = Vec::new();
        for seed in 0..600 {
            let mut tape = Tape::of_seed(seed);
            Texts::generate(&mut tape);
            seen.extend(tape.marks());
        }
        seen.sort_unstable();
        seen.dedup();
        let mut known = MARKS.to_vec();
        known.sort_unstable();
        assert_eq!(seen, known);
    }

    #[test]
    fn what_was_not_reached_is_missing() {
        let mut cover = Cover::default();
        let all = cover.missing().len();
        cover.add(&[("cpuidle".into(), "teo".into())], &["kernel: patches"]);
        assert_eq!(cover.missing().len(), all - 2);
        assert!(cover.text().contains("cpuidle: teo 1"));
    }
}
