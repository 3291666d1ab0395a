// SPDX-License-Identifier: GPL-2.0-or-later
//! A scheduler's C, compiled, with what is set of it.

use super::TreeExt;
use super::layout::Entries;
use super::loader::{IN_USER_SPACE, SLICES};
use crate::built::Built;
use crate::compile::Job;
use crate::elf::{self, Variable};
use crate::ext_setting::ExtSetting;
use crate::sources::Sources;
use crate::watch::{Question, Watched};
use crate::{Fault, Tree};
use schedtwin_input::did_you_mean;
use schedtwin_kernel::policy::{ExtScheduler, OP_COST_NS};
use schedtwin_types::MAX_CPUS;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A scheduler's C, compiled, with the values that its loader would write.
#[derive(Clone, Debug)]
pub struct ExtCode {
    pub(super) built: Built,
    pub(super) variables: Arc<BTreeMap<String, Variable>>,
    pub(super) writes: Arc<Vec<(Variable, u64)>>,
    pub(super) op_cost_ns: u64,
    pub(super) timeout_ms: Option<u32>,
    pub(super) flags: Option<u64>,
}

impl ExtCode {
    /// Compiles `file` of the folder or revision.
    ///
    /// # Errors
    /// If there is no such file, no compiler, or the file does not compile.
    pub fn build(tree: &Tree, file: &str, hz: u64) -> Result<ExtCode, Fault> {
        let sources = Sources::gather(tree, file)?;
        let defines = [
            format!("HZ={hz}"),
            "SCHEDTWIN_SCX=1".to_string(),
            format!("SCHEDTWIN_NR_CPUS={MAX_CPUS}"),
            "SCHEDTWIN_KERNEL_VERSION=KERNEL_VERSION(7,3,4)".to_string(),
        ];
        let built = Built::new(&Job {
            tree,
            path: file,
            sources: &sources,
            glue: "scx.c",
            defines: &defines,
        })?;
        let object = std::fs::read(built.code.object()).unwrap_or_default();
        let variables = Arc::new(elf::variables(&object));
        if let Some(part) = IN_USER_SPACE.into_iter().find(|name| variables.contains_key(*name)) {
            return Err(Fault::new(
                format!("a part of {} decides in user space (`{part}`)", built.name),
                "the twin runs what the kernel would run; that part is a program of its own",
            ));
        }
        Ok(ExtCode {
            built,
            variables,
            writes: Arc::default(),
            op_cost_ns: OP_COST_NS,
            timeout_ms: None,
            flags: None,
        })
    }

    /// With a setting.
    ///
    /// # Errors
    /// If the scheduler has no such variable, or the value does not fit into it.
    pub fn with(mut self, setting: &ExtSetting) -> Result<ExtCode, Fault> {
        match setting {
            ExtSetting::OpNs(ns) => self.op_cost_ns = *ns,
            ExtSetting::Flags(flags) => self.flags = Some(*flags),
            ExtSetting::TimeoutMs(ms) => self.timeout_ms = Some(*ms),
            ExtSetting::SliceUs(us) => {
                let known = SLICES.into_iter().find(|name| self.variables.contains_key(*name));
                let Some(name) = known else {
                    return Err(Fault::new(
                        format!("{} has no slice that its loader sets", self.name()),
                        format!("it would be called {}", SLICES.join(" or ")),
                    ));
                };
                self.write(name, (*us * 1000) as i64)?;
            }
            ExtSetting::Variable(name, value) => self.write(name, *value)?,
        }
        Ok(self)
    }

    fn write(&mut self, name: &str, value: i64) -> Result<(), Fault> {
        let Some(variable) = self.variables.get(name).copied() else {
            let known = self.variables.keys().map(String::as_str);
            let near = did_you_mean(name, known.filter(|name| !name.contains("schedtwin")));
            let help = near.map_or_else(
                || "variables outside of functions can be set, by their names".to_string(),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Fault::new(format!("{} has no variable `{name}`", self.name()), help));
        };
        let bits = 8 * variable.bytes as u32;
        let fits = match variable.bytes {
            1 | 2 | 4 => value >= -(1 << (bits - 1)) && value < 1 << bits,
            8 => true,
            _ => {
                let message = format!("`{name}` of {} is no number", self.name());
                return Err(Fault::new(message, "numbers of 1, 2, 4 and 8 bytes can be set"));
            }
        };
        if !fits {
            let message = format!("{value} does not fit into `{name}` of {bits} bits");
            return Err(Fault::new(message, "see its declaration"));
        }
        Arc::make_mut(&mut self.writes).push((variable, value as u64));
        Ok(())
    }

    /// `scx_simple.bpf.c of ~/scx`.
    pub fn name(&self) -> &str {
        &self.built.name
    }

    /// Of everything that decides what it does.
    pub fn hash(&self) -> u64 {
        self.built.hash
    }

    /// A scheduler of a machine that is about to boot.
    ///
    /// # Panics
    /// If the object can no longer be loaded.
    pub fn scheduler(&self) -> Box<dyn ExtScheduler> {
        let image = self.built.code.image();
        let image = image.unwrap_or_else(|fault| panic!("{}: {}", self.name(), fault.message));
        let label = self.built.code.label;
        let entries = Entries::of(&image);
        let watched = Watched { label, question: Question::Boot, cpu: 0 };
        // SAFETY: the image is resident; the structure is the object's own, of the type in scx.h.
        let ops = image.ask(watched, || unsafe { *(entries.boot)(MAX_CPUS as u32) });
        Box::new(TreeExt {
            entries,
            image,
            watched,
            ops,
            code: self.clone(),
            tasks: Vec::new(),
            touched: Vec::new(),
        })
    }
}
