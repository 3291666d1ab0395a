// SPDX-License-Identifier: GPL-2.0-or-later
//! The purpose of an enqueue or dequeue, read off the lines that follow it.
//!
//! The rig prints `ue_cfs` as the first step of every enqueue and dequeue of a fair task, and `nr` as
//! the last, and neither says whose. What the kernel prints afterwards does:
//!
//! ```text
//!  ue_cfs … nr +1 … sched_wakeup p               Wakeup            p woke up
//!  ue_cfs … sched_wakeup p            (no nr)    RequeueDelayed    p woke up before it was really gone
//!  ue_cfs … nr −1 … sched_switch prev=p S        Sleep             p goes to sleep
//!  ue_cfs … sched_switch prev=p S     (no nr)    SleepDelayed      p should, but stays queued for now
//!  ue_cfs … nr −1 … sched_migrate_task p         DetachMigrating   p is moved while queued …
//!  ue_cfs … nr +1   after that                   AttachMigrating   … and arrives
//!  ue_cfs … nr −1 … ue_cfs … nr +1               Save, Restore     p's own nice, affinity or class
//!  ue_cfs … nr −1 … sched_waking p   (p delayed)  Inactive          somebody waited until p is really gone
//! ```
//!
//! All of it within the lines of the one CPU that does the work, under the run queue's lock.

use crate::ftrace::{Event, Record};

/// The purpose of the present enqueue or dequeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A sleeping task is enqueued; `new`: for the first time.
    Wakeup {
        /// The task.
        pid: i32,
        /// After a fork.
        new: bool,
    },
    /// A delayed task wakes up where it still is.
    RequeueDelayed {
        /// The task.
        pid: i32,
    },
    /// A queued task arrives from another CPU.
    AttachMigrating {
        /// The task.
        pid: i32,
    },
    /// The running task is enqueued again after a change of its parameters.
    Restore {
        /// The task.
        pid: i32,
    },
    /// The running task goes to sleep.
    Sleep {
        /// The task.
        pid: i32,
    },
    /// The running task goes to sleep but stays queued until it is eligible (`sched_delayed`).
    SleepDelayed {
        /// The task.
        pid: i32,
    },
    /// A queued task leaves for another CPU.
    DetachMigrating {
        /// The task.
        pid: i32,
    },
    /// The running task is dequeued for a change of its parameters.
    Save {
        /// The task.
        pid: i32,
    },
    /// A delayed task is dequeued at last, since somebody waits for that (`wait_task_inactive()`, by who
    /// makes a kernel thread).
    Inactive {
        /// The task.
        pid: i32,
    },
    /// The lines do not say.
    Unknown,
}

impl Operation {
    /// Returns the task of the operation, if known.
    pub fn pid(self) -> Option<i32> {
        match self {
            Operation::Wakeup { pid, .. }
            | Operation::RequeueDelayed { pid }
            | Operation::AttachMigrating { pid }
            | Operation::Restore { pid }
            | Operation::Sleep { pid }
            | Operation::SleepDelayed { pid }
            | Operation::DetachMigrating { pid }
            | Operation::Save { pid }
            | Operation::Inactive { pid } => Some(pid),
            Operation::Unknown => None,
        }
    }
}

/// The result of [`look_ahead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The operation.
    pub operation: Operation,
    /// `clock_pelt` during it, from its `nr` line.
    pub clock_pelt: Option<u64>,
    /// `nr_running` after it, from the same line.
    pub nr_after: Option<u32>,
    /// How many `pelt_cfs` lines of the CPU it prints. An attach or detach prints one after the
    /// averages moved, and one before if the update crossed a segment.
    pub cfs_lines: u32,
    /// `clock_task` to which the running task is charged in it.
    pub clock_task: Option<u64>,
}

/// Classifies the operation on `cpu` whose `ue_cfs` line was `start`; `ahead` are the lines that the
/// same CPU prints next. `moving`: the queued task on its way to `cpu`, if any; `saved`: the task that
/// was dequeued on `cpu` to be changed; `delayed`: whether a task is queued there although it sleeps.
pub fn look_ahead<'a>(
    start: &Record,
    cpu: usize,
    ahead: impl Iterator<Item = &'a Record>,
    moving: Option<i32>,
    saved: Option<i32>,
    delayed: impl Fn(i32) -> bool,
) -> Found {
    let mut found = Found {
        operation: Operation::Unknown,
        clock_pelt: None,
        nr_after: None,
        cfs_lines: 0,
        clock_task: None,
    };
    let own = start.cpu == cpu;
    let mut change = 0;
    // A task pulled to `cpu` by its own newidle balancing, between its dequeue and its switch.
    let mut pulled = false;
    for record in ahead {
        match record.event {
            Event::PeltCfs { cpu: c, .. } if c == cpu && change == 0 => found.cfs_lines += 1,
            Event::Run { ct, .. } if change == 0 => found.clock_task = Some(ct),
            Event::Nr { cpu: c, ch, cp, nr } if c == cpu => {
                if change == 0 {
                    change = ch;
                    found.clock_pelt = Some(cp);
                    found.nr_after = Some(nr);
                    if let (true, Some(pid)) = (ch > 0, moving) {
                        found.operation = Operation::AttachMigrating { pid };
                        return found;
                    }
                    if let (true, Some(pid)) = (ch > 0, saved) {
                        found.operation = Operation::Restore { pid };
                        return found;
                    }
                } else if change < 0 && ch > 0 && !pulled {
                    // Dequeued as fair, enqueued as another class, before any switch.
                    found.operation = Operation::Save { pid: start.pid };
                    return found;
                }
            }
            Event::UeCfs { cpu: c, .. } if c == cpu && !pulled => {
                if change < 0 {
                    found.operation = Operation::Save { pid: start.pid };
                }
                return found;
            }
            Event::SchedWaking { pid, .. } if change < 0 && pid != start.pid && delayed(pid) => {
                found.operation = Operation::Inactive { pid };
                return found;
            }
            // The picks of 7.3's wakeups finish delayed dequeues of others.
            Event::SchedWakeup { pid, target_cpu, new, .. }
                if target_cpu == cpu && (change >= 0 || delayed(pid)) =>
            {
                found.operation = if change > 0 {
                    Operation::Wakeup { pid, new }
                } else {
                    Operation::RequeueDelayed { pid }
                };
                return found;
            }
            Event::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } if change < 0 => {
                if orig_cpu == cpu {
                    found.operation = Operation::DetachMigrating { pid };
                    return found;
                }
                pulled |= dest_cpu == cpu;
            }
            Event::SchedSwitch { prev_pid, prev_state, .. } => {
                if own && prev_state != b'R' && prev_pid == start.pid && change <= 0 {
                    found.operation = if change < 0 {
                        Operation::Sleep { pid: prev_pid }
                    } else {
                        Operation::SleepDelayed { pid: prev_pid }
                    };
                }
                return found;
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::parse_line;

    #[test]
    fn what_follows_tells() {
        let nr = |ch| format!("p_nr: nr cpu=6 nr=1 ch={ch} cp=4096");
        let wakeup = "sched_wakeup: comm=a pid=9 prio=120 target_cpu=006".to_string();
        let switch = "sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=0 next_prio=120".to_string();
        let migrate = "sched_migrate_task: comm=a pid=8 prio=120 orig_cpu=6 dest_cpu=7".to_string();
        let ue = "p_ue_cfs: ue_cfs cpu=6 ue=3".to_string();
        let cfs = "p_cfs: pelt_cfs cpu=6 lut=0 pc=0 ls=0 rs=0 us=0 l=0 r=0 u=0 ue=0 nr=1 hq=1 hr=1 hd=0 av=0 al=0 zv=0 cur=7".to_string();
        let check = |ahead: &[&String], moving, saved, expected: Operation, cfs_lines: u32| {
            let record = |text: &str| {
                parse_line(&format!("a-7 [006] d..3. 1.000000: {text}")).unwrap().unwrap()
            };
            let lines: Vec<_> = ahead.iter().map(|text| record(text)).collect();
            let found = look_ahead(&record(&ue), 6, lines.iter(), moving, saved, |pid| pid == 5);
            assert_eq!((found.operation, found.cfs_lines), (expected, cfs_lines), "{ahead:?}");
        };
        let (down, up) = (nr(-1), nr(1));
        check(&[&cfs, &up, &wakeup], None, None, Operation::Wakeup { pid: 9, new: false }, 1);
        check(&[&cfs, &wakeup], None, None, Operation::RequeueDelayed { pid: 9 }, 1);
        check(&[&down, &switch], None, None, Operation::Sleep { pid: 7 }, 0);
        check(&[&cfs, &switch], None, None, Operation::SleepDelayed { pid: 7 }, 1);
        check(
            &[&cfs, &cfs, &down, &cfs, &migrate],
            None,
            None,
            Operation::DetachMigrating { pid: 8 },
            2,
        );
        check(&[&up], Some(8), None, Operation::AttachMigrating { pid: 8 }, 0);
        check(&[&down, &ue, &up], None, None, Operation::Save { pid: 7 }, 0);
        check(&[&down, &up, &switch], None, None, Operation::Save { pid: 7 }, 0);
        check(&[&up], None, Some(7), Operation::Restore { pid: 7 }, 0);
        check(&[&up], None, None, Operation::Unknown, 0);
        let waking = |pid| format!("sched_waking: comm=a pid={pid} prio=120 target_cpu=006");
        let (delayed, other) = (waking(5), waking(4));
        check(&[&down, &delayed, &ue, &up], None, None, Operation::Inactive { pid: 5 }, 0);
        check(&[&down, &other, &ue, &up], None, None, Operation::Save { pid: 7 }, 0);
    }
}
