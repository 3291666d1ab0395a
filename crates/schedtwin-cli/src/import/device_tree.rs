// SPDX-License-Identifier: GPL-2.0-or-later
//! Device trees: what firmware tells the kernel of CPUs.
//!
//! | of the tree | of the machine |
//! |---|---|
//! | `/cpus/cpu@N`, in their order | CPU numbers, as Linux gives them where the first one boots |
//! | `capacity-dmips-mhz` × highest MHz, the largest 1024 | capacities |
//! | `operating-points-v2`, `operating-points` | operating points |
//! | `opp-shared`, or one `clocks`, `qcom,freq-domain`, `performance-domains` | CPUs with one clock |
//! | `dynamic-power-coefficient` × MHz × V² | `em_uw` |
//! | `cpu-idle-states`; of a power domain with one CPU, `domain-idle-states` | idle states behind WFI |
//! | `domain-idle-states` of a power domain with several CPUs | idle states of a cluster |
//! | the last of `next-level-cache`, else the clusters of `cpu-map` | CPUs that share their last cache |
//!
//! Differences: the power of a cluster's logic is in no tree, so it is 0 here, and a state of a cluster saves only what its
//! CPUs' deepest state saves. It says by name in which state its CPUs have to be, so deepest states of several names have one
//! here, of both. A domain with CPUs that have WFI alone has no states. Operating points that only some chips have
//! (`opp-supported-hw`) are all taken.

use super::fdt::{self, Node};
use super::outline::{Cluster, Core, Domain, IdleState, Outline, Point, class_of};
use schedtwin_input::DEVICE_TREE;
use std::collections::BTreeMap;

/// CPUs of a tree.
const CPUS_MAX: usize = 1024;

/// The properties that name a clock, of which CPUs with the same have one.
const CLOCKS: [&str; 4] =
    ["qcom,freq-domain", "performance-domains", "mediatek,freq-domain", "clocks"];

/// A CPU as the tree has it.
struct Cpu<'t> {
    node: &'t Node,
    points: Vec<Point>,
    /// CPUs with the same have one clock.
    clock: (u8, Vec<u32>),
    capacity: u64,
}

/// The machine that a device tree describes.
pub fn outline(bytes: &[u8]) -> Result<Outline, String> {
    if !bytes.starts_with(&DEVICE_TREE) {
        let next = "give the compiled one: dtc -I dts -O dtb -o FILE.dtb FILE.dts (of a running device: /sys/firmware/fdt)";
        return Err(format!("it is no compiled device tree; {next}"));
    }
    let root = fdt::read(bytes)?;
    let nodes = cpu_nodes(&root)?;
    let mut cpus: Vec<Cpu> =
        nodes.iter().enumerate().map(|(at, node)| cpu(&root, node, at)).collect();
    if cpus.iter().any(|cpu| cpu.points.is_empty()) {
        return Err("it has no operating points of its CPUs, which firmware tells instead: describe the running device \
                    (schedtwin capture)"
            .to_owned());
    }
    let largest = cpus.iter().map(|cpu| cpu.capacity).max().unwrap_or(1).max(1);
    for cpu in &mut cpus {
        let scaled = u128::from(cpu.capacity) * 1024 / u128::from(largest);
        cpu.capacity = u64::try_from(scaled).unwrap_or(1024).max(1);
    }
    let mut missing = Vec::new();
    if cpus.iter().flat_map(|cpu| &cpu.points).any(|point| point.em_uw == 0) {
        missing.push(
            "it has no power: dynamic-power-coefficient or opp-microvolt is not there".to_owned(),
        );
    }
    if nodes.iter().any(|node| !node.has("capacity-dmips-mhz")) {
        missing.push("it has no capacity-dmips-mhz: capacities are by frequency".to_owned());
    }
    let model = root.text("model").unwrap_or_default();
    let compatible = root.text("compatible").unwrap_or_else(|| "device".to_owned());
    let description = if model.is_empty() { compatible.clone() } else { model };
    let power = power_domains(&root, &nodes);
    let mut outline = Outline {
        name: compatible.replace([',', ' ', '/'], "-"),
        description,
        cores: cores(&root, &cpus, &power),
        domains: domains(&cpus),
        caches: caches(&root, &cpus),
        clusters: Vec::new(),
        missing,
    };
    let several: Vec<Cluster> = power.into_iter().filter(|domain| domain.cpus.len() > 1).collect();
    several.iter().for_each(|domain| outline.give_one_name(&domain.cpus));
    let (known, other): (Vec<Cluster>, Vec<Cluster>) =
        several.into_iter().partition(|domain| outline.deepest_of(&domain.cpus).is_some());
    outline.clusters = known;
    if !other.is_empty() {
        outline.missing.push(format!(
            "idle states of {} power domains are left out: they have CPUs with WFI alone",
            other.len()
        ));
    }
    if !outline.clusters.is_empty() {
        outline.missing.push("it has no power of clusters: it is 0".to_owned());
    }
    Ok(outline)
}

/// The nodes of CPUs that are there.
fn cpu_nodes(root: &Node) -> Result<Vec<&Node>, String> {
    let cpus = root.child("cpus").ok_or("it has no node /cpus")?;
    let is_cpu = |node: &&Node| {
        node.text("device_type").is_some_and(|kind| kind == "cpu") || node.name.starts_with("cpu@")
    };
    let is_there = |node: &&Node| node.text("status").is_none_or(|status| status != "disabled");
    let nodes: Vec<&Node> = cpus.children.iter().filter(is_cpu).filter(is_there).collect();
    match nodes.len() {
        0 => Err("its /cpus has no CPU".to_owned()),
        1..=CPUS_MAX => Ok(nodes),
        count => Err(format!("it has {count} CPUs, and the twin has at most {CPUS_MAX}")),
    }
}

fn cpu<'t>(root: &'t Node, node: &'t Node, at: usize) -> Cpu<'t> {
    let table = node.cell("operating-points-v2").and_then(|handle| root.by_handle(handle));
    let coefficient = node.cell("dynamic-power-coefficient").unwrap_or(0);
    let mut points: Vec<Point> = match table {
        Some(table) => table.children.iter().filter_map(|opp| point(opp, coefficient)).collect(),
        None => {
            let pairs = node.cells("operating-points");
            let of = |pair: &[u32]| with_power(pair[0].into(), pair[1].into(), coefficient);
            pairs.chunks_exact(2).map(of).collect()
        }
    };
    points.retain(|point| point.khz > 0);
    points.sort_by_key(|point| point.khz);
    points.dedup_by_key(|point| point.khz);
    let shared = table.filter(|table| table.has("opp-shared"));
    let clock = match (shared, CLOCKS.iter().find(|name| node.has(name))) {
        (Some(_), _) => (0, node.cells("operating-points-v2")),
        (None, Some(name)) => (1, node.cells(name)),
        (None, None) => (2, vec![at as u32]),
    };
    let mhz = points.last().map_or(0, |point| point.khz / 1000);
    let capacity = u64::from(node.cell("capacity-dmips-mhz").unwrap_or(1024)).saturating_mul(mhz);
    Cpu { node, points, clock, capacity }
}

fn point(opp: &Node, coefficient: u32) -> Option<Point> {
    let khz = opp.number("opp-hz")? / 1000;
    let uv = opp.cell("opp-microvolt").unwrap_or(0);
    Some(with_power(khz, uv.into(), coefficient))
}

/// The kernel's arithmetic: `coefficient × MHz × V²`, µW.
fn with_power(khz: u64, uv: u64, coefficient: u32) -> Point {
    let mv = u128::from(uv / 1000);
    let uw = u128::from(coefficient) * u128::from(khz / 1000);
    let em_uw = uw.saturating_mul(mv * mv) / 1_000_000;
    Point { khz, uv, em_uw: u64::try_from(em_uw).unwrap_or(0) }
}

/// CPUs with one clock, in the order of their lowest.
fn domains(cpus: &[Cpu]) -> Vec<Domain> {
    let mut domains: Vec<(&(u8, Vec<u32>), Domain)> = Vec::new();
    for (at, cpu) in cpus.iter().enumerate() {
        match domains.iter_mut().find(|(clock, _)| *clock == &cpu.clock) {
            Some((_, domain)) => domain.cpus.push(at as u16),
            None => {
                let domain = Domain { cpus: vec![at as u16], points: cpu.points.clone() };
                domains.push((&cpu.clock, domain));
            }
        }
    }
    domains.into_iter().map(|(_, domain)| domain).collect()
}

/// CPUs with one capacity and the same idle states.
fn cores(root: &Node, cpus: &[Cpu], power: &[Cluster]) -> Vec<Core> {
    let is_symmetric = cpus.iter().all(|cpu| cpu.capacity == cpus[0].capacity);
    let mut cores: Vec<Core> = Vec::new();
    for (at, cpu) in cpus.iter().enumerate() {
        let mut idle = idle_states(root, &cpu.node.cells("cpu-idle-states"));
        let own = power.iter().filter(|domain| domain.cpus == [at as u16]);
        idle.extend(own.flat_map(|domain| domain.states.clone()));
        match cores.iter_mut().find(|core| core.capacity == cpu.capacity && core.idle == idle) {
            Some(core) => core.cpus.push(at as u16),
            None => {
                let class = match is_symmetric {
                    true => class_of_name(&cpu.node.text("compatible").unwrap_or_default()),
                    false => class_of(cpu.capacity),
                };
                cores.push(Core { cpus: vec![at as u16], capacity: cpu.capacity, class, idle });
            }
        }
    }
    cores
}

/// The class of a core by its name, where all are equal.
fn class_of_name(compatible: &str) -> &'static str {
    let is = |names: &[&str]| names.iter().any(|name| compatible.ends_with(name));
    if is(&["cortex-a7", "cortex-a35", "cortex-a53", "cortex-a55", "cortex-a510", "cortex-a520"]) {
        "little"
    } else if compatible.contains("cortex-a7") || compatible.contains("cortex-a57") {
        "mid"
    } else {
        "big"
    }
}

/// Power domains that have idle states, each with the CPUs in it and in the domains below, the smallest first. Domains of the
/// same CPUs are one.
fn power_domains(root: &Node, cpus: &[&Node]) -> Vec<Cluster> {
    /// Domains around a CPU.
    const LEVELS_MAX: usize = 8;
    let mut domains: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
    for (at, cpu) in cpus.iter().enumerate() {
        let mut next = cpu.cell("power-domains");
        for _ in 0..LEVELS_MAX {
            let Some(handle) = next else { break };
            let members = domains.entry(handle).or_default();
            if members.last() != Some(&(at as u16)) {
                members.push(at as u16);
            }
            next = root.by_handle(handle).and_then(|domain| domain.cell("power-domains"));
        }
    }
    let mut with_states: Vec<Cluster> = Vec::new();
    for (handle, cpus) in domains {
        let states = root.by_handle(handle).map(|domain| domain.cells("domain-idle-states"));
        let states = idle_states(root, &states.unwrap_or_default());
        match with_states.iter_mut().find(|other| other.cpus == cpus) {
            _ if states.is_empty() => {}
            Some(other) => other.states.extend(states),
            None => with_states.push(Cluster { cpus, states }),
        }
    }
    with_states.iter_mut().for_each(|domain| domain.states.sort_by_key(|s| s.residency_us));
    with_states.sort_by_key(|domain| (domain.cpus.len(), domain.cpus.clone()));
    with_states
}

/// The idle states of these handles.
fn idle_states(root: &Node, handles: &[u32]) -> Vec<IdleState> {
    let states = handles.iter().filter_map(|handle| root.by_handle(*handle));
    let state = |node: &Node| {
        let us = |name| node.cell(name).map(u64::from);
        let exit_us = us("exit-latency-us")?;
        Some(IdleState {
            name: node.text("idle-state-name").unwrap_or_else(|| node.name.clone()),
            entry_us: us("entry-latency-us").unwrap_or(0),
            exit_us,
            residency_us: us("min-residency-us")?,
            local_timer_stops: node.has("local-timer-stop"),
        })
    };
    states.filter_map(state).collect()
}

/// CPUs by their last cache, or by their cluster.
fn caches(root: &Node, cpus: &[Cpu]) -> Vec<Vec<u16>> {
    /// Levels of caches.
    const LEVELS_MAX: usize = 8;
    let last = |cpu: &Cpu| {
        let mut handle = cpu.node.cell("next-level-cache")?;
        for _ in 0..LEVELS_MAX {
            match root.by_handle(handle).and_then(|cache| cache.cell("next-level-cache")) {
                Some(next) => handle = next,
                None => break,
            }
        }
        Some(handle)
    };
    let by_cache: Option<Vec<u32>> = cpus.iter().map(last).collect();
    let keys = by_cache.or_else(|| by_cluster(root, cpus)).unwrap_or_default();
    let mut groups: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
    for (at, key) in keys.into_iter().enumerate() {
        groups.entry(key).or_default().push(at as u16);
    }
    let mut groups: Vec<Vec<u16>> = groups.into_values().collect();
    groups.sort();
    groups
}

/// The number of each CPU's cluster in `cpu-map`.
fn by_cluster(root: &Node, cpus: &[Cpu]) -> Option<Vec<u32>> {
    let map = root.child("cpus")?.child("cpu-map")?;
    let clusters: Vec<Vec<u32>> = map.children.iter().map(cpus_of).collect();
    let cluster = |cpu: &Cpu| {
        let handle = cpu.node.cell("phandle")?;
        clusters.iter().position(|cpus| cpus.contains(&handle)).map(|at| at as u32)
    };
    cpus.iter().map(cluster).collect()
}

/// The handles of all CPUs within a cluster: clusters may lie in clusters.
fn cpus_of(cluster: &Node) -> Vec<u32> {
    let own = cluster.cell("cpu").into_iter();
    own.chain(cluster.children.iter().flat_map(cpus_of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_input::Source;
    use schedtwin_machine::Machine;

    /// Writes a flattened tree.
    #[derive(Default)]
    struct Writer {
        structure: Vec<u8>,
        strings: Vec<u8>,
    }

    impl Writer {
        fn word(&mut self, word: usize) {
            self.structure.extend((word as u32).to_be_bytes());
        }

        fn node(&mut self, name: &str, within: impl FnOnce(&mut Writer)) {
            self.word(1);
            self.structure.extend(name.as_bytes());
            self.structure.push(0);
            self.pad();
            within(self);
            self.word(2);
        }

        fn set(&mut self, name: &str, data: &[u8]) {
            self.word(3);
            self.word(data.len());
            self.word(self.strings.len());
            self.strings.extend(name.as_bytes());
            self.strings.push(0);
            self.structure.extend(data);
            self.pad();
        }

        fn cells(&mut self, name: &str, cells: &[u32]) {
            let data: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
            self.set(name, &data);
        }

        fn pad(&mut self) {
            self.structure.resize(self.structure.len().next_multiple_of(4), 0);
        }

        fn finish(mut self) -> Vec<u8> {
            self.word(9);
            let mut file = DEVICE_TREE.to_vec();
            let strings = 40 + self.structure.len();
            for word in [strings + self.strings.len(), 40, strings, 0, 17, 16, 0, 0, 0] {
                file.extend((word as u32).to_be_bytes());
            }
            [file, self.structure, self.strings].concat()
        }
    }

    /// Two little CPUs with one clock and a big one; the clusters of `cpu-map` are their caches.
    fn tree(coefficient: u32) -> Vec<u8> {
        let mut tree = Writer::default();
        tree.node("", |root| {
            root.set("compatible", b"maker,board\0");
            root.node("cpus", |cpus| {
                cpus.node("cpu-map", |map| {
                    for (name, handles) in [("cluster0", &[1_u32, 2][..]), ("cluster1", &[3])] {
                        map.node(name, |cluster| {
                            for handle in handles {
                                cluster.node("core", |core| core.cells("cpu", &[*handle]));
                            }
                        });
                    }
                });
                for (handle, dmips, table) in [(1, 400, 10), (2, 400, 10), (3, 1024, 11)] {
                    cpus.node(&format!("cpu@{handle}"), |cpu| {
                        cpu.set("device_type", b"cpu\0");
                        cpu.cells("phandle", &[handle]);
                        cpu.cells("capacity-dmips-mhz", &[dmips]);
                        cpu.cells("dynamic-power-coefficient", &[coefficient]);
                        cpu.cells("operating-points-v2", &[table]);
                        cpu.cells("cpu-idle-states", &[20]);
                    });
                }
                cpus.node("idle-states", |states| {
                    states.node("cpu-sleep", |state| {
                        state.cells("phandle", &[20]);
                        state.cells("entry-latency-us", &[300]);
                        state.cells("exit-latency-us", &[1200]);
                        state.cells("min-residency-us", &[2000]);
                        state.set("local-timer-stop", &[]);
                    })
                });
            });
            for (handle, hz) in
                [(10, [500_000_000, 1_000_000_000]), (11, [600_000_000, 2_000_000_000])]
            {
                root.node(&format!("opp-table-{handle}"), |table| {
                    table.cells("phandle", &[handle]);
                    table.set("opp-shared", &[]);
                    for hz in hz {
                        table.node(&format!("opp-{hz}"), |opp| {
                            opp.cells("opp-hz", &[0, hz]);
                            opp.cells("opp-microvolt", &[900_000, 850_000, 1_000_000]);
                        });
                    }
                });
            }
        });
        tree.finish()
    }

    #[test]
    fn a_tree_becomes_a_machine() {
        let described = outline(&tree(100)).unwrap();
        let text = described.text("board.dtb");
        let machine = Machine::from_source(&Source::new("m", text.clone()), &[]);
        let machine = machine.unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        let capacities: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
        assert_eq!((described.name.as_str(), capacities), ("maker-board", vec![200, 200, 1024]));
        let domains: Vec<usize> = machine.domains.iter().map(|domain| domain.cpus.len()).collect();
        assert_eq!(domains, [2, 1]);
        // 100 x 1000 MHz x 0.81 V².
        assert_eq!(machine.domains.iter().next().unwrap().opps[1].em_power_uw, 81_000);
        let states: Vec<usize> = machine.core_types.iter().map(|c| c.idle_states.len()).collect();
        assert_eq!(states, [2, 2]);
        assert_eq!(described.caches, [vec![0, 1], vec![2]]);
        let without_power = outline(&tree(0)).unwrap();
        assert!(without_power.missing[0].contains("no power"));
        let text = without_power.text("board.dtb");
        Machine::from_source(&Source::new("m", text.clone()), &[])
            .unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    }

    /// Two CPUs, each in a power domain of its own, both in that of a cluster, as PSCI's firmware describes them.
    fn tree_of_domains(deepest: [u32; 2]) -> Vec<u8> {
        let mut tree = Writer::default();
        let state = |states: &mut Writer, name: &str, handle: u32, residency: u32| {
            states.node(name, |state| {
                state.cells("phandle", &[handle]);
                state.cells("entry-latency-us", &[100]);
                state.cells("exit-latency-us", &[300]);
                state.cells("min-residency-us", &[residency]);
            });
        };
        tree.node("", |root| {
            root.set("compatible", b"maker,board\0");
            root.node("cpus", |cpus| {
                for handle in [1, 2] {
                    cpus.node(&format!("cpu@{handle}"), |cpu| {
                        cpu.set("device_type", b"cpu\0");
                        cpu.cells("phandle", &[handle]);
                        cpu.cells("operating-points", &[1_000_000, 900_000]);
                        cpu.cells("power-domains", &[30 + handle]);
                    });
                }
                cpus.node("idle-states", |states| {
                    state(states, "cpu-off", 20, 2000);
                    state(states, "rail-off", 23, 2500);
                });
                cpus.node("domain-idle-states", |states| {
                    state(states, "cluster-ret", 21, 3000);
                    state(states, "cluster-off", 22, 9000);
                });
            });
            root.node("psci", |psci| {
                for (handle, deepest) in [1, 2].into_iter().zip(deepest) {
                    psci.node(&format!("power-domain-cpu{handle}"), |domain| {
                        domain.cells("phandle", &[30 + handle]);
                        domain.cells("power-domains", &[40]);
                        domain.cells("domain-idle-states", &[deepest]);
                    });
                }
                psci.node("power-domain-cluster", |domain| {
                    domain.cells("phandle", &[40]);
                    domain.cells("domain-idle-states", &[22, 21]);
                });
            });
        });
        tree.finish()
    }

    /// The outline of a tree, its text, and the machine of that.
    fn described(tree: &[u8]) -> (Outline, String, Machine) {
        let outline = outline(tree).unwrap();
        let text = outline.text("board.dtb");
        let machine = Machine::from_source(&Source::new("m", text.clone()), &[]);
        let machine = machine.unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        (outline, text, machine)
    }

    #[test]
    fn power_domains_are_idle_states_of_cpus_and_clusters() {
        let (described, _, machine) = described(&tree_of_domains([20, 20]));
        let names = |states: &[IdleState]| -> Vec<String> {
            states.iter().map(|state| state.name.clone()).collect()
        };
        assert_eq!(names(&described.cores[0].idle), ["cpu-off"]);
        let domain = machine.power_domains.iter().next().unwrap();
        assert_eq!((machine.power_domains.len(), domain.cpus.len()), (1, 2));
        let states: Vec<(&str, u64, u64)> = domain
            .states
            .iter()
            .map(|s| (s.name.as_str(), s.residency_ns, s.exit_latency_ns))
            .collect();
        assert_eq!(
            states,
            [("cluster-ret", 3_000_000, 300_000), ("cluster-off", 9_000_000, 300_000)]
        );
        assert!(described.missing.iter().any(|what| what.contains("no power of clusters")));
    }

    /// CPUs of two kinds in one cluster: it sleeps when each is in its deepest state, whatever that is called.
    #[test]
    fn a_cluster_of_cpus_with_different_states_has_its_own() {
        let (_, text, machine) = described(&tree_of_domains([20, 23]));
        assert_eq!(machine.core_types.len(), 2);
        let domain = machine.power_domains.iter().next().unwrap();
        assert_eq!((domain.cpus.len(), domain.states.len()), (2, 2));
        assert_eq!(domain.states[0].cpus_in, [1, 1], "behind WFI");
        assert!(text.contains("cpus_in = \"cpu-off/rail-off\""), "{text}");
    }

    #[test]
    fn what_is_no_tree_or_damaged_is_refused() {
        assert!(outline(b"/dts-v1/;").unwrap_err().contains("dtc -I dts -O dtb"));
        let whole = tree(100);
        for at in 0..whole.len() {
            let _ = outline(&whole[..at]);
            for byte in [0, 0x7f, 0xff] {
                let mut lying = whole.clone();
                lying[at] = byte;
                if let Ok(outline) = outline(&lying) {
                    let _ = outline.text("x");
                }
            }
        }
    }
}
