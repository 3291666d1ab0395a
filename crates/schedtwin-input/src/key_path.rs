// SPDX-License-Identifier: GPL-2.0-or-later
//! Paths to values: `schedutil.rate_limit_us`, `domain.little.opp[0].khz`.

use std::ops::Range;

/// One step of a path, with the bytes of the text that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    pub(crate) span: Range<usize>,
}

/// The part that a step selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// A key of a table.
    Key(String),
    /// An element of an array, from 0.
    Index(usize),
}

/// Takes a path apart; the error is a message and the bytes it is about.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>, (Range<usize>, String)> {
    let mut steps = Vec::new();
    let mut at = 0;
    loop {
        let end = text[at..].find(['.', '[', ']', '=']).map_or(text.len(), |p| at + p);
        let key = text[at..end].trim();
        if key.is_empty() {
            return Err((at..end, "a key is missing here".into()));
        }
        steps.push(Step { kind: StepKind::Key(key.into()), span: at..end });
        at = end;
        while text[at..].starts_with('[') {
            let Some(close) = text[at..].find(']') else {
                return Err((at..text.len(), "`[` without `]`".into()));
            };
            let inside = at + 1..at + close;
            let Ok(index) = text[inside.clone()].trim().parse::<usize>() else {
                return Err((inside, "an index is a whole number, from 0".into()));
            };
            steps.push(Step { kind: StepKind::Index(index), span: at..at + close + 1 });
            at += close + 1;
        }
        match text[at..].chars().next() {
            None => return Ok(steps),
            Some('.') => at += 1,
            Some(other) => {
                return Err((at..at + other.len_utf8(), format!("`{other}` cannot stand here")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let steps = parse("domain.little.opp[12].khz").unwrap();
        let spans: Vec<_> = steps.iter().map(|s| s.span.clone()).collect();
        assert_eq!(spans, [0..6, 7..13, 14..17, 17..21, 22..25]);
        assert_eq!(steps[3].kind, StepKind::Index(12));
        for (bad, message) in [
            ("", "a key is missing here"),
            ("a..b", "a key is missing here"),
            ("a.", "a key is missing here"),
            ("[0]", "a key is missing here"),
            ("a[", "`[` without `]`"),
            ("a[x]", "an index is a whole number, from 0"),
            ("a[-1]", "an index is a whole number, from 0"),
            ("a[99999999999999999999999]", "an index is a whole number, from 0"),
            ("a]", "`]` cannot stand here"),
            ("a[0]b", "`b` cannot stand here"),
        ] {
            assert_eq!(parse(bad).unwrap_err().1, message, "{bad}");
        }
    }
}
