// SPDX-License-Identifier: GPL-2.0-or-later

use super::*;

fn parse(text: &str) -> Result<SystemFile, Diagnostics> {
    SystemFile::parse("mine", &Source::new("mine.toml", text))
}

#[test]
fn the_built_in_profiles_are_read() {
    for (name, description) in builtin_names() {
        assert!(!description.is_empty(), "{name}");
    }
}

#[test]
fn faults_are_told_all_at_once() {
    let text = r#"
name = "mine"
description = "of mine"
[[source]]
name = "a"
origin = "somewhere"
timer = { every_ms = 0 }
hrtimer = { every_ms = 1000 }
run = "wrok"
run_us = [3, 2]
then = ["b"]
[[source]]
name = "a"
nice = 3
"#;
    let faults = parse(text).unwrap_err().to_string();
    for expected in [
        "`every_ms` is 0, outside 1..=86400000",
        "a source has one of `timer`, `hrtimer` and `interrupt`",
        "unknown word `wrok`",
        "`run_us` must rise",
        "there is no source `b`",
        "`origin` is missing in `source[1]`",
        "only threads have a class",
    ] {
        assert!(faults.contains(expected), "{expected}: {faults}");
    }
}

#[test]
fn a_circle_is_refused() {
    let source = |name: &str, then: &str| {
        format!("[[source]]\nname = \"{name}\"\norigin = \"x\"\nthen = [\"{then}\"]\n")
    };
    let head = "name = \"mine\"\ndescription = \"of mine\"\n";
    let text = format!("{head}{}{}{}", source("a", "b"), source("b", "c"), source("c", "a"));
    assert!(parse(&text).unwrap_err().to_string().contains("`a` triggers itself by others"));
    let text = format!("{head}{}", source("a", "a"));
    assert!(parse(&text).unwrap_err().to_string().contains("`a` triggers itself"));
}
