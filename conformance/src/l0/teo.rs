//! teo's forms against the kernel's teo: of 6.12, and of 5.14 to 6.2 with recent intercepts.

use super::Out;
use super::idle::{Form, World};
use super::mutate::{Mutation, TEO, TEO_RECENT};
use schedtwin_kernel::cpuidle::states::{CPUIDLE_STATE_MAX, SelectInput, SleepLength};
use schedtwin_kernel::cpuidle::teo::{v5_14, v6_12};

/// teo of 6.12.
pub type Teo = World<v6_12::TeoCpu>;
/// teo of 5.14 to 6.2.
pub type TeoRecent = World<v5_14::TeoCpu>;

const BINS: [&str; CPUIDLE_STATE_MAX] =
    ["bin0", "bin1", "bin2", "bin3", "bin4", "bin5", "bin6", "bin7", "bin8", "bin9"];

fn has_recent(text: &str) -> bool {
    text.contains("recent_idx[NR_RECENT]")
}

impl Form for v6_12::TeoCpu {
    const NAME: &'static str = "teo";
    const SHIM: &'static str = "teo_shim.c";
    const FILE: &'static str = "teo.c";
    const MUTATIONS: &'static [Mutation] = TEO;
    const GOLDEN_SHOWN: u64 = 6;
    const MENU: bool = false;

    fn is_form(text: &str) -> bool {
        !has_recent(text)
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

    fn reflect(
        &mut self,
        state: usize,
        got_tick: bool,
        gave_up: bool,
        now: u64,
        tick: i64,
    ) -> bool {
        self.reflect(state, got_tick, gave_up, now, tick);
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

impl Form for v5_14::TeoCpu {
    const NAME: &'static str = "teo-5.14";
    const TREE: &'static str = super::TREE_6_1;
    const SHIM: &'static str = "teo_shim.c";
    const FLAGS: &'static [&'static str] = &["-DTEO_RECENT"];
    const FILE: &'static str = "teo.c";
    const MUTATIONS: &'static [Mutation] = TEO_RECENT;
    const GOLDEN_SHOWN: u64 = 3;
    const MENU: bool = false;

    fn is_form(text: &str) -> bool {
        // 6.3 to 6.10 count utilisation too.
        has_recent(text) && !text.contains("sched_cpu_util")
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

    fn reflect(
        &mut self,
        state: usize,
        got_tick: bool,
        gave_up: bool,
        now: u64,
        tick: i64,
    ) -> bool {
        self.reflect(state, got_tick, gave_up, now, tick);
        false
    }

    fn report(&self, states: usize, out: &mut Out) {
        out.word("teo", "time_span_ns", self.time_span_ns as u64);
        out.word("teo", "sleep_length_ns", self.sleep_length_ns as u64);
        out.word("teo", "total", self.total as u64);
        out.word("teo", "next_recent_idx", self.next_recent_idx as u64);
        const RECENT: [&str; v5_14::NR_RECENT] = [
            "recent0", "recent1", "recent2", "recent3", "recent4", "recent5", "recent6", "recent7",
            "recent8",
        ];
        let index = |idx: Option<u8>| idx.map_or(-1, i64::from) as u64;
        for (name, idx) in RECENT.iter().zip(self.recent_idx) {
            out.word("teo", name, index(idx));
        }
        out.word("dev", "last_state_idx", index(self.last_state_idx));
        for (name, bin) in BINS.iter().zip(&self.state_bins).take(states) {
            out.word(name, "hits", bin.hits as u64);
            out.word(name, "intercepts", bin.intercepts as u64);
            out.word(name, "recent", bin.recent as u64);
        }
    }

    fn has_selected(&self) -> bool {
        self.last_state_idx.is_none()
    }

    fn sleep_length_ns(&self) -> i64 {
        self.sleep_length_ns
    }
}
