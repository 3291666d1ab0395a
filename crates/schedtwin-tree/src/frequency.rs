// SPDX-License-Identifier: GPL-2.0-or-later
//! Frequency governors from a tree, behind the policy interface.

use crate::built::{Built, path_in};
use crate::compile::{Job, Units};
use crate::memory::Image;
use crate::sources::Sources;
use crate::watch::{Question, Watched};
use crate::{Fault, Tree, confine};
use schedtwin_kernel::policy::{
    CpuPerformance, EffectiveDemand, FrequencyDomain, GovernedDomain, GovernorView, HookCall,
    MachineFrequencyGovernor,
};
use schedtwin_types::{CpuId, CpuMask, Khz, PolicyId};
use std::ffi::{c_int, c_void};

/// The folder that schedutil is in.
const FOLDER: &str = "kernel/sched";

/// A frequency governor's C, compiled.
#[derive(Clone, Debug)]
pub struct FrequencyCode {
    built: Built,
}

impl FrequencyCode {
    /// Compiles `file` of the tree, a name in `kernel/sched` or a path inside of the tree, for a kernel with that many ticks
    /// a second, and starts it once to see that it registers a governor.
    ///
    /// # Errors
    /// If there is no such file, no compiler, the file does not compile, or it registers nothing.
    pub fn build(tree: &Tree, file: &str, hz: u64) -> Result<FrequencyCode, Fault> {
        let path = path_in(FOLDER, file);
        let sources = Sources::gather(tree, &path)?;
        let defines = [format!("HZ={hz}"), "SCHEDTWIN_FREQUENCY=1".to_string()];
        let built = Built::new(&Job {
            tree,
            path: &path,
            sources: &sources,
            glue: &["frequency.c"],
            units: Units::Included,
            defines: &defines,
        })?;
        let built = FrequencyCode { built };
        let domain = FrequencyDomain {
            policy: PolicyId(0),
            cpus: CpuMask::of(CpuId(0)),
            table: vec![500_000, 1_000_000],
            rate_limit_ns: 1_000_000,
        };
        let governed = GovernedDomain {
            domain,
            fast_switch: true,
            dvfs_possible_from_any_cpu: true,
            capacity: 1024,
        };
        let tried = built.clone();
        confine::trial(move || tried.start(&[governed]).map(drop))?;
        Ok(built)
    }

    /// `cpufreq_schedutil.c of ~/src/linux`.
    pub fn name(&self) -> &str {
        &self.built.name
    }

    /// Of everything that decides what it does.
    pub fn hash(&self) -> u64 {
        self.built.hash
    }

    /// A governor for these domains, which are all of a machine.
    ///
    /// # Panics
    /// If it can no longer be loaded, or does not take the domains over.
    pub fn govern(&self, domains: &[GovernedDomain]) -> Box<dyn MachineFrequencyGovernor> {
        let started = self.start(domains);
        Box::new(started.unwrap_or_else(|fault| panic!("{}: {}", self.name(), fault.message)))
    }

    fn start(&self, domains: &[GovernedDomain]) -> Result<TreeFrequency, Fault> {
        let image = self.built.code.image()?;
        let label = self.built.code.label;
        let governor = TreeFrequency {
            entries: Entries::of(&image),
            image,
            watched: Watched { label, question: Question::Boot, cpu: 0 },
            rule: self.built.rule,
        };
        match governor.image.ask(governor.watched, || governor.entries.start(domains)) {
            0 => Ok(governor),
            error => Err(self.built.does_not_start(
                error,
                "it has to register a governor with start() and limits() by cpufreq_governor_init(), and its init() \
                 and start() have to return 0",
            )),
        }
    }
}

/// `struct schedtwin_frequency_questions` of `c/include/schedtwin/cpufreq.h`.
#[repr(C)]
struct Questions {
    cpu_util_cfs: unsafe extern "C" fn(*const c_void, u32, u32) -> u64,
    effective_cpu_util: unsafe extern "C" fn(*const c_void, u32, u64, *mut CpuPerformance),
    demands: unsafe extern "C" fn(*const c_void, u32) -> *const EffectiveDemand,
    cpu_bw_dl: unsafe extern "C" fn(*const c_void, u32) -> u64,
    uclamp_rq_is_capped: unsafe extern "C" fn(*const c_void, u32) -> u32,
    idle_calls: unsafe extern "C" fn(*const c_void, u32) -> u64,
    can_update: unsafe extern "C" fn(*const c_void, u32) -> u32,
    resolve: unsafe extern "C" fn(*const c_void, u32, u32) -> u32,
}

static QUESTIONS: Questions = Questions {
    cpu_util_cfs: ask_util,
    effective_cpu_util: ask_performance,
    demands: ask_demands,
    cpu_bw_dl: ask_bandwidth,
    uclamp_rq_is_capped: ask_capped,
    idle_calls: ask_idle_calls,
    can_update: ask_can_update,
    resolve: ask_resolve,
};

/// `struct schedtwin_frequency_call` of the same file.
#[repr(C)]
struct FrequencyCall {
    view: *const c_void,
    ask: &'static Questions,
    demands: *const EffectiveDemand,
    time: u64,
    bw_dl: u64,
    cpu: u32,
    this_cpu: u32,
    domain: u32,
    flags: u32,
    current_khz: u32,
    limit_khz: u32,
    invariant: u32,
    decided: u32,
    khz: u32,
}

/// The functions of `c/frequency.c`.
#[derive(Clone, Copy)]
struct Entries {
    boot: unsafe extern "C" fn(u32) -> c_int,
    frequency_boot: unsafe extern "C" fn(u32) -> c_int,
    add_cpu: unsafe extern "C" fn(u32, u32, u64),
    start: unsafe extern "C" fn(u32, u32, u32, u32, u32, u32) -> c_int,
    update: unsafe extern "C" fn(*mut FrequencyCall),
    limits: unsafe extern "C" fn(u32),
}

impl Entries {
    fn of(image: &Image) -> Entries {
        let arena = image.arena();
        // SAFETY: these are the types of the functions in `c/runtime.c` and `c/frequency.c`.
        unsafe {
            Entries {
                boot: arena.function(c"schedtwin_boot"),
                frequency_boot: arena.function(c"schedtwin_frequency_boot"),
                add_cpu: arena.function(c"schedtwin_frequency_add_cpu"),
                start: arena.function(c"schedtwin_frequency_start"),
                update: arena.function(c"schedtwin_frequency_update"),
                limits: arena.function(c"schedtwin_frequency_limits"),
            }
        }
    }

    /// Boots a fresh image; 0, or the error.
    fn start(&self, domains: &[GovernedDomain]) -> c_int {
        let cpus: u32 = domains.iter().map(|governed| governed.domain.cpus.weight()).sum();
        // SAFETY: the image is resident. Domains are numbered from 0 and their CPUs are all of the machine, so every number is
        // below the counts that are told first.
        unsafe {
            let mut error = (self.boot)(cpus);
            if error == 0 {
                error = (self.frequency_boot)(domains.len() as u32);
            }
            for governed in domains {
                let GovernedDomain { domain, fast_switch, dvfs_possible_from_any_cpu, capacity } =
                    governed;
                if error != 0 {
                    break;
                }
                let index = domain.policy.0.into();
                domain.cpus.iter().for_each(|cpu| (self.add_cpu)(index, cpu.0.into(), *capacity));
                let (lowest, highest) = (domain.table[0], domain.table[domain.table.len() - 1]);
                let rate_limit_us = (domain.rate_limit_ns / 1000) as u32;
                let [fast, any] = [fast_switch, dvfs_possible_from_any_cpu].map(|b| u32::from(*b));
                error = (self.start)(index, lowest, highest, rate_limit_us, fast, any);
            }
            error
        }
    }
}

/// A governor at work.
#[derive(Clone)]
struct TreeFrequency {
    entries: Entries,
    image: Image,
    watched: Watched,
    rule: &'static str,
}

impl MachineFrequencyGovernor for TreeFrequency {
    fn update_util(&mut self, hook: &HookCall, view: &GovernorView) -> Option<Khz> {
        let mut call = FrequencyCall {
            view: std::ptr::from_ref(view).cast(),
            ask: &QUESTIONS,
            demands: std::ptr::null(),
            time: hook.time,
            bw_dl: view.cpu_bw_dl(hook.cpu),
            cpu: hook.cpu.0.into(),
            this_cpu: view.this_cpu().0.into(),
            domain: hook.policy.0.into(),
            flags: hook.flags,
            current_khz: view.current_khz(hook.policy),
            limit_khz: view.limit_khz(hook.policy),
            invariant: view.invariant().into(),
            decided: 0,
            khz: 0,
        };
        let watched = Watched { question: Question::Update, cpu: hook.cpu.0, ..self.watched };
        let update = self.entries.update;
        // SAFETY: the image is resident; the call, and the view that it leads to, live until it returns.
        self.image.ask(watched, || unsafe { update(&mut call) });
        (call.decided != 0).then_some(call.khz)
    }

    fn limits(&mut self, policy: PolicyId) {
        let watched = Watched { question: Question::Limits, ..self.watched };
        let limits = self.entries.limits;
        // SAFETY: the image is resident, and has this domain.
        self.image.ask(watched, || unsafe { limits(policy.0.into()) });
    }

    fn rule(&self) -> &'static str {
        self.rule
    }
}

/// The kernel that a call is about.
///
/// # Safety
/// `view` is what [`TreeFrequency::update_util`] has put into the call that is under way.
unsafe fn kernel<'a>(view: *const c_void) -> &'a GovernorView<'a> {
    // SAFETY: as the caller promises; the C asks while the call is under way only.
    unsafe { &*view.cast::<GovernorView>() }
}

// SAFETY of the functions below: the C hands back the view of the call that is under way, and CPUs and domains that
// there are: `c/frequency.c` looks at each number before it asks.

unsafe extern "C" fn ask_util(view: *const c_void, cpu: u32, boost: u32) -> u64 {
    // SAFETY: see above.
    let kernel = unsafe { kernel(view) };
    let cpu = CpuId(cpu as u16);
    if boost != 0 { kernel.cpu_util_cfs_boost(cpu) } else { kernel.cpu_util_cfs(cpu) }
}

unsafe extern "C" fn ask_performance(
    view: *const c_void,
    cpu: u32,
    util_cfs: u64,
    answer: *mut CpuPerformance,
) {
    // SAFETY: see above; the answer goes to a variable of the caller.
    unsafe { *answer = kernel(view).effective_cpu_util(CpuId(cpu as u16), util_cfs) }
}

unsafe extern "C" fn ask_demands(view: *const c_void, domain: u32) -> *const EffectiveDemand {
    // SAFETY: see above. There is one for each CPU, and they are not written before the call has ended.
    unsafe { kernel(view) }.demands(PolicyId(domain as u16)).as_ptr().cast()
}

unsafe extern "C" fn ask_bandwidth(view: *const c_void, cpu: u32) -> u64 {
    // SAFETY: see above.
    unsafe { kernel(view) }.cpu_bw_dl(CpuId(cpu as u16))
}

unsafe extern "C" fn ask_capped(view: *const c_void, cpu: u32) -> u32 {
    // SAFETY: see above.
    unsafe { kernel(view) }.uclamp_rq_is_capped(CpuId(cpu as u16)).into()
}

unsafe extern "C" fn ask_idle_calls(view: *const c_void, cpu: u32) -> u64 {
    // SAFETY: see above.
    unsafe { kernel(view) }.idle_calls(CpuId(cpu as u16))
}

unsafe extern "C" fn ask_can_update(view: *const c_void, domain: u32) -> u32 {
    // SAFETY: see above.
    unsafe { kernel(view) }.this_cpu_can_update(PolicyId(domain as u16)).into()
}

unsafe extern "C" fn ask_resolve(view: *const c_void, domain: u32, khz: u32) -> u32 {
    // SAFETY: see above.
    unsafe { kernel(view) }.resolve(PolicyId(domain as u16), khz)
}
