// SPDX-License-Identifier: GPL-2.0-or-later
//! What-if in CI: the recorded pairs beside the twin, and a prophet that must fail.

use schedtwin_conformance::l2::what_if::{Pair, Sides, judge, pairs_dir, pairs_in};
use schedtwin_live::judge::Counts;

/// Runs of the twin for each side; the command has 40.
const SEEDS: u64 = 8;
/// As in the command's first table.
const SURE: f64 = 0.001;

/// The pairs that differ by a setting or a patch, not by the release.
fn pairs_of_settings() -> Vec<Pair> {
    let pairs = pairs_in(&pairs_dir()).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(pairs.len() >= 20, "{} pairs", pairs.len());
    pairs.into_iter().filter(|pair| !pair.is_of_releases()).collect()
}

/// The twin is right about most of what a setting does, and the opposite of what it says is wrong.
#[test]
fn settings_are_predicted_and_their_opposite_is_not() {
    let (mut right, mut wrong) = (Counts::default(), Counts::default());
    for pair in pairs_of_settings() {
        let sides = pair.sides(SEEDS).unwrap_or_else(|why| panic!("{}: {why}", pair.name));
        assert!(sides.recorded.iter().all(|runs| runs.len() == 8), "{}", pair.name);
        right = right.plus(Counts::of(&judge(&sides, SURE)));
        let [a, b] = sides.twin;
        let opposite = Sides { recorded: sides.recorded, twin: [b, a] };
        wrong = wrong.plus(Counts::of(&judge(&opposite, SURE)));
    }
    let [sure, sign, within] = right.sure();
    assert!(sure >= 60, "{right:?}");
    assert!(sign * 100 >= sure * 88 && within * 100 >= sure * 70, "{right:?}");
    let [sure, sign, _] = wrong.sure();
    assert!(sign * 100 <= sure * 15, "{wrong:?}");
}

/// What was said before the recordings is in the repository, of every pair.
#[test]
fn predictions_made_before_are_kept() {
    let text = std::fs::read_to_string(pairs_dir().join("predicted.csv")).expect("a file");
    for pair in pairs_of_settings() {
        let lines = text.lines().filter(|line| line.starts_with(&format!("{},", pair.name)));
        assert!(lines.count() > 20, "{}", pair.name);
    }
}
