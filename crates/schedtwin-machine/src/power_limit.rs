// SPDX-License-Identifier: GPL-2.0-or-later
//! `[power_limit.NAME]`: limits of clocks by firmware, by the number of awake cores and by a power budget.
//!
//! ```toml
//! [power_limit.package]
//! cpus = "0-7"
//! step_us = 1000                             # how often it looks; 1000 if left out
//! awake_khz = [4_800_000, 4_700_000]         # the highest clock while one, two, ... cores are awake; the last holds for more
//! sustained_uw = 65_000_000                  # what may be drawn for long (PL1) ...
//! tau_ms = 28_000                            # ... as an average that forgets with this time constant,
//! burst_uw = 134_000_000                     # and what may be drawn until then (PL2)
//! tells_kernel = true                        # hardware pressure; false if left out
//! ```
//!
//! `awake_khz` or the three keys of the budget may be left out, not both. A core is awake
//! unless all its threads are in deep states.
//!
//! # Rule of the budget
//!
//! At each step the firmware reads the power since the last step. The limit is `burst_uw` while the average is
//! below `sustained_uw`, else `sustained_uw`. If the power exceeds the limit, all clocks go down by one operating
//! point. If the average is below `sustained_uw` and the power is below the limit by a sixteenth, they go up by
//! one.
//!
//! Differences: this rule is an estimate, because the firmware of real machines is not public. It counts the power
//! of clocks that lie wholly within `cpus`, and not that of packages. It takes no time, and its interrupt costs
//! nothing.

use crate::cpu_list::CpuList;
use crate::domain::{MAX_KHZ, MAX_UW};
use crate::keys::{keys, list};
use crate::{Cpu, FrequencyDomain};
use schedtwin_input::{Diagnostics, Located, TableReader};
use schedtwin_types::arena::Arena;
use schedtwin_types::{ClockDomainId, CpuId, Khz, Ns};

/// The largest number of limits of a machine.
const MAX_LIMITS: usize = 64;

/// The largest number of awake cores for which a clock is given.
const MAX_AWAKE: usize = 256;

/// A limit of clocks by firmware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerLimit {
    /// The name in the file: `package`.
    pub name: String,
    /// Its CPUs, ascending.
    pub cpus: Vec<CpuId>,
    /// The clocks of these, which have no other CPUs.
    pub clocks: Vec<ClockDomainId>,
    /// Time between two decisions of the firmware, ns.
    pub step_ns: Ns,
    /// The highest clock while one, two, ... cores are awake; the last holds for more. Empty: no matter.
    pub awake_khz: Vec<Khz>,
    /// The budget, if it has one.
    pub budget: Option<PowerBudget>,
    /// Whether the kernel is told (`arch_update_hw_pressure()`).
    pub tells_kernel: bool,
}

/// The power that may be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerBudget {
    /// For long, µW.
    pub sustained_uw: u64,
    /// Until the average is there, µW; at least `sustained_uw`.
    pub burst_uw: u64,
    /// Time constant of the average, ns.
    pub tau_ns: Ns,
}

impl PowerLimit {
    /// The highest clock while so many cores are awake; `None`: no matter.
    ///
    /// ```
    /// # use schedtwin_machine::PowerLimit;
    /// # let limit = |awake_khz| PowerLimit { name: "p".into(), cpus: vec![], clocks: vec![], step_ns: 1, awake_khz,
    /// #     budget: None, tells_kernel: false };
    /// let two = limit(vec![3_400_000, 3_200_000]);
    /// assert_eq!([0, 1, 2, 8].map(|cores| two.khz_with(cores).unwrap()), [3_400_000, 3_400_000, 3_200_000, 3_200_000]);
    /// ```
    pub fn khz_with(&self, awake: usize) -> Option<Khz> {
        let last = self.awake_khz.len().checked_sub(1)?;
        Some(self.awake_khz[awake.saturating_sub(1).min(last)])
    }
}

keys! {
    /// limits of clocks by firmware: by the number of awake cores, by a power budget, or by both
    struct PowerLimitKeys in "power_limit.*" {
        /// numbers of the CPUs
        cpus: CpuList = Always, Cpus;
        /// time between two decisions of the firmware; 1000
        step_us: Located<u64> = May, Whole(10, 1_000_000);
        /// highest clocks while one, two, ... cores are awake
        awake_khz: Located<Vec<Khz>> = May, list(Whole(1, MAX_KHZ.into()));
        /// average power that is allowed; needs the next two
        sustained_uw: Located<u64> = May, Whole(1, MAX_UW as i64);
        /// time constant of the average
        tau_ms: Located<u64> = May, Whole(1, 1_000_000);
        /// power that is allowed until the average reaches `sustained_uw`
        burst_uw: Located<u64> = May, Whole(1, MAX_UW as i64);
        /// the kernel gets the limit as hardware pressure; false
        tells_kernel: bool = May, Switch;
    }
}

/// A table as far as it can be read without knowing the CPUs.
pub(crate) struct ReadPowerLimit {
    cpus: CpuList,
    limit: PowerLimit,
}

/// Reads one table.
pub(crate) fn read(
    name: &Located<String>,
    mut table: TableReader<'_>,
    faults: &mut Diagnostics,
) -> Option<ReadPowerLimit> {
    let had = faults.0.len();
    let keys = PowerLimitKeys::read(&mut table, faults);
    let mut within = |key: &str, value: Option<Located<u64>>, least, most, words: &str| {
        let value = value?;
        if value.value < least || value.value > most {
            faults.push_at(&value.at, format!("`{key}` is not within {words}"), None);
        }
        Some(value.value.clamp(least, most))
    };
    let step_us = within("step_us", keys.step_us, 10, 1_000_000, "10 us to a second");
    let watts = "1 uW to a kilowatt";
    let sustained = within("sustained_uw", keys.sustained_uw, 1, MAX_UW, watts);
    let tau_ms = within("tau_ms", keys.tau_ms, 1, 1_000_000, "1 ms to 1000 s");
    let burst = within("burst_uw", keys.burst_uw, 1, MAX_UW, watts);
    let (cpus, tells_kernel) = (keys.cpus, keys.tells_kernel);
    let khz_at = keys.awake_khz.as_ref().map_or(table.location(), |list| &list.at).clone();
    let awake_khz = keys.awake_khz.map_or(Vec::new(), |list| list.value);
    table.finish(faults);
    let fine = |khz: &Khz| (1..=MAX_KHZ).contains(khz);
    let falls = awake_khz.windows(2).all(|pair| pair[1] <= pair[0]);
    if awake_khz.len() > MAX_AWAKE || !awake_khz.iter().all(fine) || !falls {
        let help = format!("at most {MAX_AWAKE} frequencies in kHz, none above the one before");
        faults.push_at(&khz_at, "these are no clocks by cores that are awake", Some(help));
    }
    let budget = match (sustained, tau_ms, burst) {
        (Some(sustained_uw), Some(tau_ms), Some(burst_uw)) => {
            if burst_uw < sustained_uw {
                let at = table_place(&cpus, &khz_at);
                faults.push_at(at, "`burst_uw` is less than `sustained_uw`", None);
            }
            Some(PowerBudget { sustained_uw, burst_uw, tau_ns: tau_ms * 1_000_000 })
        }
        (None, None, None) => None,
        _ => {
            let message = "a budget has `sustained_uw`, `tau_ms` and `burst_uw`";
            faults.push_at(table_place(&cpus, &khz_at), message, None);
            None
        }
    };
    let cpus = cpus?;
    if faults.0.len() == had && awake_khz.is_empty() && budget.is_none() {
        let help = "write `awake_khz`, or `sustained_uw`, `tau_ms` and `burst_uw`".to_string();
        faults.push_at(&cpus.at, "it limits nothing", Some(help));
    }
    let step_ns = step_us.unwrap_or(1000) * 1000;
    if let Some(budget) = budget.filter(|budget| budget.tau_ns < step_ns) {
        let message = format!("the average forgets within {} ns, less than a step", budget.tau_ns);
        faults.push_at(&cpus.at, message, None);
    }
    let limit = PowerLimit {
        name: name.value.clone(),
        cpus: cpus.cpus(),
        clocks: Vec::new(),
        step_ns,
        awake_khz,
        budget,
        tells_kernel: tells_kernel.unwrap_or(false),
    };
    (faults.0.len() == had).then_some(ReadPowerLimit { cpus, limit })
}

/// Where a fault of the whole table is told.
fn table_place<'a>(
    cpus: &'a Option<CpuList>,
    other: &'a schedtwin_input::Location,
) -> &'a schedtwin_input::Location {
    cpus.as_ref().map_or(other, |cpus| &cpus.at)
}

/// Finds the clocks of each; no clock has two limits.
pub(crate) fn build(
    read: Vec<ReadPowerLimit>,
    cpus: &[Cpu],
    domains: &Arena<ClockDomainId, FrequencyDomain>,
    faults: &mut Diagnostics,
) -> Vec<PowerLimit> {
    if read.len() > MAX_LIMITS {
        let message = format!("{} power limits: at most {MAX_LIMITS}", read.len());
        faults.push_at(&read[0].cpus.at, message, None);
        return Vec::new();
    }
    let mut built: Vec<PowerLimit> = Vec::new();
    for ReadPowerLimit { cpus: list, mut limit } in read {
        if let Some(cpu) = limit.cpus.iter().find(|cpu| cpu.index() >= cpus.len()) {
            faults.push_at(&list.at, format!("there is no CPU {cpu}"), None);
            continue;
        }
        for (clock, domain) in domains.iter_ids() {
            let inside = domain.cpus.iter().filter(|cpu| limit.cpus.contains(cpu)).count();
            if inside > 0 && inside < domain.cpus.len() {
                let message = format!("clock `{}` has other CPUs, too", domain.name);
                faults.push_at(&list.at, message, Some("a limit holds whole clocks back".into()));
            } else if inside > 0 {
                limit.clocks.push(clock);
            }
        }
        let taken = |earlier: &PowerLimit| limit.clocks.iter().any(|c| earlier.clocks.contains(c));
        if let Some(earlier) = built.iter().find(|earlier| taken(earlier)) {
            let message = format!("a clock of it has a limit already: `{}`", earlier.name);
            faults.push_at(&list.at, message, None);
        }
        built.push(limit);
    }
    built
}

#[cfg(test)]
mod tests {
    use crate::Machine;
    use schedtwin_input::Source;

    fn read(table: &str) -> Result<Machine, String> {
        let text = include_str!("../machines/juno-r2.toml");
        let source = Source::new("limits.toml", format!("{text}\n[power_limit.all]\n{table}"));
        Machine::from_source(&source, &[]).map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_limit_of_two_clocks() {
        let budget = "sustained_uw = 500000\ntau_ms = 100\nburst_uw = 900000\n";
        let machine = read(&format!("cpus = \"0-5\"\nawake_khz = [800000]\n{budget}")).unwrap();
        let limit = &machine.power_limits[0];
        assert_eq!((limit.clocks.len(), limit.step_ns, limit.tells_kernel), (2, 1_000_000, false));
        assert_eq!(limit.budget.unwrap().tau_ns, 100_000_000);
    }

    #[test]
    fn what_cannot_be() {
        for (table, complaint) in [
            ("cpus = \"0-5\"", "it limits nothing"),
            ("cpus = \"0-5\"\ntau_ms = 3", "a budget has"),
            ("cpus = \"0-9\"\nawake_khz = [1]", "no CPU 6"),
            ("cpus = \"0-1\"\nawake_khz = [1]", "has other CPUs, too"),
            ("cpus = \"0-5\"\nawake_khz = [1, 2]", "no clocks by cores"),
            ("cpus = \"0-5\"\nawake_khz = [0]", "no clocks by cores"),
            ("cpus = \"0-5\"\nstep_us = 1\nawake_khz = [1]", "not within 10 us"),
            ("cpus = \"0-5\"\nsustained_uw = 5\nburst_uw = 4\ntau_ms = 9", "less than `sust"),
            (
                "cpus = \"0-5\"\nsustained_uw = 5\nburst_uw = 6\ntau_ms = 9\nstep_us = 10000",
                "less than a step",
            ),
            (
                "cpus = \"0-5\"\nawake_khz = [1]\n[power_limit.b]\ncpus = \"0-5\"\nawake_khz = [1]",
                "already",
            ),
        ] {
            let faults = read(table).unwrap_err();
            assert!(faults.contains(complaint), "{table}: {faults}");
        }
    }
}
