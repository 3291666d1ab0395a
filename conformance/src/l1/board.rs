//! The product's kernel on the recordings' board, with signals set from outside.
//!
//! The decisions that follow from signals alone (schedutil's request, EAS's estimates and choice) are made
//! by the product's own `Kernel`: it is booted on the board, never runs, and before each question gets
//! the re-driven signals of its CPUs. Its answer is compared with the recorded one.
//!
//! A CPU's fair server and RT queue have no setters. Two spare kernels in which a fair task and an RT task
//! have been enqueued lend theirs.

use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{Config, Schedutil};
use schedtwin_kernel::cpufreq::policy::CpufreqPolicy;
use schedtwin_kernel::device_tree::{DeviceTree, DtCpu, DtIdleState, DtPolicy, PathCosts};
use schedtwin_kernel::sched::core::ENQUEUE_WAKEUP;
use schedtwin_kernel::sched::deadline::FairServer;
use schedtwin_kernel::sched::fair::energy::EnergyEstimate;
use schedtwin_kernel::sched::pelt::SchedAvg;
use schedtwin_kernel::sched::rt::RtRq;
use schedtwin_kernel::sched::{CfsRqId, Class};
use schedtwin_types::{Capacity, CpuId, CpuMask, Khz, Ns, TaskId};

use super::state::arch_capacity;

/// The board's CPUs.
pub(super) const NR_CPUS: usize = 8;
/// Its domains: first CPU and number of CPUs.
pub(super) const DOMAINS: [(usize, usize); 3] = [(0, 4), (4, 2), (6, 2)];

/// Operating points, kHz and microwatts, as the recordings' energy model has them.
const OPPS: [&[(Khz, u64)]; 3] = [
    &[
        (300_000, 6_352),
        (574_000, 15_049),
        (738_000, 20_962),
        (930_000, 30_725),
        (1_098_000, 41_070),
        (1_197_000, 47_131),
        (1_328_000, 56_701),
        (1_401_000, 62_764),
        (1_598_000, 80_818),
        (1_704_000, 93_845),
        (1_803_000, 109_393),
    ],
    &[
        (400_000, 33_504),
        (553_000, 45_883),
        (696_000, 59_712),
        (799_000, 72_742),
        (910_000, 87_199),
        (1_024_000, 103_583),
        (1_197_000, 134_243),
        (1_328_000, 159_131),
        (1_491_000, 194_203),
        (1_663_000, 244_300),
        (1_836_000, 308_083),
        (1_999_000, 388_937),
        (2_130_000, 489_037),
        (2_253_000, 603_709),
    ],
    &[
        (500_000, 79_613),
        (851_000, 148_208),
        (984_000, 178_306),
        (1_106_000, 219_302),
        (1_277_000, 278_240),
        (1_426_000, 333_369),
        (1_582_000, 419_691),
        (1_745_000, 528_516),
        (1_826_000, 577_683),
        (2_048_000, 743_307),
        (2_188_000, 876_071),
        (2_252_000, 965_814),
        (2_401_000, 1_149_159),
        (2_507_000, 1_310_751),
        (2_630_000, 1_559_977),
        (2_704_000, 1_801_528),
        (2_802_000, 2_158_976),
    ],
];

/// More than any utilisation: what is larger is not the kernel's, and must not overflow our sums.
const UTIL_MAX: u64 = 1 << 30;
/// The bandwidth of an active fair server (50 ms of 1 s), the only one that the recordings show.
pub(super) const SERVER_BW: u64 = 52_428;

/// The domain of a CPU of the board.
pub(super) fn domain_of(cpu: usize) -> Option<usize> {
    DOMAINS.iter().position(|(first, count)| (*first..first + count).contains(&cpu))
}

/// What the decisions read of a CPU.
#[derive(Clone, Copy, Debug)]
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
}

/// The kernel that is asked.
#[derive(Clone)]
pub(super) struct Board {
    kernel: Kernel,
    task: TaskId,
    servers: [FairServer; 2],
    rt_queues: [RtRq; 2],
}

fn device_tree() -> DeviceTree {
    let mut cpus = Vec::new();
    let mut policies = Vec::new();
    for (policy, ((first, count), opps)) in DOMAINS.into_iter().zip(OPPS).enumerate() {
        cpus.extend((0..count).map(|_| DtCpu {
            capacity: arch_capacity(first) as Capacity,
            policy,
            idle_table: 0,
            package: 0,
            cluster: None,
            llc: 0,
            node: 0,
        }));
        policies.push(DtPolicy {
            cpus: CpuMask::from_cpus((first..first + count).map(|cpu| CpuId(cpu as u16))),
            opps: opps.to_vec(),
            transition_latency: 500_000,
            // The slow path requests the same; only when it is carried out differs.
            fast_switch: true,
            driver_latency: 0,
            driver_sleeps: false,
            dvfs_possible_from_any_cpu: true,
        });
    }
    let idle = DtIdleState::new(1_000, 1_000);
    DeviceTree {
        cpus,
        policies,
        idle_tables: vec![vec![idle]],
        path_costs: PathCosts::default(),
        nr_threads_hint: 4,
    }
}

impl Board {
    pub(super) fn new(rate_limit_us: u64) -> Board {
        let config = Config {
            schedutil: Schedutil { rate_limit_us: Some(rate_limit_us) },
            ..Config::linux_6_12()
        };
        let mut kernel = Kernel::boot(device_tree(), config);
        let task = kernel.new_task(None, true);
        let cpu = CpuId(0);
        let idle = &kernel.rq[cpu];
        let (no_server, no_rt) = (idle.fair_server, idle.rt.clone());
        let lend = |class: Class, prio: i32| {
            let mut spare = kernel.clone();
            spare.tasks[task].class = class;
            spare.tasks[task].prio = prio;
            spare.activate_task(cpu, task, ENQUEUE_WAKEUP);
            spare.rq[cpu].clone()
        };
        let (server, rt) = (lend(Class::Fair, 120).fair_server, lend(Class::Rt, 50).rt);
        assert_eq!((no_server.running_bw(), server.running_bw()), (0, SERVER_BW));
        assert_eq!((no_rt.nr_running(), rt.nr_running()), (0, 1));
        Board { kernel, task, servers: [no_server, server], rt_queues: [no_rt, rt] }
    }

    /// Hands it the signals of a CPU.
    pub(super) fn set(&mut self, cpu: usize, signals: &CpuSignals) {
        let cpu = CpuId(cpu as u16);
        let rq = &mut self.kernel.rq[cpu];
        rq.avg_rt = clamped(signals.rt);
        rq.avg_dl = clamped(signals.dl);
        rq.avg_irq = clamped(signals.irq);
        rq.cpu_capacity = signals.capacity.min(UTIL_MAX);
        rq.fair_server = self.servers[signals.server as usize];
        if (rq.rt.nr_running() != 0) != signals.rt_runnable {
            rq.rt = self.rt_queues[signals.rt_runnable as usize].clone();
        }
        self.kernel.cfs[CfsRqId::root(cpu)].avg = clamped(signals.cfs);
    }

    /// A frequency domain and what schedutil remembers of it.
    pub(super) fn policy(&self, domain: usize) -> &CpufreqPolicy {
        &self.kernel.policies[domain]
    }

    /// Takes over what the real schedutil remembers.
    pub(super) fn start_policy(&mut self, domain: usize, raw_khz: Khz, khz: Khz, time: Ns) {
        let sugov = &mut self.kernel.policies[domain].sugov;
        sugov.cached_raw_freq = raw_khz;
        sugov.next_freq = khz;
        sugov.last_freq_update_time = time;
        sugov.limits_changed = false;
        sugov.need_freq_update = false;
    }

    /// A call of schedutil for `cpu`, made by `by`.
    pub(super) fn call_governor(&mut self, by: usize, cpu: usize, time: Ns, flags: u32) {
        self.kernel.this_cpu = CpuId(by as u16);
        self.kernel.cpufreq_update_util_at(CpuId(cpu as u16), time, flags);
        self.kernel.clear_facts();
    }

    /// Makes the one task look like a sleeper that last ran on `prev`.
    pub(super) fn set_sleeper(&mut self, prev: usize, avg: SchedAvg) {
        self.kernel.tasks[self.task].cpu = CpuId(prev as u16);
        let se = self.kernel.se_of(self.task);
        self.kernel.se[se].avg = clamped(avg);
    }

    /// Where EAS would wake the sleeper.
    pub(super) fn place(&mut self, by: usize, prev: usize) -> Option<usize> {
        self.kernel.this_cpu = CpuId(by as u16);
        let choice = self.kernel.find_energy_efficient_cpu(self.task, CpuId(prev as u16), &mut ());
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
