// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings of this machine: read, applied, put back.
//!
//! A line of settings holds any number of them, with `;` between:
//!
//! | setting | example | where it comes from |
//! |---|---|---|
//! | of threads, by their names | `nice hogs=10` | [`ThreadSetting`] |
//! | of the kernel, as for `-k` | `migration_cost_ns=0` | [`switches`] |
//! | of the work | `timer_slack_ns=1000` | [`give_to_work`] |
//! | of a cgroup | `cpu.max /work=20ms/100ms`, `cpu.weight /work=50`, `cpuset.cpus /work=0-1` | [`groups`] |
//! | of the machine | `smt=off`, `online=0-3` | here |
//!
//! **Read back.** Each value is read back after it was set; a difference is an error like a refusal.
//!
//! **Putting back.** A [`Journal`] has each change before it is made. [`Applied`] puts everything back when it
//! goes; a watching process does so when the process that made the changes was killed.

pub mod groups;
pub mod journal;
pub mod script;
pub mod switches;
pub mod threads;

use groups::GroupSetting;
use journal::{Change, Journal};
use rustix::process::setsid;
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use schedtwin_engine::kernel_file::{self, KernelFile};
use schedtwin_types::Ns;
use schedtwin_workload::{CPU_LIST, ThreadSetting, list_of};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use switches::Switch;

/// Where the journal of `schedtwin settings` is, of which a machine has one.
pub const JOURNAL: &str = "/run/schedtwin/settings.journal";

/// A setting of the kernel that each thread has its own value of, and gets from the thread that starts it.
const TIMER_SLACK: &str = "/proc/PID/timerslack_ns";

const SMT: &str = "/sys/devices/system/cpu/smt/control";

/// Settings that belong together: one column of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Of threads.
    pub threads: Vec<ThreadSetting>,
    /// Of the kernel: `KEY=VALUE`, as for `-k`.
    pub kernel: Vec<String>,
    /// Of cgroups.
    pub groups: Vec<GroupSetting>,
    /// Of the machine: file and value.
    pub machine: Vec<MachineSetting>,
}

/// A setting of the machine that no kernel file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineSetting {
    /// `on`, `off`, `forceoff`.
    Smt(String),
    /// The CPUs that are online.
    Online(schedtwin_types::CpuMask),
}

impl Settings {
    /// Reads a line, or says everything that is wrong with it.
    ///
    /// ```
    /// use schedtwin_live::settings::Settings;
    /// let settings = Settings::parse("nice hogs=10; migration_cost_ns=0").unwrap();
    /// assert_eq!(settings.to_string(), "nice hogs=10; migration_cost_ns=0");
    /// assert_eq!(Settings::parse("").unwrap().to_string(), "as it is");
    /// assert!(Settings::parse("migration_cost=0").unwrap_err()[0].contains("no setting"));
    /// ```
    pub fn parse(line: &str) -> Result<Settings, Vec<String>> {
        let (mut settings, mut faults) = (Settings::default(), Vec::new());
        for text in line.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            if let Some(read) = ThreadSetting::parse(text) {
                read.map_or_else(|f| faults.push(f), |setting| settings.threads.push(setting));
            } else if let Some(read) = GroupSetting::parse(text) {
                read.map_or_else(|f| faults.push(f), |setting| settings.groups.push(setting));
            } else if let Some(read) = machine_setting(text) {
                read.map_or_else(|f| faults.push(f), |setting| settings.machine.push(setting));
            } else if let Err(fault) = check_kernel_setting(text) {
                faults.push(fault);
            } else {
                settings.kernel.push(text.to_owned());
            }
        }
        if faults.is_empty() { Ok(settings) } else { Err(faults) }
    }

    /// A kernel with these settings.
    pub fn kernel_spec(&self, kernel: &str) -> String {
        if self.kernel.is_empty() {
            return kernel.to_owned();
        }
        let between = if kernel.contains(':') { "," } else { ":" };
        format!("{kernel}{between}{}", self.kernel.join(","))
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<String> = self.threads.iter().map(ToString::to_string).collect();
        all.extend(self.kernel.iter().cloned());
        all.extend(self.groups.iter().map(ToString::to_string));
        all.extend(self.machine.iter().map(|setting| match setting {
            MachineSetting::Smt(value) => format!("smt={value}"),
            MachineSetting::Online(cpus) => format!("online={}", list_of(cpus)),
        }));
        f.write_str(if all.is_empty() { "as it is".to_owned() } else { all.join("; ") }.as_str())
    }
}

fn machine_setting(text: &str) -> Option<Result<MachineSetting, String>> {
    let (key, value) = text.split_once('=')?;
    match key.trim() {
        "smt" => Some(match value {
            "on" | "off" | "forceoff" => Ok(MachineSetting::Smt(value.to_owned())),
            _ => Err(format!("{text}: expected on, off or forceoff")),
        }),
        "online" => {
            let list = ThreadSetting::parse(&format!("cpus *={value}"));
            Some(match list {
                Some(Ok(ThreadSetting {
                    value: schedtwin_workload::ThreadValue::Cpus(cpus),
                    ..
                })) => Ok(MachineSetting::Online(cpus)),
                _ => Err(format!("{text}: expected {CPU_LIST}")),
            })
        }
        _ => None,
    }
}

/// Whether `KEY=VALUE` is a setting of some kernel.
fn check_kernel_setting(text: &str) -> Result<(), String> {
    let key = text.split('=').next().unwrap_or_default().trim();
    let words = schedtwin_workload::WORDS.join(", ");
    if !text.contains('=') {
        return Err(format!(
            "{text}: a setting is written WORD THREADS=VALUE ({words}) or KEY=VALUE"
        ));
    }
    match kernel_file::settings().iter().any(|known| known.path == key || known.is_linux_name(key))
    {
        true => Ok(()),
        false => Err(format!(
            "{text}: there is no setting `{key}` (schedtwin list points lists those of kernels; those of threads are {words})"
        )),
    }
}

/// The changes that settings would make now, what the work gives itself, and what cannot be changed, a sentence each.
#[derive(Debug, Default)]
pub struct Planned {
    /// Groups of `changes` that the work enters.
    pub groups: Vec<PathBuf>,
    /// The timer slack of the work.
    pub slack: Option<Ns>,
    /// Names of the threads that were looked at.
    pub threads: BTreeSet<String>,
    /// In the order in which they are made.
    pub changes: Vec<Change>,
    /// What cannot be switched here.
    pub refused: Vec<String>,
}

/// The changes that make this machine have the settings. Of the kernel those count that are named; `whole`: all that it has.
pub fn plan(
    settings: &Settings,
    kernel: &str,
    whole: bool,
    root: &Path,
) -> Result<Planned, schedtwin_input::Diagnostics> {
    let mut planned = Planned::default();
    let named: Vec<&str> =
        settings.kernel.iter().filter_map(|text| Some(text.split_once('=')?.0.trim())).collect();
    let is_named = |of: &kernel_file::Setting| {
        named.iter().any(|key| *key == of.path || of.is_linux_name(key))
    };
    let wanted = KernelFile::load(&settings.kernel_spec(kernel))?;
    let (found, others) = switches::switches(&wanted, |of| whole || is_named(of), root);
    for (setting, switch) in found {
        match switch {
            Switch::Same => {}
            Switch::Writes(writes) => {
                planned.changes.extend(writes.into_iter().map(|write| Change::File {
                    path: write.path,
                    was: write.was,
                    now: write.value,
                }))
            }
            Switch::Refused(why) => planned.refused.push(format!("{}: {why}", setting.path)),
        }
    }
    for setting in others.into_iter().filter(|setting| is_named(setting)) {
        if setting.known_by.contains(TIMER_SLACK) {
            planned.slack = Some(wanted.config.timer_slack);
            continue;
        }
        let why = match setting.known_by.starts_with('/') {
            true => "schedtwin does not switch it",
            false => "only another kernel changes it",
        };
        planned.refused.push(format!("{}: {why} ({})", setting.path, setting.known_by));
    }
    for setting in &settings.machine {
        machine_changes(setting, root, &mut planned);
    }
    for setting in &settings.groups {
        match setting.changes(root) {
            Ok(changes) => groups::add(&mut planned.changes, changes),
            Err(why) => planned.refused.push(why),
        }
    }
    match groups::entered(&planned.changes) {
        Ok(groups) => planned.groups = groups,
        Err(why) => planned.refused.push(why),
    }
    if !settings.threads.is_empty() {
        thread_changes(&settings.threads, None, &mut planned);
    }
    Ok(planned)
}

fn machine_changes(setting: &MachineSetting, root: &Path, planned: &mut Planned) {
    let mut file = |path: PathBuf, now: &str| match std::fs::read_to_string(&path) {
        Ok(was) if was.trim() == now => {}
        Ok(was) if ["notsupported", "notimplemented"].contains(&was.trim()) => {
            planned.refused.push(format!("{}: {}", path.display(), was.trim()));
        }
        Ok(was) => planned.changes.push(Change::File {
            path,
            was: was.trim().to_owned(),
            now: now.to_owned(),
        }),
        Err(error) => planned.refused.push(format!("{}: {error}", path.display())),
    };
    match setting {
        MachineSetting::Smt(value) => file(root.join(SMT.trim_start_matches('/')), value),
        MachineSetting::Online(cpus) => {
            for path in switches::expand("/sys/devices/system/cpu/cpu*/online", root) {
                let name = path.parent().and_then(Path::file_name).unwrap_or_default();
                let cpu = name.to_string_lossy().trim_start_matches("cpu").parse::<u16>();
                let on = cpu.is_ok_and(|cpu| cpus.contains(schedtwin_types::CpuId(cpu)));
                file(path, if on { "1" } else { "0" });
            }
        }
    }
}

/// The changes of threads: of those that descend from a process, or of all but the kernel's and our own.
pub fn thread_changes(settings: &[ThreadSetting], root: Option<u32>, planned: &mut Planned) {
    let all = threads::all();
    let own = std::process::id();
    let of: Vec<&threads::Thread> = match root {
        Some(root) => threads::descendants(&all, root),
        None => all.iter().filter(|thread| thread.process != own && !thread.of_kernel).collect(),
    };
    for thread in of {
        planned.threads.insert(thread.name.clone());
        match threads::change_of(thread, settings) {
            Ok(change) => planned.changes.extend(change),
            // It has ended.
            Err(error) if error.raw_os_error() == Some(3) => {}
            Err(error) => {
                planned.refused.push(format!("{} ({}): {error}", thread.name, thread.tid))
            }
        }
    }
}

/// Gives this process what the work has from its start: groups, timer slack, and the settings of threads for each of
/// these names. Each is read back; returns what is refused, a sentence each.
///
/// A thread of its own gets the settings of each name if there are several: they need not fit each other.
pub fn give_to_work(
    groups: &[PathBuf],
    slack: Option<Ns>,
    settings: &[ThreadSetting],
    names: &[&str],
) -> Vec<String> {
    let mut refused: Vec<String> =
        groups.iter().filter_map(|group| groups::enter(group).err()).collect();
    if let Some(slack) = slack {
        let given = set_current_timer_slack(NonZeroU64::new(slack));
        let has = given.and_then(|()| current_timer_slack());
        match has {
            Ok(has) if has == slack => {}
            Ok(has) => {
                refused.push(format!("a timer slack of {slack} ns: the kernel made {has} of it"))
            }
            Err(error) => refused.push(format!("a timer slack of {slack} ns: {error}")),
        }
    }
    for name in names {
        let given = match names {
            [_] => threads::give_own(name, settings),
            _ => std::thread::scope(|scope| {
                scope.spawn(|| threads::give_own(name, settings)).join().expect("it does not panic")
            }),
        };
        if let Err(error) = given {
            let of_name = settings.iter().filter(|setting| setting.matches(name));
            let of_name: Vec<String> = of_name.map(ToString::to_string).collect();
            refused.push(format!("{}: {error}", of_name.join("; ")));
        }
    }
    refused
}

/// Changes that were made, and are put back when this goes.
#[derive(Debug)]
pub struct Applied {
    journal: PathBuf,
    watcher: Option<Child>,
}

impl Applied {
    /// Makes the changes; at the first that fails those before are put back. `watcher`: a command that gets the journal's path and
    /// calls [`watch`].
    pub fn make(
        planned: &Planned,
        journal: &Path,
        watcher: Option<Command>,
    ) -> Result<Applied, String> {
        let mut book = Journal::create(journal).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                format!("failed to write {}: {error}: it needs root", journal.display())
            }
            io::ErrorKind::AlreadyExists => {
                let which = match journal == Path::new(JOURNAL) {
                    true => String::new(),
                    false => format!(" {}", journal.display()),
                };
                format!(
                    "{} is there: settings are applied already; `schedtwin settings undo{which}` puts them back",
                    journal.display()
                )
            }
            _ => format!("failed to write {}: {error}", journal.display()),
        })?;
        let mut applied = Applied { journal: journal.to_path_buf(), watcher: None };
        if let Some(mut command) = watcher {
            let child = command.arg(journal).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
            let child = child.map_err(|error| format!("failed to start the watcher: {error}"))?;
            applied.watcher = Some(child);
        }
        applied.add(&mut book, planned)?;
        Ok(applied)
    }

    fn add(&self, book: &mut Journal, planned: &Planned) -> Result<(), String> {
        for change in &planned.changes {
            match book.make(change) {
                Ok(()) => {}
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(3) => {}
                Err(error) => return Err(failed_to_make(change, &error)),
            }
        }
        Ok(())
    }

    /// Makes changes that end with the threads that they are of: nothing is noted, nothing is put back.
    pub fn make_unjournalled(planned: &Planned) -> Result<(), String> {
        for change in &planned.changes {
            match journal::make(change, true) {
                Ok(()) => {}
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(3) => {}
                Err(error) => return Err(failed_to_make(change, &error)),
            }
        }
        Ok(())
    }

    /// Puts everything back; what could not be.
    pub fn undo(mut self) -> Vec<String> {
        self.put_back()
    }

    /// Leaves everything as it is now, for `schedtwin settings undo`.
    pub fn keep(mut self) {
        self.journal = PathBuf::new();
    }

    fn put_back(&mut self) -> Vec<String> {
        if self.journal.as_os_str().is_empty() {
            return Vec::new();
        }
        let failed = match journal::undo(&self.journal) {
            Ok(undone) => undone.map_or(Vec::new(), |(_, failed)| failed),
            Err(error) => vec![format!("{}: {error}", self.journal.display())],
        };
        self.journal = PathBuf::new();
        failed
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        for failed in self.put_back() {
            eprintln!("{failed}");
        }
        if let Some(mut watcher) = self.watcher.take() {
            // With its input it ends: the journal has gone.
            drop(watcher.stdin.take());
            let _ = watcher.wait();
        }
    }
}

fn failed_to_make(change: &Change, error: &io::Error) -> String {
    let what = match change {
        Change::File { path, now, .. } => format!("write {now} to {}", path.display()),
        Change::Group { path, .. } => format!("make the group {}", path.display()),
        Change::Thread { tid, name, .. } => format!("change thread {tid} ({name})"),
    };
    format!("failed to {what}: {error}{}", right_to_write(change, error))
}

/// The right that a change of files needs, if an error is about that.
fn right_to_write(change: &Change, error: &io::Error) -> &'static str {
    match (error.kind(), change) {
        (io::ErrorKind::PermissionDenied, Change::File { path, .. })
            if path.starts_with("/proc/sys") =>
        {
            ": it needs root"
        }
        (io::ErrorKind::PermissionDenied, Change::File { .. }) => {
            ": it needs root or CAP_DAC_OVERRIDE"
        }
        (io::ErrorKind::PermissionDenied, Change::Group { .. }) => {
            ": it needs root, CAP_DAC_OVERRIDE or a cgroup above that is yours"
        }
        _ => "",
    }
}

/// Waits until whoever holds the other end of standard input has gone, then puts back what the journal still names.
pub fn watch(journal: &Path) -> io::Result<()> {
    // A Ctrl-C is for those in the terminal's session.
    let _ = setsid();
    let mut nothing = Vec::new();
    let _ = io::stdin().read_to_end(&mut nothing);
    journal::undo(journal).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_of_a_line_are_told() {
        let faults =
            Settings::parse("nice a=99; hz; smt=maybe; online=x; cpu.max /a=1").unwrap_err();
        assert_eq!(faults.len(), 5, "{faults:#?}");
    }

    #[test]
    fn settings_of_a_kernel_extend_its_spelling() {
        let settings = Settings::parse("hz=1000; features.run_to_parity=false").unwrap();
        let expected = "linux-6.18:hz=1000,features.run_to_parity=false";
        assert_eq!(settings.kernel_spec("linux-6.18"), expected);
        assert_eq!(
            settings.kernel_spec("k:preempt=none"),
            format!("k:preempt=none,{}", &expected[11..])
        );
    }

    #[test]
    fn what_goes_puts_back() {
        let folder = tempfile::tempdir().unwrap();
        let knob = folder.path().join("knob");
        std::fs::write(&knob, "1").unwrap();
        let journal = folder.path().join("journal");
        let change =
            |path: PathBuf| Change::File { path, was: "1".to_owned(), now: "2".to_owned() };
        let planned = Planned { changes: vec![change(knob.clone())], ..Planned::default() };
        let applied = Applied::make(&planned, &journal, None).unwrap();
        assert_eq!(std::fs::read_to_string(&knob).unwrap(), "2");
        drop(applied);
        assert_eq!(std::fs::read_to_string(&knob).unwrap(), "1");
        let missing = change(folder.path().join("none"));
        let planned =
            Planned { changes: vec![change(knob.clone()), missing], ..Planned::default() };
        assert!(Applied::make(&planned, &journal, None).is_err());
        assert_eq!(std::fs::read_to_string(&knob).unwrap(), "1");
        assert!(!journal.exists());
    }
}
