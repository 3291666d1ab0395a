// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheduler's own program does before it loads it.
//!
//! Settings are the names of variables. Some have a value by their name: how many CPUs there are, and the slice of 20 ms
//! that loaders set. Known schedulers have a row of [`LOADERS`].

use super::setup::Topology;
use super::{Cids, TreeExt, lavd};
use crate::symbols::{Place, Symbol};
use schedtwin_kernel::policy::{
    Kfuncs, SCX_OPS_ALLOW_QUEUED_WAKEUP, SCX_OPS_ENQ_EXITING, SCX_OPS_ENQ_LAST,
    SCX_OPS_ENQ_MIGRATION_DISABLED, SCX_OPS_KEEP_BUILTIN_IDLE, SCX_SLICE_DFL,
};
use schedtwin_types::CpuId;

/// Variables by which a scheduler and its program in user space share decisions.
pub(super) const IN_USER_SPACE: [&str; 1] = ["usersched_pid"];
/// Names that loaders give the number of CPUs.
pub(super) const CPU_COUNTS: [&str; 4] = ["nr_cpu_ids", "nr_cpus", "num_possible_cpus", "nr_cpu"];
/// Names that loaders give the slice, nanoseconds.
pub(super) const SLICES: [&str; 3] = ["slice_ns", "cgrp_slice_ns", "slice_max"];

/// `SCX_OPS_ALWAYS_ENQ_IMMED`.
const ALWAYS_ENQ_IMMED: u64 = 1 << 7;
/// The map in which a loader says the node of each CPU.
const NODES: &str = "cpu_node_map";

/// A value, and the place that it is written to: a variable, an element or a member of it.
pub(super) type Value = (String, u64);

impl TreeExt {
    /// Makes the maps, and writes what the scheduler's own program would. Variables that the scheduler does not have are
    /// left out: its versions have different ones.
    pub(super) fn load(&mut self, scx: &mut Kfuncs) {
        let nr_cpus = scx.nr_cpu_ids();
        let code = &self.code;
        let loader = Loader::of(&self.ops.name());
        let mut values = of_every_loader(nr_cpus);
        if let Some(loader) = loader {
            values.extend(loader.values.iter().map(|(name, value)| (name.to_string(), *value)));
            (loader.tables)(scx, &mut values);
        }
        let named =
            values.iter().filter_map(|(path, value)| Some((code.symbols.place(path)?, *value)));
        let writes: Vec<(Place, u64)> = named.chain(code.writes.iter().copied()).collect();
        let (entries, maps) = (self.entries, code.maps.clone());
        let nodes = code.symbols.get(NODES).map(Symbol::offset);
        let filled: Vec<(u64, u32, u32)> = (0..nr_cpus)
            .filter_map(|cpu| Some((nodes?, cpu as u32, scx.cpu_node(CpuId(cpu as u16)).into())))
            .collect();
        // SAFETY: the image is resident.
        let uses_cids = self.image.ask(self.watched, || unsafe { (entries.uses_cids)() });
        let cids = Cids::of(scx);
        self.image.ask(self.watched, || {
            // SAFETY: the image is resident; each place is the object's, of that size, and writable: the variables that
            // are const to the scheduler are compiled as plain ones.
            unsafe {
                let base = (entries.base)();
                (entries.boot)(nr_cpus as u32);
                (entries.number_cids)(cids.to_cpu.as_ptr(), nr_cpus as u32);
                maps.iter().for_each(|map| map.define(&entries, base, nr_cpus));
                for (map, key, value) in &filled {
                    (entries.fill_map)(base.add(*map as usize).cast(), *key, *value);
                }
                for (place, value) in writes {
                    place.write(base, value);
                }
            }
        });
        self.cids = uses_cids.then_some(cids);
        self.run_programs(scx, &Topology::of(scx));
        if self.code.flags.unwrap_or(self.ops.flags) & ALWAYS_ENQ_IMMED != 0 {
            scx.error("SCX_OPS_ALWAYS_ENQ_IMMED is not offered");
        }
        if let Some(refusal) = loader.and_then(|loader| (loader.refuses)(scx)) {
            scx.error(refusal);
        }
    }
}

/// The values that go by the names of variables alone.
fn of_every_loader(nr_cpus: usize) -> Vec<Value> {
    let counts = CPU_COUNTS.map(|name| (name.to_string(), nr_cpus as u64));
    let slices = SLICES.map(|name| (name.to_string(), SCX_SLICE_DFL));
    counts.into_iter().chain(slices).collect()
}

/// Whether the loader of a known scheduler can leave a program off, as it is here.
pub(super) fn leaves_off(function: &str) -> bool {
    LOADERS.iter().any(|loader| loader.off.contains(&function))
}

/// What the program of a known scheduler sets, beside what follows from the machine.
pub(super) struct Loader {
    /// `ops.name`.
    pub(super) name: &'static str,
    /// In the place of the C's.
    pub(super) flags: Option<u64>,
    pub(super) values: &'static [(&'static str, u64)],
    /// What it makes of the machine.
    tables: fn(&Kfuncs, &mut Vec<Value>),
    /// Why it would not load it on this machine.
    refuses: fn(&Kfuncs) -> Option<String>,
    /// Tracing programs that an option of it leaves off.
    off: &'static [&'static str],
}

/// Every task comes to `enqueue`, whatever its state.
const ENQ_ALL: u64 = SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_MIGRATION_DISABLED;

/// Those whose settings are not the values in their C. Read from their own programs, without options.
const LOADERS: [Loader; 5] = [
    Loader {
        name: "bpfland",
        flags: Some(ENQ_ALL | SCX_OPS_ALLOW_QUEUED_WAKEUP),
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
        tables: by_capacity,
        refuses: nothing,
        off: &[],
    },
    Loader {
        name: "cosmos",
        flags: Some(ENQ_ALL | SCX_OPS_ALLOW_QUEUED_WAKEUP),
        values: &[
            ("slice_ns", 1_000_000),
            ("slice_lag", 20_000_000),
            ("busy_threshold", 0),
            ("cpufreq_enabled", 1),
            ("primary_all", 1),
        ],
        tables: by_capacity,
        refuses: nothing,
        off: &[],
    },
    Loader {
        name: "lavd",
        flags: Some(ENQ_ALL | SCX_OPS_KEEP_BUILTIN_IDLE),
        values: &[
            ("is_autopilot_on", 1),
            ("slice_max_ns", 5_000_000),
            ("slice_min_ns", 500_000),
            ("pinned_slice_ns", 5_000_000),
            ("preempt_shift", 6),
            ("lat_load_target_pct", 100),
            ("mig_delta_pct", 0),
            ("warm_cpu_ns", 0),
            ("lb_low_util_wall", 256),
            ("lb_local_dsq_util_wall", 102),
            ("no_use_em", 1),
        ],
        tables: lavd::tables,
        refuses: nothing,
        // --no-futex-boost, and the two that make a task migrate at once when it executes a program.
        off: &[
            "fexit___futex_wait",
            "fexit_futex_wait_multiple",
            "fexit_futex_wait_requeue_pi",
            "fexit_futex_wake",
            "fexit_futex_wake_op",
            "fexit_futex_lock_pi",
            "fexit_futex_unlock_pi",
            "rtp_sys_enter_futex",
            "rtp_sys_exit_futex",
            "rtp_sys_exit_futex_wait",
            "rtp_sys_exit_futex_waitv",
            "rtp_sys_exit_futex_wake",
            "cond_hook_sys_enter_execve",
            "cond_hook_sys_enter_execveat",
        ],
    },
    Loader {
        name: "pair",
        flags: None,
        values: &[("pair_batch_dur_ns", SCX_SLICE_DFL)],
        tables: in_pairs,
        refuses: odd_cpus,
        off: &[],
    },
    Loader {
        name: "qmap",
        flags: None,
        values: &[("max_tasks", 16_384), ("round_robin_ns", 200_000_000), ("dsp_batch", 1)],
        tables: |_, _| {},
        refuses: nothing,
        off: &[],
    },
];

fn nothing(_: &Kfuncs) -> Option<String> {
    None
}

fn odd_cpus(scx: &Kfuncs) -> Option<String> {
    let count = scx.nr_cpu_ids();
    (count % 2 == 1).then(|| format!("scx_pair requires an even CPU count, got {count}"))
}

/// The first half of the CPUs with the second one.
fn in_pairs(scx: &Kfuncs, values: &mut Vec<Value>) {
    let half = scx.nr_cpu_ids() / 2;
    for cpu in 0..2 * half {
        let (pair, second) = (cpu % half, cpu / half);
        values.push((format!("pair_cpu[{cpu}]"), ((cpu + half) % (2 * half)) as u64));
        values.push((format!("pair_id[{cpu}]"), pair as u64));
        values.push((format!("in_pair_idx[{cpu}]"), second as u64));
    }
}

/// Capacities and the order of the CPUs by them.
fn by_capacity(scx: &Kfuncs, values: &mut Vec<Value>) {
    let cpus = || (0..scx.nr_cpu_ids()).map(|cpu| CpuId(cpu as u16));
    let smt = cpus().any(|cpu| scx.smt_mask(cpu).weight() > 1);
    let largest = cpus().map(|cpu| scx.cpuperf_cap(cpu)).max().unwrap_or(1024);
    let same = cpus().all(|cpu| scx.cpuperf_cap(cpu) == largest);
    let mut write = |path: String, value: u64| values.push((path, value));
    write("smt_enabled".into(), smt.into());
    write("numa_enabled".into(), (scx.nr_node_ids() > 1).into());
    write("nr_node_ids".into(), scx.nr_node_ids() as u64);
    write("all_cpus_same_capacity".into(), same.into());
    for cpu in cpus() {
        let capacity = u64::from(scx.cpuperf_cap(cpu)) * 1024 / u64::from(largest);
        write(format!("cpu_capacity[{}]", cpu.index()), capacity);
    }
    let mut order: Vec<CpuId> = cpus().collect();
    order.sort_by_key(|cpu| std::cmp::Reverse(scx.cpuperf_cap(*cpu)));
    for (at, cpu) in order.into_iter().enumerate() {
        write(format!("preferred_cpus[{at}]"), cpu.0.into());
    }
}

impl Loader {
    pub(super) fn of(name: &str) -> Option<&'static Loader> {
        LOADERS.iter().find(|loader| loader.name == name)
    }
}

impl Place {
    /// Writes a number.
    ///
    /// # Safety
    /// The object is loaded at `base`, and nobody else uses the place.
    unsafe fn write(self, base: *mut u8, value: u64) {
        let bytes = value.to_le_bytes();
        let count = bytes.len().min(self.bytes as usize);
        // SAFETY: as the caller promises; the bytes are within the variable.
        unsafe {
            let to = base.add(self.offset as usize);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, count);
        }
    }
}
