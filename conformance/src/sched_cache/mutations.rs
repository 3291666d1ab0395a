// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in cache-aware scheduling that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const OCCUPANCY: &str = "sched/fair/sched_cache/occupancy.rs";
const ROOM: &str = "sched/fair/balance/llc/limits.rs";

/// Mutations of cache-aware scheduling.
pub const SCHED_CACHE: &[Mutation] = &[
    m(OCCUPANCY, "value >> n }", "value >> (n - 1) }"),
    m(OCCUPANCY, "wrapping_mul(1280)", "wrapping_mul(1366)"),
    m(OCCUPANCY, "wrapping_mul(1024)", "wrapping_mul(1028)"),
    m(OCCUPANCY, "        100.. => return true,", "        100.. => return false,"),
    m(OCCUPANCY, "nr_running.wrapping_mul(smt_threads as u64)", "nr_running"),
    m(OCCUPANCY, "(scale * llc_size) as u64", "llc_size as u64"),
    m(OCCUPANCY, "(llc_size >> 2).clamp(2, 8)", "(llc_size >> 1).clamp(2, 8)"),
    m(OCCUPANCY, "(llc_size >> 2).clamp(2, 8)", "(llc_size >> 2).clamp(1, 8)"),
    m(OCCUPANCY, "group.nr_threads <= 1 ||", "group.nr_threads < 1 ||"),
    m(OCCUPANCY, "(late as u64).div_ceil(period)", "(late as u64) / period + 1"),
    m(OCCUPANCY, "own.epoch_next += epochs * period;", "own.epoch_next = jiffies + period;"),
    m(OCCUPANCY, "own.time.runtime = shr(own.time.runtime, epochs);", ""),
    m(OCCUPANCY, "time.runtime = shr(time.runtime, epochs);\n    }", "}"),
    m(OCCUPANCY, "/ (all + 1)", "/ (all + 2)"),
    m(OCCUPANCY, "silent > self.limits", "silent >= self.limits"),
    m(
        OCCUPANCY,
        "if self.group(process).epoch >= epoch {",
        "if self.group(process).epoch > epoch {",
    ),
    m(OCCUPANCY, "            self.group_mut(process).epoch = epoch;\n", ""),
    m(
        OCCUPANCY,
        "if jiffies < self.group(process).next_scan {",
        "if jiffies <= self.group(process).next_scan {",
    ),
    m(OCCUPANCY, "next_scan = jiffies + self.period;", "next_scan = jiffies;"),
    m(OCCUPANCY, "if occupancy > most {", "if occupancy >= most {"),
    m(OCCUPANCY, "if sum > best {", "if sum >= best {"),
    m(OCCUPANCY, "best > preferred_has.wrapping_mul(2)", "best > preferred_has"),
    m(OCCUPANCY, "best > preferred_has.wrapping_mul(2)", "best >= preferred_has.wrapping_mul(2)"),
    m(OCCUPANCY, "task.pref_llc_queued = preferred == own.llc;", "task.pref_llc_queued = true;"),
    m(
        OCCUPANCY,
        "own.nr_pref_llc_running += (task.pref_llc_queued && !delayed) as u32;",
        "own.nr_pref_llc_running += task.pref_llc_queued as u32;",
    ),
    m(OCCUPANCY, "if delayed { *count - 1 } else { *count + 1 }", "*count"),
    m(OCCUPANCY, "nr_threads -= 1;", "nr_threads -= 0;"),
    m(ROOM, "smt_threads == 1", "smt_threads == 2"),
    m(ROOM, "percent * 3 / 2", "percent * 5 / 3"),
    m(ROOM, "llc.util * 100 < llc.capacity", "llc.util * 100 <= llc.capacity"),
    m(ROOM, "src.util.saturating_sub(util)", "src.util"),
    m(ROOM, "dst.util += util;", ""),
    m(ROOM, "a * 100 > b *", "a * 100 >= b *"),
    m(ROOM, "(100 + limits.imb_pct as u64)", "100"),
    m(ROOM, "!fits(dst) && !fits(src)", "!fits(dst) || !fits(src)"),
    m(ROOM, "!fits(dst) && greater(dst.util, src.util)", "!fits(dst)"),
    m(ROOM, "fits(src) || !greater(src.util, dst.util)", "!greater(src.util, dst.util)"),
];
