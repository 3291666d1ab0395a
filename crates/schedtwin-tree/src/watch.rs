// SPDX-License-Identifier: GPL-2.0-or-later
//! Watches a governor's C from a tree. If it crashes, loops or asks a question that the twin cannot answer, the
//! program ends with a message that names the governor, its tree and the call.
//!
//! | what | how it is noticed | the end |
//! |---|---|---|
//! | an invalid address, a division by zero, an index outside of an array | a signal | the message, exit code 2 (a debugger stops at the place before) |
//! | a loop | a thread looks ten times a second; the limit is processor time within one call | the message, exit code 2 |
//! | a wait, a thread's end | the same; the limit is [`STILL_MAX`] without processor time | the message, exit code 2 |
//! | a question that the twin cannot answer | the C calls [`refuse`] | the message, exit code 2 |
//!
//! **The message** is written by the watching thread, because a signal handler may do very little: it stores what
//! happened and waits. Function and line come from the object's debug information ([`crate::lines`]). The message is printed
//! once: if several threads fail, one ends the program and the others wait ([`fatal`]). A thread that does not answer, because the C
//! ignores its signals, or has ended, is told without its place.
//!
//! **In a worker** ([`crate::worker`]) the watching thread also tells the supervisor that no call is at its limit. Without that the
//! supervisor ends the worker.
//!
//! **Limits.** A wild pointer into existing memory is not detected, because C in the same process can write
//! everywhere. Guard pages around the heap and checks of array bounds detect the usual mistakes. A loop that ends
//! before the limit is only slow.
//!
//! The limit is [`LIMIT_S`] seconds of processor time, or the value of the environment variable
//! `SCHEDTWIN_TREE_LIMIT_S`. It changes no result: a run that ends is the same with any limit.

use crate::{Fault, lines, worker};
use schedtwin_types::printable;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Seconds of processor time that one call may take. The governors of Linux take less than a microsecond.
const LIMIT_S: u64 = 10;
/// The most that `SCHEDTWIN_TREE_LIMIT_S` may say: a day.
const LIMIT_S_MAX: u64 = 86_400;
/// Interval at which the watching thread looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a call may take without using processor time: the machine may have others at work, but no call of a governor waits.
const STILL_MAX: Duration = Duration::from_secs(60);
/// How long a thread may take to say where it is.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// The limit of a call, from the environment when it is asked first.
static LIMIT: OnceLock<Result<Duration, String>> = OnceLock::new();

/// Refuses a limit that is none.
pub(crate) fn check_limit() -> Result<(), Fault> {
    let limit = LIMIT.get_or_init(|| match std::env::var_os("SCHEDTWIN_TREE_LIMIT_S") {
        None => Ok(Duration::from_secs(LIMIT_S)),
        Some(text) => {
            let seconds = text.to_str().and_then(|text| text.parse().ok());
            let seconds = seconds.filter(|seconds| (1..=LIMIT_S_MAX).contains(seconds));
            seconds.map(Duration::from_secs).ok_or_else(|| text.to_string_lossy().into_owned())
        }
    });
    limit.as_ref().map(drop).map_err(|text| {
        Fault::new(
            format!("SCHEDTWIN_TREE_LIMIT_S is `{}`", printable::line(text)),
            format!("it is a whole number of seconds, 1 to {LIMIT_S_MAX}"),
        )
    })
}

/// The limit of a call.
pub(crate) fn limit() -> Duration {
    let _ = check_limit();
    LIMIT.get().and_then(|limit| limit.clone().ok()).unwrap_or(Duration::from_secs(LIMIT_S))
}

/// The label of a governor in messages. Never dropped, so that a signal's handler can rely on it.
#[derive(Debug)]
pub(crate) struct Label {
    /// Name in messages, as `teo.c of ~/src/linux`.
    pub(crate) name: String,
    /// The object, which has line numbers.
    object: Arc<[u8]>,
    /// The addresses at which copies of the object are loaded.
    bases: Mutex<Vec<usize>>,
}

impl Label {
    pub(crate) fn new(name: String, object: Arc<[u8]>) -> &'static Label {
        let name = printable::line(&name).to_string();
        Box::leak(Box::new(Label { name, object, bases: Mutex::default() }))
    }

    /// Registers a copy that was loaded at `base`.
    pub(crate) fn loaded_at(&self, base: usize) {
        self.bases.lock().unwrap_or_else(PoisonError::into_inner).push(base);
        start();
    }

    /// Returns function and line of an address, if they can be found.
    fn place(&self, address: usize) -> String {
        const OBJECT_BYTES: usize = 1 << 20;
        let bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        let base =
            bases.iter().rev().find(|base| (**base..**base + OBJECT_BYTES).contains(&address));
        let Some(base) = base else { return format!("{address:#x}, outside of its code") };
        let offset = address - base;
        match lines::place(&self.object, offset as u64) {
            Some((function, line)) => format!("{function}(), {}", as_in_tree(&line)),
            None => format!("offset {offset:#x} of its object"),
        }
    }
}

/// A path of the compiler as the user knows it: inside of the tree, or of ours below `c/`.
fn as_in_tree(path: &str) -> &str {
    let path = path.split_once("THE-TREE/").map_or(path, |(_, path)| path);
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest;
    }
    path
}

/// A question to a governor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) label: &'static Label,
    pub(crate) question: Question,
    /// The CPU of the call.
    pub(crate) cpu: u16,
}

/// A call of a governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The governor registers itself and takes the CPUs over.
    Boot,
    /// It selects an idle state.
    Select,
    /// It learns from a stay in an idle state.
    Reflect,
    /// It computes a frequency.
    Update,
    /// It reads changed frequency limits.
    Limits,
    /// `select_cpu` of a scheduler of sched_ext.
    SelectCpu,
    /// `enqueue` of a scheduler of sched_ext.
    Enqueue,
    /// `dequeue` of a scheduler of sched_ext.
    Dequeue,
    /// `dispatch` of a scheduler of sched_ext.
    Dispatch,
    /// `tick` of a scheduler of sched_ext.
    Tick,
    /// `runnable` of a scheduler of sched_ext.
    Runnable,
    /// `running` of a scheduler of sched_ext.
    Running,
    /// `stopping` of a scheduler of sched_ext.
    Stopping,
    /// `quiescent` of a scheduler of sched_ext.
    Quiescent,
    /// `yield` of a scheduler of sched_ext.
    Yield,
    /// A task or a CPU has changed.
    Change,
    /// `update_idle` of a scheduler of sched_ext.
    UpdateIdle,
    /// `init_task` of a scheduler of sched_ext.
    InitTask,
    /// `exit_task` of a scheduler of sched_ext.
    ExitTask,
    /// `enable` of a scheduler of sched_ext.
    Enable,
    /// `disable` of a scheduler of sched_ext.
    Disable,
    /// `init` of a scheduler of sched_ext.
    Init,
    /// `exit` of a scheduler of sched_ext.
    Exit,
    /// A timer of a scheduler.
    Timer,
    /// `cgroup_init` and the like of a scheduler of sched_ext.
    Cgroup,
    /// A program of a scheduler at `sched_switch`.
    Switch,
}

impl Question {
    const ALL: [Question; 26] = [
        Question::Boot,
        Question::Select,
        Question::Reflect,
        Question::Update,
        Question::Limits,
        Question::SelectCpu,
        Question::Enqueue,
        Question::Dequeue,
        Question::Dispatch,
        Question::Tick,
        Question::Runnable,
        Question::Running,
        Question::Stopping,
        Question::Quiescent,
        Question::Yield,
        Question::Change,
        Question::UpdateIdle,
        Question::InitTask,
        Question::ExitTask,
        Question::Enable,
        Question::Disable,
        Question::Init,
        Question::Exit,
        Question::Timer,
        Question::Cgroup,
        Question::Switch,
    ];

    fn text(self) -> &'static str {
        match self {
            Question::Boot => "to start",
            Question::Select => "for an idle state, select()",
            Question::Reflect => "to learn from a stay, reflect()",
            Question::Update => "for a frequency, update_util()",
            Question::Limits => "to look at limits anew, limits()",
            Question::SelectCpu => "select_cpu",
            Question::Enqueue => "enqueue",
            Question::Dequeue => "dequeue",
            Question::Dispatch => "dispatch",
            Question::Tick => "tick",
            Question::Runnable => "runnable",
            Question::Running => "running",
            Question::Stopping => "stopping",
            Question::Quiescent => "quiescent",
            Question::Yield => "yield",
            Question::Change => "set_weight, set_cpumask, cpu_acquire or cpu_release",
            Question::UpdateIdle => "update_idle",
            Question::InitTask => "init_task",
            Question::ExitTask => "exit_task",
            Question::Enable => "enable",
            Question::Disable => "disable",
            Question::Init => "init",
            Question::Exit => "exit",
            Question::Timer => "a timer",
            Question::Cgroup => "a callback of cgroups",
            Question::Switch => "sched_switch",
        }
    }
}

impl Watched {
    /// Does the work, and marks it as this call of the governor meanwhile.
    #[inline]
    pub(crate) fn during<R>(self, work: impl FnOnce() -> R) -> R {
        HERE.with(|here| {
            let slot = here.get();
            let slot = if slot.is_null() { enrol(here) } else { slot };
            // SAFETY: a slot is never dropped, see `enrol`.
            let slot = unsafe { &*slot };
            slot.about.store((self.cpu as usize) << 8 | self.question as usize, Ordering::Relaxed);
            slot.label.store(std::ptr::from_ref(self.label).cast_mut(), Ordering::Release);
            let done = work();
            slot.label.store(std::ptr::null_mut(), Ordering::Release);
            slot.calls.store(slot.calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            done
        })
    }
}

/// The current call of a thread. Each thread that ever called a governor has one; after the thread has ended
/// another thread reuses it.
#[derive(Default)]
struct Slot {
    /// The label of the governor that the thread is calling; null: none.
    label: AtomicPtr<Label>,
    /// The call and its CPU.
    about: AtomicUsize,
    /// The number of calls that have returned.
    calls: AtomicU64,
    /// The signal that arrived, or 0; then the address that caused it, and the program counter.
    signal: AtomicI32,
    address: AtomicUsize,
    program_counter: AtomicUsize,
    /// The call has reached the limit.
    too_long: AtomicBool,
    /// The thread's number in the kernel.
    thread: Mutex<Option<libc::pid_t>>,
}

impl Slot {
    fn question(&self) -> String {
        let about = self.about.load(Ordering::Relaxed);
        let text = Question::ALL.get(about & 0xff).map_or("", |question| question.text());
        format!("{text}, CPU {}", about >> 8)
    }
}

thread_local! {
    /// This thread's slot. It has no destructor, so that a signal handler may read it.
    static HERE: Cell<*const Slot> = const { Cell::new(std::ptr::null()) };
    /// Frees the slot when the thread ends.
    static LEAVE: Cell<Option<Leave>> = const { Cell::new(None) };
}

struct Leave(&'static Slot);

impl Drop for Leave {
    fn drop(&mut self) {
        *self.0.thread.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// All slots, of living threads and of ended ones.
static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

#[cold]
fn enrol(here: &Cell<*const Slot>) -> *const Slot {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the call has no preconditions.
    let me = unsafe { libc::syscall(libc::SYS_gettid) } as libc::pid_t;
    let free =
        slots.iter().copied().find(|slot| slot.thread.lock().is_ok_and(|thread| thread.is_none()));
    let slot = free.unwrap_or_else(|| {
        let slot: &'static Slot = Box::leak(Box::default());
        slots.push(slot);
        slot
    });
    *slot.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(me);
    LEAVE.set(Some(Leave(slot)));
    here.set(slot);
    slot
}

/// The signals of code that crashes.
const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "it used an address that there is not, or that is not its own"),
    (libc::SIGBUS, "it used an address that there is not"),
    (libc::SIGFPE, "it divided by zero"),
    (libc::SIGILL, "an index was outside of its array, or it ended in a trap"),
    (libc::SIGTRAP, "it ended in a trap"),
];
/// The signal to a thread whose call takes too long; its handler stores where the thread is.
const TOO_LONG: c_int = libc::SIGURG;

/// The action that was installed for a signal before.
struct Before(c_int, libc::sigaction);

static BEFORE: OnceLock<Vec<Before>> = OnceLock::new();

/// Installs the handlers and the watching thread, once.
pub(crate) fn start() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let limit = limit();
        let watching = std::thread::Builder::new().name("watch".into()).spawn(move || watch(limit));
        if let Err(error) = watching {
            eprintln!(
                "no thread to watch governors of a tree: {error}; endless loops are not detected"
            );
        }
        let signals = SIGNALS.iter().map(|(signal, _)| *signal).chain([TOO_LONG]);
        let before = signals.map(|signal| {
            // SAFETY: zeros are a valid sigaction; the handler is of the kind that SA_SIGINFO asks for, and touches
            // atomics, a thread-local variable without destructor and system calls only. SA_ONSTACK: the stack may
            // be what has overflowed.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                let mut before: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&mut action.sa_mask);
                libc::sigaction(signal, &action, &mut before);
                Before(signal, before)
            }
        });
        let _ = BEFORE.set(before.collect());
    });
}

/// Stores a crash in a governor's code and waits until it is reported; passes other signals to the earlier handler.
extern "C" fn handler(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let slot = HERE.with(Cell::get);
    // SAFETY: a slot is never dropped.
    let slot = unsafe { slot.as_ref() };
    let asked = slot.filter(|slot| !slot.label.load(Ordering::Acquire).is_null());
    let Some(slot) = asked else {
        if signal != TOO_LONG {
            give_back(signal);
        }
        return;
    };
    if signal == TOO_LONG && !slot.too_long.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: the system hands over valid pointers to a handler with SA_SIGINFO.
    unsafe {
        slot.address.store((*info).si_addr() as usize, Ordering::Relaxed);
        slot.program_counter.store(program_counter(context), Ordering::Relaxed);
    }
    slot.signal.store(signal, Ordering::Release);
    // The watching thread ends the program within this time, if it lives.
    for _ in 0..100 {
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        // SAFETY: nanosleep may be called in a handler; the first pointer is valid, the second may be null.
        unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
    }
    let text = b"error: the C of a governor from a tree crashed\n";
    // SAFETY: write and _exit may be called in a handler; the bytes are there.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(BAD_INPUT);
    }
}

/// Restores the earlier handler, which handles the signal when it comes again, at once.
fn give_back(signal: c_int) {
    let before = BEFORE.get().and_then(|all| all.iter().find(|before| before.0 == signal));
    // SAFETY: what sigaction() gave is put back.
    unsafe {
        match before {
            Some(Before(_, action)) => drop(libc::sigaction(signal, action, std::ptr::null_mut())),
            None => drop(libc::signal(signal, libc::SIG_DFL)),
        }
    }
}

/// Returns the program counter at which the signal arrived.
///
/// # Safety
/// `context` is what a handler with SA_SIGINFO is given.
unsafe fn program_counter(context: *mut c_void) -> usize {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: as the caller promises.
    #[cfg(target_arch = "x86_64")]
    return unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize };
    // SAFETY: as the caller promises.
    #[cfg(target_arch = "aarch64")]
    return unsafe { (*context).uc_mcontext.pc as usize };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = context;
        0
    }
}

/// The loop of the watching thread.
fn watch(limit: Duration) {
    /// A call that was already running at earlier looks.
    struct Seen {
        calls: u64,
        /// The thread's processor time, and the time, when it was seen first.
        used: Duration,
        since: Instant,
        /// When the thread was asked where it is.
        asked: Option<Instant>,
    }
    let mut seen: Vec<Option<Seen>> = Vec::new();
    let mut looks = 0_u32;
    loop {
        std::thread::sleep(LOOK_EVERY);
        let slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        seen.resize_with(slots.len(), || None);
        let mut at_limit = false;
        for (slot, seen) in slots.iter().zip(&mut seen) {
            let label = slot.label.load(Ordering::Acquire);
            // SAFETY: a label is never dropped.
            let Some(label) = (unsafe { label.as_ref() }) else {
                *seen = None;
                continue;
            };
            let signal = slot.signal.load(Ordering::Acquire);
            if signal != 0 {
                tell(slot, label, signal, limit);
            }
            let now = slot.processor_time();
            let calls = slot.calls.load(Ordering::Relaxed);
            match seen {
                Some(before) if before.calls == calls => {
                    let used = now.map(|now| now.saturating_sub(before.used));
                    if used.is_some_and(|used| used >= limit) {
                        at_limit = true;
                        slot.too_long.store(true, Ordering::Relaxed);
                        slot.ask_where();
                        let asked = *before.asked.get_or_insert_with(Instant::now);
                        if asked.elapsed() >= ANSWERS_WITHIN {
                            tell_too_long(slot, label, limit, None);
                        }
                    }
                    // A thread that the C has ended uses no time any more.
                    let works = used.is_some_and(|used| used >= ANSWERS_WITHIN);
                    if before.since.elapsed() >= STILL_MAX.max(limit) && !works {
                        tell_still(slot, label);
                    }
                }
                _ => {
                    let used = now.unwrap_or_default();
                    *seen = Some(Seen { calls, used, since: Instant::now(), asked: None });
                }
            }
        }
        looks = looks.wrapping_add(1);
        if !at_limit && looks.is_multiple_of(5) {
            worker::beat();
        }
    }
}

impl Slot {
    /// Returns the processor time of the thread so far; `None`: the thread is gone.
    fn processor_time(&self) -> Option<Duration> {
        // The lock is held during the call, so a thread that ends waits for it.
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        // The clock of a thread by its number, as in include/linux/posix-timers.h: CPUCLOCK_SCHED and CPUCLOCK_PERTHREAD_MASK.
        const CLOCK_OF_THREAD: libc::pid_t = 2 | 4;
        let clock = (!(*thread)? << 3) | CLOCK_OF_THREAD;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure is whole; a number that is nobody's is an error.
        let failed = unsafe { libc::clock_gettime(clock, &mut time) != 0 };
        (!failed).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    /// Interrupts the thread; its handler stores where it is.
    fn ask_where(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = *thread {
            // SAFETY: a signal to a thread of this process, for which there is a handler; a number that is nobody's is an error.
            unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, TOO_LONG) };
        }
    }
}

/// Writes the message about a call at its limit, with its place if it has said that, and ends the program.
fn tell_too_long(slot: &Slot, label: &Label, limit: Duration, place: Option<&str>) -> ! {
    let seconds = limit.as_secs();
    let what = format!("has computed for {seconds} s in one call, and seems to loop for ever");
    let place = place.unwrap_or("unknown: its thread takes no signal");
    let help = "SCHEDTWIN_TREE_LIMIT_S=SECONDS allows more";
    fatal(&message(slot, label, &what, &[("where", place), ("help", help)]));
}

/// Writes the message about a call that neither returns nor computes.
fn tell_still(slot: &Slot, label: &Label) -> ! {
    let what = format!("has stood still for {} s in one call", STILL_MAX.as_secs());
    let help = "kernel code does not sleep here, and ends by returning";
    fatal(&message(slot, label, &what, &[("help", help)]));
}

/// Writes the message about a signal and ends the program.
fn tell(slot: &Slot, label: &Label, signal: c_int, limit: Duration) -> ! {
    let place = label.place(slot.program_counter.load(Ordering::Relaxed));
    if signal == TOO_LONG {
        tell_too_long(slot, label, limit, Some(&place));
    }
    let why = SIGNALS.iter().find(|(known, _)| *known == signal).map_or("a signal", |(_, why)| why);
    let why = match signal {
        libc::SIGSEGV | libc::SIGBUS => {
            format!("{why} ({:#x})", slot.address.load(Ordering::Relaxed))
        }
        _ => why.to_string(),
    };
    let help = "this is the tree's code, not the twin's; a debugger stops at the place";
    let lines = [("where", place.as_str()), ("why", &why), ("help", help)];
    fatal(&message(slot, label, "crashed", &lines));
}

/// Returns a message about a governor, in lines.
fn message(slot: &Slot, label: &Label, what: &str, lines: &[(&str, &str)]) -> String {
    let mut text = format!("error: {} {what}\n  asked: {}", label.name, slot.question());
    for (head, line) in lines {
        text.push_str(&format!("\n  {head}: {}", printable::line(line)));
    }
    text
}

/// The exit code of bad input. Code of the user that crashes, loops or asks an unsupported question is bad input.
const BAD_INPUT: c_int = 2;

/// Ends the program with a message. Only the first caller's message is printed; others wait here for the end.
///
/// The end is `_exit`, not `exit`: Rust's clean-up frees the alternate stack of the main thread, on which that
/// thread may stand in [`handler`], and then a second signal would end the program before its exit code is set.
fn fatal(message: &str) -> ! {
    static ENDS: AtomicBool = AtomicBool::new(false);
    if ENDS.swap(true, Ordering::AcqRel) {
        loop {
            std::thread::park();
        }
    }
    // Not by the macro, whose output a test harness would keep.
    let _ = writeln!(io::stderr(), "{message}");
    if worker::is_worker() {
        worker::finish(BAD_INPUT as u8);
    }
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(BAD_INPUT) }
}

/// Called by the C when it cannot go on: ends the program with its text and a number.
pub(crate) unsafe extern "C" fn refuse(what: *const c_char, value: c_long) {
    // SAFETY: `c/` hands over texts that are constants.
    let what = unsafe { CStr::from_ptr(what) }.to_string_lossy();
    refuse_here(&format!("{what} {value}"))
}

/// Ends the program because the governor that is being called cannot go on.
pub(crate) fn refuse_here(what: &str) -> ! {
    let slot = HERE.with(Cell::get);
    // SAFETY: a slot is never dropped, and labels are not either.
    let asked =
        unsafe { slot.as_ref().map(|slot| (slot, slot.label.load(Ordering::Acquire).as_ref())) };
    match asked {
        Some((slot, Some(label))) => {
            fatal(&message(slot, label, "cannot go on", &[("why", what)]));
        }
        _ => fatal(what),
    }
}

/// Prints a WARN of the C. The C itself calls this once for each place.
pub(crate) unsafe extern "C" fn warn(file: *const c_char, line: c_int, what: *const c_char) {
    // SAFETY: `c/` hands over texts that are constants.
    let (file, what) = unsafe { (CStr::from_ptr(file), CStr::from_ptr(what)) };
    let (file, what) = (file.to_string_lossy(), what.to_string_lossy());
    let _ = writeln!(io::stderr(), "warning: WARN_ON({what}) at {}:{line}", as_in_tree(&file));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_tree() {
        for (path, shown) in [
            ("./THE-TREE/drivers/cpuidle/governors/teo.c:7", "drivers/cpuidle/governors/teo.c:7"),
            ("THE-TREE/kernel/sched/x.c", "kernel/sched/x.c"),
            ("././idle.c:90", "idle.c:90"),
            ("./include/schedtwin/kernel.h:3", "include/schedtwin/kernel.h:3"),
            ("/usr/include/x.h", "/usr/include/x.h"),
        ] {
            assert_eq!(as_in_tree(path), shown);
        }
    }
}
