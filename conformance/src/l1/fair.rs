//! The fair class's decisions, re-driven: picks, preemption, delayed dequeues, and every virtual time to the last bit.
//!
//! ```text
//! schedtwin-conformance l1 fair [--misses] [FILE...]
//! ```
//!
//! **Idea.** The recorded queues live in a kernel of ours ([`twin`]). The recording says what happened (who woke, slept,
//! moved, ran until when), the product's own functions do it, and wherever the real kernel decided, they are asked
//! first ([`judge`]). What is compared:
//!
//! | row | asked | the recording's answer | trivial answer |
//! |---|---|---|---|
//! | [`What::Pick`] | at each pick among two or more: whom? | the switch; no switch although one was asked for; a dequeue that a pick finishes | who ran |
//! | [`What::WakeupPreemption`] | a task wakes, arrives, or is forked while a fair one runs: does that give way? | its flag, or the interrupt to its CPU | no |
//! | [`What::TickPreemption`] | the same at a tick with others queued | its flag at the tick's end | no |
//! | [`What::DelayedDequeue`] | a sleeper that is not alone: does it stay queued? | no dequeue is printed; or see below | no |
//! | [`What::Placement`] | an enqueued or requeued entity: v, deadline, lag | its next line | where it was |
//! | [`What::VirtualTimes`] | v, deadline, lag and slice | each line of an entity | as in its last line |
//! | [`What::QueueSums`] | `zero_vruntime`, `avg_vruntime`, `avg_load` | each line of a queue | as in its last line |
//!
//! **Who was dequeued?** A dequeue that a sleep prints while others are delayed may be that of one of them, finished by the pick
//! that follows. Then the sleeper's next line or wakeup tells: it is still queued; or it has left since, and its lag says
//! whether at once or later (who leaves delayed has none left, who leaves at once has what it was not given).
//!
//! **Not judged:** decisions of queues that have not been seen empty yet or hold somebody of whom no line was printed yet; a sleeper
//! that is installed before any line of it.
//!
//! **Kernel:** Linux 6.12.95, `kernel/sched/fair.c`.

pub mod judge;
pub mod twin;

use std::io;
use std::path::{Path, PathBuf};

use super::mechanism::Table;
use super::redrive::Miss;
pub use twin::FairSettings;

const USAGE: &str = "\
usage: schedtwin-conformance l1 fair [--misses] [FILE...]
  asks the product for the fair class's decisions (*.trace.txt, *.trace.txt.xz; default: ../shared/rig/recordings)
  --misses   also each answer that is not the recorded one";

/// What came of one recording, and the misses if they are kept.
pub fn of_file(path: &Path, keep_misses: bool) -> io::Result<(Table, Vec<Miss>)> {
    let redrive = super::redrive_file(path, keep_misses)?;
    let ours = redrive.misses.iter().filter(|miss| miss.text.starts_with("fair, "));
    Ok((redrive.fair.table.clone(), ours.cloned().collect()))
}

/// The command; returns the exit code.
pub fn main(args: &[String]) -> i32 {
    let mut misses = false;
    let mut files = Vec::new();
    for arg in args {
        match arg.as_str() {
            "--misses" => misses = true,
            "-h" | "--help" => {
                println!("{USAGE}");
                return 0;
            }
            option if option.starts_with('-') => {
                eprintln!("unknown option {option}\n{USAGE}");
                return 2;
            }
            file => files.push(PathBuf::from(file)),
        }
    }
    if files.is_empty() {
        files = super::recordings_in(&super::recordings_dir()).unwrap_or_default();
    }
    let mut all = Table::default();
    let mut unreadable = files.is_empty();
    for file in &files {
        match of_file(file, misses) {
            Ok((rows, found)) => {
                for Miss { time_us, text } in found {
                    println!("{} at {time_us} us: {text}", file.display());
                }
                all.merge(&rows);
            }
            Err(error) => {
                eprintln!("failed to read {}: {error}", file.display());
                unreadable = true;
            }
        }
    }
    print!("{} recordings\n{all}", files.len());
    let wrong = all.rows().any(|(_, counts)| counts.wrong() > 0);
    match (unreadable, wrong) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::Machine;
    use super::super::mechanism::What;
    use super::super::redrive::Redrive;
    use super::*;
    use crate::ftrace::Trace;
    use std::rc::Rc;

    /// The rows of a recording with other settings than its own, or `None` if it is not there.
    fn rows(name: &str, change: impl Fn(&str) -> String) -> Option<Table> {
        let path = super::super::recordings_dir().join(format!("{name}.trace.txt.xz"));
        if !path.exists() {
            eprintln!("skipped {name}: {} is not there", path.display());
            return None;
        }
        let described = std::fs::read_to_string(super::super::description_of(&path)).unwrap();
        let settings = FairSettings::parse(&change(&described));
        let machine = Rc::new(Machine::of_recording(&path).unwrap());
        let mut redrive = Redrive::new(machine, false).with_fair(settings);
        redrive.drive(&mut Trace::open(&path).unwrap()).unwrap();
        Some(redrive.fair.table.clone())
    }

    /// Hogs of two weights and a sleeper on one CPU; many short tasks with delayed dequeues; RT above fair tasks.
    #[test]
    fn recordings_are_met_to_the_last_bit() {
        for (name, least) in [
            (
                "nice-pinned.2",
                [
                    (What::Pick, 1500),
                    (What::WakeupPreemption, 400),
                    (What::TickPreemption, 1000),
                    (What::DelayedDequeue, 1),
                ],
            ),
            (
                "littles.2",
                [
                    (What::Pick, 3000),
                    (What::WakeupPreemption, 40),
                    (What::TickPreemption, 60),
                    (What::DelayedDequeue, 2000),
                ],
            ),
            (
                "rt-over-fair.1",
                [
                    (What::Pick, 900),
                    (What::WakeupPreemption, 100),
                    (What::TickPreemption, 20),
                    (What::DelayedDequeue, 150),
                ],
            ),
        ] {
            let Some(rows) = rows(name, str::to_string) else { continue };
            for (row, counts) in rows.rows() {
                assert_eq!(counts.equal, counts.judged, "{name}, {row}: {counts:?}");
                assert!(counts.judged * 100 >= counts.events * 98, "{name}, {row}: {counts:?}");
            }
            for (row, least) in least {
                let decided = rows.get(row).unwrap().judged - rows.get(row).unwrap().trivial;
                assert!(decided >= least, "{name}, {row}: {decided} not trivial");
            }
            assert!(
                rows.get(What::Placement).unwrap().judged > 500
                    && rows.get(What::VirtualTimes).unwrap().judged > 2000,
                "{name}"
            );
        }
    }

    /// Were a rule of the product wrong, the recording would show it, and in the row that asks for it.
    #[test]
    fn another_rule_is_noticed() {
        let without = |feature: &str| {
            let (on, off) = (format!(" {feature} "), format!(" NO_{feature} "));
            move |text: &str| text.replace(&on, &off)
        };
        let notices = |name: &str, change: &dyn Fn(&str) -> String, row: What| {
            if let Some(rows) = rows(name, change) {
                assert!(
                    rows.get(row).unwrap().wrong() > 5,
                    "{name}, {row}: {:?}",
                    rows.get(row).unwrap()
                );
            }
        };
        notices("nice-pinned.2", &without("PLACE_LAG"), What::Placement);
        notices("nice-pinned.2", &without("RUN_TO_PARITY"), What::WakeupPreemption);
        notices("slowpath.1", &without("PREEMPT_SHORT"), What::WakeupPreemption);
        notices("littles.2", &without("DELAY_DEQUEUE"), What::DelayedDequeue);
        notices("littles.2", &without("DELAY_ZERO"), What::Placement);
    }
}
