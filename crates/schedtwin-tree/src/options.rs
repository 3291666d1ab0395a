// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheduler's own program lets its user choose, and what it sets by itself: `NAME.options.json` beside `NAME.bpf.c`.
//!
//! ```json
//! {
//!   "sets": { "primary_all": 1 },
//!   "options": {
//!     "slice_us": { "help": "the slice", "unit": "us", "default": 1000, "writes": { "slice_ns": 1000 } },
//!     "fifo": { "help": "in turn", "default": false, "writes": { "fifo_sched": 1 } }
//!   }
//! }
//! ```
//!
//! `machine` is what it makes of the machine ([`crate::steps`]). A value that is given, or else the default, is written times the number that stands beside the variable. Programs of known
//! schedulers are such files, too (`loaders/`).

use crate::expression::Expression;
use crate::steps::{Action, PARTS, Part, Path, Run, Step, Value as Written};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use schedtwin_input::{Diagnostics, Source, did_you_mean_or};
use std::ops::Range;
use std::sync::Arc;

/// How the file of a scheduler's options ends.
pub const OPTIONS_FILE: &str = ".options.json";

/// `SCX_OPS_*` that a program can set, by the names behind that.
const FLAGS: [(&str, u64); 8] = [
    ("KEEP_BUILTIN_IDLE", 1),
    ("ENQ_LAST", 1 << 1),
    ("ENQ_EXITING", 1 << 2),
    ("SWITCH_PARTIAL", 1 << 3),
    ("ENQ_MIGRATION_DISABLED", 1 << 4),
    ("ALLOW_QUEUED_WAKEUP", 1 << 5),
    ("BUILTIN_IDLE_PER_NODE", 1 << 6),
    ("ALWAYS_ENQ_IMMED", 1 << 7),
];
/// Settings that all schedulers have.
const TAKEN: [&str; 6] = ["timeout_ms", "op_ns", "flags", "load_ms", "unload_ms", "rodata"];
const KEYS: [&str; 9] = [
    "name",
    "flags",
    "flags_on_nodes",
    "sets",
    "machine",
    "arena_task",
    "defines",
    "leaves_off",
    "options",
];
const STEP_KEYS: [&str; 8] = ["for", "if", "set", "run", "with", "on", "after_init", "refuse"];
const OPTION_KEYS: [&str; 7] = ["help", "unit", "default", "min", "max", "writes", "flag"];

/// JSON, with comments.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A scheduler's program, as a file describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtOptions {
    /// `ops.name` of the scheduler; empty: the one beside the file.
    pub name: String,
    /// `SCX_OPS_*` in the place of the C's.
    pub flags: Option<u64>,
    /// Further ones on machines with several nodes.
    pub flags_on_nodes: u64,
    /// Variables that it always sets.
    pub sets: Vec<(String, i64)>,
    /// What it makes of the machine, in this order.
    pub machine: Vec<Step>,
    /// The structure of which the arena library keeps one for each task; none: `task_ctx`.
    pub arena_task: Option<String>,
    /// What it is compiled with: `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Tracing programs that an option of it leaves off.
    pub leaves_off: Vec<String>,
    /// Its options.
    pub options: Vec<ExtOption>,
}

/// An option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtOption {
    /// `scx.NAME=VALUE`.
    pub name: String,
    /// One line about it.
    pub help: String,
    /// The unit of its value.
    pub unit: Option<String>,
    /// It is `true` or `false`, which are 1 and 0.
    pub is_switch: bool,
    /// Written if nobody says anything; `None`: then nothing is.
    pub default: Option<i64>,
    /// The least and the greatest value.
    pub range: (i64, i64),
    /// Variables, and by how much the value is multiplied.
    pub writes: Vec<(String, i64)>,
    /// A flag of the scheduler, which a value other than 0 sets.
    pub flag: Option<u64>,
}

impl ExtOption {
    /// `slice_us=1000 (us): the slice`.
    pub fn line(&self) -> String {
        let default = match (self.default, self.is_switch) {
            (None, _) => "N".to_string(),
            (Some(value), true) => (value != 0).to_string(),
            (Some(value), false) => value.to_string(),
        };
        let unit = self.unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"));
        format!("scx.{}={default}{unit}: {}", self.name, self.help)
    }

    /// What a value writes; in words, if it is none.
    pub fn written(&self, value: i64) -> Result<Vec<(String, i64)>, String> {
        let (min, max) = self.range;
        if !(min..=max).contains(&value) {
            return Err(match self.is_switch {
                true => "it is true or false".to_string(),
                false => format!("it is between {min} and {max}"),
            });
        }
        let times = |(path, factor): &(String, i64)| {
            let product = value.checked_mul(*factor);
            Ok((path.clone(), product.ok_or("it is too large")?))
        };
        self.writes.iter().map(times).collect()
    }
}

impl ExtOptions {
    /// Reads a file.
    ///
    /// # Errors
    /// All faults of the file, each with its place.
    pub fn read(source: &Arc<Source>) -> Result<ExtOptions, Diagnostics> {
        let mut reader = Reader { source, faults: Diagnostics::new() };
        let options = reader.file();
        if reader.faults.is_empty() { Ok(options) } else { Err(reader.faults) }
    }

    /// An option by its name.
    pub fn option(&self, name: &str) -> Option<&ExtOption> {
        self.options.iter().find(|option| option.name == name)
    }

    /// What is written when nobody says anything: what the program always sets, and the defaults.
    pub fn unasked(&self) -> impl Iterator<Item = (String, i64)> + '_ {
        let defaults = self.options.iter().filter_map(|option| {
            // Seen by the reader to be one of its values.
            option.written(option.default?).ok()
        });
        self.sets.iter().cloned().chain(defaults.flatten())
    }
}

/// A reader that collects faults.
struct Reader<'s> {
    source: &'s Arc<Source>,
    faults: Diagnostics,
}

fn span(of: &impl Ranged) -> Range<usize> {
    of.start()..of.end()
}

impl Reader<'_> {
    fn fault(&mut self, at: Range<usize>, message: String, help: &str) {
        self.faults.push(self.source, at, message, Some(help.to_string()));
    }

    fn file(&mut self) -> ExtOptions {
        let mut all = ExtOptions::default();
        let source = self.source.clone();
        let parsed = parse_to_ast(&source.text, &CollectOptions::default(), &STRICT);
        let value = match parsed {
            Ok(parsed) => parsed.value,
            Err(error) => {
                let range = error.range();
                let message = error.kind().to_string();
                self.fault(range.start..range.end, message, "the file is JSON");
                return all;
            }
        };
        let Some(Value::Object(object)) = value else {
            self.fault(0..0, "a file of options is an object".into(), "{ \"options\": { ... } }");
            return all;
        };
        for (key, prop) in self.members(&object, &KEYS) {
            match key {
                "name" => all.name = self.text(&prop.value).unwrap_or_default(),
                "flags" => all.flags = self.flags(&prop.value),
                "flags_on_nodes" => {
                    all.flags_on_nodes = self.flags(&prop.value).unwrap_or_default();
                }
                "sets" => all.sets = self.numbers(&prop.value),
                "machine" => all.machine = self.steps(&prop.value),
                "arena_task" => all.arena_task = self.text(&prop.value),
                "defines" => all.defines = self.defines(&prop.value),
                "leaves_off" => all.leaves_off = self.texts(&prop.value),
                _ => all.options = self.options(&prop.value),
            }
        }
        all
    }

    /// The members of an object that may have these keys, each once.
    fn members<'o, 'a>(
        &mut self,
        object: &'o Object<'a>,
        known: &[&'static str],
    ) -> Vec<(&'static str, &'o ObjectProp<'a>)> {
        let mut found: Vec<(&'static str, &ObjectProp)> = Vec::new();
        for prop in &object.properties {
            let name = prop.name.as_str();
            match known.iter().find(|key| **key == name) {
                None => {
                    let help = did_you_mean_or(name, known.iter().copied(), || {
                        Some(format!("there are {}", known.join(", ")))
                    });
                    self.fault(
                        span(&prop.name),
                        format!("there is no key `{name}`"),
                        &help.unwrap_or_default(),
                    );
                }
                Some(key) if found.iter().any(|(before, _)| before == key) => {
                    self.fault(span(&prop.name), format!("`{name}` stands twice"), "leave one");
                }
                Some(key) => found.push((*key, prop)),
            }
        }
        found
    }

    fn wants<R>(&mut self, value: &Value, what: &str, found: Option<R>) -> Option<R> {
        if found.is_none() {
            self.fault(span(value), format!("this is not {what}"), &format!("give {what}"));
        }
        found
    }

    fn text(&mut self, value: &Value) -> Option<String> {
        let text = match value {
            Value::StringLit(text) => Some(text.value.to_string()),
            _ => None,
        };
        self.wants(value, "a string", text)
    }

    fn texts(&mut self, value: &Value) -> Vec<String> {
        let Value::Array(array) = value else {
            self.wants(value, "an array of strings", None::<()>);
            return Vec::new();
        };
        array.elements.iter().filter_map(|element| self.text(element)).collect()
    }

    fn flag(&mut self, name: &str, at: Range<usize>) -> Option<u64> {
        let known = FLAGS.iter().find(|(known, _)| *known == name);
        if known.is_none() {
            let names = FLAGS.map(|(name, _)| name);
            let help =
                did_you_mean_or(name, names, || Some(format!("there are {}", names.join(", "))));
            self.fault(at, format!("there is no flag SCX_OPS_{name}"), &help.unwrap_or_default());
        }
        known.map(|(_, bit)| *bit)
    }

    fn flags(&mut self, value: &Value) -> Option<u64> {
        let Value::Array(array) = value else {
            return self.wants(value, "an array of SCX_OPS_* without that prefix", None);
        };
        let mut all = 0;
        for element in &array.elements {
            if let Some(name) = self.text(element) {
                all |= self.flag(&name, span(element)).unwrap_or(0);
            }
        }
        Some(all)
    }

    /// A whole number, or `true` or `false`, which are 1 and 0.
    fn number(&mut self, value: &Value) -> Option<i64> {
        let number = match value {
            Value::NumberLit(number) => number.value.parse().ok(),
            Value::BooleanLit(switch) => Some(switch.value.into()),
            _ => None,
        };
        self.wants(value, "a whole number of 64 bits, true or false", number)
    }

    /// An object of numbers by names of variables.
    fn numbers(&mut self, value: &Value) -> Vec<(String, i64)> {
        let Value::Object(object) = value else {
            self.wants(value, "an object of numbers by variables", None::<()>);
            return Vec::new();
        };
        let named = object.properties.iter();
        named
            .filter_map(|prop| Some((prop.name.as_str().to_string(), self.number(&prop.value)?)))
            .collect()
    }

    fn defines(&mut self, value: &Value) -> Vec<String> {
        let defines = self.texts(value);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=';
        for define in defines.iter().filter(|define| !define.chars().all(is_plain)) {
            let message = format!("`{define}` is no definition");
            self.fault(span(value), message, "NAME or NAME=VALUE, of letters, digits and _");
        }
        defines
    }

    fn steps(&mut self, value: &Value) -> Vec<Step> {
        let Value::Array(array) = value else {
            self.wants(value, "an array of steps", None::<()>);
            return Vec::new();
        };
        array.elements.iter().filter_map(|element| self.step(element)).collect()
    }

    fn step(&mut self, value: &Value) -> Option<Step> {
        let Value::Object(object) = value else {
            return self.wants(value, "a step: an object with `set` or `run`", None);
        };
        let members = self.members(object, &STEP_KEYS);
        let of = |key: &str| members.iter().find(|(k, _)| *k == key).map(|(_, prop)| &prop.value);
        let part = match of("for") {
            Some(value) => self.part(value)?,
            None => Part::Machine,
        };
        let names = part.names();
        let condition = match of("if") {
            Some(value) => Some(self.expression(value, &names)?),
            None => None,
        };
        let action = match (of("set"), of("run"), of("refuse")) {
            (Some(set), None, None) => Action::Set(self.writes(set, &names)),
            (None, None, Some(why)) => Action::Refuse(self.text(why)?),
            (None, Some(run), None) => Action::Run(Run {
                program: self.text(run)?,
                with: match of("with") {
                    Some(with) => self.arguments(with, &names),
                    None => Vec::new(),
                },
                on: match of("on") {
                    Some(value) => Some(self.expression(value, &names)?),
                    None => None,
                },
                after_init: match of("after_init") {
                    Some(value) => self.number(value)? != 0,
                    None => false,
                },
            }),
            _ => return self.wants(value, "a step with one of `set`, `run` and `refuse`", None),
        };
        Some(Step { part, condition, action })
    }

    fn part(&mut self, value: &Value) -> Option<Part> {
        let name = self.text(value)?;
        let known = PARTS.iter().find(|(known, _)| *known == name);
        if known.is_none() {
            let names = PARTS.map(|(name, _)| name);
            let help =
                did_you_mean_or(&name, names, || Some(format!("there are {}", names.join(", "))));
            let message = format!("a machine has no `{name}`");
            self.fault(span(value), message, &help.unwrap_or_default());
        }
        known.map(|(_, part)| *part)
    }

    /// The text of an expression: a string, or a number alone.
    fn expression_text(&mut self, value: &Value) -> Option<String> {
        match value {
            Value::StringLit(_) => self.text(value),
            _ => self.number(value).map(|number| number.to_string()),
        }
    }

    /// What a text reads as, or a fault at it.
    fn read<R>(&mut self, at: Range<usize>, read: Result<R, (String, String)>) -> Option<R> {
        read.map_err(|(message, help)| self.fault(at, message, &help)).ok()
    }

    fn expression(&mut self, value: &Value, names: &[&str]) -> Option<Expression> {
        let text = self.expression_text(value)?;
        self.read(span(value), Expression::read(&text, names))
    }

    fn writes(&mut self, value: &Value, names: &[&str]) -> Vec<(Path, Written)> {
        let Value::Object(object) = value else {
            self.wants(value, "an object of values by variables", None::<()>);
            return Vec::new();
        };
        let mut all = Vec::new();
        for prop in &object.properties {
            let path = self.read(span(&prop.name), Path::read(prop.name.as_str(), names));
            let text = self.expression_text(&prop.value);
            let value =
                text.and_then(|text| self.read(span(&prop.value), Written::read(&text, names)));
            all.extend(path.zip(value));
        }
        all
    }

    fn arguments(&mut self, value: &Value, names: &[&str]) -> Vec<(String, Expression)> {
        let Value::Object(object) = value else {
            self.wants(value, "an object of values by members", None::<()>);
            return Vec::new();
        };
        let of = |(name, value): (String, Option<Expression>)| Some((name, value?));
        let properties = object.properties.iter();
        properties
            .map(|prop| (prop.name.as_str().to_string(), self.expression(&prop.value, names)))
            .filter_map(of)
            .collect()
    }

    fn options(&mut self, value: &Value) -> Vec<ExtOption> {
        let Value::Object(object) = value else {
            self.wants(value, "an object of options", None::<()>);
            return Vec::new();
        };
        let mut all: Vec<ExtOption> = Vec::new();
        for prop in &object.properties {
            let name = prop.name.as_str();
            if TAKEN.contains(&name) {
                let message = format!("`{name}` is a setting that every scheduler has");
                self.fault(span(&prop.name), message, "give the option another name");
            } else if all.iter().any(|option| option.name == name) {
                self.fault(span(&prop.name), format!("`{name}` stands twice"), "leave one");
            } else if let Some(option) = self.option(name, span(&prop.name), &prop.value) {
                all.push(option);
            }
        }
        all
    }

    fn option(&mut self, name: &str, at: Range<usize>, value: &Value) -> Option<ExtOption> {
        let Value::Object(object) = value else {
            return self.wants(value, "an object with help and writes", None);
        };
        let range = (0, i64::MAX);
        let mut option = ExtOption { name: name.to_string(), range, ..ExtOption::default() };
        let mut default_at = at.clone();
        for (key, prop) in self.members(object, &OPTION_KEYS) {
            match key {
                "help" => option.help = self.text(&prop.value).unwrap_or_default(),
                "unit" => option.unit = self.text(&prop.value),
                "default" => {
                    default_at = span(&prop.value);
                    option.is_switch = matches!(prop.value, Value::BooleanLit(_));
                    option.default = self.number(&prop.value);
                }
                "min" => option.range.0 = self.number(&prop.value).unwrap_or(option.range.0),
                "max" => option.range.1 = self.number(&prop.value).unwrap_or(option.range.1),
                "flag" => {
                    let name = self.text(&prop.value)?;
                    option.flag = self.flag(&name, span(&prop.value));
                }
                _ => option.writes = self.numbers(&prop.value),
            }
        }
        if option.is_switch {
            option.range = (0, 1);
        }
        if option.help.is_empty() {
            self.fault(at.clone(), format!("`{name}` has no help"), "say in a line what it does");
        }
        if option.writes.is_empty() && option.flag.is_none() {
            let help = "writes: { \"VARIABLE\": FACTOR }, or flag: \"ENQ_LAST\"";
            self.fault(at, format!("`{name}` does nothing"), help);
        }
        if let Some(Err(help)) = option.default.map(|default| option.written(default)) {
            self.fault(default_at, format!("the default of `{name}` is none of its values"), &help);
        }
        Some(option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ExtOptions, String> {
        let source = Source::new("x.options.json", text);
        ExtOptions::read(&source).map_err(|faults| faults.to_string())
    }

    #[test]
    fn values_are_written_times_a_number() {
        let text = r#"{ "flags": ["ENQ_LAST", "ENQ_EXITING"], "sets": { "always": 7 }, "options": {
            "slice_us": { "help": "the slice", "unit": "us", "default": 500, "max": 2000, "writes": { "slice_ns": 1000 } },
            "partial": { "help": "takes SCHED_EXT only", "default": false, "flag": "SWITCH_PARTIAL" },
            "limit": { "help": "no default", "writes": { "limit[3]": 1, "ctx.limit": -1 } } } }"#;
        let options = read(text).unwrap();
        assert_eq!(options.flags, Some(6));
        let unasked: Vec<(String, i64)> = options.unasked().collect();
        assert_eq!(unasked, [("always".to_string(), 7), ("slice_ns".to_string(), 500_000)]);
        let slice = options.option("slice_us").unwrap();
        assert_eq!(slice.line(), "scx.slice_us=500 us: the slice");
        assert_eq!(slice.written(1000), Ok(vec![("slice_ns".to_string(), 1_000_000)]));
        assert_eq!(slice.written(2001), Err("it is between 0 and 2000".to_string()));
        let partial = options.option("partial").unwrap();
        assert_eq!(
            (partial.written(2), partial.flag),
            (Err("it is true or false".into()), Some(8))
        );
        let limit = options.option("limit").unwrap().written(4).unwrap();
        assert_eq!(limit, [("limit[3]".to_string(), 4), ("ctx.limit".to_string(), -4)]);
        assert!(options.option("limit").unwrap().written(i64::MAX).is_ok());
    }

    /// All faults of a file at once, each with its place.
    #[test]
    fn faults_have_places() {
        let text = r#"{ "set": { "always": 7 }, "sets": { "a": "b" }, "flags": ["ENQ_LATS"],
  "options": {
    "slice_us": { "hepl": "", "default": 5, "max": 4, "writes": { "slice_ns": 1000 } },
    "idle": { "help": "nothing" },
    "load_ms": { "help": "of all", "writes": { "x": 1 } },
    "big": { "help": "too big", "default": 9223372036854775807, "writes": { "x": 2 } },
    "list": []
  } }"#;
        let faults = read(text).expect_err("all wrong");
        for line in [
            "1:3: there is no key `set`\n  help: did you mean `sets`?",
            "1:42: this is not a whole number of 64 bits, true or false",
            "1:59: there is no flag SCX_OPS_ENQ_LATS\n  help: did you mean `ENQ_LAST`?",
            "3:19: there is no key `hepl`\n  help: did you mean `help`?",
            "3:5: `slice_us` has no help",
            "3:42: the default of `slice_us` is none of its values\n  help: it is between 0 and 4",
            "4:5: `idle` does nothing",
            "5:5: `load_ms` is a setting that every scheduler has",
            "6:44: the default of `big` is none of its values\n  help: it is too large",
            "7:13: this is not an object with help and writes",
        ] {
            assert!(faults.contains(line), "{line}\n---\n{faults}");
        }
        for (text, word) in [("", "an object"), ("[]", "an object"), ("{ \"options\": {", "JSON")] {
            let fault = read(text).expect_err(word);
            assert!(fault.contains(word), "{text}: {fault}");
        }
    }
}
