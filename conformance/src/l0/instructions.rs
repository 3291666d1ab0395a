// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts the instructions of the kernel's own functions: the oracle, compiled as for a comparison, under callgrind.
//!
//! A turn is a message between two tasks on one CPU: one wakes the other and goes to sleep. Beside them are `hogs`, which never
//! sleep. What is counted is x86-64 code of the compiler at hand; tracing, statistics and locks are not in the oracle.

use super::{Out, Record, Subject, oracle};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The operations of which turns are made.
#[derive(Clone, Copy)]
pub struct TurnOps {
    /// Sets the world up.
    pub begin: &'static [Record],
    /// A further task, asleep, of nice 0.
    pub task: fn() -> Record,
    /// Time passes, a task by its number is woken.
    pub wake: fn(u64, u64) -> Record,
    /// Time passes, the running task sleeps or not, and the next one is picked; the first word is its number, from 1.
    pub schedule: fn(u64, bool) -> Record,
    /// Time passes, and a tick.
    pub tick: fn(u64) -> Record,
}

/// Flags for the compiler: the kernel's, but functions that are called once keep their names.
pub const FLAGS: &[&str] =
    &["-O2", "-fno-inline-functions-called-once", "-fno-partial-inlining", "-fno-ipa-cp"];

/// Turns of each table.
const TURNS: u64 = 2_000;
/// Waking and sleeping, in ns.
const MESSAGE_NS: u64 = 2_500;
const TICK_NS: u64 = 1_000_000;
/// Of a table: how many hogs there are.
const HOGS: [u64; 3] = [0, 1, 8];

/// The functions that the core calls; of each the names in the releases, and of what is left of it where the compiler has put it
/// into its caller.
const ENTRIES: [&[&str]; 6] = [
    &["enqueue_task_fair"],
    &["check_preempt_wakeup", "check_preempt_wakeup_fair", "wakeup_preempt_fair"],
    &["dequeue_task_fair", "dequeue_entities", "__dequeue_task"],
    &["pick_task_fair", "pick_next_entity", "pick_eevdf"],
    &["put_prev_task_fair", "put_prev_entity"],
    &["set_next_task_fair"],
];

/// A sequence of [`TURNS`] turns.
fn turns<S: Subject>(ops: TurnOps, hogs: u64) -> Vec<Record> {
    let mut world = S::new();
    let mut records = Vec::new();
    let mut operate = |record: Record| {
        let mut out = Out::verbose();
        world.operate(&record, &mut out);
        records.push(record);
        out.take()[0].1
    };
    for record in ops.begin {
        operate(*record);
    }
    for _ in 0..2 + hogs {
        operate((ops.task)());
    }
    for number in (0..1).chain(2..2 + hogs) {
        operate((ops.wake)(MESSAGE_NS, number));
    }
    let mut curr = operate((ops.schedule)(0, false));
    let mut done = 0;
    while done < TURNS {
        if curr == 1 || curr == 2 {
            operate((ops.wake)(MESSAGE_NS, 2 - curr));
            curr = operate((ops.schedule)(MESSAGE_NS, true));
            done += 1;
        } else {
            operate((ops.tick)(TICK_NS));
            curr = operate((ops.schedule)(0, false));
        }
    }
    records
}

/// Functions that the kernel's text calls, and that are not the kernel's here.
const NOT_THEIRS: [&str; 2] = ["schedule", "strcmp"];

/// Calls of a function and the instructions within it and what it calls.
type Costs = BTreeMap<String, (u64, u64)>;

/// Reads callgrind's file, of names and positions as they are.
fn costs(profile: &str) -> Costs {
    let mut found = Costs::new();
    let mut called: Option<(&str, u64)> = None;
    let mut callee = "";
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            callee = name;
        } else if let Some(calls) = line.strip_prefix("calls=") {
            let count = calls.split(' ').next().and_then(|count| count.parse().ok());
            called = count.map(|count| (callee, count));
        } else if let Some((name, count)) = called.take() {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse().ok()).unwrap_or(0);
            // The compiler's clones of a function are the function.
            let name = name.split('.').next().unwrap_or(name).to_string();
            let entry = found.entry(name).or_insert((0, 0));
            *entry = (entry.0 + count, entry.1 + cost);
        }
    }
    found
}

/// Runs the oracle with a sequence.
fn profile(binary: &Path, build_dir: &Path, records: &[Record]) -> Result<Costs, String> {
    let (input, output) = (build_dir.join("turns"), build_dir.join("callgrind.out"));
    let mut bytes = Vec::new();
    oracle::encode(records, false, &mut bytes);
    std::fs::write(&input, bytes).map_err(|error| format!("write {}: {error}", input.display()))?;
    let stdin = std::fs::File::open(&input).map_err(|error| format!("read: {error}"))?;
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no", "-q"])
        .arg(format!("--callgrind-out-file={}", output.display()))
        .arg(binary)
        .stdin(stdin)
        .stdout(Stdio::null())
        .output()
        .map_err(|error| format!("run valgrind (install it): {error}"))?;
    if !run.status.success() {
        return Err(format!("valgrind: {}", String::from_utf8_lossy(&run.stderr)));
    }
    let text = std::fs::read_to_string(&output)
        .map_err(|error| format!("read {}: {error}", output.display()))?;
    Ok(costs(&text))
}

/// A line of the table.
fn line(name: &str, (calls, cost): (u64, u64)) -> String {
    let (calls, of_turn) = (calls as f64 / TURNS as f64, cost as f64 / TURNS as f64);
    format!("  {name:<34}{calls:>12.2}{:>14.0}{of_turn:>14.0}\n", of_turn / calls)
}

/// The table of one sequence: what the core calls and its sum, then all that is of the kernel.
fn table(costs: &Costs, kernels: &str) -> String {
    let mut text =
        format!("  {:<34}{:>12}{:>14}{:>14}\n", "", "calls/turn", "instr/call", "instr/turn");
    let mut sum = 0;
    for names in ENTRIES {
        let found = names.iter().find_map(|name| Some((*name, *costs.get(*name)?)));
        let Some((name, cost)) = found else { continue };
        sum += cost.1;
        text += &line(name, cost);
    }
    writeln!(text, "  {:<60}{:>14.0}\n", "sum", sum as f64 / TURNS as f64)
        .expect("memory takes it");
    for (name, cost) in costs {
        let shown = ENTRIES.iter().any(|names| names.contains(&name.as_str()));
        let theirs = !NOT_THEIRS.contains(&name.as_str());
        if !shown && theirs && cost.0 * 100 >= TURNS && kernels.contains(&format!("{name}(")) {
            text += &line(name, *cost);
        }
    }
    text
}

/// The kernel's text that the oracle was made of.
fn kernels_text(build_dir: &Path) -> Result<String, String> {
    let entries = std::fs::read_dir(build_dir).map_err(|error| format!("read: {error}"))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let of_kernel = files.filter(|file| file.to_string_lossy().ends_with("_extract.h"));
    Ok(of_kernel.filter_map(|file| std::fs::read_to_string(file).ok()).collect())
}

/// The error where a subject has no tasks.
pub fn no_turns(name: &str) -> String {
    format!(
        "{name} has no tasks that take turns; cfs, eevdf, eevdf-6.18, eevdf-7.3 and eevdf-7.3-flat have"
    )
}

/// Prints how many instructions the functions take, with [`HOGS`] beside the two tasks.
pub fn report<S: Subject>(
    binary: &Path,
    build_dir: &Path,
    version: &str,
) -> Result<String, String> {
    let ops = S::TURNS.ok_or_else(|| no_turns(S::NAME))?;
    let mut text = format!("{} of {version}, {TURNS} turns\n", S::NAME);
    for hogs in HOGS {
        writeln!(text, "\nbeside {hogs} that never sleep").expect("memory takes it");
        let costs = profile(binary, build_dir, &turns::<S>(ops, hogs))?;
        text += &table(&costs, &kernels_text(build_dir)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_all_callers_are_summed() {
        let profile =
            "fn=a\n1 5\ncfn=b\ncalls=2 7\n1 40\n2 3\nfn=c\ncfn=b.part.0\ncalls=1 7\n3 21\n";
        assert_eq!(costs(profile), Costs::from([("b".to_string(), (3, 61))]));
    }
}
