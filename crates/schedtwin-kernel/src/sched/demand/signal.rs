// SPDX-License-Identifier: GPL-2.0-or-later
//! Signals: what a CPU's demand follows from, and which CPUs' demands are out of date.
//!
//! **Idea.** schedutil wants the demands of all CPUs of a domain whenever one of them calls it, though most have not
//! changed since it last asked. It keeps them, and computes anew those that are *stale*. A signal that changes
//! without a word would leave a wrong demand behind. So a [`Signal`] can be read by everybody, and changed only by
//! a caller that hands over the set of stale demands.
//!
//! **The signals**: the averages of a CPU's run queues and of RT, DEADLINE and interrupts, with the estimates in them; the
//! queue of RT tasks and whether it is throttled; the fair server's bandwidth; the clamps of the queued tasks.
//! Beside them the key of clamps turns all CPUs' demands stale, and schedutil's own boost after I/O its CPU's.
//!
//! `verify()` computes every demand that is not stale from scratch.

use crate::sched::pelt::SchedAvg;
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS, WordIter};
use std::ops::Deref;

/// The CPUs whose demand has to be computed anew before it is used, and those whose need ([`super::need`]) nobody has
/// looked at since it may have changed.
#[derive(Clone, Debug)]
pub struct StaleDemands {
    stale: CpuMask,
    unseen: Unseen,
    /// The last word of 64 CPUs that the machine's CPUs need.
    last_word: usize,
}

/// CPUs that nobody has looked at: a set that is emptied after each entry, so a look visits only words that can have one.
#[derive(Clone, Debug)]
struct Unseen {
    words: [u64; MAX_CPUS / 64],
    /// Whether there may be any: asked after each entry, so it is one byte.
    any: bool,
}

impl Unseen {
    #[inline(always)]
    fn insert(&mut self, cpu: CpuId) {
        self.words[cpu.index() % MAX_CPUS / 64] |= 1 << (cpu.index() % 64);
        self.any = true;
    }

    #[inline(always)]
    fn contains(&self, cpu: CpuId) -> bool {
        self.words[cpu.index() % MAX_CPUS / 64] & (1 << (cpu.index() % 64)) != 0
    }
}

impl StaleDemands {
    /// At boot: nobody's demand has been computed.
    pub(crate) fn all(cpus: CpuMask) -> StaleDemands {
        let last_word = cpus.iter().last().map_or(0, |cpu| cpu.index() / 64);
        let mut unseen = Unseen { words: [0; MAX_CPUS / 64], any: false };
        cpus.iter().for_each(|cpu| unseen.insert(cpu));
        StaleDemands { stale: cpus, unseen, last_word }
    }

    /// Whether a CPU's demand is out of date.
    #[inline(always)]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.stale.contains(cpu)
    }

    /// After a word of 64 CPUs, the next one that the machine has CPUs in. Most machines have one.
    #[inline(always)]
    pub fn next_word(&self, word: usize) -> Option<usize> {
        (word != self.last_word).then(|| word + 1)
    }

    /// Those of a set in a word of 64.
    #[inline(always)]
    pub fn among(&self, cpus: &CpuMask, word: usize) -> WordIter {
        cpus.common_in_word(&self.stale, word)
    }

    /// Something else than a [`Signal`] alters a CPU's demand.
    #[inline(always)]
    pub(crate) fn mark(&mut self, cpu: CpuId) {
        self.stale.insert(cpu);
        self.unseen.insert(cpu);
    }

    /// A CPU's demand has been computed.
    #[inline(always)]
    pub(crate) fn computed(&mut self, cpu: CpuId) {
        self.stale.remove(cpu);
    }

    /// Whether a CPU's need may have changed since the last look.
    #[inline(always)]
    pub(super) fn is_unseen(&self, cpu: CpuId) -> bool {
        self.unseen.contains(cpu)
    }

    /// Whether anybody's may have.
    #[inline(always)]
    pub(super) fn has_unseen(&self) -> bool {
        self.unseen.any
    }

    /// A look begins. It takes all words ([`StaleDemands::take_unseen`]).
    #[inline(always)]
    pub(super) fn begin_look(&mut self) {
        self.unseen.any = false;
    }

    /// The CPUs to look at in a word of 64.
    #[inline(always)]
    pub(super) fn take_unseen(&mut self, word: usize) -> WordIter {
        WordIter::new(word, std::mem::take(&mut self.unseen.words[word]))
    }
}

/// A value that a CPU's demand follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal<T>(T);

impl<T> Deref for Signal<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Unit tests and drawn states write signals that they do not want to bring about.
#[cfg(any(test, feature = "conformance"))]
impl<T> std::ops::DerefMut for Signal<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Signal<T> {
    /// As at boot, when every demand is stale.
    pub(crate) fn new(value: T) -> Signal<T> {
        Signal(value)
    }

    /// Changes the signal of `cpu`.
    #[inline(always)]
    pub(crate) fn change<R>(
        &mut self,
        cpu: CpuId,
        stale: &mut StaleDemands,
        change: impl FnOnce(&mut T) -> R,
    ) -> R {
        stale.mark(cpu);
        change(&mut self.0)
    }

    /// Brings the signal of `cpu` up to date. `update` says whether a demand can have changed, and so does this.
    #[inline(always)]
    pub(crate) fn update(
        &mut self,
        cpu: CpuId,
        stale: &mut StaleDemands,
        update: impl FnOnce(&mut T) -> bool,
    ) -> bool {
        let changed = update(&mut self.0);
        if changed {
            stale.mark(cpu);
        }
        changed
    }
}

impl Signal<SchedAvg> {
    /// Changes the load in the averages, which no demand follows from.
    #[inline(always)]
    pub(crate) fn change_load(&mut self, change: impl FnOnce(&mut SchedAvg)) {
        let demanded = |avg: &SchedAvg| (avg.util_avg, avg.runnable_avg, avg.util_est);
        let before = demanded(&self.0);
        change(&mut self.0);
        debug_assert_eq!(demanded(&self.0), before, "more than the load has changed");
    }
}
