// SPDX-License-Identifier: GPL-2.0-or-later
//! L0: our arithmetic against the kernel's own C, bit for bit.
//!
//! **The idea.** A small C program (`shim.c` of the subject) includes `pelt.c` or `teo.c` of a
//! kernel tree that the user points at (`SCHEDTWIN_KERNEL_TREE`), and is compiled when the test
//! runs. Both sides execute the same random sequences of operations; after each operation every
//! value that it returned or touched goes into a digest. One digest per sequence is compared. If
//! one differs, the sequence is run again with everything written out, and the first operation that
//! differs is shown, with its arguments.
//!
//! ```text
//!   generator ──► operations ──┬──► schedtwin-kernel ──► digest ─┐
//!   (seed, case)               └──► pipe ──► kernel's C ► digest ┴─► equal?
//! ```
//!
//! **Terms.** *Subject*: what is tested: `pelt`, `pelt-6.1`, `teo`, `eevdf`, … Each has a folder beside this one
//! with its world, its `shim.c` and its mutations; [`crate::subjects`] lists them. Here is what they share:
//! the machinery, and in `shim` the C headers. *World*: its state during a sequence.
//! *Case*: number of a sequence; with the seed it determines the sequence entirely. *Oracle*: the
//! compiled C program. *Golden vectors*: sequences with the oracle's answers, committed as text
//! (`conformance/golden`), so that machines without a kernel tree check something too.
//!
//! Functions of `fair.c` cannot be compiled alone; their text is cut out of the tree when the oracle
//! is built ([`extract`]) and never stored. `--coverage` shows that the sequences reach every branch
//! of the kernel's file; `mutate` shows that they notice a wrong token in ours.
//!
//! Load balancing and wakeups are compared by whole states instead of sequences: [`crate::states`].

pub mod coverage;
pub mod extract;
pub mod golden;
pub mod instructions;
pub mod mutate;
pub mod oracle;

use oracle::Oracle;
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::Instant;

/// Arguments of an operation.
pub const ARGS: usize = 6;
/// Operation numbers that the protocol itself uses (`protocol.h`).
const OP_END: u64 = 0;
const OP_BEGIN: u64 = 1;
/// The number of a subject's first own operation.
const OP_FIRST: u64 = 2;
/// Longest sequence of operations.
const SEQUENCE_MAX: usize = 256;

/// One operation: index into [`Subject::OPS`] and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which operation.
    pub op: usize,
    /// Its arguments; unused ones are 0.
    pub args: [u64; ARGS],
}

impl Record {
    /// An operation whose other arguments are 0.
    pub fn new(op: usize, first: &[u64]) -> Record {
        let mut args = [0; ARGS];
        args[..first.len()].copy_from_slice(first);
        Record { op, args }
    }
}

/// Name of an operation and of its arguments.
pub struct OpSpec {
    /// As the golden vectors spell it.
    pub name: &'static str,
    /// In order.
    pub args: &'static [&'static str],
}

/// The words that an operation returned and touched: they are compared.
#[derive(Default)]
pub struct Out {
    digest: u64,
    /// With `verbose`: label and value of each word since the last [`Out::take`].
    words: Vec<(String, u64)>,
    verbose: bool,
}

impl Out {
    /// For digests only.
    pub fn quiet() -> Out {
        Out::default()
    }

    /// For everything.
    pub fn verbose() -> Out {
        Out { verbose: true, ..Out::default() }
    }

    /// Adds a word. `owner` is the structure, may be empty.
    #[inline]
    pub fn word(&mut self, owner: &str, field: &str, value: u64) {
        self.digest = mix(self.digest, value);
        if self.verbose {
            let dot = if owner.is_empty() { "" } else { "." };
            self.words.push((format!("{owner}{dot}{field}"), value));
        }
    }

    /// The words of the last operation.
    pub fn take(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.words)
    }
}

/// The digest's step, the same as `out_flush` of `protocol.h`.
#[inline]
pub fn mix(digest: u64, word: u64) -> u64 {
    let mixed = (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

/// Something with an oracle.
pub trait Subject: Sized {
    /// Its name on the command line and in file names.
    const NAME: &'static str;
    /// The environment variable that names the kernel tree of its oracle.
    const TREE: &'static str = TREE;
    /// Its operations, numbered as in its shim.
    const OPS: &'static [OpSpec];
    /// The sources from which a mutated copy is compiled.
    const SOURCES: mutate::Sources;
    /// Wrong tokens in files of `crates/schedtwin-kernel/src` that it must notice.
    const MUTATIONS: &'static [mutate::Mutation];
    /// How many sequences the golden vectors show in full.
    const GOLDEN_SHOWN: u64;
    /// How many sequences the digest of the golden vectors covers.
    const GOLDEN_CASES: u64 = 20_000;

    /// The operations with which tasks take turns, of queues of the fair class.
    const TURNS: Option<instructions::TurnOps> = None;

    /// An empty world.
    fn new() -> Self;
    /// Executes one operation with our code.
    fn operate(&mut self, record: &Record, out: &mut Out);
    /// The next operation of a random sequence, from step 0 on; `None` ends it. May look at the
    /// world, to aim at the edges of what it is in.
    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record>;
    /// Builds the oracle from a tree. `flags` go to the compiler.
    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String>;
}

/// A random sequence and the digest of what our code made of it.
pub fn sequence<S: Subject>(seed: u64, case: u64) -> (Vec<Record>, u64) {
    let mut rng = Rng::new(seed, case);
    let mut world = S::new();
    let mut out = Out::quiet();
    let mut records = Vec::new();
    while let Some(record) = world.next(records.len(), &mut rng) {
        assert!(records.len() < SEQUENCE_MAX, "a generator that does not end");
        world.operate(&record, &mut out);
        records.push(record);
    }
    (records, out.digest)
}

/// Replays given operations with our code: returns the words of each.
pub fn replay<S: Subject>(records: &[Record]) -> Vec<Vec<(String, u64)>> {
    let mut world = S::new();
    let mut out = Out::verbose();
    records
        .iter()
        .map(|record| {
            world.operate(record, &mut out);
            out.take()
        })
        .collect()
}

/// An operation as text: `name arg=value …`.
pub fn describe<S: Subject>(record: &Record) -> String {
    let spec = &S::OPS[record.op];
    let mut text = spec.name.to_string();
    for (name, value) in spec.args.iter().zip(record.args) {
        text += &format!(" {name}={}", value as i64);
    }
    text
}

/// The compiler's flag for what a tree has where we differ by declaration.
pub const AS_WRITTEN: &str = "-DAS_WRITTEN";

/// Names a tree of Linux 6.12.
pub const TREE: &str = "SCHEDTWIN_KERNEL_TREE";
/// The variable that names a tree of 5.14 to 5.19.
pub const TREE_5_19: &str = "SCHEDTWIN_KERNEL_TREE_5_19";
/// The variable that names a tree of 6.3.
pub const TREE_6_3: &str = "SCHEDTWIN_KERNEL_TREE_6_3";
/// Names a tree of Linux 6.1, of the subjects that are older than 6.12.
pub const TREE_6_1: &str = "SCHEDTWIN_KERNEL_TREE_6_1";
/// The variable that names a tree of 6.18.
pub const TREE_6_18: &str = "SCHEDTWIN_KERNEL_TREE_6_18";
/// The variable that names a tree of 7.3.
pub const TREE_7_3: &str = "SCHEDTWIN_KERNEL_TREE_7_3";

/// The kernel tree that tests may use: what the environment variable says.
pub fn kernel_tree(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

/// "Linux 6.12.3" of a tree, from its Makefile.
pub fn tree_version(tree: &Path) -> Result<String, String> {
    let makefile = std::fs::read_to_string(tree.join("Makefile"))
        .map_err(|error| format!("read {}: {error}", tree.join("Makefile").display()))?;
    let value = |key: &str| {
        makefile
            .lines()
            .find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))
            .map_or("?".to_string(), |value| value.trim().to_string())
    };
    // What is patched says so.
    let extra = value("EXTRAVERSION").replace('?', "");
    let numbers = [value("VERSION"), value("PATCHLEVEL"), value("SUBLEVEL")];
    Ok(format!("Linux {}{extra}", numbers.join(".")))
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Sequences compared.
    pub cases: u64,
    /// Operations in them.
    pub operations: u64,
    /// Sequences whose digests differ.
    pub differing: u64,
    /// The first of them, explained.
    pub first_difference: Option<String>,
    /// Wall time.
    pub seconds: f64,
}

struct Batch {
    first_case: u64,
    operations: u64,
    digests: Vec<u64>,
    bytes: Vec<u8>,
}

/// Compares `cases` sequences with an oracle; stops at the first difference if `stop_early`.
pub fn compare<S: Subject>(
    oracle: &Path,
    seed: u64,
    cases: u64,
    stop_early: bool,
) -> Result<Comparison, String> {
    const BATCH: u64 = 512;
    let started = Instant::now();
    let mut child = Oracle::start(oracle)?;
    let mut stdin = child.take_stdin();
    let mut found = Comparison::default();
    let mut first_differing = None;

    // Three parties in a row, each with a bounded queue: generate and execute; write to the
    // oracle; read and compare (here).
    std::thread::scope(|scope| -> Result<(), String> {
        let (to_writer, from_generator) = sync_channel::<Batch>(4);
        let (to_reader, from_writer) = sync_channel::<Batch>(64);
        scope.spawn(move || {
            let mut first_case = 0;
            while first_case < cases {
                let batch = generate_batch::<S>(seed, first_case, BATCH.min(cases - first_case));
                first_case += batch.digests.len() as u64;
                if to_writer.send(batch).is_err() {
                    return;
                }
            }
        });
        scope.spawn(move || {
            use std::io::Write;
            for mut batch in from_generator {
                if stdin.write_all(&batch.bytes).is_err() {
                    return;
                }
                batch.bytes = Vec::new();
                if to_reader.send(batch).is_err() {
                    return;
                }
            }
        });
        for batch in from_writer {
            found.operations += batch.operations;
            for (i, &ours) in batch.digests.iter().enumerate() {
                let theirs = child.read_word()?;
                found.cases += 1;
                if ours != theirs {
                    found.differing += 1;
                    first_differing.get_or_insert(batch.first_case + i as u64);
                }
            }
            if stop_early && found.differing != 0 {
                child.kill();
                break;
            }
        }
        Ok(())
    })?;
    if found.cases != cases && found.differing == 0 {
        return Err(format!("the oracle ended after {} of {cases} sequences", found.cases));
    }
    if found.cases == cases {
        // A program built for coverage writes its counts when it ends by itself.
        child.finish()?;
    }
    if let Some(case) = first_differing {
        found.first_difference = Some(explain::<S>(oracle, seed, case)?);
    }
    found.seconds = started.elapsed().as_secs_f64();
    Ok(found)
}

fn generate_batch<S: Subject>(seed: u64, first_case: u64, count: u64) -> Batch {
    let mut batch = Batch {
        first_case,
        operations: 0,
        digests: Vec::new(),
        bytes: Vec::with_capacity(1 << 20),
    };
    for case in first_case..first_case + count {
        let made = std::panic::catch_unwind(|| sequence::<S>(seed, case));
        let (records, digest) = made.unwrap_or_else(|panic| {
            eprintln!("{} seed {seed} case {case}: ours panics", S::NAME);
            std::panic::resume_unwind(panic)
        });
        batch.operations += records.len() as u64;
        oracle::encode(&records, false, &mut batch.bytes);
        batch.digests.push(digest);
    }
    batch
}

/// The first operation of a case at which the oracle and our code differ.
fn explain<S: Subject>(oracle: &Path, seed: u64, case: u64) -> Result<String, String> {
    let (records, _) = sequence::<S>(seed, case);
    let theirs = Oracle::start(oracle)?.replay(&records)?;
    let ours = replay::<S>(&records);
    for (step, ((record, ours), theirs)) in records.iter().zip(&ours).zip(&theirs).enumerate() {
        let values: Vec<u64> = ours.iter().map(|word| word.1).collect();
        if values == *theirs {
            continue;
        }
        let mut text =
            format!("{} seed {seed} case {case} step {step}: {}\n", S::NAME, describe::<S>(record));
        for ((label, ours), theirs) in ours.iter().zip(theirs) {
            if ours != theirs {
                text += &format!("  {label}: ours {ours}, kernel {theirs}\n");
            }
        }
        if ours.len() != theirs.len() {
            text += &format!("  words: ours {}, kernel {}\n", ours.len(), theirs.len());
        }
        return Ok(text);
    }
    Ok(format!("case {case}: digests differ, but no word does"))
}

/// A directory for what is built; removed when dropped.
pub struct BuildDir(PathBuf);

impl BuildDir {
    /// Makes one for this process and purpose.
    pub fn new(purpose: &str) -> Result<BuildDir, String> {
        let name = format!("schedtwin-l0-{}-{purpose}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)
            .map_err(|error| format!("create {}: {error}", path.display()))?;
        Ok(BuildDir(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for BuildDir {
    fn drop(&mut self) {
        // Left-overs in the temporary directory harm nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `conformance/`.
pub fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The action on a subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Compare with the kernel's C.
    #[default]
    Compare,
    /// Which branches of the kernel's file the sequences take.
    Coverage,
    /// Whether wrong tokens in our code are noticed.
    Mutate,
    /// Check the golden vectors, which needs no tree.
    Golden,
    /// Write them anew.
    WriteGolden,
    /// Count the instructions of the kernel's functions.
    Instructions,
}

/// The request of the user.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// The action.
    pub action: Action,
    /// Sequences; as many as the action usually takes.
    pub cases: Option<u64>,
    /// With the number of a sequence it determines that sequence.
    pub seed: u64,
    /// Take our declared differences back on the kernel's side, so that sequences that show them differ: of PELT a run queue's sum
    /// beyond 32 bits (`sched/pelt/attach.rs`), of 6.18's EEVDF slices that are no more (`sched/fair/eevdf/v6_18.rs`).
    pub as_written: bool,
    /// The mutations to make.
    pub mutations: mutate::Range,
}

/// The actions on a subject: exit code 0 equal, 1 different.
pub type Run = fn(&Asked) -> Result<i32, String>;

/// The actions on a subject of sequences.
pub fn run<S: Subject>(asked: &Asked) -> Result<i32, String> {
    let Asked { action, cases, seed, as_written, mutations } = *asked;
    if action == Action::Golden {
        println!("{}", golden::check::<S>()?);
        return Ok(0);
    }
    let tree = kernel_tree(S::TREE).ok_or(format!("set {} to a kernel tree", S::TREE))?;
    let version = tree_version(&tree)?;
    let dir = BuildDir::new(S::NAME)?;
    match action {
        Action::Coverage => {
            let cases = cases.unwrap_or(100_000);
            let build = |flags: &[&str]| S::build_oracle(&tree, dir.path(), flags);
            let compare =
                |oracle: &Path| Ok(compare::<S>(oracle, seed, cases, false)?.first_difference);
            println!("{}", coverage::report(S::NAME, dir.path(), cases, build, compare)?);
            Ok(0)
        }
        Action::Mutate => {
            let oracle = S::build_oracle(&tree, dir.path(), &["-O2"])?;
            let cases = cases.unwrap_or(100_000);
            let plan = mutate::plan::<S>();
            let missed = mutate::report(&plan, &oracle, dir.path(), (seed, cases), mutations)?;
            Ok((missed != 0) as i32)
        }
        Action::WriteGolden => {
            let oracle = S::build_oracle(&tree, dir.path(), &["-O2"])?;
            println!("{}", golden::write::<S>(&oracle, &version, seed)?);
            Ok(0)
        }
        Action::Instructions => {
            let oracle = S::build_oracle(&tree, dir.path(), instructions::FLAGS)?;
            println!("{}", instructions::report::<S>(&oracle, dir.path(), &version)?);
            Ok(0)
        }
        Action::Compare | Action::Golden => {
            let mut flags = vec!["-O2"];
            if as_written {
                flags.push(AS_WRITTEN);
            }
            let oracle = S::build_oracle(&tree, dir.path(), &flags)?;
            let found = compare::<S>(&oracle, seed, cases.unwrap_or(1_000_000), false)?;
            println!(
                "{} against {version}: seed {seed}, {} sequences, {} operations, {} differ \
                 ({:.1} s)",
                S::NAME,
                found.cases,
                found.operations,
                found.differing,
                found.seconds
            );
            if let Some(text) = &found.first_difference {
                print!("{text}");
            }
            Ok((found.differing != 0) as i32)
        }
    }
}
