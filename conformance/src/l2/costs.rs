// SPDX-License-Identifier: GPL-2.0-or-later
//! The costs of kernel paths on the board, measured in its recordings.

/// Costs of paths with 7.3, in place of those of rig8, which are of 6.12: these less the differences of two pairs of means in us.
///
/// | | 6.12 | 7.3 | |
/// |---|---|---|---|
/// | a task that only sleeps, switch to switch | 4.35 | 3.62 | syscall, schedule, context_switch; three boots of a workload with RUN 0 |
/// | wakeup to switch from idle | 3.61 | 3.50 | idle_exit, schedule, context_switch |
/// | waking to wakeup of a real-time task | 2.07 | 1.86 | wakeup |
/// | waking to wakeup, EAS | 5.88 | 5.58 | wakeup, energy_per_domain |
/// | idle exit to idle entry | 7.60 | 7.37 | interrupt, softirq, idle_enter |
///
/// The last four are printed by `paths`, of `pipeline` and `ui-pair`, or of all workloads for real-time tasks.
pub(super) const LINUX_7_3: [(&str, u64); 5] = [
    ("syscall", 2_880),
    ("schedule", 1_390),
    ("wakeup", 1_990),
    ("energy_per_domain", 1_490),
    ("softirq", 1_770),
];

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
