// SPDX-License-Identifier: GPL-2.0-or-later
//! Every scenario that was ever a finding runs in every way. `hunt/found` holds them, made smaller.

use schedtwin_engine::Scenario;
use schedtwin_hunt::check::{Outcome, check, once};
use schedtwin_hunt::scenario::{Texts, files};
use std::path::Path;

#[test]
fn no_finding_comes_back() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    let mut wrong = String::new();
    for file in files(&found).expect("hunt/found") {
        let texts = Texts::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().expect("a temporary folder");
        // A scenario may be refused since: what a user may ask for has limits, and answers instead of panics.
        match check(&texts, folder.path()) {
            Outcome::Ran(..) | Outcome::Refused(_) => {}
            bad => wrong.push_str(&format!("{}: {bad:?}\n", file.display())),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A few scenarios of the first seeds, so that the way from seed to verdict is tested with everything else.
#[test]
fn the_first_seeds_run() {
    let mut ran = 0;
    for seed in 1..=12 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let texts = Texts::generate(&mut schedtwin_hunt::tape::Tape::of_seed(seed));
        match check(&texts, folder.path()) {
            Outcome::Ran(..) => ran += 1,
            Outcome::Refused(_) | Outcome::Cut => {}
            Outcome::Finding(finding) => panic!("seed {seed}: {finding}"),
        }
    }
    assert!(ran >= 6, "{ran} of 12 ran");
}

/// An interrupt came at the very instant at which a CPU had paid its way into an idle state: the way into the state was then
/// counted as time awake.
#[test]
fn an_interrupt_at_the_end_of_the_way_to_idle_leaves_its_time_idle() {
    let scenario = Scenario::new("pixel9", "linux-6.6", "jankbench", Some(140_000_000));
    once(&scenario.expect("built in"), 1);
}
