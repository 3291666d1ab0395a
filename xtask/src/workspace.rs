// SPDX-License-Identifier: GPL-2.0-or-later
//! What cargo knows of the workspace: its packages, what each needs, and the order in which they can be published.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Asks cargo for the workspace in a folder.
pub fn metadata(folder: &Path, options: &[&str]) -> Result<Value, String> {
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

pub fn version_of(metadata: &Value, package: &str) -> Result<String, String> {
    let found = packages(metadata).find(|one| one["name"] == package);
    let version = found.and_then(|one| one["version"].as_str());
    version.map(str::to_string).ok_or(format!("the workspace has no package {package}"))
}

/// The crates that are published, each after all that it needs, tests included, and those that say `publish = false`.
pub fn publishing_order(metadata: &Value) -> Result<(Vec<String>, Vec<String>), String> {
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

/// A package, and those of the workspace that it needs to be built, directly or not.
pub fn with_needs<'m>(metadata: &'m Value, package: &'m str) -> Vec<&'m Value> {
    let mut names = vec![package];
    let mut found = Vec::new();
    while let Some(name) = names.pop() {
        let Some(one) = packages(metadata).find(|one| one["name"] == name) else { continue };
        if found.contains(&one) {
            continue;
        }
        found.push(one);
        let needs = one["dependencies"].as_array().into_iter().flatten();
        let needs = needs.filter(|needed| needed["path"].is_string() && needed["kind"].is_null());
        names.extend(needs.filter_map(|needed| needed["name"].as_str()));
    }
    found.sort_by_key(|one| one["name"].as_str());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::root;
    use serde_json::json;
    use std::fs;

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
        assert_eq!(order.len(), fs::read_dir(root().join("crates")).expect("a folder").count());
        assert!(kept.contains(&"xtask".to_string()), "{kept:?}");
    }

    #[test]
    fn a_package_comes_with_those_below_it() {
        let metadata = json!({"packages": [
            package("library", &["engine"], true),
            package("engine", &["types"], true),
            package("types", &[], true),
            package("command", &["library"], true),
        ]});
        let names: Vec<_> =
            with_needs(&metadata, "library").into_iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["engine", "library", "types"]);
    }
}
