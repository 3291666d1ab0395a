// SPDX-License-Identifier: GPL-2.0-or-later
//! Broken recordings and what is said of each: `tests/bad`, by name.

use schedtwin_trace::event::TraceSource;
use schedtwin_trace::sources;
use std::path::Path;

/// Why a file is not read, or its damage; nothing if it is whole.
fn said(path: &Path) -> String {
    let mut source = match sources::open(path) {
        Ok(source) => source,
        Err(fault) => return fault.to_string(),
    };
    loop {
        match source.next_event() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(fault) => return fault.to_string(),
        }
    }
    let report = source.report();
    let mut said: Vec<String> = report.damages.iter().map(ToString::to_string).collect();
    let more = report.damage_count - report.damages.len() as u64;
    if more > 0 {
        said.push(format!("and {more} more"));
    }
    said.join("\n")
}

#[test]
fn broken_recordings_say_what_is_wrong() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name != "EXPECTED")
        .collect();
    names.sort();
    let mut all = String::new();
    for name in names {
        let lines = said(&folder.join(&name));
        assert!(!lines.is_empty(), "{name} is not broken");
        all.push_str(&format!("{name}:\n"));
        lines.lines().for_each(|line| all.push_str(&format!("  {line}\n")));
    }
    let expected = std::fs::read_to_string(folder.join("EXPECTED")).unwrap_or_default();
    assert_eq!(all, expected, "\n{all}");
}
