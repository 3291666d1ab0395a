// SPDX-License-Identifier: GPL-2.0-or-later
//! The schema of machine files, made from the declarations of their keys: for editors that complete and check TOML by a JSON
//! Schema.
//!
//! It says what a file may say: tables, keys, words, ranges, and what must be there. What one value may be given another, and that
//! names exist, cannot be said there; `schedtwin check` says it. Draft 7 is what editors of TOML understand.

use schedtwin_engine::machine_keys::{Key, Kind, Need, Table, tables};
use serde_json::{Map, Value as Json, json};

/// Tables that must be there, by the table that they are in.
const REQUIRED: [(&str, &str); 4] =
    [("", "core"), ("", "cpu"), ("", "domain"), ("domain.*", "opp")];

/// Those that must be there unless a core has a class.
const WITHOUT_CLASS: [(&str, &str); 4] =
    [("", "interrupts"), ("", "path_costs"), ("", "topologies"), ("core.*", "idle")];

/// How a table stands in another one.
enum Shape {
    /// `[a]`
    One,
    /// `[a.NAME]`
    Named,
    /// `[[a]]`, at least one where it must be there.
    List,
    /// `[a.NAME.NAME]`, with anything in it.
    Free,
}

/// The schema, as `schemas/schedtwin.machine.schema.json` has it.
pub fn text() -> String {
    let tables = tables();
    let Json::Object(mut body) = object(&tables[0], &tables) else { unreachable!("an object") };
    // The names of choices are keys at the top, whose values are text.
    let known: Vec<&String> = body["properties"].as_object().expect("an object").keys().collect();
    let no_choices = json!({
        "if": { "not": { "required": ["choices"] } },
        "then": { "propertyNames": { "enum": known } },
    });
    body.insert("additionalProperties".into(), json!({ "type": "string" }));
    let classless = json!({ "properties": { "core": { "additionalProperties": { "not": { "required": ["class"] } } } } });
    let all = without_class(&tables[0], &tables).expect("a file without a class says more");
    let no_class = json!({ "if": classless, "then": all });
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("http://json-schema.org/draft-07/schema#"));
    schema.insert("$id".into(), json!("urn:schedtwin:schedtwin.machine"));
    schema.insert("title".into(), json!("A machine file of schedtwin"));
    schema.append(&mut body);
    schema.insert("allOf".into(), json!([no_choices, no_class]));
    let mut text = serde_json::to_string_pretty(&schema).expect("JSON");
    text.push('\n');
    text
}

/// The tables within one, each with its key.
fn children<'t>(table: &Table, tables: &'t [Table]) -> Vec<(&'t str, Shape, &'t Table)> {
    let within = |child: &'t Table| {
        let rest = match table.path {
            "" => child.path,
            path => child.path.strip_prefix(path)?.strip_prefix('.')?,
        };
        let (key, shape) = if let Some(key) = rest.strip_suffix("[]") {
            (key, Shape::List)
        } else if let Some(key) = rest.strip_suffix(".*.*") {
            (key, Shape::Free)
        } else if let Some(key) = rest.strip_suffix(".*") {
            (key, Shape::Named)
        } else {
            (rest, Shape::One)
        };
        (!key.is_empty() && !key.contains(['.', '['])).then_some((key, shape, child))
    };
    tables.iter().filter_map(within).collect()
}

/// Returns the schema of a table: the keys that it may have.
fn object(table: &Table, tables: &[Table]) -> Json {
    let mut properties: Map<String, Json> =
        table.keys.iter().map(|key| (key.name.to_string(), property(key))).collect();
    let of = |need: Need| table.keys.iter().filter(move |key| key.need == need).map(|key| key.name);
    let mut required: Vec<&str> = of(Need::Always).collect();
    for (key, shape, child) in children(table, tables) {
        let must = REQUIRED.contains(&(table.path, key));
        required.extend(must.then_some(key));
        let at_least = u8::from(must || WITHOUT_CLASS.contains(&(table.path, key)));
        let within = match shape {
            Shape::One => object(child, tables),
            Shape::Named => {
                json!({ "type": "object", "additionalProperties": object(child, tables) })
            }
            Shape::List => {
                json!({ "type": "array", "items": object(child, tables), "minItems": at_least })
            }
            Shape::Free => {
                let free =
                    json!({ "type": "object", "additionalProperties": { "type": "object" } });
                json!({ "type": "object", "additionalProperties": free })
            }
        };
        let Json::Object(mut within) = within else { unreachable!("an object") };
        within.insert("description".into(), json!(child.help));
        properties.insert(key.into(), Json::Object(within));
    }
    let mut object = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let unless = table.keys.iter().filter_map(|key| match key.need {
        Need::Unless(other) => {
            Some(json!({ "anyOf": [{ "required": [other] }, { "required": [key.name] }] }))
        }
        _ => None,
    });
    let unless: Vec<Json> = unless.collect();
    if !unless.is_empty() {
        object["allOf"] = json!(unless);
    }
    object
}

/// Returns the keys that must exist besides if no core has a class; `None`: nothing.
fn without_class(table: &Table, tables: &[Table]) -> Option<Json> {
    let needs = table.keys.iter().filter(|key| key.need == Need::WithoutClass);
    let mut required: Vec<&str> = needs.map(|key| key.name).collect();
    let mut properties = Map::new();
    for (key, shape, child) in children(table, tables) {
        required.extend(WITHOUT_CLASS.contains(&(table.path, key)).then_some(key));
        let Some(within) = without_class(child, tables) else { continue };
        let within = match shape {
            Shape::One | Shape::Free => within,
            Shape::Named => json!({ "additionalProperties": within }),
            Shape::List => json!({ "items": within }),
        };
        properties.insert(key.into(), within);
    }
    let nothing = required.is_empty() && properties.is_empty();
    (!nothing).then(|| json!({ "required": required, "properties": properties }))
}

/// Returns the schema of a key: the values that it may have.
fn property(key: &Key) -> Json {
    let Json::Object(mut schema) = kind(&key.kind) else { unreachable!("an object") };
    let unit = key.unit.map_or(String::new(), |unit| format!(" [{unit}]"));
    schema.insert("description".into(), json!(format!("{}{unit}", key.help)));
    Json::Object(schema)
}

fn kind(kind_of: &Kind) -> Json {
    match kind_of {
        Kind::Text => json!({ "type": "string" }),
        Kind::Words(words) => json!({ "enum": words }),
        Kind::Cpus => json!({ "type": "string", "pattern": "^[0-9, -]*[0-9][0-9, -]*$" }),
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::List(of) => json!({ "type": "array", "items": kind(of) }),
        Kind::Map(least, most) => {
            let number = kind(&Kind::Whole(*least, *most));
            json!({ "type": "object", "additionalProperties": number })
        }
    }
}
