// SPDX-License-Identifier: GPL-2.0-or-later
//! Utilisation clamps of the recorded tasks, and what the product's run queues make of them.
//!
//! The clamps that a task asks for are in the workload (`NAME.wl.txt`: name, affinity, `UMIN
//! UMAX`); which task that is, in the
//! description (`task lo-0 pid 78`, under `== recording N`). A task asks once, at its start, after it has set
//! its affinity if it has one: the recording shows each of these as a dequeue and an enqueue of the running
//! task. The first one to ask turns the static key on.
//!
//! From then on the product's aggregation ([`UclampRq`]) follows who is queued, and each `rq` line says what the kernel's
//! came to. In 6.12 a task's clamps leave before its dequeue and join after its enqueue, and a delayed
//! task has left.
//!
//! **Differences:** real-time tasks are not followed: no recording has both them and clamps.

use std::collections::BTreeMap;
use std::path::Path;

use schedtwin_kernel::sched::demand::uclamp::UclampRequest;
use schedtwin_kernel::sched::demand::uclamp::max::{Clamps, UclampRq};

use super::machine::meta_path;

/// The clamps that a recorded task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The CPUs it may use, as a mask; 0: all.
    pub mask: u64,
    /// `UMIN UMAX`; `None`: it never asks for clamps.
    pub request: Option<UclampRequest>,
}

/// The wishes of a recording's tasks, by pid; none if a file is not there.
pub fn of_recording(recording: &Path) -> BTreeMap<i32, Wish> {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let name = super::name_of(recording);
    let (name, number) = name.rsplit_once('.').unwrap_or((&name, "1"));
    let workload = read(&recording.with_file_name(format!("{name}.wl.txt")));
    wishes(&workload, &read(&meta_path(recording)), number)
}

fn wishes(workload: &str, meta: &str, number: &str) -> BTreeMap<i32, Wish> {
    let mut of_name = BTreeMap::new();
    for line in workload.lines() {
        let mut words = line.split_whitespace();
        let Some("task") = words.next() else { continue };
        let Some(name) = words.next() else { continue };
        let (Some(mask), Some(_nice)) = (words.nth(1), words.next()) else { continue };
        let Ok(mask) = u64::from_str_radix(mask, 16) else { continue };
        let mut clamp = || words.next()?.parse::<i32>().ok();
        let (Some(min), Some(max)) = (clamp(), clamp()) else { continue };
        // The rig asks for both if for one; what is not a clamp is the default.
        let clamp =
            |value: i32, default| u16::try_from(value).ok().map_or(default, |v| v.min(1024));
        let asks = min >= 0 || max >= 0;
        let request = UclampRequest { min: Some(clamp(min, 0)), max: Some(clamp(max, 1024)) };
        of_name.insert(name, Wish { mask, request: asks.then_some(request) });
    }
    let mut wishes = BTreeMap::new();
    let mut here = true;
    for line in meta.lines() {
        if let Some(n) = line.strip_prefix("== recording ") {
            here = n.trim() == number;
        }
        let mut words = line.split_whitespace();
        let (Some("task"), Some(name), Some("pid"), Some(pid)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let base = name.rsplit_once('-').map_or(name, |(base, _)| base);
        if let (true, Some(wish), Ok(pid)) = (here, of_name.get(base), pid.parse()) {
            wishes.insert(pid, *wish);
        }
    }
    wishes
}

/// The clamps of a recording's run queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    /// The tasks that have not asked yet, and whether a change of its affinity comes first.
    wishes: BTreeMap<i32, (UclampRequest, bool)>,
    /// Somebody has asked (`sched_uclamp_used`).
    pub(super) key_on: bool,
    in_effect: BTreeMap<i32, UclampRequest>,
    /// With what a task is counted.
    counted: BTreeMap<i32, Clamps>,
    of: Vec<UclampRq>,
}

impl Queues {
    pub(super) fn new(wishes: &BTreeMap<i32, Wish>, nr_cpus: usize) -> Queues {
        let asks = |(pid, wish): (&i32, &Wish)| Some((*pid, (wish.request?, wish.mask != 0)));
        let wishes = wishes.iter().filter_map(asks).collect();
        Queues { wishes, of: vec![UclampRq::default(); nr_cpus], ..Queues::default() }
    }

    /// Returns the clamps that a task asks for.
    pub(super) fn request(&self, pid: i32) -> UclampRequest {
        self.in_effect.get(&pid).copied().unwrap_or_default()
    }

    /// Returns the result of a CPU's queue for its tasks' clamps; none of a CPU that is not there.
    pub(super) fn of(&self, cpu: usize) -> Option<&UclampRq> {
        self.of.get(cpu)
    }

    /// A task is about to be dequeued, and not delayed.
    pub(super) fn leave(&mut self, cpu: usize, pid: i32) {
        if let (Some(clamps), Some(queue)) = (self.counted.remove(&pid), self.of.get_mut(cpu)) {
            queue.dec(clamps);
        }
    }

    /// A task has been enqueued, and is not delayed.
    pub(super) fn join(&mut self, cpu: usize, pid: i32) {
        let Some(queue) = self.of.get_mut(cpu) else { return };
        if self.key_on && !self.counted.contains_key(&pid) {
            let request = self.in_effect.get(&pid).copied().unwrap_or_default();
            let clamps = Clamps {
                min: request.min.unwrap_or(0) as u32,
                max: request.max.unwrap_or(1024) as u32,
            };
            self.counted.insert(pid, clamps);
            queue.inc(clamps);
        }
    }

    /// The running task has been dequeued to be changed.
    pub(super) fn changed(&mut self, pid: i32) {
        match self.wishes.get_mut(&pid) {
            Some((_, affinity @ true)) => *affinity = false,
            Some((request, false)) => {
                self.key_on = true;
                self.in_effect.insert(pid, *request);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_come_from_workload_and_description() {
        let workload = "gov teo\ntask lo 1 0 0 0 60 9:20:0\ntask n 2 0 0 -1 -1 9:9:9\ntask hi 1 c0 0 500 -1 1:1:1\n";
        let meta = "== recording 1\ntask lo-0 pid 78 start 1\ntask hi-0 pid 79 start 1\n== recording 2\ntask lo-0 pid 76 start 1\ntask n-1 pid 77 x\n";
        let request = |min, max| UclampRequest { min: Some(min), max: Some(max) };
        let found = wishes(workload, meta, "1");
        let lo = Wish { mask: 0, request: Some(request(0, 60)) };
        let hi = Wish { mask: 0xc0, request: Some(request(500, 1024)) };
        let n = Wish { mask: 0, request: None };
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [(78, lo), (79, hi)]);
        assert_eq!(
            wishes(workload, meta, "2").into_iter().collect::<Vec<_>>(),
            [(76, lo), (77, n)]
        );
        // Its affinity first, then its clamps; before that nothing is counted.
        let mut queues = Queues::new(&wishes(workload, meta, "1"), 8);
        queues.join(6, 79);
        queues.changed(79);
        assert!(!queues.key_on && queues.of[6].is_idle());
        queues.changed(79);
        queues.join(6, 79);
        assert_eq!(queues.of[6].clamps(), Clamps { min: 500, max: 1024 });
        queues.leave(6, 79);
        assert!(queues.of[6].is_idle());
    }
}
