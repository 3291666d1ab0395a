// SPDX-License-Identifier: GPL-2.0-or-later
//! Machine code in a scheduler's own text: BPF programs have none of this processor's. Written as `asm` it could read the time of
//! the machine, so that equal runs differ, or call the system.
//!
//! An `asm` without instructions, which keeps the compiler from moving memory accesses, is what BPF programs do have.

use crate::tokens::{self, Item, in_word};

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

/// Whether an `asm` has instructions of this processor. What is not plain text, such as one in brackets of its own or with a
/// prefix, counts as some.
fn has_instructions(next: &[Item]) -> bool {
    const QUALIFIERS: [&str; 6] =
        ["volatile", "__volatile__", "__volatile", "goto", "inline", "__inline__"];
    let bracket = next.iter().find(|item| !QUALIFIERS.contains(&item.text));
    let Some(inside) = bracket.and_then(|item| item.within("(")) else { return false };
    let mut template = String::new();
    for item in inside.iter().filter(|item| !item.text.is_empty()) {
        match item.text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) => template.push_str(text),
            None if item.is(":") => break,
            None => return true,
        }
    }
    let statements = template.split("\\n").flat_map(|line| line.split([';', '\n']));
    statements.map(|text| text.replace("\\t", " ")).any(|text| !is_nothing_here(text.trim()))
}

/// Whether a statement is none, or BPF's: a register of BPF, an operand or memory is assigned. Assemblers of processors refuse
/// that, so it stands where nothing is compiled, such as in a function that nobody calls. A comment, which could hide the end of
/// one statement and the begin of another, is not nothing.
fn is_nothing_here(statement: &str) -> bool {
    let Some((to, _)) = statement.split_once('=') else { return statement.is_empty() };
    if statement.contains("/*") || statement.contains("*/") {
        return false;
    }
    if to.starts_with("*(") {
        return true;
    }
    let to = to.trim_end_matches(['+', '-', '*', '/', '|', '&', '^', '%', '<', '>']).trim_end();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match to.strip_prefix('%') {
        Some(operand) => {
            let name = operand.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
            digits(operand) || name.is_some_and(|name| name.chars().all(in_word))
        }
        None => to.strip_prefix(['r', 'w']).is_some_and(digits),
    }
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
            "asm volatile(\"%0 = *(u32 *)(%1 + 0)\" : \"=r\"(val) : \"r\"(ptr));",
            "asm volatile(\"*(u32 *)(%1 + 0) = %2\" : \"=m\"(*ptr) : \"r\"(ptr), \"r\"(val));",
            "asm volatile(\"%[sum] += %1;\\n\\tr0 = 5\" : [sum] \"+r\"(sum) : \"r\"(x));",
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
            ("asm(\"r0 = 1\\nsyscall\");", "asm"),
            ("asm(\"r0 = 1; rdtsc\");", "asm"),
            ("asm(\"mov $1, %%eax\" ::: \"eax\");", "asm"),
            ("asm(L\"nop\");", "asm"),
            ("asm(\"r0 = 5 /*\\nr1 = */ rdtsc\");", "asm"),
            ("asm(\"*(u32 *)(%1) = /*\\n*(u32 *)(%1) = */ rdtsc\");", "asm"),
            ("asm(\"*(u32 *)(%1) = %2; rdtsc\");", "asm"),
        ] {
            assert_eq!(of(bad), Some(format!("a.bpf.c:8: `{word}` is machine code")), "{bad}");
        }
        let header = "# 1 \"include/linux/kernel.h\" 1\nasm(\"nop\");\n";
        assert_eq!(super::of(header, "TREE"), Ok(None), "what is offered is ours");
    }
}
