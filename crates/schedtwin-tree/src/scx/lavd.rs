// SPDX-License-Identifier: GPL-2.0-or-later
//! The tables that the program of scx_lavd writes before it loads it, with its options as they are by default, but for
//! `--no-use-em`: it makes its table of orders from capacities, as it does where there is no energy model.
//!
//! **Terms.** *Compute domain*: CPUs of one kind (big, little) below one cache. *Order*: in which CPUs become active as the
//! load grows; one order for performance, one to save power.
//!
//! Written from what the table means; scx at 7a58a3a1a, `scheds/rust/scx_lavd/src/cpu_order.rs`, `main.rs`. Differences: sizes of caches, which decide between CPUs of equal
//! capacity, count as equal.

use super::loader::Value;
use super::topology::{Cpu, Place, Topology};
use std::collections::BTreeMap;

/// `ops.name` of the scheduler.
pub(super) const NAME: &str = "lavd";

/// `LAVD_PCO_STATE_MAX`, `LAVD_CPDOM_MAX_NR`.
const PCO_STATES: usize = 11;
const CPDOM_MAX: usize = 128;

/// Which compute domain a CPU is in: node, cache, cache within the node, big.
type DomainKey = (usize, usize, usize, bool);

struct Domain {
    id: usize,
    cpus: Vec<u16>,
}

/// Writes all tables.
pub(super) fn tables(topology: &Topology, values: &mut Vec<Value>) {
    let mut cpus = topology.kinds();
    let little = cpus.iter().any(|cpu| !cpu.big);
    let mut write = |path: String, value: u64| values.push((path, value));
    write("nr_llcs".into(), topology.nr_llcs() as u64);
    write("is_smt_active".into(), cpus.iter().any(|cpu| cpu.place.threads > 1).into());
    for Cpu { place, capacity, big, turbo } in &cpus {
        let cpu = place.cpu;
        write(format!("cpu_capacity[{cpu}]"), *capacity);
        write(format!("cpu_big[{cpu}]"), u64::from(*big));
        write(format!("cpu_turbo[{cpu}]"), u64::from(*turbo));
        write(format!("cpu_sibling[{cpu}]"), place.sibling.map_or(u64::MAX, u64::from));
    }
    let mut saving = cpus.clone();
    saving.sort_by_key(|cpu| for_power(cpu, little));
    cpus.sort_by_key(for_performance);
    orders(&cpus, &saving, &mut write);
    domains(&cpus, &mut write);
}

fn for_performance(cpu: &Cpu) -> impl Ord + use<> {
    let Place { cpu: number, node, llc, llc_in_node, core_in_llc, thread_in_core, threads, .. } =
        cpu.place;
    let least_first = std::cmp::Reverse(cpu.capacity);
    (thread_in_core, node, llc_in_node, least_first, threads, llc, core_in_llc, number)
}

fn for_power(cpu: &Cpu, little: bool) -> impl Ord + use<> {
    let Place { cpu: number, node, llc, llc_in_node, core_in_llc, thread_in_core, threads, .. } =
        cpu.place;
    let capacity = if little { cpu.capacity } else { u64::MAX - cpu.capacity };
    let most_threads = std::cmp::Reverse(threads);
    (node, llc_in_node, capacity, llc, core_in_llc, most_threads, thread_in_core, number)
}

/// `pco_*`: up to which capacity each order is for, and the order; the first CPU of it is the primary one.
fn orders(performance: &[Cpu], saving: &[Cpu], write: &mut impl FnMut(String, u64)) {
    let total: u64 = performance.iter().map(|cpu| cpu.capacity).sum();
    let states = BTreeMap::from([(total, performance), (saving[0].capacity, saving)]);
    write("nr_pco_states".into(), states.len() as u64);
    let last = states.iter().next_back();
    for (at, (bound, order)) in
        states.iter().chain(last.into_iter().cycle()).take(PCO_STATES).enumerate()
    {
        write(format!("pco_bounds[{at}]"), *bound);
        write(format!("pco_nr_primary[{at}]"), 1);
        for (nth, cpu) in order.iter().enumerate() {
            write(format!("pco_table[{at}][{nth}]"), cpu.place.cpu.into());
        }
    }
}

/// `cpdom_ctxs`: the compute domains and their neighbours, near ones first.
fn domains(cpus: &[Cpu], write: &mut impl FnMut(String, u64)) {
    let mut domains: BTreeMap<DomainKey, Domain> = BTreeMap::new();
    for cpu in cpus {
        let Place { node, llc, llc_in_node, .. } = cpu.place;
        let id = domains.len();
        let domain = domains.entry((node, llc, llc_in_node, cpu.big));
        domain.or_insert_with(|| Domain { id, cpus: Vec::new() }).cpus.push(cpu.place.cpu);
    }
    for (key, domain) in &domains {
        let mut near: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (other, of) in domains.iter().filter(|(other, _)| *other != key) {
            near.entry(distance(key, other)).or_default().push(of.id);
        }
        near.values_mut().for_each(|ids| around(domain.id, ids));
        let is_other = |id: &usize| domains.iter().any(|(of, d)| d.id == *id && of.3 != key.3);
        let twin = domains.get(&(key.0, key.1, key.2, !key.3)).map(|domain| domain.id);
        let alternative = twin.or(near.values().flatten().copied().find(is_other));
        let at = |member: String| format!("cpdom_ctxs[{}].{member}", domain.id);
        write(at("id".into()), domain.id as u64);
        write(at("alt_id".into()), alternative.unwrap_or(domain.id) as u64);
        write(at("numa_id".into()), key.0 as u64);
        write(at("llc_id".into()), key.1 as u64);
        write(at("is_big".into()), key.3.into());
        write(at("is_valid".into()), 1);
        let mut words: BTreeMap<u16, u64> = BTreeMap::new();
        domain.cpus.iter().for_each(|cpu| *words.entry(cpu / 64).or_default() |= 1 << (cpu % 64));
        words.into_iter().for_each(|(word, bits)| write(at(format!("__cpumask[{word}]")), bits));
        for (level, ids) in near.values().enumerate() {
            write(at(format!("nr_neighbors[{level}]")), ids.len() as u64);
            for (nth, id) in ids.iter().enumerate() {
                write(at(format!("neighbor_ids[{}]", level * CPDOM_MAX + nth)), *id as u64);
            }
        }
    }
}

/// Kind before node before cache.
fn distance(from: &DomainKey, to: &DomainKey) -> usize {
    let kind = if from.3 != to.3 { 100 } else { 0 };
    let place = match (from.0 != to.0, from.2 != to.2, from.1 != to.1) {
        (true, ..) => 10,
        (false, within, llc) => usize::from(within) + usize::from(llc),
    };
    kind + place
}

/// Sorts numbers by how far they are from `start` in the circle that all of them make with it.
fn around(start: usize, ids: &mut Vec<usize>) {
    ids.push(start);
    ids.sort_unstable();
    let (count, from) = (ids.len(), ids.iter().position(|id| *id == start).unwrap_or(0));
    let mut order: Vec<usize> = (0..count).collect();
    let away = |at: usize| ((at + count - from) % count).min((from + count - at) % count);
    order.sort_by_key(|at| (away(*at), *at));
    *ids = order[1..].iter().map(|at| ids[*at]).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_come_in_the_order_of_a_circle() {
        for (start, order) in
            [(0, [1, 7, 2, 6, 3, 5, 4]), (1, [0, 2, 3, 7, 4, 6, 5]), (7, [0, 6, 1, 5, 2, 4, 3])]
        {
            let mut ids: Vec<usize> = (0..8).filter(|id| *id != start).collect();
            around(start, &mut ids);
            assert_eq!(ids, order, "from {start}");
        }
    }
}
