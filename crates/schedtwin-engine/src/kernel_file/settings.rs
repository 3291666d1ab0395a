// SPDX-License-Identifier: GPL-2.0-or-later
//! From a kernel file's settings to a [`Config`], by their declarations.
//!
//! | step | what happens |
//! |---|---|
//! | [`modernise`] | a setting that was cut into others since becomes those |
//! | [`complete`] | a setting that the file does not name gets the value that its declaration says |
//! | patches, settings in place | replace values |
//! | [`take_over`] | an arm that was chosen in place brings the settings that only it has from a kernel that has it |
//! | [`leave`] | where they chose another arm, what belonged to the old one goes |
//! | [`read`] | every value is checked, all faults at once |

use super::extends;
use schedtwin_input::{
    Diagnostics, FromNode, Location, Node, Source, TableReader, TomlDocument, Value as Toml,
    did_you_mean,
};
use schedtwin_kernel::config::{Arm, Config, Kind, Setting, Value, With, retired};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Puts what a setting of an older file means in its place.
pub(super) fn modernise(document: &mut TomlDocument, faults: &mut Diagnostics) {
    for old in retired() {
        let Some(Node { at, value }) = document.get(old.path).cloned() else { continue };
        let found = old.words.iter().find(|(word, _)| value == Toml::String(word.to_string()));
        match found {
            Some((_, points)) => {
                for (path, word) in points {
                    document.put_missing(path, Toml::String(word.to_string()));
                }
            }
            None => {
                let words: Vec<&str> = old.words.iter().map(|(word, _)| *word).collect();
                let help = format!("it was {}", words.join(" or "));
                faults.push_at(&at, format!("`{}` cannot be this", old.path), Some(help));
            }
        }
        document.remove(old.path);
    }
}

/// Gives every setting that the file does not name the value that its declaration says.
pub(super) fn complete(document: &mut TomlDocument) {
    for setting in Config::settings() {
        let Some(default_if_absent) = &setting.default_if_absent else { continue };
        let (table, _) = setting.table_and_key();
        let blocked = !table.is_empty()
            && document.get(table).is_some_and(|node| !matches!(node.value, Toml::Table(_)));
        if !blocked && exists(setting, document) == Some(true) {
            document.put_missing(setting.path, toml(default_if_absent));
        }
    }
}

/// Gives the settings that exist only with the arm that was chosen in place, and that neither the file nor a declaration gives,
/// the values of a built-in kernel with that arm: `linux-6.3:fair=eevdf` has the slice and the features of the first EEVDF
/// kernel, `linux-6.12:fair=cfs` the tunables of the last CFS kernel.
pub(super) fn take_over(path: &str, document: &mut TomlDocument, files: &[Arc<Source>]) {
    let Some(point) = Config::setting(path) else { return };
    if !is_chosen_later(document, path, files) {
        return;
    }
    let lacking: Vec<&'static str> = lacking(point, document).collect();
    if lacking.is_empty() {
        return;
    }
    let Some(Toml::String(word)) = document.get(path).map(|node| node.value.clone()) else {
        return;
    };
    let newest = arms(point).last().is_some_and(|arm| arm.word == word);
    let has = |source: &&Arc<Source>| {
        let resolved = extends::resolve(source, &mut Diagnostics::new())?.document;
        (resolved.get(path)?.value == Toml::String(word.clone())).then_some(resolved)
    };
    let mut kernels = super::BUILTIN_SOURCES.iter();
    let from =
        if newest { kernels.find_map(|k| has(&k)) } else { kernels.rev().find_map(|k| has(&k)) };
    for path in lacking {
        if let Some(node) = from.as_ref().and_then(|from| from.get(path)) {
            document.put_missing(path, node.value.clone());
        }
    }
}

/// The settings that exist with the chosen arm of a point, and have no value.
fn lacking<'a>(
    point: &'a Setting,
    document: &'a TomlDocument,
) -> impl Iterator<Item = &'static str> + 'a {
    let lacks = |setting: &&Setting| {
        let Some(only) = &setting.only else { return false };
        only.path == point.path
            && is_with(only, document) == Some(true)
            && document.get(setting.path).is_none()
    };
    Config::settings().iter().filter(lacks).map(|setting| setting.path)
}

/// Removes the values of `files` that do not exist with an arm that was chosen behind them, by a file that extends
/// them, a patch or a setting in place: `linux-6.12:rt_bandwidth=throttling` has no fair server.
pub(super) fn leave(document: &mut TomlDocument, files: &[Arc<Source>]) {
    for setting in Config::settings() {
        let Some(only) = &setting.only else { continue };
        if exists(setting, document) == Some(false)
            && is_decided_later(document, only, files)
            && !is_chosen_later(document, setting.path, files)
        {
            document.remove(setting.path);
        }
    }
}

/// Whether a point's arm, or the arm of the point that it depends on itself, was chosen behind `files`.
fn is_decided_later(document: &TomlDocument, with: &With, files: &[Arc<Source>]) -> bool {
    let point = Config::setting(with.path).expect("a declared point");
    let above =
        || point.only.as_ref().is_some_and(|above| is_decided_later(document, above, files));
    is_chosen_later(document, with.path, files) || above()
}

/// Whether a value came from elsewhere than `files`: with a patch, in place, or from a file that extends them.
fn is_chosen_later(document: &TomlDocument, path: &str, files: &[Arc<Source>]) -> bool {
    document.get(path).is_some_and(|node| !extends::is_of(&node.at, files))
}

/// Whether a setting exists in this kernel; `None`: the point on which that depends cannot be read.
fn exists(setting: &Setting, document: &TomlDocument) -> Option<bool> {
    match &setting.only {
        None => Some(true),
        Some(only) => is_with(only, document),
    }
}

/// Whether the kernel has one of the arms; `None`: that point cannot be read. A point that does not exist itself has none.
fn is_with(with: &With, document: &TomlDocument) -> Option<bool> {
    let point = Config::setting(with.path).expect("a declared point");
    if exists(point, document) == Some(false) {
        return Some(false);
    }
    let Toml::String(word) = &document.get(with.path)?.value else { return None };
    arms(point).iter().find(|arm| arm.word == word)?;
    Some(with.words.contains(&word.as_str()))
}

fn arms(setting: &Setting) -> &[Arm] {
    match &setting.kind {
        Kind::Choice { arms, .. } => arms,
        _ => &[],
    }
}

/// Description and configuration. `files`: the file, and those that it extends.
pub(super) fn read(
    document: &TomlDocument,
    files: &[Arc<Source>],
    faults: &mut Diagnostics,
) -> Option<(String, Config)> {
    let mut top = document.reader();
    let _name: Option<String> = top.required("name", faults);
    let description: Option<String> = top.required("description", faults);
    // What `capture` reads: whether the file is nearer to devices of its release than the next one.
    let _captured: Option<bool> = top.optional("captured", faults);
    let _extends: Option<String> = top.optional(extends::KEY, faults);
    let mut reader = Reader { document, values: Vec::new(), excused: Vec::new(), faults };
    // Only the first of the files chooses its arms for the first time.
    reader.refuse_bare_arms(&files[files.len().saturating_sub(1)..]);
    let mut tables: Vec<&str> = Vec::new();
    for setting in Config::settings() {
        match setting.table_and_key() {
            ("", key) => reader.setting(setting, key, &mut top),
            (table, _) if tables.contains(&table) => {}
            (table, _) => tables.push(table),
        }
    }
    for name in tables {
        reader.table(name, &mut top);
    }
    reader.check_arms();
    reader.check_at_most();
    let Reader { values, faults, .. } = reader;
    top.finish(faults);
    let values: BTreeMap<&str, &Value> =
        values.iter().map(|(path, value)| (*path, value)).collect();
    let value = |path: &str| values.get(path).copied();
    let all = Config::settings();
    let complete = all
        .iter()
        .all(|setting| exists(setting, document) != Some(true) || value(setting.path).is_some());
    let decided = all.iter().all(|setting| exists(setting, document).is_some());
    if !complete || !decided {
        return None;
    }
    let config = Config::new(|path| value(path).expect("it was read").clone());
    Some((description?, config))
}

/// Reads a file's settings.
struct Reader<'d, 'f> {
    document: &'d TomlDocument,
    /// The values that were read, in the order of the declarations.
    values: Vec<(&'static str, Value)>,
    /// Settings whose absence one fault explains already.
    excused: Vec<&'static str>,
    faults: &'f mut Diagnostics,
}

impl Reader<'_, '_> {
    /// Refuses an arm that was chosen behind the first file, if none of the settings that come with it are there.
    fn refuse_bare_arms(&mut self, first: &[Arc<Source>]) {
        for point in Config::settings() {
            if !is_chosen_later(self.document, point.path, first) {
                continue;
            }
            let lacking: Vec<&'static str> = lacking(point, self.document).collect();
            if lacking.is_empty() {
                continue;
            }
            let Some(Node { value: Toml::String(word), at }) = self.document.get(point.path) else {
                continue;
            };
            let mut places: Vec<String> = Vec::new();
            for path in &lacking {
                let place = match path.split_once('.') {
                    Some((table, _)) => format!("`[{table}]`"),
                    None => format!("`{path}`"),
                };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            let message = format!("`{word}` needs settings of its own: {}", places.join(", "));
            let help = kernel_with(point.path, word).map(|kernel| {
                format!(
                    "start from `{kernel}` and set what differs, in place or in a file that extends it"
                )
            });
            self.faults.push_at(at, message, help);
            self.excused.extend(lacking);
        }
    }

    /// The settings of a table.
    fn table(&mut self, name: &str, top: &mut TableReader<'_>) {
        let all = || Config::settings().iter().filter(|s| s.table_and_key().0 == name);
        let known: Vec<Option<bool>> = all().map(|s| exists(s, self.document)).collect();
        if known.iter().all(|exists| *exists == Some(false)) {
            if let Some(table) = top.optional_table(name, self.faults) {
                let only = all().find_map(|setting| setting.only.as_ref()).expect("it depends");
                self.refuse(format!("`[{name}]`"), only, table.location());
            }
            return;
        }
        let needed = all()
            .any(|s| exists(s, self.document) == Some(true) && !self.excused.contains(&s.path));
        let table = match needed {
            true => top.required_table(name, self.faults),
            false => top.optional_table(name, self.faults),
        };
        if let Some(mut table) = table {
            for setting in all() {
                self.setting(setting, setting.table_and_key().1, &mut table);
            }
            table.finish(self.faults);
        }
    }

    fn setting(&mut self, setting: &'static Setting, key: &str, table: &mut TableReader<'_>) {
        let known = exists(setting, self.document);
        if known == Some(true) && !self.excused.contains(&setting.path) {
            if let Some(node) = table.required::<Node>(key, self.faults) {
                let value = check(setting, &node, self.faults);
                self.values.extend(value.map(|value| (setting.path, value)));
            }
            return;
        }
        let node: Option<Node> = table.optional(key, self.faults);
        if let (Some(false), Some(node), Some(only)) = (known, node, &setting.only) {
            self.refuse(format!("`{}`", setting.path), only, &node.at);
        }
    }

    /// A table or a setting that belongs to another arm.
    fn refuse(&mut self, what: String, only: &With, at: &Location) {
        let has = self.text(only.path);
        let message = format!("{what} is not for this kernel: `{}` is `{has}`", only.path);
        let help = format!("it is for {}", only.words.join(", "));
        self.faults.push_at(at, message, Some(help));
    }

    /// Arms that do not go with the arm of another point.
    fn check_arms(&mut self) {
        for (path, value) in self.values.clone() {
            let setting = Config::setting(path).expect("it was read");
            let of = |word: &Value| {
                arms(setting).iter().find(|arm| Value::from(arm.word) == *word)?.only.as_ref()
            };
            let Some(only) = of(&value) else { continue };
            if is_with(only, self.document) != Some(false) {
                continue;
            }
            let has = self.text(only.path);
            let takes = arms(setting).iter().filter(|arm| {
                arm.only.as_ref().is_none_or(|only| only.words.contains(&has.as_str()))
            });
            let takes: Vec<&str> = takes.map(|arm| arm.word).collect();
            let message = format!("`{path}` cannot be `{value}` where `{}` is `{has}`", only.path);
            let needs = only.words.iter().map(|word| format!("`{word}`"));
            let needs: Vec<String> = needs.collect();
            let help = format!(
                "`{has}` takes {}; `{value}` is for `{}` {}",
                takes.join(", "),
                only.path,
                needs.join(" and ")
            );
            self.faults.push_at(&self.document.location(path), message, Some(help));
        }
    }

    /// Numbers that exceed another one.
    fn check_at_most(&mut self) {
        let number = |path: &str| {
            let (_, value) = self.values.iter().find(|(read, _)| *read == path)?;
            Config::setting(path).expect("declared").number(value)
        };
        let mut wrong = Vec::new();
        for setting in Config::settings() {
            let Some(bound) = setting.at_most else { continue };
            let (Some(number), Some(most)) = (number(setting.path), number(bound)) else {
                continue;
            };
            if number > most {
                let path = setting.path;
                wrong.push((path, format!("`{path}` is {number}, more than `{bound}`, {most}")));
            }
        }
        for (path, message) in wrong {
            self.faults.push_at(&self.document.location(path), message, None);
        }
    }

    fn text(&self, path: &str) -> String {
        match self.document.get(path).map(|node| &node.value) {
            Some(Toml::String(text)) => text.clone(),
            _ => String::new(),
        }
    }
}

/// The newest built-in kernel with an arm.
fn kernel_with(path: &str, word: &str) -> Option<&'static str> {
    let has = |source: &Arc<Source>| {
        let resolved = extends::resolve(source, &mut Diagnostics::new())?;
        Some(resolved.document.get(path)?.value == Toml::String(word.to_string()))
    };
    let at = super::BUILTIN_SOURCES.iter().rposition(|source| has(source) == Some(true))?;
    Some(super::BUILTIN[at].0)
}

/// A value as its declaration wants it.
pub(super) fn check(setting: &Setting, node: &Node, faults: &mut Diagnostics) -> Option<Value> {
    let path = setting.path;
    match &setting.kind {
        Kind::Switch => Some(bool::from_node(node, faults)?.into()),
        Kind::Choice { arms, .. } => {
            let word = String::from_node(node, faults)?;
            if arms.iter().any(|arm| arm.word == word) {
                return Some(Value::Text(word));
            }
            let all: Vec<&str> = arms.iter().map(|arm| arm.word).collect();
            let help = match did_you_mean(&word, all.iter().copied()) {
                _ if word.contains('+') => {
                    format!("patches stand before settings: KERNEL+PATCH:{path}=...")
                }
                Some(near) => format!("did you mean `{near}`? known: {}", all.join(", ")),
                None => format!("known: {}", all.join(", ")),
            };
            faults.push_at(&node.at, format!("`{path}` cannot be `{word}`"), Some(help));
            None
        }
        Kind::Integer { min, max, none, unit } => {
            let value = match (&node.value, none) {
                (Toml::String(text), Some((Value::Text(_), _))) => Value::Text(text.clone()),
                _ => Value::Integer(i64::from_node(node, faults)?),
            };
            let is_none = none.as_ref().is_some_and(|(none, _)| *none == value);
            if is_none || setting.number(&value).is_some() {
                return Some(value);
            }
            let (message, help) = match none {
                None => (format!("`{path}` is {value}, outside {min}..={max}"), None),
                Some((none, means)) => (
                    format!("`{path}` cannot be `{value}`"),
                    Some(format!("{min}..={max} {unit}, or `{none}`: {means}")),
                ),
            };
            faults.push_at(&node.at, message, help);
            None
        }
        Kind::Names => {
            let text = String::from_node(node, faults)?;
            if text.split('/').any(|name| name.trim().is_empty()) {
                let message = format!("`{path}` cannot be `{text}`");
                let help = "names or numbers of idle states: `C3`, `2` or `C3/C6`; or `none`";
                faults.push_at(&node.at, message, Some(help.into()));
                return None;
            }
            Some(Value::Text(text))
        }
    }
}

fn toml(value: &Value) -> Toml {
    match value {
        Value::Text(text) => Toml::String(text.clone()),
        Value::Integer(number) => Toml::Integer(*number),
        Value::Switch(on) => Toml::Boolean(*on),
    }
}

#[cfg(test)]
mod tests;
