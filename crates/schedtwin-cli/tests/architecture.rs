// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the architecture: the directions of dependencies, the modules that may write a state, and the declarations.

use schedtwin_engine::kernel_file::{Kind, Setting, settings};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Kernel, machine and workload know nothing of each other; the twin joins them.
#[test]
fn dependency_directions() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("schedtwin-types", &[][..]),
        ("schedtwin-input", &[]),
        ("schedtwin-kernel", &["schedtwin-types"]),
        ("schedtwin-machine", &["schedtwin-types", "schedtwin-input"]),
        ("schedtwin-workload", &["schedtwin-types", "schedtwin-input"]),
        ("schedtwin-trace", &["schedtwin-types"]),
        ("schedtwin-tree", &["schedtwin-types", "schedtwin-input", "schedtwin-kernel"]),
        (
            "schedtwin-engine",
            &[
                "schedtwin-types",
                "schedtwin-input",
                "schedtwin-kernel",
                "schedtwin-machine",
                "schedtwin-workload",
                "schedtwin-trace",
                "schedtwin-tree",
            ],
        ),
        ("schedtwin-lab", &["schedtwin-types", "schedtwin-input", "schedtwin-engine"]),
        ("schedtwin-attributes", &["schedtwin-types"]),
        (
            "schedtwin-live",
            &[
                "schedtwin-attributes",
                "schedtwin-types",
                "schedtwin-input",
                "schedtwin-workload",
                "schedtwin-machine",
                "schedtwin-engine",
                "schedtwin-trace",
                "schedtwin-lab",
            ],
        ),
        (
            "schedtwin",
            &[
                "schedtwin-types",
                "schedtwin-input",
                "schedtwin-trace",
                "schedtwin-engine",
                "schedtwin-lab",
            ],
        ),
        (
            "schedtwin-mcp",
            &[
                "schedtwin-types",
                "schedtwin-input",
                "schedtwin-trace",
                "schedtwin-engine",
                "schedtwin-lab",
                "schedtwin",
            ],
        ),
        (
            "schedtwin-cli",
            &[
                "schedtwin",
                "schedtwin-types",
                "schedtwin-input",
                "schedtwin-engine",
                "schedtwin-lab",
                "schedtwin-live",
                "schedtwin-machine",
                "schedtwin-mcp",
                "schedtwin-trace",
                "schedtwin-workload",
            ],
        ),
        (
            "schedtwin-conformance",
            &[
                "schedtwin-types",
                "schedtwin-input",
                "schedtwin-kernel",
                "schedtwin-trace",
                "schedtwin-workload",
                "schedtwin-engine",
                "schedtwin-lab",
                "schedtwin-live",
            ],
        ),
    ]);
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let mut seen = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let Some(allowed) = allowed.get(name) else { continue };
        seen += 1;
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let on = dependency["name"].as_str().expect("a name");
            let ours = on.starts_with("schedtwin");
            let for_tests = dependency["kind"].as_str() == Some("dev");
            assert!(!ours || for_tests || allowed.contains(&on), "{name} must not depend on {on}");
            assert!(
                name != "schedtwin-kernel" || ours || for_tests,
                "the kernel depends on nothing but the words: {on}"
            );
        }
    }
    assert_eq!(seen, allowed.len(), "every crate with a rule exists");
}

/// `--licences` names every package that Cargo.lock has for the binary. Renew it with `release/licences.py`.
#[test]
fn licences_cover_what_is_linked() {
    let told = fs::read_to_string(root().join("crates/schedtwin-cli/src/licences.txt")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "-p", "schedtwin-cli", "-e", "normal"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--prefix", "none", "-f", "{p}"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let tree = String::from_utf8(output.stdout).expect("cargo tree is text");
    let mut packages = 0;
    for line in tree.lines() {
        let mut words = line.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if name.starts_with("schedtwin") || line.ends_with("(*)") || name.is_empty() {
            continue;
        }
        let named = format!("\n{name} {}: ", version.trim_start_matches('v'));
        assert!(told.contains(&named), "licences.txt lacks {line}: run release/licences.py");
        packages += 1;
    }
    assert!(packages > 50, "the binary has dependencies: {packages}");
}

/// A crate can be packed and published by itself: it says what it is, names versions, and includes no file from outside of its folder
/// (folders such as `kernels` are links in it, which `cargo package` follows).
#[test]
fn crates_can_be_published() {
    let manifest = |folder: &Path| -> toml::Table {
        fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest").parse().expect("TOML")
    };
    let workspace = manifest(&root());
    for (name, dependency) in
        workspace["workspace"]["dependencies"].as_table().expect("dependencies")
    {
        let version = dependency.get("version").or(dependency.as_str().map(|_| dependency));
        assert!(version.is_some(), "Cargo.toml: {name} has no version");
    }
    let mut includes = 0;
    for folder in fs::read_dir(root().join("crates")).expect("crates").flatten().map(|e| e.path()) {
        let package = manifest(&folder);
        assert!(
            package["package"].get("description").is_some(),
            "{}: no description",
            folder.display()
        );
        let relative =
            folder.strip_prefix(root()).expect("below the root").to_str().expect("a name");
        for (path, code) in code_of(&format!("{relative}/src")) {
            for included in code.split("include_str!(").chain(code.split("include_bytes!(")).skip(1)
            {
                let text = included.split('"').nth(1).unwrap_or_default();
                let up = text.matches("../").count();
                let depth =
                    path.strip_prefix(&folder).expect("in its crate").components().count() - 1;
                assert!(
                    up <= depth,
                    "{}: includes {text}, which is outside of the crate",
                    path.display()
                );
                includes += usize::from(up > 0);
            }
        }
    }
    assert!(includes > 30, "kernels, machines, workloads and studies are included: {includes}");
}

/// The kernel's source without its tests: path and code, comments taken out.
fn kernel_code() -> Vec<(PathBuf, String)> {
    let found = code_of("crates/schedtwin-kernel/src");
    assert!(found.len() > 20, "the kernel has files");
    found
}

/// The source in a folder without its tests: path and code, comments taken out.
fn code_of(folder: &str) -> Vec<(PathBuf, String)> {
    let mut files = vec![root().join(folder)];
    let (mut found, mut only_compared) = (Vec::new(), Vec::new());
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(path).expect("a folder").flatten().map(|e| e.path()));
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        // The checkout itself may lie in a folder of that name.
        let within = path.strip_prefix(root()).expect("below the root");
        let is_test = within.components().any(|part| part.as_os_str() == "tests")
            || path.file_name().is_some_and(|name| name == "tests.rs");
        if is_test {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let code = |line: &str| line.split("//").next().unwrap_or("").to_string() + "\n";
        only_compared.extend(modules_of_comparisons(&path, &text));
        found.push((path, text[..tests].lines().map(code).collect()));
    }
    found.retain(|(path, _)| !only_compared.iter().any(|module| path.starts_with(module)));
    found.sort();
    found
}

/// Modules that a file has for comparisons with the kernel's C only: no product has them. Their paths as files and as folders.
fn modules_of_comparisons(path: &Path, text: &str) -> Vec<PathBuf> {
    let is_folders = path.file_name().is_some_and(|name| name == "mod.rs" || name == "lib.rs");
    let folder = if is_folders { path.with_file_name("") } else { path.with_extension("") };
    let parts = text.split("#[cfg(any(test, feature = \"conformance\"))]\n").skip(1);
    let names = parts.filter_map(|part| {
        let item = part.lines().find(|line| !line.starts_with("#["))?;
        item.strip_suffix(';')?.split_once("mod ").map(|(_, name)| name)
    });
    names.flat_map(|name| [folder.join(format!("{name}.rs")), folder.join(name)]).collect()
}

/// Folders that hold no source of ours: what builds leave.
const NOT_SOURCE: [&str; 2] = ["target", ".git"];

#[test]
fn source_files_begin_with_their_licence() {
    let mut paths = vec![root()];
    let (mut files, mut unlicensed) = (0, Vec::new());
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder").flatten();
            let ours = entries.filter(|e| !NOT_SOURCE.iter().any(|name| e.file_name() == *name));
            paths.extend(ours.map(|e| e.path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files += 1;
            let text = fs::read_to_string(&path).expect("a source file");
            if !text.starts_with("// SPDX-License-Identifier: GPL-2.0-or-later\n") {
                unlicensed.push(path.display().to_string());
            }
        }
    }
    assert!(files > 300, "only {files} source files were found");
    assert!(unlicensed.is_empty(), "files that do not begin with their licence: {unlicensed:#?}");
}

/// The modules of the kernel crate that the twin may name: what it says before boot, and what it sees afterwards.
const OPEN_MODULES: [&str; 7] =
    ["Activity", "Kernel", "config", "device_tree", "hardware", "policy", "system"];

/// What of the kernel crate a source file names: the first words behind `schedtwin_kernel::`.
fn modules_named(code: &str) -> Vec<String> {
    let mut named = Vec::new();
    for rest in code.split("schedtwin_kernel::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            named.push(first_word(rest));
            continue;
        };
        let (mut depth, mut item) = (0, String::new());
        for c in list.chars() {
            match c {
                '}' if depth == 0 => break,
                ',' if depth == 0 => named.push(first_word(&std::mem::take(&mut item))),
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => item.push(c),
            }
        }
        named.push(first_word(&item));
    }
    named.retain(|word| !word.is_empty());
    named
}

fn first_word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn named_modules_are_found_in_lists_and_paths() {
    let code = "use schedtwin_kernel::{\n    Kernel, sched::{Rq, Task},\n    config::Config,\n};\n\
                let x = schedtwin_kernel::sync::pipe::Pipes::default();";
    assert_eq!(modules_named(code), ["Kernel", "sched", "config", "sync"]);
}

/// The twin sees what hardware sees, and only tests use the interface of tests.
#[test]
fn the_twin_names_no_private_module_of_the_kernel() {
    let mut seen = 0;
    for folder in ["schedtwin-engine", "schedtwin-tree", "schedtwin-lab", "schedtwin-cli"] {
        for (path, code) in code_of(&format!("crates/{folder}/src")) {
            for module in modules_named(&code) {
                seen += 1;
                let open = OPEN_MODULES.contains(&module.as_str());
                assert!(open, "{}: schedtwin_kernel::{module} is private", path.display());
            }
            for call in [".inside()", ".inside_mut()", ".kernel_mut()"] {
                assert!(!code.contains(call), "{}: {call} is for tests", path.display());
            }
        }
    }
    assert!(seen > 5, "the twin uses the kernel: {seen}");
}

/// The crates with code that the compiler cannot check, and how many uses of `unsafe` each may have: the one that calls
/// C, and the one that makes two system calls. Every other crate forbids it.
#[test]
fn unsafe_code_is_in_two_crates() {
    const HOMES: [(&str, usize); 2] =
        [("crates/schedtwin-tree", usize::MAX), ("crates/schedtwin-attributes", 1)];
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    assert!(manifest.contains("unsafe_code = \"forbid\""), "the workspace forbids it");
    let mut members: Vec<PathBuf> =
        ["conformance", "benches", "hunt", "web", "xtask"].map(|m| root().join(m)).into();
    members
        .extend(fs::read_dir(root().join("crates")).expect("crates").flatten().map(|e| e.path()));
    for member in members {
        let manifest = fs::read_to_string(member.join("Cargo.toml")).expect("a manifest");
        let home = HOMES.iter().any(|(home, _)| member == root().join(home));
        assert_eq!(!manifest.contains("[lints]\nworkspace = true"), home, "{}", member.display());
    }
    let mut reasons = 0;
    for (home, uses_max) in HOMES {
        let mut uses = 0;
        for (path, _) in code_of(&format!("{home}/src")) {
            let text = fs::read_to_string(&path).expect("a module");
            let blocks = text.matches("unsafe {").count() + text.matches("unsafe impl").count();
            let given = text.matches("// SAFETY: ").count();
            assert!(blocks <= given, "{}: {blocks} uses, {given} reasons", path.display());
            (uses, reasons) = (uses + blocks, reasons + given);
        }
        assert!(uses <= uses_max, "{home}: {uses} uses");
    }
    assert!(reasons > 10, "{reasons}");
}

/// The parts of the kernel, the file that declares each, and the visibility of its fields: the compiler then keeps every
/// other module from reading or writing them.
const PARTS: [(&str, &str, &str); 9] = [
    ("Kernel", "lib.rs", ""),
    ("Scheduler", "sched/scheduler.rs", "pub(super) "),
    ("Cpufreq", "cpufreq/mod.rs", ""),
    ("Cpuidle", "cpuidle/mod.rs", ""),
    ("Time", "time/mod.rs", ""),
    ("SyncObjects", "sync/mod.rs", ""),
    ("Thermal", "thermal/mod.rs", ""),
    ("IrqWork", "work.rs", ""),
    ("OwnPolicies", "policy/mod.rs", ""),
];

/// The fields of a struct that are visible beyond `visibility`.
fn fields_too_visible(code: &str, part: &str, visibility: &str) -> Vec<String> {
    let start = code.find(&format!("pub struct {part} {{")).unwrap_or_else(|| panic!("{part}"));
    let fields = &code[start..start + code[start..].find("\n}").expect("its end")];
    let fields = fields.lines().skip(1).map(str::trim_start).filter(|line| line.contains(": "));
    let hidden = |field: &str| {
        let bare = field.strip_prefix(visibility).unwrap_or(field);
        !bare.starts_with("pub")
    };
    fields.filter(|field| !hidden(field)).map(str::to_string).collect()
}

/// Each part of the kernel is written in its own module only: its fields are private there.
#[test]
fn parts_of_the_kernel_are_written_in_their_own_modules() {
    let code = kernel_code();
    for (part, file, visibility) in PARTS {
        let path = format!("schedtwin-kernel/src/{file}");
        let (_, code) =
            code.iter().find(|(path_of, _)| path_of.ends_with(&path)).expect("its file");
        let visible = fields_too_visible(code, part, visibility);
        assert!(visible.is_empty(), "{part} in {file}: other modules can write {visible:?}");
    }
    let planted = "pub struct Time {\n    pub(crate) timers: u8,\n    broadcast: u8,\n}\n";
    assert_eq!(fields_too_visible(planted, "Time", ""), ["pub(crate) timers: u8,"]);
}

/// The kernel decides with integers, and calls nothing that reads the world.
#[test]
fn the_kernel_has_no_floats_and_no_world() {
    for (path, code) in kernel_code() {
        for (number, line) in code.lines().enumerate() {
            for word in
                ["f64", "f32", "println!", "std::fs", "std::env", "std::time", "std::thread"]
            {
                assert!(!line.contains(word), "{}:{}: {word}", path.display(), number + 1);
            }
        }
    }
}

/// Steps and states for comparisons with the kernel's C are in no product.
#[test]
fn only_conformance_is_built_with_what_comparisons_need() {
    let asks = |manifest: &Path| {
        let text = fs::read_to_string(manifest).expect("a manifest");
        text.lines().any(|line| line.contains("schedtwin-kernel") && line.contains("conformance"))
    };
    assert!(asks(&root().join("conformance/Cargo.toml")));
    let crates = fs::read_dir(root().join("crates")).expect("a folder").flatten();
    for folder in
        crates.map(|entry| entry.path()).chain([root().join("hunt"), root().join("benches")])
    {
        let manifest = folder.join("Cargo.toml");
        assert!(!asks(&manifest), "{}", manifest.display());
    }
}

/// Where settings are declared.
const DECLARATIONS: &str = "crates/schedtwin-kernel/src/config/";

fn is_declaration(path: &Path) -> bool {
    path.starts_with(root().join(DECLARATIONS))
}

/// Name of the enum and arms' words of each choice.
fn choices() -> Vec<(&'static str, Vec<&'static str>)> {
    let choice = |setting: &Setting| match &setting.kind {
        Kind::Choice { type_name, arms } => {
            Some((*type_name, arms.iter().map(|arm| arm.word).collect()))
        }
        _ => None,
    };
    let found: Vec<_> = settings().iter().filter_map(choice).collect();
    assert!(found.len() >= 30, "{found:?}");
    found
}

/// Whether code names a type's arms or constants: `RunnableBoost::Off`.
fn names_an_arm(code: &str, type_name: &str) -> bool {
    let arm = format!("{type_name}::");
    code.match_indices(&arm).any(|(at, _)| !code[..at].ends_with(char::is_alphanumeric))
}

/// Each variation point is matched in one place: one file of the kernel names its arms. Two of them are
/// asked in several places for one and the same thing, and answer by a method beside the declarations.
#[test]
fn a_variation_point_is_matched_in_one_file() {
    let methods = fs::read_to_string(root().join(DECLARATIONS).join("mod.rs")).unwrap();
    let code = kernel_code();
    for (point, _) in choices() {
        let places: Vec<String> = code
            .iter()
            .filter(|(path, _)| !is_declaration(path))
            .filter(|(_, text)| names_an_arm(text, point))
            .map(|(path, _)| path.display().to_string())
            .collect();
        let answers = methods.contains(&format!("\nimpl {point} {{"));
        let fine = places.len() == 1 || (places.is_empty() && answers);
        assert!(fine, "{point} is matched in {places:?}");
    }
}

/// Whether clamps are in use is asked in the module of demand alone: others ask for a demand, and get one with clamps
/// or without. The kernel declares the key and sets it up.
#[test]
fn the_key_of_clamps_is_asked_by_demand_only() {
    let mut asked = 0;
    for (path, code) in kernel_code().into_iter().filter(|(path, _)| !is_declaration(path)) {
        let inside = path.starts_with(root().join("crates/schedtwin-kernel/src/sched/demand"));
        for (number, line) in code.lines().enumerate() {
            let names = line.contains("uclamp_is_used") || line.contains("sched_uclamp_used");
            let declares =
                line.contains("sched_uclamp_used: UclampKey,") || line.contains("UclampKey::new(");
            assert!(inside || !names || declares, "{}:{}: {line}", path.display(), number + 1);
            asked += usize::from(inside && names);
        }
    }
    assert!(asked > 3, "the key has another name now");
}

/// A setting is spelled in its declaration, in the one file that decides and in data files: no other code of
/// the crates has its path or the words of its arms as text, and none outside of the kernel names its arms.
#[test]
fn settings_are_spelled_in_their_declarations_only() {
    // A signal of tasks that traces and explanations name, too.
    let signals = ["util_est"];
    let mut words: Vec<&str> = settings().iter().map(|setting| setting.path).collect();
    words.extend(choices().into_iter().flat_map(|(_, words)| words));
    // Words such as `none` or `cfs` mean something elsewhere; those of several parts are a setting's.
    words.retain(|word| word.contains(['_', '-']) && !signals.contains(word));
    assert!(words.len() > 90, "{}", words.len());
    let mut spelled = Vec::new();
    for entry in fs::read_dir(root().join("crates")).expect("the crates").flatten() {
        let folder = entry.path().join("src").display().to_string();
        for (path, code) in code_of(&folder) {
            if is_declaration(&path) {
                continue;
            }
            let of_kernel = path.starts_with(root().join("crates/schedtwin-kernel"));
            let found = words.iter().filter(|word| code.contains(&format!("\"{word}\"")));
            spelled.extend(found.map(|word| (path.clone(), word.to_string())));
            let named = choices().into_iter().filter(|(point, _)| names_an_arm(&code, point));
            let named = named.filter(|_| !of_kernel).map(|(point, _)| point.to_string());
            spelled.extend(named.map(|point| (path.clone(), point)));
        }
    }
    assert!(spelled.is_empty(), "{spelled:#?}");
}

/// Points that several modules ask, each by the point's own method, and why.
const ASKED_BY_SEVERAL: [(&str, &str); 1] = [(
    "preempt",
    "CONFIG_PREEMPTION concerns the return from interrupts and how long balancing may take",
)];

/// Each variation point is asked in one module: what else depends on it asks that module. A module is a folder,
/// with the file of the same name beside it; files directly in `src` and `sched` are modules of their own.
#[test]
fn a_variation_point_is_asked_in_one_module() {
    let source = root().join("crates/schedtwin-kernel/src");
    let module = |path: &Path| {
        let own = path.with_extension("");
        let folder = path.parent().expect("a folder");
        let alone = folder == source || folder == source.join("sched");
        let module = if alone || own.is_dir() { own.as_path() } else { folder };
        module.strip_prefix(&source).expect("a kernel file").display().to_string()
    };
    // Without white space, so that a line break inside an expression hides nothing.
    let code: Vec<(String, String)> = kernel_code()
        .into_iter()
        .filter(|(path, _)| !module(path).starts_with("config"))
        .map(|(path, text)| (module(&path), text.split_whitespace().collect()))
        .collect();
    for (module, text) in &code {
        let renamed = |at: usize| !text[..at].ends_with("letconfig");
        let other_name = text.match_indices("=&self.config;").any(|(at, _)| renamed(at));
        assert!(!other_name, "{module}: the configuration is called `config` everywhere");
    }
    let points: Vec<&str> = settings()
        .iter()
        .filter(|setting| matches!(setting.kind, Kind::Choice { .. }))
        .map(|setting| setting.path)
        .collect();
    assert!(points.len() >= 30, "{points:?}");
    for key in points {
        // A field is called as its key is, without the table.
        let asked = format!("config.{}", key.rsplit('.').next().expect("a name"));
        let asks = |text: &str| {
            text.match_indices(&asked).any(|(at, _)| {
                !text[at + asked.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        };
        let mut modules: Vec<&str> =
            code.iter().filter(|(_, text)| asks(text)).map(|(module, _)| module.as_str()).collect();
        modules.sort_unstable();
        modules.dedup();
        assert!(!modules.is_empty(), "`{key}` is asked nowhere");
        match ASKED_BY_SEVERAL.iter().find(|(point, _)| *point == key) {
            Some((_, why)) => {
                println!("`{key}` is asked in {modules:?}: {why}");
                assert!(
                    modules.len() > 1,
                    "`{key}` needs no exception: it is asked in {modules:?}"
                );
            }
            None => assert!(modules.len() == 1, "`{key}` is asked in {modules:?}"),
        }
    }
}

/// A kernel is the values of its configuration. Nothing asks which release it is.
#[test]
fn no_code_compares_release_numbers() {
    let version = |line: &str| {
        let bytes = line.as_bytes();
        // "5.18", "6.12": digits, a point, digits, and no name of an arm around it.
        (1..bytes.len().saturating_sub(1)).any(|at| {
            bytes[at] == b'.'
                && bytes[at - 1].is_ascii_digit()
                && bytes[at + 1].is_ascii_digit()
                && line.contains('"')
        })
    };
    // Declarations say which releases have an arm, and are asked by arm.
    for (path, code) in kernel_code().into_iter().filter(|(path, _)| !is_declaration(path)) {
        for (number, line) in code.lines().enumerate() {
            // A callback of sched_ext, called so in Linux.
            let line = &line.replace("cpu_release", "");
            let asks = version(line) || line.contains("release") || line.contains("LINUX_VERSION");
            assert!(!asks, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

/// A document ends with what a command prints. `BLESS=1` writes it there.
fn document_ends_with_output(document: &str, command: &[&str]) {
    let path = root().join(document);
    let output =
        Command::new(env!("CARGO_BIN_EXE_schedtwin")).args(command).output().expect("it runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    let text = fs::read_to_string(&path).expect("the document");
    let marker = format!("<!-- output of schedtwin {} -->\n", command.join(" "));
    let start = text.find(&marker).expect("the marker") + marker.len();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, format!("{}{printed}", &text[..start])).expect("can be written");
        return;
    }
    assert!(text[start..] == printed, "{document}: run with BLESS=1 to renew its end");
}

#[test]
fn the_document_of_variation_points_lists_them_all() {
    document_ends_with_output("docs/variation-points.md", &["list", "points"]);
}

/// The table of first and present results is what the files of results say.
#[test]
fn the_document_of_reports_has_their_results() {
    document_ends_with_output("docs/reports.md", &["study", "list", "--reports", "--results"]);
}

/// The schema of kernel files is the one that `schedtwin show schema kernel` makes. `BLESS=1` writes it.
#[test]
fn the_schema_of_kernel_files_is_current() {
    let path = root().join("schemas/schedtwin.kernel.schema.json");
    let made = schedtwin_lab::schema::kernel::text();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, made).expect("can be written");
        return;
    }
    let shipped = fs::read_to_string(&path).expect("schemas/schedtwin.kernel.schema.json");
    assert_eq!(shipped, made, "run with BLESS=1 to renew the schema");
}

/// The schema of a scheduler's options takes those that come with schedtwin, and refuses what the reader refuses.
#[test]
fn the_schema_judges_options_of_schedulers_as_the_reader_does() {
    let schema = schedtwin_lab::schema::text("options").expect("it is shipped");
    let schema = serde_json::from_str(&schema).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let takes = |text: &str| schema.is_valid(&serde_json::from_str(text).expect("JSON"));
    let reads = |text: &str| {
        let source = schedtwin_input::Source::new("x", text);
        schedtwin_engine::kernel_file::ExtOptions::read(&source).is_ok()
    };
    let folder = root().join("crates/schedtwin-tree/loaders");
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let ours = root().join("crates/schedtwin-engine/tests/schedulers/lanes.options.json");
    let texts: Vec<String> =
        files.chain([ours]).map(|path| fs::read_to_string(path).expect("a text")).collect();
    assert!(texts.len() > 5);
    for text in &texts {
        assert!(takes(text) && reads(text), "{text}");
    }
    for (from, to, fine) in [
        ("\"help\"", "\"hepl\"", false),
        ("\"options\"", "\"option\"", false),
        ("\"default\": 5", "\"default\": \"5\"", false),
        ("\"writes\": { \"misbehave\": 1 }", "\"unit\": \"x\"", false),
        ("\"ENQ_LAST\"", "\"SCX_OPS_ENQ_LAST\"", false),
        ("\"slice_ms\"", "\"timeout_ms\"", false),
        ("\"slice_ms\"", "\"slice\"", true),
        ("\"options\"", "\"sets\": { \"a[3]\": true, \"b\": -1 }, \"options\"", true),
    ] {
        let text = texts.last().expect("ours").replacen(from, to, 1);
        assert_eq!((takes(&text), reads(&text)), (fine, fine), "{from} as {to}");
    }
}

/// The schema takes every built-in kernel, and refuses what the reader refuses.
#[test]
fn the_schema_judges_kernel_files_as_the_reader_does() {
    let schema: serde_json::Value =
        serde_json::from_str(&schedtwin_lab::schema::kernel::text()).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let takes = |text: &str| {
        let file: toml::Table = text.parse().expect("TOML");
        schema.is_valid(&serde_json::to_value(file).expect("JSON"))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kernel.toml").display().to_string();
    let reads = |text: &str| {
        fs::write(&path, text).expect("written");
        schedtwin_engine::kernel_file::KernelFile::load(&path).is_ok()
    };
    for (name, inheriting) in schedtwin_engine::kernel_file::builtin_texts() {
        assert!(takes(inheriting) && reads(inheriting), "{name}");
        let text = schedtwin_engine::kernel_as_file(name).expect("built in");
        assert!(takes(&text) && reads(&text), "{name}");
        let cfs = text.contains("fair = \"cfs\"");
        // Kernels differ in these.
        let line_of = |key: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("{key} = ")));
            line.and_then(|line| line.split(" #").next()).expect("every kernel names it")
        };
        let [rate_limit, rt_runtime] = ["rate_limit_us", "rt_runtime_us"].map(line_of);
        let mut changes = vec![
            ("hz = 250", "", false),
            ("hz = 250", "hz = 23", false),
            ("hz = 250", "hz = 24", true),
            ("hz = 250", "hz = 250\nhx = 250", false),
            ("stat_interval_ms = 0", "", true),
            ("menu = \"", "menu = \"1", false),
            (rate_limit, "rate_limit_us = 400", true),
            (rate_limit, "rate_limit_us = \"fast\"", false),
            (rt_runtime, "rt_runtime_us = -1", true),
            (rt_runtime, "rt_runtime_us = -2", false),
            ("[features]", "[features]\nno_such = true", false),
            ("sis_util = true", "", !text.contains("sis_util = true")),
            ("sis_util = false", "", !text.contains("sis_util = false")),
        ];
        changes.extend(match cfs {
            true => [
                ("util_est = \"enqueued-and-ewma\"", "util_est = \"single\"", false),
                ("[cfs]", "[eevdf]\nbase_slice_unscaled_ns = 700_000\n[cfs]", false),
                ("start_debit = true", "", false),
                ("ideal_runtime = \"sched-slice\"", "", true),
                ("fair = \"cfs\"", "fair = \"eevdf\"", false),
            ],
            false => [
                ("util_est = \"single\"", "util_est = \"enqueued-and-ewma\"", true),
                ("teo_util = \"off\"", "teo_util = \"v4\"", false),
                ("start_debit = true", "", true),
                ("[features]", "[features]\nstart_debit = true", false),
                ("fair = \"eevdf\"", "fair = \"cfs\"", false),
            ],
        });
        for (from, to, fine) in changes {
            let changed = text.replacen(from, to, 1);
            assert_eq!(takes(&changed), fine, "the schema: {name}, {from} as {to}");
            assert_eq!(reads(&changed), fine, "the reader: {name}, {from} as {to}");
        }
    }
    for (said, fine) in [
        ("", true),
        ("hz = 24", true),
        ("hz = 23", false),
        ("hx = 250", false),
        ("teo_util = \"gradual\"", true),
        ("teo = \"6.12\"\nteo_util = \"v3\"", false),
        ("rt_bandwidth = \"throttling\"", true),
        ("rt_bandwidth = \"throttling\"\n[fair_server]\nruntime_us = 50_000", false),
        ("[fair_server]\nruntime_us = 50_000", true),
        ("[features]\nno_such = true", false),
        ("fair = \"eevdf\"\n[features]\nstart_debit = true", false),
    ] {
        let text = format!(
            "name = \"mine\"\ndescription = \"of mine\"\nextends = \"linux-6.12\"\n{said}\n"
        );
        assert_eq!(takes(&text), fine, "the schema: {said}");
        assert_eq!(reads(&text), fine, "the reader: {said}");
    }
}

/// The oldest compiler that the README, the manifest and CI speak of is one and the same.
/// README names the quick tests, and CI runs what they leave out.
#[test]
fn every_test_is_run_by_ci() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect(name);
    let quick = "cargo test --workspace -- --skip long::";
    assert!(read("README.md").lines().any(|line| line == quick), "README.md: {quick}");
    let ci = read(".ci/run");
    assert!(
        ci.contains("eval \"$(readme_command 2)\""),
        ".ci/run runs the README's second command"
    );
    assert!(ci.lines().any(|line| line == "cargo test --workspace -- long::"), ".ci/run");
    // A filter that matches nothing would leave nobody the wiser.
    let evidence = ["determinism", "invariants", "releases"]
        .map(|name| read(&format!("crates/schedtwin-engine/tests/evidence/{name}.rs")));
    for text in &evidence {
        assert!(text.contains("\nmod long {\n    use super::*;\n\n"), "{text}");
    }
}

#[test]
fn one_oldest_compiler() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let version =
        manifest.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next());
    let version = version.expect("the workspace names a version");
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    assert!(readme.contains(&format!("Rust ({version} or later")), "README.md asks for {version}");
    let ci = fs::read_to_string(root().join(".ci/run")).expect(".ci/run");
    assert!(ci.contains("rust-version") && ci.contains("cargo \"+$rust_version.0\""), ".ci/run");
}
