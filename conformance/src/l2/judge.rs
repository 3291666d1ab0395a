// SPDX-License-Identifier: GPL-2.0-or-later
//! `judge`: a patched kernel and the twin's patch, on the same work.
//!
//! Somebody who changes the scheduler has a patched tree, and a patch of the twin that is meant to say the same. The judge builds the
//! board from the tree, boots it on the work several times and once more with the kernel's signals printed, runs
//! the twin with the built-in kernel of the tree's release and the patch (`linux-6.12+PATCH`), and says where the two part: which figures of the executions lie outside of what the real kernel
//! does ([`super`]), and, re-driven from the printed signals, which mechanism differs first ([`crate::l1`]).
//!
//! Without `--patch` the unpatched twin is judged, which must be the case that agrees.
//!
//! Files, all in the folder `--build`: the board (`conformance/board/build` makes it, and compiles only what has changed the
//! next time), `recordings/NAME.wl.txt` and what was recorded.

use super::scenario::{Seeds, Variant};
use super::spread::Score;
use super::{print_score, print_table, read_workload, side_by_side};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the emulated board from a kernel tree, boots it on a workload, runs the twin on the same work, and says
/// where they part: the figures of the executions side by side, then the re-driven mechanisms.
///
/// Exit code: 0 the twin is like the kernel, 1 it is not, 2 it could not be judged.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Sources of Linux, from 6.6 on, with the change to be judged applied; TREE is only read [default: the board that
    /// --build has]
    #[arg(long, value_name = "TREE")]
    kernel: Option<PathBuf>,
    /// The twin's patch that should say the same: built in (schedtwin list patches) or a .toml file
    #[arg(long = "patch", value_name = "NAME")]
    patches: Vec<String>,
    /// Other settings of the twin: linux-6.12:hz=1000, rig8:settle_us=100
    #[arg(long = "with", value_name = "SPEC")]
    variants: Vec<String>,
    /// Recordings to compare with; 20 s to a minute each
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    boots: u32,
    /// Runs of the twin
    #[arg(long, value_name = "N", default_value_t = super::SEEDS, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Boots at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    jobs: u32,
    /// Where the board is built and recordings are kept; the first build takes minutes and 3 GB [default: target/judge]
    #[arg(long, value_name = "DIR")]
    build: Option<PathBuf>,
    /// NAME.wl.txt, as conformance/board/README.md says; conformance/recordings/side-by-side has some
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
}

/// The checked arguments.
struct Arguments<'a> {
    options: &'a Options,
    variant: Variant,
    build: PathBuf,
}

fn look_through(options: &Options) -> Result<Arguments<'_>, String> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/judge");
    let build = options.build.clone().unwrap_or_else(own);
    let mut variant = Variant::of(&options.variants)?;
    variant.patches.extend(options.patches.iter().cloned());
    match &options.kernel {
        Some(tree) if !tree.is_file() && !tree.join("kernel/sched/fair.c").exists() => {
            let why = "is no kernel tree: it has no kernel/sched/fair.c";
            Err(format!("{} {why}", tree.display()))
        }
        None if !build.join("Image").exists() => {
            let why = "has no board yet: give --kernel TREE to build one";
            Err(format!("{} {why}", build.display()))
        }
        _ => Ok(Arguments { options, variant, build }),
    }
}

/// A program of the board's.
fn program(name: &str) -> Result<Command, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("board").join(name);
    match path.exists() {
        true => Ok(Command::new(path)),
        false => Err(format!("{} is not there: it is part of the repository", path.display())),
    }
}

fn succeed(command: &mut Command, what: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} failed ({status}); what it said stands above")),
        Err(error) => Err(format!("{what} could not be started: {error}")),
    }
}

/// The workload's text with signals printed or not.
fn with_probes(text: &str, probes: bool) -> String {
    let other = text.lines().filter(|line| line.split_whitespace().next() != Some("probes"));
    let lines: Vec<&str> = other.collect();
    format!("probes {}\n{}\n", u8::from(probes), lines.join("\n"))
}

fn record(arguments: &Arguments, workload: &Path, times: u32) -> Result<(), String> {
    let mut record = program("record")?;
    record.arg("--build").arg(&arguments.build).arg("--times").arg(times.to_string());
    record.arg("--jobs").arg(arguments.options.jobs.to_string()).arg(workload);
    succeed(&mut record, "recording")
}

fn judge(arguments: &Arguments) -> Result<bool, String> {
    // What the twin cannot run is known before anything is built.
    let workload =
        read_workload(&arguments.options.workload).map_err(|faults| faults.to_string())?;
    let tree = arguments.options.kernel.clone().filter(|tree| tree.is_dir());
    let tree = tree.unwrap_or_else(|| arguments.build.join("source"));
    let variant = &match kernel_of_tree(&tree) {
        Some(name) => arguments.variant.beside(name),
        None => arguments.variant.clone(),
    };
    workload.scenario(Seeds::of_run(1, 1), variant).map_err(|faults| faults.to_string())?;

    if let Some(tree) = &arguments.options.kernel {
        println!("building the board from {}", tree.display());
        let mut build = program("build")?;
        build.arg("--kernel").arg(tree).arg("--out").arg(&arguments.build);
        succeed(&mut build, "building the board")?;
    }

    let folder = arguments.build.join("recordings");
    let write = |name: String, probes: bool| -> Result<PathBuf, String> {
        let path = folder.join(name);
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&path, with_probes(&workload.source.text, probes)))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    };
    let quiet = write(format!("{}.wl.txt", workload.name), false)?;
    let full = write(format!("{}-full.wl.txt", workload.name), true)?;
    // Recordings of another kernel would be judged with these.
    for path in [&quiet, &full] {
        for old in super::recordings_of(path).map_err(|error| error.to_string())? {
            std::fs::remove_file(&old).map_err(|error| format!("{}: {error}", old.display()))?;
        }
    }
    println!("booting it {} times, and once with the kernel's signals", arguments.options.boots);
    record(arguments, &quiet, arguments.options.boots)?;
    record(arguments, &full, 1)?;

    // A tarball has told its release by now.
    let variant = super::beside(
        &arguments.variant,
        &super::recordings_of(&quiet).map_err(|e| e.to_string())?,
    )?;
    println!("\nExecutions: {} and the recordings", workload.kernel_spec(&variant));
    let (rows, _) = side_by_side(&quiet, arguments.options.seeds, &variant)?;
    let score = Score::of(&rows);
    print!("{}", print_table(&rows, false));
    print_score(&workload.name, score);

    let full = super::recordings_of(&full).map_err(|error| error.to_string())?;
    let unpatched = super::beside(&Variant::default(), &full)?;
    let unpatched = unpatched.kernel_name();
    println!(
        "\nMechanisms: unpatched {unpatched}, re-driven from the signals that the kernel printed"
    );
    let mechanisms = crate::l1::mechanisms::main(&crate::l1::mechanisms::Options::of(full));
    if mechanisms == 2 {
        return Err("the recording with signals could not be re-driven; why stands above".into());
    }
    println!("\n{}", verdict(score, mechanisms == 0, unpatched));
    Ok(score.passes())
}

/// Returns the verdict on the two together.
fn verdict(score: Score, mechanisms: bool, unpatched: &str) -> String {
    let text = match (score.passes(), mechanisms) {
        (true, true) => "The twin is like this kernel, and so is each mechanism.",
        (true, false) => {
            "The executions agree, but mechanisms of this kernel are not UNPATCHED's: the work does not show it."
        }
        (false, true) => {
            "The executions part though each mechanism of this kernel is UNPATCHED's: look at the figures that are OUT."
        }
        (false, false) => {
            "They part. The rows above name the mechanisms that differ from UNPATCHED; if the tree has the change and \
             --patch says it, the patch says something else."
        }
    };
    text.replace("UNPATCHED", unpatched)
}

/// The built-in kernel of a tree's release, as its Makefile says it.
fn kernel_of_tree(tree: &Path) -> Option<String> {
    let text = std::fs::read_to_string(tree.join("Makefile")).ok()?;
    let number = |key: &str| {
        let of = |line: &str| {
            line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim().parse().ok()
        };
        text.lines().find_map(of)
    };
    Some(crate::l1::machine::name_of_kernel([number("VERSION")?, number("PATCHLEVEL")?, 0]))
}

/// The command; returns the exit code.
pub fn main(options: &Options) -> i32 {
    match look_through(options).and_then(|arguments| judge(&arguments)) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(message) => {
            eprintln!("{message}");
            2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_set_once() {
        assert_eq!(
            with_probes("gov teo\nprobes 1\ntask a\n", false),
            "probes 0\ngov teo\ntask a\n"
        );
    }

    #[test]
    fn errors_say_what_to_do() {
        let fault = |kernel: Option<&str>, variant: &[&str]| {
            let options = Options {
                kernel: kernel.map(PathBuf::from),
                patches: Vec::new(),
                variants: variant.iter().map(ToString::to_string).collect(),
                boots: 1,
                seeds: 1,
                jobs: 1,
                build: Some("/nowhere".into()),
                workload: "a.wl.txt".into(),
            };
            look_through(&options).err().expect("a fault")
        };
        assert_eq!(fault(None, &[]), "/nowhere has no board yet: give --kernel TREE to build one");
        assert!(fault(Some("/nowhere"), &[]).contains("no kernel/sched/fair.c"));
        assert!(fault(None, &["pixel6:x=1"]).contains("is neither linux-6.12"));
    }
}
