// SPDX-License-Identifier: GPL-2.0-or-later
//! `class` of a core: what stands for the values that a file leaves out and nobody can read off a device.
//!
//! ```toml
//! [core.cortex-a72]
//! class = "mid"
//! ```
//!
//! All of it are estimates [E], scaled from what is published of few cores:
//!
//! | class | a clock does, of a Cortex-X1's work | rt-app's loop, clocks | WFI, of busy power | like |
//! |---|---|---|---|---|
//! | `little` | 250 / 1024 | 190 | 2 % | Cortex-A53, A55: in order |
//! | `mid` | 620 / 1024 | 79 | 5 % | Cortex-A72 to A78: out of order |
//! | `big` | 1 | 59 | 7 % | Cortex-X1 and later; Neoverse |
//! | `desktop` | 1 | 58 | 2 % | x86 of desktops and laptops |
//! | `server` | 1 | 58 | 7 % | x86 of servers |
//!
//! Work a clock is `capacity-dmips-mhz` of Pixel 6's later device tree [S]; that an x86 core does as much a clock as an X1 is where
//! its path costs come from. Loops are calibrations in published workloads: 186 ns on a Cortex-A53 at 950 MHz and 116 on an A55 at
//! 1803 MHz, 66 on an A72 at 1200 MHz, 21 on an X1 at 2802 MHz [S]; 12 on an i5-10600K at 4.8 GHz [E]. WFI is of the order of the
//! measured curves of Pixel 6's three cores [S], of i5-10600k and of spr-2s224.
//!
//! **Path costs** are pixel6's (its file says where they are from), by the clock and by the work a clock does: a cost there times
//! 2.8 GHz / highest frequency / work a clock, of the strongest cores. At 4.1 GHz that gives back the 2.80 us for a round trip through a
//! pipe that was measured on an i5-10600K and that they are all based on.
//!
//! **What is filled in** where it is missing, and only if the core has a class:
//!
//! | from | key |
//! |---|---|
//! | the strongest cores | `interrupts`, `path_costs`, `ns_per_loop`, `transition_latency_us`, `settle_us`, `fast_switch`, `dvfs_possible_from_any_cpu`; `topology` and `topologies`: one package and one cache for all |
//! | the clock's cores | `active_uw` (as `em_uw`), `wfi_uw` |
//! | the core | `idle`: its shallowest states only; of a state `entry_ns` (0), `exit_ns` (`kernel_exit_ns`) |
//! | | `capacity` (1024), if there is one group of CPUs |
//!
//! The values filled in are in [`Machine::left_out`](crate::Machine::left_out), `show machine` and
//! the provenance of results, and can be set in
//! place like what a file says.

use schedtwin_input::{Diagnostics, TableReader};
use schedtwin_input::{Entry, Located, Location, Node, Table, TomlDocument, Value, did_you_mean};
use schedtwin_types::CpuMask;

use crate::costs::MAX_COST_NS;
use crate::keys::{keys, words as one_of};

/// The known values of a class.
struct Class {
    word: &'static str,
    /// Work a clock, of 1024 for a Cortex-X1.
    work_per_clock: u64,
    /// Clocks of a loop of rt-app's.
    loop_clocks: u64,
    /// Thousandths of busy power.
    wfi_permille: i64,
    /// Interrupts between CPUs and of timers, least and most, ns.
    interrupts: [i64; 4],
    transition_latency_us: i64,
    settle_us: i64,
    dvfs_possible_from_any_cpu: bool,
    x86: bool,
}

/// A system on a chip: interrupts as on pixel6, frequencies through a shared controller.
const SOC: Class = Class {
    word: "",
    work_per_clock: 1024,
    loop_clocks: 59,
    wfi_permille: 70,
    interrupts: [300, 900, 100, 600],
    transition_latency_us: 500,
    settle_us: 100,
    dvfs_possible_from_any_cpu: true,
    x86: false,
};

/// Interrupts of a local APIC as on i5-10600k; 20 us is what intel_pstate and amd-pstate say of a switch [S], by a CPU's own register.
const X86: Class = Class {
    loop_clocks: 58,
    interrupts: [200, 500, 100, 400],
    transition_latency_us: 20,
    settle_us: 20,
    dvfs_possible_from_any_cpu: false,
    x86: true,
    ..SOC
};

const CLASSES: [Class; 5] = [
    // Interrupts as on juno-r2: slower buses.
    Class {
        word: "little",
        work_per_clock: 250,
        loop_clocks: 190,
        wfi_permille: 20,
        interrupts: [500, 1_500, 200, 1_000],
        ..SOC
    },
    Class { word: "mid", work_per_clock: 620, loop_clocks: 79, wfi_permille: 50, ..SOC },
    Class { word: "big", ..SOC },
    Class { word: "desktop", wfi_permille: 20, ..X86 },
    // Interrupts as on epyc-milan-2x64 and spr-2s224.
    Class { word: "server", interrupts: [400, 1_200, 100, 500], ..X86 },
];

/// pixel6's path costs, ns of a Cortex-X1 at 2.8 GHz: what a class's are scaled from.
pub const PATHS: [(&str, u64); 18] = [
    ("syscall_ns", 250),
    ("schedule_ns", 450),
    ("context_switch_ns", 500),
    ("wakeup_ns", 600),
    ("select_per_cpu_ns", 30),
    ("energy_per_domain_ns", 200),
    ("interrupt_ns", 350),
    ("hrtimer_ns", 200),
    ("tick_ns", 1_000),
    ("ipi_send_ns", 150),
    ("softirq_ns", 300),
    ("balance_per_cpu_ns", 120),
    ("migrate_task_ns", 400),
    ("idle_enter_ns", 600),
    ("idle_exit_ns", 500),
    ("frequency_switch_ns", 400),
    ("fork_ns", 25_000),
    ("exit_ns", 15_000),
];

/// The frequency that [`PATHS`] is of.
const PATH_KHZ: u64 = 2_800_000;

/// The keys at the top of a file that a class stands for.
pub(crate) const TOP: [&str; 8] = [
    "interrupts",
    "path_costs",
    "ns_per_loop",
    "transition_latency_us",
    "settle_us",
    "fast_switch",
    "dvfs_possible_from_any_cpu",
    "topology",
];

/// Returns the advice where such a key is missing.
pub(crate) fn help() -> String {
    format!("or give the strongest cores a `class`, which stands for it and more: {}", words())
}

fn words() -> String {
    CLASSES.iter().map(|class| format!("`{}`", class.word)).collect::<Vec<_>>().join(", ")
}

/// The words of all classes.
pub(crate) fn all() -> [&'static str; 5] {
    CLASSES.map(|class| class.word)
}

keys! {
    /// a kind of core; `idle` lists its states from the shallowest to the deepest
    struct CoreKeys in "core.*" {
        /// estimates for keys that the file leaves out, see machine-files.md
        class: Located<String> = May, one_of(&all());
    }
}

/// Whether a class is of x86 processors.
pub(crate) fn is_x86(word: &str) -> bool {
    CLASSES.iter().any(|class| class.word == word && class.x86)
}

/// Checks the word of a core.
pub(crate) fn check(table: &mut TableReader<'_>, faults: &mut Diagnostics) {
    let Some(word) = CoreKeys::read(table, faults).class else { return };
    if CLASSES.iter().all(|class| class.word != word.value) {
        let near = did_you_mean(&word.value, CLASSES.iter().map(|class| class.word));
        let help =
            near.map_or_else(|| format!("known: {}", words()), |n| format!("did you mean `{n}`?"));
        faults.push_at(
            &word.at,
            format!("there is no class of cores `{}`", word.value),
            Some(help),
        );
    }
}

/// A core's class, and where the file says so.
#[derive(Clone)]
struct Told {
    class: &'static Class,
    at: Location,
}

/// A group of CPUs, as far as it can be read; the file's reader tells what is wrong with it.
struct Group {
    cpus: CpuMask,
    capacity: i64,
    told: Option<Told>,
}

/// Fills in what is missing and gives the paths of that. Does nothing where no core has a class. Where a class, the name of a core or
/// a domain is wrong, stands something all the same: the one fault is told then, and not each key that a class would have filled.
pub(crate) fn fill(document: &mut TomlDocument) -> Vec<String> {
    let mut filled = Vec::new();
    let root = document.table_mut();
    let classes = fill_cores(root, &mut filled);
    if classes.is_empty() {
        return filled;
    }
    let groups = fill_groups(root, &classes, &mut filled);
    let Some(strongest) = groups.iter().max_by_key(|group| group.capacity) else { return filled };
    let max_khz = fill_clocks(root, &groups, &strongest.cpus, &mut filled);
    if let Some(told) = &strongest.told {
        let max_khz = max_khz.filter(|khz| *khz > 0).unwrap_or(PATH_KHZ);
        fill_top(root, told, max_khz, &groups, &mut filled);
    }
    filled
}

/// The classes by the names of their cores.
fn fill_cores(root: &mut Table, filled: &mut Vec<String>) -> Vec<(String, Told)> {
    let mut classes = Vec::new();
    for (name, core) in tables_of(root, "core") {
        let Some(node) = core.0.get("class").map(|entry| entry.node.clone()) else { continue };
        let Value::String(word) = &node.value else { continue };
        let class = CLASSES.iter().find(|class| class.word == *word).unwrap_or(&SOC);
        let at = node.at;
        let path = format!("core.{name}.idle");
        if add(core, "idle", &at, Value::Array(idle_states(class, &at))) {
            filled.push(path);
        } else if let Some(Value::Array(states)) = value_mut(core, "idle") {
            for (index, state) in states.iter_mut().enumerate() {
                let Value::Table(state) = &mut state.value else { continue };
                let told = state.0.get("kernel_exit_ns").map(|told| told.node.value.clone());
                let exit = told.is_some_and(|told| add(state, "exit_ns", &at, told));
                let entry = add(state, "entry_ns", &at, Value::Integer(0));
                for (new, key) in [(entry, "entry_ns"), (exit, "exit_ns")] {
                    filled.extend(new.then(|| format!("{path}[{index}].{key}")));
                }
            }
        }
        classes.push((name.clone(), Told { class, at }));
    }
    classes
}

fn fill_groups(
    root: &mut Table,
    classes: &[(String, Told)],
    filled: &mut Vec<String>,
) -> Vec<Group> {
    let mut groups = Vec::new();
    let cores = tables_of(root, "core").into_iter();
    let cores: Vec<String> = cores.map(|(name, _)| name).collect();
    let mut tables = tables_of(root, "cpu");
    let alone = tables.len() == 1;
    for (name, group) in &mut tables {
        let (Some(Value::String(core)), Some(Value::String(cpus))) =
            (value(group, "core"), value(group, "cpus"))
        else {
            continue;
        };
        // A core that is not there has some class.
        let is_it = |known: &String| known == core || !cores.contains(core);
        let told = classes.iter().find(|(known, _)| is_it(known)).map(|(_, told)| told.clone());
        let Ok(cpus) = CpuMask::parse_list(cpus) else { continue };
        if let Some(told) = told.as_ref().filter(|_| alone)
            && add(group, "capacity", &told.at, Value::Integer(1024))
        {
            filled.push(format!("cpu.{name}.capacity"));
        }
        let Some(Value::Integer(capacity)) = value(group, "capacity") else { continue };
        groups.push(Group { cpus, capacity: *capacity, told });
    }
    groups
}

/// Fills in powers, and gives the highest frequency of `strongest`.
fn fill_clocks(
    root: &mut Table,
    groups: &[Group],
    strongest: &CpuMask,
    filled: &mut Vec<String>,
) -> Option<u64> {
    let mut max_khz = None;
    for (name, domain) in tables_of(root, "domain") {
        let Some(Value::String(cpus)) = value(domain, "cpus") else { continue };
        let Ok(cpus) = CpuMask::parse_list(cpus) else { continue };
        let group = groups.iter().find(|group| group.cpus.intersects(&cpus));
        let told = group.and_then(|group| group.told.clone());
        let Some(Value::Array(opps)) = value_mut(domain, "opp") else { continue };
        let (mut active, mut wfi) = (false, false);
        for opp in opps {
            let Value::Table(opp) = &mut opp.value else { continue };
            if let Some(Value::Integer(khz)) = value(opp, "khz")
                && cpus.intersects(strongest)
            {
                max_khz = u64::try_from(*khz).ok();
            }
            let Some(told) = &told else { continue };
            if let Some(em) = value(opp, "em_uw").cloned() {
                active |= add(opp, "active_uw", &told.at, em);
            }
            if let Some(&Value::Integer(uw)) = value(opp, "active_uw") {
                let share = uw.saturating_mul(told.class.wfi_permille) / 1000;
                wfi |= add(opp, "wfi_uw", &told.at, Value::Integer(share));
            }
        }
        for (new, key) in [(active, "active_uw"), (wfi, "wfi_uw")] {
            filled.extend(new.then(|| format!("domain.{name}.opp.{key}")));
        }
    }
    max_khz
}

fn fill_top(
    root: &mut Table,
    told: &Told,
    max_khz: u64,
    groups: &[Group],
    filled: &mut Vec<String>,
) {
    let Told { class, at } = told;
    let integer = |ns: u64| Value::Integer(ns as i64);
    let clocks = |clocks: u64| (clocks * 1_000_000 / max_khz).clamp(1, 1_000_000);
    for (key, value) in [
        ("ns_per_loop", integer(clocks(class.loop_clocks))),
        ("transition_latency_us", Value::Integer(class.transition_latency_us)),
        ("settle_us", Value::Integer(class.settle_us)),
        ("fast_switch", Value::Boolean(true)),
        ("dvfs_possible_from_any_cpu", Value::Boolean(class.dvfs_possible_from_any_cpu)),
    ] {
        filled.extend(add(root, key, at, value).then(|| key.to_string()));
    }
    let keys = [
        "ipi_latency_min_ns",
        "ipi_latency_max_ns",
        "timer_latency_min_ns",
        "timer_latency_max_ns",
    ];
    let interrupts = keys.into_iter().zip(class.interrupts.map(Value::Integer));
    fill_table(root, "interrupts", at, interrupts, filled);
    let cost = |ns: u64| {
        let ns = ns * 1024 * PATH_KHZ / max_khz / class.work_per_clock;
        integer(ns.clamp(1, MAX_COST_NS))
    };
    let head = [("scale", Value::String("work".into())), ("percent", Value::Integer(100))];
    let costs = PATHS.iter().map(|(key, ns)| (*key, cost(*ns)));
    fill_table(root, "path_costs", at, head.into_iter().chain(costs), filled);
    // The only one is the one that is meant.
    if let (None, Some(Value::Table(topologies))) =
        (root.0.get("topology"), root.0.get("topologies").map(|entry| &entry.node.value))
        && topologies.0.len() == 1
        && let Some(name) = topologies.0.keys().next().cloned()
    {
        add(root, "topology", at, Value::String(name));
    }
    if !root.0.contains_key("topology") && !root.0.contains_key("topologies") {
        let all = groups.iter().fold(CpuMask::EMPTY, |all, group| all.or(&group.cpus));
        let all = || {
            let value = Value::String(all.to_string());
            Value::Array(vec![Node { at: at.clone(), value }])
        };
        let mut flat = Table::default();
        add(&mut flat, "package", at, all());
        add(&mut flat, "llc", at, all());
        let architecture = if class.x86 { "x86" } else { "arm64" };
        add(&mut flat, "architecture", at, Value::String(architecture.into()));
        let mut topologies = Table::default();
        add(&mut topologies, "flat", at, Value::Table(flat));
        add(root, "topologies", at, Value::Table(topologies));
        add(root, "topology", at, Value::String("flat".into()));
        filled.push("topologies.flat".into());
    }
}

/// The shallowest states: the architecture's WFI as Linux registers it, 1 us each [S]; POLL and C1 of intel_idle, 2 us each [S].
fn idle_states(class: &Class, at: &Location) -> Vec<Node> {
    let state = |name: &str, exit: i64, residency: i64, power: &str, polling: bool| {
        let mut state = Table::default();
        add(&mut state, "name", at, Value::String(name.into()));
        add(&mut state, "entry_ns", at, Value::Integer(0));
        add(&mut state, "exit_ns", at, Value::Integer(exit));
        add(&mut state, "residency_us", at, Value::Integer(residency));
        add(&mut state, "power", at, Value::String(power.into()));
        if polling {
            add(&mut state, "polling", at, Value::Boolean(true));
        }
        Node { at: at.clone(), value: Value::Table(state) }
    };
    if class.x86 {
        vec![state("POLL", 0, 0, "50% active", true), state("C1", 2_000, 2, "wfi", false)]
    } else {
        vec![state("WFI", 1_000, 1, "wfi", false)]
    }
}

/// Puts a key into a table unless it is there; whether it was put.
fn add(table: &mut Table, key: &str, at: &Location, value: Value) -> bool {
    let missing = !table.0.contains_key(key);
    if missing {
        let node = Node { at: at.clone(), value };
        table.0.insert(key.into(), Entry { key_at: at.clone(), node });
    }
    missing
}

/// Puts keys into the table `name`; if it was not there, its name stands for them all.
fn fill_table<'k>(
    root: &mut Table,
    name: &str,
    at: &Location,
    values: impl Iterator<Item = (&'k str, Value)>,
    filled: &mut Vec<String>,
) {
    let whole = add(root, name, at, Value::Table(Table::default()));
    let Some(Value::Table(table)) = value_mut(root, name) else { return };
    for (key, value) in values {
        let added = add(table, key, at, value);
        // That costs are work and not scaled is no estimate.
        let said = added && !whole && !["scale", "percent"].contains(&key);
        filled.extend(said.then(|| format!("{name}.{key}")));
    }
    if whole {
        filled.push(name.into());
    }
}

fn value<'t>(table: &'t Table, key: &str) -> Option<&'t Value> {
    table.0.get(key).map(|entry| &entry.node.value)
}

fn value_mut<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Value> {
    table.0.get_mut(key).map(|entry| &mut entry.node.value)
}

/// The tables under a key, by name.
fn tables_of<'t>(root: &'t mut Table, key: &str) -> Vec<(String, &'t mut Table)> {
    let Some(Value::Table(tables)) = value_mut(root, key) else { return Vec::new() };
    let table = |(name, entry): (&String, &'t mut Entry)| match &mut entry.node.value {
        Value::Table(table) => Some((name.clone(), table)),
        _ => None,
    };
    tables.0.iter_mut().filter_map(table).collect()
}
