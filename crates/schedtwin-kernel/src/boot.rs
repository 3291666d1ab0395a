// SPDX-License-Identifier: GPL-2.0-or-later
//! Boot: every subsystem made, then the kernel's own threads, governors and ticks started.

use crate::arena::Arena;
use crate::config::Config;
use crate::cpufreq::Cpufreq;
use crate::cpufreq::forms::SugovForms;
use crate::cpufreq::hook::FrequencyHook;
use crate::cpufreq::policy::CpufreqPolicy;
use crate::cpuidle::governor::Governor;
use crate::cpuidle::states::IdleStateParams;
use crate::cpuidle::{CpuIdle, Cpuidle};
use crate::device_tree::DeviceTree;
use crate::policy::{
    CustomFrequency, CustomIdle, FrequencyDomain, GovernedDomain, IdleCpu, OwnPolicies, Policies,
};
use crate::sched::demand::need::Needs;
use crate::sched::{Scheduler, TaskKind};
use crate::sync::SyncObjects;
use crate::thermal::Thermal;
use crate::time::Time;
use crate::time::hrtimer::TimerKind;
use crate::work::IrqWork;
use crate::{Context, Kernel};
use schedtwin_types::{CpuId, Ns, PolicyId, TaskId, TaskState};

impl Kernel {
    /// Boots: all CPUs idle, ticks on the grid, governors started.
    pub fn boot(device_tree: DeviceTree, config: Config) -> Kernel {
        Kernel::boot_with(device_tree, config, &Policies::default())
    }

    /// Boots with users' policies in the place of what `config` names. A frequency governor takes
    /// schedutil's place, so `config` has to name that.
    pub fn boot_with(device_tree: DeviceTree, config: Config, custom: &Policies) -> Kernel {
        let sugov_forms = SugovForms::new(&config, &device_tree);
        let of_domains = custom.frequency.as_ref().map(|f| (&f.name, FrequencyHook::Custom));
        let of_machine =
            custom.frequency_of_machine.as_ref().map(|f| (&f.name, FrequencyHook::OfMachine));
        let frequency_hook = match (of_domains.or(of_machine), config.runs_schedutil()) {
            (Some((name, hook)), schedutil) => {
                assert!(schedutil, "frequency governor `{name}` takes schedutil's place");
                hook
            }
            (None, true) => FrequencyHook::schedutil(sugov_forms),
            (None, false) if config.runs_sampling() => FrequencyHook::Sampling,
            (None, false) if config.driver_samples() => FrequencyHook::IntelPstate,
            (None, false) => FrequencyHook::None,
        };
        let nr_cpus = device_tree.cpus.len();
        let policies: Arena<PolicyId, CpufreqPolicy> = device_tree
            .policies
            .iter()
            .map(|dt| {
                let first = dt.cpus.lowest().expect("a policy has CPUs");
                CpufreqPolicy::new(dt, device_tree.cpus[first.index()].capacity as u64, &config)
            })
            .enumerate()
            .map(|(index, mut policy)| {
                policy.custom = custom.frequency.as_ref().map(|named| {
                    let policy = (named.make)(&frequency_domain(PolicyId(index as u16), &policy));
                    Box::new(CustomFrequency { name: named.name.clone(), policy })
                });
                policy
            })
            .collect();
        let capacity = |cpu: CpuId| device_tree.cpus[cpu.index()].capacity as u64;
        let governed = policies.ids().map(|index| {
            let policy = &policies[index];
            let first = policy.cpus.lowest().expect("a policy has CPUs");
            GovernedDomain {
                domain: frequency_domain(index, policy),
                fast_switch: policy.fast_switch,
                dvfs_possible_from_any_cpu: policy.dvfs_possible_from_any_cpu,
                capacity: capacity(first),
            }
        });
        let idle_cpus: Vec<IdleCpu> = (0..nr_cpus)
            .map(|c| CpuId(c as u16))
            .map(|cpu| IdleCpu {
                cpu,
                capacity: capacity(cpu),
                states: idle_states(&device_tree, cpu),
            })
            .collect();
        let own = OwnPolicies::new(custom, &idle_cpus, &governed.collect());
        let idle_loop = |cpu: IdleCpu| {
            let governor = match (&custom.idle, own.machine_idle_reads_util()) {
                (None, None) => Governor::new(&config, cpu.capacity, &cpu.states),
                (None, Some(reads_util)) => Governor::OfMachine { reads_util },
                (Some(named), _) => {
                    let policy = (named.make)(&cpu);
                    Governor::Custom(CustomIdle { name: named.name.clone(), policy })
                }
            };
            let IdleCpu { cpu, states, .. } = cpu;
            let mut idle = CpuIdle::new(states, governor, config.pm_qos.latency_req_ns());
            let states = device_tree.idle_states(cpu).iter();
            idle.monitors = states.clone().map(|s| s.monitors).collect();
            idle.timer_stop = states.map(|s| s.timer_stop).collect();
            idle
        };
        let needs = Needs::new(&policies, &device_tree, &config);
        let tick_nsec = config.tick_nsec();
        let mut kernel = Kernel {
            cpuidle: Cpuidle::new(idle_cpus.into_iter().map(idle_loop).collect()),
            sched: Scheduler::new(&device_tree, &config, needs),
            cpufreq: Cpufreq::new(policies, frequency_hook, sugov_forms, nr_cpus),
            time: Time::new(nr_cpus, device_tree.nr_threads_hint + 4),
            sync: SyncObjects::new(nr_cpus),
            block: Default::default(),
            thermal: Thermal::new(),
            work: IrqWork::new(nr_cpus),
            workqueues: Default::default(),
            softirqs: crate::softirq::Softirqs::new(nr_cpus),
            rcu: Default::default(),
            random: None,
            system: Default::default(),
            own,
            cx: Context::new(device_tree, config),
        };
        kernel.boot_tasks();
        kernel.cpufreq.cpufreq_start(&mut kernel.sched, &mut kernel.cx);
        kernel.sched.init_balance(&kernel.cx);
        for c in 0..nr_cpus {
            kernel.time.hrtimer_start(
                CpuId(c as u16),
                tick_nsec,
                tick_nsec,
                TimerKind::SchedTick,
                &mut kernel.cx,
            );
        }
        kernel.scx_load();
        kernel.set_user_limits();
        kernel
    }

    /// The idle task, the stoppers, schedutil's threads and the kworkers.
    fn boot_tasks(&mut self) {
        let idle = self.new_task(None, TaskKind::Swapper);
        self.sched.init_idle(idle);
        for c in 0..self.sched.nr_cpus() {
            let cpu = CpuId(c as u16);
            let stopper = self.new_task(None, TaskKind::Stopper { cpu });
            self.sched.set_stop_task(cpu, stopper);
        }
        self.sugov_kthreads_create();
        self.vmstat_init();
        self.random_init();
        self.kworkers_were_born();
        // It has made the domains, and sleeps since.
        if self.cx.keeps_idle_core() {
            self.sched.count_idle(CpuId(0));
        }
    }

    /// Makes a task that sleeps on CPU 0 until `wake_at`: the workload's first thread.
    pub fn boot_thread(&mut self, wake_at: Ns) -> TaskId {
        let task = self.new_task(None, TaskKind::User);
        self.sched.join_first_session(task);
        self.sched.set_task_state(task, TaskState::Interruptible);
        self.sched.set_sleep_timer(task, Some(CpuId(0)));
        self.time.hrtimer_start(CpuId(0), wake_at, wake_at, TimerKind::Sleeper(task), &mut self.cx);
        task
    }
}

/// A domain, as governors are told of it.
fn frequency_domain(index: PolicyId, policy: &CpufreqPolicy) -> FrequencyDomain {
    FrequencyDomain {
        policy: index,
        cpus: policy.cpus,
        table: policy.table.clone(),
        rate_limit_ns: policy.sugov.freq_update_delay_ns as u64,
    }
}

/// The idle states of a CPU, as cpuidle knows them.
fn idle_states(dt: &DeviceTree, cpu: CpuId) -> Vec<IdleStateParams> {
    let states = dt.idle_states(cpu).iter();
    states
        .map(|state| IdleStateParams {
            exit_latency_ns: state.exit_latency,
            target_residency_ns: state.target_residency,
            polling: state.polling,
            disabled: state.disabled,
        })
        .collect()
}
