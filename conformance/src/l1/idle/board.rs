//! What a recording's `NAME.meta.txt` says about idle: the governor, the tick, each CPU's states.
//!
//! ```text
//! NAME.3.trace.txt.xz → NAME.meta.txt:
//!   /sys/devices/system/cpu/cpuidle/current_governor = teo
//!   /sys/devices/system/cpu/cpu4/cpuidle/state1/latency = 340        (µs)
//!   CONFIG_HZ=250
//! ```
//!
//! The rig prints the states of each cluster's first CPU; those of the CPUs after it are the same.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use schedtwin_kernel::cpuidle::states::{CPUIDLE_STATE_MAX, IdleStateParams};

use crate::ftrace::CPUS_MAX;

/// The idle side of the recorded machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    /// `teo`, `menu`, …
    pub governor: String,
    /// `TICK_NSEC`.
    pub tick_nsec: i64,
    /// The states of some CPUs; a CPU without an entry has those of the next lower one.
    states: BTreeMap<usize, Vec<IdleStateParams>>,
}

impl Board {
    /// Reads the description that belongs to a recording.
    pub fn of_recording(recording: &Path) -> io::Result<Board> {
        let path = meta_path(recording);
        let named = |why: String| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
        };
        let text = std::fs::read_to_string(&path).map_err(|error| named(error.to_string()))?;
        Board::parse(&text).map_err(named)
    }

    /// Reads a description.
    pub fn parse(text: &str) -> Result<Board, String> {
        let mut board = Board::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim(), value.trim());
            if key == "CONFIG_HZ" {
                let hz = value.parse().ok().filter(|hz| (1..=100_000).contains(hz));
                let hz: i64 = hz.ok_or_else(|| format!("CONFIG_HZ `{value}` is not a rate"))?;
                // TICK_NSEC of the kernel: a second by the rate, rounded.
                board.tick_nsec = (1_000_000_000 + hz / 2) / hz;
            } else if let Some(key) = key.strip_prefix("/sys/devices/system/cpu/") {
                board.sysfs(key, value).ok_or_else(|| format!("{key}: `{value}` is unreadable"))?;
            }
        }
        match () {
            () if board.governor.is_empty() => Err("no current_governor".into()),
            () if board.tick_nsec == 0 => Err("no CONFIG_HZ".into()),
            () if board.states.is_empty() => Err("no idle states".into()),
            () => Ok(board),
        }
    }

    /// One attribute; `None` if it cannot be read, `Some` also if it is of no interest.
    fn sysfs(&mut self, key: &str, value: &str) -> Option<()> {
        if key == "cpuidle/current_governor" {
            self.governor = value.to_string();
            return Some(());
        }
        let Some((cpu, rest)) =
            key.strip_prefix("cpu").and_then(|k| k.split_once("/cpuidle/state"))
        else {
            return Some(());
        };
        let (state, attribute) = rest.split_once('/')?;
        let cpu: usize = cpu.parse().ok().filter(|cpu| *cpu < CPUS_MAX)?;
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

    /// The states of `cpu`; none if the description begins with a later one.
    pub fn states(&self, cpu: usize) -> &[IdleStateParams] {
        self.states.range(..=cpu).next_back().map_or(&[], |(_, states)| states)
    }
}

/// `DIR/NAME.N.trace.txt[.xz]` → `DIR/NAME.meta.txt`.
pub fn meta_path(recording: &Path) -> PathBuf {
    let file = recording.file_name().unwrap_or_default().to_string_lossy();
    let name = file.trim_end_matches(".xz").trim_end_matches(".trace.txt");
    let name = name.rsplit_once('.').map_or(name, |(name, _number)| name);
    recording.with_file_name(format!("{name}.meta.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = "\
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
        let board = Board::parse(META).unwrap();
        assert_eq!((board.governor.as_str(), board.tick_nsec), ("teo", 3_333_333));
        assert_eq!(board.states(3), []);
        assert_eq!(board.states(5).len(), 2);
        let c2 = board.states(5)[1];
        assert_eq!((c2.exit_latency_ns, c2.target_residency_ns), (340_000, 2_500_000));
        assert!(c2.disabled && !c2.polling);
        let path = meta_path(Path::new("d/ui-light.2.trace.txt.xz"));
        assert_eq!(path, Path::new("d/ui-light.meta.txt"));
    }

    #[test]
    fn what_is_missing_or_unreadable_is_named() {
        for (from, to, error) in [
            ("CONFIG_HZ=300", "", "no CONFIG_HZ"),
            ("HZ=300", "HZ=0", "CONFIG_HZ `0` is not a rate"),
            ("current_governor", "governor", "no current_governor"),
            ("340", "-1", "cpu4/cpuidle/state1/latency: `-1` is unreadable"),
            ("state1/res", "state99/res", "cpu4/cpuidle/state99/residency: `2500` is unreadable"),
        ] {
            assert_eq!(Board::parse(&META.replace(from, to)), Err(error.to_string()));
        }
    }
}
