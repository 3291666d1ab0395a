// SPDX-License-Identifier: GPL-2.0-or-later
//! schedtwin beside a real machine: predict first, then measure.
//!
//! | module | purpose |
//! |---|---|
//! | [`settings`] | reads, applies and puts back settings of this machine |
//! | [`runner`] | runs an rt-app file on this machine, from the instructions that the twin interprets |
//! | [`probe`] | measures what communication between CPUs costs |
//! | [`rows`] | the figures of a run, of the machine or of the twin |
//! | [`rapl`] | the energy that this machine counts |
//! | [`judge`] | the rule by which predictions are judged |
//! | [`folder`] | the files of a comparison: plan, recordings, the sealed prediction |
//! | [`report`] | what was found, as text, JSON and a page |

pub mod folder;
pub mod judge;
pub mod probe;
pub mod rapl;
pub mod report;
pub mod rows;
pub mod runner;
pub mod settings;
