// SPDX-License-Identifier: GPL-2.0-or-later
//! Declarations of the keys of a table, and everything that follows from a declaration.
//!
//! The keys of a table are declared once, beside their reader. From the declaration come the struct that the reader takes
//! them from, the schema for editors and docs/machine-keys.md.
//!
//! ```text
//! keys! {
//!     /// what hardware threads of a core share                       about the table
//!     struct SmtKeys in "smt" {                                       its path in the file
//!         /// what each further executing thread adds                 meaning, and what leaving it out means
//!         second_permille: Located<u64> = Always, Whole(0, 1000);     type, whether it must be there, what it may be
//!         ...
//!     }
//! }
//! let SmtKeys { second_permille, .. } = SmtKeys::read(&mut table, faults);   each is an `Option`
//! ```
//!
//! The name of a field is the name of the key, and the end of a name says its unit. A key that must be there and is not is a
//! fault of the table; whether a number lies within its range is checked by the reader, which knows why it must.

use super::Need;
use schedtwin_input::{Diagnostics, FromNode, TableReader};

/// Whether a file without a class must have the key.
pub(crate) fn is_required(need: Need) -> bool {
    matches!(need, Need::Always | Need::WithoutClass)
}

/// The value of a key.
pub(crate) fn read_key<T: FromNode>(
    table: &mut TableReader<'_>,
    name: &str,
    required: bool,
    faults: &mut Diagnostics,
) -> Option<T> {
    if required { table.required(name, faults) } else { table.optional(name, faults) }
}

/// The name of a key, which may be a word of Rust.
pub(crate) fn key_name(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// Declares the keys of one table: the struct of their values, its reader, and the table's description.
macro_rules! keys {
    ($(#[doc = $about:literal])+ struct $name:ident in $path:literal {
        $($(#[doc = $help:literal])+ $field:ident: $type:ty = $need:expr, $kind:expr;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $($(#[doc = $help])+ pub(crate) $field: Option<$type>,)+
        }

        #[allow(dead_code, reason = "not every table is read in every way")]
        impl $name {
            /// The names of the keys.
            pub(crate) fn names() -> Vec<&'static str> {
                vec![$($crate::keys::declare::key_name(stringify!($field))),+]
            }

            /// Takes the values from a table.
            pub(crate) fn read(
                table: &mut schedtwin_input::TableReader<'_>,
                faults: &mut schedtwin_input::Diagnostics,
            ) -> $name {
                $name::read_if(table, $crate::keys::declare::is_required, faults)
            }

            /// As [`Self::read`]; `required` says which keys must be there.
            pub(crate) fn read_if(
                table: &mut schedtwin_input::TableReader<'_>,
                required: impl Fn($crate::keys::Need) -> bool,
                faults: &mut schedtwin_input::Diagnostics,
            ) -> $name {
                use $crate::keys::Need::*;
                $name {
                    $($field: $crate::keys::declare::read_key(
                        table,
                        $crate::keys::declare::key_name(stringify!($field)),
                        required($need),
                        faults,
                    ),)+
                }
            }

            /// The table as the schema and the document have it.
            pub(crate) fn table() -> $crate::keys::Table {
                #[allow(unused_imports, reason = "not every table has every kind of key")]
                use $crate::keys::{Kind::*, Need::*};
                let keys = vec![$({
                    let name = $crate::keys::declare::key_name(stringify!($field));
                    let kind = $kind;
                    $crate::keys::Key {
                        name,
                        need: $need,
                        unit: $crate::keys::unit_of(name, &kind),
                        kind,
                        help: concat!($($help),+).trim_ascii().to_string(),
                    }
                }),+];
                $crate::keys::Table { path: $path, help: concat!($($about),+).trim_ascii(), keys }
            }
        }
    };
}

pub(crate) use keys;
