// SPDX-License-Identifier: GPL-2.0-or-later
//! The state that the CPUs of a domain share (`sched_domain_shared`), and which domains have such
//! an object.
//!
//! **Decides** where it is kept whether a core is idle as a whole, and how far a wakeup looks for an idle CPU.
//!
//! Up to 6.12 each domain whose CPUs share a cache has an object, and that of the last-level cache is used. In 7.3 two domains
//! of a CPU claim one: the lowest that has every capacity (unless it is a NUMA one), then the topmost of those that share a
//! cache. The objects are numbered by CPU, and a claim takes the first of its span that nobody else has claimed for the other
//! purpose:
//!
//! ```text
//! caches 0-3 and 4-7, all capacities in 0-7:   object 0: 0-7 (capacities)   object 1: 0-3   object 4: 4-7
//! one cache with all capacities, 0-7:          object 1, claimed last: the cache's
//! ```
//!
//! A claim leaves its flag where the limit of searches is kept, so until the first balancing pass the limit is the flag: 512
//! for a cache, 32 for capacities. A cache of a single CPU takes what is there; its domain does not stay.
//!
//! Kernel: 6.12.95 kernel/sched/topology.c `sd_init`; 7.3.4 kernel/sched/topology.c `init_sched_domain_shared`,
//! `claim_asym_sched_domain_shared`, `cpu_attach_domain`, `update_top_cache_domain`.

use super::*;
use crate::config::SdShared;
use crate::{Context, Scheduler};

/// The objects while domains are being built.
pub(super) struct SharedObjects {
    form: SdShared,
    /// Up to 6.12, per level and CPU: the object of the span that starts with this CPU.
    of_level: Vec<Vec<Option<usize>>>,
    /// 7.3, per CPU: its object, and the flag of the domain that has claimed it.
    of_cpu: Vec<Option<(usize, u32)>>,
}

fn object(nr_busy_cpus: u32, nr_idle_scan: u32) -> SchedDomainShared {
    SchedDomainShared {
        nr_busy_cpus,
        has_idle_cores: false,
        idle_core: IdleCore::Unknown,
        nr_idle_scan,
        util_avg: 0,
        capacity: 0,
    }
}

impl Config {
    /// Whether a wakeup looks for an idle CPU in a cache that has not been balanced since boot.
    pub fn searches_caches_at_boot(&self) -> bool {
        !self.features.sis_util || self.sd_shared != SdShared::Caches
    }
}

impl SharedObjects {
    pub(super) fn new(config: &Config, levels: usize, cpus: usize) -> SharedObjects {
        SharedObjects {
            form: config.sd_shared,
            of_level: vec![vec![None; cpus]; levels],
            of_cpu: vec![None; cpus],
        }
    }

    /// The end of `sd_init()`: what a domain of a level has whose CPUs share a cache.
    pub(super) fn of_level(
        &mut self,
        all: &mut Vec<SchedDomainShared>,
        level: usize,
        span: &CpuMask,
    ) -> Option<usize> {
        match self.form {
            SdShared::Caches => {
                let first = span.lowest().expect("a CPU is in its own mask").index();
                let slot = &mut self.of_level[level][first];
                Some(*slot.get_or_insert_with(|| {
                    all.push(object(span.weight(), 0));
                    all.len() - 1
                }))
            }
            SdShared::CachesAndCapacities => None,
        }
    }

    /// The claims of a CPU, whose lowest domain is given.
    pub(super) fn claim(&mut self, t: &mut Topology, lowest: Option<DomainId>) {
        let Some(lowest) = lowest.filter(|_| self.form == SdShared::CachesAndCapacities) else {
            return;
        };
        let parent = |sd: DomainId| t[sd].parent;
        let full = |sd: &DomainId| t[*sd].flags & SD_ASYM_CPUCAPACITY_FULL != 0;
        let asym = std::iter::successors(Some(lowest), |sd| parent(*sd)).find(full);
        let mut llc = lowest;
        while let Some(above) = parent(llc).filter(|above| t[*above].flags & SD_SHARE_LLC != 0) {
            llc = above;
        }
        if let Some(sd) = asym.filter(|sd| t[*sd].flags & SD_NUMA == 0) {
            self.init_sched_domain_shared(t, sd, SD_ASYM_CPUCAPACITY);
        }
        if t[llc].flags & SD_SHARE_LLC != 0 {
            self.init_sched_domain_shared(t, llc, SD_SHARE_LLC);
        }
    }

    /// `init_sched_domain_shared()`.
    fn init_sched_domain_shared(&mut self, t: &mut Topology, sd: DomainId, flag: u32) {
        let (span, weight) = (t[sd].span, t[sd].span_weight);
        let free = |cpu: &CpuId| {
            let claim = self.of_cpu[cpu.index()];
            claim.is_none_or(|(_, claimed)| claimed == flag) || weight == 1
        };
        let found = span.iter().find(free).or(span.iter().last());
        let cpu = found.expect("a domain has CPUs").index();
        let index = match self.of_cpu[cpu] {
            Some((index, _)) => index,
            None => {
                t.shared.push(object(0, 0));
                t.shared.len() - 1
            }
        };
        self.of_cpu[cpu] = Some((index, flag));
        (t.shared[index].nr_busy_cpus, t.shared[index].nr_idle_scan) = (weight, flag);
        t[sd].shared = Some(index);
    }

    /// In `cpu_attach_domain()`: `parent` is removed, since it says nothing that `sd` does not say.
    pub(super) fn inherit(&self, t: &mut Topology, sd: DomainId, parent: DomainId) {
        if self.form == SdShared::CachesAndCapacities
            && let Some(shared) = t[parent].shared
        {
            t[sd].shared = Some(shared);
        }
    }

    /// The end of `update_top_cache_domain()`: which object knows of idle cores (`sd_balance_shared`).
    pub(super) fn of_balance(&self, t: &Topology, cpu: CpuId) -> Option<usize> {
        let asym = t.sd_asym_cpucapacity[cpu.index()].and_then(|sd| t[sd].shared);
        let claimed = asym.filter(|_| self.form == SdShared::CachesAndCapacities);
        claimed.or(t.sd_llc_shared[cpu.index()])
    }
}

impl Scheduler {
    /// Returns the object whose limit a pass of `dst` over `sd` sets in `update_idle_cpu_scan()`.
    pub(crate) fn limits_scans_of(&self, sd: DomainId, dst: CpuId, cx: &Context) -> Option<usize> {
        let domain = &self.topology[sd];
        match cx.config.sd_shared {
            SdShared::Caches => {
                let llc = domain.span_weight == self.topology.sd_llc_size[dst.index()];
                self.topology.sd_llc_shared[dst.index()].filter(|_| llc)
            }
            SdShared::CachesAndCapacities => domain.shared,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{Part, machine};
    use super::*;
    use crate::Kernel;

    /// Of CPU 0 and the last one: object of the cache, its limit, object of the domain with all capacities, its limit.
    fn objects(parts: &[Part], sd_shared: SdShared) -> [[Option<(usize, u32)>; 2]; 2] {
        let config = Config { sd_shared, ..Config::linux_6_12() };
        let t = Topology::build(&machine(parts), &config);
        [0, t.base.len() - 1].map(|cpu| {
            let of = |shared: usize| (shared, t.shared[shared].nr_idle_scan);
            let asym = t.sd_asym_cpucapacity[cpu].and_then(|sd| t[sd].shared);
            [t.sd_llc_shared[cpu].map(of), asym.map(of)]
        })
    }

    #[test]
    fn claims_of_caches_and_capacities() {
        use SdShared::{Caches, CachesAndCapacities};
        let two = [Part::of(4, 383), Part::of(4, 1024).llc(1)];
        let [little, big] = objects(&two, CachesAndCapacities);
        assert_eq!(little, [Some((1, 512)), Some((0, 32))]);
        assert_eq!(big, [Some((2, 512)), Some((0, 32))]);
        for [cache, all] in objects(&two, Caches) {
            assert_eq!((cache.map(|(_, limit)| limit), all), (Some(0), None));
        }
        // One cache with all capacities is one domain, and the cache's claim is the later one.
        let one = [Part::of(4, 383), Part::of(4, 1024)];
        assert_eq!(objects(&one, CachesAndCapacities), [[Some((1, 512)), Some((1, 512))]; 2]);
        // CPU 0's own cache takes the object of the claim before it, so the others claim another one.
        let alone = [Part::of(1, 383), Part::of(3, 1024).llc(1)];
        let [first, last] = objects(&alone, CachesAndCapacities);
        assert_eq!(first, [None, Some((0, 512))]);
        assert_eq!(last, [Some((2, 512)), Some((1, 32))]);
    }

    /// Without capacities that differ only caches have one, and know of idle cores.
    #[test]
    fn idle_cores_are_known_by_the_domain_that_is_searched() {
        for (parts, by_capacities) in [
            ([Part::of(4, 1024), Part::of(4, 1024).llc(1)], false),
            ([Part::of(4, 383), Part::of(4, 1024).llc(1)], true),
        ] {
            let config =
                Config { sd_shared: SdShared::CachesAndCapacities, ..Config::linux_6_12() };
            let t = Topology::build(&machine(&parts), &config);
            let same = t.sd_balance_shared[0] == t.sd_balance_shared[7];
            assert_eq!(same, by_capacities);
            assert_eq!(t.sd_balance_shared[0] == t.sd_llc_shared[0], !by_capacities);
        }
    }
    /// A pass over the domain with all capacities limits searches of it since 7.3; one over a cache those of the cache.
    #[test]
    fn passes_limit_the_searches_of_their_domain() {
        for (sd_shared, expected) in
            [(SdShared::Caches, [true, false]), (SdShared::CachesAndCapacities, [true, true])]
        {
            let opps: &[(u32, u64)] = &[(1_000_000, 100_000)];
            let mut dt = DeviceTree::of_domains(&[(4, 383, opps), (4, 1024, opps)]);
            dt.cpus[4..].iter_mut().for_each(|cpu| cpu.llc = 1);
            let kernel = Kernel::boot(dt, Config { sd_shared, ..Config::linux_6_12() });
            let sets = kernel.sched.topology.domains_of(CpuId(0)).map(|sd| {
                let limited = kernel.sched.limits_scans_of(sd, CpuId(0), &kernel.cx);
                assert!(limited.is_none() || limited == kernel.sched.topology[sd].shared);
                limited.is_some()
            });
            assert_eq!(sets.collect::<Vec<_>>(), expected, "{sd_shared:?}");
        }
    }
}
