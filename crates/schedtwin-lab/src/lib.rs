// SPDX-License-Identifier: GPL-2.0-or-later
//! The laboratory: many runs of the twin, what they show, and how sure that is.
//!
//! [`compare`] runs kernels × seeds in parallel, [`replay`] does so with the work of a trace, [`stats`] judges the differences, [`report`] prints
//! them, [`fail_if`] turns them into an exit code, [`aa`] checks that the judging is honest. [`study`] sets published
//! experiments beside what the twin says of them, [`calibrate`] fits what nobody published, and [`tune`] looks for the value of one setting.
//! [`score`] is one number of a kernel for searches.

pub mod aa;
pub mod balancing;
pub mod calibrate;
mod check;
pub mod compare;
pub mod crash;
pub mod fail_if;
pub mod given;
pub mod many_parts;
mod measured;
pub mod moment;
mod progress;
mod provenance;
pub mod replay;
pub mod report;
pub mod schema;
pub mod score;
pub mod search;
pub mod select;
pub mod selector;
pub mod stats;
pub mod stopping;
pub mod study;
pub mod sweep;
#[cfg(test)]
mod synthetic;
pub mod timeline;
pub mod tune;
pub mod twin;
pub mod value;
pub mod verdict;

pub use check::check_file;
pub use measured::{Labels, Measured, Row};
pub use progress::Progress;
pub use provenance::Provenance;
