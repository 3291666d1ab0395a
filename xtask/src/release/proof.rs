// SPDX-License-Identifier: GPL-2.0-or-later
//! Tries what was made as a user would who has nothing else.

use std::process::Command;

use super::said::readme_example;
use super::{Outcome, Steps, make_folder, read, write};
use crate::web::root;

/// A cpuidle governor whose C decides at once: enough to see that a binary compiles, confines, loads and asks C.
const GOVERNOR: &str = "\
#include <linux/cpuidle.h>
static int first_select(struct cpuidle_driver *drv, struct cpuidle_device *dev, bool *stop_tick) { return 0; }
static struct cpuidle_governor first = { .name = \"first\", .select = first_select };
static int __init init_first(void) { return cpuidle_register_governor(&first); }
postcore_initcall(init_first);
";

/// Compares as the README's first command does, and prints the table.
const EXPERIMENT: &str = "\
import schedtwin as st
kernels = ['linux-6.1-gki', 'linux-6.1-gki+runnable-boost']
print(st.compare('pixel6', st.Workload('ui-phone'), kernels, seeds=10))
";

impl Steps {
    /// Runs the README's first command where there is nothing but the binary, and compares what it prints.
    pub(super) fn binary_alone(&self, host: &str) -> Result<Outcome, String> {
        if !self.archive(host).exists() {
            return Ok(Outcome::Skipped(format!("no binary for {host} was built")));
        }
        let folder = self.unpacked(host)?;
        let may_divide = Command::new("unshare").args(["--map-root-user", "true"]).output();
        let has_root = may_divide.is_ok_and(|output| output.status.success());
        let alone = |arguments: &[&str]| {
            let mut command = match has_root {
                true => {
                    let mut unshare = Command::new("unshare");
                    unshare.arg("--map-root-user").arg("--root").arg(folder.path());
                    unshare.arg("/schedtwin");
                    unshare
                }
                false => Command::new(folder.path().join("schedtwin")),
            };
            self.run(command.args(arguments).env_clear().current_dir(folder.path()))
        };
        let version = alone(&["--version"])?;
        let readme = read(&root().join("README.md"))?;
        let (command, shown) = readme_example(&readme)?;
        if alone(&command.split_whitespace().collect::<Vec<_>>())? != shown {
            return Err(
                "the README's first command prints something else than the README".to_string()
            );
        }
        let place = match has_root {
            true => "a root that has nothing else",
            false => "an empty folder without environment (unshare is not permitted)",
        };
        let version = version.lines().next().unwrap_or_default().to_string();
        Ok(Outcome::Done(format!("{version} and the README's first command, in {place}")))
    }

    /// Runs C of a tree by the binary, with the compiler of this computer.
    pub(super) fn tree(&self, host: &str) -> Result<Outcome, String> {
        if !self.archive(host).exists() || Command::new("cc").arg("--version").output().is_err() {
            return Ok(Outcome::Skipped("no binary, or no C compiler".to_string()));
        }
        let folder = self.unpacked(host)?;
        let governors = folder.path().join("tree/drivers/cpuidle/governors");
        make_folder(&governors)?;
        write(&governors.join("first.c"), GOVERNOR)?;
        let kernel =
            format!("linux-6.12:tree={}/tree,cpuidle=tree/first.c", folder.path().display());
        let mut run = Command::new(folder.path().join("schedtwin"));
        run.args(["run", "-m", "pixel6", "-w", "ui-phone", "--duration", "300ms", "-k", &kernel]);
        self.run(run.env("SCHEDTWIN_CACHE", folder.path().join("cache")))?;
        Ok(Outcome::Done(
            "a governor compiled, confined, loaded and asked by the binary".to_string(),
        ))
    }

    /// Installs the wheel into a new environment and runs the README's experiment there.
    pub(super) fn wheel_alone(&self, host: &str) -> Result<Outcome, String> {
        let Ok(wheel) = self.wheel(host) else {
            return Ok(Outcome::Skipped(format!("no wheel for {host} was built")));
        };
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        self.run(Command::new("python3").args(["-m", "venv"]).arg(folder.path()))?;
        let bin = folder.path().join("bin");
        let mut pip = Command::new(bin.join("pip"));
        self.run(pip.args(["install", "--quiet", "--no-index", "--no-deps"]).arg(&wheel))?;
        let mut python = Command::new(bin.join("python"));
        let table = self.run(python.args(["-I", "-c", EXPERIMENT]).current_dir(folder.path()))?;
        if !table.contains("+runnable-boost") {
            return Err("the experiment prints no table".to_string());
        }
        let version = self.run(Command::new(bin.join("schedtwin")).arg("--version"))?;
        let version = version.lines().next().unwrap_or_default().to_string();
        Ok(Outcome::Done(format!(
            "{version} and an experiment of {} lines, in a new environment",
            table.lines().count()
        )))
    }
}
