// SPDX-License-Identifier: GPL-2.0-or-later
//! How much of something there was in a second of a run.

use super::benchmark::Counted;
use super::script::{Register, Script, Step};
use schedtwin_types::Ns;

const NS_PER_S: Ns = 1_000_000_000;

/// A count and the moment of the last one, in the first two registers, so that results find it.
pub(super) struct Rate {
    total: Register,
    last: Register,
}

impl Rate {
    /// Of a script that has no registers yet.
    pub fn new(script: &mut Script) -> Rate {
        let [total, last] = std::array::from_fn(|_| script.register(0));
        assert_eq!((total, last), (Register(0), Register(1)), "the first registers");
        Rate { total, last }
    }

    /// So much more.
    pub fn counts(&self, amount: u64) -> [Step; 2] {
        [Step::Add(self.total, amount), Step::Clock(self.last)]
    }

    /// So much a second, until the last one; `None`: there was none.
    pub fn of(counted: &Counted) -> Option<f64> {
        let [total, last] = [counted.registers[0], counted.registers[1]];
        (last > 0).then(|| total as f64 * NS_PER_S as f64 / last as f64)
    }
}
