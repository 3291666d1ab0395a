// SPDX-License-Identifier: GPL-2.0-or-later
//! The queues and groups that a balance pass reads, in one line of a recording.

/// Most CPUs that a board has (`vdvfs.h`).
pub const QUEUES_MAX: usize = 16;

/// The values of a queue that a balance pass reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// `nr_running`.
    pub nr: u16,
    /// `h_nr_queued`.
    pub queued: u16,
    /// `load_avg`.
    pub load: u32,
    /// `runnable_avg`.
    pub runnable: u32,
    /// `util_avg`.
    pub util: u16,
    /// `util_est`.
    pub util_est: u16,
    /// `cpu_capacity`.
    pub capacity: u16,
    /// `h_nr_runnable`, if it is printed.
    pub told_runnable: Option<u16>,
}

/// The queues and the groups of a balanced domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// By CPU; `None`: the domain does not span it.
    pub of: [Option<Queue>; QUEUES_MAX],
    /// `sgc->capacity` and `sgc->imbalance` of each group, in their order, the local one first.
    pub groups: [Option<(u32, bool)>; QUEUES_MAX],
}

impl Queues {
    /// `CPU:NR:QUEUED:LOAD:RUNNABLE:UTIL:UTIL_EST:CAPACITY[:RUNNABLE_TASKS],…` and `CAPACITY:IMBALANCE,…`.
    pub(super) fn parse(queues: &str, groups: &str) -> Option<Queues> {
        fn numbers<const N: usize>(text: &str) -> Option<[u32; N]> {
            let mut words = text.split(':').map(str::parse);
            let mut numbers = [0; N];
            for number in &mut numbers {
                *number = words.next()?.ok()?;
            }
            words.next().is_none().then_some(numbers)
        }
        let mut found = Queues { of: [None; QUEUES_MAX], groups: [None; QUEUES_MAX] };
        let small = |number: u32| u16::try_from(number).ok();
        for text in queues.split(',') {
            let (first, told_runnable) = match text.match_indices(':').nth(7) {
                Some((at, _)) => (&text[..at], Some(text[at + 1..].parse().ok()?)),
                None => (text, None),
            };
            let [cpu, nr, queued, load, runnable, util, util_est, capacity] = numbers(first)?;
            *found.of.get_mut(cpu as usize)? = Some(Queue {
                nr: small(nr)?,
                queued: small(queued)?,
                load,
                runnable,
                util: small(util)?,
                util_est: small(util_est)?,
                capacity: small(capacity)?,
                told_runnable,
            });
        }
        for (i, text) in groups.split(',').enumerate() {
            let [capacity, imbalance] = numbers(text)?;
            *found.groups.get_mut(i)? = Some((capacity, imbalance != 0));
        }
        Some(found)
    }
}
