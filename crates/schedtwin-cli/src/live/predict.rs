// SPDX-License-Identifier: GPL-2.0-or-later
//! What the twin says of every setting: from the recordings of the first one and the machine's description alone.

use super::measure::classes_of;
use super::method_of;
use crate::arguments::LiveTwin;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::{own_program, parse};
use schedtwin_engine::Scenario;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_input::Diagnostics;
use schedtwin_lab::verdict::{self, Troubles};
use schedtwin_live::folder::{Folder, Plan, Predicted, Prediction, Work};
use schedtwin_live::judge::Method;
use schedtwin_live::rows::{Rows, beside, descendants, of_twin, replayed};
use schedtwin_live::settings::Settings;
use schedtwin_machine::Machine;
use schedtwin_types::Ns;
use schedtwin_workload::Workload;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

pub fn predict(folder: &Folder, twin: &LiveTwin, quiet: bool) -> Result<(), Failure> {
    let plan = folder.plan().map_err(Failure::bad)?;
    folder.check_whole("basis", &plan).map_err(Failure::bad)?;
    let basis = folder.runs("basis").map_err(Failure::bad)?;
    let Some((first, _)) = basis.first() else {
        return Err(Failure::bad("nothing is recorded: `schedtwin live record`"));
    };
    let mut inputs = vec!["plan.json".to_owned()];
    if twin.machine.is_none() {
        calibrate(folder, &format!("{first}.dat"))?;
        inputs.push("machine.toml".to_owned());
    }
    inputs.extend(twin.kernel.is_none().then(|| "kernel.toml".to_owned()));
    inputs.extend((plan.work == Work::File).then(|| "work.json".to_owned()));
    inputs.extend(basis.iter().map(|(name, _)| format!("{name}.dat")));
    let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let machine = twin.machine.clone().unwrap_or_else(|| at("machine.toml"));
    let kernel = twin.kernel.clone().unwrap_or_else(|| at("kernel.toml"));
    let works = works(folder, &plan, &basis, &machine)?;
    let mut settings = Vec::new();
    for spelled in &plan.settings {
        let parsed = parse(spelled)?;
        if !quiet {
            tell(&format!("predicts: {parsed}"));
        }
        settings.push(of_setting(&plan, &parsed, &works, [&machine, &kernel])?);
    }
    let version =
        format!("{} (model {})", env!("CARGO_PKG_VERSION"), schedtwin_engine::MODEL_VERSION);
    let hashed = inputs.into_iter().map(|name| Ok((name.clone(), folder.hash_of(&name)?)));
    let inputs = hashed.collect::<Result<Vec<_>, String>>().map_err(Failure::bad)?;
    let seal = folder.seal(&Prediction { version, inputs, settings }).map_err(Failure::bad)?;
    if !quiet {
        tell(&format!("sealed: blake3 {}", seal.hash));
    }
    Ok(())
}

/// A run of the work, for the twin.
struct Run {
    workload: Workload,
    /// The recorded work beside it, which is no part of the workload.
    others: Option<Workload>,
    seed: u64,
    /// From when on it is measured.
    from: Ns,
    /// Of a recording: whose threads get settings.
    pids: Option<BTreeSet<u32>>,
}

struct Works {
    runs: Vec<Run>,
    classes: BTreeSet<String>,
}

fn works(
    folder: &Folder,
    plan: &Plan,
    basis: &[(String, schedtwin_live::folder::Run)],
    machine: &str,
) -> Result<Works, Failure> {
    let machine = Machine::load(machine)?;
    if plan.work == Work::File {
        let path = folder.join("work.json");
        let workload = Workload::from_path_or_name(&path.to_string_lossy())?;
        let classes = classes_of(folder)?;
        let recorded = basis.iter().map(|(name, _)| folder.join(&format!("{name}.dat")));
        let others: Vec<Workload> = recorded
            .map(|path| beside(&path, &machine, &classes))
            .collect::<Result<_, Diagnostics>>()?;
        let with = |(seed, others): (u64, &Workload)| Run {
            workload: workload.clone(),
            others: Some(others.clone()),
            seed,
            from: 0,
            pids: None,
        };
        let runs = (1..=plan.runs as u64).zip(others.iter().cycle()).map(with).collect();
        return Ok(Works { runs, classes });
    }
    let mut runs = Vec::new();
    for (at, (name, run)) in basis.iter().enumerate() {
        let path = folder.join(&format!("{name}.dat"));
        let (workload, from) = replayed(&path, &machine)?;
        let pids = descendants(&path, run.recorder)
            .map_err(|fault| Failure::bad(format!("{}: {fault}", path.display())))?;
        runs.push(Run { workload, others: None, seed: at as u64 + 1, from, pids: Some(pids) });
    }
    let keys = basis.iter().flat_map(|(_, run)| run.rows.keys());
    let classes = keys.filter(|key| key.class != schedtwin_live::rows::WHOLE);
    Ok(Works { runs, classes: classes.map(|key| key.class.clone()).collect() })
}

fn of_setting(
    plan: &Plan,
    settings: &Settings,
    works: &Works,
    [machine, kernel]: [&str; 2],
) -> Result<Predicted, Failure> {
    let method = method_of(plan, settings);
    if method == Method::None {
        let notes = vec!["the twin has no such setting for this work".to_owned()];
        return Ok(Predicted { method, notes, runs: Vec::new() });
    }
    let kernel = settings.kernel_spec(kernel);
    let mut notes = Vec::new();
    let clamps = |setting: &schedtwin_workload::ThreadSetting| {
        matches!(
            setting.value,
            schedtwin_workload::ThreadValue::UtilMin(_)
                | schedtwin_workload::ThreadValue::UtilMax(_)
        )
    };
    let file = KernelFile::load(&kernel)?;
    if !file.code.is_empty() {
        let message = "a prediction is of a built-in kernel: C of a tree runs in a process that could not seal it";
        return Err(Failure::bad(message));
    }
    if settings.threads.iter().any(clamps) && !file.config.uclamp.is_compiled_in() {
        notes.push("the kernel has no utilisation clamps".to_owned());
    }
    let mut troubles = Troubles::default();
    let runs: Vec<Rows> = works
        .runs
        .iter()
        .map(|run| {
            let workload = match &run.pids {
                Some(pids) => run.workload.with_settings_of_pids(&settings.threads, pids),
                None => run.workload.with_thread_settings(&settings.threads),
            };
            let workload = match &run.others {
                Some(others) => workload.map(|workload| workload.beside(others.clone())),
                None => workload,
            };
            let scenario = Scenario::with_workload(machine, &kernel, workload, None)?;
            let (rows, trouble) = of_twin(&scenario, run.seed, &works.classes, run.from);
            troubles.add(run.seed, trouble);
            Ok(rows)
        })
        .collect::<Result<_, Diagnostics>>()?;
    // Above the figures: what the twin expects to break.
    for broken in &troubles.broken {
        let (property, runs) = (broken.worst.property, broken.runs);
        let what = verdict::words(&broken.worst);
        notes.push(format!("predicted to break {property} in {runs} runs: {what}"));
    }
    Ok(Predicted { method, notes, runs })
}

/// Measures the costs of this machine in a recording, and writes them into its description.
fn calibrate(folder: &Folder, recording: &str) -> Result<(), Failure> {
    let output = Command::new(own_program()?)
        .args(["calibrate", "machine"])
        .arg(folder.join(recording))
        .arg("-m")
        .arg(folder.join("machine.toml"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::bad(format!("failed to calibrate: {error}")))?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    folder.write("calibration.txt", &told).map_err(Failure::bad)
}
