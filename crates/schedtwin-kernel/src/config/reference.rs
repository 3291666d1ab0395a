// SPDX-License-Identifier: GPL-2.0-or-later
//! The reference configuration of tests: the built-in kernel file of 6.12.
//!
//! Its values are spelled in that file and nowhere else. This crate has no reader of TOML, and needs none: the file
//! of ours has a `[table]` or a `key = value` on each line. A test of the full reader holds the two against each
//! other.

use super::{Config, Value};

const LINUX_6_12: &str = include_str!("../../kernels/linux-6.12.toml");

impl Config {
    /// Linux 6.12.95 as Debian's and arm64 defaults have it.
    ///
    /// ```
    /// let config = schedtwin_kernel::config::Config::linux_6_12();
    /// assert_eq!(config.tick_nsec(), 4_000_000);
    /// ```
    pub fn linux_6_12() -> Config {
        let named = lines(LINUX_6_12);
        let config = Config::new(|path| match named.iter().find(|(named, _)| named == path) {
            Some((_, value)) => value.clone(),
            None => {
                let default_if_absent =
                    Config::setting(path).and_then(|setting| setting.default_if_absent.clone());
                default_if_absent
                    .unwrap_or_else(|| panic!("kernels/linux-6.12.toml names `{path}`"))
            }
        });
        // Without task groups: so is the C compiled that these tests are compared with.
        Config { fair_group_sched: false, ..config }
    }
}

fn lines(text: &str) -> Vec<(String, Value)> {
    let mut table = String::new();
    let mut out = Vec::new();
    for line in text.lines().map(|line| line.split(" #").next().expect("a first part").trim()) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = format!("{name}.");
        } else if let Some((key, value)) = line.split_once(" = ") {
            out.push((format!("{table}{key}"), parse(value)));
        }
    }
    out
}

fn parse(value: &str) -> Value {
    match value {
        "true" => true.into(),
        "false" => false.into(),
        _ => match value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) {
            Some(text) => text.into(),
            None => Value::Integer(value.replace('_', "").parse().expect("a number")),
        },
    }
}
