// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads callgrind's output: how many instructions each source file and function executed.
//!
//! The format (Valgrind's manual, "Callgrind Format Specification") is lines: `fl=`, `fi=`, `fe=` name the
//! source file that the following costs belong to, `fn=` the function that contains them (so code that was
//! inlined has its own file and its container's function), `cfn=` and `calls=` announce that the next cost is
//! a call's, everything below it included. A name is written once, `(7) name`, and then as `(7)`.

use std::collections::BTreeMap;

/// Where instructions were executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Source file of the code.
    pub file: String,
    /// The function it ended up in.
    pub function: String,
    /// That function's own source file.
    pub function_file: String,
}

/// A profile.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Instructions by place, calls excluded.
    pub own: BTreeMap<Place, u64>,
    /// Instructions of calls, all below included: callee's function → the place of the call.
    pub calls: BTreeMap<String, BTreeMap<Place, u64>>,
    /// All instructions.
    pub total: u64,
}

impl Profile {
    /// Parses the text that callgrind wrote with `--dump-line=yes` (its default).
    pub fn parse(text: &str) -> Profile {
        let mut profile = Profile::default();
        let (mut files, mut functions) = (Names::default(), Names::default());
        let mut here = Place::default();
        let mut callee = String::new();
        let mut next_is_call = false;
        for line in text.lines() {
            if let Some((key, value)) = line.split_once('=') {
                match key {
                    "fl" | "fi" | "fe" => here.file = files.resolve(value),
                    "fn" => {
                        here.function = functions.resolve(value);
                        here.function_file = here.file.clone();
                    }
                    "cfi" | "cfl" => {
                        files.resolve(value);
                    }
                    "cfn" => callee = functions.resolve(value),
                    "calls" => next_is_call = true,
                    _ => {}
                }
                continue;
            }
            // `position cost`; a position is a number, `+n`, `-n` or `*`.
            let mut words = line.split_ascii_whitespace();
            let is_position = words.next().is_some_and(|w| {
                w == "*" || w.trim_start_matches(['+', '-']).bytes().all(|b| b.is_ascii_digit())
            });
            let Some(cost) = words.next().and_then(|cost| cost.parse::<u64>().ok()) else {
                continue;
            };
            if !is_position {
                continue;
            }
            if std::mem::take(&mut next_is_call) {
                *profile
                    .calls
                    .entry(callee.clone())
                    .or_default()
                    .entry(here.clone())
                    .or_default() += cost;
            } else {
                *profile.own.entry(here.clone()).or_default() += cost;
                profile.total += cost;
            }
        }
        profile
    }
}

/// Names by their numbers.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn resolve(&mut self, value: &str) -> String {
        let Some((number, name)) = value.split_once(')') else { return value.to_string() };
        let name = name.trim();
        if name.is_empty() {
            return self.0.get(number).cloned().unwrap_or_default();
        }
        self.0.insert(number.to_string(), name.to_string());
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inlined_code_and_calls() {
        let text = "events: Ir\nsummary: 19\n\n\
            fl=(1) a.rs\nfn=(1) outer\n10 3\n+2 4\nfi=(2) inlined.rs\n7 5\n\
            cfi=(3) libc.c\ncfn=(2) memmove\ncalls=2 1\n* 6\nfe=(1)\n13 1\n\n\
            fl=(3)\nfn=(2)\n1 6\n";
        let profile = Profile::parse(text);
        let place = |file: &str, function: &str, function_file: &str| Place {
            file: file.into(),
            function: function.into(),
            function_file: function_file.into(),
        };
        assert_eq!(profile.total, 19);
        assert_eq!(profile.own[&place("a.rs", "outer", "a.rs")], 8);
        assert_eq!(profile.own[&place("inlined.rs", "outer", "a.rs")], 5);
        assert_eq!(profile.own[&place("libc.c", "memmove", "libc.c")], 6);
        assert_eq!(profile.calls["memmove"][&place("inlined.rs", "outer", "a.rs")], 6);
    }
}
