// SPDX-License-Identifier: GPL-2.0-or-later
//! The API docs: of the library, and of the crates of the workspace that it is made of, since it hands their types on.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::web::{root, target_folder};
use crate::workspace::{metadata, with_needs};

/// The crate that programs use.
const LIBRARY: &str = "schedtwin";

/// API docs that are built.
pub struct Api {
    /// Where they are.
    #[cfg_attr(not(feature = "site"), expect(dead_code))]
    pub folder: PathBuf,
    /// Names and descriptions of the crates.
    pub crates: Vec<(String, String)>,
}

impl Api {
    /// Builds them; a warning, as of a link within them that leads to nothing, is an error.
    pub fn build() -> Result<Api, String> {
        let metadata = metadata(root(), &["--no-deps"])?;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
        let crates = with_needs(&metadata, LIBRARY).into_iter();
        let crates: Vec<_> =
            crates.map(|one| (text(&one["name"]), text(&one["description"]))).collect();
        let folder = target_folder().join("doc");
        // Of other crates, which somebody else built there, the lists would name pages.
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let mut cargo = Command::new("cargo");
        cargo.args(["doc", "--quiet", "--locked", "--no-deps"]).current_dir(root());
        cargo.args(crates.iter().flat_map(|(name, _)| ["--package", name]));
        cargo.env("CARGO_TARGET_DIR", target_folder()).env("RUSTDOCFLAGS", "-D warnings");
        let status = cargo.status().map_err(|error| format!("failed to run cargo: {error}"))?;
        match status.success() {
            true => Ok(Api { folder, crates }),
            false => Err("the API docs cannot be built as they are".to_string()),
        }
    }
}

#[cfg(feature = "site")]
impl Api {
    /// The page of a source file: its module's if that is public, else its text.
    pub fn page_of(&self, source: &str) -> Option<String> {
        let (name, file) = source.strip_prefix("crates/")?.split_once("/src/")?;
        let path = file.strip_suffix(".rs")?;
        self.crates.iter().find(|(known, _)| known == name)?;
        let name = name.replace('-', "_");
        let module = match path.strip_suffix("/mod").unwrap_or(path) {
            "lib" => String::new(),
            module => format!("{module}/"),
        };
        let pages = [format!("{name}/{module}index.html"), format!("src/{name}/{file}.html")];
        pages.into_iter().find(|page| self.folder.join(page).is_file())
    }

    /// The list of the crates, as a document.
    pub fn contents(&self) -> String {
        let mut text =
            "# Reference of the library\n\nThe documentation of its crates:\n\n".to_string();
        for (name, description) in &self.crates {
            let folder = name.replace('-', "_");
            text.push_str(&format!("- [{name}](api/{folder}/index.html): {description}\n"));
        }
        text
    }
}
