// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings under settings: the basis of a prediction, and what it is judged by.

use super::perform::{performer, sets};
use super::trial;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::{parse, watcher};
use schedtwin_live::folder::{Folder, Plan, Run, Runner, Seal, Work, now};
use schedtwin_live::rapl::Rapl;
use schedtwin_live::rows::{Counted, Key, Rows, command_ended, of_recording};
use schedtwin_live::settings::{Applied, Planned, Settings, plan, thread_changes};
use schedtwin_workload::code::Code;
use schedtwin_workload::{Workload, class_of, unmatched};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time between two looks for threads that get a setting.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Records the first setting.
pub fn basis(folder: &Folder, quiet: bool) -> Result<(), Failure> {
    let plan = folder.plan().map_err(Failure::bad)?;
    // What an interrupted one has done stays.
    for (name, setting, round) in Folder::names("basis", &plan) {
        if !folder.is_done(&name) {
            let run = Due { setting, round, name: &name, seal: None };
            let ended = one(folder, &plan, &run, quiet)?;
            ended.map_or(Ok(()), |why| Err(ended_under_a(&plan, &why)))?;
        }
    }
    Ok(())
}

fn ended_under_a(plan: &Plan, why: &str) -> Failure {
    let a =
        parse(&plan.settings[0]).map_or_else(|_| String::new(), |settings| settings.to_string());
    Failure::bad(format!("nothing can be compared with the first setting ({a}): {why}"))
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
    let basis = folder.runs("basis").map_err(Failure::bad)?;
    let known: BTreeSet<&String> = basis.iter().flat_map(|(_, run)| &run.troubles).collect();
    for (name, setting, round) in Folder::names("measured", &plan) {
        if folder.is_done(&name) || folder.ended(setting).map_err(Failure::bad)?.is_some() {
            continue;
        }
        let run = Due { setting, round, name: &name, seal: Some((&seal, &known)) };
        let Some(why) = one(folder, &plan, &run, quiet)? else { continue };
        if setting == 0 {
            return Err(ended_under_a(&plan, &why));
        }
        tell(&format!("{}: not judged: {why}", plan.settings[setting]));
        folder.end(setting, &why).map_err(Failure::bad)?;
    }
    Ok(())
}

/// A run that is due.
struct Due<'a> {
    setting: usize,
    round: usize,
    name: &'a str,
    /// The seal of the prediction, and the troubles that the work had without any other setting.
    seal: Option<(&'a Seal, &'a BTreeSet<&'a String>)>,
}

/// Records one run under a setting. Returns why the setting has to end: it did not reach the work as it was asked.
fn one(folder: &Folder, plan: &Plan, run: &Due, quiet: bool) -> Result<Option<String>, Failure> {
    let Due { setting, round, name, seal } = *run;
    let settings = parse(&plan.settings[setting])?;
    if !quiet {
        tell(&format!("round {} of {}: {settings}", round + 1, plan.runs));
    }
    let recording = folder.join(&format!("{name}.dat"));
    if let Some(above) = recording.parent() {
        std::fs::create_dir_all(above).map_err(|error| Failure::of_file("make", above, &error))?;
    }
    let planned = planned_of(folder, &settings)?;
    if !planned.refused.is_empty() {
        return Ok(Some(planned.refused.join("; ")));
    }
    let applied = match Applied::make(&planned, &folder.join("journal"), Some(watcher()?)) {
        Ok(applied) => applied,
        Err(why) => return Ok(Some(why)),
    };
    let began = now();
    let rapl = Rapl::begin(Path::new("/"));
    let recorded = record(folder, plan, &settings, &planned, &recording);
    let joules = rapl.and_then(|rapl| rapl.joules());
    let left = applied.undo();
    if !left.is_empty() {
        return Err(Failure::bad(format!(
            "the machine is not as it was, so no further run can be compared: {}",
            left.join("; ")
        )));
    }
    let (root, mut refused) = recorded?;
    refused.extend(trial::taken(folder)?);
    if !refused.is_empty() {
        return Ok(Some(refused.join("; ")));
    }
    let (mut rows, others) = rows_of(folder, plan, &recording, root)?;
    let failed = |fault| Failure::bad(format!("{}: {fault}", recording.display()));
    let ended = command_ended(&recording).map_err(failed)?;
    let mut troubles = Vec::new();
    if let Some(how) = ended.filter(|how| how != "exit status: 0") {
        let how = format!("the work ended with {how}");
        match seal {
            Some((_, known)) if setting != 0 && !known.contains(&how) => {
                return Ok(Some(format!("{how}, as never in the basis")));
            }
            _ => troubles.push(how),
        }
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
        seal: seal.map(|(seal, _)| seal.hash.clone()),
        recording: folder.hash_of(&format!("{name}.dat")).map_err(Failure::bad)?,
        troubles,
        others,
        rows,
    };
    folder.write_run(name, &run).map_err(Failure::bad)?;
    Ok(None)
}

/// The changes of the machine that settings make; those of threads are made when there are some.
pub fn planned_of(folder: &Folder, settings: &Settings) -> Result<Planned, Failure> {
    let of_machine = Settings { threads: Vec::new(), ..settings.clone() };
    if of_machine == Settings::default() {
        return Ok(Planned::default());
    }
    let kernel = folder.join("kernel.toml");
    Ok(plan(&of_machine, &kernel.to_string_lossy(), false, Path::new("/"))?)
}

/// Runs `schedtwin record`; the number of its process, and what threads could not be given.
fn record(
    folder: &Folder,
    plan: &Plan,
    settings: &Settings,
    planned: &Planned,
    recording: &Path,
) -> Result<(u32, Vec<String>), Failure> {
    let performer = performer(planned, Some(&folder.join("refused")))?;
    let mut recorder = Command::new(&performer[0]);
    recorder.args(["record", "--bare", "--buffer", "16384", "-o"]).arg(recording).arg("--");
    recorder.args(&performer);
    let here = matches!((&plan.work, plan.runner), (Work::File, Runner::BuiltIn));
    match (&plan.work, plan.runner) {
        (Work::File, Runner::BuiltIn) => {
            recorder.args(sets(&settings.threads)).arg("-w").arg(folder.join("work.json"));
        }
        (Work::File, Runner::RtApp) => {
            recorder.args([OsString::from("--"), "rt-app".into()]).arg(folder.join("work.json"));
        }
        (Work::Command(command), _) => {
            let of_all = settings.threads.iter().filter(|setting| setting.threads == "*");
            recorder.args(sets(of_all)).arg("--").args(command);
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

/// Gives threads their settings as they appear. They end with the work, so nothing has to be put back. A setting whose
/// threads do not appear is refused.
fn set_while_it_runs(
    child: &mut Child,
    settings: &[schedtwin_workload::ThreadSetting],
    refused: &mut Vec<String>,
) -> std::io::Result<()> {
    let root = child.id();
    let mut seen = BTreeSet::new();
    while child.try_wait()?.is_none() {
        let mut planned = Planned::default();
        thread_changes(settings, Some(root), &mut planned);
        refused.append(&mut planned.refused);
        seen.append(&mut planned.threads);
        if let Err(why) = Applied::make_unjournalled(&planned) {
            refused.push(why);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let lost = unmatched(settings, seen.iter().map(String::as_str));
    let why = "a thread that ends within 20 ms is not seen; `*` reaches all";
    refused.extend(lost.into_iter().map(|lost| format!("{lost} ({why})")));
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
