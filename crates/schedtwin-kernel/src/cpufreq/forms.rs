// SPDX-License-Identifier: GPL-2.0-or-later
//! Which of schedutil's forms a kernel has: its variation points as plain answers, worked out at boot.
//!
//! The files that ask have the effect of each form: `hook.rs`, `schedutil.rs`, `schedutil/v4_7.rs`,
//! `sugov_kthread.rs`.

use crate::config::{
    Config, CpufreqRemote, FreqInvariance, SugovMapping, SugovRateLimit, SugovWork,
};
use crate::device_tree::{Architecture, DeviceTree};
use crate::sched::demand::effective::{headroom_on_present_clock, utilisation_is_passed};

/// The answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SugovForms {
    /// Only a CPU itself calls its hook.
    pub local_only: bool,
    /// Other CPUs call it after the decision about preemption.
    pub after_preemption: bool,
    /// The caller of the hook hands utilisation over.
    pub passed: bool,
    /// Frequencies are compared before the driver has found one of its table.
    pub raw: bool,
    /// Each computed frequency starts the rate limit again.
    pub requests_restart: bool,
    /// Nothing is decided while the slow path is at work; so it is with governors that sample, whose work decides.
    pub drops_while_busy: bool,
    /// Utilisation scales with the clock (`arch_scale_freq_invariant()`).
    pub invariant: bool,
    /// Where it does not, the formula begins with a quarter more than the present frequency.
    pub present_and_quarter: bool,
    /// Nothing but demands can lead to another frequency, or start the rate limit.
    pub only_demand_counts: bool,
}

impl SugovForms {
    /// Those of a kernel on a machine.
    pub fn new(config: &Config, device_tree: &DeviceTree) -> SugovForms {
        let invariant = match config.freq_invariance {
            FreqInvariance::None => false,
            FreqInvariance::Arm => device_tree.topology.architecture == Architecture::Arm64,
            FreqInvariance::All => true,
        };
        let requests_restart = config.sugov_rate_limit == SugovRateLimit::Requests;
        SugovForms {
            local_only: config.cpufreq_remote == CpufreqRemote::LocalOnly,
            after_preemption: config.cpufreq_remote == CpufreqRemote::AfterPreemption,
            passed: utilisation_is_passed(config),
            raw: config.sugov_mapping == SugovMapping::Raw,
            requests_restart,
            drops_while_busy: config.sugov_work == SugovWork::Drop || config.runs_sampling(),
            invariant,
            present_and_quarter: headroom_on_present_clock(config)
                && !config.bugs.no_headroom_without_invariance,
            only_demand_counts: invariant && !requests_restart,
        }
    }

    /// Whether the hook is called, or schedutil decides, in another way than today.
    pub fn are_early(self) -> bool {
        self.local_only || self.after_preemption || self.passed
    }
}
