// SPDX-License-Identifier: GPL-2.0-or-later
//! Clocks, medians and child processes.

use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::io;
use std::process::{Command, Output};

/// CPU time of this thread so far, s.
pub fn thread_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process so far, s.
pub fn process_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// CPU time that `work` takes, s, and its result.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = thread_seconds();
    let result = black_box(work());
    (thread_seconds() - before, result)
}

/// The middle of the values; of an even number the mean of the middle two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// The least and the greatest.
pub fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), v| (low.min(*v), high.max(*v)))
}

/// The most memory that this process has had, KiB (`VmHWM` of `/proc/self/status`); `None` elsewhere.
pub fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// This program once more, with other arguments, after `wrapper` (a program and its arguments) if that is
/// not empty.
pub fn child(wrapper: &[&str], arguments: &[&str]) -> io::Result<Output> {
    let program = std::env::current_exe()?;
    let mut command = match wrapper.split_first() {
        None => Command::new(&program),
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(&program);
            command
        }
    };
    let output = command.args(arguments).output()?;
    if output.status.success() {
        Ok(output)
    } else {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(io::Error::other(format!("{} {arguments:?}: {said}", program.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(range(&[4.0, 1.0, 3.0]), (1.0, 4.0));
    }
}
