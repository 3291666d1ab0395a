//! Where no C can be loaded: everything is refused.

use crate::{Fault, Tree};
use schedtwin_kernel::policy::{IdleCpu, MachineIdleGovernor};

/// An idle governor's C, which this system cannot load.
#[derive(Clone, Debug)]
pub enum IdleCode {}

impl IdleCode {
    /// Refuses.
    pub fn build(_: &Tree, _: &str, _: u64) -> Result<IdleCode, Fault> {
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
    pub fn govern(&self, _: &[IdleCpu]) -> Box<dyn MachineIdleGovernor> {
        match *self {}
    }
}
