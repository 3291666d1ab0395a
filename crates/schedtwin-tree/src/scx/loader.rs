// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheduler's own program does before it loads it.
//!
//! Settings are the names of variables. Some have a value by their name: how many CPUs there are, and the slice of 20 ms
//! that loaders set. Known schedulers have a file of options ([`KNOWN`]), and some a row of [`LOADERS`] for what depends on
//! the machine.

use super::setup::Topology;
use super::{Cids, TreeExt, lavd, userland};
use crate::options::ExtOptions;
use crate::symbols::{Place, Symbol};
use schedtwin_input::Source;
use schedtwin_kernel::policy::{Kfuncs, SCX_SLICE_DFL};
use schedtwin_types::CpuId;

/// Variables by which a scheduler and its program in user space share decisions.
pub(super) const IN_USER_SPACE: [&str; 1] = ["usersched_pid"];
/// Names that loaders give the number of CPUs.
pub(super) const CPU_COUNTS: [&str; 4] = ["nr_cpu_ids", "nr_cpus", "num_possible_cpus", "nr_cpu"];
/// Names that loaders give the slice, nanoseconds.
pub(super) const SLICES: [&str; 3] = ["slice_ns", "cgrp_slice_ns", "slice_max"];

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
        values.extend(code.options.unasked().map(|(path, value)| (path, value as u64)));
        if code.has_program {
            values.push((userland::PID.to_string(), self.program_pid.into()));
        }
        if let Some(loader) = loader {
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

/// The programs of known schedulers, as files of options. Read from their sources; `sets` and defaults are theirs without options.
const KNOWN: [&str; 8] = [
    include_str!("../../loaders/bpfland.options.json"),
    include_str!("../../loaders/central.options.json"),
    include_str!("../../loaders/cosmos.options.json"),
    include_str!("../../loaders/flatcg.options.json"),
    include_str!("../../loaders/lavd.options.json"),
    include_str!("../../loaders/pair.options.json"),
    include_str!("../../loaders/qmap.options.json"),
    include_str!("../../loaders/simple.options.json"),
];

/// The program of the scheduler that calls itself so; of an unknown one nothing is known.
pub(super) fn known(name: &str) -> ExtOptions {
    let all = KNOWN.iter().map(|text| {
        let source = Source::new("<built in>", *text);
        ExtOptions::read(&source).unwrap_or_else(|faults| panic!("{faults}"))
    });
    all.into_iter().find(|options| options.name == name).unwrap_or_default()
}

/// What the program of a known scheduler makes of the machine.
struct Loader {
    /// `ops.name`.
    name: &'static str,
    tables: fn(&Kfuncs, &mut Vec<Value>),
    /// Why it would not load it on this machine.
    refuses: fn(&Kfuncs) -> Option<String>,
}

const LOADERS: [Loader; 4] = [
    Loader { name: "bpfland", tables: by_capacity, refuses: nothing },
    Loader { name: "cosmos", tables: by_capacity, refuses: nothing },
    Loader { name: "lavd", tables: lavd::tables, refuses: nothing },
    Loader { name: "pair", tables: in_pairs, refuses: odd_cpus },
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
    fn of(name: &str) -> Option<&'static Loader> {
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
