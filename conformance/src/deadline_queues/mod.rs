// SPDX-License-Identifier: GPL-2.0-or-later
//! The queues and timers of the deadline class as a [`Subject`]: the world of `shim.c`, executed with our
//! `sched/deadline.rs`.
//!
//! Eight CPUs (equal ones, of three sizes, or with two caches) and up to [`TASKS_MAX`] tasks with reservations of all kinds. Each CPU
//! has a fair task, which runs where no other does. Operations are what happens to CPUs: wakeups from other CPUs,
//! switches, ticks, yields, changes of affinity and reservation, tasks that leave the class and come back, and both timers, on time
//! or late. Compared after each: the queues and the pushable tasks of all CPUs in order, their bandwidths, `cpudl` and
//! `cpupri`, who runs, who is to give way, the overloaded CPUs, and every task with its timers.
//!
//! *Fair servers* (`fair-server`): fair tasks come and go and run, CPUs idle, and the servers' timers fire, beside all that.
//!
//! **Not compared here:** the arithmetic at all its edges (L0 `deadline`), PELT, boosted tasks and reclaiming, which no kernel here
//! models, and CPUs that go offline.

mod draw;
mod mutations;

use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_7_3, extract, oracle};
use crate::rt::{
    bits_of, config_of, copy_without_includes, extract_classes, machine, mask_of, wakes_of,
};
use extract::Pieces;
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::FairServerForm;
use schedtwin_kernel::sched::Class;
use schedtwin_kernel::sched::deadline::conformance::DlSteps;
use schedtwin_kernel::sched::rt::conformance::RtSteps;
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, CpuMask, DlReservation, Policy, SchedAttr, TaskId};
use std::path::{Path, PathBuf};

pub use crate::rt::{LINUX_6_1, LINUX_6_12, LINUX_7_3};

// Operation numbers, as in `shim.c`.
const START: usize = 0;
const CPU: usize = 1;
const TASK: usize = 2;
const WAKE: usize = 3;
const SCHEDULE: usize = 4;
const TICK: usize = 5;
const YIELD: usize = 6;
const AFFINITY: usize = 7;
const RESERVE: usize = 8;
const LEAVE: usize = 9;
const REPLENISH: usize = 10;
const ZERO_LAG: usize = 11;
const FIND: usize = 12;
const FAIR: usize = 13;
const FAIR_RAN: usize = 14;
const IDLE_TICK: usize = 15;
const SERVER_TIMER: usize = 16;
const SERVER_ZERO_LAG: usize = 17;

/// CPUs of every machine.
const CPUS: usize = 8;
const CPU_NAMES: [&str; CPUS] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
/// Most tasks of a sequence.
const TASKS_MAX: usize = 10;
const TASK_NAMES: [&str; TASKS_MAX] = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10"];
/// Operations of a sequence after the tasks.
const STEPS: u64 = 100;

/// Eight CPUs and their deadline tasks; with `SERVERS` their fair servers, too.
pub struct DeadlineQueues<const FORM: u8, const SERVERS: bool> {
    kernel: Kernel,
    tasks: Vec<TaskId>,
    /// Of each CPU, the fair task beside the tasks by number.
    fair: Vec<TaskId>,
    /// Of each CPU, a task that has left the class.
    left: [Option<TaskId>; CPUS],
    /// With servers: the CPUs that have fair tasks.
    has_fair: [bool; CPUS],
    now: u64,
    /// Generator only: tasks to come.
    planned: u64,
}

/// The class of 6.1.
pub type DeadlineQueues61 = DeadlineQueues<LINUX_6_1, false>;
/// That of 6.12.
pub type DeadlineQueues612 = DeadlineQueues<LINUX_6_12, false>;
/// That of 7.3.
pub type DeadlineQueues73 = DeadlineQueues<LINUX_7_3, false>;
/// The fair servers of 6.12.
pub type FairServer612 = DeadlineQueues<LINUX_6_12, true>;
/// Those of 7.3.
pub type FairServer73 = DeadlineQueues<LINUX_7_3, true>;

impl<const FORM: u8, const SERVERS: bool> DeadlineQueues<FORM, SERVERS> {
    fn boot(number: u64, runtime: u64, period: u64) -> Kernel {
        let mut config = config_of(FORM);
        (config.fair_server_runtime, config.fair_server_period) = (runtime, period.max(1));
        config.rt_runtime = None;
        if FORM == LINUX_7_3 {
            config.fair_server_form = FairServerForm::V7_3;
        }
        Kernel::boot(machine(number), config)
    }

    fn steps(&mut self) -> DlSteps<'_> {
        DlSteps(&mut self.kernel)
    }

    fn curr(&self, cpu: usize) -> TaskId {
        self.kernel.inside().rq[CpuId(cpu as u16)].curr
    }

    fn class(&self, task: TaskId) -> Class {
        self.kernel.inside().tasks[task].class
    }

    /// A task's number: 1 and up; 0: none of the tasks.
    fn number_of(&self, task: TaskId) -> u64 {
        self.tasks.iter().position(|&other| other == task).map_or(0, |at| at as u64 + 1)
    }

    fn schedule(&mut self, cpu: usize, sleeps: bool, fair: bool) {
        let fair = if SERVERS { self.has_fair[cpu] } else { fair };
        let lower = match (self.left[cpu], fair) {
            (Some(left), _) => left,
            (None, true) => self.fair[cpu],
            (None, false) => TaskId::IDLE,
        };
        self.steps().schedule(sleeps, lower);
    }

    fn report_task(&mut self, number: usize, out: &mut Out) {
        let (task, name) = (self.tasks[number], TASK_NAMES[number]);
        let [replenished, zero_lag] = self.steps().timers(task);
        let t = &self.kernel.inside().tasks[task];
        out.word(name, "runtime", t.dl.runtime as u64);
        out.word(name, "deadline", t.dl.deadline);
        let flags = [t.dl.throttled, t.dl.yielded, t.dl.non_contending, t.dl.queued];
        let flags = (8..).zip(flags).map(|(bit, set)| (set as u64) << bit).sum::<u64>();
        out.word(name, "state", t.cpu.0 as u64 | flags);
        out.word(name, "dl_timer", replenished.unwrap_or(0));
        out.word(name, "inactive_timer", zero_lag.unwrap_or(0));
    }

    fn report(&mut self, out: &mut Out) {
        let fold = |digest: u64, number: u64| (digest ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for (cpu, name) in CPU_NAMES.iter().enumerate() {
            let id = CpuId(cpu as u16);
            let state = self.steps().state(id);
            let level = RtSteps(&mut self.kernel).state(id).level;
            let digest = |list: &[TaskId]| list.iter().map(|t| self.number_of(*t)).fold(0, fold);
            let number = |node: &Option<TaskId>| node.map_or(99, |task| self.number_of(task));
            out.word(name, "queue", state.queue.iter().map(number).fold(0, fold));
            out.word(name, "pushable", digest(&state.pushable));
            out.word(name, "earliest", state.earliest.unwrap_or(0));
            out.word(name, "level", level as u64);
            out.word(name, "curr", self.number_of(self.curr(cpu)));
            let rq = &self.kernel.inside().rq[id];
            out.word(name, "state", rq.need_resched as u64 | (rq.nr_running as u64) << 1);
            out.word(name, "this_bw", state.this_bw);
            out.word(name, "running_bw", state.running_bw);
            if SERVERS {
                let server = self.steps().server(id);
                out.word(name, "server.runtime", server.runtime as u64);
                out.word(name, "server.deadline", server.deadline);
                out.word(name, "server.state", server.state);
                out.word(name, "server.dl_timer", server.timers[0].unwrap_or(0));
                out.word(name, "server.inactive", server.timers[1].unwrap_or(0));
            }
        }
        let rd = self.kernel.inside().rd;
        out.word("rd", "dlo_mask", bits_of(&rd.dlo_mask));
        out.word("rd", "total_bw", rd.dl_bw.total_bw);
        for number in 0..self.tasks.len() {
            self.report_task(number, out);
        }
    }
}

fn reservation(args: &[u64]) -> DlReservation {
    DlReservation { runtime: args[0], deadline: args[1], period: args[2] }
}

impl<const FORM: u8, const SERVERS: bool> Subject for DeadlineQueues<FORM, SERVERS> {
    const NAME: &'static str = match FORM {
        LINUX_7_3 if SERVERS => "fair-server-7.3",
        _ if SERVERS => "fair-server",
        LINUX_6_1 => "deadline-queues-6.1",
        LINUX_7_3 => "deadline-queues-7.3",
        _ => "deadline-queues",
    };
    const TREE: &'static str = match FORM {
        LINUX_6_1 => TREE_6_1,
        LINUX_7_3 => TREE_7_3,
        _ => TREE,
    };
    const OPS: &'static [OpSpec] = &[
        OpSpec { name: "start", args: &["asymmetric", "machine", "runtime", "period"] },
        OpSpec { name: "cpu", args: &["cpu", "capacity", "sd0", "sd1", "sd2"] },
        OpSpec { name: "task", args: &["cpu", "mask", "runtime", "deadline", "period"] },
        OpSpec { name: "wake", args: &["now", "this", "task"] },
        OpSpec { name: "schedule", args: &["now", "cpu", "sleeps", "fair"] },
        OpSpec { name: "tick", args: &["now", "cpu"] },
        OpSpec { name: "yield", args: &["now", "cpu"] },
        OpSpec { name: "affinity", args: &["now", "cpu", "mask"] },
        OpSpec { name: "reserve", args: &["now", "cpu", "runtime", "deadline", "period"] },
        OpSpec { name: "leave", args: &["now", "cpu"] },
        OpSpec { name: "replenish", args: &["now", "this", "task"] },
        OpSpec { name: "zero-lag", args: &["now", "this", "task"] },
        OpSpec { name: "find", args: &["now", "this", "task"] },
        OpSpec { name: "fair", args: &["now", "cpu", "comes"] },
        OpSpec { name: "fair-ran", args: &["now", "cpu", "delta"] },
        OpSpec { name: "idle-tick", args: &["now", "cpu"] },
        OpSpec { name: "server-timer", args: &["now", "cpu"] },
        OpSpec { name: "server-zero-lag", args: &["now", "cpu"] },
    ];
    const SOURCES: Sources = Sources { modules: &["rt", "deadline_queues"], kernel: None };
    const MUTATIONS: &'static [Mutation] = match FORM {
        LINUX_7_3 if SERVERS => mutations::FAIR_SERVER_7_3,
        _ if SERVERS => mutations::FAIR_SERVER,
        LINUX_6_1 => mutations::LINUX_6_1,
        LINUX_7_3 => mutations::LINUX_7_3,
        _ => mutations::DEADLINE_QUEUES,
    };
    const GOLDEN_SHOWN: u64 = 1;
    const GOLDEN_CASES: u64 = 4_000;

    fn new() -> Self {
        DeadlineQueues {
            kernel: Self::boot(0, 0, 1),
            tasks: Vec::new(),
            fair: Vec::new(),
            left: [None; CPUS],
            has_fair: [false; CPUS],
            now: 0,
            planned: 0,
        }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let arg = &record.args;
        let this = CpuId(arg[1] as u16);
        if record.op >= WAKE {
            self.now = arg[0];
            self.steps().enter(arg[0], this);
        }
        let cpu = this.index();
        match record.op {
            START => {
                self.kernel = Self::boot(arg[1], arg[2], arg[3]);
                return;
            }
            CPU => {
                let cpu = CpuId(arg[0] as u16);
                RtSteps(&mut self.kernel).set_wake_affine(cpu, &wakes_of(&arg[2..5]));
                let task = self.steps().new_task(cpu, CpuMask::first(CPUS), None);
                self.fair.push(task);
                return;
            }
            TASK => {
                let (cpu, mask) = (CpuId(arg[0] as u16), mask_of(arg[1]));
                let task = self.steps().new_task(cpu, mask, Some(&reservation(&arg[2..])));
                self.tasks.push(task);
                return;
            }
            WAKE => {
                let task = self.tasks[arg[2] as usize];
                self.steps().wake(task);
            }
            SCHEDULE => self.schedule(cpu, arg[2] != 0, arg[3] != 0),
            TICK => self.steps().tick(),
            YIELD => self.steps().yield_task(),
            AFFINITY => self.steps().set_affinity(mask_of(arg[2])),
            RESERVE => {
                let curr = self.curr(cpu);
                self.left[cpu].take_if(|left| *left == curr);
                let attr = SchedAttr {
                    policy: Policy::Deadline,
                    dl: reservation(&arg[2..]),
                    ..SchedAttr::default()
                };
                self.steps().reserve(&attr);
            }
            LEAVE => {
                self.left[cpu] = Some(self.curr(cpu));
                self.steps().leave();
            }
            REPLENISH => {
                let task = self.tasks[arg[2] as usize];
                self.steps().replenish(task);
            }
            ZERO_LAG => {
                let task = self.tasks[arg[2] as usize];
                self.steps().zero_lag(task);
            }
            FIND => {
                let task = self.tasks[arg[2] as usize];
                let found = self.steps().find_later_rq(task);
                out.word("", "result", found.map_or(u64::MAX, |cpu| cpu.0 as u64));
            }
            FAIR => {
                self.has_fair[cpu] = arg[2] != 0;
                self.steps().fair(arg[2] != 0);
            }
            FAIR_RAN => self.steps().fair_ran(arg[2] as i64),
            IDLE_TICK => self.steps().idle_tick(),
            SERVER_TIMER => self.steps().server_timer(),
            SERVER_ZERO_LAG => self.steps().server_zero_lag(),
            _ => unreachable!("an operation of the list"),
        }
        self.report(out);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        let step = step as u64;
        if step == 0 {
            return Some(self.draw_start(rng));
        }
        if step <= CPUS as u64 {
            return Some(self.draw_cpu(step as u16 - 1, rng));
        }
        let step = step - 1 - CPUS as u64;
        if step < self.planned {
            return Some(draw::task(rng));
        }
        if step - self.planned == STEPS {
            return None;
        }
        Some(self.draw_step(rng))
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        extract_classes(tree, build_dir)?;
        for name in ["deadline.c", "cpudeadline.c"] {
            copy_without_includes(tree, build_dir, name)?;
        }
        let mut pieces = Pieces::default();
        let header = extract::read(tree, "include/linux/sched/deadline.h")?;
        pieces.add(extract::function, &header, &["dl_time_before"])?;
        // 7.3 has these in headers, others in deadline.c.
        let moved = ["dl_server", "dl_task_of", "dl_is_implicit"];
        pieces.add_if_there(extract::function, &header, &moved);
        let sched = extract::read(tree, "kernel/sched/sched.h")?;
        let functions = ["dl_entity_is_special", "dl_entity_preempt", "dl_task_fits_capacity"];
        pieces.add(extract::function, &sched, &functions)?;
        pieces.add_if_there(extract::function, &sched, &["dl_server_active"]);
        pieces.write(build_dir, "sched_extract.h")?;
        let mut idle = Pieces::default();
        if FORM == LINUX_7_3 {
            let source = extract::read(tree, "kernel/sched/idle.c")?;
            idle.add(extract::function, &source, &["update_curr_idle"])?;
        }
        idle.write(build_dir, "idle_extract.h")?;
        let form = format!("-DFORM={FORM}");
        oracle::compile_with_rbtree(
            tree,
            build_dir,
            &[flags, &[&form]].concat(),
            ("deadline_queues", "unused"),
            "",
        )
    }
}
