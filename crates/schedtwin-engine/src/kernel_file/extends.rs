// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernel files that say only what differs from another one: `extends = "linux-6.12"`.
//!
//! ```toml
//! name = "mine"
//! description = "6.12 with a tick of 1 ms"
//! extends = "linux-6.12" # a built-in kernel, or the path of a file, from the folder of this one
//!
//! hz = 1000
//! ```
//!
//! 1. The file that is extended is read first, with all that it extends itself.
//! 2. What the file does not name has the value of the file that it extends. The name, the description and
//!    `captured` are each file's own.
//! 3. Where the file chooses another arm of a point, inherited settings that do not exist with that arm go: a CFS
//!    kernel inherits no `[eevdf]`. What the file names itself stays, and is a fault if it does not exist.
//! 4. A setting that nobody names gets the value that its declaration says.
//!
//! Values keep the place where they were written, so that a fault in an inherited value points at the file that has it.

use super::settings;
use schedtwin_input::{
    Diagnostics, FileKind, FromNode, Location, Node, Source, Table, TomlDocument, Value,
    read_source,
};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The key that names the file to extend.
pub(super) const KEY: &str = "extends";

/// Keys that are not inherited.
const OWN: [&str; 4] = [KEY, "name", "description", "captured"];

/// The most files in a row; the built-in kernels need eight.
const FILES_MAX: usize = 16;

/// A kernel file with all that it inherits.
#[derive(Clone)]
pub(super) struct Resolved {
    /// Every setting, at the place where it was written.
    pub document: TomlDocument,
    /// The file, the one that it extends, and so on.
    pub files: Vec<Arc<Source>>,
}

/// Reads what a file extends, and lays the file over it. `None`: there is no document, and `faults` say why. A built-in file
/// is read once.
pub(super) fn resolve(source: &Arc<Source>, faults: &mut Diagnostics) -> Option<Resolved> {
    static RESOLVED: [OnceLock<Resolved>; super::BUILTIN.len()] =
        [const { OnceLock::new() }; super::BUILTIN.len()];
    let Some(at) = super::BUILTIN_SOURCES.iter().position(|built_in| Arc::ptr_eq(built_in, source))
    else {
        return read(source, faults);
    };
    let resolved = || read(source, &mut Diagnostics::new()).expect("a test reads built-in kernels");
    Some(RESOLVED[at].get_or_init(resolved).clone())
}

fn read(source: &Arc<Source>, faults: &mut Diagnostics) -> Option<Resolved> {
    let mut files: Vec<(Arc<Source>, TomlDocument)> = Vec::new();
    let mut next = Some(source.clone());
    while let Some(source) = next {
        let document = faults.absorb(TomlDocument::parse(&source))?;
        next = match document.get(KEY) {
            Some(node) => {
                let read: Vec<&Source> = files.iter().map(|(file, _)| &**file).collect();
                Some(extended(node, &source, &read, faults)?)
            }
            None => None,
        };
        files.push((source, document));
    }
    let sources: Vec<Arc<Source>> = files.iter().map(|(source, _)| source.clone()).collect();
    let mut inherited: Option<TomlDocument> = None;
    for (at, (_, mut document)) in files.into_iter().enumerate().rev() {
        settings::modernise(&mut document, faults);
        if let Some(inherited) = inherited {
            let mut table = inherited.table().clone();
            OWN.iter().for_each(|key| drop(table.0.remove(*key)));
            inherit(document.table_mut(), table);
            settings::leave(&mut document, &sources[at + 1..]);
        }
        settings::complete(&mut document);
        inherited = Some(document);
    }
    Some(Resolved { document: inherited.expect("at least one file"), files: sources })
}

/// The file that `node` names in `by`; `read`: the files that lead to `by`.
fn extended(
    node: &Node,
    by: &Arc<Source>,
    read: &[&Source],
    faults: &mut Diagnostics,
) -> Option<Arc<Source>> {
    let name = String::from_node(node, faults)?;
    let mut fault = |message: String, help: String| faults.push_at(&node.at, message, Some(help));
    if read.len() + 1 >= FILES_MAX {
        let message = format!("more than {FILES_MAX} files extend each other");
        fault(message, "`schedtwin show kernel FILE --file` writes a kernel as one file".into());
        return None;
    }
    if !is_path(&name) {
        return faults.absorb(super::builtin(&name, &node.at));
    }
    let path = match Path::new(&by.name).parent() {
        Some(folder) => folder.join(&name),
        None => name.clone().into(),
    };
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let same = |file: &Source| {
        file.name == path.to_string_lossy() || {
            let file = real(Path::new(&file.name));
            file.is_some() && file == real(&path)
        }
    };
    if same(by) || read.iter().any(|file| same(file)) {
        let message = format!("`{name}` extends this file in turn");
        fault(message, "a file cannot inherit from itself".into());
        return None;
    }
    match read_source(&path) {
        Ok(source) => {
            faults.absorb(FileKind::Kernel.expect(&source, &node.at))?;
            Some(source)
        }
        Err(unread) => {
            let why: Vec<&str> = unread.0.iter().map(|fault| fault.message.as_str()).collect();
            let message = format!("`{name}` cannot be extended: {}", why.join("; "));
            fault(message, "a path counts from the folder of the file that names it".into());
            None
        }
    }
}

fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// Puts what `into` does not name itself into it, tables by their keys.
fn inherit(into: &mut Table, from: Table) {
    for (key, entry) in from.0 {
        match into.0.get_mut(&key) {
            None => drop(into.0.insert(key, entry)),
            Some(own) => {
                if let (Value::Table(own), Value::Table(inherited)) =
                    (&mut own.node.value, entry.node.value)
                {
                    inherit(own, inherited);
                }
            }
        }
    }
}

/// Whether a value was written in one of the files.
pub(super) fn is_of(at: &Location, files: &[Arc<Source>]) -> bool {
    files.iter().any(|file| Arc::ptr_eq(file, &at.source))
}

#[cfg(test)]
mod tests;
