// SPDX-License-Identifier: GPL-2.0-or-later
//! Machine code in a scheduler's own text: BPF programs have none of this processor's. Written as `asm` it could read the time of
//! the machine, so that equal runs differ, or call the system.
//!
//! An `asm` without instructions, which keeps the compiler from moving memory accesses, is what BPF programs do have.

use crate::tokens::{self, Item};

/// The first instruction of this processor that a preprocessed unit contains in files of the `folder`; in words, if its brackets do
/// not fit.
pub(crate) fn of(text: &str, folder: &str) -> Result<Option<String>, String> {
    let items = tokens::items(text)?;
    Ok(Place { folder, file: "", line: 1 }.find(&items))
}

/// Where in the sources the walk through the items is.
struct Place<'t> {
    folder: &'t str,
    file: &'t str,
    line: u32,
}

impl<'t> Place<'t> {
    fn find(&mut self, items: &[Item<'t>]) -> Option<String> {
        for (at, item) in items.iter().enumerate() {
            self.passes(item.before);
            if is_machine_code(item, &items[at + 1..])
                && let Some(inside) = self.file.strip_prefix(self.folder)
                && let Some(inside) = inside.strip_prefix('/')
            {
                let (line, word) = (self.line, item.text);
                return Some(format!("{inside}:{line}: `{word}` is machine code"));
            }
            self.passes(item.text);
            if let Some((inner, before_end)) = &item.inner {
                let found = self.find(inner);
                if found.is_some() {
                    return found;
                }
                self.passes(before_end);
            }
        }
        None
    }

    /// Counts lines; `# 12 "file" 1` tells the number and file of the next one.
    fn passes(&mut self, text: &'t str) {
        let mut lines = text.split('\n');
        let mut line = lines.next();
        for next in lines {
            self.line += 1;
            if let Some((number, file)) = line.and_then(line_mark) {
                (self.line, self.file) = (number, file);
            }
            line = Some(next);
        }
    }
}

/// The number and file that a mark gives to the next line.
fn line_mark(line: &str) -> Option<(u32, &str)> {
    let (number, name) = line.strip_prefix("# ")?.split_once(' ')?;
    let name = name.strip_prefix('"')?;
    Some((number.parse().ok()?, &name[..name.find('"')?]))
}

fn is_machine_code(item: &Item, next: &[Item]) -> bool {
    let is = |prefix: &&str| item.text.starts_with(*prefix);
    match item.text {
        _ if !item.is_word() => false,
        "asm" | "__asm" | "__asm__" => has_instructions(next),
        _ => ["__builtin_ia32_", "__builtin_aarch64_", "__builtin_arm_"].iter().any(is),
    }
}

/// Whether an `asm` goes on with anything but empty texts: a text may be in brackets of its own, or have a prefix.
fn has_instructions(next: &[Item]) -> bool {
    const QUALIFIERS: [&str; 6] =
        ["volatile", "__volatile__", "__volatile", "goto", "inline", "__inline__"];
    let bracket = next.iter().find(|item| !QUALIFIERS.contains(&item.text));
    let Some(inside) = bracket.and_then(|item| item.within("(")) else { return false };
    let first = inside.iter().find(|item| item.text != "\"\"" && !item.text.is_empty());
    first.is_some_and(|item| !item.is(":"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn instructions_are_found_and_barriers_are_not() {
        let of =
            |text: &str| super::of(&format!("# 7 \"TREE/a.bpf.c\" 2\n\n{text}\n"), "TREE").unwrap();
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
        assert_eq!(super::of(header, "TREE"), Ok(None), "what is offered is ours");
    }
}
