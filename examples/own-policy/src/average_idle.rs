// SPDX-License-Identifier: GPL-2.0-or-later
//! An idle governor: the next sleep is as long as the last ones were, but never longer than the timer says.

use schedtwin_engine::policy::{IdleDecision, IdleGovernor, Reflection, SelectInput, SleepLength};

/// Remembers how long its CPU slept of late.
#[derive(Clone, Default)]
pub struct AverageIdle {
    average_ns: u64,
}

impl IdleGovernor for AverageIdle {
    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut dyn FnMut() -> SleepLength,
    ) -> IdleDecision {
        let timer_ns = sleep_length().sleep_length_ns.max(0) as u64;
        let (expected_ns, rule) = match self.average_ns < timer_ns {
            true => (self.average_ns, "as long as the last sleeps"),
            false => (timer_ns, "until the timer"),
        };
        let pays = |state: &usize| {
            let state = &input.states[*state];
            !state.disabled && state.target_residency_ns <= expected_ns
        };
        let state = (0..input.states.len()).rev().find(pays).unwrap_or(0);
        IdleDecision { state, stop_tick: expected_ns > input.tick_nsec as u64, rule }
    }

    fn reflect(&mut self, stay: &Reflection) {
        self.average_ns = (3 * self.average_ns + stay.last_residency_ns) / 4;
    }
}
