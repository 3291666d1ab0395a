//! ondemand and conservative: governors that look at the load every so often (demand-based switching).
//!
//! **Decide** the frequency of a domain from how much of the last sampling period its busiest CPU did not idle.
//!
//! **Idea.** Nothing is known of tasks; what counts is the time that a CPU's idle task did not run. ondemand goes to the highest
//! frequency at once when the load passes a threshold, and else takes one in proportion to the load. conservative climbs and
//! descends by steps of a twentieth of the highest frequency.
//!
//! **Terms.** *Load*: percent of the time since the last sample in which a CPU was not idle; a CPU that idled for more than
//! two periods counts once as it did before that, so that a task that wakes up meets the clock that it left. *Idle periods*: how many
//! periods the CPU that idled least has slept through: conservative makes up for that many steps down.
//!
//! **Algorithm.**
//! 1. The scheduler's hook: the first call after the sampling delay sends the executing CPU an irq_work, which queues the work for a
//!    kworker of that CPU ([`crate::cpufreq::sugov_kthread`]). A domain whose CPUs all sleep calls nobody and keeps its frequency.
//! 2. The kworker takes the load of each CPU, the highest one counts, and decides. The driver is asked if that is another frequency.
//! 3. The next sample is due after the sampling rate, times `sampling_down_factor` while ondemand is at the top.
//!
//! ```text
//!  hook ── too early ── due ── irq_work ── kworker: load ── driver
//!          |<- sampling_rate ->|                          next sample is due from the hook's time on
//! ```
//!
//! **Example.** ondemand, 1 to 2 GHz, load 40 %: 1 000 000 + 40 · 1 000 000 / 100 = 1.4 GHz, the closest one of the table. Load 96 %: 2 GHz.
//!
//! Kernel: 6.12.117 drivers/cpufreq/cpufreq_governor.c `dbs_update_util_handler`, `dbs_update`; cpufreq_ondemand.c `od_update`;
//! cpufreq_conservative.c `cs_dbs_update`.
//! Differences: `powersave_bias` and `ignore_nice_load` are 0; nothing waits for I/O, so `io_is_busy` changes nothing. A domain's
//! kworker is its own. Earlier releases of conservative make up for idle periods at any load.

use crate::Kernel;
use crate::config::Config;
use crate::cpufreq::policy::CpufreqPolicy;
use schedtwin_types::{CpuId, Khz, Ns, PolicyId};

/// ondemand's threshold where idle time is known in microseconds (`MICRO_FREQUENCY_UP_THRESHOLD`).
const ONDEMAND_UP_THRESHOLD: u32 = 95;
/// conservative's (`DEF_FREQUENCY_UP_THRESHOLD`).
const CONSERVATIVE_UP_THRESHOLD: u32 = 80;
/// `DEF_FREQUENCY_STEP`, also the step in kHz of a domain whose highest frequency is less than 100 kHz.
const DEF_FREQUENCY_STEP: u32 = 5;
const NSEC_PER_USEC: u64 = 1000;

/// `struct policy_dbs_info`, with the parts that ondemand and conservative add.
#[derive(Clone, Debug)]
pub struct PolicyDbs {
    /// conservative rather than ondemand.
    steps: bool,
    sampling_rate_us: u32,
    up_threshold: u32,
    down_threshold: u32,
    freq_step: u32,
    sampling_down_factor: u32,
    last_sample_time: Ns,
    sample_delay_ns: u64,
    rate_mult: u32,
    idle_periods: u32,
    max_sample_load: u32,
    requested_freq: Khz,
    down_skip: u32,
    cpus: Vec<CpuDbs>,
}

/// `struct cpu_dbs_info`; microseconds.
#[derive(Clone, Copy, Debug)]
struct CpuDbs {
    cpu: CpuId,
    prev_cpu_idle: u64,
    prev_update_time: u64,
    prev_load: u32,
}

/// Which frequency of a table stands for one between them (`CPUFREQ_RELATION_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// The lowest that is not below it.
    Low,
    /// The highest that is not above it.
    High,
    /// The closest.
    Closest,
}

impl PolicyDbs {
    /// As the governor starts. `transition_delay_us`: what follows from the driver's latency.
    pub(crate) fn new(
        config: &Config,
        policy: &CpufreqPolicy,
        transition_delay_us: u64,
    ) -> PolicyDbs {
        let steps = config.cpufreq.samples_in_steps();
        // CPUFREQ_DBS_MIN_SAMPLING_INTERVAL: two ticks.
        let least = (2 * config.tick_nsec() / NSEC_PER_USEC).max(transition_delay_us);
        let sampling_rate_us = match config.dbs_sampling_rate_us {
            0 => u32::try_from(least).unwrap_or(u32::MAX),
            rate => rate,
        };
        let own = if steps { CONSERVATIVE_UP_THRESHOLD } else { ONDEMAND_UP_THRESHOLD };
        let up_threshold = if config.dbs_up_threshold == 0 { own } else { config.dbs_up_threshold };
        let cpu = |cpu| CpuDbs { cpu, prev_cpu_idle: 0, prev_update_time: 0, prev_load: 0 };
        PolicyDbs {
            steps,
            sampling_rate_us,
            up_threshold,
            down_threshold: config.dbs_down_threshold,
            freq_step: config.dbs_freq_step,
            sampling_down_factor: config.dbs_sampling_down_factor,
            last_sample_time: 0,
            sample_delay_ns: u64::from(sampling_rate_us) * NSEC_PER_USEC,
            rate_mult: 1,
            idle_periods: u32::MAX,
            max_sample_load: 0,
            requested_freq: policy.cur,
            down_skip: 0,
            cpus: policy.cpus.iter().map(cpu).collect(),
        }
    }

    /// `dbs_update()`: the load of the busiest CPU. `idle_us` tells how long a CPU has idled since boot.
    fn load(&mut self, now_us: u64, idle_us: impl Fn(CpuId) -> u64) -> u32 {
        let sampling_rate = self.sampling_rate_us.saturating_mul(self.rate_mult).max(1);
        let (mut max_load, mut max_sample_load, mut idle_periods) = (0, 0, u32::MAX);
        for cpu in &mut self.cpus {
            let idle_now = idle_us(cpu.cpu);
            let elapsed = now_us.saturating_sub(cpu.prev_update_time) as u32;
            let idle = idle_now.saturating_sub(cpu.prev_cpu_idle) as u32;
            (cpu.prev_update_time, cpu.prev_cpu_idle) = (now_us, idle_now);
            let sample_load = match elapsed {
                0 => cpu.prev_load,
                _ if elapsed > idle => {
                    (100 * u64::from(elapsed - idle) / u64::from(elapsed)) as u32
                }
                _ => 0,
            };
            let slept_long = idle > sampling_rate.saturating_mul(2);
            let load = if elapsed == 0 {
                cpu.prev_load
            } else if slept_long && cpu.prev_load != 0 {
                std::mem::take(&mut cpu.prev_load)
            } else {
                cpu.prev_load = sample_load;
                sample_load
            };
            if slept_long {
                idle_periods = idle_periods.min(idle / sampling_rate);
            }
            max_load = max_load.max(load);
            max_sample_load = max_sample_load.max(sample_load);
        }
        (self.idle_periods, self.max_sample_load) = (idle_periods, max_sample_load);
        max_load
    }

    /// `od_update()`: what it wants, and which frequency of the table that stands for.
    fn ondemand(&mut self, load: u32, bounds: Bounds) -> Option<(Khz, Relation)> {
        if load > self.up_threshold {
            if bounds.cur < bounds.max {
                self.rate_mult = self.sampling_down_factor;
            }
            return (bounds.cur != bounds.max).then_some((bounds.max, Relation::High));
        }
        self.rate_mult = 1;
        let span = u64::from(bounds.highest - bounds.min);
        let next = bounds.min + (u64::from(load) * span / 100) as Khz;
        Some((next, Relation::Closest))
    }

    /// `cs_dbs_update()`.
    fn conservative(&mut self, load: u32, bounds: Bounds) -> Option<(Khz, Relation)> {
        if self.freq_step == 0 {
            return None;
        }
        if self.requested_freq > bounds.max || self.requested_freq < bounds.min {
            self.requested_freq = bounds.cur;
        }
        let mut requested = self.requested_freq;
        let step = match (u64::from(self.freq_step) * u64::from(bounds.max) / 100) as Khz {
            0 => DEF_FREQUENCY_STEP,
            step => step,
        };
        let down = |from: Khz, by: Khz| {
            if from > bounds.min.saturating_add(by) { from - by } else { bounds.min }
        };
        if self.max_sample_load < self.down_threshold && self.idle_periods < u32::MAX {
            requested = down(requested, self.idle_periods.saturating_mul(step));
            self.idle_periods = u32::MAX;
        }
        if load > self.up_threshold {
            self.down_skip = 0;
            requested = requested.saturating_add(step).min(bounds.max);
            self.requested_freq = requested;
            return Some((requested, Relation::High));
        }
        self.down_skip += 1;
        if self.down_skip < self.sampling_down_factor {
            return None;
        }
        self.down_skip = 0;
        if load >= self.down_threshold {
            return None;
        }
        requested = down(requested, step);
        self.requested_freq = requested;
        Some((requested, Relation::Low))
    }
}

/// What a policy allows.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// The lowest frequency.
    min: Khz,
    /// At most this one may be asked for.
    max: Khz,
    /// The highest of the table.
    highest: Khz,
    /// What the kernel believes in.
    cur: Khz,
}

impl CpufreqPolicy {
    /// `cpufreq_frequency_table_target()` among efficient frequencies within the limits.
    fn resolve_relation(&self, target: Khz, relation: Relation) -> Khz {
        let target = target.clamp(self.table[0], self.limit_max);
        let low = self.resolve(target);
        if relation == Relation::Low || low == target {
            return low;
        }
        let below = (self.table.iter().zip(&self.inefficient))
            .filter(|(khz, inefficient)| **khz < target && !**inefficient)
            .map(|(khz, _)| *khz)
            .next_back();
        let Some(below) = below else { return low };
        if relation == Relation::High || low < target || target - below <= low - target {
            below
        } else {
            low
        }
    }
}

impl Kernel {
    /// `dbs_update_util_handler()`.
    #[cold]
    pub(crate) fn dbs_update_util(&mut self, cpu: CpuId) {
        let index = self.policy_of(cpu);
        let time = self.rq[cpu].clock;
        if !self.may_update(index) {
            return;
        }
        let policy = &mut self.policies[index];
        let Some(dbs) = policy.dbs.as_mut().filter(|_| !policy.sugov.work_in_progress) else {
            return;
        };
        if (time as i64 - dbs.last_sample_time as i64) < dbs.sample_delay_ns as i64 {
            return;
        }
        dbs.last_sample_time = time;
        policy.sugov.work_in_progress = true;
        self.irq_work_queue(index);
    }

    /// `dbs_work_handler()`: takes the sample and decides; `None`: the frequency stays.
    pub(super) fn dbs_work(&mut self, index: PolicyId) -> Option<Khz> {
        let mut dbs = self.policies[index].dbs.take()?;
        let now_us = self.now / NSEC_PER_USEC;
        let load = dbs.load(now_us, |cpu| self.idle_time(cpu) / NSEC_PER_USEC);
        let policy = &self.policies[index];
        let bounds = Bounds {
            min: policy.table[0],
            max: policy.limit_max,
            highest: policy.max(),
            cur: policy.cur,
        };
        let wanted = match dbs.steps {
            true => dbs.conservative(load, bounds),
            false => dbs.ondemand(load, bounds),
        };
        dbs.sample_delay_ns =
            u64::from(dbs.sampling_rate_us) * u64::from(dbs.rate_mult) * NSEC_PER_USEC;
        let khz = wanted.map(|(khz, relation)| policy.resolve_relation(khz, relation));
        self.policies[index].dbs = Some(dbs);
        khz
    }

    /// `cpufreq_dbs_governor_limits()`: the next call samples, and the limit counts at once.
    pub(super) fn dbs_limits(&mut self, index: PolicyId) {
        if let Some(dbs) = &mut self.policies[index].dbs {
            dbs.sample_delay_ns = 0;
        }
        self.cpufreq_policy_apply_limits(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FrequencyGovernor;
    use crate::sched::root_domain::tests::device_tree;

    const OPPS: &[(u32, u64)] =
        &[(1_000_000, 100_000), (1_300_000, 200_000), (1_500_000, 300_000), (2_000_000, 900_000)];
    const BOUNDS: Bounds =
        Bounds { min: 1_000_000, max: 2_000_000, highest: 2_000_000, cur: 1_000_000 };

    fn boot(cpufreq: FrequencyGovernor) -> Kernel {
        Kernel::boot(device_tree(&[(1, 1024, OPPS)]), Config { cpufreq, ..Config::linux_6_12() })
    }

    fn dbs(cpufreq: FrequencyGovernor) -> Box<PolicyDbs> {
        boot(cpufreq).policies[PolicyId(0)].dbs.take().expect("it samples")
    }

    /// The load of a period; a long sleep counts once as what was before, and then as itself.
    #[test]
    fn load_of_a_period() {
        let mut dbs = dbs(FrequencyGovernor::Ondemand);
        let rate = u64::from(dbs.sampling_rate_us);
        assert_eq!(rate, 8_000, "two ticks");
        assert_eq!(dbs.load(rate, |_| rate / 4), 75);
        assert_eq!(dbs.load(5 * rate, |_| 4 * rate), 75, "as it was left");
        assert_eq!(dbs.idle_periods, 3);
        assert_eq!(dbs.load(9 * rate, |_| 8 * rate), 0);
        assert_eq!(dbs.load(9 * rate, |_| 8 * rate), 0, "no time has passed");
    }

    #[test]
    fn ondemand_jumps_up_and_comes_down_in_proportion() {
        let mut dbs = dbs(FrequencyGovernor::Ondemand);
        assert_eq!(dbs.ondemand(96, BOUNDS), Some((2_000_000, Relation::High)));
        assert_eq!(dbs.ondemand(95, BOUNDS), Some((1_950_000, Relation::Closest)));
        assert_eq!(dbs.ondemand(0, BOUNDS), Some((1_000_000, Relation::Closest)));
        assert_eq!(dbs.ondemand(99, Bounds { cur: 2_000_000, ..BOUNDS }), None);
    }

    #[test]
    fn conservative_goes_by_steps() {
        let mut dbs = dbs(FrequencyGovernor::Conservative);
        dbs.requested_freq = 1_000_000;
        assert_eq!(dbs.conservative(81, BOUNDS), Some((1_100_000, Relation::High)));
        assert_eq!(dbs.conservative(81, BOUNDS), Some((1_200_000, Relation::High)));
        assert_eq!(dbs.conservative(50, BOUNDS), None);
        assert_eq!(dbs.conservative(19, BOUNDS), Some((1_100_000, Relation::Low)));
        (dbs.idle_periods, dbs.requested_freq) = (3, 2_000_000);
        assert_eq!(dbs.conservative(0, BOUNDS), Some((1_600_000, Relation::Low)), "three more");
    }

    #[test]
    fn relations() {
        let kernel = boot(FrequencyGovernor::Ondemand);
        let policy = &kernel.policies[PolicyId(0)];
        let all = |khz| {
            [Relation::Low, Relation::High, Relation::Closest]
                .map(|relation| policy.resolve_relation(khz, relation) / 1000)
        };
        assert_eq!(all(1_300_000), [1300, 1300, 1300]);
        assert_eq!(all(1_400_000), [1500, 1300, 1300], "of equal ones the lower");
        assert_eq!(all(1_401_000), [1500, 1300, 1500]);
        assert_eq!(all(900_000), [1000, 1000, 1000]);
        assert_eq!(all(3_000_000), [2000, 2000, 2000]);
    }
}
