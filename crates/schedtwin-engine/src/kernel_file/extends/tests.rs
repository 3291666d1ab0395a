// SPDX-License-Identifier: GPL-2.0-or-later
//! Inheritance: what the built-in kernels come to, and every way in which a file can extend another one wrongly.

use crate::kernel_file::{KernelFile, builtin_texts};
use schedtwin_kernel::config::FairClass;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Each value of each setting, and the built-in kernels that have it. First written from the whole files that the
/// kernels were before they extended each other.
const BUILT_IN: &str = include_str!("built-in.txt");

#[test]
fn the_built_in_kernels_resolve_to_the_settings_on_record() {
    let kernels: Vec<(&str, KernelFile)> =
        builtin_texts().map(|(name, _)| (name, KernelFile::load(name).unwrap())).collect();
    let mut lines: BTreeMap<&str, Vec<(String, Vec<&str>)>> = BTreeMap::new();
    for (name, kernel) in &kernels {
        for (setting, value) in kernel.config.values() {
            let (value, name) = (value.to_string(), name.strip_prefix("linux-").unwrap());
            let values = lines.entry(setting.path).or_default();
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, names)) => names.push(name),
                None => values.push((value, vec![name])),
            }
        }
    }
    let mut text = String::new();
    for (path, values) in lines {
        for (value, names) in values {
            let names = if names.len() == kernels.len() { "all".into() } else { names.join(" ") };
            text.push_str(&format!("{path}={value}: {names}\n"));
        }
    }
    let path = "src/kernel_file/extends/built-in.txt";
    if std::env::var_os("BLESS").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), &text).unwrap();
    }
    for (made, recorded) in text.lines().zip(BUILT_IN.lines()) {
        assert_eq!(made, recorded, "BLESS=1 renews {path}; read the difference");
    }
    assert_eq!(text, BUILT_IN);
}

/// A folder of kernel files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("name = \"mine\"\ndescription = \"of mine\"\n{text}")).unwrap();
    }
    folder
}

fn load(files: &[(&str, &str)], settings: &str) -> Result<KernelFile, String> {
    let folder = folder(files);
    let root = folder.path().display().to_string();
    let path = folder.path().join(files[0].0).display().to_string();
    KernelFile::load(&format!("{path}{settings}"))
        .map_err(|faults| faults.to_string().replace(&format!("{root}/"), ""))
}

#[test]
fn a_file_has_what_it_says_and_inherits_the_rest() {
    let base = KernelFile::load("linux-7.3").unwrap().config;
    let extended = "extends = \"linux-7.3\"\nhz = 1000\n[features]\nrun_to_parity = false\n";
    let kernel = load(&[("a.toml", extended)], "").unwrap();
    let set = KernelFile::load("linux-7.3:hz=1000,features.run_to_parity=false").unwrap().config;
    assert_eq!(kernel.config, set);
    assert_ne!(kernel.config, base);
    assert_eq!(kernel.description, "of mine", "inherited by nobody");
    // Paths count from the folder of the file that names them; settings in place come last.
    let files = [
        ("a.toml", "extends = \"sub/b.toml\"\n"),
        ("sub/b.toml", "extends = \"../c.toml\"\nhz = 300\n"),
        ("c.toml", extended),
    ];
    assert_eq!(load(&files, "").unwrap().config.hz, 300);
    assert_eq!(load(&files, ":hz=100").unwrap().config.hz, 100);
    let patched = load(&[("a.toml", "extends = \"linux-5.18\"\n")], "+runnable-boost").unwrap();
    assert_eq!(patched.config, KernelFile::load("linux-5.18+runnable-boost").unwrap().config);
}

#[test]
fn an_arm_that_a_file_chooses_drops_what_it_inherits_for_the_old_one() {
    let old = "extends = \"linux-6.3\"\n";
    let cfs = load(&[("a.toml", old)], "").unwrap().config;
    assert_eq!(cfs.fair, FairClass::Cfs);
    assert_eq!(cfs, KernelFile::load("linux-6.3").unwrap().config);
    let throttled = "extends = \"linux-6.12\"\nrt_bandwidth = \"throttling\"\n";
    assert_eq!(load(&[("a.toml", throttled)], "").unwrap().config.fair_server_runtime, 0);
    let both = format!("{throttled}[fair_server]\nruntime_us = 7\n");
    let text = load(&[("a.toml", &both)], "").unwrap_err();
    assert!(text.contains("a.toml:5:1: `[fair_server]` is not for this kernel"), "{text}");
    let bare = load(&[("a.toml", "extends = \"linux-6.3\"\nfair = \"eevdf\"\n")], "").unwrap_err();
    assert!(bare.contains("a.toml:4:8: `eevdf` needs settings of its own"), "{bare}");
    assert!(bare.contains("start from `linux-7.3`"), "{bare}");
}

#[test]
fn what_a_file_cannot_extend_is_told_with_its_place() {
    let deep: Vec<(String, String)> =
        (0..20).map(|n| (format!("{n}.toml"), format!("extends = \"{}.toml\"\n", n + 1))).collect();
    let deep: Vec<(&str, &str)> =
        deep.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: [Case; 10] = [
        (
            &[("a.toml", "extends = \"linux-7.33\"\n")],
            &["a.toml:3:11: there is no kernel `linux-7.33`", "did you mean `linux-7.3`"],
        ),
        (
            &[("a.toml", "extends = \"b.toml\"\n")],
            &["a.toml:3:11: `b.toml` cannot be extended: there is no such file", "the folder"],
        ),
        (
            &[("a.toml", "extends = \"b.toml\"\n"), ("b.toml", "extends = \"./a.toml\"\n")],
            &["b.toml:3:11: `./a.toml` extends this file in turn"],
        ),
        (
            &[("a.toml", "extends = \"a.toml\"\n")],
            &["a.toml:3:11: `a.toml` extends this file in turn"],
        ),
        (&deep, &["15.toml:3:11: more than 16 files extend each other", "--file"]),
        (&[("a.toml", "extends = 7\n")], &["a.toml:3:11: "]),
        (
            &[("a.toml", "extends = \"b.toml\"\n"), ("b.toml", "[cpu.x]\n")],
            &["a.toml:3:11: `b.toml` is a machine file, not a kernel file"],
        ),
        (
            &[("a.toml", "extends = \"linux-6.12\"\nhz = 7\nqqqq = 1\n")],
            &["a.toml:4:6: `hz` is 7", "a.toml:5:1: "],
        ),
        (
            &[
                ("a.toml", "extends = \"b.toml\"\n"),
                ("b.toml", "extends = \"linux-6.12\"\nhz = 7\n"),
            ],
            &["b.toml:4:6: `hz` is 7, outside 24..=10000"],
        ),
        (&[("a.toml", "extends = \"linux-6.12\"\nfeatures = 1\n")], &["a.toml:4:12: ", "a table"]),
    ];
    for (files, parts) in cases {
        let text = load(files, "").unwrap_err();
        for part in parts {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
    let text = load(&deep, "").unwrap_err();
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn the_hash_covers_what_is_inherited_and_no_comments() {
    let hash = |inherited: &str, comment: &str| {
        let files = [
            ("a.toml", &*format!("# {comment}\nextends = \"b.toml\"\n")),
            ("b.toml", &*format!("extends = \"linux-6.12\"\n{inherited}")),
        ];
        let folder = folder(&files);
        let path = folder.path().join("a.toml").display().to_string();
        let text = KernelFile::load(&path).unwrap().fingerprint_text();
        text.replace(&folder.path().display().to_string(), "")
    };
    assert_eq!(hash("", "one"), hash("", "two"));
    assert_eq!(hash("", ""), hash("hz = 250\n", ""), "the same kernel, spelled otherwise");
    assert_ne!(hash("", ""), hash("hz = 300\n", ""));
}

/// The nearest release is looked for among numbers that a release could have; found by the fuzz target `kernel`.
#[test]
fn a_huge_release_number_is_refused_as_any_unknown_kernel() {
    for name in ["linux-4294967295.1", "linux-6.4294967295", "linux-99.19"] {
        let faults = KernelFile::load(name).unwrap_err().to_string();
        assert!(faults.contains(&format!("there is no kernel `{name}`")), "{faults}");
    }
}
