// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in haltpoll that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const HALTPOLL_FILE: &str = "cpuidle/haltpoll.rs";

/// Mutations of haltpoll.
pub const HALTPOLL: &[Mutation] = &[
    m(HALTPOLL_FILE, "NS: u64 = 200_000", "NS: u64 = 100_000"),
    m(HALTPOLL_FILE, "GROW: u64 = 2", "GROW: u64 = 3"),
    m(HALTPOLL_FILE, "GROW_START: u64 = 50_000", "GROW_START: u64 = 49_999"),
    m(HALTPOLL_FILE, "self.last_state_idx == 0 && self", "self"),
    m(HALTPOLL_FILE, "last_residency_ns > self.guest", "last_residency_ns >= self.guest"),
    m(HALTPOLL_FILE, "poll_limit_ns < GROW_START", "poll_limit_ns <= GROW_START"),
    m(HALTPOLL_FILE, "last_residency_ns > self.poll", "last_residency_ns >= self.poll"),
    m(HALTPOLL_FILE, "return (0, false)", "return (0, true)"),
];

/// Mutations of haltpoll of 6.1.
pub const HALTPOLL_6_1: &[Mutation] =
    &[m(HALTPOLL_FILE, "self.closes && self", "self"), m(HALTPOLL_FILE, "/= GROW", "/= 4")];
