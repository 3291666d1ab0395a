// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks and cgroups as a scheduler's C sees them.
//!
//! Tasks are structures in the object's memory, one for each number, made when the scheduler first sees it. Each is written
//! anew before a call that has it as an argument and when a function returns it; what the scheduler stores in `scx.slice`
//! and `scx.dsq_vtime` goes back to the kernel at its next function and after the call.

use super::layout::{CgroupStruct, Css, Entries, Mask, Ops, TaskStruct};
use schedtwin_kernel::hardware::TaskKind;
use schedtwin_kernel::policy::{Kfuncs, TaskView};
use schedtwin_types::{CpuMask, TaskGroupId, TaskId};
use std::ffi::{c_char, c_int};

/// Where a task's structure is, and the CPUs that are written in it.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot {
    /// 0: there is none yet.
    pub(super) address: usize,
    pub(super) cpus: CpuMask,
    /// The cgroup that is written in it; `None`: none is.
    pub(super) cgroup: Option<TaskGroupId>,
}

/// The call that is under way, as the C hands it back.
pub(super) struct Call<'a, 'k> {
    pub(super) scx: &'a mut Kfuncs<'k>,
    pub(super) tasks: &'a mut Vec<Slot>,
    pub(super) touched: &'a mut Vec<(TaskId, u64, u64)>,
    /// The structure of each cgroup, by number; 0: none yet.
    pub(super) cgroups: &'a mut Vec<usize>,
    pub(super) entries: Entries,
    pub(super) ops: Ops,
}

impl Call<'_, '_> {
    /// The structure of a task, up to date.
    pub(super) fn task(&mut self, task: TaskId) -> *mut TaskStruct {
        let index = task.index();
        if self.tasks.len() <= index {
            self.tasks.resize(index + 1, Slot::default());
        }
        let slot = &mut self.tasks[index];
        if slot.address == 0 {
            // SAFETY: the image is resident; the function gives zeroed memory of the heap, aligned to 64 bytes.
            let memory = unsafe { (self.entries.allocate)(size_of::<TaskStruct>()) };
            // SAFETY: the memory is as long as the structure, of which all zeros is a value.
            unsafe { name_task(&mut *memory.cast(), task) };
            slot.address = memory as usize;
        }
        let structure = slot.address as *mut TaskStruct;
        let view = self.scx.task(task);
        let known = self.touched.iter_mut().find(|(known, ..)| *known == task);
        match known {
            Some(known) => (known.1, known.2) = (view.slice, view.dsq_vtime),
            None => self.touched.push((task, view.slice, view.dsq_vtime)),
        }
        // SAFETY: the structure is in the heap of the resident image, of this type, and only this thread uses it.
        unsafe {
            write_task(structure, &view);
            if slot.cpus != view.cpus {
                slot.cpus = view.cpus;
                (*structure).cpus_mask = Mask::of(&view.cpus);
            }
        }
        let group = self.scx.task_cgroup(task);
        if self.tasks[index].cgroup != Some(group) {
            self.tasks[index].cgroup = Some(group);
            let cgroup = self.cgroup(group);
            // SAFETY: as above.
            unsafe { (*structure).css_set.dfl_cgrp = cgroup };
        }
        structure
    }

    /// The structure of a cgroup, up to date; null: it is none.
    pub(super) fn cgroup(&mut self, group: TaskGroupId) -> *const CgroupStruct {
        let Some(view) = self.scx.cgroup(group) else { return std::ptr::null() };
        let index = group.0 as usize;
        if self.cgroups.len() <= index {
            self.cgroups.resize(index + 1, 0);
        }
        if self.cgroups[index] == 0 {
            // SAFETY: the image is resident; the function gives zeroed memory of the heap, aligned to 64 bytes.
            let memory = unsafe { (self.entries.allocate)(size_of::<CgroupStruct>()) };
            self.cgroups[index] = memory as usize;
            // SAFETY: the memory is as long as the structure, of which all zeros is a value, and only this thread uses it.
            let to = unsafe { &mut *memory.cast::<CgroupStruct>() };
            (to.level, to.number) = (view.level as c_int, group.0 as c_int);
            (to.kn, to.kernfs.id, to.kernfs.name) = (&to.kernfs, view.id, to.label.as_ptr());
            to.subsys = [&raw const to.group];
            let above = view.parent.map_or(std::ptr::null(), |parent| self.cgroup(parent));
            let to = self.cgroups[index] as *mut CgroupStruct;
            // SAFETY: as above; the one above is such a structure, too, or null.
            unsafe {
                let (css, above_css) = match above.is_null() {
                    true => (std::ptr::null(), std::ptr::null()),
                    false => (&raw const (*above).group.css, &raw const (*above).css),
                };
                (*to).dom_cgrp = to;
                (*to).group.css = Css { cgroup: to, parent: css, refcnt: 0 };
                (*to).css = Css { cgroup: to, parent: above_css, refcnt: 0 };
            }
            // SAFETY: as above.
            let to = unsafe { &mut *to };
            for (to, from) in to.label.iter_mut().zip(format!("group-{}", group.0).bytes()) {
                *to = from as c_char;
            }
        }
        let structure = self.cgroups[index] as *mut CgroupStruct;
        // SAFETY: the structure is in the heap of the resident image, of this type, and only this thread uses it.
        unsafe {
            (*structure).group.weight = view.files.weight;
            (*structure).group.idle = view.files.idle;
        }
        structure
    }

    /// Gives the kernel what the scheduler has stored in tasks.
    pub(super) fn store(&mut self) {
        for at in 0..self.touched.len() {
            let (task, slice, vtime) = self.touched[at];
            let structure = self.tasks[task.index()].address as *const TaskStruct;
            // SAFETY: as in `task`.
            let (now_slice, now_vtime) =
                unsafe { ((*structure).scx.slice, (*structure).scx.dsq_vtime) };
            if now_slice != slice {
                self.scx.store_slice(task, now_slice);
            }
            if now_vtime != vtime {
                self.scx.task_set_dsq_vtime(task, now_vtime);
            }
            self.touched[at] = (task, now_slice, now_vtime);
        }
    }

    /// Reads back what a function of the kernel has changed, and calls `dequeue` for tasks that it has dispatched.
    pub(super) fn look_again(&mut self) {
        while let Some((task, flags)) = self.scx.take_notice() {
            if let Some(dequeue) = self.ops.dequeue {
                let structure = self.task(task);
                // SAFETY: the image is resident, and the structure lives in it.
                unsafe { dequeue(structure, flags) };
                self.store();
            }
        }
        for at in 0..self.touched.len() {
            let task = self.touched[at].0;
            self.task(task);
        }
    }
}

/// Writes what never changes.
pub(super) fn name_task(to: &mut TaskStruct, task: TaskId) {
    to.cpus_ptr = &to.cpus_mask;
    to.cgroups = &to.css_set;
    // Until it is known which task has made it.
    to.real_parent = std::ptr::from_ref(to).cast();
    // Numbers are never used twice, so the number is the `tid`, too.
    to.scx.tid = task.0.into();
    let name = format!("task-{}", task.0);
    for (to, from) in to.comm.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
}

/// Writes what a scheduler can read of a task, but for its CPUs.
///
/// # Safety
/// `to` leads to a structure that nobody else uses.
pub(super) unsafe fn write_task(to: *mut TaskStruct, view: &TaskView) {
    const PF_IDLE: u32 = 2;
    const PF_EXITING: u32 = 4;
    const PF_WQ_WORKER: u32 = 0x20;
    const PF_KTHREAD: u32 = 0x20_0000;
    // SAFETY: as the caller promises.
    let to = unsafe { &mut *to };
    let kernel = !matches!(view.kind, TaskKind::User);
    let worker = matches!(view.kind, TaskKind::Kworker { .. });
    to.pid = view.task.0 as c_int;
    to.tgid = to.pid;
    let idle = view.task.is_idle();
    let flags =
        [(kernel, PF_KTHREAD), (worker, PF_WQ_WORKER), (view.exiting, PF_EXITING), (idle, PF_IDLE)];
    to.flags = flags.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
    to.prio = view.prio;
    to.static_prio = 120 + i32::from(view.nice);
    to.policy = view.policy.number();
    to.nr_cpus_allowed = view.nr_cpus_allowed as c_int;
    to.on_cpu = view.running.into();
    to.cpu = view.cpu.0.into();
    to.scx.slice = view.slice;
    to.scx.dsq_vtime = view.dsq_vtime;
    to.scx.runnable_at = view.runnable_at;
    to.scx.weight = view.weight;
    // SCX_TASK_QUEUED, SCX_TASK_IMMED, SCX_TASK_REENQ_REASON_SHIFT.
    to.scx.flags =
        u32::from(view.queued) | u32::from(view.immed) << 5 | (view.reenq_reason as u32) << 12;
    to.sum_exec_runtime = view.sum_exec_runtime;
    // What a thread of the workload does counts as its own code, also within the kernel.
    (to.utime, to.stime) = if kernel { (0, view.ticked) } else { (view.ticked, 0) };
    (to.nvcsw, to.nivcsw) = (view.voluntary_switches, view.involuntary_switches);
    // A thread of the workload has memory of its own; only whether there is any can be asked.
    to.mm = if kernel { std::ptr::null() } else { std::ptr::from_ref(&to.cpus_mask).cast() };
}
