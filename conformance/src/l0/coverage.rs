//! Whether the random sequences reach every branch of the kernel's own file, by gcov.

use super::oracle::Oracle;
use super::{Subject, oracle, sequence};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Runs `cases` sequences through an oracle built for coverage; gcov's summary of the kernel's file
/// and the lines with branches that were never taken.
pub fn report<S: Subject>(
    tree: &Path,
    build_dir: &Path,
    seed: u64,
    cases: u64,
) -> Result<String, String> {
    // -O0: no branch is optimised away or duplicated.
    let binary = S::build_oracle(tree, build_dir, &["--coverage", "-O0"])?;
    let mut child = Oracle::start(&binary)?;
    let mut stdin = child.take_stdin();
    for case in 0..cases {
        let mut bytes = Vec::new();
        oracle::encode(&sequence::<S>(seed, case).0, false, &mut bytes);
        stdin.write_all(&bytes).map_err(|error| format!("write to the oracle: {error}"))?;
        child_digest(&mut child, &mut stdin, case)?;
    }
    drop(stdin);
    child.finish()?;

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

    let kernels_file = format!("{}.c", S::NAME);
    let mut text = format!("gcov after {cases} sequences:\n");
    for block in summary.split("\n\n") {
        let name = block.lines().next().unwrap_or_default();
        let short = name.trim_end_matches('\'').rsplit(['/', '\'']).next().unwrap_or_default();
        if [kernels_file.as_str(), "pelt.h", "fair_extract.h"].contains(&short) {
            text += &format!("{short}\n");
            for line in block.lines().skip(1).filter(|line| !line.starts_with("Creating")) {
                text += &format!("  {line}\n");
            }
            text += &not_taken(build_dir, short);
        }
    }
    Ok(text)
}

/// Reads what the oracle has written now and then, so that neither side's pipe fills up.
fn child_digest(
    child: &mut Oracle,
    stdin: &mut std::process::ChildStdin,
    case: u64,
) -> Result<(), String> {
    // The oracle writes eight bytes a sequence through a buffer of 64 KiB; a pipe holds as much.
    const PER_BUFFER: u64 = (1 << 16) / 8;
    if (case + 1).is_multiple_of(PER_BUFFER) {
        stdin.flush().map_err(|error| format!("write to the oracle: {error}"))?;
        for _ in 0..PER_BUFFER {
            child.read_word()?;
        }
    }
    Ok(())
}

/// Lines of the annotated source whose branches or code were never reached.
fn not_taken(build_dir: &Path, file: &str) -> String {
    let annotated = std::fs::read_to_string(build_dir.join(format!("{file}.gcov")));
    let Ok(annotated) = annotated else { return String::new() };
    let mut text = String::new();
    let mut line_number = "";
    for line in annotated.lines() {
        let mut fields = line.splitn(3, ':');
        let count = fields.next().unwrap_or_default().trim();
        if let Some(number) = fields.next() {
            line_number = number.trim();
        }
        if count == "#####" {
            text += &format!("  line {line_number} never executed\n");
        } else if line.starts_with("branch") && line.contains("taken 0") {
            text += &format!("  line {line_number}: {}\n", line.trim());
        }
    }
    text
}
