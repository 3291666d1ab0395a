// SPDX-License-Identifier: GPL-2.0-or-later
//! Firmware that holds clocks back: see [`schedtwin_machine::PowerLimit`], whose file says by which rule.

use crate::result::Metric;
use schedtwin_machine::{FrequencyDomain, Machine, PowerBudget, PowerLimit};
use schedtwin_types::arena::Arena;
use schedtwin_types::{ClockDomainId, CpuId, NEVER, Ns, PowerSource, metric};
use std::sync::Arc;

/// Fractional bits of an average of power.
const FRACTION: u32 = 16;

/// All limits of a run.
#[derive(Clone, Debug)]
pub struct PowerLimits {
    machine: Arc<Machine>,
    limits: Vec<Limit>,
    /// Per clock: the number of its limit.
    limit_of: Arena<ClockDomainId, Option<usize>>,
    /// Per clock: the highest operating point that is allowed.
    highest: Arena<ClockDomainId, usize>,
    /// Per clock: for how long it was held back in the window.
    held_back_ns: Arena<ClockDomainId, Ns>,
    window_start: Ns,
    at: Ns,
}

/// Where firmware stands with one limit.
#[derive(Clone, Debug)]
struct Limit {
    next_at: Ns,
    looked_at: Ns,
    /// Energy since then, fJ.
    used_fj: u128,
    /// Average power, µW with [`FRACTION`] bits more.
    average: i128,
    /// How many operating points below the top the budget holds the clocks.
    down: usize,
}

impl PowerLimits {
    /// Nothing is held back yet; `None`: the machine has no limit.
    pub fn new(machine: &Arc<Machine>, window_start: Ns) -> Option<PowerLimits> {
        if machine.power_limits.is_empty() {
            return None;
        }
        let limit = |limit: &PowerLimit| Limit {
            next_at: limit.step_ns,
            looked_at: 0,
            used_fj: 0,
            average: 0,
            down: 0,
        };
        let of = |clock: ClockDomainId| {
            machine.power_limits.iter().position(|limit| limit.clocks.contains(&clock))
        };
        let top = |domain: &FrequencyDomain| domain.opps.len() - 1;
        Some(PowerLimits {
            limits: machine.power_limits.iter().map(limit).collect(),
            limit_of: machine.domains.ids().map(of).collect(),
            highest: machine.domains.iter().map(top).collect(),
            held_back_ns: vec![0; machine.domains.len()].into(),
            window_start,
            at: 0,
            machine: machine.clone(),
        })
    }

    /// The highest operating point of a clock that is allowed.
    pub fn highest(&self, clock: ClockDomainId) -> usize {
        self.highest[clock]
    }

    /// When firmware looks next.
    pub fn next_at(&self) -> Ns {
        self.limits.iter().map(|limit| limit.next_at).min().unwrap_or(NEVER)
    }

    /// Energy that was used.
    pub fn add(&mut self, source: PowerSource, fj: u128) {
        if let PowerSource::Clock(clock) = source
            && let Some(limit) = self.limit_of[clock]
        {
            self.limits[limit].used_fj += fj;
        }
    }

    /// Firmware looks, with all energy added until `now`. `awake`: how many of some CPUs' cores are awake; `held_back`: whether a
    /// clock has been slower than asked since the last step.
    pub fn step(
        &mut self,
        now: Ns,
        awake: impl Fn(&[CpuId]) -> usize,
        held_back: impl Fn(ClockDomainId) -> bool,
    ) {
        let counted = now.max(self.window_start) - self.at.max(self.window_start);
        for clock in self.held_back_ns.ids() {
            self.held_back_ns[clock] += if held_back(clock) { counted } else { 0 };
        }
        self.at = now;
        let PowerLimits { machine, limits, highest, .. } = self;
        for (limit, model) in limits.iter_mut().zip(&machine.power_limits) {
            if now < limit.next_at {
                continue;
            }
            let opps = |clock: &ClockDomainId| machine.domains[*clock].opps.len();
            let deepest = model.clocks.iter().map(opps).max().unwrap_or(1) - 1;
            if let Some(budget) = &model.budget {
                limit.look(budget, now, deepest);
            }
            (limit.looked_at, limit.used_fj) = (now, 0);
            limit.next_at = now + model.step_ns;
            let counts = !model.awake_khz.is_empty();
            let by_cores = if counts { model.khz_with(awake(&model.cpus)) } else { None };
            for &clock in &model.clocks {
                let domain = &machine.domains[clock];
                let by_budget = (domain.opps.len() - 1).saturating_sub(limit.down);
                let by_cores = by_cores.map_or(by_budget, |khz| domain.opp_at_most(khz));
                highest[clock] = by_budget.min(by_cores);
            }
        }
    }

    /// Returns the measurement: the share of time that clocks were held back.
    pub fn metrics(&self) -> Vec<Metric> {
        let span = self.at.max(self.window_start) - self.window_start;
        let share = |ns: Ns| (span > 0).then(|| ns as f64 / span as f64 * 100.0);
        let limited =
            self.machine.domains.iter_ids().filter(|(id, _)| self.limit_of[*id].is_some());
        let row = |(id, domain): (ClockDomainId, &FrequencyDomain)| {
            let labels = vec![("domain", domain.name.clone())];
            metric::POWER_LIMITED.value("mean", labels, share(self.held_back_ns[id]))
        };
        limited.map(row).collect()
    }
}

impl Limit {
    /// Moves the clocks by an operating point at most, by the energy drawn since the last look.
    fn look(&mut self, budget: &PowerBudget, now: Ns, deepest: usize) {
        let span = now - self.looked_at;
        let power = (self.used_fj / u128::from(span.max(1))) as u64;
        let step = (i128::from(power) << FRACTION) - self.average;
        self.average += step * i128::from(span) / i128::from(budget.tau_ns);
        let spent = self.average >= i128::from(budget.sustained_uw) << FRACTION;
        let allowed = if spent { budget.sustained_uw } else { budget.burst_uw };
        if power > allowed {
            self.down = (self.down + 1).min(deepest);
        } else if !spent && power + power / 16 <= allowed {
            self.down = self.down.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHIP: ClockDomainId = ClockDomainId(0);

    fn limits(table: &str) -> PowerLimits {
        let source = schedtwin_machine::builtin_source("uniform8").expect("it is built in");
        let text = &source.text;
        let text = format!("{text}\n[power_limit.chip]\ncpus = \"0-7\"\n{table}");
        let source = schedtwin_input::Source::new("limited.toml", text);
        let machine = Machine::from_source(&source, &[]).unwrap_or_else(|f| panic!("{f}"));
        PowerLimits::new(&Arc::new(machine), 0).expect("it has a limit")
    }

    /// 4 W for as long as the average of 2 s is below 1 W: a load of 3 W is let go for −2 s · ln(1 − 1/3) = 0.81 s.
    #[test]
    fn the_burst_lasts_as_long_as_the_average_allows() {
        let mut limits = limits("sustained_uw = 1000000\nburst_uw = 4000000\ntau_ms = 2000\n");
        let top = limits.highest(CHIP);
        let mut went_down_at = 0;
        for ms in 1..=2_000u64 {
            limits.add(PowerSource::Clock(CHIP), 3_000_000 * 1_000_000);
            limits.step(ms * 1_000_000, |_| 8, |_| false);
            if limits.highest(CHIP) < top && went_down_at == 0 {
                went_down_at = ms;
            }
        }
        let exact = -2.0 * (1.0f64 - 1.0 / 3.0).ln() * 1e3;
        assert!((went_down_at as f64 - exact).abs() < 3.0, "{went_down_at} ms for {exact}");
        assert_eq!(limits.highest(CHIP), 0, "a load that no clock tames goes to the lowest");
        // The average was 3 W · (1 − e^(−1)) = 1.90 W, and is below 1 W after 2 s · ln 1.90 = 1.28 s.
        let mut went_up_at = 0;
        for ms in 2_001..=4_000u64 {
            limits.step(ms * 1_000_000, |_| 8, |_| false);
            if limits.highest(CHIP) > 0 && went_up_at == 0 {
                went_up_at = ms - 2_000;
            }
        }
        assert!((1_270..=1_290).contains(&went_up_at), "{went_up_at} ms");
        assert_eq!(limits.highest(CHIP), top, "who draws nothing goes up again");
    }

    #[test]
    fn cores_that_are_awake_count() {
        let machine = Machine::load("uniform8").unwrap();
        let opps = &machine.domains[CHIP].opps;
        let (low, middle) = (opps[0].khz, opps[1].khz);
        let mut limits = limits(&format!("awake_khz = [{middle}, {low}]\n"));
        for (step, (cores, highest)) in [(1, 1), (2, 0), (8, 0), (0, 1)].into_iter().enumerate() {
            limits.step((step as u64 + 1) * 1_000_000, |_| cores, |_| true);
            assert_eq!(limits.highest(CHIP), highest, "{cores} cores");
        }
        let metrics = limits.metrics();
        assert_eq!(metrics[0].value, Some(100.0));
    }
}
