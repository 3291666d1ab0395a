// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings of cgroups, of version 2 and of version 1, in the words of version 2.
//!
//! | setting | version 2 | version 1 |
//! |---|---|---|
//! | `cpu.weight /G=50` | `cpu.weight` | `cpu.shares`: weight · 1024 / 100 |
//! | `cpu.max /G=20ms/100ms`, `max/100ms` | `cpu.max` | `cpu.cfs_quota_us`, `cpu.cfs_period_us` |
//! | `cpuset.cpus /G=0-1` | `cpuset.cpus` | `cpuset.cpus` |
//!
//! A group that is not there is made, and what runs under the settings runs in it. Of one that is there only the files
//! change, for those that are in it.

use super::journal::Change;
use schedtwin_types::Duration;
use schedtwin_workload::{CPU_LIST, ThreadSetting, ThreadValue, list_of};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file of a cgroup and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSetting {
    /// The path of the group, from `/`.
    group: String,
    value: GroupValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum GroupValue {
    Weight(u32),
    /// Quota (`None`: no limit) and period, µs.
    Max(Option<u64>, u64),
    /// A list as the kernel writes it.
    Cpus(String),
}

impl GroupSetting {
    /// Reads `FILE GROUP=VALUE`; `None`: the first word is no file of a group.
    pub fn parse(text: &str) -> Option<Result<GroupSetting, String>> {
        let (word, rest) = text.split_once(char::is_whitespace)?;
        let expected = match word {
            "cpu.weight" => "1 to 10000",
            "cpu.max" => "QUOTA/PERIOD as 20ms/100ms, or max/100ms",
            "cpuset.cpus" => CPU_LIST,
            _ => return None,
        };
        let read = || {
            let (group, value) = rest.trim().rsplit_once('=')?;
            let group = group.trim();
            let plain = group.starts_with('/') && !group.split('/').any(|part| part == "..");
            let us = |text: &str| text.parse::<Duration>().ok().map(|time| time.ns() / 1000);
            let value = match word {
                "cpu.weight" => GroupValue::Weight(
                    value.parse().ok().filter(|weight| (1..=10_000).contains(weight))?,
                ),
                "cpu.max" => {
                    let (quota, period) = value.split_once('/')?;
                    let quota = if quota == "max" { None } else { Some(us(quota)?) };
                    GroupValue::Max(quota, us(period)?)
                }
                _ => match ThreadSetting::parse(&format!("cpus *={value}"))?.ok()?.value {
                    ThreadValue::Cpus(cpus) => GroupValue::Cpus(list_of(&cpus)),
                    _ => return None,
                },
            };
            plain.then(|| GroupSetting { group: group.to_owned(), value })
        };
        Some(read().ok_or_else(|| {
            format!("{text}: expected {word} /GROUP=VALUE, the value being {expected}")
        }))
    }

    /// The changes that make it so, or why it cannot be.
    pub fn changes(&self, root: &Path) -> Result<Vec<Change>, String> {
        let cpuset = matches!(self.value, GroupValue::Cpus(_));
        let controller = if cpuset { "cpuset" } else { "cpu" };
        let (mount, version) = mount_of(root, controller).ok_or_else(|| {
            format!("{self}: no cgroup file system has the controller {controller}")
        })?;
        let path = mount.join(self.group.trim_start_matches('/'));
        let read = |path: &Path| {
            let text = fs::read_to_string(path);
            text.map(|text| text.trim().to_owned())
                .map_err(|error| format!("{self}: {}: {error}", path.display()))
        };
        let mut files = self.files(version);
        if path.is_dir() {
            let mut changes = Vec::new();
            for (name, now) in files {
                let path = path.join(name);
                let was = read(&path)?;
                if was != now {
                    changes.push(Change::File { path, was, now });
                }
            }
            return Ok(changes);
        }
        let above = path.parent().filter(|above| above.is_dir()).ok_or_else(|| {
            format!("{self}: there is no group above {}: make that one first", path.display())
        })?;
        let mut changes = Vec::new();
        if version == 2 {
            let offered = read(&above.join("cgroup.controllers"))?;
            if !offered.split_whitespace().any(|word| word == controller) {
                return Err(format!(
                    "{self}: {} has no controller {controller}: its own groups above do not give it",
                    above.display()
                ));
            }
            let path = above.join("cgroup.subtree_control");
            if !read(&path)?.split_whitespace().any(|word| word == controller) {
                let (was, now) = (format!("-{controller}"), format!("+{controller}"));
                changes.push(Change::File { path, was, now });
            }
        } else if cpuset {
            // No process can enter a new group of version 1 without it.
            files.insert(0, ("cpuset.mems", read(&above.join("cpuset.mems"))?));
        }
        let files = files.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        changes.push(Change::Group { path, files });
        Ok(changes)
    }

    /// The files of a group and their values, in the order in which they are written.
    fn files(&self, version: u32) -> Vec<(&'static str, String)> {
        match (&self.value, version) {
            (GroupValue::Weight(weight), 2) => vec![("cpu.weight", weight.to_string())],
            (GroupValue::Weight(weight), _) => {
                vec![("cpu.shares", (weight * 1024 / 100).max(2).to_string())]
            }
            (GroupValue::Max(quota, period), 2) => {
                let quota = quota.map_or("max".to_owned(), |quota| quota.to_string());
                vec![("cpu.max", format!("{quota} {period}"))]
            }
            (GroupValue::Max(quota, period), _) => {
                let quota = quota.map_or("-1".to_owned(), |quota| quota.to_string());
                vec![("cpu.cfs_period_us", period.to_string()), ("cpu.cfs_quota_us", quota)]
            }
            (GroupValue::Cpus(cpus), _) => vec![("cpuset.cpus", cpus.clone())],
        }
    }
}

/// Adds the changes of a group's setting; a new group gets all its files in one change.
pub fn add(changes: &mut Vec<Change>, more: Vec<Change>) {
    for change in more {
        if changes.contains(&change) {
            continue;
        }
        if let Change::Group { path: new, files: more } = &change {
            let known = changes.iter_mut().find_map(|known| match known {
                Change::Group { path, files } if path == new => Some(files),
                _ => None,
            });
            if let Some(files) = known {
                files.extend(more.iter().cloned());
                continue;
            }
        }
        changes.push(change);
    }
}

/// The groups that changes make, which the work enters; or why it cannot.
pub fn entered(changes: &[Change]) -> Result<Vec<PathBuf>, String> {
    let made = changes.iter().filter_map(|change| match change {
        Change::Group { path, .. } => Some(path.clone()),
        _ => None,
    });
    let made: Vec<PathBuf> = made.collect();
    // Hierarchies of version 1 have one folder each, of the same name.
    let names: BTreeSet<_> = made.iter().filter_map(|path| path.file_name()).collect();
    match names.len() {
        0 | 1 => Ok(made),
        _ => Err(format!(
            "the work runs in one new group, not in {}: make the others first",
            names.iter().map(|name| name.to_string_lossy()).collect::<Vec<_>>().join(" and ")
        )),
    }
}

/// Moves this process into a group and reads it back.
pub fn enter(group: &Path) -> Result<(), String> {
    let (procs, own) = (group.join("cgroup.procs"), std::process::id().to_string());
    let moved = fs::write(&procs, &own).and_then(|()| fs::read_to_string(&procs));
    let failed = |why: &str| format!("failed to enter {}: {why}", group.display());
    match moved {
        Ok(members) if members.lines().any(|member| member == own) => Ok(()),
        Ok(_) => Err(failed("the kernel did not take it")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(failed(&format!(
            "{error}: it needs root, CAP_DAC_OVERRIDE or a group that is yours"
        ))),
        Err(error) => Err(failed(&error.to_string())),
    }
}

/// Where a controller is mounted, and the version.
fn mount_of(root: &Path, controller: &str) -> Option<(PathBuf, u32)> {
    let mounts = fs::read_to_string(root.join("proc/mounts")).ok()?;
    let mut unified = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        let (Some(place), Some(kind), Some(options)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let place = root.join(place.trim_start_matches('/'));
        match kind {
            "cgroup" if options.split(',').any(|option| option == controller) => {
                return Some((place, 1));
            }
            "cgroup2" => {
                let has = fs::read_to_string(place.join("cgroup.controllers")).unwrap_or_default();
                let has = has.split_whitespace().any(|known| known == controller);
                unified = unified.or(has.then_some((place, 2)));
            }
            _ => {}
        }
    }
    unified
}

impl fmt::Display for GroupSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = &self.group;
        let word = |us: u64| Duration::from_ns(us * 1000).word();
        match &self.value {
            GroupValue::Weight(weight) => write!(f, "cpu.weight {group}={weight}"),
            GroupValue::Max(quota, period) => {
                let quota = quota.map_or("max".to_owned(), word);
                write!(f, "cpu.max {group}={quota}/{}", word(*period))
            }
            GroupValue::Cpus(cpus) => write!(f, "cpuset.cpus {group}={cpus}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_get_their_own_files() {
        for (mounts, files, text, expected) in [
            (
                "cgroup /cg/cpu cgroup rw,cpu 0 0\n",
                &[("cg/cpu/w/cpu.cfs_period_us", "100000"), ("cg/cpu/w/cpu.cfs_quota_us", "-1")][..],
                "cpu.max /w=20ms/100ms",
                &[("cpu.cfs_quota_us", "-1", "20000")][..],
            ),
            (
                "cgroup2 /cg cgroup2 rw 0 0\n",
                &[("cg/cgroup.controllers", "cpuset cpu\n"), ("cg/w/cpu.max", "max 100000\n")],
                "cpu.max /w=20ms/100ms",
                &[("cpu.max", "max 100000", "20000 100000")],
            ),
            (
                "cgroup /cg/cpu cgroup rw,cpu 0 0\n",
                &[("cg/cpu/w/cpu.shares", "1024")],
                "cpu.weight /w=50",
                &[("cpu.shares", "1024", "512")],
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("proc/mounts", mounts);
            files.iter().for_each(|(path, text)| write(path, text));
            let setting = GroupSetting::parse(text).unwrap().unwrap();
            assert_eq!(setting.to_string(), text);
            let changes: Vec<(String, String, String)> = setting
                .changes(root.path())
                .unwrap()
                .into_iter()
                .map(|change| match change {
                    Change::File { path, was, now } => {
                        (path.file_name().unwrap().to_string_lossy().into_owned(), was, now)
                    }
                    other => unreachable!("{other:?}"),
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(a, b, c)| (a.to_string(), b.to_string(), c.to_string()))
                .collect();
            assert_eq!(changes, expected);
            let none = GroupSetting::parse("cpu.weight /none/inner=1").unwrap().unwrap();
            assert!(none.changes(root.path()).unwrap_err().contains("there is no group above"));
        }
    }

    #[test]
    fn a_group_that_is_not_there_is_made_with_all_its_values() {
        let root = tempfile::tempdir().unwrap();
        let cgroups = root.path().join("cg");
        fs::create_dir_all(&cgroups).unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/mounts"), "cgroup2 /cg cgroup2 rw 0 0\n").unwrap();
        fs::write(cgroups.join("cgroup.controllers"), "cpuset cpu\n").unwrap();
        fs::write(cgroups.join("cgroup.subtree_control"), "cpuset\n").unwrap();
        let mut changes = Vec::new();
        for text in ["cpu.max /w=20ms/100ms", "cpu.weight /w=50", "cpuset.cpus /w=1,0"] {
            let setting = GroupSetting::parse(text).unwrap().unwrap();
            add(&mut changes, setting.changes(root.path()).unwrap());
        }
        let files = [("cpu.max", "20000 100000"), ("cpu.weight", "50"), ("cpuset.cpus", "0-1")];
        let files = files.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let control = cgroups.join("cgroup.subtree_control");
        let group = Change::Group { path: cgroups.join("w"), files: files.to_vec() };
        assert_eq!(
            changes,
            [Change::File { path: control, was: "-cpu".into(), now: "+cpu".into() }, group]
        );
        assert_eq!(entered(&changes), Ok(vec![cgroups.join("w")]));
        let other = GroupSetting::parse("cpu.weight /v=50").unwrap().unwrap();
        add(&mut changes, other.changes(root.path()).unwrap());
        assert!(entered(&changes).unwrap_err().contains("v and w"));
    }
}
