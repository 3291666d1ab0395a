// SPDX-License-Identifier: GPL-2.0-or-later
//! From a governor's sources to a shared object: the compiler, the cache, and what an error of the compiler means.
//!
//! The cache holds one object for each content: sources, our headers, compiler, flags, under their BLAKE3 hash, which nobody can make
//! collide. It is `SCHEDTWIN_CACHE`, else `$XDG_CACHE_HOME/schedtwin`, else `~/.cache/schedtwin`; only the user may read and write it, and
//! an object that somebody else may have written is compiled again. An object appears there by a rename, so that nobody ever
//! loads half of one; who deletes the folder loses time only.
//!
//! **The compiler's inputs** are copies of files of the tree and our own, in a folder made for one compilation. The compiler says what it
//! included (gcc's `SUNPRO_DEPENDENCIES`), and an object that includes anything else is refused. clang has no such list of all units: there
//! the confinement alone keeps it to the system's files.

use crate::machine_code;
use crate::offered::{self, HEADERS};
use crate::sources::Sources;
use crate::{Fault, Tree, confine, program};
use schedtwin_input::did_you_mean;
use schedtwin_types::fnv::Fnv1a;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How the kernel builds C (`Makefile`), as far as it decides what a program means: types may alias, signed numbers
/// wrap, a null pointer may be looked at. What would be a warning there but calls for what is not offered is an error.
const FLAGS: [&str; 26] = [
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    "-shared",
    "-nostdinc",
    "-nostdlib",
    "-ffreestanding",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-delete-null-pointer-checks",
    "-fno-common",
    // No plug-in of the linker reads what the code says about how it was compiled.
    "-fno-lto",
    "-fno-stack-protector",
    // As in the kernel: no vectors, whose moves would want the alignment that a scheduler only promises.
    "-mgeneral-regs-only",
    "-fvisibility=hidden",
    // An index outside of an array is a crash at that line, not another variable's value.
    "-fsanitize=bounds",
    "-fsanitize-undefined-trap-on-error",
    "-Werror=implicit-function-declaration",
    "-Werror=implicit-int",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    // clang counts a lost const among those; schedulers are compiled without any.
    "-Wno-incompatible-pointer-types-discards-qualifiers",
    // Nothing is left to be found when it is loaded; what is not to be written is sealed then.
    "-Wl,-z,defs",
    "-Wl,-z,relro,-z,now",
    // Names in a table that says how many there are (`object.rs`).
    "-Wl,--hash-style=sysv",
];

/// Where the tree's files lie while they are compiled: a name that no message has by chance.
pub(crate) const STAGE: &str = "THE-TREE";

/// The variables that the compiler gets: others may name files to read, or plug-ins to load.
const VARIABLES: [&str; 1] = ["PATH"];

/// How long a compilation may take, on a clock on the wall: beside the limit of processor time, for what only waits.
const COMPILED_WITHIN: Duration = Duration::from_secs(600);
/// How long a compiler may take to say which it is.
const VERSION_WITHIN: Duration = Duration::from_secs(60);
/// A folder of a compilation that is older was left by a process that was killed.
const LEFT_AFTER: Duration = Duration::from_secs(3600);

/// Most bytes of the compiler's messages that are read, and most characters of a line.
const MESSAGES_BYTES_MAX: usize = 1 << 20;
const LINE_MAX: usize = 1000;

/// Most lines of the compiler that a fault shows.
const LINES_SHOWN: usize = 10;

/// A compiled governor.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// The shared object.
    pub(crate) bytes: Arc<[u8]>,
    /// Of everything that decides what it does: sources, our C, definitions.
    pub(crate) hash: u64,
}

/// The code that is to be compiled.
pub(crate) struct Job<'a> {
    pub(crate) tree: &'a Tree,
    /// The governor's file inside of the tree.
    pub(crate) path: &'a str,
    pub(crate) sources: &'a Sources,
    /// Our files around it.
    pub(crate) glue: &'a [&'a str],
    /// Further files of the tree, each a unit of its own beside `path`; with none, our file includes `path`.
    pub(crate) units: Units<'a>,
    /// `NAME=VALUE`.
    pub(crate) defines: &'a [String],
}

/// How the tree's files get to the compiler.
#[derive(Clone, Copy)]
pub(crate) enum Units<'a> {
    /// Our first file includes the tree's as `GOVERNOR_FILE`.
    Included,
    /// Each is a unit.
    Own(&'a Own<'a>),
}

/// Units of the tree's own.
pub(crate) struct Own<'a> {
    pub(crate) paths: &'a [String],
    /// The lines that each begins with.
    pub(crate) above: &'static str,
    /// A folder of the tree that has headers.
    pub(crate) include: Option<&'a str>,
    /// A step between preprocessor and compiler.
    pub(crate) step: Step,
}

/// A step between preprocessor and compiler.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Names what it does: changes with that.
    pub(crate) version: &'static str,
    /// Rewrites a unit; in words, if it cannot.
    pub(crate) rewrite: fn(&str) -> Result<String, String>,
}

/// Most bytes of a preprocessed unit.
const UNIT_BYTES_MAX: u64 = 64 << 20;

/// Flags that are for linking alone.
const LINKS: [&str; 4] = ["-shared", "-Wl,-z,defs", "-Wl,-z,relro,-z,now", "-Wl,--hash-style=sysv"];

/// Most bytes of an object.
const OBJECT_BYTES_MAX: u64 = 64 << 20;

/// Objects that this process has, by the hash of their content: a confined process can neither compile nor read.
static READY: Mutex<BTreeMap<[u8; 32], Arc<[u8]>>> = Mutex::new(BTreeMap::new());

/// Compiles, unless the cache has it.
pub(crate) fn object(job: &Job) -> Result<Object, Fault> {
    let mut short = Fnv1a::new();
    let mut key = blake3::Hasher::new();
    content(job, &mut |bytes| {
        short.extend((bytes.len() as u64).to_le_bytes());
        short.extend(bytes.iter().copied());
        key.update(&(bytes.len() as u64).to_le_bytes());
        key.update(bytes);
    });
    let hash = short.digest();
    let content = *key.finalize().as_bytes();
    let ready = || READY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = ready().get(&content) {
        return Ok(Object { bytes: bytes.clone(), hash });
    }
    if confine::is_confined() {
        return Err(Fault::new(
            format!("{} of {} is not compiled yet", job.path, job.tree.spelled()),
            "C is compiled before the first run; name each such kernel by itself, without a search",
        ));
    }
    let compiler = Compiler::find()?;
    key.update(compiler.version.as_bytes());
    for flag in FLAGS {
        key.update(flag.as_bytes()).update(&[0]);
    }
    let cache = cache_folder()?;
    let stem = job.path.rsplit('/').next().unwrap_or(job.path).trim_end_matches(".c");
    let path = cache.join(format!("{stem}-{}.so", key.finalize().to_hex()));
    let bytes = match kept(&path) {
        Some(bytes) => bytes,
        None => compile(job, &compiler, &cache, &path)?,
    };
    let bytes: Arc<[u8]> = bytes.into();
    ready().insert(content, bytes.clone());
    Ok(Object { bytes, hash })
}

/// An object of the cache; `None`: there is none, or somebody else may have written it.
fn kept(path: &Path) -> Option<Vec<u8>> {
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || !is_own(&about) || about.len() > OBJECT_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(OBJECT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Hands over all that decides what an object does, but for compiler and flags.
fn content(job: &Job, add: &mut dyn FnMut(&[u8])) {
    for (path, text) in &job.sources.files {
        add(path.as_bytes());
        add(text);
    }
    for (path, text) in offered::files() {
        add(path.as_bytes());
        add(text.as_bytes());
    }
    add(job.path.as_bytes());
    job.glue.iter().for_each(|glue| add(glue.as_bytes()));
    if let Units::Own(own) = job.units {
        own.paths.iter().for_each(|path| add(path.as_bytes()));
        add(own.above.as_bytes());
        add(own.include.unwrap_or_default().as_bytes());
        add(own.step.version.as_bytes());
    }
    job.defines.iter().for_each(|define| add(define.as_bytes()));
}

/// The system's C compiler.
struct Compiler {
    words: Vec<String>,
    version: String,
}

impl Compiler {
    /// `CC`, else `cc`.
    fn find() -> Result<Compiler, Fault> {
        let named = std::env::var("CC").ok().filter(|cc| !cc.trim().is_empty());
        let spelled = named.unwrap_or_else(|| "cc".to_string());
        let words: Vec<String> = spelled.split_whitespace().map(str::to_string).collect();
        let mut command = program::new(&words[0], &VARIABLES);
        command.args(&words[1..]).arg("--version");
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let help = "a governor from a tree needs one: install gcc or clang, or name one by the environment variable CC";
        let output = program::run(&mut command, VERSION_WITHIN, MESSAGES_BYTES_MAX)
            .map_err(|error| Fault::new(format!("no C compiler: `{spelled}`: {error}"), help))?;
        if !output.status.success() {
            let message = format!("no C compiler: `{spelled} --version` fails: {}", output.status);
            return Err(Fault::new(message, help));
        }
        let version = format!("{spelled}\n{}", String::from_utf8_lossy(&output.stdout));
        Ok(Compiler { words, version })
    }
}

/// The cache's folder, which exists afterwards.
pub(crate) fn cache_folder() -> Result<PathBuf, Fault> {
    let set = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let help = "SCHEDTWIN_CACHE=FOLDER names another one";
    let own = set("SCHEDTWIN_CACHE").map(PathBuf::from);
    let shared = set("XDG_CACHE_HOME").map(|cache| PathBuf::from(cache).join("schedtwin"));
    let home = set("HOME").map(|home| PathBuf::from(home).join(".cache/schedtwin"));
    let Some(folder) = own.or(shared).or(home) else {
        return Err(Fault::new("there is no folder to keep compiled governors in", help));
    };
    let folder = folder.join("tree");
    // Only the user's: what lies there is run.
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    match made.and_then(|()| fs::metadata(&folder)) {
        Ok(about) if is_own(&about) => Ok(folder),
        Ok(_) => Err(in_cache(&folder, &"others may write there, or it belongs to another user")),
        Err(error) => Err(in_cache(&folder, &error)),
    }
}

/// Whether nobody else may write it.
fn is_own(about: &fs::Metadata) -> bool {
    const OTHERS_MAY_WRITE: u32 = 0o022;
    // SAFETY: geteuid has no preconditions.
    about.uid() == unsafe { libc::geteuid() } && about.mode() & OTHERS_MAY_WRITE == 0
}

/// The fault of a cache that cannot be used.
pub(crate) fn in_cache(folder: &Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(
        format!("failed to keep a compiled governor in {}: {error}", folder.display()),
        "SCHEDTWIN_CACHE=FOLDER names another folder",
    )
}

fn compile(job: &Job, compiler: &Compiler, cache: &Path, to: &Path) -> Result<Vec<u8>, Fault> {
    let kept = |error: std::io::Error| in_cache(cache, &error);
    remove_left(cache);
    let folder = tempfile::Builder::new().prefix(FOLDER).tempdir_in(cache).map_err(kept)?;
    let staged = stage(job, folder.path()).map_err(kept)?;
    // Neither is a pipe: what includes `/dev/stdout` would wait for itself.
    let messages = folder.path().join("messages.txt");
    let messages = fs::File::options().read(true).append(true).create_new(true).open(messages);
    let running =
        Running { job, compiler, folder: folder.path(), messages: messages.map_err(kept)? };
    let mut units: Vec<String> = job.glue.iter().map(|glue| glue.to_string()).collect();
    if let Units::Own(own) = job.units {
        units.extend(running.rewritten(&staged, own.step).map_err(|fault| fault.of(cache))?);
    }
    let mut command = running.command(FLAGS.iter());
    command.args(["-o", "object.so"]).args(units).arg("runtime.c");
    running.run(command).map_err(|fault| fault.of(cache))?;
    let object = folder.path().join("object.so");
    let bytes = read_made(&object, OBJECT_BYTES_MAX).map_err(kept)?;
    if bytes.len() as u64 > OBJECT_BYTES_MAX {
        let message = format!("{} of {} makes a huge object", job.path, job.tree.spelled());
        return Err(Fault::new(message, "a governor's variables are small"));
    }
    if let Some(what) = confine::runs_when_loaded(&bytes) {
        return Err(Fault::new(
            format!(
                "{} of {} has {what}, which would run before anything is asked",
                job.path,
                job.tree.spelled()
            ),
            "kernel code starts by an initcall; take it out",
        ));
    }
    // Written anew: what the compiler made has rights and an owner of its own.
    let mut kept_object = tempfile::NamedTempFile::new_in(cache).map_err(kept)?;
    kept_object.write_all(&bytes).map_err(kept)?;
    kept_object.persist(to).map_err(|error| kept(error.error))?;
    Ok(bytes)
}

/// Writes all files into the folder of a compilation. Returns the units that are the tree's own.
fn stage(job: &Job, folder: &Path) -> std::io::Result<Vec<String>> {
    let write = |path: &str, text: &[u8]| -> std::io::Result<()> {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("it is in the folder"))?;
        fs::File::create(path)?.write_all(text)
    };
    for (path, text) in offered::files() {
        write(&path, text.as_bytes())?;
    }
    for (path, text) in &job.sources.files {
        write(&format!("{STAGE}/{path}"), text)?;
    }
    let mut units = Vec::new();
    if let Units::Own(own) = job.units {
        for (at, path) in own.paths.iter().enumerate() {
            // The line that the linker names is the tree's.
            let text = format!("{}#include \"{STAGE}/{path}\"\n", own.above);
            let unit = format!("{UNIT}{at}.c");
            write(&unit, text.as_bytes())?;
            units.push(unit);
        }
    }
    Ok(units)
}

/// Reads what a compiler has made, at most a byte more than `most`.
fn read_made(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let made = fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let mut bytes = Vec::new();
    made.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Why a step of a compilation failed.
enum Failure {
    Fault(Fault),
    Kept(std::io::Error),
}

impl Failure {
    fn of(self, cache: &Path) -> Fault {
        match self {
            Failure::Fault(fault) => fault,
            Failure::Kept(error) => in_cache(cache, &error),
        }
    }
}

/// A compilation in its folder.
struct Running<'a> {
    job: &'a Job<'a>,
    compiler: &'a Compiler,
    folder: &'a Path,
    messages: fs::File,
}

impl Running<'_> {
    /// The compiler with flags, folders of headers and definitions.
    fn command<'f>(&self, flags: impl Iterator<Item = &'f &'static str>) -> Command {
        let Running { job, compiler, folder, .. } = self;
        let mut folders = vec!["include".to_string()];
        if let Units::Own(own) = job.units {
            folders.extend(own.include.map(|include| format!("{STAGE}/{include}")));
        }
        let mut command = program::new(&compiler.words[0], &VARIABLES);
        command.args(&compiler.words[1..]).args(flags);
        if !compiler.version.contains("clang") {
            command.arg("-fno-use-linker-plugin");
        }
        command.arg(format!("-ffile-prefix-map={}=.", folder.display()));
        command.args(folders.iter().map(|folder| format!("-I{folder}")));
        command.args(["-iquote", "quoted", "-iquote", "."]);
        command.args(job.defines.iter().map(|define| format!("-D{define}")));
        command.arg(format!("-DGOVERNOR_FILE=\"{STAGE}/{}\"", job.path));
        command
    }

    /// Runs the compiler, confined.
    fn run(&self, command: Command) -> Result<(), Failure> {
        if !self.tells(command)? {
            return Err(Failure::Fault(not_compiled(self.job, &self.said()?)));
        }
        let Some(outside) = included_from_outside(self.folder).map_err(Failure::Kept)? else {
            return Ok(());
        };
        let (path, tree) = (self.job.path, self.job.tree.spelled());
        Err(Failure::Fault(Fault::new(
            format!("{path} of {tree} includes {outside}, which is not in its tree"),
            "a governor is compiled from files of its tree alone",
        )))
    }

    /// Runs the compiler, confined; whether it made what it was asked for.
    fn tells(&self, mut command: Command) -> Result<bool, Failure> {
        command.current_dir(self.folder);
        let messages = self.messages.try_clone().map_err(Failure::Kept)?;
        command.stdout(Stdio::null()).stderr(messages);
        // A list of all that gcc includes, of all units: -MD has the last one's alone.
        command.env("SUNPRO_DEPENDENCIES", INCLUDED);
        confine::compiler(&mut command, self.folder).map_err(Failure::Kept)?;
        let output = program::run(&mut command, COMPILED_WITHIN, 0).map_err(|error| {
            let (path, tree) = (self.job.path, self.job.tree.spelled());
            let message = format!("failed to run the C compiler for {path} of {tree}: {error}");
            Failure::Fault(Fault::new(message, "see CC"))
        })?;
        Ok(output.status.success())
    }

    /// The compiler's messages.
    fn said(&self) -> Result<String, Failure> {
        let mut said = vec![0; MESSAGES_BYTES_MAX];
        let bytes = self.messages.read_at(&mut said, 0).map_err(Failure::Kept)?;
        Ok(String::from_utf8_lossy(&said[..bytes]).into_owned())
    }

    /// Preprocesses units and rewrites them. What is wrong with any of them is told for all.
    fn rewritten(&self, units: &[String], step: Step) -> Result<Vec<String>, Failure> {
        let mut good = true;
        let preprocessed = |unit: &str| format!("{}.pre.i", unit.trim_end_matches(".c"));
        for unit in units {
            let mut command = self.command(FLAGS.iter().filter(|flag| !LINKS.contains(flag)));
            command.args(["-E", "-o", &preprocessed(unit), unit]);
            good &= self.tells(command)?;
        }
        if !good {
            return Err(Failure::Fault(not_compiled(self.job, &self.said()?)));
        }
        let mut rewritten = Vec::new();
        for unit in units {
            let path = self.folder.join(preprocessed(unit));
            let bytes = read_made(&path, UNIT_BYTES_MAX).map_err(Failure::Kept)?;
            let refused = |what: String, help: &str| {
                let (path, tree) = (self.job.path, self.job.tree.spelled());
                let message = format!("{path} of {tree} does not compile: {what}");
                Failure::Fault(Fault::new(message, help))
            };
            const BRACKETS: &str = "brackets close in the order that they open in";
            const MACHINE_CODE: &str = "BPF has no instructions of a processor; an `asm` without any is a barrier, and is taken";
            if bytes.len() as u64 > UNIT_BYTES_MAX {
                let what = "it is huge when it has been preprocessed".to_string();
                return Err(refused(what, "include less"));
            }
            let text = String::from_utf8_lossy(&bytes);
            match machine_code::of(&text, STAGE) {
                Ok(None) => {}
                Ok(Some(what)) => return Err(refused(what, MACHINE_CODE)),
                Err(what) => return Err(refused(what, BRACKETS)),
            }
            let text = (step.rewrite)(&text).map_err(|what| refused(what, BRACKETS))?;
            let name = format!("{}.i", unit.trim_end_matches(".c"));
            fs::write(self.folder.join(&name), text).map_err(Failure::Kept)?;
            rewritten.push(name);
        }
        Ok(rewritten)
    }
}

/// What the folders of compilations begin with.
const FOLDER: &str = "compile-";

/// Removes the folders of compilations that a killed process has left.
fn remove_left(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let is_one = entry.file_name().as_encoded_bytes().starts_with(FOLDER.as_bytes());
        let Ok(about) = entry.metadata() else { continue };
        let age = about.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        if is_one && about.is_dir() && age.is_some_and(|age| age > LEFT_AFTER) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// What units of a scheduler's own are called while they are compiled.
const UNIT: &str = "THE-UNIT-";

/// The list of what has been included.
const INCLUDED: &str = "included.list";

/// A file that the compiler has included, by what it says itself, from outside of the folder in which it works.
fn included_from_outside(folder: &Path) -> std::io::Result<Option<String>> {
    const LIST_BYTES_MAX: u64 = 16 << 20;
    let list = match fs::File::open(folder.join(INCLUDED)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        list => list?,
    };
    let mut text = Vec::new();
    list.take(LIST_BYTES_MAX).read_to_end(&mut text)?;
    // By words alone: there are no links in the folder.
    let inside = |input: &str| {
        let input = match input.strip_prefix('/') {
            Some(_) => Path::new(input).strip_prefix(folder).ok().and_then(Path::to_str),
            None => Some(input),
        };
        let mut depth = 0_i32;
        input.is_some_and(|input| {
            input.split('/').all(|part| {
                depth += match part {
                    "" | "." => 0,
                    ".." => -1,
                    _ => 1,
                };
                depth >= 0
            })
        })
    };
    // `unit.o: file \` and lines with more files.
    let text = String::from_utf8_lossy(&text);
    let outside = text.split_whitespace().find(|word| !inside(word));
    Ok(outside.map(str::to_string))
}

/// Returns the fault that the compiler's output means here.
fn not_compiled(job: &Job, said: &str) -> Fault {
    let cut = |line: &str| line.chars().take(LINE_MAX).chain(['\n']).collect::<String>();
    let said = as_the_user_knows(&said.lines().map(cut).collect::<String>(), job);
    let wanting = Wanting::of(&said);
    let from = said.lines().position(is_error).unwrap_or(0);
    let lines: Vec<&str> = said.lines().skip(from).take(LINES_SHOWN).collect();
    let more = said.lines().count().saturating_sub(from + lines.len());
    let mut message = format!("{} of {} does not compile", job.path, job.tree.spelled());
    for (at, what) in wanting.0.iter().map(|(what, _)| what).enumerate() {
        message.push_str(if at == 0 { ": " } else { "; " });
        message.push_str(what);
    }
    for line in lines {
        message.push_str("\n  ");
        message.push_str(line);
    }
    if more > 0 {
        message.push_str(&format!("\n  ... and {more} more lines"));
    }
    Fault::new(message, wanting.help())
}

/// The compiler's words with the user's names for files: what is between them and the compiler is ours alone.
fn as_the_user_knows(said: &str, job: &Job) -> String {
    let mut said = said.replace(&format!("{STAGE}/"), "");
    if let Units::Own(own) = job.units {
        // The last first: `THE-UNIT-1` begins `THE-UNIT-10`.
        for (at, path) in own.paths.iter().enumerate().rev() {
            // Its own lines are those that come before the file.
            let lines_above = own.above.lines().count() + 1;
            for line in 1..=lines_above {
                said = said.replace(&format!("{UNIT}{at}.c:{line}:"), &format!("{path}:1:"));
            }
            said = said.replace(&format!("{UNIT}{at}.c"), path);
            said = said.replace(&format!("{UNIT}{at}.i"), path);
            said = said.replace(&format!("{UNIT}{at}"), path);
        }
    }
    said
}

fn is_error(line: &str) -> bool {
    line.contains("error:")
        || line.contains("undefined reference")
        || line.contains("undefined symbol")
}

/// The names that the code wants and is not offered, each with a suggestion.
struct Wanting(Vec<(String, Option<String>)>);

impl Wanting {
    fn of(said: &str) -> Wanting {
        let mut found: Vec<(String, Option<String>)> = Vec::new();
        for line in said.lines().filter(|line| is_error(line)) {
            let Some((what, near)) = wanted(line) else { continue };
            if !found.iter().any(|(known, _)| *known == what) {
                found.push((what, near));
            }
        }
        Wanting(found)
    }

    fn help(&self) -> String {
        // Several missing headers may have the same list.
        let mut near: Vec<&str> = Vec::new();
        for of in self.0.iter().filter_map(|(_, near)| near.as_deref()) {
            if !near.contains(&of) {
                near.push(of);
            }
        }
        let mut help = match near.is_empty() {
            true => String::new(),
            false => format!("{}; ", near.join("; ")),
        };
        help.push_str(
            "what is offered is in crates/schedtwin-tree/c/include; a tree of another era, or code that asks for what \
             the twin does not model, does not compile",
        );
        help
    }
}

/// Returns the name that a line of the compiler or the linker misses: gcc's and clang's words.
fn wanted(line: &str) -> Option<(String, Option<String>)> {
    let quoted = |text: &str| -> Vec<String> {
        let pieces = text.split(['\'', '`']).skip(1).step_by(2);
        pieces.map(str::to_string).collect()
    };
    let word = |name: &str| {
        did_you_mean(name, offered::words()).map(|near| format!("did you mean `{near}`?"))
    };
    let after = |mark: &str| line.split_once(mark).map(|(_, rest)| rest);
    if let Some(rest) =
        after("implicit declaration of function ").or(after("call to undeclared function "))
    {
        let name = quoted(rest).into_iter().next()?;
        let near = word(&name);
        return Some((format!("the function `{name}` is not offered"), near));
    }
    if let Some(rest) = after("undefined reference to ") {
        let name = quoted(rest).into_iter().next()?;
        return Some((format!("`{name}` is declared, but not offered"), None));
    }
    if let Some(rest) = after("undefined symbol: ") {
        return Some((format!("`{}` is declared, but not offered", rest.trim()), None));
    }
    if line.contains("No such file or directory") || line.contains("file not found") {
        let rest = after("error: ")?;
        let name = rest.split(": ").next()?.split('\'').find(|name| name.contains(".h"))?.trim();
        let near = did_you_mean(name, HEADERS).map(|near| format!("did you mean <{near}>?"));
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside: Vec<&str> = HEADERS
            .into_iter()
            .filter(|h| h.rsplit_once('/').is_some_and(|(f, _)| f == folder))
            .collect();
        let all = match beside.is_empty() {
            true => HEADERS.join(", "),
            false => beside.join(", "),
        };
        let near = near.unwrap_or_else(|| format!("offered headers: {all}"));
        return Some((format!("the header `{name}` is not offered"), Some(near)));
    }
    if let Some((before, after)) = line.split_once(" has no member named ") {
        let of = quoted(before).pop()?;
        let member = quoted(after).into_iter().next()?;
        return Some((format!("`{of}` has no member `{member}` here"), word(&member)));
    }
    if let Some(rest) = after("no member named ") {
        let mut names = quoted(rest).into_iter();
        let (member, of) = (names.next()?, names.next()?);
        return Some((format!("`{of}` has no member `{member}` here"), word(&member)));
    }
    if line.contains(" undeclared") || line.contains("undeclared identifier") {
        let name = quoted(after("error: ")?).into_iter().next()?;
        let near = word(&name);
        return Some((format!("`{name}` is not offered"), near));
    }
    if let Some(rest) = after("unknown type name ") {
        let name = quoted(rest).into_iter().next()?;
        let near = word(&name);
        return Some((format!("the type `{name}` is not offered"), near));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_folders_of_compilations_are_removed() {
        let cache = tempfile::tempdir().expect("a folder");
        let [old, new, other] =
            ["compile-old", "compile-new", "other"].map(|name| cache.path().join(name));
        for folder in [&old, &new, &other] {
            fs::create_dir(folder).expect("made");
        }
        let long_ago = SystemTime::now() - 2 * LEFT_AFTER;
        for folder in [&old, &other] {
            let folder = fs::File::open(folder).expect("it is there");
            folder.set_modified(long_ago).expect("it is ours");
        }
        remove_left(cache.path());
        assert_eq!([old, new, other].map(|folder| folder.exists()), [false, true, true]);
    }

    #[test]
    fn compilers_are_understood() {
        for (line, what) in [
            (
                "x.c:9:2: error: implicit declaration of function 'foo'; did you mean 'foe'? [-Werror=x]",
                "the function `foo` is not offered",
            ),
            (
                "x.c:9:2: error: call to undeclared function 'foo'; ISO C99",
                "the function `foo` is not offered",
            ),
            ("x.c:(.text+0x3): undefined reference to `foo'", "`foo` is declared, but not offered"),
            ("ld.lld: error: undefined symbol: foo", "`foo` is declared, but not offered"),
            (
                "x.c:1:10: fatal error: linux/nmi.h: No such file or directory",
                "the header `linux/nmi.h` is not offered",
            ),
            (
                "x.c:1:10: fatal error: 'linux/nmi.h' file not found",
                "the header `linux/nmi.h` is not offered",
            ),
            (
                "x.c:3:4: error: 'struct cpuidle_device' has no member named 'next_hrtimer'",
                "`struct cpuidle_device` has no member `next_hrtimer` here",
            ),
            (
                "x.c:3:4: error: no member named 'next_hrtimer' in 'struct cpuidle_device'",
                "`struct cpuidle_device` has no member `next_hrtimer` here",
            ),
            (
                "x.c:3:4: error: 'jiffies' undeclared (first use in this function)",
                "`jiffies` is not offered",
            ),
            ("x.c:3:4: error: use of undeclared identifier 'jiffies'", "`jiffies` is not offered"),
            (
                "x.c:3:4: error: unknown type name 'wait_queue_t'",
                "the type `wait_queue_t` is not offered",
            ),
        ] {
            assert_eq!(wanted(line).map(|(what, _)| what).as_deref(), Some(what), "{line}");
        }
        assert_eq!(wanted("x.c:3:4: error: expected ';' before '}' token"), None);
    }
}
