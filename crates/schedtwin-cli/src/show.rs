// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin show` and `schedtwin check`: what things are, and whether files are right.

use std::path::PathBuf;

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_input::{Diagnostics, Source, did_you_mean};
use schedtwin_lab::schema;
use schedtwin_types::printable;

use crate::arguments::{Kind, Shown};
use crate::failure::{Failure, tell_faults, tell_warnings};
use crate::list::entries;
use crate::output;

pub fn show(what: Shown) -> Result<(), Failure> {
    // A file is what it is.
    let is_file = matches!(
        what,
        Shown::Machine { file: true, .. } | Shown::Kernel { file: true, .. } | Shown::Schema { .. }
    );
    let text = match what {
        Shown::Machine { name, file: true, .. } => match schedtwin_engine::builtin_machine(&name) {
            Some(source) => source.text.clone(),
            None => return Err(unknown("built-in machine", &name, &entries(Kind::Machines))),
        },
        Shown::Machine { name, kernel: Some(kernel), .. } => {
            schedtwin_engine::describe_domains(&name, &kernel)?
        }
        Shown::Machine { name, .. } => schedtwin_engine::describe_machine(&name)?,
        Shown::Kernel { names, file } => match (names.as_slice(), file) {
            ([name], true) => schedtwin_engine::kernel_as_file(name)?,
            ([name], false) => schedtwin_engine::describe_kernel(name)?,
            (_, true) => return Err(Failure::bad("--file writes one kernel")),
            (several, false) => {
                let mut faults = Diagnostics::new();
                let loaded = several.iter().map(|name| faults.absorb(KernelFile::load(name)));
                let kernels: Vec<KernelFile> = loaded.flatten().collect();
                faults.into_result(KernelFile::differences(&kernels))?
            }
        },
        Shown::Workload { name } => schedtwin_engine::describe_workload(&name)?,
        Shown::Patch { name } => schedtwin_engine::kernel_file::describe_patch(&name)?,
        Shown::System { name } => schedtwin_engine::describe_system(&name)?,
        Shown::Suite { name } => schedtwin_lab::score::load(&name)?.source.text.clone(),
        Shown::Schema { name } => match schema::text(&name) {
            Some(text) => text.into_owned(),
            None => return Err(unknown("schema", &name, &entries(Kind::Schemas))),
        },
    };
    if is_file { output::print(&text) } else { output::print_fit(&text) }
}

fn unknown(what: &str, name: &str, known: &[(String, String)]) -> Failure {
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let help = match did_you_mean(name, names.iter().copied()) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => format!("there are {}", names.join(", ")),
    };
    let mut faults = Diagnostics::new();
    faults.push(
        &Source::new("<command line>", name),
        0..name.len(),
        format!("there is no {what} `{name}`"),
        Some(help),
    );
    Failure::Refused(faults)
}

/// Checks every file, even after one is bad, and fails at the end.
pub fn check(files: &[PathBuf]) -> Result<(), Failure> {
    let mut unreadable = Diagnostics::new();
    let mut wrong = Vec::new();
    let mut text = String::new();
    for path in files {
        if unreadable.absorb(schedtwin_input::read_source(path)).is_none() {
            continue;
        }
        match schedtwin_lab::check_file(path) {
            Ok(checked) => {
                tell_warnings(&checked.warnings);
                let odd = match checked.warnings.0.len() {
                    0 => String::new(),
                    1 => ", 1 warning".into(),
                    count => format!(", {count} warnings"),
                };
                text.push_str(&format!("{}: fine{odd}\n", output::shown(path)));
                let notices = checked.notices.iter().map(|notice| printable::line(notice));
                text.extend(notices.map(|notice| format!("  note: {notice}\n")));
            }
            Err(faults) => {
                tell_faults(&faults);
                let count = faults.0.len();
                wrong.push(format!(
                    "{}: {count} fault{}",
                    output::shown(path),
                    if count == 1 { "" } else { "s" }
                ));
            }
        }
    }
    let printed = output::print_fit(&text);
    unreadable.into_result(())?;
    if wrong.is_empty() { printed } else { Err(Failure::Failed(wrong)) }
}
