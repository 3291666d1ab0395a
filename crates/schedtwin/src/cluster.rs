//! Idle states of clusters: who really rests in what.
//!
//! A CPU asks for a state of its cluster (its frequency domain), but one CPU cannot turn a cluster off. The
//! platform does, once every CPU of the cluster has asked for it:
//!
//! ```text
//!   cpu4  asks for cluster-sleep ──cpu-sleep──┬──cluster-sleep──┬──cpu-sleep────────
//!   cpu5  runs ........... asks for it too ───┴──cluster-sleep──┴──leaves it, runs
//! ```
//!
//! 1. A CPU's request counts once it has arrived, after the entry latency of the state it asked for.
//! 2. While all CPUs of a cluster rest and the shallowest of their requests is a state of the cluster, all
//!    rest in that.
//! 3. Otherwise a CPU that asked for a state of the cluster rests in the deepest state of its own that is no
//!    deeper.
//! 4. The first to leave turns the cluster on again: it pays the cluster's exit latency, the others are
//!    back in their own states at once.
//!
//! The kernel sees its own request: its statistics know nothing of this.
//!
//! References: PSCI, platform-coordinated mode.
//! Differences: a request counts on arrival, not from the call on: with two CPUs on their way in at once
//! the cluster goes off up to an entry latency later than in firmware that decides at the second call.

use schedtwin_machine::Machine;
use schedtwin_types::CpuId;

/// What the CPUs of each cluster have asked for.
#[derive(Clone, Debug)]
pub struct Clusters {
    /// Per CPU: the state it asked for and has arrived in, if it rests.
    asked: Vec<Option<u8>>,
    /// Per frequency domain: whether its cores have states of the cluster at all.
    negotiated: Vec<bool>,
}

impl Clusters {
    /// All CPUs run.
    pub fn new(machine: &Machine) -> Clusters {
        let negotiated = |cpu: CpuId| machine.idle_states(cpu).iter().any(|s| s.cluster);
        Clusters {
            asked: vec![None; machine.nr_cpus()],
            negotiated: machine.domains.iter().map(|d| negotiated(d.cpus[0])).collect(),
        }
    }

    /// Whether the CPU's cluster has states of its own: otherwise every request is granted.
    #[inline]
    pub fn negotiates(&self, domain: usize) -> bool {
        self.negotiated[domain]
    }

    /// `cpu` has arrived in the state that it asked for, or has left it (`None`). Afterwards
    /// [`Clusters::rests_in`] may say otherwise of any CPU of its cluster.
    pub fn ask(&mut self, cpu: CpuId, state: Option<u8>) {
        self.asked[cpu.index()] = state;
    }

    /// Where a CPU really rests, `None` if it does not.
    pub fn rests_in(&self, machine: &Machine, cpu: CpuId) -> Option<u8> {
        let asked = self.asked[cpu.index()]?;
        let states = machine.idle_states(cpu);
        if !states[asked as usize].cluster {
            return Some(asked);
        }
        let all = machine.domain_of(cpu).cpus.iter().map(|c| self.asked[c.index()]);
        // `None` is less than any state.
        let agreed = all.min().flatten().filter(|state| states[*state as usize].cluster);
        let core = &machine.core_types[machine.cpus[cpu.index()].core_type];
        Some(agreed.unwrap_or_else(|| core.alone(asked as usize) as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_off_while_all_of_it_has_asked() {
        let machine = Machine::load("juno-r2").unwrap();
        let mut clusters = Clusters::new(&machine);
        assert!(clusters.negotiates(0) && clusters.negotiates(1));
        let (wfi, cpu, cluster) = (Some(0), Some(1), Some(2));
        // What CPUs 4 and 5 have asked for, and where they rest.
        for (asked, rest) in [
            ([None, None], [None, None]),
            ([cluster, None], [cpu, None]),
            ([cluster, wfi], [cpu, wfi]),
            ([cluster, cpu], [cpu, cpu]),
            ([cluster, cluster], [cluster, cluster]),
            ([cpu, cpu], [cpu, cpu]),
            ([None, cluster], [None, cpu]),
        ] {
            clusters.ask(CpuId(4), asked[0]);
            clusters.ask(CpuId(5), asked[1]);
            let rests = [4, 5].map(|c| clusters.rests_in(&machine, CpuId(c)));
            assert_eq!(rests, rest, "{asked:?}");
            // The other cluster is none of their business.
            clusters.ask(CpuId(0), cluster);
            assert_eq!(clusters.rests_in(&machine, CpuId(0)), cpu);
        }
        assert!(!Clusters::new(&Machine::load("pixel6").unwrap()).negotiates(0));
    }
}
