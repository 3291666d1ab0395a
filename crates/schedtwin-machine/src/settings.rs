// SPDX-License-Identifier: GPL-2.0-or-later
//! The settings of a machine, to choose from: each value of its file that `NAME:KEY=VALUE` replaces, and what may stand there.
//!
//! Names, meanings and bounds are those of the declared keys ([`crate::keys`]); words are those of the file's own choices and
//! topologies. Lists, and values within lists, are left out.
//!
//! ```
//! let settings = schedtwin_machine::settings("pixel6").unwrap();
//! let topology = settings.iter().find(|setting| setting.path == "topology").unwrap();
//! assert_eq!(topology.value.as_deref(), Some("cpu-map"));
//! assert!(topology.words.contains(&"phantom".to_string()));
//! let settle = settings.iter().find(|setting| setting.path == "settle_us").unwrap();
//! assert!(settle.about.contains("µs") && settle.words.is_empty());
//! ```

use crate::Machine;
use crate::builtin::{builtin_source, completed};
use crate::choices;
use crate::keys::{Kind, Table, declared, tables};
use schedtwin_input::{Diagnostics, Spec, TomlDocument, Value, read_source};

/// Keys that describe the file, not the machine.
const OF_THE_FILE: [&str; 3] = ["name", "description", "estimated"];

/// A value that a setting replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSetting {
    /// Its path: `domain.little.settle_us`.
    pub path: String,
    /// The value now; `None`: the file leaves it out.
    pub value: Option<String>,
    /// Its meaning and its bounds.
    pub about: String,
    /// The words that it may be; empty: a number, or any text.
    pub words: Vec<String>,
}

/// Returns the settings of a machine as the command line names it.
///
/// # Errors
/// What is wrong with the machine.
pub fn settings(spec: &str) -> Result<Vec<MachineSetting>, Diagnostics> {
    Machine::load(spec)?;
    let spec = Spec::parse_machine(spec)?;
    let source = match builtin_source(&spec.name.text) {
        Some(source) => source,
        None => read_source(&spec.name.text)?,
    };
    let mut faults = Diagnostics::new();
    let (document, _) = completed(&source, &spec.settings, &mut faults)?;
    let tables = tables();
    let mut paths = document.paths();
    // What the file may have at its top or in a table with a fixed name, and has not.
    for table in tables.iter().filter(|table| !table.path.contains(['*', '['])) {
        let within = |name: &str| match table.path {
            "" => name.to_string(),
            path => format!("{path}.{name}"),
        };
        let exists = table.path.is_empty() || document.get(table.path).is_some();
        paths.extend(table.keys.iter().filter(|_| exists).map(|key| within(key.name)));
    }
    paths.sort();
    paths.dedup();
    let found = paths.into_iter().filter_map(|path| setting(path, &document, &tables)).collect();
    faults.into_result(found)
}

fn setting(path: String, document: &TomlDocument, tables: &[Table]) -> Option<MachineSetting> {
    let value = match document.get(&path).map(|node| &node.value) {
        None => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Integer(number)) => Some(number.to_string()),
        Some(Value::Boolean(is)) => Some(is.to_string()),
        Some(_) => return None,
    };
    let names = |table: &str| match document.get(table).map(|node| &node.value) {
        Some(Value::Table(table)) => table.0.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let options = names(&format!("{}.{path}", choices::KEY));
    if !options.is_empty() {
        let about = format!("changes several values, see [choices.{path}] in the file");
        return Some(MachineSetting { path, value, about, words: options });
    }
    let key = declared(tables, &path)?;
    let words = match &key.kind {
        Kind::Whole(..) => Vec::new(),
        Kind::Switch => vec!["true".to_string(), "false".to_string()],
        Kind::Words(words) => words.iter().map(ToString::to_string).collect(),
        Kind::Text if path == "topology" => names("topologies"),
        Kind::Text if !OF_THE_FILE.contains(&path.as_str()) => Vec::new(),
        Kind::Text | Kind::Cpus | Kind::List(_) | Kind::Map(..) => return None,
    };
    if OF_THE_FILE.contains(&path.as_str()) {
        return None;
    }
    let about = match key.kind {
        Kind::Whole(..) => format!("{}: {}", key.help, key.kind.in_words(key.unit)),
        _ => key.help.clone(),
    };
    Some(MachineSetting { path, value, about, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_can_be_set() {
        for (name, _) in crate::builtin_names() {
            let settings = settings(name).unwrap();
            assert!(settings.len() > 20, "{name}");
            for MachineSetting { path, value, .. } in settings {
                let Some(value) = value else { continue };
                let spec = format!("{name}:{path}={value}");
                Machine::load(&spec).unwrap_or_else(|faults| panic!("{spec}: {faults}"));
            }
        }
    }

    #[test]
    fn settings_are_shown_as_they_are_set() {
        let of = |spec: &str, path: &str| {
            let settings = settings(spec).unwrap();
            settings.into_iter().find(|setting| setting.path == path).unwrap()
        };
        let set = of("pixel6:capacities=late,heat=true", "capacities");
        assert_eq!(
            (set.value.as_deref(), &set.words[..]),
            (Some("late"), &["early".to_string(), "late".to_string()][..])
        );
        assert_eq!(of("pixel6:topology=phantom", "topology").value.as_deref(), Some("phantom"));
        assert_eq!(of("uniform8", "ambient_c").value, None);
        assert!(super::settings("pixle6").is_err());
    }
}
