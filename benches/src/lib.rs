// SPDX-License-Identifier: GPL-2.0-or-later
//! Measurements of the twin's own speed and memory.
//!
//! | command (`cargo run --release -p schedtwin-benches -- …`) | what it says |
//! |---|---|
//! | `w1` | the yardstick W1 as a multiple of the frozen floor, with its side conditions, memory and the cost of traces |
//! | `scale` | many runs at once on several threads |
//! | `cpus` | instructions of an event and memory on machines of 8 to 256 CPUs |
//! | `budget` | instructions and nanoseconds of a W1 job by row of the budget |
//! | `clamps` | instructions of an enqueue and a dequeue, without clamps and with both aggregations |
//! | `traces` | events of recordings read a second, by format and wrapper |
//! | `guard` | instructions of a W1 job and of some runs against committed numbers: a guard against regressions |
//!
//! **No test here looks at a clock.** Times are printed next to their bars, as ratios to [`floor`] measured
//! in the same process; only the count of instructions passes or fails.
//!
//! Times are CPU times of the measuring thread, so that a pair stays comparable while the computer does
//! other things; on a quiet one they are the wall's.

pub mod budget;
pub mod callgrind;
pub mod clamps;
pub mod cpus;
pub mod floor;
pub mod guard;
pub mod measure;
pub mod rows;
pub mod scale;
pub mod traces;
pub mod w1;
