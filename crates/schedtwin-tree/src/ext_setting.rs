// SPDX-License-Identifier: GPL-2.0-or-later
//! What a user sets of a scheduler before it is loaded.

/// A setting of a scheduler: `scx.NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtSetting {
    /// A variable.
    Variable(String, i64),
    /// The slice, microseconds, by whichever of its names the scheduler has.
    SliceUs(u64),
    /// `timeout_ms`, in the place of the scheduler's own.
    TimeoutMs(u32),
    /// What each callback costs.
    OpNs(u64),
    /// `flags`, in the place of the scheduler's own.
    Flags(u64),
}
