// SPDX-License-Identifier: GPL-2.0-or-later
//! The executions of a study beside the twin: every kernel, a few seeds, each figure `in` or `out`.

use rayon::prelude::*;

use super::Execution;
use super::distance::{Compared, Figure, compare, levels};
use super::observed::observe;
use super::recorded::Recording;
use crate::Progress;
use crate::study::prepare::Registry;
use crate::study::spec::{Assignment, Part, with_settings};
use crate::study::{Study, prepare};
use crate::twin::Column;

/// Seeds of an execution at most: distances are judged by their mean.
pub const EXECUTION_SEEDS: u64 = 5;

/// An execution of a study: a recording, and what the twin runs beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Executed {
    /// Where it stands in the publication.
    pub id: String,
    /// The recording.
    pub recording: Recording,
    /// The machine, where it is not the study's.
    pub machine: Option<String>,
    /// The workload that the twin runs, where it is not the study's workload.
    pub workload: Option<String>,
    /// The study's columns that run it, by number.
    pub columns: Vec<usize>,
}

/// A kernel that is to run an execution, or what it waits for.
pub(in crate::study) struct Subject {
    execution: usize,
    column: usize,
    ready: Result<Column, Vec<String>>,
}

/// A kernel beside a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The study's execution, by number.
    pub execution: usize,
    /// The study's column, by number.
    pub column: usize,
    /// How many seeds ran.
    pub seeds: u64,
    /// The figures: values of the twin and distances are means over the seeds.
    pub figures: Vec<Compared>,
    /// The execution under the first seed, for a picture.
    pub shown: Option<Execution>,
    /// Why there is nothing.
    pub why_not: Option<String>,
}

impl Compared {
    /// Whether the twin is within the limit; `None` where it has no value.
    pub fn is_in(&self) -> Option<bool> {
        self.distance.map(|distance| distance <= self.limit)
    }

    /// Whether a twin in which nothing moves is within the limit.
    pub fn still_is_in(&self) -> bool {
        self.still.is_some_and(|distance| distance <= self.limit)
    }
}

/// Makes the scenarios of a study's executions.
pub(in crate::study) fn subjects(
    study: &Study,
    settings: &[Assignment],
    registry: &Registry,
) -> Vec<Subject> {
    let of_kernels: Vec<Assignment> =
        settings.iter().filter(|set| set.part == Part::Kernel).cloned().collect();
    let mut subjects = Vec::new();
    for (execution, of) in study.executions.iter().enumerate() {
        let workload = of.workload.as_ref().unwrap_or(&study.workload);
        let machine = of.machine.as_ref().unwrap_or(&study.machine);
        let machine = with_settings(machine, Part::Machine, settings);
        let workload = with_settings(workload, Part::Workload, settings);
        for column in of.columns.iter().copied() {
            let named = &study.columns[column];
            let kernel = named.run_as.as_ref().unwrap_or(&named.kernel);
            let kernel = with_settings(kernel, Part::Kernel, &of_kernels);
            let wanted = of.recording.nr_cpus();
            let ready = prepare::scenario(&machine, &kernel, &workload, study, registry);
            let ready = ready.and_then(|scenario| match scenario.machine().nr_cpus() {
                nr_cpus if nr_cpus >= wanted => Ok(Column { kernel, scenario }),
                _ => {
                    Err(vec![format!("a machine with the {wanted} CPUs of {}", of.recording.name)])
                }
            });
            subjects.push(Subject { execution, column, ready });
        }
    }
    subjects
}

/// How many seeds an execution gets where rows get `rows`.
pub(in crate::study) fn seeds(rows: u64) -> u64 {
    rows.min(EXECUTION_SEEDS)
}

impl Subject {
    /// Returns the inputs that it waits for.
    pub(in crate::study) fn waits_for(&self) -> &[String] {
        self.ready.as_ref().err().map_or(&[], Vec::as_slice)
    }

    /// The runs that it makes.
    pub(in crate::study) fn runs(&self, seeds: u64) -> u64 {
        if self.ready.is_ok() { seeds } else { 0 }
    }

    /// Runs it. The caller has already added these runs to the progress.
    pub(in crate::study) fn judge(
        &self,
        study: &Study,
        first_seed: u64,
        seeds: u64,
        progress: &Progress,
    ) -> Judged {
        let mut judged = Judged {
            execution: self.execution,
            column: self.column,
            seeds: 0,
            figures: Vec::new(),
            shown: None,
            why_not: None,
        };
        let column = match &self.ready {
            Ok(column) => column,
            Err(waits) => {
                judged.why_not = Some(format!("waits for: {}", waits.join(", ")));
                return judged;
            }
        };
        let recording = &study.executions[self.execution].recording;
        let run = |seed| {
            let duration = column.scenario.duration();
            progress.one_run(duration, |_| observe(column, recording, seed))
        };
        let ran: Vec<Option<Execution>> =
            (first_seed..first_seed + seeds).into_par_iter().map(run).collect();
        let domains: Vec<Vec<usize>> = (column.scenario.machine().domains.iter())
            .map(|domain| domain.cpus.iter().map(|cpu| usize::from(cpu.0)).collect())
            .collect();
        let mut ran: Vec<Execution> = ran.into_iter().flatten().collect();
        if ran.is_empty() {
            judged.why_not = Some("no task of the recording ran".to_string());
            return judged;
        }
        let board = &recording.execution;
        let levels = levels(ran.iter().chain([board]));
        let all: Vec<Vec<Compared>> =
            ran.iter().map(|twin| compare(board, twin, &domains, &levels)).collect();
        judged.seeds = all.len() as u64;
        judged.figures = means(&all);
        judged.shown = Some(ran.swap_remove(0));
        judged
    }
}

/// Of each figure the means over the seeds that have it.
fn means(all: &[Vec<Compared>]) -> Vec<Compared> {
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let of = |first: &Compared| {
        let same = || all.iter().flatten().filter(|one| one.figure == first.figure);
        let longest = same().map(|one| one.twin.len()).max().unwrap_or(0);
        let place = |at: usize| {
            let values = same().filter(|one| !one.twin.is_empty());
            mean(values.map(|one| one.twin.get(at).copied().unwrap_or(0.0)).collect())
        };
        Compared {
            twin: (0..longest).filter_map(place).collect(),
            distance: mean(same().filter_map(|one| one.distance).collect()),
            still: mean(same().filter_map(|one| one.still).collect()),
            ..first.clone()
        }
    };
    all.first().map_or(Vec::new(), |figures| figures.iter().map(of).collect())
}

/// How many figures stand where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Within their limits.
    pub inside: usize,
    /// Those of them that a twin in which nothing moves would have within, too.
    pub inside_if_still: usize,
    /// Beyond their limits.
    pub outside: usize,
    /// Figures that the recording has and the twin has not.
    pub without_value: usize,
}

/// Counts the figures.
pub fn summary(judged: &[Judged]) -> Summary {
    let all = || judged.iter().flat_map(|one| &one.figures);
    let count = |wanted| all().filter(|figure| figure.is_in() == wanted).count();
    let as_still = |figure: &&Compared| figure.is_in() == Some(true) && figure.still_is_in();
    Summary {
        inside: count(Some(true)),
        inside_if_still: all().filter(as_still).count(),
        outside: count(Some(false)),
        without_value: count(None),
    }
}

/// The unit of a distance.
pub fn unit_of_distance(figure: Figure) -> &'static str {
    match figure {
        Figure::CpuShare | Figure::FreqLevels | Figure::Crowding | Figure::Util | Figure::Clock => {
            "%"
        }
        other => other.unit(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PARTS, recorded};
    use super::*;
    use crate::study::load;

    fn subject(id: &str, kernel: &str) -> (Study, Subject) {
        let study = load("uclamp-scenarios-juno").unwrap();
        let settings: Vec<Assignment> = study.settings.iter().map(|one| one.set.clone()).collect();
        let all = subjects(&study, &settings, &Registry::built_in());
        let is = |subject: &Subject| {
            study.executions[subject.execution].id == id
                && study.columns[subject.column].kernel == kernel
        };
        let found = all.into_iter().find(is).expect("the study has this execution");
        (study, found)
    }

    fn judged(id: &str, kernel: &str, threads: usize) -> Judged {
        let (study, subject) = subject(id, kernel);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| subject.judge(&study, 1, 2, &Progress::new()))
    }

    #[test]
    fn placements_are_reduced_to_shares_and_crowds() {
        let one = judged("S4.3.4 max", "linux-6.12", 1);
        assert_eq!(one, judged("S4.3.4 max", "linux-6.12", 2), "threads change nothing");
        assert_eq!(one.seeds, 2);
        let figures: Vec<Figure> = one.figures.iter().map(|one| one.figure).collect();
        assert_eq!(figures, [Figure::CpuShare, Figure::Crowding, Figure::Moves]);
        let shares: f64 = one.figures[0].twin.iter().sum();
        assert!((shares - 100.0).abs() < 1e-6, "{one:?}");
        let shown = one.shown.unwrap();
        assert_eq!(shown.tasks.len(), 8);
        // For the first half of their work four tasks are pinned to the little CPUs and four to the big ones.
        let seats = |task: usize| &shown.tasks[task].seats[5..PARTS * 2 / 5];
        for task in 0..4 {
            assert!(seats(task).iter().all(|seat| seat.is_some_and(|cpu| cpu < 4)), "{task}");
            assert!(seats(task + 4).iter().all(|seat| seat.is_some_and(|cpu| cpu >= 4)), "{task}");
        }
    }

    /// Checks the statement of the series on this scenario: two on each little CPU under sum, and
    /// not under max.
    #[test]
    fn sum_spreads_the_unpinned_tasks_and_max_does_not() {
        let late = |kernel: &str, id: &str| {
            let shown = judged(id, kernel, 1).shown.unwrap();
            let sit = |cpu: u16| {
                let here = |task: &&crate::study::execution::Task| task.seats[80] == Some(cpu);
                shown.tasks.iter().filter(here).count()
            };
            [0, 1, 2, 3].map(sit)
        };
        assert_eq!(late("linux-6.12+uclamp-sum", "S4.3.4 sum"), [2, 2, 2, 2]);
        assert_eq!(late("linux-6.12", "S4.3.4 max"), [5, 1, 1, 1]);
        // Before 6.7 a CPU that capped tasks fill is no candidate: those that are not pinned stay where they were.
        assert_eq!(late("linux-6.3", "S4.3.4 max"), [1, 1, 1, 1]);
    }

    /// A recording of CPUs that the machine does not have waits for another machine.
    #[test]
    fn a_recording_needs_its_cpus() {
        let (mut study, _) = subject("S4.3.4 max", "linux-6.12");
        for task in &mut study.executions[0].recording.execution.tasks {
            task.ran.push(1);
        }
        let subjects = subjects(&study, &[], &Registry::built_in());
        let of_first = subjects.iter().filter(|subject| subject.execution == 0);
        for subject in of_first {
            let name = &study.executions[0].recording.name;
            assert_eq!(subject.waits_for(), [format!("a machine with the 7 CPUs of {name}")]);
        }
        assert!(subjects.iter().any(|subject| subject.waits_for().is_empty()));
    }

    #[test]
    fn a_stage_has_a_clock_and_a_signal() {
        let one = judged("S4.3.3 max", "linux-6.3", 1);
        assert_eq!(one.figures.len(), 6, "{one:?}");
        assert!(one.figures.iter().all(|figure| figure.distance.is_some()), "{one:?}");
        let stage = one.shown.unwrap().stage.unwrap();
        // 250 periods of 10 ms pass before the small task comes.
        assert!(stage.span[0] > 2_400_000_000, "{:?}", stage.span);
        let waves = one.figures.iter().find(|one| one.figure == Figure::SquareWaves).unwrap();
        assert!(waves.twin[0] > 20.0, "the cap is lifted whenever the small task wakes: {waves:?}");
    }

    #[test]
    fn a_recording_agrees_with_itself() {
        let domains = [vec![0, 1, 2, 3], vec![4, 5], vec![6, 7]];
        let all = ["juno-uclamp", "pixel6-uclamp"].map(|name| recorded::load(name).unwrap());
        for recording in all.into_iter().flatten() {
            let board = &recording.execution;
            let all = compare(board, board, &domains, &levels([board].into_iter()));
            assert!(!all.is_empty());
            assert!(all.iter().all(|one| one.distance == Some(0.0)), "{}", recording.name);
        }
    }
}
