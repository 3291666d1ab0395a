// SPDX-License-Identifier: GPL-2.0-or-later
//! The frozen floor: what a simulation of W1 costs if it does nothing but keep time and load averages.
//!
//! **What it is.** 40 tasks on 8 CPUs, each with 1.28 ms of work every 16 ms, 150,000 jobs in all: two events
//! a job through the standard library's binary heap, a first-in first-out queue per CPU, and the six PELT
//! updates that a job cannot do without. No placement, no fair queue, no governor, no idle states, no ticks,
//! no measurements. The twin's speed is told as a multiple of this, measured in the same process, so that a
//! bar means the same on every computer.
//!
//! ```text
//!      wake                 switch-in                 done
//!        |                      |                       |
//!   se, cfs_rq             se, cfs_rq              se, cfs_rq      <- PELT updates
//!   heap: pop              heap: push done         heap: pop, push next wake
//! ```
//!
//! **Frozen.** The arithmetic is a copy of its own and is never optimised, neither alone nor together with
//! the product: a change of this file changes what all published ratios mean. A test pins its
//! checksum.
//!
//! The arithmetic is Linux's `kernel/sched/pelt.c` (6.12), plainly; `schedtwin-kernel` explains it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const CPUS: usize = 8;
const TASKS: u32 = 40;
const PERIOD_NS: u64 = 16_000_000;
const WORK_NS: u64 = 1_280_000;

const LOAD_AVG_MAX: u32 = 47742;
const MIN_DIVIDER: u32 = LOAD_AVG_MAX - 1024;

/// `y^n` in units of 2^-32, `y^32 = 1/2`.
const POWERS: [u32; 32] = [
    0xffff_ffff,
    0xfa83_b2da,
    0xf525_7d14,
    0xefe4_b99a,
    0xeac0_c6e6,
    0xe5b9_06e6,
    0xe0cc_deeb,
    0xdbfb_b796,
    0xd744_fcc9,
    0xd2a8_1d91,
    0xce24_8c14,
    0xc9b9_bd85,
    0xc567_2a10,
    0xc12c_4cc9,
    0xbd08_a39e,
    0xb8fb_af46,
    0xb504_f333,
    0xb123_f581,
    0xad58_3ee9,
    0xa9a1_5ab4,
    0xa5fe_d6a9,
    0xa270_4302,
    0x9ef5_325f,
    0x9b8d_39b9,
    0x9837_f050,
    0x94f4_efa8,
    0x91c3_d373,
    0x8ea4_398a,
    0x8b95_c1e3,
    0x8898_0e80,
    0x85aa_c367,
    0x82cd_8698,
];

/// One owner's signals.
#[derive(Clone, Copy, Default)]
struct Signals {
    updated_at: u64,
    load_sum: u64,
    runnable_sum: u64,
    util_sum: u32,
    period_contrib: u32,
    load_avg: u64,
    runnable_avg: u64,
    util_avg: u64,
}

fn decay(value: u64, periods: u64) -> u64 {
    if periods > 32 * 63 {
        return 0;
    }
    let halved = value >> (periods / 32);
    ((halved as u128 * POWERS[(periods % 32) as usize] as u128) >> 32) as u64
}

impl Signals {
    fn update(&mut self, now: u64, load: u64, runnable: u64, running: bool, weight: u64) {
        let elapsed = now.wrapping_sub(self.updated_at);
        if (elapsed as i64) < 0 {
            self.updated_at = now;
            return;
        }
        let mut delta = elapsed >> 10;
        if delta == 0 {
            return;
        }
        self.updated_at += delta << 10;
        let mut contrib = delta as u32;
        delta += self.period_contrib as u64;
        let periods = delta / 1024;
        if periods != 0 {
            self.load_sum = decay(self.load_sum, periods);
            self.runnable_sum = decay(self.runnable_sum, periods);
            self.util_sum = decay(self.util_sum as u64, periods) as u32;
            delta %= 1024;
            let first = decay(1024 - self.period_contrib as u64, periods) as u32;
            let middle = LOAD_AVG_MAX - decay(LOAD_AVG_MAX as u64, periods) as u32 - 1024;
            contrib = first + middle + delta as u32;
        }
        self.period_contrib = delta as u32;
        if load != 0 {
            self.load_sum += load * contrib as u64;
            self.runnable_sum += runnable * ((contrib as u64) << 10);
            if running {
                self.util_sum += contrib << 10;
            }
        }
        if periods != 0 {
            let divider = MIN_DIVIDER + self.period_contrib;
            self.load_avg = weight * self.load_sum / divider as u64;
            self.runnable_avg = self.runnable_sum / divider as u64;
            self.util_avg = (self.util_sum / divider) as u64;
        }
    }
}

#[derive(Default)]
struct Cpu {
    signals: Signals,
    running: Option<u32>,
    waiting: VecDeque<u32>,
}

impl Cpu {
    fn update(&mut self, now: u64) {
        let count = self.waiting.len() as u64 + u64::from(self.running.is_some());
        self.signals.update(now, count * 1024, count, self.running.is_some(), 1);
    }
}

/// The result of a run of the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Jobs done.
    pub jobs: u64,
    /// Depends on every event's time and on every average, so that nothing can be left out.
    pub checksum: u64,
}

/// Simulates `jobs` jobs.
pub fn run(jobs: u64) -> Floor {
    let mut heap: BinaryHeap<Reverse<(u64, u32, bool)>> =
        BinaryHeap::with_capacity(2 * TASKS as usize);
    let mut cpus: [Cpu; CPUS] = std::array::from_fn(|_| Cpu::default());
    let mut tasks = [Signals::default(); TASKS as usize];
    let mut released = [0u64; TASKS as usize];
    for task in 0..TASKS {
        // A phase of its own for every task, at an odd distance.
        released[task as usize] = 1_000_000 + (task as u64 * 7_927_411) % PERIOD_NS;
        heap.push(Reverse((released[task as usize], task, false)));
    }
    let mut floor = Floor { jobs: 0, checksum: 0 };
    while floor.jobs < jobs {
        let Some(Reverse((now, task, done))) = heap.pop() else { break };
        let cpu = &mut cpus[task as usize % CPUS];
        let signals = &mut tasks[task as usize];
        if done {
            cpu.update(now);
            signals.update(now, 1, 1, true, 1024);
            cpu.running = None;
            floor.jobs += 1;
            floor.checksum =
                floor.checksum.rotate_left(7) ^ now ^ signals.util_avg ^ cpu.signals.runnable_avg;
            released[task as usize] += PERIOD_NS;
            heap.push(Reverse((released[task as usize].max(now), task, false)));
        } else {
            cpu.update(now);
            signals.update(now, 0, 0, false, 1024);
            cpu.waiting.push_back(task);
        }
        if cpu.running.is_none()
            && let Some(next) = cpu.waiting.pop_front()
        {
            cpu.update(now);
            tasks[next as usize].update(now, 1, 1, false, 1024);
            cpu.running = Some(next);
            heap.push(Reverse((now + WORK_NS, next, true)));
        }
    }
    floor
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_floor_is_frozen() {
        let floor = super::run(15_000);
        assert_eq!((floor.jobs, floor.checksum), (15_000, 9_937_424_825_148_550_244));
    }
}
