// SPDX-License-Identifier: GPL-2.0-or-later
//! A scenario: machine, kernel and workload, checked together; running it with a seed is a run.

use crate::board::{Board, FlatBoard, LATEST};
use crate::firmware;
use crate::kernel_file::scx::is_built_in;
use crate::kernel_file::{KernelFile, android_of};
use crate::output::{MaxSize, Output};
use crate::result::RunResult;
use crate::system_file::SystemFile;
use crate::twin::{DEVICES_MAX, Observer, Twin};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_kernel::device_tree::DomainTable;
use schedtwin_machine::{Architecture, FrequencyDomain, Machine};
use schedtwin_trace::{Detail, Format, GrowingFile, Meta, Sink};
use schedtwin_types::fnv::Fnv1a;
use schedtwin_types::property::Bounds;
use schedtwin_types::{CpuMask, Duration, Khz, Ns};
use schedtwin_workload::{Host, Programs, Workload};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Version of the model: results of different model versions are not comparable. Raised with every entry
/// under "Model" in CHANGELOG.md.
pub const MODEL_VERSION: &str = "3";

/// A run without a duration of its own ends after this much simulated time.
pub const LONGEST_RUN: Ns = 3_600 * 1_000_000_000;

/// The workload's own end comes a little after its duration, when its threads have finished their
/// events; a run is cut this much after the duration.
const GRACE: Ns = 10 * 1_000_000_000;

/// A shorter wait is no stall, however short the run.
const SHORTEST_WATCHDOG: Ns = 1_000_000_000;

/// How often progress is told: every so many events.
const PROGRESS_EVERY: u64 = 4096;

/// Returns a text as one word of a shell's command: as it is, or in quotes.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Machine, kernel and workload, validated together. Cheap to clone.
#[derive(Clone)]
pub struct Scenario {
    machine: Arc<Machine>,
    kernel: Arc<KernelFile>,
    workload: Workload,
    /// What the system does beside the workload.
    system: Option<Arc<SystemFile>>,
    host: Host,
    duration: Option<Ns>,
    /// The beginning that is not measured.
    warmup: Ns,
    /// Task groups were turned on for a workload that has some.
    groups_on: bool,
    /// Paths of its task groups, in the order of their numbers.
    cgroups: Arc<[String]>,
    /// Machine, kernel and workload as they were spelled, and the duration that was asked for.
    spelled: Spelled,
    /// The intervals that break a property are longer.
    bounds: Bounds,
}

#[derive(Clone)]
struct Spelled {
    machine: String,
    kernel: String,
    workload: String,
    duration: Option<Ns>,
}

/// Further options of a run.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// Write a trace; its ending says the format.
    pub trace: Option<PathBuf>,
    /// What the trace is to hold.
    pub detail: Detail,
    /// Write a record with decisions.
    pub record: Option<PathBuf>,
    /// How large trace and record may get, each.
    pub max_size: Option<MaxSize>,
    /// Told how far the run is, simulated nanoseconds.
    pub progress: Option<Arc<AtomicU64>>,
    /// Told how large trace and record are, together, bytes.
    pub written: Option<Arc<AtomicU64>>,
    /// Verify every sum after every event (slow).
    pub verify: bool,
}

/// Where a result comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Version of schedtwin.
    pub version: String,
    /// Version of the model.
    pub model_version: String,
    /// The machine as spelled.
    pub machine: String,
    /// The kernel as spelled.
    pub kernel: String,
    /// The workload as spelled.
    pub workload: String,
    /// Name and digest of each input.
    pub hashes: Vec<(String, String)>,
    /// One line: how far to trust this.
    pub trust: String,
}

impl Scenario {
    /// Loads and checks all three; every fault of all of them at once.
    pub fn new(
        machine_spec: &str,
        kernel_spec: &str,
        workload_spec: &str,
        duration: Option<Ns>,
    ) -> Result<Scenario, Diagnostics> {
        let workload = Workload::from_path_or_name(workload_spec);
        let mut scenario = Scenario::with_workload(machine_spec, kernel_spec, workload, duration)?;
        scenario.spelled.workload = workload_spec.to_string();
        Ok(scenario)
    }

    /// As [`Scenario::new`], with a workload that is at hand, or its faults.
    pub fn with_workload(
        machine_spec: &str,
        kernel_spec: &str,
        workload: Result<Workload, Diagnostics>,
        duration: Option<Ns>,
    ) -> Result<Scenario, Diagnostics> {
        let (machine, kernel) = (Machine::load(machine_spec), KernelFile::load(kernel_spec));
        Scenario::checked((machine_spec, machine), (kernel_spec, kernel), workload, duration)
    }

    /// As [`Scenario::new`], with a kernel that is at hand, such as one with users' policies.
    pub fn with_kernel(
        machine_spec: &str,
        kernel: KernelFile,
        workload_spec: &str,
        duration: Option<Ns>,
    ) -> Result<Scenario, Diagnostics> {
        let workload = Workload::from_path_or_name(workload_spec);
        let (identity, machine) = (kernel.identity.clone(), Machine::load(machine_spec));
        let mut scenario = Scenario::checked(
            (machine_spec, machine),
            (&identity, Ok(kernel)),
            workload,
            duration,
        )?;
        scenario.spelled.workload = workload_spec.to_string();
        Ok(scenario)
    }

    /// As [`Scenario::new`], with all three at hand, wherever they come from.
    pub fn from_parts(
        machine: Machine,
        kernel: KernelFile,
        workload: Workload,
        duration: Option<Ns>,
    ) -> Result<Scenario, Diagnostics> {
        let (machine_spec, kernel_spec) = (machine.identity.clone(), kernel.identity.clone());
        Scenario::checked(
            (&machine_spec, Ok(machine)),
            (&kernel_spec, Ok(kernel)),
            Ok(workload),
            duration,
        )
    }

    /// As [`Scenario::new`], with parts that were loaded before, each under the name that results give it.
    pub fn named(
        (machine_name, machine): (&str, Machine),
        (kernel_name, kernel): (&str, KernelFile),
        (workload_name, workload): (&str, Workload),
        duration: Option<Ns>,
    ) -> Result<Scenario, Diagnostics> {
        let (machine, kernel) = ((machine_name, Ok(machine)), (kernel_name, Ok(kernel)));
        let mut scenario = Scenario::checked(machine, kernel, Ok(workload), duration)?;
        scenario.spelled.workload = workload_name.to_string();
        Ok(scenario)
    }

    fn checked(
        (machine_spec, machine): (&str, Result<Machine, Diagnostics>),
        (kernel_spec, kernel): (&str, Result<KernelFile, Diagnostics>),
        workload: Result<Workload, Diagnostics>,
        duration: Option<Ns>,
    ) -> Result<Scenario, Diagnostics> {
        let mut faults = Diagnostics::new();
        let machine = faults.absorb(machine);
        let kernel = faults.absorb(kernel);
        let workload = faults.absorb(workload);
        let named = workload.as_ref().and_then(Workload::system);
        let system = named.and_then(|name| faults.absorb(SystemFile::load(&name.value, &name.at)));
        if let Some(machine) = &machine {
            faults.absorb(firmware::refuse_what_waits(machine));
        }
        if let (Some(machine), Some(kernel)) = (&machine, &kernel) {
            faults.absorb(check_disabled_states(machine, kernel));
            faults.absorb(check_cpufreq_driver(machine, kernel));
            faults.absorb(check_clock_limits(machine, kernel));
            faults.absorb(check_fair_servers(machine, kernel));
        }
        let (Some(machine), Some(mut kernel), Some(mut workload)) = (machine, kernel, workload)
        else {
            return Err(faults);
        };
        if let Some(duration) = duration {
            workload = workload.with_duration(duration);
        }
        let host = Host {
            cpu_capacity: firmware::loop_capacities(&machine),
            ns_per_loop: machine.ns_per_loop,
            dl_bandwidth: dl_bandwidth_left(&machine, &kernel),
            copy_per_kib: machine.path_costs.copy_per_kib_ns,
            block_devices: machine.block.iter().map(|device| device.name.clone()).collect(),
        };
        // The threads' programs depend on the machine, not on the seed: they are checked once.
        let programs = faults.absorb(workload.instantiate(&host, 0));
        let clamped = programs.as_ref().is_some_and(|programs| {
            let mut files = programs.task_group_files().iter();
            files.any(|files| files.uclamp_min.is_some() || files.uclamp_max.is_some())
        });
        if clamped && !kernel.config.uclamp.is_compiled_in() {
            let source = Source::new("kernel", kernel_spec);
            let message = format!(
                "{kernel_spec} has no utilisation clamps, which the workload gives to task groups"
            );
            let help = "add uclamp=key-off".to_string();
            faults.push(&source, 0..kernel_spec.len(), message, Some(help));
        }
        let devices = programs.as_ref().map_or(0, Programs::nr_devices);
        let does_io = programs.as_ref().is_some_and(Programs::uses_block_devices);
        let devices = devices + if does_io { machine.block.len() } else { 0 };
        let devices = devices + system.as_ref().map_or(0, SystemFile::nr_devices);
        if devices > DEVICES_MAX {
            let message =
                format!("its jobs and its system have {devices} devices, of at most {DEVICES_MAX}");
            faults.push_whole(&Source::new("workload", workload.name()), message, None);
        }
        let warmup = programs.as_ref().map_or(0, |programs| match programs.recording_begins() {
            0 => programs.warmup(),
            // It ends with its recording, whatever comes before.
            _ => 0,
        });
        let cgroups: Arc<[String]> =
            programs.map_or_else(Arc::default, |programs| programs.task_group_paths().into());
        // Who wants a kernel without them says so in place.
        let groups_on = !cgroups.is_empty()
            && !kernel.config.fair_group_sched
            && !kernel.identity.contains("fair_group_sched=");
        kernel.config.fair_group_sched |= groups_on;
        faults.absorb(check_task_groups(kernel_spec, &kernel, !cgroups.is_empty()));
        if let Some(duration) = duration {
            faults.absorb(check_duration(duration));
        }
        faults.absorb(workload.check_that_it_ends());
        faults.into_result(())?;
        let spelled = Spelled {
            machine: machine_spec.to_string(),
            kernel: kernel_spec.to_string(),
            workload: workload.name().to_string(),
            duration,
        };
        let duration = duration.or(workload.duration());
        Ok(Scenario {
            spelled,
            machine: Arc::new(machine),
            kernel: Arc::new(kernel),
            workload,
            system: system.map(Arc::new),
            host,
            duration,
            warmup,
            groups_on,
            cgroups,
            bounds: Bounds::default(),
        })
    }

    /// The same, with other bounds of properties.
    pub fn with_bounds(mut self, bounds: Bounds) -> Scenario {
        self.bounds = bounds;
        self
    }

    /// Whether schedutil asks for the clocks of a processor that Linux leaves to a driver of its own, unless told: x86.
    pub fn leaves_clocks_to_schedutil(&self) -> bool {
        let config = &self.kernel.config;
        self.machine.kernel_topology.architecture == Architecture::X86
            && config.runs_schedutil()
            && !config.scaling_driver.needs_own_clocks()
            && self.kernel.policies.names().iter().all(|(_, name)| is_built_in(name))
    }

    /// Whether no system runs beside the workload.
    pub fn is_alone(&self) -> bool {
        self.system.is_none()
    }

    /// The bounds of properties.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// How long a run simulates, if that is known before.
    pub fn duration(&self) -> Option<Ns> {
        self.duration
    }

    /// Returns the notices for the user: features ignored with a notice.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = self.workload.notices();
        if self.groups_on {
            notices.push(format!(
                "the workload has task groups, which {} has not: they are turned on (fair_group_sched=true)",
                self.kernel.identity
            ));
        }
        if self.workload.gives_clamps() && !self.kernel.config.uclamp.is_compiled_in() {
            notices.push(format!(
                "{} has no utilisation clamps (uclamp=compiled-out): util_min and util_max are ignored",
                self.kernel.identity
            ));
        }
        if let Some(duration) = self.duration.filter(|ns| *ns < self.warmup + self.warmup / 5) {
            let [duration, warmup, enough] = [duration, self.warmup, 2 * self.warmup]
                .map(|ns| Duration::from_ns(ns).to_string());
            notices.push(format!(
                "the first {warmup} of the workload are warm-up and not measured, so {duration} are too short for most \
                 metrics: take --duration {enough} or more"
            ));
        }
        let phone = self.machine.cpus.iter().any(|cpu| cpu.capacity < 1024);
        let at_the_top = self.kernel.config.rt_asks_for_the_highest();
        if phone && at_the_top && self.workload.has_rt_tasks(&self.host) {
            notices.push(format!(
                "real-time tasks ask for the highest frequency, as Linux does by itself; phones' start-up scripts turn that off: \
                 add uclamp=on,uclamp_min_rt_default=0, or take {}",
                android_of(&self.kernel.identity)
            ));
        }
        notices
    }

    /// Returns the command that repeats the run with this seed.
    pub fn command(&self, seed: u64) -> String {
        let Spelled { machine, kernel, workload, duration } = &self.spelled;
        let [machine, kernel, workload] = [machine, kernel, workload].map(|text| shell_word(text));
        let duration = duration.map(|ns| format!(" --duration {}", Duration::from_ns(ns).word()));
        let duration = duration.unwrap_or_default();
        format!("schedtwin run -m {machine} -k {kernel} -w {workload}{duration} --seed {seed}")
    }

    /// The machine as it was spelled.
    pub fn machine_name(&self) -> &str {
        &self.spelled.machine
    }

    /// The workload as it was spelled.
    pub fn workload_name(&self) -> &str {
        &self.spelled.workload
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The kernel.
    pub fn kernel(&self) -> &KernelFile {
        &self.kernel
    }

    /// The scheduling domains that the kernel builds for the machine.
    pub fn domains(&self) -> DomainTable {
        firmware::device_tree(&self.machine, 0).domains(&self.kernel.config)
    }

    /// CPUs of the largest last-level cache, if wakeups look for idle CPUs in it only after its first load balance: the
    /// machine has just booted (`start`).
    pub fn unscanned_at_first(&self) -> Option<u32> {
        let config = &self.kernel.config;
        if config.start.is_settled() || config.searches_caches_at_boot() {
            return None;
        }
        self.domains().pointers.iter().map(|row| row.sd_llc_size).max()
    }

    /// A run that has not begun.
    pub fn twin<B: Board>(&self, seed: u64) -> Twin<B> {
        let programs = self
            .workload
            .instantiate(&self.host, seed)
            .expect("the workload was instantiated when the scenario was checked");
        let end = match self.duration {
            Some(duration) => duration.saturating_add(GRACE),
            None => LONGEST_RUN,
        };
        // Half of the run, so that it looks, and has seen, before the run ends.
        let watchdog = self.duration.map(|duration| (duration / 2).max(SHORTEST_WATCHDOG));
        let policies = self.kernel.policies.clone();
        let policies = match watchdog {
            Some(most) if !policies.has_watchdog() => policies.with_watchdog_at_most(most),
            _ => policies,
        };
        let kernel = (self.kernel.config.clone(), &policies);
        let system = self.system.as_deref();
        let (machine, end) = (self.machine.clone(), end.min(LATEST));
        Twin::with_system(machine, kernel, system, programs, seed, end)
            .bounded_by(&self.bounds)
            .asked_for(self.duration)
    }

    /// Runs it.
    pub fn run(&self, seed: u64, options: RunOptions) -> io::Result<RunResult> {
        let mut twin: Twin<FlatBoard> = self.twin(seed);
        if options.verify {
            twin = twin.eager();
        }
        if options.trace.is_none() && options.record.is_none() {
            run_to_the_end(&mut twin, &mut (), options.progress.as_deref());
            return Ok(twin.finish());
        }
        let open = |path: &PathBuf, format: Format| {
            schedtwin_trace::create_growing(path, format, self.meta(seed), options.detail)
        };
        let trace = match &options.trace {
            Some(path) => {
                let format = Format::from_path(path).ok_or_else(|| {
                    io::Error::other(format!("the name of a trace ends in {}", Format::ENDINGS))
                })?;
                Some(open(path, format)?)
            }
            None => None,
        };
        let record = match &options.record {
            Some(path) => Some(open(path, Format::of_record(path))?),
            None => None,
        };
        let output = Output::new(trace, record, self.machine.domains.len())
            .bounded(options.max_size, options.written);
        self.write(twin, output, options.progress.as_deref())
    }

    /// Runs it, and hands all that happens to a trace that is no file.
    pub fn run_into(&self, seed: u64, trace: Box<dyn Sink>) -> io::Result<RunResult> {
        let nr_clocks = self.machine.domains.len();
        let output = Output::new(Some(GrowingFile::none(trace)), None, nr_clocks);
        self.write(self.twin(seed), output, None)
    }

    fn write(
        &self,
        mut twin: Twin<FlatBoard>,
        mut output: Output,
        progress: Option<&AtomicU64>,
    ) -> io::Result<RunResult> {
        twin.report_signals();
        if output.wants_decisions() {
            twin.record_decisions();
        }
        twin.introduce(&mut output);
        run_to_the_end(&mut twin, &mut output, progress);
        twin.tell_open_chains(&mut output);
        let notices = output.finish()?;
        let mut result = twin.finish();
        result.notices.extend(notices);
        Ok(result)
    }

    /// Describes the run with this seed, as traces want it.
    pub fn meta(&self, seed: u64) -> Meta {
        let from = self.provenance();
        let mut provenance = vec![
            ("version".to_string(), from.version),
            ("model_version".to_string(), from.model_version),
            ("machine".to_string(), from.machine),
            ("kernel".to_string(), from.kernel),
            ("workload".to_string(), from.workload.clone()),
            ("seed".to_string(), seed.to_string()),
        ];
        let hashes = from.hashes.into_iter();
        provenance.extend(hashes.map(|(name, hash)| (format!("{name}_hash"), hash)));
        Meta {
            title: from.workload,
            nr_cpus: self.machine.nr_cpus(),
            domain_names: {
                let clocks = self.machine.domains.iter().map(|d| d.name.clone());
                clocks.chain(self.machine.power_domains.iter().map(|d| d.name.clone())).collect()
            },
            policy_cpus: self
                .machine
                .domains
                .iter()
                .map(|d| CpuMask::from_cpus(d.cpus.iter().copied()))
                .collect(),
            cgroups: self.cgroups.to_vec(),
            provenance,
        }
    }

    /// The user's own code, for the line on trust; empty if there is none.
    fn own_policies(&self) -> String {
        let (mut own, mut of_tree) = (Vec::new(), Vec::new());
        for (mechanism, name) in self.kernel.policies.names() {
            if is_built_in(name) {
                continue;
            }
            match self.kernel.code.iter().find(|code| code.name == name) {
                Some(code) => of_tree.push(format!("{mechanism} {}", code.text())),
                None => own.push(format!("{mechanism} `{name}`")),
            }
        }
        let told = [("; C of a tree", of_tree), ("; own code, which no hash covers", own)];
        let told = told.iter().filter(|(_, which)| !which.is_empty());
        told.map(|(what, which)| format!("{what}: {}", which.join(", "))).collect()
    }

    /// Returns the texts that determine a run beside its seed and the model's version: machine, kernel, workload, duration.
    /// `None`: the kernel has policies that are code, which no text covers.
    pub fn determining_texts(&self) -> Option<[Vec<u8>; 4]> {
        let own_code = self.kernel.policies.names().iter().any(|(_, name)| !is_built_in(name));
        (!own_code).then(|| {
            [
                self.machine.fingerprint_text().into_bytes(),
                self.kernel.fingerprint_text().into_bytes(),
                self.workload.bytes().to_vec(),
                format!("{:?} {}{}", self.duration, self.groups_on, self.system_text())
                    .into_bytes(),
            ]
        })
    }

    /// Whether C of the user's decides in it.
    pub fn has_foreign_code(&self) -> bool {
        !self.kernel.code.is_empty()
    }

    /// Whether policies decide in it that belong to the program that made it.
    pub fn has_own_policies(&self) -> bool {
        let of_tree = |name: &str| self.kernel.code.iter().any(|code| code.name == name);
        let names = self.kernel.policies.names();
        names.iter().any(|(_, name)| !is_built_in(name) && !of_tree(name))
    }

    /// The profile of the system, as text; empty without one.
    fn system_text(&self) -> &str {
        self.system.as_ref().map_or("", |system| system.fingerprint_text())
    }

    /// Where its results come from.
    pub fn provenance(&self) -> Provenance {
        let hash = |text: &[u8]| format!("{:016x}", Fnv1a::of(text.iter().copied()));
        Provenance {
            version: env!("CARGO_PKG_VERSION").to_string(),
            model_version: MODEL_VERSION.to_string(),
            machine: self.machine.identity.clone(),
            kernel: self.kernel.identity.clone(),
            workload: self.workload.name().to_string(),
            hashes: [
                ("machine", Some(hash(self.machine.fingerprint_text().as_bytes()))),
                ("kernel", Some(hash(self.kernel.fingerprint_text().as_bytes()))),
                ("workload", Some(hash(self.workload.bytes()))),
                ("system", self.system.as_ref().map(|_| hash(self.system_text().as_bytes()))),
            ]
            .into_iter()
            .filter_map(|(name, hash)| Some((name.to_string(), hash?)))
            .collect(),
            trust: format!(
                "{}; path costs{} idle energies are estimates{}{}{}; \
                 absent: caches, memory{}{} (MODEL.md){}",
                match self.machine.fitted.join(", ") {
                    none if none.is_empty() => "nothing is fitted".to_string(),
                    keys => format!("fitted to published values: {keys} of the machine"),
                },
                match self.machine.estimated_parts().join(", ") {
                    none if none.is_empty() => " and".to_string(),
                    parts => format!(", {parts} and"),
                },
                match self.machine.measured.len() {
                    0 => String::new(),
                    count =>
                        format!(", but for {count} costs that a recording of the machine shows"),
                },
                match self.machine.estimated {
                    0 => String::new(),
                    count => format!("; machine: {count} lines of its file estimated"),
                },
                match self.machine.left_out.join(", ") {
                    none if none.is_empty() => none,
                    keys => format!("; machine: left out, by the class of its cores: {keys}"),
                },
                match self.machine.has_several_nodes() {
                    true => ", NUMA balancing",
                    false => "",
                },
                match self.machine.has_power_of_cpus_alone() {
                    true => ", uncore power",
                    false => "",
                },
                self.own_policies()
            ),
        }
    }
}

/// Takes all events, and now and then tells how far it is.
fn run_to_the_end(
    twin: &mut Twin<FlatBoard>,
    observer: &mut impl Observer,
    progress: Option<&AtomicU64>,
) {
    let mut ends = false;
    while twin.step(observer) {
        if observer.enough() && !ends {
            ends = true;
            twin.end_soon();
        }
        if twin.events().is_multiple_of(PROGRESS_EVERY)
            && let Some(progress) = progress
        {
            progress.store(twin.now(), Ordering::Relaxed);
        }
    }
}

/// Refuses a kernel that switches off idle states which the machine does not have.
fn check_disabled_states(machine: &Machine, kernel: &KernelFile) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::new();
    let words = &kernel.config.cpuidle_disable;
    let mut device_tree = firmware::device_tree(machine, 0);
    for word in firmware::disable_idle_states(machine, &mut device_tree, words) {
        let states = machine.core_types.iter().flat_map(|core| &core.idle_states);
        let mut names: Vec<&str> = states.map(|state| state.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let message = format!("`cpuidle_disable`: {} has no idle state `{word}`", machine.identity);
        let help = format!("known: {}, or their numbers", names.join(", "));
        faults.push_whole(&kernel.source, message, Some(help));
    }
    faults.into_result(())
}

/// Limits of clocks below this, kHz, were meant as MHz: no processor is so slow.
const LEAST_LIMIT_KHZ: Khz = 10_000;

/// Refuses limits of clocks that are written in MHz.
fn check_clock_limits(machine: &Machine, kernel: &KernelFile) -> Result<(), Diagnostics> {
    let lowest = machine.domains.iter().map(FrequencyDomain::min_khz).min().unwrap_or(0);
    let (config, name) = (&kernel.config, &machine.identity);
    let is_mhz = |limit: &Khz| *limit > 0 && *limit < LEAST_LIMIT_KHZ.min(lowest);
    let max =
        config.scaling_max_freq.filter(is_mhz).map(|khz| format!("`scaling_max_freq`: {khz}"));
    let min =
        config.scaling_min_freq.filter(is_mhz).map(|khz| format!("`scaling_min_freq`: {khz}"));
    let mut faults = Diagnostics::new();
    for limit in max.into_iter().chain(min) {
        let message =
            format!("{limit} kHz is far below the lowest frequency of {name}, {lowest} kHz");
        faults.push_whole(&kernel.source, message, Some("1.5 GHz is 1500000".into()));
    }
    faults.into_result(())
}

/// Refuses a driver of frequencies that the machine is not made for.
fn check_cpufreq_driver(machine: &Machine, kernel: &KernelFile) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::new();
    let driver = kernel.config.scaling_driver;
    let shared = machine.domains.iter().any(|domain| domain.cpus.len() > 1);
    let x86 = machine.kernel_topology.architecture == Architecture::X86;
    if driver.needs_own_clocks() && (shared || !x86) {
        let message = format!(
            "`scaling_driver`: {} is for x86 processors with a clock for each CPU, which {} is not",
            driver.word(),
            machine.identity
        );
        let help =
            "its file says `architecture = \"x86\"`, and `per_cpu = true` of its frequency domains";
        faults.push_whole(&kernel.source, message, Some(help.into()));
    }
    faults.into_result(())
}

/// Returns the bandwidth that the kernel leaves to threads of SCHED_DEADLINE on the machine.
fn dl_bandwidth_left(machine: &Machine, kernel: &KernelFile) -> Option<u64> {
    let capacities: Vec<u64> = machine.cpus.iter().map(|cpu| cpu.capacity.into()).collect();
    kernel.config.dl_bandwidth_left(&capacities)
}

/// Refuses a kernel that was told to have no task groups where the workload or autogroups ask for them.
fn check_task_groups(
    kernel_spec: &str,
    kernel: &KernelFile,
    asked_for: bool,
) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::new();
    let source = Source::new("kernel", kernel_spec);
    let mut fault = |what: &str, help: &str| {
        let message = format!("{kernel_spec} has {what}");
        faults.push(&source, 0..kernel_spec.len(), message, Some(help.to_string()));
    };
    if !kernel.config.fair_group_sched {
        if asked_for {
            let what = "no task groups, which the workload asks for";
            fault(what, "leave fair_group_sched=false out");
        }
        if kernel.config.sched_autogroup {
            fault("autogroups without task groups", "add fair_group_sched=true");
        }
    }
    faults.into_result(())
}

/// Refuses fair servers that take more than Linux would let them have on the machine.
fn check_fair_servers(machine: &Machine, kernel: &KernelFile) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::new();
    let capacities: Vec<u64> = machine.cpus.iter().map(|cpu| cpu.capacity.into()).collect();
    if !kernel.config.admits_fair_servers(&capacities) {
        let message = format!(
            "`fair_server`: the servers of all CPUs of {} take more than `rt_runtime_us` per `rt_period_us` of \
             their capacity, which Linux refuses",
            machine.identity
        );
        let help = "a shorter `fair_server.runtime_us`; `rt_runtime_us=-1` is no limit";
        faults.push_whole(&kernel.source, message, Some(help.into()));
    }
    faults.into_result(())
}

/// Refuses a run that ends before it begins, and one that does not fit on the board.
fn check_duration(duration: Ns) -> Result<(), Diagnostics> {
    let message = match duration {
        0 => "a run lasts longer than 0 s".to_string(),
        _ if duration > LATEST - GRACE => {
            format!("a run lasts at most {} days", LATEST / (24 * 60 * 60 * 1_000_000_000))
        }
        _ => return Ok(()),
    };
    let mut faults = Diagnostics::new();
    faults.push_whole(&Source::new("duration", ""), message, None);
    Err(faults)
}
