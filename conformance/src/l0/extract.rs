// SPDX-License-Identifier: GPL-2.0-or-later
//! Cuts single functions and macros out of a kernel source file, by name.
//!
//! `fair.c` cannot be compiled without the rest of the scheduler, but the functions that L0 wants
//! are self-contained. Their text goes from the user's tree into the build directory of the oracle
//! and nowhere else.

use std::path::Path;

/// The definition of `name`, which must start in the first column as kernel style has it. Of several
/// (one for each configuration), the first with a body of more than one line.
pub fn function(source: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = source.lines().collect();
    (0..lines.len()).find_map(|at| {
        let line = lines[at];
        let column = line.find(name)?;
        let before = line[..column].chars().next_back();
        let is_name = !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && line[column + name.len()..].starts_with('(');
        if !is_name || line.starts_with(['\t', ' ', '*', '#', '/']) {
            return None;
        }
        // The head goes on until a line that is only "{"; a ";" before it makes it a declaration.
        let body = (at..lines.len()).find(|&i| lines[i] == "{" || lines[i].contains([';', '}']))?;
        if lines[body] != "{" {
            return None;
        }
        let end = (body..lines.len()).find(|&i| lines[i] == "}")?;
        // "static inline void" may stand on a line of its own, "enum" too.
        let is_type = |line: &str| {
            !line.is_empty() && line.chars().all(|c| c.is_alphanumeric() || " _*".contains(c))
        };
        let begin = if at > 0 && is_type(lines[at - 1]) { at - 1 } else { at };
        Some(lines[begin..=end].join("\n") + "\n")
    })
}

/// The definition of a macro, continuation lines included.
pub fn macro_definition(source: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = source.lines().collect();
    let begin = lines.iter().position(|line| {
        line.strip_prefix('#')
            .and_then(|rest| rest.trim_start().strip_prefix("define "))
            .and_then(|rest| rest.trim_start().strip_prefix(name))
            .is_some_and(|rest| rest.starts_with(['(', ' ', '\t']))
    })?;
    let end = (begin..lines.len()).find(|&i| !lines[i].ends_with('\\'))?;
    Some(lines[begin..=end].join("\n") + "\n")
}

/// A `struct`, `enum` or table whose definition begins with `head` in the first column.
pub fn block(source: &str, head: &str) -> Option<String> {
    let lines: Vec<&str> = source.lines().collect();
    let begin = lines.iter().position(|line| {
        let rest = line.strip_prefix(head);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
            && line.contains('{')
    })?;
    let ends = |line: &str| line.trim_end() == "};";
    let end = (begin..lines.len())
        .find(|&i| ends(lines[i]) || (i == begin && lines[i].trim_end().ends_with("};")))?;
    Some(lines[begin..=end].join("\n") + "\n")
}

/// The lines from the one that begins with `head` to the one that ends with ";".
pub fn statement(source: &str, head: &str) -> Option<String> {
    let lines: Vec<&str> = source.lines().collect();
    let begin = lines.iter().position(|line| line.starts_with(head))?;
    let end = (begin..lines.len()).find(|&i| lines[i].trim_end().ends_with(';'))?;
    Some(lines[begin..=end].join("\n") + "\n")
}

/// One of the ways above.
pub type Take = fn(&str, &str) -> Option<String>;

/// Reads a file of the tree.
pub fn read(tree: &Path, name: &str) -> Result<String, String> {
    let path = tree.join(name);
    std::fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))
}

/// Pieces of the kernel's files, in an order in which they compile.
#[derive(Default)]
pub struct Pieces(String);

impl Pieces {
    /// Adds what `take` finds of each name.
    pub fn add(&mut self, take: Take, source: &str, names: &[&str]) -> Result<(), String> {
        for name in names {
            self.0 += &take(source, name).ok_or(format!("this tree has no {name}"))?;
        }
        Ok(())
    }

    /// Adds what `take` finds of each name, if it is there.
    pub fn add_if_there(&mut self, take: Take, source: &str, names: &[&str]) {
        names.iter().filter_map(|name| take(source, name)).for_each(|text| self.0 += &text);
    }

    /// Adds a line of our own.
    pub fn text(&mut self, text: &str) {
        self.0 += text;
    }

    /// The pieces until here.
    pub fn text_so_far(&self) -> &str {
        &self.0
    }

    /// Writes them to a file that a shim includes.
    pub fn write(&self, build_dir: &Path, name: &str) -> Result<(), String> {
        let file = build_dir.join(name);
        std::fs::write(&file, &self.0).map_err(|error| format!("write {}: {error}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
int wanted(int);
# define add(a, \\
            b) ((a) + (b))
static int unwanted(int a)
{
\treturn wanted(a);
}
static inline int wanted(int a) { return 0; }
static int
wanted(int a,
       int b)
{
\tif (a) {
\t}
}
int last;
enum short { one, two };
struct thing_stats {
};
struct thing {
\tint a;
};
";

    #[test]
    fn finds_the_definition_with_a_body() {
        let text = function(SOURCE, "wanted").unwrap();
        assert!(text.starts_with("static int\nwanted(int a,\n"), "{text}");
        assert!(text.ends_with("\t}\n}\n"), "{text}");
        assert_eq!(function(SOURCE, "last"), None);
        assert_eq!(macro_definition(SOURCE, "add").unwrap().lines().count(), 2);
        assert_eq!(block(SOURCE, "struct thing").unwrap(), "struct thing {\n\tint a;\n};\n");
        assert_eq!(statement(SOURCE, "int last").unwrap(), "int last;\n");
        assert_eq!(block(SOURCE, "enum short").unwrap().lines().count(), 1);
    }
}
