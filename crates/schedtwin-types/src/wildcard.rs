// SPDX-License-Identifier: GPL-2.0-or-later
//! Patterns that users write: `*` for any text, and where they are offered, `?` for one character.

/// Which characters of a pattern stand for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wildcards {
    /// `*` alone.
    Star,
    /// `*` and `?`.
    StarAndOne,
}

/// Whether `text` is what `pattern` says. Takes at most the product of their lengths, whatever the pattern.
///
/// ```
/// use schedtwin_types::wildcard::{Wildcards, matches};
/// assert!(matches("idle_too_*", "idle_too_deep", Wildcards::Star));
/// assert!(matches("?i", "ui", Wildcards::StarAndOne));
/// assert!(!matches("?i", "ui", Wildcards::Star));
/// ```
pub fn matches(pattern: &str, text: &str, wildcards: Wildcards) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let is_one = |c: char| wildcards == Wildcards::StarAndOne && c == '?';
    let (mut p, mut t) = (0, 0);
    // Where the last star was, and how much of the text it takes: only it needs to be revised.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (is_one(pattern[p]) || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star_p, star_t)) = star {
            star = Some((star_p, star_t + 1));
            p = star_p + 1;
            t = star_t + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, name, expected) in [
            ("ui", "ui", true),
            ("ui", "ui2", false),
            ("ui*", "ui2", true),
            ("*", "", true),
            ("?i", "ui", true),
            ("?", "", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
            ("*******************a", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", false),
            ("sugov:*-7", "sugov:0-7", true),
        ] {
            assert_eq!(matches(pattern, name, Wildcards::StarAndOne), expected, "{pattern} {name}");
            if !pattern.contains('?') {
                assert_eq!(matches(pattern, name, Wildcards::Star), expected, "{pattern} {name}");
            }
        }
    }

    #[test]
    fn a_question_mark_is_itself_where_it_is_not_offered() {
        assert!(matches("a?c", "a?c", Wildcards::Star));
        assert!(!matches("a?c", "abc", Wildcards::Star));
    }
}
