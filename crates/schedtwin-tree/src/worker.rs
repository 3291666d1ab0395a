// SPDX-License-Identifier: GPL-2.0-or-later
//! Two processes: a supervisor that never loads foreign code, and a worker that has nothing to lose.
//!
//! **Idea.** Everything is read and compiled first. Then the process forks (`divide`). The child is the *worker*: it confines itself
//! ([`crate::confine`]), and only then loads objects and goes on with the command. It has four descriptors, all of them pipes to the parent, the
//! *supervisor*, which writes files and the terminal and does nothing else until the worker has ended.
//!
//! ```text
//!  supervisor ── fork ──► waits: writes files, terminal; limits; Ctrl-C ────────────────────► exit code
//!                  │            ▲ text  ▲ errors  ▲ frames          │ replies     ▲ end
//!                  └─► worker: confined ── loads the C ── runs everything ────────┘
//! ```
//!
//! **Success is said, not inferred.** The worker's last frame is its end, with the exit code. Without it nothing has succeeded, whatever the
//! worker's own code was: the supervisor says what happened and exits with 2 (`supervise`).
//!
//! **Limits.** The worker says twice a second that it gets on, unless a call of the C does not (`watch.rs`, which names the call).
//! A worker that says nothing for its limit of processor time, or stands still, is ended by SIGKILL: signals that the C ignores do
//! not matter. It is also ended with its supervisor, however that ends.
//!
//! **Frames** (worker to supervisor): a byte for the kind, a length, bytes. A request has a reply: a byte that tells whether it
//! succeeded, a length, bytes. What comes from the worker may be forged by the C and is treated so: lengths are bounded, text is made
//! printable, and the supervisor's service decides which files may be written.

use crate::{confine, program};
use schedtwin_types::printable;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the supervisor does for the worker.
pub trait Service {
    /// Answers a request, whose bytes come from the worker and may be anything.
    ///
    /// # Errors
    /// If it is not to be done, or fails.
    fn request(&mut self, request: &[u8]) -> io::Result<Vec<u8>>;

    /// Shows how far the work is; bytes as the worker gave them to [`progress`].
    fn progress(&mut self, progress: &[u8]);

    /// The worker has ended, and has said its end with this exit code: gives the files that it has committed their names, if it has
    /// succeeded.
    ///
    /// # Errors
    /// If they cannot be written, or one is missing.
    fn end(&mut self, code: u8) -> io::Result<()>;

    /// Whether nobody wants the results any more: the worker is ended.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// The side of the division on which the caller goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// There is no foreign code, or its confinement is switched off: one process.
    Whole,
    /// The worker, confined: it performs the command and calls [`finish`].
    Worker,
    /// The supervisor, after the worker: all that is left is to exit with this code.
    Supervisor(u8),
}

/// The worker's descriptors: replies come by 0, text leaves by 1, errors by 2, frames by 3.
const REPLIES: i32 = 0;
const FRAMES: i32 = 3;

const BEAT: u8 = b'b';
const PROGRESS: u8 = b'p';
const REQUEST: u8 = b'r';
const RESULTS: u8 = b'd';
const END: u8 = b'e';

/// The longest frame: a piece of a file with its name.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// The most that a worker hands over as results.
const RESULTS_BYTES_MAX: usize = 2 << 30;
/// The most text that a run prints.
const TEXT_BYTES_MAX: u64 = 4 << 30;
/// The most that it says beside it.
const ERRORS_BYTES_MAX: u64 = 16 << 20;
/// A line that is longer is shown in parts.
const LINE_BYTES_MAX: usize = 1 << 20;

/// How long a worker may be silent without using processor time. Machines under load let a process wait for seconds.
const STILL_MAX: Duration = Duration::from_secs(90);
/// What a silent worker gets beyond the limit of a call: time to say itself which call it was.
const GRACE: Duration = Duration::from_secs(3);
/// A worker that has said its end ends within this time.
const LEAVES_WITHIN: Duration = Duration::from_secs(10);

/// The exit code of bad input: code of the user that does not let a run come to its end is bad input.
const BAD_INPUT: u8 = 2;

static IS_WORKER: AtomicBool = AtomicBool::new(false);
/// The worker of this supervisor, or 0.
static WORKER: AtomicI32 = AtomicI32::new(0);

/// Whether this process is a worker.
pub fn is_worker() -> bool {
    IS_WORKER.load(Ordering::Relaxed)
}

/// Ends the worker, or a compiler, if there is one: for a supervisor that is about to exit.
pub fn kill() {
    program::kill();
    let worker = WORKER.load(Ordering::Acquire);
    if worker > 0 {
        // SAFETY: kill has no preconditions. The number is that of a child that has not been waited for.
        unsafe { libc::kill(worker, libc::SIGKILL) };
    }
}

/// A pipe, closed when a program is executed.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: two numbers fit.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just made and belong to nobody else.
    let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    Ok((read, write))
}

/// A process divided.
pub(crate) enum Divided {
    /// The worker, confined.
    Worker,
    /// The supervisor, when the worker has ended.
    Supervisor(Ended),
}

/// What a worker has left.
pub(crate) struct Ended {
    /// Its exit code.
    pub(crate) code: u8,
    /// The results that it handed over.
    pub(crate) results: Vec<u8>,
    /// What it said beside them, if it was kept.
    pub(crate) told: String,
}

/// Where the worker's text goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// To this process's stdout and stderr.
    Shown,
    /// Into [`Ended`]; nothing is printed.
    Kept,
}

/// Divides this process. The worker returns confined; the supervisor returns when the worker has ended.
pub(crate) fn divide(
    service: &mut dyn Service,
    limit: Duration,
    shown: Text,
) -> io::Result<Divided> {
    let _ = io::stdout().flush();
    let _ = io::stderr().flush();
    let ((replies, to_worker), (text, text_out)) = (pipe()?, pipe()?);
    let ((errors, errors_out), (frames, frames_out)) = (pipe()?, pipe()?);
    // SAFETY: the descriptor is open.
    unsafe { libc::fcntl(to_worker.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    // Both are found out while files may be read.
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let confinement = confine::Confinement::prepare();
    let own = std::process::id();
    // SAFETY: the child goes on with Rust code. Locks that another thread holds at this moment would stay locked in it: the C
    // library's are handled by itself, and ours are not held by threads that the callers of `enter` have (one that waits for signals).
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child > 0 {
        WORKER.store(child, Ordering::Release);
        drop((replies, text_out, errors_out, frames_out));
        let ended = Supervisor {
            worker: child,
            to_worker: File::from(to_worker),
            limit,
            service,
            end: None,
            heard: Instant::now(),
            used: Duration::ZERO,
            waited: false,
            results: Vec::new(),
            told: (shown == Text::Kept).then(String::new),
        }
        .supervise([frames, text, errors]);
        return Ok(Divided::Supervisor(ended));
    }
    let parts = [&replies, &text_out, &errors_out, &frames_out].map(|end| end.as_raw_fd());
    let entered = become_worker(parts, own).and_then(|()| confinement.enter());
    IS_WORKER.store(true, Ordering::Relaxed);
    // The descriptors have been closed, and their numbers are others' now.
    [replies, to_worker, text, text_out, errors, errors_out, frames, frames_out]
        .into_iter()
        .for_each(std::mem::forget);
    if let Err(error) = entered {
        let _ = writeln!(
            io::stderr(),
            "error: failed to confine the C of a tree: {error}\n  help: SCHEDTWIN_CONFINE=off runs it with all that you may do"
        );
        finish(BAD_INPUT);
    }
    // SAFETY: this thread is the only one of the process.
    unsafe { std::env::set_var("RAYON_NUM_THREADS", threads.to_string()) };
    Ok(Divided::Worker)
}

/// Leaves the child of a fork with its four pipes, an empty environment, a session of its own, and an end with its parent.
fn become_worker(ends: [i32; 4], parent: u32) -> io::Result<()> {
    let check = |result: i32| match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    };
    program::end_with(parent)?;
    unmap_shared()?;
    // SAFETY: these calls change this process alone; every pointer leads to something whole.
    unsafe {
        check(libc::setsid())?;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        const BEHIND_ALL: i32 = 16;
        let mut held = [0; 4];
        for (held, end) in held.iter_mut().zip(ends) {
            *held = check(libc::fcntl(end, libc::F_DUPFD, BEHIND_ALL))?;
        }
        for (number, held) in held.into_iter().enumerate() {
            check(libc::dup2(held, number as i32))?;
        }
        close_from(FRAMES + 1);
        wipe_environment();
    }
    Ok(())
}

/// Gives up memory that is shared with other processes or with files: a program of the library may have some.
fn unmap_shared() -> io::Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let shared = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        (rest.as_bytes().get(3) == Some(&b's')).then_some((number(from)?, number(to)?))
    });
    for (from, to) in shared.collect::<Vec<_>>() {
        // SAFETY: what is shared belongs to the program, and none of it goes on in this process but what was given to it as work.
        if unsafe { libc::munmap(from as *mut libc::c_void, to - from) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Descriptors from `first` on are closed when a program is executed. For the time between fork and exec: it takes no memory.
pub(crate) fn leave_at_exec(first: i32) -> io::Result<()> {
    // SAFETY: the calls change flags of descriptors of this process, which is about to execute a program.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 {
            return Ok(());
        }
        // Before Linux 5.11.
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        for number in first..limit.rlim_cur.min(1 << 20) as i32 {
            libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    Ok(())
}

/// Closes every descriptor from `first` on.
unsafe fn close_from(first: i32) {
    // SAFETY: what is closed is used by nobody: the caller sees to it.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) == 0 {
            return;
        }
        // Before Linux 5.9.
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        for number in first..limit.rlim_cur.min(1 << 20) as i32 {
            libc::close(number);
        }
    }
}

unsafe extern "C" {
    static mut environ: *mut *mut libc::c_char;
}

/// Overwrites the environment's texts, which lie in memory wherever the C could look, and leaves none.
unsafe fn wipe_environment() {
    // SAFETY: the list is that of the C library, ended by a null pointer; no other thread exists that could read it.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            libc::memset((*at).cast(), 0, libc::strlen(*at));
            *at = std::ptr::null_mut();
            at = at.add(1);
        }
    }
}

/// Frames are whole, whichever threads write them; a request waits for its reply under this lock.
static LINE: Mutex<()> = Mutex::new(());

fn write_all(descriptor: i32, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the bytes are there.
        let written = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        match written {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            written => bytes = &bytes[written as usize..],
        }
    }
    Ok(())
}

fn read_exact(descriptor: i32, mut into: &mut [u8]) -> io::Result<()> {
    while !into.is_empty() {
        // SAFETY: so many bytes fit.
        let read = unsafe { libc::read(descriptor, into.as_mut_ptr().cast(), into.len()) };
        match read {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => into = &mut into[read as usize..],
        }
    }
    Ok(())
}

fn frame(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend((bytes.len() as u32).to_le_bytes());
    frame.extend(bytes);
    frame
}

fn send(kind: u8, bytes: &[u8]) -> io::Result<()> {
    let _line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    write_all(FRAMES, &frame(kind, bytes))
}

/// Says that the worker gets on.
pub(crate) fn beat() {
    if is_worker() {
        // Without a supervisor this process is about to end.
        let _ = send(BEAT, &[]);
    }
}

/// Says how far the work is.
pub fn progress(bytes: &[u8]) {
    if is_worker() {
        let _ = send(PROGRESS, bytes);
    }
}

/// Asks the supervisor for something, which its [`Service`] understands.
///
/// # Errors
/// The service's, or that nobody answers.
pub fn request(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let _line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    write_all(FRAMES, &frame(REQUEST, bytes))?;
    let mut head = [0; 5];
    read_exact(REPLIES, &mut head)?;
    let [status, length @ ..] = head;
    let mut reply = vec![0; u32::from_le_bytes(length) as usize];
    read_exact(REPLIES, &mut reply)?;
    if status == 0 {
        return Ok(reply);
    }
    let (code, message) = reply.split_at_checked(4).unwrap_or((&[0; 4], b"no reason"));
    let code = i32::from_le_bytes(code.try_into().expect("4 bytes"));
    let kind = io::Error::from_raw_os_error(code).kind();
    Err(io::Error::new(kind, String::from_utf8_lossy(message).into_owned()))
}

/// Says the worker's end with its exit code, and ends it. Nothing succeeds without it.
pub fn finish(code: u8) -> ! {
    let _ = io::stdout().flush();
    let _ = send(END, &[code]);
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(i32::from(code)) }
}

/// Hands results over and ends the worker, which [`crate::confine::isolated`] has made.
pub(crate) fn hand_over(code: u8, results: &[u8]) -> ! {
    for piece in results.chunks(FRAME_BYTES_MAX) {
        let _ = send(RESULTS, piece);
    }
    finish(code)
}

struct Supervisor<'s> {
    worker: libc::pid_t,
    to_worker: File,
    limit: Duration,
    service: &'s mut dyn Service,
    end: Option<u8>,
    /// When the worker was heard last, and the processor time that it had used then.
    heard: Instant,
    used: Duration,
    waited: bool,
    results: Vec<u8>,
    told: Option<String>,
}

/// Why a worker is ended.
enum Why {
    /// It is the worker's doing; what it did.
    Worker(String),
    /// Text could not be written.
    Text(io::Error),
    /// The caller wants no results any more.
    Cancelled,
}

/// Bytes on their way to the terminal, line by line.
struct Relay {
    from: Option<File>,
    line: Vec<u8>,
    bytes: u64,
    most: u64,
}

impl Relay {
    fn new(from: OwnedFd, most: u64) -> Relay {
        Relay { from: Some(File::from(from)), line: Vec::new(), bytes: 0, most }
    }

    /// Reads what there is; whole lines as they may be shown.
    fn read(&mut self) -> Result<String, Why> {
        let Some(from) = &mut self.from else { return Ok(String::new()) };
        let mut piece = [0; 64 << 10];
        let read = from.read(&mut piece).unwrap_or(0);
        self.bytes += read as u64;
        if self.bytes > self.most {
            return Err(Why::Worker("printed without end".to_string()));
        }
        self.line.extend(&piece[..read]);
        let whole = match read {
            0 => self.line.len(),
            _ if self.line.len() > LINE_BYTES_MAX => self.line.len(),
            _ => self.line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        };
        if read == 0 {
            self.from = None;
        }
        let lines: Vec<u8> = self.line.drain(..whole).collect();
        Ok(printable::lines(&String::from_utf8_lossy(&lines)).into_owned())
    }
}

impl Supervisor<'_> {
    /// Serves the worker until it has ended; the exit code.
    fn supervise(mut self, [frames, text, errors]: [OwnedFd; 3]) -> Ended {
        let mut text = Relay::new(text, TEXT_BYTES_MAX);
        let mut errors = Relay::new(errors, ERRORS_BYTES_MAX);
        let ended = self.serve(&mut Some(File::from(frames)), &mut text, &mut errors);
        if ended.is_err() || self.end.is_none() {
            self.kill();
        }
        let status = self.wait();
        // What the worker had said by then.
        while let Some(lines) = rest(&ended, &mut text) {
            let _ = self.print(&lines);
        }
        while let Some(lines) = rest(&ended, &mut errors) {
            self.tell(&lines);
        }
        let code = match (ended, self.end) {
            (Ok(()), Some(code)) => match self.service.end(code) {
                Ok(()) => code,
                Err(error) => self.failed(&format!("left no whole results: {error}")),
            },
            (Ok(()), None) => {
                self.failed(&format!("ended before its results were whole: {status}"))
            }
            (Err(Why::Worker(what)), _) => self.failed(&format!("{what}, and was ended")),
            (Err(Why::Text(error)), _) => {
                self.tell(&format!("error: failed to write to stdout: {error}\n"));
                BAD_INPUT
            }
            (Err(Why::Cancelled), _) => BAD_INPUT,
        };
        let told = self.told.take().unwrap_or_default();
        Ended { code, results: std::mem::take(&mut self.results), told }
    }

    /// Prints lines on stdout. A program's own stdout is none of the C.
    fn print(&self, lines: &str) -> io::Result<()> {
        if self.told.is_some() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(lines.as_bytes()).and_then(|()| stdout.flush())
    }

    /// Shows lines on stderr, or keeps them.
    fn tell(&mut self, lines: &str) {
        match &mut self.told {
            Some(told) => told.push_str(lines),
            // Nobody may be reading.
            None => drop(io::stderr().write_all(lines.as_bytes())),
        }
    }

    fn kill(&self) {
        // SAFETY: kill has no preconditions. The number is that of a child that has not been waited for.
        unsafe { libc::kill(self.worker, libc::SIGKILL) };
    }

    fn failed(&mut self, what: &str) -> u8 {
        self.tell(&format!(
            "error: the process that runs the C of a tree {what}\n  \
             help: this is the tree's code, not the twin's; nothing that it has left unfinished was written\n"
        ));
        BAD_INPUT
    }

    fn serve(
        &mut self,
        frames: &mut Option<File>,
        text: &mut Relay,
        errors: &mut Relay,
    ) -> Result<(), Why> {
        let mut pending: Vec<u8> = Vec::new();
        let mut leaves: Option<Instant> = None;
        loop {
            let sources = [frames.as_ref(), text.from.as_ref(), errors.from.as_ref()];
            if sources.iter().all(Option::is_none) {
                return Ok(());
            }
            let ready = wait_for(sources);
            if ready[2] {
                let lines = errors.read()?;
                self.tell(&lines);
            }
            // Before its text, of which nothing is printed once it has spoken otherwise.
            if ready[0] {
                let mut piece = [0; 64 << 10];
                let from = frames.as_mut().expect("it is ready");
                match from.read(&mut piece) {
                    Ok(0) | Err(_) => *frames = None,
                    Ok(read) => pending.extend(&piece[..read]),
                }
                self.frames(&mut pending)?;
            }
            if ready[1] {
                let lines = text.read()?;
                match self.print(&lines) {
                    Ok(()) => {}
                    // The worker learns of it as it would from the pipe itself.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => text.from = None,
                    Err(error) => return Err(Why::Text(error)),
                }
            }
            if self.service.is_cancelled() {
                return Err(Why::Cancelled);
            }
            if self.end.is_some() {
                let deadline = *leaves.get_or_insert(Instant::now() + LEAVES_WITHIN);
                if Instant::now() > deadline {
                    return Err(Why::Worker("did not end".to_string()));
                }
            } else if frames.is_none() {
                // Nothing can succeed any more.
                return Ok(());
            } else {
                self.limits()?;
            }
        }
    }

    /// Handles the frames that are whole.
    fn frames(&mut self, pending: &mut Vec<u8>) -> Result<(), Why> {
        loop {
            let Some((head, rest)) = pending.split_at_checked(5) else { return Ok(()) };
            let (kind, length) = (head[0], &head[1..]);
            let length = u32::from_le_bytes(length.try_into().expect("4 bytes")) as usize;
            if length > FRAME_BYTES_MAX
                || !matches!(kind, BEAT | PROGRESS | REQUEST | RESULTS | END)
            {
                return Err(Why::Worker("spoke otherwise than it was written to".to_string()));
            }
            let Some(bytes) = rest.get(..length) else { return Ok(()) };
            let bytes = bytes.to_vec();
            pending.drain(..5 + length);
            // Whatever comes behind the end is not the worker's own.
            if self.end.is_some() {
                continue;
            }
            // Progress is drawn by a thread of its own, whatever the C does.
            if kind != PROGRESS {
                self.heard = Instant::now();
                self.used = self.processor_time();
            }
            match kind {
                REQUEST => {
                    let reply = match self.service.request(&bytes) {
                        Ok(reply) => frame(0, &reply),
                        Err(error) => {
                            let mut told = error.raw_os_error().unwrap_or(0).to_le_bytes().to_vec();
                            told.extend(error.to_string().bytes());
                            frame(1, &told)
                        }
                    };
                    self.reply(&reply)?;
                }
                PROGRESS => self.service.progress(&bytes),
                RESULTS if self.results.len() + bytes.len() > RESULTS_BYTES_MAX => {
                    return Err(Why::Worker("had results without end".to_string()));
                }
                RESULTS => self.results.extend(bytes),
                END => self.end = Some(bytes.first().copied().unwrap_or(BAD_INPUT)),
                _ => {}
            }
        }
    }

    /// Writes a reply, which a worker that asked is about to read.
    fn reply(&mut self, mut bytes: &[u8]) -> Result<(), Why> {
        let deadline = Instant::now() + LEAVES_WITHIN;
        while !bytes.is_empty() {
            match self.to_worker.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() > deadline {
                        return Err(Why::Worker("asked and took no reply".to_string()));
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                // Its end is seen elsewhere.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Whether the worker still gets on.
    fn limits(&self) -> Result<(), Why> {
        let silent = self.heard.elapsed();
        let used = self.processor_time().saturating_sub(self.used);
        // By both: many threads use much time while a busy machine lets the one that speaks wait.
        if silent > self.limit + GRACE && used > self.limit {
            let what = format!("has computed for {} s without getting on", used.as_secs());
            return Err(Why::Worker(what));
        }
        if silent > STILL_MAX.max(self.limit) {
            return Err(Why::Worker(format!("has stood still for {} s", silent.as_secs())));
        }
        Ok(())
    }

    /// The processor time that the worker has used.
    fn processor_time(&self) -> Duration {
        let mut clock: libc::clockid_t = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both pointers lead to something whole; the child has not been waited for.
        let failed = unsafe {
            libc::clock_getcpuclockid(self.worker, &mut clock) != 0
                || libc::clock_gettime(clock, &mut time) != 0
        };
        if failed { self.used } else { Duration::new(time.tv_sec as u64, time.tv_nsec as u32) }
    }

    /// Waits for the worker's end; how it ended, in words.
    fn wait(&mut self) -> String {
        let mut status = 0;
        // SAFETY: the child is ours, and the number fits.
        while !self.waited && unsafe { libc::waitpid(self.worker, &mut status, 0) } < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break;
            }
        }
        self.waited = true;
        let _ = WORKER.compare_exchange(self.worker, 0, Ordering::AcqRel, Ordering::Relaxed);
        match libc::WIFSIGNALED(status) {
            true => format!("signal {}", libc::WTERMSIG(status)),
            false => format!("it exited with code {}", libc::WEXITSTATUS(status)),
        }
    }
}

impl Drop for Supervisor<'_> {
    fn drop(&mut self) {
        if !self.waited {
            self.kill();
            self.wait();
        }
    }
}

/// More of what an ended worker had said; `None`: that is all.
fn rest(ended: &Result<(), Why>, relay: &mut Relay) -> Option<String> {
    if relay.from.is_none() || ended.is_err() { None } else { relay.read().ok() }
}

/// Waits until something can be read, at most a fifth of a second.
fn wait_for(sources: [Option<&File>; 3]) -> [bool; 3] {
    const LOOK_EVERY_MS: i32 = 200;
    let mut polled = sources.map(|source| libc::pollfd {
        // A negative one is passed over.
        fd: source.map_or(-1, AsRawFd::as_raw_fd),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: the list is whole.
    let count = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as _, LOOK_EVERY_MS) };
    polled.map(|one| count > 0 && one.fd >= 0 && one.revents != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that a program shares is not the worker's.
    #[test]
    fn shared_memory_is_given_up() {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping that nobody else knows.
        let shared = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
        assert_ne!(shared, libc::MAP_FAILED);
        // SAFETY: the child makes system calls, reads one file, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let given_up = unmap_shared().is_ok();
            let mut page = 0u8;
            // SAFETY: the call looks whether the page is there.
            let is_there = unsafe { libc::mincore(shared, 1, (&raw mut page).cast()) } == 0;
            // SAFETY: _exit has no preconditions.
            unsafe { libc::_exit(i32::from(!given_up || is_there)) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the number fits.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
        // SAFETY: the mapping was just made, and this process still has it.
        unsafe {
            shared.cast::<u8>().write(1);
            libc::munmap(shared, 4096);
        }
    }
}
