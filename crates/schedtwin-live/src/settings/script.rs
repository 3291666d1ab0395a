// SPDX-License-Identifier: GPL-2.0-or-later
//! Changes as a shell script, for a machine where schedtwin is not: `script` makes them, `script undo` puts them back.

use super::Planned;
use super::journal::Change;
use schedtwin_engine::scenario::shell_word;
use schedtwin_types::{Policy, SchedAttr};
use schedtwin_workload::list_of;

/// The script.
pub fn script(planned: &Planned, title: &str) -> String {
    let mut forth: Vec<String> = Vec::new();
    let mut back: Vec<String> = Vec::new();
    for change in &planned.changes {
        forth.extend(lines(change, true));
        let mut undo = lines(change, false);
        undo.extend(back);
        back = undo;
    }
    let body = |lines: &[String]| match lines {
        [] => "    :\n".to_owned(),
        lines => lines.iter().map(|line| format!("    {line}\n")).collect(),
    };
    let refused: String =
        planned.refused.iter().map(|why| format!("# not here: {why}\n")).collect();
    format!(
        "#!/bin/sh\n# {}\n# Without a word the settings are applied, with `undo` they are put back.\n{refused}set -eu\n\
         apply() {{\n{}}}\nundo() {{\n{}}}\ncase ${{1:-apply}} in\napply | undo) \"${{1:-apply}}\" ;;\n\
         *) echo \"usage: $0 [apply|undo]\" >&2; exit 2 ;;\nesac\n",
        title.replace('\n', " "),
        body(&forth),
        body(&back)
    )
}

fn lines(change: &Change, forth: bool) -> Vec<String> {
    match change {
        Change::File { path, was, now } => {
            let value = if forth { now } else { was };
            vec![format!("echo {} > {}", shell_word(value), shell_word(&path.to_string_lossy()))]
        }
        Change::Group { path, files } if forth => {
            let group = path.to_string_lossy();
            let write = |(name, value): &(String, String)| {
                format!("echo {} > {}", shell_word(value), shell_word(&format!("{group}/{name}")))
            };
            let made = std::iter::once(format!("mkdir {}", shell_word(&group)));
            made.chain(files.iter().map(write)).collect()
        }
        Change::Group { path, .. } => {
            vec![format!("rmdir {}", shell_word(&path.to_string_lossy()))]
        }
        Change::Thread { tid, name, attr, cpus, .. } => {
            let comment = format!(" # {}", name.replace('\n', " "));
            let mut lines = Vec::new();
            if let Some((was, now)) = cpus {
                let cpus = if forth { now } else { was };
                lines.push(format!("taskset -pc {} {tid}{comment}", list_of(cpus)));
            }
            if let Some((was, now)) = attr {
                let (from, to) = if forth { (was, now) } else { (now, was) };
                lines.extend(
                    attribute_lines(*tid, from, to).into_iter().map(|line| line + &comment),
                );
            }
            lines
        }
    }
}

fn attribute_lines(tid: u32, from: &SchedAttr, to: &SchedAttr) -> Vec<String> {
    let mut lines = Vec::new();
    let policy = ["--other", "--fifo", "--rr", "--batch", "", "--idle", "--deadline", "--ext"]
        [to.policy.number() as usize];
    let fair = matches!(to.policy, Policy::Normal | Policy::Batch);
    if to.policy == Policy::Deadline {
        let dl = &to.dl;
        lines.push(format!(
            "chrt {policy} --sched-runtime {} --sched-deadline {} --sched-period {} --pid 0 {tid}",
            dl.runtime,
            dl.deadline,
            dl.effective_period()
        ));
    } else if fair && to.slice != from.slice {
        // Older releases of util-linux refuse a runtime of fair threads.
        lines.push(format!("chrt {policy} --sched-runtime {} --pid 0 {tid}", to.slice));
    } else if (to.policy, to.rt_priority) != (from.policy, from.rt_priority) {
        lines.push(format!("chrt {policy} --pid {} {tid}", to.rt_priority));
    }
    if to.nice != from.nice {
        lines.push(format!("renice -n {} -p {tid}", to.nice));
    }
    if (to.util_min, to.util_max) != (from.util_min, from.util_max) {
        let option = |letter: &str, clamp: Option<u16>| {
            clamp.map_or(String::new(), |clamp| format!(" -{letter} {clamp}"))
        };
        let (min, max) = (option("m", to.util_min), option("M", to.util_max));
        lines.push(format!("uclampset{min}{max} -p {tid}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_types::CpuMask;

    #[test]
    fn a_script_applies_and_undoes_in_turned_order() {
        let niced = SchedAttr { nice: 10, ..SchedAttr::default() };
        let planned = Planned {
            changes: vec![
                Change::File { path: "/proc/a b".into(), was: "1".into(), now: "0".into() },
                Change::Group {
                    path: "/g/w".into(),
                    files: vec![("cpu.max".into(), "max 100000".into())],
                },
                Change::Thread {
                    tid: 7,
                    start: 1,
                    name: "hogs-0".into(),
                    attr: Some((SchedAttr::default(), niced)),
                    cpus: Some((CpuMask::first(2), CpuMask::first(1))),
                },
            ],
            refused: vec!["migration_cost_ns: locked".into()],
            ..Planned::default()
        };
        let text = script(&planned, "linux-6.18");
        let expected = "\
# not here: migration_cost_ns: locked
set -eu
apply() {
    echo 0 > '/proc/a b'
    mkdir /g/w
    echo 'max 100000' > /g/w/cpu.max
    taskset -pc 0 7 # hogs-0
    renice -n 10 -p 7 # hogs-0
}
undo() {
    taskset -pc 0-1 7 # hogs-0
    renice -n 0 -p 7 # hogs-0
    rmdir /g/w
    echo 1 > '/proc/a b'
}
";
        assert!(text.contains(expected), "{text}");
        let checked = std::process::Command::new("sh").args(["-n", "-c", &text]).status().unwrap();
        assert!(checked.success());
    }
}
