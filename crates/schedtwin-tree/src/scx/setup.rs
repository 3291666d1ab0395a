// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs that a loader runs before the scheduler is attached: threads of a core, and the arena library of scx, which wants
//! to know its memory and the machine's topology.

use super::TreeExt;
use crate::symbols::Symbol;
use crate::watch::Question;
use schedtwin_kernel::policy::Kfuncs;
use schedtwin_types::{CpuId, MAX_CPUS};
use std::ffi::{c_int, c_void};

/// The program that loaders run for each pair of a core's threads.
const SIBLINGS: &str = "enable_sibling_cpu";
/// Programs of the arena library.
const ARENA: [&str; 4] =
    ["arena_init", "arena_topology_init", "arena_alloc_mask", "arena_topology_node_init"];
/// `STATIC_ALLOC_PAGES_GRANULARITY`.
const STATIC_PAGES: u64 = 8;

/// The machine as loaders see it: units within units, numbered as they come in the order of CPUs.
pub(super) struct Topology {
    pub(super) cpus: Vec<Place>,
    /// CPUs of each node, cache and core.
    nodes: Vec<Vec<u16>>,
    llcs: Vec<Vec<u16>>,
    cores: Vec<Vec<u16>>,
}

/// Where a CPU is. `..._in_...`: its number within the unit above.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) cpu: u16,
    pub(super) node: usize,
    pub(super) llc: usize,
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

    /// The most units that one of the level above has, from the machine down to a thread.
    fn most_children(&self) -> [u32; 5] {
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
    fn units(&self) -> impl Iterator<Item = (usize, Vec<u16>)> {
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

impl TreeExt {
    /// Runs the programs that the scheduler has of those.
    pub(super) fn run_programs(&mut self, scx: &mut Kfuncs, topology: &Topology) {
        let offset = |name: &str| self.code.symbols.get(name).map(Symbol::offset);
        let (siblings, arena) = (offset(SIBLINGS), ARENA.map(offset));
        if let Some(enable) = siblings
            && topology.cpus.iter().any(|place| place.threads > 1)
        {
            for place in &topology.cpus {
                for other in topology
                    .cores
                    .iter()
                    .find(|core| core.contains(&place.cpu))
                    .into_iter()
                    .flatten()
                {
                    let mut pair = [i32::from(place.cpu), i32::from(*other)];
                    self.run_program(scx, enable, &mut pair);
                }
            }
        }
        if let [Some(init), Some(topology_init), Some(alloc_mask), Some(node_init)] = arena {
            self.set_up_arena(scx, topology, [init, topology_init, alloc_mask, node_init]);
        }
    }

    fn set_up_arena(&mut self, scx: &mut Kfuncs, topology: &Topology, programs: [u64; 4]) {
        let [init, topology_init, alloc_mask, node_init] = programs;
        let task_bytes = self.code.symbols.structure("task_ctx").unwrap_or(0);
        let mut failed = self.run_program(scx, init, &mut [STATIC_PAGES, task_bytes]);
        failed |= self.run_program(scx, topology_init, &mut topology.most_children());
        for (number, cpus) in topology.units() {
            let mut mask = [0_u64; 1];
            failed |= self.run_program(scx, alloc_mask, &mut mask);
            let at = mask[0] as *mut u64;
            if failed != 0 || at.is_null() {
                break;
            }
            let mut bits = [0_u64; MAX_CPUS / 64];
            cpus.iter().for_each(|cpu| bits[usize::from(*cpu) / 64] |= 1 << (cpu % 64));
            let words = topology.cpus.len().div_ceil(64);
            self.image.ask(self.watched, || {
                // SAFETY: the image is resident; the program has allocated a bit for each CPU there.
                unsafe { std::ptr::copy_nonoverlapping(bits.as_ptr(), at, words) };
            });
            failed |= self.run_program(scx, node_init, &mut [mask[0], 0, number as u64]);
        }
        if failed != 0 {
            scx.error(format!("the arena library could not be set up ({failed})"));
        }
    }

    /// Runs a program with its arguments.
    fn run_program<T>(&mut self, scx: &mut Kfuncs, offset: u64, arguments: &mut [T]) -> c_int {
        type Run = unsafe extern "C" fn(*mut c_void) -> c_int;
        let base = self.entries.base;
        self.call(scx, Question::Init, |_| {
            // SAFETY: the image is resident; the function is the object's, and takes the arguments of its loader.
            unsafe {
                let run: Run = std::mem::transmute(base().add(offset as usize));
                run(arguments.as_mut_ptr().cast())
            }
        })
    }
}
