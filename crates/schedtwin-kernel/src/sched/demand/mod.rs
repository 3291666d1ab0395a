// SPDX-License-Identifier: GPL-2.0-or-later
//! Demand: how much of a CPU is used, how much it is to have, and what fits on it.
//!
//! **Idea.** The governor, EAS, idle governors, thermal control and balancing all want to know how much a CPU
//! needs. They ask here, and see neither which form of an answer the release has nor whether clamps are in use.
//!
//! | caller | answer | file |
//! |---|---|---|
//! | balancing, placement | how much fair tasks use: `cpu_util()`, `cpu_util_cfs()` and kin | `util.rs` |
//! | teo, thermal, EAS | how busy a CPU is: `sched_cpu_util()` | `effective.rs` |
//! | schedutil | a CPU's demand and minimum: `sugov_demand()`; a domain's demand | `effective.rs` |
//! | EAS | what a CPU would demand with a task: `energy_demand()` | `effective.rs` |
//! | placement, misfit, EAS | how well a CPU suits a task: `task_demand()`, `fits_cpu()`, `fits_beside()` | `fits.rs` |
//! | balancing | is a CPU used up: `util_exceeds()` | `fits.rs` |
//! | the meter | the operating point that a CPU's demand asks for, called for or not: `look_at_needs()` | `need.rs` |
//! | schedutil | does a CPU have more to do than it may: `uclamp_rq_is_capped()` | `uclamp/` |
//! | RT | the capacity that a task wants: `rt_uclamp_min()` | `uclamp/` |
//!
//! Clamps stand behind these answers. How those of a queue's tasks become one is an arm of
//! [`uclamp::RqClamps`], in a file of its own. Sum aggregation changes fair utilisation itself, so its arm answers in
//! the place of `cpu_util()` wherever a demand or a fit follows from that; balancing, and the
//! callers that ask how busy a CPU is, teo among them, go on reading the real one.
//!
//! Each input of a demand is a [`signal::Signal`], which cannot change without making the demand
//! stale.

#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod conformance;
pub mod effective;
pub mod fits;
pub mod need;
pub mod signal;
pub mod uclamp;
pub mod util;

use crate::Kernel;
use crate::cpufreq::hook::FrequencyHook;
use schedtwin_types::CpuId;

impl Kernel {
    /// Asserts that a demand which does not count as stale is what the signals say.
    pub(crate) fn verify_demand(&self, cpu: CpuId) {
        let keeps = [FrequencyHook::Schedutil, FrequencyHook::OfMachine];
        if !keeps.contains(&self.cpufreq.hook()) {
            // Nobody keeps demands: they are computed when they are asked for.
            return;
        }
        if !self.sched.stale_demands.contains(cpu) {
            let sg = self.cpufreq.sugov_cpu(cpu);
            assert_eq!(
                (sg.util, sg.bw_min),
                self.sched.sugov_demand(cpu, None, &self.cx),
                "{cpu:?}: demand"
            );
            assert_eq!(sg.iowait_boost, 0, "{cpu:?}: a boost alters the demand with each request");
        }
        if self.cpufreq.hook() == FrequencyHook::OfMachine {
            return self.verify_machine_demand(cpu);
        }
        let policy = self.cpufreq.policy(self.cx.policy_of(cpu));
        let (highest, _) =
            self.sched.sugov_domain_demand(&policy.cpus, cpu, None, &self.cpufreq, &self.cx);
        assert_eq!(policy.sugov.util, highest, "{cpu:?}: highest demand");
    }
}
