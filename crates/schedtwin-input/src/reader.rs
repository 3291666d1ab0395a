// SPDX-License-Identifier: GPL-2.0-or-later
//! Takes a TOML table apart by hand, all faults at once.
//!
//! serde stops at the first fault; a user who writes a machine by hand wants all of them. A
//! [`TableReader`] is asked key by key; what is missing or of the wrong type is noted, and
//! [`TableReader::finish`] notes the keys that nobody asked for, each with the nearest known one.
//!
//! ```
//! use schedtwin_input::{Diagnostics, Source, TomlDocument};
//! let source = Source::new("demo.toml", "nam = \"x\"\ncapacity = -3\n");
//! let document = TomlDocument::parse(&source).unwrap();
//! let mut faults = Diagnostics::new();
//! let mut reader = document.reader();
//! let name: Option<String> = reader.required("name", &mut faults);
//! let capacity: Option<u32> = reader.required("capacity", &mut faults);
//! reader.finish(&mut faults);
//! assert_eq!((name, capacity), (None, None));
//! assert_eq!(faults.0.len(), 2); // `nam` is not known, and -3 is no capacity
//! ```

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::suggest::{did_you_mean, help_for};
use crate::{Diagnostics, Entry, Location, Node, Table, Value};

/// The most tables that one list or group of tables may have: sixteen for each CPU of the largest
/// machine. Checks may compare each with each.
const MAX_TABLES: usize = 4096;

/// After so many faults in one list or table the rest of it is not looked at.
const MAX_FAULTS: usize = 100;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub at: Location,
}

/// A type that can be read from a TOML value.
pub trait FromNode: Sized {
    /// Reads it; what is wrong is noted, at the innermost place.
    fn from_node(node: &Node, faults: &mut Diagnostics) -> Option<Self>;
}

/// Takes one table apart.
pub struct TableReader<'d> {
    table: &'d Table,
    at: &'d Location,
    path: String,
    asked: Vec<String>,
    missing: Vec<String>,
    /// Where the keys that are asked for are noted, each with its table; for tests of declarations.
    log: Option<&'d RefCell<BTreeSet<(String, String)>>>,
    /// Keys with what to do where they are missing; said once.
    hint: (Vec<String>, Option<String>),
}

impl<'d> TableReader<'d> {
    /// A reader of `table`, which stands at `at` and is called `path` in messages.
    pub fn new(table: &'d Table, at: &'d Location, path: &str) -> TableReader<'d> {
        TableReader {
            table,
            at,
            path: path.into(),
            asked: Vec::new(),
            missing: Vec::new(),
            log: None,
            hint: Default::default(),
        }
    }

    /// Notes in `log` which keys it, and the readers that it gives, are asked for.
    pub fn logged(mut self, log: &'d RefCell<BTreeSet<(String, String)>>) -> TableReader<'d> {
        self.log = Some(log);
        self
    }

    /// Sets the help for a case where these keys are missing, said of the first.
    pub fn hint(&mut self, keys: &[&str], help: String) {
        self.hint = (keys.iter().map(|key| (*key).to_string()).collect(), Some(help));
    }

    /// Where the table stands.
    pub fn location(&self) -> &'d Location {
        self.at
    }

    /// The dotted name of the table.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the table has a key.
    pub fn has(&self, key: &str) -> bool {
        self.table.0.contains_key(key)
    }

    /// Where the value of `key` stands, or the table if it has none.
    pub fn location_of(&self, key: &str) -> Location {
        self.table.0.get(key).map_or(self.at, |entry| &entry.node.at).clone()
    }

    /// The value of a key that must be there.
    pub fn required<T: FromNode>(&mut self, key: &str, faults: &mut Diagnostics) -> Option<T> {
        match self.entry(key) {
            Some(entry) => T::from_node(&entry.node, faults),
            None => {
                self.missing.push(key.into());
                None
            }
        }
    }

    /// The value of a key that may be left out.
    pub fn optional<T: FromNode>(&mut self, key: &str, faults: &mut Diagnostics) -> Option<T> {
        self.entry(key).and_then(|entry| T::from_node(&entry.node, faults))
    }

    /// The table under `key`, which must be there.
    pub fn required_table(
        &mut self,
        key: &str,
        faults: &mut Diagnostics,
    ) -> Option<TableReader<'d>> {
        if !self.table.0.contains_key(key) {
            self.asked.push(key.into());
            self.missing.push(key.into());
            return None;
        }
        self.optional_table(key, faults)
    }

    /// The table under `key`, which may be left out.
    pub fn optional_table(
        &mut self,
        key: &str,
        faults: &mut Diagnostics,
    ) -> Option<TableReader<'d>> {
        let entry = self.entry(key)?;
        table_of(&entry.node, &self.join(key), self.log, faults)
    }

    /// The tables of a list of tables; none if the key is left out.
    pub fn tables(&mut self, key: &str, faults: &mut Diagnostics) -> Vec<TableReader<'d>> {
        let path = self.join(key);
        match self.entry(key).map(|entry| &entry.node) {
            None => Vec::new(),
            Some(Node { value: Value::Array(items), at }) => items
                [..few(items.len(), &path, at, faults)]
                .iter()
                .enumerate()
                .filter_map(|(index, item)| {
                    table_of(item, &format!("{path}[{index}]"), self.log, faults)
                })
                .collect(),
            Some(node) => {
                faults.push_at(&node.at, format!("`{path}` must be a list of tables"), None);
                Vec::new()
            }
        }
    }

    /// The tables under `key`, by name: `[core.a]`, `[core.b]`; none if the key is left out.
    pub fn named_tables(
        &mut self,
        key: &str,
        faults: &mut Diagnostics,
    ) -> Vec<(Located<String>, TableReader<'d>)> {
        let path = self.join(key);
        let Some(entry) = self.entry(key) else {
            return Vec::new();
        };
        let Value::Table(table) = &entry.node.value else {
            faults.push_at(&entry.node.at, format!("`{path}` must be a table of tables"), None);
            return Vec::new();
        };
        let mut out = Vec::new();
        let count = few(table.0.len(), &path, &entry.node.at, faults);
        for (name, entry) in table.0.iter().take(count) {
            if let Some(reader) = table_of(&entry.node, &format!("{path}.{name}"), self.log, faults)
            {
                out.push((Located { value: name.clone(), at: entry.key_at.clone() }, reader));
            }
        }
        // In the order of the file: names sort differently, and messages should come as written.
        out.sort_by_key(|(name, _)| name.at.span.start);
        out
    }

    /// Notes the keys that are missing and those that nobody asked for.
    pub fn finish(mut self, faults: &mut Diagnostics) {
        let unknown: Vec<(&String, &Entry)> =
            self.table.0.iter().filter(|(key, _)| !self.asked.contains(key)).collect();
        let place =
            if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
        let mut slips = Vec::new();
        for (key, entry) in unknown.into_iter().take(MAX_FAULTS) {
            // A slip for a missing key is one fault, not two.
            let slip = did_you_mean(key, self.missing.iter().map(String::as_str));
            let help = match slip {
                Some(slip) => {
                    slips.push(slip.to_string());
                    Some(format!("did you mean `{slip}`?"))
                }
                None => {
                    let free = self.asked.iter().filter(|k| !self.table.0.contains_key(*k));
                    help_for(key, "also known", free.map(String::as_str))
                }
            };
            faults.push_at(&entry.key_at, format!("there is no key `{key}`{place}"), help);
        }
        for key in &self.missing {
            if !slips.contains(key) {
                let hinted = self.hint.0.contains(key);
                let help = if hinted { self.hint.1.take() } else { None };
                faults.push_at(self.at, format!("`{key}` is missing{place}"), help);
            }
        }
    }

    fn entry(&mut self, key: &str) -> Option<&'d Entry> {
        self.asked.push(key.into());
        if let Some(log) = self.log {
            log.borrow_mut().insert((self.path.clone(), key.into()));
        }
        self.table.0.get(key)
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }
}

/// How many of `count` tables are looked at; more than the limit are a fault.
fn few(count: usize, path: &str, at: &Location, faults: &mut Diagnostics) -> usize {
    if count > MAX_TABLES {
        let message = format!("`{path}` has {count} tables, at most {MAX_TABLES} are taken");
        faults.push_at(at, message, None);
    }
    count.min(MAX_TABLES)
}

fn table_of<'d>(
    node: &'d Node,
    path: &str,
    log: Option<&'d RefCell<BTreeSet<(String, String)>>>,
    faults: &mut Diagnostics,
) -> Option<TableReader<'d>> {
    match &node.value {
        Value::Table(table) => Some(TableReader { log, ..TableReader::new(table, &node.at, path) }),
        _ => {
            faults.push_at(
                &node.at,
                format!("`{path}` must be a table, this is {}", node.shown()),
                None,
            );
            None
        }
    }
}

impl FromNode for Node {
    fn from_node(node: &Node, _faults: &mut Diagnostics) -> Option<Node> {
        Some(node.clone())
    }
}

impl FromNode for String {
    fn from_node(node: &Node, faults: &mut Diagnostics) -> Option<String> {
        match &node.value {
            Value::String(text) => Some(text.clone()),
            _ => {
                let help =
                    matches!(node.value, Value::Integer(_)).then(|| "put it in quotes".to_string());
                faults.push_at(&node.at, format!("text expected, this is {}", node.shown()), help);
                None
            }
        }
    }
}

impl FromNode for bool {
    fn from_node(node: &Node, faults: &mut Diagnostics) -> Option<bool> {
        match node.value {
            Value::Boolean(value) => Some(value),
            _ => {
                faults.push_at(
                    &node.at,
                    format!("`true` or `false` expected, this is {}", node.shown()),
                    None,
                );
                None
            }
        }
    }
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl FromNode for $type {
            fn from_node(node: &Node, faults: &mut Diagnostics) -> Option<$type> {
                let Value::Integer(value) = node.value else {
                    faults.push_at(&node.at, format!("a whole number expected, this is {}", node.shown()), None);
                    return None;
                };
                let converted = <$type>::try_from(value).ok();
                if converted.is_none() {
                    let message = match (value < 0, <$type>::MIN == 0) {
                        (true, true) => format!("`{value}` must not be negative"),
                        (true, false) => format!("`{value}` is less than {}", <$type>::MIN),
                        (false, _) => format!("`{value}` is more than {}", <$type>::MAX),
                    };
                    faults.push_at(&node.at, message, None);
                }
                converted
            }
        }
    )*};
}
whole_numbers!(i8, i16, i32, i64, u8, u16, u32, u64);

impl<T: FromNode> FromNode for Vec<T> {
    fn from_node(node: &Node, faults: &mut Diagnostics) -> Option<Vec<T>> {
        let Value::Array(items) = &node.value else {
            faults.push_at(&node.at, format!("a list expected, this is {}", node.shown()), None);
            return None;
        };
        let had = faults.0.len();
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            out.extend(T::from_node(item, faults));
            if faults.0.len() - had >= MAX_FAULTS {
                return None;
            }
        }
        (out.len() == items.len()).then_some(out)
    }
}

impl<T: FromNode> FromNode for Located<T> {
    fn from_node(node: &Node, faults: &mut Diagnostics) -> Option<Located<T>> {
        let value = T::from_node(node, faults)?;
        Some(Located { value, at: node.at.clone() })
    }
}
