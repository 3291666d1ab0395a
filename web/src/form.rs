// SPDX-License-Identifier: GPL-2.0-or-later
//! What of a machine and of a workload a form lets a user change.

use crate::request::Named;
use schedtwin_engine::{FieldKind, MachineSetting, Spelled, WorkloadForm, machine_settings};
use serde_json::{Value, json};

/// The settings of a machine, as [`crate::catalogue`] has those of kernels.
pub(crate) fn settings(machine: &str) -> Result<Value, String> {
    let settings = machine_settings(machine).map_err(|faults| faults.to_string())?;
    let told = |MachineSetting { path, value, about, words }: MachineSetting| {
        let mut told = json!({ "path": path, "help": about, "value": value });
        if !words.is_empty() {
            told["arms"] = words.iter().map(|word| json!([word, ""])).collect();
        }
        told
    };
    Ok(settings.into_iter().map(told).collect())
}

/// A workload's form.
pub(crate) struct Form(WorkloadForm);

impl Form {
    /// The form of a workload, given as JSON.
    pub(crate) fn of(workload: &str) -> Result<Form, String> {
        let named: Named = serde_json::from_str(workload).map_err(|error| error.to_string())?;
        let form = match named {
            Named::Name(spec) => WorkloadForm::of_words(&spec),
            Named::Text { name, text } => WorkloadForm::of_file(&name, &text),
        };
        form.map(Form).map_err(|faults| faults.to_string())
    }

    /// Its fields.
    pub(crate) fn fields(&self) -> Value {
        let told = self.0.fields.iter().map(|field| {
            let mut told = json!({
                "of": field.of,
                "name": field.name,
                "help": field.help,
                "value": field.value,
                "default": field.default,
                "number": field.kind == FieldKind::Number,
            });
            if field.kind == FieldKind::Switch {
                told["arms"] = json!([["no", ""], ["yes", ""]]);
            }
            told
        });
        told.collect()
    }

    /// The workload with another value of a field.
    pub(crate) fn with(&self, field: usize, value: &str) -> Result<Named, String> {
        Ok(match self.0.with(field, value)?.spelled {
            Spelled::Words(spec) => Named::Name(spec),
            Spelled::File { name, text } => Named::Text { name, text },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_changes_the_workload_of_a_request() {
        let form = Form::of("\"periodic -f 60\"").expect("a workload");
        let fields = form.fields();
        assert_eq!((&fields[0]["name"], &fields[0]["value"]), (&json!("frequency"), &json!("60")));
        assert_eq!(form.with(0, "50").expect("in bounds"), Named::from("periodic -f 50"));
        let Named::Text { name, text } = Form::of("\"w1\"").unwrap().with(0, "3").unwrap() else {
            panic!("a file has a text");
        };
        assert!(name == "my-w1.json" && text.contains("\"instance\": 3"));
        assert!(Form::of("\"periodik\"").is_err_and(|fault| fault.contains("did you mean")));
    }

    #[test]
    fn settings_of_a_machine_are_told_as_those_of_kernels() {
        let all = settings("pixel6:coupling=false").expect("a machine");
        let all = all.as_array().expect("a list");
        let coupling = all.iter().find(|one| one["path"] == "coupling").expect("it has it");
        assert_eq!(
            (&coupling["value"], &coupling["arms"][0][0]),
            (&json!("false"), &json!("true"))
        );
    }
}
