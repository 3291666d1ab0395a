// SPDX-License-Identifier: GPL-2.0-or-later
//! Pairs of CPUs that stand for their class.
//!
//! A class is the least that two CPUs share ([`Machine::distance`]). Large machines have tens of thousands of pairs; of each
//! class the first, the middle and the last are taken, in the order of their CPUs, so that a class that is not uniform (a
//! mesh, a hybrid) shows in its spread.
//!
//! ```text
//! 8 CPUs, 2 caches of 4:   llc   0-1 .. 0-3, 1-2 .. 6-7    takes 0-1, 4-5, 6-7
//!                          node  0-4 .. 3-7                takes 0-4, 2-4, 3-7
//! ```

use schedtwin_machine::{Distance, Machine};
use schedtwin_types::CpuId;

/// All distances from near to far.
pub const DISTANCES: [Distance; Distance::COUNT] = [
    Distance::Core,
    Distance::Cluster,
    Distance::Cache,
    Distance::Node,
    Distance::Package,
    Distance::Machine,
];

/// Name of a distance in `[distance.line_ns]`.
pub fn key(distance: Distance) -> &'static str {
    match distance {
        Distance::Core => "core",
        Distance::Cluster => "cluster",
        Distance::Cache => "llc",
        Distance::Node => "node",
        Distance::Package => "package",
        Distance::Machine => "machine",
    }
}

/// The pairs that stand for a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// Distance of the two CPUs of each pair.
    pub distance: Distance,
    /// One to three pairs.
    pub pairs: Vec<[usize; 2]>,
}

/// Chooses the pairs of each class that `cpus` have, from near to far. CPUs that the machine does not have are left out.
pub fn choose(machine: &Machine, cpus: &[usize]) -> Vec<Pairs> {
    let cpus: Vec<usize> = cpus.iter().copied().filter(|cpu| *cpu < machine.cpus.len()).collect();
    let mut classes: [Vec<[usize; 2]>; Distance::COUNT] = Default::default();
    for (index, &one) in cpus.iter().enumerate() {
        for &other in &cpus[index + 1..] {
            let distance = machine.distance(CpuId(one as u16), CpuId(other as u16));
            classes[distance as usize].push([one, other]);
        }
    }
    let chosen = DISTANCES.into_iter().zip(classes).filter(|(_, all)| !all.is_empty());
    let chosen = chosen.map(|(distance, all)| {
        let mut pairs = vec![all[0], all[all.len() / 2], all[all.len() - 1]];
        pairs.dedup();
        Pairs { distance, pairs }
    });
    chosen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(machine: &str, cpus: &[usize]) -> String {
        let machine = Machine::load(machine).unwrap();
        let classes = choose(&machine, cpus).into_iter();
        let shown = classes.map(|Pairs { distance, pairs }| {
            let pairs: Vec<String> =
                pairs.iter().map(|[one, other]| format!("{one}-{other}")).collect();
            format!("{} {}", key(distance), pairs.join(" "))
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn every_class_has_its_first_middle_and_last_pair() {
        let all: Vec<usize> = (0..256).collect();
        assert_eq!(
            chosen("epyc-milan-2x64:topology=nps4", &all),
            "core 0-128 64-192 127-255; llc 0-1 84-211 254-255; node 0-8 84-88 247-255; \
             package 0-16 80-96 239-255; machine 0-64 64-128 191-255"
        );
        assert_eq!(chosen("altra-2p160", &[0, 1, 80]), "llc 0-1; machine 0-80 1-80");
    }

    #[test]
    fn only_cpus_that_may_be_used_are_paired() {
        assert_eq!(chosen("uniform8", &[2, 5]), "llc 2-5");
        assert_eq!(chosen("uniform8", &[3]), "");
        assert_eq!(chosen("uniform8", &[7, 8, 400]), "");
    }
}
