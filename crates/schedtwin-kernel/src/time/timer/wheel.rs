// SPDX-License-Identifier: GPL-2.0-or-later
//! The timer wheel: timers that may be late, at a cost that does not depend on their number.
//!
//! **Idea.** Most kernel timers are timeouts that are cancelled before they expire, so it does not pay to sort them. A
//! timer goes into a bucket, and the later it is due, the coarser are the buckets. It stays there until the bucket is due:
//! nothing is moved to finer buckets later.
//!
//! **Terms.** Level *n* has 64 buckets of 8^n jiffies. `clk`: the jiffy up to which the base has been looked at.
//! `next_expiry`: when the first bucket with a timer is due. It is valid unless `next_expiry_recalc`.
//!
//! **Algorithm.**
//! 1. A timer's distance from `clk` chooses the level: level *n* begins at 63 · 8^(n−1) jiffies.
//! 2. Its bucket is the first one of that level that begins after `expires`. So a timer is late by 1 to 8^n jiffies, and
//!    never early.
//! 3. At a jiffy, the due bucket of level 0 is emptied; of level *n* only where the lower 3n bits of the jiffy are 0.
//! 4. Before its timers run, `clk` moves on by one, so that a timer armed for now waits for the next jiffy.
//!
//! ```text
//! level 0  |x| | | |...              1 jiffy a bucket, to 63
//! level 1  |   x   |       |...      8 jiffies a bucket, from 63 to 504
//! level 2  |               x ...    64 jiffies a bucket, from 504
//! ```
//!
//! **Example.** At jiffy 1000:
//!
//! ```
//! use schedtwin_kernel::time::timer::wheel::{LVL_DEPTH_MAX, calc_wheel_index};
//!
//! let due = |expires| calc_wheel_index(expires, 1000, LVL_DEPTH_MAX).1;
//! assert_eq!([1001, 1062, 1063, 1503, 1504].map(due), [1002, 1063, 1064, 1504, 1536]);
//! // What is overdue expires in the next softirq, what is too far away at the wheel's end.
//! assert_eq!(due(990), 1000);
//! assert_eq!(due(1 << 40), due(1 << 41));
//! ```
//!
//! Kernel: 6.12.95 kernel/time/timer.c `calc_wheel_index`, `enqueue_timer`, `detach_if_pending`,
//! `__forward_timer_base`, `collect_expired_timers`, `timer_recalc_next_expiry`, `__run_timers`; the same since 4.8 but
//! for the base that is empty ([`TimerBase::next_timer_interrupt`]).
//! Differences: none; compared with the C of 6.1, 6.12 and 7.3 (`conformance/src/timer_wheel`).

/// Jiffies of a bucket of one level in those of the level below, as a power of two.
const LVL_CLK_SHIFT: u32 = 3;
const LVL_CLK_DIV: u64 = 1 << LVL_CLK_SHIFT;
const LVL_CLK_MASK: u64 = LVL_CLK_DIV - 1;
const LVL_BITS: u32 = 6;
/// Buckets of a level.
const LVL_SIZE: u64 = 1 << LVL_BITS;
const LVL_MASK: u64 = LVL_SIZE - 1;
/// Levels with more than 100 ticks a second; with fewer it is one less.
pub const LVL_DEPTH_MAX: usize = 9;
/// All buckets.
const WHEEL_SIZE: usize = LVL_SIZE as usize * LVL_DEPTH_MAX;
/// How far in the future the next expiry of an empty base lies (`NEXT_TIMER_MAX_DELTA`).
pub const NEXT_TIMER_MAX_DELTA: u64 = (1 << 30) - 1;

/// Jiffies between the CPUs' rounded times.
const ROUND_SKEW: u64 = 3;

/// `time_before()`: jiffies wrap around.
#[inline]
fn time_before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// `LVL_START()`: the distance at which a level begins.
const fn lvl_start(level: u32) -> u64 {
    (LVL_SIZE - 1) << ((level - 1) * LVL_CLK_SHIFT)
}

/// `LVL_DEPTH`: the levels of a wheel with `hz` ticks a second.
pub fn lvl_depth(hz: u64) -> usize {
    if hz > 100 { LVL_DEPTH_MAX } else { LVL_DEPTH_MAX - 1 }
}

/// `calc_index()`: the first bucket of a level that begins after `expires`, and when that is.
fn calc_index(expires: u64, level: u32) -> (usize, u64) {
    let shift = level * LVL_CLK_SHIFT;
    let expires = (expires >> shift).wrapping_add(1);
    ((u64::from(level) * LVL_SIZE + (expires & LVL_MASK)) as usize, expires << shift)
}

/// `calc_wheel_index()`: the bucket of a timer, and the jiffy at which that is due. `depth`: the wheel's levels.
pub fn calc_wheel_index(expires: u64, clk: u64, depth: usize) -> (usize, u64) {
    let delta = expires.wrapping_sub(clk);
    let last = depth as u32 - 1;
    if let Some(level) = (0..last).find(|level| delta < lvl_start(level + 1)) {
        return calc_index(expires, level);
    }
    if (delta as i64) < 0 {
        return ((clk & LVL_MASK) as usize, clk);
    }
    let cutoff = lvl_start(depth as u32);
    let most = cutoff - (1 << (last * LVL_CLK_SHIFT));
    calc_index(if delta >= cutoff { clk.wrapping_add(most) } else { expires }, last)
}

/// `round_jiffies_common()`: a time near `j` at a whole second, with a skew of its own for each CPU. It is `j` itself
/// if the rounded time is not after `jiffies`.
///
/// ```
/// use schedtwin_kernel::time::timer::wheel::round_jiffies_common;
///
/// let round = |j, cpu| round_jiffies_common(j, cpu, false, 1000, 250);
/// assert_eq!([round(1260, 0), round(1311, 0), round(1312, 0)], [1250, 1250, 1500]);
/// assert_eq!(round(1260, 4), 1238);
/// assert_eq!(round(1001, 0), 1001, "1000 is not in the future");
/// ```
pub fn round_jiffies_common(j: u64, cpu: u64, force_up: bool, jiffies: u64, hz: u64) -> u64 {
    let skewed = j.wrapping_add(cpu * ROUND_SKEW);
    // The kernel's `rem` is an int.
    let rem = (skewed % hz) as i32 as u64;
    let down = rem < hz / 4 && !force_up;
    let whole = skewed.wrapping_sub(rem).wrapping_add(if down { 0 } else { hz });
    let rounded = whole.wrapping_sub(cpu * ROUND_SKEW);
    if time_before(jiffies, rounded) { rounded } else { j }
}

/// A timer, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId(pub u32);

/// The pointer that leads to a timer (`pprev`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// It is in no list.
    None,
    /// The head of a list.
    Head(u16),
    /// The timer before it.
    Timer(TimerId),
}

/// `struct timer_list`.
#[derive(Clone, Copy, Debug)]
struct TimerList {
    expires: u64,
    idx: u16,
    before: Before,
    after: Option<TimerId>,
}

/// All timers, of all bases.
#[derive(Clone, Debug, Default)]
pub struct Timers(Vec<TimerList>);

impl Timers {
    /// Makes a timer, which is not pending.
    pub fn add(&mut self) -> TimerId {
        self.0.push(TimerList { expires: 0, idx: 0, before: Before::None, after: None });
        TimerId(self.0.len() as u32 - 1)
    }

    /// `timer_pending()`.
    pub fn is_pending(&self, timer: TimerId) -> bool {
        self.get(timer).before != Before::None
    }

    /// The jiffy that a timer was asked for.
    pub fn expires(&self, timer: TimerId) -> u64 {
        self.get(timer).expires
    }

    /// The number of a timer's bucket (`timer_get_idx`).
    pub fn bucket(&self, timer: TimerId) -> u64 {
        self.get(timer).idx.into()
    }

    fn get(&self, timer: TimerId) -> &TimerList {
        &self.0[timer.0 as usize]
    }

    fn get_mut(&mut self, timer: TimerId) -> &mut TimerList {
        &mut self.0[timer.0 as usize]
    }
}

/// `struct timer_base`: a wheel.
#[derive(Clone, Debug)]
pub struct TimerBase {
    /// The jiffy up to which the base has been looked at.
    pub clk: u64,
    /// When the first bucket with a timer is due.
    pub next_expiry: u64,
    /// `next_expiry` has to be looked up.
    pub next_expiry_recalc: bool,
    /// The CPU has stopped its tick: whoever brings its first timer forward has to wake it.
    pub is_idle: bool,
    /// Whether there is a timer, unless `next_expiry_recalc`.
    pub timers_pending: bool,
    depth: usize,
    pending_map: [u64; LVL_DEPTH_MAX],
    /// The lists: of each bucket, then of each level those that are being expired.
    heads: Vec<Option<TimerId>>,
    /// Levels whose timers are being expired.
    expiring: usize,
}

impl TimerBase {
    /// An empty wheel of `depth` levels.
    pub fn new(depth: usize, jiffies: u64) -> TimerBase {
        TimerBase {
            clk: jiffies,
            next_expiry: jiffies.wrapping_add(NEXT_TIMER_MAX_DELTA),
            next_expiry_recalc: false,
            is_idle: false,
            timers_pending: false,
            depth,
            pending_map: [0; LVL_DEPTH_MAX],
            heads: vec![None; WHEEL_SIZE + LVL_DEPTH_MAX],
            expiring: 0,
        }
    }

    /// Whether the base has something to do at `jiffies`: who asks raises the softirq.
    #[inline]
    pub fn is_due(&self, jiffies: u64) -> bool {
        !time_before(jiffies, self.next_expiry)
    }

    /// `__forward_timer_base()`: lets `clk` follow the jiffies, but not past a timer.
    pub fn forward(&mut self, basej: u64) {
        if !time_before(self.clk, basej) {
            return;
        }
        if time_before(basej, self.next_expiry) {
            self.clk = basej;
        } else if !time_before(self.next_expiry, self.clk) {
            self.clk = self.next_expiry;
        }
    }

    /// Puts a timer into its bucket (`internal_add_timer`). Whether it is now the base's first.
    pub fn enqueue(&mut self, timer: TimerId, expires: u64, timers: &mut Timers) -> bool {
        let (idx, bucket_expiry) = calc_wheel_index(expires, self.clk, self.depth);
        let first = self.heads[idx];
        if let Some(first) = first {
            timers.get_mut(first).before = Before::Timer(timer);
        }
        let before = Before::Head(idx as u16);
        *timers.get_mut(timer) = TimerList { expires, idx: idx as u16, before, after: first };
        self.heads[idx] = Some(timer);
        self.pending_map[idx / LVL_SIZE as usize] |= 1 << (idx as u64 & LVL_MASK);
        let sooner = time_before(bucket_expiry, self.next_expiry);
        if sooner {
            self.next_expiry = bucket_expiry;
            self.timers_pending = true;
            self.next_expiry_recalc = false;
        }
        sooner
    }

    /// Changes the time of a pending timer if it stays in its bucket (`__mod_timer`); whether it does.
    pub fn modify_in_place(&mut self, timer: TimerId, expires: u64, timers: &mut Timers) -> bool {
        let (idx, _) = calc_wheel_index(expires, self.clk, self.depth);
        let stays = idx == usize::from(timers.get(timer).idx);
        if stays {
            timers.get_mut(timer).expires = expires;
        }
        stays
    }

    /// `detach_if_pending()`: whether it was.
    pub fn detach(&mut self, timer: TimerId, timers: &mut Timers) -> bool {
        if !timers.is_pending(timer) {
            return false;
        }
        let TimerList { idx, before, after, .. } = *timers.get(timer);
        if before == Before::Head(idx) && after.is_none() {
            self.pending_map[usize::from(idx) / LVL_SIZE as usize] &=
                !(1 << (u64::from(idx) & LVL_MASK));
            self.next_expiry_recalc = true;
        }
        self.unlink(timer, timers);
        true
    }

    fn unlink(&mut self, timer: TimerId, timers: &mut Timers) {
        let TimerList { before, after, .. } = *timers.get(timer);
        match before {
            Before::Head(head) => self.heads[usize::from(head)] = after,
            Before::Timer(other) => timers.get_mut(other).after = after,
            Before::None => unreachable!("it is in a list"),
        }
        if let Some(after) = after {
            timers.get_mut(after).before = before;
        }
        timers.get_mut(timer).before = Before::None;
        timers.get_mut(timer).after = None;
    }

    /// Takes out the next timer to run at `jiffies`: the loop of `__run_timers()`, one turn a call.
    pub fn expire_next(&mut self, jiffies: u64, timers: &mut Timers) -> Option<TimerId> {
        loop {
            while self.expiring > 0 {
                match self.heads[WHEEL_SIZE + self.expiring - 1] {
                    Some(timer) => {
                        self.unlink(timer, timers);
                        return Some(timer);
                    }
                    None => self.expiring -= 1,
                }
            }
            if time_before(jiffies, self.clk) || time_before(jiffies, self.next_expiry) {
                return None;
            }
            self.collect_expired_timers(timers);
            self.clk = self.clk.wrapping_add(1);
            self.recalc_next_expiry();
        }
    }

    /// `collect_expired_timers()`: moves the due bucket of each level to the lists of those that expire.
    fn collect_expired_timers(&mut self, timers: &mut Timers) {
        self.clk = self.next_expiry;
        let mut clk = self.clk;
        for level in 0..self.depth {
            let bit = clk & LVL_MASK;
            if self.pending_map[level] & (1 << bit) != 0 {
                self.pending_map[level] &= !(1 << bit);
                let to = WHEEL_SIZE + self.expiring;
                let first = self.heads[level * LVL_SIZE as usize + bit as usize].take();
                self.heads[to] = first;
                if let Some(first) = first {
                    timers.get_mut(first).before = Before::Head(to as u16);
                }
                self.expiring += 1;
            }
            if clk & LVL_CLK_MASK != 0 {
                break;
            }
            clk >>= LVL_CLK_SHIFT;
        }
    }

    /// `next_pending_bucket()`: how many buckets after `clk` the next one with a timer is.
    fn next_pending_bucket(&self, level: usize, clk: u64) -> Option<u64> {
        let from_clk = self.pending_map[level].rotate_right((clk & LVL_MASK) as u32);
        (from_clk != 0).then(|| u64::from(from_clk.trailing_zeros()))
    }

    /// `timer_recalc_next_expiry()`: looks for the first bucket with a timer, from the finest level up.
    fn recalc_next_expiry(&mut self) {
        let none = self.clk.wrapping_add(NEXT_TIMER_MAX_DELTA);
        let (mut next, mut clk) = (none, self.clk);
        for level in 0..self.depth {
            let lvl_clk = clk & LVL_CLK_MASK;
            if let Some(pos) = self.next_pending_bucket(level, clk) {
                let due = clk.wrapping_add(pos) << (level as u32 * LVL_CLK_SHIFT);
                if time_before(due, next) {
                    next = due;
                }
                // It expires before the next level's clock moves.
                if pos <= (LVL_CLK_DIV - lvl_clk) & LVL_CLK_MASK {
                    break;
                }
            }
            // The bucket in progress has been emptied already.
            clk = (clk >> LVL_CLK_SHIFT) + u64::from(lvl_clk != 0);
        }
        self.next_expiry = next;
        self.next_expiry_recalc = false;
        self.timers_pending = next != none;
    }

    /// `next_timer_interrupt()`: when the first timer is due. That of an empty base moves on with the jiffies if
    /// `moves_empty` (6.9 and later), else it stays.
    pub fn next_timer_interrupt(&mut self, basej: u64, moves_empty: bool) -> u64 {
        if self.next_expiry_recalc {
            self.recalc_next_expiry();
        }
        if moves_empty && !self.timers_pending {
            self.next_expiry = basej.wrapping_add(NEXT_TIMER_MAX_DELTA);
        }
        self.next_expiry
    }
}
