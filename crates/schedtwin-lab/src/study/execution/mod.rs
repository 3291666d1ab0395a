// SPDX-License-Identifier: GPL-2.0-or-later
//! Executions: what happened on a board, set beside what happens in the twin.
//!
//! A row of a study is a number. An execution is a course of events: who sat where, when the clock changed. A recording of a board
//! and a run of the twin are reduced to the same few tables by the same rules, and the tables are compared by stated distances.
//! The rules and the limits are in `docs/studies.md`, "Executions"; they were written down before anything was compared.
//!
//! ```text
//! board's recording ── studies/recordings/*.toml ── recorded ─┐
//!                                                             ├─ Execution ── distance ── in or out
//! the twin's facts ────────────────────────────── observed ──┘
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | here | [`Execution`] and its parts |
//! | [`recorded`] | recordings from their file |
//! | [`observed`] | an execution from a run of the twin |
//! | [`distance`] | the figures, their distances and limits |
//! | [`judge`] | the executions of a study beside the twin |

pub mod distance;
pub mod judge;
pub mod observed;
pub mod recorded;

use schedtwin_types::Ns;

/// Parts into which an execution is cut.
pub const PARTS: usize = 100;

/// The events of an execution, as far as they are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// From the first run of one of its tasks to their last, ns.
    pub length: Ns,
    /// Whether the tasks did as much work as the workload's file says, so that lengths can be compared.
    pub same_work: bool,
    /// Its tasks; none where nobody recorded who ran.
    pub tasks: Vec<Task>,
    /// When two tasks shared a CPU, and what its clock and its queue did.
    pub stage: Option<Stage>,
}

/// Where a task ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// As `comm` shows it.
    pub name: String,
    /// Running time by CPU, ns.
    pub ran: Vec<Ns>,
    /// The CPU that it sat on in each part; [`PARTS`] of them.
    pub seats: Vec<Option<u16>>,
}

/// The behaviour of a CPU while two tasks shared it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its beginning and end, ns from the beginning of the execution's clock.
    pub span: [Ns; 2],
    /// MHz from each moment on; the first moment is 0.
    pub clock: Vec<(Ns, u32)>,
    /// `util_avg` of the CPU's queue in the parts of the stage.
    pub util: Vec<f64>,
}

impl Execution {
    /// The same in which nothing moves: each task stays where it first sat, the clock as it was when the stage began, and the
    /// queue is always full. What is near a recording must be nearer than this to say something.
    pub fn still(&self) -> Execution {
        let still = |task: &Task| {
            let seat = task.seats.iter().copied().find_map(|seat| seat);
            let all = task.ran.iter().sum();
            let here = |cpu| if seat.map(usize::from) == Some(cpu) { all } else { 0 };
            Task {
                name: task.name.clone(),
                ran: (0..task.ran.len()).map(here).collect(),
                seats: task.seats.iter().map(|own| own.and(seat)).collect(),
            }
        };
        let stage = self.stage.as_ref().map(|stage| {
            let begun = stage.clock.partition_point(|(at, _)| *at <= stage.span[0]);
            let mhz = stage.clock.get(begun.saturating_sub(1)).map(|(_, mhz)| (0, *mhz));
            Stage {
                span: stage.span,
                clock: mhz.into_iter().collect(),
                util: vec![1024.0; stage.util.len()],
            }
        });
        Execution { tasks: self.tasks.iter().map(still).collect(), stage, ..*self }
    }
}

impl Stage {
    /// How long it takes, s.
    pub fn seconds(&self) -> f64 {
        (self.span[1] - self.span[0]) as f64 / 1e9
    }
}

/// Where a part of `span` begins, rounded down to whole nanoseconds; that of number [`PARTS`] is the end.
fn edge(span: [Ns; 2], part: usize) -> Ns {
    span[0] + ((span[1] - span[0]) as u128 * part as u128 / PARTS as u128) as Ns
}

/// The seats of a task that ran from, to and where, each part being a hundredth of `span`.
pub fn seats(runs: &[(Ns, Ns, u16)], span: [Ns; 2], nr_cpus: usize) -> Vec<Option<u16>> {
    let end_of = |part: usize| edge([span[0], span[1].max(span[0] + 1)], part + 1);
    let mut ran = vec![vec![0; nr_cpus]; PARTS];
    let mut part = 0;
    for (from, to, cpu) in runs {
        let mut from = *from;
        while from < *to {
            while part + 1 < PARTS && end_of(part) <= from {
                part += 1;
            }
            let end = if part + 1 < PARTS { end_of(part).min(*to) } else { *to };
            ran[part][usize::from(*cpu)] += end - from;
            from = end;
        }
    }
    let sat = |times: &Vec<Ns>| {
        let most = times.iter().copied().max().filter(|most| *most > 0)?;
        times.iter().position(|time| *time == most).map(|cpu| cpu as u16)
    };
    let own: Vec<Option<u16>> = ran.iter().map(sat).collect();
    let last = own.iter().rposition(Option::is_some);
    let mut seat = None;
    let carried = own.iter().enumerate().map(|(part, own)| {
        seat = own.or(seat);
        seat.filter(|_| last.is_some_and(|last| part <= last))
    });
    carried.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_sits_where_it_ran_most_and_stays_while_it_waits() {
        // 100 parts of 10 ns. The task runs in parts 1, 2 and 5.
        let runs = [(12, 18, 0), (18, 24, 3), (24, 27, 0), (50, 60, 1)];
        let seats = seats(&runs, [0, 1000], 4);
        assert_eq!(seats.len(), PARTS);
        let expected = [None, Some(0), Some(3), Some(3), Some(3), Some(1), None];
        assert_eq!(seats[..7], expected, "part 2: 4 ns on CPU 3, 3 ns on CPU 0");
        assert!(seats[6..].iter().all(Option::is_none), "nobody sits after its last run");
    }

    #[test]
    fn a_run_over_several_parts_counts_in_each() {
        let seats = seats(&[(100, 1100, 2)], [100, 1100], 3);
        assert_eq!(seats, vec![Some(2); PARTS]);
    }
}
