// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of tracepoints: each one that is read or written is a row here, and only here.
//!
//! ```text
//! ("sched_migrate_task", sched, Lenient, 491) Migrate {
//!     task: [Comm comm 1, Pid pid 2, I32 prio 3],
//!     from: [TaskCpu orig_cpu 4],
//!     to: [TaskCpu dest_cpu 5],
//! }
//! ```
//!
//! A row has the tracepoint's name; its system; whether an unreadable line is damage ([`Strict`]) or
//! merely unused ([`Lenient`]); its number among the fields of Perfetto's `FtraceEvent`, 0 if there is
//! none; and the [`TraceEventKind`] that it becomes. Each part of that kind lists the fields that it is
//! made of, in the kernel's order: their [`Type`], their name in the kernel's format, `as` and the label
//! in the kernel's text where that differs, and their number in Perfetto's message.
//!
//! Readers and writers of all formats follow from it: text (`ftrace_read/event.rs`,
//! `event_out/text.rs`), records (`tracepoint/decode.rs`, `event_out/trace_dat/`), Perfetto's messages
//! (`perfetto_source/bundle.rs`, `event_out/perfetto.rs`) and tables (`event_out/tables/`). A row
//! without fields is text of a program, which [`crate::marker`] reads.

use super::row::{Cursor, Field, Part, Tracepoint, Type, part, tracepoints};
use crate::event::TraceEventKind;
use Strength::{Lenient, Strict};

/// The consequence of a line of text that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// It is damage: a replay would be wrong.
    Strict,
    /// It is not used: releases and vendors print it in other ways.
    Lenient,
}

tracepoints! {
    ("sched_switch", sched, Strict, 4) Switch {
        prev: [Comm prev_comm 1, PrevPid prev_pid 2, I32 prev_prio 3],
        left: [State prev_state 4],
        next: [Comm next_comm 5, Pid next_pid 6, I32 next_prio 7],
    }
    ("sched_waking", sched, Strict, 20) Waking {
        task: [Comm comm 1, Pid pid 2, I32 prio 3],
        target: [Target target_cpu 5],
    }
    ("sched_wakeup", sched, Strict, 17) Wakeup {
        task: [Comm comm 1, Pid pid 2, I32 prio 3],
        target: [Target target_cpu 5],
    }
    ("sched_wakeup_new", sched, Strict, 114) WakeupNew {
        task: [Comm comm 1, Pid pid 2, I32 prio 3],
        target: [Target target_cpu 5],
    }
    ("sched_process_fork", sched, Strict, 239) Fork {
        parent: [Unkept parent_comm as "comm", Pid parent_pid as "pid" 2],
        child_comm: [Comm child_comm 3],
        child: [Pid child_pid 4],
    }
    ("sched_process_exit", sched, Strict, 238) Exit { pid: [Unkept comm, Pid pid 2] }
    ("sched_process_free", sched, Lenient, 240) Free { pid: [Unkept comm, Pid pid 2] }
    ("sched_process_exec", sched, Lenient, 237) Exec {
        pid: [Unkept filename, Pid pid 2],
        old_pid: [Pid old_pid 3],
    }
    ("sched_migrate_task", sched, Lenient, 491) Migrate {
        task: [Comm comm 1, Pid pid 2, I32 prio 3],
        from: [TaskCpu orig_cpu 4],
        to: [TaskCpu dest_cpu 5],
    }
    ("sched_pi_setprio", sched, Lenient, 353) PiPriority {
        pid: [Unkept comm, Pid pid 4],
        from: [I32 oldprio 3],
        to: [I32 newprio 2],
    }
    ("sched_blocked_reason", sched, Lenient, 18) BlockedReason {
        pid: [Pid pid 1],
        io_wait: [Flag io_wait as "iowait" 3],
    }
    ("sched_wakeup_task_attr", sched, Lenient, 540) Affinity {
        pid: [Pid pid 1],
        cpus: [Hex cpu_affinity 2],
    }
    ("uclamp_util_se", sched, Lenient, 0) Clamp {
        pid: [Pid pid],
        min: [U16 uclamp_min],
        max: [U16 uclamp_max],
    }
    ("task_newtask", task, Lenient, 235) NewTask {
        pid: [Pid pid 1],
        comm: [Comm comm 2],
        clone_flags: [Hex clone_flags 3],
    }
    ("task_rename", task, Lenient, 236) Rename {
        pid: [Pid pid 1],
        comm: [Unkept oldcomm, Comm newcomm 3, Behind oom_score_adj],
    }
    ("cpu_idle", power, Strict, 13) Idle {
        state: [IdleState state 1],
        cpu: [Cpu cpu_id 2],
    }
    ("cpu_frequency", power, Strict, 11) Frequency {
        khz: [U32 state 1],
        cpu: [Cpu cpu_id 2],
    }
    ("cpu_frequency_limits", power, Lenient, 12) FrequencyLimits {
        min_khz: [U32 min_freq as "min" 1],
        max_khz: [U32 max_freq as "max" 2],
        cpu: [Cpu cpu_id 3],
    }
    ("cpu_idle_miss", power, Lenient, 0) IdleMiss {
        cpu: [Cpu cpu_id],
        state: [U32 state],
        below: [Below below as "type"],
    }
    ("suspend_resume", power, Lenient, 113) Suspend {
        begins: [Suspend action 1, Flag start 3],
    }
    // Perfetto writes it for suspends of the machine alone.
    ("suspend_resume_minimal", power, Lenient, 481) Suspend { begins: [Flag start 1] }
    ("irq_handler_entry", irq, Lenient, 36) IrqEntry {
        irq: [I32 irq 1],
        handler: [Text name 2],
    }
    ("irq_handler_exit", irq, Lenient, 37) IrqExit { irq: [I32 irq 1] }
    ("softirq_raise", irq, Lenient, 26) SoftirqRaise { vector: [U8 vec 1] }
    ("softirq_entry", irq, Lenient, 24) SoftirqEntry { vector: [U8 vec 1] }
    ("softirq_exit", irq, Lenient, 25) SoftirqExit { vector: [U8 vec 1] }
    ("ipi_raise", ipi, Lenient, 23) IpiSend {
        to: [Mask target_cpus as "target_mask" 1],
        reason: [Reason reason as "(" 2],
    }
    ("ipi_send_cpu", ipi, Lenient, 0) IpiSend { to: [Cpu cpu], reason: [] }
    ("ipi_send_cpumask", ipi, Lenient, 0) IpiSend { to: [], reason: [Callsite callsite] }
    ("ipi_entry", ipi, Lenient, 21) VectorEntry { name: [Reason reason as "(" 1] }
    ("ipi_exit", ipi, Lenient, 22) VectorExit { name: [Reason reason as "(" 1] }
    ("local_timer_entry", irq_vectors, Lenient, 559) VectorEntry { name: [Vector vector 1] }
    ("local_timer_exit", irq_vectors, Lenient, 560) VectorExit { name: [Vector vector 1] }
    ("reschedule_entry", irq_vectors, Lenient, 0) VectorEntry { name: [Vector vector] }
    ("reschedule_exit", irq_vectors, Lenient, 0) VectorExit { name: [Vector vector] }
    ("call_function_entry", irq_vectors, Lenient, 0) VectorEntry { name: [Vector vector] }
    ("call_function_exit", irq_vectors, Lenient, 0) VectorExit { name: [Vector vector] }
    ("call_function_single_entry", irq_vectors, Lenient, 0) VectorEntry { name: [Vector vector] }
    ("call_function_single_exit", irq_vectors, Lenient, 0) VectorExit { name: [Vector vector] }
    ("hrtimer_start", timer, Lenient, 551) HrtimerStart {
        timer: [Address hrtimer 1],
        function: [Function function 2],
        expires: [Time expires 3],
    }
    ("hrtimer_cancel", timer, Lenient, 552) HrtimerCancel { timer: [Address hrtimer 1] }
    ("hrtimer_expire_entry", timer, Lenient, 553) HrtimerExpire {
        timer: [Address hrtimer 1],
        function: [Function function 3],
    }
    ("hrtimer_expire_exit", timer, Lenient, 554) HrtimerDone { timer: [Address hrtimer 1] }
    ("timer_start", timer, Lenient, 555) TimerStart {
        timer: [Address timer 1],
        function: [Function function 2],
        expires: [Time expires 3],
        ticks: [Ticks now as "[timeout" 4],
    }
    ("timer_cancel", timer, Lenient, 556) TimerCancel { timer: [Address timer 1] }
    ("timer_expire_entry", timer, Lenient, 557) TimerExpire {
        timer: [Address timer 1],
        function: [NewerFunction function 3],
    }
    ("timer_expire_exit", timer, Lenient, 558) TimerDone { timer: [Address timer 1] }
    ("workqueue_queue_work", workqueue, Lenient, 59) WorkQueue {
        work: [Work work as "work struct=" 1],
        function: [WorkFunction function as " function=" 2],
        cpu: [AnyCpu req_cpu 4],
    }
    ("workqueue_execute_start", workqueue, Lenient, 58) WorkStart {
        work: [Work work as "work struct " 1],
        function: [WorkFunction function as ": function " 2],
    }
    ("workqueue_execute_end", workqueue, Lenient, 57) WorkEnd {
        work: [Work work as "work struct " 1],
    }
    ("print", ftrace, Lenient, 3) Other {}
    ("tracing_mark_write", ftrace, Lenient, 80) Other {}
    // `print` as some reports have it.
    ("0", ftrace, Lenient, 0) Other {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracepoint::row::FIELDS_MAX;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_numbers_are_unique_and_small() {
        let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for row in TRACEPOINTS {
            assert!(names.insert(row.name), "{}", row.name);
            assert!(row.perfetto == 0 || numbers.insert(row.perfetto), "{}", row.name);
            assert!(row.fields.len() < FIELDS_MAX, "{}", row.name);
            let mut keys = BTreeSet::new();
            for field in row.fields {
                assert!((field.perfetto as usize) < FIELDS_MAX, "{} {}", row.name, field.name);
                assert!(!field.label.is_empty() && keys.insert(field.name), "{}", row.name);
            }
            // Ticks count to the field before.
            assert!(row.fields.first().is_none_or(|field| field.ty != Type::Ticks), "{}", row.name);
        }
    }
}
