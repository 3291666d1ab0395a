// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs of a scheduler beside its callbacks: tracing programs, and those that its loader runs.
//!
//! The twin runs `tp_btf/sched_switch`. Others would see what the twin does not tell, so a scheduler that has some is refused,
//! unless its loader has a switch that leaves them off and the row of [`super::loader::LOADERS`] says so.

/// A program: its section and its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) section: String,
    pub(super) function: String,
    /// Its loader decides whether it runs (`?`).
    pub(super) optional: bool,
}

/// The tracepoint that the twin has.
pub(super) const SCHED_SWITCH: &str = "tp_btf/sched_switch";

/// Beginnings of sections of tracing programs.
const TRACING: [&str; 13] = [
    "tp_btf",
    "tp/",
    "tracepoint/",
    "raw_tp",
    "raw_tracepoint",
    "kprobe",
    "kretprobe",
    "fentry",
    "fexit",
    "fmod_ret",
    "uprobe",
    "perf_event",
    "iter/",
];

impl Program {
    /// All tracing programs in a text, but for comments.
    pub(super) fn all(text: &str) -> Vec<Program> {
        let mut found = Vec::new();
        let text = without_comments(text);
        let mut rest = &text[..];
        while let Some((_, behind)) = rest.split_once("SEC(\"") {
            let Some((section, behind)) = behind.split_once("\")") else { break };
            rest = behind;
            let name = section.trim_matches('?');
            let traces = TRACING.iter().any(|kind| name.starts_with(kind));
            if let Some(function) = function(behind).filter(|_| traces) {
                let optional = section.starts_with('?');
                let section = name.to_string();
                found.push(Program { section, function, optional });
            }
        }
        found
    }
}

/// A text with a space for each comment. Quotes are those of C.
pub(super) fn without_comments(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'']) {
        let (before, from) = rest.split_at(at);
        to.push_str(before);
        let end = |mark: &str| from[2..].find(mark).map_or(from.len(), |at| at + 2);
        let length = if from.starts_with("//") {
            to.push(' ');
            end("\n")
        } else if from.starts_with("/*") {
            to.push(' ');
            (end("*/") + 2).min(from.len())
        } else {
            let length = if from.starts_with('/') { 1 } else { quoted_bytes(from) };
            to.push_str(&from[..length]);
            length
        };
        rest = &from[length..];
    }
    to.push_str(rest);
    to
}

/// Bytes of a string or a character with its quotes; they end with the line.
fn quoted_bytes(text: &str) -> usize {
    let mut chars = text.char_indices();
    let quote = chars.next().map(|(_, quote)| quote);
    let mut escaped = false;
    let end = chars.find(|(_, c)| {
        let ends = *c == '\n' || Some(*c) == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, c)| at + c.len_utf8())
}

/// The function whose definition a text begins with: `int BPF_PROG(name, ...` or `int name(...`.
fn function(text: &str) -> Option<String> {
    let (head, arguments) = text.split_once('(')?;
    let word = |text: &str| {
        let text = text.trim();
        let from = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        Some(text[from..].to_string()).filter(|word| !word.is_empty())
    };
    let name = word(head)?;
    if name.starts_with("BPF_") {
        return word(arguments.split([',', ')']).next()?);
    }
    (!head.contains([';', '=', '{'])).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found() {
        let text = "char l[] SEC(\"license\") = \"GPL\";\nSEC(\"tp_btf/sched_switch\")\nint BPF_PROG(switched, bool p)\n{}\n\
                    SEC(\"?fexit/do_futex\")\nint on_futex(void *ctx)\nSEC(\"syscall\")\nint setup(void *c)\n\
                    // SEC(\"kprobe/a\") int b(void *c)\n/* \" SEC(\"iter/c\") int d(void *c) */ char q[] = \"/*\";\n\
                    SEC(\"tp_btf/pressure?\")\nint heat(void *c)";
        let found = Program::all(text);
        let pairs: Vec<_> = found.iter().map(|p| (&*p.section, &*p.function)).collect();
        assert_eq!(
            pairs,
            [
                ("tp_btf/sched_switch", "switched"),
                ("fexit/do_futex", "on_futex"),
                ("tp_btf/pressure", "heat")
            ]
        );
    }
}
