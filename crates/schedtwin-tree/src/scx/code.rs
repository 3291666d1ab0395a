// SPDX-License-Identifier: GPL-2.0-or-later
//! A scheduler's C, compiled, with what is set of it.

use super::TreeExt;
use super::layout::{Entries, NAME_BYTES, Ops};
use super::loader::{self, IN_USER_SPACE, SLICES};
use super::maps::Map;
use super::programs::{Program, SCHED_SWITCH};
use super::units::Units;
use super::userland;
use super::{meaning, names};
use crate::built::Built;
use crate::compile::{self, Job, Own};
use crate::elf;
use crate::ext_setting::{ExtSetting, OF_ALL};
use crate::fault::Refusal;
use crate::options::{ExtOptions, OPTIONS_FILE};
use crate::sources::Sources;
use crate::steps::Action;
use crate::symbols::{Place, Symbol, Symbols};
use crate::watch::{Question, Watched};
use crate::{Fault, Tree};
use schedtwin_input::{Diagnostics, Source, did_you_mean, did_you_mean_or};
use schedtwin_kernel::policy::{ExtScheduler, LoaderForm, OP_COST_NS};
use schedtwin_types::MAX_CPUS;
use std::sync::Arc;

/// Our own units beside a scheduler's.
const GLUE: [&str; 3] = ["scx.c", "scx_maps.c", "scx_masks.c"];
/// What a unit of the scheduler begins with. Each unit may say its license.
const ABOVE: &str =
    "#include <schedtwin/scx.h>\n#define _license __attribute__((__weak__)) _license\n";
/// Where a tree has its helpers for sets of CPUs by topology.
const CID_FILE: &str = "include/scx/cid.bpf.h";

/// A scheduler's C, compiled, with the values that its loader would write.
#[derive(Clone, Debug)]
pub struct ExtCode {
    pub(super) built: Built,
    pub(super) symbols: Arc<Symbols>,
    pub(super) maps: Arc<Vec<Map>>,
    /// The function that hears of `sched_switch`.
    pub(super) on_switch: Option<u64>,
    /// It does so in the place of `cpu_release`.
    pub(super) drops_release: bool,
    pub(super) writes: Arc<Vec<(Place, u64)>>,
    pub(super) op_cost_ns: u64,
    pub(super) timeout_ms: Option<u32>,
    pub(super) flags: Option<u64>,
    /// Flags that options have set, beside those.
    pub(super) more_flags: u64,
    /// `ops.name`.
    pub(super) name: String,
    /// Its program decides, and is a task.
    pub(super) has_program: bool,
    /// What its program sets, and lets its user set.
    pub(super) options: Arc<ExtOptions>,
}

impl ExtCode {
    /// Compiles `file` of the folder or revision.
    ///
    /// # Errors
    /// If there is no such file, no compiler, or the file does not compile.
    pub fn build(tree: &Tree, file: &str, hz: u64, form: LoaderForm) -> Result<ExtCode, Refusal> {
        let units = Units::gather(tree, file)?;
        let mut sources = units.sources;
        let mut defines = vec![
            format!("HZ={hz}"),
            "SCHEDTWIN_SCX=1".to_string(),
            format!("SCHEDTWIN_NR_CPUS={MAX_CPUS}"),
            format!("SCHEDTWIN_KERNEL_VERSION=KERNEL_VERSION({})", form.version),
            format!("SCHEDTWIN_REENQUEUES_ANYWHERE={}", u8::from(form.reenqueues_anywhere)),
        ];
        if sources.mention("cmask") && sources.add(tree, CID_FILE)? {
            defines.push(format!("SCHEDTWIN_CID_FILE=\"{}/{CID_FILE}\"", compile::STAGE));
        }
        let beside = options_beside(tree, file, &mut sources)?;
        let texts: Vec<_> =
            sources.files.values().map(|text| String::from_utf8_lossy(text)).collect();
        let programs: Vec<Program> = texts.iter().flat_map(|text| Program::all(text)).collect();
        defines.extend(names::left_out(texts.iter().map(|text| &**text)));
        let kptrs = names::kptrs(texts.iter().map(|text| &**text));
        let options = match &beside {
            Some((_, options)) => options.clone(),
            None => loader::known(scheduler_of(file).unwrap_or_default()),
        };
        defines.extend(options.defines);
        let built = Built::new(&Job {
            tree,
            path: file,
            sources: &sources,
            glue: &GLUE,
            units: compile::Units::Own(&Own {
                paths: &units.paths,
                above: ABOVE,
                include: units.include,
                step: compile::Step { version: meaning::VERSION, rewrite: meaning::rewrite },
            }),
            defines: &defines,
        })?;
        let symbols = Symbols::of(built.code.object()).map_err(|fault| Fault {
            message: format!("{file} of {}: {}", tree.spelled(), fault.message),
            ..fault
        })?;
        let maps = Map::all(&symbols, &elf::sizes(built.code.object()), &kptrs);
        let code = ExtCode {
            built,
            on_switch: None,
            drops_release: false,
            symbols: Arc::new(symbols),
            maps: Arc::new(maps),
            writes: Arc::default(),
            op_cost_ns: OP_COST_NS,
            timeout_ms: None,
            flags: None,
            more_flags: 0,
            name: String::new(),
            has_program: false,
            options: Arc::default(),
        };
        code.with_options(beside)?.checked(programs, form)
    }

    /// With the options of the file beside it, or of a known program.
    fn with_options(
        mut self,
        beside: Option<(Arc<Source>, ExtOptions)>,
    ) -> Result<ExtCode, Refusal> {
        self.name = self.name_in_data().unwrap_or_default();
        let Some((source, options)) = beside else {
            self.options = Arc::new(loader::known(&self.name));
            return Ok(self);
        };
        // A misspelled variable of a file of the user's is a fault of that file.
        let mut faults = Diagnostics::new();
        let options = Arc::new(options);
        let written = options.options.iter().flat_map(|option| &option.writes);
        for (path, _) in options.sets.iter().chain(written) {
            if let Err(fault) = self.place(path) {
                let quoted = format!("\"{path}\"");
                let at = source.text.find(&quoted).map_or(0..0, |at| at..at + quoted.len());
                faults.push(&source, at, fault.message, fault.help);
            }
        }
        for (written, fault) in self.unknown_in_steps(&options) {
            let quoted = format!("\"{written}\"");
            let at = source.text.find(&quoted).map_or(0..0, |at| at..at + quoted.len());
            faults.push(&source, at, fault.message, fault.help);
        }
        self.options = options;
        if faults.is_empty() { Ok(self) } else { Err(Refusal::Faults(faults)) }
    }

    /// Variables, maps and programs of the steps that the scheduler does not have.
    fn unknown_in_steps(&self, options: &ExtOptions) -> Vec<(String, Fault)> {
        let mut unknown = Vec::new();
        for step in &options.machine {
            match &step.action {
                Action::Set(sets) => {
                    for (path, _) in sets {
                        if self.symbols.get(path.root()).is_none()
                            && let Err(fault) = self.place(path.root())
                        {
                            unknown.push((path.text.clone(), fault));
                        }
                    }
                }
                Action::Run(run) if self.symbols.get(&run.program).is_none() => {
                    let message = format!("{} has no program `{}`", self.name(), run.program);
                    let help = "programs that a loader runs are functions of SEC(\"syscall\")";
                    unknown.push((run.program.clone(), Fault::new(message, help)));
                }
                _ => {}
            }
        }
        unknown
    }

    /// `ops.name`, read from the object's data: nothing of it has been loaded yet.
    fn name_in_data(&self) -> Option<String> {
        let data = self.built.code.data();
        let ops = usize::try_from(self.symbols.get("schedtwin_scx_ops")?.offset()).ok()?;
        let ops: [u8; 8] = data.get(ops..ops.checked_add(8)?)?.try_into().ok()?;
        let name = std::mem::offset_of!(Ops, name);
        let name = usize::try_from(u64::from_le_bytes(ops)).ok()?.checked_add(name)?;
        let bytes = data.get(name..)?.iter().take(NAME_BYTES).take_while(|byte| **byte != 0);
        Some(String::from_utf8_lossy(&bytes.copied().collect::<Vec<u8>>()).into_owned())
    }

    /// Refuses what compiles and would not be true, all of it at once.
    fn checked(mut self, programs: Vec<Program>, form: LoaderForm) -> Result<ExtCode, Refusal> {
        let mut refused: Vec<String> = self.maps.iter().filter_map(Map::refused).collect();
        let has = |name: &&str| self.symbols.get(name).is_some();
        let has_program = self.name == userland::NAME && userland::PARTS.iter().all(has);
        if let Some(part) = IN_USER_SPACE.iter().find(|name| has(name) && !has_program) {
            refused.push(format!("a part of it decides in user space (`{part}`)"));
        }
        self.has_program = has_program;
        for Program { section, function, optional } in programs {
            if !has(&&*function) {
                // Of a file that is not compiled, or compiled without it.
                continue;
            }
            if section == SCHED_SWITCH {
                // Loaders run an optional one where it can do what `cpu_release` is for.
                if !optional || form.reenqueues_anywhere {
                    self.on_switch = self.symbols.get(&function).map(Symbol::offset);
                    self.drops_release = optional;
                }
            } else if !self.options.leaves_off.contains(&function) {
                refused.push(format!("the program `{function}` of {section} would hear nothing"));
            }
        }
        match refused.is_empty() {
            true => Ok(self),
            false => Err(Refusal::Code(Fault::new(
                format!("{} cannot be run: {}", self.name(), refused.join("; ")),
                "docs/sched-ext.md says what works",
            ))),
        }
    }

    /// With a setting.
    ///
    /// # Errors
    /// If the scheduler has no such variable, or the value does not fit into it.
    pub fn with(mut self, setting: &ExtSetting) -> Result<ExtCode, Fault> {
        match setting {
            ExtSetting::OpNs(ns) => self.op_cost_ns = *ns,
            ExtSetting::Flags(flags) => self.flags = Some(*flags),
            ExtSetting::TimeoutMs(ms) => self.timeout_ms = Some(*ms),
            ExtSetting::SliceUs(us) if self.options.option("slice_us").is_some() => {
                return self.with_option("slice_us", *us as i64);
            }
            ExtSetting::Option(name, value) => return self.with_option(name, *value),
            ExtSetting::SliceUs(us) => {
                let known = SLICES.into_iter().find(|name| self.symbols.get(name).is_some());
                let Some(name) = known else {
                    return Err(Fault::new(
                        format!("{} has no slice that its loader sets", self.name()),
                        format!("it would be called {}", SLICES.join(" or ")),
                    ));
                };
                self.write(name, (*us * 1000) as i64)?;
            }
            ExtSetting::Variable(name, value) => self.write(name, *value)?,
        }
        Ok(self)
    }

    /// With an option of its program.
    fn with_option(mut self, name: &str, value: i64) -> Result<ExtCode, Fault> {
        let options = self.options.clone();
        let Some(option) = options.option(name) else {
            let own = options.options.iter().map(|option| option.name.as_str());
            let known = own.chain(OF_ALL).map(|name| format!("scx.{name}"));
            let known: Vec<String> = known.collect();
            let asked = format!("scx.{name}");
            let help = did_you_mean_or(&asked, known.iter().map(String::as_str), || {
                Some(format!("there are {}", known.join(", ")))
            });
            let message = format!("{} has no setting `{asked}`", self.name());
            return Err(Fault { message, help });
        };
        let written = option.written(value).map_err(|help| {
            Fault::new(format!("`scx.{name}` is {value}"), format!("{help}; {}", option.line()))
        })?;
        for (path, value) in written {
            self.write(&path, value)?;
        }
        let bit = option.flag.unwrap_or(0);
        self.more_flags = if value == 0 { self.more_flags & !bit } else { self.more_flags | bit };
        Ok(self)
    }

    fn write(&mut self, path: &str, value: i64) -> Result<(), Fault> {
        let place = self.place(path)?;
        let bits = 8 * place.bytes as u32;
        if bits < 64 && !(-(1 << (bits - 1))..1 << bits).contains(&value) {
            let message = format!("{value} does not fit into `{path}` of {bits} bits");
            return Err(Fault::new(message, "see its declaration"));
        }
        Arc::make_mut(&mut self.writes).push((place, value as u64));
        Ok(())
    }

    /// Where a variable, an element or a member is.
    fn place(&self, path: &str) -> Result<Place, Fault> {
        let name = path.split(['.', '[']).next().unwrap_or(path);
        let Some(symbol) = self.symbols.get(name) else {
            let known = self.symbols.iter().map(|(name, _)| name);
            let near = did_you_mean(name, known.filter(|name| !name.contains("schedtwin")));
            let help = near.map_or_else(
                || "variables outside of functions can be set, by their names".to_string(),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Fault::new(format!("{} has no variable `{name}`", self.name()), help));
        };
        if self.symbols.is_constant(name) {
            let message = format!("`{name}` of {} is constant: it keeps its value", self.name());
            return Err(Fault::new(message, "what loaders write is `const volatile`"));
        }
        let Some(place) = self.symbols.place(path) else {
            let message = format!("`{path}` of {} is no number", self.name());
            let help = match &symbol.shape {
                crate::symbols::Shape::Array(_, count) => {
                    format!("`{name}` has elements 0 to {}", count.saturating_sub(1))
                }
                _ => "numbers of 1, 2, 4 and 8 bytes can be set, elements by [N], members by .NAME"
                    .into(),
            };
            return Err(Fault::new(message, help));
        };
        Ok(place)
    }

    /// `scx_simple.bpf.c of ~/scx`.
    pub fn name(&self) -> &str {
        &self.built.name
    }

    /// The options of its program, a line each.
    pub fn options(&self) -> Vec<String> {
        self.options.options.iter().map(|option| option.line()).collect()
    }

    /// Of everything that decides what it does.
    pub fn hash(&self) -> u64 {
        self.built.hash
    }

    /// A scheduler of a machine that is about to boot.
    ///
    /// # Panics
    /// If the object can no longer be loaded.
    pub fn scheduler(&self) -> Box<dyn ExtScheduler> {
        let image = self.built.code.image();
        let image = image.unwrap_or_else(|fault| panic!("{}: {}", self.name(), fault.message));
        let label = self.built.code.label;
        let entries = Entries::of(&image);
        let watched = Watched { label, question: Question::Boot, cpu: 0 };
        // SAFETY: the image is resident; the structure is the object's own, of the type in scx.h.
        let mut ops = image.ask(watched, || unsafe { *(entries.boot)(MAX_CPUS as u32) });
        if self.drops_release {
            ops.cpu_release = None;
        }
        Box::new(TreeExt {
            entries,
            image,
            watched,
            ops,
            code: self.clone(),
            tasks: Vec::new(),
            touched: Vec::new(),
            cgroups: Vec::new(),
            cids: None,
            program: Default::default(),
            program_pid: 0,
        })
    }
}

/// The name of a scheduler of the scx repository by its file: its own name is known only when it is compiled.
fn scheduler_of(file: &str) -> Option<&str> {
    let (folder, _) = file.rsplit_once("/src/bpf/")?;
    folder.rsplit('/').next()?.strip_prefix("scx_")
}

/// The file of options beside a scheduler, which decides as much as its C.
fn options_beside(
    tree: &Tree,
    file: &str,
    sources: &mut Sources,
) -> Result<Option<(Arc<Source>, ExtOptions)>, Refusal> {
    let stem = file.strip_suffix(".c").unwrap_or(file);
    let path = format!("{}{OPTIONS_FILE}", stem.strip_suffix(".bpf").unwrap_or(stem));
    if !sources.add(tree, &path)? {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&sources.files[&path]).into_owned();
    let source = Source::new(format!("{}/{path}", tree.spelled()), text);
    let options = ExtOptions::read(&source).map_err(Refusal::Faults)?;
    Ok(Some((source, options)))
}
