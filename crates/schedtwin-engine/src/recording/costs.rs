// SPDX-License-Identifier: GPL-2.0-or-later
//! Costs of a machine that its own recording shows: how long CPUs take to leave idle states, and what the kernel's
//! paths from a wakeup to the switch take.
//!
//! # Idea
//!
//! A wakeup of a thread on an idle CPU leaves four stamps, and between them lies what the machine file needs:
//!
//! ```text
//!  waker's CPU   sched_waking ──┐ path of the wakeup, sending the interrupt
//!  idle CPU      (cpu_idle k)   └──► interrupt arrives ── exit ──► cpu_idle exit ── handler, idle loop, schedule ──► sched_switch
//!                                    └────────── exit of state k ────────┘└──────────────── run ───────────────────┘
//! ```
//!
//! # Algorithm
//!
//! 1. *Exit*: sched_waking by another CPU to the end of cpu_idle, of a CPU that had been idle for longer than the state's
//!    entry takes. The waker's path and the interrupt's way, as the machine file has them, are taken off. The median is the
//!    state's `exit_ns`, or its `exit_ipi_ns` where the file tells the two apart.
//! 2. *Run*: end of cpu_idle to the switch. Its model is `interrupt_ns + idle_exit_ns + schedule_ns + context_switch_ns`;
//!    each of them is scaled by the same factor, so that the sum is the median.
//! 3. *Local*: sched_waking by an interrupt on the CPU itself, which was idle, to the switch. Less the parts known from 2, it
//!    is `wakeup_ns`.
//! 4. *Tick*: from entry to exit of the timer's interrupt: `interrupt_ns + hrtimer_ns + tick_ns`, of which the last is told.
//!
//! Paths are work where the machine's costs are: a time counts by the capacity and frequency of its CPU then. The cost of an
//! event, where the recorder measured it, is taken off each stretch. A figure needs [`SAMPLES_LEAST`] samples; what has
//! fewer stays as it was.
//!
//! Differences: exits that a timer causes have no stamp of their cause and are taken to last as long as those that another
//! CPU causes, where the file does not tell them apart; entry latencies are not measured.

use super::other_machine::{self, Seen};
use super::{Device, device, unreadable};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_machine::{CostScale, Machine};
use schedtwin_trace::event::{NameId, TraceEvent, TraceEventKind, TraceSource};
use schedtwin_trace::sources;
use schedtwin_types::Ns;
use schedtwin_workload::recorded::{Builder, RecordedCpu};
use std::collections::BTreeMap;
use std::path::Path;

/// Samples that a figure needs.
pub const SAMPLES_LEAST: usize = 30;

/// Samples of one kind that are kept: the first ones of a long recording.
const SAMPLES_MOST: usize = 1 << 20;

/// Pending wakeups that are kept.
const PENDING_MOST: usize = 1 << 16;

/// The distribution of a measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median, and the 5th and 95th percentile.
    pub median: f64,
    /// See `median`.
    pub p05: f64,
    /// See `median`.
    pub p95: f64,
    /// How many samples.
    pub samples: usize,
}

impl Spread {
    fn of(mut samples: Vec<f64>) -> Option<Spread> {
        if samples.len() < SAMPLES_LEAST {
            return None;
        }
        samples.sort_by(f64::total_cmp);
        let at = |percent: usize| samples[(samples.len() - 1) * percent / 100];
        Some(Spread { median: at(50), p05: at(5), p95: at(95), samples: samples.len() })
    }

    /// Each value through `f`.
    fn map(self, f: impl Fn(f64) -> f64) -> Spread {
        Spread { median: f(self.median), p05: f(self.p05), p95: f(self.p95), ..self }
    }
}

/// A key of a machine file that the recording shows.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredKey {
    /// Its path in the file: `core.little.idle[1].exit_ns`.
    pub path: String,
    /// Its value in the machine file, ns.
    pub before: u64,
    /// Its value by the recording, ns.
    pub value: u64,
    /// The spread of it.
    pub spread: Spread,
}

/// The measurements of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredCosts {
    /// Keys of the machine file.
    pub keys: Vec<MeasuredKey>,
    /// Further durations that no key of the file has, in ns of the recorded CPUs: interrupts by device and softirqs.
    pub durations: Vec<(String, Spread)>,
    /// Figures that the recording has too few samples of, in words.
    pub missing: Vec<String>,
}

/// Measures the costs of the machine that a recording was made on. A recording that is of another machine is refused, with
/// all signs of it; `any`: it is taken all the same.
pub fn measure_costs(
    path: &Path,
    machine: &Machine,
    any: bool,
) -> Result<MeasuredCosts, Diagnostics> {
    let name = path.display().to_string();
    let open = || sources::open(path).map_err(|fault| unreadable(&name, &fault));
    let cpus = recorded_cpus(open()?, &name, machine, any)?;
    measure_events(open()?, &name, machine, &cpus)
}

/// The capacities and highest frequencies of the recorded CPUs, and of each the machine's kind of core.
fn recorded_cpus(
    mut source: impl TraceSource,
    name: &str,
    machine: &Machine,
    any: bool,
) -> Result<Vec<(RecordedCpu, Option<usize>)>, Diagnostics> {
    let mut builder = Builder::new();
    let mut seen = Seen::default();
    while let Some(event) = source.next_event().map_err(|fault| unreadable(name, &fault))? {
        builder.cpu_exists(event.cpu.index());
        match event.kind {
            TraceEventKind::Frequency { cpu, khz } => {
                builder.frequency(event.at, cpu.index(), khz);
            }
            TraceEventKind::Idle { cpu, state: Some(state) } => seen.idle(cpu, state),
            _ => {}
        }
    }
    seen.nr_cpus = source.header().nr_cpus;
    let signs = other_machine::signs(&builder, &seen, machine);
    if !any && !signs.is_empty() {
        let help = "name the machine that was recorded (`schedtwin capture` describes it), or give --force";
        let mut faults = Diagnostics::new();
        for sign in signs {
            let what = format!("it is of another machine: {sign}");
            faults.push_whole(&Source::new(name, ""), what, Some(help.to_owned()));
        }
        return Err(faults);
    }
    if builder.nr_cpus() > machine.nr_cpus() {
        let (has, needs) = (machine.nr_cpus(), builder.nr_cpus());
        let message =
            format!("the trace has a CPU {}, and {} has {has} CPUs", needs - 1, machine.identity);
        return Err(super::refusal(name, message, None));
    }
    let silicon = device::silicon(&builder, Device::from(machine))
        .map_err(|fault| super::refusal(name, fault, None))?;
    let of = |(cpu, recorded): (usize, &RecordedCpu)| {
        // CPUs of another device have idle states of their own.
        (*recorded, silicon.own_numbers.then(|| machine.cpus[cpu].core_type))
    };
    Ok(silicon.cpus.iter().enumerate().map(of).collect())
}

/// An idle CPU's last stay.
#[derive(Clone, Copy, Debug, Default)]
struct Stay {
    state: u32,
    entered: Ns,
    left: Option<Ns>,
}

#[derive(Clone, Debug, Default)]
struct CpuNow {
    stay: Option<Stay>,
    khz: u32,
    vector: Option<(NameId, Ns)>,
    irq: Option<(NameId, Ns)>,
    softirq: Option<(u8, Ns)>,
}

#[derive(Clone, Copy, Debug)]
struct Woken {
    at: Ns,
    cpu: usize,
    by_idle: bool,
    /// Stamped by `sched_waking`, before the search for a CPU.
    early: bool,
}

/// Collects samples.
struct Collector<'a> {
    machine: &'a Machine,
    recorded: &'a [(RecordedCpu, Option<usize>)],
    cpus: Vec<CpuNow>,
    woken: BTreeMap<u32, Woken>,
    /// Cost of an event itself, ns.
    event_ns: f64,
    /// Of each kind of core and state: times in ns, the waker's path and the interrupt's way taken off.
    exits: BTreeMap<(usize, u32), Vec<f64>>,
    run: Vec<f64>,
    local: Vec<f64>,
    tick: Vec<f64>,
    durations: BTreeMap<(&'static str, NameId, u8), Vec<f64>>,
}

/// Measures from the events of any source.
fn measure_events(
    mut source: impl TraceSource,
    name: &str,
    machine: &Machine,
    recorded: &[(RecordedCpu, Option<usize>)],
) -> Result<MeasuredCosts, Diagnostics> {
    let cost = source.header().options.iter().find(|(name, _)| name == "cost_of_an_event_ns");
    let event_ns = cost.and_then(|(_, value)| value.parse().ok()).unwrap_or(0.0);
    let mut collector = Collector {
        machine,
        recorded,
        cpus: vec![CpuNow::default(); recorded.len()],
        woken: BTreeMap::new(),
        event_ns,
        exits: BTreeMap::new(),
        run: Vec::new(),
        local: Vec::new(),
        tick: Vec::new(),
        durations: BTreeMap::new(),
    };
    let mut timers: Vec<Option<bool>> = Vec::new();
    while let Some(event) = source.next_event().map_err(|fault| unreadable(name, &fault))? {
        collector.event(&event, &mut |name: NameId| {
            if name.index() >= timers.len() {
                timers.resize(name.index() + 1, None);
            }
            *timers[name.index()].get_or_insert_with(|| source.names().text(name).contains("timer"))
        });
    }
    let named = |(kind, name, vector): (&str, NameId, u8)| match kind {
        "softirq" => format!("softirq {}", SOFTIRQS.get(usize::from(vector)).unwrap_or(&"?")),
        kind => format!("{kind} {}", source.names().text(name)),
    };
    Ok(collector.finish(named))
}

/// Names of the softirqs, in the order of their numbers (include/linux/interrupt.h).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

fn keep(samples: &mut Vec<f64>, sample: f64) {
    if samples.len() < SAMPLES_MOST {
        samples.push(sample);
    }
}

impl Collector<'_> {
    /// Work that a CPU does in a ns, at most 1.
    fn speed(&self, cpu: usize) -> f64 {
        if self.machine.path_costs.scale == CostScale::Time {
            return 1.0;
        }
        let RecordedCpu { capacity, max_khz } = self.recorded[cpu].0;
        let khz = self.cpus[cpu].khz;
        let frequency = if khz == 0 { 1.0 } else { f64::from(khz) / f64::from(max_khz) };
        f64::from(capacity) / 1024.0 * frequency.min(1.0)
    }

    /// The time from one stamp to another, the first one's own cost taken off.
    fn stretch(&self, from: Ns, to: Ns) -> f64 {
        ((to - from) as f64 - self.event_ns).max(0.0)
    }

    fn event(&mut self, event: &TraceEvent, is_timer: &mut dyn FnMut(NameId) -> bool) {
        let (at, cpu) = (event.at, event.cpu.index());
        match event.kind {
            TraceEventKind::Idle { cpu, state } if cpu.index() < self.cpus.len() => {
                let now = &mut self.cpus[cpu.index()];
                match state {
                    Some(state) => now.stay = Some(Stay { state, entered: at, left: None }),
                    None => now.stay.iter_mut().for_each(|stay| stay.left = Some(at)),
                }
            }
            TraceEventKind::Frequency { cpu, khz } if cpu.index() < self.cpus.len() => {
                self.cpus[cpu.index()].khz = khz;
            }
            TraceEventKind::Waking { task, .. } | TraceEventKind::Wakeup { task, .. } => {
                let early = matches!(event.kind, TraceEventKind::Waking { .. });
                if (early || !self.woken.contains_key(&task.pid)) && self.woken.len() < PENDING_MOST
                {
                    let by_idle = event.context.pid == 0;
                    self.woken.insert(task.pid, Woken { at, cpu, by_idle, early });
                }
            }
            TraceEventKind::Switch { prev, next, .. } => {
                let from_idle = prev.is_some_and(|prev| prev.pid == 0);
                if let Some(woken) = self.woken.remove(&next.pid)
                    && from_idle
                    && at >= woken.at
                {
                    self.switch_from_idle(at, cpu, woken);
                }
            }
            TraceEventKind::VectorEntry { name } => self.cpus[cpu].vector = Some((name, at)),
            TraceEventKind::VectorExit { name } => {
                if let Some((entered, since)) = self.cpus[cpu].vector.take()
                    && entered == name
                    && at >= since
                {
                    self.interrupt_ends(cpu, name, self.stretch(since, at), is_timer(name));
                }
            }
            TraceEventKind::IrqEntry { handler, .. } => self.cpus[cpu].irq = Some((handler, at)),
            TraceEventKind::IrqExit { .. } => {
                if let Some((handler, since)) = self.cpus[cpu].irq.take()
                    && at >= since
                {
                    self.interrupt_ends(cpu, handler, self.stretch(since, at), is_timer(handler));
                }
            }
            TraceEventKind::SoftirqEntry { vector } => {
                self.cpus[cpu].softirq = Some((vector, at));
            }
            TraceEventKind::SoftirqExit { vector } => {
                if let Some((entered, since)) = self.cpus[cpu].softirq.take()
                    && entered == vector
                    && at >= since
                {
                    let ns = self.stretch(since, at);
                    keep(self.durations.entry(("softirq", NameId::NONE, vector)).or_default(), ns);
                }
            }
            TraceEventKind::Lost { .. } | TraceEventKind::Begins => {
                let khz = self.cpus[cpu].khz;
                self.cpus[cpu] = CpuNow { khz, ..CpuNow::default() };
                self.woken.clear();
            }
            _ => {}
        }
    }

    /// An interrupt has taken so long; a timer's is a tick.
    fn interrupt_ends(&mut self, cpu: usize, handler: NameId, ns: f64, is_timer: bool) {
        if is_timer {
            let work = ns * self.speed(cpu);
            keep(&mut self.tick, work);
        }
        keep(self.durations.entry(("interrupt", handler, 0)).or_default(), ns);
    }

    /// A thread that was woken runs on a CPU that was idle.
    fn switch_from_idle(&mut self, at: Ns, cpu: usize, woken: Woken) {
        let Some(Stay { state, entered, left: Some(left) }) = self.cpus[cpu].stay else { return };
        if left > at {
            return;
        }
        if woken.cpu == cpu {
            // The interrupt that woke it came first, then the wakeup.
            if woken.by_idle && woken.early && woken.at >= left {
                let work = self.stretch(woken.at, at) * self.speed(cpu);
                keep(&mut self.local, work);
            }
            return;
        }
        if woken.at >= left || woken.at <= entered {
            return;
        }
        let work = self.stretch(left, at) * self.speed(cpu);
        keep(&mut self.run, work);
        let Some(core) = self.recorded[cpu].1 else { return };
        let Some(known) = self.machine.core_types[core].idle_states.get(state as usize) else {
            return;
        };
        if woken.at - entered <= known.entry_latency_ns {
            return;
        }
        let costs = &self.machine.path_costs;
        let search = costs.energy_per_domain_ns * self.machine.domains.len() as u64;
        let path = if woken.early { costs.wakeup_ns + search } else { 0 } + costs.ipi_send_ns;
        let interrupts = &self.machine.interrupts;
        let way = (interrupts.ipi_latency_min_ns + interrupts.ipi_latency_max_ns) as f64 / 2.0;
        let before = path as f64 / self.speed(woken.cpu) + way;
        let exit = (self.stretch(woken.at, left) - before).max(0.0);
        keep(self.exits.entry((core, state)).or_default(), exit);
    }

    fn finish(mut self, named: impl Fn((&str, NameId, u8)) -> String) -> MeasuredCosts {
        let mut measured = MeasuredCosts::default();
        let machine = self.machine;
        for (index, core) in machine.core_types.iter().enumerate() {
            let mut shallower = 0;
            for (state, known) in core.idle_states.iter().enumerate() {
                // A CPU that polls leaves at once.
                if known.polling {
                    continue;
                }
                let samples = self.exits.remove(&(index, state as u32)).unwrap_or_default();
                let count = samples.len();
                // A file says for each state that it takes no less than the one before.
                let spread = Spread::of(samples)
                    .map(|spread| Spread { median: spread.median.max(shallower as f64), ..spread });
                let own = known.exit_ipi_latency_ns != known.exit_latency_ns;
                let key = if own { "exit_ipi_ns" } else { "exit_ns" };
                let path = format!("core.{}.idle[{state}].{key}", core.name);
                measured.add(path, known.exit_ipi_latency_ns, spread, count);
                shallower = match spread {
                    Some(spread) if !own => spread.median.round() as u64,
                    _ => known.exit_latency_ns,
                };
            }
        }
        let costs = &machine.path_costs;
        let parts = [
            ("interrupt_ns", costs.interrupt_ns),
            ("idle_exit_ns", costs.idle_exit_ns),
            ("schedule_ns", costs.schedule_ns),
            ("context_switch_ns", costs.context_switch_ns),
        ];
        let sum: u64 = parts.iter().map(|(_, ns)| ns).sum();
        let count = self.run.len();
        let run = Spread::of(self.run).filter(|_| sum > 0);
        let factor = run.map_or(1.0, |run| run.median / sum as f64);
        for (name, ns) in parts {
            let share = ns as f64 / sum.max(1) as f64;
            let spread = run.map(|run| run.map(|all| all * share));
            measured.add(format!("path_costs.{name}"), ns, spread, count);
        }
        let scaled = |ns: u64| ns as f64 * factor;
        let rest = scaled(costs.idle_exit_ns + costs.schedule_ns + costs.context_switch_ns);
        let count = self.local.len();
        let local = Spread::of(self.local).map(|local| local.map(|all| (all - rest).max(0.0)));
        measured.add("path_costs.wakeup_ns".to_owned(), costs.wakeup_ns, local, count);
        let rest = scaled(costs.interrupt_ns) + costs.hrtimer_ns as f64;
        let count = self.tick.len();
        let tick = Spread::of(self.tick).map(|tick| tick.map(|all| (all - rest).max(0.0)));
        measured.add("path_costs.tick_ns".to_owned(), costs.tick_ns, tick, count);
        for (key, samples) in self.durations {
            if let Some(spread) = Spread::of(samples) {
                measured.durations.push((named(key), spread));
            }
        }
        measured
    }
}

impl MeasuredCosts {
    fn add(&mut self, path: String, before: u64, spread: Option<Spread>, samples: usize) {
        match spread {
            Some(spread) => {
                let value = spread.median.round() as u64;
                self.keys.push(MeasuredKey { path, before, value, spread });
            }
            None => self.missing.push(format!("{path} ({samples} samples)")),
        }
    }
}
