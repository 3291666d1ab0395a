// SPDX-License-Identifier: GPL-2.0-or-later
//! What is taken out of the kernel's headers for the search in a frequency table, in an order in which it compiles.

/// Macros of `include/linux/cpufreq.h`.
pub const TABLE_MACROS: &[&str] = &[
    "CPUFREQ_RELATION_L",
    "CPUFREQ_RELATION_H",
    "CPUFREQ_RELATION_C",
    "CPUFREQ_RELATION_E",
    "CPUFREQ_RELATION_LE",
    "CPUFREQ_RELATION_HE",
    "CPUFREQ_RELATION_CE",
    "cpufreq_for_each_entry",
    "cpufreq_for_each_entry_idx",
    "cpufreq_for_each_valid_entry_idx",
    "cpufreq_for_each_efficient_entry_idx",
];

/// Functions of `include/linux/cpufreq.h`.
pub const TABLE_FUNCTIONS: &[&str] = &[
    "cpufreq_table_find_index_al",
    "cpufreq_table_find_index_dl",
    "find_index_l",
    "cpufreq_table_find_index_ah",
    "cpufreq_table_find_index_dh",
    "find_index_h",
    "cpufreq_table_find_index_ac",
    "cpufreq_table_find_index_dc",
    "find_index_c",
    "cpufreq_is_in_limits",
    "cpufreq_frequency_table_target",
];
