// SPDX-License-Identifier: GPL-2.0-or-later
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
//!
//! [topologies.server]
//! like = "cpu-map"                # what this table does not say is as there
//! node = ["0-3", "4-7"]
//! distances = [[10, 21], [21, 10]]
//! ```
//!
//! | key | is |
//! |---|---|
//! | `architecture` | whose code makes levels of domains: `"arm64"` (and all that share its code; the default), `"x86"`, `"powerpc"` |
//! | `kernel_smt` | whether the kernel is told of `core`; `false`: threads slow each other down, and the kernel takes each for a core |
//! | `l2` | who shares a level 2 cache beyond a core, for x86 and powerpc |
//! | `hemisphere` | halves of a powerpc chip |
//! | `big_core` | powerpc: cores of two small ones, whose caches a kernel may take for one (variation point `powerpc_l2`) |
//! | `distances` | from node (row) to node (column), 10 to 255, nodes in the order of their lowest CPUs; 20 where left out |
//! | `sd_asym_packing` | whether some CPUs are preferred to others (x86 with ITMT, powerpc on shared processors); `false` |
//! | `asym_priority` | with it: the priority of each CPU (`arch_asym_cpu_priority()`), more is preferred; left out, lower numbers are |
//! | `reclaim_distance` | beyond it the kernel spreads no new or woken tasks; 30, on AMD's Zen 32 |
//!
//! The meaning of clusters is up to the kernel: up to 5.19 each is a package, from 6.0 on a level
//! of its own
//! if that is compiled in (variation points `cpu_map_package` and `sched_cluster`).
//!
//! `formerly = ["mc"]` lists names that the topology had before; who uses one is told the new one.
//!
//! Checked for every topology of the file, chosen or not: the parts of a level do not overlap and
//! name only CPUs that exist; every CPU is in a package and shares a last-level cache; a cluster is
//! within one cache and one package, a cache within one package and one node, a hemisphere within a package.

use schedtwin_input::{Diagnostics, Located, Location, TableReader, did_you_mean};
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS};

use crate::cpu_list::CpuList;
use crate::keys::declare::is_required;
use crate::keys::{Need, keys, list, words};

/// The most topologies of a file.
const MAX_TOPOLOGIES: usize = 16;

/// `LOCAL_DISTANCE`: from a node to itself.
const LOCAL_DISTANCE: u8 = 10;

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
    l2: Level,
    hemisphere: Level,
    big_core: Level,
    kernel: KernelTopology,
}

/// The machine's topology that the kernel is told beside each CPU's own places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTopology {
    /// The architecture whose code makes levels of domains.
    pub architecture: Architecture,
    /// Whether the kernel knows which CPUs are threads of one core.
    pub smt: bool,
    /// From the row's node to the column's, 10..=255; empty: all nodes are 20 apart.
    pub distances: Vec<Vec<u8>>,
    /// `node_reclaim_distance`, 10..=255: tasks are not spread to nodes that are farther.
    pub reclaim_distance: u8,
    /// Whether some CPUs are preferred to others (`SD_ASYM_PACKING`).
    pub asym_packing: bool,
    /// Priority of each CPU, 0..=10000, more is preferred; empty: CPUs of lower numbers are.
    pub asym_priority: Vec<u16>,
}

/// The architecture whose code makes levels of domains out of the firmware's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// arm64, and all that share its code.
    Arm64,
    /// x86.
    X86,
    /// powerpc.
    Powerpc,
}

impl KernelTopology {
    /// `RECLAIM_DISTANCE`.
    const RECLAIM_DISTANCE: u8 = 30;

    /// The highest priority.
    const ASYM_PRIORITY_MAX: u64 = 10_000;
}

impl Architecture {
    const ALL: [Architecture; 3] = [Architecture::Arm64, Architecture::X86, Architecture::Powerpc];

    /// The name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Arm64 => "arm64",
            Architecture::X86 => "x86",
            Architecture::Powerpc => "powerpc",
        }
    }
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

    /// Level 2 cache, hemisphere and big core of a CPU, where the file names them.
    pub(crate) fn l2_hemisphere_big_core(
        &self,
        cpu: CpuId,
    ) -> (Option<u16>, Option<u16>, Option<u16>) {
        (self.l2.of(cpu), self.hemisphere.of(cpu), self.big_core.of(cpu))
    }

    /// Returns the topology that the kernel is told beside.
    pub(crate) fn kernel(&self) -> &KernelTopology {
        &self.kernel
    }

    /// Whether it has several nodes or packages.
    pub(crate) fn has_distant_cpus(&self) -> bool {
        self.package.parts.len() > 1 || self.node.parts.len() > 1
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
    let mut all: Vec<(Located<String>, Option<Topology>)> = Vec::new();
    let mut renamed = None;
    let mut waiting = Vec::new();
    for (index, (name, mut table)) in tables.into_iter().enumerate() {
        if index == MAX_TOPOLOGIES {
            faults.push_at(&name.at, format!("more than {MAX_TOPOLOGIES} topologies"), None);
            return None;
        }
        let is_like = table.has("like");
        let required = |need| is_required(need) || (need == Need::Unless("like") && !is_like);
        let mut keys = TopologyKeys::read_if(&mut table, required, faults);
        let formerly = keys.formerly.take().unwrap_or_default();
        let is_old = |chosen: &&Located<String>| formerly.iter().any(|f| f.value == chosen.value);
        if chosen.as_ref().is_some_and(is_old) {
            renamed = Some(format!("it is called `{}` now", name.value));
        }
        match keys.like.take() {
            Some(like) => waiting.push((name, like, keys, table)),
            None => all.push((name, read_one(keys, table, None, cpus, faults))),
        }
    }
    let first_hand = all.len();
    for (name, like, keys, table) in waiting {
        let base = all[..first_hand].iter().find(|(name, _)| name.value == like.value);
        let topology = match base {
            Some((_, Some(base))) => {
                let base = base.clone();
                read_one(keys, table, Some(base), cpus, faults)
            }
            // Its faults are noted already.
            Some((_, None)) => None,
            None => {
                let message = format!("no topology `{}` that has no `like` itself", like.value);
                faults.push_at(&like.at, message, None);
                None
            }
        };
        all.push((name, topology));
    }
    let chosen = chosen?;
    let names: Vec<&str> = all.iter().map(|(name, _)| name.value.as_str()).collect();
    let found = names.iter().position(|name| *name == chosen.value);
    if found.is_none() {
        let near = did_you_mean(&chosen.value, names.iter().copied());
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
    all.swap_remove(found?).1
}

keys! {
    /// packages, caches and other groups of CPUs, as the kernel sees them; `schedtwin show machine FILE -k KERNEL`
    /// prints the domains that follow. Left out with a class: one package and one cache
    struct TopologyKeys in "topologies.*" {
        /// another topology, from which keys are taken that this one leaves out
        like: Located<String> = May, Text;
        /// older names of this topology
        formerly: Vec<Located<String>> = May, list(Text);
        /// sockets; every CPU is in one
        package: Located<Vec<CpuList>> = Unless("like"), list(Cpus);
        /// last-level caches; every CPU shares one
        llc: Located<Vec<CpuList>> = Unless("like"), list(Cpus);
        /// leaf clusters of a cpu-map; the kernel decides whether they become domains
        cluster: Located<Vec<CpuList>> = May, list(Cpus);
        /// hardware threads of a core; needs `[smt]`
        core: Located<Vec<CpuList>> = May, list(Cpus);
        /// NUMA nodes
        node: Located<Vec<CpuList>> = May, list(Cpus);
        /// level 2 caches of several cores (x86, powerpc)
        l2: Located<Vec<CpuList>> = May, list(Cpus);
        /// halves of a powerpc chip
        hemisphere: Located<Vec<CpuList>> = May, list(Cpus);
        /// powerpc: big cores of two small cores each; `core` lists the small ones
        big_core: Located<Vec<CpuList>> = May, list(Cpus);
        /// the architecture whose domain levels the kernel builds; arm64
        architecture: Located<String> = May, words(&["arm64", "x86", "powerpc"]);
        /// the kernel knows `core`; false: it takes each hardware thread for a core
        kernel_smt: bool = May, Switch;
        /// NUMA distances, in the order of the nodes' lowest CPUs; 20
        distances: Located<Vec<Vec<Located<u64>>>> = May, list(list(Whole(10, 255)));
        /// NUMA distance beyond which the kernel does not spread tasks; 30, on AMD's Zen 32
        reclaim_distance: Located<u64> = May, Whole(10, 255);
        /// some CPUs are preferred (ITMT); false
        sd_asym_packing: bool = May, Switch;
        /// priority of each CPU; left out, CPUs with lower numbers are preferred
        asym_priority: Located<Vec<Located<u64>>> = May, list(Whole(0, 10_000));
    }
}

fn read_one(
    keys: TopologyKeys,
    table: TableReader<'_>,
    like: Option<Topology>,
    cpus: &CpuMask,
    faults: &mut Diagnostics,
) -> Option<Topology> {
    let before = faults.0.len();
    let is_like = like.is_some();
    let like = like.as_ref();
    let place = table.location();
    let mut level = |key, told: &Parts, required: bool, of: fn(&Topology) -> &Level| {
        let Some(told) = told.clone() else {
            let none = || Level { parts: Vec::new(), at: Some(place.clone()) };
            return (!required || is_like).then(|| like.map(of).cloned().unwrap_or_else(none));
        };
        read_level(key, told, faults)
    };
    let package = level("package", &keys.package, true, |t| &t.package);
    let llc = level("llc", &keys.llc, true, |t| &t.llc);
    let cluster = level("cluster", &keys.cluster, false, |t| &t.cluster);
    let node = level("node", &keys.node, false, |t| &t.node);
    let core = level("core", &keys.core, false, |t| &t.core);
    let l2 = level("l2", &keys.l2, false, |t| &t.l2);
    let hemisphere = level("hemisphere", &keys.hemisphere, false, |t| &t.hemisphere);
    let big_core = level("big_core", &keys.big_core, false, |t| &t.big_core);
    let nodes = node.as_ref().map_or(0, |node| node.parts.len().max(1));
    let mut kernel = read_kernel(&keys, place, like.map(|t| &t.kernel), nodes, faults);
    if let Some(kernel) = &mut kernel {
        read_asym(&keys, kernel, cpus.weight() as usize, faults);
    }
    table.finish(faults);
    let (package, llc, cluster, node, core) = (package?, llc?, cluster?, node?, core?);
    let (l2, hemisphere, big_core) = (l2?, hemisphere?, big_core?);

    for (name, level, complete) in [
        ("package", &package, true),
        ("llc", &llc, true),
        ("cluster", &cluster, false),
        ("node", &node, !node.parts.is_empty()),
        ("core", &core, false),
        ("l2", &l2, false),
        ("hemisphere", &hemisphere, !hemisphere.parts.is_empty()),
        ("big_core", &big_core, !big_core.parts.is_empty()),
    ] {
        check_parts(name, level, complete, cpus, faults);
    }
    for (inner_name, inner, outer_name, outer) in [
        ("core", &core, "last-level cache", &llc),
        ("cluster", &cluster, "last-level cache", &llc),
        ("cluster", &cluster, "package", &package),
        ("last-level cache", &llc, "package", &package),
        ("last-level cache", &llc, "node", &node),
        ("core", &core, "l2", &l2),
        ("l2", &l2, "last-level cache", &llc),
        ("hemisphere", &hemisphere, "package", &package),
        ("hemisphere", &hemisphere, "node", &node),
        ("core", &core, "big_core", &big_core),
        ("last-level cache", &llc, "big_core", &big_core),
        ("big_core", &big_core, "hemisphere", &hemisphere),
        ("big_core", &big_core, "package", &package),
        ("big_core", &big_core, "node", &node),
    ] {
        check_within(inner_name, inner, outer_name, outer, faults);
    }
    let kernel = kernel?;
    let topology = Topology { package, llc, cluster, node, core, l2, hemisphere, big_core, kernel };
    (faults.0.len() == before).then_some(topology)
}

/// The parts of a level as a file has them.
type Parts = Option<Located<Vec<CpuList>>>;

fn read_kernel(
    keys: &TopologyKeys,
    place: &Location,
    like: Option<&KernelTopology>,
    nodes: usize,
    faults: &mut Diagnostics,
) -> Option<KernelTopology> {
    let before = faults.0.len();
    let mut kernel = like.cloned().unwrap_or(KernelTopology {
        architecture: Architecture::Arm64,
        smt: false,
        distances: Vec::new(),
        reclaim_distance: KernelTopology::RECLAIM_DISTANCE,
        asym_packing: false,
        asym_priority: Vec::new(),
    });
    if let Some(name) = &keys.architecture {
        match Architecture::ALL.into_iter().find(|known| known.name() == name.value) {
            Some(known) => kernel.architecture = known,
            None => {
                let help = Some("known: `arm64`, `x86`, `powerpc`".to_string());
                faults.push_at(&name.at, format!("no architecture `{}`", name.value), help);
            }
        }
    }
    kernel.smt = keys.kernel_smt.unwrap_or(kernel.smt);
    if let Some(distance) = &keys.reclaim_distance {
        match u8::try_from(distance.value) {
            Ok(value) if value >= LOCAL_DISTANCE => kernel.reclaim_distance = value,
            _ => faults.push_at(&distance.at, "`reclaim_distance` is not within 10 to 255", None),
        }
    }
    let at = keys.distances.as_ref().map_or(place, |rows| &rows.at);
    if let Some(Located { value: rows, .. }) = &keys.distances {
        kernel.distances = if has_shape(rows, nodes) {
            read_distances(rows, faults)
        } else {
            rows.iter().map(|row| vec![LOCAL_DISTANCE; row.len()]).collect()
        };
    }
    if !kernel.distances.is_empty() && nodes > 0 && !has_shape(&kernel.distances, nodes) {
        let message = format!("`distances` needs {nodes} rows of {nodes}: one for each node");
        faults.push_at(at, message, None);
    }
    (faults.0.len() == before).then_some(kernel)
}

/// Which CPUs are preferred to others.
fn read_asym(
    keys: &TopologyKeys,
    kernel: &mut KernelTopology,
    nr_cpus: usize,
    faults: &mut Diagnostics,
) {
    kernel.asym_packing = keys.sd_asym_packing.unwrap_or(kernel.asym_packing);
    let Some(Located { value: told, at }) = &keys.asym_priority else { return };
    if nr_cpus > 0 && told.len() != nr_cpus {
        let message = format!("`asym_priority` needs {nr_cpus} numbers: one for each CPU");
        faults.push_at(at, message, None);
    }
    if !kernel.asym_packing {
        let help = Some("write `sd_asym_packing = true`".to_string());
        faults.push_at(at, "priorities that nobody looks at", help);
    }
    let most = KernelTopology::ASYM_PRIORITY_MAX;
    for above in told.iter().filter(|priority| priority.value > most) {
        faults.push_at(&above.at, format!("a priority is within 0 to {most}"), None);
    }
    kernel.asym_priority = told.iter().map(|priority| priority.value.min(most) as u16).collect();
}

fn has_shape<T>(rows: &[Vec<T>], nodes: usize) -> bool {
    rows.len() == nodes && rows.iter().all(|row| row.len() == nodes)
}

fn read_distances(rows: &[Vec<Located<u64>>], faults: &mut Diagnostics) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (from, row) in rows.iter().enumerate() {
        let mut checked = Vec::new();
        for (to, distance) in row.iter().enumerate() {
            let value = u8::try_from(distance.value).unwrap_or(0);
            if value < LOCAL_DISTANCE || (value == LOCAL_DISTANCE) != (from == to) {
                let message = if from == to {
                    "a node's distance to itself is 10"
                } else {
                    "the distance between two nodes is not within 11 to 255"
                };
                faults.push_at(&distance.at, message, None);
            }
            checked.push(value);
        }
        all.push(checked);
    }
    all
}

fn read_level(
    key: &str,
    Located { value: mut parts, at }: Located<Vec<CpuList>>,
    faults: &mut Diagnostics,
) -> Option<Level> {
    if parts.len() > MAX_CPUS {
        let message = format!("`{key}` has {} parts, more than a machine has CPUs", parts.len());
        faults.push_at(&at, message, None);
        return None;
    }
    parts.sort_by_key(|part| part.mask.lowest());
    Some(Level { parts, at: Some(at) })
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

#[cfg(test)]
mod tests {
    use crate::Machine;
    use schedtwin_input::Source;

    fn read(keys: &str) -> Result<Machine, String> {
        let text = include_str!("../machines/uniform8.toml");
        let text = text.replace("llc = [\"0-7\"]\n", &format!("llc = [\"0-7\"]\n{keys}\n"));
        let source = Source::new("preferred.toml", text);
        Machine::from_source(&source, &[]).map_err(|faults| faults.to_string())
    }

    #[test]
    fn preferred_cpus() {
        let told = |keys: &str| {
            let kernel = read(keys).unwrap().kernel_topology;
            (kernel.asym_packing, kernel.asym_priority)
        };
        assert_eq!(told(""), (false, vec![]));
        assert_eq!(told("sd_asym_packing = true"), (true, vec![]));
        let eight = "asym_priority = [0, 1, 2, 3, 4, 5, 6, 10000]";
        assert_eq!(
            told(&format!("sd_asym_packing = true\n{eight}")),
            (true, vec![0, 1, 2, 3, 4, 5, 6, 10_000])
        );
        for (keys, complaint) in [
            (eight.to_string(), "priorities that nobody looks at"),
            (format!("sd_asym_packing = true\n{}", eight.replace("0, 1,", "")), "needs 8 numbers"),
            (
                format!("sd_asym_packing = true\n{}", eight.replace("10000", "10001")),
                "within 0 to 10000",
            ),
        ] {
            let faults = read(&keys).unwrap_err();
            assert!(faults.contains(complaint), "{faults}");
        }
    }
}
