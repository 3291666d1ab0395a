// SPDX-License-Identifier: GPL-2.0-or-later
//! Declarations of settings, and everything that follows from a declaration.
//!
//! Every variation point and tunable is declared once, in the file of its subsystem. From the declaration come
//! the field of [`Config`](super::Config) with its type, the reader and the writer of kernel files, the checks of
//! patches, `list points`, docs/variation-points.md, what `show kernel` says, and the schema for editors.
//!
//! ```text
//! /// What keeps RT tasks from starving the others.           help text, and the doc of field and enum
//! rt_bandwidth: choice RtBandwidth {                          field of Config, kind, name of the enum
//!     linux "rt.c; fair_server";                              what a kernel engineer knows it by
//!     /// RT queues are throttled.                            what an arm means
//!     Throttling = "throttling", "up to 6.11";                arm, its word in a file, releases that have it
//!     ...
//! }
//! /// Fair server: runtime per period.
//! fair_server_runtime: integer Ns {
//!     key "fair_server.runtime_us";                           path in a kernel file, if it is not the field's name
//!     linux "/sys/kernel/debug/sched/fair_server/cpu*/runtime";
//!     range 0..=4_194_304 us;                                 what a file may say, in which unit
//!     at_most "fair_server.period_us";                        no more than another number
//!     only RtBandwidth in [FairServer] else 0;                it exists with these arms; its value elsewhere
//!     releases 950_000 "up to 6.18";                          a value of some releases (`history.rs`)
//! }
//! ```
//!
//! | kind | type of the field | in a file |
//! |---|---|---|
//! | `choice T` | the enum `T`, which the declaration makes | the word of an arm |
//! | `integer T` | `T`; an `Ns` takes `us` and `ms` as nanoseconds | a whole number |
//! | `limit T` | `Option<T>` | a whole number, or what `none` says |
//! | `switch` | `bool` | `true` or `false` |
//! | `feature` | `bool` | the same; known by its name in `sched/features` |
//! | `names` | `Vec<String>` | names with `/` between them, or `none` |
//! | `table T` | `T`, declared in a file of its own | a table |
//!
//! **Files that do not name a setting.** A setting that was added after the first kernel files has an `default_if_absent`
//! value: the twin's behaviour before the setting existed. So an older file keeps its meaning, and its results do
//! not move. Settings without `default_if_absent` existed from the beginning, and every file names them.

use std::collections::BTreeMap;

/// A value as kernel files have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Text: an arm's word, names.
    Text(String),
    /// A whole number in the file's unit.
    Integer(i64),
    /// `true` or `false`.
    Switch(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Integer(number)
    }
}

impl From<bool> for Value {
    fn from(on: bool) -> Value {
        Value::Switch(on)
    }
}

/// As one writes it in place (`KERNEL:KEY=VALUE`).
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Integer(number) => number.fmt(f),
            Value::Switch(on) => on.fmt(f),
        }
    }
}

/// A declared setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its path in a kernel file: `schedutil.rate_limit_us`.
    pub path: &'static str,
    /// Its meaning, in a sentence or two.
    pub help: String,
    /// Its name in Linux: a file, an option, a function.
    pub known_by: String,
    /// The values that a file may give.
    pub kind: Kind,
    /// Its value in a file that does not name it; `None`: every file names it.
    pub default_if_absent: Option<Value>,
    /// The arms with which it exists; `None`: always.
    pub only: Option<With>,
    /// Its value where it does not exist.
    pub otherwise: Option<Value>,
    /// The path of a number that this one must not exceed.
    pub at_most: Option<&'static str>,
    /// The values that releases changed, with the releases that have them, in the words of `history.rs`; a point's are its
    /// arms'.
    pub releases: Vec<(Value, &'static str)>,
}

/// The values that a file may give to a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The word of one of the arms: a variation point, or what a user chooses.
    Choice {
        /// Name of the enum in `schedtwin_kernel::config`.
        type_name: &'static str,
        /// The arms in the order of their releases.
        arms: Vec<Arm>,
    },
    /// A whole number.
    Integer {
        /// The least.
        min: i64,
        /// The largest.
        max: i64,
        /// The unit: `us`, `ns`, `ms`; empty for a plain number.
        unit: &'static str,
        /// A word or number in place of a value, and its meaning: `-1`, `"driver"`.
        none: Option<(Value, &'static str)>,
    },
    /// `true` or `false`.
    Switch,
    /// Names with `/` between them, or `none`.
    Names,
}

/// One of the ways in which a point can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Its word in a kernel file.
    pub word: &'static str,
    /// The releases that have it.
    pub releases: &'static str,
    /// Its meaning.
    pub means: String,
    /// The arms of another point that it needs; `None`: it goes with all.
    pub only: Option<With>,
}

/// Arms of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct With {
    /// The path of the point.
    pub path: &'static str,
    /// The words of its arms.
    pub words: Vec<&'static str>,
}

impl With {
    /// Whether a value of the point is one of these arms.
    pub fn allows(&self, value: &Value) -> bool {
        self.words.iter().any(|word| *value == Value::from(*word))
    }
}

impl Setting {
    /// Whether it is a choice of who builds or boots a kernel, and no change of the kernel's code: an option of Kconfig, a governor.
    pub fn is_configuration(&self) -> bool {
        self.known_by.starts_with("CONFIG_") || self.known_by.ends_with("_governor")
    }

    /// A switch that every file names.
    pub(super) fn new(path: &'static str, help: &str) -> Setting {
        Setting {
            path,
            help: help.trim().to_string(),
            known_by: String::new(),
            kind: Kind::Switch,
            default_if_absent: None,
            only: None,
            otherwise: None,
            at_most: None,
            releases: Vec::new(),
        }
    }

    /// The words of [`Setting::known_by`] that name something of Linux's: options, files, functions.
    pub fn names_in_linux(&self) -> impl Iterator<Item = &str> {
        let part = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        self.known_by.split(part).filter(|word| word.contains('_') || word.starts_with("CONFIG"))
    }

    /// Whether Linux calls exactly this setting so, in the same unit: the last word of a file, a feature or an option.
    ///
    /// ```
    /// let settings = schedtwin_kernel::config::Config::settings();
    /// let named = |name| settings.iter().find(|s| s.is_linux_name(name)).map(|s| s.path);
    /// assert_eq!(named("RUN_TO_PARITY"), Some("features.run_to_parity"));
    /// assert_eq!(named("sched_rt_runtime_us"), Some("rt_runtime_us"));
    /// assert_eq!(named("base_slice_ns"), None, "here it is before scaling by CPUs");
    /// assert_eq!(named("runtime"), None, "nanoseconds there, microseconds here");
    /// ```
    pub fn is_linux_name(&self, name: &str) -> bool {
        let unit = |name: &str| {
            ["_ns", "_us", "_ms", "_permille"].into_iter().find(|unit| name.ends_with(unit))
        };
        let begins = |rest: &str| rest.is_empty() || rest.ends_with(['/', ' ', ':']);
        self.names_in_linux().last() == Some(name)
            && self.known_by.strip_suffix(name).is_some_and(begins)
            && unit(self.path) == unit(name)
    }

    /// The table that holds it (empty: none) and its key there.
    ///
    /// ```
    /// let settings = schedtwin_kernel::config::Config::settings();
    /// let limit = settings.iter().find(|s| s.path == "schedutil.rate_limit_us").unwrap();
    /// assert_eq!(limit.table_and_key(), ("schedutil", "rate_limit_us"));
    /// ```
    pub fn table_and_key(&self) -> (&'static str, &'static str) {
        self.path.split_once('.').unwrap_or(("", self.path))
    }

    /// Whether it puts a wrong rule of earlier releases back (`config/bugs.rs`): such a setting is asked for by name.
    /// Nothing draws it at random, and files are written without it while it is off.
    ///
    /// ```
    /// let settings = schedtwin_kernel::config::Config::settings();
    /// assert!(settings.iter().any(|setting| setting.is_bug()));
    /// assert!(settings.iter().filter(|s| s.is_bug()).all(|s| s.default_if_absent == Some(false.into())));
    /// ```
    pub fn is_bug(&self) -> bool {
        self.table_and_key().0 == "bugs"
    }

    /// Whether it exists in a kernel of these values, of which each has its path.
    pub(super) fn exists_with(&self, values: &BTreeMap<&'static str, Value>) -> bool {
        let allows = |only: &With| values.get(only.path).is_some_and(|value| only.allows(value));
        self.only.as_ref().is_none_or(allows)
    }

    /// The number that `value` spells, if it is one within the range; of a [`Kind::Integer`] whose `none` is a
    /// word, also one that is spelled as text.
    pub fn number(&self, value: &Value) -> Option<i64> {
        let Kind::Integer { min, max, none, .. } = &self.kind else { return None };
        let number = match (value, none) {
            (Value::Integer(number), _) => *number,
            (Value::Text(text), Some((Value::Text(_), _))) => text.parse().ok()?,
            _ => return None,
        };
        (*min..=*max).contains(&number).then_some(number)
    }
}

/// What the field of a `limit` has: nothing for the word that says so.
pub(super) fn limit_from<T: TryFrom<i64>>(value: &Value, none: &Value, scale: i64) -> Option<T> {
    if value == none {
        return None;
    }
    let number = match value {
        Value::Integer(number) => *number,
        Value::Text(text) => text.parse().expect("checked by the reader"),
        Value::Switch(_) => unreachable!("checked by the reader"),
    };
    Some(integer_from(&Value::Integer(number), scale))
}

/// The file's value for the field of a `limit`: text where the word for no limit is text.
pub(super) fn limit_to(number: Option<u64>, none: Value, scale: i64) -> Value {
    match (number, &none) {
        (None, _) => none,
        (Some(number), Value::Text(_)) => Value::Text((number as i64 / scale).to_string()),
        (Some(number), _) => Value::Integer(number as i64 / scale),
    }
}

/// What the field of an `integer` has.
pub(super) fn integer_from<T: TryFrom<i64>>(value: &Value, scale: i64) -> T {
    match value {
        Value::Integer(number) => T::try_from(number * scale).ok().expect("checked by the reader"),
        other => panic!("a number, not `{other}`: checked by the reader"),
    }
}

pub(super) fn switch_from(value: &Value) -> bool {
    *value == Value::Switch(true)
}

/// The word for an empty list of names.
pub(super) const NO_NAMES: &str = "none";

pub(super) fn names_from(value: &Value) -> Vec<String> {
    match value {
        Value::Text(text) if text != NO_NAMES => {
            text.split('/').map(|name| name.trim().to_string()).collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn names_to(names: &[String]) -> Value {
    if names.is_empty() { NO_NAMES.into() } else { Value::Text(names.join("/")) }
}

/// Where features are listed.
pub(super) fn feature_known_by(name: &str) -> String {
    format!("/sys/kernel/debug/sched/features: {}", name.to_uppercase())
}

/// The number of nanoseconds in the file's unit, for fields in nanoseconds; 1 for fields in the file's unit.
macro_rules! scale {
    (Ns us) => {
        1_000
    };
    (Ns ms) => {
        1_000_000
    };
    ($type:ident $($unit:ident)?) => {
        1
    };
}

/// The type of a field.
macro_rules! field_type {
    (choice $type:ident) => { $type };
    (integer $type:ident) => { $type };
    (limit $type:ident) => { Option<$type> };
    (switch) => { bool };
    (feature) => { bool };
    (names) => { Vec<String> };
    (table $type:ident) => { $type };
}

/// The path of a setting: `key` if it has one, else the field's name, behind the table's.
macro_rules! setting_path {
    ($table:literal $field:ident { key $key:literal; $($rest:tt)* }) => {
        concat!($table, $key)
    };
    ($table:literal $field:ident { $($rest:tt)* }) => {
        concat!($table, stringify!($field))
    };
}

/// The enum of a choice, with its words.
macro_rules! choice_type {
    (choice $type:ident [$path:expr] [$($doc:literal)+] {
        $(key $key:literal;)?
        linux $linux:literal;
        $(only $with:ident in [$($arms:ident),+] else $else:ident;)?
        $(default_if_absent $default_if_absent:ident;)?
        $($(#[doc = $means:literal])+
            $arm:ident = $word:literal, $releases:literal $(, only $other:ident in [$($allowed:ident),+])?;)+
    }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $($(#[doc = $means])+ #[doc = concat!("\n\nReleases: ", $releases, ".")] $arm,)+
        }

        impl $type {
            /// The path of the setting in kernel files.
            pub const PATH: &'static str = $path;

            /// All arms, in the order of their declaration.
            pub const ALL: &'static [$type] = &[$($type::$arm),+];

            /// The word in kernel files.
            pub const fn word(self) -> &'static str {
                match self {
                    $($type::$arm => $word,)+
                }
            }

            fn from_value(value: &Value) -> $type {
                let mut all = $type::ALL.iter().copied();
                all.find(|arm| *value == arm.word().into()).expect("checked by the reader")
            }
        }
    };
    ($($other:tt)*) => {};
}

/// Describes one setting, or the settings of a table.
macro_rules! describe {
    ($out:ident, $path:expr, $help:expr, $field:ident, choice $type:ident {
        $(key $key:literal;)?
        linux $linux:literal;
        $(only $with:ident in [$($arms:ident),+] else $else:ident;)?
        $(default_if_absent $default_if_absent:ident;)?
        $($(#[doc = $means:literal])+
            $arm:ident = $word:literal, $releases:literal $(, only $other:ident in [$($allowed:ident),+])?;)+
    }) => {
        $out.push(Setting {
            known_by: $linux.to_string(),
            kind: Kind::Choice {
                type_name: stringify!($type),
                arms: vec![$(Arm {
                    word: $word,
                    releases: $releases,
                    means: concat!($($means),+).trim().to_string(),
                    only: with!($($other in [$($allowed),+])?),
                }),+],
            },
            default_if_absent: optional!($($type::$default_if_absent.word().into())?),
            only: with!($($with in [$($arms),+])?),
            otherwise: optional!($($type::$else.word().into())?),
            ..Setting::new($path, $help)
        })
    };
    ($out:ident, $path:expr, $help:expr, $field:ident, integer $type:ident {
        $(key $key:literal;)?
        linux $linux:literal;
        range $min:literal ..= $max:literal $($unit:ident)?;
        $(at_most $most:literal;)?
        $(only $with:ident in [$($arms:ident),+] else $else:literal;)?
        $(default_if_absent $default_if_absent:literal;)?
        $(releases $of:literal $releases:literal;)*
    }) => {
        $out.push(Setting {
            known_by: $linux.to_string(),
            releases: vec![$((Value::from($of), $releases)),*],
            kind: Kind::Integer { min: $min, max: $max, unit: stringify!($($unit)?), none: None },
            default_if_absent: optional!($(Value::from($default_if_absent))?),
            only: with!($($with in [$($arms),+])?),
            otherwise: optional!($(Value::from($else))?),
            at_most: optional!($($most)?),
            ..Setting::new($path, $help)
        })
    };
    ($out:ident, $path:expr, $help:expr, $field:ident, limit $type:ident {
        $(key $key:literal;)?
        linux $linux:literal;
        range $min:literal ..= $max:literal $($unit:ident)?;
        none $none:literal, $means:literal;
        $(at_most $most:literal;)?
        $(only $with:ident in [$($arms:ident),+];)?
        $(default_if_absent $default_if_absent:literal;)?
        $(releases $of:literal $releases:literal;)*
    }) => {
        $out.push(Setting {
            known_by: $linux.to_string(),
            releases: vec![$((Value::from($of), $releases)),*],
            kind: Kind::Integer {
                min: $min,
                max: $max,
                unit: stringify!($($unit)?),
                none: Some((Value::from($none), $means)),
            },
            default_if_absent: optional!($(Value::from($default_if_absent))?),
            only: with!($($with in [$($arms),+])?),
            otherwise: with!($($with in [$($arms),+])?).map(|_: With| Value::from($none)),
            at_most: optional!($($most)?),
            ..Setting::new($path, $help)
        })
    };
    ($out:ident, $path:expr, $help:expr, $field:ident, switch {
        $(key $key:literal;)?
        linux $linux:literal;
        $(default_if_absent $default_if_absent:literal;)?
        $(releases $of:literal $releases:literal;)*
    }) => {
        $out.push(Setting {
            known_by: $linux.to_string(),
            releases: vec![$((Value::from($of), $releases)),*],
            default_if_absent: optional!($(Value::from($default_if_absent))?),
            ..Setting::new($path, $help)
        })
    };
    ($out:ident, $path:expr, $help:expr, $field:ident, feature {
        $(only $with:ident in [$($arms:ident),+];)?
        $(default_if_absent $default_if_absent:literal;)?
        $(releases $of:literal $releases:literal;)*
    }) => {
        $out.push(Setting {
            known_by: feature_known_by(stringify!($field)),
            releases: vec![$((Value::from($of), $releases)),*],
            default_if_absent: optional!($(Value::from($default_if_absent))?),
            only: with!($($with in [$($arms),+])?),
            otherwise: with!($($with in [$($arms),+])?).map(|_: With| false.into()),
            ..Setting::new($path, $help)
        })
    };
    ($out:ident, $path:expr, $help:expr, $field:ident, names {
        linux $linux:literal;
        $(default_if_absent $default_if_absent:literal;)?
    }) => {
        $out.push(Setting {
            known_by: $linux.to_string(),
            kind: Kind::Names,
            default_if_absent: optional!($(Value::from($default_if_absent))?),
            ..Setting::new($path, $help)
        })
    };
    ($out:ident, $path:expr, $help:expr, $field:ident, table $type:ident {}) => {
        $type::describe($out)
    };
}

/// A part of a declaration that may be left out.
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// Arms of another point, by their words.
macro_rules! with {
    () => {
        None
    };
    ($type:ident in [$($arm:ident),+]) => {
        Some(With { path: $type::PATH, words: vec![$($type::$arm.word()),+] })
    };
}

/// From a file's value to a field. `$get` gives the value of a path.
macro_rules! from_value {
    ($get:ident, $path:expr, choice $type:ident { $($spec:tt)* }) => {
        $type::from_value(&$get($path))
    };
    ($get:ident, $path:expr, integer $type:ident {
        $(key $key:literal;)? linux $linux:literal; range $min:literal ..= $max:literal $($unit:ident)?; $($rest:tt)*
    }) => {
        integer_from::<$type>(&$get($path), scale!($type $($unit)?))
    };
    ($get:ident, $path:expr, limit $type:ident {
        $(key $key:literal;)? linux $linux:literal; range $min:literal ..= $max:literal $($unit:ident)?;
        none $none:literal, $($rest:tt)*
    }) => {
        limit_from::<$type>(&$get($path), &Value::from($none), scale!($type $($unit)?))
    };
    ($get:ident, $path:expr, names { $($spec:tt)* }) => {
        names_from(&$get($path))
    };
    ($get:ident, $path:expr, table $type:ident {}) => {
        $type::from_values($get)
    };
    ($get:ident, $path:expr, $switch:ident { $($spec:tt)* }) => {
        switch_from(&$get($path))
    };
}

/// From a field to a file's value. `$put` takes a path and the value.
macro_rules! to_value {
    ($put:ident, $path:expr, $from:expr, choice $type:ident { $($spec:tt)* }) => {
        $put($path, $from.word().into())
    };
    ($put:ident, $path:expr, $from:expr, integer $type:ident {
        $(key $key:literal;)? linux $linux:literal; range $min:literal ..= $max:literal $($unit:ident)?; $($rest:tt)*
    }) => {
        $put($path, Value::Integer($from as i64 / scale!($type $($unit)?)))
    };
    ($put:ident, $path:expr, $from:expr, limit $type:ident {
        $(key $key:literal;)? linux $linux:literal; range $min:literal ..= $max:literal $($unit:ident)?;
        none $none:literal, $($rest:tt)*
    }) => {
        $put($path, limit_to($from.map(u64::from), Value::from($none), scale!($type $($unit)?)))
    };
    ($put:ident, $path:expr, $from:expr, names { $($spec:tt)* }) => {
        $put($path, names_to(&$from))
    };
    ($put:ident, $path:expr, $from:expr, table $type:ident {}) => {
        $from.put_values($put)
    };
    ($put:ident, $path:expr, $from:expr, $switch:ident { $($spec:tt)* }) => {
        $put($path, Value::Switch($from))
    };
}

/// Declares the settings of one table: the struct, the enums of its choices, and the way from and to files.
macro_rules! declare {
    ([] $(#[$meta:meta])* struct $name:ident in $table:literal {
        $($(#[doc = $doc:literal])+ $field:ident: $kind:ident $($type:ident)? { $($spec:tt)* })*
    }) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: field_type!($kind $($type)?),)*
        }

        $(choice_type! {
            $kind $($type)? [setting_path!($table $field { $($spec)* })] [$($doc)+] { $($spec)* }
        })*

        impl $name {
            pub(super) fn describe(out: &mut Vec<Setting>) {
                $(describe!(
                    out, setting_path!($table $field { $($spec)* }), concat!($($doc),+),
                    $field, $kind $($type)? { $($spec)* }
                );)*
            }

            pub(super) fn from_values(get: &mut dyn FnMut(&'static str) -> Value) -> $name {
                $name {
                    $($field: from_value!(
                        get, setting_path!($table $field { $($spec)* }), $kind $($type)? { $($spec)* }
                    ),)*
                }
            }

            pub(super) fn put_values(&self, put: &mut dyn FnMut(&'static str, Value)) {
                $(to_value!(
                    put, setting_path!($table $field { $($spec)* }), self.$field, $kind $($type)? { $($spec)* }
                );)*
            }
        }
    };
}
