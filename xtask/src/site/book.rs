// SPDX-License-Identifier: GPL-2.0-or-later
//! The book: documents in parts, with a table of contents made from their titles.
//!
//! The documents stay where they are: the book is made of copies. What a chapter links to is a chapter, too, if it is a document. A link
//! to a source file of the library leads to its API docs, and one to any other file that the book does not have is its path alone.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mdbook_driver::MDBook;

use super::{Api, Documents};
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
            REFERENCE,
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

/// The chapter that names the crates of the library: it is made, and no document.
const REFERENCE: &str = "reference.md";

/// Builds it, beside the API docs and the playground.
pub fn build(documents: &Documents, api: &Api) -> Result<(), String> {
    let work = target_folder().join("site-source");
    let out = target_folder().join("site");
    for folder in [&work, &out] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| at(folder, &error))?;
        }
    }
    let source = work.join("src");
    let chapters = chapters(documents)?;
    for path in &chapters {
        write(&source.join(path), &text_of(path, documents, &chapters, api, &source)?)?;
    }
    copy_folder(&root().join("docs"), &source.join("docs"))?;
    write(&source.join("SUMMARY.md"), &summary(&chapters, &source)?)?;
    let settings = format!(
        "[book]\ntitle = \"schedtwin\"\nlanguage = \"en\"\n\n[build]\nbuild-dir = \"{}\"\n\n\
         [output.html]\ndefault-theme = \"light\"\npreferred-dark-theme = \"navy\"\n\n[output.html.search]\nenable = true\n",
        out.display()
    );
    write(&work.join("book.toml"), &settings)?;
    let book = MDBook::load(&work).map_err(|error| error.to_string())?;
    book.build().map_err(|error| error.to_string())?;
    copy_folder(&api.folder, &out.join("api"))?;
    // rustdoc's pages of help and settings lead back to a page that it does not write.
    write(
        &out.join("api/index.html"),
        "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=../reference.html\">\n",
    )?;
    let playground = target_folder().join("web");
    if playground.is_dir() {
        copy_folder(&playground, &out.join("playground"))?;
    }
    println!("{}: {} chapters", out.join("index.html").display(), chapters.len());
    Ok(())
}

/// The paths of all chapters: those of the parts, the folder of documents, and the documents that these link to.
fn chapters(documents: &Documents) -> Result<BTreeSet<String>, String> {
    let named = PARTS.iter().flat_map(|(_, paths)| paths.iter().map(ToString::to_string));
    let in_folder = documents.of.keys().filter(|path| path.matches('/').count() == 1);
    let in_folder = in_folder.filter(|path| path.starts_with("docs/")).cloned();
    let mut waiting: Vec<String> = named.chain(in_folder).collect();
    let mut chapters = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        match documents.of.get(&path) {
            Some(document) => {
                let linked = document.links.iter().filter_map(|link| link.path.as_ref());
                let linked = linked.filter(|to| documents.of.contains_key(*to));
                waiting.extend(linked.filter(|to| !chapters.contains(*to)).cloned());
            }
            None if path == REFERENCE => {}
            None => return Err(format!("the book wants {path}, which is no document")),
        }
        chapters.insert(path);
    }
    Ok(chapters)
}

/// The text of a chapter, with links of the book; results of studies that it links to are copied.
fn text_of(
    path: &str,
    documents: &Documents,
    chapters: &BTreeSet<String>,
    api: &Api,
    source: &Path,
) -> Result<String, String> {
    let Some(document) = documents.of.get(path) else { return Ok(api.contents()) };
    let up = "../".repeat(path.matches('/').count());
    let (mut whole, mut done) = (String::new(), 0);
    for link in &document.links {
        let to = link.path.as_deref().unwrap_or_default();
        let file = root().join(to);
        if chapters.contains(to) || to.starts_with("docs/") && file.is_file() {
            continue;
        }
        if to.starts_with("studies/") && file.is_file() {
            write(&source.join(to), &fs::read_to_string(&file).map_err(|e| at(&file, &e))?)?;
            continue;
        }
        let words = &document.text[link.span.clone()];
        whole.push_str(&document.text[done..link.span.start]);
        whole.push_str(&match api.page_of(to) {
            Some(page) => words.replace(&link.written, &format!("{up}api/{page}")),
            None => format!("`{to}`"),
        });
        done = link.span.end;
    }
    whole.push_str(&document.text[done..]);
    Ok(whole)
}

/// The table of contents.
fn summary(chapters: &BTreeSet<String>, source: &Path) -> Result<String, String> {
    let mut rest = chapters.clone();
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
            let chapter = source.join(path);
            let chapter = fs::read_to_string(&chapter).map_err(|error| at(&chapter, &error))?;
            let title = chapter.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path);
            text.push_str(&format!("- [{title}]({path})\n"));
        }
    }
    Ok(text)
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
