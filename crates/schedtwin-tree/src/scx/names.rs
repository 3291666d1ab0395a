// SPDX-License-Identifier: GPL-2.0-or-later
//! Names in the text of a scheduler: of pointers that maps own, and of what the twin's header has and the scheduler may define itself,
//! which `SCHEDTWIN_WITHOUT_NAME` takes out of the header.

use super::programs::without_comments;
use std::collections::BTreeSet;

const HEADER: &str = include_str!("../../c/include/schedtwin/scx.h");
const WITHOUT: &str = "SCHEDTWIN_WITHOUT_";

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The definitions that leave out what some texts define themselves.
pub(super) fn left_out<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let guarded = HEADER.split(WITHOUT).skip(1);
    let guarded = guarded.filter_map(|rest| rest.split(|c| !in_word(c)).next());
    let names: BTreeSet<&str> = guarded.filter(|name| *name != "name").collect();
    let texts: Vec<String> = texts.map(without_comments).collect();
    let defined = |name: &&str| texts.iter().any(|text| defines(text, name));
    names.into_iter().filter(defined).map(|name| format!("{WITHOUT}{name}=1")).collect()
}

/// The names of pointers that maps own: `struct bpf_cpumask __kptr *mask`. Debug information does not tell them from others.
pub(super) fn kptrs<'t>(texts: impl Iterator<Item = &'t str>) -> BTreeSet<String> {
    const MARK: &str = "__kptr";
    let mut names = BTreeSet::new();
    for text in texts {
        let text = without_comments(text);
        let behind =
            text.split(MARK).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('*'));
        let name = |rest: &str| {
            let rest = rest.trim_start();
            rest[..rest.find(|c| !in_word(c)).unwrap_or(rest.len())].to_string()
        };
        names.extend(behind.map(name).filter(|name| !name.is_empty()));
    }
    names
}

/// Whether a text without comments defines a function: a type, its name, its arguments, its body.
fn defines(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&text[..at], text[at + name.len()..].trim_start());
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_word = !before.ends_with(in_word);
        let has_type = before.trim_end().ends_with(|c| in_word(c) || c == '*');
        let returns = line.trim_end().ends_with("return");
        let body = behind.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let body = body.is_some_and(|(arguments, rest)| {
            !arguments.contains(['(', ';', '{']) && rest.trim_start().starts_with('{')
        });
        is_word && has_type && !returns && !line.trim_start().starts_with('#') && body
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_scheduler_are_found() {
        let text = "/* min(x) { */\nstatic u64 max(u64 a, u64 b)\n{\n\treturn min(a, b);\n}\n\
                    #define is_migration_disabled(p) {0}\nint xmin(int a) { if (min(1)) { } }\n";
        assert_eq!(left_out([text].into_iter()), ["SCHEDTWIN_WITHOUT_max=1"]);
    }

    #[test]
    fn pointers_that_maps_own_are_found() {
        let text = "struct x { struct bpf_cpumask __kptr *a; struct node __kptr  * b, *c; struct y *d; };\n\
                    #define __kptr\n/* __kptr *e */";
        assert_eq!(kptrs([text].into_iter()), ["a".to_string(), "b".to_string()].into());
    }
}
