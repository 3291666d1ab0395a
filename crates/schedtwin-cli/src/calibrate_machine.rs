// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin calibrate machine`: costs that a recording of a machine shows go into its file; `--probe` is in `probe.rs`.
//!
//! The file keeps its comments and its order. Each value that is written has its spread beside it, and its path stands
//! in the list `measured` and no longer among the `estimates`. What the recording does not show stays as it was.

use std::path::{Path, PathBuf};

use schedtwin_engine::recording::{MeasuredCosts, MeasuredKey, Spread, measure_costs};
use schedtwin_input::Source;
use schedtwin_machine::Machine;
use schedtwin_trace::{AtomicFile, Destination};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value, value};

use crate::arguments::CalibrateMachine;
use crate::failure::Failure;
use crate::output::{self, shown, tell};
use crate::probe;
use crate::run::writable;

pub fn calibrate(arguments: &CalibrateMachine) -> Result<(), Failure> {
    let (Some(recording), Some(name)) = (&arguments.recording, &arguments.machine) else {
        return probe::probe(arguments);
    };
    let machine = Machine::load(name)?;
    let target = target(arguments, name, &machine)?;
    if let Some(target) = &target {
        writable(target)?;
    }
    let measured = measure_costs(recording, &machine, arguments.force)?;
    output::print_fit(&table(&measured))?;
    if measured.keys.is_empty() {
        return Err(Failure::bad(format!(
            "{} shows no cost of {}: it needs sched_waking, sched_switch and cpu_idle of the machine itself",
            shown(recording),
            machine.identity
        )));
    }
    let Some(target) = target else { return Ok(()) };
    let text = with_measured(&machine.source.text, &measured.keys, recording)
        .map_err(|why| Failure::bad(format!("failed to write {}: {why}", shown(&target))))?;
    // What is written has to be a machine.
    Machine::from_source(&Source::new(shown(&target), text.clone()), &[])?;
    let written = AtomicFile::create(&target).and_then(|file| file.commit_with(text.as_bytes()));
    written.map_err(|error| Failure::of_file("write", &target, &error))?;
    tell(&format!("{}: {} costs are measured now", shown(&target), measured.keys.len()));
    Ok(())
}

/// The file that is written; `None`: none.
fn target(
    arguments: &CalibrateMachine,
    name: &str,
    machine: &Machine,
) -> Result<Option<PathBuf>, Failure> {
    if arguments.dry_run {
        return Ok(None);
    }
    if !machine.settings.is_empty() {
        return Err(Failure::bad(format!(
            "the settings of {name} are in no file: name the machine without them"
        )));
    }
    match &arguments.output {
        Some(path) => Ok(Some(path.clone())),
        None if machine.source.name.starts_with("<built in>") => Err(Failure::bad(format!(
            "{name} is built in: say with -o FILE.toml where the calibrated machine goes"
        ))),
        None => Ok(Some(PathBuf::from(name))),
    }
}

/// What was measured, a line each.
fn table(measured: &MeasuredCosts) -> String {
    let mut lines = vec![format!(
        "{:<40} {:>10} {:>10}   {:<22} {:>7}",
        "ns", "before", "measured", "5 % .. 95 %", "samples"
    )];
    for MeasuredKey { path, before, value, spread } in &measured.keys {
        lines.push(format!(
            "{path:<40} {before:>10} {value:>10}   {:<22} {:>7}",
            range(spread),
            spread.samples
        ));
    }
    if !measured.durations.is_empty() {
        lines.push("in no key of the file, ns on the recorded CPUs:".to_owned());
    }
    for (name, spread) in &measured.durations {
        lines.push(format!(
            "{name:<40} {:>10} {:>10.0}   {:<22} {:>7}",
            "",
            spread.median,
            range(spread),
            spread.samples
        ));
    }
    if !measured.missing.is_empty() {
        lines.push(format!("as before, too few samples: {}", measured.missing.join(", ")));
    }
    lines.join("\n") + "\n"
}

fn range(spread: &Spread) -> String {
    format!("{:.0} .. {:.0}", spread.p05, spread.p95)
}

/// The text of a machine file with measured values.
fn with_measured(text: &str, keys: &[MeasuredKey], from: &Path) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let percent = document.get("path_costs").and_then(|costs| costs.get("percent"));
    let percent = percent.and_then(Item::as_integer).unwrap_or(100).max(1) as u64;
    let from = from.file_name().unwrap_or(from.as_os_str()).to_string_lossy().into_owned();
    for key in keys {
        let spread = &key.spread;
        let comment =
            format!("measured: {} ns in 5 .. 95 % of {} of {from}", range(spread), spread.samples);
        match key.path.strip_prefix("path_costs.") {
            Some(name) => {
                let costs = document.entry("path_costs").or_insert(Item::Table(Table::new()));
                let costs = costs.as_table_like_mut().ok_or("`path_costs` is no table")?;
                let mut measured = value((key.value * 100 / percent) as i64);
                let decor = measured.as_value_mut().expect("a value").decor_mut();
                decor.set_suffix(format!(" # {comment}"));
                costs.insert(name, measured);
            }
            None => set_exit(&mut document, key, &comment)?,
        }
    }
    let paths: Vec<String> = keys.iter().map(|key| key.path.clone()).collect();
    mark(&mut document, &paths, &[]);
    Ok(document.to_string())
}

/// Sets `core.NAME.idle[N].exit_ns`. The kernel's own table stays as it was, though a file that does not give
/// `kernel_exit_ns` makes it of these latencies.
fn set_exit(document: &mut DocumentMut, key: &MeasuredKey, comment: &str) -> Result<(), String> {
    let strange = || format!("there is no `{}`", key.path);
    let (core, rest) = key
        .path
        .strip_prefix("core.")
        .and_then(|path| path.rsplit_once(".idle["))
        .ok_or_else(strange)?;
    let (index, name) = rest.split_once("].").ok_or_else(strange)?;
    let index: usize = index.parse().map_err(|_| strange())?;
    let states = document
        .get_mut("core")
        .and_then(|cores| cores.get_mut(core))
        .and_then(|core| core.get_mut("idle"))
        .ok_or_else(strange)?;
    if let Some(states) = states.as_array_mut() {
        let state = states.get_mut(index).ok_or_else(strange)?;
        let before = state.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or("\n  ");
        let line = format!("{}\n  # {comment}\n  ", before.trim_end_matches(['\n', ' ']));
        state.decor_mut().set_prefix(line);
        let state = state.as_inline_table_mut().ok_or_else(strange)?;
        set_in(state, name, key);
        state.fmt();
        return Ok(());
    }
    let states = states.as_array_of_tables_mut().ok_or_else(strange)?;
    set_in(states.get_mut(index).ok_or_else(strange)?, name, key);
    Ok(())
}

fn set_in(state: &mut dyn TableLike, name: &str, key: &MeasuredKey) {
    let number = |state: &dyn TableLike, name| state.get(name).and_then(Item::as_integer);
    if name == "exit_ns"
        && !state.contains_key("kernel_exit_ns")
        && let (Some(entry), Some(exit)) = (number(state, "entry_ns"), number(state, "exit_ns"))
    {
        state.insert("kernel_exit_ns", value(entry + exit));
    }
    state.insert(name, value(key.value as i64));
}

/// Moves the paths of keys from the estimates to what was measured, and adds others to the estimates.
pub fn mark(document: &mut DocumentMut, paths: &[String], estimated: &[&str]) {
    let listed = |document: &DocumentMut, name| -> Vec<String> {
        let list = document.get(name).and_then(Item::as_array);
        let texts = list.map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned));
        texts.map_or(Vec::new(), Iterator::collect)
    };
    let is_measured = |path: &str| paths.iter().any(|measured| measured == path);
    let keys_of = |table: &str, counts: fn(&str) -> bool| -> Vec<String> {
        let keys = document.get(table).and_then(Item::as_table_like);
        keys.map_or(Vec::new(), |keys| {
            let names = keys.iter().map(|(name, _)| name).filter(|name| counts(name));
            names.map(|name| format!("{table}.{name}")).collect()
        })
    };
    let costs = keys_of("path_costs", |name| name.ends_with("_ns"));
    let distances = keys_of("distance", |_| true);
    let mut estimates = Vec::new();
    for path in listed(document, "estimates") {
        match path.as_str() {
            // A table's path stands for all of its keys: those that are left.
            "path_costs" => {
                estimates.extend(costs.iter().filter(|path| !is_measured(path)).cloned());
            }
            "distance" if distances.iter().any(|path| is_measured(path)) => {
                estimates.extend(distances.iter().filter(|path| !is_measured(path)).cloned());
            }
            path if is_measured(path) => {}
            _ => estimates.push(path),
        }
    }
    for path in estimated {
        if !estimates.iter().any(|listed| listed == path) {
            estimates.push((*path).to_owned());
        }
    }
    let mut measured = listed(document, "measured");
    for path in paths {
        if !measured.contains(path) {
            measured.push(path.clone());
        }
    }
    if listed(document, "estimates") != estimates {
        document["estimates"] = value(lines_of(&estimates));
    }
    document["measured"] = value(lines_of(&measured));
}

/// A list with a line for each entry.
fn lines_of(texts: &[String]) -> Array {
    let mut array = Array::from_iter(texts.iter().map(String::as_str));
    for entry in array.iter_mut() {
        entry.decor_mut().set_prefix("\n  ");
    }
    array.set_trailing("\n");
    array.set_trailing_comma(!texts.is_empty());
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str, value: u64) -> MeasuredKey {
        let spread = Spread { median: value as f64, p05: 5.0, p95: 95.0, samples: 40 };
        MeasuredKey { path: path.to_owned(), before: 1, value, spread }
    }

    #[test]
    fn a_machine_keeps_its_text_around_measured_values() {
        let text = "\
# My machine.
name = \"m\"
estimates = [\"path_costs\", \"interrupts\", \"core.a.idle[1].exit_ns\"]

[core.a]
idle = [
  { name = \"WFI\", entry_ns = 0, exit_ns = 1_000 },
  # From the device tree.
  { name = \"off\", entry_ns = 100, exit_ns = 200 },
]

[path_costs]
percent = 50
schedule_ns = 450 # [E]
tick_ns = 1_000
";
        let keys = [key("core.a.idle[1].exit_ns", 77), key("path_costs.schedule_ns", 300)];
        let expected = "\
# My machine.
name = \"m\"
estimates = [
  \"path_costs.tick_ns\",
  \"interrupts\",
]
measured = [
  \"core.a.idle[1].exit_ns\",
  \"path_costs.schedule_ns\",
]

[core.a]
idle = [
  { name = \"WFI\", entry_ns = 0, exit_ns = 1_000 },
  # From the device tree.
  # measured: 5 .. 95 ns in 5 .. 95 % of 40 of t.dat
  { name = \"off\", entry_ns = 100, exit_ns = 77, kernel_exit_ns = 300 },
]

[path_costs]
percent = 50
schedule_ns = 600 # measured: 5 .. 95 ns in 5 .. 95 % of 40 of t.dat
tick_ns = 1_000
";
        assert_eq!(with_measured(text, &keys, Path::new("/x/t.dat")).unwrap(), expected);
        let absent = [key("core.b.idle[0].exit_ns", 1)];
        assert!(with_measured(text, &absent, Path::new("t")).is_err());
    }

    #[test]
    fn every_built_in_machine_can_be_written() {
        for (name, _) in schedtwin_machine::builtin_names() {
            let machine = Machine::load(name).unwrap();
            let mut keys: Vec<MeasuredKey> = Vec::new();
            for core in &machine.core_types {
                let deepest = core.idle_states.len() - 1;
                let exit = core.idle_states[deepest].exit_latency_ns;
                keys.push(key(&format!("core.{}.idle[{deepest}].exit_ns", core.name), exit + 1));
            }
            keys.push(key("path_costs.wakeup_ns", 777));
            let text = with_measured(&machine.source.text, &keys, Path::new("t")).unwrap();
            let again = Machine::from_source(&Source::new(name, text), &[]);
            let again = again.unwrap_or_else(|faults| panic!("{name}: {faults}"));
            assert_eq!(again.measured.len(), keys.len(), "{name}");
            for (core, was) in again.core_types.iter().zip(&machine.core_types) {
                let (now, was) =
                    (core.idle_states.last().unwrap(), was.idle_states.last().unwrap());
                assert_eq!(now.exit_latency_ns, was.exit_latency_ns + 1, "{name}");
                assert_eq!(now.kernel_exit_latency_ns, was.kernel_exit_latency_ns, "{name}");
            }
        }
    }
}
