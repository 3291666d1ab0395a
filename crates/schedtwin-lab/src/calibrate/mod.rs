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
//! What is minimised: the sum over the base values of the squared deviation, relative to the published value.
//!
//! | room | what it does |
//! |---|---|
//! | `base_only` | the study without what is to be predicted |
//! | `fit` | the search |
//! | `file` | `studies/calibrations/NAME.toml`, written and read |

mod base_only;
mod file;
mod fit;
#[cfg(test)]
mod tests;

pub use base_only::BaseOnly;
pub use file::{Calibration, Residual, of_study, path_of};
pub use fit::{Effort, fit};
