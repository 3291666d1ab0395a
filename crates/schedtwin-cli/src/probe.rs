// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin calibrate machine --probe`: what communication between CPUs costs here, as a table and as `[distance]`.
//!
//! The machine describes itself as for `schedtwin capture`, which gives the distances of its CPUs. What was measured is
//! printed; `-m FILE -o OUT` also writes the machine file with the measured keys of `[distance]` in place of its own.

use std::fmt::Write as _;
use std::path::Path;

use schedtwin_input::Source;
use schedtwin_lab::report;
use schedtwin_live::probe::{
    self, Busy, Effort, Findings, LineValue, Load, Request, STEADY_WITHIN, Sample, Value, Values,
};
use schedtwin_machine::Machine;
use schedtwin_trace::{AtomicFile, Destination};
use schedtwin_types::{CpuId, CpuMask};
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, value};

use crate::arguments::CalibrateMachine;
use crate::calibrate_machine::mark;
use crate::capture;
use crate::failure::Failure;
use crate::output::{self, shown, tell};
use crate::run::writable;

/// Lines of a refill where the file does not say: as all machines here have it, an estimate.
const REFILL_LINES: i64 = 100;

/// Time for which the machine is watched before it is measured.
const WATCHED: std::time::Duration = std::time::Duration::from_millis(500);

/// Share of the CPUs' time that others use or have stolen, %, from which on measurements suffer.
const TOO_BUSY: f64 = 10.0;

pub fn probe(arguments: &CalibrateMachine) -> Result<(), Failure> {
    let given = arguments.machine.as_deref().map(Machine::load).transpose()?;
    let output = arguments.output.as_deref().filter(|_| !arguments.dry_run);
    if let (Some(machine), Some(output)) = (&given, output) {
        if !machine.settings.is_empty() {
            return Err(Failure::bad(format!(
                "the settings of {} are in no file: name the machine without them",
                machine.identity
            )));
        }
        writable(output)?;
    }
    let root = Path::new("/");
    let cpus = probe::allowed_cpus()
        .map_err(|error| Failure::bad(format!("failed to read this process's CPUs: {error}")))?;
    let here = describe_here()?;
    let guest = probe::guest(root);
    let (surroundings, began) = surroundings(root, &cpus, &here, guest.as_deref());
    let warnings = given.as_ref().filter(|given| given.cpus.len() != here.cpus.len()).map(|given| {
        format!(
            "warning: {} has {} CPUs, and this machine has {}: is it the file of another machine?",
            given.identity,
            given.cpus.len(),
            here.cpus.len()
        )
    });
    // How busy the machine is comes first, before anybody waits.
    output::print(&surroundings)?;
    warnings.iter().for_each(|warning| tell(warning));
    let request = Request {
        machine: &here,
        cpus: &cpus,
        effort: Effort::FULL,
        guest: guest.as_deref().filter(|_| !arguments.in_guest),
    };
    let mut progress = |step: &str| {
        if !arguments.quiet {
            tell(step);
        }
    };
    let findings = probe::measure(&request, &mut progress)
        .map_err(|error| Failure::bad(format!("failed to measure: {error}")))?;
    let during = began.and_then(|began| Some(Busy::read(root)?.since(began)));
    let values = probe::values(&findings.rows);
    let text = given.as_ref().map_or("", |given| given.source.text.as_str());
    let failed = |why| Failure::bad(format!("failed to make the table [distance]: {why}"));
    let changed = with_distance(text, &values, guest.is_some()).map_err(failed)?;
    let mut out = String::new();
    if let Some(Load { stolen, .. }) = during.filter(|during| during.stolen >= 1.0) {
        let _ = writeln!(out, "{stolen:.0} % of the CPUs' time was stolen meanwhile.");
    }
    out.push_str(&table(&findings));
    if values.is_empty() {
        out.push_str("\nNo line was measured, so there is no table [distance] to paste.\n");
        output::print(&out)?;
        return match output {
            Some(output) => {
                Err(Failure::bad(format!("{} was not written: see above", shown(output))))
            }
            None => Ok(()),
        };
    }
    let _ = writeln!(out, "\nTo paste into a machine file:\n\n{}", distance_of(&changed));
    output::print(&out)?;
    let Some(output) = output else { return Ok(()) };
    // What is written has to be a machine.
    let changed = changed.to_string();
    Machine::from_source(&Source::new(shown(output), changed.clone()), &[])?;
    let written = AtomicFile::create(output).and_then(|file| file.commit_with(changed.as_bytes()));
    written.map_err(|error| Failure::of_file("write", output, &error))?;
    tell(&format!("{}: the costs of distances are measured now", shown(output)));
    Ok(())
}

/// Describes this machine as `schedtwin capture` does.
fn describe_here() -> Result<Machine, Failure> {
    let failed = |error: std::io::Error| {
        Failure::bad(format!("failed to make a temporary directory: {error}"))
    };
    let directory = tempfile::tempdir().map_err(failed)?;
    capture::describe(directory.path())?;
    let file = directory.path().join("machine.toml");
    let text =
        std::fs::read_to_string(&file).map_err(|error| Failure::of_file("read", &file, &error))?;
    Ok(Machine::from_source(&Source::new("<this machine>", text), &[])?)
}

/// Possible disturbances (CPUs, guest, load), and the counters of busy time when the measurement begins.
fn surroundings(
    root: &Path,
    cpus: &[usize],
    here: &Machine,
    guest: Option<&str>,
) -> (String, Option<Busy>) {
    let mut out = format!("CPUs {} of {} may be used.", list(cpus), here.cpus.len());
    if let Some(at_a_time) = probe::quota(cpus.len()) {
        let _ = write!(
            out,
            " A cgroup's quota (cpu.max) leaves {at_a_time} of them at a time: threads may be stopped in between."
        );
    }
    if let Some(sign) = guest {
        let _ = write!(
            out,
            "\nThis is a virtual machine ({sign}). Its classes are what the\n\
             hypervisor says, and it may move CPUs meanwhile: probe again, and distrust lines that jump."
        );
    }
    out.push('\n');
    let before = Busy::read(root);
    std::thread::sleep(WATCHED);
    let began = Busy::read(root);
    if let (Some(before), Some(began)) = (before, began) {
        let Load { busy, stolen } = began.since(before);
        let _ = write!(out, "Before: CPUs {busy:.0} % busy, {stolen:.0} % stolen");
        if let Some(pressure) = Busy::pressure(root) {
            let _ = write!(out, ", threads waited for a CPU in {pressure:.0} % of 10 s");
        }
        out.push_str(".\n");
        if busy + stolen >= TOO_BUSY {
            out.push_str(
                "That is busy: stop other work before you keep values; what stays unsteady is marked.\n",
            );
        }
    }
    (out, began)
}

/// CPUs as sysfs lists them.
fn list(cpus: &[usize]) -> String {
    let known = cpus.iter().filter(|cpu| **cpu < schedtwin_types::MAX_CPUS);
    CpuMask::from_cpus(known.map(|cpu| CpuId(*cpu as u16))).to_string()
}

/// Everything that was measured, a line each, and what was not.
fn table(findings: &Findings) -> String {
    let mut out = format!(
        "\n{:<8} {:<9} {:<26} {:>9}   {:>9} .. {:<9} {:<9} {}\n",
        "class", "CPUs", "quantity", "median", "min", "max", "unit", "repetitions"
    );
    let mut any_unsteady = false;
    for row in &findings.rows {
        let [one, other] = row.cpus;
        let cpus = if one == other { one.to_string() } else { format!("{one}, {other}") };
        let sample = &row.sample;
        let mark = if row.is_steady { "" } else { " unsteady" };
        any_unsteady |= !row.is_steady;
        let line = format!(
            "{:<8} {cpus:<9} {:<26} {:>9}   {:>9} .. {:<9} {:<9} {}{mark}",
            row.class(),
            row.quantity.to_string(),
            number(sample.median()),
            number(sample.min()),
            number(sample.max()),
            row.quantity.unit(),
            sample.len()
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if any_unsteady {
        let _ = writeln!(
            out,
            "\nunsteady: after {} rounds the repetitions were still more than {:.0} % of the median apart.",
            Effort::FULL.rounds,
            100.0 * STEADY_WITHIN
        );
    }
    for sentence in &findings.left_out {
        out.push('\n');
        out.push_str(&report::wrap(&format!("Not measured: {sentence}."), 100, ""));
    }
    out
}

/// A number with three digits or more.
fn number(number: f64) -> String {
    match number.abs() {
        small if small < 10.0 => format!("{number:.2}"),
        middle if middle < 100.0 => format!("{middle:.1}", middle = number),
        _ => format!("{number:.0}"),
    }
}

/// The spread of a value as a comment.
fn spread(sample: &Sample, is_steady: bool) -> String {
    let mark = if is_steady { "" } else { "; unsteady" };
    format!(
        "median {} of {}, {} .. {}{mark}",
        number(sample.median()),
        sample.len(),
        number(sample.min()),
        number(sample.max())
    )
}

/// A machine file's text with measured keys of `[distance]`; of an empty text, the table alone.
fn with_distance(text: &str, values: &Values, is_guest: bool) -> Result<DocumentMut, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let is_new = !document.contains_key("distance");
    if is_new {
        let mut table = Table::new();
        table.decor_mut().set_prefix(if text.is_empty() { "" } else { "\n" });
        document.insert("distance", Item::Table(table));
    }
    let table = document["distance"].as_table_like_mut().ok_or("`distance` is no table")?;
    let has_refill = table.contains_key("refill_lines");
    if !has_refill {
        let mut lines = value(REFILL_LINES);
        comment(&mut lines, "estimate: the probe does not measure it");
        table.insert("refill_lines", lines);
    }
    let mut paths = Vec::new();
    let counts = [
        ("overlap_permille", &values.overlap_permille, "a chain of lines against line_ns"),
        ("copy_permille", &values.copy_permille, "what a copied line adds to an own one, likewise"),
        ("handover_lines", &values.handover_lines, "a ticket lock's hand-over"),
    ];
    for (key, measured, of) in counts {
        let Some(Value { written, sample, is_steady }) = measured else { continue };
        let mut item = value(*written as i64);
        comment(&mut item, &format!("{of}: {}", spread(sample, *is_steady)));
        put(table, key, item, "");
        paths.push(format!("distance.{key}"));
    }
    let mut line_ns = InlineTable::new();
    let place = if is_guest { ", in a virtual machine" } else { "" };
    let mut above = format!("# measured by schedtwin calibrate machine --probe{place}\n");
    above.push_str(
        "# ns a transfer by store and load; not by compare-and-swap, which some CPUs execute in a shared\n\
         # cache at one time for every distance, and in which a waiting CPU takes the line away\n",
    );
    let before = table.get("line_ns").and_then(Item::as_table_like);
    for distance in probe::DISTANCES {
        let key = probe::key(distance);
        if let Some(line) = values.line_ns.iter().find(|line| line.distance == distance) {
            line_ns.insert(key, (line.value.written as i64).into());
            let _ = writeln!(above, "# {}", line_comment(line));
        } else if let Some(ns) = before.and_then(|before| before.get(key)?.as_integer()) {
            // Times never fall with distance, and those that were measured are right.
            let mut measured = values.line_ns.iter();
            let farther = measured.find(|line| line.distance > distance);
            let nearer = values.line_ns.iter().rfind(|line| line.distance < distance);
            let written = |line: &LineValue| line.value.written as i64;
            let kept = ns.min(farther.map_or(ns, written)).max(nearer.map_or(0, written));
            line_ns.insert(key, kept.into());
            let _ = writeln!(above, "# {key}: not measured, was {ns}");
        }
    }
    put(table, "line_ns", value(line_ns), &above);
    paths.push("distance.line_ns".to_owned());
    if !text.is_empty() {
        mark(&mut document, &paths, if has_refill { &[] } else { &["distance.refill_lines"] });
    }
    Ok(document)
}

/// Class, spread and compare-and-swap of a line.
fn line_comment(line: &LineValue) -> String {
    let mut out = format!("{}: {}", line.key(), spread(&line.value.sample, line.value.is_steady));
    if let Some(sample) = &line.compare_and_swap {
        let _ = write!(out, "; compare-and-swap {}", number(sample.median()));
    }
    if let Some(nearer) = line.raised_to {
        let _ = write!(out, "; raised to {}: times never fall with distance", probe::key(nearer));
    }
    out
}

fn comment(item: &mut Item, text: &str) {
    let decor = item.as_value_mut().expect("a value").decor_mut();
    decor.set_suffix(format!(" # {text}"));
}

/// Puts a key in place of an old one of the name and of its comments.
fn put(table: &mut dyn TableLike, key: &str, item: Item, above: &str) {
    table.remove(key);
    table.insert(key, item);
    if !above.is_empty()
        && let Some(mut key) = table.key_mut(key)
    {
        key.leaf_decor_mut().set_prefix(above);
    }
}

/// The text of the table `[distance]` alone.
fn distance_of(document: &DocumentMut) -> String {
    let mut alone = DocumentMut::new();
    if let Some(table) = document.get("distance").and_then(Item::as_table_like) {
        let mut copy = Table::new();
        for (name, item) in table.iter() {
            copy.insert_formatted(table.key(name).expect("it has this key"), item.clone());
        }
        alone.insert("distance", Item::Table(copy));
    }
    alone.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_live::probe::{Quantity, Row};
    use schedtwin_machine::Distance;

    fn row(distance: Distance, quantity: Quantity, values: &[f64], is_steady: bool) -> Row {
        let sample = Sample::of(values.to_vec());
        Row { distance: Some(distance), cpus: [0, 1], quantity, sample, is_steady }
    }

    fn rows() -> Vec<Row> {
        vec![
            row(Distance::Cache, Quantity::Line, &[14.0, 15.0, 16.0], true),
            row(Distance::Cache, Quantity::CompareAndSwap, &[21.0], true),
            row(Distance::Cache, Quantity::Overlap, &[600.0, 700.0], true),
            row(Distance::Cache, Quantity::CopyShare, &[25.0], true),
            row(Distance::Cache, Quantity::HandoverLines, &[2.3], false),
            row(Distance::Machine, Quantity::Line, &[140.0], true),
        ]
    }

    #[test]
    fn the_table_alone_can_be_pasted() {
        let document = with_distance("", &probe::values(&rows()), true).unwrap();
        let expected = "\
[distance]
refill_lines = 100 # estimate: the probe does not measure it
overlap_permille = 650 # a chain of lines against line_ns: median 650 of 2, 600 .. 700
copy_permille = 25 # what a copied line adds to an own one, likewise: median 25.0 of 1, 25.0 .. 25.0
handover_lines = 2 # a ticket lock's hand-over: median 2.30 of 1, 2.30 .. 2.30; unsteady
# measured by schedtwin calibrate machine --probe, in a virtual machine
# ns a transfer by store and load; not by compare-and-swap, which some CPUs execute in a shared
# cache at one time for every distance, and in which a waiting CPU takes the line away
# llc: median 15.0 of 3, 14.0 .. 16.0; compare-and-swap 21.0
# machine: median 140 of 1, 140 .. 140
line_ns = { llc = 15, machine = 140 }
";
        assert_eq!(document.to_string(), expected);
        assert_eq!(distance_of(&document), expected);
    }

    #[test]
    fn a_machine_keeps_what_was_not_measured() {
        let text = "\
name = \"m\"
estimates = [\"distance\"]

# Between sockets.
[distance]
refill_lines = 80 # read somewhere
# From another machine.
line_ns = { llc = 47 }
ipi_ns = { machine = 253 }

[path_costs]
percent = 50
";
        let document =
            with_distance(text, &probe::values(&rows()[..1]), false).unwrap().to_string();
        for kept in ["# Between sockets.", "refill_lines = 80 # read", "ipi_ns = { machine = 253 }"]
        {
            assert!(document.contains(kept), "{kept}: {document}");
        }
        assert!(document.contains("\nline_ns = { llc = 15 }\n"), "{document}");
        assert!(!document.contains("From another machine"), "{document}");
        let marks = "estimates = [\n  \"distance.refill_lines\",\n  \"distance.ipi_ns\",\n]\n\
                     measured = [\n  \"distance.line_ns\",\n]\n";
        assert!(document.contains(marks), "{document}");
        assert!(with_distance("distance = 1", &probe::values(&rows()), false).is_err());
    }

    #[test]
    fn distances_that_were_not_measured_stay_between_those_that_were() {
        let kept = |before: &str| {
            let text = format!("[distance]\nrefill_lines = 1\nline_ns = {{ {before} }}\n");
            let document = with_distance(&text, &probe::values(&rows()), false).unwrap();
            document["distance"]["line_ns"].to_string().trim().to_owned()
        };
        // Measured are llc and machine.
        assert_eq!(
            kept("core = 8, llc = 47, node = 90, machine = 300"),
            "{ core = 8, llc = 15, node = 90, machine = 140 }"
        );
        assert_eq!(
            kept("cluster = 20, node = 10, package = 200"),
            "{ cluster = 15, llc = 15, node = 15, package = 140, machine = 140 }"
        );
    }

    #[test]
    fn every_built_in_machine_can_be_probed() {
        let values = probe::values(&rows());
        for (name, _) in schedtwin_machine::builtin_names() {
            let text = &Machine::load(name).unwrap().source.text;
            let document = with_distance(text, &values, false).unwrap().to_string();
            let again = Machine::from_source(&Source::new(name, document), &[]);
            let again = again.unwrap_or_else(|faults| panic!("{name}: {faults}"));
            assert!(again.measured.iter().any(|path| path == "distance.line_ns"), "{name}");
            let lines = again.distances.unwrap();
            assert!(lines.refill(Distance::Machine) >= lines.refill(Distance::Cache), "{name}");
            let coherence = lines.coherence.unwrap();
            assert_eq!(
                (coherence.overlap_permille, coherence.copy_permille, coherence.handover_lines),
                (650, 25, 2),
                "{name}"
            );
        }
    }

    #[test]
    fn rows_that_stay_unsteady_and_what_is_left_out_are_told() {
        let findings = Findings { rows: rows(), left_out: vec!["wakeups: no".to_owned()] };
        let text = table(&findings);
        assert!(text.contains("2.30 .. 2.30      lines     1 unsteady\n"), "{text}");
        assert!(text.contains("more than 30 % of the median apart"), "{text}");
        assert!(text.ends_with("Not measured: wakeups: no.\n"), "{text}");
        assert!(
            !table(&Findings { rows: rows()[..2].to_vec(), left_out: vec![] }).contains("unsteady")
        );
    }
}
