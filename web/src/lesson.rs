// SPDX-License-Identifier: GPL-2.0-or-later
//! Lessons: a text about a rule of the kernel, with an experiment that shows it.
//!
//! A file has a head in TOML between two lines of `+++`, then Markdown. Numbers that come from runs are not written: `{{A power}}` is
//! the mean of the first kernel, `{{B-A power}}` the change of the second against it, and a word is a selector as
//! [`schedtwin_lab::selector`] reads it. What the text claims stands in `holds`, in the language of `compare --fail-if`: each of these
//! conditions has to be met.

use crate::{Playground, Request, request::Named};
use schedtwin::Comparison;
use schedtwin_lab::fail_if::Condition;
use schedtwin_lab::selector::Selector;
use schedtwin_lab::value::{change_words, mean_words, row};
use serde::Deserialize;

/// The line before and after the head.
const FENCE: &str = "+++\n";

/// A lesson as its file has it.
#[derive(Clone, Debug)]
pub struct Lesson {
    /// Its head.
    pub head: Head,
    /// Its text, Markdown with placeholders.
    pub text: String,
}

/// The head of a lesson.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The title.
    pub title: String,
    machine: String,
    kernels: Vec<String>,
    workload: String,
    seconds: f64,
    seeds: u64,
    /// The question that the reader answers by changing the experiment.
    pub question: String,
    /// The answer, with placeholders.
    pub answer: String,
    /// Conditions that its comparison meets.
    holds: Vec<String>,
}

/// A lesson with the numbers of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// Its answer.
    pub answer: String,
    /// Its text.
    pub text: String,
}

impl Lesson {
    /// Reads a file.
    ///
    /// # Errors
    /// If it has no head, or the head is not TOML of the form.
    pub fn parse(file: &str) -> Result<Lesson, String> {
        let rest = file.strip_prefix(FENCE).ok_or("a lesson begins with a line `+++`")?;
        let (head, text) =
            rest.split_once("\n+++\n").ok_or("the head of a lesson ends with a line `+++`")?;
        let head: Head = toml::from_str(head).map_err(|error| error.to_string())?;
        if head.kernels.len() < 2 || head.holds.is_empty() {
            return Err("a lesson compares two kernels, and something holds".to_string());
        }
        Ok(Lesson { head, text: text.trim_start().to_string() })
    }

    /// The experiment.
    pub fn request(&self) -> Request {
        let Head { machine, kernels, workload, seconds, seeds, .. } = &self.head;
        Request {
            machine: Named::Name(machine.clone()),
            kernels: kernels.iter().cloned().map(Named::Name).collect(),
            workload: Named::Name(workload.clone()),
            seconds: Some(*seconds),
            seeds: *seeds,
        }
    }

    /// Runs the experiment, holds it against what the lesson claims, and fills in the numbers.
    ///
    /// # Errors
    /// What is wrong with the experiment, claims that do not hold, placeholders that name no row.
    pub fn fill(&self) -> Result<Filled, String> {
        let ran = Playground::of(self.request())?;
        let comparison = ran.comparison().ok_or("there is nothing to compare")?;
        let mut faults = Vec::new();
        for text in &self.head.holds {
            let judged = Condition::parse(text).and_then(|it| it.judge(comparison.as_lab()));
            match judged {
                Ok(verdict) if verdict.failed => {}
                Ok(_) => faults.push(format!("it claims `{text}`, which does not hold")),
                Err(error) => faults.push(error.to_string()),
            }
        }
        let mut filled = |text: &str| filled(text, &comparison, &mut faults);
        let all = Filled { answer: filled(&self.head.answer), text: filled(&self.text) };
        if faults.is_empty() { Ok(all) } else { Err(faults.join("\n")) }
    }
}

/// A text with the numbers of a comparison.
fn filled(text: &str, of: &Comparison, faults: &mut Vec<String>) -> String {
    let mut pieces = text.split("{{");
    let mut whole = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let Some((placeholder, after)) = piece.split_once("}}") else {
            faults.push(format!("the placeholder before `{piece}` does not end"));
            continue;
        };
        match number(placeholder, of) {
            Ok(words) => whole.push_str(&words),
            Err(fault) => faults.push(format!("`{placeholder}`: {fault}")),
        }
        whole.push_str(after);
    }
    whole
}

/// The words of a placeholder: `A power`, `B-A power`.
fn number(placeholder: &str, of: &Comparison) -> Result<String, String> {
    let (who, what) = placeholder.split_once(' ').ok_or("it has a letter and a metric")?;
    let mut selectors = Selector::parse_list(what).map_err(|error| error.to_string())?;
    let (Some(selector), true) = (selectors.pop(), selectors.is_empty()) else {
        return Err("it names one metric".to_string());
    };
    let row = row(of.as_lab(), &selector).map_err(|error| error.to_string())?;
    let words = match who.as_bytes() {
        [kernel] => mean_words(row, place(*kernel)),
        [kernel, b'-', b'A'] => change_words(row, place(*kernel)),
        _ => return Err("kernels are A, B, C; a change is B-A or C-A".to_string()),
    };
    words.ok_or_else(|| "it has no value".to_string())
}

fn place(letter: u8) -> usize {
    usize::from(letter.wrapping_sub(b'A'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    const FILE: &str = r#"+++
title = "Ticks"
machine = "uniform8"
kernels = ["linux-6.12", "linux-6.12:hz=1000"]
workload = "w1"
seconds = 0.2
seeds = 2
question = "How many?"
answer = "{{B-A ticks}}"
holds = ["ticks>+5%"]
+++

There are {{A ticks}} of {{B ticks}}.
"#;

    #[test]
    fn numbers_come_from_runs() {
        let filled = Lesson::parse(FILE).expect("a lesson").fill().expect("it holds");
        assert!(filled.answer.starts_with('+') && filled.answer.ends_with(" %"), "{filled:?}");
        assert!(!filled.text.contains("{{") && filled.text.starts_with("There are "), "{filled:?}");
    }

    #[test]
    fn a_false_claim_and_an_unknown_number_are_faults() {
        let wrong = FILE.replace("ticks>+5%", "ticks<-5%").replace("B-A ticks", "D ticks");
        let faults = Lesson::parse(&wrong).expect("a lesson").fill().expect_err("it is wrong");
        assert!(faults.contains("does not hold") && faults.contains("no value"), "{faults}");
        assert!(Lesson::parse("# Title").is_err());
    }

    /// What the lessons say is so: their claims hold, and every number is there.
    #[test]
    fn lessons_hold() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lessons");
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("the folder of lessons")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
            .collect();
        names.sort();
        assert!(names.len() >= 10, "ten lessons: {names:?}");
        for path in names {
            let text = fs::read_to_string(&path).expect("a text");
            let lesson = Lesson::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            lesson.fill().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
}
