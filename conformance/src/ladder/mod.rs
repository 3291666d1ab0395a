// SPDX-License-Identifier: GPL-2.0-or-later
//! ladder, which asks no timers, against the kernel's.

mod mutations;

use crate::idle::{Form, IDLE_FILES, World};
use crate::l0::Out;
use crate::l0::mutate::{Mutation, Sources};
use mutations::LADDER;
use schedtwin_kernel::cpuidle::ladder::LadderCpu;
use schedtwin_kernel::cpuidle::states::{
    CPUIDLE_STATE_MAX, IdleStateParams, Reflection, SelectInput, SleepLength,
};

/// ladder, the same in 6.1 and 6.12.
pub type Ladder = World<LadderForm>;

/// ladder, and whether a selection has been made since the last reflection.
pub struct LadderForm(LadderCpu, bool);

impl Form for LadderForm {
    const NAME: &'static str = "ladder";
    const SHIM: &'static str = "ladder/shim.c";
    const FILE: &'static str = "ladder.c";
    const SOURCES: Sources = Sources { modules: &["idle", "ladder"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = LADDER;
    const GOLDEN_SHOWN: u64 = 3;

    fn is_form(_: &str) -> bool {
        true
    }

    fn new() -> Self {
        LadderForm(LadderCpu::new(&[IdleStateParams::default()]), false)
    }

    fn enable(&mut self, states: &[IdleStateParams]) {
        self.0 = LadderCpu::new(states);
    }

    fn select(
        &mut self,
        input: &SelectInput,
        _: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        self.1 = true;
        (self.0.select(input), true)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.1 = false;
        self.0.reflect(stay.state);
        stay.poll_time_limit
    }

    fn report(&self, states: usize, out: &mut Out) {
        out.word("dev", "last_state_idx", self.0.last_state_idx as u64);
        const STATES: [&str; CPUIDLE_STATE_MAX] =
            ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];
        for (name, stats) in STATES.iter().zip(&self.0.stats).take(states) {
            out.word(name, "promotion_count", stats.promotion_count as u64);
            out.word(name, "demotion_count", stats.demotion_count as u64);
        }
    }

    fn has_selected(&self) -> bool {
        self.1
    }

    fn sleep_length_ns(&self) -> i64 {
        0
    }
}
