//! Which CPUs share what, as the scheduler is told.
//!
//! A file may hold several topologies by name, because the same silicon can be described in several ways;
//! `topology = "cpu-map"` chooses. Each level is a list of CPU lists; what a level leaves out has none.
//!
//! ```toml
//! [topologies.cpu-map]
//! package = ["0-7"]               # sockets
//! llc     = ["0-7"]
//! core    = ["0,1"]               # hardware threads of one core, see `smt`; who is in none is a core
//! cluster = ["0-3", "4-5", "6-7"] # the leaf clusters of the device tree's cpu-map
//! ```
//!
//! What clusters mean is up to the kernel: up to 5.19 each is a package, from 6.0 on a level of its own
//! if that is compiled in (variation points `cpu_map_package` and `sched_cluster`).
//!
//! `formerly = ["mc"]` lists names that the topology had before; who uses one is told the new one.
//!
//! Checked for every topology of the file, chosen or not: the parts of a level do not overlap and
//! name only CPUs that exist; every CPU is in a package and shares a last-level cache; a cluster is
//! within one cache and one package, a cache within one package and one node.

use schedtwin_input::{Diagnostics, Located, Location, TableReader, did_you_mean};
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS};

use crate::cpu_list::CpuList;

/// The most topologies of a file.
const MAX_TOPOLOGIES: usize = 16;

/// A level of a topology: for each CPU the number of its part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    parts: Vec<CpuList>,
    /// Where the level stands, or the topology if it has none.
    at: Option<Location>,
}

/// One of the file's topologies.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    package: Level,
    llc: Level,
    cluster: Level,
    node: Level,
    core: Level,
}

impl Level {
    /// The part that `cpu` is in, numbered in the order of their lowest CPUs.
    pub(crate) fn of(&self, cpu: CpuId) -> Option<u16> {
        self.parts.iter().position(|part| part.mask.contains(cpu)).map(|at| at as u16)
    }
}

impl Topology {
    /// Package, cache, cluster and node of a CPU.
    pub(crate) fn of(&self, cpu: CpuId) -> (u16, u16, Option<u16>, u16) {
        let sure =
            |level: &Level| level.of(cpu).expect("package and cache of every CPU are checked");
        (sure(&self.package), sure(&self.llc), self.cluster.of(cpu), self.node.of(cpu).unwrap_or(0))
    }

    /// The number of a CPU's core: its lowest CPU.
    pub(crate) fn core_of(&self, cpu: CpuId) -> u16 {
        let part = self.core.parts.iter().find(|part| part.mask.contains(cpu));
        part.and_then(|part| part.mask.lowest()).unwrap_or(cpu).0
    }

    /// The first core of several hardware threads.
    pub(crate) fn first_smt_core(&self) -> Option<&CpuList> {
        self.core.parts.iter().find(|part| part.mask.weight() > 1)
    }
}

/// Reads all topologies and gives the chosen one.
pub(crate) fn read(
    tables: Vec<(Located<String>, TableReader<'_>)>,
    chosen: Option<&Located<String>>,
    cpus: &CpuMask,
    faults: &mut Diagnostics,
) -> Option<Topology> {
    let mut names = Vec::new();
    let mut found = None;
    let mut renamed = None;
    for (index, (name, mut table)) in tables.into_iter().enumerate() {
        if index == MAX_TOPOLOGIES {
            faults.push_at(&name.at, format!("more than {MAX_TOPOLOGIES} topologies"), None);
            return None;
        }
        let formerly: Vec<String> = table.optional("formerly", faults).unwrap_or_default();
        if chosen.is_some_and(|chosen| formerly.contains(&chosen.value)) {
            renamed = Some(format!("it is called `{}` now", name.value));
        }
        let topology = read_one(table, cpus, faults);
        if chosen.is_some_and(|chosen| chosen.value == name.value) {
            found = Some(topology);
        }
        names.push(name.value);
    }
    let chosen = chosen?;
    if found.is_none() {
        let near = did_you_mean(&chosen.value, names.iter().map(String::as_str));
        let help = match near {
            _ if renamed.is_some() => renamed.unwrap_or_default(),
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "the file needs a table `[topologies.NAME]`".into(),
            None => format!(
                "known: {}",
                names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        faults.push_at(&chosen.at, format!("there is no topology `{}`", chosen.value), Some(help));
    }
    found.flatten()
}

fn read_one(
    mut table: TableReader<'_>,
    cpus: &CpuMask,
    faults: &mut Diagnostics,
) -> Option<Topology> {
    let before = faults.0.len();
    let package = read_level(&mut table, "package", true, faults);
    let llc = read_level(&mut table, "llc", true, faults);
    let cluster = read_level(&mut table, "cluster", false, faults);
    let node = read_level(&mut table, "node", false, faults);
    let core = read_level(&mut table, "core", false, faults);
    table.finish(faults);
    let (package, llc, cluster, node, core) = (package?, llc?, cluster?, node?, core?);

    for (name, level, complete) in [
        ("package", &package, true),
        ("llc", &llc, true),
        ("cluster", &cluster, false),
        ("node", &node, !node.parts.is_empty()),
        ("core", &core, false),
    ] {
        check_parts(name, level, complete, cpus, faults);
    }
    for (inner_name, inner, outer_name, outer) in [
        ("core", &core, "last-level cache", &llc),
        ("cluster", &cluster, "last-level cache", &llc),
        ("cluster", &cluster, "package", &package),
        ("last-level cache", &llc, "package", &package),
        ("last-level cache", &llc, "node", &node),
    ] {
        check_within(inner_name, inner, outer_name, outer, faults);
    }
    (faults.0.len() == before).then_some(Topology { package, llc, cluster, node, core })
}

fn read_level(
    table: &mut TableReader<'_>,
    key: &str,
    required: bool,
    faults: &mut Diagnostics,
) -> Option<Level> {
    let at = Some(table.location_of(key));
    let mut parts: Vec<CpuList> = if required {
        table.required(key, faults)?
    } else {
        match table.optional(key, faults) {
            Some(parts) => parts,
            None => {
                return Some(Level { parts: Vec::new(), at });
            }
        }
    };
    if parts.len() > MAX_CPUS {
        let message = format!("`{key}` has {} parts, more than a machine has CPUs", parts.len());
        faults.push_at(&table.location_of(key), message, None);
        return None;
    }
    parts.sort_by_key(|part| part.mask.lowest());
    Some(Level { parts, at })
}

fn check_parts(
    name: &str,
    level: &Level,
    complete: bool,
    cpus: &CpuMask,
    faults: &mut Diagnostics,
) {
    let mut seen = CpuMask::EMPTY;
    for part in &level.parts {
        let twice = part.mask.and(&seen);
        if !twice.is_empty() {
            faults.push_at(
                &part.at,
                format!("CPU {twice} is in two parts of level `{name}`"),
                None,
            );
        }
        let unknown = part.mask.and_not(cpus);
        if !unknown.is_empty() && !cpus.is_empty() {
            faults.push_at(&part.at, format!("there is no CPU {unknown}"), None);
        }
        seen = seen.or(&part.mask);
    }
    let missing = cpus.and_not(&seen);
    if complete && !missing.is_empty() {
        let at = level.at.as_ref().expect("a level that was read has a place");
        faults.push_at(at, format!("level `{name}` leaves out CPU {missing}"), None);
    }
}

fn check_within(
    inner_name: &str,
    inner: &Level,
    outer_name: &str,
    outer: &Level,
    faults: &mut Diagnostics,
) {
    for part in &inner.parts {
        let touched = outer.parts.iter().filter(|o| o.mask.intersects(&part.mask)).count();
        if touched > 1 {
            let message = format!(
                "impossible topology: {inner_name} {} spans {touched} {outer_name}s",
                part.mask
            );
            faults.push_at(&part.at, message, None);
        }
    }
}
