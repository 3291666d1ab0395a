// SPDX-License-Identifier: GPL-2.0-or-later
//! `[power.NAME]`: parts of the silicon above single CPUs that have power and idle states of their own.
//!
//! A cluster's logic, a package with its caches and ring: each is a set of CPUs, and its power follows the
//! deepest state that all of them have in common. Sets are nested or disjoint, so they form a tree.
//!
//! ```toml
//! [power.package]
//! cpus = "0-11"
//! uw = 2_000_000                  # while none of the states below holds
//! states = [
//!   { name = "PC7", cpus_in = "C3_ACPI", uw = 1_400_000, exit_ns = 288_408 },
//! ]
//! ```
//!
//! Nobody asks for such a state: firmware or the power unit enters it once every CPU of the set is
//! idle in
//! the idle state named by `cpus_in`, or a deeper one, and leaves it with the first CPU that is woken, which
//! waits for `exit_ns` on top of its own way out. `residency_us`: it is entered only while no CPU of the
//! set has a timer within that time. `entry_nj`: energy of each entry. All three may be left out (0).
//!
//! States that CPUs do ask for are in the core's table, see `core_type`.

use schedtwin_input::{Diagnostics, Located, TableReader, did_you_mean};
use schedtwin_types::{CpuId, Ns};

use crate::core_type::{MAX_ENTRY_NJ, MAX_LATENCY_NS};
use crate::cpu_list::CpuList;
use crate::domain::MAX_UW;
use crate::keys::{keys, upto};
use crate::{CoreType, Cpu};

/// The most states of one power domain (package states of client processors go up to PC10).
const MAX_STATES: usize = 8;

/// The most power domains of a machine: a few levels above each CPU.
const MAX_DOMAINS: usize = 512;

/// A set of CPUs with power and idle states of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerDomain {
    /// The name in the file: `package`.
    pub name: String,
    /// Its CPUs, ascending.
    pub cpus: Vec<CpuId>,
    /// The smallest power domain around it: index into [`crate::Machine::power_domains`].
    pub parent: Option<usize>,
    /// Its own power while none of its states holds, µW.
    pub uw: u64,
    /// Its idle states, shallow to deep.
    pub states: Vec<PowerState>,
}

/// An idle state of a power domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerState {
    /// Its name: `PC7`.
    pub name: String,
    /// For each CPU of the domain, in order: the shallowest of its idle states that is deep enough.
    pub cpus_in: Vec<u8>,
    /// Power of the domain in it, µW.
    pub uw: u64,
    /// No CPU of the domain may have a timer within this time.
    pub residency_ns: Ns,
    /// The wait of the first CPU that is woken, on top of its own exit.
    pub exit_latency_ns: Ns,
    /// Energy of each entry, nJ.
    pub energy_entry_nj: u64,
}

keys! {
    /// a cluster or package with power and states of its own, which firmware enters without a request by the kernel
    struct PowerDomainKeys in "power.*" {
        /// numbers of the CPUs; two domains are nested or disjoint
        cpus: CpuList = Always, Cpus;
        /// power while the domain is in none of the states
        uw: Located<u64> = Always, upto(MAX_UW);
    }
}

keys! {
    /// states, from the shallowest
    struct PowerStateKeys in "power.*.states[]" {
        /// for people
        name: Located<String> = Always, Text;
        /// the idle state in which, or in a deeper one, all CPUs must be
        cpus_in: Located<String> = Always, Text;
        /// power of the domain in the state
        uw: Located<u64> = Always, upto(MAX_UW);
        /// the state is entered only if no timer expires within this time; 0
        residency_us: Located<u64> = May, upto(MAX_LATENCY_NS / 1000);
        /// exit time beside the CPU's own; 0
        exit_ns: Located<u64> = May, upto(MAX_LATENCY_NS);
        /// energy of each entry; 0
        entry_nj: Located<u64> = May, upto(MAX_ENTRY_NJ);
    }
}

/// A table as far as it can be read without knowing the CPUs.
pub(crate) struct ReadPowerDomain {
    name: String,
    cpus: CpuList,
    uw: u64,
    states: Vec<(PowerState, Located<String>)>,
}

/// Reads one table.
pub(crate) fn read(
    name: &Located<String>,
    mut table: TableReader<'_>,
    faults: &mut Diagnostics,
) -> Option<ReadPowerDomain> {
    let PowerDomainKeys { cpus, uw } = PowerDomainKeys::read(&mut table, faults);
    let uw = bounded("uw", uw, MAX_UW, "a kilowatt", faults);
    let at = table.location_of("states");
    let mut rows = table.tables("states", faults);
    table.finish(faults);
    if rows.len() > MAX_STATES {
        faults.push_at(&at, format!("{} states: at most {MAX_STATES}", rows.len()), None);
        rows.truncate(MAX_STATES);
    }
    let mut states: Vec<(PowerState, Located<String>)> = Vec::new();
    let mut complete = true;
    for mut row in rows {
        let had = faults.0.len();
        let keys = PowerStateKeys::read(&mut row, faults);
        let (name, cpus_in) = (keys.name, keys.cpus_in);
        let uw = bounded("uw", keys.uw, MAX_UW, "a kilowatt", faults);
        let us = MAX_LATENCY_NS / 1000;
        let residency = bounded("residency_us", keys.residency_us, us, "a second", faults);
        let exit = bounded("exit_ns", keys.exit_ns, MAX_LATENCY_NS, "a second", faults);
        let entry_nj = bounded("entry_nj", keys.entry_nj, MAX_ENTRY_NJ, "a joule", faults);
        row.finish(faults);
        let (Some(name), Some(cpus_in)) = (name, cpus_in) else {
            complete = false;
            continue;
        };
        if faults.0.len() > had {
            complete = false;
            continue;
        }
        if name.value.is_empty() || name.value.len() > 31 || name.value.contains(char::is_control) {
            faults.push_at(&name.at, "the name of a state has 1 to 31 letters", None);
        }
        if states.iter().any(|(state, _)| state.name == name.value) {
            faults.push_at(&name.at, format!("two states are called `{}`", name.value), None);
        }
        let state = PowerState {
            name: name.value,
            cpus_in: Vec::new(),
            uw,
            residency_ns: residency * 1000,
            exit_latency_ns: exit,
            energy_entry_nj: entry_nj,
        };
        states.push((state, cpus_in));
    }
    let read = ReadPowerDomain { name: name.value.clone(), cpus: cpus?, uw, states };
    complete.then_some(read)
}

/// A number within a bound, or 0.
fn bounded(
    key: &str,
    value: Option<Located<u64>>,
    most: u64,
    most_in_words: &str,
    faults: &mut Diagnostics,
) -> u64 {
    let Some(value) = value else { return 0 };
    if value.value > most {
        faults.push_at(&value.at, format!("`{key}` is more than {most_in_words}"), None);
    }
    value.value
}

/// Makes a tree of the tables: sets of CPUs that exist, nested or disjoint, whose states can be reached.
pub(crate) fn build(
    read: Vec<ReadPowerDomain>,
    cpus: &[Cpu],
    core_types: &[CoreType],
    faults: &mut Diagnostics,
) -> Vec<PowerDomain> {
    if read.len() > MAX_DOMAINS {
        let message = format!("{} power domains: at most {MAX_DOMAINS}", read.len());
        faults.push_at(&read[0].cpus.at, message, None);
        return Vec::new();
    }
    let mut built: Vec<PowerDomain> = Vec::new();
    for (index, domain) in read.iter().enumerate() {
        let members = domain.cpus.cpus();
        if let Some(cpu) = members.iter().find(|cpu| cpu.index() >= cpus.len()) {
            faults.push_at(&domain.cpus.at, format!("there is no CPU {cpu}"), None);
            continue;
        }
        for earlier in &read[..index] {
            let (one, two) = (&earlier.cpus.mask, &domain.cpus.mask);
            let common = one.and(two);
            if one == two {
                let message = format!("`{}` has the same CPUs", earlier.name);
                faults.push_at(&domain.cpus.at, message, None);
            } else if !common.is_empty() && common != *one && common != *two {
                let message = format!("CPU {common} is also in `{}`, others are not", earlier.name);
                let help = "power domains are nested or disjoint".to_string();
                faults.push_at(&domain.cpus.at, message, Some(help));
            }
        }
        let around = |other: &(usize, &ReadPowerDomain)| {
            other.0 != index && domain.cpus.mask.and_not(&other.1.cpus.mask).is_empty()
        };
        let parent = read.iter().enumerate().filter(around);
        let parent = parent.min_by_key(|(_, other)| other.cpus.mask.weight()).map(|(at, _)| at);
        let mut states: Vec<(PowerState, &Located<String>)> = Vec::new();
        for (state, wanted) in &domain.states {
            let mut cpus_in = Vec::with_capacity(members.len());
            for cpu in &members {
                let core = &core_types[cpus[cpu.index()].core_type];
                match core.idle_states.iter().position(|s| s.name == wanted.value) {
                    Some(at) => cpus_in.push(at as u8),
                    None => {
                        let names = core.idle_states.iter().map(|s| s.name.as_str());
                        let near = did_you_mean(&wanted.value, names);
                        let message =
                            format!("core `{}` has no idle state `{}`", core.name, wanted.value);
                        let help = near.map(|near| format!("did you mean `{near}`?"));
                        faults.push_at(&wanted.at, message, help);
                        break;
                    }
                }
            }
            states.push((PowerState { cpus_in, ..state.clone() }, wanted));
        }
        for pair in states.windows(2) {
            let shallower = pair[0].0.cpus_in.iter().zip(&pair[1].0.cpus_in).any(|(a, b)| b < a);
            if shallower || pair[1].0.residency_ns < pair[0].0.residency_ns {
                let message = format!(
                    "states go from shallow to deep: `{}` holds where `{}` does not",
                    pair[1].0.name, pair[0].0.name
                );
                faults.push_at(&pair[1].1.at, message, None);
            }
        }
        built.push(PowerDomain {
            name: domain.name.clone(),
            cpus: members,
            parent,
            uw: domain.uw,
            states: states.into_iter().map(|(state, _)| state).collect(),
        });
    }
    built
}
