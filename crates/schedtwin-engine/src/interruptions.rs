// SPDX-License-Identifier: GPL-2.0-or-later
//! What wakes idle CPUs, and how long they stay idle: counts by cause, quantiles of stays.
//!
//! ```text
//!  IdleEnter ───── stay ───── IdleExit, IrqEntry(lines) ── Switch(task): by a timer, kworker
//!                                                       └─ IdleEnter: by a timer, nothing follows
//! ```
//!
//! An *interruption* ends a stay in an idle state. Its cause is the interrupt that came, and the first task that runs before the CPU
//! is idle again, if there is one. Rates are per second that a CPU is idle, since a busy CPU cannot be woken.

use crate::meter::distribution::Distribution;
use crate::twin::{Observer, Twin};
use crate::{Scenario, board::FlatBoard};
use schedtwin_types::{
    CpuId, DecisionRecord, Fact, FactKind, IrqLine, IrqLines, Ns, PowerSource, TaskId,
};
use std::collections::BTreeMap;

const NS_PER_S: f64 = 1e9;

/// What interrupted idle CPUs of one kind.
#[derive(Clone, Debug)]
pub struct Interrupted {
    /// The capacity of these CPUs.
    pub capacity: u32,
    /// How many there are.
    pub nr_cpus: usize,
    /// How long they were idle, together.
    pub idle_ns: Ns,
    /// The simulated time.
    pub simulated_ns: Ns,
    /// Lengths of stays that ended, ns.
    stays: Distribution,
    /// Stays that had not ended when the run did.
    pub open: u64,
    /// Interruptions by cause: the interrupt, then what ran.
    pub causes: BTreeMap<(&'static str, String), u64>,
}

/// The interrupts, by the line that is named if several came together.
const LINES: [(IrqLine, &str); 7] = [
    (IrqLine::ClockEvent, "timer"),
    (IrqLine::TimerBroadcast, "timer"),
    (IrqLine::BroadcastDevice, "timer"),
    (IrqLine::Peripheral, "device"),
    (IrqLine::WakeList, "remote wakeup"),
    (IrqLine::NohzKick, "balance kick"),
    (IrqLine::IrqWork, "irq_work"),
];

fn line_of(lines: IrqLines) -> &'static str {
    let named = LINES.iter().find(|(line, _)| lines.contains(*line));
    named.map_or("reschedule", |(_, name)| *name)
}

/// The name under which tasks are counted together: without numbers of CPUs and instances.
fn kind_of(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("kworker/") {
        let unbound = if rest.starts_with('u') { "/u" } else { "" };
        let high = if rest.ends_with('H') { " high" } else { "" };
        return format!("kworker{unbound}{high}");
    }
    match name.rsplit_once('/') {
        Some((kind, cpu)) if cpu.chars().all(|c| c.is_ascii_digit()) => kind.to_string(),
        _ => name.to_string(),
    }
}

/// The state of a CPU between two facts.
#[derive(Clone, Default)]
struct Cpu {
    /// It was interrupted by this, and nothing has run yet.
    by: Option<&'static str>,
    /// It has left its state, and the interrupt is not known yet.
    woken: bool,
    /// Since when it is in an idle state.
    idle_since: Option<Ns>,
}

struct Watch {
    cpus: Vec<Cpu>,
    kind_of_cpu: Vec<usize>,
    found: Vec<Interrupted>,
    names: Vec<String>,
    /// Tasks before this one are the kernel's own.
    first_of_workload: usize,
}

impl Watch {
    fn interrupted(&mut self, cpu: CpuId, by: &'static str, then: String) {
        let kind = &mut self.found[self.kind_of_cpu[cpu.index()]];
        *kind.causes.entry((by, then)).or_insert(0) += 1;
    }

    fn runs(&self, task: TaskId) -> String {
        match self.names.get(task.index()) {
            Some(name) if task.index() < self.first_of_workload => kind_of(name),
            _ => "the workload".to_string(),
        }
    }
}

impl Observer for Watch {
    const DECISIONS: bool = false;

    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        self.names.resize(self.names.len().max(id.index() + 1), String::new());
        self.names[id.index()] = name.to_string();
    }

    fn fact(&mut self, fact: &Fact) {
        let cpu = fact.cpu;
        match fact.kind {
            FactKind::IdleExit { residency_ns, .. } => {
                let kind = &mut self.found[self.kind_of_cpu[cpu.index()]];
                kind.idle_ns += residency_ns;
                kind.stays.record(residency_ns);
                // A polling CPU is woken without an interrupt.
                self.cpus[cpu.index()] = Cpu { by: Some("flag"), woken: true, idle_since: None };
            }
            FactKind::IrqEntry { lines } if self.cpus[cpu.index()].woken => {
                self.cpus[cpu.index()] =
                    Cpu { by: Some(line_of(lines)), woken: false, idle_since: None };
            }
            FactKind::IdleEnter { .. } => {
                self.cpus[cpu.index()].idle_since = Some(fact.at);
                if let Some(by) = self.cpus[cpu.index()].by.take() {
                    self.interrupted(cpu, by, "nothing follows".to_string());
                }
            }
            FactKind::Switch { prev, next, .. } if prev == TaskId::IDLE => {
                if let Some(by) = self.cpus[cpu.index()].by.take() {
                    let then = self.runs(next);
                    self.interrupted(cpu, by, then);
                }
            }
            _ => {}
        }
    }

    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

impl Scenario {
    /// Runs it, and counts what interrupts idle CPUs, those of each capacity together; the weakest first.
    pub fn interruptions(&self, seed: u64) -> Vec<Interrupted> {
        let mut twin: Twin<FlatBoard> = self.twin(seed);
        let capacities: Vec<u32> = self.machine().cpus.iter().map(|cpu| cpu.capacity).collect();
        let mut kinds = capacities.clone();
        kinds.sort_unstable();
        kinds.dedup();
        let found = |capacity: &u32| Interrupted {
            capacity: *capacity,
            nr_cpus: capacities.iter().filter(|other| *other == capacity).count(),
            idle_ns: 0,
            simulated_ns: 0,
            stays: Distribution::new(),
            open: 0,
            causes: BTreeMap::new(),
        };
        let place = |capacity: &u32| kinds.iter().position(|kind| kind == capacity);
        let own = twin.kernel().kernel_threads().map(|task| task.index() + 1).max().unwrap_or(1);
        let mut watch = Watch {
            cpus: vec![Cpu::default(); capacities.len()],
            kind_of_cpu: capacities.iter().map(|c| place(c).expect("one of them")).collect(),
            found: kinds.iter().map(found).collect(),
            names: Vec::new(),
            first_of_workload: own,
        };
        twin.introduce(&mut watch);
        while twin.step(&mut watch) {}
        let simulated_ns = twin.now();
        for (cpu, kind) in watch.cpus.iter().zip(&watch.kind_of_cpu) {
            if let Some(since) = cpu.idle_since {
                watch.found[*kind].idle_ns += simulated_ns.saturating_sub(since);
                watch.found[*kind].open += 1;
            }
        }
        watch.found.iter_mut().for_each(|kind| kind.simulated_ns = simulated_ns);
        watch.found
    }
}

impl Interrupted {
    /// How often it happens per second that one of these CPUs is idle.
    pub fn per_idle_second(&self, count: u64) -> f64 {
        count as f64 * NS_PER_S / (self.idle_ns.max(1) as f64)
    }

    /// As text: stays, then the causes by their rate; those below 1 % of all together.
    pub fn table(&self) -> String {
        let total: u64 = self.causes.values().sum();
        let stays = self.stays.quantiles([0.1, 0.5, 0.9, 0.99]);
        let [p10, p50, p90, p99] = stays.map(|ns| ns.unwrap_or(0.0) / 1000.0);
        let share = self.idle_ns as f64 / (self.simulated_ns.max(1) as f64 * self.nr_cpus as f64);
        let per_second = self.stays.count() as f64 * NS_PER_S
            / (self.simulated_ns.max(1) as f64 * self.nr_cpus as f64);
        let mut text = format!(
            "{} CPUs of capacity {}: idle {:.0} %, {per_second:.1} stays a second and CPU; us: p10 {p10:.0}, p50 {p50:.0}, \
             p90 {p90:.0}, p99 {p99:.0}{}\n{:>9.1}  interruptions per idle second and CPU\n",
            self.nr_cpus,
            self.capacity,
            share * 100.0,
            match self.open {
                0 => String::new(),
                open => format!("; {open} not ended when the run did"),
            },
            self.per_idle_second(total),
        );
        let mut sorted: Vec<_> = self.causes.iter().collect();
        sorted.sort_by_key(|(cause, count)| (std::cmp::Reverse(**count), (*cause).clone()));
        let mut rest = 0;
        for ((by, then), count) in sorted {
            if count * 100 < total {
                rest += count;
                continue;
            }
            let rate = self.per_idle_second(*count);
            text.push_str(&format!("{rate:>9.2}  {by}: {then}\n"));
        }
        if rest > 0 {
            text.push_str(&format!("{:>9.2}  others\n", self.per_idle_second(rest)));
        }
        text
    }
}
