// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings tried on this machine before anything runs under them.
//!
//! Each is made as for a run, read back and put back. What the work gives itself is given to a process that does nothing
//! else (`perform` without a work), so that no thread of the work is needed. What is refused is told all at once.

use super::measure::planned_of;
use super::perform::{performer, sets};
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::{parse, watcher};
use schedtwin_live::folder::Folder;
use schedtwin_live::settings::{Applied, Settings};
use std::fs;
use std::process::{Command, Stdio};

/// Tries all settings of a comparison, which are read already.
pub fn try_all(folder: &Folder, spelled: &[String], quiet: bool) -> Result<(), Failure> {
    let mut refused: Vec<String> = Vec::new();
    if let Err(Failure::Bad(why)) = crate::record::tracefs::find() {
        refused.push(why.replace('\n', " "));
    }
    for line in spelled {
        for why in of_setting(folder, &parse(line)?, quiet)? {
            if !refused.contains(&why) {
                refused.push(why);
            }
        }
    }
    match refused[..] {
        [] => Ok(()),
        _ => Err(Failure::bad(format!(
            "this machine refuses this, so nothing was run; leave it out, or give what it takes:\n  {}",
            refused.join("\n  ")
        ))),
    }
}

fn of_setting(folder: &Folder, settings: &Settings, quiet: bool) -> Result<Vec<String>, Failure> {
    let mut planned = planned_of(folder, settings)?;
    let mut refused = std::mem::take(&mut planned.refused);
    if !settings.groups.is_empty() && planned.groups.is_empty() && refused.is_empty() && !quiet {
        tell(&format!(
            "{settings}: the group is there, so its processes get this; the work does if it runs in it"
        ));
    }
    let applied = Applied::make(&planned, &folder.join("journal"), Some(watcher()?));
    let applied = match applied {
        Ok(applied) => Some(applied),
        Err(why) => {
            refused.push(why);
            planned.groups.clear();
            None
        }
    };
    let refusals = folder.join("refused");
    let words = performer(&planned, Some(&refusals))?;
    let mut trial = Command::new(&words[0]);
    trial.args(&words[1..]).args(sets(&settings.threads));
    trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = trial.output();
    refused.extend(applied.into_iter().flat_map(Applied::undo));
    let output =
        output.map_err(|error| Failure::bad(format!("failed to try settings: {error}")))?;
    match taken(folder)? {
        Some(told) => refused.extend(told.lines().map(str::to_owned)),
        None if output.status.success() => {}
        None => refused.push(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
    Ok(refused)
}

/// Takes in the refusals of a process, a line each, and removes their file.
pub fn taken(folder: &Folder) -> Result<Option<String>, Failure> {
    let path = folder.join("refused");
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).and_then(|text| fs::remove_file(&path).map(|()| text));
    text.map(Some).map_err(|error| Failure::of_file("read", &path, &error))
}
