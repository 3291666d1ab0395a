// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in hrtimers and the tick that the sequences notice.

use crate::l0::mutate::{Mutation, m};

/// What all releases pass through.
pub const LINUX_6_12: &[Mutation] = &[];
/// What only 6.1 passes through.
pub const LINUX_6_1: &[Mutation] = &[];
/// What only 7.3 passes through.
pub const LINUX_7_3: &[Mutation] = &[];
