// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheduler's own program does before it loads it.
//!
//! Settings are the names of variables. Some have a value by their name: how many CPUs there are, and the slice of 20 ms
//! that loaders set. Known schedulers have a file of options ([`KNOWN`]), which also says what their programs make of the machine and
//! which programs they run; the tables of scx_lavd are a program of their own (`lavd.rs`).

use super::maps::Map;
use super::topology::{Machine, Topology, Valued};
use super::{Cids, TreeExt, lavd, userland};
use crate::options::ExtOptions;
use crate::steps::{Action, Path, Step, Value as Written};
use crate::symbols::{Place, Symbols};
use schedtwin_input::Source;
use schedtwin_kernel::policy::{Kfuncs, SCX_SLICE_DFL};
use std::sync::LazyLock;

/// Variables by which a scheduler and its program in user space share decisions.
pub(super) const IN_USER_SPACE: [&str; 1] = ["usersched_pid"];
/// Names that loaders give the number of CPUs.
pub(super) const CPU_COUNTS: [&str; 4] = ["nr_cpu_ids", "nr_cpus", "num_possible_cpus", "nr_cpu"];
/// Names that loaders give the slice, nanoseconds.
pub(super) const SLICES: [&str; 3] = ["slice_ns", "cgrp_slice_ns", "slice_max"];

/// A value, and the place that it is written to: a variable, an element or a member of it.
pub(super) type Value = (String, u64);

/// Something that a loader writes.
enum Write {
    /// Into a variable.
    Variable(Place, u64),
    /// Into a variable that is 0.
    Unset(Place, u64),
    /// Into the entry of a map with this key: a place within its value.
    Entry { map: u64, key: Vec<u8>, place: Place, value: u64 },
}

impl TreeExt {
    /// Makes the maps, writes what the scheduler's own program would, and runs the programs that it runs. Variables, maps and programs
    /// that the scheduler does not have are left out: its versions have different ones.
    pub(super) fn load(&mut self, scx: &mut Kfuncs) {
        let nr_cpus = scx.nr_cpu_ids();
        let machine = Machine::of(Topology::of(scx));
        let writes = self.writes(&machine);
        let (entries, maps) = (self.entries, self.code.maps.clone());
        // SAFETY: the image is resident.
        let uses_cids = self.image.ask(self.watched, || unsafe { (entries.uses_cids)() });
        let cids = Cids::of(scx);
        self.image.ask(self.watched, || {
            // SAFETY: the image is resident; each place is the object's, of that size, and writable: the variables that
            // loaders write are compiled as plain ones, and others are refused.
            unsafe {
                let base = (entries.base)();
                (entries.boot)(nr_cpus as u32);
                (entries.number_cids)(cids.to_cpu.as_ptr(), nr_cpus as u32);
                maps.iter().for_each(|map| map.define(&entries, base, nr_cpus));
                for write in writes {
                    match write {
                        Write::Variable(place, value) => place.write(base, value),
                        Write::Unset(place, value) => {
                            if place.is_zero(base) {
                                place.write(base, value);
                            }
                        }
                        Write::Entry { map, key, place, value } => {
                            let object = base.add(map as usize).cast();
                            let (at, bytes) = (place.offset as u32, place.bytes as u32);
                            (entries.fill_map)(object, key.as_ptr().cast(), at, bytes, value);
                        }
                    }
                }
            }
        });
        self.cids = uses_cids.then_some(cids);
        let done = self.run_steps(scx, &machine, false);
        if let Err(what) = done.and_then(|()| self.set_up_arena(scx, machine.topology())) {
            scx.error(what);
        }
    }

    /// Runs the programs that its loader runs before `init` or after it; in words, if one fails, or if it would not load the scheduler.
    pub(super) fn run_steps(
        &mut self,
        scx: &mut Kfuncs,
        machine: &Machine,
        after_init: bool,
    ) -> Result<(), String> {
        let options = self.code.options.clone();
        for step in steps(&options) {
            for of in machine.parts(step.part).iter().filter(|of| applies(step, of)) {
                match &step.action {
                    Action::Run(run) if run.after_init == after_init => {
                        self.run_step(scx, run, step.part, of)?;
                    }
                    Action::Refuse(why) if !after_init => {
                        return Err(format!("{why}: the machine has {} CPUs", scx.nr_cpu_ids()));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// All that is written before the programs run; what the user has set comes last.
    fn writes(&self, machine: &Machine) -> Vec<Write> {
        let code = &self.code;
        let nr_cpus = machine.topology().cpus.len() as u64;
        let mut values: Vec<Value> =
            CPU_COUNTS.map(|name| (name.to_string(), nr_cpus)).into_iter().collect();
        values.extend(code.options.unasked().map(|(path, value)| (path, value as u64)));
        if code.has_program {
            values.push((userland::PID.to_string(), self.program_pid.into()));
        }
        if self.ops.name() == lavd::NAME {
            lavd::tables(machine.topology(), &mut values);
        }
        let place =
            |(path, value): &Value| Some(Write::Variable(code.symbols.place(path)?, *value));
        // Without a table nobody knows better than the C what the slice is.
        let is_known = *code.options != ExtOptions::default();
        let slice = |name| {
            let place = code.symbols.place(name)?;
            Some(match is_known {
                true => Write::Variable(place, SCX_SLICE_DFL),
                false => Write::Unset(place, SCX_SLICE_DFL),
            })
        };
        let mut writes: Vec<Write> = SLICES.into_iter().filter_map(slice).collect();
        writes.extend(values.iter().filter_map(place));
        for step in steps(&code.options) {
            let Action::Set(sets) = &step.action else { continue };
            for of in machine.parts(step.part).iter().filter(|of| applies(step, of)) {
                let written = sets.iter().flat_map(|(path, value)| {
                    written(&code.symbols, &code.maps, path, value, (machine, of))
                });
                writes.extend(written);
            }
        }
        writes.extend(code.writes.iter().map(|(place, value)| Write::Variable(*place, *value)));
        writes
    }
}

/// The steps of every loader, but for programs that the scheduler's own file runs, and those of that file.
fn steps(options: &ExtOptions) -> impl Iterator<Item = &Step> {
    let runs = |step: &Step| match &step.action {
        Action::Run(run) => Some(run.program.clone()),
        _ => None,
    };
    let own: Vec<String> = options.machine.iter().filter_map(runs).collect();
    let of_every = EVERY.machine.iter();
    let of_every = of_every.filter(move |step| runs(step).is_none_or(|run| !own.contains(&run)));
    of_every.chain(&options.machine)
}

fn applies(step: &Step, of: &Valued) -> bool {
    step.condition.as_ref().is_none_or(|condition| condition.value(&of.values) != 0)
}

/// What is written for a part of the machine.
fn written(
    symbols: &Symbols,
    maps: &[Map],
    path: &Path,
    value: &Written,
    (machine, of): (&Machine, &Valued),
) -> Vec<Write> {
    let path = path.with(&of.values);
    let root = path.split(['.', '[']).next().unwrap_or(&path);
    let map = maps.iter().find(|map| map.name() == root);
    let entry = map.and_then(|map| {
        let (key, rest) = path[root.len()..].strip_prefix('[')?.split_once(']')?;
        Some((map.object(), map.key(key)?, map.value().at(rest)?))
    });
    let Some((offset, shape)) = (match &entry {
        Some((_, _, place)) => Some(*place),
        None if map.is_some() => None,
        None => symbols.shape(&path),
    }) else {
        return Vec::new();
    };
    let words: Vec<(Place, u64)> = match value {
        Written::Number(number) => {
            let value = number.value(&of.values) as u64;
            shape.number(offset).into_iter().map(|place| (place, value)).collect()
        }
        Written::Mask(filter) => {
            let mask = machine.mask(&of.cpus, filter.as_ref());
            shape.words(offset).into_iter().zip(mask).collect()
        }
    };
    let write = |(place, value)| match &entry {
        Some((map, key, _)) => Write::Entry { map: *map, key: key.clone(), place, value },
        None => Write::Variable(place, value),
    };
    words.into_iter().map(write).collect()
}

/// The programs of known schedulers, as files of options. Read from their sources; `sets` and defaults are theirs without options.
const KNOWN: [&str; 18] = [
    include_str!("../../loaders/beerland.options.json"),
    include_str!("../../loaders/bpfland.options.json"),
    include_str!("../../loaders/cake.options.json"),
    include_str!("../../loaders/central.options.json"),
    include_str!("../../loaders/chaos.options.json"),
    include_str!("../../loaders/cosmos.options.json"),
    include_str!("../../loaders/flash.options.json"),
    include_str!("../../loaders/flatcg.options.json"),
    include_str!("../../loaders/forge.options.json"),
    include_str!("../../loaders/lavd.options.json"),
    include_str!("../../loaders/mitosis.options.json"),
    include_str!("../../loaders/p2dq.options.json"),
    include_str!("../../loaders/pair.options.json"),
    include_str!("../../loaders/pandemonium.options.json"),
    include_str!("../../loaders/qmap.options.json"),
    include_str!("../../loaders/rusty.options.json"),
    include_str!("../../loaders/simple.options.json"),
    include_str!("../../loaders/tickless.options.json"),
];

fn read(text: &str) -> ExtOptions {
    let source = Source::new("<built in>", text);
    ExtOptions::read(&source).unwrap_or_else(|faults| panic!("{faults}"))
}

/// What every loader does for a scheduler that has these variables, maps and programs.
static EVERY: LazyLock<ExtOptions> =
    LazyLock::new(|| read(include_str!("../../loaders/every.options.json")));

/// The program of the scheduler that calls itself so; of an unknown one nothing is known.
pub(super) fn known(name: &str) -> ExtOptions {
    KNOWN.iter().map(|text| read(text)).find(|options| options.name == name).unwrap_or_default()
}

impl Place {
    /// Whether the number is 0.
    ///
    /// # Safety
    /// The object is loaded at `base`, and nobody else uses the place.
    unsafe fn is_zero(self, base: *const u8) -> bool {
        // SAFETY: the caller's.
        unsafe {
            let at = base.add(self.offset as usize);
            (0..self.bytes as usize).all(|byte| at.add(byte).read() == 0)
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_known_programs_can_be_read() {
        let names: Vec<String> = KNOWN.iter().map(|text| read(text).name).collect();
        assert!(names.is_sorted() && names.iter().all(|name| !name.is_empty()), "{names:?}");
        assert!(!EVERY.machine.is_empty());
    }
}
