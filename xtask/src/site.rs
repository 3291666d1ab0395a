// SPDX-License-Identifier: GPL-2.0-or-later
//! `cargo xtask site`: the documents as a book with a search, and the playground beside it.
//!
//! The documents stay where they are: they are copied, with a table of contents made from their first lines, and the book is made of the
//! copy. A link that leads to nothing ends the build; links to files that the book does not have are written as text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use mdbook_driver::MDBook;
use pulldown_cmark::{Event, Options, Parser, Tag};

use crate::web::{root, target_folder};

/// The parts of the book, with the documents that stand first in each; of the last, all the rest.
const PARTS: [(&str, &[&str]); 5] = [
    ("Begin", &["README.md", "docs/playground.md", "docs/screens.md", "docs/workloads.md"]),
    (
        "Ask",
        &[
            "docs/verdicts.md",
            "docs/records.md",
            "docs/recordings.md",
            "docs/live.md",
            "docs/sched-ext.md",
            "docs/from-a-commit-to-a-cover-letter.md",
            "docs/fair-from-a-tree.md",
            "docs/library.md",
            "docs/python.md",
        ],
    ),
    (
        "How well: scoreboards",
        &[
            "docs/validation.md",
            "docs/trust.md",
            "docs/studies.md",
            "docs/studies-results.md",
            "docs/reports.md",
            "docs/findings.md",
        ],
    ),
    ("How it is made", &["ARCHITECTURE.md", "MODEL.md", "CONTRIBUTING.md", "CHANGELOG.md"]),
    ("More", &[]),
];

/// Builds it.
pub fn build() -> Result<(), String> {
    let work = target_folder().join("site-source");
    let out = target_folder().join("site");
    for folder in [&work, &out] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| at(folder, &error))?;
        }
    }
    let source = work.join("src");
    let documents = copy(&source)?;
    write(&source.join("SUMMARY.md"), &summary(&documents)?)?;
    let settings = format!(
        "[book]\ntitle = \"schedtwin\"\nlanguage = \"en\"\n\n[build]\nbuild-dir = \"{}\"\n\n\
         [output.html]\ndefault-theme = \"light\"\npreferred-dark-theme = \"navy\"\n\n[output.html.search]\nenable = true\n",
        out.display()
    );
    write(&work.join("book.toml"), &settings)?;
    let book = MDBook::load(&work).map_err(|error| error.to_string())?;
    book.build().map_err(|error| error.to_string())?;
    let playground = target_folder().join("web");
    if playground.is_dir() {
        copy_folder(&playground, &out.join("playground"))?;
    }
    let count = documents.len();
    println!("{}: {count} documents, every link leads to a page", out.join("index.html").display());
    Ok(())
}

/// Copies the documents, and the results that they link to; their paths.
fn copy(to: &Path) -> Result<BTreeSet<String>, String> {
    let mut documents: BTreeSet<String> =
        PARTS.iter().flat_map(|(_, paths)| paths.iter().map(ToString::to_string)).collect();
    for path in files(&root().join("docs"), "md")? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        documents.insert(format!("docs/{name}"));
    }
    let mut broken = Vec::new();
    for document in &documents {
        let text = fs::read_to_string(root().join(document))
            .map_err(|error| format!("{document}: {error}"))?;
        let text = linked(document, &text, &documents, to, &mut broken)?;
        write(&to.join(document), &text)?;
    }
    copy_folder(&root().join("docs"), &to.join("docs"))?;
    if broken.is_empty() { Ok(documents) } else { Err(broken.join("\n")) }
}

/// The text with links of the book: to a document as they are, to another file of the project as its path alone.
fn linked(
    document: &str,
    text: &str,
    documents: &BTreeSet<String>,
    to: &Path,
    broken: &mut Vec<String>,
) -> Result<String, String> {
    let mut whole = String::new();
    let mut done = 0;
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    for (event, span) in parser {
        let Event::Start(Tag::Link { dest_url, .. }) = event else { continue };
        if dest_url.contains("://") || dest_url.starts_with('#') || dest_url.starts_with("mailto:")
        {
            continue;
        }
        let (path, _) = dest_url.split_once('#').unwrap_or((&dest_url, ""));
        let Some(real) = resolved(document, path) else {
            broken.push(format!("{document}: the link {dest_url} leads to nothing"));
            continue;
        };
        if documents.contains(&real) || real.starts_with("docs/") && root().join(&real).is_file() {
            continue;
        }
        let file = root().join(&real);
        if file.is_file() && real.starts_with("studies/") {
            write(&to.join(&real), &fs::read_to_string(&file).map_err(|e| at(&file, &e))?)?;
            continue;
        }
        whole.push_str(&text[done..span.start]);
        whole.push_str(&format!("`{real}`"));
        done = span.end;
    }
    whole.push_str(&text[done..]);
    Ok(whole)
}

/// The path of a link from the project's folder, if there is something.
fn resolved(document: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    root().join(&path).exists().then_some(path)
}

/// The table of contents.
fn summary(documents: &BTreeSet<String>) -> Result<String, String> {
    let mut rest = documents.clone();
    for path in PARTS.iter().flat_map(|(_, paths)| *paths) {
        rest.remove(*path);
    }
    let mut text = "# Summary\n".to_string();
    for (part, paths) in PARTS {
        text.push_str(&format!("\n# {part}\n\n"));
        let paths: Vec<&str> = match paths {
            [] => rest.iter().map(String::as_str).collect(),
            some => some.to_vec(),
        };
        for path in paths {
            let document =
                fs::read_to_string(root().join(path)).map_err(|e| at(Path::new(path), &e))?;
            let title = document.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path);
            text.push_str(&format!("- [{title}]({path})\n"));
        }
    }
    Ok(text)
}

/// Files of a folder whose names end so; those of its folders, too.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| at(folder, &error))?;
    let paths = entries.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(|error| at(folder, &error))?;
    paths.retain(|path| path.extension().is_some_and(|known| known == ending));
    Ok(paths)
}

/// Copies what is not there yet.
fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| at(to, &error))?;
    for entry in fs::read_dir(from).map_err(|error| at(from, &error))? {
        let path = entry.map_err(|error| at(from, &error))?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        match path.is_dir() {
            true => copy_folder(&path, &target)?,
            false if target.exists() => {}
            false => {
                fs::copy(&path, &target).map_err(|error| at(&path, &error))?;
            }
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| at(folder, &error))?;
    }
    fs::write(path, text).map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
