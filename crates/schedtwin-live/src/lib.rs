// SPDX-License-Identifier: GPL-2.0-or-later
//! schedtwin beside a real machine: predict first, then measure.
//!
//! | module | purpose |
//! |---|---|
//! | [`settings`] | reads, applies and puts back settings of this machine |
//! | [`runner`] | runs an rt-app file on this machine, from the instructions that the twin interprets |
//! | [`attributes`] | parameters of any thread |

pub mod attributes;
pub mod runner;
pub mod settings;
