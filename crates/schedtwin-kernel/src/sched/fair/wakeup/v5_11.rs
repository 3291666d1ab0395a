// SPDX-License-Identifier: GPL-2.0-or-later
//! 5.11's search for an idle CPU in the target's cache domain.
//!
//! 1. If a core is known to be idle as a whole: the first such one, from the target on. None: it is no longer known.
//! 2. An idle CPU, from the target on. SIS_PROP: as many are looked at as a 512th of the executing CPU's idle time pays
//!    for, at what a scan has cost of late, times the CPUs of the domain; at least 4, of which the last ends the search
//!    unseen.
//! 3. An idle thread of the target's core.
//!
//! On eight CPUs with 512 µs of idle time a stay and 999 ns a scan, 8 · 1000 / 1000 = 8 may be looked at, so the scan
//! sees 7; with 100 µs the least, 4, and it sees 3.
//!
//! Kernel: 5.11 kernel/sched/fair.c `select_idle_core`, `select_idle_cpu`, `select_idle_smt`, by the behaviour notes
//! (03 §4): no tree of it was read.
//! Differences: of SIS_PROP the time that counts is the cost of the CPUs looked at in step 2.

use super::{PlacementEffects, ScanBudget};
use crate::observe::DecisionObserver;
use crate::sched::fair::energy::Choice;
use crate::sched::topology::DomainId;
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, CpuMask, PlacementRule, TaskId};

impl Scheduler {
    /// `select_idle_core()`, `select_idle_cpu()`, `select_idle_smt()`, in this order.
    pub(super) fn scan_smt_last(
        &self,
        task: TaskId,
        sd: DomainId,
        target: CpuId,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<Choice> {
        let span = self.topology[sd].span;
        let cpus = span.and(&self.tasks[task].cpus_mask);
        if let Some(core) = self.known_idle_core(&cpus, target, effects, see, cx) {
            return Some((core, PlacementRule::SelectIdleCore));
        }
        let mut left = i32::MAX as u32;
        if cx.config.features.sis_prop {
            let this_sd = self.topology.sd_llc[cx.this_cpu.index()]?;
            left = self.nr_by_avg_idle(self.topology[sd].span_weight, this_sd, cx);
            let rq = &self.rq[cx.this_cpu];
            let (avg_idle, stamp) = (rq.wake_avg_idle, rq.wake_stamp);
            effects.budget = Some(ScanBudget { avg_idle, stamp, this_sd, measured: false });
        }
        let found = self.scan(&cpus, target, task, &mut left, &mut effects.looked_at, see, cx);
        if let Some(budget) = &mut effects.budget {
            budget.measured = found.is_some() || left != 0;
        }
        if let Some(cpu) = found {
            return Some((cpu, PlacementRule::SelectIdleCpu));
        }
        if !self.has_smt() {
            return None;
        }
        let thread = self.select_idle_smt(task, target, effects, see, cx)?;
        Some((thread, PlacementRule::SelectIdleSmtTarget))
    }

    /// `select_idle_core()`: the first core that is idle as a whole, wrapping from `target`.
    fn known_idle_core(
        &self,
        allowed: &CpuMask,
        target: CpuId,
        effects: &mut PlacementEffects,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<CpuId> {
        let shared = self.topology.sd_balance_shared[target.index()]?;
        if !self.has_smt() || !self.idle_core_of(target, effects, cx).possible {
            return None;
        }
        let mut cpus = *allowed;
        for core in allowed.iter_wrapping_from(target) {
            if !cpus.contains(core) {
                continue;
            }
            let threads = self.topology.smt_mask[core.index()];
            effects.looked_at_threads += threads.weight();
            effects.looked_at.cpus = effects.looked_at.cpus.or(&threads);
            if threads.is_subset(&self.idle_mask) {
                self.take_idle_core(core, effects, cx);
                see.candidate(|| self.looked_at(core, "idle core", cx));
                return Some(core);
            }
            cpus = cpus.and_not(&threads);
        }
        effects.no_idle_core = Some(shared);
        None
    }

    /// Returns the number of CPUs of a domain that a 512th of the executing CPU's idle time pays
    /// for.
    fn nr_by_avg_idle(&self, span_weight: u32, this_sd: DomainId, cx: &Context) -> u32 {
        let avg_idle = self.rq[cx.this_cpu].avg_idle / 512;
        let avg_cost = self.topology[this_sd].avg_scan_cost + 1;
        let span_avg = u64::from(span_weight) * avg_idle;
        let nr = if span_avg > 4 * avg_cost { span_avg / avg_cost } else { 4 };
        nr.min(i32::MAX as u64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;
    use crate::config::{Config, RecentUsedCpu, SelectIdleScan};
    use crate::device_tree::DeviceTree;
    use crate::sched::TaskKind;
    use crate::sched::core::WF_TTWU;

    const CPUS: usize = 8;
    /// Time to look at a CPU, ns.
    const LOOK: u64 = 100;

    /// Eight CPUs with one cache, in cores of so many threads.
    fn kernel(threads: usize) -> Kernel {
        let mut machine = DeviceTree::of_domains(&[(CPUS as u16, 1024, &[(1_000_000, 100_000)])]);
        for (number, cpu) in machine.cpus.iter_mut().enumerate() {
            cpu.core = Some((number / threads) as u16);
        }
        let mut config = Config::linux_6_12();
        config.select_idle_scan = SelectIdleScan::SmtLast;
        config.recent_used_cpu = RecentUsedCpu::Waker;
        config.features.sis_util = false;
        config.features.sis_prop = true;
        let mut kernel = Kernel::boot(machine, config);
        kernel.cx.platform.device_tree.path_costs.select_per_cpu = LOOK;
        kernel.cx.platform.device_tree.path_costs.constant_time = true;
        kernel.sched.refresh_path_speed(CpuId(0), &kernel.cpufreq, &mut kernel.cx);
        kernel
    }

    /// A wakeup as the notes describe it, one CPU after the other; what it changes is changed here, too.
    #[derive(Clone, Debug, PartialEq)]
    struct Plain {
        threads: usize,
        busy: [bool; CPUS],
        allowed: [bool; CPUS],
        has_idle_cores: bool,
        avg_idle: u64,
        avg_scan_cost: u64,
        recent: usize,
    }

    impl Plain {
        fn select(&mut self, prev: usize, target: usize) -> usize {
            if !self.busy[target] {
                return target;
            }
            if !self.busy[prev] {
                return prev;
            }
            let recent = self.recent;
            if recent != prev && recent != target && !self.busy[recent] && self.allowed[recent] {
                self.recent = prev;
                return recent;
            }
            let around: Vec<usize> =
                (0..CPUS).map(|i| (target + i) % CPUS).filter(|c| self.allowed[*c]).collect();
            let core = |cpu: usize| {
                let first = cpu / self.threads * self.threads;
                first..first + self.threads
            };
            if self.threads > 1 && self.has_idle_cores {
                for cpu in &around {
                    if core(*cpu).all(|thread| !self.busy[thread]) {
                        return *cpu;
                    }
                }
                self.has_idle_cores = false;
            }
            let idle_time = CPUS as u64 * (self.avg_idle / 512);
            let cost = self.avg_scan_cost + 1;
            let mut nr = if idle_time > 4 * cost { idle_time / cost } else { 4 };
            let (mut looked, mut found, mut cut) = (0, None, false);
            for cpu in &around {
                nr -= 1;
                if nr == 0 {
                    cut = true;
                    break;
                }
                looked += 1;
                if !self.busy[*cpu] {
                    found = Some(*cpu);
                    break;
                }
            }
            if !cut {
                let difference = (looked * LOOK) as i64 - self.avg_scan_cost as i64;
                self.avg_scan_cost = (self.avg_scan_cost as i64 + difference / 8) as u64;
            }
            if let Some(cpu) = found {
                return cpu;
            }
            let sibling = core(target).find(|cpu| self.allowed[*cpu] && !self.busy[*cpu]);
            sibling.filter(|_| self.threads > 1).unwrap_or(target)
        }
    }

    /// The same wakeup in the kernel, and what it leaves behind.
    fn in_kernel(
        kernel: &mut Kernel,
        task: TaskId,
        waker: TaskId,
        before: &Plain,
        prev: usize,
        target: usize,
    ) -> (usize, Plain) {
        let sd = kernel.sched.topology.sd_llc[0].expect("a cache");
        let shared = kernel.sched.topology.sd_llc_shared[0].expect("a cache");
        kernel.sched.topology.shared[shared].has_idle_cores = before.has_idle_cores;
        kernel.sched.topology[sd].avg_scan_cost = before.avg_scan_cost;
        kernel.sched.rq[CpuId(0)].avg_idle = before.avg_idle;
        kernel.sched.tasks[task].recent_used_cpu = CpuId(before.recent as u16);
        let allowed = (0..CPUS).filter(|cpu| before.allowed[*cpu]);
        kernel.sched.tasks[task].cpus_mask = allowed.map(|cpu| CpuId(cpu as u16)).collect();
        for (cpu, busy) in before.busy.iter().enumerate() {
            let cpu = CpuId(cpu as u16);
            kernel.sched.rq[cpu].curr = if *busy { waker } else { TaskId::IDLE };
            kernel.sched.refresh_idle(cpu);
        }
        let mut effects = PlacementEffects::default();
        let (prev, target) = (CpuId(prev as u16), CpuId(target as u16));
        let (cpu, _) = kernel.select_idle_sibling(task, prev, target, &mut effects, &mut ());
        kernel.sched.commit_placement_effects(task, prev, effects, &mut kernel.cx);
        let after = Plain {
            has_idle_cores: kernel.sched.topology.shared[shared].has_idle_cores,
            avg_scan_cost: kernel.sched.topology[sd].avg_scan_cost,
            recent: kernel.sched.tasks[task].recent_used_cpu.index(),
            ..before.clone()
        };
        (cpu.index(), after)
    }

    /// Random states, beside the plain form above. Each way out has to come up.
    #[test]
    fn a_plain_form_finds_the_same_cpu() {
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let (mut scanned, mut cut, mut cores, mut recents, mut changed) = (0, 0, 0, 0, 0);
        for threads in [1, 2, 4] {
            let mut kernel = kernel(threads);
            let (task, waker) =
                (kernel.new_task(None, TaskKind::User), kernel.new_task(None, TaskKind::User));
            for round in 0..3_000 {
                let density = 1 + draw(8);
                let before = Plain {
                    threads,
                    busy: std::array::from_fn(|_| draw(8) < density),
                    allowed: std::array::from_fn(|_| draw(4) != 0),
                    has_idle_cores: draw(2) == 0,
                    avg_idle: draw(2_000_000),
                    avg_scan_cost: draw(1_000),
                    recent: draw(8) as usize,
                };
                let (prev, target) = (draw(8) as usize, draw(8) as usize);
                let mut after = before.clone();
                let expected = after.select(prev, target);
                let got = in_kernel(&mut kernel, task, waker, &before, prev, target);
                assert_eq!(got, (expected, after.clone()), "{round}: {before:?} {prev} {target}");
                scanned += u32::from(after.avg_scan_cost != before.avg_scan_cost);
                let alike = after == before && before.busy[target] && expected == target;
                cut += u32::from(alike);
                cores += u32::from(before.has_idle_cores && !after.has_idle_cores);
                recents += u32::from(after.recent != before.recent);
                changed += u32::from(expected != target && expected != prev);
            }
        }
        for (count, what) in [
            (scanned, "scans"),
            (cut, "scans cut short"),
            (cores, "searches without an idle core"),
            (recents, "uses of the recent CPU"),
            (changed, "other CPUs"),
        ] {
            assert!(count > 100, "{count} {what}");
        }
    }

    /// Up to 5.11 a waker that may pull remembers where it stands; later on it does not.
    #[test]
    fn a_waker_remembers_where_it_stands() {
        for (form, expected) in [(RecentUsedCpu::Waker, 0), (RecentUsedCpu::Prev, 5)] {
            let mut kernel = kernel(1);
            kernel.cx.config.recent_used_cpu = form;
            let (task, waker) =
                (kernel.new_task(None, TaskKind::User), kernel.new_task(None, TaskKind::User));
            kernel.sched.rq[CpuId(0)].curr = waker;
            kernel.sched.tasks[waker].recent_used_cpu = CpuId(5);
            kernel.select_task_rq_fair(task, CpuId(3), WF_TTWU);
            assert_eq!(kernel.sched.tasks[waker].recent_used_cpu, CpuId(expected));
        }
    }
}
