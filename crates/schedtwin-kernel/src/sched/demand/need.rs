// SPDX-License-Identifier: GPL-2.0-or-later
//! Need: the operating point that a CPU's demand asks for, whether or not anybody has asked the clock for it.
//!
//! **Decides** nothing: it tells the meter what the governor would want of a CPU at this moment, so that one can see how
//! long the governor and the clock take to follow.
//!
//! **Idea.** schedutil computes a demand only when its hook is called and the rate limit lets it. In between a task may
//! have come whose estimate nobody has told the governor, or a clamp that joined after the hook. So
//! the end of each kernel entry looks at the demand of every CPU with changed signals, whether the
//! hook was called or not.
//!
//! **Terms.** *Need* of a CPU: the lowest efficient frequency of its domain's table that gives its demand, headroom and
//! clamps included, as `get_next_freq()` would have it. Neither the boost after I/O, which is the governor's own guess,
//! nor a limit of the domain, which the meter knows by itself, counts. Where utilisation does not scale with the clock, a demand
//! counts as a share of what the CPU gives at its present frequency. *Unseen*: a CPU whose signals have changed since the last look.
//!
//! ```text
//!  signals ── demand (effective.rs) ── 1.25, clamps ── map_util_freq ── table ── need
//!    └── unseen CPUs, looked at when the entry ends
//! ```
//!
//! **Example.** util 512 of 1024 on a table of 0.5, 1 and 2 GHz: 1.25 GHz, so the need is the third.

use crate::config::Config;
use crate::cpufreq::freq_table::Limits;
use crate::cpufreq::policy::CpufreqPolicy;
use crate::device_tree::DeviceTree;
use crate::sched::SCHED_CAPACITY_SCALE;
use crate::sched::demand::effective::frequency_for;
use crate::{Context, Cpufreq, Scheduler};
use schedtwin_types::arena::Arena;
use schedtwin_types::{CpuId, PolicyId};

/// Demands that a table has a frequency for: 0..=1024. A higher one is as good as full.
const DEMANDS: usize = SCHED_CAPACITY_SCALE as usize + 1;

/// The needs of all CPUs.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    /// Indexes of frequencies by demand, a table of [`DEMANDS`] after another: the division is done at boot.
    opps: Vec<u8>,
    cpus: Arena<CpuId, CpuNeed>,
}

#[derive(Clone, Copy, Debug)]
struct CpuNeed {
    /// Where its table begins.
    table: u32,
    /// Index of the frequency that it needed at the last look.
    opp: u8,
}

impl Needs {
    /// The tables of another configuration. What was told of the CPUs stays, so that the next look tells what differs.
    pub(crate) fn for_config(
        &self,
        policies: &Arena<PolicyId, CpufreqPolicy>,
        device_tree: &DeviceTree,
        config: &Config,
    ) -> Needs {
        let mut needs = Needs::new(policies, device_tree, config);
        for (cpu, told) in self.cpus.iter_ids() {
            needs.cpus[cpu].opp = told.opp;
        }
        needs
    }

    /// The tables of all CPUs. Nobody needs anything yet.
    pub(crate) fn new(
        policies: &Arena<PolicyId, CpufreqPolicy>,
        device_tree: &DeviceTree,
        config: &Config,
    ) -> Needs {
        // CPUs of one capacity and the same frequencies share a table.
        let same = |a: PolicyId, b: PolicyId| {
            let (a, b) = (&policies[a], &policies[b]);
            a.table == b.table && a.inefficient == b.inefficient
        };
        let mut known: Vec<(PolicyId, u64)> = Vec::new();
        let mut opps = Vec::new();
        let cpus = device_tree.cpus.iter().map(|cpu| {
            let (index, capacity) = (PolicyId(cpu.policy as u16), u64::from(cpu.capacity));
            let shares = |k: &(PolicyId, u64)| k.1 == capacity && same(k.0, index);
            let number = known.iter().position(shares).unwrap_or(known.len());
            if number == known.len() {
                known.push((index, capacity));
                opps.extend((0..DEMANDS).map(|demand| {
                    let opp = needed_opp(&policies[index], demand as u64, capacity, config);
                    u8::try_from(opp).expect("a table has at most 256 frequencies")
                }));
            }
            CpuNeed { table: (number * DEMANDS) as u32, opp: 0 }
        });
        let cpus = cpus.collect();
        Needs { opps, cpus }
    }
}

/// Index of the frequency that gives a demand of a CPU's capacity.
fn needed_opp(policy: &CpufreqPolicy, demand: u64, capacity: u64, config: &Config) -> usize {
    let raw_khz = frequency_for(config, demand, policy.max(), capacity);
    let khz = policy.resolve_within(raw_khz, Limits::whole(&policy.table));
    policy.table.binary_search(&khz).expect("a frequency of the table")
}

impl Scheduler {
    /// Whether any CPU's demand may have changed since [`Kernel::look_at_needs`].
    #[inline(always)]
    pub(crate) fn has_unseen_demands(&self) -> bool {
        self.stale_demands.has_unseen()
    }

    /// Looks at the CPUs whose demand may have changed since the last call, and tells `see` of each that needs another
    /// frequency now: its index in the domain's table.
    #[inline]
    pub(crate) fn look_at_needs(
        &mut self,
        mut see: impl FnMut(CpuId, usize),
        cpufreq: &Cpufreq,
        cx: &Context,
    ) {
        self.stale_demands.begin_look();
        let mut next = Some(0);
        while let Some(word) = next {
            for cpu in self.stale_demands.take_unseen(word) {
                if let Some(opp) = self.changed_need(cpu, cpufreq, cx) {
                    see(cpu, opp);
                }
            }
            next = self.stale_demands.next_word(word);
        }
    }

    /// Another frequency that a CPU needs now. A call of its own: nearly always one CPU is looked at, and a loop would
    /// prepare for many.
    #[inline(never)]
    fn changed_need(&mut self, cpu: CpuId, cpufreq: &Cpufreq, cx: &Context) -> Option<usize> {
        let demand = cpufreq.at_full_clock(cpu, self.present_demand(cpu, cpufreq, cx), cx);
        let need = &mut self.needs.cpus[cpu];
        let opp = self.needs.opps[need.table as usize + (demand as usize).min(DEMANDS - 1)];
        let before = std::mem::replace(&mut need.opp, opp);
        (before != opp).then_some(usize::from(opp))
    }

    /// A CPU's demand without the boost after I/O: the governor's own number where that is up to date.
    #[inline(always)]
    fn present_demand(&self, cpu: CpuId, cpufreq: &Cpufreq, cx: &Context) -> u64 {
        if self.stale_demands.contains(cpu) {
            self.sugov_demand(cpu, None, cx).0
        } else {
            cpufreq.sugov_cpu(cpu).util
        }
    }

    /// Asserts that a need which was looked at is what the signals say.
    pub(crate) fn verify_need(&self, cpu: CpuId, cpufreq: &Cpufreq, cx: &Context) {
        if !self.stale_demands.is_unseen(cpu) {
            let policy = cpufreq.policy(cx.policy_of(cpu));
            let demand = cpufreq.at_full_clock(cpu, self.sugov_demand(cpu, None, cx).0, cx);
            let demand = demand.min(DEMANDS as u64 - 1);
            let opp = needed_opp(policy, demand, self.arch_scale_cpu_capacity(cpu), &cx.config);
            assert_eq!(usize::from(self.needs.cpus[cpu].opp), opp, "{cpu:?}: need");
        }
    }
}

impl Cpufreq {
    /// A demand as a share of what the CPU gives at its highest frequency, where utilisation does not say that itself.
    #[inline(always)]
    fn at_full_clock(&self, cpu: CpuId, demand: u64, cx: &Context) -> u64 {
        if self.forms().invariant { demand } else { (demand * self.clock_scale(cpu, cx)) >> 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;
    use crate::config::{EffectiveCpuUtil, Uclamp};
    use crate::sched::CfsRqId;
    use crate::sched::demand::uclamp::max::Clamps;
    use crate::sched::root_domain::tests::device_tree;

    const OPPS: &[(u32, u64)] = &[(500_000, 100_000), (1_000_000, 300_000), (2_000_000, 900_000)];
    const CPU: CpuId = CpuId(0);

    fn boot(effective_cpu_util: EffectiveCpuUtil) -> Kernel {
        let config = Config {
            fair_server_runtime: 0,
            effective_cpu_util,
            uclamp: Uclamp::On,
            ..Config::linux_6_12()
        };
        Kernel::boot(device_tree(&[(1, 1024, OPPS), (2, 383, OPPS)]), config)
    }

    fn looks(kernel: &mut Kernel) -> Vec<(u16, usize)> {
        let mut seen = Vec::new();
        kernel.sched.look_at_needs(|cpu, opp| seen.push((cpu.0, opp)), &kernel.cpufreq, &kernel.cx);
        seen
    }

    fn set_util(kernel: &mut Kernel, cpu: CpuId, util: u64) {
        kernel.sched.cfs[CfsRqId::root(cpu)].avg.util_avg = util;
        kernel.sched.stale_demands.mark(cpu);
    }

    /// The edges of the table: 500 MHz are 256 of 1024, so 204 with the headroom; of 383 they are 95.75, so 76.
    #[test]
    fn need_is_the_lowest_frequency_that_gives_demand_and_headroom() {
        for form in [EffectiveCpuUtil::ClampLast, EffectiveCpuUtil::HeadroomLast] {
            let mut kernel = boot(form);
            looks(&mut kernel);
            for (cpu, util, opp) in [
                (0, 205, 0), // 205 + 51 = 256
                (0, 206, 1),
                (0, 410, 1), // 410 + 102 = 512
                (0, 411, 2),
                (1, 76, 0), // 76 + 19 = 95
                (1, 77, 1),
                (0, 0, 0),
                (0, 1024, 2),
            ] {
                let cpu = CpuId(cpu);
                set_util(&mut kernel, cpu, util);
                looks(&mut kernel);
                assert_eq!(kernel.sched.needs.cpus[cpu].opp, opp, "{form:?} {cpu:?} {util}");
                kernel.sched.verify_need(cpu, &kernel.cpufreq, &kernel.cx);
            }
        }
    }

    /// A look tells what has changed, once, and nothing of a change within an operating point.
    #[test]
    fn only_another_need_is_told() {
        let mut kernel = boot(EffectiveCpuUtil::ClampLast);
        assert_eq!(looks(&mut kernel), [], "nothing is needed at boot");
        set_util(&mut kernel, CPU, 300);
        assert!(kernel.sched.has_unseen_demands());
        assert_eq!(looks(&mut kernel), [(0, 1)]);
        assert!(!kernel.sched.has_unseen_demands());
        set_util(&mut kernel, CPU, 350);
        assert_eq!(looks(&mut kernel), []);
        set_util(&mut kernel, CPU, 0);
        assert_eq!(looks(&mut kernel), [(0, 0)]);
    }

    /// Another configuration in the middle of a run: what was told before is not forgotten, so that a need that has gone is told.
    #[test]
    fn another_configuration_goes_on_from_what_was_told() {
        let mut kernel = boot(EffectiveCpuUtil::ClampLast);
        looks(&mut kernel);
        kernel.sched.rq[CPU].uclamp.inc(Clamps { min: 900, max: 1024 });
        kernel.sched.stale_demands.mark(CPU);
        assert_eq!(looks(&mut kernel), [(0, 2)]);
        let mut kernel = kernel.with_config(|config| config.fair_server_runtime = 0);
        assert_eq!(looks(&mut kernel), [], "nothing has changed");
        kernel.sched.rq[CPU].uclamp.dec(Clamps { min: 900, max: 1024 });
        let mut kernel = kernel.with_config(|config| config.fair_server_runtime = 0);
        assert_eq!(looks(&mut kernel), [(0, 0)]);
    }

    /// A limit and a boost after I/O are no needs; a clamp is.
    #[test]
    fn what_counts() {
        let mut kernel = boot(EffectiveCpuUtil::ClampLast);
        looks(&mut kernel);
        kernel.cpufreq.policy_mut(PolicyId(0)).limits.max = 500_000;
        set_util(&mut kernel, CPU, 900);
        assert_eq!(looks(&mut kernel), [(0, 2)], "the limit is below it");
        set_util(&mut kernel, CPU, 100);
        kernel.cpufreq.sugov_cpu_mut(CPU).iowait_boost = 1024;
        assert_eq!(looks(&mut kernel), [(0, 0)], "the boost is not needed");
        kernel.sched.rq[CPU].uclamp.inc(Clamps { min: 600, max: 1024 });
        kernel.sched.stale_demands.mark(CPU);
        assert_eq!(looks(&mut kernel), [(0, 2)], "the clamp is");
    }

    /// The governor's number is taken where it has just computed it, and computed where it was not called.
    #[test]
    fn with_and_without_the_hook() {
        let mut kernel = boot(EffectiveCpuUtil::ClampLast);
        looks(&mut kernel);
        kernel.sched.rq[CPU].clock = 50_000_000;
        set_util(&mut kernel, CPU, 300);
        kernel.cpufreq_update_util(CPU, 0);
        assert!(
            !kernel.sched.stale_demands.contains(CPU) && kernel.sched.stale_demands.is_unseen(CPU)
        );
        assert_eq!(looks(&mut kernel), [(0, 1)]);
        // Within the rate limit of the change that this was.
        set_util(&mut kernel, CPU, 900);
        kernel.cpufreq_update_util(CPU, 0);
        assert!(kernel.sched.stale_demands.contains(CPU));
        assert_eq!(looks(&mut kernel), [(0, 2)]);
        assert_eq!(kernel.cpufreq.policy(PolicyId(0)).sugov.next_freq, 1_000_000);
    }
}
