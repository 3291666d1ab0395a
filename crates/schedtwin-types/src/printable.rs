// SPDX-License-Identifier: GPL-2.0-or-later
//! The printable part of a text from outside the program: a name, a path, a piece of a file.
//!
//! A control character can move the cursor, recolour or retitle a terminal, or begin a line that looks like ours; a character that
//! turns the direction of writing makes a name read as another. Both become `?`.

use std::borrow::Cow;

/// Whether a character shows itself and does nothing else.
fn only_shows(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn keep(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&kept) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if kept(c) { c } else { '?' }).collect())
}

/// A name or another piece of a line.
///
/// ```
/// use schedtwin_types::printable;
/// assert_eq!(printable::line("red\u{1b}[31m\nerror: none"), "red?[31m?error: none");
/// ```
pub fn line(text: &str) -> Cow<'_, str> {
    keep(text, only_shows)
}

/// A whole text: line feeds and tabulators stay.
///
/// ```
/// use schedtwin_types::printable;
/// assert_eq!(printable::lines("a\tb\n\u{202e}c\r\n"), "a\tb\n?c?\n");
/// ```
pub fn lines(text: &str) -> Cow<'_, str> {
    keep(text, |c| matches!(c, '\n' | '\t') || only_shows(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_acts_is_replaced() {
        let acts = (0u8..32).chain([127]).map(char::from).chain('\u{80}'..='\u{9f}');
        let marks = ['\u{61c}', '\u{200e}', '\u{200f}'];
        for c in acts
            .chain(marks)
            .chain(['\u{2028}', '\u{2029}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}'])
        {
            assert_eq!(line(&format!("a{c}b")), "a?b", "{c:?}");
            let stays = c == '\n' || c == '\t';
            assert_eq!(lines(&format!("{c}")) == "?", !stays, "{c:?}");
        }
        let harmless = " ~äß漢🙂[]|=+-@<&";
        assert!(matches!(line(harmless), Cow::Borrowed(same) if same == harmless));
    }
}
