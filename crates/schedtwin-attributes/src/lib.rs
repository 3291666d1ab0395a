// SPDX-License-Identifier: GPL-2.0-or-later
//! `sched_getattr()` and `sched_setattr()` of any thread of a running Linux.
//!
//! Neither rustix nor nix has these calls, and glibc has them from 2.41 on only. So this crate makes them itself, in one
//! unsafe block. It is a crate of its own so that the others still forbid unsafe code.
//!
//! [`set_exactly`] reads back what it has set: a kernel may round a value or ignore it without an error, and what is
//! measured then is not what was asked for.

use schedtwin_types::{DlReservation, Policy, SchedAttr};
use std::io;

/// `SCHED_FLAG_UTIL_CLAMP_MIN` and `_MAX` of include/uapi/linux/sched.h.
const UTIL_CLAMP: [u64; 2] = [0x20, 0x40];

/// `SCHED_FLAG_RESET_ON_FORK`, `_RECLAIM` and `_DL_OVERRUN`: a change keeps them.
const KEPT: u64 = 0x07;

/// `struct sched_attr` of include/uapi/linux/sched/types.h, as long as Linux 5.3 made it.
#[repr(C)]
#[derive(Default)]
struct Layout {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

const SIZE: u32 = size_of::<Layout>() as u32;

/// One of the two calls; `last`: the size for `sched_getattr()`, the flags for `sched_setattr()`.
fn call(number: libc::c_long, tid: u32, attr: &mut Layout, last: u32) -> io::Result<()> {
    attr.size = SIZE;
    let word = |number: u32| number as libc::c_long;
    // SAFETY: `attr` is a `repr(C)` struct of integers that this function alone borrows. `sched_setattr()` reads `attr.size`
    // bytes of it, and writes to `size` alone; `sched_getattr()` writes at most the `last` bytes that it is told, which is
    // `SIZE`. Any bytes are valid integers. Neither call keeps the pointer. The fifth word is `flags` of `sched_getattr()`,
    // and `sched_setattr()` has no such argument.
    let result =
        unsafe { libc::syscall(number, word(tid), std::ptr::from_mut(attr), word(last), word(0)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn read(tid: u32) -> io::Result<Layout> {
    let mut attr = Layout::default();
    call(libc::SYS_sched_getattr, tid, &mut attr, SIZE)?;
    Ok(attr)
}

/// Returns the parameters of a thread; 0: of the caller. The default slice is returned like one of its own.
pub fn get(tid: u32) -> io::Result<SchedAttr> {
    let attr = read(tid)?;
    let policy = Policy::of_number(i64::from(attr.policy)).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("policy {} is unknown", attr.policy))
    })?;
    let is_dl = policy == Policy::Deadline;
    let Layout { runtime, deadline, period, .. } = attr;
    Ok(SchedAttr {
        policy,
        nice: attr.nice as i8,
        rt_priority: attr.priority as u8,
        slice: if is_dl { 0 } else { runtime },
        util_min: Some(attr.util_min as u16),
        util_max: Some(attr.util_max as u16),
        dl: if is_dl {
            DlReservation { runtime, deadline, period }
        } else {
            DlReservation::default()
        },
    })
}

/// Gives a thread these parameters and returns those that it has then; 0: the caller. Clamps of `None` stay. An error says
/// the reason of a refusal.
pub fn set(tid: u32, attr: &SchedAttr) -> io::Result<SchedAttr> {
    let clamps = [attr.util_min, attr.util_max];
    let clamp_flags = clamps.iter().zip(UTIL_CLAMP).filter(|(clamp, _)| clamp.is_some());
    // -1 takes a clamp back.
    let [util_min, util_max] = clamps.map(|clamp| match clamp {
        Some(SchedAttr::UTIL_CLAMP_RESET) => u32::MAX,
        clamp => u32::from(clamp.unwrap_or(0)),
    });
    let DlReservation { runtime, deadline, period } = match attr.policy {
        Policy::Deadline => attr.dl,
        _ if has_slice(attr.policy) => {
            DlReservation { runtime: attr.slice, ..DlReservation::default() }
        }
        _ => DlReservation::default(),
    };
    let mut wanted = Layout {
        policy: attr.policy.number(),
        flags: read(tid)?.flags & KEPT | clamp_flags.map(|(_, flag)| flag).sum::<u64>(),
        nice: i32::from(attr.nice),
        priority: u32::from(attr.rt_priority),
        runtime,
        deadline,
        period,
        util_min,
        util_max,
        ..Layout::default()
    };
    call(libc::SYS_sched_setattr, tid, &mut wanted, 0).map_err(|error| explained(error, attr))?;
    get(tid)
}

/// Gives a thread these parameters; one that the kernel made something else of is an error like a refusal.
pub fn set_exactly(tid: u32, attr: &SchedAttr) -> io::Result<()> {
    check(attr, &set(tid, attr)?)
}

/// Says which parameters a thread has otherwise than wanted.
pub fn check(wanted: &SchedAttr, has: &SchedAttr) -> io::Result<()> {
    let differences = differences(wanted, has);
    if differences.is_empty() {
        return Ok(());
    }
    Err(io::Error::other(format!("the kernel did not take it: {}", differences.join(", "))))
}

/// Whether `sched_setattr()` takes nice value and slice under a policy.
fn has_slice(policy: Policy) -> bool {
    matches!(policy, Policy::Normal | Policy::Batch | Policy::Ext)
}

/// The parameters that a thread has otherwise than wanted, a phrase each.
fn differences(wanted: &SchedAttr, has: &SchedAttr) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |name: &str, wanted: i64, has: i64| {
        if wanted != has {
            found.push(format!("{name} is {has}, not {wanted}"));
        }
    };
    compare("policy", wanted.policy.number().into(), has.policy.number().into());
    compare("rt_priority", i64::from(wanted.rt_priority), i64::from(has.rt_priority));
    if has_slice(wanted.policy) {
        compare("nice", i64::from(wanted.nice), i64::from(has.nice));
    }
    for (name, wanted, has) in
        [("util_min", wanted.util_min, has.util_min), ("util_max", wanted.util_max, has.util_max)]
    {
        let wanted = wanted.filter(|clamp| *clamp != SchedAttr::UTIL_CLAMP_RESET);
        if let (Some(wanted), Some(has)) = (wanted, has) {
            compare(name, i64::from(wanted), i64::from(has));
        }
    }
    if wanted.policy == Policy::Deadline {
        compare("runtime", wanted.dl.runtime as i64, has.dl.runtime as i64);
        compare("deadline", wanted.dl.deadline as i64, has.dl.deadline as i64);
        compare("period", wanted.dl.effective_period() as i64, has.dl.effective_period() as i64);
    }
    if has_slice(wanted.policy) && wanted.slice != 0 && wanted.slice != has.slice {
        found.push(match has.slice {
            0 => "threads have no slices of their own (Linux has them from 6.12 on)".to_owned(),
            has => format!("the slice is {has} ns, not {} (0.1 to 100 ms)", wanted.slice),
        });
    }
    found
}

/// Adds the reason and what helps to an error. That a thread has ended (ESRCH) stays as it is.
fn explained(error: io::Error, attr: &SchedAttr) -> io::Error {
    let is_dl = attr.policy == Policy::Deadline;
    let is_rt = matches!(attr.policy, Policy::Fifo | Policy::Rr);
    let why = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => {
            "this kernel has no utilisation clamps (CONFIG_UCLAMP_TASK is not set)"
        }
        Some(libc::E2BIG) => "this kernel is older than utilisation clamps (Linux 5.3)",
        Some(libc::EBUSY) if is_dl => {
            "the reservations of all threads would exceed /proc/sys/kernel/sched_rt_runtime_us"
        }
        Some(libc::EPERM) if is_dl => {
            "it needs CAP_SYS_NICE, and a deadline thread has to be allowed on all CPUs of its root domain"
        }
        Some(libc::EPERM) if is_rt => {
            "it needs CAP_SYS_NICE, and a cgroup with real-time bandwidth (cpu.rt_runtime_us)"
        }
        Some(libc::EPERM | libc::EACCES) => "it needs CAP_SYS_NICE",
        Some(libc::EINVAL) if attr.policy == Policy::Ext => {
            "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT)"
        }
        Some(libc::EINVAL) if attr.util_min.max(attr.util_max).is_some() => {
            "util_min may not be above util_max"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{error}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// A thread that sleeps, of another process.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Sleeper {
            Sleeper(Command::new("sleep").arg("60").spawn().unwrap())
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill().and_then(|()| self.0.wait());
        }
    }

    fn plain() -> SchedAttr {
        SchedAttr { util_min: None, util_max: None, ..SchedAttr::default() }
    }

    #[test]
    fn parameters_are_read_back_as_they_were_set() {
        let sleeper = Sleeper::start();
        let tid = sleeper.0.id();
        set(tid, &SchedAttr { nice: 7, ..plain() }).unwrap();
        let got = get(tid).unwrap();
        assert_eq!((got.policy, got.nice), (Policy::Normal, 7));
        set(tid, &SchedAttr { policy: Policy::Batch, nice: 7, ..plain() }).unwrap();
        assert_eq!(get(tid).unwrap().policy, Policy::Batch);
        let missing = u32::MAX >> 2;
        assert_eq!(get(missing).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert_eq!(set(missing, &plain()).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    /// A kernel with slices takes this one; an older one says that it has none.
    #[test]
    fn a_slice_is_taken_or_refused() {
        let sleeper = Sleeper::start();
        let of = |slice| set_exactly(sleeper.0.id(), &SchedAttr { slice, ..plain() });
        match of(5_000_000) {
            Ok(()) => assert_eq!(get(sleeper.0.id()).unwrap().slice, 5_000_000),
            Err(error) => assert!(error.to_string().contains("from 6.12 on"), "{error}"),
        }
        // Linux makes 100 us of it.
        let error = of(50_000).unwrap_err().to_string();
        assert!(error.starts_with("the kernel did not take it"), "{error}");
    }

    #[test]
    fn a_clamp_is_taken_or_refused() {
        let sleeper = Sleeper::start();
        match set_exactly(sleeper.0.id(), &SchedAttr { util_max: Some(256), ..plain() }) {
            Ok(()) => assert_eq!(get(sleeper.0.id()).unwrap().util_max, Some(256)),
            Err(error) => assert!(error.to_string().contains("clamps"), "{error}"),
        }
    }

    #[test]
    fn what_the_kernel_made_of_it_is_told() {
        let fifo =
            SchedAttr { policy: Policy::Fifo, rt_priority: 9, util_max: Some(256), ..plain() };
        assert_eq!(
            differences(&fifo, &SchedAttr { util_max: Some(1024), ..plain() }),
            ["policy is 0, not 1", "rt_priority is 0, not 9", "util_max is 1024, not 256"]
        );
        let reset = SchedAttr { util_max: Some(SchedAttr::UTIL_CLAMP_RESET), ..plain() };
        let empty: Vec<String> = Vec::new();
        assert_eq!(differences(&reset, &SchedAttr { util_max: Some(1024), ..plain() }), empty);
        assert_eq!(
            differences(&SchedAttr { slice: 7, ..plain() }, &plain()),
            ["threads have no slices of their own (Linux has them from 6.12 on)"]
        );
    }
}
