//! The worked examples of the behaviour notes (10 §11), and machines that cannot be.

use super::*;
use crate::device_tree::{DtCpu, PathCosts};

/// Some equal CPUs of a machine.
#[derive(Clone)]
pub(crate) struct Part {
    count: usize,
    cpu: DtCpu,
}

impl Part {
    /// In package, cache and node 0, without clusters.
    pub(crate) fn of(count: usize, capacity: u32) -> Part {
        let cpu = DtCpu {
            capacity,
            policy: 0,
            idle_table: 0,
            package: 0,
            cluster: None,
            llc: 0,
            node: 0,
        };
        Part { count, cpu }
    }
    pub(crate) fn package(mut self, package: u16) -> Part {
        self.cpu.package = package;
        self
    }
    pub(crate) fn cluster(mut self, cluster: u16) -> Part {
        self.cpu.cluster = Some(cluster);
        self
    }
    pub(crate) fn llc(mut self, llc: u16) -> Part {
        self.cpu.llc = llc;
        self
    }
    pub(crate) fn node(mut self, node: u16) -> Part {
        self.cpu.node = node;
        self
    }
}

/// A machine of these CPUs, in this order.
pub(crate) fn machine(parts: &[Part]) -> DeviceTree {
    let cpus = parts.iter().flat_map(|p| std::iter::repeat_n(p.cpu.clone(), p.count)).collect();
    DeviceTree {
        cpus,
        policies: Vec::new(),
        idle_tables: Vec::new(),
        path_costs: PathCosts::default(),
        nr_threads_hint: 0,
    }
}

/// Two sockets of 80 CPUs, of which pairs share the last-level cache.
fn altra() -> Vec<Part> {
    let pair = |n| Part::of(2, 1024).package(n / 40).llc(n).node(n / 40);
    (0..80).map(pair).collect()
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

#[test]
fn worked_examples() {
    let pixel6 = |cluster: bool, package: [u16; 3], llc: [u16; 3]| {
        let part = |i: usize, count, capacity| {
            let part = Part::of(count, capacity).package(package[i]).llc(llc[i]);
            if cluster { part.cluster(i as u16) } else { part }
        };
        machine(&[part(0, 4, 124), part(1, 2, 427), part(2, 2, 1024)])
    };
    let altra = altra();
    let table: &[(&str, DeviceTree, u16, &str)] = &[
        (
            "8 equal CPUs, one LLC: one-CPU groups without flags, own group first",
            machine(&[Part::of(8, 1024)]),
            6,
            "MC 0-7 1217 pct 117 tries 1 8/16 imb 0: {6}0{7}0{0}0{1}0{2}0{3}0{4}0{5}0\n",
        ),
        (
            "Juno, little",
            machine(&[Part::of(4, 383), Part::of(2, 1024).llc(1)]),
            2,
            "MC 0-3 217 pct 117 tries 1 4/8 imb 0: {2}0{3}0{0}0{1}0\n\
             PKG 0-5 1077 pct 117 tries 1 6/12 imb 1: {0-3}217{4-5}217\n",
        ),
        (
            "Juno, big",
            machine(&[Part::of(4, 383), Part::of(2, 1024).llc(1)]),
            4,
            "MC 4-5 217 pct 117 tries 1 2/4 imb 0: {4}0{5}0\n\
             PKG 0-5 1077 pct 117 tries 1 6/12 imb 3: {4-5}217{0-3}217\n",
        ),
        (
            "Pixel 6 with a package per cluster (5.18): phantom domains",
            pixel6(false, [0, 1, 2], [0, 0, 0]),
            7,
            "MC 6-7 217 pct 117 tries 1 2/4 imb 0: {7}0{6}0\n\
             PKG 0-7 1077 pct 117 tries 1 8/16 imb 4: {6-7}217{0-3}217{4-5}217\n",
        ),
        (
            "Pixel 6 as one package without clusters (6.0)",
            pixel6(false, [0, 0, 0], [0, 0, 0]),
            0,
            "MC 0-7 1277 pct 117 tries 1 8/16 imb 0: {0}0{1}0{2}0{3}0{4}0{5}0{6}0{7}0\n",
        ),
        (
            "and with SCHED_CLUSTER",
            pixel6(true, [0, 0, 0], [0, 0, 0]),
            5,
            "CLS 4-5 317 pct 117 tries 1 2/4 imb 0: {5}0{4}0\n\
             MC 0-7 1277 pct 117 tries 1 8/16 imb 0: {4-5}317{6-7}317{0-3}317\n",
        ),
        (
            "Altra, 2 x 80, pairs share the last-level cache",
            machine(&altra),
            80,
            "MC 80-81 1217 pct 117 tries 1 2/4 imb 0: {80}0{81}0\n\
             PKG 80-159 1017 pct 117 tries 1 80/160 imb 40: 40 groups, first {80-81}1217\n\
             NUMA 0-159 6417 pct 117 tries 2 160/320 imb 40: {80-159}1017{0-79}1017\n",
        ),
        (
            "two LLCs in one package, equal capacities: PKG spreads over them",
            machine(&[Part::of(4, 1024), Part::of(4, 1024).llc(1)]),
            0,
            "MC 0-3 1217 pct 117 tries 1 4/8 imb 0: {0}0{1}0{2}0{3}0\n\
             PKG 0-7 1017 pct 117 tries 1 8/16 imb 2: {0-3}1217{4-7}1217\n",
        ),
        (
            "two nodes, one LLC each: PKG says no more than MC and goes, NUMA knows it by its flags",
            machine(&[Part::of(4, 1024), Part::of(4, 1024).package(1).llc(1).node(1)]),
            0,
            "MC 0-3 1217 pct 117 tries 1 4/8 imb 0: {0}0{1}0{2}0{3}0\n\
             NUMA 0-7 6417 pct 117 tries 2 8/16 imb 1: {0-3}1217{4-7}1017\n",
        ),
        ("one CPU", machine(&[Part::of(1, 1024)]), 0, ""),
    ];
    for (name, dt, cpu, expected) in table {
        let topology = Topology::try_build(dt).expect(name);
        assert_eq!(show(&topology, *cpu), *expected, "{name}");
    }
}

#[test]
fn shortcuts() {
    let juno = Topology::build(&machine(&[Part::of(4, 383), Part::of(2, 1024).llc(1)]));
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
    let clusters = Topology::build(&clusters);
    assert!(clusters.cluster && !clusters.asym_cpucapacity);
    assert_eq!(clusters.sd_llc_size[7], 8);
    assert_eq!((clusters.sd_share_id[7], clusters.sd_llc_id[7]), (CpuId(4), CpuId(0)));
    assert!(clusters.cpus_share_cache(CpuId(0), CpuId(7)));
    assert!(!clusters.cpus_share_resources(CpuId(0), CpuId(7)));

    let single = Topology::build(&machine(&[Part::of(1, 1024)]));
    assert_eq!((single.base[0], single.sd_llc_size[0], single.sd_llc_id[0]), (None, 1, CpuId(0)));
}

/// A partial view of the capacities is ASYM, but not FULL.
#[test]
fn asymmetry_inside_a_part_of_the_machine() {
    let dt = machine(&[Part::of(2, 300), Part::of(2, 600), Part::of(2, 1024).llc(1)]);
    let t = Topology::build(&dt);
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
        let t = Topology::build(&dt);
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
    for (dt, expected) in table {
        assert_eq!(Topology::try_build(&dt).unwrap_err(), expected);
    }
}
