//! L2 in CI: the recordings of the repository beside the twin, with the bars, and twins that must fail them.

use schedtwin_conformance::l2::figures::Figure;
use schedtwin_conformance::l2::scenario::Variant;
use schedtwin_conformance::l2::spread::{Row, Score, compare};
use schedtwin_conformance::l2::workload::BoardWorkload;
use schedtwin_conformance::l2::{
    figures_of_twin, figures_recorded, print_table, read_workload, recordings_dir, recordings_of,
    workloads_in,
};

/// Runs of the twin per workload; the command has 40.
const SEEDS: u64 = 16;
/// Recordings below which least and largest say little.
const RECORDINGS_MIN: usize = 8;

/// Workloads whose recordings are there, with their figures.
fn recorded() -> Vec<(BoardWorkload, Vec<Vec<Figure>>)> {
    let folder = recordings_dir();
    let Ok(paths) = workloads_in(&folder) else {
        eprintln!("skipped: {} is not there", folder.display());
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in paths {
        let files = recordings_of(&path).expect("the folder can be listed");
        if files.len() < RECORDINGS_MIN {
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
    let recorded = recorded();
    if recorded.is_empty() {
        return;
    }
    let total = |seeds: u64, spec: Option<&str>, only: &str| {
        let mut variant = Variant::default();
        if let Some(spec) = spec {
            variant.add(spec).expect("a spelling");
        }
        let mut text = String::new();
        let chosen = recorded.iter().filter(|(w, _)| only.is_empty() || w.name == only);
        let scores = chosen.map(|(workload, figures)| {
            let rows = against(workload, figures, seeds, &variant);
            text +=
                &format!("{}: {:?}\n{}", workload.name, Score::of(&rows), print_table(&rows, true));
            Score::of(&rows)
        });
        let score = scores.fold(Score::default(), Score::plus);
        (score, text)
    };
    let (right, text) = total(SEEDS, None, "");
    assert!(right.passes(), "{right:?}\n{text}");
    for (wrong, only) in [
        ("linux-6.12:hz=1000", ""),
        ("linux-6.12:hz=100", ""),
        ("linux-6.12:fair_server.runtime_us=0", ""),
        ("rig8:path_costs.percent=300", ""),
        // Where sleeps are long or ended by timers the two governors do the same.
        ("linux-6.12:cpuidle=menu", "short-sleeps"),
    ] {
        if !only.is_empty() && !recorded.iter().any(|(workload, _)| workload.name == only) {
            eprintln!("skipped {wrong}: {only} is not there");
            continue;
        }
        let (score, text) = total(4, Some(wrong), only);
        assert!(!score.passes(), "{wrong} passes: {score:?}\n{text}");
    }
}
