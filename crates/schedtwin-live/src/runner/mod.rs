// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs an rt-app file on this machine: the instructions that the twin interprets, executed.
//!
//! **Idea.** The twin compiles a file into instructions ([`schedtwin_workload::code`]). Each thread of the file becomes a
//! thread here that executes them with the system calls that the twin models, so machine and twin
//! run one file, read by one reader.
//!
//! **A run**
//! 1. The work loop is measured ([`Speed::measure`]).
//! 2. The main thread, called `rt-app`, starts all threads; each sets its parameters and waits for all others.
//! 3. A thread waits for its `delay` and executes its phases, setting affinity and parameters where a phase has others.
//! 4. After `duration` the main thread ends the run: threads that wait are woken, all go on only while they hold a mutex.
//!
//! | instruction | here |
//! |---|---|
//! | `Compute`, `ComputeUntil` | the measured loop |
//! | `Sleep`, `Timer` | `clock_nanosleep()`, relative and absolute |
//! | `Lock` .. `SemaphoreWait` | futexes, as glibc uses them (`sync`) |
//! | `Yield`, `Fork` | `sched_yield()`, a new thread |
//! | parameters | `sched_setattr()` ([`schedtwin_attributes`]) |
//! | affinity | `sched_setaffinity()` |
//!
//! Parameters and affinity are read back; where the kernel made something else of them, the run ends.
//!
//! Differences from rt-app: parameters are set before the threads wait for each other, not after;
//! there is no log and no trace marker; pages are not locked; a `calibration` number is taken to be that of the
//! machine that the instructions were compiled for.

pub(crate) mod clock;
mod sync;
mod work;

pub use work::{Speed, capacity};

use crate::settings::threads::bind;
use clock::{CLOCK, now, sleep, sleep_until};
use rustix::thread::{sched_yield, set_name};
use schedtwin_types::{CpuMask, Ns, SchedAttr, TaskGroupId};
use schedtwin_workload::Host;
use schedtwin_workload::code::{
    AttributeCode, Code, EventKind, FORKS_MAX, Instruction, thread_name,
};
use std::collections::VecDeque;
use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex as Guarded, OnceLock};
use std::thread::{self, JoinHandle};
use sync::{Condition, Mutex, Semaphore};

/// Why a file cannot be run here.
#[derive(Debug)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// This machine as workloads see it; work is in nanoseconds, not in loops.
pub fn this_host() -> Host {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let present = (0..schedtwin_types::MAX_CPUS)
        .filter(|cpu| std::path::Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists());
    let cpus = present.max().map_or(cpus, |highest| highest + 1);
    Host {
        cpu_capacity: (0..cpus).map(|cpu| capacity(cpu).clamp(1, 1024)).collect(),
        ns_per_loop: 1,
        dl_bandwidth: None,
        copy_per_kib: 60,
        block_devices: Vec::new(),
    }
}

/// Runs a file's threads until its end.
pub fn run(code: Code, speed: Speed) -> Result<(), Refused> {
    if code.phases.iter().any(|phase| phase.group.is_some_and(|g| g != TaskGroupId::ROOT))
        || !code.group_files.is_empty()
    {
        let why =
            "the runner makes no task groups: use --runner rt-app, or leave \"taskgroup\" out";
        return Err(Refused(why.to_owned()));
    }
    let shared = Arc::new(Shared::new(code, speed));
    let _ = set_name(c"rt-app");
    let threads: Vec<JoinHandle<()>> = shared
        .code
        .start
        .iter()
        .enumerate()
        .map(|(index, task)| {
            let of_thread = shared.clone();
            let task = *task;
            spawn(&shared, index, task, None, move || Thread::new(of_thread, task, None).started())
        })
        .collect::<Result<_, _>>()?;
    if let Some(duration) = shared.code.duration {
        shared.start.wait();
        // A thread that did not get its parameters has ended the run before it began.
        if shared.is_running() {
            sleep(duration);
        }
        shared.stop();
    } else {
        shared.start.wait();
    }
    for thread in threads {
        let _ = thread.join();
    }
    loop {
        let Some(forked) = shared.forked.lock().expect("no thread panics with it").pop_front()
        else {
            break;
        };
        let _ = forked.join();
    }
    let fault = shared.fault.lock().expect("no thread panics with it").take();
    fault.map_or(Ok(()), |fault| Err(Refused(fault)))
}

/// `iorun` with the default `io_device`.
fn write_to_null(bytes: u32, chunk: u32) {
    let Ok(mut null) = std::fs::OpenOptions::new().write(true).open("/dev/null") else { return };
    let buffer = vec![0; chunk.min(bytes) as usize];
    let mut left = bytes as usize;
    while left > 0 {
        let now = left.min(buffer.len());
        if null.write_all(&buffer[..now]).is_err() {
            return;
        }
        left -= now;
    }
}

fn spawn(
    shared: &Shared,
    index: usize,
    task: u32,
    fork: Option<u32>,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, Refused> {
    let name = thread_name(&shared.code.tasks[task as usize].name, index, fork);
    let spawned = thread::Builder::new().name(name).stack_size(256 << 10).spawn(body);
    spawned.map_err(|error| Refused(format!("failed to start a thread: {error}")))
}

/// The state that all threads share.
struct Shared {
    code: Code,
    speed: Speed,
    /// rt-app's `continue_running`.
    running: AtomicBool,
    /// All threads of the start and the main thread.
    start: Barrier,
    /// When the first thread began.
    t_zero: OnceLock<Ns>,
    mutexes: Vec<Mutex>,
    conditions: Vec<Condition>,
    semaphores: Vec<Semaphore>,
    timers: Vec<Guarded<Option<Ns>>>,
    /// How many more threads each barrier waits for before its last.
    barriers: Vec<AtomicI64>,
    forks: Vec<AtomicU32>,
    threads: AtomicUsize,
    forked: Guarded<VecDeque<JoinHandle<()>>>,
    /// What went wrong first.
    fault: Guarded<Option<String>>,
}

impl Shared {
    fn new(code: Code, speed: Speed) -> Shared {
        Shared {
            speed,
            running: AtomicBool::new(true),
            start: Barrier::new(code.start.len() + 1),
            t_zero: OnceLock::new(),
            mutexes: (0..code.mutexes).map(|_| Mutex::default()).collect(),
            conditions: (0..code.conditions).map(|_| Condition::default()).collect(),
            semaphores: code.semaphores.iter().map(|_| Semaphore::default()).collect(),
            timers: code.timers.iter().map(|_| Guarded::new(None)).collect(),
            barriers: code
                .barriers
                .iter()
                .map(|(_, users)| i64::from(*users) - 1)
                .map(AtomicI64::new)
                .collect(),
            forks: code.tasks.iter().map(|_| AtomicU32::new(0)).collect(),
            threads: AtomicUsize::new(code.start.len()),
            forked: Guarded::default(),
            fault: Guarded::default(),
            code,
        }
    }

    fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    /// Ends the run: who waits is woken.
    fn stop(&self) {
        self.running.store(false, Ordering::SeqCst);
        self.conditions.iter().for_each(Condition::broadcast);
        self.semaphores.iter().for_each(Semaphore::wake_all);
    }

    /// Ends the run because of a fault.
    fn fail(&self, fault: String) {
        self.fault.lock().expect("no thread panics with it").get_or_insert(fault);
        self.stop();
    }
}

/// One of rt-app's threads.
struct Thread {
    shared: Arc<Shared>,
    task: usize,
    attr: SchedAttr,
    cpus: CpuMask,
    /// The affinity that it was created with.
    own_cpus: CpuMask,
    /// Explicit `lock`s minus `unlock`s.
    locks: i32,
    t_first: Ns,
    timers: Vec<Option<Ns>>,
}

impl Thread {
    fn new(shared: Arc<Shared>, task: u32, parent: Option<&Thread>) -> Thread {
        let cpus = parent.map_or(shared.code.all_cpus, |parent| parent.cpus);
        let timers = vec![None; shared.code.tasks[task as usize].timers.len()];
        Thread {
            task: task as usize,
            attr: parent.map_or(SchedAttr::default(), |parent| parent.attr),
            cpus,
            own_cpus: cpus,
            locks: 0,
            t_first: 0,
            timers,
            shared,
        }
    }

    /// The life of a thread of the start.
    fn started(mut self) {
        let attributes = self.shared.code.tasks[self.task].attributes;
        let first = self.shared.code.tasks[self.task].first_phase as usize;
        let cpus = self.shared.code.phases[first].cpus;
        self.bind(cpus.unwrap_or(self.own_cpus));
        self.change(&attributes);
        self.shared.start.wait();
        self.shared.t_zero.get_or_init(|| now(CLOCK));
        self.live();
    }

    /// The life of a forked thread.
    fn forked(mut self) {
        let attributes = self.shared.code.tasks[self.task].attributes;
        self.change(&attributes);
        self.live();
    }

    fn live(mut self) {
        let shared = self.shared.clone();
        let task = &shared.code.tasks[self.task];
        self.t_first = shared.t_zero.get().copied().unwrap_or_else(|| now(CLOCK)) + task.delay;
        if task.delay > 0 {
            sleep_until(self.t_first);
        }
        let mut round: u32 = 0;
        while task.loops.is_none_or(|loops| round < loops) {
            for phase in task.first_phase..task.end_phase {
                if !self.phase(phase as usize) {
                    return;
                }
            }
            round = round.wrapping_add(1);
        }
    }

    /// Executes a phase as often as it is repeated; whether the run goes on.
    fn phase(&mut self, number: usize) -> bool {
        let shared = self.shared.clone();
        let phase = &shared.code.phases[number];
        self.bind(phase.cpus.unwrap_or(self.own_cpus));
        if let Some(change) = &phase.attributes {
            self.change(change);
        }
        let mut round: u32 = 0;
        while phase.loops.is_none_or(|loops| round < loops) {
            if !self.events(phase.first_instruction as usize) {
                return false;
            }
            round = round.wrapping_add(1);
        }
        shared.is_running()
    }

    /// Executes the instructions of one iteration; whether the run goes on.
    fn events(&mut self, first: usize) -> bool {
        let shared = self.shared.clone();
        let mut at = first;
        loop {
            let instruction = shared.code.instructions[at];
            at += 1;
            match instruction {
                Instruction::Event { next, kind, .. } => {
                    if !shared.is_running() {
                        if self.locks <= 0 {
                            return false;
                        }
                        if !matches!(kind, EventKind::Lock | EventKind::Unlock) {
                            at = next as usize;
                            continue;
                        }
                    }
                    match kind {
                        EventKind::Lock => self.locks += 1,
                        EventKind::Unlock => self.locks -= 1,
                        EventKind::Plain | EventKind::Work => {}
                    }
                }
                Instruction::PhaseEnd => return shared.is_running(),
                Instruction::BarrierArrive { barrier } => {
                    // The mutex of the barrier is held.
                    let left = &shared.barriers[barrier as usize];
                    if left.load(Ordering::Relaxed) == 0 {
                        let (condition, _) = shared.code.barriers[barrier as usize];
                        shared.conditions[condition as usize].broadcast();
                        // The last one: over ConditionWait and BarrierLeave, to Unlock.
                        at += 2;
                    } else {
                        left.fetch_sub(1, Ordering::Relaxed);
                    }
                }
                Instruction::Fork { task } => self.fork(task),
                instruction => self.execute(instruction),
            }
        }
    }

    fn execute(&mut self, instruction: Instruction) {
        let shared = self.shared.clone();
        match instruction {
            Instruction::Compute { work } => shared.speed.work(work),
            Instruction::ComputeUntil { chunk, target_us } => {
                let began = now(CLOCK);
                while (now(CLOCK) - began) / 1000 < u64::from(target_us) {
                    shared.speed.work(chunk);
                }
            }
            Instruction::Sleep { duration } => sleep(duration),
            Instruction::Timer { timer, own, period } => self.timer(timer as usize, own, period),
            Instruction::Lock { mutex } => shared.mutexes[mutex as usize].lock(),
            Instruction::Unlock { mutex } => shared.mutexes[mutex as usize].unlock(),
            Instruction::ConditionWait { condition, mutex } => {
                let mutex = &shared.mutexes[mutex as usize];
                shared.conditions[condition as usize].wait(mutex, || !shared.is_running());
            }
            Instruction::Signal { condition } => shared.conditions[condition as usize].signal(),
            Instruction::Broadcast { condition } => {
                shared.conditions[condition as usize].broadcast();
            }
            Instruction::BarrierLeave { barrier } => {
                shared.barriers[barrier as usize].fetch_add(1, Ordering::Relaxed);
            }
            Instruction::SemaphorePost { semaphore } => {
                shared.semaphores[semaphore as usize].post();
            }
            Instruction::SemaphoreWait { semaphore, .. } => {
                shared.semaphores[semaphore as usize].wait(|| !shared.is_running());
            }
            Instruction::Yield => sched_yield(),
            Instruction::Write { copies: true, .. } => {
                shared.fail(
                    "\"iorun\" writes to /dev/null only: leave \"io_device\" out".to_string(),
                );
            }
            Instruction::Write { bytes, chunk, .. } => write_to_null(bytes, chunk),
            // A share of memory cannot be asked of real work: the loop is all that runs.
            Instruction::Stalls { .. } => {}
            Instruction::BlockIo { .. } => unreachable!("this host has no block device"),
            other => unreachable!("{other:?} is no event of a file, or chooses what follows"),
        }
    }

    /// Sleeps until the timer's next expiry. A relative timer forgets time that was lost, an absolute one catches up.
    fn timer(&mut self, timer: usize, own: bool, period: Ns) {
        let shared = self.shared.clone();
        let absolute = match own {
            true => shared.code.tasks[self.task].timers[timer],
            false => shared.code.timers[timer],
        };
        let first = self.t_first;
        let advance = |last: &mut Option<Ns>| *last.insert(last.unwrap_or(first) + period);
        let mut of_all = (!own).then(|| shared.timers[timer].lock().expect("no thread panics"));
        let expiry = match &mut of_all {
            Some(last) => advance(last),
            None => advance(&mut self.timers[timer]),
        };
        let time = now(CLOCK);
        if time < expiry {
            drop(of_all);
            sleep_until(expiry);
        } else if !absolute {
            match &mut of_all {
                Some(last) => **last = Some(time),
                None => self.timers[timer] = Some(time),
            }
        }
    }

    fn fork(&mut self, task: u32) {
        let shared = self.shared.clone();
        let fork = shared.forks[task as usize].fetch_add(1, Ordering::Relaxed);
        if fork >= FORKS_MAX {
            shared.fail(format!("\"fork\" makes more than {FORKS_MAX} threads of one task"));
            return;
        }
        let index = shared.threads.fetch_add(1, Ordering::Relaxed);
        let child = Thread::new(shared.clone(), task, Some(self));
        match spawn(&shared, index, task, Some(fork), move || child.forked()) {
            Ok(forked) => {
                shared.forked.lock().expect("no thread panics with it").push_back(forked);
            }
            Err(refused) => shared.fail(refused.to_string()),
        }
    }

    /// Binds the thread to CPUs, if it is bound otherwise.
    fn bind(&mut self, cpus: CpuMask) {
        if self.cpus == cpus {
            return;
        }
        self.cpus = cpus;
        let is_free = cpus == self.shared.code.all_cpus;
        // CPUs that are offline count among all of them.
        if let Err(error) = bind(0, cpus).or_else(|error| if is_free { Ok(()) } else { Err(error) })
        {
            let name = &self.shared.code.tasks[self.task].name;
            self.shared.fail(format!("failed to bind a thread of \"{name}\": {error}"));
        }
    }

    /// Changes the thread's parameters, if it has others.
    fn change(&mut self, change: &AttributeCode) {
        let new = change.applied_to(self.attr);
        let was = std::mem::replace(&mut self.attr, new);
        if new == was {
            return;
        }
        // A file may ask for any slice, often without meaning to (`runtime` of a task): Linux takes the nearest one, as the
        // twin does. That of a setting has been tried before.
        let nearest = SchedAttr { slice: 0, ..new };
        let set = schedtwin_attributes::set(0, &new);
        if let Err(error) = set.and_then(|has| schedtwin_attributes::check(&nearest, &has)) {
            let name = &self.shared.code.tasks[self.task].name;
            self.shared
                .fail(format!("failed to give a thread of \"{name}\" its parameters: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_input::Source;
    use schedtwin_workload::Workload;
    use std::fs;

    fn code_of(text: &str) -> Code {
        let workload = Workload::parse_rtapp(Source::new("a.json", text)).unwrap();
        workload.code(&this_host()).unwrap().unwrap()
    }

    /// Every kind of event is executed, and the run ends though threads wait.
    #[test]
    fn a_file_with_all_events_runs_to_its_end() {
        let code = code_of(
            r#"{ "global": { "duration": 1 }, "tasks": {
            "ping": { "loop": -1, "run": 100, "resume": "go", "timer": { "ref": "unique", "period": 5000 } },
            "pong": { "loop": -1, "suspend": "go", "run": 50 },
            "locks": { "instance": 2, "loop": -1, "lock": "m", "run": 10, "unlock": "m", "sleep": 500, "yield": "" },
            "meet": { "instance": 3, "loop": -1, "barrier": "b", "runtime": 100, "sleep": 1000 },
            "sems": { "loop": -1, "sem_post": "s", "sleep": 2000, "sem_wait": "s" },
            "waits": { "loop": -1, "lock": "w", "wait": { "ref": "never", "mutex": "w" }, "unlock": "w" },
            "forks": { "loop": 3, "fork": "child", "sleep": 1000 },
            "child": { "instance": 0, "loop": 2, "run": 10, "sleep": 100 } } }"#,
        );
        let began = now(CLOCK);
        run(code, Speed::measure().unwrap()).unwrap();
        assert!(now(CLOCK) - began >= 1_000_000_000);
    }

    /// What the file says of a thread is what the kernel has of it.
    #[test]
    #[cfg(target_os = "linux")]
    fn threads_have_the_names_priorities_and_cpus_of_the_file() {
        let code = code_of(
            r#"{ "global": { "duration": 1 }, "tasks": {
            "low": { "priority": 11, "cpus": [0], "loop": -1, "run": 100, "sleep": 1000 } } }"#,
        );
        let looked = thread::spawn(|| {
            let deadline = now(CLOCK) + 900_000_000;
            // It gets its name and its CPUs before its nice value.
            let mut last = None;
            while now(CLOCK) < deadline {
                for entry in fs::read_dir("/proc/self/task").unwrap().flatten() {
                    let read = |name| fs::read_to_string(entry.path().join(name));
                    let (Ok(stat), Ok(status)) = (read("stat"), read("status")) else { continue };
                    if stat.contains("(low-0)") && status.contains("Cpus_allowed_list:\t0\n") {
                        let nice = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16);
                        last = nice.map(str::to_owned);
                    }
                }
                if last.as_deref() == Some("11") {
                    break;
                }
                sleep(5_000_000);
            }
            last
        });
        run(code, Speed::measure().unwrap()).unwrap();
        assert_eq!(looked.join().unwrap().as_deref(), Some("11"));
    }

    /// A kernel without clamps ends the run at once, and not after its duration.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_run_whose_threads_do_not_get_their_parameters_ends() {
        // A deadline thread has to be allowed on all CPUs, and on all machines more than all CPU time is too much.
        let code = code_of(
            r#"{ "global": { "duration": 600 }, "tasks": {
            "a": { "instance": 64, "policy": "SCHED_DEADLINE", "dl-runtime": 10000, "dl-period": 10000,
                "cpus": [0], "loop": -1, "run": 100, "sleep": 1000 } } }"#,
        );
        let why = run(code, Speed::measure().unwrap()).unwrap_err().to_string();
        assert!(why.starts_with("failed to give a thread of \"a\" its parameters: "), "{why}");
    }

    #[test]
    fn what_the_runner_has_not_is_refused() {
        let code = code_of(r#"{ "tasks": { "a": { "taskgroup": "/g", "loop": 1, "run": 1 } } }"#);
        let speed = Speed::measure().unwrap();
        assert!(run(code, speed).unwrap_err().to_string().contains("task groups"));
    }
}
