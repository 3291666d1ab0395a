// SPDX-License-Identifier: GPL-2.0-or-later
//! Construction of the domains from what firmware says.
//!
//! 1. The **levels**, bottom-up, each a mask per CPU (`levels.rs`).
//! 2. Per CPU ascending and per level bottom-up a domain, until one spans all CPUs.
//! 3. Groups: one per domain of the level below.
//! 4. How much imbalance NUMA nodes may have.
//! 5. **Attaching**: levels that say nothing new are removed. What a removed level knew stays behind
//!    in part (PREFER_SIBLING, group flags), so the order of these steps shows in the result.
//! 6. Each CPU's shortcuts: `sd_llc`, `sd_asym_cpucapacity`, ...
//!
//! Kernel: 6.12.95 and 7.3.4 kernel/sched/topology.c `build_sched_domains`, `sd_init`, `get_group`,
//! `build_overlap_sched_groups`, `cpu_attach_domain`.
//! Differences: see the parent module.
//!
//! **Overlapping groups.** Where some nodes are farther than others, domains of a NUMA level overlap, and so do the
//! groups of one domain. On a ring of four nodes, 0 to 3, each 20 from its neighbours and 30 from the one opposite:
//!
//! ```text
//! node 0   NUMA 20: nodes 3, 0, 1      groups {0} {1} {3}
//!          NUMA 30: nodes 0 to 3       groups {3,0,1} {1,2,3}
//! ```
//!
//! Groups of such a domain belong to one CPU, since each CPU walks the ring from itself. All CPUs
//! with the same group share its capacity, and only the CPUs whose own domain below is exactly the
//! group may balance for it.

use super::levels::{Level, levels, smt_masks};
use super::shared::SharedObjects;
use super::*;
use crate::config::AsymChildPreferSibling;

/// `SCHED_CAPACITY_SCALE`: what a CPU is assumed to have until it has been asked.
const SCHED_CAPACITY_SCALE: u64 = 1024;

/// The state of the build: every domain ever built, also those removed later.
struct Builder {
    t: Topology,
    /// Per domain: its level's number.
    level_of: Vec<usize>,
    /// Per level and CPU: the domain.
    sd: Vec<Vec<Option<DomainId>>>,
    /// Per level and CPU: the group that starts with this CPU.
    sg: Vec<Vec<Option<GroupId>>>,
    /// Per level and CPU: the capacity of such a group.
    sgc: Vec<Vec<Option<usize>>>,
    /// The objects that CPUs share.
    shared: SharedObjects,
}

/// `build_sched_domains()`.
pub(super) fn build_sched_domains(dt: &DeviceTree, config: &Config) -> Topology {
    let levels = levels(dt, config);
    let nr = dt.cpus.len();
    let cpus = dt.all_cpus();
    let smt_mask = smt_masks(dt);
    let t = Topology {
        domains: Vec::new(),
        groups: Vec::new(),
        capacities: Vec::new(),
        shared: Vec::new(),
        base: vec![None; nr],
        sd_llc: vec![None; nr],
        sd_llc_size: vec![1; nr],
        sd_llc_id: cpus.iter().collect(),
        sd_llc_shared: vec![None; nr],
        sd_balance_shared: vec![None; nr],
        sd_share_id: cpus.iter().collect(),
        sd_asym_cpucapacity: vec![None; nr],
        sd_numa: vec![None; nr],
        sd_asym_packing: vec![None; nr],
        asym_priority: cpus
            .iter()
            .map(|cpu| dt.cpus[cpu.index()].asym_priority.unwrap_or(-(cpu.0 as i32)))
            .collect(),
        asym_cpucapacity: false,
        cluster: false,
        smt: smt_mask.iter().any(|threads| threads.weight() > 1),
        smt_mask,
    };
    let mut b = Builder {
        t,
        level_of: Vec::new(),
        sd: vec![vec![None; nr]; levels.len()],
        sg: vec![vec![None; nr]; levels.len()],
        sgc: vec![vec![None; nr]; levels.len()],
        shared: SharedObjects::new(config, levels.len(), nr),
    };
    for cpu in cpus.iter() {
        let mut child = None;
        for (number, level) in levels.iter().enumerate() {
            let sd = b.sd_init((dt, config), number, level, child, cpu);
            child = Some(sd);
            if b.t[sd].span == cpus {
                break;
            }
        }
    }
    for cpu in cpus.iter() {
        let mut at = b.sd[0][cpu.index()];
        while let Some(sd) = at {
            b.t[sd].span_weight = b.t[sd].span.weight();
            b.build_sched_groups(sd, cpu);
            at = b.t[sd].parent;
        }
    }
    for cpu in cpus.iter() {
        b.shared.claim(&mut b.t, b.sd[0][cpu.index()]);
    }
    for cpu in cpus.iter() {
        b.allow_numa_imbalance(cpu);
    }
    for cpu in cpus.iter() {
        b.cpu_attach_domain(cpu);
        b.t.cluster |= b.t.lowest_flag_domain(cpu, SD_CLUSTER).is_some();
    }
    for cpu in cpus.iter() {
        b.update_top_cache_domain(cpu);
    }
    let mut topology = b.t;
    compact(&mut topology);
    topology
}

/// `asym_cpu_capacity_classify()`.
fn asym_cpu_capacity_classify(dt: &DeviceTree, span: &CpuMask) -> u32 {
    let mut capacities: Vec<u32> = dt.cpus.iter().map(|c| c.capacity).collect();
    capacities.sort_unstable();
    capacities.dedup();
    let met = |capacity: &&u32| span.iter().any(|c| dt.cpus[c.index()].capacity == **capacity);
    match capacities.iter().filter(met).count() {
        0 | 1 => 0,
        count if count < capacities.len() => SD_ASYM_CPUCAPACITY,
        _ => SD_ASYM_CPUCAPACITY | SD_ASYM_CPUCAPACITY_FULL,
    }
}

impl Builder {
    /// `build_sched_domain()` with `sd_init()`.
    fn sd_init(
        &mut self,
        (dt, config): (&DeviceTree, &Config),
        number: usize,
        level: &Level,
        child: Option<DomainId>,
        cpu: CpuId,
    ) -> DomainId {
        let span = level.mask[cpu.index()];
        let weight = span.weight();
        let mut flags = SD_BALANCE_NEWIDLE
            | SD_BALANCE_EXEC
            | SD_BALANCE_FORK
            | SD_WAKE_AFFINE
            | SD_PREFER_SIBLING
            | level.flags
            | asym_cpu_capacity_classify(dt, &span);
        let (mut imbalance_pct, mut cache_nice_tries) = (117, 1);
        if flags & SD_ASYM_CPUCAPACITY != 0 {
            self.t.asym_cpucapacity = true;
            if let Some(child) = child
                && config.asym_child_prefer_sibling == AsymChildPreferSibling::Cleared
            {
                self.t[child].flags &= !SD_PREFER_SIBLING;
            }
        }
        if flags & SD_SHARE_CPUCAPACITY != 0 {
            (imbalance_pct, cache_nice_tries) = (110, 0);
        } else if flags & SD_NUMA != 0 {
            cache_nice_tries = 2;
            flags = flags & !SD_PREFER_SIBLING | SD_SERIALIZE;
            if level.distance > dt.topology.reclaim_distance {
                flags &= !(SD_BALANCE_EXEC | SD_BALANCE_FORK | SD_WAKE_AFFINE);
            }
        }
        let shared = match flags & SD_SHARE_LLC {
            0 => None,
            _ => self.shared.of_level(&mut self.t.shared, number, &span),
        };
        if level.overlap {
            flags |= SD_OVERLAP;
        }
        let id = DomainId(self.t.domains.len() as u32);
        self.t.domains.push(SchedDomain {
            span,
            flags,
            span_weight: 0,
            parent: None,
            child,
            groups: GroupId(u32::MAX),
            imbalance_pct,
            cache_nice_tries,
            busy_factor: 16,
            min_interval: weight as u64,
            max_interval: 2 * weight as u64,
            balance_interval: weight as u64,
            last_balance: 0,
            nr_balance_failed: 0,
            // A success rate of one half.
            newidle_call: 512,
            newidle_success: 256,
            newidle_ratio: 512,
            newidle_stamp: 0,
            max_newidle_lb_cost: 0,
            last_decay_max_lb_cost: 0,
            avg_scan_cost: 0,
            shared,
            nohz_idle: false,
            imb_numa_nr: 0,
            level: 0,
            name: level.name,
        });
        self.level_of.push(number);
        self.sd[number][cpu.index()] = Some(id);
        if let Some(child) = child {
            self.t[child].parent = Some(id);
        }
        id
    }

    /// `build_sched_groups()` and `build_overlap_sched_groups()`.
    fn build_sched_groups(&mut self, sd: DomainId, cpu: CpuId) {
        let number = self.level_of[sd.0 as usize];
        let span = self.t[sd].span;
        let overlap = self.t[sd].flags & SD_OVERLAP != 0;
        let mut covered = CpuMask::EMPTY;
        let mut ring: Vec<GroupId> = Vec::new();
        for i in span.iter_wrapping_from(cpu) {
            if covered.contains(i) {
                continue;
            }
            let sg = if overlap {
                // A CPU whose domains end below this level has no group to offer.
                let Some(sibling) = self.sd[number][i.index()] else { continue };
                self.overlap_group(&span, sibling)
            } else {
                self.get_group(number, i)
            };
            covered = covered.or(&self.t[sg].span);
            ring.push(sg);
        }
        for (at, sg) in ring.iter().enumerate() {
            self.t[*sg].next = ring[(at + 1) % ring.len()];
        }
        self.t[sd].groups = ring[0];
    }

    /// `get_group()`: one object per span of the level below.
    fn get_group(&mut self, number: usize, cpu: CpuId) -> GroupId {
        let sd = self.sd[number][cpu.index()].expect("levels that do not overlap are equally deep");
        let (span, flags) = match self.t[sd].child {
            Some(child) => (self.t[child].span, self.t[child].flags),
            None => (CpuMask::of(cpu), 0),
        };
        let first = span.lowest().expect("a group has CPUs");
        match self.sg[number][first.index()] {
            Some(sg) => sg,
            None => {
                let sg = self.new_group(number, span, flags, span);
                self.sg[number][first.index()] = Some(sg);
                sg
            }
        }
    }

    /// A group of an overlapping domain of CPUs `span`: what the domain `sibling` of another CPU has below it.
    fn overlap_group(&mut self, span: &CpuMask, sibling: DomainId) -> GroupId {
        let t = &self.t;
        let child_span = |sd: DomainId| t[sd].child.map(|child| t[child].span);
        let mut sibling = sibling;
        // find_descended_sibling(): where nodes are three steps apart, what a sibling has below may reach beyond.
        if child_span(sibling).is_some_and(|below| !below.is_subset(span)) {
            while child_span(sibling).is_some_and(|below| !below.is_subset(span)) {
                sibling = t[sibling].child.expect("it has a span");
            }
            while child_span(sibling) == Some(t[sibling].span) {
                sibling = t[sibling].child.expect("it has a span");
            }
        }
        let number = self.level_of[sibling.0 as usize];
        let child = t[sibling].child.expect("NUMA is not the lowest level");
        let (group_span, flags) = (t[child].span, t[child].flags);
        // build_balance_mask(): the CPUs that would end up at this group, too.
        let ends_up_here = |cpu: &CpuId| {
            let own = self.sd[number][cpu.index()].and_then(|sd| t[sd].child);
            own.is_some_and(|child| t[child].span == group_span)
        };
        let balance_mask = group_span.iter().filter(ends_up_here).collect();
        self.new_group(number, group_span, flags, balance_mask)
    }

    fn new_group(
        &mut self,
        number: usize,
        span: CpuMask,
        flags: u32,
        balance_mask: CpuMask,
    ) -> GroupId {
        let weight = span.weight();
        let balancer = balance_mask.lowest().expect("somebody balances for a group");
        let sgc = *self.sgc[number][balancer.index()].get_or_insert_with(|| {
            self.t.capacities.push(SchedGroupCapacity {
                capacity: SCHED_CAPACITY_SCALE * weight as u64,
                min_capacity: SCHED_CAPACITY_SCALE,
                max_capacity: SCHED_CAPACITY_SCALE,
                next_update: 0,
                imbalance: false,
            });
            self.t.capacities.len() - 1
        });
        let mut rest = span;
        let mut cores = 0;
        while let Some(cpu) = rest.lowest() {
            cores += 1;
            rest = rest.and_not(&self.t.smt_mask[cpu.index()]);
        }
        let first_cpu = span.lowest().expect("a group has CPUs");
        let prefer = |a: CpuId, b: CpuId| if self.t.sched_asym_prefer(b, a) { b } else { a };
        let asym_prefer_cpu = span.iter().fold(first_cpu, prefer);
        let id = GroupId(self.t.groups.len() as u32);
        self.t.groups.push(SchedGroup {
            span,
            next: id,
            first_cpu,
            group_weight: weight,
            cores,
            asym_prefer_cpu,
            flags,
            sgc,
            balance_mask,
        });
        id
    }

    /// `imb_numa_nr` of the domains of a CPU: an eighth of a node with one cache, else one task per
    /// cache, more in proportion above the first NUMA level.
    fn allow_numa_imbalance(&mut self, cpu: CpuId) {
        let (mut imbalance, mut imbalance_span) = (0, 1);
        let mut at = self.sd[0][cpu.index()];
        while let Some(sd) = at {
            let domain = &self.t[sd];
            let weight = domain.span_weight;
            let child = domain.child.map(|c| &self.t[c]);
            let cached_child = child.filter(|c| c.flags & SD_SHARE_LLC != 0);
            self.t[sd].imb_numa_nr = match cached_child {
                Some(child) if domain.flags & SD_SHARE_LLC == 0 => {
                    let nr_llcs = weight / child.span_weight;
                    imbalance = if nr_llcs == 1 { weight >> 3 } else { nr_llcs }.max(1);
                    let above = std::iter::successors(domain.parent, |p| self.t[*p].parent);
                    imbalance_span = above
                        .map(|p| &self.t[p])
                        .find(|p| p.flags & SD_NUMA != 0)
                        .map_or(weight, |p| p.span_weight);
                    imbalance
                }
                _ => imbalance * (weight / imbalance_span).max(1),
            };
            at = self.t[sd].parent;
        }
    }

    /// `sd_degenerate()`: the domain has nothing to say.
    fn sd_degenerate(&self, sd: DomainId) -> bool {
        let domain = &self.t[sd];
        if domain.span_weight == 1 {
            return true;
        }
        if domain.flags & SD_DEGENERATE_GROUPS_MASK != 0 && !self.has_one_group(sd) {
            return false;
        }
        domain.flags & SD_WAKE_AFFINE == 0
    }

    fn has_one_group(&self, sd: DomainId) -> bool {
        let groups = self.t[sd].groups;
        self.t[groups].next == groups
    }

    /// `sd_parent_degenerate()`: the parent says nothing that the domain does not say.
    fn sd_parent_degenerate(&self, sd: DomainId, parent: DomainId) -> bool {
        if self.sd_degenerate(parent) {
            return true;
        }
        if self.t[sd].span != self.t[parent].span {
            return false;
        }
        let mut flags = self.t[parent].flags;
        if self.has_one_group(parent) {
            flags &= !SD_DEGENERATE_GROUPS_MASK;
        }
        !self.t[sd].flags & flags == 0
    }

    /// `cpu_attach_domain()`.
    fn cpu_attach_domain(&mut self, cpu: CpuId) {
        let mut lowest = self.sd[0][cpu.index()].expect("every CPU has a lowest level");
        let mut sd = lowest;
        while let Some(parent) = self.t[sd].parent {
            if !self.sd_parent_degenerate(sd, parent) {
                sd = parent;
                continue;
            }
            let grandparent = self.t[parent].parent;
            self.t[sd].parent = grandparent;
            self.shared.inherit(&mut self.t, sd, parent);
            if let Some(grandparent) = grandparent {
                self.t[grandparent].child = Some(sd);
                // The CPU's own group only: other groups of the ring are corrected by their own CPUs,
                // unless, at overlapping levels, they are private to this one.
                let group = self.t[grandparent].groups;
                self.t[group].flags = self.t[sd].flags;
            }
            self.t[sd].flags |= self.t[parent].flags & SD_PREFER_SIBLING;
        }
        if self.sd_degenerate(lowest) {
            let Some(parent) = self.t[lowest].parent else { return };
            let group = self.t[parent].groups;
            self.t[group].flags = 0;
            self.t[parent].child = None;
            lowest = parent;
        }
        self.t.base[cpu.index()] = Some(lowest);
        let chain: Vec<DomainId> = self.t.domains_of(cpu).collect();
        for (level, sd) in chain.into_iter().enumerate() {
            self.t[sd].level = level as u8;
        }
    }

    /// `update_top_cache_domain()`.
    fn update_top_cache_domain(&mut self, cpu: CpuId) {
        let t = &mut self.t;
        let c = cpu.index();
        t.sd_llc[c] = t.highest_flag_domain(cpu, SD_SHARE_LLC);
        if let Some(sd) = t.sd_llc[c] {
            t.sd_llc_size[c] = t[sd].span_weight;
            t.sd_llc_id[c] = t[sd].span.lowest().expect("a domain has CPUs");
            t.sd_llc_shared[c] = t[sd].shared;
        }
        t.sd_share_id[c] = match t.lowest_flag_domain(cpu, SD_CLUSTER) {
            Some(sd) => t[sd].span.lowest().expect("a domain has CPUs"),
            None => t.sd_llc_id[c],
        };
        t.sd_numa[c] = t.lowest_flag_domain(cpu, SD_NUMA);
        t.sd_asym_packing[c] =
            t.domains_of(cpu).filter(|sd| t[*sd].flags & SD_ASYM_PACKING != 0).last();
        t.sd_asym_cpucapacity[c] = t.lowest_flag_domain(cpu, SD_ASYM_CPUCAPACITY_FULL);
        t.sd_balance_shared[c] = self.shared.of_balance(t, cpu);
    }
}

/// Drops the domains and groups that no CPU has any more, so that a snapshot copies only what is
/// used. The order of the others stays.
fn compact(t: &mut Topology) {
    let mut keep_domain = vec![false; t.domains.len()];
    let mut keep_group = vec![false; t.groups.len()];
    for cpu in 0..t.base.len() {
        for sd in t.domains_of(CpuId(cpu as u16)) {
            keep_domain[sd.0 as usize] = true;
            for sg in t.groups_of(sd) {
                keep_group[sg.0 as usize] = true;
            }
        }
    }
    let new_number = |keep: &[bool]| -> Vec<u32> {
        let numbers = keep.iter().scan(0, |next, kept| {
            let number = *next;
            *next += *kept as u32;
            Some(number)
        });
        numbers.collect()
    };
    let (domain, group) = (new_number(&keep_domain), new_number(&keep_group));
    let move_domain = |id: &mut DomainId| id.0 = domain[id.0 as usize];
    let move_group = |id: &mut GroupId| id.0 = group[id.0 as usize];
    let mut kept = keep_domain.iter();
    t.domains.retain(|_| *kept.next().expect("one mark a domain"));
    let mut kept = keep_group.iter();
    t.groups.retain(|_| *kept.next().expect("one mark a group"));
    for sd in &mut t.domains {
        sd.parent.iter_mut().for_each(move_domain);
        sd.child.iter_mut().for_each(move_domain);
        move_group(&mut sd.groups);
    }
    for sg in &mut t.groups {
        move_group(&mut sg.next);
    }
    for pointers in [
        &mut t.base,
        &mut t.sd_llc,
        &mut t.sd_asym_cpucapacity,
        &mut t.sd_numa,
        &mut t.sd_asym_packing,
    ] {
        pointers.iter_mut().flatten().for_each(move_domain);
    }
}
