// SPDX-License-Identifier: GPL-2.0-or-later
//! The schema of kernel files, made from the declarations of their settings: for editors that complete and check
//! TOML by a JSON Schema.
//!
//! It says what a file may say: keys, words, ranges, and what belongs to which arm. A file that extends another one
//! need not name what it inherits, and what it inherits is not known here: of such a file the schema judges what it
//! says, and `schedtwin check` the whole. That one number must not exceed
//! another cannot be said there; `schedtwin check` says it. Draft 7 is what editors of TOML understand.

use schedtwin_engine::kernel_file::{Arm, Kind, Setting, Value, With, setting, settings};
use serde_json::{Map, Value as Json, json};

/// The schema, as `schemas/schedtwin.kernel.schema.json` has it.
pub fn text() -> String {
    let mut root = Map::new();
    root.insert("name".into(), json!({ "type": "string", "description": "Its name." }));
    root.insert(
        "description".into(),
        json!({ "type": "string", "description": "One line about it." }),
    );
    let captured = "false: `capture` gives a device the next release instead.";
    root.insert("captured".into(), json!({ "type": "boolean", "description": captured }));
    let extends = "The kernel from which the file differs: a built-in one, or a path from this file's folder.";
    root.insert("extends".into(), json!({ "type": "string", "description": extends }));
    let (mut required, mut named_in) = (Vec::new(), Map::new());
    let mut tables: Vec<&str> = Vec::new();
    for setting in settings() {
        let (table, key) = setting.table_and_key();
        if table.is_empty() {
            root.insert(key.into(), property(setting));
            if is_required(setting) {
                required.push(key);
            }
        } else if !tables.contains(&table) {
            tables.push(table);
        }
    }
    for table in tables {
        let own: Vec<&Setting> = of_table(table).collect();
        let named: Vec<&str> =
            own.iter().filter(|s| is_required(s)).map(|s| s.table_and_key().1).collect();
        if !named.is_empty() {
            required.push(table);
            named_in.insert(table.into(), json!({ "required": named }));
        }
        let properties: Map<String, Json> =
            own.iter().map(|s| (s.table_and_key().1.to_string(), property(s))).collect();
        root.insert(table.into(), object(properties, &[]));
    }
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("http://json-schema.org/draft-07/schema#"));
    schema.insert("$id".into(), json!("urn:schedtwin:schedtwin.kernel"));
    schema.insert("title".into(), json!("A kernel file of schedtwin"));
    let Json::Object(mut body) = object(root, &["name", "description"]) else {
        unreachable!("an object")
    };
    schema.append(&mut body);
    let mut whole = vec![json!({ "required": required, "properties": named_in })];
    whole.extend(conditions(existence, company));
    let inheriting = conditions(existence_if_named, company_if_named);
    schema.insert("if".into(), json!({ "required": ["extends"] }));
    schema.insert("then".into(), json!({ "allOf": inheriting }));
    schema.insert("else".into(), json!({ "allOf": whole }));
    let mut text = serde_json::to_string_pretty(&schema).expect("JSON");
    text.push('\n');
    text
}

fn of_table(table: &str) -> impl Iterator<Item = &'static Setting> {
    settings().iter().filter(move |setting| setting.table_and_key().0 == table)
}

/// Every file names it.
fn is_required(setting: &Setting) -> bool {
    setting.default_if_absent.is_none() && setting.only.is_none()
}

fn object(properties: Map<String, Json>, required: &[&str]) -> Json {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Integer(number) => json!(number),
        Value::Switch(on) => json!(on),
    }
}

/// Returns the schema of one setting: the values that it may have.
fn property(setting: &Setting) -> Json {
    let mut schema = Map::new();
    let known = format!("{}\n\nLinux: {}", setting.help, setting.known_by);
    schema.insert("description".into(), json!(known));
    let mut add = |key: &str, value: Json| schema.insert(key.to_string(), value);
    match &setting.kind {
        Kind::Switch => {
            add("type", json!("boolean"));
        }
        Kind::Names => {
            add("type", json!("string"));
            add("pattern", json!("^[^/]*[^/ ][^/]*(/[^/]*[^/ ][^/]*)*$"));
        }
        Kind::Choice { arms, .. } => {
            let words: Vec<&str> = arms.iter().map(|arm| arm.word).collect();
            let docs: Vec<String> =
                arms.iter().map(|arm| format!("{} ({})", arm.means, arm.releases)).collect();
            add("enum", json!(words));
            add("x-taplo", json!({ "docs": { "enumValues": docs } }));
        }
        Kind::Integer { min, max, none, .. } => {
            let number = json!({ "type": "integer", "minimum": min, "maximum": max });
            let digits = json!({ "type": "string", "pattern": "^[0-9]+$" });
            match none {
                None => {
                    add("type", json!("integer"));
                    add("minimum", json!(min));
                    add("maximum", json!(max));
                }
                Some((none @ Value::Text(_), _)) => {
                    add("anyOf", json!([{ "const": json_of(none) }, digits, number]));
                }
                Some((none, _)) => {
                    add("anyOf", json!([{ "const": json_of(none) }, number]));
                }
            }
        }
    }
    if let Some(default_if_absent) = &setting.default_if_absent {
        schema.insert("default".into(), json_of(default_if_absent));
    }
    Json::Object(schema)
}

/// Returns the conditions on which settings exist or do not, and with which arms.
fn conditions(
    existence: impl Fn(&With) -> Json,
    company: impl Fn(&Setting, &Arm, &With) -> Json,
) -> Vec<Json> {
    let mut groups: Vec<&With> = Vec::new();
    for only in settings().iter().filter_map(|setting| setting.only.as_ref()) {
        if !groups.contains(&only) {
            groups.push(only);
        }
    }
    let mut all: Vec<Json> = groups.into_iter().map(existence).collect();
    for setting in settings() {
        let Kind::Choice { arms, .. } = &setting.kind else { continue };
        all.extend(arms.iter().filter_map(|arm| Some(company(setting, arm, arm.only.as_ref()?))));
    }
    all
}

/// Whether the file chooses one of the arms; a file that does not name the point counts as its declaration says.
fn chooses(with: &With) -> Json {
    let point = setting(with.path).expect("declared");
    let holds = json!({ with.path: { "enum": with.words } });
    match &point.default_if_absent {
        Some(default_if_absent) if with.allows(default_if_absent) => json!({ "properties": holds }),
        _ => json!({ "properties": holds, "required": [with.path] }),
    }
}

/// The settings that exist with some arms only.
fn existence(with: &With) -> Json {
    let (mut required, mut present, mut absent) = (Vec::new(), Map::new(), Map::new());
    let mut tables: Vec<&str> = Vec::new();
    for setting in settings().iter().filter(|setting| setting.only.as_ref() == Some(with)) {
        let (table, key) = setting.table_and_key();
        if !table.is_empty() {
            if !tables.contains(&table) {
                tables.push(table);
            }
            continue;
        }
        absent.insert(key.into(), json!(false));
        if setting.default_if_absent.is_none() {
            required.push(key);
        }
    }
    for table in tables {
        let (ours, others): (Vec<_>, Vec<_>) =
            of_table(table).partition(|setting| setting.only.as_ref() == Some(with));
        let keys = |of: &[&Setting]| of.iter().map(|s| s.table_and_key().1).collect::<Vec<_>>();
        let named: Vec<&Setting> =
            ours.iter().copied().filter(|s| s.default_if_absent.is_none()).collect();
        if !named.is_empty() {
            required.push(table);
            present.insert(table.into(), json!({ "required": keys(&named) }));
        }
        let none: Map<String, Json> =
            keys(&ours).into_iter().map(|key| (key.to_string(), json!(false))).collect();
        let without = if others.is_empty() { json!(false) } else { json!({ "properties": none }) };
        absent.insert(table.into(), without);
    }
    json!({
        "if": chooses(with),
        "then": { "required": required, "properties": present },
        "else": { "properties": absent },
    })
}

/// Of a file that extends another one: what a point that the file names itself excludes.
fn existence_if_named(with: &With) -> Json {
    let condition = existence(with);
    json!({ "if": { "properties": { with.path: { "enum": with.words } } }, "else": condition["else"] })
}

/// An arm that needs the arm of another point.
fn company(setting: &Setting, arm: &Arm, only: &With) -> Json {
    let this = With { path: setting.path, words: vec![arm.word] };
    json!({ "if": chooses(&this), "then": { "properties": { only.path: { "enum": only.words } } } })
}

/// The same of a file that extends another one: only an arm that the file names itself needs another.
fn company_if_named(setting: &Setting, arm: &Arm, only: &With) -> Json {
    let this = json!({ "properties": { setting.path: { "enum": [arm.word] } }, "required": [setting.path] });
    json!({ "if": this, "then": { "properties": { only.path: { "enum": only.words } } } })
}
