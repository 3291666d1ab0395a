// SPDX-License-Identifier: GPL-2.0-or-later
//! schedutil: frequency follows utilisation.
//!
//! **Decides** the frequency of a domain each time the scheduler says that utilisation may have changed.
//!
//! **Idea.** The busiest CPU of the domain needs util of 1024; with a quarter of headroom it should run at
//! `f = 1.25 · f_max · util / capacity`, the lowest table frequency not below that. The rate limit keeps
//! changes apart; a request that changes nothing does not count.
//!
//! ```text
//! cpu_util_cfs_boost ─ sched/demand: + rt, dl, irq, clamps, headroom
//!        └── busiest CPU of the domain ── get_next_freq ── table ── rate limit ── switch
//!                                                           └─ or a thread: sugov_kthread.rs
//! ```
//!
//! **Example.** util 512 of 1024, f_max 2 GHz: 640 · 2 GHz / 1024 = 1.25 GHz.
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/cpufreq_schedutil.c. Checked call by call against that C
//! (`conformance/src/schedutil`).
//! Earlier forms: who is called, and when, is [`crate::cpufreq::hook`]'s; where the caller hands utilisation over, `v4_7.rs`
//! decides. What requests refer to where utilisation does not scale with the clock is `reference_frequency()`.
//! Drivers that are asked for performance (`adjust_perf`): `driver.rs`.
//! Differences: the lower limit is the table's end; on x86 utilisation
//! scales with what is asked for, where Linux reads what the CPU ran at from counters, once a tick.

#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod conformance;
pub mod v4_7;

use crate::cpufreq::forms::SugovForms;
use crate::cpufreq::hook::{FrequencyHook, RequestCounts};
use crate::cpufreq::policy::CpufreqPolicy;
use crate::observe::{DecisionLog, DecisionObserver};
use crate::sched::fair::class::SCHED_CPUFREQ_IOWAIT;
use crate::{Context, Cpufreq, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, Decision, FrequencyInput, FrequencyRule, Khz, Ns, PolicyId};

/// `IOWAIT_BOOST_MIN`: an eighth of the scale.
const IOWAIT_BOOST_MIN: u32 = 128;

/// `struct sugov_policy`.
#[derive(Clone, Debug, Default)]
pub struct SugovPolicy {
    /// Time of the last change.
    pub last_freq_update_time: Ns,
    /// The rate limit.
    pub freq_update_delay_ns: i64,
    /// The frequency requested last.
    pub next_freq: Khz,
    /// The frequency before the table that led to it.
    pub cached_raw_freq: Khz,
    /// The highest demand of its CPUs at the last request.
    pub util: u64,
    /// The capacity that it was a share of.
    pub capacity: u64,
    /// The limits have changed: the rate limit does not count once.
    pub limits_changed: bool,
    /// And an equal frequency is looked up again.
    pub need_freq_update: bool,
    /// The slow path's thread has been asked and has not read `next_freq` yet.
    pub work_in_progress: bool,
    /// The outcomes of its calls.
    pub counts: RequestCounts,
}

/// `struct sugov_cpu`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SugovCpu {
    /// 0..=1024.
    pub iowait_boost: u32,
    /// The boost is to be applied.
    pub iowait_boost_pending: bool,
    /// Time of the previous call of the hook.
    pub last_update: Ns,
    /// The CPU's demand; before 6.8 without headroom.
    pub util: u64,
    /// Its floor: clamps, irq and deadline bandwidth; before 6.8 the bandwidth alone (`bw_dl`).
    pub bw_min: u64,
    /// `idle_calls` at the last look.
    pub saved_idle_calls: u64,
    /// The values that it has passed itself, in the form of 4.7.
    pub passed: v4_7::Passed,
}

impl SugovPolicy {
    /// As the governor starts: its limits count as changed.
    pub fn new(freq_update_delay_ns: u64) -> SugovPolicy {
        SugovPolicy {
            freq_update_delay_ns: freq_update_delay_ns as i64,
            limits_changed: true,
            ..SugovPolicy::default()
        }
    }

    /// `sugov_should_update_freq()`, for a CPU that may change the domain.
    fn should_update(&mut self, time: Ns) -> bool {
        if self.limits_changed {
            self.limits_changed = false;
            self.need_freq_update = true;
            return true;
        }
        time as i64 - self.last_freq_update_time as i64 >= self.freq_update_delay_ns
    }

    /// `sugov_update_next_freq()`: takes a decision over; whether there is something to change.
    pub(crate) fn commit(&mut self, time: Ns, choice: &FrequencyChoice) -> bool {
        self.cached_raw_freq = choice.cached_raw_khz;
        self.need_freq_update = false;
        let changes = choice.khz != self.next_freq;
        self.counts.count(changes);
        if !changes {
            return false;
        }
        self.next_freq = choice.khz;
        self.last_freq_update_time = time;
        true
    }
}

/// The decision of schedutil for a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyChoice {
    /// Before the table.
    pub raw_khz: Khz,
    /// Of the table.
    pub khz: Khz,
    /// The raw frequency to be remembered.
    pub cached_raw_khz: Khz,
    /// Which rule decided.
    pub rule: FrequencyRule,
}

impl CpufreqPolicy {
    /// [`Kernel::may_update`], with `this_cpu` executing.
    #[inline(always)]
    fn may_be_updated(&self, this_cpu: CpuId, forms: SugovForms) -> bool {
        self.dvfs_possible_from_any_cpu || self.cpus.contains(this_cpu) || forms.after_preemption
    }

    /// `get_next_freq()`, and the holding of a single CPU's frequency. Read-only. `util`: the domain's
    /// demand with its headroom. `hold`: the domain's only CPU has not been idle since the last request.
    ///
    /// `reference`: what the whole capacity is worth, kHz. `raw`: the table is left to the driver.
    pub fn decide_frequency(
        &self,
        util: u64,
        capacity: u64,
        hold: bool,
        reference: u64,
        raw: bool,
    ) -> FrequencyChoice {
        let sugov = &self.sugov;
        let raw_khz = map_util_freq(util, reference, capacity);
        let khz = if raw {
            raw_khz
        } else if raw_khz == sugov.cached_raw_freq && !sugov.need_freq_update {
            sugov.next_freq
        } else {
            self.resolve(raw_khz)
        };
        if hold && khz < sugov.next_freq && !sugov.need_freq_update {
            return self.held(raw_khz);
        }
        let rule =
            if khz == sugov.next_freq { FrequencyRule::Unchanged } else { FrequencyRule::Changed };
        FrequencyChoice { raw_khz, khz, cached_raw_khz: raw_khz, rule }
    }

    /// The frequency stays, since the domain's only CPU has not been idle.
    fn held(&self, raw_khz: Khz) -> FrequencyChoice {
        FrequencyChoice {
            raw_khz,
            khz: self.sugov.next_freq,
            cached_raw_khz: self.sugov.cached_raw_freq,
            rule: FrequencyRule::Held,
        }
    }
}

/// The frequency, kHz, that the whole capacity of a CPU stands for: the highest, or where
/// utilisation does not scale with the clock the present one, since 6.8 with a quarter on top
/// (`get_capacity_ref_freq()`).
#[inline(always)]
fn reference_frequency(policy: &CpufreqPolicy, forms: SugovForms) -> u64 {
    if forms.invariant {
        return policy.max().into();
    }
    let cur = u64::from(policy.cur);
    if forms.present_and_quarter { cur + (cur >> 2) } else { cur }
}

/// `map_util_freq()`: the frequency that gives `util` of `capacity`.
///
/// ```
/// use schedtwin_kernel::cpufreq::schedutil::map_util_freq;
/// assert_eq!(map_util_freq(640, 2_000_000, 1024), 1_250_000);
/// assert_eq!(map_util_freq(125, 950_000, 383), 310_052);
/// ```
#[inline(always)]
pub fn map_util_freq(util: u64, freq: u64, capacity: u64) -> Khz {
    (freq * util / capacity) as Khz
}

impl Kernel {
    /// `sugov_update_shared()` and `sugov_update_single_freq()`: they differ in who is asked and in the
    /// holding of the frequency.
    #[inline]
    pub(super) fn sugov_update(&mut self, cpu: CpuId, flags: u32) {
        let rq = self.sched.rq(cpu);
        let (time, busy, bw_dl) = (rq.clock, rq.nr_running > 0, rq.dl.cpu_bw_dl());
        self.cpufreq.sugov_iowait_boost(cpu, time, flags, &mut self.sched, &self.cx);
        let index = self.cx.policy_of(cpu);
        let sg = &mut self.cpufreq.sugov_cpus[cpu];
        sg.last_update = time;
        let policy = &mut self.cpufreq.policies[index];
        let may_update = policy.may_be_updated(self.cx.this_cpu, self.cpufreq.sugov_forms);
        let sugov = &mut policy.sugov;
        if cpu != self.cx.this_cpu && busy {
            sugov.counts.changed_from_elsewhere(self.cx.now);
        }
        // ignore_dl_rate_limit()
        sugov.limits_changed |= bw_dl > sg.bw_min;
        if !may_update {
            sugov.counts.elsewhere += 1;
            if self.cx.wants_decisions() {
                self.cpufreq.record_refusal(index, FrequencyRule::NotFromHere, &mut self.cx);
            }
            return;
        }
        let drops = self.cpufreq.sugov_forms.drops_while_busy;
        if (drops && sugov.work_in_progress) || !sugov.should_update(time) {
            sugov.counts.rate_limited += 1;
            if self.cx.wants_decisions() {
                self.cpufreq.record_refusal(index, FrequencyRule::RateLimit, &mut self.cx);
            }
            return;
        }
        sugov.counts.decided(self.cx.now, busy);
        if self.cx.wants_decisions() {
            let mut notes = DecisionLog::default();
            self.sugov_request(cpu, index, time, &mut notes);
        } else {
            self.sugov_request(cpu, index, time, &mut ());
        }
    }

    fn sugov_request<S: DecisionObserver + NoteInputs>(
        &mut self,
        cpu: CpuId,
        index: PolicyId,
        time: Ns,
        see: &mut S,
    ) {
        let util_before = self.cpufreq.sugov_cpus[cpu].util;
        let mut highest = self.cpufreq.policies[index].sugov.util;
        let mut highest_fell = false;
        // All others demand what they did, and have no boost that this request would use up.
        let mut next = Some(0);
        while let Some(word) = next {
            for j in self.sched.stale_demands().among(&self.cpufreq.policies[index].cpus, word) {
                let (before, demand) =
                    self.cpufreq.sugov_get_util(j, cpu, time, &mut self.sched, &self.cx);
                highest_fell |= before == highest && demand < before;
                highest = highest.max(demand);
            }
            next = self.sched.stale_demands().next_word(word);
        }
        let known = (!highest_fell).then_some(highest);
        let cpus = &self.cpufreq.policies[index].cpus;
        let (util, capacity) =
            self.sched.sugov_domain_demand(cpus, cpu, known, &self.cpufreq, &self.cx);
        let policy = &self.cpufreq.policies[index];
        // What was demanded last time led to the frequency that is asked for already.
        let sugov = &policy.sugov;
        let same = (util, capacity) == (sugov.util, sugov.capacity) && !sugov.need_freq_update;
        if same && !policy.is_single && !S::ON && self.cpufreq.sugov_forms.only_demand_counts {
            self.cpufreq.policies[index].sugov.counts.equal += 1;
            return;
        }
        let hold = policy.is_single
            && !self.sched.scx_switched_all()
            && (self.cx.config.bugs.hold_above_cap
                || !self.sched.uclamp_rq_is_capped(cpu, &self.cx))
            && self.cpufreq.sugov_hold_freq(cpu, &self.cpuidle);
        if self.cpufreq.policies[index].adjust_perf && self.cpufreq.sugov_forms.invariant {
            self.cpufreq.sugov_adjust_perf(
                cpu,
                index,
                (time, util_before),
                hold,
                &mut self.sched,
                &mut self.cx,
            );
            return;
        }
        let perf = self.cx.sugov_perf(util);
        let policy = &mut self.cpufreq.policies[index];
        (policy.sugov.util, policy.sugov.capacity) = (util, capacity);
        let forms = self.cpufreq.sugov_forms;
        let reference = reference_frequency(policy, forms);
        let mut choice = policy.decide_frequency(perf, capacity, hold, reference, forms.raw);
        if self.cx.config.bugs.hold_above_limit && hold && choice.khz < policy.sugov.next_freq {
            choice = policy.held(choice.raw_khz);
        }
        if S::ON {
            let cpus = policy.cpus;
            cpus.iter().for_each(|j| {
                see.frequency_input(|| self.cpufreq.frequency_input(j, &self.sched, &self.cx))
            });
            self.cpufreq.record_frequency(index, see.take_inputs(), perf, &choice, &mut self.cx);
        }
        let sugov = &mut self.cpufreq.policies[index].sugov;
        if sugov.commit(time, &choice) {
            self.sugov_carry_out(cpu, index, choice.khz, time);
        } else if self.cpufreq.sugov_forms.requests_restart {
            sugov.last_freq_update_time = time;
        }
    }
}

impl Cpufreq {
    /// `cpufreq_this_cpu_can_update()`: whether the executing CPU may have a domain's clock changed. The remote callbacks as
    /// posted send an interrupt to a CPU that may.
    #[inline]
    pub(crate) fn may_update(&self, index: PolicyId, cx: &Context) -> bool {
        self.policies[index].may_be_updated(cx.this_cpu, self.sugov_forms)
    }

    /// The governor was called, and did not look at anything.
    #[cold]
    pub(super) fn record_refusal(&self, index: PolicyId, rule: FrequencyRule, cx: &mut Context) {
        let khz = self.last_asked_khz(index);
        let choice = FrequencyChoice { raw_khz: 0, khz, cached_raw_khz: 0, rule };
        self.record_frequency(index, Vec::new(), 0, &choice, cx);
    }

    /// The last frequency that the governor asked for; before that the domain's.
    fn last_asked_khz(&self, index: PolicyId) -> Khz {
        match self.policies[index].sugov.next_freq {
            0 => self.policies[index].cur,
            khz => khz,
        }
    }

    pub(crate) fn record_frequency(
        &self,
        index: PolicyId,
        inputs: Vec<FrequencyInput>,
        util: impl Into<Option<u64>>,
        choice: &FrequencyChoice,
        cx: &mut Context,
    ) {
        let util = util.into();
        let previous_khz = self.last_asked_khz(index);
        let sugov = &self.policies[index].sugov;
        let limited_until = (choice.rule == FrequencyRule::RateLimit)
            .then(|| sugov.last_freq_update_time.saturating_add_signed(sugov.freq_update_delay_ns));
        cx.record(Decision::Frequency {
            policy: index,
            inputs,
            util,
            raw_khz: choice.raw_khz,
            khz: choice.khz,
            previous_khz,
            rule: choice.rule,
            limited_until,
        });
    }

    /// `sugov_get_util()`: computes a CPU's demand with its boost, for a request of CPU `hook`. What it was before, and what
    /// it is.
    fn sugov_get_util(
        &mut self,
        cpu: CpuId,
        hook: CpuId,
        time: Ns,
        sched: &mut Scheduler,
        cx: &Context,
    ) -> (u64, u64) {
        let boost = match self.sugov_cpus[cpu].iowait_boost {
            0 => None,
            _ => self.sugov_iowait_apply(cpu, time, sched.iowait_boost_capacity(cpu, hook, cx), cx),
        };
        let (util, bw_min) = sched.sugov_demand(cpu, boost, cx);
        let sg = &mut self.sugov_cpus[cpu];
        sg.bw_min = bw_min;
        let before = std::mem::replace(&mut sg.util, util);
        if sg.iowait_boost == 0 {
            sched.stale_demands_mut().computed(cpu);
        }
        (before, util)
    }

    /// Returns what a record shows of a CPU.
    pub(crate) fn frequency_input(
        &self,
        cpu: CpuId,
        sched: &Scheduler,
        cx: &Context,
    ) -> FrequencyInput {
        let rq = sched.rq(cpu);
        let (util, min) = match self.frequency_hook {
            FrequencyHook::Custom | FrequencyHook::OfMachine | FrequencyHook::Early => {
                sched.sugov_demand(cpu, None, cx)
            }
            _ => (self.sugov_cpus[cpu].util, self.sugov_cpus[cpu].bw_min),
        };
        let avg = &sched.root_cfs(cpu).avg;
        FrequencyInput {
            cpu,
            util_avg: avg.util_avg,
            runnable_avg: avg.runnable_avg,
            util_est: avg.util_est as u64,
            util_uclamp: sched.summed_cpu_util(cpu, cx),
            boost: sched.cpu_util_cfs_boost(cpu, cx) - sched.cpu_util_cfs(cpu, cx),
            rt: rq.avg_rt.util_avg,
            dl: rq.avg_dl.util_avg,
            irq: rq.avg_irq.util_avg,
            min,
            max: sched.uclamp_of(cpu, cx).map(|of| u64::from(of.max)).filter(|max| *max < 1024),
            perf: cx.sugov_perf(util),
        }
    }

    /// `sugov_hold_freq()`: a single-CPU domain does not slow down before its CPU has been idle.
    fn sugov_hold_freq(&mut self, cpu: CpuId, cpuidle: &Cpuidle) -> bool {
        let calls = cpuidle.cpu(cpu).tick.idle_calls;
        let sg = &mut self.sugov_cpus[cpu];
        let hold = calls == sg.saved_idle_calls;
        sg.saved_idle_calls = calls;
        hold
    }

    /// `sugov_iowait_reset()`: after a tick without a call the boost starts over.
    #[inline]
    fn sugov_iowait_reset(&mut self, cpu: CpuId, time: Ns, set: bool, cx: &Context) -> bool {
        let tick = cx.tick_nsec as i64;
        let sg = &mut self.sugov_cpus[cpu];
        if time as i64 - sg.last_update as i64 <= tick {
            return false;
        }
        sg.iowait_boost = if set { IOWAIT_BOOST_MIN } else { 0 };
        sg.iowait_boost_pending = set;
        true
    }

    /// `sugov_iowait_boost()`.
    #[inline(always)]
    fn sugov_iowait_boost(
        &mut self,
        cpu: CpuId,
        time: Ns,
        flags: u32,
        sched: &mut Scheduler,
        cx: &Context,
    ) {
        let set = flags & SCHED_CPUFREQ_IOWAIT != 0;
        if set || self.sugov_cpus[cpu].iowait_boost != 0 {
            self.sugov_iowait_boosted(cpu, time, set, sched, cx);
        }
    }

    /// Some I/O is waited for, or was.
    #[inline(never)]
    fn sugov_iowait_boosted(
        &mut self,
        cpu: CpuId,
        time: Ns,
        set: bool,
        sched: &mut Scheduler,
        cx: &Context,
    ) {
        if self.sugov_cpus[cpu].iowait_boost != 0 && self.sugov_iowait_reset(cpu, time, set, cx) {
            return;
        }
        let sg = &mut self.sugov_cpus[cpu];
        if !set || sg.iowait_boost_pending {
            return;
        }
        sg.iowait_boost_pending = true;
        sched.stale_demands_mut().mark(cpu);
        sg.iowait_boost =
            if sg.iowait_boost != 0 { (sg.iowait_boost << 1).min(1024) } else { IOWAIT_BOOST_MIN };
    }

    /// `sugov_iowait_apply()`: the boost that this request gets, if any.
    #[inline(never)]
    fn sugov_iowait_apply(
        &mut self,
        cpu: CpuId,
        time: Ns,
        capacity: u64,
        cx: &Context,
    ) -> Option<u64> {
        if self.sugov_cpus[cpu].iowait_boost == 0 || self.sugov_iowait_reset(cpu, time, false, cx) {
            return None;
        }
        let sg = &mut self.sugov_cpus[cpu];
        if !sg.iowait_boost_pending {
            sg.iowait_boost >>= 1;
            if sg.iowait_boost < IOWAIT_BOOST_MIN {
                sg.iowait_boost = 0;
                return None;
            }
        }
        sg.iowait_boost_pending = false;
        Some((sg.iowait_boost as u64 * capacity) >> 10)
    }
}

/// Watchers that hand out the inputs they have noted.
trait NoteInputs {
    fn take_inputs(&mut self) -> Vec<FrequencyInput>;
}

impl NoteInputs for () {
    fn take_inputs(&mut self) -> Vec<FrequencyInput> {
        Vec::new()
    }
}

impl NoteInputs for DecisionLog {
    fn take_inputs(&mut self) -> Vec<FrequencyInput> {
        std::mem::take(&mut self.inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::root_domain::tests::kernel;

    const OPPS: &[(u32, u64)] = &[(500_000, 100_000), (1_000_000, 300_000), (2_000_000, 900_000)];

    /// The boost doubles once per applied request, halves without one, and starts over after a tick.
    #[test]
    fn iowait_boost() {
        let mut kernel = kernel(&[(1, 1024, OPPS)]);
        let cpu = CpuId(0);
        let mut time = 10_000_000;
        let mut request = |k: &mut Kernel, step: Ns, io: bool| {
            time += step;
            k.cpufreq.sugov_iowait_boost(
                cpu,
                time,
                if io { SCHED_CPUFREQ_IOWAIT } else { 0 },
                &mut k.sched,
                &k.cx,
            );
            k.cpufreq.sugov_cpus[cpu].last_update = time;
            k.cpufreq.sugov_iowait_apply(cpu, time, 1024, &k.cx).unwrap_or(0)
        };
        let steps = [1_000_000; 5].map(|step| request(&mut kernel, step, true));
        assert_eq!(steps, [128, 256, 512, 1024, 1024]);
        let steps = [1_000_000; 5].map(|step| request(&mut kernel, step, false));
        assert_eq!(steps, [512, 256, 128, 0, 0]);
        request(&mut kernel, 1_000_000, true);
        assert_eq!(request(&mut kernel, 1_000_000, true), 256);
        assert_eq!(request(&mut kernel, 4_000_001, true), 128);
        assert_eq!(request(&mut kernel, 4_000_001, false), 0);
    }

    /// The first request ignores the rate limit, and so does one that the fair server causes; a
    /// request for the frequency that is set already does not restart the limit.
    #[test]
    fn rate_limit() {
        let choice = |khz| FrequencyChoice {
            raw_khz: khz,
            khz,
            cached_raw_khz: khz,
            rule: FrequencyRule::Changed,
        };
        let mut policy = SugovPolicy::new(1_000);
        assert!(policy.should_update(0) && policy.commit(0, &choice(500)));
        assert!(!policy.should_update(999));
        assert!(policy.should_update(1_000) && !policy.commit(1_000, &choice(500)));
        assert!(policy.should_update(1_001) && policy.commit(1_001, &choice(600)));
        assert!(!policy.should_update(2_000));
        policy.limits_changed = true;
        assert!(policy.should_update(2_000) && policy.need_freq_update);
        assert!(!policy.commit(2_000, &choice(600)) && !policy.need_freq_update);
    }

    /// A limit lowers the clock of a CPU that has not been idle.
    #[test]
    fn a_limit_is_heard_at_once() {
        let next = |hold_above_limit| {
            let mut kernel = kernel(&[(1, 1024, OPPS)]);
            kernel.cx.config.bugs.hold_above_limit = hold_above_limit;
            kernel.inside_mut().rq[CpuId(0)].avg_rt.util_avg = 900;
            for limit in [2_000_000, 1_000_000] {
                kernel.cpufreq.policies[PolicyId(0)].limits.max = limit;
                kernel.cpufreq.policies[PolicyId(0)].sugov.limits_changed = true;
                kernel.inside_mut().rq[CpuId(0)].clock += 10_000_000;
                kernel.sched.stale_demands_mut().mark(CpuId(0));
                kernel.sugov_update(CpuId(0), 0);
            }
            kernel.cpufreq.policies[PolicyId(0)].sugov.next_freq
        };
        assert_eq!([false, true].map(next), [1_000_000, 2_000_000]);
    }

    /// A fair server that starts is heard at once, although the last change was just now.
    #[test]
    fn the_fair_servers_floor_ignores_the_rate_limit() {
        let mut kernel = kernel(&[(1, 1024, OPPS)]);
        kernel.inside_mut().rq[CpuId(0)].clock = 5_000_000;
        kernel.sugov_update(CpuId(0), 0);
        kernel.inside_mut().rq[CpuId(0)].clock += 1;
        kernel.inside_mut().rq[CpuId(0)].dl.count_for_test();
        kernel.sched.stale_demands_mut().mark(CpuId(0));
        kernel.sugov_update(CpuId(0), 0);
        assert_eq!(kernel.cpufreq.sugov_cpus[CpuId(0)].bw_min, 51);
        assert_eq!(kernel.cpufreq.policies[PolicyId(0)].sugov.cached_raw_freq, 99_609);
    }
}
