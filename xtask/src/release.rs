// SPDX-License-Identifier: GPL-2.0-or-later
//! `cargo xtask release --dry-run`: makes all that a release publishes, and tries each piece where nothing else is.
//!
//! ```text
//! cargo metadata ── order ── cargo package ──────── crates/*.crate ─┐
//! release/build ── profile ── binaries, wheels ─────────────────────┤
//! the binary ── man, completions ── manual archive ─────────────────┼── release/out, SHA256SUMS ── proofs
//! cargo metadata, Cargo.lock ── bill of materials ──────────────────┤
//! CHANGELOG.md ── this version's section ───────────────────────────┤
//! cargo xtask web ── playground archive ────────────────────────────┘
//! ```
//!
//! A step that lacks something from outside (a target of rustup, zig, a browser's target) is skipped by name, and the last lines
//! repeat what was skipped. Everything else that goes wrong ends the command. Nothing here publishes.

mod materials;
mod proof;
mod said;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::web::{self, root, target_folder};
use crate::workspace::{metadata, publishing_order, version_of};
use said::changelog_section;

/// The architectures that a release has binaries and wheels for.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];
/// The shells that have completions.
const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// The options of `cargo xtask release`.
#[derive(clap::Args)]
pub struct Asked {
    /// Make and try, publish nothing; without it the owner's commands are printed
    #[arg(long)]
    pub dry_run: bool,
    /// Binary and wheel for this computer's architecture alone
    #[arg(long)]
    pub host_only: bool,
    /// Pack crates with changes that are not committed
    #[arg(long)]
    pub allow_dirty: bool,
    /// Pack crates without building them from their packages
    #[arg(long)]
    pub no_verify: bool,
}

/// The end of a step.
enum Outcome {
    Done(String),
    /// Something from outside is not to be had; the text says what.
    Skipped(String),
}

/// The steps so far.
struct Steps {
    out: PathBuf,
    log: PathBuf,
    skipped: Vec<String>,
}

/// Makes everything, or says what publishing takes.
pub fn make(asked: &Asked) -> Result<(), String> {
    let metadata = metadata(root(), &["--no-deps"])?;
    let (published, kept) = publishing_order(&metadata)?;
    let version = version_of(&metadata, "schedtwin-cli")?;
    if !asked.dry_run {
        return Err(format!(
            "publishing is the owner's, by hand, after `cargo xtask release --dry-run`:\n{}",
            owners_steps(&version)
        ));
    }
    let begun = Instant::now();
    let out = root().join("release/out");
    let log = target_folder().join("release-log.txt");
    let given = std::env::var_os("PROFILE").map(|path| root().join(path));
    make_folder(&out)?;
    make_folder(&target_folder())?;
    // What another version left is not part of this one.
    for old in files(&out)?.into_iter().filter(|old| given.as_ref() != Some(old)) {
        let removed = if old.is_dir() { fs::remove_dir_all(&old) } else { fs::remove_file(&old) };
        removed.map_err(|error| format!("{}: {error}", old.display()))?;
    }
    fs::write(&log, "").map_err(|error| format!("{}: {error}", log.display()))?;
    println!(
        "schedtwin {version} into {}, the tools' output into {}",
        out.display(),
        log.display()
    );
    let mut steps = Steps { out, log, skipped: Vec::new() };

    steps.step("versions and changelog", |s| s.state(&version))?;
    steps.step("crates", |s| s.crates(&published, &kept, &version, asked))?;
    steps.built(asked.host_only, given.as_deref())?;
    let host = std::env::consts::ARCH;
    steps.step("manual pages, completions", |s| s.manual(host, &version))?;
    steps.step("bills of materials", |s| s.materials())?;
    steps.step("playground", |s| s.playground(&version))?;
    steps.step("checksums", |s| s.checksums())?;
    steps.step("proof: binary alone", |s| s.binary_alone(host))?;
    steps.step("proof: C of a tree", |s| s.tree(host))?;
    steps.step("proof: wheel alone", |s| s.wheel_alone(host))?;

    println!("\n{:.0} s in all; nothing was published", begun.elapsed().as_secs_f64());
    for skipped in &steps.skipped {
        println!("skipped: {skipped}");
    }
    println!("\nThe owner's steps, in this order:\n{}", owners_steps(&version));
    Ok(())
}

/// The commands that publish.
fn owners_steps(version: &str) -> String {
    format!(
        "  git tag -s v{version} && git push origin v{version}\n  \
           cargo publish --workspace --locked\n  \
           twine upload --repository testpypi release/out/*.whl\n  \
           twine upload release/out/*.whl\n  \
           the files of release/out beside the tag, with SHA256SUMS; the image of release/Dockerfile to a registry"
    )
}

impl Steps {
    /// Does one step and prints what it came to and how long it took.
    fn step(
        &mut self,
        name: &str,
        work: impl FnOnce(&Steps) -> Result<Outcome, String>,
    ) -> Result<bool, String> {
        let begun = Instant::now();
        print!("{name}: ");
        std::io::stdout().flush().map_err(|error| error.to_string())?;
        let outcome = work(self).inspect_err(|_| println!("failed"))?;
        let (text, is_done) = match outcome {
            Outcome::Done(text) => (text, true),
            Outcome::Skipped(why) => {
                self.skipped.push(format!("{name}: {why}"));
                (format!("skipped: {why}"), false)
            }
        };
        println!("{text} [{:.1} s]", begun.elapsed().as_secs_f64());
        Ok(is_done)
    }

    /// One version stands everywhere, and the changelog has its section.
    fn state(&self, version: &str) -> Result<Outcome, String> {
        for (file, line) in [
            ("python/Cargo.toml", format!("version = \"{version}\"")),
            ("CITATION.cff", format!("version: {version}")),
            ("release/Dockerfile", format!("schedtwin:{version}")),
        ] {
            if !read(&root().join(file))?.contains(&line) {
                return Err(format!("{file} has no `{line}`"));
            }
        }
        let (heading, text) = changelog_section(&read(&root().join("CHANGELOG.md"))?, version)?;
        write(&self.out.join("CHANGES.md"), &text)?;
        let undated = match heading.ends_with("(unreleased)") {
            true => "; its heading wants a date before the tag",
            false => "",
        };
        Ok(Outcome::Done(format!("CHANGES.md, {} lines{undated}", text.lines().count())))
    }

    /// Packs the crates; cargo builds each from its package, the ones before it among them.
    fn crates(
        &self,
        published: &[String],
        kept: &[String],
        version: &str,
        asked: &Asked,
    ) -> Result<Outcome, String> {
        let mut cargo = Command::new("cargo");
        cargo.args(["package", "--locked"]).env("CARGO_TARGET_DIR", target_folder());
        cargo.args(published.iter().flat_map(|name| ["--package", name]));
        cargo.args(asked.allow_dirty.then_some("--allow-dirty"));
        cargo.args(asked.no_verify.then_some("--no-verify"));
        // It is to compile; nobody runs it.
        cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        self.run(&mut cargo)?;
        let folder = self.out.join("crates");
        make_folder(&folder)?;
        let mut bytes = 0;
        for name in published {
            let file = format!("{name}-{version}.crate");
            let from = target_folder().join("package").join(&file);
            bytes += fs::copy(&from, folder.join(&file))
                .map_err(|error| format!("{}: {error}", from.display()))?;
        }
        Ok(Outcome::Done(format!(
            "{} in this order, {:.1} MB{}: {}; `publish = false`: {}",
            published.len(),
            bytes as f64 / 1e6,
            if asked.no_verify { ", not built from their packages" } else { "" },
            published.join(" "),
            kept.join(" ")
        )))
    }

    /// Binaries and wheels, by `release/build`.
    fn built(&mut self, host_only: bool, given: Option<&Path>) -> Result<(), String> {
        let profile = self.out.join("schedtwin.profdata");
        let tools =
            self.step("zig and maturin from PyPI", |s| match s.build("tools", &[], None) {
                Ok(()) => Ok(Outcome::Done("there".to_string())),
                Err(why) => Ok(Outcome::Skipped(why)),
            })?;
        if !tools {
            return Ok(());
        }
        self.step("profile of what runs often", |s| {
            s.build("profile", &[], given)?;
            sized(&profile)
        })?;
        for architecture in ARCHITECTURES {
            let is_host = architecture == std::env::consts::ARCH;
            for (what, system) in [("binary", "musl"), ("wheel", "gnu")] {
                self.step(&format!("{what} for {architecture}"), |s| {
                    if host_only && !is_host {
                        return Ok(Outcome::Skipped("--host-only".to_string()));
                    }
                    let target = format!("{architecture}-unknown-linux-{system}");
                    if s.run(Command::new("rustup").args(["target", "add", &target])).is_err() {
                        let why = format!("rustup cannot bring the target {target}");
                        return Ok(Outcome::Skipped(why));
                    }
                    s.build(what, &[architecture], Some(&profile))?;
                    sized(&match what {
                        "binary" => s.archive(architecture),
                        _ => s.wheel(architecture)?,
                    })
                })?;
            }
        }
        Ok(())
    }

    fn build(
        &self,
        what: &str,
        architectures: &[&str],
        profile: Option<&Path>,
    ) -> Result<(), String> {
        let mut build = Command::new(root().join("release/build"));
        build.arg(&self.out).args(architectures).env("WHAT", what).env_remove("PROFILE");
        build.env("CARGO_TARGET_DIR", target_folder()).envs(profile.map(|path| ("PROFILE", path)));
        self.run(&mut build).map(|_| ())
    }

    fn archive(&self, architecture: &str) -> PathBuf {
        self.out.join(format!("schedtwin-{architecture}-linux.tar.xz"))
    }

    /// The wheel of this release for an architecture.
    fn wheel(&self, architecture: &str) -> Result<PathBuf, String> {
        let of_it = format!("_{architecture}.whl");
        let found = files(&self.out)?.into_iter().find(|path| name(path).ends_with(&of_it));
        found.ok_or(format!("release/out has no wheel for {architecture}"))
    }

    /// The binary, unpacked into a new folder.
    fn unpacked(&self, architecture: &str) -> Result<tempfile::TempDir, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut tar = Command::new("tar");
        tar.arg("-xJf").arg(self.archive(architecture)).arg("-C").arg(folder.path());
        self.run(tar.arg("--strip-components=1"))?;
        Ok(folder)
    }

    fn manual(&self, host: &str, version: &str) -> Result<Outcome, String> {
        if !self.archive(host).exists() {
            return Ok(Outcome::Skipped(format!("no binary for {host} was built")));
        }
        let folder = self.unpacked(host)?;
        let schedtwin = folder.path().join("schedtwin");
        let (man, shells) = (folder.path().join("man/man1"), folder.path().join("completions"));
        self.run(Command::new(&schedtwin).arg("man").arg(&man))?;
        make_folder(&shells)?;
        for shell in SHELLS {
            let text = self.run(Command::new(&schedtwin).args(["completions", shell]))?;
            write(&shells.join(format!("schedtwin.{shell}")), &text)?;
        }
        let pages = files(&man)?;
        let rendered = match Command::new("man").arg("--version").output() {
            Ok(_) => {
                for page in &pages {
                    let mut render = Command::new("man");
                    let text = self.run(render.args(["--warnings", "--local-file"]).arg(page))?;
                    if !text.contains("SYNOPSIS") {
                        return Err(format!("man prints no synopsis of {}", page.display()));
                    }
                }
                "each rendered by man"
            }
            Err(_) => "not rendered: there is no man",
        };
        let file = self.out.join(format!("schedtwin-{version}-manual.tar.xz"));
        self.pack(&file, folder.path(), &["man", "completions"])?;
        Ok(Outcome::Done(format!("{} pages, {rendered}; {} shells", pages.len(), SHELLS.len())))
    }

    /// An archive that has the same bytes each time.
    fn pack(&self, file: &Path, folder: &Path, names: &[&str]) -> Result<(), String> {
        let time = self.run(Command::new("git").args(["log", "-1", "--format=@%ct"]))?;
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
        tar.arg(format!("--mtime={}", time.trim())).arg("-C").arg(folder);
        self.run(tar.arg("-cJf").arg(file).args(names)).map(|_| ())
    }

    fn playground(&self, version: &str) -> Result<Outcome, String> {
        if let Some(lacks) = web::lacks()? {
            return Ok(Outcome::Skipped(lacks));
        }
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        self.run(Command::new(this).arg("web"))?;
        let file = self.out.join(format!("schedtwin-{version}-playground.tar.xz"));
        self.pack(&file, &target_folder(), &["web"])?;
        sized(&file)
    }

    fn checksums(&self) -> Result<Outcome, String> {
        let sums = self.out.join("SHA256SUMS");
        let mut paths = files(&self.out)?;
        paths.extend(files(&self.out.join("crates"))?);
        let names = paths.iter().filter(|path| path.is_file() && **path != sums);
        let names = names.map(|path| path.strip_prefix(&self.out).expect("it is within"));
        let mut sum = Command::new("sha256sum");
        let text = self.run(sum.arg("--").args(names).current_dir(&self.out))?;
        write(&sums, &text)?;
        let mut check = Command::new("sha256sum");
        self.run(
            check.args(["--check", "--strict", "--quiet", "SHA256SUMS"]).current_dir(&self.out),
        )?;
        Ok(Outcome::Done(format!("SHA256SUMS, {} files", text.lines().count())))
    }

    /// Runs a program, its errors into the log; returns its output.
    fn run(&self, command: &mut Command) -> Result<String, String> {
        let log = fs::OpenOptions::new().append(true).open(&self.log);
        let log = log.map_err(|error| format!("{}: {error}", self.log.display()))?;
        if command.get_current_dir().is_none() {
            command.current_dir(root());
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn();
        let program = command.get_program().display().to_string();
        let output = child.and_then(std::process::Child::wait_with_output);
        let output = output.map_err(|error| format!("failed to run {program}: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = read(&self.log)?;
        let last: Vec<&str> = said.lines().rev().take(12).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Err(format!("{program} ended with {}\n{}", output.status, last.join("\n")))
    }
}

fn sized(file: &Path) -> Result<Outcome, String> {
    let bytes = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?.len();
    Ok(Outcome::Done(format!("{}, {:.1} MB", name(file), bytes as f64 / 1e6)))
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The entries of a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn make_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
