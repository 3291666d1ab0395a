// SPDX-License-Identifier: GPL-2.0-or-later
//! The keys of machine files: the schema for editors and the tables of docs/machine-keys.md are generated from
//! them.
//!
//! The keys of a table are declared once, beside their reader, which takes them from there: see `declare`. Only the
//! readers know which values go together and which names must exist. A test lets them read every built-in machine
//! and compares the keys that they ask for with the declared ones, so no reader can ask for an undeclared key.

pub(crate) mod declare;

pub(crate) use declare::keys;

use crate::costs::{self, PathCosts};
use crate::{
    block, broadcast, core_class, core_type, dependence, distance, domain, file, heat, l3,
};
use crate::{power_domain, power_limit, smt, speed, switching, topology, turns};
use schedtwin_input::Value;

/// Returns all tables, in the order of the document.
pub fn tables() -> Vec<Table> {
    let mut clocks = switching::ClockKeys::table().keys;
    let mut top = file::FileKeys::table();
    top.keys.append(&mut clocks.clone());
    top.keys.extend(heat::HeatKeys::table().keys);
    // A clock may have its own values of what stands at the top.
    let mut domain = domain::DomainKeys::table();
    for key in &mut clocks {
        key.need = May;
        key.help = "as at the top of the file, for this clock only".to_string();
    }
    domain.keys.append(&mut clocks);
    let mut work = speed::WorkKeys::table();
    work.keys.push(Key {
        name: speed::FACTORS,
        need: Always,
        kind: Map(1, speed::MAX_FACTOR as i64),
        unit: unit_of(speed::FACTORS, &Map(1, 1)),
        help: "for each `[core.NAME]`: speed of this work relative to the capacity; 1000"
            .to_string(),
    });
    let mut costs = costs::PathCostKeys::table();
    costs.keys.extend(PathCosts::declared().into_iter().map(|(name, help, share)| Key {
        name,
        need: if share.is_some() { May } else { WithoutClass },
        kind: upto(costs::MAX_COST_NS),
        unit: Some("ns"),
        help: share.map_or(help.to_string(), |share| format!("{help}; {share} % of `syscall_ns`")),
    }));
    let [lines, line_ns, ipi_ns] = distance::more_tables();
    let choices = Table {
        path: "choices.*.*",
        help: "values that change together: `-m pixel6:capacities=late`; the first name becomes a key at the top of the file; at most 64 options",
        keys: Vec::new(),
    };
    vec![
        top,
        topology::TopologyKeys::table(),
        core_class::CoreKeys::table(),
        core_type::StateKeys::table(),
        file::CpuKeys::table(),
        domain,
        domain::OppKeys::table(),
        costs::InterruptKeys::table(),
        costs,
        file::CoupledKeys::table(),
        file::FloorKeys::table(),
        dependence::DependentKeys::table(),
        dependence::RowKeys::table(),
        l3::L3Keys::table(),
        work,
        smt::SmtKeys::table(),
        turns::TurnsKeys::table(),
        distance::DistanceKeys::table(),
        line_ns,
        ipi_ns,
        lines,
        broadcast::BroadcastKeys::table(),
        block::BlockKeys::table(),
        power_domain::PowerDomainKeys::table(),
        power_domain::PowerStateKeys::table(),
        power_limit::PowerLimitKeys::table(),
        heat::NodeKeys::table(),
        heat::EdgeKeys::table(),
        heat::ZoneKeys::table(),
        heat::TripKeys::table(),
        choices,
    ]
}

/// Returns a value of the type that a declared key has, or an empty table for one of the tables with a fixed name; `None`:
/// nothing of that path is declared. Indexes in the path are `[]`.
pub(crate) fn value_like(path: &str) -> Option<Value> {
    let tables = tables();
    match declared(&tables, path) {
        Some(key) => key.kind.value(),
        None => tables
            .iter()
            .any(|table| table.path == path && !path.is_empty())
            .then(|| Value::Table(schedtwin_input::Table::default())),
    }
}

/// Returns the key of that path; `None`: nothing of that path is declared.
pub(crate) fn declared<'t>(tables: &'t [Table], path: &str) -> Option<&'t Key> {
    let (within, name) = path.rsplit_once('.').unwrap_or(("", path));
    let is_within = |table: &&Table| {
        let steps = |path: &'static str| path.split('.');
        let given = within.split('.');
        steps(table.path).count() == given.clone().count()
            && steps(table.path).zip(given).all(|(step, given)| step == "*" || step == given)
    };
    let mut keys = tables.iter().filter(is_within).flat_map(|table| &table.keys);
    keys.find(|key| key.name == name)
}

/// One of these words.
pub(crate) fn words(words: &[&'static str]) -> Kind {
    Kind::Words(words.to_vec())
}

/// A list.
pub(crate) fn list(of: Kind) -> Kind {
    Kind::List(Box::new(of))
}

/// A whole number that is at most this.
pub(crate) fn upto(most: u64) -> Kind {
    Whole(0, most as i64)
}

/// A table of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Where it is: `core.*` is any table in `core`, `core.*.idle[]` each of a list of tables; the root is empty.
    pub path: &'static str,
    /// The subject of the table.
    pub help: &'static str,
    /// The keys that may stand in it; a key of a table of its own is not among them.
    pub keys: Vec<Key>,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name, which ends in its unit.
    pub name: &'static str,
    /// Whether it must be there.
    pub need: Need,
    /// The values that it may have.
    pub kind: Kind,
    /// Its unit; `None`: it has none.
    pub unit: Option<&'static str>,
    /// The meaning of the key, and the meaning of a file that leaves it out.
    pub help: String,
}

/// Whether a key must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It must.
    Always,
    /// Unless a core has a class, which may stand for it.
    WithoutClass,
    /// Unless another key of the table is there.
    Unless(&'static str),
    /// It may be left out.
    May,
}

/// The values that a key may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// One of these words.
    Words(Vec<&'static str>),
    /// CPUs as sysfs lists them.
    Cpus,
    /// `true` or `false`.
    Switch,
    /// A whole number within these.
    Whole(i64, i64),
    /// A list.
    List(Box<Kind>),
    /// A table of whole numbers within these, whose keys are names from elsewhere in the file.
    Map(i64, i64),
}

/// Ends of names and the units that they stand for.
const UNITS: [(&str, &str); 17] = [
    ("mb_per_s", "MB/s"),
    ("uv_per_us", "µV/µs"),
    ("mj_per_k", "mJ/K"),
    ("mk_per_w", "mK/W"),
    ("permille", "‰"),
    ("percent", "%"),
    ("khz", "kHz"),
    ("ns", "ns"),
    ("us", "µs"),
    ("ms", "ms"),
    ("uw", "µW"),
    ("mw", "mW"),
    ("nj", "nJ"),
    ("pj", "pJ"),
    ("uv", "µV"),
    ("c", "°C"),
    ("k", "K"),
];

use Kind::{Cpus, Map, Switch, Text, Whole};
use Need::{Always, May, Unless, WithoutClass};

/// The unit that the end of a name says; `None`: it has none.
pub(crate) fn unit_of(name: &str, kind: &Kind) -> Option<&'static str> {
    let whole = match kind {
        Kind::Whole(..) | Kind::Map(..) => true,
        Kind::List(of) => matches!(**of, Kind::Whole(..)),
        _ => false,
    };
    if name == "ns_per_loop" {
        return Some("ns");
    }
    let is = |unit: &str| {
        name.strip_suffix(unit).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    };
    UNITS.iter().find(|(end, _)| whole && is(end)).map(|(_, unit)| *unit)
}

/// The tables as docs/machine-keys.md has them.
pub fn document() -> String {
    let mut out = String::new();
    for table in tables() {
        let header = match (table.path, table.path.strip_suffix("[]")) {
            ("", _) => "Top of the file".to_string(),
            (path, None) => {
                format!("`[{}]`", path.replace(".*.*", ".KEY.OPTION").replace('*', "NAME"))
            }
            (_, Some(list)) if list.contains(['.', '[']) => {
                let (within, key) = list.rsplit_once('.').expect("a list in a table");
                format!(
                    "`{key}` of `[{}]`",
                    within
                        .replace('*', "NAME")
                        .replace("coupled[]", "[coupled]")
                        .replace("dependent[]", "[dependent]")
                )
            }
            (_, Some(list)) => format!("`[[{list}]]`"),
        };
        out.push_str(&format!("\n### {header}\n\n{}.\n", upper(table.help)));
        if table.keys.is_empty() {
            continue;
        }
        out.push_str("\n| key | | meaning; what it is if left out |\n|---|---|---|\n");
        for key in &table.keys {
            let mark = match key.need {
                Always => "**",
                WithoutClass | Unless(_) => "*",
                May => "",
            };
            out.push_str(&format!(
                "| {mark}`{}`{mark} | {} | {} |\n",
                key.name,
                key.kind.in_words(key.unit),
                key.help
            ));
        }
    }
    out
}

fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

impl Kind {
    /// Some value of it; `None`: it is a table.
    fn value(&self) -> Option<Value> {
        match self {
            Text | Kind::Words(_) | Cpus => Some(Value::String(String::new())),
            Switch => Some(Value::Boolean(false)),
            Whole(..) => Some(Value::Integer(0)),
            Kind::List(_) => Some(Value::Array(Vec::new())),
            Map(..) => None,
        }
    }

    pub(crate) fn in_words(&self, unit: Option<&str>) -> String {
        let unit = unit.map_or(String::new(), |unit| format!(" {unit}"));
        match self {
            Text => "text".into(),
            Kind::Words(words) => {
                words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(" ")
            }
            Cpus => "CPUs".into(),
            Switch => "true, false".into(),
            // Bounds that only say that somebody confused the unit are none to know.
            Whole(0, most) if *most > 10_000 => format!("number{unit}"),
            Whole(1, most) if *most > 10_000 => format!("number{unit}, not 0"),
            Whole(least, most) if *least < -1000 || *most > 1_000_000 => format!("number{unit}"),
            Whole(least, most) => format!("{least} to {most}{unit}"),
            Kind::List(of) => format!("list: {}", of.in_words(None)) + &unit,
            Map(..) => format!("table of numbers{unit}"),
        }
    }
}
