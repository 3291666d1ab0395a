//! Turns a TOML document into a type by serde.
//!
//! Shorter to use than the `reader` (a `#[derive(Deserialize)]` with `deny_unknown_fields` is
//! enough), at the price that serde stops at the first fault. That fault has its place, in the file
//! or on the command line, and unknown words get the nearest known one.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};

use crate::suggest::help_for;
use crate::{Diagnostics, Entry, Location, Node, TomlDocument, Value};

impl TomlDocument {
    /// The document as a `T`.
    ///
    /// ```
    /// use schedtwin_input::{Source, TomlDocument};
    /// #[derive(serde::Deserialize, Debug)]
    /// #[serde(deny_unknown_fields)]
    /// struct Config { hz: u32, cpufreq: Governor }
    /// #[derive(serde::Deserialize, Debug)]
    /// #[serde(rename_all = "lowercase")]
    /// enum Governor { Schedutil, Performance }
    /// let source = Source::new("k.toml", "hz = 250\ncpufreq = \"shedutil\"\n");
    /// let faults = TomlDocument::parse(&source).unwrap().into_typed::<Config>().unwrap_err();
    /// assert_eq!(
    ///     faults.to_string(),
    ///     "k.toml:2:11: `shedutil` is not known here\n  help: did you mean `schedutil`?"
    /// );
    /// ```
    pub fn into_typed<T: DeserializeOwned>(&self) -> Result<T, Diagnostics> {
        T::deserialize(NodeDeserializer { node: self.root() }).map_err(|error| {
            let mut faults = Diagnostics::new();
            let at = error.at.unwrap_or_else(|| self.root().at.clone());
            faults.push_at(&at, error.message, error.help);
            faults
        })
    }
}

/// A fault on its way out; the innermost place wins.
#[derive(Debug)]
struct Fault {
    message: String,
    help: Option<String>,
    at: Option<Location>,
}

impl Fault {
    fn or_at(mut self, at: &Location) -> Fault {
        self.at.get_or_insert_with(|| at.clone());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<M: fmt::Display>(message: M) -> Fault {
        Fault { message: message.to_string(), help: None, at: None }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Fault {
        let help = help_for(field, "known", expected.iter().copied());
        Fault { message: format!("there is no key `{field}` here"), help, at: None }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Fault {
        let help = help_for(variant, "known", expected.iter().copied());
        Fault { message: format!("`{variant}` is not known here"), help, at: None }
    }

    fn missing_field(field: &'static str) -> Fault {
        Fault { message: format!("`{field}` is missing here"), help: None, at: None }
    }
}

#[derive(Clone, Copy)]
struct NodeDeserializer<'d> {
    node: &'d Node,
}

impl<'d> NodeDeserializer<'d> {
    fn visit<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::String(text) | Value::Datetime(text) => visitor.visit_borrowed_str(text),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Array(items) => {
                let mut access = Items { items: items.iter() };
                let value = visitor.visit_seq(&mut access)?;
                match access.items.next() {
                    None => Ok(value),
                    Some(extra) => {
                        Err(<Fault as de::Error>::custom("the list is too long").or_at(&extra.at))
                    }
                }
            }
            Value::Table(table) => {
                visitor.visit_map(Entries { entries: table.0.iter(), current: None })
            }
        }
    }
}

impl<'de> de::Deserializer<'de> for NodeDeserializer<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let at = &self.node.at;
        self.visit(visitor).map_err(|error| error.or_at(at))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let at = &self.node.at;
        let result = match &self.node.value {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Value::Table(table) if table.0.len() == 1 => {
                let (key, entry) = table.0.iter().next().expect("its length is 1");
                visitor.visit_enum(Variant { key, entry })
            }
            _ => {
                let message = format!(
                    "one of {} expected, this is {}",
                    variants.join(", "),
                    self.node.shown()
                );
                Err(<Fault as de::Error>::custom(message))
            }
        };
        result.map_err(|error| error.or_at(at))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'d> {
    items: std::slice::Iter<'d, Node>,
}

impl<'d> de::SeqAccess<'d> for Items<'d> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'d>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        self.items.next().map(|node| seed.deserialize(NodeDeserializer { node })).transpose()
    }
}

struct Entries<'d> {
    entries: std::collections::btree_map::Iter<'d, String, Entry>,
    current: Option<&'d Entry>,
}

impl<'d> de::MapAccess<'d> for Entries<'d> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'d>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some((key, entry)) = self.entries.next() else {
            return Ok(None);
        };
        self.current = Some(entry);
        let deserializer: StrDeserializer<'_, Fault> = key.as_str().into_deserializer();
        seed.deserialize(deserializer).map(Some).map_err(|error| error.or_at(&entry.key_at))
    }

    fn next_value_seed<S: DeserializeSeed<'d>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let entry = self.current.expect("serde asks for a value only after its key");
        let deserializer = NodeDeserializer { node: &entry.node };
        seed.deserialize(deserializer).map_err(|error| error.or_at(&entry.node.at))
    }
}

/// `{ name = content }`, a variant that holds something.
struct Variant<'d> {
    key: &'d str,
    entry: &'d Entry,
}

impl<'d> de::EnumAccess<'d> for Variant<'d> {
    type Error = Fault;
    type Variant = NodeDeserializer<'d>;

    fn variant_seed<S: DeserializeSeed<'d>>(
        self,
        seed: S,
    ) -> Result<(S::Value, NodeDeserializer<'d>), Fault> {
        let deserializer: StrDeserializer<'_, Fault> = self.key.into_deserializer();
        let value =
            seed.deserialize(deserializer).map_err(|error| error.or_at(&self.entry.key_at))?;
        Ok((value, NodeDeserializer { node: &self.entry.node }))
    }
}

impl<'d> de::VariantAccess<'d> for NodeDeserializer<'d> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Err(<Fault as de::Error>::custom("this choice holds nothing: write it as text")
            .or_at(&self.node.at))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'d>>(self, seed: S) -> Result<S::Value, Fault> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'d>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        de::Deserializer::deserialize_any(self, visitor)
    }

    fn struct_variant<V: Visitor<'d>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        de::Deserializer::deserialize_any(self, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Setting, Source};

    #[derive(serde::Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Config {
        hz: u32,
        cpufreq: Governor,
        note: Option<String>,
        schedutil: Schedutil,
        slices: Vec<u64>,
    }

    #[derive(serde::Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Governor {
        Schedutil,
        Fixed { khz: u32 },
        Pair(u32, u32),
    }

    #[derive(serde::Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Schedutil {
        rate_limit_us: u64,
    }

    const FILE: &str =
        "hz = 250\ncpufreq = \"schedutil\"\nslices = [1, 2]\n[schedutil]\nrate_limit_us = 750\n";

    fn typed(text: &str) -> Result<Config, Diagnostics> {
        TomlDocument::parse(&Source::new("k.toml", text)).unwrap().into_typed()
    }

    #[test]
    fn a_document_becomes_a_type() {
        let config = typed(FILE).unwrap();
        assert_eq!(config.schedutil.rate_limit_us, 750);
        assert_eq!(config.note, None);
        let fixed = typed(&FILE.replace("\"schedutil\"", "{ fixed = { khz = 5 } }")).unwrap();
        assert_eq!(fixed.cpufreq, Governor::Fixed { khz: 5 });
        let pair = typed(&FILE.replace("\"schedutil\"", "{ pair = [1, 2] }")).unwrap();
        assert_eq!(pair.cpufreq, Governor::Pair(1, 2));
    }

    #[test]
    fn faults_have_their_place() {
        for (from, to, expected) in [
            ("hz = 250", "hz = -1", "1:6: invalid value: integer `-1`, expected u32"),
            ("hz = 250", "hx = 250", "1:1: there is no key `hx` here\n  help: did you mean `hz`?"),
            ("hz = 250", "", "1:1: `hz` is missing here"),
            ("rate_limit_us = 750", "", "4:1: `rate_limit_us` is missing here"),
            ("[1, 2]", "[1, \"a\"]", "3:14: invalid type: string \"a\", expected u64"),
            (
                "\"schedutil\"",
                "\"sched\"",
                "2:11: `sched` is not known here\n  help: did you mean `schedutil`?",
            ),
            ("\"schedutil\"", "{ pair = [1, 2, 3] }", "2:27: the list is too long"),
            ("\"schedutil\"", "3", "2:11: one of schedutil, fixed, pair expected, this is `3`"),
        ] {
            let text = FILE.replacen(from, to, 1);
            assert_eq!(typed(&text).unwrap_err().to_string(), format!("k.toml:{expected}"), "{to}");
        }
    }

    #[test]
    fn a_fault_of_a_setting_points_to_the_command_line() {
        let mut document = TomlDocument::parse(&Source::new("k.toml", FILE)).unwrap();
        document.set(&Setting::parse("schedutil.rate_limit_us=-5").unwrap()).unwrap();
        let faults = document.into_typed::<Config>().unwrap_err();
        assert_eq!(
            faults.to_string(),
            "<command line>:1:25: invalid value: integer `-5`, expected u64"
        );
    }
}
