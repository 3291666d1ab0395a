// SPDX-License-Identifier: GPL-2.0-or-later
//! Users' placement of fair tasks.
//!
//! Asked before EAS and `select_idle_sibling()`, about tasks that may run on more than one CPU. A
//! policy without an opinion answers `None`, and the kernel goes on as if nobody had been asked. A
//! CPU that the policy looked at costs the same as one in `select_idle_cpu()`
//! (`select_per_cpu_ns`), once.

use super::boxed;
use crate::Kernel;
use crate::observe::DecisionObserver;
use crate::sched::core::{WF_EXEC, WF_FORK, WF_SYNC};
use crate::sched::pelt;
use schedtwin_types::{CpuId, CpuMask, Ns, PlacementRule, Policy, TaskId};
use std::cell::Cell;

/// Why a task is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementKind {
    /// It wakes up.
    Wakeup,
    /// It has just been made.
    Fork,
    /// It executes another program.
    Exec,
}

/// The task to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementTask {
    /// Which.
    pub task: TaskId,
    /// The CPU it last ran on (its parent's if it is new).
    pub prev: CpuId,
    /// `util_avg`, aged to now as far as its queue is.
    pub util_avg: u64,
    /// `task_util_est()`: the higher of `util_avg` and what it needed when it last slept.
    pub util_est: u64,
    /// Nice value.
    pub nice: i8,
    /// Scheduling policy.
    pub policy: Policy,
    /// Where it may run.
    pub allowed: CpuMask,
}

/// The known state of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeupCpu {
    /// Which.
    pub cpu: CpuId,
    /// Nothing runs or waits there (`idle_cpu()`).
    pub idle: bool,
    /// Only `SCHED_IDLE` tasks are there.
    pub sched_idle: bool,
    /// The idle state it is in and how long leaving that takes at most, nanoseconds; `None` if it is in none.
    pub idle_state: Option<(u8, Ns)>,
    /// Runnable tasks of all classes.
    pub nr_running: u32,
    /// Utilisation by fair tasks, the task in question left out.
    pub util: u64,
    /// The capacity left for fair tasks (`capacity_of()`).
    pub capacity: u64,
    /// Its capacity at the highest frequency, 1..=1024.
    pub capacity_max: u64,
}

/// The input of a placement, and the questions that it may ask.
pub struct WakeupView<'a> {
    /// Why the task is placed.
    pub kind: PlacementKind,
    /// The task.
    pub task: PlacementTask,
    /// The CPU that executes the wakeup or fork.
    pub this_cpu: CpuId,
    /// The waker says that it is about to sleep (`WF_SYNC`).
    pub sync: bool,
    kernel: &'a Kernel,
    aged: bool,
    asked: Cell<CpuMask>,
}

impl WakeupView<'_> {
    /// Looks at a CPU.
    pub fn cpu(&self, cpu: CpuId) -> WakeupCpu {
        let mut asked = self.asked.get();
        asked.insert(cpu);
        self.asked.set(asked);
        let kernel = self.kernel;
        let idle = kernel.cpuidle.cpu(cpu);
        let latency = |state: u8| (state, idle.states[usize::from(state)].exit_latency_ns);
        WakeupCpu {
            cpu,
            idle: kernel.sched.available_idle_cpu(cpu),
            sched_idle: kernel.sched.sched_idle_cpu(cpu),
            idle_state: idle.entered.map(latency),
            nr_running: kernel.sched.rq(cpu).nr_running,
            util: kernel.sched.cpu_util_without(cpu, self.task.task, &kernel.cx),
            capacity: kernel.sched.capacity_of(cpu),
            capacity_max: kernel.sched.arch_scale_cpu_capacity(cpu),
        }
    }

    /// The CPUs that the task may run on, from CPU 0 up, each looked at when its turn comes.
    pub fn cpus(&self) -> impl Iterator<Item = WakeupCpu> {
        self.task.allowed.iter().map(|cpu| self.cpu(cpu))
    }

    /// Whether two CPUs share their last cache.
    pub fn shares_cache(&self, a: CpuId, b: CpuId) -> bool {
        self.kernel.sched.topology().cpus_share_cache(a, b)
    }

    /// Whether some CPU has more to do than it can (`rd->overutilized`); EAS then stands back.
    pub fn overutilized(&self) -> bool {
        self.kernel.sched.rd().overutilized
    }

    /// By how much the energy of a CPU's performance domain grows with the task there, by the energy model,
    /// in its unit (cost × utilisation). `None` where EAS would not be asked: no energy model,
    /// overutilized, or the task does not wake up.
    pub fn energy_delta(&self, cpu: CpuId) -> Option<u64> {
        if !self.aged {
            return None;
        }
        let estimate = |placed| {
            self.kernel.sched.energy_estimate(
                self.task.task,
                self.task.prev,
                cpu,
                placed,
                &self.kernel.cx,
            )
        };
        Some(estimate(true)?.energy.saturating_sub(estimate(false)?.energy))
    }
}

/// The decision of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementDecision {
    /// Where the task goes; one of [`PlacementTask::allowed`].
    pub cpu: CpuId,
    /// Why, in a few words.
    pub rule: &'static str,
}

/// Chooses the CPU of fair tasks that wake up, start or execute (`select_task_rq_fair()`).
///
/// ```
/// use schedtwin_kernel::policy::{Placement, PlacementDecision, WakeupView};
///
/// /// Back to prev if that is idle; else the kernel decides.
/// #[derive(Clone)]
/// struct Home;
///
/// impl Placement for Home {
///     fn select_task_rq(&mut self, view: &WakeupView) -> Option<PlacementDecision> {
///         let prev = view.cpu(view.task.prev);
///         prev.idle.then_some(PlacementDecision { cpu: prev.cpu, rule: "prev is idle" })
///     }
/// }
/// ```
pub trait Placement: ClonePlacement + Send + Sync {
    /// Where to? `None`: as the kernel would.
    fn select_task_rq(&mut self, view: &WakeupView) -> Option<PlacementDecision>;
}

boxed!(Placement, ClonePlacement, CustomPlacement);

impl Kernel {
    /// Asks the user's placement. `aged`: EAS is in charge, so the task's signals have been aged.
    #[cold]
    pub(crate) fn custom_placement(
        &mut self,
        task: TaskId,
        prev: CpuId,
        wake_flags: u32,
        aged: bool,
        see: &mut impl DecisionObserver,
    ) -> Option<(CpuId, PlacementRule)> {
        let mut custom = self.own.placement.take()?;
        let (load_avg, _) = self.sched.synced_load_avg(task);
        let t = self.sched.task(task);
        let view = WakeupView {
            kind: match wake_flags {
                flags if flags & WF_FORK != 0 => PlacementKind::Fork,
                flags if flags & WF_EXEC != 0 => PlacementKind::Exec,
                _ => PlacementKind::Wakeup,
            },
            task: PlacementTask {
                task,
                prev,
                util_avg: load_avg.util_avg,
                util_est: pelt::task_util_est(&load_avg),
                nice: t.nice,
                policy: t.policy,
                allowed: t.cpus_mask,
            },
            this_cpu: self.cx.this_cpu,
            sync: wake_flags & WF_SYNC != 0,
            kernel: self,
            aged: aged && self.sched.is_energy_aware(),
            asked: Cell::new(CpuMask::EMPTY),
        };
        let decision = custom.policy.select_task_rq(&view);
        let asked = view.asked.get();
        asked.iter().for_each(|cpu| see.candidate(|| self.sched.looked_at(cpu, "asked", &self.cx)));
        let name = &custom.name;
        if let Some(PlacementDecision { cpu, .. }) = decision {
            let allowed = self.sched.task(task).cpus_mask.contains(cpu);
            assert!(allowed, "placement `{name}` chose {cpu:?}, where {task:?} may not run");
        }
        self.own.placement = Some(custom);
        self.sched.charge(
            self.cx.platform.device_tree.path_costs.select_per_cpu * u64::from(asked.weight()),
            &mut self.cx,
        );
        decision.map(|decision| (decision.cpu, PlacementRule::Custom(decision.rule)))
    }
}
