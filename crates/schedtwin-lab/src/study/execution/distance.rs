// SPDX-License-Identifier: GPL-2.0-or-later
//! How far two executions are apart: figures, distances and limits, as `docs/studies.md` states them.
//!
//! CPUs of a frequency domain are alike, and so are tasks of one file: lists by CPU are sorted within each domain before they are
//! compared, so that "five on CPU 0" and "five on CPU 2" are the same crowding.

use schedtwin_types::Ns;

use super::{Execution, PARTS, Stage, edge};

/// A rise of the clock that is taken back within this time is a square wave: three ticks of 4 ms.
const WAVE: Ns = 12_000_000;

/// Parts of the stage of which each has a mean clock.
const TENTHS: usize = 10;

/// With fewer changes in a stage their spacing says nothing.
const FEWEST_CHANGES: usize = 10;

/// The quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Share of the running time by CPU, %.
    CpuShare,
    /// Tasks by the CPU on which they sit, mean over the parts.
    Crowding,
    /// Changes of seat, a task.
    Moves,
    /// From the first run of a task to the last, s.
    Duration,
    /// Changes of the clock in the stage, 1/s.
    FreqChanges,
    /// Median time between two of them, ms.
    FreqSpacing,
    /// Share of the stage at each frequency, %, rising.
    FreqLevels,
    /// Rises of the clock that are taken back at once, 1/s.
    SquareWaves,
    /// `util_avg` of the stage's CPU, mean.
    Util,
    /// Mean clock in each tenth of the stage, MHz.
    Clock,
}

impl Figure {
    /// As the documents have it.
    pub fn word(self) -> &'static str {
        match self {
            Figure::CpuShare => "CPU share",
            Figure::Crowding => "crowding",
            Figure::Moves => "moves",
            Figure::Duration => "duration",
            Figure::FreqChanges => "freq changes",
            Figure::FreqSpacing => "freq spacing",
            Figure::FreqLevels => "freq levels",
            Figure::SquareWaves => "square waves",
            Figure::Util => "util",
            Figure::Clock => "clock",
        }
    }

    /// The unit of its values.
    pub fn unit(self) -> &'static str {
        match self {
            Figure::CpuShare | Figure::FreqLevels => "%",
            Figure::Crowding => "tasks",
            Figure::Moves => "a task",
            Figure::Duration => "s",
            Figure::FreqChanges | Figure::SquareWaves => "1/s",
            Figure::FreqSpacing => "ms",
            Figure::Util => "",
            Figure::Clock => "MHz",
        }
    }

    /// How large a distance may be, of a recording that has `board`.
    fn limit(self, board: &[f64]) -> f64 {
        let share_of = |share: f64, least: f64| (share * board[0]).max(least);
        match self {
            Figure::CpuShare | Figure::Util => 5.0,
            Figure::Crowding | Figure::FreqLevels | Figure::Clock => 10.0,
            Figure::Duration => share_of(0.15, 0.0),
            Figure::Moves => share_of(0.5, 2.0),
            Figure::FreqChanges | Figure::SquareWaves => share_of(0.2, 2.0),
            Figure::FreqSpacing => share_of(0.2, 1.0),
        }
    }
}

/// A figure of a recording and of a run of the twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Which.
    pub figure: Figure,
    /// Of the recording: one number, or one for each CPU or frequency.
    pub board: Vec<f64>,
    /// Of the twin; empty where it has none.
    pub twin: Vec<f64>,
    /// How far they are apart; `None` where the twin has none.
    pub distance: Option<f64>,
    /// How far they may be.
    pub limit: f64,
    /// How far the recording is from a twin in which nothing moves, [`Execution::still`].
    pub still: Option<f64>,
    /// Of shares by frequency: the frequencies, MHz; else empty.
    pub levels: Vec<u32>,
}

/// All figures that a recording has, in the order of the documents. `domains`: of each frequency domain its CPUs; `levels`: all MHz that
/// may occur, rising.
pub fn compare(
    board: &Execution,
    twin: &Execution,
    domains: &[Vec<usize>],
    levels: &[u32],
) -> Vec<Compared> {
    let mut found = compare_one(board, twin, domains, levels);
    let still = compare_one(board, &twin.still(), domains, levels);
    for (one, still) in found.iter_mut().zip(still) {
        // How long it would take without moves nobody knows.
        one.still = still.distance.filter(|_| one.figure != Figure::Duration);
    }
    found
}

fn compare_one(
    board: &Execution,
    twin: &Execution,
    domains: &[Vec<usize>],
    levels: &[u32],
) -> Vec<Compared> {
    let mut found = Vec::new();
    let mut put = |figure: Figure, board: Vec<f64>, twin: Vec<f64>, distance: Option<f64>| {
        let limit = figure.limit(&board);
        let levels = if figure == Figure::FreqLevels { levels.to_vec() } else { Vec::new() };
        found.push(Compared { figure, board, twin, distance, limit, still: None, levels });
    };
    if !board.tasks.is_empty() {
        let (a, b) = (cpu_share(board, domains), cpu_share(twin, domains));
        let distance = half_difference(&a, &b);
        put(Figure::CpuShare, a, b, Some(distance));
        let (a, b) = (crowding(board, domains), crowding(twin, domains));
        let apart: f64 = a.iter().zip(&b).map(|(a, b)| half_difference(a, b)).sum();
        let distance = 100.0 * apart / (PARTS * board.tasks.len()) as f64;
        put(Figure::Crowding, mean(&a), mean(&b), Some(distance));
        let (a, b) = (moves(board), moves(twin));
        put(Figure::Moves, vec![a], vec![b], Some((a - b).abs()));
    }
    if board.same_work {
        let [a, b] = [board, twin].map(|one| one.length as f64 / 1e9);
        put(Figure::Duration, vec![a], vec![b], Some((a - b).abs()));
    }
    let Some(board) = &board.stage else { return found };
    let twin = twin.stage.as_ref();
    let mut scalar = |figure, of: fn(&Stage) -> Option<f64>| {
        let Some(board) = of(board) else { return };
        let twin = twin.and_then(of);
        let distance = twin.map(|twin| (twin - board).abs());
        put(figure, vec![board], twin.into_iter().collect(), distance);
    };
    scalar(Figure::FreqChanges, |stage| Some(changes(stage).len() as f64 / stage.seconds()));
    scalar(Figure::FreqSpacing, spacing);
    scalar(Figure::SquareWaves, |stage| Some(square_waves(stage) as f64 / stage.seconds()));
    let a = shares_of_levels(board, levels);
    let b = twin.map(|twin| shares_of_levels(twin, levels));
    let distance = b.as_ref().map(|b| half_difference(&a, b));
    put(Figure::FreqLevels, a, b.unwrap_or_default(), distance);
    let of_parts = |util: &[f64]| util.iter().sum::<f64>() / PARTS as f64;
    let distance = twin.map(|twin| {
        let apart = board.util.iter().zip(&twin.util).map(|(a, b)| (a - b).abs());
        100.0 * apart.sum::<f64>() / (PARTS as f64 * 1024.0)
    });
    let b = twin.map(|twin| of_parts(&twin.util));
    put(Figure::Util, vec![of_parts(&board.util)], b.into_iter().collect(), distance);
    let a = clock_in_tenths(board);
    let b = twin.map(clock_in_tenths);
    let highest = levels.last().map_or(1.0, |mhz| f64::from(*mhz));
    let distance = b.as_ref().map(|b| {
        let apart: f64 = a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum();
        100.0 * apart / (TENTHS as f64 * highest)
    });
    put(Figure::Clock, a, b.unwrap_or_default(), distance);
    found
}

/// Half the sum of the differences: how much would have to be moved to make one the other.
fn half_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

/// By domain, and in each from the largest to the smallest.
fn sorted(by_cpu: &[f64], domains: &[Vec<usize>]) -> Vec<f64> {
    let of_domain = |cpus: &Vec<usize>| {
        let mut values: Vec<f64> =
            cpus.iter().map(|cpu| by_cpu.get(*cpu).copied().unwrap_or(0.0)).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        values
    };
    domains.iter().flat_map(of_domain).collect()
}

/// All frequencies of some executions, MHz, rising.
pub fn levels<'e>(of: impl Iterator<Item = &'e Execution>) -> Vec<u32> {
    let clocks = of.filter_map(|one| one.stage.as_ref()).flat_map(|stage| &stage.clock);
    let mut all: Vec<u32> = clocks.map(|(_, mhz)| *mhz).collect();
    all.sort();
    all.dedup();
    all
}

fn cpu_share(of: &Execution, domains: &[Vec<usize>]) -> Vec<f64> {
    let nr_cpus = domains.iter().flatten().max().map_or(0, |most| most + 1);
    let ran = |cpu: usize| of.tasks.iter().filter_map(|task| task.ran.get(cpu)).sum::<Ns>() as f64;
    let all: f64 = (0..nr_cpus).map(ran).sum();
    let shares: Vec<f64> = (0..nr_cpus).map(|cpu| 100.0 * ran(cpu) / all.max(1.0)).collect();
    sorted(&shares, domains)
}

fn crowding(of: &Execution, domains: &[Vec<usize>]) -> Vec<Vec<f64>> {
    let nr_cpus = domains.iter().flatten().max().map_or(0, |most| most + 1);
    let in_part = |part: usize| {
        let mut sit = vec![0.0; nr_cpus];
        for cpu in of.tasks.iter().filter_map(|task| task.seats[part]) {
            sit[usize::from(cpu)] += 1.0;
        }
        sorted(&sit, domains)
    };
    (0..PARTS).map(in_part).collect()
}

fn mean(parts: &[Vec<f64>]) -> Vec<f64> {
    let places = parts.first().map_or(0, Vec::len);
    let of = |place: usize| parts.iter().map(|part| part[place]).sum::<f64>() / parts.len() as f64;
    (0..places).map(of).collect()
}

fn moves(of: &Execution) -> f64 {
    let moves_of = |seats: &Vec<Option<u16>>| {
        let pairs = seats.windows(2).filter(|pair| pair[0].is_some() && pair[1].is_some());
        pairs.filter(|pair| pair[0] != pair[1]).count()
    };
    let all: usize = of.tasks.iter().map(|task| moves_of(&task.seats)).sum();
    all as f64 / of.tasks.len().max(1) as f64
}

/// The changes of the clock within the stage: when, from and to.
fn changes(stage: &Stage) -> Vec<(Ns, u32, u32)> {
    let [from, to] = stage.span;
    let pairs = stage.clock.windows(2).map(|pair| (pair[1].0, pair[0].1, pair[1].1));
    pairs.filter(|(at, before, after)| before != after && (from..=to).contains(at)).collect()
}

fn spacing(stage: &Stage) -> Option<f64> {
    let changes = changes(stage);
    if changes.len() < FEWEST_CHANGES {
        return None;
    }
    let mut gaps: Vec<Ns> = changes.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    gaps.sort();
    Some(gaps[gaps.len() / 2] as f64 / 1e6)
}

fn square_waves(stage: &Stage) -> usize {
    let changes = changes(stage);
    let is_wave = |pair: &&[(Ns, u32, u32)]| {
        let (up, back) = (pair[0], pair[1]);
        up.2 > up.1 && back.2 == up.1 && back.0 - up.0 <= WAVE
    };
    changes.windows(2).filter(is_wave).count()
}

fn shares_of_levels(stage: &Stage, levels: &[u32]) -> Vec<f64> {
    let [from, to] = stage.span;
    let mut shares = vec![0.0; levels.len()];
    for (mhz, time) in times_at(stage, stage.span) {
        let level = levels.iter().position(|level| *level == mhz);
        shares[level.expect("all frequencies are listed")] += time as f64;
    }
    let all = (to - from).max(1) as f64;
    shares.iter().map(|time| 100.0 * time / all).collect()
}

fn clock_in_tenths(stage: &Stage) -> Vec<f64> {
    let mean = |tenth: usize| {
        let span = [tenth, tenth + 1].map(|at| edge(stage.span, at * PARTS / TENTHS));
        let sum: f64 = times_at(stage, span).map(|(mhz, time)| f64::from(mhz) * time as f64).sum();
        sum / (span[1] - span[0]).max(1) as f64
    };
    (0..TENTHS).map(mean).collect()
}

/// The frequencies of `span` in their order, MHz, and how long each was held.
fn times_at(stage: &Stage, [from, to]: [Ns; 2]) -> impl Iterator<Item = (u32, Ns)> {
    stage.clock.iter().enumerate().map(move |(at, (since, mhz))| {
        let until = stage.clock.get(at + 1).map_or(to, |next| next.0).min(to);
        (*mhz, until.saturating_sub((*since).max(from)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Task;
    use super::*;

    const MS: Ns = 1_000_000;

    fn domains() -> Vec<Vec<usize>> {
        vec![vec![0, 1, 2, 3], vec![4, 5]]
    }

    /// Tasks that sit on these CPUs all the time, each running for an equal share of its CPU.
    fn sitting(cpus: &[u16]) -> Execution {
        let alone = |cpu: u16| cpus.iter().filter(|other| **other == cpu).count() as Ns;
        let task = |cpu: &u16| Task {
            name: String::new(),
            ran: (0..6).map(|at| if at == *cpu { 1200 / alone(*cpu) } else { 0 }).collect(),
            seats: vec![Some(*cpu); PARTS],
        };
        let tasks = cpus.iter().map(task).collect();
        Execution { length: 1200, same_work: false, tasks, stage: None }
    }

    fn distance(of: &[Compared], figure: Figure) -> f64 {
        of.iter().find(|one| one.figure == figure).and_then(|one| one.distance).unwrap()
    }

    #[test]
    fn cpus_of_a_domain_are_alike_and_those_of_another_are_not() {
        let board = sitting(&[0, 0, 0, 0, 0, 1, 2, 3]);
        for (twin, crowding, share) in [
            (sitting(&[3, 3, 3, 3, 3, 0, 2, 1]), 0.0, 0.0),
            // 4/2/1/1 for 5/1/1/1: one of eight sits elsewhere.
            (sitting(&[0, 0, 0, 0, 1, 1, 2, 3]), 12.5, 0.0),
            // 2/2/2/2: three of eight do.
            (sitting(&[0, 0, 1, 1, 2, 2, 3, 3]), 37.5, 0.0),
            // One on a big CPU, alone: a fifth of all running time is there.
            (sitting(&[0, 0, 0, 0, 4, 1, 2, 3]), 12.5, 20.0),
        ] {
            let found = compare(&board, &twin, &domains(), &[600, 1200]);
            assert_eq!(distance(&found, Figure::Crowding), crowding);
            assert!((distance(&found, Figure::CpuShare) - share).abs() < 1e-9, "{found:?}");
            assert_eq!(distance(&found, Figure::Moves), 0.0);
        }
    }

    #[test]
    fn moves_are_changes_of_seat() {
        let (board, mut twin) = (sitting(&[0, 1]), sitting(&[0, 1]));
        twin.tasks[0].seats[10..20].fill(Some(4));
        twin.tasks[0].seats[90..].fill(None);
        let found = compare(&board, &twin, &domains(), &[600, 1200]);
        assert_eq!(distance(&found, Figure::Moves), 1.0, "two moves of two tasks");
        assert_eq!(distance(&found, Figure::Crowding), 100.0 * (5.0 + 5.0 + 5.0) / 200.0);
    }

    /// A clock that goes up and down every `half`, for a second.
    fn waves(half: Ns) -> Stage {
        let steps = 1000 * MS / half;
        let clock = (0..steps).map(|at| (at * half, if at % 2 == 0 { 600 } else { 1200 }));
        Stage { span: [0, 1000 * MS], clock: clock.collect(), util: vec![1024.0; PARTS] }
    }

    fn staged(stage: Stage) -> Execution {
        let length = 1000 * MS;
        Execution { length, same_work: false, tasks: Vec::new(), stage: Some(stage) }
    }

    #[test]
    fn square_waves_are_rises_taken_back_at_once() {
        let board = staged(waves(5 * MS));
        let same = compare(&board, &board, &domains(), &[600, 1200]);
        let values: Vec<_> = same.iter().map(|one| (one.figure, one.board[0])).collect();
        assert_eq!(
            values,
            [
                (Figure::FreqChanges, 199.0),
                (Figure::FreqSpacing, 5.0),
                (Figure::SquareWaves, 99.0),
                (Figure::FreqLevels, 50.0),
                (Figure::Util, 1024.0),
                (Figure::Clock, 900.0),
            ]
        );
        assert!(same.iter().all(|one| one.distance == Some(0.0)), "{same:?}");
        let slow = staged(waves(20 * MS));
        let found = compare(&board, &slow, &domains(), &[600, 1200]);
        assert_eq!(distance(&found, Figure::SquareWaves), 99.0, "20 ms is no spike");
        assert_eq!(distance(&found, Figure::FreqLevels), 0.0);
        assert_eq!(distance(&found, Figure::FreqSpacing), 15.0);
    }

    /// A limit that is so wide that nothing need move says nothing, and is told.
    #[test]
    fn a_still_twin_is_compared_beside_the_twin() {
        let mut board = staged(waves(20 * MS));
        board.tasks = sitting(&[0, 1]).tasks;
        board.tasks[0].seats[50..].fill(Some(4));
        board.tasks[0].ran = vec![600, 0, 0, 0, 600, 0];
        let found = compare(&board, &board, &domains(), &[600, 1200]);
        let still: Vec<_> = found.iter().map(|one| (one.figure, one.still)).collect();
        assert_eq!(
            still,
            [
                (Figure::CpuShare, Some(25.0)),
                (Figure::Crowding, Some(25.0)),
                (Figure::Moves, Some(0.5)),
                (Figure::FreqChanges, Some(49.0)),
                (Figure::FreqSpacing, None),
                (Figure::SquareWaves, Some(0.0)),
                (Figure::FreqLevels, Some(50.0)),
                (Figure::Util, Some(0.0)),
                (Figure::Clock, Some(25.0)),
            ]
        );
    }

    #[test]
    fn durations_are_compared_where_the_work_is_the_same() {
        let (mut board, mut twin) = (sitting(&[0, 1]), sitting(&[0, 1]));
        let has = |found: &[Compared]| found.iter().any(|one| one.figure == Figure::Duration);
        assert!(!has(&compare(&board, &twin, &domains(), &[])));
        (board.same_work, board.length, twin.length) = (true, 20_000 * MS, 22_000 * MS);
        let found = compare(&board, &twin, &domains(), &[]);
        let duration = found.iter().find(|one| one.figure == Figure::Duration).unwrap();
        assert_eq!((duration.distance, duration.limit), (Some(2.0), 3.0), "15 %");
        assert_eq!(duration.still, None);
    }

    #[test]
    fn the_clock_is_compared_by_tenths_of_the_stage() {
        let ramp = |from: Ns| Stage {
            span: [from, from + 1000 * MS],
            clock: vec![(0, 600), (from + 250 * MS, 1200)],
            util: vec![1024.0; PARTS],
        };
        let (board, later) = (staged(ramp(0)), staged(ramp(500 * MS)));
        let found = compare(&board, &later, &domains(), &[600, 1200]);
        let clock = found.iter().find(|one| one.figure == Figure::Clock).unwrap();
        assert_eq!(clock.board[..4], [600.0, 600.0, 900.0, 1200.0]);
        assert_eq!(clock.distance, Some(0.0), "a stage may begin at another time");
    }

    #[test]
    fn a_twin_without_a_stage_has_no_distance() {
        let board = staged(waves(5 * MS));
        let none = Execution { length: 1, same_work: false, tasks: Vec::new(), stage: None };
        assert!(
            compare(&board, &none, &domains(), &[600, 1200])
                .iter()
                .all(|one| one.distance.is_none())
        );
    }
}
