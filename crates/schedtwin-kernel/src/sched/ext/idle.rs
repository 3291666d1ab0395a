// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle CPUs as the class knows them, and the default selection of a CPU.
//!
//! **Idea.** A CPU's bit is set when its idle task is installed, and again when a pick leaves the idle task running. It is
//! cleared when the idle task is put, and long before by who *claims* the CPU (test and clear), so that two wakeups do
//! not choose the same one. `smt` has the CPUs of cores whose threads are all idle.
//!
//! **Which of several.** The next one after the executing CPU's cursor, which the scheduler core moves, too
//! (`cpumask_any_and_distribute()`): so the choice depends on the history of the CPU that asks.
//!
//! **The default selection**, each step claiming what it returns:
//! 1. A synchronous wakeup: prev, if it is idle and shares the waker's cache (7.3); else the waker's CPU if nothing waits
//!    in its local DSQ and some CPU is idle. It is not idle, and counts as found.
//! 2. With threads, whole cores: prev's; then (7.3) one in its cache, in its node; anywhere.
//! 3. prev; (7.3) an idle thread of its core, a CPU in its cache, in its node; anywhere.
//!
//! Caches count where the first CPU's is smaller than the machine, nodes where they are and differ from caches.
//!
//! Kernel: 7.3.4 kernel/sched/ext/idle.c; 6.12.95 kernel/sched/ext.c `scx_select_cpu_dfl`, `__scx_update_idle`.
//! Differences: the nodes that follow in a search by node go by distance from the first one; Linux measures from the last.

use super::steps::{Op, Step};
use super::{
    Ext, SCX_OPS_BUILTIN_IDLE_PER_NODE, SCX_PICK_IDLE_CORE, SCX_PICK_IDLE_IN_NODE, SCX_WAKE_SYNC,
};
use crate::Kernel;
use schedtwin_types::{CpuId, CpuMask, TaskId};

/// `struct scx_idle_cpus`: one pair, or one for each node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IdleCpus {
    pub(super) cpu: CpuMask,
    pub(super) smt: CpuMask,
}

/// The masks, and what the default selection knows of the machine.
#[derive(Clone, Debug)]
pub(super) struct IdleMasks {
    /// `scx_builtin_idle_enabled`.
    pub(super) enabled: bool,
    /// One for each node with `SCX_OPS_BUILTIN_IDLE_PER_NODE`, else one.
    pub(super) masks: Vec<IdleCpus>,
    /// `scx_selcpu_topo_llc`.
    pub(super) llc: bool,
    /// `scx_selcpu_topo_numa`.
    pub(super) numa: bool,
}

impl Ext {
    /// The masks that a CPU is in: the index in the list.
    fn idle_index(&self, cpu: CpuId) -> usize {
        let per_node = self.flags & SCX_OPS_BUILTIN_IDLE_PER_NODE != 0;
        if per_node { usize::from(self.node_of[cpu.index()]) } else { 0 }
    }

    /// All CPUs with their bit set.
    pub(super) fn idle_cpumask(&self) -> CpuMask {
        self.idle.masks.iter().fold(CpuMask::EMPTY, |all, masks| all.or(&masks.cpu))
    }

    /// All CPUs of idle cores.
    pub(super) fn idle_smtmask(&self) -> CpuMask {
        self.idle.masks.iter().fold(CpuMask::EMPTY, |all, masks| all.or(&masks.smt))
    }
}

impl Kernel {
    /// `scx_update_idle()`. `notify`: the idle task comes or goes, else it stays.
    #[inline(never)]
    pub(crate) fn scx_update_idle(&mut self, cpu: CpuId, idle: bool, notify: bool) {
        let ext = self.sched.scx_mut();
        ext.note(Step::Idle { cpu, idle, notify });
        let masks_first = ext.form.masks_first;
        if masks_first {
            self.scx_update_builtin_idle(cpu, idle);
        }
        if self.scx_tells_idle(cpu, idle, notify) {
            self.scx_op(Some(cpu), Op::UpdateIdle { cpu, idle });
        }
        if !masks_first {
            self.scx_update_builtin_idle(cpu, idle);
        }
    }

    /// Whether the scheduler is told of the CPU: not in bypass, and once after it.
    fn scx_tells_idle(&mut self, cpu: CpuId, idle: bool, notify: bool) -> bool {
        let ext = self.sched.scx_mut();
        let owed = &mut ext.rqs[cpu].idle_renotify;
        let due = notify || idle && *owed;
        *owed &= !due;
        due && !ext.bypass
    }

    /// `update_builtin_idle()`.
    pub(super) fn scx_update_builtin_idle(&mut self, cpu: CpuId, idle: bool) {
        let (smt, threads) = (self.sched.has_smt(), self.sched.topology.smt_mask[cpu.index()]);
        let ext = self.sched.scx_mut();
        if !ext.idle.enabled {
            return;
        }
        let at = ext.idle_index(cpu);
        let masks = &mut ext.idle.masks[at];
        masks.cpu.set(cpu, idle);
        if !smt {
            return;
        }
        if !idle {
            masks.smt = masks.smt.and_not(&threads);
        } else if threads.is_subset(&masks.cpu) {
            masks.smt = masks.smt.or(&threads);
        }
    }

    /// `scx_idle_test_and_clear_cpu()`: claims a CPU; whether it was idle.
    pub(super) fn scx_test_and_clear_cpu_idle(&mut self, cpu: CpuId) -> bool {
        let (smt, threads) = (self.sched.has_smt(), self.sched.topology.smt_mask[cpu.index()]);
        let ext = self.sched.scx_mut();
        let at = ext.idle_index(cpu);
        let masks = &mut ext.idle.masks[at];
        if smt {
            masks.smt = masks.smt.and_not(&threads);
        }
        let was = masks.cpu.contains(cpu);
        masks.cpu.remove(cpu);
        was
    }

    /// `pick_idle_cpu_in_node()`.
    fn scx_pick_idle_cpu_in(&mut self, at: usize, allowed: &CpuMask, flags: u64) -> Option<CpuId> {
        if self.sched.has_smt() {
            let cores = self.sched.scx().idle.masks[at].smt.and(allowed);
            if !cores.is_empty() {
                let cpu = self.sched.cpumask_any_and_distribute(cores, &self.cx);
                if self.scx_test_and_clear_cpu_idle(cpu) {
                    return Some(cpu);
                }
                // A core whose thread has been claimed is no idle core any more.
                return self.scx_pick_idle_cpu_in(at, allowed, flags);
            }
            if flags & SCX_PICK_IDLE_CORE != 0 {
                return None;
            }
        }
        let idle = self.sched.scx().idle.masks[at].cpu.and(allowed);
        if idle.is_empty() {
            return None;
        }
        let cpu = self.sched.cpumask_any_and_distribute(idle, &self.cx);
        self.scx_test_and_clear_cpu_idle(cpu);
        Some(cpu)
    }

    /// `scx_pick_idle_cpu()`. `near`: the CPU whose node comes first.
    pub(super) fn scx_pick_idle_cpu(
        &mut self,
        allowed: &CpuMask,
        near: CpuId,
        flags: u64,
    ) -> Option<CpuId> {
        let first = self.sched.scx().idle_index(near);
        if let Some(cpu) = self.scx_pick_idle_cpu_in(first, allowed, flags) {
            return Some(cpu);
        }
        let count = self.sched.scx().idle.masks.len();
        if count == 1 || flags & SCX_PICK_IDLE_IN_NODE != 0 {
            return None;
        }
        let distance =
            |node: usize| self.cx.platform.device_tree.topology.distance(first as u16, node as u16);
        let mut others: Vec<usize> = (0..count).filter(|node| *node != first).collect();
        others.sort_by_key(|node| distance(*node));
        others.into_iter().find_map(|node| self.scx_pick_idle_cpu_in(node, allowed, flags))
    }

    /// `scx_select_cpu_dfl()`; `None`: no idle CPU. `within`: of these CPUs only.
    pub(super) fn scx_select_cpu_dfl(
        &mut self,
        task: TaskId,
        prev: CpuId,
        wake_flags: u64,
        within: Option<&CpuMask>,
        flags: u64,
    ) -> Option<CpuId> {
        let own = self.sched.tasks[task].cpus_mask;
        let allowed = within.map_or(own, |within| own.and(within));
        if allowed.is_empty() {
            return None;
        }
        if wake_flags & SCX_WAKE_SYNC != 0
            && let Some(cpu) = self.scx_select_for_sync(prev, &allowed, flags)
        {
            return Some(cpu);
        }
        let near = self.scx_near(prev, &allowed);
        if self.sched.has_smt() {
            if let Some(cpu) = self.scx_select_core(prev, &allowed, &near, flags) {
                return Some(cpu);
            }
            if flags & SCX_PICK_IDLE_CORE != 0 {
                return None;
            }
        }
        let prev_is_allowed = allowed.contains(prev) || !self.sched.scx().form.near_first;
        if prev_is_allowed && self.scx_test_and_clear_cpu_idle(prev) {
            return Some(prev);
        }
        if self.sched.scx().form.near_first && self.sched.has_smt() {
            let threads = self.sched.topology.smt_mask[prev.index()].and(&allowed);
            for cpu in threads.iter().filter(|cpu| *cpu != prev) {
                if self.scx_test_and_clear_cpu_idle(cpu) {
                    return Some(cpu);
                }
            }
        }
        let at = self.sched.scx().idle_index(prev);
        for mask in near.iter().flatten() {
            if let Some(cpu) = self.scx_pick_idle_cpu_in(at, mask, 0) {
                return Some(cpu);
            }
        }
        self.scx_pick_idle_cpu(&allowed, prev, flags)
    }

    /// Step 1.
    fn scx_select_for_sync(&mut self, prev: CpuId, allowed: &CpuMask, flags: u64) -> Option<CpuId> {
        let this = self.cx.this_cpu;
        let near_first = self.sched.scx().form.near_first;
        if near_first
            && allowed.contains(prev)
            && self.sched.topology.cpus_share_cache(this, prev)
            && self.scx_test_and_clear_cpu_idle(prev)
        {
            return Some(prev);
        }
        let exiting = self.sched.tasks[self.sched.rq[this].curr].exiting;
        let ext = self.sched.scx();
        let (here, there) = (ext.idle_index(this), ext.idle_index(prev));
        let in_node = flags & SCX_PICK_IDLE_IN_NODE != 0;
        let found = !exiting
            && ext.dsqs[ext.dsqs.local(this)].nr == 0
            && (!in_node || here == there)
            && !ext.idle.masks[here].cpu.is_empty()
            && allowed.contains(this);
        if found && near_first {
            self.scx_test_and_clear_cpu_idle(this);
        }
        found.then_some(this)
    }

    /// Step 2.
    fn scx_select_core(
        &mut self,
        prev: CpuId,
        allowed: &CpuMask,
        near: &[Option<CpuMask>; 2],
        flags: u64,
    ) -> Option<CpuId> {
        let ext = self.sched.scx();
        let at = ext.idle_index(prev);
        let prev_is_allowed = allowed.contains(prev) || !ext.form.near_first;
        if prev_is_allowed
            && ext.idle.masks[at].smt.contains(prev)
            && self.scx_test_and_clear_cpu_idle(prev)
        {
            return Some(prev);
        }
        for mask in near.iter().flatten() {
            if let Some(cpu) = self.scx_pick_idle_cpu_in(at, mask, SCX_PICK_IDLE_CORE) {
                return Some(cpu);
            }
        }
        self.scx_pick_idle_cpu(allowed, prev, flags | SCX_PICK_IDLE_CORE)
    }

    /// The allowed CPUs of prev's cache and of its node, where these are looked at.
    fn scx_near(&self, prev: CpuId, allowed: &CpuMask) -> [Option<CpuMask>; 2] {
        let topology = &self.sched.topology;
        let ext = self.sched.scx();
        let llc = topology.sd_llc[prev.index()].filter(|_| ext.idle.llc);
        let llc = llc.map(|sd| topology[sd].span.and(allowed));
        let numa = topology.sd_numa[prev.index()].filter(|_| ext.idle.numa);
        let numa = numa.map(|sd| topology[topology[sd].groups].span.and(allowed));
        [llc, numa].map(|mask| mask.filter(|mask| !mask.is_empty()))
    }

    /// `scx_idle_update_selcpu_topology()`: whether caches and nodes are looked at.
    pub(super) fn scx_selcpu_topology(&self, near_first: bool, flags: u64) -> (bool, bool) {
        if !near_first {
            return (false, false);
        }
        let topology = &self.sched.topology;
        let nr_cpus = self.sched.nr_cpus() as u32;
        let llc = |cpu: usize| topology.sd_llc[cpu].map_or(0, |sd| topology[sd].span.weight());
        let numa = |cpu: usize| {
            let group = topology.sd_numa[cpu].map(|sd| topology[sd].groups);
            group.map_or(0, |group| topology[group].span.weight())
        };
        let smaller = |weight: u32| weight > 0 && weight < nr_cpus;
        let mismatch = (0..nr_cpus as usize).any(|cpu| llc(cpu) != numa(cpu));
        let per_node = flags & SCX_OPS_BUILTIN_IDLE_PER_NODE != 0;
        (smaller(llc(0)), !per_node && smaller(numa(0)) && mismatch)
    }
}
