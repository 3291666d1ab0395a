// SPDX-License-Identifier: GPL-2.0-or-later
//! Where no C can be loaded: everything is refused.

use crate::{ExtSetting, Fault, Refusal, Tree};
use schedtwin_kernel::policy::{
    ExtScheduler, GovernedDomain, IdleCpu, LoaderForm, MachineFrequencyGovernor,
    MachineIdleGovernor,
};

/// Declares what cannot be built here, with the functions of what is built elsewhere.
macro_rules! refused {
    ($code:ident, $place:ty, $governor:ident) => {
        /// A governor's C, which this system cannot load.
        #[derive(Clone, Debug)]
        pub enum $code {}

        impl $code {
            /// Refuses.
            pub fn build(_: &Tree, _: &str, _: u64) -> Result<$code, Fault> {
                Err(Fault::new(
                    "governors from a tree are loaded on Linux with 64 bits only",
                    "the built-in forms run everywhere",
                ))
            }

            /// There is none.
            pub fn name(&self) -> &str {
                match *self {}
            }

            /// There is none.
            pub fn hash(&self) -> u64 {
                match *self {}
            }

            /// There is none.
            pub fn govern(&self, _: &[$place]) -> Box<dyn $governor> {
                match *self {}
            }
        }
    };
}

refused!(IdleCode, IdleCpu, MachineIdleGovernor);
refused!(FrequencyCode, GovernedDomain, MachineFrequencyGovernor);

/// A scheduler's C, which this system cannot load.
#[derive(Clone, Debug)]
pub enum ExtCode {}

impl ExtCode {
    /// Refuses.
    pub fn build(_: &Tree, _: &str, _: u64, _: LoaderForm) -> Result<ExtCode, Refusal> {
        Err(Refusal::Code(Fault::new(
            "schedulers in C are loaded on Linux with 64 bits only",
            "scx=simple and schedulers in Rust run everywhere",
        )))
    }

    /// There is none.
    pub fn with(self, _: &ExtSetting) -> Result<ExtCode, Fault> {
        match self {}
    }

    /// There is none.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// There is none.
    pub fn hash(&self) -> u64 {
        match *self {}
    }

    /// There are none.
    pub fn options(&self) -> Vec<String> {
        match *self {}
    }

    /// There is none.
    pub fn scheduler(&self) -> Box<dyn ExtScheduler> {
        match *self {}
    }
}

/// There is no C to confine.
pub mod confine {
    use crate::{Confined, Fault};
    use std::path::PathBuf;

    /// Nothing is ever asked.
    pub fn defer() {}

    pub(crate) fn reads(_: &std::path::Path) {}

    pub(crate) fn is_confined() -> bool {
        false
    }

    /// Confines nothing.
    ///
    /// # Errors
    /// Never.
    pub fn enter(_: &[PathBuf]) -> Result<Confined, Vec<Fault>> {
        Ok(Confined::NoNeed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiled here for this test alone: the host of the tests has the other form.
    #[test]
    fn the_host_is_refused_by_name() {
        let tree = Tree::find(".").expect("a folder is a tree");
        let idle = IdleCode::build(&tree, "teo.c", 250).expect_err("refused");
        let frequency = FrequencyCode::build(&tree, "x.c", 250).expect_err("refused");
        for fault in [idle, frequency] {
            assert!(fault.message.contains("on Linux with 64 bits only"), "{fault:?}");
            assert!(fault.help.is_some_and(|help| help.contains("built-in forms")));
        }
    }
}
