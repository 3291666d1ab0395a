// SPDX-License-Identifier: GPL-2.0-or-later
//! The width of the terminal, and text that fits it.
//!
//! Text for a pipe or a file is as wide as [`report::WIDTH`], whoever reads it: the same command writes the same bytes. A
//! terminal gets what it can show: its own size, or the `COLUMNS` that its user has set.

use schedtwin_lab::report;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// The narrowest that anything is laid out for.
const NARROWEST: usize = 40;

/// The widest that help is: longer lines are hard to read.
pub const HELP_WIDEST: usize = 100;

/// The width of the terminal behind stdout; `None`: it is no terminal.
pub fn width() -> Option<usize> {
    width_of(&io::stdout())
}

/// That of the terminal behind stderr.
pub fn stderr_width() -> Option<usize> {
    width_of(&io::stderr())
}

fn width_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let size = || terminal_size::terminal_size_of(stream).map(|(width, _)| width.0.into());
    said.or_else(size).filter(|width| *width > 0).map(|width: usize| width.max(NARROWEST))
}

/// The width of a report: as asked, as wide as the terminal, or that of mails.
pub fn report_width(asked: Option<u16>) -> usize {
    asked.map(usize::from).or_else(width).unwrap_or(report::WIDTH)
}

/// The text with its long lines broken for the terminal; as it is where there is none.
pub fn fit(text: &str) -> String {
    match width() {
        Some(width) => fit_to(text, width),
        None => text.to_owned(),
    }
}

/// The text with its long lines broken at spaces. What follows on a broken line stands below the line's last column: text behind
/// two spaces or more, if that is not too far to the right.
pub fn fit_to(text: &str, width: usize) -> String {
    let mut fitted = String::with_capacity(text.len());
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let far = |line: &&str| lead(line) >= FAR;
    for block in lines.chunk_by(|a, b| far(a) == far(b)) {
        // A table far to the right goes to the left, whole, as far as it has to.
        let is_table = block.len() > 1 && far(&block[0]);
        let shift = if is_table { excess(block, width) } else { 0 };
        for line in block {
            let line = &line[shift..];
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            fit_line(line, width, &mut fitted);
            fitted.push_str(end);
        }
    }
    fitted
}

/// By how much the lines of a table go to the left, so that the widest fits if it can.
fn excess(table: &[&str], width: usize) -> usize {
    let widest = table.iter().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
    let least = table.iter().map(|line| lead(line)).min().unwrap_or(0);
    widest.saturating_sub(width).min(least.saturating_sub(LEAST_LEAD))
}

/// An indent from which on a line belongs to a table or to words in a column of their own.
const FAR: usize = 12;
/// The least of it that is left.
const LEAST_LEAD: usize = 4;

/// The spaces that a line begins with.
fn lead(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn fit_line(line: &str, width: usize, fitted: &mut String) {
    let letters: Vec<char> = line.chars().collect();
    if letters.len() <= width {
        return fitted.push_str(line);
    }
    let lead = letters.iter().take_while(|letter| **letter == ' ').count();
    let columns = columns(&letters, lead);
    let near = columns.iter().rev().find(|(_, to)| *to <= width * 3 / 5);
    let indent = near.map_or(lead + 4, |(_, to)| *to).min(width / 2);
    // A note far to the right goes below whole, so that the command in front of it can be copied.
    let far = columns.iter().rev().find(|(from, to)| *from <= width && *to > width * 3 / 5);
    let mut rest = &letters[..];
    let mut room = width;
    if let (Some((from, to)), None) = (far, near) {
        fitted.extend(&letters[..*from]);
        fitted.push('\n');
        fitted.extend(std::iter::repeat_n(' ', indent));
        rest = &letters[*to..];
        room = width - indent;
    }
    while rest.len() > room {
        let first = rest.iter().take_while(|letter| **letter == ' ').count();
        let fits = rest[..=room].iter().rposition(|letter| *letter == ' ');
        // A word that is longer than the line is broken behind a slash: paths of sysfs are such words.
        let slash = || rest[..room].iter().rposition(|letter| *letter == '/').map(|at| at + 1);
        let next = || rest.iter().skip(room).position(|letter| *letter == ' ').map(|at| at + room);
        let fits = fits.filter(|at| *at > first);
        let within = fits.is_none().then(slash).flatten().filter(|at| *at > first + 1);
        let Some(at) = fits.or(within).or_else(next) else { break };
        fitted.extend(&rest[..at]);
        let behind = rest[at..].iter().take_while(|letter| **letter == ' ').count();
        rest = &rest[at + behind..];
        fitted.truncate(fitted.trim_end_matches(' ').len());
        fitted.push('\n');
        // It moves to the left where it then is whole, and its other parts stand below the first one.
        let word = rest.iter().take_while(|letter| **letter != ' ').count();
        if within.is_none() || room == width {
            room = width - indent.min(width.saturating_sub(word).max(lead + 4).min(width / 2));
        }
        fitted.extend(std::iter::repeat_n(' ', width - room));
    }
    fitted.extend(rest);
}

/// The gaps of two spaces or more within a line: where each begins and where its next column does.
fn columns(letters: &[char], lead: usize) -> Vec<(usize, usize)> {
    let mut gaps = Vec::new();
    let mut at = lead;
    while at < letters.len() {
        let gap = letters[at..].iter().take_while(|letter| **letter == ' ').count();
        if gap >= 2 && at + gap < letters.len() {
            gaps.push((at, at + gap));
        }
        at += gap.max(1);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_far_to_the_right_goes_to_the_left_whole() {
        let text = "0.1 [000] decision  why\n                  cpu  util  perf\n               =>   4   109   136\n";
        let fitted =
            "0.1 [000] decision  why\n         cpu  util  perf\n      =>   4   109   136\n";
        assert_eq!(fit_to(text, 33), text);
        assert_eq!(fit_to(text, 24), fitted);
        assert!(fit_to("a  b\n                  one line alone is broken\n", 30).contains("\n"));
    }

    #[test]
    fn lines_are_broken_below_their_last_column() {
        for (line, expected) in [
            ("short", "short"),
            (
                "  name   a meaning that is longer than the line",
                "  name   a meaning that is longer\n         than the line",
            ),
            (
                "  command with some options    and a note",
                "  command with some options\n      and a note",
            ),
            (
                "words that are longer than a line of so many",
                "words that are longer than a line of\n    so many",
            ),
            (
                "averyveryverylongwordthathasnospacewithinit b",
                "averyveryverylongwordthathasnospacewithinit\n    b",
            ),
            (
                "  name           on   /sys/devices/system/cpu/x y",
                "  name           on\n           /sys/devices/system/cpu/x\n                 y",
            ),
            (
                "  name   /sys/devices/system/cpu/cpufreq/policy0/rate",
                "  name\n      /sys/devices/system/cpu/\n      cpufreq/policy0/rate",
            ),
        ] {
            assert_eq!(fit_to(line, 36), expected);
        }
        assert_eq!(fit_to("a\n\nb\n", 40), "a\n\nb\n");
    }
}
