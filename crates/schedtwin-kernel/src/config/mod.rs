// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's configuration: variation points and tunables.
//!
//! A **variation point** is a choice whose arms name the releases that have them. Exactly one file of the kernel
//! names its arms, and no code compares release numbers (the CLI's `architecture` test sees to both): a kernel is the
//! values of [`Config`]. A **tunable** is a number or a switch that a user of the release can change too: a sysctl,
//! a file in debugfs, a build option.
//!
//! Each is declared once, in the file of its subsystem (`declare.rs`).
//!
//! | file | declares |
//! |---|---|
//! | `general.rs` | ticks, preemption, topology, the build |
//! | `cpufreq.rs`, `cpuidle.rs` | governors |
//! | `fair.rs`, `features.rs` | the fair class, its signals, `sched/features` |
//! | `placement.rs`, `balance.rs` | wakeups, load balancing |
//! | `rt.rs` | RT, DEADLINE |
//! | `uclamp.rs` | utilisation clamps |
//! | `sleep.rs` | timers, pipes, block devices |
//! | `ext.rs` | sched_ext |
//! | `tables.rs` | what files have in tables: schedutil's tunables, CFS's, latency limits |
//! | `bugs.rs` | wrong rules of releases that were corrected since, off in files |
//! | `retired.rs` | what older files had, and what it means now |
//! | `history.rs` | the releases that have a form, and the form that a release has |
//! | `reference.rs` | the configuration of tests |

#[macro_use]
mod declare;
#[macro_use]
mod general;
#[macro_use]
mod cpufreq;
#[macro_use]
mod cpuidle;
#[macro_use]
mod fair;
#[macro_use]
mod placement;
#[macro_use]
mod balance;
#[macro_use]
mod rt;
#[macro_use]
mod uclamp;
#[macro_use]
mod ext;
#[macro_use]
mod sleep;
#[macro_use]
mod bugs;
mod features;
mod history;
mod reference;
mod retired;
mod tables;

pub use bugs::Bugs;
pub use declare::{Arm, Kind, Setting, Value, With};
pub use features::Features;
pub use history::{Form, Release};
pub use retired::{Retired, retired};
use schedtwin_types::Ns;
use std::collections::BTreeMap;
use std::sync::LazyLock;
pub use tables::{CfsTunables, LlcBalancing, PmQos, Schedutil};

use declare::{integer_from, limit_from, limit_to, names_from, names_to, switch_from};

/// The end of the chain: takes the declarations of all files.
macro_rules! config {
    ([] $($declarations:tt)*) => {
        declare! { []
            /// All variation points and tunables of a kernel.
            #[derive(Clone, Debug, PartialEq, Eq)]
            struct Config in "" { $($declarations)* }
        }
    };
}

// Each file passes its declarations on to the next one.
general! { [cpufreq cpuidle fair placement balance rt uclamp sleep ext bugs config] }

impl Config {
    /// Every setting, in the order of their declaration.
    ///
    /// ```
    /// use schedtwin_kernel::config::{Config, Kind};
    ///
    /// let boost = Config::setting("runnable_boost").unwrap();
    /// let Kind::Choice { arms, .. } = &boost.kind else { panic!("a variation point") };
    /// assert_eq!(arms.len(), 4);
    /// ```
    pub fn settings() -> &'static [Setting] {
        static ALL: LazyLock<Vec<Setting>> = LazyLock::new(|| {
            let mut all = Vec::new();
            Config::describe(&mut all);
            all
        });
        &ALL
    }

    /// The setting of a path; `None`: no setting is declared there.
    pub fn setting(path: &str) -> Option<&'static Setting> {
        static BY_PATH: LazyLock<BTreeMap<&str, &Setting>> =
            LazyLock::new(|| Config::settings().iter().map(|s| (s.path, s)).collect());
        BY_PATH.get(path).copied()
    }

    /// The configuration of which `value` gives the value of each path, of the right kind and in its range; not
    /// asked for settings that do not exist with the arms that it gives.
    pub fn new(mut value: impl FnMut(&'static str) -> Value) -> Config {
        let mut given: BTreeMap<&'static str, Value> = BTreeMap::new();
        // Points first: whether another setting exists depends on them.
        for setting in Config::settings().iter().filter(|setting| setting.only.is_none()) {
            given.insert(setting.path, value(setting.path));
        }
        for setting in Config::settings() {
            if setting.only.is_none() {
                continue;
            }
            let exists = setting.exists_with(&given);
            let otherwise = || setting.otherwise.clone().expect("declared with `only`");
            given.insert(setting.path, if exists { value(setting.path) } else { otherwise() });
        }
        Config::from_values(&mut |path| given.get(path).expect("every path is a setting's").clone())
    }

    /// The values of all settings that exist in this kernel, as its file has them.
    ///
    /// ```
    /// use schedtwin_kernel::config::{Config, Value};
    ///
    /// let config = Config::linux_6_12();
    /// let of = |path| config.values().into_iter().find(|(s, _)| s.path == path).map(|(_, v)| v);
    /// assert_eq!(of("rt_period_us"), Some(Value::Integer(1_000_000)));
    /// assert_eq!(of("cfs.latency_ns"), None);
    /// ```
    pub fn values(&self) -> Vec<(&'static Setting, Value)> {
        let mut all: BTreeMap<&'static str, Value> = BTreeMap::new();
        self.put_values(&mut |path, value| drop(all.insert(path, value)));
        let settings = Config::settings().iter();
        let value = |path: &str| all.get(path).expect("declared").clone();
        settings.filter(|s| s.exists_with(&all)).map(|s| (s, value(s.path))).collect()
    }

    /// The same without the wrong rules that the kernel does not have: what is worth telling of it.
    ///
    /// ```
    /// use schedtwin_kernel::config::{Bugs, Config};
    ///
    /// let correct = Config::linux_6_12();
    /// let bugs = Bugs { slices_expire: true, ..Bugs::default() };
    /// let wrong = Config { bugs, ..correct.clone() };
    /// assert_eq!(wrong.told_values().len(), correct.told_values().len() + 1);
    /// ```
    pub fn told_values(&self) -> Vec<(&'static Setting, Value)> {
        let told = |(setting, value): &(&Setting, Value)| {
            !setting.is_bug() || setting.default_if_absent.as_ref() != Some(value)
        };
        self.values().into_iter().filter(told).collect()
    }

    /// Length of a tick, nanoseconds (`TICK_NSEC`).
    pub fn tick_nsec(&self) -> Ns {
        (1_000_000_000 + self.hz as u64 / 2) / self.hz as u64
    }
}

impl Preempt {
    /// Whether kernel mode is preempted (`CONFIG_PREEMPTION`, and not switched off at boot).
    pub fn preempts_kernel_mode(self) -> bool {
        matches!(self, Preempt::Full | Preempt::Lazy)
    }

    /// Whether fair tasks ask each other to give way at the next return to user mode or tick only
    /// (`CONFIG_PREEMPT_LAZY`).
    #[inline]
    pub fn is_lazy(self) -> bool {
        self == Preempt::Lazy
    }
}

impl StartState {
    /// Whether the machine has been up for long when the run begins.
    pub fn is_settled(self) -> bool {
        self == StartState::Settled
    }
}

impl Uclamp {
    /// Whether there are clamps in the build (`CONFIG_UCLAMP_TASK`).
    pub fn is_compiled_in(self) -> bool {
        self != Uclamp::CompiledOut
    }
}

impl Config {
    /// Whether a runnable real-time task makes schedutil ask for the highest frequency, as Linux does unless user space lowers
    /// `sched_util_clamp_min_rt_default`.
    pub fn rt_asks_for_the_highest(&self) -> bool {
        self.cpufreq == FrequencyGovernor::Schedutil && self.uclamp_min_rt_default == 1024
    }
}

impl CpufreqDriver {
    /// Whether it decides itself (`setpolicy`), so that no governor of Linux runs.
    pub fn decides(self) -> bool {
        matches!(self, CpufreqDriver::IntelPstate | CpufreqDriver::AmdPstateEpp)
    }

    /// Whether it needs the counters of x86 processors, and a clock for each CPU.
    pub fn needs_own_clocks(self) -> bool {
        self != CpufreqDriver::Machine
    }
}

impl Config {
    /// Whether schedutil runs, without which there is no EAS.
    pub fn runs_schedutil(&self) -> bool {
        self.cpufreq == FrequencyGovernor::Schedutil && !self.scaling_driver.decides()
    }

    /// Whether schedutil is told of every change and asks the machine's driver for frequencies, as it does since 4.14: then
    /// another governor can stand in its place.
    pub fn schedutil_asks_as_today(&self) -> bool {
        self.runs_schedutil()
            && !self.scaling_driver.needs_own_clocks()
            && self.cpufreq_remote == CpufreqRemote::Allowed
    }

    /// Whether the driver decides itself by samples, so that the scheduler's hook is its own.
    pub fn driver_samples(&self) -> bool {
        self.scaling_driver.decides() && !self.pins_pstate() && !self.processor_decides()
    }

    /// Whether the processor chooses its frequency itself, by the hints of its driver.
    pub fn processor_decides(&self) -> bool {
        match self.scaling_driver {
            CpufreqDriver::IntelPstate => self.hwp,
            CpufreqDriver::AmdPstateEpp => true,
            _ => false,
        }
    }

    /// Whether a driver that decides keeps the highest frequency (`CPUFREQ_POLICY_PERFORMANCE`). It takes every other governor
    /// for powersave.
    pub fn pins_pstate(&self) -> bool {
        self.cpufreq == FrequencyGovernor::Performance
    }

    /// Whether a governor runs that looks at the load every so often (`cpufreq_governor.c`).
    pub fn runs_sampling(&self) -> bool {
        let samples = self.cpufreq == FrequencyGovernor::Ondemand || self.samples_in_steps();
        samples && !self.scaling_driver.decides()
    }

    /// Whether that governor goes up and down by steps.
    pub fn samples_in_steps(&self) -> bool {
        self.cpufreq == FrequencyGovernor::Conservative
    }
}

impl PmQos {
    /// The latency limit for governors (`cpuidle_governor_latency_req`): the stricter of the two, nanoseconds.
    ///
    /// ```
    /// use schedtwin_kernel::config::PmQos;
    ///
    /// let none = PmQos::default();
    /// assert_eq!(none.latency_req_ns(), 2_000_000_000_000);
    /// let both = PmQos { cpu_latency_us: Some(50), resume_latency_us: Some(20) };
    /// assert_eq!(both.latency_req_ns(), 20_000);
    /// ```
    pub fn latency_req_ns(&self) -> i64 {
        /// `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`: 2000 s. That of a device is larger.
        const DEFAULT_US: u32 = 2_000_000_000;
        let all = self.cpu_latency_us.unwrap_or(DEFAULT_US);
        let own = self.resume_latency_us.unwrap_or(i32::MAX as u32);
        i64::from(all.min(own)) * 1000
    }
}
