// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings of a kernel that a running Linux lets be switched: the files that the declaration of each setting names.
//!
//! A setting's declaration says under which name Linux has it; where that is a file of procfs, sysfs or debugfs, the setting
//! can be switched by a write. What is written follows from the file:
//!
//! | file | value |
//! |---|---|
//! | `.../sched/features` | `NAME` or `NO_NAME` |
//! | `.../sched/base_slice_ns` | times 1 + log2(CPUs), at most 4: `SCHED_TUNABLESCALING_LOG` |
//! | `.../fair_server/cpu*/...` | nanoseconds |
//! | `/proc/sys/vm/stat_interval` | seconds |
//! | `.../cpuidle/state*/disable` | 1 for the states that are named, else 0 |
//! | `.../pm_qos_resume_latency_us` | `n/a` for 0, 0 for `none` |
//! | all others | the value; 1 and 0 for `true` and `false` |

use schedtwin_engine::kernel_file::{KernelFile, Setting};
use std::fs;
use std::path::{Path, PathBuf};

/// `preempt=` at boot; while it runs, the kernel lets debugfs say it.
const PREEMPT: (&str, &str) = ("preempt=", "/sys/kernel/debug/sched/preempt");

/// Files that have to be held open, or that cannot be written.
const NOT_BY_A_WRITE: [&str; 3] = ["/dev/cpu_dma_latency", "/scaling_driver", "/proc/PID"];

/// One file and what it is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The file, below the root that was asked.
    pub path: PathBuf,
    /// What is to be written.
    pub value: String,
    /// What it holds now, in the words of a write.
    pub was: String,
}

/// What becomes of a setting here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It has that value already.
    Same,
    /// These writes change it.
    Writes(Vec<Write>),
    /// It cannot be switched here, for this reason.
    Refused(String),
}

/// The files of a setting: patterns with `*` for a part of a name; none: nothing but another kernel changes it.
pub fn patterns(setting: &Setting) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in setting.known_by.split([' ', ';']) {
        let word = word.trim_end_matches([',', ':']);
        if word.starts_with('/') && !NOT_BY_A_WRITE.iter().any(|file| word.contains(file)) {
            match (word.find('{'), word.find('}')) {
                (Some(from), Some(to)) => found.extend(
                    word[from + 1..to]
                        .split(',')
                        .map(|choice| format!("{}{choice}{}", &word[..from], &word[to + 1..])),
                ),
                _ => found.push(word.to_owned()),
            }
        }
    }
    if setting.known_by.contains(PREEMPT.0) {
        found.push(PREEMPT.1.to_owned());
    }
    // Tunables of a governor stand beside its policies where these share them.
    let shared: Vec<String> = found
        .iter()
        .filter(|pattern| pattern.contains("policy*/schedutil/"))
        .map(|pattern| pattern.replace("policy*/", ""))
        .collect();
    found.extend(shared);
    found
}

/// What becomes of those settings of a kernel that are chosen, as far as a running Linux can switch them; and the others.
/// `root`: `/`, or where tests have another.
pub fn switches(
    kernel: &KernelFile,
    chosen: impl Fn(&Setting) -> bool,
    root: &Path,
) -> (Vec<(&'static Setting, Switch)>, Vec<&'static Setting>) {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for (setting, value) in kernel.config.values() {
        if !chosen(setting) {
        } else if patterns(setting).is_empty() {
            others.push(setting);
        } else {
            found.push((setting, switch(setting, &value.to_string(), root)));
        }
    }
    (found, others)
}

/// What becomes of one setting.
pub fn switch(setting: &Setting, value: &str, root: &Path) -> Switch {
    let patterns = patterns(setting);
    let files: Vec<PathBuf> = patterns.iter().flat_map(|pattern| expand(pattern, root)).collect();
    if files.is_empty() {
        let named = patterns.first().map_or("no file", String::as_str);
        let why = match named.starts_with("/sys/kernel/debug/") {
            true if !root.join("sys/kernel/debug/sched").exists() => {
                "debugfs is not mounted, or locked (mount -t debugfs nodev /sys/kernel/debug)"
            }
            _ => "this kernel has no such file",
        };
        return Switch::Refused(format!("{named}: {why}"));
    }
    let mut writes = Vec::new();
    for path in files {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return Switch::Refused(format!("{}: {error}", path.display())),
        };
        let wanted = match in_words_of(&path, setting, value, root) {
            Ok(wanted) => wanted,
            Err(why) => return Switch::Refused(why),
        };
        let was = current(&path, &wanted, &text);
        if was != wanted {
            writes.push(Write { path, value: wanted, was });
        }
    }
    if writes.is_empty() { Switch::Same } else { Switch::Writes(writes) }
}

/// The value as the file takes it.
fn in_words_of(path: &Path, setting: &Setting, value: &str, root: &Path) -> Result<String, String> {
    let file = path.to_string_lossy();
    let number = || value.parse::<u64>().map_err(|_| format!("{file}: `{value}` is no number"));
    if file.ends_with("/sched/features") {
        let name = setting.known_by.rsplit(' ').next().unwrap_or_default();
        return Ok(if value == "true" { name.to_owned() } else { format!("NO_{name}") });
    }
    if file.ends_with("/sched/base_slice_ns") {
        return Ok((number()? * scale(root)).to_string());
    }
    if file.contains("/fair_server/") {
        return Ok((number()? * 1000).to_string());
    }
    if file.ends_with("/vm/stat_interval") {
        return match number()? {
            ms if ms % 1000 == 0 => Ok((ms / 1000).to_string()),
            ms => Err(format!("{file} takes whole seconds, not {ms} ms")),
        };
    }
    if file.ends_with("/disable") {
        let state = path.parent().unwrap_or(path);
        let name = fs::read_to_string(state.join("name")).unwrap_or_default();
        let index = state.file_name().unwrap_or_default().to_string_lossy().replace("state", "");
        let disabled = value.split([',', ' ', '+', '[', ']', '"']);
        let mut disabled = disabled.filter(|word| !word.is_empty());
        let is_it = disabled.any(|word| word == name.trim() || word == index);
        return Ok(if is_it { "1" } else { "0" }.to_owned());
    }
    if file.ends_with("/pm_qos_resume_latency_us") {
        return Ok(match value {
            "none" => "0".to_owned(),
            "0" => "n/a".to_owned(),
            other => other.to_owned(),
        });
    }
    Ok(match value {
        "true" => "1".to_owned(),
        "false" => "0".to_owned(),
        "driver" => return Err(format!("{file}: the driver's own value cannot be asked for")),
        other => other.to_owned(),
    })
}

/// Reads the file of a setting in the setting's own words and unit: the converse of a write.
///
/// # Errors
/// That it cannot be read.
pub fn held(path: &Path, setting: &Setting, root: &Path) -> std::io::Result<String> {
    let text = fs::read_to_string(path)?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let file = path.to_string_lossy();
    if file.ends_with("/sched/features") {
        let name = setting.known_by.rsplit(' ').next().unwrap_or_default();
        return Ok(text.split(' ').any(|word| word == name).to_string());
    }
    if file.ends_with("/pm_qos_resume_latency_us") {
        return Ok(match text.as_str() {
            "0" => "none".to_owned(),
            "n/a" => "0".to_owned(),
            _ => text,
        });
    }
    let Ok(number) = text.parse::<u64>() else { return Ok(text) };
    Ok(if file.ends_with("/sched/base_slice_ns") {
        number / scale(root)
    } else if file.contains("/fair_server/") {
        number / 1000
    } else if file.ends_with("/vm/stat_interval") {
        number.saturating_mul(1000)
    } else {
        number
    }
    .to_string())
}

/// What a file holds, in the words of a write.
pub(super) fn current(path: &Path, wanted: &str, text: &str) -> String {
    if path.ends_with("cgroup.subtree_control") {
        let plain = wanted.trim_start_matches(['+', '-']);
        let has = text.split_whitespace().any(|word| word == plain);
        return format!("{}{plain}", if has { '+' } else { '-' });
    }
    if path.ends_with("sched/features") {
        let plain = wanted.strip_prefix("NO_").unwrap_or(wanted);
        let has = text.split_whitespace().any(|word| word == plain);
        return if has { plain.to_owned() } else { format!("NO_{plain}") };
    }
    // "none voluntary [full] lazy", "(full)" in newer kernels.
    let marked = |open, close| Some(text.split_once(open)?.1.split_once(close)?.0.to_owned());
    match path.ends_with("sched/preempt") {
        true => marked('(', ')').or_else(|| marked('[', ']')).unwrap_or_default(),
        // Parameters of modules.
        false if wanted == "1" && text.trim() == "Y" => "1".to_owned(),
        false if wanted == "0" && text.trim() == "N" => "0".to_owned(),
        false => text.trim().to_owned(),
    }
}

/// 1 + log2 of the CPUs, of which 8 count at most.
fn scale(root: &Path) -> u64 {
    let cpus = expand("/sys/devices/system/cpu/cpu*/topology", root).len().clamp(1, 8);
    u64::from(1 + cpus.ilog2())
}

/// The existing files of a pattern, in the order of their names.
pub fn expand(pattern: &str, root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_path_buf()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        found = match part.split_once('*') {
            None => found.into_iter().map(|path| path.join(part)).collect(),
            Some((before, after)) => found
                .iter()
                .filter_map(|path| fs::read_dir(path).ok())
                .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
                .filter(|path| {
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    let middle = name.strip_prefix(before).and_then(|n| n.strip_suffix(after));
                    // The part is a number: cpu0, policy4, not cpufreq.
                    middle.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
                })
                .collect(),
        };
    }
    found.retain(|path| path.exists());
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_engine::kernel_file::settings;

    /// A root with files, as a machine has them.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn writes(root: &Path, spec: &str) -> Vec<(String, String, String)> {
        let kernel = KernelFile::load(spec).unwrap();
        let named = spec.split_once(':').unwrap().1.split_once('=').unwrap().0;
        let (found, _) = switches(&kernel, |setting| setting.path == named, root);
        let mut all = Vec::new();
        for (setting, switch) in found {
            match switch {
                Switch::Writes(writes) => all.extend(writes.into_iter().map(|write| {
                    let path = write.path.strip_prefix(root).unwrap().display().to_string();
                    (path, write.was, write.value)
                })),
                Switch::Same => all.push((setting.path.to_owned(), "same".into(), String::new())),
                Switch::Refused(why) => all.push((setting.path.to_owned(), why, String::new())),
            }
        }
        all
    }

    /// A value that is read is the one whose write would have put the same into the file.
    #[test]
    fn a_setting_is_shown_in_its_own_words() {
        let files = [
            (
                "sys/kernel/debug/sched/features",
                "GENTLE_FAIR_SLEEPERS NO_RUN_TO_PARITY PLACE_LAG\n",
            ),
            ("sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
            ("proc/sys/vm/stat_interval", "3\n"),
        ];
        let root = root(&files);
        for cpu in 0..8 {
            fs::create_dir_all(
                root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology")),
            )
            .unwrap();
        }
        let shown = |path: &str| {
            let setting = settings().iter().find(|setting| setting.path == path).unwrap();
            let file = patterns(setting).into_iter().flat_map(|p| expand(&p, root.path())).next();
            held(&file.unwrap(), setting, root.path()).unwrap()
        };
        assert_eq!(shown("features.run_to_parity"), "false");
        assert_eq!(shown("features.place_lag"), "true");
        assert_eq!(shown("eevdf.base_slice_unscaled_ns"), "700000");
        assert_eq!(shown("stat_interval_ms"), "3000");
    }

    #[test]
    fn values_are_in_the_words_of_the_files() {
        let cpu = "sys/devices/system/cpu";
        let root = root(&[
            ("sys/kernel/debug/sched/features", "PLACE_LAG RUN_TO_PARITY NO_HRTICK\n"),
            ("sys/kernel/debug/sched/base_slice_ns", "1400000\n"),
            ("sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n"),
            (&format!("{cpu}/cpu0/topology/core_id"), "0\n"),
            (&format!("{cpu}/cpu1/topology/core_id"), "1\n"),
            (&format!("{cpu}/cpufreq/policy0/scaling_governor"), "schedutil\n"),
            (&format!("{cpu}/cpufreq/policy4/scaling_governor"), "performance\n"),
            (&format!("{cpu}/cpufreq/boost"), "1\n"),
            (&format!("{cpu}/cpu0/cpuidle/state1/disable"), "0\n"),
            (&format!("{cpu}/cpu0/cpuidle/state1/name"), "C1\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
        ]);
        let of = |spec: &str| writes(root.path(), &format!("linux-6.18:{spec}"));
        let row = |path: &str, was: &str, value: &str| (path.into(), was.into(), value.into());
        let debug = "sys/kernel/debug/sched";
        assert_eq!(
            of("features.run_to_parity=false"),
            [row(&format!("{debug}/features"), "RUN_TO_PARITY", "NO_RUN_TO_PARITY")]
        );
        assert_eq!(
            of("eevdf.base_slice_unscaled_ns=1000000"),
            [row(&format!("{debug}/base_slice_ns"), "1400000", "2000000")]
        );
        assert_eq!(of("preempt=none"), [row(&format!("{debug}/preempt"), "full", "none")]);
        assert_eq!(
            of("cpufreq=performance"),
            [row(&format!("{cpu}/cpufreq/policy0/scaling_governor"), "schedutil", "performance")]
        );
        assert_eq!(
            of("cpuidle_disable=C1"),
            [row(&format!("{cpu}/cpu0/cpuidle/state1/disable"), "0", "1")]
        );
        assert_eq!(
            of("rt_runtime_us=-1"),
            [row("proc/sys/kernel/sched_rt_runtime_us", "950000", "-1")]
        );
        assert_eq!(of("sched_autogroup=true"), [row("sched_autogroup", "same", "")]);
        let missing = of("migration_cost_ns=0");
        assert!(missing[0].1.contains("no such file"), "{missing:?}");
        assert_eq!(of("hz=1000"), [], "only another kernel changes it");
    }

    #[test]
    fn many_settings_can_be_switched_where_the_files_are() {
        let with_files = settings().iter().filter(|setting| !patterns(setting).is_empty()).count();
        assert!(with_files > 40, "{with_files}");
    }
}
