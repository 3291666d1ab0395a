// SPDX-License-Identifier: GPL-2.0-or-later
//! Tips for command lines that clap refuses, where the usual cause is known.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds a tip to what clap says of these words, the first of which is the command's name.
pub fn with_tip(mut said: clap::Error, words: &[OsString]) -> clap::Error {
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let argument = match said.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.as_str(),
        _ => return said,
    };
    let tip = match (said.kind(), command) {
        (ErrorKind::ArgumentConflict, "run") if argument.starts_with("--kernel") => {
            "run takes one kernel; `schedtwin compare` puts several beside each other"
        }
        (ErrorKind::ArgumentConflict, "run") if argument.starts_with("--workload") => {
            "run takes one workload; `schedtwin compare` takes several, and one workload may have several jobs: \
             'ui-phone & hackbench'"
        }
        (ErrorKind::UnknownArgument, "run") if matches!(argument, "-o" | "--output") => {
            "the table goes to stdout; --trace, --record and --html write files"
        }
        (ErrorKind::UnknownArgument, _) if !argument.starts_with('-') => {
            "a value with spaces or with a list in braces is quoted: -w 'messaging -g 5' -k 'linux-{6.1,6.12}'; \
             other lists are options given again: -k linux-6.1 -k linux-6.12"
        }
        _ => return said,
    };
    said.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![StyledStr::from(tip.to_string())]),
    );
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser;

    #[test]
    fn usual_slips_have_a_tip() {
        for (line, tip) in [
            ("run -m a -k b -k c -w d", "compare"),
            ("run -m a -w b -w c", "several jobs"),
            ("run -m a -w b -o c", "--trace"),
            ("compare -m a -k linux-6.1 linux-6.12 -w d", "quoted"),
            ("sweep -m a -w messaging -k b 5", "quoted"),
        ] {
            let words: Vec<OsString> =
                ["schedtwin"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
            let said = Arguments::try_parse_from(&words).err().expect("it is refused");
            let told = with_tip(said, &words).to_string();
            assert!(told.contains("tip:") && told.contains(tip), "{line}: {told}");
        }
        let words = ["schedtwin", "run", "--hep"].map(OsString::from);
        let said = Arguments::try_parse_from(&words).err().expect("it is refused");
        assert_eq!(with_tip(said, &words).to_string().matches("tip:").count(), 1, "clap's own");
    }
}
