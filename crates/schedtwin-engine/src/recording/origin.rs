// SPDX-License-Identifier: GPL-2.0-or-later
//! Which kernel recorded: vendors' schedulers betray themselves by their tracepoints, and a release names the nearest
//! built-in kernel.
//!
//! Vendors of phones replace the placement and the frequency decisions of mainline by code of their own, which no built-in kernel
//! has. Work (run times, wakeups) stays usable; placement and frequency of the record are not mainline's. That such
//! tracepoints are absent proves nothing: the recorder may not have enabled them.

use super::TraceSummary;
use schedtwin_workload::recorded::Recorded;

/// A vendor's scheduler and its signs.
struct Vendor {
    name: &'static str,
    /// Tracepoints that it alone has; those that end in `*` are beginnings of names.
    events: &'static [&'static str],
    /// Beginnings of names of kernel threads that it alone has.
    threads: &'static [&'static str],
}

const VENDORS: [Vendor; 5] = [
    Vendor {
        name: "WALT (Qualcomm)",
        events: &[
            "walt_*",
            "sched_update_task_ravg",
            "sched_update_task_ravg_mini",
            "sched_update_history",
            "sched_update_pred_demand",
            "sched_get_task_cpu_cycles",
            "sched_set_preferred_cluster",
            "sched_migration_update_sum",
            "sched_load_to_gov",
            "sched_rt_find_lowest_rq",
        ],
        threads: &["core_ctl/"],
    },
    Vendor {
        name: "HMP (Qualcomm)",
        events: &["sched_enq_deq_task", "sched_cpu_load", "sched_reset_all_window_stats"],
        threads: &[],
    },
    Vendor {
        name: "EMS (Samsung)",
        events: &[
            "ems_*",
            "ontime_migration",
            "emstune_mode",
            "frt_select_task_rq",
            "lb_newidle_balance",
            "lb_active_migration",
            "sysbusy_state",
            "ego_req_freq",
            "halo_select",
        ],
        threads: &[],
    },
    Vendor {
        name: "MediaTek's scheduler",
        events: &[
            "sched_big_task_rotation",
            "sched_leakage",
            "sched_queue_task",
            "sched_task_uclamp",
        ],
        threads: &[],
    },
    Vendor {
        name: "vendor_sched (Google Pixel)",
        events: &[
            "sched_cpu_util_cfs",
            "sched_rt_cpu_util",
            "sched_find_least_loaded_cpu",
            "sched_wakeup_task_attr",
            "sched_group_tracker",
            "sched_setscheduler_uclamp",
            "schedutil_cpu_util_clamp",
            "set_cpus_allowed_by_task",
        ],
        threads: &[],
    },
];

/// The information in a recording about the kernel that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The release, where the file has it.
    pub release: Option<String>,
    /// A vendor's scheduler, and the tracepoint or thread that tells it.
    pub vendor: Option<(&'static str, String)>,
    /// The built-in kernel that is nearest to the release.
    pub nearest: Option<String>,
}

impl Origin {
    /// Looks for signs in what was read.
    pub fn of(trace: &TraceSummary, recorded: &Recorded) -> Origin {
        let release = trace.header.release.clone();
        let names: Vec<String> =
            crate::kernel_file::builtin_names().into_iter().map(|(name, _)| name).collect();
        let events: Vec<&str> = trace.by_name.keys().map(String::as_str).collect();
        let threads: Vec<&str> = recorded.threads.iter().map(|thread| &*thread.name).collect();
        Origin {
            vendor: vendor(&events, &threads),
            nearest: release.as_deref().and_then(|release| nearest(release, &names)),
            release,
        }
    }

    /// Returns the facts about it that a user should know, a sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some((vendor, sign)) = &self.vendor {
            sentences.push(format!(
                "recorded under {vendor}, as {sign} tells: no built-in kernel is that one, so placement and \
                 frequencies of the record are not mainline's"
            ));
        }
        match (&self.release, &self.nearest) {
            (Some(release), Some(nearest)) => {
                sentences.push(format!(
                    "recorded on Linux {release}: nearest built-in kernel {nearest}"
                ));
            }
            (Some(release), None) => sentences.push(format!("recorded on Linux {release}")),
            (None, _) => {}
        }
        sentences
    }
}

/// The vendor's scheduler of which there are signs, and the first sign.
fn vendor(events: &[&str], threads: &[&str]) -> Option<(&'static str, String)> {
    let matches = |pattern: &str, event: &str| match pattern.strip_suffix('*') {
        Some(beginning) => event.starts_with(beginning),
        None => event == pattern,
    };
    for vendor in &VENDORS {
        let sign = |event: &&&str| vendor.events.iter().any(|pattern| matches(pattern, event));
        if let Some(event) = events.iter().find(sign) {
            return Some((vendor.name, format!("its event {event}")));
        }
    }
    for vendor in &VENDORS {
        let sign = |name: &&&str| vendor.threads.iter().any(|begins| name.starts_with(begins));
        if let Some(thread) = threads.iter().find(sign) {
            return Some((vendor.name, format!("its thread {thread}")));
        }
    }
    None
}

/// Major and minor number at the beginning of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The newest built-in kernel that is not newer than the release, else the oldest. Of several of one version: Android's, if
/// the release is one, or a distribution's, if the release names it; else mainline's.
fn nearest(release: &str, builtin: &[String]) -> Option<String> {
    let recorded = version(release)?;
    let flavour = match release {
        _ if release.contains("android") => "gki",
        _ if release.contains("deb") => "debian",
        _ => "",
    };
    let known = |name: &String| {
        let text = name.strip_prefix("linux-")?;
        let (numbers, flavour_of) = text.split_once('-').unwrap_or((text, ""));
        Some((version(numbers)?, flavour_of.to_owned(), name.clone()))
    };
    let mut known: Vec<_> = builtin.iter().filter_map(known).collect();
    known.retain(|(_, of, _)| of.is_empty() || of == flavour);
    known.sort();
    let newest = known.iter().rfind(|(of, ..)| *of <= recorded);
    let (chosen, ..) = newest.or(known.first())?;
    let of_version = || known.iter().filter(|(of, ..)| of == chosen);
    let wanted = of_version().find(|(_, of, _)| of == flavour).or_else(|| of_version().next());
    wanted.map(|(_, _, name)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_are_told_by_their_signs() {
        for (events, threads, expected) in [
            (&["sched_switch", "walt_window_rollover"][..], &[][..], "WALT (Qualcomm)"),
            (&["sched_switch"], &["kworker/0:1", "core_ctl/4"], "WALT (Qualcomm)"),
            (&["sched_enq_deq_task"], &[], "HMP (Qualcomm)"),
            (&["ems_select_task_rq"], &["core_ctl/4"], "EMS (Samsung)"),
            (&["sched_queue_task"], &[], "MediaTek's scheduler"),
            (&["sched_wakeup_task_attr"], &[], "vendor_sched (Google Pixel)"),
            (&["sched_pelt_cfs", "uclamp_util_se", "sched_blocked_reason"], &["core_ctl"], ""),
        ] {
            let found = vendor(events, threads).map_or("", |(name, _)| name);
            assert_eq!(found, expected, "{events:?} {threads:?}");
        }
        let (_, sign) = vendor(&["walt_window_rollover"], &[]).unwrap();
        assert_eq!(sign, "its event walt_window_rollover");
    }

    #[test]
    fn the_nearest_kernel_is_not_newer() {
        let builtin: Vec<String> = [
            "linux-5.18",
            "linux-5.18-fp",
            "linux-6.1",
            "linux-6.1-gki",
            "linux-6.12",
            "linux-6.12-debian",
            "linux-7.3",
        ]
        .map(str::to_owned)
        .into();
        for (release, expected) in [
            ("6.12.95", Some("linux-6.12")),
            ("6.12.95+deb13-arm64", Some("linux-6.12-debian")),
            ("6.1.68-android14-11-gabc", Some("linux-6.1-gki")),
            ("6.6.30-android15", Some("linux-6.1-gki")),
            ("6.18.0", Some("linux-6.12")),
            ("4.14.117", Some("linux-5.18")),
            ("9.0", Some("linux-7.3")),
            ("unknown", None),
        ] {
            assert_eq!(nearest(release, &builtin).as_deref(), expected, "{release}");
        }
    }
}
