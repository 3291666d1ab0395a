// SPDX-License-Identifier: GPL-2.0-or-later
//! teo's forms against the kernel's teo: of 7.3, of 6.12, of 6.6 to 6.10, of 5.14 to 6.2 with recent intercepts, and
//! the latter with each patch that makes it look at utilisation.

mod mutations;

use crate::idle::{Form, IDLE_FILES, World};
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{Out, TREE_6_1, TREE_6_3, TREE_6_18, TREE_7_3};
use mutations::{TEO, TEO_6_6, TEO_6_18, TEO_7_3, TEO_RECENT, TEO_UTIL};
use schedtwin_kernel::config::TeoUtil;
use schedtwin_kernel::cpuidle::states::{CPUIDLE_STATE_MAX, Reflection, SelectInput, SleepLength};
use schedtwin_kernel::cpuidle::teo::util::UtilAware;
use schedtwin_kernel::cpuidle::teo::v5_14::{NR_RECENT, TeoBin};
use schedtwin_kernel::cpuidle::teo::{v5_14, v6_6, v6_12, v6_18, v7_3};

/// teo of 6.12.
pub type Teo = World<v6_12::TeoCpu>;
/// teo of 6.18.
pub type Teo618 = World<v6_18::TeoCpu>;
/// teo of 7.3.
pub type Teo73 = World<v7_3::TeoCpu>;
/// teo of 5.14 to 6.2.
pub type TeoRecent = World<v5_14::TeoCpu>;
/// teo of 6.6 to 6.10.
pub type TeoLate = World<Late<true>>;
/// teo of 6.6.y and 6.10.y since the revert.
pub type TeoLatePlain = World<Late<false>>;
/// teo of 5.14 to 6.2 with a patch: by number in [`PATCHES`].
pub type TeoPatched<const PATCH: usize> = World<Patched<PATCH>>;

/// The patches: name, variable of the tree that has it, form.
pub const PATCHES: [(&str, &str, TeoUtil); 5] = [
    ("teo-posted", "SCHEDTWIN_KERNEL_TREE_TEO_POSTED", TeoUtil::Posted),
    ("teo-v2", "SCHEDTWIN_KERNEL_TREE_TEO_V2", TeoUtil::V2),
    ("teo-v3", "SCHEDTWIN_KERNEL_TREE_TEO_V3", TeoUtil::V3),
    ("teo-v4", "SCHEDTWIN_KERNEL_TREE_TEO_V4", TeoUtil::V4),
    ("teo-6.3", TREE_6_3, TeoUtil::V6_3),
];

/// teo of 6.6, as released or since the revert.
pub struct Late<const UTIL: bool>(v6_6::TeoCpu);
/// teo of 5.14 with a patch.
pub struct Patched<const PATCH: usize>(v5_14::TeoCpu);

const BINS: [&str; CPUIDLE_STATE_MAX] =
    ["bin0", "bin1", "bin2", "bin3", "bin4", "bin5", "bin6", "bin7", "bin8", "bin9"];
/// The flags of the shim for a tree with recent intercepts, a patch on it, 6.6, 6.12, 6.18, and 7.3.
const RECENT: &[&str] = &["-DTEO_RECENT"];
const RECENT_UTILIZED: &[&str] = &["-DTEO_RECENT", "-DTEO_UTILIZED"];
const RECENT_TICK_HITS: &[&str] = &["-DTEO_RECENT", "-DTEO_TICK_HITS"];
const TICK_HITS: &[&str] = &["-DTEO_TICK_HITS"];
const SHORT_IDLES: &[&str] = &["-DTEO_SHORT_IDLES"];
const TIMERS: &[&str] = &["-DTEO_SHORT_IDLES", "-DTEO_TIMERS"];

fn has_recent(text: &str) -> bool {
    text.contains("recent_idx[NR_RECENT]")
}

fn looks_at_util(text: &str) -> bool {
    text.contains("sched_cpu_util")
}

fn has_tick_hits(text: &str) -> bool {
    text.contains("tick_hits")
}

fn has_short_idles(text: &str) -> bool {
    text.contains("short_idles")
}

fn has_total_tick(text: &str) -> bool {
    text.contains("total_tick")
}

/// -1 for none, as C has it.
fn index(idx: Option<u8>) -> u64 {
    idx.map_or(-1, i64::from) as u64
}

fn report_ring(next: u8, ring: &[Option<u8>; NR_RECENT], out: &mut Out) {
    out.word("teo", "next_recent_idx", next as u64);
    const NAMES: [&str; NR_RECENT] = [
        "recent0", "recent1", "recent2", "recent3", "recent4", "recent5", "recent6", "recent7",
        "recent8",
    ];
    for (name, idx) in NAMES.iter().zip(ring) {
        out.word("teo", name, index(*idx));
    }
}

fn report_bins(bins: &[TeoBin], states: usize, out: &mut Out) {
    for (name, bin) in BINS.iter().zip(bins).take(states) {
        out.word(name, "hits", bin.hits as u64);
        out.word(name, "intercepts", bin.intercepts as u64);
        out.word(name, "recent", bin.recent as u64);
    }
}

fn report_5_14(teo: &v5_14::TeoCpu, states: usize, out: &mut Out) {
    out.word("teo", "time_span_ns", teo.time_span_ns as u64);
    out.word("teo", "sleep_length_ns", teo.sleep_length_ns as u64);
    out.word("teo", "total", teo.total as u64);
    if let Some(util) = &teo.util {
        out.word("teo", "utilized", util.utilized as u64);
    }
    report_ring(teo.next_recent_idx, &teo.recent_idx, out);
    out.word("dev", "last_state_idx", index(teo.last_state_idx));
    report_bins(&teo.state_bins, states, out);
}

impl Form for v6_12::TeoCpu {
    const NAME: &'static str = "teo";
    const SHIM: &'static str = "teo/shim.c";
    const FLAGS: &'static [&'static str] = TICK_HITS;
    const FILE: &'static str = "teo.c";
    const SOURCES: Sources = Sources { modules: &["idle", "teo"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = TEO;
    const GOLDEN_SHOWN: u64 = 6;

    fn is_form(text: &str) -> bool {
        !has_recent(text) && !has_short_idles(text)
    }

    fn new() -> Self {
        Self::default()
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let selection = self.select(input, sleep_length);
        (selection.idx, selection.stop_tick)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.reflect(stay);
        false
    }

    fn report(&self, states: usize, out: &mut Out) {
        out.word("teo", "time_span_ns", self.time_span_ns as u64);
        out.word("teo", "sleep_length_ns", self.sleep_length_ns as u64);
        out.word("teo", "total", self.total as u64);
        out.word("teo", "tick_hits", self.tick_hits as u64);
        let last = self.last_state_idx.map_or(-1, |state| state as i64);
        out.word("dev", "last_state_idx", last as u64);
        for (name, bin) in BINS.iter().zip(&self.state_bins).take(states) {
            out.word(name, "hits", bin.hits as u64);
            out.word(name, "intercepts", bin.intercepts as u64);
        }
    }

    fn has_selected(&self) -> bool {
        self.last_state_idx.is_none()
    }

    fn sleep_length_ns(&self) -> i64 {
        self.sleep_length_ns
    }
}

impl Form for v6_18::TeoCpu {
    const NAME: &'static str = "teo-6.18";
    const TREE: &'static str = TREE_6_18;
    const SHIM: &'static str = "teo/shim.c";
    const FLAGS: &'static [&'static str] = SHORT_IDLES;
    const FILE: &'static str = "teo.c";
    const SOURCES: Sources = Sources { modules: &["idle", "teo"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = TEO_6_18;
    const GOLDEN_SHOWN: u64 = 2;
    // Long enough for a counter to decay to nothing.
    const LENGTHS: u64 = 180;

    fn is_form(text: &str) -> bool {
        has_short_idles(text) && !has_total_tick(text)
    }

    fn new() -> Self {
        Self::default()
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let selection = self.select(input, sleep_length);
        (selection.idx, selection.stop_tick)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.reflect(stay);
        false
    }

    fn report(&self, states: usize, out: &mut Out) {
        out.word("teo", "sleep_length_ns", self.sleep_length_ns as u64);
        out.word("teo", "total", self.total as u64);
        out.word("teo", "tick_intercepts", self.tick_intercepts as u64);
        out.word("teo", "short_idles", self.short_idles as u64);
        out.word("teo", "artificial_wakeup", self.artificial_wakeup as u64);
        let last = self.last_state_idx.map_or(-1, |state| state as i64);
        out.word("dev", "last_state_idx", last as u64);
        for (name, bin) in BINS.iter().zip(&self.state_bins).take(states) {
            out.word(name, "hits", bin.hits as u64);
            out.word(name, "intercepts", bin.intercepts as u64);
        }
    }

    fn has_selected(&self) -> bool {
        self.last_state_idx.is_none()
    }

    fn sleep_length_ns(&self) -> i64 {
        self.sleep_length_ns
    }
}

impl Form for v7_3::TeoCpu {
    const NAME: &'static str = "teo-7.3";
    const TREE: &'static str = TREE_7_3;
    const SHIM: &'static str = "teo/shim.c";
    const FLAGS: &'static [&'static str] = TIMERS;
    const FILE: &'static str = "teo.c";
    const SOURCES: Sources = Sources { modules: &["idle", "teo"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = TEO_7_3;
    const GOLDEN_SHOWN: u64 = 2;
    const FEWEST_STATES: u64 = 2;
    // Long enough for a counter to decay to nothing.
    const LENGTHS: u64 = 180;

    fn is_form(text: &str) -> bool {
        has_short_idles(text) && has_total_tick(text)
    }

    fn new() -> Self {
        Self::default()
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let selection = self.select(input, sleep_length);
        (selection.idx, selection.stop_tick)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.reflect(stay);
        stay.poll_time_limit
    }

    fn report(&self, states: usize, out: &mut Out) {
        out.word("teo", "sleep_length_ns", self.sleep_length_ns as u64);
        out.word("teo", "total", self.total as u64);
        out.word("teo", "total_tick", self.total_tick as u64);
        out.word("teo", "tick_intercepts", self.tick_intercepts as u64);
        out.word("teo", "short_idles", self.short_idles as u64);
        out.word("teo", "tick_wakeup", self.tick_wakeup as u64);
        let last = self.last_state_idx.map_or(-1, |state| state as i64);
        out.word("dev", "last_state_idx", last as u64);
        for (name, bin) in BINS.iter().zip(&self.state_bins).take(states) {
            out.word(name, "hits", bin.hits as u64);
            out.word(name, "intercepts", bin.intercepts as u64);
        }
    }

    fn has_selected(&self) -> bool {
        self.last_state_idx.is_none()
    }

    fn sleep_length_ns(&self) -> i64 {
        self.sleep_length_ns
    }
}

impl Form for v5_14::TeoCpu {
    const NAME: &'static str = "teo-5.14";
    const TREE: &'static str = TREE_6_1;
    const SHIM: &'static str = "teo/shim.c";
    const FLAGS: &'static [&'static str] = RECENT;
    const FILE: &'static str = "teo.c";
    const SOURCES: Sources = Sources { modules: &["idle", "teo"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = TEO_RECENT;
    const GOLDEN_SHOWN: u64 = 3;

    fn is_form(text: &str) -> bool {
        has_recent(text) && !looks_at_util(text) && !has_tick_hits(text)
    }

    fn new() -> Self {
        Self::new(None)
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let selection = self.select(input, sleep_length);
        (selection.idx, selection.stop_tick)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.reflect(stay);
        false
    }

    fn report(&self, states: usize, out: &mut Out) {
        report_5_14(self, states, out);
    }

    fn has_selected(&self) -> bool {
        self.last_state_idx.is_none()
    }

    fn sleep_length_ns(&self) -> i64 {
        self.sleep_length_ns
    }
}

impl<const PATCH: usize> Form for Patched<PATCH> {
    const NAME: &'static str = PATCHES[PATCH].0;
    const TREE: &'static str = PATCHES[PATCH].1;
    const SHIM: &'static str = "teo/shim.c";
    const FLAGS: &'static [&'static str] = RECENT_UTILIZED;
    const FILE: &'static str = "teo.c";
    const SOURCES: Sources = Sources { modules: &["idle", "teo"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = TEO_UTIL[PATCH];
    const GOLDEN_SHOWN: u64 = 1;
    const UTIL: bool = true;

    fn is_form(text: &str) -> bool {
        has_recent(text) && looks_at_util(text) && !has_tick_hits(text)
    }

    fn new() -> Self {
        Patched(v5_14::TeoCpu::new(UtilAware::new(PATCHES[PATCH].2, 1024, 6)))
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let selection = self.0.select(input, sleep_length);
        (selection.idx, selection.stop_tick)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.0.reflect(stay);
        false
    }

    fn report(&self, states: usize, out: &mut Out) {
        report_5_14(&self.0, states, out);
    }

    fn has_selected(&self) -> bool {
        self.0.last_state_idx.is_none()
    }

    fn sleep_length_ns(&self) -> i64 {
        self.0.sleep_length_ns
    }
}

impl<const UTIL: bool> Form for Late<UTIL> {
    const NAME: &'static str = if UTIL { "teo-6.6" } else { "teo-6.6.y" };
    const TREE: &'static str =
        if UTIL { "SCHEDTWIN_KERNEL_TREE_6_6" } else { "SCHEDTWIN_KERNEL_TREE_6_6_Y" };
    const SHIM: &'static str = "teo/shim.c";
    const FLAGS: &'static [&'static str] = RECENT_TICK_HITS;
    const FILE: &'static str = "teo.c";
    const SOURCES: Sources = Sources { modules: &["idle", "teo"], kernel: Some(&IDLE_FILES) };
    const MUTATIONS: &'static [Mutation] = TEO_6_6;
    const GOLDEN_SHOWN: u64 = 2;
    const UTIL: bool = UTIL;

    fn is_form(text: &str) -> bool {
        has_recent(text) && has_tick_hits(text) && looks_at_util(text) == UTIL
    }

    fn new() -> Self {
        Late(v6_6::TeoCpu::new(if UTIL { UtilAware::new(TeoUtil::V6_3, 1024, 6) } else { None }))
    }

    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool) {
        let selection = self.0.select(input, sleep_length);
        (selection.idx, selection.stop_tick)
    }

    fn reflect(&mut self, stay: &Reflection) -> bool {
        self.0.reflect(stay);
        false
    }

    fn report(&self, states: usize, out: &mut Out) {
        let teo = &self.0;
        out.word("teo", "time_span_ns", teo.time_span_ns as u64);
        out.word("teo", "sleep_length_ns", teo.sleep_length_ns as u64);
        out.word("teo", "total", teo.total as u64);
        report_ring(teo.next_recent_idx, &teo.recent_idx, out);
        out.word("teo", "tick_hits", teo.tick_hits as u64);
        out.word("dev", "last_state_idx", index(teo.last_state_idx));
        report_bins(&teo.state_bins, states, out);
    }

    fn has_selected(&self) -> bool {
        self.0.last_state_idx.is_none()
    }

    fn sleep_length_ns(&self) -> i64 {
        self.0.sleep_length_ns
    }
}
