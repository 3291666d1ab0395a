// SPDX-License-Identifier: GPL-2.0-or-later
//! From a checked rt-app file and a machine to instructions.
//!
//! The steps here need the machine: CPU numbers must exist, and `run` microseconds become work.
//!
//! `run: t` is `floor(t * 1000 / p_load)` busy loops, where `p_load` is the calibration in
//! nanoseconds per loop; rt-app computes whole seconds apart, with their own rounding down. A loop
//! takes `ns_per_loop` at capacity 1024. With `"calibration": "CPUn"`, `p_load` is what CPU n needs
//! for a loop at its highest frequency: `ns_per_loop * 1024 / capacity(n)`.
//!
//! ```text
//! pixel6, ns_per_loop 21: "run": 1000, calibration 21      47619 loops = 999,999 ns of work
//!                                      calibration "CPU0"  21*1024/124 = 173 ns: 5780 loops
//! ```
//!
//! `"largest"` is the strongest CPU: a word that rt-app does not know, for
//! workloads that are to fit any machine.
//!
//! Difference: the real calibration measures, and finds a value a little above or below.

use super::model::{Attributes, Calibration, CpuList, Event, Loops, Model, PolicyName, Task};
use crate::program::FIRST_FUTEX;
use crate::program::code::{
    AttributeCode, Code, EventKind, Instruction, LIFE, PhaseCode, TaskCode,
};
use crate::{EVENT_WORK, Host, NO_BLOCK_DEVICE, WORK_KIND};
use schedtwin_input::Diagnostics;
use schedtwin_types::{BlockDeviceId, CpuMask, Ns, Policy, TaskGroupFiles, TaskGroupId, Work};

const NS_PER_US: Ns = 1000;
const NS_PER_S: Ns = 1_000_000_000;
const US_PER_S: u64 = 1_000_000;
/// Thousandths of the time of `mem` that wait for memory [E]: rt-app's buffer, 4 MiB by default, fits into no core's own cache.
const MEMSET_STALLS: u16 = 500;
/// A `write()` to the page cache copies so much before others may run: it is cut into calls of this size.
const COPY_AT_ONCE: u32 = 64 << 10;
/// `runtime` looks at the clock after pieces of so many microseconds.
const RUNTIME_CHUNK_US: u64 = 32;

/// Compiles, or says what does not fit the machine or waits for a later version: all of it.
pub(crate) fn compile(
    model: &Model,
    host: &Host,
    duration: Option<Ns>,
) -> Result<Code, Diagnostics> {
    let mut faults = model.pending.clone();
    let cpus = host.cpu_capacity.len();
    let ns_per_loop = host.ns_per_loop.max(1);
    let loop_ns = |capacity: u32| (ns_per_loop * 1024 / u64::from(capacity.max(1))).max(1);
    let p_load = match &model.global.calibration {
        Calibration::NsPerLoop(ns) => u64::from(*ns),
        Calibration::Largest => loop_ns(host.cpu_capacity.iter().copied().max().unwrap_or(1024)),
        Calibration::Cpu { cpu, span } => match host.cpu_capacity.get(usize::from(*cpu)) {
            Some(capacity) => loop_ns(*capacity),
            None => {
                let message = format!(
                    "\"calibration\" names CPU {cpu}; the machine has CPUs 0 to {}",
                    cpus - 1
                );
                faults.push(&model.source, span.clone(), message, None);
                1
            }
        },
    };
    let lists = model
        .tasks
        .iter()
        .flat_map(|t| t.cpus.iter().chain(t.phases.iter().filter_map(|p| p.cpus.as_ref())));
    for list in lists {
        check_cpus(model, list, cpus, &mut faults);
    }
    check_deadline_tasks(model, host, &mut faults);
    let block_devices = block_devices(model, host, &mut faults);
    if !faults.is_empty() {
        return Err(faults);
    }

    let lower =
        Lowering { ns_per_loop, p_load, model, copy_per_kib: host.copy_per_kib, block_devices };
    let (folders, group_of_path) = cgroups(&model.task_groups);
    let group = |number: Option<u32>| number.map(|number| group_of_path[number as usize]);
    let mut code = Code {
        instructions: LIFE.to_vec(),
        main_name: "rt-app".into(),
        work_kind: WORK_KIND,
        first_futex: FIRST_FUTEX,
        duration,
        mutexes: model.mutexes.len() as u32,
        conditions: model.conditions.len() as u32,
        semaphores: vec![0; model.semaphores.len()],
        timers: model.timers.iter().map(|t| t.absolute).collect(),
        barriers: model.barriers.iter().map(|b| (b.condition, b.users)).collect(),
        task_groups: folders.iter().map(|(above, _)| *above).collect(),
        task_group_paths: folders.into_iter().map(|(_, path)| path).collect(),
        group_files: model
            .group_files
            .iter()
            .map(|(number, files)| TaskGroupFiles {
                group: group_of_path[*number as usize],
                ..*files
            })
            .collect(),
        all_cpus: CpuMask::first(cpus),
        ..Code::default()
    };
    for (number, task) in model.tasks.iter().enumerate() {
        let first_phase = code.phases.len() as u32;
        for phase in &task.phases {
            code.phases.push(PhaseCode {
                first_instruction: code.instructions.len() as u32,
                loops: times(phase.loops),
                attributes: phase.attributes.as_ref().map(attributes),
                cpus: phase.cpus.as_ref().or(task.cpus.as_ref()).map(|list| list.mask),
                group: group(phase.task_group.or(task.task_group)),
            });
            lower.phase(&phase.events, &mut code.instructions);
        }
        code.start.extend((0..task.instances).map(|_| number as u32));
        code.tasks.push(TaskCode {
            name: task.name.clone(),
            delay: u64::from(task.delay_us) * NS_PER_US,
            loops: times(task.loops),
            first_phase,
            end_phase: code.phases.len() as u32,
            attributes: attributes(&task.attributes),
            timers: task.timers.iter().map(|t| t.absolute).collect(),
            // rt-app is one process, and all that it starts are its threads.
            process: Some(0),
            ..TaskCode::default()
        });
    }
    code.main = code.instructions.len() as u32;
    code.instructions.push(Instruction::StartThreads);
    if let Some(duration) = duration {
        code.instructions.extend([
            Instruction::Sleep { duration },
            Instruction::Stop,
            Instruction::WakeConditions,
            Instruction::WakeSemaphores,
        ]);
    }
    code.instructions.extend([Instruction::Join, Instruction::Finish]);
    Ok(code)
}

/// The machine's block device of each that the file names.
fn block_devices(model: &Model, host: &Host, faults: &mut Diagnostics) -> Vec<BlockDeviceId> {
    let mut devices = Vec::new();
    for (name, at) in &model.block_devices {
        let known = &host.block_devices;
        let found = match name {
            None => (!known.is_empty()).then_some(0),
            Some(name) => known.iter().position(|known| known == name),
        };
        if found.is_none() {
            let (message, help) = match (name, known.is_empty()) {
                (_, true) => {
                    ("the machine has no block device".to_string(), NO_BLOCK_DEVICE.into())
                }
                (name, false) => (
                    format!(
                        "the machine has no block device \"{}\"",
                        name.as_deref().unwrap_or("")
                    ),
                    format!("it has {}", known.join(", ")),
                ),
            };
            faults.push(&model.source, at.clone(), message, Some(help));
        }
        devices.push(BlockDeviceId(found.unwrap_or(0) as u16));
    }
    devices
}

fn check_cpus(model: &Model, list: &CpuList, cpus: usize, faults: &mut Diagnostics) {
    for (cpu, span) in &list.numbers {
        if usize::from(*cpu) >= cpus {
            let message =
                format!("\"cpus\" names CPU {cpu}; the machine has CPUs 0 to {}", cpus - 1);
            faults.push(&model.source, span.clone(), message, None);
        }
    }
}

/// Reports the requests of SCHED_DEADLINE threads that the kernel would refuse: rt-app gives up
/// then, so it is an error of the file. All tasks
/// are taken to be there at the same time, each with its largest reservation.
fn check_deadline_tasks(model: &Model, host: &Host, faults: &mut Diagnostics) {
    let source = &model.source;
    let forks = |task: &Task, what: &dyn Fn(u32) -> bool| {
        let mut events = task.phases.iter().flat_map(|phase| &phase.events);
        events.any(|event| matches!(event, Event::Fork { task } if what(*task)))
    };
    let mut reserved = 0;
    for (number, task) in model.tasks.iter().enumerate() {
        let Some(first) = &task.deadline_at else { continue };
        if forks(task, &|_| true) {
            let message = format!("\"{}\" forks, which SCHED_DEADLINE refuses (EAGAIN)", task.name);
            faults.push(source, first.clone(), message, None);
        }
        if model.tasks.iter().any(|other| forks(other, &|forked| forked == number as u32)) {
            let message = format!(
                "\"{}\" is forked: SCHED_DEADLINE of its threads cannot be admitted ahead",
                task.name
            );
            faults.push(source, first.clone(), message, Some("start it with \"instance\"".into()));
        }
        let Some(limit) = host.dl_bandwidth else { continue };
        let cpus = host.cpu_capacity.len();
        let all = CpuMask::first(cpus);
        let lists = task.cpus.iter().chain(task.phases.iter().filter_map(|p| p.cpus.as_ref()));
        for list in lists.filter(|list| !all.is_subset(&list.mask)) {
            let at = list.numbers.first().map_or(first.clone(), |(_, span)| span.clone());
            let message = format!(
                "\"{}\" is of SCHED_DEADLINE, which needs every CPU: Linux refuses an affinity (EPERM, EBUSY)",
                task.name
            );
            faults.push(source, at, message, Some("leave out \"cpus\"".into()));
        }
        let attributes = task.phases.iter().filter_map(|phase| phase.attributes.as_ref());
        let largest = attributes.chain([&task.attributes]).map(|a| a.dl.bandwidth()).max();
        let before = reserved <= limit;
        reserved += largest.unwrap_or(0) * u64::from(task.instances);
        if before && reserved > limit {
            let percent = |bandwidth: u64| bandwidth as f64 * 100.0 / f64::from(1 << 20);
            let message = format!(
                "with \"{}\" the file reserves {:.1} % of a CPU for SCHED_DEADLINE; the kernel admits {:.1} % here (EBUSY)",
                task.name,
                percent(reserved),
                percent(limit)
            );
            let help =
                "shorter \"dl-runtime\", or a kernel with another `rt_runtime_us` (-1 is no limit)";
            faults.push(source, first.clone(), message, Some(help.into()));
        }
    }
}

/// The folders that `paths` make: of each but the root the group above and its path; and the group of each of `paths`.
pub(crate) fn cgroups(paths: &[String]) -> (Vec<(TaskGroupId, String)>, Vec<TaskGroupId>) {
    let mut folders: Vec<(TaskGroupId, String)> = Vec::new();
    let mut group_of_path = Vec::new();
    for path in paths {
        let (mut group, mut whole) = (TaskGroupId::ROOT, String::new());
        for name in path.split('/').filter(|name| !name.is_empty()) {
            whole = format!("{whole}/{name}");
            let known = folders.iter().position(|(_, known)| *known == whole);
            let at = known.unwrap_or_else(|| {
                folders.push((group, whole.clone()));
                folders.len() - 1
            });
            group = TaskGroupId(at as u32 + 1);
        }
        group_of_path.push(group);
    }
    (folders, group_of_path)
}

fn times(loops: Loops) -> Option<u32> {
    match loops {
        Loops::Forever => None,
        Loops::Times(times) => Some(times),
    }
}

fn attributes(from: &Attributes) -> AttributeCode {
    let policy = match from.policy {
        PolicyName::Other => Policy::Normal,
        PolicyName::Batch => Policy::Batch,
        PolicyName::Idle => Policy::Idle,
        PolicyName::Fifo => Policy::Fifo,
        PolicyName::Rr => Policy::Rr,
        PolicyName::Deadline => Policy::Deadline,
        PolicyName::Ext => Policy::Ext,
    };
    AttributeCode {
        policy,
        priority: from.priority,
        slice: from.slice_us.map(|us| u64::from(us) * NS_PER_US),
        clamps: from.clamps,
        dl: from.dl,
    }
}

struct Lowering<'m> {
    ns_per_loop: u64,
    p_load: u64,
    model: &'m Model,
    /// The work of copying 1024 bytes.
    copy_per_kib: u64,
    /// Of each of the model's block devices, the machine's.
    block_devices: Vec<BlockDeviceId>,
}

impl Lowering<'_> {
    /// The work of `run: us`.
    fn work(&self, us: u64) -> Work {
        let seconds = us / US_PER_S;
        let loops = seconds * (NS_PER_S / self.p_load) + (us % US_PER_S) * NS_PER_US / self.p_load;
        loops.saturating_mul(self.ns_per_loop)
    }

    fn phase(&self, events: &[Event], out: &mut Vec<Instruction>) {
        // A job ends where its last work is behind it and the thread goes to wait for the next one:
        // at the first waiting event after the last work of the phase, if there is one.
        let is_work = |event: &Event| {
            matches!(
                event,
                Event::Run { .. } | Event::Runtime { .. } | Event::Memory { .. } | Event::Io { .. }
            )
        };
        let is_release = |event: &Event| {
            matches!(
                event,
                Event::Sleep { .. }
                    | Event::Timer { .. }
                    | Event::Suspend { .. }
                    | Event::Wait { .. }
                    | Event::Sync { .. }
                    | Event::Barrier { .. }
                    | Event::SemaphoreWait { .. }
            )
        };
        let behind_work = events.iter().rposition(is_work).map(|at| at + 1);
        let job_end =
            behind_work.and_then(|from| (from..events.len()).find(|at| is_release(&events[*at])));
        for (at, event) in events.iter().enumerate() {
            let begin = out.len();
            let kind = match event {
                event if is_work(event) => EventKind::Work,
                Event::Lock { .. } => EventKind::Lock,
                Event::Unlock { .. } => EventKind::Unlock,
                _ => EventKind::Plain,
            };
            out.push(Instruction::Event { next: 0, kind, ends_job: job_end == Some(at) });
            self.event(event, out);
            let end = out.len() as u32;
            if let Instruction::Event { next, .. } = &mut out[begin] {
                *next = end;
            }
        }
        out.push(Instruction::PhaseEnd);
    }

    /// Work of which so many thousandths of the time wait for memory.
    fn stalled(&self, work: Work, permille: u16, out: &mut Vec<Instruction>) {
        match permille {
            0 => out.push(Instruction::Compute { work }),
            permille => out.extend([
                Instruction::Stalls { permille },
                Instruction::Compute { work },
                Instruction::Stalls { permille: 0 },
            ]),
        }
    }

    fn event(&self, event: &Event, out: &mut Vec<Instruction>) {
        match *event {
            Event::Run { us, memory } => self.stalled(self.work(u64::from(us)), memory * 10, out),
            Event::Memory { bytes } => {
                let work = u64::from(bytes) * self.copy_per_kib / 1024;
                self.stalled(work, MEMSET_STALLS, out);
            }
            Event::Runtime { us } => {
                // Looking at the clock is work too, even where the calibration makes 32 us no loop.
                let chunk = self.work(RUNTIME_CHUNK_US).max(EVENT_WORK);
                out.push(Instruction::ComputeUntil { chunk, target_us: us });
            }
            Event::Sleep { us } => {
                out.push(Instruction::Sleep { duration: u64::from(us) * NS_PER_US })
            }
            Event::Timer { timer, own, period_us } => {
                out.push(Instruction::Timer {
                    timer,
                    own,
                    period: u64::from(period_us) * NS_PER_US,
                });
            }
            Event::Lock { mutex } => out.push(Instruction::Lock { mutex }),
            Event::Unlock { mutex } => out.push(Instruction::Unlock { mutex }),
            Event::Wait { condition, mutex } => {
                out.push(Instruction::ConditionWait { condition, mutex })
            }
            Event::Signal { condition } => out.push(Instruction::Signal { condition }),
            Event::Broadcast { condition } => out.push(Instruction::Broadcast { condition }),
            Event::Sync { condition, mutex } => {
                out.extend([
                    Instruction::Signal { condition },
                    Instruction::ConditionWait { condition, mutex },
                ]);
            }
            Event::Suspend { condition, mutex } => out.extend([
                Instruction::Lock { mutex },
                Instruction::ConditionWait { condition, mutex },
                Instruction::Unlock { mutex },
            ]),
            Event::Resume { condition, mutex } => out.extend([
                Instruction::Lock { mutex },
                Instruction::Broadcast { condition },
                Instruction::Unlock { mutex },
            ]),
            Event::Barrier { barrier } => {
                let definition = &self.model.barriers[barrier as usize];
                let (mutex, condition) = (definition.mutex, definition.condition);
                out.extend([
                    Instruction::Lock { mutex },
                    Instruction::BarrierArrive { barrier },
                    Instruction::ConditionWait { condition, mutex },
                    Instruction::BarrierLeave { barrier },
                    Instruction::Unlock { mutex },
                ]);
            }
            Event::SemaphorePost { semaphore } => {
                out.push(Instruction::SemaphorePost { semaphore })
            }
            Event::SemaphoreWait { semaphore } => {
                out.push(Instruction::SemaphoreWait { semaphore, releases: false })
            }
            Event::Io { device, op, bytes, count } => {
                let device = self.block_devices[device as usize];
                let request = Instruction::BlockIo { device, op, bytes };
                out.extend((0..count).map(|_| request));
            }
            Event::IoRun { bytes } => {
                let global = &self.model.global;
                let most = if global.io_to_null { u32::MAX } else { COPY_AT_ONCE };
                let chunk = global.buffer_bytes.min(most);
                out.push(Instruction::Write { bytes, chunk, copies: !global.io_to_null });
            }
            Event::Yield => out.push(Instruction::Yield),
            Event::Fork { task } => out.push(Instruction::Fork { task }),
            Event::Pending => {
                unreachable!("a file with pending events is refused before it is compiled")
            }
        }
    }
}
