// SPDX-License-Identifier: GPL-2.0-or-later
//! What a user sets of a scheduler before it is loaded.

/// The settings that all schedulers have, after `scx.`.
pub const OF_ALL: [&str; 7] =
    ["slice_us", "timeout_ms", "op_ns", "flags", "load_ms", "unload_ms", "rodata.NAME"];

/// A setting of a scheduler: `scx.NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtSetting {
    /// A variable.
    Variable(String, i64),
    /// An option of its program.
    Option(String, i64),
    /// The slice, microseconds, by whichever of its names the scheduler has.
    SliceUs(u64),
    /// `timeout_ms`, in the place of the scheduler's own.
    TimeoutMs(u32),
    /// What each callback costs.
    OpNs(u64),
    /// `flags`, in the place of the scheduler's own.
    Flags(u64),
}
