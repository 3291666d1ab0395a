// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel tree that wants something else than to govern: its C gets no file, no socket and no other process, its compiler reads nothing
//! that is not in the tree. Each attack is tried without the confinement, too, where it has to succeed: else nothing is tested.
//!
//! | attack | what becomes of it |
//! |---|---|
//! | a constructor, an ifunc resolver | refused when it is compiled |
//! | read, make, change, remove, rename a file | the system call fails |
//! | replace a compiled governor of another tree in the cache | the system call fails |
//! | map more memory than the machine has | the system call fails |
//! | open a socket, ask another process, start a program of one's own | the system call fails |
//! | `#include` or `.incbin` of a file outside of the tree | the compiler cannot read it |
//! | an object of a gigabyte | the compiler is stopped |
//!
//! Where there is no C compiler, or no Landlock, these tests say so and end.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const OFF: (&str, &str) = ("SCHEDTWIN_CONFINE", "off");

/// A governor that tries `attack` at its first question, an expression that is negative if it fails, and crashes if it succeeds.
fn governor(attack: &str) -> String {
    const HEAD: &str = r#"
#include <linux/cpuidle.h>

static long sys(long number, long a, long b, long c, long d)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = -1;
	register long r9 __asm__("r9") = 0;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return result;
#else
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = -1;
	register long x5 __asm__("x5") = 0;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
#endif
}
static int tried;
"#;
    format!(
        "{HEAD}static int small_select(struct cpuidle_driver *drv, struct cpuidle_device *dev, bool *stop_tick)\n{{\n\
         \tif (!tried++ && ({attack}) >= 0)\n\t\t__builtin_trap();\n\treturn 0;\n}}\n\
         static struct cpuidle_governor small = {{ .name = \"small\", .select = small_select }};\n\
         static int __init init_small(void) {{ return cpuidle_register_governor(&small); }}\n\
         postcore_initcall(init_small);\n"
    )
}

/// A folder with a tree, its cache, and things of somebody else.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["tree/drivers/cpuidle/governors", "home", "out"] {
            fs::create_dir_all(folder.path().join(name)).expect("made");
        }
        fs::write(folder.path().join("home/secret"), "int the_secret_word;\n").expect("written");
        Place { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path as a string of C.
    fn c(&self, name: &str) -> String {
        format!("(long)\"{}\"", self.path(name).display())
    }

    fn run(&self, text: &str, arguments: &[&str], with: &[(&str, &str)]) -> Output {
        fs::write(self.path("tree/drivers/cpuidle/governors/small.c"), text).expect("written");
        let kernel =
            format!("linux-6.12:tree={},cpuidle=tree/small.c", self.path("tree").display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
        command.args(["run", "-m", "uniform8", "-w", "w1", "--duration", "100ms", "-k", &kernel]);
        command.args(arguments).current_dir(self.folder.path());
        command.env("SCHEDTWIN_CACHE", self.path("cache")).envs(with.iter().copied());
        command.output().expect("the binary starts")
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Says what is skipped.
fn can_be_tested() -> bool {
    let cc = std::env::var("CC").unwrap_or("cc".to_string());
    let compiles = Command::new(cc).arg("--version").output().is_ok();
    let place = Place::new();
    let confined = !compiles || {
        let output = place.run(&governor("-1"), &[], &[]);
        assert!(output.status.success(), "{}", said(&output));
        !said(&output).contains("no Landlock")
    };
    if !compiles {
        eprintln!("skipped: there is no C compiler");
    } else if !confined {
        eprintln!("skipped: this kernel has no Landlock");
    }
    compiles && confined
}

const AT_FDCWD: i32 = -100;

/// System calls: number on x86_64, on aarch64.
fn number(x86_64: u32, aarch64: u32) -> u32 {
    if cfg!(target_arch = "x86_64") { x86_64 } else { aarch64 }
}

#[test]
fn the_c_reaches_no_file_no_socket_and_no_process() {
    if !can_be_tested() {
        return;
    }
    let place = Place::new();
    let openat = number(257, 56);
    let (wr_creat, rdonly) = (0o101, 0);
    let parent = std::process::id();
    let program = Path::new("/usr/bin/env");
    let own_program = place.path("home/program");
    fs::copy(program, &own_program).expect("copied");
    let attacks: Vec<(&str, String)> = vec![
        ("reads", format!("sys({openat}, {AT_FDCWD}, {}, {rdonly}, 0)", place.c("home/secret"))),
        ("makes", format!("sys({openat}, {AT_FDCWD}, {}, {wr_creat}, 0600)", place.c("home/new"))),
        ("makes in the folder of the command", {
            format!("sys({openat}, {AT_FDCWD}, (long)\"planted\", {wr_creat}, 0600)")
        }),
        ("truncates", format!("sys({}, {}, 0, 0, 0)", number(76, 45), place.c("home/secret"))),
        ("removes", {
            format!("sys({}, {AT_FDCWD}, {}, 0, 0)", number(263, 35), place.c("home/gone"))
        }),
        ("renames", {
            let (from, to) = (place.c("home/moved"), place.c("out/moved"));
            format!("sys({}, {AT_FDCWD}, {from}, {AT_FDCWD}, {to})", number(264, 38))
        }),
        ("changes the mode", {
            format!("sys({}, {AT_FDCWD}, {}, 0777, 0)", number(268, 53), place.c("home/secret"))
        }),
        ("plants into the cache", {
            let planted = place.c("cache/tree/planted.so");
            format!("sys({openat}, {AT_FDCWD}, {planted}, {wr_creat}, 0600)")
        }),
        ("internet", format!("sys({}, 2, 1, 0, 0)", number(41, 198))),
        ("unix socket", format!("sys({}, 1, 1, 0, 0)", number(41, 198))),
        ("maps more than the machine has", {
            let (read_write, private_anonymous_noreserve) = (3, 0x4022);
            let mmap = number(9, 222);
            format!("sys({mmap}, 0, 1L << 44, {read_write}, {private_anonymous_noreserve})")
        }),
        ("signals", format!("sys({}, {parent}, 0, 0, 0)", number(62, 129))),
    ];
    // A program that succeeds to be started is this process no more: it would print its environment and end well.
    let starts = format!("sys({}, {}, 0, 0, 0)", number(59, 221), place.c("home/program"));
    for (name, attack) in &attacks {
        let renewed = || {
            for file in ["home/gone", "home/moved"] {
                fs::write(place.path(file), "mine").expect("written");
            }
            let _ = fs::remove_file(place.path("out/moved"));
            fs::write(place.path("home/secret"), "int the_secret_word;\n").expect("written");
        };
        renewed();
        let text = governor(attack);
        let output = place.run(&text, &[], &[]);
        assert!(output.status.success(), "{name} succeeded: {}", said(&output));
        for (file, whole) in [("home/gone", true), ("home/moved", true), ("home/new", false)] {
            assert_eq!(place.path(file).exists(), whole, "{name}: {file}");
        }
        let secret = fs::read_to_string(place.path("home/secret")).expect("it is there");
        assert_eq!(secret, "int the_secret_word;\n", "{name}");
        assert!(!place.path("planted").exists() && !place.path("cache/tree/planted.so").exists());
        let output = place.run(&text, &[], &[OFF]);
        assert!(!output.status.success(), "{name} does nothing, even if it may");
        for made in ["home/new", "planted", "cache/tree/planted.so"] {
            let _ = fs::remove_file(place.path(made));
        }
    }
    let text = governor(&starts);
    let told = |with: &[(&str, &str)]| {
        String::from_utf8_lossy(&place.run(&text, &[], with).stdout).into_owned()
    };
    assert!(told(&[]).contains("power"), "the run went on");
    assert!(!told(&[OFF]).contains("power"), "the program has taken its place");
}

/// What a confined command itself writes: a page, a trace, a record.
#[test]
fn a_confined_command_writes_its_outputs() {
    if !can_be_tested() {
        return;
    }
    let place = Place::new();
    let outputs = ["--html", "out/a.html", "--trace", "out/a.pftrace", "--record", "out/a.record"];
    let output = place.run(&governor("-1"), &outputs, &[]);
    assert!(output.status.success(), "{}", said(&output));
    for name in ["out/a.html", "out/a.pftrace", "out/a.record"] {
        assert!(fs::metadata(place.path(name)).is_ok_and(|file| file.len() > 100), "{name}");
    }
}

#[test]
fn nothing_runs_when_it_is_loaded() {
    if !can_be_tested() {
        return;
    }
    let place = Place::new();
    for (planted, words) in [
        ("__attribute__((constructor)) static void first(void) { tried = 1; }\n", "a constructor"),
        ("__attribute__((destructor)) static void last(void) { tried = 1; }\n", "a destructor"),
        ("void _init(void) { tried = 1; }\n", "_init()"),
        (
            "static int real(void) { return 0; }\nstatic int (*pick(void))(void) { return real; }\n\
             int early(void) __attribute__((ifunc(\"pick\")));\n",
            "an ifunc resolver",
        ),
    ] {
        let output = place.run(&format!("{}{planted}", governor("-1")), &[], &[]);
        assert_eq!(output.status.code(), Some(2), "{words}: {}", said(&output));
        assert!(said(&output).contains(words), "{words}: {}", said(&output));
    }
}

#[test]
fn the_compiler_reads_the_tree_alone() {
    if !can_be_tested() {
        return;
    }
    let place = Place::new();
    let secret = place.path("home/secret");
    let include = format!("#include \"{}\"\nint the_secret_word = \"\";\n", secret.display());
    let embed = format!("__asm__(\".incbin \\\"{}\\\"\");\n", secret.display());
    for planted in [include, embed] {
        let text = format!("{planted}{}", governor("-1"));
        let output = place.run(&text, &[], &[]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("does not compile"), "{}", said(&output));
    }
    let huge = format!("{}__asm__(\".data\\n.fill 0x40000000, 1, 7\\n.text\");\n", governor("-1"));
    let output = place.run(&huge, &[], &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(fs::read_dir(place.path("cache/tree")).expect("the cache").count() <= 1, "no litter");
}
