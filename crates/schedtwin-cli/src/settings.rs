// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin settings`: a kernel's settings onto this machine, and back.

use crate::arguments::{SettingsAction, SettingsApply};
use crate::failure::Failure;
use crate::live::perform::performer;
use crate::output::{print, tell};
use schedtwin_engine::kernel_file::settings as declared;
use schedtwin_live::settings::{
    Applied, JOURNAL, Planned, Settings, journal, plan, script, switches, watch,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernel whose settings are counted from, where none is named.
const ANY_KERNEL: &str = crate::arguments::DEFAULT_KERNEL;

pub fn settings(action: SettingsAction) -> Result<(), Failure> {
    match action {
        SettingsAction::Show => show(),
        SettingsAction::Apply(arguments) => apply(&arguments),
        SettingsAction::Undo { journal } => undo(&journal),
        SettingsAction::Watch { journal } => {
            watch(&journal).map_err(|error| Failure::of_file("undo", &journal, &error))
        }
    }
}

/// All faults of a line of settings as one failure.
pub fn parse(line: &str) -> Result<Settings, Failure> {
    Settings::parse(line).map_err(|faults| Failure::bad(faults.join("\n")))
}

/// The path of this program, which runs itself for what needs a process of its own.
pub fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::bad(format!("failed to find the own program: {error}")))
}

/// The command that watches over applied settings.
pub fn watcher() -> Result<Command, Failure> {
    let mut command = Command::new(own_program()?);
    command.args(["settings", "watch"]);
    Ok(command)
}

fn show() -> Result<(), Failure> {
    let mut text = String::new();
    for setting in declared() {
        let patterns = switches::patterns(setting);
        let files = patterns.iter().flat_map(|pattern| switches::expand(pattern, Path::new("/")));
        let mut values: Vec<String> = Vec::new();
        for file in files {
            let held = switches::held(&file, setting, Path::new("/"));
            let held = held.unwrap_or_else(|error| error.to_string());
            if !values.contains(&held) {
                values.push(held);
            }
        }
        match (patterns.first(), values.is_empty()) {
            (None, _) => {}
            (Some(first), true) => {
                text += &format!("{:<32} {:<20} {first}\n", setting.path, "not here");
            }
            (Some(first), false) => {
                text += &format!("{:<32} {:<20} {first}\n", setting.path, values.join(" | "));
            }
        }
    }
    let debugfs = Path::new("/sys/kernel/debug/sched").exists();
    if !debugfs {
        text += "\n/sys/kernel/debug/sched is not here: debugfs is not mounted, or the kernel locks it\n";
    }
    print(&text)
}

fn planned(arguments: &SettingsApply) -> Result<(Planned, String), Failure> {
    let mut all = Settings::default();
    for line in &arguments.set {
        let more = parse(line)?;
        all.threads.extend(more.threads);
        all.kernel.extend(more.kernel);
        all.groups.extend(more.groups);
        all.machine.extend(more.machine);
    }
    let spec = arguments.kernel.as_deref();
    // Of a kernel with settings in place those are meant; a file or a name stands for all of its settings.
    let (kernel, whole) = match spec.map(|spec| spec.split_once(':')) {
        Some(Some((name, settings))) => {
            all.kernel.splice(0..0, settings.split(',').map(str::to_owned));
            (name, false)
        }
        Some(None) => (spec.unwrap_or(ANY_KERNEL), true),
        None => (ANY_KERNEL, false),
    };
    let mut planned = plan(&all, kernel, whole, Path::new("/"))?;
    if let (Some(slack), []) = (planned.slack, &arguments.command[..]) {
        let why =
            "each thread has its own and gives it to those it starts: name a command behind --";
        planned.refused.push(format!("a timer slack of {slack} ns: {why}"));
    }
    let title = format!("{} {all}", spec.unwrap_or("this machine:"));
    Ok((planned, title))
}

fn apply(arguments: &SettingsApply) -> Result<(), Failure> {
    let (planned, title) = planned(arguments)?;
    let of_no_use =
        arguments.dry_run || arguments.command.is_empty() && !planned.refused.is_empty();
    if planned.changes.is_empty() && of_no_use {
        let refused = planned.refused.iter().map(|why| format!("not here: {why}"));
        return match refused.collect::<Vec<_>>() {
            none if none.is_empty() => {
                tell("this machine has these settings already: nothing to change");
                Ok(())
            }
            refused => Err(Failure::Failed(refused)),
        };
    }
    if arguments.dry_run {
        return print(&script::script(&planned, &title));
    }
    for refused in &planned.refused {
        tell(&format!("not here: {refused}"));
    }
    let journal = Path::new(JOURNAL);
    let Some(program) = arguments.command.first() else {
        let applied = Applied::make(&planned, journal, None).map_err(Failure::bad)?;
        applied.keep();
        tell(&format!(
            "{} changes; `schedtwin settings undo` puts them back",
            planned.changes.len()
        ));
        return Ok(());
    };
    let applied = Applied::make(&planned, journal, Some(watcher()?)).map_err(Failure::bad)?;
    let words = performer(&planned, None)?;
    let mut command = Command::new(&words[0]);
    let ended = command.args(&words[1..]).arg("--").args(&arguments.command).status();
    let failed = applied.undo();
    let status =
        ended.map_err(|error| Failure::bad(format!("failed to run {program}: {error}")))?;
    let mut failures = failed;
    if !status.success() {
        failures.push(format!("{program}: {status}"));
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Failed(failures)) }
}

fn undo(path: &Path) -> Result<(), Failure> {
    let undone = journal::undo(path)
        .map_err(|error| Failure::bad(format!("{}: {error}", path.display())))?;
    match undone {
        None => tell("nothing is applied"),
        Some((count, failed)) if failed.is_empty() => {
            tell(&format!("{count} changes are put back"))
        }
        Some((_, failed)) => return Err(Failure::Failed(failed)),
    }
    Ok(())
}
