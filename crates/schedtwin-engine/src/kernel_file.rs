// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernel files: `kernels/*.toml`, read into a [`Config`].
//!
//! A kernel file names its variation points and tunables, or the kernel that it extends and what differs from it;
//! the declaration of a setting says whether it may be left out. Patches
//! (`linux-5.18+runnable-boost`) overlay it, then settings spelled in place
//! (`linux-6.12:cpufreq=performance`) replace values, then it is read.
//!
//! | file | content |
//! |---|---|
//! | `settings.rs` | from settings to a `Config`, by their declarations in `schedtwin_kernel::config` |
//! | `extends.rs` | a file that says what differs from another one |
//! | `write.rs` | from a `Config` to a kernel file |
//! | `release.rs` | releases without a file, composed from the histories of the settings |
//! | `patch.rs` | patches |
//! | `own.rs` | the user's own policies in a kernel |
//! | `tree.rs` | governors from a kernel tree |
//! | `scx.rs` | schedulers of sched_ext |

mod differences;
mod extends;
pub mod mixture;
mod own;
mod patch;
mod release;
pub(crate) mod scx;
mod settings;
mod tree;
mod write;

use extends::Resolved;
use patch::Patch;
use schedtwin_input::{
    Diagnostics, FileKind, Located, Location, Node, Setting as SpecSetting, Source, Spec,
    TomlDocument, Value as TomlValue, Word, did_you_mean, read_source,
};
pub use schedtwin_kernel::config::{Arm, Kind, Setting, Value, With};
use schedtwin_kernel::config::{Config, retired};
use schedtwin_kernel::policy::Policies;
pub use schedtwin_tree::ExtOptions;
use schedtwin_types::printable;
use std::sync::{Arc, LazyLock};
pub use tree::TreeCode;
pub use write::write;

/// Name and text of each built-in kernel.
const BUILTIN: [(&str, &str); 18] = [
    ("linux-4.7", include_str!("../kernels/linux-4.7.toml")),
    ("linux-5.11", include_str!("../kernels/linux-5.11.toml")),
    ("linux-5.18", include_str!("../kernels/linux-5.18.toml")),
    ("linux-5.18-fp", include_str!("../kernels/linux-5.18-fp.toml")),
    ("linux-6.0", include_str!("../kernels/linux-6.0.toml")),
    ("linux-6.1", include_str!("../kernels/linux-6.1.toml")),
    ("linux-6.1-gki", include_str!("../kernels/linux-6.1-gki.toml")),
    ("linux-6.3", include_str!("../kernels/linux-6.3.toml")),
    ("linux-6.6", include_str!("../kernels/linux-6.6.toml")),
    ("linux-6.6-gki", include_str!("../kernels/linux-6.6-gki.toml")),
    ("linux-6.12", include_str!("../kernels/linux-6.12.toml")),
    ("linux-6.12-debian", include_str!("../kernels/linux-6.12-debian.toml")),
    ("linux-6.12-gki", include_str!("../kernels/linux-6.12-gki.toml")),
    ("linux-6.18", include_str!("../kernels/linux-6.18.toml")),
    ("linux-6.18-gki", include_str!("../kernels/linux-6.18-gki.toml")),
    ("linux-7.3-debian", include_str!("../kernels/linux-7.3-debian.toml")),
    ("linux-7.3-gki", include_str!("../kernels/linux-7.3-gki.toml")),
    ("linux-7.3", include_str!("../kernels/linux-7.3.toml")),
];

/// The built-in kernels as sources, in the order of [`BUILTIN`].
static BUILTIN_SOURCES: LazyLock<Vec<Arc<Source>>> = LazyLock::new(|| {
    let source = |(name, text)| Source::new(format!("{}{name}", release::PREFIX), text);
    BUILTIN.into_iter().map(source).collect()
});

/// Returns the kernel with Android's settings that is nearest to a kernel: of its release, or the newest.
pub(crate) fn android_of(identity: &str) -> String {
    let end = identity.find(['+', ':']).unwrap_or(identity.len());
    let release = identity[..end].trim_end_matches("-debian").trim_end_matches(".0");
    let name = format!("{release}-gki");
    let has_file = BUILTIN.iter().any(|(known, _)| *known == name);
    match has_file || release::is_composed(&name) {
        true => name,
        false => "linux-7.3-gki".to_string(),
    }
}

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
    /// The user's own code in the place of what the configuration names.
    pub policies: Policies,
    /// Which of them are C from a tree.
    pub code: Vec<TreeCode>,
    /// Settings that look wrong but are possible, with their places.
    pub warnings: Diagnostics,
}

/// The built-in kernels that have a file: name and description.
pub fn builtin_names() -> Vec<(String, String)> {
    BUILTIN.iter().map(|(name, _)| described(name.to_string())).collect()
}

/// The kernels that have a name, with a file or composed, by release: name and description.
pub fn release_names() -> Vec<(String, String)> {
    let mut names: Vec<String> = every_name().collect();
    names.sort_by_cached_key(|name| release::order(name));
    names.into_iter().map(described).collect()
}

/// The names of the kernels that have a file and of the composed ones, in no order.
pub(crate) fn every_name() -> impl Iterator<Item = String> {
    let files = BUILTIN.iter().map(|(name, _)| name.to_string());
    files.chain(release::names())
}

fn described(name: String) -> (String, String) {
    let kernel = KernelFile::load(&name).expect("built-in kernels are read by a test");
    (name, kernel.description)
}

/// The built-in kernels that have a file: name and its text, which says what differs from the one that it extends.
pub fn builtin_texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILTIN.into_iter()
}

/// The built-in patches: name and description.
pub fn patch_names() -> Vec<(String, String)> {
    patch::names()
}

/// Every setting that a kernel file can have, as it is declared.
///
/// ```
/// let hz = schedtwin_engine::kernel_file::setting("hz").unwrap();
/// assert!(schedtwin_engine::kernel_file::settings().contains(hz));
/// assert_eq!(hz.known_by, "CONFIG_HZ");
/// ```
pub fn settings() -> &'static [Setting] {
    Config::settings()
}

/// The setting of a path; `None`: no setting is declared there.
pub fn setting(path: &str) -> Option<&'static Setting> {
    Config::setting(path)
}

/// Checks the text of a patch: its form, and that the kernels that it is for take it. Notices if it is
/// right.
pub fn check_patch(source: &Arc<Source>) -> Result<Vec<String>, Diagnostics> {
    patch::check(source)
}

/// Text about a patch.
pub fn describe_patch(name: &str) -> Result<String, Diagnostics> {
    patch::describe(name)
}

impl KernelFile {
    /// Loads what the command line names.
    pub fn load(spec: &str) -> Result<KernelFile, Diagnostics> {
        let spec = Spec::parse_kernel(spec)?;
        let source = source_of(&spec.name)?;
        KernelFile::from_source(&source, &spec)
    }

    /// A kernel from a text, with the patches and the settings of `spec`, which also says what it is called.
    ///
    /// ```
    /// use schedtwin_engine::kernel_file::KernelFile;
    /// use schedtwin_input::{Source, Spec};
    /// let text = "name = \"mine\"\ndescription = \"of mine\"\nextends = \"linux-7.3\"\nhz = 100\n";
    /// let spec = Spec::parse_kernel("mine:migration_cost_ns=0").unwrap();
    /// let kernel = KernelFile::from_source(&Source::new("mine.toml", text), &spec).unwrap();
    /// assert_eq!(kernel.identity, "mine:migration_cost_ns=0");
    /// assert_eq!((kernel.config.hz, kernel.config.nr_migrate), (100, 32));
    /// ```
    pub fn from_source(source: &Arc<Source>, spec: &Spec) -> Result<KernelFile, Diagnostics> {
        let name = &spec.name;
        let mut faults = Diagnostics::new();
        let Some(Resolved { mut document, files }) = extends::resolve(source, &mut faults) else {
            return Err(faults);
        };
        let mut set = Vec::new();
        for word in &spec.patches {
            let at = Located { value: word.text.clone(), at: word.at.clone() };
            if let Some(patch) = faults.absorb(Patch::load(&at)) {
                patch.apply(&at, &name.text, &mut document, &mut set, &mut faults);
                // What exists with an arm that it chose can be set by what follows.
                settings::complete(&mut document);
            }
        }
        let (asked, settings) = tree::TreeRequest::take(&spec.settings, &mut faults);
        let (scx, settings) = scx::ScxRequest::take(settings, &mut faults);
        for setting in &settings {
            let set = document.set(&by_linux_name(setting));
            faults
                .absorb(set.map_err(|faults| where_listed(faults, &setting.key.text, &name.text)));
            settings::take_over(&setting.key.text, &mut document, &files);
            settings::complete(&mut document);
        }
        settings::leave(&mut document, &files);
        settings::complete(&mut document);
        let read = settings::read(&document, &files, &mut faults);
        faults.sort();
        match read {
            Some((description, config)) if faults.is_empty() => {
                let kernel = asked.put_into(KernelFile {
                    identity: spec.identity(),
                    description,
                    config,
                    source: source.clone(),
                    policies: Policies::default(),
                    code: Vec::new(),
                    warnings: oddities(&document),
                })?;
                scx.put_into(kernel)
            }
            _ => Err(faults),
        }
    }

    /// Returns the text that the provenance's hash covers: the name as it was asked for, the value
    /// of every setting that the kernel has,
    /// and the user's own code. The texts of files are not part of it: a comment moves no hash, and a changed value
    /// moves it wherever it was written, in the file, in one that it extends or in a patch.
    pub fn fingerprint_text(&self) -> String {
        let mut text = write(&self.identity, "", &self.config);
        for (mechanism, name) in self.policies.names() {
            text.push_str(&format!("\n{mechanism} {name}"));
        }
        self.code.iter().for_each(|code| text.push_str(&format!("\n{}", code.text())));
        text.extend(self.policies.ext_loading_text().map(|loading| format!("\n{loading}")));
        text
    }

    /// Text for `show kernel`.
    pub fn describe(&self) -> String {
        let [identity, description] =
            [&self.identity, &self.description].map(|t| printable::line(t));
        let mut text = format!("kernel {identity}\n{description}\n");
        let built_in = self.source.name.strip_prefix(release::PREFIX);
        text.extend(built_in.and_then(release::about));
        text.push('\n');
        for (mechanism, name) in self.policies.names() {
            let of_tree = self.code.iter().find(|code| code.name == name);
            let code = of_tree.map_or_else(|| name.to_string(), TreeCode::text);
            text.push_str(&format!("{mechanism}: {}\n", printable::line(&code)));
            for option in of_tree.iter().flat_map(|code| &code.options) {
                text.push_str(&format!("  {}\n", printable::line(option)));
            }
        }
        text.extend(self.policies.ext_loading_text().map(|loading| format!("{loading}\n")));
        if !self.policies.names().is_empty() {
            text.push('\n');
        }
        let values = self.config.told_values();
        let width = values.iter().map(|(setting, _)| setting.path.len()).max().unwrap_or(0);
        let longest = values.iter().map(|(_, value)| value.to_string().len()).max().unwrap_or(0);
        for (setting, value) in &values {
            let value = value.to_string();
            let mut known = setting.known_by.clone();
            if let Kind::Choice { arms, .. } = &setting.kind {
                let words: Vec<&str> = arms.iter().map(|arm| arm.word).collect();
                known.push_str(&format!(" ({})", words.join(", ")));
            }
            let line = format!("{:width$}  {value:longest$}  {known}", setting.path);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The kernel, patches and settings included, as the text of a kernel file. Code is no setting: of a kernel with
    /// policies of the user's own the text begins with a comment for each, and reads back as the kernel without them.
    pub fn to_file(&self) -> String {
        let mut text = String::new();
        for (mechanism, name) in self.policies.names() {
            let of_tree = self.code.iter().find(|code| code.name == name);
            let code = of_tree.map_or_else(|| name.to_string(), TreeCode::text);
            let line = format!("# Not in this file: {mechanism} {code}");
            text.push_str(&printable::line(&line));
            text.push('\n');
        }
        text + &write(&self.identity, &self.description, &self.config)
    }
}

/// Ticks per second that some architecture's configuration offers (`kernel/Kconfig.hz`, and those of alpha, arm and mips).
const HZ_OFFERED: [i64; 15] =
    [24, 32, 48, 64, 100, 128, 200, 250, 256, 300, 500, 512, 1000, 1024, 1200];

/// Values that a kernel may have here and none is built with.
fn oddities(document: &TomlDocument) -> Diagnostics {
    let mut warnings = Diagnostics::new();
    if let Some(Node { value: TomlValue::Integer(hz), at }) = document.get("hz")
        && !HZ_OFFERED.contains(hz)
    {
        let help = "most offer 100, 250, 300 and 1000".to_string();
        warnings.push_at(at, format!("no architecture offers CONFIG_HZ={hz}"), Some(help));
    }
    warnings
}

/// The text of a built-in kernel, or of the file that was named.
fn source_of(name: &Word) -> Result<Arc<Source>, Diagnostics> {
    if name.is_path() {
        let source = read_source(&name.text)?;
        FileKind::Kernel.expect(&source, &name.at)?;
        return Ok(source);
    }
    builtin(&name.text, &name.at)
}

/// The file of a built-in kernel, which `at` names.
fn builtin(name: &str, at: &Location) -> Result<Arc<Source>, Diagnostics> {
    if let Some(at) = BUILTIN.iter().position(|(known, _)| *known == name) {
        return Ok(BUILTIN_SOURCES[at].clone());
    }
    if let Some(composed) = release::source(name) {
        return Ok(composed);
    }
    let known = || BUILTIN.iter().map(|(known, _)| *known);
    let near = || {
        // `6.12` alone is a release.
        let is =
            |full: &String| known().any(|known| known == full) || release::source(full).is_some();
        let full = Some(format!("linux-{name}")).filter(is);
        let near = full.or_else(|| did_you_mean(name, known()).map(str::to_string));
        near.map(|near| format!("did you mean `{near}`?"))
    };
    let help = match release::nearest(name).or_else(near) {
        Some(near) => format!("{near} (`schedtwin list kernels` lists all)"),
        None if name.contains(',') => {
            "several kernels are several options: -k linux-6.1 -k linux-6.12; settings stand behind a colon: \
             linux-6.12:hz=100"
                .to_string()
        }
        None => "`schedtwin list kernels` lists them; a path ends in .toml".to_string(),
    };
    let mut faults = Diagnostics::new();
    faults.push_at(at, format!("there is no kernel `{name}`"), Some(help));
    Err(faults)
}

/// A setting in place under the name that this project gives it, if it was named as Linux does: `RUN_TO_PARITY`,
/// `sched_rt_runtime_us`.
fn by_linux_name(setting: &SpecSetting) -> SpecSetting {
    let mut setting = setting.clone();
    let name = &setting.key.text;
    if let Some(meant) = Config::settings().iter().find(|declared| declared.is_linux_name(name)) {
        let source = Source::new(format!("<command line> {name}"), meant.path);
        let at = Location::new(&source, 0..meant.path.len());
        setting.key = Word { text: meant.path.to_string(), at };
    }
    setting
}

/// Says where the settings are listed to those who named one that there is not.
fn where_listed(mut faults: Diagnostics, path: &str, kernel: &str) -> Diagnostics {
    let unknown = faults.0.iter_mut().filter(|f| f.message.starts_with("there is no setting"));
    for fault in unknown {
        let mut all = format!("`schedtwin show kernel {kernel}` lists all");
        let at = &fault.source.text[fault.span.clone()];
        if at == "numa_balancing" {
            fault.help = Some("NUMA balancing is not modelled (MODEL.md)".into());
            continue;
        }
        let by_name = |declared: &&Setting| declared.names_in_linux().any(|name| name == at);
        // `governor` for `scaling_governor`.
        let tail = format!("_{at}");
        let by_tail =
            |declared: &&Setting| declared.names_in_linux().any(|name| name.ends_with(&tail));
        let settings = Config::settings().iter();
        if let Some(meant) =
            settings.clone().find(by_name).or_else(|| settings.clone().find(by_tail))
        {
            all = format!("here it is `{}` ({}); {all}", meant.path, meant.known_by);
        }
        if let Some(With { path: point, words }) =
            Config::setting(path).and_then(|s| s.only.as_ref())
        {
            // Linux has it with other arms as well, as its declaration says.
            let declared = Config::setting(path).map(|setting| setting.help.as_str());
            if let Some(help) = declared.filter(|help| help.contains("is not modelled")) {
                fault.message =
                    format!("`{path}` is modelled only with {point}={}", words.join(" or "));
                fault.help = Some(help.to_string());
                continue;
            }
            fault.message = format!("`{path}` exists only with {point}={}", words.join(" or "));
            fault.help = Some(format!("set {point}={} before it", words[0]));
            continue;
        }
        if let Some(old) = retired().into_iter().find(|old| old.path == at) {
            let points: Vec<&str> = old.words[0].1.iter().map(|(path, _)| *path).collect();
            all = format!("it was cut into {}; {all}", points.join(", "));
        }
        fault.help = Some(match fault.help.take() {
            Some(help) if help.starts_with("did you mean") => format!("{help} ({all})"),
            _ => all,
        });
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_kernel::config::{FairClass, FrequencyGovernor, RunnableBoost};

    #[test]
    fn a_phone_is_shown_the_kernel_of_its_release() {
        for (identity, android) in [
            ("linux-6.1+runnable-boost:hz=100", "linux-6.1-gki"),
            ("linux-6.6", "linux-6.6-gki"),
            ("linux-6.12-debian", "linux-6.12-gki"),
            ("linux-7.3:hz=1000", "linux-7.3-gki"),
            ("linux-5.18", "linux-7.3-gki"),
            ("linux-5.10", "linux-5.10-gki"),
            ("linux-6.12.0", "linux-6.12-gki"),
            ("mine.toml", "linux-7.3-gki"),
        ] {
            assert_eq!(android_of(identity), android, "{identity}");
        }
    }

    #[test]
    fn the_built_in_kernel_is_the_reference_configuration() {
        let kernel = KernelFile::load("linux-6.12").unwrap();
        // The reference is without task groups, as the C that it is compared with.
        let reference = Config { fair_group_sched: true, ..Config::linux_6_12() };
        assert_eq!(kernel.config, reference);
    }

    #[test]
    fn all_built_in_kernels_and_patches_are_read() {
        for (name, description) in release_names().into_iter().chain(patch_names()) {
            assert!(!description.is_empty(), "{name}");
        }
    }

    /// A kernel of Android is described by all in which it differs from the one that it extends.
    #[test]
    fn a_phone_s_kernel_says_what_differs() {
        const WORDS: [(&str, &str); 7] = [
            ("cpuidle", "menu"),
            ("uclamp", "clamps in use"),
            ("uclamp_min_rt_default", "RT not boosted"),
            ("uclamp_buckets", "20 buckets"),
            ("schedutil.rate_limit_us", "a rate limit of 500 us"),
            ("tg_runnable_sum", "two forms of earlier stable releases"),
            ("dst_group_stats", "two forms of earlier stable releases"),
        ];
        for (name, description) in release_names() {
            let Some(base) = name.strip_suffix("-gki") else { continue };
            let [base, own] = [base, &name].map(|name| KernelFile::load(name).unwrap());
            let differing = mixture::Mixture::new(&base, &own).differing;
            let paths: Vec<&str> = differing.iter().map(|setting| setting.path).collect();
            let is_file = BUILTIN.iter().any(|(file, _)| *file == name);
            let of_a_phone = &WORDS[1..5];
            for (path, word) in if is_file { &WORDS[..] } else { of_a_phone } {
                let all = WORDS.iter().filter(|(_, of)| of == word).map(|(path, _)| path);
                let differs = all.into_iter().any(|path| paths.contains(path));
                assert_eq!(description.contains(word), differs, "{name}, {path}: {word}?");
            }
            let unnamed = paths.iter().find(|path| !WORDS.iter().any(|(known, _)| known == *path));
            assert!(!is_file || unnamed.is_none(), "{name} says nothing of {unnamed:?}");
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
        let text = KernelFile::load("linux-6.12:governor=performance").unwrap_err().to_string();
        assert!(text.contains("here it is `cpufreq` (/sys/devices/system/cpu/"), "{text}");
        let text = KernelFile::load("linux-5.18+runable-boost").unwrap_err().to_string();
        assert!(text.contains("did you mean `runnable-boost`"), "{text}");
    }

    #[test]
    fn a_kernel_has_the_tables_of_its_own_arms_only() {
        assert_eq!(KernelFile::load("linux-6.3").unwrap().config.fair, FairClass::Cfs);
        let text = "name = \"m\"\ndescription = \"m\"\nextends = \"linux-6.3\"\nfair = \"eevdf\"\n";
        let spec = Spec::parse_kernel("mine").unwrap();
        let faults = KernelFile::from_source(&Source::new("m.toml", text), &spec).unwrap_err();
        let text = faults.to_string();
        assert!(text.contains("`eevdf` needs settings of its own: `[eevdf]`"), "{text}");
        assert!(text.contains("start from `linux-7.3`"), "{text}");
    }

    #[test]
    fn a_class_that_is_chosen_in_place_brings_what_only_it_has() {
        let config = |spec: &str| KernelFile::load(spec).unwrap().config;
        let (eevdf, first) = (config("linux-6.3:fair=eevdf"), config("linux-6.6"));
        assert_eq!(eevdf.base_slice_unscaled, first.base_slice_unscaled);
        assert!(eevdf.features.run_to_parity && !eevdf.features.preempt_short);
        assert_eq!(eevdf.cfs, Default::default());
        let own = config("linux-6.3:fair=eevdf,eevdf.base_slice_unscaled_ns=500000");
        assert_eq!(own.base_slice_unscaled, 500_000);
        let (cfs, last) = (config("linux-6.12:fair=cfs"), config("linux-6.3"));
        assert_eq!(cfs.cfs, last.cfs);
        assert_eq!(cfs.base_slice_unscaled, 0);
        let faults = KernelFile::load("linux-6.12:fair=cfs,hz=0").unwrap_err();
        assert_eq!(faults.0.len(), 1, "{faults}");
    }

    #[test]
    fn thousands_of_unknown_settings_of_a_patch_are_not_all_told() {
        let unknown: String = (0..20_000).map(|n| format!("hzz{n} = 1\n")).collect();
        let text = format!("name = \"p\"\ndescription = \"p\"\n[requires]\n[sets]\n{unknown}");
        let faults = check_patch(&Source::new("p.toml", text)).unwrap_err();
        assert_eq!(faults.0.len(), 100);
        assert!(faults.to_string().contains("there is no setting `hzz0`"), "{faults}");
    }

    #[test]
    fn a_tick_that_no_kernel_is_built_with_is_a_warning() {
        let odd = KernelFile::load("linux-6.12:hz=999").unwrap();
        assert_eq!(odd.config.hz, 999);
        let text = odd.warnings.to_string();
        assert!(text.contains("no architecture offers CONFIG_HZ=999"), "{text}");
        assert!(text.contains("<command line>:1:15"), "it has its place: {text}");
        for hz in [100, 250, 300, 1000, 1024] {
            let kernel = KernelFile::load(&format!("linux-6.12:hz={hz}")).unwrap();
            assert!(kernel.warnings.is_empty(), "{hz}");
        }
        assert!(
            builtin_texts().all(|(name, _)| KernelFile::load(name).unwrap().warnings.is_empty())
        );
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
