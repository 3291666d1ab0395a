// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle governors from a tree, behind the policy interface.

use crate::built::{Built, path_in};
use crate::compile::{Job, Units};
use crate::memory::Image;
use crate::sources::Sources;
use crate::watch::{Question, Watched, refuse_here};
use crate::{Fault, Tree, confine};
use schedtwin_kernel::policy::{
    IdleCpu, IdleDecision, IdleStateParams, MachineIdleGovernor, Reflection, SelectInput,
    SleepLength,
};
use schedtwin_types::CpuId;
use std::ffi::{c_int, c_void};

/// The folder of Linux's idle governors.
const FOLDER: &str = "drivers/cpuidle/governors";

/// An idle governor's C, compiled.
#[derive(Clone, Debug)]
pub struct IdleCode {
    built: Built,
    reads_util: bool,
}

impl IdleCode {
    /// Compiles `file` of the tree, a name in the folder of idle governors or a path inside of the tree, for a kernel with
    /// that many ticks a second, and starts it once to see that it registers a governor.
    ///
    /// # Errors
    /// If there is no such file, no compiler, the file does not compile, or it registers nothing.
    pub fn build(tree: &Tree, file: &str, hz: u64) -> Result<IdleCode, Fault> {
        let path = path_in(FOLDER, file);
        let sources = Sources::gather(tree, &path)?;
        // Utilisation is computed for those that name it.
        let reads_util = sources.mention("sched_cpu_util");
        let defines = [format!("HZ={hz}")];
        let built = Built::new(&Job {
            tree,
            path: &path,
            sources: &sources,
            glue: &["idle.c"],
            units: Units::Included,
            defines: &defines,
        })?;
        let built = IdleCode { built, reads_util };
        let state = IdleStateParams::default();
        let cpu = IdleCpu { cpu: CpuId(0), capacity: 1024, states: vec![state; 2] };
        let tried = built.clone();
        confine::trial(move || tried.start(&[cpu]).map(drop))?;
        Ok(built)
    }

    /// `teo.c of ~/src/linux`.
    pub fn name(&self) -> &str {
        &self.built.name
    }

    /// Of everything that decides what it does.
    pub fn hash(&self) -> u64 {
        self.built.hash
    }

    /// A governor for these CPUs, which are all of a machine.
    ///
    /// # Panics
    /// If it can no longer be loaded, or does not take the CPUs over.
    pub fn govern(&self, cpus: &[IdleCpu]) -> Box<dyn MachineIdleGovernor> {
        let started = self.start(cpus);
        Box::new(started.unwrap_or_else(|fault| panic!("{}: {}", self.name(), fault.message)))
    }

    fn start(&self, cpus: &[IdleCpu]) -> Result<TreeIdle, Fault> {
        let image = self.built.code.image()?;
        let governor = TreeIdle {
            entries: Entries::of(&image),
            image,
            watched: Watched { label: self.built.code.label, question: Question::Boot, cpu: 0 },
            reads_util: self.reads_util,
            rule: self.built.rule,
        };
        let failed = governor.image.ask(governor.watched, || governor.entries.start(cpus));
        match failed {
            0 => Ok(governor),
            error => Err(self.built.does_not_start(
                error,
                "it has to register a governor with cpuidle_register_governor() from an initcall, and its enable() \
                 has to return 0",
            )),
        }
    }
}

/// `struct schedtwin_idle_call` of `c/include/schedtwin/cpuidle.h`.
#[repr(C)]
struct IdleCall {
    now: u64,
    latency_req_ns: i64,
    last_residency_ns: u64,
    cpu_util: u64,
    timers: *mut c_void,
    sleep_length: Option<unsafe extern "C" fn(*mut c_void, *mut i64) -> i64>,
    cpu: u32,
    nr_iowaiters: u32,
    tick_stopped: u32,
    got_tick: u32,
    poll_time_limit: u32,
    stop_tick: u32,
}

/// The functions of `c/idle.c`.
#[derive(Clone, Copy)]
struct Entries {
    boot: unsafe extern "C" fn(u32) -> c_int,
    idle_boot: unsafe extern "C" fn() -> c_int,
    add_state: unsafe extern "C" fn(u32, i64, i64, c_int, c_int),
    enable: unsafe extern "C" fn(u32, u64) -> c_int,
    select: unsafe extern "C" fn(*mut IdleCall) -> c_int,
    reflect: unsafe extern "C" fn(*mut IdleCall, c_int),
}

impl Entries {
    fn of(image: &Image) -> Entries {
        let arena = image.arena();
        // SAFETY: these are the types of the functions in `c/runtime.c` and `c/idle.c`.
        unsafe {
            Entries {
                boot: arena.function(c"schedtwin_boot"),
                idle_boot: arena.function(c"schedtwin_idle_boot"),
                add_state: arena.function(c"schedtwin_idle_add_state"),
                enable: arena.function(c"schedtwin_idle_enable"),
                select: arena.function(c"schedtwin_idle_select"),
                reflect: arena.function(c"schedtwin_idle_reflect"),
            }
        }
    }

    /// Boots a fresh image; 0, or the error.
    fn start(&self, cpus: &[IdleCpu]) -> c_int {
        // SAFETY: the image is resident. CPUs are below the count that boot() is told, and have at most CPUIDLE_STATE_MAX states,
        // as the kernel of the twin sees to.
        unsafe {
            let mut error = (self.boot)(cpus.len() as u32);
            if error == 0 {
                error = (self.idle_boot)();
            }
            for IdleCpu { cpu, capacity, states } in cpus {
                if error != 0 {
                    break;
                }
                for state in states {
                    let [exit, residency] = [state.exit_latency_ns, state.target_residency_ns];
                    let [polling, disabled] = [state.polling, state.disabled].map(c_int::from);
                    (self.add_state)(
                        cpu.0.into(),
                        exit as i64,
                        residency as i64,
                        polling,
                        disabled,
                    );
                }
                error = (self.enable)(cpu.0.into(), *capacity);
            }
            error
        }
    }
}

/// A governor at work.
#[derive(Clone)]
struct TreeIdle {
    entries: Entries,
    image: Image,
    watched: Watched,
    reads_util: bool,
    rule: &'static str,
}

impl MachineIdleGovernor for TreeIdle {
    fn select(
        &mut self,
        cpu: CpuId,
        input: &SelectInput,
        sleep_length: &mut dyn FnMut() -> SleepLength,
    ) -> IdleDecision {
        let mut timers = sleep_length;
        let mut call = IdleCall {
            now: input.now,
            latency_req_ns: input.latency_req_ns,
            last_residency_ns: input.last_residency_ns,
            cpu_util: input.cpu_util,
            timers: (&raw mut timers).cast(),
            sleep_length: Some(ask_timers),
            cpu: cpu.0.into(),
            nr_iowaiters: input.nr_iowaiters,
            tick_stopped: input.tick_stopped.into(),
            got_tick: 0,
            poll_time_limit: 0,
            stop_tick: 1,
        };
        let watched = Watched { question: Question::Select, cpu: cpu.0, ..self.watched };
        let select = self.entries.select;
        let states = input.states.len();
        let state = self.image.ask(watched, || {
            // SAFETY: the image is resident; the call and what it leads to live until it returns.
            let state = unsafe { select(&mut call) };
            if state < 0 || state as usize >= states {
                refuse_here(&format!(
                    "it chose state {state}, and the CPU has 0 to {}",
                    states - 1
                ));
            }
            state
        });
        IdleDecision { state: state as usize, stop_tick: call.stop_tick != 0, rule: self.rule }
    }

    fn reflect(&mut self, cpu: CpuId, stay: &Reflection) {
        let mut call = IdleCall {
            now: stay.now,
            latency_req_ns: 0,
            last_residency_ns: stay.last_residency_ns,
            cpu_util: 0,
            timers: std::ptr::null_mut(),
            sleep_length: None,
            cpu: cpu.0.into(),
            nr_iowaiters: 0,
            tick_stopped: 0,
            got_tick: stay.got_tick.into(),
            poll_time_limit: stay.poll_time_limit.into(),
            stop_tick: 0,
        };
        let watched = Watched { question: Question::Reflect, cpu: cpu.0, ..self.watched };
        let reflect = self.entries.reflect;
        // SAFETY: as in `select`; the state is one that was entered.
        self.image.ask(watched, || unsafe { reflect(&mut call, stay.state as c_int) });
    }

    fn reads_util(&self) -> bool {
        self.reads_util
    }
}

/// `tick_nohz_get_sleep_length()`.
///
/// # Safety
/// `timers` is what [`TreeIdle::select`] has put into the call that is under way.
unsafe extern "C" fn ask_timers(timers: *mut c_void, delta_tick: *mut i64) -> i64 {
    // SAFETY: as the caller promises; the C asks while select() runs, and hands over the address of a variable.
    unsafe {
        let timers = &mut *timers.cast::<&mut dyn FnMut() -> SleepLength>();
        let answer = timers();
        *delta_tick = answer.delta_tick_ns;
        answer.sleep_length_ns
    }
}
