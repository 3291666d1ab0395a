// SPDX-License-Identifier: GPL-2.0-or-later
//! haltpoll, which asks no timers, against the kernel's.

mod mutations;

use crate::idle::{Form, IDLE_FILES, World};
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{Out, TREE, TREE_6_1};
use mutations::{HALTPOLL, HALTPOLL_6_1};
use schedtwin_kernel::cpuidle::haltpoll::HaltpollCpu;
use schedtwin_kernel::cpuidle::states::{Reflection, SelectInput, SleepLength};

/// haltpoll of 6.12.
pub type Haltpoll = World<HaltpollForm<true>>;
/// haltpoll of 6.1.
pub type Haltpoll61 = World<HaltpollForm<false>>;

/// haltpoll, and whether a selection has been made since the last reflection.
pub struct HaltpollForm<const CLOSES: bool>(HaltpollCpu, bool);

impl<const CLOSES: bool> Form for HaltpollForm<CLOSES> {
    const NAME: &'static str = if CLOSES { "haltpoll" } else { "haltpoll-6.1" };
    const TREE: &'static str = if CLOSES { TREE } else { TREE_6_1 };
    const SHIM: &'static str = "haltpoll/shim.c";
    const FILE: &'static str = "haltpoll.c";
    const SOURCES: Sources = Sources { modules: &["idle", "haltpoll"], kernel: Some(&IDLE_FILES) };
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
