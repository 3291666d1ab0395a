// SPDX-License-Identifier: GPL-2.0-or-later
//! How warm everything is: heat flows through a network of nodes and resistances.
//!
//! # Idea
//!
//! Energy that the meter books becomes heat in the node of its part. On a fixed grid each
//! resistance passes on what the
//! difference of temperature drives through it; nothing is lost on the way.
//!
//! ```text
//!   little ─┐
//!   mid ────┼── R ── case ── R ── air
//!   big ────┘          T = T₀ + E / C       per step h:  q = (T₁ − T₂) · h / R
//! ```
//!
//! # Step rule
//!
//! Explicit Euler, in integers. Temperatures are µ°C, heat is in fJ, so a step of h ns through R mK/W carries
//! `(T₁ − T₂) · h · 1000 / R` fJ, cut toward zero, with the temperatures of the step's beginning. What one node
//! gives the other gets, so the sum of all heat is exact: what went in is what is stored plus what the air got. The power
//! of a step is exact, too: it is the energy that was used in it. Against the closed form the temperature is off by at most
//! about h / 2τ of the rise, τ = R · C being the time constant; the machine's file bounds h by τ / 4.
//!
//! # Differences
//!
//! Power does not depend on temperature: there is no leakage that grows with it. Nothing but the parts that the machine
//! names heats: no display, modem, battery, GPU, no sun. Sensors are exact and have no delay.

use crate::result::Metric;
use schedtwin_machine::Machine;
use schedtwin_types::arena::Arena;
use schedtwin_types::metric::{self, DeclaredMetric};
use schedtwin_types::{ClockDomainId, Ns, PowerDomainId, PowerSource};
use std::sync::Arc;

/// Femtojoules in a millijoule, over microkelvins in a kelvin.
const FJ_PER_MJ_UK: i128 = 1_000_000;

/// The history of one node.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Heat since the start, fJ; the air and the beginning are at 0 of it.
    stored_fj: i128,
    /// The heat that has come in during this step.
    gain_fj: i128,
    /// Of the window: temperature times time (µ°C · ns), and the highest.
    sum: i128,
    max_uc: i64,
}

/// Temperatures of a run.
#[derive(Clone, Debug)]
pub struct Heat {
    machine: Arc<Machine>,
    nodes: Vec<Node>,
    /// Per clock domain: the node that its power goes in.
    heats: Arena<ClockDomainId, Option<usize>>,
    /// Per power domain likewise.
    power_domain_heats: Arena<PowerDomainId, Option<usize>>,
    /// Up to when heat has flowed.
    at: Ns,
    window_start: Ns,
    /// Per clock: time that it was held back, in the window.
    throttled_ns: Arena<ClockDomainId, Ns>,
    to_air_fj: i128,
    taken_fj: i128,
}

impl Heat {
    /// Everything as warm as the machine says; `None`: it says nothing of heat.
    pub fn new(machine: &Arc<Machine>, window_start: Ns) -> Option<Heat> {
        let heat = machine.heat.as_ref()?;
        let node_of =
            |has: &dyn Fn(&schedtwin_machine::HeatNode) -> bool| heat.nodes.iter().position(has);
        let clocks = machine.domains.ids().map(|d| node_of(&|node| node.clocks.contains(&d)));
        let power = machine.power_domains.ids();
        let power = power.map(|d| node_of(&|node| node.power_domains.contains(&d)));
        Some(Heat {
            nodes: vec![Node { max_uc: i64::MIN, ..Node::default() }; heat.nodes.len()],
            heats: clocks.collect(),
            power_domain_heats: power.collect(),
            at: 0,
            window_start,
            throttled_ns: vec![0; machine.domains.len()].into(),
            to_air_fj: 0,
            taken_fj: 0,
            machine: machine.clone(),
        })
    }

    fn model(&self) -> &schedtwin_machine::Heat {
        self.machine.heat.as_ref().expect("it was there at the start")
    }

    /// The grid.
    pub fn step_ns(&self) -> Ns {
        self.model().step_ns
    }

    /// Energy that was used since the last step.
    pub fn add(&mut self, source: PowerSource, fj: u128) {
        let node = match source {
            PowerSource::Clock(domain) => self.heats[domain],
            PowerSource::PowerDomain(domain) => self.power_domain_heats[domain],
        };
        if let Some(node) = node {
            self.nodes[node].gain_fj += fj as i128;
            self.taken_fj += fj as i128;
        }
    }

    /// Temperature of a node, µ°C.
    fn temperature_uc(&self, node: usize) -> i64 {
        let model = self.model();
        let capacity = i128::from(model.nodes[node].capacity_mj_per_k) * FJ_PER_MJ_UK;
        model.start_mc * 1000 + self.nodes[node].stored_fj.div_euclid(capacity) as i64
    }

    /// Returns the reading of a zone's sensor, m°C.
    pub fn sensor_mc(&self, zone: usize) -> i32 {
        self.temperature_uc(self.model().zones[zone].node).div_euclid(1000) as i32
    }

    /// Heat has flowed until `now`, with the energy that was added. `held_back`: whether a clock has been since then.
    pub fn step(&mut self, now: Ns, held_back: impl Fn(ClockDomainId) -> bool) {
        let machine = self.machine.clone();
        let model = machine.heat.as_ref().expect("it was there at the start");
        let h = i128::from(now - self.at);
        for edge in &model.edges {
            let from = self.temperature_uc(edge.from);
            let to = edge.to.map_or(model.ambient_mc * 1000, |to| self.temperature_uc(to));
            let q = i128::from(from - to) * h * 1000 / i128::from(edge.mk_per_w);
            self.nodes[edge.from].gain_fj -= q;
            match edge.to {
                Some(to) => self.nodes[to].gain_fj += q,
                None => self.to_air_fj += q,
            }
        }
        let counted = now.max(self.window_start) - self.at.max(self.window_start);
        for index in 0..self.nodes.len() {
            let before = self.temperature_uc(index);
            let node = &mut self.nodes[index];
            node.stored_fj += std::mem::take(&mut node.gain_fj);
            let after = self.temperature_uc(index);
            if counted > 0 {
                let node = &mut self.nodes[index];
                // The mean of a step is that of its ends.
                node.sum += i128::from(before + after) * i128::from(counted) / 2;
                node.max_uc = node.max_uc.max(before).max(after);
            }
        }
        for domain in self.throttled_ns.ids() {
            self.throttled_ns[domain] += if held_back(domain) { counted } else { 0 };
        }
        self.at = now;
        let stored: i128 = self.nodes.iter().map(|node| node.stored_fj).sum();
        assert_eq!(stored + self.to_air_fj, self.taken_fj, "heat is neither made nor lost");
    }

    /// Returns the measurements: temperatures in °C (the warmest node first, then all), and the
    /// share of time that clocks were
    /// held back.
    pub fn metrics(&self) -> Vec<Metric> {
        let span = self.at.max(self.window_start) - self.window_start;
        let celsius = |uc: i128, over: Ns| (over > 0).then(|| uc as f64 / over as f64 / 1e6);
        let mut metrics = Vec::new();
        let mut add = |of: &'static DeclaredMetric, stat, labels, value| {
            metrics.push(of.value(stat, labels, value));
        };
        let model = self.model();
        let highest = self.nodes.iter().map(|node| node.max_uc).max().unwrap_or(0);
        let max = |uc: i64| (span > 0).then(|| uc as f64 / 1e6);
        add(&metric::TEMPERATURE, "max", vec![], max(highest));
        for (node, hardware) in self.nodes.iter().zip(&model.nodes) {
            let labels = || vec![("node", hardware.name.clone())];
            add(&metric::TEMPERATURE, "mean", labels(), celsius(node.sum, span));
            add(&metric::TEMPERATURE, "max", labels(), max(node.max_uc));
        }
        let share = |ns: Ns| (span > 0).then(|| ns as f64 / span as f64 * 100.0);
        for (domain, ns) in self.machine.domains.iter().zip(&self.throttled_ns) {
            let labels = vec![("domain", domain.name.clone())];
            add(&metric::THROTTLED, "mean", labels, share(*ns));
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock of all CPUs.
    const CHIP: PowerSource = PowerSource::Clock(ClockDomainId(0));

    /// Keys go to the top of a file, tables to its end.
    fn heat(keys: &str, tables: &str) -> Heat {
        let source = schedtwin_machine::builtin_source("uniform8").expect("it is built in");
        let text = &source.text;
        let text = format!("{keys}{text}{tables}");
        let source = schedtwin_input::Source::new("warm.toml", text);
        let machine = Machine::from_source(&source, &[]).unwrap_or_else(|f| panic!("{f}"));
        Heat::new(&Arc::new(machine), 0).expect("it has heat")
    }

    /// 2 W through 10 K/W with τ = 5 s, against 20 + 20 · (1 − e^(−t/τ)): off by at most h / 2τ of the rise, 0.01 K.
    #[test]
    fn one_node_follows_the_closed_form() {
        let mut heat = heat(
            "heat = true\nambient_c = 20\nheat_step_us = 5000\n",
            "[heat_node.chip]\ncapacity_mj_per_k = 500\nheated_by = [\"all\"]\n\
             to = [{ node = \"ambient\", mk_per_w = 10000 }]\n",
        );
        let h = heat.step_ns();
        let mut worst: f64 = 0.0;
        for step in 1..=6_000u64 {
            heat.add(CHIP, 2_000_000 * u128::from(h));
            heat.step(step * h, |_| false);
            let t = (step * h) as f64 / 1e9;
            let exact = 20.0 + 20.0 * (1.0 - (-t / 5.0).exp());
            worst = worst.max((heat.temperature_uc(0) as f64 / 1e6 - exact).abs());
        }
        assert!(worst < 20.0 * 0.005 / 10.0, "off by {worst} K");
        assert!(worst > 1e-4, "an error of Euler's size is there: {worst}");
        // And cools by half in τ ln 2.
        let warm = heat.temperature_uc(0) - 20_000_000;
        for step in 6_001..=6_693u64 {
            heat.step(step * h, |_| false);
        }
        let half = (heat.temperature_uc(0) - 20_000_000) as f64 / warm as f64;
        assert!((half - 0.5).abs() < 0.001, "{half}");
    }

    /// Two idle nodes: the flow through both resistances is the power, so 1 W makes 5 K and 15 K.
    #[test]
    fn a_chain_comes_to_rest() {
        let mut heat = heat(
            "heat = true\nambient_c = 4\nstart_above_k = 26\nheat_step_us = 10000\n",
            "[heat_node.chip]\ncapacity_mj_per_k = 100\nheated_by = [\"all\"]\nto = [{ node = \"case\", mk_per_w = 10000 }]\n\
             [heat_node.case]\ncapacity_mj_per_k = 1000\nto = [{ node = \"ambient\", mk_per_w = 5000 }]\n",
        );
        let h = heat.step_ns();
        for step in 1..=10_000u64 {
            heat.add(CHIP, 1_000_000 * u128::from(h));
            heat.step(step * h, |_| step > 5_000);
        }
        // 4 + 1 W · 5 K/W, and 10 K/W more, but for what cutting the flows leaves.
        assert!((8_999_900..=9_000_100).contains(&heat.temperature_uc(1)));
        assert!((18_999_900..=19_000_100).contains(&heat.temperature_uc(0)));
        let metric = |name: &str| heat.metrics().into_iter().rfind(|m| m.name == name);
        assert_eq!(metric("throttled").unwrap().value, Some(50.0));
    }
}
