//! Kernel files: `kernels/*.toml`, read into a [`Config`].
//!
//! A kernel file sets every variation point and tunable; there are no defaults. Patches
//! (`linux-5.18+runnable-boost`) overlay it, then settings spelled in place
//! (`linux-6.12:cpufreq=performance`) replace values, then it is read.
//!
//! | room | what it holds |
//! |---|---|
//! | `points.rs` | the variation points, their words and releases |
//! | `settings.rs` | from settings to a `Config` |
//! | `patch.rs` | patches |

mod patch;
mod points;
mod settings;

use patch::Patch;
pub use points::{PointDescription, variation_points};
use schedtwin_input::{
    Diagnostics, Located, Source, Spec, TomlDocument, did_you_mean, read_source,
};
use schedtwin_kernel::config::Config;
use std::sync::Arc;

/// Name and text of each built-in kernel.
const BUILTIN: [(&str, &str); 7] = [
    ("linux-5.18", include_str!("../../../kernels/linux-5.18.toml")),
    ("linux-5.18-fp", include_str!("../../../kernels/linux-5.18-fp.toml")),
    ("linux-6.0", include_str!("../../../kernels/linux-6.0.toml")),
    ("linux-6.1", include_str!("../../../kernels/linux-6.1.toml")),
    ("linux-6.3", include_str!("../../../kernels/linux-6.3.toml")),
    ("linux-6.6", include_str!("../../../kernels/linux-6.6.toml")),
    ("linux-6.12", include_str!("../../../kernels/linux-6.12.toml")),
];

/// A kernel: a configuration and where it came from.
#[derive(Clone, Debug)]
pub struct KernelFile {
    /// As spelled: name, patches, settings.
    pub identity: String,
    /// One line about it.
    pub description: String,
    /// The configuration.
    pub config: Config,
    /// The file.
    pub source: Arc<Source>,
    /// The texts of the user's own patches, in the order in which they were applied.
    pub own_patches: Vec<String>,
    /// Every setting: path, value, what a kernel engineer knows it by.
    pub settings: Vec<(String, String)>,
}

/// The built-in kernels: name and description.
pub fn builtin_names() -> Vec<(String, String)> {
    BUILTIN
        .iter()
        .map(|(name, _)| {
            let kernel = KernelFile::load(name).expect("built-in kernels are read by a test");
            (name.to_string(), kernel.description)
        })
        .collect()
}

/// The built-in kernels: name and the text of the file.
pub fn builtin_texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILTIN.into_iter()
}

/// The built-in patches: name and description.
pub fn patch_names() -> Vec<(String, String)> {
    patch::names()
}

/// Checks the file of a patch: its form, and that the kernels that it is for take it. Notices if it is
/// right.
pub fn check_patch(path: &str) -> Result<Vec<String>, Diagnostics> {
    patch::check(path)
}

/// Text about a patch.
pub fn describe_patch(name: &str) -> Result<String, Diagnostics> {
    patch::describe(name)
}

impl KernelFile {
    /// Loads what the command line names.
    pub fn load(spec: &str) -> Result<KernelFile, Diagnostics> {
        let spec = Spec::parse_kernel(spec)?;
        let name = &spec.name;
        let mut faults = Diagnostics::new();
        let source = if name.is_path() {
            read_source(&name.text)?
        } else {
            match BUILTIN.iter().find(|(known, _)| *known == name.text) {
                Some((known, text)) => Source::new(format!("<built in> {known}"), *text),
                None => {
                    let near = did_you_mean(&name.text, BUILTIN.iter().map(|(known, _)| *known));
                    let help = match near {
                        Some(near) => {
                            format!("did you mean `{near}`? (`schedtwin list kernels` lists all)")
                        }
                        None => {
                            "`schedtwin list kernels` lists them; a path ends in .toml".to_string()
                        }
                    };
                    faults.push_at(
                        &name.at,
                        format!("there is no kernel `{}`", name.text),
                        Some(help),
                    );
                    return Err(faults);
                }
            }
        };
        let document = TomlDocument::parse(&source);
        let mut document = match faults.absorb(document) {
            Some(document) => document,
            None => return Err(faults),
        };
        let (mut set, mut own_patches) = (Vec::new(), Vec::new());
        for word in &spec.patches {
            let at = Located { value: word.text.clone(), at: word.at.clone() };
            if let Some(patch) = faults.absorb(Patch::load(&at)) {
                own_patches.extend(patch.own_text().map(str::to_string));
                patch.apply(&at, &name.text, &mut document, &mut set, &mut faults);
            }
        }
        for setting in &spec.settings {
            faults.absorb(document.set(setting).map_err(|faults| where_listed(faults, &name.text)));
        }
        let read = settings::read(&document, &mut faults);
        faults.sort();
        match read {
            Some((description, config)) if faults.is_empty() => Ok(KernelFile {
                identity: spec.identity(),
                description,
                config,
                settings: shown(&document),
                own_patches,
                source,
            }),
            _ => Err(faults),
        }
    }

    /// What the provenance's hash covers: what was asked for, and every file that is not part of the
    /// name.
    pub fn fingerprint_text(&self) -> String {
        let mut text = format!("{}\n{}", self.identity, self.source.text);
        self.own_patches.iter().for_each(|patch| text.push_str(patch));
        text
    }

    /// Text for `show kernel`.
    pub fn describe(&self) -> String {
        let mut text = format!("kernel {}\n{}\n\n", self.identity, self.description);
        let width = self.settings.iter().map(|(k, _)| k.len()).max().unwrap_or(0);
        let values = self.settings.iter().map(|(_, v)| v.len()).max().unwrap_or(0);
        for (key, value) in &self.settings {
            let known = known_by(key);
            let line = format!("{key:width$}  {value:values$}  {known}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Says where the settings are listed to those who named one that there is not.
fn where_listed(mut faults: Diagnostics, kernel: &str) -> Diagnostics {
    let unknown = faults.0.iter_mut().filter(|f| f.message.starts_with("there is no setting"));
    for fault in unknown {
        let all = format!("`schedtwin show kernel {kernel}` lists all");
        fault.help = Some(match fault.help.take() {
            Some(help) if help.starts_with("did you mean") => format!("{help} ({all})"),
            _ => all,
        });
    }
    faults
}

/// What a kernel engineer knows a setting by.
fn known_by(key: &str) -> String {
    if let Some(feature) = key.strip_prefix("features.") {
        return format!("/sys/kernel/debug/sched/features: {}", feature.to_uppercase());
    }
    if let Some(point) = variation_points().into_iter().find(|point| point.key == key) {
        let others: Vec<&str> = point.arms.iter().map(|arm| arm.0).collect();
        return format!("{} ({})", point.known_by, others.join(", "));
    }
    let name = match key {
        "hz" => "CONFIG_HZ",
        "irq_time_accounting" => "CONFIG_IRQ_TIME_ACCOUNTING",
        "teo_util_threshold_shift" => "UTIL_THRESHOLD_SHIFT: utilised above the capacity >> this",
        "cpuidle_disable" => "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
        "pm_qos.cpu_latency_us" => "/dev/cpu_dma_latency",
        "pm_qos.resume_latency_us" => {
            "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us (0 here: \"n/a\" there)"
        }
        "schedutil.rate_limit_us" => {
            "/sys/devices/system/cpu/cpufreq/policy*/schedutil/rate_limit_us"
        }
        "eevdf.base_slice_unscaled_ns" => {
            "/sys/kernel/debug/sched/base_slice_ns, before scaling by CPUs"
        }
        "cfs.latency_ns" => "/sys/kernel/debug/sched/latency_ns, before scaling by CPUs",
        "cfs.min_granularity_ns" => {
            "/sys/kernel/debug/sched/min_granularity_ns, before scaling by CPUs"
        }
        "cfs.wakeup_granularity_ns" => {
            "/sys/kernel/debug/sched/wakeup_granularity_ns, before scaling by CPUs"
        }
        "cfs.idle_min_granularity_ns" => "/sys/kernel/debug/sched/idle_min_granularity_ns",
        "migration_cost_ns" => "/sys/kernel/debug/sched/migration_cost_ns",
        "nr_migrate" => "/sys/kernel/debug/sched/nr_migrate",
        "energy_aware" => "/proc/sys/kernel/sched_energy_aware",
        "rt_runtime_us" => "/proc/sys/kernel/sched_rt_runtime_us",
        "rt_period_us" => "/proc/sys/kernel/sched_rt_period_us",
        "uclamp_min_rt_default" => "/proc/sys/kernel/sched_util_clamp_min_rt_default",
        "sched_cluster" => "CONFIG_SCHED_CLUSTER",
        "fair_server.runtime_us" => "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
        "fair_server.period_us" => "/sys/kernel/debug/sched/fair_server/cpu*/period",
        "fair_group_sched" => "CONFIG_FAIR_GROUP_SCHED (no group exists yet)",
        "stat_interval_ms" => "/proc/sys/vm/stat_interval, in ms; 0: no kworkers",
        "timer_slack_ns" => "prctl(PR_SET_TIMERSLACK), /proc/PID/timerslack_ns",
        _ => "",
    };
    name.to_string()
}

fn shown(document: &TomlDocument) -> Vec<(String, String)> {
    document
        .paths()
        .into_iter()
        .filter(|path| path != "name" && path != "description")
        .filter_map(|path| {
            use schedtwin_input::Value;
            let value = match &document.get(&path)?.value {
                Value::String(text) => text.clone(),
                Value::Integer(value) => value.to_string(),
                Value::Boolean(value) => value.to_string(),
                _ => return None,
            };
            Some((path, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_kernel::config::{FairClass, FrequencyGovernor, RunnableBoost};

    #[test]
    fn the_built_in_kernel_is_the_reference_configuration() {
        let kernel = KernelFile::load("linux-6.12").unwrap();
        assert_eq!(kernel.config, Config::linux_6_12());
    }

    #[test]
    fn all_built_in_kernels_and_patches_are_read() {
        for (name, description) in builtin_names().into_iter().chain(patch_names()) {
            assert!(!description.is_empty(), "{name}");
        }
    }

    #[test]
    fn settings_in_place() {
        let kernel =
            KernelFile::load("linux-6.12:cpufreq=performance,schedutil.rate_limit_us=500,hz=1000")
                .unwrap();
        assert_eq!(kernel.config.cpufreq, FrequencyGovernor::Performance);
        assert_eq!(kernel.config.schedutil.rate_limit_us, Some(500));
        assert_eq!(kernel.config.hz, 1000);
    }

    #[test]
    fn a_patch_is_laid_over_the_kernel_that_lacks_it() {
        let config = |spec: &str| KernelFile::load(spec).unwrap().config;
        for kernel in ["linux-5.18", "linux-5.18-fp", "linux-6.3"] {
            let base = config(kernel);
            let patched = config(&format!("{kernel}+runnable-boost"));
            assert_eq!(base.runnable_boost, RunnableBoost::Off);
            let expected = Config { runnable_boost: RunnableBoost::WithUtilEst, ..base };
            assert_eq!(patched, expected, "{kernel}: nothing else changes");
        }
        let on = config("linux-5.18+runnable-boost:runnable_boost=on");
        assert_eq!(on.runnable_boost, RunnableBoost::On, "settings come last");
        let off = config("linux-6.12:runnable_boost=off");
        assert_eq!(off.runnable_boost, RunnableBoost::Off);
    }

    #[test]
    fn a_patch_that_the_kernel_contains_is_refused() {
        let text = KernelFile::load("linux-6.12+runnable-boost").unwrap_err().to_string();
        assert!(text.contains("`linux-6.12` contains `runnable-boost`"), "{text}");
        assert!(text.contains("`linux-6.12:runnable_boost=off`"), "{text}");
        let text = KernelFile::load("linux-5.18+runnable-boost+runnable-boost").unwrap_err();
        assert!(text.to_string().contains("named twice"), "{text}");
        let faults = KernelFile::load("linux-6.12:hzz=100,qqqq=1").unwrap_err();
        for fault in &faults.0 {
            let help = fault.help.as_deref().unwrap_or_default();
            assert!(help.contains("`schedtwin show kernel linux-6.12` lists all"), "{faults}");
        }
        let text = KernelFile::load("linux-5.18+runable-boost").unwrap_err().to_string();
        assert!(text.contains("did you mean `runnable-boost`"), "{text}");
    }

    #[test]
    fn a_kernel_has_the_tables_of_its_own_arms_only() {
        assert_eq!(KernelFile::load("linux-6.3").unwrap().config.fair, FairClass::Cfs);
        for (spec, class, kernel) in [
            ("linux-6.3:fair=eevdf", "eevdf", "linux-6.12"),
            ("linux-6.12:fair=cfs", "cfs", "linux-6.3"),
        ] {
            let faults = KernelFile::load(spec).unwrap_err();
            assert_eq!(faults.0.len(), 1, "{faults}");
            let text = faults.to_string();
            let message = format!("`{class}` needs tunables of its own: `[{class}]` and features");
            assert!(text.contains(&message), "{text}");
            assert!(text.contains(&format!("start from `{kernel}`")), "{text}");
        }
        let two = KernelFile::load("linux-6.12:fair=cfs,hz=0").unwrap_err();
        assert_eq!(two.0.len(), 2, "other faults are told all the same: {two}");
    }

    #[test]
    fn bad_settings_are_told_all_at_once() {
        let faults =
            KernelFile::load("linux-6.12:cpufreq=performence,hz=0,features.slis=true").unwrap_err();
        let text = faults.to_string();
        assert!(text.contains("did you mean `performance`"), "{text}");
        assert!(text.contains("`hz` is 0"), "{text}");
        assert!(text.contains("`slis`"), "{text}");
    }

    /// Every enum of the kernel's configuration is in the list, under its own name and with all its arms.
    #[test]
    fn the_list_of_variation_points_is_complete() {
        let source = include_str!("../../schedtwin-kernel/src/config.rs");
        let mut enums = Vec::new();
        for part in source.split("\npub enum ").skip(1) {
            let (name, rest) = part.split_once(" {").unwrap();
            let body = rest.split_once("\n}").unwrap().0;
            let arms = body.lines().filter(|line| line.trim_end().ends_with(',')).count();
            let docs = body.lines().filter(|line| line.contains("///")).count();
            assert!(docs >= arms, "{name}: every arm says which releases have it");
            enums.push((name.to_string(), arms));
        }
        enums.sort();
        let mut listed: Vec<(String, usize)> = variation_points()
            .iter()
            .map(|point| (point.type_name.to_string(), point.arms.len()))
            .collect();
        listed.sort();
        assert_eq!(listed, enums);
    }
}
