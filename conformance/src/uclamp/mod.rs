// SPDX-License-Identifier: GPL-2.0-or-later
//! Utilisation clamps against the kernel's own C: [`max`], max aggregation of 6.1 and 6.12; [`sum`], sum aggregation
//! as posted.

pub mod max;
mod mutations;
pub mod sum;

use crate::l0::extract;
use std::path::Path;

const CPUS: usize = 3;
const TASKS: usize = 6;
const GROUPS: u64 = 4;
const CPU_NAMES: [&str; CPUS] = ["cpu0", "cpu1", "cpu2"];
const TASK_NAMES: [&str; TASKS] = ["task0", "task1", "task2", "task3", "task4", "task5"];
/// `SCHED_FLAG_UTIL_CLAMP_MIN`, `SCHED_FLAG_UTIL_CLAMP_MAX`.
const FLAGS: [u64; 2] = [0x20, 0x40];

/// The sysctls and the system-wide limits that they set, in `core.c`.
const SYSCTLS: &[&str] = &[
    "sysctl_sched_uclamp_util_min =",
    "sysctl_sched_uclamp_util_max =",
    "sysctl_sched_uclamp_util_min_rt_default =",
    "uclamp_default[UCLAMP_CNT];",
];

/// Groups and their files in `core.c`, in an order in which it compiles.
const GROUP_FUNCTIONS: &[&str] = &[
    "alloc_uclamp_sched_group",
    "cpu_util_update_eff",
    "uclamp_update_root_tg",
    "sysctl_sched_uclamp_handler",
];

/// The files of groups, and what is written into them.
fn groups(text: &mut Cut, core: &str) -> Result<(), String> {
    text.functions(core, GROUP_FUNCTIONS)?;
    text.macros(core, &["_POW10", "POW10"])?;
    text.add(extract::block(core, "struct uclamp_request"), "struct uclamp_request")?;
    text.functions(core, &["capacity_from_percent", "cpu_uclamp_write"])
}

/// The functions that `sched_setattr` uses for clamps: in `syscalls.c` since 6.12, before in
/// `core.c`.
const ATTRIBUTES: &[&str] = &["uclamp_validate", "uclamp_reset", "__setscheduler_uclamp"];

/// The files that functions are cut out of.
struct Files {
    core: String,
    fair: String,
    rt: String,
    sched_h: String,
    task_h: String,
    governor: String,
    hook_h: String,
    /// `core.c` and what was split off it in 6.12.
    attributes: String,
    /// All that may hold `effective_cpu_util()`.
    utilisation: String,
}

impl Files {
    fn read(tree: &Path) -> Result<Files, String> {
        let read = |name: &str| {
            let path = tree.join(name);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("read {}: {error}", path.display()))
        };
        let core = read("kernel/sched/core.c")?;
        let fair = read("kernel/sched/fair.c")?;
        let syscalls = read("kernel/sched/syscalls.c").unwrap_or_default();
        Ok(Files {
            attributes: [core.as_str(), &syscalls].concat(),
            utilisation: [core.as_str(), &syscalls, &fair].concat(),
            core,
            fair,
            rt: read("kernel/sched/rt.c")?,
            sched_h: read("kernel/sched/sched.h")?,
            task_h: read("include/linux/sched.h")?,
            governor: read("kernel/sched/cpufreq_schedutil.c")?,
            hook_h: read("include/linux/sched/cpufreq.h")?,
        })
    }
}

/// Text that has been cut out.
#[derive(Default)]
struct Cut(String);

impl Cut {
    fn add(&mut self, found: Option<String>, name: &str) -> Result<(), String> {
        self.0 += &found.ok_or(format!("this tree has no {name}"))?;
        Ok(())
    }

    fn functions(&mut self, source: &str, names: &[&str]) -> Result<(), String> {
        names.iter().try_for_each(|name| self.add(extract::function(source, name), name))
    }

    fn macros(&mut self, source: &str, names: &[&str]) -> Result<(), String> {
        names.iter().try_for_each(|name| self.add(extract::macro_definition(source, name), name))
    }

    /// The declaration of a variable, whatever stands before its name.
    fn variables(&mut self, source: &str, names: &[&str]) -> Result<(), String> {
        names.iter().try_for_each(|name| {
            let declares = |line: &&str| !line.starts_with(['\t', ' ']) && line.contains(name);
            self.add(source.lines().find(declares).map(|line| format!("{line}\n")), name)
        })
    }

    fn write(self, build_dir: &Path, name: &str) -> Result<(), String> {
        let file = build_dir.join(name);
        std::fs::write(&file, self.0).map_err(|error| format!("write {}: {error}", file.display()))
    }
}
