// SPDX-License-Identifier: GPL-2.0-or-later
//! `drivers/cpufreq/` and `kernel/sched/cpufreq*.c`: who chooses frequencies, and how.

pub mod counters;
pub mod counts;
pub mod dbs;
pub(crate) mod driver;
pub(crate) mod forms;
pub mod freq_table;
pub mod hints;
pub mod hook;
pub mod intel_pstate;
pub mod policy;
pub mod schedutil;
pub mod sugov_kthread;

use crate::policy::{CustomMachineFrequency, EffectiveDemand};
use policy::CpufreqPolicy;
use schedtwin_types::arena::{Arena, PerCpu};
use schedtwin_types::{PolicyId, PolicyMask};

/// Frequency domains, their governors, and who hears of utilisation.
#[derive(Clone)]
pub struct Cpufreq {
    /// Who hears that utilisation has changed.
    pub(crate) frequency_hook: hook::FrequencyHook,
    /// schedutil's forms.
    pub(crate) sugov_forms: forms::SugovForms,
    /// schedutil's data of each CPU.
    pub(crate) sugov_cpus: PerCpu<schedutil::SugovCpu>,
    /// Frequency domains.
    pub(crate) policies: Arena<PolicyId, CpufreqPolicy>,
    /// Whether there are dirty or wishing policies.
    pub(crate) policies_dirty: bool,
    /// The counters of each CPU; none where nobody reads them.
    pub(crate) counters: Vec<counters::Counters>,
    /// The user's frequency governor that is one for all domains, if there is one.
    pub(crate) machine_frequency: Option<Box<CustomMachineFrequency>>,
    /// What it was told of each CPU when it asked last; right where the demand is not stale. Empty without it.
    pub(crate) machine_demands: Vec<EffectiveDemand>,
    /// Frequency domains whose driver was asked for another frequency since hardware last looked.
    pub(crate) dirty_policies: PolicyMask,
    /// Whose governor wants another frequency that the driver will be asked for later.
    pub(crate) wishing_policies: PolicyMask,
}
