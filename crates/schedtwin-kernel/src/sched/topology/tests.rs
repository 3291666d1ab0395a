// SPDX-License-Identifier: GPL-2.0-or-later
//! The worked examples of the behaviour notes (10 §11), machines that cannot be, and random machines beside a second
//! implementation (`plain.rs`).

mod plain;

use super::*;
use crate::config::CpuMapPackage;
use crate::device_tree::{Architecture, DtCpu};
use crate::sched::topology::parts::{Part, machine};

impl Part {
    fn package(mut self, package: u16) -> Part {
        self.cpu.package = package;
        self
    }
    fn l2(mut self, l2: u16) -> Part {
        self.cpu.l2 = Some(l2);
        self
    }
    fn hemisphere(mut self, hemisphere: u16) -> Part {
        self.cpu.hemisphere = Some(hemisphere);
        self
    }
    fn priority(mut self, priority: i32) -> Part {
        self.cpu.asym_priority = Some(priority);
        self
    }
}

/// Two sockets of 80 CPUs, of which pairs share the last-level cache.
fn altra() -> Vec<Part> {
    let pair = |n| Part::of(2, 1024).package(n / 40).llc(n).node(n / 40);
    (0..80).map(pair).collect()
}

/// Cores of so many threads each, numbered one core after the other; `llc` and `node` of a core's number.
fn cores(
    count: u16,
    threads: usize,
    llc: impl Fn(u16) -> u16,
    node: impl Fn(u16) -> u16,
) -> Vec<Part> {
    let core = |n| Part::of(threads, 1024).core(n).llc(llc(n)).node(node(n)).package(node(n));
    (0..count).map(core).collect()
}

/// The same machine on another architecture.
fn on(architecture: Architecture, parts: &[Part]) -> DeviceTree {
    let mut dt = machine(parts);
    dt.topology.architecture = architecture;
    dt
}

/// Nodes of two CPUs and a cache each, with these distances.
fn nodes(distances: &[&[u8]]) -> DeviceTree {
    let part = |n| Part::of(2, 1024).llc(n).node(n).package(n);
    let mut dt = machine(&(0..distances.len() as u16).map(part).collect::<Vec<_>>());
    dt.topology.distances = distances.iter().map(|row| row.to_vec()).collect();
    dt
}

/// The stack of a CPU, as text: a line per domain.
fn show(topology: &Topology, cpu: u16) -> String {
    let mut out = String::new();
    for sd in topology.domains_of(CpuId(cpu)) {
        let d = &topology[sd];
        let groups: Vec<String> = topology
            .groups_of(sd)
            .map(|g| format!("{{{}}}{:x}", topology[g].span, topology[g].flags))
            .collect();
        let groups = if groups.len() > 8 {
            format!("{} groups, first {}", groups.len(), groups[0])
        } else {
            groups.join("")
        };
        out += &format!(
            "{} {} {:x} pct {} tries {} {}/{} imb {}: {groups}\n",
            d.name,
            d.span,
            d.flags,
            d.imbalance_pct,
            d.cache_nice_tries,
            d.min_interval,
            d.max_interval,
            d.imb_numa_nr,
        );
    }
    out
}

/// Four big cores of eight threads, even and odd ones a small core each; in hemispheres of two on request, and then on
/// shared processors.
fn power10(hemispheres: bool) -> DeviceTree {
    let thread = |n: u16| {
        let small_core = n / 8 * 2 + n % 2;
        let part = Part::of(1, 1024).core(small_core).l2(small_core).llc(small_core);
        if hemispheres { part.hemisphere(n / 16) } else { part }
    };
    let mut dt = on(Architecture::Powerpc, &(0..32).map(thread).collect::<Vec<_>>());
    dt.topology.asym_packing = hemispheres;
    dt
}

/// The same with firmware that names the big cores, and a kernel that takes the caches of each for one.
#[test]
fn a_big_core_may_be_the_last_level_cache() {
    let mut dt = power10(false);
    for (number, cpu) in dt.cpus.iter_mut().enumerate() {
        cpu.big_core = Some(number as u16 / 8);
    }
    assert_eq!(
        show(&Topology::build(&dt, &newer()), 0),
        show(&Topology::build(&power10(false), &newer()), 0)
    );
    let wide = Config { powerpc_l2: crate::config::PowerpcL2::BigCore, ..newer() };
    let topology = Topology::build(&dt, &wide);
    assert_eq!(
        show(&topology, 1),
        "SMT 1,3,5,7 1297 pct 110 tries 0 4/8 imb 0: {1}0{3}0{5}0{7}0\n\
         CACHE 0-7 1217 pct 117 tries 1 8/16 imb 0: {1,3,5,7}1297{0,2,4,6}1297\n\
         PKG 0-31 1017 pct 117 tries 1 32/64 imb 4: {0-7}1217{8-15}1217{16-23}1217{24-31}1217\n"
    );
    assert_eq!((topology.sd_llc_size[1], topology.sd_llc_id[31]), (8, CpuId(24)));
}

/// Two cores of two threads, and four small ones that share an L2; the higher the number, the less preferred.
fn hybrid() -> DeviceTree {
    let large = |n| Part::of(2, 1024).core(n).l2(n).priority(40 - n as i32);
    let small = |n| Part::of(1, 1024).core(n).l2(9).priority(20);
    let mut dt =
        on(Architecture::X86, &[large(0), large(1), small(2), small(3), small(4), small(5)]);
    dt.topology.asym_packing = true;
    dt
}

const JUNO_LITTLE: &str = "MC 0-3 217 pct 117 tries 1 4/8 imb 0: {2}0{3}0{0}0{1}0\n\
    PKG 0-5 1077 pct 117 tries 1 6/12 imb 1: {0-3}217{4-5}217\n";
const JUNO_BIG: &str = "MC 4-5 217 pct 117 tries 1 2/4 imb 0: {4}0{5}0\n\
    PKG 0-5 1077 pct 117 tries 1 6/12 imb 3: {4-5}217{0-3}217\n";

/// Kernels by how they read a cpu-map: up to 5.19, from 6.0 on, and that with clusters.
fn older() -> Config {
    Config { cpu_map_package: CpuMapPackage::LeafCluster, ..Config::linux_6_12() }
}

fn newer() -> Config {
    Config::linux_6_12()
}

fn with_clusters() -> Config {
    Config { sched_cluster: true, ..Config::linux_6_12() }
}

#[test]
fn worked_examples() {
    let juno = || {
        let llc = |n| Part::of(0, 0).llc(n).cluster(n).cpu;
        let part = |count, capacity, n| Part { count, cpu: DtCpu { capacity, ..llc(n) } };
        machine(&[part(4, 383, 0), part(2, 1024, 1)])
    };
    let pixel6 = || {
        let part = |i, count, capacity| Part::of(count, capacity).cluster(i);
        machine(&[part(0, 4, 124), part(1, 2, 427), part(2, 2, 1024)])
    };
    let altra = altra();
    let table: &[(&str, Config, DeviceTree, u16, &str)] = &[
        (
            "8 equal CPUs, one LLC: one-CPU groups without flags, own group first",
            newer(),
            machine(&[Part::of(8, 1024)]),
            6,
            "MC 0-7 1217 pct 117 tries 1 8/16 imb 0: {6}0{7}0{0}0{1}0{2}0{3}0{4}0{5}0\n",
        ),
        ("Juno, little", newer(), juno(), 2, JUNO_LITTLE),
        ("Juno, big", newer(), juno(), 4, JUNO_BIG),
        ("Juno, little, 5.18", older(), juno(), 2, JUNO_LITTLE),
        ("Juno, big, 5.18", older(), juno(), 4, JUNO_BIG),
        (
            "Juno with SCHED_CLUSTER: a cluster is no less than its cache",
            with_clusters(),
            juno(),
            2,
            JUNO_LITTLE,
        ),
        (
            "Pixel 6 with a package per leaf cluster (5.18): phantom domains",
            older(),
            pixel6(),
            7,
            "MC 6-7 217 pct 117 tries 1 2/4 imb 0: {7}0{6}0\n\
             PKG 0-7 1077 pct 117 tries 1 8/16 imb 4: {6-7}217{0-3}217{4-5}217\n",
        ),
        (
            "the same for the little CPUs; clusters that are packages are no clusters",
            Config { sched_cluster: true, ..older() },
            pixel6(),
            0,
            "MC 0-3 217 pct 117 tries 1 4/8 imb 0: {0}0{1}0{2}0{3}0\n\
             PKG 0-7 1077 pct 117 tries 1 8/16 imb 2: {0-3}217{4-5}217{6-7}217\n",
        ),
        (
            "Pixel 6 as one package (6.0)",
            newer(),
            pixel6(),
            0,
            "MC 0-7 1277 pct 117 tries 1 8/16 imb 0: {0}0{1}0{2}0{3}0{4}0{5}0{6}0{7}0\n",
        ),
        (
            "and with SCHED_CLUSTER",
            with_clusters(),
            pixel6(),
            5,
            "CLS 4-5 317 pct 117 tries 1 2/4 imb 0: {5}0{4}0\n\
             MC 0-7 1277 pct 117 tries 1 8/16 imb 0: {4-5}317{6-7}317{0-3}317\n",
        ),
        (
            "Altra, 2 x 80, pairs share the last-level cache",
            newer(),
            machine(&altra),
            80,
            "MC 80-81 1217 pct 117 tries 1 2/4 imb 0: {80}0{81}0\n\
             PKG 80-159 1017 pct 117 tries 1 80/160 imb 40: 40 groups, first {80-81}1217\n\
             NUMA 0-159 6417 pct 117 tries 2 160/320 imb 40: {80-159}1017{0-79}1017\n",
        ),
        (
            "two LLCs in one package, equal capacities: PKG spreads over them",
            newer(),
            machine(&[Part::of(4, 1024), Part::of(4, 1024).llc(1)]),
            0,
            "MC 0-3 1217 pct 117 tries 1 4/8 imb 0: {0}0{1}0{2}0{3}0\n\
             PKG 0-7 1017 pct 117 tries 1 8/16 imb 2: {0-3}1217{4-7}1217\n",
        ),
        (
            "two nodes, one LLC each: PKG says no more than MC and goes, NUMA knows it by its flags",
            newer(),
            machine(&[Part::of(4, 1024), Part::of(4, 1024).package(1).llc(1).node(1)]),
            0,
            "MC 0-3 1217 pct 117 tries 1 4/8 imb 0: {0}0{1}0{2}0{3}0\n\
             NUMA 0-7 6417 pct 117 tries 2 8/16 imb 1: {0-3}1217{4-7}1017\n",
        ),
        ("one CPU", newer(), machine(&[Part::of(1, 1024)]), 0, ""),
        (
            "8 cores of 2 threads, one LLC: groups of MC keep the flags of SMT",
            newer(),
            on(Architecture::X86, &cores(8, 2, |_| 0, |_| 0)),
            3,
            "SMT 2-3 1297 pct 110 tries 0 2/4 imb 0: {3}0{2}0\n\
             MC 0-15 1217 pct 117 tries 1 16/32 imb 0: {2-3}1297{4-5}1297{6-7}1297{8-9}1297\
             {10-11}1297{12-13}1297{14-15}1297{0-1}1297\n",
        ),
        (
            "two sockets of 56 cores of 2 threads, one LLC each: an eighth of a node may stay",
            newer(),
            on(Architecture::X86, &cores(112, 2, |n| n / 56, |n| n / 56)),
            0,
            "SMT 0-1 1297 pct 110 tries 0 2/4 imb 0: {0}0{1}0\n\
             MC 0-111 1217 pct 117 tries 1 112/224 imb 0: 56 groups, first {0-1}1297\n\
             NUMA 0-223 6417 pct 117 tries 2 224/448 imb 14: {0-111}1217{112-223}1017\n",
        ),
        (
            "EPYC, two sockets of 8 caches of 8 cores of 2 threads",
            newer(),
            on(Architecture::X86, &cores(128, 2, |n| n / 8, |n| n / 64)),
            16,
            "SMT 16-17 1297 pct 110 tries 0 2/4 imb 0: {16}0{17}0\n\
             MC 16-31 1217 pct 117 tries 1 16/32 imb 0: {16-17}1297{18-19}1297{20-21}1297{22-23}1297\
             {24-25}1297{26-27}1297{28-29}1297{30-31}1297\n\
             PKG 0-127 1017 pct 117 tries 1 128/256 imb 8: {16-31}1217{32-47}1217{48-63}1217\
             {64-79}1217{80-95}1217{96-111}1217{112-127}1217{0-15}1217\n\
             NUMA 0-255 6417 pct 117 tries 2 256/512 imb 8: {0-127}1017{128-255}1017\n",
        ),
        (
            "POWER10: four threads of a small core share all caches, so CACHE says nothing and is left out",
            newer(),
            power10(false),
            0,
            "SMT 0,2,4,6 1297 pct 110 tries 0 4/8 imb 0: {0}0{2}0{4}0{6}0\n\
             PKG 0-31 1017 pct 117 tries 1 32/64 imb 8: {0,2,4,6}1297{1,3,5,7}1297\
             {8,10,12,14}1297{9,11,13,15}1297{16,18,20,22}1297{17,19,21,23}1297{24,26,28,30}1297\
             {25,27,29,31}1297\n",
        ),
        (
            "POWER10 with hemispheres, on shared processors",
            newer(),
            power10(true),
            17,
            "SMT 17,19,21,23 1297 pct 110 tries 0 4/8 imb 0: {17}0{19}0{21}0{23}0\n\
             MC 16-31 1817 pct 117 tries 1 16/32 imb 4: {17,19,21,23}1297{24,26,28,30}1297\
             {25,27,29,31}1297{16,18,20,22}1297\n\
             PKG 0-31 1817 pct 117 tries 1 32/64 imb 8: {16-31}1817{0-15}1817\n",
        ),
        (
            "POWER9: pairs of cores share an L2",
            newer(),
            on(
                Architecture::Powerpc,
                &(0..4).map(|n| Part::of(4, 1024).core(n).l2(n / 2)).collect::<Vec<_>>(),
            ),
            5,
            "SMT 4-7 1297 pct 110 tries 0 4/8 imb 0: {5}0{6}0{7}0{4}0\n\
             CACHE 0-7 1217 pct 117 tries 1 8/16 imb 0: {4-7}1297{0-3}1297\n\
             PKG 0-15 1017 pct 117 tries 1 16/32 imb 2: {0-7}1217{8-15}1217\n",
        ),
        (
            "hybrid x86 with ITMT: two large cores of 2 threads, four small ones that share an L2",
            with_clusters(),
            hybrid(),
            5,
            "CLS 4-7 1b17 pct 117 tries 1 4/8 imb 0: {5}0{6}0{7}0{4}0\n\
             MC 0-7 1a17 pct 117 tries 1 8/16 imb 0: {4-7}1b17{0-1}1297{2-3}1297\n",
        ),
        (
            "a ring of four nodes: 0 and 2 are opposite",
            newer(),
            nodes(&[&[10, 20, 30, 20], &[20, 10, 20, 30], &[30, 20, 10, 20], &[20, 30, 20, 10]]),
            0,
            "MC 0-1 1217 pct 117 tries 1 2/4 imb 0: {0}0{1}0\n\
             NUMA 0-3,6-7 6417 pct 117 tries 2 6/12 imb 1: {0-1}1217{2-3}1017{6-7}1017\n\
             NUMA 0-7 6417 pct 117 tries 2 8/16 imb 1: {0-3,6-7}6417{2-7}6417\n",
        ),
        (
            "beyond the reclaim distance a wakeup stays on its node",
            newer(),
            nodes(&[&[10, 31], &[31, 10]]),
            3,
            "MC 2-3 1217 pct 117 tries 1 2/4 imb 0: {3}0{2}0\n\
             NUMA 0-3 6401 pct 117 tries 2 4/8 imb 1: {2-3}1217{0-1}1017\n",
        ),
        (
            "four nodes in a line, the first: what node 3 has at the second level reaches beyond node 0's view",
            newer(),
            nodes(&[&[10, 20, 30, 40], &[20, 10, 20, 30], &[30, 20, 10, 20], &[40, 30, 20, 10]]),
            0,
            "MC 0-1 1217 pct 117 tries 1 2/4 imb 0: {0}0{1}0\n\
             NUMA 0-3 6417 pct 117 tries 2 4/8 imb 1: {0-1}1217{2-3}1017\n\
             NUMA 0-5 6417 pct 117 tries 2 6/12 imb 1: {0-3}6417{4-5}1017\n\
             NUMA 0-7 6401 pct 117 tries 2 8/16 imb 2: {0-5}6417{2-7}6417\n",
        ),
    ];
    for (name, config, dt, cpu, expected) in table {
        let topology = Topology::try_build(dt, config).expect(name);
        assert_eq!(show(&topology, *cpu), *expected, "{name}");
    }
}

#[test]
fn shortcuts() {
    let juno = machine(&[Part::of(4, 383), Part::of(2, 1024).llc(1)]);
    let juno = Topology::build(&juno, &newer());
    assert!(juno.asym_cpucapacity && !juno.cluster);
    assert_eq!(juno.sd_llc_size, [4, 4, 4, 4, 2, 2]);
    assert_eq!(juno.sd_llc_id.iter().map(|c| c.0).collect::<Vec<_>>(), [0, 0, 0, 0, 4, 4]);
    let asym = juno.sd_asym_cpucapacity[0].expect("PKG sees both capacities");
    assert_eq!(juno[asym].name, "PKG");
    assert_eq!(juno.sd_llc_shared[1], juno.sd_llc_shared[2]);
    assert_ne!(juno.sd_llc_shared[1], juno.sd_llc_shared[4]);
    assert_eq!(juno.shared[juno.sd_llc_shared[0].unwrap()].nr_busy_cpus, 4);
    assert!(
        juno.cpus_share_cache(CpuId(0), CpuId(3)) && !juno.cpus_share_cache(CpuId(0), CpuId(4))
    );

    let clusters = machine(&[Part::of(4, 1024).cluster(0), Part::of(4, 1024).cluster(1)]);
    let clusters = Topology::build(&clusters, &with_clusters());
    assert!(clusters.cluster && !clusters.asym_cpucapacity);
    assert_eq!(clusters.sd_llc_size[7], 8);
    assert_eq!((clusters.sd_share_id[7], clusters.sd_llc_id[7]), (CpuId(4), CpuId(0)));
    assert!(clusters.cpus_share_cache(CpuId(0), CpuId(7)));
    assert!(!clusters.cpus_share_resources(CpuId(0), CpuId(7)));

    let pixel6 = machine(&[
        Part::of(4, 124).cluster(0),
        Part::of(2, 427).cluster(1),
        Part::of(2, 1024).cluster(2),
    ]);
    let phantom = Topology::build(&pixel6, &older());
    assert_eq!(phantom.sd_llc_size, [4, 4, 4, 4, 2, 2, 2, 2]);
    assert_eq!(phantom.sd_llc_id.iter().map(|c| c.0).collect::<Vec<_>>(), [0, 0, 0, 0, 4, 4, 6, 6]);
    assert!(!phantom.cluster);
    let one_package = Topology::build(&pixel6, &newer());
    assert_eq!(one_package.sd_llc_size, [8; 8]);
    assert!(!one_package.cluster, "CONFIG_SCHED_CLUSTER is off");

    let hybrid = Topology::build(&hybrid(), &with_clusters());
    assert!(hybrid.smt && hybrid.cluster && !phantom.smt);
    assert_eq!(hybrid.smt_mask[2].to_string(), "2-3");
    let packs = hybrid.sd_asym_packing[0].expect("ITMT");
    assert_eq!((hybrid[packs].name, hybrid[hybrid[packs].groups].cores), ("MC", 1));
    assert_eq!(hybrid[hybrid[packs].groups].asym_prefer_cpu, CpuId(0));
    assert_eq!((hybrid.sd_share_id[6], hybrid.sd_llc_id[6]), (CpuId(4), CpuId(0)));

    let single = Topology::build(&machine(&[Part::of(1, 1024)]), &newer());
    assert_eq!((single.base[0], single.sd_llc_size[0], single.sd_llc_id[0]), (None, 1, CpuId(0)));
}

/// A partial view of the capacities is ASYM, but not FULL.
#[test]
fn asymmetry_inside_a_part_of_the_machine() {
    let dt = machine(&[Part::of(2, 300), Part::of(2, 600), Part::of(2, 1024).llc(1)]);
    let t = Topology::build(&dt, &newer());
    let mc = t.base[0].unwrap();
    assert_eq!(t[mc].flags, 0x237);
    assert_eq!(t.sd_asym_cpucapacity[0], t[mc].parent);
    assert_eq!(t[t.base[5].unwrap()].flags, 0x217);
}

/// Groups of a domain partition its span, and rings are shared between CPUs of one span.
#[test]
fn groups_partition_their_domain() {
    let altra = altra();
    for dt in [
        machine(&altra),
        machine(&[
            Part::of(4, 124).cluster(0),
            Part::of(2, 427).cluster(1),
            Part::of(2, 1024).cluster(2),
        ]),
    ] {
        let t = Topology::build(&dt, &with_clusters());
        for cpu in dt.all_cpus().iter() {
            for sd in t.domains_of(cpu) {
                let mut seen = CpuMask::EMPTY;
                for sg in t.groups_of(sd) {
                    assert!(!seen.intersects(&t[sg].span));
                    assert_eq!(t[sg].group_weight, t[sg].span.weight());
                    seen = seen.or(&t[sg].span);
                }
                assert_eq!(seen, t[sd].span);
                assert!(t[t[sd].groups].span.contains(cpu));
                if let Some(child) = t[sd].child {
                    assert_eq!(t[t[sd].groups].span, t[child].span);
                    assert_eq!(t[child].parent, Some(sd));
                }
            }
        }
    }
}

#[test]
fn impossible_machines_are_refused() {
    let table = [
        (machine(&[]), TopologyError::NoCpu),
        (machine(&[Part::of(1, 0)]), TopologyError::Capacity { cpu: CpuId(0) }),
        (
            // A cluster that reaches over two caches: to CPU 0 it is the core group and no cluster, to
            // CPU 1 it is a cluster.
            machine(&[
                Part::of(1, 1024).cluster(0),
                Part::of(1, 1024).cluster(0).llc(1),
                Part::of(1, 1024).cluster(1).llc(1),
            ]),
            TopologyError::BrokenLevel { level: "CLS", a: CpuId(0), b: CpuId(1) },
        ),
    ];
    let table = table.into_iter().chain([
        (nodes(&[&[10, 20], &[20, 10, 30]]), TopologyError::DistanceTable { nodes: 2 }),
        (
            DeviceTree { topology: nodes(&[&[10]]).topology, ..nodes(&[&[10, 20], &[20, 10]]) },
            TopologyError::DistanceTable { nodes: 2 },
        ),
        (nodes(&[&[10, 10], &[20, 10]]), TopologyError::Distance { from: 0, to: 1, distance: 10 }),
        (nodes(&[&[10, 20], &[20, 11]]), TopologyError::Distance { from: 1, to: 1, distance: 11 }),
        (
            // Threads of a core in two caches.
            on(Architecture::X86, &[Part::of(1, 1024).core(0), Part::of(1, 1024).core(0).llc(1)]),
            TopologyError::NotNested { lower: "SMT", upper: "MC", cpu: CpuId(0) },
        ),
    ]);
    for (dt, expected) in table {
        assert_eq!(Topology::try_build(&dt, &newer()).unwrap_err(), expected);
    }
}
