// SPDX-License-Identifier: GPL-2.0-or-later
//! Prints faults with excerpts of their sources.
//!
//! Each fault becomes a message, the place, the line with the offending piece underlined, and the
//! help:
//!
//! ```text
//! error: there is no setting `topolgy`
//!  --> <command line>:1:8
//!   |
//! 1 | pixel6:topolgy=mc
//!   |        ^^^^^^^
//!   |
//!   = help: did you mean `topology`?
//! ```
//!
//! A span may be anything: beyond the end of the text, inside a character, backwards. It is moved to
//! the nearest place that can be shown, because a fault that cannot be printed is worse than one
//! that points a byte aside.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{Diagnostic, Diagnostics, Location};

/// How many faults are printed; a file with more of them has one cause, and its tail teaches nothing.
pub(crate) const MAX_SHOWN: usize = 50;

/// The longest excerpt, bytes: a generated file may be one line of megabytes.
const MAX_EXCERPT: usize = 400;

/// How bad a fault is: what stands before the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// The input is taken as it is, but looks wrong.
    Warning,
}

impl Diagnostics {
    /// All faults as errors, with excerpts; `colour` asks for terminal escapes.
    pub fn render(&self, colour: bool) -> String {
        self.render_as(Severity::Error, colour, None)
    }

    /// All faults with excerpts, as errors or as warnings; sentences are broken for so many columns.
    pub fn render_as(&self, severity: Severity, colour: bool, width: Option<usize>) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.term_width(100);
        let mut out = String::new();
        for fault in self.0.iter().take(MAX_SHOWN) {
            out.push_str(&render_one(fault, severity, &renderer, width));
            out.push_str("\n\n");
        }
        if self.0.len() > MAX_SHOWN {
            out.push_str(&format!("... and {} more\n", self.0.len() - MAX_SHOWN));
        }
        out
    }
}

fn render_one(
    fault: &Diagnostic,
    severity: Severity,
    renderer: &Renderer,
    width: Option<usize>,
) -> String {
    // What stands before a sentence: `warning: `, or `99999 = help: `.
    let broken = |text: String| match width {
        Some(width) => broken(&text, width.saturating_sub(14)),
        None => text,
    };
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let text = &fault.source.text;
    let name = printable(&fault.source.name).replace('\n', "\u{fffd}");
    let whole = fault.span == Location::WHOLE || text.is_empty();
    let message = printable(&fault.message);
    let title = if whole { format!("{name}: {message}") } else { message };
    let title = level.primary_title(broken(title));
    let help = fault.help.as_deref().map(printable).map(broken);
    if whole {
        let mut group = Group::with_title(title);
        if let Some(help) = help {
            group = group.element(Level::HELP.message(help));
        }
        return renderer.render(&[group]);
    }
    let shown = Excerpt::of(text, &fault.span);
    let (line, _) = fault.source.line_column(shown.start);
    let snippet = Snippet::source(shown.text)
        .line_start(line)
        .path(name)
        .annotation(AnnotationKind::Primary.span(shown.span));
    let mut group = title.element(snippet);
    if let Some(help) = help {
        group = group.element(Level::HELP.message(help));
    }
    renderer.render(&[group])
}

/// The text with its lines broken at spaces.
fn broken(text: &str, width: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| wrapped(line, width, "")).collect();
    lines.join("\n")
}

/// A line broken at spaces where the next word would end beyond a width in columns; what follows the first line begins with an
/// indent.
pub fn wrapped(line: &str, width: usize, indent: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in line.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push('\n');
            text.push_str(indent);
            column = indent.len();
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

/// The lines that a span touches (the first of them, if they are many), safe to print.
struct Excerpt {
    text: String,
    /// Byte offset of the excerpt in the source.
    start: usize,
    /// The span within the excerpt.
    span: Range<usize>,
}

impl Excerpt {
    fn of(text: &str, span: &Range<usize>) -> Excerpt {
        let from = floor_boundary(text, span.start);
        let to = floor_boundary(text, span.end.max(from)).max(from);
        let line_start = text[..from].rfind('\n').map_or(0, |p| p + 1);
        let start = floor_boundary(text, line_start.max(from.saturating_sub(MAX_EXCERPT)));
        // One line only: a span over several lines (a table, say) is marked where it begins.
        let line_end = text[from..].find('\n').map_or(text.len(), |p| from + p);
        let end = floor_boundary(text, line_end.min(start + 2 * MAX_EXCERPT)).max(from);
        let to = to.min(end);
        let before = printable(&text[start..from]);
        let marked = printable(&text[from..to]);
        let after = printable(&text[to..end]);
        let span = before.len()..before.len() + marked.len();
        Excerpt { text: before + &marked + &after, start, span }
    }
}

/// The last character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Without control characters: a source must not be able to move the reader's cursor.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => ' ',
            '\n' => '\n',
            c if c.is_control() => '\u{fffd}',
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_fault_is_shown_in_its_line() {
        let source = Source::new("demo.toml", "a = 1\nhx = 250 # tick\n");
        let mut faults = Diagnostics::new();
        faults.push(&source, 6..8, "there is no key `hx`", Some("did you mean `hz`?".into()));
        let expected = "\
error: there is no key `hx`
 --> demo.toml:2:1
  |
2 | hx = 250 # tick
  | ^^
  |
  = help: did you mean `hz`?

";
        assert_eq!(faults.render(false), expected);
        assert!(faults.render(true).contains("\u{1b}["));
        assert!(faults.render_as(Severity::Warning, false, None).starts_with("warning: "));
        let narrow = faults.render_as(Severity::Error, false, Some(40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }

    #[test]
    fn a_fault_of_the_whole_file_has_no_excerpt() {
        let mut faults = Diagnostics::new();
        faults.push_whole(&Source::new("x.toml", "text"), "is empty", None);
        assert_eq!(faults.render(false), "error: x.toml: is empty\n\n");
        assert_eq!(faults.to_string(), "x.toml: is empty");
    }

    #[test]
    fn only_so_many_are_shown() {
        let source = Source::new("x", "a\n");
        let mut faults = Diagnostics::new();
        for _ in 0..200 {
            faults.push(&source, 0..1, "wrong", None);
        }
        assert!(faults.render(false).ends_with("... and 150 more\n"));
        assert!(faults.to_string().ends_with("... and 150 more"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_and_any_span_can_be_shown(
            text in "(\\PC|\n|\r|\t|ä|\u{0}|\u{1b}|👩‍👩‍👧|\u{202e}){0,60}",
            start in 0usize..80, end in 0usize..80, long in 0usize..3,
        ) {
            let source = Source::new("x", text.repeat(1 + 20 * long));
            let mut faults = Diagnostics::new();
            faults.push(&source, start..end, text.clone(), Some(text.clone()));
            faults.push(&source, 0..usize::MAX, "all", None);
            faults.push(&source, Location::WHOLE, "all", None);
            let shown = faults.render(false);
            assert!(!shown.contains('\u{1b}'));
            let _ = (faults.render(true), faults.to_string());
        }
    }
}
