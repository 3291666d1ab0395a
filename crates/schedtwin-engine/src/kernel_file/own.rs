// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel with policies that are the user's own code.
//!
//! Such a kernel has a name of its own, `linux-6.12 with NAME`, which heads its column and stands in every
//! provenance. Its hash covers the name, since nobody can hash code; the line on trust says so.

use super::KernelFile;
use schedtwin_input::Diagnostics;
use schedtwin_kernel::config::Config;
use schedtwin_kernel::policy::{
    ExtLoading, ExtScheduler, FrequencyDomain, FrequencyGovernor, IdleCpu, IdleGovernor, Placement,
};

/// Kernels that can load a scheduler.
pub(super) const WITH_EXT: &str = "linux-6.12 and linux-7.3 have it";

/// Why a kernel can load no scheduler of sched_ext; `None`: it can.
pub(super) fn no_sched_ext(config: &Config) -> Option<&'static str> {
    (!config.has_sched_ext()).then_some("no sched_ext is modelled of this kernel")
}

impl KernelFile {
    /// This kernel with a user's idle governor, in the place of the one that `cpuidle` names. `make` is asked once for
    /// each CPU.
    ///
    /// ```
    /// use schedtwin_engine::kernel_file::KernelFile;
    /// use schedtwin_engine::policy::{IdleDecision, IdleGovernor, SelectInput, SleepLength};
    ///
    /// #[derive(Clone)]
    /// struct First;
    /// impl IdleGovernor for First {
    ///     fn select(&mut self, _: &SelectInput, _: &mut dyn FnMut() -> SleepLength) -> IdleDecision {
    ///         IdleDecision { state: 0, stop_tick: false, rule: "the first" }
    ///     }
    /// }
    ///
    /// let kernel = KernelFile::load("linux-6.12").unwrap().with_idle_governor("first", |_| First);
    /// assert_eq!(kernel.identity, "linux-6.12 with first");
    /// ```
    pub fn with_idle_governor<G: IdleGovernor + 'static>(
        mut self,
        name: &str,
        make: impl Fn(&IdleCpu) -> G + Send + Sync + 'static,
    ) -> KernelFile {
        self.policies = self.policies.with_idle_governor(name, make);
        self.named(name)
    }

    /// This kernel with a user's frequency governor, in schedutil's place. `make` is asked once for each
    /// frequency domain.
    ///
    /// # Errors
    /// If `cpufreq` is another than schedutil: then nobody asks.
    pub fn with_frequency_governor<G: FrequencyGovernor + 'static>(
        mut self,
        name: &str,
        make: impl Fn(&FrequencyDomain) -> G + Send + Sync + 'static,
    ) -> Result<KernelFile, Diagnostics> {
        if !self.config.runs_schedutil() {
            let mut faults = Diagnostics::new();
            let message = format!(
                "frequency governor `{name}` takes schedutil's place, which `{}` does not use",
                self.identity
            );
            let help = "give it a kernel with cpufreq=schedutil".to_string();
            faults.push_whole(&self.source, message, Some(help));
            return Err(faults);
        }
        self.policies = self.policies.with_frequency_governor(name, make);
        Ok(self.named(name))
    }

    /// This kernel with a user's placement of fair tasks, which is asked before the kernel's own.
    pub fn with_placement<P: Placement + 'static>(
        mut self,
        name: &str,
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> KernelFile {
        self.policies = self.policies.with_placement(name, make);
        self.named(name)
    }

    /// This kernel with a scheduler of sched_ext, which has all tasks of the fair class. `make` is asked once for each
    /// run.
    ///
    /// # Errors
    /// If the kernel has no sched_ext.
    pub fn with_ext_scheduler<S: ExtScheduler + 'static>(
        mut self,
        name: &str,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<KernelFile, Diagnostics> {
        if let Some(fault) = no_sched_ext(&self.config) {
            let mut faults = Diagnostics::new();
            faults.push_whole(
                &self.source,
                format!("`{}`: {fault}", self.identity),
                Some(WITH_EXT.into()),
            );
            return Err(faults);
        }
        self.policies = self.policies.with_ext_scheduler(name, move || Box::new(make()));
        Ok(self.named(name))
    }

    /// This kernel with its scheduler of sched_ext there from a time on, and up to a time.
    pub fn with_ext_loading(mut self, loading: ExtLoading) -> KernelFile {
        self.policies = self.policies.with_ext_loading(loading);
        self
    }

    fn named(mut self, name: &str) -> KernelFile {
        let first = self.policies.names().len() == 1;
        self.identity.push_str(if first { " with " } else { " and " });
        self.identity.push_str(name);
        self
    }
}
