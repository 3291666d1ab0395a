// SPDX-License-Identifier: GPL-2.0-or-later
//! Files for a process that has none: what it writes goes as requests to another process, which writes the files.
//!
//! **Two sides.** A confined worker calls [`divert`] once; from then on [`crate::AtomicFile`] and the functions here send requests. Its
//! supervisor has an [`OutsideFiles`], which knows the files of the command, and [`OutsideFiles::serve`]s requests. A request that names
//! another file is refused: it may have been made by somebody else's code.
//!
//! **Results come at the end.** What the worker commits stays a temporary file until the worker has said that it succeeded
//! ([`OutsideFiles::finish`]): a run that fails later leaves what was there before. Journals are removed after that only.
//!
//! A request is a byte for its kind, then numbers and texts, each text with its length in front. Its reply is bytes; most have none.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::atomic_file::{AtomicFile, Destination};

/// Sends a request and returns its reply.
pub type Send = fn(&[u8]) -> io::Result<Vec<u8>>;

static SEND: OnceLock<Send> = OnceLock::new();

/// The largest piece of a file in one request.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// Most files that a worker has open or committed at once. A command writes three.
const OPEN_MAX: usize = 16;

const CREATE: u8 = b'c';
const REPLACE: u8 = b'r';
const WRITE: u8 = b'w';
const COMMIT: u8 = b'k';
const ABANDON: u8 = b'a';
const APPEND: u8 = b'l';
const REMOVE: u8 = b'd';

/// From now on this process's files are somebody else's.
pub fn divert(send: Send) {
    let _ = SEND.set(send);
}

/// Whether they are.
pub fn is_diverted() -> bool {
    SEND.get().is_some()
}

fn ask(kind: u8, path: &Path, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let send = SEND.get().ok_or(io::ErrorKind::Unsupported)?;
    let name = path.as_os_str().as_encoded_bytes();
    let mut request = vec![kind];
    request.extend((name.len() as u32).to_le_bytes());
    request.extend(name);
    request.extend(bytes);
    send(&request)
}

/// A file that another process writes.
#[derive(Debug)]
pub(crate) struct Remote {
    number: [u8; 4],
    committed: bool,
}

impl Remote {
    pub(crate) fn open(path: &Path, replace: bool) -> io::Result<Remote> {
        let reply = ask(if replace { REPLACE } else { CREATE }, path, &[])?;
        let number = reply.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Remote { number, committed: false })
    }

    fn send(&self, kind: u8, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let send = SEND.get().ok_or(io::ErrorKind::Unsupported)?;
        let mut request = vec![kind];
        request.extend(self.number);
        request.extend(bytes);
        send(&request)
    }

    pub(crate) fn commit(mut self) -> io::Result<()> {
        self.committed = true;
        self.send(COMMIT, &[]).map(drop)
    }
}

impl Write for Remote {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        self.send(WRITE, piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if !self.committed {
            // Nobody is left to tell: the supervisor removes it with itself.
            let _ = self.send(ABANDON, &[]);
        }
    }
}

/// Puts bytes behind a file of this command that is there; only for a diverted process.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    ask(APPEND, path, bytes).map(drop)
}

/// Removes a file of this command, here or there.
pub fn remove(path: &Path) -> io::Result<()> {
    match is_diverted() {
        true => ask(REMOVE, path, &[]).map(drop),
        false => fs::remove_file(path),
    }
}

/// A name as it was sent.
fn named(bytes: &[u8]) -> &Path {
    #[cfg(unix)]
    return Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    return Path::new(std::str::from_utf8(bytes).unwrap_or_default());
}

/// A file that a command writes.
#[derive(Debug)]
struct Output {
    path: PathBuf,
    /// Nobody has named this path: what is there is replaced, and no link followed. It need not be written.
    unnamed: bool,
}

/// The files that a command writes, for a worker that performs it.
#[derive(Debug, Default)]
pub struct OutsideFiles {
    outputs: Vec<Output>,
    journals: Vec<PathBuf>,
    open: BTreeMap<u32, (PathBuf, AtomicFile)>,
    opened: u32,
    /// Whole, and not yet under their names.
    committed: Vec<(PathBuf, AtomicFile)>,
    /// Journals that go when the results are there.
    removed: Vec<PathBuf>,
}

impl OutsideFiles {
    /// None yet.
    pub fn new() -> OutsideFiles {
        OutsideFiles::default()
    }

    /// A result of the command.
    pub fn output(&mut self, path: &Path) {
        self.outputs.push(Output { path: path.to_path_buf(), unnamed: false });
    }

    /// A file that the command may write, whose name the user has not given: it replaces what is there.
    pub fn may_output(&mut self, path: &Path) {
        self.outputs.push(Output { path: path.to_path_buf(), unnamed: true });
    }

    /// All files that the command may write.
    pub fn outputs(&self) -> impl Iterator<Item = &Path> {
        self.outputs.iter().map(|output| output.path.as_path())
    }

    /// A file that the command appends to, and removes.
    pub fn journal(&mut self, path: &Path) {
        self.journals.push(path.to_path_buf());
    }

    /// Does what a request asks for, if it concerns a file of the command.
    ///
    /// # Errors
    /// If it does not, or fails.
    pub fn serve(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        let nonsense = || io::Error::new(io::ErrorKind::InvalidData, "no such request");
        let (kind, rest) = request.split_first().ok_or_else(nonsense)?;
        let (number, rest) = rest.split_at_checked(4).ok_or_else(nonsense)?;
        let number = u32::from_le_bytes(number.try_into().expect("4 bytes"));
        match *kind {
            WRITE => {
                let (_, file) = self.open.get_mut(&number).ok_or_else(nonsense)?;
                return file.write_all(rest).map(|()| Vec::new());
            }
            COMMIT => {
                let (path, mut file) = self.open.remove(&number).ok_or_else(nonsense)?;
                // A full disk is told to who has written it.
                file.flush()?;
                self.committed.push((path, file));
                return Ok(Vec::new());
            }
            ABANDON => {
                self.open.remove(&number);
                return Ok(Vec::new());
            }
            _ => {}
        }
        let (name, bytes) = rest.split_at_checked(number as usize).ok_or_else(nonsense)?;
        let path = named(name);
        let refused = || {
            let message = format!("{} is no file of this command", path.display());
            io::Error::new(io::ErrorKind::PermissionDenied, message)
        };
        let journal = |journals: &[PathBuf]| match journals.iter().any(|file| file == path) {
            true => Ok(()),
            false => Err(refused()),
        };
        match *kind {
            CREATE | REPLACE if self.open.len() + self.committed.len() < OPEN_MAX => {
                let output = self.outputs.iter().find(|output| output.path == path);
                let file = match (output.ok_or_else(refused)?.unnamed, *kind) {
                    (false, CREATE) => AtomicFile::create(path)?,
                    _ => AtomicFile::replace(path)?,
                };
                self.opened = self.opened.wrapping_add(1);
                self.open.insert(self.opened, (path.to_path_buf(), file));
                Ok(self.opened.to_le_bytes().to_vec())
            }
            APPEND => {
                journal(&self.journals)?;
                let mut file = OpenOptions::new().append(true).open(path)?;
                file.write_all(bytes).map(|()| Vec::new())
            }
            REMOVE => {
                journal(&self.journals)?;
                self.removed.push(path.to_path_buf());
                Ok(Vec::new())
            }
            _ => Err(nonsense()),
        }
    }

    /// Gives committed files their names and removes journals: the worker has ended well. `whole`: it says that nothing is missing.
    /// Without this call they are dropped.
    ///
    /// # Errors
    /// If a file cannot be written, or, of a whole end, an output is missing that the user has named.
    pub fn finish(&mut self, whole: bool) -> io::Result<()> {
        let is_missing = |output: &&Output| {
            !output.unnamed && !self.committed.iter().any(|(path, _)| *path == output.path)
        };
        if whole && let Some(missing) = self.outputs.iter().find(is_missing) {
            let message = format!("it has not written {}", missing.path.display());
            return Err(io::Error::other(message));
        }
        for (path, file) in std::mem::take(&mut self.committed) {
            file.commit().map_err(|error| {
                let message = format!("failed to write {}: {error}", path.display());
                io::Error::new(error.kind(), message)
            })?;
        }
        for journal in std::mem::take(&mut self.removed) {
            // Where it cannot be removed it does no harm: its runs are the output's.
            let _ = fs::remove_file(journal);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: u8, path: &Path, bytes: &[u8]) -> Vec<u8> {
        let name = path.as_os_str().as_encoded_bytes();
        let mut request = vec![kind];
        request.extend((name.len() as u32).to_le_bytes());
        request.extend(name);
        request.extend(bytes);
        request
    }

    #[test]
    fn only_files_of_the_command_are_served() {
        let folder = tempfile::tempdir().expect("a folder");
        let [output, other, found, journal] = ["out.html", "other", "found.json", "out.csv.runs"]
            .map(|name| folder.path().join(name));
        let mut files = OutsideFiles::new();
        files.output(&output);
        files.may_output(&found);
        files.journal(&journal);
        fs::write(&journal, "1\n").expect("written");
        fs::write(&other, "mine").expect("written");
        std::os::unix::fs::symlink(&other, &found).expect("linked");
        let open = |files: &mut OutsideFiles, path: &Path| {
            files.serve(&request(CREATE, path, b"")).expect("it is an output")
        };
        let piece = |number: &[u8], kind: u8, bytes: &[u8]| [&[kind][..], number, bytes].concat();
        let number = open(&mut files, &output);
        files.serve(&piece(&number, WRITE, b"half")).expect("written");
        files.serve(&piece(&number, COMMIT, b"")).expect("committed");
        assert!(files.serve(&piece(&number, WRITE, b"more")).is_err(), "it is closed");
        let number = open(&mut files, &found);
        files.serve(&piece(&number, WRITE, b"found")).expect("written");
        files.serve(&piece(&number, COMMIT, b"")).expect("committed");
        files.serve(&request(APPEND, &journal, b"2\n")).expect("appended");
        assert_eq!(fs::read(&journal).expect("read"), b"1\n2\n");
        files.serve(&request(REMOVE, &journal, b"")).expect("it will be removed");
        assert!(!output.exists() && journal.exists(), "nothing before the end");
        for (kind, path) in [
            (CREATE, &folder.path().join("b/out.html")),
            (CREATE, &folder.path().join("./other")),
            (CREATE, &other),
            (REPLACE, &other),
            (CREATE, &journal),
            (APPEND, &output),
            (APPEND, &other),
            (REMOVE, &output),
            (REMOVE, &other),
        ] {
            let error = files.serve(&request(kind, path, b"x")).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{kind} {path:?}: {error}");
        }
        for bytes in [&b""[..], b"c", b"c\xff\xff\xff\xffx", b"zzzzzz", b"w\0\0\0\0"] {
            assert!(files.serve(bytes).is_err(), "{bytes:?}");
        }
        files.finish(true).expect("all is there");
        assert_eq!(fs::read(&output).expect("read"), b"half");
        assert_eq!(fs::read(&found).expect("read"), b"found");
        assert!(!journal.exists());
        assert_eq!(fs::read(&other).expect("read"), b"mine", "no link is followed");
    }

    /// A run that fails after it has committed a file leaves the one that was there.
    #[test]
    fn results_of_a_run_that_fails_are_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&first, "before").expect("written");
        let mut files = OutsideFiles::new();
        files.output(&first);
        files.output(&second);
        let number = files.serve(&request(CREATE, &first, b"")).expect("it is an output");
        files.serve(&[b"k", &number[..]].concat()).expect("committed");
        let error = files.finish(true).expect_err("the second is missing");
        assert!(error.to_string().contains("it has not written"), "{error}");
        drop(files);
        assert_eq!(fs::read_to_string(&first).expect("read"), "before");
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1);
    }
}
