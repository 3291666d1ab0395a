// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin record`: records this machine through tracefs, with no other program, into a trace.dat.
//!
//! Algorithm:
//! 1. An instance of tracefs of our own gets the events of a replay ([`EVENTS`]), its buffers and a clock.
//! 2. What no event tells is read beside: the threads as they are ([`threads`]), the machine and the kernel (the script of
//!    `schedtwin capture`), the cost of an event ([`overhead`]).
//! 3. While it records, the full pages of each CPU are read and kept as they are; threads that were created since are
//!    looked at in `/proc`.
//! 4. At the end the instance is removed, and everything becomes one file of version 6, which trace-cmd, KernelShark and
//!    LISA read; what is our own stands in an option that they skip.
//!
//! It ends with the command, after `--duration`, or by Ctrl-C or TERM, and writes the file in each case. An instance that a
//! killed recorder left behind is removed by the next one.

mod overhead;
mod threads;
pub(crate) mod tracefs;

use crate::arguments::Record;
use crate::failure::Failure;
use crate::output::{shown, tell};
use crate::{capture, interrupt};
use rustix::process::{Pid, Signal, kill_process};
use schedtwin_trace::trace_dat::notes::{NotesText, OPTION};
use schedtwin_trace::trace_dat::write::{
    CpuPages, OPTION_CPUSTAT, OPTION_UNAME, OPTION_VERSION, write,
};
use schedtwin_trace::tracepoint::{ByteOrder, Format, Number, PageCursor, PageLayout};
use schedtwin_trace::{AtomicFile, Destination};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tracefs::Instance;

/// Events of a replay, those that the kernel has: system and name.
const EVENTS: [(&str, &str); 39] = [
    ("sched", "sched_switch"),
    ("sched", "sched_waking"),
    ("sched", "sched_wakeup"),
    ("sched", "sched_wakeup_new"),
    ("sched", "sched_migrate_task"),
    ("sched", "sched_process_fork"),
    ("sched", "sched_process_exec"),
    ("sched", "sched_process_exit"),
    ("sched", "sched_process_free"),
    ("sched", "sched_pi_setprio"),
    ("sched", "sched_wakeup_task_attr"),
    ("task", "task_newtask"),
    ("task", "task_rename"),
    ("power", "cpu_frequency"),
    ("power", "cpu_frequency_limits"),
    ("power", "cpu_idle"),
    ("power", "cpu_idle_miss"),
    ("irq", "irq_handler_entry"),
    ("irq", "irq_handler_exit"),
    ("irq", "softirq_entry"),
    ("irq", "softirq_exit"),
    ("irq_vectors", "local_timer_entry"),
    ("irq_vectors", "local_timer_exit"),
    ("irq_vectors", "reschedule_entry"),
    ("irq_vectors", "reschedule_exit"),
    ("irq_vectors", "call_function_entry"),
    ("irq_vectors", "call_function_exit"),
    ("irq_vectors", "call_function_single_entry"),
    ("irq_vectors", "call_function_single_exit"),
    ("irq_vectors", "irq_work_entry"),
    ("irq_vectors", "irq_work_exit"),
    ("irq_vectors", "thermal_apic_entry"),
    ("irq_vectors", "thermal_apic_exit"),
    ("ipi", "ipi_send_cpu"),
    ("ipi", "ipi_send_cpumask"),
    ("ipi", "ipi_raise"),
    ("ipi", "ipi_entry"),
    ("ipi", "ipi_exit"),
    ("cgroup", "cgroup_attach_task"),
];

/// Events without which there is nothing to replay.
const NEEDED: [(&str, &str); 2] = [("sched", "sched_switch"), ("sched", "sched_waking")];

/// Clocks that go on evenly on all CPUs, the best first. Of `boot`, which counts suspends, too, trace-cmd prints bare
/// nanoseconds, and LISA does not read them.
const CLOCKS: [&str; 3] = ["mono", "boot", "global"];

/// Time between two readings of the buffers: long enough to leave idle CPUs alone, and short against what a
/// buffer holds.
const READ_EVERY: Duration = Duration::from_millis(100);

/// Pages of a CPU that are read at once before the others' turn.
const PAGES_AT_ONCE: usize = 4096;

/// Threads that are looked at after the start.
const FORKED_MAX: usize = 1 << 18;

/// Why a recording ended.
enum End {
    Command(io::Result<ExitStatus>),
    Signal,
}

pub fn record(arguments: Record) -> Result<(), Failure> {
    // From here on a signal ends the recording, not the process.
    let (ends, end) = mpsc::channel();
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals =
        signals.map_err(|error| Failure::bad(format!("failed to wait for signals: {error}")))?;
    let from_signals = ends.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if from_signals.send(End::Signal).is_err() {
                return;
            }
        }
    });
    if arguments.duration.is_none() && arguments.command.is_empty() {
        tell("recording until Ctrl-C");
    }
    let path = arguments.output.clone();
    interrupt::guard(&path);
    let root = tracefs::find()?;
    for removed in tracefs::remove_stale(&root) {
        tell(&format!("removed the tracefs instance {removed} of a recorder that was killed"));
    }
    let mut notes = NotesText::default();
    notes.note("recorder", format!("schedtwin {}", env!("CARGO_PKG_VERSION")));
    describe_machine(&mut notes, arguments.bare);
    let mut instance = Instance::create(&root)?;
    let setup = Setup::of(&mut instance, &arguments)?;
    let cost = (!arguments.bare).then(|| overhead::of_an_event(&instance)).flatten();
    if let Some(ns) = cost {
        notes.note("cost_of_an_event_ns", ns);
    }
    let mut recording = Recording::start(&instance, &setup, &path, &mut notes)?;
    if let Ok(End::Signal) = end.try_recv() {
        return Err(Failure::bad("ended before the recording began"));
    }
    let began = Instant::now();
    let cpu_time_before = overhead::cpu_time();
    instance.set("tracing_on", "1")?;
    let child = match start_command(&arguments.command, ends) {
        Ok(child) => child,
        Err(failure) => {
            instance.set("tracing_on", "0")?;
            return Err(failure);
        }
    };
    let outcome = recording.run(&arguments, &end, began, child, &mut notes);
    let stopped = instance.set("tracing_on", "0");
    let took = began.elapsed();
    outcome?;
    stopped?;
    recording.read_all(true, &mut notes)?;
    let spent = overhead::cpu_time().saturating_sub(cpu_time_before);
    recording.note_changes(&mut notes);
    let told = recording.finish(&instance, &setup, &path, notes, took, spent, cost)?;
    tell(&told);
    Ok(())
}

/// The set-up of the instance: the events that it records, and its CPUs.
struct Setup {
    events: Vec<(String, String)>,
    layout: PageLayout,
    cpus: usize,
}

impl Setup {
    fn of(instance: &mut Instance, arguments: &Record) -> Result<Setup, Failure> {
        let clocks = instance.read("trace_clock")?;
        let has = |clock: &&&str| {
            clocks.split_whitespace().any(|word| word.trim_matches(['[', ']']) == **clock)
        };
        let clock = CLOCKS.iter().find(has).ok_or_else(|| {
            Failure::bad("the kernel has no trace clock that all CPUs share (boot, mono or global)")
        })?;
        instance.set("trace_clock", clock)?;
        instance.set("buffer_size_kb", &arguments.buffer_kib.to_string())?;
        // Older kernels have it only at the top, which is not ours to change.
        let _ = instance.set("options/record-tgid", "1");
        let mut events = Vec::new();
        let mut wanted: Vec<(String, String)> = EVENTS
            .iter()
            .map(|(system, name)| ((*system).to_owned(), (*name).to_owned()))
            .collect();
        for event in &arguments.events {
            let (system, name) = event.split_once(':').ok_or_else(|| {
                Failure::bad(format!(
                    "--event {event}: an event is written SYSTEM:NAME, as sched:sched_stat_runtime"
                ))
            })?;
            let plain = |word: &str| {
                word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
                    && !word.starts_with('.')
            };
            if !plain(system)
                || !plain(name)
                || !instance.has(&format!("events/{system}/{name}/enable"))
            {
                return Err(Failure::bad(format!(
                    "--event {event}: this kernel has no such event; see {}/available_events",
                    shown(&instance.root)
                )));
            }
            wanted.push((system.to_owned(), name.to_owned()));
        }
        for (system, name) in wanted {
            let enable = format!("events/{system}/{name}/enable");
            if instance.has(&enable) && !events.contains(&(system.clone(), name.clone())) {
                instance.set(&enable, "1")?;
                events.push((system, name));
            }
        }
        for (system, name) in NEEDED {
            if !events.iter().any(|(s, n)| (s.as_str(), n.as_str()) == (system, name)) {
                return Err(Failure::bad(format!(
                    "the kernel has no event {system}:{name}, without which nothing can be replayed"
                )));
            }
        }
        let layout = PageLayout::parse(&instance.read("events/header_page")?, native_order())
            .or_else(|_| {
                PageLayout::parse(
                    &instance.read_top("events/header_page").unwrap_or_default(),
                    native_order(),
                )
            })
            .map_err(|why| Failure::bad(format!("the kernel's {why}")))?;
        let cpus = instance.cpus()?;
        Ok(Setup { events, layout, cpus })
    }
}

fn native_order() -> ByteOrder {
    if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little }
}

/// The data that a CPU has recorded so far.
struct Spool {
    pipe: File,
    /// Without a name, so that nothing of it is left however this process ends.
    pages: BufWriter<File>,
    bytes: u64,
}

/// A recording that runs.
struct Recording {
    spools: Vec<Option<Spool>>,
    page: Vec<u8>,
    layout: PageLayout,
    fork: Option<ForkFields>,
    known: BTreeSet<u32>,
    at_start: threads::Snapshot,
    forked: usize,
    records: u64,
}

/// Where `sched_process_fork` has the child's pid.
struct ForkFields {
    common_type: Number,
    id: u16,
    child: Number,
}

impl Recording {
    fn start(
        instance: &Instance,
        setup: &Setup,
        path: &Path,
        notes: &mut NotesText,
    ) -> Result<Recording, Failure> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut spools = Vec::new();
        for cpu in 0..setup.cpus {
            let Some(pipe) = instance.open_pipe(cpu)? else {
                spools.push(None);
                continue;
            };
            let pages = tempfile::tempfile_in(folder)
                .map_err(|error| Failure::of_file("write pages to", folder, &error))?;
            spools.push(Some(Spool {
                pipe,
                pages: BufWriter::with_capacity(1 << 18, pages),
                bytes: 0,
            }));
        }
        let fork = instance.read("events/sched/sched_process_fork/format").ok().and_then(|text| {
            let format = Format::parse(&text).ok()?;
            let number = |name| Number::new(format.field(name)?, native_order());
            Some(ForkFields {
                common_type: number("common_type")?,
                id: format.id,
                child: number("child_pid")?,
            })
        });
        let at_start = threads::Snapshot::take();
        for thread in at_start.threads() {
            notes.thread(thread, false);
        }
        Ok(Recording {
            spools,
            page: vec![0; setup.layout.page_bytes],
            layout: setup.layout,
            fork,
            known: at_start.threads().map(|thread| thread.pid).collect(),
            at_start,
            forked: 0,
            records: 0,
        })
    }

    /// Reads until the recording ends.
    fn run(
        &mut self,
        arguments: &Record,
        end: &Receiver<End>,
        began: Instant,
        child: Option<u32>,
        notes: &mut NotesText,
    ) -> Result<(), Failure> {
        let limit = arguments.duration.map(|limit| Duration::from_nanos(limit.ns()));
        let mut command_ended = false;
        loop {
            let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
            match end.recv_timeout(left.unwrap_or(READ_EVERY).min(READ_EVERY)) {
                Ok(End::Command(status)) => {
                    let succeeded = status.as_ref().is_ok_and(ExitStatus::success);
                    let how =
                        status.map_or_else(|error| error.to_string(), |status| status.to_string());
                    if !succeeded {
                        tell(&format!("the command ended with {how}"));
                    }
                    notes.note("command_ended", how);
                    command_ended = true;
                }
                Ok(End::Signal) => notes.note("ended_by", "signal"),
                Err(RecvTimeoutError::Timeout)
                    if limit.is_none_or(|limit| began.elapsed() < limit) =>
                {
                    self.read_all(false, notes)?;
                    continue;
                }
                Err(_) => {}
            }
            break;
        }
        if let (Some(pid), false) = (child.and_then(|pid| Pid::from_raw(pid as i32)), command_ended)
        {
            // The recording is over; whatever still runs of the command is not waited for.
            let _ = kill_process(pid, Signal::TERM);
        }
        Ok(())
    }

    /// Reads what the buffers hold; `last`: also when more comes than is read at once.
    fn read_all(&mut self, last: bool, notes: &mut NotesText) -> Result<(), Failure> {
        let failed =
            |error: &io::Error| Failure::bad(format!("failed to read a CPU's buffer: {error}"));
        let mut created = Vec::new();
        for index in 0..self.spools.len() {
            let mut pages = 0;
            while last || pages < PAGES_AT_ONCE {
                let Some(spool) = &mut self.spools[index] else { break };
                // A read of a whole page gets a whole page; a smaller one would cut it.
                match spool.pipe.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(count) => {
                        self.page[count..].fill(0);
                        spool.bytes += self.page.len() as u64;
                        let written = spool.pages.write_all(&self.page);
                        written.map_err(|error| {
                            Failure::bad(format!("failed to keep the recorded pages: {error}"))
                        })?;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(failed(&error)),
                }
                pages += 1;
                self.scan_page(&mut created);
            }
        }
        for pid in created {
            if self.forked < FORKED_MAX && self.known.insert(pid) {
                // It may have ended already.
                if let Some(thread) = threads::read(pid) {
                    notes.thread(&thread, true);
                    self.forked += 1;
                }
            }
        }
        Ok(())
    }

    /// Counts the records of the page, and finds threads that were created.
    fn scan_page(&mut self, created: &mut Vec<u32>) {
        let Ok((mut cursor, _)) = PageCursor::open(&self.layout, &self.page) else { return };
        while let Ok(Some(place)) = cursor.next(&self.page) {
            self.records += 1;
            let Some(fork) = &self.fork else { continue };
            let record = &self.page[place.start..place.end];
            if fork.common_type.read(record) == Some(i64::from(fork.id))
                && let Some(child) = fork.child.read(record).and_then(|pid| u32::try_from(pid).ok())
            {
                created.push(child);
            }
        }
    }

    /// Notes how many threads have another policy, affinity or group at the end than at the start.
    fn note_changes(&self, notes: &mut NotesText) {
        let changed = threads::Snapshot::take().changed_since(&self.at_start);
        notes.note("threads_changed", changed);
    }

    /// Writes the file; what to tell.
    #[allow(clippy::too_many_arguments)]
    fn finish(
        self,
        instance: &Instance,
        setup: &Setup,
        path: &Path,
        mut notes: NotesText,
        took: Duration,
        spent: Duration,
        cost: Option<u64>,
    ) -> Result<String, Failure> {
        let mut texts = instance.texts(&setup.events)?;
        let mut lost = 0;
        for cpu in 0..setup.cpus {
            let Ok(stats) = instance.read(&format!("per_cpu/cpu{cpu}/stats")) else { continue };
            lost += tracefs::lost(&stats);
            texts.options.push((OPTION_CPUSTAT, format!("CPU: {cpu}\n{stats}").into_bytes()));
        }
        notes.note("duration_ns", took.as_nanos());
        notes.note("records", self.records);
        notes.note("lost", lost);
        notes.note("threads_forked", self.forked);
        notes.note("recorder_cpu_time_ns", spent.as_nanos());
        texts.options.push((OPTION_UNAME, tracefs::uname().into_bytes()));
        texts.options.push((
            OPTION_VERSION,
            format!("schedtwin {}", env!("CARGO_PKG_VERSION")).into_bytes(),
        ));
        texts.options.push((OPTION, notes.as_str().as_bytes().to_vec()));
        let mut cpus = Vec::new();
        for spool in self.spools {
            cpus.push(match spool {
                None => CpuPages { bytes: 0, pages: Box::new(io::empty()) as Box<dyn Read> },
                Some(spool) => {
                    let rewound =
                        spool.pages.into_inner().map_err(|error| error.into_error()).and_then(
                            |mut file| {
                                file.seek(SeekFrom::Start(0))?;
                                Ok(file)
                            },
                        );
                    let file = rewound.map_err(|error| {
                        Failure::bad(format!("failed to keep the recorded pages: {error}"))
                    })?;
                    CpuPages { bytes: spool.bytes, pages: Box::new(file) as Box<dyn Read> }
                }
            });
        }
        let of_file = |error: io::Error| Failure::of_file("write", path, &error);
        let mut file = AtomicFile::create(path).map_err(of_file)?;
        let bytes =
            write(&mut file, &texts, setup.layout.page_bytes as u32, cpus).map_err(of_file)?;
        file.commit().map_err(of_file)?;
        let seconds = took.as_secs_f64();
        let mut told = format!(
            "{}: {} events in {seconds:.1} s, {:.1} MB; the recorder took {:.2} % of one CPU",
            shown(path),
            self.records,
            bytes as f64 / 1e6,
            100.0 * spent.as_secs_f64() / seconds.max(1e-9),
        );
        if let Some(ns) = cost {
            let of_cpu = 100.0 * (ns * self.records) as f64 / 1e9 / seconds.max(1e-9);
            told += &format!(", the events {of_cpu:.2} % ({ns} ns each, measured before)");
        }
        if lost > 0 {
            told += &format!(
                "\n{lost} events were lost: record again with --buffer larger than {} KiB",
                instance.buffer_kib().unwrap_or(0)
            );
        }
        Ok(told)
    }
}

/// Starts the command; a thread waits for its end.
fn start_command(command: &[String], ends: mpsc::Sender<End>) -> Result<Option<u32>, Failure> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let spawned = Command::new(program).args(arguments).spawn();
    let mut child: Child =
        spawned.map_err(|error| Failure::bad(format!("failed to run {program}: {error}")))?;
    let pid = child.id();
    std::thread::spawn(move || {
        let _ = ends.send(End::Command(child.wait()));
    });
    Ok(Some(pid))
}

/// Notes the machine and the kernel as the script of `schedtwin capture` describes them.
fn describe_machine(notes: &mut NotesText, bare: bool) {
    if bare {
        return;
    }
    let captured = || -> io::Result<[String; 2]> {
        let folder = tempfile::tempdir()?;
        let mut shell = Command::new("sh")
            .args(["-s", "--"])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut input) = shell.stdin.take() {
            input.write_all(capture::script().as_bytes())?;
        }
        shell.wait()?;
        let read = |name| fs::read_to_string(folder.path().join(name));
        Ok([read("machine.toml")?, read("kernel.toml")?])
    };
    match captured() {
        Ok([machine, kernel]) => {
            notes.note("machine.toml", machine);
            notes.note("kernel.toml", kernel);
        }
        Err(error) => tell(&format!("the machine is not described in the file: {error}")),
    }
}
