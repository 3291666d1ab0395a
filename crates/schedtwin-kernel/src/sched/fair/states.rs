// SPDX-License-Identifier: GPL-2.0-or-later
//! Random states of load balancing and wakeups, for the comparison with the kernel's own C.
//!
//! Steps of a queue are compared one by one (`sched/fair/conformance.rs`). A decision of the balancer
//! looks at the whole machine instead, so it is compared by *state*: a line of numbers that describes the
//! machine, `=`, and the answer of our code. `conformance/` hands the lines to the kernel's functions, and
//! keeps a digest of the first ones for machines without a kernel tree.
//!
//! Only built for tests and with the feature `conformance`.

use crate::Kernel;
use crate::config::{
    AsymPacking, BalanceFair, CheckMisfitStatus, Config, DstGroupStats, MisfitFailure,
    PickBusiestBigger, PickBusiestFull, PickBusiestMisfit, PreferSibling, RunnableBoost,
    SelectIdleCluster, SiblingImbalance, SmtBalance,
};
use crate::sched::demand::uclamp::UclampRequest;
use crate::sched::demand::uclamp::max::Clamps;
use crate::sched::topology::DomainId;
use schedtwin_types::{CpuId, CpuMask};
use std::fmt::Write;

pub use super::balance::states as balance;
pub use super::energy::states as energy;
pub use super::slow_path::states as slow_path;
pub use super::wakeup::states as wakeups;

/// The CPUs of a machine.
pub(super) const NR_CPUS: u16 = 8;

/// States of one kind on machines of one kind, in an order that never changes.
pub struct Family {
    /// Its machines: empty, or a prefix such as `threads-`.
    pub name: &'static str,
    /// Its kind: `decisions`, `passes` or `wakeups`.
    pub states: &'static str,
    /// One of so many of the states asked for is drawn: passes take longer.
    pub share: u64,
    /// Starts the generator of lines; each seed from 1 on has lines of its own.
    pub start: fn(seed: u64) -> Box<dyn FnMut() -> String>,
}

/// George Marsaglia's xorshift64.
pub(super) struct Random(u64);

impl Random {
    /// Starts the stream of a seed, 1 with the state `first`.
    pub(super) fn new(first: u64, seed: u64) -> Random {
        Random(first.wrapping_add(seed.wrapping_sub(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1))
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    pub(super) fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len() as u64) as usize]
    }
    pub(super) fn cpu(&mut self) -> CpuId {
        CpuId(self.below(NR_CPUS as u64) as u16)
    }
    /// Loads of the CPUs of groups that are compared: equal in several, or apart by just a percentage that counts or the
    /// margin of a fork.
    pub(super) fn even_loads(&mut self) -> [u64; NR_CPUS as usize] {
        const LOADS: [u64; 9] = [750, 1000, 1000, 1100, 1102, 1170, 1174, 1250, 1256];
        [0; NR_CPUS as usize].map(|_| self.of(&LOADS))
    }
    /// Clamps that a task may ask for.
    pub(super) fn clamps(&mut self) -> Clamps {
        let min = if self.one_in(2) { 0 } else { self.below(1025) as u32 };
        let max = if self.one_in(2) { 1024 } else { self.below(1025) as u32 };
        // An inverted pair is legal where it is an aggregate.
        Clamps { min, max: if self.one_in(8) { max } else { max.max(min) } }
    }
    /// The request of a task that asks for both clamps, one or none.
    pub(super) fn uclamp_request(&mut self) -> UclampRequest {
        let clamps = self.clamps();
        UclampRequest {
            min: (!self.one_in(3)).then_some(clamps.min as u16),
            max: (!self.one_in(3)).then_some(clamps.max as u16),
        }
    }
    pub(super) fn mask(&mut self) -> u64 {
        1 + self.below(255)
    }
}

/// Makes a kernel of 6.12.95 balance as 6.1.192 does.
pub(super) fn balance_as_6_1(config: &mut Config) {
    config.select_idle_cluster = SelectIdleCluster::WholeLlc;
    config.balance_fair = BalanceFair::NoTask;
    config.prefer_sibling = PreferSibling::ChildDomain;
    config.sibling_imbalance = SiblingImbalance::Difference;
    config.pick_busiest_bigger = PickBusiestBigger::Always;
    config.pick_busiest_full = PickBusiestFull::First;
    config.pick_busiest_misfit = PickBusiestMisfit::Last;
    config.misfit_failure = MisfitFailure::Counted;
    config.check_misfit_status = CheckMisfitStatus::IfItCanBeHelped;
    config.runnable_boost = RunnableBoost::Off;
    config.smt_balance = SmtBalance::None;
    config.asym_packing = AsymPacking::BusyThreads;
    config.dst_group_stats = DstGroupStats::AllowedCpus;
}

/// Makes a kernel of 6.12.95 balance as 6.12.107 does.
pub(super) fn balance_as_6_12(config: &mut Config) {
    config.dst_group_stats = DstGroupStats::AllowedCpus;
}

/// 6.12.117: newer than 6.12.107 by what came late.
pub(super) fn balance_as_6_12_117(config: &mut Config) {
    balance_as_6_12(config);
    config.pick_busiest_bigger = PickBusiestBigger::Always;
}

/// Where cores have threads: draws priorities and what groups make of them, and whether caches are said to have idle
/// cores. Gives what a line says of that: per CPU its threads, its priority and the latter.
pub(super) fn draw_threads(k: &mut Kernel, r: &mut Random) -> String {
    let mut text = String::new();
    if !k.sched.topology.smt {
        return text;
    }
    for priority in &mut k.sched.topology.asym_priority {
        *priority = r.below(4) as i32;
    }
    for group in 0..k.sched.topology.groups.len() {
        let span = k.sched.topology.groups[group].span;
        let better = |a, b| if k.sched.topology.sched_asym_prefer(b, a) { b } else { a };
        k.sched.topology.groups[group].asym_prefer_cpu = span.iter().reduce(better).unwrap();
    }
    for shared in &mut k.sched.topology.shared {
        shared.has_idle_cores = r.one_in(2);
    }
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        let threads = bits_of(&k.sched.topology.smt_mask[cpu.index()]);
        let priority = k.sched.topology.asym_priority[cpu.index()];
        let idle_cores = has_idle_cores(k, cpu) as u8;
        write!(text, " {threads} {priority} {idle_cores}").unwrap();
    }
    text
}

pub(super) fn has_idle_cores(k: &Kernel, cpu: CpuId) -> bool {
    let shared = k.sched.topology.sd_balance_shared[cpu.index()];
    shared.is_some_and(|shared| k.sched.topology.shared[shared].has_idle_cores)
}

/// Puts what a line says of threads after its first number.
pub(super) fn insert_threads(line: &mut String, threads: &str) {
    let at = line.find(' ').expect("a line has several numbers");
    line.insert_str(at, threads);
}

pub(super) fn mask_of(bits: u64) -> CpuMask {
    (0..NR_CPUS).filter(|c| bits >> c & 1 != 0).map(CpuId).collect()
}

pub(super) fn bits_of(mask: &CpuMask) -> u64 {
    mask.iter().map(|c| 1 << c.0).sum()
}

/// Writes all domains of a machine, by index: capacities of groups, groups, domains, and each CPU's lowest domain.
pub(super) fn write_domains(k: &Kernel, line: &mut String) {
    let t = &k.sched.topology;
    let index = |id: Option<DomainId>| id.map_or(-1, |id| id.0 as i32);
    write!(line, "{} {} {} ", t.capacities.len(), t.groups.len(), t.domains.len()).unwrap();
    for sgc in &t.capacities {
        let (capacity, min, max) = (sgc.capacity, sgc.min_capacity, sgc.max_capacity);
        let (next_update, imbalance) = (sgc.next_update, sgc.imbalance as u8);
        write!(line, "{capacity} {min} {max} {next_update} {imbalance} ").unwrap();
    }
    for group in &t.groups {
        let (span, weight, flags) = (bits_of(&group.span), group.group_weight, group.flags);
        let (balance, preferred) = (bits_of(&group.balance_mask), group.asym_prefer_cpu);
        let (cores, next, sgc) = (group.cores, group.next.0, group.sgc);
        write!(line, "{span} {weight} {cores} {flags:x} {balance} {preferred} {sgc} {next} ")
            .unwrap();
    }
    for d in &t.domains {
        let (flags, pct, numa) = (d.flags, d.imbalance_pct, d.imb_numa_nr);
        let (parent, child, groups) = (index(d.parent), index(d.child), d.groups.0);
        let (span, weight) = (bits_of(&d.span), d.span_weight);
        write!(line, "{flags:x} {pct} {numa} {span} {weight} {parent} {child} {groups} ").unwrap();
        let (failed, tries, factor) = (d.nr_balance_failed, d.cache_nice_tries, d.busy_factor);
        let (interval, min, max) = (d.balance_interval, d.min_interval, d.max_interval);
        let last = d.last_balance;
        write!(line, "{failed} {tries} {interval} {min} {max} {factor} {last} ").unwrap();
    }
    for base in &t.base {
        write!(line, "{} ", index(*base)).unwrap();
    }
}
