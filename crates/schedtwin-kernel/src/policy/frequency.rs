// SPDX-License-Identifier: GPL-2.0-or-later
//! Users' frequency governors.
//!
//! **Algorithm.** At each `cpufreq_update_util()` of a CPU that may change its domain: 1. what the domain's CPUs
//! demand is computed afresh; 2. the governor is asked; 3. its target becomes the lowest efficient
//! frequency of the table that is not below it, within the limits; 4. another frequency than before goes
//! to the driver the way schedutil's does: at once, or by the thread `sugov:N`.
//!
//! **Sampling.** Governors that look at the load every so often (ondemand, conservative) need no timer: as
//! in Linux (`dbs_update_util_handler()`), the first call after the sampling delay takes the sample, and the
//! load is what [`CpuDemand::idle_ns`] did not grow by. A domain whose CPUs all sleep calls nobody and keeps its
//! frequency, there as here.
//!
//! **userspace** is a governor that answers with a constant.
//!
//! Differences to schedutil: rate limit, iowait boost and the holding of a single CPU's frequency are the governor's own
//! business; it is told what it needs for them. EAS stays as the kernel has it, since the governor stands
//! where schedutil stood; Linux switches it off for other governors (`energy_aware = false` does so here).

use super::boxed;
use crate::Kernel;
use crate::cpufreq::schedutil::{FrequencyChoice, map_util_freq};
use crate::sched::fair::class::SCHED_CPUFREQ_IOWAIT;
use schedtwin_types::{CpuId, CpuMask, FrequencyRule, Khz, Ns, PolicyId};

/// The domain that a frequency governor is made for.
#[derive(Clone, Debug)]
pub struct FrequencyDomain {
    /// Its number.
    pub policy: PolicyId,
    /// Its CPUs.
    pub cpus: CpuMask,
    /// Its frequencies, ascending.
    pub table: Vec<Khz>,
    /// The rate limit that schedutil would have there, nanoseconds.
    pub rate_limit_ns: Ns,
}

/// The known state of a CPU of the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuDemand {
    /// Which.
    pub cpu: CpuId,
    /// Its demand as schedutil sees it: utilisation of all classes, clamps and headroom in it,
    /// iowait boost not. Of the same scale as `capacity`, and may exceed it.
    pub demand: u64,
    /// How busy it is: utilisation of all classes and interrupts, without clamps and headroom, 0..=1024.
    pub util: u64,
    /// Its capacity at the highest frequency, 1..=1024.
    pub capacity: u64,
    /// Runnable tasks, the running one included.
    pub nr_running: u32,
    /// How long its idle task has run since boot, nanoseconds.
    pub idle_ns: Ns,
}

/// The input of a frequency governor.
#[derive(Clone, Copy, Debug)]
pub struct PolicyView<'a> {
    /// The time.
    pub now: Ns,
    /// The CPU whose signals have changed.
    pub cpu: CpuId,
    /// A task that waited for I/O has just woken there (`SCHED_CPUFREQ_IOWAIT`).
    pub iowait: bool,
    /// The limits have changed since the last call.
    pub limits_changed: bool,
    /// The domain's frequencies, ascending.
    pub table: &'a [Khz],
    /// At most this one may be asked for.
    pub max_khz: Khz,
    /// The frequency that is asked for at present.
    pub current_khz: Khz,
    /// The domain's CPUs, ascending.
    pub cpus: &'a [CpuDemand],
}

impl PolicyView<'_> {
    /// The CPU that demands most of its capacity; the first of equal ones.
    pub fn busiest(&self) -> CpuDemand {
        let more = |a: CpuDemand, b: &CpuDemand| {
            if b.demand * a.capacity > a.demand * b.capacity { *b } else { a }
        };
        self.cpus[1..].iter().fold(self.cpus[0], more)
    }

    /// The frequency, before the table, that gives what a CPU demands.
    pub fn khz_for(&self, cpu: &CpuDemand) -> Khz {
        let highest = self.table[self.table.len() - 1];
        map_util_freq(cpu.demand.min(cpu.capacity), highest.into(), cpu.capacity)
    }
}

/// The decision of a frequency governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyDecision {
    /// The frequency wanted; the lowest of the table that is not below it is taken.
    pub khz: Khz,
    /// Why, in a few words.
    pub rule: &'static str,
}

/// Chooses the frequency of one domain (`struct cpufreq_governor`).
///
/// ```
/// use schedtwin_kernel::policy::{FrequencyDecision, FrequencyGovernor, PolicyView};
///
/// /// As fast as it goes while anything runs, else as slow.
/// #[derive(Clone)]
/// struct RaceToIdle;
///
/// impl FrequencyGovernor for RaceToIdle {
///     fn update_util(&mut self, view: &PolicyView) -> Option<FrequencyDecision> {
///         let busy = view.cpus.iter().any(|cpu| cpu.nr_running > 0);
///         let (khz, rule) = if busy { (view.max_khz, "race") } else { (view.table[0], "idle") };
///         Some(FrequencyDecision { khz, rule })
///     }
/// }
/// ```
pub trait FrequencyGovernor: CloneFrequencyGovernor + Send + Sync {
    /// Utilisation of a CPU may have changed: several times for each task that wakes or sleeps, and at ticks.
    /// `None`: the frequency stays.
    fn update_util(&mut self, view: &PolicyView) -> Option<FrequencyDecision>;
}

boxed!(FrequencyGovernor, CloneFrequencyGovernor, CustomFrequency);

impl Kernel {
    /// `cpufreq_update_util()` where the user's governor stands in schedutil's place.
    #[cold]
    pub(crate) fn custom_frequency_update(&mut self, cpu: CpuId, flags: u32) {
        let index = self.cx.policy_of(cpu);
        let policy = self.cpufreq.policy(index);
        if !policy.dvfs_possible_from_any_cpu && !policy.cpus.contains(self.cx.this_cpu) {
            return;
        }
        // What a change is dated to, as schedutil's are.
        let time = self.sched.rq(cpu).clock;
        let now = self.cx.now;
        let cpus: Vec<CpuDemand> = policy.cpus.iter().map(|cpu| self.cpu_demand(cpu)).collect();
        let policy = self.cpufreq.policy_mut(index);
        let limits_changed = std::mem::take(&mut policy.sugov.limits_changed);
        let current_khz =
            if policy.sugov.next_freq == 0 { policy.cur } else { policy.sugov.next_freq };
        let custom = policy.custom.as_mut().expect("each domain has an instance");
        let decision = custom.policy.update_util(&PolicyView {
            now,
            cpu,
            iowait: flags & SCHED_CPUFREQ_IOWAIT != 0,
            limits_changed,
            table: &policy.table,
            max_khz: policy.limits.max,
            current_khz,
            cpus: &cpus,
        });
        // A new limit also counts for a policy that decides nothing.
        let within = policy.limits.clamp(current_khz);
        let limited = limits_changed && current_khz != within;
        let at_limit = FrequencyDecision { khz: within, rule: "within the new limit" };
        let Some(decision) = decision.or(limited.then_some(at_limit)) else { return };
        let khz = policy.resolve(decision.khz);
        let choice = FrequencyChoice {
            raw_khz: decision.khz,
            khz,
            cached_raw_khz: decision.khz,
            rule: FrequencyRule::Custom(decision.rule),
        };
        if self.cx.wants_decisions() {
            let inputs = cpus
                .iter()
                .map(|seen| self.cpufreq.frequency_input(seen.cpu, &self.sched, &self.cx))
                .collect();
            let highest = cpus.iter().map(|seen| seen.demand).max().unwrap_or(0);
            self.cpufreq.record_frequency(index, inputs, highest, &choice, &mut self.cx);
        }
        if self.cpufreq.policy_mut(index).sugov.commit(time, &choice) {
            self.cpufreq_driver_request(index, khz, time);
        }
    }

    fn cpu_demand(&self, cpu: CpuId) -> CpuDemand {
        let (util, _) = self.sched.sugov_demand(cpu, None, &self.cx);
        CpuDemand {
            cpu,
            demand: self.cx.sugov_perf(util),
            util: self.sched.sched_cpu_util(cpu, &self.cx),
            capacity: self.sched.arch_scale_cpu_capacity(cpu),
            nr_running: self.sched.rq(cpu).nr_running,
            idle_ns: self.sched.idle_time(cpu, &self.cpuidle, &self.cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_busiest_and_what_that_needs() {
        let demand = |cpu, demand, capacity| CpuDemand {
            cpu: CpuId(cpu),
            demand,
            util: demand,
            capacity,
            nr_running: 1,
            idle_ns: 0,
        };
        let cpus = [demand(0, 60, 124), demand(1, 500, 1024), demand(2, 62, 128)];
        let view = PolicyView {
            now: 0,
            cpu: CpuId(0),
            iowait: false,
            limits_changed: false,
            table: &[500_000, 1_000_000],
            max_khz: 1_000_000,
            current_khz: 500_000,
            cpus: &cpus,
        };
        assert_eq!(view.busiest().cpu, CpuId(1));
        assert_eq!(view.khz_for(&cpus[0]), 483_870);
        assert_eq!(view.khz_for(&demand(3, 2000, 1024)), 1_000_000, "more than all is all");
    }
}
