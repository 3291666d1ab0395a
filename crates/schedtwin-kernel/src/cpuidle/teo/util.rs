// SPDX-License-Identifier: GPL-2.0-or-later
//! Utilisation awareness of teo: a busy CPU takes a shallower state, for the sake of latency.
//!
//! **The idea** (Kajetan Puchalski, 2022). The timers and the past say how long a CPU will sleep; the scheduler
//! knows how much it has been doing. A CPU that goes idle *utilised* will soon be wanted again, and then a
//! deep state costs latency and, left too early, energy too. Where the shallow state is cheap, as on phones,
//! it is the better bet.
//!
//! **Utilised**: `sched_cpu_util()` exceeds a threshold, the CPU's capacity shifted right by 6: 16 of 1024, 2
//! of 160, 0 of anything below 64. The utilisation is as of the last PELT update; it does not decay while the
//! CPU sleeps without a tick.
//!
//! **The forms** differ in what a utilised CPU does:
//!
//! | form | at once | otherwise | counters |
//! |---|---|---|---|
//! | as posted | the first enabled state | | learn nothing from it |
//! | v2 | with two states: the first enabled | the next state below, if enabled | likewise |
//! | v3 | with two states: the first enabled that does not poll | state 0 for state 1, unless it polls | likewise |
//! | v4 | as v3 | as v3 | learn |
//! | 6.3 (v6) | as v3 | a state shallower that does not poll | learn |
//! | 6.6 to 6.10 | with two states: state 0 if it sleeps, is enabled and deep enough | as 6.3, if that is deep enough | learn |
//! | gradual | | state · unused capacity / capacity, whatever was chosen | learn |
//!
//! ```text
//!  states 0 1 2 3, state 0 polls, 3 chosen; utilised:  posted 0   v2 2   v3, v4 3   6.3 2
//! ```
//!
//! *What the counters learn.* As posted, a sleep that utilisation decided is not counted. Then only sleeps of
//! an idle CPU are, which are long, and teo becomes too sure of deep states: reviewers had this changed in v4.
//!
//! **Quirks**, kept:
//! - The flag is that of the last look. Where the next timer leaves no choice nobody looks, and an old flag
//!   decides whether the counters learn.
//! - As posted, and up to v4 with two states, a CPU without a state to take gets one behind the last.
//!
//! **Example.** Two states, both enabled, on a utilised CPU of capacity 1024:
//!
//! ```
//! use schedtwin_kernel::config::TeoUtil;
//! use schedtwin_kernel::cpuidle::states::IdleStateParams;
//! use schedtwin_kernel::cpuidle::teo::util::UtilAware;
//!
//! let states = [IdleStateParams::default(); 2];
//! let mut posted = UtilAware::new(TeoUtil::Posted, 1024, 6).unwrap();
//! posted.look(16);
//! assert_eq!(posted.at_once(&states), None);
//! posted.look(17);
//! assert_eq!(posted.at_once(&states), Some(0));
//! assert!(posted.forgets());
//! ```
//!
//! **Kernel:** RFC of 15 September 2022, v2, v3, v4 of October and November 2022, commit 9ce0f7c4bc64 (6.3),
//! reverted by 0a2998fa48f0 (6.11). The form of 6.6 is in [`v6_6`](super::v6_6). Checked bit for bit against the
//! patches' C on that of 6.1 (`conformance/src/teo`), v3 as v4 with the lines that its review quotes.
//! **Differences:** the gradual form was a sentence in the discussion (Chen Yu, 17 September 2022), with
//! `util_avg`; here it is `sched_cpu_util()`, as in the patch, and a disabled state is skipped no more than
//! the sentence says.

use crate::config::{Config, TeoUtil};
use crate::cpuidle::states::{IdleStateParams, find_shallower_state};

/// The state that a utilised CPU takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtOnce {
    /// The first enabled state.
    FirstEnabled,
    /// With two states: the first enabled one.
    OfTwoFirstEnabled,
    /// With two states: the first enabled one that does not poll; if there is none, one behind the last.
    OfTwoFirstSleeping,
    /// With two states: the first enabled one that does not poll, if there is one.
    OfTwoFirstSleepingIfAny,
}

/// The state that a utilised CPU takes in place of the chosen one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// That state.
    None,
    /// The next one below, if that is enabled.
    NextBelow,
    /// In place of state 1, state 0 if it is enabled and does not poll.
    FromState1,
    /// A shallower one that is enabled and does not poll.
    Shallower,
}

/// Utilisation awareness of one CPU (part of `struct teo_cpu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtilAware {
    /// A CPU with a higher utilisation is utilised (`util_threshold`).
    pub threshold: u64,
    /// It was when somebody looked last (`utilized`).
    pub utilized: bool,
    at_once: AtOnce,
    step: Step,
    /// A sleep on a utilised CPU is not counted.
    forgetful: bool,
}

/// The gradual form: a wrapper around any choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradual {
    /// Of the CPU.
    pub capacity: u64,
}

impl UtilAware {
    /// Of a CPU of that capacity (0..=1024); `None` where nobody looks, or gradually.
    pub fn new(form: TeoUtil, capacity: u64, shift: u32) -> Option<UtilAware> {
        let (at_once, step, forgetful) = match form {
            TeoUtil::Off | TeoUtil::Gradual => return None,
            TeoUtil::Posted => (AtOnce::FirstEnabled, Step::None, true),
            TeoUtil::V2 => (AtOnce::OfTwoFirstEnabled, Step::NextBelow, true),
            TeoUtil::V3 => (AtOnce::OfTwoFirstSleeping, Step::FromState1, true),
            TeoUtil::V4 => (AtOnce::OfTwoFirstSleeping, Step::FromState1, false),
            TeoUtil::V6_3 => (AtOnce::OfTwoFirstSleepingIfAny, Step::Shallower, false),
        };
        let threshold = capacity >> shift;
        Some(UtilAware { threshold, utilized: false, at_once, step, forgetful })
    }

    /// As a kernel's configuration has it.
    pub(in crate::cpuidle) fn of(config: &Config, capacity: u64) -> Option<UtilAware> {
        UtilAware::new(config.teo_util, capacity, config.teo_util_threshold_shift)
    }

    /// Looks at the utilisation.
    #[inline]
    pub fn look(&mut self, cpu_util: u64) {
        self.utilized = cpu_util > self.threshold;
    }

    /// Whether the last sleep is not to be counted.
    #[inline]
    pub fn forgets(&self) -> bool {
        self.forgetful && self.utilized
    }

    /// The state that a utilised CPU takes without further thought; behind the last if none will do.
    pub fn at_once(&self, states: &[IdleStateParams]) -> Option<usize> {
        if !self.utilized || (self.at_once != AtOnce::FirstEnabled && states.len() > 2) {
            return None;
        }
        let enabled = states.iter().position(|s| !s.disabled);
        let sleeping = states.iter().position(|s| !s.disabled && !s.polling);
        match self.at_once {
            AtOnce::FirstEnabled | AtOnce::OfTwoFirstEnabled => enabled.or(Some(states.len())),
            AtOnce::OfTwoFirstSleeping => sleeping.or(Some(states.len())),
            AtOnce::OfTwoFirstSleepingIfAny => sleeping,
        }
    }

    /// The state that a CPU takes for which `idx` was chosen, expecting to sleep `duration_ns`.
    pub fn step(&self, states: &[IdleStateParams], idx: usize, duration_ns: i64) -> usize {
        let steps = match self.step {
            Step::None => false,
            Step::NextBelow => {
                return if self.utilized && idx > 0 && !states[idx - 1].disabled {
                    idx - 1
                } else {
                    idx
                };
            }
            Step::FromState1 => idx == 1,
            Step::Shallower => true,
        };
        match self.utilized && steps {
            true => find_shallower_state(states, idx, duration_ns, true),
            false => idx,
        }
    }
}

impl Gradual {
    /// Where a kernel's configuration has it.
    pub(in crate::cpuidle) fn of(config: &Config, capacity: u64) -> Option<Gradual> {
        (config.teo_util == TeoUtil::Gradual).then_some(Gradual { capacity })
    }

    /// The state for which `idx` was chosen.
    ///
    /// ```
    /// use schedtwin_kernel::cpuidle::teo::util::Gradual;
    ///
    /// let gradual = Gradual { capacity: 160 };
    /// assert_eq!(gradual.scale(3, 0), 3);
    /// assert_eq!(gradual.scale(3, 53), 2); // 3 · 107/160 = 2.006
    /// assert_eq!(gradual.scale(1, 1), 0); // of two states the deeper one is for a CPU of utilisation 0
    /// ```
    pub fn scale(&self, idx: usize, cpu_util: u64) -> usize {
        let unused = self.capacity.saturating_sub(cpu_util);
        (idx as u64 * unused / self.capacity.max(1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_a_64th_of_the_capacity() {
        for (capacity, shift, threshold) in
            [(1024, 6, 16), (160, 6, 2), (124, 6, 1), (63, 6, 0), (1024, 4, 64), (1024, 10, 1)]
        {
            let util = UtilAware::new(TeoUtil::Posted, capacity, shift).unwrap();
            assert_eq!(util.threshold, threshold, "{capacity} >> {shift}");
        }
        // Above zero is utilised where the threshold is zero.
        let mut util = UtilAware::new(TeoUtil::V4, 63, 6).unwrap();
        util.look(0);
        assert!(!util.utilized);
        util.look(1);
        assert!(util.utilized);
        assert_eq!(UtilAware::new(TeoUtil::Off, 1024, 6), None);
        assert_eq!(UtilAware::new(TeoUtil::Gradual, 1024, 6), None);
    }

    /// Asserts the choice of each form from each table for a utilised CPU: at once, or in place of
    /// the deepest state.
    #[test]
    fn the_forms_differ() {
        let table = |text: &str| -> Vec<IdleStateParams> {
            let state = |(i, kind)| IdleStateParams {
                target_residency_ns: i as u64 * 1000,
                polling: kind == 'p',
                disabled: kind == '-',
                ..Default::default()
            };
            text.chars().enumerate().map(state).collect()
        };
        // s sleeps, p polls, - is disabled; what posted, v2, v3 and v4, 6.3 take of it.
        for (text, expected) in [
            ("ss", [0, 0, 0, 0]),
            ("ps", [0, 0, 1, 1]),
            ("-s", [1, 1, 1, 1]),
            ("p-", [0, 0, 2, 1]),
            ("--", [2, 2, 2, 1]),
            ("sss", [0, 1, 2, 1]),
            ("pss", [0, 1, 2, 1]),
            ("s-s", [0, 2, 2, 0]),
            ("p-s", [0, 2, 2, 2]),
            ("pssss", [0, 3, 4, 3]),
            ("---", [3, 2, 2, 2]),
        ] {
            let states = table(text);
            let forms = [TeoUtil::Posted, TeoUtil::V2, TeoUtil::V4, TeoUtil::V6_3];
            let taken = forms.map(|form| {
                let mut util = UtilAware::new(form, 1024, 6).unwrap();
                util.look(17);
                let deepest = states.len() - 1;
                let otherwise = || util.step(&states, deepest, i64::MAX);
                util.at_once(&states).unwrap_or_else(otherwise)
            });
            assert_eq!(taken, expected, "{text}");
            for form in forms {
                let mut util = UtilAware::new(form, 1024, 6).unwrap();
                util.look(16);
                assert_eq!(util.at_once(&states), None, "{text}: not utilised");
                assert_eq!(util.step(&states, 1, i64::MAX), 1, "{text}: not utilised");
            }
        }
        // v3 and v4 step down from state 1 alone.
        let mut v4 = UtilAware::new(TeoUtil::V4, 1024, 6).unwrap();
        v4.look(17);
        assert_eq!(v4.step(&table("sss"), 1, i64::MAX), 0);
        assert_eq!(v4.step(&table("pss"), 1, i64::MAX), 1);
    }

    #[test]
    fn who_forgets() {
        use TeoUtil::*;
        for (form, forgets) in [(Posted, true), (V2, true), (V3, true), (V4, false), (V6_3, false)]
        {
            let mut util = UtilAware::new(form, 1024, 6).unwrap();
            util.look(17);
            assert_eq!(util.forgets(), forgets, "{form:?}");
            util.look(16);
            assert!(!util.forgets(), "{form:?}");
        }
    }
}
