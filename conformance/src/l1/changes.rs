// SPDX-License-Identifier: GPL-2.0-or-later
//! Changes of frequency: the recorded ones and ours, paired.
//!
//! The kernel and we may change to the same frequency a call apart, when an answer between differed. So a change is
//! met when the other side changes to the same frequency within one rate limit of it, and each change is
//! used once, in both directions: too many are as wrong as too few.

/// The changes of the two sides that have no partner, as indices, and how many have one.
pub(super) struct Pairs {
    pub(super) matched: u64,
    pub(super) recorded_alone: Vec<usize>,
    pub(super) ours_alone: Vec<usize>,
}

/// Pairs two lists of changes (time in ns, kHz), each ascending in time, within `within` ns.
pub(super) fn pair(recorded: &[(u64, u32)], ours: &[(u64, u32)], within: u64) -> Pairs {
    let mut used = vec![false; ours.len()];
    let mut from = 0;
    let mut recorded_alone = Vec::new();
    for (i, (time, khz)) in recorded.iter().enumerate() {
        while from < ours.len() && ours[from].0.saturating_add(within) < *time {
            from += 1;
        }
        let mut near = (from..ours.len()).take_while(|o| ours[*o].0 <= time.saturating_add(within));
        match near.find(|o| ours[*o].1 == *khz && !used[*o]) {
            Some(hit) => used[hit] = true,
            None => recorded_alone.push(i),
        }
    }
    let ours_alone: Vec<usize> = (0..ours.len()).filter(|o| !used[*o]).collect();
    Pairs { matched: (recorded.len() - recorded_alone.len()) as u64, recorded_alone, ours_alone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_paired_once_and_only_nearby() {
        let recorded = [(1_000, 5), (2_000, 6), (9_000, 5)];
        let check = |ours: &[(u64, u32)], matched, ours_alone: &[usize]| {
            let pairs = pair(&recorded, ours, 500);
            assert_eq!(pairs.matched, matched, "{ours:?}");
            assert_eq!(pairs.recorded_alone.len() as u64, 3 - matched, "{ours:?}");
            assert_eq!(pairs.ours_alone, ours_alone, "{ours:?}");
        };
        check(&recorded, 3, &[]);
        check(&[(1_500, 5), (1_500, 6)], 2, &[]);
        check(&[(1_501, 5)], 0, &[0]);
        check(&[(2_000, 5)], 0, &[0]);
        check(&[(600, 5), (800, 5)], 1, &[1]);
        check(&[], 0, &[]);
    }
}
