// SPDX-License-Identifier: GPL-2.0-or-later
//! Short sorted lists: what the kernel keeps in red-black trees of a few nodes.
//!
//! A run queue and a CPU's timers hold one or two entries most of the time. A vector that is searched from its end beats
//! a tree there, and `Vec::insert` and `Vec::remove`, which call `memmove` even for nothing.

/// Puts an entry behind the last one that it does not go before.
#[inline]
pub(crate) fn insert<T: Copy>(list: &mut Vec<T>, entry: T, goes_before: impl Fn(&T) -> bool) {
    let mut at = list.len();
    list.push(entry);
    while at > 0 && goes_before(&list[at - 1]) {
        list[at] = list[at - 1];
        at -= 1;
    }
    list[at] = entry;
}

/// Takes the entry at `at` out; the others keep their order.
#[inline]
pub(crate) fn remove<T>(list: &mut Vec<T>, at: usize) {
    if at + 1 == list.len() {
        list.pop();
    } else {
        list.remove(at);
    }
}

#[cfg(test)]
mod tests {
    /// Beside a stable sort and `Vec::remove`.
    #[test]
    fn entries_of_one_key_keep_their_order() {
        let keys = [5, 3, 5, 1, 3, 3, 9, 5, 1];
        let mut list = Vec::new();
        for entry in keys.into_iter().enumerate().map(|(number, key)| (key, number)) {
            super::insert(&mut list, entry, |other| entry.0 < other.0);
        }
        let mut expected: Vec<(i32, usize)> = keys.into_iter().zip(0..).collect();
        expected.sort_by_key(|entry| entry.0);
        assert_eq!(list, expected);
        for at in [8, 0, 3, 5, 4, 0, 1, 1, 0] {
            super::remove(&mut list, at);
            expected.remove(at);
            assert_eq!(list, expected);
        }
    }
}
