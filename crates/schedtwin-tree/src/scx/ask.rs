// SPDX-License-Identifier: GPL-2.0-or-later
//! Functions of the kernel that a scheduler's C calls: `struct schedtwin_scx_questions` of `c/scx.c`.

use super::layout::{CgroupStruct, Mask, TaskStruct};
use super::mirror::Call;
use schedtwin_kernel::policy::{DsqIter, SCX_DSQ_LOCAL};
use schedtwin_types::{CpuId, CpuMask, TaskGroupId, TaskId};
use std::ffi::{CStr, c_char, c_int, c_void};

/// `struct schedtwin_scx_questions` of `c/scx.c`. The first argument is the call that is under way.
#[repr(C)]
pub(super) struct Questions {
    create_dsq: unsafe extern "C" fn(*mut c_void, u64) -> i32,
    destroy_dsq: unsafe extern "C" fn(*mut c_void, u64),
    insert: unsafe extern "C" fn(*mut c_void, c_int, u64, u64, u64, u64, bool) -> bool,
    move_to_local: unsafe extern "C" fn(*mut c_void, u64, u64) -> bool,
    number: unsafe extern "C" fn(*mut c_void, c_int, u64) -> i32,
    iter_new: unsafe extern "C" fn(*mut c_void, *mut [u64; 4], u64, bool) -> bool,
    iter_next: unsafe extern "C" fn(*mut c_void, *mut [u64; 4]) -> *mut TaskStruct,
    move_task: MoveTask,
    select_cpu: unsafe extern "C" fn(*mut c_void, c_int, i32, u64, *const Mask, u64) -> i32,
    pick: unsafe extern "C" fn(*mut c_void, *const Mask, u64, c_int) -> i32,
    mask: unsafe extern "C" fn(*mut c_void, c_int, *mut Mask),
    task: unsafe extern "C" fn(*mut c_void, c_int, i32) -> *mut TaskStruct,
    set: unsafe extern "C" fn(*mut c_void, c_int, c_int, u64) -> bool,
    act: unsafe extern "C" fn(*mut c_void, c_int, i64, u64),
    time: unsafe extern "C" fn(*mut c_void, c_int, u64) -> u64,
    timer: unsafe extern "C" fn(*mut c_void, i64, u64, u64, c_int) -> i64,
    end: unsafe extern "C" fn(*mut c_void, i64, bool, *const c_char),
    cgroup: unsafe extern "C" fn(*mut c_void, c_int, u64) -> *const CgroupStruct,
}

type MoveTask = unsafe extern "C" fn(
    *mut c_void,
    *mut [u64; 4],
    c_int,
    u64,
    u64,
    bool,
    *const u64,
    *const u64,
) -> bool;

pub(super) static QUESTIONS: Questions = Questions {
    create_dsq: ask_create,
    destroy_dsq: ask_destroy,
    insert: ask_insert,
    move_to_local: ask_move_to_local,
    number: ask_number,
    iter_new: ask_iter_new,
    iter_next: ask_iter_next,
    move_task: ask_move,
    select_cpu: ask_select_cpu,
    pick: ask_pick,
    mask: ask_mask,
    task: ask_task,
    set: ask_set,
    act: ask_act,
    time: ask_time,
    timer: ask_timer,
    end: ask_end,
    cgroup: ask_cgroup,
};

/// The machine has been up for so long when a scheduler in C is loaded: schedulers take a clock of 0 for none, and loaders
/// are started long after boot. 60 s.
const UPTIME_NS: u64 = 60_000_000_000;

/// The call that is under way.
///
/// # Safety
/// `call` is what `TreeExt::call` has handed to the C, which asks while that call is under way only.
unsafe fn of<'a>(call: *mut c_void) -> &'a mut Call<'a, 'a> {
    // SAFETY: as the caller promises.
    unsafe { &mut *call.cast::<Call>() }
}

fn cpu_or_none(cpu: Option<CpuId>) -> i32 {
    // -EBUSY.
    cpu.map_or(-16, |cpu| cpu.0.into())
}

// SAFETY of the functions below: the C hands back the call that is under way, and pointers to its own variables.

unsafe extern "C" fn ask_create(call: *mut c_void, dsq_id: u64) -> i32 {
    // SAFETY: see above.
    unsafe { of(call) }.scx.create_dsq(dsq_id)
}

unsafe extern "C" fn ask_destroy(call: *mut c_void, dsq_id: u64) {
    // SAFETY: see above.
    unsafe { of(call) }.scx.destroy_dsq(dsq_id)
}

unsafe extern "C" fn ask_insert(
    call: *mut c_void,
    pid: c_int,
    dsq_id: u64,
    slice: u64,
    vtime: u64,
    enq_flags: u64,
    priq: bool,
) -> bool {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    call.store();
    let task = TaskId(pid as u32);
    let inserted = match priq {
        true => call.scx.dsq_insert_vtime(task, dsq_id, slice, vtime, enq_flags),
        false => call.scx.dsq_insert(task, dsq_id, slice, enq_flags),
    };
    call.look_again();
    inserted
}

unsafe extern "C" fn ask_move_to_local(call: *mut c_void, dsq_id: u64, enq_flags: u64) -> bool {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    call.store();
    let moved = call.scx.dsq_move_to_local(dsq_id, enq_flags);
    call.look_again();
    moved
}

unsafe extern "C" fn ask_number(call: *mut c_void, which: c_int, argument: u64) -> i32 {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    let nr_cpus = call.scx.nr_cpu_ids();
    let cpu = CpuId(argument as u16);
    match which {
        0 => call.scx.dispatch_nr_slots() as i32,
        1 => call.scx.dsq_nr_queued(argument),
        2 => call.scx.nr_node_ids() as i32,
        3..=6 if argument >= nr_cpus as u64 => {
            call.scx.error(format!("invalid CPU {}", argument as i32));
            0
        }
        3 => call.scx.cpu_node(cpu).into(),
        4 => call.scx.cpuperf_cap(cpu) as i32,
        5 => call.scx.cpuperf_cur(cpu) as i32,
        6 => call.scx.llc_id(cpu).0.into(),
        7 => call.scx.task_cpu(TaskId(argument as u32)).0.into(),
        8 => call.scx.task_running(TaskId(argument as u32)).into(),
        9 => {
            let queued = call.scx.dsq_nr_queued(SCX_DSQ_LOCAL);
            call.scx.dsq_reenq(SCX_DSQ_LOCAL);
            queued
        }
        10 => call.scx.in_interrupt().into(),
        11 => call.scx.nr_cgroups() as i32,
        _ => {
            let events = call.scx.events();
            let counts = [
                events.select_cpu_fallback,
                events.dispatch_keep_last,
                events.enq_skip_exiting,
                events.refill_slice_dfl,
            ];
            counts.get(argument as usize).map_or(0, |count| *count as i32)
        }
    }
}

unsafe extern "C" fn ask_iter_new(
    call: *mut c_void,
    state: *mut [u64; 4],
    dsq_id: u64,
    rev: bool,
) -> bool {
    // SAFETY: see above.
    let (call, state) = unsafe { (of(call), &mut *state) };
    let iter = call.scx.dsq_iter(dsq_id, rev);
    *state = iter.map_or([u64::MAX; 4], DsqIter::to_words);
    iter.is_some()
}

unsafe extern "C" fn ask_iter_next(call: *mut c_void, state: *mut [u64; 4]) -> *mut TaskStruct {
    // SAFETY: see above.
    let (call, state) = unsafe { (of(call), &mut *state) };
    let mut iter = DsqIter::from_words(*state);
    let next = call.scx.dsq_iter_next(&mut iter);
    *state = iter.to_words();
    next.map_or(std::ptr::null_mut(), |task| call.task(task))
}

unsafe extern "C" fn ask_move(
    call: *mut c_void,
    state: *mut [u64; 4],
    pid: c_int,
    dsq_id: u64,
    enq_flags: u64,
    priq: bool,
    slice: *const u64,
    vtime: *const u64,
) -> bool {
    // SAFETY: see above; the last two may be null.
    let (call, state, slice, vtime) =
        unsafe { (of(call), *state, slice.as_ref().copied(), vtime.as_ref().copied()) };
    call.store();
    let iter = DsqIter::from_words(state);
    let task = TaskId(pid as u32);
    let moved = call.scx.dsq_move(&iter, task, dsq_id, (slice, vtime), enq_flags, priq);
    call.look_again();
    moved
}

unsafe extern "C" fn ask_select_cpu(
    call: *mut c_void,
    pid: c_int,
    prev_cpu: i32,
    wake_flags: u64,
    within: *const Mask,
    flags: u64,
) -> i32 {
    // SAFETY: see above; the mask may be null.
    let (call, within) = unsafe { (of(call), within.as_ref()) };
    let (task, prev) = (TaskId(pid as u32), CpuId(prev_cpu as u16));
    if prev_cpu < 0 || prev_cpu as usize >= call.scx.nr_cpu_ids() {
        call.scx.error(format!("select_cpu: invalid CPU {prev_cpu}"));
        return -22;
    }
    match within {
        Some(within) => {
            cpu_or_none(call.scx.select_cpu_and(task, prev, wake_flags, &within.cpus(), flags))
        }
        None => {
            let (cpu, is_idle) = call.scx.select_cpu_dfl(task, prev, wake_flags);
            cpu_or_none(is_idle.then_some(cpu))
        }
    }
}

/// A node that the C names by its number plus one; `NUMA_NO_NODE`: the one of this CPU.
fn node_of(call: &Call, number: c_int) -> u16 {
    let nodes = call.scx.nr_node_ids() as c_int;
    let here = call.scx.cpu_node(call.scx.this_cpu());
    if (1..=nodes).contains(&number) { (number - 1) as u16 } else { here }
}

unsafe extern "C" fn ask_pick(call: *mut c_void, mask: *const Mask, flags: u64, how: c_int) -> i32 {
    // SAFETY: see above; the mask may be null.
    let (call, mask) = unsafe { (of(call), mask.as_ref()) };
    let cpus = mask.map_or(CpuMask::EMPTY, Mask::cpus);
    match how {
        0 => cpu_or_none(call.scx.pick_idle_cpu(&cpus, flags)),
        1 => cpu_or_none(call.scx.pick_any_cpu(&cpus, flags)),
        2 => cpu_or_none(call.scx.any_distribute(&cpus)),
        3 => call.scx.test_and_clear_cpu_idle(flags as i32).into(),
        _ => {
            let node = node_of(call, how >> 2);
            let idle = call.scx.pick_idle_cpu_node(&cpus, node, flags);
            let any = how & 3 == 1;
            cpu_or_none(idle.or_else(|| call.scx.any_distribute(&cpus).filter(|_| any)))
        }
    }
}

unsafe extern "C" fn ask_mask(call: *mut c_void, which: c_int, to: *mut Mask) {
    // SAFETY: see above.
    let (call, to) = unsafe { (of(call), &mut *to) };
    *to = Mask::of(&match which {
        0 => call.scx.idle_cpumask(),
        1 => call.scx.idle_smtmask(),
        2 => call.scx.possible_cpus(),
        _ => {
            let node = node_of(call, which >> 2);
            match which & 3 {
                0 => call.scx.idle_cpumask_node(node),
                _ => call.scx.idle_smtmask_node(node),
            }
        }
    });
}

unsafe extern "C" fn ask_task(call: *mut c_void, which: c_int, argument: i32) -> *mut TaskStruct {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    let task = match which {
        1 if argument >= 0 && (argument as usize) < call.scx.nr_cpu_ids() => {
            Some(call.scx.cpu_curr(CpuId(argument as u16)))
        }
        2 => Some(call.scx.current()),
        3 => call.scx.task_from_pid(argument),
        _ => None,
    };
    task.map_or(std::ptr::null_mut(), |task| call.task(task))
}

unsafe extern "C" fn ask_set(call: *mut c_void, pid: c_int, which: c_int, value: u64) -> bool {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    call.store();
    let task = TaskId(pid as u32);
    let done = match which {
        0 => call.scx.task_set_slice(task, value),
        _ => call.scx.task_set_dsq_vtime(task, value),
    };
    call.task(task);
    done
}

unsafe extern "C" fn ask_act(call: *mut c_void, which: c_int, a: i64, b: u64) {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    match which {
        0 => call.scx.kick_cpu(a as i32, b),
        1 => call.scx.cpuperf_set(a as i32, b as u32),
        2 => call.scx.dispatch_cancel(),
        _ => call.scx.dsq_reenq(a as u64),
    }
}

unsafe extern "C" fn ask_time(call: *mut c_void, which: c_int, argument: u64) -> u64 {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    match which {
        0 => UPTIME_NS + call.scx.now(),
        1 => UPTIME_NS + call.scx.ktime_get_ns(),
        2 => call.scx.jiffies(),
        _ => {
            let cpu = CpuId(argument.min(call.scx.nr_cpu_ids() as u64 - 1) as u16);
            let (task, pelt) = call.scx.rq_clocks(cpu);
            UPTIME_NS + if which == 3 { task } else { pelt }
        }
    }
}

unsafe extern "C" fn ask_cgroup(
    call: *mut c_void,
    which: c_int,
    argument: u64,
) -> *const CgroupStruct {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    let group = TaskGroupId(argument as u32);
    let found = match which {
        0 => Some(call.scx.task_cgroup(TaskId(argument as u32))),
        1 => call.scx.cgroup_from_id(argument),
        2 => call.scx.cgroup(group).and_then(|cgroup| cgroup.parent),
        _ => Some(group),
    };
    let structure = found.map_or(std::ptr::null(), |group| call.cgroup(group));
    // scx_bpf_task_cgroup() returns the root where the task has none (any more).
    if which == 0 && structure.is_null() { call.cgroup(TaskGroupId::ROOT) } else { structure }
}

unsafe extern "C" fn ask_timer(
    call: *mut c_void,
    number: i64,
    ns: u64,
    flags: u64,
    what: c_int,
) -> i64 {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    match what {
        0 => call.scx.timer_init().into(),
        1 => {
            let absolute = flags & 1 != 0;
            let ns = if absolute { ns.saturating_sub(UPTIME_NS) } else { ns };
            call.scx.timer_start(number as u32, ns, absolute, flags & 2 != 0);
            0
        }
        _ => call.scx.timer_cancel(number as u32).into(),
    }
}

unsafe extern "C" fn ask_end(call: *mut c_void, code: i64, error: bool, message: *const c_char) {
    // SAFETY: see above; the message ends with a zero.
    let (call, message) = unsafe { (of(call), CStr::from_ptr(message)) };
    let message = message.to_string_lossy().into_owned();
    match error {
        true => call.scx.error(message),
        false => call.scx.exit(code, message),
    }
}
