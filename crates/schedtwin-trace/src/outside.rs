// SPDX-License-Identifier: GPL-2.0-or-later
//! Files for a process that has none: what it writes goes as requests to another process, which writes the files.
//!
//! **Two sides.** A confined worker calls [`divert`] once; from then on [`crate::AtomicFile`] and the functions here send requests. Its
//! supervisor has an [`OutsideFiles`], which knows the files of the command, and [`OutsideFiles::serve`]s requests. A request that names
//! another file is refused: it may have been made by somebody else's code.
//!
//! A request is a byte for its kind, then numbers and texts, each text with its length in front. Its reply is bytes; most have none.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use crate::atomic_file::{AtomicFile, Destination};

/// Sends a request and returns its reply.
pub type Send = fn(&[u8]) -> io::Result<Vec<u8>>;

static SEND: OnceLock<Send> = OnceLock::new();

/// The largest piece of a file in one request.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// The largest kept result that is read, or made by another process: they have a thousandth of it.
const READ_BYTES_MAX: u64 = 3 << 20;
/// Most files that a worker has open at once. A command writes three.
const OPEN_MAX: usize = 16;

const CREATE: u8 = b'c';
const REPLACE: u8 = b'r';
const WRITE: u8 = b'w';
const COMMIT: u8 = b'k';
const ABANDON: u8 = b'a';
const READ: u8 = b'g';
const PUT: u8 = b'p';
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

/// Reads a file, here or there.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if is_diverted() {
        return ask(READ, path, &[]);
    }
    read_here(path)
}

fn read_here(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(READ_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > READ_BYTES_MAX {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large")),
        false => Ok(bytes),
    }
}

/// Makes a file with its folder, whole or not at all; one that is there stays, and one that would not be read is not made.
pub fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() as u64 > READ_BYTES_MAX {
        return Ok(());
    }
    if is_diverted() {
        return ask(PUT, path, bytes).map(drop);
    }
    put_here(path, bytes)
}

fn put_here(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let folder = path.parent().expect("it lies in a folder");
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
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
    return Path::new(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    return Path::new(std::str::from_utf8(bytes).unwrap_or_default());
}

/// The files that a command writes, for a worker that performs it.
#[derive(Debug, Default)]
pub struct OutsideFiles {
    outputs: Vec<PathBuf>,
    output_folders: Vec<PathBuf>,
    journals: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    open: BTreeMap<u32, AtomicFile>,
    opened: u32,
}

impl OutsideFiles {
    /// None yet.
    pub fn new() -> OutsideFiles {
        OutsideFiles::default()
    }

    /// A result of the command.
    pub fn output(&mut self, path: &Path) {
        self.outputs.push(path.to_path_buf());
    }

    /// A folder for results of the command: any file directly in it.
    pub fn outputs_in(&mut self, folder: &Path) {
        self.output_folders.push(folder.to_path_buf());
    }

    /// The results of the command.
    pub fn outputs(&self) -> impl Iterator<Item = &Path> {
        self.outputs.iter().map(PathBuf::as_path)
    }

    /// A file that the command appends to, and removes.
    pub fn journal(&mut self, path: &Path) {
        self.journals.push(path.to_path_buf());
    }

    /// A folder of kept results.
    pub fn folder(&mut self, path: &Path) {
        self.folders.push(path.to_path_buf());
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
                let file = self.open.get_mut(&number).ok_or_else(nonsense)?;
                return file.write_all(rest).map(|()| Vec::new());
            }
            COMMIT => {
                let file = self.open.remove(&number).ok_or_else(nonsense)?;
                return file.commit().map(|()| Vec::new());
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
        let known = |files: &[PathBuf]| match files.iter().any(|file| file == path) {
            true => Ok(()),
            false => Err(refused()),
        };
        match *kind {
            CREATE | REPLACE if self.open.len() < OPEN_MAX => {
                // A file in a folder replaces what is there: nobody has named a link.
                let within = self.output_folders.iter().any(|folder| is_directly_in(path, folder));
                if !within {
                    known(&self.outputs)?;
                }
                let file = match *kind {
                    CREATE if !within => AtomicFile::create(path)?,
                    _ => AtomicFile::replace(path)?,
                };
                self.opened = self.opened.wrapping_add(1);
                self.open.insert(self.opened, file);
                Ok(self.opened.to_le_bytes().to_vec())
            }
            READ if self.keeps(path) => read_here(path),
            PUT if self.keeps(path) => put_here(path, bytes).map(|()| Vec::new()),
            APPEND => {
                known(&self.journals)?;
                let mut file = OpenOptions::new().append(true).open(path)?;
                file.write_all(bytes).map(|()| Vec::new())
            }
            REMOVE => {
                known(&self.journals)?;
                fs::remove_file(path).map(|()| Vec::new())
            }
            READ | PUT => Err(refused()),
            _ => Err(nonsense()),
        }
    }

    /// Whether a path is that of a kept result: `FOLDER/ab/name.json.gz`, where no folder is a link.
    fn keeps(&self, path: &Path) -> bool {
        let plain = |name: &OsStr| {
            let bytes = name.as_encoded_bytes();
            !bytes.starts_with(b".")
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'.')
        };
        self.folders.iter().any(|folder| {
            let Ok(inside) = path.strip_prefix(folder) else { return false };
            let parts: Vec<Component> = inside.components().collect();
            let names = parts.iter().all(|part| match part {
                Component::Normal(name) => plain(name),
                _ => false,
            });
            let is_link =
                |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
            let above = path.parent();
            parts.len() == 2 && names && !is_link(path) && !above.is_some_and(is_link)
        })
    }
}

/// Whether a path is that of a visible file directly in a folder.
fn is_directly_in(path: &Path, folder: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(folder) else { return false };
    let parts: Vec<Component> = inside.components().collect();
    match parts[..] {
        [Component::Normal(name)] => !name.as_encoded_bytes().starts_with(b"."),
        _ => false,
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
        let [output, other, cache, journal] =
            ["out.html", "other", "cache", "out.csv.runs"].map(|name| folder.path().join(name));
        let mut files = OutsideFiles::new();
        files.output(&output);
        files.journal(&journal);
        files.folder(&cache);
        fs::write(&journal, "1\n").expect("written");
        fs::write(&other, "mine").expect("written");
        let number = files.serve(&request(CREATE, &output, b"")).expect("it is an output");
        let piece = |kind: u8, bytes: &[u8]| [&[kind][..], &number, bytes].concat();
        files.serve(&piece(WRITE, b"half")).expect("written");
        assert!(!output.exists(), "it appears whole");
        files.serve(&piece(COMMIT, b"")).expect("committed");
        assert_eq!(fs::read(&output).expect("read"), b"half");
        assert!(files.serve(&piece(WRITE, b"more")).is_err(), "it is closed");
        files.serve(&request(APPEND, &journal, b"2\n")).expect("appended");
        assert_eq!(fs::read(&journal).expect("read"), b"1\n2\n");
        let kept = cache.join("ab").join("cd.json.gz");
        files.serve(&request(PUT, &kept, b"kept")).expect("kept");
        assert_eq!(files.serve(&request(READ, &kept, b"")).expect("read"), b"kept");
        std::os::unix::fs::symlink(&other, cache.join("ab").join("ef.json.gz")).expect("linked");
        let results = folder.path().join("results");
        fs::create_dir(&results).expect("made");
        files.outputs_in(&results);
        files.serve(&request(CREATE, &results.join("a.json"), b"")).expect("it is in the folder");
        for (kind, path) in [
            (CREATE, &results.join("../other")),
            (CREATE, &results.join(".hidden")),
            (CREATE, &results.join("b/a.json")),
            (CREATE, &other),
            (REPLACE, &other),
            (READ, &other),
            (READ, &output),
            (READ, &cache.join("ab/../../other")),
            (READ, &cache.join("ab").join("ef.json.gz")),
            (PUT, &cache.join("ab/.hidden")),
            (PUT, &cache.join("other")),
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
        assert_eq!(fs::read(&other).expect("read"), b"mine");
    }
}
