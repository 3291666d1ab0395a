// SPDX-License-Identifier: GPL-2.0-or-later
//! Governors from a tree: the C decides as the same rules in Rust do, its state is the kernel's, and a revision is a tree.
//!
//! Where there is no C compiler these tests say so and end. Those that need a kernel tree name the environment variable.

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::policy::*;
use schedtwin_engine::twin::Twin;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_types::{CpuId, Ns};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

const SECOND: Ns = 1_000_000_000;
/// Where a tree has its idle governors.
const GOVERNORS: &str = "drivers/cpuidle/governors";

/// Whether C can be compiled here; says what is skipped.
fn compiles(test: &str) -> bool {
    let cc = std::env::var("CC").unwrap_or("cc".to_string());
    let found = Command::new(cc).arg("--version").output().is_ok();
    if !found {
        eprintln!("{test}: skipped, there is no C compiler");
    }
    found
}

/// The folder that an environment variable names; says what is skipped.
fn kernel_tree(test: &str, variable: &str) -> Option<PathBuf> {
    let tree = std::env::var_os(variable).map(PathBuf::from).filter(|_| compiles(test));
    if tree.is_none() {
        eprintln!("{test}: skipped, set {variable} to a kernel tree");
    }
    tree
}

fn ours() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree-of-ours")
}

/// linux-6.12 with a governor of a tree.
fn kernel(tree: &Path, cpuidle: &str) -> KernelFile {
    load(&format!("linux-6.12:tree={},cpuidle={cpuidle}", tree.display()))
}

fn load(spec: &str) -> KernelFile {
    KernelFile::load(spec).unwrap_or_else(|faults| panic!("{spec}: {faults}"))
}

fn scenario(machine: &str, kernel: KernelFile) -> Scenario {
    Scenario::with_kernel(machine, kernel, "ui-phone", Some(SECOND)).unwrap()
}

fn digest(machine: &str, kernel: KernelFile) -> u64 {
    scenario(machine, kernel).run(3, RunOptions::default()).unwrap().digest
}

/// `average.c` once more, as a policy in Rust.
#[derive(Clone)]
struct Average {
    sum_ns: u64,
    stays: u64,
    history: [u64; 8],
    next: usize,
}

/// One for the machine, since its CPUs share a count.
#[derive(Clone)]
struct Averages {
    cpus: Vec<Average>,
    machine_stays: u64,
}

impl MachineIdleGovernor for Averages {
    fn select(
        &mut self,
        cpu: CpuId,
        input: &SelectInput,
        sleep_length: &mut dyn FnMut() -> SleepLength,
    ) -> IdleDecision {
        let data = &self.cpus[cpu.index()];
        let timer_ns = sleep_length().sleep_length_ns.max(0) as u64;
        let expected_ns = (data.sum_ns / data.stays).min(timer_ns);
        let pays = |state: &IdleStateParams| {
            !state.disabled
                && state.exit_latency_ns as i64 <= input.latency_req_ns
                && state.target_residency_ns <= expected_ns
        };
        let state = input.states.iter().rposition(pays).unwrap_or(0);
        let stop_tick = expected_ns >= input.tick_nsec as u64;
        IdleDecision { state, stop_tick, rule: "average" }
    }

    fn reflect(&mut self, cpu: CpuId, stay: &Reflection) {
        self.machine_stays += 1;
        if self.machine_stays.is_multiple_of(7) {
            return;
        }
        let data = &mut self.cpus[cpu.index()];
        let oldest = std::mem::replace(&mut data.history[data.next], stay.last_residency_ns);
        data.sum_ns = data.sum_ns + stay.last_residency_ns - oldest;
        data.next = (data.next + 1) % 8;
        data.stays = data.stays.max(data.next as u64);
    }
}

#[test]
fn c_decides_as_the_same_rules_in_rust_do() {
    if !compiles("c_decides_as_the_same_rules_in_rust_do") {
        return;
    }
    for machine in ["pixel6", "uniform8"] {
        let mut rust = load("linux-6.12");
        rust.policies = rust.policies.with_machine_idle_governor("average", |cpus| {
            let cpu = Average { sum_ns: 0, stays: 1, history: [0; 8], next: 0 };
            Box::new(Averages { cpus: vec![cpu; cpus.len()], machine_stays: 0 })
        });
        let c = kernel(&ours(), "tree/average.c");
        assert_eq!(digest(machine, c), digest(machine, rust), "{machine}");
        assert_ne!(
            digest(machine, load("linux-6.12")),
            digest(machine, kernel(&ours(), "tree/average.c"))
        );
    }
}

/// A clone goes on with what the original had learnt, in whatever order the two are asked.
#[test]
fn clones_have_memories_of_their_own() {
    if !compiles("clones_have_memories_of_their_own") {
        return;
    }
    let scenario = scenario("pixel6", kernel(&ours(), "tree/average.c"));
    let expected = scenario.run(5, RunOptions::default()).unwrap();
    let mut twin: Twin = scenario.twin(5);
    while twin.events() < expected.events / 3 && twin.step(&mut ()) {}
    let mut ahead = twin.clone();
    for _ in 0..1000 {
        ahead.step(&mut ());
    }
    let mut later = twin.clone();
    while [&mut twin, &mut ahead, &mut later].map(|twin| twin.step(&mut ())).contains(&true) {}
    for twin in [twin, ahead, later] {
        assert_eq!(twin.finish().digest, expected.digest);
    }
}

/// Clones may go elsewhere: another thread asks the same copy of the code.
#[test]
fn threads_do_not_matter() {
    if !compiles("threads_do_not_matter") {
        return;
    }
    let scenario = scenario("pixel6", kernel(&ours(), "tree/average.c"));
    let expected: Vec<u64> =
        (0..4).map(|seed| scenario.run(seed, RunOptions::default()).unwrap().digest).collect();
    let mut half: Twin = scenario.twin(0);
    for _ in 0..10_000 {
        half.step(&mut ());
    }
    let (scenario, found) = (&scenario, Mutex::new(Vec::new()));
    std::thread::scope(|threads| {
        for seed in 0..4 {
            let (found, mut clone) = (&found, half.clone());
            threads.spawn(move || {
                let digest = scenario.run(seed, RunOptions::default()).unwrap().digest;
                while clone.step(&mut ()) {}
                found.lock().unwrap().push((seed, digest, clone.finish().digest));
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_unstable();
    let wanted = (0..4).map(|seed| (seed as u64, expected[seed], expected[0]));
    assert_eq!(found, wanted.collect::<Vec<_>>());
}

/// Runs a command in a folder, which has to succeed.
fn sh(folder: &Path, command: &str) {
    let output = Command::new("sh").arg("-ec").arg(command).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
}

/// A repository with `average.c`, and a second commit that changes its header and a file that nobody takes.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    sh(folder.path(), &format!("cp -r {}/. . && git init -q .", ours().display()));
    let commit = "git add -A && git -c user.name=t -c user.email=t@t commit -q -m";
    sh(folder.path(), &format!("{commit} one"));
    sh(folder.path(), "mkdir -p kernel/sched; echo '/* new */' > kernel/sched/fair.c");
    sh(folder.path(), &format!("sed -i 's/SKIP 7/SKIP 2/' {GOVERNORS}/average.h && {commit} two"));
    folder
}

#[test]
fn a_revision_is_a_tree() {
    if !compiles("a_revision_is_a_tree") || Command::new("git").arg("--version").output().is_err() {
        return;
    }
    let folder = repository();
    let at = |revision: &str| {
        load(&format!(
            "linux-6.12:tree={}@{revision},cpuidle=tree/average.c",
            folder.path().display()
        ))
    };
    let (before, after) = (at("HEAD~1"), at("HEAD"));
    assert_eq!(before.code[0].hash, kernel(&ours(), "tree/average.c").code[0].hash);
    assert_ne!(before.code[0].hash, after.code[0].hash, "the header is part of it");
    assert_eq!(after.changed_and_not_taken(&before), ["kernel/sched/fair.c"]);
    assert_eq!(after.changed_and_not_taken(&after), [""; 0]);
    let (before, after) = (digest("pixel6", before), digest("pixel6", after));
    assert_eq!(before, digest("pixel6", kernel(&ours(), "tree/average.c")));
    assert_ne!(before, after);
    assert_eq!(after, digest("pixel6", kernel(folder.path(), "tree/average.c")));
    let spec = format!("linux-6.12:tree={}@HEAD~9,cpuidle=tree", folder.path().display());
    let text = KernelFile::load(&spec).unwrap_err().to_string();
    assert!(text.contains("git has no revision `HEAD~9`"), "{text}");
}

#[test]
fn provenance_has_the_hash_of_the_code() {
    if !compiles("provenance_has_the_hash_of_the_code") {
        return;
    }
    let folder = repository();
    let of = |tree: &Path| scenario("pixel6", kernel(tree, "tree/average.c")).provenance();
    let (one, other) = (of(&ours()), of(folder.path()));
    let hash = |from: &schedtwin_engine::Provenance| {
        from.hashes.iter().find(|hash| hash.0 == "kernel").unwrap().1.clone()
    };
    assert_ne!(hash(&one), hash(&other));
    let told = format!("C of a tree: idle governor average.c of {}", ours().display());
    assert!(one.trust.contains(&told), "{}", one.trust);
    assert!(!one.trust.contains("no hash"), "{}", one.trust);
    let text = kernel(&ours(), "tree/average.c").describe();
    assert!(text.contains("idle governor: average.c of "), "{text}");
}

/// A folder with a tree's governors, one of them changed.
fn changed(tree: &Path, file: &str, from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let governors = folder.path().join(GOVERNORS);
    std::fs::create_dir_all(&governors).unwrap();
    for name in ["teo.c", "menu.c", "gov.h"] {
        let text = std::fs::read_to_string(tree.join(GOVERNORS).join(name)).unwrap();
        let changed = text.replacen(from, to, 1);
        assert!(name != file || text != changed, "{file} has no `{from}`");
        std::fs::write(governors.join(name), if name == file { changed } else { text }).unwrap();
    }
    folder
}

/// Linux 6.12's own C leaves the execution that the built-in forms leave, and a line that is changed shows.
#[test]
fn linux_6_12s_c_is_the_built_in_form() {
    let Some(tree) = kernel_tree("linux_6_12s_c_is_the_built_in_form", "SCHEDTWIN_KERNEL_TREE")
    else {
        return;
    };
    for (governor, from, to) in [
        ("teo", "DECAY_SHIFT\t3", "DECAY_SHIFT\t2"),
        ("menu", "#define DECAY 8", "#define DECAY 4"),
    ] {
        for machine in ["pixel6", "i5-10600k", "uniform8"] {
            let built_in = digest(machine, load(&format!("linux-6.12:cpuidle={governor}")));
            let spec = format!("tree/{governor}.c");
            assert_eq!(digest(machine, kernel(&tree, &spec)), built_in, "{governor} on {machine}");
        }
        let folder = changed(&tree, &format!("{governor}.c"), from, to);
        let spec = format!("tree/{governor}.c");
        let [plain, other] =
            [&tree, folder.path()].map(|tree| digest("i5-10600k", kernel(tree, &spec)));
        assert_ne!(plain, other, "{governor}: `{to}` shows");
    }
    let unnamed = kernel(&tree, "tree");
    assert!(unnamed.code[0].name.starts_with("teo.c of "), "the kernel's own: {:?}", unnamed.code);
}

/// schedutil's C, with domains of one CPU and of several, with drivers that switch at once and such that a thread calls;
/// a line that is changed shows.
#[test]
fn linux_6_12s_schedutil_is_the_built_in_form() {
    let test = "linux_6_12s_schedutil_is_the_built_in_form";
    let Some(tree) = kernel_tree(test, "SCHEDTWIN_KERNEL_TREE") else { return };
    let of = |tree: &Path| load(&format!("linux-6.12:tree={},cpufreq=tree", tree.display()));
    for machine in ["pixel6", "i5-10600k", "uniform8", "juno-r2", "pixel6:switch=stock"] {
        assert_eq!(digest(machine, of(&tree)), digest(machine, load("linux-6.12")), "{machine}");
    }
    let folder = without_headroom(&tree);
    assert_ne!(digest("pixel6", of(folder.path())), digest("pixel6", of(&tree)), "headroom");
}

/// A folder with a tree's schedutil, which gives no headroom.
fn without_headroom(tree: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = "kernel/sched/cpufreq_schedutil.c";
    std::fs::create_dir_all(folder.path().join("kernel/sched")).unwrap();
    let text = std::fs::read_to_string(tree.join(file)).unwrap();
    let changed = text.replacen("actual = map_util_perf(actual);", "", 1);
    assert_ne!(text, changed);
    std::fs::write(folder.path().join(file), changed).unwrap();
    folder
}

/// What schedutil's C is told of CPUs whose demand has not changed is what it would be told anew.
#[test]
fn demands_that_are_kept_are_right() {
    let Some(tree) = kernel_tree("demands_that_are_kept_are_right", "SCHEDTWIN_KERNEL_TREE") else {
        return;
    };
    let kernel = load(&format!("linux-6.12:tree={},cpufreq=tree", tree.display()));
    for machine in ["pixel6", "uniform8"] {
        let verified = RunOptions { verify: true, ..RunOptions::default() };
        let scenario = scenario(machine, kernel.clone());
        let plain = scenario.run(3, RunOptions::default()).unwrap();
        assert_eq!(scenario.run(3, verified).unwrap().digest, plain.digest, "{machine}");
    }
}

/// The same with the C of 7.3, all of it together.
#[test]
fn linux_7_3s_c_is_the_built_in_form() {
    let test = "linux_7_3s_c_is_the_built_in_form";
    let Some(tree) = kernel_tree(test, "SCHEDTWIN_KERNEL_TREE_7_3") else { return };
    for governor in ["teo", "menu"] {
        for machine in ["pixel6", "i5-10600k", "uniform8"] {
            let built_in = load(&format!("linux-7.3:cpuidle={governor}"));
            let tree = tree.display();
            let c = load(&format!("linux-7.3:tree={tree},cpuidle=tree/{governor}.c,cpufreq=tree"));
            assert_eq!(digest(machine, c), digest(machine, built_in), "{governor} on {machine}");
        }
    }
}

/// A line of 7.3's C that is changed shows, in each of the three files.
#[test]
fn a_changed_line_of_linux_7_3_shows() {
    let test = "a_changed_line_of_linux_7_3_shows";
    let Some(tree) = kernel_tree(test, "SCHEDTWIN_KERNEL_TREE_7_3") else { return };
    let of = |tree: &Path, setting: &str| {
        digest("i5-10600k", load(&format!("linux-7.3:tree={},{setting}", tree.display())))
    };
    for (governor, from, to) in [
        ("teo", "DECAY_SHIFT\t3", "DECAY_SHIFT\t2"),
        ("menu", "#define DECAY 8", "#define DECAY 4"),
    ] {
        let folder = changed(&tree, &format!("{governor}.c"), from, to);
        let setting = format!("cpuidle=tree/{governor}.c");
        assert_ne!(of(&tree, &setting), of(folder.path(), &setting), "{governor}: `{to}`");
    }
    let folder = without_headroom(&tree);
    assert_ne!(of(&tree, "cpufreq=tree"), of(folder.path(), "cpufreq=tree"), "headroom");
}

/// Where schedutil does not run, nobody would ask.
#[test]
fn a_frequency_governor_that_nobody_would_ask_is_refused() {
    let spec = format!("linux-6.12:cpufreq=performance,tree={}", ours().display());
    assert!(KernelFile::load(&spec).is_err(), "nothing is taken from the tree");
    for spec in ["linux-4.7", "linux-6.12:scaling_driver=intel_pstate,hwp=false"] {
        let joined = if spec.contains(':') { "," } else { ":" };
        let spec = format!("{spec}{joined}tree={},cpufreq=tree", ours().display());
        let text = KernelFile::load(&spec).unwrap_err().to_string();
        assert!(text.contains("takes schedutil's place"), "{text}");
    }
}

/// Digest of the workload of the benches on its machine.
fn w1(kernel: KernelFile) -> u64 {
    let w1 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/w1.json");
    let scenario =
        Scenario::with_kernel("uniform8", kernel, w1.to_str().unwrap(), Some(5 * SECOND));
    scenario.unwrap().run(1, RunOptions::default()).unwrap().digest
}

#[test]
fn w1_is_the_same_with_linux_6_12s_c() {
    let Some(tree) = kernel_tree("w1_is_the_same_with_linux_6_12s_c", "SCHEDTWIN_KERNEL_TREE")
    else {
        return;
    };
    for governor in ["teo", "menu"] {
        let built_in = w1(load(&format!("linux-6.12:cpuidle={governor}")));
        assert_eq!(w1(kernel(&tree, &format!("tree/{governor}.c"))), built_in, "{governor}");
    }
    let all = load(&format!("linux-6.12:tree={},cpuidle=tree,cpufreq=tree", tree.display()));
    assert_eq!(w1(all), w1(load("linux-6.12")), "teo and schedutil");
}

#[test]
fn w1_is_the_same_with_linux_7_3s_c() {
    let Some(tree) = kernel_tree("w1_is_the_same_with_linux_7_3s_c", "SCHEDTWIN_KERNEL_TREE_7_3")
    else {
        return;
    };
    for governor in ["teo", "menu"] {
        let built_in = w1(load(&format!("linux-7.3:cpuidle={governor}")));
        let tree = tree.display();
        let c = load(&format!("linux-7.3:tree={tree},cpuidle=tree/{governor}.c,cpufreq=tree"));
        assert_eq!(w1(c), built_in, "{governor} and schedutil");
    }
}

/// The text of a kernel file says what it leaves out, and reads back as the kernel without it.
#[test]
fn a_kernel_file_names_the_code_that_it_has_not() {
    if !compiles("a_kernel_file_names_the_code_that_it_has_not") {
        return;
    }
    let kernel = kernel(&ours(), "tree/average.c");
    let text = kernel.to_file();
    let first = format!("# Not in this file: idle governor {}\n", kernel.code[0].text());
    assert!(text.starts_with(&first), "{text}");
    let source = schedtwin_input::Source::new("mine.toml", &*text);
    let spec = schedtwin_input::Spec::parse_kernel("mine").unwrap();
    assert_eq!(KernelFile::from_source(&source, &spec).unwrap().config, kernel.config);
    assert!(!load("linux-6.12").to_file().contains('#'));
}

/// What the decision records say of it.
#[test]
fn records_name_the_file() {
    if !compiles("records_name_the_file") {
        return;
    }
    #[derive(Default)]
    struct Rules(Vec<String>);
    impl schedtwin_engine::twin::Observer for Rules {
        const DECISIONS: bool = true;
        fn task(&mut self, _: schedtwin_types::TaskId, _: &str, _: i32) {}
        fn fact(&mut self, _: &schedtwin_types::Fact) {}
        fn decision(&mut self, decision: schedtwin_types::DecisionRecord) {
            if let schedtwin_types::Decision::Idle { rule, .. } = &decision.decision {
                self.0.push(rule.text().to_string());
            }
        }
        fn power(&mut self, _: Ns, _: schedtwin_types::PowerSource, _: u64) {}
        fn settled(&mut self, _: Ns) {}
    }
    let mut twin: Twin = scenario("pixel6", kernel(&ours(), "tree/average.c")).twin(3);
    twin.record_decisions();
    let mut seen = Rules::default();
    while twin.step(&mut seen) {}
    assert!(seen.0.len() > 100 && seen.0.iter().all(|rule| rule == "average.c of the tree"));
}

/// A kernel that is made while hundreds of others live shares a copy of the code, and notices nothing.
#[test]
fn many_kernels_live_at_once() {
    if !compiles("many_kernels_live_at_once") {
        return;
    }
    let scenario = Arc::new(scenario("uniform8", kernel(&ours(), "tree/average.c")));
    let expected = scenario.run(1, RunOptions::default()).unwrap().digest;
    let mut twins: Vec<Twin> = (0..200).map(|_| scenario.twin(1)).collect();
    for twin in &mut twins {
        for _ in 0..50 {
            twin.step(&mut ());
        }
    }
    for mut twin in twins.into_iter().skip(190) {
        while twin.step(&mut ()) {}
        assert_eq!(twin.finish().digest, expected);
    }
}
