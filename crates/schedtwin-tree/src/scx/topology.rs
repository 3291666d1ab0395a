// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine as loaders see it: cores, caches and nodes, kinds of CPUs, and what expressions of files of options may ask.
//!
//! Kinds as in scx at 7a58a3a1a, `rust/scx_utils/src/topology.rs`, written from what they mean.

use crate::expression::Expression;
use crate::steps::{OF_CPU, OF_MACHINE, Part};
use schedtwin_kernel::policy::Kfuncs;
use schedtwin_types::{CpuId, MAX_CPUS};

/// The machine as loaders see it: units within units, numbered as they come in the order of CPUs.
pub(super) struct Topology {
    pub(super) cpus: Vec<Place>,
    /// CPUs of each node, cache and core.
    pub(super) nodes: Vec<Vec<u16>>,
    pub(super) llcs: Vec<Vec<u16>>,
    pub(super) cores: Vec<Vec<u16>>,
}

/// Where a CPU is. `..._in_...`: its number within the unit above.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) cpu: u16,
    pub(super) node: usize,
    pub(super) llc: usize,
    pub(super) core: usize,
    pub(super) llc_in_node: usize,
    pub(super) core_in_llc: usize,
    pub(super) thread_in_core: usize,
    pub(super) threads: usize,
    /// The other thread of its core.
    pub(super) sibling: Option<u16>,
    pub(super) capacity: u32,
}

impl Topology {
    pub(super) fn of(scx: &Kfuncs) -> Topology {
        let (mut nodes, mut llcs, mut cores) = (Vec::new(), Vec::new(), Vec::new());
        let mut by_node: Vec<CpuId> = (0..scx.nr_cpu_ids()).map(|cpu| CpuId(cpu as u16)).collect();
        by_node.sort_by_key(|cpu| (scx.cpu_node(*cpu), *cpu));
        let mut cpus = Vec::new();
        for cpu in by_node {
            let (node, llc) = (scx.cpu_node(cpu), scx.llc_id(cpu));
            let threads = scx.smt_mask(cpu);
            let core = threads.lowest().unwrap_or(cpu);
            let node_at = unit(&mut nodes, node.into(), cpu);
            let llc_at = unit(&mut llcs, (u64::from(node) << 32) | u64::from(llc.0), cpu);
            let core_at = unit(&mut cores, core.0.into(), cpu);
            let in_unit = |of: &[(u64, Vec<u16>)], above: &[u16], at: usize| {
                of[..at].iter().filter(|(_, cpus)| above.contains(&cpus[0])).count()
            };
            let order: Vec<u16> = threads.iter().map(|cpu| cpu.0).collect();
            let thread_in_core = order.iter().position(|other| *other == cpu.0).unwrap_or(0);
            // Of more than two threads the first two are each other's.
            let sibling = match thread_in_core {
                0 => order.get(1).copied(),
                1 => Some(order[0]),
                _ => None,
            };
            cpus.push(Place {
                cpu: cpu.0,
                node: node_at,
                llc: llc_at,
                core: core_at,
                llc_in_node: in_unit(&llcs, &nodes[node_at].1, llc_at),
                core_in_llc: in_unit(&cores, &llcs[llc_at].1, core_at),
                thread_in_core,
                threads: order.len(),
                sibling,
                capacity: scx.cpuperf_cap(cpu),
            });
        }
        let cpus_of =
            |units: Vec<(u64, Vec<u16>)>| units.into_iter().map(|(_, cpus)| cpus).collect();
        Topology { cpus, nodes: cpus_of(nodes), llcs: cpus_of(llcs), cores: cpus_of(cores) }
    }

    pub(super) fn nr_llcs(&self) -> usize {
        self.llcs.len()
    }

    /// The kinds of the CPUs: big ones have at least the mean capacity where the largest has 1.3 times the smallest, and are
    /// turbo ones if they have the most.
    pub(super) fn kinds(&self) -> Vec<Cpu> {
        let capacities = || self.cpus.iter().map(|place| u64::from(place.capacity));
        let (most, least) =
            (capacities().max().unwrap_or(1024), capacities().min().unwrap_or(1024));
        let mean = capacities().sum::<u64>() / self.cpus.len().max(1) as u64;
        let differ = 10 * most >= 13 * least;
        let of = |place: &Place| {
            let raw = u64::from(place.capacity);
            let turbo = mean < most && raw == most;
            let big = turbo || !differ || raw >= mean;
            Cpu { place: *place, capacity: raw * 1024 / most, big, turbo }
        };
        self.cpus.iter().map(of).collect()
    }

    /// The most units that one of the level above has, from the machine down to a thread.
    pub(super) fn most_children(&self) -> [u32; 5] {
        let most = |above: &[Vec<u16>], of: &[Vec<u16>]| {
            let within =
                |above: &Vec<u16>| of.iter().filter(|cpus| above.contains(&cpus[0])).count();
            above.iter().map(within).max().unwrap_or(0) as u32
        };
        let threads = self.cores.iter().map(Vec::len).max().unwrap_or(0) as u32;
        let nodes = self.nodes.len() as u32;
        [nodes, most(&self.nodes, &self.llcs), most(&self.llcs, &self.cores), threads, 0]
    }

    /// All units from the machine down to a thread: their numbers and CPUs.
    pub(super) fn units(&self) -> impl Iterator<Item = (usize, Vec<u16>)> {
        let all = (0, self.cpus.iter().map(|place| place.cpu).collect());
        let levels = [&self.nodes, &self.llcs, &self.cores];
        let units = levels.into_iter().flat_map(|level| level.iter().cloned().enumerate());
        let threads = (0..self.cpus.len()).map(|cpu| (cpu, vec![cpu as u16]));
        std::iter::once(all).chain(units).chain(threads)
    }
}

/// The place of a unit among those that have been met, with the CPU added to it.
fn unit(met: &mut Vec<(u64, Vec<u16>)>, key: u64, cpu: CpuId) -> usize {
    let at = met.iter().position(|(known, _)| *known == key).unwrap_or(met.len());
    if at == met.len() {
        met.push((key, Vec::new()));
    }
    met[at].1.push(cpu.0);
    at
}

/// A CPU with its kind.
#[derive(Clone, Copy)]
pub(super) struct Cpu {
    pub(super) place: Place,
    /// 1024: the largest.
    pub(super) capacity: u64,
    pub(super) big: bool,
    pub(super) turbo: bool,
}

/// A set of CPUs, 64 in a word.
pub(super) type MaskWords = [u64; MAX_CPUS / 64];

/// A part of the machine: the values of the names that expressions about it use, and its CPUs.
pub(super) struct Valued {
    pub(super) values: Vec<i64>,
    pub(super) cpus: Vec<u16>,
}

/// The values of all names, part by part.
pub(super) struct Machine {
    topology: Topology,
    cpus: Vec<Cpu>,
    own: Vec<i64>,
}

impl Machine {
    pub(super) fn of(topology: Topology) -> Machine {
        let mut cpus = topology.kinds();
        cpus.sort_by_key(|cpu| cpu.place.cpu);
        let capacities = || topology.cpus.iter().map(|place| i64::from(place.capacity));
        let largest = capacities().max().unwrap_or(1024);
        let most_in_llc = topology.llcs.iter().map(Vec::len).max().unwrap_or(0);
        let own = vec![
            topology.cpus.len() as i64,
            topology.cores.len() as i64,
            topology.llcs.len() as i64,
            topology.nodes.len() as i64,
            topology.cpus.iter().any(|place| place.threads > 1).into(),
            capacities().all(|capacity| capacity == largest).into(),
            cpus.iter().any(|cpu| !cpu.big).into(),
            largest,
            most_in_llc as i64,
            fastest(&cpus).last().map_or(0, |cpu| i64::from(*cpu)),
        ];
        debug_assert_eq!(own.len(), OF_MACHINE.len());
        Machine { topology, cpus, own }
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// All parts of a kind.
    pub(super) fn parts(&self, part: Part) -> Vec<Valued> {
        let all = || self.cpus.iter().map(|cpu| cpu.place.cpu).collect();
        let valued = |(own, cpus): (Vec<i64>, Vec<u16>)| Valued {
            values: self.own.iter().copied().chain(own).collect(),
            cpus,
        };
        let cpus = |cpus: &[Vec<u16>]| cpus.to_vec();
        let parts: Vec<(Vec<i64>, Vec<u16>)> = match part {
            Part::Machine => vec![(Vec::new(), all())],
            Part::Cpu => self.cpus.iter().map(|cpu| (of_cpu(cpu), vec![cpu.place.cpu])).collect(),
            Part::Core => cpus(&self.topology.cores)
                .into_iter()
                .map(|own| (self.of_core(&own), own))
                .collect(),
            Part::Llc => {
                cpus(&self.topology.llcs).into_iter().map(|own| (self.of_llc(&own), own)).collect()
            }
            Part::Node => cpus(&self.topology.nodes)
                .into_iter()
                .map(|own| (self.of_node(&own), own))
                .collect(),
            Part::Rank => self.ranks().into_iter().map(|values| (values, Vec::new())).collect(),
        };
        parts.into_iter().map(valued).collect()
    }

    /// The set of those of some CPUs for which an expression is not 0.
    pub(super) fn mask(&self, cpus: &[u16], filter: Option<&Expression>) -> MaskWords {
        let mut words = [0; MAX_CPUS / 64];
        for cpu in cpus {
            let values = || self.own.iter().copied().chain(of_cpu(self.cpu(*cpu))).collect();
            let counts = filter.is_none_or(|filter| {
                let values: Vec<i64> = values();
                filter.value(&values) != 0
            });
            words[usize::from(cpu / 64)] |= u64::from(counts) << (cpu % 64);
        }
        words
    }

    fn cpu(&self, cpu: u16) -> &Cpu {
        &self.cpus[usize::from(cpu)]
    }

    fn of_core(&self, cpus: &[u16]) -> Vec<i64> {
        let first = self.cpu(cpus[0]);
        let Place { core, llc, node, cpu, .. } = first.place;
        let kinds = [first.big, first.turbo, !first.big].map(i64::from);
        let own = [core as i64, llc as i64, node as i64, cpus.len() as i64, cpu.into()];
        own.into_iter().chain(kinds).collect()
    }

    fn of_llc(&self, cpus: &[u16]) -> Vec<i64> {
        let Place { llc, node, cpu, .. } = self.cpu(cpus[0]).place;
        vec![
            llc as i64,
            node as i64,
            cpus.len() as i64,
            self.count(cpus, |place| place.core),
            cpu.into(),
        ]
    }

    fn of_node(&self, cpus: &[u16]) -> Vec<i64> {
        let Place { node, cpu, .. } = self.cpu(cpus[0]).place;
        vec![
            node as i64,
            cpus.len() as i64,
            self.count(cpus, |place| place.core),
            self.count(cpus, |place| place.llc),
            cpu.into(),
        ]
    }

    /// How many units some CPUs are in.
    fn count(&self, cpus: &[u16], unit: impl Fn(&Place) -> usize) -> i64 {
        let units = cpus.iter().map(|cpu| unit(&self.cpu(*cpu).place));
        units.collect::<std::collections::BTreeSet<usize>>().len() as i64
    }

    fn ranks(&self) -> Vec<Vec<i64>> {
        let (fastest, slowest) = (fastest(&self.cpus), slowest(&self.cpus));
        let by_core = self.topology.cores.iter().flatten();
        let orders = fastest.into_iter().zip(slowest).zip(by_core).enumerate();
        orders
            .map(|(rank, ((fast, slow), core))| {
                vec![rank as i64, fast.into(), slow.into(), i64::from(*core)]
            })
            .collect()
    }
}

/// CPUs by capacity, the largest first; equal ones by number.
fn fastest(cpus: &[Cpu]) -> Vec<u16> {
    let mut order: Vec<&Cpu> = cpus.iter().collect();
    order.sort_by_key(|cpu| (std::cmp::Reverse(cpu.place.capacity), cpu.place.cpu));
    order.into_iter().map(|cpu| cpu.place.cpu).collect()
}

/// CPUs by capacity, the smallest first; equal ones by number.
fn slowest(cpus: &[Cpu]) -> Vec<u16> {
    let mut order: Vec<&Cpu> = cpus.iter().collect();
    order.sort_by_key(|cpu| (cpu.place.capacity, cpu.place.cpu));
    order.into_iter().map(|cpu| cpu.place.cpu).collect()
}

/// The values of the names of a CPU.
fn of_cpu(cpu: &Cpu) -> Vec<i64> {
    let Place { cpu: number, node, llc, core, llc_in_node, core_in_llc, .. } = cpu.place;
    let Place { thread_in_core, threads, sibling, capacity, .. } = cpu.place;
    let values = vec![
        number.into(),
        core as i64,
        llc as i64,
        node as i64,
        llc_in_node as i64,
        core_in_llc as i64,
        thread_in_core as i64,
        threads as i64,
        sibling.map_or(-1, i64::from),
        capacity.into(),
        cpu.big.into(),
        cpu.turbo.into(),
        (!cpu.big).into(),
    ];
    debug_assert_eq!(values.len(), OF_CPU.len());
    values
}
