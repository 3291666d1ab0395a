// SPDX-License-Identifier: GPL-2.0-or-later
//! The files that a server may touch: those below one folder to read, and temporary ones.
//!
//! Twice: names that lead out of the folder are refused with words that teach ([`check`]), and the kernel refuses everything else
//! that is opened (Landlock), such as a path in a file of the folder. What C of the user's may do is narrower still, by a confinement
//! of its own.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    path_beneath_rules,
};

/// What programs need to start: a compiler and its headers, libraries, names of users.
const SYSTEM: [&str; 8] = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/sys", "/dev"];

/// Confines this thread and those that it starts, and makes the folder the one that relative paths start from. Returns a warning where
/// the kernel cannot do it.
pub fn confine(folder: Option<&Path>) -> io::Result<Option<String>> {
    let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    if let Some(folder) = folder {
        std::env::set_current_dir(folder)?;
        readable.push(std::env::current_dir()?);
    }
    let writable = [Some(std::env::temp_dir()), cache(), Some(PathBuf::from("/dev/null"))];
    let access = ABI::V2;
    let rules = || -> Result<RulesetStatus, landlock::RulesetError> {
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(access))?
            .create()?
            .add_rules(path_beneath_rules(&readable, AccessFs::from_read(access)))?
            .add_rules(path_beneath_rules(writable.iter().flatten(), AccessFs::from_all(access)))?
            .restrict_self()?;
        Ok(status.ruleset)
    };
    let weak = match rules() {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => None,
        Ok(RulesetStatus::NotEnforced) => Some("this kernel has no Landlock".to_string()),
        Err(error) => Some(error.to_string()),
    };
    Ok(weak.map(|why| format!("files are kept apart by their names alone: {why}")))
}

/// Where compiled C is kept, made if need be.
fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let shared = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let own = set("SCHEDTWIN_CACHE").or_else(|| Some(shared?.join("schedtwin")))?;
    std::fs::create_dir_all(&own).ok()?;
    Some(own)
}

/// Refuses a spelling of a machine, kernel, workload or suite that names a file which is not below the folder.
///
/// ```
/// use schedtwin_mcp::folder::check;
/// assert!(check("linux-7.3:hz=100", false).is_ok());
/// assert!(check("setsid cgroup=/web hackbench -g 4 & ui-phone", false).is_ok());
/// assert!(check("./mine.toml", false).unwrap_err().contains("--folder"));
/// assert!(check("linux-7.3:scx=./a.bpf.c,scx.slice_us=5", true).is_ok());
/// for out in ["/etc/passwd", "linux-7.3:scx=../a.bpf.c", "~/a.toml", "linux-7.3+sub/../../x.toml"] {
///     assert!(check(out, true).unwrap_err().contains("below the folder"), "{out}");
/// }
/// ```
pub fn check(spelled: &str, has_folder: bool) -> Result<(), String> {
    let apart = |c: char| c.is_whitespace() || ",:+&{}@".contains(c);
    for word in spelled.split(apart).filter(|word| !word.is_empty()) {
        let (key, path) = word.split_once('=').unwrap_or(("", word));
        // Names of cgroups begin as paths do.
        if key == "cgroup" || !is_path(path) {
            continue;
        }
        if !has_folder {
            return Err(format!(
                "`{path}` is a file, and this server was started without --folder: give its content, as \
                 {{\"name\": \"mine\", \"text\": \"...\"}}"
            ));
        }
        let leaves = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
        if leaves {
            return Err(format!(
                "`{path}` is not below the folder of this server: paths are relative to it and have no `..`"
            ));
        }
    }
    Ok(())
}

/// Refuses the text of a machine, a kernel or a suite that names such a file.
///
/// ```
/// use schedtwin_mcp::folder::check_text;
/// assert!(check_text("extends = \"linux-7.3\"\ndescription = \"and/or\"\n", false).is_ok());
/// assert!(check_text("machines = [\"pixel6\", \"../a.toml\"]\n", true).is_err());
/// assert!(check_text("extends = \"/tmp/other.toml\"\n", true).unwrap_err().contains("below the folder"));
/// ```
pub fn check_text(text: &str, has_folder: bool) -> Result<(), String> {
    let named = text.lines().filter_map(|line| line.split_once('='));
    let named = named.filter(|(key, _)| NAME_FILES.contains(&key.trim()));
    for value in named.flat_map(|(_, value)| value.split(['"', '\''])) {
        check(value, has_folder)?;
    }
    Ok(())
}

/// Keys of kernel files and suites whose values may be paths.
const NAME_FILES: [&str; 9] = [
    "extends",
    "patches",
    "scx",
    "tree",
    "cpuidle",
    "cpufreq",
    "baseline",
    "machines",
    "workloads",
];

/// Whether a word names a file.
fn is_path(word: &str) -> bool {
    word.contains('/')
        || word.starts_with('~')
        || [".toml", ".json", ".c"].iter().any(|ending| word.ends_with(ending))
}
