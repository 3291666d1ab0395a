// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of an execution: a fixed list, computed by the same code for the real kernel and for the twin.
//!
//! | figure | unit | of |
//! |---|---|---|
//! | `cpu` | % of a CPU's time | each task, all CPUs and each cluster |
//! | `busy` | % of a CPU's time | each cluster, everything that runs |
//! | `freq` | MHz, mean over time | each domain |
//! | `freq lowest`, `freq highest` | % of the time | each domain |
//! | `freq changes` | 1/s | each domain |
//! | `idle STATE` | % of the CPUs' time | each cluster and state |
//! | `idle entries` | 1/s | each cluster |
//! | `idle too deep`, `idle too shallow` | % of entries | the board, by `cpu_idle_miss` |
//! | `waking` p50, p90, p99 | us, `sched_waking` to switch | each task, on an idle CPU and on a busy one |
//! | `wakeup` p50, p90, p99 | us, `sched_wakeup` to switch | all tasks, likewise |
//! | `switches` | 1/s | to threads of the workload |
//! | `wakings`, `migrations`, `involuntary`, `late` | 1/s | each task |
//!
//! A task's share is its threads' together. A CPU was idle if its idle task ran from before the waking until the switch.
//! A migration is a switch to a thread on another CPU than its last; an involuntary switch leaves it runnable; late
//! is a period that its thread was awake through.
//!
//! The first [`SETTLE_NS`] of the work do not count: at the start all fair servers are active and every new
//! task has the utilisation of a new task. A quantile is defined where three samples lie above it.

use super::execution::{Execution, Pid, What};
use super::workload::BoardWorkload;
use schedtwin_trace::event::Left;
use schedtwin_types::Ns;
use std::collections::BTreeMap;

/// The start of the work that does not count, ns: the servers of CPUs without tasks stop about a
/// second after the
/// board's kernel threads ran on all of them, 20 ms after the start.
pub const SETTLE_NS: Ns = 1_250_000_000;

/// The part of its end that does not count, ns: a recording's end is known to the time that the
/// board's init needs to wake up, and
/// 6 s are whole periods of 16 ms.
pub const TAIL_NS: Ns = 5_000_000;

/// Clusters, which are frequency domains: name, CPUs, lowest and highest kHz.
const CLUSTERS: [(&str, std::ops::Range<usize>, u32, u32); 3] = [
    ("little", 0..4, 300_000, 1_803_000),
    ("mid", 4..6, 400_000, 2_253_000),
    ("big", 6..8, 500_000, 2_802_000),
];
const NR_CPUS: usize = 8;
/// Idle states of a CPU.
const STATES: [&str; 2] = ["WFI", "c2"];

/// The least step in which a figure can be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Resolution {
    /// This share of itself.
    Relative(f64),
    /// This much.
    Absolute(f64),
}

impl Resolution {
    /// Around a value.
    pub fn around(self, value: f64) -> f64 {
        match self {
            Resolution::Relative(share) => value.abs() * share,
            Resolution::Absolute(step) => step,
        }
    }
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The figure's name, and its task or CPU.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// `None`: too few samples.
    pub value: Option<f64>,
    /// How finely it can be told.
    pub resolution: Resolution,
}

impl Figure {
    /// Returns the limit at or below which a value is nothing: a thousandth of a CPU's time, which
    /// is a handful of events in the
    /// window; of other figures 0.
    pub fn nothing(&self) -> f64 {
        if self.unit == PERCENT_OF_TIME { 0.1 } else { 0.0 }
    }
}

/// The unit of shares of a CPU's time.
const PERCENT_OF_TIME: &str = "% t";

fn cluster_of(cpu: usize) -> usize {
    CLUSTERS.iter().position(|(_, cpus, ..)| cpus.contains(&cpu)).unwrap_or(0)
}

/// A CPU while the trace is gone through.
#[derive(Clone, Copy, Default)]
struct Cpu {
    running: Pid,
    running_since: Ns,
    idle: Option<(usize, Ns)>,
}

/// A thread likewise.
#[derive(Clone, Copy, Default)]
struct Thread {
    waking: Option<Ns>,
    wakeup: Option<Ns>,
    awake_since: Option<Ns>,
    cpu: Option<usize>,
}

/// Sums over the window.
struct Sums {
    from: Ns,
    to: Ns,
    /// By task (the last: all others) and cluster, ns.
    ran: Vec<[Ns; 3]>,
    idle: [[Ns; 2]; 3],
    entries: [u64; 3],
    misses: [u64; 2],
    /// By cluster: the time with a known frequency, its sum of kHz × ns, at the lowest, at the highest.
    clock: [(Ns, u128, Ns, Ns); 3],
    changes: [u64; 3],
    switches: u64,
    /// By task: wakings, migrations, involuntary switches, late periods.
    counts: Vec<[u64; 4]>,
    /// By task and whether the CPU was busy, ns.
    waking: Vec<[Vec<Ns>; 2]>,
    wakeup: [Vec<Ns>; 2],
}

impl Sums {
    /// How much of a stretch is inside.
    fn inside(&self, from: Ns, to: Ns) -> Ns {
        to.min(self.to).saturating_sub(from.max(self.from))
    }

    fn counts(&self, at: Ns) -> bool {
        (self.from..self.to).contains(&at)
    }

    fn clock(&mut self, cluster: usize, khz: Option<u32>, from: Ns, to: Ns) {
        let (Some(khz), length) = (khz, self.inside(from, to)) else { return };
        let (time, sum, lowest, highest) = &mut self.clock[cluster];
        *time += length;
        *sum += u128::from(khz) * u128::from(length);
        if khz == CLUSTERS[cluster].2 {
            *lowest += length;
        }
        if khz == CLUSTERS[cluster].3 {
            *highest += length;
        }
    }
}

fn sum_up(execution: &Execution, workload: &BoardWorkload) -> Sums {
    let tasks = workload.tasks.len();
    let mut sums = Sums {
        from: execution.start + SETTLE_NS,
        to: execution.end.saturating_sub(TAIL_NS),
        ran: vec![[0; 3]; tasks + 1],
        idle: [[0; 2]; 3],
        entries: [0; 3],
        misses: [0; 2],
        clock: [(0, 0, 0, 0); 3],
        changes: [0; 3],
        switches: 0,
        counts: vec![[0; 4]; tasks],
        waking: vec![Default::default(); tasks],
        wakeup: Default::default(),
    };
    let task = |pid: Pid| execution.task_of.get(&pid).copied();
    let mut cpus = [Cpu::default(); NR_CPUS];
    let mut clocks: [(Option<u32>, Ns); 3] = [(None, 0); 3];
    let mut threads: BTreeMap<Pid, Thread> = BTreeMap::new();
    let to = sums.to;
    for seen in execution.seen.iter().take_while(|seen| seen.at < to) {
        let at = seen.at;
        let Some(cpu) = cpus.get_mut(seen.cpu) else { continue };
        match seen.what {
            What::Switch { prev, left, next } => {
                sums.switches += u64::from(sums.counts(at) && task(next).is_some());
                if prev != 0 {
                    let ran = sums.inside(cpu.running_since, at);
                    sums.ran[task(prev).unwrap_or(tasks)][cluster_of(seen.cpu)] += ran;
                }
                let was_idle = cpu.running == 0;
                let idle_since = cpu.running_since;
                (cpu.running, cpu.running_since) = (next, at);
                if let Some(index) = task(prev) {
                    let thread = threads.entry(prev).or_default();
                    if left == Left::Runnable {
                        sums.counts[index][2] += u64::from(sums.counts(at));
                    } else if let Some(since) = thread.awake_since.take()
                        && let Some(period) = workload.tasks[index].period_us()
                        && sums.counts(at)
                    {
                        sums.counts[index][3] += (at - since) / (Ns::from(period) * 1000);
                    }
                }
                if let Some(index) = task(next) {
                    let thread = threads.entry(next).or_default();
                    if thread.cpu.replace(seen.cpu).is_some_and(|last| last != seen.cpu) {
                        sums.counts[index][1] += u64::from(sums.counts(at));
                    }
                    let (waking, wakeup) = (thread.waking.take(), thread.wakeup.take());
                    if let Some(waking) = waking.filter(|waking| sums.counts(*waking)) {
                        let busy = usize::from(!(was_idle && idle_since <= waking));
                        sums.waking[index][busy].push(at - waking);
                        // Stamps of two CPUs may overlap by a microsecond.
                        let wakeup = wakeup.map(|wakeup| at.saturating_sub(wakeup));
                        sums.wakeup[busy].extend(wakeup);
                    }
                }
            }
            What::Waking(pid) => {
                if let Some(index) = task(pid) {
                    sums.counts[index][0] += u64::from(sums.counts(at));
                    let thread = threads.entry(pid).or_default();
                    thread.waking = Some(at);
                    thread.wakeup = None;
                    thread.awake_since.get_or_insert(at);
                }
            }
            What::Wakeup(pid) => threads.entry(pid).or_default().wakeup = Some(at),
            What::Idle(of, state) => {
                let Some(cpu) = cpus.get_mut(of) else { continue };
                if let Some((state, since)) = cpu.idle.take() {
                    let stayed = sums.inside(since, at);
                    sums.idle[cluster_of(of)][state] += stayed;
                }
                if let Some(state) = state {
                    cpu.idle = Some(((state as usize).min(STATES.len() - 1), at));
                    sums.entries[cluster_of(of)] += u64::from(sums.counts(at));
                }
            }
            What::Miss(shallow) => sums.misses[usize::from(shallow)] += u64::from(sums.counts(at)),
            What::Frequency(of, khz) => {
                let cluster = cluster_of(of);
                if of == CLUSTERS[cluster].1.start && clocks[cluster].0 != Some(khz) {
                    let (before, since) = std::mem::replace(&mut clocks[cluster], (Some(khz), at));
                    sums.clock(cluster, before, since, at);
                    sums.changes[cluster] += u64::from(sums.counts(at));
                }
            }
        }
    }
    for (index, cpu) in cpus.iter().enumerate() {
        if cpu.running != 0 {
            let ran = sums.inside(cpu.running_since, to);
            sums.ran[task(cpu.running).unwrap_or(tasks)][cluster_of(index)] += ran;
        }
        if let Some((state, since)) = cpu.idle {
            let stayed = sums.inside(since, to);
            sums.idle[cluster_of(index)][state] += stayed;
        }
    }
    for (cluster, (khz, since)) in clocks.into_iter().enumerate() {
        sums.clock(cluster, khz, since, to);
    }
    sums
}

/// The quantile of samples, if three of them lie above it.
fn quantile(sorted: &[Ns], q: f64) -> Option<f64> {
    let above = sorted.len() as f64 * (1.0 - q);
    (above >= 3.0 - 1e-9).then(|| {
        let values: Vec<f64> = sorted.iter().map(|ns| *ns as f64 / 1000.0).collect();
        super::spread::quantile(&values, q)
    })
}

/// All figures, in the order of the list.
pub fn figures(execution: &Execution, workload: &BoardWorkload) -> Vec<Figure> {
    let mut sums = sum_up(execution, workload);
    let window = sums.to.saturating_sub(sums.from).max(1) as f64;
    let names: Vec<&str> = workload.tasks.iter().map(|t| t.name.text.as_str()).collect();
    let mut all = Vec::new();
    let mut add = |name: String, unit, value: Option<f64>, resolution| {
        all.push(Figure { name, unit, value, resolution });
    };
    // Times are told to half a percent of themselves, rates to one event in the window.
    let fine = Resolution::Relative(0.005);
    let one = Resolution::Absolute(1e9 / window);
    let us = Resolution::Absolute(1.0);
    let percent = |ns: Ns| Some(ns as f64 * 100.0 / window);
    let rate = |count: u64| Some(count as f64 * 1e9 / window);

    for (task, name) in names.iter().enumerate() {
        let ran = sums.ran[task];
        add(format!("cpu {name}"), PERCENT_OF_TIME, percent(ran.iter().sum()), fine);
        for (cluster, (of, ..)) in CLUSTERS.iter().enumerate() {
            add(format!("cpu {name} on {of}"), PERCENT_OF_TIME, percent(ran[cluster]), fine);
        }
    }
    for (cluster, (of, cpus, ..)) in CLUSTERS.iter().enumerate() {
        let busy = sums.ran.iter().map(|ran| ran[cluster]).sum();
        add(format!("busy {of}"), PERCENT_OF_TIME, percent(busy), fine);
        let (time, khz_ns, lowest, highest) = sums.clock[cluster];
        let of_time = |value: f64| (time > 0).then(|| value / time as f64);
        add(format!("freq {of}"), "MHz", of_time(khz_ns as f64 / 1000.0), fine);
        add(format!("freq lowest {of}"), PERCENT_OF_TIME, of_time(lowest as f64 * 100.0), fine);
        add(format!("freq highest {of}"), PERCENT_OF_TIME, of_time(highest as f64 * 100.0), fine);
        add(format!("freq changes {of}"), "1/s", rate(sums.changes[cluster]), one);
        for (state, name) in STATES.iter().enumerate() {
            let share = percent(sums.idle[cluster][state]).map(|s| s / cpus.len() as f64);
            add(format!("idle {name} {of}"), PERCENT_OF_TIME, share, fine);
        }
        add(format!("idle entries {of}"), "1/s", rate(sums.entries[cluster]), one);
    }
    let entries = sums.entries.iter().sum::<u64>() as f64;
    for (shallow, name) in [(0, "idle too deep"), (1, "idle too shallow")] {
        let share = (entries > 0.0).then(|| sums.misses[shallow] as f64 * 100.0 / entries);
        add(name.into(), "%", share, Resolution::Absolute(100.0 / entries.max(1.0)));
    }
    const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
    for (busy, on) in [(0, "idle"), (1, "busy")] {
        for (task, name) in names.iter().enumerate() {
            let samples = &mut sums.waking[task][busy];
            samples.sort_unstable();
            for (label, q) in QUANTILES {
                let name = format!("waking {name} {on} {label}");
                add(name, "us", quantile(samples, q), us);
            }
        }
        sums.wakeup[busy].sort_unstable();
        for (label, q) in QUANTILES {
            add(format!("wakeup {on} {label}"), "us", quantile(&sums.wakeup[busy], q), us);
        }
    }
    add("switches".into(), "1/s", rate(sums.switches), one);
    for (task, name) in names.iter().enumerate() {
        let counts = sums.counts[task];
        for (what, label) in ["wakings", "migrations", "involuntary", "late"].iter().enumerate() {
            add(format!("{label} {name}"), "1/s", rate(counts[what]), one);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_input::Source;

    /// A second of work, written by hand: from 1.25 s to 1.995 s counts.
    const TRACE: &str = "\
          <idle>-0 [006] d..1.  1.000000: cpu_idle: state=1 cpu_id=6\n\
          <idle>-0 [006] d..1.  1.000000: cpu_frequency: state=500000 cpu_id=6\n\
          <idle>-0 [006] d..1.  1.300000: cpu_idle: state=4294967295 cpu_id=6\n\
          <idle>-0 [006] d.h1.  1.300010: sched_waking: comm=a-0 pid=7 prio=120 target_cpu=006\n\
          <idle>-0 [006] d.h1.  1.300015: sched_wakeup: comm=a-0 pid=7 prio=120 target_cpu=006\n\
          <idle>-0 [006] d..1.  1.300020: sched_switch: prev_comm=swapper/6 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a-0 next_pid=7 next_prio=120\n\
             a-0-7 [006] d.h1.  1.400000: sched_waking: comm=b-0 pid=8 prio=120 target_cpu=006\n\
             a-0-7 [006] d.h1.  1.400001: sched_wakeup: comm=b-0 pid=8 prio=120 target_cpu=006\n\
             a-0-7 [006] d..1.  1.400020: sched_switch: prev_comm=a-0 prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=b-0 next_pid=8 next_prio=120\n\
             b-0-8 [006] d..1.  1.450000: cpu_frequency: state=2802000 cpu_id=6\n\
             b-0-8 [006] d..1.  1.500020: sched_switch: prev_comm=b-0 prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=a-0 next_pid=7 next_prio=120\n\
             a-0-7 [006] d..1.  1.500120: sched_switch: prev_comm=a-0 prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/6 next_pid=0 next_prio=120\n\
          <idle>-0 [006] d..1.  1.500120: cpu_idle: state=0 cpu_id=6\n\
          <idle>-0 [006] d..1.  1.500220: cpu_idle_miss: cpu_id=6 state=0 type=below\n\
          <idle>-0 [000] d..1.  1.600000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a-0 next_pid=7 next_prio=120\n\
          <idle>-0 [007] d..1.  2.000000: cpu_idle: state=1 cpu_id=7\n";

    #[test]
    fn by_hand() {
        let text = "seconds 2\ntask a 1 0 0 -1 -1 9:1:100000\ntask b 1 0 0 -1 -1 9:1:100000\n";
        let workload = BoardWorkload::parse(&Source::new("x.wl.txt", text)).unwrap();
        let execution = Execution::read(TRACE.as_bytes(), &workload, None).unwrap();
        assert_eq!((execution.start, execution.end), (0, 2_000_000_000));
        let all = figures(&execution, &workload);
        let figure = |name: &str| {
            let found = all.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no {name}"));
            found.value
        };
        let window_s = 0.745;
        for (name, expected) in [
            // 100 ms, 100 us, and from 1.6 on.
            ("cpu a", (0.1 + 0.0001 + 0.395) / window_s * 100.0),
            ("cpu a on little", 0.395 / window_s * 100.0),
            ("cpu b", 0.1 / window_s * 100.0),
            ("busy big", 0.2001 / window_s * 100.0),
            ("freq big", (500.0 * 0.2 + 2802.0 * 0.545) / window_s),
            ("freq lowest big", 0.2 / window_s * 100.0),
            ("freq highest big", 0.545 / window_s * 100.0),
            ("freq changes big", 1.0 / window_s),
            // 50 ms of the window, of two CPUs.
            ("idle c2 big", 0.05 / window_s * 50.0),
            ("idle entries big", 1.0 / window_s),
            ("idle too shallow", 100.0),
            ("switches", 4.0 / window_s),
            ("wakings a", 1.0 / window_s),
            ("migrations a", 1.0 / window_s),
            ("involuntary a", 1.0 / window_s),
            // Awake from 1.30001 to 1.50012: over two periods.
            ("late a", 2.0 / window_s),
            ("late b", 1.0 / window_s),
        ] {
            let value = figure(name).unwrap_or_else(|| panic!("{name} has no value"));
            assert!((value - expected).abs() < 1e-6, "{name}: {value}, not {expected}");
        }
        assert_eq!(figure("waking a idle p50"), None, "of one sample");
        let sums = sum_up(&execution, &workload);
        assert_eq!(sums.waking[0], [vec![10_000], vec![]], "a on an idle CPU");
        assert_eq!(sums.waking[1], [vec![], vec![20_000]], "b on a busy one");
        assert_eq!(sums.wakeup, [vec![5_000], vec![19_000]]);
    }
}
