// SPDX-License-Identifier: GPL-2.0-or-later
//! The work of a recording: an rt-app file that is executed here, or a command. With neither of them: a trial of settings.
//!
//! The process first gives itself what the work has from its start: groups, timer slack, and of a command the settings
//! that are for all threads (`*`). An rt-app file is executed as if it were written with its settings of threads. A trial
//! gives a thread of its own the settings of each name. Everything is read back, and what is refused goes into a file,
//! where no exit status of a command can be taken for it.

use crate::arguments::Perform;
use crate::failure::Failure;
use crate::settings::{own_program, parse};
use schedtwin_live::runner::{self, Speed};
use schedtwin_live::settings::{Planned, give_to_work};
use schedtwin_workload::{ThreadSetting, Workload};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The program and its arguments before those of the work.
pub fn performer(planned: &Planned, refusals: Option<&Path>) -> Result<Vec<OsString>, Failure> {
    let mut words: Vec<OsString> = vec![own_program()?.into(), "live".into(), "perform".into()];
    for group in &planned.groups {
        words.extend(["--group".into(), group.into()]);
    }
    if let Some(slack) = planned.slack {
        words.extend(["--slack".into(), slack.to_string().into()]);
    }
    if let Some(path) = refusals {
        // One that was killed may have left it.
        let _ = std::fs::remove_file(path);
        words.extend(["--refusals".into(), path.into()]);
    }
    Ok(words)
}

/// The arguments that name settings of threads.
pub fn sets<'a>(settings: impl IntoIterator<Item = &'a ThreadSetting>) -> Vec<OsString> {
    let of_one = |setting: &ThreadSetting| ["--set".into(), setting.to_string().into()];
    settings.into_iter().flat_map(of_one).collect()
}

pub fn perform(arguments: &Perform) -> Result<(), Failure> {
    let mut settings = Vec::new();
    for line in &arguments.set {
        settings.extend(parse(line)?.threads);
    }
    let names: BTreeSet<&str> = match (&arguments.workload, &arguments.command[..]) {
        (Some(_), _) => BTreeSet::new(),
        // A pattern matches itself.
        (None, []) => settings.iter().map(|setting| setting.threads.as_str()).collect(),
        (None, _) => BTreeSet::from(["*"]),
    };
    let names: Vec<&str> = names.into_iter().collect();
    let mut refused = give_to_work(&arguments.group, arguments.slack, &settings, &names);
    if let (Some(path), true) = (&arguments.workload, refused.is_empty()) {
        refused.extend(execute(path, &settings)?);
    }
    if let (Some((program, rest)), true) = (arguments.command.split_first(), refused.is_empty()) {
        let error = Command::new(program).args(rest).exec();
        refused.push(format!("failed to run {program}: {error}"));
    }
    if refused.is_empty() {
        return Ok(());
    }
    if let Some(path) = &arguments.refusals {
        std::fs::write(path, refused.join("\n"))
            .map_err(|error| Failure::of_file("write", path, &error))?;
    }
    Err(Failure::Failed(refused))
}

/// Executes an rt-app file; why it could not be executed to its end.
fn execute(path: &Path, settings: &[ThreadSetting]) -> Result<Option<String>, Failure> {
    let workload = Workload::from_path_or_name(&path.to_string_lossy())?;
    let workload = workload.with_thread_settings(settings)?;
    let code = workload.code(&runner::this_host());
    let code = code.ok_or_else(|| Failure::bad("it is no rt-app file"))??;
    let speed = Speed::measure()
        .map_err(|error| Failure::bad(format!("failed to measure the CPU: {error}")))?;
    Ok(runner::run(code, speed).err().map(|refused| refused.to_string()))
}
