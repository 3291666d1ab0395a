// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin live`: predicts what settings of this machine would do, then measures it.
//!
//! 1. *record*, first: the machine describes itself, all settings are tried, and the work is recorded under the first one
//!    (`basis`).
//! 2. *predict*: the costs of the machine are measured in the basis; the twin runs the rt-app file, or replays each
//!    recording of the basis, under every setting. The figures are sealed.
//! 3. *record*, second: rounds of A, B, ... are recorded, so that what drifts drifts for all.
//! 4. *judge*: `schedtwin_live::judge` has the rule.
//!
//! A recording is made by `schedtwin record`, a process of its own; settings hold around it and are put back, also when
//! this process is killed (`schedtwin_live::settings`).

mod measure;
pub mod perform;
mod predict;
mod trial;

use crate::arguments::{
    LiveAction, LiveFolder, LiveJudge, LivePredict, LiveRecord, LiveRun, LiveWork, RunnerArgument,
};
use crate::capture;
use crate::failure::Failure;
use crate::output::{print, shown, tell};
use crate::settings::parse;
use schedtwin_live::folder::{Folder, Plan, Run, Runner, Work};
use schedtwin_live::judge::{Counts, Method, control, floor, judge as judge_rows};
use schedtwin_live::report::{Judgement, OfSetting};
use schedtwin_live::rows::Rows;
use schedtwin_workload::Workload;

/// The largest rt-app file.
const WORK_BYTES_MAX: u64 = 64 << 20;

/// Of a quiet machine unrelated threads take at most so much of one CPU, %.
const QUIET_PCT: f64 = 5.0;

pub fn live(action: LiveAction) -> Result<(), Failure> {
    match action {
        LiveAction::Run(arguments) => run(&arguments),
        LiveAction::Record(arguments) => record(&arguments),
        LiveAction::Predict(LivePredict { folder, twin }) => {
            predict::predict(&opened(&folder), &twin, folder.quiet)
        }
        LiveAction::Judge(arguments) => judge(&arguments),
        LiveAction::Perform(arguments) => perform::perform(&arguments),
    }
}

fn opened(folder: &LiveFolder) -> Folder {
    Folder::new(&folder.output)
}

fn run(arguments: &LiveRun) -> Result<(), Failure> {
    let folder = opened(&arguments.folder);
    let quiet = arguments.folder.quiet;
    begin(&folder, &arguments.work, quiet)?;
    measure::basis(&folder, quiet)?;
    predict::predict(&folder, &arguments.twin, quiet)?;
    measure::measure(&folder, quiet)?;
    judged(&folder, arguments.json)
}

fn record(arguments: &LiveRecord) -> Result<(), Failure> {
    let folder = opened(&arguments.folder);
    let quiet = arguments.folder.quiet;
    let gives_work = arguments.work.workload.is_some() || !arguments.work.command.is_empty();
    if !folder.has("plan.json") {
        begin(&folder, &arguments.work, quiet)?;
        return measure::basis(&folder, quiet);
    }
    if gives_work {
        return Err(Failure::bad(format!(
            "{} is planned already: leave the work out to measure it, or give another folder with -o",
            shown(&folder.join("plan.json"))
        )));
    }
    let plan = folder.plan().map_err(Failure::bad)?;
    match folder.read_seal().map_err(Failure::bad)? {
        Some(_) => {
            trial::try_all(&folder, &plan.settings, quiet)?;
            measure::measure(&folder, quiet)
        }
        None if folder.check_whole("basis", &plan).is_err() => {
            trial::try_all(&folder, &plan.settings, quiet)?;
            measure::basis(&folder, quiet)
        }
        None => Err(Failure::bad(
            "the first setting is recorded: now `schedtwin live predict`, then this again",
        )),
    }
}

/// Makes the plan and its folder; everything that can be known to be wrong is told here, also what the machine refuses.
fn begin(folder: &Folder, work: &LiveWork, quiet: bool) -> Result<(), Failure> {
    if folder.has("plan.json") {
        return Err(Failure::bad(format!(
            "{} is there: give another folder with -o",
            shown(&folder.join("plan.json"))
        )));
    }
    if work.b.is_empty() {
        return Err(Failure::bad("give at least one setting with --b, as --b 'nice hogs=10'"));
    }
    let mut settings = vec![work.a.clone()];
    settings.extend(work.b.iter().cloned());
    let control = (!work.control.trim().is_empty()).then(|| {
        settings.push(work.control.clone());
        settings.len() - 1
    });
    let parsed = settings.iter().map(|line| parse(line)).collect::<Result<Vec<_>, _>>()?;
    let planned = match &work.workload {
        Some(path) => {
            let text = crate::bounded::read_to_string(path, WORK_BYTES_MAX)
                .map_err(|error| Failure::of_file("read", path, &error))?;
            let workload = Workload::from_path_or_name(&path.to_string_lossy())?;
            for setting in &parsed {
                workload.with_thread_settings(&setting.threads)?;
            }
            workload.check_that_it_ends()?;
            folder.write("work.json", &text).map_err(Failure::bad)?;
            Work::File
        }
        None if work.command.is_empty() => {
            return Err(Failure::bad("give an rt-app file with -w FILE, or a command behind --"));
        }
        None => Work::Command(work.command.clone()),
    };
    let runner = match work.runner {
        RunnerArgument::Schedtwin => Runner::BuiltIn,
        RunnerArgument::RtApp => Runner::RtApp,
    };
    let name = match &work.workload {
        Some(path) => shown(path),
        None => work.command.join(" "),
    };
    capture::describe(&folder.join("."))?;
    trial::try_all(folder, &settings, quiet)?;
    let runs = work.runs as usize;
    let plan = Plan { name, work: planned, runner, runs, settings, control };
    folder.write_plan(&plan).map_err(Failure::bad)
}

fn judge(arguments: &LiveJudge) -> Result<(), Failure> {
    judged(&opened(&arguments.folder), arguments.json)
}

fn judged(folder: &Folder, json: bool) -> Result<(), Failure> {
    let plan = folder.plan().map_err(Failure::bad)?;
    folder.check_whole("measured", &plan).map_err(Failure::bad)?;
    let measured = folder.runs("measured").map_err(Failure::bad)?;
    let prediction = folder.check_seal(&measured).map_err(Failure::bad)?;
    let seal = folder.read_seal().map_err(Failure::bad)?.expect("it was checked");
    let of = |setting: usize| -> Vec<Rows> {
        let runs = measured.iter().filter(|(_, run)| run.setting == setting);
        runs.map(|(_, run)| run.rows.clone()).collect()
    };
    let a = of(0);
    if a.is_empty() || prediction.settings.len() != plan.settings.len() {
        return Err(Failure::bad("nothing is measured: `schedtwin live record`"));
    }
    let mut settings = Vec::new();
    for (at, spelled) in plan.settings.iter().enumerate().skip(1) {
        let (b, predicted) = (of(at), &prediction.settings[at]);
        // A run that was cut short is in no pair.
        let pairs = a.len().min(b.len());
        let both = [&a[..pairs], &b[..pairs]];
        let figures = [&prediction.settings[0].runs[..], &predicted.runs[..]];
        let ended = folder.ended(at).map_err(Failure::bad)?;
        let judges = ended.is_none();
        settings.push(OfSetting {
            setting: parse(spelled)?.to_string(),
            ended,
            method: predicted.method,
            notes: predicted.notes.clone(),
            is_control: plan.control == Some(at),
            judged: if judges { judge_rows(both, figures, predicted.method) } else { Vec::new() },
            floor: if judges { Counts::of(&floor(both)) } else { Counts::default() },
        });
    }
    let mut troubles: Vec<String> =
        measured.iter().flat_map(|(_, run): &(String, Run)| run.troubles.clone()).collect();
    troubles.sort();
    troubles.dedup();
    troubles.extend(unrelated(&plan, &measured));
    let judgement = Judgement {
        work: plan.name.clone(),
        a: parse(&plan.settings[0])?.to_string(),
        settings,
        runs: plan.runs,
        control: control(&a),
        seal: (seal.hash, seal.at),
        troubles,
    };
    let text = judgement.text();
    let value = format!("{:#}\n", judgement.json());
    let written = folder
        .write("judgement.txt", &text)
        .and_then(|()| folder.write("judgement.json", &value))
        .and_then(|()| folder.write("index.html", &judgement.html()));
    written.map_err(Failure::bad)?;
    print(if json { &value } else { &text })?;
    tell(&format!("{} has figures", shown(&folder.join("index.html"))));
    Ok(())
}

/// Unrelated work beside the measurements, if it was so much that it counts.
fn unrelated(plan: &Plan, measured: &[(String, Run)]) -> Option<String> {
    let mean = measured.iter().map(|(_, run)| run.others).sum::<f64>() / measured.len() as f64;
    let has = match plan.work {
        Work::File => "the twin has none of it",
        Work::Command(_) => "the twin has that of the recordings under A",
    };
    (mean > QUIET_PCT).then(|| {
        format!(
            "the machine was not quiet: unrelated threads took {mean:.0} % of a CPU while the work ran; {has}"
        )
    })
}

/// How a work is predicted under a setting.
fn method_of(plan: &Plan, settings: &schedtwin_live::settings::Settings) -> Method {
    if !settings.groups.is_empty() || !settings.machine.is_empty() {
        return Method::None;
    }
    match plan.work {
        Work::File => Method::File,
        Work::Command(_) => Method::Replay,
    }
}
