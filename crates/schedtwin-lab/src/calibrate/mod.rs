// SPDX-License-Identifier: GPL-2.0-or-later
//! Fits what nobody published, on what was published of the base kernels, and on nothing else.
//!
//! The rules, and how they are kept:
//! 1. **Base values only.** The fitter is given a [`BaseOnly`]: the study with its patched cells, patched columns
//!    and every text taken out. It has no way to the numbers that the twin is to predict.
//! 2. **At most half as many parameters as base values used**; else an error ([`BaseOnly::of`]).
//! 3. **Within physical bounds**, which the study states with their reason.
//! 4. **The same bytes on every computer.** The search is Nelder and Mead's (argmin, on plain vectors), which
//!    adds, subtracts, multiplies and compares; IEEE 754 makes these exact everywhere. What it proposes is rounded to
//!    whole numbers or four significant digits before the twin sees it, and the twin itself is integers until its
//!    values are divided. Seeds are fixed, the number of steps is bounded, nothing depends on time or threads.
//!    argmin's own end criterion, whose `powi` is not exact everywhere, is switched off.
//! 5. **A calibration carries the model's version**, and is refused under another ([`Calibration::check`]).
//!
//! **What is minimised**: weighted least squares, the sum over the base values of `((twin - centre) / half-width)^2`. If the
//! measured values scatter about the truth independently, as normal variables of these widths, its least is the likeliest
//! setting, and of all linear estimates the least uncertain one (Gauss and Markov). In plain words: a value known to
//! 50 % does not pull as hard as one known to 5 %, a deviation within the noise costs less than 1, and three times the noise costs 9.
//! How well a value is known is the published spread of days, else a stated share ([`Target`]).
//!
//! **How it is searched** ([`fit()`]): a coarse grid and simplexes of Nelder and Mead's from its best points, all with few seeds, so that the end hangs
//! neither on the start nor on one valley; from the best of their ends a simplex with all seeds; then a look at both sides along every axis.
//! Each setting runs the same seeds, and draws are keyed by name and ordinal, so two settings differ by what was set and not by luck
//! (common random numbers).
//!
//! **What it says of itself**: which parameters ended at a bound, each deviation in units of its noise, and what it would cost to move
//! a parameter by a tenth of its range: below 1 the base values hardly tell.
//!
//! Why Nelder and Mead's (argmin, a kept library) and not a solver for least squares: those need derivatives, of a twin whose values jump with
//! each placement that flips, or linear algebra, whose libraries pick instructions by the computer's and break
//! rule 4. A handful of parameters needs neither.
//!
//! | module | purpose |
//! |---|---|
//! | `base_only` | the study without what is to be predicted; how well its values are known |
//! | `fit` | the search |
//! | `file` | `studies/calibrations/NAME.toml`, written and read |

mod base_only;
mod file;
mod fit;
#[cfg(test)]
mod tests;

pub use base_only::{BaseOnly, LEAST_NOISE_PCT, Target, UNKNOWN_NOISE_PCT};
pub use file::{Calibration, Parameter, Residual, of_study, path_of};
pub use fit::{COARSE_SEEDS, Effort, fit};
