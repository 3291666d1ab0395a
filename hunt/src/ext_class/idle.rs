// SPDX-License-Identifier: GPL-2.0-or-later
//! Which CPUs are idle, and the default choice of one.

use schedtwin_engine::policy::{SCX_PICK_IDLE_CORE, SCX_WAKE_SYNC};
use schedtwin_kernel::sched::topology::Topology;
use schedtwin_types::{CpuId, CpuMask};

/// What the choice looks at of the machine.
#[derive(Clone, Debug)]
pub struct Shape {
    /// All CPUs.
    pub all: CpuMask,
    /// Hardware threads share cores.
    pub smt: bool,
    /// By CPU: the threads of its core.
    pub siblings: Vec<CpuMask>,
    /// By CPU: those with which it shares the last cache.
    pub caches: Vec<CpuMask>,
    /// By CPU: its node.
    pub nodes: Vec<CpuMask>,
    /// The choice prefers CPUs of the same cache.
    pub by_cache: bool,
    /// It prefers CPUs of the same node.
    pub by_node: bool,
}

impl Shape {
    /// As the domains of a running kernel say.
    pub fn new(topology: &Topology, nr_cpus: usize) -> Shape {
        let all = CpuMask::first(nr_cpus);
        let cpus = || (0..nr_cpus).map(|cpu| CpuId(cpu as u16));
        let alone = |cpu: CpuId| CpuMask::of(cpu);
        let caches: Vec<CpuMask> = cpus()
            .map(|cpu| topology.sd_llc[cpu.index()].map_or(alone(cpu), |sd| topology[sd].span))
            .collect();
        let nodes: Vec<CpuMask> = cpus()
            .map(|cpu| match topology.sd_numa[cpu.index()] {
                Some(sd) => topology[topology[sd].groups].span,
                None => CpuMask::default(),
            })
            .collect();
        let weight = |mask: &CpuMask| mask.weight() as usize;
        let by_cache = topology.sd_llc[0].is_some() && weight(&caches[0]) < nr_cpus;
        let node = weight(&nodes[0]);
        let differs = cpus().any(|cpu| {
            let (cache, node) = (&caches[cpu.index()], &nodes[cpu.index()]);
            topology.sd_llc[cpu.index()].is_some() && weight(cache) != weight(node)
        });
        Shape {
            all,
            smt: topology.smt,
            siblings: topology.smt_mask.clone(),
            by_cache,
            by_node: node > 0 && node < nr_cpus && differs,
            caches,
            nodes,
        }
    }
}

/// The masks, and each CPU's cursor.
#[derive(Clone, Debug)]
pub struct IdleCpus {
    /// CPUs that idle and are not claimed.
    pub cpu: CpuMask,
    /// CPUs of cores of which all threads are idle.
    pub smt: CpuMask,
    /// By calling CPU: the one that was last chosen out of several.
    pub cursors: Vec<usize>,
}

/// A question for a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The CPU that asks.
    pub this: CpuId,
    /// The CPU that the task had.
    pub prev: CpuId,
    /// `SCX_WAKE_*`.
    pub wake_flags: u64,
    /// CPUs to choose from.
    pub allowed: &'a CpuMask,
    /// `SCX_PICK_IDLE_*`.
    pub flags: u64,
    /// Nothing waits in the asking CPU's own queue.
    pub local_is_empty: bool,
    /// The task that asks is about to end.
    pub waker_exits: bool,
    /// As 6.12 does it.
    pub old: bool,
}

impl IdleCpus {
    /// A CPU has gone idle, or is not idle any more.
    pub fn set_idle(&mut self, shape: &Shape, cpu: CpuId, idle: bool) {
        self.cpu.set(cpu, idle);
        let core = &shape.siblings[cpu.index()];
        if !shape.smt {
        } else if !idle {
            self.smt = self.smt.and_not(core);
        } else if core.is_subset(&self.cpu) {
            self.smt = self.smt.or(core);
        }
    }

    /// Claims a CPU; returns whether it was idle.
    pub fn claim(&mut self, shape: &Shape, cpu: CpuId) -> bool {
        if shape.smt {
            self.smt = self.smt.and_not(&shape.siblings[cpu.index()]);
        }
        let was = self.cpu.contains(cpu);
        self.cpu.remove(cpu);
        was
    }

    /// `cpumask_any_distribute()`: the next one after the cursor, round and round.
    fn distribute(&mut self, this: CpuId, mask: &CpuMask) -> Option<CpuId> {
        let cursor = &mut self.cursors[this.index()];
        let found = mask.next_from(*cursor + 1).or_else(|| mask.lowest())?;
        *cursor = found.index();
        Some(found)
    }

    /// Claims one of `mask`, of a whole idle core if there is one.
    pub fn pick(
        &mut self,
        shape: &Shape,
        this: CpuId,
        mask: &CpuMask,
        flags: u64,
    ) -> Option<CpuId> {
        let mut found = None;
        if shape.smt {
            found = self.distribute(this, &self.smt.and(mask));
            if found.is_none() && flags & SCX_PICK_IDLE_CORE != 0 {
                return None;
            }
        }
        let found = match found {
            Some(found) => found,
            None => self.distribute(this, &self.cpu.and(mask))?,
        };
        self.claim(shape, found);
        Some(found)
    }

    /// The default choice, step by step; each step claims what it finds.
    pub fn select(&mut self, shape: &Shape, q: &Question<'_>) -> Option<CpuId> {
        let prev_allowed = q.allowed.contains(q.prev);
        let wide = [(shape.by_cache, &shape.caches), (shape.by_node, &shape.nodes)];
        let near: Vec<CpuMask> = wide
            .iter()
            .filter(|(on, _)| *on && !q.old && prev_allowed)
            .map(|(_, masks)| masks[q.prev.index()].and(q.allowed))
            .collect();
        if q.wake_flags & SCX_WAKE_SYNC != 0 {
            let shares = shape.caches[q.this.index()].contains(q.prev);
            if !q.old && prev_allowed && shares && self.claim(shape, q.prev) {
                return Some(q.prev);
            }
            let room = !q.waker_exits && q.local_is_empty && !self.cpu.is_empty();
            if room && q.allowed.contains(q.this) {
                return Some(q.this);
            }
        }
        if shape.smt {
            if prev_allowed && self.smt.contains(q.prev) && self.claim(shape, q.prev) {
                return Some(q.prev);
            }
            for mask in near.iter().chain([q.allowed]) {
                if let Some(found) = self.pick(shape, q.this, mask, SCX_PICK_IDLE_CORE) {
                    return Some(found);
                }
            }
            if q.flags & SCX_PICK_IDLE_CORE != 0 {
                return None;
            }
        }
        if prev_allowed && self.claim(shape, q.prev) {
            return Some(q.prev);
        }
        if shape.smt && !q.old && prev_allowed {
            let core = shape.siblings[q.prev.index()].and(q.allowed);
            if let Some(found) = core.iter().find(|cpu| self.claim(shape, *cpu)) {
                return Some(found);
            }
        }
        let mut masks = near.iter().chain([q.allowed]);
        masks.find_map(|mask| self.pick(shape, q.this, mask, 0))
    }
}
