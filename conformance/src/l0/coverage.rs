// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the random sequences reach every branch of the kernel's own file, by gcov.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Lets `compare` run `cases` of subject `name` through an oracle built for coverage; gcov's summary of the kernel's file
/// and the lines with branches that were never taken.
pub fn report(
    name: &str,
    build_dir: &Path,
    cases: u64,
    build: impl FnOnce(&[&str]) -> Result<PathBuf, String>,
    compare: impl FnOnce(&Path) -> Result<Option<String>, String>,
) -> Result<String, String> {
    // -O0: no branch is optimised away or duplicated.
    let binary = build(&["--coverage", "-O0", "-DCOUNT_BRANCHES"])?;
    if let Some(difference) = compare(&binary)? {
        return Err(difference);
    }

    let notes = std::fs::read_dir(build_dir)
        .map_err(|error| format!("read {}: {error}", build_dir.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .find(|name| name.ends_with(".gcda"))
        .ok_or("the oracle left no coverage data")?;
    let output = Command::new("gcov")
        .args(["--branch-probabilities", "--branch-counts", &notes])
        .current_dir(build_dir)
        .output()
        .map_err(|error| format!("run gcov: {error}"))?;
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();

    // "pelt-6.1" is about pelt.c.
    let kernels_file = format!("{}.c", name.split('-').next().unwrap_or_default());
    let mut text = format!("gcov after {cases} sequences:\n");
    for block in summary.split("\n\n") {
        let title = block.lines().next().unwrap_or_default();
        let short = title.trim_end_matches('\'').rsplit(['/', '\'']).next().unwrap_or_default();
        if short == kernels_file || short == "pelt.h" || short.ends_with("_extract.h") {
            text += &format!("{short}\n");
            for line in block.lines().skip(1).filter(|line| !line.starts_with("Creating")) {
                text += &format!("  {line}\n");
            }
            text += &not_taken(build_dir, short);
        }
    }
    Ok(text)
}

/// Functions of the annotated source that were never called; of the others, lines whose branches or code were never reached.
fn not_taken(build_dir: &Path, file: &str) -> String {
    let annotated = std::fs::read_to_string(build_dir.join(format!("{file}.gcov")));
    let Ok(annotated) = annotated else { return String::new() };
    let (mut never_called, mut text) = (Vec::new(), String::new());
    let (mut line_number, mut code) = ("", "");
    let mut function = "";
    for line in annotated.lines() {
        if let Some((name, calls)) =
            line.strip_prefix("function ").and_then(|line| line.split_once(" called "))
        {
            function = if calls.starts_with("0 ") {
                never_called.push(name);
                ""
            } else {
                name
            };
            continue;
        }
        let mut fields = line.splitn(3, ':');
        let count = fields.next().unwrap_or_default().trim();
        if let Some(number) = fields.next() {
            line_number = number.trim();
            code = fields.next().unwrap_or_default().trim();
        }
        if function.is_empty() {
            continue;
        }
        if count == "#####" {
            text += &format!("  line {line_number}, {function}: never executed: {code}\n");
        } else if line.starts_with("branch") && line.contains("taken 0") {
            text += &format!("  line {line_number}, {function}: {}: {code}\n", line.trim());
        }
    }
    match never_called.as_slice() {
        [] => text,
        names => format!("  functions never called: {}\n{text}", names.join(", ")),
    }
}
