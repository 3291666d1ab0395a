// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle clusters: how long the shallowest of a cluster's CPUs was in each idle state.
//!
//! A cluster is active while one of its CPUs is, and else as deep as the shallowest of them: what LISA's cluster
//! residencies say of a trace. It follows the kernel's `cpu_idle`, not the silicon, as a trace does.
//!
//! ```text
//!  cpu0   active |  c2                         | active
//!  cpu1   WFI            | active |  c2
//!  both   active | WFI   | active |  c2        | active
//! ```

use schedtwin_types::Ns;

/// One cluster: levels are 0 for active, then its idle states, each one higher.
#[derive(Clone, Debug)]
pub(super) struct ClusterIdle {
    window_start: Ns,
    /// Per level: how many of its CPUs are there.
    cpus_at: Vec<u32>,
    level: usize,
    since: Ns,
    /// Per level: time at it, in the window.
    pub(super) ns: Vec<Ns>,
}

impl ClusterIdle {
    /// `cpus` CPUs, all active at time 0, with at most `states` idle states.
    pub(super) fn new(cpus: u32, states: usize, window_start: Ns) -> ClusterIdle {
        let mut cpus_at = vec![0; states + 1];
        cpus_at[0] = cpus;
        ClusterIdle { window_start, cpus_at, level: 0, since: 0, ns: vec![0; states + 1] }
    }

    /// One of its CPUs goes from one level to another.
    #[inline]
    pub(super) fn moves(&mut self, at: Ns, from: usize, to: usize) {
        self.cpus_at[from] -= 1;
        self.cpus_at[to] += 1;
        let level = self.cpus_at.iter().position(|cpus| *cpus > 0).expect("a cluster has CPUs");
        if level != self.level {
            self.close(at);
            self.level = level;
        }
    }

    /// Books what was up to `at`. Two CPUs may stamp out of order by the kernel time that one owes.
    pub(super) fn close(&mut self, at: Ns) {
        let at = at.max(self.since);
        self.ns[self.level] += at.max(self.window_start) - self.since.max(self.window_start);
        self.since = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_as_deep_as_its_shallowest_cpu() {
        let mut cluster = ClusterIdle::new(2, 2, 100);
        // The picture above: cpu1 in WFI at 0, cpu0 in c2 at 150, cpu1 active from 200 to 240, ...
        for (at, from, to) in
            [(0, 0, 1), (150, 0, 2), (200, 1, 0), (240, 0, 2), (230, 2, 2), (300, 2, 0)]
        {
            cluster.moves(at, from, to);
        }
        cluster.close(310);
        assert_eq!(cluster.ns, [50 + 40 + 10, 50, 60]);
    }
}
