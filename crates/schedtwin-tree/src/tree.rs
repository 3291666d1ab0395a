// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel tree as the user names it: a folder, or a revision of the git repository that it is in.
//!
//! Nothing is written to it and nothing checked out: files of a revision come from git's objects.

use crate::Fault;
use crate::confine;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A tree of the kernel's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// As the user wrote it.
    spelled: String,
    folder: PathBuf,
    /// The commit, if not the files as they lie there are meant.
    commit: Option<String>,
}

impl Tree {
    /// `PATH` or `PATH@REVISION`, `~` being the home folder. A folder whose name contains `@` is found before a revision is.
    ///
    /// # Errors
    /// If there is no such folder, or git knows no such revision in it.
    pub fn find(spelled: &str) -> Result<Tree, Fault> {
        let whole = expand_home(spelled);
        if whole.is_dir() {
            confine::reads(&whole);
            return Ok(Tree { spelled: spelled.to_string(), folder: whole, commit: None });
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
        confine::reads(&folder);
        let commit = String::from_utf8_lossy(&answer.stdout).trim().to_string();
        Ok(Tree { spelled: spelled.to_string(), folder, commit: Some(commit) })
    }

    /// As the user wrote it.
    pub fn spelled(&self) -> &str {
        &self.spelled
    }

    /// The commit as git abbreviates it, with its subject: `a1b2c3d cpuidle: ...`; `None` where the files as they lie there are meant, or
    /// git does not tell.
    pub fn commit_line(&self) -> Option<String> {
        let commit = self.commit.as_ref()?;
        let arguments = ["log", "-1", "--no-show-signature", "--format=%h %s", commit];
        let answer = git(&self.folder, &arguments).ok().filter(|answer| answer.status.success())?;
        let line = String::from_utf8_lossy(&answer.stdout).trim().to_string();
        (!line.is_empty()).then_some(line)
    }

    /// The text of a file, by its path inside of the tree; `None`: it is not there.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Fault> {
        let Some(commit) = &self.commit else {
            let file = self.folder.join(path);
            return match std::fs::read(&file) {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(Fault {
                    message: format!("failed to read {}: {error}", file.display()),
                    help: None,
                }),
            };
        };
        let answer = git(&self.folder, &["cat-file", "blob", &format!("{commit}:./{path}")])?;
        Ok(answer.status.success().then_some(answer.stdout))
    }
}

/// Asks git about a folder, without its taking a lock there.
fn git(folder: &Path, arguments: &[&str]) -> Result<Output, Fault> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments);
    command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    if confine::is_confined() {
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    }
    command.output().map_err(|error| {
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
