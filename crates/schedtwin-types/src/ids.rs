// SPDX-License-Identifier: GPL-2.0-or-later
//! Identifiers and CPU masks.

use std::fmt;

/// The largest number of CPUs of a machine: a choice of the build, as `CONFIG_NR_CPUS` is one of Linux's. It decides how wide masks are, and no
/// result.
pub const MAX_CPUS: usize = if cfg!(feature = "nr-cpus-1024") { 1024 } else { 256 };

/// A logical CPU, `0..nr_cpus`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuId(pub u16);

/// A task of the simulated kernel: an index into its task arena. 0 is every CPU's idle task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TaskId(pub u32);

/// A thread of a workload: what the workload calls the task that runs its program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ThreadId(pub u32);

/// A futex: a word of user memory that threads wait on. Numbered densely by the workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FutexId(pub u32);

/// A pipe. Numbered densely by the workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PipeId(pub u32);

/// A socket: one end of a connection. Numbered densely by the workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SocketId(pub u32);

/// A block device. Numbered densely, in the order of the machine's file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct BlockDeviceId(pub u16);

/// A task group (a cgroup of the cpu controller). Numbered densely; 0 is the root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TaskGroupId(pub u32);

/// A session of processes (`setsid()`). Numbered densely by the workload; 0 is the one of the shell that starts it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SessionId(pub u32);

/// A process: threads that share memory. Numbered by the workload, densely or nearly so; 0 is the one of its first thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ProcessId(pub u32);

/// A cpufreq policy: the CPUs whose frequency the kernel sets together, as the kernel knows them. Firmware describes
/// one for each clock domain of the machine, under the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PolicyId(pub u16);

impl PolicyId {
    /// The policy as an index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A clock domain of the machine: CPUs that share one clock. The kernel knows it as the [`PolicyId`] of the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ClockDomainId(pub u16);

impl ClockDomainId {
    /// The clock domain as an index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The policy that firmware describes for it.
    #[inline(always)]
    pub fn policy(self) -> PolicyId {
        PolicyId(self.0)
    }
}

impl PolicyId {
    /// The clock domain that it stands for.
    #[inline(always)]
    pub fn clock_domain(self) -> ClockDomainId {
        ClockDomainId(self.0)
    }
}

impl fmt::Display for ClockDomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A power domain of the machine: a part above single CPUs with power and idle states of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PowerDomainId(pub u16);

impl PowerDomainId {
    /// The power domain as an index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The source that power is booked to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PowerSource {
    /// A clock domain with its CPUs.
    Clock(ClockDomainId),
    /// A power domain by itself.
    PowerDomain(PowerDomainId),
}

impl PowerSource {
    /// Its number in records and traces: clock domains come first, of which there are `nr_clocks`.
    #[inline]
    pub fn number(self, nr_clocks: usize) -> u16 {
        match self {
            PowerSource::Clock(domain) => domain.0,
            PowerSource::PowerDomain(domain) => nr_clocks as u16 + domain.0,
        }
    }
}

/// A set of cpufreq policies.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PolicyMask(CpuMask);

impl PolicyMask {
    /// The empty set.
    pub const EMPTY: PolicyMask = PolicyMask(CpuMask::EMPTY);

    /// Adds a policy. There are at most as many as CPUs.
    #[inline]
    pub fn insert(&mut self, policy: PolicyId) {
        self.0.insert(CpuId(policy.0));
    }

    /// The policies, ascending.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = PolicyId> {
        self.0.iter().map(|number| PolicyId(number.0))
    }
}

impl TaskGroupId {
    /// The root group, in which everybody is who was not moved elsewhere.
    pub const ROOT: TaskGroupId = TaskGroupId(0);
}

impl CpuId {
    /// The CPU as an index into per-CPU arrays.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}", self.0)
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl TaskId {
    /// The idle task (`swapper/N`) of whichever CPU.
    pub const IDLE: TaskId = TaskId(0);

    /// The task as an index into the task arena.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether this is the idle task.
    #[inline(always)]
    pub fn is_idle(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task{}", self.0)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl ThreadId {
    /// The thread as an index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of CPUs: a bitmap that is copied, not borrowed (`struct cpumask`).
///
/// ```
/// use schedtwin_types::{CpuId, CpuMask};
/// let mask = CpuMask::from_cpus([CpuId(0), CpuId(5), CpuId(6)]);
/// assert!(mask.contains(CpuId(5)));
/// // Linux scans a mask "wrapping from" a CPU: 5, 6, then 0.
/// let order: Vec<u16> = mask.iter_wrapping_from(CpuId(5)).map(|c| c.0).collect();
/// assert_eq!(order, [5, 6, 0]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct CpuMask([u64; MAX_CPUS / 64]);

impl CpuMask {
    /// The empty set.
    pub const EMPTY: CpuMask = CpuMask([0; MAX_CPUS / 64]);

    /// CPUs `0..count`.
    pub fn first(count: usize) -> CpuMask {
        (0..count).map(|c| CpuId(c as u16)).collect()
    }

    /// One CPU.
    #[inline]
    pub fn of(cpu: CpuId) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        mask.insert(cpu);
        mask
    }

    /// The set of the given CPUs.
    pub fn from_cpus(cpus: impl IntoIterator<Item = CpuId>) -> CpuMask {
        cpus.into_iter().collect()
    }

    /// The word that a CPU's bit is in. It is cut to those that there are, not compared with them.
    #[inline(always)]
    fn word(cpu: CpuId) -> usize {
        debug_assert!(cpu.index() < MAX_CPUS, "{cpu:?} of {MAX_CPUS}");
        cpu.index() % MAX_CPUS / 64
    }

    /// Whether `cpu` is in the set.
    #[inline(always)]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.0[CpuMask::word(cpu)] >> (cpu.0 % 64) & 1 != 0
    }

    /// Adds `cpu`.
    #[inline(always)]
    pub fn insert(&mut self, cpu: CpuId) {
        self.0[CpuMask::word(cpu)] |= 1 << (cpu.0 % 64);
    }

    /// Removes `cpu`.
    #[inline(always)]
    pub fn remove(&mut self, cpu: CpuId) {
        self.0[CpuMask::word(cpu)] &= !(1 << (cpu.0 % 64));
    }

    /// Adds `cpu` or removes it.
    #[inline(always)]
    pub fn set(&mut self, cpu: CpuId, contained: bool) {
        let (word, bit) = (&mut self.0[CpuMask::word(cpu)], cpu.0 % 64);
        *word = *word & !(1 << bit) | u64::from(contained) << bit;
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }

    /// The number of CPUs in the set.
    #[inline]
    pub fn weight(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    /// The intersection.
    #[inline]
    #[must_use]
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        CpuMask(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The union.
    #[inline]
    #[must_use]
    pub fn or(&self, other: &CpuMask) -> CpuMask {
        CpuMask(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// This set without the CPUs of `other`.
    #[inline]
    #[must_use]
    pub fn and_not(&self, other: &CpuMask) -> CpuMask {
        CpuMask(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// Whether the sets have a CPU in common.
    #[inline]
    pub fn intersects(&self, other: &CpuMask) -> bool {
        (0..self.0.len()).any(|i| self.0[i] & other.0[i] != 0)
    }

    /// Whether every CPU of this set is in `other`.
    #[inline]
    pub fn is_subset(&self, other: &CpuMask) -> bool {
        (0..self.0.len()).all(|i| self.0[i] & !other.0[i] == 0)
    }

    /// The lowest CPU of the set.
    #[inline]
    pub fn lowest(&self) -> Option<CpuId> {
        self.next_from(0)
    }

    /// The lowest CPU of the set that is `>= start`.
    #[inline]
    pub fn next_from(&self, start: usize) -> Option<CpuId> {
        let mut word = start >> 6;
        if word >= self.0.len() {
            return None;
        }
        let mut bits = self.0[word] & (!0u64 << (start & 63));
        loop {
            if bits != 0 {
                return Some(CpuId((word * 64) as u16 + bits.trailing_zeros() as u16));
            }
            word += 1;
            if word == self.0.len() {
                return None;
            }
            bits = self.0[word];
        }
    }

    /// The CPUs of the set, ascending (`for_each_cpu`).
    #[inline]
    pub fn iter(&self) -> Iter {
        Iter { bits: self.0[0], word: 0, mask: *self }
    }

    /// The CPUs of both sets in the `word`th 64 CPUs, ascending: for those who know how many words can have any.
    #[inline(always)]
    pub fn common_in_word(&self, other: &CpuMask, word: usize) -> WordIter {
        WordIter::new(word, self.0[word] & other.0[word])
    }

    /// The first CPU of the set from `start` upwards, then from 0 (`cpumask_next_wrap`).
    #[inline]
    pub fn next_wrapping_from(&self, start: CpuId) -> Option<CpuId> {
        self.next_from(start.index()).or_else(|| self.lowest())
    }

    /// How many CPUs of the set are below `end`.
    #[inline]
    fn weight_below(&self, end: usize) -> u32 {
        let (word, bit) = (end >> 6, end & 63);
        let whole: u32 = self.0.iter().take(word).map(|w| w.count_ones()).sum();
        whole + self.0.get(word).map_or(0, |w| (w & !(!0 << bit)).count_ones())
    }

    /// How many CPUs of the set one passes on the way from `start` upwards to `cpu`, then from 0, without
    /// `cpu` itself.
    #[inline]
    pub fn weight_wrapping(&self, start: CpuId, cpu: CpuId) -> u32 {
        let (from, to) = (self.weight_below(start.index()), self.weight_below(cpu.index()));
        if cpu >= start { to - from } else { self.weight() - from + to }
    }

    /// The CPUs of the set from `start` upwards, then from 0 (`for_each_cpu_wrap`).
    #[inline]
    pub fn iter_wrapping_from(&self, start: CpuId) -> impl Iterator<Item = CpuId> + use<> {
        let mut low = *self;
        let mut high = *self;
        for word in 0..self.0.len() {
            let keep = match (start.0 as usize).checked_sub(word * 64) {
                None => !0,
                Some(bit) if bit < 64 => !0u64 << bit,
                Some(_) => 0,
            };
            high.0[word] &= keep;
            low.0[word] &= !keep;
        }
        high.iter().chain(low.iter())
    }
}

impl FromIterator<CpuId> for CpuMask {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        for cpu in cpus {
            mask.insert(cpu);
        }
        mask
    }
}

/// Iterator over CPUs that share a word of 64, ascending.
#[derive(Clone)]
pub struct WordIter {
    first: u16,
    bits: u64,
}

impl WordIter {
    /// The CPUs whose bits are set in the `word`th word.
    #[inline(always)]
    pub fn new(word: usize, bits: u64) -> WordIter {
        WordIter { first: (word * 64) as u16, bits }
    }
}

impl Iterator for WordIter {
    type Item = CpuId;

    #[inline(always)]
    fn next(&mut self) -> Option<CpuId> {
        if self.bits == 0 {
            return None;
        }
        let bit = self.bits.trailing_zeros() as u16;
        self.bits &= self.bits - 1;
        Some(CpuId(self.first + bit))
    }
}

/// Iterator over the CPUs of a mask, ascending. The word that it is in is kept apart from the mask, so that
/// it stays in a register.
#[derive(Clone)]
pub struct Iter {
    bits: u64,
    word: usize,
    mask: CpuMask,
}

impl Iterator for Iter {
    type Item = CpuId;

    #[inline]
    fn next(&mut self) -> Option<CpuId> {
        while self.bits == 0 {
            if self.word == self.mask.0.len() - 1 {
                return None;
            }
            self.word += 1;
            self.bits = self.mask.0[self.word];
        }
        let bit = self.bits.trailing_zeros() as u16;
        self.bits &= self.bits - 1;
        Some(CpuId((self.word * 64) as u16 + bit))
    }

    /// Implements `for_each` and the like: a loop over words around one over bits.
    #[inline]
    fn fold<B, F: FnMut(B, CpuId) -> B>(self, init: B, mut f: F) -> B {
        let mut folded = init;
        let mut bits = self.bits;
        for word in self.word..self.mask.0.len() {
            if word > self.word {
                bits = self.mask.0[word];
            }
            while bits != 0 {
                folded = f(folded, CpuId((word * 64) as u16 + bits.trailing_zeros() as u16));
                bits &= bits - 1;
            }
        }
        folded
    }
}

impl fmt::Display for CpuMask {
    /// As sysfs prints a CPU list: `0-3,6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<u16> = self.iter().map(|c| c.0).collect();
        let mut at = 0;
        while at < cpus.len() {
            let mut end = at;
            while end + 1 < cpus.len() && cpus[end + 1] == cpus[end] + 1 {
                end += 1;
            }
            let comma = if at == 0 { "" } else { "," };
            if end == at {
                write!(f, "{comma}{}", cpus[at])?;
            } else {
                write!(f, "{comma}{}-{}", cpus[at], cpus[end])?;
            }
            at = end + 1;
        }
        Ok(())
    }
}

impl fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_print_as_sysfs_lists() {
        let mask = CpuMask::from_cpus([0, 1, 2, 6, 64, 65, 255].map(CpuId));
        assert_eq!(mask.to_string(), "0-2,6,64-65,255");
        assert_eq!(mask.weight(), 7);
        assert_eq!(mask.next_from(7), Some(CpuId(64)));
        assert_eq!(mask.next_from(256), None);
    }

    #[test]
    fn wrapping_scan_beyond_the_last_cpu_starts_at_zero() {
        let mask = CpuMask::first(4);
        let order: Vec<u16> = mask.iter_wrapping_from(CpuId(70)).map(|c| c.0).collect();
        assert_eq!(order, [0, 1, 2, 3]);
        let order: Vec<u16> = mask.iter_wrapping_from(CpuId(3)).map(|c| c.0).collect();
        assert_eq!(order, [3, 0, 1, 2]);
    }

    /// What can be counted agrees with what one meets on the way.
    #[test]
    fn wrapping_ways_are_as_long_as_the_walk() {
        let mask = CpuMask::from_cpus([0, 1, 5, 63, 64, 70, 127, 200, 255].map(CpuId));
        for start in [0, 1, 2, 63, 64, 65, 128, 255, 256].map(CpuId) {
            let order: Vec<CpuId> = mask.iter_wrapping_from(start).collect();
            assert_eq!(mask.next_wrapping_from(start), Some(order[0]));
            for (passed, cpu) in order.into_iter().enumerate() {
                assert_eq!(mask.weight_wrapping(start, cpu), passed as u32, "{start} {cpu}");
            }
        }
        assert_eq!(CpuMask::EMPTY.next_wrapping_from(CpuId(7)), None);
    }

    #[test]
    fn both_ways_to_iterate_agree() {
        let mask = CpuMask::from_cpus([3, 62, 63, 64, 191, 192, 255].map(CpuId));
        let mut rest = mask.iter();
        while let Some(first) = rest.next() {
            let mut folded = vec![first];
            rest.clone().for_each(|cpu| folded.push(cpu));
            let mut walk = rest.clone();
            let stepped: Vec<CpuId> =
                std::iter::once(first).chain(std::iter::from_fn(|| walk.next())).collect();
            assert_eq!(folded, stepped);
        }
    }
}
