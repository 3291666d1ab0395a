// SPDX-License-Identifier: GPL-2.0-or-later
//! The bill of materials of a program in CycloneDX's JSON: each package that it links, with version, licence, hash and needs.
//!
//! Linked are the normal dependencies, those of macros among them; what tests and build scripts need is not. References:
//! CycloneDX 1.5 (ECMA-424); package URLs of the type cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};

use super::{ARCHITECTURES, Outcome, Steps, read, write};
use crate::web::{root, target_folder};
use crate::workspace::metadata;

impl Steps {
    /// Lists what binary and wheel link; CycloneDX's own library checks the lists where it can be had.
    pub(super) fn materials(&self) -> Result<Outcome, String> {
        let mut told = Vec::new();
        let mut written = Vec::new();
        for (folder, package, file) in [
            (root().to_path_buf(), "schedtwin-cli", "schedtwin.cdx.json"),
            (root().join("python"), "schedtwin-python", "schedtwin-wheel.cdx.json"),
        ] {
            let platforms = ARCHITECTURES.map(|one| format!("{one}-unknown-linux-musl"));
            let asked = platforms.iter().map(|one| metadata(&folder, &["--filter-platform", one]));
            let asked = asked.collect::<Result<Vec<_>, _>>()?;
            let bill = bill(&asked, package, &read(&folder.join("Cargo.lock"))?)?;
            let count = bill["components"].as_array().map_or(0, Vec::len);
            let text = serde_json::to_string_pretty(&bill).map_err(|error| error.to_string())?;
            let path = self.out.join(file);
            write(&path, &(text + "\n"))?;
            written.push(path);
            told.push(format!("{file}, {count} components"));
        }
        let python = target_folder().join("release-tools/bin/python");
        let check = "import sys\nfrom cyclonedx.schema import SchemaVersion\n\
                     from cyclonedx.validation.json import JsonStrictValidator\n\
                     for path in sys.argv[1:]:\n \
                     error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(path).read())\n \
                     assert error is None, error\n";
        let judged =
            match Command::new(&python).args(["-c", "import cyclonedx, jsonschema"]).output() {
                Ok(output) if output.status.success() => {
                    self.run(Command::new(&python).args(["-c", check]).args(&written))?;
                    "valid CycloneDX 1.5"
                }
                _ => "not judged: release-tools has no cyclonedx-python-lib",
            };
        Ok(Outcome::Done(format!("{}; {judged}", told.join("; "))))
    }
}

/// Lists what `program` links on any of the platforms that `asked` holds cargo's answers for.
fn bill(asked: &[Value], program: &str, lock: &str) -> Result<Value, String> {
    let mut components = BTreeMap::new();
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut start = None;
    for metadata in asked {
        let by_id = |list: &Value| -> BTreeMap<String, Value> {
            let all = list.as_array().into_iter().flatten();
            all.map(|one| (text(&one["id"]), one.clone())).collect()
        };
        let (packages, nodes) =
            (by_id(&metadata["packages"]), by_id(&metadata["resolve"]["nodes"]));
        let root = packages.iter().find(|(_, package)| package["name"] == program);
        let (root, package) = root.ok_or(format!("cargo names no package {program}"))?;
        start = Some(component(package, "application", lock));
        let mut seen = BTreeSet::new();
        let mut todo = vec![root.clone()];
        while let Some(id) = todo.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            let package = &packages[&id];
            let linked = nodes[&id]["deps"].as_array().into_iter().flatten().filter(|dependency| {
                let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
                kinds.into_iter().any(|kind| kind["kind"].is_null())
            });
            let linked: Vec<String> = linked.map(|dependency| text(&dependency["pkg"])).collect();
            let urls = linked.iter().map(|id| url(&packages[id]));
            needs.entry(url(package)).or_default().extend(urls);
            if id != *root {
                components.insert(url(package), component(package, "library", lock));
            }
            todo.extend(linked);
        }
    }
    let dependencies: Vec<Value> =
        needs.iter().map(|(from, to)| json!({"ref": from, "dependsOn": to})).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": start.ok_or("no platform was asked for")?},
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies,
    }))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

/// The package's URL, which is its reference here, too.
fn url(package: &Value) -> String {
    // A plus in a version begins what a URL would read as a space.
    let version = text(&package["version"]).replace('+', "%2B");
    format!("pkg:cargo/{}@{version}", text(&package["name"]))
}

fn component(package: &Value, kind: &str, lock: &str) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut out = json!({
        "type": kind,
        "bom-ref": url(package),
        "name": name,
        "version": version,
        "purl": url(package),
    });
    if let Some(licence) = package["license"].as_str() {
        // Older manifests have a slash for "or".
        let expression = licence.replace(" / ", " OR ").replace('/', " OR ");
        out["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(hash) = checksum(lock, &name, &version) {
        out["hashes"] = json!([{"alg": "SHA-256", "content": hash}]);
    }
    out
}

/// The hash of the registry's archive, which Cargo.lock has.
fn checksum<'a>(lock: &'a str, name: &str, version: &str) -> Option<&'a str> {
    let (name, version) = (format!("name = \"{name}\""), format!("version = \"{version}\""));
    let mut entries = lock.split("[[package]]").skip(1);
    let entry = entries
        .find(|entry| entry.lines().any(|l| l == name) && entry.lines().any(|l| l == version))?;
    entry.lines().find_map(|line| line.strip_prefix("checksum = \"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_has_what_is_linked() {
        let kind = |kind: &str| match kind {
            "normal" => json!([{"kind": null}]),
            other => json!([{ "kind": other }]),
        };
        let metadata = json!({
            "packages": [
                {"id": "p", "name": "program", "version": "0.1.0", "license": "GPL-2.0-or-later"},
                {"id": "l", "name": "library", "version": "1.2.3+4", "license": "MIT/Apache-2.0"},
                {"id": "t", "name": "tests", "version": "9.0.0", "license": "MIT"},
            ],
            "resolve": {"nodes": [
                {"id": "p", "deps": [
                    {"pkg": "l", "dep_kinds": kind("normal")},
                    {"pkg": "t", "dep_kinds": kind("dev")},
                ]},
                {"id": "l", "deps": []},
                {"id": "t", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"library\"\nversion = \"1.2.3+4\"\nchecksum = \"00ff\"\n";
        let bill = bill(&[metadata.clone(), metadata], "program", lock).expect("a bill");
        assert_eq!(bill["metadata"]["component"]["purl"], "pkg:cargo/program@0.1.0");
        let library = json!({
            "type": "library",
            "bom-ref": "pkg:cargo/library@1.2.3%2B4",
            "name": "library",
            "version": "1.2.3+4",
            "purl": "pkg:cargo/library@1.2.3%2B4",
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "hashes": [{"alg": "SHA-256", "content": "00ff"}],
        });
        assert_eq!(bill["components"], json!([library]));
        assert_eq!(
            bill["dependencies"][1],
            json!({"ref": "pkg:cargo/program@0.1.0", "dependsOn": ["pkg:cargo/library@1.2.3%2B4"]})
        );
    }
}
