// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings of cgroups, of version 2 and of version 1, in the words of version 2.
//!
//! | setting | version 2 | version 1 |
//! |---|---|---|
//! | `cpu.weight /G=50` | `cpu.weight` | `cpu.shares`: weight · 1024 / 100 |
//! | `cpu.max /G=20ms/100ms`, `max/100ms` | `cpu.max` | `cpu.cfs_quota_us`, `cpu.cfs_period_us` |
//! | `cpuset.cpus /G=0-1` | `cpuset.cpus` | `cpuset.cpus` |

use super::journal::Change;
use schedtwin_types::Duration;
use std::fmt;
use std::fs;
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
    Cpus(String),
}

impl GroupSetting {
    /// Reads `FILE GROUP=VALUE`; `None`: the first word is no file of a group.
    pub fn parse(text: &str) -> Option<Result<GroupSetting, String>> {
        let (word, rest) = text.split_once(char::is_whitespace)?;
        let expected = match word {
            "cpu.weight" => "1 to 10000",
            "cpu.max" => "QUOTA/PERIOD as 20ms/100ms, or max/100ms",
            "cpuset.cpus" => "a list of CPUs as 0-3,6",
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
                _ => {
                    let digits = |c: char| c.is_ascii_digit() || ",-".contains(c);
                    GroupValue::Cpus(
                        Some(value).filter(|v| !v.is_empty() && v.chars().all(digits))?.to_owned(),
                    )
                }
            };
            plain.then(|| GroupSetting { group: group.to_owned(), value })
        };
        Some(read().ok_or_else(|| {
            format!("{text}: expected {word} /GROUP=VALUE, the value being {expected}")
        }))
    }

    /// The changes of files that make it so, or why it cannot be.
    pub fn changes(&self, root: &Path) -> Result<Vec<Change>, String> {
        let cpuset = matches!(self.value, GroupValue::Cpus(_));
        let controller = if cpuset { "cpuset" } else { "cpu" };
        let (mount, version) = mount_of(root, controller).ok_or_else(|| {
            format!("{self}: no cgroup file system has the controller {controller}")
        })?;
        let folder = mount.join(self.group.trim_start_matches('/'));
        if !folder.is_dir() {
            return Err(format!("{self}: there is no group {}", folder.display()));
        }
        let one = |name: &str, value: String| vec![(name.to_owned(), value)];
        let files = match (&self.value, version) {
            (GroupValue::Weight(weight), 2) => one("cpu.weight", weight.to_string()),
            (GroupValue::Weight(weight), _) => {
                one("cpu.shares", (weight * 1024 / 100).max(2).to_string())
            }
            (GroupValue::Max(quota, period), 2) => {
                let quota = quota.map_or("max".to_owned(), |quota| quota.to_string());
                one("cpu.max", format!("{quota} {period}"))
            }
            (GroupValue::Max(quota, period), _) => {
                let quota = quota.map_or("-1".to_owned(), |quota| quota.to_string());
                let mut both = one("cpu.cfs_period_us", period.to_string());
                both.extend(one("cpu.cfs_quota_us", quota));
                both
            }
            (GroupValue::Cpus(cpus), _) => one("cpuset.cpus", cpus.clone()),
        };
        let mut changes = Vec::new();
        for (name, now) in files {
            let path = folder.join(name);
            let was = fs::read_to_string(&path)
                .map_err(|error| format!("{self}: {}: {error}", path.display()))?;
            let was = was.trim().to_owned();
            if was != now {
                changes.push(Change::File { path, was, now });
            }
        }
        Ok(changes)
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
                    Change::Thread { .. } => unreachable!(),
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(a, b, c)| (a.to_string(), b.to_string(), c.to_string()))
                .collect();
            assert_eq!(changes, expected);
            let none = GroupSetting::parse("cpu.weight /none=1").unwrap().unwrap();
            assert!(none.changes(root.path()).unwrap_err().contains("there is no group"));
        }
    }
}
