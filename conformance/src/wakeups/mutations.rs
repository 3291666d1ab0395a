// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens that the states must notice.

use crate::l0::mutate::Mutation;

/// In the code that 7.3 passes through.
pub const LINUX_7_3: &[Mutation] = &[];
