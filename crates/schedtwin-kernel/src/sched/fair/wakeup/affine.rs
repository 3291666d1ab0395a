// SPDX-License-Identifier: GPL-2.0-or-later
//! Which of two CPUs a wakeup begins with: the waker's or the one where the task last ran (`wake_affine`).
//!
//! **Decides** by idleness first, then by load: the waker's CPU must be less loaded with the task than prev without it, by
//! half of the domain's imbalance. A master that wakes many (`wake_wide`) pulls nobody.
//!
//! Patches ask before the loads which cache is idler (`idler_llc.rs`, `idle_core.rs`).
//!
//! Kernel: 6.12.95, 6.1.192 and 7.3.4 kernel/sched/fair.c `record_wakee`, `wake_wide`, `wake_affine`.

use super::PlacementEffects;
use crate::sched::CfsRqId;
use crate::sched::fair::energy::Choice;
use crate::sched::topology::DomainId;
use crate::{Context, Cpuidle, Scheduler};
use schedtwin_types::{CpuId, PlacementRule, TaskId};

impl Scheduler {
    /// `record_wakee()`: how many different tasks the running one wakes.
    #[inline(always)]
    pub(super) fn record_wakee(&mut self, task: TaskId, cpuidle: &mut Cpuidle, cx: &Context) {
        let jiffies = cx.jiffies();
        let hz = cx.config.hz as u64;
        let current = self.rq[cx.this_cpu].curr;
        let (last_wakee, flips, decay_ts) = if current.is_idle() {
            let idle = &mut cpuidle.cpu_mut(cx.this_cpu).wakees;
            (&mut idle.last_wakee, &mut idle.wakee_flips, &mut idle.wakee_flip_decay_ts)
        } else {
            let waker = &mut self.tasks[current];
            (&mut waker.last_wakee, &mut waker.wakee_flips, &mut waker.wakee_flip_decay_ts)
        };
        if jiffies > *decay_ts + hz {
            *flips >>= 1;
            *decay_ts = jiffies;
        }
        if *last_wakee != task {
            *last_wakee = task;
            *flips += 1;
        }
    }

    /// `wake_wide()`: a master that wakes many is not pulled towards them.
    #[inline(always)]
    pub(super) fn wake_wide(&self, task: TaskId, cpuidle: &Cpuidle, cx: &Context) -> bool {
        let current = self.rq[cx.this_cpu].curr;
        let a = if current.is_idle() {
            cpuidle.cpu(cx.this_cpu).wakees.wakee_flips
        } else {
            self.tasks[current].wakee_flips
        };
        let b = self.tasks[task].wakee_flips;
        let factor = self.topology.sd_llc_size[cx.this_cpu.index()];
        let (master, slave) = (a.max(b), a.min(b));
        !(slave < factor || (master as u64) < slave as u64 * factor as u64)
    }

    /// `wake_affine()`: this CPU or prev, or a third one that a patch knows to be idle?
    pub(super) fn wake_affine(
        &self,
        sd: DomainId,
        task: TaskId,
        this: CpuId,
        prev: CpuId,
        sync: bool,
        effects: &mut PlacementEffects,
        cx: &Context,
    ) -> Choice {
        let features = &cx.config.features;
        let early = if cx.keeps_idle_core() {
            self.wake_affine_by_idle_core(task, this, prev, sync, effects, cx)
        } else {
            let idle =
                if features.wa_idle { self.wake_affine_idle(this, prev, sync) } else { None };
            idle.or_else(|| self.prefer_idler_llc(this, prev, sync, cx))
        };
        if let Some(choice) = early {
            return choice;
        }
        if features.wa_weight && self.wake_affine_weight(sd, task, this, prev, sync, cx) {
            return (this, PlacementRule::WaWeight);
        }
        (prev, PlacementRule::WakeAffinePrev)
    }

    /// `wake_affine_idle()`.
    fn wake_affine_idle(&self, this: CpuId, prev: CpuId, sync: bool) -> Option<Choice> {
        if self.available_idle_cpu(this) && self.topology.cpus_share_cache(this, prev) {
            return Some(if self.available_idle_cpu(prev) {
                (prev, PlacementRule::WaIdleBothIdle)
            } else {
                (this, PlacementRule::WaIdleWakerIdle)
            });
        }
        if sync && self.nr_running_but_delayed(this) == 1 {
            return Some((this, PlacementRule::WaIdleSync));
        }
        self.available_idle_cpu(prev).then_some((prev, PlacementRule::WaIdlePrevIdle))
    }

    /// The tasks of a CPU, without those that sleep and wait for their dequeue.
    fn nr_running_but_delayed(&self, cpu: CpuId) -> u32 {
        let cfs = &self.cfs[CfsRqId::root(cpu)];
        self.rq[cpu].nr_running - (cfs.h_nr_queued - cfs.h_nr_runnable)
    }

    /// `wake_affine_weight()`: whether the waker's CPU would be less loaded.
    fn wake_affine_weight(
        &self,
        sd: DomainId,
        task: TaskId,
        this: CpuId,
        prev: CpuId,
        sync: bool,
        cx: &Context,
    ) -> bool {
        let bias = cx.config.features.wa_bias;
        // Products and sums wrap as the kernel's do: with shares of nested groups they can exceed 63 bits.
        let mut this_load = self.cpu_load(this) as i64;
        if sync {
            if cx.keeps_idle_core() && self.nr_running_but_delayed(this) <= 1 {
                return true;
            }
            let current = self.rq[this].curr;
            let current_load =
                if current.is_idle() { 0 } else { self.task_h_load(current, cx) as i64 };
            if current_load > this_load {
                return true;
            }
            this_load = this_load.wrapping_sub(current_load);
        }
        let task_load = self.task_h_load(task, cx) as i64;
        this_load = this_load.wrapping_add(task_load);
        let mut prev_load = (self.cpu_load(prev) as i64).wrapping_sub(task_load);
        if bias {
            let pct = self.topology.domains[sd.0 as usize].imbalance_pct as i64;
            this_load = this_load.wrapping_mul(100);
            prev_load = prev_load.wrapping_mul(100 + (pct - 100) / 2);
        }
        this_load = this_load.wrapping_mul(self.capacity_of(prev) as i64);
        prev_load = prev_load.wrapping_mul(self.capacity_of(this) as i64);
        if sync {
            prev_load = prev_load.wrapping_add(1);
        }
        this_load < prev_load
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::TaskKind;
    use crate::sched::root_domain::tests::kernel;

    const OPPS: &[(u32, u64)] = &[(1_000_000, 100_000)];

    /// Equal CPUs, this load 1024, prev's 1024 of which the task is 512: the task stays.
    #[test]
    fn wake_affine_weight_is_biased_towards_prev() {
        let mut kernel = kernel(&[(4, 1024, OPPS)]);
        let task = kernel.new_task(None, TaskKind::User);
        let se = kernel.sched.tasks[task].se;
        kernel.sched.se[se].avg.load_avg = 512;
        let (this, prev) = (CpuId(1), CpuId(0));
        let sd = kernel.sched.topology.base[1].unwrap();
        let mut moves = |this_load: u64, prev_load: u64, sync: bool| {
            kernel.sched.cfs[CfsRqId::root(this)].avg.load_avg = this_load;
            kernel.sched.cfs[CfsRqId::root(prev)].avg.load_avg = prev_load;
            kernel.sched.wake_affine_weight(sd, task, this, prev, sync, &kernel.cx)
        };
        // (this + 512) * 100 < (prev − 512) * 108.
        assert!(!moves(1024, 1024, false));
        assert!(!moves(0, 986, false));
        assert!(moves(0, 987, false));
        // A tie goes to the waker's CPU only with sync: 1080 * 100 = 1000 * 108.
        assert!(!moves(568, 1512, false));
        assert!(moves(568, 1512, true));
    }

    /// Loads of nested groups can reach any number (`hunt/found/load-of-nested-groups.toml`); then the products are cut to
    /// 64 bits and compared with their sign, as C does.
    #[test]
    fn wake_affine_weight_wraps_as_c_does() {
        let mut kernel = kernel(&[(4, 1024, OPPS)]);
        let task = kernel.new_task(None, TaskKind::User);
        let (this, prev) = (CpuId(1), CpuId(0));
        let sd = kernel.sched.topology.base[1].unwrap();
        let cut = |wide: i128| wide as i64;
        let mut unlike_wide = 0;
        for this_load in [0, 1 << 46, 1 << 47, 1 << 57, u64::MAX] {
            for prev_load in [0, 1 << 46, 1 << 47, 1 << 57, u64::MAX] {
                for own in [0, 1 << 20, u64::MAX] {
                    kernel.sched.cfs[CfsRqId::root(this)].avg.load_avg = this_load;
                    kernel.sched.cfs[CfsRqId::root(prev)].avg.load_avg = prev_load;
                    let se = kernel.sched.tasks[task].se;
                    kernel.sched.se[se].avg.load_avg = own;
                    let signed = |load: u64| i128::from(load as i64);
                    let left = (signed(this_load) + signed(own)) * 100 * 1024;
                    let right = (signed(prev_load) - signed(own)) * 108 * 1024;
                    let moves =
                        kernel.sched.wake_affine_weight(sd, task, this, prev, false, &kernel.cx);
                    assert_eq!(moves, cut(left) < cut(right), "{this_load} {prev_load} {own}");
                    unlike_wide += u32::from(moves != (left < right));
                }
            }
        }
        assert!(unlike_wide > 10, "only {unlike_wide} of the loads are too large for 63 bits");
    }

    /// Each CPU's idle task remembers its own wakees.
    #[test]
    fn idle_tasks_do_not_share_their_wakees() {
        let mut kernel = kernel(&[(2, 1024, OPPS)]);
        let (a, b) = (kernel.new_task(None, TaskKind::User), kernel.new_task(None, TaskKind::User));
        for _ in 0..8 {
            (kernel.cx.this_cpu, kernel.cx.now) = (CpuId(0), 1);
            kernel.sched.record_wakee(a, &mut kernel.cpuidle, &kernel.cx);
            kernel.cx.this_cpu = CpuId(1);
            kernel.sched.record_wakee(b, &mut kernel.cpuidle, &kernel.cx);
        }
        assert_eq!([0, 1].map(|c| kernel.cpuidle.cpu(CpuId(c)).wakees.wakee_flips), [1, 1]);
    }

    /// A master with many wakees is not pulled towards them; factor is the cache's CPUs.
    #[test]
    fn wake_wide() {
        let mut kernel = kernel(&[(4, 1024, OPPS)]);
        let (master, slave) =
            (kernel.new_task(None, TaskKind::User), kernel.new_task(None, TaskKind::User));
        kernel.sched.rq[CpuId(0)].curr = master;
        for (m, s, wide) in
            [(0, 0, false), (100, 3, false), (15, 4, false), (16, 4, true), (4, 16, true)]
        {
            kernel.sched.tasks[master].wakee_flips = m;
            kernel.sched.tasks[slave].wakee_flips = s;
            assert_eq!(kernel.sched.wake_wide(slave, &kernel.cpuidle, &kernel.cx), wide, "{m} {s}");
        }
    }
}
