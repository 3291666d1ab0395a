// SPDX-License-Identifier: GPL-2.0-or-later
//! The RT class as a [`Subject`]: the world of `shim.c`, executed with our `sched/rt.rs`.
//!
//! Eight CPUs (equal ones, of two sizes, or with two caches) and up to [`TASKS_MAX`] tasks. Each CPU has a fair task, which runs
//! where no other does, and a deadline task. Operations are what happens to CPUs: wakeups from other CPUs, switches, ticks,
//! yields, changes of affinity, priority and class, the interrupt that asks for a push, and before 6.12 the timer that
//! forgives throttled queues. Compared after each: the queues and the pushable tasks of all CPUs in order, the levels of
//! `cpupri`, who runs, who is to give way, the overloaded CPUs, where the interrupt is, and the runtime that was used.
//!
//! **Not compared here:** PELT (L0 `pelt`), groups, which no kernel here configures, and CPUs that go offline.

mod draw;
mod mutations;

pub(crate) use draw::{bits, draw_domains, draw_mask};

use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{
    ARGS, OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_6_3, TREE_7_3, extract, oracle,
};
use extract::Pieces;
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{
    ClassChange, Config, EevdfForm, FrequencyGovernor, PushOverload, PutPrev, RtBandwidth, RtTask,
    RtoNextCpu,
};
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_kernel::sched::Class;
use schedtwin_kernel::sched::rt::conformance::RtSteps;
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, CpuMask, Policy, TaskId};
use std::path::{Path, PathBuf};

// Operation numbers, as in `shim.c`.
const START: usize = 0;
const CPU: usize = 1;
const TASK: usize = 2;
const WAKE: usize = 3;
const SCHEDULE: usize = 4;
const TICK: usize = 5;
const YIELD: usize = 6;
const AFFINITY: usize = 7;
const PRIORITY: usize = 8;
const LEAVE: usize = 9;
const INTERRUPT: usize = 10;
const DEADLINE: usize = 11;
const FIND: usize = 12;
const PERIOD: usize = 13;

/// CPUs of every machine.
const CPUS: usize = 8;
const CPU_NAMES: [&str; CPUS] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
/// Most tasks of a sequence.
const TASKS_MAX: u64 = 14;
/// Operations of a sequence after the tasks.
const STEPS: u64 = 90;
/// `sched_rt_period_us` of most sequences.
const PERIOD_NS: u64 = 1_000_000_000;
/// Policies, as in `include/uapi/linux/sched.h`.
const POLICIES: [(u64, Policy); 2] = [(1, Policy::Fifo), (2, Policy::Rr)];

/// Linux 6.1.
pub const LINUX_6_1: u8 = 1;
/// As 6.1, with an interrupt that also visits its sender.
pub const LINUX_6_3: u8 = 3;
/// Linux 6.12.
pub const LINUX_6_12: u8 = 12;
/// Linux 7.3.
pub const LINUX_7_3: u8 = 73;

/// Eight CPUs and their RT tasks.
pub struct Rt<const FORM: u8> {
    kernel: Kernel,
    tasks: Vec<TaskId>,
    /// Of each CPU, beside the tasks by number: the one that runs where no other does, and the one above them.
    fair: Vec<TaskId>,
    deadline: Vec<TaskId>,
    /// The priority and policy that a task which has left the class had.
    left: Vec<(i32, Policy)>,
    now: u64,
    /// Generator only: tasks to come, and the number of the machine.
    planned: u64,
    machine: u64,
    /// Generator only: RT priorities of most tasks.
    priorities: [u64; 3],
}

/// The RT class of 6.1, with throttling.
pub type Rt61 = Rt<LINUX_6_1>;
/// That of 6.3.
pub type Rt63 = Rt<LINUX_6_3>;
/// That of 6.12.
pub type Rt612 = Rt<LINUX_6_12>;
/// That of 7.3.
pub type Rt73 = Rt<LINUX_7_3>;

/// The machines: eight equal CPUs; four small and four big ones; two caches of four CPUs, on two nodes.
pub(crate) fn machine(number: u64) -> DeviceTree {
    const OPPS: &[(u32, u64)] = &[(1_000_000, 1000)];
    if number == 1 {
        return DeviceTree::of_domains(&[(4, 300, OPPS), (2, 700, OPPS), (2, 1024, OPPS)]);
    }
    let mut machine = DeviceTree::of_domains(&[(8, 1024, OPPS)]);
    if number == 2 {
        for (number, cpu) in machine.cpus.iter_mut().enumerate() {
            let half = (number / 4) as u16;
            (cpu.package, cpu.llc, cpu.node) = (half, half, half);
        }
    }
    machine
}

fn policy(number: u64) -> Policy {
    POLICIES.iter().find(|p| p.0 == number).expect("a policy of the class").1
}

pub(crate) fn mask_of(bits: u64) -> CpuMask {
    (0..CPUS as u16).filter(|cpu| bits >> cpu & 1 != 0).map(CpuId).collect()
}

/// Of the domains of an operation `cpu`, whether wakeups may stay within each.
pub(crate) fn wakes_of(domains: &[u64]) -> [bool; 3] {
    [0, 1, 2].map(|level| domains[level] >> 63 != 0)
}

pub(crate) fn bits_of(mask: &CpuMask) -> u64 {
    mask.iter().map(|cpu| 1 << cpu.0).sum()
}

/// What RT and deadline classes of a release are, on clocks that stay.
pub(crate) fn config_of(form: u8) -> Config {
    let mut config = Config::linux_6_12();
    config.cpufreq = FrequencyGovernor::Performance;
    config.hz = 250;
    match form {
        LINUX_6_1 | LINUX_6_3 => {
            let visits = if form == LINUX_6_3 { RtoNextCpu::Any } else { RtoNextCpu::Others };
            config.rto_next_cpu = visits;
            config.rt_bandwidth = RtBandwidth::Throttling;
            config.rt_task = RtTask::OrDeadline;
            config.push_overload = PushOverload::Migratory;
            config.put_prev = PutPrev::BeforePick;
        }
        LINUX_7_3 => {
            config.eevdf_form = EevdfForm::V7_3;
            config.class_change = ClassChange::Preempts;
        }
        _ => {}
    }
    config
}

impl<const FORM: u8> Rt<FORM> {
    /// Whether RT tasks are throttled.
    const THROTTLES: bool = matches!(FORM, LINUX_6_1 | LINUX_6_3);

    fn boot(arg: &[u64; ARGS]) -> Kernel {
        let mut config = config_of(FORM);
        config.fair_server_runtime = 0;
        config.features.rt_push_ipi = arg[0] != 0;
        config.rt_runtime = Some(arg[2]);
        config.rt_period = arg[3];
        Kernel::boot(machine(arg[4]), config)
    }

    fn steps(&mut self) -> RtSteps<'_> {
        RtSteps(&mut self.kernel)
    }

    fn curr(&self, cpu: usize) -> TaskId {
        self.kernel.inside().rq[CpuId(cpu as u16)].curr
    }

    fn class(&self, task: TaskId) -> Class {
        self.kernel.inside().tasks[task].class
    }

    /// A task's number: 1 and up; 0: none of the RT tasks.
    fn number_of(&self, task: TaskId) -> u64 {
        self.tasks.iter().position(|&other| other == task).map_or(0, |at| at as u64 + 1)
    }

    fn runs_deadline(&self, cpu: usize) -> bool {
        self.class(self.curr(cpu)) == Class::Deadline
    }

    fn schedule(&mut self, cpu: usize, sleeps: bool, fair: bool) {
        let prev = self.curr(cpu);
        let has_left = self.number_of(prev) != 0 && self.class(prev) == Class::Fair;
        let lower = match (has_left, fair) {
            (true, _) => prev,
            (false, true) => self.fair[cpu],
            (false, false) => TaskId::IDLE,
        };
        self.steps().schedule(sleeps, lower);
        if has_left && self.curr(cpu) != prev {
            let (prio, policy) = self.left[self.number_of(prev) as usize - 1];
            self.steps().rejoin_asleep(prev, prio, policy);
        }
    }

    fn report(&mut self, out: &mut Out) {
        let fold = |digest: u64, number: u64| (digest ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for (cpu, name) in CPU_NAMES.iter().enumerate() {
            let state = self.steps().state(CpuId(cpu as u16));
            let digest = |list: &[TaskId]| list.iter().map(|t| self.number_of(*t)).fold(0, fold);
            out.word(name, "queue", digest(&state.queue));
            out.word(name, "pushable", digest(&state.pushable));
            out.word(name, "level", state.level as u64);
            out.word(name, "curr", self.number_of(self.curr(cpu)));
            let rq = &self.kernel.inside().rq[CpuId(cpu as u16)];
            let bits = rq.need_resched as u64 | (rq.nr_running as u64) << 1;
            out.word(name, "state", bits);
            if Self::THROTTLES {
                out.word(name, "throttled", state.throttled as u64);
                out.word(name, "rt_time", state.time);
            }
        }
        let works = bits_of(&self.steps().push_interrupts());
        let rd = self.kernel.inside().rd;
        out.word("rd", "rto_mask", bits_of(&rd.rto_mask));
        out.word("rd", "rto_cpu", rd.rto_cpu.map_or(u64::MAX, |cpu| cpu.0 as u64));
        out.word("rd", "irq_works", works);
        if Self::THROTTLES {
            let (active, expires) = self.steps().period_timer();
            out.word("period", "active", active as u64);
            out.word("period", "expires", expires);
        }
    }

    fn start(&mut self, arg: &[u64; ARGS]) {
        self.kernel = Self::boot(arg);
    }
}

impl<const FORM: u8> Subject for Rt<FORM> {
    const NAME: &'static str = match FORM {
        LINUX_6_1 => "rt-6.1",
        LINUX_6_3 => "rt-6.3",
        LINUX_7_3 => "rt-7.3",
        _ => "rt",
    };
    const TREE: &'static str = match FORM {
        LINUX_6_1 => TREE_6_1,
        LINUX_6_3 => TREE_6_3,
        LINUX_7_3 => TREE_7_3,
        _ => TREE,
    };
    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "start",
            args: &["by_interrupt", "asymmetric", "runtime", "period", "machine"],
        },
        OpSpec { name: "cpu", args: &["cpu", "capacity", "sd0", "sd1", "sd2", "pinned"] },
        OpSpec { name: "task", args: &["cpu", "prio", "policy", "mask", "clamp"] },
        OpSpec { name: "wake", args: &["now", "this", "task"] },
        OpSpec { name: "schedule", args: &["now", "cpu", "sleeps", "fair"] },
        OpSpec { name: "tick", args: &["now", "cpu", "count"] },
        OpSpec { name: "yield", args: &["now", "cpu"] },
        OpSpec { name: "affinity", args: &["now", "cpu", "mask"] },
        OpSpec { name: "priority", args: &["now", "cpu", "prio", "policy"] },
        OpSpec { name: "leave", args: &["now", "cpu"] },
        OpSpec { name: "interrupt", args: &["now", "cpu"] },
        OpSpec { name: "deadline", args: &["now", "cpu", "queued"] },
        OpSpec { name: "find", args: &["now", "this", "task"] },
        OpSpec { name: "period", args: &["now", "cpu"] },
    ];
    const SOURCES: Sources = Sources { modules: &["rt"], kernel: None };
    const MUTATIONS: &'static [Mutation] = match FORM {
        LINUX_6_1 => mutations::LINUX_6_1,
        LINUX_6_3 => mutations::LINUX_6_3,
        _ => mutations::RT,
    };
    const GOLDEN_SHOWN: u64 = 2;
    const GOLDEN_CASES: u64 = 4_000;

    fn new() -> Self {
        Rt {
            kernel: Self::boot(&[1, 0, PERIOD_NS, PERIOD_NS, 0, 0]),
            tasks: Vec::new(),
            fair: Vec::new(),
            deadline: Vec::new(),
            left: Vec::new(),
            now: 0,
            planned: 0,
            machine: 0,
            priorities: [0; 3],
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
            START => return self.start(arg),
            CPU => {
                let cpu = CpuId(arg[0] as u16);
                self.steps().set_wake_affine(cpu, &wakes_of(&arg[2..5]));
                let masks = [1, 2].map(|bit| {
                    if arg[5] & bit != 0 { CpuMask::of(cpu) } else { CpuMask::first(CPUS) }
                });
                let fair =
                    self.steps().new_task_of(cpu, Class::Fair, 120, Policy::Normal, masks[0]);
                let deadline =
                    self.steps().new_task_of(cpu, Class::Deadline, -1, Policy::Deadline, masks[1]);
                self.fair.push(fair);
                self.deadline.push(deadline);
                return;
            }
            TASK => {
                let [cpu, prio, number, mask, clamp, _] = *arg;
                let cpu = CpuId(cpu as u16);
                let (policy, mask) = (policy(number), mask_of(mask));
                let task = self.steps().new_task_of(cpu, Class::Rt, prio as i32, policy, mask);
                self.steps().clamp(task, clamp as u16);
                self.tasks.push(task);
                self.left.push((prio as i32, policy));
                return;
            }
            WAKE => {
                let task = self.tasks[arg[2] as usize];
                self.steps().wake(task);
            }
            SCHEDULE => self.schedule(cpu, arg[2] != 0, arg[3] != 0),
            TICK => self.steps().ticks(arg[2]),
            YIELD => self.steps().yield_task(),
            AFFINITY => self.steps().set_affinity(mask_of(arg[2])),
            PRIORITY => self.steps().set_priority(arg[2] as i32, policy(arg[3])),
            LEAVE => {
                let curr = self.curr(cpu);
                let number = self.number_of(curr) as usize - 1;
                let task = &self.kernel.inside().tasks[curr];
                self.left[number] = (task.prio, task.policy);
                self.steps().leave();
            }
            INTERRUPT => self.steps().push_interrupt(),
            DEADLINE => {
                let task = self.deadline[cpu];
                self.steps().deadline(task, arg[2] != 0);
            }
            FIND => {
                let task = self.tasks[arg[2] as usize];
                let found = self.steps().find_lowest_rq(task);
                out.word("", "result", found.map_or(u64::MAX, |cpu| cpu.0 as u64));
            }
            PERIOD => self.steps().period(),
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
            return Some(self.draw_task(rng));
        }
        if step - self.planned == STEPS {
            return None;
        }
        Some(self.draw_step(rng))
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        extract_classes(tree, build_dir)?;
        // For the shim 6.3 is as 6.1.
        let form = format!("-DFORM={}", if FORM == LINUX_6_3 { LINUX_6_1 } else { FORM });
        oracle::compile("rt/shim.c", &[build_dir], build_dir, &[flags, &[&form]].concat())
    }
}

/// Puts what the shims of both classes include into `build_dir`: the tree's rt.c and cpupri.c without their `#include`s, its
/// priority lists, and single functions.
pub fn extract_classes(tree: &Path, build_dir: &Path) -> Result<(), String> {
    for name in ["rt.c", "cpupri.c"] {
        copy_without_includes(tree, build_dir, name)?;
    }
    let mut lists = Pieces::default();
    let header = extract::read(tree, "include/linux/plist.h")?;
    let functions = ["plist_first", "plist_last", "plist_head_init", "plist_node_init"];
    let questions = ["plist_head_empty", "plist_node_empty"];
    let macros = ["plist_for_each_entry", "plist_first_entry"];
    lists.add(extract::function, &header, &functions)?;
    lists.add(extract::function, &header, &questions)?;
    lists.add(extract::macro_definition, &header, &macros)?;
    let source = extract::read(tree, "lib/plist.c")?;
    lists.add(extract::function, &source, &["plist_add", "plist_del"])?;
    lists.write(build_dir, "plist_extract.h")?;

    let mut classes = Pieces::default();
    for (file, names) in [
        ("include/linux/sched/deadline.h", &["dl_prio", "dl_task"][..]),
        ("include/linux/sched/rt.h", &["rt_prio", "rt_task"]),
    ] {
        classes.add(extract::function, &extract::read(tree, file)?, names)?;
    }
    let core = extract::read(tree, "kernel/sched/core.c")?;
    classes.add_if_there(extract::function, &core, &["check_preempt_curr", "wakeup_preempt"]);
    classes.write(build_dir, "classes_extract.h")
}

/// Copies a file of `kernel/sched`, whose headers the shim stands in for.
pub fn copy_without_includes(tree: &Path, build_dir: &Path, name: &str) -> Result<(), String> {
    let source = extract::read(tree, &format!("kernel/sched/{name}"))?;
    let text: String = source
        .lines()
        .map(|line| if line.starts_with("#include") { "\n".into() } else { format!("{line}\n") })
        .collect();
    let to = build_dir.join(name);
    std::fs::write(&to, text).map_err(|error| format!("write {}: {error}", to.display()))
}
