// SPDX-License-Identifier: GPL-2.0-or-later
//! Does the twin say what was published? The rule, in one place.
//!
//! Compared are differences to the base in percent of it: the published one `P`, known to `N` (the noise;
//! perhaps unknown), and the twin's `T` with its 95 % interval of half-width `H`.
//!
//! 1. a base value is `base`: nothing was predicted
//! 2. one of the differences is undefined, or `T` has no interval: `inconclusive`
//! 3. the interval of `T` leaves out zero, `P` has its sign, and `T` is 0.5 to 2 times `P`: `agree`
//! 4. `N` is known, and `P`, `T` and `H` are at most `N`: `agree`: both saw nothing beyond the noise
//! 5. the interval of `T` leaves out zero: `direction` if `P` has its sign, else `disagree`
//! 6. it contains zero. What was published is an effect (above `N`, or `N` is unknown and `P` is not zero) and even
//!    half of it lies outside of the interval: `disagree`, as the twin would have seen it
//! 7. else `inconclusive`: the twin does not know its own sign well enough
//!
//! An unknown noise never makes an agreement.

/// The verdict of a row on the twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// A base value: nothing is predicted.
    Base,
    /// Same sign and 0.5 to 2 times the published difference, or both within the noise.
    Agree,
    /// Same sign only.
    Direction,
    /// Another sign, or no effect where one was published.
    Disagree,
    /// It cannot be told.
    Inconclusive,
}

impl Verdict {
    /// All of them, in the order of a summary.
    pub const ALL: [Verdict; 5] = [
        Verdict::Base,
        Verdict::Agree,
        Verdict::Direction,
        Verdict::Disagree,
        Verdict::Inconclusive,
    ];

    /// As results spell it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Base => "base",
            Verdict::Agree => "agree",
            Verdict::Direction => "direction",
            Verdict::Disagree => "disagree",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// The twin's difference in percent of the base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwinDiff {
    /// The difference.
    pub percent: f64,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
}

/// Judges a predicted row: differences in percent of the base, `noise` likewise.
///
/// ```
/// use schedtwin_lab::study::verdict::{TwinDiff, Verdict, judge};
/// let twin = TwinDiff { percent: -20.0, ci95: Some([-24.0, -16.0]) };
/// assert_eq!(judge(Some(-29.4), None, Some(twin)), Verdict::Agree);
/// assert_eq!(judge(Some(-50.0), None, Some(twin)), Verdict::Direction);
/// assert_eq!(judge(Some(3.0), None, Some(twin)), Verdict::Disagree);
/// ```
pub fn judge(published: Option<f64>, noise: Option<f64>, twin: Option<TwinDiff>) -> Verdict {
    let (Some(p), Some(TwinDiff { percent: t, ci95: Some([low, high]) })) = (published, twin)
    else {
        return Verdict::Inconclusive;
    };
    let knows_its_sign = low > 0.0 || high < 0.0;
    let same_sign = p * t > 0.0;
    let ratio = t / p;
    if knows_its_sign && same_sign && (0.5..=2.0).contains(&ratio) {
        return Verdict::Agree;
    }
    let half_width = (high - low) / 2.0;
    if noise.is_some_and(|n| p.abs() <= n && t.abs() <= n && half_width <= n) {
        return Verdict::Agree;
    }
    if knows_its_sign {
        return if same_sign { Verdict::Direction } else { Verdict::Disagree };
    }
    let is_effect = p != 0.0 && noise.is_none_or(|n| p.abs() > n);
    if is_effect && !(low..=high).contains(&(p / 2.0)) {
        return Verdict::Disagree;
    }
    Verdict::Inconclusive
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Agree, Direction, Disagree, Inconclusive};

    #[test]
    fn every_branch_and_every_edge() {
        // published, noise, twin's difference, half-width
        for (p, n, t, h, expected) in [
            (-29.0, None, -20.0, 5.0, Agree),
            (-20.0, None, -10.0, 5.0, Agree),
            (-20.0, None, -9.99, 5.0, Direction),
            (-20.0, None, -40.0, 5.0, Agree),
            (-20.0, None, -40.1, 5.0, Direction),
            (-20.0, None, 4.0, 3.0, Disagree),
            // The sign of the twin is unknown.
            (-20.0, None, -8.0, 9.0, Inconclusive),
            (-20.0, None, 1.0, 30.0, Inconclusive),
            // It knows that there is nothing.
            (-20.0, None, -0.5, 1.0, Disagree),
            (-20.0, None, 0.0, 0.0, Disagree),
            // Within the noise.
            (0.5, Some(2.0), -1.0, 1.5, Agree),
            (0.5, Some(2.0), -1.0, 0.5, Agree),
            (0.5, Some(2.0), -1.0, 2.5, Inconclusive),
            (2.0, Some(2.0), 2.0, 2.0, Agree),
            (0.5, Some(2.0), -3.0, 0.5, Disagree),
            (0.5, Some(2.0), 3.0, 0.5, Direction),
            (0.5, Some(2.0), 0.8, 0.5, Agree),
            // Nothing was published as an effect, and the noise is unknown: no agreement by noise.
            (0.1, None, 0.0, 0.0, Disagree),
            (0.1, None, 0.1, 0.2, Inconclusive),
            (0.0, None, 0.0, 0.0, Inconclusive),
            (0.0, None, 1.0, 0.5, Disagree),
            // An effect above the noise that the twin has not.
            (-10.0, Some(4.0), -1.0, 2.0, Disagree),
            (-10.0, Some(4.0), -1.0, 4.5, Inconclusive),
        ] {
            let twin = TwinDiff { percent: t, ci95: Some([t - h, t + h]) };
            assert_eq!(judge(Some(p), n, Some(twin)), expected, "{p} +-{n:?}, {t} +-{h}");
            let mirrored = TwinDiff { percent: -t, ci95: Some([-t - h, -t + h]) };
            assert_eq!(judge(Some(-p), n, Some(mirrored)), expected, "mirrored {p}, {t} +-{h}");
        }
        let without = TwinDiff { percent: -20.0, ci95: None };
        assert_eq!(judge(Some(-20.0), None, Some(without)), Inconclusive);
        assert_eq!(judge(None, None, Some(without)), Inconclusive);
        assert_eq!(judge(Some(-20.0), Some(50.0), None), Inconclusive);
    }
}
