// SPDX-License-Identifier: GPL-2.0-or-later
//! BPF's meaning of C where native C has another, as a step between preprocessor and compiler.
//!
//! | in BPF | in native C | rewritten as |
//! |---|---|---|
//! | `x / 0` is 0, `x % 0` is x | undefined, a crash on x86 | an expression that asks whether the divisor is 0 |
//! | `MIN / -1` is `MIN`, `MIN % -1` is 0 | a crash on x86 | the same expression |
//! | a loader writes `const volatile` variables | they cannot be written | the same without `const` |
//!
//! **Algorithm.** The unit is preprocessed, so there are no macros left.
//! 1. Outside of functions every division is a constant expression: it stays.
//! 2. Inside, from left to right: the left operand of `/` and `%` is found backwards, as the longest chain of factors; the right one
//!    forwards, as one factor. Both become operands of one expression in brackets, so the next operator finds them as one factor.
//! 3. A divisor of numbers and sizes alone stays: it is not 0, or the compiler says so.
//! 4. `/=` and `%=` store what that expression gives through a pointer to their left operand.
//!
//! Lines stay where they were, so messages and debug information name the scheduler's own.
//!
//! Differences: operands get no more than the integer promotions, which a division gives them anyway. A constant stays `const` where it
//! begins with a value and no loader can write it, as other constants are made of it. A bit field cannot stand before `/=`.

use crate::tokens::{self, Item};
use std::collections::BTreeSet;

/// Changes with the result for the same text: compiled objects are kept by it.
pub(crate) const VERSION: &str = "meaning of BPF, 2";

/// A quotient and a remainder of `schedtwin_left` and `schedtwin_right`.
const LEFT: &str = "(__extension__ ({ __auto_type schedtwin_left = +(";
const RIGHT: &str = "); __auto_type schedtwin_right = +(";
const QUOTIENT: &str = "); __typeof__(schedtwin_left / schedtwin_right) schedtwin_result = 0; \
     if (schedtwin_right) schedtwin_result = (__typeof__(schedtwin_result))-1 < 0 && \
     (__typeof__(schedtwin_result))schedtwin_right == (__typeof__(schedtwin_result))-1 ? \
     0 - (__typeof__(schedtwin_result))schedtwin_left : schedtwin_left / schedtwin_right; \
     schedtwin_result; }))";
const REMAINDER: &str = "); __typeof__(schedtwin_left % schedtwin_right) schedtwin_result = \
     schedtwin_left; \
     if (schedtwin_right) schedtwin_result = (__typeof__(schedtwin_result))-1 < 0 && \
     (__typeof__(schedtwin_result))schedtwin_right == (__typeof__(schedtwin_result))-1 ? \
     0 : schedtwin_left % schedtwin_right; \
     schedtwin_result; }))";
/// The same, stored.
const TARGET: &str = "(__extension__ ({ __auto_type schedtwin_target = &(";
const STORED: &str = "); *schedtwin_target = ";
const LEFT_OF_TARGET: &str = "(__extension__ ({ __auto_type schedtwin_left = +(*schedtwin_target";
const TARGET_END: &str = "; }))";

/// Words after which an operand begins.
const KEYWORDS: [&str; 9] =
    ["return", "case", "else", "do", "goto", "if", "while", "for", "switch"];
/// Words that begin a type.
const TYPES: [&str; 21] = [
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "_Bool",
    "struct",
    "union",
    "enum",
    "const",
    "volatile",
    "typeof",
    "__typeof__",
    "__typeof",
    "__signed__",
    "__const",
    "__volatile__",
];
/// Words whose operand may be a type.
const SIZES: [&str; 5] = ["sizeof", "_Alignof", "__alignof__", "__alignof", "alignof"];

/// The most that divisions and brackets may stand within each other.
const DEPTH_MAX: u32 = 2 * tokens::DEPTH_MAX;
/// The most assignments that one may have within it.
const ASSIGNED_MAX: u32 = 64;

/// Rewrites a preprocessed unit; in words, if its brackets do not fit, or if too many divisions stand within each other.
pub(crate) fn rewrite(text: &str) -> Result<String, String> {
    let items = tokens::items(text)?;
    let mut rewriter = Rewriter { types: types(&items), assigned: 0, too_deep: false };
    let mut to = Vec::with_capacity(items.len());
    let mut statement: Vec<Item> = Vec::new();
    for item in items {
        let ends = item.is(";") || is_body(&statement, &item);
        statement.push(item);
        if ends {
            to.extend(rewriter.file_level(std::mem::take(&mut statement)));
        }
    }
    to.extend(statement);
    match rewriter.too_deep {
        true => Err("too many divisions stand within each other".to_string()),
        false => Ok(tokens::text(&to)),
    }
}

/// Whether a bracket is the body of the function that a statement begins to define.
fn is_body(statement: &[Item], item: &Item) -> bool {
    let [.., name, arguments] = statement else { return false };
    let is_function = arguments.within("(").is_some()
        && (name.is_word() && !name.text.starts_with("__attribute") || name.within("(").is_some());
    item.within("{").is_some() && is_function && !statement.iter().any(|item| item.is("="))
}

fn without_const(items: &mut [Item]) {
    for item in items {
        if item.is("const") {
            item.blank();
        }
        if let Some((inner, _)) = &mut item.inner {
            without_const(inner);
        }
    }
}

/// The names of types that a unit defines.
fn types<'t>(items: &[Item<'t>]) -> BTreeSet<&'t str> {
    let mut found = BTreeSet::new();
    let mut inside = false;
    for (at, item) in items.iter().enumerate() {
        match item.text {
            "typedef" => inside = true,
            ";" | "," | "[" | "(" if inside => {
                if let Some(name) = at.checked_sub(1).map(|at| &items[at])
                    && name.is_word()
                {
                    found.insert(name.text);
                }
                // A pointer to a function: `(*name)(...)`.
                if let Some([star, name]) = item.within("(")
                    && star.is("*")
                {
                    found.insert(name.text);
                }
                inside = item.text != ";";
            }
            _ => {}
        }
    }
    found
}

/// A unit that is being rewritten.
struct Rewriter<'t> {
    /// The names of types.
    types: BTreeSet<&'t str>,
    /// How many assignments the one at hand stands within.
    assigned: u32,
    too_deep: bool,
}

impl<'t> Rewriter<'t> {
    /// A statement outside of functions, or a function.
    fn file_level(&mut self, mut statement: Vec<Item<'t>>) -> Vec<Item<'t>> {
        let has = |word: &str| statement.iter().any(|item| item.is(word));
        let is_function = statement.iter().any(|item| item.within("(").is_some());
        let declared_only = has("extern") && !is_function;
        let is_constant = (has("=") || declared_only) && !has("volatile") && !has("typedef");
        for item in &mut statement {
            if item.is("const") && !is_constant {
                item.blank();
            }
            if let Some((inner, _)) = &mut item.inner {
                without_const(inner);
            }
        }
        if let Some((last, head)) = statement.split_last_mut()
            && is_body(head, last)
        {
            last.change(|inner| self.divisions(inner));
        }
        statement
    }

    /// The items of a function with its divisions rewritten, those in brackets first.
    fn divisions(&mut self, mut items: Vec<Item<'t>>) -> Vec<Item<'t>> {
        for at in 0..items.len() {
            if at == 0 || !items[at - 1].is("_Static_assert") {
                items[at].change(|inner| self.divisions(inner));
            }
        }
        self.level(items)
    }

    /// Items with the divisions rewritten that stand in no further brackets.
    fn level(&mut self, mut items: Vec<Item<'t>>) -> Vec<Item<'t>> {
        let mut done: Vec<Item<'t>> = Vec::with_capacity(items.len());
        let mut in_case = false;
        let mut at = 0;
        while at < items.len() {
            let operator = if items[at].inner.is_none() { items[at].text } else { "" };
            in_case = operator == "case" || in_case && !matches!(operator, ":" | ";");
            let stored = matches!(operator, "/=" | "%=");
            let end = match operator {
                "/" | "%" => factor_end(&items, at + 1, &self.types),
                _ if stored => assigned_end(&items, at + 1),
                _ => at,
            };
            if in_case || end <= at + 1 || is_constant(&items[at + 1..end], &self.types) {
                done.push(std::mem::replace(&mut items[at], Item::piece("")));
                at += 1;
                continue;
            }
            let start = match stored {
                true => factor_start(&done, done.len(), &self.types),
                false => chain_start(&done, &self.types),
            };
            let left = done.split_off(start);
            let right = items[at + 1..end].iter_mut();
            let right: Vec<Item> =
                right.map(|item| std::mem::replace(item, Item::piece(""))).collect();
            let right = if stored { self.assigned(right) } else { right };
            let result = if operator.starts_with('/') { QUOTIENT } else { REMAINDER };
            // The lines before the operator stay.
            let mut between = std::mem::replace(&mut items[at], Item::piece(""));
            between.blank();
            let operand = divided(left, between, right, result, stored);
            self.too_deep |= tokens::depth(std::slice::from_ref(&operand)) > DEPTH_MAX;
            if self.too_deep {
                return done;
            }
            done.push(operand);
            at = end;
        }
        done
    }

    /// What is assigned, which may have assignments within it.
    fn assigned(&mut self, items: Vec<Item<'t>>) -> Vec<Item<'t>> {
        self.assigned += 1;
        self.too_deep |= self.assigned > ASSIGNED_MAX;
        let items = if self.too_deep { items } else { self.level(items) };
        self.assigned -= 1;
        items
    }
}

/// The expression for a division.
fn divided<'t>(
    left: Vec<Item<'t>>,
    between: Item<'t>,
    right: Vec<Item<'t>>,
    result: &'static str,
    stored: bool,
) -> Item<'t> {
    let mut items = Vec::with_capacity(left.len() + right.len() + 6);
    if stored {
        items.push(Item::piece(TARGET));
        items.extend(left);
        items.extend([Item::piece(STORED), Item::piece(LEFT_OF_TARGET)]);
    } else {
        items.push(Item::piece(LEFT));
        items.extend(left);
    }
    items.extend([between, Item::piece(RIGHT)]);
    items.extend(right);
    items.push(Item::piece(result));
    if stored {
        items.push(Item::piece(TARGET_END));
    }
    Item::operand(items)
}

/// Whether a divisor is made of numbers and sizes alone.
fn is_constant(items: &[Item], types: &BTreeSet<&str>) -> bool {
    let mut after_size = false;
    items.iter().all(|item| {
        let is_size = std::mem::replace(&mut after_size, SIZES.contains(&item.text));
        match &item.inner {
            Some((inner, _)) => {
                is_size || item.text == "(" && (is_type(item, types) || is_constant(inner, types))
            }
            None => !item.is_word() || item.is_number() || after_size,
        }
    })
}

/// Whether a bracket has a type in it.
fn is_type(item: &Item, types: &BTreeSet<&str>) -> bool {
    let first = item.within("(").and_then(|inner| inner.iter().find(|item| !item.text.is_empty()));
    first.is_some_and(|first| {
        first.is_word() && (TYPES.contains(&first.text) || types.contains(first.text))
    })
}

/// The end of the factor that begins at an item.
fn factor_end(items: &[Item], mut at: usize, types: &BTreeSet<&str>) -> usize {
    const PREFIXES: [&str; 9] = ["+", "-", "!", "~", "*", "&", "++", "--", "__extension__"];
    while let Some(item) = items.get(at) {
        let prefix = item.inner.is_none()
            && (PREFIXES.contains(&item.text)
                || SIZES.contains(&item.text)
                || item.text.is_empty());
        let literal = items.get(at + 1).is_some_and(|next| next.within("{").is_some());
        if !prefix && (!is_type(item, types) || literal) {
            break;
        }
        at += 1;
        // The size of a type is a whole factor.
        if SIZES.contains(&item.text) && items.get(at).is_some_and(|next| is_type(next, types)) {
            return at + 1;
        }
    }
    at += 1;
    while let Some(item) = items.get(at) {
        match item.text {
            "(" | "[" | "{" | "++" | "--" => at += 1,
            "." | "->" => at += 2,
            _ => break,
        }
    }
    at.min(items.len())
}

/// The end of what is assigned.
fn assigned_end(items: &[Item], at: usize) -> usize {
    let ends = |item: &Item| item.inner.is_none() && matches!(item.text, "," | ";");
    items[at..].iter().position(ends).map_or(items.len(), |count| at + count)
}

/// Where the chain of factors begins that items end with.
fn chain_start(items: &[Item], types: &BTreeSet<&str>) -> usize {
    let mut start = factor_start(items, items.len(), types);
    while start > 1
        && ["*", "/", "%"].iter().any(|operator| items[start - 1].is(operator))
        && is_operand(items, start - 2, types)
    {
        start = factor_start(items, start - 1, types);
    }
    start
}

/// Where the factor begins that ends before `end`.
fn factor_start(items: &[Item], end: usize, types: &BTreeSet<&str>) -> usize {
    let Some(mut at) = end.checked_sub(1) else { return end };
    // Backwards over what stands behind an operand, to the operand itself.
    while at > 0 {
        let (item, before) = (&items[at], &items[at - 1]);
        let member = item.is_word() && (before.is(".") || before.is("->"));
        let called = item.within("(").is_some() && is_operand(items, at - 1, types);
        let literal = item.within("{").is_some() && before.within("(").is_some();
        let behind = item.within("[").is_some() || item.is("++") || item.is("--");
        if member && at > 1 {
            at -= 2;
        } else if called || literal || behind || item.text.is_empty() && item.inner.is_none() {
            at -= 1;
        } else {
            break;
        }
    }
    // And over what stands before it.
    while at > 0 {
        let before = &items[at - 1];
        let sign = ["+", "-", "*", "&"].iter().any(|sign| before.is(sign))
            && (at == 1 || !is_operand(items, at - 2, types));
        let prefix = ["!", "~", "++", "--", "__extension__"].iter().any(|word| before.is(word))
            || SIZES.contains(&before.text)
            || before.text.is_empty() && before.inner.is_none();
        if !sign && !prefix && !is_type(before, types) {
            break;
        }
        at -= 1;
    }
    at
}

/// Whether an operand ends at an item.
fn is_operand(items: &[Item], mut at: usize, types: &BTreeSet<&str>) -> bool {
    let passes = |item: &Item| item.inner.is_none() && matches!(item.text, "" | "++" | "--");
    while passes(&items[at]) {
        let Some(before) = at.checked_sub(1) else { return false };
        at = before;
    }
    let item = &items[at];
    let controls = || {
        let before = at.checked_sub(1).map(|at| items[at].text);
        before.is_some_and(|word| ["if", "while", "for", "switch"].contains(&word))
    };
    match item.text {
        _ if item.is_number() || item.is_quoted() => true,
        _ if item.is_word() => !KEYWORDS.contains(&item.text) && !SIZES.contains(&item.text),
        "(" => item.inner.is_some() && !is_type(item, types) && !controls(),
        "[" => true,
        "" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The divisions of an expression in a function, as `div(a, b)`, `rem(a, b)`.
    fn check(expression: &str, expected: &str) {
        let whole = format!("typedef int s32;\nint f(void) {{ x = {expression}; }}\n");
        let mut text = rewrite(&whole).unwrap();
        for (long, short) in [
            (QUOTIENT, ")div"),
            (REMAINDER, ")rem"),
            (RIGHT, ", "),
            (LEFT_OF_TARGET, "(it"),
            (STORED, " := "),
            (TARGET, "(&"),
            (TARGET_END, ")"),
            (LEFT, "("),
        ] {
            text = text.replace(long, short);
        }
        let found = text.split_once("x =").and_then(|(_, rest)| rest.rsplit_once("; }"));
        let bare = |text: &str| text.replace(' ', "");
        assert_eq!(found.map(|(found, _)| bare(found)), Some(bare(expected)), "{expression}");
    }

    #[test]
    fn operands_of_divisions_are_found() {
        for (expression, expected) in [
            ("a / b", "(a, b)div"),
            ("a + b / c - d", "a + (b, c)div - d"),
            ("a * b / c", "(a * b, c)div"),
            ("a / b / c", "((a, b)div, c)div"),
            ("a / b * c % d", "((a, b)div * c, d)rem"),
            ("-a / ~b", "(-a, ~b)div"),
            ("a - -b / c", "a - (-b, c)div"),
            ("p->a[i + 1].b / (c + d)", "(p->a[i + 1].b, (c + d))div"),
            ("f(a / b, g()) / h(c)[2]++", "(f((a, b)div, g()), h(c)[2]++)div"),
            ("(s32)a / (s32)-b", "((s32)a, (s32)-b)div"),
            ("(a) - b / c", "(a) - (b, c)div"),
            ("*p / *q", "(*p, *q)div"),
            ("a ? b / c : d", "a ? (b, c)div : d"),
            ("a / sizeof(x)", "a / sizeof(x)"),
            ("a / 4 / b", "(a / 4, b)div"),
            ("a / (1000ULL * 8)", "a / (1000ULL * 8)"),
            ("sizeof a / b", "(sizeof a, b)div"),
            ("'/' + \"a/b\"[0]", "'/' + \"a/b\"[0]"),
            ("({ y /= a ? b : c; y; })", "({ (&y := (it, a ? b : c)div); y; })"),
            ("0; if (a) *p %= b", "0; if (a) (&*p := (it, b)rem)"),
        ] {
            check(expression, expected);
        }
    }

    #[test]
    fn too_many_divisions_are_refused() {
        for (repeated, end) in [(" / b", ""), (" / 4", ""), (" /= b", ""), (" / (b", ")")] {
            for count in [40, 20_000] {
                let (begin, end) = (repeated.repeat(count), end.repeat(count));
                let whole = format!("int f(void) {{ x = a{begin}{end}; }}\n");
                // Those by 4 stay.
                let is_good = count == 40 || repeated == " / 4";
                assert_eq!(rewrite(&whole).is_ok(), is_good, "{count} times{repeated}");
            }
        }
        let signs = "++ ".repeat(20_000);
        assert!(rewrite(&format!("int f(void) {{ x = a {signs} - b / c; }}\n")).is_ok());
    }

    /// Foreign text is rewritten or refused, whatever it is, and its lines stay.
    #[test]
    fn any_text_is_rewritten_or_refused() {
        const WORDS: [&str; 24] = [
            "a", "7", "/", "%", "/=", "%=", "(", ")", "[", "]", "{", "}", "*", "->", "++",
            "sizeof", "int", "case", ":", ";", "\n", "if", "\"x", "= ",
        ];
        let mut state = 1_u64;
        let mut next = |count: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % count
        };
        let mut rewritten = 0;
        for _ in 0..20_000 {
            let words: Vec<&str> = (0..next(12)).map(|_| WORDS[next(WORDS.len())]).collect();
            let whole = format!("int f(void) {{ {} }}\n", words.join(" "));
            if let Ok(text) = rewrite(&whole) {
                assert_eq!(text.lines().count(), whole.lines().count(), "{whole}");
                rewritten += 1;
            }
        }
        assert!(rewritten > 2_000, "{rewritten}");
    }

    #[test]
    fn constants_outside_of_functions_stay() {
        for same in [
            "int a[N / M];\n",
            "struct x { int b[(N + 7) / M]; } __attribute__((packed));\n",
            "enum { A = 8 / B };\nstatic long c = A / B;\n",
            "int f(int a)\n{\n\tswitch (a) { case A / B: break; }\n\t_Static_assert(A / B, \"\");\n}\n",
        ] {
            assert_eq!(rewrite(same).unwrap(), same);
        }
    }

    #[test]
    fn loaders_can_write_what_is_const_and_volatile() {
        for (text, expected) in [
            ("const volatile int a = 3;", " volatile int a = 3;"),
            ("const int a = 3;", "const int a = 3;"),
            ("extern const volatile int a;", "extern  volatile int a;"),
            ("extern const int a;", "extern const int a;"),
            ("int f(const int *a) { const int b = *a; }", "int f( int *a) {  int b = *a; }"),
            ("extern const char *f(const char *);", "extern  char *f( char *);"),
        ] {
            assert_eq!(rewrite(text).unwrap(), expected);
        }
    }
}
