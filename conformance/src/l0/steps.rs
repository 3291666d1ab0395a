//! ladder and haltpoll, which ask no timers, against the kernel's.

use super::Out;
use super::idle::{Form, World};
use super::mutate::{HALTPOLL, HALTPOLL_6_1, LADDER, Mutation};
use schedtwin_kernel::cpuidle::haltpoll::HaltpollCpu;
use schedtwin_kernel::cpuidle::ladder::LadderCpu;
use schedtwin_kernel::cpuidle::states::{
    CPUIDLE_STATE_MAX, IdleStateParams, Reflection, SelectInput, SleepLength,
};

/// ladder, the same in 6.1 and 6.12.
pub type Ladder = World<LadderForm>;
/// haltpoll of 6.12.
pub type Haltpoll = World<HaltpollForm<true>>;
/// haltpoll of 6.1.
pub type Haltpoll61 = World<HaltpollForm<false>>;

/// ladder, and whether a selection has been made since the last reflection.
pub struct LadderForm(LadderCpu, bool);
/// haltpoll likewise.
pub struct HaltpollForm<const CLOSES: bool>(HaltpollCpu, bool);

impl Form for LadderForm {
    const NAME: &'static str = "ladder";
    const SHIM: &'static str = "ladder_shim.c";
    const FILE: &'static str = "ladder.c";
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

impl<const CLOSES: bool> Form for HaltpollForm<CLOSES> {
    const NAME: &'static str = if CLOSES { "haltpoll" } else { "haltpoll-6.1" };
    const TREE: &'static str = if CLOSES { super::TREE } else { super::TREE_6_1 };
    const SHIM: &'static str = "haltpoll_shim.c";
    const FILE: &'static str = "haltpoll.c";
    const MUTATIONS: &'static [Mutation] = if CLOSES { HALTPOLL } else { HALTPOLL_6_1 };
    const GOLDEN_SHOWN: u64 = 2;
    const RESIDENCY: bool = true;

    fn is_form(text: &str) -> bool {
        // Read where the window grows, and where it shrinks.
        (text.matches("< guest_halt_poll_grow_start").count() == 2) == CLOSES
    }

    fn new() -> Self {
        HaltpollForm(HaltpollCpu::new(CLOSES), false)
    }

    fn select(
        &mut self,
        input: &SelectInput,
        _: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        self.1 = true;
        self.0.select(input)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.1 = false;
        self.0.reflect(stay.state, stay.last_residency_ns, stay.poll_time_limit);
        stay.poll_time_limit
    }

    fn report(&self, _: usize, out: &mut Out) {
        out.word("dev", "poll_limit_ns", self.0.poll_limit_ns);
        out.word("dev", "last_state_idx", self.0.last_state_idx as u64);
    }

    fn has_selected(&self) -> bool {
        self.1
    }

    fn sleep_length_ns(&self) -> i64 {
        0
    }
}
