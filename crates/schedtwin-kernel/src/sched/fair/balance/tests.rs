// SPDX-License-Identifier: GPL-2.0-or-later
//! Balancing on small machines: tasks that only compute, driven by the smallest board that delivers
//! interrupts and pays debts.

use super::*;
use crate::Activity;
use crate::config::{Config, MisfitStatus};
use crate::sched::TaskKind;
use crate::sched::topology::parts::{self, Part, machine};
use crate::sched::topology::{SD_BALANCE_FORK, Topology};
use schedtwin_types::{
    BalanceRule, Decision, Fact, FactKind, IpiKind, IrqLine, IrqLines, Mode, NEVER, Ns,
};

const MS: Ns = 1_000_000;

/// A kernel, and when each CPU has paid its debt. Tasks compute for ever.
struct Board {
    kernel: Kernel,
    free_at: Vec<Ns>,
    facts: Vec<Fact>,
}

/// The next event on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Interrupt,
    Proceed,
}

impl Board {
    fn new(parts: &[Part], eas: bool) -> Board {
        let kernel = parts::boot(parts, eas);
        let free_at = vec![0; kernel.cx.platform.device_tree.cpus.len()];
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
        self.kernel.sched.tasks[task].nr_cpus_allowed = mask.weight();
        self.kernel.sched.tasks[task].cpus_mask = mask;
    }

    fn next(&self, cpu: usize) -> Option<(Ns, Event)> {
        let wires = &self.kernel.cx.platform.wires[CpuId(cpu as u16)];
        let pending = wires.ipi_at.iter().copied().min().unwrap().min(wires.clock_event_at);
        let interrupt =
            (pending != NEVER).then(|| (pending.max(self.free_at[cpu]), Event::Interrupt));
        let proceeds = match wires.activity {
            Activity::IdleLoop => true,
            Activity::Task(task) => self.kernel.sched.tasks[task].kind != TaskKind::User,
            Activity::Idle { .. } | Activity::Poll { .. } => false,
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
            let activity = self.kernel.cx.platform.wires[cpu].activity;
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
                    _ => {
                        self.kernel.kthread(cpu, at);
                    }
                },
            }
            self.free_at[c] = at + self.kernel.cx.platform.wires[cpu].debt;
            self.facts.extend_from_slice(self.kernel.facts());
            self.kernel.clear_facts();
            self.verify();
        }
    }

    fn pending_lines(&self, cpu: CpuId, at: Ns) -> IrqLines {
        let wires = &self.kernel.cx.platform.wires[cpu];
        let mut lines = IrqLines::default();
        if wires.clock_event_at <= at {
            lines.insert(IrqLine::ClockEvent);
        }
        for kind in IpiKind::ALL {
            if wires.ipi_at[kind as usize] <= at {
                lines.insert(IrqLine::ipi(kind));
            }
        }
        lines
    }

    /// Asserts that values which are counted twice agree.
    fn verify(&self) {
        let k = &self.kernel;
        for cpu in k.cx.platform.device_tree.all_cpus().iter() {
            assert_eq!(
                k.sched.idle_mask.contains(cpu),
                k.sched.idle_cpu(cpu),
                "idle_mask of {cpu}"
            );
            assert_eq!(
                k.sched.nohz.idle_cpus_mask.contains(cpu),
                k.sched.rq[cpu].nohz_tick_stopped
            );
        }
        assert_eq!(k.sched.nohz.nr_cpus, k.sched.nohz.idle_cpus_mask.weight());
        for (shared, s) in k.sched.topology.shared.iter().enumerate() {
            let members = k.cx.platform.device_tree.all_cpus();
            let members = members
                .iter()
                .filter(|c| k.sched.topology.sd_llc_shared[c.index()] == Some(shared));
            let busy = members.filter(|c| !k.sched.rq[*c].nohz_tick_stopped).count() as u32;
            let used = k.sched.topology.sd_llc_shared.contains(&Some(shared));
            assert!(!used || s.nr_busy_cpus == busy, "{} busy CPUs, not {busy}", s.nr_busy_cpus);
        }
    }

    fn cpus_of(&self, tasks: &[TaskId]) -> Vec<u16> {
        tasks.iter().map(|t| self.kernel.sched.tasks[*t].cpu.0).collect()
    }

    /// Rules of passes that moved something or asked the stopper, since the last call.
    fn rules(&mut self) -> Vec<(&'static str, BalanceRule)> {
        let decisions = self.kernel.take_decisions();
        let of_pass = decisions.into_iter().filter_map(|d| match d.decision {
            Decision::Balance { idle, rule, moved, .. }
                if !moved.is_empty() || rule.text().starts_with("active") =>
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
    let mut board = Board::new(&[Part::of(4, 1024)], false);
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
    assert!(board.rules().iter().all(|r| *r == ("idle", BalanceRule::Overloaded)));
    let kicks = board
        .facts
        .iter()
        .filter(|f| matches!(f.kind, FactKind::Ipi { kind: IpiKind::NohzKick, .. }));
    assert!(kicks.count() >= 1);
}

/// A single running task cannot be pulled: the stopper of its CPU pushes it, at once.
#[test]
fn a_misfit_is_pushed_to_a_big_cpu() {
    for eas in [false, true] {
        let mut board = Board::new(&[Part::of(2, 383), Part::of(2, 1024)], eas);
        assert_eq!(board.kernel.sched.rd.energy_aware, eas);
        let hog = board.hogs(1, &[1])[0];
        board.run_until(100 * MS);
        // Pinned, it is not a misfit: nobody could help.
        assert_eq!(board.kernel.sched.rq[CpuId(1)].misfit_task_load, 0);
        board.allow(hog, &[0, 1, 2, 3]);
        board.run_until(130 * MS);
        assert!(board.cpus_of(&[hog])[0] >= 2, "on {:?}", board.cpus_of(&[hog]));
        assert_eq!(board.rules(), [("idle", BalanceRule::ActiveMisfit)]);
        assert!(!board.kernel.sched.rq[CpuId(1)].active_balance);
        // The bigger CPU is still used up.
        board.run_until(600 * MS);
        assert_eq!(board.kernel.sched.rd.overutilized, eas);
        let on = |f: &&Fact| matches!(f.kind, FactKind::Overutilized { on: true });
        assert_eq!(board.facts.iter().filter(on).count() >= 1, eas);
    }
}

/// Before 6.9 a task that does not fit is a misfit even where nothing is bigger.
#[test]
fn a_misfit_on_the_biggest_cpu() {
    for (status, expected) in
        [(MisfitStatus::AnyTask, true), (MisfitStatus::UnlessOnLargestAllowed, false)]
    {
        let mut board = Board::new(&[Part::of(1, 383), Part::of(1, 1024)], false);
        board.kernel.cx.config.misfit_status = status;
        let task = board.kernel.new_task(None, TaskKind::User);
        let se = board.kernel.sched.tasks[task].se;
        board.kernel.sched.se[se].avg.util_avg = 1000;
        for (cpu, misfit) in [(0, true), (1, expected)] {
            board.kernel.update_misfit_status(Some(task), CpuId(cpu));
            let load = board.kernel.sched.rq[CpuId(cpu)].misfit_task_load;
            assert_eq!(load != 0, misfit, "{status:?} on CPU {cpu}");
        }
    }
}

/// Two tasks, two caches: each gets one, though nobody waits. It takes failures until the stopper is
/// asked.
#[test]
fn running_tasks_are_spread_over_caches() {
    let mut board = Board::new(&[Part::of(2, 1024), Part::of(2, 1024).llc(1)], false);
    let hogs = [board.hogs(1, &[0])[0], board.hogs(1, &[1])[0]];
    board.run_until(20 * MS);
    for hog in hogs {
        board.allow(hog, &[0, 1, 2, 3]);
    }
    board.rules();
    board.run_until(400 * MS);
    let caches: Vec<u16> = board.cpus_of(&hogs).iter().map(|c| c / 2).collect();
    assert_ne!(caches[0], caches[1], "{caches:?}");
    assert_eq!(board.rules(), [("idle", BalanceRule::ActiveFailed)]);
}

/// A pass that finds nothing but pinned tasks tells the level above.
#[test]
fn affinity_is_reported_upwards() {
    let mut board = Board::new(&[Part::of(2, 1024), Part::of(2, 1024).llc(1)], false);
    let hogs = board.hogs(3, &[0]);
    let pkg = board.kernel.sched.topology.domains_of(CpuId(1)).last().unwrap();
    let imbalanced = |k: &Kernel| {
        let group = k.sched.topology[pkg].groups;
        k.sched.topology.capacities[k.sched.topology[group].sgc].imbalance
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
        matches!(d.decision, Decision::Balance { rule: BalanceRule::AllPinned, .. })
    };
    assert!(decisions.iter().filter(pinned).count() > 0);
}

/// A CPU that has run out of work takes some from a neighbour, before it goes idle.
#[test]
fn a_newly_idle_cpu_pulls() {
    let mut board = Board::new(&[Part::of(2, 1024)], false);
    let waiting = board.hogs(3, &[0]);
    let leaving = board.hogs(1, &[1])[0];
    board.run_until(40 * MS);
    for hog in &waiting {
        board.allow(*hog, &[0, 1]);
    }
    // The third quarter of a tick, so that no tick has balanced in between.
    let at = 40 * MS + 1;
    assert_eq!(board.kernel.sched.rq[CpuId(1)].curr, leaving);
    board.rules();
    let t0 = board.kernel.sched.topology[board.kernel.sched.topology.base[1].unwrap()].newidle_call;
    board.kernel.exit(CpuId(1), at);
    let k = &board.kernel;
    let lowest = k.sched.topology.base[1].unwrap();
    assert_eq!(k.sched.topology[lowest].newidle_call, t0 + 1, "a pass, or a skip of NI_RANDOM");
    if k.sched.topology[lowest].max_newidle_lb_cost != 0 {
        // Two CPUs and the own averages read, one task moved, at 200 and 1000 ns.
        assert_eq!(k.sched.topology[lowest].max_newidle_lb_cost, 3 * 200 + 1000);
        assert_eq!(board.rules(), [("newidle", BalanceRule::Overloaded)]);
        assert_eq!(board.kernel.sched.rq[CpuId(1)].nr_running, 1);
    }
}

#[test]
fn wakeups_may_search_an_idle_cache_domain() {
    let mut board = Board::new(&[Part::of(4, 1024)], false);
    assert_eq!(
        board.kernel.sched.topology.shared[0].nr_idle_scan, 0,
        "nothing before the first pass"
    );
    board.hogs(1, &[0]);
    board.run_until(500 * MS);
    let shared = board.kernel.sched.topology.sd_llc_shared[0].unwrap();
    // x = 256 of 1024: 4 · (1024 − 87) / 1024.
    assert_eq!(board.kernel.sched.topology.shared[shared].nr_idle_scan, 3);
}

#[test]
fn a_forked_task_goes_where_it_is_idle() {
    let mut board = Board::new(&[Part::of(2, 1024), Part::of(2, 1024).llc(1)], false);
    board.hogs(1, &[0]);
    board.run_until(50 * MS);
    let top = |k: &Kernel| k.sched.topology.domains_of(CpuId(0)).last().unwrap();
    let parent = board.kernel.sched.rq[CpuId(0)].curr;
    let child = board.kernel.new_task(Some(parent), TaskKind::User);
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
    let dt = machine(&[Part::of(8, 1024)]);
    let topology = Topology::build(&dt, &Config::linux_6_12());
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
    let dt = machine(&[Part::of(2, 1024)]);
    let topology = Topology::build(&dt, &Config::linux_6_12());
    let mut domain = topology[topology.base[0].unwrap()].clone();
    assert!(!update_newidle_cost(&mut domain, 256_000, 2, None, (10, 250)));
    assert_eq!((domain.newidle_call, domain.newidle_success), (513, 258));
    assert!(!update_newidle_cost(&mut domain, 0, 0, None, (260, 250)));
    assert!(update_newidle_cost(&mut domain, 0, 0, None, (261, 250)));
    assert_eq!(domain.max_newidle_lb_cost, 253_000);
    assert_eq!(domain.newidle_call, 513, "a visit without a pass is no attempt");
    for _ in 513..1024 {
        update_newidle_stats(&mut domain, 0, None);
    }
    assert_eq!(
        (domain.newidle_ratio, domain.newidle_call, domain.newidle_success),
        (258, 512, 129)
    );
}

/// With nothing else to do, a run is the same every time, also continued from a copy.
#[test]
fn runs_repeat() {
    let run = |split: Option<Ns>| {
        let mut board = Board::new(&[Part::of(2, 383), Part::of(2, 1024).llc(1)], true);
        let hogs = board.hogs(5, &[0, 1, 2, 3]);
        if let Some(at) = split {
            board.run_until(at);
            board.kernel = board.kernel.clone();
        }
        board.run_until(500 * MS);
        let sums: Vec<u64> = hogs
            .iter()
            .map(|t| board.kernel.sched.se[board.kernel.sched.tasks[*t].se].sum_exec_runtime)
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
    let board = Board::new(&[Part::of(4, 383), Part::of(2, 1024).llc(1)], false);
    let t = &board.kernel.sched.topology;
    let pkg = t.sd_asym_cpucapacity[5].unwrap();
    let capacities: Vec<_> = t
        .groups_of(pkg)
        .map(|sg| &t.capacities[t[sg].sgc])
        .map(|c| (c.capacity, c.min_capacity, c.max_capacity))
        .collect();
    assert_eq!(capacities, [(2048, 1024, 1024), (1532, 383, 383)]);
}
