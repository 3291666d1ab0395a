// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads manifests and documents for a release: the order of crates, the changelog's section, the README's example.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Asks cargo for the workspace in a folder.
pub(super) fn metadata(folder: &Path, options: &[&str]) -> Result<Value, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked"]).args(options);
    let output = cargo.current_dir(folder).output();
    let output = output.map_err(|error| format!("failed to run cargo: {error}"))?;
    match output.status.success() {
        true => serde_json::from_slice(&output.stdout).map_err(|error| error.to_string()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

pub(super) fn version_of(metadata: &Value, package: &str) -> Result<String, String> {
    let found = packages(metadata).find(|one| one["name"] == package);
    let version = found.and_then(|one| one["version"].as_str());
    version.map(str::to_string).ok_or(format!("the workspace has no package {package}"))
}

/// The crates that are published, each after all that it needs, tests included, and those that say `publish = false`.
pub(super) fn publishing_order(metadata: &Value) -> Result<(Vec<String>, Vec<String>), String> {
    let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_string();
    let is_kept = |one: &&Value| one["publish"].as_array().is_some_and(Vec::is_empty);
    let (kept, mut rest): (Vec<&Value>, Vec<&Value>) = packages(metadata).partition(is_kept);
    let kept: Vec<String> = kept.into_iter().map(name).collect();
    rest.sort_by_key(|one| name(one));
    let mut order: Vec<String> = Vec::new();
    while !rest.is_empty() {
        let needs = |one: &Value| -> Vec<String> {
            let all = one["dependencies"].as_array().into_iter().flatten();
            all.filter(|dependency| dependency["path"].is_string()).map(name).collect()
        };
        for one in &rest {
            if let Some(unpublished) = needs(one).iter().find(|needed| kept.contains(needed)) {
                return Err(format!("{} needs {unpublished}, which is not published", name(one)));
            }
        }
        let is_ready = |one: &Value| needs(one).iter().all(|needed| order.contains(needed));
        let Some(next) = rest.iter().position(|one| is_ready(one)) else {
            let names: Vec<String> = rest.iter().map(|one| name(one)).collect();
            return Err(format!("these need each other: {}", names.join(" ")));
        };
        order.push(name(rest.remove(next)));
    }
    Ok((order, kept))
}

/// A version's heading and text in the changelog.
pub(super) fn changelog_section(
    changelog: &str,
    version: &str,
) -> Result<(String, String), String> {
    let mut sections = changelog.split("\n## ").skip(1);
    let is_it = |section: &&str| section.split_whitespace().next() == Some(version);
    let section = sections.find(is_it).ok_or(format!("CHANGELOG.md has no section {version}"))?;
    let (heading, text) = section.split_once('\n').unwrap_or((section, ""));
    if text.trim().is_empty() {
        return Err(format!("CHANGELOG.md says nothing under {version}"));
    }
    Ok((heading.trim_end().to_string(), format!("{}\n", text.trim())))
}

/// The arguments of the README's first command, and what it shows that they print.
pub(super) fn readme_example(readme: &str) -> Result<(&str, &str), String> {
    let command =
        readme.lines().find_map(|l| l.strip_prefix("cargo run --release -p schedtwin-cli -- "));
    let shown = readme.split("<!-- output of the first command -->\n```text\n").nth(1);
    let shown = shown.and_then(|rest| rest.find("```\n").map(|end| &rest[..end]));
    command.zip(shown).ok_or("README.md has no first command with its output".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::{Asked, files, make, read};
    use crate::web::root;
    use serde_json::json;

    fn package(name: &str, needs: &[&str], is_published: bool) -> Value {
        let needs = needs.iter().map(|one| json!({"name": one, "path": format!("/{one}")}));
        let mut needs: Vec<Value> = needs.collect();
        needs.push(json!({"name": "from-the-registry", "path": null}));
        let publish = if is_published { Value::Null } else { json!([]) };
        json!({"name": name, "publish": publish, "dependencies": needs})
    }

    #[test]
    fn each_crate_comes_after_what_it_needs() {
        let of = |packages: &[Value]| publishing_order(&json!({ "packages": packages }));
        let (order, kept) = of(&[
            package("command", &["engine", "types"], true),
            package("engine", &["types"], true),
            package("tests", &["command"], false),
            package("types", &[], true),
        ])
        .expect("an order");
        assert_eq!(
            (order, kept),
            (["types", "engine", "command"].map(String::from).into(), vec!["tests".into()])
        );
        let error =
            of(&[package("a", &["b"], true), package("b", &["a"], true)]).expect_err("a ring");
        assert_eq!(error, "these need each other: a b");
        let error = of(&[package("a", &["b"], true), package("b", &[], false)]).expect_err("kept");
        assert_eq!(error, "a needs b, which is not published");
    }

    /// The crates of `crates/` are published and nothing else.
    #[test]
    fn the_workspace_has_an_order() {
        let (order, kept) =
            publishing_order(&metadata(root(), &["--no-deps"]).expect("metadata")).expect("one");
        let names = ["types", "kernel", "engine", "lab", "cli"];
        let names = names.map(|name| format!("schedtwin-{name}"));
        assert!(order.iter().filter(|one| names.contains(one)).eq(&names), "{order:?}");
        assert_eq!(order.len(), files(&root().join("crates")).expect("a folder").len());
        assert!(kept.contains(&"xtask".to_string()), "{kept:?}");
    }

    #[test]
    fn the_changelog_is_cut_at_the_next_version() {
        let text = "# Changelog\n\n## 0.2.0 (2026-01-01)\n\n### Model\n\nNew.\n\n## 0.1.0\n\nOld.\n\n## 0.0.1\n";
        let section = changelog_section(text, "0.2.0").expect("a section");
        assert_eq!(section, ("0.2.0 (2026-01-01)".into(), "### Model\n\nNew.\n".into()));
        assert_eq!(changelog_section(text, "0.1.0").expect("a section").1, "Old.\n");
        assert!(changelog_section(text, "0.0.1").expect_err("empty").contains("says nothing"));
        assert!(changelog_section(text, "0.2").expect_err("none").contains("no section 0.2"));
    }

    #[test]
    fn the_documents_have_what_a_release_reads() {
        let version =
            version_of(&metadata(root(), &["--no-deps"]).expect("metadata"), "schedtwin-cli")
                .expect("one");
        let changelog = read(&root().join("CHANGELOG.md")).expect("it");
        assert!(
            changelog_section(&changelog, &version).expect("a section").1.starts_with("### Model")
        );
        let readme = read(&root().join("README.md")).expect("it");
        let (command, shown) = readme_example(&readme).expect("an example");
        assert!(command.starts_with("compare ") && shown.contains("B vs A"));
        let asked = Asked { dry_run: false, host_only: true, allow_dirty: false, no_verify: true };
        let error = make(&asked).expect_err("publishing is refused");
        assert!(error.contains("cargo publish --workspace"), "{error}");
    }
}
