// SPDX-License-Identifier: GPL-2.0-or-later
//! Max aggregation: a run queue asks for the largest minimum and the largest maximum of its tasks.
//!
//! **Idea.** A task that needs speed must get it whatever runs beside it, so minima add up to the largest. The
//! same rule holds for maxima: a single task without a cap lifts the caps of all others on its CPU.
//!
//! **Algorithm.** Looking at all tasks whenever one leaves would take too long, so there are *buckets* per clamp, five of
//! 205 in mainline, each with the number of its tasks and the largest value since it was last empty.
//! 1. A task joins: its bucket counts it and remembers its value if larger; so does the run queue.
//! 2. A task leaves: its bucket counts it out. Only if that emptied the bucket *and* the bucket held the run
//!    queue's value, the value becomes that of the highest bucket that is not empty.
//! 3. The last task leaves: the minimum is 0; the maximum *stays* what that task had, so that what is left of
//!    its utilisation does not speed the CPU up. The next task replaces it (`UCLAMP_FLAG_IDLE`).
//!
//! ```text
//!   tasks (min)           bucket 1 (205..410)       aggregate
//!   210, 400              2 tasks, value 400        400
//!   210                   1 task,  value 400        400    more than anybody asks for
//!   –                     empty                       0
//! ```
//!
//! **Example.** With tasks capped at 300 and at 1024 the maximum is 1024; when the second one sleeps, 300; when
//! both do, still 300.
//!
//! ```
//! use schedtwin_kernel::sched::demand::uclamp::max::{Clamps, UclampRq};
//! let task = |max| Clamps { min: 0, max };
//! let mut rq = UclampRq::default();
//! rq.inc(task(300));
//! rq.inc(task(1024));
//! assert_eq!(rq.clamps().max, 1024);
//! rq.dec(task(1024));
//! rq.dec(task(300));
//! assert_eq!((rq.clamps().max, rq.is_idle()), (300, true));
//! rq.inc(task(512));
//! assert_eq!(rq.clamps().max, 512);
//! ```
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/core.c `uclamp_rq_inc_id`, `uclamp_rq_dec_id`,
//! `uclamp_rq_max_value`, `uclamp_idle_value`; kernel/sched/fair.c `util_fits_cpu`; kernel/sched/sched.h
//! `uclamp_rq_util_with`, `uclamp_rq_is_capped`.

use crate::config::Bugs;
use crate::sched::SCHED_CAPACITY_SCALE;
use crate::sched::demand::fits::Fits;

/// `CONFIG_UCLAMP_BUCKETS_COUNT`, its default.
pub const UCLAMP_BUCKETS: u32 = 5;
/// The most that it can be.
const UCLAMP_BUCKETS_MAX: usize = 20;

/// A pair of clamps, 0..=1024 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamps {
    /// At least this fast.
    pub min: u32,
    /// At most this fast.
    pub max: u32,
}

impl Clamps {
    /// Nothing asked for (`uclamp_none`).
    pub const NONE: Clamps = Clamps { min: 0, max: SCHED_CAPACITY_SCALE as u32 };

    /// `util_fits_cpu()`, where `fits` says whether `util` fits without clamps, of a CPU of the capacity `arch` that is
    /// as fast as `actual` now. A capped utilisation fits every CPU that is as large as its cap, except for the cap 1024
    /// of the largest CPUs, which caps nothing.
    ///
    /// Before 6.1 the clamped utilisation had to fit instead, which only EAS does here.
    #[inline(always)]
    pub(in crate::sched::demand) fn fits(
        self,
        fits: bool,
        util: u64,
        arch: u64,
        actual: u64,
    ) -> Fits {
        let (min, max) = (self.min.min(self.max) as u64, self.max as u64);
        let uncapped = arch == SCHED_CAPACITY_SCALE && max == SCHED_CAPACITY_SCALE;
        let fits = fits || (!uncapped && max <= arch);
        if fits && util < min && min > actual {
            return Fits::TooSlow;
        }
        Fits::of(fits)
    }

    /// Two tasks' clamps together.
    pub fn aggregated(self, other: Clamps) -> Clamps {
        Clamps { min: self.min.max(other.min), max: self.max.max(other.max) }
    }
}

/// `struct uclamp_bucket`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    value: u32,
    tasks: u32,
}

/// Into how many buckets values are sorted.
#[derive(Clone, Copy, Debug)]
struct Sorting {
    /// `UCLAMP_BUCKET_DELTA`: how many values a bucket is wide.
    delta: u32,
    /// The number of the last bucket.
    last: usize,
}

impl Sorting {
    fn new(buckets: u32) -> Sorting {
        assert!((1..=UCLAMP_BUCKETS_MAX as u32).contains(&buckets), "{buckets} buckets");
        let delta = (SCHED_CAPACITY_SCALE as u32 + buckets / 2) / buckets;
        Sorting { delta, last: buckets as usize - 1 }
    }

    /// `uclamp_bucket_id()`.
    fn bucket_id(self, value: u32) -> usize {
        ((value / self.delta) as usize).min(self.last)
    }
}

/// One of a run queue's two clamps (`struct uclamp_rq`).
#[derive(Clone, Debug)]
struct Aggregate {
    value: u32,
    sorting: Sorting,
    buckets: [Bucket; UCLAMP_BUCKETS_MAX],
}

/// A run queue's clamps (`rq.uclamp`, `rq.uclamp_flags`).
#[derive(Clone, Debug)]
pub struct UclampRq {
    min: Aggregate,
    max: Aggregate,
    /// `UCLAMP_FLAG_IDLE`: no task is counted, `max` is retained.
    idle: bool,
    /// What is retained counts beside the clamps of a task that is being placed (`bugs.idle_clamp_counts`).
    retained_counts: bool,
    /// It was not `idle` at boot (`bugs.first_cap_ignored`), so that its maximum may be nobody's.
    first_cap_ignored: bool,
}

impl Aggregate {
    fn new(value: u32, sorting: Sorting) -> Aggregate {
        Aggregate { value, sorting, buckets: [Bucket::default(); UCLAMP_BUCKETS_MAX] }
    }

    /// `uclamp_rq_inc_id()`. `idle`: what is retained is dropped.
    fn inc(&mut self, value: u32, idle: bool) {
        let bucket = &mut self.buckets[self.sorting.bucket_id(value)];
        bucket.tasks += 1;
        if idle {
            self.value = value;
        }
        if bucket.tasks == 1 || value > bucket.value {
            bucket.value = value;
        }
        self.value = self.value.max(value);
    }

    /// `uclamp_rq_dec_id()`; whether no task is left; the value is then `of_nobody`.
    fn dec(&mut self, value: u32, of_nobody: u32) -> bool {
        let bucket = &mut self.buckets[self.sorting.bucket_id(value)];
        bucket.tasks -= 1;
        if bucket.tasks != 0 || bucket.value < self.value {
            return false;
        }
        let highest = self.buckets.iter().rev().find(|bucket| bucket.tasks != 0);
        self.value = highest.map_or(of_nobody, |bucket| bucket.value);
        highest.is_none()
    }
}

impl Default for UclampRq {
    /// With as many buckets as mainline has by default.
    fn default() -> UclampRq {
        UclampRq::new(UCLAMP_BUCKETS)
    }
}

impl UclampRq {
    /// As at boot: no task. `buckets`: 1..=20, of which Linux allows 5 and more.
    ///
    /// ```
    /// use schedtwin_kernel::sched::demand::uclamp::max::{Clamps, UclampRq};
    /// let minimum_left = |buckets| {
    ///     let mut rq = UclampRq::new(buckets);
    ///     let [low, high] = [210, 400].map(|min| Clamps { min, max: 1024 });
    ///     rq.inc(low);
    ///     rq.inc(high);
    ///     rq.dec(high);
    ///     rq.clamps().min
    /// };
    /// assert_eq!(minimum_left(5), 400); // both were in the bucket 205..410
    /// assert_eq!(minimum_left(20), 210); // 204..255 and 357..408
    /// ```
    pub fn new(buckets: u32) -> UclampRq {
        let sorting = Sorting::new(buckets);
        UclampRq {
            min: Aggregate::new(Clamps::NONE.min, sorting),
            max: Aggregate::new(Clamps::NONE.max, sorting),
            idle: true,
            retained_counts: false,
            first_cap_ignored: false,
        }
    }

    /// With the wrong rules of a kernel.
    pub(super) fn with_bugs(self, bugs: &Bugs) -> UclampRq {
        let Bugs { first_cap_ignored, idle_clamp_counts, .. } = *bugs;
        let retained_counts = idle_clamp_counts;
        UclampRq { idle: !first_cap_ignored, retained_counts, first_cap_ignored, ..self }
    }

    /// Whether only a placed task's own clamps count.
    #[inline(always)]
    fn has_no_say(&self) -> bool {
        self.idle && !self.retained_counts
    }

    /// Returns the clamps that the run queue asks for.
    #[inline(always)]
    pub fn clamps(&self) -> Clamps {
        Clamps { min: self.min.value, max: self.max.value }
    }

    /// `uclamp_rq_is_idle()`.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// Value and tasks of a bucket: of minima, of maxima.
    #[doc(hidden)]
    pub fn bucket(&self, number: usize) -> [(u32, u32); 2] {
        [&self.min, &self.max].map(|aggregate| {
            let bucket = aggregate.buckets[number];
            (bucket.value, bucket.tasks)
        })
    }

    /// A task joins.
    pub fn inc(&mut self, task: Clamps) {
        self.min.inc(task.min, self.idle);
        self.max.inc(task.max, self.idle);
        self.idle = false;
    }

    /// A task that has joined leaves.
    pub fn dec(&mut self, task: Clamps) {
        self.min.dec(task.min, Clamps::NONE.min);
        self.idle |= self.max.dec(task.max, task.max);
    }

    /// A task that has joined with `old` asks for `new` (`uclamp_rq_reinc_id`). The queue counts as without tasks for no
    /// moment, but what it retained of the old maximum goes.
    pub(super) fn reinc(&mut self, old: Clamps, new: Clamps) {
        self.min.dec(old.min, Clamps::NONE.min);
        self.min.inc(new.min, false);
        let alone = self.max.dec(old.max, old.max);
        self.max.inc(new.max, alone);
    }

    /// Returns the clamps that the run queue would ask for with a task that asks for `task`
    /// (`uclamp_rq_util_with`). Without tasks, the run queue retains the maximum of its last task,
    /// which no longer counts.
    pub(super) fn with(&self, task: Option<Clamps>) -> Clamps {
        match task {
            None => self.clamps(),
            Some(own) if self.has_no_say() => own,
            Some(own) => own.aggregated(self.clamps()),
        }
    }

    /// The clamps that hold for a task which EAS puts here to see whether it fits. A run queue without tasks
    /// has none: then those hold that were found on the CPU `before` it in its domain.
    pub(in crate::sched::demand) fn with_in_search(&self, task: Clamps, before: Clamps) -> Clamps {
        if self.has_no_say() { before } else { task.aggregated(self.clamps()) }
    }

    /// Adds a task's clamps to a floor and a cap that include the run queue's clamps already.
    pub(super) fn join(&self, (min, max): (u64, u64), task: Clamps) -> (u64, u64) {
        let (own_min, own_max) = (task.min as u64, task.max as u64);
        (min.max(own_min), if self.has_no_say() { own_max } else { max.max(own_max) })
    }

    /// `uclamp_rq_is_capped()`: whether `util` is at the cap.
    pub(super) fn is_capped(&self, util: u64) -> bool {
        let max = self.max.value as u64;
        max != SCHED_CAPACITY_SCALE && util >= max
    }

    /// Asserts that these are the tasks that are counted.
    pub(super) fn verify(&self, tasks: impl Iterator<Item = Clamps>) {
        let sorting = self.min.sorting;
        let bucket_id = |value| sorting.bucket_id(value);
        let mut counts = [[0; UCLAMP_BUCKETS_MAX]; 2];
        let mut asked = Clamps { min: 0, max: 0 };
        for task in tasks {
            counts[0][bucket_id(task.min)] += 1;
            counts[1][bucket_id(task.max)] += 1;
            asked = asked.aggregated(task);
        }
        assert_eq!(self.min.buckets.map(|b| b.tasks), counts[0], "tasks by their minimum");
        assert_eq!(self.max.buckets.map(|b| b.tasks), counts[1], "tasks by their maximum");
        if self.first_cap_ignored {
            return;
        }
        assert_eq!(self.idle, counts[0] == [0; UCLAMP_BUCKETS_MAX], "UCLAMP_FLAG_IDLE");
        let Clamps { min, max } = self.clamps();
        assert!(min >= asked.min && max >= asked.max, "{self:?}: a task asks for {asked:?}");
        // Within the bucket it may be more: that of a task that has left it.
        assert_eq!(bucket_id(min), bucket_id(asked.min), "the minimum's bucket");
        assert!(self.idle || bucket_id(max) == bucket_id(asked.max), "the maximum's bucket");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5 buckets are 205 wide, 20 are 51, and the last one takes what is left.
    #[test]
    fn buckets() {
        for (value, bucket) in [(0, 0), (50, 0), (51, 1), (968, 18), (969, 19), (1024, 19)] {
            assert_eq!(Sorting::new(20).bucket_id(value), bucket, "{value} of 20");
        }
        for (value, bucket) in [
            (0, 0),
            (204, 0),
            (205, 1),
            (409, 1),
            (410, 2),
            (614, 2),
            (615, 3),
            (819, 3),
            (820, 4),
            (1024, 4),
        ] {
            assert_eq!(Sorting::new(5).bucket_id(value), bucket, "{value}");
        }
    }

    /// What a run queue without tasks retains counts for nobody, and before the first task it is nothing.
    #[test]
    fn a_cap_counts_from_the_first_task_to_the_last() {
        let task = Clamps { min: 0, max: 300 };
        let after_one = |bugs: Bugs| {
            let mut rq = UclampRq::default().with_bugs(&bugs);
            rq.inc(Clamps { min: 0, max: 600 });
            let first = rq.clamps().max;
            rq.dec(Clamps { min: 0, max: 600 });
            (first, rq.with(Some(task)).max, rq.join((0, 600), task).1)
        };
        assert_eq!(after_one(Bugs::default()), (600, 300, 300));
        let first = Bugs { first_cap_ignored: true, ..Bugs::default() };
        // It has not left as one whose cap was the queue's.
        assert_eq!(after_one(first), (1024, 1024, 600));
        let idle = Bugs { idle_clamp_counts: true, ..Bugs::default() };
        assert_eq!(after_one(idle), (600, 600, 600));
    }

    /// `(join?, (min, max), aggregate, idle)`
    type Step = (bool, (u32, u32), (u32, u32), bool);

    /// One run queue each.
    #[test]
    fn aggregates() {
        let check = |name: &str, steps: &[Step]| {
            let mut rq = UclampRq::default();
            for (step, &(join, (min, max), expected, idle)) in steps.iter().enumerate() {
                let task = Clamps { min, max };
                if join {
                    rq.inc(task)
                } else {
                    rq.dec(task)
                }
                let Clamps { min, max } = rq.clamps();
                assert_eq!(((min, max), rq.is_idle()), (expected, idle), "{name}, step {step}");
            }
        };
        check(
            "one default task lifts the cap; the last one's is retained",
            &[
                (true, (0, 300), (0, 300), false),
                (true, (0, 1024), (0, 1024), false),
                (false, (0, 1024), (0, 300), false),
                (false, (0, 300), (0, 300), true),
                (true, (0, 512), (0, 512), false),
            ],
        );
        check(
            "a bucket keeps its largest minimum until it is empty",
            &[
                (true, (210, 1024), (210, 1024), false),
                (true, (400, 1024), (400, 1024), false),
                (false, (400, 1024), (400, 1024), false),
                (true, (220, 1024), (400, 1024), false),
                (false, (210, 1024), (400, 1024), false),
                (false, (220, 1024), (0, 1024), true),
                (true, (220, 1024), (220, 1024), false),
            ],
        );
        check(
            "a lower bucket takes over",
            &[
                (true, (100, 100), (100, 100), false),
                (true, (900, 1000), (900, 1000), false),
                (false, (900, 1000), (100, 100), false),
                (false, (100, 100), (0, 100), true),
            ],
        );
        check(
            "what is retained is the leaving task's own, not its bucket's",
            &[
                (true, (0, 400), (0, 400), false),
                (true, (0, 210), (0, 400), false),
                (false, (0, 400), (0, 400), false),
                (false, (0, 210), (0, 210), true),
            ],
        );
    }
}
