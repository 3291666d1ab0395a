// SPDX-License-Identifier: GPL-2.0-or-later
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
//! | [`PICK`] | at each pick among two or more: whom? | the switch; no switch although one was asked for; a dequeue that a pick finishes | who ran |
//! | [`WAKEUP`] | a task wakes, arrives, or is forked while a fair one runs: does that give way? | its flag, or the interrupt to its CPU | no |
//! | [`TICK`] | the same at a tick with others queued | its flag at the tick's end | no |
//! | [`DELAY`] | a sleeper that is not alone: does it stay queued? | no dequeue is printed, or see [`sleepers`] | no |
//! | [`PLACE`] | an enqueued or requeued entity: v, deadline, lag | its next line | where it was |
//! | [`TIMES`] | v, deadline, lag and slice | each line of an entity | as in its last line |
//! | [`SUMS`] | `zero_vruntime`, `avg_vruntime`, `avg_load` | each line of a queue | as in its last line |
//!
//! **Not judged:** decisions of queues that have not been seen empty yet or hold somebody of whom no line was printed yet; a sleeper
//! that runs again before any line of it. Not told by any line, so wrong if it happens: a change of a task's nice value or
//! affinity by another task; that a task is SCHED_BATCH.
//!
//! **Kernel:** Linux 6.12.95, `kernel/sched/fair.c`.

pub mod judge;
mod sleepers;
pub mod twin;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::mechanism::{Mechanism, Table, What};
use super::redrive::Miss;
pub use judge::{DELAY, PICK, PLACE, SUMS, TICK, TIMES, WAKEUP};
pub use twin::FairSettings;

/// What of the fair class to show.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Also each answer that is not the recorded one
    #[arg(long)]
    misses: bool,
    #[command(flatten)]
    recordings: super::Recordings,
}

/// Counts by mechanism.
pub type Rows = BTreeMap<&'static str, Mechanism>;

/// Returns the result of one recording, and the misses if they are kept.
pub fn of_file(path: &Path, keep_misses: bool) -> io::Result<(Rows, Vec<Miss>)> {
    let redrive = super::redrive_file(path, keep_misses)?;
    let ours = redrive.misses.iter().filter(|miss| miss.text.starts_with("fair: "));
    Ok((redrive.fair_rows().clone(), ours.cloned().collect()))
}

/// The rows as part of the table over all mechanisms.
pub fn table(rows: &Rows) -> Table {
    let mut table = Table::default();
    for (name, counts) in rows {
        table.row(What::Fair(name)).merge(counts);
    }
    table
}

/// Adds another recording's rows.
pub fn merge(into: &mut Rows, rows: &Rows) {
    for (name, counts) in rows {
        into.entry(name).or_default().merge(counts);
    }
}

/// The command; returns the exit code.
pub fn main(options: &Options) -> i32 {
    let mut all = Rows::new();
    let drive = |file: &Path| of_file(file, options.misses);
    let walk = options.recordings.walk(drive, |name, (rows, misses)| {
        for Miss { time_us, text } in misses {
            println!("{name} at {time_us} us: {text}");
        }
        merge(&mut all, &rows);
    });
    let Some(walk) = walk else { return 2 };
    print!("{} recordings:\n{}", walk.count, table(&all));
    walk.exit_code(all.values().any(|counts| counts.wrong() > 0))
}

#[cfg(test)]
mod tests {
    use super::super::machine::Machine;
    use super::super::redrive::Redrive;
    use super::*;
    use crate::ftrace::Trace;
    use std::rc::Rc;

    /// The rows of a recording with other settings than its own, or `None` if it is not there.
    fn rows(name: &str, change: impl Fn(&str) -> String) -> Option<Rows> {
        let file = format!("{name}.trace.txt.xz");
        let Some(path) =
            super::super::all_recordings().into_iter().find(|path| path.ends_with(&file))
        else {
            eprintln!("skipped {name}: {file} is not there");
            return None;
        };
        let described = std::fs::read_to_string(super::super::description_of(&path)).unwrap();
        let settings = FairSettings::parse(&change(&described));
        let machine = Rc::new(Machine::of_recording(&path).unwrap());
        let mut redrive = Redrive::new(machine, false).with_fair(settings);
        redrive.drive(&mut Trace::open(&path).unwrap()).unwrap();
        Some(redrive.fair_rows().clone())
    }

    /// Hogs of two weights and a sleeper on one CPU; many short tasks with delayed dequeues; RT above fair tasks.
    #[test]
    fn recordings_are_met_to_the_last_bit() {
        for (name, least) in [
            ("nice-pinned.2", [(PICK, 1500), (WAKEUP, 400), (TICK, 1000), (DELAY, 1)]),
            ("littles.2", [(PICK, 3000), (WAKEUP, 40), (TICK, 60), (DELAY, 2000)]),
            // Slices shorter and longer than the base.
            ("sleepers.1", [(PICK, 300), (WAKEUP, 200), (TICK, 20), (DELAY, 50)]),
            // All weights on one CPU; tasks that move themselves, and that fork.
            ("nice-mix.1", [(PICK, 200), (WAKEUP, 50), (TICK, 20), (DELAY, 10)]),
            ("affinity.1", [(PICK, 30), (WAKEUP, 5), (TICK, 5), (DELAY, 10)]),
            ("forks.1", [(PICK, 50), (WAKEUP, 1), (TICK, 2), (DELAY, 20)]),
            ("rt-over-fair.1", [(PICK, 900), (WAKEUP, 100), (TICK, 20), (DELAY, 150)]),
        ] {
            let Some(rows) = rows(name, str::to_string) else { continue };
            for (row, counts) in &rows {
                assert_eq!(counts.equal, counts.judged, "{name}, {row}: {counts:?}");
                assert!(counts.judged * 100 >= counts.events * 90, "{name}, {row}: {counts:?}");
            }
            for (row, least) in least {
                let decided = rows[row].judged - rows[row].trivial;
                assert!(decided >= least, "{name}, {row}: {decided} not trivial");
            }
            assert!(rows[PLACE].judged > 100 && rows[TIMES].judged > 500, "{name}");
        }
    }

    /// Were a rule of the product wrong, the recording would show it, and in the row that asks for it.
    #[test]
    fn another_rule_is_noticed() {
        let without = |feature: &str| {
            let (on, off) = (format!(" {feature} "), format!(" NO_{feature} "));
            move |text: &str| text.replace(&on, &off)
        };
        let notices = |name: &str, change: &dyn Fn(&str) -> String, row: &str| {
            if let Some(rows) = rows(name, change) {
                assert!(rows[row].wrong() > 5, "{name}, {row}: {:?}", rows[row]);
            }
        };
        notices("nice-pinned.2", &without("PLACE_LAG"), PLACE);
        notices("nice-pinned.2", &without("RUN_TO_PARITY"), WAKEUP);
        notices("slowpath.1", &without("PREEMPT_SHORT"), WAKEUP);
        notices("littles.2", &without("DELAY_DEQUEUE"), DELAY);
        notices("littles.2", &without("DELAY_ZERO"), PLACE);
        notices("sleepers.1", &without("PREEMPT_SHORT"), WAKEUP);
        notices("affinity.1", &without("PLACE_REL_DEADLINE"), PLACE);
        notices("forks.1", &without("PLACE_DEADLINE_INITIAL"), PLACE);
    }
}
