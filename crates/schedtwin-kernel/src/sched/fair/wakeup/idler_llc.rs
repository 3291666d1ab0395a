// SPDX-License-Identifier: GPL-2.0-or-later
//! "Prefer idle CPU to cache affinity", as posted in February and March 2021: between the caches of the waker and of
//! prev, `wake_affine` prefers the one of which a smaller share is busy.
//!
//! **Decides** after WA_IDLE and before WA_WEIGHT, and only where the two CPUs share no cache.
//!
//! 1. Both caches are wholly busy: no preference.
//! 2. WA_WAKER: the waker's cache has an idle CPU (second version: more idle CPUs than its cores have further
//!    threads, so that some core is idle): the waker.
//! 3. The smaller share of busy CPUs. A tie goes to the waker if the wakeup is synchronous, else there is no preference.
//!
//! ```text
//! two caches of 4 CPUs, 3 busy at the waker, 4 at prev:  3·4 − 4·4 < 0: the waker
//!                       3 and 3, synchronous:            3·4 − 1 − 3·4 < 0: the waker
//!                       4 and 3:                         4·4 − 3·4 > 0: prev
//! ```
//!
//! `nohz.rs` counts the busy CPUs: a CPU that keeps its tick in idle is busy, and one that has just
//! woken up is idle until its next tick.
//!
//! Kernel: the patch on 5.11-rc6 of 26 February 2021 and its second version of 4 March; no release has it.
//! Differences: a CPU without a cache domain has no preference in the first version, too, which does not test for it.
//! References: the first version compares prev's size twice in step 1, which shows where sizes differ.

use crate::config::IdlerLlc;
use crate::sched::fair::energy::Choice;
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, PlacementRule};

impl Scheduler {
    /// `prefer_idler_llc()`: `this` or `prev`, if their caches tell them apart.
    pub(super) fn prefer_idler_llc(
        &self,
        this: CpuId,
        prev: CpuId,
        sync: bool,
        cx: &Context,
    ) -> Option<Choice> {
        let form = cx.config.idler_llc;
        if matches!(form, IdlerLlc::Absent | IdlerLlc::IdleCore)
            || self.topology.cpus_share_cache(this, prev)
        {
            return None;
        }
        let (this_busy, this_size) = self.busy_of_llc(this)?;
        let (prev_busy, prev_size) = self.busy_of_llc(prev)?;
        let full = match form {
            IdlerLlc::Absent | IdlerLlc::Fraction | IdlerLlc::WakerFirst => prev_size,
            IdlerLlc::WakerCores | IdlerLlc::IdleCore => this_size,
        };
        if prev_busy == prev_size && this_busy == full {
            return None;
        }
        let room = match form {
            IdlerLlc::Absent | IdlerLlc::IdleCore | IdlerLlc::Fraction => 0,
            IdlerLlc::WakerFirst => this_size,
            IdlerLlc::WakerCores => {
                this_size / self.topology.smt_mask[this.index()].weight() as i32
            }
        };
        if this_busy < room {
            return Some((this, PlacementRule::WaWaker));
        }
        match this_busy * prev_size - i32::from(sync) - prev_busy * this_size {
            0 => None,
            less if less < 0 => Some((this, PlacementRule::WaIdlerLlcWaker)),
            _ => Some((prev, PlacementRule::WaIdlerLlcPrev)),
        }
    }

    /// Returns the number of busy CPUs of a CPU's cache, and the number of all.
    pub(super) fn busy_of_llc(&self, cpu: CpuId) -> Option<(i32, i32)> {
        let shared = self.topology.sd_llc_shared[cpu.index()]?;
        let busy = self.topology.shared[shared].nr_busy_cpus as i32;
        Some((busy, self.topology.sd_llc_size[cpu.index()] as i32))
    }
}

impl Context {
    /// Whether caches know which core is idle, and count busy CPUs at each switch (`idle_core.rs`).
    #[inline]
    pub(crate) fn keeps_idle_core(&self) -> bool {
        self.config.idler_llc == IdlerLlc::IdleCore
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;
    use crate::config::Config;
    use crate::device_tree::DeviceTree;

    /// Two caches of these sizes; each core has two threads if asked for.
    fn kernel(sizes: [usize; 2], smt: bool) -> Kernel {
        let opps: &[(u32, u64)] = &[(1_000_000, 100_000)];
        let mut machine = DeviceTree::of_domains(&[((sizes[0] + sizes[1]) as u16, 1024, opps)]);
        for (number, cpu) in machine.cpus.iter_mut().enumerate() {
            cpu.llc = u16::from(number >= sizes[0]);
            cpu.core = smt.then_some(number as u16 / 2);
        }
        Kernel::boot(machine, Config::linux_6_12())
    }

    /// The waker is on the first CPU of the first cache, prev on the last of the second.
    fn decide(kernel: &mut Kernel, form: IdlerLlc, busy: [u32; 2], sync: bool) -> Option<bool> {
        let (this, prev) = (CpuId(0), CpuId(kernel.sched.rq.len() as u16 - 1));
        kernel.cx.config.idler_llc = form;
        for (cpu, busy) in [(this, busy[0]), (prev, busy[1])] {
            let shared = kernel.sched.topology.sd_llc_shared[cpu.index()].expect("it has a cache");
            kernel.sched.topology.shared[shared].nr_busy_cpus = busy;
        }
        kernel.sched.prefer_idler_llc(this, prev, sync, &kernel.cx).map(|(cpu, _)| cpu == this)
    }

    /// The worked values of the behaviour notes (03 §7).
    #[test]
    fn worked_values() {
        let (waker, prev) = (Some(true), Some(false));
        let mut equal = kernel([4, 4], false);
        for (busy, sync, expected) in [
            ([3, 4], false, waker),
            ([3, 4], true, waker),
            ([3, 3], true, waker),
            ([3, 3], false, None),
            ([4, 3], false, prev),
            ([4, 4], true, None),
        ] {
            let got = decide(&mut equal, IdlerLlc::Fraction, busy, sync);
            assert_eq!(got, expected, "{busy:?} {sync}");
        }
        // A cache of 4 for the waker and one of 8 for prev.
        let mut unequal = kernel([4, 8], false);
        assert_eq!(decide(&mut unequal, IdlerLlc::Fraction, [2, 4], false), None);
        // Both are full; the first version compares with the wrong size, and sync decides.
        assert_eq!(decide(&mut unequal, IdlerLlc::Fraction, [4, 8], true), waker);
        assert_eq!(decide(&mut unequal, IdlerLlc::WakerCores, [4, 8], true), None);
    }

    /// Beside the rule in fractions, for all counts of two sizes.
    #[test]
    fn the_idler_share_wins() {
        for (sizes, smt) in [([4, 4], true), ([4, 8], false), ([8, 4], true)] {
            let mut kernel = kernel(sizes, smt);
            let [this_size, prev_size] = sizes.map(|size| size as u32);
            let threads = if smt { 2 } else { 1 };
            for (t, p) in (0..=this_size).flat_map(|t| (0..=prev_size).map(move |p| (t, p))) {
                for sync in [false, true] {
                    let (a, b) = (t * prev_size, p * this_size);
                    let by_share = match a.cmp(&b) {
                        std::cmp::Ordering::Less => Some(true),
                        std::cmp::Ordering::Equal => sync.then_some(true),
                        // One unit of difference is what sync makes up for.
                        std::cmp::Ordering::Greater if sync && a == b + 1 => None,
                        std::cmp::Ordering::Greater => Some(false),
                    };
                    let both_full = p == prev_size && t == this_size;
                    let at_odds = p == prev_size && t == prev_size;
                    for (form, nothing, room) in [
                        (IdlerLlc::Absent, true, 0),
                        (IdlerLlc::Fraction, at_odds, 0),
                        (IdlerLlc::WakerFirst, at_odds, this_size),
                        (IdlerLlc::WakerCores, both_full, this_size / threads),
                    ] {
                        let expected = match nothing {
                            true => None,
                            false if t < room => Some(true),
                            false => by_share,
                        };
                        let got = decide(&mut kernel, form, [t, p], sync);
                        assert_eq!(
                            got, expected,
                            "{form:?} {t}/{this_size} {p}/{prev_size} {sync}"
                        );
                    }
                }
            }
        }
    }

    /// CPUs that share a cache are not told apart by it.
    #[test]
    fn one_cache_has_no_preference() {
        let mut kernel = kernel([8, 0], false);
        assert_eq!(decide(&mut kernel, IdlerLlc::WakerFirst, [3, 3], true), None);
    }
}
