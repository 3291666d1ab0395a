// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's entries: boot, interrupts, system calls, idle.
//!
//! Each begins with the time and the CPU, and ends with that CPU's wires saying what it does next.

use crate::BootConfig;
use crate::arena::Arena;
use crate::config::{CfsTunables, Config};
use crate::cpufreq::forms::SugovForms;
use crate::cpufreq::hook::FrequencyHook;
use crate::cpufreq::policy::CpufreqPolicy;
use crate::cpufreq::schedutil::SugovCpu;
use crate::cpuidle::CpuIdle;
use crate::cpuidle::governor::Governor;
use crate::cpuidle::states::IdleStateParams;
use crate::device_tree::DeviceTree;
use crate::hardware::{NewTask, SyscallEffect, UserReturn};
use crate::policy::{
    CustomFrequency, CustomIdle, CustomMachineFrequency, CustomMachineIdle, CustomPlacement,
    FrequencyDomain, GovernedDomain, IdleCpu, Policies,
};
use crate::sched::deadline::{DlRq, FairServer, to_ratio};
use crate::sched::demand::need::Needs;
use crate::sched::demand::signal::{Signal, StaleDemands};
use crate::sched::demand::uclamp::group::GroupClamps;
use crate::sched::demand::uclamp::{RqClamps, UclampKey};
use crate::sched::fair::bandwidth::CfsRqBandwidth;
use crate::sched::fair::group::TaskGroup;
use crate::sched::fair::sched_cache::CacheAffinity;
use crate::sched::pelt::{Removed, RqClockPelt, SchedAvg};
use crate::sched::root_domain::RootDomain;
use crate::sched::rt::RtRq;
use crate::sched::topology::Topology;
use crate::sched::{CfsRq, CfsRqId, Class, OnRq, Rq, TaskKind};
use crate::sync::wait::{Blocked, Resume};
use crate::time::hrtimer::{HrtimerBase, TimerKind};
use crate::{
    Activity, Context, Cpufreq, Cpuidle, Kernel, Platform, Scheduler, SyncObjects, Thermal, Time,
    Wires, WorkQueues,
};
use schedtwin_types::{
    CpuId, CpuMask, DecisionRecord, Errno, Fact, FactKind, FutexId, IpiKind, IrqLine, IrqLines,
    Mode, NEVER, Ns, Outcome, PolicyId, PolicyMask, Syscall, TaskGroupId, TaskId, TaskState,
    WakeSource,
};

impl Kernel {
    /// Boots: all CPUs idle, ticks on the grid, governors started.
    pub fn boot(device_tree: DeviceTree, config: Config) -> Kernel {
        Kernel::boot_with(device_tree, config, &Policies::default())
    }
}

impl Kernel {
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
        let topology = Topology::build(&device_tree, &config);
        let sched_cache = CacheAffinity::new(&config, &topology);
        let asymmetric = topology.sd_asym_cpucapacity.iter().any(|sd| sd.is_some());
        let rd = RootDomain::build(&device_tree, &config, asymmetric, topology.smt);
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
        let machine_frequency = custom.frequency_of_machine.as_ref().map(|named| {
            let governed = policies.ids().map(|index| {
                let policy = &policies[index];
                let first = policy.cpus.lowest().expect("a policy has CPUs");
                GovernedDomain {
                    domain: frequency_domain(index, policy),
                    fast_switch: policy.fast_switch,
                    dvfs_possible_from_any_cpu: policy.dvfs_possible_from_any_cpu,
                    capacity: device_tree.cpus[first.index()].capacity as u64,
                }
            });
            let policy = (named.make)(&governed.collect());
            Box::new(CustomMachineFrequency { name: named.name.clone(), policy })
        });
        let placement = custom.placement.as_ref().map(|named| {
            let policy = (named.make)(&());
            Box::new(CustomPlacement { name: named.name.clone(), policy })
        });
        let idle_cpus: Vec<IdleCpu> = (0..nr_cpus)
            .map(|c| IdleCpu {
                cpu: CpuId(c as u16),
                capacity: device_tree.cpus[c].capacity as u64,
                states: idle_states(&device_tree, CpuId(c as u16)),
            })
            .collect();
        let machine_idle = custom.idle_of_machine.as_ref().map(|named| {
            let policy = (named.make)(&idle_cpus);
            Box::new(CustomMachineIdle { name: named.name.clone(), policy })
        });
        let cpuidle = idle_cpus
            .into_iter()
            .map(|cpu| {
                let governor = match (&custom.idle, &machine_idle) {
                    (None, None) => Governor::new(&config, cpu.capacity, &cpu.states),
                    (None, Some(machine)) => {
                        Governor::OfMachine { reads_util: machine.policy.reads_util() }
                    }
                    (Some(named), _) => {
                        let policy = (named.make)(&cpu);
                        Governor::Custom(CustomIdle { name: named.name.clone(), policy })
                    }
                };
                let IdleCpu { cpu, states, .. } = cpu;
                let mut idle = CpuIdle::new(states, governor, config.pm_qos.latency_req_ns());
                idle.timer_stop =
                    device_tree.idle_states(cpu).iter().map(|s| s.timer_stop).collect();
                idle
            })
            .collect();
        let tick_nsec = config.tick_nsec();
        // Linux scales slices by 1 + log2 of the CPUs, at most 8 (SCHED_TUNABLESCALING_LOG).
        let factor = 1 + (nr_cpus.min(8) as u32).ilog2() as u64;
        let base_slice = config.base_slice_unscaled * factor;
        let cfs_tunables = CfsTunables {
            latency: config.cfs.latency * factor,
            min_granularity: config.cfs.min_granularity * factor,
            wakeup_granularity: config.cfs.wakeup_granularity * factor,
            ..config.cfs
        };
        let hint = device_tree.nr_threads_hint;
        let needs = Needs::new(&policies, &device_tree, &config);
        let wires = || Wires {
            clock_event_at: NEVER,
            ipi_at: [NEVER; IpiKind::COUNT],
            ipi_from: [CpuId(0); IpiKind::COUNT],
            activity: Activity::IdleLoop,
            debt: 0,
        };
        let all_cpus = device_tree.all_cpus();
        let mut kernel = Kernel {
            sched: Scheduler {
                tasks: Arena::new(),
                se: Arena::new(),
                cfs: (0..nr_cpus).map(|c| new_cfs_rq(CpuId(c as u16), hint, &config)).collect(),
                groups: std::iter::once(TaskGroup::root(nr_cpus, GroupClamps::root(&config)))
                    .collect(),
                autogroups: Vec::new(),
                rq: (0..nr_cpus).map(|c| new_rq(CpuId(c as u16), &device_tree, &config)).collect(),
                topology,
                rd,
                nohz: Default::default(),
                hw_pressure_told: false,
                cfs_bandwidth_used: false,
                flat_groups: false,
                sched_cache: sched_cache.map(Box::new),
                sched_uclamp_used: UclampKey::new(&config),
                stale_demands: StaleDemands::all(all_cpus),
                needs,
                placement,
                idle_mask: all_cpus,
                sched_idle_mask: CpuMask::EMPTY,
                base_slice,
                cfs_tunables,
            },
            cpufreq: Cpufreq {
                policies,
                counters: Vec::new(),
                sugov_cpus: (0..nr_cpus).map(|_| SugovCpu::default()).collect(),
                frequency_hook,
                sugov_forms,
                machine_demands: match machine_frequency {
                    Some(_) => vec![Default::default(); nr_cpus],
                    None => Vec::new(),
                },
                machine_frequency,
                dirty_policies: PolicyMask::EMPTY,
                wishing_policies: PolicyMask::EMPTY,
                policies_dirty: false,
            },
            thermal: Thermal { zones: Vec::new() },
            cpuidle: Cpuidle { machine_idle, cpus: cpuidle },
            time: Time {
                timers: (0..nr_cpus).map(|_| HrtimerBase::with_capacity(hint + 4)).collect(),
                broadcast: None,
                broadcast_changed: false,
                local_timers_off: CpuMask::EMPTY,
            },
            sync: SyncObjects {
                futexes: Default::default(),
                pipes: Default::default(),
                sockets: Default::default(),
                sections: (0..nr_cpus).map(|_| None).collect(),
            },
            workqueue: WorkQueues { stat_works: Vec::new() },
            cx: Context {
                now: 0,
                this_cpu: CpuId(0),
                debt: 0,
                in_irq: false,
                irq_time_unaccounted: 0,
                tick_nsec,
                facts: Vec::with_capacity(256),
                want_signals: false,
                decisions: Vec::new(),
                want_decisions: false,
                config: BootConfig::new(config),
                platform: Platform {
                    wires: (0..nr_cpus).map(|_| wires()).collect(),
                    dirty: all_cpus,
                    ns_per_work_shift_10: vec![1 << 10; nr_cpus].into_iter().collect(),
                    thread_speed_permille: vec![1000; nr_cpus],
                    peripheral_wakes: Vec::with_capacity(64),
                    device_tree,
                },
            },
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
        kernel
    }

    /// The idle task, the stoppers, schedutil's threads and the kworkers.
    fn boot_tasks(&mut self) {
        let idle = self.new_task(None, TaskKind::Swapper);
        self.sched.tasks[idle].class = Class::Idle;
        // init_idle(): queued, as far as wakeup_preempt() can see.
        self.sched.tasks[idle].on_rq = OnRq::Queued;
        for c in 0..self.sched.rq.len() {
            let cpu = CpuId(c as u16);
            let stopper = self.new_task(None, TaskKind::Stopper { cpu });
            let t = &mut self.sched.tasks[stopper];
            t.class = Class::Stop;
            // sched_set_stop_task(): it looks like SCHED_FIFO 99.
            t.prio = 0;
            t.cpu = cpu;
            t.cpus_mask = CpuMask::of(cpu);
            t.nr_cpus_allowed = 1;
            t.state = TaskState::Interruptible;
            let se = t.se;
            self.sched.se[se].cfs_rq = CfsRqId::root(cpu);
            self.sched.rq[cpu].stopper = stopper;
        }
        self.sugov_kthreads_create();
        self.vmstat_init();
        // It has made the domains, and sleeps since.
        if self.cx.keeps_idle_core() {
            self.sched.count_idle(CpuId(0));
        }
    }

    /// Makes a task that sleeps on CPU 0 until `wake_at`: the workload's first thread.
    pub fn boot_thread(&mut self, wake_at: Ns) -> TaskId {
        let task = self.new_task(None, TaskKind::User);
        self.sched.join_first_session(task);
        self.sched.tasks[task].state = TaskState::Interruptible;
        self.sched.tasks[task].sleep_timer_on = Some(CpuId(0));
        self.time.hrtimer_start(CpuId(0), wake_at, wake_at, TimerKind::Sleeper(task), &mut self.cx);
        task
    }

    /// Interrupts arrive at a CPU that runs a task or the idle loop. `mode`: of the work they interrupt.
    pub fn interrupt(&mut self, cpu: CpuId, now: Ns, lines: IrqLines, mode: Mode) {
        self.cx.begin(cpu, now, true);
        self.handle_interrupts(lines, mode);
        self.cx.end();
    }

    /// Interrupts have woken a CPU from its idle state.
    pub fn idle_exit(&mut self, cpu: CpuId, now: Ns, lines: IrqLines) {
        self.cx.begin(cpu, now, true);
        self.cpuidle_exit();
        self.handle_interrupts(lines, Mode::Kernel);
        self.cx.end();
    }

    /// Silicon or firmware has refused the idle state that a CPU asked for: it never slept, and takes the
    /// interrupts that wait.
    pub fn idle_refused(&mut self, cpu: CpuId, now: Ns, lines: IrqLines) {
        self.cx.begin(cpu, now, true);
        self.cpuidle_refused();
        self.handle_interrupts(lines, Mode::Kernel);
        self.cx.end();
    }

    /// The polling state's loop has ended: due at the time of [`Activity::Poll`].
    pub fn poll_end(&mut self, cpu: CpuId, now: Ns) {
        self.cx.begin(cpu, now, false);
        self.idle_after_poll();
        self.cx.end();
    }

    fn handle_interrupts(&mut self, lines: IrqLines, mode: Mode) {
        let cpu = self.cx.this_cpu;
        self.cx.fact(FactKind::IrqEntry { lines });
        let cost = self.cx.platform.device_tree.path_costs.interrupt;
        self.sched.charge(cost, &mut self.cx);
        let arrived = self.sync.arrived_in_section(cpu, lines, &self.cx);
        let clock_event = IrqLines::of(IrqLine::ClockEvent);
        if lines != clock_event {
            let ipi_at = &mut self.cx.platform.wires[cpu].ipi_at;
            for kind in IpiKind::ALL {
                if lines.contains(IrqLine::ipi(kind)) {
                    ipi_at[kind as usize] = NEVER;
                }
            }
        }
        // Each of the three has timers expire: the CPU's own, the broadcast IPI, and the broadcast device if it is this
        // CPU's event as well.
        if lines.contains(IrqLine::ClockEvent) || lines.contains(IrqLine::TimerBroadcast) {
            self.hrtimer_interrupt();
        }
        if lines.contains(IrqLine::BroadcastDevice)
            && self.time.tick_handle_oneshot_broadcast(&mut self.sched, &mut self.cx)
        {
            self.hrtimer_interrupt();
        }
        if lines != clock_event {
            self.handle_ipis(cpu, lines);
        }
        if self.sched.rq[cpu].sched_softirq {
            self.sched.rq[cpu].sched_softirq = false;
            self.sched_balance_softirq(cpu);
        }
        let spent_ns = self.cx.debt.min(u32::MAX as u64) as u32;
        self.cx.fact(FactKind::IrqExit { spent_ns });
        self.sched.account_irq_time(&mut self.cx);
        self.cx.in_irq = false;
        if self.sched.rq[cpu].curr.is_idle() {
            self.idle_after_interrupt();
        } else if self.sched.rq[cpu].need_resched && self.cx.preemptible(mode) {
            if let Some(arrived) = arrived
                && self.cx.config.preempt.preempts_kernel_mode()
            {
                self.sync.mutex_preempt(cpu, arrived, &mut self.sched);
            }
            self.sched.cache_work_is_preempted(self.sched.rq[cpu].curr, mode);
            self.schedule(true);
        } else if mode == Mode::User && self.sched.rq[cpu].need_resched_lazy {
            self.sched.cache_work_is_preempted(self.sched.rq[cpu].curr, mode);
            self.schedule(true);
        } else if mode == Mode::User && self.sched.has_cache_work(self.sched.rq[cpu].curr) {
            self.sched.task_cache_work(cpu, self.sched.rq[cpu].curr, &mut self.cx);
        }
        if self.cx.config.features.hrtick {
            self.time.hrtimer_rearm_deferred(cpu, &mut self.cx);
        }
    }

    /// Does what interrupts of these lines are sent for.
    pub(crate) fn handle_ipis(&mut self, cpu: CpuId, lines: IrqLines) {
        if lines.contains(IrqLine::WakeList) {
            self.cfsb_csd_unthrottle(cpu);
            self.sched.hrtick_csd(cpu, &mut self.time, &mut self.cx);
            self.sched_ttwu_pending(cpu);
        }
        if lines.contains(IrqLine::NohzKick) {
            self.sched.nohz_csd_func(cpu);
        }
        if lines.contains(IrqLine::IrqWork) {
            self.irq_work_run(cpu);
        }
        if lines.contains(IrqLine::CpufreqDriver) {
            self.sugov_driver_interrupt();
        }
        if lines.contains(IrqLine::Peripheral) {
            for at in 0..self.cx.platform.peripheral_wakes.len() {
                let futex = self.cx.platform.peripheral_wakes[at];
                self.futex_wake(futex, 1, WakeSource::Kernel);
            }
            self.cx.platform.peripheral_wakes.clear();
        }
    }

    /// The idle task runs its loop: due when `Activity::IdleLoop` has paid its debt.
    pub fn idle_enter(&mut self, cpu: CpuId, now: Ns) {
        self.cx.begin(cpu, now, false);
        self.do_idle();
        self.cx.end();
    }

    /// A reschedule has been left over: the running task gives way.
    fn preempt_point(&mut self, cpu: CpuId, now: Ns) {
        self.cx.begin(cpu, now, false);
        if self.sched.must_give_way_to_user(cpu) {
            self.schedule(true);
        }
        self.cx.end();
    }

    /// A kernel thread runs. Returns until when it spins, waiting for hardware, before the entry is due again; 0: it does
    /// not.
    pub fn kthread(&mut self, cpu: CpuId, now: Ns) -> Ns {
        self.cx.begin(cpu, now, false);
        let mut busy_until = 0;
        match self.sched.tasks[self.sched.rq[cpu].curr].kind {
            TaskKind::Stopper { .. } => self.cpu_stopper_thread(),
            TaskKind::Kworker { .. } => self.vmstat_update(),
            TaskKind::Sugov { policy } => {
                self.sugov_kthread_fn(policy);
                busy_until = self.cpufreq.sugov_busy_until(policy);
            }
            kind @ (TaskKind::Swapper | TaskKind::User) => panic!("{kind:?} is no kernel thread"),
        }
        self.cx.end();
        busy_until
    }

    /// The running task has paid what its CPU owed, and is about to go on with its program: gives way if it must, and
    /// looks again at a call that blocked.
    #[inline(always)]
    pub fn return_to_user(&mut self, cpu: CpuId, now: Ns) -> UserReturn {
        let task = self.sched.rq[cpu].curr;
        if self.sched.rq[cpu].need_resched {
            self.preempt_point(cpu, now);
        } else if let Some(resume) = self.sched.tasks[task].resume.take() {
            self.resume(cpu, now, task, resume);
        } else if self.sched.rq[cpu].need_resched_lazy {
            // Not before: a call that goes on is kernel mode.
            self.preempt_point(cpu, now);
        } else if self.sched.has_cache_work(task) {
            self.cx.begin(cpu, now, false);
            self.sched.task_cache_work(cpu, task, &mut self.cx);
            self.cx.end();
            if self.cx.debt == 0 {
                return UserReturn::ToUser(self.sched.tasks[task].outcome);
            }
        } else {
            return UserReturn::ToUser(self.sched.tasks[task].outcome);
        }
        UserReturn::InKernel
    }

    /// A call that slept goes on, or ends after a preemption. Its entry has been paid for.
    fn resume(&mut self, cpu: CpuId, now: Ns, task: TaskId, resume: Resume) {
        self.cx.begin(cpu, now, false);
        self.cx.debt = 1;
        match resume {
            Resume::Call(blocked) => self.resume_call(task, blocked),
            Resume::Unlock(lock) => self.mutex_unlock_late(lock),
        }
        self.end_call(cpu, task);
    }

    fn resume_call(&mut self, task: TaskId, blocked: Blocked) {
        let Blocked { call, done, waited } = blocked;
        match call {
            Syscall::PipeWrite { pipe, bytes } => {
                self.pipe_write(task, pipe, bytes, waited.then_some(done));
            }
            Syscall::PipeRead { pipe, bytes } => self.pipe_read(task, pipe, bytes, waited),
            Syscall::Send { socket, bytes } => self.send(task, socket, bytes, done),
            Syscall::Recv { socket, bytes } => self.recv(task, socket, bytes, waited),
            Syscall::Poll { file } => self.poll(task, file),
            call => unreachable!("{call:?} does not go on after a sleep"),
        }
    }

    /// The running task enters the kernel. How the call ended [`Kernel::return_to_user`] tells once the task runs again.
    pub fn syscall(&mut self, cpu: CpuId, now: Ns, call: Syscall) -> SyscallEffect {
        self.cx.begin(cpu, now, false);
        let task = self.sched.rq[cpu].curr;
        // A call takes time whatever the machine says.
        let cost = self.cx.platform.device_tree.path_costs.syscall;
        self.sched.charge(cost, &mut self.cx);
        self.cx.debt = self.cx.debt.max(1);
        self.sched.tasks[task].outcome = Outcome::Done;
        let mut effect = SyscallEffect::default();
        match call {
            Syscall::Nanosleep { duration } => {
                let until = self.cx.local_clock().saturating_add(duration);
                self.nanosleep_until(task, until);
            }
            Syscall::NanosleepUntil { until } => self.nanosleep_until(task, until),
            Syscall::FutexWait { futex } => self.futex_wait(task, futex),
            Syscall::FutexWake { futex, count } => {
                let woken = self.futex_wake(futex, count, WakeSource::Task);
                self.sched.tasks[task].outcome = Outcome::Value(woken as u64);
            }
            Syscall::SchedYield => {
                match self.sched.tasks[task].class {
                    Class::Fair => self.yield_task_fair(cpu),
                    Class::Rt => self.sched.yield_task_rt(cpu),
                    Class::Deadline => self.yield_task_dl(cpu),
                    _ => {}
                }
                self.schedule(false);
            }
            Syscall::SchedSetattr(attr) => {
                let before = self.sched.tasks[task].prio;
                if let Err(errno) = self.sched_setattr(task, attr) {
                    self.sched.tasks[task].outcome = Outcome::Failed(errno);
                }
                effect.new_prio = Some(self.sched.tasks[task].prio).filter(|prio| *prio != before);
            }
            Syscall::SchedSetaffinity { mask } => {
                if let Err(errno) = self.sched_setaffinity(task, mask) {
                    self.sched.tasks[task].outcome = Outcome::Failed(errno);
                }
            }
            Syscall::CgroupAttach { group } => self.cpu_cgroup_attach(task, group),
            Syscall::Setsid { session } => self.sched_autogroup_create_attach(task, session),
            // sched_fork()
            Syscall::Clone { .. } if self.sched.tasks[task].class == Class::Deadline => {
                self.sched.tasks[task].outcome = Outcome::Failed(Errno::Again);
            }
            Syscall::Clone { thread, process } => {
                let cost = self.cx.platform.device_tree.path_costs.fork;
                self.sched.charge(cost, &mut self.cx);
                let new = self.new_task_of(Some(task), TaskKind::User, process);
                self.wake_up_new_task(new);
                self.sched.tasks[task].outcome = Outcome::Value(new.0 as u64);
                let prio = self.sched.tasks[new].prio;
                effect.child = Some(NewTask { task: new, thread, prio });
            }
            Syscall::PipeWrite { pipe, bytes } => self.pipe_write(task, pipe, bytes, None),
            Syscall::PipeRead { pipe, bytes } => self.pipe_read(task, pipe, bytes, false),
            Syscall::Socketpair { first, second, kind, sndbuf } => {
                self.sync.socketpair(first, second, kind, sndbuf);
            }
            Syscall::Send { socket, bytes } => self.send(task, socket, bytes, 0),
            Syscall::Recv { socket, bytes } => self.recv(task, socket, bytes, false),
            Syscall::Poll { file } => self.poll(task, file),
            Syscall::Getcpu => self.sched.tasks[task].outcome = Outcome::Value(u64::from(cpu.0)),
        }
        self.end_call(cpu, task);
        effect
    }

    #[inline(always)]
    fn end_call(&mut self, cpu: CpuId, task: TaskId) {
        if self.sched.must_give_way_to_user(cpu) && self.sched.rq[cpu].curr == task {
            self.schedule(true);
        }
        self.cx.end();
    }

    /// The running task ends.
    pub fn exit(&mut self, cpu: CpuId, now: Ns) {
        self.cx.begin(cpu, now, false);
        let cost = self.cx.platform.device_tree.path_costs.exit;
        self.sched.charge(cost, &mut self.cx);
        let task = self.sched.rq[cpu].curr;
        self.do_exit(task);
        self.cx.end();
    }

    // ---- what the twin reads ------------------------------------------------------------------

    /// CPUs whose wires may have changed since the last call.
    #[inline]
    pub fn take_dirty(&mut self) -> CpuMask {
        std::mem::replace(&mut self.cx.platform.dirty, CpuMask::EMPTY)
    }

    /// Whether [`Kernel::take_dirty_policies`] or [`Kernel::take_wishing_policies`] have something to tell: mostly they
    /// have not.
    #[inline]
    pub fn has_dirty_policies(&self) -> bool {
        self.cpufreq.policies_dirty
    }

    /// Policies whose governor has decided for a frequency since the last call, and has yet to ask the driver.
    #[inline]
    pub fn take_wishing_policies(&mut self) -> PolicyMask {
        std::mem::take(&mut self.cpufreq.wishing_policies)
    }

    /// Policies whose frequency was set since the last call.
    #[inline]
    pub fn take_dirty_policies(&mut self) -> PolicyMask {
        self.cpufreq.policies_dirty = false;
        std::mem::take(&mut self.cpufreq.dirty_policies)
    }

    /// The facts since they were cleared.
    #[inline]
    pub fn facts(&self) -> &[Fact] {
        &self.cx.facts
    }

    /// Clears the facts.
    #[inline]
    pub fn clear_facts(&mut self) {
        self.cx.facts.clear();
    }

    /// The decisions since the last call.
    pub fn take_decisions(&mut self) -> Vec<DecisionRecord> {
        std::mem::take(&mut self.cx.decisions)
    }

    /// As [`Kernel::take_decisions`], one by one; the list keeps its room.
    pub fn drain_decisions(&mut self) -> impl Iterator<Item = DecisionRecord> + '_ {
        self.cx.decisions.drain(..)
    }
}

impl Context {
    #[inline]
    fn begin(&mut self, cpu: CpuId, now: Ns, in_irq: bool) {
        debug_assert!(now >= self.now, "time goes forward");
        self.now = now;
        self.this_cpu = cpu;
        self.in_irq = in_irq;
        self.debt = 0;
        self.platform.dirty.insert(cpu);
    }

    /// The entry ends: what it has cost is to be paid.
    #[inline]
    fn end(&mut self) {
        self.platform.wires[self.this_cpu].debt = self.debt;
    }

    /// The handler of a device will wake a waiter of `futex` in the next entry that has
    /// [`IrqLine::Peripheral`] among its lines.
    pub(crate) fn peripheral(&mut self, futex: FutexId) {
        self.platform.peripheral_wakes.push(futex);
    }

    /// Whether an interrupt's exit may preempt work of this mode.
    fn preemptible(&self, mode: Mode) -> bool {
        mode == Mode::User || self.config.preempt.preempts_kernel_mode()
    }
}

pub(crate) fn new_cfs_rq(cpu: CpuId, hint: usize, config: &Config) -> CfsRq {
    CfsRq {
        avg: Default::default(),
        load_weight: 0,
        nr_queued: 0,
        h_nr_queued: 0,
        h_nr_runnable: 0,
        h_nr_delayed: 0,
        h_nr_idle: 0,
        avg_vruntime: 0,
        avg_load: 0,
        // init_cfs_rq(): a little before the wrap, so that wrapping code is exercised.
        zero_vruntime: (-(1i64 << 20)) as u64,
        discipline: crate::sched::fair::discipline::of(config),
        full_weights: crate::sched::fair::eevdf::sums_full_weights(config),
        min_vruntime: (-(1i64 << 20)) as u64,
        curr: None,
        next: None,
        last: None,
        skip: None,
        timeline: Vec::with_capacity(hint.min(1024) + 8),
        removed: Removed::default(),
        cpu,
        group: TaskGroupId::ROOT,
        idle: false,
        propagate: false,
        prop_runnable_sum: 0,
        tg_load_avg_contrib: 0,
        tg_runnable_avg_contrib: 0,
        last_update_tg_load_avg: 0,
        on_list: false,
        bandwidth: CfsRqBandwidth::default(),
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

fn new_rq(cpu: CpuId, dt: &DeviceTree, config: &Config) -> Rq {
    Rq {
        cpu,
        nr_running: 0,
        nr_iowait: 0,
        curr: TaskId::IDLE,
        next_class: Class::Idle,
        need_resched: false,
        need_resched_lazy: false,
        skip_clock_update: false,
        clock: 0,
        clock_task: 0,
        clock_pelt: RqClockPelt::default(),
        irq_time: 0,
        prev_irq_time: 0,
        arch_capacity: dt.cpus[cpu.index()].capacity as u64,
        cpufreq_pressure: 0,
        hw_pressure: 0,
        freq_scale: 1024,
        cpu_capacity: dt.cpus[cpu.index()].capacity as u64,
        avg_rt: Default::default(),
        avg_dl: Default::default(),
        avg_irq: Default::default(),
        avg_hw: SchedAvg::default(),
        rt: RtRq::default(),
        fair_server: FairServer::new(config.fair_server_runtime, config.fair_server_period),
        dl: DlRq::new(to_ratio(config.fair_server_period, config.fair_server_runtime)),
        push_pending: false,
        hrtick: Default::default(),
        irq_work_raised: PolicyMask::EMPTY,
        fast_switch_raised: false,
        cpufreq_callback: 0,
        cfs_tasks_head: None,
        cfs_tasks_tail: None,
        leaf_cfs_rqs: Vec::new(),
        timeline: CfsRqId::root(cpu),
        misfit_task_load: 0,
        idle_stamp: 0,
        avg_idle: 2 * config.migration_cost,
        wake_avg_idle: 2 * config.migration_cost,
        wake_stamp: 0,
        max_idle_balance_cost: config.migration_cost,
        next_balance: 0,
        idle_balance: false,
        sched_softirq: false,
        nohz_flags: 0,
        nohz_tick_stopped: false,
        is_idle: true,
        has_blocked_load: false,
        last_blocked_load_update_tick: 0,
        wake_list: Vec::with_capacity(dt.nr_threads_hint.max(16)),
        unthrottle_list: Vec::new(),
        ttwu_pending: false,
        active_balance: false,
        push_cpu: CpuId(0),
        stopper: TaskId::IDLE,
        stop_work: Default::default(),
        stop_queued: false,
        idle_exec_start: 0,
        uclamp: Signal::new(RqClamps::new(config)),
        newidle_rnd: 0x9e37_79b9_7f4a_7c15 ^ (cpu.0 as u64) << 32,
    }
}
