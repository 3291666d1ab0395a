// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheduler's own program does before it loads it.
//!
//! Settings are the names of variables. Some have a value by their name: how many CPUs there are, and the slice of 20 ms
//! that loaders set. Known schedulers have a row of [`LOADERS`].

use super::TreeExt;
use crate::elf::Variable;
use schedtwin_kernel::policy::{
    Kfuncs, SCX_OPS_ALLOW_QUEUED_WAKEUP, SCX_OPS_ENQ_EXITING, SCX_OPS_ENQ_LAST,
    SCX_OPS_ENQ_MIGRATION_DISABLED, SCX_SLICE_DFL,
};
use schedtwin_types::CpuId;
use std::ffi::c_int;

/// Variables by which a scheduler and its program in user space share decisions.
pub(super) const IN_USER_SPACE: [&str; 1] = ["usersched_pid"];
/// Names that loaders give the number of CPUs.
pub(super) const CPU_COUNTS: [&str; 4] = ["nr_cpu_ids", "nr_cpus", "num_possible_cpus", "nr_cpu"];
/// Names that loaders give the slice, nanoseconds.
pub(super) const SLICES: [&str; 3] = ["slice_ns", "cgrp_slice_ns", "slice_max"];

impl TreeExt {
    /// Writes the variables that the scheduler's own program would.
    pub(super) fn load(&self, scx: &Kfuncs) {
        let nr_cpus = scx.nr_cpu_ids();
        let code = &self.code;
        let of_name = |name: &str| code.variables.get(name).copied();
        let loader = Loader::of(&self.ops.name());
        let mut writes: Vec<(Variable, usize, u64)> = Vec::new();
        let mut write = |name: &str, index: usize, value: u64| {
            writes.extend(of_name(name).map(|variable| (variable, index, value)));
        };
        CPU_COUNTS.into_iter().for_each(|name| write(name, 0, nr_cpus as u64));
        SLICES.into_iter().for_each(|name| write(name, 0, SCX_SLICE_DFL));
        for (name, value) in loader.iter().flat_map(|loader| loader.values) {
            write(name, 0, *value);
        }
        let cpus = || (0..nr_cpus).map(|cpu| CpuId(cpu as u16));
        let smt = cpus().any(|cpu| scx.smt_mask(cpu).weight() > 1);
        let largest = cpus().map(|cpu| scx.cpuperf_cap(cpu)).max().unwrap_or(1024);
        let same = cpus().all(|cpu| scx.cpuperf_cap(cpu) == largest);
        if loader.is_some() {
            write("smt_enabled", 0, smt.into());
            write("numa_enabled", 0, (scx.nr_node_ids() > 1).into());
            write("nr_node_ids", 0, scx.nr_node_ids() as u64);
            write("all_cpus_same_capacity", 0, same.into());
            for cpu in cpus() {
                let capacity = u64::from(scx.cpuperf_cap(cpu)) * 1024 / u64::from(largest);
                write("cpu_capacity", cpu.index(), capacity);
            }
            let mut order: Vec<CpuId> = cpus().collect();
            order.sort_by_key(|cpu| std::cmp::Reverse(scx.cpuperf_cap(*cpu)));
            for (at, cpu) in order.into_iter().enumerate() {
                write("preferred_cpus", at, cpu.0.into());
            }
        }
        writes.extend(code.writes.iter().map(|(variable, value)| (*variable, 0, *value)));
        let enable = code.variables.get(SIBLINGS).filter(|_| smt).map(|function| function.offset);
        let pairs: Vec<[i32; 2]> = cpus()
            .flat_map(|cpu| {
                scx.smt_mask(cpu).iter().map(move |other| [cpu.0.into(), other.0.into()])
            })
            .collect();
        let (base, boot) = (self.entries.base, self.entries.boot);
        self.image.ask(self.watched, || {
            // SAFETY: the image is resident; each variable is the object's, of that size, and writable: scx.c makes
            // those const that are const to the scheduler plain variables. The function takes two numbers of a CPU.
            unsafe {
                boot(nr_cpus as u32);
                for (variable, index, value) in writes {
                    variable.write(base(), index, value);
                }
                if let Some(enable) = enable {
                    type Enable = unsafe extern "C" fn(*const [i32; 2]) -> c_int;
                    let enable: Enable = std::mem::transmute(base().add(enable as usize));
                    for pair in &pairs {
                        enable(pair);
                    }
                }
            }
        });
    }
}

/// The program that loaders run for each pair of a core's threads.
pub(super) const SIBLINGS: &str = "enable_sibling_cpu";

/// What the program of a known scheduler sets, beside what follows from the machine.
pub(super) struct Loader {
    /// `ops.name`.
    pub(super) name: &'static str,
    pub(super) flags: u64,
    pub(super) values: &'static [(&'static str, u64)],
}

/// Those whose settings are not the values in their C. Read from their own programs, without options.
pub(super) const LOADERS: [Loader; 2] = [
    Loader {
        name: "bpfland",
        flags: SCX_OPS_ENQ_EXITING
            | SCX_OPS_ENQ_LAST
            | SCX_OPS_ENQ_MIGRATION_DISABLED
            | SCX_OPS_ALLOW_QUEUED_WAKEUP,
        values: &[
            ("slice_max", 1_000_000),
            ("slice_min", 0),
            ("slice_lag", 40_000_000),
            ("sticky_tasks", 0),
            ("local_kthreads", 0),
            ("local_pcpu", 0),
            ("primary_all", 1),
            ("cpufreq_perf_lvl", 1024),
        ],
    },
    Loader {
        name: "cosmos",
        flags: SCX_OPS_ENQ_EXITING
            | SCX_OPS_ENQ_LAST
            | SCX_OPS_ENQ_MIGRATION_DISABLED
            | SCX_OPS_ALLOW_QUEUED_WAKEUP,
        values: &[
            ("slice_ns", 1_000_000),
            ("slice_lag", 20_000_000),
            ("busy_threshold", 0),
            ("cpufreq_enabled", 1),
            ("primary_all", 1),
        ],
    },
];

impl Loader {
    pub(super) fn of(name: &str) -> Option<&'static Loader> {
        LOADERS.iter().find(|loader| loader.name == name)
    }
}

impl Variable {
    /// Writes a number into the variable, or into an element of it.
    ///
    /// # Safety
    /// The object is loaded at `base`, and nobody else uses the variable.
    pub(super) unsafe fn write(self, base: *mut u8, index: usize, value: u64) {
        let element = if index > 0 || self.bytes > 8 { 8 } else { self.bytes };
        let at = index as u64 * element;
        if at + element <= self.bytes {
            let bytes = value.to_le_bytes();
            // SAFETY: as the caller promises; the bytes are within the variable.
            unsafe {
                let to = base.add((self.offset + at) as usize);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, element as usize);
            }
        }
    }
}
