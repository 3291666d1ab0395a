// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class a second time, from its definitions, in exact fractions of 128 bits.
//!
//! **The idea.** The oracles of [`crate::l0`] run the kernel's own C, which needs a kernel tree and shares
//! the kernel's tricks: sums relative to a moving base, divisions avoided by multiplying out, wrapping
//! 64-bit differences, an order of steps. Here the same rules stand once more, as small as the definitions
//! are and without any of these tricks: virtual times are unbounded integers, averages are fractions, a
//! run queue is a plain list, a choice is a search through all. Both get the same operations, and every
//! decision and every virtual time must be equal afterwards.
//!
//! ```text
//!   generator ──► operation ──┬──► schedtwin-kernel ──► its state ─┐
//!   (seed, case)              └──► model in fractions ► its state ─┴─► equal?
//! ```
//!
//! **Where integers round** the model says so: it computes the exact value, rounds as documented, and
//! asserts how far the two may be apart.
//!
//! | what | the kernel's integer | distance from the exact value |
//! |---|---|---|
//! | virtual time of a runtime ([`charge`]), slice (CFS; w: of all) | inverse weight, 32 significant bits, floor | < 1 + exact · (w + 3) / 2³² |
//! | V, the average virtual time (EEVDF) | floor | [0, 1) below |
//! | lag of a task after it has joined (EEVDF) | floor and truncation | (−1, 2) |
//! | a lag under a new weight (EEVDF) | truncation | < 1 |
//!
//! A sequence ends where the kernel's 64-bit sums would overflow (a lag of seconds on a loaded queue): there
//! its decisions are arbitrary, and the definitions' are not.
//!
//! The generators of the oracles' sequences serve here too, so what one reaches the other does.

pub mod cfs;
pub mod eevdf;

use crate::l0::{Out, Subject, describe};
use schedtwin_kernel::sched::LoadWeight;
use schedtwin_types::rng::Rng;
use std::time::Instant;

/// A fraction with a positive denominator.
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    /// Above.
    pub numerator: i128,
    /// Below, > 0.
    pub denominator: i128,
}

impl Fraction {
    /// `numerator / denominator`.
    pub fn new(numerator: i128, denominator: i128) -> Fraction {
        assert!(denominator > 0);
        Fraction { numerator, denominator }
    }

    /// The largest integer that is not above it.
    pub fn floor(self) -> i128 {
        self.numerator.div_euclid(self.denominator)
    }

    /// Rounded towards 0.
    pub fn truncated(self) -> i128 {
        self.numerator / self.denominator
    }

    /// Whether it is at least `integer`.
    pub fn at_least(self, integer: i128) -> bool {
        self.numerator >= integer * self.denominator
    }

    /// Whether it lies strictly between two integers.
    pub fn between(self, low: i128, high: i128) -> bool {
        self.numerator > low * self.denominator && self.numerator < high * self.denominator
    }
}

/// The weight as tasks know it (nice 0: 1024).
pub fn weight(load: LoadWeight) -> i128 {
    (load.weight >> 10) as i128
}

/// `runtime` · `numerator` / w, by a multiplication with the inverse of w, which has 32 bits; so has the
/// factor that the product is made of.
pub fn scaled(runtime: i128, numerator: i128, load: LoadWeight) -> i128 {
    const ONE: i128 = 1 << 32;
    let w = weight(load).max(2);
    let inverse = match load.inv_weight as i128 {
        0 => ((ONE - 1) / w).max(1),
        known => known,
    };
    // Where the numerator is wider than 32 bits its low bits are lost, then those of the product.
    let (mut factor, mut unit) = (numerator, ONE);
    while factor >= ONE {
        (factor, unit) = (factor / 2, unit / 2);
    }
    factor *= inverse;
    while factor >= ONE {
        (factor, unit) = (factor / 2, unit / 2);
    }
    let result = Fraction::new(runtime * factor, unit).floor();
    // Between this and the exact quotient.
    let off = (result * w - runtime * numerator).abs();
    assert!(off << 32 < (w << 32) + runtime * numerator * (w + 3), "{runtime} ns at weight {w}");
    result
}

/// Runtime → virtual time: one for one at nice 0.
///
/// ```
/// use schedtwin_conformance::rational::charge;
/// use schedtwin_kernel::sched::LoadWeight;
/// let nice_5 = LoadWeight { weight: 335 << 10, inv_weight: 12820798 };
/// assert_eq!(charge(1_000_000, nice_5), 3_056_716);
/// ```
pub fn charge(runtime: i128, load: LoadWeight) -> i128 {
    if weight(load) == 1024 { runtime } else { scaled(runtime, 1024, load) }
}

/// The counts of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    /// Sequences.
    pub cases: u64,
    /// Operations in them.
    pub operations: u64,
}

/// The same class in fractions.
pub trait Model<S: Subject>: Sized {
    /// An empty world.
    fn new() -> Self;
    /// Executes one operation.
    fn operate(&mut self, record: &crate::l0::Record);
    /// Whether the kernel's 64 bits still hold what it computes. Beyond them its results mean nothing.
    fn fits(&self, world: &S) -> bool;
    /// Compares with ours: what differs, in words.
    fn compare(&self, world: &mut S) -> Result<(), String>;
}

/// Runs `cases` sequences through our code and the model; the first difference ends it.
pub fn compare<S: Subject, M: Model<S>>(seed: u64, cases: u64) -> Result<Compared, String> {
    let mut compared = Compared::default();
    for case in 0..cases {
        let mut rng = Rng::new(seed, case);
        let (mut world, mut model) = (S::new(), M::new());
        let mut out = Out::quiet();
        let mut step = 0;
        while let Some(record) = world.next(step, &mut rng) {
            world.operate(&record, &mut out);
            model.operate(&record);
            if !model.fits(&world) {
                break;
            }
            model.compare(&mut world).map_err(|difference| {
                let operation = describe::<S>(&record);
                format!(
                    "{} seed {seed} case {case} step {step}: {operation}\n{difference}",
                    S::NAME
                )
            })?;
            step += 1;
        }
        compared.operations += step as u64;
        compared.cases += 1;
    }
    Ok(compared)
}

/// Compares, and tells of it. Returns the exit code: 0 equal, 1 different.
pub fn tell<S: Subject, M: Model<S>>(seed: u64, cases: u64) -> i32 {
    let started = Instant::now();
    match compare::<S, M>(seed, cases) {
        Ok(Compared { cases, operations }) => {
            let seconds = started.elapsed().as_secs_f64();
            println!(
                "{} in fractions: seed {seed}, {cases} sequences, {operations} operations, 0 differ ({seconds:.1} s)",
                S::NAME
            );
            0
        }
        Err(difference) => {
            println!("{difference}");
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_kernel::sched::fair::weight_of;
    use schedtwin_types::Policy;

    #[test]
    fn every_nice_value_is_charged_within_the_bound() {
        for nice in -20..20 {
            for runtime in [0, 1, 999, 4_000_000, 1 << 40] {
                // It asserts the bound itself; a weight without a known inverse, too.
                let load = weight_of(Policy::Normal, nice);
                let unknown = LoadWeight { inv_weight: 0, ..load };
                let (known, unknown) = (charge(runtime, load), charge(runtime, unknown));
                assert!((known - unknown).abs() <= 1 + (known >> 14), "nice {nice}: {runtime}");
            }
        }
    }

    #[test]
    fn fractions_round_as_they_say() {
        let below = Fraction::new(-7, 2);
        assert_eq!((below.floor(), below.truncated()), (-4, -3));
        assert!(below.at_least(-4) && !below.at_least(-3));
        assert!(below.between(-4, -3) && !Fraction::new(-4, 1).between(-4, -3));
    }
}
