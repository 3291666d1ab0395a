// SPDX-License-Identifier: GPL-2.0-or-later
//! The JSON Schemas of what schedtwin writes, as shipped, and of the files that it reads: machines, kernels, options of schedulers.

pub mod kernel;
pub mod machine;

use std::borrow::Cow;

/// Name and text of every schema, in the order of a listing.
const SCHEMAS: [(&str, &str); 8] = [
    ("schedtwin.run/1", include_str!("../schemas/schedtwin.run.schema.json")),
    ("schedtwin.compare/1", include_str!("../schemas/schedtwin.compare.schema.json")),
    ("schedtwin.replay/1", include_str!("../schemas/schedtwin.replay.schema.json")),
    ("schedtwin.study/1", include_str!("../schemas/schedtwin.study.schema.json")),
    ("schedtwin.reports/1", include_str!("../schemas/schedtwin.reports.schema.json")),
    ("schedtwin.stability/1", include_str!("../schemas/schedtwin.stability.schema.json")),
    ("schedtwin.score/1", include_str!("../schemas/schedtwin.score.schema.json")),
    ("schedtwin.record/1", include_str!("../schemas/schedtwin.record.schema.json")),
];

/// The function that makes a schema.
type Made = fn() -> String;

/// The schemas of files that schedtwin reads: of machines and kernels made from declarations.
const MADE: [(&str, Made); 3] = [
    ("schedtwin.machine", machine::text),
    ("schedtwin.kernel", kernel::text),
    ("schedtwin.options", || include_str!("../schemas/schedtwin.options.schema.json").to_string()),
];

/// The names, as the `schema` field of a document has them.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(name, _)| *name).chain(MADE.map(|(name, _)| name))
}

/// The schema of that name; `schedtwin.` and the version may be left out.
///
/// ```
/// use schedtwin_lab::schema::text;
/// assert_eq!(text("run"), text("schedtwin.run/1"));
/// assert!(text("walk").is_none());
/// ```
pub fn text(name: &str) -> Option<Cow<'static, str>> {
    let short =
        |full: &str| full.trim_start_matches("schedtwin.").trim_end_matches("/1").to_string();
    if let Some((_, make)) = MADE.iter().find(|(full, _)| *full == name || short(full) == name) {
        return Some(make().into());
    }
    let found = SCHEMAS.iter().find(|(full, _)| *full == name || short(full) == name);
    found.map(|(_, text)| Cow::Borrowed(*text))
}
