// SPDX-License-Identifier: GPL-2.0-or-later
//! Options of built-in workloads: the words behind the name in `-w 'periodic -f 73 -t 12'`.
//!
//! A workload has a table of [`WorkloadOption`]s; everything else follows from it: reading, errors that
//! point at the word, the text of `show workload`, and what a calibration may turn.
//!
//! ```text
//! -f 73   -f73   --frequency 73   --frequency=73       a number, "0.5" where the table allows it
//! --tests list_view,edit_text                          words of a list
//! -t                                                   a flag: it is there or not
//! ```
//!
//! Numbers are kept in thousandths, so that 0.5 % is exact.

use crate::form::{Field, FieldKind, Place};
use schedtwin_input::{Diagnostics, Source, did_you_mean_or};
use std::ops::Range;
use std::sync::Arc;

/// Thousandths of one.
const ONE: u64 = 1000;

/// An option of a built-in workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadOption {
    /// Its letter.
    pub short: Option<char>,
    /// Its name, without the dashes.
    pub long: &'static str,
    /// The kind of value that the option takes.
    pub kind: OptionKind,
    /// A free parameter of the model: a calibration may turn it within its bounds.
    pub free: bool,
    /// One line.
    pub help: &'static str,
}

/// The kind of value that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// A number; all in thousandths of the unit.
    Number {
        /// Of what; empty for a count.
        unit: &'static str,
        /// Without the option.
        default: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// Whether "0.5" is a number of it.
        decimals: bool,
    },
    /// Nothing: the option is there or not.
    Flag,
    /// Some words of a list, with commas between them; all of them without the option.
    Words {
        /// The list, at most 64 words.
        known: &'static [&'static str],
    },
}

impl WorkloadOption {
    /// A whole number from `min` to `max` `unit`s.
    pub(crate) const fn count(
        short: Option<char>,
        long: &'static str,
        unit: &'static str,
        default: u64,
        bounds: (u64, u64),
        help: &'static str,
    ) -> WorkloadOption {
        let (min, max) = (bounds.0 * ONE, bounds.1 * ONE);
        let kind = OptionKind::Number { unit, default: default * ONE, min, max, decimals: false };
        WorkloadOption { short, long, kind, free: false, help }
    }

    /// A number with decimals; `default` and bounds in thousandths.
    pub(crate) const fn decimal(
        short: Option<char>,
        long: &'static str,
        unit: &'static str,
        default: u64,
        bounds: (u64, u64),
        help: &'static str,
    ) -> WorkloadOption {
        let kind =
            OptionKind::Number { unit, default, min: bounds.0, max: bounds.1, decimals: true };
        WorkloadOption { short, long, kind, free: false, help }
    }

    /// An option without a value.
    pub(crate) const fn flag(
        short: Option<char>,
        long: &'static str,
        help: &'static str,
    ) -> WorkloadOption {
        WorkloadOption { short, long, kind: OptionKind::Flag, free: false, help }
    }

    /// Words of a list.
    pub(crate) const fn words(
        long: &'static str,
        known: &'static [&'static str],
        help: &'static str,
    ) -> WorkloadOption {
        WorkloadOption { short: None, long, kind: OptionKind::Words { known }, free: false, help }
    }

    /// The same, as a free parameter.
    pub(crate) const fn free(mut self) -> WorkloadOption {
        self.free = true;
        self
    }

    fn default(&self) -> u64 {
        match self.kind {
            OptionKind::Number { default, .. } => default,
            OptionKind::Flag => 0,
            OptionKind::Words { known } => all_words(known),
        }
    }
}

fn all_words(known: &[&str]) -> u64 {
    assert!(!known.is_empty() && known.len() <= 64, "a list of 1 to 64 words");
    u64::MAX >> (64 - known.len())
}

/// The values of all options of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    table: &'static [WorkloadOption],
    values: Vec<u64>,
}

impl Values {
    /// In thousandths.
    pub fn thousandths(&self, long: &str) -> u64 {
        let at = self.table.iter().position(|option| option.long == long);
        self.values[at.unwrap_or_else(|| panic!("the table has an option {long}"))]
    }

    /// A whole number.
    pub fn whole(&self, long: &str) -> u64 {
        self.thousandths(long) / ONE
    }

    /// Whether a flag is there.
    pub fn is_set(&self, long: &str) -> bool {
        self.thousandths(long) != 0
    }

    /// Which of the known words, in the table's order.
    pub fn words(&self, long: &str) -> Vec<usize> {
        let chosen = self.thousandths(long);
        (0..64).filter(|word| chosen >> word & 1 != 0).collect()
    }

    /// Every option with its value: what a workload is, however it was spelled.
    pub fn canonical(&self, name: &str) -> String {
        let mut text = name.to_owned();
        for (option, value) in self.table.iter().zip(&self.values) {
            if option.kind == OptionKind::Flag {
                if *value != 0 {
                    text.push_str(&format!(" --{}", option.long));
                }
                continue;
            }
            text.push_str(&format!(" --{} {}", option.long, spelled(option, *value)));
        }
        text
    }
}

/// A value as it is written.
fn spelled(option: &WorkloadOption, value: u64) -> String {
    match option.kind {
        OptionKind::Number { .. } if value.is_multiple_of(ONE) => (value / ONE).to_string(),
        OptionKind::Number { .. } => {
            let decimals = format!("{:03}", value % ONE);
            format!("{}.{}", value / ONE, decimals.trim_end_matches('0'))
        }
        OptionKind::Flag => if value == 0 { "no" } else { "yes" }.to_owned(),
        OptionKind::Words { known } => {
            let chosen = known.iter().enumerate().filter(|(at, _)| value >> at & 1 != 0);
            chosen.map(|(_, word)| *word).collect::<Vec<_>>().join(",")
        }
    }
}

/// The values that an option takes, behind its help; nothing of a flag.
fn takes(option: &WorkloadOption) -> String {
    match option.kind {
        OptionKind::Number { unit, default, min, max, .. } => {
            let spell = |value| spelled(option, value);
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            format!(": {} to {}{unit}; {} without it", spell(min), spell(max), spell(default))
        }
        OptionKind::Flag => String::new(),
        OptionKind::Words { known } => format!(": some of {}", known.join(",")),
    }
}

/// The table as `show workload` prints it.
pub(crate) fn describe(table: &[WorkloadOption]) -> String {
    if table.is_empty() {
        return "It takes no options.\n".to_owned();
    }
    let head = |option: &WorkloadOption| {
        let short = option.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
        format!("{short}--{}", option.long)
    };
    let width = table.iter().map(|option| head(option).len()).max().unwrap_or(0);
    let mut text = "options:\n".to_owned();
    for option in table {
        let free = if option.free { "; a free parameter" } else { "" };
        let takes = takes(option);
        text.push_str(&format!("  {:width$}  {}{takes}{free}\n", head(option), option.help));
    }
    text
}

/// Reads the words behind a workload's name, all faults at once. `from`: where they begin in the source.
pub(crate) fn read(
    source: &Arc<Source>,
    from: usize,
    name: &str,
    table: &'static [WorkloadOption],
) -> Result<Values, Diagnostics> {
    read_with_places(source, from, name, table).map(|(values, _)| values)
}

/// Where the value of each option of a table stands, of a flag the flag; `None`: it is not given.
type Places = Vec<Option<Range<usize>>>;

fn read_with_places(
    source: &Arc<Source>,
    from: usize,
    name: &str,
    table: &'static [WorkloadOption],
) -> Result<(Values, Places), Diagnostics> {
    let mut faults = Diagnostics::new();
    let mut values: Vec<Option<u64>> = vec![None; table.len()];
    let mut places: Places = vec![None; table.len()];
    let mut words = words_of(&source.text, from).into_iter().peekable();
    while let Some(span) = words.next() {
        let word = &source.text[span.clone()];
        let Some((at, attached)) = find(table, word, &span) else {
            let (message, help) = if word.starts_with('-') {
                let longs = table.iter().map(|option| option.long);
                let name_of = word.trim_start_matches('-');
                let help = did_you_mean_or(name_of, longs, || Some(all_of(table)));
                (format!("workload \"{name}\" has no option \"{word}\""), help)
            } else {
                (format!("\"{word}\" belongs to no option of \"{name}\""), Some(all_of(table)))
            };
            faults.push(source, span, message, help);
            // What follows an unknown option is taken to be its value.
            words.next_if(|next| !is_option(&source.text[next.clone()]));
            continue;
        };
        let option = &table[at];
        if option.kind == OptionKind::Flag {
            if attached.is_some() {
                let help = Some(format!("\"--{}\": {}", option.long, option.help));
                faults.push(source, span, format!("\"--{}\" takes no value", option.long), help);
            } else if values[at].replace(ONE).is_some() {
                faults.push(source, span, format!("\"--{}\" is given twice", option.long), None);
            } else {
                places[at] = Some(span);
            }
            continue;
        }
        let value = match attached {
            Some(value) => Some(value),
            None => words.next_if(|next| !is_option(&source.text[next.clone()])),
        };
        let Some(value) = value else {
            let help = Some(format!("\"--{}\": {}", option.long, option.help));
            faults.push(source, span, format!("\"{word}\" needs a value"), help);
            continue;
        };
        if values[at].is_some() {
            faults.push(source, span, format!("\"--{}\" is given twice", option.long), None);
            continue;
        }
        // A value with a fault is not missing.
        values[at] = Some(option.default());
        places[at] = Some(value.clone());
        match option.kind {
            OptionKind::Number { .. } => match number(option, &source.text[value.clone()]) {
                Ok(read) => values[at] = Some(read),
                Err((message, help)) => faults.push(source, value, message, help),
            },
            OptionKind::Flag => unreachable!("a flag has no value"),
            OptionKind::Words { known } => {
                values[at] = Some(read_words(source, value, option, known, &mut faults));
            }
        }
    }
    let filled = values.iter().zip(table).map(|(value, option)| value.unwrap_or(option.default()));
    let values = Values { table, values: filled.collect() };
    faults.into_result((values, places))
}

/// The options of a workload as fields of a form; `from`: where its options begin in the source, which they end.
pub(crate) fn fields(
    source: &Arc<Source>,
    from: usize,
    of: &str,
    table: &'static [WorkloadOption],
) -> Result<Vec<Field>, Diagnostics> {
    let (_, places) = read_with_places(source, from, of, table)?;
    let end = source.text.trim_end().len();
    let field = |(option, place): (&WorkloadOption, Option<Range<usize>>)| {
        let value = place.clone().map(|span| source.text[span].to_owned());
        let kind = match option.kind {
            OptionKind::Flag => FieldKind::Switch,
            OptionKind::Number { .. } => FieldKind::Number,
            OptionKind::Words { .. } => FieldKind::Text,
        };
        let (value, default, before) = match kind {
            FieldKind::Switch => (Some(yes_or_no(place.is_some())), None, String::new()),
            _ => (value, Some(spelled(option, option.default())), format!(" --{} ", option.long)),
        };
        let place = match place {
            Some(span) => Place { span, before: String::new(), after: "" },
            None => Place { span: end..end, before, after: "" },
        };
        let help = format!("{}{}", option.help, takes(option));
        Field { of: of.to_owned(), name: option.long.to_owned(), help, value, default, kind, place }
    };
    Ok(table.iter().zip(places).map(field).collect())
}

fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn all_of(table: &[WorkloadOption]) -> String {
    if table.is_empty() {
        return "it takes none".to_owned();
    }
    let longs: Vec<String> = table.iter().map(|option| format!("--{}", option.long)).collect();
    format!("there are {}", longs.join(", "))
}

/// "-5" is a value, "-f" is not.
fn is_option(word: &str) -> bool {
    word.starts_with('-') && !word[1..].starts_with(|c: char| c.is_ascii_digit())
}

/// The option that a word names, and the value that hangs on it.
fn find(
    table: &[WorkloadOption],
    word: &str,
    span: &Range<usize>,
) -> Option<(usize, Option<Range<usize>>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (long, value) = match long.split_once('=') {
            Some((long, _)) => (long, Some(span.start + 2 + long.len() + 1..span.end)),
            None => (long, None),
        };
        return Some((table.iter().position(|option| option.long == long)?, value));
    }
    let short = word.strip_prefix('-')?;
    let letter = short.chars().next()?;
    let at = table.iter().position(|option| option.short == Some(letter))?;
    let rest = span.start + 1 + letter.len_utf8()..span.end;
    Some((at, (!rest.is_empty()).then_some(rest)))
}

/// The words of a text from a byte on.
fn words_of(text: &str, from: usize) -> Vec<Range<usize>> {
    let rest = &text[from..];
    rest.split_whitespace()
        .map(|word| {
            let start = from + (word.as_ptr() as usize - rest.as_ptr() as usize);
            start..start + word.len()
        })
        .collect()
}

/// A number in thousandths, or message and help.
fn number(option: &WorkloadOption, text: &str) -> Result<u64, (String, Option<String>)> {
    let OptionKind::Number { unit, min, max, decimals, .. } = option.kind else {
        unreachable!("only of numbers")
    };
    let help = Some(format!("give {} to {} {unit}", spelled(option, min), spelled(option, max)))
        .map(|help| help.trim_end().to_owned());
    let long = option.long;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    // Twelve digits fit any bound.
    let well_formed = digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty());
    if !well_formed || text.ends_with('.') {
        let negative = text.starts_with('-') && text[1..].parse::<f64>().is_ok();
        let what = if negative { "below its least value" } else { "not a number" };
        return Err((format!("\"--{long}\" is \"{text}\", {what}"), help));
    }
    if (!decimals && !part.is_empty()) || part.len() > 3 {
        let what = if decimals { "finer than a thousandth" } else { "not a whole number" };
        return Err((format!("\"--{long}\" is {text}, {what}"), help));
    }
    let value = match whole.len() {
        0..=12 => whole.parse().unwrap_or(0) * ONE + format!("{part:0<3}").parse().unwrap_or(0),
        _ => u64::MAX,
    };
    if !(min..=max).contains(&value) {
        let bounds = format!("{}..={}", spelled(option, min), spelled(option, max));
        return Err((format!("\"--{long}\" is {text}, outside {bounds}"), help));
    }
    Ok(value)
}

/// Which of the known words a list names.
fn read_words(
    source: &Arc<Source>,
    span: Range<usize>,
    option: &WorkloadOption,
    known: &[&'static str],
    faults: &mut Diagnostics,
) -> u64 {
    let mut chosen = 0;
    let mut start = span.start;
    for word in source.text[span].split(',') {
        let here = start..start + word.len();
        start = here.end + 1;
        match known.iter().position(|k| *k == word) {
            Some(at) => chosen |= 1 << at,
            None => {
                let help = did_you_mean_or(word, known.iter().copied(), || {
                    Some(format!("there are {}", known.join(", ")))
                });
                faults.push(
                    source,
                    here,
                    format!("\"--{}\" knows no \"{word}\"", option.long),
                    help,
                );
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[WorkloadOption] = &[
        WorkloadOption::count(Some('f'), "frequency", "Hz", 73, (1, 1000), "how often"),
        WorkloadOption::decimal(None, "duty", "%", 1000, (0, 100_000), "share").free(),
        WorkloadOption::words("tests", &["list_view", "edit_text"], "which tests"),
    ];

    fn check(text: &str) -> Result<String, String> {
        let source = Source::new("<command line>", text);
        read(&source, "demo".len(), "demo", TABLE)
            .map(|values| values.canonical("demo"))
            .map_err(|faults| faults.to_string())
    }

    #[test]
    fn options_are_read_in_every_spelling() {
        for (text, expected) in [
            ("demo", "demo --frequency 73 --duty 1 --tests list_view,edit_text"),
            ("demo -f 5", "demo --frequency 5 --duty 1 --tests list_view,edit_text"),
            ("demo -f5", "demo --frequency 5 --duty 1 --tests list_view,edit_text"),
            ("demo  --duty=0.25", "demo --frequency 73 --duty 0.25 --tests list_view,edit_text"),
            ("demo --duty .5", "demo --frequency 73 --duty 0.5 --tests list_view,edit_text"),
            ("demo --tests edit_text", "demo --frequency 73 --duty 1 --tests edit_text"),
        ] {
            assert_eq!(check(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn every_fault_is_told_with_its_position() {
        for (text, expected) in [
            (
                "demo -x 5 --frequency 0",
                "<command line>:1:6: workload \"demo\" has no option \"-x\"\n  help: there are \
                 --frequency, --duty, --tests\n<command line>:1:23: \"--frequency\" is 0, outside \
                 1..=1000\n  help: give 1 to 1000 Hz",
            ),
            (
                "demo --frequncy 5",
                "<command line>:1:6: workload \"demo\" has no option \"--frequncy\"\n  help: did you \
                 mean `frequency`?",
            ),
            (
                "demo 12",
                "<command line>:1:6: \"12\" belongs to no option of \"demo\"\n  help: there are \
                 --frequency, --duty, --tests",
            ),
            (
                "demo -f",
                "<command line>:1:6: \"-f\" needs a value\n  help: \"--frequency\": how often",
            ),
            ("demo -f 1 -f 2", "<command line>:1:11: \"--frequency\" is given twice"),
            (
                "demo -f 1.5 --duty 0.0001",
                "<command line>:1:9: \"--frequency\" is 1.5, not a whole number\n  help: give 1 to \
                 1000 Hz\n<command line>:1:20: \"--duty\" is 0.0001, finer than a thousandth\n  \
                 help: give 0 to 100 %",
            ),
            (
                "demo --duty -5",
                "<command line>:1:13: \"--duty\" is \"-5\", below its least value\n  help: give 0 to \
                 100 %",
            ),
            (
                "demo --tests list_view,list_vew",
                "<command line>:1:24: \"--tests\" knows no \"list_vew\"\n  help: did you mean \
                 `list_view`?",
            ),
            (
                "demo -f 99999999999999999999",
                "<command line>:1:9: \"--frequency\" is 99999999999999999999, outside 1..=1000\n  \
                 help: give 1 to 1000 Hz",
            ),
        ] {
            assert_eq!(check(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn the_table_teaches() {
        assert_eq!(
            describe(TABLE),
            "options:\n  \
             -f, --frequency  how often: 1 to 1000 Hz; 73 without it\n  \
             \u{20}   --duty       share: 0 to 100 %; 1 without it; a free parameter\n  \
             \u{20}   --tests      which tests: some of list_view,edit_text\n"
        );
    }
}
