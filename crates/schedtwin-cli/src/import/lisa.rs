// SPDX-License-Identifier: GPL-2.0-or-later
//! LISA's `plat_info.yml`: a target as LISA's notebooks describe it.
//!
//! ```yaml
//! platform-info:
//!   conf:
//!     name: juno
//!     cpu-capacities: { orig: { 0: 446, 1: 1024 } }
//!     freq-domains: [[0], [1]]
//!     freqs: { 0: [450000, 850000], 1: [450000, 1100000] }
//!     nrg-model: { cpu_nodes: [{ cpu: 0, active_states: [{ 450000: [236.1, 42] }] }] }
//! ```
//!
//! Frequencies are kHz, powers those of the energy model, mW. Anchors are not followed: every node stands once in full. Python's
//! tags are passed over; nothing is executed.

use super::outline::{Core, Domain, Outline, Point, class_of};
use saphyr_parser::{Event, Parser};
use std::collections::BTreeMap;

/// Nodes of a document, and how deep they lie.
const NODES_MAX: usize = 1 << 18;
const DEPTH_MAX: usize = 64;

/// A node.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Node::Map(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    fn items(&self) -> &[Node] {
        if let Node::List(items) = self { items } else { &[] }
    }

    fn pairs(&self) -> &[(String, Node)] {
        if let Node::Map(pairs) = self { pairs } else { &[] }
    }

    fn number(&self) -> Option<f64> {
        if let Node::Text(text) = self { text.parse().ok() } else { None }
    }
}

/// Reads a document into nodes.
fn nodes(text: &str) -> Result<Node, String> {
    // Open lists and maps; of a map the key that waits for its value.
    let mut open: Vec<(Node, Option<String>)> = Vec::new();
    let mut root = None;
    for (count, event) in Parser::new_from_str(text).enumerate() {
        let (event, span) = event.map_err(|error| format!("it is no YAML: {error}"))?;
        if count > NODES_MAX || open.len() > DEPTH_MAX {
            return Err(format!("line {}: it is larger than any plat_info", span.start.line()));
        }
        let done = match event {
            Event::MappingStart(..) => {
                open.push((Node::Map(Vec::new()), None));
                continue;
            }
            Event::SequenceStart(..) => {
                open.push((Node::List(Vec::new()), None));
                continue;
            }
            Event::Scalar(text, ..) => Node::Text(text.into_owned()),
            Event::Alias(_) => Node::Text(String::new()),
            Event::MappingEnd | Event::SequenceEnd => match open.pop() {
                Some((node, _)) => node,
                None => continue,
            },
            _ => continue,
        };
        match open.last_mut() {
            None => root = root.or(Some(done)),
            Some((Node::List(items), _)) => items.push(done),
            Some((Node::Map(pairs), key)) => match (key.take(), done) {
                (Some(key), value) => pairs.push((key, value)),
                (None, Node::Text(text)) => *key = Some(text),
                // A key that is no text is no key of ours.
                (None, _) => *key = Some(String::new()),
            },
            Some((Node::Text(_), _)) => {}
        }
    }
    root.ok_or_else(|| "it is empty".to_owned())
}

/// The machine that a `plat_info.yml` describes.
pub fn outline(bytes: &[u8]) -> Result<Outline, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
    let root = nodes(text)?;
    let root = root.get("platform-info").unwrap_or(&root);
    let conf = root.get("conf").unwrap_or(root);
    let lacks = |what: &str| format!("it is no plat_info of LISA: it has no `{what}` in `conf`");
    let capacities = conf.get("cpu-capacities").ok_or_else(|| lacks("cpu-capacities"))?;
    let capacities = numbers(capacities.get("orig").unwrap_or(capacities));
    let freqs = conf.get("freqs").ok_or_else(|| lacks("freqs"))?;
    let freqs: BTreeMap<u16, Vec<u64>> = freqs
        .pairs()
        .iter()
        .filter_map(|(cpu, list)| {
            let khz = list.items().iter().filter_map(Node::number).map(|khz| khz as u64);
            Some((cpu.parse().ok()?, khz.collect()))
        })
        .collect();
    if capacities.is_empty() || freqs.is_empty() {
        return Err("its `cpu-capacities` and `freqs` name no CPU".to_owned());
    }
    let mut powers = BTreeMap::new();
    conf.pairs().iter().for_each(|(_, node)| collect_powers(node, &mut powers));
    let named = conf.get("freq-domains").map_or(&[][..], Node::items);
    let domains: Vec<Vec<u16>> = named
        .iter()
        .map(|cpus| cpus.items().iter().filter_map(Node::number).map(|cpu| cpu as u16).collect())
        .collect();
    let name = conf.get("name").and_then(|name| match name {
        Node::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    });
    let name = name.unwrap_or_else(|| "lisa-target".to_owned());
    let mut missing =
        vec!["idle states, caches and latencies are not in it: they are estimates".to_owned()];
    let domains = domains_of(&domains, &freqs, &powers)?;
    if domains.iter().flat_map(|domain| &domain.points).any(|point| point.em_uw == 0) {
        missing.push("powers of operating points are not in it".to_owned());
    }
    let description = format!("{name}, as LISA's plat_info describes it");
    Ok(Outline {
        name,
        description,
        cores: cores(&capacities),
        domains,
        caches: Vec::new(),
        clusters: Vec::new(),
        missing,
    })
}

/// Numbers by CPU.
fn numbers(node: &Node) -> BTreeMap<u16, u64> {
    let pair = |(cpu, value): &(String, Node)| Some((cpu.parse().ok()?, value.number()? as u64));
    node.pairs().iter().filter_map(pair).collect()
}

/// CPUs of one capacity are one kind of core.
fn cores(capacities: &BTreeMap<u16, u64>) -> Vec<Core> {
    let mut by_capacity: BTreeMap<u64, Vec<u16>> = BTreeMap::new();
    for (cpu, capacity) in capacities {
        by_capacity.entry((*capacity).clamp(1, 1024)).or_default().push(*cpu);
    }
    let core =
        |(capacity, cpus)| Core { cpus, capacity, class: class_of(capacity), idle: Vec::new() };
    by_capacity.into_iter().map(core).collect()
}

/// The domains as they are named, or CPUs with the same frequencies as one.
fn domains_of(
    named: &[Vec<u16>],
    freqs: &BTreeMap<u16, Vec<u64>>,
    powers: &BTreeMap<u16, BTreeMap<u64, u64>>,
) -> Result<Vec<Domain>, String> {
    let mut domains: Vec<Vec<u16>> =
        named.iter().filter(|cpus| !cpus.is_empty()).cloned().collect();
    if domains.is_empty() {
        let mut by_table: BTreeMap<&Vec<u64>, Vec<u16>> = BTreeMap::new();
        freqs.iter().for_each(|(cpu, khz)| by_table.entry(khz).or_default().push(*cpu));
        domains = by_table.into_values().collect();
        domains.sort();
    }
    let domain = |mut cpus: Vec<u16>| {
        cpus.sort_unstable();
        let khz = cpus.iter().find_map(|cpu| freqs.get(cpu));
        let mut khz = khz.cloned().ok_or_else(|| format!("its `freqs` lack CPU {}", cpus[0]))?;
        khz.sort_unstable();
        khz.dedup();
        let power = cpus.iter().find_map(|cpu| powers.get(cpu));
        let points = khz.iter().map(|khz| {
            let em_uw = power.and_then(|table| table.get(khz)).copied().unwrap_or(0);
            Point { khz: *khz, uv: 0, em_uw }
        });
        Ok(Domain { points: points.collect(), cpus })
    };
    domains.into_iter().map(domain).collect()
}

/// The powers of the energy model: every node with a CPU and its active states, µW by kHz.
fn collect_powers(node: &Node, powers: &mut BTreeMap<u16, BTreeMap<u64, u64>>) {
    if let (Some(cpu), Some(states)) =
        (node.get("cpu").and_then(Node::number), node.get("active_states"))
    {
        let state = |(khz, of): &(String, Node)| {
            let mw = of.items().get(1).or(of.get("power")).and_then(Node::number)?;
            Some((khz.parse().ok()?, (mw * 1000.0) as u64))
        };
        // An ordered map is a list of maps with one pair each.
        let pairs = states.items().iter().flat_map(Node::pairs).chain(states.pairs());
        let table: BTreeMap<u64, u64> = pairs.filter_map(state).collect();
        powers.entry(cpu as u16).or_insert(table);
    }
    node.items().iter().for_each(|item| collect_powers(item, powers));
    node.pairs().iter().for_each(|(_, value)| collect_powers(value, powers));
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_input::Source;
    use schedtwin_machine::Machine;

    const TEXT: &str = "platform-info:\n  conf:\n    name: board\n    cpu-capacities:\n      orig: {0: 300, 1: 1024, 2: 300}\n    \
        freq-domains:\n    - [0, 2]\n    - [1]\n    freqs:\n      0: [500000, 900000]\n      1: [600000, 2000000]\n      2: [500000, 900000]\n    \
        nrg-model: !!python/object:lisa.EnergyModel\n      cpu_nodes:\n      - &id1 !!python/object:lisa.Node\n        cpu: 0\n        \
        active_states: !!omap\n        - 500000: !!python/object/new:lisa.State [200.5, 42]\n        - 900000: [300, 99.5]\n      - *id1\n      \
        - cpu: 1\n        active_states: {600000: {capacity: 1, power: 200}, 2000000: {capacity: 1024, power: 900}}\n";

    #[test]
    fn a_target_becomes_a_machine() {
        let outline = outline(TEXT.as_bytes()).unwrap();
        assert_eq!((outline.nr_cpus(), outline.missing.len()), (3, 1));
        let machine = Machine::from_source(&Source::new("m", outline.text("plat_info.yml")), &[]);
        let machine = machine.unwrap_or_else(|faults| panic!("{faults}\n{}", outline.text("x")));
        let capacities: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
        assert_eq!(capacities, [300, 1024, 300]);
        let powers: Vec<Vec<u64>> = machine
            .domains
            .iter()
            .map(|domain| domain.opps.iter().map(|opp| opp.em_power_uw).collect())
            .collect();
        assert_eq!(powers, [[42_000, 99_500], [200_000, 900_000]]);
    }

    #[test]
    fn other_files_say_what_they_lack() {
        for (text, expected) in [
            ("", "it is empty"),
            ("a: [", "it is no YAML"),
            ("a: 1", "it has no `cpu-capacities` in `conf`"),
            ("conf: {cpu-capacities: {0: 1}}", "it has no `freqs` in `conf`"),
            ("conf: {cpu-capacities: {0: 1}, freqs: {x: [1]}}", "name no CPU"),
            ("conf: {cpu-capacities: {0: 1}, freqs: {0: [1]}, freq-domains: [[3]]}", "lack CPU 3"),
        ] {
            let told = outline(text.as_bytes()).unwrap_err();
            assert!(told.contains(expected), "{text}: {told}");
        }
        let deep = "[".repeat(100_000);
        assert!(outline(deep.as_bytes()).is_err());
        let bomb = format!("a: &a [x]\nb: &b [{0}]\nc: [{0}]", vec!["*a"; 100].join(","));
        assert!(outline(bomb.as_bytes()).unwrap_err().contains("cpu-capacities"));
    }
}
