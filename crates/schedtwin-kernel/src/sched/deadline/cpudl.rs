// SPDX-License-Identifier: GPL-2.0-or-later
//! `cpudl`: which CPU's earliest deadline is the latest of all.
//!
//! A max-heap of the CPUs that have deadline entities, by their earliest deadline, and the set of those that have none.
//! Equal deadlines are common (tasks released together), and which of their CPUs is the maximum depends on the
//! heap's history. So this is the kernel's heap step by step, not some other maximum.
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/cpudeadline.c; the two do not differ.
//! Differences: all CPUs are online.

use super::dl_time_before;
use schedtwin_types::{CpuId, CpuMask};

/// `IDX_INVALID`: the CPU is not in the heap.
const IDX_INVALID: u16 = u16::MAX;

/// `struct cpudl`.
#[derive(Clone, Debug, Default)]
pub struct Cpudl {
    /// The heap: earliest deadline and CPU.
    elements: Vec<(u64, CpuId)>,
    /// Where each CPU is in the heap.
    idx: Vec<u16>,
    /// CPUs without deadline entities.
    free_cpus: CpuMask,
}

impl Cpudl {
    /// `cpudl_init()`: nobody has a deadline entity.
    pub fn new(cpus: CpuMask) -> Cpudl {
        let count = cpus.iter().last().map_or(0, |cpu| cpu.index() + 1);
        Cpudl {
            elements: Vec::with_capacity(count),
            idx: vec![IDX_INVALID; count],
            free_cpus: cpus,
        }
    }

    /// CPUs without deadline entities.
    pub fn free_cpus(&self) -> &CpuMask {
        &self.free_cpus
    }

    /// `cpudl_maximum()`: the CPU whose earliest deadline is the latest, and that deadline; `None`:
    /// no CPU has one.
    pub fn maximum(&self) -> Option<(u64, CpuId)> {
        self.elements.first().copied()
    }

    /// The earliest deadline of a CPU; `None`: it has no deadline entity.
    pub fn deadline_of(&self, cpu: CpuId) -> Option<u64> {
        self.elements.get(self.idx[cpu.index()] as usize).map(|element| element.0)
    }

    /// `cpudl_set()`: the earliest deadline of `cpu` is `deadline` now.
    pub fn set(&mut self, cpu: CpuId, deadline: u64) {
        let at = self.idx[cpu.index()];
        if at == IDX_INVALID {
            let at = self.elements.len();
            self.elements.push((deadline, cpu));
            self.idx[cpu.index()] = at as u16;
            self.free_cpus.remove(cpu);
            self.heapify_up(at);
        } else {
            self.elements[at as usize].0 = deadline;
            self.heapify(at as usize);
        }
    }

    /// `cpudl_clear()`: `cpu` has no deadline entity any more.
    pub fn clear(&mut self, cpu: CpuId) {
        let at = std::mem::replace(&mut self.idx[cpu.index()], IDX_INVALID);
        self.free_cpus.insert(cpu);
        if at == IDX_INVALID {
            return;
        }
        let at = at as usize;
        self.elements.swap_remove(at);
        if let Some(&(_, moved)) = self.elements.get(at) {
            self.idx[moved.index()] = at as u16;
            self.heapify(at);
        }
    }

    fn heapify(&mut self, at: usize) {
        if at > 0 && dl_time_before(self.elements[(at - 1) / 2].0, self.elements[at].0) {
            self.heapify_up(at);
        } else {
            self.heapify_down(at);
        }
    }

    fn place(&mut self, at: usize, element: (u64, CpuId)) {
        self.elements[at] = element;
        self.idx[element.1.index()] = at as u16;
    }

    fn heapify_down(&mut self, mut at: usize) {
        let element = self.elements[at];
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut largest = at;
            let mut largest_deadline = element.0;
            if left < self.elements.len() && dl_time_before(largest_deadline, self.elements[left].0)
            {
                largest = left;
                largest_deadline = self.elements[left].0;
            }
            if right < self.elements.len()
                && dl_time_before(largest_deadline, self.elements[right].0)
            {
                largest = right;
            }
            if largest == at {
                break;
            }
            self.place(at, self.elements[largest]);
            at = largest;
        }
        self.place(at, element);
    }

    fn heapify_up(&mut self, mut at: usize) {
        let element = self.elements[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if dl_time_before(element.0, self.elements[parent].0) {
                break;
            }
            self.place(at, self.elements[parent]);
            at = parent;
        }
        self.place(at, element);
    }

    /// Asserts the heap's order and that its index agrees with it.
    pub(crate) fn verify(&self) {
        for (at, (deadline, cpu)) in self.elements.iter().enumerate() {
            assert_eq!(self.idx[cpu.index()] as usize, at, "{cpu:?}: cpudl index");
            assert!(!self.free_cpus.contains(*cpu), "{cpu:?}: free, and in cpudl");
            let parent = self.elements[at.saturating_sub(1) / 2].0;
            assert!(!dl_time_before(parent, *deadline), "{cpu:?}: order of cpudl");
        }
        let inside = self.idx.iter().filter(|at| **at != IDX_INVALID).count();
        assert_eq!(inside, self.elements.len(), "cpudl: CPUs");
    }
}
