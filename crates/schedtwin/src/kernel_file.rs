//! Kernel files: `kernels/*.toml`, read into a [`Config`].
//!
//! A kernel file sets every variation point and tunable; there are no defaults. Settings spelled in place
//! (`linux-6.12:cpufreq=performance`) replace values before they are read.

use schedtwin_input::{
    Diagnostics, Located, Source, Spec, TableReader, TomlDocument, did_you_mean, read_source,
};
use schedtwin_kernel::config::{
    Config, Features, FrequencyGovernor, IdleGovernor, Preempt, Schedutil,
};
use std::sync::Arc;

/// Name and text of each built-in kernel.
const BUILTIN: [(&str, &str); 1] =
    [("linux-6.12", include_str!("../../../kernels/linux-6.12.toml"))];

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
        for patch in &spec.patches {
            let message = match patch.text.as_str() {
                "runnable-boost" => {
                    "linux-6.12 contains runnable-boost; `:runnable_boost=false` switches it off"
                        .to_string()
                }
                other => format!("there is no patch `{other}`"),
            };
            faults.push_at(&patch.at, message, Some("`schedtwin list patches` lists them".into()));
        }
        let document = TomlDocument::parse(&source);
        let mut document = match faults.absorb(document) {
            Some(document) => document,
            None => return Err(faults),
        };
        for setting in &spec.settings {
            faults.absorb(document.set(setting));
        }
        let read = read(&document, &mut faults);
        faults.sort();
        match read {
            Some((description, config)) if faults.is_empty() => Ok(KernelFile {
                identity: spec.identity(),
                description,
                config,
                settings: shown(&document),
                source,
            }),
            _ => Err(faults),
        }
    }

    /// Text for `show kernel`.
    pub fn describe(&self) -> String {
        let mut text = format!("kernel {}\n{}\n\n", self.identity, self.description);
        let width = self.settings.iter().map(|(k, _)| k.len()).max().unwrap_or(0);
        for (key, value) in &self.settings {
            let known = known_by(key);
            let line = format!("{key:width$}  {value:14}  {known}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// What a kernel engineer knows a setting by.
fn known_by(key: &str) -> String {
    if let Some(feature) = key.strip_prefix("features.") {
        return format!("/sys/kernel/debug/sched/features: {}", feature.to_uppercase());
    }
    let name = match key {
        "hz" => "CONFIG_HZ",
        "preempt" => "CONFIG_PREEMPT_*, preempt=",
        "irq_time_accounting" => "CONFIG_IRQ_TIME_ACCOUNTING",
        "cpufreq" => "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        "cpuidle" => "/sys/devices/system/cpu/cpuidle/current_governor",
        "schedutil.rate_limit_us" => {
            "/sys/devices/system/cpu/cpufreq/policy*/schedutil/rate_limit_us"
        }
        "base_slice_unscaled_ns" => "/sys/kernel/debug/sched/base_slice_ns, before scaling by CPUs",
        "migration_cost_ns" => "/sys/kernel/debug/sched/migration_cost_ns",
        "nr_migrate" => "/sys/kernel/debug/sched/nr_migrate",
        "energy_aware" => "/proc/sys/kernel/sched_energy_aware",
        "fair_server.runtime_us" => "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
        "fair_server.period_us" => "/sys/kernel/debug/sched/fair_server/cpu*/period",
        "fair_group_sched" => "CONFIG_FAIR_GROUP_SCHED (no group exists yet)",
        "runnable_boost" => "in 6.5 and later; no switch",
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

/// A word out of a few.
fn word<T: Copy>(
    reader: &mut TableReader<'_>,
    key: &str,
    words: &[(&str, T)],
    faults: &mut Diagnostics,
) -> Option<T> {
    let found: Located<String> = reader.required(key, faults)?;
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == found.value) {
        return Some(*value);
    }
    let near = did_you_mean(&found.value, words.iter().map(|w| w.0));
    let all: Vec<&str> = words.iter().map(|w| w.0).collect();
    let help = match near {
        Some(near) => format!("did you mean `{near}`? known: {}", all.join(", ")),
        None => format!("known: {}", all.join(", ")),
    };
    faults.push_at(&found.at, format!("`{key}` cannot be `{}`", found.value), Some(help));
    None
}

/// A number within bounds.
fn bounded(
    reader: &mut TableReader<'_>,
    key: &str,
    min: u64,
    max: u64,
    faults: &mut Diagnostics,
) -> Option<u64> {
    let found: Located<u64> = reader.required(key, faults)?;
    if (min..=max).contains(&found.value) {
        return Some(found.value);
    }
    faults.push_at(&found.at, format!("`{key}` is {}, outside {min}..={max}", found.value), None);
    None
}

fn read(document: &TomlDocument, faults: &mut Diagnostics) -> Option<(String, Config)> {
    let mut top = document.reader();
    let _name: Option<String> = top.required("name", faults);
    let description: Option<String> = top.required("description", faults);
    let hz = bounded(&mut top, "hz", 24, 10_000, faults);
    let preempt = word(
        &mut top,
        "preempt",
        &[("none", Preempt::None), ("voluntary", Preempt::Voluntary), ("full", Preempt::Full)],
        faults,
    );
    let irq_time_accounting = top.required("irq_time_accounting", faults);
    let governors = [
        ("schedutil", FrequencyGovernor::Schedutil),
        ("performance", FrequencyGovernor::Performance),
        ("powersave", FrequencyGovernor::Powersave),
    ];
    let cpufreq = word(&mut top, "cpufreq", &governors, faults);
    let idle = [("teo", IdleGovernor::Teo), ("shallow", IdleGovernor::Shallow)];
    let cpuidle = word(&mut top, "cpuidle", &idle, faults);
    let base_slice_unscaled =
        bounded(&mut top, "base_slice_unscaled_ns", 10_000, 1_000_000_000, faults);
    let migration_cost = bounded(&mut top, "migration_cost_ns", 0, 1_000_000_000, faults);
    let nr_migrate = bounded(&mut top, "nr_migrate", 1, 1024, faults);
    let energy_aware = top.required("energy_aware", faults);
    let runnable_boost = top.required("runnable_boost", faults);
    let fair_group_sched = top.required("fair_group_sched", faults);
    let timer_slack = bounded(&mut top, "timer_slack_ns", 0, 1_000_000_000, faults);
    let rate_limit_us = match top.required_table("schedutil", faults) {
        None => None,
        Some(mut table) => {
            let limit = read_rate_limit(&mut table, faults);
            table.finish(faults);
            limit
        }
    };
    let fair_server = match top.required_table("fair_server", faults) {
        None => None,
        Some(mut table) => {
            let runtime: Option<Located<u64>> = table.required("runtime_us", faults);
            let period = bounded(&mut table, "period_us", 1_000, 4_000_000, faults);
            table.finish(faults);
            match (runtime, period) {
                (Some(runtime), Some(period)) if runtime.value > period => {
                    let message = format!(
                        "a runtime of {} us does not fit a period of {period} us",
                        runtime.value
                    );
                    faults.push_at(&runtime.at, message, None);
                    None
                }
                (Some(runtime), Some(period)) => Some((runtime.value * 1000, period * 1000)),
                _ => None,
            }
        }
    };
    let features = match top.required_table("features", faults) {
        None => None,
        Some(table) => read_features(table, faults),
    };
    top.finish(faults);
    let (fair_server_runtime, fair_server_period) = fair_server?;
    let config = Config {
        hz: hz? as u32,
        preempt: preempt?,
        irq_time_accounting: irq_time_accounting?,
        cpufreq: cpufreq?,
        schedutil: Schedutil { rate_limit_us: rate_limit_us? },
        cpuidle: cpuidle?,
        features: features?,
        base_slice_unscaled: base_slice_unscaled?,
        migration_cost: migration_cost?,
        nr_migrate: nr_migrate? as u32,
        energy_aware: energy_aware?,
        fair_server_runtime,
        fair_server_period,
        runnable_boost: runnable_boost?,
        fair_group_sched: fair_group_sched?,
        timer_slack: timer_slack?,
    };
    Some((description?, config))
}

/// `"driver"` or a number of microseconds.
fn read_rate_limit(table: &mut TableReader<'_>, faults: &mut Diagnostics) -> Option<Option<u64>> {
    let text: Located<String> = table.required("rate_limit_us", faults)?;
    if text.value == "driver" {
        return Some(None);
    }
    match text.value.parse::<u64>() {
        Ok(us) if us <= 10_000_000 => Some(Some(us)),
        _ => {
            let message = format!("`rate_limit_us` cannot be `{}`", text.value);
            let help = "microseconds up to 10000000, or `driver`: 1.5 times the driver's transition latency";
            faults.push_at(&text.at, message, Some(help.into()));
            None
        }
    }
}

fn read_features(mut table: TableReader<'_>, faults: &mut Diagnostics) -> Option<Features> {
    macro_rules! features {
        ($($field:ident),* $(,)?) => {{
            $(let $field: Option<bool> = table.required(stringify!($field), faults);)*
            table.finish(faults);
            Some(Features { $($field: $field?,)* })
        }};
    }
    features!(
        place_lag,
        place_deadline_initial,
        place_rel_deadline,
        run_to_parity,
        preempt_short,
        delay_dequeue,
        delay_zero,
        wakeup_preemption,
        ttwu_queue,
        sis_util,
        ni_random,
        wa_idle,
        wa_weight,
        wa_bias,
        util_est,
        nontask_capacity,
        rt_push_ipi,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_kernel_is_the_reference_configuration() {
        let kernel = KernelFile::load("linux-6.12").unwrap();
        assert_eq!(kernel.config, Config::linux_6_12());
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
    fn bad_settings_are_told_all_at_once() {
        let faults =
            KernelFile::load("linux-6.12:cpufreq=performence,hz=0,features.slis=true").unwrap_err();
        let text = faults.to_string();
        assert!(text.contains("did you mean `performance`"), "{text}");
        assert!(text.contains("`hz` is 0"), "{text}");
        assert!(text.contains("`slis`"), "{text}");
    }
}
