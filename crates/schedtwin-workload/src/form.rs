// SPDX-License-Identifier: GPL-2.0-or-later
//! A workload as a form shows it: fields that users change without knowing rt-app's language or the words of a command line.
//!
//! The fields are what the readers found, so they have the names, units and defaults of the readers' tables. Changing one
//! changes the text at its place, and the text is read again; all else in it stays, comments too.
//!
//! ```
//! use schedtwin_workload::{Spelled, WorkloadForm};
//! let form = WorkloadForm::of_words("messaging -g 4").unwrap();
//! let at = form.fields.iter().position(|field| field.name == "group").unwrap();
//! assert_eq!(form.fields[at].value.as_deref(), Some("4"));
//! let more = form.with(at, "8").unwrap();
//! assert_eq!(more.spelled, Spelled::Words("messaging -g 8".to_string()));
//! // A built-in rt-app file becomes a file of the user's.
//! let form = WorkloadForm::of_words("w1").unwrap();
//! let at = form.fields.iter().position(|field| field.name == "util_max").unwrap();
//! let Spelled::File { name, text } = form.with(at, "300").unwrap().spelled else { panic!() };
//! assert!(name == "my-w1.json" && text.contains("{ \"util_max\": 300,"), "{text}");
//! ```

use crate::builtin::{Builtin, builtin};
use crate::rtapp::numbers;
use crate::workload::system_of;
use crate::{Workload, jobs};
use schedtwin_input::{Diagnostics, Source};
use std::ops::Range;

/// A workload with the fields that stand in its text.
#[derive(Clone, Debug)]
pub struct WorkloadForm {
    /// The workload.
    pub spelled: Spelled,
    /// Its fields, those of one task or job together. A change of a value moves none of them.
    pub fields: Vec<Field>,
}

/// The spelling of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spelled {
    /// As on the command line: a name with options, or jobs.
    Words(String),
    /// The content of an rt-app file.
    File {
        /// Its name.
        name: String,
        /// Its content.
        text: String,
    },
}

/// A value of a workload.
#[derive(Clone, Debug)]
pub struct Field {
    /// The task, the job or the workload that it belongs to.
    pub of: String,
    /// Its name: an option, or the key of a file within its phase and event.
    pub name: String,
    /// Its meaning and what it may be.
    pub help: String,
    /// The value; `None`: it is not given.
    pub value: Option<String>,
    /// The value that counts if none is given.
    pub default: Option<String>,
    /// The kind of value that it has.
    pub kind: FieldKind,
    pub(crate) place: Place,
}

/// The kind of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number.
    Number,
    /// Words without spaces.
    Text,
    /// `yes` or `no`.
    Switch,
}

/// Where a value stands, or is put in: at an empty span with what belongs around it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub span: Range<usize>,
    pub before: String,
    pub after: &'static str,
}

impl WorkloadForm {
    /// The form of what the command line names. A built-in rt-app file, named alone, is its content under a name of the
    /// user's.
    ///
    /// # Errors
    /// What is wrong with the workload.
    pub fn of_words(spec: &str) -> Result<WorkloadForm, Diagnostics> {
        if let Some(Builtin::RtApp(file)) = builtin(spec.trim()) {
            let name = file.name.rsplit('/').next().unwrap_or(file.name);
            let name = format!("my-{}.json", name.trim_end_matches(".json"));
            return WorkloadForm::of_file(&name, file.text);
        }
        Workload::from_path_or_name(spec)?;
        let rest = system_of(spec)?.map_or_else(|| spec.to_owned(), |(_, rest)| rest);
        let fields = jobs::fields(&rest)?;
        Ok(WorkloadForm { spelled: Spelled::Words(spec.to_owned()), fields })
    }

    /// The form of an rt-app file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_file(name: &str, text: &str) -> Result<WorkloadForm, Diagnostics> {
        let source = Source::new(name, text);
        Workload::parse_rtapp(source.clone())?;
        let fields = numbers::fields(&source)?;
        let spelled = Spelled::File { name: name.to_owned(), text: text.to_owned() };
        Ok(WorkloadForm { spelled, fields })
    }

    /// The form with another value of the field with this number.
    ///
    /// # Errors
    /// If the workload cannot have this value.
    pub fn with(&self, field: usize, value: &str) -> Result<WorkloadForm, String> {
        let Some(field) = self.fields.get(field) else { return Err("no such field".to_owned()) };
        let (value, name) = (value.trim(), &field.name);
        let is_word = !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '&');
        if !is_word || field.kind == FieldKind::Number && value.parse::<f64>().is_err() {
            return Err(format!("`{name}` needs a value that is no `{value}`"));
        }
        let mut changed = self.spelled.clone();
        let (Spelled::Words(text) | Spelled::File { text, .. }) = &mut changed;
        let Place { span, before, after } = &field.place;
        match field.kind {
            FieldKind::Switch => {
                let flag = if value == "yes" { format!(" --{name}") } else { String::new() };
                let end = text[..span.start].trim_end().len();
                text.replace_range(end..span.end, &flag);
            }
            _ => text.replace_range(span.clone(), &format!("{before}{value}{after}")),
        }
        let again = match &changed {
            Spelled::Words(spec) => WorkloadForm::of_words(spec),
            Spelled::File { name, text } => WorkloadForm::of_file(name, text),
        };
        again.map_err(|faults| faults.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(form: &WorkloadForm, of: &str, name: &str) -> usize {
        let is = |field: &Field| field.of == of && field.name == name;
        form.fields.iter().position(is).unwrap_or_else(|| panic!("no {of} {name}: {form:?}"))
    }

    fn words(spec: &str, of: &str, name: &str, value: &str) -> String {
        let form = WorkloadForm::of_words(spec).unwrap();
        match form.with(at(&form, of, name), value).unwrap().spelled {
            Spelled::Words(spec) => spec,
            file => panic!("{file:?}"),
        }
    }

    #[test]
    fn words_of_options_and_of_jobs_are_changed_where_they_stand() {
        assert_eq!(words("periodic -f60", "periodic", "frequency", "50"), "periodic -f50");
        assert_eq!(
            words("periodic --system server-linux", "periodic", "threads", "3")
                .split_whitespace()
                .collect::<Vec<_>>(),
            ["periodic", "--threads", "3", "--system", "server-linux"]
        );
        let jobs = "cgroup=/bg cpu.uclamp.max=10 periodic -f 20 & periodic";
        assert_eq!(
            words(jobs, "1: periodic", "cpu.uclamp.max", "max"),
            "cgroup=/bg cpu.uclamp.max=max periodic -f 20 & periodic"
        );
        assert_eq!(words(jobs, "2: periodic", "threads", "2"), format!("{jobs} --threads 2"));
    }

    #[test]
    fn flags_come_and_go() {
        let options = crate::builtin_names().into_iter().find_map(|(name, _)| {
            let flag = |option: &&crate::WorkloadOption| option.kind == crate::OptionKind::Flag;
            let option = crate::builtin_options(name)?.iter().find(flag)?;
            Some((name, option.long))
        });
        let (name, flag) = options.expect("a workload with a flag");
        let with = words(name, name, flag, "yes");
        assert_eq!(with, format!("{name} --{flag}"));
        assert_eq!(words(&with, name, flag, "no"), name);
    }

    #[test]
    fn numbers_of_files_are_changed_where_they_stand() {
        let text = r#"{ "tasks": { /* mine */ "ui": { "priority": -5, "phases": {
            "a": { "run": 10, "timer": { "ref": "t", "period": 16000 }, "run": 20 } } } } }"#;
        let form = WorkloadForm::of_file("a.json", text).unwrap();
        let names: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
        let expected = [
            "instance",
            "priority",
            "util_min",
            "util_max",
            "a/run",
            "a/timer.period",
            "a/run (2)",
        ];
        assert_eq!(names, expected);
        let second = at(&form, "ui", "a/run (2)");
        let changed = form.with(second, "30").unwrap().with(0, "4").unwrap();
        let Spelled::File { text: changed, .. } = &changed.spelled else { panic!() };
        let expected = text.replace("\"run\": 20", "\"run\": 30");
        assert_eq!(*changed, expected.replace("\"ui\": {", "\"ui\": { \"instance\": 4,"));
        let fault = form.with(at(&form, "ui", "util_min"), "2000").unwrap_err();
        assert!(fault.contains("outside -1..=1024"), "{fault}");
        assert!(form.with(0, "4, \"x\": 5").is_err() && form.with(99, "1").is_err());
    }

    #[test]
    fn every_built_in_has_a_form() {
        for (name, _) in crate::builtin_names() {
            WorkloadForm::of_words(name).unwrap_or_else(|faults| panic!("{name}: {faults}"));
        }
    }
}
