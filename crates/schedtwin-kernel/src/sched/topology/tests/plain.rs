// SPDX-License-Identifier: GPL-2.0-or-later
//! A second implementation of the construction of domains, from the behaviour notes alone (10 §1 to §9), and random
//! machines on which both must agree in everything.
//!
//! It is written for the reader and not for speed: sets of CPU numbers, one list of domains per CPU, and groups that are
//! looked up by their CPUs.

use super::*;
use schedtwin_types::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

type Cpus = BTreeSet<u16>;

/// A level's name, flags, distance (0: not NUMA) and mask per CPU.
struct PlainLevel {
    name: &'static str,
    flags: u32,
    distance: u8,
    mask: Vec<Cpus>,
}

/// A domain of one CPU.
#[derive(Clone)]
struct PlainDomain {
    name: &'static str,
    span: Cpus,
    flags: u32,
    weight: usize,
    pct: u32,
    tries: u32,
    imb_numa_nr: usize,
    /// Numbers of groups in ring order.
    groups: Vec<usize>,
}

#[derive(Clone)]
struct PlainGroup {
    span: Cpus,
    flags: u32,
    mask: Cpus,
    /// The group whose capacity it has: level and first CPU of the balance mask.
    capacity: (usize, u16),
}

const THREADS_SHARE: u32 = 0x80;
const CLUSTER: u32 = 0x100;
const LLC: u32 = 0x200;
const PACKING: u32 = 0x800;
const SIBLING: u32 = 0x1000;
const OVERLAP: u32 = 0x2000;
const NUMA: u32 = 0x4000;

fn plain_levels(dt: &DeviceTree, config: &Config) -> Vec<PlainLevel> {
    let all: Vec<u16> = (0..dt.cpus.len() as u16).collect();
    let cpu = |c: u16| &dt.cpus[c as usize];
    let who = |c: u16, same: &dyn Fn(&DtCpu) -> bool| -> Cpus {
        all.iter().copied().filter(|o| *o == c || same(cpu(*o))).collect()
    };
    let threads = |c: u16| who(c, &|o| cpu(c).core.is_some() && o.core == cpu(c).core);
    let node = |c: u16| who(c, &|o| o.node == cpu(c).node);
    let packing = if dt.topology.asym_packing { PACKING } else { 0 };
    let mut levels = Vec::new();
    let mut add = |name, flags, distance, mask: &dyn Fn(u16) -> Cpus| {
        let mask = all.iter().map(|c| mask(*c)).collect();
        levels.push(PlainLevel { name, flags, distance, mask });
    };
    add("SMT", THREADS_SHARE | LLC, 0, &threads);
    let l2 = |c: u16| {
        let shared = who(c, &|o| cpu(c).l2.is_some() && o.l2 == cpu(c).l2);
        shared.union(&threads(c)).copied().collect::<Cpus>()
    };
    match dt.topology.architecture {
        Architecture::Arm64 => {
            let leaf_is_package = config.cpu_map_package == CpuMapPackage::LeafCluster;
            let leaf =
                |c: u16| who(c, &|o| (o.package, o.cluster) == (cpu(c).package, cpu(c).cluster));
            let cluster_sibling = |c: u16| {
                if leaf_is_package || cpu(c).cluster.is_none() { threads(c) } else { leaf(c) }
            };
            let core_group = |c: u16| {
                let mut group = node(c);
                let package = if leaf_is_package {
                    leaf(c)
                } else {
                    who(c, &|o| o.package == cpu(c).package)
                };
                if package.is_subset(&group) {
                    group = package;
                }
                let knows_caches = !leaf_is_package || cpu(c).cluster.is_none();
                let llc = who(c, &|o| o.llc == cpu(c).llc);
                if knows_caches && llc.is_subset(&group) {
                    group = llc;
                }
                if config.sched_cluster && group.is_subset(&cluster_sibling(c)) {
                    group = cluster_sibling(c);
                }
                group
            };
            if config.sched_cluster {
                add("CLS", CLUSTER | LLC, 0, &|c| {
                    let cluster = cluster_sibling(c);
                    if core_group(c).is_subset(&cluster) { threads(c) } else { cluster }
                });
            }
            add("MC", LLC, 0, &core_group);
            add("PKG", 0, 0, &node);
        }
        Architecture::X86 => {
            if config.sched_cluster {
                add("CLS", CLUSTER | LLC | packing, 0, &l2);
            }
            let llc = |c: u16| who(c, &|o| o.llc == cpu(c).llc && o.node == cpu(c).node);
            add("MC", LLC | packing, 0, &llc);
            let split = all.iter().any(|a| {
                all.iter()
                    .any(|b| cpu(*a).package == cpu(*b).package && cpu(*a).node != cpu(*b).node)
            });
            if !split {
                add("PKG", packing, 0, &node);
            }
        }
        Architecture::Powerpc => {
            if all.iter().any(|c| l2(*c).len() > threads(*c).len()) {
                add("CACHE", LLC | packing, 0, &l2);
            }
            if all.iter().any(|c| cpu(*c).hemisphere.is_some()) {
                add("MC", packing, 0, &|c| {
                    let named = cpu(c).hemisphere.is_some();
                    let half = who(c, &|o| o.hemisphere == cpu(c).hemisphere);
                    if named { half } else { node(c) }
                });
            }
            add("PKG", packing, 0, &node);
        }
    }
    let nodes: BTreeSet<u16> = dt.cpus.iter().map(|c| c.node).collect();
    if nodes.len() > 1 {
        let far = |a: u16, b: u16| match (a == b, dt.topology.distances.is_empty()) {
            (true, _) => 10,
            (_, true) => 20,
            _ => dt.topology.distances[a as usize][b as usize],
        };
        let mut values = BTreeSet::new();
        for a in &nodes {
            values.extend(nodes.iter().map(|b| far(*a, *b)));
        }
        add("NODE", 0, 0, &node);
        for distance in values.into_iter().filter(|d| *d > 10) {
            add("NUMA", NUMA, distance, &|c| who(c, &|o| far(cpu(c).node, o.node) <= distance));
        }
    }
    levels
}

/// Domains of every CPU, all groups, and per CPU the priority.
struct Plain {
    stacks: Vec<Vec<PlainDomain>>,
    groups: Vec<PlainGroup>,
}

fn plain(dt: &DeviceTree, config: &Config) -> Plain {
    let levels = plain_levels(dt, config);
    let all: Cpus = (0..dt.cpus.len() as u16).collect();
    let capacity = |c: u16| dt.cpus[c as usize].capacity;
    let capacities: BTreeSet<u32> = all.iter().map(|c| capacity(*c)).collect();

    // Domains (§4).
    let mut stacks: Vec<Vec<PlainDomain>> = Vec::new();
    for c in &all {
        let mut stack: Vec<PlainDomain> = Vec::new();
        for level in &levels {
            let span = level.mask[*c as usize].clone();
            let seen: BTreeSet<u32> = span.iter().map(|c| capacity(*c)).collect();
            let asym = match seen.len() {
                1 => 0,
                n if n < capacities.len() => 0x20,
                _ => 0x60,
            };
            let mut flags = 0x17 | SIBLING | level.flags | asym;
            if asym != 0
                && let Some(child) = stack.last_mut()
            {
                child.flags &= !SIBLING;
            }
            let (pct, tries) = match () {
                _ if flags & THREADS_SHARE != 0 => (110, 0),
                _ if flags & LLC != 0 => (117, 1),
                _ if flags & NUMA != 0 => (117, 2),
                _ => (117, 1),
            };
            if flags & NUMA != 0 {
                flags = (flags & !SIBLING) | 0x400 | OVERLAP;
                if level.distance > dt.topology.reclaim_distance {
                    flags &= !0x16;
                }
            }
            let weight = span.len();
            let whole = span == all;
            let (name, groups, imb_numa_nr) = (level.name, Vec::new(), 0);
            stack.push(PlainDomain { name, span, flags, weight, pct, tries, imb_numa_nr, groups });
            if whole {
                break;
            }
        }
        stacks.push(stack);
    }

    // Groups (§5). Levels below the last are built for all CPUs, so a domain's place in its stack is its level.
    let mut groups: Vec<PlainGroup> = Vec::new();
    let mut shared: BTreeMap<(usize, Cpus), usize> = BTreeMap::new();
    for c in &all {
        for at in 0..stacks[*c as usize].len() {
            let domain = stacks[*c as usize][at].clone();
            let mut covered = Cpus::new();
            let mut ring = Vec::new();
            let wrapped = domain.span.range(*c..).chain(domain.span.range(..*c));
            for i in wrapped {
                if covered.contains(i) {
                    continue;
                }
                let theirs = &stacks[*i as usize];
                let id = if domain.flags & OVERLAP == 0 {
                    let (span, flags) = match at {
                        0 => (Cpus::from([*i]), 0),
                        _ => (theirs[at - 1].span.clone(), theirs[at - 1].flags),
                    };
                    *shared.entry((at, span.clone())).or_insert_with(|| {
                        let first = *span.first().unwrap();
                        let mask = span.clone();
                        groups.push(PlainGroup { span, flags, mask, capacity: (at, first) });
                        groups.len() - 1
                    })
                } else {
                    if at >= theirs.len() {
                        continue;
                    }
                    let mut sib = at;
                    if !theirs[sib - 1].span.is_subset(&domain.span) {
                        while !theirs[sib - 1].span.is_subset(&domain.span) {
                            sib -= 1;
                        }
                        while theirs[sib - 1].span == theirs[sib].span {
                            sib -= 1;
                        }
                    }
                    let (span, flags) = (theirs[sib - 1].span.clone(), theirs[sib - 1].flags);
                    let exactly = |j: &&u16| {
                        let stack = &stacks[**j as usize];
                        sib < stack.len() && stack[sib - 1].span == span
                    };
                    let mask: Cpus = span.iter().filter(exactly).copied().collect();
                    let capacity = (sib, *mask.first().unwrap());
                    groups.push(PlainGroup { span, flags, mask, capacity });
                    groups.len() - 1
                };
                covered.extend(groups[id].span.iter().copied());
                ring.push(id);
            }
            stacks[*c as usize][at].groups = ring;
        }
    }

    // Groups that are shared have one `next` each, which every CPU sets in turn: the order in which the last CPU meets them
    // stays. It differs from the others' where CPU numbers of groups are interleaved.
    for c in &all {
        for at in 0..stacks[*c as usize].len() {
            let domain = &stacks[*c as usize][at];
            if domain.flags & OVERLAP == 0 {
                let last = *domain.span.last().unwrap();
                let mut ring = stacks[last as usize][at].groups.clone();
                let own = ring.iter().position(|g| *g == domain.groups[0]).unwrap();
                ring.rotate_left(own);
                stacks[*c as usize][at].groups = ring;
            }
        }
    }

    // Imbalance between nodes (§6).
    for stack in &mut stacks {
        let (mut imb, mut imb_span) = (0, 1);
        for at in 0..stack.len() {
            let weight = stack[at].span.len();
            let new = at > 0 && stack[at].flags & LLC == 0 && stack[at - 1].flags & LLC != 0;
            stack[at].imb_numa_nr = if new {
                let caches = weight / stack[at - 1].span.len();
                imb = if caches == 1 { weight / 8 } else { caches }.max(1);
                let numa = stack[at + 1..].iter().find(|d| d.flags & NUMA != 0);
                imb_span = numa.map_or(weight, |d| d.span.len());
                imb
            } else {
                imb * (weight / imb_span).max(1)
            };
        }
    }

    // Removal (§7).
    let needs_groups = |flags: u32| flags & !0x10;
    let degenerate = |d: &PlainDomain| {
        d.span.len() == 1
            || !(needs_groups(d.flags) != 0 && d.groups.len() >= 2) && d.flags & 0x10 == 0
    };
    for stack in &mut stacks {
        let mut at = 0;
        while at + 1 < stack.len() {
            let (sd, parent) = (&stack[at], &stack[at + 1]);
            let ignored = if parent.groups.len() == 1 { needs_groups(u32::MAX) } else { 0 };
            let says_nothing = sd.span == parent.span && parent.flags & !ignored & !sd.flags == 0;
            if degenerate(parent) || says_nothing {
                let flags = stack[at].flags;
                let parent = stack.remove(at + 1);
                if at + 1 < stack.len() {
                    groups[stack[at + 1].groups[0]].flags = flags;
                }
                stack[at].flags |= parent.flags & SIBLING;
            } else {
                at += 1;
            }
        }
        if degenerate(&stack[0]) {
            stack.remove(0);
            if let Some(lowest) = stack.first() {
                groups[lowest.groups[0]].flags = 0;
            }
        }
    }
    Plain { stacks, groups }
}

/// Everything of a domain that both have, as text.
fn told(dt: &DeviceTree, p: &Plain, c: u16) -> String {
    let mask = |cpus: &Cpus| cpus.iter().map(|c| CpuId(*c)).collect::<CpuMask>().to_string();
    let mut out = String::new();
    for d in &p.stacks[c as usize] {
        let (span, weight) = (mask(&d.span), d.weight);
        out += &format!("{} {span} {:x} {} {} {weight}", d.name, d.flags, d.pct, d.tries);
        out += &format!(" imb {}:", d.imb_numa_nr);
        for g in d.groups.iter().map(|g| &p.groups[*g]) {
            let mut cores = BTreeSet::new();
            for cpu in &g.span {
                cores.insert(dt.cpus[*cpu as usize].core.map_or((1, *cpu), |core| (0, core)));
            }
            let priority = |c: &u16| dt.cpus[*c as usize].asym_priority.unwrap_or(-i32::from(*c));
            let best = g.span.iter().map(priority).max().unwrap();
            let prefer = g.span.iter().find(|c| priority(c) == best).unwrap();
            let (span, balance) = (mask(&g.span), mask(&g.mask));
            out += &format!(" {span}/{:x}/{balance}/{}/{prefer}", g.flags, cores.len());
        }
        out += "\n";
    }
    let stack = &p.stacks[c as usize];
    let first = |d: &PlainDomain| *d.span.first().unwrap();
    let llc = stack.iter().take_while(|d| d.flags & LLC != 0).last();
    let share = stack.iter().find(|d| d.flags & CLUSTER != 0).or(llc).map_or(c, first);
    let level = |d: Option<&PlainDomain>| d.map(|d| d.span.len());
    out += &format!(
        "llc {} {} share {share} numa {:?} packing {:?} asym {:?}\n",
        llc.map_or(1, |d| d.span.len()),
        llc.map_or(c, first),
        level(stack.iter().find(|d| d.flags & NUMA != 0)),
        level(stack.iter().rev().find(|d| d.flags & PACKING != 0)),
        level(stack.iter().find(|d| d.flags & 0x40 != 0)),
    );
    out
}

/// The same of what is tested.
fn told_by(t: &Topology, c: u16) -> String {
    let mut out = String::new();
    for sd in t.domains_of(CpuId(c)) {
        let d = &t[sd];
        assert_eq!(d.max_interval, 2 * d.min_interval);
        let (pct, tries, weight) = (d.imbalance_pct, d.cache_nice_tries, d.min_interval);
        out += &format!("{} {} {:x} {pct} {tries} {weight}", d.name, d.span, d.flags);
        out += &format!(" imb {}:", d.imb_numa_nr);
        for g in t.groups_of(sd).map(|sg| &t[sg]) {
            let (flags, balance) = (g.flags, g.balance_mask);
            let (cores, prefer) = (g.cores, g.asym_prefer_cpu);
            out += &format!(" {}/{flags:x}/{balance}/{cores}/{prefer}", g.span);
        }
        out += "\n";
    }
    let i = c as usize;
    let level = |d: Option<DomainId>| d.map(|d| t[d].span_weight);
    out += &format!(
        "llc {} {} share {} numa {:?} packing {:?} asym {:?}\n",
        t.sd_llc_size[i],
        t.sd_llc_id[i],
        t.sd_share_id[i],
        level(t.sd_numa[i]),
        level(t.sd_asym_packing[i]),
        level(t.sd_asym_cpucapacity[i]),
    );
    out
}

/// Nodes with caches with clusters with cores with threads, their CPUs numbered at random.
fn random_machine(random: &mut Rng) -> DeviceTree {
    let architecture =
        random.pick(&[Architecture::Arm64, Architecture::X86, Architecture::Powerpc]);
    let most_threads = random.pick(&[1, 1, 2, 4]);
    let (clusters_known, l2_known, hemispheres, capacities) =
        (random.one_in(2), random.one_in(2), random.one_in(3), random.one_in(4));
    let nodes = random.pick(&[1, 1, 2, 3, 4, 5]);
    let nodes_of_package = random.pick(&[1, 1, 1, 2]);
    let mut cpus = Vec::new();
    let (mut core, mut cluster, mut llc, mut hemisphere) = (0, 0, 0, 0);
    for node in 0..nodes as u16 {
        for _ in 0..1 + random.below(3) {
            llc += 1;
            hemisphere += random.below(2) as u16;
            for _ in 0..1 + random.below(3) {
                cluster += 1;
                let capacity = if capacities { random.pick(&[300, 600, 1024]) } else { 1024 };
                let threads = if random.one_in(3) { 1 } else { most_threads };
                for _ in 0..1 + random.below(3) {
                    core += 1;
                    for _ in 0..threads {
                        let mut cpu = Part::of(1, capacity).llc(llc).node(node).cpu;
                        cpu.package = node / nodes_of_package;
                        cpu.core = (threads > 1 || random.one_in(2)).then_some(core);
                        cpu.cluster = clusters_known.then_some(cluster);
                        cpu.l2 = l2_known.then_some(cluster);
                        cpu.hemisphere = hemispheres.then_some(node * 16 + hemisphere);
                        cpus.push(cpu);
                    }
                }
            }
        }
    }
    for i in (1..cpus.len()).rev() {
        cpus.swap(i, random.below(i as u64 + 1) as usize);
    }
    let mut dt = DeviceTree { cpus, ..DeviceTree::of_domains(&[]) };
    dt.topology.architecture = architecture;
    dt.topology.asym_packing = random.one_in(3);
    for cpu in &mut dt.cpus {
        if random.one_in(2) {
            cpu.asym_priority = Some(random.below(4) as i32);
        }
    }
    dt.topology.reclaim_distance = random.pick(&[30, 32]);
    let values: &[u8] = random.pick(&[&[20], &[11, 12, 32], &[16, 28, 31, 33], &[20, 30, 40, 255]]);
    let both_ways = !random.one_in(4);
    // A line of nodes, each farther by ten than the last.
    let line = random.one_in(4);
    if !random.one_in(4) {
        let mut distances = vec![vec![10; nodes]; nodes];
        for (a, b) in (0..nodes * nodes).map(|pair| (pair / nodes, pair % nodes)) {
            distances[a][b] = match () {
                _ if a == b => 10,
                _ if line => 10 + 10 * a.abs_diff(b) as u8,
                _ if both_ways && b < a => distances[b][a],
                _ => random.pick(values),
            };
        }
        dt.topology.distances = distances;
    }
    dt
}

#[test]
fn random_machines_have_the_domains_of_the_notes() {
    let mut random = Rng::with_state(1);
    let (mut compared, mut refused, mut overlapping, mut threads) = (0, 0, 0, 0);
    for number in 0..1500 {
        let dt = random_machine(&mut random);
        let config = Config {
            sched_cluster: random.one_in(2),
            cpu_map_package: random.pick(&[CpuMapPackage::LeafCluster, CpuMapPackage::Socket]),
            ..Config::linux_6_12()
        };
        let Ok(topology) = Topology::try_build(&dt, &config) else {
            refused += 1;
            continue;
        };
        let plain = plain(&dt, &config);
        let mut capacities = BTreeMap::new();
        for cpu in dt.all_cpus().iter() {
            let expected = told(&dt, &plain, cpu.0);
            assert_eq!(told_by(&topology, cpu.0), expected, "machine {number}, CPU {cpu}");
            // The same groups share a capacity.
            for (sd, domain) in topology.domains_of(cpu).zip(&plain.stacks[cpu.index()]) {
                for (sg, group) in topology.groups_of(sd).zip(&domain.groups) {
                    let capacity = plain.groups[*group].capacity;
                    let sgc = topology[sg].sgc;
                    assert_eq!(*capacities.entry(capacity).or_insert(sgc), sgc);
                }
                overlapping += usize::from(domain.flags & OVERLAP != 0 && domain.groups.len() > 2);
            }
        }
        let distinct: BTreeSet<usize> = capacities.values().copied().collect();
        assert_eq!(distinct.len(), capacities.len());
        threads += usize::from(topology.smt);
        compared += 1;
    }
    assert!(compared > 1000, "{refused} machines are refused");
    assert!(overlapping > 1000 && threads > 400, "{overlapping} {threads}");
}
