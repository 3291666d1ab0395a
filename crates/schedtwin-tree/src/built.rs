// SPDX-License-Identifier: GPL-2.0-or-later
//! The properties that governors of every kind have in common when they have been compiled.

use crate::Fault;
use crate::compile::{self, Job};
use crate::confine;
use crate::memory::Code;
use crate::watch::Label;
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
        let object = compile::object(job)?;
        confine::compiled();
        // Schedulers of the scx repository have the same file in folders of their own.
        let path = job.path.strip_suffix("/src/bpf/main.bpf.c").unwrap_or(job.path);
        let file = path.rsplit('/').next().unwrap_or(path);
        let name = format!("{file} of {}", job.tree.spelled());
        let label = Label::new(name.clone(), object.path.clone());
        let rule = String::leak(format!("{file} of the tree"));
        Ok(Built { name, hash: object.hash, code: Arc::new(Code::new(object.path, label)), rule })
    }

    pub(crate) fn does_not_start(&self, error: i32, help: &str) -> Fault {
        Fault::new(format!("{} does not start: error {error}", self.name), help)
    }
}
