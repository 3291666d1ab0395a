// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings under settings: the basis of a prediction, and what it is judged by.

use crate::capture;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::{parse, watcher};
use schedtwin_live::folder::{Folder, Plan, Run, Runner, Seal, Work, now};
use schedtwin_live::rapl::Rapl;
use schedtwin_live::rows::{Counted, Key, Rows, command_ended, of_recording};
use schedtwin_live::settings::{Applied, Planned, Settings, plan, thread_changes};
use schedtwin_workload::code::Code;
use schedtwin_workload::{Workload, class_of};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time between two looks for threads that get a setting.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Describes the machine and records the first setting.
pub fn basis(folder: &Folder, quiet: bool) -> Result<(), Failure> {
    let plan = folder.plan().map_err(Failure::bad)?;
    if !folder.has("basis") {
        capture::describe(&folder.join("."))?;
    }
    // What an interrupted one has done stays.
    for (name, setting, round) in Folder::names("basis", &plan) {
        if !folder.is_done(&name) {
            one(folder, &plan, setting, round, &name, None, quiet)?;
        }
    }
    Ok(())
}

/// Records every setting in rounds.
pub fn measure(folder: &Folder, quiet: bool) -> Result<(), Failure> {
    let plan = folder.plan().map_err(Failure::bad)?;
    let seal = folder.read_seal().map_err(Failure::bad)?;
    let seal =
        seal.ok_or_else(|| Failure::bad("there is no prediction: `schedtwin live predict`"))?;
    if folder.check_whole("measured", &plan).is_ok() {
        return Err(Failure::bad("it is measured already: `schedtwin live judge`"));
    }
    for (name, setting, round) in Folder::names("measured", &plan) {
        if !folder.is_done(&name) {
            one(folder, &plan, setting, round, &name, Some(&seal), quiet)?;
        }
    }
    Ok(())
}

/// Records one run under a setting.
fn one(
    folder: &Folder,
    plan: &Plan,
    setting: usize,
    round: usize,
    name: &str,
    seal: Option<&Seal>,
    quiet: bool,
) -> Result<(), Failure> {
    let spelled = &plan.settings[setting];
    let settings = parse(spelled)?;
    if !quiet {
        tell(&format!("round {} of {}: {settings}", round + 1, plan.runs));
    }
    let recording = folder.join(&format!("{name}.dat"));
    if let Some(above) = recording.parent() {
        std::fs::create_dir_all(above).map_err(|error| Failure::of_file("make", above, &error))?;
    }
    let of_machine = Settings { threads: Vec::new(), ..settings.clone() };
    let kernel = folder.join("kernel.toml");
    let planned = self::plan_of(&of_machine, &kernel)?;
    let mut troubles = planned.refused.clone();
    let journal = folder.join("journal");
    let applied = Applied::make(&planned, &journal, Some(watcher()?)).map_err(Failure::bad)?;
    let began = now();
    let rapl = Rapl::begin(Path::new("/"));
    let recorded = record(folder, plan, &settings, &recording);
    let joules = rapl.and_then(|rapl| rapl.joules());
    let put_back = applied.undo();
    let (root, refused) = recorded?;
    troubles.extend(refused);
    let is_back = put_back.is_empty();
    troubles.extend(put_back);
    let (mut rows, others) = rows_of(folder, plan, &recording, root)?;
    let failed = |fault| Failure::bad(format!("{}: {fault}", recording.display()));
    let ended = command_ended(&recording).map_err(failed)?;
    if let Some(how) = ended.filter(|how| how != "exit status: 0") {
        troubles.push(format!("the work ended with {how}"));
    }
    if rows.is_empty() {
        return Err(Failure::bad(format!(
            "no thread of the work ran: {}",
            troubles.last().map_or("its recording is empty", String::as_str)
        )));
    }
    rows.extend(joules.map(|joules| (Key::energy(), joules)));
    let run = Run {
        setting,
        round,
        began,
        recorder: root,
        seal: seal.map(|seal| seal.hash.clone()),
        recording: folder.hash_of(&format!("{name}.dat")).map_err(Failure::bad)?,
        troubles,
        put_back: is_back,
        others,
        rows,
    };
    folder.write_run(name, &run).map_err(Failure::bad)
}

fn plan_of(settings: &Settings, kernel: &Path) -> Result<Planned, Failure> {
    let nothing =
        settings.kernel.is_empty() && settings.groups.is_empty() && settings.machine.is_empty();
    if nothing {
        return Ok(Planned::default());
    }
    Ok(plan(settings, &kernel.to_string_lossy(), false, Path::new("/"))?)
}

/// Runs `schedtwin record`; the number of its process, and what could not be set.
fn record(
    folder: &Folder,
    plan: &Plan,
    settings: &Settings,
    recording: &Path,
) -> Result<(u32, Vec<String>), Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::bad(format!("failed to find the own program: {error}")))?;
    let mut recorder = Command::new(&own);
    recorder.args(["record", "--bare", "--buffer", "16384", "-o"]).arg(recording).arg("--");
    let here = matches!((&plan.work, plan.runner), (Work::File, Runner::BuiltIn));
    match (&plan.work, plan.runner) {
        (Work::File, Runner::BuiltIn) => {
            recorder.arg(&own).args(["live", "perform", "-w"]).arg(folder.join("work.json"));
            for setting in &settings.threads {
                recorder.args(["--set", &setting.to_string()]);
            }
        }
        (Work::File, Runner::RtApp) => {
            recorder.arg("rt-app").arg(folder.join("work.json"));
        }
        (Work::Command(command), _) => {
            recorder.arg(&own).args(["live", "perform"]);
            for setting in settings.threads.iter().filter(|setting| setting.threads == "*") {
                recorder.args(["--set", &setting.to_string()]);
            }
            recorder.arg("--").args(command);
        }
    }
    recorder.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| Failure::bad(format!("failed to record: {error}"));
    let mut child = recorder.spawn().map_err(failed)?;
    let root = child.id();
    let mut watched: Vec<_> = settings.threads.clone();
    if !matches!(plan.work, Work::File) {
        watched.retain(|setting| setting.threads != "*");
    }
    let mut refused = Vec::new();
    if !here && !watched.is_empty() {
        set_while_it_runs(&mut child, &watched, &mut refused).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::bad(format!("the recording failed: {}", said.trim())));
    }
    refused.sort();
    refused.dedup();
    Ok((root, refused))
}

/// Gives threads their settings as they appear. They end with the work, so nothing has to be put back.
fn set_while_it_runs(
    child: &mut Child,
    settings: &[schedtwin_workload::ThreadSetting],
    refused: &mut Vec<String>,
) -> std::io::Result<()> {
    let root = child.id();
    while child.try_wait()?.is_none() {
        let mut planned = Planned::default();
        thread_changes(settings, Some(root), &mut planned);
        refused.append(&mut planned.refused);
        if let Err(why) = Applied::make_unjournalled(&planned) {
            refused.push(why);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// The figures of a recording, and the CPU time of others.
fn rows_of(
    folder: &Folder,
    plan: &Plan,
    recording: &Path,
    root: u32,
) -> Result<(Rows, f64), Failure> {
    let counted = match plan.work {
        Work::File => Counted::Classes(classes_of(folder)?),
        Work::Command(_) => Counted::Descendants(root),
    };
    of_recording(recording, &counted)
        .map_err(|fault| Failure::bad(format!("{}: {fault}", recording.display())))
}

/// The classes of an rt-app file's threads.
pub fn classes_of(folder: &Folder) -> Result<BTreeSet<String>, Failure> {
    let path = folder.join("work.json");
    let workload = Workload::from_path_or_name(&path.to_string_lossy())?;
    let code: Code = workload
        .code(&schedtwin_live::runner::this_host())
        .ok_or_else(|| Failure::bad("it is no rt-app file"))??;
    Ok(code.tasks.iter().map(|task| class_of(&task.name).to_owned()).collect())
}
