// SPDX-License-Identifier: GPL-2.0-or-later
//! What a user's C may reach: nothing but what it computes with.
//!
//! **Two places.** The *compiler* runs without capabilities as a child that may read the system's programs and libraries, write its own folder, and use so much
//! time and memory (`compiler`). The *C* is loaded in a worker alone ([`crate::worker`]), which has confined itself before
//! (`Confinement`): it opens no file at all, starts no process, sends no signal, and has four pipes.
//!
//! **By whom.** seccomp admits the system calls that are on a list (`ALLOWED`) and refuses all others, also those that are newer than
//! this program. No call of the worker's list names a file or another process, so it holds on kernels without Landlock (before 5.13, or
//! switched off) too; with it, a second wall keeps from files, from TCP, and from signals. Capabilities are dropped. All of it works without
//! rights, lasts until the process ends, and holds for its threads.
//!
//! **How much.** The worker has as much memory as the machine, counted by addresses, writes no file and has no core dump. Time: see
//! `watch.rs` and the limits of the supervisor.
//!
//! **What is left.** The C shares the worker's memory: it can spoil the results of its own run, write anything into the outputs that the
//! command named, and compute until it is interrupted if it forges that it gets on.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::worker::{self, Divided, Service, Side, Text};
use crate::{Fault, elf, watch};

/// Programs, libraries and what the loader reads, for the compiler; folders that are not there are left out.
const SYSTEM: [&str; 10] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/opt",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf.d",
];

/// May be read and written.
const DEVICES: [&str; 1] = ["/dev/null"];

/// The rules of Landlock that are asked for; a kernel that knows fewer applies those.
const RULES: ABI = ABI::V6;

/// Most seconds of CPU time, bytes of memory and bytes of a file for the compiler.
const COMPILER_LIMITS: [(i32, u64); 4] = [
    (libc::RLIMIT_CPU as i32, 300),
    (libc::RLIMIT_AS as i32, 8 << 30),
    (libc::RLIMIT_FSIZE as i32, 256 << 20),
    (libc::RLIMIT_CORE as i32, 0),
];

/// Limits of the worker beside its memory: it makes no file, and has the descriptors that it has.
const WORKER_LIMITS: [(i32, u64); 3] = [
    (libc::RLIMIT_FSIZE as i32, 0),
    (libc::RLIMIT_CORE as i32, 0),
    (libc::RLIMIT_NOFILE as i32, 4),
];

/// The worker's system calls: memory, threads of its own, time, its pipes. Those with conditions are in [`conditions`].
pub(crate) const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sched_yield,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_getrandom,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The compiler's system calls: besides those above, programs and files, which Landlock keeps to its folder and the system's.
const COMPILER: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_mkdirat,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_umask,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_set_tid_address,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_getcpu,
    libc::SYS_membarrier,
];

/// The older forms of them.
#[cfg(target_arch = "x86_64")]
const COMPILER_OLD: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_vfork,
    libc::SYS_fork,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_arch_prctl,
    libc::SYS_getpgrp,
    libc::SYS_time,
    libc::SYS_getrlimit,
];
#[cfg(not(target_arch = "x86_64"))]
const COMPILER_OLD: &[libc::c_long] = &[];

/// A first question to a governor, which waits until the process is confined.
type Trial = Box<dyn FnOnce() -> Result<(), Fault> + Send>;

/// `None`: nothing waits, the C is asked at once.
static WAITING: Mutex<Option<Vec<Trial>>> = Mutex::new(None);
/// There is C to be asked.
static LOADED: AtomicBool = AtomicBool::new(false);

/// From now on governors are only compiled; they are loaded in a worker, after [`enter`]. For a process that belongs to one command.
pub fn defer() {
    if !is_off() {
        waiting().get_or_insert_default();
    }
}

/// Whether this is a worker, where nothing can be read or started any more.
pub(crate) fn is_confined() -> bool {
    worker::is_worker()
}

fn waiting() -> std::sync::MutexGuard<'static, Option<Vec<Trial>>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that there is C to be asked.
pub(crate) fn compiled() {
    LOADED.store(true, Ordering::Relaxed);
}

/// Asks a governor for the first time: now, or when the process is confined.
pub(crate) fn trial(ask: impl FnOnce() -> Result<(), Fault> + Send + 'static) -> Result<(), Fault> {
    // The lock is not held while the C is asked, which looks here, too.
    if let Some(trials) = &mut *waiting()
        && !is_confined()
    {
        trials.push(Box::new(ask));
        return Ok(());
    }
    ask()
}

/// A last look before an object is loaded: a command that forgot [`enter`] is a bug, and loads nothing.
///
/// # Panics
/// If C is to be loaded outside of a worker.
pub(crate) fn before_asking() {
    assert!(
        waiting().is_none() || is_confined(),
        "C of a tree is loaded in a confined process alone"
    );
}

/// Divides the process, if it has compiled C (`worker::divide`): the worker confines itself and asks the governors that waited, and the
/// supervisor serves it until its end. Called when every input has been read, and before there are threads that hold anything.
///
/// # Errors
/// If the kernel refuses, or a governor does not start; all of them.
pub fn enter(service: &mut dyn Service) -> Result<Side, Vec<Fault>> {
    if waiting().is_none() || !LOADED.load(Ordering::Relaxed) || is_confined() {
        return Ok(Side::Whole);
    }
    let trials = waiting().as_mut().map(std::mem::take).unwrap_or_default();
    match worker::divide(service, watch::limit(), Text::Shown)
        .map_err(|error| vec![no_process(&error)])?
    {
        Divided::Supervisor(ended) => Ok(Side::Supervisor(ended.code)),
        Divided::Worker => {
            watch::start();
            let faults: Vec<Fault> = trials.into_iter().filter_map(|trial| trial().err()).collect();
            if faults.is_empty() { Ok(Side::Worker) } else { Err(faults) }
        }
    }
}

fn no_process(error: &io::Error) -> Fault {
    Fault::new(
        format!("failed to make a process for the C of a tree: {error}"),
        "SCHEDTWIN_CONFINE=off runs it with all that you may do",
    )
}

/// Performs `work` in a worker, and returns its results as bytes: for a program that goes on. As [`enter`] otherwise: what `work` needs has
/// been read before. The worker has this thread alone, so it must not wait for others of the program.
///
/// # Errors
/// What went wrong, in words: in `work`, in a governor that does not start, in the C.
pub fn isolated(
    service: &mut dyn Service,
    work: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let trials = waiting().as_mut().map(std::mem::take).unwrap_or_default();
    match worker::divide(service, watch::limit(), Text::Kept) {
        Err(error) => Err(no_process(&error).message),
        Ok(Divided::Supervisor(ended)) if ended.code == 0 => Ok(ended.results),
        Ok(Divided::Supervisor(ended)) => {
            let own = String::from_utf8_lossy(&ended.results);
            let told = format!("{}{own}", ended.told);
            let told = told.trim_end();
            let told = told.strip_prefix("error: ").unwrap_or(told);
            Err(schedtwin_types::printable::lines(told).into_owned())
        }
        Ok(Divided::Worker) => {
            let work = std::panic::AssertUnwindSafe(|| {
                watch::start();
                let faults: Vec<String> = trials
                    .into_iter()
                    .filter_map(|trial| trial().err())
                    .map(|f| f.message)
                    .collect();
                if faults.is_empty() { work() } else { Err(faults.join("\n")) }
            });
            match std::panic::catch_unwind(work) {
                Ok(Ok(results)) => worker::hand_over(0, &results),
                Ok(Err(message)) => worker::hand_over(FAILED, message.as_bytes()),
                Err(_) => {
                    worker::hand_over(FAILED, b"it panicked: this is a bug, please report it")
                }
            }
        }
    }
}

/// The exit code of a worker whose work failed.
const FAILED: u8 = 1;

/// What confines a worker, made while memory and files are there as usual.
pub(crate) struct Confinement {
    memory: Option<u64>,
}

impl Confinement {
    pub(crate) fn prepare() -> Confinement {
        Confinement { memory: memory() }
    }

    /// Confines this process, which has one thread, for good.
    pub(crate) fn enter(self) -> io::Result<()> {
        // Landlock asks for a descriptor of its own; the limits come behind it.
        let nothing = std::iter::empty::<PathBuf>;
        let rules = rules(nothing(), nothing()).map_err(io::Error::other)?;
        rules.restrict_self().map_err(io::Error::other)?;
        drop_capabilities()?;
        if let Some(memory) = self.memory {
            limit(libc::RLIMIT_AS as i32, memory);
        }
        WORKER_LIMITS.iter().for_each(|(resource, most)| limit(*resource, *most));
        let filters = [filter(&[ALLOWED], true)?, no_clone3()?];
        // A second filter has to be admitted by the first.
        let [strict, absent] = &filters;
        seccompiler::apply_filter(absent).map_err(io::Error::other)?;
        seccompiler::apply_filter(strict).map_err(io::Error::other)
    }
}

/// Gives up what root has beyond others; without rights it changes nothing.
fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [0u32; 6];
    // SAFETY: header and sets are whole, in the form of that version.
    match unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The environment variable that switches all of it off, for compilers that need more than they get.
const SWITCH: &str = "SCHEDTWIN_CONFINE";

/// What this kernel lacks for the confinement of what has been compiled here, in words.
pub fn lacks() -> Option<&'static str> {
    const VERSION: u32 = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the call returns a number, and reads nothing.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
    let compiled = is_on() && LOADED.load(Ordering::Relaxed);
    (compiled && version < 1).then_some(
        "this kernel has no Landlock: the compiler of a tree's C could read and write your files",
    )
}

/// Whether C is loaded in workers alone.
pub fn is_on() -> bool {
    !is_off()
}

pub(crate) fn is_off() -> bool {
    std::env::var_os(SWITCH).is_some_and(|value| value == "off")
}

/// Confines the compiler, which works in `folder`.
pub(crate) fn compiler(command: &mut Command, folder: &Path) -> io::Result<()> {
    if is_off() {
        return Ok(());
    }
    let own = own_folders(Path::new(command.get_program()));
    let readable = SYSTEM.iter().map(PathBuf::from).chain(own);
    let rules = rules(readable, [folder.to_path_buf()].into_iter()).map_err(io::Error::other)?;
    let filters = [filter(&[ALLOWED, COMPILER, COMPILER_OLD], false)?, no_clone3()?];
    // It works there. The way to it may need rights that it has no more.
    command.env("TMPDIR", ".");
    let mut rules = Some(rules);
    let confine = move || {
        worker::leave_at_exec(3)?;
        drop_capabilities()?;
        COMPILER_LIMITS.iter().for_each(|(resource, most)| limit(*resource, *most));
        if let Some(rules) = rules.take() {
            rules.restrict_self().map_err(io::Error::other)?;
        }
        let [strict, absent] = &filters;
        seccompiler::apply_filter(absent).map_err(io::Error::other)?;
        seccompiler::apply_filter(strict).map_err(io::Error::other)
    };
    // SAFETY: between fork and exec the closure makes system calls with what was made before: no lock, and no memory but for an error.
    unsafe { command.pre_exec(confine) };
    Ok(())
}

/// What a compiler may read that does not lie with the system's: itself, and, if it lies in a `bin`, the folders of programs, libraries
/// and headers beside that. Not those of the home folder.
fn own_folders(program: &Path) -> Vec<PathBuf> {
    const BESIDE: [&str; 5] = ["bin", "lib", "lib64", "libexec", "include"];
    let program = Some(program).filter(|program| program.is_absolute());
    let Some(program) = program.and_then(|program| program.canonicalize().ok()) else {
        return Vec::new();
    };
    let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    let bin = program.parent().filter(|folder| folder.ends_with("bin"));
    let above = bin.and_then(Path::parent);
    let above = above.filter(|above| above.parent().is_some() && Some(*above) != home.as_deref());
    let beside = above.into_iter().flat_map(|above| BESIDE.map(|name| above.join(name)));
    [program.clone()].into_iter().chain(beside).collect()
}

/// Lowers a limit of this process; one that is lower already stays.
fn limit(resource: i32, most: u64) {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is whole, and the calls concern this process alone.
    unsafe {
        if libc::getrlimit(resource as _, &mut before) == 0 {
            let limit = libc::rlimit {
                rlim_cur: before.rlim_cur.min(most),
                rlim_max: before.rlim_max.min(most),
            };
            let _ = libc::setrlimit(resource as _, &limit);
        }
    }
}

/// Bytes of memory that the machine has, if it tells.
fn memory() -> Option<u64> {
    // SAFETY: the call reads numbers.
    let of = |name| u64::try_from(unsafe { libc::sysconf(name) }).ok();
    of(libc::_SC_PHYS_PAGES)?.checked_mul(of(libc::_SC_PAGE_SIZE)?)
}

fn rules(
    readable: impl Iterator<Item = PathBuf>,
    writable: impl Iterator<Item = PathBuf>,
) -> Result<RulesetCreated, RulesetError> {
    let all = AccessFs::from_all(RULES);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?;
    let (readable, writable): (Vec<PathBuf>, Vec<PathBuf>) =
        (readable.collect(), writable.collect());
    if readable.is_empty() {
        return Ok(rules);
    }
    let device = AccessFs::from_file(RULES)
        & (AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev);
    rules
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(RULES)))?
        .add_rules(path_beneath_rules(writable, all))?
        .add_rules(path_beneath_rules(DEVICES, device))
}

/// A rule: these bits of an argument have this value.
fn argument(number: u8, mask: u64, value: u64) -> io::Result<SeccompRule> {
    let is_it = SeccompCmpOp::MaskedEq(mask);
    let condition = SeccompCondition::new(number, SeccompCmpArgLen::Qword, is_it, value);
    SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
}

/// System calls that are allowed with certain arguments.
pub(crate) fn conditions(threads_alone: bool) -> io::Result<Vec<(libc::c_long, Vec<SeccompRule>)>> {
    const NAMESPACES: u64 = (libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP) as u64;
    const THREAD: u64 = (libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD) as u64;
    let mut all = vec![
        // A name of the thread, for debuggers; of memory, which the C library gives.
        (
            libc::SYS_prctl,
            vec![
                argument(0, u32::MAX.into(), libc::PR_SET_NAME as u64)?,
                argument(0, u32::MAX.into(), libc::PR_SET_VMA as u64)?,
            ],
        ),
        // No clock of another process's processor time: those have negative numbers, and so have those of own threads.
        (libc::SYS_clock_gettime, own_clocks()?),
        (libc::SYS_clock_nanosleep, own_clocks()?),
        // Of this process.
        (libc::SYS_sched_getaffinity, vec![argument(0, u32::MAX.into(), 0)?]),
        (
            libc::SYS_prlimit64,
            vec![
                // It reads a limit: there is no new one.
                SeccompRule::new(vec![condition(0, 0)?, condition(2, 0)?])
                    .map_err(io::Error::other)?,
            ],
        ),
    ];
    if threads_alone {
        all.push((libc::SYS_clone, vec![argument(0, NAMESPACES | THREAD, THREAD)?]));
        // The watching thread interrupts one of its own process.
        let own = u64::from(std::process::id());
        all.push((libc::SYS_tgkill, vec![argument(0, u32::MAX.into(), own)?]));
    } else {
        all.push((libc::SYS_clone, vec![argument(0, NAMESPACES, 0)?]));
    }
    Ok(all)
}

/// A clock whose number is positive, or that of a thread, which the kernel gives to its own process alone.
fn own_clocks() -> io::Result<Vec<SeccompRule>> {
    const NEGATIVE: u64 = 1 << 31;
    const OF_A_THREAD: u64 = 1 << 2;
    Ok(vec![argument(0, NEGATIVE, 0)?, argument(0, OF_A_THREAD, OF_A_THREAD)?])
}

fn condition(number: u8, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(number, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, value)
        .map_err(io::Error::other)
}

/// Allows what is on the lists, and refuses all else.
fn filter(lists: &[&[libc::c_long]], threads_alone: bool) -> io::Result<BpfProgram> {
    let mut allowed: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        lists.iter().flat_map(|list| list.iter()).map(|call| (*call, Vec::new())).collect();
    allowed.extend(conditions(threads_alone)?);
    // Answered by the filter below, which is stricter.
    allowed.insert(libc::SYS_clone3, Vec::new());
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    program(allowed, refuse, SeccompAction::Allow)
}

/// `clone3` has its flags in memory, where no filter looks: the C library takes `clone` where there is none.
fn no_clone3() -> io::Result<BpfProgram> {
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    program([(libc::SYS_clone3, Vec::new())].into(), SeccompAction::Allow, absent)
}

fn program(
    rules: std::collections::BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> io::Result<BpfProgram> {
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    SeccompFilter::new(rules, otherwise, matched, architecture)
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)
}

/// Entries of an object's dynamic section that make the loader run code: `DT_INIT`, `DT_FINI`, and their arrays.
const STARTERS: [(u64, &str); 5] = [
    (12, "an _init()"),
    (13, "a _fini()"),
    (25, "a constructor"),
    (26, "a destructor"),
    (32, "a constructor"),
];

/// The type of a symbol whose address a function of the object computes while it is loaded.
const STT_GNU_IFUNC: u8 = 10;

/// What an object would run when it is loaded; `None`: nothing.
pub(crate) fn runs_when_loaded(object: &[u8]) -> Option<&'static str> {
    let section = |name: &str| elf::section(object, name).unwrap_or_default();
    let (entries, _) = section(".dynamic").as_chunks::<16>();
    let tag = |entry: &[u8; 16]| u64::from_le_bytes(entry[..8].try_into().expect("8 bytes"));
    let starter =
        |entry| STARTERS.iter().find(|(known, _)| *known == tag(entry)).map(|(_, name)| *name);
    let resolver = |name: &str| {
        let (symbols, _) = section(name).as_chunks::<24>();
        symbols.iter().any(|symbol| symbol[4] & 15 == STT_GNU_IFUNC)
    };
    let resolves = [".symtab", ".dynsym"].into_iter().any(resolver);
    entries.iter().find_map(starter).or(resolves.then_some("an ifunc resolver"))
}
