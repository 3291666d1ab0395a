// SPDX-License-Identifier: GPL-2.0-or-later
//! One number for a kernel: how it does a suite of work, beside a baseline that has 100.
//!
//! # Idea
//!
//! A search for a better scheduler climbs whatever number it is given, and finds every way to raise it. So the number is a geometric
//! mean over machines, workloads and seeds of how many times better each measure is ([`judge`]), and candidates that break a limit
//! have the worst one, 0, with the reason. Which machine, which length and which phase a run has is drawn by its seed ([`suite`]).
//!
//! ```text
//! gain(measure, run) = ln(times better than the baseline's run of the same seed), within +- ln(cap)
//! score              = 100 * exp(weighted mean of the gains over jobs, measures and runs)
//! ```
//!
//! The same bytes everywhere: sums go in the order of the file and of the seeds, `exp` and `ln` are libm's, and a score is rounded to
//! thousandths. Neither threads nor other candidates change it.
//!
//! # Racing
//!
//! All jobs run their first seed, then their second, and so on ([`race`]). A candidate that breaks a limit is over at once: its score
//! is 0 whatever else it would do. Gains are bounded by the cap, so that after each round the least and the greatest score
//! that can still come are known, without any assumption; a candidate that cannot reach the score to beat is over too. Only a race
//! between candidates estimates, and says so.
//!
//! ```
//! use schedtwin_lab::{Progress, score::{self, Candidate, Conditions}};
//! let mut suite = score::load("laptop").unwrap();
//! suite.seeds = 1;
//! suite.jobs.truncate(1);
//! let prepared = score::Prepared::of(suite).unwrap();
//! let candidates = [Candidate::named("linux-7.3"), Candidate::named("linux-7.3:hzz=1")];
//! let scores = score::score(&prepared, &candidates, &Conditions::default(), &Progress::new()).unwrap().unwrap();
//! assert_eq!((scores[0].score, scores[1].score), (100.0, 0.0));
//! ```

pub mod judge;
pub mod observed;
mod prepare;
pub mod race;
mod read;
#[cfg(test)]
mod red_team;
pub mod suite;

pub use prepare::{Baseline, Prepared};
pub use race::{Candidate, Conditions, Outcome, Scored, score};
pub use read::{is_path, load, read};
pub use suite::{Suite, list, names, source};

/// The score of a candidate that breaks a limit.
pub const WORST: f64 = 0.0;

/// A number rounded to thousandths.
pub(crate) fn thousandths(number: f64) -> f64 {
    (1000.0 * number).round() / 1000.0
}

/// The score of a gain, in thousandths.
pub fn of_gain(gain: f64) -> f64 {
    thousandths(100.0 * libm::exp(gain))
}
