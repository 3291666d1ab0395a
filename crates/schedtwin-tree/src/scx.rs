// SPDX-License-Identifier: GPL-2.0-or-later
//! Schedulers of sched_ext in C, behind the policy interface.
//!
//! A `.bpf.c` file is compiled as native C against `c/include/schedtwin/scx.h` and called where the kernel calls its
//! programs. Tasks are structures in the object's memory, one for each number, made when the scheduler first sees it. Each
//! is written anew before a call that has it as an argument and when a function returns it; what the scheduler stores in
//! `scx.slice` and `scx.dsq_vtime` goes back to the kernel at its next function and after the call.
//!
//! **The loader's part.** What a scheduler's own program would write before it loads it are settings, by the names of the
//! variables. Some have a value by their name: how many CPUs there are, and the slice of 20 ms that loaders set.

use crate::built::Built;
use crate::compile::Job;
use crate::elf::{self, Variable};
use crate::ext_setting::ExtSetting;
use crate::memory::Image;
use crate::sources::Sources;
use crate::watch::{Question, Watched};
use crate::{Fault, Tree};
use schedtwin_input::did_you_mean;
use schedtwin_kernel::hardware::TaskKind;
use schedtwin_kernel::policy::{
    CpuPreemptReason, DsqIter, ExtProperties, ExtScheduler, Kfuncs, OP_COST_NS,
    SCX_OPS_ALLOW_QUEUED_WAKEUP, SCX_OPS_ENQ_EXITING, SCX_OPS_ENQ_LAST,
    SCX_OPS_ENQ_MIGRATION_DISABLED, SCX_SLICE_DFL, TaskChange, TaskView,
};
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS, Policy, TaskId};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

/// Variables by which a scheduler and its program in user space share decisions.
const IN_USER_SPACE: [&str; 1] = ["usersched_pid"];
/// Names that loaders give the number of CPUs.
const CPU_COUNTS: [&str; 4] = ["nr_cpu_ids", "nr_cpus", "num_possible_cpus", "nr_cpu"];
/// Names that loaders give the slice, nanoseconds.
const SLICES: [&str; 3] = ["slice_ns", "cgrp_slice_ns", "slice_max"];

/// A scheduler's C, compiled, with the values that its loader would write.
#[derive(Clone, Debug)]
pub struct ExtCode {
    built: Built,
    variables: Arc<BTreeMap<String, Variable>>,
    writes: Arc<Vec<(Variable, u64)>>,
    op_cost_ns: u64,
    timeout_ms: Option<u32>,
    flags: Option<u64>,
}

impl ExtCode {
    /// Compiles `file` of the folder or revision.
    ///
    /// # Errors
    /// If there is no such file, no compiler, or the file does not compile.
    pub fn build(tree: &Tree, file: &str, hz: u64) -> Result<ExtCode, Fault> {
        let sources = Sources::gather(tree, file)?;
        let defines = [
            format!("HZ={hz}"),
            "SCHEDTWIN_SCX=1".to_string(),
            format!("SCHEDTWIN_NR_CPUS={MAX_CPUS}"),
            "SCHEDTWIN_KERNEL_VERSION=KERNEL_VERSION(7,3,4)".to_string(),
        ];
        let built = Built::new(&Job {
            tree,
            path: file,
            sources: &sources,
            glue: "scx.c",
            defines: &defines,
        })?;
        let object = std::fs::read(built.code.object()).unwrap_or_default();
        let variables = Arc::new(elf::variables(&object));
        if let Some(part) = IN_USER_SPACE.into_iter().find(|name| variables.contains_key(*name)) {
            return Err(Fault::new(
                format!("a part of {} decides in user space (`{part}`)", built.name),
                "the twin runs what the kernel would run; that part is a program of its own",
            ));
        }
        Ok(ExtCode {
            built,
            variables,
            writes: Arc::default(),
            op_cost_ns: OP_COST_NS,
            timeout_ms: None,
            flags: None,
        })
    }

    /// With a setting.
    ///
    /// # Errors
    /// If the scheduler has no such variable, or the value does not fit into it.
    pub fn with(mut self, setting: &ExtSetting) -> Result<ExtCode, Fault> {
        match setting {
            ExtSetting::OpNs(ns) => self.op_cost_ns = *ns,
            ExtSetting::Flags(flags) => self.flags = Some(*flags),
            ExtSetting::TimeoutMs(ms) => self.timeout_ms = Some(*ms),
            ExtSetting::SliceUs(us) => {
                let known = SLICES.into_iter().find(|name| self.variables.contains_key(*name));
                let Some(name) = known else {
                    return Err(Fault::new(
                        format!("{} has no slice that its loader sets", self.name()),
                        format!("it would be called {}", SLICES.join(" or ")),
                    ));
                };
                self.write(name, (*us * 1000) as i64)?;
            }
            ExtSetting::Variable(name, value) => self.write(name, *value)?,
        }
        Ok(self)
    }

    fn write(&mut self, name: &str, value: i64) -> Result<(), Fault> {
        let Some(variable) = self.variables.get(name).copied() else {
            let known = self.variables.keys().map(String::as_str);
            let near = did_you_mean(name, known.filter(|name| !name.contains("schedtwin")));
            let help = near.map_or_else(
                || "variables outside of functions can be set, by their names".to_string(),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Fault::new(format!("{} has no variable `{name}`", self.name()), help));
        };
        let bits = 8 * variable.bytes as u32;
        let fits = match variable.bytes {
            1 | 2 | 4 => value >= -(1 << (bits - 1)) && value < 1 << bits,
            8 => true,
            _ => {
                let message = format!("`{name}` of {} is no number", self.name());
                return Err(Fault::new(message, "numbers of 1, 2, 4 and 8 bytes can be set"));
            }
        };
        if !fits {
            let message = format!("{value} does not fit into `{name}` of {bits} bits");
            return Err(Fault::new(message, "see its declaration"));
        }
        Arc::make_mut(&mut self.writes).push((variable, value as u64));
        Ok(())
    }

    /// `scx_simple.bpf.c of ~/scx`.
    pub fn name(&self) -> &str {
        &self.built.name
    }

    /// Of everything that decides what it does.
    pub fn hash(&self) -> u64 {
        self.built.hash
    }

    /// A scheduler of a machine that is about to boot.
    ///
    /// # Panics
    /// If the object can no longer be loaded.
    pub fn scheduler(&self) -> Box<dyn ExtScheduler> {
        let image = self.built.code.image();
        let image = image.unwrap_or_else(|fault| panic!("{}: {}", self.name(), fault.message));
        let label = self.built.code.label;
        let entries = Entries::of(&image);
        let watched = Watched { label, question: Question::Boot, cpu: 0 };
        // SAFETY: the image is resident; the structure is the object's own, of the type in scx.h.
        let ops = image.ask(watched, || unsafe { *(entries.boot)(MAX_CPUS as u32) });
        Box::new(TreeExt {
            entries,
            image,
            watched,
            ops,
            code: self.clone(),
            tasks: Vec::new(),
            touched: Vec::new(),
        })
    }
}

/// `struct task_struct` of `c/include/schedtwin/scx.h`.
#[repr(C)]
struct TaskStruct {
    pid: c_int,
    tgid: c_int,
    flags: u32,
    prio: c_int,
    static_prio: c_int,
    policy: u32,
    nr_cpus_allowed: c_int,
    on_cpu: c_int,
    recent_used_cpu: c_int,
    cpu: c_int,
    migration_disabled: u16,
    comm: [c_char; 16],
    scx: SchedExtEntity,
    sum_exec_runtime: u64,
    mm: *const c_void,
    real_parent: *const c_void,
    cpus_ptr: *const Mask,
    cpus_mask: Mask,
}

#[repr(C)]
struct SchedExtEntity {
    slice: u64,
    dsq_vtime: u64,
    runnable_at: u64,
    weight: u32,
    flags: u32,
    disallow: bool,
}

/// `struct cpumask`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Mask {
    bits: [u64; MAX_CPUS / 64],
}

impl Mask {
    fn of(cpus: &CpuMask) -> Mask {
        let mut bits = [0; MAX_CPUS / 64];
        for cpu in cpus.iter() {
            bits[cpu.index() / 64] |= 1 << (cpu.index() % 64);
        }
        Mask { bits }
    }

    fn cpus(&self) -> CpuMask {
        let has = |cpu: &usize| self.bits[cpu / 64] >> (cpu % 64) & 1 != 0;
        CpuMask::from_cpus((0..MAX_CPUS).filter(has).map(|cpu| CpuId(cpu as u16)))
    }
}

/// `struct sched_ext_ops`: its callbacks in order, then its numbers.
#[repr(C)]
#[derive(Clone, Copy)]
struct Ops {
    select_cpu: Option<unsafe extern "C" fn(*mut TaskStruct, i32, u64) -> i32>,
    enqueue: Option<unsafe extern "C" fn(*mut TaskStruct, u64)>,
    dequeue: Option<unsafe extern "C" fn(*mut TaskStruct, u64)>,
    dispatch: Option<unsafe extern "C" fn(i32, *mut TaskStruct)>,
    tick: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    runnable: Option<unsafe extern "C" fn(*mut TaskStruct, u64)>,
    running: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    stopping: Option<unsafe extern "C" fn(*mut TaskStruct, bool)>,
    quiescent: Option<unsafe extern "C" fn(*mut TaskStruct, u64)>,
    yield_task: Option<unsafe extern "C" fn(*mut TaskStruct, *mut TaskStruct) -> bool>,
    core_sched_before: Option<unsafe extern "C" fn()>,
    set_weight: Option<unsafe extern "C" fn(*mut TaskStruct, u32)>,
    set_cpumask: Option<unsafe extern "C" fn(*mut TaskStruct, *const Mask)>,
    update_idle: Option<unsafe extern "C" fn(i32, bool)>,
    cpu_acquire: Option<unsafe extern "C" fn(i32, *const c_void)>,
    cpu_release: Option<unsafe extern "C" fn(i32, *const ReleaseArgs)>,
    init_task: Option<unsafe extern "C" fn(*mut TaskStruct, *const InitTaskArgs) -> i32>,
    exit_task: Option<unsafe extern "C" fn(*mut TaskStruct, *const bool)>,
    enable: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    disable: Option<unsafe extern "C" fn(*mut TaskStruct)>,
    dump: [*const c_void; 3],
    hotplug: [*const c_void; 2],
    init: Option<unsafe extern "C" fn() -> i32>,
    exit: Option<unsafe extern "C" fn(*const ExitInfo)>,
    dispatch_max_batch: u32,
    flags: u64,
    timeout_ms: u32,
    exit_dump_len: u32,
    hotplug_seq: u64,
    name: [c_char; 128],
}

// SAFETY: the pointers lead into the object's code, which stays loaded as long as the arena; they are never written.
unsafe impl Send for Ops {}
// SAFETY: as above.
unsafe impl Sync for Ops {}

#[repr(C)]
struct InitTaskArgs {
    fork: bool,
    cgroup: *const c_void,
}

#[repr(C)]
struct ReleaseArgs {
    reason: u32,
    task: *mut TaskStruct,
}

#[repr(C)]
struct ExitInfo {
    kind: u32,
    exit_code: i64,
    flags: u64,
    reason: *const c_char,
    msg: *const c_char,
}

/// The functions of `c/scx.c`.
#[derive(Clone, Copy)]
struct Entries {
    boot: unsafe extern "C" fn(u32) -> *const Ops,
    enter: unsafe extern "C" fn(*mut c_void, &'static Questions, u32),
    allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    timer: unsafe extern "C" fn(u32),
    base: unsafe extern "C" fn() -> *mut u8,
}

impl Entries {
    fn of(image: &Image) -> Entries {
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

/// A scheduler at work.
#[derive(Clone)]
struct TreeExt {
    entries: Entries,
    image: Image,
    watched: Watched,
    ops: Ops,
    code: ExtCode,
    /// The structure of each task in the object's memory, by number; 0: none yet. An image returns to the arena that it was
    /// made in, so addresses stay right.
    tasks: Vec<Slot>,
    /// Tasks that the call under way has seen, with the slice and the virtual time that they had.
    touched: Vec<(TaskId, u64, u64)>,
}

/// Where a task's structure is, and the CPUs that are written in it.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// 0: there is none yet.
    address: usize,
    cpus: CpuMask,
}

/// The call that is under way, as the C hands it back.
struct Call<'a, 'k> {
    scx: &'a mut Kfuncs<'k>,
    tasks: &'a mut Vec<Slot>,
    touched: &'a mut Vec<(TaskId, u64, u64)>,
    entries: Entries,
    ops: Ops,
}

impl Call<'_, '_> {
    /// The structure of a task, up to date.
    fn task(&mut self, task: TaskId) -> *mut TaskStruct {
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
        structure
    }

    /// Gives the kernel what the scheduler has stored in tasks.
    fn store(&mut self) {
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
    fn look_again(&mut self) {
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
fn name_task(to: &mut TaskStruct, task: TaskId) {
    to.cpus_ptr = &to.cpus_mask;
    let name = format!("task-{}", task.0);
    for (to, from) in to.comm.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
}

/// Writes what a scheduler can read of a task, but for its CPUs.
///
/// # Safety
/// `to` leads to a structure that nobody else uses.
unsafe fn write_task(to: *mut TaskStruct, view: &TaskView) {
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
    to.policy = match view.policy {
        Policy::Normal => 0,
        Policy::Fifo => 1,
        Policy::Rr => 2,
        Policy::Batch => 3,
        Policy::Idle => 5,
        Policy::Deadline => 6,
        Policy::Ext => 7,
    };
    to.nr_cpus_allowed = view.nr_cpus_allowed as c_int;
    to.on_cpu = view.running.into();
    to.cpu = view.cpu.0.into();
    to.scx.slice = view.slice;
    to.scx.dsq_vtime = view.dsq_vtime;
    to.scx.runnable_at = view.runnable_at;
    to.scx.weight = view.weight;
    to.scx.flags = view.queued.into();
    to.sum_exec_runtime = view.sum_exec_runtime;
    // A thread of the workload has memory of its own; only whether there is any can be asked.
    to.mm = if kernel { std::ptr::null() } else { std::ptr::from_ref(&to.cpus_mask).cast() };
}

impl TreeExt {
    /// Calls the C, with `tasks` up to date. `None`: the scheduler has no such callback.
    fn call<R>(
        &mut self,
        scx: &mut Kfuncs,
        question: Question,
        call: impl FnOnce(&mut Call) -> R,
    ) -> R {
        let cpu = scx.this_cpu();
        let watched = Watched { question, cpu: cpu.0, ..self.watched };
        let TreeExt { entries, image, ops, tasks, touched, .. } = self;
        touched.clear();
        image.ask(watched, || {
            let mut of = Call { scx, tasks, touched, entries: *entries, ops: *ops };
            let at: *mut Call = &mut of;
            // SAFETY: the image is resident; the call lives until the C has returned.
            unsafe { (entries.enter)(at.cast(), &QUESTIONS, cpu.0.into()) };
            // SAFETY: the C hands this pointer back to the functions below only, while no other reference is in use.
            let result = call(unsafe { &mut *at });
            // SAFETY: as above.
            unsafe { (*at).store() };
            result
        })
    }

    /// Does what the scheduler's own program does before it loads it.
    fn load(&self, scx: &Kfuncs) {
        let nr_cpus = scx.nr_cpu_ids();
        let code = &self.code;
        let of_name = |name: &str| code.variables.get(name).copied();
        let loader = Loader::of(&self.ops.name());
        let mut writes: Vec<(Variable, usize, u64)> = Vec::new();
        let mut write = |name: &str, index: usize, value: u64| {
            writes.extend(of_name(name).map(|variable| (variable, index, value)));
        };
        CPU_COUNTS.into_iter().for_each(|name| write(name, 0, nr_cpus as u64));
        SLICES.into_iter().for_each(|name| write(name, 0, SCX_SLICE_DFL));
        for (name, value) in loader.iter().flat_map(|loader| loader.values) {
            write(name, 0, *value);
        }
        let cpus = || (0..nr_cpus).map(|cpu| CpuId(cpu as u16));
        let smt = cpus().any(|cpu| scx.smt_mask(cpu).weight() > 1);
        let largest = cpus().map(|cpu| scx.cpuperf_cap(cpu)).max().unwrap_or(1024);
        let same = cpus().all(|cpu| scx.cpuperf_cap(cpu) == largest);
        if loader.is_some() {
            write("smt_enabled", 0, smt.into());
            write("numa_enabled", 0, (scx.nr_node_ids() > 1).into());
            write("nr_node_ids", 0, scx.nr_node_ids() as u64);
            write("all_cpus_same_capacity", 0, same.into());
            for cpu in cpus() {
                let capacity = u64::from(scx.cpuperf_cap(cpu)) * 1024 / u64::from(largest);
                write("cpu_capacity", cpu.index(), capacity);
            }
            let mut order: Vec<CpuId> = cpus().collect();
            order.sort_by_key(|cpu| std::cmp::Reverse(scx.cpuperf_cap(*cpu)));
            for (at, cpu) in order.into_iter().enumerate() {
                write("preferred_cpus", at, cpu.0.into());
            }
        }
        writes.extend(code.writes.iter().map(|(variable, value)| (*variable, 0, *value)));
        let enable = code.variables.get(SIBLINGS).filter(|_| smt).map(|function| function.offset);
        let pairs: Vec<[i32; 2]> = cpus()
            .flat_map(|cpu| {
                scx.smt_mask(cpu).iter().map(move |other| [cpu.0.into(), other.0.into()])
            })
            .collect();
        let (base, boot) = (self.entries.base, self.entries.boot);
        self.image.ask(self.watched, || {
            // SAFETY: the image is resident; each variable is the object's, of that size, and writable: scx.c makes
            // those const that are const to the scheduler plain variables. The function takes two numbers of a CPU.
            unsafe {
                boot(nr_cpus as u32);
                for (variable, index, value) in writes {
                    variable.write(base(), index, value);
                }
                if let Some(enable) = enable {
                    type Enable = unsafe extern "C" fn(*const [i32; 2]) -> c_int;
                    let enable: Enable = std::mem::transmute(base().add(enable as usize));
                    for pair in &pairs {
                        enable(pair);
                    }
                }
            }
        });
    }
}

impl Ops {
    fn name(&self) -> String {
        let bytes = self.name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }
}

/// The program that loaders run for each pair of a core's threads.
const SIBLINGS: &str = "enable_sibling_cpu";

/// What the program of a known scheduler sets, beside what follows from the machine.
struct Loader {
    /// `ops.name`.
    name: &'static str,
    flags: u64,
    values: &'static [(&'static str, u64)],
}

/// Those whose settings are not the values in their C. Read from their own programs, without options.
const LOADERS: [Loader; 2] = [
    Loader {
        name: "bpfland",
        flags: SCX_OPS_ENQ_EXITING
            | SCX_OPS_ENQ_LAST
            | SCX_OPS_ENQ_MIGRATION_DISABLED
            | SCX_OPS_ALLOW_QUEUED_WAKEUP,
        values: &[
            ("slice_max", 1_000_000),
            ("slice_min", 0),
            ("slice_lag", 40_000_000),
            ("sticky_tasks", 0),
            ("local_kthreads", 0),
            ("local_pcpu", 0),
            ("primary_all", 1),
            ("cpufreq_perf_lvl", 1024),
        ],
    },
    Loader {
        name: "cosmos",
        flags: SCX_OPS_ENQ_EXITING
            | SCX_OPS_ENQ_LAST
            | SCX_OPS_ENQ_MIGRATION_DISABLED
            | SCX_OPS_ALLOW_QUEUED_WAKEUP,
        values: &[
            ("slice_ns", 1_000_000),
            ("slice_lag", 20_000_000),
            ("busy_threshold", 0),
            ("cpufreq_enabled", 1),
            ("primary_all", 1),
        ],
    },
];

impl Loader {
    fn of(name: &str) -> Option<&'static Loader> {
        LOADERS.iter().find(|loader| loader.name == name)
    }
}

impl Variable {
    /// Writes a number into the variable, or into an element of it.
    ///
    /// # Safety
    /// The object is loaded at `base`, and nobody else uses the variable.
    unsafe fn write(self, base: *mut u8, index: usize, value: u64) {
        let element = if index > 0 || self.bytes > 8 { 8 } else { self.bytes };
        let at = index as u64 * element;
        if at + element <= self.bytes {
            let bytes = value.to_le_bytes();
            // SAFETY: as the caller promises; the bytes are within the variable.
            unsafe {
                let to = base.add((self.offset + at) as usize);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, element as usize);
            }
        }
    }
}

/// Calls a callback that gets a task, if the scheduler has it.
macro_rules! task_call {
    ($self:ident, $scx:ident, $op:ident, $question:ident, $task:expr $(, $argument:expr)*) => {{
        let Some(callback) = $self.ops.$op else { return $scx.absent() };
        $self.call($scx, Question::$question, |call| {
            let structure = call.task($task);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { callback(structure $(, $argument)*) }
        })
    }};
}

impl ExtScheduler for TreeExt {
    fn properties(&self) -> ExtProperties {
        let loader = Loader::of(&self.ops.name());
        ExtProperties {
            flags: self.code.flags.or(loader.map(|loader| loader.flags)).unwrap_or(self.ops.flags),
            timeout_ms: self.code.timeout_ms.unwrap_or(self.ops.timeout_ms),
            dispatch_max_batch: self.ops.dispatch_max_batch,
            tracks_idle: self.ops.update_idle.is_some(),
            op_cost_ns: self.code.op_cost_ns,
        }
    }

    fn select_cpu(&mut self, scx: &mut Kfuncs, task: TaskId, prev: CpuId, wake_flags: u64) -> i32 {
        let Some(select_cpu) = self.ops.select_cpu else {
            scx.absent();
            return scx.select_cpu_default(task, prev, wake_flags);
        };
        self.call(scx, Question::SelectCpu, |call| {
            let structure = call.task(task);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { select_cpu(structure, prev.0.into(), wake_flags) }
        })
    }

    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        if self.ops.enqueue.is_none() {
            scx.dsq_insert(
                task,
                schedtwin_kernel::policy::SCX_DSQ_GLOBAL,
                SCX_SLICE_DFL,
                enq_flags,
            );
        }
        task_call!(self, scx, enqueue, Enqueue, task, enq_flags)
    }

    fn dequeue(&mut self, scx: &mut Kfuncs, task: TaskId, deq_flags: u64) {
        task_call!(self, scx, dequeue, Dequeue, task, deq_flags)
    }

    fn dispatch(&mut self, scx: &mut Kfuncs, cpu: CpuId, prev: Option<TaskId>) {
        let Some(dispatch) = self.ops.dispatch else { return scx.absent() };
        self.call(scx, Question::Dispatch, |call| {
            let prev = prev.map_or(std::ptr::null_mut(), |prev| call.task(prev));
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { dispatch(cpu.0.into(), prev) }
        })
    }

    fn tick(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, tick, Tick, task)
    }

    fn runnable(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        task_call!(self, scx, runnable, Runnable, task, enq_flags)
    }

    fn running(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, running, Running, task)
    }

    fn stopping(&mut self, scx: &mut Kfuncs, task: TaskId, runnable: bool) {
        task_call!(self, scx, stopping, Stopping, task, runnable)
    }

    fn quiescent(&mut self, scx: &mut Kfuncs, task: TaskId, deq_flags: u64) {
        task_call!(self, scx, quiescent, Quiescent, task, deq_flags)
    }

    fn yield_task(&mut self, scx: &mut Kfuncs, from: TaskId) {
        if self.ops.yield_task.is_none() {
            scx.task_set_slice(from, 0);
        }
        let Some(yield_task) = self.ops.yield_task else { return scx.absent() };
        self.call(scx, Question::Yield, |call| {
            let structure = call.task(from);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { yield_task(structure, std::ptr::null_mut()) };
        })
    }

    fn changed(&mut self, scx: &mut Kfuncs, task: TaskId, change: TaskChange) {
        match change {
            TaskChange::Weight(weight) => {
                task_call!(self, scx, set_weight, Change, task, weight)
            }
            TaskChange::Cpus(cpus) => {
                let mask = Mask::of(&cpus);
                task_call!(self, scx, set_cpumask, Change, task, &mask)
            }
        }
    }

    fn update_idle(&mut self, scx: &mut Kfuncs, cpu: CpuId, idle: bool) {
        let Some(update_idle) = self.ops.update_idle else { return scx.absent() };
        // SAFETY: the image is resident.
        self.call(scx, Question::UpdateIdle, |_| unsafe { update_idle(cpu.0.into(), idle) })
    }

    fn cpu_acquire(&mut self, scx: &mut Kfuncs, cpu: CpuId) {
        let Some(cpu_acquire) = self.ops.cpu_acquire else { return scx.absent() };
        let nothing = std::ptr::null();
        // SAFETY: the image is resident.
        self.call(scx, Question::Change, |_| unsafe { cpu_acquire(cpu.0.into(), nothing) })
    }

    fn cpu_release(
        &mut self,
        scx: &mut Kfuncs,
        cpu: CpuId,
        reason: CpuPreemptReason,
        next: TaskId,
    ) {
        let Some(cpu_release) = self.ops.cpu_release else { return scx.absent() };
        self.call(scx, Question::Change, |call| {
            let args = ReleaseArgs { reason: reason as u32, task: call.task(next) };
            // SAFETY: the image is resident, and the arguments live until the function returns.
            unsafe { cpu_release(cpu.0.into(), &args) }
        })
    }

    fn init_task(&mut self, scx: &mut Kfuncs, task: TaskId, fork: bool) -> i32 {
        let Some(init_task) = self.ops.init_task else {
            scx.absent();
            return 0;
        };
        self.call(scx, Question::InitTask, |call| {
            let structure = call.task(task);
            let args = InitTaskArgs { fork, cgroup: std::ptr::null() };
            // SAFETY: the image is resident; structure and arguments live until the function returns.
            unsafe { init_task(structure, &args) }
        })
    }

    fn exit_task(&mut self, scx: &mut Kfuncs, task: TaskId) {
        let cancelled = false;
        task_call!(self, scx, exit_task, ExitTask, task, &cancelled)
    }

    fn enable(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, enable, Enable, task)
    }

    fn disable(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, disable, Disable, task)
    }

    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        self.load(scx);
        let Some(init) = self.ops.init else {
            scx.absent();
            return 0;
        };
        // SAFETY: the image is resident.
        self.call(scx, Question::Init, |_| unsafe { init() })
    }

    fn exit(&mut self, scx: &mut Kfuncs) {
        let Some(exit) = self.ops.exit else { return scx.absent() };
        let (kind, exit_code) =
            scx.exit_info().map_or((64, 0), |info| (info.kind.number(), info.code));
        let (reason, msg) = (c"".as_ptr(), c"".as_ptr());
        let info = ExitInfo { kind, exit_code, flags: 0, reason, msg };
        // SAFETY: the image is resident, and the structure lives until the function returns.
        self.call(scx, Question::Exit, |_| unsafe { exit(&info) })
    }

    fn timer(&mut self, scx: &mut Kfuncs, timer: u32) {
        let run = self.entries.timer;
        // SAFETY: the image is resident, and the C has started this timer.
        self.call(scx, Question::Timer, |_| unsafe { run(timer) })
    }
}

// ---- what the C asks ---------------------------------------------------------------------------------------------

/// `struct schedtwin_scx_questions` of `c/scx.c`. The first argument is the call that is under way.
#[repr(C)]
struct Questions {
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
    time: unsafe extern "C" fn(*mut c_void, c_int) -> u64,
    timer: unsafe extern "C" fn(*mut c_void, i64, u64, u64, c_int) -> i64,
    end: unsafe extern "C" fn(*mut c_void, i64, bool, *const c_char),
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

static QUESTIONS: Questions = Questions {
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
};

/// The call that is under way.
///
/// # Safety
/// `call` is what [`TreeExt::call`] has handed to the C, which asks while that call is under way only.
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
        _ => call.scx.task_running(TaskId(argument as u32)).into(),
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

unsafe extern "C" fn ask_pick(call: *mut c_void, mask: *const Mask, flags: u64, how: c_int) -> i32 {
    // SAFETY: see above; the mask may be null.
    let (call, mask) = unsafe { (of(call), mask.as_ref()) };
    let cpus = mask.map_or(CpuMask::EMPTY, Mask::cpus);
    match how {
        0 => cpu_or_none(call.scx.pick_idle_cpu(&cpus, flags)),
        1 => cpu_or_none(call.scx.pick_any_cpu(&cpus, flags)),
        2 => cpu_or_none(call.scx.any_distribute(&cpus)),
        _ => call.scx.test_and_clear_cpu_idle(flags as i32).into(),
    }
}

unsafe extern "C" fn ask_mask(call: *mut c_void, which: c_int, to: *mut Mask) {
    // SAFETY: see above.
    let (call, to) = unsafe { (of(call), &mut *to) };
    *to = Mask::of(&match which {
        0 => call.scx.idle_cpumask(),
        1 => call.scx.idle_smtmask(),
        _ => call.scx.possible_cpus(),
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
        _ => call.scx.reenqueue_local(),
    }
}

unsafe extern "C" fn ask_time(call: *mut c_void, which: c_int) -> u64 {
    // SAFETY: see above.
    let call = unsafe { of(call) };
    match which {
        0 => call.scx.now(),
        1 => call.scx.ktime_get_ns(),
        _ => call.scx.jiffies(),
    }
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
            call.scx.timer_start(number as u32, ns, flags & 1 != 0, flags & 2 != 0);
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
