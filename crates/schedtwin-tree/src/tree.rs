// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel tree as the user names it: a folder, or a revision of the git repository that it is in.
//!
//! Nothing is written to it and nothing checked out: files of a revision come from git's objects. Files as they lie there are regular
//! files of the tree: no link is followed.

use crate::Fault;
use crate::{confine, program};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A tree of the kernel's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// As the user wrote it.
    spelled: String,
    folder: PathBuf,
    /// The commit, if not the files as they lie there are meant.
    commit: Option<String>,
    /// Its line, asked for at once: a confined process cannot ask git.
    commit_line: Option<String>,
    /// Path and hash of its C of the scheduler, frequency and idle code.
    files: Arc<BTreeMap<String, String>>,
}

/// Where the scheduler, frequency and idle code is.
const FOLDERS: [&str; 3] = ["kernel/sched", "drivers/cpuidle", "drivers/cpufreq"];

impl Tree {
    /// `PATH` or `PATH@REVISION`, `~` being the home folder. A folder whose name contains `@` is found before a revision is.
    ///
    /// # Errors
    /// If there is no such folder, or git knows no such revision in it.
    pub fn find(spelled: &str) -> Result<Tree, Fault> {
        static FOUND: Mutex<BTreeMap<String, Tree>> = Mutex::new(BTreeMap::new());
        let found = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if confine::is_confined() {
            return found().get(spelled).cloned().ok_or_else(|| {
                Fault::new(
                    format!("the tree `{spelled}` has not been read yet"),
                    "trees are read before the first run; name each such kernel by itself",
                )
            });
        }
        let tree = Tree::find_now(spelled)?;
        found().insert(spelled.to_string(), tree.clone());
        Ok(tree)
    }

    fn find_now(spelled: &str) -> Result<Tree, Fault> {
        let whole = expand_home(spelled);
        let folder_alone = |folder| Tree {
            spelled: spelled.to_string(),
            folder,
            commit: None,
            commit_line: None,
            files: Arc::default(),
        };
        if whole.is_dir() {
            return Ok(folder_alone(whole));
        }
        let (folder, revision) = match spelled.rsplit_once('@') {
            Some((folder, revision)) => (expand_home(folder), Some(revision)),
            None => (whole, None),
        };
        let Some(revision) = revision.filter(|_| folder.is_dir()) else {
            return Err(Fault::new(
                format!("there is no kernel tree `{}`: no such folder", folder.display()),
                "tree=PATH, or tree=PATH@REVISION for a commit of its git repository",
            ));
        };
        let commit = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        let answer = git(&folder, &arguments)?;
        if !answer.status.success() {
            let said = String::from_utf8_lossy(&answer.stderr);
            let said = said.lines().next().unwrap_or("it names no commit").to_string();
            return Err(Fault::new(
                format!("git has no revision `{revision}` in {}: {said}", folder.display()),
                format!("`git -C {} log --oneline` lists commits", folder.display()),
            ));
        }
        let commit = String::from_utf8_lossy(&answer.stdout).trim().to_string();
        let arguments = ["log", "-1", "--no-show-signature", "--format=%h %s", &commit];
        let answer = git(&folder, &arguments).ok().filter(|answer| answer.status.success());
        let line = answer.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_string());
        let commit_line = line.filter(|line| !line.is_empty());
        let list = [&["ls-tree", "-r", &commit, "--"][..], &FOLDERS[..]].concat();
        let files = Arc::new(c_files(&git(&folder, &list)?));
        Ok(Tree { commit: Some(commit), commit_line, files, ..folder_alone(folder) })
    }

    /// As the user wrote it.
    pub fn spelled(&self) -> &str {
        &self.spelled
    }

    /// The commits after `good` up to `bad` that touch the scheduler, frequency or idle code, the oldest first; the last one is `bad`
    /// itself.
    ///
    /// # Errors
    /// If git does not know one of them, or `bad` does not follow from `good`.
    pub fn commits_between(folder: &str, good: &str, bad: &str) -> Result<Vec<String>, Fault> {
        let [good, bad] =
            [good, bad].map(|revision| Tree::find_now(&format!("{folder}@{revision}")));
        let (good, bad) = (good?, bad?);
        let (Some(from), Some(to)) = (&good.commit, &bad.commit) else {
            return Err(Fault::new("there are no commits", "tree=PATH@GOOD and tree=PATH@BAD"));
        };
        let range = format!("{from}..{to}");
        let list = ["rev-list", "--reverse", "--topo-order", "--end-of-options", &range, "--"];
        let answer =
            git(&good.folder, &[&list[..], &FOLDERS[..], &["include/linux"][..]].concat())?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut commits: Vec<String> = text.lines().map(str::to_string).collect();
        if !answer.status.success() || commits.is_empty() {
            let message = format!(
                "git lists no commit of that code between `{}` and `{}`",
                good.spelled, bad.spelled
            );
            return Err(Fault::new(message, "the bad commit follows from the good one"));
        }
        if commits.last() != Some(to) {
            commits.push(to.clone());
        }
        Ok(commits)
    }

    /// The commit as git abbreviates it, with its subject: `a1b2c3d cpuidle: ...`; `None` where the files as they lie there are meant, or
    /// git does not tell.
    pub fn commit_line(&self) -> Option<String> {
        self.commit_line.clone()
    }

    /// C files of the scheduler, frequency and idle code that two commits do not share; none where one of them is a folder.
    pub fn files_that_differ<'t>(&'t self, other: &'t Tree) -> Vec<&'t str> {
        if self.files.is_empty() || other.files.is_empty() {
            return Vec::new();
        }
        let (own, others) = (&self.files, &other.files);
        let changed = own.iter().filter(|(path, hash)| others.get(*path) != Some(hash));
        let gone = others.keys().filter(|path| !own.contains_key(*path));
        let paths = changed.map(|(path, _)| path).chain(gone);
        // A set has them in order.
        paths.map(String::as_str).collect::<BTreeSet<&str>>().into_iter().collect()
    }

    /// The text of a file, by its path inside of the tree; `None`: it is not there. Read once a process: what is compiled, hashed and asked
    /// for again is the same text.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Fault> {
        type Read = BTreeMap<(PathBuf, Option<String>, String), Option<Vec<u8>>>;
        static READ: Mutex<Read> = Mutex::new(BTreeMap::new());
        let read = || READ.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (self.folder.clone(), self.commit.clone(), path.to_string());
        // Only a confined process relies on it: elsewhere a tree may change between two commands of a program.
        if confine::is_confined() {
            return match read().get(&key) {
                Some(text) => Ok(text.clone()),
                None => Err(Fault {
                    message: format!("failed to read {path} of {}", self.spelled),
                    help: Some("files of a tree are read before the first run".to_string()),
                }),
            };
        }
        let text = match &self.commit {
            Some(commit) => self.read_commit(commit, path)?,
            None => self.read_file(path).map_err(|error| Fault {
                message: format!("failed to read {}: {error}", self.folder.join(path).display()),
                help: None,
            })?,
        };
        read().insert(key, text.clone());
        Ok(text)
    }

    /// A regular file below the folder: no link is followed, neither the file nor a folder on the way, so that nothing outside of the tree
    /// gets into what is compiled.
    fn read_file(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let mut at = std::fs::File::open(&self.folder)?;
        let mut parts = path.split('/').filter(|part| !matches!(*part, "" | ".")).peekable();
        while let Some(part) = parts.next() {
            if part == ".." {
                return Err(io::Error::other("`..` may lead out of the tree"));
            }
            let name = std::ffi::CString::new(part)?;
            let kind = if parts.peek().is_some() { libc::O_DIRECTORY } else { libc::O_NONBLOCK };
            let how = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NOCTTY | kind;
            // SAFETY: the descriptor is open, and the name is a string of C.
            let opened = unsafe { libc::openat(at.as_raw_fd(), name.as_ptr(), how) };
            if opened < 0 {
                let error = io::Error::last_os_error();
                return match error.raw_os_error() {
                    Some(libc::ENOENT) => Ok(None),
                    // A folder on the way that is a link is none.
                    Some(libc::ELOOP | libc::ENOTDIR) if is_link(&at, &name) => {
                        Err(io::Error::other(format!(
                            "`{part}` is a symbolic link, which may lead out of the tree"
                        )))
                    }
                    Some(libc::ENOTDIR) => Ok(None),
                    _ => Err(error),
                };
            }
            // SAFETY: the descriptor was just made and belongs to nobody else.
            at = unsafe { std::fs::File::from_raw_fd(opened) };
        }
        if !at.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut text = Vec::new();
        at.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
        match text.len() as u64 > FILE_BYTES_MAX {
            true => Err(io::Error::other(TOO_LARGE)),
            false => Ok(Some(text)),
        }
    }

    fn read_commit(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, Fault> {
        let blob = format!("{commit}:./{path}");
        let size = git(&self.folder, &["cat-file", "-s", &blob])?;
        if !size.status.success() {
            return Ok(None);
        }
        let bytes = String::from_utf8_lossy(&size.stdout).trim().parse().unwrap_or(u64::MAX);
        if bytes > FILE_BYTES_MAX {
            let message = format!("failed to read {path} of {}: {TOO_LARGE}", self.spelled);
            return Err(Fault { message, help: None });
        }
        let answer = git(&self.folder, &["cat-file", "blob", &blob])?;
        Ok(answer.status.success().then_some(answer.stdout))
    }
}

/// Path and hash of C files that `git ls-tree` lists.
fn c_files(listed: &Output) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(&listed.stdout);
    let file = |line: &str| -> Option<(String, String)> {
        let (about, path) = line.split_once('\t')?;
        let hash = about.rsplit(' ').next()?;
        path.ends_with(".c").then(|| (path.to_string(), hash.to_string()))
    };
    text.lines().filter_map(file).collect()
}

/// The largest file of a tree that is compiled: the largest C file of Linux has half of it, and no governor a hundredth.
const FILE_BYTES_MAX: u64 = 4 << 20;
const TOO_LARGE: &str = "it has more than 4 MiB";

/// Whether a name in a folder is a symbolic link.
fn is_link(folder: &std::fs::File, name: &std::ffi::CStr) -> bool {
    let mut byte = 0u8;
    // SAFETY: descriptor and name are valid, and one byte fits.
    let bytes =
        unsafe { libc::readlinkat(folder.as_raw_fd(), name.as_ptr(), (&raw mut byte).cast(), 1) };
    bytes >= 0
}

/// What git needs to find its programs and the user's settings, such as which repositories of others may be read.
const VARIABLES: [&str; 6] =
    ["PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "SUDO_UID"];

/// How long git may take over one answer. It takes milliseconds, and seconds from a cold disk.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);

/// Asks git about a folder, without its taking a lock there, fetching what a partial clone lacks, starting what the repository's own
/// settings name, or taking one object for another.
fn git(folder: &Path, arguments: &[&str]) -> Result<Output, Fault> {
    if confine::is_confined() {
        return Err(Fault::new("a confined process starts no git", "name each revision by itself"));
    }
    let mut command = program::new("git", &VARIABLES);
    command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    command.args(["-c", "log.mailmap=false"]).arg("-C").arg(folder).args(arguments);
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    program::run(&mut command, ANSWERS_WITHIN, 2 * FILE_BYTES_MAX as usize).map_err(|error| {
        Fault::new(
            format!("failed to run git: {error}"),
            "a revision of a tree is read by git; tree=PATH without @REVISION does without it",
        )
    })
}

/// `~` and `~/...` lead to the home folder; shells leave them alone behind a `=`.
fn expand_home(path: &str) -> PathBuf {
    let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (rest, std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}
