// SPDX-License-Identifier: GPL-2.0-or-later
//! A checked workload: where it comes from, what a user should know of it, and how it is started.

use crate::builtin::benchmark::Chosen;
use crate::builtin::{self, Builtin, options};
use crate::jobs;
use crate::program::code::Code;
use crate::recorded::Recording;
use crate::rtapp::reader;
use crate::{Programs, ThreadSetting};
use schedtwin_input::{Diagnostics, FileKind, Located, Location, Source, did_you_mean_or};
use schedtwin_types::Ns;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The largest file that is read, bytes. The largest published rt-app file has 17 KB.
const FILE_BYTES_MAX: u64 = 4 << 20;
const NS_PER_S: Ns = 1_000_000_000;

/// The properties of the machine that a workload needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The capacity of each CPU at its highest frequency, 1..=1024.
    pub cpu_capacity: Vec<u32>,
    /// How long one loop of rt-app's busy work takes at capacity 1024, nanoseconds, at least 1.
    pub ns_per_loop: u64,
    /// The bandwidth that threads of SCHED_DEADLINE may reserve together before the kernel says
    /// EBUSY, 2^20 = all of a CPU of capacity
    /// 1024; `None`: there is no limit.
    pub dl_bandwidth: Option<u64>,
    /// The work of copying 1024 bytes: setting as many is taken to cost the same.
    pub copy_per_kib: u64,
    /// Names of the machine's block devices, in their order; threads that do I/O need one.
    pub block_devices: Vec<String>,
}

/// A checked workload that knows no machine yet. Cheap to clone.
///
/// ```
/// use schedtwin_input::Source;
/// use schedtwin_workload::Workload;
///
/// let text = r#"{ "tasks": { "a": { "rum": 10, "sleep": -5 } } }"#;
/// let faults = Workload::parse_rtapp(Source::new("a.json", text)).unwrap_err();
/// assert_eq!(
///     faults.to_string(),
///     "a.json:1:21: unknown key \"rum\" in \"a\"\n  help: did you mean `run`?\n\
///      a.json:1:41: \"sleep\" is -5, outside 0..=2147483647\n  help: give microseconds"
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Workload {
    name: String,
    checked: Arc<dyn Checked>,
    /// Replaces the file's duration.
    duration: Option<Ns>,
    /// The system beside which it runs, and where that was named.
    system: Option<Located<String>>,
}

/// The interface of every kind of workload once it is checked: an rt-app file, a recording, a
/// benchmark.
///
/// A kind implements it in its own module. Its running threads are a kind of [`Programs`].
pub(crate) trait Checked: Debug + Send + Sync {
    /// As [`Workload::describe`].
    fn describe(&self) -> String {
        String::new()
    }

    /// As [`Workload::notices`].
    fn notices(&self) -> &[String] {
        &[]
    }

    /// As [`Workload::pending`].
    fn pending(&self) -> &Diagnostics {
        &NOTHING_PENDING
    }

    /// As [`Workload::check_that_it_ends`], without a duration.
    fn endless(&self) -> Diagnostics {
        Diagnostics::new()
    }

    /// As [`Workload::gives_clamps`].
    fn gives_clamps(&self) -> bool {
        false
    }

    /// As [`Workload::has_rt_tasks`].
    fn has_rt_tasks(&self, _host: &Host) -> bool {
        false
    }

    /// The names of metrics that nobody else measures.
    fn own_metrics(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// As [`Workload::bytes`].
    fn bytes(&self) -> &[u8];

    /// As [`Workload::with_thread_settings`]; `None`: threads of this kind of workload take none.
    fn with_thread_settings(
        &self,
        _settings: &[ThreadSetting],
        _pids: Option<&BTreeSet<u32>>,
    ) -> Option<Changed> {
        None
    }

    /// As [`Workload::code`].
    fn code(&self, _host: &Host, _duration: Option<Ns>) -> Option<Result<Code, Diagnostics>> {
        None
    }

    /// As [`Workload::instantiate`], ended after `duration` if there is one.
    fn instantiate(
        &self,
        host: &Host,
        seed: u64,
        duration: Option<Ns>,
    ) -> Result<Programs, Diagnostics>;
}

/// A workload whose threads have other settings, or what is wrong with them, a sentence each.
pub(crate) type Changed = Result<Arc<dyn Checked>, Vec<String>>;

/// The pending features of most kinds of workloads: none.
static NOTHING_PENDING: Diagnostics = Diagnostics(Vec::new());

impl Workload {
    /// A built-in workload by name with its options (`w1`, `periodic -f 73 -t 12`), or an rt-app file by path
    /// (`my/file.json`); or several of them as jobs (`setsid w1 & cgroup=/a my/file.json`).
    ///
    /// `--system NAME` anywhere in it names the system beside which the workload runs, in the place of what its file says
    /// (`system` of an rt-app file's `global`):
    ///
    /// ```
    /// use schedtwin_workload::Workload;
    /// let workload = Workload::from_path_or_name("periodic -f 60 --system server-linux").unwrap();
    /// assert_eq!(workload.system().unwrap().value, "server-linux");
    /// assert_eq!(workload.name(), "periodic -f 60 --system server-linux");
    /// // A phone's benchmark then leaves out the threads of a system that it has itself.
    /// let phone = Workload::from_path_or_name("uibench --system phone-android").unwrap();
    /// assert_eq!(phone.name(), "uibench --background 0 --system phone-android");
    /// ```
    pub fn from_path_or_name(spec: &str) -> Result<Workload, Diagnostics> {
        let Some((system, mut rest)) = system_of(spec)? else { return Workload::alone(spec) };
        // A phone's benchmark would bring the threads of a system of its own.
        let first = rest.split_whitespace().next().unwrap_or_default();
        let options = builtin::builtin(first).map_or(&[][..], Builtin::options);
        let brings_one = options.iter().any(|option| option.long == "background");
        if brings_one && !jobs::is_line(&rest) && !rest.contains("--background") {
            rest.push_str(" --background 0");
        }
        let workload = Workload::alone(rest.trim())?;
        let name = format!("{} --system {}", workload.name, system.value);
        Ok(Workload { name, system: Some(system), ..workload })
    }

    /// The system beside which it runs, if one was named.
    pub fn system(&self) -> Option<&Located<String>> {
        self.system.as_ref()
    }

    /// A workload whose words do not name a system.
    fn alone(spec: &str) -> Result<Workload, Diagnostics> {
        if jobs::is_line(spec) {
            return jobs::read(spec);
        }
        let first = spec.split_whitespace().next().unwrap_or_default();
        if let Some(known) = builtin::builtin(first) {
            return Workload::built_in(known, spec);
        }
        let is_json = Path::new(spec).extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
        if is_json || spec.contains('/') || Path::new(spec).exists() {
            let file = read_file(spec)?;
            if spec.ends_with(".toml") {
                let named = Source::new("<command line>", spec);
                FileKind::Workload.expect(&file, &Location::new(&named, 0..spec.len()))?;
            }
            if !is_json && !file.text.trim_start().starts_with(['{', '/', '#']) {
                let mut faults = Diagnostics::new();
                let message = "not an rt-app file, which is JSON".to_owned();
                faults.push_whole(&file, message, Some(WHAT_IS_TAKEN.to_owned()));
                return Err(faults);
            }
            return Workload::parse_rtapp(file);
        }
        let mut faults = Diagnostics::new();
        let known = builtin::builtin_names();
        let names = known.iter().map(|(name, _)| *name);
        let help = did_you_mean_or(first, names.clone(), || {
            Some(format!(
                "built in are {}; an rt-app file is given by its path",
                names.collect::<Vec<_>>().join(", ")
            ))
        });
        let source = Source::new("<command line>", spec);
        faults.push(&source, 0..spec.len(), format!("unknown workload \"{spec}\""), help);
        Err(faults)
    }

    /// Jobs under their line, which end by themselves.
    pub(crate) fn of_jobs(
        name: String,
        checked: Arc<dyn Checked>,
        system: Option<Located<String>>,
    ) -> Workload {
        Workload { name, checked, duration: None, system }
    }

    /// The names of metrics that nobody else measures.
    pub(crate) fn own_metrics(&self) -> Vec<&'static str> {
        self.checked.own_metrics()
    }

    /// A built-in with the options that follow its name in `spec`.
    fn built_in(known: Builtin, spec: &str) -> Result<Workload, Diagnostics> {
        let source = Source::new("<command line>", spec);
        let word = known.name();
        let behind = spec.find(word).unwrap_or(0) + word.len();
        let values = options::read(&source, behind, word, known.options())?;
        match known {
            Builtin::RtApp(file) => {
                let text = Source::new(format!("<built in> {word}"), file.text);
                let workload = Workload::parse_rtapp(text)?;
                Ok(Workload { name: word.to_owned(), ..workload })
            }
            Builtin::Benchmark(benchmark) => {
                if let Some(message) = benchmark.check(&values) {
                    let mut faults = Diagnostics::new();
                    faults.push(&source, behind..spec.len(), message, None);
                    return Err(faults);
                }
                let name = spec.split_whitespace().collect::<Vec<_>>().join(" ");
                let duration = benchmark.duration(&values);
                let checked = Arc::new(Chosen::new(benchmark, values));
                Ok(Workload { name, checked, duration, system: None })
            }
        }
    }

    /// Describes the parts and the options of a built-in model; of a file returns its text.
    pub fn describe(&self) -> String {
        self.checked.describe()
    }

    /// Reads and checks an rt-app file. The name is the source's without folders and ending.
    pub fn parse_rtapp(source: Arc<Source>) -> Result<Workload, Diagnostics> {
        if source.text.len() as u64 > FILE_BYTES_MAX {
            let mut faults = Diagnostics::new();
            faults.push_whole(&source, too_large(), None);
            return Err(faults);
        }
        let stem = Path::new(&source.name)
            .file_stem()
            .map_or_else(|| source.name.clone(), |s| s.to_string_lossy().into_owned());
        let model = reader::read(source)?;
        let duration = model.global.duration_s.map(|s| Ns::from(s) * NS_PER_S);
        let system = model.global.system.clone().map(|(value, span)| {
            let at = Location::new(&model.source, span);
            Located { value, at }
        });
        Ok(Workload { name: stem, checked: Arc::new(model), duration, system })
    }

    /// Makes a workload from a recording of threads, under a name.
    pub fn recorded(name: impl Into<String>, recording: Recording) -> Workload {
        let duration = Some(recording.duration());
        Workload { name: name.into(), checked: Arc::new(recording), duration, system: None }
    }

    /// This workload, and what was recorded beside it at the same time: two jobs ([`job_names`]) that begin together. Threads of
    /// the recording that are this workload's own should be left out of it.
    ///
    /// [`job_names`]: crate::job_names
    #[must_use]
    pub fn beside(self, recorded: Workload) -> Workload {
        jobs::beside(self, recorded)
    }

    /// The name of the built-in, or of the file without folders and `.json`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long it runs; `None`: until all threads have ended.
    pub fn duration(&self) -> Option<Ns> {
        self.duration
    }

    /// The same workload, ended after `duration` instead of what the file says.
    #[must_use]
    pub fn with_duration(mut self, duration: Ns) -> Workload {
        self.duration = Some(duration);
        self
    }

    /// Refuses a file without a duration that has tasks which repeat their phases for ever: its run would never end.
    ///
    /// ```
    /// use schedtwin_input::Source;
    /// use schedtwin_workload::Workload;
    /// let text = r#"{ "tasks": { "a": { "loop": -1, "run": 1000, "sleep": 1000 } } }"#;
    /// let endless = Workload::parse_rtapp(Source::new("a.json", text)).unwrap();
    /// let faults = endless.check_that_it_ends().unwrap_err();
    /// assert!(faults.to_string().contains("\"a\" runs for ever"), "{faults}");
    /// assert!(endless.with_duration(1_000_000).check_that_it_ends().is_ok());
    /// ```
    pub fn check_that_it_ends(&self) -> Result<(), Diagnostics> {
        match self.duration {
            Some(_) => Ok(()),
            None => self.checked.endless().into_result(()),
        }
    }

    /// The same workload, of which threads have other settings, found by their names.
    ///
    /// Fails if no thread has such a name, or if the workload is a model of a benchmark: its threads get what their
    /// benchmark gives them.
    ///
    /// ```
    /// use schedtwin_workload::{ThreadSetting, Workload};
    /// let set = |text| vec![ThreadSetting::parse(text).unwrap().unwrap()];
    /// let workload = Workload::from_path_or_name("w1").unwrap();
    /// assert!(workload.with_thread_settings(&set("nice job=10")).is_ok());
    /// let fault = workload.with_thread_settings(&set("nice jab=10")).unwrap_err().to_string();
    /// assert!(fault.contains("no thread is called that; there are job"), "{fault}");
    /// ```
    pub fn with_thread_settings(
        &self,
        settings: &[ThreadSetting],
    ) -> Result<Workload, Diagnostics> {
        self.with_settings_among(settings, None)
    }

    /// As [`Workload::with_thread_settings`]: of a recording, only those threads get a setting whose pids are among these.
    pub fn with_settings_of_pids(
        &self,
        settings: &[ThreadSetting],
        pids: &BTreeSet<u32>,
    ) -> Result<Workload, Diagnostics> {
        self.with_settings_among(settings, Some(pids))
    }

    fn with_settings_among(
        &self,
        settings: &[ThreadSetting],
        pids: Option<&BTreeSet<u32>>,
    ) -> Result<Workload, Diagnostics> {
        if settings.is_empty() {
            return Ok(self.clone());
        }
        let refused = || {
            vec![format!(
                "threads of {} take no settings: those of rt-app files and of recordings do",
                self.name
            )]
        };
        let changed = self.checked.with_thread_settings(settings, pids);
        match changed.unwrap_or_else(|| Err(refused())) {
            Ok(checked) => Ok(Workload { checked, ..self.clone() }),
            Err(messages) => {
                let mut faults = Diagnostics::new();
                for message in messages {
                    faults.push_whole(&Source::new("setting", ""), message, None);
                }
                Err(faults)
            }
        }
    }

    /// The instructions of an rt-app file's threads for a machine, to be executed there; `None`: it is no rt-app file.
    ///
    /// ```
    /// use schedtwin_workload::{Host, Workload};
    /// let host = Host { cpu_capacity: vec![1024; 8], ns_per_loop: 1, dl_bandwidth: None, copy_per_kib: 60, block_devices: Vec::new() };
    /// let code = Workload::from_path_or_name("w1").unwrap().code(&host).unwrap().unwrap();
    /// assert_eq!((code.start.len(), code.duration), (40, Some(60_000_000_000)));
    /// assert!(Workload::from_path_or_name("jankbench").unwrap().code(&host).is_none());
    /// ```
    pub fn code(&self, host: &Host) -> Option<Result<Code, Diagnostics>> {
        self.checked.code(host, self.duration)
    }

    /// Whether tasks of the file ask for utilisation clamps (`util_min`, `util_max`), which not every kernel has.
    pub fn gives_clamps(&self) -> bool {
        self.checked.gives_clamps()
    }

    /// Whether any task runs as `SCHED_FIFO` or `SCHED_RR`, for a while at least, on such a machine.
    pub fn has_rt_tasks(&self, host: &Host) -> bool {
        self.checked.has_rt_tasks(host)
    }

    /// Returns notices that a user should know although the workload runs.
    pub fn notices(&self) -> Vec<String> {
        self.checked.notices().to_vec()
    }

    /// Returns requests of the file that the twin understands but does not model yet: with any of
    /// them,
    /// [`Workload::instantiate`] refuses.
    pub fn pending(&self) -> &Diagnostics {
        self.checked.pending()
    }

    /// The bytes that it was read from, for hashing; of a recording a digest of what is replayed, of a model
    /// its name and all its options.
    pub fn bytes(&self) -> &[u8] {
        self.checked.bytes()
    }

    /// Fits the workload to a machine and makes its threads.
    ///
    /// Fails if the file names a CPU that the machine does not have, and if it has something
    /// that is not modelled ("is not modelled: memory-bound work"); all of it at once. `seed` is for benchmark
    /// models, which draw the work of their threads; nothing in rt-app's language or a recording is random.
    ///
    /// # Panics
    ///
    /// If the host has no CPU.
    pub fn instantiate(&self, host: &Host, seed: u64) -> Result<Programs, Diagnostics> {
        assert!(!host.cpu_capacity.is_empty(), "a machine has at least one CPU");
        self.checked.instantiate(host, seed, self.duration)
    }
}

fn too_large() -> String {
    format!("larger than {} MiB; an rt-app file is not", FILE_BYTES_MAX >> 20)
}

/// What `-w` takes.
const WHAT_IS_TAKEN: &str = "-w takes an rt-app file (.json) or a name of `schedtwin list workloads`; `schedtwin replay` plays traces";

/// The text of a file, or why it cannot be had.
fn read_file(path: &str) -> Result<Arc<Source>, Diagnostics> {
    let fault = |message: String, text: String, at: usize| {
        let mut faults = Diagnostics::new();
        faults.push(&Source::new(path, text), at..at, message, Some(WHAT_IS_TAKEN.to_owned()));
        Err(faults)
    };
    if Path::new(path).is_dir() {
        return fault("it is a directory; a workload is a file".to_owned(), String::new(), 0);
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path);
    match file.and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)) {
        Err(error) => return fault(format!("cannot be read: {error}"), String::new(), 0),
        Ok(length) if length as u64 > FILE_BYTES_MAX => {
            return fault(too_large(), String::new(), 0);
        }
        Ok(_) => {}
    }
    match String::from_utf8(bytes) {
        // A byte order mark is no part of the text.
        Ok(text) => Ok(Source::new(path, text.strip_prefix('\u{feff}').unwrap_or(&text))),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            fault("not an rt-app file: it is not UTF-8 text".to_owned(), text, at)
        }
    }
}

/// The system that `--system NAME` names, and the other words with nothing in its place, so that positions stay.
pub(crate) fn system_of(spec: &str) -> Result<Option<(Located<String>, String)>, Diagnostics> {
    const WORD: &str = "--system";
    let begins = |at: &usize| {
        let before = spec[..*at].chars().next_back().is_none_or(char::is_whitespace);
        let after = spec[at + WORD.len()..].chars().next();
        before && after.is_none_or(|c| c.is_whitespace() || c == '=')
    };
    let found: Vec<usize> = spec.match_indices(WORD).map(|(at, _)| at).filter(begins).collect();
    let source = Source::new("<command line>", spec);
    let fault = |at: usize, message: &str| {
        let mut faults = Diagnostics::new();
        let help = "--system NAME, once; `schedtwin list systems` lists them".to_string();
        faults.push(&source, at..at + WORD.len(), message.to_string(), Some(help));
        Err(faults)
    };
    match found[..] {
        [] => Ok(None),
        [at] => {
            let behind = &spec[at + WORD.len()..];
            let begin = behind.trim_start_matches(|c: char| c.is_whitespace() || c == '=');
            let length = begin.find(char::is_whitespace).unwrap_or(begin.len());
            let start = spec.len() - begin.len();
            let name = &spec[start..start + length];
            if name.is_empty() || name == "&" {
                return fault(at, "--system names no system");
            }
            let blank = " ".repeat(start + length - at);
            let rest = format!("{}{blank}{}", &spec[..at], &spec[start + length..]);
            let at = Location::new(&source, start..start + length);
            Ok(Some((Located { value: name.to_string(), at }, rest)))
        }
        [_, second, ..] => fault(second, "two systems are named"),
    }
}
