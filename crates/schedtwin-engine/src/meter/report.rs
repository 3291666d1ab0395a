// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes down what the meter counted, as metrics with stable names in a fixed order.
//!
//! The order is: window, progress (throughput, frames, slack), energy, latencies, idle, frequency,
//! counts, shares of time. Within a metric: the whole machine first, then its parts (task groups in
//! the order of their first task; clusters, domains and CPUs by number), then its stats.
//!
//! Which metrics exist depends on machine and task groups only, never on what happened, so that the
//! columns of a comparison have the same rows: what has no samples has no value. Here, and only
//! here, integers become floating point, by one division per value.

use super::distribution::Distribution;
use super::need::{Chains, DomainNeed};
use super::{
    BALANCE_KINDS, CpuMeter, Latencies, Meter, MeterPowerDomain, SlackSum, TaskMeter, WAKE_SOURCES,
};
use crate::result::{CpuResult, Metric, TaskResult};
use schedtwin_types::metric::{self, Better, DeclaredMetric, Labels};
use schedtwin_types::property::Property;
use schedtwin_types::{IpiKind, Ns, PowerDomainId};
use std::collections::BTreeSet;
use std::path::Path;

/// Reads one count of a CPU or a task.
type CountOf<T> = fn(&T) -> u64;

const NS_PER_US: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;
const FJ_PER_MJ: f64 = 1e12;
const UW_PER_MW: f64 = 1e3;
const KHZ_PER_MHZ: f64 = 1e3;

/// Labels of the wake sources, by number.
const SOURCE_NAMES: [&str; WAKE_SOURCES] = ["task", "timer", "kernel"];
/// Labels of the kinds of interrupt, by number.
const IPI_NAMES: [&str; IpiKind::COUNT] =
    ["reschedule", "wake_list", "nohz_kick", "irq_work", "timer_broadcast"];
/// Labels of `enum cpu_idle_type`, by number.
const BALANCE_NAMES: [&str; BALANCE_KINDS] = ["busy", "idle", "newly_idle"];

/// The metrics so far, and the one of which values are being added.
struct Sheet {
    metrics: Vec<Metric>,
    of: &'static DeclaredMetric,
}

impl Sheet {
    /// The following values are of this metric.
    fn metric(&mut self, of: &'static DeclaredMetric) {
        self.of = of;
    }

    fn add(&mut self, stat: &'static str, labels: Labels, value: Option<f64>) {
        self.metrics.push(self.of.value(stat, labels, value));
    }

    fn count(&mut self, labels: Labels, value: u64) {
        self.add("sum", labels, Some(value as f64));
    }

    /// Mean, quantiles and maximum, in units of `unit_ns`.
    fn distribution(&mut self, labels: &Labels, samples: &Distribution, unit_ns: f64) {
        let [p50, p90, p95, p99, p99_9] = samples.quantiles([0.5, 0.9, 0.95, 0.99, 0.999]);
        let stats = [
            ("mean", samples.mean()),
            ("p50", p50),
            ("p90", p90),
            ("p95", p95),
            ("p99", p99),
            ("p99.9", p99_9),
            ("max", samples.max()),
        ];
        for (stat, ns) in stats {
            self.add(stat, labels.clone(), ns.map(|ns| ns / unit_ns));
        }
    }
}

fn label(key: &'static str, value: impl ToString) -> Labels {
    vec![(key, value.to_string())]
}

/// `part / whole`, undefined without a whole.
fn ratio(part: u128, whole: u128) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn percent(part: u128, whole: u128) -> Option<f64> {
    ratio(part, whole).map(|share| share * 100.0)
}

/// All metrics of a run whose window is `span_ns` long.
pub(super) fn metrics(meter: &Meter, span_ns: Ns) -> Vec<Metric> {
    let mut sheet = Sheet { metrics: Vec::new(), of: &metric::ELAPSED };
    window(&mut sheet, meter, span_ns);
    progress(&mut sheet, meter, span_ns);
    energy(&mut sheet, meter, span_ns);
    sheet.metric(&metric::WAKING_LATENCY);
    latencies(&mut sheet, meter, &meter.waking);
    sheet.metric(&metric::WAKEUP_LATENCY);
    latencies(&mut sheet, meter, &meter.wakeup);
    run_delay(&mut sheet, meter);
    idle(&mut sheet, meter, span_ns);
    frequency(&mut sheet, meter, span_ns);
    needs(&mut sheet, meter);
    provision(&mut sheet, meter);
    counts(&mut sheet, meter);
    shares(&mut sheet, meter, span_ns);
    sheet.metrics
}

/// The window that every metric is about: from `warmup` on, `elapsed` long.
fn window(sheet: &mut Sheet, meter: &Meter, span_ns: Ns) {
    sheet.metric(&metric::ELAPSED);
    sheet.add("sum", vec![], Some(span_ns as f64 / NS_PER_S));
    sheet.metric(&metric::WARMUP);
    sheet.add("sum", vec![], Some(meter.window_start as f64 / NS_PER_S));
}

fn progress(sheet: &mut Sheet, meter: &Meter, span_ns: Ns) {
    let per_second = |jobs: u64| ratio(u128::from(jobs), u128::from(span_ns)).map(|r| r * NS_PER_S);
    let frames = Distribution::merged(meter.groups.iter().map(|g| &g.frames));
    sheet.metric(&metric::THROUGHPUT);
    sheet.add("mean", vec![], per_second(frames.count()));
    for group in &meter.groups {
        sheet.add("mean", label("task", &group.name), per_second(group.frames.count()));
    }

    sheet.metric(&metric::OPEN_JOBS);
    sheet.count(vec![], meter.tasks.iter().map(|task| task.open_jobs).sum());
    for (group, sum) in meter.groups.iter().zip(sum_by_group(meter, |_, task| task.open_jobs)) {
        sheet.count(label("task", &group.name), sum);
    }

    sheet.metric(&metric::FRAME_DURATION);
    sheet.distribution(&vec![], &frames, NS_PER_MS);
    for group in &meter.groups {
        sheet.distribution(&label("task", &group.name), &group.frames, NS_PER_MS);
    }

    let mut all = SlackSum::default();
    for group in &meter.groups {
        all.merge(&group.slack);
    }
    let missed = |of: &SlackSum| percent(of.missed.into(), of.count.into());
    sheet.metric(&metric::MISSED_PERIODS);
    sheet.add("mean", vec![], missed(&all));
    for group in &meter.groups {
        sheet.add("mean", label("task", &group.name), missed(&group.slack));
    }

    sheet.metric(&metric::SLACK);
    let mut add_slack = |labels: Labels, slack: &SlackSum| {
        let some = slack.count > 0;
        let mean = some.then(|| slack.sum_ns as f64 / slack.count as f64 / NS_PER_MS);
        sheet.add("mean", labels.clone(), mean);
        sheet.add("min", labels, some.then(|| slack.min_ns as f64 / NS_PER_MS));
    };
    add_slack(vec![], &all);
    for group in &meter.groups {
        add_slack(label("task", &group.name), &group.slack);
    }

    sheet.metric(&metric::WU_LAT);
    let all = Distribution::merged(meter.groups.iter().map(|g| &g.wu_lat));
    sheet.distribution(&vec![], &all, NS_PER_US);
    for group in &meter.groups {
        sheet.distribution(&label("task", &group.name), &group.wu_lat, NS_PER_US);
    }
}

fn energy(sheet: &mut Sheet, meter: &Meter, span_ns: Ns) {
    let domain_fj = |id| meter.truth.domain_fj(&meter.setup, id) + meter.l3_fj(id);
    let mut parts: Vec<(Labels, u128)> = vec![(vec![], 0)];
    for (id, domain) in meter.setup.domains.iter_ids() {
        let fj = domain_fj(id);
        parts[0].1 += fj;
        parts.push((label("domain", &domain.name), fj));
    }
    let own = |id: PowerDomainId| meter.truth.power_domain_fj(&meter.setup, id);
    for (id, domain) in meter.setup.power_domains.iter_ids() {
        parts[0].1 += own(id);
        let clocks = domain.clocks.iter().map(|c| domain_fj(*c));
        let fj = domain.within.iter().map(|d| own(*d)).chain(clocks).sum();
        // One that draws nothing itself says nothing that its clocks do not say.
        if domain.uw.iter().chain(&domain.entry_energy_pj).any(|own| *own > 0) {
            parts.push((label(level_of(domain), &domain.name), fj));
        }
    }
    for cpu in 0..meter.cpus.len() {
        parts.push((label("cpu", cpu), meter.truth.cpu_fj(&meter.setup, cpu)));
    }
    // Without power data power is not known, and not zero.
    let is_known = meter.setup.has_power();
    sheet.metric(&metric::POWER);
    for (labels, fj) in &parts {
        // fJ per ns is µW.
        let mw = ratio(*fj, u128::from(span_ns)).map(|uw| uw / UW_PER_MW);
        sheet.add("mean", labels.clone(), mw.filter(|_| is_known));
    }
    sheet.metric(&metric::ENERGY);
    for (labels, fj) in parts {
        sheet.add("sum", labels, is_known.then_some(fj as f64 / FJ_PER_MJ));
    }
}

/// The label of a power domain: `package` if it is in no other one. Its power includes all within.
fn level_of(domain: &MeterPowerDomain) -> &'static str {
    if domain.outermost { "package" } else { "cluster" }
}

fn latencies(sheet: &mut Sheet, meter: &Meter, latencies: &Latencies) {
    let all = Distribution::merged(&latencies.by_place);
    sheet.distribution(&vec![], &all, NS_PER_US);
    for (group, samples) in meter.groups.iter().zip(&latencies.by_group) {
        sheet.distribution(&label("task", &group.name), samples, NS_PER_US);
    }
    for (cluster, samples) in meter.clusters.iter().zip(latencies.by_place.chunks(WAKE_SOURCES)) {
        let samples = Distribution::merged(samples);
        sheet.distribution(&label("cluster", cluster), &samples, NS_PER_US);
    }
    for (source, name) in SOURCE_NAMES.iter().enumerate() {
        let samples = latencies.by_place.iter().skip(source).step_by(WAKE_SOURCES);
        sheet.distribution(&label("source", name), &Distribution::merged(samples), NS_PER_US);
    }
}

/// The CPUs of each cluster.
fn members(meter: &Meter, cluster: usize) -> impl Iterator<Item = usize> + '_ {
    (0..meter.cpus.len()).filter(move |cpu| meter.cpus[*cpu].cluster as usize == cluster)
}

/// Waits for a CPU, with those that had not ended, and the counts of properties that were broken.
fn run_delay(sheet: &mut Sheet, meter: &Meter) {
    sheet.metric(&metric::RUN_DELAY);
    let mut add = |labels: Labels, part: &dyn Fn(&TaskMeter) -> bool| {
        let tasks = || meter.tasks.iter().filter(|task| task.counts() && part(task));
        let sum: Ns = tasks().map(|task| task.run_delay_ns).sum();
        let longest = tasks().map(|task| task.longest_wait_ns).max().unwrap_or(0);
        sheet.add("sum", labels.clone(), Some(sum as f64 / NS_PER_MS));
        sheet.add("max", labels, Some(longest as f64 / NS_PER_MS));
    };
    add(vec![], &|_| true);
    for (at, group) in meter.groups.iter().enumerate() {
        add(label("task", &group.name), &|task| task.group as usize == at);
    }
    type ClassOf = fn(i32) -> bool;
    let classes: [(&str, ClassOf); 3] = [
        ("deadline", |prio| prio < 0),
        ("rt", |prio| (0..100).contains(&prio)),
        ("fair", |prio| prio >= 100),
    ];
    for (class, of) in classes {
        add(label("class", class), &|task| of(task.prio));
    }
    for path in with_those_above(&meter.cgroups) {
        add(label("group", path), &|task| is_within(meter, task, path));
    }
    for cpu in 0..meter.cpus.len() {
        let ns = meter.waits.run_delay_ns(cpu) as f64;
        sheet.add("sum", label("cpu", cpu), Some(ns / NS_PER_MS));
    }
    sheet.metric(&metric::PSI_CPU_SOME);
    let (some, all) = meter.waits.psi_some();
    sheet.add("mean", vec![], percent(some, all));
    sheet.metric(&metric::STARVED);
    sheet.count(vec![], meter.waits.breaches(Property::Starvation));
    for (group, sum) in meter.groups.iter().zip(sum_by_group(meter, |_, task| task.starved)) {
        sheet.count(label("task", &group.name), sum);
    }
    sheet.metric(&metric::LOCK_HELD);
    sheet.count(vec![], meter.locks_held);
    sheet.metric(&metric::LATE);
    sheet.count(vec![], meter.waits.breaches(Property::LatencyBound));
    sheet.metric(&metric::THROTTLED_EARLY);
    sheet.count(vec![], meter.of_limits(Property::ThrottledEarly));
    sheet.metric(&metric::BANDWIDTH_EXCEEDED);
    sheet.count(vec![], meter.of_limits(Property::Bandwidth));
    sheet.metric(&metric::OWED);
    sheet.count(vec![], meter.fairness.owed.count);
    sheet.metric(&metric::PRIORITY_INVERTED);
    sheet.count(vec![], meter.waits.breaches(Property::PriorityInversion));
    sheet.metric(&metric::CPUS_WASTED);
    sheet.count(vec![], meter.waits.breaches(Property::WorkConservation));
    sheet.metric(&metric::WASTED_CPU_TIME);
    let (sum, longest) = meter.waits.wasted();
    sheet.add("sum", vec![], Some(sum as f64 / NS_PER_MS));
    sheet.add("max", vec![], Some(longest as f64 / NS_PER_MS));
    let broken = meter.broken(meter.end);
    let count = |property| broken.iter().find(|b| b.property == property).map_or(0, |b| b.count);
    sheet.metric(&metric::CLOCK_HELD);
    sheet.count(vec![], count(Property::ClockHeld));
    sheet.metric(&metric::CLOCK_ABOVE);
    sheet.count(vec![], count(Property::ClockAbove));
    sheet.metric(&metric::IDLE_STUCK);
    sheet.count(vec![], count(Property::IdleStuck));
}

fn idle(sheet: &mut Sheet, meter: &Meter, span_ns: Ns) {
    let misses: [(&'static DeclaredMetric, CountOf<CpuMeter>); 2] = [
        (&metric::IDLE_TOO_DEEP, |cpu| cpu.too_deep),
        (&metric::IDLE_TOO_SHALLOW, |cpu| cpu.too_shallow),
    ];
    for (miss, missed) in misses {
        let first = sheet.metrics.len();
        sheet.metric(miss);
        let counts = |cpus: &mut dyn Iterator<Item = usize>| {
            cpus.fold((0, 0), |(part, whole), cpu| {
                let cpu = &meter.cpus[cpu];
                (part + u128::from(missed(cpu)), whole + u128::from(cpu.idle_exits))
            })
        };
        let (missed, all) = counts(&mut (0..meter.cpus.len()));
        sheet.add("mean", vec![], percent(missed, all));
        for (cluster, name) in meter.clusters.iter().enumerate() {
            let (part, own) = counts(&mut members(meter, cluster));
            sheet.add("mean", label("cluster", name), percent(part, own));
            // Of all CPUs' wakeups, so that the clusters' add up to the whole: as LISA's users print it.
            let labels = vec![("cluster", name.clone()), ("of", "all".to_owned())];
            sheet.add("mean", labels, percent(part, all));
        }
        // Too shallow a state costs power and nothing else.
        if miss.name == metric::IDLE_TOO_SHALLOW.name && !meter.setup.has_power() {
            sheet.metrics[first..].iter_mut().for_each(|metric| metric.better = Better::Neutral);
        }
    }

    sheet.metric(&metric::IDLE_RESIDENCY);
    for (cluster, name) in meter.clusters.iter().enumerate() {
        let states = |cpu: usize| &meter.setup.cpus[cpu].idle_states;
        let count = members(meter, cluster).map(|cpu| states(cpu).len()).max().unwrap_or(0);
        for state in 0..count {
            let (mut part, mut whole, mut state_name) = (0, 0, "");
            for cpu in members(meter, cluster) {
                whole += u128::from(span_ns);
                if let Some(known) = states(cpu).get(state) {
                    part += u128::from(meter.truth.state_ns(cpu, state));
                    state_name = &known.name;
                }
            }
            let labels = vec![("cluster", name.clone()), ("state", state_name.to_owned())];
            sheet.add("mean", labels, percent(part, whole));
        }
    }

    sheet.metric(&metric::CLUSTER_RESIDENCY);
    for (cluster, name) in meter.clusters.iter().enumerate() {
        let with_all =
            members(meter, cluster).max_by_key(|c| meter.setup.cpus[*c].idle_states.len());
        let states = &meter.setup.cpus[with_all.expect("a cluster has CPUs")].idle_states;
        let levels = std::iter::once("active").chain(states.iter().map(|state| &*state.name));
        for (level, ns) in levels.zip(&meter.cluster_idle[cluster].ns) {
            let labels = vec![("cluster", name.clone()), ("state", level.to_owned())];
            sheet.add("mean", labels, percent(u128::from(*ns), u128::from(span_ns)));
        }
    }

    if meter.setup.power_domains.is_empty() {
        return;
    }
    // Of power domains: what is left of the time they were on.
    sheet.metric(&metric::POWER_DOMAIN_RESIDENCY);
    for (domain, truth) in meter.setup.power_domains.iter().zip(&meter.truth.power_domains) {
        for (state, ns) in domain.states.iter().zip(&truth.ns[1..]) {
            let labels = vec![(level_of(domain), domain.name.clone()), ("state", state.clone())];
            sheet.add("mean", labels, percent(u128::from(*ns), u128::from(span_ns)));
        }
    }
}

fn frequency(sheet: &mut Sheet, meter: &Meter, span_ns: Ns) {
    let domains = || meter.setup.domains.iter().zip(&meter.truth.domains);
    sheet.metric(&metric::FREQ_RESIDENCY);
    for (domain, truth) in domains() {
        for (opp, ns) in domain.opps.iter().zip(&truth.opp_ns) {
            let labels = vec![("domain", domain.name.clone()), ("khz", opp.khz.to_string())];
            sheet.add("mean", labels, percent(u128::from(*ns), u128::from(span_ns)));
        }
    }

    sheet.metric(&metric::FREQ_MEAN);
    for (id, domain) in meter.setup.domains.iter_ids() {
        let truth = &meter.truth.domains[id];
        let mean = |ns: &[Ns]| {
            let weighted = domain.opps.iter().zip(ns);
            let sum = weighted.map(|(o, ns)| u128::from(o.khz) * u128::from(*ns)).sum();
            ratio(sum, ns.iter().map(|ns| u128::from(*ns)).sum()).map(|khz| khz / KHZ_PER_MHZ)
        };
        let mut active_ns = vec![0; domain.opps.len()];
        for cpu in (0..meter.cpus.len()).filter(|c| meter.setup.cpus[*c].domain == id) {
            for (sum, ns) in active_ns.iter_mut().zip(meter.truth.active_ns(cpu)) {
                *sum += ns;
            }
        }
        sheet.add("mean", label("domain", &domain.name), mean(&truth.opp_ns));
        // The frequency that code met, rather than the one that the clock had.
        let labels = vec![("domain", domain.name.clone()), ("while", "active".to_owned())];
        sheet.add("mean", labels, mean(&active_ns));
        // Each `cpu_frequency` counts once, however long it held: no mean over time, but a published one.
        let (khz, told) = meter.khz_told[id];
        let labels = vec![("domain", domain.name.clone()), ("over", "changes".to_owned())];
        let mean = ratio(u128::from(khz), u128::from(told)).map(|khz| khz / KHZ_PER_MHZ);
        sheet.add("mean", labels, mean);
    }

    sheet.metric(&metric::FREQ_TRANSITIONS);
    sheet.count(vec![], domains().map(|(_, truth)| truth.transitions).sum());
    for (domain, truth) in domains() {
        sheet.count(label("domain", &domain.name), truth.transitions);
    }

    sheet.metric(&metric::FREQ_UPDATE_LATENCY);
    let all = Distribution::merged(domains().map(|(_, truth)| &truth.update_latency));
    sheet.distribution(&vec![], &all, NS_PER_US);
    for (domain, truth) in domains() {
        sheet.distribution(&label("domain", &domain.name), &truth.update_latency, NS_PER_US);
    }
}

/// A time of a chain.
type ChainTime = fn(&Chains) -> &Distribution;

/// From need to clock. Rises have no label, because tasks wait for them; falls have `to=less`.
fn needs(sheet: &mut Sheet, meter: &Meter) {
    let domains = || meter.setup.domains.iter().zip(&meter.needs.domains);
    let labels = |domain: Option<&str>, more: bool| -> Labels {
        let domain = domain.map(|name| ("domain", name.to_owned()));
        let to = (!more).then(|| ("to", "less".to_owned()));
        domain.into_iter().chain(to).collect()
    };
    let times: [(&'static DeclaredMetric, ChainTime); 3] = [
        (&metric::NEED_TO_REQUEST, |chains| &chains.need_to_request),
        (&metric::REQUEST_TO_SETTLED, |chains| &chains.request_to_settled),
        (&metric::NEED_TO_SETTLED, |chains| &chains.need_to_settled),
    ];
    for (time, of) in times {
        sheet.metric(time);
        for more in [true, false] {
            let all = Distribution::merged(domains().map(|(_, need)| of(need.chains(more))));
            sheet.distribution(&labels(None, more), &all, NS_PER_US);
            for (domain, need) in domains() {
                let labels = labels(Some(&domain.name), more);
                sheet.distribution(&labels, of(need.chains(more)), NS_PER_US);
            }
        }
    }
    sheet.metric(&metric::NEEDS_PASSED);
    for more in [true, false] {
        let counts = |need: &DomainNeed| {
            let chains = need.chains(more);
            let passed = u128::from(chains.passed);
            (passed, passed + u128::from(chains.need_to_settled.count()))
        };
        let (mut passed, mut all) = (0, 0);
        for (_, need) in domains() {
            let (part, whole) = counts(need);
            (passed, all) = (passed + part, all + whole);
        }
        sheet.add("mean", labels(None, more), percent(passed, all));
        for (domain, need) in domains() {
            let (passed, all) = counts(need);
            sheet.add("mean", labels(Some(&domain.name), more), percent(passed, all));
        }
    }
}

/// How the clocks suited the CPUs while they executed: shares of that time, and of the work done in it.
fn provision(sheet: &mut Sheet, meter: &Meter) {
    /// Time and work, the work as if it were all done at the highest frequency of the largest CPU.
    type Spent = (f64, f64);
    let spent = |cpu: usize, ns: &mut dyn Iterator<Item = Ns>| -> Spent {
        let setup = &meter.setup.cpus[cpu];
        let opps = &meter.setup.domains[setup.domain].opps;
        let highest = opps.iter().map(|opp| opp.khz).max().unwrap_or(1);
        let speed = f64::from(setup.capacity) / f64::from(highest);
        ns.zip(opps).fold((0.0, 0.0), |(time, work), (ns, opp)| {
            let ns = ns as f64;
            (time + ns, work + ns * f64::from(opp.khz) * speed)
        })
    };
    let truth = &meter.truth;
    for (provision, over) in
        [(&metric::UNDER_PROVISIONED, false), (&metric::OVER_PROVISIONED, true)]
    {
        sheet.metric(provision);
        let mut add = |labels: Labels, cpus: &mut dyn Iterator<Item = usize>| {
            let (mut part, mut whole): (Spent, Spent) = ((0.0, 0.0), (0.0, 0.0));
            for cpu in cpus {
                let (time, work) = match over {
                    true => spent(cpu, &mut truth.over_ns(cpu)),
                    false => spent(cpu, &mut truth.under_ns(cpu)),
                };
                part = (part.0 + time, part.1 + work);
                let (time, work) = spent(cpu, &mut truth.active_ns(cpu));
                whole = (whole.0 + time, whole.1 + work);
            }
            let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole * 100.0);
            let of_work = labels.iter().cloned().chain([("of", "work".to_owned())]).collect();
            sheet.add("mean", labels, share(part.0, whole.0));
            sheet.add("mean", of_work, share(part.1, whole.1));
        };
        add(vec![], &mut (0..meter.cpus.len()));
        for (cluster, name) in meter.clusters.iter().enumerate() {
            add(label("cluster", name), &mut members(meter, cluster));
        }
    }
}

fn counts(sheet: &mut Sheet, meter: &Meter) {
    let counts = &meter.counts;
    let per_group: [(&'static DeclaredMetric, u64, CountOf<TaskMeter>); 3] = [
        (&metric::CONTEXT_SWITCHES, counts.switches, |task| task.switches),
        (&metric::MIGRATIONS, counts.migrations, |task| task.migrations),
        (&metric::PREEMPTIONS, counts.preemptions, |task| task.preemptions),
    ];
    for (counted, total, of_task) in per_group {
        sheet.metric(counted);
        sheet.count(vec![], total);
        for (group, sum) in meter.groups.iter().zip(sum_by_group(meter, |_, task| of_task(task))) {
            sheet.count(label("task", &group.name), sum);
        }
    }
    deadlines(sheet, meter);
    sheet.metric(&metric::TICKS);
    sheet.count(vec![], counts.ticks);
    sheet.metric(&metric::IPIS);
    sheet.count(vec![], counts.ipis.iter().sum());
    for (name, count) in IPI_NAMES.iter().zip(counts.ipis) {
        sheet.count(label("kind", name), count);
    }
    sheet.metric(&metric::BALANCE_PASSES);
    sheet.count(vec![], counts.balance.iter().sum());
    for (name, count) in BALANCE_NAMES.iter().zip(counts.balance) {
        sheet.count(label("idle", name), count);
    }
    sheet.metric(&metric::BALANCE_MOVED);
    sheet.count(vec![], counts.balance_moved);
}

/// Reports the outcomes of the jobs of `SCHED_DEADLINE`, if there were any.
fn deadlines(sheet: &mut Sheet, meter: &Meter) {
    if !meter.tasks.iter().any(|task| task.deadline_misses.is_some() || task.dl_throttles > 0) {
        return;
    }
    let counts: [(&'static DeclaredMetric, CountOf<TaskMeter>); 2] = [
        (&metric::DEADLINE_MISSES, |task| task.deadline_misses.unwrap_or(0)),
        (&metric::DL_THROTTLES, |task| task.dl_throttles),
    ];
    for (counted, of_task) in counts {
        sheet.metric(counted);
        sheet.count(vec![], meter.tasks.iter().map(of_task).sum());
        for (group, sum) in meter.groups.iter().zip(sum_by_group(meter, |_, task| of_task(task))) {
            sheet.count(label("task", &group.name), sum);
        }
    }
}

/// Per task group: the sum of `of_task` (number and task).
fn sum_by_group(meter: &Meter, of_task: impl Fn(usize, &TaskMeter) -> u64) -> Vec<u64> {
    let mut sums = vec![0; meter.groups.len()];
    for (index, task) in meter.tasks.iter().enumerate() {
        // The idle task and numbers that no task has are in no group.
        if let Some(sum) = sums.get_mut(task.group as usize) {
            *sum += of_task(index, task);
        }
    }
    sums
}

/// Time of task number `task`, per CPU.
fn run_ns(meter: &Meter, task: usize) -> &[Ns] {
    &meter.run_ns[task * meter.cpus.len()..][..meter.cpus.len()]
}

fn shares(sheet: &mut Sheet, meter: &Meter, span_ns: Ns) {
    let span_of = |cpus: usize| u128::from(span_ns) * cpus as u128;
    sheet.metric(&metric::OVERUTILIZED);
    sheet.add("mean", vec![], percent(u128::from(meter.overutilized_ns), span_of(1)));

    let cpus = 0..meter.cpus.len();
    let irq = |cpu: usize| u128::from(meter.cpus[cpu].irq_ns);
    sheet.metric(&metric::IRQ_TIME);
    sheet.add("mean", vec![], percent(cpus.clone().map(irq).sum(), span_of(cpus.len())));
    for (cluster, name) in meter.clusters.iter().enumerate() {
        let sum = members(meter, cluster).map(irq).sum();
        let whole = span_of(members(meter, cluster).count());
        sheet.add("mean", label("cluster", name), percent(sum, whole));
    }

    sheet.metric(&metric::CPU_USAGE);
    let user: Ns = meter.tasks.iter().map(|task| task.user_ns).sum();
    let busy: Ns = cpus.clone().map(|cpu| busy_ns(meter, cpu)).sum();
    for (mode, ns) in [("user", user), ("system", busy - user)] {
        sheet.add("mean", label("mode", mode), percent(u128::from(ns), span_of(cpus.len())));
    }

    // The share of time with two or more runnable tasks on a CPU.
    sheet.metric(&metric::CONTENTION);
    let contended = |cpu: usize| u128::from(meter.waits.contended_ns(cpu));
    sheet.add("mean", vec![], percent(cpus.clone().map(contended).sum(), span_of(cpus.len())));
    for (cluster, name) in meter.clusters.iter().enumerate() {
        let sum = members(meter, cluster).map(contended).sum();
        let whole = span_of(members(meter, cluster).count());
        sheet.add("mean", label("cluster", name), percent(sum, whole));
    }

    // The share of the capacity at the highest frequency that executing code used.
    sheet.metric(&metric::UTILIZATION);
    let used = |part: &mut dyn Iterator<Item = usize>| {
        let (mut used, mut whole) = (0.0, 0.0);
        for cpu in part {
            let setup = &meter.setup.cpus[cpu];
            let opps = &meter.setup.domains[setup.domain].opps;
            let highest = u128::from(opps.iter().map(|opp| opp.khz).max().unwrap_or(0));
            let active = meter.truth.active_ns(cpu).zip(opps);
            let khz_ns = active.map(|(ns, opp)| u128::from(ns) * u128::from(opp.khz)).sum();
            let share = ratio(khz_ns, highest * u128::from(span_ns)).unwrap_or(0.0);
            used += share * f64::from(setup.capacity);
            whole += f64::from(setup.capacity);
        }
        (span_ns > 0 && whole > 0.0).then(|| used / whole * 100.0)
    };
    sheet.add("mean", vec![], used(&mut cpus.clone()));
    for (cluster, name) in meter.clusters.iter().enumerate() {
        sheet.add("mean", label("cluster", name), used(&mut members(meter, cluster)));
    }

    sheet.metric(&metric::CPU_TIME);
    let seconds = |ns: Ns| Some(ns as f64 / NS_PER_S);
    let busy: Vec<Ns> = cpus.map(|cpu| busy_ns(meter, cpu)).collect();
    sheet.add("sum", vec![], seconds(busy.iter().sum()));
    let by_group = sum_by_group(meter, |index, _| run_ns(meter, index).iter().sum());
    for (group, ns) in meter.groups.iter().zip(by_group) {
        sheet.add("sum", label("task", &group.name), seconds(ns));
    }
    for path in with_those_above(&meter.cgroups) {
        let within = |index: &usize| is_within(meter, &meter.tasks[*index], path);
        let tasks = (0..meter.tasks.len()).filter(within);
        let ns: Ns = tasks.flat_map(|index| run_ns(meter, index)).sum();
        sheet.add("sum", label("group", path), seconds(ns));
    }
    for (cluster, name) in meter.clusters.iter().enumerate() {
        let ns = members(meter, cluster).map(|cpu| busy[cpu]).sum();
        sheet.add("sum", label("cluster", name), seconds(ns));
    }
}

/// Paths of cgroups, and of all that they are in but the root, in alphabetical order.
fn with_those_above(cgroups: &[String]) -> BTreeSet<&str> {
    let above = cgroups.iter().flat_map(|path| Path::new(path).ancestors());
    above.filter_map(Path::to_str).filter(|path| *path != "/").collect()
}

/// Whether a task is in the cgroup with this path, or in one within.
fn is_within(meter: &Meter, task: &TaskMeter, path: &str) -> bool {
    let own = (task.cgroup as usize).checked_sub(1).map(|at| Path::new(&meter.cgroups[at]));
    own.is_some_and(|own| own.starts_with(path))
}

/// Time that `cpu` ran tasks other than its idle task.
fn busy_ns(meter: &Meter, cpu: usize) -> Ns {
    meter.run_ns.iter().skip(meter.cpus.len() + cpu).step_by(meter.cpus.len()).sum()
}

/// Returns the results of the tasks, by number, without the idle tasks.
pub(super) fn tasks(meter: &Meter) -> Vec<TaskResult> {
    let mut results = Vec::new();
    for (index, (task, name)) in meter.tasks.iter().zip(&meter.names).enumerate().skip(1) {
        if let Some(name) = name {
            let by_cpu = run_ns(meter, index);
            let cpu_time_ns: Ns = by_cpu.iter().sum();
            assert!(task.user_ns <= cpu_time_ns, "{name} is at work only while it runs");
            results.push(TaskResult {
                name: name.clone(),
                id: index as u32,
                cpu_time_ns,
                utime_ns: task.user_ns,
                stime_ns: cpu_time_ns - task.user_ns,
                cpu_time_by_cpu_ns: by_cpu.to_vec(),
                jobs: task.jobs,
                switches: task.switches,
                migrations: task.migrations,
            });
        }
    }
    results
}

/// Returns the results of the CPUs, by number.
pub(super) fn cpus(meter: &Meter) -> Vec<CpuResult> {
    let mut results = Vec::new();
    for (cpu, setup) in meter.setup.cpus.iter().enumerate() {
        let states = 0..setup.idle_states.len();
        let domain = &meter.setup.domains[setup.domain];
        let at = domain.opps.iter().zip(&meter.truth.domains[setup.domain].opp_ns);
        let idle_ns: Vec<Ns> = states.clone().map(|s| meter.truth.state_ns(cpu, s)).collect();
        results.push(CpuResult {
            cpu: cpu as u16,
            busy_ns: busy_ns(meter, cpu),
            idle_loop_ns: run_ns(meter, 0)[cpu].saturating_sub(idle_ns.iter().sum()),
            idle_ns,
            idle_entries: states.map(|s| meter.truth.visits(cpu, s).entries).collect(),
            frequency_ns: at.map(|(opp, ns)| (opp.khz, *ns)).collect(),
        });
    }
    results
}
