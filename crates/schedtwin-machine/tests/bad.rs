// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that are no machines, and what is said about them.
//!
//! Beside each `bad/NAME.toml` stands `bad/NAME.txt`, the faults. After a deliberate change of a
//! message: `BLESS=1 cargo test -p schedtwin-machine --test bad` writes them anew, and the
//! difference is to be read before it is committed.

use std::path::{Path, PathBuf};

use schedtwin_input::Source;
use schedtwin_machine::Machine;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

#[test]
fn bad_files_are_refused_with_all_their_faults() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(tests().join("bad"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 10);
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let faults = match Machine::from_source(&Source::new(name, text), &[]) {
            Ok(_) => panic!("{name} was taken for a machine"),
            Err(faults) => faults,
        };
        assert!(!faults.render(false).is_empty());
        let told = format!("{faults}\n");
        let expected_path = path.with_extension("txt");
        if bless {
            std::fs::write(&expected_path, &told).unwrap();
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        assert!(told == expected, "{name}: expected\n{expected}\nbut it says\n{told}");
    }
}

#[test]
fn the_machine_they_were_made_from_is_good() {
    let machine = Machine::load(tests().join("good.toml").to_str().unwrap());
    let machine = machine.unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(machine.couplings.len(), 1);
    assert!(machine.warnings.is_empty());
}

#[test]
fn a_clock_for_each_cpu() {
    let text = std::fs::read_to_string(tests().join("good.toml")).unwrap();
    let text = text.replacen("[domain.little]\n", "[domain.little]\nper_cpu = true\n", 1);
    let faults = Machine::from_source(&Source::new("x", text.clone()), &[]).unwrap_err();
    assert_eq!(faults.to_string(), "x:52:6: domains that have one CPU each cannot be coupled");
    let without = text.split("[[coupled]]").next().unwrap().to_string()
        + "[interrupts]"
        + text.split("[interrupts]").nth(1).unwrap();
    let machine = Machine::from_source(&Source::new("x", without), &[]).unwrap();
    let names: Vec<&str> = machine.domains.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["little0", "little1", "big"]);
    assert!(machine.cpus.iter().map(|c| c.domain.0).eq([0, 1, 2, 2]));
}

#[test]
fn huge_files_are_refused_soon_and_with_few_faults() {
    let good = std::fs::read_to_string(tests().join("good.toml")).unwrap();
    let many = |n: usize, line: fn(usize) -> String| (0..n).map(line).collect::<String>();
    let zone: fn(usize) -> String = |i| format!("[thermal_zone.z{i}]\nnode = \"x\"\n");
    let cases = [
        ("garbage", "=\n".repeat(400_000)),
        ("keys", many(80_000, |i| format!("a{i} = 1\n")) + &good),
        ("idle states", "core.a.idle = [".to_string() + &"{name=\"x\"},\n".repeat(80_000) + "]\n"),
        ("groups", many(20_000, |i| format!("[cpu.a{i}]\ncpus=\"0\"\ncore=\"x\"\ncapacity=1\n"))),
        (
            "domains",
            many(15_000, |i| format!("[domain.a{i}]\nper_cpu=true\ncpus=\"0-255\"\nopp=[]\n")),
        ),
        ("parts", "topologies.mc.llc = [".to_string() + &"\"0\",".repeat(200_000) + "]\n"),
        ("words", "topologies.mc.llc = [".to_string() + &"\"x\",".repeat(200_000) + "]\n"),
        ("zones", good.replacen("name =", "heat = true\nname =", 1) + &many(20_000, zone)),
        ("topologies", many(15_000, |i| format!("[topologies.a{i}]\npackage=[\"0\",\"0\"]\n"))),
        (
            "options",
            good.replacen("name =", "colour = \"a0\"\nname =", 1)
                + &many(15_000, |i| format!("[choices.colour.a{i}]\n")),
        ),
        ("too large", "#".repeat(2_000_000)),
    ];
    for (what, text) in cases {
        let faults = Machine::from_source(&Source::new("x", text), &[]).unwrap_err();
        assert!((1..500).contains(&faults.0.len()), "{what}: {} faults", faults.0.len());
        assert!(faults.render(false).len() < 20_000, "{what}");
    }
}

/// Changes a text somewhere: cuts, doubles, swaps words for others of the same file or for trouble.
fn mutate(text: &str, edits: &[(usize, usize, u8)]) -> String {
    const TROUBLE: [&str; 14] = [
        "",
        "0",
        "-1",
        "18446744073709551616",
        "9223372036854775807",
        "1e309",
        "nan",
        "\"\"",
        "[]",
        "{}",
        "\"0-255\"",
        "[[",
        "= =",
        "\u{202e}ä\0",
    ];
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for &(at, other, how) in edits {
        let count = lines.len().max(1);
        let (at, other) = (at % count, other % count);
        match how % 6 {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[other].clone()),
            2 => lines.swap(at, other),
            3 => {
                // One value of the line becomes trouble.
                let line = lines[at].clone();
                if let Some(equals) = line.find('=') {
                    let end = line[equals..].find(',').map_or(line.len(), |p| equals + p);
                    lines[at] =
                        format!("{}= {}{}", &line[..equals], TROUBLE[other % 14], &line[end..]);
                }
            }
            4 => {
                let keep: String = lines[at].chars().take(other).collect();
                lines[at] = keep;
            }
            _ => {
                let donor = lines[other].clone();
                lines[at].push_str(&donor);
            }
        }
        if lines.is_empty() {
            lines.push(String::new());
        }
    }
    lines.join("\n")
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 400, ..Default::default() })]
    #[test]
    fn a_mutated_file_is_a_machine_or_a_fault_but_never_a_panic(
        edits in proptest::collection::vec((0usize..200, 0usize..200, 0u8..6), 1..6),
        which in 0usize..4,
    ) {
        let text = match which {
            0 => std::fs::read_to_string(tests().join("good.toml")).unwrap(),
            1 => schedtwin_machine::builtin_source("pixel6").unwrap().text.clone(),
            2 => schedtwin_machine::builtin_source("rig8").unwrap().text.clone(),
            _ => schedtwin_machine::builtin_source("uniform8").unwrap().text.clone(),
        };
        let text = mutate(&text, &edits);
        match Machine::from_source(&Source::new("mutated", text), &[]) {
            Ok(machine) => {
                // Whoever holds a machine may rely on it.
                assert!(machine.cpus.iter().any(|c| c.capacity == 1024));
                assert_eq!(machine.domains.iter().map(|d| d.cpus.len()).sum::<usize>(), machine.nr_cpus());
                let lowest: Vec<_> = machine.domains.iter().map(|d| d.min_khz()).collect();
                let settled = machine.with_floors(&lowest);
                assert!(settled.iter().zip(&machine.domains).all(|(khz, d)| d.opp_of(*khz).is_some()));
                assert!(!machine.describe().is_empty());
            }
            Err(faults) => {
                assert!(!faults.is_empty());
                assert!(!faults.render(false).is_empty());
            }
        }
    }

    #[test]
    fn any_setting_is_taken_or_refused(key in "[a-z_.\\[\\]0-9]{0,30}", value in "\\PC{0,12}") {
        let _ = Machine::load(&format!("pixel6:{key}={value}"));
        let _ = Machine::load(&format!("pixel6:cpu.big.capacity={value}"));
        let _ = Machine::load(&format!("pixel6:cpu.mid.cpus={value}"));
        let _ = Machine::load(&format!("pixel6:topologies.mc.llc=[\"{value}\"]"));
    }
}
