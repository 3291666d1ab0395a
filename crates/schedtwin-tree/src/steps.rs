// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheduler's own program makes of the machine: values of variables and of maps, and programs that it runs.
//!
//! ```json
//! "machine": [
//!   { "set": { "smt_enabled": "smt" } },
//!   { "for": "cpu", "set": { "cpu_capacity[cpu]": "capacity", "cpu_node_map[cpu]": "node" } },
//!   { "for": "cpu", "if": "threads > 1", "run": "enable_sibling_cpu", "with": { "cpu_id": "cpu", "sibling_cpu_id": "sibling" } }
//! ]
//! ```
//!
//! Steps are taken in their order, once for each part of the machine that `for` names. What stands in the brackets behind a map is its
//! key (`map[a, b]`: two numbers of 32 bits). `mask` is the set of the part's CPUs in words of 64 bits, `mask(EXPRESSION)` of those for
//! which the expression is not 0.

use crate::expression::Expression;

/// A part of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    #[default]
    Machine,
    /// A CPU.
    Cpu,
    /// A core: CPUs that share its units.
    Core,
    /// A last-level cache.
    Llc,
    /// A NUMA node.
    Node,
    /// A place in an order of all CPUs.
    Rank,
}

/// Parts by their names.
pub(crate) const PARTS: [(&str, Part); 5] = [
    ("cpu", Part::Cpu),
    ("core", Part::Core),
    ("llc", Part::Llc),
    ("node", Part::Node),
    ("rank", Part::Rank),
];

/// What there is to know of the machine.
pub(crate) const OF_MACHINE: [&str; 10] = [
    "cpus",
    "cores",
    "llcs",
    "nodes",
    "smt",
    "same_capacity",
    "little_cores",
    "largest_capacity",
    "most_cpus_in_llc",
    "slowest_cpu",
];
/// What there is to know of a CPU. `llc_in_node`: its number within the unit above. `sibling`: the other thread, -1 if it has its core
/// for itself. `capacity`: 1024 for a CPU at full speed.
pub(crate) const OF_CPU: [&str; 13] = [
    "cpu",
    "core",
    "llc",
    "node",
    "llc_in_node",
    "core_in_llc",
    "thread",
    "threads",
    "sibling",
    "capacity",
    "big",
    "turbo",
    "little",
];
const OF_CORE: [&str; 8] =
    ["core", "llc", "node", "own_cpus", "first_cpu", "big", "turbo", "little"];
const OF_LLC: [&str; 5] = ["llc", "node", "own_cpus", "own_cores", "first_cpu"];
const OF_NODE: [&str; 5] = ["node", "own_cpus", "own_cores", "own_llcs", "first_cpu"];
/// The CPU at a place in the order: by capacity, the largest or the smallest first; core by core.
const OF_RANK: [&str; 4] = ["rank", "fastest", "slowest", "by_core"];

impl Part {
    /// The names that expressions about it may use: those of the machine first.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Part::Machine => &[],
            Part::Cpu => &OF_CPU,
            Part::Core => &OF_CORE,
            Part::Llc => &OF_LLC,
            Part::Node => &OF_NODE,
            Part::Rank => &OF_RANK,
        };
        OF_MACHINE.iter().chain(own).copied().collect()
    }
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The parts that it is taken for.
    pub part: Part,
    /// It is not taken where this is 0.
    pub condition: Option<Expression>,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Writes variables and entries of maps.
    Set(Vec<(Path, Value)>),
    /// Runs a program.
    Run(Run),
    /// Does not load the scheduler on this machine, for this reason.
    Refuse(String),
}

/// A program that a loader runs (`SEC("syscall")`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Its function.
    pub program: String,
    /// The members of its argument.
    pub with: Vec<(String, Expression)>,
    /// The CPU that it runs on.
    pub on: Option<Expression>,
    /// It runs after `init`, as a program that its loader runs when the scheduler is attached.
    pub after_init: bool,
}

/// A place: `cpu_capacity[cpu]`, `pairs[llc].id`, with expressions in brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// As it was written.
    pub text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Index(Expression),
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(Expression),
    /// The set of the part's CPUs for which the expression is not 0; of all of them.
    Mask(Option<Expression>),
}

/// What is wrong with a text, and what would be right.
type Wrong = (String, String);

impl Path {
    /// Reads a place.
    pub(crate) fn read(text: &str, names: &[&str]) -> Result<Path, Wrong> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('[') {
            let Some((indices, behind)) = behind.split_once(']') else {
                let message = format!("a bracket of `{text}` is not closed");
                return Err((message, "an index stands in [ and ]".into()));
            };
            pieces.push(Piece::Text(format!("{before}[")));
            for (at, index) in indices.split(',').enumerate() {
                if at > 0 {
                    pieces.push(Piece::Text(",".into()));
                }
                pieces.push(Piece::Index(Expression::read(index, names)?));
            }
            pieces.push(Piece::Text("]".into()));
            rest = behind;
        }
        pieces.push(Piece::Text(rest.to_string()));
        Ok(Path { text: text.to_string(), pieces })
    }

    /// The variable or the map.
    pub fn root(&self) -> &str {
        self.text.split(['.', '[']).next().unwrap_or(&self.text)
    }

    /// The place with numbers in its brackets.
    pub fn with(&self, values: &[i64]) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Index(expression) => expression.value(values).to_string(),
        };
        self.pieces.iter().map(piece).collect()
    }
}

impl Value {
    /// Reads a value.
    pub(crate) fn read(text: &str, names: &[&str]) -> Result<Value, Wrong> {
        let Some(rest) = text.trim().strip_prefix("mask") else {
            return Expression::read(text, names).map(Value::Number);
        };
        let filter = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        match (rest.trim(), filter) {
            ("", _) => Ok(Value::Mask(None)),
            (_, Some(filter)) => {
                Expression::read(filter, &Part::Cpu.names()).map(|of| Value::Mask(Some(of)))
            }
            (rest, _) if rest.starts_with('(') => {
                let help = "mask(EXPRESSION) stands alone: the CPUs for which it is not 0";
                Err((format!("`{text}` is not `mask(...)`"), help.into()))
            }
            _ => Expression::read(text, names).map(Value::Number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_expressions_in_brackets() {
        let names = Part::Cpu.names();
        let mut values = vec![0; names.len()];
        values[names.iter().position(|name| *name == "cpu").unwrap()] = 3;
        for (text, expected) in [
            ("smt_enabled", "smt_enabled"),
            ("table[cpu * 2 + 1].id", "table[7].id"),
            ("map[cpu, 1].a[0]", "map[3,1].a[0]"),
        ] {
            assert_eq!(Path::read(text, &names).unwrap().with(&values), expected);
        }
        assert!(Path::read("a[cpu", &names).is_err());
        assert_eq!(Value::read("mask", &names), Ok(Value::Mask(None)));
        assert!(matches!(Value::read("mask(big)", &[]), Ok(Value::Mask(Some(_)))));
        assert!(Value::read("maskx", &names).unwrap_err().0.contains("maskx"));
    }
}
