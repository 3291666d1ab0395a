// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine as a recording's `NAME.meta.txt` describes it: CPUs, frequency domains, idle states,
//! governors, the tick.
//!
//! ```text
//! NAME.3.trace.txt.xz → NAME.meta.txt:
//!   /sys/devices/system/cpu/cpufreq/policy4/related_cpus = 4 5
//!   /sys/devices/system/cpu/cpufreq/policy4/scaling_available_frequencies = 400000 553000 …      (kHz)
//!   /sys/devices/system/cpu/cpufreq/policy4/schedutil/rate_limit_us = 750
//!   /sys/kernel/debug/energy_model/cpu4/ps:400000/power = 33504                                  (µW)
//!   /sys/devices/system/cpu/cpuidle/current_governor = teo
//!   /sys/devices/system/cpu/cpu4/cpuidle/state1/latency = 340                                    (µs)
//!   CONFIG_HZ=250
//! ```
//!
//! Which CPUs are threads of a core, and clusters, packages and nodes, the board's own description says, too.
//!
//! The capacity of a CPU is its `cpu_capacity`, else the performance of its energy model's highest state, else 1024. CPUs of
//! one `package_cpus_list` share a last-level cache; if none is printed, those that the board's own description
//! (`board = NAME`, `board/boards/NAME.toml`) puts into one, else all. Idle states are printed of each
//! cluster's first CPU; those of the CPUs after it are the same.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_kernel::config::{Config, RunnableBoost};
use schedtwin_kernel::cpuidle::states::{CPUIDLE_STATE_MAX, IdleStateParams};
use schedtwin_types::Khz;

use crate::ftrace::CPUS_MAX;

/// The recorded machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Frequency domains, ascending; together they are all CPUs.
    pub domains: Vec<Domain>,
    /// The kernel: 6, 12, 107; zeros if the description does not say.
    pub release: [u32; 3],
    /// The board's name, if it has one.
    board: String,
    /// Per CPU: the first CPU of its package.
    packages: BTreeMap<usize, usize>,
    /// How the board arranges its CPUs beyond caches.
    pub arrangement: Arrangement,
    /// The kernel has a domain level for clusters (`CONFIG_SCHED_CLUSTER`).
    pub sched_cluster: bool,
    /// It knows hardware threads (`CONFIG_SCHED_SMT`).
    pub sched_smt: bool,
    /// schedutil's `rate_limit_us`.
    pub rate_limit_us: u64,
    /// Requests are carried out at once, so that each change stands beside its call.
    pub fast_switch: bool,
    /// There are fair servers: until a line says otherwise, those of the boot still count.
    pub fair_server: bool,
    /// The idle governor: `teo`, `menu`, …; empty if the description does not say.
    pub governor: String,
    /// `TICK_NSEC`.
    pub tick_nsec: i64,
    /// The idle states of some CPUs; a CPU without an entry has those of the next lower one.
    states: BTreeMap<usize, Vec<IdleStateParams>>,
}

/// The groups of CPUs that belong together, each by the first CPU; a CPU without an entry belongs
/// to 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// The clusters of cpu-map.
    pub clusters: BTreeMap<usize, usize>,
    /// Its sockets.
    pub packages: BTreeMap<usize, usize>,
    /// NUMA nodes.
    pub nodes: BTreeMap<usize, usize>,
    /// Hardware threads of a core, numbered one after the other; 0 or 1: none.
    pub threads: usize,
}

/// A frequency domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its CPUs.
    pub cpus: Range<usize>,
    /// `arch_scale_cpu_capacity` of each, 1..=1024.
    pub capacity: u64,
    /// Operating points, ascending: kHz and microwatts (0: no energy model).
    pub opps: Vec<(Khz, u64)>,
}

/// The description of a domain, line by line; the key is its first CPU.
#[derive(Default)]
struct Lines {
    cpus: BTreeMap<usize, Range<usize>>,
    frequencies: BTreeMap<usize, Vec<Khz>>,
    power: BTreeMap<(usize, Khz), u64>,
    /// Largest performance of the energy model.
    performance: BTreeMap<usize, u64>,
    capacity: BTreeMap<usize, u64>,
}

impl Machine {
    /// Reads the description that belongs to a recording.
    pub fn of_recording(recording: &Path) -> io::Result<Machine> {
        let path = meta_path(recording);
        let named = |why: String| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
        };
        let text = std::fs::read_to_string(&path).map_err(|error| named(error.to_string()))?;
        let mut machine = Machine::parse(&text).map_err(named)?;
        if !machine.board.is_empty() {
            let boards = Path::new(env!("CARGO_MANIFEST_DIR")).join("board/boards");
            // A board that is not there is one of somebody else's: then all share a cache.
            if let Ok(board) = std::fs::read_to_string(boards.join(&machine.board)) {
                if machine.packages.is_empty() {
                    machine.packages = groups(&board, "llc");
                }
                machine.arrangement = Arrangement::of(&board);
            }
        }
        Ok(machine)
    }

    /// The kernel of ours that is asked.
    pub fn kernel(&self) -> Config {
        kernel_of(self.release)
    }

    /// Its name.
    pub fn kernel_name(&self) -> String {
        name_of_kernel(self.release)
    }

    /// Reads a description.
    pub fn parse(text: &str) -> Result<Machine, String> {
        let mut machine = Machine {
            rate_limit_us: 0,
            fast_switch: true,
            fair_server: true,
            ..Machine::default()
        };
        let mut lines = Lines::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim(), value.trim());
            match key {
                "CONFIG_HZ" => {
                    let hz = value.parse().ok().filter(|hz| (1..=100_000).contains(hz));
                    let hz: i64 = hz.ok_or_else(|| format!("CONFIG_HZ `{value}` is not a rate"))?;
                    // TICK_NSEC of the kernel: a second by the rate, rounded.
                    machine.tick_nsec = (1_000_000_000 + hz / 2) / hz;
                }
                "CONFIG_SCHED_CLUSTER" => machine.sched_cluster = value == "y",
                "CONFIG_SCHED_SMT" => machine.sched_smt = value == "y",
                "/proc/version" => machine.release = release(value),
                "board" if value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') => {
                    machine.board = format!("{value}.toml");
                }
                "/proc/cmdline" => machine.fast_switch = !value.contains("vdvfs.fast=0"),
                "/sys/kernel/debug/sched/fair_server/cpu0/runtime" => {
                    machine.fair_server = value != "0";
                }
                _ => {
                    let read = if let Some(key) = key.strip_prefix("/sys/devices/system/cpu/") {
                        machine.sysfs(&mut lines, key, value)
                    } else if let Some(key) = key.strip_prefix("/sys/kernel/debug/energy_model/cpu")
                    {
                        lines.energy_model(key, value)
                    } else {
                        Some(())
                    };
                    let short = key.strip_prefix("/sys/devices/system/cpu/").unwrap_or(key);
                    read.ok_or_else(|| format!("{short}: `{value}` is unreadable"))?;
                }
            }
        }
        machine.domains = lines.domains()?;
        if machine.rate_limit_us == 0 {
            // One and a half transition latencies of 500 µs.
            machine.rate_limit_us = 750;
        }
        match () {
            () if machine.tick_nsec == 0 => Err("no CONFIG_HZ".into()),
            () if machine.domains.is_empty() => Err("no cpufreq policy".into()),
            () => Ok(machine),
        }
    }

    /// One attribute; `None` if it cannot be read, `Some` also if it is of no interest.
    fn sysfs(&mut self, lines: &mut Lines, key: &str, value: &str) -> Option<()> {
        if key == "cpuidle/current_governor" {
            self.governor = value.to_string();
            return Some(());
        }
        if let Some((policy, attribute)) =
            key.strip_prefix("cpufreq/policy").and_then(|key| key.split_once('/'))
        {
            let first = cpu_number(policy)?;
            match attribute {
                "related_cpus" => {
                    let cpus: Option<Vec<usize>> = value.split(' ').map(cpu_number).collect();
                    let cpus = cpus?;
                    let range = first..first + cpus.len();
                    cpus.iter().copied().eq(range.clone()).then_some(())?;
                    lines.cpus.insert(first, range);
                }
                "scaling_available_frequencies" => {
                    let table: Option<Vec<Khz>> = value.split(' ').map(khz).collect();
                    let table = table?;
                    table.is_sorted_by(|a, b| a < b).then_some(())?;
                    lines.frequencies.insert(first, table);
                }
                "schedutil/rate_limit_us" => {
                    self.rate_limit_us = value.parse::<u64>().ok()?.min(1_000_000);
                }
                _ => {}
            }
            return Some(());
        }
        let Some((cpu, rest)) = key.strip_prefix("cpu").and_then(|key| key.split_once('/')) else {
            return Some(());
        };
        // Other things than CPUs begin with "cpu" too.
        let Some(cpu) = cpu_number(cpu) else { return Some(()) };
        if rest == "cpu_capacity" {
            let capacity = value.parse().ok().filter(|c| (1..=1024).contains(c))?;
            lines.capacity.insert(cpu, capacity);
        } else if rest == "topology/package_cpus_list" {
            let first = value.split(['-', ',']).next()?;
            self.packages.insert(cpu, cpu_number(first)?);
        } else if let Some((state, attribute)) =
            rest.strip_prefix("cpuidle/state").and_then(|rest| rest.split_once('/'))
        {
            self.idle_state(cpu, state, attribute, value)?;
        }
        Some(())
    }

    fn idle_state(&mut self, cpu: usize, state: &str, attribute: &str, value: &str) -> Option<()> {
        let state: usize = state.parse().ok().filter(|state| *state < CPUIDLE_STATE_MAX)?;
        let states = self.states.entry(cpu).or_default();
        if states.len() <= state {
            states.resize(state + 1, IdleStateParams::default());
        }
        // Microseconds in sysfs, nanoseconds in the kernel; s64 there, hence u32 here.
        let ns = |value: &str| Some(u64::from(value.parse::<u32>().ok()?) * 1000);
        match attribute {
            "latency" => states[state].exit_latency_ns = ns(value)?,
            "residency" => states[state].target_residency_ns = ns(value)?,
            "disable" => states[state].disabled = value != "0",
            // The kernel's own polling state has this name; sysfs does not print the flag.
            "name" => states[state].polling = value == "POLL",
            _ => {}
        }
        Some(())
    }

    /// The idle states of `cpu`; none if the description begins with a later one.
    pub fn states(&self, cpu: usize) -> &[IdleStateParams] {
        self.states.range(..=cpu).next_back().map_or(&[], |(_, states)| states)
    }

    /// How many CPUs there are.
    pub fn nr_cpus(&self) -> usize {
        self.domains.last().map_or(0, |domain| domain.cpus.end)
    }

    /// The frequency domain of a CPU, if there is such a CPU.
    pub fn domain_of(&self, cpu: usize) -> Option<usize> {
        self.domains.iter().position(|domain| domain.cpus.contains(&cpu))
    }

    /// `arch_scale_cpu_capacity`; of a CPU that is not there: 1024.
    pub fn capacity(&self, cpu: usize) -> u64 {
        self.domain_of(cpu).map_or(1024, |domain| self.domains[domain].capacity)
    }

    /// Whether CPUs differ in capacity: then EAS decides as long as none is overutilized.
    pub fn is_asymmetric(&self) -> bool {
        self.domains.windows(2).any(|pair| pair[0].capacity != pair[1].capacity)
    }

    /// The highest frequency of a CPU, kHz.
    pub fn frequency_max(&self, cpu: usize) -> u64 {
        let top = self.domain_of(cpu).and_then(|domain| self.domains[domain].opps.last());
        top.map_or(1, |(khz, _)| (*khz).max(1) as u64)
    }

    /// The first CPU of the package, that is of the last-level cache, of a CPU.
    pub fn package(&self, cpu: usize) -> usize {
        self.packages.get(&cpu).copied().unwrap_or(0)
    }
}

impl Lines {
    /// One attribute of the energy model: `0/ps:300000/power`.
    fn energy_model(&mut self, key: &str, value: &str) -> Option<()> {
        let Some((cpu, rest)) = key.split_once("/ps:") else { return Some(()) };
        let (frequency, attribute) = rest.split_once('/')?;
        let (cpu, khz) = (cpu_number(cpu)?, khz(frequency)?);
        match attribute {
            // The kernel's own limit is 64 W.
            "power" => {
                let power = value.parse().ok().filter(|power| *power <= 64_000_000)?;
                self.power.insert((cpu, khz), power);
            }
            "performance" => {
                let performance = value.parse().ok().filter(|p: &u64| (1..=1024).contains(p))?;
                let largest = self.performance.entry(cpu).or_default();
                *largest = performance.max(*largest);
            }
            _ => {}
        }
        Some(())
    }

    fn domains(&self) -> Result<Vec<Domain>, String> {
        let mut domains = Vec::new();
        let mut next = 0;
        for (first, cpus) in &self.cpus {
            if *first != next {
                return Err(format!("CPU {next} is in no cpufreq policy"));
            }
            next = cpus.end;
            let frequencies = self.frequencies.get(first).filter(|table| !table.is_empty());
            let frequencies =
                frequencies.ok_or_else(|| format!("policy{first}: no frequencies"))?;
            let power = |khz: &Khz| (*khz, self.power.get(&(*first, *khz)).copied().unwrap_or(0));
            let capacity = self.capacity.get(first).or(self.performance.get(first));
            domains.push(Domain {
                cpus: cpus.clone(),
                capacity: capacity.copied().unwrap_or(1024),
                opps: frequencies.iter().map(power).collect(),
            });
        }
        Ok(domains)
    }
}

/// The built-in kernel of a release; of one that has none, and where a description names none, 6.12.
pub(super) fn kernel_of(release: [u32; 3]) -> Config {
    let named = KernelFile::load(&name_of_kernel(release));
    let mut config = named.map_or_else(|_| Config::linux_6_12(), |kernel| kernel.config);
    // What stable releases took over, of what recordings show. Of 6.12 it came between .95 and .107; nobody recorded those between.
    if matches!(release, [6, 18, ..39]) {
        config.features.rt_push_ipi = true;
    }
    config.runnable_boost = match release {
        [6, 12, ..107] | [6, 18, ..40] => RunnableBoost::On,
        [6, 12, _] => RunnableBoost::WithTask,
        _ => config.runnable_boost,
    };
    // The boards' kernels are built without task groups; recordings with groups make their own.
    Config { fair_group_sched: false, ..config }
}

/// The name of that kernel.
pub fn name_of_kernel([major, minor, _]: [u32; 3]) -> String {
    let name = format!("linux-{major}.{minor}");
    if KernelFile::load(&name).is_ok() { name } else { "linux-6.12".into() }
}

/// `Linux version 6.12.107 (…`.
pub(super) fn release(version: &str) -> [u32; 3] {
    let words = version.split([' ', '-', '+']).find(|word| word.starts_with(char::is_numeric));
    let mut numbers = words.unwrap_or_default().split('.').map(|n| n.parse().unwrap_or(0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

impl Arrangement {
    /// Reads the arrangement from a board's description.
    fn of(board: &str) -> Arrangement {
        let threads = values(board, "threads").find_map(|text| text.trim().parse().ok());
        Arrangement {
            clusters: groups(board, "cluster"),
            packages: groups(board, "package"),
            nodes: groups(board, "node"),
            threads: threads.unwrap_or(1),
        }
    }
}

/// Returns the values behind a key of a board's description.
fn values<'a>(board: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    let pairs = board.lines().filter_map(|line| line.split_once('='));
    pairs.filter(move |(name, _)| name.trim() == key).map(|(_, value)| value)
}

/// Which CPUs belong together, by the first one: of a board's `llc = ["0-3", "4-7"]`.
fn groups(board: &str, key: &str) -> BTreeMap<usize, usize> {
    let mut first_of = BTreeMap::new();
    for span in values(board, key).flat_map(|list| list.split('"').skip(1).step_by(2)) {
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        if let (Some(first), Some(last)) = (cpu_number(first), cpu_number(last)) {
            first_of.extend((first..=last).map(|cpu| (cpu, first)));
        }
    }
    first_of
}

fn cpu_number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|cpu| *cpu < CPUS_MAX)
}

/// A frequency; the kernel's are unsigned ints, and the sums here must not overflow.
fn khz(text: &str) -> Option<Khz> {
    text.parse().ok().filter(|khz| (1..=100_000_000).contains(khz))
}

/// `DIR/NAME.N.trace.txt[.xz]` → `DIR/NAME.N.meta.txt` if that is there, else `DIR/NAME.meta.txt`.
pub fn meta_path(recording: &Path) -> PathBuf {
    let name = super::name_of(recording);
    let own = recording.with_file_name(format!("{name}.meta.txt"));
    if own.exists() {
        return own;
    }
    let name = name.rsplit_once('.').map_or(name.as_str(), |(name, _number)| name);
    recording.with_file_name(format!("{name}.meta.txt"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A machine like the rig's first board.
    pub(in crate::l1) const META: &str = "\
/proc/cmdline = quiet vdvfs.fast=0
/sys/kernel/debug/sched/fair_server/cpu0/runtime = 0
/sys/devices/system/cpu/cpufreq/policy0/related_cpus = 0 1 2 3
/sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies = 300000 1803000
/sys/devices/system/cpu/cpufreq/policy0/schedutil/rate_limit_us = 7500
/sys/devices/system/cpu/cpufreq/policy4/related_cpus = 4 5
/sys/devices/system/cpu/cpufreq/policy4/scaling_available_frequencies = 400000 2253000
/sys/devices/system/cpu/cpufreq/policy6/related_cpus = 6 7
/sys/devices/system/cpu/cpufreq/policy6/scaling_available_frequencies = 500000 851000 2802000
/sys/kernel/debug/energy_model/cpu0/cpus = 0-3
/sys/kernel/debug/energy_model/cpu0/ps:1803000/performance = 124
/sys/kernel/debug/energy_model/cpu0/ps:1803000/power = 109393
/sys/kernel/debug/energy_model/cpu0/ps:300000/performance = 20
/sys/kernel/debug/energy_model/cpu0/ps:300000/power = 6352
/sys/devices/system/cpu/cpu4/cpu_capacity = 427
/sys/devices/system/cpu/cpu5/topology/package_cpus_list = 4-7
/sys/devices/system/cpu/cpuidle/current_governor = teo
/sys/devices/system/cpu/cpu4/cpuidle/state0/latency = 1
/sys/devices/system/cpu/cpu4/cpuidle/state0/residency = 1
/sys/devices/system/cpu/cpu4/cpuidle/state1/latency = 340
/sys/devices/system/cpu/cpu4/cpuidle/state1/residency = 2500
/sys/devices/system/cpu/cpu4/cpuidle/state1/disable = 1
CONFIG_HZ=300
";

    #[test]
    fn a_description_is_read() {
        let machine = Machine::parse(META).unwrap();
        assert_eq!((machine.governor.as_str(), machine.tick_nsec), ("teo", 3_333_333));
        assert_eq!(machine.states(3), []);
        assert_eq!(machine.states(5).len(), 2);
        let c2 = machine.states(5)[1];
        assert_eq!((c2.exit_latency_ns, c2.target_residency_ns), (340_000, 2_500_000));
        assert!(c2.disabled && !c2.polling);
        assert_eq!((machine.rate_limit_us, machine.fast_switch), (7500, false));
        assert!(!machine.fair_server);
        let cpus: Vec<_> = machine.domains.iter().map(|d| d.cpus.clone()).collect();
        assert_eq!((machine.nr_cpus(), cpus), (8, vec![0..4, 4..6, 6..8]));
        assert_eq!([0, 5, 7, 99].map(|cpu| machine.capacity(cpu)), [124, 427, 1024, 1024]);
        assert_eq!(machine.domains[0].opps, [(300_000, 6_352), (1_803_000, 109_393)]);
        assert_eq!(machine.domains[2].opps[1], (851_000, 0));
        assert_eq!((machine.frequency_max(4), machine.domain_of(8)), (2_253_000, None));
        assert_eq!([4, 5].map(|cpu| machine.package(cpu)), [0, 4]);
        let board = "llc = [\"0-7\"]\nnode = [\"0-3\", \"4-7\"]\nthreads = 2\n";
        let Arrangement { nodes, threads, .. } = Arrangement::of(board);
        assert_eq!((nodes.get(&6), nodes.len(), threads), (Some(&4), 8, 2));
        let path = meta_path(Path::new("d/ui-light.2.trace.txt.xz"));
        assert_eq!(path, Path::new("d/ui-light.meta.txt"));
    }

    #[test]
    fn what_is_missing_or_unreadable_is_named() {
        for (from, to, error) in [
            ("CONFIG_HZ=300", "", "no CONFIG_HZ"),
            ("HZ=300", "HZ=0", "CONFIG_HZ `0` is not a rate"),
            ("latency = 340", "latency = -1", "cpu4/cpuidle/state1/latency: `-1` is unreadable"),
            ("state1/res", "state99/res", "cpu4/cpuidle/state99/residency: `2500` is unreadable"),
            ("0 1 2 3", "0 2", "cpufreq/policy0/related_cpus: `0 2` is unreadable"),
            ("0 1 2 3", "0 1", "CPU 2 is in no cpufreq policy"),
            ("policy4/scaling", "policy4/x", "policy4: no frequencies"),
            ("= 427", "= 0", "cpu4/cpu_capacity: `0` is unreadable"),
        ] {
            assert_eq!(Machine::parse(&META.replace(from, to)), Err(error.to_string()));
        }
    }
}
