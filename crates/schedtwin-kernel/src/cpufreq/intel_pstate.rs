// SPDX-License-Identifier: GPL-2.0-or-later
//! intel_pstate in active mode, on processors that leave the choice to it (no HWP).
//!
//! **Decides** the P-state of each CPU by itself: no governor of Linux runs.
//!
//! **Idea.** What the scheduler thinks of tasks does not count; the processor's counters do. They tell which share of the last sample
//! the CPU did not sleep, and how fast it ran meanwhile. The share of the highest frequency plus a quarter is the target, as schedutil
//! does with utilisation; but idle time at a low clock looks like idle time at a high one.
//!
//! **Terms.** *P-state*: a frequency in steps of 100 MHz. *Busy fraction*: MPERF / TSC. *Average P-state*: what the CPU ran at while it
//! worked ([`crate::cpufreq::counters`]).
//!
//! **Algorithm** (powersave).
//! 1. The CPU's own hook, at most every 10 ms; code on other CPUs is not heard. Each call moves the boost of waiting for I/O: an
//!    eighth, doubled by each wakeup from I/O, halved by each other call, cleared after a tick of silence.
//! 2. Busy fraction, at least the boost; target = 1.25 · highest · fraction.
//! 3. If the CPU has run faster than that on average, half of the difference is added: going down takes several samples.
//! 4. The limits, and the register, if that is another P-state than before.
//!
//! performance: the highest P-state once and for all.
//!
//! ```text
//!  hook ─ < 10 ms ─ nothing
//!  hook ─ counters ── busy 40 % ── 1.25 · 48 · 0.4 = 23 ── ran at 48 on average: 23 + 12 = 35 ── 3.5 GHz
//!  hook, 10 ms on ─── busy 40 % ──────────────────── 23 ── ran at 34: 23 + 5 = 28 ──────────────── 2.8 GHz
//! ```
//!
//! Kernel: 6.1.192 and 6.12.117 drivers/cpufreq/intel_pstate.c `intel_pstate_update_util`, `intel_pstate_sample`, `get_target_pstate`,
//! `intel_pstate_update_perf_limits`, `intel_pstate_set_policy`. Checked call by call
//! against that C (`conformance/src/intel_pstate`).
//! Differences: Core processors only. Where the table has no such frequency, the next higher one is asked for. `cpu_frequency` is
//! traced when the P-state changes, there with every sample. The turbo P-state is the table's highest, and counts as the base.

pub mod cpu;

use crate::config::Config;
use crate::cpufreq::counters::Counters;
use crate::cpufreq::policy::CpufreqPolicy;
use crate::cpufreq::schedutil::FrequencyChoice;
use crate::sched::fair::class::SCHED_CPUFREQ_IOWAIT;
use crate::{Context, Cpufreq, Kernel, Scheduler};
use cpu::{FRAC_BITS, PstateCpu, Pstates, SCALING};
use schedtwin_types::{CpuId, FrequencyRule, Khz, PolicyId};

/// The driver of a policy.
fn driver_of(policy: &CpufreqPolicy, config: &Config) -> PstateCpu {
    let pstate = |khz: Khz| (khz / SCALING) as i32;
    let turbo = pstate(policy.max());
    let pstates = Pstates { min: pstate(policy.table[0]), max_physical: turbo, turbo };
    PstateCpu::new(pstates, config.pstate_max_perf_pct, config.pstate_min_perf_pct)
}

impl CpufreqPolicy {
    /// The frequency of a P-state, or the next higher one of the table.
    pub(super) fn khz_of_pstate(&self, pstate: i32) -> Khz {
        self.next_higher(pstate as u32 * SCALING)
    }
}

impl Cpufreq {
    /// The driver starts on all CPUs: `intel_pstate_cpu_init()`, `intel_pstate_set_policy()`.
    pub(crate) fn intel_pstate_start(&mut self, sched: &mut Scheduler, cx: &mut Context) {
        self.intel_pstate_cpu_init(cx);
        for index in self.policies.ids() {
            let policy = &self.policies[index];
            let pstate = policy.pstate.as_ref().expect("it has been put there");
            let at_start = if cx.config.pins_pstate() { pstate.max_perf_ratio } else { 0 };
            let khz = policy.khz_of_pstate(at_start.max(pstate.pstates.min));
            self.cpufreq_driver_target_index(index, khz);
            self.set_policy_cur(index, khz, sched, cx);
        }
    }

    /// `__intel_pstate_cpu_init()` of all CPUs.
    pub(crate) fn intel_pstate_cpu_init(&mut self, cx: &Context) {
        for index in self.policies.ids() {
            let pstate = driver_of(&self.policies[index], &cx.config);
            self.policies[index].pstate = Some(Box::new(pstate));
            self.set_pstate_limits(index);
        }
    }

    /// Counters for a machine whose driver reads them; silicon runs at `max` when time begins.
    pub(crate) fn start_counters(&mut self, sched: &Scheduler, cx: &Context) {
        let max = |cpu| self.policies[cx.policy_of(CpuId(cpu as u16))].max();
        self.counters = (0..sched.nr_cpus()).map(|cpu| Counters::new(max(cpu), max(cpu))).collect();
    }

    /// `intel_pstate_update_perf_limits()`, where the driver has P-states.
    pub(super) fn set_pstate_limits(&mut self, index: PolicyId) {
        let policy = &mut self.policies[index];
        let (min, max) = (policy.limits.min, policy.limits.max);
        if let Some(pstate) = &mut policy.pstate {
            pstate.update_perf_limits(min, max);
        }
    }

    /// `intel_pstate_update_util()`.
    #[cold]
    pub(crate) fn intel_pstate_update_util(
        &mut self,
        cpu: CpuId,
        flags: u32,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) {
        let index = cx.policy_of(cpu);
        self.note_remote_change(cpu, sched, cx);
        if cpu != cx.this_cpu {
            self.policies[index].sugov.counts.elsewhere += 1;
            if cx.wants_decisions() {
                self.record_refusal(index, FrequencyRule::NotFromHere, cx);
            }
            return;
        }
        let (time, tick) = (sched.rq(cpu).clock, cx.tick_nsec);
        let Some(mut pstate) = self.policies[index].pstate.take() else { return };
        if !pstate.update_util(time, flags & SCHED_CPUFREQ_IOWAIT != 0, tick) {
            self.policies[index].sugov.counts.rate_limited += 1;
        } else {
            let counts = self.read_counters(cx);
            if pstate.take_sample(time, counts) {
                self.intel_pstate_adjust_pstate(cpu, index, &mut pstate, sched, cx);
            }
        }
        self.policies[index].pstate = Some(pstate);
    }

    /// `intel_pstate_adjust_pstate()`.
    fn intel_pstate_adjust_pstate(
        &mut self,
        cpu: CpuId,
        index: PolicyId,
        pstate: &mut PstateCpu,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) {
        let busy = sched.rq(cpu).nr_running > 0;
        let raw = pstate.target_pstate();
        let target = pstate.prepare_request(raw);
        let changes = target != pstate.current;
        pstate.current = target;
        let khz = self.policies[index].khz_of_pstate(target);
        if cx.wants_decisions() {
            let rule = if changes { FrequencyRule::Changed } else { FrequencyRule::Unchanged };
            let raw_khz = raw as u32 * SCALING;
            let choice = FrequencyChoice { raw_khz, khz, cached_raw_khz: raw_khz, rule };
            let busy_of_1024 = (pstate.busy_scaled / 100) << (10 - FRAC_BITS);
            self.record_frequency(index, Vec::new(), busy_of_1024 as u64, &choice, cx);
        }
        let counts = &mut self.policies[index].sugov.counts;
        counts.decided(cx.now, busy);
        counts.count(changes);
        if changes {
            self.cpufreq_driver_fast_switch(index, khz, pstate.sample_time, sched, cx);
        }
    }
}

impl Kernel {
    /// `intel_pstate_set_policy()`: the policy's limit has changed.
    pub(crate) fn intel_pstate_limits(&mut self, index: PolicyId) {
        self.cpufreq.set_pstate_limits(index);
        if self.cx.config.pins_pstate() {
            let policy = &self.cpufreq.policies[index];
            let pstate = policy.pstate.as_ref().expect("its driver is intel_pstate");
            let khz = policy.khz_of_pstate(pstate.max_perf_ratio.max(pstate.pstates.min));
            self.cpufreq_driver_target(index, khz);
        }
    }
}
