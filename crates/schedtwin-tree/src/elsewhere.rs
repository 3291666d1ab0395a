// SPDX-License-Identifier: GPL-2.0-or-later
//! Where no C can be loaded: everything is refused.

#[cfg(unix)]
use crate::Tree;
use crate::{ExtSetting, Fault, Refusal};
use schedtwin_kernel::policy::{
    ExtScheduler, GovernedDomain, IdleCpu, LoaderForm, MachineFrequencyGovernor,
    MachineIdleGovernor,
};

/// What cannot be had. Behind a private field, callers are checked as they are where it can.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Never {}

/// Declares what cannot be built here, with the functions of what is built elsewhere.
macro_rules! refused {
    ($code:ident, $place:ty, $governor:ident) => {
        /// A governor's C, which this system cannot load.
        #[derive(Clone, Debug)]
        pub struct $code(Never);

        impl $code {
            /// Refuses.
            pub fn build(_: &Tree, _: &str, _: u64) -> Result<$code, Fault> {
                Err(Fault::new(
                    "governors from a tree are loaded on Linux with 64 bits, by a build with the feature `trees`",
                    "the built-in forms run everywhere",
                ))
            }

            /// There is none.
            pub fn name(&self) -> &str {
                match self.0 {}
            }

            /// There is none.
            pub fn hash(&self) -> u64 {
                match self.0 {}
            }

            /// There is none.
            pub fn govern(&self, _: &[$place]) -> Box<dyn $governor> {
                match self.0 {}
            }
        }
    };
}

refused!(IdleCode, IdleCpu, MachineIdleGovernor);
refused!(FrequencyCode, GovernedDomain, MachineFrequencyGovernor);

/// A scheduler's C, which this system cannot load.
#[derive(Clone, Debug)]
pub struct ExtCode(Never);

impl ExtCode {
    /// Refuses.
    pub fn build(_: &Tree, _: &str, _: u64, _: LoaderForm) -> Result<ExtCode, Refusal> {
        Err(Refusal::Code(Fault::new(
            "schedulers in C are loaded on Linux with 64 bits, by a build with the feature `trees`",
            "scx=simple and schedulers in Rust run everywhere",
        )))
    }

    /// There is none.
    pub fn with(self, _: &ExtSetting) -> Result<ExtCode, Fault> {
        match self.0 {}
    }

    /// There is none.
    pub fn name(&self) -> &str {
        match self.0 {}
    }

    /// There is none.
    pub fn hash(&self) -> u64 {
        match self.0 {}
    }

    /// There are none.
    pub fn options(&self) -> Vec<String> {
        match self.0 {}
    }

    /// There is none.
    pub fn scheduler(&self) -> Box<dyn ExtScheduler> {
        match self.0 {}
    }
}

/// A tree of the kernel's sources, which a system without files, such as a page in a browser, does not have.
#[cfg(not(unix))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree(Never);

#[cfg(not(unix))]
impl Tree {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn find(spelled: &str) -> Result<Tree, Fault> {
        Err(Fault::new(
            format!("there is no kernel tree `{spelled}` here: this system reads none"),
            "the built-in forms run everywhere; the command `schedtwin` on Linux reads trees",
        ))
    }

    /// There is none.
    pub fn spelled(&self) -> &str {
        match self.0 {}
    }

    /// There is none.
    pub fn commit_line(&self) -> Option<String> {
        match self.0 {}
    }

    /// There are none.
    pub fn files_that_differ(&self, _: &Tree) -> Vec<&str> {
        match self.0 {}
    }
}

/// There is no C to confine.
pub mod confine {
    use super::worker::{Service, Side};
    use crate::Fault;

    /// Nothing is ever asked.
    pub fn defer() {}

    #[cfg(unix)]
    pub(crate) fn is_confined() -> bool {
        false
    }

    /// There is none to load.
    pub fn is_on() -> bool {
        true
    }

    /// Nothing is compiled.
    pub fn lacks() -> Option<&'static str> {
        None
    }

    /// Divides nothing.
    ///
    /// # Errors
    /// Never.
    pub fn enter(_: &mut dyn Service) -> Result<Side, Vec<Fault>> {
        Ok(Side::Whole)
    }

    /// Nothing is isolated.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn isolated(
        _: &mut dyn Service,
        work: impl FnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<Vec<u8>, String> {
        work()
    }
}

/// There is no worker.
pub mod worker {
    use std::io;

    /// As elsewhere.
    pub trait Service {
        /// Never asked.
        ///
        /// # Errors
        /// Never.
        fn request(&mut self, request: &[u8]) -> io::Result<Vec<u8>>;

        /// Never asked.
        fn progress(&mut self, progress: &[u8]);

        /// Never asked.
        ///
        /// # Errors
        /// Never.
        fn end(&mut self, code: u8) -> io::Result<()>;

        /// Never asked.
        fn is_cancelled(&self) -> bool {
            false
        }
    }

    /// As elsewhere; only the first is ever there.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Side {
        /// One process.
        Whole,
        /// Never.
        Worker,
        /// Never.
        Supervisor(u8),
    }

    /// Never.
    pub fn is_worker() -> bool {
        false
    }

    /// There is no worker, but git may run.
    pub fn kill() {
        #[cfg(unix)]
        crate::program::kill();
    }

    /// Nobody hears it.
    pub fn progress(_: &[u8]) {}

    /// Nobody answers.
    ///
    /// # Errors
    /// Always.
    pub fn request(_: &[u8]) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends the process.
    pub fn finish(code: u8) -> ! {
        std::process::exit(i32::from(code))
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
            let only = "on Linux with 64 bits, by a build with the feature `trees`";
            assert!(fault.message.contains(only), "{fault:?}");
            assert!(fault.help.is_some_and(|help| help.contains("built-in forms")));
        }
    }
}
