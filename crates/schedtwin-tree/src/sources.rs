// SPDX-License-Identifier: GPL-2.0-or-later
//! A file of a tree together with the files of the tree that it includes by `#include "..."`.

use crate::offered::{is_offered, is_quoted};
use crate::{Fault, Tree};
use schedtwin_input::did_you_mean;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Most files that a governor may consist of.
const FILES_MAX: usize = 128;
/// The most that they may have together: all of `kernel/sched` has a tenth of it.
const ALL_BYTES_MAX: usize = 32 << 20;
/// Most names that a file and what it includes may include. Most of them are not in the tree.
const NAMES_MAX: usize = 2048;

/// Files by their paths inside of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Sources {
    /// Reads `path` and what it includes. A header that is included and not there is left to the compiler to tell.
    pub(crate) fn gather(tree: &Tree, path: &str) -> Result<Sources, Fault> {
        let mut sources = Sources::default();
        sources.gather_more(tree, path, None)?;
        Ok(sources)
    }

    /// Adds `path` and what it includes, from `include` what it includes as `<...>` and we do not offer.
    pub(crate) fn gather_more(
        &mut self,
        tree: &Tree,
        path: &str,
        include: Option<&str>,
    ) -> Result<(), Fault> {
        if self.files.contains_key(path) {
            return Ok(());
        }
        let Some(text) = tree.read(&real_path(path))? else {
            return Err(not_there(tree, path));
        };
        let mut bytes: usize = self.files.values().map(Vec::len).sum::<usize>() + text.len();
        let mut names = 0;
        let mut open = vec![(path.to_string(), text)];
        while let Some((path, text)) = open.pop() {
            let quoted = includes(&text, ['"', '"']).into_iter();
            // By their path, too, what we offer is ours.
            let is_ours = |found: &String| {
                let rest = include.and_then(|folder| found.strip_prefix(folder)?.strip_prefix('/'));
                rest.is_some_and(is_offered)
            };
            let beside = quoted.filter(|name| !is_quoted(name)).map(|name| sibling(&path, &name));
            let beside = beside.filter(|found| !is_ours(found));
            let angle = include.iter().flat_map(|folder| {
                let names = includes(&text, ['<', '>']).into_iter();
                names.filter(|name| !is_offered(name)).map(move |name| format!("{folder}/{name}"))
            });
            for found in beside.chain(angle).collect::<Vec<_>>() {
                let known = self.files.contains_key(&found)
                    || open.iter().any(|(path, _)| *path == found)
                    || found == path;
                if known {
                    continue;
                }
                names += 1;
                if names > NAMES_MAX {
                    return Err(too_many(&format!("{NAMES_MAX} names")));
                }
                if let Some(text) = tree.read(&real_path(&found))? {
                    bytes += text.len();
                    open.push((found, text));
                }
                // Before the next one is read.
                if self.files.len() + open.len() >= FILES_MAX {
                    return Err(too_many(&format!("{FILES_MAX} files of its tree")));
                }
                if bytes > ALL_BYTES_MAX {
                    return Err(too_many("32 MiB of its tree"));
                }
            }
            self.files.insert(path, text);
        }
        Ok(())
    }

    /// Adds a file with what it includes, if it is there.
    pub(crate) fn add(&mut self, tree: &Tree, path: &str) -> Result<bool, Fault> {
        if tree.read(path)?.is_none() {
            return Ok(false);
        }
        self.gather_more(tree, path, None)?;
        Ok(true)
    }

    /// Whether any file has this word.
    pub(crate) fn mention(&self, word: &str) -> bool {
        let word = word.as_bytes();
        self.files.values().any(|text| text.windows(word.len()).any(|at| at == word))
    }
}

/// Where a file is that a link leads to: the scx repository has the folders of schedulers in those of others, by the names of the others.
fn real_path(path: &str) -> Cow<'_, str> {
    const SCHEDULERS: &str = "scheds/rust/";
    const INSIDE: &str = "/src/bpf/scx_";
    let linked = path.strip_prefix(SCHEDULERS).and_then(|rest| {
        let (name, file) = rest.split_once(INSIDE)?.1.split_once('/')?;
        Some(format!("{SCHEDULERS}scx_{name}/src/bpf/{file}"))
    });
    linked.map_or(Cow::Borrowed(path), Cow::Owned)
}

fn too_many(what: &str) -> Fault {
    Fault::new(
        format!("the file includes more than {what}"),
        "a governor is a file with a few headers of its own",
    )
}

/// Returns the fault of a missing file: it lists the content of that folder, if that was found out.
fn not_there(tree: &Tree, path: &str) -> Fault {
    const GOVERNORS: [&str; 4] = ["teo", "menu", "ladder", "haltpoll"];
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.trim_end_matches(".c");
    let help = match did_you_mean(stem, GOVERNORS).filter(|near| *near != stem) {
        Some(near) => format!("did you mean `{folder}/{near}.c`?"),
        None if path.contains(".bpf.") => "scx=PATH names a scheduler's .bpf.c".to_string(),
        None => "cpuidle=tree/PATH takes another file of the tree".to_string(),
    };
    Fault::new(format!("the tree `{}` has no file `{path}`", tree.spelled()), help)
}

/// The names in `#include "..."`, or between other marks.
fn includes(text: &[u8], [open, close]: [char; 2]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let name = |line: &str| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        let (name, _) = rest.trim_start().strip_prefix(open)?.split_once(close)?;
        Some(name.to_string())
    };
    text.lines().filter_map(name).collect()
}

/// The path of `name` as seen from the file `path`, with `.` and `..` taken out.
pub(crate) fn sibling(path: &str, name: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_includes_are_found_beside_their_file() {
        let text = b"#include <linux/cpuidle.h>\n# include \"gov.h\" /* own */\n  #include\t\"../x/y.h\"\n";
        assert_eq!(includes(text, ['"', '"']), ["gov.h", "../x/y.h"]);
        assert_eq!(includes(text, ['<', '>']), ["linux/cpuidle.h"]);
        assert_eq!(
            sibling("drivers/cpuidle/governors/teo.c", "gov.h"),
            "drivers/cpuidle/governors/gov.h"
        );
        assert_eq!(sibling("a/b/c.c", "../x/./y.h"), "a/x/y.h");
        assert_eq!(sibling("c.c", "../../y.h"), "y.h", "nothing outside of the tree");
        let linked = "scheds/rust/scx_chaos/src/bpf/scx_p2dq/types.h";
        assert_eq!(real_path(linked), "scheds/rust/scx_p2dq/src/bpf/types.h");
        assert_eq!(real_path("a/src/bpf/scx_p2dq/types.h"), "a/src/bpf/scx_p2dq/types.h");
    }
}
