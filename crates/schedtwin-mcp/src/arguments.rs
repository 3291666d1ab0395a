// SPDX-License-Identifier: GPL-2.0-or-later
//! Arguments of tools: declared once, read with all faults at once.

use rmcp::model::JsonObject;
use schedtwin_input::did_you_mean;
use serde_json::{Value, json};

use crate::folder;

/// The form of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// A text.
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A whole number in a range.
    Whole(u64, u64),
    /// A number.
    Number,
    /// A list of texts.
    Texts,
    /// A machine, a kernel or a workload: a spelling, or the content of a file under a name.
    Given,
    /// A list of these.
    GivenList,
}

/// An argument.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its form.
    pub form: Form,
    /// Whether it must be there.
    pub required: bool,
    /// What it is, for the model.
    pub help: &'static str,
}

/// An argument that may be left out.
pub const fn optional(name: &'static str, form: Form, help: &'static str) -> Field {
    Field { name, form, required: false, help }
}

/// An argument that must be there.
pub const fn required(name: &'static str, form: Form, help: &'static str) -> Field {
    Field { name, form, required: true, help }
}

/// An input as a client gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A spelling.
    Named(String),
    /// The content of a file under a name.
    Text(String, String),
}

impl Form {
    fn schema(self) -> Value {
        let given = json!({"anyOf": [
            {"type": "string"},
            {"type": "object", "properties": {"name": {"type": "string"}, "text": {"type": "string"}},
             "required": ["name", "text"]},
        ]});
        match self {
            Form::Text => json!({"type": "string"}),
            Form::OneOf(words) => json!({"type": "string", "enum": words}),
            Form::Whole(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Form::Number => json!({"type": "number"}),
            Form::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Form::Given => given,
            Form::GivenList => json!({"type": "array", "items": given, "minItems": 1}),
        }
    }

    /// What is wrong with a value.
    fn fault(self, value: &Value) -> Option<String> {
        let fine = match self {
            Form::Text => value.is_string(),
            Form::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Form::Whole(least, most) => {
                value.as_u64().is_some_and(|number| (least..=most).contains(&number))
            }
            Form::Number => value.as_f64().is_some_and(f64::is_finite),
            Form::Texts => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            Form::Given => input(value).is_some(),
            Form::GivenList => value
                .as_array()
                .is_some_and(|all| !all.is_empty() && all.iter().all(|one| input(one).is_some())),
        };
        let wanted = match self {
            Form::Text => "a text".to_string(),
            Form::OneOf(words) => format!("one of {}", words.join(", ")),
            Form::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Form::Number => "a number".to_string(),
            Form::Texts => "a list of texts".to_string(),
            Form::Given => {
                "a text, or {\"name\": ..., \"text\": the content of a file}".to_string()
            }
            Form::GivenList => "a list of texts, with at least one".to_string(),
        };
        (!fine).then(|| format!("expected {wanted}, found {value}"))
    }
}

fn input(value: &Value) -> Option<Input> {
    match value {
        Value::String(name) => Some(Input::Named(name.clone())),
        Value::Object(parts) if parts.len() == 2 => {
            let part = |key: &str| parts.get(key)?.as_str().map(String::from);
            Some(Input::Text(part("name")?, part("text")?))
        }
        _ => None,
    }
}

/// The schema of a tool's arguments.
pub fn schema(fields: &[Field]) -> JsonObject {
    let property = |field: &Field| {
        let mut schema = field.form.schema();
        schema["description"] = json!(field.help);
        (field.name.to_string(), schema)
    };
    let required: Vec<&str> = fields.iter().filter(|f| f.required).map(|f| f.name).collect();
    let properties: JsonObject = fields.iter().map(property).collect();
    let schema = json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    });
    match schema {
        Value::Object(schema) => schema,
        _ => unreachable!("it was written as an object"),
    }
}

/// The arguments of a call, checked.
#[derive(Clone, Debug, Default)]
pub struct Arguments(JsonObject);

impl Arguments {
    /// Checks them; every fault a line, each with what would be right.
    pub fn read(
        fields: &[Field],
        given: JsonObject,
        has_folder: bool,
    ) -> Result<Arguments, String> {
        let mut faults = Vec::new();
        for name in given.keys() {
            if !fields.iter().any(|field| field.name == name) {
                let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
                let help = match did_you_mean(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", names.join(", ")),
                };
                faults.push(format!("there is no argument `{name}`: {help}"));
            }
        }
        for field in fields {
            match given.get(field.name).filter(|value| !value.is_null()) {
                None if field.required => {
                    faults.push(format!("`{}` is missing: {}", field.name, field.help));
                }
                None => {}
                Some(value) => {
                    faults.extend(
                        field.form.fault(value).map(|fault| format!("`{}`: {fault}", field.name)),
                    );
                    if matches!(field.form, Form::Given | Form::GivenList) || field.name == "suite"
                    {
                        let texts = texts_of(value).into_iter();
                        let refused =
                            texts.filter_map(|t| folder::check_text(&t, has_folder).err());
                        faults.extend(refused.map(|why| format!("`{}`: {why}", field.name)));
                        let names = names_of(value).into_iter();
                        let refused =
                            names.filter_map(|name| folder::check(&name, has_folder).err());
                        faults.extend(refused.map(|why| format!("`{}`: {why}", field.name)));
                    }
                }
            }
        }
        if faults.is_empty() { Ok(Arguments(given)) } else { Err(faults.join("\n")) }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_str()
    }

    /// A whole number.
    pub fn whole(&self, name: &str) -> Option<u64> {
        self.value(name)?.as_u64()
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.value(name)?.as_f64()
    }

    /// A list of texts; empty if it is left out.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let all = self.value(name).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).map(String::from).collect()
    }

    /// An input.
    pub fn input(&self, name: &str) -> Option<Input> {
        input(self.value(name)?)
    }

    /// A list of inputs.
    pub fn inputs(&self, name: &str) -> Vec<Input> {
        let all = self.value(name).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(input).collect()
    }
}

/// The spellings in a value: those that may name files.
fn names_of(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().flat_map(names_of).collect(),
        other => match input(other) {
            Some(Input::Named(name)) => vec![name],
            _ => Vec::new(),
        },
    }
}

/// The texts in a value.
fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().flat_map(texts_of).collect(),
        other => match input(other) {
            Some(Input::Text(_, text)) => vec![text],
            _ => Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_come_at_once_and_say_what_would_be_right() {
        let fields = [
            required("machine", Form::Given, "the machine"),
            optional("seeds", Form::Whole(1, 100), "runs"),
            optional("kind", Form::OneOf(&["a", "b"]), "the kind"),
        ];
        let given = json!({"machnie": "pixel6", "seeds": 0, "kind": "c"});
        let Value::Object(given) = given else { unreachable!() };
        let faults = Arguments::read(&fields, given, false).unwrap_err();
        assert_eq!(
            faults,
            "there is no argument `machnie`: did you mean `machine`?\n`machine` is missing: the machine\n`seeds`: \
             expected a whole number from 1 to 100, found 0\n`kind`: expected one of a, b, found \"c\""
        );
        let Value::Object(given) = json!({"machine": "/etc/passwd"}) else { unreachable!() };
        assert!(Arguments::read(&fields, given, false).unwrap_err().contains("--folder"));
    }
}
