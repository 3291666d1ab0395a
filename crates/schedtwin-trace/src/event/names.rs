// SPDX-License-Identifier: GPL-2.0-or-later
//! Strings of a trace as numbers: each text once, found again without an allocation.
//!
//! Names of tasks, events and functions are few. Names of slices may hold a number and then never end, so the
//! table is bounded; whatever comes after it is full becomes [`NameId::MANY`].

use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Different names that are kept.
const NAMES_MAX: usize = 1 << 20;

/// Bytes of all names together that are kept.
const BYTES_MAX: usize = 64 << 20;

/// A name in the [`Names`] of its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

impl NameId {
    /// No name.
    pub const NONE: NameId = NameId(0);
    /// A name that came after the table was full: no longer told from others.
    pub const MANY: NameId = NameId(1);

    /// Its place in a table by name.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names that a source has handed out.
///
/// ```
/// use schedtwin_trace::event::{NameId, Names};
///
/// let mut names = Names::new();
/// let ui = names.intern("ui");
/// assert_eq!((names.intern("ui"), names.text(ui)), (ui, "ui"));
/// assert_eq!(names.intern_bytes(b"\xe4x"), names.intern("\u{fffd}x"));
/// assert_eq!(names.intern(""), NameId::NONE);
/// ```
#[derive(Clone, Debug)]
pub struct Names {
    /// All texts, one behind the other.
    text: String,
    /// Where each one ends.
    ends: Vec<u32>,
    by_text: HashTable<u32>,
    /// Short names of late, by their bytes: most names are those of the tasks that have just run.
    recent: Vec<(u128, NameId)>,
}

/// Names of late that are kept.
const RECENT: usize = 1 << 10;

/// The bytes of a short name as one number, its length in the highest byte; 0 of others.
fn packed(bytes: &[u8]) -> u128 {
    const BYTES: usize = 15;
    match bytes.len() {
        length @ 1..=BYTES => {
            let mut word = [0; 16];
            word[..length].copy_from_slice(bytes);
            word[BYTES] = length as u8;
            u128::from_le_bytes(word)
        }
        _ => 0,
    }
}

/// Where a packed name is kept.
fn place(packed: u128) -> usize {
    let folded = (packed as u64) ^ ((packed >> 64) as u64).rotate_left(29);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % RECENT
}

impl Default for Names {
    fn default() -> Names {
        Names::new()
    }
}

impl Names {
    /// A table that holds only [`NameId::NONE`] and [`NameId::MANY`].
    pub fn new() -> Names {
        let many = "(one of too many names)";
        Names {
            text: many.to_owned(),
            ends: vec![0, many.len() as u32],
            by_text: HashTable::new(),
            recent: vec![(0, NameId::NONE); RECENT],
        }
    }

    /// The number of this text, a new one at its first time.
    #[inline]
    pub fn intern(&mut self, text: &str) -> NameId {
        if text.is_empty() {
            return NameId::NONE;
        }
        let packed = packed(text.as_bytes());
        match self.recently(packed) {
            Some(known) => known,
            None => self.intern_new(text, packed),
        }
    }

    #[inline]
    fn recently(&self, packed: u128) -> Option<NameId> {
        let (kept, name) = self.recent[place(packed)];
        (packed != 0 && kept == packed).then_some(name)
    }

    /// A name that was not among those of late.
    fn intern_new(&mut self, text: &str, packed: u128) -> NameId {
        let name = self.intern_text(text);
        if packed != 0 && name != NameId::MANY {
            self.recent[place(packed)] = (packed, name);
        }
        name
    }

    fn intern_text(&mut self, text: &str) -> NameId {
        let hash = hash(text);
        let Names { text: all, ends, by_text, .. } = self;
        let known = by_text.find(hash, |&id| of(all, ends, id) == text);
        if let Some(&id) = known {
            return NameId(id);
        }
        if ends.len() >= NAMES_MAX || all.len() + text.len() > BYTES_MAX {
            return NameId::MANY;
        }
        let id = ends.len() as u32;
        all.push_str(text);
        ends.push(all.len() as u32);
        by_text.insert_unique(hash, id, |&id| self::hash(of(all, ends, id)));
        NameId(id)
    }

    /// As [`Names::intern`], for names that need not end, those of slices and counters: they get half of the table, so that
    /// names of tasks always find a place.
    pub fn intern_minor(&mut self, text: &str) -> NameId {
        if self.ends.len() < NAMES_MAX / 2 && self.text.len() < BYTES_MAX / 2 {
            return self.intern(text);
        }
        self.find(text).unwrap_or(NameId::MANY)
    }

    /// As [`Names::intern`], of bytes: what is no UTF-8 is replaced, as a name that the kernel cut at 15 bytes may end inside
    /// a character.
    #[inline]
    pub fn intern_bytes(&mut self, bytes: &[u8]) -> NameId {
        // Only text is among them.
        if let Some(known) = self.recently(packed(bytes)) {
            return known;
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => self.intern(text),
            Err(_) => self.intern(&String::from_utf8_lossy(bytes)),
        }
    }

    /// The text of a name of this table.
    pub fn text(&self, name: NameId) -> &str {
        of(&self.text, &self.ends, name.0)
    }

    /// The number of a text, if it has one.
    pub fn find(&self, text: &str) -> Option<NameId> {
        let found = self.by_text.find(hash(text), |&id| of(&self.text, &self.ends, id) == text);
        found.map(|&id| NameId(id))
    }

    /// How many names there are; their numbers are `0..len`.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no name was interned.
    pub fn is_empty(&self) -> bool {
        self.by_text.is_empty()
    }
}

fn of<'a>(text: &'a str, ends: &[u32], id: u32) -> &'a str {
    let at = id as usize;
    let start = at.checked_sub(1).map_or(0, |before| ends[before] as usize);
    &text[start..ends[at] as usize]
}

/// The same on every computer, as nothing depends on the order in the table.
fn hash(text: &str) -> u64 {
    foldhash::fast::FixedState::with_seed(0).hash_one(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_has_one_number_and_comes_back() {
        let mut names = Names::new();
        let texts: Vec<String> = (0..5000).map(|n| format!("name {n}")).collect();
        let ids: Vec<NameId> = texts.iter().map(|text| names.intern(text)).collect();
        for (text, id) in texts.iter().zip(&ids) {
            assert_eq!((names.text(*id), names.find(text)), (&text[..], Some(*id)));
            assert_eq!(names.intern(text), *id);
        }
        assert_eq!(names.len(), 5002);
        assert_eq!((names.text(NameId::NONE), names.find("nobody")), ("", None));
    }

    #[test]
    fn the_table_does_not_grow_without_end() {
        let mut names = Names::new();
        let long = "x".repeat(BYTES_MAX);
        assert_eq!(names.intern(&long), NameId::MANY);
        let a = names.intern("a");
        assert_eq!(names.text(a), "a");
        for n in 0..NAMES_MAX {
            names.intern_minor(&n.to_string());
        }
        assert_eq!((names.len(), names.intern_minor("late")), (NAMES_MAX / 2, NameId::MANY));
        let task = names.intern("a task");
        assert_eq!(names.text(task), "a task");
        for n in 0..NAMES_MAX {
            names.intern(&n.to_string());
        }
        assert_eq!((names.len(), names.intern("late")), (NAMES_MAX, NameId::MANY));
        assert_eq!(names.intern("a"), a);
    }
}
