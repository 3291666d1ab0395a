// SPDX-License-Identifier: GPL-2.0-or-later
//! The schema of machine files, and the document of their keys.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The schema of machine files is the one that `schedtwin show schema machine` makes, and docs/machine-keys.md lists the keys.
/// `BLESS=1` writes both.
#[test]
fn the_schema_and_the_keys_of_machine_files_are_current() {
    let guide = fs::read_to_string(root().join("docs/machine-keys.md")).expect("the guide");
    let marker = "<!-- declared keys -->\n";
    let start = guide.find(marker).expect("the marker") + marker.len();
    let guide = format!("{}{}", &guide[..start], schedtwin_machine::keys::document());
    for (path, made) in [
        ("schemas/schedtwin.machine.schema.json", schedtwin_lab::schema::machine::text()),
        ("docs/machine-keys.md", guide),
    ] {
        let path = root().join(path);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, made).expect("can be written");
            continue;
        }
        let shipped = fs::read_to_string(&path).expect("it is there");
        assert_eq!(shipped, made, "run with BLESS=1 to renew {}", path.display());
    }
}

/// The schema takes every built-in machine, refuses a wrong key or type anywhere, and nothing that the reader takes.
#[test]
fn the_schema_judges_machine_files_as_the_reader_does() {
    let schema: serde_json::Value =
        serde_json::from_str(&schedtwin_lab::schema::machine::text()).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let takes = |file: &toml::Table| schema.is_valid(&serde_json::to_value(file).expect("JSON"));
    let reads = |file: &toml::Table| {
        let text = toml::to_string(file).expect("TOML");
        let source = schedtwin_input::Source::new("mutated", text);
        schedtwin_machine::Machine::from_source(&source, &[]).is_ok()
    };
    let guide = fs::read_to_string(root().join("docs/machine-files.md")).expect("the guide");
    let small =
        guide.split("```toml\n").nth(1).expect("a machine").split("```").next().expect("its end");
    let builtin = schedtwin_machine::builtin_names().into_iter().map(|(name, _)| {
        let source = schedtwin_machine::builtin_source(name).expect("built in");
        (name, source.text.clone())
    });
    let mut tried = std::collections::BTreeSet::new();
    for (name, text) in builtin.chain([("small", small.to_string())]) {
        let file: toml::Table = text.parse().expect("TOML");
        assert!(takes(&file) && reads(&file), "{name}");
        let mut paths = Vec::new();
        paths_of(&toml::Value::Table(file.clone()), &mut Vec::new(), &mut paths);
        for path in paths {
            // Each kind of place once, with and without classes.
            let kind: Vec<&str> = path
                .iter()
                .map(|step| if step.parse::<usize>().is_ok() { "#" } else { step })
                .collect();
            if !tried.insert((name == "small", kind.join("."))) {
                continue;
            }
            let free = path[0] == "choices" || (path.len() > 3 && path[0] == "work");
            let changed = |change: &dyn Fn(&mut toml::Table, &str)| {
                let mut file = file.clone();
                change(table_at(&mut file, &path[..path.len() - 1]), path.last().expect("a key"));
                file
            };
            let at = format!("{name}: {}", path.join("."));
            let wrong_key = changed(&|table, key| {
                let value = table.remove(key).expect("it is there");
                table.insert(format!("{key}_x"), value);
            });
            let named = [
                "core",
                "cpu",
                "domain",
                "topologies",
                "work",
                "power",
                "power_limit",
                "heat_node",
                "thermal_zone",
            ];
            let a_name = path.len() == 2 && named.contains(&path[0].as_str());
            let a_choice =
                path.len() == 1 && file.get("choices").is_some() && file[&path[0]].is_str();
            if !free && !a_name && !a_choice {
                assert!(!takes(&wrong_key) && !reads(&wrong_key), "another key: {at}");
            }
            for value in [
                toml::Value::Integer(-1),
                toml::Value::Integer(i64::MAX),
                toml::Value::Integer(0),
                toml::Value::Boolean(true),
                toml::Value::String("no such".into()),
                toml::Value::Array(vec![toml::Value::Boolean(true)]),
                toml::Value::Float(0.5),
            ] {
                let other =
                    changed(&|table, key| drop(table.insert(key.to_string(), value.clone())));
                assert!(
                    takes(&other) || !reads(&other),
                    "{at} = {value}: only the reader takes it"
                );
                let fraction = matches!(value, toml::Value::Float(_) | toml::Value::Array(_));
                assert!(!fraction || free || !takes(&other), "{at} = {value}: the schema takes it");
            }
            let missing = changed(&|table, key| drop(table.remove(key)));
            assert!(
                takes(&missing) || !reads(&missing),
                "{at} is missing: only the reader takes it"
            );
        }
    }
    assert!(tried.len() > 200, "{}", tried.len());
}

/// The paths of all keys; of lists the first two tables.
fn paths_of(value: &toml::Value, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    let mut step = |name: &str, value: &toml::Value, is_key: bool| {
        path.push(name.to_string());
        if is_key {
            out.push(path.clone());
        }
        paths_of(value, path, out);
        path.pop();
    };
    match value {
        toml::Value::Table(table) => table.iter().for_each(|(key, value)| step(key, value, true)),
        toml::Value::Array(items) => {
            let tables = items.iter().enumerate().filter(|(_, item)| item.is_table()).take(2);
            tables.for_each(|(index, item)| step(&index.to_string(), item, false));
        }
        _ => {}
    }
}

fn table_at<'t>(file: &'t mut toml::Table, path: &[String]) -> &'t mut toml::Table {
    let mut table = file;
    let mut steps = path.iter();
    while let Some(key) = steps.next() {
        table = match table.get_mut(key).expect("it is there") {
            toml::Value::Table(table) => table,
            toml::Value::Array(items) => {
                let index: usize = steps.next().expect("an index").parse().expect("a number");
                items[index].as_table_mut().expect("a table")
            }
            _ => unreachable!("tables and lists of tables are on the way"),
        };
    }
    table
}
