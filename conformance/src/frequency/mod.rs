// SPDX-License-Identifier: GPL-2.0-or-later
//! The world of schedutil in all its forms: one frequency domain, what the generator knows of it, and the
//! steps that the forms share.

use crate::l0::{Out, Record};
use schedtwin_kernel::Kernel;
use schedtwin_kernel::cpufreq::freq_table::Limits;
use schedtwin_kernel::cpufreq::schedutil::SugovPolicy;
use schedtwin_kernel::cpufreq::schedutil::conformance::SugovSteps;
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, PolicyId};

/// CPUs of the world, one of them outside of the domain.
pub const CPUS: u64 = 5;
/// Their names in reports.
pub const CPU_NAMES: [&str; CPUS as usize] = ["cpu0", "cpu1", "cpu2", "cpu3", "cpu4"];
const DOMAIN: PolicyId = PolicyId(0);

/// A machine with a domain of `cpus` CPUs and another one.
pub fn machine(cpus: u64) -> DeviceTree {
    let opps = &[(1_000_000, 1000)];
    let others = (CPUS - cpus) as u16;
    DeviceTree::of_domains(&[(cpus as u16, 1024, opps), (others, 1024, opps)])
}

/// One frequency domain.
pub struct Domain {
    /// The kernel.
    pub kernel: Kernel,
    /// Number of the domain's CPUs.
    pub cpus: u64,
    /// Generator only: how many operations a sequence has.
    pub length: usize,
    /// Generator only: the table and capacities to set up.
    pub planned: Vec<Record>,
    /// Generator only: the clock.
    pub now: u64,
    /// Generator only: the rate limit.
    pub delay_us: u64,
    /// Generator only: the length of a tick.
    pub tick: u64,
    /// Generator only: whether the driver switches at once.
    pub fast: bool,
}

impl Domain {
    /// A domain of one CPU, before the sequence says what it is.
    pub fn new(kernel: Kernel) -> Domain {
        Domain {
            kernel,
            cpus: 1,
            length: 0,
            planned: Vec::new(),
            now: 0,
            delay_us: 0,
            tick: 0,
            fast: true,
        }
    }

    /// Boots a domain of `cpus` CPUs anew, without a table, and with this rate limit.
    pub fn configure(&mut self, cpus: u64, kernel: Kernel, rate_limit_us: u64) {
        (self.cpus, self.kernel) = (cpus, kernel);
        let policy = &mut self.kernel.inside_mut().policies[DOMAIN];
        policy.table.clear();
        policy.inefficient.clear();
        (policy.cur, policy.requested) = (0, 0);
        policy.sugov = SugovPolicy::default();
        policy.sugov.freq_update_delay_ns = rate_limit_us as i64 * 1000;
    }

    /// Adds the next higher operating point, at which the clock then is.
    pub fn add_point(&mut self, khz: u32, inefficient: bool) {
        let policy = &mut self.kernel.inside_mut().policies[DOMAIN];
        policy.table.push(khz);
        policy.inefficient.push(inefficient);
        (policy.cur, policy.requested) = (khz, khz);
        policy.limits = Limits::whole(&policy.table);
    }

    /// `sugov_start()`.
    pub fn start(&mut self) {
        let sugov = &mut self.kernel.inside_mut().policies[DOMAIN].sugov;
        *sugov = SugovPolicy::new(sugov.freq_update_delay_ns as u64);
    }

    /// `sugov_limits()`, as far as it marks the domain.
    pub fn limits(&mut self) {
        self.kernel.inside_mut().policies[DOMAIN].sugov.limits_changed = true;
    }

    /// Reports the clock and what the slow path does.
    pub fn report_path(&mut self, out: &mut Out) {
        let policy = &self.kernel.inside().policies[DOMAIN];
        out.word("policy", "cur", policy.cur as u64);
        out.word("policy", "requested", policy.requested as u64);
        out.word("policy", "work_in_progress", policy.sugov.work_in_progress as u64);
        let slow = SugovSteps(&mut self.kernel).slow_path();
        out.word("policy", "irq_work", slow.raised);
        out.word("policy", "queued", slow.queued as u64);
        out.word("policy", "calling", slow.calling as u64);
    }

    /// Executes a step of the slow path: 0 the interrupt on `cpu`, 1 the work, 2 the driver's return.
    pub fn slow_step(&mut self, step: usize, cpu: CpuId) {
        let mut steps = SugovSteps(&mut self.kernel);
        match step {
            0 => steps.irq_work(cpu),
            1 => steps.work(),
            2 => steps.driver_returns(),
            _ => panic!("the slow path has no step {step}"),
        }
    }

    /// Draws a step of the slow path, mostly what the work waits for; `first` is the operation of step 0.
    pub fn next_slow_step(&mut self, first: usize, rng: &mut Rng) -> Record {
        let slow = SugovSteps(&mut self.kernel).slow_path();
        let step = match slow {
            _ if rng.one_in(8) => rng.below(3) as usize,
            _ if slow.raised != 0 && !rng.one_in(4) => 0,
            _ if slow.calling != 0 => 2,
            _ => 1,
        };
        let raised_on = slow.raised.trailing_zeros() as u64;
        match step {
            0 if raised_on >= CPUS || rng.one_in(16) => Record::new(first, &[rng.below(CPUS)]),
            0 => Record::new(first, &[raised_on]),
            _ => Record::new(first + step, &[]),
        }
    }

    /// Plans the capacities of the domain's CPUs, operations `op`.
    pub fn plan_capacities(&mut self, op: usize, rng: &mut Rng) {
        let equal = !rng.one_in(4);
        let common = if rng.one_in(3) { 1024 } else { 1 + rng.below(1024) };
        for cpu in 0..self.cpus {
            let capacity = if equal { common } else { 1 + rng.below(1024) };
            self.planned.push(Record::new(op, &[cpu, capacity]));
        }
    }

    /// Lets time pass, and returns the time of the next hook: a run queue's clock may be late.
    pub fn next_hook_at(&mut self, rng: &mut Rng) -> u64 {
        self.now += match rng.below(8) {
            0 => 0,
            1 => self.delay_us * 1000,
            2 => (self.delay_us * 1000).saturating_sub(1),
            3 => self.tick + rng.below(3) - 1,
            4 => rng.magnitude(25),
            _ => rng.below(self.delay_us * 2_000 + 100_000),
        };
        // Run queues' clocks are not in step.
        let late = if rng.one_in(6) { rng.below(self.now.min(20_000) + 1) } else { 0 };
        self.now - late
    }
}
