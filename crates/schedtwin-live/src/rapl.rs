// SPDX-License-Identifier: GPL-2.0-or-later
//! The energy of this machine's packages, as its hardware counts it (RAPL, `/sys/class/powercap`), beside the twin's.
//!
//! `perf stat -e power/energy-pkg/` reads the same counters. Most guests and phones have none; then no run has the figure.

use std::path::{Path, PathBuf};

/// The counters of all packages.
#[derive(Debug)]
pub struct Rapl {
    packages: Vec<Package>,
}

/// A package's counter, µJ.
#[derive(Debug)]
struct Package {
    counter: PathBuf,
    /// The value after which it begins anew.
    range: u64,
    began: u64,
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl Rapl {
    /// Begins to count; `root` is `/`. `None`: there are no counters, or they cannot be read without root.
    pub fn begin(root: &Path) -> Option<Rapl> {
        let zones = std::fs::read_dir(root.join("sys/class/powercap")).ok()?;
        let mut packages = Vec::new();
        for zone in zones.flatten().map(|zone| zone.path()) {
            // Zones within a package (`core`, `dram`) and the platform's (`psys`) count other things.
            let name = std::fs::read_to_string(zone.join("name")).unwrap_or_default();
            if !name.starts_with("package-") {
                continue;
            }
            let counter = zone.join("energy_uj");
            let began = number(&counter)?;
            let range = number(&zone.join("max_energy_range_uj"))?;
            packages.push(Package { counter, range, began });
        }
        (!packages.is_empty()).then_some(Rapl { packages })
    }

    /// Energy since the beginning, J; `None` if a counter cannot be read any more. A counter may have begun anew once.
    pub fn joules(&self) -> Option<f64> {
        let mut microjoules = 0;
        for package in &self.packages {
            let now = number(&package.counter)?;
            microjoules += match now.checked_sub(package.began) {
                Some(used) => used,
                None => (package.range - package.began.min(package.range)) + now,
            };
        }
        Some(microjoules as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_add_up_and_begin_anew() {
        let root = tempfile::tempdir().unwrap();
        let zone = |name: &str, kind: &str, energy: &str| {
            let path = root.path().join("sys/class/powercap").join(name);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("name"), kind).unwrap();
            std::fs::write(path.join("max_energy_range_uj"), "262143328850\n").unwrap();
            std::fs::write(path.join("energy_uj"), energy).unwrap();
        };
        assert!(Rapl::begin(root.path()).is_none());
        zone("intel-rapl:0", "package-0\n", "1000000\n");
        zone("intel-rapl:1", "package-1\n", "262143000000\n");
        zone("intel-rapl:0:0", "core\n", "7\n");
        let rapl = Rapl::begin(root.path()).unwrap();
        assert_eq!(rapl.joules(), Some(0.0));
        zone("intel-rapl:0", "package-0\n", "3500000\n");
        zone("intel-rapl:1", "package-1\n", "171150\n");
        zone("intel-rapl:0:0", "core\n", "9000000\n");
        assert_eq!(rapl.joules(), Some(2.5 + 0.5));
        std::fs::remove_file(root.path().join("sys/class/powercap/intel-rapl:1/energy_uj"))
            .unwrap();
        assert_eq!(rapl.joules(), None);
    }
}
