// SPDX-License-Identifier: GPL-2.0-or-later
//! Threads as `/proc` describes them: policy, nice value, priority, allowed CPUs, clamps and group.
//!
//! No event tells these, so they are read when a recording starts and for each thread that is created during it.

use schedtwin_trace::event::StartingThread;
use schedtwin_trace::trace_dat::notes::parse_cpu_list;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// All threads at one time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot(BTreeMap<u32, StartingThread>);

impl Snapshot {
    /// Reads `/proc`.
    pub fn take() -> Snapshot {
        let mut threads = BTreeMap::new();
        for process in numbers(Path::new("/proc")) {
            // A process may end meanwhile.
            let group = cgroup(&read_text(&format!("/proc/{process}/cgroup")));
            for pid in numbers(&Path::new("/proc").join(process.to_string()).join("task")) {
                if let Some(thread) = of_thread(process, pid, group.clone()) {
                    threads.insert(pid, thread);
                }
            }
        }
        Snapshot(threads)
    }

    /// The threads, by number.
    pub fn threads(&self) -> impl Iterator<Item = &StartingThread> {
        self.0.values()
    }

    /// Threads of both whose policy, nice value, priority, CPUs, clamps or group differ.
    pub fn changed_since(&self, before: &Snapshot) -> usize {
        let differs = |now: &&StartingThread| {
            before.0.get(&now.pid).is_some_and(|then| {
                then.tgid == now.tgid
                    && (
                        then.policy,
                        then.nice,
                        then.rt_priority,
                        then.clamps,
                        &then.affinity,
                        &then.cgroup,
                    ) != (
                        now.policy,
                        now.nice,
                        now.rt_priority,
                        now.clamps,
                        &now.affinity,
                        &now.cgroup,
                    )
            })
        };
        self.threads().filter(differs).count()
    }
}

/// A thread of any process, as it is now; `None` if it has ended.
pub fn read(pid: u32) -> Option<StartingThread> {
    // The entry of a thread exists, though /proc does not list it.
    let status = read_text(&format!("/proc/{pid}/status"));
    let tgid: u32 = field(&status, "Tgid:")?.parse().ok()?;
    let group = cgroup(&read_text(&format!("/proc/{pid}/cgroup")));
    of_thread(tgid, pid, group)
}

fn of_thread(tgid: u32, pid: u32, group: Option<String>) -> Option<StartingThread> {
    let folder = format!("/proc/{tgid}/task/{pid}");
    let stat = read_text(&format!("{folder}/stat"));
    let status = read_text(&format!("{folder}/status"));
    let mut thread = of_stat(&stat)?;
    thread.pid = pid;
    thread.tgid = Some(tgid);
    thread.affinity = field(&status, "Cpus_allowed_list:").and_then(|list| parse_cpu_list(list)?);
    thread.clamps = clamps(&read_text(&format!("{folder}/sched")));
    thread.cgroup = group;
    Some(thread)
}

/// Parses the text of `stat`; the name may hold spaces and parentheses.
fn of_stat(stat: &str) -> Option<StartingThread> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, comm) = before.split_once('(')?;
    // Behind the name comes field 3.
    let fields: Vec<&str> = after.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<i32>().ok();
    Some(StartingThread {
        comm: comm.to_owned(),
        nice: number(19),
        rt_priority: number(40).and_then(|prio| u32::try_from(prio).ok()).filter(|prio| *prio > 0),
        policy: number(41).and_then(|policy| u32::try_from(policy).ok()),
        ..StartingThread::default()
    })
}

/// The clamps that a thread asks for, of kernels that have them.
fn clamps(sched: &str) -> Option<(u16, u16)> {
    let clamp = |name: &str| {
        let line = sched.lines().find(|line| line.split_whitespace().next() == Some(name))?;
        line.rsplit(':').next()?.trim().parse::<u16>().ok()
    };
    Some((clamp("uclamp.min")?, clamp("uclamp.max")?))
}

/// The group in the cpu controller: of version 1 where that has it, else of version 2.
fn cgroup(text: &str) -> Option<String> {
    let mut unified = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if controllers.split(',').any(|controller| controller == "cpu") {
            return Some(path.to_owned());
        }
        if controllers.is_empty() {
            unified = Some(path.to_owned());
        }
    }
    unified
}

fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

fn read_text(path: &str) -> String {
    fs::read(path)
        .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_move_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 102 0 0 0 0 0 0 0 20 -5 1 0 302173 3133440 388 1 1 1 1 0 0 0 0 0 0 0 0 0 17 1 40 1 0 0 0";
        let thread = of_stat(stat).unwrap();
        assert_eq!((thread.comm.as_str(), thread.nice), ("a) b (c", Some(-5)));
        assert_eq!((thread.rt_priority, thread.policy), (Some(40), Some(1)));
        assert!(of_stat("7 (a").is_none());
    }

    #[test]
    fn the_cpu_controller_names_the_group() {
        assert_eq!(
            cgroup("3:cpuset:/x\n2:cpu,cpuacct:/top-app\n0::/y\n"),
            Some("/top-app".to_owned())
        );
        assert_eq!(cgroup("3:cpuset:/x\n0::/y:z\n"), Some("/y:z".to_owned()));
        assert_eq!(cgroup(""), None);
    }

    #[test]
    fn clamps_are_the_requested_ones() {
        let sched =
            "prio   :  120\nuclamp.min   :   100\nuclamp.max  :  1024\neffective uclamp.min : 0\n";
        assert_eq!(clamps(sched), Some((100, 1024)));
        assert_eq!(clamps("prio : 120\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_thread_is_in_a_snapshot_and_has_not_changed() {
        let before = Snapshot::take();
        let now = Snapshot::take();
        let own = std::process::id();
        assert!(before.threads().any(|thread| thread.pid == own && thread.affinity.is_some()));
        assert_eq!(before.changed_since(&before), 0);
        assert!(now.threads().count() > 0);
        assert_eq!(read(own).unwrap().tgid, Some(own));
    }
}
