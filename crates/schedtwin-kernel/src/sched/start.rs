// SPDX-License-Identifier: GPL-2.0-or-later
//! The state in which a run begins (point `start`).
//!
//! `sched_init_smp()` leaves a machine about which nothing is known yet: up to 7.1 a wakeup looks for no idle CPU in a cache
//! before its first load balance, each domain is balanced a whole interval after boot, and clocks are where firmware left them.
//! A machine that somebody measures has been up for long and idle just before:
//!
//! | state | at boot | here |
//! |---|---|---|
//! | CPUs that a wakeup scans (`nr_idle_scan`) | 0; 7.3: all | all CPUs of the domain, as a pass over an idle one sets it |
//! | `has_idle_cores`, `idle_core` | unknown | known |
//! | `balance_interval` of a domain | its CPUs, ms | twice as much: passes that move nothing double it |
//! | `last_balance`, `next_balance` | now | long ago: due at the first tick |
//! | `wake_stamp` (SIS_PROP) | now | long ago |
//! | frequency under a governor that follows the load | the highest | the lowest |
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `update_idle_cpu_scan`, `sched_balance_rq` (`out_balanced`), kernel/sched/core.c `sched_init`.
//! Differences: costs and success rates of newidle passes (`max_newidle_lb_cost`, `newidle_call`) and `avg_scan_cost` are those of
//! boot, since they depend on what ran before.

use crate::{Context, Kernel, Scheduler};
use schedtwin_types::CpuId;

/// Seconds since boot, so that what has not happened since then is long ago.
const UPTIME: u64 = 300;

impl Kernel {
    /// Brings a machine that has just booted into the state in which the run begins. Comes before the first entry.
    pub fn begin(&mut self) {
        if !self.cx.config.start.is_settled() {
            return;
        }
        let jiffies = UPTIME * self.cx.hz();
        self.cx.initial_jiffies += jiffies;
        self.time.keep_timers_from(jiffies);
        self.sched.settle(&self.cx);
        self.cpufreq.settle(&mut self.sched, &mut self.cx);
    }
}

impl Scheduler {
    fn settle(&mut self, cx: &Context) {
        for index in 0..self.rq.len() {
            let cpu = CpuId(index as u16);
            for sd in self.topology.domains_of(cpu).collect::<Vec<_>>() {
                self.limit_idle_scan(sd, cpu, 0, cx);
                let domain = &mut self.topology[sd];
                domain.balance_interval = domain.max_interval;
            }
            if self.has_smt() {
                self.learn_idle_core(cpu, cx);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StartState};
    use crate::device_tree::DeviceTree;
    use crate::time::timer::{TimerFlags, TimerFunction};

    fn booted(start: StartState) -> Kernel {
        let opps: &[(u32, u64)] = &[(500_000, 1), (1_000_000, 2)];
        let mut machine = DeviceTree::of_domains(&[(8, 1024, opps), (8, 1024, opps)]);
        for (index, cpu) in machine.cpus.iter_mut().enumerate() {
            (cpu.core, cpu.llc) = (Some(index as u16 / 2), index as u16 / 8);
        }
        Kernel::boot(machine, Config { start, ..Config::linux_6_12() })
    }

    fn began(start: StartState) -> Kernel {
        let mut kernel = booted(start);
        kernel.begin();
        kernel
    }

    #[test]
    fn wakeups_scan_from_the_first() {
        for (start, scans, known) in
            [(StartState::Booted, 0, false), (StartState::Settled, 8, true)]
        {
            let kernel = began(start);
            for cpu in [0, 15] {
                let shared = kernel.sched.topology.sd_llc_shared[cpu].unwrap();
                let told = &kernel.sched.topology.shared[shared];
                assert_eq!((told.nr_idle_scan, told.has_idle_cores), (scans, known), "{start:?}");
            }
        }
    }

    #[test]
    fn every_balance_is_due() {
        for (start, due) in [(StartState::Booted, false), (StartState::Settled, true)] {
            let kernel = began(start);
            let jiffies = kernel.cx.jiffies();
            for domain in &kernel.sched.topology.domains {
                let interval = domain.balance_interval * u64::from(domain.busy_factor);
                assert_eq!(jiffies >= domain.last_balance + interval, due, "{start:?}");
            }
        }
    }

    /// Timers that were armed at boot are as far away as before.
    #[test]
    fn timers_stay_where_they_are() {
        let next = |start| {
            let mut kernel = booted(start);
            kernel.init_timers();
            let flags = TimerFlags { deferrable: false, pinned: true };
            let function = TimerFunction::MixInterruptRandomness(CpuId(0));
            let timer = kernel.time.timer_setup(function, flags);
            kernel.add_timer_on(timer, kernel.cx.jiffies() + 40, CpuId(0));
            kernel.begin();
            let basej = kernel.cx.jiffies();
            kernel.time.next_timer_event(CpuId(0), basej, false) - basej
        };
        assert_eq!(next(StartState::Settled), next(StartState::Booted));
        assert!((40..48).contains(&next(StartState::Booted)));
    }

    #[test]
    fn clocks_are_low_where_the_governor_follows_the_load() {
        for (start, scale) in [(StartState::Booted, 1024), (StartState::Settled, 512)] {
            let kernel = began(start);
            assert_eq!([0, 15].map(|cpu| kernel.sched.rq[CpuId(cpu)].freq_scale), [scale; 2]);
        }
    }
}
