// SPDX-License-Identifier: GPL-2.0-or-later
//! The files of a tree that a scheduler consists of.
//!
//! | tree | scheduler | further units | headers as `<...>` that are not ours |
//! |---|---|---|---|
//! | the kernel's `tools/sched_ext` | one file | none | none |
//! | the scx repository | `scheds/rust/NAME/src/bpf/main.bpf.c`, `NAME.bpf.c` | `add_source()` in `build.rs` | `scheds/include` |

use crate::offered::is_offered;
use crate::sources::{Sources, sibling};
use crate::{Fault, Tree};

/// Where the scx repository has its schedulers and its headers.
const SCHEDULERS: &str = "scheds/rust/";
const INCLUDE: &str = "scheds/include";
/// A scheduler's folder leads to the library by this link.
const LINK: &str = "src/bpf/lib/";

/// What a scheduler consists of.
pub(super) struct Units {
    pub(super) sources: Sources,
    /// The files that are compiled.
    pub(super) paths: Vec<String>,
    /// A folder of the tree that has headers.
    pub(super) include: Option<&'static str>,
}

impl Units {
    /// Of the scheduler in `file`.
    pub(super) fn gather(tree: &Tree, file: &str) -> Result<Units, Fault> {
        let mut paths = vec![file.to_string()];
        if !file.starts_with(SCHEDULERS) {
            return Ok(Units { sources: Sources::gather(tree, file)?, paths, include: None });
        }
        if let Some((folder, _)) = file.rsplit_once("src/bpf/")
            && let Some(text) = tree.read(&format!("{folder}build.rs"))?
        {
            let text = String::from_utf8_lossy(&text);
            let named =
                text.split("add_source(\"").skip(1).filter_map(|rest| rest.split('"').next());
            for name in named {
                let path = match name.strip_prefix(LINK) {
                    Some(library) => format!("lib/{library}"),
                    None => sibling(&format!("{folder}build.rs"), name),
                };
                if !path.strip_prefix("lib/").is_some_and(is_ours) {
                    paths.push(path);
                }
            }
        }
        let mut sources = Sources::default();
        for path in &paths {
            sources.gather_more(tree, path, Some(INCLUDE))?;
        }
        Ok(Units { sources, paths, include: Some(INCLUDE) })
    }
}

/// Whether a unit of the library has a header that we offer, which then does without it.
fn is_ours(library: &str) -> bool {
    let stem = library.strip_suffix(".bpf.c").unwrap_or(library);
    is_offered(&format!("lib/{stem}.h"))
}
