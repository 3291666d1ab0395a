// SPDX-License-Identifier: GPL-2.0-or-later
//! Scheduling domains beside those that Linux printed on machines that QEMU made (`conformance/domains`): names of
//! levels, spans, groups and who balances for them, flags, intervals.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schedtwin_engine::Scenario;
use schedtwin_engine::domains::domains;
use schedtwin_engine::flag_names;
use schedtwin_types::CpuMask;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/domains")
}

/// What was printed on one machine.
struct Printed {
    name: String,
    machine: String,
    kernel: String,
    /// CPU, number of the domain, and the line in parts.
    domains: Vec<(usize, Vec<String>)>,
}

fn printed(path: &Path) -> Printed {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = || text.lines().filter(|line| !line.starts_with('#'));
    let head = |key: &str| {
        let found = lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("{}: no {key}", path.display())).to_string()
    };
    let (file, topology) = {
        let machine = head("machine");
        let (file, topology) = machine.split_once(':').expect("a file and its topology");
        (file.to_string(), topology.to_string())
    };
    head("release");
    let of_cpu = |line: &str| {
        let (cpu, rest) = line.split_once(' ')?;
        Some((cpu.parse().ok()?, rest.split(" | ").map(str::to_string).collect()))
    };
    Printed {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        machine: format!("{}:topology={topology}", folder().join(file + ".toml").display()),
        kernel: head("kernel"),
        domains: lines().filter_map(of_cpu).collect(),
    }
}

fn all_printed() -> Vec<Printed> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    paths.sort();
    paths.iter().map(|path| printed(path)).collect()
}

/// The twin's domains in the words of such a file, by CPU. Groups are sorted: the ring's order is not told.
fn of_twin(machine: &str, kernel: &str) -> BTreeMap<usize, Vec<Vec<String>>> {
    let table = domains(machine, kernel).unwrap();
    let mut lines: BTreeMap<usize, Vec<Vec<String>>> = BTreeMap::new();
    let words = |flags: u32| match flags {
        0 => "none".to_string(),
        flags => flag_names(flags).join(" "),
    };
    for level in &table.levels {
        for row in &level.domains {
            for cpu in row.cpus.iter() {
                let group = |span: &CpuMask, balance: &CpuMask| match span == balance {
                    true => span.to_string(),
                    false => format!("{span}/{balance}"),
                };
                let groups: Vec<String> =
                    row.groups.iter().map(|it| group(&it.span, &it.balance_mask)).collect();
                let own = row.groups.iter().find(|it| it.balance_mask.contains(cpu));
                lines.entry(cpu.index()).or_default().push(vec![
                    format!("{} {}", level.name, row.span),
                    sorted(&groups.join(" ")),
                    format!(
                        "imbalance_pct {} cache_nice_tries {} busy_factor {} min_interval {} max_interval {}",
                        row.imbalance_pct,
                        row.cache_nice_tries,
                        row.busy_factor,
                        row.min_interval_ms,
                        row.max_interval_ms
                    ),
                    format!("flags {}", words(row.flags)),
                    format!("groups_flags {}", words(own.expect("a CPU has a group").flags)),
                ]);
            }
        }
    }
    lines
}

fn sorted(groups: &str) -> String {
    let mut words: Vec<&str> = groups.split(' ').collect();
    words.sort_unstable();
    format!("groups {}", words.join(" "))
}

/// Every difference, a line each.
fn differences(printed: &Printed, machine: &str) -> Vec<String> {
    let mut twin = of_twin(machine, &printed.kernel);
    let mut found = Vec::new();
    let mut linux: BTreeMap<usize, Vec<Vec<String>>> = BTreeMap::new();
    for (cpu, parts) in &printed.domains {
        let mut parts = parts.clone();
        parts[1] = sorted(parts[1].strip_prefix("groups ").expect("the second part is groups"));
        linux.entry(*cpu).or_default().push(parts);
    }
    for (cpu, stack) in linux {
        let mine = twin.remove(&cpu).unwrap_or_default();
        if mine.len() != stack.len() {
            let names = |stack: &[Vec<String>]| {
                stack.iter().map(|parts| parts[0].clone()).collect::<Vec<_>>().join(", ")
            };
            found.push(format!(
                "CPU {cpu}: Linux has {}; the twin {}",
                names(&stack),
                names(&mine)
            ));
            continue;
        }
        for (a, b) in stack.iter().zip(&mine) {
            for (a, b) in a.iter().zip(b) {
                // Before 6.6 debugfs does not tell a group's flags.
                if a != b && a != "groups_flags untold" {
                    found.push(format!("CPU {cpu}: Linux has {a}; the twin {b}"));
                }
            }
        }
    }
    found.extend(twin.keys().map(|cpu| format!("CPU {cpu}: Linux has no domain")));
    found
}

#[test]
fn domains_are_those_that_linux_printed() {
    let all = all_printed();
    assert!(all.len() >= 6, "{} machines", all.len());
    let mut wrong = Vec::new();
    for one in &all {
        assert!(one.domains.len() >= 8, "{}: {} domains", one.name, one.domains.len());
        let found = differences(one, &one.machine);
        wrong.extend(found.into_iter().map(|line| format!("{}: {line}", one.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What was printed on one machine differs from the domains of another, so the comparison sees something.
#[test]
fn another_machine_has_other_domains() {
    let all = all_printed();
    let named = |name: &str| all.iter().find(|one| one.name == name).unwrap();
    for (a, b) in [("x86-smt", "x86-flat"), ("x86-far", "x86-ring"), ("x86-flat", "x86-2-sockets")]
    {
        assert!(!differences(named(a), &named(b).machine).is_empty(), "{a} on {b}");
    }
}

/// A machine that has just booted searches no cache at first, and the twin says so where that counts.
#[test]
fn caches_are_not_searched_before_their_first_balance() {
    let of = |machine: &str, kernel: &str| {
        Scenario::new(machine, kernel, "periodic", None).unwrap().unscanned_at_first()
    };
    assert_eq!(of("xeon-8260-2s", "linux-6.12"), None);
    assert_eq!(of("xeon-8260-2s", "linux-6.12:start=booted"), Some(24));
    assert_eq!(of("xeon-8260-2s", "linux-7.3:start=booted"), None, "it begins with 512 CPUs");
    assert_eq!(of("xeon-8260-2s", "linux-6.12:start=booted,features.sis_util=false"), None);
    assert_eq!(of("uniform8", "linux-6.12:start=booted"), Some(8));
}
