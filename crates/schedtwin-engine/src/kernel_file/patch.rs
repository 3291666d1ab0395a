// SPDX-License-Identifier: GPL-2.0-or-later
//! Patches: `patches/*.toml`, a named change to a kernel.
//!
//! ```toml
//! name = "runnable-boost"
//! description = "..."
//!
//! [requires] # what the kernel must be like; it contains the patch (or something else) otherwise
//! runnable_boost = "off"
//!
//! [sets]
//! runnable_boost = "with-util-est"
//! ```
//!
//! Two patches that set one thing are an error, as is a patch that the kernel already contains.

use super::extends::{self, Resolved};
use super::settings;
use schedtwin_input::{
    Diagnostics, Entry, Located, Location, Node, Source, Table, TomlDocument, Value, did_you_mean,
    read_source,
};
use schedtwin_types::printable;
use std::sync::Arc;

/// Faults that are looked for: a suggestion for each of thousands of unknown settings takes seconds.
const FAULTS_MAX: usize = 100;

/// Name and text of each built-in patch.
const BUILTIN: [(&str, &str); 13] = [
    ("runnable-boost", include_str!("../../patches/runnable-boost.toml")),
    ("teo-util", include_str!("../../patches/teo-util.toml")),
    ("teo-util-step", include_str!("../../patches/teo-util-step.toml")),
    ("teo-util-gradual", include_str!("../../patches/teo-util-gradual.toml")),
    ("uclamp-sum", include_str!("../../patches/uclamp-sum.toml")),
    ("idler-llc", include_str!("../../patches/idler-llc.toml")),
    ("idler-llc-waker", include_str!("../../patches/idler-llc-waker.toml")),
    ("idler-llc-v2", include_str!("../../patches/idler-llc-v2.toml")),
    ("idler-llc-v3", include_str!("../../patches/idler-llc-v3.toml")),
    ("wide-llc", include_str!("../../patches/wide-llc.toml")),
    ("uclamp-enqueue-order", include_str!("../../patches/uclamp-enqueue-order.toml")),
    ("schedutil-remote", include_str!("../../patches/schedutil-remote.toml")),
    ("schedutil-opp-mapping", include_str!("../../patches/schedutil-opp-mapping.toml")),
];

/// A patch.
pub(super) struct Patch {
    name: String,
    description: String,
    document: TomlDocument,
    source: Arc<Source>,
}

/// Name and description of each built-in patch.
pub(super) fn names() -> Vec<(String, String)> {
    let read =
        |text: &str| Patch::parse(&Source::new("a built-in patch", text)).expect("read by a test");
    BUILTIN.iter().map(|(name, text)| (name.to_string(), read(text).description)).collect()
}

/// Text for `show patch`.
pub(super) fn describe(name: &str) -> Result<String, Diagnostics> {
    let at = Location::new(&Source::new("<command line>", name), 0..name.len());
    let patch = Patch::load(&Located { value: name.to_string(), at })?;
    let [name, description] = [&patch.name, &patch.description].map(|text| printable::line(text));
    let mut text = format!("patch {name}\n{description}\n");
    // What the file begins with explains it.
    let comment: Vec<&str> =
        patch.source.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    if !comment.is_empty() {
        text.push_str(&format!("\n{}\n", comment.join("\n")));
    }
    for (title, key) in [("for kernels with", "requires"), ("sets", "sets")] {
        text.push_str(&format!("\n{title}\n"));
        for (path, entry) in flat(patch.table(key)) {
            text.push_str(&format!("  {path} = {}\n", word(&entry.node.value)));
        }
    }
    Ok(text)
}

/// Checks a patch's form, and that a built-in kernel that meets `[requires]` can be read with it. The
/// notice says which.
pub(super) fn check(source: &Arc<Source>) -> Result<Vec<String>, Diagnostics> {
    let path = source.name.as_str();
    let at = Location::new(&Source::new("<command line>", path), 0..path.len());
    let name = Located { value: path.to_string(), at };
    let patch = Patch::parse(source)?;
    let (mut takers, mut refusal) = (Vec::new(), None);
    for (kernel, text) in super::builtin_texts() {
        let mut faults = Diagnostics::new();
        let resolved = extends::resolve(&Source::new(kernel, text), &mut faults);
        let Some(Resolved { mut document, files }) = resolved else { return Err(faults) };
        if !patch.is_for(&document) {
            continue;
        }
        patch.apply(&name, kernel, &mut document, &mut Vec::new(), &mut faults);
        settings::leave(&mut document, &files);
        settings::complete(&mut document);
        settings::read(&document, &files, &mut faults);
        match faults.into_result(()) {
            Ok(()) => takers.push(kernel),
            Err(faults) => refusal = refusal.or(Some(faults)),
        }
    }
    match refusal {
        Some(faults) if takers.is_empty() => Err(faults),
        _ if takers.is_empty() => Ok(vec!["no built-in kernel meets `[requires]`".to_string()]),
        _ => Ok(vec![format!("for {}", takers.join(", "))]),
    }
}

impl Patch {
    /// Whether a kernel is as `[requires]` says.
    fn is_for(&self, kernel: &TomlDocument) -> bool {
        let mut wanted = flat(self.table("requires")).into_iter();
        wanted.all(|(key, entry)| kernel.get(&key).is_some_and(|n| n.value == entry.node.value))
    }

    /// Finds the patch that the command line names.
    pub(super) fn load(name: &Located<String>) -> Result<Patch, Diagnostics> {
        if let Some((known, text)) = BUILTIN.iter().find(|(known, _)| *known == name.value) {
            return Patch::parse(&Source::new(format!("<built in> {known}"), *text));
        }
        if name.value.contains('/') || name.value.ends_with(".toml") {
            return Patch::parse(&read_source(&name.value)?);
        }
        let mut faults = Diagnostics::new();
        let help = match did_you_mean(&name.value, BUILTIN.iter().map(|(known, _)| *known)) {
            Some(near) => format!("did you mean `{near}`? (`schedtwin list patches` lists all)"),
            None => "`schedtwin list patches` lists them; a path ends in .toml".to_string(),
        };
        faults.push_at(&name.at, format!("there is no patch `{}`", name.value), Some(help));
        Err(faults)
    }

    fn parse(source: &Arc<Source>) -> Result<Patch, Diagnostics> {
        let document = TomlDocument::parse(source)?;
        let mut faults = Diagnostics::new();
        let mut top = document.reader();
        let name: Option<String> = top.required("name", &mut faults);
        let description: Option<String> = top.required("description", &mut faults);
        for key in ["requires", "sets"] {
            let _ = top.required_table(key, &mut faults);
            if let Some(Node { value: Value::Table(table), .. }) = document.get(key) {
                check_settings(table, &mut faults);
            }
        }
        top.finish(&mut faults);
        faults.sort();
        match (name, description) {
            (Some(name), Some(description)) if faults.is_empty() => {
                Ok(Patch { name, description, document, source: source.clone() })
            }
            _ => Err(faults),
        }
    }

    fn table(&self, key: &str) -> &Table {
        match &self.document.get(key).expect("required").value {
            Value::Table(table) => table,
            _ => unreachable!("read as a table"),
        }
    }

    /// Lays the patch over a kernel. `set`: what the patches before it have set, and by whom.
    pub(super) fn apply(
        &self,
        at: &Located<String>,
        kernel: &str,
        document: &mut TomlDocument,
        set: &mut Vec<(String, String)>,
        faults: &mut Diagnostics,
    ) {
        for (key, Entry { node: wanted, .. }) in flat(self.table("requires")) {
            let Some(found) = document.get(&key) else {
                let message = format!("`{}` is not for `{kernel}`: it has no `{key}`", self.name);
                faults.push_at(&at.at, message, None);
                return;
            };
            if found.value == wanted.value {
                continue;
            }
            if let Some((_, other)) = set.iter().find(|(path, _)| *path == key) {
                let message = format!(
                    "`{}` and `{other}` both set `{key}`: they exclude each other",
                    self.name
                );
                faults.push_at(&at.at, message, None);
                return;
            }
            let message = format!(
                "`{kernel}` contains `{}`, or something in its place: `{key}` is {}, and the patch is for {}",
                self.name,
                word(&found.value),
                word(&wanted.value)
            );
            let help = format!("`{kernel}:{key}={}` is the kernel without it", word(&wanted.value));
            faults.push_at(&at.at, message, Some(help));
            return;
        }
        if let Some(paths) = faults.absorb(document.overlay(self.table("sets"))) {
            set.extend(paths.into_iter().map(|path| (path, self.name.clone())));
        }
    }
}

/// The values of a table and of the tables in it, by path.
fn flat(table: &Table) -> Vec<(String, &Entry)> {
    let mut out = Vec::new();
    for (key, entry) in &table.0 {
        match &entry.node.value {
            Value::Table(inner) => {
                out.extend(flat(inner).into_iter().map(|(path, e)| (format!("{key}.{path}"), e)));
            }
            _ => out.push((key.clone(), entry)),
        }
    }
    out
}

/// Every path is a setting's, every value one that it can have.
fn check_settings(table: &Table, faults: &mut Diagnostics) {
    for (path, entry) in flat(table) {
        if faults.0.len() >= FAULTS_MAX {
            return;
        }
        match super::setting(&path) {
            Some(setting) => {
                settings::check(setting, &entry.node, faults);
            }
            None => {
                let known = super::settings().iter().map(|setting| setting.path);
                let help = match did_you_mean(&path, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`schedtwin list points` lists all".to_string(),
                };
                let message = format!("there is no setting `{path}`");
                faults.push_at(&entry.key_at, message, Some(help));
            }
        }
    }
}

/// A value as one writes it after `:KEY=`.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
        other => format!("{other:?}"),
    }
}
