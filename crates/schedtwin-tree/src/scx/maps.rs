// SPDX-License-Identifier: GPL-2.0-or-later
//! The maps that a scheduler declares: which there are, and how large, from the types of their structures.
//!
//! ```c
//! struct {                                       // a map is a variable whose type says all about it
//!         __uint(type, BPF_MAP_TYPE_ARRAY);      // int (*type)[2]
//!         __uint(max_entries, 8);                // int (*max_entries)[8]
//!         __type(key, u32);                      // u32 *key
//!         __type(value, struct ctx);             // struct ctx *value
//! } ctxs SEC(".maps");
//! ```

use super::layout::Entries;
use crate::symbols::{Shape, Symbols};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;

/// `BPF_MAP_TYPE_*` that `c/scx_maps.c` has, beside arenas, which it needs not know.
const OFFERED: [(u64, &str); 11] = [
    (1, "HASH"),
    (2, "ARRAY"),
    (6, "PERCPU_ARRAY"),
    (9, "LRU_HASH"),
    (12, "ARRAY_OF_MAPS"),
    (22, "QUEUE"),
    (23, "STACK"),
    (TASK_STORAGE, "TASK_STORAGE"),
    (32, "CGRP_STORAGE"),
    (33, "ARENA"),
    (27, "RINGBUF"),
];
const TASK_STORAGE: u64 = 29;

/// A map.
#[derive(Clone, Debug)]
pub(super) struct Map {
    name: String,
    /// Where its object is.
    object: u64,
    size: Size,
    values: Option<Values>,
    /// What a value is like.
    value: Shape,
    /// Where it has pointers that the map owns.
    owned: Vec<u64>,
}

/// The maps that an array of maps has.
#[derive(Clone, Copy, Debug)]
struct Values {
    /// Where those are that it begins with, and how many.
    at: u64,
    given: u64,
    /// What the others are like.
    inner: Size,
}

/// What a map's structure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    kind: u64,
    key: u64,
    value: u64,
    /// 0: its loader says it.
    entries: u64,
}

impl Size {
    fn of(shape: &Shape) -> Option<Size> {
        let member = |name: &str| match shape.member(name)?.1 {
            Shape::Pointer(of) => Some(&**of),
            _ => None,
        };
        let number = |name: &str| match member(name)? {
            Shape::Array(_, count) => Some(*count),
            _ => None,
        };
        let bytes = |of: &str, size: &str| number(size).or(member(of).map(Shape::bytes));
        Some(Size {
            kind: number("type")?,
            key: bytes("key", "key_size").unwrap_or(0),
            value: bytes("value", "value_size").unwrap_or(0),
            entries: number("max_entries").unwrap_or(0),
        })
    }
}

impl Map {
    /// All maps of an object, whose variables have these sizes, and whose kptrs these names.
    pub(super) fn all(
        symbols: &Symbols,
        sizes: &BTreeMap<String, u64>,
        kptrs: &BTreeSet<String>,
    ) -> Vec<Map> {
        let map = |(name, symbol): (&str, &crate::symbols::Symbol)| {
            let size = Size::of(&symbol.shape)?;
            let values = match symbol.shape.member("values") {
                Some((at, Shape::Array(of, _))) => match &**of {
                    Shape::Pointer(inner) => Size::of(inner).map(|inner| {
                        // The member has no length: the variable is as long as what it begins with.
                        let bytes = sizes.get(name).map_or(0, |bytes| bytes.saturating_sub(at));
                        Values { at: symbol.offset + at, given: bytes / 8, inner }
                    }),
                    _ => None,
                },
                _ => None,
            };
            let value = match symbol.shape.member("value") {
                Some((_, Shape::Pointer(of))) => (**of).clone(),
                _ => Shape::Unknown,
            };
            let (name, object) = (name.to_string(), symbol.offset);
            let owned = value.pointers(kptrs, 0);
            Some(Map { name, object, size, values, value, owned })
        };
        symbols.iter().filter_map(map).collect()
    }

    /// What is not offered of it.
    pub(super) fn refused(&self) -> Option<String> {
        let known = OFFERED.iter().any(|(kind, _)| *kind == self.size.kind);
        (!known).then(|| {
            let names: Vec<&str> = OFFERED.iter().map(|(_, name)| *name).collect();
            format!(
                "the map `{}` is of type {}; there are {}",
                self.name,
                self.size.kind,
                names.join(", ")
            )
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What a value is like.
    pub(super) fn value(&self) -> &Shape {
        &self.value
    }

    /// The bytes of a key that is spelled as numbers: as many of 32 bits as are given, else one as long as a key.
    pub(super) fn key(&self, numbers: &str) -> Option<Vec<u8>> {
        let numbers: Option<Vec<i64>> =
            numbers.split(',').map(|number| number.trim().parse().ok()).collect();
        let bytes = match &numbers?[..] {
            [one] if self.size.key <= 8 => one.to_le_bytes()[..self.size.key as usize].to_vec(),
            several => several.iter().flat_map(|one| (*one as u32).to_le_bytes()).collect(),
        };
        (bytes.len() as u64 == self.size.key).then_some(bytes)
    }

    /// Whether it keeps something of each task.
    pub(super) fn is_task_storage(&self) -> bool {
        self.size.kind == TASK_STORAGE
    }

    pub(super) fn object(&self) -> u64 {
        self.object
    }

    /// Makes the map. One that does not say how many entries it has gets one for each CPU, as loaders do.
    ///
    /// # Safety
    /// The image is resident, and the object is loaded at `base`.
    pub(super) unsafe fn define(&self, entries: &Entries, base: *mut u8, nr_cpus: usize) {
        let define = |object: *mut *mut c_void,
                      size: Size,
                      values: *mut c_void,
                      given: u64,
                      inner| {
            let count = if size.entries == 0 { nr_cpus as u64 } else { size.entries };
            let [kind, key, value, count, given] = [size.kind, size.key, size.value, count, given]
                .map(|number| i32::try_from(number).unwrap_or(i32::MAX));
            // SAFETY: as the caller promises; the pointers lead into the object.
            unsafe { (entries.define_map)(object, kind, key, value, count, values, given, inner) }
        };
        let null = std::ptr::null_mut();
        let (values, given, inner) = match self.values {
            Some(Values { at, given, inner }) => (
                base.wrapping_add(at as usize).cast(),
                given,
                define(null, inner, null.cast(), 0, null.cast()),
            ),
            None => (null.cast(), 0, null.cast()),
        };
        define(base.wrapping_add(self.object as usize).cast(), self.size, values, given, inner);
        for at in &self.owned {
            // SAFETY: as above; the object leads to its map now.
            unsafe { (entries.own)(base.wrapping_add(self.object as usize).cast(), *at as u32) };
        }
    }
}
