// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduling domains of a machine under a kernel, as text for a terminal of 100 columns.
//!
//! Machines have many domains and few kinds of them. Domains that differ only in which CPUs they span are told once,
//! with how many more there are.

use std::fmt::Write as _;

use schedtwin_input::Diagnostics;
use schedtwin_kernel::device_tree::{DomainRow, DomainTable, GroupRow, PointerRow, flag_names};
use schedtwin_machine::Machine;
use schedtwin_types::printable;

use crate::firmware;
use crate::kernel_file::KernelFile;

/// A line has this many columns at most, if its words allow.
const WIDTH: usize = 100;

/// Groups are named one by one if that takes so many columns at most; of others the first two are.
const NAMED_GROUPS: usize = 60;

/// The domains that a kernel builds for a machine.
pub fn domains(machine_spec: &str, kernel_spec: &str) -> Result<DomainTable, Diagnostics> {
    let (machine, kernel) = both(machine_spec, kernel_spec)?;
    Ok(firmware::device_tree(&machine, 0).domains(&kernel.config))
}

/// Text about the domains that a kernel builds for a machine.
pub fn describe_domains(machine_spec: &str, kernel_spec: &str) -> Result<String, Diagnostics> {
    let (machine, kernel) = both(machine_spec, kernel_spec)?;
    let table = firmware::device_tree(&machine, 0).domains(&kernel.config);
    let [machine, description, kernel] =
        [&machine.identity, &machine.description, &kernel.identity].map(|it| printable::line(it));
    Ok(format!(
        "{machine}: {description}\n\nscheduling domains of {kernel}, the smallest first\n{}",
        text(&table)
    ))
}

/// Both files, or the faults of both. The machine's domains can be built.
fn both(machine_spec: &str, kernel_spec: &str) -> Result<(Machine, KernelFile), Diagnostics> {
    let mut faults = Diagnostics::new();
    let machine = faults.absorb(Machine::load(machine_spec));
    let kernel = faults.absorb(KernelFile::load(kernel_spec));
    if let Some(machine) = &machine {
        faults.absorb(firmware::refuse_what_waits(machine));
    }
    faults.into_result(())?;
    Ok((machine.expect("no fault"), kernel.expect("no fault")))
}

/// The levels, then the CPUs' pointers.
fn text(table: &DomainTable) -> String {
    let mut out = String::new();
    if table.levels.is_empty() {
        out.push_str("  none: there is one CPU\n");
    }
    for level in &table.levels {
        for (kind, (domain, more)) in folded(&level.domains, alike).into_iter().enumerate() {
            let name = if kind == 0 { level.name } else { "" };
            describe_kind(name, domain, more, &mut out);
        }
    }
    out.push_str("\npointers of each CPU to domains\n");
    for (row, more) in folded(&table.pointers, alike_pointers) {
        describe_pointers(row, more, &mut out);
    }
    out
}

/// The first of each kind of rows, and how many more of it there are.
fn folded<T>(rows: &[T], alike: impl Fn(&T, &T) -> bool) -> Vec<(&T, usize)> {
    let mut kinds: Vec<(&T, usize)> = Vec::new();
    for row in rows {
        match kinds.iter_mut().find(|(first, _)| alike(first, row)) {
            Some((_, more)) => *more += 1,
            None => kinds.push((row, 0)),
        }
    }
    kinds
}

fn alike(a: &DomainRow, b: &DomainRow) -> bool {
    let numbers = |d: &DomainRow| {
        let intervals = (d.min_interval_ms, d.max_interval_ms, d.busy_factor);
        (d.flags, d.imbalance_pct, d.cache_nice_tries, intervals, d.imb_numa_nr, d.span.weight())
    };
    let groups = |d: &DomainRow| {
        let mut shapes: Vec<_> = d.groups.iter().map(shape).collect();
        shapes.sort_unstable();
        shapes
    };
    numbers(a) == numbers(b) && groups(a) == groups(b)
}

/// CPUs, capacity, flags, cores and CPUs that balance of a group.
type Shape = (u32, u64, u32, u32, u32);

/// Returns the shape of a group without its owner.
fn shape(group: &GroupRow) -> Shape {
    (group.span.weight(), group.capacity, group.flags, group.cores, group.balance_mask.weight())
}

fn alike_pointers(a: &PointerRow, b: &PointerRow) -> bool {
    let shape = |row: &PointerRow| {
        let others = (row.sd_asym_cpucapacity, row.sd_asym_packing, row.sd_numa);
        (row.sd_llc, row.sd_llc_size, others, row.cpus.weight())
    };
    shape(a) == shape(b)
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(", and {more} more like it") }
}

fn describe_kind(name: &str, domain: &DomainRow, more: usize, out: &mut String) {
    // Overlapping domains belong to fewer CPUs than they span.
    let whose =
        if domain.cpus == domain.span { String::new() } else { format!(" of CPU {}", domain.cpus) };
    let count = domain.span.weight();
    let _ = writeln!(out, "  {name:<5} CPU {}{whose}{}: {count} CPUs", domain.span, and_more(more));
    describe_groups(&domain.groups, out);
    let mut words = vec![format!("flags {:#x}", domain.flags)];
    words.extend(flag_names(domain.flags).iter().map(ToString::to_string));
    wrapped(&words, " ", out);
    let numbers = [
        format!("imbalance_pct {}", domain.imbalance_pct),
        format!("min_interval {} ms", domain.min_interval_ms),
        format!("max_interval {} ms", domain.max_interval_ms),
        format!("cache_nice_tries {}", domain.cache_nice_tries),
        format!("imb_numa_nr {}", domain.imb_numa_nr),
    ];
    wrapped(&numbers, "  ", out);
}

/// Groups of one shape share a line.
fn describe_groups(groups: &[GroupRow], out: &mut String) {
    let mut shapes: Vec<(Shape, Vec<&GroupRow>)> = Vec::new();
    for group in groups {
        match shapes.iter_mut().find(|(known, _)| *known == shape(group)) {
            Some((_, members)) => members.push(group),
            None => shapes.push((shape(group), vec![group])),
        }
    }
    for ((weight, capacity, flags, cores, balancing), members) in shapes {
        let noun = if members.len() == 1 { "group" } else { "groups" };
        let named = |groups: &[&GroupRow]| {
            let spans: Vec<String> = groups.iter().map(|it| format!("{{{}}}", it.span)).collect();
            spans.join(" ")
        };
        let all = named(&members);
        let spans = if all.len() <= NAMED_GROUPS { all } else { named(&members[..2]) + " ..." };
        let mut words = vec![format!("{} {noun} {spans}:", members.len())];
        words.push(format!("capacity {capacity}"));
        if cores != weight {
            words.push(format!("{cores} core{}", if cores == 1 { "" } else { "s" }));
        }
        words.push(format!("flags {flags:#x}"));
        // Of overlapping groups only some CPUs have the group in their own domain.
        if balancing != weight {
            words.push(format!("balanced by CPU {}", members[0].balance_mask));
        }
        wrapped(&words, "  ", out);
    }
}

fn describe_pointers(row: &PointerRow, more: usize, out: &mut String) {
    let _ = writeln!(out, "  CPU {}{}", row.cpus, and_more(more));
    let name = |sd: Option<&'static str>| sd.unwrap_or("none");
    let words = [
        format!("sd_llc {} (id {})", name(row.sd_llc), row.sd_llc_id),
        format!("sd_llc_size {}", row.sd_llc_size),
        format!("sd_share_id {}", row.sd_share_id),
        format!("sd_asym_cpucapacity {}", name(row.sd_asym_cpucapacity)),
        format!("sd_asym_packing {}", name(row.sd_asym_packing)),
        format!("sd_numa {}", name(row.sd_numa)),
    ];
    wrapped(&words, "  ", out);
}

/// Words as indented lines.
fn wrapped(words: &[String], between: &str, out: &mut String) {
    const INDENT: &str = "        ";
    let mut line = String::new();
    for word in words {
        if !line.is_empty() && INDENT.len() + line.len() + between.len() + word.len() > WIDTH {
            let _ = writeln!(out, "{INDENT}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push_str(between);
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{INDENT}{line}");
}

#[cfg(test)]
mod tests {
    use super::describe_domains;

    /// Two sockets of 128 threads, 16 caches: equal domains are told once, flags by name, and lines fit a terminal.
    #[test]
    fn equal_domains_are_told_once() {
        let text = describe_domains("epyc-milan-2x64", "linux-6.6").unwrap();
        for line in [
            "  SMT   CPU 0,128, and 127 more like it: 2 CPUs",
            "        8 groups {0,128} {1,129} ...:  capacity 2048  1 core  flags 0x1297",
            "  DIE   CPU 0-63,128-191, and 1 more like it: 128 CPUs",
            "        flags 0x6417 BALANCE_NEWIDLE BALANCE_EXEC BALANCE_FORK WAKE_AFFINE SERIALIZE OVERLAP NUMA",
            "  CPU 0-7,128-135, and 15 more like it",
            "        sd_llc MC (id 0)  sd_llc_size 16  sd_share_id 0  sd_asym_cpucapacity none",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
        assert!(text.lines().all(|line| line.len() <= super::WIDTH), "{text}");
        let newer = describe_domains("epyc-milan-2x64", "linux-6.12").unwrap();
        assert!(newer.contains("\n  PKG   CPU 0-63,128-191, and"), "{newer}");
    }

    /// Where levels overlap a domain belongs to fewer CPUs than it spans, and some of a group's CPUs balance for it.
    #[test]
    fn overlapping_domains_say_whose_they_are() {
        let ring = "../../conformance/domains/eight.toml:topology=ring";
        let text = describe_domains(ring, "linux-6.12").unwrap();
        assert!(text.contains("CPU 0-3,6-7 of CPU 0-1, and 3 more like it: 6 CPUs"), "{text}");
        assert!(text.contains("flags 0x6417  balanced by CPU 0-1\n"), "{text}");
    }

    #[test]
    fn faults_of_both_files_are_told() {
        let faults = describe_domains("pixl6", "linux-6.21").unwrap_err().to_string();
        assert!(faults.contains("pixl6") && faults.contains("linux-6.21"), "{faults}");
    }
}
