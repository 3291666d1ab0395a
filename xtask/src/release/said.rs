// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads documents for a release: the changelog's section, the README's example.

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
    use crate::release::{Asked, make, read};
    use crate::web::root;
    use crate::workspace::{metadata, version_of};

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
