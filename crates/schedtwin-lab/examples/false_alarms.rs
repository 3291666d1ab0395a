// SPDX-License-Identifier: GPL-2.0-or-later
//! Which properties kernels break by themselves, over the random cases of `schedtwin hunt`.
//!
//! ```text
//! cargo run --release -p schedtwin-lab --example false_alarms -- 1000 linux-7.3
//! ```
//!
//! Prints a line for each case and property that is broken. Of a kernel that nothing is known to be wrong with, each needs an
//! explanation by the kernel's own rules. `--show` prints the cases, too. `--kept FILE`, the output of an earlier run, ends at
//! the first breach that is not in it: for kernels with a rule that was broken on purpose (`conformance/mutate-properties`).

use rayon::prelude::*;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::result::{Bounds, Breach};
use schedtwin_lab::search::hunt::case_of;
use schedtwin_lab::search::{Case, MachineGiven, Question, WorkloadGiven, rt_app_text};
use schedtwin_lab::verdict::words;
use std::process::ExitCode;

const USAGE: &str = "false_alarms [--show] [--kept FILE] CASES KERNEL...";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let (mut show, mut kept, mut plain) = (false, None, Vec::new());
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--show" => show = true,
            "--kept" => {
                let file = arguments.next().ok_or(USAGE)?;
                let text = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
                kept = Some(text.lines().map(head).collect::<Vec<String>>());
            }
            _ => plain.push(word),
        }
    }
    let (cases, kernels) = plain.split_first().ok_or(USAGE)?;
    let cases: u64 = cases.parse().map_err(|_| USAGE)?;
    let question = Question { property: None, bounds: Bounds::default() };
    let mut unknown = 0;
    for name in kernels {
        let kernel = KernelFile::load(name).map_err(|faults| faults.to_string())?;
        let lines = |seed: u64| match question.breaches(&case_of(seed, &question), &kernel) {
            Ok(broken) => {
                let line = |breach: &Breach| {
                    format!("{name} {seed} {}: {}", breach.property, words(breach))
                };
                Ok((seed, broken.iter().map(line).collect::<Vec<String>>()))
            }
            Err(why) => Err(why),
        };
        let is_new = |line: &String| kept.as_ref().is_some_and(|kept| !kept.contains(&head(line)));
        if kept.is_some() {
            let found = (1..=cases)
                .into_par_iter()
                .find_map_any(|seed| lines(seed).ok()?.1.into_iter().find(is_new));
            if let Some(line) = found {
                println!("{line}");
                return Ok(ExitCode::FAILURE);
            }
            continue;
        }
        let all: Vec<_> = (1..=cases).into_par_iter().map(lines).collect();
        unknown += all.iter().filter(|answer| answer.is_err()).count();
        for (seed, lines) in all.into_iter().flatten() {
            for line in &lines {
                println!("{line}");
            }
            if show && !lines.is_empty() {
                println!("{}", text_of(&case_of(seed, &question)));
            }
        }
    }
    eprintln!("{} runs, {unknown} of which the case is refused", cases * kernels.len() as u64);
    Ok(ExitCode::SUCCESS)
}

/// What tells a breach from others: kernel, case and property.
fn head(line: &str) -> String {
    line.split_whitespace().take(3).collect::<Vec<&str>>().join(" ")
}

/// A case as the files that a user would write.
fn text_of(case: &Case) -> String {
    let machine = match &case.machine {
        MachineGiven::Named(name) => name.clone(),
        MachineGiven::Text(text) => text.lines().filter(|line| line.starts_with("cpus")).collect(),
    };
    match &case.workload {
        WorkloadGiven::Named(name) => format!("{machine}\n{name}"),
        WorkloadGiven::RtApp(root) => format!("{machine}\n{}", rt_app_text(root)),
    }
}
