// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the comparison notices a wrong token: mutations of our own code.
//!
//! Each mutation replaces one piece of text in a copy of our source. The copy and these very tests
//! are compiled with `rustc`, and must disagree with the golden vectors and with the oracle; those of the
//! fair class also with the model in fractions ([`crate::rational`]).

use super::Subject;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A replacement in a file of `crates/schedtwin-kernel/src`.
#[derive(Clone, Copy)]
pub struct Mutation {
    /// The file, from `src/` on.
    pub file: &'static str,
    /// The text that is there, exactly once.
    pub from: &'static str,
    /// The text that is put there.
    pub to: &'static str,
}

/// A mutation, in a short word because subjects have dozens.
pub const fn m(file: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation { file, from, to }
}

/// What forms share, and what one has besides; `N` in all.
pub const fn join<const N: usize>(shared: &[Mutation], own: &[Mutation]) -> [Mutation; N] {
    assert!(shared.len() + own.len() == N);
    let mut all = [m("", "", ""); N];
    let mut at = 0;
    while at < N {
        all[at] = if at < shared.len() { shared[at] } else { own[at - shared.len()] };
        at += 1;
    }
    all
}

/// The sources of ours from which the program with a wrong token in it is compiled.
pub struct Sources {
    /// The folders of `conformance/src` that the subject needs beside this one.
    pub modules: &'static [&'static str],
    /// The modules that it needs of the kernel crate; `None` for all of it, which takes longer to
    /// compile.
    pub kernel: Option<&'static KernelFiles>,
}

/// Files of the kernel crate that compile without the others.
pub struct KernelFiles {
    /// The `lib.rs` that names their modules.
    pub library: &'static str,
    /// Their paths, from `src/` on.
    pub files: &'static [&'static str],
}

/// A subject's mutations, and the program that judges each of them.
pub struct Plan<'a> {
    /// The subject.
    pub name: &'a str,
    /// Its sources.
    pub sources: &'a Sources,
    /// Its wrong tokens.
    pub mutations: &'a [Mutation],
    /// The judges. One that sees no difference prints its name and "equal".
    pub judges: &'a [&'a str],
    /// The body of the program: `oracle`, `seed` and `cases` are its arguments.
    pub driver: String,
}

/// The plan of a subject of sequences. The fair class is also judged by exact fractions.
pub fn plan<S: Subject>() -> Plan<'static> {
    let fractions = S::SOURCES.modules.contains(&"rational");
    let world = path_in_driver::<S>();
    let mut driver = judge("golden", &format!("l0::golden::check::<{world}>"));
    if fractions {
        let compare =
            format!("|| rational::compare::<{world}, rational::{world}>(seed, cases / 50)");
        driver += &judge("fractions", &compare);
    }
    driver += &format!(
        "let found = l0::compare::<{world}>(oracle, seed, cases, true).unwrap();\n\
         if found.differing == 0 {{ println!(\"oracle equal\"); }}\n"
    );
    let judges: &[&str] = match fractions {
        true => &["golden", "oracle", "fractions"],
        false => &["golden", "oracle"],
    };
    Plan { name: S::NAME, sources: &S::SOURCES, mutations: S::MUTATIONS, judges, driver }
}

/// Returns a subject's type by its path, which is the same in the driver but for the name of this crate.
pub fn path_in_driver<S>() -> String {
    std::any::type_name::<S>().replace("schedtwin_conformance::", "")
}

/// Returns driver code by which `name` judges: `check` returns a result, or panics.
pub fn judge(name: &str, check: &str) -> String {
    format!(
        "let judged = std::panic::catch_unwind({check});\n\
         if matches!(judged, Ok(Ok(_))) {{ println!(\"{name} equal\"); }}\n"
    )
}

/// Applies every mutation and runs the checks on it: a table, and how many went unnoticed.
pub fn report(
    plan: &Plan<'_>,
    oracle: &Path,
    build_dir: &Path,
    seed: u64,
    cases: u64,
) -> Result<(String, usize), String> {
    let count = plan.mutations.len();
    let mut table = format!("{count} mutations of our {}:\n", plan.name);
    let mut missed = 0;
    // Unchanged code must pass, or a failure would mean nothing.
    let started = Instant::now();
    let unchanged = run(plan, None, (oracle, build_dir), (seed, cases), None)?;
    let limit = Some((started.elapsed() * PATIENCE).max(LEAST_LIMIT));
    if unchanged.contains(&true) {
        return Err("the unchanged code does not pass".to_string());
    }
    for (at, mutation) in plan.mutations.iter().enumerate() {
        let caught = run(plan, Some(mutation), (oracle, build_dir), (seed, cases), limit)?;
        missed += caught.contains(&false) as usize;
        let mut line = String::new();
        for (judge, caught) in plan.judges.iter().zip(caught) {
            line += &format!("  {judge} {}", if caught { "caught" } else { "MISSED" });
        }
        line += &format!(
            "  {}: {} -> {}\n",
            mutation.file,
            mutation.from.replace('\n', " "),
            mutation.to.replace('\n', " ")
        );
        // Each takes a minute or two.
        eprint!("{} of {count}:{line}", at + 1);
        table += &line;
    }
    table += &format!("{} of {count} caught by all", count - missed);
    Ok((table, missed))
}

/// A wrong token that makes an endless loop is noticed after so many times of what the unchanged code takes, compilation included.
const PATIENCE: u32 = 5;
const LEAST_LIMIT: Duration = Duration::from_secs(60);

/// Which judges notice the mutation. One that has not answered within the limit does.
fn run(
    plan: &Plan<'_>,
    mutation: Option<&Mutation>,
    (oracle, build_dir): (&Path, &Path),
    (seed, cases): (u64, u64),
    limit: Option<Duration>,
) -> Result<Vec<bool>, String> {
    let binary = build(plan, mutation, build_dir)?;
    let said = build_dir.join("said.txt");
    let failed = |error: std::io::Error| format!("run {}: {error}", binary.display());
    let mut command = Command::new(&binary);
    command.arg(oracle).arg(seed.to_string()).arg(cases.to_string());
    let mut child = command.stdout(File::create(&said).map_err(failed)?).spawn().map_err(failed)?;
    let started = Instant::now();
    while child.try_wait().map_err(failed)?.is_none() {
        if limit.is_some_and(|limit| started.elapsed() > limit) {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // A panic is a noticed difference too.
    let text = std::fs::read_to_string(&said).map_err(failed)?;
    Ok(plan.judges.iter().map(|judge| !text.contains(&format!("{judge} equal"))).collect())
}

/// All files of a folder, as paths from it on.
fn files(source: &Path) -> std::io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut directories = vec![source.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(file) = path.strip_prefix(source) {
                files.push(file.to_string_lossy().into_owned());
            }
        }
    }
    Ok(files)
}

/// Has the crate that the kernel's rests on compiled, with what it depends on; how the compiler is told of it.
fn types(dir: &Path) -> Result<Vec<String>, String> {
    let (manifest, target) = (super::home().join("Cargo.toml"), dir.join("types"));
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

/// Compiles the mutated files, and these modules against them.
fn build(plan: &Plan<'_>, mutation: Option<&Mutation>, dir: &Path) -> Result<PathBuf, String> {
    let crates = super::home().join("../crates");
    let source = crates.join("schedtwin-kernel/src");
    let copy = dir.join("src");
    let say = |what: &Path| {
        let what = what.display().to_string();
        move |error: std::io::Error| format!("{what}: {error}")
    };
    let files = match plan.sources.kernel {
        Some(only) => {
            let mut all = Vec::new();
            for file in only.files {
                match file.strip_suffix('/') {
                    // A folder: all that is in it.
                    Some(folder) => {
                        let inside = files(&source.join(folder)).map_err(say(&source))?;
                        all.extend(inside.iter().map(|file| format!("{folder}/{file}")));
                    }
                    None => all.push(file.to_string()),
                }
            }
            all
        }
        None => files(&source).map_err(say(&source))?,
    };
    for file in files {
        let from = source.join(&file);
        let mut text = std::fs::read_to_string(&from).map_err(say(&from))?;
        if let Some(mutation) = mutation.filter(|mutation| mutation.file == file) {
            let places = text.matches(mutation.from).count();
            if places != 1 {
                return Err(format!("{file}: '{}' is there {places} times", mutation.from));
            }
            text = text.replace(mutation.from, mutation.to);
        }
        // What they include is where it was.
        let kernels = super::home().join("../kernels/").display().to_string();
        text = text.replace("../../kernels/", &kernels);
        // Their unit tests are not part of this.
        text = text.replace("#[cfg(test)]\nmod tests;", "");
        let to = copy.join(&file);
        std::fs::create_dir_all(to.parent().expect("has a directory")).map_err(say(&to))?;
        std::fs::write(&to, text).map_err(say(&to))?;
    }
    let write = |path: &Path, text: &str| std::fs::write(path, text).map_err(say(path));
    let library = copy.join("lib.rs");
    if let Some(only) = plan.sources.kernel {
        write(&library, only.library)?;
    }
    let driver = dir.join("driver.rs");
    let modules: String = ["l0"]
        .iter()
        .chain(plan.sources.modules)
        .map(|name| {
            let path = super::home().join("src").join(name).join("mod.rs");
            format!("#[path = {path:?}]\nmod {name};\n")
        })
        .collect();
    let body = &plan.driver;
    write(
        &driver,
        &format!(
            "#![allow(dead_code)]\n{modules}fn main() {{\n\
             let args: Vec<String> = std::env::args().collect();\n\
             let oracle = std::path::Path::new(&args[1]);\n\
             let (seed, cases): (u64, u64) = (args[2].parse().unwrap(), args[3].parse().unwrap());\n\
             {body}}}\n"
        ),
    )?;
    let rustc = |arguments: &[&str]| -> Result<(), String> {
        let compiler = std::env::var("RUSTC").unwrap_or("rustc".to_string());
        let output = Command::new(&compiler)
            .args(["--edition", "2024", "-Copt-level=2", "-Coverflow-checks=on", "--cap-lints"])
            .args(["allow", "--cfg", "feature=\"conformance\""])
            .args(arguments)
            .env("CARGO_MANIFEST_DIR", super::home())
            .current_dir(dir)
            .output()
            .map_err(|error| format!("run {compiler}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{arguments:?}:\n{}", String::from_utf8_lossy(&output.stderr)))
    };
    let library = library.to_string_lossy();
    let rlib = |name: &str, path: &str, externs: &[&str]| {
        let (crate_name, output) = (format!("--crate-name={name}"), format!("lib{name}.rlib"));
        let arguments = ["--crate-type=rlib", &crate_name, "-o", &output, path];
        rustc(&[&arguments, externs].concat())
    };
    let types = types(dir)?;
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    rlib("schedtwin_kernel", &library, &types)?;
    let kernel =
        ["--extern", "schedtwin_kernel=libschedtwin_kernel.rlib", "-L", ".", "-o", "driver"];
    rustc(&[&kernel, types.as_slice(), &[&driver.to_string_lossy()]].concat())?;
    Ok(dir.join("driver"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::teo::Teo;

    /// The driver builds, and the golden vectors alone tell a wrong token from none.
    #[test]
    fn a_wrong_token_is_noticed_without_a_tree() {
        let dir = super::super::BuildDir::new("mutate-test").unwrap();
        let no_oracle = Path::new("/no/oracle");
        let plan = plan::<Teo>();
        let noticed = |mutation, limit| {
            run(&plan, mutation, (no_oracle, dir.path()), (1, 1), limit).unwrap()[0]
        };
        assert!(!noticed(None, None));
        assert!(noticed(Some(&Teo::MUTATIONS[0]), None));
        // Judges that do not answer within the limit have noticed it.
        assert!(noticed(None, Some(Duration::ZERO)));
    }
}
