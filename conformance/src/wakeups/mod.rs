// SPDX-License-Identifier: GPL-2.0-or-later
//! Wakeup placement of 7.3 against the kernel's own C: whole decisions on random states, as `balance` does for 6.1 and 6.12.
//!
//! *Wakeups*: `wake_affine` and `select_idle_sibling` with all that the latter calls, on machines with and without hardware
//! threads, where capacities differ and where not, with a limit of the search of each cache and of the domain with all
//! capacities. The kernel crate's own test writes the cases (`sched/fair/wakeup/golden.rs`); `shim.c` reads them, computes the
//! kernel's answer from the same state and compares.
//!
//! **Not compared here:** clamps (L0 `uclamp` has them) and what `balance/kernel.h` lists as replaced.

use crate::l0::{self, BuildDir, TREE_7_3, extract, oracle};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its name on the command line.
pub const NAME: &str = "wakeups-7.3";
/// Wakeups, if not said.
const CASES: u64 = 300_000;

/// The functions that are taken out of `fair.c`, in an order in which it compiles.
const FUNCTIONS: &[&str] = &[
    "is_core_idle",
    "choose_sched_idle_rq",
    "choose_idle_cpu",
    "wake_affine_idle",
    "wake_affine_weight",
    "wake_affine",
    "__select_idle_cpu",
    "set_idle_cores",
    "test_idle_cores",
    "select_idle_core",
    "select_idle_smt",
    "select_idle_cpu",
    "select_idle_capacity",
    "asym_fits_cpu",
    "select_idle_sibling",
];

/// Builds the oracle from a tree.
pub fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let path = tree.join("kernel/sched/fair.c");
    let fair = std::fs::read_to_string(&path)
        .map_err(|error| format!("read {}: {error}", path.display()))?;
    let missing = |name: &str| format!("{}: no {name} in fair.c", tree.display());
    let ranks = "enum asym_fits_state";
    let mut text = extract::block(&fair, ranks).ok_or(missing(ranks))?;
    for name in FUNCTIONS {
        text += &extract::function(&fair, name).ok_or(missing(name))?;
    }
    let file = build_dir.join("wakeups_extract.h");
    std::fs::write(&file, text).map_err(|error| format!("write {}: {error}", file.display()))?;
    oracle::compile("wakeups/shim.c", &[build_dir], build_dir, flags)
}

/// Lets the kernel crate's tests write their cases: without and with hardware threads.
fn write_cases(cases: u64, dir: &Path) -> Result<[PathBuf; 2], String> {
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let file = dir.join("cases");
    let mut command = Command::new(&cargo);
    command.args(["test", "--quiet", "--package", "schedtwin-kernel", "--lib"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    command.arg("wakeup::golden::linux_7_3::").current_dir(l0::home());
    command.env("SCHEDTWIN_BALANCE_CASES", &file);
    command.env("SCHEDTWIN_BALANCE_COUNT", cases.to_string());
    let output = command.output().map_err(|error| format!("run {cargo}: {error}"))?;
    if !output.status.success() {
        let (out, err) = (&output.stdout, &output.stderr);
        let text = String::from_utf8_lossy(out) + String::from_utf8_lossy(err);
        return Err(format!("the test that writes the cases:\n{text}"));
    }
    Ok(["wakeups-7.3", "threads-wakeups-7.3"].map(|kind| dir.join(format!("cases.{kind}"))))
}

/// Compares `cases` wakeups without and as many with threads: the oracle's summaries and first differences, and whether all
/// are equal.
pub fn compare(tree: &Path, cases: u64, flags: &[&str]) -> Result<(String, bool), String> {
    let dir = BuildDir::new(NAME)?;
    let oracle = build_oracle(tree, dir.path(), flags)?;
    let mut text = String::new();
    let mut equal = true;
    for (file, kind) in write_cases(cases, dir.path())?.into_iter().zip(["plain", "threads"]) {
        let input = std::fs::File::open(&file)
            .map_err(|error| format!("open {}: {error}", file.display()))?;
        let output = Command::new(&oracle)
            .arg(kind)
            .stdin(input)
            .output()
            .map_err(|error| format!("run {}: {error}", oracle.display()))?;
        text += &String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => {}
            Some(1) => equal = false,
            _ => return Err(text + &String::from_utf8_lossy(&output.stderr)),
        }
    }
    Ok((text, equal))
}

/// `l0 wakeups-7.3 [--cases N]`.
pub fn run(asked: &l0::Asked) -> Result<i32, String> {
    if asked.action != l0::Action::Compare {
        return Err(format!("{NAME} can only be compared"));
    }
    let cases = asked.cases.unwrap_or(CASES);
    let tree = l0::kernel_tree(TREE_7_3).ok_or(format!("set {TREE_7_3} to a kernel tree"))?;
    let version = l0::tree_version(&tree)?;
    let (text, equal) = compare(&tree, cases, &["-O2"])?;
    print!("wakeups against {version}\n{text}");
    Ok(!equal as i32)
}
