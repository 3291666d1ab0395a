// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs that a loader runs (`SEC("syscall")`): those of its file of options, and those of the arena library of scx, which wants to
//! know its memory and the machine's topology.
//!
//! The argument of a program is a structure, whose size and members are those of the debug information. A member without a value would be
//! a guess, so it is refused, as is a program that returns another value than 0.

use super::TreeExt;
use super::topology::{Topology, Valued};
use crate::steps::{Part, Run};
use crate::symbols::{Shape, Symbol};
use crate::watch::Question;
use schedtwin_kernel::policy::Kfuncs;
use schedtwin_types::{CpuId, MAX_CPUS};
use std::ffi::{c_int, c_void};

/// Programs of the arena library.
const ARENA: [&str; 4] =
    ["arena_init", "arena_topology_init", "arena_alloc_mask", "arena_topology_node_init"];
/// The structure of which it keeps one for each task, unless the file of options says another.
const ARENA_TASK: &str = "task_ctx";
/// `STATIC_ALLOC_PAGES_GRANULARITY`.
const STATIC_PAGES: u64 = 8;

/// The bytes of an argument of the declared structure, with values for its members; in words, if they do not fit.
fn argument(declared: Option<&Shape>, with: &[(String, i64)]) -> Result<Vec<u8>, String> {
    let Some(Shape::Struct(size, members)) = declared else {
        let takes_none = declared.is_none() && with.is_empty();
        return if takes_none { Ok(Vec::new()) } else { Err("takes no structure".to_string()) };
    };
    let mut bytes = vec![0; *size as usize];
    for (name, at, shape) in members {
        let Some((_, value)) = with.iter().find(|(known, _)| known == name) else {
            return Err(format!("also takes `{name}`, which the twin does not know"));
        };
        let Shape::Number(size @ 1..=8) = shape else {
            return Err(format!("takes `{name}`, which is no number"));
        };
        let (at, size) = (*at as usize, *size as usize);
        let place = bytes.get_mut(at..at + size).ok_or_else(|| format!("has a broken `{name}`"))?;
        place.copy_from_slice(&value.to_le_bytes()[..size]);
    }
    Ok(bytes)
}

/// A result of a program, with the kernel's name if it is one of the usual errors.
fn error_name(result: c_int) -> String {
    const NAMES: [(c_int, &str); 6] = [
        (-1, "EPERM"),
        (-2, "ENOENT"),
        (-7, "E2BIG"),
        (-12, "ENOMEM"),
        (-17, "EEXIST"),
        (-22, "EINVAL"),
    ];
    let name = NAMES.iter().find(|(number, _)| *number == result);
    name.map_or_else(|| result.to_string(), |(_, name)| format!("{result} (-{name})"))
}

/// ` for CPU 3`.
fn for_whom(part: Part, of: &Valued) -> String {
    let name = match part {
        Part::Machine | Part::Rank => return String::new(),
        Part::Cpu => "CPU",
        Part::Core => "the core of CPU",
        Part::Llc => "the cache of CPU",
        Part::Node => "the node of CPU",
    };
    format!(" for {name} {}", of.cpus[0])
}

impl TreeExt {
    /// Runs a program of a file of options for a part of the machine; in words, if it fails. One that the scheduler does not have is
    /// left out: its versions have different ones.
    pub(super) fn run_step(
        &mut self,
        scx: &mut Kfuncs,
        run: &Run,
        part: Part,
        of: &Valued,
    ) -> Result<(), String> {
        let name = &run.program;
        let Some(offset) = self.code.symbols.get(name).map(Symbol::offset) else { return Ok(()) };
        let with: Vec<(String, i64)> =
            run.with.iter().map(|(name, value)| (name.clone(), value.value(&of.values))).collect();
        let bytes = argument(self.code.symbols.argument(name), &with);
        let mut bytes = bytes.map_err(|what| format!("its program `{name}` {what}"))?;
        let on = run.on.as_ref().map(|on| CpuId(on.value(&of.values) as u16));
        let on = on.filter(|on| on.index() < scx.nr_cpu_ids()).unwrap_or(scx.this_cpu());
        let result = scx.on_cpu(on, |scx| self.run_program(scx, offset, &mut bytes));
        match result {
            0 => Ok(()),
            _ => {
                let (error, whom) = (error_name(result), for_whom(part, of));
                Err(format!("its program `{name}` returned {error}{whom}"))
            }
        }
    }

    /// Sets up the arena library, if the scheduler has it; in words, if a program of it fails.
    pub(super) fn set_up_arena(
        &mut self,
        scx: &mut Kfuncs,
        topology: &Topology,
    ) -> Result<(), String> {
        let offset = |name: &str| self.code.symbols.get(name).map(Symbol::offset);
        // Older libraries are not told the sizes of levels.
        let [Some(init), topology_init, Some(alloc_mask), Some(node_init)] = ARENA.map(offset)
        else {
            return Ok(());
        };
        let task = self.code.options.arena_task.as_deref().unwrap_or(ARENA_TASK);
        let task_bytes = self.code.symbols.structure(task).unwrap_or(0);
        let told = |name: &str, result: c_int| match result {
            0 => Ok(()),
            _ => Err(format!("its program `{name}` returned {}", error_name(result))),
        };
        told(ARENA[0], self.run_program(scx, init, &mut [STATIC_PAGES, task_bytes]))?;
        if let Some(topology_init) = topology_init {
            let result = self.run_program(scx, topology_init, &mut topology.most_children());
            told(ARENA[1], result)?;
        }
        for (number, cpus) in topology.units() {
            let mut mask = [0_u64; 1];
            told(ARENA[2], self.run_program(scx, alloc_mask, &mut mask))?;
            let at = mask[0] as *mut u64;
            if at.is_null() {
                return Err(format!("its program `{}` has no memory for a mask", ARENA[2]));
            }
            let mut bits = [0_u64; MAX_CPUS / 64];
            cpus.iter().for_each(|cpu| bits[usize::from(*cpu) / 64] |= 1 << (cpu % 64));
            let words = topology.cpus.len().div_ceil(64);
            self.image.ask(self.watched, || {
                // SAFETY: the image is resident; the program has allocated a bit for each CPU there.
                unsafe { std::ptr::copy_nonoverlapping(bits.as_ptr(), at, words) };
            });
            let mut node = [mask[0], 0, number as u64];
            told(ARENA[3], self.run_program(scx, node_init, &mut node))?;
        }
        Ok(())
    }

    /// Runs a program with its arguments.
    fn run_program<T>(&mut self, scx: &mut Kfuncs, offset: u64, arguments: &mut [T]) -> c_int {
        type Program = unsafe extern "C" fn(*mut c_void) -> c_int;
        let base = self.entries.base;
        self.call(scx, Question::Init, |_| {
            // SAFETY: the image is resident; the function is the object's, and takes the arguments of its loader.
            unsafe {
                let run: Program = std::mem::transmute(base().add(offset as usize));
                run(arguments.as_mut_ptr().cast())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_filled_by_the_members_of_their_type() {
        let member = |name: &str, at, bytes| (name.to_string(), at, Shape::Number(bytes));
        let members = vec![member("cpu", 4, 4), member("level", 0, 2)];
        let declared = Shape::Struct(8, members);
        let with = |names: &[(&str, i64)]| {
            let with: Vec<(String, i64)> =
                names.iter().map(|(name, value)| (name.to_string(), *value)).collect();
            argument(Some(&declared), &with)
        };
        let filled = with(&[("cpu", -1), ("level", 0x1_0203), ("of_another_version", 9)]);
        assert_eq!(filled, Ok(vec![3, 2, 0, 0, 255, 255, 255, 255]));
        assert!(with(&[("cpu", 3)]).unwrap_err().contains("also takes `level`"));
        assert_eq!(argument(None, &[]), Ok(Vec::new()));
        assert!(argument(None, &[("cpu".to_string(), 1)]).is_err());
    }
}
