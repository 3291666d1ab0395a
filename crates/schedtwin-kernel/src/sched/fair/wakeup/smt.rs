// SPDX-License-Identifier: GPL-2.0-or-later
//! Wakeups where cores have hardware threads: a core that is idle as a whole is worth more than an idle thread beside a
//! busy one.
//!
//! Whether a cache domain has an idle core is a flag. A CPU that goes idle sets it if the other threads of its core are
//! idle (`sched/idle.rs`); the scan that finds none clears it, and takes the first idle thread that it has met. While the
//! flag is off, an idle thread of prev's core is taken before anything is scanned.
//!
//! ```text
//! threads 0 and 1 of cores A, B, C:   A 1 busy   B 0 busy   C idle     flag on
//!   from A 0: A is not idle, B is not, C is: C
//!   and once C is busy: A 0, the first idle thread met; flag off
//! ```
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/fair.c `select_idle_core`, `select_idle_smt`.
//! Differences: none known.

use super::PlacementEffects;
use crate::observe::DecisionObserver;
use crate::sched::fair::energy::Choice;
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, CpuMask, PlacementRule, TaskId};

impl Scheduler {
    /// `select_idle_smt()`: another idle thread of `target`'s core.
    pub(super) fn select_idle_smt(
        &self,
        task: TaskId,
        target: CpuId,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<CpuId> {
        let threads = self.topology.smt_mask[target.index()].and(&self.tasks[task].cpus_mask);
        for cpu in threads.iter().filter(|cpu| *cpu != target) {
            effects.looked_at_threads += 1;
            effects.looked_at.cpus.insert(cpu);
            if self.choose_idle_cpu(cpu, task, cx) {
                see.candidate(|| self.looked_at(cpu, "idle thread", cx));
                return Some(cpu);
            }
            see.candidate(|| self.looked_at(cpu, "busy thread", cx));
        }
        None
    }

    /// The scan for a core that is idle as a whole (`select_idle_core()` for one CPU after the other), nearest CPUs
    /// first. Without one: the first idle thread met, and the LLC is known to have no idle core.
    #[inline(never)]
    pub(super) fn scan_for_core(
        &self,
        task: TaskId,
        parts: [CpuMask; 2],
        start: CpuId,
        target: CpuId,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<Choice> {
        let mut first_idle = None;
        for part in parts {
            let mut cpus = part;
            for core in part.iter_wrapping_from(start) {
                // Threads of a core that was looked at are done with.
                if !cpus.contains(core) {
                    continue;
                }
                let threads = self.topology.smt_mask[core.index()];
                if threads.is_subset(&self.idle_mask) {
                    threads.iter().for_each(|cpu| effects.looked_at.at(cpu));
                    self.take_idle_core(core, effects, cx);
                    see.candidate(|| self.looked_at(core, "idle core", cx));
                    return Some((core, PlacementRule::SelectIdleCore));
                }
                for cpu in threads.iter() {
                    effects.looked_at.at(cpu);
                    let idle = self.available_idle_cpu(cpu);
                    let takes = idle || self.choose_idle_cpu(cpu, task, cx);
                    if first_idle.is_none() && takes && cpus.contains(cpu) {
                        first_idle = Some(cpu);
                        see.candidate(|| self.looked_at(cpu, "idle thread", cx));
                        if !idle {
                            break;
                        }
                    } else if !idle && first_idle.is_some() {
                        break;
                    }
                }
                cpus = cpus.and_not(&threads);
            }
        }
        effects.no_idle_core = self.topology.sd_balance_shared[target.index()];
        first_idle.map(|cpu| (cpu, PlacementRule::SelectIdleCoreThread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;
    use crate::config::Config;
    use crate::device_tree::DeviceTree;
    use crate::sched::TaskKind;

    /// A CPU that goes idle says that its core is idle, if the other threads are; the search that finds none takes it
    /// back.
    #[test]
    fn idle_cores_are_remembered() {
        let mut machine = DeviceTree::of_domains(&[(4, 1024, &[(1_000_000, 100_000)])]);
        for (number, cpu) in machine.cpus.iter_mut().enumerate() {
            cpu.core = Some(number as u16 / 2);
        }
        let mut kernel = Kernel::boot(machine, Config::linux_6_12());
        let (task, waker) =
            (kernel.new_task(None, TaskKind::User), kernel.new_task(None, TaskKind::User));
        let shared = kernel.sched.topology.sd_llc_shared[0].expect("they share a cache");
        kernel.sched.topology.shared[shared].nr_idle_scan = 4;
        let busy = |kernel: &mut Kernel, cpus: [bool; 4]| {
            for cpu in kernel.cx.platform.device_tree.all_cpus().iter() {
                kernel.sched.rq[cpu].curr = if cpus[cpu.index()] { waker } else { TaskId::IDLE };
                kernel.sched.refresh_idle(cpu);
            }
        };
        // One thread of each core is busy: the waker's sibling, by the scan.
        busy(&mut kernel, [true, false, true, false]);
        kernel.set_next_task_idle(CpuId(3));
        assert!(!kernel.sched.topology.shared[shared].has_idle_cores);
        let select = |kernel: &mut Kernel| {
            let mut effects = PlacementEffects::default();
            let choice =
                kernel.select_idle_sibling(task, CpuId(0), CpuId(0), &mut effects, &mut ());
            kernel.sched.commit_placement_effects(task, CpuId(0), effects, &mut kernel.cx);
            choice
        };
        assert_eq!(select(&mut kernel), (CpuId(1), PlacementRule::SelectIdleSmt));
        // The second core is idle as a whole, and preferred to the sibling.
        busy(&mut kernel, [true, false, false, false]);
        kernel.set_next_task_idle(CpuId(3));
        assert!(kernel.sched.topology.shared[shared].has_idle_cores);
        assert_eq!(select(&mut kernel), (CpuId(2), PlacementRule::SelectIdleCore));
        // It is no longer idle; the search that looks for it records that.
        busy(&mut kernel, [true, false, false, true]);
        assert_eq!(select(&mut kernel), (CpuId(1), PlacementRule::SelectIdleCoreThread));
        assert!(!kernel.sched.topology.shared[shared].has_idle_cores);
    }
}
