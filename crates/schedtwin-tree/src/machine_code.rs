// SPDX-License-Identifier: GPL-2.0-or-later
//! Machine code in a scheduler's own text: BPF programs have none of this processor's. Written as `asm` it could read the time of
//! the machine, so that equal runs differ, or call the system.
//!
//! An `asm` without instructions, which keeps the compiler from moving memory accesses, is what BPF programs do have.

/// The first instruction of this processor that a preprocessed unit contains in files of the `folder`.
pub(crate) fn of(text: &str, folder: &str) -> Option<String> {
    let (mut file, mut number) = ("", 0);
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        if let Some((at, of)) = line_mark(line) {
            (file, number) = (of, at);
        } else {
            if let Some(inside) = file.strip_prefix(folder).and_then(|f| f.strip_prefix('/'))
                && let Some(what) = in_line(line, rest)
            {
                return Some(format!("{inside}:{number}: `{what}` is machine code"));
            }
            number += 1;
        }
        rest = after;
    }
    None
}

/// `# 12 "file" 1`: the number and file of the next line.
fn line_mark(line: &str) -> Option<(u32, &str)> {
    let (number, name) = line.strip_prefix("# ")?.split_once(' ')?;
    let name = name.strip_prefix('"')?;
    Some((number.parse().ok()?, &name[..name.find('"')?]))
}

/// The word in this line that makes machine code. `rest`: the text from the line on.
fn in_line<'t>(line: &'t str, rest: &str) -> Option<&'t str> {
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        let from = &line[at..];
        if c == '"' || c == '\'' {
            at += literal(from, c);
        } else if is_word(c) {
            let word = &from[..from.find(|c| !is_word(c)).unwrap_or(from.len())];
            at += word.len();
            let instructions =
                ["asm", "__asm", "__asm__"].contains(&word) && has_instructions(&rest[at..]);
            let intrinsic = word.strip_prefix("__builtin_").is_some_and(|of| {
                ["ia32_", "aarch64_", "arm_"].iter().any(|prefix| of.starts_with(prefix))
            });
            if instructions || intrinsic {
                return Some(word);
            }
        } else {
            at += c.len_utf8();
        }
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The length of a literal with its quotes, or of the line's rest.
fn literal(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether an `asm` goes on with a text that is not empty.
fn has_instructions(mut rest: &str) -> bool {
    const QUALIFIERS: [&str; 6] =
        ["volatile", "__volatile__", "__volatile", "goto", "inline", "__inline__"];
    loop {
        rest = rest.trim_start();
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        if !QUALIFIERS.contains(&word) {
            break;
        }
        rest = &rest[word.len()..];
    }
    let Some(inside) = rest.strip_prefix('(') else { return false };
    // Anything but empty texts: a text may be in brackets of its own, or have a prefix.
    let mut inside = inside.trim_start();
    while let Some(after) = inside.strip_prefix("\"\"") {
        inside = after.trim_start();
    }
    !inside.starts_with([':', ')'])
}

#[cfg(test)]
mod tests {
    #[test]
    fn instructions_are_found_and_barriers_are_not() {
        let of = |text: &str| super::of(&format!("# 7 \"TREE/a.bpf.c\" 2\n\n{text}\n"), "TREE");
        for good in [
            "asm volatile(\"\" ::: \"memory\");",
            "__asm__ __volatile__ ( \"\" : \"+r\"(x));",
            "asm(\"\");",
            "int asmlinkage = 1; char *s = \"asm(\\\"nop\\\")\"; char c = '\"';",
            "__builtin_memcpy(a, b, 4);",
        ] {
            assert_eq!(of(good), None, "{good}");
        }
        for (bad, word) in [
            ("asm volatile(\"rdtsc\" : \"=a\"(x));", "asm"),
            ("__asm__(\"\" \"nop\");", "__asm__"),
            ("x = '\\''; asm goto (\n  \"jmp %l0\" ::::a);", "asm"),
            ("__asm volatile\n(\"\"\n\"syscall\");", "__asm"),
            ("register long a asm(\"rax\");", "asm"),
            ("t = __builtin_ia32_rdtsc();", "__builtin_ia32_rdtsc"),
            ("asm((\"nop\"));", "asm"),
        ] {
            assert_eq!(of(bad), Some(format!("a.bpf.c:8: `{word}` is machine code")), "{bad}");
        }
        let header = "# 1 \"include/linux/kernel.h\" 1\nasm(\"nop\");\n";
        assert_eq!(super::of(header, "TREE"), None, "what is offered is ours");
    }
}
