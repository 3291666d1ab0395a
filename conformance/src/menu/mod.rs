// SPDX-License-Identifier: GPL-2.0-or-later
//! menu's forms against the kernel's menu: of 4.20 to 6.5, of 6.6 to 6.12, and of 7.3.

mod mutations;

use crate::idle::{Form, IDLE_FILES, World};
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{Out, TREE, TREE_6_1, TREE_7_3};
use mutations::{MENU_5_18, MENU_6_12, MENU_7_3};
use schedtwin_kernel::cpuidle::menu::{DECADES, INTERVALS, MenuCpu, v5_18, v6_12, v7_3};
use schedtwin_kernel::cpuidle::states::{Reflection, SelectInput, SleepLength};

/// menu of 4.20 to 6.5.
pub type Menu5_18 = World<Waiters>;
/// menu of 6.6 to 6.12.
pub type Menu6_12 = World<Plain<false>>;
/// menu of 7.3.
pub type Menu73 = World<Plain<true>>;

/// The form with I/O waiters.
pub struct Waiters(MenuCpu);
/// The form without, as in 7.3 or before.
pub struct Plain<const OUTLIERS: bool>(MenuCpu);

fn report(menu: &MenuCpu, buckets: usize, out: &mut Out) {
    out.word("menu", "needs_update", menu.needs_update as u64);
    out.word("menu", "tick_wakeup", menu.tick_wakeup as u64);
    out.word("menu", "next_timer_ns", menu.next_timer_ns);
    out.word("menu", "bucket", menu.bucket as u64);
    out.word("menu", "interval_ptr", menu.interval_ptr as u64);
    out.word("dev", "last_state_idx", menu.last_state_idx as u64);
    const FACTORS: [&str; 2 * DECADES] =
        ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11"];
    for (name, factor) in FACTORS.iter().zip(menu.correction_factor).take(buckets) {
        out.word("menu", name, factor as u64);
    }
    const NAMES: [&str; INTERVALS] = ["i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"];
    for (name, interval) in NAMES.iter().zip(menu.intervals) {
        out.word("menu", name, interval as u64);
    }
}

impl Form for Waiters {
    const NAME: &'static str = "menu-5.18";
    const TREE: &'static str = TREE_6_1;
    const SHIM: &'static str = "menu/shim.c";
    const FILE: &'static str = "menu.c";
    const SOURCES: Sources = Sources { modules: &["idle", "menu"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = MENU_5_18;
    const GOLDEN_SHOWN: u64 = 3;
    const MENU: bool = true;

    fn is_form(text: &str) -> bool {
        text.contains("nr_iowait_cpu")
    }

    fn new() -> Self {
        Waiters(MenuCpu::default())
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let selection = v5_18::select(&mut self.0, input, sleep_length);
        (selection.idx, selection.stop_tick)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.0.reflect(stay.state, stay.got_tick, stay.poll_time_limit);
        stay.poll_time_limit
    }

    fn report(&self, _: usize, out: &mut Out) {
        report(&self.0, 2 * DECADES, out);
    }

    fn has_selected(&self) -> bool {
        !self.0.needs_update
    }

    fn sleep_length_ns(&self) -> i64 {
        self.0.next_timer_ns as i64
    }
}

impl<const OUTLIERS: bool> Form for Plain<OUTLIERS> {
    const NAME: &'static str = if OUTLIERS { "menu-7.3" } else { "menu-6.12" };
    const TREE: &'static str = if OUTLIERS { TREE_7_3 } else { TREE };
    const SHIM: &'static str = "menu/shim.c";
    const FILE: &'static str = "menu.c";
    const SOURCES: Sources = Sources { modules: &["idle", "menu"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = if OUTLIERS { MENU_7_3 } else { MENU_6_12 };
    const GOLDEN_SHOWN: u64 = 3;
    const MENU: bool = true;
    const FEWEST_STATES: u64 = if OUTLIERS { 2 } else { 1 };
    const FAR_EDGES: bool = OUTLIERS;

    fn is_form(text: &str) -> bool {
        !text.contains("nr_iowait_cpu") && text.contains("SAFE_TIMER_RANGE_NS") == OUTLIERS
    }

    fn new() -> Self {
        Plain(MenuCpu::default())
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let select = if OUTLIERS { v7_3::select } else { v6_12::select };
        let selection = select(&mut self.0, input, sleep_length);
        (selection.idx, selection.stop_tick)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.0.reflect(stay.state, stay.got_tick, stay.poll_time_limit);
        stay.poll_time_limit
    }

    fn report(&self, _: usize, out: &mut Out) {
        report(&self.0, DECADES, out);
    }

    fn has_selected(&self) -> bool {
        !self.0.needs_update
    }

    fn sleep_length_ns(&self) -> i64 {
        self.0.next_timer_ns as i64
    }
}
