// SPDX-License-Identifier: GPL-2.0-or-later
//! Other programs, the compiler and git: with few variables, a limit of time, and one of what they say.
//!
//! A program gets no variable but those that it needs. A copy of the whole environment would stay in freed memory, which a worker
//! ([`crate::worker`]) inherits. It leads a group of processes, all of which end with it, and it ends with this process.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// The group of a program that runs, or 0.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// A program without input, and with these variables of ours, if they are set.
pub(crate) fn new(name: &str, variables: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.env_clear().env("LC_ALL", "C").stdin(Stdio::null()).process_group(0);
    for variable in variables {
        command.envs(std::env::var_os(variable).map(|value| (variable, value)));
    }
    #[cfg(target_os = "linux")]
    {
        let parent = std::process::id();
        // SAFETY: between fork and exec the closure makes two system calls.
        unsafe { command.pre_exec(move || end_with(parent)) };
    }
    command
}

/// From now on this process, a child of `parent`, is killed when that ends.
#[cfg(target_os = "linux")]
pub(crate) fn end_with(parent: u32) -> io::Result<()> {
    // SAFETY: the calls have no preconditions.
    let (failed, above) = unsafe {
        (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) != 0, libc::getppid())
    };
    match failed {
        true => Err(io::Error::last_os_error()),
        // It has ended before.
        false if above as u32 != parent => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        false => Ok(()),
    }
}

/// Ends the program that runs, if there is one: for a process that is about to exit.
pub(crate) fn kill() {
    let group = RUNNING.load(Ordering::Acquire);
    if group > 0 {
        end_group(group);
    }
}

fn end_group(group: libc::pid_t) {
    // SAFETY: kill has no preconditions. The group is that of a child that has not been waited for.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// A program that runs; dropped, it ends with its group.
struct Running(Child);

impl Running {
    fn id(&self) -> libc::pid_t {
        self.0.id() as libc::pid_t
    }

    /// Whether it has ended; it is not waited for yet, so its number is nobody else's.
    fn has_ended(&self) -> bool {
        // SAFETY: the structure is whole, and zeros are a value of it.
        let mut about: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: as above; the child is ours.
        let failed = unsafe { libc::waitid(libc::P_PID, self.0.id(), &mut about, how) } != 0;
        // SAFETY: the field is one of a child's end, and 0 if there is none.
        failed || unsafe { about.si_pid() } != 0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end_group(self.id());
        let _ = self.0.wait();
        let _ = RUNNING.compare_exchange(self.id(), 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Runs a program to its end; what it says on pipes, each at most so many bytes.
///
/// # Errors
/// If it does not start, takes longer, or says more.
pub(crate) fn run(command: &mut Command, within: Duration, most: usize) -> io::Result<Output> {
    const LOOK_EVERY_MS: libc::c_int = 5;
    let mut running = Running(command.spawn()?);
    RUNNING.store(running.id(), Ordering::Release);
    let out = running.0.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
    let err = running.0.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
    let mut pipes = [out, err];
    let mut said: [Vec<u8>; 2] = Default::default();
    let began = Instant::now();
    loop {
        let mut polled = [0, 1].map(|at: usize| libc::pollfd {
            // A negative one is passed over.
            fd: pipes[at].as_ref().map_or(-1, AsRawFd::as_raw_fd),
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the list is whole.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as _, LOOK_EVERY_MS) };
        for ((pipe, said), polled) in pipes.iter_mut().zip(&mut said).zip(polled) {
            let Some(from) = pipe.as_mut().filter(|_| polled.revents != 0) else { continue };
            let mut piece = [0; 64 << 10];
            match from.read(&mut piece).unwrap_or(0) {
                0 => *pipe = None,
                read => said.extend(&piece[..read]),
            }
            if said.len() > most {
                return Err(io::Error::other("it says too much"));
            }
        }
        if running.has_ended() {
            if pipes.iter().all(Option::is_none) {
                break;
            }
            // What it has started holds the pipes.
            end_group(running.id());
        }
        if began.elapsed() > within {
            let message = format!("it takes longer than {} s", within.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
    }
    end_group(running.id());
    let status = running.0.wait()?;
    let _ = RUNNING.compare_exchange(running.id(), 0, Ordering::AcqRel, Ordering::Relaxed);
    // It has been waited for: the number may be another's now.
    std::mem::forget(running);
    let [stdout, stderr] = said;
    Ok(Output { status, stdout, stderr })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> Command {
        let mut command = new("sh", &["PATH"]);
        command.args(["-c", text]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[test]
    fn programs_have_limits() {
        let second = Duration::from_secs(1);
        let output = run(&mut shell("echo a; echo b >&2; exit 3"), 60 * second, 100).expect("runs");
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"a\n"[..], &b"b\n"[..]));
        assert_eq!(output.status.code(), Some(3));
        let error = run(&mut shell("sleep 100"), Duration::from_millis(50), 100).expect_err("slow");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let error = run(&mut shell("yes"), 60 * second, 1000).expect_err("loud");
        assert!(error.to_string().contains("too much"), "{error}");
        // What holds its pipes when it has ended is ended.
        let began = Instant::now();
        run(&mut shell("sleep 100 &"), 60 * second, 100).expect("it runs");
        assert!(began.elapsed() < 30 * second);
    }

    #[test]
    fn programs_get_few_variables() {
        let output = run(&mut shell("env"), Duration::from_secs(60), 1 << 16).expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = text.lines().filter_map(|line| line.split('=').next());
        let others: Vec<&str> =
            names.filter(|name| !["LC_ALL", "PATH", "PWD", "SHLVL", "_"].contains(name)).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}
