// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in the code of `cpu.max` that the comparison must notice.

use crate::l0::mutate::Mutation;

pub(super) const BANDWIDTH: &[Mutation] = &[];
pub(super) const BANDWIDTH_6_18: &[Mutation] = &[];
pub(super) const BANDWIDTH_7_3: &[Mutation] = &[];
