//! Balancing on small machines: tasks that only compute, driven by the smallest board that delivers
//! interrupts and pays debts.

use super::*;
use crate::config::{Config, FrequencyGovernor};
use crate::device_tree::{DtIdleState, DtPolicy, PathCosts};
use crate::entry::IrqLines;
use crate::sched::topology::tests::machine;
use crate::sched::topology::{Topology, SD_BALANCE_FORK};
use crate::Activity;
use schedtwin_types::{Decision, Fact, FactKind, IpiKind, Mode, Ns, NEVER};

const MS: Ns = 1_000_000;

/// A kernel, and when each CPU has paid its debt. Tasks compute for ever.
struct Board {
    kernel: Kernel,
    free_at: Vec<Ns>,
    facts: Vec<Fact>,
}

/// What happens next on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Interrupt,
    Proceed,
}

impl Board {
    /// `parts` as in the topology tests; CPUs of a capacity share a frequency domain of one step.
    fn new(parts: &[(usize, u32, u16, Option<u16>, u16, u16)], eas: bool) -> Board {
        let mut dt = machine(parts);
        let mut capacities: Vec<u32> = dt.cpus.iter().map(|c| c.capacity).collect();
        capacities.dedup();
        for (policy, capacity) in capacities.iter().enumerate() {
            let cpus = dt.all_cpus().iter().filter(|c| dt.cpus[c.index()].capacity == *capacity);
            let cpus: CpuMask = cpus.collect();
            for cpu in cpus.iter() {
                dt.cpus[cpu.index()].policy = policy;
            }
            dt.policies.push(DtPolicy {
                cpus,
                opps: vec![(1_000_000, 1000 * *capacity as u64)],
                transition_latency: 10_000,
                fast_switch: true,
                dvfs_possible_from_any_cpu: true,
            });
        }
        // The second one is deep enough for the tick to be stopped.
        dt.idle_tables = vec![vec![
            DtIdleState { exit_latency: 1000, target_residency: 1000 },
            DtIdleState { exit_latency: 100_000, target_residency: 5 * MS },
        ]];
        dt.path_costs = PathCosts {
            constant_time: true,
            interrupt: 500,
            schedule: 300,
            balance_per_cpu: 200,
            migrate_task: 1000,
            ..PathCosts::default()
        };
        dt.nr_threads_hint = 16;
        let mut config = Config::linux_6_12();
        if !eas {
            config.cpufreq = FrequencyGovernor::Performance;
        }
        let free_at = vec![0; dt.cpus.len()];
        let mut kernel = Kernel::boot(dt, config);
        kernel.want_decisions = true;
        Board { kernel, free_at, facts: Vec::new() }
    }

    /// Adds tasks that start at 1 ms and may run on `cpus`.
    fn hogs(&mut self, count: usize, cpus: &[u16]) -> Vec<TaskId> {
        let add = |_| {
            let task = self.kernel.boot_thread(MS);
            self.allow(task, cpus);
            task
        };
        (0..count).map(add).collect()
    }

    fn allow(&mut self, task: TaskId, cpus: &[u16]) {
        let mask: CpuMask = cpus.iter().map(|c| CpuId(*c)).collect();
        self.kernel.tasks[task].nr_cpus_allowed = mask.weight();
        self.kernel.tasks[task].cpus_mask = mask;
    }

    fn next(&self, cpu: usize) -> Option<(Ns, Event)> {
        let wires = &self.kernel.wires[CpuId(cpu as u16)];
        let pending = wires.ipi_at.iter().copied().min().unwrap().min(wires.clock_event_at);
        let interrupt = (pending != NEVER).then(|| (pending.max(self.free_at[cpu]), Event::Interrupt));
        let proceeds = match wires.activity {
            Activity::IdleLoop => true,
            Activity::Task(task) => !self.kernel.tasks[task].is_user,
            Activity::Idle { .. } => false,
        };
        let proceed = proceeds.then_some((self.free_at[cpu], Event::Proceed));
        interrupt.into_iter().chain(proceed).min()
    }

    fn run_until(&mut self, end: Ns) {
        loop {
            let cpus = 0..self.free_at.len();
            let next = cpus.filter_map(|c| self.next(c).map(|(at, event)| (at, event, c))).min();
            let Some((at, event, c)) = next.filter(|n| n.0 <= end) else { break };
            let cpu = CpuId(c as u16);
            let activity = self.kernel.wires[cpu].activity;
            match event {
                Event::Interrupt => {
                    let lines = self.pending_lines(cpu, at);
                    match activity {
                        Activity::Idle { .. } => self.kernel.idle_exit(cpu, at, lines),
                        _ => self.kernel.interrupt(cpu, at, lines, Mode::User),
                    }
                }
                Event::Proceed => match activity {
                    Activity::IdleLoop => self.kernel.idle_enter(cpu, at),
                    _ => self.kernel.kthread(cpu, at),
                },
            }
            self.free_at[c] = at + self.kernel.wires[cpu].debt;
            self.facts.extend_from_slice(self.kernel.facts());
            self.kernel.clear_facts();
            self.verify();
        }
    }

    fn pending_lines(&self, cpu: CpuId, at: Ns) -> IrqLines {
        let wires = &self.kernel.wires[cpu];
        let mut lines = IrqLines::default();
        if wires.clock_event_at <= at {
            lines.insert(IrqLines::CLOCK_EVENT);
        }
        for kind in IpiKind::ALL {
            if wires.ipi_at[kind as usize] <= at {
                lines.insert(IrqLines::ipi(kind));
            }
        }
        lines
    }

    /// What is counted twice agrees.
    fn verify(&self) {
        let k = &self.kernel;
        for cpu in k.device_tree.all_cpus().iter() {
            assert_eq!(k.idle_mask.contains(cpu), k.idle_cpu(cpu), "idle_mask of {cpu}");
            assert_eq!(k.nohz.idle_cpus_mask.contains(cpu), k.rq[cpu].nohz_tick_stopped);
        }
        assert_eq!(k.nohz.nr_cpus, k.nohz.idle_cpus_mask.weight());
        for (shared, s) in k.topology.shared.iter().enumerate() {
            let members = k.device_tree.all_cpus();
            let members = members.iter().filter(|c| k.topology.sd_llc_shared[c.index()] == Some(shared));
            let busy = members.filter(|c| !k.rq[*c].nohz_tick_stopped).count() as u32;
            let used = k.topology.sd_llc_shared.contains(&Some(shared));
            assert!(!used || s.nr_busy_cpus == busy, "{} busy CPUs, not {busy}", s.nr_busy_cpus);
        }
    }

    fn cpus_of(&self, tasks: &[TaskId]) -> Vec<u16> {
        tasks.iter().map(|t| self.kernel.tasks[*t].cpu.0).collect()
    }

    /// Rules of passes that moved something or asked the stopper, since the last call.
    fn rules(&mut self) -> Vec<(&'static str, &'static str)> {
        let decisions = self.kernel.take_decisions();
        let of_pass = decisions.into_iter().filter_map(|d| match d.decision {
            Decision::Balance { idle, rule, moved, .. }
                if !moved.is_empty() || rule.starts_with("active") =>
            {
                Some((idle, rule))
            }
            _ => None,
        });
        of_pass.collect()
    }
}

#[test]
fn idle_cpus_pull_from_a_crowded_one() {
    let mut board = Board::new(&[(4, 1024, 0, None, 0, 0)], false);
    let hogs = board.hogs(4, &[0]);
    board.run_until(50 * MS);
    assert_eq!(board.cpus_of(&hogs), [0, 0, 0, 0]);
    assert!(board.rules().is_empty());
    for hog in &hogs {
        board.allow(*hog, &[0, 1, 2, 3]);
    }
    board.run_until(150 * MS);
    let mut cpus = board.cpus_of(&hogs);
    cpus.sort_unstable();
    assert_eq!(cpus, [0, 1, 2, 3]);
    // The tick of CPU 0 kicked an idle CPU, which pulled for itself and the others.
    assert!(board.rules().iter().all(|r| *r == ("idle", "find_src_group: overloaded")));
    let kicks = board.facts.iter().filter(
        |f| matches!(f.kind, FactKind::Ipi { kind: IpiKind::NohzKick, .. }),
    );
    assert!(kicks.count() >= 1);
}

/// A single running task cannot be pulled: the stopper of its CPU pushes it, at once.
#[test]
fn a_misfit_is_pushed_to_a_big_cpu() {
    for eas in [false, true] {
        let mut board = Board::new(&[(2, 383, 0, None, 0, 0), (2, 1024, 0, None, 0, 0)], eas);
        assert_eq!(board.kernel.rd.energy_aware, eas);
        let hog = board.hogs(1, &[1])[0];
        board.run_until(100 * MS);
        // Pinned, it is not a misfit: nobody could help.
        assert_eq!(board.kernel.rq[CpuId(1)].misfit_task_load, 0);
        board.allow(hog, &[0, 1, 2, 3]);
        board.run_until(130 * MS);
        assert!(board.cpus_of(&[hog])[0] >= 2, "on {:?}", board.cpus_of(&[hog]));
        assert_eq!(board.rules(), [("idle", "active balance: misfit")]);
        assert!(!board.kernel.rq[CpuId(1)].active_balance);
        // The bigger CPU is still used up.
        board.run_until(600 * MS);
        assert_eq!(board.kernel.rd.overutilized, eas);
        let on = |f: &&Fact| matches!(f.kind, FactKind::Overutilized { on: true });
        assert_eq!(board.facts.iter().filter(on).count() >= 1, eas);
    }
}

/// Two tasks, two caches: each gets one, though nobody waits. It takes failures until the stopper is
/// asked.
#[test]
fn running_tasks_are_spread_over_caches() {
    let mut board = Board::new(&[(2, 1024, 0, None, 0, 0), (2, 1024, 0, None, 1, 0)], false);
    let hogs = [board.hogs(1, &[0])[0], board.hogs(1, &[1])[0]];
    board.run_until(20 * MS);
    for hog in hogs {
        board.allow(hog, &[0, 1, 2, 3]);
    }
    board.rules();
    board.run_until(400 * MS);
    let caches: Vec<u16> = board.cpus_of(&hogs).iter().map(|c| c / 2).collect();
    assert_ne!(caches[0], caches[1], "{caches:?}");
    assert_eq!(board.rules(), [("idle", "active balance: failed too often")]);
}

/// A pass that finds nothing but pinned tasks tells the level above.
#[test]
fn affinity_is_reported_upwards() {
    let mut board = Board::new(&[(2, 1024, 0, None, 0, 0), (2, 1024, 0, None, 1, 0)], false);
    let hogs = board.hogs(3, &[0]);
    let pkg = board.kernel.topology.domains_of(CpuId(1)).last().unwrap();
    let imbalanced = |k: &Kernel| {
        let group = k.topology[pkg].groups;
        k.topology.capacities[k.topology[group].sgc].imbalance
    };
    let mut seen = Vec::new();
    for ms in 1..=300 {
        board.run_until(ms * MS);
        seen.push(imbalanced(&board.kernel));
    }
    assert_eq!(board.cpus_of(&hogs), [0, 0, 0]);
    // CPU 0 finds its domain balanced, from its own point of view, and takes it back.
    assert!(seen.contains(&true) && !seen[299], "{seen:?}");
    let decisions = board.kernel.take_decisions();
    let pinned = |d: &&schedtwin_types::DecisionRecord| {
        matches!(d.decision, Decision::Balance { rule: "all tasks are pinned", .. })
    };
    assert!(decisions.iter().filter(pinned).count() > 0);
}

/// A CPU that has run out of work takes some from a neighbour, before it goes idle.
#[test]
fn a_newly_idle_cpu_pulls() {
    let mut board = Board::new(&[(2, 1024, 0, None, 0, 0)], false);
    let waiting = board.hogs(3, &[0]);
    let leaving = board.hogs(1, &[1])[0];
    board.run_until(40 * MS);
    for hog in &waiting {
        board.allow(*hog, &[0, 1]);
    }
    // The third quarter of a tick, so that no tick has balanced in between.
    let at = 40 * MS + 1;
    assert_eq!(board.kernel.rq[CpuId(1)].curr, leaving);
    board.rules();
    let t0 = board.kernel.topology[board.kernel.topology.base[1].unwrap()].newidle_call;
    board.kernel.exit(CpuId(1), at);
    let k = &board.kernel;
    let lowest = k.topology.base[1].unwrap();
    assert_eq!(k.topology[lowest].newidle_call, t0 + 1, "a pass, or a skip of NI_RANDOM");
    if k.topology[lowest].max_newidle_lb_cost != 0 {
        // Two CPUs and the own averages read, one task moved, at 200 and 1000 ns.
        assert_eq!(k.topology[lowest].max_newidle_lb_cost, 3 * 200 + 1000);
        assert_eq!(board.rules(), [("newidle", "find_src_group: overloaded")]);
        assert_eq!(board.kernel.rq[CpuId(1)].nr_running, 1);
    }
}

#[test]
fn wakeups_may_search_an_idle_cache_domain() {
    let mut board = Board::new(&[(4, 1024, 0, None, 0, 0)], false);
    assert_eq!(board.kernel.topology.shared[0].nr_idle_scan, 0, "nothing before the first pass");
    board.hogs(1, &[0]);
    board.run_until(500 * MS);
    let shared = board.kernel.topology.sd_llc_shared[0].unwrap();
    // x = 256 of 1024: 4 · (1024 − 87) / 1024.
    assert_eq!(board.kernel.topology.shared[shared].nr_idle_scan, 3);
}

#[test]
fn a_forked_task_goes_where_it_is_idle() {
    let mut board = Board::new(&[(2, 1024, 0, None, 0, 0), (2, 1024, 0, None, 1, 0)], false);
    board.hogs(1, &[0]);
    board.run_until(50 * MS);
    let top = |k: &Kernel| k.topology.domains_of(CpuId(0)).last().unwrap();
    let parent = board.kernel.rq[CpuId(0)].curr;
    let child = board.kernel.new_task(Some(parent), true);
    board.allow(child, &[0, 1, 2, 3]);
    let place = |board: &mut Board, task| {
        let sd = top(&board.kernel);
        board.kernel.sched_balance_find_dst_cpu(sd, task, CpuId(0), CpuId(0), SD_BALANCE_FORK).0
    };
    // The other cache has more idle CPUs; of those the one that went idle last.
    let chosen = place(&mut board, child);
    assert!(chosen >= 2, "{chosen}");
    // Affinity leaves the own cache: its idle CPU.
    board.allow(child, &[0, 1]);
    assert_eq!(place(&mut board, child), 1);
    board.allow(child, &[0]);
    assert_eq!(place(&mut board, child), 0);
}

/// Intervals of behaviour notes 04 §12: 8 CPUs, 8 and 16 ms.
#[test]
fn intervals() {
    let dt = machine(&[(8, 1024, 0, None, 0, 0)]);
    let topology = Topology::build(&dt);
    let mut domain = topology[topology.base[0].unwrap()].clone();
    let table = [
        // HZ, idle and busy at 8 ms, idle and busy at 16 ms
        (250, [2, 31, 4, 63]),
        (1000, [8, 127, 16, 255]),
        (100, [1, 12, 2, 25]),
    ];
    for (hz, expected) in table {
        let mut got = Vec::new();
        for interval in [domain.min_interval, domain.max_interval] {
            domain.balance_interval = interval;
            for busy in [false, true] {
                got.push(get_sd_balance_interval(&domain, busy, hz, hz * 8 / 10));
            }
        }
        assert_eq!(got, expected, "HZ={hz}");
    }
    // A tenth of a second per CPU is the longest.
    domain.balance_interval = 512;
    assert_eq!(get_sd_balance_interval(&domain, true, 250, 200), 200);
}

#[test]
fn the_longest_newidle_pass_is_forgotten_slowly() {
    let dt = machine(&[(2, 1024, 0, None, 0, 0)]);
    let topology = Topology::build(&dt);
    let mut domain = topology[topology.base[0].unwrap()].clone();
    assert!(!update_newidle_cost(&mut domain, 256_000, 2, 10, 250));
    assert_eq!((domain.newidle_call, domain.newidle_success), (513, 258));
    assert!(!update_newidle_cost(&mut domain, 0, 0, 260, 250));
    assert!(update_newidle_cost(&mut domain, 0, 0, 261, 250));
    assert_eq!(domain.max_newidle_lb_cost, 253_000);
    assert_eq!(domain.newidle_call, 513, "a visit without a pass is no attempt");
    for _ in 513..1024 {
        update_newidle_stats(&mut domain, 0);
    }
    assert_eq!((domain.newidle_ratio, domain.newidle_call, domain.newidle_success), (258, 512, 129));
}

/// With nothing else to do, a run is the same every time, also continued from a copy.
#[test]
fn runs_repeat() {
    let run = |split: Option<Ns>| {
        let mut board = Board::new(&[(2, 383, 0, None, 0, 0), (2, 1024, 0, None, 1, 0)], true);
        let hogs = board.hogs(5, &[0, 1, 2, 3]);
        if let Some(at) = split {
            board.run_until(at);
            board.kernel = board.kernel.clone();
        }
        board.run_until(500 * MS);
        let sums: Vec<u64> = hogs
            .iter()
            .map(|t| board.kernel.se[board.kernel.tasks[*t].se].sum_exec_runtime)
            .collect();
        (board.facts, sums)
    };
    let whole = run(None);
    assert!(whole == run(Some(123 * MS)));
    assert!(whole.0.iter().any(|f| matches!(f.kind, FactKind::Balance { moved: 1.., .. })));
}

/// Boot adds capacities up.
#[test]
fn boot_knows_capacities() {
    let board = Board::new(&[(4, 383, 0, None, 0, 0), (2, 1024, 0, None, 1, 0)], false);
    let t = &board.kernel.topology;
    let pkg = t.sd_asym_cpucapacity[5].unwrap();
    let capacities: Vec<_> = t
        .groups_of(pkg)
        .map(|sg| &t.capacities[t[sg].sgc])
        .map(|c| (c.capacity, c.min_capacity, c.max_capacity))
        .collect();
    assert_eq!(capacities, [(2048, 1024, 1024), (1532, 383, 383)]);
}


// ORACLE-TEMP-BEGIN
#[test]
fn oracle_dump() {
    use std::fmt::Write;
    let Ok(path) = std::env::var("BAL_ORACLE") else { return };
    let mut out = String::new();
    let mut seed: u64 = 88172645463325252;
    let mut rnd = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) % n
    };
    let machines: Vec<Vec<(usize, u32, u16, Option<u16>, u16, u16)>> = vec![
        vec![(8, 1024, 0, None, 0, 0)],
        vec![(2, 1024, 0, None, 0, 0), (2, 1024, 0, None, 1, 0), (2, 1024, 0, None, 2, 0), (2, 1024, 0, None, 3, 0)],
        vec![(1, 1024, 0, None, 0, 0), (2, 1024, 0, None, 1, 0), (5, 1024, 0, None, 2, 0)],
        vec![(4, 1024, 0, None, 0, 0), (4, 1024, 0, None, 1, 0)],
    ];
    let mut boards: Vec<Kernel> = machines.iter().map(|m| Board::new(m, false).kernel).collect();
    let stamp_values = [0u64, 5, 9];
    for case in 0..300_000 {
        let which = rnd(boards.len() as u64) as usize;
        let k = &mut boards[which];
        let dst = CpuId(rnd(8) as u16);
        let sd = k.topology.domains_of(dst).find(|s| k.topology[*s].span.weight() == 8).unwrap();
        let mut flags = 0u32;
        for f in [0x20u32, 0x200, 0x4000] { if rnd(3) == 0 { flags |= f; } }
        let haspar = rnd(2) == 0;
        let pct = [110, 117, 117, 125][rnd(4) as usize];
        let eas = rnd(3) == 0;
        let ou = rnd(2) == 0;
        let llcm = rnd(2) == 0;
        let idle = [CpuIdleType::NotIdle, CpuIdleType::Idle, CpuIdleType::NewlyIdle][rnd(3) as usize];
        let imb_numa = rnd(6) as u32;
        let keep_parent = k.topology[sd].parent;
        k.topology[sd].flags = flags;
        k.topology[sd].imbalance_pct = pct;
        k.topology[sd].imb_numa_nr = imb_numa;
        k.topology[sd].parent = haspar.then_some(sd);
        k.rd.energy_aware = eas;
        k.rd.overutilized = ou;
        k.rd.overloaded = false;
        k.topology.sd_llc_size[dst.index()] = if llcm { 8 } else { 1 };
        k.topology.sd_llc_shared[dst.index()] = Some(0);
        k.topology.shared[0].nr_idle_scan = u32::MAX;
        let mut env = LbEnv::new(sd, dst, idle);
        env.cpus = CpuMask::first(8);
        if rnd(4) == 0 { let c = CpuId(rnd(8) as u16); if c != dst { env.cpus.remove(c); } }
        let bits: u64 = env.cpus.iter().map(|c| 1u64 << c.0).sum();
        let kind = rnd(2);
        write!(out, "{kind} {flags:x} {pct} {} {} 8 {} {} {} {} {imb_numa} {bits} ", idle as u8, dst.0, eas as u8, ou as u8, haspar as u8, llcm as u8).unwrap();
        let mut groups: Vec<_> = k.topology.groups_of(sd).collect();
        groups.sort_by_key(|g| k.topology[*g].first_cpu);
        write!(out, "{} ", groups.len()).unwrap();
        let style = rnd(4);
        for g in &groups {
            let gf = if rnd(3) == 0 { 0x1217u32 } else { 0 };
            k.topology[*g].flags = gf;
            let (first, weight, sgc) = (k.topology[*g].first_cpu, k.topology[*g].group_weight, k.topology[*g].sgc);
            let min = 200 + rnd(824);
            let max = min + rnd(1025 - min);
            let cap = if rnd(2) == 0 { weight as u64 * 1024 } else { weight as u64 * (min + max) / 2 };
            let imb = rnd(12) == 0;
            let s = &mut k.topology.capacities[sgc];
            (s.capacity, s.min_capacity, s.max_capacity, s.imbalance) = (cap, min, max, imb);
            write!(out, "{} {} {gf:x} {cap} {min} {max} {} ", first.0, weight, imb as u8).unwrap();
        }
        k.idle_mask = CpuMask::EMPTY;
        for c in 0..8u16 {
            let cpu = CpuId(c);
            let nr = match style { 0 => rnd(2), 1 => rnd(3), 2 => 1 + rnd(3), _ => rnd(5) } as u32;
            let h = if rnd(6) == 0 { nr.saturating_sub(1) } else { nr };
            let util = match rnd(3) { 0 => rnd(1100), 1 => rnd(300), _ => (h as u64 * 500).min(1024) };
            let runnable = match rnd(3) { 0 => rnd(3000), 1 => util, _ => nr as u64 * 1000 };
            let load = match rnd(3) { 0 => rnd(4000), 1 => nr as u64 * 1024, _ => rnd(200) };
            let arch = if rnd(3) == 0 { 400 + rnd(625) } else { 1024 };
            let cap = if rnd(3) == 0 { 1 + rnd(arch) } else { arch };
            let misfit = if nr > 0 && rnd(8) == 0 { 1 + rnd(1024) } else { 0 };
            let busy = nr > 0 || rnd(5) == 0;
            let state = rnd(3) as i32 - 1;
            let stamp = stamp_values[rnd(3) as usize];
            let avg = &mut k.cfs[crate::sched::CfsRqId::root(cpu)];
            avg.avg.load_avg = load;
            avg.avg.util_avg = util;
            avg.avg.runnable_avg = runnable;
            avg.avg.util_est = 0;
            avg.h_nr_queued = h;
            let rq = &mut k.rq[cpu];
            rq.nr_running = nr;
            rq.misfit_task_load = misfit;
            rq.cpu_capacity = cap;
            rq.arch_capacity = arch;
            rq.curr = if busy { TaskId(1) } else { TaskId(0) };
            rq.idle_stamp = stamp;
            k.wires[cpu].activity = if state >= 0 { Activity::Idle { state: state as u8 } } else { Activity::IdleLoop };
            k.refresh_idle(cpu);
            write!(out, "{load} {util} {runnable} {nr} {h} {misfit} {cap} {arch} {} {state} {stamp} ", busy as u8).unwrap();
        }
        let index = |g: crate::sched::topology::GroupId| groups.iter().position(|x| *x == g).unwrap() as i32;
        if kind == 0 {
            let stats = k.read_sd_lb_stats(&env);
            k.commit_sd_lb_stats(&env, &stats);
            let found = k.find_src_group(&env, &stats);
            env.imbalance = found.imbalance;
            env.migration_type = found.migration_type.unwrap_or(env.migration_type);
            let rq = found.group.and_then(|g| k.find_src_rq(&env, g));
            let mig = match env.migration_type { MigrationType::Load => 0, MigrationType::Util => 1, MigrationType::Task => 2, MigrationType::Misfit => 3 };
            writeln!(out, "= {} {} {} {} {} {} {}", found.group.map_or(-1, index), found.imbalance,
                if found.group.is_some() { mig } else { -1 }, rq.map_or(-1, |c| c.0 as i32),
                if haspar { -1 } else { k.rd.overloaded as i32 }, if eas { k.rd.overutilized as i32 } else { -1 },
                k.topology.shared[0].nr_idle_scan as i32).unwrap();
        } else {
            let task = TaskId(9 + 0 * case);
            while k.tasks.len() <= 9 { k.new_task(None, true); }
            let allowed = if rnd(2) == 0 { 255 } else { 1 + rnd(255) };
            k.tasks[task].cpus_mask = (0..8).filter(|c| allowed >> c & 1 != 0).map(CpuId).collect();
            let util = rnd(1100);
            let se = k.tasks[task].se;
            k.se[se].avg.util_avg = util;
            k.se[se].avg.util_est = 0;
            k.se[se].avg.last_update_time = 0;
            let g = if allowed == 0 { None } else { k.find_dst_group(sd, task, dst) };
            let c = g.map(|g| k.find_dst_group_cpu(g, task, dst));
            writeln!(out, "{allowed} {util} = {} {}", g.map_or(-1, index), c.map_or(-1, |c| c.0 as i32)).unwrap();
        }
        k.topology[sd].parent = keep_parent;
        k.clear_facts();
    }
    std::fs::write(path, out).unwrap();
}
// ORACLE-TEMP-END
