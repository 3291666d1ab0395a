// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernels between two kernels: some settings of one, the others of the other.
//!
//! Settings depend on each other: one may exist only with an arm of another one. A mixture takes each setting from the kernel
//! that the set says. Where that kernel has no such setting it takes what the declaration says for kernel files that do not
//! name it, and else the other kernel's. So every mixture is a kernel, and a setting that exists only with an arm of the bad
//! kernel is told apart from that arm.

use super::KernelFile;
use schedtwin_kernel::config::{Config, Value};
use std::collections::BTreeMap;

/// A setting that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Differing {
    /// Its path in kernel files.
    pub path: &'static str,
    /// Its value in the good kernel; `None`: it has no such setting.
    pub good: Option<String>,
    /// Its value in the bad one.
    pub bad: Option<String>,
}

impl Differing {
    /// `eevdf_form: 6.18 instead of 6.12`.
    pub fn text(&self) -> String {
        let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_string());
        format!("{}: {} instead of {}", self.path, word(&self.bad), word(&self.good))
    }
}

/// Two kernels and what differs between them.
pub struct Mixture<'a> {
    good: &'a KernelFile,
    bad: &'a KernelFile,
    good_values: BTreeMap<&'static str, Value>,
    bad_values: BTreeMap<&'static str, Value>,
    /// The settings that differ, in the order of their declarations.
    pub differing: Vec<Differing>,
}

impl<'a> Mixture<'a> {
    /// Compares the settings of two kernels.
    pub fn new(good: &'a KernelFile, bad: &'a KernelFile) -> Mixture<'a> {
        let of = |kernel: &KernelFile| -> BTreeMap<&'static str, Value> {
            let values = kernel.config.values().into_iter();
            values.map(|(setting, value)| (setting.path, value)).collect()
        };
        let (good_values, bad_values) = (of(good), of(bad));
        let differing = Config::settings().iter().filter_map(|setting| {
            let (good, bad) = (good_values.get(setting.path), bad_values.get(setting.path));
            let text = |value: Option<&Value>| value.map(ToString::to_string);
            let (good, bad) = (text(good), text(bad));
            (good != bad).then_some(Differing { path: setting.path, good, bad })
        });
        let differing = differing.collect();
        Mixture { good, bad, good_values, bad_values, differing }
    }

    /// The good kernel with the settings of `set` as the bad one has them.
    pub fn mixed(&self, set: &[usize]) -> KernelFile {
        let of_bad: Vec<&str> = set.iter().map(|at| self.differing[*at].path).collect();
        let config = Config::new(|path| {
            let [own, other] = match of_bad.contains(&path) {
                true => [&self.bad_values, &self.good_values],
                false => [&self.good_values, &self.bad_values],
            };
            let declared =
                Config::setting(path).and_then(|setting| setting.default_if_absent.as_ref());
            let value = own.get(path).or(declared).or_else(|| other.get(path));
            value.cloned().expect("a setting that exists has a value in one of the two")
        });
        let base = if set.len() == self.differing.len() { self.bad } else { self.good };
        let names: Vec<String> = set
            .iter()
            .map(|at| {
                let of = &self.differing[*at];
                format!("{}={}", of.path, of.bad.clone().unwrap_or_default())
            })
            .collect();
        let identity = match (set.len(), set.len() == self.differing.len()) {
            (0, _) => self.good.identity.clone(),
            (_, true) => self.bad.identity.clone(),
            _ => format!("{}:{}", self.good.identity, names.join(",")),
        };
        KernelFile { identity, config, ..base.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(spec: &str) -> KernelFile {
        KernelFile::load(spec).unwrap()
    }

    #[test]
    fn a_mixture_of_all_is_the_bad_kernel_and_of_none_the_good_one() {
        for (good, bad) in [
            ("linux-6.12", "linux-6.18"),
            ("linux-5.18", "linux-7.3"),
            ("linux-6.6", "linux-6.12:cpufreq=performance"),
            ("linux-6.18:rt_bandwidth=throttling", "linux-4.7"),
        ] {
            let (good, bad) = (kernel(good), kernel(bad));
            let mixture = Mixture::new(&good, &bad);
            let all: Vec<usize> = (0..mixture.differing.len()).collect();
            assert_eq!(mixture.mixed(&[]).config, good.config);
            assert_eq!(mixture.mixed(&all).config, bad.config);
        }
    }
}
