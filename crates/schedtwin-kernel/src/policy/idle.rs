// SPDX-License-Identifier: GPL-2.0-or-later
//! Users' idle governors: one for each CPU ([`IdleGovernor`]), or one for all of them ([`MachineIdleGovernor`]).
//!
//! A CPU's own governor is the simpler one to write. One for the machine is for code whose CPUs share memory, as the C
//! of a kernel's governor does: what it has in globals is every CPU's, so it is cloned as a whole.

use super::boxed;
use crate::cpuidle::governor::Choice;
use crate::cpuidle::states::{IdleStateParams, Reflection, SelectInput, SleepLength};
use schedtwin_types::{CpuId, IdleRule};

/// The CPU that an idle governor is made for.
#[derive(Clone, Debug)]
pub struct IdleCpu {
    /// Which.
    pub cpu: CpuId,
    /// Its capacity, 1..=1024.
    pub capacity: u64,
    /// Its idle states, from shallow to deep.
    pub states: Vec<IdleStateParams>,
}

/// The decision of an idle governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleDecision {
    /// Index of the state to enter; one of [`SelectInput::states`].
    pub state: usize,
    /// Whether the tick may be stopped.
    pub stop_tick: bool,
    /// Why, in a few words.
    pub rule: &'static str,
}

/// Chooses idle states of one CPU (`struct cpuidle_governor`).
///
/// ```
/// use schedtwin_kernel::cpuidle::states::{SelectInput, SleepLength};
/// use schedtwin_kernel::policy::{IdleDecision, IdleGovernor};
///
/// /// The deepest enabled state that pays until the next timer.
/// #[derive(Clone)]
/// struct Timer;
///
/// impl IdleGovernor for Timer {
///     fn select(&mut self, input: &SelectInput, timer: &mut dyn FnMut() -> SleepLength) -> IdleDecision {
///         let sleep_ns = timer().sleep_length_ns.max(0) as u64;
///         let pays = |state: usize| {
///             !input.states[state].disabled && input.states[state].target_residency_ns <= sleep_ns
///         };
///         let state = (0..input.states.len()).rev().find(|state| pays(*state)).unwrap_or(0);
///         IdleDecision { state, stop_tick: state > 0, rule: "deepest until the timer" }
///     }
/// }
/// ```
pub trait IdleGovernor: CloneIdleGovernor + Send + Sync {
    /// Chooses a state for a CPU that goes idle. `sleep_length` asks the timers, which Linux's governors
    /// avoid where they can; records say whether it was asked.
    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut dyn FnMut() -> SleepLength,
    ) -> IdleDecision;

    /// A stay has ended.
    fn reflect(&mut self, stay: &Reflection) {
        let _ = stay;
    }

    /// Whether [`SelectInput::cpu_util`] is to be computed; else it is 0.
    fn reads_util(&self) -> bool {
        false
    }
}

boxed!(IdleGovernor, CloneIdleGovernor, CustomIdle);

/// Chooses idle states of all CPUs: one instance for the machine, told each time which CPU it is about.
pub trait MachineIdleGovernor: CloneMachineIdleGovernor + Send + Sync {
    /// As [`IdleGovernor::select`], for `cpu`.
    fn select(
        &mut self,
        cpu: CpuId,
        input: &SelectInput,
        sleep_length: &mut dyn FnMut() -> SleepLength,
    ) -> IdleDecision;

    /// As [`IdleGovernor::reflect`], for `cpu`.
    fn reflect(&mut self, cpu: CpuId, stay: &Reflection);

    /// Whether [`SelectInput::cpu_util`] is to be computed; asked once, at boot.
    fn reads_util(&self) -> bool {
        false
    }
}

boxed!(MachineIdleGovernor, CloneMachineIdleGovernor, CustomMachineIdle);

impl CustomMachineIdle {
    /// Asks it for a CPU.
    #[cold]
    pub(crate) fn select(
        &mut self,
        cpu: CpuId,
        input: &SelectInput,
        sleep_length: &mut dyn FnMut() -> SleepLength,
    ) -> Choice {
        let policy = &mut self.policy;
        choice(&self.name, input, sleep_length, |input, asked| policy.select(cpu, input, asked))
    }
}

/// Returns the decision of a governor, with what the timers told it.
fn choice(
    name: &str,
    input: &SelectInput,
    sleep_length: &mut dyn FnMut() -> SleepLength,
    select: impl FnOnce(&SelectInput, &mut dyn FnMut() -> SleepLength) -> IdleDecision,
) -> Choice {
    let mut sleep_length_ns = None;
    let mut asked = || {
        let answer = sleep_length();
        sleep_length_ns = Some(answer.sleep_length_ns);
        answer
    };
    let IdleDecision { state, stop_tick, rule } = select(input, &mut asked);
    assert!(
        state < input.states.len(),
        "idle governor `{name}` chose state {state}, the CPU has {}",
        input.states.len()
    );
    let rule = IdleRule::Custom(rule);
    Choice { state: state as u8, stop_tick, sleep_length_ns, rule, tick_rule: None }
}

impl CustomIdle {
    /// Asks it.
    pub(crate) fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut dyn FnMut() -> SleepLength,
    ) -> Choice {
        let policy = &mut self.policy;
        choice(&self.name, input, sleep_length, |input, asked| policy.select(input, asked))
    }
}
