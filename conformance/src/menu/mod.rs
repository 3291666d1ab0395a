// SPDX-License-Identifier: GPL-2.0-or-later
//! menu's forms against the kernel's menu: of 4.20 to 6.5, of 6.1.192, of 6.6 to 6.12, of 6.18, and of 7.3.

mod mutations;

use crate::idle::{Form, IDLE_FILES, World};
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{Out, TREE, TREE_6_1, TREE_6_3, TREE_6_18, TREE_7_3};
use mutations::{MENU_4_20, MENU_5_18, MENU_6_12, MENU_6_18, MENU_7_3};
use schedtwin_kernel::cpuidle::menu::{
    DECADES, INTERVALS, MenuCpu, v4_20, v5_18, v6_12, v6_18, v7_3,
};
use schedtwin_kernel::cpuidle::states::{Reflection, SelectInput, SleepLength};

/// menu of 4.20 to 6.5.
pub type Menu4_20 = World<Waiters<true>>;
/// menu of 6.1.192.
pub type Menu5_18 = World<Waiters<false>>;
/// menu of 6.6 to 6.12.
pub type Menu6_12 = World<Plain<LINUX_6_12>>;
/// menu of 6.18.
pub type Menu618 = World<Plain<LINUX_6_18>>;
/// menu of 7.3.
pub type Menu73 = World<Plain<LINUX_7_3>>;

/// Of 6.6 to 6.12.
pub const LINUX_6_12: usize = 0;
/// Of 6.18.
pub const LINUX_6_18: usize = 1;
/// Of 7.3.
pub const LINUX_7_3: usize = 2;

/// The form with I/O waiters; `EARLY`: what the driver refuses is not noted.
pub struct Waiters<const EARLY: bool>(MenuCpu);
/// The forms without, by release.
pub struct Plain<const FORM: usize>(MenuCpu);

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

impl<const EARLY: bool> Form for Waiters<EARLY> {
    const NAME: &'static str = if EARLY { "menu-4.20" } else { "menu-5.18" };
    const TREE: &'static str = if EARLY { TREE_6_3 } else { TREE_6_1 };
    const SHIM: &'static str = "menu/shim.c";
    const FILE: &'static str = "menu.c";
    const SOURCES: Sources = Sources { modules: &["idle", "menu"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = if EARLY { MENU_4_20 } else { MENU_5_18 };
    const GOLDEN_SHOWN: u64 = 3;
    const MENU: bool = true;

    fn is_form(text: &str) -> bool {
        text.contains("nr_iowait_cpu") && text.contains("UINT_MAX);") != EARLY
    }

    fn new() -> Self {
        Waiters(MenuCpu::default())
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let selection = match EARLY {
            true => v4_20::select(&mut self.0, input, sleep_length),
            false => v5_18::select(&mut self.0, input, sleep_length),
        };
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

impl<const FORM: usize> Form for Plain<FORM> {
    const NAME: &'static str = ["menu-6.12", "menu-6.18", "menu-7.3"][FORM];
    const TREE: &'static str = [TREE, TREE_6_18, TREE_7_3][FORM];
    const SHIM: &'static str = "menu/shim.c";
    const FILE: &'static str = "menu.c";
    const SOURCES: Sources = Sources { modules: &["idle", "menu"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = [MENU_6_12, MENU_6_18, MENU_7_3][FORM];
    const GOLDEN_SHOWN: u64 = 3;
    const MENU: bool = true;
    const FEWEST_STATES: u64 = if FORM == LINUX_7_3 { 2 } else { 1 };
    const FAR_EDGES: bool = FORM != LINUX_6_12;

    fn is_form(text: &str) -> bool {
        // The typical interval leaves out short outliers; a near timer is a safety net.
        let has = ["min_thresh", "SAFE_TIMER_RANGE_NS"].map(|word| text.contains(word));
        !text.contains("nr_iowait_cpu") && has == [FORM != LINUX_6_12, FORM == LINUX_7_3]
    }

    fn new() -> Self {
        Plain(MenuCpu::default())
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let selection = match FORM {
            LINUX_6_12 => v6_12::select(&mut self.0, input, sleep_length),
            LINUX_6_18 => v6_18::select(&mut self.0, input, sleep_length),
            _ => v7_3::select(&mut self.0, input, sleep_length),
        };
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
