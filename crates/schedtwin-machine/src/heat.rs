// SPDX-License-Identifier: GPL-2.0-or-later
//! Heat flow, and the thermal zones of the kernel.
//!
//! Silicon and case are a network of nodes. Each stores heat and passes it on through resistances, at last to the
//! ambient air. A thermal zone reads the temperature of a node: above its trip points clocks are limited, and its
//! governor decides by how much.
//!
//! ```toml
//! heat = true
//! ambient_c = 25
//! start_above_k = 0     # may be left out: how much warmer than the air everything is at the start
//! heat_step_us = 5_000  # heat flows, and sensors are read, on this grid
//!
//! [heat_node.big]
//! capacity_mj_per_k = 200
//! heated_by = ["big"]   # clocks and power domains whose power goes in here
//! to = [{ node = "case", mk_per_w = 8_000 }]
//!
//! [heat_node.case]
//! capacity_mj_per_k = 100_000
//! to = [{ node = "ambient", mk_per_w = 10_000 }]
//!
//! [thermal_zone.big]
//! node = "big"
//! governor = "step_wise"     # or "power_allocator"
//! polling_delay_ms = 1_000   # 0: never, but when a trip point is crossed
//! passive_delay_ms = 100     # while a passive trip point is exceeded
//! trips = [
//!   { c = 90, hysteresis_c = 5, type = "passive", cools = ["big"] }, # cools: clocks
//! ]
//! ```
//!
//! For `power_allocator`: `sustainable_mw` (left out: the kernel's own estimate), `k_po`, `k_pu`, `k_i`, `k_d` (10 fractional bits, mW per m°C,
//! as in `/sys/class/thermal`; left out: likewise), `integral_cutoff_c` (0).
//!
//! Each node must be within reach of the air, and the step at most a quarter of what the heat of a node takes to leave it:
//! beyond a half the sum that is computed would swing. Whatever heats no node by name (`heated_by`) heats none.

use schedtwin_input::{Diagnostics, Located, Location, TableReader, did_you_mean};
use schedtwin_types::arena::Arena;
use schedtwin_types::{ClockDomainId, Ns, PowerDomainId};

use crate::keys::{Kind, keys, list, upto, words};
use crate::{FrequencyDomain, PowerDomain};

/// The most nodes, zones or trips.
const MAX_PARTS: usize = 64;
/// A gigajoule per kelvin, a megakelvin per watt: beyond them somebody confused the unit.
const MAX_HEAT: u64 = 1_000_000_000;
/// Temperatures of silicon and air, °C.
const TEMPERATURES: std::ops::RangeInclusive<i64> = -60..=250;
/// The values that a key of a temperature may have.
const CELSIUS: Kind = Kind::Whole(*TEMPERATURES.start(), *TEMPERATURES.end());
/// The values that a coefficient of the PID controller may have.
const COEFFICIENT: Kind = Kind::Whole(i32::MIN as i64, i32::MAX as i64);
/// The longest polling delay, ms: an hour.
const MAX_DELAY_MS: u64 = 3_600_000;

/// Nodes, resistances and thermal zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heat {
    /// Temperature of the air, m°C.
    pub ambient_mc: i64,
    /// Temperature of everything at the start, m°C.
    pub start_mc: i64,
    /// The grid.
    pub step_ns: Ns,
    /// The nodes that store heat.
    pub nodes: Vec<HeatNode>,
    /// The resistances that heat passes through.
    pub edges: Vec<HeatEdge>,
    /// The zones that the kernel watches.
    pub zones: Vec<ThermalZone>,
}

/// Something that stores heat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatNode {
    /// Its name: `case`.
    pub name: String,
    /// Heat capacity, mJ/K.
    pub capacity_mj_per_k: u64,
    /// Frequency domains whose power goes in here.
    pub clocks: Vec<ClockDomainId>,
    /// Power domains whose own power goes in here.
    pub power_domains: Vec<PowerDomainId>,
}

/// A thermal resistance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeatEdge {
    /// A node.
    pub from: usize,
    /// Another; `None`: the air.
    pub to: Option<usize>,
    /// mK/W.
    pub mk_per_w: u64,
}

/// A thermal zone (`struct thermal_zone_device`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThermalZone {
    /// Its name.
    pub name: String,
    /// The node that its sensor is on.
    pub node: usize,
    /// `policy`.
    pub governor: ThermalGovernor,
    /// `polling-delay`.
    pub polling_delay_ns: Ns,
    /// `polling-delay-passive`.
    pub passive_delay_ns: Ns,
    /// Its trip points.
    pub trips: Vec<Trip>,
    /// `sustainable-power`, mW; 0: estimated.
    pub sustainable_mw: u32,
    /// Coefficients of the PID controller that are given: k_po, k_pu, k_i, k_d.
    pub coefficients: [Option<i32>; 4],
    /// Below which error the controller integrates, m°C.
    pub integral_cutoff_mc: i32,
}

/// Governors of thermal zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThermalGovernor {
    /// One step at a time, by trend.
    StepWise,
    /// A power budget, by a PID controller.
    PowerAllocator,
}

/// A trip point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trip {
    /// Temperature, m°C.
    pub mc: i64,
    /// Hysteresis, m°C.
    pub hysteresis_mc: i64,
    /// The type of the trip point.
    pub kind: TripType,
    /// Which clocks it holds back, in order.
    pub cools: Vec<CoolingMap>,
}

/// A clock that a trip point holds back (a cooling map without limits of its own).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoolingMap {
    /// The frequency domain.
    pub domain: ClockDomainId,
}

/// The purpose of a trip point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TripType {
    /// Slows down.
    Passive,
    /// Switches a fan; there is none, so it holds nothing back.
    Active,
    /// Tells user space.
    Hot,
    /// Shuts down: counted, the run goes on.
    Critical,
}

keys! {
    /// heat, at the top of the file
    struct HeatKeys in "" {
        /// heat is simulated; left out, it is not
        heat: bool = May, Switch;
        /// temperature of the air; needed with `heat`
        ambient_c: Located<i64> = May, CELSIUS;
        /// temperature of all nodes above the air at the start; 0
        start_above_k: Located<i64> = May, CELSIUS;
        /// time between two steps of the heat flow; needed with `heat`
        heat_step_us: Located<u64> = May, Whole(100, 1_000_000);
    }
}

keys! {
    /// a part that stores heat
    struct NodeKeys in "heat_node.*" {
        /// heat capacity
        capacity_mj_per_k: Located<u64> = Always, Whole(1, MAX_HEAT as i64);
        /// clocks and power domains whose power heats this node
        heated_by: Vec<Located<String>> = May, list(Text);
    }
}

keys! {
    /// neighbours to which heat flows
    struct EdgeKeys in "heat_node.*.to[]" {
        /// another node, or `ambient`
        node: Located<String> = Always, Text;
        /// thermal resistance
        mk_per_w: Located<u64> = Always, Whole(1, MAX_HEAT as i64);
    }
}

keys! {
    /// a thermal zone of the kernel
    struct ZoneKeys in "thermal_zone.*" {
        /// the heat node whose temperature it reads
        node: Located<String> = Always, Text;
        /// thermal governor, which limits clocks
        governor: Located<String> = Always, words(&["step_wise", "power_allocator"]);
        /// time between two readings; 0: read when a trip point is crossed
        polling_delay_ms: Located<u64> = Always, upto(MAX_DELAY_MS);
        /// time between two readings above a passive trip point
        passive_delay_ms: Located<u64> = Always, upto(MAX_DELAY_MS);
        /// power_allocator: sustainable power; left out, the kernel's own estimate
        sustainable_mw: u32 = May, upto(u32::MAX.into());
        /// power_allocator: proportional coefficient above the target, 10 fractional bits; left out, the kernel's
        /// own estimate
        k_po: i32 = May, COEFFICIENT;
        /// power_allocator: proportional coefficient below the target, 10 fractional bits; left out, the kernel's own estimate
        k_pu: i32 = May, COEFFICIENT;
        /// power_allocator: integral coefficient, 10 fractional bits; left out, the kernel's own estimate
        k_i: i32 = May, COEFFICIENT;
        /// power_allocator: derivative coefficient, 10 fractional bits; left out, the kernel's own estimate
        k_d: i32 = May, COEFFICIENT;
        /// power_allocator: cutoff of the integral term; 0
        integral_cutoff_c: Located<i64> = May, CELSIUS;
    }
}

keys! {
    /// trip points
    struct TripKeys in "thermal_zone.*.trips[]" {
        /// temperature of the trip point
        c: Located<i64> = Always, CELSIUS;
        /// the trip ends when the temperature is lower by this; 0
        hysteresis_c: Located<i64> = May, CELSIUS;
        /// type of the trip point
        r#type: Located<String> = Always, words(&["passive", "active", "hot", "critical"]);
        /// clocks that a passive trip point limits
        cools: Vec<Located<String>> = May, list(Text);
    }
}

/// Values at the top of the file.
pub(crate) struct Settings {
    on: bool,
    ambient_c: i64,
    start_above_k: i64,
    step_us: Located<u64>,
}

/// Reads `heat` and what belongs to it at the top; `None`: there is no heat, or it has a fault.
pub(crate) fn settings(root: &mut TableReader<'_>, faults: &mut Diagnostics) -> Option<Settings> {
    let HeatKeys { heat: on, ambient_c: ambient, start_above_k: above, heat_step_us: step } =
        HeatKeys::read(root, faults);
    let on = on?;
    for (key, missing) in [("ambient_c", ambient.is_none()), ("heat_step_us", step.is_none())] {
        if missing {
            let message = format!("`heat` is set, `{key}` is missing");
            faults.push_at(root.location(), message, None);
        }
    }
    let ambient = temperature(ambient, "ambient_c", faults);
    let start_above_k = match above {
        Some(above) => temperature(Some(above), "start_above_k", faults)?,
        None => 0,
    };
    let step_us = step?;
    if !(100..=1_000_000).contains(&step_us.value) {
        faults.push_at(&step_us.at, "`heat_step_us` is not within 100 us to a second", None);
        return None;
    }
    Some(Settings { on, ambient_c: ambient?, start_above_k, step_us })
}

fn temperature(value: Option<Located<i64>>, key: &str, faults: &mut Diagnostics) -> Option<i64> {
    let value = value?;
    if !TEMPERATURES.contains(&value.value) {
        let (low, high) = (TEMPERATURES.start(), TEMPERATURES.end());
        faults.push_at(&value.at, format!("`{key}` is not within {low} to {high} °C"), None);
        return None;
    }
    Some(value.value)
}

/// Where the power of something comes from, or what is held back, by name.
pub(crate) struct Parts<'a> {
    pub(crate) clocks: &'a Arena<ClockDomainId, FrequencyDomain>,
    pub(crate) power_domains: &'a Arena<PowerDomainId, PowerDomain>,
}

impl Parts<'_> {
    /// The clocks of that name; those of a `per_cpu` table are `NAME0`, `NAME1`, ...
    fn clock(&self, name: &str) -> Option<ClockDomainId> {
        self.clocks.find(|d| d.name == name)
    }

    fn help(&self, name: &str) -> Option<String> {
        let clocks = self.clocks.iter().map(|d| d.name.as_str());
        let all = clocks.chain(self.power_domains.iter().map(|d| d.name.as_str()));
        did_you_mean(name, all).map(|near| format!("did you mean `{near}`?"))
    }
}

/// Reads nodes and zones. `None`: there is no heat, or it has a fault.
pub(crate) fn read(
    settings: Option<Settings>,
    nodes: Vec<(Located<String>, TableReader<'_>)>,
    zones: Vec<(Located<String>, TableReader<'_>)>,
    parts: &Parts<'_>,
    faults: &mut Diagnostics,
) -> Option<Heat> {
    let had = faults.0.len();
    let names: Vec<Located<String>> = nodes.iter().map(|(name, _)| name.clone()).collect();
    let (mut built, mut edges) = (Vec::new(), Vec::new());
    for tables in [&nodes, &zones] {
        if let Some((beyond, _)) = tables.get(MAX_PARTS) {
            let message = format!("{} nodes or zones of heat: at most {MAX_PARTS}", tables.len());
            faults.push_at(&beyond.at, message, None);
            return None;
        }
    }
    for (index, (name, table)) in nodes.into_iter().enumerate() {
        let node = read_node(index, &name, table, &names, parts, &mut edges, faults);
        if let Some(node) = &node {
            for earlier in built.iter().flatten() {
                let earlier: &HeatNode = earlier;
                let twice = node.clocks.iter().any(|c| earlier.clocks.contains(c))
                    || node.power_domains.iter().any(|p| earlier.power_domains.contains(p));
                if twice {
                    let message = format!("`{}` is heated by the same part", earlier.name);
                    faults.push_at(&name.at, message, None);
                }
            }
        }
        built.push(node);
    }
    let zones: Vec<Option<ThermalZone>> = zones
        .into_iter()
        .map(|(name, table)| read_zone(&name, table, &names, parts, faults))
        .collect();
    let settings = settings?;
    if faults.0.len() > had {
        return None;
    }
    let nodes: Vec<HeatNode> = built.into_iter().collect::<Option<_>>()?;
    if nodes.is_empty() {
        faults.push_at(&settings.step_us.at, "heat needs a table `[heat_node.NAME]`", None);
        return None;
    }
    check_flow(&nodes, &edges, &names, &settings.step_us, faults);
    if !settings.on || faults.0.len() > had {
        return None;
    }
    Some(Heat {
        ambient_mc: settings.ambient_c * 1000,
        start_mc: (settings.ambient_c + settings.start_above_k) * 1000,
        step_ns: settings.step_us.value * 1000,
        nodes,
        edges,
        zones: zones.into_iter().collect::<Option<_>>()?,
    })
}

fn find_node(
    name: &Located<String>,
    names: &[Located<String>],
    faults: &mut Diagnostics,
) -> Option<usize> {
    let found = names.iter().position(|known| known.value == name.value);
    if found.is_none() {
        let near = did_you_mean(&name.value, names.iter().map(|n| n.value.as_str()));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        faults.push_at(&name.at, format!("there is no node `{}`", name.value), help);
    }
    found
}

fn read_node(
    index: usize,
    name: &Located<String>,
    mut table: TableReader<'_>,
    names: &[Located<String>],
    parts: &Parts<'_>,
    edges: &mut Vec<HeatEdge>,
    faults: &mut Diagnostics,
) -> Option<HeatNode> {
    let NodeKeys { capacity_mj_per_k: capacity, heated_by } = NodeKeys::read(&mut table, faults);
    let capacity = positive("capacity_mj_per_k", capacity, faults);
    let to_at = table.location_of("to");
    let rows = table.tables("to", faults);
    table.finish(faults);
    if name.value == "ambient" {
        faults.push_at(&name.at, "`ambient` is the air: it has no capacity", None);
    }
    if rows.len() > MAX_PARTS {
        faults.push_at(&to_at, format!("more than {MAX_PARTS} resistances"), None);
        return None;
    }
    for mut row in rows {
        let EdgeKeys { node, mk_per_w } = EdgeKeys::read(&mut row, faults);
        let mk_per_w = positive("mk_per_w", mk_per_w, faults);
        row.finish(faults);
        let (Some(node), Some(mk_per_w)) = (node, mk_per_w) else { continue };
        let to = match node.value.as_str() {
            "ambient" => None,
            _ => match find_node(&node, names, faults) {
                Some(to) if to == index => {
                    faults.push_at(&node.at, "a node has no resistance to itself", None);
                    continue;
                }
                Some(to) => Some(to),
                None => continue,
            },
        };
        edges.push(HeatEdge { from: index, to, mk_per_w });
    }
    let (mut clocks, mut power_domains) = (Vec::new(), Vec::new());
    for part in heated_by.unwrap_or_default() {
        let power = parts.power_domains.find(|p| p.name == part.value);
        match (parts.clock(&part.value), power) {
            (None, None) => {
                let message = format!("there is no clock or power domain `{}`", part.value);
                faults.push_at(&part.at, message, parts.help(&part.value));
            }
            (clock, power) => {
                clocks.extend(clock);
                power_domains.extend(power);
            }
        }
    }
    let capacity_mj_per_k = capacity?;
    Some(HeatNode { name: name.value.clone(), capacity_mj_per_k, clocks, power_domains })
}

fn positive(key: &str, value: Option<Located<u64>>, faults: &mut Diagnostics) -> Option<u64> {
    let value = value?;
    if !(1..=MAX_HEAT).contains(&value.value) {
        faults.push_at(&value.at, format!("`{key}` is not within 1 to {MAX_HEAT}"), None);
        return None;
    }
    Some(value.value)
}

/// All heat can get out, and the step is short enough. R in mK/W times C in mJ/K is a time in µs.
fn check_flow(
    nodes: &[HeatNode],
    edges: &[HeatEdge],
    names: &[Located<String>],
    step_us: &Located<u64>,
    faults: &mut Diagnostics,
) {
    let mut outside: Vec<bool> = vec![false; nodes.len()];
    // Each round reaches one node more, or none.
    for _ in 0..nodes.len() {
        for edge in edges {
            match edge.to {
                None => outside[edge.from] = true,
                Some(to) if outside[to] || outside[edge.from] => {
                    outside[to] = true;
                    outside[edge.from] = true;
                }
                Some(_) => {}
            }
        }
    }
    for (index, node) in nodes.iter().enumerate() {
        if !outside[index] {
            let message = format!("heat of `{}` never gets out into the air", node.name);
            faults.push_at(&names[index].at, message, None);
        }
        const SCALE: u128 = 1_000_000_000_000;
        let conductances: u128 = edges
            .iter()
            .filter(|edge| edge.from == index || edge.to == Some(index))
            .map(|edge| SCALE / u128::from(edge.mk_per_w))
            .sum();
        let four_steps = 4 * u128::from(step_us.value);
        if four_steps * conductances > u128::from(node.capacity_mj_per_k) * SCALE {
            let longest = u128::from(node.capacity_mj_per_k) * SCALE / conductances.max(1) / 4;
            let message = format!("`heat_step_us` is too long for node `{}`", node.name);
            faults.push_at(&step_us.at, message, Some(format!("at most {longest}")));
        }
    }
}

fn read_zone(
    name: &Located<String>,
    mut table: TableReader<'_>,
    names: &[Located<String>],
    parts: &Parts<'_>,
    faults: &mut Diagnostics,
) -> Option<ThermalZone> {
    let keys = ZoneKeys::read(&mut table, faults);
    let ZoneKeys { node, governor, sustainable_mw, integral_cutoff_c: cutoff, .. } = keys;
    let polling = delay("polling_delay_ms", keys.polling_delay_ms, faults);
    let passive = delay("passive_delay_ms", keys.passive_delay_ms, faults);
    let coefficients = [keys.k_po, keys.k_pu, keys.k_i, keys.k_d];
    let at = table.location_of("trips");
    let mut rows = table.tables("trips", faults);
    table.finish(faults);
    if rows.len() > MAX_PARTS {
        faults.push_at(&at, format!("more than {MAX_PARTS} trip points"), None);
        rows.truncate(MAX_PARTS);
    }
    let trips: Vec<Option<Trip>> =
        rows.into_iter().map(|row| read_trip(row, parts, faults)).collect();
    let governor = governor.and_then(|word| match word.value.as_str() {
        "step_wise" => Some(ThermalGovernor::StepWise),
        "power_allocator" => Some(ThermalGovernor::PowerAllocator),
        other => {
            let message = format!("there is no governor `{other}`");
            let help = Some("known: `step_wise`, `power_allocator`".to_string());
            faults.push_at(&word.at, message, help);
            None
        }
    });
    let node = node.and_then(|node| find_node(&node, names, faults));
    let cutoff = match cutoff {
        Some(cutoff) => temperature(Some(cutoff), "integral_cutoff_c", faults)?,
        None => 0,
    };
    Some(ThermalZone {
        name: name.value.clone(),
        node: node?,
        governor: governor?,
        polling_delay_ns: polling? * 1_000_000,
        passive_delay_ns: passive? * 1_000_000,
        trips: trips.into_iter().collect::<Option<_>>()?,
        sustainable_mw: sustainable_mw.unwrap_or(0),
        coefficients,
        integral_cutoff_mc: (cutoff * 1000) as i32,
    })
}

fn delay(key: &str, value: Option<Located<u64>>, faults: &mut Diagnostics) -> Option<u64> {
    let value = value?;
    if value.value > MAX_DELAY_MS {
        faults.push_at(&value.at, format!("`{key}` is more than an hour"), None);
        return None;
    }
    Some(value.value)
}

fn read_trip(
    mut row: TableReader<'_>,
    parts: &Parts<'_>,
    faults: &mut Diagnostics,
) -> Option<Trip> {
    let TripKeys { c, hysteresis_c: hysteresis, r#type: kind, cools } =
        TripKeys::read(&mut row, faults);
    let at: Location = row.location().clone();
    row.finish(faults);
    let kind = kind.and_then(|word| match word.value.as_str() {
        "passive" => Some(TripType::Passive),
        "active" => Some(TripType::Active),
        "hot" => Some(TripType::Hot),
        "critical" => Some(TripType::Critical),
        other => {
            let message = format!("a trip point cannot be `{other}`");
            let help = Some("known: `passive`, `active`, `hot`, `critical`".to_string());
            faults.push_at(&word.at, message, help);
            None
        }
    });
    let mut maps = Vec::new();
    for name in cools.unwrap_or_default() {
        match parts.clock(&name.value) {
            Some(domain) => maps.push(CoolingMap { domain }),
            None => {
                let message = format!("there is no clock `{}`", name.value);
                faults.push_at(&name.at, message, parts.help(&name.value));
            }
        }
    }
    if !maps.is_empty() && kind.is_some_and(|kind| kind != TripType::Passive) {
        faults.push_at(&at, "only a passive trip point holds clocks back", None);
    }
    let mc = temperature(c, "c", faults)? * 1000;
    let hysteresis_mc = match hysteresis {
        Some(value) => temperature(Some(value), "hysteresis_c", faults)?.max(0) * 1000,
        None => 0,
    };
    Some(Trip { mc, hysteresis_mc, kind: kind?, cools: maps })
}
