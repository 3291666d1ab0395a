// SPDX-License-Identifier: GPL-2.0-or-later
//! A vector indexed by an identifier of its own kind, so that a CPU is never used as a task.

use crate::{ClockDomainId, CpuId, MAX_CPUS, PolicyId, PowerDomainId, TaskGroupId, TaskId};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An identifier that is a dense index.
pub trait Id: Copy {
    /// As an index.
    fn index(self) -> usize;
    /// From an index.
    fn from_index(index: usize) -> Self;
}

/// Makes identifiers out of numbers: a dense index of its own kind each.
macro_rules! dense {
    ($($name:ident($number:ty)),* $(,)?) => {
        $(
            impl Id for $name {
                #[inline(always)]
                fn index(self) -> usize {
                    self.0 as usize
                }
                fn from_index(index: usize) -> $name {
                    $name(index as $number)
                }
            }
        )*
    };
}

dense! {
    CpuId(u16), TaskId(u32), TaskGroupId(u32), PolicyId(u16), ClockDomainId(u16), PowerDomainId(u16),
}

/// The arena.
#[derive(Clone, PartialEq, Eq)]
pub struct Arena<I, T> {
    items: Vec<T>,
    id: PhantomData<I>,
}

impl<I: Id, T> Arena<I, T> {
    /// An empty arena.
    pub fn new() -> Arena<I, T> {
        Arena { items: Vec::new(), id: PhantomData }
    }

    /// Adds an item and returns its identifier.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from_index(self.items.len() - 1)
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All identifiers.
    pub fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    /// All items, by number.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// All items with their identifiers.
    pub fn iter_ids(&self) -> impl Iterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(index, item)| (I::from_index(index), item))
    }

    /// The first item that fits.
    pub fn find(&self, fits: impl FnMut(&T) -> bool) -> Option<I> {
        self.items.iter().position(fits).map(I::from_index)
    }

    /// All items.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// All items, mutable.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
}

impl<I: Id, T> Default for Arena<I, T> {
    fn default() -> Self {
        Arena::new()
    }
}

impl<I: Id, T> FromIterator<T> for Arena<I, T> {
    fn from_iter<X: IntoIterator<Item = T>>(items: X) -> Self {
        Arena { items: items.into_iter().collect(), id: PhantomData }
    }
}

impl<I, T> From<Vec<T>> for Arena<I, T> {
    fn from(items: Vec<T>) -> Arena<I, T> {
        Arena { items, id: PhantomData }
    }
}

impl<'a, I, T> IntoIterator for &'a Arena<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> std::slice::Iter<'a, T> {
        self.items.iter()
    }
}

impl<I: Id, T> Index<I> for Arena<I, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Arena<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I, T: fmt::Debug> fmt::Debug for Arena<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.items).finish()
    }
}

/// An item for each CPU, in room for as many CPUs as any machine may have (Linux's `NR_CPUS`): an index then needs no look
/// at how many there are. What lies behind the machine's own CPUs are copies that nobody reads.
#[derive(Clone)]
pub struct PerCpu<T> {
    items: Box<[T; MAX_CPUS]>,
    nr_cpus: usize,
}

// An index is cut to the room there is.
const _: () = assert!(MAX_CPUS.is_power_of_two());

impl<T> PerCpu<T> {
    /// How many CPUs the machine has.
    pub fn len(&self) -> usize {
        self.nr_cpus
    }

    /// Whether there are none; never.
    pub fn is_empty(&self) -> bool {
        self.nr_cpus == 0
    }

    /// All CPUs.
    pub fn ids(&self) -> impl Iterator<Item = CpuId> + use<T> {
        (0..self.nr_cpus).map(CpuId::from_index)
    }

    /// The items of all CPUs, by number.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items[..self.nr_cpus].iter()
    }

    /// The items of all CPUs, mutable.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items[..self.nr_cpus].iter_mut()
    }
}

impl<T: Clone> FromIterator<T> for PerCpu<T> {
    fn from_iter<X: IntoIterator<Item = T>>(items: X) -> Self {
        let mut items: Vec<T> = items.into_iter().collect();
        let nr_cpus = items.len();
        let last = items.last().expect("a machine has a CPU").clone();
        items.resize(MAX_CPUS, last);
        let items = items.into_boxed_slice().try_into();
        PerCpu { items: items.unwrap_or_else(|_| panic!("more than {MAX_CPUS} CPUs")), nr_cpus }
    }
}

impl<'a, T> IntoIterator for &'a PerCpu<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> std::slice::Iter<'a, T> {
        self.iter()
    }
}

impl<T> Index<CpuId> for PerCpu<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, cpu: CpuId) -> &T {
        debug_assert!(cpu.index() < self.nr_cpus, "{cpu:?} of {}", self.nr_cpus);
        &self.items[cpu.index() % MAX_CPUS]
    }
}

impl<T> IndexMut<CpuId> for PerCpu<T> {
    #[inline(always)]
    fn index_mut(&mut self, cpu: CpuId) -> &mut T {
        debug_assert!(cpu.index() < self.nr_cpus, "{cpu:?} of {}", self.nr_cpus);
        &mut self.items[cpu.index() % MAX_CPUS]
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}
