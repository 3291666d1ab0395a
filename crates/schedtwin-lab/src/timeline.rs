// SPDX-License-Identifier: GPL-2.0-or-later
//! A run as a page shows it: who ran when on each CPU, the idle state between, the clamps, the clocks, and, where a reader looks
//! first, the decisions in `explain`'s words.
//!
//! Decisions are many: only those around the longest wait and around the first difference are kept. Of a run that has more
//! pieces than a page can bear the beginning is kept piece by piece, and of the rest how busy each CPU was over time.

use std::collections::BTreeMap;

use rayon::prelude::*;
use schedtwin_engine::board::FlatBoard;
use schedtwin_engine::difference::{TaskInfo, Teller};
use schedtwin_engine::first_difference;
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_types::{CpuId, DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId};

use crate::crash;
use crate::moment::Moment;
use crate::twin::Column;

/// Pieces of all kernels of a page together: 5 bytes each in its file.
const PIECES: usize = 28_000;

/// Decisions of a kernel that are told.
const TOLD: usize = 1_500;

/// Told before and after the first difference.
const AROUND: Ns = 10_000_000;

/// Bins of the whole run at most; at least half as many once a run is longer than so many of the first width.
const BINS: usize = 400;

/// A run of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The kernel.
    pub kernel: String,
    /// Up to when it is shown piece by piece.
    pub to: Ns,
    /// The busy time of each CPU over the whole run.
    pub busy: Busy,
    /// The tasks' names.
    pub tasks: Vec<String>,
    /// Of every CPU who ran, in order.
    pub lanes: Vec<Vec<Stay>>,
    /// Of every CPU the clamps of its run queue while it runs tasks: from when.
    pub clamps: Vec<Vec<(Ns, [u32; 2])>>,
    /// The frequency domains.
    pub domains: Vec<Domain>,
    /// Decisions: when, where, and their words.
    pub told: Vec<(Ns, u16, String)>,
    /// The longest wait: when the task was woken, when it ran, and where.
    pub wait: Option<(Ns, Ns, u16)>,
}

/// Time in which each CPU ran tasks, by intervals of equal length. The run's length need not be known: when the bins are full, two become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The length of an interval.
    pub width: Ns,
    /// When the run ended.
    pub end: Ns,
    /// Of each CPU the time in each interval.
    pub lanes: Vec<Vec<Ns>>,
}

impl Busy {
    fn new(cpus: usize) -> Busy {
        Busy { width: 1_000_000, end: 0, lanes: vec![vec![0; BINS]; cpus] }
    }

    fn add(&mut self, cpu: usize, [from, to]: [Ns; 2]) {
        while to > self.width * BINS as Ns {
            self.width *= 2;
            for lane in &mut self.lanes {
                for at in 0..BINS / 2 {
                    lane[at] = lane[2 * at] + lane[2 * at + 1];
                }
                lane[BINS / 2..].fill(0);
            }
        }
        let mut from = from;
        while from < to {
            let bin = from / self.width;
            let until = to.min((bin + 1) * self.width);
            self.lanes[cpu][bin as usize] += until - from;
            from = until;
        }
    }
}

/// A frequency domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// Its first CPU.
    pub first_cpu: u16,
    /// Its clocks: from when, kHz.
    pub clocks: Vec<(Ns, u32)>,
}

/// A task on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// From and to.
    pub span: [Ns; 2],
    /// The task, among [`Timeline::tasks`].
    pub task: u16,
    /// The idle state that the CPU was in last before; `None`: none since the last stay.
    pub after_idle: Option<u8>,
}

/// The runs of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timelines {
    /// The seed.
    pub seed: u64,
    /// Of each kernel its run.
    pub of: Vec<Timeline>,
    /// When the first two kernels first decide or do something else, and what, in words of `explain`: on the left and on the right.
    pub parted: Option<(Ns, [String; 2])>,
}

/// The decisions of some windows of a run, in words.
struct Told {
    windows: Vec<[Ns; 2]>,
    teller: Teller,
    decisions: Vec<(Ns, u16, String)>,
}

impl Told {
    fn new(column: &Column, seed: u64, windows: Vec<[Ns; 2]>) -> Told {
        let mut teller = Teller::default();
        teller.header(&column.scenario.meta(seed));
        Told { windows, teller, decisions: Vec::new() }
    }
}

impl Observer for Told {
    const DECISIONS: bool = true;
    fn task(&mut self, id: TaskId, name: &str, prio: i32) {
        self.teller.task(&TaskInfo { id, name: name.to_string(), prio });
    }
    fn fact(&mut self, _: &Fact) {}
    fn decision(&mut self, decision: DecisionRecord) {
        let at = decision.at;
        if self.decisions.len() < TOLD
            && self.windows.iter().any(|[from, to]| (*from..=*to).contains(&at))
        {
            let words = self.teller.decision(&decision);
            self.decisions.push((at, decision.cpu.0, flush_left(&words)));
        }
    }
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

struct Keep {
    most: usize,
    /// When there were so many pieces.
    full: Option<Ns>,
    busy: Busy,
    told: Told,
    names: BTreeMap<TaskId, u16>,
    tasks: Vec<String>,
    running: Vec<(TaskId, Ns)>,
    idle: Vec<Option<u8>>,
    lanes: Vec<Vec<Stay>>,
    clamps: Vec<Vec<(Ns, [u32; 2])>>,
    pieces: usize,
    frequencies: Vec<Vec<(Ns, u32)>>,
}

impl Keep {
    fn close(&mut self, cpu: usize, at: Ns) {
        let (task, since) = self.running[cpu];
        if task == TaskId::IDLE || since >= at {
            return;
        }
        self.busy.add(cpu, [since, at]);
        if self.full.is_none() {
            self.keep_stay(cpu, at);
        }
    }

    /// Keeps the stretch of the running task up to `at`.
    fn keep_stay(&mut self, cpu: usize, at: Ns) {
        let (task, since) = self.running[cpu];
        if task == TaskId::IDLE || since >= at {
            return;
        }
        let Some(task) = self.names.get(&task) else { return };
        self.pieces += 1;
        let after_idle = self.idle[cpu].take();
        self.lanes[cpu].push(Stay { span: [since, at], task: *task, after_idle });
    }

    /// Keeps what has changed of the clamps.
    fn keep_clamps(&mut self, of: impl Fn(CpuId) -> Option<[u32; 2]>, now: Ns) {
        const NONE: [u32; 2] = [0, 1024];
        if self.full.is_some() || of(CpuId(0)).is_none() {
            return;
        }
        for ((cpu, (task, _)), changes) in (0..).zip(&self.running).zip(&mut self.clamps) {
            let of_queue = of(CpuId(cpu)).filter(|_| *task != TaskId::IDLE);
            let clamps = of_queue.unwrap_or(NONE);
            if changes.last().map_or(NONE, |(_, last)| *last) != clamps {
                changes.push((now, clamps));
                self.pieces += 1;
            }
        }
    }
}

impl Observer for Keep {
    const DECISIONS: bool = true;
    fn task(&mut self, id: TaskId, name: &str, prio: i32) {
        self.told.task(id, name, prio);
        if let Ok(number) = u16::try_from(self.tasks.len()) {
            self.names.insert(id, number);
            self.tasks.push(name.to_string());
        }
    }
    fn fact(&mut self, fact: &Fact) {
        let cpu = usize::from(fact.cpu.0);
        match fact.kind {
            FactKind::Switch { next, .. } => {
                self.close(cpu, fact.at);
                self.running[cpu] = (next, fact.at);
            }
            FactKind::IdleEnter { state, .. } => self.idle[cpu] = Some(state),
            FactKind::Frequency { policy, khz, .. } if self.full.is_none() => {
                self.frequencies[policy.index()].push((fact.at, khz));
            }
            _ => {}
        }
        if self.pieces >= self.most && self.full.is_none() {
            // How busy CPUs are goes on: another CPU's next fact may be earlier than this one.
            (0..self.lanes.len()).for_each(|cpu| self.keep_stay(cpu, fact.at));
            self.full = Some(fact.at);
        }
    }
    fn decision(&mut self, decision: DecisionRecord) {
        self.told.decision(decision);
    }
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// The runs of some kernels with a seed; `moments`: their longest waits.
pub fn timelines(columns: &[Column], moments: &[Moment], seed: u64) -> Timelines {
    let parted = match columns {
        [a, b, ..] => {
            crash::caught(|| first_difference(&a.scenario, &b.scenario, seed)).ok().flatten()
        }
        _ => None,
    };
    let of = |column: &Column| {
        let own = moments.iter().filter(|moment| moment.kernel == column.kernel);
        let mut windows: Vec<[Ns; 2]> = own.map(|moment| moment.window).collect();
        windows.extend(
            parted.as_ref().map(|parted| [parted.at.saturating_sub(AROUND), parted.at + AROUND]),
        );
        let wait = moments.iter().find(|moment| moment.kernel == column.kernel);
        let wait = wait.map(|moment| (moment.ready_at, moment.runs_at, moment.cpu));
        let kept = || timeline(column, seed, windows, PIECES / columns.len());
        crash::caught(kept).ok().map(|kept| Timeline { wait, ..kept })
    };
    let of: Vec<Timeline> = columns.par_iter().filter_map(of).collect();
    let parted = parted.map(|parted| {
        let side = |decisions: Vec<String>, event: String| match decisions.is_empty() {
            true => flush_left(&event),
            false => flush_left(&decisions.join("\n")),
        };
        let left = side(parted.decisions_left, parted.left);
        (parted.at, [left, side(parted.decisions_right, parted.right)])
    });
    Timelines { seed, of, parted }
}

/// The decisions of a run in a window of time: when, on which CPU, and their words. At most 1,500, and the run ends with the window.
pub fn decisions(column: &Column, seed: u64, window: [Ns; 2]) -> Vec<(Ns, u16, String)> {
    let mut told = Told::new(column, seed, vec![window]);
    let mut twin: Twin<FlatBoard> = column.scenario.twin(seed);
    twin.record_decisions();
    twin.introduce(&mut told);
    while twin.now() <= window[1] && twin.step(&mut told) {}
    told.decisions
}

/// Words of a listing without its indent.
fn flush_left(words: &str) -> String {
    const INDENT: &str = "    ";
    let lines = words.trim_end().lines();
    lines.map(|line| line.strip_prefix(INDENT).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

fn timeline(column: &Column, seed: u64, windows: Vec<[Ns; 2]>, most: usize) -> Timeline {
    let machine = column.scenario.machine();
    let cpus = machine.nr_cpus();
    let mut keep = Keep {
        most,
        full: None,
        busy: Busy::new(cpus),
        told: Told::new(column, seed, windows),
        names: BTreeMap::new(),
        tasks: Vec::new(),
        running: vec![(TaskId::IDLE, 0); cpus],
        idle: vec![None; cpus],
        lanes: vec![Vec::new(); cpus],
        clamps: vec![Vec::new(); cpus],
        pieces: 0,
        frequencies: vec![Vec::new(); machine.domains.len()],
    };
    let mut twin: Twin<FlatBoard> = column.scenario.twin(seed);
    twin.record_decisions();
    twin.introduce(&mut keep);
    while twin.step(&mut keep) {
        keep.keep_clamps(|cpu| twin.kernel().uclamp(cpu), twin.now());
    }
    keep.busy.end = twin.now();
    for cpu in 0..cpus {
        keep.close(cpu, keep.busy.end);
    }
    let to = keep.full.unwrap_or(keep.busy.end);
    let domains = machine.domains.iter().zip(keep.frequencies).map(|(domain, clocks)| Domain {
        name: domain.name.clone(),
        first_cpu: domain.cpus.first().map_or(0, |cpu| cpu.0),
        clocks,
    });
    Timeline {
        kernel: column.kernel.clone(),
        to,
        busy: keep.busy,
        tasks: keep.tasks,
        lanes: keep.lanes,
        clamps: keep.clamps,
        domains: domains.collect(),
        told: keep.told.decisions,
        wait: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_engine::{Scenario, Workload};
    use schedtwin_input::Source;

    #[test]
    fn a_timeline_is_the_run() {
        let column = |kernel: &str| Column {
            kernel: kernel.into(),
            scenario: Scenario::new("pixel6", kernel, "ui-phone", Some(300_000_000)).unwrap(),
        };
        let columns = ["linux-5.18", "linux-5.18:hz=1000"].map(column);
        let moments = crate::moment::moments(&columns, 1);
        let found = timelines(&columns, &moments, 1);
        assert_eq!(found.of.len(), 2);
        for timeline in &found.of {
            for lane in &timeline.lanes {
                assert!(
                    lane.iter()
                        .all(|stay| stay.span[0] < stay.span[1] && stay.span[1] <= timeline.to)
                );
                assert!(lane.windows(2).all(|pair| pair[0].span[1] <= pair[1].span[0]));
                assert!(lane.iter().all(|stay| usize::from(stay.task) < timeline.tasks.len()));
            }
            let stays = || timeline.lanes.iter().flatten();
            assert!(stays().count() > 100 && stays().any(|stay| stay.after_idle.is_some()));
            assert!(timeline.told.iter().any(|(_, _, words)| words.contains("placement")));
        }
        let (at, [left, right]) = found.parted.unwrap();
        assert!(at < found.of[0].to && left != right, "{left} {right}");
        // The task of the moment runs when its wait ends.
        let (moment, timeline) = (&moments[0], &found.of[0]);
        let lane = &timeline.lanes[usize::from(moment.cpu)];
        let stay = lane.iter().find(|stay| stay.span[0] == moment.runs_at).unwrap();
        assert_eq!(timeline.tasks[usize::from(stay.task)], moment.task);
    }

    #[test]
    fn clamps_are_those_of_the_tasks_that_run() {
        let workload = r#"{ "tasks": {
            "boosted": { "run": 1000, "sleep": 9000, "util_min": 300, "cpus": [0] },
            "capped": { "run": 20000, "sleep": 80000, "util_max": 400, "cpus": [1] }
        } }"#;
        let workload = Workload::parse_rtapp(Source::new("clamps.json", workload));
        let scenario =
            Scenario::with_workload("pixel6", "linux-6.12-gki", workload, Some(300_000_000));
        let column = Column { kernel: "linux-6.12-gki".into(), scenario: scenario.unwrap() };
        let found = timeline(&column, 1, Vec::new(), PIECES);
        let seen = |cpu: usize| found.clamps[cpu].iter().map(|(_, clamps)| *clamps);
        assert!(seen(0).any(|clamps| clamps[0] == 300), "{:?}", found.clamps[0]);
        assert!(seen(1).any(|clamps| clamps[1] == 400), "{:?}", found.clamps[1]);
        assert!(found.clamps[7].iter().all(|(at, _)| *at <= found.to));
    }

    #[test]
    fn decisions_of_any_window_are_told() {
        let scenario =
            Scenario::new("pixel6", "linux-5.18", "ui-phone", Some(300_000_000)).unwrap();
        let column = Column { kernel: "linux-5.18".into(), scenario };
        let window = [150_000_000, 160_000_000];
        let told = decisions(&column, 1, window);
        assert!(told.iter().any(|(_, _, words)| words.contains("placement")));
        assert!(told.iter().all(|(at, ..)| (window[0]..=window[1]).contains(at)));
        assert_eq!(told, timeline(&column, 1, vec![window], PIECES).told);
    }

    #[test]
    fn a_page_keeps_what_it_can_bear() {
        let scenario =
            Scenario::new("pixel6", "linux-5.18", "ui-phone", Some(300_000_000)).unwrap();
        let column = Column { kernel: "linux-5.18".into(), scenario };
        let short = timeline(&column, 1, Vec::new(), 50);
        assert!(short.lanes.iter().flatten().count() < 80 && short.to < 300_000_000);
        assert!(short.told.is_empty());
        // How busy each CPU was is kept to the end, and is what the pieces of the whole run add up to.
        let whole = timeline(&column, 1, Vec::new(), PIECES);
        assert_eq!(short.busy, whole.busy);
        assert!(short.busy.end >= 300_000_000 && whole.to == short.busy.end);
        for (lane, stays) in whole.busy.lanes.iter().zip(&whole.lanes) {
            let ran: Ns = stays.iter().map(|stay| stay.span[1] - stay.span[0]).sum();
            assert_eq!(lane.iter().sum::<Ns>(), ran);
        }
    }

    #[test]
    fn full_bins_become_wider() {
        let mut busy = Busy::new(1);
        busy.add(0, [500_000, 2_500_000]);
        assert_eq!(busy.lanes[0][..4], [500_000, 1_000_000, 500_000, 0]);
        busy.add(0, [799_000_000, 801_000_000]);
        assert_eq!(busy.width, 4_000_000);
        assert_eq!(
            (busy.lanes[0][0], busy.lanes[0][199], busy.lanes[0][200]),
            (2_000_000, 1_000_000, 1_000_000)
        );
    }
}
