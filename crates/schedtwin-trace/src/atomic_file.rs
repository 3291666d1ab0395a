// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that are complete or absent.
//!
//! A trace of a minute takes seconds to write, and runs are interrupted. The bytes therefore go to
//! a temporary name beside the final one, and a rename at the end, which the file system does in
//! one step, makes them the result. The temporary name is `.NAME.PID-RANDOM.partial`. An abandoned writer
//! removes its file; a process that is interrupted calls [`remove_partials`].
//!
//! The rename is not preceded by an fsync: after a power failure the result may be lost, and can
//! be computed again.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::{TempDir, TempPath};

use crate::outside::{self, Remote};

/// Bytes collected before a write reaches the operating system.
const BUFFER_BYTES: usize = 256 * 1024;

/// The ending of temporary names.
const PARTIAL: &str = ".partial";

/// Somewhere that a trace can be written to and declared complete.
pub trait Destination: Write {
    /// Everything has been written: makes it the result.
    fn commit(self) -> io::Result<()>;

    /// Writes all that there is to write and makes it the result.
    fn commit_with(mut self, bytes: &[u8]) -> io::Result<()>
    where
        Self: Sized,
    {
        self.write_all(bytes)?;
        self.commit()
    }
}

/// A file that appears under its name only when it is committed.
///
/// ```
/// use schedtwin_trace::{AtomicFile, Destination};
/// use std::io::Write;
/// let path = std::env::temp_dir().join(format!("atomic-doc-{}.txt", std::process::id()));
/// let mut file = AtomicFile::create(&path)?;
/// file.write_all(b"half")?;
/// drop(file); // the run was abandoned
/// assert!(!path.exists());
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<Bytes>,
    /// Where the bytes are, if not in place already. Declared after `file`, so that an abandoned file is closed
    /// before it is removed.
    temporary: Option<TempPath>,
    /// Where they shall be.
    path: PathBuf,
    /// Bytes written so far.
    written: Arc<AtomicU64>,
}

/// Where the bytes go.
#[derive(Debug)]
enum Bytes {
    Here(File),
    /// To the process that has files ([`crate::outside`]).
    There(Remote),
}

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Bytes::Here(file) => file.write(bytes),
            Bytes::There(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Bytes::Here(file) => file.flush(),
            Bytes::There(file) => file.flush(),
        }
    }
}

impl AtomicFile {
    fn there(path: &Path, replace: bool) -> io::Result<AtomicFile> {
        let file = Bytes::There(Remote::open(path, replace)?);
        Ok(AtomicFile {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            temporary: None,
            path: path.to_path_buf(),
            written: Arc::default(),
        })
    }

    /// Opens a temporary file in the directory of `path`.
    ///
    /// Something at `path` that is no regular file (a pipe, `/dev/null`) is written directly. A
    /// symbolic link is followed: its target is replaced.
    pub fn create(path: &Path) -> io::Result<AtomicFile> {
        if outside::is_diverted() {
            return AtomicFile::there(path, false);
        }
        let path = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
            }
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(path)?;
                return Ok(AtomicFile {
                    file: BufWriter::with_capacity(BUFFER_BYTES, Bytes::Here(file)),
                    temporary: None,
                    path: path.to_path_buf(),
                    written: Arc::default(),
                });
            }
            Ok(_) => fs::canonicalize(path)?,
            Err(_) => path.to_path_buf(),
        };
        AtomicFile::replace(&path)
    }

    /// Opens a temporary file that will replace whatever is at `path`, be it a symbolic link or a device.
    ///
    /// For a path that the user did not name: a folder that somebody else made may have a link there.
    pub fn replace(path: &Path) -> io::Result<AtomicFile> {
        if outside::is_diverted() {
            return AtomicFile::there(path, true);
        }
        let path = path.to_path_buf();
        let prefix = partial_prefix(&path)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
        // Opened here, because tempfile would let nobody but the owner read the result.
        let open = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let (file, temporary) = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(PARTIAL)
            .make_in(directory_of(&path), open)?
            .into_parts();
        let file = BufWriter::with_capacity(BUFFER_BYTES, Bytes::Here(file));
        Ok(AtomicFile { file, temporary: Some(temporary), path, written: Arc::default() })
    }

    /// The size of the file so far, which grows as it is written.
    pub fn written(&self) -> Arc<AtomicU64> {
        self.written.clone()
    }

    /// The same file, whose errors say its name: for who writes beside reading another one.
    pub fn named(self) -> NamedFile {
        NamedFile { name: self.path.display().to_string(), file: self }
    }
}

/// An [`AtomicFile`] whose errors say its name.
#[derive(Debug)]
pub struct NamedFile {
    name: String,
    file: AtomicFile,
}

fn named(name: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("failed to write {name}: {error}"))
}

impl Write for NamedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| named(&self.name, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| named(&self.name, error))
    }
}

impl Destination for NamedFile {
    fn commit(self) -> io::Result<()> {
        self.file.commit().map_err(|error| named(&self.name, error))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Destination for AtomicFile {
    fn commit(self) -> io::Result<()> {
        let AtomicFile { file, temporary, path, .. } = self;
        match file.into_inner().map_err(io::IntoInnerError::into_error)? {
            Bytes::There(file) => return file.commit(),
            Bytes::Here(file) => drop(file),
        }
        match temporary {
            Some(temporary) => Ok(temporary.persist(path)?),
            None => Ok(()),
        }
    }
}

/// Removes the temporary files of this process for a result at `path`: for a process that is going to be ended, where
/// no writer is dropped.
///
/// A file that cannot be removed stays: there is nobody to tell.
pub fn remove_partials(path: &Path) {
    let Some(prefix) = partial_prefix(path) else { return };
    for entry in fs::read_dir(directory_of(path)).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let found = found.as_encoded_bytes();
        if found.starts_with(prefix.as_encoded_bytes()) && found.ends_with(PARTIAL.as_bytes()) {
            remove(&entry.path());
        }
    }
}

/// Removes the temporary files for a result at `path` whose process is gone: it was killed before it could.
///
/// Whether a process lives is known where there is `/proc`; elsewhere nothing is removed.
pub fn remove_abandoned(path: &Path) {
    let (Some(name), true) = (path.file_name(), Path::new("/proc/self").exists()) else { return };
    for entry in fs::read_dir(directory_of(path)).into_iter().flatten().flatten() {
        let found = entry.file_name();
        if let Some(process) = process_of(&found.to_string_lossy(), &name.to_string_lossy())
            && !Path::new(&format!("/proc/{process}")).exists()
        {
            remove(&entry.path());
        }
    }
}

/// Removes a temporary file or folder.
fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// A temporary folder beside `path`.
pub(crate) fn temporary_folder(path: &Path) -> io::Result<TempDir> {
    let prefix = partial_prefix(path)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no folder"))?;
    let mut builder = tempfile::Builder::new();
    // As other folders: tempfile would let nobody but the owner read it.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    builder.prefix(&prefix).suffix(PARTIAL).tempdir_in(directory_of(path))
}

/// The process that a temporary name for `result` belongs to.
fn process_of(temporary: &str, result: &str) -> Option<u32> {
    let rest = temporary.strip_prefix('.')?.strip_prefix(result)?.strip_prefix('.')?;
    let (process, _) = rest.strip_suffix(PARTIAL)?.split_once('-')?;
    process.parse().ok()
}

/// The prefix of this process's temporary names for a result at `path`, if `path` names a file.
fn partial_prefix(path: &Path) -> Option<OsString> {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name()?);
    prefix.push(format!(".{}-", std::process::id()));
    Some(prefix)
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Memory, for tests and for callers that send the bytes elsewhere.
impl Destination for &mut Vec<u8> {
    fn commit(self) -> io::Result<()> {
        Ok(())
    }
}

/// A destination that remembers its first failure and writes nothing after it.
pub(crate) struct Output<D> {
    destination: D,
    failure: Option<io::Error>,
}

impl<D: Destination> Output<D> {
    pub(crate) fn new(destination: D) -> Output<D> {
        Output { destination, failure: None }
    }

    /// Writes all of `bytes`, or nothing if an earlier write failed.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.destination.write_all(bytes).err();
        }
    }

    /// Declares the result complete, unless something failed.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.failure {
            Some(failure) => Err(failure),
            None => self.destination.commit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .expect("readable")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_a_commit_changes_what_is_there() {
        let directory = tempfile::tempdir().expect("a fresh directory");
        let directory = directory.path();
        let path = directory.join("out.txt");
        fs::write(&path, "old").expect("written");

        let mut file = AtomicFile::create(&path).expect("created");
        file.write_all(&[b'x'; 2 * BUFFER_BYTES]).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");
        assert_eq!(names(directory).len(), 2);
        drop(file);
        assert_eq!(names(directory), ["out.txt"]);
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");

        let mut file = AtomicFile::create(&path).expect("created");
        file.write_all(b"new").expect("written");
        file.commit().expect("committed");
        assert_eq!(names(directory), ["out.txt"]);
        assert_eq!(fs::read_to_string(&path).expect("read"), "new");

        assert!(AtomicFile::create(directory).is_err(), "a directory");
        assert!(AtomicFile::create(&directory.join("absent/out")).is_err());
    }

    /// Others may read a result as they may read any new file, and a link stays a link.
    #[cfg(unix)]
    #[test]
    fn a_result_is_an_ordinary_file() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a fresh directory");
        let [ordinary, result, link] =
            ["ordinary", "result", "link"].map(|n| directory.path().join(n));
        fs::write(&ordinary, "").expect("written");
        AtomicFile::create(&result).expect("created").commit().expect("committed");
        let mode = |path: &Path| fs::metadata(path).expect("exists").permissions().mode();
        assert_eq!(mode(&result), mode(&ordinary));

        std::os::unix::fs::symlink("result", &link).expect("linked");
        let mut file = AtomicFile::create(&link).expect("created");
        file.write_all(b"new").expect("written");
        file.commit().expect("committed");
        assert!(fs::symlink_metadata(&link).expect("exists").is_symlink());
        assert_eq!(fs::read_to_string(&result).expect("read"), "new");
    }

    /// Checks that the target of a link at a path that nobody named is not touched.
    #[cfg(unix)]
    #[test]
    fn a_link_is_replaced_where_it_is_not_to_be_followed() {
        let directory = tempfile::tempdir().expect("a fresh directory");
        let [precious, link] = ["precious", "link"].map(|n| directory.path().join(n));
        fs::write(&precious, "old").expect("written");
        std::os::unix::fs::symlink("precious", &link).expect("linked");
        AtomicFile::replace(&link).expect("created").commit_with(b"new").expect("committed");
        assert!(fs::symlink_metadata(&link).expect("exists").is_file());
        assert_eq!(fs::read_to_string(&link).expect("read"), "new");
        assert_eq!(fs::read_to_string(&precious).expect("read"), "old");
        assert_eq!(names(directory.path()), ["link", "precious"]);
    }

    #[test]
    fn only_temporary_files_of_this_process_are_removed() {
        let directory = tempfile::tempdir().expect("a fresh directory");
        let path = directory.path().join("out.pftrace");
        let _open = AtomicFile::create(&path).expect("created");
        let foreign = [".other.partial", ".out.pftrace.1-3.partial", "out.pftrace"];
        for name in foreign {
            fs::write(directory.path().join(name), "x").expect("written");
        }
        assert_eq!(names(directory.path()).len(), foreign.len() + 1);
        remove_partials(&path);
        assert_eq!(names(directory.path()), foreign);
    }

    /// Fails after a number of bytes, as a full disk does.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "full"));
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Destination for Full {
        fn commit(self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_first_failure_stops_the_writing_and_surfaces_at_the_end() {
        let mut output = Output::new(Full(10));
        output.write(b"12345678");
        output.write(b"1234");
        output.write(b"12");
        assert_eq!(output.destination.0, 2, "nothing was written after the failure");
        assert_eq!(output.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
