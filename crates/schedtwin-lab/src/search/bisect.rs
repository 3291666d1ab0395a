// SPDX-License-Identifier: GPL-2.0-or-later
//! Which of the settings that differ between two kernels cause a difference.
//!
//! 1. Each setting alone, put from the bad kernel into the good one: those that suffice by themselves.
//! 2. If none does, `ddmin` over all of them, from the good kernel: the smallest set that suffices.
//! 3. Each setting of that set alone, put from the good kernel into the bad one: whether it heals it.
//!
//! Every mixture of two kernels is a kernel ([`schedtwin_engine::kernel_file::mixture`]).

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::kernel_file::mixture::{Differing, Mixture};

use super::minimal;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisected {
    /// All settings that differ.
    pub differing: Vec<Differing>,
    /// The smallest set that makes the good kernel bad, by number among `differing`; none of it can be left out.
    pub cause: Vec<usize>,
    /// Other settings that suffice alone.
    pub also_alone: Vec<usize>,
    /// Those of `cause` that heal the bad kernel when they alone are set back.
    pub heals: Vec<usize>,
    /// Kernels that were asked.
    pub asked: u64,
}

/// Finds the smallest set of settings with which the good kernel `is_bad`. The caller has seen that the bad kernel is and
/// the good one is not.
pub fn find(mixture: &Mixture<'_>, mut is_bad: impl FnMut(&KernelFile) -> bool) -> Bisected {
    let count = mixture.differing.len();
    let mut asked = 0;
    let mut ask = |set: &[usize]| {
        asked += 1;
        is_bad(&mixture.mixed(set))
    };
    let alone: Vec<usize> = (0..count).filter(|at| ask(&[*at])).collect();
    let (cause, also_alone) = match alone.split_first() {
        Some((first, others)) => (vec![*first], others.to_vec()),
        None => (minimal(count, &mut ask), Vec::new()),
    };
    let without = |at: usize| (0..count).filter(|other| *other != at).collect::<Vec<usize>>();
    let heals = cause.iter().copied().filter(|at| !ask(&without(*at))).collect();
    Bisected { differing: mixture.differing.clone(), cause, also_alone, heals, asked }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(spec: &str) -> KernelFile {
        KernelFile::load(spec).unwrap()
    }

    #[test]
    fn one_setting_or_two_are_found() {
        let (good, bad) = (kernel("linux-6.12"), kernel("linux-7.3"));
        let bisection = Mixture::new(&good, &bad);
        let value = |kernel: &KernelFile, path: &str| {
            let values = kernel.config.values().into_iter();
            values.filter(|(s, _)| s.path == path).map(|(_, v)| v.to_string()).next()
        };
        let of = |path: &str| bisection.differing.iter().find(|d| d.path == path).unwrap().clone();
        let [one, two] = ["lag_limit", "menu"].map(|name| {
            let found = bisection.differing.iter().find(|d| d.path.ends_with(name)).unwrap();
            of(found.path)
        });
        let is = |kernel: &KernelFile, of: &Differing| value(kernel, of.path) == of.bad;
        let found = find(&bisection, |kernel| is(kernel, &one));
        assert_eq!(found.cause.len(), 1);
        assert_eq!(found.differing[found.cause[0]].path, one.path);
        assert_eq!(found.heals, found.cause);
        let found = find(&bisection, |kernel| is(kernel, &one) && is(kernel, &two));
        let mut paths: Vec<&str> = found.cause.iter().map(|at| found.differing[*at].path).collect();
        paths.sort_unstable();
        let mut expected = [one.path, two.path];
        expected.sort_unstable();
        assert_eq!(paths, expected);
    }
}
