// SPDX-License-Identifier: GPL-2.0-or-later
//! `[l3]`: energy of accesses to the cache that all CPUs share.
//!
//! Such a cache is on the supply of one clock domain (a DSU's L3: the little cores'), and a meter of that rail sees it. What an
//! access costs was measured for pairs of clocks, in the rows of `[[dependent]]` (`l3_hit_pj`, `l3_miss_pj`); how many there are,
//! this table says:
//!
//! ```toml
//! [l3]
//! accesses_per_us = 21   # in a microsecond of work at capacity 1024; 0: none are counted
//! hit_permille = 700     # of which are hits
//! ```
//!
//! Accesses follow the work that threads do, on any CPU. Energy of a piece of work is that of the clocks at its end.
//!
//! Differences: one rate for all work; kernel paths have none; an idle cache costs what the domain's static power says.

use schedtwin_input::{Diagnostics, Located, TableReader};

use crate::PERMILLE;
use crate::keys::keys;

/// The most accesses in a microsecond of work.
const MAX_PER_US: u64 = 100_000;

/// How often work uses the shared cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct L3 {
    /// Accesses in a microsecond of work at capacity 1024.
    pub accesses_per_us: u64,
    /// Hits among them, thousandths.
    pub hit_permille: u64,
}

keys! {
    /// accesses to the cache that all CPUs share; their energies are in the rows of `[[dependent]]`
    struct L3Keys in "l3" {
        /// accesses in a microsecond of work at capacity 1024; 0: none are counted
        accesses_per_us: Located<u64> = Always, Whole(0, MAX_PER_US as i64);
        /// hits among them
        hit_permille: Located<u64> = Always, Whole(0, 1000);
    }
}

/// Reads the table.
pub(crate) fn read(mut table: TableReader<'_>, faults: &mut Diagnostics) -> Option<L3> {
    let L3Keys { accesses_per_us: accesses, hit_permille: hits } = L3Keys::read(&mut table, faults);
    table.finish(faults);
    let (accesses, hits) = (accesses?, hits?);
    if accesses.value > MAX_PER_US {
        let message = format!("`accesses_per_us` is above {MAX_PER_US}");
        faults.push_at(&accesses.at, message, None);
    }
    if hits.value > PERMILLE {
        faults.push_at(&hits.at, "`hit_permille` is above 1000", None);
    }
    Some(L3 { accesses_per_us: accesses.value, hit_permille: hits.value })
}

#[cfg(test)]
mod tests {
    use crate::Machine;

    #[test]
    fn settings_and_rows_are_checked() {
        let machine = Machine::load("pixel6:l3.accesses_per_us=42").unwrap();
        assert_eq!(machine.l3.map(|l3| (l3.accesses_per_us, l3.hit_permille)), Some((42, 700)));
        let tables = &machine.power_dependences[0].tables;
        // A list that ends early goes on with its last value, as the others of its row do.
        assert_eq!([tables[0].rows[0][1].l3_pj, tables[0].rows[0][13].l3_pj], [[412, 66]; 2]);
        for (setting, complaint) in
            [("l3.accesses_per_us=100001", "above 100000"), ("l3.hit_permille=1001", "above 1000")]
        {
            let faults = Machine::load(&format!("pixel6:{setting}")).unwrap_err().to_string();
            assert!(faults.contains(complaint), "{faults}");
        }
    }
}
