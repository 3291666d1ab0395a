// SPDX-License-Identifier: GPL-2.0-or-later
//! Golden vectors: what the kernel's C answered, as text in `conformance/golden`.
//!
//! A file has a header (tree, seed, and the digest over many sequences), then a few sequences in
//! full: each line an operation with its arguments, `=>`, and every value that it returned or that
//! changed since it was last reported. Checking reads the operations from the file, not from the
//! generator; the digest, which no one can read, covers the breadth.

use super::oracle::Oracle;
use super::{Record, Subject, compare, describe, mix, replay, sequence};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn file<S: Subject>() -> PathBuf {
    super::home().join("golden").join(format!("{}.txt", S::NAME))
}

/// One sequence as text; `words` holds each operation's labelled values.
fn render<S: Subject>(records: &[Record], words: &[Vec<(String, u64)>]) -> String {
    let mut last = BTreeMap::new();
    let mut text = String::new();
    for (record, words) in records.iter().zip(words) {
        text += &format!("{} =>", describe::<S>(record));
        for (label, value) in words {
            let before = last.insert(label.clone(), *value).unwrap_or(0);
            if before != *value || ["result", "state"].contains(&label.as_str()) {
                text += &format!(" {label}={}", *value as i64);
            }
        }
        text.push('\n');
    }
    text
}

/// Digest over the digests of sequences 0..`cases`, by our code.
fn our_digest<S: Subject>(seed: u64, cases: u64) -> u64 {
    (0..cases).fold(0, |digest, case| mix(digest, sequence::<S>(seed, case).1))
}

/// Writes the file from an oracle's answers. Refuses if our code disagrees anywhere.
pub fn write<S: Subject>(oracle: &Path, tree_version: &str, seed: u64) -> Result<String, String> {
    let found = compare::<S>(oracle, seed, S::GOLDEN_CASES, true)?;
    if let Some(difference) = found.first_difference {
        return Err(format!("our code disagrees with the kernel; not written.\n{difference}"));
    }
    // Equal digests, so ours are the kernel's.
    let digest = our_digest::<S>(seed, S::GOLDEN_CASES);
    let mut text = format!(
        "# Golden vectors of {name}: the answers of the kernel's own C.\n\
         # Left of => an operation, right of it its result and the values that changed.\n\
         # Written by `schedtwin-conformance l0 {name} --write-golden`.\n\
         tree {tree_version}\n\
         seed {seed}\n\
         cases {cases}\n\
         digest {digest:#018x}\n",
        name = S::NAME,
        cases = S::GOLDEN_CASES
    );
    for case in 0..S::GOLDEN_SHOWN {
        let (records, _) = sequence::<S>(seed, case);
        let theirs = Oracle::start(oracle)?.replay(&records)?;
        let mut words = replay::<S>(&records);
        for (ours, theirs) in words.iter_mut().zip(theirs) {
            assert_eq!(ours.len(), theirs.len());
            for (word, value) in ours.iter_mut().zip(theirs) {
                word.1 = value;
            }
        }
        text += &format!("\nsequence {case}\n{}", render::<S>(&records, &words));
    }
    let path = file::<S>();
    std::fs::write(&path, text).map_err(|error| format!("write {}: {error}", path.display()))?;
    Ok(format!("wrote {}", path.display()))
}

/// Checks our code against the file.
pub fn check<S: Subject>() -> Result<String, String> {
    let path = file::<S>();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("read {}: {error}", path.display()))?;
    let header = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
            .ok_or(format!("{}: no line '{key}'", path.display()))
    };

    let mut lines = 0;
    let mut sequences = 0;
    for part in text.split("\nsequence ").skip(1) {
        let (case, body) = part.split_once('\n').unwrap_or((part, ""));
        let records: Vec<Record> = body
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| parse::<S>(line).ok_or(format!("sequence {case}: bad line: {line}")))
            .collect::<Result<_, _>>()?;
        let ours = render::<S>(&records, &replay::<S>(&records));
        for (ours, kernels) in ours.lines().zip(body.lines()) {
            if ours != kernels {
                return Err(format!("sequence {case}\n  kernel {kernels}\n  ours   {ours}"));
            }
        }
        lines += records.len();
        sequences += 1;
    }
    if sequences == 0 {
        return Err(format!("{}: no sequences", path.display()));
    }

    let number = |key: &str| -> Result<u64, String> {
        header(key)?.parse().map_err(|_| format!("{}: {key} is not a number", path.display()))
    };
    let (seed, cases) = (number("seed")?, number("cases")?);
    let digest = format!("{:#018x}", our_digest::<S>(seed, cases));
    if digest != header("digest")? {
        return Err(format!(
            "digest of {cases} sequences with seed {seed}: kernel {}, ours {digest}",
            header("digest")?
        ));
    }
    Ok(format!(
        "{}: {sequences} sequences ({lines} operations) and the digest of {cases} equal those of {}",
        S::NAME,
        header("tree")?
    ))
}

fn parse<S: Subject>(line: &str) -> Option<Record> {
    let (operation, _) = line.split_once(" =>")?;
    let mut words = operation.split(' ');
    let name = words.next()?;
    let op = S::OPS.iter().position(|spec| spec.name == name)?;
    let mut args = [0; super::ARGS];
    for (arg, spec) in args.iter_mut().zip(S::OPS[op].args) {
        let value = words.next()?.strip_prefix(spec)?.strip_prefix('=')?;
        *arg = value.parse::<i64>().ok()? as u64;
    }
    Some(Record { op, args })
}
