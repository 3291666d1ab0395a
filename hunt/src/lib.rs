// SPDX-License-Identifier: GPL-2.0-or-later
//! Random scenarios against the twin: it must never fall over, whatever is asked of it.
//!
//! ```text
//!  seed ──► tape of choices ──► machine, kernel, workload ──► run in every way ──► finding?
//!               ▲                    (texts of files)            │
//!               └────────────── shorter, smaller tapes ◄─────────┘  until nothing can be left out
//! ```
//!
//! 1. A seed gives a sequence of choices ([`tape`]); `machine`, `kernel` and `workload` make texts of it, as a user would
//!    write them. So a scenario is a function of its seed.
//! 2. [`check`] runs it: plainly, on a second thread, beside the reference twin, watched by invariants, cloned in the middle, traced
//!    and recorded; and does the sums of the JSON from outside.
//! 3. A finding is made smaller ([`shrink`]): choices are left out and lowered while it stays the same finding. Zero is always the
//!    simplest choice, so what remains is what matters.
//! 4. It is written as one file with the texts ([`scenario`]), which a test replays for ever, whatever becomes of the generator.
//! 5. [`built_in`] does without tapes: it runs everything that is built in.
//! 6. [`rules`]: what must be true of every fair scheduler, on scenarios simple enough for that.
//! 7. [`cover`] counts what was reached: an arm of a variation point that no scenario reached makes a hunt fail in CI.

pub mod built_in;
pub mod check;
pub mod cover;
pub mod ext_class;
mod kernel;
mod machine;
pub mod rules;
pub mod scenario;
pub mod shrink;
pub mod tape;
mod watch;
mod workload;
