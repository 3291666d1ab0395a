// SPDX-License-Identifier: GPL-2.0-or-later
//! The number of CPUs that a wakeup may look at when it searches an idle one (SIS_UTIL).
//!
//! Searching is worth less the busier the cache domain is. Each pass over it that is not a newidle one
//! sets the limit from the sum of utilisation, on a parabola that reaches 0 where the domain counts as
//! overloaded (85 %):
//!
//! ```text
//! scan
//!  8 |▔▔▔▔─────.__                x = Σ util / CPUs
//!    |             ▔▔──._         scan = CPUs · (1024 − x² · 117² / (10⁴ · 1024)) / 1024
//!  0 |___________________▔▔▔▔
//!    0               819   1024   x
//! ```
//!
//! Up to 6.12 a domain of this kind is the last-level cache. In 7.3 the lowest domain with all capacities is one, too, and
//! before the first pass the limit is a number of CPUs that no domain reaches (`topology/shared.rs`).
//!
//! Kernel: 6.12.95 and 7.3.4 kernel/sched/fair.c `update_idle_cpu_scan`.
//! Differences: none known.

use super::*;
use crate::{Context, Scheduler};

/// The limit for a domain of `llc_weight` CPUs with `sum_util` in all.
///
/// Rounding down, twice, ends the search a little before 85 %.
pub(super) fn nr_idle_scan(sum_util: u64, llc_weight: u64, pct: u64) -> u32 {
    let x = sum_util / llc_weight;
    let t = (x * x * pct * pct / (10_000 * 1024)).min(1024);
    ((1024 - t) * llc_weight / 1024) as u32
}

impl Scheduler {
    /// `update_idle_cpu_scan()`.
    pub(super) fn update_idle_cpu_scan(&mut self, env: &LbEnv, sum_util: u64, cx: &Context) {
        if env.idle != CpuIdleType::NewlyIdle {
            self.limit_idle_scan(env.sd, env.dst_cpu, sum_util, cx);
        }
    }

    /// Sets what a pass of `dst` over `sd` sets that is not a newidle one.
    pub(crate) fn limit_idle_scan(
        &mut self,
        sd: DomainId,
        dst: CpuId,
        sum_util: u64,
        cx: &Context,
    ) {
        if !cx.config.features.sis_util {
            return;
        }
        if let Some(shared) = self.limits_scans_of(sd, dst, cx) {
            let domain = &self.topology[sd];
            self.topology.shared[shared].nr_idle_scan =
                nr_idle_scan(sum_util, domain.span_weight as u64, domain.imbalance_pct as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first average utilisation at which nothing is searched (behaviour notes 03 §4).
    #[test]
    fn the_scan_ends_before_85_per_cent() {
        for (weight, end) in [(4, 759), (8, 820), (16, 848), (112, 872)] {
            let first = (0..1024).find(|x| nr_idle_scan(x * weight, weight, 117) == 0);
            assert_eq!(first, Some(end), "{weight} CPUs");
        }
    }

    #[test]
    fn an_idle_domain_is_searched_completely() {
        assert_eq!(nr_idle_scan(0, 8, 117), 8);
        assert_eq!(nr_idle_scan(8 * 512, 8, 117), 5);
        // Utilisation above capacity, as util_est may have it.
        assert_eq!(nr_idle_scan(8 * 2000, 8, 117), 0);
    }

    /// Behaviour notes 12 §4.
    #[test]
    fn a_busy_domain_is_searched_less() {
        let limits = |weight, sums: &[u64]| -> Vec<u32> {
            sums.iter().map(|sum| nr_idle_scan(*sum, weight, 117)).collect()
        };
        assert_eq!(limits(8, &[0, 1000, 2000, 4000, 6000, 6999]), [8, 7, 7, 5, 2, 0]);
        assert_eq!(limits(4, &[1000, 2000, 3000]), [3, 2, 1]);
    }
}
