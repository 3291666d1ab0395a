// SPDX-License-Identifier: GPL-2.0-or-later
//! A configuration as the text of a kernel file, which reads back as the same configuration.

use schedtwin_kernel::config::{Config, Value};
use std::fmt::Write;

/// The text of a kernel file: every setting that exists in the kernel, in the order of their declarations, tables
/// last. Wrong rules that a kernel could put back, and does not, are left out.
pub fn write(name: &str, description: &str, config: &Config) -> String {
    let mut text = format!("name = {}\ndescription = {}\n\n", quoted(name), quoted(description));
    let values = config.told_values();
    let mut tables = vec![""];
    for (setting, _) in &values {
        let (table, _) = setting.table_and_key();
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    for table in tables {
        if !table.is_empty() {
            let _ = write!(text, "\n[{table}]\n");
        }
        for (setting, value) in &values {
            let (of, key) = setting.table_and_key();
            if of == table {
                let value = match value {
                    Value::Text(word) => quoted(word),
                    other => other.to_string(),
                };
                let _ = writeln!(text, "{key} = {value}");
            }
        }
    }
    text
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
