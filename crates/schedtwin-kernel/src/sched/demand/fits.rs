// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether a CPU is large enough for a utilisation and the clamps that go with it.
//!
//! **Idea.** A CPU should keep a fifth of its capacity, so that a task that grows does not fill it before
//! somebody notices. Clamps change the question: a capped task fits wherever its cap is reached, and a boosted one
//! does not fit where its minimum cannot be. Sum aggregation asks instead whether the clamped utilisation fits, and
//! if it does not, whether the real one does.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `util_fits_cpu`, `task_fits_cpu`; with sums as posted (see `uclamp/sum.rs`).

use super::uclamp::RqClamps;
use super::uclamp::max::Clamps;
use crate::sched::pelt;
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, TaskId};

/// The fit of a CPU for a task or a queue (`util_fits_cpu()`), in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fits {
    /// 0 there: it is too small.
    No,
    /// −1 there: the capacity suffices, but the CPU cannot be as fast as the minimum wants.
    TooSlow,
    /// 1 there.
    Yes,
}

impl Fits {
    #[inline(always)]
    pub(super) fn of(fits: bool) -> Fits {
        if fits { Fits::Yes } else { Fits::No }
    }
}

/// The demand of a task on the CPU that runs it.
#[derive(Clone, Copy, Debug)]
pub struct TaskDemand {
    util: u64,
    wish: Wish,
}

/// The form in which a task's clamps count in the search for a CPU.
#[derive(Clone, Copy, Debug)]
enum Wish {
    /// Max aggregation: they are looked at beside the utilisation.
    Clamps(Clamps),
    /// Sum aggregation: the clamped utilisation, `task_util_est_uclamp()`.
    Clamped(u64),
}

impl TaskDemand {
    /// `task_util_est()`, 0..=1024.
    #[inline(always)]
    pub fn util(&self) -> u64 {
        self.util
    }

    /// It uses nothing, and wants no speed.
    #[inline(always)]
    pub fn is_nothing(&self) -> bool {
        match self.wish {
            Wish::Clamps(clamps) => self.util == 0 && clamps.min == 0,
            Wish::Clamped(util) => util == 0,
        }
    }

    /// Begins a search through the CPUs of a performance domain.
    #[inline(always)]
    pub(crate) fn search(&self) -> FitSearch {
        let own = match self.wish {
            Wish::Clamps(clamps) => clamps,
            Wish::Clamped(_) => Clamps::NONE,
        };
        FitSearch { own, clamps: own }
    }

    /// A demand that no task has, for tests and comparisons.
    #[cfg(any(test, feature = "conformance"))]
    pub(crate) fn of_clamps(util: u64, min: u32, max: u32) -> TaskDemand {
        TaskDemand { util, wish: Wish::Clamps(Clamps { min, max }) }
    }
}

/// A task that looks through a performance domain, CPU after CPU ([`Kernel::fits_beside`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FitSearch {
    own: Clamps,
    /// The clamps that the last CPU was judged with.
    clamps: Clamps,
}

impl Scheduler {
    /// `arch_scale_cpu_capacity()`.
    #[inline(always)]
    pub(crate) fn arch_scale_cpu_capacity(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].arch_capacity
    }

    /// `capacity_of()`.
    #[inline(always)]
    pub(crate) fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].cpu_capacity
    }

    /// `util_fits_cpu()` for a task: how well `cpu` suits it.
    #[inline(always)]
    pub(crate) fn fits_cpu(&self, task: &TaskDemand, cpu: CpuId) -> Fits {
        match task.wish {
            Wish::Clamps(clamps) => self.util_fits_cpu(task.util, clamps, cpu),
            Wish::Clamped(clamped) => self.clamped_util_fits_cpu(task.util, clamped, cpu),
        }
    }

    /// Whether `cpu` is used up by its fair tasks, whose utilisation `util` is. A queue that is capped to what the CPU
    /// can do never uses it up.
    #[inline(always)]
    pub(crate) fn util_exceeds(&self, util: u64, cpu: CpuId, cx: &Context) -> bool {
        if !self.uclamp_is_used() || self.clamps_have_margin() {
            return !self.fits_capacity(util, cpu);
        }
        match &*self.rq[cpu].uclamp {
            RqClamps::Max(rq) => self.util_fits_cpu(util, rq.clamps(), cpu) == Fits::No,
            RqClamps::Sum(sums) => {
                let clamped = self.cpu_util_uclamp(cpu, sums, None, None, false, cx);
                self.clamped_util_fits_cpu(util, clamped, cpu) == Fits::No
            }
        }
    }

    /// Returns the fit of `cpu` for a task that EAS puts there, beside the tasks that are there,
    /// and the capacity that would be left.
    #[inline(always)]
    pub(crate) fn fits_beside(
        &self,
        search: &mut FitSearch,
        task: TaskId,
        cpu: CpuId,
        cx: &Context,
    ) -> (Fits, u64) {
        let util = self.cpu_util(cpu, Some(task), Some(cpu), false, cx);
        if self.uclamp_is_used() {
            search.clamps = match &*self.rq[cpu].uclamp {
                RqClamps::Max(rq) => rq.with_in_search(search.own, search.clamps),
                RqClamps::Sum(sums) => {
                    let clamped = self.cpu_util_uclamp(cpu, sums, Some(task), Some(cpu), false, cx);
                    let fits = self.clamped_util_fits_cpu(util, clamped, cpu);
                    let taken = if fits == Fits::Yes { clamped } else { util };
                    return (fits, self.capacity_of(cpu).saturating_sub(taken));
                }
            };
        }
        let spare = self.capacity_of(cpu).saturating_sub(util);
        (self.util_fits_cpu(util, search.clamps, cpu), spare)
    }

    /// The same before 6.1: the clamped utilisation has to fit, and so it does or does not.
    pub(crate) fn fits_beside_clamped(
        &self,
        task: TaskId,
        cpu: CpuId,
        cx: &Context,
    ) -> (bool, u64) {
        let util = self.cpu_util(cpu, Some(task), Some(cpu), false, cx);
        let spare = self.capacity_of(cpu).saturating_sub(util);
        let clamped = match &*self.rq[cpu].uclamp {
            RqClamps::Max(_) => self.uclamp_rq_util_with(cpu, util, Some(task), cx),
            RqClamps::Sum(sums) => {
                self.cpu_util_uclamp(cpu, sums, Some(task), Some(cpu), false, cx)
            }
        };
        (self.fits_capacity(clamped, cpu), spare)
    }

    /// `fits_capacity()`: 80 % of what is left of the CPU.
    #[inline(always)]
    fn fits_capacity(&self, util: u64, cpu: CpuId) -> bool {
        util * 1280 < self.capacity_of(cpu) * 1024
    }

    /// `util_fits_cpu()` of sum aggregation. A CPU that the real utilisation alone would fit is too slow for the minimum.
    #[inline]
    fn clamped_util_fits_cpu(&self, util: u64, clamped: u64, cpu: CpuId) -> Fits {
        if self.fits_capacity(clamped, cpu) {
            Fits::Yes
        } else if self.fits_capacity(util, cpu) {
            Fits::TooSlow
        } else {
            Fits::No
        }
    }

    #[inline(always)]
    fn util_fits_cpu(&self, util: u64, clamps: Clamps, cpu: CpuId) -> Fits {
        let fits = self.fits_capacity(util, cpu);
        if !self.uclamp_is_used() {
            return Fits::of(fits);
        }
        if self.clamps_have_margin() {
            let clamped = util.min(clamps.max.into()).max(clamps.min.into());
            return Fits::of(self.fits_capacity(clamped, cpu));
        }
        let (arch, actual) = (self.arch_scale_cpu_capacity(cpu), self.get_actual_cpu_capacity(cpu));
        clamps.fits(fits, util, arch, actual)
    }
}

impl Kernel {
    /// `task_fits_cpu()`.
    #[inline(always)]
    pub fn task_fits_cpu(&self, task: TaskId, cpu: CpuId) -> bool {
        self.sched.fits_cpu(&self.task_demand(task), cpu) == Fits::Yes
    }

    /// Returns the demand of a task on a CPU.
    #[inline(always)]
    pub(crate) fn task_demand(&self, task: TaskId) -> TaskDemand {
        self.task_demand_at(task, self.sched.task_util_est(task), |k| {
            k.sched.task_util_est_uclamp(task)
        })
    }

    /// Returns the demand of a sleeping task on a CPU, its signals aged to its queue's last update.
    pub(crate) fn synced_task_demand(&self, task: TaskId) -> TaskDemand {
        let (avg, refreshed) = self.sched.synced_load_avg(task);
        self.task_demand_at(task, pelt::task_util_est(&avg), |k| {
            k.sched.synced_task_util_est_uclamp(task, &avg, refreshed, &k.cx)
        })
    }

    #[inline(always)]
    fn task_demand_at(
        &self,
        task: TaskId,
        util: u64,
        clamped: impl FnOnce(&Self) -> u64,
    ) -> TaskDemand {
        let wish = if self.cx.uclamp_sums() {
            Wish::Clamped(clamped(self))
        } else if self.sched.uclamp_is_used() {
            Wish::Clamps(self.sched.uclamp_eff_value(task, &self.cx))
        } else {
            Wish::Clamps(Clamps::NONE)
        };
        TaskDemand { util, wish }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Bugs, Config, Uclamp};
    use crate::sched::root_domain::tests::little_and_big;

    /// With the margin a minimum of 1024 fits nowhere, and no cap helps a CPU that is used up.
    #[test]
    fn clamps_fit_without_a_margin() {
        let big = CpuId(1);
        for (with_margin, fits) in [(false, Fits::Yes), (true, Fits::No)] {
            let bugs = Bugs { clamps_with_margin: with_margin, ..Bugs::default() };
            let config = Config { uclamp: Uclamp::On, bugs, ..Config::linux_6_12() };
            let kernel = little_and_big(config);
            let boosted = TaskDemand::of_clamps(100, 1024, 1024);
            assert_eq!(kernel.sched.fits_cpu(&boosted, big), fits, "{with_margin}");
        }
    }

    #[test]
    fn fitness() {
        let kernel = little_and_big(Config { uclamp: Uclamp::On, ..Config::linux_6_12() });
        let key_off = little_and_big(Config::linux_6_12());
        let (little, big) = (CpuId(0), CpuId(1));
        for (util, min, max, cpu, fits, without_clamps) in [
            (1000, 0, 110, little, 1, 0),
            (300, 0, 1024, little, 1, 1), // 300 · 1.25 = 375
            (310, 0, 1024, little, 0, 0),
            (50, 400, 1024, little, -1, 1),
            (50, 400, 300, little, 1, 1), // the smaller one counts as the minimum
            (50, 383, 1024, little, 1, 1),
            (390, 385, 1024, little, 0, 0),
            (1000, 0, 1024, big, 0, 0),
            (1000, 0, 1023, big, 1, 0),
            (1000, 1024, 1024, big, 0, 0),
        ] {
            let case = (util, min, max, cpu);
            let of =
                |k: &Kernel| match k.sched.fits_cpu(&TaskDemand::of_clamps(util, min, max), cpu) {
                    Fits::No => 0,
                    Fits::TooSlow => -1,
                    Fits::Yes => 1,
                };
            assert_eq!(of(&kernel), fits, "{case:?}");
            assert_eq!(of(&key_off), without_clamps, "{case:?}, key off");
        }
    }
}
