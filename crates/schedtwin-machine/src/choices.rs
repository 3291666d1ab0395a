// SPDX-License-Identifier: GPL-2.0-or-later
//! `[choices.KEY.OPTION]`: values that change together.
//!
//! Some settings of a machine are one decision: a user who wants the capacities of the later device
//! tree wants
//! all three. A file gives such a decision a key at its top, and for each option the values that it puts in
//! the place of others, written under the same names as at the top of the file:
//!
//! ```toml
//! capacities = "early"
//!
//! [choices.capacities.early] # as written below
//! [choices.capacities.late.cpu]
//! little.capacity = 160
//! mid.capacity = 498
//! ```
//!
//! `pixel6:capacities=late` then replaces both. A setting of the command line that names one of the values
//! itself comes last and wins.

use schedtwin_input::{Diagnostics, TableReader, TomlDocument, Value, did_you_mean};

/// The table of choices.
pub(crate) const KEY: &str = "choices";

/// Options of all choices together. Each is tried on a copy of the file, so thousands would take minutes.
const OPTIONS_MAX: usize = 64;

/// Puts the values of the chosen options into the document.
pub(crate) fn apply(document: &mut TomlDocument) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::new();
    let choices = match document.table().0.get(KEY).map(|entry| entry.node.value.clone()) {
        None => return Ok(()),
        Some(Value::Table(choices)) => choices,
        Some(_) => {
            let message = format!("`{KEY}` must be a table of tables");
            faults.push_at(&document.location(KEY), message, None);
            return Err(faults);
        }
    };
    let options: usize = choices.0.values().map(|entry| options_in(&entry.node.value)).sum();
    if options > OPTIONS_MAX {
        let message = format!("`{KEY}` has {options} options, at most {OPTIONS_MAX} are taken");
        faults.push_at(&document.location(KEY), message, None);
        return Err(faults);
    }
    for (key, entry) in &choices.0 {
        let Value::Table(options) = &entry.node.value else {
            faults.push_at(
                &entry.node.at,
                format!("`{KEY}.{key}` must be a table of options"),
                None,
            );
            continue;
        };
        let chosen = document.table().0.get(key).map(|chosen| &chosen.node);
        let Some((chosen, Value::String(option))) = chosen.map(|node| (node, &node.value)) else {
            let message = format!("`{key}` must name one of the options below");
            faults.push_at(&entry.key_at, message, Some(known(options)));
            continue;
        };
        if !options.0.contains_key(option) {
            let near = did_you_mean(option, options.0.keys().map(String::as_str));
            let help = near.map_or_else(|| known(options), |n| format!("did you mean `{n}`?"));
            faults.push_at(&chosen.at, format!("`{key}` cannot be `{option}`"), Some(help));
        }
        let option = option.clone();
        for (name, entry) in &options.0 {
            let Value::Table(changes) = &entry.node.value else {
                faults.push_at(&entry.node.at, "an option is a table of values", None);
                continue;
            };
            // The others are tried out: a slip in them should not wait for who chooses them.
            if *name == option {
                faults.absorb(document.overlay(changes));
            } else {
                faults.absorb(document.clone().overlay(changes));
            }
        }
    }
    faults.into_result(())
}

fn options_in(choice: &Value) -> usize {
    match choice {
        Value::Table(options) => options.0.len(),
        _ => 0,
    }
}

fn known(options: &schedtwin_input::Table) -> String {
    let names: Vec<String> = options.0.keys().map(|name| format!("`{name}`")).collect();
    format!("known: {}", names.join(", "))
}

/// Tells a reader of the file that the keys of choices, which are done with, are no strangers.
pub(crate) fn skip(root: &mut TableReader<'_>, document: &TomlDocument, faults: &mut Diagnostics) {
    let Some(Value::Table(choices)) = document.get(KEY).map(|node| &node.value) else {
        return;
    };
    root.optional_table(KEY, faults);
    for key in choices.0.keys() {
        // `apply` has checked that it is text; the fault of any other type is noted there.
        let _: Option<String> = root.optional(key, &mut Diagnostics::new());
    }
}
