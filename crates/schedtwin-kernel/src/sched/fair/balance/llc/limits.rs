// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether a last-level cache has spare capacity.

use crate::config::LlcBalancing;

/// Utilisation and capacity of an LLC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlcStats {
    /// Of fair tasks.
    pub util: u64,
    /// For them.
    pub capacity: u64,
}

/// `enum llc_mig`: whether a task may move from one LLC to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlcMigration {
    /// `mig_forbid`.
    Forbidden,
    /// `mig_llc`: it may, for the sake of its cache.
    Gathers,
    /// `mig_unrestricted`: its cache does not matter.
    Unrestricted,
}

/// `fits_llc_capacity()`.
fn fits_llc_capacity(llc: LlcStats, limits: &LlcBalancing, smt_threads: u32) -> bool {
    let percent = limits.overaggr_pct;
    let percent = if smt_threads == 1 { percent * 3 / 2 } else { percent };
    llc.util * 100 < llc.capacity * percent as u64
}

/// `can_migrate_llc()`: a task of this utilisation, to the LLC that it prefers or away from there.
pub fn can_migrate_llc(
    (mut src, mut dst): (LlcStats, LlcStats),
    util: u64,
    to_preferred: bool,
    limits: &LlcBalancing,
    smt_threads: u32,
) -> LlcMigration {
    src.util = src.util.saturating_sub(util);
    dst.util += util;
    let fits = |llc| fits_llc_capacity(llc, limits, smt_threads);
    let greater = |a: u64, b: u64| a * 100 > b * (100 + limits.imb_pct as u64);
    if !fits(dst) && !fits(src) {
        return LlcMigration::Unrestricted;
    }
    let forbidden = match to_preferred {
        true => !fits(dst) && greater(dst.util, src.util),
        false => fits(src) || !greater(src.util, dst.util),
    };
    if forbidden { LlcMigration::Forbidden } else { LlcMigration::Gathers }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LlcBalancing = LlcBalancing {
        aggr_tolerance: 1,
        epoch_period: None,
        epoch_affinity_timeout: 5,
        overaggr_pct: 50,
        imb_pct: 20,
    };

    fn at(percent: u64) -> LlcStats {
        LlcStats { util: percent * 10, capacity: 1000 }
    }

    /// The tables above, for two hardware threads a core. (Those of the kernel's comment are not what its code does.)
    #[test]
    fn who_may_cross() {
        let tables =
            [(true, ["YYNN", "YYYN", "YY--", "YY--"]), (false, ["NNNN", "NNNN", "YN--", "YY--"])];
        for (to_preferred, rows) in tables {
            for (src, row) in [30, 45, 52, 70].into_iter().zip(rows) {
                let moves = [30, 45, 52, 70].map(|dst| {
                    let pair = (at(src), at(dst));
                    match can_migrate_llc(pair, 0, to_preferred, &LIMITS, 2) {
                        LlcMigration::Forbidden => 'N',
                        LlcMigration::Gathers => 'Y',
                        LlcMigration::Unrestricted => '-',
                    }
                });
                assert_eq!(moves.iter().collect::<String>(), row, "{src} {to_preferred}");
            }
        }
    }

    /// Capacity 8192: up to 4095 with hardware threads, up to 6143 without.
    #[test]
    fn an_llc_fits_up_to_its_limit() {
        let fits =
            |util, threads| fits_llc_capacity(LlcStats { util, capacity: 8192 }, &LIMITS, threads);
        assert!(fits(4095, 2) && !fits(4096, 2));
        assert!(fits(6143, 1) && !fits(6144, 1));
    }

    /// Before the first pass nothing is known, and nothing fits into nothing.
    #[test]
    fn an_unknown_llc_restricts_nobody() {
        let unknown = LlcStats { util: 0, capacity: 0 };
        let answer = can_migrate_llc((unknown, unknown), 100, true, &LIMITS, 1);
        assert_eq!(answer, LlcMigration::Unrestricted);
    }
}
