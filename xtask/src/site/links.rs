// SPDX-License-Identifier: GPL-2.0-or-later
//! The links of all documents: each leads to a file that exists and, where it names a heading, to one that is there.
//!
//! Documents are the Markdown files that git knows or would add. Lessons are not among them: their links lead from another place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::process::Command;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::web::root;

/// All documents by their paths.
pub struct Documents {
    pub of: BTreeMap<String, Document>,
}

/// A document.
#[derive(Default)]
pub struct Document {
    /// As it is.
    #[cfg_attr(not(feature = "site"), expect(dead_code))]
    pub text: String,
    /// Its links within the project.
    pub links: Vec<Link>,
    /// Its headings as links name them.
    headings: BTreeSet<String>,
}

/// A link.
pub struct Link {
    /// Where it stands in the text, its words included.
    #[cfg_attr(not(feature = "site"), expect(dead_code))]
    pub span: Range<usize>,
    /// As it is written.
    pub written: String,
    /// The path from the project's folder; `None` leads out of it.
    pub path: Option<String>,
    /// The heading; none where it is empty.
    heading: String,
    line: usize,
}

impl Documents {
    /// Reads them.
    pub fn read() -> Result<Documents, String> {
        let mut git = Command::new("git");
        git.args(["ls-files", "--cached", "--others", "--exclude-standard", "--"]);
        let answer = git.args(["*.md", ":!web/lessons"]).current_dir(root()).output();
        let answer = answer.map_err(|error| format!("failed to run git: {error}"))?;
        let mut of = BTreeMap::new();
        for path in String::from_utf8_lossy(&answer.stdout).lines() {
            let text = fs::read_to_string(root().join(path))
                .map_err(|error| format!("{path}: {error}"))?;
            of.insert(path.to_string(), Document::parse(path, text));
        }
        match of.is_empty() {
            true => Err("git names no document: this is no clone".to_string()),
            false => Ok(Documents { of }),
        }
    }

    /// Compares all links with what exists; the number of them.
    pub fn check(&self) -> Result<usize, String> {
        let mut broken = Vec::new();
        let mut count = 0;
        for (path, document) in &self.of {
            for link in &document.links {
                count += 1;
                if let Some(why) = self.fault(link) {
                    broken.push(format!("{path}:{}: the link {} {why}", link.line, link.written));
                }
            }
        }
        if broken.is_empty() { Ok(count) } else { Err(broken.join("\n")) }
    }

    /// What is wrong with a link.
    fn fault(&self, link: &Link) -> Option<&'static str> {
        let exists = |path: &&String| self.of.contains_key(*path) || root().join(path).exists();
        let Some(path) = link.path.as_ref().filter(exists) else {
            return Some("leads to nothing");
        };
        let is_there = |document: &Document| document.headings.contains(&link.heading);
        let is_found = link.heading.is_empty() || self.of.get(path).is_some_and(is_there);
        (!is_found).then_some("names no heading of that document")
    }
}

impl Document {
    fn parse(path: &str, text: String) -> Document {
        let mut document = Document::default();
        let mut heading: Option<String> = None;
        for (event, span) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let written = dest_url.to_string();
                    if written.contains("://") || written.starts_with("mailto:") {
                        continue;
                    }
                    let (to, heading) = written.split_once('#').unwrap_or((&written, ""));
                    let to =
                        if to.is_empty() { Some(path.to_string()) } else { resolved(path, to) };
                    let (heading, line) =
                        (heading.to_string(), 1 + text[..span.start].matches('\n').count());
                    document.links.push(Link { span, path: to, heading, line, written });
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    document.headings.extend(heading.take().map(|words| anchor(&words)))
                }
                Event::Text(words) | Event::Code(words) => {
                    heading.iter_mut().for_each(|heading| heading.push_str(&words))
                }
                _ => {}
            }
        }
        Document { text, ..document }
    }
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let letter = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    };
    heading.trim().to_lowercase().chars().filter_map(letter).collect()
}

/// The path of a link from the project's folder.
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
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_to_nothing_is_told_with_its_line() {
        let text = "# It's `a-b` here\n\n[x](../README.md#no) [x](../README.md)\n\n[x](none.md#y)\n\
                    [x](#its-a-b-here) [x](../../x.md) [x](https://example.org/none)\n";
        let read =
            |path: &str, text: &str| (path.to_string(), Document::parse(path, text.to_string()));
        let documents = Documents { of: [read("docs/a.md", text), read("README.md", "")].into() };
        let told = documents.check().expect_err("three are broken");
        let expected = [
            "docs/a.md:3: the link ../README.md#no names no heading of that document",
            "docs/a.md:5: the link none.md#y leads to nothing",
            "docs/a.md:6: the link ../../x.md leads to nothing",
        ];
        assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    }
}
