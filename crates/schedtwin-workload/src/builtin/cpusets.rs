// SPDX-License-Identifier: GPL-2.0-or-later
//! Which CPUs Android's cpusets leave to the threads around an app.
//!
//! The app that one sees may run everywhere. What serves it may not use the largest CPU, and what composes the screen none
//! but the small ones, so the largest are idle when the app wakes up. Without that, a thread that
//! has just woken up there sends the app to
//! the next CPU, which behind the last one is a small one; and where no energy model places tasks, there it stays.
//!
//! | set | who | Pixel 6 | here |
//! |---|---|---|---|
//! | top-app | the app's threads | 0-7 | all |
//! | foreground | zygote's children, so system_server | 0-5 | all but the largest |
//! | system-background | surfaceflinger and the threads it starts later, the composer | 0-3 | the smallest |
//! | root | kernel threads, surfaceflinger's binder threads | 0-7 | all |
//!
//! Sources: CPUs from Pixel 6's start-up script (android_device_google_gs101, `conf/init.gs101.rc`) [S]; who is where from
//! `main_surfaceflinger.cpp`, the composer's and zygote's `.rc` files [S]. The traces agree: surfaceflinger, its event threads and
//! the composer on CPUs 0-3, its binder threads everywhere, system_server on all but the largest (SM8250: 0-6).
//! Sensor services are in system-background because the traces have them there [E].
//!
//! Differences: sets by capacity rather than by number, so that they mean something on other machines. Bandwidth and shares of
//! Android's groups are left out: nobody here competes long enough for shares to matter.

use super::options::{Values, WorkloadOption};
use super::script::Script;
use crate::Host;
use schedtwin_types::{CpuId, CpuMask};

/// Whether there are any.
pub(super) const OPTION: WorkloadOption =
    WorkloadOption::count(None, "cpusets", "", 1, (0, 1), "0: every thread may run everywhere");

/// The threads that may not use the largest CPUs.
const FOREGROUND: [&str; 8] = [
    "Binder:system_1",
    "InputDispatcher",
    "ActivityManager",
    "system_server",
    "Binder:system_C",
    "SensorService",
    "android.ui",
    "PowerManagerSer",
];
/// The threads that may use the smallest CPUs only.
const SYSTEM_BACKGROUND: [&str; 8] = [
    "TimerDispatch",
    "app",
    "sf",
    "surfaceflinger",
    "HwBinder:composer",
    "SDM_EventThread",
    "sensors-hal",
    "HwBinder:sensor",
];

/// Confines the threads of a script, if asked to.
pub(super) fn confine(script: &mut Script, values: &Values, host: &Host) {
    if values.whole("cpusets") == 1 {
        confine_by_capacity(script, host);
    }
}

fn confine_by_capacity(script: &mut Script, host: &Host) {
    let capacity = &host.cpu_capacity;
    let [least, most] = [capacity.iter().min(), capacity.iter().max()].map(|it| it.copied());
    if least == most {
        return;
    }
    let those = |keep: &dyn Fn(u32) -> bool| -> CpuMask {
        let cpus = capacity.iter().enumerate().filter(|(_, capacity)| keep(**capacity));
        cpus.map(|(cpu, _)| CpuId(cpu as u16)).collect()
    };
    let small = those(&|capacity| Some(capacity) == least);
    let not_largest = those(&|capacity| Some(capacity) != most);
    for thread in &mut script.threads {
        if FOREGROUND.contains(&thread.group.as_str()) {
            thread.cpus = Some(not_largest);
        } else if SYSTEM_BACKGROUND.contains(&thread.group.as_str()) {
            thread.cpus = Some(small);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::benchmark::Benchmark;
    use crate::builtin::jankbench::Jankbench;
    use crate::builtin::options;
    use crate::builtin::script::nice;
    use schedtwin_input::Source;

    fn host(cpu_capacity: &[u32]) -> Host {
        Host {
            cpu_capacity: cpu_capacity.to_vec(),
            ns_per_loop: 100,
            dl_bandwidth: None,
            block_devices: Vec::new(),
        }
    }

    #[test]
    fn sets_follow_capacities() {
        for (capacities, composer, server) in [
            (&[124, 124, 124, 124, 427, 427, 1024, 1024][..], "0-3", "0-5"),
            (&[188, 188, 188, 188, 731, 731, 731, 1024], "0-3", "0-6"),
            (&[1024, 400, 400, 1024], "1-2", "1-2"),
            (&[1024, 1024], "all", "all"),
        ] {
            let mut script = Script::new(capacities.len());
            for name in ["surfaceflinger", "InputDispatcher", "RenderThread", "Binder:sf_1"] {
                script.thread(name, nice(0)).for_ever();
            }
            confine_by_capacity(&mut script, &host(capacities));
            let cpus = |thread: usize| {
                script.threads[thread].cpus.map_or("all".to_owned(), |cpus| cpus.to_string())
            };
            let found: Vec<String> = (0..4).map(cpus).collect();
            assert_eq!(found, [composer, server, "all", "all"], "{capacities:?}");
        }
    }

    #[test]
    fn every_name_is_a_threads() {
        let source = Source::new("defaults", "jankbench");
        let values = options::read(&source, 9, "jankbench", Jankbench.options()).expect("defaults");
        let script = Jankbench.build(&values, &host(&[124, 1024]));
        for name in FOREGROUND.iter().chain(&SYSTEM_BACKGROUND) {
            assert!(script.threads.iter().any(|thread| thread.group == *name), "{name}");
        }
    }
}
