// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs become sources: which are one, what triggers each, and the text.

use super::{
    Activity, Collector, DEVICES_MAX, ExtractedProfile, Key, Kind, NS_PER_MS, NS_PER_S, NS_PER_US,
    ProfileOptions, WORK_MARK, period, quantile,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The most works of one function that are sources of their own.
const WORKS_MAX: usize = 8;
/// Runs that an activity needs to be told.
const RUNS_LEAST: usize = 3;

/// The soft lockup watchdog: it wakes the stopper of its CPU.
const WATCHDOG: &str = "watchdog_timer_fn";

impl Collector<'_> {
    pub(super) fn finish(
        mut self,
        options: &ProfileOptions,
        hz: Option<u32>,
        seconds: f64,
    ) -> ExtractedProfile {
        let mut notes = Vec::new();
        if hz.is_none() {
            notes.push("the recording does not tell CONFIG_HZ: 250 is taken (--hz)".to_string());
        }
        if self.machine.is_none() {
            notes.push(
                "times count as of CPUs of capacity 1024 at full speed (-m MACHINE scales them)"
                    .into(),
            );
        }
        if !self.works {
            notes.push(
                "no works are in it: record with --event workqueue:workqueue_execute_start, \
                 workqueue:workqueue_execute_end, timer:timer_expire_entry and timer:timer_expire_exit"
                    .to_string(),
            );
        }
        self.found = regrouped(std::mem::take(&mut self.found));
        let few = self.found.values().filter(|of| of.count < RUNS_LEAST as u64).count();
        if self.found.keys().any(|(_, name)| name.starts_with("0x")) {
            notes.push(
                "functions are addresses: give --kallsyms /proc/kallsyms of the boot that was recorded"
                    .to_string(),
            );
        }
        if few > 0 {
            notes.push(format!("{few} activities with less than {RUNS_LEAST} runs are left out"));
        }
        self.found.retain(|_, of| of.count >= RUNS_LEAST as u64);
        notes.push(format!(
            "{:.0} runs a second of user programs are left out",
            self.user_runs as f64 / seconds
        ));
        let mut text = format!(
            "# Made by `schedtwin profile` from {seconds:.1} s of a recording; {} CPUs.\n\nname = {:?}\ndescription = \
             \"what a recording of {seconds:.0} s shows beside its programs\"\n",
            self.nr_cpus.max(self.cpus.len()),
            options.name
        );
        let rcu = self.write_rcu(&mut text, seconds, hz.unwrap_or(250));
        let sources = self.write_sources(&mut text, seconds, hz.unwrap_or(250)) + rcu;
        ExtractedProfile { text, sources, seconds, notes }
    }

    /// `[rcu]` and who hands it callbacks; how many sources that are.
    fn write_rcu(&mut self, text: &mut String, seconds: f64, hz: u32) -> usize {
        if self.rcu_runs == 0 {
            return 0;
        }
        // A grace period wakes the thread three times: it begins, waits for stragglers, ends.
        let periods = self.rcu_runs as f64 / 3.0;
        let _ = write!(
            text,
            "\n[rcu]\norigin = \"{:.1} runs of its thread a second; callbacks [E]\"\noffloaded = {}\nthread_us = {}\n",
            self.rcu_runs as f64 / seconds,
            self.offloaded,
            quantiles_us(&mut self.rcu_thread)
        );
        if !self.rcu_softirq.is_empty() {
            let _ = writeln!(text, "softirq_us = {}", quantiles_us(&mut self.rcu_softirq));
        }
        text.push_str("callback_ns = 300\n");
        let jiffies = (seconds / periods * f64::from(hz)).round().max(1.0) as u64;
        let _ = write!(
            text,
            "\n[[source]]\nname = \"callers of call_rcu\"\norigin = \"{:.1} grace periods a second, by the runs of RCU's \
             thread\"\ntimer = {{ every_ms = {} }}\nrcu_callbacks = 1\n",
            periods / seconds,
            every_ms(delay_of(jiffies), hz)
        );
        1
    }

    fn write_sources(&mut self, text: &mut String, seconds: f64, hz: u32) -> usize {
        let found = std::mem::take(&mut self.found);
        let counts: BTreeMap<&String, u64> = found
            .iter()
            .filter(|((kind, _), _)| *kind == Kind::Interrupt)
            .map(|((_, name), of)| (name, of.count))
            .collect();
        // Which device an activity follows.
        let follows = |of: &Activity| {
            let (device, inside) = of.inside.iter().max_by_key(|(_, inside)| **inside)?;
            let all = *counts.get(device)?;
            (*inside * 10 >= of.count * 8 && of.count * 10 >= all * 8).then(|| device.clone())
        };
        let mut irregular: Vec<(u64, &Key)> = found
            .iter()
            .filter(|((kind, _), of)| {
                let regular = period(&of.gaps).is_some() || of.is_on_each(*kind);
                *kind == Kind::Interrupt || (!regular && follows(of).is_none())
            })
            .map(|(key, of)| (of.count, key))
            .collect();
        // Devices are devices; of others the most frequent.
        irregular.sort_by_key(|(count, (kind, _))| (*kind != Kind::Interrupt, u64::MAX - count));
        let devices: BTreeSet<&Key> =
            irregular.iter().take(DEVICES_MAX).map(|(_, key)| *key).collect();
        let mut names = BTreeSet::new();
        let named: BTreeMap<&Key, String> = found
            .keys()
            .map(|key| {
                let mut name = key.1.clone();
                while !names.insert(name.clone()) {
                    name.push_str(" again");
                }
                (key, name)
            })
            .collect();
        for (key, of) in &found {
            let after: Vec<&String> = found
                .iter()
                .filter(|(other, of)| {
                    other.0 != Kind::Interrupt && follows(of).as_ref() == Some(&key.1)
                })
                .filter(|_| key.0 == Kind::Interrupt)
                .map(|(other, _)| &named[other])
                .collect();
            let trigger = match follows(of).filter(|_| key.0 != Kind::Interrupt) {
                Some(_) => None,
                None => Some(self.trigger_of(key, of, devices.contains(key), seconds, hz)),
            };
            self.write_source(text, key, &named[key], of, trigger, &after, seconds);
        }
        found.len()
    }

    /// The line of a trigger.
    fn trigger_of(
        &self,
        (kind, _): &Key,
        of: &Activity,
        device: bool,
        seconds: f64,
        hz: u32,
    ) -> String {
        let tick = NS_PER_S / f64::from(hz);
        let each = of.is_on_each(*kind);
        let cpus = if each { of.cpus.len() as f64 } else { 1.0 };
        let mean = seconds * NS_PER_S * cpus / of.count as f64;
        let regular = match each {
            // Of CPUs whose own are regular; else as often as all together.
            true => median(of.cpus.values().filter_map(|(_, gaps)| period(gaps))).or(Some(mean)),
            false => period(&of.gaps),
        };
        match (*kind, regular) {
            (Kind::Interrupt, _) if device => {
                format!("interrupt = {{ mean_us = {} }}", us_of(mean))
            }
            (Kind::Hrtimer, regular) => {
                let ms = (regular.unwrap_or(mean) / NS_PER_MS).round().max(1.0);
                format!("hrtimer = {{ every_ms = {ms:.0} }}")
            }
            (_, None) if device => format!("interrupt = {{ mean_us = {} }}", us_of(mean)),
            (_, regular) => {
                let jiffies = (regular.unwrap_or(mean) / tick).round().max(1.0) as u64;
                let pinned = if each { ", pinned = true" } else { "" };
                format!("timer = {{ every_ms = {}{pinned} }}", every_ms(delay_of(jiffies), hz))
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one entry")]
    fn write_source(
        &self,
        text: &mut String,
        (kind, _): &Key,
        name: &str,
        of: &Activity,
        trigger: Option<String>,
        after: &[&String],
        seconds: f64,
    ) {
        let mut gaps = of.gaps.clone();
        gaps.sort_by(f64::total_cmp);
        let [p10, p50, p90] = [10, 50, 90].map(|percent| quantile(&gaps, percent) / NS_PER_MS);
        let told = match gaps.is_empty() {
            true => String::new(),
            false => format!("; gaps {p10:.1}, {p50:.1}, {p90:.1} ms (p10, p50, p90)"),
        };
        let _ = write!(
            text,
            "\n[[source]]\nname = {name:?}\norigin = \"{:.2} {} a second{told}\"\n",
            of.count as f64 / seconds,
            kind.words(),
        );
        if let Some(trigger) = trigger {
            let _ = writeln!(text, "{trigger}");
        }
        let run = match name {
            WATCHDOG => "stopper",
            // The thread of an interrupt is where the interrupt comes.
            name if name.starts_with("irq/") => "bound-thread",
            _ => kind.run(of.bound),
        };
        let _ = writeln!(text, "run = {run:?}");
        let _ = writeln!(text, "run_us = {}", quantiles_us(&mut of.runs.clone()));
        if *kind == Kind::Thread && (0..100).contains(&of.prio) && of.prio < 99 {
            let _ = writeln!(text, "fifo = {}", 99 - of.prio);
        } else if *kind == Kind::Thread && (100..140).contains(&of.prio) && of.prio != 120 {
            let _ = writeln!(text, "nice = {}", of.prio - 120);
        }
        if of.is_on_each(*kind) {
            text.push_str("cpus = \"each\"\n");
        } else if *kind == Kind::Interrupt && self.is_on_little(of) {
            text.push_str("cpus = \"little\"\n");
        }
        if !after.is_empty() {
            let _ = writeln!(text, "then = {after:?}");
        }
    }

    /// Whether all runs were on the weakest of unequal CPUs.
    fn is_on_little(&self, of: &Activity) -> bool {
        let Some(machine) = self.machine else { return false };
        let least = machine.cpus.iter().map(|cpu| cpu.capacity).min().unwrap_or(1024);
        let is_little = |cpu: &usize| machine.cpus.get(*cpu).is_some_and(|c| c.capacity == least);
        least < 1024 && of.cpus.keys().all(is_little)
    }
}

/// Several activities as one.
fn joined(list: Vec<Activity>) -> Activity {
    let mut joined = Activity::default();
    for of in list {
        for (cpu, (last, gaps)) in of.cpus {
            let (of_cpu, all) = joined.cpus.entry(cpu).or_default();
            *of_cpu = last.max(*of_cpu);
            all.extend(gaps);
        }
        for (device, inside) in of.inside {
            *joined.inside.entry(device).or_insert(0) += inside;
        }
        joined.runs.extend(of.runs);
        joined.count += of.count;
    }
    joined
}

/// Works by function: those that each have a CPU of their own are one activity on each CPU; of others that are regular each is
/// one; the rest are one together.
pub(super) fn regrouped(found: BTreeMap<Key, Activity>) -> BTreeMap<Key, Activity> {
    let mut grouped: BTreeMap<Key, Activity> = BTreeMap::new();
    let mut works: BTreeMap<Key, Vec<Activity>> = BTreeMap::new();
    for ((kind, name), of) in found {
        match name.split_once(WORK_MARK) {
            Some((function, _)) => works.entry((kind, function.to_string())).or_default().push(of),
            None => {
                grouped.insert((kind, name), of);
            }
        }
    }
    for ((kind, function), mut list) in works {
        let mut homes: Vec<usize> =
            list.iter().filter_map(|of| of.cpus.keys().next().copied()).collect();
        homes.sort_unstable();
        homes.dedup();
        let own_cpus = list.iter().all(|of| of.cpus.len() == 1) && homes.len() == list.len();
        let regular = list.iter().filter(|of| period(&of.gaps).is_some()).count();
        let on_each = kind != Kind::UnboundWork && own_cpus;
        // One for each file, socket or request are many of one kind, and come as one.
        if list.len() > 1 && (on_each || regular * 2 <= list.len()) {
            grouped.insert((kind, function), joined(list));
            continue;
        }
        list.sort_by_key(|of| std::cmp::Reverse(of.count));
        for (index, of) in list.into_iter().take(WORKS_MAX).enumerate() {
            let name =
                if index == 0 { function.clone() } else { format!("{function} {}", index + 1) };
            grouped.insert((kind, name), of);
        }
    }
    grouped
}

/// Jiffies as a whole number of ms that is as many jiffies again.
fn every_ms(jiffies: u64, hz: u32) -> u64 {
    (jiffies * 1000 / u64::from(hz)).max(1)
}

fn us_of(ns: f64) -> u64 {
    (ns / NS_PER_US).round().max(10.0) as u64
}

/// Quantiles 10, 50, 90 and 99 of times in ns, as a list of µs.
fn quantiles_us(ns: &mut [f64]) -> String {
    ns.sort_by(f64::total_cmp);
    let us = |percent| (quantile(ns, percent) / NS_PER_US).round() as u64;
    format!("[{}, {}, {}, {}]", us(10), us(50), us(90), us(99))
}

/// The median of some numbers.
fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile(&sorted, 50))
}

/// The delay, in jiffies, after which the wheel's rounding makes a timer come so many jiffies later (kernel/time/timer.c:
/// one granularity of its level late).
pub(super) fn delay_of(jiffies: u64) -> u64 {
    let mut level = 0;
    // Level n makes timers come at most 63 · 8^n jiffies later.
    while jiffies > 63 << (3 * level) {
        level += 1;
    }
    jiffies.saturating_sub(1 << (3 * level)).max(1)
}
