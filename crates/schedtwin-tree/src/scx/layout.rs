// SPDX-License-Identifier: GPL-2.0-or-later
//! The structures that a scheduler's C and the twin share: `c/include/schedtwin/scx.h` has the same in C.

use super::ask::Questions;
use crate::memory::Image;
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS};
use std::ffi::{c_char, c_int, c_long, c_void};

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
    pub(super) avg: [u64; 3],
    pub(super) utime: u64,
    pub(super) stime: u64,
    pub(super) nvcsw: u64,
    pub(super) nivcsw: u64,
    pub(super) stats: [u64; 2],
    pub(super) mempolicy: *const c_void,
    pub(super) mm: *const c_void,
    pub(super) real_parent: *const c_void,
    pub(super) cpus_ptr: *const Mask,
    pub(super) cgroups: *const CssSet,
    pub(super) cpus_mask: Mask,
    pub(super) css_set: CssSet,
}

#[repr(C)]
pub(super) struct SchedExtEntity {
    pub(super) slice: u64,
    pub(super) dsq_vtime: u64,
    pub(super) runnable_at: u64,
    pub(super) weight: u32,
    pub(super) flags: u32,
    pub(super) disallow: bool,
    pub(super) tid: u64,
    pub(super) ddsp: [u64; 2],
}

#[repr(C)]
pub(super) struct CssSet {
    pub(super) dfl_cgrp: *const CgroupStruct,
}

/// `struct cgroup_subsys_state`.
#[repr(C)]
pub(super) struct Css {
    pub(super) cgroup: *const CgroupStruct,
    pub(super) parent: *const Css,
    pub(super) refcnt: u64,
}

/// `struct cgroup`, and behind it what its pointers lead to.
#[repr(C)]
pub(super) struct CgroupStruct {
    pub(super) kn: *const KernfsNode,
    pub(super) level: c_int,
    pub(super) number: c_int,
    pub(super) subsys: [*const TaskGroup; 1],
    pub(super) dom_cgrp: *const CgroupStruct,
    pub(super) css: Css,
    pub(super) kernfs: KernfsNode,
    pub(super) group: TaskGroup,
    pub(super) label: [c_char; 16],
}

#[repr(C)]
pub(super) struct KernfsNode {
    pub(super) id: u64,
    pub(super) name: *const c_char,
}

/// `struct task_group`, which begins with its `cgroup_subsys_state`.
#[repr(C)]
pub(super) struct TaskGroup {
    pub(super) css: Css,
    pub(super) weight: u32,
    pub(super) idle: bool,
}

#[repr(C)]
pub(super) struct CgroupInitArgs {
    pub(super) weight: u32,
    pub(super) bw_period_us: u64,
    pub(super) bw_quota_us: u64,
    pub(super) bw_burst_us: u64,
    pub(super) sched_idle: bool,
}

/// `struct scx_cmask` of all CPUs.
#[repr(C)]
pub(super) struct Cmask {
    base: u32,
    nr_cids: u32,
    alloc_words: u32,
    bits: [u64; MAX_CPUS / 64 + 1],
}

impl Cmask {
    /// Of these numbers, of which there are `nr_cids`.
    pub(super) fn of(cids: impl Iterator<Item = u16>, nr_cids: usize) -> Cmask {
        let mut bits = [0; MAX_CPUS / 64 + 1];
        cids.for_each(|cid| bits[usize::from(cid) / 64] |= 1 << (cid % 64));
        Cmask { base: 0, nr_cids: nr_cids as u32, alloc_words: bits.len() as u32, bits }
    }
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
    pub(super) set_cpumask: Option<unsafe extern "C" fn(*mut TaskStruct, *const c_void)>,
    pub(super) update_idle: Option<unsafe extern "C" fn(i32, bool)>,
    pub(super) cpu_acquire: Option<unsafe extern "C" fn(i32, *const c_void)>,
    pub(super) cpu_release: Option<unsafe extern "C" fn(i32, *const ReleaseArgs)>,
    pub(super) init_task: Option<unsafe extern "C" fn(*mut TaskStruct, *const InitTaskArgs) -> i32>,
    pub(super) exit_task: Option<unsafe extern "C" fn(*mut TaskStruct, *const bool)>,
    pub(super) enable: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    pub(super) disable: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    pub(super) dump: [*const c_void; 3],
    pub(super) hotplug: [*const c_void; 2],
    pub(super) cgroup_init:
        Option<unsafe extern "C" fn(*const CgroupStruct, *const CgroupInitArgs) -> i32>,
    pub(super) cgroup_exit: Option<unsafe extern "C" fn(*const CgroupStruct)>,
    pub(super) cgroup_prep_move: Option<
        unsafe extern "C" fn(*mut TaskStruct, *const CgroupStruct, *const CgroupStruct) -> i32,
    >,
    pub(super) cgroup_move:
        Option<unsafe extern "C" fn(*mut TaskStruct, *const CgroupStruct, *const CgroupStruct)>,
    pub(super) cgroup_cancel_move: *const c_void,
    pub(super) cgroup_set_weight: Option<unsafe extern "C" fn(*const CgroupStruct, u32)>,
    pub(super) cgroup_set_bandwidth:
        Option<unsafe extern "C" fn(*const CgroupStruct, u64, u64, u64)>,
    pub(super) cgroup_set_idle: Option<unsafe extern "C" fn(*const CgroupStruct, bool)>,
    pub(super) sub_schedulers: [*const c_void; 4],
    pub(super) init_cids: Option<unsafe extern "C" fn() -> i32>,
    pub(super) init: Option<unsafe extern "C" fn() -> i32>,
    pub(super) exit: Option<unsafe extern "C" fn(*const ExitInfo)>,
    pub(super) dispatch_max_batch: u32,
    pub(super) flags: u64,
    pub(super) timeout_ms: u32,
    pub(super) exit_dump_len: u32,
    pub(super) hotplug_seq: u64,
    pub(super) cid_shard_size: u32,
    pub(super) rescue: [u32; 2],
    pub(super) sub_cgroup_id: u64,
    pub(super) name: [c_char; NAME_BYTES],
}

// SAFETY: the pointers lead into the object's code, which stays loaded as long as the arena; they are never written.
unsafe impl Send for Ops {}
// SAFETY: as above.
unsafe impl Sync for Ops {}

#[repr(C)]
pub(super) struct InitTaskArgs {
    pub(super) fork: bool,
    pub(super) cgroup: *const CgroupStruct,
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

pub(super) type DefineMap = unsafe extern "C" fn(
    *mut *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
    *mut c_void,
    c_int,
    *mut c_void,
) -> *mut c_void;

/// `SCX_OPS_NAME_LEN`, include/linux/sched/ext.h.
pub(super) const NAME_BYTES: usize = 128;

/// The functions of `c/scx.c` and `c/scx_maps.c`.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    pub(super) boot: unsafe extern "C" fn(u32) -> *const Ops,
    pub(super) enter: unsafe extern "C" fn(*mut c_void, &'static Questions, u32),
    /// Time that helpers and maps have cost since, ns.
    pub(super) spent: unsafe extern "C" fn() -> u32,
    pub(super) allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(super) timer: unsafe extern "C" fn(u32),
    pub(super) uses_cids: unsafe extern "C" fn() -> bool,
    pub(super) number_cids: unsafe extern "C" fn(*const u16, u32),
    pub(super) define_map: DefineMap,
    pub(super) own: unsafe extern "C" fn(*mut c_void, u32),
    pub(super) fill_map: unsafe extern "C" fn(*mut c_void, *const c_void, u32, u32, u64),
    pub(super) push: unsafe extern "C" fn(*mut c_void, *const c_void, u64) -> c_long,
    pub(super) pop: unsafe extern "C" fn(*mut c_void, *mut c_void, bool) -> c_long,
    pub(super) forget: unsafe extern "C" fn(*mut *mut c_void, u32),
    pub(super) base: unsafe extern "C" fn() -> *mut u8,
}

impl Entries {
    pub(super) fn of(image: &Image) -> Entries {
        let arena = image.arena();
        // SAFETY: these are the types of the functions in `c/scx.c`, `c/scx_maps.c` and `c/runtime.c`.
        unsafe {
            Entries {
                boot: arena.function(c"schedtwin_scx_boot"),
                enter: arena.function(c"schedtwin_scx_enter"),
                spent: arena.function(c"schedtwin_scx_spent"),
                allocate: arena.function(c"schedtwin_scx_allocate"),
                timer: arena.function(c"schedtwin_scx_timer"),
                uses_cids: arena.function(c"schedtwin_scx_uses_cids"),
                number_cids: arena.function(c"schedtwin_scx_number_cids"),
                define_map: arena.function(c"schedtwin_scx_define_map"),
                own: arena.function(c"schedtwin_scx_own"),
                fill_map: arena.function(c"schedtwin_scx_fill_map"),
                push: arena.function(c"schedtwin_map_push"),
                pop: arena.function(c"schedtwin_map_pop"),
                forget: arena.function(c"schedtwin_scx_forget"),
                base: arena.function(c"schedtwin_base"),
            }
        }
    }
}

impl Ops {
    /// Its name and numbers alone.
    pub(super) fn without_callbacks(&self) -> Ops {
        // SAFETY: all of them are pointers that may be null, functions that may be absent, and numbers.
        let empty: Ops = unsafe { std::mem::zeroed() };
        Ops {
            dispatch_max_batch: self.dispatch_max_batch,
            flags: self.flags,
            timeout_ms: self.timeout_ms,
            name: self.name,
            ..empty
        }
    }

    pub(super) fn name(&self) -> String {
        let bytes = self.name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }
}
