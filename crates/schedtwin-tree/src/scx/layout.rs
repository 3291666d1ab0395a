// SPDX-License-Identifier: GPL-2.0-or-later
//! The structures that a scheduler's C and the twin share: `c/include/schedtwin/scx.h` has the same in C.

use super::ask::Questions;
use crate::memory::Image;
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS};
use std::ffi::{c_char, c_int, c_void};

/// `struct task_struct` of `c/include/schedtwin/scx.h`.
#[repr(C)]
pub(super) struct TaskStruct {
    pub(super) pid: c_int,
    pub(super) tgid: c_int,
    pub(super) flags: u32,
    pub(super) prio: c_int,
    pub(super) static_prio: c_int,
    pub(super) policy: u32,
    pub(super) nr_cpus_allowed: c_int,
    pub(super) on_cpu: c_int,
    pub(super) recent_used_cpu: c_int,
    pub(super) cpu: c_int,
    pub(super) migration_disabled: u16,
    pub(super) comm: [c_char; 16],
    pub(super) scx: SchedExtEntity,
    pub(super) sum_exec_runtime: u64,
    pub(super) mm: *const c_void,
    pub(super) real_parent: *const c_void,
    pub(super) cpus_ptr: *const Mask,
    pub(super) cpus_mask: Mask,
}

#[repr(C)]
pub(super) struct SchedExtEntity {
    pub(super) slice: u64,
    pub(super) dsq_vtime: u64,
    pub(super) runnable_at: u64,
    pub(super) weight: u32,
    pub(super) flags: u32,
    pub(super) disallow: bool,
}

/// `struct cpumask`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Mask {
    pub(super) bits: [u64; MAX_CPUS / 64],
}

impl Mask {
    pub(super) fn of(cpus: &CpuMask) -> Mask {
        let mut bits = [0; MAX_CPUS / 64];
        for cpu in cpus.iter() {
            bits[cpu.index() / 64] |= 1 << (cpu.index() % 64);
        }
        Mask { bits }
    }

    pub(super) fn cpus(&self) -> CpuMask {
        let has = |cpu: &usize| self.bits[cpu / 64] >> (cpu % 64) & 1 != 0;
        CpuMask::from_cpus((0..MAX_CPUS).filter(has).map(|cpu| CpuId(cpu as u16)))
    }
}

/// `struct sched_ext_ops`: its callbacks in order, then its numbers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Ops {
    pub(super) select_cpu: Option<unsafe extern "C" fn(*mut TaskStruct, i32, u64) -> i32>,
    pub(super) enqueue: Option<unsafe extern "C" fn(*mut TaskStruct, u64)>,
    pub(super) dequeue: Option<unsafe extern "C" fn(*mut TaskStruct, u64)>,
    pub(super) dispatch: Option<unsafe extern "C" fn(i32, *mut TaskStruct)>,
    pub(super) tick: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    pub(super) runnable: Option<unsafe extern "C" fn(*mut TaskStruct, u64)>,
    pub(super) running: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    pub(super) stopping: Option<unsafe extern "C" fn(*mut TaskStruct, bool)>,
    pub(super) quiescent: Option<unsafe extern "C" fn(*mut TaskStruct, u64)>,
    pub(super) yield_task: Option<unsafe extern "C" fn(*mut TaskStruct, *mut TaskStruct) -> bool>,
    pub(super) core_sched_before: Option<unsafe extern "C" fn()>,
    pub(super) set_weight: Option<unsafe extern "C" fn(*mut TaskStruct, u32)>,
    pub(super) set_cpumask: Option<unsafe extern "C" fn(*mut TaskStruct, *const Mask)>,
    pub(super) update_idle: Option<unsafe extern "C" fn(i32, bool)>,
    pub(super) cpu_acquire: Option<unsafe extern "C" fn(i32, *const c_void)>,
    pub(super) cpu_release: Option<unsafe extern "C" fn(i32, *const ReleaseArgs)>,
    pub(super) init_task: Option<unsafe extern "C" fn(*mut TaskStruct, *const InitTaskArgs) -> i32>,
    pub(super) exit_task: Option<unsafe extern "C" fn(*mut TaskStruct, *const bool)>,
    pub(super) enable: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    pub(super) disable: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    pub(super) dump: [*const c_void; 3],
    pub(super) hotplug: [*const c_void; 2],
    pub(super) init: Option<unsafe extern "C" fn() -> i32>,
    pub(super) exit: Option<unsafe extern "C" fn(*const ExitInfo)>,
    pub(super) dispatch_max_batch: u32,
    pub(super) flags: u64,
    pub(super) timeout_ms: u32,
    pub(super) exit_dump_len: u32,
    pub(super) hotplug_seq: u64,
    pub(super) name: [c_char; 128],
}

// SAFETY: the pointers lead into the object's code, which stays loaded as long as the arena; they are never written.
unsafe impl Send for Ops {}
// SAFETY: as above.
unsafe impl Sync for Ops {}

#[repr(C)]
pub(super) struct InitTaskArgs {
    pub(super) fork: bool,
    pub(super) cgroup: *const c_void,
}

#[repr(C)]
pub(super) struct ReleaseArgs {
    pub(super) reason: u32,
    pub(super) task: *mut TaskStruct,
}

#[repr(C)]
pub(super) struct ExitInfo {
    pub(super) kind: u32,
    pub(super) exit_code: i64,
    pub(super) flags: u64,
    pub(super) reason: *const c_char,
    pub(super) msg: *const c_char,
}

/// The functions of `c/scx.c`.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    pub(super) boot: unsafe extern "C" fn(u32) -> *const Ops,
    pub(super) enter: unsafe extern "C" fn(*mut c_void, &'static Questions, u32),
    pub(super) allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(super) timer: unsafe extern "C" fn(u32),
    pub(super) base: unsafe extern "C" fn() -> *mut u8,
}

impl Entries {
    pub(super) fn of(image: &Image) -> Entries {
        let arena = image.arena();
        // SAFETY: these are the types of the functions in `c/scx.c` and `c/runtime.c`.
        unsafe {
            Entries {
                boot: arena.function(c"schedtwin_scx_boot"),
                enter: arena.function(c"schedtwin_scx_enter"),
                allocate: arena.function(c"schedtwin_scx_allocate"),
                timer: arena.function(c"schedtwin_scx_timer"),
                base: arena.function(c"schedtwin_base"),
            }
        }
    }
}

impl Ops {
    pub(super) fn name(&self) -> String {
        let bytes = self.name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }
}
