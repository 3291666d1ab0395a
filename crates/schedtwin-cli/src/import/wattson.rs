// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin import wattson`: measured power curves into a machine file.
//!
//! Perfetto's Wattson has tables of what CPUs draw by operating point: `static` of the whole policy, `active` and the
//! idle states of a CPU, mW. Exported as CSV they have these columns, in any order:
//!
//! ```text
//! device,policy,freq_khz,static,active,idle0,idle1                         power by the own frequency
//! device,policy,freq_khz,dep_policy,dep_freq,static,active,idle0,idle1     by another policy's, too
//! ```
//!
//! Of a machine's domain whose lowest CPU is a table's policy, each operating point of the same frequency gets
//! `active_uw`, `wfi_uw` (idle0) and `static_uw`, and a comment that names the source. The kernel's own estimate, `em_uw`, stays.
//!
//! Differences: where power depends on another policy's frequency, too, the curve of one vote is taken: of the vote with the
//! least static power at the lowest own frequency. Other curves need `[[dependent]]`. L3 and interconnect are left out.

use crate::arguments::ImportWattson;
use crate::failure::Failure;
use crate::output::{shown, tell};
use schedtwin_input::Source;
use schedtwin_machine::Machine;
use schedtwin_trace::{AtomicFile, Destination};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, TableLike, Value, value};

/// One row of a table, µW.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    active: u64,
    wfi: u64,
    fixed: u64,
}

/// Rows by policy and frequency.
type Curves = BTreeMap<(u16, u64), Point>;

/// The policy and the frequency that a row depends on, if it does.
type Vote = Option<(u16, u64)>;

/// All rows of a device.
type Rows = Vec<(u16, Vote, u64, Point)>;

pub fn wattson(arguments: &ImportWattson) -> Result<(), Failure> {
    let (curves, device, depend) = read(&arguments.directory, arguments.device.as_deref())?;
    let machine = Machine::load(&arguments.machine)?;
    let target = match &arguments.output {
        Some(path) => path.clone(),
        None if machine.source.name.starts_with("<built in>") => {
            return Err(Failure::bad(format!(
                "{} is built in: say with -o FILE.toml where the machine goes",
                arguments.machine
            )));
        }
        None => PathBuf::from(&arguments.machine),
    };
    let policies: BTreeMap<String, u16> = machine
        .domains
        .iter()
        .filter_map(|domain| Some((domain.name.clone(), domain.cpus.iter().map(|c| c.0).min()?)))
        .collect();
    let (text, taken, missing) = merged(&machine.source.text, &curves, &policies, &device)
        .map_err(|why| Failure::bad(format!("failed to change {}: {why}", arguments.machine)))?;
    if taken == 0 {
        return Err(Failure::bad(format!(
            "no operating point of {} is in the curves of {device}",
            arguments.machine
        )));
    }
    // What is written has to be a machine.
    Machine::from_source(&Source::new(shown(&target), text.clone()), &[])?;
    let written = AtomicFile::create(&target).and_then(|file| file.commit_with(text.as_bytes()));
    written.map_err(|error| Failure::of_file("write", &target, &error))?;
    tell(&format!(
        "{}: {taken} operating points have the power of Wattson's {device}",
        shown(&target)
    ));
    if missing > 0 {
        tell(&format!("{missing} operating points are not in the curves and stay as they were"));
    }
    for policy in depend {
        tell(&format!(
            "policy {policy} depends on another policy's frequency: the curve of its lowest vote is taken"
        ));
    }
    Ok(())
}

/// Reads the tables of a device: its rows, its name, and the policies that depend on others.
fn read(folder: &Path, wanted: Option<&str>) -> Result<(Curves, String, BTreeSet<u16>), Failure> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| Failure::of_file("read", folder, &error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    files.sort();
    let mut by_device: BTreeMap<String, Rows> = BTreeMap::new();
    for path in files {
        table(&path, &mut by_device)?;
    }
    let names: Vec<String> = by_device.keys().cloned().collect();
    let device = match (wanted, &names[..]) {
        (Some(wanted), _) if names.iter().any(|name| name == wanted) => wanted.to_owned(),
        (None, [one]) => one.clone(),
        (_, []) => {
            return Err(Failure::bad(format!(
                "{} has no CSV file with the columns device, policy, freq_khz, static, active, idle0",
                shown(folder)
            )));
        }
        _ => {
            return Err(Failure::bad(format!(
                "say with --device which one is meant: {}",
                names.join(", ")
            )));
        }
    };
    let (curves, depend) = of_one_vote(&by_device[&device]);
    Ok((curves, device, depend))
}

/// The curve of each policy, of one vote where it depends on votes; and the policies that do.
fn of_one_vote(rows: &Rows) -> (Curves, BTreeSet<u16>) {
    let (mut curves, mut depend) = (Curves::new(), BTreeSet::new());
    let policies: BTreeSet<u16> = rows.iter().map(|(policy, ..)| *policy).collect();
    for policy in policies {
        let of_policy = || rows.iter().filter(|(of, ..)| *of == policy);
        let lowest = of_policy().map(|(_, _, khz, _)| *khz).min();
        let first = of_policy().filter(|(_, _, khz, _)| Some(*khz) == lowest);
        let vote = first.min_by_key(|(_, _, _, point)| point.fixed).and_then(|(_, vote, ..)| *vote);
        if vote.is_some() {
            depend.insert(policy);
        }
        for (_, _, khz, point) in of_policy().filter(|(_, of, ..)| *of == vote) {
            curves.insert((policy, *khz), *point);
        }
    }
    (curves, depend)
}

/// Adds a file's rows, if it has the columns of a CPU's curves.
fn table(path: &Path, by_device: &mut BTreeMap<String, Rows>) -> Result<(), Failure> {
    let failed = |error: csv::Error| Failure::bad(format!("{}: {error}", shown(path)));
    let mut reader = csv::Reader::from_path(path).map_err(failed)?;
    let headers = reader.headers().map_err(failed)?.clone();
    let column = |name: &str| headers.iter().position(|header| header.trim() == name);
    let needed = ["device", "policy", "freq_khz", "static", "active", "idle0"].map(column);
    let [Some(device), Some(policy), Some(khz), Some(fixed), Some(active), Some(idle)] = needed
    else {
        return Ok(());
    };
    let vote = column("dep_policy")
        .or(column("other_policy"))
        .zip(column("dep_freq").or(column("other_freq_khz")));
    for (at, record) in reader.records().enumerate() {
        let record = record.map_err(failed)?;
        let cell = |at: usize| record.get(at).unwrap_or_default().trim();
        let uw = |at: usize| {
            let mw: f64 = cell(at).parse().ok()?;
            (0.0..1e6).contains(&mw).then(|| (mw * 1000.0).round() as u64)
        };
        let read = || {
            let vote = match vote {
                Some((of, at)) => Some((cell(of).parse().ok()?, cell(at).parse().ok()?)),
                None => None,
            };
            let point = Point { active: uw(active)?, wfi: uw(idle)?, fixed: uw(fixed)? };
            Some((cell(policy).parse().ok()?, vote, cell(khz).parse().ok()?, point))
        };
        let row = read().ok_or_else(|| {
            Failure::bad(format!("{}, row {}: numbers are expected", shown(path), at + 2))
        })?;
        by_device.entry(cell(device).to_owned()).or_default().push(row);
    }
    Ok(())
}

/// The text with the power of the curves; how many operating points got it, and how many are in no curve.
fn merged(
    text: &str,
    curves: &Curves,
    policies: &BTreeMap<String, u16>,
    device: &str,
) -> Result<(String, usize, usize), String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let (mut taken, mut missing) = (0, 0);
    let domains = document.get_mut("domain").and_then(Item::as_table_like_mut);
    for (name, domain) in domains.ok_or("it has no table `domain`")?.iter_mut() {
        let Some(policy) = policies.get(name.get()) else { continue };
        let Some(points) = domain.get_mut("opp") else { continue };
        let mut apply = |point: &mut dyn TableLike| -> bool {
            let khz = point.get("khz").and_then(Item::as_integer).unwrap_or(0) as u64;
            let Some(curve) = curves.get(&(*policy, khz)) else {
                missing += 1;
                return false;
            };
            let fixed = Some(curve.fixed).filter(|uw| *uw > 0 || point.contains_key("static_uw"));
            let set = [
                ("active_uw", Some(curve.active)),
                ("wfi_uw", Some(curve.wfi)),
                ("static_uw", fixed),
            ];
            for (key, uw) in set {
                if let Some(uw) = uw {
                    point.insert(key, value(uw as i64));
                }
            }
            taken += 1;
            true
        };
        if let Some(array) = points.as_array_mut() {
            let mut first = true;
            for point in array.iter_mut() {
                let before =
                    point.decor().prefix().and_then(|text| text.as_str()).unwrap_or("\n  ");
                let line = format!(
                    "{}\n  # active_uw, wfi_uw, static_uw: measured, Wattson's {device}, policy {policy}\n  ",
                    before.trim_end_matches(['\n', ' '])
                );
                let Some(table) = point.as_inline_table_mut() else { continue };
                if apply(table) {
                    table.fmt();
                    if std::mem::take(&mut first) {
                        point.decor_mut().set_prefix(line);
                    }
                }
            }
        } else if let Some(tables) = points.as_array_of_tables_mut() {
            for table in tables.iter_mut() {
                apply(table);
            }
        }
    }
    Ok((without_estimates(document), taken, missing))
}

/// The document, whose `estimates` name powers of operating points no longer.
fn without_estimates(mut document: DocumentMut) -> String {
    let is_power = |path: &Value| {
        path.as_str().is_some_and(|path| {
            ["active_uw", "wfi_uw", "static_uw"].iter().any(|key| path.ends_with(key))
        })
    };
    if let Some(list) = document.get_mut("estimates").and_then(Item::as_array_mut) {
        list.retain(|path| !is_power(path));
    }
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "a.csv",
            "device,policy,freq_khz,static,active,idle0,idle1\nT,4,400000,0,28.51,5.24,0\n",
        );
        write(
            "b.csv",
            "device,policy,freq_khz,dep_policy,dep_freq,static,active,idle0,idle1\n\
             T,0,300000,4,400000,3.73,21.84,0.47,0\nT,0,300000,6,500000,2.61,22.89,0.76,0\n",
        );
        write("l3.csv", "device,freq_khz,l3_hit\nT,1,2\n");
        folder
    }

    #[test]
    fn points_of_the_same_frequency_get_the_measured_power() {
        let folder = folder();
        let (curves, device, depend) = read(folder.path(), None).unwrap();
        assert_eq!((device.as_str(), depend), ("T", BTreeSet::from([0])));
        let text = "\
[domain.little]
opp = [
  { khz = 300_000, em_uw = 6_352, active_uw = 1, wfi_uw = 1 }, # kept
  { khz = 574_000, em_uw = 15_049, active_uw = 2, wfi_uw = 2 },
]
";
        let policies = BTreeMap::from([("little".to_owned(), 0)]);
        let (merged, taken, missing) = merged(text, &curves, &policies, &device).unwrap();
        assert_eq!((taken, missing), (1, 1));
        let expected = "{ khz = 300_000, em_uw = 6_352, active_uw = 22890, wfi_uw = 760, static_uw = 2610 }, # kept";
        assert!(merged.contains(expected), "{merged}");
        assert!(merged.contains("Wattson's T, policy 0"), "{merged}");
        assert!(merged.contains("active_uw = 2,"), "{merged}");
    }

    #[test]
    fn a_folder_without_curves_and_another_device_are_told() {
        let empty = tempfile::tempdir().unwrap();
        let said = |folder: &Path, device| match read(folder, device) {
            Err(Failure::Bad(message)) => message,
            other => panic!("{other:?}"),
        };
        assert!(said(empty.path(), None).contains("no CSV file with the columns"));
        assert!(said(folder().path(), Some("x")).contains("which one is meant: T"));
    }
}
