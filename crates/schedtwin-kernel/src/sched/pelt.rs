// SPDX-License-Identifier: GPL-2.0-or-later
//! Per-entity load tracking (PELT): how busy something has been, most of it lately.
//!
//! **What it computes.** A [`SchedAvg`] follows one signal owner (a task, a group, a runqueue, or
//! the RT, deadline, interrupt or throttling pressure of a CPU) and yields three averages:
//! `load_avg` (time runnable × weight), `runnable_avg` (time runnable, counting how many), and
//! `util_avg` (time running), each on the 0..=1024 scale of a CPU's capacity.
//!
//! **The idea.** Time is cut into *segments* of 1024 µs (a "µs" here is 1024 ns, so that shifts do
//! the divisions). What happened `n` segments ago counts `y^n`, where `y^32 = 1/2`. A geometric
//! series needs no history: one multiplication ages everything seen so far.
//!
//! ```text
//!            last update                         now
//!                 |                               |
//!  ---|-----------x----|------------|------------|x----|---> segments of 1024
//!      pc = old    d1        1024        1024     d3 = new
//!  period_contrib                                 period_contrib
//!
//!  contribution = d1·y^p + 1024·(y^(p-1) + … + y^1) + d3      p = boundaries crossed (3 here)
//! ```
//!
//! **Terms.** *sum*: the decayed integral, in µs (×1024 for util and runnable). *divider*: the
//! largest sum that is possible at this position in the segment, [`get_pelt_divider`]. *avg*: sum ÷
//! divider; refreshed only when a segment boundary is crossed, so an average lags its sum by up to
//! 1.05 ms, and a caller that saw no boundary must not tell the frequency governor anything.
//!
//! **Algorithm** ([`update_load_sum`] then, if it returned true, [`update_load_avg`]):
//! 1. Elapsed time in whole µs; the remainder stays for the next call.
//! 2. If boundaries were crossed, age the sums by that many periods ([`decay_load`]) and compute
//!    the contribution by the closed form above; else the contribution is the elapsed time.
//! 3. Add the contribution, times load or number of runnable, or plainly if running.
//! 4. If boundaries were crossed, divide.
//!
//! The clock these run on is *not* wall time: see [`RqClockPelt`]. How signals enter and leave a
//! runqueue is in `attach.rs`, the estimate that survives sleep in `util_est.rs`.
//!
//! **Example.** A new task running without pause, updated every millisecond:
//!
//! ```
//! use schedtwin_kernel::sched::pelt::{SchedAvg, update_load_avg_se};
//!
//! let mut task = SchedAvg::default();
//! let mut util_after_ms = [0; 33];
//! for ms in 1..=32u64 {
//!     update_load_avg_se(ms * 1_000_000, &mut task, true, 1, true, 1024);
//!     util_after_ms[ms as usize] = task.util_avg;
//! }
//! assert_eq!(util_after_ms[1], 0); // 1 ms is shorter than a segment
//! assert_eq!(util_after_ms[2], 41);
//! assert_eq!(util_after_ms[32], 495); // about half after one half-life
//! ```
//!
//! **Kernel:** Linux 6.12, `kernel/sched/pelt.c`, `kernel/sched/pelt.h`, `kernel/sched/sched-pelt.h`.
//! This file is checked bit for bit against that C (`conformance/src/pelt`).
//!
//! **Differences:**
//! - No locks, barriers, trace points or second copies of 64-bit clocks: an entry of the twin is
//!   atomic. Nobody can notice.
//! - `UTIL_EST` counts as switched on (it is a debugfs feature, on by default). A user who clears
//!   it could notice that the flag of `util_est` is cleared here all the same; nothing reads it
//!   then.
//!
//! **References:** `Documentation/scheduler/schedutil.rst`; <https://lwn.net/Articles/531853/>.

mod attach;
mod clock;
mod util_est;

pub use attach::{
    Removed, attach_entity, dequeue_load_avg, detach_entity, enqueue_load_avg, fold_removed,
    init_entity, load_avg_is_decayed, migrate_se_pelt_lag, post_init_entity_util_avg,
    propagate_load, propagate_runnable, propagate_util, remove_entity, reweight_load_avg,
    set_task_rq, sub_util,
};
pub use clock::{RqClockPelt, scale_irq_capacity};
pub use util_est::{
    _task_util_est, Learns, UTIL_AVG_UNCHANGED, UTIL_EST_MARGIN, UTIL_EST_WEIGHT_SHIFT,
    task_util_est, util_est_dequeue, util_est_enqueue, util_est_learns, util_est_leaves_twice,
    util_est_limit, util_est_update, util_est_update_enqueued_and_ewma, util_est_update_form,
};

/// `SCHED_CAPACITY_SHIFT`: capacities and utilisations are fractions of `1 << 10`.
pub const SCHED_CAPACITY_SHIFT: u32 = 10;
/// Periods after which a contribution counts half (`LOAD_AVG_PERIOD`).
pub const LOAD_AVG_PERIOD: u64 = 32;
/// Length of a segment, in units of 1024 ns.
const SEGMENT: u64 = 1024;

/// `y^n` for `n` in 0..32 as fractions of 2^32 (`runnable_avg_yN_inv`): the integer part of
/// `(2^32 − 1)·y^n`.
///
/// Linux generates its table with `pow()`. Here the powers come from square roots, because
/// `y^16 = √½`, `y^8 = √(y^16)` and so on down to `y`: 64 binary digits each, so that the 32 that
/// are kept are exact. `conformance/src/pelt` compares them with the kernel's.
pub const RUNNABLE_AVG_YN_INV: [u32; 32] = {
    let mut power_of_two_roots = [0u128; 5]; // y^1, y^2, y^4, y^8, y^16 in units of 2^-64
    let mut square: u128 = 1 << 63; // one half
    let mut bit = 5;
    while bit > 0 {
        bit -= 1;
        square = (square << 64).isqrt();
        power_of_two_roots[bit] = square;
    }
    let mut table = [0u32; 32];
    let mut n = 0;
    while n < 32 {
        let mut power: u128 = 1 << 64;
        let mut bit = 0;
        while bit < 5 {
            if n & (1 << bit) != 0 {
                // Both factors are at most 2^64, and only y^0 is exactly that: no overflow.
                power = if power == 1 << 64 {
                    power_of_two_roots[bit]
                } else {
                    (power * power_of_two_roots[bit]) >> 64
                };
            }
            bit += 1;
        }
        table[n] = ((power * 0xffff_ffff) >> 64) as u32;
        n += 1;
    }
    table
};

/// The value that a sum approaches when every segment counts in full (`LOAD_AVG_MAX`): the fixed
/// point of "age by one period, add a segment" in the same truncating arithmetic, 47742.
pub const LOAD_AVG_MAX: u32 = {
    let mut max = SEGMENT;
    loop {
        let next = ((max * RUNNABLE_AVG_YN_INV[1] as u64) >> 32) + SEGMENT;
        if next == max {
            break max as u32;
        }
        max = next;
    }
};
const _: () = assert!(LOAD_AVG_MAX == 47742);

/// The divider at the very start of a segment: all older segments full, nothing in the current one
/// yet (`PELT_MIN_DIVIDER`, 46718).
pub const PELT_MIN_DIVIDER: u32 = LOAD_AVG_MAX - SEGMENT as u32;

/// The three signals of one owner (`struct sched_avg`, widths as on a 64-bit machine).
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SchedAvg {
    /// PELT-clock time up to which the sums are accumulated, ns; 0 = not attached anywhere.
    pub last_update_time: u64,
    /// Task: runnable time, µs. Runqueue: Σ weight × runnable time, µs.
    pub load_sum: u64,
    /// Runnable time × number of runnable, µs × 1024.
    pub runnable_sum: u64,
    /// Running time, µs × 1024.
    pub util_sum: u32,
    /// Position inside the current segment, 0..=1023 µs.
    pub period_contrib: u32,
    /// Runnable fraction × weight (nice 0 = 1024).
    pub load_avg: u64,
    /// Runnable fraction × number of runnable, 1024 = one.
    pub runnable_avg: u64,
    /// Running fraction, 1024 = always.
    pub util_avg: u64,
    /// Task: smoothed peak utilisation (up to 6.7: that of the last activation, `util_est.enqueued`),
    /// with [`UTIL_AVG_UNCHANGED`] in bit 31. Root runqueue: the sum over enqueued tasks.
    pub util_est: u32,
    /// Task, up to 6.7: smoothed peak utilisation (`util_est.ewma`). Else 0. It fills what would be
    /// padding.
    pub util_est_ewma: u32,
}

/// `y^n` taken apart: `y^n = 2^-(n / 32) · y^(n % 32)`, a shift and a table entry.
///
/// One update ages up to five values by the same `n`; this is the part they share.
#[derive(Clone, Copy)]
struct Decay {
    shift: u32,
    factor: u32,
}

impl Decay {
    /// `None` when everything that is representable has decayed to nothing.
    #[inline(always)]
    fn of(periods: u64) -> Option<Decay> {
        // 63 halvings leave nothing of any u64.
        if periods > LOAD_AVG_PERIOD * 63 {
            return None;
        }
        let n = periods as u32;
        Some(Decay { shift: n / 32, factor: RUNNABLE_AVG_YN_INV[(n % 32) as usize] })
    }

    #[inline(always)]
    fn apply(self, value: u64) -> u64 {
        // 64 × 32 bits need 96: `mul_u64_u32_shr`.
        (((value >> self.shift) as u128 * self.factor as u128) >> 32) as u64
    }

    /// [`Decay::apply`] for what fits into 32 bits, where the product fits into 64.
    #[inline(always)]
    fn apply_u32(self, value: u32) -> u32 {
        (((value as u64) >> self.shift).wrapping_mul(self.factor as u64) >> 32) as u32
    }
}

/// `value · y^n`, truncated (`decay_load`).
///
/// `n = 0` already loses up to one unit, because the table's 1 is `(2^32 − 1)/2^32`; PELT itself
/// only asks for `n ≥ 1`.
#[inline]
pub fn decay_load(value: u64, n: u64) -> u64 {
    Decay::of(n).map_or(0, |decay| decay.apply(value))
}

/// The largest sum that is possible at this position in the segment (`get_pelt_divider`).
///
/// Dividing by the constant [`LOAD_AVG_MAX`] would count the remainder of the current segment as
/// idle and make a busy task's average swing between 1002 and 1024.
#[inline(always)]
pub fn get_pelt_divider(sa: &SchedAvg) -> u32 {
    PELT_MIN_DIVIDER.wrapping_add(sa.period_contrib)
}

/// Ages and accumulates the sums over `delta` µs; true if a boundary was crossed.
#[inline(always)]
fn accumulate_sum(delta: u64, sa: &mut SchedAvg, load: u64, runnable: u64, running: u32) -> bool {
    // Right when no boundary is crossed: then delta is below 1024.
    let mut contrib = delta as u32;
    let position = delta.wrapping_add(sa.period_contrib as u64);
    let periods = position / SEGMENT;
    let rest = (position % SEGMENT) as u32;

    if periods != 0 {
        let mut full_segments = LOAD_AVG_MAX - SEGMENT as u32;
        let mut old_rest = 0;
        if let Some(decay) = Decay::of(periods) {
            sa.load_sum = decay.apply(sa.load_sum);
            sa.runnable_sum = decay.apply(sa.runnable_sum);
            sa.util_sum = decay.apply_u32(sa.util_sum);
            // 1024·(y^1 + … + y^(p−1)) is the whole series without y^0 and without what begins
            // at y^p; the latter is the whole series aged by p.
            full_segments -= decay.apply_u32(LOAD_AVG_MAX);
            old_rest = decay.apply_u32((SEGMENT as u32).wrapping_sub(sa.period_contrib));
        } else {
            sa.load_sum = 0;
            sa.runnable_sum = 0;
            sa.util_sum = 0;
        }
        contrib = old_rest.wrapping_add(full_segments).wrapping_add(rest);
    }
    sa.period_contrib = rest;

    // Sums wrap as C's do. In range they cannot: 47742 × weight, × 1024 × number of runnable.
    if load != 0 {
        sa.load_sum = sa.load_sum.wrapping_add(load.wrapping_mul(contrib as u64));
    }
    if runnable != 0 {
        let add = runnable.wrapping_mul(contrib as u64) << SCHED_CAPACITY_SHIFT;
        sa.runnable_sum = sa.runnable_sum.wrapping_add(add);
    }
    if running != 0 {
        sa.util_sum = sa.util_sum.wrapping_add(contrib << SCHED_CAPACITY_SHIFT);
    }
    // C returns the count through a u32: a gap of exactly k·2^32 segments (52 days) reports none.
    periods as u32 != 0
}

/// Whether an update at `now` would change nothing: less than a µs has passed since the last one. For
/// callers that want to save what they would have to collect for it.
#[inline(always)]
pub fn is_up_to_date(now: u64, sa: &SchedAvg) -> bool {
    now.wrapping_sub(sa.last_update_time) < 1 << 10
}

/// Accumulates up to `now` (`___update_load_sum`). True if a segment boundary was crossed, that
/// is, if the averages are due.
///
/// `load` 0 makes `runnable` and `running` 0 too: a runqueue that just lost its last entity may
/// still have a current one.
#[inline(always)]
pub fn update_load_sum(
    now: u64,
    sa: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: u32,
) -> bool {
    let elapsed_ns = now.wrapping_sub(sa.last_update_time);
    if (elapsed_ns as i64) < 0 {
        // The clock went back: start over from there, keep the sums.
        sa.last_update_time = now;
        return false;
    }
    let delta = elapsed_ns >> 10;
    if delta == 0 {
        return false;
    }
    sa.last_update_time = sa.last_update_time.wrapping_add(delta << 10);
    let (runnable, running) = if load == 0 { (0, 0) } else { (runnable, running) };
    accumulate_sum(delta, sa, load, runnable, running)
}

/// Brings the averages up to the sums (`___update_load_avg`). `load` is the weight for an entity
/// and 1 for a runqueue, whose `load_sum` already carries weights.
#[inline(always)]
pub fn update_load_avg(sa: &mut SchedAvg, load: u64) {
    let divider = get_pelt_divider(sa);
    sa.load_avg = load.wrapping_mul(sa.load_sum) / divider as u64;
    sa.runnable_avg = sa.runnable_sum / divider as u64;
    sa.util_avg = (sa.util_sum / divider) as u64;
}

/// Ages an entity that sleeps (`__update_load_avg_blocked_se`). `se_weight` is scaled down
/// (nice 0 = 1024).
#[inline]
pub fn update_load_avg_blocked_se(now: u64, sa: &mut SchedAvg, se_weight: u64) -> bool {
    let crossed = update_load_sum(now, sa, 0, 0, 0);
    if crossed {
        update_load_avg(sa, se_weight);
    }
    crossed
}

/// Updates an entity in its runqueue (`__update_load_avg_se`). `runnable` is 1 for a queued task
/// that is not delayed, the child's count for a group; `running` = it is its runqueue's current.
///
/// A refresh clears [`UTIL_AVG_UNCHANGED`] (`cfs_se_util_change`): the next sleep may store a new
/// estimate.
#[inline(always)]
pub fn update_load_avg_se(
    now: u64,
    sa: &mut SchedAvg,
    on_rq: bool,
    runnable: u64,
    running: bool,
    se_weight: u64,
) -> bool {
    let crossed = update_load_sum(now, sa, on_rq as u64, runnable, running as u32);
    if crossed {
        update_load_avg(sa, se_weight);
        sa.util_est &= !UTIL_AVG_UNCHANGED;
    }
    crossed
}

/// Updates a fair runqueue (`__update_load_avg_cfs_rq`). `weight` is the scaled-down sum of queued
/// weights, `runnable` the number of runnable tasks below it without the delayed ones, `running` =
/// it has a current entity.
#[inline]
pub fn update_load_avg_cfs_rq(
    now: u64,
    sa: &mut SchedAvg,
    weight: u64,
    runnable: u64,
    running: bool,
) -> bool {
    update_rq_signal(now, sa, weight, runnable, running as u32)
}

/// Updates a CPU's RT signal (`update_rt_rq_load_avg`), on the PELT clock.
#[inline]
pub fn update_rt_rq_load_avg(now: u64, sa: &mut SchedAvg, running: bool) -> bool {
    update_rare_signal(now, sa, running as u64, running as u64, running as u32)
}

/// Updates a CPU's deadline signal (`update_dl_rq_load_avg`), on the PELT clock.
#[inline]
pub fn update_dl_rq_load_avg(now: u64, sa: &mut SchedAvg, running: bool) -> bool {
    update_rare_signal(now, sa, running as u64, running as u64, running as u32)
}

/// Updates a CPU's hardware pressure (`update_hw_load_avg`), on the unscaled task clock.
///
/// `capacity` is what the hardware currently takes away, 0..=1024. Unlike the other pressures it is
/// read as `load_avg`, because it is an amount and not a yes or no.
#[inline]
pub fn update_hw_load_avg(now: u64, sa: &mut SchedAvg, capacity: u64) -> bool {
    // C passes the u64 as an int where only "zero or not" matters.
    update_rare_signal(now, sa, capacity, capacity, capacity as u32)
}

/// Updates a CPU's interrupt signal (`update_irq_load_avg`), on the plain runqueue clock.
///
/// The duration of the interrupts is known, not their time; they are put just before now. First
/// frequency then CPU scale, the opposite order to the PELT clock's.
#[inline]
pub fn update_irq_load_avg(
    sa: &mut SchedAvg,
    rq_clock: u64,
    running_ns: u64,
    freq_scale: u64,
    cpu_scale: u64,
) -> bool {
    let running = running_ns.wrapping_mul(freq_scale) >> SCHED_CAPACITY_SHIFT;
    let running = running.wrapping_mul(cpu_scale) >> SCHED_CAPACITY_SHIFT;
    let before = update_load_sum(rq_clock.wrapping_sub(running), sa, 0, 0, 0);
    let during = update_load_sum(rq_clock, sa, 1, 1, 1);
    let crossed = before | during;
    if crossed {
        update_load_avg(sa, 1);
    }
    crossed
}

impl SchedAvg {
    /// Whether the owner has not been seen busy for so long that nothing is left of it.
    #[inline(always)]
    fn is_zero(&self) -> bool {
        let sums = self.load_sum | self.runnable_sum | u64::from(self.util_sum);
        sums | self.load_avg | self.runnable_avg | self.util_avg == 0
    }
}

/// [`update_rq_signal`] of what is mostly zero and stays zero: then only the position in time changes. Most CPUs have never
/// run a task of RT or DEADLINE, nor been throttled.
#[inline(always)]
fn update_rare_signal(now: u64, sa: &mut SchedAvg, load: u64, runnable: u64, running: u32) -> bool {
    let elapsed_ns = now.wrapping_sub(sa.last_update_time);
    if load != 0 || !sa.is_zero() || (elapsed_ns as i64) < 0 {
        return update_rq_signal(now, sa, load, runnable, running);
    }
    let delta = elapsed_ns >> 10;
    let position = delta.wrapping_add(u64::from(sa.period_contrib));
    sa.last_update_time = sa.last_update_time.wrapping_add(delta << 10);
    sa.period_contrib = (position % SEGMENT) as u32;
    (position / SEGMENT) as u32 != 0
}

#[inline(always)]
fn update_rq_signal(now: u64, sa: &mut SchedAvg, load: u64, runnable: u64, running: u32) -> bool {
    let crossed = update_load_sum(now, sa, load, runnable, running);
    if crossed {
        update_load_avg(sa, 1);
    }
    crossed
}

#[cfg(test)]
mod tests;
