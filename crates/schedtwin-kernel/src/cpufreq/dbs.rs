// SPDX-License-Identifier: GPL-2.0-or-later
//! ondemand and conservative: governors that look at the load every so often (demand-based switching).
//!
//! **Decide** the frequency of a domain from how much of the last sampling period its busiest CPU did not idle.
//!
//! **Idea.** Nothing is known of tasks; what counts is the time that a CPU's idle task did not run. ondemand goes to the highest
//! frequency at once when the load passes a threshold, and else takes one in proportion to the load. conservative climbs and
//! descends by steps of a twentieth of the highest frequency.
//!
//! **Terms.** *Load*: percent of the time since the last sample in which a CPU was not idle; a CPU that idled for more than
//! two periods counts once as it did before that, so that a task that wakes up meets the clock that it left. *Idle periods*: how many
//! periods the CPU that idled least has slept through: conservative makes up for that many steps down.
//!
//! **Algorithm.**
//! 1. The scheduler's hook: the first call after the sampling delay sends the executing CPU an irq_work, which queues the work for a
//!    kworker of that CPU ([`crate::cpufreq::sugov_kthread`]). A domain whose CPUs all sleep calls nobody and keeps its frequency.
//! 2. The kworker takes the load of each CPU, the highest one counts, and decides. The driver is asked if that is another frequency.
//! 3. The next sample is due after the sampling rate, times `sampling_down_factor` while ondemand is at the top.
//!
//! ```text
//!  hook ── too early ── due ── irq_work ── kworker: load ── driver
//!          |<- sampling_rate ->|                          next sample is due from the hook's time on
//! ```
//!
//! **Example.** ondemand, 1 to 2 GHz, load 40 %: 1 000 000 + 40 · 1 000 000 / 100 = 1.4 GHz, the closest one of the table. Load 96 %: 2 GHz.
//!
//! Kernel: 6.1.192 and 6.12.117 drivers/cpufreq/cpufreq_governor.c `dbs_update_util_handler`, `dbs_update`; cpufreq_ondemand.c
//! `od_update`; cpufreq_conservative.c `cs_dbs_update`. Checked call by call against that C (`conformance/src/dbs`).
//! Earlier form: conservative makes up for idle periods at any load ([`crate::config::DeferredSteps`]).
//! Differences: `powersave_bias` and `ignore_nice_load` are 0; nothing waits for I/O, so `io_is_busy` changes nothing. A domain's
//! kworker is its own.

pub mod sampling;

use crate::Kernel;
use crate::config::{Config, DeferredSteps};
use crate::cpufreq::freq_table;
use sampling::{Bounds, NSEC_PER_USEC, PolicyDbs, Tuners};
use schedtwin_types::{CpuId, CpuMask, Khz, PolicyId};

/// As the governor starts on a domain. `transition_delay_us`: what follows from the driver's latency.
pub(crate) fn start(
    config: &Config,
    cpus: &CpuMask,
    cur: Khz,
    transition_delay_us: u64,
) -> Box<PolicyDbs> {
    // CPUFREQ_DBS_MIN_SAMPLING_INTERVAL: two ticks.
    let least = (2 * config.tick_nsec() / NSEC_PER_USEC).max(transition_delay_us);
    let tuners = Tuners {
        steps: config.samples_in_steps(),
        sampling_rate: match config.dbs_sampling_rate_us {
            0 => u32::try_from(least).unwrap_or(u32::MAX),
            rate => rate,
        },
        up_threshold: config.dbs_up_threshold,
        down_threshold: config.dbs_down_threshold,
        freq_step: config.dbs_freq_step,
        sampling_down_factor: config.dbs_sampling_down_factor,
        deferred_at_any_load: config.deferred_steps == DeferredSteps::AtAnyLoad,
    };
    Box::new(PolicyDbs::new(tuners, cur, cpus.iter()))
}

impl Kernel {
    /// `dbs_update_util_handler()`.
    #[cold]
    pub(crate) fn dbs_update_util(&mut self, cpu: CpuId) {
        let index = self.cx.policy_of(cpu);
        let time = self.sched.rq(cpu).clock;
        if !self.cpufreq.may_update(index, &self.cx) {
            return;
        }
        let policy = &mut self.cpufreq.policies[index];
        let Some(dbs) = policy.dbs.as_mut().filter(|_| !policy.sugov.work_in_progress) else {
            return;
        };
        if !dbs.is_due(time) {
            return;
        }
        policy.sugov.work_in_progress = true;
        self.irq_work_queue(index);
    }

    /// `dbs_work_handler()`: takes the sample and decides; `None`: the frequency stays.
    pub(super) fn dbs_work(&mut self, index: PolicyId) -> Option<Khz> {
        let mut dbs = self.cpufreq.policies[index].dbs.take()?;
        let now_us = self.cx.now / NSEC_PER_USEC;
        let policy = &self.cpufreq.policies[index];
        let bounds = Bounds {
            min: policy.limits.min,
            max: policy.limits.max,
            lowest: policy.table[0],
            highest: policy.max(),
            cur: policy.cur,
        };
        let wanted = dbs.sample(
            now_us,
            |cpu| self.sched.idle_time(cpu, &self.cpuidle, &self.cx) / NSEC_PER_USEC,
            bounds,
        );
        let policy = &self.cpufreq.policies[index];
        let khz = wanted.map(|(khz, relation)| {
            let (table, inefficient) = (&policy.table, &policy.inefficient);
            freq_table::target(table, inefficient, policy.limits, khz, relation)
        });
        self.cpufreq.policies[index].dbs = Some(dbs);
        khz
    }

    /// `cpufreq_dbs_governor_limits()`: the next call samples, and the limit counts at once.
    pub(super) fn dbs_limits(&mut self, index: PolicyId) {
        self.cpufreq_policy_apply_limits(index);
        let cur = self.cpufreq.policies[index].cur;
        if let Some(dbs) = &mut self.cpufreq.policies[index].dbs {
            dbs.limits(cur);
        }
    }
}
