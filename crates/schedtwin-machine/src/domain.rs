// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads `[domain.NAME]`: CPUs that share a clock, and its operating points.
//!
//! ```toml
//! [domain.little]
//! cpus = "0-3"
//! opp = [
//!   { khz = 300_000, uv = 550_000, em_uw = 6_352, active_uw = 22_890, wfi_uw = 760, static_uw = 2_610 },
//! ]
//! ```
//!
//! Without fast switch, `driver` says whether the governor's thread `"sleeps"` or `"spins"` while the driver's call
//! takes `driver_latency_us`; left out, it spins for no time.
//!
//! How a clock gets from one frequency to another is told in `switching`.
//!
//! `uv` and `static_uw` may be left out, and `idle_static_uw`: the domain's own power while none of its CPUs
//! executes, where that differs from `static_uw`. `off_uw` of the table is its power while all its CPUs
//! are in deep states, 0 if left out. The latencies and flags at the top of the file hold for all
//! domains; a domain may have its own. `per_cpu = true` makes a domain of each of the CPUs, all with
//! the same operating points, called `NAME0`, `NAME1`, ... after the CPU.

use schedtwin_input::{Diagnostics, Located, Location, TableReader};
use schedtwin_types::{CpuId, Khz};

use crate::cpu_list::CpuList;
use crate::keys::{keys, upto};
use crate::oddities::{self, Placed};
use crate::switching::{self, ClockKeys, checked_latency};
use crate::{DriverWait, FrequencyDomain, OperatingPoint};

/// 10 GHz.
pub(crate) const MAX_KHZ: Khz = 10_000_000;

/// The largest power of anything: a kilowatt.
pub(crate) const MAX_UW: u64 = 1_000_000_000;

/// The most operating points of a domain: cpufreq tables of real machines have under 40.
const MAX_OPPS: usize = 256;

keys! {
    /// a clock: one for each cpufreq policy; `opp` lists its operating points
    struct DomainKeys in "domain.*" {
        /// numbers of the CPUs
        cpus: CpuList = Always, Cpus;
        /// a clock for each of these CPUs; false
        per_cpu: bool = May, Switch;
        /// power of the domain while all its CPUs are in deep states; 0
        off_uw: Located<u64> = May, upto(MAX_UW);
    }
}

keys! {
    /// operating points, from the slowest
    struct OppKeys in "domain.*.opp[]" {
        /// frequency
        khz: Located<Khz> = Always, Whole(1, MAX_KHZ.into());
        /// voltage; needed with `slew_uv_per_us`
        uv: u32 = May, upto(u32::MAX.into());
        /// power of one busy CPU in the kernel's energy model, which EAS reads
        em_uw: Located<u64> = Always, upto(MAX_UW);
        /// power of one busy CPU, measured, which the results count
        active_uw: Located<u64> = WithoutClass, upto(MAX_UW);
        /// power of one CPU in WFI, measured
        wfi_uw: Located<u64> = WithoutClass, upto(MAX_UW);
        /// power of the domain itself while at least one CPU is not in a deep state; 0
        static_uw: Located<u64> = May, upto(MAX_UW);
        /// the same while no CPU executes; `static_uw`
        idle_static_uw: Located<u64> = May, upto(MAX_UW);
    }
}

/// Values for every domain that does not say otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    transition_latency_us: u64,
    switching: switching::Keys,
    fast_switch: bool,
    driver: DriverWait,
    driver_latency_us: u64,
    dvfs_possible_from_any_cpu: bool,
    /// Whether the file says that nobody knows any power.
    power_unknown: bool,
}

impl Defaults {
    /// Reads them from the top of the file.
    pub(crate) fn read(
        root: &mut TableReader<'_>,
        power_unknown: bool,
        faults: &mut Diagnostics,
    ) -> Option<Defaults> {
        let keys = ClockKeys::read(root, faults);
        let switching = switching::Keys::of(&keys, faults);
        let driver = read_driver(&keys, faults)?;
        keys.settle_us?;
        Some(Defaults {
            power_unknown,
            transition_latency_us: checked_latency(&keys.transition_latency_us?, faults)?,
            switching: switching?,
            fast_switch: keys.fast_switch?,
            driver: driver.wait.unwrap_or(DriverWait::Spins),
            driver_latency_us: driver.latency_us.unwrap_or(0),
            dvfs_possible_from_any_cpu: keys.dvfs_possible_from_any_cpu?,
        })
    }
}

/// `driver` and `driver_latency_us`, as far as they are there.
struct Driver {
    wait: Option<DriverWait>,
    latency_us: Option<u64>,
}

/// `None`: one of them is wrong.
fn read_driver(keys: &ClockKeys, faults: &mut Diagnostics) -> Option<Driver> {
    let wait = keys.driver.as_ref().map(|word| match word.value.as_str() {
        "sleeps" => Some(DriverWait::Sleeps),
        "spins" => Some(DriverWait::Spins),
        other => {
            let message = format!("there is no driver that `{other}`");
            faults.push_at(&word.at, message, Some("known: `sleeps`, `spins`".into()));
            None
        }
    });
    let latency_us = keys.driver_latency_us.as_ref().map(|us| checked_latency(us, faults));
    Some(Driver {
        wait: wait.map_or(Some(None), |known| known.map(Some))?,
        latency_us: latency_us.map_or(Some(None), |checked| checked.map(Some))?,
    })
}

/// A domain with the places that later checks point at.
pub(crate) struct ReadDomain {
    pub(crate) domain: FrequencyDomain,
    pub(crate) cpus: CpuList,
    /// Where the frequency of each operating point stands.
    pub(crate) khz_at: Vec<Location>,
    /// Whether `per_cpu` made it: then its name is not the file's.
    pub(crate) per_cpu: bool,
}

/// Reads one table: one domain, or one for each CPU.
pub(crate) fn read(
    name: &Located<String>,
    mut table: TableReader<'_>,
    defaults: Option<&Defaults>,
    warnings: &mut Diagnostics,
    faults: &mut Diagnostics,
) -> Vec<ReadDomain> {
    let DomainKeys { cpus, per_cpu, off_uw } = DomainKeys::read(&mut table, faults);
    let own = ClockKeys::read_if(&mut table, |_| false, faults);
    let switching = switching::Keys::of(&own, faults);
    let driver = read_driver(&own, faults);
    let off_uw = power("off_uw", off_uw, faults);
    let power_unknown = defaults.is_some_and(|defaults| defaults.power_unknown);
    let opps = read_opps(name, &mut table, power_unknown, warnings, faults);
    table.finish(faults);

    let transition = own.transition_latency_us.map(|us| checked_latency(&us, faults));
    let (Some(cpus), Some(opps), Some(driver), Some(defaults)) = (cpus, opps, driver, defaults)
    else {
        return Vec::new();
    };
    let (opps, khz_at): (Vec<_>, Vec<_>) = opps.into_iter().map(|p| (p.opp, p.khz_at)).unzip();
    let switching = switching.and_then(|own| own.or(&defaults.switching).build(&opps, faults));
    let transition = transition.unwrap_or(Some(defaults.transition_latency_us));
    let (Some(transition), Some(switching)) = (transition, switching) else {
        return Vec::new();
    };
    let domain = FrequencyDomain {
        name: name.value.clone(),
        cpus: cpus.cpus(),
        opps,
        kernel_transition_latency_ns: transition * 1000,
        switching,
        fast_switch: own.fast_switch.unwrap_or(defaults.fast_switch),
        driver: driver.wait.unwrap_or(defaults.driver),
        driver_latency_ns: driver.latency_us.unwrap_or(defaults.driver_latency_us) * 1000,
        dvfs_possible_from_any_cpu: own
            .dvfs_possible_from_any_cpu
            .unwrap_or(defaults.dvfs_possible_from_any_cpu),
        off_uw: off_uw.unwrap_or(0),
    };
    if per_cpu != Some(true) {
        return vec![ReadDomain { domain, cpus, khz_at, per_cpu: false }];
    }
    let each = |cpu: CpuId| {
        let domain = FrequencyDomain {
            name: format!("{}{cpu}", name.value),
            cpus: vec![cpu],
            ..domain.clone()
        };
        ReadDomain { domain, cpus: cpus.clone(), khz_at: khz_at.clone(), per_cpu: true }
    };
    cpus.mask.iter().map(each).collect()
}

fn read_opps(
    name: &Located<String>,
    table: &mut TableReader<'_>,
    power_unknown: bool,
    warnings: &mut Diagnostics,
    faults: &mut Diagnostics,
) -> Option<Vec<Placed>> {
    let at = table.location_of("opp");
    let had = faults.0.len();
    let rows = table.tables("opp", faults);
    if rows.is_empty() && faults.0.len() == had {
        faults.push_at(&at, format!("domain `{}` has no operating point", name.value), None);
    }
    if rows.len() > MAX_OPPS {
        faults.push_at(&at, format!("{} operating points: at most {MAX_OPPS}", rows.len()), None);
        return None;
    }
    let mut opps: Vec<Placed> = Vec::new();
    for row in rows {
        let [khz_at, em_at, active_at, wfi_at] =
            ["khz", "em_uw", "active_uw", "wfi_uw"].map(|key| row.location_of(key));
        let Some(opp) = read_opp(row, faults) else {
            continue;
        };
        if let Some(previous) = opps.last().map(|previous| &previous.opp) {
            if opp.khz == previous.khz {
                faults.push_at(&khz_at, format!("{} kHz is listed twice", opp.khz), None);
            } else if opp.khz < previous.khz {
                let message = format!("{} kHz after {} kHz", opp.khz, previous.khz);
                faults.push_at(
                    &khz_at,
                    message,
                    Some("frequencies rise from the first to the last".into()),
                );
            }
        }
        opps.push(Placed { opp, khz_at, em_at, active_at, wfi_at });
    }
    if faults.0.len() > had {
        return None;
    }
    oddities::of_opps(&opps, &at, power_unknown, warnings);
    Some(opps)
}

fn read_opp(mut row: TableReader<'_>, faults: &mut Diagnostics) -> Option<OperatingPoint> {
    let keys = OppKeys::read(&mut row, faults);
    let (khz, microvolt) = (keys.khz, keys.uv);
    let em = power("em_uw", keys.em_uw, faults);
    let active = power("active_uw", keys.active_uw, faults);
    let wfi = power("wfi_uw", keys.wfi_uw, faults);
    let domain = power("static_uw", keys.static_uw, faults);
    let idle_domain = power("idle_static_uw", keys.idle_static_uw, faults);
    row.finish(faults);
    let khz = khz?;
    if khz.value == 0 || khz.value > MAX_KHZ {
        let message = format!("{} kHz is not within 1 kHz to 10 GHz", khz.value);
        let help =
            (khz.value > MAX_KHZ).then(|| "`khz` is in kHz: 2.4 GHz are 2_400_000".to_string());
        faults.push_at(&khz.at, message, help);
        return None;
    }
    Some(OperatingPoint {
        khz: khz.value,
        microvolt,
        em_power_uw: em?,
        active_uw: active?,
        idle_wfi_uw: wfi?,
        static_uw: domain.unwrap_or(0),
        idle_static_uw: idle_domain.or(domain).unwrap_or(0),
    })
}

fn power(key: &str, value: Option<Located<u64>>, faults: &mut Diagnostics) -> Option<u64> {
    let value = value?;
    if value.value > MAX_UW {
        faults.push_at(
            &value.at,
            format!("`{key}` is more than a kilowatt"),
            Some("powers are in µW".into()),
        );
        return None;
    }
    Some(value.value)
}
