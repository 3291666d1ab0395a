// SPDX-License-Identifier: GPL-2.0-or-later
//! The product's kernel on the recordings' board, with signals set from outside.
//!
//! The decisions that follow from signals alone (schedutil's request, EAS's estimates and choice) are made
//! by the product's own `Kernel`: it is booted on the board, never runs, and before each question gets
//! the re-driven signals of its CPUs. Its answer is compared with the recorded one.
//!
//! A CPU's fair server and RT queue have no setters. Two spare kernels in which a fair task and an RT task
//! have been enqueued lend theirs.

use std::collections::BTreeMap;

use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{Config, Schedutil};
use schedtwin_kernel::cpufreq::policy::CpufreqPolicy;
use schedtwin_kernel::device_tree::{DeviceTree, DtDomain};
use schedtwin_kernel::sched::core::ENQUEUE_WAKEUP;
use schedtwin_kernel::sched::deadline::FairServer;
use schedtwin_kernel::sched::demand::conformance::DemandSteps;
use schedtwin_kernel::sched::demand::uclamp::UclampRequest;
use schedtwin_kernel::sched::demand::uclamp::max::UclampRq;
use schedtwin_kernel::sched::fair::energy::EnergyEstimate;
use schedtwin_kernel::sched::pelt::SchedAvg;
use schedtwin_kernel::sched::rt::RtRq;
use schedtwin_kernel::sched::{Class, TaskKind};
use schedtwin_types::{Capacity, CpuId, CpuMask, Khz, Ns, PolicyId, TaskId};

use super::machine::{Arrangement, Machine};

/// More than any utilisation: what is larger is not the kernel's, and must not overflow our sums.
const UTIL_MAX: u64 = 1 << 30;
/// The bandwidth of an active fair server (50 ms of 1 s), the only one that the recordings show.
pub(super) const SERVER_BW: u64 = 52_428;

/// The signals of a CPU that the decisions read.
#[derive(Clone, Debug)]
pub(super) struct CpuSignals {
    pub(super) cfs: SchedAvg,
    pub(super) rt: SchedAvg,
    pub(super) dl: SchedAvg,
    pub(super) irq: SchedAvg,
    /// Its fair server's bandwidth counts.
    pub(super) server: bool,
    /// An RT task is queued.
    pub(super) rt_runnable: bool,
    /// `rq->cpu_capacity`.
    pub(super) capacity: u64,
    /// Its tasks' clamps.
    pub(super) clamps: UclampRq,
}

impl CpuSignals {
    /// Of a CPU of which only the fair class and what it has left of the CPU count.
    pub(super) fn of_fair(cfs: SchedAvg, capacity: u64) -> CpuSignals {
        CpuSignals {
            cfs,
            rt: SchedAvg::default(),
            dl: SchedAvg::default(),
            irq: SchedAvg::default(),
            server: false,
            rt_runnable: false,
            capacity,
            clamps: UclampRq::default(),
        }
    }
}

/// The kernel that is asked.
#[derive(Clone)]
pub(super) struct Board {
    pub(super) kernel: Kernel,
    pub(super) task: TaskId,
    servers: [FairServer; 2],
    rt_queues: [RtRq; 2],
}

pub(super) fn device_tree(machine: &Machine) -> DeviceTree {
    let domains: Vec<DtDomain> = machine
        .domains
        .iter()
        .map(|domain| (domain.cpus.len() as u16, domain.capacity as Capacity, &domain.opps[..]))
        .collect();
    let mut device_tree = DeviceTree::of_domains(&domains);
    for (number, cpu) in device_tree.cpus.iter_mut().enumerate() {
        let Arrangement { clusters, packages, nodes, threads } = &machine.arrangement;
        let group = |of: &BTreeMap<usize, usize>| of.get(&number).map(|first| *first as u16);
        cpu.llc = machine.package(number) as u16;
        cpu.package = group(packages).unwrap_or(cpu.llc);
        cpu.node = nodes_numbered(nodes, number);
        cpu.cluster = group(clusters);
        cpu.core = (machine.sched_smt && *threads > 1).then(|| (number / threads) as u16);
    }
    for policy in &mut device_tree.policies {
        // Switched fast: the slow path requests the same; only when it is carried out differs.
        policy.transition_latency = 500_000;
    }
    device_tree
}

/// Nodes have numbers of their own, in the order of their CPUs.
fn nodes_numbered(nodes: &BTreeMap<usize, usize>, cpu: usize) -> u16 {
    let first = nodes.get(&cpu).copied().unwrap_or(0);
    nodes.iter().filter(|(cpu, of)| cpu == of && **of < first).count() as u16
}

impl Board {
    pub(super) fn new(machine: &Machine) -> Board {
        let config = Config {
            sched_cluster: machine.sched_cluster,
            schedutil: Schedutil { rate_limit_us: Some(machine.rate_limit_us) },
            ..machine.kernel()
        };
        let mut kernel = Kernel::boot(device_tree(machine), config);
        let task = kernel.new_task(None, TaskKind::User);
        let cpu = CpuId(0);
        let idle = &kernel.inside().rq[cpu];
        let (no_server, no_rt) = (idle.fair_server, idle.rt.clone());
        let lend = |class: Class, prio: i32| {
            let mut spare = kernel.clone();
            spare.inside_mut().tasks[task].class = class;
            spare.inside_mut().tasks[task].prio = prio;
            spare.activate_task(cpu, task, ENQUEUE_WAKEUP);
            spare.inside().rq[cpu].clone()
        };
        let (server, rt) = (lend(Class::Fair, 120).fair_server, lend(Class::Rt, 50).rt);
        assert_eq!((no_server.is_active(), server.is_active()), (false, true));
        assert_eq!((no_rt.nr_running(), rt.nr_running()), (0, 1));
        Board { kernel, task, servers: [no_server, server], rt_queues: [no_rt, rt] }
    }

    /// Hands it the signals of a CPU.
    pub(super) fn set(&mut self, cpu: usize, signals: &CpuSignals) {
        let cpu = CpuId(cpu as u16);
        let mut steps = DemandSteps(&mut self.kernel);
        steps.change_averages(cpu, |averages| {
            *averages.cfs = clamped(signals.cfs);
            *averages.rt = clamped(signals.rt);
            *averages.dl = clamped(signals.dl);
            *averages.irq = clamped(signals.irq);
        });
        steps.set_clamps(cpu, signals.clamps.clone());
        steps.set_running_bw(cpu, if signals.server { SERVER_BW } else { 0 });
        let rq = &mut self.kernel.inside_mut().rq[cpu];
        rq.cpu_capacity = signals.capacity.min(UTIL_MAX);
        rq.fair_server = self.servers[signals.server as usize];
        if (rq.rt.nr_running() != 0) != signals.rt_runnable {
            rq.rt = self.rt_queues[signals.rt_runnable as usize].clone();
        }
    }

    /// Somebody has used a clamp, or not yet.
    pub(super) fn turn_key(&mut self, on: bool) {
        DemandSteps(&mut self.kernel).turn_uclamp_key(on);
    }

    /// A frequency domain and what schedutil remembers of it.
    pub(super) fn policy(&self, domain: usize) -> &CpufreqPolicy {
        &self.kernel.inside().policies[PolicyId(domain as u16)]
    }

    /// Takes over what the real schedutil remembers.
    pub(super) fn start_policy(&mut self, domain: usize, raw_khz: Khz, khz: Khz, time: Ns) {
        let sugov = &mut self.kernel.inside_mut().policies[PolicyId(domain as u16)].sugov;
        sugov.cached_raw_freq = raw_khz;
        sugov.next_freq = khz;
        sugov.last_freq_update_time = time;
        sugov.limits_changed = false;
        sugov.need_freq_update = false;
    }

    /// A call of schedutil for `cpu`, made by `by`; `cpu` has tried `idle_calls` times to stop its tick.
    pub(super) fn call_governor(
        &mut self,
        by: usize,
        (cpu, idle_calls): (usize, u64),
        time: Ns,
        flags: u32,
    ) {
        *self.kernel.inside_mut().this_cpu = CpuId(by as u16);
        self.kernel.inside_mut().cpus[CpuId(cpu as u16)].tick.idle_calls = idle_calls;
        self.kernel.cpufreq_update_util_at(CpuId(cpu as u16), time, flags);
        self.kernel.clear_facts();
    }

    /// Makes the one task look like a sleeper that last ran on `prev`.
    pub(super) fn set_sleeper(
        &mut self,
        prev: usize,
        avg: SchedAvg,
        request: UclampRequest,
        allowed: u64,
    ) {
        let cpus = self.kernel.inside().device_tree.all_cpus();
        let allowed = CpuMask::from_cpus(cpus.iter().filter(|c| allowed >> c.index() & 1 != 0));
        let task = &mut self.kernel.inside_mut().tasks[self.task];
        task.uclamp_req = request;
        task.cpu = CpuId(prev as u16);
        task.cpus_mask = allowed;
        task.nr_cpus_allowed = allowed.weight();
        let se = self.kernel.se_of(self.task);
        self.kernel.inside_mut().se[se].avg = clamped(avg);
    }

    /// Where EAS would wake the sleeper.
    pub(super) fn place(&mut self, by: usize, prev: usize) -> Option<usize> {
        *self.kernel.inside_mut().this_cpu = CpuId(by as u16);
        let choice =
            self.kernel.find_energy_efficient_cpu(self.task, CpuId(prev as u16), &mut 0, &mut ());
        choice.map(|(cpu, _)| cpu.index())
    }

    /// One estimate for the sleeper ([`Kernel::energy_estimate`]).
    pub(super) fn estimate(&self, prev: usize, cpu: usize, placed: bool) -> Option<EnergyEstimate> {
        let [prev, cpu] = [prev, cpu].map(|cpu| CpuId(cpu as u16));
        self.kernel.energy_estimate(self.task, prev, cpu, placed)
    }
}

/// Recordings are read as they are; their averages are at most this large when they reach the product.
fn clamped(mut avg: SchedAvg) -> SchedAvg {
    avg.util_avg = avg.util_avg.min(UTIL_MAX);
    avg.runnable_avg = avg.runnable_avg.min(UTIL_MAX);
    avg.load_avg = avg.load_avg.min(UTIL_MAX);
    avg
}
