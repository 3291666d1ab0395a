// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin convert`: from one of the formats that schedtwin writes to another.

use schedtwin_trace::Format;

use crate::arguments::Convert;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::run::writable;

/// Converts, and says on stderr what the new format had no place for.
pub fn convert(arguments: &Convert) -> Result<(), Failure> {
    let Convert { from, to } = arguments;
    let Some(format) = Format::from_path(to) else {
        let message = format!(
            "failed to write {}: the name of a trace or record ends in {}",
            output::shown(to),
            Format::ENDINGS
        );
        return Err(Failure::bad(message));
    };
    writable(to)?;
    let same = from.canonicalize().is_ok_and(|from| to.canonicalize().is_ok_and(|to| from == to));
    if same {
        let message = format!("failed to convert {}: OUT is the same file", output::shown(from));
        return Err(Failure::bad(message));
    }
    interrupt::guard(to);
    let converted = schedtwin_trace::convert::convert(from, to, format)
        .map_err(|error| Failure::of_file("convert", from, &error))?;
    if converted.decisions_dropped > 0 {
        output::tell(&format!(
            "note: {} decisions stay in {}: only a record holds them",
            converted.decisions_dropped,
            output::shown(from)
        ));
    }
    Ok(())
}
