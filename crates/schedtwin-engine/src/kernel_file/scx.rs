// SPDX-License-Identifier: GPL-2.0-or-later
//! Schedulers of sched_ext: `scx=PATH`, and what their loaders would set.
//!
//! | spelled | means |
//! |---|---|
//! | `scx=simple`, `scx=fifo` | the built-in scheduler with one queue: fairly by weight, or in turn |
//! | `scx=random`, `scx=random-FAULT` | a built-in one that does everything that a scheduler may, at random, with a mistake or none: for tests |
//! | `scx=random-partial` | the same, for `SCHED_EXT` tasks only |
//! | `scx=PATH/NAME.bpf.c`, `scx=PATH/NAME.bpf.c@REVISION` | C, as it lies there or in a revision of its git repository |
//! | `scx.slice_us=N` | the slice that its loader sets, by whichever name the scheduler has for it |
//! | `scx.rodata.NAME=N` | any variable outside of functions, before the scheduler is loaded |
//! | `scx.timeout_ms=N` | the watchdog's time, in the place of the scheduler's own |
//! | `scx.OPTION=N` | an option of its program, as `NAME.options.json` beside the C has it, or a known program |
//! | `scx.op_ns=N` | what each callback costs |
//! | `scx.load_ms=N`, `scx.unload_ms=N` | when its user loads and unloads it; else it is there before time begins, and stays |
//! | `scx.flags=N` | `SCX_OPS_*`, in the place of the scheduler's own |
//!
//! These are no settings of a kernel file: the scheduler stands behind the policy interface.

use super::KernelFile;
use super::own::{WITH_EXT, no_sched_ext};
use super::tree::TreeCode;
use schedtwin_input::{Diagnostics, Location, Setting, Word, did_you_mean};
use schedtwin_kernel::policy::{ExtLoading, ExtScheduler, Fault, LoaderForm, Random, Simple};
use schedtwin_tree::{ExtCode, ExtSetting, Tree};

/// How a scheduler is asked for, and how its settings begin.
const SCX: &str = "scx";
const PREFIX: &str = "scx.";
const RODATA: &str = "rodata.";
/// The latest time at which a scheduler is loaded or unloaded: a day.
const LATEST_MS: i64 = 86_400_000;
/// Where the scx repository has its schedulers.
const SCHEDULERS_OF_SCX: &str = "scheds/rust/";

/// The built-in schedulers that a user may want.
const BUILT_IN: [&str; 2] = ["simple", "fifo"];

/// Makes the built-in scheduler of a name.
fn built_in(name: &str) -> Option<Box<dyn ExtScheduler>> {
    Some(match name {
        "simple" => Box::new(Simple::new(false)),
        "fifo" => Box::new(Simple::new(true)),
        "random" => Box::<Random>::default(),
        "random-partial" => Box::new(Random::partial()),
        _ => {
            let (_, fault, _) = Fault::ALL.into_iter().find(|(known, ..)| *known == name)?;
            Box::new(Random::with_fault(fault))
        }
    })
}

/// Whether a policy of this name is one of the built-in schedulers, which are as much of a kernel as its settings.
pub(crate) fn is_built_in(policy: &str) -> bool {
    policy.strip_prefix("scx ").is_some_and(|name| built_in(name).is_some())
}

/// The scheduler that a kernel is asked to load.
#[derive(Default)]
pub(super) struct ScxRequest {
    scheduler: Option<Word>,
    settings: Vec<(ExtSetting, Location)>,
    /// Times, in milliseconds, and where they are said.
    load: Option<(u64, Location)>,
    unload: Option<(u64, Location)>,
}

impl ScxRequest {
    /// Takes what is about sched_ext out of the settings; the others remain.
    pub(super) fn take(
        settings: Vec<Setting>,
        faults: &mut Diagnostics,
    ) -> (ScxRequest, Vec<Setting>) {
        let (mut asked, mut others) = (ScxRequest::default(), Vec::new());
        for setting in settings {
            if setting.key.text == SCX {
                asked.scheduler = Some(setting.value);
            } else if let Some(name) = setting.key.text.strip_prefix(PREFIX) {
                match parse(name, &setting) {
                    Ok(Asked::OfScheduler(parsed)) => {
                        asked.settings.push((parsed, setting.key.at));
                    }
                    Ok(Asked::Load(ms)) => asked.load = Some((ms, setting.value.at)),
                    Ok(Asked::Unload(ms)) => asked.unload = Some((ms, setting.value.at)),
                    Err((at, message, help)) => faults.push_at(at, message, Some(help)),
                }
            } else {
                others.push(setting);
            }
        }
        if asked.scheduler.is_none()
            && let Some(at) = asked.first()
        {
            let help = "scx=PATH/NAME.bpf.c names it, before its settings";
            faults.push_at(at, "which scheduler is not said", Some(help.into()));
        }
        if let (Some((load, _)), Some((unload, at))) = (&asked.load, &asked.unload)
            && unload <= load
        {
            let help = format!("it is loaded at {load} ms");
            faults.push_at(at, format!("it is unloaded at {unload} ms, before"), Some(help));
        }
        (asked, others)
    }

    /// Where the first of its settings is.
    fn first(&self) -> Option<&Location> {
        let times = [&self.load, &self.unload].into_iter().flatten().map(|(_, at)| at);
        self.settings.iter().map(|(_, at)| at).chain(times).next()
    }

    fn loading(&self) -> ExtLoading {
        let ns = |of: &Option<(u64, Location)>| of.as_ref().map(|(ms, _)| ms * 1_000_000);
        let at = ns(&self.load).unwrap_or(0);
        ExtLoading { at, until: ns(&self.unload), watchdog_most: None }
    }

    /// Loads the scheduler into the kernel.
    pub(super) fn put_into(self, mut kernel: KernelFile) -> Result<KernelFile, Diagnostics> {
        let Some(word) = self.scheduler.clone() else { return Ok(kernel) };
        if let Some(message) = no_sched_ext(&kernel.config) {
            let mut faults = Diagnostics::new();
            faults.push_at(&word.at, message, Some(WITH_EXT.into()));
            return Err(faults);
        }
        kernel.policies = kernel.policies.with_ext_loading(self.loading());
        if built_in(&word.text).is_some() {
            let name = word.text.clone();
            let mut faults = Diagnostics::new();
            for (setting, at) in &self.settings {
                let message = match setting {
                    ExtSetting::TimeoutMs(ms) => {
                        let most = u64::from(*ms) * 1_000_000;
                        kernel.policies = kernel.policies.with_watchdog_at_most(most);
                        continue;
                    }
                    ExtSetting::Option(option, _) => format!("there is no setting `scx.{option}`"),
                    _ => format!("`{name}` has no settings"),
                };
                let help = "built-in schedulers have scx.timeout_ms, scx.load_ms and scx.unload_ms, those in C more";
                faults.push_at(at, message, Some(help.into()));
            }
            if !faults.is_empty() {
                return Err(faults);
            }
            let policy = format!("scx {name}");
            let make = move || built_in(&name).expect("it is known");
            kernel.policies = kernel.policies.with_ext_scheduler(&policy, make);
            return Ok(kernel);
        }
        let form = kernel.config.scx_loader_form().expect("the class is there");
        let (code, commit) = self.compile(&word, kernel.config.hz.into(), form)?;
        let (name, hash) = (code.name().to_string(), code.hash());
        let options = code.options();
        kernel.code.push(TreeCode { name, hash, commit, options, of_kernel: None });
        let name = code.name().to_string();
        kernel.policies = kernel.policies.with_ext_scheduler(&name, move || code.scheduler());
        Ok(kernel)
    }

    /// The scheduler, and the commit that it is of.
    fn compile(
        self,
        word: &Word,
        hz: u64,
        form: LoaderForm,
    ) -> Result<(ExtCode, Option<String>), Diagnostics> {
        let (path, revision) = match word.text.split_once(".c@") {
            Some((stem, revision)) => (format!("{stem}.c"), format!("@{revision}")),
            None => (word.text.clone(), String::new()),
        };
        if !path.ends_with(".c") {
            let mut faults = Diagnostics::new();
            let help = did_you_mean(&path, BUILT_IN).map_or_else(
                || format!("built in are {}; C is a path that ends in .bpf.c", BUILT_IN.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            faults.push_at(&word.at, format!("there is no scheduler `{path}`"), Some(help));
            return Err(faults);
        }
        // Schedulers of the scx repository consist of files from all over it.
        let in_scx =
            path.find(SCHEDULERS_OF_SCX).filter(|at| *at == 0 || path[..*at].ends_with('/'));
        let (folder, file) = match in_scx {
            Some(at) => (if at == 0 { "." } else { &path[..at - 1] }, &path[at..]),
            None => path.rsplit_once('/').unwrap_or((".", &path)),
        };
        let folder = if folder.is_empty() { "/" } else { folder };
        let tree =
            Tree::find(&format!("{folder}{revision}")).map_err(|fault| fault.at(&word.at))?;
        let code = ExtCode::build(&tree, file, hz, form).map_err(|fault| fault.at(&word.at))?;
        let mut faults = Diagnostics::new();
        let mut with = code;
        for (setting, at) in &self.settings {
            match with.clone().with(setting) {
                Ok(code) => with = code,
                Err(fault) => faults.0.extend(fault.at(at).0),
            }
        }
        if faults.is_empty() { Ok((with, tree.commit_line())) } else { Err(faults) }
    }
}

/// A setting: of the scheduler, or when its user loads and unloads it.
enum Asked {
    OfScheduler(ExtSetting),
    Load(u64),
    Unload(u64),
}

type ParseFault<'a> = (&'a Location, String, String);

fn parse<'a>(name: &str, setting: &'a Setting) -> Result<Asked, ParseFault<'a>> {
    let value = setting.value.text.replace('_', "");
    let number: i64 = match value.as_str() {
        "true" => 1,
        "false" => 0,
        text => text.parse().map_err(|_| {
            let help = "a whole number, true or false".to_string();
            (&setting.value.at, format!("`{}` is no number", setting.value.text), help)
        })?,
    };
    let positive = |most: i64| match (0..=most).contains(&number) {
        true => Ok(number as u64),
        false => {
            let message = format!("`{}` is {number}", setting.key.text);
            Err((&setting.value.at, message, format!("it is between 0 and {most}")))
        }
    };
    let of_scheduler = match (name, name.strip_prefix(RODATA)) {
        ("load_ms", _) => return Ok(Asked::Load(positive(LATEST_MS)?)),
        ("unload_ms", _) => return Ok(Asked::Unload(positive(LATEST_MS)?)),
        (_, Some(variable)) => ExtSetting::Variable(variable.to_string(), number),
        ("slice_us", _) => ExtSetting::SliceUs(positive(100_000_000)?),
        ("timeout_ms", _) => ExtSetting::TimeoutMs(positive(30_000)? as u32),
        ("flags", _) => ExtSetting::Flags(positive(0xffff)?),
        ("op_ns", _) => ExtSetting::OpNs(positive(1_000_000)?),
        _ => ExtSetting::Option(name.to_string(), number),
    };
    Ok(Asked::OfScheduler(of_scheduler))
}
