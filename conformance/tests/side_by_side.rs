// SPDX-License-Identifier: GPL-2.0-or-later
//! L2 in CI: the recordings of the repository beside the twin, with the bars, and twins that must fail them.

use schedtwin_conformance::l2::figures::Figure;
use schedtwin_conformance::l2::scenario::Variant;
use schedtwin_conformance::l2::spread::{Row, Score, compare};
use schedtwin_conformance::l2::workload::BoardWorkload;
use schedtwin_conformance::l2::{
    figures_of_twin, figures_recorded, print_table, read_workload, recordings_dir, recordings_of,
    workloads_in,
};
use std::path::Path;

/// Runs of the twin per workload; the command has 40.
const SEEDS: u64 = 16;
/// Recordings below which least and largest say little.
const RECORDINGS_MIN: usize = 8;

/// A workload and the figures of its recordings.
type Recorded = (BoardWorkload, Vec<Vec<Figure>>);

/// Workloads of a folder whose recordings are there.
fn recorded(folder: &Path, recordings_min: usize) -> Vec<Recorded> {
    let Ok(paths) = workloads_in(folder) else {
        eprintln!("skipped: {} is not there", folder.display());
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in paths {
        let files = recordings_of(&path).expect("the folder can be listed");
        if files.len() < recordings_min {
            eprintln!("skipped {}: {} recordings", path.display(), files.len());
            continue;
        }
        let workload = read_workload(&path).unwrap_or_else(|faults| panic!("{faults}"));
        let figures = figures_recorded(&files, &workload).unwrap_or_else(|fault| panic!("{fault}"));
        found.push((workload, figures));
    }
    found
}

fn against(
    workload: &BoardWorkload,
    recorded: &[Vec<Figure>],
    seeds: u64,
    variant: &Variant,
) -> Vec<Row> {
    let twin = figures_of_twin(workload, seeds, recorded.len() as u64, variant)
        .unwrap_or_else(|faults| panic!("{faults}"));
    compare(recorded, &twin)
}

/// Of all figures together at least 70 % are judged, and of these 90 % are in. And a twin that has something
/// wrong is told from the right one.
#[test]
fn the_twin_is_like_the_recordings_and_wrong_ones_are_not() {
    let recorded = recorded(&recordings_dir(), RECORDINGS_MIN);
    if recorded.is_empty() {
        return;
    }
    let (right, text) = total(&recorded, SEEDS, None);
    assert!(right.passes(), "{right:?}\n{text}");
    for wrong in [
        "linux-6.12:hz=1000",
        "linux-6.12:hz=100",
        "linux-6.12:fair_server.runtime_us=0",
        "rig8:path_costs.percent=300",
    ] {
        let (score, text) = total(&recorded, 4, Some(wrong));
        assert!(!score.passes(), "{wrong} passes: {score:?}\n{text}");
    }
}

/// Those of 7.3: at a tick of 1 ms they are told from the twin, which is nearer.
#[test]
fn the_twin_of_7_3_is_nearer_than_a_wrong_one() {
    let recorded = recorded(&recordings_dir().join("../linux-7.3/side-by-side"), RECORDINGS_MIN);
    if recorded.is_empty() {
        return;
    }
    let (right, text) = total(&recorded, 4, Some("linux-7.3"));
    assert!(right.inside_share() > 0.75, "{right:?}\n{text}");
    for wrong in ["linux-7.3:hz=1000", "linux-7.3:fair_server.runtime_us=0"] {
        let (score, text) = total(&recorded, 4, Some(wrong));
        assert!(
            score.inside_share() < right.inside_share(),
            "{wrong}: {score:?} {right:?}\n{text}"
        );
    }
}

/// teo and menu do the same where sleeps are long or ended by timers, as in most work. Where they are not, the
/// wrong one costs a fifth of the figures. (The right one is below the bar there too, for the costs of paths.)
#[test]
fn the_wrong_idle_governor_shows_in_short_sleeps() {
    let recorded = recorded(&recordings_dir().join("../controls"), 4);
    if recorded.is_empty() {
        return;
    }
    let (right, text) = total(&recorded, 4, None);
    let (wrong, _) = total(&recorded, 4, Some("linux-6.12:cpuidle=menu"));
    assert!(!wrong.passes(), "{wrong:?}");
    assert!(right.inside_share() > 0.55, "{right:?}\n{text}");
    assert!(wrong.inside_share() + 0.1 < right.inside_share(), "{wrong:?} {right:?}\n{text}");
}

/// The score of all of them with a twin of one's choice, and what is out.
fn total(recorded: &[Recorded], seeds: u64, spec: Option<&str>) -> (Score, String) {
    let mut variant = Variant::default();
    if let Some(spec) = spec {
        variant.add(spec).expect("a spelling");
    }
    let mut text = String::new();
    let scores = recorded.iter().map(|(workload, figures)| {
        let rows = against(workload, figures, seeds, &variant);
        text += &format!("{}: {:?}\n{}", workload.name, Score::of(&rows), print_table(&rows, true));
        Score::of(&rows)
    });
    let counting: Vec<Score> = scores.filter(|score| score.counts()).collect();
    (counting.into_iter().fold(Score::default(), Score::plus), text)
}
