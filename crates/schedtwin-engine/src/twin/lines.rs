// SPDX-License-Identifier: GPL-2.0-or-later
//! Time that kernel paths waited for each other's cache lines.

use super::Twin;
use crate::board::Board;
use schedtwin_kernel::hardware::Waited;
use schedtwin_types::Ns;
use schedtwin_types::metric::{self, Metric};

impl<B: Board> Twin<B> {
    /// The share of CPU time that was waited for lines, in all and by what they belong to; nothing where lines cost nothing.
    pub(super) fn line_wait_metrics(&self, simulated_ns: Ns) -> Vec<Metric> {
        let Some(waited) = self.kernel.hardware().waited() else { return Vec::new() };
        let whole = simulated_ns.max(1) as f64 * self.cpus.len() as f64;
        let share = |ns: Ns| Some(ns as f64 / whole * 100.0);
        let all = metric::LINE_WAIT.value("mean", vec![], share(waited.iter().sum()));
        let part = |(of, name): (Waited, &str)| {
            let label = vec![("lines", name.into())];
            metric::LINE_WAIT.value("mean", label, share(waited[of as usize]))
        };
        std::iter::once(all).chain(Waited::ALL.into_iter().map(part)).collect()
    }
}
