//! Whether the comparison notices a wrong token: mutations of our own code.
//!
//! Each mutation replaces one piece of text in a copy of our source. The copy and these very tests
//! are compiled with `rustc`, and must disagree with the golden vectors and with the oracle; those of the
//! fair class also with the model in fractions ([`crate::rational`]).

use super::Subject;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A replacement in a file of `crates/schedtwin-kernel/src`.
#[derive(Clone, Copy)]
pub struct Mutation {
    /// The file, from `src/` on.
    pub file: &'static str,
    /// What is there, exactly once.
    pub from: &'static str,
    /// What is put there.
    pub to: &'static str,
}

const fn m(file: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation { file, from, to }
}

const AVERAGES: &str = "sched/pelt.rs";
const CLOCK: &str = "sched/pelt/clock.rs";
const ATTACH: &str = "sched/pelt/attach.rs";
const EST: &str = "sched/pelt/util_est.rs";
const TEO_SHARED: &str = "cpuidle/teo/mod.rs";
const TEO_FILE: &str = "cpuidle/teo/v6_12.rs";
const TEO_RECENT_FILE: &str = "cpuidle/teo/v5_14.rs";
const TEO_6_6_FILE: &str = "cpuidle/teo/v6_6.rs";
const TEO_UTIL_FILE: &str = "cpuidle/teo/util.rs";
const LADDER_FILE: &str = "cpuidle/ladder.rs";
const HALTPOLL_FILE: &str = "cpuidle/haltpoll.rs";
const MENU_SHARED: &str = "cpuidle/menu/mod.rs";
const MENU_5_18_FILE: &str = "cpuidle/menu/v5_18.rs";
const MENU_6_12_FILE: &str = "cpuidle/menu/v6_12.rs";
const IDLE_STATES: &str = "cpuidle/states.rs";
const EEVDF_FILE: &str = "sched/fair/eevdf.rs";
const CFS_FILE: &str = "sched/fair/cfs.rs";
const CLASS: &str = "sched/fair/class.rs";
const WEIGHTS: &str = "sched/fair/mod.rs";

/// Mutations of PELT.
pub const PELT: &[Mutation] = &[
    m(AVERAGES, "LOAD_AVG_PERIOD * 63", "LOAD_AVG_PERIOD * 62"),
    m(AVERAGES, "shift: n / 32,", "shift: n / 31,"),
    m(AVERAGES, "position / SEGMENT", "delta / SEGMENT"),
    m(AVERAGES, "full_segments -= decay", "full_segments += decay"),
    m(AVERAGES, ".wrapping_sub(sa.period_contrib));", ".wrapping_sub(rest));"),
    m(AVERAGES, "periods as u32 != 0", "periods != 0"),
    m(AVERAGES, "= if load == 0 {", "= if load == 1 {"),
    m(AVERAGES, "(elapsed_ns as i64) < 0", "(elapsed_ns as i64) < -1"),
    m(AVERAGES, ".wrapping_add(delta << 10);", ".wrapping_add(elapsed_ns);"),
    m(AVERAGES, "sa.runnable_sum / divider", "sa.load_sum / divider"),
    m(AVERAGES, "sa.util_est &= !UTIL", "sa.util_est |= UTIL"),
    m(AVERAGES, "capacity as u32)", "(capacity != 0) as u32)"),
    m(AVERAGES, "let crossed = before | during;", "let crossed = during;"),
    m(AVERAGES, "(power * 0xffff_ffff)", "(power * 0xffff_fffe)"),
    m(CLOCK, "util_sum >= SATURATED", "util_sum > SATURATED"),
    m(CLOCK, "delta.wrapping_mul(cpu_scale)", "delta.wrapping_mul(freq_scale)"),
    m(CLOCK, "clock_task.wrapping_sub(self.clock_pelt)", "clock.wrapping_sub(self.clock_pelt)"),
    m(ATTACH, "se_weight < weighted", "se_weight > weighted"),
    m(ATTACH, "delta < 0 && sum > value", "delta < 0 && sum < value"),
    m(ATTACH, "now < cfs_last_update_time", "now > cfs_last_update_time"),
    m(ATTACH, ".wrapping_neg() >> SCHED", " >> SCHED"),
    m(ATTACH, "if cap > 0 {", "if cap >= 0 {"),
    m(ATTACH, ".min(divider)", ".min(divider - 1)"),
    m(EST, "ewma <= dequeued", "ewma >= dequeued"),
    m(EST, "fall >= UTIL_EST_MARGIN", "fall > UTIL_EST_MARGIN"),
    m(EST, "dequeued as u64 > arch", "dequeued as u64 >= arch"),
    m(EST, "as u64 >= task.runnable_avg", "as u64 > task.runnable_avg"),
];

/// Mutations of what PELT was before 6.8.
pub const PELT_6_1: &[Mutation] = &[
    m(AVERAGES, "full_segments -= decay", "full_segments += decay"),
    m(AVERAGES, "sa.util_est &= !UTIL", "sa.util_est |= UTIL"),
    m(ATTACH, "if cap > 0 {", "if cap >= 0 {"),
    m(EST, "if fastup && ewma < enqueued", "if ewma < enqueued"),
    m(EST, "within_margin(enqueued, ewma)", "within_margin(enqueued, before)"),
    m(EST, "within_margin(before, enqueued)", "within_margin(before, ewma)"),
    m(EST, "task.util_avg > arch_capacity", "task.util_avg >= arch_capacity"),
    m(EST, "enqueued.wrapping_sub(ewma));", "before.wrapping_sub(ewma));"),
    m(EST, "task.util_est = enqueued |", "task.util_est = ewma |"),
    m(EST, "abs_diff(b) < UTIL", "abs_diff(b) <= UTIL"),
    m(
        EST,
        "!UTIL_AVG_UNCHANGED).max(task.util_est_ewma)",
        "!UTIL_AVG_UNCHANGED).min(task.util_est_ewma)",
    ),
];

/// Mutations of teo.
pub const TEO: &[Mutation] = &[
    m(TEO_SHARED, "PULSE: u32 = 1024", "PULSE: u32 = 1023"),
    m(TEO_SHARED, "DECAY_SHIFT: u32 = 3", "DECAY_SHIFT: u32 = 4"),
    m(TEO_FILE, "last_state_idx: Some(0)", "last_state_idx: None"),
    m(TEO_SHARED, "sleep_length_ns > stay.tick_nsec", "sleep_length_ns >= stay.tick_nsec"),
    m(TEO_SHARED, "time_span_ns >= sleep", "time_span_ns > sleep"),
    m(TEO_SHARED, "residency_ns >= exit_latency_ns", "residency_ns > exit_latency_ns"),
    m(TEO_SHARED, "residency_ns - exit_latency_ns / 2", "residency_ns - exit_latency_ns"),
    m(TEO_FILE, "residency_ns() <= self.sleep", "residency_ns() < self.sleep"),
    m(TEO_FILE, "target_residency_ns <= measured_ns", "target_residency_ns < measured_ns"),
    m(TEO_FILE, "input.tick_nsec as u64 <= measured_ns", "input.tick_nsec as u64 >= measured_ns"),
    m(TEO_FILE, "<= input.latency_req_ns {", "<= input.latency_req_ns - 1 {"),
    m(TEO_FILE, "2 * idx_intercept_sum > self", "2 * idx_intercept_sum >= self"),
    m(TEO_FILE, "wrapping_sub(idx_hit_sum)", "wrapping_sub(hit_sum)"),
    m(TEO_FILE, "2 * intercepts > candidate", "2 * intercepts >= candidate"),
    m(TEO_FILE, "deep_enough(i) && !states", "!states"),
    m(TEO_FILE, "first_suitable == candidate", "first_suitable != candidate"),
    m(TEO_FILE, "< RESIDENCY_THRESHOLD_NS", "<= RESIDENCY_THRESHOLD_NS"),
    m(TEO_FILE, "self.total / 2 + self.total / 8", "self.total / 2"),
    m(TEO_FILE, "> timers.sleep_length_ns {", ">= timers.sleep_length_ns {"),
    m(TEO_FILE, "idx > first_enabled &&", "idx < first_enabled &&"),
    m(TEO_FILE, "residency_ns() > delta_tick_ns", "residency_ns() >= delta_tick_ns"),
    m(TEO_FILE, "duration_ns >= input.tick_nsec)", "duration_ns > input.tick_nsec)"),
    m(TEO_FILE, "unwrap_or(KTIME_MAX)", "unwrap_or(0)"),
];

/// Mutations of teo with recent intercepts.
pub const TEO_RECENT: &[Mutation] = &[
    m(TEO_RECENT_FILE, "% NR_RECENT as u8", "% 8"),
    m(TEO_RECENT_FILE, "last_state_idx: Some(0)", "last_state_idx: None"),
    m(TEO_RECENT_FILE, "residency_ns() <= self.sleep", "residency_ns() < self.sleep"),
    m(TEO_RECENT_FILE, "target_residency_ns <= measured_ns", "target_residency_ns < measured_ns"),
    m(TEO_RECENT_FILE, "(!hit).then_some", "(hit).then_some"),
    m(TEO_RECENT_FILE, "bin.recent += 1", "bin.recent += 0"),
    m(TEO_RECENT_FILE, "duration_ns < input.tick_nsec);", "duration_ns <= input.tick_nsec);"),
    m(TEO_RECENT_FILE, "residency_ns() > timers.delta", "residency_ns() >= timers.delta"),
    m(TEO_RECENT_FILE, "states[1].residency_ns() <= sleep", "states[1].residency_ns() < sleep"),
    m(TEO_RECENT_FILE, "state.residency_ns() > sleep", "state.residency_ns() >= sleep"),
    m(TEO_RECENT_FILE, "                idx0 = i;", "                idx0 = 0;"),
    m(TEO_RECENT_FILE, "exit_latency_ns as i64 <= input", "exit_latency_ns as i64 - 1 <= input"),
    m(TEO_RECENT_FILE, "below = all;", "below = below;"),
    m(TEO_RECENT_FILE, "if deepest == idx0 {", "if deepest == 0 {"),
    m(TEO_RECENT_FILE, "2 * below.intercepts > self", "2 * below.intercepts >= self"),
    m(TEO_RECENT_FILE, "wrapping_sub(below.hits)", "wrapping_sub(0)"),
    m(TEO_RECENT_FILE, "below.recent > NR_RECENT", "below.recent >= NR_RECENT"),
    m(TEO_RECENT_FILE, "span_ns >= input.tick_nsec", "span_ns > input.tick_nsec"),
    m(TEO_RECENT_FILE, "2 * recent > below.recent", "2 * recent >= below.recent"),
    m(TEO_RECENT_FILE, "2 * intercepts > below", "2 * intercepts >= below"),
    m(TEO_RECENT_FILE, "(states[i + 1].residency_ns()) / 2", "(states[i].residency_ns()) / 2"),
    m(TEO_RECENT_FILE, "time_ok(span_ns) && !states", "!states"),
    m(TEO_RECENT_FILE, "Some((i, span_ns)) } else", "Some((i, 0)) } else"),
    m(
        TEO_RECENT_FILE,
        "found.duration_ns) = (idx, duration_ns)",
        "found.duration_ns) = (idx, sleep_length_ns)",
    ),
    m(TEO_RECENT_FILE, "first_suitable.is_none() {", "first_suitable.is_some() {"),
    m(TEO_RECENT_FILE, "found.idx > constraint_idx", "found.idx < constraint_idx"),
];

/// Mutations of teo of 6.6 to 6.10.
pub const TEO_6_6: &[Mutation] = &[
    m(TEO_6_6_FILE, "% NR_RECENT as u8", "% 8"),
    m(TEO_6_6_FILE, "*recent = recent.wrapping_sub(1)", "*recent = recent.saturating_sub(1)"),
    m(TEO_6_6_FILE, "input.tick_nsec <= self.sleep", "input.tick_nsec < self.sleep"),
    m(
        TEO_6_6_FILE,
        "input.tick_nsec as u64 <= measured_ns",
        "input.tick_nsec as u64 >= measured_ns",
    ),
    m(TEO_6_6_FILE, "self.recent_idx[slot] = None", "self.recent_idx[slot] = Some(0)"),
    m(TEO_6_6_FILE, "bin.recent.wrapping_add(1)", "bin.recent"),
    m(TEO_6_6_FILE, "(1..states.len()).rfind(quick)", "(0..states.len() - 1).rfind(quick)"),
    m(TEO_6_6_FILE, "if idx == 0 || beside", "if beside"),
    m(TEO_6_6_FILE, "< RESIDENCY_THRESHOLD_NS", "<= RESIDENCY_THRESHOLD_NS"),
    m(TEO_6_6_FILE, "> timers.sleep_length_ns {", ">= timers.sleep_length_ns {"),
    m(TEO_6_6_FILE, "self.total / 2 + self.total / 8", "self.total / 2"),
    m(TEO_6_6_FILE, "idx > first_enabled &&", "idx < first_enabled &&"),
    m(TEO_6_6_FILE, "residency_ns() > delta_tick_ns", "residency_ns() >= delta_tick_ns"),
    m(TEO_6_6_FILE, "2 * below.intercepts > self", "2 * below.intercepts >= self"),
    m(TEO_6_6_FILE, "below.recent > NR_RECENT", "below.recent >= NR_RECENT"),
    m(TEO_6_6_FILE, "recent.wrapping_mul(2) > below", "recent.wrapping_mul(2) >= below"),
    m(TEO_6_6_FILE, "first_suitable == candidate", "first_suitable != candidate"),
    m(TEO_6_6_FILE, "unwrap_or(KTIME_MAX)", "unwrap_or(0)"),
];

/// Mutations of teo's utilisation awareness, by patch as in [`super::teo::PATCHES`].
pub const TEO_UTIL: [&[Mutation]; 5] = [
    &[
        m(TEO_UTIL_FILE, "cpu_util > self.threshold", "cpu_util >= self.threshold"),
        m(TEO_UTIL_FILE, "capacity >> shift", "capacity >> shift >> 1"),
        m(TEO_UTIL_FILE, "self.forgetful && self.utilized", "self.forgetful"),
        m(TEO_UTIL_FILE, "enabled.or(Some(states.len()))", "enabled"),
        m(TEO_UTIL_FILE, "Step::None, true)", "Step::None, false)"),
        m(TEO_RECENT_FILE, "&& states_to_choose(input, timers.sleep_length_ns)", "&& true"),
        m(TEO_RECENT_FILE, "states[1].residency_ns() <= sleep", "states[1].residency_ns() < sleep"),
    ],
    &[
        m(TEO_UTIL_FILE, "idx > 0 && !states[idx - 1].disabled", "idx > 0"),
        m(TEO_UTIL_FILE, "                    idx - 1\n", "                    0\n"),
        m(TEO_UTIL_FILE, "Step::NextBelow, true)", "Step::NextBelow, false)"),
        m(TEO_UTIL_FILE, "states.len() > 2", "states.len() > 3"),
    ],
    &[
        m(
            TEO_UTIL_FILE,
            "TeoUtil::V3 => (AtOnce::OfTwoFirstSleeping, Step::FromState1, true)",
            "TeoUtil::V3 => (AtOnce::OfTwoFirstSleeping, Step::FromState1, false)",
        ),
        m(TEO_UTIL_FILE, "Step::FromState1 => idx == 1", "Step::FromState1 => idx == 2"),
    ],
    &[
        m(TEO_UTIL_FILE, "sleeping.or(Some(states.len()))", "sleeping"),
        m(TEO_UTIL_FILE, "Step::FromState1 => idx == 1", "Step::FromState1 => true"),
        m(TEO_UTIL_FILE, "!s.disabled && !s.polling", "!s.disabled"),
    ],
    &[
        m(TEO_UTIL_FILE, "Step::Shallower => true", "Step::Shallower => idx == 1"),
        m(TEO_UTIL_FILE, "idx, duration_ns, true)", "idx, duration_ns, false)"),
        m(TEO_UTIL_FILE, "states, idx, duration_ns", "states, idx, i64::MAX"),
        m(
            TEO_UTIL_FILE,
            "OfTwoFirstSleepingIfAny => sleeping",
            "OfTwoFirstSleepingIfAny => enabled",
        ),
    ],
];

/// Mutations of ladder.
pub const LADDER: &[Mutation] = &[
    m(LADDER_FILE, "PROMOTION_COUNT: u32 = 4", "PROMOTION_COUNT: u32 = 5"),
    m(LADDER_FILE, "DEMOTION_COUNT: u32 = 1", "DEMOTION_COUNT: u32 = 2"),
    m(LADDER_FILE, "wrapping_sub(latency_ns)", "saturating_sub(latency_ns)"),
    m(LADDER_FILE, "{ (0, 0) }", "{ (1, 1) }"),
    m(LADDER_FILE, "slept_ns > long_ns", "slept_ns >= long_ns"),
    m(LADDER_FILE, "as i64 <= input.latency_req_ns", "as i64 - 1 <= input.latency_req_ns"),
    m(LADDER_FILE, "!deeper.disabled && ", ""),
    m(LADDER_FILE, "states[last].disabled || !quick(last)", "!quick(last)"),
    m(LADDER_FILE, "slept_ns < latency_ns", "slept_ns <= latency_ns"),
    m(LADDER_FILE, "return Some(last - 1)", "return Some(first)"),
    m(LADDER_FILE, "usize::from(states[0].polling)", "0"),
    m(LADDER_FILE, "self.stats[self.last_state_idx] = Stats::default();", ""),
];

/// Mutations of haltpoll.
pub const HALTPOLL: &[Mutation] = &[
    m(HALTPOLL_FILE, "NS: u64 = 200_000", "NS: u64 = 100_000"),
    m(HALTPOLL_FILE, "GROW: u64 = 2", "GROW: u64 = 3"),
    m(HALTPOLL_FILE, "GROW_START: u64 = 50_000", "GROW_START: u64 = 49_999"),
    m(HALTPOLL_FILE, "self.last_state_idx == 0 && self", "self"),
    m(HALTPOLL_FILE, "last_residency_ns > GUEST", "last_residency_ns >= GUEST"),
    m(HALTPOLL_FILE, "poll_limit_ns < GROW_START", "poll_limit_ns <= GROW_START"),
    m(HALTPOLL_FILE, "last_residency_ns > self.poll", "last_residency_ns >= self.poll"),
    m(HALTPOLL_FILE, "return (0, false)", "return (0, true)"),
];

/// Mutations of haltpoll of 6.1.
pub const HALTPOLL_6_1: &[Mutation] =
    &[m(HALTPOLL_FILE, "self.closes && self", "self"), m(HALTPOLL_FILE, "/= GROW", "/= 4")];

/// Mutations of menu, of what its forms share.
macro_rules! menu_mutations {
    ($($own:expr,)*) => { &[
        m(MENU_SHARED, "RESOLUTION: u64 = 1024", "RESOLUTION: u64 = 1023"),
        m(MENU_SHARED, "DECAY: u64 = 8", "DECAY: u64 = 7"),
        m(MENU_SHARED, "last_residency_ns == 0 {", "last_residency_ns == 1 {"),
        m(MENU_SHARED, "push_interval(u32::MAX)", "push_interval(0)"),
        m(MENU_SHARED, "next_timer_ns > input.tick_nsec", "next_timer_ns >= input.tick_nsec"),
        m(MENU_SHARED, "9 * MAX_INTERESTING / 10", "8 * MAX_INTERESTING / 10"),
        m(MENU_SHARED, "last.polling && self", "!last.polling && self"),
        m(MENU_SHARED, "last_residency_ns - last.exit_latency_ns", "last_residency_ns"),
        m(MENU_SHARED, ".min(self.next_timer_ns)", ".min(u64::MAX)"),
        m(MENU_SHARED, "(measured_ns / 1000)", "(measured_ns / 1024)"),
        m(MENU_SHARED, "wrapping_add(UNIT / 2)", "wrapping_add(0)"),
        m(MENU_SHARED, "thresh = i32::MAX as u32", "thresh = u32::MAX"),
        m(MENU_SHARED, "&& most_left", "&& !most_left"),
        m(MENU_SHARED, "variance <= 400", "variance <= 399"),
        m(MENU_SHARED, "4 * count <= 3", "4 * count < 3"),
        m(MENU_SHARED, "thresh = max - 1", "thresh = max / 2"),
        m(MENU_SHARED, "0..10_000 => 0,\n        10_000", "0..=10_000 => 0,\n        10_001"),
        m(MENU_SHARED, "latency_req_ns == 0", "latency_req_ns == 1"),
        m(MENU_SHARED, "next_timer_ns < states[1]", "next_timer_ns <= states[1]"),
        m(MENU_SHARED, "latency_req_ns < states[1]", "latency_req_ns <= states[1]"),
        m(MENU_SHARED, "predicted_ns < input.tick_nsec", "predicted_ns <= input.tick_nsec"),
        m(MENU_SHARED, "residency_ns() > delta_tick_ns", "residency_ns() >= delta_tick_ns"),
        m(IDLE_STATES, "residency_ns() <= duration_ns", "residency_ns() < duration_ns"),
        $($own,)*
    ] };
}

/// Mutations of menu of 4.20 to 6.5.
pub const MENU_5_18: &[Mutation] = menu_mutations![
    m(MENU_5_18_FILE, "nr_iowaiters > 0", "nr_iowaiters > 1"),
    m(MENU_5_18_FILE, "shortest >= timer_us", "shortest > timer_us"),
    m(MENU_5_18_FILE, "(1 + 10 * input", "(1 + 9 * input"),
    m(
        MENU_5_18_FILE,
        "    if !input.tick_stopped {\n        let",
        "    if input.tick_stopped {\n        let"
    ),
    m(MENU_5_18_FILE, "> interactivity_req_ns {", ">= interactivity_req_ns + 1000 {"),
    m(MENU_5_18_FILE, "as i64 > latency_req_ns;", "as i64 >= latency_req_ns;"),
    m(MENU_5_18_FILE, "target_residency_ns > predicted_ns", "target_residency_ns >= predicted_ns"),
    m(MENU_5_18_FILE, "shallower.polling && !slow", "shallower.polling"),
    m(MENU_5_18_FILE, "<= next_timer_ns {", "< next_timer_ns {"),
    m(MENU_5_18_FILE, "shallower.residency_ns() < input", "shallower.residency_ns() <= input"),
    m(MENU_5_18_FILE, "state.residency_ns() <= delta", "state.residency_ns() < delta"),
];

/// Mutations of menu of 6.6 and later.
pub const MENU_6_12: &[Mutation] = menu_mutations![
    m(MENU_6_12_FILE, "longest == 0)", "longest == 1)"),
    m(MENU_6_12_FILE, "KTIME_MAX as u64, input", "KTIME_MAX as u64 / 2, input"),
    m(MENU_6_12_FILE, "predicted_ns > RESIDENCY", "predicted_ns >= RESIDENCY"),
    m(MENU_6_12_FILE, "..0 => (0, 0)", "..0 => (0, timers.delta_tick_ns)"),
    m(MENU_6_12_FILE, "timer_ns <= predicted_ns", "timer_ns > predicted_ns"),
    m(MENU_6_12_FILE, "tick_stopped && predicted_ns <", "tick_stopped && predicted_ns <="),
    m(MENU_6_12_FILE, "as i64 > input.latency", "as i64 >= input.latency"),
    m(MENU_6_12_FILE, "target_residency_ns <= predicted_ns", "target_residency_ns < predicted_ns"),
    m(MENU_6_12_FILE, "state.residency_ns() < RESIDENCY", "state.residency_ns() <= RESIDENCY"),
    m(MENU_6_12_FILE, "<= next_timer_ns\n", "< next_timer_ns\n"),
    m(MENU_6_12_FILE, "exit_latency_ns <= predicted_ns", "exit_latency_ns < predicted_ns"),
    m(MENU_6_12_FILE, "shallower.residency_ns() < input", "shallower.residency_ns() <= input"),
    m(MENU_6_12_FILE, "state.residency_ns() <= delta", "state.residency_ns() < delta"),
];

/// Mutations of EEVDF, of the fair class's entries and of its weights.
pub const EEVDF: &[Mutation] = &[
    m(EEVDF_FILE, "(a.wrapping_sub(b) as i64) < 0", "(a.wrapping_sub(b) as i64) <= 0"),
    m(EEVDF_FILE, "sum -= load - 1;", "sum -= load;"),
    m(EEVDF_FILE, "sum >= key.wrapping_mul(load)", "sum > key.wrapping_mul(load)"),
    m(
        EEVDF_FILE,
        "(2 * entity.slice).max(self.tick_nsec)",
        "(2 * entity.slice).min(self.tick_nsec)",
    ),
    m(EEVDF_FILE, "cfs.avg_load + curr_weight", "cfs.avg_load"),
    m(EEVDF_FILE, "vslice /= 2", "vslice /= 3"),
    m(EEVDF_FILE, "entity.rel_deadline = false", "entity.rel_deadline = true"),
    m(EEVDF_FILE, "cfs_rq);\n        true", "cfs_rq);\n        false"),
    m(EEVDF_FILE, "deadline.wrapping_add(1)", "deadline.wrapping_add(0)"),
    m(EEVDF_FILE, "self.se[pse].slice < self", "self.se[pse].slice <= self"),
    m(EEVDF_FILE, "&& !self.protect_slice(curr)", "&& self.protect_slice(curr)"),
    m(EEVDF_FILE, "if cfs.nr_queued == 1", "if cfs.nr_queued == 2"),
    m(EEVDF_FILE, "used_up || self.did", "used_up && self.did"),
    m(EEVDF_FILE, "= self.se[se].deadline;", "= self.se[se].deadline + 1;"),
    m(EEVDF_FILE, "at - 1].deadline", "at - 1].vruntime"),
    m(EEVDF_FILE, "best.deadline) => Some(curr)", "best.vruntime) => Some(curr)"),
    m(CLASS, "if self.se[se].vlag > 0", "if self.se[se].vlag >= 0"),
    m(EEVDF_FILE, "delay_zero && entity.vlag > 0", "delay_zero && entity.vlag < 0"),
    m(EEVDF_FILE, "place_rel_deadline && !sleep", "place_rel_deadline && sleep"),
    m(CLASS, "scaled / new.weight as i64", "scaled / new.weight as i64 - 1"),
    m(WEIGHTS, "(weight >> 10).max(2)", "(weight >> 10).max(3)"),
    m(WEIGHTS, "(u32::MAX as u64 / w)", "((1 << 32) / w)"),
];

/// Mutations of CFS and of the fair class's entries.
pub const CFS: &[Mutation] = &[
    m(CFS_FILE, "(a.wrapping_sub(b) as i64) < 0", "(a.wrapping_sub(b) as i64) <= 0"),
    m(CFS_FILE, "tunables.latency.div_ceil(", "tunables.latency.div_euclid("),
    m(CFS_FILE, "if before(first, running) => first", "if before(running, first) => first"),
    m(CFS_FILE, "if before(cfs.min_vruntime, smallest)", "if cfs.min_vruntime != smallest"),
    m(CFS_FILE, "flags & ENQUEUE_WAKEUP == 0 || flags", "flags & ENQUEUE_WAKEUP == 0 && flags"),
    m(CFS_FILE, "if flags & DEQUEUE_SLEEP == 0", "if flags & DEQUEUE_SLEEP != 0"),
    m(CFS_FILE, "(DEQUEUE_SAVE | DEQUEUE_MOVE) != DEQUEUE_SAVE", "DEQUEUE_SAVE != DEQUEUE_SAVE"),
    m(CFS_FILE, "if idle { tunables.min_granularity }", "if idle { tunables.latency }"),
    m(CFS_FILE, "credit >> gentle", "credit << gentle"),
    m(CFS_FILE, "calc_delta_fair(slice, &self", "calc_delta_fair(slice + 1, &self"),
    m(CFS_FILE, "if forget || before", "if before"),
    m(CFS_FILE, "exec_start != 0\n", "true\n"),
    m(CFS_FILE, "saturating_sub(exec_start) > (1", "saturating_sub(exec_start) >= (2"),
    m(
        CFS_FILE,
        "vruntime = self.se[curr].vruntime;\n        }\n        self.place",
        "vruntime = 0;\n        }\n        self.place",
    ),
    m(CFS_FILE, "counted as u64 + !self.se[se].on_rq as u64", "counted as u64"),
    m(CFS_FILE, "nr_running > self.sched_nr_latency()", "nr_running >= self.sched_nr_latency()"),
    m(CFS_FILE, "if entity.on_rq { 0 }", "if true { 0 }"),
    m(CFS_FILE, "slice.max(floor)", "slice.min(floor)"),
    m(CFS_FILE, "self.se_is_idle(se) && !self", "self.se_is_idle(se) && self"),
    m(CFS_FILE, "nr_queued == cfs.h_nr_idle", "nr_queued >= cfs.h_nr_idle"),
    m(CFS_FILE, "if ran > ideal_runtime {", "if ran >= ideal_runtime {"),
    m(CFS_FILE, "if ran < self.cfs", "if ran <= self.cfs"),
    m(CFS_FILE, "if lead > ideal_runtime as", "if lead >= ideal_runtime as"),
    m(CFS_FILE, "if behind <= 0 {", "if behind < 0 {"),
    m(CFS_FILE, "(behind > granularity)", "(behind >= granularity)"),
    m(CFS_FILE, "filter(fair).or(Some(left))", "or(Some(left))"),
    m(CFS_FILE, "or_curr(waiting(1))", "waiting(1)"),
    m(CFS_FILE, "cfs.next.filter(fair)", "cfs.next.filter(|_| true)"),
    m(CFS_FILE, "cfs.last.filter(fair)", "cfs.last.filter(|_| true)"),
    m(
        CFS_FILE,
        "nr_queued as u64 >= self.sched_nr_latency()",
        "nr_queued as u64 > self.sched_nr_latency()",
    ),
    m(CFS_FILE, "crowded && wake_flags & WF_FORK == 0", "crowded"),
    m(CFS_FILE, "if !marked {", "if marked {"),
    m(CFS_FILE, "crowded && entity.on_rq && entity", "crowded && entity"),
    m(CFS_FILE, "policy != Policy::Batch", "policy == Policy::Batch"),
    m(CFS_FILE, "self.cfs[cfs_rq].skip = Some(se)", "self.cfs[cfs_rq].next = Some(se)"),
    m(CLASS, "entity.exec_start = 0", "entity.exec_start = 1"),
];

/// Applies every mutation and runs the checks on it: a table, and how many went unnoticed.
pub fn report<S: Subject>(
    oracle: &Path,
    build_dir: &Path,
    seed: u64,
    cases: u64,
) -> Result<(String, usize), String> {
    let mut table = format!("{} mutations of our {}:\n", S::MUTATIONS.len(), S::NAME);
    let mut missed = 0;
    // Unchanged code must pass, or a failure would mean nothing.
    let unchanged = run::<S>(None, oracle, build_dir, seed, cases)?;
    if unchanged.contains(&Some(true)) {
        return Err("the unchanged code does not pass".to_string());
    }
    for mutation in S::MUTATIONS {
        let caught = run::<S>(Some(mutation), oracle, build_dir, seed, cases)?;
        missed += caught.contains(&Some(false)) as usize;
        for (judge, caught) in JUDGES.iter().zip(caught) {
            if let Some(caught) = caught {
                table += &format!("  {judge} {}", if caught { "caught" } else { "MISSED" });
            }
        }
        table += &format!(
            "  {}: {} -> {}\n",
            mutation.file,
            mutation.from.replace('\n', " "),
            mutation.to.replace('\n', " ")
        );
    }
    table += &format!("{} of {} caught by all", S::MUTATIONS.len() - missed, S::MUTATIONS.len());
    Ok((table, missed))
}

/// Who judges; the last one only the fair class.
const JUDGES: [&str; 3] = ["golden", "oracle", "fractions"];

/// Which judges notice the mutation; `None`: not asked.
fn run<S: Subject>(
    mutation: Option<&Mutation>,
    oracle: &Path,
    build_dir: &Path,
    seed: u64,
    cases: u64,
) -> Result<[Option<bool>; 3], String> {
    let binary = build(mutation, S::NAME, build_dir)?;
    let mut command = Command::new(&binary);
    command.arg(oracle).arg(seed.to_string()).arg(cases.to_string());
    let output = command.output().map_err(|error| format!("run {}: {error}", binary.display()))?;
    // A panic is a noticed difference too.
    let text = String::from_utf8_lossy(&output.stdout);
    let asked = [true, true, EXACT.contains(&S::NAME)];
    let noticed = |judge: usize| !text.contains(&format!("{} equal", JUDGES[judge]));
    Ok([0, 1, 2].map(|judge| asked[judge].then(|| noticed(judge))))
}

/// The subjects that need the whole kernel crate.
const WHOLE: [&str; 4] = ["eevdf", "cfs", "schedutil", "schedutil-6.1"];

/// Those that exact fractions judge as well.
const EXACT: [&str; 2] = ["eevdf", "cfs"];

/// What is compiled of our sources: the files that a subject is about, or the whole crate.
fn files(source: &Path, subject: &str) -> std::io::Result<Vec<String>> {
    if !WHOLE.contains(&subject) {
        let files = [
            "config.rs",
            "sched/pelt.rs",
            "sched/pelt/attach.rs",
            "sched/pelt/clock.rs",
            "sched/pelt/util_est.rs",
            IDLE_STATES,
            TEO_SHARED,
            TEO_FILE,
            TEO_RECENT_FILE,
            TEO_6_6_FILE,
            TEO_UTIL_FILE,
            LADDER_FILE,
            HALTPOLL_FILE,
            MENU_SHARED,
            MENU_5_18_FILE,
            MENU_6_12_FILE,
        ];
        return Ok(files.map(String::from).to_vec());
    }
    let mut files = Vec::new();
    let mut directories = vec![source.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(file) = path.strip_prefix(source) {
                files.push(file.to_string_lossy().into_owned());
            }
        }
    }
    Ok(files)
}

/// Has the crate that the kernel's rests on compiled, with what it depends on; how the compiler is told of it.
fn types(dir: &Path) -> Result<Vec<String>, String> {
    let (manifest, target) = (super::home().join("Cargo.toml"), dir.join("types"));
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let status = Command::new(&cargo)
        .args(["build", "--quiet", "--package", "schedtwin-types", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target)
        .status()
        .map_err(|error| format!("run {cargo}: {error}"))?;
    if !status.success() {
        return Err("schedtwin-types cannot be built; why stands above".to_string());
    }
    let built = target.join("debug").display().to_string();
    let library = format!("schedtwin_types={built}/libschedtwin_types.rlib");
    Ok(["-L", &format!("dependency={built}/deps"), "--extern", &library].map(String::from).to_vec())
}

/// Compiles the mutated files, and these modules against them.
fn build(mutation: Option<&Mutation>, subject: &str, dir: &Path) -> Result<PathBuf, String> {
    let crates = super::home().join("../crates");
    let source = crates.join("schedtwin-kernel/src");
    let copy = dir.join("src");
    let say = |what: &Path| {
        let what = what.display().to_string();
        move |error: std::io::Error| format!("{what}: {error}")
    };
    for file in files(&source, subject).map_err(say(&source))? {
        let from = source.join(&file);
        let mut text = std::fs::read_to_string(&from).map_err(say(&from))?;
        if let Some(mutation) = mutation.filter(|mutation| mutation.file == file) {
            let places = text.matches(mutation.from).count();
            if places != 1 {
                return Err(format!("{file}: '{}' is there {places} times", mutation.from));
            }
            text = text.replace(mutation.from, mutation.to);
        }
        // Their unit tests are not part of this.
        text = text.replace("#[cfg(test)]\nmod tests;", "");
        let to = copy.join(&file);
        std::fs::create_dir_all(to.parent().expect("has a directory")).map_err(say(&to))?;
        std::fs::write(&to, text).map_err(say(&to))?;
    }
    let write = |path: &Path, text: &str| std::fs::write(path, text).map_err(say(path));
    let library = copy.join("lib.rs");
    let whole = WHOLE.contains(&subject);
    if !whole {
        let modules = "pub mod config;\npub mod sched { pub mod pelt; }\npub mod cpuidle {\n\
                       pub mod haltpoll; pub mod ladder; pub mod menu; pub mod states;\n\
                       pub mod teo; }\n";
        write(&library, modules)?;
    }
    let driver = dir.join("driver.rs");
    let modules = super::home().join("src/l0/mod.rs");
    let (world, beside) = match subject {
        "pelt-6.1" => ("l0::pelt::Pelt61", String::new()),
        "pelt" => ("l0::pelt::Pelt", String::new()),
        "teo" => ("l0::teo::Teo", String::new()),
        "teo-5.14" => ("l0::teo::TeoRecent", String::new()),
        "teo-posted" => ("l0::teo::TeoPatched::<0>", String::new()),
        "teo-v2" => ("l0::teo::TeoPatched::<1>", String::new()),
        "teo-v3" => ("l0::teo::TeoPatched::<2>", String::new()),
        "teo-v4" => ("l0::teo::TeoPatched::<3>", String::new()),
        "teo-6.3" => ("l0::teo::TeoPatched::<4>", String::new()),
        "teo-6.6" => ("l0::teo::TeoLate", String::new()),
        "teo-6.6.y" => ("l0::teo::TeoLatePlain", String::new()),
        "ladder" => ("l0::steps::Ladder", String::new()),
        "haltpoll" => ("l0::steps::Haltpoll", String::new()),
        "haltpoll-6.1" => ("l0::steps::Haltpoll61", String::new()),
        "menu-5.18" => ("l0::menu::Menu5_18", String::new()),
        "menu-6.12" => ("l0::menu::Menu6_12", String::new()),
        "schedutil" | "schedutil-6.1" => {
            let path = super::home().join("src/schedutil.rs");
            let world = if subject == "schedutil" {
                "schedutil::Schedutil<false>"
            } else {
                "schedutil::Schedutil<true>"
            };
            (world, format!("#[path = {path:?}]\nmod schedutil;\n"))
        }
        _ => {
            // These modules use each other.
            let modules: String = ["eevdf.rs", "cfs.rs", "rational/mod.rs"]
                .map(|file| {
                    let path = super::home().join("src").join(file);
                    let name = file.split(['.', '/']).next().unwrap_or_default();
                    format!("#[path = {path:?}]\nmod {name};\n")
                })
                .concat();
            (if subject == "cfs" { "cfs::Cfs" } else { "eevdf::Eevdf" }, modules)
        }
    };
    let fractions = if EXACT.contains(&subject) {
        format!(
            "let exact = || rational::compare::<{world}, rational::{world}>(seed, cases / 50);\n\
             let exact = std::panic::catch_unwind(exact);\n\
             if matches!(exact, Ok(Ok(_))) {{ println!(\"fractions equal\"); }}\n"
        )
    } else {
        String::new()
    };
    write(
        &driver,
        &format!(
            "#![allow(dead_code)]\n#[path = {modules:?}]\nmod l0;\n{beside}fn main() {{\n\
             let args: Vec<String> = std::env::args().collect();\n\
             let (seed, cases) = (args[2].parse().unwrap(), args[3].parse().unwrap());\n\
             let golden = std::panic::catch_unwind(l0::golden::check::<{world}>);\n\
             if matches!(golden, Ok(Ok(_))) {{ println!(\"golden equal\"); }}\n\
             let oracle = std::path::Path::new(&args[1]);\n\
             {fractions}let found = l0::compare::<{world}>(oracle, seed, cases, true).unwrap();\n\
             if found.differing == 0 {{ println!(\"oracle equal\"); }}\n}}\n"
        ),
    )?;
    let rustc = |arguments: &[&str]| -> Result<(), String> {
        let compiler = std::env::var("RUSTC").unwrap_or("rustc".to_string());
        let output = Command::new(&compiler)
            .args(["--edition", "2024", "-Copt-level=2", "-Coverflow-checks=on", "--cap-lints"])
            .arg("allow")
            .args(arguments)
            .env("CARGO_MANIFEST_DIR", super::home())
            .current_dir(dir)
            .output()
            .map_err(|error| format!("run {compiler}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{arguments:?}:\n{}", String::from_utf8_lossy(&output.stderr)))
    };
    let library = library.to_string_lossy();
    let rlib = |name: &str, path: &str, externs: &[&str]| {
        let (crate_name, output) = (format!("--crate-name={name}"), format!("lib{name}.rlib"));
        let arguments = ["--crate-type=rlib", &crate_name, "-o", &output, path];
        rustc(&[&arguments, externs].concat())
    };
    let types = types(dir)?;
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    rlib("schedtwin_kernel", &library, &types)?;
    let kernel =
        ["--extern", "schedtwin_kernel=libschedtwin_kernel.rlib", "-L", ".", "-o", "driver"];
    rustc(&[&kernel, types.as_slice(), &[&driver.to_string_lossy()]].concat())?;
    Ok(dir.join("driver"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutation_has_its_place() {
        let source = super::super::home().join("../crates/schedtwin-kernel/src");
        let idle = [TEO, TEO_RECENT, MENU_5_18, MENU_6_12].concat();
        for mutation in [PELT, PELT_6_1, EEVDF, CFS].concat().iter().chain(&idle) {
            let text = std::fs::read_to_string(source.join(mutation.file)).unwrap();
            let places = text.matches(mutation.from).count();
            assert_eq!(places, 1, "{}: {}", mutation.file, mutation.from);
        }
    }

    /// The driver builds, and the golden vectors alone tell a wrong token from none.
    #[test]
    fn a_wrong_token_is_noticed_without_a_tree() {
        let dir = super::super::BuildDir::new("mutate-test").unwrap();
        let no_oracle = Path::new("/no/oracle");
        let noticed = |mutation| {
            run::<super::super::teo::Teo>(mutation, no_oracle, dir.path(), 1, 1).unwrap()[0]
        };
        assert_eq!(noticed(None), Some(false));
        assert_eq!(noticed(Some(&TEO[0])), Some(true));
    }
}
