// SPDX-License-Identifier: GPL-2.0-or-later
//! Random kernels, as they are spelled on the command line: a release, patches, and any settings that it takes.
//!
//! The settings follow from their declarations, so every variation point and tunable takes part as
//! soon
//! as it exists, but those that put a corrected bug back. What a kernel refuses (an arm that needs another point's) is left out again.

use crate::tape::Tape;
use schedtwin_engine::kernel_file::{KernelFile, settings};
use schedtwin_engine::policy::Fault;
use schedtwin_kernel::config::{Kind, Setting};

/// A kernel's spelling.
pub fn kernel(tape: &mut Tape) -> String {
    let releases = schedtwin_engine::list_kernels();
    // The newest is the simplest.
    let at = releases.len() - 1 - tape.below(releases.len() as u64) as usize;
    let mut name = releases[at].0.clone();
    for _ in 0..*tape.pick(&[0, 0, 0, 1, 2]) {
        let patches = schedtwin_engine::list_patches();
        let with = format!("{name}+{}", tape.pick(&patches).0);
        if KernelFile::load(&with).is_ok() {
            tape.mark("kernel: patches");
            name = with;
        }
    }
    // What is drawn: not the wrong rules that are put back by name, which break what hunts check.
    let drawn: Vec<&Setting> = settings().iter().filter(|setting| !setting.is_bug()).collect();
    let is_point = |setting: &&Setting| matches!(setting.kind, Kind::Choice { .. });
    let points: Vec<&Setting> = drawn.iter().copied().filter(is_point).collect();
    let mut listed = String::new();
    for _ in 0..*tape.pick(&[0, 1, 4, 8, 16, 32]) {
        // Half of them are arms of variation points: there are many tunables.
        let setting = match tape.percent(50) {
            true => *tape.pick(&points),
            false => *tape.pick(&drawn),
        };
        let comma = if listed.is_empty() { "" } else { "," };
        let more = format!("{listed}{comma}{}={}", setting.path, value(tape, setting));
        if KernelFile::load(&format!("{name}:{more}")).is_ok() {
            listed = more;
        }
    }
    if tape.percent(25) {
        let comma = if listed.is_empty() { "" } else { "," };
        let more = format!("{listed}{comma}{}", scheduler(tape));
        if KernelFile::load(&format!("{name}:{more}")).is_ok() {
            tape.mark("kernel: a scheduler of sched_ext");
            listed = more;
        }
    }
    if listed.is_empty() {
        return name;
    }
    tape.mark("kernel: settings");
    format!("{name}:{listed}")
}

/// A scheduler of sched_ext: those that are built in, and the one that does everything at random, now and then with a mistake.
fn scheduler(tape: &mut Tape) -> String {
    let mut name = *tape.pick(&["fifo", "simple", "random", "random-partial"]);
    if name == "random" && tape.percent(30) {
        tape.mark("kernel: a scheduler of sched_ext with a mistake");
        name = tape.pick(&Fault::ALL).0;
    }
    // A short run does not shorten the watchdog: RT tasks may keep others waiting.
    let mut spelled = format!("scx={name},scx.timeout_ms=30000");
    // Most runs take 100 ms to 2 s.
    if tape.percent(25) {
        tape.mark("kernel: a scheduler of sched_ext that is loaded late");
        spelled.push_str(&format!(",scx.load_ms={}", 1 + tape.below(100)));
    }
    let wrong = Fault::ALL.iter().any(|(fault, ..)| *fault == name);
    if !wrong && tape.percent(25) {
        tape.mark("kernel: a scheduler of sched_ext that is stopped");
        spelled.push_str(&format!(",scx.unload_ms={}", 102 + tape.below(300)));
    }
    spelled
}

/// A value within what is declared: numbers of any magnitude, and the ends of their range.
fn value(tape: &mut Tape, setting: &Setting) -> String {
    match &setting.kind {
        Kind::Choice { arms, .. } => tape.pick(arms).word.to_string(),
        Kind::Switch => tape.pick(&["false", "true"]).to_string(),
        Kind::Names => tape.pick(&["none", "WFI", "s1", "s0"]).to_string(),
        Kind::Integer { min, max, none, .. } => {
            let (least, span) = (*min, max.abs_diff(*min));
            let drawn = match tape.below(10) {
                0 => least.to_string(),
                1 => max.to_string(),
                2 if none.is_some() => none.as_ref().expect("it is some").0.to_string(),
                // What a person would set: few units are beyond a million.
                3..=7 => least
                    .saturating_add_unsigned(tape.magnitude(0, span.min(1_000_000)))
                    .to_string(),
                _ => least.saturating_add_unsigned(tape.magnitude(0, span)).to_string(),
            };
            // Limits of some kHz are refused: MHz were meant.
            let is_limit = ["scaling_min_freq", "scaling_max_freq"].contains(&setting.path);
            match drawn.parse() {
                Ok(mhz @ 1..10_000_u32) if is_limit => (mhz * 10_000).to_string(),
                _ => drawn,
            }
        }
    }
}
