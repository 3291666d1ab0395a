//! `judge`: a patched kernel and the twin's patch, on the same work.
//!
//! Somebody who changes the scheduler has a patched tree, and a patch of the twin that is meant to say the same. The judge builds the
//! board from the tree, boots it on the work several times and once more with the kernel's signals printed, runs
//! the twin with `linux-6.12+PATCH`, and says where the two part: which figures of the executions lie outside of what the real kernel
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

const USAGE: &str = "\
usage: conformance/judge [--kernel TREE] [--patch NAME]... [--with SPEC]... [--boots N] [--seeds N] [--jobs N]
                         [--build DIR] WORKLOAD.wl.txt
  builds the emulated board from a kernel tree, boots it on a workload, runs the twin on the same work, and says
  where they part: the figures of the executions side by side, then the re-driven mechanisms
  --kernel TREE  sources of Linux 6.12, with the change to be judged applied; TREE is only read. Without it
                 the board that --build has is taken as it is
  --patch NAME   the twin's patch that should say the same: built in (schedtwin list patches) or a .toml file
  --with SPEC    other settings of the twin, as linux-6.12:hz=1000 or rig8:settle_us=100
  --boots N      recordings to compare with (default 8; 20 s to a minute each)
  --seeds N      runs of the twin (default 40)
  --jobs N       boots at a time (default 1)
  --build DIR    where the board is built and recordings are kept (default target/judge; the first build
                 takes minutes and 3 GB)
  WORKLOAD       as conformance/board/README.md says; conformance/recordings/side-by-side has some
exit: 0 the twin is like the kernel, 1 it is not, 2 it could not be judged";

struct Arguments {
    kernel: Option<PathBuf>,
    variant: Variant,
    boots: u32,
    seeds: u64,
    jobs: u32,
    build: PathBuf,
    workload: PathBuf,
}

fn parse(args: &[String]) -> Result<Arguments, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut kernel, mut workload, mut variant) = (None, None, Variant::default());
    let (mut boots, mut seeds, mut jobs, mut build) =
        (8, super::SEEDS, 1, root.join("target/judge"));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--kernel" => kernel = Some(PathBuf::from(value()?)),
            "--patch" => variant.patches.push(value()?.clone()),
            "--with" => variant.add(value()?)?,
            "--boots" => boots = count(arg, value()?)?,
            "--seeds" => seeds = u64::from(count(arg, value()?)?),
            "--jobs" => jobs = count(arg, value()?)?,
            "--build" => build = PathBuf::from(value()?),
            flag if flag.starts_with('-') => return Err(format!("there is no option {flag}")),
            path if workload.is_none() => workload = Some(PathBuf::from(path)),
            path => return Err(format!("a second workload, {path}")),
        }
    }
    match &kernel {
        Some(tree) if !tree.is_file() && !tree.join("kernel/sched/fair.c").exists() => {
            let why = "is no kernel tree: it has no kernel/sched/fair.c";
            return Err(format!("{} {why}", tree.display()));
        }
        None if !build.join("Image").exists() => {
            let why = "has no board yet: give --kernel TREE to build one";
            return Err(format!("{} {why}", build.display()));
        }
        _ => {}
    }
    let workload = workload.ok_or("a WORKLOAD is missing")?;
    Ok(Arguments { kernel, variant, boots, seeds, jobs, build, workload })
}

fn count(name: &str, text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| format!("{name} is `{text}`, not a number from 1 to 1000"))
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
    record.arg("--jobs").arg(arguments.jobs.to_string()).arg(workload);
    succeed(&mut record, "recording")
}

fn judge(arguments: &Arguments) -> Result<bool, String> {
    // What the twin cannot run is known before anything is built.
    let workload = read_workload(&arguments.workload).map_err(|faults| faults.to_string())?;
    workload
        .scenario(Seeds::of_run(1, 1), &arguments.variant)
        .map_err(|faults| faults.to_string())?;

    if let Some(tree) = &arguments.kernel {
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
    println!("booting it {} times, and once with the kernel's signals", arguments.boots);
    record(arguments, &quiet, arguments.boots)?;
    record(arguments, &full, 1)?;

    println!("\nExecutions: {} and the recordings", workload.kernel_spec(&arguments.variant));
    let rows = side_by_side(&quiet, arguments.seeds, &arguments.variant)?;
    let score = Score::of(&rows);
    print!("{}", print_table(&rows, false));
    print_score(&workload.name, score);

    println!(
        "\nMechanisms: unpatched linux-6.12, re-driven from the signals that the kernel printed"
    );
    let full: Vec<String> = super::recordings_of(&full)
        .map_err(|error| error.to_string())?
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let mechanisms = crate::l1::mechanisms::main(&full);
    if mechanisms == 2 {
        return Err("the recording with signals could not be re-driven; why stands above".into());
    }
    println!("\n{}", verdict(score, mechanisms == 0));
    Ok(score.passes())
}

/// What to make of the two together.
fn verdict(score: Score, mechanisms: bool) -> &'static str {
    match (score.passes(), mechanisms) {
        (true, true) => "The twin is like this kernel, and so is each mechanism.",
        (true, false) => {
            "The executions agree, but mechanisms of this kernel are not linux-6.12's: the work does not show it."
        }
        (false, true) => {
            "The executions part though each mechanism of this kernel is linux-6.12's: look at the figures that are OUT."
        }
        (false, false) => {
            "They part. The rows above name the mechanisms that differ from linux-6.12; if the tree has the change and \
             --patch says it, the patch says something else."
        }
    }
}

/// The command.
pub fn main(args: &[String]) -> i32 {
    if args.iter().any(|arg| arg == "-h" || arg == "--help") {
        println!("{USAGE}");
        return 0;
    }
    let arguments = match parse(args) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return 2;
        }
    };
    match judge(&arguments) {
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
        let fault = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            parse(&args).err().expect("a fault")
        };
        let unbuilt = fault(&["--build", "/nowhere", "a.wl.txt"]);
        assert_eq!(unbuilt, "/nowhere has no board yet: give --kernel TREE to build one");
        assert_eq!(fault(&["--kernel"]), "--kernel needs a value");
        assert!(fault(&["--kernel", "/nowhere", "a.wl.txt"]).contains("no kernel/sched/fair.c"));
        assert!(fault(&["--boots", "0", "a.wl.txt"]).starts_with("--boots is `0`, not a number"));
        assert!(fault(&["--with", "pixel6:x=1"]).contains("is neither linux-6.12"));
    }
}
