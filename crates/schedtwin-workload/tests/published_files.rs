// SPDX-License-Identifier: GPL-2.0-or-later
//! Every published rt-app file is read, and runs, waits for a later version, or is refused for the
//! reason that is stated here.
//!
//! The files are not part of this repository; the test says so and passes where they are absent.

mod executor;

use executor::{End, Executor, host};
use schedtwin_types::{Mark, Op};
use schedtwin_workload::Workload;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

enum Expected {
    /// It runs; the end after five simulated seconds, or sooner.
    Runs(End),
    /// It is understood; all that it waits for.
    Waits(&'static [&'static str]),
    /// It means nothing alone; a part of the reason.
    Refused(&'static str),
}

use Expected::{Refused, Runs, Waits};

fn table() -> Vec<(&'static str, Expected)> {
    let no_tasks = "no \"tasks\" section: the file holds only";
    let old = "is written in the language of rt-app before 2014";
    vec![
        ("rt-app/browser-long.json", Runs(End::Time)),
        ("rt-app/browser-short.json", Runs(End::Time)),
        ("rt-app/cpufreq_governor_efficiency__calibration.json", Runs(End::Finished)),
        ("rt-app/cpufreq_governor_efficiency__dvfs.json", Runs(End::Time)),
        ("rt-app/custom-slice.json", Runs(End::Finished)),
        ("rt-app/merge__global.json", Refused(no_tasks)),
        ("rt-app/merge__resources.json", Refused(no_tasks)),
        ("rt-app/merge__thread0.json", Refused(old)),
        ("rt-app/merge__thread1.json", Refused(old)),
        ("rt-app/merge__thread2.json", Refused(old)),
        ("rt-app/merge__thread3.json", Refused(old)),
        ("rt-app/mp3-long.json", Runs(End::Time)),
        ("rt-app/mp3-short.json", Runs(End::Time)),
        ("rt-app/spreading-tasks.json", Runs(End::Time)),
        ("rt-app/template.json", Runs(End::Time)),
        ("rt-app/tutorial__example1.json", Runs(End::Finished)),
        ("rt-app/tutorial__example10.json", Runs(End::Finished)),
        ("rt-app/tutorial__example11.json", Runs(End::Finished)),
        ("rt-app/tutorial__example2.json", Runs(End::Finished)),
        ("rt-app/tutorial__example3.json", Runs(End::Finished)),
        ("rt-app/tutorial__example4.json", Runs(End::Time)),
        ("rt-app/tutorial__example5.json", Runs(End::Finished)),
        ("rt-app/tutorial__example6.json", Waits(&["memory-bound work"])),
        ("rt-app/tutorial__example7.json", Runs(End::Time)),
        ("rt-app/tutorial__example8.json", Runs(End::Finished)),
        ("rt-app/tutorial__example9.json", Runs(End::Finished)),
        ("rt-app/video-long.json", Runs(End::Time)),
        ("rt-app/video-short.json", Runs(End::Time)),
        ("uclamp-scenarios/juno-scenario1.json", Runs(End::Time)),
        ("uclamp-scenarios/juno-scenario2.json", Runs(End::Time)),
        ("uclamp-scenarios/juno-scenario3.json", Runs(End::Time)),
        ("uclamp-scenarios/juno-scenario4.json", Runs(End::Finished)),
        ("uclamp-scenarios/juno-scenario5.json", Runs(End::Time)),
        ("workload-automation/browser-long.json", Runs(End::Time)),
        ("workload-automation/browser-short.json", Runs(End::Time)),
        ("workload-automation/camera-long.json", Runs(End::Time)),
        ("workload-automation/camera-short.json", Runs(End::Time)),
        ("workload-automation/mp3-long.json", Runs(End::Time)),
        ("workload-automation/mp3-short.json", Runs(End::Time)),
        ("workload-automation/spreading-tasks.json", Runs(End::Time)),
        ("workload-automation/taskset.json", Refused(old)),
        ("workload-automation/video-long.json", Runs(End::Time)),
        ("workload-automation/video-short.json", Runs(End::Time)),
    ]
}

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/workloads/rtapp");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: the published rt-app files are not there ({})", folder.display());
    None
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for part in std::fs::read_dir(folder).unwrap() {
        let part = part.unwrap();
        for file in std::fs::read_dir(part.path()).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".json") {
                found.push(format!("{}/{name}", part.file_name().to_string_lossy()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_published_file_is_in_the_table() {
    let Some(folder) = folder() else { return };
    let mut listed: Vec<_> = table().into_iter().map(|(name, _)| name.to_owned()).collect();
    listed.sort();
    assert_eq!(files(&folder), listed);
}

#[test]
fn every_published_file_does_what_the_table_says() {
    let Some(folder) = folder() else { return };
    let mut wrong = Vec::new();
    for (name, expected) in table() {
        let read = Workload::from_path_or_name(&folder.join(name).to_string_lossy());
        let found = match &read {
            Err(faults) => format!("refused: {faults}"),
            Ok(workload) => match workload.instantiate(&host(8), 1) {
                Err(waits) => format!("waits: {waits}"),
                Ok(_) => {
                    let mut executor = Executor::with_delays(workload, &host(8), 7, 20_000);
                    let end = executor.run(5_000_000_000, 2_000_000, |_, _, _, _| {});
                    format!("runs: {end:?} with {} operations", executor.ops)
                }
            },
        };
        let right = match &expected {
            Runs(end) => found.starts_with(&format!("runs: {end:?} ")),
            Waits(features) => {
                found.starts_with("waits: ")
                    && features.iter().all(|f| found.contains(&format!("is not modelled: {f}")))
            }
            Refused(reason) => found.starts_with("refused: ") && found.contains(reason),
        };
        if !right {
            wrong.push(format!("{name}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_running_file_with_a_duration_ends_after_it() {
    let Some(folder) = folder() else { return };
    for (name, expected) in table() {
        if !matches!(expected, Runs(_)) {
            continue;
        }
        let workload = Workload::from_path_or_name(&folder.join(name).to_string_lossy()).unwrap();
        for seed in 1..4 {
            let short = workload.clone().with_duration(300_000_000);
            let mut executor = Executor::with_delays(&short, &host(8), seed, 50_000);
            let end = executor.run(3_000_000_000, 2_000_000, |_, _, _, _| {});
            assert_eq!(end, End::Finished, "{name}, seed {seed}");
        }
    }
}

/// The chains of wakeups are whole: the last thread of each works as often as its first one wakes.
#[test]
fn the_published_phone_workloads_are_alive_to_the_end() {
    let Some(folder) = folder() else { return };
    // (file, tasks, jobs in six seconds)
    let cases: [(&str, &[&str], std::ops::RangeInclusive<u32>); 5] = [
        ("rt-app/mp3-short.json", &["AudioOut", "AudioTrack", "mp3.decoder", "OMXCall"], 198..=200),
        ("rt-app/browser-short.json", &["BrowserSub1", "BrowserSub2"], 205..=210),
        (
            "rt-app/browser-short.json",
            &["BrowserDisplay", "Binder-dummy", "Binder-display", "Display"],
            185..=195,
        ),
        (
            "rt-app/video-short.json",
            &["CodecLooper1", "CodecLooper2", "CodecLooper3", "OMXCallbackDisp2"],
            175..=180,
        ),
        (
            "workload-automation/camera-short.json",
            &["FaceDetection", "EncodeBuffer", "ThumbnailBase3"],
            178..=180,
        ),
    ];
    for (name, tasks, expected) in cases {
        let workload = Workload::from_path_or_name(&folder.join(name).to_string_lossy()).unwrap();
        let mut executor = Executor::with_delays(&workload, &host(8), 1, 50_000);
        let mut jobs = BTreeMap::<String, u32>::new();
        executor.run(6_000_000_000, 2_000_000, |_, thread, op, programs| {
            if matches!(op, Op::Mark(Mark::JobDone { .. })) {
                *jobs.entry(programs.task_name(thread)).or_default() += 1;
            }
        });
        for task in tasks {
            let count = jobs.get(*task).copied().unwrap_or(0);
            assert!(expected.contains(&count), "{name}: {task} did {count} jobs");
        }
    }
}
