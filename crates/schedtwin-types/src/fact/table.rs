// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of facts: each kind is declared here, and only here.
//!
//! A new kind is one entry, which `fact/declare.rs` explains. Code elsewhere names a kind only to
//! state it (the kernel), to count it (the meter), or to read it back from a format that other
//! programs write, too (Perfetto).

use super::declare::facts;
use super::form::FactField;
use super::form::PerfettoValue::{At, Pid, Prio, Process};
use super::{FactWords, FtraceForm, IpiKind, PerfettoForm, TaskState, WakeSource};
use crate::{CpuId, IrqLines, Khz, Ns, PolicyId, TaskGroupId, TaskId};

/// Hands the table of facts to a macro: kinds, their names in records, their fields, and in braces
/// the rest, which only `fact/declare.rs` needs.
#[macro_export]
macro_rules! with_facts {
    ($callback:ident) => {
        $callback! {
            /// `sched_switch`. The idle task is [`TaskId::IDLE`].
            Switch "sched_switch" {
                /// The task that leaves the CPU.
                prev: TaskId,
                /// The task that gets the CPU.
                next: TaskId,
                /// In which state `prev` leaves.
                prev_state: TaskState,
            } => {
                digest: [(1, prev_state as u64, u64::from(prev.0) | u64::from(next.0) << 32)];
                words: "sched_switch", |words, _| {
                    let (prev, next) = (words.task(prev), words.task(next));
                    format!("{prev} {} ==> {next}", prev_state.letters())
                };
                ftrace: |out, _| out.switch(prev, next, prev_state);
                perfetto: |out, _| out.switch(next, prev_state);
            }

            /// `sched_waking`: somebody begins to wake `task`; stamped on the waker's CPU.
            Waking "sched_waking" {
                /// The task that is woken.
                task: TaskId,
                /// By what.
                source: WakeSource,
                /// The CPU it last ran on.
                prev_cpu: CpuId,
            } => {
                digest: [(2, source as u64 | u64::from(prev_cpu.0) << 8, u64::from(task.0))];
                words: "sched_waking", |words, _| {
                    let (task, source) = (words.task(task), source.words());
                    format!("{task} by {source}, last on CPU {prev_cpu}")
                };
                ftrace: |out, _| {
                    out.task_event("sched_waking", task, format_args!(" target_cpu={:03}", prev_cpu.0))
                };
                perfetto: |out, _| out.waking(task, source, prev_cpu);
            }

            /// `sched_wakeup` (`new`: `sched_wakeup_new`): `task` is runnable on `target`; stamped on the
            /// CPU that activated it.
            Wakeup "sched_wakeup" {
                /// The task.
                task: TaskId,
                /// Where it is queued.
                target: CpuId,
                /// Whether it has just been created.
                new: bool,
            } => {
                digest: [(3, u64::from(new) | u64::from(target.0) << 8, u64::from(task.0))];
                words: if new { "sched_wakeup_new" } else { "sched_wakeup" }, |words, _| {
                    format!("{} on CPU {target}", words.task(task))
                };
                ftrace: |out, _| {
                    let event = if new { "sched_wakeup_new" } else { "sched_wakeup" };
                    out.task_event(event, task, format_args!(" target_cpu={:03}", target.0))
                };
                perfetto: |out, _| {
                    let number = if new { 114 } else { 17 };
                    out.task_event(number, task, [(2, Pid), (3, Prio), (5, target.into())])
                };
            }

            /// `sched_migrate_task`.
            Migrate "sched_migrate_task" {
                /// The task.
                task: TaskId,
                /// From where.
                from: CpuId,
                /// Where to.
                to: CpuId,
            } => {
                digest: [(4, u64::from(from.0) | u64::from(to.0) << 16, u64::from(task.0))];
                words: "sched_migrate_task", |words, _| {
                    format!("{}: CPU {from} -> {to}", words.task(task))
                };
                ftrace: |out, _| {
                    let rest = format_args!(" orig_cpu={from} dest_cpu={to}");
                    out.task_event("sched_migrate_task", task, rest)
                };
                perfetto: |out, _| {
                    out.task_event(491, task, [(2, Pid), (3, Prio), (4, from.into()), (5, to.into())])
                };
            }

            /// `sched_process_exit`.
            Exit "sched_process_exit" {
                /// The task.
                task: TaskId,
            } => {
                digest: [(5, 0, u64::from(task.0))];
                words: "sched_process_exit", |words, _| words.task(task);
                ftrace: |out, _| out.task_event("sched_process_exit", task, format_args!(""));
                perfetto: |out, _| out.task_event(238, task, [(2, Pid), (3, Process), (4, Prio)]);
            }

            /// `cpu_idle`: the CPU asks for idle state `state`.
            IdleEnter "cpu_idle" {
                /// Index of the state.
                state: u8,
                /// Whether the tick is stopped.
                tick_stopped: bool,
            } => {
                digest: [(6, u64::from(state) | u64::from(tick_stopped) << 8, 0)];
                words: "cpu_idle", |_, _| {
                    format!("state {state}{}", if tick_stopped { ", tick stopped" } else { "" })
                };
                ftrace: |out, cpu| out.event("cpu_idle", format_args!("state={state} cpu_id={cpu}"));
                perfetto: |out, cpu| out.event(13, [(1, state.into()), (2, cpu.into())]);
            }

            /// `cpu_idle` with `PWR_EVENT_EXIT`: the CPU is back from `state`.
            IdleExit "cpu_idle_exit" {
                /// Index of the state.
                state: u8,
                /// `last_residency_ns`, entry and exit latency included.
                residency_ns: Ns,
            } => {
                digest: [(7, u64::from(state), residency_ns)];
                words: "cpu_idle", |words, _| match residency_ns {
                    // A Perfetto trace holds neither the state nor the residency of the way back.
                    0 => "exit".to_string(),
                    _ => format!("exit from state {state} after {}", words.span(residency_ns)),
                };
                ftrace: |out, cpu| {
                    let exit = FactKind::PWR_EVENT_EXIT;
                    out.event("cpu_idle", format_args!("state={exit} cpu_id={cpu}"))
                };
                perfetto: |out, cpu| {
                    out.event(13, [(1, FactKind::PWR_EVENT_EXIT.into()), (2, cpu.into())])
                };
            }

            /// `cpu_idle_miss`.
            IdleMiss "cpu_idle_miss" {
                /// The state that was entered.
                state: u8,
                /// `true`: a deeper state would have been right (too shallow); `false`: too deep.
                below: bool,
            } => {
                digest: [(8, u64::from(state) | u64::from(below) << 8, 0)];
                words: "cpu_idle_miss", |_, _| {
                    format!("state {state} was {}", if below { "too shallow" } else { "too deep" })
                };
                ftrace: |out, cpu| {
                    let side = if below { "below" } else { "above" };
                    out.event("cpu_idle_miss", format_args!("cpu_id={cpu} state={state} type={side}"))
                };
                perfetto: |out, _| {
                    out.instant("cpu_idle_miss", [("state", state.into()), ("below", below.into())])
                };
            }

            /// `cpu_frequency`: the driver has taken the governor's choice; with fast switch at once,
            /// else when its call has returned.
            Frequency "cpu_frequency" {
                /// The cpufreq policy.
                policy: PolicyId,
                /// The new frequency.
                khz: Khz,
                /// Since when the governor has wanted it: the time of the utilisation update.
                requested_at: Ns,
            } => {
                // Its fields need more space than one record has.
                digest: [(10, 0, u64::from(khz)), (9, u64::from(policy.0), requested_at)];
                words: "cpu_frequency", |words, at| {
                    let delay = match at.saturating_sub(requested_at) {
                        0 => String::new(),
                        delay => format!(", wanted for {}", words.span(delay)),
                    };
                    format!("{}: {khz} kHz{delay}", words.policy(policy))
                };
                ftrace: |out, _| out.frequency(policy, khz);
                perfetto: |out, _| out.frequency(policy, khz);
            }

            /// The scheduler tick (`sched_tick`).
            Tick "sched_tick" => {
                digest: [(11, 0, 0)];
                words: "sched_tick", |_, _| String::new();
                // Its hrtimer, without the address; tick_sched_timer before 6.8.
                ftrace: |out, _| out.tick();
                perfetto: |out, _| out.event(553, [(2, At)]);
            }

            /// An inter-processor interrupt was sent to `target`.
            Ipi "ipi" {
                /// To which CPU.
                target: CpuId,
                /// The purpose of the interrupt.
                kind: IpiKind,
            } => {
                digest: [(12, kind as u64 | u64::from(target.0) << 8, 0)];
                words: "ipi", |_, _| format!("{} to CPU {target}", kind.name());
                ftrace: |out, _| out.ipi(target, kind);
                perfetto: |out, _| out.ipi(target, kind);
            }

            /// `irq_handler_entry` of the interrupts delivered together.
            IrqEntry "irq_handler_entry" {
                /// The pending lines.
                lines: IrqLines,
            } => {
                digest: [(13, u64::from(u16::from(lines)), 0)];
                words: "irq_handler_entry", |_, _| lines.to_string();
                ftrace: |out, _| out.irq_entry(lines);
                perfetto: |out, _| out.irq_entry(lines);
            }

            /// `irq_handler_exit`.
            IrqExit "irq_handler_exit" {
                /// Time spent in hard and soft interrupts.
                spent_ns: u32,
            } => {
                digest: [(14, u64::from(spent_ns), 0)];
                words: "irq_handler_exit", |words, _| match spent_ns {
                    // A Perfetto trace does not hold it.
                    0 => String::new(),
                    _ => format!("after {}", words.span(spent_ns.into())),
                };
                ftrace: |out, _| out.irq_exit();
                perfetto: |out, _| out.irq_exit();
            }

            /// A load-balance pass over one domain (`sched_balance_rq`).
            Balance "sched_balance_rq" {
                /// Domain level, 0 = lowest.
                level: u8,
                /// `enum cpu_idle_type`: 0 busy, 1 idle, 2 newly idle.
                idle: u8,
                /// Tasks moved.
                moved: u16,
            } => {
                digest: [(
                    15,
                    u64::from(level) | u64::from(idle) << 8 | u64::from(moved) << 16,
                    0
                )];
                words: "sched_balance_rq", |_, _| {
                    let idle = ["busy", "idle", "newidle"].get(usize::from(idle)).unwrap_or(&"?");
                    let tasks = if moved == 1 { "task" } else { "tasks" };
                    format!("level {level}, {idle}: {moved} {tasks} moved")
                };
                ftrace: |_, _| {};
                perfetto: |out, _| {
                    if moved > 0 {
                        let details =
                            [("level", level.into()), ("idle", idle.into()), ("moved", moved.into())];
                        out.instant("sched_balance_rq", details);
                    }
                };
            }

            /// The running task was preempted (it stays runnable): emitted with the switch.
            Preempted "preempted" {
                /// The task.
                task: TaskId,
            } => {
                digest: [(16, 0, u64::from(task.0))];
                words: "preempted", |words, _| words.task(task);
                // The R+ of its switch says it.
                ftrace: |_, _| {};
                perfetto: |_, _| {};
            }

            /// A deadline task has used up its runtime, or given the rest away: it waits for its next
            /// period.
            DlThrottled "dl_throttled" {
                /// The task.
                task: TaskId,
            } => {
                digest: [(18, 0, u64::from(task.0))];
                words: "dl_throttled", |words, _| words.task(task);
                ftrace: |_, _| {};
                perfetto: |_, _| {};
            }

            /// The root domain became (or is no longer) overutilized.
            Overutilized "overutilized" {
                /// The new state.
                on: bool,
            } => {
                digest: [(17, u64::from(on), 0)];
                words: "overutilized", |_, _| if on { "on" } else { "off" }.to_string();
                ftrace: |out, _| {
                    out.event("sched_overutilized", format_args!("overutilized={}", u8::from(on)))
                };
                perfetto: |out, _| out.overutilized(on);
            }

            /// Signals of a CPU's fair run queue; only while a trace asks for them, at switch and tick.
            CpuSignals "cpu_signals" {
                /// `cfs_rq->avg.util_avg`.
                util_avg: u32,
                /// `cfs_rq->avg.runnable_avg`.
                runnable_avg: u32,
                /// `cfs_rq->avg.util_est`.
                util_est: u32,
            } => {
                digest: [];
                words: "cpu_signals", |_, _| {
                    format!("util_avg {util_avg}, runnable_avg {runnable_avg}, util_est {util_est}")
                };
                ftrace: |out, cpu| {
                    let of = format!("cpu={cpu} path=/");
                    let util = format_args!("{of} runnable={runnable_avg} util={util_avg}");
                    out.event("sched_pelt_cfs", util);
                    let util = format_args!("{of} enqueued={util_est} util={util_avg}");
                    out.event("sched_util_est_cfs", util)
                };
                perfetto: |out, _| out.cpu_signals([util_avg, runnable_avg, util_est]);
            }

            /// Signals of a task; only while a trace asks for them, at switch and tick.
            TaskSignals "task_signals" {
                /// The task.
                task: TaskId,
                /// `se.avg.util_avg`.
                util_avg: u16,
                /// `se.avg.util_est`, without its flag.
                util_est: u16,
                /// `se.avg.runnable_avg`.
                runnable_avg: u32,
            } => {
                digest: [];
                words: "task_signals", |words, _| {
                    format!(
                        "{}: util_avg {util_avg}, runnable_avg {runnable_avg}, util_est {util_est}",
                        words.task(task)
                    )
                };
                ftrace: |out, cpu| {
                    let of = format!("cpu={cpu} path=(null) comm={} pid={task}", out.comm(task));
                    let util = format_args!("{of} runnable={runnable_avg} util={util_avg}");
                    out.event("sched_pelt_se", util);
                    let util = format_args!("{of} enqueued={util_est} util={util_avg}");
                    out.event("sched_util_est_se", util)
                };
                perfetto: |out, _| {
                    out.task_signals(task, [util_avg.into(), runnable_avg, util_est.into()])
                };
            }

            /// `block_rq_issue`: a request has gone to its device.
            BlockIssue "block_rq_issue" {
                /// The task that waits for it.
                task: TaskId,
                /// The device, by its place in the machine's file.
                device: u16,
                /// Operation, by [`crate::BlockOp`]'s number.
                op: u8,
                /// Size.
                bytes: u32,
            } => {
                digest: [(21, u64::from(op) | u64::from(device) << 8, u64::from(task.0) | u64::from(bytes) << 32)];
                words: "block_rq_issue", |words, _| {
                    let op = block_letters(op);
                    format!("{} {op} {bytes} bytes, device {device}", words.task(task))
                };
                ftrace: |out, _| {
                    let (op, sectors) = (block_letters(op), bytes / 512);
                    let of = format_args!("259,{device} {op} {bytes} () 0 + {sectors} [schedtwin]");
                    out.event("block_rq_issue", of)
                };
                perfetto: |_, _| {};
            }

            /// `block_rq_complete`: a request is done, and its task is woken.
            BlockComplete "block_rq_complete" {
                /// The task that waits for it.
                task: TaskId,
                /// The device, by its place in the machine's file.
                device: u16,
                /// Operation, by [`crate::BlockOp`]'s number.
                op: u8,
                /// Size.
                bytes: u32,
            } => {
                digest: [(22, u64::from(op) | u64::from(device) << 8, u64::from(task.0) | u64::from(bytes) << 32)];
                words: "block_rq_complete", |words, _| {
                    let op = block_letters(op);
                    format!("{} {op} {bytes} bytes, device {device}", words.task(task))
                };
                ftrace: |out, _| {
                    let (op, sectors) = (block_letters(op), bytes / 512);
                    out.event("block_rq_complete", format_args!("259,{device} {op} () 0 + {sectors} [0]"))
                };
                perfetto: |_, _| {};
            }

            /// A task belongs to a cgroup from now on: it was attached, or is new.
            CgroupAttach "cgroup_attach_task" {
                /// The task.
                task: TaskId,
                /// Its cgroup.
                group: TaskGroupId,
            } => {
                digest: [];
                words: "cgroup_attach_task", |words, _| {
                    format!("{} to cgroup {}", words.task(task), words.cgroup(group))
                };
                ftrace: |_, _| {};
                perfetto: |_, _| {};
            }

            /// From now on the `cpu.max` of a cgroup, or of one above it, keeps its tasks from a CPU, or no longer.
            CfsThrottled "cfs_throttled" {
                /// The cgroup.
                group: TaskGroupId,
                /// The CPU of the queue.
                on: CpuId,
                /// Whether it is throttled.
                throttled: bool,
            } => {
                digest: [];
                words: if throttled { "cfs_throttled" } else { "cfs_unthrottled" }, |words, _| {
                    format!("cgroup {} on CPU {on}", words.cgroup(group))
                };
                ftrace: |_, _| {};
                perfetto: |_, _| {};
            }
        }
    };
}

with_facts!(facts);

/// The letters of an operation of a block device, by its number.
fn block_letters(op: u8) -> &'static str {
    crate::BlockOp::ALL.get(usize::from(op)).map_or("?", |op| op.letters())
}

impl FactKind {
    /// `cpu_idle`'s state for the way back, in traces.
    pub const PWR_EVENT_EXIT: u32 = u32::MAX;
}
