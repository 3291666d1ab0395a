// SPDX-License-Identifier: GPL-2.0-or-later
//! schedutil as it began, in 4.7: utilisation is handed over by who calls.
//!
//! **Decides** the frequency of a domain when one of its CPUs says how much of it is used.
//!
//! **Idea.** A CPU says what its fair tasks use; one that runs RT or DEADLINE tasks asks for the highest frequency instead,
//! because nothing is known of what they need. In a domain of several CPUs each remembers what it said last, and the one with
//! the largest share of its capacity speaks for all. A CPU that has said nothing for a tick probably sleeps: it does not count.
//!
//! **Algorithm.**
//! 1. A CPU of a shared domain remembers utilisation, capacity and time, whether or not anything follows.
//! 2. Nothing while the slow path is at work, or within the rate limit, unless limits have changed.
//! 3. `f = 1.25 · ref · util / capacity`, where ref is the highest frequency if utilisation scales with the clock, else the
//!    present one. So without such scaling the clock climbs by a quarter at most each time.
//! 4. As [`crate::config::SugovMapping`] says, f itself or the driver's frequency for it is compared with the last request.
//! 5. As [`crate::config::SugovRateLimit`] says, the rate limit starts again in any case, or if the request is another one.
//!
//! **The trap** that its authors fixed later: with f itself in step 4 and "in any case" in step 5, the smallest change of
//! utilisation uses up the rate limit, and the large one that follows waits.
//!
//! **Example.** 2 GHz, util 512 of 1024: (2 000 000 + 500 000) · 512 / 1024 = 1 250 000 kHz.
//!
//! Kernel: 4.7 kernel/sched/cpufreq_schedutil.c, all of it; call by call against that C (`conformance/src/schedutil`,
//! `schedutil-4.7`).
//! Differences: that the driver writes a trace event for a frequency that is set already is left out. 4.8 to 4.16 have
//! this form with a boost after I/O (4.9), holding of a busy CPU's frequency (4.12) and another time to count staleness from
//! (4.13), which are not modelled in it.

use crate::cpufreq::policy::CpufreqPolicy;
use crate::cpufreq::schedutil::FrequencyChoice;
use crate::{Context, Cpufreq, Kernel};
use schedtwin_types::{CpuId, FrequencyRule, Khz, Ns, PolicyId};

/// The values that a CPU has passed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Utilisation; [`u64::MAX`]: all there is.
    pub util: u64,
    /// The capacity that it is a share of.
    pub max: u64,
    /// When.
    pub last_update: Ns,
}

/// As the governor starts: nobody has said anything, so all there is would be asked for.
impl Default for Passed {
    fn default() -> Passed {
        Passed { util: u64::MAX, max: 0, last_update: 0 }
    }
}

impl CpufreqPolicy {
    /// `get_next_freq()`: before and after the table. `passed`: utilisation and capacity, or all there is. `reference`: the
    /// highest frequency, or the present one. `uses_raw`: the table is left to the driver.
    fn next_freq_passed(
        &mut self,
        passed: Option<(u64, u64)>,
        reference: Khz,
        uses_raw: bool,
    ) -> (Khz, Khz) {
        let Some((util, max)) = passed else { return (self.max(), self.max()) };
        let raw = raw_frequency(reference, util, max);
        if uses_raw {
            return (raw, raw);
        }
        // next_freq is forgotten when limits have changed.
        if raw == self.sugov.cached_raw_freq && self.sugov.next_freq != Khz::MAX {
            return (raw, self.sugov.next_freq);
        }
        self.sugov.cached_raw_freq = raw;
        (raw, self.resolve(raw))
    }
}

/// The formula: `reference`, with a quarter of headroom, times the share of the capacity that is used.
///
/// ```
/// use schedtwin_kernel::cpufreq::schedutil::v4_7::raw_frequency;
/// assert_eq!(raw_frequency(2_000_000, 512, 1024), 1_250_000);
/// // Without frequency invariance: from 1.2 GHz, fully used, a quarter more.
/// assert_eq!(raw_frequency(1_200_000, 1024, 1024), 1_500_000);
/// ```
#[inline]
pub fn raw_frequency(reference: Khz, util: u64, max: u64) -> Khz {
    (u64::from(reference + (reference >> 2)) * util / max) as Khz
}

impl Kernel {
    /// `sugov_update_single()` and `sugov_update_shared()` for `cpu`; `util` is `None` where all there is is asked for.
    pub(in crate::cpufreq) fn sugov_update_passed(&mut self, cpu: CpuId, util: Option<u64>) {
        let (time, max) = (self.sched.rq(cpu).clock, self.sched.arch_scale_cpu_capacity(cpu));
        let index = self.cx.policy_of(cpu);
        if !self.cpufreq.policies[index].is_single {
            let util = util.unwrap_or(u64::MAX);
            self.cpufreq.sugov_cpus[cpu].passed = Passed { util, max, last_update: time };
        }
        if let Some(refusal) = self.cpufreq.refusal_passed(index, time, &self.cx) {
            if self.cx.wants_decisions() {
                self.cpufreq.record_refusal(index, refusal, &mut self.cx);
            }
            return;
        }
        let busy = self.sched.rq(cpu).nr_running > 0;
        self.cpufreq.policies[index].sugov.counts.decided(self.cx.now, busy);
        let passed = match self.cpufreq.policies[index].is_single {
            true => util.map(|util| (util, max)),
            false => self.cpufreq.speaks_for_domain(cpu, index, &self.cx),
        };
        let policy = &mut self.cpufreq.policies[index];
        let forms = self.cpufreq.sugov_forms;
        let reference = if forms.invariant { policy.max() } else { policy.cur };
        let (raw_khz, khz) = policy.next_freq_passed(passed, reference, forms.raw);
        let sugov = &mut policy.sugov;
        let changes = khz != sugov.next_freq;
        if self.cx.wants_decisions() {
            let rule = if changes { FrequencyRule::Changed } else { FrequencyRule::Unchanged };
            let (util, cpus) =
                (passed.map_or(max, |(util, _)| util), self.cpufreq.policies[index].cpus);
            let choice = FrequencyChoice { raw_khz, khz, cached_raw_khz: raw_khz, rule };
            let inputs = cpus
                .iter()
                .map(|j| self.cpufreq.frequency_input(j, &self.sched, &self.cx))
                .collect();
            self.cpufreq.record_frequency(index, inputs, util, &choice, &mut self.cx);
        }
        let sugov = &mut self.cpufreq.policies[index].sugov;
        if changes || forms.requests_restart {
            sugov.last_freq_update_time = time;
        }
        sugov.next_freq = khz;
        sugov.counts.count(changes);
        if changes {
            self.sugov_carry_out(cpu, index, khz, time);
        }
    }
}

impl Cpufreq {
    /// `sugov_should_update_freq()`: why not, if it should not.
    fn refusal_passed(&mut self, index: PolicyId, time: Ns, cx: &Context) -> Option<FrequencyRule> {
        let may = self.may_update(index, cx);
        let drops = self.sugov_forms.drops_while_busy;
        let sugov = &mut self.policies[index].sugov;
        if !may {
            sugov.counts.elsewhere += 1;
            return Some(FrequencyRule::NotFromHere);
        }
        let busy = drops && sugov.work_in_progress;
        if !busy && sugov.limits_changed {
            sugov.limits_changed = false;
            sugov.next_freq = Khz::MAX;
            return None;
        }
        let delta = time as i64 - sugov.last_freq_update_time as i64;
        if busy || delta < sugov.freq_update_delay_ns {
            sugov.counts.rate_limited += 1;
            return Some(FrequencyRule::RateLimit);
        }
        None
    }

    /// `sugov_next_freq_shared()`: utilisation and capacity of the CPU that speaks for the domain; `None`: one of them asks
    /// for all there is.
    fn speaks_for_domain(&self, cpu: CpuId, index: PolicyId, cx: &Context) -> Option<(u64, u64)> {
        let policy = &self.policies[index];
        let Passed { mut util, mut max, .. } = self.sugov_cpus[cpu].passed;
        if util == u64::MAX {
            return None;
        }
        for j in policy.cpus.iter().filter(|j| *j != cpu) {
            let other = self.sugov_cpus[j].passed;
            let age = policy.sugov.last_freq_update_time as i64 - other.last_update as i64;
            if age > cx.tick_nsec as i64 {
                continue;
            }
            if other.util == u64::MAX {
                return None;
            }
            if other.util * max > other.max * util {
                (util, max) = (other.util, other.max);
            }
        }
        Some((util, max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        Config, CpufreqRemote, EffectiveCpuUtil, FreqInvariance, SugovMapping, SugovRateLimit,
        SugovWork,
    };
    use crate::sched::CfsRqId;
    use crate::sched::root_domain::tests::device_tree;

    const OPPS: &[(u32, u64)] =
        &[(1_000_000, 1000), (1_100_000, 1200), (1_500_000, 2000), (2_000_000, 4000)];
    const LIMIT: Ns = 10_000_000;

    fn boot(cpus: u16, mapping: SugovMapping, limit: SugovRateLimit) -> Kernel {
        let config = Config {
            fair_server_runtime: 0,
            effective_cpu_util: EffectiveCpuUtil::Passed,
            cpufreq_remote: CpufreqRemote::LocalOnly,
            sugov_mapping: mapping,
            sugov_rate_limit: limit,
            sugov_work: SugovWork::Drop,
            ..Config::linux_6_12()
        };
        let mut kernel = Kernel::boot(device_tree(&[(cpus, 1024, OPPS)]), config);
        kernel.cpufreq.policies[PolicyId(0)].sugov.freq_update_delay_ns = LIMIT as i64;
        kernel
    }

    fn says(kernel: &mut Kernel, cpu: u16, time: Ns, util: u64) -> Khz {
        let cpu = CpuId(cpu);
        kernel.cx.this_cpu = cpu;
        kernel.inside_mut().rq[cpu].clock = time;
        kernel.inside_mut().cfs[CfsRqId::root(cpu)].avg.util_avg = util;
        kernel.cpufreq_update_util(cpu, 0);
        kernel.cpufreq.policies[PolicyId(0)].requested
    }

    /// The experiment in small: a tiny change of utilisation, and a large one 1 ms later. Each patch alone does not help.
    #[test]
    fn a_small_change_uses_up_the_rate_limit() {
        use {SugovMapping::*, SugovRateLimit::*};
        for (mapping, limit, expected) in [
            (Raw, Requests, 1_000_000),
            (Raw, Changes, 1_000_000),
            (Resolved, Requests, 1_000_000),
            (Resolved, Changes, 2_000_000),
        ] {
            let mut kernel = boot(1, mapping, limit);
            says(&mut kernel, 0, 1_000_000, 300);
            says(&mut kernel, 0, 1_000_000 + LIMIT, 301);
            let khz = says(&mut kernel, 0, 2_000_000 + LIMIT, 1000);
            assert_eq!(khz, expected, "{mapping:?} {limit:?}");
        }
    }

    /// A CPU that has said nothing for a tick before the last request does not count, however much it said.
    #[test]
    fn who_says_nothing_is_forgotten() {
        let mut kernel = boot(2, SugovMapping::Raw, SugovRateLimit::Requests);
        let tick = kernel.cx.tick_nsec;
        let start = 100 * tick;
        assert_eq!(says(&mut kernel, 1, start, 1000), 2_000_000);
        assert_eq!(says(&mut kernel, 0, start + tick, 100), 2_000_000, "within the rate limit");
        assert_eq!(says(&mut kernel, 0, start + LIMIT, 100), 2_000_000, "its age was 0 then");
        assert_eq!(says(&mut kernel, 0, start + 2 * LIMIT, 100), 1_000_000);
    }

    /// Without invariance the clock climbs by a quarter at a time.
    #[test]
    fn without_invariance_it_climbs() {
        let mut kernel = boot(1, SugovMapping::Raw, SugovRateLimit::Requests);
        kernel = kernel.with_config(|config| config.freq_invariance = FreqInvariance::None);
        kernel.cpufreq.set_policy_cur(PolicyId(0), 1_000_000, &mut kernel.sched, &mut kernel.cx);
        let climbs = [1, 2, 3, 4].map(|n| says(&mut kernel, 0, n * LIMIT, 1024));
        assert_eq!(climbs, [1_500_000, 2_000_000, 2_000_000, 2_000_000]);
        assert_eq!(kernel.inside_mut().rq[CpuId(0)].freq_scale, 1024);
    }

    /// A change on another CPU is not heard of, in the first form.
    #[test]
    fn only_local_calls_count() {
        let mut kernel = boot(2, SugovMapping::Raw, SugovRateLimit::Requests);
        says(&mut kernel, 0, LIMIT, 100);
        says(&mut kernel, 0, 2 * LIMIT, 100);
        kernel.inside_mut().rq[CpuId(1)].clock = 4 * LIMIT;
        kernel.inside_mut().cfs[CfsRqId::root(CpuId(1))].avg.util_avg = 1000;
        kernel.cpufreq_update_util(CpuId(1), 0);
        assert_eq!(kernel.cpufreq.policies[PolicyId(0)].requested, 1_000_000);
        assert_eq!(kernel.cpufreq.policies[PolicyId(0)].sugov.counts.elsewhere, 1);
    }
}
