// SPDX-License-Identifier: GPL-2.0-or-later
//! From utilisation to performance: what a CPU demands of its frequency domain.
//!
//! **Decides** how the utilisations of the classes, interrupts, DEADLINE bandwidth, clamps and the boost after
//! I/O become one demand per CPU, and which CPU speaks for its domain.
//!
//! **Idea.** A CPU that is used to 80 % should go faster before it is saturated, so demands carry a quarter of
//! headroom. The two forms differ in what gets it ([`EffectiveCpuUtil`]).
//!
//! ```text
//!   HeadroomLast (to 6.7)   cfs + rt ─ clamp ─ irq ─ + dl bandwidth ─ max(, clamped boost) ─ × 1.25
//!                           the CPU with the largest share of its own capacity speaks
//!   Passed (4.7)            util_avg of cfs, or all where RT or DEADLINE tasks are; × 1.25 on the frequency
//!   ClampLast (from 6.8)    cfs + rt + dl ─ irq ─ max(, boost) ─ × 1.25 ─ cap ─ floor(clamp, irq + dl bandwidth)
//!                           the highest demand counts, against the capacity of the CPU that asks
//! ```
//!
//! **Example.** A minimum of 512 on a CPU of utilisation 100 and 2 GHz: up to 6.7 512 · 1.25 = 640, so 1.25 GHz;
//! since 6.8 what was asked for, 512, so 1 GHz.
//!
//! EAS needs the same demand to know the operating point (`Scheduler::energy_demand`), and beside it how busy
//! a CPU is, which both forms compute alike (`Scheduler::effective_cpu_util`, `sched_cpu_util()`).
//!
//! Kernel: 6.12.95 kernel/sched/syscalls.c `effective_cpu_util`, cpufreq_schedutil.c
//! `sugov_effective_cpu_perf`, `sugov_get_util`, `sugov_next_freq_shared`; 6.1.192 kernel/sched/core.c and
//! cpufreq_schedutil.c, the same functions.

use crate::config::{Config, EffectiveCpuUtil};
use crate::cpufreq::schedutil::map_util_freq;
use crate::cpufreq::schedutil::v4_7::raw_frequency;
use crate::policy::CpuPerformance;
use crate::sched::CfsRqId;
use crate::sched::pelt::scale_irq_capacity;
use crate::{Context, Cpufreq, Scheduler};
use schedtwin_types::{CpuId, CpuMask, Khz, TaskId};

/// `effective_cpu_util()`'s results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EffectiveUtil {
    /// Utilisation of all classes and interrupts.
    util: u64,
    /// Lower limit: the clamps' minimum, or irq and deadline bandwidth.
    min: u64,
    /// Upper limit: the clamps' maximum.
    max: u64,
}

/// `map_util_perf()`: a quarter of headroom.
#[inline(always)]
fn map_util_perf(util: u64) -> u64 {
    util + (util >> 2)
}

/// `sugov_effective_cpu_perf()`: a quarter of headroom, capped and floored.
#[inline(always)]
fn sugov_effective_cpu_perf(effective: &EffectiveUtil) -> u64 {
    effective.min.max(effective.max.min(map_util_perf(effective.util)))
}

/// A CPU's `sugov_cpu.util` as performance in a form, headroom included.
#[inline(always)]
pub(crate) fn sugov_perf(form: EffectiveCpuUtil, util: u64) -> u64 {
    match form {
        EffectiveCpuUtil::ClampLast => util,
        EffectiveCpuUtil::Passed | EffectiveCpuUtil::HeadroomLast => map_util_perf(util),
    }
}

/// Whether the caller of the governor's hook says how much is used.
pub(crate) fn utilisation_is_passed(config: &Config) -> bool {
    config.effective_cpu_util == EffectiveCpuUtil::Passed
}

/// Whether the formula begins with a quarter more than the present frequency, where utilisation does not scale with it.
pub(crate) fn headroom_on_present_clock(config: &Config) -> bool {
    config.effective_cpu_util == EffectiveCpuUtil::ClampLast
}

/// The frequency, before the table, that gives a demand without headroom of its own, where the highest is `khz`.
#[inline]
pub(crate) fn frequency_for(config: &Config, demand: u64, khz: Khz, capacity: u64) -> Khz {
    let form = config.effective_cpu_util;
    match form {
        EffectiveCpuUtil::Passed => raw_frequency(khz, demand, capacity),
        _ => map_util_freq(sugov_perf(form, demand), u64::from(khz), capacity),
    }
}

impl Scheduler {
    /// `effective_cpu_util()` as of 6.8. `util` alone is what earlier releases call `ENERGY_UTIL`.
    #[inline(always)]
    fn effective_cpu_util(&self, cpu: CpuId, util_cfs: u64) -> EffectiveUtil {
        let rq = &self.rq[cpu];
        let (scale, irq) = (rq.arch_capacity, rq.avg_irq.util_avg);
        if irq >= scale {
            return EffectiveUtil { util: scale, min: scale, max: scale };
        }
        let (floor, cap) = self.floor_and_cap(cpu);
        let (min, max) = ((irq + self.cpu_bw_dl(cpu)).max(floor), scale.min(cap));
        let mut util = util_cfs + rq.avg_rt.util_avg + rq.avg_dl.util_avg;
        if util >= scale {
            return EffectiveUtil { util: scale, min, max };
        }
        util = scale_irq_capacity(util, irq, scale) + irq;
        EffectiveUtil { util: util.min(scale), min, max }
    }

    /// `effective_cpu_util()` for a governor that asks for it.
    pub(crate) fn cpu_performance(&self, cpu: CpuId, util_cfs: u64) -> CpuPerformance {
        let EffectiveUtil { util, min, max } = self.effective_cpu_util(cpu, util_cfs);
        CpuPerformance { util, min, max }
    }

    /// [`Kernel::sugov_demand`] without a boost, where `effective_cpu_util()` has been computed already.
    pub(crate) fn demand_with(
        &self,
        cpu: CpuId,
        performance: &CpuPerformance,
        cx: &Context,
    ) -> (u64, u64) {
        match cx.config.effective_cpu_util {
            EffectiveCpuUtil::ClampLast => {
                let CpuPerformance { util, min, max } = *performance;
                (sugov_effective_cpu_perf(&EffectiveUtil { util, min, max }), min)
            }
            EffectiveCpuUtil::Passed | EffectiveCpuUtil::HeadroomLast => {
                self.sugov_demand(cpu, None, cx)
            }
        }
    }

    /// `effective_cpu_util()` with `FREQUENCY_UTIL`, before 6.8. `task`: as if it ran there.
    fn frequency_util(&self, cpu: CpuId, util_cfs: u64, task: Option<TaskId>, cx: &Context) -> u64 {
        let rq = &self.rq[cpu];
        let (max, irq) = (rq.arch_capacity, rq.avg_irq.util_avg);
        if self.rt_gets_all(cpu) || irq >= max {
            return max;
        }
        let util = self.uclamp_rq_util_with(cpu, util_cfs + rq.avg_rt.util_avg, task, cx);
        // DEADLINE's utilisation only says whether the CPU is saturated: its bandwidth counts below.
        if util + rq.avg_dl.util_avg >= max {
            return max;
        }
        (scale_irq_capacity(util, irq, max) + irq + self.cpu_bw_dl(cpu)).min(max)
    }

    /// `sched_cpu_util()`: how busy a CPU is, which some idle governors ask; the same in both forms.
    #[inline]
    pub(crate) fn sched_cpu_util(&self, cpu: CpuId, cx: &Context) -> u64 {
        self.sched_cpu_util_at(cpu, self.cpu_util_cfs(cpu, cx))
    }

    /// Returns the utilisation of a CPU if its fair tasks used `util_cfs` of it.
    #[inline]
    pub(crate) fn sched_cpu_util_at(&self, cpu: CpuId, util_cfs: u64) -> u64 {
        self.effective_cpu_util(cpu, util_cfs).util
    }

    /// `cpu_bw_dl()`.
    #[inline(always)]
    pub(crate) fn cpu_bw_dl(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].dl.cpu_bw_dl()
    }

    /// `sugov_get_util()`: `sugov_cpu.util` and `sugov_cpu.bw_min` (`bw_dl`). `boost`: after I/O, if the
    /// CPU has one.
    #[inline(always)]
    pub(crate) fn sugov_demand(&self, cpu: CpuId, boost: Option<u64>, cx: &Context) -> (u64, u64) {
        let util_cfs = self.sugov_util(cpu, cx);
        match cx.config.effective_cpu_util {
            EffectiveCpuUtil::Passed => {
                (self.passed_util(cpu, self.cfs[CfsRqId::root(cpu)].avg.util_avg), 0)
            }
            EffectiveCpuUtil::ClampLast => {
                let mut effective = self.effective_cpu_util(cpu, util_cfs);
                effective.util = effective.util.max(boost.unwrap_or(0));
                (sugov_effective_cpu_perf(&effective), effective.min)
            }
            EffectiveCpuUtil::HeadroomLast => {
                let util = self.frequency_util(cpu, util_cfs, None, cx);
                let boost = boost.map_or(0, |boost| self.uclamp_rq_util_with(cpu, boost, None, cx));
                (util.max(boost), self.cpu_bw_dl(cpu))
            }
        }
    }

    /// Returns the demand of a CPU in the form of 4.7: the utilisation of fair tasks, or the whole
    /// capacity.
    fn passed_util(&self, cpu: CpuId, util_cfs: u64) -> u64 {
        let capacity = self.arch_scale_cpu_capacity(cpu);
        if self.class_asks_for_all(cpu) { capacity } else { util_cfs.min(capacity) }
    }

    /// Returns the capacity that scales the demand after I/O; `j` is a CPU of the domain that
    /// `hook` asks for.
    #[inline(always)]
    pub(crate) fn iowait_boost_capacity(&self, j: CpuId, hook: CpuId, cx: &Context) -> u64 {
        match cx.config.effective_cpu_util {
            EffectiveCpuUtil::ClampLast => self.arch_scale_cpu_capacity(hook),
            EffectiveCpuUtil::Passed | EffectiveCpuUtil::HeadroomLast => {
                self.arch_scale_cpu_capacity(j)
            }
        }
    }

    /// `sugov_next_freq_shared()`: the demand that decides, and the capacity it is a share of. `highest`
    /// is the highest demand of all, if that is known. `hook` is the CPU that asks.
    #[inline(always)]
    pub(crate) fn sugov_domain_demand(
        &self,
        cpus: &CpuMask,
        hook: CpuId,
        highest: Option<u64>,
        cpufreq: &Cpufreq,
        cx: &Context,
    ) -> (u64, u64) {
        match cx.config.effective_cpu_util {
            EffectiveCpuUtil::ClampLast => {
                let highest = highest.unwrap_or_else(|| cpufreq.highest_demand(cpus));
                (highest, self.arch_scale_cpu_capacity(hook))
            }
            EffectiveCpuUtil::Passed | EffectiveCpuUtil::HeadroomLast => {
                // Of equal shares the first.
                let (mut util, mut max) = (0, 1);
                for j in cpus.iter() {
                    let (j_util, j_max) =
                        (cpufreq.sugov_cpu(j).util, self.arch_scale_cpu_capacity(j));
                    if j_util * max > j_max * util {
                        (util, max) = (j_util, j_max);
                    }
                }
                (util, max)
            }
        }
    }

    /// Returns the demand of `cpu` on its frequency domain if `task` runs on `dst`, or nowhere. It
    /// includes headroom. EAS asks for it.
    #[inline]
    pub(crate) fn energy_demand(
        &self,
        cpu: CpuId,
        task: TaskId,
        dst: Option<CpuId>,
        cx: &Context,
    ) -> u64 {
        let util_cfs = self.demanded_cpu_util(cpu, Some(task), dst, cx);
        let here = (dst == Some(cpu)).then_some(task);
        match cx.config.effective_cpu_util {
            EffectiveCpuUtil::ClampLast => {
                let mut effective = self.effective_cpu_util(cpu, util_cfs);
                if let Some(task) = here {
                    let floor_and_cap = (effective.min, effective.max);
                    (effective.min, effective.max) =
                        self.floor_and_cap_with(cpu, task, floor_and_cap, cx);
                }
                sugov_effective_cpu_perf(&effective)
            }
            EffectiveCpuUtil::Passed => map_util_perf(self.passed_util(cpu, util_cfs)),
            EffectiveCpuUtil::HeadroomLast => {
                map_util_perf(self.frequency_util(cpu, util_cfs, here, cx))
            }
        }
    }
}

impl Context {
    /// A CPU's `sugov_cpu.util` as performance, headroom included.
    #[inline(always)]
    pub(crate) fn sugov_perf(&self, util: u64) -> u64 {
        sugov_perf(self.config.effective_cpu_util, util)
    }
}

impl Cpufreq {
    #[cold]
    #[inline(never)]
    fn highest_demand(&self, cpus: &CpuMask) -> u64 {
        cpus.iter().map(|j| self.sugov_cpu(j).util).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;
    use crate::config::Uclamp;
    use crate::sched::demand::uclamp::max::Clamps;
    use crate::sched::root_domain::tests::{device_tree, kernel};

    const OPPS: &[(u32, u64)] = &[(500_000, 100_000), (1_000_000, 300_000), (2_000_000, 900_000)];

    fn boot(effective_cpu_util: EffectiveCpuUtil, uclamp: Uclamp) -> Kernel {
        let config =
            Config { fair_server_runtime: 0, effective_cpu_util, uclamp, ..Config::linux_6_12() };
        Kernel::boot(device_tree(&[(1, 1024, OPPS), (2, 383, OPPS)]), config)
    }

    /// The capacity is reached at 80 % of it; minimum and maximum are not enlarged.
    #[test]
    fn demand_to_frequency() {
        let khz = |util, min| {
            let effective = EffectiveUtil { util, min, max: 1024 };
            map_util_freq(sugov_effective_cpu_perf(&effective), 2_000_000, 1024)
        };
        for (util, min, expected) in [
            (512, 0, 1_250_000),
            (819, 0, 1_998_046),
            (820, 0, 2_000_000),
            (1024, 0, 2_000_000),
            (100, 512, 1_000_000),
            (0, 51, 99_609),
        ] {
            assert_eq!(khz(util, min), expected, "util {util} min {min}");
        }
    }

    #[test]
    fn effective_cpu_util() {
        let mut kernel = kernel(&[(1, 1024, OPPS)]);
        let cpu = CpuId(0);
        let of = |k: &Kernel, util| k.sched.effective_cpu_util(cpu, util);
        assert_eq!(of(&kernel, 400), EffectiveUtil { util: 400, min: 0, max: 1024 });
        // Interrupts take their share of the rest: 400 * 924 / 1024 + 100.
        kernel.sched.rq[cpu].avg_irq.util_avg = 100;
        assert_eq!(of(&kernel, 400), EffectiveUtil { util: 460, min: 100, max: 1024 });
        kernel.sched.rq[cpu].avg_rt.util_avg = 624;
        assert_eq!(of(&kernel, 400).util, 1024);
        kernel.sched.rq[cpu].avg_irq.util_avg = 1024;
        assert_eq!(of(&kernel, 0), EffectiveUtil { util: 1024, min: 1024, max: 1024 });
    }

    /// The request of CPU 0: `(sugov_cpu.util, floor, kHz before the table)`.
    #[test]
    fn both_forms() {
        struct Case {
            name: &'static str,
            cfs: u64,
            rt: u64,
            dl: u64,
            irq: u64,
            server: bool,
            clamps: (u32, u32),
            boost: Option<u64>,
            headroom_last: (u64, u64, u32),
            clamp_last: (u64, u64, u32),
        }
        let idle = Case {
            name: "idle",
            cfs: 0,
            rt: 0,
            dl: 0,
            irq: 0,
            server: false,
            clamps: (0, 1024),
            boost: None,
            headroom_last: (0, 0, 0),
            clamp_last: (0, 0, 0),
        };
        for case in [
            Case {
                name: "headroom",
                cfs: 512,
                headroom_last: (512, 0, 1_250_000),
                clamp_last: (640, 0, 1_250_000),
                ..idle
            },
            Case {
                name: "the frequency asked for may exceed the table only before",
                cfs: 1000,
                headroom_last: (1000, 0, 2_441_406),
                clamp_last: (1024, 0, 2_000_000),
                ..idle
            },
            Case {
                name: "a minimum gets headroom only before",
                cfs: 100,
                clamps: (512, 1024),
                headroom_last: (512, 0, 1_250_000),
                clamp_last: (512, 512, 1_000_000),
                ..idle
            },
            Case {
                name: "and so does a maximum",
                cfs: 800,
                clamps: (0, 512),
                headroom_last: (512, 0, 1_250_000),
                clamp_last: (512, 0, 1_000_000),
                ..idle
            },
            Case {
                name: "DEADLINE's bandwidth is added, or is a floor",
                cfs: 200,
                server: true,
                headroom_last: (251, 51, 611_328),
                clamp_last: (250, 51, 488_281),
                ..idle
            },
            Case {
                name: "its utilisation counts when it saturates, or always",
                cfs: 200,
                dl: 300,
                headroom_last: (200, 0, 488_281),
                clamp_last: (625, 0, 1_220_703),
                ..idle
            },
            Case {
                name: "saturated by it",
                cfs: 200,
                rt: 500,
                dl: 324,
                headroom_last: (1024, 0, 2_500_000),
                clamp_last: (1024, 0, 2_000_000),
                ..idle
            },
            Case {
                name: "interrupts: 400 · 924 / 1024 + 100",
                cfs: 400,
                irq: 100,
                headroom_last: (460, 0, 1_123_046),
                clamp_last: (575, 100, 1_123_046),
                ..idle
            },
            Case {
                name: "the boost after I/O is clamped only before",
                cfs: 50,
                clamps: (0, 256),
                boost: Some(512),
                headroom_last: (256, 0, 625_000),
                clamp_last: (256, 0, 500_000),
                ..idle
            },
            Case {
                name: "it gets the headroom in both",
                cfs: 50,
                boost: Some(256),
                headroom_last: (256, 0, 625_000),
                clamp_last: (320, 0, 625_000),
                ..idle
            },
        ] {
            for (form, expected) in [
                (EffectiveCpuUtil::HeadroomLast, case.headroom_last),
                (EffectiveCpuUtil::ClampLast, case.clamp_last),
            ] {
                let mut kernel = boot(form, Uclamp::On);
                let cpu = CpuId(0);
                kernel.sched.cfs[CfsRqId::root(cpu)].avg.util_avg = case.cfs;
                let rq = &mut kernel.sched.rq[cpu];
                rq.avg_rt.util_avg = case.rt;
                rq.avg_dl.util_avg = case.dl;
                rq.avg_irq.util_avg = case.irq;
                rq.uclamp.inc(Clamps { min: case.clamps.0, max: case.clamps.1 });
                if case.server {
                    rq.dl.count_for_test();
                }
                let (util, floor) = kernel.sched.sugov_demand(cpu, case.boost, &kernel.cx);
                let khz = map_util_freq(kernel.cx.sugov_perf(util), 2_000_000, 1024);
                assert_eq!((util, floor, khz), expected, "{}, {form:?}", case.name);
            }
        }
    }

    /// All classes in what interrupts leave, and interrupts; no clamp, no headroom, and no real-time task
    /// that asks for everything: `(fair, RT, DEADLINE, irq, result)`.
    #[test]
    fn how_busy_a_cpu_is() {
        for form in [EffectiveCpuUtil::HeadroomLast, EffectiveCpuUtil::ClampLast] {
            for (cfs, rt, dl, irq, expected) in [
                (400, 0, 0, 0, 400),
                (200, 100, 100, 100, 460), // 400 · 924 / 1024 + 100
                (400, 400, 224, 0, 1024),
                (0, 0, 0, 1024, 1024),
            ] {
                let mut kernel = boot(form, Uclamp::On);
                let cpu = CpuId(0);
                kernel.sched.cfs[CfsRqId::root(cpu)].avg.util_avg = cfs;
                let rq = &mut kernel.sched.rq[cpu];
                (rq.avg_rt.util_avg, rq.avg_dl.util_avg, rq.avg_irq.util_avg) = (rt, dl, irq);
                rq.uclamp.inc(Clamps { min: 900, max: 950 });
                rq.dl.count_for_test();
                assert_eq!(
                    kernel.sched.sched_cpu_util(cpu, &kernel.cx),
                    expected,
                    "{form:?}: {cfs} {rt} {dl} {irq}"
                );
            }
        }
    }

    /// Before 6.8 the largest share of a CPU's own capacity counts, afterwards the highest demand.
    #[test]
    fn who_speaks_for_a_domain() {
        for (form, expected) in [
            (EffectiveCpuUtil::HeadroomLast, (300, 383)),
            (EffectiveCpuUtil::ClampLast, (400, 1024)),
        ] {
            let mut kernel = boot(form, Uclamp::KeyOff);
            for (cpu, util) in [(0, 400), (1, 200), (2, 300)] {
                kernel.cpufreq.sugov_cpu_mut(CpuId(cpu)).util = util;
            }
            let cpus = CpuMask::from_cpus([0, 1, 2].map(CpuId));
            assert_eq!(
                kernel.sched.sugov_domain_demand(
                    &cpus,
                    CpuId(0),
                    None,
                    &kernel.cpufreq,
                    &kernel.cx
                ),
                expected,
                "{form:?}"
            );
        }
    }
}
