// SPDX-License-Identifier: GPL-2.0-or-later
//! Threads of this machine, and the changes that settings make to them.

use super::journal::{Change, make};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS, Policy, SchedAttr};
use schedtwin_workload::{ThreadChanges, ThreadSetting, list_of};
use std::fs;
use std::io;

/// `PF_KTHREAD` of include/linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;

/// A thread, as /proc has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its process.
    pub process: u32,
    /// The process that started its process.
    pub parent: u32,
    /// Its name.
    pub name: String,
    /// When it started, ticks since boot.
    pub start: u64,
    /// Whether it is the kernel's own.
    pub of_kernel: bool,
}

/// All threads that there are now.
pub fn all() -> Vec<Thread> {
    let mut threads = Vec::new();
    for process in numbers("/proc") {
        for tid in numbers(&format!("/proc/{process}/task")) {
            let stat = fs::read_to_string(format!("/proc/{process}/task/{tid}/stat"));
            threads.extend(stat.ok().and_then(|stat| of_stat(&stat, tid, process)));
        }
    }
    threads
}

/// When a thread started; `None`: there is none.
pub fn start_of(tid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    of_stat(&stat, tid, tid).map(|thread| thread.start)
}

/// Parses the text of `stat`; the name may hold spaces and parentheses.
fn of_stat(stat: &str, tid: u32, process: u32) -> Option<Thread> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    // Behind the name comes field 3.
    let fields: Vec<&str> = after.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Thread {
        tid,
        process,
        parent: number(4)? as u32,
        name: name.to_owned(),
        start: number(22)?,
        of_kernel: number(9)? & PF_KTHREAD != 0,
    })
}

fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    found.sort_unstable();
    found
}

/// The threads of `all` whose process is `root` or descends from it.
pub fn descendants(all: &[Thread], root: u32) -> Vec<&Thread> {
    let mut processes = vec![root];
    // Parents come before children only mostly, so it is repeated until nothing is added.
    loop {
        let known = processes.len();
        for thread in all {
            if processes.contains(&thread.parent) && !processes.contains(&thread.process) {
                processes.push(thread.process);
            }
        }
        if processes.len() == known {
            break;
        }
    }
    all.iter().filter(|thread| processes.contains(&thread.process)).collect()
}

/// The change that the settings make to a thread; `None`: none.
pub fn change_of(thread: &Thread, settings: &[ThreadSetting]) -> io::Result<Option<Change>> {
    let changes = ThreadChanges::of(&thread.name, settings);
    if changes.is_none() {
        return Ok(None);
    }
    let mut attr = None;
    if changes.changes_attributes() {
        let mut was = schedtwin_attributes::get(thread.tid)?;
        let default_slice = schedtwin_attributes::get(1).map_or(0, |first| first.slice);
        if was.slice == default_slice || was.policy == Policy::Idle {
            was.slice = 0;
        }
        // Clamps that do not change are not written.
        let [min, max] = changes.clamps;
        was.util_min = was.util_min.filter(|_| min.is_some());
        was.util_max = was.util_max.filter(|_| max.is_some());
        let now: SchedAttr = changes.applied_to(was);
        attr = (now != was).then_some((was, now));
    }
    let mut cpus = None;
    if let Some(wanted) = changes.cpus {
        let was = affinity(thread.tid)?;
        cpus = (was != wanted).then_some((was, wanted));
    }
    Ok((attr.is_some() || cpus.is_some()).then(|| Change::Thread {
        tid: thread.tid,
        start: thread.start,
        name: thread.name.clone(),
        attr,
        cpus,
    }))
}

/// Gives the calling thread the settings of a thread of that name, and reads them back.
pub fn give_own(name: &str, settings: &[ThreadSetting]) -> io::Result<()> {
    let tid = gettid().as_raw_nonzero().get() as u32;
    let stat = fs::read_to_string(format!("/proc/{tid}/stat"))?;
    let own =
        of_stat(&stat, tid, std::process::id()).map(|own| Thread { name: name.into(), ..own });
    let own = own.ok_or_else(|| io::Error::other(format!("/proc/{tid}/stat is {stat:?}")))?;
    change_of(&own, settings)?.map_or(Ok(()), |change| make(&change, true))
}

fn affinity(tid: u32) -> io::Result<CpuMask> {
    let set = sched_getaffinity(Pid::from_raw(tid as i32))?;
    let cpus = (0..MAX_CPUS.min(CpuSet::MAX_CPU)).filter(|cpu| set.is_set(*cpu));
    Ok(cpus.map(|cpu| CpuId(cpu as u16)).collect())
}

/// Binds a thread to CPUs and reads them back; 0: the caller.
pub fn bind(tid: u32, cpus: CpuMask) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(usize::from(cpu.0)));
    let refused = |why: &str| io::Error::other(format!("CPUs {}: {why}", list_of(&cpus)));
    match sched_setaffinity(Pid::from_raw(tid as i32), &set) {
        Err(Errno::SRCH) => return Err(Errno::SRCH.into()),
        Err(Errno::PERM) => return Err(refused("it needs CAP_SYS_NICE")),
        Err(Errno::INVAL) => return Err(refused("none of them is online and in its cpuset")),
        set => set?,
    }
    let has = affinity(tid)?;
    match has == cpus {
        true => Ok(()),
        false => Err(refused(&format!("{} of them are online and in its cpuset", list_of(&has)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_move_the_fields() {
        let stat =
            "7 (a) b (c) S 1 7 7 0 -1 2097152 102 0 0 0 0 0 0 0 20 -5 1 0 302173 3133440 388";
        let thread = of_stat(stat, 7, 7).unwrap();
        assert_eq!((thread.name.as_str(), thread.parent, thread.start), ("a) b (c", 1, 302_173));
        assert!(thread.of_kernel);
        assert!(of_stat("7 (a", 7, 7).is_none());
    }

    /// On a thread of its own, since it changes it.
    fn given(text: &str) -> io::Result<()> {
        let settings = [ThreadSetting::parse(text).unwrap().unwrap()];
        std::thread::spawn(move || give_own("x", &settings)).join().unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_gets_what_the_machine_can_do() {
        given("nice x=5").unwrap();
        given("policy x=batch").unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn cpus_that_are_not_there_are_refused() {
        let why = given("cpus x=0-200").unwrap_err().to_string();
        assert!(why.contains("are online and in its cpuset"), "{why}");
        let why = given("cpus x=200").unwrap_err().to_string();
        assert!(why.contains("none of them is online"), "{why}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_descends_from_its_parent() {
        let all = all();
        let own = std::process::id();
        let found = descendants(&all, own);
        assert!(found.iter().all(|thread| !thread.of_kernel));
        assert!(found.iter().any(|thread| thread.process == own));
    }
}
