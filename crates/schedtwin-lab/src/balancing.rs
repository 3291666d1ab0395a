// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether runs are long enough for load balancing to have a say, and busy enough for power to say something.

use schedtwin_engine::DomainTable;
use schedtwin_types::{Duration, Ns, metric};

use crate::measured::Row;

/// How often CPUs balance at the widest level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WidestLevel {
    name: &'static str,
    nr_cpus: u64,
    interval_ms: u64,
    busy_factor: u64,
    settled: bool,
}

/// From this mean utilisation on, most CPUs balance as busy ones do, in %.
const BUSY: f64 = 50.0;

impl WidestLevel {
    /// The widest level of a machine; `None`: its CPUs do not balance.
    ///
    /// `settled`: the run begins after long idleness (`start`), so intervals have doubled and the first balance is due at once.
    pub fn of(table: &DomainTable, settled: bool) -> Option<WidestLevel> {
        let level = table.levels.last()?;
        let domain = level.domains.iter().max_by_key(|domain| domain.span.weight())?;
        Some(WidestLevel {
            name: level.name,
            nr_cpus: domain.span.weight().into(),
            interval_ms: if settled { domain.max_interval_ms } else { domain.min_interval_ms },
            busy_factor: domain.busy_factor.into(),
            settled,
        })
    }

    /// `get_sd_balance_interval()`: its longest value is 100 ms for each CPU.
    fn interval(&self, busy: bool) -> Ns {
        let factor = if busy { self.busy_factor } else { 1 };
        (self.interval_ms * factor).min(100 * self.nr_cpus) * 1_000_000
    }

    /// Warns if the shortest of the runs ends before each CPU has balanced once at this level.
    pub(crate) fn warning(&self, rows: &[Row]) -> Option<String> {
        let shortest = shortest(rows)?;
        let busy = whole(rows, &metric::UTILIZATION)?.any(|percent| percent >= BUSY);
        let interval = self.interval(busy);
        (shortest * 1e9 < interval as f64).then(|| {
            format!(
                "runs are shorter than {}, the time between two load balances of {} CPUs over all {} ({}){}: tasks may still be \
                 where they began. With a longer --duration, or more work, they spread",
                Duration::from_ns(interval),
                if busy { "busy" } else { "idle" },
                self.nr_cpus,
                self.name,
                if self.settled { ", the first of which is due at the first tick" } else { "" }
            )
        })
    }
}

/// Below this mean utilisation a machine's power is mostly that of its sleeping CPUs, in %.
const ASLEEP: f64 = 1.0;

/// Warnings of a machine that is nearly always asleep: that its sleep takes no power
/// ([`Subject::sleeps_without_power`]), and that nothing wakes it as a system would ([`Subject::is_alone`]).
///
/// [`Subject::sleeps_without_power`]: crate::compare::Subject::sleeps_without_power
/// [`Subject::is_alone`]: crate::compare::Subject::is_alone
pub(crate) fn asleep_warnings(rows: &[Row], without_power: bool, is_alone: bool) -> Vec<String> {
    let all_below = |of: &metric::DeclaredMetric, most: f64| {
        whole(rows, of).is_some_and(|mut values| values.all(|value| value < most))
    };
    if !all_below(&metric::UTILIZATION, ASLEEP) {
        return Vec::new();
    }
    let has_power = whole(rows, &metric::POWER).is_some_and(|mut of| of.any(|mw| mw > 0.0));
    let power = (without_power && has_power).then_some(
        "CPUs are asleep for nearly all the time, and sleep takes no power in the machine's file: differences of power and energy in \
         % are those of the little that is left, not of a machine",
    );
    let alone = is_alone.then_some(
        "CPUs are asleep for nearly all the time, and nothing but the workload wakes them: a few sleeps decide. A real machine has \
         watchdogs, statistics and RCU beside it: -w 'WORKLOAD --system server-linux' (schedtwin list systems)",
    );
    power.into_iter().chain(alone).map(String::from).collect()
}

/// All samples of a metric of the whole machine.
fn whole<'r>(
    rows: &'r [Row],
    of: &metric::DeclaredMetric,
) -> Option<impl Iterator<Item = f64> + use<'r>> {
    let row = rows.iter().find(|row| row.name == of.name && row.is_whole())?;
    Some(row.samples.iter().flatten().flatten().copied())
}

/// The length of the shortest run, s.
fn shortest(rows: &[Row]) -> Option<f64> {
    whole(rows, &metric::ELAPSED)?.min_by(f64::total_cmp)
}

/// Caches of fewer CPUs balance so soon, or are searched so little, that it hardly counts.
const FEWEST_CPUS: u32 = 16;

/// Runs of that many balance intervals say little of what wakeups do before the first of them.
const ENOUGH: u64 = 10;

/// Warns if a short run may be decided by a cache that wakeups do not search at first: the machine has just booted
/// (`start`).
pub(crate) fn unscanned_warning(kernel: &str, cpus: u32, rows: &[Row]) -> Option<String> {
    if cpus < FEWEST_CPUS {
        return None;
    }
    let shortest = shortest(rows)?;
    // An idle CPU balances its cache after a millisecond for each of its CPUs.
    let interval = u64::from(cpus) * 1_000_000;
    (shortest * 1e9 < (ENOUGH * interval) as f64).then(|| {
        format!(
            "{kernel}: until a cache of {cpus} CPUs has been balanced for the first time, after some {}, wakeups look for no idle \
             CPU in it, since the machine has just booted. Take runs of {} or more, or `start=settled`",
            Duration::from_ns(interval),
            Duration::from_ns(ENOUGH * interval),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_types::metric::{Better, Kind};

    #[test]
    fn a_machine_that_has_just_booted_is_told() {
        let told = |cpus, elapsed| {
            unscanned_warning("k", cpus, &[row(&metric::ELAPSED, "sum", &[elapsed, 9.0])])
        };
        assert!(told(24, 0.02).unwrap().contains("after some 24ms"), "{:?}", told(24, 0.02));
        assert_eq!((told(24, 0.24), told(8, 0.02)), (None, None));
    }

    fn row(of: &metric::DeclaredMetric, stat: &'static str, samples: &[f64]) -> Row {
        Row {
            name: of.name,
            stat,
            unit: "",
            labels: Default::default(),
            kind: Kind::One,
            better: Better::Neutral,
            samples: vec![samples.iter().map(|sample| Some(*sample)).collect()],
        }
    }

    #[test]
    fn a_sleeping_machine_is_told() {
        let warnings = |utilization: f64, power: f64, without_power, is_alone| {
            let rows = [
                row(&metric::UTILIZATION, "mean", &[utilization]),
                row(&metric::POWER, "mean", &[power]),
            ];
            asleep_warnings(&rows, without_power, is_alone).len()
        };
        assert_eq!((warnings(0.1, 3.0, true, false), warnings(0.1, 3.0, true, true)), (1, 2));
        assert_eq!((warnings(0.1, 0.0, true, false), warnings(40.0, 3.0, true, true)), (0, 0));
    }

    #[test]
    fn the_shortest_run_is_held_against_the_interval() {
        let level = WidestLevel {
            name: "NUMA",
            nr_cpus: 160,
            interval_ms: 160,
            busy_factor: 16,
            settled: false,
        };
        let warning = |elapsed: &[f64], utilization: f64| {
            let rows = [
                row(&metric::ELAPSED, "sum", elapsed),
                row(&metric::UTILIZATION, "mean", &[utilization]),
            ];
            level.warning(&rows)
        };
        assert_eq!(warning(&[0.2, 3.0], 10.0), None);
        assert!(warning(&[0.15, 3.0], 10.0).expect("0.16 s").contains("160ms"));
        assert!(warning(&[2.5, 3.0], 70.0).expect("2.56 s").contains("2s 560ms"));
        assert_eq!(warning(&[2.6, 3.0], 70.0), None);
    }
}
