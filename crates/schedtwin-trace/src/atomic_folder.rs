// SPDX-License-Identifier: GPL-2.0-or-later
//! Folders whose files appear together.
//!
//! Files are written into a temporary folder beside the final one, which a rename makes the result. Where a folder with
//! content is there already, the complete files are moved into it, one after the other. The temporary name is of the same
//! form as that of [`crate::AtomicFile`], so that an interrupted process removes it in the same way.

use crate::atomic_file::temporary_folder;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder being written.
#[derive(Debug)]
pub struct AtomicFolder {
    temporary: TempDir,
    path: PathBuf,
}

impl AtomicFolder {
    /// A folder that appears at `path`, or whose files do, when it is committed.
    pub fn create(path: &Path) -> io::Result<AtomicFolder> {
        if path.exists() && !path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "is not a folder"));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.map(fs::create_dir_all).transpose()?;
        Ok(AtomicFolder { temporary: temporary_folder(path)?, path: path.to_path_buf() })
    }

    /// A new file of it.
    pub fn file(&self, name: &str) -> io::Result<File> {
        File::create_new(self.temporary.path().join(name))
    }

    /// Everything has been written: makes it the result.
    pub fn commit(self) -> io::Result<()> {
        let AtomicFolder { temporary, path } = self;
        let is_empty = match fs::read_dir(&path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        if is_empty {
            // An empty folder is replaced; a link to one is not.
            let path = fs::canonicalize(&path).unwrap_or(path);
            let kept = temporary.keep();
            return fs::rename(&kept, &path).inspect_err(|_| drop(fs::remove_dir_all(&kept)));
        }
        for entry in fs::read_dir(temporary.path())? {
            let entry = entry?;
            fs::rename(entry.path(), path.join(entry.file_name()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn files_appear_together_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tables");
        let write = |text: &str| {
            let folder = AtomicFolder::create(&path).unwrap();
            folder.file("a.csv").unwrap().write_all(text.as_bytes()).unwrap();
            folder.file("b.csv").unwrap().write_all(text.as_bytes()).unwrap();
            folder
        };
        let names = |path: &Path| {
            let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        };
        drop(write("abandoned"));
        assert_eq!(names(directory.path()), [""; 0]);
        let folder = write("one");
        assert!(!path.exists());
        folder.commit().unwrap();
        assert_eq!(names(&path), ["a.csv", "b.csv"]);
        // What else is in the folder stays.
        fs::write(path.join("notes"), "mine").unwrap();
        write("two").commit().unwrap();
        assert_eq!(names(&path), ["a.csv", "b.csv", "notes"]);
        assert_eq!(fs::read_to_string(path.join("a.csv")).unwrap(), "two");
        // A folder that the user has made.
        let path = directory.path().join("deep/er");
        let folder = AtomicFolder::create(&path).unwrap();
        folder.file("a").unwrap();
        fs::create_dir_all(&path).unwrap();
        folder.commit().unwrap();
        assert_eq!(names(&path), ["a"]);
        assert_eq!(names(&directory.path().join("deep")), ["er"]);
        let error = AtomicFolder::create(&path.join("a")).unwrap_err();
        assert_eq!(error.to_string(), "is not a folder");
    }
}
