// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs that a loader runs before the scheduler is attached: threads of a core, and the arena library of scx, which wants
//! to know its memory and the machine's topology.

use super::TreeExt;
use crate::symbols::{Shape, Symbol};
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

/// The argument of the program that is told siblings. Schedulers have different ones: scx_flash's begins with a level.
struct SiblingArgument {
    bytes: usize,
    cpu: Member,
    sibling: Member,
}

/// Offset and bytes of a number in an argument.
type Member = (usize, usize);

impl SiblingArgument {
    /// Of the structure that the program declares. A member without a value here would be a guess, so it is refused, but for the
    /// level: 0, threads of a core, is the only one that there is.
    fn of(declared: Option<&Shape>) -> Result<SiblingArgument, String> {
        let Some(Shape::Struct(bytes, members)) = declared else {
            return Err("takes no structure".to_string());
        };
        let number = |name: &str| -> Result<Member, String> {
            let found = members.iter().find(|(of, ..)| of == name);
            match found {
                Some((_, at, Shape::Number(size))) => Ok((*at as usize, *size as usize)),
                _ => Err(format!("has no number `{name}` in its argument")),
            }
        };
        let known = ["lvl_id", "cpu_id", "sibling_cpu_id"];
        if let Some((name, ..)) = members.iter().find(|(name, ..)| !known.contains(&&**name)) {
            return Err(format!("also takes `{name}`, which the twin does not know"));
        }
        Ok(SiblingArgument {
            bytes: *bytes as usize,
            cpu: number("cpu_id")?,
            sibling: number("sibling_cpu_id")?,
        })
    }

    fn filled(&self, cpu: u16, sibling: Option<u16>) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes];
        let sibling = sibling.map_or(-1, i64::from);
        for ((at, size), value) in [(self.cpu, i64::from(cpu)), (self.sibling, sibling)] {
            bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        bytes
    }
}

/// The first error of two results.
fn first(earlier: c_int, later: c_int) -> c_int {
    if earlier == 0 { later } else { earlier }
}

/// A result of a program, with the kernel's name if it is one of the usual errors.
fn error_name(result: c_int) -> String {
    const NAMES: [(c_int, &str); 6] = [
        (-1, "EPERM"),
        (-2, "ENOENT"),
        (-7, "E2BIG"),
        (-12, "ENOMEM"),
        (-17, "EEXIST"),
        (-22, "EINVAL"),
    ];
    let name = NAMES.iter().find(|(number, _)| *number == result);
    name.map_or_else(|| result.to_string(), |(_, name)| format!("{result} (-{name})"))
}

impl TreeExt {
    /// Runs the programs that the scheduler has of those.
    pub(super) fn run_programs(&mut self, scx: &mut Kfuncs, topology: &Topology) {
        let offset = |name: &str| self.code.symbols.get(name).map(Symbol::offset);
        let (siblings, arena) = (offset(SIBLINGS), ARENA.map(offset));
        if let Some(enable) = siblings
            && topology.cpus.iter().any(|place| place.threads > 1)
            && let Err(error) = self.enable_siblings(scx, topology, enable)
        {
            return scx.error(format!("its program `{SIBLINGS}` {error}"));
        }
        if let [Some(init), Some(topology_init), Some(alloc_mask), Some(node_init)] = arena {
            self.set_up_arena(scx, topology, [init, topology_init, alloc_mask, node_init]);
        }
    }

    /// Tells the scheduler the other thread of each CPU's core, as `Topology::sibling_cpus()` of scx has them: one each, and
    /// -1 for a CPU that has its core for itself.
    fn enable_siblings(
        &mut self,
        scx: &mut Kfuncs,
        topology: &Topology,
        program: u64,
    ) -> Result<(), String> {
        let argument = SiblingArgument::of(self.code.symbols.argument(SIBLINGS))?;
        for place in &topology.cpus {
            let mut bytes = argument.filled(place.cpu, place.sibling);
            let result = self.run_program(scx, program, &mut bytes);
            if result != 0 {
                return Err(format!("returned {} for CPU {}", error_name(result), place.cpu));
            }
        }
        Ok(())
    }

    fn set_up_arena(&mut self, scx: &mut Kfuncs, topology: &Topology, programs: [u64; 4]) {
        let [init, topology_init, alloc_mask, node_init] = programs;
        let task_bytes = self.code.symbols.structure("task_ctx").unwrap_or(0);
        let mut failed = self.run_program(scx, init, &mut [STATIC_PAGES, task_bytes]);
        failed = first(failed, self.run_program(scx, topology_init, &mut topology.most_children()));
        for (number, cpus) in topology.units() {
            let mut mask = [0_u64; 1];
            failed = first(failed, self.run_program(scx, alloc_mask, &mut mask));
            let at = mask[0] as *mut u64;
            if failed == 0 && at.is_null() {
                return scx.error("the arena library has no memory for a mask of CPUs");
            }
            if failed != 0 {
                break;
            }
            let mut bits = [0_u64; MAX_CPUS / 64];
            cpus.iter().for_each(|cpu| bits[usize::from(*cpu) / 64] |= 1 << (cpu % 64));
            let words = topology.cpus.len().div_ceil(64);
            self.image.ask(self.watched, || {
                // SAFETY: the image is resident; the program has allocated a bit for each CPU there.
                unsafe { std::ptr::copy_nonoverlapping(bits.as_ptr(), at, words) };
            });
            let mut node = [mask[0], 0, number as u64];
            failed = first(failed, self.run_program(scx, node_init, &mut node));
        }
        if failed != 0 {
            scx.error(format!(
                "the arena library could not be set up: a program of it returned {}",
                error_name(failed)
            ));
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
