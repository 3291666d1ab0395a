//! Demand: how much of a CPU is used, how much it is to have, and what fits on it.
//!
//! | room | the question |
//! |---|---|
//! | `util.rs` | how much of a CPU its fair tasks use, now or with a task there |
//! | `effective.rs` | how busy a CPU is, and what it demands of its frequency domain |
//! | `fits.rs` | is a CPU large enough |
//! | `uclamp/` | what tasks want at least and at most |

#[doc(hidden)]
pub mod conformance;
pub mod effective;
pub mod fits;
pub mod signal;
pub mod uclamp;
pub mod util;

use crate::Kernel;
use schedtwin_types::CpuId;

impl Kernel {
    /// Asserts that a demand which does not count as stale is what the signals say.
    pub(crate) fn verify_demand(&self, cpu: CpuId) {
        if !self.stale_demands.contains(cpu) {
            let sg = &self.sugov_cpus[cpu];
            assert_eq!((sg.util, sg.bw_min), self.sugov_demand(cpu, None), "{cpu:?}: demand");
            assert_eq!(sg.iowait_boost, 0, "{cpu:?}: a boost alters the demand with each request");
        }
        let policy = &self.policies[self.policy_of(cpu)];
        let (highest, _) = self.sugov_domain_demand(&policy.cpus, cpu, None);
        assert_eq!(policy.sugov.util, highest, "{cpu:?}: highest demand");
    }
}
