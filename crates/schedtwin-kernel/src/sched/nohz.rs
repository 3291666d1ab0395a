// SPDX-License-Identifier: GPL-2.0-or-later
//! Balancing for CPUs whose tick is stopped.
//!
//! An idle CPU without a tick neither pulls tasks nor lets its averages decay. So a busy CPU's tick
//! asks one of them, when there may be something to pull or blocked load to age, to wake up and do
//! both for all of them (the *idle load balancer*, ILB).
//!
//! ```text
//! CPU 0 (busy)   tick: nohz_balancer_kick ── IPI ──┐
//! CPU 3 (idle)                                     ▼ nohz_csd_func, softirq: balances 4, 5, .. , 3
//! ```
//!
//! - [`Nohz::idle_cpus_mask`]: CPUs that stopped their tick in idle. A CPU leaves it at its first busy
//!   tick, not when it wakes up; so does it count as busy again (`nr_busy_cpus` of its cache domain).
//! - [`Nohz::has_blocked`], [`Nohz::next_blocked`]: some of them may have load to age, every 32 ms.
//! - [`Nohz::next_balance`]: when the first of them is due; `needs_update`: that is to be computed anew.
//!
//! A CPU that goes idle may itself age the others' load, before it sleeps ([`Kernel::nohz_run_idle_balance`]).
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/fair.c `nohz_balancer_kick` … `nohz_newidle_balance`, core.c
//! `nohz_csd_func`.
//! Differences: all CPUs do housekeeping. While the balancer works nobody can
//! wake a task on it, so it is interrupted only by what it pulled for itself.

use crate::config::{CheckMisfitStatus, FindNewIlb};
use crate::sched::fair::balance::{CpuIdleType, msecs_to_jiffies};
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, CpuMask, IpiKind, MAX_CPUS};

/// Balance.
const NOHZ_BALANCE_KICK: u32 = 1 << 0;
/// Age blocked load.
const NOHZ_STATS_KICK: u32 = 1 << 1;
/// Age blocked load before going idle.
const NOHZ_NEWILB_KICK: u32 = 1 << 2;
/// Compute `next_balance`.
const NOHZ_NEXT_KICK: u32 = 1 << 3;
/// The flags for which an interrupt is sent.
const NOHZ_KICK_MASK: u32 = NOHZ_BALANCE_KICK | NOHZ_STATS_KICK | NOHZ_NEXT_KICK;

/// Milliseconds between agings of blocked load: PELT's half-life (`LOAD_AVG_PERIOD`).
const BLOCKED_LOAD_PERIOD_MS: u64 = 32;

/// The state that all CPUs share (`nohz`).
#[derive(Clone, Debug)]
pub struct Nohz {
    /// CPUs that are idle without a tick, or were until their next busy tick.
    pub idle_cpus_mask: CpuMask,
    /// Their number.
    pub nr_cpus: u32,
    /// Some of them may have load to age.
    pub has_blocked: bool,
    /// `next_balance` has to be computed anew: a CPU has joined.
    pub needs_update: bool,
    /// Jiffy of the next balance for the first of them.
    pub next_balance: u64,
    /// Jiffy after which blocked load is aged.
    pub next_blocked: u64,
    /// Per CPU: what its softirq is to do (`rq->nohz_idle_balance`).
    idle_balance: [u8; MAX_CPUS],
}

impl Default for Nohz {
    fn default() -> Nohz {
        Nohz {
            idle_cpus_mask: CpuMask::EMPTY,
            nr_cpus: 0,
            has_blocked: false,
            needs_update: false,
            next_balance: 0,
            next_blocked: 0,
            idle_balance: [0; MAX_CPUS],
        }
    }
}

impl Nohz {
    /// Nobody is idle yet.
    pub fn new() -> Nohz {
        Nohz::default()
    }
}

impl Scheduler {
    /// `nohz_balancer_kick()`: at the tick of `cpu`, wake an idle CPU to balance?
    pub(crate) fn nohz_balancer_kick(
        &mut self,
        cpu: CpuId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        if self.rq[cpu].idle_balance {
            return;
        }
        self.nohz_balance_exit_idle(cpu, cx);
        if self.nohz.nr_cpus == 0 {
            return;
        }
        let jiffies = cx.jiffies();
        let mut flags = 0;
        if self.nohz.has_blocked && jiffies > self.nohz.next_blocked {
            flags = NOHZ_STATS_KICK;
        }
        if jiffies >= self.nohz.next_balance && self.idle_cpus_could_help(cpu, cx) {
            flags = NOHZ_STATS_KICK | NOHZ_BALANCE_KICK;
        }
        if self.nohz.needs_update {
            flags |= NOHZ_NEXT_KICK;
        }
        if flags != 0 {
            self.kick_ilb(flags, cpuidle, cx);
        }
    }

    /// Whether `cpu` has, or is near, something that an idle CPU might pull.
    fn idle_cpus_could_help(&self, cpu: CpuId, cx: &Context) -> bool {
        let rq = &self.rq[cpu];
        if rq.nr_running >= 2 {
            return true;
        }
        if let Some(sd) = self.topology.base[cpu.index()]
            && self.h_nr_running(cpu, cx) >= 1
            && self.check_cpu_capacity(cpu, sd)
        {
            return true;
        }
        // A CPU that is preferred to this one may be idle.
        if let Some(sd) = self.topology.sd_asym_packing[cpu.index()] {
            let mut idle = self.topology[sd].span.and(&self.nohz.idle_cpus_mask).iter();
            if idle.any(|other| self.is_preferred_idle(sd, other, cpu, cx)) {
                return true;
            }
        }
        // Where capacities differ, cache domains do not matter.
        if let Some(sd) = self.sd_asym_cpucapacity(cpu) {
            // check_misfit_status()
            let can_be_helped = cx.config.check_misfit_status == CheckMisfitStatus::AnyMisfit
                || rq.arch_capacity < self.rd.max_cpu_capacity
                || self.check_cpu_capacity(cpu, sd);
            return rq.misfit_task_load != 0 && can_be_helped;
        }
        // Two busy CPUs may share a cache while others have one for themselves.
        let shared = self.topology.sd_llc_shared[cpu.index()];
        shared.is_some_and(|shared| self.topology.shared[shared].nr_busy_cpus > 1)
    }

    /// `kick_ilb()`.
    fn kick_ilb(&mut self, flags: u32, cpuidle: &mut Cpuidle, cx: &mut Context) {
        if flags & NOHZ_BALANCE_KICK != 0 {
            self.nohz.next_balance = cx.jiffies() + 1;
        }
        // find_new_ilb()
        let mut idle = self.nohz.idle_cpus_mask.and(&self.idle_mask);
        idle.remove(cx.this_cpu);
        let on_idle_core = match cx.config.find_new_ilb {
            FindNewIlb::IdleCore if self.has_smt() => {
                idle.iter().find(|cpu| self.is_core_idle(*cpu))
            }
            _ => None,
        };
        let Some(ilb) = on_idle_core.or(idle.lowest()) else { return };
        let before = self.rq[ilb].nohz_flags;
        if before & flags == flags {
            return;
        }
        self.rq[ilb].nohz_flags = before | flags;
        // The CPU that sets the first flag sends the interrupt.
        if before & NOHZ_KICK_MASK == 0 {
            self.send_ipi(ilb, IpiKind::NohzKick, cpuidle, cx);
        }
    }

    /// `nohz_csd_func()`: the kick has arrived at `cpu`.
    pub(crate) fn nohz_csd_func(&mut self, cpu: CpuId) {
        let flags = self.rq[cpu].nohz_flags & (NOHZ_KICK_MASK | NOHZ_NEWILB_KICK);
        let idle = self.idle_cpu(cpu);
        let rq = &mut self.rq[cpu];
        rq.nohz_flags &= !flags;
        rq.idle_balance = idle;
        if idle {
            rq.sched_softirq = true;
            self.nohz.idle_balance[cpu.index()] = flags as u8;
        }
    }

    /// `nohz_balance_enter_idle()`: `cpu` stops its tick in idle.
    pub(crate) fn nohz_balance_enter_idle(&mut self, cpu: CpuId, cx: &Context) {
        self.rq[cpu].has_blocked_load = true;
        if !self.rq[cpu].nohz_tick_stopped {
            if self.topology.base[cpu.index()].is_none() {
                return;
            }
            self.rq[cpu].nohz_tick_stopped = true;
            self.nohz.idle_cpus_mask.insert(cpu);
            self.nohz.nr_cpus += 1;
            self.set_cpu_sd_state(cpu, true, cx);
            self.nohz.needs_update = true;
        }
        self.nohz.has_blocked = true;
    }

    /// `nohz_balance_exit_idle()`: the first busy tick of `cpu` after that.
    pub(crate) fn nohz_balance_exit_idle(&mut self, cpu: CpuId, cx: &Context) {
        if !self.rq[cpu].nohz_tick_stopped {
            return;
        }
        self.rq[cpu].nohz_tick_stopped = false;
        self.nohz.idle_cpus_mask.remove(cpu);
        self.nohz.nr_cpus -= 1;
        self.set_cpu_sd_state(cpu, false, cx);
    }

    /// `set_cpu_sd_state_idle()`, `set_cpu_sd_state_busy()`: counts the CPU in its cache domain.
    fn set_cpu_sd_state(&mut self, cpu: CpuId, idle: bool, cx: &Context) {
        let Some(sd) = self.topology.sd_llc[cpu.index()] else { return };
        let domain = &mut self.topology[sd];
        if domain.nohz_idle == idle {
            return;
        }
        domain.nohz_idle = idle;
        if cx.keeps_idle_core() {
            return self.count_at_tick(cpu, idle);
        }
        let domain = &self.topology[sd];
        let shared = domain.shared.expect("a domain that shares a cache has a shared object");
        let busy = &mut self.topology.shared[shared].nr_busy_cpus;
        *busy = if idle { *busy - 1 } else { *busy + 1 };
    }

    /// `nohz_newidle_balance()`: newidle balancing found nothing; if the CPU has time, let it age the
    /// load of others before it sleeps.
    pub(crate) fn nohz_newidle_balance(&mut self, cpu: CpuId, cx: &Context) {
        if self.rq[cpu].avg_idle < cx.config.migration_cost
            || !self.nohz.has_blocked
            || cx.jiffies() < self.nohz.next_blocked
        {
            return;
        }
        self.rq[cpu].nohz_flags |= NOHZ_NEWILB_KICK;
    }
}

impl Kernel {
    /// `nohz_idle_balance()`: in the softirq of `cpu`, balances for others if it was kicked and is
    /// still idle. `true`: that was it.
    pub(crate) fn nohz_idle_balance(&mut self, cpu: CpuId, idle: CpuIdleType) -> bool {
        let flags = std::mem::take(&mut self.sched.nohz.idle_balance[cpu.index()]) as u32;
        if flags == 0 || idle != CpuIdleType::Idle {
            return false;
        }
        self._nohz_idle_balance(cpu, flags);
        true
    }

    /// `_nohz_idle_balance()`, for comparisons with the kernel's own C.
    #[cfg(any(test, feature = "conformance"))]
    pub(crate) fn walk_for_idle_cpus(&mut self, this_cpu: CpuId, flags: u32) {
        self._nohz_idle_balance(this_cpu, flags);
    }

    /// `_nohz_idle_balance()`.
    fn _nohz_idle_balance(&mut self, this_cpu: CpuId, flags: u32) {
        let (stats, next) = (flags & NOHZ_STATS_KICK != 0, flags & NOHZ_NEXT_KICK != 0);
        let jiffies = self.cx.jiffies();
        let far = jiffies + 60 * self.cx.config.hz as u64;
        let mut next_balance = far;
        let mut has_blocked_load = false;
        // A CPU that goes idle from now on sets these again.
        if stats {
            self.sched.nohz.has_blocked = false;
        }
        if next {
            self.sched.nohz.needs_update = false;
        }
        let mut aborted = false;
        // This CPU last, so that the others can pull first.
        for cpu in self.sched.nohz.idle_cpus_mask.iter_wrapping_from(CpuId(this_cpu.0 + 1)) {
            if !self.sched.idle_cpu(cpu) {
                continue;
            }
            let has_work =
                !self.sched.idle_cpu(this_cpu) || self.cx.config.bugs.ilb_abort_by_need_resched;
            if has_work && self.sched.rq[this_cpu].need_resched {
                has_blocked_load |= stats;
                self.sched.nohz.needs_update |= next;
                aborted = true;
                break;
            }
            if stats {
                has_blocked_load |= self.update_nohz_stats(cpu);
            }
            if jiffies >= self.sched.rq[cpu].next_balance {
                self.sched.update_rq_clock(cpu, &self.cx);
                if flags & NOHZ_BALANCE_KICK != 0 {
                    self.sched_balance_domains(cpu, CpuIdleType::Idle);
                }
            }
            next_balance = next_balance.min(self.sched.rq[cpu].next_balance);
        }
        if !aborted {
            if next_balance < far {
                self.sched.nohz.next_balance = next_balance;
            }
            if stats {
                let period = msecs_to_jiffies(BLOCKED_LOAD_PERIOD_MS, self.cx.config.hz as u64);
                self.sched.nohz.next_blocked = jiffies + period;
            }
        }
        if has_blocked_load {
            self.sched.nohz.has_blocked = true;
        }
    }

    /// `update_nohz_stats()`: ages the load of a CPU, at most once a jiffy. `true`: some is left.
    fn update_nohz_stats(&mut self, cpu: CpuId) -> bool {
        if !self.sched.rq[cpu].has_blocked_load || !self.sched.nohz.idle_cpus_mask.contains(cpu) {
            return false;
        }
        if self.cx.jiffies() <= self.sched.rq[cpu].last_blocked_load_update_tick {
            return true;
        }
        self.read_blocked_averages(cpu);
        self.sched.rq[cpu].has_blocked_load
    }

    /// `nohz_run_idle_balance()`: in the idle loop of `cpu`, before it sleeps.
    pub fn nohz_run_idle_balance(&mut self, cpu: CpuId) {
        let flags = self.sched.rq[cpu].nohz_flags;
        self.sched.rq[cpu].nohz_flags = flags & !NOHZ_NEWILB_KICK;
        // With a kick on its way the softirq will do it.
        if flags == NOHZ_NEWILB_KICK && !self.sched.rq[cpu].need_resched {
            self._nohz_idle_balance(cpu, NOHZ_STATS_KICK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AsymPacking;
    use crate::config::CheckMisfitStatus::{AnyMisfit, IfItCanBeHelped};
    use crate::sched::TaskKind;
    use crate::sched::root_domain::tests::kernel;
    use crate::sched::topology::parts::{self, Part};

    /// CPU 2 is preferred to CPU 0, but the other thread of its core is busy: that is a reason to kick it up to 6.4 only.
    #[test]
    fn a_preferred_cpu_needs_an_idle_core() {
        let core = |core| Part::of(2, 1024).core(core);
        for (form, helps) in [(AsymPacking::BusyThreads, true), (AsymPacking::IdleCore, false)] {
            let mut k = parts::boot(&[core(0), core(1)], false);
            k.cx.config.asym_packing = form;
            let task = k.new_task(None, TaskKind::User);
            for cpu in [0, 3].map(CpuId) {
                (k.sched.rq[cpu].curr, k.sched.rq[cpu].nr_running) = (task, 1);
                k.sched.refresh_idle(cpu);
            }
            let cpu = CpuId(0);
            k.sched.topology.asym_priority[2] = 1;
            let sd = k.sched.topology.domains_of(cpu).last();
            k.sched.topology.sd_asym_packing[0] = sd;
            k.sched.topology.sd_llc_shared[0] = None;
            k.sched.nohz.idle_cpus_mask.insert(CpuId(2));
            assert_eq!(k.sched.idle_cpus_could_help(cpu, &k.cx), helps, "{form:?}");
        }
    }

    /// A misfit on the biggest CPU is a reason to kick an idle one in 6.12, in 6.1 only if other classes
    /// take much of that CPU.
    #[test]
    fn a_misfit_needs_a_bigger_cpu() {
        let opps: &[(u32, u64)] = &[(1_000_000, 100_000)];
        let table = [
            // CPU, capacity left, helped in 6.1, in 6.12
            (0, 300, true, true),
            (1, 1024, false, true),
            (1, 800, true, true),
        ];
        for (cpu, capacity, older, newer) in table {
            for (point, expected) in [(IfItCanBeHelped, older), (AnyMisfit, newer)] {
                let mut k = kernel(&[(1, 300, opps), (1, 1024, opps)]);
                k.cx.config.check_misfit_status = point;
                let cpu = CpuId(cpu);
                assert!(!k.sched.idle_cpus_could_help(cpu, &k.cx));
                k.sched.rq[cpu].misfit_task_load = 1;
                k.sched.rq[cpu].cpu_capacity = capacity;
                assert_eq!(
                    k.sched.idle_cpus_could_help(cpu, &k.cx),
                    expected,
                    "{point:?} {cpu} {capacity}"
                );
            }
        }
    }
}
