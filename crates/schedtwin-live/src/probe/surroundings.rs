// SPDX-License-Identifier: GPL-2.0-or-later
//! Surroundings of a measurement: the CPUs that the process may use, how busy they are, and whether this is a guest.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::io;
use std::path::Path;

/// CPUs that this process may use, rising: its affinity, which a cpuset limits.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect())
}

/// CPUs at a time that a quota of a cgroup (`cpu.max`) leaves of `cpus`; `None`: all.
pub fn quota(cpus: usize) -> Option<usize> {
    let at_a_time = std::thread::available_parallelism().ok()?.get();
    (at_a_time < cpus).then_some(at_a_time)
}

/// The sign by which this machine is a guest; `root` is `/`. `None`: there is none.
pub fn guest(root: &Path) -> Option<String> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let flags = read("proc/cpuinfo");
    let flags = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return Some("the flag `hypervisor` of /proc/cpuinfo".to_owned());
    }
    let kind = read("sys/hypervisor/type");
    if !kind.trim().is_empty() {
        return Some(format!("/sys/hypervisor/type is {}", kind.trim()));
    }
    if root.join("proc/device-tree/hypervisor").exists() {
        return Some("the device tree has a node `hypervisor`".to_owned());
    }
    // arm64 with ACPI has neither.
    let vendor = read("sys/class/dmi/id/sys_vendor");
    let vendor = vendor.trim();
    let guests = ["QEMU", "KVM", "Xen", "VMware, Inc.", "innotek GmbH", "Parallels"];
    guests.iter().any(|guest| vendor.starts_with(guest)).then(|| format!("its vendor is {vendor}"))
}

/// Counters of all CPUs' time at a moment (`/proc/stat`), in ticks of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    all: u64,
    idle: u64,
    stolen: u64,
}

/// Shares of all CPUs' time between two moments, %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Time in which CPUs were not idle, without what was stolen.
    pub busy: f64,
    /// Time that a hypervisor gave to others (steal).
    pub stolen: f64,
}

impl Busy {
    /// Reads the counters; `root` is `/`.
    pub fn read(root: &Path) -> Option<Busy> {
        let stat = std::fs::read_to_string(root.join("proc/stat")).ok()?;
        let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user nice system idle iowait irq softirq steal; what follows is part of user and nice.
        let ticks: Vec<u64> =
            all.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        (ticks.len() >= 4).then(|| Busy {
            all: ticks.iter().sum(),
            idle: at(3) + at(4),
            stolen: at(7),
        })
    }

    /// Load since an earlier moment; 0 if no time has passed.
    pub fn since(self, earlier: Busy) -> Load {
        let all = self.all.saturating_sub(earlier.all);
        let idle = self.idle.saturating_sub(earlier.idle);
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        let percent = |part: u64| 100.0 * part as f64 / all.max(1) as f64;
        Load { busy: percent(all.saturating_sub(idle + stolen)), stolen: percent(stolen) }
    }

    /// Share of the last ten seconds in which some thread waited for a CPU (`/proc/pressure/cpu`), %.
    pub fn pressure(root: &Path) -> Option<f64> {
        let text = std::fs::read_to_string(root.join("proc/pressure/cpu")).ok()?;
        let some = text.lines().find(|line| line.starts_with("some "))?;
        some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn guests_are_told_by_their_signs() {
        for (path, text, sign) in [
            ("proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor lm\n", Some("cpuinfo")),
            ("proc/cpuinfo", "processor : 0\nflags\t\t: fpu lm\nbugs : hypervisor\n", None),
            ("sys/hypervisor/type", "xen\n", Some("is xen")),
            ("proc/device-tree/hypervisor/compatible", "linux,kvm\0", Some("device tree")),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n", Some("QEMU")),
            ("sys/class/dmi/id/sys_vendor", "Dell Inc.\n", None),
        ] {
            let root = with(&[(path, text)]);
            let found = guest(root.path());
            assert_eq!(found.is_some(), sign.is_some(), "{path}: {found:?}");
            assert!(found.unwrap_or_default().contains(sign.unwrap_or_default()), "{path}");
        }
        assert_eq!(guest(with(&[]).path()), None);
    }

    #[test]
    fn load_is_what_neither_idled_nor_was_stolen() {
        let read = |stat: &str| Busy::read(with(&[("proc/stat", stat)]).path());
        let earlier = read("cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 1 1 1 1\n").unwrap();
        let later = read("cpu  40 0 20 140 10 0 0 10 0 0\n").unwrap();
        assert_eq!(later.since(earlier), Load { busy: 40.0, stolen: 10.0 });
        assert_eq!(later.since(later), Load { busy: 0.0, stolen: 0.0 });
        assert_eq!(read("cpu  1 2\n"), None);
        let pressed = "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00\n";
        let root = with(&[("proc/pressure/cpu", pressed)]);
        assert_eq!(Busy::pressure(root.path()), Some(12.5));
    }
}
