// SPDX-License-Identifier: GPL-2.0-or-later
//! The properties that governors of every kind have in common when they have been compiled.

use crate::Fault;
use crate::compile::{self, Job};
use crate::confine;
use crate::memory::Code;
use crate::object::Elf;
use crate::watch::{self, Label};
use std::sync::Arc;

/// A compiled governor.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    /// `teo.c of ~/src/linux`.
    pub(crate) name: String,
    /// Of everything that decides what it does.
    pub(crate) hash: u64,
    pub(crate) code: Arc<Code>,
    /// The rule that records state for its decisions.
    pub(crate) rule: &'static str,
}

/// The path inside of a tree of a file that is named alone or by its path.
pub(crate) fn path_in(folder: &str, file: &str) -> String {
    if file.contains('/') { file.to_string() } else { format!("{folder}/{file}") }
}

impl Built {
    pub(crate) fn new(job: &Job) -> Result<Built, Fault> {
        watch::check_limit()?;
        let object = compile::object(job)?;
        confine::compiled();
        // Schedulers of the scx repository have the same file in folders of their own.
        let path = job.path.strip_suffix("/src/bpf/main.bpf.c").unwrap_or(job.path);
        let file = path.rsplit('/').next().unwrap_or(path);
        let name = format!("{file} of {}", job.tree.spelled());
        let elf = Elf::read(&object.bytes).map_err(|what| {
            Fault::new(
                format!("{name} cannot be loaded: {what}"),
                "what the compiler made of a governor runs nothing by itself and needs nothing",
            )
        })?;
        let label = Label::new(name.clone(), object.bytes.clone());
        let rule = String::leak(format!("{file} of the tree"));
        let code = Arc::new(Code::new(object.bytes, elf, label));
        Ok(Built { name, hash: object.hash, code, rule })
    }

    pub(crate) fn does_not_start(&self, error: i32, help: &str) -> Fault {
        Fault::new(format!("{} does not start: error {error}", self.name), help)
    }
}
