// SPDX-License-Identifier: GPL-2.0-or-later
//! Newidle balancing: a CPU that runs out of work looks for some before it goes idle.
//!
//! Looking costs time, and pays only if the CPU would have been idle longer than that. So a domain is
//! tried only if the CPU's average idle time exceeds what passes have cost up to it (the longest of
//! late, which decays by 1 % a second); and then with a probability that follows how often passes of
//! this domain pulled something (NI_RANDOM): at a success rate of one half, every second time, and a
//! success counts twice. Since 7.3 the rate of tries adds to it (NI_RATE): at 256 tries a second a domain is always looked at,
//! whether that helps or not.
//!
//! ```text
//! avg_idle 120 µs     MC  max cost 10 µs: 120 ≥ 0 + 10, look (took 8 µs)
//!                     PKG max cost 90 µs: 120 ≥ 8 + 90, look
//!                     NUMA max cost 60 µs: 120 < 98 + 60, stop
//! ```
//!
//! Kernel: 6.12.95 and 7.3.4 kernel/sched/fair.c `sched_balance_newidle`.
//! Differences:
//! - The cost is the executing CPU's debt: what `path_costs` say. A pass costs at least 1 ns, or with a
//!   machine without path costs no attempt would ever be counted, only the skips of NI_RANDOM.
//! - NI_RANDOM draws from a linear congruential generator per CPU (see `next_random`), not from
//!   the kernel's `prandom`: the seed is random in both.
//! - Nothing can be queued on the CPU while it looks, so a pull "by others" never happens.

use super::*;
use crate::config::NewidleRate;
use crate::sched::CfsRqId;

/// Advances a CPU's random sequence: Knuth's MMIX generator, of which the upper half is good.
fn next_random(state: &mut u64) -> u32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 32) as u32
}

/// NI_RANDOM: whether a draw of `d1k` (0..1024) lets a pass run at a success ratio (per 1024), and
/// then, how often its success counts, so that the estimate stays fair.
///
/// A fresh domain has ratio 512: 514 of 1024 draws pass, and a success counts twice.
fn ni_random(ratio: u32, d1k: u32) -> Option<u32> {
    let weight = 1 + ratio;
    (d1k <= weight).then(|| (1024 + weight / 2) / weight)
}

impl Kernel {
    /// `sched_balance_newidle()`: `cpu`, which executes this, has nothing fair left to run.
    ///
    /// Returns > 0 if fair tasks were pulled, 0 if not, < 0 if a higher class has something to run.
    pub fn sched_balance_newidle(&mut self, cpu: CpuId) -> i32 {
        self.update_misfit_status(None, cpu);
        if self.sched.rq[cpu].ttwu_pending {
            return 0;
        }
        // Before the passes, so that their time counts as idle time.
        self.sched.rq[cpu].idle_stamp = self.sched.rq[cpu].clock;
        let mut next_balance = self.cx.jiffies() + self.cx.config.hz as u64;
        let mut pulled = 0;
        if let Some(lowest) = self.sched.topology.base[cpu.index()] {
            let cost = self.sched.topology[lowest].max_newidle_lb_cost;
            if !self.sched.rd.overloaded || self.sched.rq[cpu].avg_idle < cost {
                next_balance = self.sched.update_next_balance(lowest, next_balance, &self.cx);
            } else {
                pulled = self.newidle_passes(cpu, lowest, &mut next_balance);
            }
        }
        let rq = &mut self.sched.rq[cpu];
        rq.next_balance = rq.next_balance.min(next_balance);
        if pulled != 0 {
            rq.idle_stamp = 0;
        } else {
            self.sched.nohz_newidle_balance(cpu, &self.cx);
        }
        pulled
    }

    fn newidle_passes(&mut self, cpu: CpuId, lowest: DomainId, next_balance: &mut u64) -> i32 {
        let (jiffies, hz, _) = self.sched.balance_times(&self.cx);
        let mut pulled = 0;
        let mut continue_balancing = true;
        let mut curr_cost = 0;
        let mut t0 = self.cx.local_clock();
        self.read_blocked_averages(cpu);
        let mut at = Some(lowest);
        while let Some(sd) = at {
            at = self.sched.topology[sd].parent;
            *next_balance = self.sched.update_next_balance(sd, *next_balance, &self.cx);
            if self.sched.rq[cpu].avg_idle < curr_cost + self.sched.topology[sd].max_newidle_lb_cost
            {
                break;
            }
            if self.sched.topology[sd].flags & crate::sched::topology::SD_BALANCE_NEWIDLE != 0 {
                let mut weight = 1;
                let by_time = self.cx.config.newidle_rate == NewidleRate::SuccessAndTime;
                // In 7.3 a CPU that is certain to look throws no dice.
                let certain = by_time && self.sched.topology[sd].newidle_ratio == 1024;
                if self.cx.config.features.ni_random && !certain {
                    let d1k = next_random(&mut self.sched.rq[cpu].newidle_rnd) % 1024;
                    match ni_random(self.sched.topology[sd].newidle_ratio, d1k) {
                        Some(w) => weight = w,
                        None => {
                            let now = by_time.then(|| self.cx.local_clock());
                            update_newidle_stats(&mut self.sched.topology[sd], 0, now);
                            continue;
                        }
                    }
                }
                let idle = CpuIdleType::NewlyIdle;
                pulled = self.sched_balance_rq(cpu, sd, idle, &mut continue_balancing);
                let t1 = self.cx.local_clock();
                let domain_cost = (t1 - t0).max(1);
                curr_cost += domain_cost;
                t0 = t1;
                let cost = match pulled {
                    0 if self.cx.config.bugs.newidle_cost_raised_by_failure => {
                        let most = self.cx.config.migration_cost.saturating_add(200);
                        (3 * self.sched.topology[sd].max_newidle_lb_cost / 2).clamp(1, most)
                    }
                    _ => domain_cost,
                };
                let success = weight * (pulled != 0) as u32;
                let (domain, now) = (&mut self.sched.topology[sd], by_time.then_some(t1));
                update_newidle_cost(domain, cost, success, now, (jiffies, hz));
            }
            if pulled != 0 || !continue_balancing {
                break;
            }
        }
        let h_nr_queued = self.sched.cfs[CfsRqId::root(cpu)].h_nr_queued;
        let rq = &mut self.sched.rq[cpu];
        rq.max_idle_balance_cost = rq.max_idle_balance_cost.max(curr_cost);
        if rq.nr_running != h_nr_queued {
            return -1;
        }
        if h_nr_queued != 0 && pulled == 0 { 1 } else { pulled as i32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_passes_run_at_half_success() {
        let runs = (0..1024).filter(|d| ni_random(512, *d).is_some()).count();
        assert_eq!(runs, 514);
        assert_eq!(ni_random(512, 513), Some(2));
        // Without any success a pass still runs twice in 1024, and counts like all of them.
        assert_eq!((0..1024).filter(|d| ni_random(0, *d).is_some()).count(), 2);
        assert_eq!(ni_random(0, 0), Some(1024));
        assert_eq!(ni_random(1024, 1023), Some(1));
    }

    #[test]
    fn draws_are_spread_and_repeatable() {
        let draw = |seed: u64| {
            let mut state = seed;
            (0..4096).map(|_| next_random(&mut state) % 1024).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let low = draw(0).iter().filter(|d| **d < 512).count();
        assert!((1900..2200).contains(&low), "{low} of 4096 in the lower half");
    }
}
