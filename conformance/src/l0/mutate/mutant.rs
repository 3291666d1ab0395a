// SPDX-License-Identifier: GPL-2.0-or-later
//! A copy of our sources with one wrong token, and the program that judges it.
//!
//! The copy is compiled incrementally and hardly optimised: a token costs seconds, and the first compilation half a
//! minute where the whole kernel crate is needed.

use super::{Mutation, Plan};
use crate::l0::home;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A wrong token that makes an endless loop is noticed after so many times of what the unchanged code takes.
const PATIENCE: u32 = 5;
const LEAST_LIMIT: Duration = Duration::from_secs(20);
/// A wrong token that makes an endless list is noticed at so much address space, in KiB.
const MEMORY_KIB: u32 = 8 << 20;

/// What came of a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What each judge of the plan noticed.
    Judged(Vec<Option<String>>),
    /// It does not compile; the compiler's first complaint.
    Refused(String),
}

/// The copy, which is unchanged between two mutations.
pub struct Copy<'a> {
    plan: &'a Plan<'a>,
    dir: &'a Path,
    /// The program's arguments.
    arguments: [String; 3],
    /// How the compiler is told of the crate that the kernel's rests on.
    types: Vec<String>,
    /// How long the judges may take.
    pub limit: Option<Duration>,
}

impl<'a> Copy<'a> {
    /// Makes it in `dir`.
    pub fn new(
        plan: &'a Plan<'a>,
        oracle: &Path,
        dir: &'a Path,
        (seed, cases): (u64, u64),
    ) -> Result<Copy<'a>, String> {
        let arguments = [oracle.display().to_string(), seed.to_string(), cases.to_string()];
        let copy = Copy { plan, dir, arguments, types: types(dir)?, limit: None };
        let source = our_sources();
        let listed = match plan.sources.kernel {
            Some(only) => only.files.iter().map(|file| file.to_string()).collect(),
            None => vec![String::new()],
        };
        for file in listed {
            // A folder: all that is in it.
            let folder = file.is_empty() || file.ends_with('/');
            let inside = if folder { files(&source.join(&file)) } else { Ok(vec![String::new()]) };
            for rest in inside.map_err(at(&source))? {
                copy.put(&format!("{file}{rest}"), &our_text(&format!("{file}{rest}"))?)?;
            }
        }
        if let Some(only) = plan.sources.kernel {
            copy.put("lib.rs", only.library)?;
        }
        copy.write_driver()?;
        Ok(copy)
    }

    /// Compiles the copy with this token in it, and runs the judges. Afterwards the token is out again.
    pub fn judge(&mut self, mutation: Option<&Mutation>) -> Result<Outcome, String> {
        let Some(Mutation { file, from, to }) = mutation else {
            self.compile()?.map_err(|why| format!("the unchanged code does not compile: {why}"))?;
            let started = Instant::now();
            let noticed = self.run()?;
            self.limit.get_or_insert((started.elapsed() * PATIENCE).max(LEAST_LIMIT));
            return Ok(Outcome::Judged(noticed));
        };
        let text = our_text(file)?;
        let places = text.matches(from).count();
        if places != 1 {
            return Err(format!("{file}: '{from}' is there {places} times"));
        }
        self.put(file, &text.replace(from, to))?;
        let outcome = match self.compile()? {
            Ok(()) => Outcome::Judged(self.run()?),
            Err(why) => Outcome::Refused(why),
        };
        self.put(file, &text)?;
        Ok(outcome)
    }

    /// Writes a file of the copy.
    fn put(&self, file: &str, text: &str) -> Result<(), String> {
        let to = self.dir.join("src").join(file);
        std::fs::create_dir_all(to.parent().expect("has a directory")).map_err(at(&to))?;
        std::fs::write(&to, text).map_err(at(&to))
    }

    /// Writes the program that holds the subject's modules and its judges.
    fn write_driver(&self) -> Result<(), String> {
        let modules: String = ["l0"]
            .iter()
            .chain(self.plan.sources.modules)
            .map(|name| {
                let path = home().join("src").join(name).join("mod.rs");
                format!("#[path = {path:?}]\nmod {name};\n")
            })
            .collect();
        let body = &self.plan.driver;
        let text = format!(
            "#![allow(dead_code)]\n{modules}fn main() {{\n\
             let args: Vec<String> = std::env::args().collect();\n\
             let oracle = std::path::Path::new(&args[1]);\n\
             let (seed, cases): (u64, u64) = (args[2].parse().unwrap(), args[3].parse().unwrap());\n\
             {body}}}\n"
        );
        let driver = self.dir.join("driver.rs");
        std::fs::write(&driver, text).map_err(at(&driver))
    }

    /// Compiles the kernel crate and the program; the inner error is the compiler's first complaint.
    fn compile(&self) -> Result<Result<(), String>, String> {
        let kernel = ["--crate-type=rlib", "--crate-name=schedtwin_kernel", "-Cincremental=kernel"];
        let library = ["-o", "libschedtwin_kernel.rlib", "src/lib.rs"];
        if let Err(why) = self.rustc(&[&kernel[..], &library].concat())? {
            return Ok(Err(why));
        }
        let uses = ["--extern", "schedtwin_kernel=libschedtwin_kernel.rlib", "-L", "."];
        self.rustc(&[&uses[..], &["-Cincremental=program", "-o", "driver", "driver.rs"]].concat())
    }

    fn rustc(&self, arguments: &[&str]) -> Result<Result<(), String>, String> {
        let compiler = std::env::var("RUSTC").unwrap_or("rustc".to_string());
        let output = Command::new(&compiler)
            .args(["--edition", "2024", "-Copt-level=1", "-Coverflow-checks=on", "--cap-lints"])
            .args(["allow", "--cfg", "feature=\"conformance\""])
            .args(&self.types)
            .args(arguments)
            .env("CARGO_MANIFEST_DIR", home())
            .current_dir(self.dir)
            .output()
            .map_err(|error| format!("run {compiler}: {error}"))?;
        if output.status.success() {
            return Ok(Ok(()));
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let why = text.lines().find(|line| line.starts_with("error")).unwrap_or(&text);
        Ok(Err(why.to_string()))
    }

    /// What each judge notices. One that has not answered within the limit has noticed the token, and so has one that
    /// crashes.
    fn run(&self) -> Result<Vec<Option<String>>, String> {
        let binary = self.dir.join("driver");
        let said = self.dir.join("said.txt");
        let failed = |error: std::io::Error| format!("run {}: {error}", binary.display());
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"")]);
        command.arg(&binary).args(&self.arguments).stderr(Stdio::null()).process_group(0);
        let mut child =
            command.stdout(File::create(&said).map_err(failed)?).spawn().map_err(failed)?;
        let started = Instant::now();
        let mut otherwise = "a crash";
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if self.limit.is_some_and(|limit| started.elapsed() > limit) {
                child.kill().map_err(failed)?;
                otherwise = "no answer in time";
                break child.wait().map_err(failed)?;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if !status.success() {
            kill_group(child.id());
        }
        let text = std::fs::read_to_string(&said).map_err(failed)?;
        let noticed = |judge: &&str| {
            let answer = text.lines().find_map(|line| line.strip_prefix(judge)?.strip_prefix(' '));
            match answer {
                Some("equal") => None,
                Some(answer) => Some(answer.trim_start_matches("noticed: ").to_string()),
                None => Some(otherwise.to_string()),
            }
        };
        Ok(self.plan.judges.iter().map(noticed).collect())
    }
}

/// Ends what is left of a driver's process group: a kernel's C that a wrong token has sent into an endless loop outlives the driver.
fn kill_group(leader: u32) {
    let group = format!("-{leader}");
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
}

/// The source of the kernel crate.
fn our_sources() -> PathBuf {
    home().join("../crates/schedtwin-kernel/src")
}

/// The text of a file of the kernel crate as the copy has it.
fn our_text(file: &str) -> Result<String, String> {
    let path = our_sources().join(file);
    let text = std::fs::read_to_string(&path).map_err(at(&path))?;
    // What it includes is where it was.
    let kernels = home().join("../kernels/").display().to_string();
    let text = text.replace("../../kernels/", &kernels);
    // Unit tests are not part of this.
    Ok(text.replace("#[cfg(test)]\nmod tests;", ""))
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// All files of a folder, as paths from it on.
fn files(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut directories = vec![folder.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(file) = path.strip_prefix(folder) {
                files.push(file.to_string_lossy().into_owned());
            }
        }
    }
    Ok(files)
}

/// Has the crate that the kernel's rests on compiled, with what it depends on; how the compiler is told of it.
fn types(dir: &Path) -> Result<Vec<String>, String> {
    let (manifest, target) = (home().join("Cargo.toml"), dir.join("types"));
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let status = Command::new(&cargo)
        .args(["build", "--quiet", "--package", "schedtwin-types", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target)
        .status()
        .map_err(|error| format!("run {cargo}: {error}"))?;
    if !status.success() {
        return Err("schedtwin-types cannot be built; why stands above".to_string());
    }
    let built = target.join("debug").display().to_string();
    let library = format!("schedtwin_types={built}/libschedtwin_types.rlib");
    Ok(["-L", &format!("dependency={built}/deps"), "--extern", &library].map(String::from).to_vec())
}
