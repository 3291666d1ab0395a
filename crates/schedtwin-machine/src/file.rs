// SPDX-License-Identifier: GPL-2.0-or-later
//! From TOML to a machine: reads everything, checks everything, reports everything.
//!
//! The layout of a file, top to bottom (`machines/*.toml` are the examples):
//!
//! | key | meaning |
//! |---|---|
//! | `name`, `description` | for people |
//! | `estimated` | may be left out; how many lines hold estimates, as `schedtwin capture` counts them |
//! | `estimates` | may be left out; the keys, by their paths, whose values are estimates: `["core.zen3.idle[1].exit_ns", "interrupts"]` |
//! | `measured` | may be left out; the keys whose values `schedtwin calibrate machine` measured, by their paths |
//! | `fitted` | may be left out; the keys whose values were fitted to published ones, by their paths |
//! | `topology` | which of `[topologies.NAME]` is in use |
//! | `coupling` | whether the `[[coupled]]` clocks are coupled; `true` if left out |
//! | `ns_per_loop` | rt-app's calibration |
//! | `transition_latency_us`, `settle_us`, `fast_switch`, `dvfs_possible_from_any_cpu`; `driver`, `driver_latency_us` | of all domains |
//! | `power_unknown` | may be left out; `true`: all powers are 0, and that is meant |
//! | `stall_us`, `slew_uv_per_us`, `late_requests` | may be left out; see `switching` |
//! | `[topologies.NAME]` | see `topology` |
//! | `[core.NAME]` | a kind of core, see `core_type` |
//! | `[cpu.NAME]` | a group of equal CPUs: `cpus`, `core`, `capacity` |
//! | `[domain.NAME]` | a clock, see `domain` |
//! | `[power.NAME]` | may be left out; clusters and packages, see `power_domain` |
//! | `heat`, `ambient_c`, `start_above_k`, `heat_step_us`, `[heat_node.NAME]`, `[thermal_zone.NAME]` | may be left out; see `heat` |
//! | `[power_limit.NAME]` | may be left out; how firmware holds clocks back, see `power_limit` |
//! | `[broadcast]` | may be left out; the timer for CPUs whose own timers stop, see `broadcast` |
//! | `[[block]]` | may be left out; block devices, see `block` |
//! | `[turns]` | that CPUs execute one at a time, see `turns` |
//! | `[smt]` | only where CPUs share a core; what they share, see `smt` |
//! | `[distance]` | may be left out; what migrations and interrupts cost by distance, see `distance` |
//! | `[[coupled]]` | `from`, `to`, `floor = [{ at_khz, min_khz }, ...]` |
//! | `power_dependence`, `[[dependent]]` | may be left out; whether, and how, power depends on other clocks, see `dependence` |
//! | `[l3]` | may be left out; energy of the shared cache, see `l3` |
//! | `kinds`, `[work.NAME]` | may be left out; whether, and which, kinds of work do not follow the capacities, see `speed` |
//! | `[choices.KEY.OPTION]` | may be left out; values that change together, see `choices` |
//! | `[interrupts]`, `[path_costs]` | see `costs` |
//!
//! A required value that is missing may be filled in before, by the classes of the cores: see
//! `core_class`.
//!
//! Reading goes on after a fault wherever what follows does not depend on it, so a user sees all
//! faults of a file at once. Nothing here is recursive or grows beyond the text.

use std::sync::Arc;

use schedtwin_input::{Diagnostics, Located, Source, TableReader, TomlDocument, did_you_mean};
use schedtwin_types::arena::{Arena, Id};
use schedtwin_types::{Capacity, ClockDomainId, CpuId, CpuMask, Khz, MAX_CPUS, PowerDomainId};

use crate::cpu_list::CpuList;
use crate::domain::{Defaults, MAX_KHZ, ReadDomain};
use crate::keys::{keys, list, upto};
use crate::{CoreType, Coupling, Cpu, FloorStep, FrequencyDomain, Interrupts, Machine, PathCosts};
use crate::{
    block, broadcast, choices, core_class, core_type, coupling, dependence, distance, domain, heat,
    l3, oddities, power_domain, power_limit, smt, speed, topology, turns,
};

/// The most keys of a file that are marked as estimates; a table's name marks all of it.
const MAX_ESTIMATES: usize = 100;

keys! {
    /// keys before the first table
    struct FileKeys in "" {
        /// letters, digits, `-`, `_` and `.`
        name: Located<String> = Always, Text;
        /// a line for people
        description: String = Always, Text;
        /// number of lines with estimates, which `schedtwin capture` writes; results repeat it
        estimated: u64 = May, upto(i64::MAX as u64);
        /// paths of keys whose values are estimates, `["smt", "domain.cpu.opp"]`; `show machine` lists them
        estimates: Vec<Located<String>> = May, list(Text);
        /// paths of keys that `schedtwin calibrate machine` measured; they are no estimates
        measured: Vec<Located<String>> = May, list(Text);
        /// paths of keys whose values were fitted to published ones; results repeat them
        fitted: Vec<Located<String>> = May, list(Text);
        /// the `[topologies.NAME]` that is in use
        topology: Located<String> = WithoutClass, Text;
        /// `[[coupled]]` is in effect; true
        coupling: bool = May, Switch;
        /// the kernel's driver does what `[[coupled]]` says, so the kernel knows the clock; false
        coupling_by_driver: bool = May, Switch;
        /// rt-app's calibration: time of one loop on the strongest core at full speed
        ns_per_loop: Located<u64> = WithoutClass, Whole(1, 1_000_000);
        /// all powers are 0 because none is known; false
        power_unknown: bool = May, Switch;
        /// `[[dependent]]` is in effect; true
        power_dependence: bool = May, Switch;
        /// `[work.NAME]` tables are in effect; true
        kinds: bool = May, Switch;
    }
}

keys! {
    /// a group of equal CPUs; they are numbered from 0 without gaps
    struct CpuKeys in "cpu.*" {
        /// numbers of the CPUs
        cpus: CpuList = Always, Cpus;
        /// kind of these CPUs: the NAME of a `[core.NAME]`
        core: Located<String> = Always, Text;
        /// capacity at the highest frequency; the strongest CPUs have 1024
        capacity: Located<Capacity> = WithoutClass, Whole(1, 1024);
    }
}

keys! {
    /// a clock whose frequency is a minimum for another clock
    struct CoupledKeys in "coupled[]" {
        /// the first clock: the NAME of a `[domain.NAME]`
        from: Located<String> = Always, Text;
        /// the clock with the minimum
        to: Located<String> = Always, Text;
    }
}

keys! {
    /// steps, from the slowest
    struct FloorKeys in "coupled[].floor[]" {
        /// while clock `from` runs at this operating point or a higher one,
        at_khz: Located<Khz> = Always, Whole(1, MAX_KHZ.into());
        /// clock `to` runs at least at this one
        min_khz: Located<Khz> = Always, Whole(1, MAX_KHZ.into());
    }
}

/// A group of equal CPUs, with the places that later checks point at.
struct CpuGroup {
    cpus: CpuList,
    core: Located<String>,
    capacity: Located<Capacity>,
}

/// Reads a machine; all faults at once.
pub(crate) fn read(source: &Arc<Source>, document: &TomlDocument) -> Result<Machine, Diagnostics> {
    read_from(source, document, document.reader())
}

/// The same with a reader of the document that may note what is asked for.
pub(crate) fn read_from(
    source: &Arc<Source>,
    document: &TomlDocument,
    mut root: TableReader<'_>,
) -> Result<Machine, Diagnostics> {
    let mut faults = Diagnostics::new();
    let mut warnings = Diagnostics::new();
    root.hint(&core_class::TOP, core_class::help());
    let keys = FileKeys::read(&mut root, &mut faults);
    let FileKeys { name, description, estimated, topology: chosen, ns_per_loop, .. } = keys;
    let FileKeys {
        coupling: coupled,
        coupling_by_driver,
        power_dependence: dependent,
        kinds: with_kinds,
        ..
    } = keys;
    let estimates = keys.estimates.unwrap_or_default();
    check_marks(("estimates", "an estimate"), &estimates, document, &mut faults);
    let measured = keys.measured.unwrap_or_default();
    check_marks(("measured", "measured"), &measured, document, &mut faults);
    let fitted = keys.fitted.unwrap_or_default();
    check_marks(("fitted", "fitted"), &fitted, document, &mut faults);
    choices::skip(&mut root, document, &mut faults);
    let power_unknown = keys.power_unknown.unwrap_or(false);
    let defaults = Defaults::read(&mut root, power_unknown, &mut faults);

    let core_tables = root.named_tables("core", &mut faults);
    let core_names: Vec<String> = core_tables.iter().map(|(name, _)| name.value.clone()).collect();
    let core_types: Vec<Option<CoreType>> = core_tables
        .into_iter()
        .map(|(name, table)| core_type::read(&name, table, &mut warnings, &mut faults))
        .collect();

    let groups = read_groups(&mut root, &core_names, &mut faults);
    let cpus = check_groups(groups.as_deref(), &root, &mut faults);
    let groups = groups.unwrap_or_default();

    let (domain_names, domains) =
        read_domains(&mut root, defaults.as_ref(), &mut warnings, &mut faults);
    let all_read =
        domain_names.iter().all(|name| domains.iter().any(|d| d.per_cpu || d.domain.name == *name));
    check_domains(&domains, &groups, &cpus, all_read, &root, &mut warnings, &mut faults);

    let smt = root.optional_table("smt", &mut faults);
    let has_smt = smt.is_some();
    let smt = smt.and_then(|table| smt::read(table, &mut faults));
    let distances = root
        .optional_table("distance", &mut faults)
        .and_then(|table| distance::read(table, &mut faults));
    let turns =
        root.optional_table("turns", &mut faults).and_then(|table| turns::read(table, &mut faults));
    let tables = root.named_tables("topologies", &mut faults);
    let topology = topology::read(tables, chosen.as_ref(), &cpus, &mut faults);
    let threads = topology.as_ref().and_then(|topology| topology.first_smt_core());
    if let Some(core) = threads.filter(|_| !has_smt) {
        let help = "write a table `[smt]`".to_string();
        faults.push_at(&core.at, "CPUs share a core, and nobody says what", Some(help));
    }
    if let (Some(topology), Some(chosen)) = (&topology, &chosen) {
        let says_smt = document.get(&format!("topologies.{}.kernel_smt", chosen.value)).is_some();
        oddities::of_topology(topology, distances.is_some(), says_smt, &chosen.at, &mut warnings);
    }
    let couplings = read_couplings(&mut root, &domains, &domain_names, &mut faults);
    let tables = root.tables("dependent", &mut faults);
    let mut dependences = dependence::read(
        tables,
        &domains.iter().map(|read| &read.domain).collect::<Vec<_>>(),
        |name, faults| find_domain(name, &domains, &domain_names, faults),
        &mut faults,
    );
    let l3 = root.optional_table("l3", &mut faults).and_then(|table| l3::read(table, &mut faults));
    let mut kinds = read_all(&mut root, "work", &mut faults, |name, table, faults| {
        speed::read_kind(name, table, &core_names, faults)
    });
    if dependent == Some(false) {
        dependences.clear();
    }
    if with_kinds == Some(false) {
        kinds.clear();
    }
    let power_tables = read_all(&mut root, "power", &mut faults, power_domain::read);
    let broadcast = root
        .optional_table("broadcast", &mut faults)
        .and_then(|table| broadcast::read(table, cpus.weight() as usize, &mut faults));
    let block = block::read(root.tables("block", &mut faults), cpus.weight() as usize, &mut faults);
    let limit_tables = read_all(&mut root, "power_limit", &mut faults, power_limit::read);
    let heat_settings = heat::settings(&mut root, &mut faults);
    let heat_nodes = root.named_tables("heat_node", &mut faults);
    let zones = root.named_tables("thermal_zone", &mut faults);
    let interrupts = root
        .required_table("interrupts", &mut faults)
        .and_then(|t| Interrupts::read(t, &mut faults));
    let path_costs = root
        .required_table("path_costs", &mut faults)
        .and_then(|t| PathCosts::read(t, &mut faults));
    root.finish(&mut faults);

    check_name(name.as_ref(), &mut faults);
    if let Some(loops) = ns_per_loop.as_ref().filter(|l| l.value == 0 || l.value > 1_000_000) {
        faults.push_at(&loops.at, "`ns_per_loop` is not within 1 to 1000000", None);
    }
    faults.sort();
    warnings.sort();
    if !faults.is_empty() {
        return Err(faults);
    }
    // Every `None` above came with a fault, so all of them are there now.
    let (name, topology) = (sure(name).value, sure(topology));
    let topology_name = sure(chosen).value;
    let domains: Arena<ClockDomainId, _> = domains.into_iter().map(|read| read.domain).collect();
    let cpus = build_cpus(&groups, &core_names, &domains, &topology, &cpus);
    let core_types: Vec<CoreType> = core_types.into_iter().map(sure).collect();
    // These refer to CPUs and clocks, so their faults are told once those have none.
    let power_domains: Arena<PowerDomainId, _> =
        power_domain::build(power_tables, &cpus, &core_types, &mut faults).into();
    let parts = heat::Parts { clocks: &domains, power_domains: &power_domains };
    let power_limits = power_limit::build(limit_tables, &cpus, &domains, &mut faults);
    let heat = heat::read(heat_settings, heat_nodes, zones, &parts, &mut faults);
    if !faults.is_empty() {
        faults.sort();
        return Err(faults);
    }
    Ok(Machine {
        identity: name.clone(),
        settings: Vec::new(),
        name,
        description: sure(description),
        topology: topology_name,
        kernel_topology: topology.kernel().clone(),
        cpus,
        domains,
        core_types,
        power_domains,
        power_limits,
        heat,
        broadcast,
        block,
        smt,
        distances,
        turns,
        coupling_by_driver: coupling_by_driver.unwrap_or(false),
        couplings: if coupled.unwrap_or(true) { sure(couplings) } else { Vec::new() },
        power_dependences: dependences,
        l3,
        kinds,
        path_costs: sure(path_costs),
        interrupts: sure(interrupts),
        ns_per_loop: sure(ns_per_loop).value,
        estimated: estimated.unwrap_or(0),
        estimates: estimates.into_iter().map(|path| path.value).collect(),
        measured: measured.into_iter().map(|path| path.value).collect(),
        fitted: fitted.into_iter().map(|path| path.value).collect(),
        left_out: Vec::new(),
        warnings,
        source: source.clone(),
    })
}

/// Reads each of the tables of a name; those with faults are left out.
fn read_all<'d, T>(
    root: &mut TableReader<'d>,
    tables: &str,
    faults: &mut Diagnostics,
    read: impl Fn(&Located<String>, TableReader<'d>, &mut Diagnostics) -> Option<T>,
) -> Vec<T> {
    let tables = root.named_tables(tables, faults).into_iter();
    tables.filter_map(|(name, table)| read(&name, table, faults)).collect()
}

/// Reads the clock domains: the names of their tables, and the domains by their first CPU.
fn read_domains(
    root: &mut TableReader<'_>,
    defaults: Option<&Defaults>,
    warnings: &mut Diagnostics,
    faults: &mut Diagnostics,
) -> (Vec<String>, Vec<ReadDomain>) {
    let (mut names, mut domains) = (Vec::new(), Vec::<ReadDomain>::new());
    let mut tables = root.named_tables("domain", faults);
    if tables.len() > MAX_CPUS {
        let message = format!("{} domains: at most {MAX_CPUS}", tables.len());
        faults.push_at(&root.location_of("domain"), message, None);
        tables.truncate(MAX_CPUS);
    }
    for (name, table) in tables {
        if domains.len() > MAX_CPUS {
            break; // `per_cpu` again and again: a CPU is in two of them, which is noted below
        }
        names.push(name.value.clone());
        domains.extend(domain::read(&name, table, defaults, warnings, faults));
    }
    domains.sort_by_key(|read| read.domain.cpus[0]);
    (names, domains)
}

/// Returns the value, which is there because its absence would have been a fault.
fn sure<T>(value: Option<T>) -> T {
    value.expect("what could not be read was noted as a fault")
}

/// A mark must not outlive what it marks.
fn check_marks(
    (key, word): (&str, &str),
    marks: &[Located<String>],
    document: &TomlDocument,
    faults: &mut Diagnostics,
) {
    if marks.len() > MAX_ESTIMATES {
        let message = format!("{} {key}: at most {MAX_ESTIMATES}", marks.len());
        faults.push_at(&document.location(key), message, None);
        return;
    }
    for path in marks.iter().filter(|path| document.get(&path.value).is_none()) {
        let message = format!("there is no `{}` that could be {word}", path.value);
        faults.push_at(&path.at, message, None);
    }
}

fn check_name(name: Option<&Located<String>>, faults: &mut Diagnostics) {
    let Some(name) = name else { return };
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.value.is_empty() || name.value.len() > 64 || !name.value.chars().all(good) {
        let help = Some("1 to 64 letters, digits, `-`, `_` and `.`".to_string());
        faults.push_at(&name.at, "this cannot be the name of a machine", help);
    }
}

/// `None` if a group could not be read: then nobody knows which CPUs there are.
fn read_groups(
    root: &mut TableReader<'_>,
    core_names: &[String],
    faults: &mut Diagnostics,
) -> Option<Vec<CpuGroup>> {
    let mut groups = Vec::new();
    let mut complete = true;
    let tables = root.named_tables("cpu", faults);
    if tables.len() > MAX_CPUS {
        let message = format!("{} groups of CPUs: at most {MAX_CPUS}", tables.len());
        faults.push_at(&root.location_of("cpu"), message, None);
        return None;
    }
    for (_, mut table) in tables {
        let CpuKeys { cpus, core, capacity } = CpuKeys::read(&mut table, faults);
        table.finish(faults);
        if let Some(core) = core.as_ref().filter(|core| !core_names.contains(&core.value)) {
            let near = did_you_mean(&core.value, core_names.iter().map(String::as_str));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it needs a table `[core.{}]`", core.value),
            };
            faults.push_at(&core.at, format!("there is no core `{}`", core.value), Some(help));
        }
        if let Some(capacity) = capacity.as_ref().filter(|c| c.value == 0 || c.value > 1024) {
            let message = format!("capacity {} is not within 1 to 1024", capacity.value);
            faults.push_at(&capacity.at, message, None);
        }
        if let (Some(cpus), Some(core), Some(capacity)) = (cpus, core, capacity) {
            groups.push(CpuGroup { cpus, core, capacity });
        } else {
            complete = false;
        }
    }
    complete.then_some(groups)
}

/// The CPUs of all groups: from 0 without gaps, none twice, the strongest of capacity 1024. The
/// empty set if they have faults: later checks then do not complain about what follows from them.
fn check_groups(
    groups: Option<&[CpuGroup]>,
    root: &TableReader<'_>,
    faults: &mut Diagnostics,
) -> CpuMask {
    let Some(groups) = groups else {
        return CpuMask::EMPTY;
    };
    let had = faults.0.len();
    let mut all = CpuMask::EMPTY;
    for group in groups {
        let twice = group.cpus.mask.and(&all);
        if !twice.is_empty() {
            faults.push_at(&group.cpus.at, format!("CPU {twice} is in two groups"), None);
        }
        all = all.or(&group.cpus.mask);
    }
    if groups.is_empty() {
        let help = Some("write a table `[cpu.NAME]`".into());
        faults.push_at(root.location(), "the machine has no CPU", help);
        return all;
    }
    let missing = (0..all.weight()).map(|c| CpuId(c as u16)).find(|cpu| !all.contains(*cpu));
    if let Some(missing) = missing {
        let at = &groups[groups.len() - 1].cpus.at;
        faults.push_at(
            at,
            format!("CPUs are numbered from 0 without gaps: CPU {missing} is missing"),
            None,
        );
    }
    let numbered = faults.0.len() == had;
    let strongest =
        groups.iter().max_by_key(|group| group.capacity.value).expect("there is a group");
    if (1..1024).contains(&strongest.capacity.value) {
        let message = format!(
            "the strongest CPUs have capacity 1024, these are the strongest and have {}",
            strongest.capacity.value
        );
        faults.push_at(&strongest.capacity.at, message, None);
    }
    if numbered { all } else { CpuMask::EMPTY }
}

/// Each CPU has exactly one clock, and CPUs of one clock are alike.
fn check_domains(
    domains: &[ReadDomain],
    groups: &[CpuGroup],
    cpus: &CpuMask,
    all_read: bool,
    root: &TableReader<'_>,
    warnings: &mut Diagnostics,
    faults: &mut Diagnostics,
) {
    let mut covered = CpuMask::EMPTY;
    for read in domains {
        let mask = CpuMask::from_cpus(read.domain.cpus.iter().copied());
        let twice = mask.and(&covered);
        if !twice.is_empty() {
            faults.push_at(&read.cpus.at, format!("CPU {twice} is in two domains"), None);
        }
        covered = covered.or(&mask);
        let unknown = mask.and_not(cpus);
        if !unknown.is_empty() && !cpus.is_empty() {
            faults.push_at(&read.cpus.at, format!("there is no CPU {unknown}"), None);
        }
        let mut inside = groups.iter().filter(|group| group.cpus.mask.intersects(&mask));
        let Some(first) = inside.next() else { continue };
        oddities::of_capacities(&read.domain.opps, &read.khz_at, first.capacity.value, warnings);
        for other in inside {
            for (what, one, two) in [
                ("core", first.core.value.clone(), other.core.value.clone()),
                ("capacity", first.capacity.value.to_string(), other.capacity.value.to_string()),
            ] {
                if one != two {
                    let message =
                        format!("the CPUs of one domain differ in {what}: {one} and {two}");
                    faults.push_at(&read.cpus.at, message, None);
                }
            }
        }
    }
    let missing = cpus.and_not(&covered);
    if all_read && !missing.is_empty() {
        faults.push_at(&root.location_of("domain"), format!("no domain has CPU {missing}"), None);
    }
}

fn read_couplings(
    root: &mut TableReader<'_>,
    domains: &[ReadDomain],
    domain_names: &[String],
    faults: &mut Diagnostics,
) -> Option<Vec<Coupling>> {
    let had = faults.0.len();
    let mut couplings: Vec<Coupling> = Vec::new();
    let at = root.location_of("coupled");
    for mut table in root.tables("coupled", faults) {
        let place = table.location().clone();
        let CoupledKeys { from, to } = CoupledKeys::read(&mut table, faults);
        let rows = table.tables("floor", faults);
        let steps: Vec<_> = rows.into_iter().map(|row| read_step(row, faults)).collect();
        table.finish(faults);
        let from = from.and_then(|name| find_domain(&name, domains, domain_names, faults));
        let to_index =
            to.as_ref().and_then(|name| find_domain(name, domains, domain_names, faults));
        let (Some(from), Some(to)) = (from, to_index) else {
            continue;
        };
        if from == to {
            faults.push_at(&place, "a domain cannot be coupled to itself", None);
            continue;
        }
        if couplings.iter().any(|c| (c.from, c.to) == (from, to)) {
            faults.push_at(&place, "these two domains are coupled already", None);
        }
        let steps = check_steps(steps, &domains[from.index()], &domains[to.index()], faults);
        couplings.push(Coupling { from, to, steps });
    }
    match coupling::ordered(couplings, domains.len()) {
        Ok(ordered) => (faults.0.len() == had).then_some(ordered),
        Err(domain) => {
            let message = format!(
                "the coupled domains form a circle through `{}`",
                domains[domain.index()].domain.name
            );
            faults.push_at(&at, message, None);
            None
        }
    }
}

fn find_domain(
    name: &Located<String>,
    domains: &[ReadDomain],
    domain_names: &[String],
    faults: &mut Diagnostics,
) -> Option<ClockDomainId> {
    let found = domains.iter().position(|read| !read.per_cpu && read.domain.name == name.value);
    if found.is_none() {
        if domains.iter().any(|read| read.per_cpu) && domain_names.contains(&name.value) {
            faults.push_at(&name.at, "domains that have one CPU each cannot be coupled", None);
        } else if !domain_names.contains(&name.value) {
            let near = did_you_mean(&name.value, domain_names.iter().map(String::as_str));
            let help = near.map(|near| format!("did you mean `{near}`?"));
            faults.push_at(&name.at, format!("there is no domain `{}`", name.value), help);
        }
        // Otherwise the domain is there and could not be read, which has its own fault.
    }
    found.map(ClockDomainId::from_index)
}

type ReadStep = (Located<Khz>, Located<Khz>);

fn read_step(mut row: TableReader<'_>, faults: &mut Diagnostics) -> Option<ReadStep> {
    let FloorKeys { at_khz, min_khz } = FloorKeys::read(&mut row, faults);
    row.finish(faults);
    Some((at_khz?, min_khz?))
}

fn check_steps(
    steps: Vec<Option<ReadStep>>,
    from: &ReadDomain,
    to: &ReadDomain,
    faults: &mut Diagnostics,
) -> Vec<FloorStep> {
    let mut out: Vec<FloorStep> = Vec::new();
    for (at, min) in steps.into_iter().flatten() {
        for (khz, domain) in [(&at, from), (&min, to)] {
            if domain.domain.opp_of(khz.value).is_none() {
                let near = domain.domain.opps[domain.domain.opp_at_least(khz.value)].khz;
                let message = format!(
                    "domain `{}` has no operating point of {} kHz",
                    domain.domain.name, khz.value
                );
                faults.push_at(&khz.at, message, Some(format!("the next is {near}")));
            }
        }
        if let Some(previous) = out.last() {
            if at.value <= previous.at_khz {
                faults.push_at(&at.at, "`at_khz` rises from step to step", None);
            }
            if min.value < previous.min_khz {
                faults.push_at(&min.at, "`min_khz` does not fall from step to step", None);
            }
        }
        out.push(FloorStep { at_khz: at.value, min_khz: min.value });
    }
    out
}

fn build_cpus(
    groups: &[CpuGroup],
    core_names: &[String],
    domains: &Arena<ClockDomainId, FrequencyDomain>,
    topology: &topology::Topology,
    cpus: &CpuMask,
) -> Vec<Cpu> {
    let build = |cpu: CpuId| {
        let group =
            groups.iter().find(|g| g.cpus.mask.contains(cpu)).expect("every CPU has a group");
        let domain = domains.find(|d| d.cpus.contains(&cpu)).expect("every CPU has a clock");
        let core_type = core_names.iter().position(|n| *n == group.core.value);
        let (package, llc, cluster, node) = topology.of(cpu);
        let (l2, hemisphere, big_core) = topology.l2_hemisphere_big_core(cpu);
        Cpu {
            core_type: core_type.expect("the core of every group is known"),
            domain,
            capacity: group.capacity.value,
            core: topology.core_of(cpu),
            cluster,
            package,
            llc,
            node,
            l2,
            hemisphere,
            big_core,
        }
    };
    cpus.iter().map(build).collect()
}
