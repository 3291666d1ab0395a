// SPDX-License-Identifier: GPL-2.0-or-later
//! `cargo xtask skeleton TREE A..B`: what of a kernel's change has a counterpart here, and the text to begin with.
//!
//! The functions of the scheduler, frequency and idle code are compared between two revisions. Functions here are named as in Linux, or
//! name Linux's function in their comment: both are looked for. The rule itself is yours to write; nothing of the tree is copied.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::web::root;

/// Where Linux has what the twin has.
const PATHS: [&str; 4] =
    ["kernel/sched", "drivers/cpuidle", "drivers/cpufreq", "kernel/time/tick-sched.c"];

/// Where it is here.
const KERNEL: &str = "crates/schedtwin-kernel/src";

/// Places that are told of a function.
const PLACES: usize = 3;

/// Prints it.
pub fn print(tree: &Path, range: &str) -> Result<(), String> {
    let (before, after) = range.split_once("..").ok_or("the revisions are A..B")?;
    let before = if before.is_empty() { "HEAD" } else { before };
    let after = if after.is_empty() { "HEAD" } else { after };
    let mut names = vec!["diff", "--name-only", "--end-of-options", before, after, "--"];
    names.extend(PATHS);
    let files = git(tree, &names)?;
    let ours = own_sources()?;
    let mut changed = Vec::new();
    for file in files.lines().filter(|file| file.ends_with(".c") || file.ends_with(".h")) {
        let at = |revision: &str| git(tree, &["show", &format!("{revision}:{file}")]);
        // A file that one of them does not have has no functions there.
        let [old, new] = [before, after].map(|revision| at(revision).unwrap_or_default());
        let (old, new) = (functions(&old), functions(&new));
        for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
            if old.get(name) != new.get(name) {
                let how = match (old.get(name), new.get(name)) {
                    (None, _) => "new",
                    (_, None) => "gone",
                    _ => "changed",
                };
                changed.push((file.to_string(), name.clone(), how));
            }
        }
    }
    if changed.is_empty() {
        return Err(format!("{range} changes no function of {}", PATHS.join(", ")));
    }
    print!("{}", told(&changed, &ours, tree, range));
    Ok(())
}

/// The text that the command prints.
fn told(
    changed: &[(String, String, &str)],
    ours: &[(PathBuf, String)],
    tree: &Path,
    range: &str,
) -> String {
    let mut text = String::new();
    let mut file = "";
    for (of, name, how) in changed {
        if of != file {
            let _ = writeln!(text, "{of}");
            file = of;
        }
        let _ = writeln!(text, "  {name}() is {how}");
        let places = counterparts(name, ours);
        for place in &places {
            let _ = writeln!(text, "    {place}");
        }
        if places.is_empty() && *how != "new" {
            let _ = writeln!(
                text,
                "    no counterpart by name: ARCHITECTURE.md has the map, MODEL.md what is absent"
            );
        }
    }
    let name = &changed.iter().find(|(.., how)| *how == "changed").unwrap_or(&changed[0]).1;
    let point = format!("{name}_rule");
    let kind: String = point.split('_').map(capitalised).collect();
    let _ = write!(
        text,
        "
1. Declare a variation point in the file of its subsystem in {KERNEL}/config:

    /// One line: what differs.
    {point}: choice {kind} {{
        linux \"{name}()\";
        default_if_absent Before;
        /// The rule of now, in one sentence.
        Before = \"before\", \"all up to now\";
        /// The new rule, in one sentence.
        After = \"after\", \"none yet: a proposal\";
    }}

2. Match it in one file, where the rule is:

    match self.cx.config.{point} {{
        {kind}::Before => ...,
        {kind}::After => ...,
    }}

3. my-change.toml:

    name = \"my-change\"
    description = \"one line\"
    [requires]
    {point} = \"before\"
    [sets]
    {point} = \"after\"

4. cargo test -p schedtwin-kernel, then BLESS=1 cargo test -p schedtwin-cli --test architecture
   schedtwin compare -m pixel6 -w ui-phone -k linux-7.3-gki -k linux-7.3-gki+./my-change.toml --first-difference
   conformance/judge --kernel {} --patch my-change.toml WORKLOAD.wl.txt   # {range}, booted: the same decisions?
",
        tree.display()
    );
    text
}

/// A word with a capital.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Where a function of Linux is followed: its namesakes, then where a comment names it.
fn counterparts(name: &str, ours: &[(PathBuf, String)]) -> Vec<String> {
    let (own, named) = (format!("fn {name}"), format!("{name}()"));
    let mut places = Vec::new();
    for is_function in [true, false] {
        for (path, text) in ours {
            for (at, line) in text.lines().enumerate() {
                let line = line.trim();
                let after = line.split_once(&own).map(|(_, after)| after);
                let hit = match is_function {
                    true => after.is_some_and(|after| after.starts_with(['(', '<'])),
                    false => after.is_none() && word_of(line, &named),
                };
                if hit && places.len() < PLACES {
                    places.push(format!("{}:{}: {line}", path.display(), at + 1));
                }
            }
        }
    }
    places
}

/// Whether a text has a word that no letter goes before.
fn word_of(line: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(is_letter))
}

/// The functions of a C file in Linux's style: a head that begins in the first column, `{` and `}` alone in it.
fn functions(text: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut head = String::new();
    let mut body: Option<String> = None;
    for line in text.lines() {
        if let Some(lines) = &mut body {
            lines.push_str(line);
            lines.push('\n');
            if line.starts_with('}') {
                if let (Some(name), Some(lines)) = (name_of(&head), body.take()) {
                    // A function has several forms where the configuration chooses.
                    found.entry(name).or_default().push_str(&format!("{head}{lines}"));
                }
                body = None;
                head.clear();
            }
        } else if line == "{" && !head.is_empty() {
            body = Some(String::new());
        } else if line.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            head = if line.ends_with([';', ':']) { String::new() } else { format!("{line}\n") };
        } else if !head.is_empty() && line.starts_with(char::is_whitespace) {
            head.push_str(line);
            head.push('\n');
        } else {
            head.clear();
        }
    }
    found
}

/// The word before the first parenthesis.
fn name_of(head: &str) -> Option<String> {
    let (before, _) = head.split_once('(')?;
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let name = before.trim_end().rsplit(|c: char| !is_letter(c)).next()?;
    (!name.is_empty()).then(|| name.to_string())
}

/// The kernel's sources here, each with its path.
fn own_sources() -> Result<Vec<(PathBuf, String)>, String> {
    let mut folders = vec![root().join(KERNEL)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text =
                    fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                found.push((path.strip_prefix(root()).unwrap_or(&path).to_path_buf(), text));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn git(tree: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(tree).args(arguments);
    let answer = command.output().map_err(|error| format!("failed to run git: {error}"))?;
    if answer.status.success() {
        return Ok(String::from_utf8_lossy(&answer.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    Err(said.lines().next().unwrap_or("git says nothing").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const C: &str = "\
struct rq;
static int nr;

/* place_entity(x) */
static void
place_entity(struct cfs_rq *cfs_rq, struct sched_entity *se,
\t     int flags)
{
\tif (flags) {
\t\tse->vruntime = 0;
\t}
}

struct sched_entity *pick(struct cfs_rq *cfs_rq)
{
\treturn first(cfs_rq);
}

static void place_entity(struct cfs_rq *cfs_rq)
{
}

#define twice(x) \\
\t(2 * (x))

struct table {
\tint x;
};
";

    #[test]
    fn functions_of_c_are_found() {
        let found = functions(C);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["pick", "place_entity"]);
        assert!(
            found["place_entity"].contains("int flags") && found["place_entity"].ends_with("}\n")
        );
    }

    #[test]
    fn counterparts_are_namesakes_first() {
        let ours = [
            (
                PathBuf::from("a.rs"),
                "/// As `update_entity()` of Linux.\nfn other() {}\n".to_string(),
            ),
            (
                PathBuf::from("b.rs"),
                "    pub fn update_entity(&mut self) {}\nfn update_entity_of() {}\n".to_string(),
            ),
        ];
        let places = counterparts("update_entity", &ours);
        assert_eq!(places[0], "b.rs:1: pub fn update_entity(&mut self) {}");
        assert_eq!(places[1], "a.rs:1: /// As `update_entity()` of Linux.");
        assert_eq!(places.len(), 2);
    }

    #[test]
    fn the_kernel_here_follows_functions_of_linux() {
        let ours = own_sources().expect("sources");
        for name in
            ["place_entity", "select_idle_sibling", "find_energy_efficient_cpu", "pick_eevdf"]
        {
            assert!(!counterparts(name, &ours).is_empty(), "{name}");
        }
    }
}
