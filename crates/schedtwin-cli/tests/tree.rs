// SPDX-License-Identifier: GPL-2.0-or-later
//! Governors from a tree, through the binary: what is wrong with the user's C is said clearly, and whose it is.
//!
//! Where there is no C compiler these tests say so and end.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const GOVERNORS: &str = "drivers/cpuidle/governors";

/// A governor whose select() begins with the given lines; CPUs have their `last` number in per-CPU data.
fn governor(headers: &str, select: &str) -> String {
    format!(
        "#include <linux/cpuidle.h>\n{headers}\n\
         static DEFINE_PER_CPU(int, last[4]);\n\
         static int deep(volatile int x) {{ return x ? deep(x + 1) + x : 0; }}\n\
         static int small_select(struct cpuidle_driver *drv, struct cpuidle_device *dev, bool *stop_tick)\n{{\n\
         \tbool late = local_clock() > 50 * NSEC_PER_MSEC;\n\
         \tint *mine = *this_cpu_ptr(&last);\n\
         \t{select}\n\
         \treturn late & mine[0] & deep(0);\n}}\n\
         static struct cpuidle_governor small = {{ .name = \"small\", .select = small_select }};\n\
         static int __init init_small(void) {{ return cpuidle_register_governor(&small); }}\n\
         postcore_initcall(init_small);\n"
    )
}

/// Says what is skipped.
fn there_is_a_compiler() -> bool {
    let cc = std::env::var("CC").unwrap_or("cc".to_string());
    let found = Command::new(cc).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: there is no C compiler");
    }
    found
}

/// A kernel with the governor `text`, which a folder has afterwards.
fn written(folder: &Path, text: &str) -> String {
    let governors = folder.join(GOVERNORS);
    fs::create_dir_all(&governors).expect("made");
    fs::write(governors.join("small.c"), text).expect("written");
    format!("linux-6.12:tree={},cpuidle=tree/small.c", folder.display())
}

/// Runs a phone for a moment with the governor `text`; `None`: there is no compiler.
fn run(text: &str, with: &[(&str, &str)]) -> Option<Output> {
    let folder = tempfile::tempdir().expect("a folder");
    there_is_a_compiler().then(|| ask(folder.path(), &written(folder.path(), text), with))
}

fn ask(folder: &Path, kernel: &str, with: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
    command.args(["run", "-m", "pixel6", "-w", "ui-phone", "--duration", "300ms", "-k", kernel]);
    command.env("SCHEDTWIN_CACHE", folder.join("cache")).envs(with.iter().copied());
    command.output().expect("the binary starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Each error names the cause in our words and shows the compiler's.
#[test]
fn what_does_not_compile_is_told_in_both_languages() {
    for (headers, select, ours, compilers) in [
        (
            "",
            "tick_nohz_frob();",
            "the function `tick_nohz_frob` is not offered",
            "tick_nohz_frob();",
        ),
        (
            "#include <linux/nmi.h>",
            "",
            "the header `linux/nmi.h` is not offered",
            "#include <linux/nmi.h>",
        ),
        (
            "",
            "dev->next_hrtimer = 1;",
            "`struct cpuidle_device` has no member `next_hrtimer` here",
            "dev->next_hrtimer = 1;",
        ),
        ("", "mine[0] = jiffies;", "`jiffies` is not offered", "mine[0] = jiffies;"),
        (
            "int elsewhere(void);",
            "mine[0] = elsewhere();",
            "`elsewhere` is declared, but not offered",
            "elsewhere",
        ),
        ("", "return 0", "does not compile", "error: expected"),
    ] {
        let Some(output) = run(&governor(headers, select), &[]) else { return };
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        for part in [ours, compilers, "drivers/cpuidle/governors/small.c", "include"] {
            assert!(text.contains(part), "no `{part}` in:\n{text}");
        }
        assert!(text.lines().count() < 25, "{text}");
    }
}

/// What it does at run time and must not: the message names governor, function and question, and the code is that of bad input.
#[test]
fn what_crashes_or_loops_is_named() {
    const LOOP_LIMIT: [(&str, &str); 1] = [("SCHEDTWIN_TREE_LIMIT_S", "1")];
    for (select, what) in [
        ("if (late) *(volatile int *)16 = 1;", "that is not its own (0x10)"),
        ("if (late) (*this_cpu_ptr(&last))[4 + dev->cpu] = 1;", "outside of its array"),
        ("mine[0] = 5 / (late ? mine[3] : 1);", "divided by zero"),
        ("if (late) deep(1);", "deep()"),
        ("while (late) barrier();", "seems to loop for ever"),
        ("if (late) return 7;", "it chose state 7, and the CPU has 0 to 1"),
        ("if (late) return -1;", "it chose state -1"),
        ("if (late) mine = per_cpu(last, 99);", "of a CPU that there is not: 99"),
        ("if (late) mine[0] = nr_iowait_cpu(dev->cpu ^ 1);", "the CPU that it is asked for only"),
        ("if (late) dev->poll_limit_ns = 5;", "cannot set poll_limit_ns; it set 5"),
        ("BUG_ON(late);", "BUG_ON(late) in line"),
        ("if (late) mine = kzalloc(1 << 25, GFP_KERNEL);", "has been allocated"),
    ] {
        let Some(output) = run(&governor("#include <linux/slab.h>", select), &LOOP_LIMIT) else {
            return;
        };
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{select}\n{text}");
        for part in ["error: small.c of ", "asked: for an idle state, select(), CPU ", what] {
            assert!(text.contains(part), "{select}: no `{part}` in:\n{text}");
        }
        assert!(!text.contains("./"), "{select}: {text}");
    }
}

/// Threads that run into the same mistake say it once.
#[test]
fn what_many_threads_do_is_told_once() {
    for (select, what) in
        [("if (late) *(volatile int *)16 = 1;", "crashed"), ("if (late) return 7;", "cannot go on")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let kernel = written(folder.path(), &governor("", select));
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
        command.args(["compare", "-m", "pixel6", "-w", "ui-phone", "--duration", "300ms"]);
        command.args(["-n", "8", "--threads", "8", "-k", "linux-6.12", "-k", &kernel]);
        command.env("SCHEDTWIN_CACHE", folder.path().join("cache"));
        if !there_is_a_compiler() {
            return;
        }
        let output = command.output().expect("the binary starts");
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(text.matches("error: ").count(), 1, "{text}");
        assert!(text.contains(what), "{text}");
    }
}

/// Another compiler than the system's.
#[test]
fn clang_will_do() {
    if Command::new("clang").arg("--version").output().is_err() {
        eprintln!("clang_will_do: skipped, there is no clang");
        return;
    }
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedtwin-engine/tests/tree-of-ours");
    let mut asked = vec![(ours, "linux-6.12", "cpuidle=tree/average.c")];
    for (variable, release) in
        [("SCHEDTWIN_KERNEL_TREE", "linux-6.12"), ("SCHEDTWIN_KERNEL_TREE_7_3", "linux-7.3")]
    {
        match std::env::var_os(variable) {
            Some(tree) => asked.push((tree.into(), release, "cpuidle=tree,cpufreq=tree")),
            None => eprintln!("clang_will_do: {release} skipped, set {variable} to a kernel tree"),
        }
    }
    for (tree, release, settings) in asked {
        let kernel = format!("{release}:tree={},{settings}", tree.display());
        let run = |compiler: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            let output = ask(folder.path(), &kernel, &[("CC", compiler)]);
            assert!(output.status.success(), "{compiler}, {kernel}: {}", said(&output));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let by_clang = run("clang");
        if there_is_a_compiler() {
            assert_eq!(by_clang, run("cc"), "{kernel}");
        }
    }
}

/// Makes a repository of a folder, with one commit of all that is there; false: there is no git.
fn repository(folder: &Path, subject: &str) -> bool {
    shell(folder, "git init -q .") && committed(folder, subject)
}

/// Commits all that is in a repository.
fn committed(folder: &Path, subject: &str) -> bool {
    let commit = "git add -A && git -c user.name=t -c user.email=t@t commit -q -m";
    shell(folder, &format!("{commit} '{subject}'"))
}

fn shell(folder: &Path, command: &str) -> bool {
    let output = Command::new("sh").args(["-ec", command]).current_dir(folder).output();
    output.is_ok_and(|output| output.status.success())
}

/// Both ends of a commit in one name.
#[test]
fn revisions_are_listed_in_braces() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = written(folder.path(), &governor("", ""));
    if !there_is_a_compiler() || !repository(folder.path(), "what it does") {
        eprintln!("revisions_are_listed_in_braces: skipped, there is no git or no compiler");
        return;
    }
    written(folder.path(), &governor("", "if (late) *stop_tick = false;"));
    assert!(committed(folder.path(), "what it does"));
    let compare = |kernel: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
        command.args([
            "compare",
            "-m",
            "pixel6",
            "-w",
            "ui-phone",
            "--duration",
            "300ms",
            "-n",
            "2",
        ]);
        command.args(["-k", kernel]).env("SCHEDTWIN_CACHE", folder.path().join("cache"));
        command.output().expect("the binary starts")
    };
    let output = compare(&kernel.replace(",cpuidle", "@{HEAD~1,HEAD},cpuidle"));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["@HEAD~1,cpuidle", "@HEAD,cpuidle", "B vs A"] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    // Each column has its commit and what that says.
    assert_eq!(text.matches(" what it does)").count(), 2, "{text}");
    for (kernel, wanted) in [
        ("linux-6.12:hz={250,}", "this is no list of values"),
        ("linux-6.12:hz={250,250}", "this kernel is named twice"),
        ("linux-6.12:hz={250}", "at least two kernels"),
    ] {
        let text = said(&compare(kernel));
        assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
    }
}

/// An array of maps that begins with none has memory for its map alone, as scx_pair's: its maps are made when they are looked up.
#[test]
fn an_array_of_maps_may_begin_empty() {
    if !there_is_a_compiler() {
        eprintln!("skipped: there is no compiler");
        return;
    }
    let text = "#include <scx/common.bpf.h>\nchar _license[] SEC(\"license\") = \"GPL\";\n\
        struct {\n\t__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);\n\t__uint(max_entries, 64);\n\t__type(key, s32);\n\
        \t__array(values, struct {\n\t\t__uint(type, BPF_MAP_TYPE_QUEUE);\n\t\t__uint(max_entries, 64);\n\
        \t\t__type(value, u32);\n\t});\n} queues SEC(\".maps\");\n\
        u64 behind[64] = { 1, 2, 3, 4, 5, 6, 7, 8 };\n\
        void BPF_STRUCT_OPS(one_enqueue, struct task_struct *p, u64 enq_flags)\n{\n\
        \ts32 key = 5;\n\tu32 pid = p->pid, first = 0;\n\
        \tvoid *queue = bpf_map_lookup_elem(&queues, &key);\n\n\
        \tif (!queue || bpf_map_push_elem(queue, &pid, 0) || bpf_map_pop_elem(queue, &first) || first != pid)\n\
        \t\tscx_bpf_error(\"no queue\");\n\
        \tscx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);\n}\n\
        SCX_OPS_DEFINE(one, .enqueue = (void *)one_enqueue, .name = \"one\");\n";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("one.bpf.c");
    fs::write(&file, text).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
    command.args(["run", "-m", "pixel6", "-w", "hackbench", "--duration", "20ms", "-k"]);
    command.arg(format!("linux-7.3:scx={}", file.display()));
    command.env("SCHEDTWIN_CACHE", folder.path().join("cache"));
    let output = command.output().expect("the binary starts");
    assert!(output.status.success(), "{}", said(&output));
}

/// One changed line of a scheduler of sched_ext, between two revisions, shows as the first decision that differs.
#[test]
fn a_changed_line_of_a_scheduler_is_the_first_difference() {
    let scheduler = |line: &str| {
        format!(
            "#include <scx/common.bpf.h>\nchar _license[] SEC(\"license\") = \"GPL\";\n\
             void BPF_STRUCT_OPS(one_enqueue, struct task_struct *p, u64 enq_flags)\n{{\n\t{line}\n}}\n\
             void BPF_STRUCT_OPS(one_dispatch, s32 cpu, struct task_struct *prev)\n{{\n\
             \tscx_bpf_dsq_move_to_local(1, 0);\n}}\n\
             s32 BPF_STRUCT_OPS_SLEEPABLE(one_init)\n{{\n\treturn scx_bpf_create_dsq(1, -1);\n}}\n\
             SCX_OPS_DEFINE(one, .enqueue = (void *)one_enqueue, .dispatch = (void *)one_dispatch,\n\
             \t       .init = (void *)one_init, .name = \"one\");\n"
        )
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("one.bpf.c");
    let insert = "scx_bpf_dsq_insert(p, 1, SCX_SLICE_DFL, enq_flags);";
    fs::write(&file, scheduler(insert)).expect("written");
    if !there_is_a_compiler() || !repository(folder.path(), "c") {
        eprintln!("skipped: there is no git or no compiler");
        return;
    }
    // The last one comes first.
    fs::write(&file, scheduler(&insert.replace("enq_flags)", "enq_flags | SCX_ENQ_HEAD)")))
        .expect("written");
    assert!(committed(folder.path(), "c"));
    let compare = |kernels: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
        command.args([
            "compare",
            "-m",
            "pixel6",
            "-w",
            "hackbench",
            "--duration",
            "100ms",
            "-n",
            "2",
        ]);
        command.args(["--first-difference", "-k", kernels]);
        command.env("SCHEDTWIN_CACHE", folder.path().join("cache"));
        command.output().expect("the binary starts")
    };
    let output = compare(&format!("linux-7.3:scx={}@{{HEAD~1,HEAD}}", file.display()));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["pick", "scx: moved from a user DSQ by ops.dispatch()"] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

/// The fair class cannot be had, and the message says why and what can.
#[test]
fn the_fair_class_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path().display();
    for settings in [
        format!("tree={here},sched=tree"),
        format!("tree={here},fair=tree/fair.c"),
        "sched=tree".to_string(),
    ] {
        let output = ask(folder.path(), &format!("linux-7.3:{settings}"), &[]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        for part in ["the fair class cannot be taken from a tree", "conformance/judge --kernel"] {
            assert!(text.contains(part), "no `{part}` in:\n{text}");
        }
        assert_eq!(text.matches("error: ").count(), 1, "{text}");
    }
}

/// A warning is told, once, and the run goes on.
#[test]
fn a_warning_is_told_once() {
    let Some(output) = run(&governor("", "WARN_ON(late);"), &[]) else { return };
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(
        text.matches("warning: WARN_ON(late) at drivers/cpuidle/governors/small.c:").count(),
        1,
        "{text}"
    );
}

#[test]
fn what_is_not_there_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path().display();
    for (settings, wanted) in [
        ("cpuidle=tree".to_string(), "which tree is not said"),
        (format!("tree={here}"), "nothing is taken from the tree"),
        (format!("tree={here}/nowhere,cpuidle=tree"), "there is no kernel tree"),
        (format!("tree={here},cpuidle=tree"), "has no file `drivers/cpuidle/governors/teo.c`"),
        (
            format!("tree={here},cpuidle=tree/meno.c"),
            "did you mean `drivers/cpuidle/governors/menu.c`?",
        ),
        (format!("tree={here}@HEAD,cpuidle=tree"), "git has no revision `HEAD`"),
    ] {
        let output = ask(folder.path(), &format!("linux-6.12:{settings}"), &[]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
    }
    let output = run(&governor("", ""), &[("CC", "no-such-compiler")]);
    let Some(output) = output else { return };
    let text = said(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("no C compiler: `no-such-compiler`") && text.contains("install gcc"),
        "{text}"
    );
}

/// A file that registers nothing, and one that refuses to start.
#[test]
fn who_does_not_start_is_refused() {
    let text = governor("", "");
    let silent = text.replace("postcore_initcall(init_small);", "");
    let failing = text.replace("return cpuidle_register_governor(&small);", "return -ENODEV;");
    for text in [silent, failing] {
        let Some(output) = run(&text, &[]) else { return };
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains("small.c of") && text.contains("does not start: error -19"),
            "{text}"
        );
    }
}

/// What is compiled is kept, and found again.
#[test]
fn the_cache_has_one_object_for_each_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let governors = folder.path().join(GOVERNORS);
    fs::create_dir_all(&governors).expect("made");
    let kernel = format!("linux-6.12:tree={},cpuidle=tree/small.c", folder.path().display());
    let objects = || {
        let files = fs::read_dir(folder.path().join("cache/tree")).expect("the cache").flatten();
        let mut names: Vec<String> =
            files.map(|file| file.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let write =
        |select: &str| fs::write(governors.join("small.c"), governor("", select)).expect("written");
    write("");
    if run("", &[]).is_none() {
        return;
    }
    let ran = |with: &[(&str, &str)]| {
        let output = ask(folder.path(), &kernel, with);
        assert!(output.status.success(), "{}", said(&output));
    };
    ran(&[]);
    let first = objects();
    assert!(
        first.len() == 1 && first[0].starts_with("small-") && first[0].ends_with(".so"),
        "{first:?}"
    );
    ran(&[]);
    assert_eq!(objects(), first, "nothing else is left there");
    write("late = false;");
    ran(&[]);
    assert_eq!(objects().len(), 2);
    write("");
    ran(&[]);
    assert_eq!(objects().len(), 2);
}

/// Two trees whose governor is the same: what was changed elsewhere cannot show, which is told.
#[test]
fn a_change_that_no_governor_sees_is_told() {
    if !there_is_a_compiler() {
        return;
    }
    let [folder, other] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let kernels = [&folder, &other].map(|tree| written(tree.path(), &governor("", "")));
    fs::write(other.path().join(GOVERNORS).join("gov.h"), "/* new */").expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
    command.args(["compare", "-m", "pixel6", "-w", "ui-phone", "--duration", "100ms", "-n", "2"]);
    command.args(["-k", &kernels[0], "-k", &kernels[1]]);
    let output = command.env("SCHEDTWIN_CACHE", folder.path().join("cache")).output().expect("run");
    let told = String::from_utf8_lossy(&output.stdout).replace("\n  ", " ");
    assert!(told.contains("is the same C in both trees"), "{told}");
}

/// Of six commits, one of which does not compile, the first that needs more power.
#[test]
fn commits_are_bisected() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |at: usize| match at {
        0..=3 => governor("", &format!("/* {at} */ if (late) *stop_tick = false;")),
        4 => governor("", "nonsense here"),
        _ => governor("", &format!("/* {at} */ if (late) return 1;")),
    };
    let kernel = written(folder.path(), &text(0));
    if !there_is_a_compiler() || !repository(folder.path(), "commit 0") {
        eprintln!("skipped: there is no git or no compiler");
        return;
    }
    for at in 1..=6 {
        written(folder.path(), &text(at));
        assert!(committed(folder.path(), &format!("commit {at}")));
    }
    let bisect = |with: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
        command.args(["bisect", "-m", "pixel6", "-w", "ui-phone", "--duration", "300ms"]);
        for revision in ["HEAD~6", "HEAD"] {
            command.args(["-k", &kernel.replace(",cpuidle", &format!("@{revision},cpuidle"))]);
        }
        command.args(with).env("SCHEDTWIN_CACHE", folder.path().join("cache"));
        command.output().expect("the binary starts")
    };
    let output = bisect(&["--metric", "power.mean", "-n", "1"]);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("The first bad one is") && text.contains("commit 5"), "{text}");
    assert!(text.contains(" is better. One run of each has no interval"), "{text}");
    assert!(text.contains("commit 4"), "it may be the one that does not compile: {text}");
    assert!(!text.contains("commit 3") && !text.contains("commit 6"), "{text}");
    let output = bisect(&["--property", "starvation"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("breaks nothing that HEAD~6 keeps"), "{}", said(&output));
}
