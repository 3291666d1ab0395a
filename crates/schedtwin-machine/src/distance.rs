// SPDX-License-Identifier: GPL-2.0-or-later
//! `[distance]`: what it costs that CPUs are apart.
//!
//! A task that runs somewhere else than before finds its data in the caches of the CPU that it left; an interrupt of another CPU
//! takes longer the farther that is.
//!
//! ```toml
//! [distance]
//! refill_lines = 100                                  # cache lines that a task fetches after it has moved
//! line_ns = { llc = 20, node = 100, machine = 200 }   # what fetching one takes, by where it comes from
//! ipi_ns = { node = 80, machine = 180 }               # what is added to the latency of an interrupt, by where it comes from
//! overlap_permille = 600                              # share of line_ns for which a path of the kernel waits
//! ```
//!
//! The kernel's own lines move between CPUs, too. With `overlap_permille`, a path pays for each line that another CPU has
//! written last; `[distance.lines]` says how many an object has, which was counted in Linux's source.
//!
//! Where from: the least that the two CPUs share.
//!
//! | key | the other CPU is |
//! |---|---|
//! | `core` | a thread of the same core |
//! | `cluster` | in the same cluster or level 2 cache |
//! | `llc` | in the same last-level cache |
//! | `node` | in another cache of the node |
//! | `package` | in another node of the socket |
//! | `machine` | in another socket |
//!
//! A level that is left out is as the next nearer one, the nearest as 0. Numbers do not fall with distance.
//!
//! A refill is time in which the task executes without getting on. It does not scale with the frequency: as work it counts at
//! the speed that the CPU has when the task arrives.
//!
//! Differences: how much data a task has, and whether a cache still holds it when the task comes back, does not matter. Kernel
//! threads and new tasks refill nothing. Memory has no distance: the data of a task are nowhere but in caches.

use schedtwin_input::{Diagnostics, Located, TableReader};
use schedtwin_types::{CpuId, LineCounts, Ns};

use crate::Machine;
use crate::keys::{Key, Need, Table, keys, upto};

/// The largest number of lines, and the longest time of one or of an interrupt, ns.
const MAX: u64 = 100_000;

/// The largest number of lines of an object.
const MAX_COUNT: u64 = 1_000;

/// The least that two CPUs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The core.
    Core,
    /// The cluster, or the level 2 cache.
    Cluster,
    /// The last-level cache.
    Cache,
    /// The NUMA node.
    Node,
    /// The socket.
    Package,
    /// Nothing but the machine.
    Machine,
}

impl Distance {
    /// How many there are.
    pub const COUNT: usize = 6;
}

/// Costs of distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distances {
    /// The time for which a task executes without progress after a migration over each distance, ns; it never falls
    /// with the distance.
    pub refill_ns: [Ns; Distance::COUNT],
    /// The extra time of an interrupt from so far, ns; never falling.
    pub ipi_ns: [Ns; Distance::COUNT],
    /// The costs of the kernel's own lines; `None`: nothing.
    pub coherence: Option<Coherence>,
}

/// Costs of lines that the kernel's paths take from other CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coherence {
    /// Time to fetch a line from so far, ns; never falling.
    pub line_ns: [Ns; Distance::COUNT],
    /// The share of it that a path waits for each line, ‰.
    pub overlap_permille: u64,
    /// The share of it that a path waits for each line of a payload, ‰.
    pub copy_permille: u64,
    /// Lines that are fetched when a lock passes to a CPU that spins for it.
    pub handover_lines: u64,
    /// Whether the locks of run queues are waited for.
    pub rq_locks: bool,
    /// Lines of each object.
    pub lines: LineCounts,
}

impl Distances {
    /// Time of a refill.
    #[inline]
    pub fn refill(&self, distance: Distance) -> Ns {
        self.refill_ns[distance as usize]
    }

    /// Returns the extra time of an interrupt.
    #[inline]
    pub fn ipi(&self, distance: Distance) -> Ns {
        self.ipi_ns[distance as usize]
    }

    /// The name of each distance with its refill, what it adds to an interrupt, and how long a kernel path waits for a line,
    /// from near to far.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, Ns, Ns, Ns)> + '_ {
        let line = |at: usize| {
            let of = |coherence: &Coherence| coherence.line_ns[at] * coherence.overlap_permille;
            self.coherence.as_ref().map_or(0, of) / 1000
        };
        let row = move |(at, key)| (key, self.refill_ns[at], self.ipi_ns[at], line(at));
        LevelKeys::names().into_iter().enumerate().map(row)
    }
}

impl Machine {
    /// The least that two CPUs share.
    pub fn distance(&self, one: CpuId, other: CpuId) -> Distance {
        let (a, b) = (&self.cpus[one.index()], &self.cpus[other.index()]);
        let same = |a: Option<u16>, b: Option<u16>| a.is_some() && a == b;
        if a.core == b.core {
            Distance::Core
        } else if same(a.cluster, b.cluster) || same(a.l2, b.l2) {
            Distance::Cluster
        } else if a.llc == b.llc {
            Distance::Cache
        } else if a.package != b.package {
            Distance::Machine
        } else if a.node != b.node {
            Distance::Package
        } else {
            Distance::Node
        }
    }
}

keys! {
    /// costs of the distance between two CPUs
    struct DistanceKeys in "distance" {
        /// cache lines that a task fetches after a migration
        refill_lines: Located<u64> = May, upto(MAX);
        /// share of a line's time that a kernel path waits for each line that another CPU wrote last; left out, such lines cost nothing
        overlap_permille: Located<u64> = May, Whole(0, 1000);
        /// share of a line's time that it waits for each line of a payload, which is fetched ahead; 25
        copy_permille: Located<u64> = May, Whole(0, 1000);
        /// lines that are fetched one after the other when a lock passes to a CPU that spins for it; 2
        handover_lines: Located<u64> = May, Whole(0, 100);
        /// with `overlap_permille`: CPUs wait for the lock of a run queue that another one has; true
        rq_locks: bool = May, Switch;
    }
}

keys! {
    /// by the smallest group that both CPUs share
    struct LevelKeys in "distance.line_ns" {
        /// threads of the same core
        core: Located<u64> = May, upto(MAX);
        /// the same cluster or level 2 cache
        cluster: Located<u64> = May, upto(MAX);
        /// the same last-level cache
        llc: Located<u64> = May, upto(MAX);
        /// another cache of the node
        node: Located<u64> = May, upto(MAX);
        /// another node of the socket
        package: Located<u64> = May, upto(MAX);
        /// another socket
        machine: Located<u64> = May, upto(MAX);
    }
}

/// The table of lines and the two of levels, for the schema and the document.
pub(crate) fn more_tables() -> [Table; 3] {
    let keys = LineCounts::default().entries().into_iter().map(|(name, help, count)| Key {
        name,
        need: Need::May,
        kind: upto(MAX_COUNT),
        unit: None,
        help: format!("{help}; {count}"),
    });
    let lines = Table {
        path: "distance.lines",
        help: "cache lines that a kernel path fetches of each object that another CPU wrote last; counted in Linux 6.12 to 6.18",
        keys: keys.collect(),
    };
    let of = |path, help| {
        let mut table = Table { path, help, ..LevelKeys::table() };
        table.keys.iter_mut().for_each(|key| key.unit = Some("ns"));
        table
    };
    [
        lines,
        of(
            "distance.line_ns",
            "time to fetch a cache line, by the smallest group that both CPUs share; a level that is left out has the value of the nearer one",
        ),
        of(
            "distance.ipi_ns",
            "additional latency of an interrupt, by the smallest group that both CPUs share",
        ),
    ]
}

/// Reads the table.
pub(crate) fn read(mut table: TableReader<'_>, faults: &mut Diagnostics) -> Option<Distances> {
    let had = faults.0.len();
    let DistanceKeys {
        refill_lines: lines,
        overlap_permille,
        copy_permille,
        handover_lines,
        rq_locks,
    } = DistanceKeys::read(&mut table, faults);
    let overlap_at = overlap_permille.as_ref().map(|overlap| overlap.at.clone());
    let overlap_permille = at_most(1000, "overlap_permille", overlap_permille, faults).unwrap_or(0);
    let copy_permille = at_most(1000, "copy_permille", copy_permille, faults).unwrap_or(25);
    let handover_lines = at_most(100, "handover_lines", handover_lines, faults).unwrap_or(2);
    if let Some(lines) = lines.as_ref().filter(|lines| lines.value > MAX) {
        faults.push_at(&lines.at, format!("more than {MAX} lines"), None);
    }
    let line_ns = table.optional_table("line_ns", faults);
    if let (None, Some(lines)) = (&line_ns, &lines) {
        let help = "write `line_ns = { llc = 20 }`".to_string();
        faults.push_at(&lines.at, "nobody says what a line takes", Some(help));
    }
    if lines.is_none() && line_ns.is_some() {
        let help = "write `refill_lines = 100`".to_string();
        faults.push_at(&table.location_of("line_ns"), "nobody says how many lines", Some(help));
    }
    if let (None, Some(at)) = (&line_ns, &overlap_at) {
        let help = "write `line_ns = { llc = 20 }`".to_string();
        faults.push_at(at, "nobody says what a line takes", Some(help));
    }
    let line_ns = by_distance(line_ns, faults);
    let counts = table.optional_table("lines", faults);
    let counts = line_counts(counts, faults);
    let ipi = table.optional_table("ipi_ns", faults);
    let ipi_ns = by_distance(ipi, faults);
    table.finish(faults);
    let lines = lines.map_or(0, |lines| lines.value);
    (faults.0.len() == had).then(|| Distances {
        refill_ns: line_ns.map(|ns| ns * lines),
        ipi_ns,
        coherence: (overlap_permille > 0).then_some(Coherence {
            line_ns,
            overlap_permille,
            copy_permille,
            handover_lines,
            rq_locks: rq_locks.unwrap_or(true),
            lines: counts,
        }),
    })
}

/// The value of a key that is at most `most`.
fn at_most(
    most: u64,
    key: &str,
    told: Option<Located<u64>>,
    faults: &mut Diagnostics,
) -> Option<u64> {
    let told = told?;
    if told.value > most {
        faults.push_at(&told.at, format!("`{key}` is more than {most}"), None);
    }
    Some(told.value)
}

/// Reads `[distance.lines]`.
fn line_counts(table: Option<TableReader<'_>>, faults: &mut Diagnostics) -> LineCounts {
    let mut counts = LineCounts::default();
    let Some(mut table) = table else { return counts };
    for (name, ..) in LineCounts::default().entries() {
        let told = table.optional(name, faults);
        if let Some(count) = at_most(MAX_COUNT, name, told, faults) {
            *counts.by_name(name) = count;
        }
    }
    table.finish(faults);
    counts
}

fn by_distance(table: Option<TableReader<'_>>, faults: &mut Diagnostics) -> [Ns; Distance::COUNT] {
    let mut all = [0; Distance::COUNT];
    let Some(mut table) = table else { return all };
    let mut nearer = 0;
    let LevelKeys { core, cluster, llc, node, package, machine } =
        LevelKeys::read(&mut table, faults);
    let told = [core, cluster, llc, node, package, machine];
    for ((key, told), ns) in LevelKeys::names().into_iter().zip(told).zip(&mut all) {
        if let Some(told) = told {
            if told.value > MAX {
                let help = "these are nanoseconds".to_string();
                faults.push_at(&told.at, format!("`{key}` is more than {MAX}"), Some(help));
            } else if told.value < nearer {
                let message = format!("`{key}` is less than a nearer level's {nearer}");
                faults.push_at(&told.at, message, None);
            }
            nearer = told.value;
        }
        *ns = nearer;
    }
    table.finish(faults);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_input::Source;

    fn read(table: &str) -> Result<Machine, String> {
        let text = include_str!("../machines/uniform8.toml");
        let source = Source::new("distance.toml", format!("{text}\n{table}"));
        Machine::from_source(&source, &[]).map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_level_that_is_left_out_is_as_the_next_nearer_one() {
        assert_eq!(read("").unwrap().distances, None);
        let table = "[distance]\nrefill_lines = 10\nline_ns = { llc = 20, machine = 90 }\nipi_ns = { core = 1 }\n";
        let read = read(table).unwrap().distances.unwrap();
        assert_eq!(read.refill_ns, [0, 0, 200, 200, 200, 900]);
        assert_eq!(read.ipi_ns, [1; Distance::COUNT]);
        assert_eq!((read.refill(Distance::Machine), read.ipi(Distance::Cache)), (900, 1));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (table, complaint) in [
            ("refill_lines = 10", "nobody says what a line takes"),
            ("line_ns = { llc = 10 }", "nobody says how many"),
            ("refill_lines = 100001\nline_ns = { llc = 10 }", "more than 100000 lines"),
            ("ipi_ns = { llc = 10, machine = 9 }", "less than a nearer level's 10"),
            ("ipi_ns = { llc = 100001 }", "more than 100000"),
            ("ipi_ns = { l3 = 1 }", "l3"),
            ("overlap_permille = 500", "nobody says what a line takes"),
            ("overlap_permille = 1001\nline_ns = { llc = 10 }\nrefill_lines = 1", "more than 1000"),
            ("lines = { pipe = 1001 }", "`pipe` is more than 1000"),
            ("lines = { pip = 1 }", "pip"),
            ("refill_ns = 1", "refill_ns"),
        ] {
            let faults = read(&format!("[distance]\n{table}\n")).unwrap_err();
            assert!(faults.contains(complaint), "{table}: {faults}");
        }
    }

    #[test]
    fn cpus_are_as_far_apart_as_their_parts() {
        let epyc = Machine::load("epyc-milan-2x64:topology=nps4").unwrap();
        let from_0 = |cpu| epyc.distance(CpuId(0), CpuId(cpu));
        assert_eq!(
            [0, 128, 1, 8, 16, 64].map(from_0),
            [
                Distance::Core,
                Distance::Core,
                Distance::Cache,
                Distance::Node,
                Distance::Package,
                Distance::Machine
            ]
        );
        let altra = Machine::load("altra-2p160").unwrap();
        let from_0 = |cpu| altra.distance(CpuId(0), CpuId(cpu));
        assert_eq!([1, 2, 80].map(from_0), [Distance::Cache, Distance::Node, Distance::Machine]);
        let pixel = Machine::load("pixel6").unwrap();
        for (one, other) in [(0, 3), (0, 7)] {
            let (one, other) = (CpuId(one), CpuId(other));
            assert_eq!(pixel.distance(one, other), pixel.distance(other, one));
        }
    }
}
