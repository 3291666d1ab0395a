// SPDX-License-Identifier: GPL-2.0-or-later
//! What a user's C may reach: nothing but what it computes with.
//!
//! **Two places.** The compiler runs as a child that may read the system's programs and libraries, write its own folder, and use so much
//! time and memory ([`compiler`]). A process that has called [`defer`] asks the C nothing until it has confined itself ([`enter`]): then it
//! may read the system and the cache of compiled objects, write beneath the folders of its own outputs, and open no socket.
//!
//! **By whom.** Landlock keeps from files, from TCP, and from signals to other processes; seccomp from the system calls that Landlock
//! does not know ([`REFUSED`]). Both work without rights, last until the process ends, and hold for its children. A kernel without Landlock
//! (before 5.13, or switched off) confines by seccomp alone; [`enter`] says so.
//!
//! **How much.** No more memory than the machine has, counted by addresses. How long is the user's to say: Ctrl-C ends the C as well.
//!
//! **What is left.** The C shares the process's memory: it can spoil results of this run. It can write beneath the folders of the outputs, so
//! these should hold nothing else. Before anything is confined an object is only loaded, and one that would run code then is refused
//! ([`runs_when_loaded`]).

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::{Confined, Fault, elf};

/// Programs, libraries and what the loader reads; folders that are not there are left out.
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

/// What a process reads about itself and the machine, how many CPUs there are for example.
const MACHINE: [&str; 4] =
    ["/proc/self", "/proc/cpuinfo", "/sys/devices/system/cpu", "/sys/fs/cgroup"];

/// Both may be read and written.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/tty"];

/// The rules of Landlock that are asked for; a kernel that knows fewer applies those.
const RULES: ABI = ABI::V6;

/// Most seconds of CPU time, bytes of memory and bytes of a file for the compiler.
const COMPILER_LIMITS: [(i32, u64); 3] = [
    (libc::RLIMIT_CPU as i32, 300),
    (libc::RLIMIT_AS as i32, 8 << 30),
    (libc::RLIMIT_FSIZE as i32, 256 << 20),
];

/// System calls that are refused: sockets, others' memory, the kernel's insides, and changes to files that Landlock lets pass.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utimensat,
];

/// The older forms of them.
#[cfg(target_arch = "x86_64")]
const REFUSED_OLD: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_OLD: &[libc::c_long] = &[];

/// Requests of `ioctl` that type into the terminal, as if the user had.
const TYPES_INTO_TERMINAL: [libc::Ioctl; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// A first question to a governor, which waits until the process is confined.
type Trial = Box<dyn FnOnce() -> Result<(), Fault> + Send>;

/// `None`: nothing waits, the C is asked at once.
static WAITING: Mutex<Option<Vec<Trial>>> = Mutex::new(None);
static CONFINED: AtomicBool = AtomicBool::new(false);
/// There is C to be asked.
static LOADED: AtomicBool = AtomicBool::new(false);

/// From now on governors are only compiled; they are asked after [`enter`]. For a process that belongs to one command.
pub fn defer() {
    if !is_off() {
        waiting().get_or_insert_default();
    }
}

/// Folders of trees: a command may load another kernel when it is confined already.
static TREES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Notes a folder that is read for a tree.
pub(crate) fn reads(folder: &Path) {
    TREES.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_path_buf());
}

/// Whether files outside of the system's can no longer be read, the user's settings of git for example.
pub(crate) fn is_confined() -> bool {
    CONFINED.load(Ordering::Relaxed)
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

/// A last look before the C is asked: whoever forgot [`enter`] gets the confinement of a process without outputs.
pub(crate) fn before_asking() {
    if waiting().is_some() && !is_confined() {
        // What could not be confined was to be told by who forgot it.
        let _ = confined(&[]);
    }
}

/// Confines the process, if it has compiled C: it may write beneath `folders` from now on. Then asks the governors that waited. Threads that
/// run already are confined by seccomp alone, so it is called before there are any.
///
/// # Errors
/// If the kernel refuses, or a governor does not start; all of them.
pub fn enter(folders: &[PathBuf]) -> Result<Confined, Vec<Fault>> {
    if waiting().is_none() || !LOADED.load(Ordering::Relaxed) {
        return Ok(Confined::NoNeed);
    }
    let confined = confined(folders).map_err(|error| {
        vec![Fault::new(
            format!("failed to confine the C of a tree: {error}"),
            "SCHEDTWIN_CONFINE=off runs it with all that you may do",
        )]
    })?;
    let trials = waiting().as_mut().map(std::mem::take).unwrap_or_default();
    let faults: Vec<Fault> = trials.into_iter().filter_map(|trial| trial().err()).collect();
    if faults.is_empty() { Ok(confined) } else { Err(faults) }
}

fn confined(folders: &[PathBuf]) -> io::Result<Confined> {
    let cache = crate::compile::cache_folder().map_err(|fault| io::Error::other(fault.message))?;
    let trees = TREES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let readable = SYSTEM.iter().chain(&MACHINE).map(PathBuf::from).chain([cache]).chain(trees);
    let rules = rules(readable, folders.iter().cloned()).map_err(io::Error::other)?;
    let status = rules.restrict_self().map_err(io::Error::other)?;
    seccompiler::apply_filter_all_threads(&filter()?).map_err(io::Error::other)?;
    if let Some(memory) = memory() {
        limit(libc::RLIMIT_AS as i32, memory);
    }
    CONFINED.store(true, Ordering::Relaxed);
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => Confined::SystemCalls,
        _ => Confined::Full,
    })
}

/// The environment variable that switches all of it off, for compilers that need more than they get.
const SWITCH: &str = "SCHEDTWIN_CONFINE";

fn is_off() -> bool {
    std::env::var_os(SWITCH).is_some_and(|value| value == "off")
}

/// Confines the compiler, which works in `folder`.
pub(crate) fn compiler(command: &mut Command, folder: &Path) -> io::Result<()> {
    if is_off() {
        return Ok(());
    }
    let program = Path::new(command.get_program());
    // A compiler that does not lie with the system's: its folder and that beside it, `bin` and `lib`.
    let own = program.parent().and_then(Path::parent).filter(|_| program.is_absolute());
    let readable = SYSTEM.iter().map(PathBuf::from).chain(own.map(PathBuf::from));
    let rules = rules(readable, [folder.to_path_buf()].into_iter()).map_err(io::Error::other)?;
    let filter = filter()?;
    command.env("TMPDIR", folder);
    let mut rules = Some(rules);
    let confine = move || {
        COMPILER_LIMITS.iter().for_each(|(resource, most)| limit(*resource, *most));
        if let Some(rules) = rules.take() {
            rules.restrict_self().map_err(io::Error::other)?;
        }
        seccompiler::apply_filter(&filter).map_err(io::Error::other)
    };
    // SAFETY: between fork and exec the closure makes system calls with what was made before: no lock, and no memory but for an error.
    unsafe { command.pre_exec(confine) };
    Ok(())
}

/// Lowers a limit of this process; one that is lower already stays.
fn limit(resource: i32, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the structure is whole, and the call changes this process alone.
    let _ = unsafe { libc::setrlimit(resource as _, &limit) };
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
    let device = AccessFs::from_file(RULES)
        & (AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev);
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(RULES)))?
        .add_rules(path_beneath_rules(writable, all))?
        .add_rules(path_beneath_rules(DEVICES, device))
}

fn filter() -> io::Result<BpfProgram> {
    let types = |request: &libc::Ioctl| {
        let is_it = SeccompCmpOp::Eq;
        let asked =
            SeccompCondition::new(1, SeccompCmpArgLen::Dword, is_it, *request as u32 as u64)?;
        SeccompRule::new(vec![asked])
    };
    let typing: Result<Vec<SeccompRule>, _> = TYPES_INTO_TERMINAL.iter().map(types).collect();
    let mut refused: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(REFUSED_OLD).map(|call| (*call, Vec::new())).collect();
    refused.insert(libc::SYS_ioctl, typing.map_err(io::Error::other)?);
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    SeccompFilter::new(refused, SeccompAction::Allow, refuse, architecture)
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
