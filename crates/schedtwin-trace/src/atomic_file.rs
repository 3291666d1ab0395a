//! Files that are complete or absent.
//!
//! A trace of a minute takes seconds to write, and runs are interrupted. The bytes therefore go to
//! a temporary name beside the final one, and a rename at the end, which the file system does in
//! one step, makes them the result. An interrupted run leaves at most a file
//! `.NAME.PID-N.partial`; an abandoned writer removes it.
//!
//! The rename is not preceded by an fsync: after a power failure the result may be lost, and can
//! be computed again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes collected before a write reaches the operating system.
const BUFFER_BYTES: usize = 256 * 1024;

/// Somewhere that a trace can be written to and declared complete.
pub trait Destination: Write {
    /// Everything has been written: makes it the result.
    fn commit(self) -> io::Result<()>;
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
    /// `None` only while committing.
    file: Option<BufWriter<File>>,
    /// Where the bytes are, if not in place already.
    temporary: Option<PathBuf>,
    /// Where they shall be.
    path: PathBuf,
}

impl AtomicFile {
    /// Opens a temporary file in the directory of `path`.
    ///
    /// What exists at `path` and is no regular file (a pipe, `/dev/null`) is written directly. A
    /// symbolic link is followed: its target is replaced.
    pub fn create(path: &Path) -> io::Result<AtomicFile> {
        let path = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
            }
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(path)?;
                return Ok(AtomicFile {
                    file: Some(BufWriter::with_capacity(BUFFER_BYTES, file)),
                    temporary: None,
                    path: path.to_path_buf(),
                });
            }
            Ok(_) => fs::canonicalize(path)?,
            Err(_) => path.to_path_buf(),
        };
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
        // Several runs of one process may write to one name: the last to finish wins.
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let mut temporary_name = std::ffi::OsString::from(".");
        temporary_name.push(name);
        temporary_name.push(format!(".{}-{number}.partial", std::process::id()));
        let temporary = path.with_file_name(temporary_name);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
        Ok(AtomicFile {
            file: Some(BufWriter::with_capacity(BUFFER_BYTES, file)),
            temporary: Some(temporary),
            path,
        })
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().expect("open until committed").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().expect("open until committed").flush()
    }
}

impl Destination for AtomicFile {
    fn commit(mut self) -> io::Result<()> {
        let mut file = self.file.take().expect("open until committed");
        file.flush()?;
        drop(file);
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path)?;
            self.temporary = None;
        }
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            if let Some(file) = self.file.take() {
                // Taken apart so that dropping does not write out what is thrown away.
                drop(file.into_parts());
            }
            // If it cannot be removed there is nobody to tell.
            let _ = fs::remove_file(temporary);
        }
    }
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

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("schedtwin-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a fresh directory");
        path
    }

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
        let directory = directory("atomic");
        let path = directory.join("out.txt");
        fs::write(&path, "old").expect("written");

        let mut file = AtomicFile::create(&path).expect("created");
        file.write_all(&[b'x'; 2 * BUFFER_BYTES]).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");
        assert_eq!(names(&directory).len(), 2);
        drop(file);
        assert_eq!(names(&directory), ["out.txt"]);
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");

        let mut file = AtomicFile::create(&path).expect("created");
        file.write_all(b"new").expect("written");
        file.commit().expect("committed");
        assert_eq!(names(&directory), ["out.txt"]);
        assert_eq!(fs::read_to_string(&path).expect("read"), "new");

        assert!(AtomicFile::create(&directory).is_err(), "a directory");
        assert!(AtomicFile::create(&directory.join("absent/out")).is_err());
        fs::remove_dir_all(&directory).expect("removed");
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
