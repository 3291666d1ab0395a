// SPDX-License-Identifier: GPL-2.0-or-later
//! The costs of kernel paths on the board, measured in its recordings.

/// Costs of paths where the kernel prints its signals (`probes 1`), in place of those of rig8, which has them without.
/// Medians of the recordings, see machines/rig8.toml.
pub(super) const PRINTING: [(&str, u64); 8] = [
    ("wakeup", 19_000),
    ("energy_per_domain", 5_000),
    ("idle_exit", 4_500),
    ("schedule", 2_500),
    ("context_switch", 2_000),
    ("idle_enter", 7_000),
    ("tick", 18_500),
    ("softirq", 4_000),
];
