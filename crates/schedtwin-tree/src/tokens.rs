// SPDX-License-Identifier: GPL-2.0-or-later
//! The text of a preprocessed unit as words and brackets, each with the space before it, so that it can be written again line by line.

/// The deepest nesting of brackets: macros within macros of schedulers have fifty.
pub(crate) const DEPTH_MAX: u32 = 512;

/// Operators of more than one character, the longest first.
const OPERATORS: [&str; 22] = [
    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=",
];

/// A word, an operator, or all that stands between two brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item<'t> {
    /// Space and line marks before it.
    pub(crate) before: &'t str,
    /// The word or operator; of a bracket the opening one.
    pub(crate) text: &'t str,
    /// Of a bracket: its content, and the space before its end.
    pub(crate) inner: Option<(Vec<Item<'t>>, &'t str)>,
    /// How many brackets are within each other.
    depth: u32,
}

/// The deepest of some items.
pub(crate) fn depth(items: &[Item<'_>]) -> u32 {
    items.iter().map(|item| item.depth).max().unwrap_or(0)
}

impl<'t> Item<'t> {
    /// A piece of text that the source does not have.
    pub(crate) fn piece(text: &'t str) -> Item<'t> {
        Item { before: "", text, inner: None, depth: 0 }
    }

    /// Items that stand together as one operand: their own text begins and ends with a bracket.
    pub(crate) fn operand(items: Vec<Item<'t>>) -> Item<'t> {
        let depth = 1 + depth(&items);
        Item { before: "", text: "", inner: Some((items, "")), depth }
    }

    /// Changes what stands in a bracket.
    pub(crate) fn change(&mut self, change: impl FnOnce(Vec<Item<'t>>) -> Vec<Item<'t>>) {
        if let Some((inner, _)) = &mut self.inner {
            *inner = change(std::mem::take(inner));
            self.depth = 1 + depth(inner);
        }
    }

    /// Whether it is this word or operator.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.inner.is_none() && self.text == text
    }

    /// The content of a bracket that opens so.
    pub(crate) fn within(&self, open: &str) -> Option<&[Item<'t>]> {
        self.inner.as_ref().filter(|_| self.text == open).map(|(items, _)| &items[..])
    }

    /// Whether it is a word: a name, a keyword or a number.
    pub(crate) fn is_word(&self) -> bool {
        self.inner.is_none() && self.text.starts_with(in_word)
    }

    pub(crate) fn is_number(&self) -> bool {
        self.inner.is_none() && self.text.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether it is a string or a character.
    pub(crate) fn is_quoted(&self) -> bool {
        self.inner.is_none() && self.text.ends_with(['"', '\''])
    }

    /// Takes the word away; the lines stay.
    pub(crate) fn blank(&mut self) {
        self.text = "";
    }
}

pub(crate) fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The items of a text; in words, if its brackets do not fit.
pub(crate) fn items(text: &str) -> Result<Vec<Item<'_>>, String> {
    let mut open: Vec<(Item<'_>, Vec<Item<'_>>)> = Vec::new();
    let mut here = Vec::new();
    let mut at = 0;
    loop {
        let word_at = at + space(&text[at..], at == 0);
        let (before, rest) = (&text[at..word_at], &text[word_at..]);
        if rest.is_empty() {
            here.push(Item { before, text: "", inner: None, depth: 0 });
            break;
        }
        let word = &rest[..word_bytes(rest)];
        at = word_at + word.len();
        match word {
            "(" | "[" | "{" if open.len() as u32 >= DEPTH_MAX => {
                return Err(format!("it has more than {DEPTH_MAX} brackets within each other"));
            }
            "(" | "[" | "{" => {
                let item = Item { before, text: word, inner: None, depth: 1 };
                open.push((item, std::mem::take(&mut here)));
            }
            ")" | "]" | "}" => {
                let Some((mut item, outer)) = open.pop().filter(|(item, _)| fits(item.text, word))
                else {
                    return Err(format!("a `{word}` closes nothing"));
                };
                let inner = std::mem::replace(&mut here, outer);
                item.depth = 1 + depth(&inner);
                item.inner = Some((inner, before));
                here.push(item);
            }
            _ => here.push(Item { before, text: word, inner: None, depth: 0 }),
        }
    }
    match open.last() {
        Some((item, _)) => Err(format!("a `{}` is not closed", item.text)),
        None => Ok(here),
    }
}

fn closing(open: &str) -> &'static str {
    match open {
        "(" => ")",
        "[" => "]",
        "{" => "}",
        _ => "",
    }
}

fn fits(open: &str, close: &str) -> bool {
    closing(open) == close
}

/// Bytes of space, with whole lines that begin with `#`: marks of lines, and pragmas.
fn space(text: &str, mut line_begins: bool) -> usize {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c == '#' && line_begins {
            at += text[at..].find('\n').unwrap_or(text.len() - at);
        } else if c.is_whitespace() {
            line_begins |= c == '\n';
            at += c.len_utf8();
        } else {
            break;
        }
    }
    at
}

/// Bytes of the first word, operator, string or character of a text that does not begin with space.
fn word_bytes(text: &str) -> usize {
    let first = text.chars().next().expect("it is not empty");
    if first == '"' || first == '\'' {
        let mut escaped = false;
        let end = text.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == first && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        return end.map_or(text.len(), |(at, _)| at + 1);
    }
    if first.is_ascii_digit() {
        return number_bytes(text);
    }
    if in_word(first) {
        return text.find(|c| !in_word(c)).unwrap_or(text.len());
    }
    let operator = OPERATORS.iter().find(|operator| text.starts_with(**operator));
    operator.map_or(first.len_utf8(), |operator| operator.len())
}

/// Bytes of a number; an exponent may have a sign.
fn number_bytes(text: &str) -> usize {
    let mut before = ' ';
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let end = text.char_indices().find(|(_, c)| {
        let exponent = if hexadecimal { ['p', 'P'] } else { ['e', 'E'] };
        let goes_on = in_word(*c) || *c == '.' || "+-".contains(*c) && exponent.contains(&before);
        before = *c;
        !goes_on
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Writes items again.
pub(crate) fn text(items: &[Item<'_>]) -> String {
    let mut to = String::new();
    write(items, &mut to);
    to
}

fn write(items: &[Item<'_>], to: &mut String) {
    for item in items {
        to.push_str(item.before);
        to.push_str(item.text);
        if let Some((inner, before_end)) = &item.inner {
            write(inner, to);
            to.push_str(before_end);
            to.push_str(closing(item.text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_again_as_it_was() {
        for whole in [
            "",
            "# 1 \"x.c\"\nint f(void) { return a[1] ? 'x' : \"\\\"/*\"[0]; }\n",
            "x = 1.5e+3 - 0xe+1 / y ;\n  # 3 \"y.c\" 2\n  z->a <<= 3;",
        ] {
            assert_eq!(text(&items(whole).unwrap()), whole);
        }
        let words = |whole| {
            let items = items(whole).unwrap();
            items.iter().map(|item| item.text).filter(|t| !t.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(words("0xe+1 1e+1 a->b++"), ["0xe", "+", "1", "1e+1", "a", "->", "b", "++"]);
    }

    #[test]
    fn brackets_that_do_not_fit_are_refused() {
        for wrong in ["(", "a)", "(]", "{[}"] {
            assert!(items(wrong).is_err(), "{wrong}");
        }
        let deep = "(".repeat(1000) + &")".repeat(1000);
        assert!(items(&deep).unwrap_err().contains("512 brackets"));
    }
}
