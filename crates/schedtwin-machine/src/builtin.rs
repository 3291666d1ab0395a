// SPDX-License-Identifier: GPL-2.0-or-later
//! The machines that are compiled in, and how a machine is found.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use schedtwin_input::{
    Diagnostics, FileKind, Setting, Source, Spec, TomlDocument, did_you_mean, read_source,
};

use crate::{Machine, choices, core_class, file, keys};

/// Name and text of each built-in machine.
const BUILTIN: &[(&str, &str)] = &[
    ("altra-2p160", include_str!("../machines/altra-2p160.toml")),
    ("epyc-milan-2x64", include_str!("../machines/epyc-milan-2x64.toml")),
    ("i5-10600k", include_str!("../machines/i5-10600k.toml")),
    ("i7-10700", include_str!("../machines/i7-10700.toml")),
    ("i7-3630qm", include_str!("../machines/i7-3630qm.toml")),
    ("i7-4790", include_str!("../machines/i7-4790.toml")),
    ("icelake-2s", include_str!("../machines/icelake-2s.toml")),
    ("juno-r2", include_str!("../machines/juno-r2.toml")),
    ("kunpeng-920", include_str!("../machines/kunpeng-920.toml")),
    ("laptop-8c16t", include_str!("../machines/laptop-8c16t.toml")),
    ("pixel6", include_str!("../machines/pixel6.toml")),
    ("pixel9", include_str!("../machines/pixel9.toml")),
    ("power10-8core", include_str!("../machines/power10-8core.toml")),
    ("rig8", include_str!("../machines/rig8.toml")),
    ("rk3399", include_str!("../machines/rk3399.toml")),
    ("rpi4", include_str!("../machines/rpi4.toml")),
    ("ryzen-5950x", include_str!("../machines/ryzen-5950x.toml")),
    ("sm8150", include_str!("../machines/sm8150.toml")),
    ("sm8250", include_str!("../machines/sm8250.toml")),
    ("spr-2s224", include_str!("../machines/spr-2s224.toml")),
    ("uniform8", include_str!("../machines/uniform8.toml")),
    ("x86-2cpu-hz100", include_str!("../machines/x86-2cpu-hz100.toml")),
    ("xeon-8260-2s", include_str!("../machines/xeon-8260-2s.toml")),
];

/// The built-in machines, by name, each with its line of description.
pub fn builtin_names() -> Vec<(&'static str, String)> {
    let describe = |name| {
        let machine = Machine::load(name).expect("built-in machines are read by a test");
        (name, machine.description)
    };
    BUILTIN.iter().map(|(name, _)| describe(*name)).collect()
}

/// The file of a built-in machine.
pub fn builtin_source(name: &str) -> Option<Arc<Source>> {
    let (name, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    Some(Source::new(format!("<built in> {name}"), *text))
}

impl Machine {
    /// Loads what the command line names: `pixel6`, `pixel6:coupling=false`, `./my/phone.toml`.
    pub fn load(spec: &str) -> Result<Machine, Diagnostics> {
        Machine::from_spec(&Spec::parse_machine(spec)?)
    }

    /// The same from a spec that was taken apart already.
    pub fn from_spec(spec: &Spec) -> Result<Machine, Diagnostics> {
        let name = &spec.name;
        let source = if name.is_path() {
            let source = read_source(&name.text)?;
            FileKind::Machine.expect(&source, &name.at)?;
            source
        } else {
            builtin_source(&name.text).ok_or_else(|| unknown(spec))?
        };
        let mut machine = Machine::from_source(&source, &spec.settings)?;
        machine.identity = spec.identity();
        Ok(machine)
    }

    /// A machine from a text, with settings put into it.
    pub fn from_source(source: &Arc<Source>, settings: &[Setting]) -> Result<Machine, Diagnostics> {
        let mut faults = Diagnostics::new();
        let (document, left_out) = completed(source, settings, &mut faults)?;
        // Faults of the file come with those of the settings: the user sees all of them at once.
        let machine = faults.absorb(file::read(source, &document));
        faults.sort();
        match machine {
            Some(mut machine) if faults.is_empty() => {
                let text = |s: &Setting| format!("{}={}", s.key.text, s.value.text);
                machine.left_out = left_out;
                machine.settings = settings.iter().map(text).collect();
                if !machine.settings.is_empty() {
                    machine.identity = format!("{}:{}", machine.name, machine.settings.join(","));
                }
                Ok(machine)
            }
            _ => Err(faults),
        }
    }
}

/// The file of a machine with its settings and all that follows from them, and the paths of the values that it leaves out.
pub(crate) fn completed(
    source: &Arc<Source>,
    settings: &[Setting],
    faults: &mut Diagnostics,
) -> Result<(TomlDocument, Vec<String>), Diagnostics> {
    let mut document = TomlDocument::parse(source)?;
    // What is filled in follows from other values, and can be set itself: faults are noted below.
    for setting in settings {
        let _noted_below = document.set_known(setting, &keys::value_like);
    }
    let mut left_out = core_class::fill(&mut document);
    left_out.retain(|path| settings.iter().all(|setting| setting.key.text != *path));
    for setting in settings {
        faults.absorb(document.set_known(setting, &keys::value_like));
    }
    faults.absorb(choices::apply(&mut document));
    // What was set by its own name wins over what a choice brought.
    for setting in settings {
        let _noted_above = document.set_known(setting, &keys::value_like);
    }
    Ok((document, left_out))
}

/// The keys that reading this machine asks for, each with its table: what [`crate::keys`] has to declare.
#[doc(hidden)]
pub fn keys_asked(source: &Arc<Source>) -> Result<BTreeSet<(String, String)>, Diagnostics> {
    let mut document = TomlDocument::parse(source)?;
    core_class::fill(&mut document);
    choices::apply(&mut document)?;
    let log = RefCell::new(BTreeSet::new());
    file::read_from(source, &document, document.reader().logged(&log))?;
    Ok(log.into_inner())
}

fn unknown(spec: &Spec) -> Diagnostics {
    let name = &spec.name;
    let known = || BUILTIN.iter().map(|(name, _)| *name);
    let patched = name.text.split('+').next().filter(|base| known().any(|k| k == *base));
    let help = if patched.is_some_and(|base| base != name.text) {
        "a machine takes settings (`NAME:KEY=VALUE`); patches belong to kernels".to_string()
    } else if std::path::Path::new(&name.text).is_file() {
        format!("write `./{}` for the file", name.text)
    } else if let Some(near) = did_you_mean(&name.text, known()) {
        format!("did you mean `{near}`?")
    } else {
        let all: Vec<String> = known().map(|k| format!("`{k}`")).collect();
        format!("built in: {}; a path ends in .toml or contains `/`", all.join(", "))
    };
    let mut faults = Diagnostics::new();
    faults.push_at(&name.at, format!("there is no machine `{}`", name.text), Some(help));
    faults
}
