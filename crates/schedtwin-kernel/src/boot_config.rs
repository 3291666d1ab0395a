// SPDX-License-Identifier: GPL-2.0-or-later
//! The configuration that a kernel was booted with.
//!
//! A kernel does not change while it runs: what a user switches on by using it, such as clamps, is the state of
//! the kernel (`sched_uclamp_used`). So its configuration can be read, and that is all.

use crate::Kernel;
use crate::config::Config;
use std::ops::Deref;

/// A configuration that stays as it was at boot.
#[derive(Clone, Debug)]
pub struct BootConfig(Config);

impl BootConfig {
    pub(crate) fn new(config: Config) -> BootConfig {
        BootConfig(config)
    }
}

impl Deref for BootConfig {
    type Target = Config;
    #[inline(always)]
    fn deref(&self) -> &Config {
        &self.0
    }
}

/// Unit tests and drawn states put a booted kernel into states that they name by its configuration.
#[cfg(any(test, feature = "conformance"))]
impl std::ops::DerefMut for BootConfig {
    fn deref_mut(&mut self) -> &mut Config {
        &mut self.0
    }
}

impl Kernel {
    /// Continues from this state with another kernel, to ask what would have been. Values computed
    /// at boot (domains, scaled tunables,
    /// the governors' tables) stays.
    pub fn with_config(mut self, change: impl FnOnce(&mut Config)) -> Kernel {
        change(&mut self.cx.config.0);
        self.cpufreq.reconfigure(&self.cx);
        // What the clock means for utilisation may be another.
        for index in self.cpufreq.policy_ids() {
            let cur = self.cpufreq.policy(index).cur;
            self.cpufreq.set_policy_cur(index, cur, &mut self.sched, &mut self.cx);
        }
        self.sched.reconfigure(&self.cpufreq, &self.cx);
        self
    }
}
