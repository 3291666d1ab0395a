// SPDX-License-Identifier: GPL-2.0-or-later
//! Differences between kernels: the settings whose values are not the same in all of them.

use std::collections::BTreeMap;

use schedtwin_kernel::config::{Config, Setting};
use schedtwin_types::printable;

use super::KernelFile;

/// Settings that [`KernelFile::differs_from`] names one by one, at most.
const NAMED: usize = 4;

/// The settings that a kernel has, by their paths.
fn values(kernel: &KernelFile) -> BTreeMap<&'static str, String> {
    let values = kernel.config.values().into_iter();
    values.map(|(setting, value)| (setting.path, value.to_string())).collect()
}

/// The settings in which a kernel differs from another, in the order of their declarations, with the values of both; `None`: it has no such setting.
fn differing(
    own: &KernelFile,
    base: &KernelFile,
) -> impl Iterator<Item = (&'static Setting, [Option<String>; 2])> + use<> {
    let mut all = [own, base].map(values);
    let settings = Config::settings().iter();
    let both = settings.map(move |of| (of, all.each_mut().map(|all| all.remove(of.path))));
    both.filter(|(_, [own, base])| own != base)
}

impl KernelFile {
    /// In which settings the kernel differs from another, in a few words; `None`: in none.
    ///
    /// ```
    /// use schedtwin_engine::kernel_file::KernelFile;
    /// let [base, other] = ["linux-6.12", "linux-6.12:hz=1000"].map(|k| KernelFile::load(k).unwrap());
    /// assert_eq!(other.differs_from(&base).unwrap(), "hz 1000 (250)");
    /// assert_eq!(base.differs_from(&base), None);
    /// let old = KernelFile::load("linux-5.18").unwrap();
    /// assert!(old.differs_from(&base).unwrap().ends_with(" settings: schedtwin show kernel linux-6.12 linux-5.18"));
    /// ```
    pub fn differs_from(&self, base: &KernelFile) -> Option<String> {
        let cell = |value: Option<String>| value.unwrap_or_else(|| "-".to_string());
        let differ: Vec<String> = differing(self, base)
            .map(|(setting, [own, other])| {
                format!("{} {} ({})", setting.path, cell(own), cell(other))
            })
            .collect();
        match differ.len() {
            0 => None,
            1..=NAMED => Some(differ.join(", ")),
            count => {
                let names = [base, self].map(|kernel| printable::line(&kernel.identity));
                Some(format!("{count} settings: schedtwin show kernel {}", names.join(" ")))
            }
        }
    }

    /// Of the settings in which the kernel differs from another those that who builds or boots a kernel chooses, such as the idle governor, and
    /// that neither kernel was asked for by name. `None`: there is none.
    ///
    /// ```
    /// use schedtwin_engine::kernel_file::KernelFile;
    /// let of = |[own, base]: [&str; 2]| {
    ///     KernelFile::load(own).unwrap().configured_apart_from(&KernelFile::load(base).unwrap())
    /// };
    /// assert_eq!(of(["linux-6.12", "linux-6.6"]).as_deref(), Some("cpuidle teo (menu)"));
    /// assert_eq!(of(["linux-6.12", "linux-6.6:cpuidle=menu"]), None);
    /// ```
    pub fn configured_apart_from(&self, base: &KernelFile) -> Option<String> {
        let asked = |path: &str| {
            [self, base].iter().any(|kernel| kernel.identity.contains(&format!("{path}=")))
        };
        let differ: Vec<String> = differing(self, base)
            .filter(|(setting, _)| setting.is_configuration() && !asked(setting.path))
            .filter_map(|(setting, [own, other])| {
                Some(format!("{} {} ({})", setting.path, own?, other?))
            })
            .collect();
        (!differ.is_empty()).then(|| differ.join(", "))
    }

    /// What both kernels take from trees, if it is the same C under two names: then a comparison of the two shows
    /// nothing, and the change is in a file that neither takes.
    pub fn same_code_under_another_name(&self, base: &KernelFile) -> Option<String> {
        let same = self.code.len() == base.code.len()
            && self.code.iter().zip(&base.code).all(|(own, other)| own.hash == other.hash);
        let named = self.code.iter().zip(&base.code).any(|(own, other)| own.name != other.name);
        let names: Vec<&str> = self.code.iter().map(|code| code.name.as_str()).collect();
        (same && named).then(|| names.join(" and "))
    }

    /// A line for each setting in which any two of the kernels differ, with every kernel's value; `-` where a kernel has no such setting.
    ///
    /// ```
    /// use schedtwin_engine::kernel_file::KernelFile;
    /// let kernels = ["linux-6.12", "linux-6.12:hz=1000"].map(|k| KernelFile::load(k).unwrap());
    /// let text = KernelFile::differences(&kernels);
    /// assert!(text.starts_with("setting  linux-6.12  linux-6.12:hz=1000\nhz       250"), "{text}");
    /// assert!(text.contains("\n1 setting of "), "{text}");
    /// ```
    pub fn differences(kernels: &[KernelFile]) -> String {
        let names = kernels.iter().map(|kernel| printable::line(&kernel.identity).into_owned());
        let mut rows: Vec<Vec<String>> =
            vec![std::iter::once("setting".to_string()).chain(names).collect()];
        let values: Vec<BTreeMap<&str, String>> = kernels.iter().map(values).collect();
        // In the order of the declarations, whichever kernel has them.
        let settings = Config::settings();
        let mut known_by = Vec::new();
        let mut all = 0;
        for setting in settings {
            let of: Vec<Option<&String>> = values.iter().map(|of| of.get(setting.path)).collect();
            all += usize::from(of.iter().any(Option::is_some));
            if of.iter().any(|value| *value != of[0]) {
                let cell = |value: &Option<&String>| value.map_or("-".to_string(), String::clone);
                rows.push(
                    std::iter::once(setting.path.to_string()).chain(of.iter().map(cell)).collect(),
                );
                known_by.push(setting.known_by.as_str());
            }
        }
        let columns = kernels.len() + 1;
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (row, known_by) in rows.iter().zip(std::iter::once("").chain(known_by.iter().copied()))
        {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  "));
            let line = cells.collect::<String>() + known_by;
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let count = rows.len() - 1;
        let (settings, differ) =
            if count == 1 { ("setting", "differs") } else { ("settings", "differ") };
        text + &format!("\n{count} {settings} of {all} {differ}\n")
    }
}
