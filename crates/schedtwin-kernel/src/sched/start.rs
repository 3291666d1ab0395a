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
//! | frequency under a governor that follows the load | the highest | the lowest; under schedutil the highest if all tasks are in sched_ext |
//! | what an idle governor remembers | nothing: the first sleeps are predicted short | long sleeps, each until its timer |
//! | the clock, where no timer is pending | 0: `KTIME_MAX` away, and menu's product wraps to 0 | the uptime |
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `update_idle_cpu_scan`, `sched_balance_rq` (`out_balanced`), kernel/sched/core.c `sched_init`.
//! Differences: costs and success rates of newidle passes (`max_newidle_lb_cost`, `newidle_call`) and `avg_scan_cost` are those of
//! boot, since they depend on what ran before.

use crate::cpuidle::states::{Reflection, SelectInput, SleepLength};
use crate::policy::CustomMachineIdle;
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::CpuId;

/// Seconds since boot, so that what has not happened since then is long ago.
const UPTIME: u64 = 300;
/// Sleeps of each CPU before the run, so many that teo and menu, which forget an eighth at each, have forgotten the first ones.
const SLEEPS: u64 = 32;

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
        self.cpuidle.settle(self.own.machine_idle_mut(), &self.cx);
    }
}

impl Cpuidle {
    /// Lets every CPU sleep until timers that are 1 to 8 s away, as its governor chooses: no two lengths that follow each other
    /// are alike, and nothing else comes.
    fn settle(&mut self, of_machine: &mut Option<Box<CustomMachineIdle>>, cx: &Context) {
        let tick = cx.tick_nsec;
        for index in 0..cx.device_tree().cpus.len() {
            let cpu = CpuId(index as u16);
            if !self.has_choice(cpu, cx) {
                continue;
            }
            let idle = self.cpu_mut(cpu);
            let mut now = 0;
            for sleep in 0..SLEEPS {
                let until_timer = (1 + sleep % 8) * 1_000_000_000;
                let input = SelectInput {
                    states: &idle.states,
                    latency_req_ns: idle.latency_req_ns,
                    tick_stopped: false,
                    tick_nsec: tick as i64,
                    now,
                    last_residency_ns: idle.last_residency_ns,
                    nr_iowaiters: 0,
                    cpu_util: 0,
                };
                let mut timers = || SleepLength {
                    sleep_length_ns: until_timer as i64,
                    delta_tick_ns: tick as i64 / 2,
                };
                let choice = idle.governor.select_on(cpu, of_machine, &input, &mut timers);
                let state = usize::from(choice.state).min(idle.states.len() - 1);
                let polling = idle.states[state].polling;
                let slept = if choice.stop_tick { until_timer } else { tick / 2 };
                now += slept;
                idle.last_residency_ns = slept;
                let stay = Reflection {
                    state,
                    got_tick: !choice.stop_tick,
                    poll_time_limit: polling,
                    now,
                    tick_nsec: tick as i64,
                    last_residency_ns: slept,
                };
                idle.governor.reflect_on(cpu, of_machine, &stay);
            }
        }
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
    use crate::device_tree::{DeviceTree, DtIdleState};
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

    /// A CPU without a timer sleeps as deep as it can at once, whatever form its governor has; at boot most of them poll first.
    #[test]
    fn the_first_sleep_is_deep() {
        use crate::config::{IdleGovernor, MenuForm, TeoForm};
        let first = |config: Config| {
            let mut machine = DeviceTree::of_domains(&[(1, 1024, &[(1_000_000, 1)])]);
            let poll = DtIdleState { polling: true, ..DtIdleState::new(0, 0) };
            machine.idle_tables = vec![vec![
                poll,
                DtIdleState::new(2_000, 2_000),
                DtIdleState::new(290_000, 600_000),
            ]];
            let mut kernel = Kernel::boot(machine, config);
            kernel.begin();
            kernel.do_idle();
            let idle = kernel.cpuidle.cpu(CpuId(0));
            (idle.entered.unwrap(), idle.tick.tick_stopped)
        };
        let governors =
            [TeoForm::V5_14, TeoForm::V6_6, TeoForm::V6_12, TeoForm::V6_18, TeoForm::V7_3]
                .map(|teo| Config { cpuidle: IdleGovernor::Teo, teo, ..Config::linux_6_12() })
                .into_iter()
                .chain(
                    [
                        MenuForm::V4_20,
                        MenuForm::V5_18,
                        MenuForm::V6_12,
                        MenuForm::V6_18,
                        MenuForm::V7_3,
                    ]
                    .map(|menu| Config {
                        cpuidle: IdleGovernor::Menu,
                        menu,
                        ..Config::linux_6_12()
                    }),
                )
                .chain([Config { cpuidle: IdleGovernor::Ladder, ..Config::linux_6_12() }]);
        let mut shallow = 0;
        for config in governors {
            let told = (config.cpuidle, config.teo, config.menu);
            let booted = Config { start: StartState::Booted, ..config.clone() };
            shallow += usize::from(first(booted) != (2, true));
            let settled = Config { start: StartState::Settled, ..config };
            assert_eq!(first(settled), (2, true), "{told:?}");
        }
        assert!(shallow > 3, "{shallow}");
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
