// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin capture`: prints a script that a device runs to describe itself.
//!
//! The script (`capture.sh`) reads sysfs, debugfs and procfs with nothing but a shell, and writes a machine
//! file and a kernel file. It carries what it cannot read: the built-in kernels, of which it takes the
//! nearest one's rules, and the estimates of interrupts and path costs. They are put in when it is
//! printed, so that they are those of this schedtwin:
//!
//! | in the script | becomes |
//! |---|---|
//! | `@VERSION@` | the version |
//! | `@BUILTIN@` | the releases of the built-in kernels, rising |
//! | `@FEATURES@` | scheduler features, as kernel files and as the kernel spell them |
//! | `@KERNELS@` | an arm of a `case` for each release, with the kernel file as a here-document |
//! | `@COSTS@` | the tables `[interrupts]` and `[path_costs]` of pixel6 |

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::{output, terminal};

const SCRIPT: &str = include_str!("capture.sh");

/// The line that ends a kernel file in the script.
const END_OF_KERNEL: &str = "END_OF_KERNEL";

/// The machine whose interrupts and path costs a captured machine gets.
const COSTS_OF: &str = "pixel6";

/// The line of a kernel file that no device gets.
const NOT_CAPTURED: &str = "captured = false";

/// Told on a terminal in the place of thousands of lines.
const USE: &str = "\
schedtwin capture prints a shell script that a device runs to
describe itself: the script reads sysfs, debugfs and procfs, and writes
machine.toml and kernel.toml. Give it to a shell or to a file:

this machine, into this folder:
  schedtwin capture | sudo sh -s -- .
another machine:
  schedtwin capture | ssh HOST sudo sh -s -- /tmp/capture
a phone:
  schedtwin capture | adb shell su 0 sh -s -- /data/local/tmp/capture
to copy and run it:
  schedtwin capture > capture.sh
to read it here:
  schedtwin capture --print
";

pub fn capture(print: bool) -> Result<(), Failure> {
    match terminal::width() {
        Some(_) if !print => output::print_fit(USE),
        _ => output::print(&script()),
    }
}

/// Writes what this machine says of itself into a directory: `machine.toml` and `kernel.toml`.
pub fn describe(directory: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::bad(format!("failed to capture: {error}"));
    let mut shell = Command::new("sh")
        .args(["-s", "--"])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = shell.stdin.take() {
        input.write_all(script().as_bytes()).map_err(failed)?;
    }
    match shell.wait().map_err(failed)? {
        status if status.success() => Ok(()),
        status => Err(Failure::bad(format!("failed to capture this machine: {status}"))),
    }
}

/// A release as numbers, of a built-in kernel that is called by its release alone.
fn release(name: &str) -> Option<(u32, u32)> {
    let (major, minor) = name.strip_prefix("linux-")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A built-in kernel as one file: a script with nothing but a shell cannot look up what a file extends.
fn whole(name: &str) -> String {
    schedtwin_engine::kernel_as_file(name).expect("built-in kernels are read by a test")
}

/// The script as it is printed.
pub fn script() -> String {
    let mut kernels: Vec<((u32, u32), String)> = schedtwin_engine::kernel_file::builtin_texts()
        .filter(|(_, text)| !text.lines().any(|line| line.starts_with(NOT_CAPTURED)))
        .filter_map(|(name, _)| Some((release(name)?, whole(name))))
        .collect();
    kernels.sort_unstable();
    let mut features = BTreeSet::<String>::new();
    let (mut releases, mut arms) = (Vec::new(), String::new());
    for ((major, minor), text) in kernels {
        releases.push(format!("{major}.{minor}"));
        assert!(text.lines().all(|line| line != END_OF_KERNEL), "a kernel file ends where it ends");
        let _ = writeln!(arms, "    {major}.{minor})\n        cat <<'{END_OF_KERNEL}'");
        let _ = writeln!(arms, "{}\n{END_OF_KERNEL}\n        ;;", text.trim_end());
        let table = text.lines().skip_while(|line| *line != "[features]").skip(1);
        features.extend(table.filter_map(|line| Some(line.split_once(" = ")?.0.to_string())));
    }
    let features: Vec<String> =
        features.iter().map(|name| format!("{name}:{}", name.to_uppercase())).collect();
    SCRIPT
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@BUILTIN@", &releases.join(" "))
        .replace("@FEATURES@", &features.join("\n"))
        .replace("@KERNELS@", arms.trim_end())
        .replace("@COSTS@", &costs())
}

/// The estimates that a device cannot know of itself, marked as such.
fn costs() -> String {
    let source = schedtwin_engine::builtin_machine(COSTS_OF).expect("it is built in");
    let lines = source.text.lines().skip_while(|line| *line != "[interrupts]");
    let mut out = String::new();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let mark = if line.contains(" = ") { " # estimated" } else { "" };
        let _ = writeln!(out, "{line}{mark}");
    }
    out.trim_end().to_string()
}
