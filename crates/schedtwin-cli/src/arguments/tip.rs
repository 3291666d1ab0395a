// SPDX-License-Identifier: GPL-2.0-or-later
//! Tips for command lines that clap refuses, where the usual cause is known.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Kind;
use crate::{list, terminal};

/// Adds a tip to what clap says of these words, the first of which is the command's name.
pub fn with_tip(said: clap::Error, words: &[OsString]) -> clap::Error {
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    if let Some(tip) = of_missing(&said).or_else(|| of_subcommand(&said, command)) {
        return with(said, tip);
    }
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
    with(said, tip.to_string())
}

fn with(mut said: clap::Error, tip: String) -> clap::Error {
    said.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    said
}

/// Where to find names for arguments that are missing.
fn of_missing(said: &clap::Error) -> Option<String> {
    let missing = match said.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing))
            if said.kind() == ErrorKind::MissingRequiredArgument =>
        {
            missing
        }
        _ => return None,
    };
    let listed = [
        ("<MACHINE>", "`schedtwin list machines`"),
        ("<WORKLOAD>", "`schedtwin list workloads`"),
        ("<KERNEL>", "`schedtwin list kernels`"),
        ("<SUITE>", "`schedtwin list suites`"),
        ("<NAME>", "`schedtwin list`"),
    ];
    let asked = |argument: &str| missing.iter().any(|of| of.contains(argument));
    let lists = listed.iter().filter(|(argument, _)| asked(argument));
    let lists: Vec<&str> = lists.map(|(_, list)| *list).collect();
    (!lists.is_empty()).then(|| format!("names to choose from: {}", lists.join(", ")))
}

/// The command for what was named without saying what it is.
fn of_subcommand(said: &clap::Error, command: &str) -> Option<String> {
    let named = match said.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(named)) => named,
        _ => return None,
    };
    if said.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let kinds = [
        ("machine", Kind::Machines),
        ("kernel", Kind::Kernels),
        ("workload", Kind::Workloads),
        ("patch", Kind::Patches),
        ("system", Kind::Systems),
        ("suite", Kind::Suites),
    ];
    let is_of = |kind| list::entries(kind).iter().any(|(name, _)| name == named);
    match kinds.into_iter().find(|(_, kind)| is_of(*kind)) {
        Some((word, _)) if command == "show" => Some(format!("`schedtwin show {word} {named}`")),
        _ => {
            let whole = super::command(terminal::HELP_WIDEST);
            let known = whole.find_subcommand(command)?;
            let words: Vec<&str> = known
                .get_subcommands()
                .filter(|one| !one.is_hide_set())
                .map(|one| one.get_name())
                .collect();
            (!words.is_empty()).then(|| format!("one of: {}", words.join(", ")))
        }
    }
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
            ("compare -m pixel6", "`schedtwin list workloads`, `schedtwin list kernels`"),
            ("show machine", "`schedtwin list`"),
            ("show pixel6", "`schedtwin show machine pixel6`"),
            ("show linux-7.3", "`schedtwin show kernel linux-7.3`"),
            ("import foo", "one of: wattson, lisa, device-tree"),
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
