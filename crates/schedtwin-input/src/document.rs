// SPDX-License-Identifier: GPL-2.0-or-later
//! TOML with the position of every key and value, into which settings can be put.
//!
//! The idea: a file is parsed into a tree of our own whose nodes say where they came from. A setting
//! of the command line replaces a node *before* anybody reads the tree, so the same reader checks
//! both, and the fault of a value that came from the command line points there. A key that the file
//! leaves out can be set only where its reader says that it knows the key ([`TomlDocument::set_known`]).
//!
//! A setting takes the type of what it replaces: `name=7` is text if `name` was text.
//!
//! Bounds: a TOML file has at most 1 MiB (the largest of ours has 20 KiB); tables nest at most 64 deep by dots and
//! 80 deep by brackets (toml's own limit), so walking the tree cannot exhaust the stack.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::key_path::{self, Step, StepKind};
use crate::suggest::help_for;
use crate::{Diagnostics, Location, Setting, Source, TableReader};

/// The most dots in one key. Nobody writes more than five; each is a table inside a table.
const MAX_DOTS: usize = 64;

/// The longest key.
const MAX_KEY_BYTES: usize = 128;

/// The largest TOML file.
const MAX_TOML_BYTES: usize = 1 << 20;

/// Up to this size all errors of syntax are looked for, beyond it only the first.
const MAX_RECOVERABLE_BYTES: usize = 64 << 10;

/// The most errors of syntax that are kept.
const MAX_SYNTAX_ERRORS: usize = 100;

/// A parsed file with the settings that were put into it.
#[derive(Clone, Debug, PartialEq)]
pub struct TomlDocument {
    root: Node,
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value's place; of a table, its header or its key.
    pub at: Location,
    /// The value.
    pub value: Value,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction. Nothing that decides may use it.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A date or time, as written. Nothing here has one; readers refuse it.
    Datetime(String),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
}

/// A TOML table, by name of the key.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table(pub BTreeMap<String, Entry>);

/// A key of a table with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Where the key was written.
    pub key_at: Location,
    /// The value.
    pub node: Node,
}

impl Value {
    /// Returns the kind of the value, in words: "a whole number".
    pub fn kind(&self) -> &'static str {
        match self {
            Value::String(_) => "text",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number with a fraction",
            Value::Boolean(_) => "true or false",
            Value::Datetime(_) => "a date or time",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

impl Node {
    /// Returns the value as text, for a message "... expected, this is `X`".
    pub(crate) fn shown(&self) -> String {
        match &self.value {
            Value::String(_) => "text".into(),
            Value::Integer(value) => format!("`{value}`"),
            Value::Float(value) => format!("`{value}`"),
            Value::Boolean(value) => format!("`{value}`"),
            other => other.kind().into(),
        }
    }
}

impl TomlDocument {
    /// Parses a file; all errors of syntax at once.
    pub fn parse(source: &Arc<Source>) -> Result<TomlDocument, Diagnostics> {
        let mut faults = Diagnostics::new();
        if let Some(span) = too_many_dots(&source.text) {
            faults.push(source, span, format!("a key has more than {MAX_DOTS} dots"), None);
            return Err(faults);
        }
        if source.text.len() > MAX_TOML_BYTES {
            let message = format!("a TOML file of more than {} MiB", MAX_TOML_BYTES >> 20);
            faults.push_whole(source, message, None);
            return Err(faults);
        }
        let table = match DeTable::parse(&source.text) {
            Ok(table) => table,
            Err(first) => {
                // Going on after an error costs a lot of memory for each further one.
                let mut errors = vec![first];
                if source.text.len() <= MAX_RECOVERABLE_BYTES {
                    errors = DeTable::parse_recoverable(&source.text).1;
                    errors.truncate(MAX_SYNTAX_ERRORS);
                }
                for error in errors {
                    let span = error.span().unwrap_or(0..0);
                    faults.push(source, span, error.message().to_string(), None);
                }
                faults.sort();
                return Err(faults);
            }
        };
        let root = convert_table(source, table.into_inner(), &mut faults);
        // The root has no header to point at: a fault about it points at the first line.
        let at = Location::new(source, 0..0);
        faults.sort();
        faults.into_result(TomlDocument { root: Node { at, value: Value::Table(root) } })
    }

    /// The table of the whole file.
    pub fn table(&self) -> &Table {
        match &self.root.value {
            Value::Table(table) => table,
            _ => unreachable!("parse makes the root a table and nothing replaces it"),
        }
    }

    /// The same, to put something in.
    pub fn table_mut(&mut self) -> &mut Table {
        match &mut self.root.value {
            Value::Table(table) => table,
            _ => unreachable!("parse makes the root a table and nothing replaces it"),
        }
    }

    /// The whole file as a node.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// A reader of the whole file.
    pub fn reader(&self) -> TableReader<'_> {
        TableReader::new(self.table(), &self.root.at, "")
    }

    /// The value at a path such as `schedutil.rate_limit_us`; `None` if there is none.
    pub fn get(&self, path: &str) -> Option<&Node> {
        let mut node = &self.root;
        // Most paths have keys only, and are asked for often.
        if !path.contains(['[', ' ']) {
            for key in path.split('.') {
                let Value::Table(table) = &node.value else { return None };
                node = &table.0.get(key)?.node;
            }
            return Some(node);
        }
        for step in key_path::parse(path).ok()? {
            node = match (&node.value, &step.kind) {
                (Value::Table(table), StepKind::Key(key)) => &table.0.get(key)?.node,
                (Value::Array(items), StepKind::Index(index)) => items.get(*index)?,
                _ => return None,
            };
        }
        Some(node)
    }

    /// Where the value at `path` was written: its file or the command line. The place of the
    /// nearest table above it if there is none, so that a fault always has a place.
    pub fn location(&self, path: &str) -> Location {
        let mut node = &self.root;
        for step in key_path::parse(path).unwrap_or_default() {
            let next = match (&node.value, &step.kind) {
                (Value::Table(table), StepKind::Key(key)) => table.0.get(key).map(|e| &e.node),
                (Value::Array(items), StepKind::Index(index)) => items.get(*index),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.at.clone()
    }

    /// The paths of all values that are not tables, in the order of their names.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        collect_paths(self.table(), "", &mut out);
        out
    }

    /// Puts a setting of the command line in the place of an existing value.
    pub fn set(&mut self, setting: &Setting) -> Result<(), Diagnostics> {
        self.set_known(setting, &|_| None)
    }

    /// As [`Self::set`], also where the file has no such value. `known` gives a value of its type for the path of a key or a
    /// table that the file may have, with `[]` for each index; `None`: there is no such thing.
    ///
    /// ```
    /// use schedtwin_input::{Setting, Source, TomlDocument, Value};
    /// let mut document = TomlDocument::parse(&Source::new("m.toml", "[costs]\na_ns = 1\n")).unwrap();
    /// let known = |path: &str| (path == "costs.b_ns").then_some(Value::Integer(0));
    /// document.set_known(&Setting::parse("costs.b_ns=2").unwrap(), &known).unwrap();
    /// assert_eq!(document.get("costs.b_ns").unwrap().value, Value::Integer(2));
    /// assert!(document.set_known(&Setting::parse("costs.c_ns=2").unwrap(), &known).is_err());
    /// ```
    pub fn set_known(
        &mut self,
        setting: &Setting,
        known: &dyn Fn(&str) -> Option<Value>,
    ) -> Result<(), Diagnostics> {
        let mut faults = Diagnostics::new();
        self.try_set(setting, known, &mut faults);
        faults.into_result(())
    }

    fn try_set(
        &mut self,
        setting: &Setting,
        known: &dyn Fn(&str) -> Option<Value>,
        faults: &mut Diagnostics,
    ) {
        let place = &setting.key.at;
        let within = |span: &Range<usize>| {
            Location::new(&place.source, place.span.start + span.start..place.span.start + span.end)
        };
        let steps = match key_path::parse(&setting.key.text) {
            Ok(steps) => steps,
            Err((span, message)) => return faults.push_at(&within(&span), message, None),
        };
        let pattern = |steps: &[Step]| {
            steps.iter().fold(String::new(), |path, step| match &step.kind {
                StepKind::Key(key) => join(&path, key),
                StepKind::Index(_) => path + "[]",
            })
        };
        let is_known = known(&pattern(&steps)).is_some_and(|like| !matches!(like, Value::Table(_)));
        let mut node = &mut self.root;
        let mut walked = String::new();
        for (at, step) in steps.iter().enumerate() {
            match (&mut node.value, &step.kind) {
                (Value::Table(table), StepKind::Key(key)) => {
                    let absent = is_known && !table.0.contains_key(key);
                    if let Some(value) = absent.then(|| known(&pattern(&steps[..=at]))).flatten() {
                        let key_at = within(&step.span);
                        let node = Node { at: key_at.clone(), value };
                        table.0.insert(key.clone(), Entry { key_at, node });
                    }
                    if !table.0.contains_key(key) {
                        let help = help_for(key, "there is", table.0.keys().map(String::as_str));
                        let what = if walked.is_empty() {
                            String::new()
                        } else {
                            format!(" in `{walked}`")
                        };
                        let message = format!("there is no setting `{key}`{what}");
                        return faults.push_at(&within(&step.span), message, help);
                    }
                    if !walked.is_empty() {
                        walked.push('.');
                    }
                    walked.push_str(key);
                    node = &mut table.0.get_mut(key).expect("it was found just above").node;
                }
                (Value::Array(items), StepKind::Index(index)) => {
                    let count = items.len();
                    let Some(item) = items.get_mut(*index) else {
                        let message = format!("`{walked}` has {count} elements, counted from 0");
                        return faults.push_at(&within(&step.span), message, None);
                    };
                    walked.push_str(&format!("[{index}]"));
                    node = item;
                }
                (other, kind) => {
                    let help = match (&*other, kind) {
                        (Value::Array(_), StepKind::Key(_)) => {
                            Some(format!("choose an element: `{walked}[0]`"))
                        }
                        _ => None,
                    };
                    let inside = if help.is_some() { "" } else { ", nothing is inside" };
                    let message = format!("`{walked}` is {}{inside}", other.kind());
                    return faults.push_at(&within(&step.span), message, help);
                }
            }
        }
        let at = &setting.value.at;
        match coerce(&setting.value.text, at, &node.value) {
            Ok(value) => *node = Node { at: at.clone(), value },
            Err((message, help)) => faults.push_at(at, format!("`{walked}` {message}"), help),
        }
    }

    /// Puts a value where the file has none, as if its first line said so; tables on the way are made.
    ///
    /// Panics if something else than a table is in the way.
    pub fn put_missing(&mut self, path: &str, value: Value) {
        let at = self.root.at.clone();
        let (tables, key) = path.rsplit_once('.').map_or((None, path), |(t, k)| (Some(t), k));
        let mut node = &mut self.root;
        for step in tables.into_iter().flat_map(|tables| tables.split('.')) {
            let empty = || Node { at: at.clone(), value: Value::Table(Table::default()) };
            let Value::Table(table) = &mut node.value else { panic!("`{path}`: no table") };
            let entry = table.0.entry(step.to_string());
            node = &mut entry.or_insert_with(|| Entry { key_at: at.clone(), node: empty() }).node;
        }
        let Value::Table(table) = &mut node.value else { panic!("`{path}`: no table") };
        let entry = Entry { key_at: at.clone(), node: Node { at, value } };
        table.0.entry(key.to_string()).or_insert(entry);
    }

    /// Takes a value of a table of the file away, and the table with its last value.
    pub fn remove(&mut self, path: &str) {
        let Value::Table(root) = &mut self.root.value else {
            unreachable!("parse makes the root a table and nothing replaces it")
        };
        let Some((table, key)) = path.split_once('.') else {
            root.0.remove(path);
            return;
        };
        if let Some(Entry { node: Node { value: Value::Table(inner), .. }, .. }) =
            root.0.get_mut(table)
        {
            inner.0.remove(key);
            if inner.0.is_empty() {
                root.0.remove(table);
            }
        }
    }

    /// Puts the values of another file in the place of existing ones of the same paths and types
    /// (a patch's changes to a kernel), and tells which paths were set. Lists are replaced whole.
    pub fn overlay(&mut self, changes: &Table) -> Result<Vec<String>, Diagnostics> {
        let mut faults = Diagnostics::new();
        let mut set = Vec::new();
        let Value::Table(root) = &mut self.root.value else {
            unreachable!("parse makes the root a table and nothing replaces it")
        };
        overlay_table(root, changes, "", &mut set, &mut faults);
        faults.sort();
        faults.into_result(set)
    }
}

fn overlay_table(
    into: &mut Table,
    changes: &Table,
    path: &str,
    set: &mut Vec<String>,
    faults: &mut Diagnostics,
) {
    for (key, change) in &changes.0 {
        let path = join(path, key);
        let Some(old) = into.0.get_mut(key) else {
            let help = help_for(key, "there is", into.0.keys().map(String::as_str));
            faults.push_at(&change.key_at, format!("there is no setting `{path}`"), help);
            continue;
        };
        match (&mut old.node.value, &change.node.value) {
            (Value::Table(old), Value::Table(new)) => overlay_table(old, new, &path, set, faults),
            (old_value, new_value)
                if std::mem::discriminant(old_value) == std::mem::discriminant(new_value) =>
            {
                old.node = change.node.clone();
                set.push(path);
            }
            (old_value, _) => {
                let message = format!("`{path}` must be {}", old_value.kind());
                faults.push_at(&change.node.at, message, None);
            }
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

fn collect_paths(table: &Table, path: &str, out: &mut Vec<String>) {
    for (key, entry) in &table.0 {
        let path = join(path, key);
        match &entry.node.value {
            Value::Table(table) => collect_paths(table, &path, out),
            _ => out.push(path),
        }
    }
}

/// `text` as a value of the type of `like`; the error is a message and a help.
fn coerce(text: &str, at: &Location, like: &Value) -> Result<Value, (String, Option<String>)> {
    let must = |what: &str| (format!("must be {what}, not `{text}`"), None);
    match like {
        Value::String(_) if text.starts_with(['"', '\'']) => match parse_value(text, at) {
            Some(value @ Value::String(_)) => Ok(value),
            _ => Err(must("text")),
        },
        Value::String(_) => Ok(Value::String(text.into())),
        Value::Integer(_) => match parse_value(text, at) {
            Some(value @ Value::Integer(_)) => Ok(value),
            _ => Err(must("a whole number")),
        },
        Value::Float(_) => match parse_value(text, at) {
            Some(Value::Integer(value)) => Ok(Value::Float(value as f64)),
            Some(Value::Float(value)) if value.is_finite() => Ok(Value::Float(value)),
            _ => Err(must("a number")),
        },
        Value::Boolean(_) => match text {
            "true" => Ok(Value::Boolean(true)),
            "false" => Ok(Value::Boolean(false)),
            _ => Err(must("`true` or `false`")),
        },
        Value::Datetime(_) => Err(("is a date or time and cannot be set".into(), None)),
        Value::Array(_) => match parse_value(text, at) {
            Some(value @ Value::Array(_)) => Ok(value),
            _ => Err((
                format!("must be a list, not `{text}`"),
                Some("write it in brackets: [1, 2]".into()),
            )),
        },
        Value::Table(table) => {
            let keys: Vec<String> = table.0.keys().take(8).map(|k| format!("`{k}`")).collect();
            Err(("is a table".into(), Some(format!("set one of its keys: {}", keys.join(", ")))))
        }
    }
}

/// A single TOML value out of the command line; everything in it is at `at`.
fn parse_value(text: &str, at: &Location) -> Option<Value> {
    if too_many_dots(text).is_some() {
        return None;
    }
    let value = DeValue::parse(text).ok()?;
    let inner = Source::new(at.source.name.clone(), text);
    let mut faults = Diagnostics::new();
    let mut node = convert(&inner, value.span(), value.into_inner(), &mut faults);
    relocate(&mut node, at);
    faults.is_empty().then_some(node.value)
}

fn relocate(node: &mut Node, at: &Location) {
    node.at = at.clone();
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|item| relocate(item, at)),
        Value::Table(table) => table.0.values_mut().for_each(|entry| {
            entry.key_at = at.clone();
            relocate(&mut entry.node, at);
        }),
        _ => {}
    }
}

fn convert(
    source: &Arc<Source>,
    span: Range<usize>,
    value: DeValue<'_>,
    faults: &mut Diagnostics,
) -> Node {
    let at = Location::new(source, span);
    let value = match value {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(digits) => {
            let text = digits.as_str().replace('_', "");
            match i64::from_str_radix(&text, digits.radix()) {
                Ok(number) => Value::Integer(number),
                Err(_) => {
                    faults.push_at(&at, "the number does not fit into 64 bits", None);
                    Value::Integer(0)
                }
            }
        }
        DeValue::Float(digits) => {
            let text = digits.as_str().replace('_', "");
            match text.parse::<f64>() {
                Ok(number) => Value::Float(number),
                Err(_) => {
                    faults.push_at(&at, "this is not a number", None);
                    Value::Float(0.0)
                }
            }
        }
        DeValue::Boolean(value) => Value::Boolean(value),
        DeValue::Datetime(value) => Value::Datetime(value.to_string()),
        DeValue::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| convert(source, item.span(), item.into_inner(), faults))
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(convert_table(source, table, faults)),
    };
    Node { at, value }
}

fn convert_table(source: &Arc<Source>, table: DeTable<'_>, faults: &mut Diagnostics) -> Table {
    let mut entries = BTreeMap::new();
    for (key, value) in table {
        let key_at = Location::new(source, key.span());
        // Keys name domains, cores and the like, which tables and labels repeat.
        if key.get_ref().len() > MAX_KEY_BYTES || key.get_ref().contains(char::is_control) {
            let message =
                format!("a key of more than {MAX_KEY_BYTES} bytes, or with a control character");
            faults.push_at(&key_at, message, None);
        }
        let node = convert(source, value.span(), value.into_inner(), faults);
        entries.insert(key.into_inner().into_owned(), Entry { key_at, node });
    }
    Table(entries)
}

/// The first key with too many dots. A table of a thousand levels parses, but taking it apart (or
/// only dropping it) would overflow the stack, so it is refused before it is parsed.
fn too_many_dots(text: &str) -> Option<Range<usize>> {
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let (mut dots, mut quote) = (0, None);
        let mut escaped = false;
        for (offset, c) in line.char_indices() {
            if let Some(q) = quote {
                if !escaped && c == q {
                    quote = None;
                }
                escaped = q == '"' && c == '\\' && !escaped;
                continue;
            }
            match c {
                '"' | '\'' => quote = Some(c),
                '#' => break,
                '.' => dots += 1,
                c if c.is_alphanumeric() || matches!(c, '_' | '-' | ' ' | '\t') => {}
                _ => dots = 0,
            }
            if dots > MAX_DOTS {
                return Some(line_start + offset..line_start + offset + 1);
            }
        }
        line_start += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    const FILE: &str = "\
name = \"demo\"
hz = 250
fast = true
share = 0.5
list = [1, 2]
[schedutil]
rate_limit_us = 750
[[opp]]
khz = 100
[[opp]]
khz = 200
";

    fn document() -> TomlDocument {
        TomlDocument::parse(&Source::new("demo.toml", FILE)).unwrap()
    }

    #[test]
    fn keys_are_words() {
        let told = |text: &str| match TomlDocument::parse(&Source::new("x", text)) {
            Ok(_) => "fine".to_string(),
            Err(faults) => faults.to_string(),
        };
        let bad = "a key of more than 128 bytes, or with a control character";
        assert_eq!(told(&format!("[{}]", "k".repeat(128))), "fine");
        assert_eq!(told(&format!("[{}]", "k".repeat(129))), format!("x:1:2: {bad}"));
        assert_eq!(told("a = { \"\\u001b[2J\" = 1 }"), format!("x:1:7: {bad}"));
        assert_eq!(told("\"a\\nb\".c = 1"), format!("x:1:1: {bad}"));
    }

    #[test]
    fn settings_replace_values_of_their_type() {
        let mut document = document();
        let spec = Spec::parse_machine(
            "demo:hz=1_000,name=7,fast=false,share=2,list=[3,4],schedutil.rate_limit_us=0x10,opp[1].khz=300",
        );
        for setting in &spec.unwrap().settings {
            document.set(setting).unwrap();
        }
        assert_eq!(document.get("hz").unwrap().value, Value::Integer(1000));
        assert_eq!(document.get("name").unwrap().value, Value::String("7".into()));
        assert_eq!(document.get("fast").unwrap().value, Value::Boolean(false));
        assert_eq!(document.get("share").unwrap().value, Value::Float(2.0));
        assert_eq!(document.get("list[1]").unwrap().value, Value::Integer(4));
        assert_eq!(document.get("schedutil.rate_limit_us").unwrap().value, Value::Integer(16));
        assert_eq!(document.get("opp[1].khz").unwrap().value, Value::Integer(300));
        assert_eq!(document.location("opp[1].khz").source.name, "<command line>");
        assert_eq!(
            document
                .location("opp[0].khz")
                .source
                .line_column(document.location("opp[0].khz").span.start),
            (9, 7)
        );
        assert_eq!(document.get("opp[2].khz"), None);
    }

    #[test]
    fn settings_that_cannot_be_put_say_why() {
        for (setting, expected) in [
            ("hx=1", "1:1: there is no setting `hx`\n  help: did you mean `hz`?"),
            (
                "schedutil.rate_limit_ns=1",
                "1:11: there is no setting `rate_limit_ns` in `schedutil`\n  help: did you mean `rate_limit_us`?",
            ),
            (
                "q=1",
                "1:1: there is no setting `q`\n  help: there is: `fast`, `hz`, `list`, `name`, `opp`, `schedutil`, `share`",
            ),
            ("hz=fast", "1:4: `hz` must be a whole number, not `fast`"),
            ("hz=1.5", "1:4: `hz` must be a whole number, not `1.5`"),
            (
                "hz=99999999999999999999",
                "1:4: `hz` must be a whole number, not `99999999999999999999`",
            ),
            ("fast=yes", "1:6: `fast` must be `true` or `false`, not `yes`"),
            ("share=nan", "1:7: `share` must be a number, not `nan`"),
            ("list=3", "1:6: `list` must be a list, not `3`\n  help: write it in brackets: [1, 2]"),
            (
                "schedutil=3",
                "1:11: `schedutil` is a table\n  help: set one of its keys: `rate_limit_us`",
            ),
            ("opp.khz=3", "1:5: `opp` is a list\n  help: choose an element: `opp[0]`"),
            ("opp[2].khz=3", "1:4: `opp` has 2 elements, counted from 0"),
            ("hz.x=3", "1:4: `hz` is a whole number, nothing is inside"),
            ("a..b=3", "1:3: a key is missing here"),
        ] {
            let faults = document().set(&Setting::parse(setting).unwrap()).unwrap_err();
            assert_eq!(faults.to_string(), format!("<command line>:{expected}"), "{setting}");
        }
    }

    #[test]
    fn a_patch_overlays_and_tells_what_it_set() {
        let mut base = document();
        let patch = Source::new("p.toml", "hz = 100\n[schedutil]\nrate_limit_us = 500\n");
        let patch = TomlDocument::parse(&patch).unwrap();
        assert_eq!(base.overlay(patch.table()).unwrap(), ["hz", "schedutil.rate_limit_us"]);
        assert_eq!(base.location("hz").source.name, "p.toml");
        let bad = Source::new("p.toml", "hz = \"x\"\n[schedutil]\nrate_limit = 500\n");
        let bad = TomlDocument::parse(&bad).unwrap();
        assert_eq!(
            base.overlay(bad.table()).unwrap_err().to_string(),
            "p.toml:1:6: `hz` must be a whole number\n\
             p.toml:3:1: there is no setting `schedutil.rate_limit`\n  help: did you mean `rate_limit_us`?"
        );
    }

    #[test]
    fn all_errors_of_syntax_are_reported_at_once() {
        let source = Source::new(
            "x.toml",
            "a = \nb = 1\nb = 2\nc = 1_000_000_000_000_000_000_000\nd = [1\n",
        );
        let faults = TomlDocument::parse(&source).unwrap_err();
        let lines: Vec<usize> =
            faults.0.iter().map(|f| f.source.line_column(f.span.start).0).collect();
        assert!(lines.contains(&1) && lines.contains(&3) && lines.len() >= 3, "{faults}");
    }

    #[test]
    fn depth_is_bounded() {
        let keys = "a.".repeat(100_000) + "a = 1";
        for text in [keys.clone(), format!("[{}]", &keys[..keys.len() - 4]), "[".repeat(100_000)] {
            assert!(TomlDocument::parse(&Source::new("x", text)).is_err());
        }
        let inline =
            "x = ".to_string() + &("{".to_string() + &"b.".repeat(60) + "b = ").repeat(200);
        assert!(TomlDocument::parse(&Source::new("x", inline)).is_err());
        assert!(
            document()
                .set(&Setting::parse(&format!("list={}", "[".repeat(100_000))).unwrap())
                .is_err()
        );
        let floats = format!("x = [{}]", vec!["1.5"; 500].join(", "));
        assert!(TomlDocument::parse(&Source::new("x", floats)).is_ok());
    }
}
