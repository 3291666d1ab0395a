// SPDX-License-Identifier: GPL-2.0-or-later
//! L0 by states: whole decisions of the kernel's own C, on random states of a machine.
//!
//! The other subjects ([`crate::l0`]) compare after each operation of a sequence. A decision of the load
//! balancer looks at a whole machine, so here a case is a line: the state, `=`, the answer of our code.
//! The kernel crate draws the lines (`sched/fair/states.rs`, built with its feature `conformance`); the
//! subject's `shim.c` reads them, computes the kernel's answer from the same state, and compares.
//!
//! ```text
//!   family ──► lines ──► pipe ──► kernel's C ──► equal?
//! ```
//!
//! *Family*: states of one kind on machines of one kind. The *golden file* of a subject has a digest of
//! each family's first lines, written after the kernel's C has agreed with all of them.

use crate::l0::{
    Action, Asked, BuildDir, coverage, extract, home, instructions, kernel_tree, mutate, oracle,
    tree_version,
};
use extract::Pieces;
use schedtwin_kernel::sched::fair::states::Family;
use schedtwin_types::fnv::Fnv1a;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A subject whose cases are states.
pub trait States {
    /// Its name on the command line and in file names.
    const NAME: &'static str;
    /// The environment variable that names the kernel tree of its oracle.
    const TREE: &'static str;
    /// Its families.
    const FAMILIES: &'static [Family];
    /// The sources from which a mutated copy is compiled.
    const SOURCES: mutate::Sources;
    /// Wrong tokens that it must notice.
    const MUTATIONS: &'static [mutate::Mutation];

    /// Returns why the tree's `fair.c` is no oracle of this subject.
    fn refuse(fair: &str) -> Option<String>;
    /// Builds the oracle from a tree. `flags` go to the compiler.
    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String>;
}

/// Declares subjects of states: name, variable of the tree, forms of [`crate::balance::Form`] that are an oracle,
/// families, builder of the oracle, mutations.
macro_rules! subjects {
    ($modules:expr; $(
        $(#[$doc:meta])*
        $name:ident = $text:literal, $tree:expr, $forms:pat, $families:expr, $build:expr, $mutations:expr;
    )*) => {
        $(
            $(#[$doc])*
            pub struct $name;

            impl $crate::states::States for $name {
                const NAME: &'static str = $text;
                const TREE: &'static str = $tree;
                const FAMILIES: &'static [Family] = $families;
                const SOURCES: Sources = Sources { modules: $modules, kernel: None };
                const MUTATIONS: &'static [Mutation] = $mutations;

                fn refuse(fair: &str) -> Option<String> {
                    let form = Form::of(fair);
                    let is_oracle = matches!(form, $forms);
                    (!is_oracle).then(|| {
                        format!("it has the form {form:?}, not {}", stringify!($forms))
                    })
                }

                fn build_oracle(tree: &Path, dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
                    $build(tree, dir, flags)
                }
            }
        )*
    };
}

pub(crate) use subjects;

/// The seed of the golden files.
const GOLDEN_SEED: u64 = 1;
/// Lines of a family that digests cover; of passes a quarter.
const GOLDEN_CASES: u64 = 20_000;
/// Lines of a family that are compared, if not said.
const CASES: u64 = 300_000;
/// The same for each mutation and for coverage.
const CASES_OF_MANY: u64 = 20_000;

/// Returns the text of `kernel/sched/fair.c`.
pub fn read_fair(tree: &Path) -> Result<String, String> {
    extract::read(tree, "kernel/sched/fair.c")
}

/// What is taken out of `fair.c`, in an order in which it compiles.
pub struct Extract<'a> {
    /// Enumerations and structures.
    pub blocks: Vec<&'a str>,
    /// Macros.
    pub macros: Vec<&'a str>,
    /// Functions.
    pub functions: Vec<&'a str>,
}

/// Compiles `NAME/shim.c` with `NAME_extract.h`, the pieces of `fair.c`.
pub fn compile(
    name: &str,
    fair: &str,
    pieces: &Extract<'_>,
    build_dir: &Path,
    flags: &[&str],
) -> Result<PathBuf, String> {
    let mut text = Pieces::default();
    text.add(extract::block, fair, &pieces.blocks)?;
    text.add(extract::macro_definition, fair, &pieces.macros)?;
    text.add(extract::function, fair, &pieces.functions)?;
    text.write(build_dir, &format!("{name}_extract.h"))?;
    oracle::compile(&format!("{name}/shim.c"), &[build_dir], build_dir, flags)
}

/// Hands `cases` lines of each family to the oracle: its summaries and first differences, and whether all
/// are equal.
pub fn compare<S: States>(oracle: &Path, seed: u64, cases: u64) -> Result<(String, bool), String> {
    let (mut text, mut equal) = (String::new(), true);
    for family in S::FAMILIES {
        let (answer, same) = compare_family(family, oracle, seed, cases)?;
        text += &answer;
        equal &= same;
    }
    Ok((text, equal))
}

/// The first family and case that differ, if any does.
pub fn first_difference<S: States>(oracle: &Path, seed: u64, cases: u64) -> Result<(), String> {
    for family in S::FAMILIES {
        let (text, equal) = compare_family(family, oracle, seed, cases)?;
        if !equal {
            let case = text.lines().find(|line| line.starts_with("case ")).unwrap_or_default();
            return Err(format!("{}{} {case}", family.name, family.states));
        }
    }
    Ok(())
}

fn compare_family(
    family: &Family,
    oracle: &Path,
    seed: u64,
    cases: u64,
) -> Result<(String, bool), String> {
    let mut child = Command::new(oracle)
        .arg(format!("{}{}", family.name, family.states))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("run {}: {error}", oracle.display()))?;
    let mut stdin = std::io::BufWriter::new(child.stdin.take().expect("stdin is piped"));
    let mut line = (family.start)(seed);
    for _ in 0..cases / family.share {
        // An oracle that ends early says why.
        if writeln!(stdin, "{}", line()).is_err() {
            break;
        }
    }
    drop(stdin);
    let output = child
        .wait_with_output()
        .map_err(|error| format!("wait for {}: {error}", oracle.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(0) => Ok((text, true)),
        Some(1) => Ok((text, false)),
        _ => Err(text + "the oracle failed"),
    }
}

fn golden_file<S: States>() -> PathBuf {
    home().join("golden").join(format!("{}.txt", S::NAME))
}

/// Returns the golden file's lines of the families.
fn digests<S: States>() -> impl Iterator<Item = String> {
    let line = |family: &Family| {
        let (mut hash, mut line) = (Fnv1a::new(), (family.start)(GOLDEN_SEED));
        let cases = GOLDEN_CASES / family.share;
        (0..cases).for_each(|_| hash.extend((line() + "\n").bytes()));
        format!("{}{} {cases} {:#018x}", family.name, family.states, hash.digest())
    };
    S::FAMILIES.iter().map(line)
}

/// Checks our code against the golden file.
pub fn check<S: States>() -> Result<String, String> {
    let path = golden_file::<S>();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("read {}: {error}", path.display()))?;
    let lines = text.lines().filter(|line| line.contains(" 0x") && !line.starts_with('#'));
    for (kernels, ours) in lines.clone().zip(digests::<S>()) {
        if kernels != ours {
            let (family, kernels) = kernels.split_once(' ').unwrap_or((kernels, ""));
            let ours = ours.trim_start_matches(family);
            return Err(format!("{family} differ\n  kernel {kernels}\n  ours  {ours}"));
        }
    }
    if lines.count() != S::FAMILIES.len() {
        return Err(format!("{}: not the families of {}", path.display(), S::NAME));
    }
    Ok(format!("{}: the digests of {} families are equal", S::NAME, S::FAMILIES.len()))
}

/// Writes the golden file, if the oracle agrees.
fn write_golden<S: States>(oracle: &Path, version: &str) -> Result<String, String> {
    let (text, equal) = compare::<S>(oracle, GOLDEN_SEED, GOLDEN_CASES)?;
    if !equal {
        return Err(format!("our code disagrees with the kernel; not written.\n{text}"));
    }
    let path = golden_file::<S>();
    let name = S::NAME;
    let text = format!(
        "# Golden states of {name}: for each family, lines and the digest of them with our answers,\n\
         # which equal those of the kernel's own C.\n\
         # Written by `schedtwin-conformance l0 {name} --write-golden`.\n\
         tree {version}\n\
         seed {GOLDEN_SEED}\n\
         {}\n",
        digests::<S>().collect::<Vec<_>>().join("\n")
    );
    std::fs::write(&path, text).map_err(|error| format!("write {}: {error}", path.display()))?;
    Ok(format!("wrote {}", path.display()))
}

/// The actions on a subject of states.
pub fn run<S: States + 'static>(asked: &Asked) -> Result<i32, String> {
    if asked.action == Action::Golden {
        println!("{}", check::<S>()?);
        return Ok(0);
    }
    let tree = kernel_tree(S::TREE).ok_or(format!("set {} to a kernel tree", S::TREE))?;
    let version = tree_version(&tree)?;
    if let Some(why) = S::refuse(&read_fair(&tree)?) {
        return Err(format!("{version} in {}: {why}", S::TREE));
    }
    let dir = BuildDir::new(S::NAME)?;
    let build = |flags: &[&str]| S::build_oracle(&tree, dir.path(), flags);
    let cases = |default| asked.cases.unwrap_or(default);
    match asked.action {
        Action::Coverage => {
            let cases = cases(CASES_OF_MANY);
            let compare = |oracle: &Path| {
                let (text, equal) = compare::<S>(oracle, asked.seed, cases)?;
                Ok((!equal).then_some(text))
            };
            println!("{}", coverage::report(S::NAME, dir.path(), cases, build, compare)?);
            Ok(0)
        }
        Action::Mutate => {
            let oracle = build(&["-O2"])?;
            let cases = cases(CASES_OF_MANY);
            let seed = (asked.seed, cases);
            let missed = mutate::report(&plan::<S>(), &oracle, dir.path(), seed, asked.mutations)?;
            Ok((missed != 0) as i32)
        }
        Action::WriteGolden => {
            println!("{}", write_golden::<S>(&build(&["-O2"])?, &version)?);
            Ok(0)
        }
        Action::Instructions => Err(instructions::no_turns(S::NAME)),
        Action::Compare | Action::Golden => {
            let (text, equal) = compare::<S>(&build(&["-O2"])?, asked.seed, cases(CASES))?;
            print!("{} against {version}, seed {}\n{text}", S::NAME, asked.seed);
            Ok(!equal as i32)
        }
    }
}

/// How mutations of the subject are judged.
fn plan<S: States>() -> mutate::Plan<'static> {
    let states = mutate::path_in_driver::<S>();
    let equal = format!("|| states::first_difference::<{states}>(oracle, seed, cases)");
    let golden = mutate::judge("golden", &format!("states::check::<{states}>"));
    mutate::Plan {
        name: S::NAME,
        sources: &S::SOURCES,
        mutations: S::MUTATIONS,
        judges: &["golden", "oracle"],
        driver: golden + &mutate::judge("oracle", &equal),
    }
}
