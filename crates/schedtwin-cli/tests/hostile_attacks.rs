// SPDX-License-Identifier: GPL-2.0-or-later
//! Attacks of a kernel tree's C, one file each in `tests/hostile`: at which stage, and what has to become of it.
//!
//! Each is tried as the command runs it. Those marked `Proved` are tried without confinement too, where they have to succeed: else nothing
//! is tested. Others are held by the construction of the loader or the compiler's inputs, which is there without confinement as well, or
//! would change this computer.
//!
//! To add one: a file with `static long attack(void)`, which is negative if the attack fails, and a line in [`ATTACKS`]. `HOME` stands for
//! a folder of somebody else, `PARENT` for somebody else's process.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use Outcome::{Ended, Nothing, Refused};
use Proof::{Held, Proved};
use Stage::{Call, Compile, Exit, Load};

/// When an attack acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// While it is compiled.
    Compile,
    /// While its object is loaded.
    Load,
    /// While it is asked.
    Call,
    /// By the way in which it ends.
    Exit,
}

/// What has to become of an attack.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// It comes to nothing: the run goes on to its end.
    Nothing,
    /// The run ends with exit code 2, these words, and no result.
    Ended(&'static str),
    /// It is not compiled or not loaded: exit code 2 and these words.
    Refused(&'static str),
}

/// Whether it is tried without confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Proved,
    Held,
}

const NOT_WHOLE: &str = "ended before its results were whole";
const OUTSIDE: &str = "not in its tree";

const ATTACKS: &[(&str, Stage, Outcome, Proof)] = &[
    ("include-stdin", Compile, Refused(OUTSIDE), Held),
    ("include-outside", Compile, Refused("does not compile"), Held),
    ("include-above", Compile, Refused("does not compile"), Held),
    ("include-system", Compile, Refused(OUTSIDE), Held),
    ("include-link", Compile, Refused("`link.h` is a symbolic link"), Held),
    ("include-zeros", Compile, Refused("`zeros.h` is a symbolic link"), Held),
    ("include-fifo", Compile, Refused("it is no regular file"), Held),
    ("include-huge", Compile, Refused("it has more than 4 MiB"), Held),
    ("include-many", Compile, Refused("more than 128 files"), Held),
    ("include-stdout", Compile, Refused(OUTSIDE), Held),
    ("include-stderr", Compile, Refused(OUTSIDE), Held),
    ("messages", Compile, Refused("does not compile"), Held),
    ("lto", Compile, Nothing, Held),
    ("include-itself", Compile, Refused("does not compile"), Held),
    ("incbin", Compile, Refused("does not compile"), Held),
    ("fill", Compile, Refused("small.c"), Held),
    ("constructor", Load, Refused("a constructor"), Held),
    ("destructor", Load, Refused("a destructor"), Held),
    ("init", Load, Refused("_init()"), Held),
    ("ifunc", Load, Refused("ifunc"), Held),
    ("many-sections", Load, Nothing, Held),
    ("false-symtab", Load, Refused("small.c"), Held),
    ("long-name", Load, Refused("the names of its symbols are too long"), Held),
    ("false-dynsym", Load, Refused("has no schedtwin_"), Held),
    ("thread-variable", Load, Refused("variables of threads"), Held),
    ("open-read", Call, Nothing, Proved),
    ("open-create", Call, Nothing, Proved),
    ("openat2", Call, Nothing, Proved),
    ("x32-open", Call, Nothing, Held),
    ("stat", Call, Nothing, Proved),
    ("access", Call, Nothing, Proved),
    ("readlink", Call, Nothing, Proved),
    ("environment", Call, Nothing, Proved),
    ("environment-heap", Call, Nothing, Held),
    ("unlink", Call, Nothing, Proved),
    ("rename", Call, Nothing, Proved),
    ("symlink", Call, Nothing, Proved),
    ("mkdir", Call, Nothing, Proved),
    ("truncate", Call, Nothing, Proved),
    ("chmod", Call, Nothing, Proved),
    ("fchmodat2", Call, Nothing, Held),
    ("setxattrat", Call, Nothing, Held),
    ("file-setattr", Call, Nothing, Held),
    ("utimensat", Call, Nothing, Proved),
    ("socket", Call, Nothing, Proved),
    ("socketpair", Call, Nothing, Proved),
    ("kill", Call, Nothing, Proved),
    ("tgkill", Call, Nothing, Proved),
    ("pidfd", Call, Nothing, Proved),
    ("peek", Call, Nothing, Held),
    ("setpriority", Call, Nothing, Proved),
    ("getpriority", Call, Nothing, Proved),
    ("setscheduler", Call, Nothing, Proved),
    ("setaffinity", Call, Nothing, Proved),
    ("getaffinity", Call, Nothing, Proved),
    ("ioprio", Call, Nothing, Proved),
    ("prlimit", Call, Nothing, Proved),
    ("fork", Call, Nothing, Proved),
    ("namespace", Call, Nothing, Held),
    ("clone3", Call, Nothing, Proved),
    ("shared-memory", Call, Nothing, Held),
    ("message-queue", Call, Nothing, Held),
    ("semaphores", Call, Nothing, Held),
    ("cpu-clock", Call, Nothing, Proved),
    ("clock", Call, Nothing, Held),
    ("hostname", Call, Nothing, Held),
    ("memfd", Call, Nothing, Proved),
    ("io-uring", Call, Nothing, Held),
    ("dumpable", Call, Nothing, Proved),
    ("keyring", Call, Nothing, Held),
    ("memory", Call, Nothing, Proved),
    ("descriptors", Call, Nothing, Held),
    ("stdin", Call, Nothing, Proved),
    ("escapes", Call, Nothing, Held),
    ("other-file", Call, Nothing, Held),
    ("every-system-call", Call, Nothing, Held),
    ("old-calls", Call, Ended(NOT_WHOLE), Held),
    ("recursion", Exit, Ended("crashed"), Held),
    ("exit", Exit, Ended("it exited with code 0"), Held),
    ("signal-itself", Exit, Ended("signal 9"), Held),
    ("deaf", Exit, Ended("has computed for 1 s in one call"), Held),
    ("nonsense", Exit, Ended("spoke otherwise"), Held),
];

/// A governor that makes its attack at its first question, and crashes if it succeeds.
fn governor(attack: &str) -> String {
    const HEAD: &str = r#"#include <linux/cpuidle.h>

static __attribute__((unused)) long sys(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = 8;
	register long r9 __asm__("r9") = 0;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return result;
}
"#;
    const TAIL: &str = r#"
static int tried;
static int small_select(struct cpuidle_driver *drv, struct cpuidle_device *dev, bool *stop_tick)
{
	if (!tried++ && attack() >= 0)
		__builtin_trap();
	return 0;
}
static struct cpuidle_governor small = { .name = "small", .select = small_select };
static int __init init_small(void) { return cpuidle_register_governor(&small); }
postcore_initcall(init_small);
"#;
    format!("{HEAD}{attack}{TAIL}")
}

/// A tree with its cache, things of somebody else, and a process of somebody else.
struct Place {
    folder: tempfile::TempDir,
    victim: Child,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let governors = folder.path().join("tree/drivers/cpuidle/governors");
        fs::create_dir_all(&governors).expect("made");
        fs::create_dir_all(folder.path().join("home")).expect("made");
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, governors.join(name)).expect("linked");
        };
        link("../../../../home/secret", "link.h");
        link("/dev/zero", "zeros.h");
        let fifo = Command::new("mkfifo").arg(governors.join("fifo.h")).status();
        assert!(fifo.is_ok_and(|status| status.success()));
        let huge = fs::File::create(governors.join("huge.h")).expect("made");
        huge.set_len(1 << 40).expect("a hole");
        for at in 0..140 {
            fs::write(governors.join(format!("many{at}.h")), "").expect("written");
        }
        let victim = Command::new("sleep").arg("1000").spawn().expect("it starts");
        let place = Place { folder, victim };
        place.renew();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn renew(&self) {
        for file in ["home/gone", "home/moved"] {
            fs::write(self.path(file), "mine").expect("written");
        }
        let new = self.path("home/new");
        let _ = fs::remove_file(&new);
        let _ = fs::remove_dir(&new);
        fs::write(self.path("home/secret"), "int the_secret_word;\n").expect("written");
    }

    /// Whether nobody has touched anything.
    fn is_whole(&self) -> bool {
        self.path("home/gone").exists()
            && self.path("home/moved").exists()
            && fs::symlink_metadata(self.path("home/new")).is_err()
            && fs::read_to_string(self.path("home/secret"))
                .is_ok_and(|text| text == "int the_secret_word;\n")
    }

    fn run(&self, attack: &str, off: bool) -> Output {
        let mut command = self.command(attack, "linux-6.12", short_run);
        if off {
            command.env("SCHEDTWIN_CONFINE", "off");
        }
        command.output().expect("the binary starts")
    }

    /// A command whose arguments have the kernel `base` with the attack's C.
    fn command(
        &self,
        attack: &str,
        base: &str,
        arguments: impl Fn(&str) -> Vec<String>,
    ) -> Command {
        let text = governor(attack)
            .replace("HOME", &self.path("home").display().to_string())
            .replace("PARENT", &self.victim.id().to_string());
        fs::write(self.path("tree/drivers/cpuidle/governors/small.c"), text).expect("written");
        let tree = self.path("tree");
        let kernel = format!("{base}:tree={},cpuidle=tree/small.c", tree.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
        command.args(arguments(&kernel));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("SCHEDTWIN_CACHE", self.path("cache")).env("SCHEDTWIN_TREE_LIMIT_S", "1");
        // Long, so that little of a freed copy is overwritten at once.
        command.env("A_SECRET", format!("it is {}", "-what-the-user-keeps-to-himself".repeat(10)));
        command
    }
}

#[test]
fn attacks_fail() {
    if !has_compiler() {
        return;
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let place = Place::new();
    let mut wrong = Vec::new();
    for (name, stage, outcome, proof) in ATTACKS {
        let attack = fs::read_to_string(folder.join(format!("{name}.c"))).expect("there is a file");
        place.renew();
        let output = place.run(&attack, false);
        let (text, said) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        let code = output.status.code();
        let right = match outcome {
            Nothing => code == Some(0) && text.contains("power"),
            Ended(words) | Refused(words) => {
                code == Some(2) && said.contains(words) && !text.contains("power")
            }
        };
        let acts = |text: &str| text.contains(['\u{1b}', '\u{7}']);
        if !right || !place.is_whole() || acts(&text) || acts(&said) {
            wrong.push(format!("{name} ({stage:?}): {code:?}, not {outcome:?}\n{said}"));
        }
        if *proof == Proved {
            place.renew();
            if place.run(&attack, true).status.success() {
                wrong.push(format!("{name} ({stage:?}) does nothing, even if it may"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The table and the folder have the same attacks.
#[test]
fn every_file_is_in_the_table() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let files =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path());
    let mut files: Vec<String> =
        files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    let mut table: Vec<&str> = ATTACKS.iter().map(|(name, ..)| *name).collect();
    files.sort();
    table.sort_unstable();
    assert_eq!(files, table);
}

/// Asks the supervisor: a kind of request, a number, and bytes; what it replies begins in `answer`. Negative if it refuses.
const ASK: &str = r#"
static unsigned int answer;
static __attribute__((unused)) long ask(char kind, unsigned int number, const char *bytes, unsigned int count)
{
	static char frame[512], reply[512];
	unsigned int length = count + 5, at;

	frame[0] = 'r';
	for (at = 0; at < 4; at++) {
		frame[1 + at] = length >> 8 * at;
		frame[6 + at] = number >> 8 * at;
	}
	frame[5] = kind;
	for (at = 0; at < count; at++)
		frame[10 + at] = bytes[at];
	sys(1, 3, (long)frame, 10 + count, 0);
	sys(0, 0, (long)reply, 5, 0);
	length = *(unsigned int *)(reply + 1);
	if (length)
		sys(0, 0, (long)(reply + 5), length, 0);
	answer = *(unsigned int *)(reply + 5);
	return reply[0] ? -1 : 0;
}
static __attribute__((unused)) long written(const char *path, unsigned int length)
{
	if (ask('c', length, path, length) < 0)
		return -1;
	ask('w', answer, "forged", 6);
	return ask('k', answer, "", 0);
}
"#;

/// A run that does not end well leaves the files that its outputs would replace, and nothing beside them.
#[test]
fn a_failed_run_replaces_nothing() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    let crash = "static long attack(void) { written(\"out/a.html\", 10); return 0; }";
    let end = "static long attack(void) { sys(1, 3, (long)\"e\\1\\0\\0\\0\\0\", 6, 0); return sys(231, 0, 0, 0, 0); }";
    let fail = "static long attack(void) { written(\"out/a.html\", 10); sys(1, 3, (long)\"e\\1\\0\\0\\0\\2\", 6, 0); \
                return sys(231, 2, 0, 0, 0); }";
    for (name, attack, words) in [
        ("commits and crashes", crash, "crashed"),
        ("says that all is written", end, "has not written out/a.html"),
        ("commits and fails", fail, ""),
    ] {
        let _ = fs::remove_dir_all(place.path("out"));
        fs::create_dir(place.path("out")).expect("made");
        fs::write(place.path("out/a.html"), "before").expect("written");
        let arguments = |kernel: &str| {
            ["run", "-m", "uniform8", "-w", "w1", "--duration", "20ms", "--html", "out/a.html"]
                .into_iter()
                .chain(["-k", kernel])
                .map(String::from)
                .collect()
        };
        let attack = format!("{ASK}{attack}");
        let output = place.command(&attack, "linux-6.12", arguments).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(words), "{name}: {said}");
        let text = fs::read_to_string(place.path("out/a.html")).expect("it is there");
        assert_eq!(text, "before", "{name}");
        assert_eq!(fs::read_dir(place.path("out")).expect("it is there").count(), 1, "{name}");
    }
}

/// A sweep with C keeps no run, neither by the twin nor by the C, which could forge those of every kernel.
#[test]
fn nothing_gets_into_a_folder_of_kept_runs() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    let attack = format!(
        "{ASK}static long attack(void) {{ ask('p', 13, \"./bin/evil.shx\", 14); \
         ask('p', 23, \"./ab/cdefcdefcd.json.gzx\", 24); return ask('g', 11, \"home/secret\", 11); }}"
    );
    let arguments = |kernel: &str| {
        ["sweep", "-m", "uniform8", "-w", "w1", "--duration", "20ms", "-n", "1", "--cache", "."]
            .into_iter()
            .chain(["-k", "linux-6.12", "-k", kernel])
            .map(String::from)
            .collect()
    };
    let before = fs::read_dir(place.folder.path()).expect("it is there").count();
    let output = place.command(&attack, "linux-6.12", arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("--cache is not used"), "{said}");
    // The cache of objects alone.
    let after = fs::read_dir(place.folder.path()).expect("it is there").count();
    assert_eq!(after, before + 1, "{said}");
}

/// A hunt writes two files into its folder; its C none but these, and no others through them.
#[test]
fn a_folder_of_findings_has_no_others() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("out")).expect("made");
    fs::write(place.path("out/victim.sh"), "mine").expect("written");
    std::os::unix::fs::symlink(place.path("home/secret"), place.path("out/machine.toml"))
        .expect("linked");
    let attack = format!(
        "{ASK}static long attack(void) {{ written(\"out/machine.toml\", 16); \
         return written(\"out/victim.sh\", 13); }}"
    );
    let arguments = |kernel: &str| {
        [
            "hunt",
            kernel,
            "--against",
            "linux-6.12",
            "-o",
            "out",
            "--count",
            "2",
            "--threads",
            "1",
            "-q",
        ]
        .map(String::from)
        .to_vec()
    };
    let output = place.command(&attack, "linux-6.12", arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(fs::read_to_string(place.path("out/victim.sh")).expect("it is there"), "mine");
    assert!(place.is_whole(), "a link was followed");
}

/// Arguments of a short run.
fn short_run(kernel: &str) -> Vec<String> {
    ["run", "-m", "uniform8", "-w", "w1", "--duration", "20ms", "-k", kernel]
        .map(String::from)
        .to_vec()
}

/// The compiler gets no descriptor that the command was given.
#[test]
fn a_compiler_inherits_no_descriptor() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    let attack =
        "__asm__(\".include \\\"/dev/fd/7\\\"\\n\");\nstatic long attack(void) { return -1; }\n";
    let command = place.command(attack, "linux-6.12", short_run);
    let mut with_pipe = Command::new("sh");
    with_pipe.args(["-c", "cat home/secret | { exec \"$0\" \"$@\" 7<&0 0</dev/null; }"]);
    with_pipe.arg(command.get_program()).args(command.get_args());
    with_pipe.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = with_pipe.current_dir(place.folder.path()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("does not compile") && !said.contains("the_secret_word"), "{said}");
}

/// A compiler of the user's own brings the compiler, and not the folders around it.
#[test]
fn a_compiler_brings_nothing_of_its_folder() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    for folder in ["home/bin", "home/tools"] {
        fs::create_dir(place.path(folder)).expect("made");
        let compiler = place.path(folder).join("gcc");
        fs::write(&compiler, "#!/bin/sh\nexec cc \"$@\"\n").expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&compiler, mode).expect("it may be run");
        let steal = "__asm__(\".pushsection .data\\n.incbin \\\"HOME/secret\\\"\\n.popsection\\n\");\n\
                     static long attack(void) { return -1; }\n";
        for (attack, code) in [("static long attack(void) { return -1; }\n", 0), (steal, 2)] {
            let mut command = place.command(attack, "linux-6.12", short_run);
            let output = command.env("CC", &compiler).output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{folder}: {said}");
        }
    }
}

/// A folder of compiled C in which others may write is none.
#[test]
fn a_cache_of_others_is_refused() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.path("cache/tree")).expect("made");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(place.path("cache/tree"), mode).expect("others may write");
    let output = place.run("static long attack(void) { return -1; }\n", false);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("others may write there"), "{said}");
}

/// A repository whose author lets git take one file for another is read as it was committed.
#[test]
fn git_takes_no_object_for_another() {
    let has_git = Command::new("git").arg("--version").output().is_ok();
    if !has_compiler() || !has_git {
        return;
    }
    let place = Place::new();
    let at_head = |kernel: &str| short_run(&kernel.replace("/tree,", "/tree@HEAD,"));
    let attack = "static long attack(void) { return -1; }\n";
    let mut command = place.command(attack, "linux-6.12", at_head);
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]);
        let output = git.arg("-C").arg(place.path("tree")).args(arguments).output();
        let output = output.expect("git starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    };
    let file = "drivers/cpuidle/governors/small.c";
    git(&["init", "-q"]);
    git(&["add", file]);
    git(&["commit", "-q", "-m", "one"]);
    fs::write(place.path("other.c"), "#error replaced\n").expect("written");
    let other = git(&["hash-object", "-w", "../other.c"]);
    git(&["replace", &git(&["rev-parse", &format!("HEAD:{file}")]), &other]);
    let output = command.output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Types that lead to each other without end are refused, or read as far as anybody asks.
#[test]
fn types_without_end_are_bounded() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let shared = manifest.join("../schedtwin-engine/tests/schedulers/shared.bpf.c");
    let shared = fs::read_to_string(shared).expect("it is there");
    let members: String = (0..400).map(|at| format!("struct wide *m{at};\n")).collect();
    let wide = format!("struct wide {{\n{members}}};\nstruct wide wide[2];\n");
    let names: String = (1..40_000).map(|at| format!("typedef n{} n{at};\n", at - 1)).collect();
    let chain = format!("typedef int n0;\n{names}n39999 chain;\n");
    for (name, types, variable, code) in
        [("wide", wide, "wide[1].m0 == 0", 2), ("chain", chain, "chain == 0", 0)]
    {
        let used = format!("{types}long uses_{name}(void) {{ return {variable}; }}\n");
        let file = place.path(&format!("{name}.bpf.c"));
        fs::write(&file, format!("{shared}{used}")).expect("written");
        let kernel = format!("linux-6.12:scx={}", file.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
        command.args(short_run(&kernel)).env("SCHEDTWIN_CACHE", place.path("cache"));
        let output = command.output().expect("the binary starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{name}: {said}");
        assert!(code == 0 || said.contains("its types are too large"), "{name}: {said}");
    }
}

/// The worker of a command, if it has one already.
fn worker_of(command: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{command}/task/{command}/children")).ok()?;
    children.split_whitespace().find_map(|child| {
        // A compiler is no worker: it has no session of its own, and another program once it has been executed.
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        let session = stat.rsplit(") ").next()?.split(' ').nth(3)?.to_string();
        let program = fs::read_link(format!("/proc/{child}/exe")).ok()?;
        (session == child && program == fs::canonicalize(env!("CARGO_BIN_EXE_schedtwin")).ok()?)
            .then(|| child.parse().ok())?
    })
}

/// A command with every kind of output, whose C attacks nobody.
struct Victim {
    place: Place,
    kernel: String,
}

/// The files that a command writes, in the folder `out`.
const OF_RUN: [&str; 3] = ["out/a.html", "out/a.pftrace", "out/a.record"];
const OF_COMPARE: [&str; 2] = ["out/b.html", "out/b.txt"];
const OF_SWEEP: [&str; 2] = ["out/c.csv", "out/c.html"];

impl Victim {
    fn new() -> Victim {
        let place = Place::new();
        let text = governor("static long attack(void) { return -1; }\n");
        fs::write(place.path("tree/drivers/cpuidle/governors/small.c"), text).expect("written");
        let tree = place.path("tree").display().to_string();
        Victim { kernel: format!("linux-6.12:tree={tree},cpuidle=tree/small.c"), place }
    }

    fn command(&self, kind: usize) -> (Command, &'static [&'static str]) {
        let common = ["-m", "uniform8", "-w", "w1", "-k", &self.kernel, "--duration"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
        let outputs: &[&str] = match kind {
            0 => {
                command.arg("run").args(common).args(["400ms", "--html", OF_RUN[0]]);
                command.args(["--trace", OF_RUN[1], "--record", OF_RUN[2]]);
                &OF_RUN
            }
            1 => {
                command.arg("compare").args(common).args(["100ms", "-k", "linux-6.12", "-n", "3"]);
                command.args(["--html", OF_COMPARE[0], "-o", OF_COMPARE[1]]);
                &OF_COMPARE
            }
            _ => {
                command.arg("sweep").args(common).args(["100ms", "-n", "4", "-q"]);
                command.args(["--cache", "runs", "-o", OF_SWEEP[0], "--html", OF_SWEEP[1]]);
                &OF_SWEEP
            }
        };
        command.current_dir(self.place.folder.path());
        command.env("SCHEDTWIN_CACHE", self.place.path("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        (command, outputs)
    }

    /// Nothing of what an earlier command has written.
    fn renew(&self) {
        for folder in ["out", "runs"] {
            let _ = fs::remove_dir_all(self.place.path(folder));
        }
        fs::create_dir(self.place.path("out")).expect("made");
    }

    /// Supervisor or worker are killed at so many moments of each command: each output is whole or absent, nobody is left, only a
    /// command that came to its end succeeds, and one that is given again has the whole outputs.
    fn killed_at(&self, moments: u32) {
        let mut workers = 0;
        for kind in 0..3 {
            // The first one compiles; the second says how long a command takes, and what whole outputs are.
            self.renew();
            assert!(self.command(kind).0.status().expect("it starts").success());
            self.renew();
            let began = Instant::now();
            let (mut command, outputs) = self.command(kind);
            assert!(command.status().expect("it starts").success());
            let took = began.elapsed();
            let read = |name: &&str| fs::read(self.place.path(name));
            let whole: Vec<Vec<u8>> =
                outputs.iter().map(|name| read(name).expect("it is there")).collect();
            for moment in 0..moments {
                self.renew();
                // As irregular as random ones, and nowhere two alike.
                let share = (f64::from(moment) * 0.618_033_988_75).fract();
                let running = self.command(kind).0.spawn().expect("it starts");
                std::thread::sleep(took.mul_f64(share));
                let worker = worker_of(running.id());
                workers += u32::from(worker.is_some());
                let victim = if moment % 2 == 0 { Some(running.id()) } else { worker };
                if let Some(victim) = victim {
                    let _ = Command::new("kill").args(["-9", &victim.to_string()]).status();
                }
                let output = running.wait_with_output().expect("it ends");
                let at = format!("command {kind}, moment {moment}");
                for (name, whole) in outputs.iter().zip(&whole) {
                    if let Ok(found) = read(name) {
                        assert_eq!(found.len(), whole.len(), "{name} is half, {at}");
                    }
                }
                let is_there = |name: &&str| self.place.path(name).exists();
                if output.status.success() {
                    assert!(outputs.iter().all(is_there), "it succeeded without its outputs, {at}");
                } else if moment % 2 == 1 && worker.is_some() {
                    assert_eq!(output.status.code(), Some(2), "{at}");
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(said.contains(NOT_WHOLE), "{at}: {said}");
                }
                let deadline = Instant::now() + Duration::from_secs(10);
                while worker.as_ref().is_some_and(is_left) {
                    assert!(Instant::now() < deadline, "the worker is left, {at}");
                    std::thread::yield_now();
                }
                // What it left does not keep the next one from its end.
                if moment % 8 == 0 {
                    assert!(self.command(kind).0.status().expect("it starts").success(), "{at}");
                    let all = outputs.iter().zip(&whole);
                    let differs = |(name, whole): &(&&str, &Vec<u8>)| {
                        read(name).expect("it is there").len() != whole.len()
                    };
                    assert!(!all.clone().any(|pair| differs(&pair)), "given again: {at}");
                }
            }
        }
        assert!(workers > 0, "no worker was found, so none was killed");
    }
}

fn is_left(worker: &u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

fn has_compiler() -> bool {
    let cc = std::env::var("CC").unwrap_or("cc".to_string());
    let there = Command::new(cc).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: there is no C compiler");
    }
    there
}

#[test]
fn killed_at_some_moments() {
    if has_compiler() {
        Victim::new().killed_at(6);
    }
}

mod long {
    use super::*;

    #[test]
    fn killed_at_a_hundred_moments() {
        if has_compiler() {
            Victim::new().killed_at(34);
        }
    }
}
