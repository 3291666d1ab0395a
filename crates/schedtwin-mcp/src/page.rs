// SPDX-License-Identifier: GPL-2.0-or-later
//! A part of a text that fits a model's context.

/// Characters of a page: about 1,500 tokens.
pub const PAGE: usize = 6_000;

/// The page of a text that begins at a character, with a note on how to get the next one. It ends with a line where it can.
///
/// ```
/// use schedtwin_mcp::page::page;
/// assert_eq!(page("short", 0, 100), "short");
/// let text = "one line\ntwo lines\n".repeat(100);
/// let first = page(&text, 0, 50);
/// assert!(first.starts_with("one line\n") && first.ends_with("ask again with offset=47)"), "{first}");
/// assert!(page(&text, 47, 50).starts_with("two lines\n"));
/// assert!(page(&text, 5_000, 50).contains("ends at 1900"));
/// ```
pub fn page(text: &str, offset: usize, most: usize) -> String {
    let all = text.chars().count();
    if offset > 0 && offset >= all {
        return format!("(the result ends at {all} characters: offset={offset} is beyond it)");
    }
    let rest: String = text.chars().skip(offset).collect();
    let left = all - offset;
    if left <= most {
        return rest;
    }
    let part: String = rest.chars().take(most).collect();
    let part = part.rfind('\n').map_or(part.as_str(), |at| &part[..=at]);
    let next = offset + part.chars().count();
    format!(
        "{part}(characters {offset} to {next} of {all}; for the rest ask again with offset={next})"
    )
}
