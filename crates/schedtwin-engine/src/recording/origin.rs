// SPDX-License-Identifier: GPL-2.0-or-later
//! Which kernel recorded: vendors' schedulers betray themselves by their tracepoints, and a release names the nearest
//! built-in kernel, which gets the tick and the settings that the file tells.
//!
//! Vendors of phones replace the placement and the frequency decisions of mainline by code of their own, which no built-in kernel
//! has. Work (run times, wakeups) stays usable; placement and frequency of the record are not mainline's. That such
//! tracepoints are absent proves nothing: the recorder may not have enabled them.

use super::TraceSummary;
use crate::kernel_file::{KernelFile, every_name};
use schedtwin_input::{Source, Spec};
use schedtwin_workload::recorded::Recorded;

/// A vendor's scheduler and its signs.
struct Vendor {
    name: &'static str,
    /// Tracepoints that it alone has; those that end in `*` are beginnings of names.
    events: &'static [&'static str],
    /// Beginnings of names of kernel threads that it alone has.
    threads: &'static [&'static str],
    /// Beginnings of names of chips whose Android kernels have it, in lower case.
    chips: &'static [&'static str],
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
        chips: &["sm6", "sm7", "sm8", "sdm", "qcom", "qti"],
    },
    Vendor {
        name: "HMP (Qualcomm)",
        events: &["sched_enq_deq_task", "sched_cpu_load", "sched_reset_all_window_stats"],
        threads: &[],
        chips: &["msm"],
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
        chips: &["exynos", "s5e"],
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
        chips: &["mt6", "mt8", "mediatek"],
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
        chips: &["gs1", "gs2", "zuma", "tensor"],
    },
];

/// The information in a recording about the kernel that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The release, where the file has it.
    pub release: Option<String>,
    /// A vendor's scheduler, and the tracepoint or thread that tells it.
    pub vendor: Option<(&'static str, String)>,
    /// It is Android's, of which no sign tells the vendor's scheduler.
    pub android: bool,
    /// The built-in kernel that is nearest to the release, with the settings that the file tells, as `-k` takes it.
    pub nearest: Option<String>,
    /// Ticks per second, and what tells them.
    pub hz: Option<(u64, &'static str)>,
}

/// The note with the kernel file of `schedtwin record`.
const KERNEL_NOTE: &str = "kernel.toml";

/// Settings of the recorded kernel that are named.
const SETTINGS_MAX: usize = 40;

impl Origin {
    /// Looks for signs in what was read. `ticks`: ticks per second, as its timers' interrupts tell.
    pub fn of(trace: &TraceSummary, recorded: &Recorded, ticks: Option<u64>) -> Origin {
        let release = trace.header.release.clone();
        let names: Vec<String> = every_name().collect();
        let events: Vec<&str> = trace.by_name.keys().map(String::as_str).collect();
        let threads: Vec<&str> = recorded.threads.iter().map(|thread| &*thread.name).collect();
        let nearest = release.as_deref().and_then(|release| nearest(release, &names));
        let note = trace.header.options.iter().find(|(name, _)| name == KERNEL_NOTE);
        let described = note.and_then(|(_, text)| Described::read(text));
        let hz = match &described {
            Some(Described { kernel, .. }) => {
                Some((kernel.config.hz as u64, "its description of the kernel"))
            }
            None => ticks.map(|hz| (hz, "its ticks")),
        };
        let nearest = match (described, nearest, hz) {
            (Some(described), nearest, _) => described.spec(nearest),
            (None, Some(nearest), Some((hz, _))) => Some(with_hz(nearest, hz)),
            (None, nearest, _) => nearest,
        };
        let is_android = release.as_deref().is_some_and(|release| release.contains("android"));
        let chip = trace.header.hardware.as_deref().filter(|_| is_android);
        let vendor = vendor(&events, &threads).or_else(|| vendor_of_chip(chip?));
        Origin { android: is_android && vendor.is_none(), vendor, nearest, release, hz }
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
        if self.android {
            sentences.push(
                "recorded under an Android kernel: vendors of phones put schedulers of their own into it (WALT of \
                 Qualcomm, vendor_sched of Google, EMS of Samsung, MediaTek's), and none of their events is recorded to \
                 tell which, so placement and frequencies of the record may not be mainline's"
                    .to_owned(),
            );
        }
        let hz = match self.hz {
            Some((hz, sign)) => format!(
                " with HZ {hz}, as {sign} tell{}",
                if sign.ends_with("ticks") { "" } else { "s" }
            ),
            None => String::new(),
        };
        match (&self.release, &self.nearest) {
            (Some(release), Some(nearest)) => {
                sentences.push(format!(
                    "recorded on Linux {release}{hz}: nearest built-in kernel {nearest}"
                ));
            }
            (Some(release), None) => sentences.push(format!("recorded on Linux {release}{hz}")),
            (None, Some(nearest)) => {
                sentences.push(format!("recorded{hz}: nearest built-in kernel {nearest}"));
            }
            (None, None) if self.hz.is_some() => {
                sentences.push(format!("recorded on a kernel{hz}; the release is not told"));
            }
            (None, None) => {}
        }
        sentences
    }
}

/// The kernel as the recorder's notes describe it.
struct Described {
    kernel: KernelFile,
    /// The built-in kernel that its file names.
    extends: Option<String>,
}

impl Described {
    /// `None`: the text is no kernel file that can be read here, which is no fault of the recording.
    fn read(text: &str) -> Option<Described> {
        let spec = Spec::parse_kernel("recorded").ok()?;
        let kernel = KernelFile::from_source(&Source::new(KERNEL_NOTE, text), &spec).ok()?;
        let extends = text.lines().find_map(|line| line.trim().strip_prefix("extends"));
        let extends = extends.and_then(|rest| rest.split('"').nth(1)).map(str::to_owned);
        Some(Described { kernel, extends })
    }

    /// The built-in kernel that its file extends, else `nearest`, with what differs from it; `None`: neither is known.
    fn spec(&self, nearest: Option<String>) -> Option<String> {
        let name =
            self.extends.clone().filter(|name| KernelFile::load(name).is_ok()).or(nearest)?;
        let base = KernelFile::load(&name).ok()?.config;
        let had: Vec<(&str, String)> =
            base.values().iter().map(|(s, value)| (s.path, value.to_string())).collect();
        let differs = |(path, value): &(&str, String)| {
            had.iter().find(|(known, _)| known == path).is_none_or(|(_, of)| of != value)
        };
        let config = self.kernel.config.values();
        let now = config.iter().map(|(s, value)| (s.path, value.to_string()));
        let settings: Vec<String> = now
            .filter(differs)
            .take(SETTINGS_MAX)
            .map(|(path, value)| format!("{path}={value}"))
            .collect();
        Some(if settings.is_empty() { name } else { format!("{name}:{}", settings.join(",")) })
    }
}

/// A built-in kernel with that tick.
fn with_hz(name: String, hz: u64) -> String {
    match KernelFile::load(&name) {
        Ok(kernel) if kernel.config.hz as u64 != hz => format!("{name}:hz={hz}"),
        _ => name,
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

/// The vendor's scheduler that Android kernels of a chip have.
fn vendor_of_chip(chip: &str) -> Option<(&'static str, String)> {
    let name = chip.to_ascii_lowercase();
    let is_of = |vendor: &&Vendor| vendor.chips.iter().any(|begins| name.starts_with(begins));
    let vendor = VENDORS.iter().find(is_of)?;
    Some((vendor.name, format!("its chip {chip}")))
}

/// Major and minor number at the beginning of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Releases from 3.0 to a version: 4.0 came after 3.19, 5.0 after 4.20, 6.0 after 5.19, 7.0 after 6.19.
fn releases_before((major, minor): (u32, u32)) -> i64 {
    let (major, minor) = (i64::from(major), i64::from(minor));
    20 * (major - 3) + minor + i64::from(major > 4)
}

/// The built-in kernel that the fewest releases lie between, the older one of two that are as near. Of several of one version:
/// Android's, if the release is one, or a distribution's, if the release names it; else mainline's.
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
    let distance = |of: (u32, u32)| (releases_before(of) - releases_before(recorded)).abs();
    let (chosen, ..) = known.iter().min_by_key(|(of, ..)| distance(*of))?;
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

    /// Release, ticks and the recorder's own description, from the least to the most.
    #[test]
    fn the_nearest_kernel_has_the_tick_and_settings_that_are_told() {
        let of = |release: Option<&str>, ticks: Option<u64>, note: Option<&str>| {
            let mut trace = TraceSummary::default();
            trace.header.release = release.map(str::to_owned);
            let note = note.map(|text| (KERNEL_NOTE.to_owned(), text.to_owned()));
            trace.header.options.extend(note);
            let origin = Origin::of(&trace, &Recorded::default(), ticks);
            origin.sentences().join("; ")
        };
        let base = KernelFile::load("linux-6.12").unwrap().config;
        let other = if base.hz == 1000 { 250 } else { 1000 };
        assert_eq!(
            of(Some("6.12.95"), Some(other as u64), None),
            format!(
                "recorded on Linux 6.12.95 with HZ {other}, as its ticks tell: nearest built-in \
                 kernel linux-6.12:hz={other}"
            )
        );
        let same = of(Some("6.12.95"), Some(base.hz as u64), None);
        assert!(same.ends_with("nearest built-in kernel linux-6.12"), "{same}");
        assert_eq!(of(None, None, None), "");
        let only_ticks = of(None, Some(300), None);
        assert_eq!(
            only_ticks,
            "recorded on a kernel with HZ 300, as its ticks tell; the release is not told"
        );
        let note = format!(
            "name = \"mine\"\ndescription = \"of mine\"\nextends = \"linux-6.12\"\nhz = {other}\n\
             nr_migrate = 7\n"
        );
        let described = of(Some("6.12.95"), Some(300), Some(&note));
        assert!(described.contains(&format!("with HZ {other}, as its description")), "{described}");
        let spec = described.rsplit(' ').next().unwrap();
        let kernel = KernelFile::load(spec).unwrap();
        assert_eq!((kernel.config.hz, kernel.config.nr_migrate), (other, 7));
        // A note that is no kernel file is passed over.
        assert_eq!(of(None, None, Some("hz = ???")), "");
    }

    #[test]
    fn the_nearest_kernel_is_the_fewest_releases_away() {
        let builtin: Vec<String> = [
            "linux-4.7",
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
            ("6.18.0", Some("linux-7.3")),
            ("6.17.0", Some("linux-6.12")),
            ("4.14.117", Some("linux-4.7")),
            // 8 releases to 5.18, 24 to 4.7.
            ("5.10.107-android13-4-g0", Some("linux-5.18")),
            ("9.0", Some("linux-7.3")),
            ("unknown", None),
        ] {
            assert_eq!(nearest(release, &builtin).as_deref(), expected, "{release}");
        }
    }
}
