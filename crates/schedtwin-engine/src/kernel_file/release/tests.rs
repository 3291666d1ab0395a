// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;

/// Settings in which a kernel's file is not what the histories say of its release, with the reason. Files keep them, so that
/// results do not move.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    (
        "linux-4.7",
        &[
            "powerpc_l2",
            "dbs.deferred_steps",
            "features.alt_period",
            "features.base_slice",
            "features.util_est_fastup",
            "features.sis_prop",
            "pick_busiest_bigger",
        ],
        "only its frequency side is of 4.7; the rest is that of linux-5.11, as its file says",
    ),
    (
        "linux-5.11",
        &["features.alt_period", "features.base_slice"],
        "an error of the file: both features came with 5.13 and were taken over from linux-5.18",
    ),
    ("linux-5.11", &["dbs.deferred_steps", "pick_busiest_bigger"], OF_LATER_RELEASES),
    ("linux-5.18", &["dbs.deferred_steps", "pick_busiest_bigger"], OF_LATER_RELEASES),
    ("linux-6.0", &["dbs.deferred_steps", "pick_busiest_bigger"], OF_LATER_RELEASES),
    ("linux-6.3", &["dbs.deferred_steps", "pick_busiest_bigger"], OF_LATER_RELEASES),
    ("linux-6.6", &["dbs.deferred_steps"], OF_LATER_RELEASES),
    (
        "linux-6.6",
        &["rto_next_cpu"],
        "taken over from 6.12.95, as its file says: 6.6.139 was not seen",
    ),
    (
        "linux-6.1",
        &["dbs.deferred_steps", "features.rt_push_ipi"],
        "errors of the file: 6.1.192 has the forms that the histories say",
    ),
    (
        "linux-6.12",
        &["dbs.deferred_steps"],
        "an error of the file: 6.12.95 has the form that the history says",
    ),
];

/// A file that keeps the form of a later release or of a backport.
const OF_LATER_RELEASES: &str = "errors of the file: `dbs.deferred_steps` has the form of 6.12.117, which is what files \
    that do not name it mean, `pick_busiest_bigger` that of a backport in 6.1.192";

/// The releases that the files were read from.
const READ: [(&str, &str); 10] = [
    ("linux-5.11", "5.11"),
    ("linux-5.18", "5.18"),
    ("linux-6.0", "6.0"),
    ("linux-6.1", "6.1.192"),
    ("linux-6.3", "6.3"),
    ("linux-6.6", "6.6.139"),
    ("linux-6.12", "6.12.95"),
    ("linux-6.18", "6.18.45"),
    ("linux-7.3", "7.3"),
    ("linux-4.7", "4.7"),
];

#[test]
fn files_are_what_the_histories_say() {
    let mut wrong = Vec::new();
    for (name, release) in READ {
        let file = KernelFile::load(name).unwrap();
        let release = Release::parse(release).unwrap();
        for (setting, value) in file.config.values() {
            // Files have no wrong rule on, whichever release they follow: bugs.rs.
            let Some(form) = setting.form_in(release).filter(|_| !setting.is_bug()) else {
                assert!(!setting.is_bug() || value == false.into(), "{name} {}", setting.path);
                continue;
            };
            let excused = EXCEPTIONS
                .iter()
                .any(|(of, paths, _)| *of == name && paths.contains(&setting.path));
            if (form.value != value) != excused {
                let path = setting.path;
                wrong.push(format!("{name} {path}: {value}, by its history {}", form.value));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_composed_kernel_is_read_and_says_where_it_comes_from() {
    for name in names() {
        let kernel = KernelFile::load(&name).unwrap_or_else(|faults| panic!("{name}: {faults}"));
        assert!(kernel.description.contains("composed"), "{}", kernel.description);
        let text = kernel.describe();
        assert!(text.contains("\nComposed: "), "{name}: {text}");
        let again = KernelFile::from_source(
            &Source::new("again.toml", kernel.to_file()),
            &schedtwin_input::Spec::parse_kernel(&name).unwrap(),
        );
        assert_eq!(again.unwrap().config, kernel.config, "{name}");
    }
}

#[test]
fn a_release_between_two_files_has_its_own_forms() {
    let config = |name: &str| KernelFile::load(name).unwrap().config;
    let [old, new] = ["linux-6.7", "linux-6.8"].map(config);
    assert_eq!(old.effective_cpu_util.word(), "headroom-last");
    assert_eq!(new.effective_cpu_util.word(), "clamp-last");
    assert_eq!(new.timer_migration.word(), "busy-cpu", "the hierarchy came with 6.9");
    assert_eq!(config("linux-6.14").base_slice_unscaled, 750_000);
    assert_eq!(config("linux-6.15").base_slice_unscaled, 700_000);
    let old = config("linux-4.19");
    assert!(!old.energy_aware);
    assert!(!old.uclamp.is_compiled_in(), "clamps came with 5.3");
    assert_eq!(config("linux-5.10-gki").uclamp_buckets, 20);
}

#[test]
fn a_stable_release_has_the_forms_of_its_number() {
    let config = |name: &str| KernelFile::load(name).unwrap().config;
    assert_eq!(config("linux-6.12.0").base_slice_unscaled, 750_000);
    assert!(!config("linux-6.12.0").features.ni_random);
    assert_eq!(config("linux-6.18.16").lag_limit.word(), "two-slices");
    assert_eq!(config("linux-6.18.17").lag_limit.word(), "max-slice-and-tick");
    let listed = names();
    assert!(listed.contains(&"linux-6.12.0".to_string()), "{listed:?}");
    assert!(!listed.contains(&"linux-7.0.0".to_string()), "nothing was corrected: {listed:?}");
}

#[test]
fn a_composed_kernel_has_the_wrong_rules_of_its_release() {
    let names: Vec<String> = names().into_iter().chain(["linux-6.12.9".to_string()]).collect();
    for name in names {
        let of = Composition::of(&name).unwrap();
        let config = KernelFile::load(&name).unwrap().config;
        for (setting, value) in config.values().into_iter().filter(|(s, _)| s.is_bug()) {
            let form = setting.form_in(of.release).expect("every bug names its releases");
            assert_eq!(form.value, value, "{name} {}", setting.path);
        }
    }
    let config = |name: &str| KernelFile::load(name).unwrap().config;
    assert!(config("linux-6.18.0").bugs.newidle_cost_raised_by_failure);
    assert!(!config("linux-6.18.3").bugs.newidle_cost_raised_by_failure);
    assert!(config("linux-6.12.0").bugs.delayed_group_weight);
    assert!(!config("linux-6.12").bugs.delayed_group_weight);
}

#[test]
fn a_release_without_a_name_is_told_its_neighbours() {
    for (name, parts) in [
        ("linux-6.20", ["did you mean `linux-6.19`", "linux-6.19 and linux-7.0 differ in"]),
        ("linux-5.3", ["did you mean `linux-5.4`", "linux-4.19 and linux-5.4 differ in"]),
        ("linux-9.9", ["did you mean `linux-7.3`", "the newest release here"]),
        ("linux-4.4", ["did you mean `linux-4.7`", "the oldest release here"]),
        ("linux-5.3.18", ["did you mean `linux-5.4`", "linux-4.19 and linux-5.4 differ in"]),
    ] {
        let text = KernelFile::load(name).unwrap_err().to_string();
        for part in parts {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
